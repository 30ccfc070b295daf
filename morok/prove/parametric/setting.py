"""The premises of a rule that is read at every size, its claims, and the instances of laws that this calls for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import INT, TIMES, Integer, integer, within
from morok.prove.parametric.rule_values import Folded, Indices, Items, Lane, Loops, Register, Remaining, Vector
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

MOST_INSTANCES: Final = 2500
DEEPEST: Final = 3  # products of so many factors are taken apart


AtItems = Literal["lanes", "places"]
Proves = Callable[[Callable[[Mapping[str, str]], str]], bool]


@dataclass(frozen=True, slots=True, eq=False)
class ForAll:
    """A condition that holds at every place below a length, used at the places where one of the functions is asked.

    functions   those that the condition asks at the place itself: which of their operands the place is, and the others
                where these are no places of conditions within this one
    mirrored    where there are none, those that it asks at so much less the place
    witnesses   an instance may speak of new unknowns
    at_items    it is used at the items of sequences of sequences, too, as "lanes", or at their "places" behind one another: it
                is about what a statement does
    unless      it is not used at places that this function gives: of two functions that undo each other
    deepest     nor at places that so many functions give, of one another's
    done        the places at which it has been used
    """

    length: Integer
    holds: Callable[[Integer], Expr]
    functions: frozenset[tuple[Applicable, int, tuple[Expr | None, ...]]]
    mirrored: tuple[tuple[Applicable, int, Integer], ...]
    only_if: Expr
    witnesses: bool
    at_items: AtItems | None
    unless: Applicable | None
    deepest: int | None
    done: set[Expr] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Joined:
    """Vectors behind one another.

    total         the number of lanes of all
    part, start   the vector that a lane is of, and the lane that this one begins with, as functions of the lane
    first         the lane that a vector begins with, as a function of its number
    differences   of which function their lanes are the differences; None where nothing looks like that
    alike         how many lanes all but the last one may have; None where nothing looks like that
    compared      the vectors of which it has been said that they are behind such, or are not
    """

    length: Integer
    count: Callable[[Integer], Integer]
    total: Integer
    part: Applicable
    start: Applicable
    first: Applicable
    alike: Integer | None = None
    differences: Callable[[Integer], Integer] | None = None
    compared: set[Expr] = field(default_factory=set)

    def begin(self, k: Integer) -> Integer:
        return integer(self.first(k.term))


@dataclass(slots=True)
class Quantified:
    """The truth of a condition holding at every place, and whether what it means has been said."""

    truth: Expr
    defined: bool = False


@dataclass(slots=True, eq=False)
class Algebra:
    """Algebraic properties of the functions of a rule.

    rings, sums  the products, and the sums, of dtypes that are rings, with the zero there
    idempotent   the functions f with f(x, x) = x
    commutative  those with f(x, y) = f(y, x)
    neutral      the number e with f(x, e) = x, by f
    repeated     the product, of a sum, that it is of equal values, and their dtype
    together     the functions g for which the fold of all g(x, y) is g of the folds of all x and all y, by the fold
    involutions  those with f(f(x)) = x
    taken_out    the fold h such that f of all g(x) is g of h of all x, by f and g: -min(x) is the maximum of -x
    """

    rings: dict[Applicable, Expr] = field(default_factory=dict)
    sums: dict[Applicable, Expr] = field(default_factory=dict)
    idempotent: set[Applicable] = field(default_factory=set)
    commutative: set[Applicable] = field(default_factory=set)
    neutral: dict[Applicable, Expr] = field(default_factory=dict)
    repeated: dict[Applicable, tuple[Applicable, str]] = field(default_factory=dict)
    together: dict[Applicable, frozenset[Applicable]] = field(default_factory=dict)
    involutions: set[Applicable] = field(default_factory=set)
    taken_out: dict[Applicable, dict[Applicable, Applicable]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Looped:
    """A fold over loops.

    combine    the function of two values that it is made of, where these may be regrouped; None where they may not
    taken_out  the fold h over the same loops such that it is g of h, by the function g that is folded
    """

    over: tuple[Loops, ...]
    combine: Applicable | None
    taken_out: dict[Applicable, Applicable]


@dataclass(slots=True, eq=False)
class Views:
    """The shapes and axes that the views of a rule speak of.

    shapes           those of reshapes that are matched, each as one value, with its rank and its sizes
    parts_of_shapes  of some of these the parts that a shape which is built shares with it: the begin and the axes of each part
    cuts             the joins of tensors: rank, axis, and where along the axis each tensor begins
    permuted         the permutations of axes: rank, the permutation, its inverse, and the condition under which it is one
    turned           two axes that tell whether axes have changed their order, by a shape, a permuted one, and the permutation
    flipped          the axes that are read backwards
    boxes            the parts of tensors that are cut out, or padded: rank, where each begins along an axis, and how long it is
    """

    shapes: list[tuple[Expr, Integer, Callable[[Integer], Integer]]] = field(default_factory=list)
    parts_of_shapes: dict[Expr, tuple[tuple[Integer, Integer], ...]] = field(default_factory=dict)
    cuts: list[tuple[Integer, Integer, list[Integer]]] = field(default_factory=list)
    permuted: list[tuple[Integer, Indices, Indices, Expr]] = field(default_factory=list)
    turned: dict[tuple[Expr, Expr, int], tuple[Integer, Integer]] = field(default_factory=dict)
    flipped: list[Items] = field(default_factory=list)
    boxes: list[tuple[Integer, Indices, Indices]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Elements:
    """The questions about single numbers, for a rule about vectors or tensors.

    ops      by the function of values that it is, an op, the dtypes of its operands, and what it converts to
    proves   truth of a rule about numbers being proved, by its text for a choice of dtypes; None where none is asked for
    related  truth of such a rule being used
    regrouping  truth of these being about sums of floats that may be regrouped
    """

    ops: dict[Applicable, tuple[str, tuple[str, ...], str | None]] = field(default_factory=dict)
    proves: Proves | None = None
    related: bool = False
    regrouping: bool = False


class TooMany(Unsupported):
    """More instances of laws than a question may have."""


class Setting:
    """The premises and claims of one rule.

    algebra     the algebraic properties of functions
    views       the shapes and the axes that views speak of
    elements    the rules about single numbers that the rule about vectors or tensors may rest on
    defined     what holds where the pattern has a value
    supposed    what is claimed first, and then supposed by all further claims
    guard       what holds wherever the part that is being read is reached: a claim about it is made there alone
    iterations  those that axes are moved to and from
    counts      how many lanes or items there are of what is gone through: quotients are compared with them
    ends        the ends of ranges, by what these are at an iteration
    laws        the instances of laws, each with the law in words
    given       the laws with the terms at which they are among these, so that no instance is made twice
    met         the terms of premises, claims and laws, as far as they were gone through
    lanes       those that sides are compared at: conditions that ask no function at a place are used there
    joined      the lists of axes that are several lists, with these
    pieces      sequences that are made to be parts of others: nothing more is said of them
    known_inside  pairs of numbers, the first of which is not negative, and less than the second, as long as they are here
    boundaries  where a vector begins behind others
    threads     the axes that are ranges which the hardware runs
    registers   the states in which a rule names the element of a register, by its name
    tables      the folds of folds, with how many there are, and of how many items; `turned`: of which it has been said that they
                may go through these in another order
    reordered   for two folds whether it has been said that they may be one, in another order
    widest      the lanes of places at several indices, by the number and the lanes of these
    over_axes   the folds over iterations of axes, by iteration and lane, as functions of the list of these
    folded      the folds over axes, and `combined`: those of which it was said what combination of others they are
    within      the index vectors at which folds are being compared, and `contexts` those at which a sequence is asked for
    sides       those of the rule of which an element is asked
    looped      the folds over loops alone, as functions of a sequence
    invariant   by the function that a node is and the name of a loop the truths from which follows that it is the same in all
                iterations of that
    few_elements  it is asked what folds of one element are, and of none
    """

    def __init__(self) -> None:
        self.algebra = Algebra()
        self.views = Views()
        self.elements = Elements()
        self.premises: list[Expr] = []
        self.claims: list[Expr] = []
        self.defined: list[Expr] = []
        self.supposed: list[Expr] = []
        self.guard: list[Expr] = []
        self.counts: list[Integer] = []
        self.iterations: list[Expr] = []
        self.joined: dict[Expr, tuple[Expr, ...]] = {}
        self.schemas: list[ForAll] = []
        self.free: list[tuple[Applicable, Expr, Expr]] = []
        self.tuples: dict[tuple[Expr, Expr], Expr] = {}
        self.sequences: dict[Expr, tuple[Integer, Callable[[Integer], Expr]]] = {}
        self.parts: dict[tuple[Expr, Expr], Joined] = {}
        self.nested_items: dict[Applicable, Joined] = {}
        # the places of pointers: of other storage, which may be a view or a place itself, two may be one, and any nowhere
        self.of_numbers: set[Applicable] = set()
        self.constants: set[Expr] = set()  # the values of constants that a pattern names
        self.constant_lanes: set[Applicable] = set()  # those of the lanes of constants, as functions of the lane
        self.may_be_invalid: set[Applicable] = set()  # the functions that are variables which may be Invalid
        self.invalid_named = False  # truth of the rule having Invalid itself
        self.said: set[tuple[Expr, ...]] = set()  # of which first items it has been said what they are, and where
        self.firsts: dict[tuple[Expr, Expr], Symbol] = {}
        self.inverses: dict[tuple[Expr, Expr], Applicable] = {}
        self.selections: set[Applicable] = set()
        self.bounded: dict[Applicable, str] = {}  # the variables of which the rule asks for bounds, with their names
        self.kept: dict[tuple[Expr, ...], Remaining] = {}
        self.folds: dict[tuple[Any, ...], Expr] = {}
        self.folded: dict[Expr, Folded] = {}
        self.combined: dict[Expr, Expr] = {}
        self.few_elements = False
        self.looped: dict[Applicable, Looped] = {}
        self.invariant: dict[tuple[Applicable, str], list[Expr]] = {}
        self.within: tuple[Expr, ...] = ()
        self.sides: frozenset[str] = frozenset()
        self.contexts: dict[Expr, set[tuple[Expr, ...]]] = {}
        self.ends: dict[Lane, Vector] = {}
        self.of_items: list[tuple[set[Applicable], Callable[[Integer, Integer], Expr], Expr]] = []
        self.lanes: list[Integer] = []
        self.probes: list[Expr] = []
        self.trying = False
        self.depth = 0
        self.quantified: dict[tuple[Expr, Expr], Quantified] = {}
        self.exceptions: dict[tuple[Expr, Expr], Symbol] = {}
        self.bringing: tuple[ForAll, ...] = ()  # the conditions of which instances bring the unknowns that come up
        self.origins: dict[Expr, tuple[ForAll, ...]] = {}
        self.witnessed = False
        self.open: set[Expr] = set()
        self.counted: dict[tuple[Expr, Expr], Applicable] = {}
        self.said_of_counts: set[Expr] = set()
        self.boundaries: list[Integer] = []
        # the single axes that a pattern names: in a graph they have the lengths that it says
        self.axes_found: set[Expr] = set()
        self.regrouped: dict[Applicable, Applicable] = {}
        self.over_axes: dict[Expr, dict[tuple[Expr, Expr], Callable[[Expr], Expr]]] = {}
        self.tables: dict[Expr, tuple[Integer, Integer]] = {}
        self.turned: set[tuple[Expr, Expr]] = set()
        self.reordered: dict[tuple[Expr, Expr], bool] = {}
        # folds of which it has been asked whether one has every n-th item
        self.dealt_out: set[tuple[Expr, Expr]] = set()
        self.widest: dict[tuple[Expr, Expr], Integer] = {}
        self.threads: list[Expr] = []
        self.registers: dict[str, list[Register]] = {}
        self.numbers = {0, 1}
        self.compared_tuples: set[tuple[Expr, Expr]] = set()
        self.laws: dict[Expr, str] = {}
        self.given: set[tuple[Any, ...]] = set()
        self.met = _Met([], [], {})
        self.unnamed = 0
        self.pieces: set[Expr] = set()
        self.known_inside: list[tuple[Integer, Integer]] = []
        self.zero = smt.Const(Symbol("fixed", "zero"), laws.ITERATION)

    @contextmanager
    def tried(self) -> Iterator[None]:
        """While it is on, what is read stands for no node of the rule: nothing is known of it, and nothing claimed."""
        was, self.trying = self.trying, True
        try:
            yield
        finally:
            self.trying = was

    @contextmanager
    def anywhere(self) -> Iterator[Integer]:
        """A place that stands for any: by what a sequence has there, it is told from others. Within what it has, for the items of
        sequences there, another place does.
        """
        self.depth += 1
        known, self.known_inside = self.known_inside, []
        try:
            with self.tried():
                yield integer(smt.Int(Symbol("fixed", "place", self.depth)))
        finally:
            self.depth, self.known_inside = self.depth - 1, known

    @contextmanager
    def inside(self, k: Integer, length: Integer) -> Iterator[None]:
        """While it is on, a place that stands for any is known to be one of so many."""
        self.known_inside.append((k, length))
        try:
            yield
        finally:
            self.known_inside.pop()

    @contextmanager
    def where(self, *conditions: Expr) -> Iterator[None]:
        """While it is on, what is read is reached only where these conditions hold."""
        before = len(self.guard)
        self.guard += conditions
        try:
            yield
        finally:
            del self.guard[before:]

    def surely_not_negative(self, n: Integer) -> bool:
        """True if 0 <= n follows directly from what is known of its factors."""
        known = set(self.premises)
        return all(c > 0 and all((f >= 0) in known or (f > 0) in known for f in m) for m, c in n.terms.items())

    def surely_below(self, k: Integer, end: Integer) -> bool:
        """True if k < end follows directly from what is known of places."""
        d = end - k
        apart = [d - 1, *(d - (length - place) for place, length in self.known_inside)]
        return any(a.known is not None and a.known >= 0 for a in apart)

    def surely_from(self, k: Integer, begin: Integer) -> bool:
        """True if begin <= k follows directly from what is known of places."""
        d = k - begin
        apart = [d, *(d - place for place, _ in self.known_inside)]
        return any(a.known is not None and a.known >= 0 for a in apart)

    @contextmanager
    def indices(self) -> Iterator[Indices]:
        """An index vector that stands for any: by the element there, a fold is told from others."""
        with self.anywhere():
            at = smt.Function(Symbol("fixed", "indices", self.depth), INT, INT)
            yield lambda k: integer(at(k.term))

    def symbol(self, what: str) -> Symbol:
        """The name of an unknown that nothing else has."""
        self.unnamed += 1
        return Symbol("fresh", what, self.unnamed)

    def unknown(self, what: str) -> Integer:
        made = smt.Int(self.symbol(what))
        if self.trying:
            self.open.add(made)
        return integer(made)

    def probe(self, what: str) -> Integer:
        """An unknown at which something is claimed of all."""
        made = self.unknown(what)
        self.probes.append(made.term)
        return made

    def witness(self, what: str) -> Integer:
        """An unknown of which something is said for a place at which a condition on all places is used."""
        self.witnessed = True
        made = self.unknown(what)
        self.origins[made.term] = self.bringing
        return made

    def origin(self, t: Expr) -> tuple[ForAll, ...]:
        """The conditions whose instances brought the unknowns of a term: the longest row of them."""
        return max((self.origins.get(a, ()) for a in subterms([t]) if a.head == "const"), default=(), key=len)

    def premise(self, condition: Expr) -> None:
        if not self.trying:
            self.premises.append(condition)

    def premise_here(self, condition: Expr) -> None:
        """A premise where the part that is being read is reached."""
        self.premise(smt.Implies(smt.And(*self.guard), condition) if self.guard else condition)

    def claim(self, condition: Expr) -> None:
        """A condition that must be shown, where the part that is being read is reached."""
        if not self.trying:
            where = [*self.supposed, *self.guard]
            self.claims.append(smt.Implies(smt.And(*where), condition) if where else condition)

    def law(self, law: Callable[..., Expr], *terms: Any, where: Expr | None = None) -> None:
        """Add the instance of a law at terms, there alone where a condition holds."""
        given = (law, _told(where), *map(_told, terms))
        if given in self.given:
            self._limit()
            return
        found = law(*terms)
        self.instance(law.__doc__ or "", found if where is None else smt.Implies(where, found))
        if not self.trying:
            self.given.add(given)

    def instance(self, said: str, instance: Expr) -> None:
        """Add an instance of the law that these words say."""
        self._limit()
        if not self.trying:
            self.laws.setdefault(instance, said)

    def _limit(self) -> None:
        if len(self.laws) > MOST_INSTANCES and not self.trying:
            raise TooMany("more instances of laws than a question may have")

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
        self.digits(r, n, DEEPEST)
        if r.terms.get((), 0) < 0:  # n - 1 divided by n is -1 + n
            self.law(laws.quotient_of_sum, integer(-1), n, r + n)
            self.law(laws.small, r + n, n)
        self.law(laws.small, r, n)
        self.law(laws.division, r, n)
        self._of_a_remainder(r, n)
        self._of_a_quotient(r, n)
        return q + integer(laws.QUOTIENT(r.term, n.term)), integer(laws.REMAINDER(r.term, n.term))

    def _of_a_quotient(self, q: Integer, m: Integer) -> None:
        """The division of a quotient by another number: one by their product; or of a number by such a quotient."""
        atom = q.product
        if atom is not None and len(atom) == 1 and atom[0].head == "apply" and atom[0].data is laws.QUOTIENT:
            t, n = (self.polynomial(a) for a in atom[0].args)
            self.law(laws.division_in_steps, t, m, n)
        by = m.product
        if by is not None and len(by) == 1 and by[0].head == "apply" and by[0].data is laws.QUOTIENT:
            self.law(laws.quotient_below, q, self.polynomial(by[0].args[1]), m)

    def _of_a_remainder(self, r: Integer, n: Integer) -> None:
        """The division of a remainder that may be the number itself: as that number is divided, of which the parts are known."""
        atom = r.product
        if atom is None or len(atom) != 1 or atom[0].head != "apply" or atom[0].data is not laws.REMAINDER:
            return
        whole, divisor = (self.polynomial(a) for a in atom[0].args)
        m, others = divisor.divided_by(n)
        if m.terms and not others.terms:
            self.law(laws.quotient_below, r, m, n)
        q, rest = whole.divided_by(n)
        if q.terms:
            self.law(laws.quotient_of_sum, q, n, rest)
            self.law(laws.small, rest, n)

    def below(self, t: Integer, n: Integer) -> Expr:
        """The condition 0 <= t < n; how a number of several digits is below a product is shown by its digits."""
        self.digits(t, n, DEEPEST)
        return within(t, 0, n)

    def digits(self, t: Integer, n: Integer, depth: int) -> None:
        factors = n.product
        if factors is None or len(factors) < 2 or not depth:
            return
        for f in dict.fromkeys(factors):
            q, r = t.split((f,))
            (m, _) = n.split((f,))
            if r.terms.get((), 0) < 0:  # q * f - 1 is (q - 1) * f + (f - 1)
                q, r = q - 1, r + integer(f)
            self.law(laws.parts_below, q, m, r, integer(f))
            self.digits(q, m, depth - 1)

    def polynomial(self, t: Expr) -> Integer:
        """The polynomial that a term was made of."""
        if t.head == "+":
            total = integer(0)
            for a in t.args:
                total = total + self.polynomial(a)
            return total
        if t.head == "*":
            return self.polynomial(t.args[0]) * self.polynomial(t.args[1])
        if t.head == "apply" and t.data is TIMES:
            return self.polynomial(t.args[0]) * self.polynomial(t.args[1])
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
            self.law(laws.joined_width, parts, found)
            self.law(laws.joined_distinct, parts, found)
            for p in parts:
                self.premise(laws.AMONG(p, found))
        return found

    def widest_lists(self) -> list[Expr]:
        """The lists of axes that are not said to be among others."""
        lists = dict.fromkeys(t for t in self.terms() if t.sort is laws.AXES)
        among = (t.args for t in subterms(self.premises) if t.head == "apply" and t.data is laws.AMONG)
        parts = {a for a, b in among if a is not b}
        return [a for a in lists if a not in parts]

    def number_of_axes(self, parts: tuple[Expr, ...]) -> Integer:
        total = integer(0)
        for p in parts:
            self.instance("A sequence has no negative length.", laws.LENGTH(p) >= 0)
            total = total + integer(laws.LENGTH(p))
        return total

    def tuple_of(self, length: Integer, at: Callable[[Integer], Expr]) -> Expr:
        """A sequence of values as one: the same one for the same items."""
        with self.anywhere() as place, self.inside(place, length):
            key = (length.term, at(place))
        found = self.tuples.get(key)
        if found is not None:
            self.contexts[found].add(self.within)
            return found
        made = laws.ONLY(at(integer(0))) if length.known == 1 else smt.Const(self.symbol("tuple"), laws.VALUE)
        self.tuples[key] = made
        self.sequences[made] = (length, at)
        self.contexts[made] = {self.within}
        return made

    def parts_of(
        self, length: Integer, count: Callable[[Integer], Integer], matched: bool
    ) -> tuple[Integer, Callable[[Integer], Integer], Callable[[Integer], Integer]]:
        """The parts of vectors behind one another, of so many lanes each: the number of all lanes; for a lane the vector that it
        is of, and the lane that this one begins with. The same for vectors of the same lanes.
        """
        found = self.parts_behind_one_another(length, count)
        if matched:
            self.premise(found.total.term >= length.term)  # no vector has no lanes

        def of(lane: Integer) -> Integer:
            k, begin = integer(found.part(lane.term)), integer(found.start(lane.term))
            self.law(laws.inside_its_part, lane, length, found.total, k, begin, count(k))
            return k

        return found.total, of, lambda lane: integer(found.start(lane.term))

    def parts_behind_one_another(self, length: Integer, count: Callable[[Integer], Integer]) -> Joined:
        with self.anywhere() as place:
            one = count(place)
            key, alike, differences = (length.term, one.term), self._alike(place, one), _differences(self, place, one)
        if key not in self.parts:
            total = self.unknown("lanes of all")
            part, start, first = (smt.Function(self.symbol(what), INT, INT) for what in ("part", "start", "first"))
            self.parts[key] = Joined(length, count, total, part, start, first, alike, differences)
            self.premises += [smt.Implies(length.term == 0, total.term == 0), total.term >= 0]
        return self.parts[key]

    def begin_of(self, k: Integer, length: Integer, count: Callable[[Integer], Integer]) -> Integer:
        """The places where vector k begins behind the others, and where behind the last one there would be another."""
        found = self.parts_behind_one_another(length, count)
        self.law(laws.ends_of_all, length, found.total, found.begin(integer(0)), found.begin(length))
        self.law(laws.next_begins, k - 1, length, count(k - 1), found.begin(k - 1), found.begin(k))
        return found.begin(k)

    def items_at_most(self, n: Integer, length: Integer, item: Callable[[Integer], Integer]) -> Integer:
        """The number of items of a sequence of numbers that are at most n."""
        with self.anywhere() as place:
            key = (length.term, item(place).term)
        f = self.counted.setdefault(key, smt.Function(self.symbol("items at most"), INT, INT))
        count = integer(f(n.term))
        if not self.trying and count.term not in self.said_of_counts:
            self.said_of_counts.add(count.term)
            other = self.unknown("less than the one before")
            self.law(laws.number_of_items, count, length)
            around, less = (item(count - 1), item(count)), (item(other), item(other + 1))
            self.law(laws.items_at_most, n, count, length, around, other, less)
        return count

    def _alike(self, place: Integer, count: Integer) -> Integer | None:
        """The possible value of a number, which a vector's place is in, wherever it does not depend on that: a branch of it."""
        if occurs(place, count):
            for choice in {f: None for m in count.terms for f in m if f.head == "ite"}:
                for branch in choice.args[1:]:
                    found = count.where(choice, self.polynomial(branch))
                    if not occurs(place, found):
                        return found
        return None

    # what holds of all

    def free_of(self, x: Vector, axes: Expr, so: Expr) -> None:
        """The assumption that, where `so` holds, x is the same wherever these axes are moved to, and opens none of them."""
        for a in x.axes:
            self.premise(smt.Implies(so, smt.And(laws.APART(a, axes), laws.APART(axes, a))))
        inside = x if x.inside is None else x.inside
        e, lane = smt.Const(self.symbol("iteration"), laws.ITERATION), smt.Int(self.symbol("lane"))
        t = inside.at(e, integer(lane))
        if t.head != "apply" or t.args[-2:] != (e, lane):
            raise Unsupported("free_of_axes of what is no name")
        self.free.append((t.data, axes, so))

    def for_all(
        self,
        length: Integer,
        holds: Callable[[Integer], Expr],
        only_if: Expr,
        asked: Callable[[Integer], Expr] | None = None,
        at_items: AtItems | None = None,
        unless: Applicable | None = None,
        deepest: int | None = None,
    ) -> None:
        """A premise at every place below a length, where `only_if` holds. It is used where its functions, or those that are said
        to be asked, occur with the same other operands.
        """
        place = smt.Int(self.symbol("place"))
        self.open.add(place)
        self.witnessed = False
        with self.tried():
            tried = holds(integer(place))
            tried = tried if asked is None else asked(integer(place))
        functions = {
            (t.data, k, tuple(None if self._is_open(o) else o for o in t.args))
            for t in subterms([tried])
            if t.head == "apply"
            for k, a in enumerate(t.args)
            if a is place
        }
        mirrored = () if functions else tuple(self._mirrored(tried, place))
        self.schemas.append(
            ForAll(length, holds, frozenset(functions), mirrored, only_if, self.witnessed, at_items, unless, deepest)
        )

    def _mirrored(self, tried: Expr, place: Expr) -> Iterator[tuple[Applicable, int, Integer]]:
        """The functions that a condition asks at something less its place."""
        for t in subterms([tried]):
            for k, a in enumerate(t.args) if t.head == "apply" else ():
                if a.sort is INT and not occurs(integer(place), whole := self.polynomial(a) + integer(place)):
                    yield t.data, k, whole

    def for_all_items(self, holds: Callable[[Integer, Integer], Expr], only_if: Expr) -> None:
        """A premise on every item of sequences of sequences, by its two places, where `only_if` holds."""
        outer, inner = (smt.Int(self.symbol("place")) for _ in range(2))
        self.open |= {outer, inner}
        with self.tried():
            tried = holds(integer(outer), integer(inner))
        found = {t.data for t in subterms([tried]) if t.head == "apply" and t.data in self.nested_items}
        self.of_items.append((found, holds, only_if))

    def _is_open(self, t: Expr) -> bool:
        """True if a term stands for no node of the rule, such as one read while a condition is tried."""
        return any(a.head == "const" and a in self.open for a in subterms([t]))

    # indices

    def number_of(self, t: Expr) -> Integer:
        """The integer that a value of dtype index is."""
        if t.head == "apply" and t.data is laws.NUMBER:
            return self.polynomial(t.args[0])
        if t.head == "apply" and t.data is laws.SUM:
            return self.number_of(t.args[0]) + self.number_of(t.args[1])
        if t.head == "ite":
            condition, yes, no = t.args
            return integer(smt.If(condition, self.number_of(yes).term, self.number_of(no).term))
        return integer(laws.INDEX_OF(t))

    # instances

    def terms(self) -> list[Expr]:
        """The terms that premises, claims and laws speak of, in the order in which they are met."""
        if not self.met.continues(self.premises, self.claims, self.laws):
            self.met = _Met(self.premises, self.claims, self.laws)
        return self.met.terms()

    def only(self, claim: Expr) -> None:
        """Forget the other claims, and what is known of unknowns that only they speak of."""
        mine = set(subterms([claim]))
        others = {p for p in self.probes if p not in mine}
        self.claims = [claim]
        self.premises = [c for c in self.premises if others.isdisjoint(subterms([c]))]
        self.laws = {c: said for c, said in self.laws.items() if others.isdisjoint(subterms([c]))}
        self.given.clear()
        self.schemas = [s for s in self.schemas if s.at_items is None or s.only_if is smt.TRUE or s.only_if in mine]
        self.lanes = [lane for lane in self.lanes if lane.known is not None or lane.term in mine]

    def compared(self, a: Integer, b: Integer) -> None:
        """The sign of a difference: that of its other factor, where it is a product with a positive number."""
        difference = a - b
        monomials = list(difference.terms)
        for f in dict.fromkeys(monomials[0]) if monomials else ():
            rest, others = difference.split((f,))
            if not others.terms:
                self.law(laws.sign_of_product, integer(f), rest)


