"""Values on several devices: the CPU is as many as a program asks for, and AllReduce has its value on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, UOp, config
from morok.errors import DeviceError, DTypeError, IRError, IRTypeError, ShapeError, UsageError
from morok.ir import interpret
from morok.ir.op import Op
from morok.runtime.device import device

Array = np.ndarray[Any, Any]
NAMES = ("CPU", "CPU:1", "CPU:2")
FOLDS: dict[str, Callable[..., Array]] = {
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
}


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.float32)


def device_node() -> UOp:
    return UOp.new(Op.Device, (), "CPU")


def test_names_of_cpus() -> None:
    assert device("CPU:0") is device("cpu") is device("CPU:00")
    one = device("cpu:1")
    assert one is device("CPU:1") is not device("CPU")
    assert one.name == "CPU:1"
    assert Tensor([1.0], device="cpu:1").device == "CPU:1"
    assert repr(Tensor(np.float32([1.0]), device="CPU:1")) == "<Tensor (1,) f32 CPU:1 realized [1.]>"
    for wrong in ("CPU:", "CPU:64", "CPU:-1", "CPU:1:2", "CUDA:1", "CPU:x", "CPU: 1", "CPU:\u0661"):
        with pytest.raises(DeviceError, match="there is no device"):
            Tensor([1.0], device=wrong)


def test_each_has_memory_of_its_own() -> None:
    a = Tensor(data(3, 4))
    b = a.to("CPU:1")
    assert b.device == "CPU:1"
    b[0] = 9.0
    np.testing.assert_array_equal(a.numpy(), data(3, 4))
    assert b.to("CPU").numpy()[0].tolist() == [9.0] * 4
    with pytest.raises(DeviceError, match="one device"):
        a + b
    np.testing.assert_array_equal(
        (b * 2).sum(0).numpy(), np.vstack([np.full((1, 4), 9, np.float32), data(3, 4)[1:]]).sum(0) * 2
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_reduce(op: str, count: int) -> None:
    given = [data(4, 5, seed=k) for k in range(count)]
    expected = FOLDS[op](given)
    parts = [(Tensor(x, device=name) + 1) - 1 for x, name in zip(given, NAMES, strict=False)]
    totals = Tensor.all_reduce(parts, op)
    assert [t.device for t in totals] == list(NAMES[:count])
    for t in totals:
        np.testing.assert_array_equal((t * 2).numpy(), expected * 2)
        assert t.realize().buffer is not None
    assert len({t.numpy().ctypes.data for t in totals}) == count  # memory of its own on each
    for part, x in zip(parts, given, strict=True):
        np.testing.assert_array_equal(part.numpy(), x)
    with config.settings(cpu_backend="interpreter"):
        for t in Tensor.all_reduce(parts, op):
            np.testing.assert_array_equal(t.numpy(), expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["bool", "i8", "u64", "f16", "bf16", "f64"])
def test_all_reduce_at_every_dtype(dtype: str) -> None:
    """As the elements would be folded along an axis, in the same dtype; wrapped where they do not fit."""
    given = [data(6, seed=k) * 30 for k in range(3)]
    for op in FOLDS:
        parts = [Tensor(abs(x)).cast(dtype).to(name) for x, name in zip(given, NAMES, strict=True)]
        one, _, three = Tensor.all_reduce(parts, op)
        assert one.dtype is parts[0].dtype
        a, b, c = (p.to("CPU") for p in parts)
        if dtype == "bool":
            wanted = a | b | c if op in ("sum", "max") else a & b & c
        else:
            wanted = {
                "sum": a + b + c,
                "prod": a * b * c,
                "max": a.maximum(b).maximum(c),
                "min": a.minimum(b).minimum(c),
            }[op]
        assert one.tolist() == three.tolist() == wanted.tolist()


def test_what_all_reduce_refuses() -> None:
    a, b = Tensor(data(2, 3)), Tensor(data(2, 3), device="CPU:1")
    with pytest.raises(ShapeError, match="at least one"):
        Tensor.all_reduce([])
    with pytest.raises(ShapeError, match=r"shapes \(2, 3\) and \(3, 2\)"):
        Tensor.all_reduce([a, b.T])
    with pytest.raises(DTypeError, match="f32 and f64"):
        Tensor.all_reduce([a, b.cast("f64")])
    with pytest.raises(DeviceError, match="one tensor on each device"):
        Tensor.all_reduce([a, a])
    with pytest.raises(UsageError, match="op of all_reduce"):
        Tensor.all_reduce([a, b], "mean")
    with pytest.raises(DTypeError):
        Tensor.all_reduce(a)  # type: ignore[arg-type]
    null = Tensor(data(2, 3), device="NULL")
    with pytest.raises(DeviceError, match="cannot read memory of"):
        Tensor.all_reduce([a, null])[0].realize()


def contents_of(tensors: list[Tensor]) -> dict[UOp, list[Any]]:
    """The elements of realized tensors, by their Buffer."""
    return {n: t.numpy().ravel().tolist() for t in tensors for n in t.uop.toposort() if n.op is Op.Buffer}


def graphs(x: UOp, y: UOp) -> dict[str, UOp]:
    """Graphs over a value on two devices."""
    stack = UOp.new(Op.MStack, (x, y))
    total = UOp.new(Op.AllReduce, (stack, device_node()), Op.Add)
    six = UOp.const(6)
    return {
        "a total": total,
        "a total of squares": UOp.new(Op.AllReduce, (stack * stack, device_node()), Op.Max),
        "what each has of the total": stack / total,
        "a total of sums": UOp.new(
            Op.AllReduce, (UOp.new(Op.ReduceAxis, (stack,), (Op.Add, (0,))), device_node()), Op.Add
        ),
        "a view": UOp.new(Op.Reshape, (stack, six)) + UOp.new(Op.Reshape, (total, six)),
        "a total of a total": UOp.new(Op.AllReduce, (total, device_node()), Op.Mul),
        "a stack of stacks": UOp.new(Op.MStack, (stack * 2.0, stack * 3.0)),
        "no stack": UOp.new(Op.AllReduce, (x, device_node()), Op.Add),
    }


@pytest.mark.parametrize("name", graphs(Tensor(data(2, 3)).uop, Tensor(data(2, 3)).uop))
def test_kernels_compute_what_is_interpreted(name: str) -> None:
    tensors = [Tensor(data(2, 3, seed=k) + 7, device=NAMES[k]) for k in range(2)]
    root = graphs(*[t.uop for t in tensors])[name]
    contents = contents_of(tensors)
    for n in (0, 1):
        chosen = UOp.new(Op.MSelect, (root,), n)
        flat, shape = interpret.tensor(chosen, contents)
        made = Tensor._make(chosen, NAMES[n])
        assert made.shape == shape
        np.testing.assert_allclose(made.numpy().ravel(), flat, rtol=1e-6)
    flat, shape = interpret.tensor(root, contents)
    first = Tensor._make(root, "CPU")
    assert first.shape == shape
    np.testing.assert_allclose(first.numpy().ravel(), flat, rtol=1e-6)


def test_parts_of_one_tensor() -> None:
    tensors = [Tensor(data(2, 3, seed=k), device=NAMES[k]) for k in range(2)]
    contents = {
        n: data(2, 3, seed=k).ravel().tolist()
        for k, t in enumerate(tensors)
        for n in t.uop.toposort()
        if n.op is Op.Buffer
    }
    for axis in (None, 0, 1):
        node = UOp.new(Op.Multi, tuple(t.uop for t in tensors), axis)
        whole = data(2, 3) if axis is None else np.concatenate([data(2, 3), data(2, 3, seed=1)], axis)
        assert node.shape == whole.shape
        np.testing.assert_array_equal(Tensor._make(node, "CPU").numpy(), whole)
        flat, shape = interpret.tensor(node, contents)
        assert (flat, shape) == (whole.ravel().tolist(), whole.shape)


def test_devices_that_are_not_there() -> None:
    x = Tensor(data(2), device="CPU").uop
    y = Tensor(data(2, seed=1), device="CPU:1").uop
    contents = {n: [1.0, 2.0] for u in (x, y) for n in u.toposort() if n.op is Op.Buffer}
    stack, three = UOp.new(Op.MStack, (x, y)), UOp.new(Op.MStack, (x, y, x))
    for wrong, said in (
        (UOp.new(Op.MSelect, (stack,), 2), "no device 2 of a value on 2 devices"),
        (stack + three, "2 and 3 devices"),
    ):
        with pytest.raises(IRTypeError, match=said):
            Tensor._make(wrong, "CPU").numpy()
        with pytest.raises(IRError, match=said):
            interpret.tensor(wrong, contents)
