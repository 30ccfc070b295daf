"""Values of least magnitude in a graph on which a rule is false."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from morok.errors import IRError, StepLimitError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.least import least
from morok.prove.trust.differential import Difference, World, alike, unsigned, value, value_in_time

MOST: Final = 24  # values that are looked at


def smallest(found: Difference, nsz: bool = False) -> Difference:
    """The same two graphs at the least values, of variables and of what storage holds, at which they still differ."""
    at, after = found.at, found.after
    if at is None or after is None or found.why:
        return found
    variables = [k for k in at.variables if isinstance(k, UOp) and k.op is Op.DefineVar and k.dtype.count == 1]
    cells = [(storage, i) for storage, content in at.buffers.items() for i in range(len(content))]
    places: dict[str, Any] = {str(n): p for n, p in enumerate([*variables, *cells][:MOST])}
    dtypes = {}
    for name, place in places.items():
        d: Any = place.dtype if isinstance(place, UOp) else place[0].dtype
        dtypes[name] = (d.base if d.is_ptr else d).name

    def there(values: Mapping[str, Any]) -> World:
        buffers = {k: list(v) for k, v in at.buffers.items()}
        changed = dict(at.variables)
        for name, v in values.items():
            place = places[name]
            if isinstance(place, UOp):
                changed[place] = v
            else:
                buffers[place[0]][place[1]] = v
        return World(changed, buffers)

    def outcome(values: Mapping[str, Any]) -> tuple[Any, Any] | None:
        inside = all(
            not isinstance(p, UOp) or not p.dtype.is_integral or p.vmin <= values[n] <= p.vmax for n, p in places.items()
        )
        world = there(values)
        expected = value_in_time(found.before, world) if inside else None
        if expected is None:
            return None
        try:
            got = value(after, world)
        except (IRError, StepLimitError, ValueError):
            return None
        if nsz and got is not None:
            expected, got = unsigned(expected), unsigned(got)
        return None if got is not None and alike(found.before, expected, got) else (expected, got)

    now = {n: at.variables[p] if isinstance(p, UOp) else at.buffers[p[0]][p[1]] for n, p in places.items()}
    if outcome(now) is None:
        return found
    values = least(now, dtypes, lambda v: outcome(v) is not None)
    shown = outcome(values)
    return found if shown is None else replace(found, at=there(values), expected=shown[0], got=shown[1])
