"""The elements of a tensor as numbers, lists, arrays and text.

Conversion to numbers, lists or arrays computes the tensor. Its repr shows elements only if they are in memory already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from morok.arguments import mistyped, refused, shown, text, whole
from morok.caller import caller
from morok.errors import ArgumentTypeError, DTypeError, MorokError, RangeError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.ir.number import from_bits
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import BITS, NUMPY, Buffer
from morok.runtime.device import device
from morok.tensor import (
    registry,
    stored,
)
from morok.tensor.argument_checks import known
from morok.tensor.base import UNKNOWN_TO_NUMPY, AnyTensor, show
from morok.tensor.describing import current

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MOST: Final = 1000  # most elements shown in full; of larger tensors the edges are shown

T = TypeVar("T")


def numpy(self: AnyTensor) -> Array:
    """The elements as an ndarray; on the CPU a view of the tensor's memory. ShapeError if a variable in the shape is not bound.

    8-bit floats and bf16 become f32. OutOfMemoryError if there is not enough memory.

    >>> Tensor([[1, 2]]).numpy().shape
    (1, 2)
    """
    if self.dtype in UNKNOWN_TO_NUMPY:
        return self.cast(dtypes.f32).numpy()
    fixed = stored.constant(self.uop)
    shape = sizes_of(self)
    if fixed is not None:
        filled = _shaped(Buffer(device("CPU"), self.dtype, math.prod(shape)).numpy(), shape)
        filled.fill(fixed.arg)
        return filled
    if (description := current()) is not None:
        description.read(self.uop, registry.memory_of)
    self.realize()
    memory = stored.memory_of(self.uop, self.device)
    assert memory is not None
    return _shaped(memory.numpy()[: math.prod(shape)], shape)


def _shaped(elements: Array, shape: tuple[int, ...]) -> Array:
    """The elements at a shape; ShapeError for one that NumPy has not: of more than 64 axes, or of too many bytes but for a 0."""
    try:
        return elements.reshape(shape)
    except ValueError as problem:
        raise ShapeError(
            f"no ndarray has shape {show(shape)}: {problem}",
            place=caller(),
            hint="to_vec() gives the elements in a row",
        ) from None


def to_ndarray(self: AnyTensor, dtype: Any = None) -> Array:
    """The elements as an ndarray, at `dtype` if one is given: numpy() by the book's name.

    DTypeError for a dtype that tensors do not have.

    >>> Tensor([1, 2]).to_ndarray("f32").tolist()
    [1.0, 2.0]
    """
    return (self if dtype is None else self.cast(dtype)).numpy()


def item(self: AnyTensor) -> Any:
    """The only element, as a Python number. ShapeError if there are more or none.

    >>> Tensor([[7]]).item()
    7
    """
    if self.size != 1:
        raise ShapeError(f"item() of a tensor of shape {show(self.shape)}", place=caller(), expected="one element")
    return self.numpy().item()


def tolist(self: AnyTensor) -> Any:
    """The elements as nested lists; a number for a scalar.

    >>> Tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return self.numpy().tolist()


def to_vec(self: AnyTensor) -> list[Any]:
    """The elements in row-major order, as one list.

    >>> Tensor([[1, 2], [3, 4]]).to_vec()
    [1, 2, 3, 4]
    """
    return list(self.flatten().numpy().tolist())


def sizes_of(x: AnyTensor) -> tuple[int, ...]:
    """The shape as ints, with bound variables replaced by their values; ShapeError for a variable that is not bound."""
    out: list[int] = []
    for d in x.shape:
        if isinstance(d, UOp):
            bound = d.substitute({b: b.src[1] for b in d.toposort() if b.op is Op.Bind})
            if bound.vmin != bound.vmax:
                raise ShapeError(
                    f"the elements are needed, but shape {show(x.shape)} has an unbound variable",
                    place=caller(),
                    hint="bind the variable",
                )
            d = int(bound.vmin)
        out.append(d)
    return tuple(out)


def representation(self: AnyTensor) -> str:
    """The repr: shape, dtype, device, and the elements if they are in memory or all one constant. It computes nothing."""
    node, fixed = stored.stored_buffer(self.uop), stored.constant(self.uop)
    state = "constant" if fixed is not None else "lazy" if node is None else "realized"
    return f"<Tensor {show(self.shape)} {self.dtype} {self.device} {state}{_values(self, node, fixed)}>"


