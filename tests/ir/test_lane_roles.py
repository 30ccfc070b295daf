"""Ops that rearrange lanes: the interpreter has the lanes that NumPy has, and proofs have them at the same places."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from morok import lane_roles, value_domains
from morok.dsl.instance import Instance
from morok.ir.dtype import dtypes
from morok.ir.interpret import evaluate, lane_values, memory_places
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst
from morok.prove.parametric.polynomials import integer
from morok.prove.parametric.sequences import UNKNOWN
from morok.value_domains import INTEGERS

I32 = dtypes.i32
Array = np.ndarray[Any, Any]


def vector(rng: random.Random, count: int) -> tuple[UOp, Array]:
    values = [rng.randrange(100) for _ in range(count)]
    return (vconst(I32, values) if count > 1 else UOp.const(values[0], I32)), np.array(values)


def rearranged(rng: random.Random) -> list[tuple[UOp, Array]]:
    """Nodes that rearrange lanes, one of each op, with the lanes that NumPy gives them."""
    n, own, iterations = rng.choice((1, 2, 3)), rng.choice((1, 2)), rng.choice((2, 3))
    x, a = vector(rng, n)
    y, b = vector(rng, iterations * own)
    single = [vector(rng, 1) for _ in range(3)]
    places = tuple(rng.randrange(iterations * own) for _ in range(n))
    axes, more = ((1, iterations),), ((1, iterations), (2, 2))
    opened = UOp.new(Op.Unroll, (y,), axes)
    twice = UOp.new(Op.Unroll, (UOp.new(Op.Cat, (y, y + y)),), more)
    lane = UOp.new(Op.Mul, (opened, UOp.new(Op.Unroll, (y,), axes)))
    by_axis = np.concatenate([b, b + b]).reshape(iterations, 2, own)
    return [
        (UOp.new(Op.Gep, (y,), places), b[list(places)]),
        (UOp.new(Op.Cat, (x, y, x)), np.concatenate([a, b, a])),
        (UOp.new(Op.Vectorize, tuple(s for s, _ in single)), np.concatenate([s for _, s in single])),
        (UOp.new(Op.Contract, (lane,), axes), b * b),
        (UOp.new(Op.Contract, (twice,), more[::-1]), by_axis.transpose(1, 0, 2).ravel()),
        (UOp.new(Op.Reduce, (y,), Op.Add, I32.vec(own)), b.reshape(own, iterations).sum(1)),
    ]


def lanes(node: UOp) -> Sequence[Any]:
    found = evaluate(node)
    return found if isinstance(found, tuple) else (found,)


def differs() -> set[Op]:
    """The ops of which the interpreter has other lanes than NumPy."""
    rng = random.Random(1)
    pairs = [pair for _ in range(20) for pair in rearranged(rng)]
    return {node.op for node, wanted in pairs if list(lanes(node)) != wanted.tolist()}


def test_lanes_are_those_of_numpy() -> None:
    assert differs() == set()


def test_lanes_of_an_instance_are_those_of_numpy() -> None:
    """The check of a firing reads the same roles: a node and the constant that it is are the same to it."""
    rng = random.Random(2)
    for _ in range(20):
        for node, wanted in rearranged(rng):
            right = vconst(I32, wanted.tolist()) if wanted.size > 1 else UOp.const(int(wanted[0]), I32)
            if node.op is not Op.Reduce and right.dtype is node.dtype:  # it adds no numbers
                assert Instance(MOROK, [], node, right).is_right(), (node.text(), wanted)


@pytest.mark.parametrize(
    ("name", "ops"),
    [("take", {Op.Gep}), ("join", {Op.Cat, Op.Vectorize, Op.Contract}), ("opened", {Op.Contract})],
)
def test_a_wrong_role_is_not_that_of_numpy(name: str, ops: set[Op], monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison finds an error in the meaning that the interpreter and the prover share."""
    right = getattr(lane_roles, name)
    for module in (lane_values, memory_places):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, lambda *given: right(*given)[::-1])
    assert differs() == ops


# Places, of any number of lanes


def known(found: Any) -> Any:
    assert found.known is not None, found
    return found.known


@pytest.mark.parametrize("own", range(1, 4))
def test_places_of_axes_are_those_of_known_lanes(own: int) -> None:
    for iterations in range(1, 4):
        whole = tuple(range(iterations * own))
        parts = [lane_roles.opened(whole, i, own) for i in range(iterations)]
        assert lane_roles.join(parts) == whole
        assert lane_roles.groups(whole, iterations) == parts
        for k in whole:
            i, lane = lane_roles.closed_place(k, own, divmod)
            assert parts[i][lane] == k
            assert lane_roles.opened_place(i, own, lane) == k
            assert known(lane_roles.opened_place(integer(i), integer(own), integer(lane))) == k


def test_places_of_joined_lanes_are_those_of_known_lanes() -> None:
    for counts in itertools.product(range(1, 4), repeat=3):
        vectors = [tuple((part, lane) for lane in range(n)) for part, n in enumerate(counts)]
        for k, lane in enumerate(lane_roles.join(vectors)):
            assert value_domains.behind(INTEGERS, k, counts, lambda part, own: (part, own)) == lane
            found = value_domains.behind(
                UNKNOWN, integer(k), [*map(integer, counts)], lambda part, own: own + 10 * part
            )
            assert known(integer(found)) == 10 * lane[0] + lane[1]
