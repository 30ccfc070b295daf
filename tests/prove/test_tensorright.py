"""The rules of XLA that TensorRight states: proved at every rank and size, each with a change that makes it false."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.dsl.format import format_rule
from morok.errors import RuleError
from morok.ir.op import Op
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.trust import differential
from morok.prove.trust.mutants import mutants, recheck
from morok.prove.workers import judge

RULES = list(check_file(Path(__file__).with_name("tensorright.rules")).rules())
OPEN = list(check_file(Path(__file__).with_name("tensorright_open.rules")).rules())  # which are true, and not proved
# Changes of rules that no change in one place makes false, or none that `mutants` makes: by what text becomes another.
TWINS = {
    "broadcast.rule08": ("~> Expand { src: x, shape: ms }", "~> x"),
    "concat.rule03": ("sources: [b, c], axis: k }", "sources: [c, b], axis: k }"),
    "concat.rule05": (" v)", " zero(y))"),
    "concat.rule06": (" v)", " zero(y))"),
    "dyupslice.rule02": ("ends: e }, v)", "ends: e }, zero(x))"),
    "dyslice.rule05": ("Add(i, j) for i, j in zip(b, c)", "Add(i, i) for i, j in zip(b, c)"),
    "reduce.rule01": ("0..rank(x) + rank(y)", "0..rank(x) + rank(x)"),
    "reduce.rule08": (
        "[shape(x)[k] for k in others([a[k] for k in c], rank(x))]",
        "[shape(x)[k] for k in others(c, rank(x))]",
    ),
    "reduce.rule04": ("axes: [a[k] for k in c]", "axes: c"),
    "reduce.rule05": ("[others(c, rank(x))[k] for k in d]..", "d.."),
    "relabel.rule01": ("a[k] for k in b", "b[k] for k in a"),
    "reverse.rule02": ("~> x", "~> Flip { src: x, axes: a }"),
    "select.rule01": ("a, a)", "a, _b)"),
    "select.rule04": ("Where(p, b, a)", "Where(p, a, b)"),
    "slice.rule03": ("1, 0, constant(i)", "1, 1, constant(i)"),
    "broadcast.rule07": ("~> i", "~> Flip { src: i, axes: [true] }"),
    "concat.rule02": ("sources: [a, b], axis: k }, c]", "sources: [b, a], axis: k }, c]"),
    "concat.rule07": ("[a, b, c]", "[a, c, b]"),
    "dot.rule01": ("Expand { src: d, shape", "Expand { src: y, shape"),
    "dyslice.rule03": ("== 1, 1, 0)", "== 1, 0, 0)"),
    "dyslice.rule04": ("b[k] for k in inverse(a)", "b[k] for k in a"),
    "mul.rule05_float": ("Mul(c, e)) assuming", "Mul(c, c)) assuming"),
    "mul.rule06_float": ("Mul(c, e)) assuming", "Mul(c, c)) assuming"),
    "inverses.rule01": ("~> a", "~> Not(a)"),
    "reverse.rule03": ("f != g", "f or g"),
    "slice.rule02": ("Sub(j, i)", "Sub(j, 0)"),
    "slice.rule07": ("Add(i, j) for i, j in zip(b, c)", "Add(i, i) for i, j in zip(b, c)"),
    "slice.rule13": ("constant(n) - constant(j), constant(i)", "constant(n) - constant(i), constant(i)"),
}


def test_how_many_are_stated() -> None:
    """105 of the 121 rules: one for floats, or for another op, counts once."""
    assert len({r.name.split(".")[0] + r.name.split(".")[1].removesuffix("_float") for r in RULES}) == 105


@pytest.mark.sampled(30)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_it_is_proved_at_every_size(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "proved", found.message
    assert not found.extents
    assert any(line.startswith("any number of") for line in found.scope)


def near(rule: CheckedRule) -> Iterator[CheckedRule]:
    """Rules that are written almost like this one."""
    twin = TWINS.get(rule.name)
    if twin is not None:
        text = format_rule(rule.syntax)
        assert text.count(twin[0]) == 1
        yield from check_text(f"group near\n\n{text.replace(*twin)}\n").rules()
        return
    for mutant in mutants(rule.syntax, rule.dialect):
        with contextlib.suppress(RuleError):  # which makes no sense
            yield recheck(rule, mutant.rule)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rule", OPEN, ids=lambda r: r.name)
def test_what_is_not_proved_holds_of_graphs_of_several_sizes(rule: CheckedRule) -> None:
    apply = differential.Rewriter(rule)
    shapes = set()
    for trial in differential.Trials(rule, rule.instances, worlds=1).first(200):
        made = apply(trial.graph)
        if made is not None:
            assert trial.differs(made) is None
            shapes.add(tuple(n.arg for n in trial.graph.toposort() if n.op is Op.Const))
    assert len(shapes) > 5


@pytest.mark.sampled(38)
@pytest.mark.parametrize("rule", [*RULES, *OPEN], ids=lambda r: r.name)
def test_something_near_it_is_refuted(rule: CheckedRule) -> None:
    assert any(judge(changed, DEFAULT_BUDGET, False).verdict == "refuted" for changed in near(rule))