def _values(x: AnyTensor, node: UOp | None, fixed: UOp | None) -> str:
    """The elements as text, with line breaks for several axes; the edges of each axis if there are more than 1,000.

    "" if the elements are neither in memory nor one constant, or their number depends on a variable that is not bound.
    """
    memory = None if node is None else registry.memory_of(node)
    if fixed is None and (memory is None or not memory.is_allocated or x.device == "NULL"):
        return ""
    try:
        shape = sizes_of(x)
    except ShapeError:  # a variable that is not bound
        return ""
    if fixed is not None:
        array = np.broadcast_to(np.array(fixed.arg, np.float32 if x.dtype in BITS else NUMPY[x.dtype]), shape)
    else:
        assert memory is not None
        array = memory.numpy()[: math.prod(shape)].reshape(shape)
        if memory.dtype in BITS:
            array = _decoded(memory.dtype, array)
    text = np.array2string(array, threshold=MOST, separator=", ")
    return f"\n{text}" if "\n" in text else f" {text}"


def _decoded(d: DType, bits: Array) -> Array:
    """The values, as f32, of a dtype that NumPy stores as integers of the same bits."""
    if d is dtypes.bf16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return np.array([from_bits(d, b) for b in range(256)], np.float32)[bits]


def formatted(self: AnyTensor, spec: str) -> str:
    """The text of format(t, spec): a scalar's number formatted by Python, another tensor's repr. ArgumentTypeError for another
    tensor with a spec; an error for a spec that Python's numbers lack.
    """
    text(spec, "a format")
    if self.ndim == 0:
        number = self.item()
        try:
            return format(number, spec)
        except ValueError:
            raise refused(spec, "a format", "one that Python's numbers have") from None
    if spec:
        raise ArgumentTypeError(
            f"the format {spec!r} of shape {show(self.shape)}",
            place=caller(),
            expected="a scalar",
            hint="format .numpy()",
        )
    return repr(self)


def rounded(self: AnyTensor, ndigits: int | None = None) -> Any:
    """The result of Python's round() for a scalar; ArgumentTypeError for other tensors, which have the method round()."""
    if self.ndim:
        raise ArgumentTypeError(
            f"round() of shape {show(self.shape)}",
            place=caller(),
            expected="a scalar",
            hint="t.round() rounds each element",
        )
    if ndigits is not None:
        ndigits = whole(ndigits, "the number of digits")
    return _whole_number(lambda: round(self.item(), ndigits))


def as_float(self: AnyTensor) -> float:
    return float(_scalar(self, "float()"))


def as_int(self: AnyTensor) -> int:
    return _whole_number(lambda: int(_scalar(self, "int()")))


def as_index(self: AnyTensor) -> int:
    if not self.dtype.is_int:
        raise DTypeError(
            f"a tensor of dtype {self.dtype} cannot be an index", place=caller(), expected="an integer dtype"
        )
    return int(_scalar(self, "an index"))


def _scalar(x: AnyTensor, what: str) -> Any:
    """The only element; ArgumentTypeError if there are more or none."""
    if x.size != 1:
        raise ArgumentTypeError(f"{what} of shape {show(x.shape)}", place=caller(), expected="one element")
    return x.item()


def _whole_number(rounded: Callable[[], T]) -> T:
    """The result of `rounded`, Python's int() or round() of an element; RangeError for infinities and NaN."""
    try:
        return rounded()
    except (OverflowError, ValueError) as problem:
        if isinstance(problem, MorokError):
            raise
        raise RangeError(f"{problem}", place=caller(), expected="a finite number") from None


def truth(self: AnyTensor) -> bool:
    if self.size != 1:
        raise ShapeError(
            f"the truth value of a tensor of shape {show(self.shape)} is ambiguous",
            place=caller(),
            expected="one element",
            hint="use any() or all()",
        )
    return bool(self.item())


def length(self: AnyTensor) -> int:
    if self.ndim == 0:
        raise ArgumentTypeError("a scalar has no length", place=caller(), expected="at least one axis")
    return known(self, 0, "len()")


def elements(self: AnyTensor) -> Iterator[AnyTensor]:
    for i in range(len(self)):
        yield self[i]


def array(self: AnyTensor, dtype: Any = None, copy: bool | None = None) -> Array:
    array = self.numpy()
    try:
        return np.array(array, dtype=dtype, copy=copy)
    except (TypeError, ValueError, RecursionError) as problem:  # no dtype of NumPy, or a needed copy with copy=False
        raise DTypeError(
            f"an array of dtype {shown(dtype)}: {problem}", place=caller(), expected="a dtype of NumPy"
        ) from None


def pickled(self: AnyTensor) -> tuple[Any, ...]:
    return (type(self), (self.numpy().copy(), self.dtype.name, self.device))


def dlpack(self: AnyTensor, **options: Any) -> Any:
    array = self.numpy()
    try:
        return array.__dlpack__(**options)
    except (TypeError, ValueError, RuntimeError) as problem:  # NumPy's errors for unknown options
        if isinstance(problem, MorokError):
            raise
        raise mistyped(options, "the options of __dlpack__()", f"options of DLPack: {problem}") from None


def dlpack_device(self: AnyTensor) -> tuple[int, int]:
    return self.numpy().__dlpack_device__()
