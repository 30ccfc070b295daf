"""Every row of the feature table's part 1.12: what the texts name and is easily overlooked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from acceptance.notation import ROOT, rw
from morok import Tensor, config, dtypes
from morok.errors import DeviceError, LoweringError, OptError
from morok.ir import interpret
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.ir.verify import verify
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes import rangeify
from morok.passes.pipeline import lower
from morok.runtime import thread_pool
from morok.runtime.buffer import CPU_POOL
from morok.tools.cli import main
from tests.passes import kernels as K
from tests.passes.lowering import arguments, programs, stage

f32, i32, index = dtypes.f32, dtypes.i32, dtypes.index


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def with_opts(ast: UOp, *opts: Opt) -> UOp:
    return UOp.new(Op.Sink, ast.src, K.KernelInfo("k", opts))


def test_range_ids() -> None:
    """Before kernels are split an id says that it is no kernel's yet; a kernel's own count from 0."""
    program = (data(3, 5) * 2).sum(0).contiguous() + data(5, seed=1)
    before: list[UOp] = []

    def look(name: str, state: rangeify.State) -> None:
        if state.sink is not None:
            before.extend(n for n in state.sink.toposort() if n.op is Op.Range)

    rangeify.rangeify([program.uop], "CPU", look)
    assert before
    assert all("renumbered=true" not in r.text() and not r.field("renumbered") for r in before)
    for item in program.schedule():
        ranges = [n for n in item.ast.toposort() if n.op is Op.Range]
        assert all("renumbered=true" in r.text() for r in ranges)
        assert sorted(r.field("id") for r in ranges) == list(range(len(ranges)))


AXIS = ((0, 2),)


def spread(dtype: Any, start: int = 1) -> UOp:
    values = [bool(start), not start] if dtype.is_bool else [start, start + 1]
    return UOp.new(Op.Unroll, (vconst(dtype, values),), AXIS)


MEMORY = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(8))
X, LOOP = UOp.var("x", i32), UOp.range(3, 7, AxisType.Reduce)
# the list of the bestiary, operand by operand unrolled
EXPANDABLE: dict[str, UOp] = {
    "Unary": -spread(i32),
    "Binary": spread(i32) * X,
    "Ternary": spread(dtypes.bool).where(X, spread(i32, 5)),
    "Cast": spread(i32).cast(f32),
    "BitCast": spread(i32).bitcast(f32),
    "Gep": UOp.vectorize(spread(i32), X).gep(1, 0),
    "Vectorize": UOp.vectorize(spread(i32), X),
    "Index": MEMORY.index(spread(index)),
    "Load": UOp.new(Op.Load, (MEMORY.index(spread(index)),), None, i32),
    "Reduce": (spread(i32) + LOOP.cast(i32)).reduce(Op.Add, LOOP),
    "After": UOp.new(Op.After, (spread(i32), UOp.new(Op.Noop, ()))),
}


def expanded(root: UOp) -> UOp:
    return stage(9, UOp.sink(root))


@pytest.mark.parametrize("name", EXPANDABLE)
def test_expandable_ops(name: str) -> None:
    """Its lanes hold what the op gives for one iteration after the other."""
    wanted = UOp.new(Op.Contract, (EXPANDABLE[name],), AXIS)
    place = UOp.new(Op.DefineGlobal, (), 1, wanted.dtype.scalar().ptr(8)).index(0)
    after = expanded(place.store(wanted))
    assert not {Op.Unroll, Op.Contract} & {n.op for n in after.toposort()}
    held = {0: list(range(40, 48))}
    found = interpret.evaluate(after.src[0].src[1], {"x": 9}, held)
    assert found == interpret.evaluate(wanted, {"x": 9}, held)


def test_expandable_statements() -> None:
    """Store, and the End that closes it: one store of all lanes."""
    closes = UOp.new(Op.Unroll, (vconst(index, range(2)),), AXIS)
    for body in (MEMORY.index(spread(index)).store(spread(i32, 5)), MEMORY.index(spread(index)).store(X)):
        after = expanded(body.end(closes))
        assert not {Op.Unroll, Op.Contract} & {n.op for n in after.toposort()}
        held = {0: [0] * 8}
        interpret.run(after, held, {"x": 6})
        assert held[0][1:3] in ([5, 6], [6, 6])


def test_no_other_op_is_expanded() -> None:
    wide = UOp.new(Op.Custom, (spread(i32),), "f({0})", i32)
    after = expanded(MEMORY.index(0).store(wide))
    with pytest.raises(LoweringError, match="Custom cannot be vectorized"):
        stage(10, after)


REDUCTIONS: dict[str, tuple[UOp, tuple[Opt, ...]]] = {
    "along the reduced axis": (K.total(64), (Opt(OptOp.UNROLL, 0, 16),)),
    "an upcast axis beside it": (K.columns(12, 16), (Opt(OptOp.UPCAST, 0, 16),)),
    "both": (K.rows(8, 24), (Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.UNROLL, 0, 8))),
    "a maximum": (K.rows(3, 40, Op.Max), (Opt(OptOp.UNROLL, 0, 8),)),
    "any": (K.total(64, Op.Add, dtypes.bool), (Opt(OptOp.UNROLL, 0, 16),)),
    "all": (K.total(64, Op.Mul, dtypes.bool), (Opt(OptOp.UNROLL, 0, 16),)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduce_devectorizing(name: str) -> None:
    """Lanes become one number after the loop, by the same fold; bools by and, or."""
    ast, opts = REDUCTIONS[name]
    size = {slot: memory.size for slot, memory in arguments(ast).items()}
    ints = np.random.default_rng(4).integers(-4, 5, size[1])
    for values in (ints, ints * 0, ints * 0 + 1):
        given = [bool(v) if name in ("any", "all") else float(v) for v in values]
        found = []
        for chosen in (opts, ()):
            held = {0: [False if name in ("any", "all") else 0.0] * size[0], 1: list(given)}
            interpret.run_instructions(lower(with_opts(ast, *chosen), K.CPU), held)
            found.append(held[0])
        assert found[0] == found[1]


def test_any_and_all_over_bool_vectors() -> None:
    rng = np.random.default_rng(6)
    for shape in ((5, 64), (3, 37), (4, 0)):
        for share in (0.0, 0.02, 0.98, 1.1):
            x = rng.random(shape) < share
            for axis in (1, None):
                np.testing.assert_array_equal(Tensor(x).any(axis).numpy(), x.any(axis))
                np.testing.assert_array_equal(Tensor(x).all(axis).numpy(), x.all(axis))


def test_stage_10_strips_marks() -> None:
    """Contiguous, Noop and a Store's second mention of a closed range are gone, and what is left verifies."""
    r = K.loop(8, 0)
    read = K.buffer(1, 8).index(r)
    marked = UOp.new(Op.Noop, (UOp.new(Op.Contiguous, (read * 2.0,)),))
    out = stage(10, K.kernel(K.buffer(0, 8).index(r).store(marked).end(r)))
    assert not {Op.Contiguous, Op.Noop} & {n.op for n in out.toposort()}
    verify(out, 10)
    for ast in (K.elementwise(100), K.matmul(12, 5, 32), K.spread(6, 24)):
        verify(programs(ast)[9], 10)  # consistent dtypes in what is broadcast


