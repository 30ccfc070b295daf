"""Tensor, the lazy array: nothing is computed until a value is needed.

This module has its constructors, and the methods that compute. All other methods are functions in other modules, by theme; the
class body lists them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self, Unpack

from morok.arguments import choice, flag, instance, mistyped, several
from morok.caller import caller
from morok.config import settings
from morok.errors import DeviceError, DTypeError, JitValueError, ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.state import MOVEMENT, beneath
from morok.runtime.buffer import Buffer
from morok.tensor import (
    activation,
    argument_checks,
    axis_reductions,
    casts,
    contraction,
    convolution,
    creation,
    elements,
    elementwise,
    evenly_spaced,
    indexing,
    joining,
    linalg,
    loss,
    normalization,
    operators,
    random,
    registry,
    scan,
    searching,
    selection,
    sorting,
    stored,
    view_methods,
    viewed,
)
from morok.tensor import realize as realization
from morok.tensor.argument_checks import new_shape, only_tensors
from morok.tensor.base import Lazy, as_dtype, show
from morok.tensor.creation import dlpack_array
from morok.tensor.describing import current
from morok.tensor.elementwise_operands import as_operand, converted
from morok.tensor.keywords import Along, AlongOrFlat, other_names
from morok.tensor.operators import reflected
from morok.tensor.realize import KernelCode, kernels
from morok.tensor.schedule import ScheduleItem, create_schedule
from morok.tensor.view_methods import expanded, reshaped
from morok.tensor.writing import is_bound, on_variable, refuse_view, with_written

if TYPE_CHECKING:
    import numpy as np

    from morok.optimize.strategy import OptimizerConfig
    from morok.runtime.plan import ExecutionPlan

    Array = np.ndarray[Any, Any]


def _several(tensors: Sequence[Tensor], what: str) -> list[Tensor]:
    """A list of tensors, checked; DTypeError, with the function's name `what`, for anything else."""
    if isinstance(tensors, Tensor):
        raise DTypeError(f"{what} was given one Tensor", place=caller(), expected="a list of tensors")
    found = several(tensors, f"the argument of {what}", "a list of tensors", DTypeError)
    only_tensors(found, what)
    return found


def _stacked(parts: Sequence[Any], dtype: Any) -> Tensor:
    """Tensors, numbers and lists stacked along a new first axis; numbers and lists are operands beside the promoted dtype of the
    tensors, or converted to `dtype`.
    """
    tensors = [p for p in parts if isinstance(p, Tensor)]
    wanted = None if dtype is None else as_dtype(dtype)
    like = tensors[0].cast(promote(*[t.dtype for t in tensors]) if wanted is None else wanted)
    given = [
        p if isinstance(p, Tensor) else as_operand(like, p) if wanted is None else like._like(converted(like, p))
        for p in parts
    ]
    joined = Tensor.stack(given)
    return joined if wanted is None else joined.cast(wanted)


def _optimized(config: OptimizerConfig | None) -> AbstractContextManager[None]:
    """A context with the settings of `config`; None changes nothing."""
    if config is None:
        return nullcontext()
    from morok.optimize.strategy import OptimizerConfig  # lazy: realizing without one needs no optimizer's choices

    return settings(**instance(config, OptimizerConfig, "config", "an OptimizerConfig").settings())


