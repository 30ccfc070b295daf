"""Memory: places, what is read there, and what is stored."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any, Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.lane_selection import Lanes
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.structure_parts import (
    ABSENT,
    ELEMENT,
    NOTHING,
    OPAQUE,
    Buffer,
    Effects,
    Place,
    Stored,
    some_function,
)
from morok.prove.kinds import Made, Node
from morok.prove.semantics.term import Term, Unsupported, both, choose, either, is_false, is_true, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Kind, Symbol

PLACE_BITS: Final = 72  # of an index as a bit vector: those of any dtype, a sign, and what the lanes of an access add


def consecutive(places: tuple[Place, ...], lanes: int) -> tuple[Place, ...]:
    """A place for each lane: those given, or as many behind one another from that of a single number on."""
    if len(places) == lanes:
        return places
    if len(places) != 1:
        raise Inapplicable
    *outer, last = places[0].indices
    return tuple(replace(places[0], indices=(*outer, last + i)) for i in range(lanes))


class Memory(Lanes):
    """Index, Load, Store and the order of effects.

    waited_for  the conditions that statements of the pattern are defined which something waits for, each with the loops around it
    widths      how many lanes the elements of storage have, by its name
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waited_for: set[tuple[Expr, tuple[Any, ...]]] = set()
        self.widths: dict[Symbol, int] = {}

    def op_index(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """A place, and the element there: 0 at a false gate or an Invalid index."""
        buffer = self.value_of(parts["buffer"])
        outer = tuple(p for p in self.places.get(id(buffer), ()) if not p.lane) or None
        if outer is None:
            buffer = self.tensor(buffer)
        elif len(outer) != 1:
            raise Inapplicable  # an index within several places
        indices = self.many(parts.get("indices"))
        gate = self.optional(parts.get("gate"))
        if not all(isinstance(n, Node) for n in indices):
            raise Unsupported("an index that is no number")
        lanes = max([len(n.lanes) for n in indices] + [1])
        if not indices or any(len(n.lanes) not in (1, lanes) for n in (*indices, *([] if gate is None else [gate]))):
            raise Inapplicable
        places = []
        for i in range(lanes):
            terms = [n.lanes[i] if len(n.lanes) > 1 else n.lanes[0] for n in indices]
            open_ = Term(TRUE) if gate is None else (gate.lanes[i] if len(gate.lanes) > 1 else gate.lanes[0])
            # behind a false gate nothing is read, the indices neither
            defined = both(*(t.defined for t in terms))
            if gate is not None:
                defined = both(open_.defined, either(negation(open_.value), defined))
            valid = both(*(negation(t.invalid) for t in terms), open_.value)
            at_lane = tuple(self.place_number(n.dtype, t) for n, t in zip(indices, terms, strict=True))
            if outer is None:
                places.append(Place(buffer, at_lane, valid, defined))
            else:  # further indices into what the outer ones chose
                p = outer[0]
                valid, defined = both(p.valid, valid), both(p.defined, defined)
                places.append(replace(p, indices=(*p.indices, *at_lane), valid=valid, defined=defined))
        width = self.element_lanes(places[0].buffer, len(places), at)
        places = [replace(p, lane=k) for p in places for k in range(width)]
        dtype = places[0].buffer.dtype
        node = Node(tuple(self.read(p, dtype, Term(self.zero_of(dtype))) for p in places), dtype, Made("Index", ()))
        self.places[id(node)] = tuple(places)
        self.kept.append(node)
        return node

    def tensor(self, x: Any) -> Any:
        """A tensor: a buffer, or any node in such a position, whose elements are then what it is."""
        if isinstance(x, Node) and x.made is None:
            if len(x.lanes) != 1:
                raise Inapplicable  # its lanes are not looked at: one stands for all
            tensor: Symbol = self.world.once(("tensor", x.term.value), lambda: self.world.symbol("tensor"))
            return Buffer(tensor, x.dtype, is_pointer=not built_in(self.rule.dialect))
        if not isinstance(x, Buffer):
            raise Unsupported("a tensor of this form")
        return x

    def same_place(self, p: Place, q: Place) -> Expr:
        """A condition that two places are one element of one tensor: of a view several places may be one."""
        if p.buffer.name != q.buffer.name or len(p.indices) != len(q.indices):
            raise Unsupported("elements of two tensors")
        if p.lane != q.lane:
            return FALSE
        same = both(*(i == j for i, j in zip(p.indices, q.indices, strict=True)))
        if p.buffer.is_pointer:
            return same
        self.world.exact = False  # what views make one place is not any relation
        return either(same, self.of_storage("alias", p.buffer, *p.indices, *q.indices))

    def element_lanes(self, buffer: Buffer, places: int, at: S.Syntax) -> int:
        """The number of lanes of an element: of storage of which nothing says that it has numbers, as many as a pattern's Index
        has at each of its places.
        """
        while buffer.behind is not None:
            buffer = buffer.behind.before
        if buffer.is_pointer:
            return 1
        if buffer.name not in self.widths:
            ty = self.type_or_none(at)
            if isinstance(at, S.Pattern) and ty is not None:
                lanes = self.lanes_of(ty)
                if lanes % places:
                    raise Inapplicable
                self.widths[buffer.name] = lanes // places
            else:
                self.widths[buffer.name] = self.some_lanes(buffer.name.label)
        return self.widths[buffer.name]

    def place_number(self, dtype: str, index: Term) -> Expr:
        """The integer that an index is: one place is one number, whatever dtype holds it, and the next one never wraps."""
        if dtype in OPAQUE:
            return index.value
        number: Expr = self.world.number_of(dtype, index).value
        return smt.SignExt(PLACE_BITS - number.sort.width, number) if number.sort.kind == "BitVec" else number

    def optional(self, part: Any) -> Node | None:
        """An operand that may be absent: a name alone stands for either."""
        if part is None or isinstance(part, (S.PNone, S.ENone)):
            return None
        if isinstance(part, S.PVar):
            if part.name in self.names:
                return self.present_or_not(part.name)
            if self.choices.pick(2) == 1:
                if not part.ignored:
                    self.names[part.name] = ABSENT
                return None
        elif isinstance(part, S.EName) and part.name in self.names:
            return self.present_or_not(part.name)
        found = self.value_of(part)
        if not isinstance(found, Node):
            raise Unsupported("an operand that may be absent")
        return found

    def present_or_not(self, name: str) -> Node | None:
        found = self.names[name]
        if found is not ABSENT and not isinstance(found, Node):
            raise Unsupported("an operand that may be absent")
        return found if isinstance(found, Node) else None

    def read(self, p: Place, dtype: str, other: Term, effects: Effects = frozenset()) -> Term:
        """The element at a place, once more effects are done: an access outside the buffer has no value, one at an Invalid place
        is `other`.
        """
        cell, other, there = self.cell(p, dtype, effects), self.later(other, dtype, effects), self.somewhere(p)
        return Term(choose(there, cell.value, other.value), both(p.defined, choose(there, cell.defined, other.defined)))

    def cell(self, p: Place, dtype: str, effects: Effects) -> Term:
        """The element at a place, behind a store what this stores."""
        there = p.buffer.behind
        effects |= frozenset() if there is None else there.effects
        if there is None or there.unknown:
            sorts = (i.sort for i in p.indices)
            cells = smt.Function(Symbol("cell", p.buffer.name, len(p.indices), *p.part), *sorts, self.sort(dtype))
            return self.later(Term(cells(*p.indices), both(self.within(p), self.filled(p))), dtype, effects)
        found = self.cell(replace(p, buffer=there.before), dtype, effects)
        met = either(*(self.hit(at, p) for at in there.beside))
        for at, v in zip(there.places, there.values, strict=True):
            here, stored = self.hit(at, p), self.later(v, dtype, effects)
            defined = both(choose(here, stored.defined, found.defined), negation(both(here, met)))
            found = Term(choose(here, stored.value, found.value), defined)
        return found

    def hit(self, at: Place, p: Place) -> Expr:
        """The condition that a place of some storage is another one, whatever is done between."""
        return both(self.somewhere(at), self.same_place(at, replace(p, buffer=at.buffer)))

    def within(self, p: Place) -> Expr:
        return self.of_storage("inside", p.buffer, *p.indices)

    def filled(self, p: Place) -> Expr:
        """The condition that there is a value at a place: a register, or local memory, has none before the first store."""
        return self.of_storage("filled", p.buffer, *p.indices)

    def somewhere(self, p: Place) -> Expr:
        """The condition that a place is one: storage that is no pointer may be a place behind a gate, or a view with a margin."""
        if p.buffer.is_pointer:
            return p.valid
        self.world.exact = False  # nor is what views, and places behind gates, leave out any set of places
        return both(p.valid, self.of_storage("somewhere", p.buffer, *p.indices))

    def of_storage(self, what: Kind, b: Buffer, *indices: Expr) -> Expr:
        """A condition on indices into storage, of which nothing else is known: that of the storage before any store."""
        while b.behind is not None and not b.behind.unknown:
            b = b.behind.before
        function = smt.Function(Symbol(what, b.name, len(indices)), *(i.sort for i in indices), smt.BoolSort())
        holds: Expr = function(*indices)
        return holds

    def op_load(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        place = self.value_of(parts["index"])
        places = self.places.get(id(place))
        if places is None:
            raise Unsupported("a load from what is no place")
        alt = self.optional(parts.get("alt"))
        ty = None if isinstance(at, S.Expr) else self.type_or_none(at)
        lanes = self.lanes_of(ty) if ty is not None else self.lanes_said(parts) if "dtype" in parts else len(places)
        places = consecutive(places, lanes)
        if alt is not None and len(alt.lanes) not in (1, len(places)):
            raise Inapplicable
        others = (Term(self.zero_of(place.dtype)),) if alt is None else alt.lanes
        others = others if len(others) > 1 else others * len(places)

        def loaded(effects: Effects) -> tuple[Term, ...]:
            return tuple(self.read(p, place.dtype, other, effects) for p, other in zip(places, others, strict=True))

        return self.seen_behind(Node(loaded(frozenset()), place.dtype), loaded)

    def op_store(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """A statement: what it does is the place and the value, or nothing at an Invalid place."""
        ranges = parts.get("ranges")
        if getattr(ranges, "items", ranges):
            raise Unsupported("a store in loops")
        place, value = self.value_of(parts["index"]), self.value_of(parts["value"])
        places = self.places.get(id(place))
        if places is None or not isinstance(value, Node):
            raise Unsupported("a store to what is no place")
        places = consecutive(places, max(len(value.lanes), len(places)))
        if len(value.lanes) not in (1, len(places)):
            raise Inapplicable
        values = value.lanes if len(value.lanes) > 1 else value.lanes * len(places)
        if not all(is_false(v.invalid) for v in values):
            raise Unsupported("a store of what may be Invalid")
        self.world.exact = False  # two statements that store differently may leave the same behind
        effect = self.stores(places, values)
        known = both(*(both(p.defined, either(negation(self.somewhere(p)), self.within(p))) for p in places))
        node = Node((Term(effect, known),), "void")
        self.stored[id(node)] = places, values
        self.kept.append(node)
        return node

    def stores(self, places: Seq[Place], values: Seq[Term]) -> Expr:
        """The effect of storing these values to their places, lane by lane: a lane without a value leaves none at its place, and
        a lane without a place does nothing.
        """
        done = []
        for p, v in zip(places, values, strict=True):
            at = [x.sort for x in p.indices]
            some = smt.Function(Symbol("store", p.buffer.name, *p.part), *at, v.value.sort, ELEMENT)(
                *p.indices, v.value
            )
            none = smt.Function(Symbol("store", p.buffer.name, *p.part, "no value"), *at, ELEMENT)(*p.indices)
            done.append(choose(self.somewhere(p), choose(v.defined, some, none), NOTHING))
        return self.in_turn(done)

    def with_values_of(self, pattern: Node, target: Node) -> Node:
        """A statement of a pattern, in which lanes that store no value store those of a target's: what such a lane leaves behind
        may be anything. Any other node is what it is.
        """
        places, values = self.stored.get(id(pattern), ((), ()))
        _, others = self.stored.get(id(target), ((), ()))
        if not values or [v.value.sort for v in values] != [v.value.sort for v in others]:
            return pattern
        filled = [self.said("choose", v.defined, v, o) for v, o in zip(values, others, strict=True)]
        return replace(pattern, lanes=(Term(self.stores(places, filled), pattern.term.defined),))

    def in_turn(self, effects: Seq[Expr]) -> Expr:
        out = effects[0]
        for e in effects[1:]:
            after = smt.Function(Symbol("function", "then"), ELEMENT, ELEMENT, ELEMENT)(out, e)
            out = choose(out == NOTHING, e, choose(e == NOTHING, out, after))
        return out

    def done_before(self, defined: Seq[Expr], at: S.Syntax) -> None:
        """Premises, or duties, that the statements which something waits for are defined: they are done wherever a node that
        waits for them is looked at, also where it is not chosen. So they are defined in a pattern, and must be in what a rule
        makes.
        """
        for d in defined:
            if not isinstance(at, S.Pattern):
                if (d, self.inside) not in self.waited_for:
                    self.must.append(d)
                continue
            self.waited_for.add((d, self.inside))
            if not self.inside:  # a loop need not run
                self.premise(d)

    def op_after(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        """A value behind effects: some function of the value and of these, as it may be read from what they change."""
        x = self.value_of(parts["passthrough"])
        waits = self.many(parts.get("deps"))
        if not waits:
            return x
        nodes = [n for n in waits if isinstance(n, Node)]
        self.done_before([n.term.defined for n in nodes if n.dtype == "void"], at)
        done = frozenset((n.dtype, t.value) for n in nodes for t in n.lanes)
        if len(done) < len(set(map(id, nodes))):
            raise Unsupported("two statements that do the same, in no order")
        if isinstance(x, Buffer):
            return self.storage_behind(x, waits, done)
        dtype, lanes = x.dtype, x.lanes
        then = self.behind.get(id(x)) or (lambda effects: tuple(self.later(t, dtype, effects) for t in lanes))
        self.world.exact = False  # it need not depend on them
        return self.seen_behind(Node(then(done), dtype), lambda effects: then(done | effects))

    def seen_behind(self, node: Node, then: Callable[[Effects], tuple[Term, ...]]) -> Node:
        """The node, of which it is noted what it is once more effects are done: all of them together, and in no order."""
        self.behind[id(node)] = then
        self.kept.append(node)
        return node

    def storage_behind(self, b: Buffer, waits: Seq[Any], effects: Effects) -> Buffer:
        """Storage once statements are done: what stores leave there, in whatever order they are named. Of another statement it is
        not known what it does, nor whether it is done before a store, unless the storage of that waits for it.
        """
        done = frozenset(map(id, waits))
        self.kept += waits
        self.world.exact = False

        def made() -> Buffer:
            now = b
            for n in waits:
                now = self.behind_store(now, n) if id(n) in self.stored else now
            last = Stored(now, effects=effects, done=_done(now) | done, unknown=not done <= _done(now))
            return replace(b, name=Symbol("after", b.name, self.another()), behind=last)

        by_number = sorted((dtype, e.number) for dtype, e in effects)
        found: Buffer = self.world.once(("behind", b.name, *by_number), made)
        return found

    def behind_store(self, b: Buffer, statement: Node) -> Buffer:
        """Storage once a store into it is done, too.

        It is known where the store comes behind all that is done before, or besides only before other stores: of two that do not
        wait for each other no place is the same. A store that has no place orders nothing (docs/ops.md).
        """
        places, values = self.stored[id(statement)]
        if id(statement) in _done(b):
            return b
        own = places[0].buffer
        if any(p.buffer is not own for p in places) or _root(own) != _root(b):
            raise Unsupported("storage after a store into another")
        before, beside = b, _since(b, _done(own))
        if _done(b) <= _done(own):
            if _done(own) != _done(b) and not all(is_true(self.somewhere(p)) for p in places):
                raise Unsupported("storage after a store that may have no place, and waits for others")
            before, beside = own, ()
        if beside is None or not _done(own) <= _done(before):
            raise Unsupported("storage after a store, and what may be done before it or behind")
        done = _done(before) | {id(statement)}
        return replace(
            b, name=Symbol("after", b.name, self.another()), behind=Stored(before, places, values, beside, done=done)
        )

    def later(self, t: Term, dtype: str, effects: Effects) -> Term:
        """A node once these effects, in whatever order, are done: another value than before, which may have come to be there, or
        to be Invalid.
        """
        if not effects:
            return t
        if t.allows is not None:
            raise Unsupported("the bits of a NaN behind something")
        by_number = sorted(effects, key=lambda e: e[1].number)

        def then(before: Expr, *what: str) -> Expr:
            return some_function(Symbol("after", *what), before.sort, (dtype, before), *by_number)

        return Term(
            then(t.value),
            t.defined if is_true(t.defined) else then(t.defined, "defined"),
            t.invalid if is_false(t.invalid) else then(t.invalid, "invalid"),
        )


def _done(b: Buffer) -> frozenset[int]:
    """The statements that are done before storage is looked at."""
    return frozenset() if b.behind is None else b.behind.done


def _root(b: Buffer) -> Symbol:
    """The name of storage as it is before any statement is done."""
    while b.behind is not None:
        b = b.behind.before
    return b.name


def _since(b: Buffer, done: frozenset[int]) -> tuple[Place, ...] | None:
    """The places of the stores that storage is behind, beyond those that are done; None where it is behind something else."""
    found: list[Place] = []
    while not _done(b) <= done:
        if b.behind is None or b.behind.unknown:
            return None
        found += b.behind.places
        b = b.behind.before
    return tuple(found)
