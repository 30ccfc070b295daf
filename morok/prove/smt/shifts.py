"""Normal forms of shifts by numerals: of bits that are moved and masked, which bits stay, and where they go.

A product with a power of two is such a shift, and so are quotient and remainder by one, of numbers without signs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from morok.prove.smt.sorts import BOOL
from morok.prove.smt.terms import Expr, make, numeral

Rule = Callable[[Expr, tuple[Expr, ...]], Expr | None]
# a term, by how many places it is moved (to the right: less than 0), which bits of the result stay
Slice = tuple[Expr, int, int]


def _slice(e: Expr) -> Slice:
    full = (1 << e.sort.width) - 1
    if e.head == "bvand" and e.args[1].head == "value":
        x, by, kept = _slice(e.args[0])
        return x, by, kept & e.args[1].data
    if e.head in ("bvshl", "bvlshr") and e.args[1].head == "value":
        by = e.args[1].data
        return (e.args[0], by, full << by & full) if e.head == "bvshl" else (e.args[0], -by, full >> by)
    return e, 0, full


def _made(x: Expr, by: int, kept: int) -> Expr:
    full = (1 << x.sort.width) - 1
    there = (full << by & full) if by >= 0 else full >> -by
    kept &= there
    if not kept:
        return numeral(x.sort, 0)
    moved = x if not by else make("bvshl" if by > 0 else "bvlshr", (x, numeral(x.sort, abs(by))), x.sort)
    return moved if kept == there else make("bvand", (moved, numeral(x.sort, kept)), x.sort)


def left(a: Expr, by: int) -> Expr:
    if by >= a.sort.width:
        return numeral(a.sort, 0)
    x, moved, kept = _slice(a)
    return _made(x, moved + by, kept << by)


def right(a: Expr, by: int) -> Expr:
    if by >= a.sort.width:
        return numeral(a.sort, 0)
    x, moved, kept = _slice(a)
    return _made(x, moved - by, kept >> by)


def masked(a: Expr, mask: int) -> Expr:
    x, moved, kept = _slice(a)
    return _made(x, moved, kept & mask)


def _signed_right(a: Expr, by: int) -> Expr:
    """A shift that keeps the sign: several are one, and none moves more than all bits but the sign."""
    by = min(by, a.sort.width - 1)
    if a.head == "bvashr" and a.args[1].head == "value":
        a, by = a.args[0], min(by + a.args[1].data, a.sort.width - 1)
    return make("bvashr", (a, numeral(a.sort, by)), a.sort) if by else a


def _by_numeral(shift: Callable[[Expr, int], Expr]) -> Rule:
    return lambda e, args: shift(args[0], args[1].data) if args[1].head == "value" else None


def _joined(shift: Rule) -> Rule:
    """The rule for shifts of one kind, two of which are one by the sum of their amounts: by all places where that has no room."""

    def rule(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
        inner, by = args
        if inner.head != e.head or by.head == inner.args[1].head == "value":
            return shift(e, args)
        first = inner.args[1]
        total = make("bvadd", (first, by), by.sort)
        room = make("bvule", (first, total), BOOL)
        far = numeral(by.sort, (1 << by.sort.width) - 1)
        return make(e.head, (inner.args[0], make("ite", (room, total, far), by.sort)), e.sort)

    return rule


def exponent(a: Expr) -> int | None:
    """The exponent of a numeral that is a power of two; None of any other term."""
    return a.data.bit_length() - 1 if a.head == "value" and a.data and not a.data & (a.data - 1) else None


def _by_power(shift: Callable[[Expr, int], Expr]) -> Rule:
    def rule(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
        by = exponent(args[1])
        return None if by is None else shift(args[0], by)

    return rule


RULES: Final[dict[str, Rule]] = {
    "bvshl": _joined(_by_numeral(left)),
    "bvlshr": _joined(_by_numeral(right)),
    "bvashr": _joined(_by_numeral(_signed_right)),
    "bvudiv": _by_power(right),
    "bvurem": _by_power(lambda a, by: masked(a, (1 << by) - 1)),
}
