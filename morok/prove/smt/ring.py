"""Polynomials over bit vectors: sums and products at a fixed width are a ring, in which terms are equal where they have the same
coefficients modulo a power of two. No solver knows that of products of unknowns; where choices stand between them, the question
is asked once for each outcome of their conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from morok.prove.smt.propagate import refuted
from morok.prove.smt.simplifier import Substitution, negation, simpler
from morok.prove.smt.sorts import BOOL, BitVecSort, Sort
from morok.prove.smt.term_graphs import subterms
from morok.prove.smt.terms import FALSE, TRUE, Expr, make, numeral

Monomial = tuple[int, ...]  # the numbers of its factors, in their order, each as often as it is there
MOST_MONOMIALS: Final = 64  # of a polynomial; a product of more is left as it is
MOST_FACTORS: Final = 64  # of a product: squares of squares have twice as many each time
MOST_CHOICES: Final = 5  # conditions of choices that are decided one way and the other


def refuted_as_polynomials(conditions: Sequence[Expr]) -> bool:
    """True if the conditions cannot hold together, as the polynomials in them show."""
    if not any(at.head == "bvmul" and all(a.head != "value" for a in at.args) for at in subterms(conditions)):
        return False
    return _refuted(conditions, MOST_CHOICES)


def _refuted(conditions: Sequence[Expr], choices: int) -> bool:
    plain = Polynomials().rebuilt(conditions)
    if refuted(plain):
        return True
    condition = next((at.args[0] for at in subterms(plain) if at.head == "ite" and at.sort.kind == "BitVec"), None)
    if condition is None or not choices:
        return False
    return all(
        _refuted(
            [*map(Substitution([(condition, value)]), plain), condition if value is TRUE else negation(condition)],
            choices - 1,
        )
        for value in (TRUE, FALSE)
    )


class Polynomial:
    """A sum of products of terms, by the products; the product of none is the constant.

    terms  the coefficients, none of them 0, modulo 2^width
    """

    __slots__ = ("sort", "terms")

    def __init__(self, sort: Sort, terms: dict[Monomial, int]) -> None:
        self.sort = sort
        size = 1 << sort.width
        self.terms = {m: n % size for m, n in terms.items() if n % size}

    def plus(self, other: Polynomial, times: int = 1) -> Polynomial:
        total = Counter(self.terms)
        for m, n in other.terms.items():
            total[m] += times * n
        return Polynomial(self.sort, total)

    def times(self, other: Polynomial) -> Polynomial | None:
        """The product; None of one that is too long."""
        factors = [max(map(len, p.terms), default=0) for p in (self, other)]
        if len(self.terms) * len(other.terms) > MOST_MONOMIALS or sum(factors) > MOST_FACTORS:
            return None
        total: Counter[Monomial] = Counter()
        for m, n in self.terms.items():
            for k, c in other.terms.items():
                total[tuple(sorted((*m, *k)))] += n * c
        return Polynomial(self.sort, total)

    def scaled(self, by: int) -> Polynomial:
        return Polynomial(self.sort, {m: n * by for m, n in self.terms.items()})

    def in_one_form(self) -> Polynomial:
        """A multiple of it that is 0 where it is 0, and nowhere else: that of which the first coefficient that is divisible by no
        greater power of two than any is such a power itself.
        """
        first = min(sorted(self.terms.items()), key=lambda item: item[1] & -item[1], default=((), 1))[1]
        return self.scaled(pow(first // (first & -first), -1, 1 << self.sort.width))


class Polynomials:
    """Terms with every sum and product of bit vectors in one form."""

    def __init__(self) -> None:
        self.known: dict[int, Polynomial] = {}  # by the identity of the term that is one
        self.atoms: dict[int, Expr] = {}  # by their numbers

    def rebuilt(self, roots: Sequence[Expr]) -> list[Expr]:
        done: dict[int, Expr] = {}
        todo = list(reversed(roots))
        while todo:
            at = todo[-1]
            if id(at) in done:
                todo.pop()
            elif waiting := [a for a in at.args if id(a) not in done]:
                todo.extend(reversed(waiting))
            else:
                todo.pop()
                done[id(at)] = self.formed(at, tuple([done[id(a)] for a in at.args]))
        return [done[id(r)] for r in roots]

    def formed(self, e: Expr, args: tuple[Expr, ...]) -> Expr:
        """The function of `e` at other operands, which are in this form."""
        if e.head in ("=", "distinct") and args[0].sort.kind == "BitVec":
            same = self.equation(args[0], args[1])
            return same if e.head == "=" else negation(same)
        found = self.computed(e, args) if e.sort.kind == "BitVec" and args else None
        return simpler(e, args) if found is None else self.term(found)

    def equation(self, a: Expr, b: Expr) -> Expr:
        apart = self.of(a).plus(self.of(b), -1)
        if not apart.terms.keys() - {()}:
            return FALSE if apart.terms else TRUE
        apart = apart.in_one_form()
        constant = apart.terms.pop((), 0)
        return make("=", (self.term(apart), numeral(a.sort, -constant % (1 << a.sort.width))), BOOL)

    def of(self, e: Expr) -> Polynomial:
        if e.head == "value":
            return Polynomial(e.sort, {(): e.data})
        found = self.known.get(id(e))
        if found is None:
            self.atoms[e.number] = e
            found = self.known[id(e)] = Polynomial(e.sort, {(e.number,): 1})
        return found

    def computed(self, e: Expr, args: tuple[Expr, ...]) -> Polynomial | None:
        """The polynomial that a function of the ring makes; None of another function, and of a product that is too long."""
        match e.head:
            case "bvadd":
                return self.of(args[0]).plus(self.of(args[1]))
            case "bvsub":
                return self.of(args[0]).plus(self.of(args[1]), -1)
            case "bvneg":
                return self.of(args[0]).scaled(-1)
            case "bvnot":
                return Polynomial(e.sort, {(): -1}).plus(self.of(args[0]), -1)
            case "bvshl" if args[1].head == "value":
                return self.of(args[0]).scaled(1 << args[1].data if args[1].data < e.sort.width else 0)
            case "bvmul":
                return self.of(args[0]).times(self.of(args[1]))
            case "extract" if e.data[1] == 0:
                return self.lowest(self.of(args[0]), e.sort.width)
        return None

    def lowest(self, p: Polynomial, width: int) -> Polynomial | None:
        """The lowest bits of a polynomial: the polynomial of the lowest bits; None of one that is too long."""
        found = Polynomial(BitVecSort(width), {})
        for monomial, n in p.terms.items():
            product = Polynomial(found.sort, {(): n})
            for number in monomial:
                longer = product.times(self.of(self.low_bits(self.atoms[number], width)))
                if longer is None:
                    return None
                product = longer
            found = found.plus(product)
        return found

    def low_bits(self, a: Expr, width: int) -> Expr:
        if a.head in ("zero_extend", "sign_extend") and a.args[0].sort.width >= width:
            a = a.args[0]
        return a if a.sort.width == width else make("extract", (a,), BitVecSort(width), (width - 1, 0))

    def term(self, p: Polynomial) -> Expr:
        """The polynomial as a term, of which it is known again."""
        parts = []
        for monomial, n in sorted(p.terms.items()):
            factors = [self.atoms[i] for i in monomial]
            if n != 1 or not factors:
                factors.append(numeral(p.sort, n))
            product = factors[0]
            for f in factors[1:]:
                product = make("bvmul", (product, f), p.sort)
            parts.append(product)
        total = parts[0] if parts else numeral(p.sort, 0)
        for part in parts[1:]:
            total = make("bvadd", (total, part), p.sort)
        if total.head != "value" and total.number not in self.atoms:
            self.known[id(total)] = p
        return total
