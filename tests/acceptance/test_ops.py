"""Table 1.3: every op."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from acceptance.notation import R, V, argument, buffer, rw, shaped
from morok import AxisType, Tensor, UOp, Variable
from morok import dtypes as d
from morok.codegen.cuda import render as render_cuda
from morok.codegen.llvm import render
from morok.codegen.machines import CUDA, host
from morok.errors import BindError, IRTypeError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, DType
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.optimize.opts import Opt, OptOp
from morok.passes import index_maps
from morok.passes.pipeline import Program, lower
from morok.passes.target import KernelInfo, Target
from morok.rewrite.tiers import SYMBOLIC
from morok.tensor.schedule import COUNTERS, create_schedule

MOVEMENT = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip})
X = UOp.var("x", d.f32)
V4 = UOp.var("v", d.f32.vec(4))


def stages(ast: UOp, target: Target) -> dict[int, Program]:
    """The program after each stage."""
    seen: dict[int, Program] = {}
    lower(ast, target, lambda number, name, before, program: seen.__setitem__(number, program))
    assert sorted(seen) == list(range(1, 23))
    return seen


def nodes(program: Program) -> list[UOp]:
    return program.toposort() if isinstance(program, UOp) else program


def ops(program: Program) -> set[Op]:
    return {u.op for u in nodes(program)}


def copies(n: int, *opts: Opt) -> UOp:
    """out[i] = in[i] + 1, of n f32."""
    i = UOp.range(n, 0, AxisType.Loop, True)
    store = argument(0, n).index(i).store(argument(1, n).index(i) + 1.0)
    return UOp.sink(store.end(i), info=KernelInfo("copies", opts))


# Loops


def test_range() -> None:
    r = R(3)
    assert rw(r % 3, *SYMBOLIC) is r
    assert rw(r // 3, *SYMBOLIC) is UOp.const(0)
    assert (r.vmin, r.vmax) == (0, 2)


def test_end() -> None:
    c = argument(0, 4).index(0).store(UOp.const(1.0))
    assert c.end() is c
    assert rw(UOp.new(Op.End, (c,)), "dead_loop") is c
    assert rw(c.end(R(1)), "dead_loop") is c
    assert rw(c.end(R(0)), "dead_loop").op is Op.Noop


def test_reduce_axis() -> None:
    t = shaped(10, 20)
    assert UOp.new(Op.ReduceAxis, (t,), (Op.Add, (1,))).shape == (10,)
    assert Tensor(np.ones((10, 20), np.float32)).sum(1).shape == (10,)
    assert Tensor(np.ones((10, 20), np.float32)).sum(1, keepdim=True).shape == (10, 1)


@pytest.mark.parametrize("dtype", [d.bool, d.i8, d.u8, d.i32, d.u64, d.f16, d.f32, d.f64], ids=str)
def test_reduce_over_nothing(dtype: DType) -> None:
    x = UOp.var("x", dtype)
    lowest, highest = (False, True) if dtype.is_bool else (dtype.min, dtype.max)
    for op, value in [(Op.Add, -0.0 if dtype.is_float else 0), (Op.Mul, 1), (Op.Max, lowest), (Op.Min, highest)]:
        want = UOp.const(value, dtype)
        assert UOp.const(identity(op, dtype), dtype) is want
        assert rw(x.reduce(op, R(0)), "dead_loop") is want
        assert rw(x.reduce(op, R(0), R(4, 1)), "dead_loop") is want
        assert rw(x.reduce(op, R(1)), "dead_loop") is x


def test_a_reduction_has_one_of_four_ops() -> None:
    with pytest.raises(IRTypeError):
        X.reduce(Op.Sub, R(4))


def test_allreduce_on_two_devices() -> None:
    parts = (buffer(0, 2), buffer(1, 2))
    total = UOp.new(Op.AllReduce, (UOp.new(Op.MStack, parts), UOp.new(Op.Device, (), "CPU:0")), Op.Add)
    data = {parts[0]: [1.0, 2.0], parts[1]: [3.0, 4.0]}
    for n in range(2):
        assert interpret.tensor(UOp.new(Op.MSelect, (total,), n), data)[0] == [4.0, 6.0]


def test_special() -> None:
    s = UOp.new(Op.Special, (UOp.const(64, d.i32),), "gidx0")
    assert (s.vmin, s.vmax, s.dtype) == (0, 63, d.i32)
    specials = [u for u in nodes(stages(copies(1000), CUDA)[22]) if u.op is Op.Special]
    assert specials
    assert all(u.dtype is d.i32 and u.vmax == u.src[0].vmax - 1 for u in specials)


# Memory


def test_buffers_of_different_identity() -> None:
    assert buffer(0) is not buffer(1)
    assert buffer(0) is buffer(0)
    assert UOp.new(Op.Unique, (), 1) is not UOp.new(Op.Unique, (), 2)
    assert UOp.new(Op.Device, (), "CPU") is not UOp.new(Op.Device, (), "CUDA")


def test_two_consumers_behind_a_contiguous_are_two_kernels() -> None:
    a, b = Tensor(np.arange(12, dtype=np.float32)), Tensor(np.ones(12, np.float32))
    c = (a + b).contiguous()
    t = c * 2 + c.flip(0)
    assert len(create_schedule([t])) == 2
    c = np.arange(12, dtype=np.float32) + 1
    np.testing.assert_array_equal(t.numpy(), c * 2 + c[::-1])


def test_an_index_of_a_permutation() -> None:
    a = shaped(3, 4)
    i, j = R(4, 0), R(3, 1)
    through, gates = index_maps.through(UOp.new(Op.Permute, (a,), (1, 0)), (i, j))
    assert (through, gates) == ((j, i), [])
    (item,) = create_schedule([Tensor(np.ones((3, 4), np.float32)).T + 1.0])
    assert not ops(item.ast) & MOVEMENT


def test_pointer_index_is_getelementptr() -> None:
    p = argument(0, 8)
    one = UOp.const(1, d.i64)
    place = UOp.new(Op.PointerIndex, (p, one), dtype=d.f32)
    value = UOp.const(2.0)
    text = render([p, one, value, place, place.store(value)], "k").text
    assert "getelementptr" in text


def test_a_load_with_a_false_gate_is_its_alternative() -> None:
    data = [7.0] * 4
    p = argument(0, 4)
    gated = p.index(UOp.const(100), gate=UOp.const(False))
    assert interpret.evaluate(UOp.new(Op.Load, (gated, UOp.const(0.0))), {}, {p: data}) == 0.0
    assert interpret.evaluate(gated.load(), {}, {p: data}) == 0.0
    padded = Tensor(np.full(5, 3.0, np.float32)).pad(((2, 1),)) * 2
    assert padded.tolist() == [0.0, 0.0, 6.0, 6.0, 6.0, 6.0, 6.0, 0.0]


def test_a_store_to_nowhere() -> None:
    p = argument(0, 4)
    assert rw(p.index(UOp.invalid_at()).store(UOp.const(1.0)), "fold_invalid_load_store").op is Op.Noop
    assert rw(p.index(UOp.invalid_at()).load(), "fold_invalid_load_store") is UOp.const(0.0)


def test_a_sum_is_one_kernel_with_three_arguments() -> None:
    (item,) = create_schedule([Tensor([1.0, 2.0]) + Tensor([3.0, 4.0])])
    assert item.kernel.op is Op.Kernel
    assert len(item.buffers) == 3
    assert item.ast.op is Op.Sink
    assert len({u for u in item.ast.toposort() if u.op is Op.DefineGlobal}) == 3


def test_two_outputs() -> None:
    a = Tensor(np.arange(6, dtype=np.float32))
    x, y = a + 1, a.sum()
    items = create_schedule([x, y])
    assert sum(u.op is Op.Store for item in items for u in item.ast.toposort()) == 2
    Tensor.realize_batch([x, y])
    assert (x.tolist(), y.item()) == ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 15.0)


def test_a_kernel_that_reads_what_another_stores_comes_after_it() -> None:
    a = Tensor(np.arange(6, dtype=np.float32))
    first, second = create_schedule([(a + 1).contiguous().flip(0) * 2])
    assert (first.dependencies, second.dependencies) == ([], [0])
    (after,) = [u for u in second.kernel.src if u.op is Op.After]
    assert first.kernel in after.src[1:]
    assert X.after() is X
    assert rw(UOp.new(Op.After, (X,)), "after_simplification") is X


def test_a_barrier_between_storing_and_loading_shared_memory() -> None:
    """A sum in two steps: sixteen threads leave theirs in shared memory, and one adds them up."""
    thread = UOp.range(16, 0, AxisType.Local, True)
    k, j = (UOp.range(n, id, AxisType.Reduce, True) for id, n in ((1, 64), (2, 16)))
    part = argument(1, 1024).index(thread * 64 + k).reduce(Op.Add, k)
    shared = UOp.new(Op.Bufferize, (part, thread), (None, AddrSpace.LOCAL))
    ast = UOp.sink(argument(0, 1).index(0).store(shared.index(j).reduce(Op.Add, j)), info=KernelInfo("total", opts=()))
    code = render_cuda(lower(ast, CUDA), "total").text
    (name,) = re.findall(r"__shared__ [^;]*?(\w+)\[", code)
    lines = [line for line in code.splitlines() if name in line or "__syncthreads();" in line]
    (barrier,) = [n for n, line in enumerate(lines) if "__syncthreads();" in line]
    uses = [line for line in lines if "__shared__" not in line]
    assert barrier >= 1
    assert uses.index("".join(lines[barrier])) not in (0, len(uses) - 1)


def test_global_local_variable_and_register() -> None:
    """Two reductions of one dtype keep two accumulators."""
    a, b = (Tensor(np.arange(24, dtype=np.float32).reshape(2, 12) + n) for n in range(2))
    t = a.sum(1) / (b * b).sum(1)
    for item in create_schedule([t]):
        instructions = lower(item.ast, host())
        registers = {u for u in instructions if u.op is Op.DefineReg}
        assert len(registers) == len({u.arg for u in registers})
    i = UOp.range(4, 0, AxisType.Loop, True)
    folds = [UOp.range(8, n, AxisType.Reduce, True) for n in (1, 2)]
    one, two = (argument(n, 32).index(i * 8 + r).reduce(Op.Add, r) for n, r in enumerate(folds, 1))
    ast = UOp.sink(argument(0, 4).index(i).store(one / two).end(i), info=KernelInfo("k"))
    after = stages(ast, Target("LLVM", memory_bytes=8))[11]
    assert len({u for u in nodes(after) if u.op is Op.DefineReg}) == 2


def test_binding() -> None:
    n = Variable("n", 1, 8)
    with pytest.raises(BindError):
        n.bind(9)
    x = Tensor(np.arange(16, dtype=np.float32).reshape(8, 2))
    x.shrink(((0, n.bind(3)), (0, 2))).sum(0).realize()
    lowered = COUNTERS.kernels_lowered
    out = x.shrink(((0, n.bind(5)), (0, 2))).sum(0)
    np.testing.assert_array_equal(out.numpy(), x.numpy()[:5].sum(0))
    assert COUNTERS.kernels_lowered == lowered


def test_branches_guard_stores_after_stage_22_only() -> None:
    i = UOp.range(10, 0, AxisType.Loop, True)
    place = argument(0, 10).index(argument(1, 10).index(i).lt(5.0).where(i, UOp.invalid_at()))
    ast = UOp.sink(place.store(UOp.const(1.0)).end(i), info=KernelInfo("k"))
    with morok.settings(check=False):
        seen = stages(ast, Target("LLVM", memory_bytes=8))
    assert all(Op.If not in ops(seen[n]) for n in range(1, 22))
    final = nodes(seen[22])
    branches = [n for n, u in enumerate(final) if u.op is Op.If]
    assert len(branches) == 1
    assert [u.op for u in final[branches[0] :]].count(Op.EndIf) == 1
    assert final[branches[0] + 1].op is Op.Store


# Vectors


def test_vectorize_and_gep() -> None:
    a, b = UOp.var("a", d.f32), UOp.var("b", d.f32)
    assert rw(UOp.vectorize(a, b).gep(1), "gep_pushing") is b
    assert rw(V4.gep(3, 1).gep(1), "gep_pushing") is V4.gep(1)


def test_vconst() -> None:
    total = UOp.const((1, 2), d.i32) + UOp.const((3, 4), d.i32)
    assert rw(total, "vconst_folding") is UOp.const((4, 6), d.i32)


def test_cat() -> None:
    v = UOp.var("w", d.f32.vec(4))
    both = UOp.new(Op.Cat, (V4, v))
    assert both.dtype.count == 8
    store = argument(0, 8).index(0).store(both)
    assert Op.Cat not in ops(stages(UOp.sink(store, info=KernelInfo("k")), host())[19])


def test_four_consecutive_loads_are_one() -> None:
    instructions = lower(copies(64, Opt(OptOp.UPCAST, 0, 4)), host())
    (load,) = [u for u in instructions if u.op is Op.Load]
    assert load.dtype is d.f32.vec(4)
    assert "load <4 x float>" in render(instructions, "k").text


def test_contract_of_unroll() -> None:
    u = UOp.new(Op.Contract, (UOp.new(Op.Unroll, (V4,), ((0, 4),)),), ((0, 4),))
    ast = UOp.sink(argument(0, 4).index(0).store(u), info=KernelInfo("k"))
    (store,) = [n for n in nodes(stages(ast, host())[9]) if n.op is Op.Store]
    assert store.src[1] in (V4, V4.gep(0, 1, 2, 3))
    data = (1.0, 2.0, 3.0, 4.0)
    assert interpret.evaluate(u, {"v": data}) == data


# Tensors


def test_no_view_is_left_in_a_kernel() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    t = Tensor(x)
    views: list[tuple[Tensor, Any]] = [
        (t.reshape(4, 6), x.reshape(4, 6)),
        (t.permute(2, 0, 1), x.transpose(2, 0, 1)),
        (t.reshape(2, 3, 4, 1).expand(2, 3, 4, 5), np.broadcast_to(x[..., None], (2, 3, 4, 5))),
        (t.pad(((0, 1), (2, 0), (0, 0))), np.pad(x, ((0, 1), (2, 0), (0, 0)))),
        (t.shrink(((0, 1), (1, 3), (0, 4))), x[0:1, 1:3]),
        (t.flip(0).flip(2), x[::-1, :, ::-1]),
    ]
    for view, want in views:
        once = view + 1.0
        for item in create_schedule([once]):
            assert not ops(item.ast) & MOVEMENT
        np.testing.assert_array_equal(once.numpy(), want + 1)


# Arithmetic


def test_bitcast() -> None:
    one = UOp.const(1.0).bitcast(d.i32)
    assert interpret.evaluate(one) == 0x3F800000
    assert Tensor([1.0]).bitcast("i32").item() == 0x3F800000
    assert interpret.evaluate(UOp.const(3.7).cast(d.i32)) == 3
    with pytest.raises(IRTypeError):
        UOp.const(1.0).bitcast(d.i64)


SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-40, -1e-40, 3e38, np.inf, -np.inf, np.nan]
REFERENCES: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "sqrt": np.sqrt, "exp2": np.exp2, "log2": np.log2, "sin": np.sin, "reciprocal": lambda a: 1 / a,
    "trunc": np.trunc, "floor": np.floor, "ceil": np.ceil, "round": np.round, "exp": np.exp, "log": np.log, "cos": np.cos,
    "tan": np.tan, "abs": np.abs, "sign": np.sign, "rsqrt": lambda a: 1 / np.sqrt(a), "square": np.square, "tanh": np.tanh,
}  # fmt: skip
EXACT = frozenset({"neg", "sqrt", "reciprocal", "trunc", "floor", "ceil", "round", "abs", "sign", "square"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", REFERENCES)
def test_unary_ops_are_numpys(name: str) -> None:
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.normal(size=50_000) * 10, rng.uniform(-80, 80, 50_000), SPECIALS]).astype(np.float32)
    got = getattr(Tensor(a), name)().numpy()
    assert got.dtype == np.float32
    with np.errstate(all="ignore"):
        want = REFERENCES[name](a if name in EXACT else a.astype(np.float64)).astype(np.float32)
    if name in EXACT:
        np.testing.assert_array_equal(got, want)
        if name != "sign":  # of which zero has which sign the table says nothing
            assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_erf() -> None:
    from math import erf

    a = np.concatenate([np.linspace(-5, 5, 2001), [0.0, np.inf, -np.inf]]).astype(np.float32)
    np.testing.assert_allclose(Tensor(a).erf().numpy(), [erf(v) for v in a.tolist()], rtol=1e-6, atol=1e-7)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "max": lambda a, b: a.maximum(b) if isinstance(a, Tensor) else np.maximum(a, b),
    "min": lambda a, b: a.minimum(b) if isinstance(a, Tensor) else np.minimum(a, b),
}  # fmt: skip
INTEGER_ONLY: dict[str, Callable[[Any, Any], Any]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_binary_ops_are_numpys(name: str) -> None:
    """Every op in one compiled kernel a dtype, extremes and zeros against each other."""
    rng = np.random.default_rng(1)
    if name.startswith("float"):  # the ops Mod and FloorMod are of integers
        edge = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e30], name)
        more = rng.normal(size=24).astype(name)
        table = {op: f for op, f in BINARY.items() if op not in ("floordiv", "mod")}
    else:
        info = np.iinfo(name)
        edge = np.array([0, 1, 2, 7, info.max, info.min, info.max - 1, info.max // 2], name)
        more = rng.integers(info.min, info.max, 24, dtype=name)
        table = BINARY | INTEGER_ONLY
    values = np.concatenate([edge, more])
    a, b = (m.ravel() for m in np.meshgrid(values, values))
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    results = [f(Tensor(a), Tensor(b)) for f in table.values()]
    Tensor.realize_batch(results)
    with np.errstate(all="ignore"):
        for (op, f), got in zip(table.items(), results, strict=True):
            want = f(a, b)
            assert got.numpy().dtype == want.dtype, op
            np.testing.assert_array_equal(got.numpy(), want, err_msg=op)


def test_where_and_fused_multiply_add() -> None:
    c, t, f = (
        np.array([True, False, True]),
        np.array([1.0, 2.0, 3.0], np.float32),
        np.array([4.0, 5.0, 6.0], np.float32),
    )
    np.testing.assert_array_equal(Tensor(c).where(Tensor(t), Tensor(f)).numpy(), np.where(c, t, f))
    a = 1.0 + 2.0**-23
    a, b, c32 = (UOp.const(v) for v in (a, a, -(1.0 + 2.0**-22)))
    assert interpret.evaluate(UOp.new(Op.MulAcc, (a, b, c32))) == 2.0**-46
    assert interpret.evaluate(a * b + c32) == 0.0


def test_invalid_is_kept_apart() -> None:
    c, x = UOp.var("c", d.bool), V("x", 0, 9)
    guarded = c.where(x, UOp.invalid_at())
    assert rw(UOp.const(0) * guarded, *SYMBOLIC) is c.where(UOp.const(0), UOp.invalid_at())
    assert rw(guarded + 1, *SYMBOLIC) is c.where(x + 1, UOp.invalid_at())


def test_hints_and_helpers_exist() -> None:
    b = buffer()
    t = Tensor(np.arange(4, dtype=np.float32))
    for op in (Op.ContiguousBackward, Op.Detach):
        marked = t._like(UOp.new(op, (t.uop,))) + 1
        assert op not in {u.op for item in create_schedule([marked]) for u in item.ast.toposort()}
        assert marked.tolist() == [1.0, 2.0, 3.0, 4.0]
    ast = UOp.sink(
        argument(0, 4).index(0).store(UOp.new(Op.Contiguous, (argument(1, 4).index(1),))), info=KernelInfo("k")
    )
    assert Op.Contiguous not in ops(stages(ast, host())[10])
    assert UOp.new(Op.BufferView, (b,), (2, 4), d.f32).dtype is d.f32
    assert UOp.new(Op.Precast, (X,), dtype=d.f16).dtype is d.f16
    assert UOp.new(Op.Group, (b.index(0).store(UOp.const(1.0)),)).dtype is d.void
    bufferized = UOp.new(Op.Bufferize, (X, R(3)), (None, AddrSpace.GLOBAL))
    assert interpret.evaluate(bufferized.index(2), {"x": 1.5}) == 1.5
