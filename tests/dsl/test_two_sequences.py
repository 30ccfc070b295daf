"""Ops whose operands end in two sequences of equal length, with the items of one or of both written in the pattern."""

from __future__ import annotations

import itertools

import pytest

from morok import UOp, dtypes
from morok.dsl.check import check_text
from morok.ir.op import Op
from morok.rewrite.ruleset import RuleSet


def number(n: int) -> UOp:
    return UOp.const(n, dtypes.index)


def shrunk(*edges: tuple[int, int]) -> UOp:
    """A part of a tensor of as many axes of 9 elements."""
    line = UOp.new(Op.Iota, (number(9 ** len(edges)),))
    cube = UOp.new(Op.Reshape, (line, *[number(9)] * len(edges)))
    return UOp.new(Op.Shrink, (cube, *(number(b) for b, _ in edges), *(number(e) for _, e in edges)))


def found(pattern: str, target: str, node: UOp) -> int | None:
    """The number that a rule finds, if it applies."""
    (rule,) = check_text(f"group g\n\nr: {pattern} ~> {target}\n").rules()
    made = RuleSet.of([rule], unproved=True)["g.r"].apply(node)
    return None if made is None else int(made.arg)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("written", ["begins", "ends", "both"])
def test_each_name_is_the_item_at_its_place(rank: int, written: str) -> None:
    edges = [(k, 4 + k) for k in range(rank)]
    lists = {"begins": [f"b{k}" for k in range(rank)], "ends": [f"e{k}" for k in range(rank)]}
    said = {f: f"[{', '.join(names)}]" if written in (f, "both") else f"_{f}" for f, names in lists.items()}
    pattern = f"Shrink {{ src: _x: index, begins: {said['begins']}, ends: {said['ends']} }}"
    for (field, names), k in itertools.product(lists.items(), range(rank)):
        if written not in (field, "both"):
            continue
        others = {n: f"_{n}" for n in itertools.chain(*lists.values()) if n != names[k]}
        alone = pattern
        for old, new in others.items():
            alone = alone.replace(f"{old},", f"{new},").replace(f"{old}]", f"{new}]")
        assert found(alone, names[k], shrunk(*edges)) == edges[k][field == "ends"]
        assert found(alone, names[k], shrunk(*edges, (0, 1))) is None, "of another rank"
