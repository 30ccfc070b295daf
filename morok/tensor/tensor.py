"""Tensor: what users write. Nothing is computed until a value is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar

from morok.caller import caller
from morok.config import settings
from morok.errors import DTypeError, ShapeError, UsageError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.state import MOVEMENT
from morok.tensor import creation, registry, stored
from morok.tensor import realize as realization
from morok.tensor.arguments import known, only_tensors
from morok.tensor.base import UNKNOWN_TO_NUMPY, show
from morok.tensor.linalg import Linalg
from morok.tensor.math import Math
from morok.tensor.movement import expanded
from morok.tensor.plans import KernelCode, kernels
from morok.tensor.random import Random
from morok.tensor.schedule import ScheduleItem, create_schedule
from morok.tensor.writing import is_view_of_another

if TYPE_CHECKING:
    import numpy as np

    from morok.optimize.strategy import OptimizerConfig
    from morok.runtime.buffer import Buffer
    from morok.runtime.plan import ExecutionPlan

    Array = np.ndarray[Any, Any]

T = TypeVar("T", bound="Tensor")


def _several(tensors: Sequence[Tensor], what: str) -> list[Tensor]:
    """The tensors that were given together; DTypeError for anything else."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, Iterable):
        raise DTypeError(f"{what} of {type(tensors).__name__}", place=caller(), expected="a list of tensors")
    several = list(tensors)
    only_tensors(several, what, Tensor)
    return several


def _optimized(config: OptimizerConfig | None) -> AbstractContextManager[None]:
    """The settings that `config` stands for, in force inside a `with` block."""
    return nullcontext() if config is None else settings(**config.settings())


