"""Typing of the ops that do not work lane by lane: places, loops, lanes, movement, order.

Each function relates the types of an op's operands (by operand name) and of its result. What an op does not look at is left
alone, so that a rule about it holds at every dtype without being proved at each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from morok.dialect import OpInfo
from morok.dsl.infer import T, Types

Slots = Mapping[str, Sequence[T]]
Rule = Callable[[Types, Slots, T], None]


def _void(types: Types, result: T) -> None:
    types.unify(result, types.fixed("void", 1))


def _free(types: Types, slots: Slots, result: T) -> None:
    """The caller names the result's dtype; operands are what they are."""


def _statement(types: Types, slots: Slots, result: T) -> None:
    _void(types, result)


def _like(operand: str) -> Rule:
    def rule(types: Types, slots: Slots, result: T) -> None:
        for t in slots[operand][:1]:
            result.form = t.form if t.form == "place" else result.form
            types.unify(result, t)

    return rule


def _elements_like(operand: str) -> Rule:
    """Same element, other lanes."""

    def rule(types: Types, slots: Slots, result: T) -> None:
        for t in slots[operand]:
            types.same_element(t.elem, result.elem)

    return rule


def _assign(types: Types, slots: Slots, result: T) -> None:
    for t in (*slots["target"], *slots["value"]):
        types.same_element(t.elem, result.elem)


def _loop(types: Types, slots: Slots, result: T) -> None:
    for t in slots["end"]:
        types.restrict(t.elem, types.universe.integral)
        types.unify(t, types.fresh(lanes=1))
        types.unify(result, t)


def _fold(types: Types, slots: Slots, result: T) -> None:
    for t in slots["src"]:
        types.restrict(t.elem, types.universe.any)
        types.same_element(t.elem, result.elem)


def _index(types: Types, slots: Slots, result: T) -> None:
    for t in slots["buffer"]:
        types.same_element(t.elem, result.elem)
    for t in slots["indices"]:
        types.restrict(t.elem, types.universe.integral)
    for t in slots.get("gate", ()):
        types.restrict(t.elem, types.universe.boolean)


def _pointer_index(types: Types, slots: Slots, result: T) -> None:
    for t in slots["ptr"]:
        types.same_element(t.elem, result.elem)
    for t in slots["offset"]:
        types.restrict(t.elem, types.universe.integral)


def _load(types: Types, slots: Slots, result: T) -> None:
    for t in slots["index"]:
        types.same_element(t.elem, result.elem)
    for t in slots.get("alt", ()):
        types.unify(t, result)


def _store(types: Types, slots: Slots, result: T) -> None:
    for a in slots["index"]:
        for b in slots["value"]:
            types.same_element(b.elem, a.elem)
    _void(types, result)


def _vectorize(types: Types, slots: Slots, result: T) -> None:
    for t in slots["elements"]:
        types.same_element(t.elem, result.elem)
        types.same_lanes(t.lanes, types.lane(1))


def _wmma(types: Types, slots: Slots, result: T) -> None:
    for t in slots["c"]:
        types.unify(result, t)


def _bind(types: Types, slots: Slots, result: T) -> None:
    for t in (*slots["var"], *slots["value"]):
        types.unify(t, result)


def _condition(types: Types, slots: Slots, result: T) -> None:
    for t in slots["cond"]:
        types.restrict(t.elem, types.universe.boolean)
    _void(types, result)


def _invalid(types: Types, slots: Slots, result: T) -> None:
    types.restrict(result.elem, types.universe.bits["index"])


def _bitcast(types: Types, slots: Slots, result: T) -> None:
    bits = types.universe.bits
    held = types.universe.any | bits.get("f8e4m3", 0) | bits.get("f8e5m2", 0)  # what is only stored has bits as well
    for t in slots["x"]:
        types.restrict(t.elem, held)
        types.restrict(result.elem, held)
        types.same_lanes(result.lanes, t.lanes)


