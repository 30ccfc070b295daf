"""Every row of the feature table's part 1.8: the eight rangeify passes, kernels, their order and their memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from acceptance.notation import buffer, shaped
from morok import Tensor, config
from morok.ir import interpret
from morok.ir.op import AxisType, Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes import pipeline, rangeify
from morok.passes.kernels import split_kernels
from morok.passes.rangeify.state import State
from morok.runtime.memory import parallel_groups
from morok.tensor import plans, schedule, scheduling
from tests.passes import kernels as K

MOVEMENT = {Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip}


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def states(*roots: UOp) -> dict[str, list[UOp]]:
    """All nodes of the graph after each pass, operands first."""
    found: dict[str, list[UOp]] = {}

    def look(name: str, state: State) -> None:
        found[name] = (state.sink if state.sink is not None else UOp.sink(*state.roots)).toposort()

    rangeify.rangeify(list(roots), "CPU", look)
    return found


def ranged(root: UOp) -> State:
    return rangeify.rangeify([root], "CPU")


def counted(program: Tensor) -> int:
    return len(program.schedule())


def test_pass_1_range_assignment() -> None:
    """Every dimension of a stored node has a Range, every demand an index for each dimension; the realize map names both."""
    found: list[State] = []

    def look(name: str, state: State) -> None:
        if name == "range assignment":
            found.append(state)
            total = next(n for n in state.order if n.op is Op.ReduceAxis)
            assert [n.op for n in state.order if n in state.stored] == [Op.Contiguous, Op.Mul]
            outputs = [[i.src[0].arg for i in state.stored[n].indices] for n in state.order if n in state.stored]
            assert outputs == [[6], [2, 6]]
            (asked,) = state.demands[total].values()
            assert [(r.src[0].arg, r.arg[1]) for r in asked.ranges] == [(4, AxisType.Reduce)]
            for node, demands in state.demands.items():
                assert all(len(d.indices) == len(shape_of(node)) for d in demands.values())

    program = data(4, 6).sum(0).contiguous().reshape(1, 6).expand(2, 6) * 2
    rangeify.rangeify([program.uop], "CPU", look)
    assert len(found) == 1


def test_pass_2_early_rewrites() -> None:
    a = shaped(4, 4)
    same = UOp.new(Op.Reshape, (a, UOp.const(4), UOp.const(4)))
    kept = UOp.new(Op.Detach, (UOp.new(Op.Reshape, (same, UOp.const(2), UOp.const(8))),))
    out = states(kept + kept)["early rewrites"]
    assert Op.Detach not in {n.op for n in out}
    (view,) = [n for n in out if n.op is Op.Reshape]
    assert view.src[0].op is Op.Buffer
    assert counted(data(4, 4).reshape(4, 4)) == 0


@pytest.mark.parametrize(("elements", "kernels"), [(32767, 1), (32768, 2), (65536, 2), (1 << 22, 2)])
def test_pass_3_split_of_large_reductions(elements: int, kernels: int) -> None:
    assert counted(Tensor.empty(elements).sum()) == kernels
    if elements <= 65536:
        values = np.random.default_rng(1).integers(-9, 9, elements).astype(np.int64)
        assert Tensor(values).sum().item() == values.sum()
        assert Tensor(values).max().item() == values.max()


FORMULAS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[int, int], int | None]]] = {
    "RESHAPE": (lambda t: t.reshape(6, 4), lambda i, j: i * 4 + j),
    "PERMUTE": (lambda t: t.permute(1, 0), lambda i, j: j * 6 + i),
    "EXPAND": (lambda t: t[:1].expand(5, 6), lambda i, j: j),
    "PAD": (lambda t: t.pad(((1, 2), (0, 3))), lambda i, j: (i - 1) * 6 + j if 1 <= i < 5 and j < 6 else None),
    "SHRINK": (lambda t: t.shrink(((1, 3), (2, 6))), lambda i, j: (i + 1) * 6 + j + 2),
    "FLIP": (lambda t: t.flip(0), lambda i, j: (3 - i) * 6 + j),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_pass_4_core_rangeify(name: str) -> None:
    """A view of (4, 6) is one index into its buffer: at every place the element that the view shows there, or 0 in padding."""
    view, element = FORMULAS[name]
    t = view(Tensor(np.arange(1, 25, dtype=np.int32).reshape(4, 6)))
    (item,) = (t * 1).contiguous().schedule()
    nodes = item.ast.toposort()
    assert not {n.op for n in nodes} & {*MOVEMENT, Op.ReduceAxis, Op.Bufferize}
    (read,) = [n for n in nodes if n.op is Op.Index and n.src[0].arg == 1]
    assert len(read.src) == 2
    rows, columns = t.shape
    held = {0: [0] * (rows * columns), 1: list(range(1, 25))}
    interpret.run(item.ast, held)
    wanted = [element(i, j) for i in range(rows) for j in range(columns)]
    assert held[0] == [0 if at is None else at + 1 for at in wanted]


def test_pass_5_buffer_folding() -> None:
    assert counted(data(4).pad(((2, 1),)).shrink(((2, 6),))) == 0
    assert counted(Tensor.ones(4) + 1) == 0
    assert counted((Tensor.ones(4) * 0).contiguous()) == 1
    stored = (Tensor.ones(4, 4) * 3).contiguous()
    out = states((stored + data(4, 4)).uop)
    assert [n.op for n in out["core rangeify"]].count(Op.Bufferize) == 2
    assert [n.op for n in out["buffer folding"]].count(Op.Bufferize) == 1


def test_pass_6_dead_axes() -> None:
    """What is stored over an axis along which it is the same everywhere is stored without that axis."""
    row = (data(8).exp() + 1).reshape(1, 8).expand(4, 8).contiguous()
    root = (row.flip(1) * 2 + row).uop
    before, after = (states(root)[name] for name in ("core rangeify", "dead axis removal"))
    assert [len(n.src) - 1 for n in before if n.op is Op.Bufferize] == [2, 2]
    assert [len(n.src) - 1 for n in after if n.op is Op.Bufferize] == [1, 2]


COUNTS: dict[str, tuple[Callable[[], Tensor], int]] = {
    "softmax": (lambda: data(8, 16).softmax(-1), 3),
    "argmax": (lambda: data(8, 16).argmax(-1), 2),
    "x - mean": (lambda: (lambda x: x - x.mean(-1, keepdim=True))(data(8, 16)), 2),
    "mlp relu": (lambda: (data(1, 784) @ data(784, 128)).relu() @ data(128, 10), 2),
    "x.sum() + x.max()": (lambda: (lambda x: x.sum() + x.max())(data(16)), 1),
    "conv": (lambda: data(1, 3, 16, 16).conv2d(data(4, 3, 3, 3)), 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_pass_7_buffer_removal(name: str) -> None:
    program, most = COUNTS[name]
    assert counted(program()) <= most


def test_pass_8_reduction_simplification() -> None:
    """A product with a number leaves the sum, and a range that the summed value does not know becomes a factor."""
    (item,) = (Tensor(np.arange(32, dtype=np.int64)) * 3).sum().schedule()
    simplified = pipeline.run(pipeline.STAGES[1], item.ast, K.CPU)
    assert isinstance(simplified, UOp)
    (fold,) = [n for n in simplified.toposort() if n.op is Op.Reduce]
    assert fold.src[0].op is Op.Index
    repeated = Tensor(np.arange(4, dtype=np.int32)).reshape(4, 1).expand(4, 10)
    out = states(repeated.sum(1).uop)["reduction simplification"]
    assert not {Op.Reduce, Op.ReduceAxis} & {n.op for n in out}
    assert repeated.sum(1).tolist() == [0, 10, 20, 30]


def test_the_driver_of_eight_passes(capsys: pytest.CaptureFixture[str]) -> None:
    with config.settings(debug="ir"):
        (data(3, 7, seed=8) * 2).sum(0).schedule()
    titles = [line.split(": ", 2) for line in capsys.readouterr().err.splitlines() if line.startswith("--- schedule: ")]
    assert [t[1] for t in titles] == [f"pass {n}" for n in range(1, 9)]
    assert [t[2].removesuffix(" (no change)") for t in titles] == [name for name, _ in rangeify.PASSES]


def test_kernel_split_phase_1() -> None:
    """A Bufferize becomes a Store under the End of its ranges."""
    state = ranged((data(3, 5) + 1).uop)
    assert state.sink is not None
    (filled,) = [n for n in state.sink.toposort() if n.op is Op.Bufferize]
    (kernel,) = split_kernels(state.sink, lambda dtype, size: buffer(7, size)).kernels
    (end,) = kernel.src[0].src
    assert (end.op, end.src[0].op) == (Op.End, Op.Store)
    assert [r.src[0].arg for r in end.src[1:]] == [r.src[0].arg for r in filled.src[1:]] == [3, 5]


def test_kernel_split_phase_2() -> None:
    """A Store becomes a Kernel around a Sink: one for a product of matrices, its arguments beside it."""
    (item,) = (data(4, 4) @ data(4, 4, seed=1)).schedule()
    assert item.kernel.op is Op.Kernel
    assert item.ast.op is Op.Sink
    assert [s.op for s in item.kernel.src] == [Op.Sink, Op.Buffer, Op.Buffer, Op.Buffer]


def test_dependencies() -> None:
    """Reading after writing, writing after reading and after writing are After edges; of a circle one side is copied first."""
    a, b = data(4), data(4, seed=1)
    was_a, was_b = a.numpy().copy(), b.numpy().copy()
    a.assign(a + b)
    b.assign(a)
    np.testing.assert_array_equal(b.numpy(), was_a + was_b)
    np.testing.assert_array_equal(a.numpy(), was_a + was_b)
    a, b = data(4), data(4, seed=1)
    old_a, old_b = a.flip(0), b.flip(0)
    a.assign(old_b)
    b.assign(old_a)
    del old_a, old_b  # each alone would be read before it is overwritten
    Tensor.realize_batch([a, b])
    np.testing.assert_array_equal(a.numpy(), was_b[::-1])
    np.testing.assert_array_equal(b.numpy(), was_a[::-1])
    first, second = ((data(4) + 1).contiguous().flip(0) * 2).schedule()
    (read,) = [s for s in second.kernel.src if s.op is Op.After]
    assert read.src[1] is first.kernel


def test_renumbering_of_globals() -> None:
    """Argument 0 is the output, then come the inputs, without gaps; ranges are numbered from 0 too."""
    a, b = data(3, 4), data(4, 3, seed=1)
    (item,) = (a + b.T * a).schedule()
    (store,) = [n for n in item.ast.toposort() if n.op is Op.Store]
    assert store.src[0].src[0].arg == 0
    assert sorted(n.arg for n in item.ast.toposort() if n.op is Op.DefineGlobal) == [0, 1, 2]
    assert item.buffers[1:] == [a.buffer, b.buffer]
    assert sorted(n.arg[0] for n in item.ast.toposort() if n.op is Op.Range) == [0, 1]


def test_flattened_ranges() -> None:
    """An End or a Reduce closes Ranges, nothing else, in every kernel that a schedule hands on, and after every merge or cut."""
    programs = [COUNTS[name][0]() for name in COUNTS] + [view(data(4, 6)) * 2 for view, _ in FORMULAS.values()]
    for item in (i for program in programs for i in program.schedule()):
        found: list[UOp] = [item.ast]
        pipeline.lower(
            item.ast, K.CPU, lambda number, name, before, p, out=found: out.append(p) if number in (4, 5, 7) else None
        )
        for n in (n for ast in found for n in ast.toposort()):
            if n.op in (Op.End, Op.Reduce):
                assert {r.op for r in n.src[1:]} <= {Op.Range}


def test_buffer_limit() -> None:
    parts = [Tensor(np.full(16, 2.0**k, np.float64)) for k in range(40)]
    with config.settings(max_buffers=8):
        total = sum(parts[1:], parts[0])
        items = total.schedule()
        assert len(items) > 1
        assert all(len(i.buffers) <= 8 for i in items)
        assert total.tolist() == [2.0**40 - 1] * 16
    total = sum(parts[1:], parts[0]) * 1
    assert counted(total) == 1


def test_schedule_items() -> None:
    """A schedule's items say everything that is needed to run them."""
    t = data(8, 8).sum(0).contiguous() + data(8, 8, seed=1).sum(1).contiguous()
    items = schedule.create_schedule([t])
    assert [i.dependencies for i in items] == [[], [], [0, 1]]
    for i in items:
        assert i.ast is i.kernel.src[0]
        assert (i.ast.op, i.fixedvars) == (Op.Sink, {})
        assert [b.size for b in i.buffers] == [n.src[0].arg if n.op is Op.After else n.arg for n in i.kernel.src[1:]]


