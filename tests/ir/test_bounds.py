"""Bounds hold for every value that a node can take: random operand bounds, random values inside them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morok.errors import UndefinedError
from morok.ir.bounds import LIMIT
from morok.ir.dtype import INTS, dtypes
from morok.ir.interpret import INVALID, evaluate
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp

D = dtypes
INTEGRAL = [D.bool, *INTS, D.index]
INDEX_OPS = [Op.Add, Op.Sub, Op.Mul, Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod, Op.Max, Op.Min, Op.Where, Op.Neg]
POINTWISE = [e.op for e in TABLE.entries.values() if e.pointwise]


def var(name: str, d: Any, rng: random.Random) -> UOp:
    """A variable with bounds of some kind: narrow, one value, at an end of the dtype, all of it, infinite at index."""
    if d.is_float:
        return UOp.var(name, d)
    low, high = (-1000, 1000) if d.is_index else (int(d.min), int(d.max))
    kind = rng.randrange(6)
    pick = lambda: rng.choice([rng.randint(low, high), max(low, min(high, rng.randint(-9, 9)))])  # noqa: E731
    a, b = sorted((pick(), pick()))
    if kind == 0:
        b = a
    elif kind == 1:
        b = min(high, a + rng.randint(0, 5))
    elif kind == 2:
        a = low
    elif kind == 3:
        b = high
    if d.is_index and rng.random() < 0.3:
        return UOp.var(name, d, *rng.choice([(-math.inf, b), (a, math.inf), (-math.inf, math.inf)]))
    return UOp.var(name, d, a, b)


def value(v: UOp, rng: random.Random) -> Any:
    d = v.dtype
    if d.is_float:
        return rng.choice([0.0, -0.0, math.nan, math.inf, rng.gauss(0, 50)])
    lo = -(10**6) if v.vmin == -math.inf else int(v.vmin)
    hi = 10**6 if v.vmax == math.inf else int(v.vmax)
    lo, hi = min(lo, hi), max(lo, hi)
    near = [x for x in (lo, hi, lo + 1, hi - 1, 0, 1, -1) if lo <= x <= hi]
    got = rng.choice([*near, rng.randint(lo, hi)])
    return bool(got) if d.is_bool else got


def holds(node: UOp, got: Any) -> None:
    for v in got if isinstance(got, tuple) else (got,):
        if v is not INVALID and not node.dtype.is_float:
            assert node.vmin <= v <= node.vmax, (node, v, node.vmin, node.vmax)


def operand_dtypes(op: Op) -> list[Any]:
    signature = TABLE[op].signature
    assert signature is not None
    return [d for d in signature.domains["T"] if not d.is_float or TABLE[op].comparison]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("op", [o for o in POINTWISE if o is not Op.Cast and operand_dtypes(o)], ids=lambda o: o.name)
def test_every_op_at_every_integer_dtype(op: Op) -> None:
    rng = random.Random(op.name)
    count = len(TABLE[op].signature.params)
    for d in operand_dtypes(op):
        for _ in range(24):
            names = [var(n, d, rng) for n in "abc"[:count]]
            if op is Op.Where:
                names[0] = rng.choice([UOp.var("p", D.bool), UOp.const(True), UOp.const(False)])
            if op is Op.Pow and d.is_index:
                continue
            if op in (Op.Shl, Op.Shr) or op is Op.Pow:
                names[1] = UOp.var("s", d, *sorted(rng.sample(range(d.bits + 3), 2)))
            node = UOp.new(op, tuple(names))
            assert node.dtype.is_float or node.vmin <= node.vmax
            same = UOp.new(op, (names[0], names[0])) if count == 2 else node
            for _ in range(10):
                given_ = {v: value(v, rng) for v in names if v.op is Op.DefineVar}
                for n in (node, same):
                    try:
                        holds(n, evaluate(n, given_))
                    except UndefinedError:
                        continue


@pytest.mark.long
def test_casts() -> None:
    rng = random.Random(1)
    for s in [*INTEGRAL, D.f16, D.f32, D.f64]:
        for d in INTEGRAL:
            for _ in range(12):
                x = var("x", s, rng)
                node = x.cast(d)
                assert node.vmin <= node.vmax
                for _ in range(6):
                    try:
                        holds(node, evaluate(node, {x: value(x, rng)}))
                    except UndefinedError:
                        continue


@st.composite
def expressions(draw: Any) -> tuple[UOp, list[UOp]]:
    """A random index expression over three variables."""
    leaves = []
    for n in "xyz":
        lo = draw(st.integers(-40, 40))
        leaves.append(UOp.var(n, D.index, lo, lo + draw(st.integers(0, 30))))
    pool = [*leaves, UOp.const(draw(st.integers(-9, 9))), UOp.const(draw(st.integers(1, 9)))]
    for _ in range(draw(st.integers(1, 8))):
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        op = draw(
            st.sampled_from(
                [Op.Add, Op.Sub, Op.Mul, Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod, Op.Max, Op.Min, Op.Where, Op.Neg]
            )
        )
        if op is Op.Where:
            made = (a < b).where(a, draw(st.sampled_from(pool)))
        else:
            made = UOp.new(op, (a,) if op is Op.Neg else (a, b))
        pool.append(made)
    return pool[-1], leaves


@given(expressions(), st.integers())
def test_nested_index_expressions(pair: tuple[UOp, list[UOp]], seed: int) -> None:
    node, leaves = pair
    rng = random.Random(seed)
    for _ in range(4):
        try:
            holds(node, evaluate(node, {v: value(v, rng) for v in leaves}))
        except UndefinedError:
            continue


def test_a_comparison_decided_by_bounds_is_so() -> None:
    assert (UOp.var("a", D.index, 0, 3) < UOp.var("b", D.index, 5, 9)).vmin == 1
    assert (UOp.var("a", D.index, 5, 9) < UOp.var("b", D.index, 0, 5)).vmax == 0
    x = UOp.var("x", D.f32)
    assert ((x < x).vmin, (x < x).vmax) == (0, 1)
    every = UOp.var("n", D.index)
    assert ((every < every).vmin, (every < every).vmax) == (0, 1)


def test_values_observed_in_the_reference() -> None:
    assert (lambda u: (u.vmin, u.vmax))(UOp.var("a", D.index, 0, 100) * 3 + UOp.var("b", D.index, 0, 10)) == (0, 310)
    x = UOp.var("x", D.index, -5, 5)
    assert ((x % 3).vmin, (x % 3).vmax) == (-2, 2)
    assert ((x // 3).vmin, (x // 3).vmax) == (-1, 1)


def test_infinity_never_becomes_finite() -> None:
    n = UOp.var("n", D.index, 0, math.inf)
    for node in (n + 1, n * 2, n // 3, n * n, UOp.new(Op.Max, (n, UOp.const(5)))):
        assert node.vmax == math.inf, node
        assert node.vmin >= 0
    assert ((n % 7).vmin, (n % 7).vmax) == (0, 6)
    assert ((n - n).vmin, (n - n).vmax) == (-math.inf, math.inf)
    assert ((n * 0).vmin, (n * 0).vmax) == (0, 0)
    assert UOp.new(Op.Neg, (n,)).vmin == -math.inf


def test_infinity_meets_numbers_that_no_float_holds() -> None:
    huge = UOp.var("huge", D.index, 10**400, 10**401)
    up = UOp.var("up", D.index, -3, math.inf)
    for total in (huge + up, up + huge):
        assert (total.vmin, total.vmax) == (LIMIT, math.inf)
    assert (huge * up).vmax == math.inf
    assert (huge + huge).vmax == math.inf
    assert ((0 - huge).vmin, (0 - huge).vmax) == (-math.inf, -LIMIT)


def test_bounds_of_long_chains_stay_short() -> None:
    n = UOp.var("n", D.index, 1, 1000)
    wide = n * (1 << 117)
    assert (wide.vmin, wide.vmax) == (1 << 117, 1000 << 117)
    for k in range(2000):
        n = n * UOp.var("b", D.index, 2, 9) + UOp.var("i", D.index, -1, k)
    assert -LIMIT <= n.vmin <= LIMIT
    assert n.vmax == math.inf
    product = UOp.var("a", D.index, -(1 << 64), 1 << 64) * UOp.var("b", D.index, -(1 << 64), 1 << 64)
    assert (product.vmin, product.vmax) == (-(1 << 128), 1 << 128)
    for beyond in (product + 1, product * 2, product * product, UOp.new(Op.MulAcc, (product, UOp.const(2), product))):
        assert beyond.vmax == math.inf


def test_wrapping_loses_the_bounds() -> None:
    x = UOp.var("x", D.i8, 100, 120)
    assert ((x + 20).vmin, (x + 20).vmax) == (-128, 127)
    assert ((x + 7).vmin, (x + 7).vmax) == (107, 127)


def test_ranges_reductions_and_lanes() -> None:
    r = UOp.range(8, 0)
    assert (r.vmin, r.vmax) == (0, 7)
    n = UOp.var("n", D.index, 0, 8)
    maybe_empty = UOp.range(n, 1)
    assert (maybe_empty.vmin, maybe_empty.vmax) == (0, 7)
    i8 = UOp.var("x", D.i8, 3, 5)
    assert (i8.reduce(Op.Max, r).vmin, i8.reduce(Op.Max, r).vmax) == (3, 5)
    # over no iterations Max gives the least value of the dtype
    assert (i8.reduce(Op.Max, maybe_empty).vmin, i8.reduce(Op.Max, maybe_empty).vmax) == (-128, 5)
    assert (i8.reduce(Op.Min, maybe_empty).vmin, i8.reduce(Op.Min, maybe_empty).vmax) == (3, 127)
    lanes = UOp.vectorize(UOp.var("a", D.index, 0, 3), UOp.var("b", D.index, 10, 12))
    assert (lanes.vmin, lanes.vmax) == (0, 12)
    assert (UOp.const((4, -2), D.i32).vmin, UOp.const((4, -2), D.i32).vmax) == (-2, 4)


def test_invalid_takes_no_part() -> None:
    c, x = UOp.var("c", D.bool), UOp.var("x", D.index, 2, 9)
    node = c.where(x, UOp.invalid_at())
    assert (node.vmin, node.vmax) == (2, 9)
    assert node.invalid
    assert not (node < 3).invalid
    assert (node + 1).invalid


def test_floats_have_no_bounds() -> None:
    x = UOp.var("x", D.f32)
    for node in (x, x + x, UOp.const(2.0), -x, UOp.new(Op.Floor, (x,)), UOp.const((1.0, 2.0), D.f32)):
        assert (node.vmin, node.vmax) == (-math.inf, math.inf)
