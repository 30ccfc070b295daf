"""Quotients and remainders of index sums: the decompositions of a dividend from which the rules of `rules/index/divmod.rules` are
proved. Each helper returns one, as the contract next to its `extern` promises, or None if it finds no useful one.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from morok.ir.bounds import Num, plus, times
from morok.ir.cell import facts_of
from morok.ir.dtype import DType
from morok.ir.linear_forms import LINEAR, terms
from morok.ir.op import Op
from morok.ir.structural_order import order
from morok.ir.sums import build, scaled, span
from morok.ir.uop import UOp
from morok.marks import helper

_ADD: Final = Op.Add
_MUL: Final = Op.Mul
_IDIV: Final = Op.Idiv
_MOD: Final = Op.Mod
_CONST: Final = Op.Const
_FACTORS: Final = "factors"


def _least(k: int, d: int, low: Num) -> int | None:
    """The least number that differs from k by a multiple of d and, added to `low`, is not negative."""
    return None if isinstance(low, float) else -low + (k + low) % d


def _share(k: int, d: int, low: Num) -> int | None:
    """A number that differs from k by a multiple of d and, added to `low`, is not negative: k if it is small, else k mod d, else
    the least one.
    """
    if -d < k < d and low + k >= 0:
        return k
    rest = k % d
    return rest if low + rest >= 0 else _least(k, d, low)


# Division by constants.


@helper
def digits(x: UOp, m: int, d: int) -> tuple[UOp, UOp, UOp]:
    """(high, digit, low) with x = m*high + d*digit + low, digits of an x that is not negative."""
    by = UOp.const(d, x.dtype)
    return x // UOp.const(m, x.dtype), x // by % UOp.const(m // d, x.dtype), x % by


@helper
def residue(x: UOp, d: int) -> UOp | None:
    """A simpler sum with the remainder of x by d, not negative if x and its inner dividends are not."""
    if x.op not in LINEAR and x.op is not _MOD:
        return None
    parts, k = terms(x)
    if 0 <= k < d:
        for v, c in parts:
            if not 0 < c < d or v.op is _MOD:
                break
        else:  # all coefficients are reduced, and any share but k would be greater
            return None
    total: dict[UOp, int] = {}
    changed = False
    work = list(parts)
    while work:
        v, c = work.pop()
        if v.op is _MOD:
            dividend, modulus = v.src
            if modulus.op is _CONST and modulus.arg > 0 and c * modulus.arg % d == 0 and dividend.vmin >= 0:
                inner, inner_k = terms(dividend)
                work.extend([(w, c * e) for w, e in inner])
                k += c * inner_k
                changed = True
                continue
        total[v] = total.get(v, 0) + c
    for v, c in total.items():
        reduced = c % d if c > 0 else -(-c % d)
        if reduced != c:
            total[v] = reduced
            changed = True
    share = _share(k, d, span([(v, c) for v, c in total.items() if c])[0])
    if share is None or (not changed and share >= k):
        return None
    return build(total.items(), share, x.dtype)


@helper
def nearest_residue(x: UOp, d: int) -> tuple[UOp, UOp] | None:
    """(s, r) with x = d*s + r, each coefficient of r the nearest to 0, where r stays within one multiple of d."""
    if x.op not in LINEAR:
        return None
    parts, k = terms(x)
    for _, c in parts:
        if not -d < 2 * c <= d:
            break
    else:  # all coefficients are the nearest already
        return None
    low: Num = k
    high: Num = k
    rest: list[tuple[UOp, int]] = []
    for v, c in parts:
        r = c % d
        if 2 * r > d:
            r -= d
        if r == 0:
            continue
        rest.append((v, r))
        a, b = (v.vmin, v.vmax) if r > 0 else (v.vmax, v.vmin)
        low, high = plus(low, times(a, r)), plus(high, times(b, r))
        if isinstance(low, float) or isinstance(high, float) or high - low >= d:
            return None
    if low // d != high // d:
        return None
    coefficients = dict(rest)
    whole = [(v, (c - coefficients.get(v, 0)) // d) for v, c in parts]
    return build(whole, 0, x.dtype), build(rest, k, x.dtype)


@helper
def two_values(x: UOp) -> tuple[UOp, int, int, int] | None:
    """(v, low, first, second): x is `first` where v is low, and `second` where v is low + 1, its only other value."""
    parts, k = terms(x) if x.op in LINEAR else (((x, 1),), 0)
    if len(parts) != 1:
        return None
    v, c = parts[0]
    low = v.vmin
    if isinstance(low, float) or v.vmax != low + 1:
        return None
    return v, low, c * low + k, c * low + c + k


@helper
def exact_factor(x: UOp, d: int) -> tuple[int, UOp] | None:
    """(g, n) with x = g*n, g the greatest common factor of the terms of x and of d, greater than 1."""
    if x.op not in LINEAR or not _factors(x, d):
        return None
    parts, k = terms(x)
    g = gcd(d, k, *[c for _, c in parts])
    if g <= 1 or not parts:
        return None
    return g, build([(v, c // g) for v, c in parts], k // g, x.dtype)


def _factors(x: UOp, d: int) -> list[int]:
    """The factors greater than 1 that d shares with a term of x, greatest first."""
    known: list[int] | None = x.memo.get((_FACTORS, d))
    if known is not None:
        return known
    coefficients = [c for _, c in terms(x)[0]]
    found = {gcd(c, d) for c in coefficients}
    found.add(gcd(d, *coefficients))
    found.discard(1)
    known = facts_of(x)[(_FACTORS, d)] = sorted(found, reverse=True)
    return known


def _parted(x: UOp, d: int, factors: list[int], sparing: bool) -> tuple[int, UOp, UOp] | None:
    """(g, n, r) with x = g*n + r, where r has the terms of x that g does not divide and stays within [0, g), for the first such
    g of the factors of d; if sparing, the first where r is a constant, or g is d, or a coefficient of n is 1.
    """
    if not factors:
        return None
    parts, k = terms(x)
    for g in factors:
        rest = [(v, c) for v, c in parts if c % g]
        low, high = span(rest)
        share = k % g
        if low + share < 0 or high + share >= g:
            least = _least(k, g, low)
            if least is None or high + least >= g:
                continue
            share = least
        if sparing and rest and g != d and all(c != g for _, c in parts):
            continue
        whole = [(v, c // g) for v, c in parts if c % g == 0]
        return g, build(whole, (k - share) // g, x.dtype), build(rest, share, x.dtype)
    return None


@helper
def common_factor(x: UOp, d: int) -> tuple[int, UOp, UOp] | None:
    """(g, n, r) with x = g*n + r, where g divides d and r stays within [0, g); g as great as possible."""
    return _parted(x, d, _factors(x, d), sparing=False) if x.op in LINEAR else None


@helper
def low_digit(x: UOp, d: int) -> tuple[int, UOp, UOp] | None:
    """`common_factor` if its use costs no more: r is a constant, or g is d, or a coefficient of n is 1."""
    return _parted(x, d, _factors(x, d), sparing=True) if x.op in LINEAR else None


@helper
def smallest_factor(x: UOp, d: int) -> tuple[int, UOp, UOp] | None:
    """(f, q, r) with x = f*q + r, where f divides d and r // f is one number; f as small as possible."""
    return _parted(x, d, _factors(x, d)[::-1], sparing=False) if x.op in LINEAR else None


