"""Relations between the types of operands and result, for ops that do not work lane by lane: `OpInfo.types`.

A dtype that the op does not depend on stays unconstrained, so that one proof of a rule covers every dtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from morok.dialect import OpInfo
from morok.dsl.infer import T, Types, Universe
from morok.errors import UsageError

Slots = Mapping[str, Sequence[T]]
_SAID: Final = (
    "`result = x`, `result ~ x`, `x lanes y`, `x bits y`, `x scalar` or `x in int bool`, of operands and `result`"
)


class Relation(NamedTuple):
    """One relation of `OpInfo.types`: the operands, the word, and the rest."""

    of: str
    word: str
    rest: tuple[str, ...]


@lru_cache(maxsize=512)
def relations(info: OpInfo) -> tuple[Relation, ...]:
    """The relations in the op's `types`; UsageError if one is malformed."""
    found = []
    names = {o.name for o in info.operands} | {"result"}
    for said in filter(None, (part.split() for part in info.types.split(";"))):
        of, word, *rest = said if len(said) > 1 else (*said, "")
        several = {"scalar": 0, "in": len(rest) or 1}.get(word, 1)
        known = word in ("=", "~", "lanes", "bits", "scalar", "in") and len(rest) == several
        if not known or of not in names or (word not in ("in", "scalar") and rest[0] not in names):
            what = f"the types of op {info.name} say {' '.join(said)!r}"
            raise UsageError(what, expected=_SAID)
        found.append(Relation(of, word, tuple(rest)))
    return tuple(found)


def relate(info: OpInfo, types: Types, slots: Slots, result: T) -> list[tuple[T, T]]:
    """The pairs of types that must have equally many bits, once the types of operands (by name) and result are related."""
    widths: list[tuple[T, T]] = []
    for of, word, rest in relations(info):
        for t in _named(of, slots, result):
            if word == "in":
                types.restrict(t.elem, _mask(types.universe, rest))
            elif word == "scalar":
                types.same_lanes(t.lanes, types.lane(1))
            else:
                for other in _named(rest[0], slots, result):
                    if word == "=":
                        t.form = other.form if other.form == "place" else t.form
                        types.unify(t, other)
                    elif word == "~":
                        types.same_element(other.elem, t.elem)
                    elif word == "lanes":
                        types.same_lanes(t.lanes, other.lanes)
                    else:
                        widths.append((other, t))
    return widths


def _named(name: str, slots: Slots, result: T) -> Sequence[T]:
    return (result,) if name == "result" else slots.get(name, ())


def _mask(universe: Universe, names: Sequence[str]) -> int:
    """The dtypes of these names, and of the classes of these names; names that the dialect does not have are left out."""
    found = 0
    for name in names:
        found |= universe.any if name == "any" else universe.classes.get(name, universe.bits.get(name, 0))
    return found


def takes_dtype(info: OpInfo) -> bool:
    """True if the op is given its result's dtype: `Cast(x, B)`."""
    return info.converts or info.dtype_given
