"""Rules about what a GPU runs in parallel: both sides at every iteration that is launched (`unrolled`).

A range that is launched is an axis of the kernel: its statements are done once for every iteration of those, in no order, and
what they do together is a set. So a statement that is done several times with the same outcome is done once; where one place is
shared by several iterations they store one value, as stores in no order have no meaning otherwise. What is launched is known
before anything is done: nothing waits for it. A hardware index that `counts` through a range is at every iteration a number of
which that range's is one digit; its other digits are those of other ranges, in any order. A range may have a single iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.extent import Extent
from morok.prove.encoding import unrolled as U
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.sizes import Sizes, Tried
from morok.prove.encoding.unrolled import IllFormed, Statement, Term, Vector
from morok.prove.encoding.unrolling import Reading, UnrollingEncoder, closed_by
from morok.prove.kinds import ANY_FOLD
from morok.prove.semantics.term import Unsupported
from morok.prove.symbol import Symbol

SINGLE: Final = U.AXES[0][0] - 1  # the axis that a launched range of one iteration is
_TRIED: Final = Extent("launched", "", 0, len(U.AXES), U.AXES)
LOOPS: Final = Tried((*U.AXES, (SINGLE, 1), None), _TRIED)  # None: a range that is not launched
OTHERS: Final = Tried((*U.AXES, None), _TRIED)
FORMS: Final = Tried(U.FORMS, _TRIED)
TRUE, FALSE = U.TERMS.always("true"), U.TERMS.always("false")
NOWHERE: Final = U.TERMS.always("nowhere")  # a place behind a gate that is closed
MAKES: Final = ("counts", "renames", "told_apart")  # of helpers' contracts: what says what a result is
COMPUTED: Final = frozenset({"Add", "Sub", "Mul", "Idiv", "Mod", "Eq", "Ne", "Lt", "Le", "Gt", "Ge"})


class Inside(tuple[int, ...]):
    """An iteration of the axes, and one of a range that a helper made."""

    r: Vector
    k: int

    @classmethod
    def of(cls, where: U.Iteration, r: Vector, k: int) -> Inside:
        made = cls(where)
        made.r, made.k = r, k
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inside) and tuple(self) == tuple(other) and self.r is other.r and self.k == other.k

    def __hash__(self) -> int:
        return hash((tuple(self), id(self.r), self.k))


class LaunchEncoder(UnrollingEncoder):
    """A whole rule about launches, all choices of what is launched in one question."""

    def reading(self, sizes: Sizes, memo: Any) -> Reading:
        return _Launch(self.rule, sizes, memo)


class _Launch(Reading):
    """One choice of what is launched.

    axis     of each vector that is a launched range its axis; None of one that has a single iteration
    within   of each place the operands that it is made of, and of a place that is stored to the value as well
    renamed  of a range that another stands for that one
    without  (node, range): what does not depend on such a range
    own      of storage that nothing else knows the axes along which its places differ: each iteration of the others has its own
    behind   of storage what it is read behind
    fenced   statements behind which all threads have come
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.axis: dict[Vector, tuple[int, int] | None] = {}
        self.within: dict[Vector, list[Vector]] = {}
        self.renamed: dict[Vector, Vector] = {}
        self.without: set[tuple[Vector, Vector]] = set()
        self.told: frozenset[int] = frozenset()
        self.own: dict[Vector, frozenset[int]] = {}
        self.behind: dict[Vector, tuple[Vector, list[Any]]] = {}
        self.fenced: set[Statement] = set()
        self.calls = 0
        self.made_ranges = 0
        self.asked = {n.name for c in self.rule.syntax.clauses for n in _arguments_of(c, "launched")}

    # what is launched

    def loop(self, name: Symbol) -> Vector:
        """Any loop: a launched one over an axis or with a single iteration, or another."""
        axis = self.sizes.one("launched", "", LOOPS)
        if axis is None:
            return U.opaque(name, 1)
        if axis[0] == SINGLE:
            made = U.opaque(name, 1)
            made.compute = lambda where, lane: U.number(0)
            self.axis[made] = None
            return made
        made = U.unroll(U.constants(range(axis[1])), (axis,))
        self.axis[made] = axis
        return made

    def variable(self, name: Symbol, ty: Any, own: str = "", binder: bool = False) -> Any:
        if name.kind == "variable" and name.parts[0] in self.asked:
            return self.loop(name)
        if not binder:
            return super().variable(name, ty, own, binder)
        axis = self.sizes.one("launched", "", OTHERS)  # a range by itself
        return U.opaque(name, 1) if axis is None else U.unroll(U.constants(range(axis[1])), (axis,))

    def call_launched(self, r: Vector) -> bool:
        return r in self.axis

    def call_free_of(self, x: Vector, r: Vector) -> bool:
        """True if a name has one value at all iterations of a launched range, because the guard states it; so has what is stored
        at a place that they share.
        """
        if not self.learning:
            raise Unsupported("free_of where nothing may be learned of it")
        if r in self.own:
            return True
        if r in self.renamed:
            self.without.add((x, r))
            return True
        if r not in self.axis:
            raise Unsupported("free_of another loop")
        axis = self.axis[r]
        for at in (x, *self.within.get(x, ())):
            if at in self.axis:
                if at is r:
                    return False
            elif at.axes:
                if axis in at.axes:
                    return False
            elif at.free is None and at not in self.within:
                raise Unsupported("free_of of what is no name")
            elif at.free is not None and axis is not None:
                at.free.add(axis[0])
        return True

    def op_range(self, parts: dict[str, Any], at: Any) -> Vector:
        end = parts["end"]
        if len(parts) > 1:
            raise Unsupported("a field of a range")
        self.made_ranges += 1
        made = self.loop(Symbol("range", self.made_ranges))
        if isinstance(end, S.PConst) and end.name is not None:
            axis = self.axis.get(made, U.AXES[-1])
            self.bound(end.name, 1 if axis is None else axis[1])
        return made

    # clauses and helpers

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.If) or len(clause.names) == 1:
            super().clause(clause)
        else:
            self.names.update(zip(clause.names, self.value(clause.value), strict=True))

    def call_subst(self, x: Vector, t: Vector, q: Vector) -> Vector:
        """A node that knows nothing of the other range, at its iterations: what it was at the same of the first."""
        if self.renamed.get(q) is not t or (x, q) not in self.without:
            raise Unsupported("a substitution of this form")
        axis = self.axis[t]

        def lane(where: U.Iteration, k: int) -> Term:
            found = q.at(where, 0)
            if axis is None:
                return x.at(where, k)
            iteration = U.TERMS.integer(found)
            assert iteration is not None
            return x.at(U.moved((axis,), iteration, where), k)

        return Vector(x.count, lane)

    def helper(self, extern: S.Extern, arguments: tuple[Any, ...]) -> Any:
        """A possible result of a helper, as its contract states it; any loop where it states nothing of an index."""
        names = dict(zip((p.name for p in extern.params), arguments, strict=True))
        for fact, said in map(_said, extern.requires):
            if not self.promised(fact, [names[n] for n in said]):
                raise IllFormed(f"{extern.name} on what it does not take")
        promises = [_said(e) for e in extern.ensures]
        self.told = frozenset()
        for fact, said in promises:
            if fact in MAKES:
                getattr(self, f"made_{fact}")(names, said)
        self.calls += 1
        for p in extern.results:
            result = Symbol("result", extern.name, p.name, self.calls)
            if p.name not in names and isinstance(p.type, S.TPointer):
                names[p.name] = _storage(result)
                self.own[names[p.name]] = self.told
            elif p.name not in names and getattr(p.type, "name", "") == "index":
                names[p.name] = self.loop(result)
        if not all(p.name in names for p in extern.results):
            raise Unsupported(f"what {extern.name} returns")
        for fact, said in promises:
            if fact not in MAKES and not self.promised(fact, [names[n] for n in said]):
                raise Inapplicable  # not what it returns
        self.kept_apart(extern, names)
        made = tuple(names[p.name] for p in extern.results)
        return made if len(made) > 1 else made[0]

    def kept_apart(self, extern: S.Extern, names: dict[str, Any]) -> None:
        """Unsupported if a helper does not say of all that it is given and returns that new ranges and storage are new."""
        nodes = [v for v in names.values() if isinstance(v, Vector) and v not in self.axis and v not in self.own]
        freed = {tuple(said) for fact, said in map(_said, extern.ensures) if fact == "free_of"}
        given = [p.name for p in extern.params if names[p.name] not in self.axis]
        for b in (p.name for p in extern.results if names[p.name] in self.own):
            if any((n, b) not in freed for n in given):
                raise IllFormed("storage that something may know of")
        for q in (v for v in names.values() if v in self.renamed):
            if any((v, q) not in self.without for v in nodes if v is not q):
                raise IllFormed("a range that something may be in already")

    def made_counts(self, names: dict[str, Any], said: list[str]) -> None:
        h, r, *step = said
        if names[r] not in self.axis:
            raise Inapplicable  # the helper declines
        names[h], apart = self.index(names[r]) if step else (names[r], 1)
        names.update(dict.fromkeys(step, apart))

    def made_renames(self, names: dict[str, Any], said: list[str]) -> None:
        """Another range of as many iterations."""
        q, t = said
        if names[t] not in self.axis:
            raise Unsupported("another range in place of what is no range")

        def lane(where: U.Iteration, k: int) -> Term:
            if not isinstance(where, Inside) or where.r is not made:
                raise IllFormed("a new range outside of what closes it")
            return U.number(where.k)

        names[q] = made = Vector(1, lane)
        self.renamed[made] = names[t]

    def made_told_apart(self, names: dict[str, Any], said: list[str]) -> None:
        """A place for every iteration of a range, and of some of the axes; iterations of the others have storage of their own."""
        at, _, t = said
        if names[t] not in self.axis:
            raise Unsupported("places of what is no range")
        axis = self.axis[names[t]]
        others = [a for a in U.AXES if a != axis]
        told = [a for a in others if self.picks.pick(2)] + ([] if axis is None else [axis])
        self.told = frozenset(i for i, _ in told)
        places = [k for k, (i, _) in enumerate(U.AXES) if i in self.told]
        names[at] = Vector(1, lambda where, lane: U.term("place", [U.number(where[k]) for k in places]))

    def promised(self, fact: str, arguments: list[Any]) -> bool:
        if fact == "launched":
            return self.call_launched(*arguments)
        if fact != "free_of":
            raise Unsupported(f"{fact} in a promise")
        self.learning = True
        try:
            return self.call_free_of(*arguments)
        finally:
            self.learning = False

    def index(self, r: Vector) -> tuple[Vector, int]:
        """A hardware index that counts through a range and others, the last one fastest, and how far r's iterations lie apart."""
        axis = self.axis[r]
        forms = [f for f in self.sizes.all("launched", "", FORMS) if axis is None or axis in f]
        form = forms[self.picks.pick(len(forms))]
        place = self.picks.pick(len(form) + 1) if axis is None else form.index(axis) + 1
        return Vector(1, lambda where, lane: U.number(U.linear(form, where))), U.width(form[place:])

    # ops

    def one(self, part: Any) -> Any:
        return self.as_node(super().one(part))

    def as_node(self, found: Any) -> Any:
        return U.splat(U.number(found)) if isinstance(found, int) and not isinstance(found, bool) else found

    def made(self, op: str, parts: dict[str, Any], at: Any) -> Any:
        made = super().made(op, parts, at)
        if not self.ops[op].params:
            return made
        x: Vector = made
        return Vector(x.count, lambda where, lane: self.folded(x.at(where, lane)), x.any_width)

    def folded(self, t: Term) -> Term:
        """A term of numbers is a number, and a conjunction with a known truth value is decided or the other side."""
        op, (_, arguments) = U.TERMS.op(t), U.TERMS.entries[t]
        if op == "And" and not {TRUE, FALSE}.isdisjoint(arguments):
            return FALSE if FALSE in arguments else next((a for a in arguments if a != TRUE), TRUE)
        values = [v for a in arguments if (v := U.TERMS.integer(a)) is not None]
        if op not in COMPUTED or len(values) != len(arguments):
            return t
        from morok.ir.dtype import dtypes  # not above: other dialects' rules are asked whether they are about launches too
        from morok.ir.op import Undefined

        evaluate = self.ops[op].evaluate
        assert evaluate is not None
        try:
            found = evaluate(dtypes.index, *values)
        except Undefined:
            return t
        return (TRUE if found else FALSE) if isinstance(found, bool) else U.number(found)

    def op_index(self, parts: dict[str, Any], at: Any) -> Vector:
        """A place; nowhere behind a closed gate, and ungated behind an open one."""
        buffer = self.one(parts["buffer"])
        buffer, waits = self.behind.get(buffer, (buffer, None))
        indices = [self.as_node(i) for i in self.many(parts["indices"])]
        gate = self.optional(parts.get("gate"))
        if not indices:
            raise IllFormed("no indices")
        place = U.lanewise(Symbol("op", "Index"), [buffer, *indices], scalars=range(1 + len(indices)))
        if waits is not None:
            if gate is not None:
                raise Unsupported("a gate of storage that is read")
            return Vector(place.count, lambda where, k: self.read(place.at(where, k), waits, self.own[buffer], where))
        if gate is None:
            self.within[place] = [buffer, *indices]
            return place

        def lane(where: U.Iteration, k: int) -> Term:
            open_ = gate.at(where, k if gate.count > 1 else 0)
            there = place.at(where, k)
            return there if open_ == TRUE else NOWHERE if open_ == FALSE else U.term("Index gated", [there, open_])

        gated = Vector(place.count, lane)
        self.within[gated] = [buffer, *indices, gate]
        return gated

    def read(self, place: Term, waits: list[Any], told: frozenset[int], where: U.Iteration) -> Term:
        """The value at a place of own storage: the one that threads of this block have stored there before a barrier."""
        if not all(w in self.fenced for w in waits):
            raise IllFormed("what other threads store, before they all have come")
        found: set[Term] = set()
        for there in U.everywhere(tuple(told), where):
            for e in (e for w in waits for e in w.effects(there)):
                stored, value = U.TERMS.entries[e][1]
                if stored == place:
                    found.add(value)
        if len(found) != 1:
            raise IllFormed("a place that holds nothing, or several values")
        return found.pop()

    def op_barrier(self, parts: dict[str, Any], at: Any) -> Statement:
        s = self.one(parts["src"])
        if not isinstance(s, Statement) or self.many(parts.get("deps")):
            raise Unsupported("a barrier of this form")
        made = Statement(s.effects)
        self.fenced.add(made)
        return made

    def op_reduce(self, parts: dict[str, Any], at: Any) -> Vector:
        """A fold, in no specified order: what a rule makes may fold parts by themselves. What it matched is folded as a whole."""
        x: Vector = self.one(parts["src"])
        ranges = self.many(parts.get("ranges"), binder=True)
        name = self.folding(parts.get("op", ANY_FOLD))
        pattern = isinstance(at, S.Pattern)
        count = self.lane_count(self.rule.type_of(at)) if pattern else self.wanted if at is self.rule.syntax.target else x.count
        if x.count % count:
            raise Inapplicable if pattern else IllFormed(f"{x.count} lanes folded to {count}")
        each, closed = x.count // count, closed_by(ranges)
        loops = [r for r in ranges if not r.axes and r not in self.axis and r not in self.renamed]
        if each == 1 and not closed and not loops and self.renamed.keys().isdisjoint(ranges):
            return x

        def lane(where: U.Iteration, k: int) -> Term:
            bag: list[Term] = []
            for there in self.within_new(ranges, U.everywhere(closed, where)):
                over = [r.at(there, 0) for r in loops]
                for i in range(each):
                    bag += _terms_of(x.at(there, k * each + i), name, over, whole=pattern)
            return bag[0] if len(bag) == 1 and not loops else U.constant(name, sorted(bag))

        return Vector(count, lane)

    def within_new(self, ranges: tuple[Vector, ...], iterations: list[U.Iteration]) -> list[U.Iteration]:
        """These iterations, and each of the new ranges among those that are closed."""
        for q in ranges:
            if q in self.renamed:
                if any(isinstance(where, Inside) for where in iterations):
                    raise Unsupported("a new range inside another")
                axis = self.axis[self.renamed[q]]
                iterations = [Inside.of(where, q, k) for where in iterations for k in range(1 if axis is None else axis[1])]
        return iterations

    def op_store(self, parts: dict[str, Any], at: Any) -> Statement:
        place, value = self.one(parts["index"]), self.one(parts["value"])
        if isinstance(at, S.Pattern):
            self.within.setdefault(place, []).append(value)
        if place.count != value.count:
            raise Inapplicable if isinstance(at, S.Pattern) else IllFormed("a store of other lanes than its places")

        def effects(where: U.Iteration) -> list[Term]:
            pairs = [(place.at(where, k), value.at(where, k)) for k in range(place.count)]
            return [U.term("Store", [p, v]) for p, v in pairs if p != NOWHERE]

        return self.over(effects, self.many(parts.get("ranges"), binder=True))

    def over(self, effects: Any, ranges: tuple[Vector, ...]) -> Statement:
        return U.closing(effects, closed_by(ranges), [r for r in ranges if not r.axes and r not in self.axis])

    def op_after(self, parts: dict[str, Any], at: Any) -> Vector:
        x = self.one(parts["passthrough"])
        waits = [d for d in self.many(parts.get("deps")) if d not in self.axis]
        if not isinstance(x, Vector):
            raise Unsupported("a statement after others")
        if x in self.own:
            made = Vector(x.count, x.at)
            self.behind[made] = (x, waits)
            return made
        return Vector(x.count, lambda where, k: U.term("After", [x.at(where, k), *(_token(d, where) for d in waits)]))


