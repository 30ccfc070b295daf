"""Every row of the feature table's part 1.7: the 22 stages, each by what goes in and what comes out."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from acceptance.notation import ROOT, R, V, argument, command, rw, shaped
from morok import Tensor, config
from morok.codegen.machines import CUDA
from morok.errors import LoweringError, OptError
from morok.ir import interpret
from morok.ir.dtype import dtypes
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp
from morok.ir.verify import verify
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.gpudims import limit_dims
from morok.passes.magic import magic
from morok.passes.pipeline import STAGES, lower
from tests.passes import kernels as K
from tests.passes.lowering import after, ops, programs, registers, stage

index, f32, i32, i64 = dtypes.index, dtypes.f32, dtypes.i32, dtypes.i64
KERNELS = {
    "elementwise": K.elementwise(100),
    "matmul": K.matmul(12, 5, 32),
    "rows": K.rows(6, 24),
    "pad": K.pad(37, 2, 3),
    "normalize": K.normalize(8, 40),
}
TARGETS = {"cpu": K.CPU, "gpu": K.GPU}


def optimized(ast: UOp, target: K.Target, *opts: Opt) -> UOp:
    """`ast`, to be lowered with these optimizations and no others."""
    scheduler = Scheduler(ast, target)
    for opt in opts:
        scheduler.apply(opt)
    return UOp.new(Op.Sink, ast.src, K.KernelInfo("k", tuple(scheduler.applied)))


def lengths(program: UOp) -> list[int]:
    return [int(n.src[0].arg) for n in program.toposort() if n.op is Op.Range]


def ids(program: UOp) -> list[int]:
    return [n.arg[0] for n in program.toposort() if n.op is Op.Range]


def written(at: UOp, *ranges: UOp) -> UOp:
    return K.kernel(K.buffer(0, 100).index(at).store(UOp.const(1.0)).end(*ranges))


def test_stage_01_early_movement() -> None:
    i, j = V("i", 0, 7), V("j", 0, 3)
    p, a = argument(1, 32), shaped(8)
    assert stage(1, UOp.new(Op.Index, (p.index(i), j), False)) is UOp.new(Op.Index, (p, i, j), False)
    flipped = stage(1, UOp.new(Op.Index, (UOp.new(Op.Flip, (a,), (True,)), i), False))
    assert flipped.src[0] is a.src[0], "its memory, behind all views"
    assert stage(4, flipped.src[1]) is stage(4, UOp.const(7) - i)


def test_stage_02_load_collapse() -> None:
    """sum(1 for k in 0..64 if k >= length) is 64 - length, brought inside 0..=64, and no loop is left."""
    k, length = K.fold(64, 0), V("length", -10, 100)
    counted = k.ge(length).where(UOp.const(1, i32), UOp.const(0, i32)).reduce(Op.Add, k)
    out = after(2, K.kernel(K.buffer(0, 1, i32).index(0).store(counted)))
    assert not {Op.Range, Op.Reduce} & set(ops(out))
    for n in range(-10, 101):
        held: dict[Any, list[int]] = {0: [0]}
        interpret.run(out, held, {"length": n})
        assert held[0] == [min(max(64 - n, 0), 64)]


def test_stage_03_split_ranges() -> None:
    twelve, ten = K.loop(12, 0), K.loop(10, 0)
    out = stage(3, written(twelve % 4, twelve))
    assert sorted(lengths(out)) == [3, 4]
    assert min(ids(out)) > 0, "their ids are new"
    simple = stage(4, out)
    (place,) = [n.src[1] for n in simple.toposort() if n.op is Op.Index]
    assert (place.op, place.src[0].arg) == (Op.Range, 4)
    assert stage(3, written(ten % 4, ten)) is written(ten % 4, ten)


def test_stage_04_initial_symbolic() -> None:
    x = V("x", -100, 100)
    for c in (1, 7, 64):
        assert stage(4, x.idiv(c) * c + x % c) is x


def test_stage_05_simplify_ranges() -> None:
    i, j = K.loop(4, 0), K.loop(8, 1)

    def added(b: UOp) -> UOp:
        at = i * 8 + j
        value = K.buffer(1, 32).index(at) + K.buffer(2, 32).index(b)
        return K.kernel(K.buffer(0, 32).index(at).store(value).end(i, j))

    assert lengths(stage(5, added(i * 8 + j))) == [32]
    assert lengths(stage(5, added(j * 4 + i))) == [4, 8]


def test_stage_06_split_store() -> None:
    """Both meanings: a graph is split into kernels at its stores, and a loop at the number that its condition compares with."""
    r = K.loop(100, 0)
    a, b = K.buffer(1, 100).index(r), K.buffer(2, 100).index(r)
    ast = K.kernel(K.buffer(0, 100).index(r).store((r < 50).where(a, b)).end(r))
    out = stage(6, ast)
    assert lengths(out) == [50, 50]
    program = after(8, ast)
    assert Op.Where not in ops(program)
    values = {1: [float(k) for k in range(100)], 2: [-float(k) for k in range(100)]}
    held = {0: [0.0] * 100, **values}
    interpret.run(program, held)
    assert held[0] == values[1][:50] + values[2][50:]
    assert stage(6, ast, K.GPU) is ast
    assert len((Tensor(np.ones((4, 4))).sum(0).contiguous() * 2).schedule()) == 2


def test_stage_07_apply_opts() -> None:
    """Stage 7 applies what a kernel asks for, or what the heuristics choose; the Sink tells which."""
    asked = (Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.UNROLL, 0, 8))
    out = stage(7, UOp.new(Op.Sink, K.rows(8, 24).src, K.KernelInfo("rows", asked)))
    assert out.arg == K.KernelInfo("rows", asked)
    assert {r.arg[1] for r in out.toposort() if r.op is Op.Range} >= {AxisType.Upcast, AxisType.Unroll}
    assert stage(7, K.matmul(64, 64, 64)).arg.opts != ()
    with pytest.raises(OptError):
        stage(7, UOp.new(Op.Sink, K.rows(8, 24).src, K.KernelInfo("rows", (Opt(OptOp.UPCAST, 9, 4),))))


def test_stage_08_post_opt_symbolic() -> None:
    """A padded operand of a sum: nothing is chosen around the read, the read itself is gated."""
    r = K.loop(20, 0)
    at = r - 3
    valid = at.ge(0) & at.lt(10)
    padded = valid.where(K.buffer(1, 10).index(at), UOp.const(0.0))
    ast = K.kernel(K.buffer(0, 20).index(r).store(padded + K.buffer(2, 20).index(r)).end(r))
    out = stage(8, stage(4, ast))
    assert [n.src[2].op for n in out.toposort() if n.op is Op.Where] == [Op.Invalid]
    gates = [n.arg for n in stage(15, stage(13, out)).toposort() if n.op is Op.Index]
    assert sorted(gates) == [False, False, True]


@pytest.mark.parametrize("name", KERNELS)
def test_stage_09_expander(name: str) -> None:
    out = stage(9, stage(7, optimized(KERNELS["elementwise"], K.CPU, Opt(OptOp.UPCAST, 0, 4))))
    assert {n.dtype for n in out.toposort() if n.op is Op.Add and n.dtype.is_float} == {f32.vec(4)}
    assert not {Op.Unroll, Op.Contract} & set(ops(after(9, KERNELS[name])))


def test_stage_10_add_local_buffers() -> None:
    """A grouped reduction has one buffer in shared memory, filled, then a barrier; marks are gone."""
    out = after(10, optimized(K.total(64), K.GPU, Opt(OptOp.GROUP, 0, 8)), K.GPU)
    assert ops(out).count(Op.DefineLocal) == 1
    assert Op.Barrier in ops(out)
    r = K.loop(8, 0)
    value = K.buffer(1, 8).index(r)
    marked = UOp.new(Op.Noop, (UOp.new(Op.Contiguous, (value,)),))
    assert stage(10, K.kernel(K.buffer(0, 8).index(r).store(marked).end(r))) is K.kernel(
        K.buffer(0, 8).index(r).store(value).end(r)
    )


@pytest.mark.parametrize(("op", "start"), [(Op.Add, 0.0), (Op.Mul, 1.0), (Op.Max, -np.inf), (Op.Min, np.inf)])
def test_stage_11_remove_reduce(op: Op, start: float) -> None:
    out = after(11, K.total(32, op), K.SCALAR)
    assert Op.Reduce not in ops(out)
    assert [n.src[1].arg for n in out.toposort() if n.op is Op.Store and n.src[1].op is Op.Const] == [start]
    # 8 lanes in registers of 4: two partial sums of 4, which become one number after the loop
    narrow = replace(K.SCALAR, vector_bytes=16, memory_bytes=16)
    unrolled = optimized(K.total(64, op), narrow, Opt(OptOp.UNROLL, 0, 8))
    out = after(11, unrolled, narrow)
    assert registers(out) == [f32.vec(8)]
    assert registers(after(19, unrolled, narrow)) == [f32.vec(4)] * 2
    values = [0.5 + k % 2 * 1.5 for k in range(64)]
    held = {0: [0.0], 1: values}
    interpret.run(out, held)
    fold: dict[Op, Callable[..., Any]] = {Op.Add: np.sum, Op.Mul: np.prod, Op.Max: np.max, Op.Min: np.min}
    assert held[0] == [fold[op](values)]


def test_stage_12_gpu_dims() -> None:
    assert limit_dims((64, 3, 4), (16, 16, 16)) == (16, 12, 4)
    assert limit_dims((2, 3, 4, 5), (16, 16, 16)) == (6, 4, 5)
    for dims, limits in (((256, 256, 256), (256, 256)), ((17, 17), (16, 16))):
        with pytest.raises(LoweringError, match="cannot fit"):
            limit_dims(dims, limits)
    ast = optimized(K.matmul(16, 8, 64), K.GPU, Opt(OptOp.LOCAL, 0, 4), Opt(OptOp.LOCAL, 1, 8))
    found = after(12, ast, K.GPU).toposort()
    assert {n.arg for n in found if n.op is Op.Special} == {"gidx0", "gidx1", "lidx0", "lidx1"}
    assert {n.arg[1] for n in found if n.op is Op.Range} == {AxisType.Reduce}
    # where threads of a block would store the same element, one of them does
    total = after(12, optimized(K.total(64), K.GPU, Opt(OptOp.GROUP, 0, 8)), K.GPU)
    outputs = [n.src[0] for n in total.toposort() if n.op is Op.Store and n.src[0].src[0].op is Op.DefineGlobal]
    assert [place.arg for place in outputs] == [True]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_stage_13_add_loads(name: str, target: str) -> None:
    out = after(13, KERNELS[name], TARGETS[target])
    for n in out.toposort():
        if TABLE.entries[n.op].pointwise:
            assert all(s.op is not Op.Index for s in n.src)
        if n.op is Op.Store:
            assert n.src[0].op is Op.Index


def test_stage_14_devectorize() -> None:
    for target, lanes in ((K.CPU, 16), (K.AVX2, 8), (K.GPU, 4)):
        assert {n.dtype.count for n in lower(K.elementwise(4096), target) if n.op is Op.Load} == {lanes}
    assert {n.dtype.count for n in lower(K.elementwise(4096), K.GPU) if n.op is Op.Mul and n.dtype.is_float} == {1}


@pytest.mark.long
@pytest.mark.parametrize("shape", [(1,), (37,), (8, 33), (3, 5, 64)], ids=str)
def test_stage_14_modes_give_equal_values(shape: tuple[int, ...]) -> None:
    """DEVECTORIZE=0, 1 and 2: bit for bit, on integers, and on floats whose sums are exact."""
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.int32, np.uint8, np.float64):
        x = rng.integers(0, 9, shape).astype(dtype)
        found: list[bytes] = []
        for mode in (0, 1, 2):
            with config.settings(devectorize=mode):
                t = Tensor(x)
                results = [t * 3 + 1, t.sum(-1), t.flip(-1).pad(((1, 2),) * len(shape)), (t > 4).where(t, t + 2).max()]
                found.append(b"".join(r.numpy().tobytes() for r in results))
        assert found[0] == found[1] == found[2]


def test_stage_15_lower_index_dtype() -> None:
    def lowered(top: int) -> set[str]:
        out = stage(15, UOp.sink(argument(0, 1).index(V("x", 0, top)).store(UOp.const(0.0))))
        assert not any(n.dtype.is_index for n in out.toposort())
        return {n.dtype.name for n in out.toposort() if n.op is Op.DefineVar}

    assert lowered(2**31 - 1) == {"i32"}
    assert lowered(2**31) == {"i64"}
    for ast in KERNELS.values():
        for program in programs(ast, K.GPU)[14:]:
            nodes = program if isinstance(program, list) else program.toposort()
            assert not any(n.dtype.is_index for n in nodes)
            assert {n.dtype for n in nodes if n.op is Op.Special} <= {i32}


@pytest.mark.parametrize("name", KERNELS)
def test_stage_16_post_index_symbolic(name: str) -> None:
    out = after(16, KERNELS[name])
    assert stage(16, out) is out


def test_stage_17_pre_matcher() -> None:
    """A target with a group of its own sees its rule fire once, at the one node it matches, and others do not."""
    r = K.loop(4, 0)
    ast = K.kernel(K.buffer(0, 4).index(r).store(K.buffer(1, 4).index(r) * -1.0).end(r))
    target = replace(K.SCALAR, pre_matcher=("late_forms",))
    before, out = (ops(after(n, ast, target)).count(Op.Neg) for n in (16, 17))
    assert (before, out) == (0, 1)
    assert after(17, ast, K.SCALAR) is after(16, ast, K.SCALAR)


def test_stage_18_decompositions() -> None:
    assert magic(1000, 7) == (1171, 13)
    for d in (3, 5, 7, 10, 641):
        found = magic(1000, d)
        assert found is not None
        assert all(x // d == (x * found[0]) >> found[1] for x in range(1001))
    cases: dict[str, tuple[Callable[[UOp], UOp], set[Op], set[Op]]] = {
        "x % 8": (lambda x: x % 8, {Op.Mod}, {Op.And}),
        "x // 8": (lambda x: x.idiv(8), {Op.Idiv}, {Op.Shr}),
        "x // 7": (lambda x: x.idiv(7), {Op.Idiv}, {Op.Mul, Op.Shr}),
        "x * -1": (lambda x: x * -1, {Op.Mul}, {Op.Neg}),
    }
    x = UOp.var("x", i32, 0, 1000)
    for made, gone, come in cases.values():
        out = stage(18, UOp.sink(argument(0, 1).index(0).store(made(x).cast(f32))))
        assert not gone & set(ops(out))
        assert come <= set(ops(out))
        for n in (0, 1, 6, 7, 8, 63, 999, 1000):
            held: dict[Any, list[float]] = {0: [0.0]}
            interpret.run(out, held, {"x": n})
            assert held[0] == [float(interpret.evaluate(made(x), {"x": n}))]
    assert Op.MulAcc in ops(lower(K.matmul(8, 8, 32), K.CPU))


@pytest.mark.parametrize("name", KERNELS)
def test_stage_19_final_rewrite(name: str) -> None:
    i, j = (UOp.range(UOp.const(n, i32), k, AxisType.Loop, True) for k, n in enumerate((3, 4)))
    body = argument(0, 12).index(i * 4 + j).store(UOp.const(1.0))
    assert stage(19, K.kernel(body.end(i, j))).src[0] is body.end(j).end(i)
    out = after(19, KERNELS[name])
    verify(out, 19)
    assert not {Op.Cat, Op.PtrCat} & set(ops(out))


def test_stage_20_control_flow() -> None:
    """Two loops side by side: the second waits for the first; a loop inside another waits for that one."""
    r, s = K.fold(8, 0), K.fold(9, 1)
    total, most = argument(1, 8).index(r).reduce(Op.Add, r), argument(2, 9).index(s).reduce(Op.Max, s)
    nodes = after(20, K.kernel(argument(0, 1).index(0).store(total + most)), K.SCALAR).toposort()
    (second,) = [n for n in nodes if n.op is Op.Range and Op.End in [s.op for s in n.src]]
    (end,) = [s for s in second.src if s.op is Op.End]
    assert {end.src[1].src[0].arg, second.src[0].arg} == {8, 9}
    inner = [n for n in after(20, K.rows(6, 24), K.SCALAR).toposort() if n.op is Op.Range and len(n.src) > 1]
    assert any(s.op is Op.Range for n in inner for s in n.src[1:])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_stage_21_linearize(name: str, target: str) -> None:
    program = programs(KERNELS[name], TARGETS[target])[20]
    assert isinstance(program, list)
    place = {n: k for k, n in enumerate(program)}
    assert all(place[s] < k for k, n in enumerate(program) for s in n.src if s in place)
    opened = [k for k, n in enumerate(program) if n.op is Op.Range]
    defines = [k for k, n in enumerate(program) if n.op in (Op.DefineGlobal, Op.DefineLocal, Op.DefineReg)]
    constants = [k for k, n in enumerate(program) if n.op in (Op.Const, Op.VConst)]
    if opened:
        assert max(defines) < min(opened)
        assert max(constants) < min(opened)


def test_stage_22_cleanup() -> None:
    """A gated store is a branch around a bare one, where the target has no stores with a gate of their own."""
    ast = UOp.sink(argument(0, 10).index(V("x", 0, 20), gate=V("x", 0, 20).lt(10)).store(UOp.const(1.0)))
    for target in (K.SCALAR, CUDA):
        program = lower(ast, target)
        at = ops(program).index(Op.If)
        assert ops(program)[at : at + 3] == [Op.If, Op.Store, Op.EndIf]
        assert not program[at + 1].src[0].arg
    assert not {Op.If, Op.EndIf} & set(ops(programs(ast, K.SCALAR)[20]))
    predicated = lower(ast, replace(K.SCALAR, predicated=True))
    assert Op.If not in ops(predicated)
    assert [n.src[0].arg for n in predicated if n.op is Op.Store] == [True]


def test_the_worked_trace() -> None:
    """`c = a + b` of [100, 100]: a line of title for each stage, in order, and stages 5 and 7 do what the reference's do."""
    result = command("trace", ROOT / "examples" / "add.py")
    titles = [line for line in result.stdout.splitlines() if line.startswith("=== ")]
    assert [t.split(": ")[1] for t in titles] == [f"stage {n}" for n in range(1, 23)]
    assert [t.split(": ", 2)[2].removesuffix(" (no change)") for t in titles] == [s.name for s in STAGES]
    seen: list[UOp] = []
    runpy.run_path(str(ROOT / "examples" / "add.py"))
    (item,) = (Tensor.empty(100, 100) + Tensor.empty(100, 100)).schedule()
    seen = [p for p in programs(item.ast) if isinstance(p, UOp)]
    assert lengths(seen[3]) == [100, 100]
    assert lengths(seen[4]) == [10000]
    assert AxisType.Upcast in [n.arg[1] for n in seen[6].toposort() if n.op is Op.Range]


def test_a_range_of_one_iteration_is_no_loop() -> None:
    assert rw(R(1), "dead_loop") is UOp.const(0)
