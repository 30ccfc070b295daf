"""The ops: one enum for every level, and the entry of the op table for each.

The table itself is filled by `morok/ir/ops/`, one file a theme. An entry names the solver function and the code of an op, and has
everything else about it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from morok.ir.dtype import DType

if TYPE_CHECKING:
    from morok.ir.uop import UOp


class _Identity(enum.Enum):
    """Enum members hashed by identity: `Enum.__hash__` is a Python function, and ops are hashed on every lookup."""

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name


class Op(_Identity):
    """Every operation, from tensors to instructions, spelled as in the rule language."""

    # leaves
    Const = enum.auto()
    VConst = enum.auto()
    Invalid = enum.auto()
    DefineVar = enum.auto()
    # unary
    Neg = enum.auto()
    Not = enum.auto()
    Sqrt = enum.auto()
    Reciprocal = enum.auto()
    Exp2 = enum.auto()
    Log2 = enum.auto()
    Sin = enum.auto()
    Trunc = enum.auto()
    Floor = enum.auto()
    Ceil = enum.auto()
    Round = enum.auto()
    Exp = enum.auto()
    Log = enum.auto()
    Cos = enum.auto()
    Tan = enum.auto()
    Tanh = enum.auto()
    Abs = enum.auto()
    Sign = enum.auto()
    Erf = enum.auto()
    Rsqrt = enum.auto()
    Square = enum.auto()
    # binary
    Add = enum.auto()
    Sub = enum.auto()
    Mul = enum.auto()
    Idiv = enum.auto()
    Mod = enum.auto()
    FloorDiv = enum.auto()
    FloorMod = enum.auto()
    Fdiv = enum.auto()
    Max = enum.auto()
    Min = enum.auto()
    Pow = enum.auto()
    And = enum.auto()
    Or = enum.auto()
    Xor = enum.auto()
    Shl = enum.auto()
    Shr = enum.auto()
    Threefry = enum.auto()
    # comparisons
    Lt = enum.auto()
    Le = enum.auto()
    Gt = enum.auto()
    Ge = enum.auto()
    Eq = enum.auto()
    Ne = enum.auto()
    # ternary
    Where = enum.auto()
    MulAcc = enum.auto()
    # types
    Cast = enum.auto()
    Bitcast = enum.auto()
    Precast = enum.auto()
    # loops
    Range = enum.auto()
    End = enum.auto()
    Reduce = enum.auto()
    ReduceAxis = enum.auto()
    AllReduce = enum.auto()
    If = enum.auto()
    EndIf = enum.auto()
    Special = enum.auto()
    # memory
    Unique = enum.auto()
    Device = enum.auto()
    Buffer = enum.auto()
    BufferView = enum.auto()
    Bufferize = enum.auto()
    Index = enum.auto()
    PointerIndex = enum.auto()
    Load = enum.auto()
    Store = enum.auto()
    Param = enum.auto()
    DefineGlobal = enum.auto()
    DefineLocal = enum.auto()
    DefineReg = enum.auto()
    Bind = enum.auto()
    After = enum.auto()
    Barrier = enum.auto()
    Copy = enum.auto()
    Assign = enum.auto()
    # kernels
    Kernel = enum.auto()
    Sink = enum.auto()
    Group = enum.auto()
    Noop = enum.auto()
    Custom = enum.auto()
    CustomI = enum.auto()
    # vectors
    Vectorize = enum.auto()
    Gep = enum.auto()
    Cat = enum.auto()
    PtrCat = enum.auto()
    Unroll = enum.auto()
    Contract = enum.auto()
    Wmma = enum.auto()
    # tensors
    Reshape = enum.auto()
    Permute = enum.auto()
    Expand = enum.auto()
    Pad = enum.auto()
    Shrink = enum.auto()
    Flip = enum.auto()
    Iota = enum.auto()
    Concat = enum.auto()
    Contiguous = enum.auto()
    ContiguousBackward = enum.auto()
    Detach = enum.auto()
    Multi = enum.auto()
    MSelect = enum.auto()
    MStack = enum.auto()


class Position(enum.Enum):
    """The role of an operand in its op (ops.md, Positions). Value rules rewrite value positions only."""

    __hash__ = object.__hash__  # see _Identity

    VALUE = "value"
    PLACE = "place"
    BINDER = "binder"
    ORDER = "order"


class AxisType(_Identity):
    """The kind of a loop: in order, on threads, as lanes, on a GPU's grid. `priority` is its nesting order, lower further out.

    >>> AxisType.Global.priority < AxisType.Reduce.priority
    True
    """

    Outer = enum.auto()
    Loop = enum.auto()
    Global = enum.auto()
    Thread = enum.auto()
    Warp = enum.auto()
    Local = enum.auto()
    GroupReduce = enum.auto()
    Upcast = enum.auto()
    Reduce = enum.auto()
    Unroll = enum.auto()

    @property
    def priority(self) -> int:
        """The place of this kind in the nesting of loops, lower further out.

        >>> AxisType.Unroll.priority
        5
        """
        return _PRIORITY[self]


_PRIORITY: Final = {
    AxisType.Outer: -2,
    AxisType.Loop: -1,
    AxisType.Global: 0,
    AxisType.Thread: 0,
    AxisType.Warp: 1,
    AxisType.Local: 2,
    AxisType.GroupReduce: 2,
    AxisType.Upcast: 3,
    AxisType.Reduce: 4,
    AxisType.Unroll: 5,
}

REDUCE_OPS: Final = (Op.Add, Op.Mul, Op.Max, Op.Min)  # the values of a Reduce's `op` field
# What says which loops an op closes: a Range itself, an Unroll its axes, a number, which stands where a loop was, none.
BINDERS: Final = frozenset({Op.Range, Op.Unroll, Op.Const})
# in a list of instructions their operands stand for them
NO_INSTRUCTION: Final = frozenset({Op.Sink, Op.Group, Op.Noop})


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an op: its name in struct patterns and its position. `many` takes a sequence, `optional` zero or one; for
    `holds` see morok.dialect.OperandInfo.
    """

    name: str
    position: Position = Position.VALUE
    many: bool = False
    optional: bool = False
    holds: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """The dtypes of a pointwise op, as letters: `Signature("T T", "bool", {"T": NUMBERS})` is (T, T) -> bool.

    A word that is no key of `domains` is a dtype's name. The typing holds lane by lane.
    """

    operands: str
    result: str
    domains: Mapping[str, tuple[DType, ...]]

    @property
    def params(self) -> tuple[str, ...]:
        return tuple(self.operands.split())


