"""Terms made simpler by rewriting alone, and with values put in for some of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

from morok.prove.smt import float_normal_forms, shifts
from morok.prove.smt.fold import value_of
from morok.prove.smt.sorts import BOOL, Sort
from morok.prove.smt.terms import FALSE, TRUE, Applicable, Expr, at_forgetting, make, numeral

# by identity of a term, which is kept: what it is when it is simple, and its negation
_simple: Final[dict[int, tuple[Expr, Expr]]] = {}
_negated: Final[dict[int, tuple[Expr, Expr]]] = {}
at_forgetting(_simple.clear)
at_forgetting(_negated.clear)

COMMUTATIVE: Final = frozenset({"=", "distinct", "xor", "bvadd", "bvmul", "bvand", "bvor", "bvxor", "fp.eq"})
# which side is the less, and if equal
_ORDERS: Final = {"<": (0, False), "<=": (0, True), ">": (1, False), ">=": (1, True)}


def simplify(e: Expr) -> Expr:
    """An equal term: numerals are computed, what is plain of truths, choices, equations and sums is decided."""
    return _walk(e, _simple, ())


class Substitution:
    """Values for unknowns, or terms: what other terms become, simplified, where these are what is given."""

    def __init__(self, pairs: Iterable[tuple[Expr, Expr]]) -> None:
        self.pairs = tuple(pairs)
        self.known: dict[int, tuple[Expr, Expr]] = {id(old): (old, simplify(new)) for old, new in self.pairs}

    def __call__(self, e: Expr) -> Expr:
        return _walk(e, self.known, self.pairs)


def substitute(e: Expr, *pairs: tuple[Expr, Expr]) -> Expr:
    """`e` with each first term of a pair replaced by the second, and nothing else changed."""
    return rebuilt([e], {id(old): new for old, new in pairs})[0]


def substitute_functions(e: Expr, values: Sequence[tuple[Applicable, Expr]]) -> Expr:
    """`e` with every application of a function replaced by the value that it has everywhere."""
    everywhere = {id(f): v for f, v in values}
    return rebuilt([e], {}, lambda at: everywhere.get(id(at.data)) if at.head == "apply" else None)[0]


def rebuilt(
    roots: Sequence[Expr], known: dict[int, Expr], instead: Callable[[Expr], Expr | None] | None = None
) -> list[Expr]:
    """Terms rebuilt from below; what is `known` by identity, or what `instead` has something for, is replaced whole."""
    done = dict(known)
    todo = list(reversed(roots))
    while todo:
        at = todo[-1]
        if id(at) in done:
            todo.pop()
            continue
        if instead is not None and (other := instead(at)) is not None:
            done[id(at)] = other
            todo.pop()
            continue
        if waiting := [a for a in at.args if id(a) not in done]:
            todo.extend(reversed(waiting))
            continue
        todo.pop()
        args = tuple([done[id(a)] for a in at.args])
        done[id(at)] = at if args == () or all(map(_is, args, at.args)) else make(at.head, args, at.sort, at.data)
    return [done[id(r)] for r in roots]


def _age(e: Expr) -> tuple[bool, int]:
    """The order of operands where it does not matter: numerals last."""
    return e.head == "value", e.number


def _is(a: Any, b: Any) -> bool:
    return a is b


def _walk(root: Expr, done: dict[int, tuple[Expr, Expr]], pairs: Sequence[tuple[Expr, Expr]]) -> Expr:
    found = done.get(id(root))
    if found is not None:
        return found[1]
    todo = [root]
    while todo:
        at = todo[-1]
        if id(at) in done:
            todo.pop()
            continue
        if not at.args:
            done[id(at)] = at, at
            todo.pop()
            continue
        waiting = [a for a in at.args if id(a) not in done]
        if waiting:
            if at.head == "ite" and id(at.args[0]) in done:  # of a choice that is made, one side alone
                condition = done[id(at.args[0])][1]
                if condition is TRUE or condition is FALSE:
                    chosen = at.args[1 if condition is TRUE else 2]
                    if id(chosen) in done:
                        done[id(at)] = at, done[id(chosen)][1]
                        todo.pop()
                    else:
                        todo.append(chosen)
                    continue
            elif at.head == "ite" and waiting[0] is at.args[0]:
                todo.append(at.args[0])
                continue
            todo.extend(waiting)
            continue
        todo.pop()
        args = tuple([done[id(a)][1] for a in at.args])
        if pairs and all(map(_is, args, at.args)):
            done[id(at)] = at, _walk(at, _simple, ())  # nothing was put in: it is what it is anywhere
        else:
            done[id(at)] = at, simpler(at, args)
    return done[id(root)][1]


def simpler(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """The function of `e` at other operands, which are simple."""
    head = e.head
    if all(a.head == "value" for a in args):
        value = value_of(e, tuple([a.data for a in args]))
        if value is not None:
            return numeral(e.sort, value)
    if head in COMMUTATIVE:
        args = tuple(sorted(args, key=_age))
    rule = _RULES.get(head)
    found = rule(e, args) if rule is not None else None
    if found is not None:
        return found
    return e if all(map(_is, args, e.args)) else make(head, args, e.sort, e.data)


# Truths


def contradicts(conditions: dict[int, Expr]) -> bool:
    """True if one of these simple conditions, which are known by identity, is the negation of another."""
    return any(c.head in ("not", "and", "or") and id(negation(c)) in conditions for c in conditions.values())


def _junction(head: str, neutral: Expr, absorbing: Expr) -> Callable[[tuple[Expr, ...]], Expr]:
    def joined(args: tuple[Expr, ...]) -> Expr:
        kept: dict[int, Expr] = {}
        for a in args:
            for part in a.args if a.head == head else (a,):
                if part is absorbing:
                    return absorbing
                if part is not neutral:
                    kept[id(part)] = part
        if contradicts(kept):
            return absorbing
        if len(kept) < 2:
            return next(iter(kept.values()), neutral)
        return make(head, tuple(sorted(kept.values(), key=_age)), BOOL)

    return joined


_and = _junction("and", TRUE, FALSE)
_or = _junction("or", FALSE, TRUE)


def negation(a: Expr) -> Expr:
    """The negation of a simple term, simple: it stands before what is no connection of others."""
    found = _negated.get(id(a))
    if found is None:
        if a.head == "value":
            opposite = FALSE if a is TRUE else TRUE
        elif a.head == "not":
            opposite = a.args[0]
        elif a.head in ("and", "or"):
            parts = tuple([negation(p) for p in a.args])
            opposite = (_or if a.head == "and" else _and)(parts)
        else:
            opposite = make("not", (a,), BOOL)
        found = _negated[id(a)] = a, opposite
    return found[1]


def _implies(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    a, b = args
    if a is FALSE or b is TRUE or a is b:
        return TRUE
    return _or((negation(a), b))


def _xor(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    a, b = args
    if a is b:
        return FALSE
    return (negation(a) if b is TRUE else a) if b.head == "value" else None


def _ite(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    c, a, b = args
    if a is b or c is TRUE:
        return a
    if c is FALSE:
        return b
    if a is TRUE:
        return _or((c, b))
    if a is FALSE:
        return _and((negation(c), b))
    if b is TRUE:
        return _or((negation(c), a))
    if b is FALSE:
        return _and((c, a))
    return make("ite", (c.args[0], b, a), e.sort) if c.head == "not" else None


def _equal(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    a, b = args
    if a is b:
        return TRUE
    if a.sort is BOOL:
        if b.head == "value":
            return a if b is TRUE else negation(a)
        return FALSE if negation(a) is b else None
    if a.head == b.head == "value":
        return FALSE
    if b.head == "value" and a.head == "ite" and all(o.head == "value" for o in a.args[1:]):
        yes, no = (o.data == b.data for o in a.args[1:])
        return (TRUE if no else a.args[0]) if yes else (negation(a.args[0]) if no else FALSE)
    return _equal_numbers(a, b) if a.sort.kind in ("Int", "Real") else None


def _distinct(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    same = _equal(e, args)
    return negation(make("=", args, BOOL) if same is None else same)


# Numbers: a sum is a constant and how often it has each other term.

Terms = dict[int, tuple[Expr, int | Fraction]]
Sum = tuple[int | Fraction, Terms]


def _sum_of(e: Expr) -> Sum:
    """A simple term as a sum."""
    if e.head == "value":
        return e.data, {}
    constant: int | Fraction = 0
    terms: dict[int, tuple[Expr, int | Fraction]] = {}
    for part in e.args if e.head == "+" else (e,):
        if part.head == "value":
            constant += part.data
        elif part.head == "*" and part.args[0].head == "value":
            rest = part.args[1:]
            of = rest[0] if len(rest) == 1 else make("*", rest, e.sort)
            terms[id(of)] = of, part.args[0].data
        else:
            terms[id(part)] = part, 1
    return constant, terms


def _plus(a: Sum, b: Sum, times: int | Fraction) -> Sum:
    terms = dict(a[1])
    for key, (of, n) in b[1].items():
        total = terms[key][1] + n * times if key in terms else n * times
        if total:
            terms[key] = of, total
        else:
            del terms[key]
    return a[0] + b[0] * times, terms


def _made(total: Sum, e: Expr) -> Expr:
    constant, terms = total
    parts = []
    for of, n in sorted(terms.values(), key=lambda t: t[0].number):
        factors = of.args if of.head == "*" else (of,)
        parts.append(of if n == 1 else make("*", (numeral(e.sort, n), *factors), e.sort))
    if constant or not parts:
        parts.append(numeral(e.sort, constant))
    return parts[0] if len(parts) == 1 else make("+", tuple(parts), e.sort)


def _sum(e: Expr, args: tuple[Expr, ...]) -> Expr:
    total = _sum_of(args[0])
    for a in args[1:]:
        total = _plus(total, _sum_of(a), 1)
    return _made(total, e)


def _minus(e: Expr, args: tuple[Expr, ...]) -> Expr:
    nothing: Sum = (numeral(e.sort, 0).data, {})
    total = _plus(nothing, _sum_of(args[0]), -1) if len(args) == 1 else _sum_of(args[0])
    for a in args[1:]:
        total = _plus(total, _sum_of(a), -1)
    return _made(total, e)


def _product(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    scale: int | Fraction = 1
    factors: list[Expr] = []
    for a in args:
        for part in a.args if a.head == "*" else (a,):
            if part.head == "value":
                scale *= part.data
            else:
                factors.append(part)
    if not scale or not factors:
        return numeral(e.sort, scale)
    factors.sort(key=lambda f: f.number)
    if len(factors) == 1:
        constant, terms = _sum_of(factors[0])
        return _made((constant * scale, {k: (of, n * scale) for k, (of, n) in terms.items()}), e)
    return make("*", (*([numeral(e.sort, scale)] if scale != 1 else []), *factors), e.sort)


def _compare(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """An order of numbers as a sum that is at most a constant, or below it, or the negation of that: one way for each."""
    swapped, equal = _ORDERS[e.head]
    a, b = args[::-1] if swapped else args
    constant, terms = _plus(_sum_of(a), _sum_of(b), -1)
    if not terms:
        return TRUE if constant < 0 or (equal and constant == 0) else FALSE
    size, negative = _scale(terms, a.sort)
    total = _made((0, _divided(terms, -size if negative else size)), a)
    if a.sort.kind == "Real":
        # where both sides change their signs, "at most" is the negation of "below"
        bound = numeral(a.sort, (constant if negative else -constant) / Fraction(size))
        said = make("<=" if equal != negative else "<", (total, bound), BOOL)
        return negation(said) if negative else said
    most = (-int(constant) - (not equal)) // int(size)
    said = make("<=", (total, numeral(a.sort, -most - 1 if negative else most)), BOOL)
    return negation(said) if negative else said


def _scale(terms: Terms, sort: Sort) -> tuple[int | Fraction, bool]:
    """By what a sum is divided so that equal sums are the same, and whether its first coefficient is negative."""
    first = min(terms.values(), key=lambda t: t[0].number)[1]
    if sort.kind == "Int":
        return math.gcd(*(int(n) for _, n in terms.values())), first < 0
    return abs(Fraction(first)), first < 0


def _divided(terms: Terms, by: int | Fraction) -> Terms:
    """A sum by a number that divides all its coefficients; of real numbers this is any."""
    if isinstance(by, int):
        return {k: (of, int(n) // by) for k, (of, n) in terms.items()}
    return {k: (of, n / by) for k, (of, n) in terms.items()}


def _equal_numbers(a: Expr, b: Expr) -> Expr:
    """An equation of numbers: a sum with a positive first coefficient is a constant, or one term is another."""
    constant, terms = _plus(_sum_of(a), _sum_of(b), -1)
    if not terms:
        return FALSE if constant else TRUE
    size, negative = _scale(terms, a.sort)
    scale = -size if negative else size
    if a.sort.kind == "Int" and int(constant) % int(size):
        return FALSE
    divided = _divided(terms, scale)
    if not constant and sorted(n for _, n in divided.values()) == [-1, 1]:
        return make("=", tuple(sorted((of for of, _ in divided.values()), key=_age)), BOOL)
    rest = -int(constant) // int(scale) if a.sort.kind == "Int" else -Fraction(constant) / scale
    return make("=", (_made((0, divided), a), numeral(a.sort, rest)), BOOL)


def _quotient(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    return args[0] if args[1].head == "value" and args[1].data == 1 else None


# Bit vectors


def _bits(zero: str, ones: str, same: str) -> Callable[[Expr, tuple[Expr, ...]], Expr | None]:
    """The rule of an op with no bits, with all bits, with itself: "it" is the other operand, "0" and "1" no bits and all."""

    def rule(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
        a, b = args
        every = (1 << e.sort.width) - 1

        def made(what: str, it: Expr) -> Expr | None:
            return it if what == "it" else numeral(e.sort, {"0": 0, "1": every}[what]) if what else None

        if a is b:
            return made(same, a)
        for x, y in ((a, b), (b, a)):
            if x.head == "value" and x.data in (0, every):
                return made(ones if x.data else zero, y)
        return None

    return rule


def _bits_both(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    if args[0] is args[1]:
        return args[0]
    return shifts.masked(args[0], args[1].data) if args[1].head == "value" else None


def _bits_sum(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    a, b = args
    if e.head == "bvsub":
        return numeral(e.sort, 0) if a is b else a if b.head == "value" and not b.data else None
    for x, y in ((a, b), (b, a)):
        if x.head == "value" and not x.data:
            return y
    return None


def _bits_product(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    for x, y in (args, args[::-1]):
        if x.head == "value":
            by = shifts.exponent(x)
            return x if not x.data else None if by is None else shifts.left(y, by)
    return None


def _order_of_bits(at_most: str, mirrored: bool, strict: bool) -> Callable[[Expr, tuple[Expr, ...]], Expr]:
    """An order of bit vectors by the one that says "at most"."""

    def rule(e: Expr, args: tuple[Expr, ...]) -> Expr:
        a, b = args if mirrored == strict else args[::-1]
        if a is b:
            return FALSE if strict else TRUE
        said = make(at_most, (a, b), BOOL)
        return negation(said) if strict else said

    return rule


def _order_of_floats(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    a, b = args if e.head in ("fp.lt", "fp.leq") else args[::-1]
    if e.head in ("fp.lt", "fp.gt"):
        return FALSE if a is b else make("fp.lt", (a, b), BOOL)
    return negation(make("fp.isNaN", (a,), BOOL)) if a is b else make("fp.leq", (a, b), BOOL)


def _cut(e: Expr, args: tuple[Expr, ...]) -> Expr | None:
    return args[0] if e.sort is args[0].sort else None


_RULES: Final[dict[str, Callable[[Expr, tuple[Expr, ...]], Expr | None]]] = {
    "and": lambda e, args: _and(args),
    "or": lambda e, args: _or(args),
    "not": lambda e, args: negation(args[0]),
    "=>": _implies,
    "xor": _xor,
    "ite": _ite,
    "=": _equal,
    "distinct": _distinct,
    "+": _sum,
    "-": _minus,
    "*": _product,
    **dict.fromkeys(_ORDERS, _compare),
    "div": _quotient,
    "/": _quotient,
    "bvand": _bits_both,
    "bvor": _bits("it", "1", "it"),
    "bvxor": _bits("it", "", "0"),
    "bvadd": _bits_sum,
    "bvsub": _bits_sum,
    "bvmul": _bits_product,
    **{
        f"bv{sign}{name}": _order_of_bits(f"bv{sign}le", mirrored, strict)
        for sign in "us"
        for name, mirrored, strict in (
            ("lt", False, True),
            ("le", False, False),
            ("gt", True, True),
            ("ge", True, False),
        )
    },
    **dict.fromkeys(("fp.lt", "fp.leq", "fp.gt", "fp.geq"), _order_of_floats),
    **shifts.RULES,
    **float_normal_forms.RULES,
    "extract": _cut,
    "zero_extend": _cut,
    "sign_extend": _cut,
}
