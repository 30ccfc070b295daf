"""Sums of index expressions: put in order, compared with constants. Helpers that the rules in `rules/index/` declare
with their contracts.

An index expression is read as `c1*v1 + .. + cn*vn + k` with distinct `v`. Each helper returns what its contract promises, or None
if it finds nothing useful. They are pure, build their results in the canonical order, and look at bounds before they
build anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from operator import attrgetter
from typing import Final

from morok.ir.bounds import Num, plus, times
from morok.ir.dtype import DType
from morok.ir.linear_forms import LINEAR, terms
from morok.ir.op import Op
from morok.ir.structural_order import Rank, order
from morok.ir.uop import UOp, binary
from morok.marks import helper

_ADD: Final = Op.Add
_MUL: Final = Op.Mul
_CONST: Final = Op.Const
_RANK: Final = attrgetter("rank")


# Putting together.


def build(parts: Iterable[tuple[UOp, int]], k: int, dtype: DType) -> UOp:
    """The sum of c*v for each (v, c), and k, as a chain in canonical order."""
    factors = [(order(v), v, c) for v, c in parts if c]
    if not factors:
        return UOp.const(k, dtype)
    out: UOp | None = None
    for _, v, c in sorted(factors, key=_by_order) if len(factors) > 1 else factors:
        term = v if c == 1 else binary(_MUL, v, UOp.const(c, dtype))
        out = term if out is None else binary(_ADD, out, term)
    assert out is not None
    return out if k == 0 else binary(_ADD, out, UOp.const(k, dtype))


def _by_order(entry: tuple[Rank, UOp, int]) -> tuple[object, ...]:
    """The order of the term c*v, without making it."""
    rank, _, c = entry
    return (rank[0], c, rank[2], rank[3])


def _term(node: UOp) -> tuple[UOp, int]:
    """A term as (v, c): c*v."""
    if node.op is _MUL:
        v, factor = node.src
        if factor.op is _CONST:
            return v, factor.arg
        if v.op is _CONST:
            return factor, v.arg
    return node, 1


def _flat(x: UOp) -> list[UOp]:
    """The terms of a sum, constants among them, as nodes."""
    if x.op is not _ADD:
        return [x]
    found: list[UOp] = []
    stack = [x]
    while stack:
        node = stack.pop()
        if node.op is _ADD:
            right, left = node.src[1], node.src[0]
            stack.append(right)
            stack.append(left)
        else:
            found.append(node)
    return found


@helper
def merged(x: UOp, y: UOp) -> UOp | None:
    """x + y with the terms of y put into the ordered chain x, like terms added up; None if x + y has this form already.

    Walks back over the terms of x that stand behind the first of y's, no further.
    """
    last = x.src[1] if x.op is _ADD else x
    if y.op is not _ADD and last.op is not _CONST:
        if y.op is _CONST:
            return None if y.arg else x
        if (last.rank or order(last))[0] < (y.rank or order(y))[0]:
            return None
    return _joined(x, _flat(y) if y.op is _ADD else [y])


def _joined(x: UOp, new: list[UOp]) -> UOp:
    """The ordered chain x with these terms inserted: only the part of x behind the first of them is rebuilt."""
    first = new[0]
    least = (first.rank or order(first))[0] if len(new) == 1 else min([(t.rank or order(t))[0] for t in new])
    passed: list[UOp] = []
    base: UOp | None = x
    while base is not None:
        inner, term = base.src if base.op is _ADD else (None, base)
        if (term.rank or order(term))[0] < least:
            break
        passed.append(term)
        base = inner
    passed.reverse()  # terms of x stay in front of terms with equal ranks
    passed += new
    return _chain(base, passed, 1, x.dtype)


def _chain(base: UOp | None, terms: list[UOp], factor: int, dtype: DType) -> UOp:
    """base + factor * (the sum of the terms), in order, like terms added up."""
    total: dict[UOp, int] = {}
    kept: list[UOp] = []  # the terms as they are, used if none of them changes
    as_is = factor == 1
    k = 0
    for term in terms:
        op = term.op
        if op is _CONST:
            k += term.arg
            continue
        v, c = term, 1
        if op is _MUL:
            a, b = term.src
            if b.op is _CONST:
                v, c = a, b.arg
            elif a.op is _CONST:
                v, c = b, a.arg
        if v in total:
            total[v] += c
            as_is = False
        else:
            total[v] = c
            kept.append(term)
    if not as_is:
        kept = [v if c == 1 else binary(_MUL, v, UOp.const(c, dtype)) for v, n in total.items() if (c := n * factor)]
    if len(kept) == 2:
        a, b = kept
        if (b.rank or order(b)) < (a.rank or order(a)):
            kept = [b, a]
    elif len(kept) > 2:
        for term in kept:
            if term.rank is None:
                order(term)
        kept.sort(key=_RANK)
    for term in kept:
        base = term if base is None else binary(_ADD, base, term)
    if k:
        last = UOp.const(k * factor, dtype)
        return last if base is None else binary(_ADD, base, last)
    return UOp.const(0, dtype) if base is None else base


@helper
def gathered(x: UOp, y: UOp) -> UOp:
    """x + y as one ordered chain, like terms added up. An operand is a node, which is an ordered chain itself, or a sketch
    of a sum of such nodes.
    """
    base: UOp | None = None
    new: list[UOp] = []
    stack = [y, x]
    while stack:
        term = stack.pop()
        if term.op is not _ADD:
            new.append(term)
        elif term.__class__ is not UOp:
            stack += term.src[::-1]
        elif base is None:
            base = term
        else:
            new += _flat(term)
    if base is None:
        return _chain(None, new, 1, x.dtype)
    return _joined(base, new) if new else base


@helper
def scaled(x: UOp, c: int) -> UOp:
    """x * c, c multiplied into the terms of the sum x: in order if the terms of x are ordered and distinct."""
    if c <= 0:  # terms with equal heads are ordered by their factors: c <= 0 reverses them
        return _chain(None, _flat(x), c, x.dtype)
    dtype = x.dtype
    out: UOp | None = None
    for term in _flat(x):
        if term.op is _CONST:
            term = UOp.const(term.arg * c, dtype)
        else:
            v, factor = _term(term)
            factor *= c
            term = v if factor == 1 else binary(_MUL, v, UOp.const(factor, dtype))
        out = term if out is None else binary(_ADD, out, term)
    assert out is not None
    return out


def span(parts: Iterable[tuple[UOp, int]]) -> tuple[Num, Num]:
    """The least and the greatest value of a sum of c*v, by the bounds of the v."""
    low: Num = 0
    high: Num = 0
    for v, c in parts:
        a, b = (v.vmin, v.vmax) if c > 0 else (v.vmax, v.vmin)
        if a.__class__ is int and b.__class__ is int and low.__class__ is int and high.__class__ is int:
            low, high = low + a * c, high + b * c
        else:
            low, high = plus(low, times(a, c)), plus(high, times(b, c))
    return low, high


# Comparisons with constants.


@helper
def below(x: UOp, b: int) -> tuple[int, UOp, UOp] | None:
    """(g, n, r) with x = g*n + r, where the rest r, within [0, g), does not decide whether x < b."""
    if x.op not in LINEAR:
        return None
    parts, k = terms(x)
    if k:
        return None
    candidates = {abs(c) for _, c in parts}
    candidates.add(gcd(*[c for _, c in parts]))
    candidates -= {0, 1}
    for g in sorted(candidates, reverse=True):
        rest = [(v, c) for v, c in parts if c % g]
        low, high = span(rest)
        edge = b % g
        if (low >= 0 and high < edge) or (edge <= low and high < g):
            return g, build([(v, c // g) for v, c in parts if c % g == 0], 0, x.dtype), build(rest, 0, x.dtype)
    return None


@helper
def negated(x: UOp) -> UOp | None:
    """-x, for a sum with negative coefficients alone."""
    if x.op not in LINEAR:
        return None
    parts, k = terms(x)
    if k or not parts or any(c > 0 for _, c in parts):
        return None
    return build([(v, -c) for v, c in parts], 0, x.dtype)


@helper
def support(x: UOp) -> tuple[UOp, int] | None:
    """(s, m) with s <= x <= m*s: s is x with 1 for every coefficient, for a sum of terms that are not negative."""
    if x.op not in LINEAR:
        return None
    parts, k = terms(x)
    if k or any(c < 0 or v.vmin < 0 for v, c in parts):
        return None
    most = max((c for _, c in parts), default=1)
    if most == 1:
        return None
    return build([(v, 1) for v, _ in parts], 0, x.dtype), most
