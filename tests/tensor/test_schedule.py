"""What becomes a kernel, in what order, and what is remembered."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from interpreted import compute, run

from morok import Tensor, Variable, dtypes
from morok.errors import BindError, DTypeError, ShapeError
from morok.ir.op import AxisType, Op
from morok.passes import rangeify
from morok.passes.rangeify.state import MOVEMENT
from morok.runtime.memory import parallel_groups
from morok.tensor import registry, schedule


def data(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def count(t: Tensor) -> int:
    return len(t.schedule())


# Upper bounds, observed in another scheduler (goldens of the specification).
COUNTS: list[tuple[str, Any, int]] = [
    ("add", lambda: data(100, 100) + data(100, 100), 1),
    ("matmul 64", lambda: data(64, 64) @ data(64, 64), 1),
    ("matmul 4", lambda: data(4, 4) @ data(4, 4), 1),
    ("sum", lambda: data(64, 128).sum(1), 1),
    ("softmax", lambda: data(8, 16).softmax(-1), 3),
    ("argmax", lambda: data(8, 16).argmax(-1), 2),
    ("pad", lambda: data(30, 30).pad(((1, 1), (1, 1))) + 1, 1),
    ("permute", lambda: data(4, 8) + data(8, 4).permute(1, 0), 1),
    ("flip", lambda: data(8).flip(0) + 1, 1),
    ("shrink", lambda: data(8, 8).shrink(((1, 5), (2, 6))) * 2, 1),
    ("conv2d", lambda: data(1, 3, 16, 16).conv2d(data(4, 3, 3, 3)), 1),
    ("mlp", lambda: (data(1, 784) @ data(784, 128)).relu() @ data(128, 10), 2),
    ("mlp and softmax", lambda: ((data(9, 64) @ data(64, 64)).relu() @ data(64, 10)).softmax(-1), 5),
    ("mean", lambda: (lambda x: x - x.mean(-1, keepdim=True))(data(8, 16)), 2),
    ("big sum", lambda: Tensor.empty(4194304).sum(), 2),
    ("cumsum", lambda: data(64).cumsum(0), 1),
    ("arange", lambda: Tensor.arange(10).sum(), 1),
    ("max - min", lambda: (lambda x: x.max() - x.min())(data(64, 64)), 1),
    ("where", lambda: (data(16) > 0).where(data(16), 0.0), 1),
    ("gather", lambda: data(16)[Tensor([1, 2, 3])], 1),
    ("sum + max", lambda: (lambda x: x.sum() + x.max())(data(16)), 1),
    ("sum 32767", lambda: Tensor.empty(32767).sum(), 1),
    ("sum 32768", lambda: Tensor.empty(32768).sum(), 2),
    ("constant", lambda: Tensor.ones(4) + 1, 0),
    ("stored constant", lambda: (Tensor.ones(4) * 0).contiguous(), 1),
    ("pad and shrink", lambda: data(4).pad(((2, 1),)).shrink(((2, 6),)), 0),
    ("reshape", lambda: data(4, 4).reshape(16), 0),
    ("contiguous twice", lambda: ((data(4) + 1).contiguous() * 2).contiguous(), 2),
]


@pytest.mark.parametrize(("name", "program", "most"), COUNTS, ids=[c[0] for c in COUNTS])
def test_never_more_kernels_than_necessary(name: str, program: Any, most: int) -> None:
    assert count(program()) <= most


def test_kernels_hold_no_views_and_number_their_ranges() -> None:
    t = (data(6, 4).permute(1, 0).reshape(2, 12).pad(((0, 0), (1, 1))).flip(1) + 1).sum(0)
    (item,) = t.schedule()
    nodes = item.ast.toposort()
    assert not {n.op for n in nodes} & (MOVEMENT | {Op.ReduceAxis, Op.Bufferize, Op.Buffer})
    ranges = [n for n in nodes if n.op is Op.Range]
    assert sorted(r.field("id") for r in ranges) == list(range(len(ranges)))
    assert all(r.field("renumbered") for r in ranges)
    assert {r.field("axis") for r in ranges} == {AxisType.Loop, AxisType.Reduce}
    assert all(len(n.src) == 2 for n in nodes if n.op is Op.Index)
    assert sorted(n.arg for n in nodes if n.op is Op.DefineGlobal) == [0, 1]
    assert len(item.buffers) == 2
    assert item.fixedvars == {}


def test_kernels_remember_the_users_lines() -> None:
    t = (data(4, 6) * 1.25).sum(1)
    (item,) = t.schedule()
    (product,) = [n for n in item.ast.toposort() if n.op is Op.Mul and n.dtype is dtypes.f32]
    assert "`data(4, 6) * 1.25`" in product.provenance()[0]


def test_reductions_side_by_side_share_a_loop() -> None:
    x = data(64)
    (item,) = (x.max() - x.min()).schedule()
    assert sum(1 for n in item.ast.toposort() if n.op is Op.Range) == 1


def test_dependencies_and_groups() -> None:
    a, b = data(8, 8), data(8, 8)
    c = a.sum(0).contiguous() + b.sum(1).contiguous()
    items = c.schedule()
    assert [i.dependencies for i in items] == [[], [], [0, 1]]
    assert parallel_groups([i.dependencies for i in items]) == [[0, 1], [2]]


def test_eight_passes_by_name() -> None:
    names: list[str] = []
    rangeify.rangeify([(data(4, 4).sum(0) + 1).uop], "CPU", lambda name, _: names.append(name))
    assert len(names) == 8
    assert "core rangeify" in names


def test_equal_expressions_are_one_graph() -> None:
    a, b = data(4), data(4)
    assert (a + b).uop is (a + b).uop
    assert (a + b).uop is not (b + a).uop
    assert a.reshape(1, 4).buffer is a.buffer
    assert a.reshape(2, 2).permute(1, 0).buffer is a.buffer
    assert (a + b).buffer is None


def test_the_same_structure_is_scheduled_once() -> None:
    def program() -> Tensor:
        x = data(3, 5)
        return (x * 2 + 1).sum(1).exp()

    program().schedule()
    before = schedule.COUNTERS.schedules
    program().schedule()
    assert schedule.COUNTERS.schedules == before


def test_recomputation_stays_bounded() -> None:
    x = data(32)
    for _ in range(24):  # 2^24 ways down, if nothing were stored
        x = x + x.flip(0)[:, None].reshape(32).pad(((1, 0),)).shrink(((0, 32),))
    items = x.schedule()
    assert len(items) < 30
    assert max(len(i.ast.toposort()) for i in items) < 300


def test_formulas_read_twice_are_stored_before_they_explode() -> None:
    x, expected = Tensor.arange(13), np.arange(13)
    for _ in range(40):  # each step reads the one before at two places: 2^40 terms, were none stored
        x = (x + x.flip(0) % 7).contiguous()
        expected = expected + expected[::-1] % 7
    assert 1 < count(x) < 40
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.long
def test_long_chains_and_wide_diamonds() -> None:
    x = data(4)
    for _ in range(3000):
        x = x + 1
    assert count(x) == 1
    y = data(4)
    for _ in range(20):
        y = y + y
    assert count(y) == 1
    np.testing.assert_allclose(run(y)[0], data(4).numpy() * 2**20)


@pytest.mark.long
def test_live_tensors_only() -> None:
    gc.collect()
    before = len(registry.tensors())
    kept = data(4)
    many = [kept + i for i in range(50)]
    assert len(registry.tensors()) == before + 51
    del many
    gc.collect()
    assert len(registry.tensors()) == before + 1


@pytest.mark.long
def test_memory_dies_with_its_tensors() -> None:
    import weakref

    t = data(64)
    view = t.reshape(8, 8)
    memory = weakref.ref(t.buffer)
    del t
    gc.collect()
    assert memory() is not None
    del view
    gc.collect()
    assert memory() is None


def test_graphs_built_by_threads_are_the_same() -> None:
    a, b = data(16), data(16)
    graphs: list[Any] = [None] * 8

    def build(i: int) -> None:
        graphs[i] = [((a + b * k).reshape(4, 4).sum(0) + k).uop for k in range(100)]

    threads = [threading.Thread(target=build, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(x is y for g in graphs[1:] for x, y in zip(g, graphs[0], strict=True))


def test_assignments_are_ordered() -> None:
    a, b = data(4), data(4)
    was_a, was_b = a.numpy().copy(), b.numpy().copy()
    a.assign(a + b)
    b.assign(a)
    x, y = run(a, b)
    np.testing.assert_allclose(x, was_a + was_b)
    np.testing.assert_allclose(y, was_a + was_b)


def test_readers_of_old_elements_come_first() -> None:
    a = data(4)
    twice = a * 2
    a.assign(a + 1)
    items = a.schedule()
    assert len(items) == 2
    assert items[1].dependencies == [0]
    assert twice.shape == (4,)


def test_assignment_from_elsewhere_in_itself_takes_a_copy() -> None:
    a = data(6)
    was = a.numpy().copy()
    a.assign(a.flip(0))
    assert count(a) == 2
    np.testing.assert_array_equal(run(a)[0], was[::-1])


def test_wrong_assignments() -> None:
    with pytest.raises(ShapeError):
        data(4).assign(data(5))
    with pytest.raises(DTypeError):
        data(4).assign(Tensor([1, 2, 3, 4]))


def test_reading_before_and_after_an_assignment() -> None:
    a = data(4)
    was = a.numpy().copy()
    old = a * 2
    a.assign(a + 1)
    np.testing.assert_allclose(run(old + a)[0], was * 3 + 1, rtol=1e-6)
    a = data(4)
    both = (a * 2) + a.assign(a + 1)  # nobody holds a * 2: what `a` was is copied
    np.testing.assert_allclose(run(both)[0], was * 3 + 1, rtol=1e-6)


def test_variables() -> None:
    n = Variable("n", 1, 8)
    with pytest.raises(BindError):
        n.bind(9)
    x = data(8, 4)
    sizes = set()
    for k in (1, 3, 8):
        part = x.shrink(((0, n.bind(k)), (0, 4)))
        out = compute(part.sum(0) + part.max(0))
        np.testing.assert_allclose(out, x.numpy()[:k].sum(0) + x.numpy()[:k].max(0), rtol=1e-5)
        rows = compute(part * 2)
        np.testing.assert_allclose(rows, x.numpy()[:k] * 2)
        sizes.add((part * 2).schedule()[0].ast)
    assert len(sizes) == 1
    assert Tensor.empty(n.node, 4).sum(1).shape == (n.node,)
    with pytest.raises(BindError):
        (x.shrink(((0, n.bind(2)), (0, 4))).sum(0) + x.shrink(((0, n.bind(3)), (0, 4))).sum(0)).schedule()


def test_a_result_that_is_memory_already() -> None:
    a = Tensor(np.ones(1, np.float32))
    wide = a.unsqueeze(0).expand(1, 1)
    total = wide.sum(0) + a.flip(0)
    np.testing.assert_array_equal(run(total)[0], [2.0])
    assert count(wide.flip(0).flip(0).expand(1, 1)) == 0


def test_default_dtypes() -> None:
    assert Tensor([1.5]).dtype is dtypes.f32
    assert Tensor([1]).dtype is dtypes.i64
    assert Tensor([True]).dtype is dtypes.bool
    assert Tensor(np.array([1.5])).dtype is dtypes.f64
    assert Tensor([[1, 2], [3, 4]], dtype="u8").dtype is dtypes.u8
    with pytest.raises(ShapeError):
        Tensor([[1, 2], [3]])
    with pytest.raises(DTypeError):
        Tensor(["a"])
    with pytest.raises(DTypeError):
        Tensor(object())
