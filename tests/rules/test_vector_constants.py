"""Operations on constant vectors: constants with the values that the interpreter gives; what has no value stays."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from rulesets import rw

from morok import settings, simplify
from morok.dsl import parse
from morok.errors import MorokError
from morok.ir import bitcasts
from morok.ir.dtype import DType, dtypes
from morok.ir.interpret import evaluate
from morok.ir.morok_dialect import MOROK
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp, vconst
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.library import rules_dir

DTYPES = (dtypes.i8, dtypes.u16, dtypes.i32, dtypes.u64, dtypes.f16, dtypes.f32, dtypes.f64)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3e4, 65504.0, math.inf, -math.inf, math.nan)
externs = {e.name: e for e in parse.parse_file(rules_dir() / "algebra" / "fold.rules").externs}
CONSTANTS = (Op.Const, Op.VConst)


def lane(rng: random.Random, d: DType) -> Any:
    if d.is_bool:
        return rng.random() < 0.5
    if d.is_float:
        return rng.choice(SPECIAL) if rng.random() < 0.6 else rng.uniform(-9, 9)
    return rng.choice((0, 1, 2, 3, 7, int(d.min), int(d.max), rng.randint(int(d.min), int(d.max))))


def vector(rng: random.Random, d: DType, count: int) -> UOp:
    """Lanes that differ, mostly; the same one in each makes a Const."""
    one = lane(rng, d)
    return vconst(d, [one if rng.random() < 0.2 else lane(rng, d) for _ in range(count)])


def values(node: UOp) -> tuple[Any, ...] | None:
    try:
        found = evaluate(node)
    except MorokError:
        return None
    lanes = found if isinstance(found, (tuple, list)) else (found,)
    return tuple("nan" if v != v else (v, math.copysign(1, v)) if isinstance(v, float) else v for v in lanes)


def folds(node: UOp) -> bool:
    """Whether it becomes a constant; which has its value then, and before that had one. Helpers keep their contracts."""
    with settings(check=True):
        after = rw(node, "constant_folding", "vconst_folding", "bitcast_folding", "cast")
    wanted = values(node)
    if after.op in CONSTANTS:
        assert after.dtype is node.dtype
        assert values(after) == wanted, f"{node.text()}: {wanted}, not {after.text()}"
        return True
    return False


@pytest.mark.long
def test_casts() -> None:
    rng = random.Random(0)
    for source in (dtypes.bool, *DTYPES):
        for target in (dtypes.bool, *DTYPES):
            for count in (2, 4):
                x = vector(rng, source, count)
                assert folds(x.cast(target.vec(count))) == (values(x.cast(target.vec(count))) is not None)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "op", [op for op, e in TABLE.entries.items() if e.pointwise and op not in (Op.Cast, Op.Where)], ids=str
)
def test_pointwise_operations(op: Op) -> None:
    rng = random.Random(op.name)
    folded = tried = 0
    for d in (dtypes.bool, *DTYPES):
        for _ in range(8):
            operands = [vector(rng, d, 3) for _ in TABLE.entries[op].operands]
            try:
                node = UOp.new(op, tuple(operands))
            except MorokError:
                continue
            tried += 1
            folded += folds(node)
            assert node.op in CONSTANTS or folds(node) == (values(node) is not None), node.text()
    assert folded or not tried


def test_choices() -> None:
    rng = random.Random(1)
    for d in (dtypes.bool, dtypes.index, *DTYPES):
        for _ in range(8):
            lanes = vector(rng, dtypes.i32 if d is dtypes.index else d, 4)
            one, other = (
                (vconst(d, lanes.arg), vconst(d, (1, 2, 3, 4))) if lanes.op is Op.VConst else (vconst(d, (0, 1)),) * 2
            )
            condition = vector(rng, dtypes.bool, one.dtype.count)
            node = UOp.new(Op.Where, (condition, one, other))
            assert node.op in CONSTANTS or condition.op is Op.Const or folds(node)


def test_bits() -> None:
    rng = random.Random(2)
    for source in DTYPES:
        for target in DTYPES:
            if source.bits != target.bits or (source.is_float and target.is_float):
                continue
            for count in (1, 2, 4):
                x = vector(rng, source, count)
                node = x.bitcast(target.vec(count))
                found = values(node)
                assert found is not None
                check_call(externs["reread"], MOROK, (node, x), bitcasts.reread(node, x))
                assert node.op in CONSTANTS or folds(node) == ("nan" not in (*found, *(values(x) or ())))
    for kept in (
        UOp.const(math.nan, dtypes.f32).bitcast(dtypes.i32),
        vconst(dtypes.i32, (0x7FC00000, 1)).bitcast(dtypes.f32.vec(2)),
        vconst(dtypes.i32, (1, 2)).bitcast(dtypes.i64),
    ):
        assert rw(kept) is kept


def test_contracts_are_asserted_of_sums_of_vectors() -> None:
    """A rule for whole chains is shown a sum that is no node yet."""
    x, y = (UOp.var(name, dtypes.index.vec(4), 0, 9) for name in "xy")
    numbers = vconst(dtypes.index, (1, 2, 3, 4))
    with settings(check=True):
        assert simplify((x * 3 + y) + (x * 2 + y) + numbers) is simplify(x * 5 + y * 2 + numbers)
        assert simplify(x + (y + x)) is simplify(x * 2 + y)
