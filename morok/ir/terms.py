"""Sums of index expressions, taken apart: the helpers that the rules in `rules/index/` declare with their contracts.

An index expression is read as `c1*v1 + .. + cn*vn + k` with distinct `v`. Each helper returns a decomposition of it, or None
where there is none worth having; the equation that it promises is the contract written next to its `extern`. They are pure,
build their results in the canonical order, and look at bounds before they build anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING, Final

from morok.ir.bounds import Num, plus, times
from morok.ir.op import Op
from morok.ir.order import Rank, order
from morok.ir.ranges import remember

if TYPE_CHECKING:
    from morok.ir.dtype import DType
    from morok.ir.uop import UOp

Terms = tuple[tuple["UOp", int], ...]

_ADD: Final = Op.Add
_SUB: Final = Op.Sub
_MUL: Final = Op.Mul
_NEG: Final = Op.Neg
_IDIV: Final = Op.Idiv
_MOD: Final = Op.Mod
_CONST: Final = Op.Const
_LINEAR: Final = frozenset({_ADD, _SUB, _MUL, _NEG})
_FORM: Final = "terms"
_FACTORS: Final = "factors"


# Taking apart, putting together.


def terms(x: UOp) -> tuple[Terms, int]:
    """`x` as ((v1, c1), ..), k: the sum of ci*vi and k, the v distinct and no sums, no c zero."""
    op = x.op
    if op not in _LINEAR:
        return ((), x.arg) if op is _CONST else (((x, 1),), 0)
    found: tuple[Terms, int] | None = x.memo.get(_FORM)
    if found is not None:
        return found
    total: dict[UOp, int] = {}
    constant = 0
    stack = [(x, 1)]
    while stack:
        node, factor = stack.pop()
        op = node.op
        src = node.src
        if op is _ADD:
            stack.append((src[1], factor))
            stack.append((src[0], factor))
        elif op is _CONST:
            constant += factor * node.arg
        elif op is _MUL and src[1].op is _CONST:
            stack.append((src[0], factor * src[1].arg))
        elif op is _MUL and src[0].op is _CONST:
            stack.append((src[1], factor * src[0].arg))
        elif op is _SUB:
            stack.append((src[1], -factor))
            stack.append((src[0], factor))
        elif op is _NEG:
            stack.append((src[0], -factor))
        else:
            total[node] = total.get(node, 0) + factor
    form = tuple([(v, c) for v, c in total.items() if c]), constant
    if x not in total:  # a product is its own only term; a fact that holds the node would keep it alive
        remember(x, _FORM, form)
    return form


def build(parts: Iterable[tuple[UOp, int]], k: int, dtype: DType) -> UOp:
    """The sum of c*v for each (v, c), and k, as a chain in canonical order."""
    from morok.ir.uop import UOp

    factors = [(order(v), v, c) for v, c in parts if c]
    if not factors:
        return UOp.const(k, dtype)
    out: UOp | None = None
    for _, v, c in sorted(factors, key=_by_order) if len(factors) > 1 else factors:
        term = v if c == 1 else v * UOp.const(c, dtype)
        out = term if out is None else out + term
    assert out is not None
    return out if k == 0 else out + UOp.const(k, dtype)


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


def merged(x: UOp, y: UOp) -> UOp | None:
    """x + y with the terms of y put into the ordered chain x, like terms added up; None where x + y is so already.

    Walks back over the terms of x that stand behind the first of y's, no further.
    """
    last = x.src[1] if x.op is _ADD else x
    if y.op is not _ADD and last.op is not _CONST:
        if y.op is _CONST:
            return None if y.arg else x
        if (last.rank or order(last))[0] < (y.rank or order(y))[0]:
            return None
    if y.op is _ADD:
        new = _flat(y)
        least = min([(t.rank or order(t))[0] for t in new])
    else:
        new = [y]
        least = (y.rank or order(y))[0]
    passed: list[UOp] = []
    base: UOp | None = x
    while base is not None:
        inner, term = base.src if base.op is _ADD else (None, base)
        if (term.rank or order(term))[0] < least:
            break
        passed.append(term)
        base = inner
    passed.reverse()  # of terms that nothing tells apart those of x stay in front
    passed += new
    return _chain(base, passed, 1, x.dtype)


def _chain(base: UOp | None, terms: list[UOp], factor: int, dtype: DType) -> UOp:
    """base + factor * (the sum of the terms), in order, like terms added up."""
    from morok.ir.uop import UOp, binary

    total: dict[UOp, int] = {}
    kept: list[UOp] = []  # the terms as they are, of use where all stay so
    as_is = factor == 1
    k = 0
    for term in terms:
        op = term.op
        if op is _CONST:
            k += term.arg
            continue
        if op is _MUL:
            v, c = _term(term)
        else:
            v, c = term, 1
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
        kept.sort(key=order)
    for term in kept:
        base = term if base is None else binary(_ADD, base, term)
    if k:
        last = UOp.const(k * factor, dtype)
        return last if base is None else binary(_ADD, base, last)
    return UOp.const(0, dtype) if base is None else base


LONG: Final = 64  # terms from which on a sum is put in order at once


def long_sums(root: UOp) -> list[UOp]:
    """The sums of LONG terms or more at the root of a graph or next to it: the longest chains, none inside another."""
    found: list[UOp] = []
    level = [root]
    for _ in range(3):
        below: list[UOp] = []
        for node in level:
            if node.op is not _ADD:
                below += node.src
            elif _is_deep(node):
                found.append(node)
        level = below
    return found


def _is_deep(node: UOp) -> bool:
    """Whether LONG additions of this sum stand one inside the other. Only then it matters in which order they are finished."""
    for _ in range(LONG):
        a, b = node.src
        if a.op is _ADD:
            node = a
        elif b.op is _ADD:
            node = b
        else:
            return False
    return node.dtype.is_index


def _is_long(node: UOp) -> bool:
    """Whether LONG additions make this sum, however they are nested."""
    if node.op is not _ADD or not node.dtype.is_index:
        return False
    seen = {node}
    stack = [node]
    while stack and len(seen) < LONG:
        for s in stack.pop().src:
            if s.op is _ADD and s not in seen:
                seen.add(s)
                stack.append(s)
    return len(seen) >= LONG


def gathered(x: UOp, y: UOp) -> UOp | None:
    """x + y as one ordered chain, like terms added up, whatever their order was: n log n in the number of terms; None for a short
    sum. Term by term (`merged`) each that comes before the others would move all of them.
    """
    from morok.ir.uop import binary

    top = binary(_ADD, x, y)
    if not _is_long(top):
        return None
    sums = [n for n in top.toposort() if n.op is _ADD]
    weights = {top: 1}  # how often each part is counted: a sum may be shared
    total: dict[UOp, int] = {}
    k = 0
    for node in reversed(sums):
        times = weights.get(node)
        if times is None:
            continue  # inside a term
        for s in node.src:
            if s.op is _ADD:
                weights[s] = weights.get(s, 0) + times
            elif s.op is _CONST:
                k += times * s.arg
            else:
                v, c = _term(s)
                total[v] = total.get(v, 0) + c * times
    return build(total.items(), k, top.dtype)


def scaled(x: UOp, c: int) -> UOp:
    """x * c, c multiplied into the terms of the sum x."""
    return _chain(None, _flat(x), c, x.dtype)


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


def const_factor(x: UOp) -> int:
    """The greatest number that divides every coefficient and the constant of `x`; 0 for the constant 0."""
    parts, k = terms(x)
    return gcd(k, *[c for _, c in parts])


def divides(x: UOp, n: int) -> UOp | None:
    """x / n where n divides every coefficient and the constant of `x`, else None."""
    parts, k = terms(x)
    if n == 0 or k % n or any(c % n for _, c in parts):
        return None
    return build([(v, c // n) for v, c in parts], k // n, x.dtype)


# Division by constants.


def digits(x: UOp, m: int, d: int) -> tuple[UOp, UOp, UOp]:
    """(high, digit, low) with x = m*high + d*digit + low, digits of an x that is not negative."""
    from morok.ir.uop import UOp

    by = UOp.const(d, x.dtype)
    return x // UOp.const(m, x.dtype), x // by % UOp.const(m // d, x.dtype), x % by


def residue(x: UOp, d: int) -> UOp | None:
    """A simpler sum that leaves the remainder of x by d, and is not negative if x and its inner dividends are not."""
    if x.op not in _LINEAR and x.op is not _MOD:
        return None
    parts, k = terms(x)
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


def nearest_residue(x: UOp, d: int) -> tuple[UOp, UOp] | None:
    """(s, r) with x = d*s + r, each coefficient of r the nearest to 0, where r stays within one multiple of d."""
    if x.op not in _LINEAR:
        return None
    parts, k = terms(x)
    low: Num = k
    high: Num = k
    rest: list[tuple[UOp, int]] = []
    changed = False
    for v, c in parts:
        r = c % d
        if 2 * r > d:
            r -= d
        if r != c:
            changed = True
        if r == 0:
            continue
        rest.append((v, r))
        a, b = (v.vmin, v.vmax) if r > 0 else (v.vmax, v.vmin)
        low, high = plus(low, times(a, r)), plus(high, times(b, r))
        if isinstance(low, float) or isinstance(high, float) or high - low >= d:
            return None
    if not changed or low // d != high // d:
        return None
    coefficients = dict(rest)
    whole = [(v, (c - coefficients.get(v, 0)) // d) for v, c in parts]
    return build(whole, 0, x.dtype), build(rest, k, x.dtype)


def two_values(x: UOp) -> tuple[UOp, int, int, int] | None:
    """(v, low, first, second): x is `first` where v is low, and `second` where v is low + 1, its only other value."""
    parts, k = terms(x)
    if len(parts) != 1:
        return None
    v, c = parts[0]
    low = v.vmin
    if isinstance(low, float) or v.vmax != low + 1:
        return None
    return v, low, c * low + k, c * low + c + k


def exact_factor(x: UOp, d: int) -> tuple[int, UOp] | None:
    """(g, n) with x = g*n, g the greatest common factor of the terms of x and of d, greater than 1."""
    if x.op not in _LINEAR:
        return None
    if not _factors(x, d):
        return None
    parts, k = terms(x)
    g = gcd(d, k, *[c for _, c in parts])
    if g <= 1 or not parts:
        return None
    return g, build([(v, c // g) for v, c in parts], k // g, x.dtype)


def _with_factor(parts: Terms, k: int, g: int) -> tuple[Terms, Terms, int] | None:
    """The terms that g divides, the others, and their share of k, where the others stay within [0, g)."""
    rest = tuple([(v, c) for v, c in parts if c % g])
    low, high = span(rest)
    share = k % g
    if low + share < 0 or high + share >= g:
        least = _least(k, g, low)
        if least is None or high + least >= g:
            return None
        share = least
    return tuple([(v, c) for v, c in parts if c % g == 0]), rest, share


def _factors(x: UOp, d: int) -> list[int]:
    """The factors greater than 1 that d shares with a term of x, greatest first."""
    known: list[int] | None = x.memo.get((_FACTORS, d))
    if known is not None:
        return known
    coefficients = [c for _, c in terms(x)[0]]
    found = {gcd(c, d) for c in coefficients}
    found.add(gcd(d, *coefficients))
    found.discard(1)
    known = x.memo[(_FACTORS, d)] = sorted(found, reverse=True)
    return known


def common_factor(x: UOp, d: int) -> tuple[int, UOp, UOp] | None:
    """(g, n, r) with x = g*n + r, where g divides d and r stays within [0, g); g as great as possible."""
    if x.op not in _LINEAR:
        return None
    factors = _factors(x, d)
    if not factors:
        return None
    parts, k = terms(x)
    for g in factors:
        split = _with_factor(parts, k, g)
        if split is not None:
            whole, rest, share = split
            return g, build([(v, c // g) for v, c in whole], (k - share) // g, x.dtype), build(rest, share, x.dtype)
    return None


def low_digit(x: UOp, d: int) -> tuple[int, UOp, UOp] | None:
    """`common_factor` where its use costs no more: r is a constant, or g is d, or a coefficient of n is 1."""
    if x.op not in _LINEAR:
        return None
    factors = _factors(x, d)
    if not factors:
        return None
    parts, k = terms(x)
    for g in factors:
        split = _with_factor(parts, k, g)
        if split is not None and (not split[1] or g == d or any(c == g for _, c in split[0])):
            whole, rest, share = split
            return g, build([(v, c // g) for v, c in whole], (k - share) // g, x.dtype), build(rest, share, x.dtype)
    return None


def smallest_factor(x: UOp, d: int) -> tuple[int, UOp, UOp] | None:
    """(f, q, r) with x = f*q + r, where f divides d and r // f is one number; f as small as possible."""
    if x.op not in _LINEAR:
        return None
    factors = _factors(x, d)
    if not factors:
        return None
    parts, k = terms(x)
    for f in reversed(factors):
        split = _with_factor(parts, k, f)
        if split is not None:
            whole, rest, share = split
            return f, build([(v, c // f) for v, c in whole], (k - share) // f, x.dtype), build(rest, share, x.dtype)
    return None


def split_terms(x: UOp, d: int) -> tuple[UOp, UOp] | None:
    """(q, r) with x = d*q + r, where q has the terms that d divides, and r is not negative."""
    if x.op not in _LINEAR:
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
    share = _share(k, d, span(rest)[0])
    if share is None or (not whole and share >= k):
        return None
    return build(whole, (k - share) // d, x.dtype), build(rest, share, x.dtype)


def mirrored(x: UOp, d: int) -> tuple[int, UOp] | None:
    """(q, y) with x + y = d*q + d - 1, where x has negative coefficients alone and y positive ones."""
    if x.op not in _LINEAR:
        return None
    parts, k = terms(x)
    if not parts or any(c > 0 for _, c in parts):
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
    from morok.ir.uop import UOp

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


def _divided(term: UOp) -> tuple[UOp, int] | None:
    """A quotient or remainder by a positive constant, and its coefficient."""
    c = 1
    if term.op is _MUL and term.src[1].op is _CONST:
        term, c = term.src[0], term.src[1].arg
    if (term.op is _MOD or term.op is _IDIV) and term.src[1].op is _CONST and term.src[1].arg > 0:
        return term, c
    return None


def _congruent(x: UOp, y: UOp, n: int) -> bool:
    """Whether x - y is a multiple of n, term by term."""
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


def remainder_pair(s: UOp) -> tuple[UOp, int, int, UOp, UOp] | None:
    """(rest, k, n, x, y) with s = rest + k*(y mod n) + k*n*(x div n), where n divides x - y and s ends in one of the two."""
    end = s.src[1]
    op = end.src[0].op if end.op is _MUL else end.op
    if op is not _MOD and op is not _IDIV:
        return None
    found = _divided(end)
    if found is None:
        return None
    last, c = found
    n = last.src[1].arg
    is_mod = last.op is _MOD
    node = s.src[0]
    passed: list[UOp] = []
    while True:
        term = node.src[1] if node.op is _ADD else node
        other = _divided(term)
        if other is not None:
            partner, e = other
            if partner.op is not last.op and partner.src[1].arg == n and (e == c * n if is_mod else c == e * n):
                x, y = (partner.src[0], last.src[0]) if is_mod else (last.src[0], partner.src[0])
                if _congruent(x, y, n):
                    return _remaining(node, passed, s.dtype), c if is_mod else e, n, x, y
        if node.op is not _ADD:
            return None
        passed.append(term)
        node = node.src[0]


def _remaining(node: UOp, passed: list[UOp], dtype: DType) -> UOp:
    """The chain without its last term and without the right end of `node`."""
    from morok.ir.uop import UOp

    out: UOp | None = node.src[0] if node.op is _ADD else None
    for term in reversed(passed):
        out = term if out is None else out + term
    return UOp.const(0, dtype) if out is None else out


# Comparisons with constants.


def below(x: UOp, b: int) -> tuple[int, UOp, UOp] | None:
    """(g, n, r) with x = g*n + r, where the rest r, within [0, g), does not decide whether x < b."""
    if x.op not in _LINEAR:
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


def negated(x: UOp) -> UOp | None:
    """-x, for a sum with negative coefficients alone."""
    if x.op not in _LINEAR:
        return None
    parts, k = terms(x)
    if k or not parts or any(c > 0 for _, c in parts):
        return None
    return build([(v, -c) for v, c in parts], 0, x.dtype)


def support(x: UOp) -> tuple[UOp, int] | None:
    """(s, m) with s <= x <= m*s: s is x with 1 for every coefficient, for a sum of what is not negative."""
    if x.op not in _LINEAR:
        return None
    parts, k = terms(x)
    if k or any(c < 0 or v.vmin < 0 for v, c in parts):
        return None
    most = max((c for _, c in parts), default=1)
    if most == 1:
        return None
    return build([(v, 1) for v, _ in parts], 0, x.dtype), most
