"""Random rule firings keep values: an expression and what the built-in rules make of it, executed by the interpreter."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import morok
from morok.errors import UndefinedError
from morok.ir.dtype import DType, dtypes
from morok.ir.interpret import evaluate
from morok.ir.number import coerce, same_value
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.library import symbolic
from morok.rewrite.trace import Trace

_INTEGER = [Op.Add, Op.Sub, Op.Mul, Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod, Op.Max, Op.Min, Op.Neg]
_BITS = [*_INTEGER, Op.And, Op.Or, Op.Xor, Op.Shl, Op.Shr, Op.Not, Op.Abs]
_FLOAT = [Op.Add, Op.Sub, Op.Mul, Op.Fdiv, Op.Max, Op.Min, Op.Neg, Op.Sqrt, Op.Floor]
OPS = {
    dtypes.index: _INTEGER,
    dtypes.i8: _BITS,
    dtypes.u8: _BITS,
    dtypes.i32: _BITS,
    dtypes.f16: _FLOAT,
    dtypes.f32: _FLOAT,
    dtypes.bool: [Op.And, Op.Or, Op.Xor, Op.Not],
}
COMPARISONS = [Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne]


class Maker:
    """Random expressions, weighted towards what rules look for: constants, small bounds, equal operands."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def leaf(self, d: DType) -> UOp:
        rng = self.rng
        if rng.random() < 0.4:
            if d.is_bool:
                return UOp.const(rng.random() < 0.5)
            if d.is_float:
                return UOp.const(rng.choice([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, math.nan]), d)
            return UOp.const(rng.choice([0, 1, -1, 2, 3, 4, 7, 8, -3, 127, -128]), d)
        name = rng.choice("xyz") + d.name
        if d.is_index:
            low = rng.choice([0, 0, -5])
            return UOp.var(f"{name}{'n' if low else ''}", d, low, 7)
        if d.is_int and rng.random() < 0.5:
            return UOp.var(f"{name}s", d, 0, 9)
        return UOp.var(name, d)

    def node(self, d: DType, depth: int) -> UOp:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return self.leaf(d)
        kind = rng.random()
        if kind < 0.12:
            return self.node(dtypes.bool, depth - 1).where(self.node(d, depth - 1), self.node(d, depth - 1))
        if d.is_bool and kind < 0.7:
            other = rng.choice([dtypes.index, dtypes.i8, dtypes.u8, dtypes.f32])
            return UOp.new(rng.choice(COMPARISONS), (self.node(other, depth - 1), self.node(other, depth - 1)))
        if kind < 0.18 and not d.is_bool:
            return self.node(rng.choice([dtypes.i8, dtypes.u8, dtypes.bool, dtypes.index, dtypes.f32]), depth - 1).cast(
                d
            )
        op = rng.choice(OPS[d])
        a = self.node(d, depth - 1)
        if len(TABLE[op].operands) == 1:
            return UOp.new(op, (a,))
        b = a if rng.random() < 0.1 else self.leaf(d) if rng.random() < 0.5 else self.node(d, depth - 1)
        return UOp.new(op, (a, b))

    def value(self, v: UOp) -> Any:
        rng = self.rng
        if v.dtype.is_bool:
            return rng.random() < 0.5
        if v.dtype.is_float:
            return coerce(v.dtype, rng.choice([0.0, -0.0, 1.0, -2.0, 0.5, math.inf, -math.inf, math.nan, 1e30, -7.25]))
        low, high = int(v.vmin), int(v.vmax)
        return rng.choice([low, high, rng.randint(low, high), max(low, 0), max(low, min(high, 1))])


def compare(before: UOp, after: UOp, maker: Maker) -> None:
    variables = [n for n in before.toposort() if n.op is Op.DefineVar]
    for _ in range(6):
        at = {v: maker.value(v) for v in variables}
        try:
            expected = evaluate(before, at)
        except UndefinedError:
            continue  # anything may come of it
        assert same_value(before.dtype, expected, evaluate(after, at)), f"{before.text()} at {at}"


@pytest.mark.long
@settings(max_examples=400)
@given(st.integers(0, 2**40), st.sampled_from([dtypes.index, dtypes.index, *OPS]), st.integers(1, 5))
def test_values_are_kept(seed, d, depth):
    maker = Maker(seed)
    before = maker.node(d, depth)
    after = morok.simplify(before)
    assert after.dtype is before.dtype
    compare(before, after, maker)
    assert graph_rewrite(after, symbolic(), trace=Trace()) is after


@pytest.mark.long
@settings(max_examples=60)
@given(st.integers(0, 2**40), st.integers(2, 5))
def test_helpers_keep_their_contracts(seed, depth):
    maker = Maker(seed)
    before = maker.node(dtypes.index, depth)
    with morok.config.settings(check=True):
        after = morok.simplify(before)
    compare(before, after, maker)
    assert after is morok.simplify(before)
