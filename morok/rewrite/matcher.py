"""Compiled rule sets: a match function for each op, and the combination of several sets into one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from morok.dialect import Node

# (node, context) -> (replacement, number of the rule), or None if no rule applies
Match = Callable[[Node, Any], "tuple[Node, int] | None"]


class Matcher(NamedTuple):
    """A compiled rule set.

    table    one generated function per op key
    default  the function for nodes of any other op: the rules whose pattern is a bare variable
    names    the names of the rules, by number
    source   a function that returns the generated Python text
    serial   a number, the same for all matchers of the same rules under the same conditions
    unproved True if the set was made with unproved=True: nodes do not remember its results
    """

    table: Mapping[Hashable, Match]
    default: Match | None
    names: tuple[str, ...]
    source: Callable[[], str] = str
    serial: int = 0
    unproved: bool = False


_serials: dict[Hashable, int] = {}


def serial_of(identity: Hashable) -> int:
    """The number of an identity: a small integer, because its hash is cheap."""
    return _serials.setdefault(identity, len(_serials) + 1)


def first_match(matchers: Sequence[Matcher], serial: int) -> Matcher:
    """The combination of several matchers: they are tried in order, and the first rule that applies fires."""
    keys = dict.fromkeys(key for m in matchers for key in m.table)
    firsts = [sum(len(m.names) for m in matchers[:i]) for i in range(len(matchers))]
    table = {
        k: _combined([(m.table.get(k, m.default), first) for m, first in zip(matchers, firsts, strict=True)])
        for k in keys
    }
    return Matcher(
        {key: match for key, match in table.items() if match is not None},
        _combined([(m.default, first) for m, first in zip(matchers, firsts, strict=True)]),
        tuple(name for m in matchers for name in m.names),
        lambda: "\n".join(m.source() for m in matchers),
        serial,
        any(m.unproved for m in matchers),
    )


def _combined(matches: Sequence[tuple[Match | None, int]]) -> Match | None:
    """The combination of several match functions, each given with the number of its first rule; None if there are none."""
    found: Match | None = None
    for match, first in matches:
        if match is not None:
            own = match if first == 0 else _renumbered(match, first)
            found = own if found is None else _one_or_other(found, own)
    return found


def _renumbered(match: Match, first: int) -> Match:
    def renumbered(node: Node, context: Any) -> tuple[Node, int] | None:
        hit = match(node, context)
        return None if hit is None else (hit[0], hit[1] + first)

    return renumbered


def _one_or_other(one: Match, other: Match) -> Match:
    def either(node: Node, context: Any) -> tuple[Node, int] | None:
        return one(node, context) or other(node, context)

    return either
