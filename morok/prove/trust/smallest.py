"""Values of least magnitude in a graph on which a rule is false."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from morok.errors import MorokError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.least import least
from morok.prove.trust.differential import Difference, World, alike, unsigned, value

MOST: Final = 96  # values that are looked at


@dataclass(frozen=True, slots=True)
class _Place:
    """A place where a world has one value: a variable, one of its lanes, or an element of storage."""

    of: UOp
    at: int
    stored: bool = False

    @property
    def dtype(self) -> str:
        d: Any = self.of.dtype
        return str((d.base if d.is_ptr else d.scalar()).name)

    def read(self, world: World) -> Any:
        held = world.buffers[self.of] if self.stored else world.variables[self.of]
        return held[self.at] if isinstance(held, (list, tuple)) else held

    def admits(self, v: Any) -> bool:
        return self.stored or not self.of.dtype.scalar().is_integral or self.of.vmin <= v <= self.of.vmax


def _places(world: World) -> list[_Place]:
    variables = [k for k in world.variables if isinstance(k, UOp) and k.op is Op.DefineVar]
    found = [_Place(k, i) for k in variables for i in range(k.dtype.count)]
    return (found + [_Place(k, i, True) for k, content in world.buffers.items() for i in range(len(content))])[:MOST]


def _changed(world: World, places: Mapping[str, _Place], values: Mapping[str, Any]) -> World:
    """The world with other values at these places."""
    buffers = {k: list(v) for k, v in world.buffers.items()}
    variables = dict(world.variables)
    for name, v in values.items():
        place = places[name]
        if place.stored:
            buffers[place.of][place.at] = v
        elif place.of.dtype.count == 1:
            variables[place.of] = v
        else:
            lanes = list(variables[place.of])
            lanes[place.at] = v
            variables[place.of] = tuple(lanes)
    return World(variables, buffers)


def smallest(found: Difference, nsz: bool = False) -> Difference:
    """The same two graphs at the least values, of variables and of what storage holds, at which they still differ."""
    at, after = found.at, found.after
    if at is None or after is None or found.why:
        return found
    places = {str(n): p for n, p in enumerate(_places(at))}

    def outcome(values: Mapping[str, Any]) -> tuple[Any, Any] | None:
        inside = all(p.admits(values[n]) for n, p in places.items())
        world = _changed(at, places, values)
        try:
            expected = value(found.before, world) if inside else None
            got = None if expected is None else value(after, world)
        except (MorokError, ValueError):  # as where it has no meaning, or takes too many steps
            return None
        if expected is None:
            return None
        if nsz and got is not None:
            expected, got = unsigned(expected), unsigned(got)
        return None if got is not None and alike(found.before, expected, got) else (expected, got)

    now = {n: p.read(at) for n, p in places.items()}
    if outcome(now) is None:
        return found
    values = least(now, {n: p.dtype for n, p in places.items()}, lambda v: outcome(v) is not None)
    shown = outcome(values)
    return found if shown is None else replace(found, at=_changed(at, places, values), expected=shown[0], got=shown[1])