def _view(types: Types, slots: Slots, result: T) -> None:
    """A movement op: sizes and edges are indices, the elements are not looked at."""
    _FIRST(types, slots, result)
    for name in ("shape", "begins", "ends"):
        for t in slots[name]:
            types.restrict(t.elem, types.universe.bits["index"])


_FIRST: Final = _like("src")
STRUCTURAL: Final[Mapping[str, Rule]] = {
    "Invalid": _invalid,
    "Range": _loop,
    "Special": _loop,
    "End": _like("body"),
    "Reduce": _fold,
    "ReduceAxis": _fold,
    "AllReduce": _FIRST,
    "If": _condition,
    "EndIf": _statement,
    "Unique": _statement,
    "Device": _statement,
    "Bufferize": _like("compute"),
    "BufferView": _elements_like("base"),
    "Index": _index,
    "PointerIndex": _pointer_index,
    "Load": _load,
    "Store": _store,
    "Bind": _bind,
    "After": _like("passthrough"),
    "Barrier": _FIRST,
    "Copy": _FIRST,
    "Assign": _assign,
    "Kernel": _statement,
    "Sink": _statement,
    "Group": _statement,
    "Vectorize": _vectorize,
    "Gep": _elements_like("vector"),
    "Cat": _elements_like("sources"),
    "PtrCat": _elements_like("sources"),
    "Unroll": _elements_like("src"),
    "Contract": _elements_like("src"),
    "Wmma": _wmma,
    "Bitcast": _bitcast,
    "Precast": _free,
    "Noop": _like("sources"),
    "Multi": _elements_like("sources"),
    "MSelect": _FIRST,
    "MStack": _like("sources"),
} | {
    **dict.fromkeys(("Reshape", "Expand", "Pad", "Shrink"), _view),
    **dict.fromkeys(("Permute", "Flip", "Contiguous", "ContiguousBackward", "Detach"), _FIRST),
}

# Ops that take the dtype of their result as a last argument: `Bitcast(x, B)`.
DTYPE_ARGUMENT: Final = frozenset(
    {"Bitcast", "Precast", "Const", "VConst", "DefineVar", "Buffer", "BufferView", "Param", "DefineGlobal", "DefineLocal",
     "DefineReg", "PointerIndex", "Custom", "CustomI", "Load", "Noop", "Range"}
)  # fmt: skip

# Operands that hold storage: pointers and buffers alike.
STORAGE: Final = frozenset({("Index", "buffer"), ("PointerIndex", "ptr"), ("BufferView", "base"), ("Assign", "target")})

# Operands that count elements or iterations.
ADDRESSES: Final = frozenset({("Index", "indices"), ("PointerIndex", "offset"), ("Range", "end"), ("Special", "end")})

# Fields that rules may leave out: a pattern takes any, and a node that is built has what follows from its operands, or None.
OPTIONAL_FIELDS: Final = frozenset({"gated", "opts"})

# What static fields hold: "int", "ints", "bools", "bool", "op"; any other is passed through unread.
FIELD_KINDS: Final[Mapping[str, str]] = {
    "indices": "ints",
    "id": "int",
    "slot": "int",
    "size": "int",
    "offset": "int",
    "op": "op",
    "gated": "bool",
    "renumbered": "bool",
}


def field_kind(op: str, field: str) -> str:
    if field == "axes":
        return {"Flip": "bools", "Unroll": "pairs", "Contract": "pairs"}.get(op, "ints")
    if field in ("value", "values"):
        return "const" if field == "value" else "consts"
    if op == "Multi" and field == "axis":
        return "int"
    return FIELD_KINDS.get(field, "other")


def takes_dtype(info: OpInfo) -> bool:
    """Whether the op is given its result's dtype: `Cast(x, B)`."""
    return (info.result in info.domains and info.result not in info.params) or info.name in DTYPE_ARGUMENT


__all__ = ["ADDRESSES", "OPTIONAL_FIELDS", "STORAGE", "STRUCTURAL", "field_kind", "takes_dtype"]
