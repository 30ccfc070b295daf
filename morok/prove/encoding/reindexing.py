"""Other loops for the same iterations: a range split in two, two merged into one, as index maps.

A rule closes the same body under new ranges, with every old range replaced in it by an expression of the new ones (`subst`). The
iterations are the same, in the same order, if this expression maps the new index vectors into the old ones, so that each has as
many before it as the new one that it belongs to, and there are as many of both. What the body computes plays no part, nor what it
finds in memory: each iteration finds what it has found. Of a fold of integers, whose order means nothing, the map need only be
injective. New ranges must be new: nothing that remains may depend on them. Where a Group closes the body several times, or the op
of a fold joins folds of it and single iterations, those of each piece follow its first one in this way, and come before those of
another piece, or behind them (of integers: are others); together they are as many.
What a fold folds is a function of the iteration (docs/ops.md); but the statements of a Group are done in any order, and so the
iterations of its pieces must be independent of one another (`independent`).

A statement in the body of an End that depends on the outer ones of the old ranges alone is done once for each iteration of these.
Under new ranges it may be done less often (it is then what it would be again), but not more often: where its iterations are not
as many, the rule has to say that there is no such statement (`done_within`). One that a fold waits for may be done again.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

from morok.dsl import syntax as S
from morok.prove.encoding.fold_induction import OF_TRUTHS, has_lanes_of_source
from morok.prove.encoding.loop_dependence import conditions, free_names
from morok.prove.encoding.obligation import Obligation
from morok.prove.encoding.structure import StructureEncoder
from morok.prove.encoding.structure_parts import Loop, Loops
from morok.prove.kinds import CONSTANT, Node
from morok.prove.rule_syntax import names_in
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both, either, is_false
from morok.prove.smt import TRUE, Expr
from morok.prove.symbol import Symbol

BODY = {"Reduce": "src", "End": "body"}


@dataclass(frozen=True, slots=True)
class Slot:
    """One operand among the ranges that an op closes: by its name where it has one; `loop` where the rule says its end."""

    name: str
    loop: Loop | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """New loops in place of old ones.

    at     the new index vector, and the one that it is compared with: the first, or any other
    maps   the old index vector that belongs to each
    outer  (k, m): statements that depend on the first k old ranges alone depend on the first m new ones alone; without those k
           of which the rule says that there is no such statement
    """

    old: list[Loop]
    new: list[Loop]
    at: list[list[Term]]
    maps: list[list[Term]]
    outer: list[tuple[int, int]]


class ReindexingEncoder(StructureEncoder):
    """A rule that closes a body under other ranges: to each step of the new ranges a later iteration belongs."""

    def encode(self) -> Obligation:
        closing = self.rule.syntax.pattern
        while isinstance(closing, S.PBind):
            closing = closing.inner
        op = closing.op if isinstance(closing, S.PStruct) else closing.ops[0] if isinstance(closing, S.POp) else ""
        if op not in BODY:
            raise Unsupported("no loops closed anew")
        before = self.closed_by(op, closing)
        body = before[BODY[op]]
        self.fold = fold = self.written(before.get("op"))
        self.folded_name = getattr(body, "name", "")
        joins = self.joining(fold, body) if op == "Reduce" else ""
        self.lanes_folded = op == "Reduce" and not has_lanes_of_source(self.rule, body, closing)
        pieces = [
            one
            for part in self.closings(op, joins, self.rule.syntax.target)
            for one in self.unrolled(joins, self.piece(op, fold, part))
        ]
        if not isinstance(body, S.PVar) or any(fold != self.written(p.get("op")) for p in pieces):
            raise Unsupported("a body that is looked at, or another fold")
        old = [self.old_slot(item) for item in self.listed(before["ranges"])]
        self.closed = self.ends_have_values([s.loop for s in old])
        if op == "End" and len(pieces) > 1 and not {(body.name, s.name) for s in old if s.loop} <= self.independent:
            raise Unsupported("pieces of a loop, in no order, whose iterations may depend on one another")
        self.value_of(body)
        for clause in self.rule.syntax.clauses:
            self.clause(clause)
        self.side = "target"
        found: Obligation = self.made(
            lambda: self.questions([self.same_body(body.name, old, p, p[BODY[op]]) for p in pieces])
        )
        return found

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.independent = free_names(self.rule.syntax, "independent")
        self.nested = _names_of(self.rule.syntax, "done_within")
        self.labels: dict[int, Num] = {}
        self.fold = ""
        self.folded_name = ""
        self.lanes_folded = False
        self.closed = TRUE

    def joining(self, fold: str, body: Any) -> str:
        """The op that joins two folds of parts of the iterations; none where a fold has no such op."""
        if not isinstance(body, S.PVar):
            return ""
        found = self.rule.types.get(id(body)) or self.rule.bindings[body.name].type
        if found is None or found.pointer or found.place or fold not in OF_TRUTHS:
            return ""
        return OF_TRUTHS[fold] if self.element(found) == "bool" else fold

    def closings(self, op: str, joins: str, target: S.Expr) -> list[S.ECall | S.EStruct]:
        """The ops that close the body in the target: the same one, several Ends in a Group, folds and iterations joined."""
        name = target.name if isinstance(target, S.ECall) else target.op if isinstance(target, S.EStruct) else ""
        if name == op or (name == "subst" and joins):
            assert isinstance(target, (S.ECall, S.EStruct))
            return [target]
        if (
            name not in ("Group" if op == "End" else joins, "")
            or not isinstance(target, S.ECall)
            or not target.args
            or not name
        ):
            raise Unsupported("no loops closed anew")
        return [one for part in target.args for one in self.closings(op, joins, part)]

    def piece(self, op: str, fold: str, part: S.ECall | S.EStruct) -> dict[str, Any]:
        """The parts of what closes the body; an iteration by itself is a fold over no ranges."""
        if isinstance(part, S.ECall) and part.name == "subst":
            if self.lanes_folded:
                raise Unsupported("an iteration by itself, of which no lanes are folded")
            return {BODY[op]: part, "ranges": [], "op": S.EName(fold)}
        return self.closed_by(op, part)

    def unrolled(self, joins: str, piece: dict[str, Any]) -> list[dict[str, Any]]:
        """The pieces that one is: itself."""
        return [piece]

    def closed_by(self, op: str, closing: Any) -> dict[str, Any]:
        """The parts of what closes a body: of a fold of folds, where these have no order, with the ranges of all, the outer ones
        first.
        """
        found = dict(self.parts(op, closing))
        while op == "Reduce" and (inner := self.fold_within(found["src"], found, closing)) is not None:
            found |= {"src": inner["src"], "ranges": [*self.listed(found["ranges"]), *self.listed(inner["ranges"])]}
        return found

    def written(self, part: Any) -> str:
        if isinstance(part, S.PExpr):
            part = part.value
        return getattr(part, "name", "") if part is not None else "none"

    def listed(self, part: Any) -> list[Any]:
        if isinstance(part, S.EName) and isinstance(self.names.get(part.name), Loops):
            return [part]
        items = part.items if isinstance(part, (S.PList, S.EList)) else part
        if not isinstance(items, (list, tuple)):
            raise Unsupported("ranges of this form")
        return list(items)

    def old_slot(self, item: Any) -> Slot:
        if isinstance(item, S.PSequence):
            self.any_loops(item.name)
            return Slot(item.name)
        if isinstance(item, S.PVar):
            self.value_of(item)
            return Slot(item.name)
        found = self.ranges.get(id(self.value_of(item)))
        if found is None:
            raise Unsupported("an operand that is no range")
        return Slot(found.name, found)

    def new_slot(self, item: Any) -> Slot:
        if isinstance(item, S.ESpread) and isinstance(item.sequence, S.EName):
            return Slot(item.sequence.name)
        if not isinstance(item, S.EName):
            raise Unsupported("a range without a name")
        found = self.ranges.get(id(self.names.get(item.name)))
        return Slot(item.name, None if found is None else replace(found, name=item.name))

    def op_range(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        node = super().op_range(parts, at)
        if isinstance(at, S.Expr) and "id" in parts:
            self.labels[id(node)] = self.number(self.expression(parts["id"]))
        return node

    def same_body(self, body: str, was: list[Slot], piece: dict[str, Any], read: S.Expr) -> Piece:
        """One closing of the body in the target: which loops it has in place of which, and what these are in terms of those."""
        remaining: list[str] = []
        old, slots = list(was), [self.new_slot(item) for item in self.listed(piece["ranges"])]
        while old and slots and old[-1].loop is None and old[-1] == slots[-1]:
            remaining.append(old.pop().name)
            slots.pop()
        kept = 0
        while kept < min(len(old), len(slots)) and old[kept].loop is None and old[kept] == slots[kept]:
            kept += 1
        remaining += [s.name for s in old[:kept]]
        old, new = old[kept:], slots[kept:]
        before = [s.loop for s in old if s.loop is not None]
        after = [s.loop for s in new if s.loop is not None]
        alone = not new and (self.fold != "none" or not remaining)  # one iteration, in a fold of the loops that remain
        if not before or not (after or alone) or len(before) != len(old) or len(after) != len(new):
            raise Unsupported("loops of unknown ends")
        for loop in (*before, *after):
            for other in before:
                if loop is not other and not self.constant_end(loop) and not self.said_free_end(loop, other):
                    raise Unsupported("an end that may depend on a loop")
        for p, other in itertools.combinations(before, 2):
            if not self.said_free(p.name, other) and not self.said_free(other.name, p):
                raise Unsupported("two ranges that may be one, which runs once")
        for q in after:
            for name in (body, *remaining):
                if not self.said_free(name, q):
                    raise Unsupported(f"{name} may depend on the new range {q.name}")
        for p in before:
            for name in remaining:
                if not self.said_free(name, p):
                    raise Unsupported(f"{name} may depend on the range {p.name}")
        moves = self.moves(read, body)
        self.of_their_kinds(before, after, moves)
        if sorted(moves) != sorted(p.name for p in before):
            raise Unsupported("ranges that remain in the body")
        if any(x.node.dtype != "index" for x in (*before, *after)):
            raise Unsupported("loops that count otherwise than in index")
        names = [s.name for s in new]
        vectors = [[q.node.term for q in after], self.beside(after)]
        maps = [self.moved_to(moves, before, names, vector) for vector in vectors]
        return Piece(before, after, vectors, maps, self.outer(body, before, names, moves))

    def outer(self, body: str, old: list[Loop], new: list[str], moves: dict[str, S.Expr]) -> list[tuple[int, int]]:
        """`Piece.outer` of these loops; none of a fold's."""
        found: list[tuple[int, int]] = []
        reach = 0
        if self.fold != "none":
            return []
        for k, p in enumerate(old[:-1]):
            reach = max([reach, *(m for m, q in enumerate(new, 1) if q in self.mentioned(moves[p.name]))])
            if not any((body, p.name, q.name) in self.nested for q in old[k + 1 :]):
                found.append((k + 1, reach))
        return found

    def of_their_kinds(self, old: list[Loop], new: list[Loop], moves: dict[str, S.Expr]) -> None:
        """The condition that iterations stay what they are: in order, launched, or those of an axis (docs/ops.md)."""
        for q in new:
            kinds = {p.kind for p in old if q.name in names_in(moves.get(p.name, S.EName(q.name)))}
            if "" in kinds or kinds - {q.kind} or not any(q.kind == p.kind for p in old):
                raise Unsupported("new ranges of another kind")

    def constant_end(self, loop: Loop) -> bool:
        return loop.end is not None and loop.end.made is not None and loop.end.made.op == CONSTANT

    def said_free_end(self, loop: Loop, other: Loop) -> bool:
        names = [n for n, v in self.names.items() if v is loop.end]
        return any(self.said_free(n, other) for n in names)

    def moves(self, read: S.Expr, body: str) -> dict[str, S.Expr]:
        """The expression that stands for each range in the body."""
        found: dict[str, S.Expr] = {}
        while isinstance(read, S.ECall) and read.name == "subst":
            read, bound, to = read.args
            if not isinstance(bound, S.EName) or bound.name in found:
                raise Unsupported("a substitution of this form")
            found[bound.name] = to
        if not isinstance(read, S.EName) or read.name != body:
            raise Unsupported("another body")
        return found

    def beside(self, loops: list[Loop]) -> list[Term]:
        """The index vector that any is compared with: the first."""
        return [self.world.constant("index", 0) for _ in loops]

    def moved_to(self, moves: dict[str, S.Expr], old: list[Loop], names: list[str], at: list[Term]) -> list[Term]:
        """The old index vector that belongs to a new one."""
        was = self.names
        hidden = {p.name for p in old}
        plain = [Node((Term(x.value, TRUE),), "index") for x in at]
        self.names = {k: v for k, v in was.items() if k not in hidden} | dict(zip(names, plain, strict=True))
        try:
            found = [self.node(moves[p.name], p.node.dtype) for p in old]
        finally:
            self.names = was
        return [n.term for n in found]

    def questions(self, pieces: list[Piece]) -> Obligation:
        """The new ranges have ends and are as many, their map leads into the old ones, and keeps their order.

        Of two pieces one ends before the other begins, so that no iteration is done twice; together they are as many.
        """
        n, out = self.numbers, self.out
        old = pieces[0].old
        if any(p.old != old for p in pieces):
            raise Unsupported("pieces of different loops")
        counts = [self.times([self.iterations(x) for x in p.new]) for p in pieces]
        before = self.times([self.iterations(x) for x in old])
        known = [*out.premises, self.closed, *self.world.axioms]
        for p in pieces:
            self.leads_into(p, known)
        out.lemmas.append(("as many iterations", tuple(known), before == self.total(counts)))
        some = [n.compare("<", n.const(0), self.iterations(x))[1] for x in old]
        for k, reached in ((k, [m for p in pieces for j, m in p.outer if j == k]) for k, _ in pieces[0].outer):
            counts = [self.times([self.iterations(x) for x in p.new[:m]]) for p, m in zip(pieces, reached, strict=True)]
            many = self.times([self.iterations(x) for x in old[:k]])
            out.lemmas.append(
                (f"nothing is done more often than {k} loops are", (*known, *some), self.total(counts) <= many)
            )
        for (k, p), (j, q) in itertools.combinations(enumerate(pieces, 1), 2):
            self.are_apart(p, q, known, f"piece {k} is done before piece {j}, or behind it")
        out.premises, out.applicable, out.claim = known, known, TRUE
        if len(pieces) > 1 and isinstance(self.names.get(self.folded_name), Node):
            self.begins(pieces, known)
        self.world.exact = False  # another order of the same iterations need not be wrong
        return out

    def are_apart(self, p: Piece, q: Piece, known: list[Expr], said: str) -> None:
        """The condition that one of two pieces ends before the other begins."""
        n = self.numbers
        first, begin = (self.place_among(x.old, x.maps[1]) for x in (p, q))
        end, last = (
            n.binary("+", b, Num(self.times([self.iterations(y) for y in x.new]))) for b, x in ((first, p), (begin, q))
        )
        some = [n.compare("<", n.const(0), self.iterations(x))[1] for x in (*p.new, *q.new)]
        before = either(n.compare("<=", end, begin)[1], n.compare("<=", last, first)[1])
        self.out.lemmas.append((said, (*known, *some), before))

    def begins(self, pieces: list[Piece], known: list[Expr]) -> None:
        """The condition that no fold of a part is over no iterations, where that has no value."""
        dtype = self.names[self.folded_name].dtype
        if (
            self.fold in OF_TRUTHS
            and dtype in self.rule.dialect.dtypes
            and is_false(self.identity(self.fold, dtype).defined)
        ):
            n = self.numbers
            some = both(*(n.compare("<", n.const(0), self.iterations(x))[1] for p in pieces for x in p.new))
            self.out.lemmas.append(("no part is empty", tuple(known), some))

    def leads_into(self, p: Piece, known: list[Expr]) -> None:
        """The condition that the new loops of a piece have ends, and each of their iterations is one of the old ones, in the same
        order.
        """
        out = self.out
        defined = both(*(q.end.term.defined for q in p.new if q.end is not None), *self.apart(p.new))
        out.lemmas.append(("the new ranges are others, with ends", tuple(known), defined))
        into = both(*(t.defined for t in p.maps[0]), self.is_inside(p.old, p.maps[0]))
        out.lemmas.append(("inside", (*known, self.is_inside(p.new, p.at[0])), into))
        self.done_once(p, known)

    def values(self, terms: list[Term]) -> list[Num]:
        return [self.world.number_of("index", t) for t in terms]

    def is_inside(self, loops: list[Loop], at: list[Term]) -> Expr:
        """The condition that an index vector is one of some loops'."""
        n, values = self.numbers, self.values(at)
        low = (n.compare("<=", n.const(0), v)[1] for v in values)
        return both(*low, *(n.compare("<", v, self.iterations(x))[1] for v, x in zip(values, loops, strict=True)))

    def done_once(self, p: Piece, known: list[Expr]) -> None:
        """The condition that the iterations of a piece follow one another, as those of the new loops do."""
        n = self.numbers
        place, first = (self.place_among(p.old, at) for at in p.maps)
        follows = n.compare("==", place, n.binary("+", first, self.place_among(p.new, p.at[0])))[1]
        self.out.lemmas.append(("each follows the one before", (*known, self.is_inside(p.new, p.at[0])), follows))

    def place_among(self, loops: list[Loop], at: list[Term]) -> Num:
        """The number of iterations that are done before that of an index vector."""
        n = self.numbers
        found: Num = n.const(0)
        for x, v in zip(loops, self.values(at), strict=True):
            found = n.binary("+", n.binary("*", found, self.iterations(x)), v)
        return found

    def total(self, counts: list[Expr]) -> Expr:
        """The sum of the numbers of iterations of pieces."""
        n = self.numbers
        return functools.reduce(lambda a, b: n.binary("+", Num(a), Num(b)).value, counts)

    def times(self, ends: list[Num]) -> Expr:
        """The number of index vectors."""
        n = self.numbers
        count = n.const(1)
        for e in ends:
            count = n.binary("*", count, e)
        none = either(*(n.compare("<=", e, n.const(0))[1] for e in ends))
        return n.n.choose(none, n.n.const(0), count.value)

    def apart(self, loops: list[Loop]) -> list[Expr]:
        """The condition that the new ranges are not one: their numbers differ."""
        if len(loops) > 1 and any(id(x.node) not in self.labels for x in loops):
            raise Unsupported("new ranges that may be one")
        labels = [self.labels[id(x.node)] for x in loops] if len(loops) > 1 else []
        return [
            both(a.exists, b.exists, self.numbers.compare("!=", a, b)[1])
            for i, a in enumerate(labels)
            for b in labels[i + 1 :]
        ]