class Tensor(Lazy):
    """A lazy array: a graph that describes its elements, computed when they are needed.

    `uop` is the graph, `device` the name of the device that computes it; `shape` and `dtype` come from the graph. Equal
    expressions over the same tensors have the same graph.

    data    a number, nested lists, an ndarray, a tensor. An ndarray is not copied if its layout allows (C order, writable,
            its own dtype, on the CPU): writes to either are visible in the other, as with torch.from_numpy.
            Tensor(array.copy()) has memory of its own
    dtype   the elements' dtype; by default NumPy's for arrays, and bool, i64 and f32 for Python's bool, int and float
    device  "CPU", "CUDA" or "NULL" (compiles, runs nothing); by default MOROK_DEVICE. "CPU:1" and so on are further devices
            on the same CPU

    ShapeError for lists of several lengths, DTypeError for a dtype that tensors do not have, DeviceError for an unknown
    device.

    >>> a = Tensor([[1, 2], [3, 4]])
    >>> a.shape, a.dtype, (a + 1).tolist()
    ((2, 2), i64, [[2, 3], [4, 5]])
    >>> (a + a).uop is (a + a).uop
    True
    """

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None, device: str | None = None) -> None:
        if isinstance(data, Tensor):
            self._uop = data.uop if dtype is None else data.cast(dtype).uop
            self.device = data.device
            made_of: Tensor | None = data
        else:
            made_of = None
            self.device = creation.default_device(device)
            if isinstance(data, (list, tuple)) and any(isinstance(d, Tensor) for d in data):
                joined = _stacked(data, dtype)
                self._uop, self.device = joined.uop, joined.device
            else:
                self._uop = creation.from_data(data, dtype, self.device)
        self._compiled, self._mark = None, None
        self._viewed = () if made_of is None else viewed.viewed_by(made_of, self._uop)
        registry.register(self)

    @classmethod
    def from_numpy(cls, array: Array) -> Self:
        """A tensor of an ndarray; both share memory if the layout allows, as in Tensor(array).

        DTypeError for a dtype that tensors do not have.

        >>> Tensor.from_numpy(np.array([1, 2], np.int32)).dtype
        i32
        """
        return cls(array)

    @classmethod
    def from_dlpack(cls, source: Any) -> Self:
        """A tensor of another library's array, without a copy if its layout allows. DTypeError if either library refuses.

        >>> Tensor.from_dlpack(np.array([1.0, 2.0])).tolist()
        [1.0, 2.0]
        """
        if not hasattr(source, "__dlpack__"):
            raise mistyped(source, "the source of from_dlpack", "an array of a library that speaks DLPack", DTypeError)
        return cls(dlpack_array(source))

    @classmethod
    def rand(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with uniform floats in [0, 1), multiples of 2**-p at a precision of p bits; by default f32.

        ShapeError for a negative size, DTypeError for an integer dtype.

        >>> x = Tensor.rand(2, 3)
        >>> x.shape, ((x >= 0) & (x < 1)).all().item()
        ((2, 3), True)
        """
        return random.rand(cls, shape, dtype, device)

    @classmethod
    def uniform(
        cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None, device: str | None = None
    ) -> Self:
        """A tensor of `shape` with uniform floats in low..=high (`high` only by rounding); by default f32.

        ShapeError for low > high or an infinite bound, DTypeError for an integer dtype.

        >>> x = Tensor.uniform(2, 3, low=-1.0, high=1.0)
        >>> x.shape, (x.abs() <= 1).all().item()
        ((2, 3), True)
        """
        return random.uniform(cls, shape, low, high, dtype, device)

    @classmethod
    def randint(cls, *shape: Any, low: int = 0, high: int = 10, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with uniform integers in low..high, `high` excluded; by default i64.

        Probabilities are equal up to a relative error of (high - low) / 2**64. ShapeError unless low < high fit the dtype,
        DTypeError for a float dtype.

        >>> x = Tensor.randint(2, 3, low=5, high=7)
        >>> x.shape, ((x == 5) | (x == 6)).all().item()
        ((2, 3), True)
        """
        return random.randint(cls, shape, low, high, dtype, device)

    @classmethod
    def randn(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with normally distributed floats of mean 0 and variance 1; by default f32.

        ShapeError for a negative size, DTypeError for an integer dtype.

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        return cls.normal(*shape, dtype=dtype, device=device)

    @classmethod
    def normal(
        cls, *shape: Any, mean: float = 0.0, std: float = 1.0, dtype: Any = None, device: str | None = None
    ) -> Self:
        """A tensor of `shape` with normally distributed floats (Box and Muller 1958); by default f32.

        ShapeError for a negative `std`, DTypeError for an integer dtype.

        >>> Tensor.normal(2, 3, mean=5.0, std=0.0).tolist()
        [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
        """
        return random.normal(cls, shape, mean, std, dtype, device)

    @classmethod
    def randperm(cls, n: int, device: str | None = None) -> Self:
        """The integers 0..n in random order, as i64 in one axis. ShapeError for a negative `n`.

        >>> sorted(Tensor.randperm(4).tolist())
        [0, 1, 2, 3]
        """
        return random.randperm(cls, n, device)

    @classmethod
    @other_names
    def concat(cls, tensors: Sequence[Self], axis: int | None = 0, **also: Unpack[AlongOrFlat]) -> Self:
        """The concatenation of tensors along `axis`, flattened first for None; dtypes promote.

        ShapeError unless their other sizes are equal and for no tensors, DeviceError for tensors on several devices.

        >>> Tensor.concat([Tensor([[1, 2]]), Tensor([[3, 4]])]).tolist()
        [[1, 2], [3, 4]]
        """
        return joining.concat(cls, tensors, axis)

    @classmethod
    @other_names
    def stack(cls, tensors: Sequence[Self], axis: int = 0, **also: Unpack[Along]) -> Self:
        """Tensors of one shape joined along a new axis; dtypes promote. ShapeError for different shapes and for no tensors.

        >>> Tensor.stack([Tensor([1, 2]), Tensor([3, 4])], 1).tolist()
        [[1, 3], [2, 4]]
        """
        return joining.stack(cls, tensors, axis)

    @classmethod
    def meshgrid(cls, *axes: Self, indexing: str = "xy") -> tuple[Self, ...]:
        """Each of these vectors repeated over the axes of the others; "xy" exchanges the first two axes, "ij" does not.

        ShapeError for tensors of two axes and for another indexing, DTypeError for anything but tensors.

        >>> [t.tolist() for t in Tensor.meshgrid(Tensor([1, 2]), Tensor([3]))]
        [[[1, 2]], [[3, 3]]]
        """
        return joining.meshgrid(axes, indexing)

    @classmethod
    def full(
        cls, shape: int | Sequence[Any], value: bool | int | float, dtype: Any = None, device: str | None = None
    ) -> Self:
        """A tensor of `shape` with `value` in every place; by default bool, i64 or f32, by the type of the number.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.full((2, 2), 7).tolist()
        [[7, 7], [7, 7]]
        """
        dims = new_shape((shape,))
        name = creation.default_device(device)
        return cls._make(creation.full(dims, value, dtype, name), name)

    @classmethod
    def zeros(cls, *shape: Any, dtype: Any = dtypes.f32, device: str | None = None) -> Self:
        """A tensor of `shape` (numbers or one sequence) with 0 in every place, by default f32.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.zeros(2, 2).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        return cls.full(new_shape(shape), 0, dtype, device)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = dtypes.f32, device: str | None = None) -> Self:
        """A tensor of `shape` (numbers or one sequence) with 1 in every place, by default f32.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.ones(2, dtype="i32").tolist()
        [1, 1]
        """
        return cls.full(new_shape(shape), 1, dtype, device)

    @classmethod
    def empty(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with arbitrary contents, by default f32.

        ShapeError for a negative size, DTypeError for a dtype that tensors do not have.

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        name = creation.default_device(device)
        return cls._make(creation.empty(new_shape(shape), dtype, name), name)

    @classmethod
    def arange(
        cls, start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: str | None = None
    ) -> Self:
        """The numbers start, start + step, .. below stop, as a vector: i64, or f32 if one is a float. arange(n) is arange(0, n).

        ShapeError for a step of 0 and for a number that is not finite.

        >>> Tensor.arange(5).tolist(), Tensor.arange(4, 0, -2).tolist()
        ([0, 1, 2, 3, 4], [4, 2])
        """
        name = creation.default_device(device)
        return cls._make(evenly_spaced.arange(start, stop, step, dtype, name), name)

    @classmethod
    def linspace(
        cls, start: float, stop: float, num: int, dtype: Any = None, device: str | None = None, endpoint: bool = True
    ) -> Self:
        """`num` evenly spaced numbers from `start` to `stop`, as a vector, by default f32; without `stop` if not `endpoint`.

        ShapeError for an end that is not finite and for a negative `num`.

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        count = argument_checks.whole(num, "num", 0)
        ends = flag(endpoint, "endpoint")
        return cls._make(evenly_spaced.linspace(start, stop, count, ends, dtype), creation.default_device(device))

    @classmethod
    def eye(cls, n_rows: int, n_cols: int | None = None, dtype: Any = None, device: str | None = None) -> Self:
        """A matrix [n_rows, n_cols] (square by default) with 1 on the diagonal and 0 elsewhere, by default f32.

        ShapeError for a negative size.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        rows = argument_checks.whole(n_rows, "n_rows", 0)
        columns = rows if n_cols is None else argument_checks.whole(n_cols, "n_cols", 0)
        return cls._make(creation.eye(rows, columns, dtype), creation.default_device(device))

    @classmethod
    def einsum(cls, formula: str, *operands: Any) -> Self:
        """The Einstein sum of a formula: letters for the axes of each operand, then of the result; other letters are summed over.

        `...` means further axes, which broadcast. Without `->` the result has the letters that occur once, in alphabetical
        order. Operands are contracted from left to right, two at a time, in one kernel each. ShapeError for a formula that
        does not fit the operands, DTypeError for anything but tensors.

        >>> Tensor.einsum("ij,jk->ik", Tensor([[1, 2]]), Tensor([[3], [4]])).tolist()
        [[11]]
        """
        return contraction.einsum(cls, formula, operands)

    @property
    def T(self) -> Self:
        """The elements with the axes in reverse order.

        >>> Tensor.zeros(2, 3, 4).T.shape
        (4, 3, 2)
        """
        return self.permute(*range(self.ndim - 1, -1, -1))

    @property
    def mT(self) -> Self:
        """The elements with the last two axes exchanged. AxisError for fewer than two axes.

        >>> Tensor.zeros(2, 3, 4).mT.shape
        (2, 4, 3)
        """
        argument_checks.matrices(self, "mT")
        return self.transpose(-2, -1)

    # Computation, memory, devices.

    @property
    def buffer(self) -> Buffer | None:
        """The buffer below the tensor's views, which holds its elements in some order; None while the tensor is lazy.

        JitValueError in a jitted function for an argument, and for a tensor of the program that has not been computed.

        >>> (Tensor([1]) + 1).buffer is None, (Tensor([1]) + 1).realize().buffer.nbytes
        (True, 8)
        """
        uop = beneath(self.uop, MOVEMENT)
        memory = registry.memory_of(uop) if uop.op is Op.Buffer else None
        if (description := current()) is not None:
            description.admit_buffer(self, uop, memory)
        return memory

    def realize(self, *others: Tensor, config: OptimizerConfig | None = None) -> Self:
        """This tensor itself, computed now, together with `others`; `config` chooses how kernels are optimized.

        DTypeError for anything but tensors, ArgumentTypeError for anything but an OptimizerConfig.

        >>> t = Tensor([1]) + 1
        >>> t.realize() is t
        True
        """
        for other in others:
            if not isinstance(other, Tensor):
                raise DTypeError(f"realize() of {type(other).__name__}", place=caller(), expected="tensors")
        with _optimized(config):
            realization.realize([self, *others])
        return self

    @staticmethod
    def all_reduce(tensors: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
        """The sum of tensors on several devices, element by element, on each of them: one tensor a device, in their order.

        op  "sum", "prod", "max" or "min"

        The tensors, one a device, are computed first. ShapeError and DTypeError unless they have one shape and one dtype;
        DeviceError if two are on one device, or a device cannot read the memory of another.

        >>> [t.tolist() for t in Tensor.all_reduce([Tensor([1, 2]), Tensor([3, 4], device="CPU:1")])]
        [[4, 6], [4, 6]]
        """
        parts = _several(tensors, "all_reduce")
        folds = {"sum": Op.Add, "prod": Op.Mul, "max": Op.Max, "min": Op.Min}
        fold = folds[choice(op, "the op of all_reduce", tuple(folds))]
        if not parts:
            raise ShapeError(
                "all_reduce() was given no tensors", place=caller(), expected="a list of at least one tensor"
            )
        for t in parts[1:]:
            if t.shape != parts[0].shape:
                shapes = f"{show(parts[0].shape)} and {show(t.shape)}"
                raise ShapeError(f"all_reduce() of tensors of shapes {shapes}", place=caller(), expected="one shape")
            if t.dtype is not parts[0].dtype:
                raise DTypeError(
                    f"all_reduce() of tensors of dtypes {parts[0].dtype} and {t.dtype}",
                    place=caller(),
                    expected="one dtype",
                )
        devices = [t.device for t in parts]
        if len(set(devices)) < len(devices):
            raise DeviceError(
                f"all_reduce of tensors on {', '.join(devices)}", place=caller(), expected="one tensor on each device"
            )
        realization.realize(parts)
        stack = UOp.new(Op.MStack, tuple([t.uop for t in parts]))
        total = UOp.new(Op.AllReduce, (stack, UOp.new(Op.Device, (), devices[0])), fold)
        return [Tensor._make(UOp.new(Op.MSelect, (total,), n), device) for n, device in enumerate(devices)]

    @staticmethod
    def realize_batch(tensors: Sequence[Tensor]) -> None:
        """Compute several tensors together, shared parts once. DTypeError for anything but a list of tensors.

        >>> a = Tensor([1]) + 1
        >>> Tensor.realize_batch([a, a * 2])
        """
        realization.realize(_several(tensors, "realize_batch"))

    def prepare(self, config: OptimizerConfig | None = None) -> ExecutionPlan:
        """The compiled plan that computes this tensor: `plan.execute()` computes it anew from its inputs' memory.

        `config` chooses how kernels are optimized. ArgumentTypeError for anything but an OptimizerConfig.

        >>> plan = (Tensor([1, 2]) + 1).prepare()
        >>> plan.execute().numpy().tolist()
        [2, 3]
        """
        with _optimized(config):
            return realization.prepare([self])

    @staticmethod
    def prepare_batch(tensors: Sequence[Tensor]) -> ExecutionPlan:
        """The compiled plan that computes several tensors; executing it returns the first one's buffer.

        DTypeError for no tensors, DeviceError for tensors on several devices.

        >>> Tensor.prepare_batch([Tensor([1, 2]) + 1, Tensor([3]) * 2]).execute().numpy().tolist()
        [2, 3]
        """
        given = _several(tensors, "prepare_batch")
        if not given:
            raise DTypeError("prepare_batch() was given no tensors", place=caller(), expected="at least one tensor")
        return realization.prepare(given)

    def schedule(self) -> list[ScheduleItem]:
        """The kernels that would compute this tensor, in execution order, each with its buffers.

        >>> len((Tensor([1, 2]) + 1).schedule())
        1
        """
        return create_schedule([self])

    def kernels(self, device: str | None = None) -> list[KernelCode]:
        """The name, backend and code of each kernel that computes, or computed, this tensor, for `device`, which may be absent.

        DeviceError for an unknown device.

        >>> [k.backend for k in (Tensor([1, 2]) + 1).kernels(device="CUDA")]
        ['CUDA']
        """
        return kernels(self, device)

    def detach(self) -> Self:
        """Another tensor with the same elements: assigning to one does not change the other. Tensors have no gradients.

        >>> Tensor([1, 2]).detach().tolist()
        [1, 2]
        """
        return self._same()

    def clone(self) -> Self:
        """A copy with memory of its own, in self's shape, dtype and device; a size that is a variable's stays one.

        >>> Tensor([1, 2]).clone().tolist()
        [1, 2]
        """
        if current() is not None:
            return self._like(UOp.new(Op.Copy, (self.uop, UOp.new(Op.Device, (), self.device))))
        return self._copied(self.numpy().copy(), self.device)

    def _copied(self, values: Array, device: str) -> Self:
        """A tensor of self's shape and dtype on `device`, of self's elements."""
        return self._make(realization.with_elements(values, self.shape, self.dtype, device), device)

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """This tensor on another device, at another dtype, or both: `t.to("CUDA")`, `t.to(dtypes.f64)`, `t.to("CPU", "f16")`.

        DeviceError for an unknown device, DTypeError for a dtype that tensors do not have.

        >>> Tensor([1, 2]).to("CPU:1", "f64").tolist()
        [1.0, 2.0]
        """
        if device is not None and not isinstance(device, str):
            if dtype is not None:
                raise mistyped(device, "the device of to()", "a device's name, where a dtype follows", DTypeError)
            device, dtype = None, device
        x = self if dtype is None else self.cast(dtype)
        name = self.device if device is None else creation.default_device(device)
        if name == self.device:
            return x._same()
        # devices that use an ndarray's memory without a copy
        shared = self.device.startswith("CPU") and name.startswith("CPU")
        if shared and (description := current()) is not None and not description.writes(x.uop):
            return self._make(UOp.new(Op.Copy, (x.uop, UOp.new(Op.Device, (), name))), name)
        try:
            values = x.numpy()
        except JitValueError as problem:
            problem.hint = (
                "call to() outside the jitted function; between devices of the CPU, before the function writes it"
            )
            raise
        return x._copied(values.copy() if shared else values, name)

    def assign(self, value: Any) -> Self:
        """This tensor itself; its memory is overwritten with `value` when it is computed.

        No other tensor changes: tensors that read the old elements are computed first, and tensors that share the memory (the
        same elements, perhaps reshaped) get a copy of them. A tensor whose size is a variable's gets other memory.

        ShapeError and DTypeError unless `value` has this tensor's shape (or broadcasts to it) and dtype; UsageError for a
        view of a tensor in use, which would not see the new elements.

        >>> t = Tensor([1, 2])
        >>> t.assign(t + 1).tolist()
        [2, 3]
        """
        new = value if isinstance(value, Tensor) else type(self)(value, self.dtype, self.device)
        if new.dtype is not self.dtype:
            raise DTypeError(
                f"{new.dtype} cannot be assigned to {self.dtype}", place=caller(), expected="one dtype", hint="cast it"
            )
        if new.shape != self.shape:
            new = new.expand(*self.shape)
        refuse_view(self)
        fixed = not any(isinstance(d, UOp) for d in self.shape)
        if self._is_lazy():
            if self._is_described() and not (fixed and is_bound(new.uop)):
                self._uop, self._compiled = expanded(new.uop, self.shape), None
                viewed.written(self)
                return self
            self._give_memory()
        uop = self.uop
        changed = expanded(new.uop, self.shape)
        mine = fixed and stored.owner(uop) is self
        self._compiled = None
        registry.write(self, UOp.new(Op.Assign, (uop, changed)) if mine else changed)
        return self

    def _is_lazy(self) -> bool:
        """True if this tensor has no memory, and none is written when it is computed."""
        return self.uop.op is not Op.Assign and stored.stored_buffer(self.uop) is None

    def _is_described(self) -> bool:
        """True for a tensor that the function which is being described has made: its memory is that of a call."""
        description = current()
        return description is not None and description.is_own(self)

    def _give_memory(self) -> None:
        """Give a lazy tensor memory of its own."""
        if self._is_described():
            memory = registry.new_buffer(
                self.dtype, math.prod(d for d in self.shape if isinstance(d, int)), self.device
            )
            self._uop = UOp.new(Op.Assign, (reshaped(memory, self.shape), self.uop))
            return
        if stored.constant(self.uop) is not None:
            registry.put(self, UOp.new(Op.Contiguous, (self.uop,)))
        self.realize()

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write `value`, cast to this dtype, to the elements that `key` chooses, in any form that __getitem__ takes.

        The memory of a computed tensor is overwritten when it is computed again, as by `assign`. A lazy tensor gets a new
        graph, or is computed first if the write depends on a variable. No other tensor changes, nor do older views.

        UsageError for a view of a live tensor, which would not see the write; ShapeError unless `value` broadcasts to the
        elements.
        """
        refuse_view(self)
        changed = with_written(self, key, value)
        if changed is self:
            return
        if self._is_lazy() and (current() is None or self._is_described()) and not on_variable(key, value):
            self._uop, self._compiled = changed.uop, None
            viewed.written(self)
            return
        self.assign(changed)

    # The book's spellings.

    def realize_with(self, config: OptimizerConfig) -> Self:
        """This tensor itself, computed now: realize(config=config).

        ArgumentTypeError for anything but an OptimizerConfig.

        >>> (Tensor([1]) + 1).realize_with(OptimizerConfig(Unoptimized())).tolist()
        [2]
        """
        return self.realize(config=config)

    @classmethod
    def from_slice(cls, data: Any, shape: Sequence[int] | None = None, dtype: Any = None) -> Self:
        """A tensor of a flat sequence, in `shape` (by default a vector).

        ShapeError if the shape has another number of elements.

        >>> Tensor.from_slice([1, 2, 3, 4], (2, 2)).tolist()
        [[1, 2], [3, 4]]
        """
        t = cls(data, dtype)
        return t if shape is None else t.reshape(shape)

    from_ndarray = from_numpy

    # Functions of a tensor, by theme.

    # Values.
    numpy, to_ndarray, item, tolist, to_vec = (
        elements.numpy,
        elements.to_ndarray,
        elements.item,
        elements.tolist,
        elements.to_vec,
    )
    __repr__, __format__, __round__ = elements.representation, elements.formatted, elements.rounded
    __bool__, __float__, __int__, __index__ = elements.truth, elements.as_float, elements.as_int, elements.as_index
    __len__, __iter__, __array__, __reduce__ = elements.length, elements.elements, elements.array, elements.pickled
    __dlpack__, __dlpack_device__ = elements.dlpack, elements.dlpack_device

    # Views.
    reshape, permute, transpose, flip = (
        view_methods.reshape,
        view_methods.permute,
        view_methods.transpose,
        view_methods.flip,
    )
    expand, shrink, squeeze, unsqueeze = (
        view_methods.expand,
        view_methods.shrink,
        view_methods.squeeze,
        view_methods.unsqueeze,
    )
    try_reshape, try_permute, try_transpose, try_flip = reshape, permute, transpose, flip
    try_expand, try_shrink, try_squeeze, try_unsqueeze = expand, shrink, squeeze, unsqueeze
    flatten, broadcast_to, permute_dims = view_methods.flatten, view_methods.broadcast_to, view_methods.permute_dims
    matrix_transpose, moveaxis = view_methods.matrix_transpose, view_methods.moveaxis
    expand_dims, repeat_interleave = view_methods.expand_dims, view_methods.repeat_interleave

    # Operators, by name too; the array API standard's names last.
    add, sub, mul, div, floor_divide = (
        operators.add,
        operators.sub,
        operators.mul,
        operators.div,
        operators.floor_divide,
    )
    mod, pow, neg, positive, abs = operators.mod, operators.pow, operators.neg, operators.positive, operators.abs
    __add__, __sub__, __mul__, __truediv__, __floordiv__ = add, sub, mul, div, floor_divide
    __mod__, __pow__, __neg__, __pos__, __abs__ = mod, pow, neg, positive, abs
    __divmod__, __rdivmod__ = operators.divide_with_remainder, reflected(operators.divide_with_remainder)
    __radd__, __rsub__, __rmul__ = reflected(add), reflected(sub), reflected(mul)
    __rtruediv__ = reflected(div, operators.quotient_dtype)
    __rfloordiv__, __rmod__, __rpow__ = reflected(floor_divide), reflected(mod), reflected(pow)
    try_add, try_sub, try_mul, try_div, try_pow = add, sub, mul, div, pow
    subtract, multiply, divide, remainder, negative = sub, mul, div, mod, neg
    maximum, minimum = operators.maximum, operators.minimum

    bitwise_and, bitwise_or, bitwise_xor = operators.bitwise_and, operators.bitwise_or, operators.bitwise_xor
    bitwise_invert, bitwise_left_shift = operators.bitwise_invert, operators.bitwise_left_shift
    bitwise_right_shift = operators.bitwise_right_shift
    __and__, __or__, __xor__, __invert__ = bitwise_and, bitwise_or, bitwise_xor, bitwise_invert
    __lshift__, __rshift__ = bitwise_left_shift, bitwise_right_shift
    __rand__, __ror__, __rxor__ = reflected(bitwise_and), reflected(bitwise_or), reflected(bitwise_xor)
    __rlshift__, __rrshift__ = reflected(bitwise_left_shift), reflected(bitwise_right_shift)
    logical_and, logical_or, logical_xor = operators.logical_and, operators.logical_or, operators.logical_xor
    logical_not = operators.logical_not

    less, less_equal, greater = operators.less, operators.less_equal, operators.greater
    greater_equal, eq, ne = operators.greater_equal, operators.eq, operators.ne
    __lt__, __le__, __gt__, __ge__ = less, less_equal, greater, greater_equal
    __eq__ = eq  # type: ignore[assignment]
    __ne__ = ne  # type: ignore[assignment]
    equal, not_equal, __hash__ = eq, ne, object.__hash__

    # Elements chosen by conditions, bounds, padding.
    where, masked_fill, clip, clamp = selection.where, selection.masked_fill, selection.clip, selection.clamp
    pad = try_pad = selection.pad

    # Dtypes.
    cast, astype, bitcast = casts.cast, casts.astype, casts.bitcast
    float, int, bool = casts.float, casts.int, casts.bool

    # Exponentials, logarithms, circular functions, roots, rounding.
    exp, exp2, expm1, logaddexp = elementwise.exp, elementwise.exp2, elementwise.expm1, elementwise.logaddexp
    log, log2, log10, log1p = elementwise.log, elementwise.log2, elementwise.log10, elementwise.log1p
    sin, cos, tan, tanh, erf = elementwise.sin, elementwise.cos, elementwise.tan, elementwise.tanh, elementwise.erf
    sqrt, rsqrt, reciprocal, square = elementwise.sqrt, elementwise.rsqrt, elementwise.reciprocal, elementwise.square
    floor, ceil, trunc, round = elementwise.floor, elementwise.ceil, elementwise.trunc, elementwise.round
    isnan, isinf, isfinite = elementwise.isnan, elementwise.isinf, elementwise.isfinite
    sign, signbit, copysign = elementwise.sign, elementwise.signbit, elementwise.copysign

    # Inverse circular and hyperbolic functions.
    asin, acos, atan, atan2, hypot = (
        elementwise.asin,
        elementwise.acos,
        elementwise.atan,
        elementwise.atan2,
        elementwise.hypot,
    )
    sinh, cosh, asinh, acosh, atanh = (
        elementwise.sinh,
        elementwise.cosh,
        elementwise.asinh,
        elementwise.acosh,
        elementwise.atanh,
    )

    # Activations of neural networks.
    relu, relu6, leaky_relu = activation.relu, activation.relu6, activation.leaky_relu
    elu, celu, selu, gelu, quick_gelu = (
        activation.elu,
        activation.celu,
        activation.selu,
        activation.gelu,
        activation.quick_gelu,
    )
    sigmoid, logsigmoid, silu, mish = activation.sigmoid, activation.logsigmoid, activation.silu, activation.mish
    softplus, softsign = activation.softplus, activation.softsign
    hardtanh, hardsigmoid, hardswish = activation.hardtanh, activation.hardsigmoid, activation.hardswish

    # Reductions.
    sum, prod, mean, var, std = (
        axis_reductions.sum,
        axis_reductions.prod,
        axis_reductions.mean,
        axis_reductions.var,
        axis_reductions.std,
    )
    max, min, argmax, argmin = axis_reductions.max, axis_reductions.min, axis_reductions.argmax, axis_reductions.argmin
    any, all, count_nonzero = axis_reductions.any, axis_reductions.all, axis_reductions.count_nonzero
    softmax, log_softmax, logsumexp = axis_reductions.softmax, axis_reductions.log_softmax, axis_reductions.logsumexp

    # Products of matrices.
    matmul, __matmul__, __rmatmul__ = linalg.matmul, linalg.matmul, reflected(linalg.matmul)
    dot, linear, outer, tril, triu = linalg.dot, linalg.linear, linalg.outer, linalg.tril, linalg.triu

    # Contractions of axes.
    diagonal, trace, vecdot = contraction.diagonal, contraction.trace, contraction.vecdot
    tensordot, vector_norm = contraction.tensordot, contraction.vector_norm

    # Convolutions and pooling.
    conv1d, conv2d, conv_transpose2d = convolution.conv1d, convolution.conv2d, convolution.conv_transpose2d
    max_pool2d, avg_pool2d = convolution.max_pool2d, convolution.avg_pool2d

    # Normalization and attention.
    layernorm, rms_norm, batchnorm, group_norm = (
        normalization.layernorm,
        normalization.rms_norm,
        normalization.batchnorm,
        normalization.group_norm,
    )
    scaled_dot_product_attention = normalization.scaled_dot_product_attention

    # Losses.
    mse_loss, l1_loss, nll_loss, cross_entropy = loss.mse_loss, loss.l1_loss, loss.nll_loss, loss.cross_entropy
    binary_cross_entropy = loss.binary_cross_entropy
    binary_cross_entropy_with_logits = loss.binary_cross_entropy_with_logits

    # Others of the same shape, and of the same elements.
    full_like, zeros_like, ones_like = creation.full_like, creation.zeros_like, creation.ones_like
    contiguous = creation.contiguous

    # Joining, splitting, repeating.
    cat, unstack, split, chunk = joining.cat, joining.unstack, joining.split, joining.chunk
    tile, repeat, roll, diff = joining.tile, joining.repeat, joining.roll, joining.diff

    # Scans.
    cumsum, cumprod, cummax, cummin = scan.cumsum, scan.cumprod, scan.cummax, scan.cummin
    cumulative_sum, cumulative_prod = scan.cumulative_sum, scan.cumulative_prod

    # Elements chosen by positions and conditions.
    __getitem__ = indexing.getitem
    take, take_along_axis, one_hot, nonzero = (
        indexing.take,
        indexing.take_along_axis,
        indexing.one_hot,
        indexing.nonzero,
    )

    # Sorting.
    sort, argsort, topk = sorting.sort, sorting.argsort, sorting.topk

    # Searching, scattering, distinct elements.
    searchsorted = searching.searchsorted
    scatter, scatter_add = searching.scatter, searching.scatter_add
    unique_all, unique_counts = searching.unique_all, searching.unique_counts
    unique_inverse, unique_values = searching.unique_inverse, searching.unique_values

    # Random numbers.
    manual_seed, dropout = staticmethod(random.manual_seed), random.dropout