def test_stage_12_limits() -> None:
    """Beyond 1024 threads a block, 48 KB of shared memory or a grid's dimensions: split, or a reason."""
    wide = Scheduler(K.elementwise(1 << 16), K.GPU)
    with pytest.raises(OptError, match="2048 threads in a block"):
        wide.apply(Opt(OptOp.LOCAL, 0, 2048))
    wide.apply(Opt(OptOp.LOCAL, 0, 1024))  # as many as a block may have
    i, j = K.loop(40, 0), UOp.range(2048, 1, AxisType.Local, True)
    threads = K.kernel(K.buffer(0, 81920).index(i * 2048 + j).store(UOp.const(1.0)).end(i, j))
    with pytest.raises(LoweringError, match="2048 threads in a block"):
        lower(with_opts(threads), K.GPU)
    columns = Scheduler(K.columns(512, 64), K.GPU)
    columns.apply(Opt(OptOp.UPCAST, 0, 64))
    with pytest.raises(OptError, match="65536 bytes of shared memory"):
        columns.apply(Opt(OptOp.GROUP, 0, 256))
    # 70,000 blocks along a dimension that has 65,535, and five dimensions, of which there are three
    rows = K.spread(70_000, 4)
    specials = {n.arg: int(n.vmax) + 1 for n in lower(with_opts(rows), K.GPU) if n.op is Op.Special}
    assert all(
        n <= m for n, m in zip((specials[f"gidx{k}"] for k in range(len(specials))), K.GPU.grid_max, strict=False)
    )
    assert np.prod(list(specials.values())) == 280_000
    five = Tensor.empty(2, 3, 4, 5, 6, device="CUDA").permute(4, 3, 2, 1, 0).contiguous()
    assert {n.arg for n in lower(with_opts(five.schedule()[0].ast), K.GPU) if n.op is Op.Special} <= {
        "gidx0",
        "gidx1",
        "gidx2",
    }