def test_schedule_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same structure on other data: nothing is rewritten."""

    def program(seed: int) -> Tensor:
        return ((data(5, 9, seed=seed) * 1.375 + 1).sum(1).exp() * 2).contiguous()

    first = program(1).numpy()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was scheduled or lowered again")

    for module, name in ((scheduling, "rangeify"), (pipeline, "run"), (plans, "lowered")):
        monkeypatch.setattr(module, name, never)
    np.testing.assert_array_equal(program(1).numpy(), first)
    assert program(2).numpy().shape == (5,)


def test_memory_planner() -> None:
    """Ten kernels in a row fill eleven buffers as scheduled, and share three: the input, the output, two between."""
    x = data(64)
    t = x
    for k in range(10):
        t = (t + k).contiguous()
    items = t.schedule()
    assert len(items) == 10
    assert len({id(b) for i in items for b in i.buffers}) == 11
    plan = t.prepare()
    used = {plan.buffers[b].address for step in plan.kernels for b in step.buffers}
    assert len(used) <= 4
    np.testing.assert_allclose(plan.execute().numpy(), x.numpy() + 45, rtol=1e-5)


def test_parallel_groups() -> None:
    a, b = data(8, 8).sum(0).contiguous(), data(8, 8, seed=1).sum(1).contiguous()
    c = a + b
    assert parallel_groups([i.dependencies for i in c.schedule()]) == [[0, 1], [2]]
    assert c.prepare().parallel_groups == [[0, 1], [2]]
