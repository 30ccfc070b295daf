"""The base class of Tensor: a graph node and a device. Also conversion of dtypes from Python and NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from morok.arguments import shown
from morok.caller import caller
from morok.errors import DTypeError
from morok.ir.dtype import BY_NAME, STORAGE_FLOATS, DType, dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.tensor import registry
from morok.tensor.describing import described_as, descriptions
from morok.tensor.viewed import VIEWS, Viewed, viewed_by

if TYPE_CHECKING:
    from morok.tensor.tensor import Tensor

AnyTensor = TypeVar("AnyTensor", bound="Tensor")  # a subclass of Tensor: methods return the class of self

_NUMPY: Final = {
    "bool": dtypes.bool,
    "int8": dtypes.i8,
    "int16": dtypes.i16,
    "int32": dtypes.i32,
    "int64": dtypes.i64,
    "uint8": dtypes.u8,
    "uint16": dtypes.u16,
    "uint32": dtypes.u32,
    "uint64": dtypes.u64,
    "float16": dtypes.f16,
    "bfloat16": dtypes.bf16,  # this and the next two: names of ml_dtypes
    "float8_e4m3fn": dtypes.f8e4m3,
    "float8_e5m2": dtypes.f8e5m2,
    "float32": dtypes.f32,
    "float64": dtypes.f64,
}
_PYTHON: Final = {bool: dtypes.bool, int: dtypes.i64, float: dtypes.f32}
_ELEMENTS: Final = frozenset({*_NUMPY.values(), *STORAGE_FLOATS})  # the dtypes of tensors
UNKNOWN_TO_NUMPY: Final = frozenset({dtypes.bf16, *STORAGE_FLOATS})
DEFAULT_FLOAT: Final = dtypes.f32
DEFAULT_INT: Final = dtypes.i64


def as_dtype(wanted: Any) -> DType:
    """The scalar dtype of a DType, a name ("f32", "float32"), a Python type or a NumPy dtype; DTypeError for anything else."""
    if isinstance(wanted, DType):
        found: DType | None = wanted
    elif isinstance(wanted, type) and wanted in _PYTHON:
        found = _PYTHON[wanted]
    else:
        name = wanted if isinstance(wanted, str) else _name_of(wanted)
        found = _NUMPY.get(name) or BY_NAME.get(name)
    if found not in _ELEMENTS:
        raise DTypeError(
            f"{shown(wanted)} is not a dtype of tensors",
            place=caller(),
            expected="one of " + ", ".join(d.name for d in _NUMPY.values()),
        )
    return found


def _name_of(wanted: Any) -> str:
    """The name of another library's dtype, or of a class; "" for anything else."""
    name = getattr(wanted, "name", None)
    if not isinstance(name, str):
        name = getattr(wanted, "__name__", "")
    return name if isinstance(name, str) else ""


def arithmetic(d: DType) -> DType:
    """The dtype of arithmetic on elements of `d`: f16 for 8-bit floats, which are for storage only; else `d`."""
    return dtypes.f16 if d in STORAGE_FLOATS else d


def numpy_name(d: DType) -> str:
    """NumPy's name of a dtype; DTypeError if NumPy lacks it."""
    for name, mine in _NUMPY.items():
        if mine is d and d not in UNKNOWN_TO_NUMPY:
            return name
    raise DTypeError(f"NumPy has no {d}", place=caller(), hint=f"cast(dtypes.{'i64' if d.is_index else 'f32'}) first")


