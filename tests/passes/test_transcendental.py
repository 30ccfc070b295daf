"""What the rules for transcendental functions become: instructions that every machine has, the same meaning everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import config
from morok.codegen.cuda import render as render_cuda
from morok.codegen.machines import CUDA, TRANSCENDENTAL, host
from morok.ir import interpret
from morok.ir.dtype import DType, dtypes
from morok.ir.op import TABLE, Op
from morok.ir.ops.transcendental import TOLERANCE
from morok.ir.uop import UOp
from morok.passes.pipeline import lower
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.device import device
from tests.passes import kernels as K

Array = np.ndarray[Any, Any]
OPS = sorted(TRANSCENDENTAL, key=lambda op: op.name)
FLOATS = (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64)
EDGES = [0.0, -0.0, 1.0, 0.5, -3.25, 20.0, 100.0, -1e9, 3e38, 1e-45, float("inf"), float("-inf"), float("nan")]


def kernel(op: Op, n: int, d: Any) -> UOp:
    r = K.loop(n, 0)
    operands = tuple(K.buffer(i + 1, n, d).index(r) for i in range(len(TABLE.entries[op].operands)))
    return K.kernel(K.buffer(0, n, d).index(r).store(UOp.new(op, operands)).end(r), name=f"k_{op.name.lower()}")


def computed(op: Op, x: Array) -> Array:
    """The op over `x`, by machine code."""
    d = next(d for d, kind in NUMPY.items() if kind == x.dtype)
    cpu = device("CPU")
    out = np.zeros_like(x)
    kernel_ = cpu.compile(lower(kernel(op, len(x), d), cpu.target), f"k_{op.name.lower()}")
    kernel_.launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)], {})
    return out


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_nothing_is_left_to_call(op: Op, d: DType) -> None:
    """No transcendental op, so no call of a library, at every float dtype; vectors stay vectors."""
    program = lower(kernel(op, 64, d), K.AVX2_WITHOUT)
    assert not {n.op for n in program} & TRANSCENDENTAL
    work = dtypes.f64 if d is dtypes.f64 else dtypes.f32
    lanes = {
        n.dtype.count for n in program if n.op in (Op.Mul, Op.MulAcc) and n.dtype.is_float and n.dtype.scalar() is work
    }
    assert 1 not in lanes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_interpreter_finds_the_same_bits(op: Op) -> None:
    """Machine code and interpreter agree to the bit, specials included, where products and sums are rounded one by one."""
    with config.settings(fast_math=""):
        target = K.Target("LLVM", vector_bytes=32, memory_bytes=32, fma=False, unsupported=TRANSCENDENTAL)
        x = np.array(EDGES, np.float32)
        held: dict[int, list[Any]] = {0: [9.0] * len(x), 1: x.tolist()}
        interpret.run_instructions(lower(kernel(op, len(x), dtypes.f32), target), held)
        out = computed(op, x)
    np.testing.assert_array_equal(np.array(held[0], np.float32), out)
    assert np.array_equal(np.signbit(out), np.signbit(np.array(held[0]))) or np.isnan(out).any()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_large_arguments_are_reduced_by_enough_digits_of_pi(kind: Any) -> None:
    """The operands next to multiples of pi/2 of all sizes that lose most digits, and the largest."""
    hard = {
        np.float32: [16367173 * 2.0**72, 3.4028234663852886e38],
        np.float64: [6381956970095103 * 2.0**797, 1.7976931348623157e308],
    }
    x = np.array([s * v for v in hard[kind] for s in (1.0, -1.0)], kind)
    d = dtypes.f32 if kind is np.float32 else dtypes.f64
    for op in (Op.Sin, Op.Cos):
        evaluate = TABLE.entries[op].evaluate
        assert evaluate is not None
        wanted = np.array([evaluate(d, float(v)) for v in x], kind)
        got = computed(op, x)
        assert (np.abs(got - wanted) <= np.spacing(np.abs(wanted))).all(), (op, got, wanted)
    assert np.abs(computed(Op.Cos, x)[0]) < 1e-8


def test_powers_follow_c() -> None:
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        1e30,
        -1e30,
        float("inf"),
        float("-inf"),
        float("nan"),
    ]
    x, y = (a.ravel().astype(np.float32) for a in np.meshgrid(values, values))
    out = np.zeros_like(x)
    cpu = device("CPU")
    program = lower(kernel(Op.Pow, len(x), dtypes.f32), cpu.target)
    assert Op.Pow not in {n.op for n in program}
    cpu.compile(program, "k_pow").launch([Buffer.wrap(cpu, a) for a in (out, x, y)], {})
    evaluate = TABLE.entries[Op.Pow].evaluate
    assert evaluate is not None
    wanted = np.array([evaluate(dtypes.f32, float(a), float(b)) for a, b in zip(x, y, strict=True)], np.float32)
    np.testing.assert_array_equal(out, wanted)
    told = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(out[told]), np.signbit(wanted[told]))


def test_a_gpu_calls_no_library_either() -> None:
    for op in OPS:
        text = render_cuda(lower(kernel(op, 256, dtypes.f32), CUDA), "measured").text
        body = text[text.rindex("__global__") :]
        assert not [f for f in ("exp", "log", "sin", "cos", "tan", "erf") if f in body], op


def test_a_machine_that_has_a_function_keeps_it() -> None:
    program = lower(kernel(Op.Sin, 16, dtypes.f32), K.AVX2)
    assert Op.Sin in {n.op for n in program}
    assert host().unsupported == TRANSCENDENTAL


@pytest.mark.sampled(9)
@pytest.mark.parametrize("d", [dtypes.f16, dtypes.f32, dtypes.f64], ids=str)
@pytest.mark.parametrize("op", sorted(TOLERANCE, key=lambda op: op.name), ids=lambda op: op.name)
def test_lanes_and_scalars_have_the_same_bits(op: Op, d: DType) -> None:
    """A rule that moves an op between vectors and scalars keeps its value: both run the same polynomial, rounded alike."""
    n = 4096
    count = len(TABLE.entries[op].operands)
    draw = np.random.default_rng(len(op.name))
    kind = NUMPY[d]
    operands = []
    for _ in range(count):
        bits = draw.integers(0, 1 << d.bits, n, dtype=np.uint64).astype(f"u{d.bits // 8}").view(kind)
        near = draw.uniform(-30, 30, n).astype(kind)
        x = np.where(draw.random(n) < 0.3, bits, near)
        with np.errstate(over="ignore"):
            x[: len(EDGES)] = draw.permutation(EDGES).astype(kind)
        operands.append(x)
    cpu = device("CPU")
    results = []
    for plain in (False, True):
        with config.settings(noopt=plain):
            program = lower(kernel(op, n, d), cpu.target)
            lanes = {u.dtype.count for u in program if u.op in (Op.Mul, Op.MulAcc, Op.Rsqrt) and u.dtype.is_float}
            assert (lanes == {1}) == plain
            out = np.zeros(n, kind)
            cpu.compile(program, f"k_{op.name.lower()}").launch([Buffer.wrap(cpu, a) for a in (out, *operands)], {})
        results.append(out)
    vector, scalar = results
    nan = np.isnan(vector)
    np.testing.assert_array_equal(nan, np.isnan(scalar))
    unsigned = f"u{d.bits // 8}"
    np.testing.assert_array_equal(vector.view(unsigned)[~nan], scalar.view(unsigned)[~nan])
