"""Extents: the values that a proof tried of each quantity that it enumerated. The proof covers no others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from morok.dsl.values import no_value

_ITEM: Final = re.compile(r"#\d+")


class Extent(NamedTuple):
    """The values that a proof tried of one quantity: every number from `least` to `most`.

    what    "lanes" of the nodes of one kind, "length" of a sequence, "rank" of tensors, "trips" of loops, "number" or "numbers"
            (a list) that a helper returns, "axes" of an Unroll or a Contract, "closed" axes, "launched" ranges; the
            values of all these are sizes. Of a compile-time "shift" or a "power" of two they are the amounts
    of      its name in the rule; "_" for all that have no name, "" for all of this kind, "xs#" for each item of xs
    each    for axes, the pairs (id, length) that were combined, each at most once; for a list, the pair (least, most) of its
            numbers
    """

    what: str
    of: str
    least: int
    most: int
    each: tuple[tuple[int, int], ...] = ()

    def meet(self, other: Extent) -> Extent:
        """The intersection of two extents of one quantity."""
        each = tuple(p for p in self.each if p in other.each)
        return Extent(self.what, self.of, max(self.least, other.least), min(self.most, other.most), each)

    @staticmethod
    def load(row: Iterable[Any]) -> Extent:
        """The extent in a row of a ledger page; ValueError or TypeError if the row holds none."""
        what, of, least, most, each = row
        if not (isinstance(what, str) and isinstance(of, str) and type(least) is int and type(most) is int):
            raise ValueError(f"no extent: {row}")
        return Extent(what, of, least, most, tuple((int(i), int(n)) for i, n in each))


Extents = tuple[Extent, ...]


class Limits(NamedTuple):
    """A matcher's reaction beyond the extents of a rule: it declines unless a check shows the firing right, or, without
    `declines`, fires unless the check shows it wrong.
    """

    extents: Extents
    declines: bool = True


def named(what: str, name: str) -> tuple[str, str]:
    """The key of an extent; all items of a sequence share one."""
    return what, _ITEM.sub("#", name)


def merged(found: dict[tuple[str, str], Extent], extent: Extent) -> None:
    """Add an extent; for a quantity that has one already, keep the intersection."""
    key = extent.what, extent.of
    found[key] = extent if key not in found else found[key].meet(extent)


def of_values(what: str, of: str, values: Iterable[int]) -> Extent:
    """The extent of the tried numbers: from the least up to the first gap."""
    tried = set(values)
    least = most = min(tried)
    while most + 1 in tried:
        most += 1
    return Extent(what, of, least, most)


_WORDS: Final = {
    "lanes": "{} lanes",
    "length": "{} items",
    "rank": "rank {}",
    "trips": "{} iterations",
    "number": "numbers {}",
    "numbers": "lists of {} numbers",
    "axes": "{} axes",
    "closed": "{} closed axes",
    "launched": "{} launched ranges",
    "shift": "shifts by {}",
    "power": "powers of two in {}",
}


def texts(extents: Iterable[Extent]) -> list[str]:
    """Extents in words, one text for all of the same kind and size."""
    names: dict[tuple[str, int, int, tuple[tuple[int, int], ...]], list[str]] = {}
    for e in extents:
        known = names.setdefault((e.what, e.least, e.most, e.each), [])
        if e.of not in ("", "_") and not e.of.startswith("$"):
            known.append(e.of.replace("#", ""))
    out = []
    for (what, least, most, each), of in names.items():
        said = _WORDS.get(what, "{} " + what).format(least if least == most else f"{least}..{most}")
        if each:
            said += (
                f" within {each[0][0]}..{each[0][1]}" if what == "numbers" else f" among {', '.join(map(str, each))}"
            )
        out.append(f"{said} of {', '.join(dict.fromkeys(of))}" if of else said)
    return out


# Functions that generated code calls.


def trips(vmax: Any, ends: Iterable[Any]) -> int | float:
    """An upper bound of the iterations of nested loops with these ends; infinite if an end has no bound."""
    count: int | float = 1
    for end in ends:
        most = vmax(end)
        count *= max(0, most) if most.__class__ is int else float("inf")
    return count


def axes_within(axes: Any, least: int, most: int, each: tuple[tuple[int, int], ...]) -> bool:
    """True if a sequence of axes is one of the tried ones."""
    found = (
        [tuple(a) if isinstance(a, (tuple, list)) else a for a in axes] if isinstance(axes, (tuple, list)) else [None]
    )
    return least <= len(found) <= most and all(a in each for a in found) and len(set(found)) == len(found)


def numbers_within(values: Any, most: int, low: int, high: int) -> bool:
    """True if a list of numbers, or of lists that are not empty, is one of the tried ones."""
    if not isinstance(values, (tuple, list)):
        return False
    nested = [v for v in values if isinstance(v, (tuple, list))]
    flat = [i for v in nested for i in v] if nested else values
    alike = not nested or (len(nested) == len(values) and all(nested))
    return alike and len(flat) <= most and all(v.__class__ is int and low <= v <= high for v in flat)


def upto(amount: Any, most: int) -> Any:
    """The amount; NoValue if it is greater than `most`, the greatest that was tried."""
    return amount if amount.__class__ is int and amount <= most else no_value()


def size(values: Any) -> int:
    """The length of a sequence; 0 for a static field that is no sequence."""
    return len(values) if isinstance(values, (tuple, list)) else 0


NAMES: Final[dict[str, Any]] = {
    "_trips": trips,
    "_axes_within": axes_within,
    "_numbers_within": numbers_within,
    "_size": size,
    "_upto": upto,
}
