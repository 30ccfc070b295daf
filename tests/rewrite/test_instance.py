"""Judgements about single firings, by the terms of lanes (morok.dsl.instance); which rules fire beyond their proofs."""

from __future__ import annotations

import pytest

from morok.dsl.instance import Checks, judged
from morok.ir.dtype import DType, dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.prove import ledger
from morok.rewrite import folders


def scalars(n: int, d: DType = dtypes.i32) -> list[UOp]:
    return [UOp.var(f"x{i}", d) for i in range(n)]


def vector(n: int, d: DType = dtypes.i32) -> UOp:
    return UOp.new(Op.Neg, (UOp.vectorize(*scalars(n, d)),))


def reduced(x: UOp, lanes: int = 1, *ranges: UOp) -> UOp:
    d = x.dtype.scalar()
    return UOp.new(Op.Reduce, (x, *ranges), Op.Add, d.vec(lanes))


def tree(items: list[UOp]) -> UOp:
    while len(items) > 1:
        items = [UOp.new(Op.Add, (a, b)) for a, b in zip(items[::2], items[1::2], strict=True)]
    return items[0]


def right(root: UOp, result: UOp, *leaves: UOp) -> bool:
    return judged(MOROK, root, result, leaves)


@pytest.mark.parametrize("n", [2, 16, 64])
@pytest.mark.parametrize("d", [dtypes.i32, dtypes.f32])
def test_a_fold_becomes_a_tree_of_the_same_lanes(n: int, d: DType) -> None:
    x = vector(n, d)
    lanes = [x.gep(i) for i in range(n)]
    assert right(reduced(x), tree(lanes), x)
    assert not right(reduced(x), tree([*lanes[:-1], lanes[0]]), x)


def test_a_tree_of_floats_is_in_its_own_order() -> None:
    for d, same in ((dtypes.i32, True), (dtypes.f32, False)):
        x = vector(4, d)
        a, b, c, e = (x.gep(i) for i in range(4))
        pairs = UOp.new(Op.Add, (UOp.new(Op.Add, (a, b)), UOp.new(Op.Add, (c, e))))
        other = UOp.new(Op.Add, (UOp.new(Op.Add, (a, c)), UOp.new(Op.Add, (b, e))))
        again = UOp.new(Op.Add, (reduced(x.gep(0, 2)), reduced(x.gep(1, 3))))
        assert right(UOp.new(Op.Neg, (again,)), UOp.new(Op.Neg, (pairs,)), x) is same
        assert right(UOp.new(Op.Neg, (reduced(x),)), UOp.new(Op.Neg, (other,)), x)
        assert not right(UOp.new(Op.Neg, (pairs,)), UOp.new(Op.Neg, (reduced(x),)), x) or d is dtypes.i32


def test_axes_are_followed_iteration_by_iteration() -> None:
    x = vector(12)
    axes = ((7, 3), (9, 4))
    opened = UOp.new(Op.Unroll, (x,), axes)
    assert right(UOp.new(Op.Contract, (opened,), axes), x, x)
    turned = UOp.new(Op.Contract, (opened,), axes[::-1])
    assert not right(turned, x, x)
    assert right(turned, x.gep(*(4 * i + j for j in range(4) for i in range(3))), x)
    inner = UOp.new(Op.Unroll, (UOp.new(Op.Unroll, (x,), axes[1:]),), axes[:1])
    assert not right(inner, UOp.new(Op.Unroll, (x,), axes), x)
    assert right(inner, UOp.new(Op.Unroll, (x,), axes[::-1]), x)


def test_what_was_found_of_equal_constants_is_not_taken_for_others() -> None:
    """0.0 and -0.0 are equal, and so are 1 and True: what is remembered tells them apart."""
    wanted = UOp.vectorize(*(UOp.const(v, dtypes.f32) for v in (0.0, *[1.0] * 15)))
    found = [UOp.new(Op.VConst, (), (zero, *[1.0] * 15), dtypes.f32.vec(16)) for zero in (0.0, -0.0)]
    for some in (found, found[::-1]):
        checks = Checks(MOROK)
        assert {n.arg[0].hex(): checks.stands_in(n, wanted, "r", ()) for n in some} == {
            "0x0.0p+0": True,
            "-0x0.0p+0": False,
        }


def test_rules_look_into_what_is_unrolled() -> None:
    """An operand that is unrolled is no unknown by itself: the target may name what is inside it."""
    c, x, axes = UOp.var("c", dtypes.bool), vector(12), ((2, 12),)
    t, zero = UOp.new(Op.Unroll, (x,), axes), UOp.const(0, dtypes.i32)
    root = UOp.new(Op.Where, (c, t, zero))
    order, turned = tuple(range(12)), tuple(reversed(range(12)))
    for lanes, found in ((order, True), (turned, False)):
        inner = UOp.new(Op.Where, (c, x.gep(*lanes), zero.gep(*[0] * 12)))
        assert right(root, UOp.new(Op.Unroll, (inner,), axes), c, t, zero) is found


@pytest.mark.parametrize("n", [2, 12, 64])
def test_no_lane_of_what_is_invalid_is_valid(n: int) -> None:
    """And what was found of it is not taken for what another unknown of the same type would show."""
    one, many = UOp.new(Op.Invalid, (), None, dtypes.index), UOp.new(Op.Invalid, (), None, dtypes.index.vec(n))
    x, v = UOp.var("x", dtypes.index), UOp.var("v", dtypes.index.vec(n))
    checks = Checks(MOROK)
    for _ in range(2):
        assert checks.stands_in(one.gep(*[0] * n), many, "r", ())
        assert not checks.stands_in(x.gep(*[0] * n), v, "r", ())
        assert not checks.stands_in(x.gep(*[0] * n), many, "r", ())
        assert not checks.stands_in(one.gep(*[0] * n), v, "r", ())


def test_what_is_no_matter_of_lanes_is_not_judged() -> None:
    x = UOp.var("x", dtypes.i32)
    r = UOp.new(Op.Range, (UOp.const(5, dtypes.index),), (0, AxisType.Loop, False))
    body = UOp.new(Op.Add, (x, r.cast(dtypes.i32)))
    assert not right(reduced(body, 1, r), body, x, r)
    assert not right(UOp.new(Op.Add, (x, UOp.const(0, dtypes.i32))), x, x)
    assert not right(vector(4), UOp.vectorize(*scalars(3)))


def test_every_built_in_rule_is_proved_at_every_size() -> None:
    for path in sorted(folders.rules_folder().rglob("*.rules")):
        page = ledger.page_at(ledger.page_path(path))
        assert page is not None
        assert not [r.name for r in page.records.values() if r.verdict == "bounded" or r.extents]
