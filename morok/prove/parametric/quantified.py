"""Truths of conditions holding at every place below a length."""

from __future__ import annotations

from collections.abc import Callable

from morok.prove import smt
from morok.prove.parametric.polynomials import Integer, integer, within
from morok.prove.parametric.setting import Quantified, Setting
from morok.prove.semantics.term import is_true
from morok.prove.smt import Expr


def every(s: Setting, length: Integer, condition: Callable[[Integer], Expr]) -> Expr:
    """The truth of a condition holding at every place: where it does not, there is one at which it is false."""
    if length.known is not None:
        return smt.And(*(condition(integer(k)) for k in range(length.known)))
    with s.anywhere() as place:
        key = (length.term, condition(place))
    if is_true(key[1]):
        return smt.TRUE
    found = s.quantified.setdefault(key, Quantified(smt.Bool(s.symbol("every"))))
    if not s.trying and not found.defined:
        found.defined = True
        exception = s.unknown("exception")
        s.for_all(length, condition, only_if=found.truth)
        s.premise(smt.Or(found.truth, smt.And(within(exception, 0, length), smt.Not(condition(exception)))))
    return found.truth


def exception(s: Setting, length: Integer, condition: Callable[[Integer], Expr]) -> Expr:
    """The truth of a condition being false at a place, which is one of those where there is any: what holds where the condition
    does everywhere, holds or else this.
    """
    if length.known is not None:
        return smt.Not(every(s, length, condition))
    with s.anywhere() as place:
        key = (length.term, condition(place))
    if is_true(key[1]):
        return smt.FALSE
    there = s.exceptions.setdefault(key, s.symbol("exception"))
    at = integer(smt.Int(there))
    return smt.And(within(at, 0, length), smt.Not(condition(at)))
