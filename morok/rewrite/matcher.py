"""Compiled rules: one function per op, and several compiled sets as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from morok.dialect import Node

# (node, context) -> (what replaces it, number of the rule), or None
Match = Callable[[Node, Any], "tuple[Node, int] | None"]


class Matcher(NamedTuple):
    """A compiled rule set.

    table    one generated function per op key
    default  the function for nodes of any other op: the rules whose pattern is a bare variable
    names    of the rules, by number
    source   gives the generated Python text
    serial   one number for all matchers that rewrite alike
    unproved True if some of the rules are loaded as unproved: nodes remember nothing of their results
    """

    table: Mapping[Hashable, Match]
    default: Match | None
    names: tuple[str, ...]
    source: Callable[[], str] = str
    serial: int = 0
    unproved: bool = False


_serials: dict[Hashable, int] = {}


def serial_of(identity: Hashable) -> int:
    """The number of an identity: small, so that it is quickly hashed."""
    return _serials.setdefault(identity, len(_serials) + 1)


def in_turn(matchers: Sequence[Matcher], serial: int) -> Matcher:
    """One matcher of several: the first rule that applies fires, in the order of the matchers."""
    keys = dict.fromkeys(key for m in matchers for key in m.table)
    firsts = [sum(len(m.names) for m in matchers[:i]) for i in range(len(matchers))]
    table = {k: _first_hit([(m.table.get(k, m.default), first) for m, first in zip(matchers, firsts, strict=True)]) for k in keys}
    return Matcher(
        {key: match for key, match in table.items() if match is not None},
        _first_hit([(m.default, first) for m, first in zip(matchers, firsts, strict=True)]),
        tuple(name for m in matchers for name in m.names),
        lambda: "\n".join(m.source() for m in matchers),
        serial,
        any(m.unproved for m in matchers),
    )


def _first_hit(matches: Sequence[tuple[Match | None, int]]) -> Match | None:
    """One match function of several, each with the number added to those of its rules."""
    found: Match | None = None
    for match, first in matches:
        if match is not None:
            own = match if first == 0 else _renumbered(match, first)
            found = own if found is None else _either(found, own)
    return found


def _renumbered(match: Match, first: int) -> Match:
    def renumbered(node: Node, context: Any) -> tuple[Node, int] | None:
        hit = match(node, context)
        return None if hit is None else (hit[0], hit[1] + first)

    return renumbered


def _either(one: Match, other: Match) -> Match:
    def either(node: Node, context: Any) -> tuple[Node, int] | None:
        return one(node, context) or other(node, context)

    return either