def _terms_of(t: Term, name: Symbol, over: list[Term], whole: bool) -> list[Term]:
    """The items that a term brings to a fold inside some loops: itself, or where it may be taken apart what a fold is made of."""
    op, parts = U.TERMS.entries[t]
    found: list[Term] = []
    for p in parts if op == name and not whole else (t,):
        _, arguments = U.TERMS.entries[p]
        x, *loops = arguments if U.TERMS.op(p) == "iteration" else (p,)
        found.append(U.term("iteration", [x, *sorted([*loops, *over])]) if loops or over else x)
    return found


def _said(e: S.Expr) -> tuple[str, list[str]]:
    """A fact that is promised, and the names that it is about."""
    if not isinstance(e, S.ECall) or not all(isinstance(a, S.EName) for a in e.args):
        raise Unsupported("a promise of this form")
    return e.name, [a.name for a in e.args if isinstance(a, S.EName)]


def _storage(name: Symbol) -> Vector:
    """Storage: the same in every iteration, and which memory it names there is another question."""
    return Vector(1, lambda where, lane: U.constant(name))


def _token(d: Vector | Statement, where: U.Iteration) -> Term:
    return d.at(where, 0) if isinstance(d, Vector) else U.term("done", d.effects(where))


def _arguments_of(e: Any, name: str) -> Iterator[S.EName]:
    """The names that a function is called with, anywhere in a clause."""
    todo = [e]
    while todo:
        at = todo.pop()
        if isinstance(at, S.ECall) and at.name == name:
            yield from (a for a in at.args if isinstance(a, S.EName))
        todo += S.children(at)
