"""Morok's IR as a dialect: the op table in the form that the engine reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from morok.caller import caller
from morok.dialect import NOT_CONST, OperandInfo, OpInfo, built_in
from morok.errors import DialectError
from morok.ir.cell import NO_FACTS, facts_of
from morok.ir.definedness import defined
from morok.ir.divisors import excludes_overflow, excludes_zero
from morok.ir.dtype import (
    BY_NAME,
    FLOATS,
    INTS,
    NUMBERS,
    SCALARS,
    SIGNED,
    UNSIGNED,
    AddrSpace,
    DType,
    dtypes,
    safe_cast,
)
from morok.ir.graph import toposort
from morok.ir.independence import done_within, independent
from morok.ir.launch import counts, launched, renames, told_apart
from morok.ir.maker import maker
from morok.ir.op import NO_INSTRUCTION, REDUCE_OPS, TABLE, AxisType, Op, OpDef, Undefined
from morok.ir.ops.loop import identity
from morok.ir.places import PASSING, PLACES, STORAGE
from morok.ir.provenance import Origin, rewritten
from morok.ir.pure import PURE
from morok.ir.ranges import axes_of, free_of, free_of_axes, replace_range, vector_axis
from morok.ir.shape import LISTED, OF_AXES, has_shape, same_axes, shape_of
from morok.ir.structural_order import precedes
from morok.ir.uop import UOp, binary, came_from, cast, rebuilt, sketch, vconst
from morok.lane_roles import join, take

# ops that have a shape if their operand has one
_ALIKE: Final = frozenset({Op.Permute, Op.Pad, Op.Flip, Op.After, Op.Barrier})
_INDEX: Final = Op.Index
_BY_NAME: Final = {e.name: e for e in TABLE.entries.values()}
_INTERFACE: Final = frozenset({Op.DefineGlobal, Op.DefineVar, Op.Special, Op.Range})  # a kernel's parameters and loops
_DOING: Final = frozenset({Op.Barrier, Op.Custom})  # which may have a value, too
_KIND: Final = {1: "unary", 2: "binary", 3: "ternary"}


def _info(entry: OpDef) -> OpInfo:
    operands = tuple(OperandInfo(o.name, o.position.value, o.many, o.optional, o.holds) for o in entry.operands)
    s = entry.signature
    return OpInfo(
        name=entry.name,
        key=entry.op,
        operands=operands,
        fields=entry.fields,
        params=s.params if s else (),
        result=s.result if s else "",
        domains={k: tuple(d.name for d in v) for k, v in s.domains.items()} if s else {},
        kind=_KIND[len(s.params)] if s and entry.op is not Op.Cast else "",
        commutative=entry.commutative,
        comparison=entry.comparison,
        evaluate=entry.evaluate,
        solver=entry.solver,
        role=entry.role,
        types=entry.types,
        field_kinds=entry.field_kinds,
        dtype_given=entry.dtype_given,
    )


def _field_templates() -> dict[str, str]:
    """The text by which generated code reads each static field."""
    found = {"attr.dtype": "{n}.dtype"}
    for e in TABLE.entries.values():
        for i, f in enumerate(e.fields):
            found[f"attr.{e.name}.{f}"] = "{n}.arg" if len(e.fields) == 1 else f"{{n}}.arg[{i}]"
    return found


def _exact_fits(op: Op, operands: tuple[UOp, ...], arg: Any = None) -> bool:
    """True if the exact result of `op` lies in its dtype, by the bounds of its operands."""
    entry = TABLE.entries[op]
    d = operands[-1].dtype.scalar()
    if entry.bounds is None or not entry.pointwise or d.is_float:
        return False
    lo, hi = entry.bounds(dtypes.index, operands, arg)
    return d.min <= lo and hi <= d.max


def _says_shape(node: UOp) -> bool:
    """True if a node has a shape of its own, or by its operands."""
    while node.op in _ALIKE:
        node = node.src[0]
    return node.op in LISTED or (has_shape(node) and node.dtype is not dtypes.void)


def _shape(node: UOp) -> tuple[UOp, ...]:
    """The sizes of a tensor's axes, as nodes. Undefined for a node without a shape of its own, as a kernel's parameter."""
    if not _says_shape(node):
        raise Undefined
    return tuple(UOp.const(n, dtypes.index) if isinstance(n, int) else n for n in shape_of(node))


def _constant_of(node: UOp) -> int:
    """The number in a constant of one lane. Undefined for any other node."""
    if node.op is not Op.Const or node.dtype.count != 1 or not node.dtype.is_integral:
        raise Undefined
    return int(node.arg)


def _no_overflow(node: UOp) -> bool:
    return not node.src or _exact_fits(node.op, node.src, node.arg)


def _identity(op: Op, dtype: DType) -> Any:
    """The neutral element of a fold. Undefined where there is none."""
    if op not in REDUCE_OPS or (dtype.is_index and op in (Op.Max, Op.Min)):
        raise Undefined
    return identity(op, dtype)


def _inside(node: UOp) -> UOp:
    """The lanes of all iterations of the axes that a node opens by itself; of one that opens none the node."""
    axes = axes_of(node)
    if not axes:
        return node
    return node.src[0] if node.op is Op.Unroll else vconst(node.dtype, range(axes[0][1]))


class _Morok:
    """The built-in dialect. Its parts are read-only: what has been proved of them cannot become another."""

    name = "morok"
    ops: Mapping[str, OpInfo] = MappingProxyType({e.name: _info(e) for e in TABLE.entries.values()})
    dtypes: Mapping[str, Hashable] = MappingProxyType(dict(BY_NAME))
    classes: Mapping[str, frozenset[str]] = MappingProxyType(
        {
            "int": frozenset(d.name for d in INTS),
            "sint": frozenset(d.name for d in SIGNED),
            "uint": frozenset(d.name for d in UNSIGNED),
            "float": frozenset(d.name for d in FLOATS),
            "number": frozenset(d.name for d in NUMBERS),
            "any": frozenset(d.name for d in SCALARS),
        }
    )
    inline: Mapping[str, str] = MappingProxyType(
        {
            "opkey": "{n}.op",
            "operands": "{n}.src",
            "type": "{n}.dtype",
            "scalar": "{n}.dtype.scalar()",
            "same": "{a} is {b}",
            "vmin": "{n}.vmin",
            "vmax": "{n}.vmax",
            "invalid": "{n}.invalid",
            "invalid_op": "Invalid",
            "is_const": "{n}.op is Op.Const",
            "const_value": "{n}.arg",
            "const_op": "Const",
            "lanes": "{n}.dtype.count",
            "vector": "{d}.vec({k})",
            "in.index": "{n}.dtype.is_index",
            "in.float": "({n}.dtype.is_float and {n}.dtype.bits > 8)",  # without the storage floats
            "in.bool": "{n}.dtype.is_bool",
            "in.int": "{n}.dtype.is_int",
            "in.sint": "{n}.dtype.is_signed",
            "in.uint": "{n}.dtype.is_unsigned",
            "in.ptr": "{n}.dtype.to_numbers",
            "pointee": "{n}.dtype.base.scalar()",
            "recall": "({n}.memo if {n}.memo is not _no_facts else _facts({n}))",
            "nests": "{n}.dtype.is_index",
            **_field_templates(),
            "const": "_const({v}, {d})",
            "build.Cast": "_cast({a}, {d})",
            "pointwise1": "_new({op}, ({a},))",
            "pointwise2": "_binary({op}, {a}, {b})",
            "pointwise3": "_new({op}, ({a}, {b}, {c}))",
        }
    )
    names: Mapping[str, Any] = MappingProxyType(
        {
            "_const": UOp.const,
            "_new": UOp.new,
            "_binary": binary,
            "_cast": cast,
            "_facts": facts_of,
            "_no_facts": NO_FACTS,
        }
    )
    members: Mapping[str, Any] = MappingProxyType({m.name: m for m in (*Op, *AddrSpace, *AxisType)})
    places = PLACES
    passing = PASSING
    storage = STORAGE
    reads = frozenset({Op.Load.name})
    branches = frozenset({Op.If.name, Op.EndIf.name})
    among = frozenset({Op.Group.name})
    scopes = frozenset({Op.Range.name, Op.End.name, Op.If.name, Op.EndIf.name})
    waits = frozenset({Op.After.name, Op.Barrier.name})
    of_axes = OF_AXES
    hash_consed = True
    closed_types = True
    node = UOp
    undefined = Undefined
    maker = maker
    facts: Mapping[str, Callable[..., Any]] = MappingProxyType(
        {
            "vmin": lambda n: n.vmin,
            "vmax": lambda n: n.vmax,
            "lanes": lambda n: n.dtype.count,
            "free_of": free_of,
            "independent": independent,
            "done_within": done_within,
            "precedes": precedes,
            "excludes_zero": excludes_zero,
            "excludes_overflow": excludes_overflow,
            "defined": defined,
            "no_overflow": _no_overflow,
            "no_overflow_of": _exact_fits,
            "bits": lambda d: d.bits,
            "is_int": lambda d: d.is_int,
            "is_float": lambda d: d.is_float,
            "safe_cast": safe_cast,
            "identity": _identity,
            "subst": replace_range,
            "axes": axes_of,
            "is_axis": lambda n: vector_axis(n) is not None,
            "inside": _inside,
            "free_of_axes": free_of_axes,
            "launched": launched,
            "counts": counts,
            "constant": _constant_of,
            "rank": lambda n: len(_shape(n)),
            "shape": _shape,
            "same_shape": lambda a, b: _says_shape(a) and _says_shape(b) and shape_of(a) == shape_of(b),
            "told_apart": told_apart,
            "renames": renames,
        }
    )
    theory = "morok.prove.semantics:MorokTheory"

    def __setattr__(self, name: str, value: Any) -> None:
        if built_in(self):
            hint = "change a copy, `copy.copy(dialect)`, with a name of its own"
            raise DialectError(f"{name} of dialect morok cannot be replaced", place=caller(), hint=hint)
        object.__setattr__(self, name, value)

    def read(self, said: str) -> UOp:
        from morok.ir.expression_parser import parse  # lazy: loads lark, and only examples are text

        return parse(said)

    def show(self, node: UOp) -> str:
        return node.text()

    def opkey(self, node: UOp) -> Op:
        return node.op

    def operands(self, node: UOp) -> tuple[UOp, ...]:
        return node.src

    def attr(self, node: UOp, name: str) -> Any:
        return node.field(name)

    def type(self, node: UOp) -> DType:
        return node.dtype

    def same(self, a: UOp, b: UOp) -> bool:
        return a is b

    def const_value(self, node: UOp) -> Any:
        return node.arg if node.op is Op.Const else NOT_CONST

    def const(self, dtype: Any, value: Any) -> UOp:
        return UOp.const(value, dtype)

    def build(self, op: str, operands: Sequence[UOp], attrs: Mapping[str, Any], dtype: Any) -> UOp:
        entry = _BY_NAME[op]
        fields = entry.fields
        arg: Any = None
        if len(fields) == 1:
            if attrs:
                arg = attrs[fields[0]]
            elif entry.op is _INDEX:
                arg = len(operands) > 1 and operands[-1].dtype.is_bool  # indices are integers, a gate is a bool
        elif fields:
            arg = tuple([attrs[f] for f in fields])
        return UOp.new(entry.op, tuple(operands), arg, dtype)

    def rebuild(self, node: UOp, operands: tuple[UOp, ...]) -> UOp:
        return rebuilt(node, operands)

    sketch = staticmethod(sketch)

    def nests(self, node: UOp) -> bool:
        return node.dtype.is_index

    same_axes = staticmethod(same_axes)

    def element(self, d: DType) -> DType:
        return d.scalar()

    def lanes_of(self, node: UOp) -> tuple[UOp, ...]:
        """The lanes of a vector as scalar nodes: lanes are followed through ops that rearrange them, and pointwise ops applied
        lane by lane.
        """
        found: dict[UOp, tuple[UOp, ...]] = {}
        for n in toposort((node,)):  # of a sketch, too
            count, op = n.dtype.count, n.op
            if (
                count == 1
                and op is not Op.Gep
                and not (TABLE.entries[op].pointwise and any(found[s] != (s,) for s in n.src))
            ):
                found[n] = (n,)
            elif op is Op.Const or op is Op.VConst:
                values = n.arg if op is Op.VConst else (n.arg,) * count
                found[n] = tuple([UOp.const(v, n.dtype.scalar()) for v in values])
            elif op is Op.Vectorize:
                found[n] = tuple([found[s][0] for s in n.src])
            elif op is Op.Cat:
                found[n] = join([found[s] for s in n.src])
            elif op is Op.Gep:
                found[n] = take(found[n.src[0]], n.arg)
            elif TABLE.entries[op].pointwise or (op is Op.Bitcast and count == len(found[n.src[0]])):
                given = [found[s] * (count if len(found[s]) == 1 else 1) for s in n.src]
                found[n] = tuple([UOp.new(op, lanes, n.arg, n.dtype.scalar()) for lanes in zip(*given, strict=True)])
            else:
                found[n] = tuple([n.gep(i) for i in range(count)])
        return found[node]

    def recall(self, node: UOp) -> dict[Any, Any]:
        return facts_of(node)

    def origin(self, node: UOp) -> Origin | None:
        return node.origin

    def in_turn(self, node: UOp) -> tuple[UOp, ...] | None:
        return node.src if node.op in NO_INSTRUCTION else None

    def has_effect(self, node: UOp) -> bool:
        return node.dtype.kind == "void" or node.op in _INTERFACE or node.op in _DOING

    def stays(self, node: UOp) -> bool:
        return node.op not in PURE or self.has_effect(node)

    def opens(self, node: UOp) -> bool:
        return node.op is Op.Range or node.op is Op.If

    def closes(self, node: UOp) -> tuple[UOp, ...]:
        return node.src[1:] if node.op is Op.End else node.src if node.op is Op.EndIf else ()

    @staticmethod
    def derive(node: UOp, rule: str) -> None:
        maker.origin = rewritten(node.origin, maker.stage, rule)

    @staticmethod
    def keep(node: UOp, result: UOp, rule: str) -> None:
        came_from(result, rewritten(node.origin, maker.stage, rule))


MOROK: Final = _Morok()
