"""Stage 3 by its rules: wherever among the ranges the one to split stands, the iterations are the same."""

from __future__ import annotations

from typing import Any

import pytest

from morok.ir import interpret
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.ranges import split_ranges
from tests.passes import kernels as K

LENGTHS = (2, 12, 3)


def held(ast: UOp, inputs: int, outputs: int) -> list[Any]:
    buffers: dict[int, list[Any]] = {0: [0.0] * outputs, 1: [float(7 * i % 11) for i in range(inputs)]}
    interpret.run(ast, buffers)
    return buffers[0]


def lengths(at: int) -> list[int]:
    """The range of 12 iterations in this place."""
    others = [n for n in LENGTHS if n != 12]
    return [*others[:at], 12, *others[at:]]


@pytest.mark.parametrize("at", range(3))
def test_a_stored_range_is_split_wherever_it_is_closed(at: int) -> None:
    sizes = lengths(at)
    rs = [K.loop(n, i) for i, n in enumerate(sizes)]
    ast = K.kernel(K.buffer(0, 72).index(K.flat(rs, sizes)).store(K.buffer(1, 4).index(rs[at] % 4)).end(*rs))
    out = split_ranges(ast)
    end = next(n for n in out.toposort() if n.op is Op.End)
    assert [int(r.src[0].arg) for r in end.src[1:]] == [*sizes[:at], 3, 4, *sizes[at + 1 :]]
    assert held(out, 4, 72) == held(ast, 4, 72)


@pytest.mark.parametrize("at", range(3))
def test_a_folded_range_is_split_wherever_it_is_closed(at: int) -> None:
    sizes = lengths(at)
    rs = [K.fold(n, i) for i, n in enumerate(sizes)]
    body = K.buffer(1, 72).index(K.flat(rs, sizes)) * K.buffer(1, 72).index(rs[at] % 4)
    ast = K.kernel(K.buffer(0, 1).index(0).store(UOp.new(Op.Reduce, (body, *rs), Op.Add)))
    out = split_ranges(ast)
    fold = next(n for n in out.toposort() if n.op is Op.Reduce)
    assert [int(r.src[0].arg) for r in fold.src[1:]] == [*sizes[:at], 3, 4, *sizes[at + 1 :]]
    assert held(out, 72, 1) == held(ast, 72, 1)
