"""Rules about which lanes are read, written and computed: both sides lane by lane, as terms, for every choice of lanes.

Values are terms of which nothing is known (`unrolled`), so that one proof holds at every dtype; `base + number` alone is known of
indices. A place is a buffer, an index and a gate; loading several lanes from one place on, or storing them, is doing so at the
places behind one another. A store of many lanes writes them in the order of the lanes. Members of a Group have no order, so that
no place may be one of two of them, unless one waits for the other: what is stored behind statements (After) comes after them. Two
statements are one if they leave the same behind: of what goes to one place through one gate the last stays, and only stores to
places that differ by numbers commute.

Helpers are read by their contracts: every result is tried that these admit, up to a stated bound. Where a contract says what the
lanes of an argument are, the argument is that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.concrete import Concrete, compiled
from morok.dsl.extent import Extent
from morok.dsl.values import FAILURES, OutOfBudget, Steps
from morok.prove.encoding import unrolled as U
from morok.prove.encoding.obligation import Inapplicable, OutOfSteps
from morok.prove.encoding.operands import called
from morok.prove.encoding.sizes import Sizes, Tried, numbers
from morok.prove.encoding.unrolled import ANYWHERE, IllFormed, Statement, Term, Vector
from morok.prove.encoding.unrolling import Difference, Reading, UnrollingEncoder, same_lanes
from morok.prove.rule_syntax import names_in
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import FALSE
from morok.prove.symbol import Symbol

SOME: Final = numbers(1, 2, 3)  # lanes that a Gep names
LANES: Final = numbers(1, 2, 3)
MANY: Final = numbers(0, 1, 2, 3)  # operands of a sequence
PARTS: Final = numbers(1, 2)  # lanes of each of these
NUMBERS: Final = numbers(0, 1, 2, 3)  # what a helper may return for an integer
MOST: Final = 3  # numbers in a sequence that a helper returns, each below this
FLAT: Final = tuple(s for k in range(MOST + 1) for s in itertools.product(range(MOST), repeat=k))
NESTED: Final = tuple(
    tuple(flat[a:b] for a, b in itertools.pairwise((0, *cuts, len(flat))))
    for flat in FLAT[1:]
    for k in range(len(flat))
    for cuts in itertools.combinations(range(1, len(flat)), k)
)


LISTS: Final = Tried(FLAT + NESTED, Extent("numbers", "", 0, MOST, ((0, MOST - 1),)))


class AccessEncoder(UnrollingEncoder):
    """A whole rule about lanes, all choices of them in one question."""

    def reading(self, sizes: Sizes, memo: Any) -> Reading:
        return _Accesses(self.rule, sizes, memo)


class _Accesses(Reading):
    """One choice of lanes, and of what helpers return.

    waiting  buffers and places behind stores, and these: there must be a store for each
    gated    places behind gates
    """

    counts = LANES
    most = MANY

    def __init__(self, rule: CheckedRule, sizes: Sizes, memo: Any) -> None:
        super().__init__(rule, sizes, memo)
        self.waiting: dict[int, tuple[Vector, list[Step]]] = {}
        self.gated: list[Vector] = []
        self.helped = 0

    def compared(self, pattern: Any, target: Any) -> list[Difference]:
        if self.waiting:
            raise Unsupported("order that no store keeps")
        if isinstance(pattern, Vector) and isinstance(target, Vector):
            return same_lanes(pattern, target, (ANYWHERE,))
        if not isinstance(pattern, Statement) or not isinstance(target, Statement):
            raise Unsupported("a statement for a value")
        try:
            before = pattern.effects(ANYWHERE)
        except IllFormed:
            raise Inapplicable from None
        return same_memory(before, target.effects(ANYWHERE))

    def lane_count(self, ty: Ty, own: str = "") -> int:
        if own and isinstance(ty.lanes, str) and ty.lanes + own not in self.lanes:
            self.lanes[ty.lanes + own] = self.sizes.one("lanes", ty.lanes + own, PARTS)
        return super().lane_count(ty, own)

    # clauses and helpers

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.If) or len(clause.names) == 1:
            super().clause(clause)
            return
        self.names |= dict(zip(clause.names, self.value(clause.value), strict=True))

    def helper(self, extern: S.Extern, arguments: tuple[Any, ...]) -> Any:
        """A possible result of a helper: a node about which its contract alone says something."""
        given = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
        # a rule has one helper of a name; of a vector a contract knows the lanes, which is another thing than a sequence
        key = (extern.name, tuple([("lanes", v.count) if isinstance(v, Vector) else v for v in arguments]))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = list(results(extern, given, self.sizes))
        if not found and extern.partial:
            raise Inapplicable  # it declines
        if not found:
            raise Unsupported(f"{extern.name}: nothing in the scope of the proof is as its contract says")
        self.helped += 1
        chosen = found[self.picks.pick(len(found))]
        made = tuple(
            U.opaque(Symbol("result", extern.name, p.name, self.helped), 1) if v is None else v
            for p, v in zip(extern.results, chosen, strict=True)
        )
        names = given | {p.name: v for p, v in zip(extern.results, made, strict=True)}
        for e in extern.ensures:
            self.learn(e, names)
        return made if len(made) > 1 else made[0]

    def learn(self, e: S.Expr, names: dict[str, Any]) -> None:
        """Where a contract says of every lane of an argument what it is, it is that."""
        found = definition(e, names)
        if found is None:
            return
        x, k, value, over = found
        if x.free is None or x.known:
            raise Unsupported("a contract about what is no name")
        before = x.compute
        lanes = {i: told(value, names | {k: i}, x, before) for i in Concrete(names).value(over)}
        x.compute = lambda where, lane: lanes[lane] if lane in lanes else before(where, lane)

    # operands

    def one(self, part: Any) -> Any:
        return as_node(super().one(part))

    def made(self, op: str, parts: dict[str, Any], at: Any) -> Any:
        if op == "Add" and isinstance(at, S.ECall):
            x, y = [self.one(p) for p in parts.values()]
            if x.any_width != y.any_width:
                x, y = (y, x) if x.any_width else (x, y)
                return Vector(x.count, lambda where, lane: plus(x.at(where, lane), number_of(y.at(where, lane))))
        return super().made(op, parts, at)

    # ops

    op_ptrcat = Reading.op_cat

    def op_gep(self, parts: dict[str, Any], at: Any) -> Vector:
        x = self.one(parts["vector"])
        part = parts["indices"]
        if isinstance(part, S.PVar) and part.name not in self.names:
            count = self.sizes.one("length", called(part.name), SOME)
            chosen = tuple(self.picks.pick(x.count) for _ in range(count))
            if part.ignored:
                return U.gep(x, chosen)
            self.names[part.name] = chosen
        if isinstance(at, S.Pattern) and isinstance(part, S.EList):
            for item in part.items:
                if isinstance(item, S.EName) and item.name not in self.names:
                    if item.name.startswith("_"):
                        raise Unsupported("lanes without names")
                    self.names[item.name] = self.picks.pick(x.count)
        wanted = self.names[part.name] if isinstance(part, S.PVar) else self.value(part)
        if x.any_width:
            return Vector(len(wanted), x.compute)
        return U.gep(x, wanted)

    def op_index(self, parts: dict[str, Any], at: Any) -> Vector:
        buffer = self.one(parts["buffer"])
        indices = self.many(parts["indices"])
        gate = self.optional(parts.get("gate"))
        if len(indices) != 1:
            raise Unsupported("several indices")
        operands = [buffer, *[as_node(i) for i in indices], *([] if gate is None else [gate])]
        place = U.lanewise(Symbol("op", f"Index{'' if gate is None else ' gated'}"), operands, scalars=range(len(operands)))
        if gate is not None:
            self.gated.append(place)
        behind = self.waiting.pop(id(buffer), None)
        if behind is not None:
            self.waiting[id(place)] = (place, behind[1])
        return place

    def op_after(self, parts: dict[str, Any], at: Any) -> Any:
        """A buffer behind statements is that buffer; a store there comes after them."""
        x = self.one(parts["passthrough"])
        deps = self.many(parts.get("deps"))
        if not isinstance(x, Vector) or x.free is None or not all(isinstance(d, Step) for d in deps):
            raise Unsupported("order among values")
        made = Vector(x.count, x.at)
        self.waiting[id(made)] = (made, list(deps))
        return made

    def op_load(self, parts: dict[str, Any], at: Any) -> Vector:
        place = self.one(parts["index"])
        if parts.get("alt") is not None and not isinstance(parts["alt"], (S.PNone, S.ENone)):
            raise Unsupported("a load with an alternative")
        if isinstance(at, S.Pattern):
            count = self.lane_count(self.rule.type_of(at))
            if place.count not in (1, count):
                raise Inapplicable
        else:
            count = self.lanes_said(parts["dtype"]) if "dtype" in parts else place.count
        if count < 1 or place.count not in (1, count):
            raise IllFormed(f"{count} lanes of {place.count} places")
        return Vector(count, lambda where, lane: U.term("Load", [lane_place(place, where, lane)]))

    def op_store(self, parts: dict[str, Any], at: Any) -> Statement:
        place, value = self.one(parts["index"]), self.one(parts["value"])
        if self.many(parts.get("ranges"), binder=True):
            raise Unsupported("a store that closes loops")
        before = self.waiting.pop(id(place), (None, []))[1]
        count = value.count if place.count == 1 and not value.any_width else place.count
        if not value.any_width and value.count not in (1, count):
            if isinstance(at, S.Pattern):
                raise Inapplicable
            raise IllFormed("a store of other lanes than its places")

        def own(where: U.Iteration) -> list[Term]:
            values = [value.at(where, k if value.count > 1 else 0) for k in range(count)]
            return [U.term("Store", [lane_place(place, where, k), v]) for k, v in enumerate(values)]

        return Step(own, before, any(place is p for p in self.gated))

    def op_group(self, parts: dict[str, Any], at: Any) -> Statement:
        members = self.many(parts.get("sources"))
        if not all(isinstance(m, Step) for m in members):
            raise Unsupported("a group of what is no store")
        return Step(lambda where: [], members)


class Step(Statement):
    """The effect of one statement behind others; each is done once, and nothing else orders them.

    surely  those of the others that are done whether or not gates are open
    """

    def __init__(self, own: Callable[[U.Iteration], list[Term]], before: Sequence[Step], gated: bool = False) -> None:
        super().__init__(self.all_effects)
        self.own = own
        self.surely: set[Step] = set() if gated else {s for b in before for s in (*b.surely, b)}
        self.behind: list[Step] = list(dict.fromkeys(s for b in before for s in (*b.behind, b)))

    def all_effects(self, where: U.Iteration) -> list[Term]:
        if not self.surely.issuperset(self.behind):
            raise Unsupported("statements that only a store behind a gate waits for")
        steps = [*self.behind, self]
        done = [s.own(where) for s in steps]
        for k, later in enumerate(steps):
            for some, earlier in zip(done[:k], steps, strict=False):
                if earlier not in later.behind and not all(apart(e, f) for e in some for f in done[k]):
                    raise IllFormed("statements in no order that may store to one place")
        return [e for effects in done for e in effects]


# Terms.


def as_node(found: Any) -> Any:
    """A number in operand position is a constant."""
    return U.splat(U.number(found)) if isinstance(found, int) and not isinstance(found, bool) else found


def plus(t: Term, k: int) -> Term:
    """An index and a number: numbers are added up."""
    _, arguments = U.TERMS.entries[t]
    if U.TERMS.op(t) == "plus":
        return plus(arguments[0], number_of(arguments[1]) + k)
    known = U.TERMS.integer(t)
    if known is not None:
        return U.number(known + k)
    return U.term("plus", [t, U.number(k)]) if k else t


def number_of(t: Term) -> int:
    known = U.TERMS.integer(t)
    if known is None:
        raise Unsupported("an index and what is no number")
    return known


def base_of(t: Term) -> tuple[Term | None, int]:
    """An index as something and a number."""
    _, arguments = U.TERMS.entries[t]
    if U.TERMS.op(t) == "plus":
        return arguments[0], number_of(arguments[1])
    known = U.TERMS.integer(t)
    return (t, 0) if known is None else (None, known)


def lane_place(place: Vector, where: U.Iteration, lane: int) -> Term:
    """The place of a lane: the one that it has, or so many behind the only one."""
    if place.count > 1:
        return place.at(where, lane)
    op, (_, arguments) = U.TERMS.op(place.at(where, 0)), U.TERMS.entries[place.at(where, 0)]
    if op not in ("Index", "Index gated"):
        if lane:
            raise Unsupported("places behind what is no Index")
        return place.at(where, 0)
    buffer, index, *gate = arguments
    return U.term(op, [buffer, plus(index, lane), *gate])


def stored_at(e: Term) -> Term:
    return U.TERMS.entries[e][1][0]


def apart(e: Term, f: Term) -> bool:
    """True if two stores go to places of one buffer that differ by a number."""
    if not all(U.TERMS.op(stored_at(s)).startswith("Index") for s in (e, f)):
        return False
    (_, (b, i, *_)), (_, (c, j, *_)) = U.TERMS.entries[stored_at(e)], U.TERMS.entries[stored_at(f)]
    (p, m), (q, n) = base_of(i), base_of(j)
    return b == c and p == q and m != n


def left_behind(effects: Sequence[Term]) -> list[Term]:
    """The stores that are not overwritten through the same gate at the same place."""
    last = {stored_at(e): k for k, e in enumerate(effects)}
    return [e for k, e in enumerate(effects) if last[stored_at(e)] == k]


def same_memory(pattern: Sequence[Term], target: Sequence[Term]) -> list[Difference]:
    """Nothing, if both leave the same in memory; else (a claim that is false, what one stores, what the other stores)."""
    left, right = left_behind(pattern), left_behind(target)
    there = {e: k for k, e in enumerate(right)}
    if set(left) == set(right):
        turned = [(e, f) for e, f in itertools.combinations(left, 2) if there[e] > there[f] and not apart(e, f)]
        if not turned:
            return []
        e, f = turned[0]
    else:
        e = next((e for e in left if e not in there), left[0] if left else right[0])
        f = next((f for f in right if f not in set(left)), right[0] if right else left[0])
    return [Difference(FALSE, U.TERMS.text(e), U.TERMS.text(f))]


# Contracts.


def definition(e: S.Expr, names: dict[str, Any]) -> tuple[Vector, str, S.Expr, S.Expr] | None:
    """`all(x[k] == value for k in sequence)`: the argument x, k, the value, the sequence; None for another promise."""
    if not isinstance(e, S.ECall) or e.name != "all" or len(e.args) != 1 or not isinstance(e.args[0], S.EComprehension):
        return None
    c = e.args[0]
    body = c.body
    if not isinstance(body, S.ECompare) or body.ops != ("==",) or len(c.names) != 1 or c.condition is not None:
        return None
    lane, value = body.operands
    if not isinstance(lane, S.EIndex) or not isinstance(lane.sequence, S.EName) or not isinstance(lane.index, S.EName):
        return None
    x = names.get(lane.sequence.name)
    if not isinstance(x, Vector) or lane.index.name != c.names[0]:
        return None
    return x, c.names[0], value, c.sequence


def told(e: S.Expr, names: dict[str, Any], x: Vector, before: Callable[[U.Iteration, int], Term]) -> Term:
    """The term that a contract says a lane of x is: a node and a number, or another lane, as it was `before`."""
    match e:
        case S.EBinary(op="+", left=S.EName(name=base), right=number) if isinstance(names.get(base), Vector):
            return plus(names[base].at(ANYWHERE, 0), Concrete(names).value(number))
        case S.EIndex(sequence=S.EName(name=other), index=at) if names.get(other) is x:
            return before(ANYWHERE, Concrete(names).value(at))
    raise Unsupported("a lane that a contract describes")


def results(extern: S.Extern, given: dict[str, Any], sizes: Sizes) -> Iterator[tuple[Any, ...]]:
    """Every result of a helper that its contract admits, None for nodes; a promise is asked once all that it names is known."""
    lengths = {k: _Lengths(v.count) if isinstance(v, Vector) else v for k, v in given.items()}
    if not all(holds(e, lengths) for e in extern.requires):
        raise IllFormed(f"{extern.name} on what it does not take")
    choices: list[tuple[Any, ...]] = []
    for p in extern.results:
        kind = p.type.name if isinstance(p.type, S.TName) else ""
        of = f"{extern.name}.{p.name}"
        tried: dict[str, tuple[str, Tried[Any]]] = {"seq": ("numbers", LISTS), "int": ("number", NUMBERS)}
        choices.append((None,) if kind not in tried else sizes.all(tried[kind][0], of, tried[kind][1]))
    names = [p.name for p in extern.results]
    promises: list[list[S.Expr]] = [[] for _ in names]
    for e in extern.ensures:
        promises[max((names.index(n) for n in names_in(e) if n in names), default=0)].append(e)

    def extended(found: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if len(found) == len(names):
            yield found
            return
        for value in choices[len(found)]:
            known = lengths | dict(zip(names, (*found, value), strict=False))
            if all(holds(e, known) if definition(e, given) is None else numbers_in(e, known) for e in promises[len(found)]):
                yield from extended((*found, value))

    yield from extended(())


class _Lengths:
    """An argument of which a contract asks for the number of its lanes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


def holds(e: S.Expr, names: dict[str, Any]) -> bool:
    try:
        return bool(compiled(e)(names, Steps()))
    except OutOfBudget:
        raise OutOfSteps("a contract beyond the budget of steps") from None
    except (*FAILURES, TypeError):  # a sequence where a number is meant, or the reverse
        return False
    except AssertionError as unknown:
        raise Unsupported(f"{unknown} in a contract") from None


def numbers_in(e: S.Expr, names: dict[str, Any]) -> bool:
    """True if what a contract says of every lane of an argument is said with numbers."""
    c = e.args[0] if isinstance(e, S.ECall) else None
    assert isinstance(c, S.EComprehension)
    assert isinstance(c.body, S.ECompare)
    value = c.body.operands[1]
    said = value.right if isinstance(value, S.EBinary) else value.index if isinstance(value, S.EIndex) else value
    try:
        steps = Steps()
        return all(isinstance(compiled(said)({**names, c.names[0]: k}, steps), int) for k in compiled(c.sequence)(names, steps))
    except (*FAILURES, TypeError):
        return False
