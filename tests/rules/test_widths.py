"""The symbolic tier at fixed widths, at bool and at floats: wrapping, truncation, NaN and signed zeros stay what they are."""

from __future__ import annotations

import random

import pytest
from rulesets import rw

from morok.errors import UndefinedError
from morok.ir import number
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.interpret import evaluate
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp
from morok.prove.trust.graphs import FLOATS, environment

INTEGER = (
    Op.Add,
    Op.Sub,
    Op.Mul,
    Op.Idiv,
    Op.Mod,
    Op.FloorDiv,
    Op.FloorMod,
    Op.Max,
    Op.Min,
    Op.And,
    Op.Or,
    Op.Xor,
    Op.Shl,
    Op.Shr,
)
FLOAT = (Op.Add, Op.Sub, Op.Mul, Op.Fdiv, Op.Max, Op.Min)
COMPARE = (Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne)
NAMES = ("i8", "u8", "i16", "i32", "u32", "i64", "u64", "index", "f16", "f32", "f64", "bool")


def leaf(rng: random.Random, d: DType) -> UOp:
    if rng.random() < 0.3:
        if d.is_bool:
            return UOp.const(rng.random() < 0.5, d)
        if d.is_float:
            return UOp.const(rng.choice(FLOATS), d)
        edge = (int(d.min), int(d.max)) if d.is_int else (100, -100)
        return UOp.const(rng.choice((0, 1, -1, 2, 3, 4, 7, *edge)), d)
    name = f"{d.name}_{rng.randrange(3)}"
    if d.is_integral and rng.random() < 0.5:
        low = rng.choice((0, 0, 1, -3 if d.min < 0 else 0))
        return UOp.var(f"{name}_{low}", d, low, low + rng.choice((1, 5, 12)))
    if d.is_index:
        return UOp.var(name, d, -50, 50)
    return UOp.var(name, d)


def grown(rng: random.Random, d: DType, depth: int) -> UOp:
    if depth == 0 or rng.random() < 0.1:
        return leaf(rng, d)
    kind = rng.random()
    if kind < 0.12:
        return grown(rng, dtypes.bool, depth - 1).where(grown(rng, d, depth - 1), grown(rng, d, depth - 1))
    if kind < 0.2 and not d.is_index:
        return grown(rng, rng.choice((dtypes.i8, dtypes.u16, dtypes.i32, dtypes.bool, d)), depth - 1).cast(d)
    a = grown(rng, d, depth - 1)
    if d.is_bool:
        if kind < 0.5:
            other = BY_NAME[rng.choice(("i8", "u8", "i32", "index", "f32"))]
            return UOp.new(rng.choice(COMPARE), (grown(rng, other, depth - 1), grown(rng, other, depth - 1)))
        if kind < 0.65:
            return ~a
        return UOp.new(rng.choice((Op.And, Op.Or, Op.Xor, Op.Eq, Op.Ne)), (a, grown(rng, d, depth - 1)))
    if kind < 0.27:
        return UOp.new(Op.Neg, (a,))
    b = a if rng.random() < 0.1 else grown(rng, d, depth - 1)
    ops = FLOAT if d.is_float else [o for o in INTEGER if d in TABLE[o].signature.domains["T"]]  # type: ignore[union-attr]
    return UOp.new(rng.choice(ops), (a, b))


def test_a_remainder_of_a_constant_that_has_none() -> None:
    """Mod(3, 0) cannot be folded, and is no constant to those who order a product."""
    x = UOp.var("x", dtypes.index, 0, 9)
    three, zero = UOp.const(3, dtypes.index), UOp.const(0, dtypes.index)
    after = rw((x * (three % zero)) * -1)
    assert rw(after) is after


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tenth", range(10))
def test_the_value_stays(name: str, tenth: int) -> None:
    d = BY_NAME[name]
    for seed in range(15 * tenth, 15 * tenth + 15):
        rng = random.Random(seed * 1000 + len(name))
        before = grown(rng, d, 4)
        after = rw(before)
        assert rw(after) is after
        for _ in range(8):
            env = environment(before, rng)
            try:
                expected = evaluate(before, env)
            except UndefinedError:
                continue
            got = evaluate(after, env)
            assert number.same_value(d, expected, got), (
                f"{before.text()} is {expected}, {after.text()} is {got} at {env}"
            )