class _Met:
    """The terms of premises and claims, and of laws, which only grow: what was gone through is not gone through again."""

    def __init__(self, premises: list[Expr], claims: list[Expr], laws: dict[Expr, str]) -> None:
        self.premises, self.claims, self.laws = premises, claims, laws
        self.counts = len(premises), len(claims)
        self.seen: set[int] = set()
        self.found = list(subterms([*premises, *claims], self.seen))
        self.done = 0  # of the laws

    def continues(self, premises: list[Expr], claims: list[Expr], laws: dict[Expr, str]) -> bool:
        """True if only laws are new."""
        same = self.premises is premises and self.claims is claims and self.laws is laws
        return same and self.counts == (len(premises), len(claims))

    def terms(self) -> list[Expr]:
        self.found += subterms(list(itertools.islice(self.laws, self.done, None)), self.seen)
        self.done = len(self.laws)
        return list(self.found)


def _told(at: Any) -> Any:
    """The identity of an operand of a law: within one question a term is told by its number."""
    if isinstance(at, Integer):
        return tuple([(tuple([f.number for f in factors]), c) for factors, c in at.terms.items()])
    return (at.number,) if isinstance(at, Expr) else at


def same_everywhere(s: Setting, one: Integer, at: Callable[[Integer], Integer]) -> bool:
    """True if a number that was read of one item of a sequence is that of any: it is read at another place, too, and is the same
    term. That a term names no place says nothing: what is not known of an item is an unknown of its own wherever it is asked.
    """
    with s.anywhere() as place:
        return at(place).same(one)


def occurs(unknown: Integer, where: Integer) -> bool:
    """True if a term of one number occurs in the other."""
    terms = {id(f) for m in unknown.terms for f in m}
    return any(id(t) in terms for t in subterms([f for m in where.terms for f in m]))


def _differences(s: Setting, place: Integer, count: Integer) -> Callable[[Integer], Integer] | None:
    """The function c of a place, where a number there is c(place + 1) - c(place)."""
    terms = {c: m[0] for m, c in count.terms.items() if len(m) == 1}
    if len(count.terms) != 2 or terms.keys() != {1, -1}:
        return None
    following, here = terms[1], terms[-1]
    f = here.data
    if here.head != "apply" or following.head != "apply" or following.data is not f or here.args != (place.term,):
        return None
    return (lambda k: integer(f(k.term))) if s.polynomial(following.args[0]).same(place + 1) else None