Bounds = tuple[int | float, int | float]
# Nodes, in annotations of the modules that `uop` imports.
Node: TypeAlias = "UOp"
Operands: TypeAlias = "tuple[UOp, ...]"
Typing = Callable[["Operands", Any, "DType | None"], DType]


class Undefined(Exception):
    """An op has no value on these operands (ops.md, `undefined when`)."""


@dataclass(frozen=True, slots=True)
class OpDef:
    """The definition of one op.

    operands   names and positions, in the order of `src`
    fields     names of the parts of `arg`, in order; one field: `arg` is its value; more: a tuple of them
    signature  the typing of a pointwise op; None for ops with a function `typing`
    typing     (src, arg, wanted dtype or None) -> dtype, or raises TypeError saying what was expected
    bounds     (dtype, src, arg) -> (vmin, vmax) of every lane where defined; None: the dtype's own range
    evaluate   one lane: (dtype, *values) -> value, or raises Undefined; None if a lane is no function of one lane per operand.
               `dtype` is the result's for arithmetic and casts, and the operands' for comparisons; casts and Bitcast are
               given the operand's behind the value
    role       how it rearranges lanes: see morok.dialect.OpInfo
    solver     import path "module:function" of its solver semantics; "" where structure, not value, is its meaning
    types, field_kinds, dtype_given   for the checker of rules: see morok.dialect.OpInfo
    llvm, cuda names of the functions in `codegen` that render it; "" where it never reaches a renderer
    """

    op: Op
    operands: tuple[Operand, ...] = ()
    fields: tuple[str, ...] = ()
    signature: Signature | None = None
    typing: Typing | None = None
    bounds: Callable[[DType, Operands, Any], Bounds] | None = None
    evaluate: Callable[..., Any] | None = None
    commutative: bool = False
    comparison: bool = False
    solver: str = ""
    role: str = ""
    types: str = ""
    field_kinds: Mapping[str, str] = field(default_factory=dict)
    dtype_given: bool = False
    llvm: str = ""
    cuda: str = ""
    doc: str = ""

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def pointwise(self) -> bool:
        return self.signature is not None


@dataclass(slots=True)
class OpTable:
    """The op table: filled once, at import of `morok.ir.ops`."""

    entries: dict[Op, OpDef] = field(default_factory=dict)

    def define(self, entry: OpDef) -> None:
        assert entry.op not in self.entries, f"{entry.op} is defined twice"
        self.entries[entry.op] = entry

    def __getitem__(self, op: Op) -> OpDef:
        return self.entries[op]


TABLE: Final = OpTable()
