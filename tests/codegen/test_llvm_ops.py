"""Every op at every dtype, scalar and vector, in machine code: what `OpDef.evaluate` says, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from op_programs import INEXACT, POINTWISE, Program, cast_program, evaluate, op_program
from values import bits, decode, edges

from morok import config
from morok.ir.dtype import FLOAT_FORMAT, FLOATS, INTS, STORAGE_FLOATS, DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device


def run(program: Program, name: str) -> list[np.ndarray]:
    cpu = device("CPU")
    with config.settings(fast_math=""):
        kernel = cpu.compile(program.listing.list, name)
    types = [
        u.dtype.base for u in sorted((a for a in program.listing.list if a.op is Op.DefineGlobal), key=lambda u: u.arg)
    ]
    kernel.launch([Buffer.wrap(cpu, a, t) for a, t in zip(program.arrays, types, strict=True)])
    return program.arrays


def close(d: DType, got: Any, want: Any) -> bool:
    """Within two units in the last place, for functions that the C library and Python each round in their own way."""
    if bits(d, got) == bits(d, want):
        return True
    if not math.isfinite(got) or not math.isfinite(want):
        return False
    precision, least, _ = FLOAT_FORMAT[d]
    unit = math.ldexp(1.0, max(math.frexp(want)[1] - precision, least))
    return abs(got - want) <= 2 * unit


def check(program: Program, name: str, exact: bool) -> None:
    arrays = run(program, name)
    for case in program.cases:
        got = decode(case.result, arrays[case.slot])
        for i, (g, w) in enumerate(zip(got, case.expected, strict=True)):
            if w is None:
                continue
            same = bits(case.result, g) == bits(case.result, w) if exact else close(case.result, g, w)
            assert same, f"{case.label}, row {i}: {g!r} where {w!r} is right"


@pytest.mark.sampled(24)
@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_op_computes_what_the_table_says(op: Op) -> None:
    check(op_program(op), f"test_{op.name}", exact=op not in INEXACT)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("source", [dtypes.bool, *INTS, *FLOATS, *STORAGE_FLOATS], ids=lambda d: d.name)
def test_cast_rounds_once_and_wraps(source: DType) -> None:
    check(cast_program(source), f"cast_{source.name}", exact=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", [Op.Max, Op.Min], ids=lambda op: op.name)
@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.name)
def test_extremes_with_a_constant(op: Op, d: DType) -> None:
    """One comparison where the constant allows it: zeros of both signs, NaN and infinity among them."""
    program = Program()
    values = edges(d)
    values += values[: -len(values) % 3]
    operand = program.input(d, values)
    for k in (0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan):
        expected = [evaluate(op, d, (v, k)) for v in values]
        for lanes in (1, 3):
            program.loop(
                f"{op.name} {k}",
                d,
                lambda x, k=k: UOp.new(op, (x, x.like(k))),
                [(operand, d)],
                len(values),
                lanes,
                expected,
            )
    check(program, f"extreme_{op.name}_{d.name}", exact=True)
