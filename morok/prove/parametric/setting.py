"""The premises of a rule that is read at every size, its claims, and the instances of laws that this calls for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.integers import INT, TIMES, Integer, integer, within
from morok.prove.parametric.values import Vector
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.smt.graph import subterms
from morok.prove.symbol import Symbol

ROUNDS: Final = 6  # of looking for terms that instances brought
COMPARING: Final = 3  # of these rounds, those that compare sequences
MOST_TUPLES: Final = 60
MOST_INSTANCES: Final = 4000
DEEPEST: Final = 3  # products of so many factors are taken apart


@dataclass(frozen=True, slots=True)
class ForAll:
    """A condition that holds at every place below a length, used at the places where one of the functions is asked.

    functions   those that the condition asks at the place itself, and which of their operands the place is
    """

    length: Integer
    holds: Callable[[Integer], Expr]
    functions: frozenset[tuple[Applicable, int]]
    only_if: Expr


class Setting:
    """The premises and claims of one rule.

    guard       what holds wherever the part that is being read is reached: a claim about it is made there alone
    iterations  those that axes are moved to and from
    counts      how many lanes or items there are of what is gone through: quotients are compared with them
    joined      the lists of axes that are several lists, with these
    """

    def __init__(self) -> None:
        self.premises: list[Expr] = []
        self.claims: list[Expr] = []
        self.guard: list[Expr] = []
        self.counts: list[Integer] = []
        self.iterations: list[Expr] = []
        self.joined: dict[Expr, tuple[Expr, ...]] = {}
        self.schemas: list[ForAll] = []
        self.free: list[tuple[Applicable, Expr, Expr]] = []
        self.tuples: dict[tuple[Expr, Expr], Expr] = {}
        self.sequences: dict[Expr, tuple[Integer, Callable[[Integer], Expr]]] = {}
        self.parts: dict[tuple[Expr, Expr], tuple[Integer, Applicable, Applicable]] = {}
        self.regrouped: dict[Applicable, Applicable | None] = {}
        self.nested: dict[Applicable, tuple[str, str]] = {}
        self.numbers = {0, 1}
        self.compared_tuples: set[tuple[Expr, Expr]] = set()
        self.commutative: set[Applicable] = set()
        self.laws: dict[Expr, None] = {}
        self.unnamed = 0
        self.zero = smt.Const(Symbol("fixed", "zero"), laws.ITERATION)

    def symbol(self, what: str) -> Symbol:
        """The name of an unknown that nothing else has."""
        self.unnamed += 1
        return Symbol("fresh", what, self.unnamed)

    def unknown(self, what: str) -> Integer:
        return integer(smt.Int(self.symbol(what)))

    def premise(self, condition: Expr) -> None:
        self.premises.append(condition)

    def claim(self, condition: Expr) -> None:
        """A condition that must be shown, where the part that is being read is reached."""
        self.claims.append(smt.Implies(smt.And(*self.guard), condition) if self.guard else condition)

    def law(self, instance: Expr) -> None:
        if len(self.laws) > MOST_INSTANCES:
            raise Unsupported("more instances of laws than a question may have")
        self.laws[instance] = None

    def count(self, number: Integer) -> Integer:
        """A number of lanes or items, with which quotients are compared."""
        if not any(number.same(c) for c in self.counts):
            self.counts.append(number)
        return number

    def iteration(self, e: Expr) -> Expr:
        if e not in self.iterations:
            self.iterations.append(e)
        return e

    # integers

    def divided(self, t: Integer, n: Integer) -> tuple[Integer, Integer]:
        """Quotient and remainder, rounded down, where they have values: (q * n + r) // n = q + r // n."""
        if n.known is not None:
            if n.known == 0:
                raise Unsupported("a division by zero")
            if t.known is not None:
                return integer(t.known // n.known), integer(t.known % n.known)
            if n.known == 1:
                return t, integer(0)
        q, r = t.divided_by(n)
        if not r.terms:
            return q, r
        self._digits(r, n, DEEPEST)
        self.law(laws.small(r, n))
        self.law(laws.division(r, n))
        self._of_a_remainder(r, n)
        return q + integer(laws.QUOTIENT(r.term, n.term)), integer(laws.REMAINDER(r.term, n.term))

    def _of_a_remainder(self, r: Integer, n: Integer) -> None:
        """The division of a remainder that may be the number itself: as that number is divided, of which the parts are known."""
        atom = r.product
        if atom is None or len(atom) != 1 or atom[0].head != "apply" or atom[0].data is not laws.REMAINDER:
            return
        q, rest = self._polynomial(atom[0].args[0]).divided_by(n)
        if q.terms:
            self.law(laws.quotient_of_sum(q, n, rest))
            self.law(laws.small(rest, n))

    def below(self, t: Integer, n: Integer) -> Expr:
        """The condition 0 <= t < n; how a number of several digits is below a product is shown by its digits."""
        self._digits(t, n, DEEPEST)
        return within(t, 0, n)

    def _digits(self, t: Integer, n: Integer, depth: int) -> None:
        factors = n.product
        if factors is None or len(factors) < 2 or not depth:
            return
        for f in dict.fromkeys(factors):
            q, r = t.split((f,))
            (m, _) = n.split((f,))
            if r.terms.get((), 0) < 0:  # q * f - 1 is (q - 1) * f + (f - 1)
                q, r = q - 1, r + integer(f)
            self.law(laws.parts_below(q, m, r, integer(f)))
            self._digits(q, m, depth - 1)

    def among_counts(self) -> None:
        """Every quotient by n, compared with every count that is a multiple of n."""
        for made in list(self._terms()):
            if made.head == "apply" and made.data is laws.QUOTIENT:
                t, n = (self._polynomial(a) for a in made.args)
                for c in self.counts:
                    m, r = c.divided_by(n)
                    if m.terms and not r.terms:
                        self.law(laws.quotient_below(t, m, n))
                        self._digits(t, c, DEEPEST)

    def _polynomial(self, t: Expr) -> Integer:
        """The polynomial that a term was made of."""
        if t.head == "+":
            total = integer(0)
            for a in t.args:
                total = total + self._polynomial(a)
            return total
        if t.head == "*":
            return self._polynomial(t.args[0]) * self._polynomial(t.args[1])
        if t.head == "apply" and t.data is TIMES:
            return self._polynomial(t.args[0]) * self._polynomial(t.args[1])
        return integer(t)

    # axes

    def together(self, parts: tuple[Expr, ...]) -> Expr:
        """A list of lists of axes as one."""
        if len(parts) == 1:
            return parts[0]
        found = next((a for a, of in self.joined.items() if of == parts), None)
        if found is None:
            found = smt.Const(self.symbol("axes"), laws.AXES)
            self.joined[found] = parts
            self.law(laws.joined_width(parts, found))
            self.law(laws.joined_distinct(parts, found))
            for p in parts:
                self.premise(laws.AMONG(p, found))
        return found

    def widest_lists(self) -> list[Expr]:
        """The lists of axes that are not said to be among others."""
        lists = dict.fromkeys(t for t in self._terms() if t.sort is laws.AXES)
        among = (t.args for t in subterms(self.premises) if t.head == "apply" and t.data is laws.AMONG)
        parts = {a for a, b in among if a is not b}
        return [a for a in lists if a not in parts]

    def number_of_axes(self, parts: tuple[Expr, ...]) -> Integer:
        total = integer(0)
        for p in parts:
            self.law(laws.LENGTH(p) >= 0)
            total = total + integer(laws.LENGTH(p))
        return total

    def tuple_of(self, length: Integer, at: Callable[[Integer], Expr]) -> Expr:
        """A sequence of values as one: the same one for the same items."""
        key = (length.term, at(integer(smt.Int(Symbol("fixed", "place")))))
        found = self.tuples.get(key)
        if found is not None:
            return found
        made = smt.Const(self.symbol("tuple"), laws.VALUE)
        self.tuples[key] = made
        self.sequences[made] = (length, at)
        return made

    def _about_tuples(self) -> None:
        """Sequences are one where they have one length and the same items. Those that only comparing brings are not compared."""
        if len(self.sequences) > MOST_TUPLES:
            raise Unsupported("more sequences than can be compared")
        for (one, (length, item)), (other, (its_length, its_item)) in itertools.combinations(list(self.sequences.items()), 2):
            if (one, other) not in self.compared_tuples:
                self.compared_tuples.add((one, other))
                k = self.unknown("difference")
                alike = smt.Implies(self.below(k, length), item(k) == its_item(k))
                self.law(smt.Implies(smt.And(length.term == its_length.term, alike), one == other))

    def parts_of(
        self, length: Integer, count: Callable[[Integer], Integer], matched: bool
    ) -> tuple[Integer, Callable[[Integer], Integer], Callable[[Integer], Integer]]:
        """Of vectors behind one another, of so many lanes each: how many lanes all have; for a lane the vector that it is of, and
        the lane that this one begins with. The same for vectors of the same lanes.
        """
        key = (length.term, count(integer(smt.Int(Symbol("fixed", "place")))).term)
        if key not in self.parts:
            total = self.unknown("lanes of all")
            made = (smt.Function(self.symbol(what), INT, INT) for what in ("part", "start"))
            self.parts[key] = (total, next(made), next(made))
            self.law(smt.Implies(length.term == 0, total.term == 0))
            self.premise(total.term >= 0)
        total, part, start = self.parts[key]
        if matched:
            self.premise(total.term >= length.term)  # no vector has no lanes

        def of(lane: Integer) -> Integer:
            k, begin = integer(part(lane.term)), integer(start(lane.term))
            inside = smt.And(within(k, 0, length), within(lane - begin, 0, count(k)))
            self.law(smt.Implies(within(lane, 0, total), inside))
            return k

        return total, of, lambda lane: integer(start(lane.term))

    # what holds of all

    def free_of(self, x: Vector, axes: Expr, so: Expr) -> None:
        """Where `so` holds, x is the same wherever these axes are moved to, and opens none of them."""
        for a in x.axes:
            self.premise(smt.Implies(so, smt.And(laws.APART(a, axes), laws.APART(axes, a))))
        inside = x if x.inside is None else x.inside
        e, lane = smt.Const(self.symbol("iteration"), laws.ITERATION), smt.Int(self.symbol("lane"))
        t = inside.at(e, integer(lane))
        if t.head != "apply" or t.args[-2:] != (e, lane):
            raise Unsupported("free_of_axes of what is no name")
        self.free.append((t.data, axes, so))

    def for_all(self, length: Integer, holds: Callable[[Integer], Expr], only_if: Expr = smt.TRUE) -> None:
        """A premise at every place below a length, where `only_if` holds."""
        place = smt.Int(self.symbol("place"))
        functions = {
            (t.data, k)
            for t in subterms([holds(integer(place))])
            if t.head == "apply"
            for k, a in enumerate(t.args)
            if a is place
        }
        self.schemas.append(ForAll(length, holds, frozenset(functions), only_if))

    # instances

    def _terms(self) -> Iterator[Expr]:
        yield from subterms([*self.premises, *self.claims, *self.laws])

    def _positive(self, n: Integer, depth: int) -> None:
        """A product is positive where its factors are."""
        factors = n.product
        if factors is not None and len(factors) > 1 and depth:
            m, _ = n.split(factors[:1])
            self.law(laws.positive_product(integer(factors[0]), m))
            self._positive(m, depth - 1)

    def close(self) -> None:
        """Add the instances of the laws at the terms that occur, and at those that these bring, so many times."""
        for c in self.counts:
            self._positive(c, DEEPEST)
        self._halve_all()
        for round_ in range(ROUNDS):
            before = len(self.laws)
            if round_ < COMPARING:
                self._about_tuples()
            self.among_counts()
            self._about_axes(list(self._terms()))
            for t in list(self._terms()):
                if t.head == "apply":
                    self._about(t)
            if len(self.laws) == before:
                return

    def _about(self, t: Expr) -> None:
        if t.data in self.commutative:
            x, y = t.args
            self.law(t == t.data(y, x))
        if t.data is TIMES:
            for n in sorted(self.numbers):
                self.law(laws.product_with(n, *t.args))
        for f, axes, so in self.free:
            if t.data is f and t.args[-2].head == "apply" and t.args[-2].data is laws.MOVED and t.args[-2].args[0] is axes:
                self.law(smt.Implies(so, t == f(*t.args[:-2], t.args[-2].args[2], t.args[-1])))
        for s in self.schemas:
            for k, a in enumerate(t.args):
                if (t.data, k) in s.functions:
                    place = self._polynomial(a)
                    condition = smt.And(within(place, 0, s.length), s.only_if)
                    self.law(smt.Implies(condition, s.holds(place)))

    def _halve_all(self) -> None:
        """The folds of a rule, taken apart where others end."""
        folds = [t for t in self._terms() if t.head == "apply" and t.data in self.regrouped]
        lengths = [integer(1), *(self.sequences[t.args[0]][0] for t in folds)]
        for t in folds:
            for m in lengths:
                self._halve(t, m)

    def _about_fold(self, t: Expr) -> None:
        """A fold of one item is that item, and a fold of what is combined a combination of folds."""
        length, item = self.sequences[t.args[0]]
        combine = self.regrouped[t.data]
        self.law(smt.Implies(length.term == 1, t == item(integer(0))))
        one = item(integer(smt.Int(Symbol("fixed", "place"))))
        if combine is not None and one.head == "apply" and one.data is combine:
            left = self.tuple_of(length, lambda k: item(k).args[0])
            right = self.tuple_of(length, lambda k: item(k).args[1])
            self.law(smt.Implies(length.term > 0, t == combine(t.data(left), t.data(right))))
        if one.head == "apply" and one.data is not t.data and self.nested.get(one.data) == self.nested[t.data]:
            self._fold_of_folds(t, one)

    def _fold_of_folds(self, t: Expr, one: Expr) -> None:
        """A fold of folds over loops is the fold of all that they fold."""
        length, item = self.sequences[t.args[0]]
        each, _ = self.sequences[one.args[0]]
        if occurs(integer(smt.Int(Symbol("fixed", "place"))), each):
            return

        def at(p: Integer) -> Expr:
            q, k = self.divided(p, each)
            return self.sequences[item(q).args[0]][1](k)

        self.law(smt.Implies(length.term > 0, t == one.data(self.tuple_of(length * each, at))))

    def _halve(self, t: Expr, m: Integer) -> None:
        """A fold is one of its first m items, combined with one of the others."""
        length, item = self.sequences[t.args[0]]
        rest = length - m
        combine = self.regrouped[t.data]
        if combine is None or (rest.known is not None and rest.known <= 0):
            return
        parts = (self.tuple_of(m, item), self.tuple_of(rest, lambda k: item(m + k)))
        inside = smt.And(m.term > 0, m.term < length.term)
        self.law(smt.Implies(inside, t == combine(*(t.data(p) for p in parts))))

    def compared(self, a: Integer, b: Integer) -> None:
        """The sign of a difference: that of its other factor, where it is a product with a positive number."""
        difference = a - b
        monomials = list(difference.terms)
        for f in dict.fromkeys(monomials[0]) if monomials else ():
            rest, others = difference.split((f,))
            if not others.terms:
                self.law(laws.sign_of_product(integer(f), rest))

    def _about_axes(self, terms: list[Expr]) -> None:
        applied = [t for t in terms if t.head == "apply"]
        lists = list(dict.fromkeys(a for t in terms for a in (t,) if a.sort is laws.AXES))
        for a in lists:
            self.law(smt.Implies(self._is_list(a), laws.positive_width(a)))
            self.law(laws.among_itself(a))
        for t in applied:
            if t.data in self.regrouped:
                self._about_fold(t)
            if t.data is laws.SINGLE:
                i, n = (self._polynomial(a) for a in t.args)
                self.law(laws.single_width(i, n))
                self.law(laws.single_distinct(i, n))
            if t.data is laws.BLOCK:
                self._about_block(*t.args)
        for t in applied:
            if t.data is laws.MOVED:
                b, k, e = t.args
                number = self._polynomial(k)
                self.law(laws.there_and_back(b, number, e))
                self._digits(number, self._polynomial_width(b), DEEPEST)
        for b in lists:
            for e in self.iterations:
                self.law(smt.Implies(self._is_list(b), laws.back_and_there(b, e)))
        self._about_sets(terms)

    def _is_list(self, a: Expr) -> Expr:
        """The condition that an axis which a rule writes has iterations: until that is shown it is no axis."""
        written = [p for p in self.joined.get(a, (a,)) if p.head == "apply" and p.data is laws.SINGLE]
        return smt.And(*(p.args[1] > 0 for p in written)) if written else smt.TRUE

    def _polynomial_width(self, a: Expr) -> Integer:
        product = integer(1)
        for p in self.joined.get(a, (a,)):
            product = product * laws.width(p)
        return product

    def _about_block(self, a: Expr, e: Expr) -> None:
        self.law(smt.Implies(self._is_list(a), laws.block_in_range(a, e)))
        parts = self.joined.get(a)
        if parts is not None:
            self.law(laws.joined_block(parts, a, e))
        if e.head == "apply" and e.data is laws.MOVED:
            b, k, f = e.args
            number = self._polynomial(k)
            self.law(laws.unmoved(a, b, number, f))
            for g in self.iterations:
                self.law(laws.moved_wholly(a, b, number, f, g))

    def _about_sets(self, terms: list[Expr]) -> None:
        among = [t.args for t in terms if t.head == "apply" and t.data is laws.AMONG]
        apart = [t.args for t in terms if t.head == "apply" and t.data is laws.APART]
        for a, b in among:
            for c, d in among:
                if b is c and a is not b and c is not d:
                    self.law(laws.among_through(a, b, d))
            for c, d in apart:
                if b is c and a is not b:
                    self.law(laws.apart_through(a, b, d))


def occurs(unknown: Integer, where: Integer) -> bool:
    """Truth of a term of one number standing in the other."""
    terms = {id(f) for m in unknown.terms for f in m}
    return any(id(t) in terms for t in subterms([f for m in where.terms for f in m]))
