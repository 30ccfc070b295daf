"""Judgements about single firings, by the terms of lanes (morok.dsl.instance); which rules fire beyond their proofs."""

from __future__ import annotations

import pytest

from morok.dsl.instance import Checks, Finding, judged
from morok.errors import FalseFiringError
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


def finding(root: UOp, result: UOp, *leaves: UOp) -> Finding:
    return judged(MOROK, root, result, leaves)


@pytest.mark.parametrize("n", [2, 16, 64])
@pytest.mark.parametrize("d", [dtypes.i32, dtypes.f32])
def test_a_fold_becomes_a_tree_of_the_same_lanes(n: int, d: DType) -> None:
    x = vector(n, d)
    lanes = [x.gep(i) for i in range(n)]
    assert finding(reduced(x), tree(lanes), x) is Finding.SAME
    assert finding(reduced(x), tree([*lanes[:-1], lanes[0]]), x) is not Finding.SAME


def test_a_tree_of_floats_is_in_its_own_order() -> None:
    for d, same in ((dtypes.i32, True), (dtypes.f32, False)):
        x = vector(4, d)
        a, b, c, e = (x.gep(i) for i in range(4))
        pairs = UOp.new(Op.Add, (UOp.new(Op.Add, (a, b)), UOp.new(Op.Add, (c, e))))
        other = UOp.new(Op.Add, (UOp.new(Op.Add, (a, c)), UOp.new(Op.Add, (b, e))))
        again = UOp.new(Op.Add, (reduced(x.gep(0, 2)), reduced(x.gep(1, 3))))
        assert (finding(UOp.new(Op.Neg, (again,)), UOp.new(Op.Neg, (pairs,)), x) is Finding.SAME) is same
        assert finding(UOp.new(Op.Neg, (reduced(x),)), UOp.new(Op.Neg, (other,)), x) is Finding.SAME
        assert (
            finding(UOp.new(Op.Neg, (pairs,)), UOp.new(Op.Neg, (reduced(x),)), x) is not Finding.SAME or d is dtypes.i32
        )


def test_axes_are_followed_iteration_by_iteration() -> None:
    x = vector(12)
    axes = ((7, 3), (9, 4))
    opened = UOp.new(Op.Unroll, (x,), axes)
    assert finding(UOp.new(Op.Contract, (opened,), axes), x, x) is Finding.SAME
    turned = UOp.new(Op.Contract, (opened,), axes[::-1])
    assert finding(turned, x, x) is Finding.OTHER
    assert finding(turned, x.gep(*(4 * i + j for j in range(4) for i in range(3))), x) is Finding.SAME
    inner = UOp.new(Op.Unroll, (UOp.new(Op.Unroll, (x,), axes[1:]),), axes[:1])
    assert finding(inner, UOp.new(Op.Unroll, (x,), axes), x) is not Finding.SAME
    assert finding(inner, UOp.new(Op.Unroll, (x,), axes[::-1]), x) is Finding.SAME


def test_what_was_found_of_equal_constants_is_not_taken_for_others() -> None:
    """0.0 and -0.0 are equal, and so are 1 and True: what is remembered tells them apart."""
    wanted = UOp.vectorize(*(UOp.const(v, dtypes.f32) for v in (0.0, *[1.0] * 15)))
    found = [UOp.new(Op.VConst, (), (zero, *[1.0] * 15), dtypes.f32.vec(16)) for zero in (0.0, -0.0)]
    for some in (found, found[::-1]):
        checks = Checks(MOROK)
        assert {n.arg[0].hex(): checks.found(n, wanted, "r", ()) for n in some} == {
            "0x0.0p+0": Finding.SAME,
            "-0x0.0p+0": Finding.OTHER,
        }


def test_rules_look_into_what_is_unrolled() -> None:
    """An operand that is unrolled is no unknown by itself: the target may name what is inside it."""
    c, x, axes = UOp.var("c", dtypes.bool), vector(12), ((2, 12),)
    t, zero = UOp.new(Op.Unroll, (x,), axes), UOp.const(0, dtypes.i32)
    root = UOp.new(Op.Where, (c, t, zero))
    order, turned = tuple(range(12)), tuple(reversed(range(12)))
    for lanes, found in ((order, Finding.SAME), (turned, Finding.OTHER)):
        inner = UOp.new(Op.Where, (c, x.gep(*lanes), zero.gep(*[0] * 12)))
        assert finding(root, UOp.new(Op.Unroll, (inner,), axes), c, t, zero) is found


@pytest.mark.parametrize("n", [2, 12, 64])
def test_no_lane_of_what_is_invalid_is_valid(n: int) -> None:
    """And what was found of it is not taken for what another unknown of the same type would show."""
    one, many = UOp.new(Op.Invalid, (), None, dtypes.index), UOp.new(Op.Invalid, (), None, dtypes.index.vec(n))
    x, v = UOp.var("x", dtypes.index), UOp.var("v", dtypes.index.vec(n))
    checks = Checks(MOROK)
    for _ in range(2):
        assert checks.found(one.gep(*[0] * n), many, "r", ()) is Finding.SAME
        assert checks.found(x.gep(*[0] * n), v, "r", ()) is not Finding.SAME
        assert checks.found(x.gep(*[0] * n), many, "r", ()) is not Finding.SAME
        assert checks.found(one.gep(*[0] * n), v, "r", ()) is not Finding.SAME


def test_what_is_no_matter_of_lanes_is_not_judged() -> None:
    x = UOp.var("x", dtypes.i32)
    r = UOp.new(Op.Range, (UOp.const(5, dtypes.index),), (0, AxisType.Loop, False))
    body = UOp.new(Op.Add, (x, r.cast(dtypes.i32)))
    assert finding(reduced(body, 1, r), body, x, r) is not Finding.SAME
    assert finding(UOp.new(Op.Add, (x, UOp.const(0, dtypes.i32))), x, x) is Finding.UNKNOWN
    assert finding(vector(4), UOp.vectorize(*scalars(3))) is Finding.OTHER


def test_the_list_of_rules_that_fire_beyond_their_proofs_gets_shorter() -> None:
    listed = ledger.beyond()
    bounded = set()
    for path in sorted(folders.rules_folder().rglob("*.rules")):
        page = ledger.page_at(ledger.page_path(path))
        assert page is not None
        mine = {r.name for r in page.records.values() if r.verdict == "bounded"}
        assert all(bool(r.extents) == (r.verdict == "bounded") for r in page.records.values())
        limits = ledger.sealed(path, path.read_bytes())
        assert limits is not None
        assert set(limits) == mine - listed
        assert all(limit.declines for limit in limits.values())
        bounded |= mine
    assert listed <= bounded  # whoever proves a rule at every size takes it out
    assert bounded == set()


def test_a_false_firing_is_an_error_where_a_rule_fires_beyond_its_proof() -> None:
    x = vector(16)
    with pytest.raises(FalseFiringError, match=r"some\.rule"):
        Checks(MOROK).not_refuted(x.gep(*reversed(range(16))), x, "some.rule", (x,))
