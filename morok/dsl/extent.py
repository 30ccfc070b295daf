"""Extents: the values that a proof tried of each quantity that it enumerated. The proof covers no others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from morok.dsl.values import no_value

_ITEM: Final = re.compile(r"#\d+")


class Extent(NamedTuple):
    """The values that a proof tried of one quantity: every number from `least` to `most`.

    what    "lanes" of the nodes of one kind, or "length" of a sequence, in rules of other dialects than Morok's: the values are
            sizes. Of a compile-time "shift" or a "power" of two they are the amounts
    of      its name in the rule; "_" for all that have no name, "" for all of this kind, "xs#" for each item of xs
    """

    what: str
    of: str
    least: int
    most: int

    def meet(self, other: Extent) -> Extent:
        """The intersection of two extents of one quantity."""
        return Extent(self.what, self.of, max(self.least, other.least), min(self.most, other.most))

    @staticmethod
    def load(row: Iterable[Any]) -> Extent:
        """The extent in a row of a ledger page; ValueError or TypeError if the row holds none."""
        what, of, least, most = row
        if not (isinstance(what, str) and isinstance(of, str) and type(least) is int and type(most) is int):
            raise ValueError(f"no extent: {row}")
        return Extent(what, of, least, most)


# of a proof: beyond them the matcher of a rule declines, unless a check shows a firing right
Extents = tuple[Extent, ...]


def named(what: str, name: str) -> tuple[str, str]:
    """The key of an extent; all items of a sequence share one."""
    return what, _ITEM.sub("#", name)


def merged(found: dict[tuple[str, str], Extent], extent: Extent) -> None:
    """Add an extent; for a quantity that has one already, keep the intersection."""
    key = extent.what, extent.of
    found[key] = extent if key not in found else found[key].meet(extent)


_WORDS: Final = {
    "lanes": "{} lanes",
    "length": "{} items",
    "shift": "shifts by {}",
    "power": "powers of two in {}",
}


def texts(extents: Iterable[Extent]) -> list[str]:
    """Extents in words, one text for all of the same kind and size."""
    names: dict[tuple[str, int, int], list[str]] = {}
    for e in extents:
        known = names.setdefault((e.what, e.least, e.most), [])
        if e.of not in ("", "_") and not e.of.startswith("$"):
            known.append(e.of.replace("#", ""))
    out = []
    for (what, least, most), of in names.items():
        said = _WORDS.get(what, "{} " + what).format(least if least == most else f"{least}..{most}")
        out.append(f"{said} of {', '.join(dict.fromkeys(of))}" if of else said)
    return out


# Functions that generated code calls.


def upto(amount: Any, most: int) -> Any:
    """The amount; NoValue if it is greater than `most`, the greatest that was tried."""
    return amount if amount.__class__ is int and amount <= most else no_value()


def size(values: Any) -> int:
    """The length of a sequence; 0 for a static field that is no sequence."""
    return len(values) if isinstance(values, (tuple, list)) else 0


NAMES: Final[dict[str, Any]] = {
    "_size": size,
    "_upto": upto,
}
