"""Loops and reductions: the ops that bind ranges, and those that close them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.op import REDUCE_OPS, TABLE, Op, OpDef, Operand, Position
from morok.ir.ops.memory_ops import on_device, ranged
from morok.ir.shape import has_shape, noted_shape, shape_of, shown_shape

if TYPE_CHECKING:
    from morok.ir.op import Bounds, Node, Operands

_RANGES: Final = Operand("ranges", Position.BINDER, many=True)


def _range_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    end = src[0].dtype
    if not end.is_integral or end.count != 1:
        raise TypeError(f"a scalar integer or index as end, not {end}")
    _without_axes(src[0], "an end")
    return end


def _without_axes(x: Node, what: str) -> None:
    if axes := noted_shape(x):
        raise TypeError(f"{what} without axes, not of shape {shown_shape(axes)}")


def range_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    end = src[0]
    # Where the loop runs at all the value is at most end - 1; an empty loop has no value to bound.
    return 0, max(end.vmax - 1, 0)


def _end_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    ranged(src, 1)
    return src[0].dtype


def _reduce_axis_type(src: Operands, arg: tuple[Op, tuple[int, ...]], requested: DType | None) -> DType:
    axes, among = arg[1], range(len(shape_of(src[0])))
    if len(set(axes)) < len(axes) or (not all(map(among.__contains__, axes)) and has_shape(src[0])):
        raise TypeError(f"axes in 0..{len(among)}, each once, not {axes}")
    return _reduced_type(src, arg, requested)


def _reduce_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    ranged(src, 1)
    return _reduced_type(src, arg, requested)


def _all_reduce_type(src: Operands, arg: Op, requested: DType | None) -> DType:
    on_device(src, arg, None)
    return _reduced_type(src, arg, None)


def _if_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    if src[0].dtype is not dtypes.bool:  # one condition decides
        raise TypeError(f"one bool as condition, not {src[0].dtype}")
    _without_axes(src[0], "a condition")
    return dtypes.void


def _endif_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    if src[0].op is not Op.If:
        raise TypeError(f"an If to end, not {src[0].op.name}")
    return dtypes.void


def _reduced_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    op = arg[0] if isinstance(arg, tuple) else arg
    if op not in REDUCE_OPS:
        raise TypeError(f"one of {', '.join(o.name for o in REDUCE_OPS)} as op, not {op}")
    d = src[0].dtype
    if not (d.is_number or d.is_bool):
        raise TypeError(f"numbers to reduce, not {d}")
    if requested is not None and requested is not d:  # a horizontal reduction: neighbouring lanes become one
        if requested.scalar() is not d.scalar() or d.count % requested.count:
            raise TypeError(f"lanes of {d.scalar()} that divide {d.count}, not {requested}")
        return requested
    return d


def reduce_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    op = arg[0] if isinstance(arg, tuple) else arg
    body = src[0]
    if d.is_float or op not in (Op.Max, Op.Min):
        return d.min, d.max
    # over no iterations the result is the identity: the far end of the dtype
    empty = any(r.op is not Op.Range or r.src[0].vmin < 1 for r in src[1:]) or isinstance(arg, tuple)
    if op is Op.Max:
        return (d.min if empty else body.vmin), body.vmax if not empty else max(body.vmax, d.min)
    return body.vmin if not empty else min(body.vmin, d.max), (d.max if empty else body.vmax)


def special_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return 0, max(src[0].vmax - 1, 0)


def identity_of(op: str, dtype: str) -> Any:
    """The identity of an op at a dtype, by their names."""
    return identity(Op[op], BY_NAME[dtype])


def identity(op: Op, d: DType) -> Any:
    """The value of a fold of `op` over no iterations, at scalar dtype `d`: the neutral element, which changes no value.

    For float addition that is -0.0: adding +0.0 to -0.0 gives +0.0 (IEEE 754-2019, 6.3). So a sum over one iteration is its only
    term, and an empty part of a sum adds nothing. Evaluator, solver, rules and lowering all use this function.
    """
    if op is Op.Add:
        return False if d.is_bool else -0.0 if d.is_float else 0
    if op is Op.Mul:
        return True if d.is_bool else 1.0 if d.is_float else 1
    if d.is_bool:
        return op is Op.Min
    if d.is_index:
        raise ValueError("Max and Min over no index have no value")
    return d.min if op is Op.Max else d.max


TABLE.define(
    OpDef(
        Op.Range,
        (Operand("end", holds="count"), Operand("deps", Position.ORDER, many=True)),
        ("id", "axis", "renumbered"),
        typing=_range_type,
        bounds=range_bounds,
        llvm="range",
        cuda="range",
        types="end in int index; end scalar; result = end",
        field_kinds={"id": "int", "renumbered": "bool"},
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.End,
        (Operand("body", Position.ORDER), _RANGES),
        typing=_end_type,
        llvm="end",
        cuda="end",
        types="result = body",
    )
)
TABLE.define(
    OpDef(
        Op.Reduce,
        (Operand("src"), _RANGES),
        ("op",),
        typing=_reduce_type,
        bounds=reduce_bounds,
        types="src in any; result ~ src",
        field_kinds={"op": "op"},
        role="fold",
    )
)
TABLE.define(
    OpDef(
        Op.ReduceAxis,
        (Operand("src"),),
        ("op", "axes"),
        typing=_reduce_axis_type,
        bounds=reduce_bounds,
        types="src in any; result ~ src",
        field_kinds={"op": "op", "axes": "ints"},
    )
)
TABLE.define(
    OpDef(
        Op.AllReduce,
        (Operand("src"), Operand("device", Position.ORDER)),
        ("op",),
        typing=_all_reduce_type,
        types="result = src",
        field_kinds={"op": "op"},
    )
)
TABLE.define(
    OpDef(
        Op.Special,
        (Operand("end", holds="count"),),
        ("name",),
        typing=_range_type,
        bounds=special_bounds,
        llvm="",  # a CPU runs loops
        cuda="special",
        types="end in int index; end scalar; result = end",
    )
)
TABLE.define(
    OpDef(
        Op.If,
        (Operand("cond"), Operand("body", Position.ORDER, many=True)),
        typing=_if_type,
        llvm="if_",
        cuda="if_",
        types="cond in bool; cond scalar; result in void; result scalar",
    )
)
TABLE.define(
    OpDef(
        Op.EndIf,
        (Operand("if_op", Position.ORDER),),
        typing=_endif_type,
        llvm="endif",
        cuda="endif",
        types="result in void; result scalar",
    )
)
