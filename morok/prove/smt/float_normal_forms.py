"""Normal forms of float arithmetic: what IEEE 754 makes equal bit for bit, all NaNs being one value.

Signs stand outside of products and quotients, operands of a commutative function in the order of their making. A product with a
power of two may be a quotient, and a fused product whose product is exact is a sum. All of it is so where results are rounded to
the nearest, ties to even; a mode that looks at the sign has none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from morok.prove.smt.fold import form_of
from morok.prove.smt.terms import Expr, make, numeral

Rule = Callable[[Expr, tuple[Expr, ...]], Expr | None]


def _nearest(rule: Rule) -> Rule:
    return lambda e, args: rule(e, args) if e.data == "RNE" else None


def _age(e: Expr) -> tuple[bool, int]:
    return e.head == "value", e.number


def _neg(a: Expr) -> Expr:
    if a.head == "value":
        return numeral(a.sort, form_of(a.sort).neg(a.data))
    return a.args[0] if a.head == "fp.neg" else make("fp.neg", (a,), a.sort)


def _size(a: Expr) -> tuple[bool, Expr]:
    """The truth of a term having a sign before it, and the term without it."""
    form = form_of(a.sort)
    negative = form.negative(a.data) and not form.is_nan(a.data) if a.head == "value" else a.head == "fp.neg"
    return negative, _neg(a) if negative else a


def _signed(negative: bool, a: Expr) -> Expr:
    return _neg(a) if negative else a


def _is_one(a: Expr) -> bool:
    return a.head == "value" and form_of(a.sort).is_finite(a.data) and form_of(a.sort).exact(a.data) == 1


def _is_zero(a: Expr, negative: bool) -> bool:
    form = form_of(a.sort)
    return a.head == "value" and form.is_zero(a.data) and form.negative(a.data) == negative


def _computed(head: str, *args: Expr) -> Expr:
    """A function of simple operands rounded to the nearest, where no rule has another form of it."""
    if all(a.head == "value" for a in args):
        form = form_of(args[0].sort)
        function = {"fp.add": form.add, "fp.mul": form.mul, "fp.div": form.div}.get(head)
        if function is not None:
            return numeral(args[0].sort, function("RNE", *(a.data for a in args)))
    return make(head, args, args[0].sort, "RNE")


def _sum(a: Expr, b: Expr) -> Expr:
    a, b = sorted((a, b), key=_age)
    return a if _is_zero(b, True) else _computed("fp.add", a, b)


def _factors(a: Expr, b: Expr) -> tuple[bool, Expr, Expr]:
    """The sign of a product, and its factors without signs."""
    (minus, a), (other, b) = _size(a), _size(b)
    a, b = sorted((a, b), key=_age)
    return minus != other, a, b


def _product(a: Expr, b: Expr) -> Expr:
    minus, a, b = _factors(a, b)
    return _signed(minus, a if _is_one(b) else _computed("fp.mul", a, b))


def _quotient(a: Expr, b: Expr) -> Expr:
    (minus, a), (other, b) = _size(a), _size(b)
    inverse = _inverse(b)
    if inverse is not None:
        return _signed(minus != other, _product(a, inverse))
    return _signed(minus != other, _computed("fp.div", a, b))


def _inverse(b: Expr) -> Expr | None:
    """The numeral that a product has where a quotient has a power of two: both are rounded from one number."""
    form = form_of(b.sort)
    if b.head != "value" or not form.is_finite(b.data) or form.is_zero(b.data):
        return None
    inverse = 1 / form.exact(b.data)
    found = form.rounded(inverse, "RNE")
    return numeral(b.sort, found) if form.is_finite(found) and form.exact(found) == inverse else None


def _fused(a: Expr, b: Expr, c: Expr) -> Expr:
    minus, a, b = _factors(a, b)
    if _is_zero(c, True):  # the sign of a product that is 0 stays
        return _signed(minus, _product(a, b))
    if _exact(a, b):
        return _sum(_signed(minus, _product(a, b)), c)
    return make("fp.fma", (_signed(minus, a), b, c), a.sort, "RNE")


def _exact(a: Expr, b: Expr) -> bool:
    """True if the product is one of the format's values, so that rounding it changes nothing: `a` once, or 0; two numerals."""
    if _is_one(b) or _is_zero(b, False):
        return True
    form = form_of(a.sort)
    if not all(x.head == "value" and form.is_finite(x.data) for x in (a, b)):
        return False
    product = form.mul("RNE", a.data, b.data)
    return form.is_finite(product) and form.exact(product) == form.exact(a.data) * form.exact(b.data)


def _seen_through(head: str) -> Rule:
    """A function that looks at no sign."""
    return lambda e, args: make(head, (args[0].args[0],), e.sort) if args[0].head == "fp.neg" else None


RULES: Final[dict[str, Rule]] = {
    "fp.neg": lambda e, args: _neg(args[0]),
    "fp.add": _nearest(lambda e, args: _sum(*args)),
    "fp.sub": _nearest(lambda e, args: _sum(args[0], _neg(args[1]))),
    "fp.mul": _nearest(lambda e, args: _product(*args)),
    "fp.div": _nearest(lambda e, args: _quotient(*args)),
    "fp.fma": _nearest(lambda e, args: _fused(*args)),
    **{head: _seen_through(head) for head in ("fp.abs", "fp.isNaN", "fp.isInfinite", "fp.isZero")},
}
