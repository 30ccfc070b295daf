"""How exact the polynomials are: compiled, run on many operands, compared with a wider computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok.ir import interpret
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.pipeline import lower
from morok.runtime.buffer import Buffer
from morok.runtime.device import device
from tests.passes import kernels as K

Array = np.ndarray[Any, Any]

# op: the exact function, the ulp promised, whether operands are spread over all positive floats (else around 0)
CASES: dict[Op, tuple[Callable[[Array], Array], float, bool]] = {
    Op.Exp2: (np.exp2, 1.0, False),
    Op.Exp: (np.exp, 1.0, False),
    Op.Tanh: (np.tanh, 3.5, False),
    Op.Log: (np.log, 2.0, True),
    Op.Log2: (np.log2, 2.0, True),
}


def kernel(op: Op, n: int, d: Any) -> UOp:
    r = K.loop(n, 0)
    return K.kernel(K.buffer(0, n, d).index(r).store(UOp.new(op, (K.buffer(1, n, d).index(r),))).end(r), name=op.name.lower())


def operands(kind: Any, everywhere: bool) -> Array:
    draw = np.random.default_rng(0)
    top = 130.0 if kind is np.float32 else 1030.0
    least = np.finfo(kind).smallest_subnormal
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, top, -1.2 * top, least, 1000 * least]
    parts = [np.array(special, kind), draw.uniform(0.5, 2.0, 20000)]
    if everywhere:
        bits, word = (np.uint32, 2**31) if kind is np.float32 else (np.uint64, 2**63)
        parts.append(draw.integers(0, word, 60000, dtype=bits).view(kind))
    else:
        parts += [draw.uniform(-1.2 * top, 1.1 * top, 40000), draw.uniform(-1, 1, 20000), draw.uniform(-1e-3, 1e-3, 20000)]
    return np.concatenate([p.astype(kind) for p in parts])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("op", CASES)
def test_accuracy(op: Op, kind: Any) -> None:
    exact, promised, everywhere = CASES[op]
    x = operands(kind, everywhere)
    d = dtypes.f32 if kind is np.float32 else dtypes.f64
    cpu = device("CPU")
    instructions = lower(kernel(op, len(x), d), cpu.target)
    assert op not in {n.op for n in instructions}
    out = np.zeros_like(x)
    cpu.compile(instructions, op.name.lower()).launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)], {})
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.longdouble))
        rounded = wanted.astype(kind)
        finite = np.isfinite(rounded)
        error = np.abs(out[finite].astype(np.longdouble) - wanted[finite]) / np.spacing(np.abs(rounded[finite])).astype(
            np.longdouble
        )
    assert error.max() <= promised, x[finite][error.argmax()]
    assert np.array_equal(out[~finite], rounded[~finite], equal_nan=True)


@pytest.mark.parametrize("op", CASES)
def test_interpreted(op: Op) -> None:
    """The instructions mean the same to the interpreter, specials included."""
    values = [0.0, -0.0, 1.0, 0.5, -3.25, 20.0, float("inf"), float("-inf"), float("nan")]
    target = K.Target("LLVM", vector_bytes=32, memory_bytes=32, unsupported=frozenset(CASES))
    held: dict[int, list[Any]] = {0: [9.0] * len(values), 1: values}
    interpret.run_instructions(lower(kernel(op, len(values), dtypes.f32), target), held)
    with np.errstate(all="ignore"):
        wanted = CASES[op][0](np.array(values))
    np.testing.assert_allclose(held[0], wanted, rtol=1e-6)


def test_half_precision_computes_in_f32() -> None:
    target = K.Target("LLVM", unsupported=frozenset(CASES))
    program = lower(kernel(Op.Exp, 4, dtypes.f16), target)
    assert {n.dtype for n in program if n.op is Op.Mul and n.dtype.is_float} == {dtypes.f32}
