"""Floats that no integer of the dtype is: what Tensor.cast makes of them, the same in every backend.

The op Cast has no value there (the renderers saturate, and make 0 of NaN); the cast of a Tensor is total. It goes through the
least of i32 and i64 that holds the dtype, whose least value stands for whatever does not fit, and keeps the low bits: what
NumPy's conversion of one element gives on x86. (For u32 NumPy's own vector code gives other values than that below -2^31.)
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from cuda_runner import Program, build, launch
from instruction_lists import Listing

from morok import Tensor
from morok.codegen.cuda import render as render_cuda
from morok.codegen.rendered import Rendered
from morok.ir import interpret
from morok.ir.dtype import INTS, DType, dtypes
from morok.ir.number import wrap
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.device import device

POWERS = [s * 2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64, 90) for s in (1, -1)]
VALUES = [0.0, -0.0, 0.5, -0.5, -1.0, 3.7, -3.7, math.inf, -math.inf, math.nan]
VALUES += [v + e for v in POWERS for e in (0.0, 0.5, -0.5, 1.0, -1.0)] + [v * f for v in POWERS for f in (0.75, 1.25)]
FLOATS = (np.float16, np.float32, np.float64)


def inputs(f: type) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(VALUES).astype(f)


def expected(d: DType, v: float) -> int:
    wide = 64 if d in (dtypes.i64, dtypes.u32, dtypes.u64) else 32
    if d is dtypes.u64 and v >= 2.0**63:
        return int(v) if v < 2.0**64 else 0
    inside = math.isfinite(v) and -(2 ** (wide - 1)) <= math.trunc(v) < 2 ** (wide - 1)
    return wrap(d, math.trunc(v) if inside else -(2 ** (wide - 1)))


@pytest.mark.parametrize("d", INTS, ids=lambda d: d.name)
@pytest.mark.parametrize("f", FLOATS, ids=lambda f: f.__name__)
def test_tensors(f: type, d: DType) -> None:
    x = inputs(f)
    wanted = [expected(d, float(v)) for v in x]
    t = Tensor(x).cast(d)
    found, shape = interpret.tensor(t.uop, {b: x.tolist() for b in t.uop.toposort() if b.op.name == "Buffer"})
    assert (found, shape) == (wanted, x.shape), "interpreter"
    assert t.numpy().tolist() == wanted, "machine code"


@pytest.mark.long
def test_tensors_on_cuda(tmp_path: Path) -> None:
    programs = [
        (Program.of(f"{f.__name__}_{d.name}", Tensor(inputs(f)).cast(d)), inputs(f), d) for f in FLOATS for d in INTS
    ]
    library = build([text for p, *_ in programs for text in p.texts], tmp_path, "-O1")
    for p, x, d in programs:
        (got,) = p.run(library)
        assert got.tolist() == [expected(d, float(v)) for v in x], p.texts[0].name


@pytest.mark.long
def test_the_op_saturates_in_both_renderers(tmp_path: Path) -> None:
    """Where the op has no value; an agreement of the two, so that a program that asks for none behaves the same on both."""
    texts: list[tuple[Rendered, DType, np.ndarray]] = []
    cpu = device("CPU")
    for d in INTS:
        x = inputs(np.float64)
        b = Listing()
        out, source = b.buffer(0, d, len(x)), b.buffer(1, dtypes.f64, len(x))
        r = b.range(len(x))
        b.store(out, r, b.add(b.load(source, r).cast(d)))
        b.end(r)
        got = np.zeros(len(x), NUMPY[d])
        cpu.compile(b.list, f"cast_{d.name}").launch([Buffer.wrap(cpu, a) for a in (got, x)])
        low, high = int(d.min), int(d.max)
        saturated = [0 if v != v else low if v <= low else high if v >= high else math.trunc(v) for v in x.tolist()]
        assert got.tolist() == saturated, d.name
        texts.append((render_cuda(b.list, f"cast_{d.name}"), d, got))
    library = build([t for t, _, _ in texts], tmp_path, "-O1")
    for text, d, wanted in texts:
        found = np.zeros(len(wanted), NUMPY[d])
        launch(library, text, [found, inputs(np.float64)])
        assert found.tolist() == wanted.tolist(), d.name
