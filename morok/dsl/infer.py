"""Dtype inference over finite domains: which scalar dtypes a variable may take, and which variables share one.

Two union-finds, for elements and for lanes. A class of elements has a set of dtypes, kept as a bit mask. A class without
constraints holds every dtype, and the bit `opaque`: no op depends on it (the operand of a movement op, or of End).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from morok.dialect import Dialect
from morok.dsl.checked import Ty

_VECTOR: Final = re.compile(r"(.+?)x([1-9][0-9]*)\Z")


class Clash(Exception):
    """The failed unification of two dtypes, or of two numbers of lanes."""


@dataclass(frozen=True, slots=True)
class Universe:
    """A dialect's dtypes as bits, in the dialect's order."""

    names: tuple[str, ...]
    bits: dict[str, int]
    classes: dict[str, int]
    any: int
    full: int
    opaque: int
    integral: int
    floats: int
    boolean: int

    @classmethod
    def of(cls, dialect: Dialect) -> Universe:
        names = tuple(dialect.dtypes)
        bits = {n: 1 << i for i, n in enumerate(names)}
        opaque = 1 << len(names)

        def mask(members: Iterable[str]) -> int:
            return sum(bits[m] for m in members if m in bits)

        classes = {c: mask(m) for c, m in dialect.classes.items()}
        everything = opaque - 1
        return cls(
            names,
            bits,
            classes,
            classes.get("any", everything),
            everything | opaque,
            opaque,
            classes.get("int", 0) | bits.get("index", 0),
            classes.get("float", 0),
            bits.get("bool", 0),
        )

    def members(self, mask: int) -> tuple[str, ...]:
        return tuple(n for i, n in enumerate(self.names) if mask >> i & 1)

    def describe(self, mask: int) -> str:
        """A set of dtypes in words: a class if there is one for it, else its members."""
        if mask & self.opaque:
            return "any dtype"
        left = mask
        parts: list[str] = []
        for c, m in sorted(self.classes.items(), key=lambda i: -i[1].bit_count()):
            if m and m & left == m and m.bit_count() > 1:
                parts.append(c)
                left &= ~m
        parts += self.members(left)
        return " | ".join(parts) if parts else "nothing"

    def vector(self, name: str) -> tuple[str, int] | None:
        """("f32", 4) for "f32x4", if f32 is a dtype."""
        m = _VECTOR.match(name)
        return (m[1], int(m[2])) if m and m[1] in self.bits else None


@lru_cache(maxsize=16)
def _universe(key: int, dialect: Any) -> Universe:
    return Universe.of(dialect)


def universe(dialect: Dialect) -> Universe:
    """The universe of a dialect, made once."""
    found: Any = dialect
    return _universe(id(dialect), found)


class T:
    """The type of a node under inference: a class of elements, a class of lanes, and a form.

    form  "value", "ptr" (a pointer to such elements), or "place" (storage, a pointer or a buffer; its own dtype does not matter)
    """

    __slots__ = ("elem", "form", "lanes")

    def __init__(self, elem: int, lanes: int, form: str = "value") -> None:
        self.elem, self.lanes, self.form = elem, lanes, form


class Types:
    """The classes of one rule."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._parent: list[int] = []
        self.masks: list[int] = []
        self.names: dict[int, str] = {}
        self.named: dict[str, int] = {}
        self._lane_parent: list[int] = []
        self._lane_value: list[int | str | None] = []
        self.culprit: dict[int, Any] = {}
        self.place: Any = None  # where in the rule the constraint now being added comes from

    # elements

    def element(self, mask: int) -> int:
        self._parent.append(len(self._parent))
        self.masks.append(mask)
        return len(self._parent) - 1

    def variable(self, name: str) -> int:
        """The class of the dtype variable `name`."""
        found = self.named.get(name)
        if found is None:
            found = self.named[name] = self.element(self.universe.full)
            self.names[found] = name
        return found

    def find(self, e: int) -> int:
        while self._parent[e] != e:
            self._parent[e] = self._parent[self._parent[e]]
            e = self._parent[e]
        return e

    def mask(self, e: int) -> int:
        return self.masks[self.find(e)]

    def restrict(self, e: int, mask: int) -> None:
        root = self.find(e)
        new = self.masks[root] & mask
        if not new:
            raise Clash(f"{self.universe.describe(mask)}, not {self.universe.describe(self.masks[root])}")
        if new != self.masks[root]:
            self.masks[root] = new
            self.culprit[root] = self.place

    def same_element(self, a: int, b: int) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return
        na, nb = self.names.get(ra), self.names.get(rb)
        if na and nb:
            raise Clash(f"{na}, not {nb} (where both must be one dtype, give them one name)")
        new = self.masks[ra] & self.masks[rb]
        if not new:
            raise Clash(f"{self.universe.describe(self.masks[ra])}, not {self.universe.describe(self.masks[rb])}")
        if nb:
            ra, rb = rb, ra
        self._parent[rb] = ra
        if new != self.masks[ra] or new != self.masks[rb]:
            self.culprit[ra] = self.place
        self.masks[ra] = new

    # lanes

    def lane(self, value: int | str | None = None) -> int:
        self._lane_parent.append(len(self._lane_parent))
        self._lane_value.append(value)
        return len(self._lane_parent) - 1

    def find_lane(self, n: int) -> int:
        while self._lane_parent[n] != n:
            self._lane_parent[n] = self._lane_parent[self._lane_parent[n]]
            n = self._lane_parent[n]
        return n

    def lane_value(self, n: int) -> int | str | None:
        return self._lane_value[self.find_lane(n)]

    def same_lanes(self, a: int, b: int) -> None:
        ra, rb = self.find_lane(a), self.find_lane(b)
        if ra == rb:
            return
        va, vb = self._lane_value[ra], self._lane_value[rb]
        if va is not None and vb is not None and va != vb:
            raise Clash(f"{va} lanes, not {vb}")
        self._lane_parent[rb] = ra
        self._lane_value[ra] = va if va is not None else vb

    # both

    def fresh(self, mask: int | None = None, lanes: int | str | None = None, form: str = "value") -> T:
        return T(self.element(self.universe.full if mask is None else mask), self.lane(lanes), form)

    def fixed(self, name: str, lanes: int | None = None) -> T:
        return self.fresh(self.universe.bits[name], lanes)

    def unify(self, found: T, wanted: T) -> None:
        """Unify two types. Clash (found against wanted) if they cannot be equal."""
        if "place" not in (found.form, wanted.form) and found.form != wanted.form:
            if found.form == "ptr" and self.mask(wanted.elem) & self.universe.opaque:
                pass  # an op that takes every dtype takes pointers too
            elif wanted.form == "ptr" and self.mask(found.elem) & self.universe.opaque:
                found.form = "ptr"
            else:
                raise Clash(f"{self.describe(wanted)}, not {self.describe(found)}")
        self.same_element(wanted.elem, found.elem)
        self.same_lanes(wanted.lanes, found.lanes)

    def describe(self, t: T) -> str:
        root = self.find(t.elem)
        name = self.names.get(root)
        text = (
            f"{name} ({self.universe.describe(self.masks[root])})" if name else self.universe.describe(self.masks[root])
        )
        lanes = self.lane_value(t.lanes)
        if lanes is not None and lanes != 1:
            text += f" x {lanes}"
        return f"ptr({text})" if t.form == "ptr" else text

    def elements(self) -> range:
        return range(len(self._parent))

    def lane_classes(self) -> range:
        return range(len(self._lane_parent))


class Namer:
    """Final names for classes: dtype variables keep theirs, others are numbered in the order of first use."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self.elements: dict[int, str] = {}
        self.lanes: dict[int, int | str] = {}
        self._anonymous = 0

    def element(self, e: int) -> tuple[str, bool]:
        types, root = self.types, self.types.find(e)
        mask = types.masks[root]
        if mask & types.universe.opaque:
            return "any", True
        name = types.names.get(root)
        if name is None and mask & (mask - 1) == 0:
            return types.universe.members(mask)[0], True
        if root not in self.elements:
            if name is None:
                self._anonymous += 1
                name = f"${self._anonymous}"
            self.elements[root] = name
        return self.elements[root], False

    def lane(self, n: int) -> int | str:
        root = self.types.find_lane(n)
        found = self.types.lane_value(root)
        if found is not None:
            return found
        if root not in self.lanes:
            self.lanes[root] = f"$l{len(self.lanes) + 1}"
        return self.lanes[root]

    def ty(self, t: T) -> Ty:
        element, fixed = self.element(t.elem)
        return Ty(element, fixed, self.lane(t.lanes), t.form == "ptr", t.form == "place")