class Tensor(Random):
    """An array that is described first and computed when it is needed.

    `uop` is the graph that describes it, `device` where it will be computed; `shape` and `dtype` come from the graph. Equal
    expressions over the same tensors are the same graph: `(a + b).uop is (a + b).uop`.

    data    a number, nested lists, an ndarray, a tensor. An ndarray is used without a copy where its layout allows (C order,
            writable, its own dtype, on the CPU): what is written to it is seen, and what is assigned to the tensor is written
            to it, as with torch.from_numpy; Tensor(array.copy()) has nothing to do with the array
    dtype   of the elements; by default NumPy's for arrays, and bool, i64 and f32 for Python's bool, int and float
    device  "CPU", "CUDA" or "NULL" (compiles, runs nothing); by default MOROK_DEVICE
    """

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None, device: str | None = None) -> None:
        if isinstance(data, Tensor):
            self.uop = data.uop if dtype is None else data.cast(dtype).uop
            self.device = data.device
        else:
            self.device = creation.default_device(device)
            if isinstance(data, (list, tuple)) and any(isinstance(d, Tensor) for d in data):
                joined = Tensor.stack([d if isinstance(d, Tensor) else Tensor(d, device=device) for d in data])
                self.uop = joined.uop if dtype is None else joined.cast(dtype).uop
            else:
                self.uop = creation.from_data(data, dtype, self.device)
        self._compiled = None
        registry.register(self)

    @classmethod
    def _from_data(cls, data: Any, device: str) -> Self:
        return cls._make(creation.from_data(data, None, device), device)

    def __repr__(self) -> str:
        state = "lazy" if stored.stored_buffer(self.uop) is None else "realized"
        return f"<Tensor {show(self.shape)} {self.dtype} {self.device} {state}>"

    @classmethod
    def from_numpy(cls, array: Array) -> Self:
        """A tensor over an ndarray, as Tensor(array) makes it."""
        return cls(array)

    @classmethod
    def from_dlpack(cls, source: Any) -> Self:
        """A tensor over another library's array, without a copy where its layout allows."""
        import numpy as np

        return cls(np.from_dlpack(source))

    # Values.

    @property
    def buffer(self) -> Buffer | None:
        """The memory that holds this tensor's elements, in some order; None while it is lazy."""
        uop = self.uop
        while uop.op in MOVEMENT:
            uop = uop.src[0]
        return registry.memory_of(uop) if uop.op is Op.Buffer else None

    def realize(self, *others: Tensor, config: OptimizerConfig | None = None) -> Self:
        """Compute this tensor (and `others` together with it), with kernels optimized as `config` says; returns itself."""
        for other in others:
            if not isinstance(other, Tensor):
                raise DTypeError(f"realize() of {type(other).__name__}", place=caller(), expected="tensors")
        with _optimized(config):
            realization.realize([self, *others])
        return self

    @staticmethod
    def realize_batch(tensors: Sequence[Tensor]) -> None:
        """Compute several tensors together; what they share is computed once."""
        realization.realize(_several(tensors, "realize_batch"))

    def prepare(self, config: OptimizerConfig | None = None) -> ExecutionPlan:
        """Compile once, run many times: `plan.execute()` computes this tensor's value anew from its inputs' memory. `config` says
        how kernels are optimized.
        """
        with _optimized(config):
            return realization.prepare([self])

    @staticmethod
    def prepare_batch(tensors: Sequence[Tensor]) -> ExecutionPlan:
        """One plan for several tensors, one at least; what it returns is the first of them."""
        several = _several(tensors, "prepare_batch")
        if not several:
            raise DTypeError("prepare_batch() of nothing", place=caller(), expected="at least one tensor")
        return realization.prepare(several)

    def schedule(self) -> list[ScheduleItem]:
        """The kernels that would compute this tensor."""
        return create_schedule([self])

    def kernels(self, device: str | None = None) -> list[KernelCode]:
        """Name, backend and code of the kernels that compute this tensor, or have computed it; for any device, present or not."""
        return kernels(self, device)

    def detach(self) -> Self:
        return self._same()

    def clone(self) -> Self:
        """A copy with memory of its own."""
        return type(self)(self.numpy().copy(), device=self.device)

    def to(self, device: str) -> Self:
        """This tensor on another device."""
        name = creation.default_device(device)
        return self._same() if name == self.device else type(self)(self.numpy(), device=name)

    def assign(self, value: Any) -> Self:
        """Write `value` into this tensor's memory when it is computed.

        No other tensor changes: whoever reads the old elements reads them before, and whoever shares the memory, a reshaped
        tensor or an equal one, gets a copy of them.

        ShapeError and DTypeError unless `value` has this tensor's shape (or broadcasts to it) and dtype; UsageError for a view
        of a tensor in use, which would not see what is written.
        """
        new = value if isinstance(value, Tensor) else type(self)(value, self.dtype, self.device)
        if new.dtype is not self.dtype:
            raise DTypeError(
                f"{new.dtype} cannot be assigned to {self.dtype}", place=caller(), expected="one dtype", hint="cast it"
            )
        if new.shape != self.shape:
            new = new.expand(*self.shape)
        self._refuse_view()
        uop = self.uop
        if uop.op is not Op.Assign and stored.stored_buffer(uop) is None:
            if stored.constant(uop) is not None:
                self.uop = UOp.new(Op.Contiguous, (uop,))
            self.realize()
            uop = self.uop
        changed = expanded(new.uop, self.shape)
        mine = stored.owner(uop) is self
        self.uop, self._compiled = UOp.new(Op.Assign, (uop, changed)) if mine else changed, None
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write `value`, cast to this dtype, to the elements that `key` chooses: whatever __getitem__ takes.

        Memory that has been computed is overwritten when this tensor is computed, as by `assign`; a tensor that is still lazy is
        described anew. No other tensor changes, views made before keep their elements.

        UsageError for a view of a tensor in use, which would not see what is written; ShapeError unless `value` broadcasts to the
        elements.
        """
        self._refuse_view()
        changed = self._with(key, value)
        if changed is self:
            return
        if self.uop.op is not Op.Assign and stored.stored_buffer(self.uop) is None:
            self.uop, self._compiled = changed.uop, None
            return
        self.assign(changed)

    def _refuse_view(self) -> None:
        """UsageError for a view of a tensor in use."""
        if is_view_of_another(self):
            raise UsageError(
                f"{show(self.shape)} is a view of another tensor, which would not see what is written",
                place=caller(),
                expected="a tensor with elements of its own",
                hint="write to that tensor, x[1:3, 0] = .. in place of x[1:3][:, 0] = .., or take a copy: .clone()",
            )

    def numpy(self) -> Array:
        """The elements as an ndarray; on the CPU a view of the tensor's memory. OutOfMemoryError if there is not enough."""
        if self.dtype in UNKNOWN_TO_NUMPY:
            return self.cast(dtypes.f32).numpy()
        fixed = stored.constant(self.uop)
        shape = self._sizes()
        if fixed is not None:
            from morok.runtime.buffer import Buffer
            from morok.runtime.device import device

            filled = Buffer(device("CPU"), self.dtype, math.prod(shape)).numpy().reshape(shape)
            filled.fill(fixed.arg)
            return filled
        self.realize()
        memory = stored.memory_of(self.uop, self.device)
        assert memory is not None
        return memory.numpy()[: math.prod(shape)].reshape(shape)

    def _sizes(self) -> tuple[int, ...]:
        """The shape in numbers: variables by the values that they are bound to."""
        out: list[int] = []
        for d in self.shape:
            if isinstance(d, UOp):
                bound = d.substitute({b: b.src[1] for b in d.toposort() if b.op is Op.Bind})
                if bound.vmin != bound.vmax:
                    raise ShapeError(f"shape {show(self.shape)} is not known yet", place=caller(), hint="bind the variable")
                d = int(bound.vmin)
            out.append(d)
        return tuple(out)

    def item(self) -> Any:
        """The only element, as a Python number. ShapeError if there are more."""
        if self.size != 1:
            raise ShapeError(f"item() of shape {show(self.shape)}", place=caller(), expected="one element")
        return self.numpy().item()

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.numpy().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth of shape {show(self.shape)} is ambiguous",
                place=caller(),
                expected="one element",
                hint="any() or all()",
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_int:
            raise DTypeError(f"{self.dtype} is no index", place=caller(), expected="an integer")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ShapeError("a scalar has no length", place=caller())
        return known(self, 0, "len()")

    def __iter__(self) -> Iterator[Self]:
        for i in range(len(self)):
            yield self[i]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        import numpy as np

        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.numpy().copy(), self.dtype.name, self.device))

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()

    # The book's spellings.

    def realize_with(self, config: OptimizerConfig) -> Self:
        """realize() with this choice of optimizations."""
        return self.realize(config=config)

    @classmethod
    def from_slice(cls, data: Any, shape: Sequence[int] | None = None, dtype: Any = None) -> Self:
        """A tensor of a flat sequence, in `shape`."""
        t = cls(data, dtype)
        return t if shape is None else t.reshape(tuple(shape))

    from_ndarray = from_numpy

    def to_ndarray(self, dtype: Any = None) -> Array:
        return (self if dtype is None else self.cast(dtype)).numpy()

    def to_vec(self) -> list[Any]:
        """The elements in row-major order."""
        return list(self.numpy().reshape(-1).tolist())

    try_reshape = Linalg.reshape
    try_transpose = Linalg.transpose
    try_permute = Linalg.permute
    try_expand = Linalg.expand
    try_squeeze = Linalg.squeeze
    try_unsqueeze = Linalg.unsqueeze
    try_flip = Linalg.flip
    try_pad = Linalg.pad
    try_shrink = Linalg.shrink
    try_add = Math.add
    try_sub = Math.sub
    try_mul = Math.mul
    try_div = Math.div
    try_pow = Math.pow
