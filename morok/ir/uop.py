"""The node: one immutable, hash-consed type for every level of the program.

Two nodes with the same op, operands, dtype and argument are the same object, in every thread, so `is` compares
programs. The cache holds nodes weakly. Bounds are computed at construction.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Self

from morok import handed
from morok.arguments import mapping as mapping_of
from morok.arguments import mistyped, real_or_none, several, shown
from morok.caller import caller, user_frame
from morok.errors import FieldError, IRError, IRTypeError
from morok.ir import number
from morok.ir.alive import Alive, Entry, forget
from morok.ir.cell import NO_FACTS, Cell, setter
from morok.ir.dtype import DType, dtypes
from morok.ir.graph import substitute, toposort
from morok.ir.maker import maker
from morok.ir.op import AxisType, Bounds, Op, OpDef
from morok.ir.ops import TABLE
from morok.ir.ops import field_values as _arguments
from morok.ir.provenance import Origin, describe
from morok.ir.ranges import CLOSES, binders, open_ranges
from morok.ir.shape import AXES, WITH_AXES, may_have_axes, shape_of
from morok.ir.typecheck import ARITY, PARAMS, check_nodes, check_shapes, pointwise_type, wrong_arity

# An enum member looked up in its class costs as much as the cache lookup it is for.
_CONST: Final = Op.Const
_ADD: Final = Op.Add
_SUB: Final = Op.Sub
_MUL: Final = Op.Mul
_IDIV: Final = Op.Idiv
_MOD: Final = Op.Mod
_FDIV: Final = Op.Fdiv
_AND: Final = Op.And
_OR: Final = Op.Or
_XOR: Final = Op.Xor
_SHL: Final = Op.Shl
_SHR: Final = Op.Shr
_LT: Final = Op.Lt
_LE: Final = Op.Le
_GT: Final = Op.Gt
_GE: Final = Op.Ge
_EQ: Final = Op.Eq
_NE: Final = Op.Ne
_CAST: Final = Op.Cast
_INVALID: Final = Op.Invalid
_VCONST: Final = Op.VConst
_WHERE: Final = Op.Where
_BOOL: Final = dtypes.bool
_NO_CAST: Final = frozenset({"void", "image"})
_INDEX: Final = dtypes.index
# of a constant of dtype index, which has no width of its own: more than expression text can hold
MAX_BITS: Final = 1 << 14


# The cache. Each pointwise op but Cast has a table, by operands, which determine the node. Constants of dtype index have one, by
# value. All other nodes share one.
_DEFS: Final[dict[Op, OpDef]] = TABLE.entries
_KEYED_BY_OPERANDS: Final[dict[Op, Alive[UOp]]] = {op: Alive() for op in PARAMS if op is not _CAST}
_numbers: Final[Alive[UOp]] = Alive()
_others: Final[Alive[UOp]] = Alive()
_serials: Final = itertools.count(1)  # `next` of it is one atomic step

# The setters of a node's fields, to which `UOp` refuses assignments.
_new: Final = object.__new__
_set_op: Final = setter("op")
_set_dtype: Final = setter("dtype")
_set_src: Final = setter("src")
_set_arg: Final = setter("arg")
_set_vmin: Final = setter("vmin")
_set_vmax: Final = setter("vmax")
_set_invalid: Final = setter("invalid")
_set_rank: Final = setter("rank")
_set_memo: Final = setter("memo")
_set_serial: Final = setter("serial")
came_from: Final = setter("origin")  # a rule's target may be a node that was there before (`x + 0 ~> x`)


def live() -> int:
    """The number of nodes alive."""
    return sum(map(len, _KEYED_BY_OPERANDS.values()), len(_numbers) + len(_others))


def _make(
    table: Alive[UOp],
    key: Any,
    op: Op,
    dtype: DType,
    src: tuple[UOp, ...],
    arg: Any,
    origin: Origin | None = None,
    bounded: UOp | None = None,
) -> UOp:
    """The node for `key`, made if none is alive; with the bounds of the node `bounded` where these are known to be its own."""
    # bound first: if an interrupt ends this call, it dies before the node, without a callback
    entry: Entry[UOp] | None = None
    if origin is None:
        origin = maker.origin
        if origin is None:
            frame = user_frame()
            origin = None if frame is None else (frame.f_code, frame.f_lasti)
    vmin, vmax = _BOUNDS[op](dtype, src, arg) if bounded is None else (bounded.vmin, bounded.vmax)
    invalid = op is _INVALID
    if dtype.is_index:  # a comparison with Invalid is undefined, a load at Invalid is a number
        for s in src:
            if s.invalid:  # arithmetic is strict in Invalid
                invalid = op is not _WHERE or src[1].invalid or src[2].invalid
                break
    # arithmetic gets a dict at once, for its final forms under simplification
    memo: Mapping[Any, Any] = {} if key is src else {AXES: True} if op in WITH_AXES else NO_FACTS
    for s in src:
        if AXES in s.memo:
            if may_have_axes(op, src):
                memo = {AXES: True}
            break
    node = _new(UOp)
    _set_op(node, op)
    _set_dtype(node, dtype)
    _set_src(node, src)
    _set_arg(node, arg)
    _set_vmin(node, vmin)
    _set_vmax(node, vmax)
    _set_invalid(node, invalid)
    _set_rank(node, None)
    _set_memo(node, memo)
    came_from(node, origin)
    _set_serial(node, next(_serials))
    entry = Entry(node, forget)
    entry.forget = MethodType(table.remove, key)
    return node if table.setdefault(key, entry) is entry else table.entered(key, node)


class UOp(Cell):
    """One operation of the intermediate representation: immutable, and equal ones are one object.

    op       the operation
    dtype    of its result
    src      its operands
    arg      its other parts: the value of a Const, the id and axis of a Range (OpDef.fields names them)
    vmin, vmax  bounds of every lane, where it is defined and not Invalid; -inf and inf: unbounded
    invalid  True if it may be Invalid (dtype index only)
    origin   its maker (morok.ir.provenance)
    rank     its place in the structural order, once that was needed (morok.ir.structural_order)
    serial   a number that grows with construction: never reused, unlike id()

    >>> x = UOp.var("x", dtypes.i32, 0, 9)
    >>> x + 1 is x + 1, (x * 2).vmax
    (True, 18)
    """

    __slots__ = ()

    def __new__(cls, *given: object, **named: object) -> Self:
        raise IRTypeError("UOp() makes no node", place=caller(), expected="UOp.new, UOp.const, UOp.var or UOp.range")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a UOp is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a UOp is immutable; cannot delete {name!r}")

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __bool__(self) -> bool:
        if self.op is Op.Const and self.dtype is _BOOL:
            return bool(self.arg)
        raise IRTypeError(
            "the truth of an expression is not known at compile time", place=caller(), hint="compare nodes with `is`"
        )

    def __repr__(self) -> str:
        return self.text()

    def __reduce__(self) -> tuple[Any, ...]:
        pickling = handed.part("pickled nodes")
        return (pickling.restore, (pickling.table(self),))

    # Construction.

    @staticmethod
    def new(op: Op, src: tuple[UOp, ...] = (), arg: Any = None, dtype: DType | None = None) -> UOp:
        """The node `op` over `src`, type-checked; `dtype` where the op does not determine its own.

        IRTypeError, with the caller's line, where operands, argument or dtype do not fit the op.

        >>> UOp.new(Op.Add, (UOp.const(1, dtypes.i32), UOp.var("x", dtypes.i32))).text()
        'Add(1, x: i32)'
        """
        try:
            entry = _DEFS[op]
        except (KeyError, TypeError):
            raise mistyped(op, "the op of a node", "an Op, such as Op.Add", IRTypeError) from None
        table = _KEYED_BY_OPERANDS.get(op)
        if table is not None:
            try:
                found = table.get(src)
                if found is not None and (node := found()) is not None:
                    return node
                for s in src:
                    if s.__class__ is not UOp:  # a tensor has a dtype, too
                        check_nodes(entry, src)
                return _make(table, src, op, pointwise_type(entry, src), src, None)
            except (AttributeError, TypeError):
                check_nodes(entry, src)
                raise
        if src.__class__ is not tuple:
            check_nodes(entry, src)
        for s in src:
            if s.__class__ is not UOp:
                check_nodes(entry, src)
        if op is _CAST:
            return cast(src[0], dtype) if len(src) == 1 else wrong_arity(entry, src)
        if dtype is not None and dtype.__class__ is not DType:  # an enum member's name costs as much as the lookup
            _check_dtype(dtype, op.name)
        assert entry.typing is not None
        least, most = ARITY[op]
        if not least <= len(src) <= most:
            wrong_arity(entry, src)
        try:
            if entry.fields or arg is not None:
                _arguments.check(op, entry.fields, arg)
            result = entry.typing(src, arg, dtype)
        except IRError:
            raise
        except (TypeError, ValueError) as problem:
            raise IRTypeError(f"{op.name}: expected {problem}", place=caller()) from None
        if op is _CONST or op is _VCONST:
            return intern(op, result, src, arg)
        # as in `intern`, without the call
        key = (op, result, arg if arg is None or op in _PLAIN else _arg_key(arg), src)
        entered = _others.get(key)
        if entered is not None and (node := entered()) is not None:
            return node
        return _make(_others, key, op, result, src, arg)

    @staticmethod
    def const(value: Any, dtype: DType | None = None) -> UOp:
        """A constant, wrapped or rounded to `dtype`; without one bool, index or f32 by the value's type.

        At a vector dtype every lane is `value`; a sequence gives the lanes one by one. IRTypeError for anything but a number of
        the dtype.

        >>> UOp.const(300, dtypes.i8).arg
        44
        """
        if dtype is _INDEX and value.__class__ is int:  # a fast path for the most frequent case
            found = _numbers.get(value)
            if found is not None and (node := found()) is not None:
                return node
            return _make(_numbers, value, _CONST, dtype, (), _short(value))
        if dtype is not None:
            _check_dtype(dtype, "Const")
        if isinstance(value, (tuple, list)):
            return vconst(_default_dtype(value[0] if value else 0) if dtype is None else dtype.scalar(), value)
        if dtype is None:
            dtype = _default_dtype(value)
        scalar = dtype.scalar()
        if dtype is _INDEX:
            return UOp.const(value if value.__class__ is int else _coerced(scalar, value), dtype)
        if value.__class__ is int and scalar.is_integral:
            value = _short(value) if scalar is _INDEX else number.wrap(scalar, value)
            key = (_CONST, dtype, value)
        else:
            value = _coerced(scalar, value)
            key = (_CONST, dtype, number.key(scalar, value))
        found = _others.get(key)
        if found is not None and (node := found()) is not None:
            return node
        return _make(_others, key, _CONST, dtype, (), value)

    @staticmethod
    def invalid_at(dtype: DType = _INDEX) -> UOp:
        """The index of no element: nothing is read or written there.

        >>> UOp.invalid_at().invalid
        True
        """
        return UOp.new(Op.Invalid, dtype=dtype)

    @staticmethod
    def var(name: str, dtype: DType = _INDEX, vmin: int | float | None = None, vmax: int | float | None = None) -> UOp:
        """A free variable; integers may have bounds narrower than their dtype's. IRTypeError for anything but a dtype.

        >>> UOp.var("x", dtypes.index, 0, 31).text()
        'x: index[0..=31]'
        """
        d = _check_dtype(dtype, "a variable").scalar()
        return UOp.new(
            Op.DefineVar, (), (name, d.min if vmin is None else vmin, d.max if vmax is None else vmax), dtype
        )

    @staticmethod
    def range(
        end: UOp | int, id: int, axis: AxisType = AxisType.Loop, renumbered: bool = False, deps: tuple[UOp, ...] = ()
    ) -> UOp:
        """A loop over [0, end): the node is its counter. `deps` stand before it in a list of instructions, and add nothing
        to the meaning of a graph: stage 20 of the pipeline puts them there. IRTypeError for anything but nodes.

        >>> UOp.range(8, 0).vmax
        7
        """
        waits = several(deps, "the deps of a Range", "a tuple of nodes", IRTypeError)
        return UOp.new(Op.Range, (as_uop(end, _INDEX), *waits), (id, axis, renumbered))

    def index(self, *indices: UOp | int, gate: UOp | None = None) -> UOp:
        """The place in this buffer at `indices`, or, as an operand of arithmetic, its value; Invalid where `gate` is false.

        >>> UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16)).index(3).dtype
        f32
        """
        places = tuple(as_uop(i, _INDEX) for i in indices)
        return UOp.new(Op.Index, (self, *places) if gate is None else (self, *places, gate), gate is not None)

    def load(self, dtype: DType | None = None) -> UOp:
        """The element at this place; with a vector `dtype` that many elements from it on.

        >>> UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16)).index(3).load(dtypes.f32.vec(4)).dtype
        f32x4
        """
        return UOp.new(Op.Load, (self,), dtype=dtype)

    def store(self, value: UOp, *ranges: UOp) -> UOp:
        """The store of `value` to this place, once for each iteration of `ranges`; of dtype void.

        >>> UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16)).index(3).store(UOp.const(1.0)).dtype
        void
        """
        return UOp.new(Op.Store, (self, value, *ranges))

    def end(self, *ranges: UOp) -> UOp:
        """This node with the loops `ranges` closed behind it; the node itself without ranges.

        >>> r = UOp.range(8, 0)
        >>> r in UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16)).index(r).store(UOp.const(1.0)).end(r).ranges
        False
        """
        return UOp.new(Op.End, (self, *ranges)) if ranges else self

    def after(self, *deps: UOp) -> UOp:
        """This node once all of `deps` are done; the node itself without any.

        >>> b = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16))
        >>> b.after(b.index(0).store(UOp.const(1.0))).op.name
        'After'
        """
        return UOp.new(Op.After, (self, *deps)) if deps else self

    def reduce(self, op: Op, *ranges: UOp) -> UOp:
        """The fold of this value by `op` over the loops `ranges`, in this node's dtype.

        >>> UOp.range(8, 0).reduce(Op.Max, UOp.range(8, 0)).dtype
        index
        """
        return UOp.new(Op.Reduce, (self, *ranges), op)

    @staticmethod
    def sink(*sources: UOp, info: Any = None) -> UOp:
        """A program: the root over all that is stored, of dtype void; `info` names the kernel and its optimizations.

        >>> UOp.sink().dtype
        void
        """
        return UOp.new(Op.Sink, sources, info)

    @staticmethod
    def vectorize(*elements: UOp) -> UOp:
        """The vector with these scalars as lanes; of one scalar, itself. IRTypeError for several dtypes.

        >>> UOp.vectorize(UOp.const(1.0), UOp.const(2.0)).dtype
        f32x2
        """
        return elements[0] if len(elements) == 1 and isinstance(elements[0], UOp) else UOp.new(Op.Vectorize, elements)

    def gep(self, *indices: int) -> UOp:
        """The lanes `indices` of this vector: a scalar for one, else a vector. IRTypeError for a lane that is not there.

        >>> UOp.vectorize(UOp.const(1.0), UOp.const(2.0)).gep(1).dtype
        f32
        """
        return UOp.new(Op.Gep, (self,), indices)

    def cast(self, dtype: DType) -> UOp:
        """This value converted to `dtype`; the lanes stay. IRTypeError where there is no conversion.

        >>> UOp.var("x", dtypes.i32).cast(dtypes.f32).dtype
        f32
        """
        return cast(self, dtype)

    def bitcast(self, dtype: DType) -> UOp:
        """The same bits as `dtype`. IRTypeError for another width.

        >>> UOp.var("x", dtypes.i32).bitcast(dtypes.f32).dtype
        f32
        """
        d = _check_dtype(dtype, "Bitcast")
        if d.bits * d.count != self.dtype.bits * self.dtype.count:
            wanted = f"a dtype of {self.dtype.bits * self.dtype.count} bits"
            raise IRTypeError(f"Bitcast: {self.dtype} and {d} differ in width", place=caller(), expected=wanted)
        return UOp.new(Op.Bitcast, (self,), dtype=dtype)

    def like(self, value: Any) -> UOp:
        """The constant `value` at this node's dtype; a node is returned as it is.

        IRTypeError for anything but a number of the dtype.

        >>> UOp.var("x", dtypes.i8).like(3).dtype
        i8
        """
        return value if isinstance(value, UOp) else UOp.const(value, self.dtype)

    def replace(self, src: tuple[UOp, ...]) -> UOp:
        """This node with other operands; the dtype is computed anew where the op determines it. Where an operand says which loops
        are closed, an expression stands for the loops in it.

        IRTypeError where the operands do not fit the op.

        >>> (UOp.var("x", dtypes.i32) + 1).replace((UOp.const(1.0), UOp.const(2.0))).dtype
        f32
        """
        op = self.op
        old = self.src
        if src.__class__ is not tuple:
            check_nodes(self.entry, src)
        for s in src:
            if s.__class__ is not UOp:
                check_nodes(self.entry, src)
        first = CLOSES.get(op)
        if first is not None:
            src = binders(src, first)
        if len(src) == len(old) and _alike(src, old):  # checked when this node was made
            if op in _KEYED_BY_OPERANDS:
                check_shapes(self.entry, src)
            return intern(op, self.dtype, src, self.arg)
        if op in _KEYED_BY_OPERANDS:
            return UOp.new(op, src)
        return UOp.new(op, src, self.arg, self.dtype if op in _OWN_DTYPE else None)

    # Pointwise ops, by name and by operator. `//` and `%` are Idiv and Mod, which truncate.

    def __add__(self, other: Any) -> UOp:
        return binary(_ADD, self, other) if other.__class__ is UOp else _mixed(_ADD, self, other)

    def __radd__(self, other: Any) -> UOp:
        return binary(_ADD, self.like(other), self)

    def __sub__(self, other: Any) -> UOp:
        return binary(_SUB, self, other) if other.__class__ is UOp else _mixed(_SUB, self, other)

    def __rsub__(self, other: Any) -> UOp:
        return binary(_SUB, self.like(other), self)

    def __mul__(self, other: Any) -> UOp:
        return binary(_MUL, self, other) if other.__class__ is UOp else _mixed(_MUL, self, other)

    def __rmul__(self, other: Any) -> UOp:
        return binary(_MUL, self.like(other), self)

    def __floordiv__(self, other: Any) -> UOp:
        return _mixed(_IDIV, self, other)

    def __mod__(self, other: Any) -> UOp:
        return _mixed(_MOD, self, other)

    def __truediv__(self, other: Any) -> UOp:
        return _mixed(_FDIV, self, other)

    def __rfloordiv__(self, other: Any) -> UOp:
        return binary(_IDIV, self.like(other), self)

    def __rmod__(self, other: Any) -> UOp:
        return binary(_MOD, self.like(other), self)

    def __rtruediv__(self, other: Any) -> UOp:
        return binary(_FDIV, self.like(other), self)

    def __rand__(self, other: Any) -> UOp:
        return binary(_AND, self.like(other), self)

    def __ror__(self, other: Any) -> UOp:
        return binary(_OR, self.like(other), self)

    def __rxor__(self, other: Any) -> UOp:
        return binary(_XOR, self.like(other), self)

    def __rlshift__(self, other: Any) -> UOp:
        return binary(_SHL, self.like(other), self)

    def __rrshift__(self, other: Any) -> UOp:
        return binary(_SHR, self.like(other), self)

    def __neg__(self) -> UOp:
        return UOp.new(Op.Neg, (self,))

    def __invert__(self) -> UOp:
        return UOp.new(Op.Not, (self,))

    def __and__(self, other: Any) -> UOp:
        return _mixed(_AND, self, other)

    def __or__(self, other: Any) -> UOp:
        return _mixed(_OR, self, other)

    def __xor__(self, other: Any) -> UOp:
        return _mixed(_XOR, self, other)

    def __lshift__(self, other: Any) -> UOp:
        return _mixed(_SHL, self, other)

    def __rshift__(self, other: Any) -> UOp:
        return _mixed(_SHR, self, other)

    def __lt__(self, other: Any) -> UOp:
        return _mixed(_LT, self, other)

    def __le__(self, other: Any) -> UOp:
        return _mixed(_LE, self, other)

    def __gt__(self, other: Any) -> UOp:
        return _mixed(_GT, self, other)

    def __ge__(self, other: Any) -> UOp:
        return _mixed(_GE, self, other)

    def eq(self, other: Any) -> UOp:
        """True where this value equals the other, as bool; Python numbers become constants of this dtype.

        >>> UOp.var("x", dtypes.i32).eq(3).text()
        'Eq(x: i32, 3)'
        """
        return binary(_EQ, self, self.like(other))

    def ne(self, other: Any) -> UOp:
        """True where this value differs from the other, as bool; Python numbers become constants of this dtype.

        >>> UOp.var("x", dtypes.i32).ne(3).text()
        'Ne(x: i32, 3)'
        """
        return binary(_NE, self, self.like(other))

    def where(self, t: UOp, f: UOp) -> UOp:
        """`t` where this condition holds, else `f`. IRTypeError unless self is bool and both have one dtype.

        >>> x = UOp.var("x", dtypes.i32)
        >>> (x < 3).where(x, x.like(3)).text()
        'Where(Lt(x: i32, 3), x, 3)'
        """
        return UOp.new(Op.Where, (self, t, f))

    # Reading.

    @property
    def entry(self) -> OpDef:
        """This op's entry in the op table.

        >>> (UOp.var("x", dtypes.i32) + 1).entry.pointwise
        True
        """
        return _DEFS[self.op]

    @property
    def is_const(self) -> bool:
        """True for a Const.

        >>> UOp.const(1).is_const
        True
        """
        return self.op is _CONST

    def field(self, name: str) -> Any:
        """The part of `arg` of this name, or the dtype. FieldError if the op has no such part.

        >>> UOp.range(8, 3).field("id")
        3
        """
        fields = _DEFS[self.op].fields
        if isinstance(name, str):
            if name == "dtype":
                return self.dtype
            if name in fields:
                return self.arg if len(fields) == 1 else self.arg[fields.index(name)]
        expected = " or ".join([*fields, "dtype"])
        raise FieldError(f"{self.op.name} has no field {shown(name)}", place=caller(), expected=expected)

    def toposort(self) -> list[UOp]:
        """Every node below this one and itself, operands first, each once.

        >>> [n.op.name for n in (UOp.var("x", dtypes.i32) + 1).toposort()]
        ['DefineVar', 'Const', 'Add']
        """
        return toposort((self,))

    def substitute(self, mapping: Mapping[UOp, UOp]) -> UOp:
        """This graph with every node of `mapping` replaced at once; replacements are not searched. Linear in the graph.

        IRTypeError for anything but nodes.

        >>> x, y = UOp.var("x", dtypes.i32), UOp.var("y", dtypes.i32)
        >>> (x + 1).substitute({x: y}).text()
        'Add(y: i32, 1)'
        """
        expected = "a mapping of nodes to nodes"
        for pair in mapping_of(mapping, "what substitute() replaces", expected, IRTypeError).items():
            for node in pair:
                if not isinstance(node, UOp):
                    raise mistyped(node, "what substitute() replaces", expected, IRTypeError)
        return substitute((self,), mapping)[0]

    @property
    def ranges(self) -> frozenset[UOp]:
        """The loops that this node depends on and nothing below it closes.

        >>> r = UOp.range(8, 0)
        >>> (r + 1).ranges == {r}
        True
        """
        return open_ranges(self)

    @property
    def shape(self) -> tuple[int | UOp, ...]:
        """The shape of a tensor-level node; () for scalars.

        >>> Tensor.zeros(2, 3).uop.shape
        (2, 3)
        """
        return shape_of(self)

    def text(self) -> str:
        """This graph in the notation of rules; `morok.parse` gives it back.

        >>> (UOp.var("x", dtypes.i32) + 1).text()
        'Add(x: i32, 1)'
        """
        text: str = handed.part("text of nodes")(self)
        return text

    def tree(self) -> str:
        """A drawing of this graph, one node a line, a shared node once.

        >>> print((UOp.var("x", dtypes.i32) + 1).tree())
        [0] Add : i32
        ├─ [1] DefineVar x: i32 : i32
        └─ [2] Const 1 : i32
        """
        drawing: str = handed.part("drawing of nodes")(self)
        return drawing

    def provenance(self) -> list[str]:
        """The origin of this node: the user's line, then each rule that rewrote it.

        >>> x = UOp.var("x", dtypes.i32)
        >>> morok.simplify(x * 2 + x).provenance()[-1]
        'rule `term_combining.one_more`'
        """
        return describe(self.origin)

    # Method forms of the pointwise ops, `x.idiv(4)`, and `UOp.idiv(x, y)`.
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., UOp]: ...


def as_uop(value: UOp | int | float | bool, dtype: DType) -> UOp:
    """A node: `value` itself, or its constant at `dtype`."""
    return value if isinstance(value, UOp) else UOp.const(value, dtype)


def _check_dtype(dtype: Any, what: str) -> DType:
    """A dtype; IRTypeError for anything else."""
    if isinstance(dtype, DType):
        return dtype
    raise mistyped(dtype, f"the dtype of {what}", "a dtype, such as dtypes.f32", IRTypeError)


def _default_dtype(value: Any) -> DType:
    return _BOOL if isinstance(value, bool) else _INDEX if isinstance(value, Integral) else dtypes.f32


def _coerced(scalar: DType, value: Any) -> Any:
    """`value` at `scalar`: wrapped or rounded; IRTypeError where it is no number, or not an integer and should be."""
    try:
        out = (
            number.coerce(scalar, value) if isinstance(value, (int, float)) or real_or_none(value) is not None else None
        )
    except (TypeError, ValueError, OverflowError):
        out = None
    if out is None or (scalar.is_integral and value != int(value)):
        raise IRTypeError(
            f"{shown(value)} is no constant of dtype {scalar}",
            place=caller(),
            expected="a node, or an integer" if scalar.is_integral else "a node, or a number",
            hint="its graph is in its `uop`" if hasattr(value, "uop") else "",
        )
    return out


def vconst(scalar: DType, values: Sequence[Any]) -> UOp:
    """A constant with these lanes; equal lanes give a Const of vector dtype, so a splat has one form."""
    if not values:
        raise IRTypeError("a vector constant without lanes", place=caller(), expected="a number for each lane")
    lanes = tuple([_coerced(scalar, v) for v in values])
    if scalar is _INDEX:
        lanes = tuple(map(_short, lanes))
    keys = tuple(number.key(scalar, v) for v in lanes)
    if all(k == keys[0] for k in keys):
        return UOp.const(lanes[0], scalar.vec(len(lanes)))
    key = (Op.VConst, scalar, keys)
    found = _others.get(key)
    if found is not None and (node := found()) is not None:
        return node
    return _make(_others, key, Op.VConst, scalar.vec(len(lanes)), (), lanes)


def _short(value: int) -> int:
    """A value of dtype index; IRTypeError for one of more bits than a constant may have."""
    if value.bit_length() > MAX_BITS:
        raise IRTypeError(
            f"a constant of dtype index of {value.bit_length():,} bits",
            place=caller(),
            expected=f"at most {MAX_BITS:,}",
            hint="arithmetic on constants is done at compile time, and dtype index does not wrap: use an integer of fixed width",
        )
    return value


def cast(x: UOp, dtype: DType | None) -> UOp:
    """`x` converted to `dtype`, lane by lane."""
    if not isinstance(dtype, DType):
        dtype = _check_dtype(dtype, "Cast")
    if dtype.kind in _NO_CAST or x.dtype.kind in _NO_CAST or dtype.is_ptr != x.dtype.is_ptr:
        raise IRTypeError(
            f"Cast: no conversion from {x.dtype} to {dtype}",
            place=caller(),
            expected="numbers to numbers, or pointers to pointers",
        )
    if dtype.count == 1:
        dtype = dtype.scalar().vec(x.dtype.count)
    elif dtype.count != x.dtype.count:
        raise IRTypeError(
            f"Cast: {x.dtype} and {dtype} differ in lanes",
            place=caller(),
            expected=f"a scalar dtype, or {x.dtype.count} lanes",
        )
    return intern(Op.Cast, dtype, (x,), None)


def binary(op: Op, a: UOp, b: UOp) -> UOp:
    """`UOp.new(op, (a, b))` of a pointwise op other than Cast, a little faster."""
    src = (a, b)
    table = _KEYED_BY_OPERANDS[op]
    found = table.get(src)
    if found is not None and (node := found()) is not None:
        return node
    d = a.dtype
    typed = _TYPED[op]
    result = typed.get(d) if b.dtype is d else None
    if result is None:
        result = typed[d] = pointwise_type(_DEFS[op], src)
    elif AXES in a.memo and AXES in b.memo:
        check_shapes(_DEFS[op], src)
    return _make(table, src, op, result, src, None)


def _mixed(op: Op, a: UOp, other: Any) -> UOp:
    """`binary` with a Python number, for an operator; NotImplemented for an object whose own operator NumPy leaves such cases to,
    by the same protocol: a tensor.
    """
    return NotImplemented if getattr(other.__class__, "__array_ufunc__", a) is None else binary(op, a, a.like(other))


def intern(op: Op, dtype: DType, src: tuple[UOp, ...], arg: Any) -> UOp:
    """The node of these parts, unchecked: for code that copies or rebuilds nodes that were checked once."""
    if op is _CONST:
        return UOp.const(arg, dtype)
    if op is _VCONST:
        return vconst(dtype.scalar(), arg)
    table = _KEYED_BY_OPERANDS.get(op)
    key: Any = src
    if table is None:
        table = _others
        key = (op, dtype, arg if arg is None or op in _PLAIN else _arg_key(arg), src)
    found = table.get(key)
    if found is not None and (node := found()) is not None:
        return node
    return _make(table, key, op, dtype, src, arg)


def _alike(new: tuple[UOp, ...], old: tuple[UOp, ...]) -> bool:
    """True if two equally long lists of operands have the same dtypes, one by one."""
    if len(old) == 2:  # the most frequent case: an iterator over both costs more than the comparison
        return new[0].dtype is old[0].dtype and new[1].dtype is old[1].dtype
    return [a.dtype for a in new] == [b.dtype for b in old]


def rebuilt(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """`node` over other operands, with the origin of `node`; type-checked again only if the operands' dtypes differ."""
    op = node.op
    table = _KEYED_BY_OPERANDS.get(op)
    if table is not None:
        found = table.get(src)
        if found is not None and (known := found()) is not None:
            return known
    old = node.src
    alike = len(src) == len(old) and _alike(src, old)
    if alike and table is not None:
        if len(src) > 1 and (AXES in src[0].memo or AXES in src[1].memo):  # else at most one of them has axes
            check_shapes(_DEFS[op], src)
        return _make(table, src, op, node.dtype, src, None, node.origin)
    outer = maker.origin
    maker.origin = node.origin
    try:
        return intern(op, node.dtype, src, node.arg) if alike and op not in CLOSES else node.replace(src)
    finally:
        maker.origin = outer


