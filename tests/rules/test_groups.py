"""What each rule group must do: the rows of the feature table, and what it must leave alone."""

from __future__ import annotations

import math

import pytest
from expressions import constant, refines
from hypothesis import given
from hypothesis import strategies as st
from rulesets import by_group, one, rw

from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst
from morok.rewrite.tiers import SYM, SYMBOLIC, SYMBOLIC_SIMPLE

INVALID = UOp.invalid_at()
TRUE, FALSE = UOp.const(True), UOp.const(False)
ONE, TWO = constant(1), constant(2)


def V(name: str, low: int, high: int) -> UOp:
    return UOp.var(name, dtypes.index, low, high)


def R(n: int, id: int = 0) -> UOp:
    return UOp.range(n, id)


x, y, r, v = V("x", 0, 31), V("y", 0, 31), V("r", 0, 1), V("v", 0, 2)
i, j, k = (UOp.var(n, dtypes.i32) for n in "ijk")
f, g = (UOp.var(n, dtypes.f32) for n in "fg")
p, q, s = (UOp.var(n, dtypes.bool) for n in "pqs")
c32 = lambda n: UOp.const(n, dtypes.i32)  # noqa: E731
f32 = lambda n: UOp.const(n, dtypes.f32)  # noqa: E731
buffer = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(64))
tiny = V("tiny", 0, 15)
z = V("z", -40, 40)
big = UOp.var("big", dtypes.i64)
byte = UOp.var("byte", dtypes.i8)


