"""The Python values that the fields of an op may have: checked when a node is made, so that all other code relies on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from morok.arguments import real_or_none, shown
from morok.ir.dtype import AddrSpace
from morok.ir.op import REDUCE_OPS, AxisType, Op

_INT: Final = frozenset({int})


def _int(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _ints(v: Any) -> bool:
    return isinstance(v, tuple) and (set(map(type, v)) <= _INT or all(_int(i) for i in v))


def _axes(v: Any) -> bool:
    return (
        isinstance(v, tuple)
        and all(_ints(p) and len(p) == 2 and p[1] > 0 for p in v)
        and len({p[0] for p in v}) == len(v)
    )


def _bound(v: Any) -> bool:
    return _int(v) or isinstance(v, float)


def _number(v: Any) -> bool:
    return isinstance(v, (int, float)) or (not isinstance(v, tuple) and real_or_none(v) is not None)


_Kind = tuple[str, Callable[[Any], bool]]
_NUMBER: Final[_Kind] = ("an int", _int)
_SIZE: Final[_Kind] = ("an int of at least 0", lambda v: _int(v) and v >= 0)
_TEXT: Final[_Kind] = ("a str", lambda v: isinstance(v, str))
_FLAG: Final[_Kind] = ("a bool", lambda v: isinstance(v, bool))
_AXIS: Final[_Kind] = ("an AxisType", lambda v: isinstance(v, AxisType))
_FOLD: Final[_Kind] = (f"one of {', '.join(o.name for o in REDUCE_OPS)}", lambda v: v in REDUCE_OPS)
_LANES: Final[_Kind] = ("a tuple of ints", _ints)
_EXPANDED: Final[_Kind] = ("a tuple of (axis, size), each axis once", _axes)

KINDS: Final[dict[Op, tuple[_Kind, ...]]] = {
    Op.Const: (("a number", _number),),
    Op.VConst: (
        ("a tuple of numbers, one a lane", lambda v: isinstance(v, tuple) and v != () and all(map(_number, v))),
    ),
    Op.DefineVar: (_TEXT, ("a bound", _bound), ("a bound", _bound)),
    Op.Unique: (_NUMBER,),
    Op.Device: (_TEXT,),
    Op.Buffer: (_SIZE,),
    Op.BufferView: (_SIZE, _SIZE),
    Op.Bufferize: (
        ("a device or None", lambda v: v is None or isinstance(v, str)),
        ("an AddrSpace", lambda v: isinstance(v, AddrSpace)),
    ),
    Op.Param: (_NUMBER,),
    Op.DefineGlobal: (_NUMBER,),
    Op.DefineLocal: (_NUMBER,),
    Op.DefineReg: (_NUMBER,),
    Op.Index: (_FLAG,),
    Op.Range: (_NUMBER, _AXIS, _FLAG),
    Op.Reduce: (_FOLD,),
    Op.ReduceAxis: (_FOLD, _LANES),
    Op.AllReduce: (_FOLD,),
    Op.Special: (_TEXT,),
    Op.Gep: (_LANES,),
    Op.Unroll: (_EXPANDED,),
    Op.Contract: (_EXPANDED,),
    Op.Permute: (("a permutation", lambda v: _ints(v) and sorted(v) == list(range(len(v)))),),
    Op.Flip: (("a tuple of bools", lambda v: isinstance(v, tuple) and all(isinstance(f, bool) for f in v)),),
    Op.Concat: (_SIZE,),
    Op.Multi: (("an axis or None", lambda v: v is None or _int(v)),),
    Op.MSelect: (_SIZE,),
    Op.Contiguous: (("a tuple of optimizations or None", lambda v: v is None or isinstance(v, tuple)),),
    Op.Custom: (_TEXT,),
    Op.CustomI: (_TEXT,),
}

# Ops whose arguments are the same if Python calls them equal: none has a bound or a number (1 == 1.0), or fields without a kind.
PLAIN: Final = frozenset(op for op, kinds in KINDS.items() if all(holds not in (_bound, _number) for _, holds in kinds))


def check(op: Op, fields: tuple[str, ...], arg: Any) -> None:
    """Raise TypeError, saying what was expected, unless `arg` holds values for all `fields` of `op`."""
    if arg is None and not fields:
        return
    try:
        hash(arg)
    except TypeError:
        raise TypeError(f"a hashable argument, not {shown(arg)}") from None
    if not fields:
        raise TypeError(f"no fields, not {shown(arg)}")
    kinds = KINDS.get(op)
    if kinds is None:
        return
    if len(fields) == 1 and kinds[0][1](arg):  # the most frequent case
        return
    values = (arg,) if len(fields) == 1 else arg
    if not isinstance(values, tuple) or len(values) != len(fields):
        raise TypeError(f"the fields {', '.join(fields)}, not {shown(arg)}")
    for name, (said, holds), v in zip(fields, kinds, values, strict=True):
        if not holds(v):
            raise TypeError(f"{said} as {name}, not {shown(v)}")