def relinked(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """`node` over one or more other operands, each of the old dtype and bounds: dtype and bounds of the node are copied."""
    op = node.op
    arg = node.arg
    table = _KEYED_BY_OPERANDS.get(op)
    key: Any = src
    if table is None:
        table = _others
        key = (op, node.dtype, arg if arg is None or op in _PLAIN else _arg_key(arg), src)
    found = table.get(key)
    if found is not None and (known := found()) is not None:
        return known
    return _make(table, key, op, node.dtype, src, arg, node.origin, node)


def sketch(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """An ephemeral view of `node` over other operands: a Cell in no table, no UOp, and without bounds."""
    cell: Any = Cell()
    cell.op = node.op
    cell.dtype = node.dtype
    cell.src = src
    cell.arg = node.arg
    cell.origin = node.origin
    cell.memo = NO_FACTS
    invalid = False
    for s in src:
        if s.invalid:
            invalid = True
    cell.invalid = invalid
    sketched: UOp = cell
    return sketched


def _any_value(dtype: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    """The bounds of an op that has no bounds of its own."""
    return dtype.min, dtype.max


def _arg_key(arg: Any) -> Any:
    """`arg` as part of a cache key: True, 1 and 1.0 are equal in Python and different arguments here.

    The parts of a frozen dataclass stand for it. Its own hash is a Python function, which would run when the node dies, in a
    callback: an interrupt that arrives there is lost.
    """
    kind = arg.__class__
    if kind is tuple:
        return tuple([_arg_key(a) for a in arg])
    if (made := getattr(kind, "__dataclass_params__", None)) is not None and made.frozen and made.eq:
        return kind, *[_arg_key(getattr(arg, f.name)) for f in dataclasses.fields(arg) if f.compare]
    return (kind, arg) if kind is bool or kind is float else arg


_BOUNDS: Final = {op: _any_value if e.bounds is None else e.bounds for op, e in _DEFS.items()}
# A cache: the dtype of a binary op's result by that of both operands.
_TYPED: Final[dict[Op, dict[DType, DType]]] = {op: {} for op, e in _DEFS.items() if e.signature is not None}
_PLAIN: Final = _arguments.PLAIN
# Ops whose dtype their maker gives; it stays when their operands change.
_OWN_DTYPE: Final = frozenset({Op.Bitcast, Op.Precast, Op.PointerIndex, Op.BufferView, Op.Custom, Op.CustomI})


def _method(op: Op) -> Callable[..., UOp]:
    def construct(self: UOp, *operands: Any) -> UOp:
        return UOp.new(op, (self, *[self.like(o) for o in operands]))

    construct.__name__ = op.name.lower()
    construct.__doc__ = f"{op.name} of this node and the operands; Python numbers become constants of its dtype."
    return construct


for _op, _entry in _DEFS.items():
    if _entry.pointwise and not hasattr(UOp, _op.name.lower()):
        setattr(UOp, _op.name.lower(), _method(_op))