ROWS = [
    # 1 propagate_invalid
    ("propagate_invalid", 0 * p.where(x, INVALID), p.where(0 * x, INVALID)),
    ("propagate_invalid", p.where(q.where(x, INVALID), INVALID), (p & q).where(x, INVALID)),
    ("propagate_invalid", p.where(x, INVALID) < y, x < y),
    ("propagate_invalid", x + INVALID, INVALID),
    ("propagate_invalid", p.where(INVALID, x), (~p).where(x, INVALID)),
    ("propagate_invalid", p.where(INVALID, INVALID), INVALID),
    # 2 fold_invalid_load_store
    ("fold_invalid_load_store", buffer.index(INVALID).load(), f32(0.0)),
    ("fold_invalid_load_store", buffer.index(INVALID).store(f), UOp.new(Op.Noop)),
    ("fold_invalid_load_store cast", buffer.index(INVALID).load().cast(dtypes.i32), c32(0)),
    # 3 constant_folding
    ("constant_folding", constant(3) + constant(4), constant(7)),
    ("constant_folding", c32(2**31 - 1) + c32(1), c32(-(2**31))),
    ("constant_folding", f32(-1.0).sqrt(), f32(math.nan)),
    ("constant_folding", c32(1).idiv(c32(0)), c32(1).idiv(c32(0))),
    ("constant_folding", c32(1) << c32(40), c32(1) << c32(40)),
    ("constant_folding", TRUE.where(f32(1.0), f32(2.0)), f32(1.0)),
    # 4 vconst_folding
    ("vconst_folding", UOp.const(2, dtypes.i32.vec(2)) * vconst(dtypes.i32, (1, 3)), vconst(dtypes.i32, (2, 6))),
    ("vconst_folding", vconst(dtypes.i32, (1, 2)) + vconst(dtypes.i32, (3, 4)), vconst(dtypes.i32, (4, 6))),
    ("vconst_folding", -vconst(dtypes.i32, (1, 2)), vconst(dtypes.i32, (-1, -2))),
    # 5 identity_and_zero
    ("identity_and_zero", i + 0, i),
    ("identity_and_zero", 1 * i, i),
    ("identity_and_zero", i | 0, i),
    ("identity_and_zero", i ^ 0, i),
    ("identity_and_zero", f - 0.0, f),
    ("identity_and_zero", i // 1, i),
    ("identity_and_zero", f / 1.0, f),
    ("identity_and_zero", i % 1, c32(0)),
    ("identity_and_zero", i.round(), i),
    ("identity_and_zero", f.round(), f.round()),
    ("identity_and_zero", i * 0, c32(0)),
    ("identity_and_zero", f * 0.0, f * 0.0),
    ("identity_and_zero", f + 0.0, f + 0.0),
    ("identity_and_zero", f + -0.0, f),
    ("identity_and_zero", i & 0, c32(0)),
    *[("identity_and_zero", UOp.new(op, (i,)), i) for op in (Op.Floor, Op.Ceil, Op.Trunc)],
    *[("identity_and_zero", UOp.new(op, (f,)), UOp.new(op, (f,))) for op in (Op.Floor, Op.Ceil, Op.Trunc)],
    # 7, 8 self_folding, zero_folding
    ("self_folding", i // i, c32(1)),
    ("self_folding", i // -1, -i),
    ("self_folding", (i % j) % j, i % j),
    ("self_folding", i & i, i),
    ("self_folding", i | i, i),
    ("self_folding", p & p, p),
    ("zero_folding", i % i, c32(0)),
    ("zero_folding", i < i, FALSE),
    ("zero_folding", i.ne(i), FALSE),
    ("zero_folding", f.ne(f), f.ne(f)),
    # 9 division
    ("division", f32(0.0) / f32(0.0), f32(math.nan)),
    ("division", f / f, f / f),
    ("division", (f * 0.0) / f32(0.0), f32(math.nan)),
    ("division", (f * g) / g, (f * g) / g),
    ("division", (x * y) // y, x),
    ("division", (i * j) // j, (i * j) // j),
    # 10, 11 cast, cast_where
    ("cast", UOp.const(300, dtypes.i32).cast(dtypes.u8), UOp.const(44, dtypes.u8)),
    ("cast", i.cast(dtypes.i32), i),
    ("cast", big.cast(dtypes.i8).cast(dtypes.i64), big.cast(dtypes.i8).cast(dtypes.i64)),
    ("cast", byte.cast(dtypes.i32).cast(dtypes.i8), byte),
    ("cast", byte.cast(dtypes.i32).cast(dtypes.i64), byte.cast(dtypes.i64)),
    ("cast", p.cast(dtypes.i32).cast(dtypes.bool), p),
    ("cast_where", p.where(i, j).cast(dtypes.f32), p.where(i.cast(dtypes.f32), j.cast(dtypes.f32))),
    # 12, 13 term_combining, alu_folding
    ("term_combining", x * 3 + x * 4, x * 7),
    ("term_combining", 3 * i + 4 * i, i * 7),
    ("term_combining", i + i, i * 2),
    ("term_combining", f + f, f + f),
    ("alu_folding", (x + 3) + y, (x + y) + 3),
    ("alu_folding", (i + 3) + 4, i + 7),
    ("alu_folding", (i * 3) * 4, i * 12),
    ("alu_folding", (i - 3) + 5, i + 2),
    ("alu_folding", (i - 5) + 3, i - 2),
    ("alu_folding", (i - 5) - 3, i - 8),
    ("alu_folding", i - (j - k), k + (i - j)),
    ("alu_folding", (f + 3.0) + 4.0, (f + 3.0) + 4.0),
    # 14, 15 advanced_division, div_mod_recombine
    ("advanced_division constant_folding", (x // 2) // 3, x // 6),
    ("advanced_division", (x * 8 + y * 4) // 4, x * 2 + y * 1),
    ("advanced_division", (x + y) * 3, x * 3 + y * 3),
    ("advanced_division", (f + g) * 3.0, (f + g) * 3.0),
    ("advanced_division identity_and_zero", (x * 8 + y * -4) // 4, x * 2 + y * -1),
    ("fold_divmod_general identity_and_zero", (x * 8 + y) % 7, (x + y) % 7),
    ("div_mod_recombine", x % 8 + (x // 8) * 8, x),
    ("div_mod_recombine", (x // 2) % 3 + (x // 6) * 3, x // 2),
    ("div_mod_recombine", (x % 4) * 3 + (x // 4) * 12, x * 3),
    ("div_mod_recombine", y + x % 5 + (x // 5) * 5, y + x),
    ("div_mod_recombine", (x // 3 + 2) // 4, (x + 6) // 12),
    ("div_mod_recombine", x % 4 + (x // 4 % 2) * 4, x % 8),
    # 16 comparison
    ("comparison", (x + 3) < 10, x < 7),
    ("comparison", x // 4 < 3, x < 12),
    ("comparison", -x < -y, y < x),
    ("comparison", x * -1 < y * -1, y < x),
    ("comparison", i * 3 < j * 3, i * 3 < j * 3),
    ("comparison", byte.cast(dtypes.i32) * 3 < j * 3, byte.cast(dtypes.i32) * 3 < j * 3),
    ("comparison", z // 4 < 0, z < -3),
    ("comparison", z // 4 < -1, z < -7),
    ("comparison", constant(0) < z // 4, constant(3) < z),
    ("zero_folding comparison", i > i, FALSE),
    ("comparison", i <= i, TRUE),
    ("comparison", i >= i, TRUE),
    ("comparison", i.eq(i), TRUE),
    ("comparison", f <= f, f <= f),
    ("comparison", f.eq(f), f.eq(f)),
    ("comparison", (i + 3) < 10, (i + 3) < 10),
    ("comparison", -i < -j, -i < -j),
    ("comparison", V("a", 0, 3) < V("b", 5, 9), TRUE),
    ("comparison", i <= 4, i < 5),
    ("comparison", i > j, j < i),
    # 17 boolean
    ("boolean", ~~(x < 5), x < 5),
    ("boolean", p | ~p, TRUE),
    ("boolean", p & ~p, FALSE),
    ("zero_folding boolean", p ^ p, FALSE),
    ("boolean", p | TRUE, TRUE),
    ("boolean identity_and_zero", p & FALSE, FALSE),
    ("boolean identity_and_zero", p & TRUE, p),
    ("boolean identity_and_zero", p | FALSE, p),
    ("boolean", ~p & ~q, ~(p | q)),
    ("boolean", ~p | ~q, ~(p & q)),
    ("boolean", ~(f < g), ~(f < g)),
    # 18, 19 minmax, where_bound
    ("minmax", V("a", 5, 9).max(V("b", 0, 5)), V("a", 5, 9)),
    ("minmax", V("b", 0, 5).max(V("a", 5, 9)), V("a", 5, 9)),
    ("minmax", V("a", 5, 9).min(V("b", 0, 5)), V("b", 0, 5)),
    ("minmax", f.max(f), f),
    (
        "where_bound",
        (x < 5).where((y < 3).where(constant(1), constant(2)), constant(2)),
        ((x < 5) & (y < 3)).where(constant(1), constant(2)),
    ),
    ("where_bound", (x < 40).where(f, g), f),
    ("where_bound", (x < 0).where(f, g), g),
    ("where_bound", TRUE.where(f, g), f),
    ("where_bound", p.where(f, f), f),
    ("where_bound", p.where(TRUE, FALSE), p),
    ("where_bound", p.where(FALSE, TRUE), ~p),
    ("where_bound", (~p).where(f, g), p.where(g, f)),
    ("where_bound", (~p).where(x, INVALID), (~p).where(x, INVALID)),
    # 20, 21 power, negation
    ("power", f.pow(0.0), f32(1.0)),
    ("power", i.pow(1), i),
    ("negation", f.neg().neg(), f),
    # 22 range_based_mod_div, fold_divmod_general
    ("range_based_mod_div", R(3) % 3, R(3)),
    ("range_based_mod_div", R(3) // 3, constant(0)),
    ("range_based_mod_div", (x * 512 + tiny) % 512, tiny),
    ("range_based_mod_div", (x * 512 + tiny) // 512, x * 1 + constant(0)),
    ("range_based_mod_div", (R(2) * 4 + 1) // 8, constant(0)),
    ("range_based_mod_div", (x + 70) // 8, (x + 6) // 8 + 8),
    ("constant_folding identity_and_zero fold_divmod_general", (r * 8 + v) % 7, r + v),
    ("fold_divmod_general", (x * 8 + y * 3) // 8, x + (y * 3) // 8),
    # 23, 24, 25 dce, dead_loop, after_simplification
    ("dce", TRUE.where(f, g), f),
    ("dead_loop", R(1) + x, constant(0) + x),
    ("dead_loop", R(1), constant(0)),
    ("dead_loop", R(0), R(0)),
    ("dead_loop", i.reduce(Op.Add, R(0)), c32(0)),
    ("dead_loop", f.reduce(Op.Add, R(0)), f32(-0.0)),
    ("dead_loop", f.reduce(Op.Mul, R(0)), f32(1.0)),
    ("dead_loop", f.reduce(Op.Max, R(0)), f32(-math.inf)),
    ("dead_loop", i.reduce(Op.Min, R(0)), c32(2**31 - 1)),
    ("dead_loop", buffer.index(x).store(f).end(R(1)), buffer.index(x).store(f)),
    ("dead_loop", buffer.index(x).store(f).end(R(4, 2), R(1)), buffer.index(x).store(f).end(R(4, 2))),
    ("dead_loop", buffer.index(x).store(f).end(R(0)), UOp.new(Op.Noop)),
    ("after_simplification", UOp.new(Op.After, (buffer,)), buffer),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("group", "before", "after"), ROWS, ids=[f"{n}-{row[0]}" for n, row in enumerate(ROWS)])
def test_row(group: str, before: UOp, after: UOp) -> None:
    assert rw(before, *group.split()) is after


def test_every_group_of_the_texts_exists() -> None:
    assert set(SYM) <= by_group().keys()
    assert SYMBOLIC[: len(SYMBOLIC_SIMPLE)] == SYMBOLIC_SIMPLE
    assert SYMBOLIC_SIMPLE[0] == "propagate_invalid"


@pytest.mark.parametrize("op", [Op.Add, Op.Sub, Op.Mul, Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod, Op.Max, Op.Min])
def test_invalid_moves_out_of_arithmetic(op: Op) -> None:
    masked = p.where(x, INVALID)
    assert rw(UOp.new(op, (masked, y)), "propagate_invalid") is p.where(UOp.new(op, (x, y)), INVALID)
    assert rw(UOp.new(op, (y, masked)), "propagate_invalid") is p.where(UOp.new(op, (y, x)), INVALID)


@pytest.mark.parametrize("op", [Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne])
def test_comparisons_strip_invalid(op: Op) -> None:
    masked = p.where(x, INVALID)
    assert rw(UOp.new(op, (masked, y)), "propagate_invalid") is UOp.new(op, (x, y))
    assert rw(UOp.new(op, (y, masked)), "propagate_invalid") is UOp.new(op, (y, x))


@given(
    st.recursive(
        st.sampled_from([x, y, INVALID]), lambda inner: st.builds(UOp.where, st.sampled_from([p, q, s]), inner, inner)
    )
)
def test_choices_of_invalid_settle(choice: UOp) -> None:
    """Gates inside gates included: at last Invalid stands on the right alone."""
    settled = rw(choice, "propagate_invalid")
    for n in settled.toposort():
        assert n.op is not Op.Where or n.src[1] is not INVALID


def test_casts_strip_invalid() -> None:
    assert rw(p.where(x, INVALID).cast(dtypes.i32), "propagate_invalid") is x.cast(dtypes.i32)


UNARY = {
    Op.Neg: -4.0,
    Op.Sqrt: 2.0,
    Op.Exp2: 16.0,
    Op.Log2: 2.0,
    Op.Sin: -0.7568025,
    Op.Reciprocal: 0.25,
    Op.Trunc: 4.0,
}


@pytest.mark.parametrize("op", UNARY)
def test_constants_fold_under_unary_ops(op: Op) -> None:
    ones = {Op.Neg: -1.0, Op.Exp2: 2.0, Op.Log2: 0.0, Op.Sin: 0.84147096}
    assert rw(UOp.new(op, (f32(4.0),)), "constant_folding") is f32(UNARY[op])
    pair = vconst(dtypes.f32, (4.0, 1.0))
    assert rw(UOp.new(op, (pair,)), "vconst_folding") is vconst(dtypes.f32, (UNARY[op], ones.get(op, 1.0)))


BINARY = {
    Op.Add: (9, 12), Op.Mul: (14, 27), Op.Sub: (5, 6), Op.Mod: (1, 0), Op.Max: (7, 9), Op.Pow: (49, 729), Op.Idiv: (3, 3),
    Op.And: (2, 1), Op.Or: (7, 11), Op.Xor: (5, 10), Op.Shl: (28, 72), Op.Shr: (1, 1),
}  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
def test_constants_fold_under_binary_ops(op: Op) -> None:
    first, second = BINARY[op]
    assert rw(UOp.new(op, (c32(7), c32(2))), "constant_folding") is c32(first)
    assert rw(UOp.new(op, (c32(9), c32(3))), "constant_folding") is c32(second)
    if op is not Op.Pow:
        left, right = vconst(dtypes.i32, (7, 9)), vconst(dtypes.i32, (2, 3))
        assert rw(UOp.new(op, (left, right)), "vconst_folding") is vconst(dtypes.i32, (first, second))
        splat = UOp.const(7, dtypes.i32.vec(2))
        assert rw(UOp.new(op, (splat, right)), "vconst_folding").op in (Op.Const, Op.VConst), "a constant is broadcast"
        assert rw(UOp.new(op, (right, splat)), "vconst_folding").op in (Op.Const, Op.VConst)


def test_constants_fold_under_division_and_three_operands() -> None:
    assert rw(f32(7.0) / f32(2.0), "constant_folding") is f32(3.5)
    assert rw(UOp.new(Op.MulAcc, (f32(2.0), f32(3.0), f32(1.0))), "constant_folding") is f32(7.0)
    assert rw(TRUE.where(c32(1), c32(2)), "constant_folding") is c32(1)


@pytest.mark.parametrize("dtype", [dtypes.i8, dtypes.u8, dtypes.i64, dtypes.u64, dtypes.index], ids=str)
def test_neutral_and_absorbing_elements_at_every_dtype(dtype: DType) -> None:
    v = UOp.var("v", dtype)
    zero = UOp.const(0, dtype)
    for before in (v + 0, v * 1, v - 0, v // 1):
        assert rw(before, "identity_and_zero") is v
    for before in (v * 0, v % 1):
        assert rw(before, "identity_and_zero") is zero


def test_commutative_canonicalization() -> None:
    r1, r2 = R(8, 1), R(500, 2)
    assert rw(r1 * 8000 + r2 * 16) is rw(r2 * 16 + r1 * 8000)
    assert rw(i + j, "commutative_canonicalization") is i + j, "only constants move where lanes could be mixed up"
    assert rw(3 * i, "commutative_canonicalization") is i * 3


def test_symbolic_results() -> None:
    assert rw((tiny * 8 + y * 4) // 4) is rw(tiny * 2 + y)
    assert rw((constant(3) < constant(5)).where(f, g)) is f, "in one call"
    assert rw((f32(0.0) / f32(0.0)) + f) is rw(f32(math.nan) + f), "0/0 before x/x"
    assert rw(x * 3 + x * 4) is x * 7
    assert rw((x + 70) // 8) is (x + 6) // 8 + 8
    assert rw(y + x % 5 + (x // 5) * 5) is rw(x + y)
    assert rw(((x + 0) * 1) + (constant(3) + constant(4))) is x + 7
    assert rw((r * 3 + 2) % 5) is r * -2 + 2
    assert rw((R(8) % 4 + R(2, 1)) % 2) is rw((R(8) + R(2, 1)) % 2)
    assert rw((r * 8 + V("w", 0, 6)) % 7) is rw((r + V("w", 0, 6)) % 7)
    assert rw((x * 8 + y * 3) // 8) is x + (y * 3) // 8
    assert rw(-x < -y) is (y < x)
    assert rw((R(5) * 4 + 1) // 8) is R(5) // 2
    assert rw((a * 6 + b * 4) // 12) is (a * 3 + b * 2) // 6


def test_a_tiled_address_collapses() -> None:
    r2, r3, r4 = R(4, 2), R(4, 3), R(2, 4)
    flat = r3 * 8 + r4 * 4 + r2
    assert rw((flat // 8) * 8 + flat % 8) is rw(flat)
    assert rw(flat // 8) is r3
    assert rw(flat % 8) is rw(r4 * 4 + r2)
    assert rw((R(32, 9) // 8) * 8 + R(32, 9) % 8) is R(32, 9)


a, b = V("a", 0, 9), V("b", 0, 9)
EIGHT = [
    ("cancel_div", R(3) // 3, constant(0)),
    ("nested_mod", (R(8) % 4 + R(2, 1)) % 2, (R(8) + R(2, 1)) % 2),
    ("congruence_mod", (r * 8 + v) % 7, r + v),
    ("gcd_div", (a * 6 + b * 4) // 8, (a * 3 + b * 2) // 4),
    ("product_div", (a * 4) // (b * 2 + 2), None),
    ("product_div", (a * 4) // (b * 2), (a * 2) // b),
    ("remainder_div", (a * 8 + b * 3) // 8, a + (b * 3) // 8),
    ("nest_div", (a * 6 + b * 4) // 12, (a * 3 + b * 2) // 6),
]


@pytest.mark.parametrize(("rule", "before", "after"), EIGHT, ids=[f"{n}-{row[0]}" for n, row in enumerate(EIGHT)])
def test_the_eight_rules_one_by_one(rule: str, before: UOp, after: UOp | None) -> None:
    got = one(f"fold_divmod_general.{rule}", before)
    if after is None:
        assert got is None
    else:
        assert got is not None
        refines(before, got)
        assert rw(got, "constant_folding", "identity_and_zero") is after


def test_division_by_factors_goes_on() -> None:
    # each step divides by one factor; the rules before it end what is left
    before = (a * 6 + b * 4) // 12
    step = one("fold_divmod_general.nest_div", before)
    assert step is not None
    assert rw(before) is rw((a * 3 + b * 2) // 6)
    three, bit = V("three", 0, 3), V("bit", 0, 1)
    for second, after in ((b, (a * 4 + b) // 16), (three, a // 4)):
        deep = (a * 64 + second * 16 + V("c", 0, 3) * 4 + bit) // 256
        assert rw(deep) is rw(after)
        refines(deep, after, 500)


def test_binary_numerator() -> None:
    before = (r * 3 + 2) % 5
    got = one("fold_divmod_general.binary_mod", before)
    assert got is not None
    refines(before, got)
    assert rw(got, "constant_folding", "identity_and_zero") is r * -2 + 2


@pytest.mark.long
def test_late_forms_leave_products_at_index() -> None:
    tier = [g for g in SYMBOLIC if g != "gep_pushing"]
    assert rw(x * -1, "late_forms") is x * -1
    assert rw(-x + y, *tier, "late_forms") is x * -1 + y, "neg_index would undo a Neg"
    assert rw(i * -1, "late_forms") is -i
    assert rw(j + i * -1, "late_forms") is j - i
    assert rw(f * -1.0, "late_forms") is -f


def test_floor_division() -> None:
    z, w = V("z", -9, 9), V("w", -3, 3)
    refines(z.floordiv(w), rw(z.floordiv(w), "floor_division"))
    refines(z.floormod(w), rw(z.floormod(w), "floor_division"))
    assert rw(x.floordiv(4)) is x // 4, "no correction where nothing is negative"
    assert rw(x.floormod(4)) is x % 4
    low = UOp.var("low", dtypes.i8, -128, -128)
    assert rw(low.floordiv(3), "floor_division").dtype is dtypes.i8


def test_where_on_load() -> None:
    n = R(8)
    read = buffer.index(n)
    gated = rw((n < 5).where(read, f32(0.0)), "move_where_on_load")
    assert gated is buffer.index((n < 5).where(n, INVALID))
    inverted = rw((n < 5).where(f32(0.0), read), "move_where_on_load")
    assert inverted is buffer.index((~(n < 5)).where(n, INVALID))
    assert rw((n < 5).where(read, f32(-0.0)), "move_where_on_load") is (n < 5).where(read, f32(-0.0)), (
        "a gate reads +0.0"
    )


def test_a_clause_about_another_loop_stays_outside() -> None:
    n, other = R(8), R(8, 1)
    both = (n < 5) & (other < 3)
    got = rw(both.where(buffer.index(n), f32(0.0)), "move_where_on_load")
    assert got is (other < 3).where(buffer.index((n < 5).where(n, INVALID)), f32(0.0)), (
        "and the other one is not asked again"
    )
    again = both.where(buffer.index((n < 5).where(n, INVALID)), f32(0.0))
    assert rw(again, "boolean", "propagate_invalid", "move_where_on_load") is got
    alone = (other < 3).where(buffer.index(n), f32(0.0))
    assert rw(alone, "move_where_on_load") is alone


def test_invalid_survives_a_product_with_zero() -> None:
    assert rw(0 * p.where(x, INVALID)) is p.where(constant(0), INVALID)


vec = UOp.var("vec", dtypes.index.vec(4))
fvec = UOp.var("fvec", dtypes.f32.vec(4))
place = lambda n: buffer.index(constant(n))  # noqa: E731
LANES = [
    (UOp.vectorize(f, f, f, f).gep(2), f),
    (UOp.vectorize(f, g).gep(1), g),
    (UOp.vectorize(f, g, f, g).gep(1, 2), UOp.vectorize(g, f)),
    (fvec.gep(3, 1).gep(1), fvec.gep(1)),
    (fvec.gep(0, 1, 2, 3), fvec),
    (f.gep(0), f),
    (vconst(dtypes.i32, (5, 6, 7)).gep(1), c32(6)),
    ((vec + vec).gep(1), vec.gep(1) + vec.gep(1)),
    ((fvec + fvec).gep(1), (fvec + fvec).gep(1)),
    (vec.cast(dtypes.i32).gep(1), vec.gep(1).cast(dtypes.i32)),
    (UOp.new(Op.Cat, (fvec, UOp.var("other", dtypes.f32.vec(4)))).gep(5), UOp.var("other", dtypes.f32.vec(4)).gep(1)),
    (UOp.vectorize(fvec.gep(2), fvec.gep(0)), fvec.gep(2, 0)),
    (UOp.vectorize(*[fvec.gep(n) for n in range(4)]), fvec),
    (UOp.vectorize(f, f, f, f).gep(1), f),
    ((-vec).gep(1), -vec.gep(1)),
    (p.where(vec, vec + vec).gep(1), p.where(vec.gep(1), vec.gep(1) + vec.gep(1))),
    (
        (vec < vec + vec).where(vec, vec + vec).gep(1),
        (vec.gep(1) < vec.gep(1) + vec.gep(1)).where(vec.gep(1), vec.gep(1) + vec.gep(1)),
    ),
    (UOp.new(Op.MulAcc, (vec, vec, vec)).gep(2), UOp.new(Op.MulAcc, (vec.gep(2),) * 3)),
    (UOp.new(Op.PtrCat, (place(0), place(1), place(2))).gep(1, 2), UOp.new(Op.PtrCat, (place(1), place(2)))),
    (UOp.new(Op.PtrCat, (place(0),)), place(0)),
    (UOp.new(Op.Gep, (UOp.new(Op.Noop),), (0, 1)), UOp.new(Op.Noop)),
]


@pytest.mark.parametrize(("before", "after"), LANES, ids=[str(n) for n in range(len(LANES))])
def test_lanes(before: UOp, after: UOp) -> None:
    assert rw(before, "gep_pushing", "recollect", "gep_through_index") is after