class AnyOrderEncoder(ReindexingEncoder):
    """The same of a fold of integers, whose order means nothing: no two of the new iterations belong to one of the old ones.

    Where the op of the fold joins several iterations in what is folded, as where loops are unrolled, each is a piece of its own.
    """

    def joining(self, fold: str, body: Any) -> str:
        ty = self.rule.types.get(id(body))
        if ty is None or ty.pointer or ty.place or self.element(ty) not in self.rule.dialect.classes["int"]:
            raise Unsupported("what is no integer in another order")
        return super().joining(fold, body)

    def closings(self, op: str, joins: str, target: S.Expr) -> list[S.ECall | S.EStruct]:
        if op != "Reduce":
            raise Unsupported("statements in another order")
        return super().closings(op, joins, target)

    def unrolled(self, joins: str, piece: dict[str, Any]) -> list[dict[str, Any]]:
        src = piece["src"]
        if not joins or not isinstance(src, S.ECall) or src.name != joins:
            return [piece]
        return [one for part in src.args for one in self.unrolled(joins, piece | {"src": part})]

    def beside(self, loops: list[Loop]) -> list[Term]:
        """An index vector of which nothing is known."""
        return [self.world.variable(Symbol("range", self.another()), "index") for _ in loops]

    def done_once(self, p: Piece, known: list[Expr]) -> None:
        """The condition that no two iterations of a piece belong to one."""
        self.are_apart(p, p, [*known, self.unlike(*p.at)], "each is done once")

    def are_apart(self, p: Piece, q: Piece, known: list[Expr], said: str) -> None:
        inside = [self.is_inside(p.new, p.at[0]), self.is_inside(q.new, q.at[1])]
        self.out.lemmas.append((said, (*known, *inside), self.unlike(p.maps[0], q.maps[1])))

    def unlike(self, one: list[Term], other: list[Term]) -> Expr:
        """The condition that two index vectors differ."""
        pairs = zip(self.values(one), self.values(other), strict=True)
        return either(*(self.numbers.compare("!=", a, b)[1] for a, b in pairs))


def _names_of(rule: S.Rule, fact: str) -> frozenset[tuple[str, ...]]:
    """The operands of a fact in what the guards of a rule state, by name."""
    facts = (e for e in conditions(rule) if isinstance(e, S.ECall) and e.name == fact)
    return frozenset(tuple([a.name for a in e.args if isinstance(a, S.EName)]) for e in facts)