class Lazy:
    """A graph node and the device that computes it; constructing one computes nothing.

    uop     the node that describes the elements
    device  the device's name: "CPU", "CPU:1", "CUDA" or "NULL"

    >>> t = Tensor([1.0, 2.0], device="CPU:1")
    >>> t.device, t.uop.op.name
    ('CPU:1', 'Buffer')
    """

    __slots__ = ("_uop", "device", "_compiled", "_viewed", "_mark", "__weakref__")
    # NumPy then leaves operators between an array and a tensor to the tensor.
    __array_priority__: ClassVar[float] = 1000.0
    __array_ufunc__: ClassVar[None] = None

    _uop: UOp  # for all threads, except in a description that has written the tensor
    device: str
    _compiled: Any
    _viewed: tuple[Viewed, ...]
    _mark: object

    @classmethod
    def _make(cls, uop: UOp, device: str) -> Self:
        made = object.__new__(cls)
        made._uop = uop
        made.device = device
        made._compiled = None
        made._viewed, made._mark = (), None
        registry.register(made)
        return made

    @property
    def uop(self) -> UOp:
        """The node that describes the elements.

        >>> (Tensor([1.0]) + 2.0).uop.op.name
        'Add'
        """
        return described_as(self) if descriptions else self._uop

    def _like(self, uop: UOp) -> Self:
        made = self._make(uop, self.device)
        if uop.op in VIEWS or self._uop.op in VIEWS or uop is self._uop:
            made._viewed = viewed_by(self, uop)
        return made

    def _same(self) -> Self:
        """Another tensor with the same elements: assigning to one does not change the other."""
        return self._like(self.uop)

    @property
    def shape(self) -> Shape:
        """The size of each axis, outermost first; () for a scalar. A symbolic size is a node of dtype index.

        >>> Tensor([[1, 2, 3], [4, 5, 6]]).shape
        (2, 3)
        """
        return shape_of(self.uop)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements.

        >>> Tensor([1.0]).dtype
        f32
        """
        return self.uop.dtype

    @property
    def ndim(self) -> int:
        """The number of axes, 0 for a scalar.

        >>> Tensor([[1, 2, 3], [4, 5, 6]]).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int | UOp:
        """The number of elements; a node of dtype index where an axis is symbolic.

        >>> Tensor([[1, 2, 3], [4, 5, 6]]).size
        6
        """
        return element_count(self.shape)

    def numel(self) -> int | UOp:
        """The number of elements: `size` by torch's name.

        >>> Tensor([[1, 2, 3], [4, 5, 6]]).numel()
        6
        """
        return self.size


def element_count(shape: Shape) -> int | UOp:
    """The number of elements: the product of the sizes."""
    total: int | UOp = 1
    for d in shape:
        if isinstance(total, UOp):
            total = total * d
        elif isinstance(d, UOp):
            total = d * total if total != 1 else d
        else:
            total *= d
    return total


def dim_node(d: int | UOp) -> UOp:
    """The node of a size."""
    return d if isinstance(d, UOp) else UOp.const(d, dtypes.index)


def iota(n: int | UOp, d: DType = dtypes.index) -> UOp:
    """The node of the numbers 0, 1, .. below `n`, at dtype `d`."""
    numbers = UOp.new(Op.Iota, (dim_node(n),))
    return numbers if d.is_index else numbers.cast(d)


def show(shape: Shape) -> str:
    """A shape as text for error messages: (3, 2); variables by name, bound ones with their value: (n=5, 2)."""
    inner = ", ".join(map(_shown_size, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def _shown_size(d: int | UOp) -> str:
    if isinstance(d, UOp) and d.op is Op.DefineVar:
        return str(d.arg[0])
    return f"{d.src[0].arg[0]}={d.src[1].arg}" if isinstance(d, UOp) and d.op is Op.Bind else str(d)


def namesakes(nodes: Iterable[Any]) -> str:
    """A hint about different variables of one name in these nodes, with the bounds of each; "" if all names are unique."""
    found: dict[str, dict[UOp, str]] = {}
    for node in nodes:
        for n in node.toposort() if isinstance(node, UOp) else ():
            if n.op is Op.DefineVar:
                found.setdefault(n.arg[0], {})[n] = f"{n.vmin}..={n.vmax}"
    for name, bounds in found.items():
        if len(bounds) > 1:
            return f"variables of bounds {' and '.join(bounds.values())} are all called {name}: give each a name of its own"
    return ""
