"""The rules about views say what the code that assigns ranges does."""

from __future__ import annotations

import itertools
import math

import pytest

from morok import UOp, dtypes
from morok.ir.interpret import INVALID, evaluate
from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.passes import movement
from morok.rewrite import library


def memory(*shape: int) -> UOp:
    buffer = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 0), UOp.new(Op.Device, (), "CPU")), math.prod(shape), dtypes.f32)
    return UOp.new(Op.Reshape, (buffer, *map(movement.number, shape)))


def edges(op: Op, x: UOp, begins: list[int], ends: list[int]) -> UOp:
    return UOp.new(op, (x, *map(movement.number, begins), *map(movement.number, ends)))


VIEWS = [
    UOp.new(Op.Permute, (memory(2, 3),), (1, 0)),
    UOp.new(Op.Permute, (memory(2, 3, 4),), (1, 2, 0)),
    UOp.new(Op.Permute, (memory(2, 3, 4),), (2, 0, 1)),
    UOp.new(Op.Flip, (memory(8),), (True,)),
    edges(Op.Shrink, memory(4, 5), [1, 2], [3, 5]),
    edges(Op.Pad, memory(2, 3), [1, 0], [2, 1]),
    UOp.new(Op.Expand, (memory(1, 3), movement.number(4), movement.number(3))),
    UOp.new(Op.Reshape, (memory(3, 4), movement.number(12))),
    UOp.new(Op.Reshape, (memory(12), movement.number(3), movement.number(4))),
]


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: v.op.name)
def test_a_rule_and_the_code_agree(view: UOp) -> None:
    rule = library.group("movement")
    for place in itertools.product(*[range(int(d)) for d in shape_of(view)]):
        indices = tuple(movement.number(i) for i in place)
        read = library.rewrite(view.index(*indices), rule)
        below, gates = movement.through(view, indices)
        assert read.src[0] is view.src[0]
        ours = [evaluate(i) for i in read.src[1:]]
        if all(evaluate(g) for g in gates):
            assert ours == [evaluate(i) for i in below]
        else:
            assert INVALID in ours


def test_the_texts_example() -> None:
    i = UOp.var("i", dtypes.index, 0, 7)
    read = library.rewrite(VIEWS[3].index(i), library.group("movement"))
    assert [evaluate(read.src[1], {"i": k}) for k in range(8)] == [7, 6, 5, 4, 3, 2, 1, 0]
