"""Stages 3 and 5 by their rules: wherever among the ranges those to split or to merge stand, the iterations are the same."""

from __future__ import annotations

from typing import Any

import pytest

from morok.ir import interpret
from morok.ir.op import Op
from morok.ir.uop import UOp
from tests.passes import kernels as K
from tests.passes.lowering import stage

LENGTHS = (2, 12, 3)
MANY = (1, 2, 1, 2, 1, 2, 1, 12, 2)  # the eighth is split


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
    out = stage(3, ast)
    end = next(n for n in out.toposort() if n.op is Op.End)
    assert [int(r.src[0].arg) for r in end.src[1:]] == [*sizes[:at], 3, 4, *sizes[at + 1 :]]
    assert held(out, 4, 72) == held(ast, 4, 72)


@pytest.mark.parametrize("at", range(3))
def test_a_folded_range_is_split_wherever_it_is_closed(at: int) -> None:
    sizes = lengths(at)
    rs = [K.fold(n, i) for i, n in enumerate(sizes)]
    body = K.buffer(1, 72).index(K.flat(rs, sizes)) * K.buffer(1, 72).index(rs[at] % 4)
    ast = K.kernel(K.buffer(0, 1).index(0).store(UOp.new(Op.Reduce, (body, *rs), Op.Add)))
    out = stage(3, ast)
    fold = next(n for n in out.toposort() if n.op is Op.Reduce)
    assert [int(r.src[0].arg) for r in fold.src[1:]] == [*sizes[:at], 3, 4, *sizes[at + 1 :]]
    assert held(out, 72, 1) == held(ast, 72, 1)


def test_the_eighth_of_nine_ranges_is_split() -> None:
    rs = [K.loop(n, i) for i, n in enumerate(MANY)]
    place = K.flat(rs, list(MANY))
    ast = K.kernel(K.buffer(0, 192).index(place).store(K.buffer(1, 4).index(rs[7] % 4)).end(*rs))
    out = stage(3, ast)
    end = next(n for n in out.toposort() if n.op is Op.End)
    assert [int(r.src[0].arg) for r in end.src[1:]] == [*MANY[:7], 3, 4, 2]
    assert held(out, 4, 192) == held(ast, 4, 192)


@pytest.mark.long
def test_the_eighth_and_the_ninth_of_ten_ranges_are_merged() -> None:
    sizes = [2, 2, 2, 2, 2, 2, 2, 3, 2, 2]
    strides = [101, 211, 307, 401, 503, 601, 701, 14, 7, 53]
    rs = [K.loop(n, i) for i, n in enumerate(sizes)]
    value = K.buffer(1, 4000).index(place(rs, strides))
    ast = K.kernel(K.buffer(0, 4000).index(place(rs, strides)).store(value + value).end(*rs))
    out = stage(5, ast)
    end = next(n for n in out.toposort() if n.op is Op.End)
    assert [int(r.src[0].arg) for r in end.src[1:]] == [2, 2, 2, 2, 2, 2, 2, 6, 2]
    assert held(out, 4000, 4000) == held(ast, 4000, 4000)


def merging(at: int) -> tuple[list[int], list[int]]:
    """Lengths of six ranges, and strides by which those at `at` and behind it count as one, and no others."""
    sizes = [2, 3, 2, 3, 1, 2]
    strides = [1000, 100, 10, 200, 13, 17]
    strides[at], strides[at + 1] = 7 * sizes[at + 1], 7
    return sizes, strides


def place(rs: list[UOp], strides: list[int]) -> UOp:
    total = UOp.const(5)
    for r, c in reversed(list(zip(rs, strides, strict=True))):
        total = total + r * c
    return total


@pytest.mark.parametrize("at", range(5))
def test_stored_ranges_are_merged_wherever_they_are_closed(at: int) -> None:
    sizes, strides = merging(at)
    rs = [K.loop(n, i) for i, n in enumerate(sizes)]
    value = K.buffer(1, 4000).index(place(rs, strides))
    ast = K.kernel(K.buffer(0, 4000).index(place(rs, strides) + 1).store(value * value).end(*rs))
    out = stage(5, ast)
    (end,) = [n for n in out.toposort() if n.op is Op.End]
    merged = [*sizes[:at], sizes[at] * sizes[at + 1], *sizes[at + 2 :]]
    assert [int(r.src[0].arg) for r in end.src[1:]] == [n for n in merged if n > 1]
    assert not {Op.Mod, Op.Idiv} & {n.op for n in out.toposort()}
    assert held(out, 4000, 4000) == held(ast, 4000, 4000)


@pytest.mark.parametrize("at", range(5))
def test_folded_ranges_are_merged_wherever_they_are_closed(at: int) -> None:
    sizes, strides = merging(at)
    rs = [K.fold(n, i) for i, n in enumerate(sizes)]
    body = K.buffer(1, 4000).index(place(rs, strides))
    ast = K.kernel(K.buffer(0, 1).index(0).store(UOp.new(Op.Reduce, (body, *rs), Op.Add)))
    out = stage(5, ast)
    (fold,) = [n for n in out.toposort() if n.op is Op.Reduce]
    assert [int(r.src[0].arg) for r in fold.src[1:]] == [*sizes[:at], sizes[at] * sizes[at + 1], *sizes[at + 2 :]]
    assert not {Op.Mod, Op.Idiv} & {n.op for n in out.toposort()}
    assert held(out, 4000, 1) == held(ast, 4000, 1)


def test_reductions_over_the_same_ranges_are_merged_into_one() -> None:
    """Three ranges that count as one are one, and the two reductions still run in one loop."""
    rs = [K.fold(n, i) for i, n in enumerate((2, 3, 4))]
    at = K.flat(rs, [2, 3, 4])
    total, top = (UOp.new(Op.Reduce, (K.buffer(1, 24).index(at), *rs), op) for op in (Op.Add, Op.Max))
    ast = K.kernel(K.buffer(0, 1).index(0).store(total + top))
    out = stage(5, ast)
    folds = [n for n in out.toposort() if n.op is Op.Reduce]
    assert len(folds) == 2
    assert folds[0].src[1:] == folds[1].src[1:]
    assert [int(r.src[0].arg) for r in folds[0].src[1:]] == [24]
    assert held(out, 24, 1) == held(ast, 24, 1)
