"""Every stage keeps the value: the interpreter runs each kernel after each of the 22 stages, and the verifier reads it."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from morok import config
from morok.errors import OptError
from morok.ir import interpret
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.ir.verify import verify
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import Program, lower
from morok.passes.target import Target
from tests.passes import kernels as K
from tests.passes.lowering import after, arguments

TARGETS = {"threads": replace(K.AVX2, threads=3), "avx512": K.CPU, "avx2": K.AVX2, "scalar": K.SCALAR, "gpu": K.GPU}
f32, f64, i32, i8, u8, i64 = dtypes.f32, dtypes.f64, dtypes.i32, dtypes.i8, dtypes.u8, dtypes.i64


def memory(ast: UOp, seed: int) -> dict[int, list[Any]]:
    """Small whole numbers in every buffer, negative ones too: their sums and products are exact in every float."""
    draw = random.Random(seed)
    out: dict[int, list[Any]] = {}
    for slot, given in arguments(ast).items():
        d = given.base
        low = 0 if d.is_unsigned else -4
        out[slot] = [_value(d, draw.randint(low, 4)) for _ in range(given.size)]
    return out


def _value(d: DType, v: int) -> Any:
    return float(v) if d.is_float else bool(v & 1) if d.is_bool else v


def check(ast: UOp, target: Target, seed: int = 0) -> list[UOp]:
    start = memory(ast, seed)

    def result(program: Program) -> list[Any]:
        held = {slot: list(values) for slot, values in start.items()}
        if isinstance(program, list):
            interpret.run_instructions(program, held)
        else:
            interpret.run(program, held)
        return held[0]

    wanted = result(ast)
    last: list[Program] = [ast]

    def observe(number: int, name: str, before: Program, after: Program) -> None:
        assert before is last[0]
        last[0] = after
        if after is not before and after != before:
            assert result(after) == wanted, f"stage {number} ({name}) changes the value"
        verify(after, number)

    instructions = lower(ast, target, observe)
    assert last[0] is instructions
    return instructions


SIZES = (1, 2, 7, 16, 37, 64, 100)
ONE_AXIS = {
    "elementwise": K.elementwise,
    "total": K.total,
    "flip": K.flip,
    "positions": K.positions,
    "pad": lambda n, d=f32: K.pad(n, 2, 3, d),
    "gather": lambda n, d=f32: K.gather(n, 9, d),
}


@pytest.mark.sampled(14)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", ONE_AXIS)
def test_one_axis(kernel: str, target: str) -> None:
    for n in SIZES:
        check(ONE_AXIS[kernel](n), TARGETS[target], n)


TWO_AXES = {
    "rows": K.rows,
    "columns": K.columns,
    "transpose": K.transpose,
    "spread": K.spread,
    "normalize": K.normalize,
    "row_max": lambda m, n: K.rows(m, n, Op.Max),
    "matmul": lambda m, n: K.matmul(m, 5, n),
    "matmul_transposed": lambda m, n: K.matmul_transposed(m, n, 6),
}


@pytest.mark.sampled(51)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", TWO_AXES)
def test_two_axes(kernel: str, target: str) -> None:
    # of a GPU every thread of every block is interpreted; loops become blocks and groups at 21 as at 33
    for m, n in ((1, 5), (3, 5), (8, 16), (3, 21) if target == "gpu" else (7, 33)):
        check(TWO_AXES[kernel](m, n), TARGETS[target], m * n)


@pytest.mark.long
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_every_mode_of_devectorizing(mode: int) -> None:
    with config.settings(devectorize=mode):
        for ast in (K.elementwise(64), K.rows(3, 64), K.transpose(16, 16), K.matmul(12, 5, 32), K.pad(37, 2, 3)):
            check(ast, K.AVX2)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("d", [i8, u8, i32, i64, f64, dtypes.f16], ids=str)
@pytest.mark.parametrize("target", ["avx512", "gpu"])
def test_dtypes(d: DType, target: str) -> None:
    for ast in (
        K.elementwise(20, d),
        K.total(35, Op.Add, d),
        K.total(35, Op.Max, d),
        K.rows(3, 20, Op.Min, d),
        K.matmul(4, 3, 5, d),
    ):
        check(ast, TARGETS[target])


@pytest.mark.parametrize("op", [Op.Add, Op.Mul, Op.Max, Op.Min])
def test_reductions_of_bools(op: Op) -> None:
    check(K.total(40, op, dtypes.bool), K.CPU)
    check(K.rows(3, 20, op, dtypes.bool), K.CPU)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("d", [i8, i32, u8], ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_division(d: DType, target: str) -> None:
    """Divisors of 0, and the least integer by -1, in data: the guarded branch is not taken, and nothing divides."""
    check(K.divide(40, d), TARGETS[target])


def test_empty_reduction() -> None:
    """A fold over no iterations is the identity of its op."""
    for op, value in ((Op.Add, 0.0), (Op.Mul, 1.0), (Op.Max, -math.inf), (Op.Min, math.inf)):
        ast = K.kernel(K.buffer(0, 1).index(0).store(K.buffer(1, 1).index(0).reduce(op, K.fold(0, 0))))
        held: dict[int, list[Any]] = {0: [7.0], 1: [3.0]}
        interpret.run_instructions(lower(ast, K.CPU), held)
        assert held[0] == [value]


def test_empty_loop() -> None:
    r = K.loop(0, 0)
    ast = K.kernel(K.buffer(0, 1).index(r).store(K.buffer(0, 1).index(r) + 1.0).end(r))
    held: dict[int, list[Any]] = {0: [7.0]}
    interpret.run_instructions(lower(ast, K.CPU), held)
    assert held[0] == [7.0]


def test_symbolic_length() -> None:
    """A loop whose length is known at run time only."""
    n = UOp.var("n", dtypes.index, 1, 20)
    r = K.loop(n, 0)
    k = K.fold(n, 1)
    a = K.buffer(1, 20)
    ast = K.kernel(K.buffer(0, 20).index(r).store(a.index(r) * a.index(k).reduce(Op.Add, k)).end(r))
    for target in TARGETS.values():
        instructions = lower(ast, target)
        for value in (1, 5, 20):
            held = {0: [0.0] * 20, 1: [float(i) for i in range(20)]}
            interpret.run_instructions(instructions, held, {"n": value})
            assert held[0] == [float(i * sum(range(value))) if i < value else 0.0 for i in range(20)]


@pytest.mark.long
def test_sibling_reductions_share_a_range() -> None:
    """max - min of one row in one kernel, both over the same range."""
    i, k = K.loop(5, 0), K.fold(37, 1)
    a = K.buffer(1, 5 * 37).index(i * 37 + k)
    ast = K.kernel(K.buffer(0, 5).index(i).store(a.reduce(Op.Max, k) - a.reduce(Op.Min, k)).end(i))
    for target in TARGETS.values():
        check(ast, target)


@pytest.mark.long
def test_dependent_reductions_share_a_range() -> None:
    """The sum of distances from the mean: the second loop needs what the first one found."""
    i, k = K.loop(4, 0), K.fold(16, 1)
    a = K.buffer(1, 64).index(i * 16 + k)
    mean = a.reduce(Op.Add, k)
    ast = K.kernel(K.buffer(0, 4).index(i).store((a * 16.0 - mean).abs().reduce(Op.Max, k)).end(i))
    for target in TARGETS.values():
        check(ast, target)


@pytest.mark.long
def test_nested_reductions() -> None:
    """A reduction inside the body of another."""
    i, k, m = K.loop(3, 0), K.fold(4, 1), K.fold(20, 2)
    inner = K.buffer(1, 80).index(k * 20 + m).reduce(Op.Max, m)
    ast = K.kernel(K.buffer(0, 3).index(i).store((inner * K.buffer(2, 12).index(i * 4 + k)).reduce(Op.Add, k)).end(i))
    for target in TARGETS.values():
        check(ast, target)


@pytest.mark.long
def test_reduction_over_several_ranges() -> None:
    i, k, m = K.loop(3, 0), K.fold(5, 1), K.fold(7, 2)
    ast = K.kernel(
        K.buffer(0, 3).index(i).store(K.buffer(1, 105).index((i * 5 + k) * 7 + m).reduce(Op.Add, k, m)).end(i)
    )
    for target in TARGETS.values():
        check(ast, target)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", ["threads", "avx512", "avx2", "scalar"])
def test_folds_up_to_each_element(target: str) -> None:
    check(K.scan(2, 18), TARGETS[target])
    check(K.scan(2, 17, Op.Max, i32, whole=False, down=True), TARGETS[target])


def test_two_outputs() -> None:
    r, k = K.loop(10, 0), K.fold(6, 1)
    first = K.buffer(0, 10).index(r).store(K.buffer(2, 10).index(r) * 2.0).end(r)
    second = K.buffer(1, 1).index(0).store(K.buffer(3, 6).index(k).reduce(Op.Add, k))
    for target in TARGETS.values():
        check(K.kernel(first, second), target)


def _shapes() -> list[UOp]:
    return [
        K.elementwise(24), K.total(24), K.rows(6, 12), K.columns(12, 6), K.matmul(6, 4, 8), K.matmul_transposed(4, 8, 6),
        K.spread(4, 12), K.normalize(4, 6), K.transpose(6, 8), K.pad(13, 2, 3), K.flip(12), K.gather(12, 5),
        K.scan(2, 18), K.scan(3, 17, Op.Max, dtypes.i32, whole=False, down=True),
    ]  # fmt: skip


@pytest.mark.sampled(51)
@pytest.mark.parametrize("number", range(len(_shapes())))
@pytest.mark.parametrize("target", ["avx2", "threads", "gpu"])
def test_any_optimizations(number: int, target: str) -> None:
    """Random legal optimizations, in any order, change nothing but speed."""
    ast = _shapes()[number]
    before_opts = after(6, ast, TARGETS[target])
    for seed in range(6):
        draw = random.Random(f"{number} {seed} {target}")
        scheduler = Scheduler(before_opts, TARGETS[target])
        for _ in range(6):
            op = draw.choice(list(OptOp))
            opt = Opt(op) if op is OptOp.NOLOCALS else Opt(op, draw.randrange(4), draw.choice([0, 2, 3, 4, 5]))
            before = scheduler.ast
            try:
                scheduler.apply(opt)
            except OptError:
                assert scheduler.ast is before
        check(scheduler_kernel(ast, scheduler), TARGETS[target], seed)


def scheduler_kernel(ast: UOp, scheduler: Scheduler) -> UOp:
    """`ast`, asking for what `scheduler` applied."""
    info = K.KernelInfo(ast.arg.name, tuple(scheduler.applied))
    return UOp.new(Op.Sink, ast.src, info)