def test_stage_13_loads() -> None:
    """What is only written is not read, and what is read, changed and written is read once."""
    loads = Counter(n.op for n in lower(K.positions(64), K.CPU))
    assert (loads[Op.Load], loads[Op.Store] > 0) == (0, True)
    r = K.loop(8, 0)
    place = K.buffer(0, 8, i32).index(r)
    ast = K.kernel(place.store(place * place + place).end(r))
    kinds = Counter(n.op for n in lower(with_opts(ast), K.SCALAR))
    assert (kinds[Op.Load], kinds[Op.Store]) == (1, 1)
    x = Tensor(np.arange(8, dtype=np.int32))
    x.assign(x * x + x)
    (item,) = x.schedule()
    assert Counter(n.op for n in lower(with_opts(item.ast), K.SCALAR))[Op.Load] == 1
    assert x.tolist() == [k * k + k for k in range(8)]


def test_stage_19() -> None:
    """One pointer of a PtrCat is that pointer; lanes are taken through all of a Cat; what is left verifies."""
    place = MEMORY.index(UOp.const(3, i32))
    assert rw(UOp.new(Op.PtrCat, (place,)), "gep_pushing") is place
    first, second = (UOp.vectorize(*(UOp.var(n, i32) for n in names)) for names in ("ab", "cd"))
    out = UOp.new(Op.DefineGlobal, (), 1, i32.ptr(8)).index(UOp.const(0, i32))
    after = stage(19, K.kernel(out.store(UOp.new(Op.Cat, (first, second)).gep(3, 0))))
    assert Op.Cat not in {n.op for n in after.toposort()}
    held = {1: [0] * 8}
    interpret.run(after, held, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert held[1][:2] == [4, 1]
    for kernel in (K.matmul(12, 5, 32), K.rows(6, 24)):
        program = programs(kernel)[18]
        verify(program, 19)
        assert isinstance(program, UOp)
        assert not {Op.PtrCat, Op.Cat} & {n.op for n in program.toposort()}


def test_freed_memory_is_handed_out_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the CPU, as CuPy's pool does for a GPU; `morok doctor` tells how much is held."""
    first = Tensor(np.ones(54_321, np.float32)) * 2
    address = first.numpy().ctypes.data
    reused = CPU_POOL.reused
    del first
    again = Tensor(np.ones(54_321, np.float32)) * 3
    assert again.numpy().ctypes.data == address
    assert CPU_POOL.reused > reused
    assert main(["doctor", "--json"]) == 0
    assert f"{CPU_POOL.reused} reused" in json.loads(capsys.readouterr().out)["memory"]


def test_floor_division() -> None:
    assert (Tensor([-7]) // 2).tolist() == [-4]
    assert (Tensor([-7]) % 2).tolist() == [1]
    a = np.array([-9, -8, -1, 0, 1, 7, 9], np.int32)
    for d in (-7, -2, -1, 1, 2, 3, 8):
        np.testing.assert_array_equal((Tensor(a) // d).numpy(), a // d)
        np.testing.assert_array_equal((Tensor(a) % d).numpy(), a % d)


@pytest.mark.parametrize("op", [Op.FloorDiv, Op.FloorMod])
def test_floor_division_costs_no_more_where_bounds_allow(op: Op) -> None:
    """From 0 up it is the quotient, or remainder, of the machine: not one op more."""
    plain = {Op.FloorDiv: Op.Idiv, Op.FloorMod: Op.Mod}[op]
    for divisor in (8, 7):
        x, d = UOp.var("x", i32, 0, 1000), UOp.const(divisor, i32)
        floor, cut = (
            [n.op for n in lower(UOp.sink(MEMORY.index(0).store(UOp.new(o, (x, d)))), K.SCALAR)] for o in (op, plain)
        )
        assert floor == cut
        assert not {Op.Where, Op.Lt} & set(floor)


@pytest.mark.parametrize("target", ["CPU", "CUDA"])
def test_k_vectorize_and_no_output_upcast(target: str) -> None:
    """`kernels()` lists what was done to each."""

    def listed(**values: bool) -> str:
        with config.settings(**values):
            (kernel,) = (data(64, 48) @ data(48, 64, seed=1)).kernels(device=target)
        return " ".join(kernel.opts)

    plain, along, never = listed(), listed(k_vectorize=True), listed(no_output_upcast=True)
    assert "UPCAST" in plain
    assert "UNROLL" not in plain
    assert "UNROLL" in along
    assert "UPCAST" not in never


def test_threads_and_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with config.settings(threads=1, noopt=True):
        assert not any("THREAD" in o for k in data(1 << 12, 64).exp().kernels() for o in k.opts)
    with config.settings(threads=4):
        assert any(o.startswith("THREAD") for k in data(1 << 12, 64).exp().kernels() for o in k.opts)
    monkeypatch.setenv("MOROK_DEVICE", "NULL")
    assert Tensor([1.0]).device == "NULL"


def test_null_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is compiled, nothing is run: kernels are counted where there is nothing to run them on."""
    make: dict[str, Callable[[], Tensor]] = {
        "mlp": lambda: (Tensor.empty(1, 784) @ Tensor.empty(784, 128)).relu() @ Tensor.empty(128, 10),
        "conv": lambda: Tensor.empty(1, 3, 16, 16).conv2d(Tensor.empty(4, 3, 3, 3)),
    }

    def never(*_: object) -> None:
        raise AssertionError("a kernel ran")

    with config.settings(device="NULL"):
        monkeypatch.setattr(thread_pool.Job, "run", never, raising=False)
        for name, count in (("mlp", 2), ("conv", 1)):
            t = make[name]()
            assert t.device == "NULL"
            assert len(t.schedule()) <= count
            prepared = t.prepare()
            assert {k.kernel.backend for k in prepared.kernels} == {"NULL"}
            assert all("define void" in k.kernel.code for k in prepared.kernels)
            with pytest.raises(DeviceError, match="NULL has no elements"):
                t.numpy()


def test_the_book() -> None:
    """Its chapters stand in docs/ and rules/, the rules' from their sources; tests/tools run every snippet."""
    pages = {p.name: p.read_text() for p in (ROOT / "docs").glob("*.md")}
    assert {"tutorial.md", "pipeline.md", "ops.md", "symptoms.md", "glossary.md", "comparison.md"} <= set(pages)
    examples = sorted(p.name for p in (ROOT / "examples").glob("book_*.py"))
    assert len(examples) == 6
    assert all(name in pages["tutorial.md"] for name in examples)
    assert sum(f": stage {n}: " in pages["pipeline.md"] for n in range(1, 23)) == 22
    assert all(f"`{entry.name}`" in pages["ops.md"] for entry in TABLE.entries.values())
    assert all(len(pages[name]) > 1000 for name in ("symptoms.md", "glossary.md", "comparison.md"))
    assert (ROOT / "rules" / "README.md").stat().st_size > 5000