@helper
def split_terms(x: UOp, d: int) -> tuple[UOp, UOp] | None:
    """(q, r) with x = d*q + r, where q has the terms that d divides, and r is not negative."""
    if x.op not in LINEAR:
        return None
    parts, k = terms(x)
    whole: list[tuple[UOp, int]] = []
    rest: list[tuple[UOp, int]] = []
    for v, c in parts:
        if c % d == 0:
            whole.append((v, c // d))
        elif c == d + 1:  # v*(d+1) costs a product, v + v does not
            whole.append((v, 1))
            rest.append((v, 1))
        else:
            rest.append((v, c))
    if not whole and 0 <= k < d:  # any share but k would be greater
        return None
    share = _share(k, d, span(rest)[0])
    if share is None or (not whole and share >= k):
        return None
    return build(whole, (k - share) // d, x.dtype), build(rest, share, x.dtype)


@helper
def mirrored(x: UOp, d: int) -> tuple[int, UOp] | None:
    """(q, y) with x + y = d*q + d - 1, where x has negative coefficients alone and y positive ones."""
    if x.op not in LINEAR:
        return None
    parts, k = terms(x)
    if not parts or parts[0][1] > 0 or any(c > 0 for _, c in parts):
        return None
    return k // d, build([(v, -c) for v, c in parts], d - 1 - k % d, x.dtype)


# Division by expressions.


def _product(x: UOp) -> tuple[int, list[UOp]]:
    """A product as its constant and its other factors."""
    constant = 1
    found: list[UOp] = []
    stack = [x]
    while stack:
        node = stack.pop()
        if node.op is _MUL:
            stack.extend(node.src)
        elif node.op is _CONST:
            constant *= node.arg
        else:
            found.append(node)
    return constant, found


def _multiply(factors: list[UOp], dtype: DType) -> UOp:
    out: UOp | None = None
    for f in sorted(factors, key=order):
        out = f if out is None else out * f
    return UOp.const(1, dtype) if out is None else out


def _without(factors: list[UOp], taken: list[UOp]) -> list[UOp] | None:
    """`factors` without `taken`, each as often as it stands there; None if one is missing."""
    left = list(factors)
    for t in taken:
        if t not in left:
            return None
        left.remove(t)
    return left


@helper
def common_product(x: UOp, y: UOp) -> tuple[UOp, UOp, UOp] | None:
    """(g, a, b) with x = g*a and y = g*b, for a y that is no constant; g has the factors common to y and all terms of x."""
    if y.op is _CONST:
        return None
    constant, divisors = _product(y)
    parts, k = terms(x)
    if not parts or constant == 0:
        return None
    products = [_product(v) for v, _ in parts]
    g = gcd(constant, k, *[c * p for (_, c), (p, _) in zip(parts, products, strict=True)])
    shared: list[UOp] = []
    if k == 0:
        rests = [list(f) for _, f in products]
        for f in divisors:
            if all(f in r for r in rests):
                shared.append(f)
                for r in rests:
                    r.remove(f)
    if g == 1 and not shared:
        return None
    reduced: dict[UOp, int] = {}
    constant_part = k // g
    for (_, c), (p, own) in zip(parts, products, strict=True):
        kept = _without(own, shared)
        assert kept is not None
        if kept:
            v = _multiply(kept, x.dtype)
            reduced[v] = reduced.get(v, 0) + c * p // g
        else:
            constant_part += c * p // g
    left = _without(divisors, shared)
    assert left is not None
    b = build([(_multiply(left, x.dtype), constant // g)] if left else [], 0 if left else constant // g, x.dtype)
    return (
        build([(_multiply(shared, x.dtype), g)] if shared else [], 0 if shared else g, x.dtype),
        build(reduced.items(), constant_part, x.dtype),
        b,
    )


@helper
def split_by(x: UOp, y: UOp) -> tuple[UOp, UOp] | None:
    """(q, r) with x = y*q + r, for a y that is no constant; q has the terms that y divides."""
    if y.op is _CONST:
        return None
    constant, divisors = _product(y)
    if constant == 0:
        return None
    parts, k = terms(x)
    whole: dict[UOp, int] = {}
    rest: list[tuple[UOp, int]] = []
    whole_k = 0
    for v, c in parts:
        p, factors = _product(v)
        left = _without(factors, divisors) if c * p % constant == 0 else None
        if left is None:
            rest.append((v, c))
        elif left:
            q = _multiply(left, x.dtype)
            whole[q] = whole.get(q, 0) + c * p // constant
        else:
            whole_k += c * p // constant
    if not whole and not whole_k:
        return None
    return build(whole.items(), whole_k, x.dtype), build(rest, k, x.dtype)


# Putting divisions and remainders together.


def _congruent(x: UOp, y: UOp, n: int) -> bool:
    """True if x - y is a multiple of n, term by term."""
    if x is y:
        return True
    a, i = terms(x)
    b, j = terms(y)
    if (i - j) % n:
        return False
    difference = dict(a)
    for v, c in b:
        difference[v] = difference.get(v, 0) - c
    return all(c % n == 0 for c in difference.values())


@helper
def remainder_pair(s: UOp) -> tuple[UOp, int, int, UOp, UOp] | None:
    """(rest, k, n, x, y) with s = rest + k*(y mod n) + k*n*(x div n), where n divides x - y and s ends in one of the two."""
    end, c = s.src[1], 1
    if end.op is _MUL:
        end, factor = end.src
        if factor.op is not _CONST:
            return None
        c = factor.arg
    is_mod = end.op is _MOD
    if not is_mod and end.op is not _IDIV:
        return None
    divisor = end.src[1]
    if divisor.op is not _CONST or divisor.arg <= 0:
        return None
    n = divisor.arg
    if is_mod:
        sought, e = _IDIV, c * n
    elif c % n == 0:
        sought, e = _MOD, c // n
    else:  # no integer coefficient of a remainder matches this quotient
        return None
    node = s.src[0]
    while True:
        inner, term = node.src if node.op is _ADD else (None, node)
        if term.op is _MUL:
            v, factor = term.src
            fits = factor.op is _CONST and factor.arg == e
        else:
            v, fits = term, e == 1
        if fits and v.op is sought and v.src[1] is divisor:
            x, y = (v.src[0], end.src[0]) if is_mod else (end.src[0], v.src[0])
            if _congruent(x, y, n):
                return _remaining(s.src[0], node), c if is_mod else e, n, x, y
        if inner is None:
            return None
        node = inner


def _remaining(chain: UOp, at: UOp) -> UOp:
    """The chain of sums without the last term of its inner node `at`."""
    passed: list[UOp] = []
    node = chain
    while node is not at:
        passed.append(node.src[1])
        node = node.src[0]
    out: UOp | None = at.src[0] if at.op is _ADD else None
    for term in reversed(passed):
        out = term if out is None else out + term
    return UOp.const(0, chain.dtype) if out is None else out


__all__ = [
    "common_factor", "common_product", "digits", "exact_factor", "low_digit", "mirrored", "nearest_residue", "remainder_pair",
    "residue", "scaled", "smallest_factor", "split_by", "split_terms", "two_values",
]  # fmt: skip
