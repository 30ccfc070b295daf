"""Sums of -0.0 at every float dtype: interpreter, machine code and CUDA start at one identity, which rules are proved for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from cuda_runner import build, launch
from values import decode, encode

from morok import Tensor
from morok.codegen.cuda import render as render_cuda
from morok.codegen.machines import CUDA, host
from morok.codegen.rendered import Rendered
from morok.ir.dtype import FLOATS, DType, dtypes
from morok.ir.interpret import evaluate, run
from morok.ir.op import AxisType, Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.passes.pipeline import lower
from morok.passes.target import KernelInfo
from morok.rewrite.library import groups
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

N = UOp.var("n", dtypes.index, 0, 8)
LENGTHS: tuple[tuple[UOp | int, int], ...] = ((1, 1), (2, 2), (7, 7), (N, 0), (N, 1), (N, 3))


def kernel(d: DType, length: UOp | int) -> UOp:
    """out[0] = the sum of the first `length` elements of a buffer of 8."""
    out, x = (UOp.new(Op.DefineGlobal, (), slot, d.ptr(n)) for slot, n in enumerate((1, 8)))
    total = x.index(UOp.range(length, 0, AxisType.Reduce)).reduce(Op.Add, UOp.range(length, 0, AxisType.Reduce))
    return UOp.sink(
        out.index(0).store(total), info=KernelInfo(f"sum_{d.name}_{length if isinstance(length, int) else 'n'}")
    )


def arrays(d: DType) -> list[np.ndarray]:
    return [encode(d, [1.0]), encode(d, [-0.0] * 8)]


def is_minus_zero(v: float) -> bool:
    return v == 0 and math.copysign(1.0, v) < 0


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.name)
def test_the_identity_changes_nothing(d: DType) -> None:
    neutral = UOp.const(identity(Op.Add, d), d)
    for v in (-0.0, 0.0, 1.0, -math.inf):
        assert evaluate(UOp.const(v, d) + neutral) == v
        assert math.copysign(1.0, evaluate(UOp.const(v, d) + neutral)) == math.copysign(1.0, v)


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.name)
def test_interpreter_and_rules(d: DType) -> None:
    dead = groups("dead_loop")
    x = UOp.const(-0.0, d)
    for n in (0, 1, 2):
        total = x.reduce(Op.Add, UOp.range(n, 0, AxisType.Reduce))
        assert is_minus_zero(evaluate(total)), n
        hit = dead.rewrite_node(total)
        assert (hit is None) == (n == 2)
        assert hit is None or is_minus_zero(evaluate(hit[0])), n
    hit = dead.rewrite_node(UOp.new(Op.Reduce, (x,), Op.Add))
    assert hit is not None
    assert hit[0] is x


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.name)
def test_machine_code(d: DType) -> None:
    cpu = device("CPU")
    for length, n in LENGTHS:
        ast = kernel(d, length)
        memory = {0: [1.0], 1: [-0.0] * 8}
        run(ast, memory, {"n": n})
        assert is_minus_zero(memory[0][0]), f"interpreter, {n} of {length}"
        held = arrays(d)
        cpu.compile(lower(ast, host()), "sum").launch(
            [Buffer.wrap(cpu, a) for a in held], {"n": n} if length is N else {}
        )
        (got,) = decode(d, held[0])
        assert is_minus_zero(got), f"{n} of {length}"


@pytest.mark.long
def test_cuda(tmp_path: Path) -> None:
    texts: dict[tuple[DType, UOp | int], Rendered] = {}
    for d in FLOATS:
        for length in {length for length, _ in LENGTHS}:
            ast = kernel(d, length)
            texts[d, length] = render_cuda(lower(ast, CUDA), ast.arg.name)
    library = build(list(texts.values()), tmp_path, "-O1")
    for (d, length), text in texts.items():
        for n in [n for of, n in LENGTHS if of is length]:
            held = arrays(d)
            launch(library, text, held, {"n": n} if length is N else {})
            (got,) = decode(d, held[0])
            assert is_minus_zero(got), f"{d.name}: {n} of {length}"


def test_an_empty_sum_of_a_tensor_is_what_numpy_makes_it() -> None:
    for d in (np.float16, np.float32, np.float64):
        empty = Tensor(np.zeros((0, 3), d)).sum(0).numpy()
        np.testing.assert_array_equal(np.signbit(empty), np.signbit(np.zeros((0, 3), d).sum(0)))
