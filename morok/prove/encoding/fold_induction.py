"""Folds: a Reduce judged by induction over its iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.encoding.facts import REDUCTIONS
from morok.prove.encoding.loop_ranges import Ranges
from morok.prove.encoding.structure_parts import OPAQUE, Fold, Loop, Loops
from morok.prove.kinds import ANY_FOLD, Node, OpName
from morok.prove.meanings import solver_function
from morok.prove.semantics.term import Term, Unsupported, both, either, is_false, negation
from morok.prove.smt import TRUE
from morok.prove.symbol import Symbol

OF_TRUTHS: Final = {"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And"}  # the ops that fold truth values


class Folds(Ranges):
    """Reduce: the identity, any state of the accumulator, or the state after one more iteration."""

    def op_reduce(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        was, source = self.inside, parts["src"]
        loops = self.closed_loops(parts["ranges"])
        self.inside = (*was, *loops)
        while (inner := self.fold_within(source, parts, at)) is not None:
            more = self.closed_loops(inner["ranges"])
            if not all(self.said_free(a.name, b) and self.said_free(b.name, a) for a in loops for b in more):
                break
            loops, source = (*loops, *more), inner["src"]
            self.inside = (*was, *loops)
        loops = (*loops, *self.side_by_side(source, at))
        self.inside = (*was, *loops)
        body = self.value_of(source)
        self.inside = was
        op = self.reduction(parts.get("op", ANY_FOLD))
        nested = loops
        if self.has_no_order(at, op):
            loops = tuple(sorted(loops, key=lambda x: x.unknown))
        if not isinstance(body, Node):
            raise Unsupported("a fold of what is no value")
        if self.lanes_of(self.rule.type_of(at)) != len(body.lanes):
            raise Unsupported("a fold over a number of lanes")
        if body.dtype in OPAQUE:
            raise Unsupported("a fold at an unknown dtype")
        if not loops:
            return body
        info = self.rule.dialect.ops[op]
        if body.dtype == "bool" and op in OF_TRUTHS:
            info = self.rule.dialect.ops[OF_TRUTHS[op]]
        return Node(
            tuple(self.folded(op, info, Node((lane,), body.dtype), loops, nested) for lane in body.lanes), body.dtype
        )

    def has_no_order(self, at: S.Syntax, op: str) -> bool:
        """True if folding by this op gives the same in any order and grouping: not where it rounds."""
        dtype = self.dtype_of(at)
        known = dtype in self.rule.dialect.dtypes and (op in ("Max", "Min") or not self.world.is_float(dtype))
        return known and op in OF_TRUTHS

    def fold_within(self, source: Any, parts: dict[str, Any], at: S.Syntax) -> dict[str, Any] | None:
        """The parts of a fold that is folded by its own op: one fold over the loops of both, and lanes that become one."""
        name = source.op if isinstance(source, (S.PStruct, S.EStruct)) else getattr(source, "name", "")
        if name != "Reduce" or not isinstance(source, (S.PStruct, S.EStruct, S.ECall)) or self.type_or_none(at) is None:
            return None
        inner = self.parts("Reduce", source)
        op = _op_named(parts.get("op"))
        if not op or op != _op_named(inner.get("op")) or op not in OF_TRUTHS or not self.has_no_order(at, op):
            return None
        return dict(inner)

    def side_by_side(self, source: Any, at: S.Syntax) -> tuple[Loops, ...]:
        """The loop over neighbouring lanes that become one, unless the types say that a Reduce has the lanes of its source.

        As many iterations as there may be lanes, in no specified order, and nothing under it is said to be free of it.
        """
        if has_lanes_of_source(self.rule, source, at):
            return ()
        return (Loops(Symbol("lanes", str(lanes_in(self.rule, source)), str(self.rule.type_of(at).lanes))),)

    def closed_loops(self, part: Any) -> tuple[Any, ...]:
        before = frozenset(self.names)
        was, self.asking = self.asking, True
        try:
            loops = self.fold_loops(part)
        finally:
            self.asking = was
        self.closes(loops, before)
        return loops

    def fold_loops(self, part: Any) -> tuple[Any, ...]:
        if isinstance(part, S.PVar) and (part.ignored or part.name not in self.names):
            return (self.any_loops(part.name),)
        if isinstance(part, (S.PVar, S.EName)) and isinstance(found := self.names.get(part.name), (Loops, Loop)):
            return (found,)
        items = list(part.items) if isinstance(part, (S.PList, S.EList)) else part if isinstance(part, list) else None
        if items is None:
            return tuple(self.loop_of(v) for v in self.many(part))
        out: list[Any] = []
        for item in items:
            name = getattr(item, "name", None) if isinstance(item, (S.PSequence, S.PVar)) else None
            if isinstance(item, S.ESpread) and isinstance(item.sequence, S.EName):
                found = self.names.get(item.sequence.name)
                if isinstance(found, Loops):
                    out.append(found)
                    continue
            if isinstance(item, S.PSequence):
                out.append(self.names[item.name] if item.name in self.names else self.any_loops(item.name))
                continue
            v = self.value_of(item)
            out.append(replace(self.loop_of(v), name=name) if name else self.loop_of(v))
        return tuple(out)

    def any_loops(self, name: str) -> Loops:
        """Loops of which nothing is known; of a name that says nothing others every time."""
        if name.startswith("_"):
            self.unnamed += 1
            return Loops(Symbol("loop", name, self.unnamed))
        loops = self.names[name] = Loops(Symbol("loop", name), name)
        return loops

    def reduction(self, part: Any) -> str:
        if isinstance(part, S.PVar) or (isinstance(part, S.EName) and part.name not in self.rule.dialect.ops):
            if part.name not in self.names:
                chosen = OpName(REDUCTIONS[self.choices.pick(len(REDUCTIONS))])
                if part.name.startswith("_"):
                    return chosen.name
                self.names[part.name] = chosen
            found = self.names[part.name]
            assert isinstance(found, OpName)
            return found.name
        if isinstance(part, S.PExpr):
            part = part.value
        if isinstance(part, S.EName) and part.name in REDUCTIONS:
            return part.name
        raise Unsupported("the op of a fold")

    def folded(self, op: str, info: OpInfo, body: Node, loops: tuple[Any, ...], nested: tuple[Any, ...]) -> Term:
        """A fold. Where the rule says how often a loop runs, it is unfolded; else it is judged by induction over iterations.

        nested  the same loops as the rule names them, the outer ones first
        """
        single = [loop for loop in loops if isinstance(loop, Loop) and loop.counted]
        if not single:
            return self.step(op, info, body, loops)
        n = self.numbers
        # an end without a value is that of a loop within one that never runs
        ends = [TRUE if x.end is None else x.end.term.defined for x in single]
        none = either(
            *(both(e, n.compare("<=", self.iterations(x), n.const(0))[1]) for x, e in zip(single, ends, strict=True))
        )
        once = both(
            *(
                either(negation(e), n.compare("==", self.iterations(x), n.const(1))[1])
                for x, e in zip(single, ends, strict=True)
            )
        )
        self.world.exact = False  # of more than one iteration this reading knows nothing
        others = tuple(loop for loop in loops if loop not in single)
        inner = self.unknown(op, body, others) if others else body.term
        found: Term = self.said(
            "choose",
            none,
            self.identity(op, body.dtype),
            self.said("choose", once, inner, self.unknown(op, body, loops)),
        )
        return replace(found, defined=both(found.defined, self.ends_have_values(nested)))

    def unknown(self, op: str, body: Node, loops: tuple[Any, ...]) -> Term:
        """Some fold: the same for the same op, body and loops, and nothing more is known of it."""
        key = (
            "fold",
            op,
            body.dtype,
            body.term.value,
            body.term.defined,
            body.term.invalid,
            *(x.unknown for x in loops),
        )
        found: Term = self.world.once(key, lambda: self.state(body.dtype))
        return found

    def step(self, op: str, info: OpInfo, body: Node, loops: tuple[Any, ...]) -> Term:
        """The accumulator: the identity, any state, or the state after one more iteration, as the phase asks. Where the identity
        has no value, the first iteration begins the fold.
        """
        if not self.by_induction:
            return self.unknown(op, body, loops)
        if self.inside or any(f.loops != loops for f in self.folds):
            raise Unsupported("induction over several loops at once")
        state = self.unknown(op, body, loops)
        self.folds.append(Fold(op, body.dtype, state, body.term, loops))
        if self.phase in ("base", "first"):
            state = self.identity(op, body.dtype)
        if self.phase in ("base", "before"):
            return state
        if is_false(state.defined):
            return body.term
        stepped: Term = solver_function(info)(self.world, self.world.dtype(body.dtype), state, body.term)
        # A fold has a value where each item has one, also of truths: And and Or of two nodes may decide without the other.
        return replace(stepped, defined=both(stepped.defined, state.defined, body.term.defined))

    def begins_anew(self) -> bool:
        """True if a fold of the rule has no value over no iterations: its first iteration continues none of its states."""
        return any(is_false(self.identity(f.op, f.dtype).defined) for f in self.folds)

    def state(self, dtype: str) -> Term:
        unknown = self.world.symbol("accumulator")
        value = smt.Const(unknown, self.sort(dtype))
        if value.sort is smt.IntSort() and self.world.bits(dtype):
            n = self.world.arithmetic(self.world.dtype(dtype))
            self.world.assume(value >= n.low, value <= n.high)
        return Term(value, smt.Bool(Symbol("defined", unknown)))


def _op_named(part: Any) -> str:
    part = part.value if isinstance(part, S.PExpr) else part
    return part.name if isinstance(part, S.EName) else ""


def lanes_in(rule: CheckedRule, source: Any) -> int | str:
    """The number of lanes folded, as far as the types state it."""
    while isinstance(source, S.PExpr):
        source = source.value
    ty = rule.types.get(id(source))
    if ty is None and isinstance(source, S.PVar):
        ty = rule.bindings[source.name].type
    if ty is None:
        raise Unsupported("a fold of an unknown number of lanes")
    return ty.lanes


def has_lanes_of_source(rule: CheckedRule, source: Any, at: S.Syntax) -> bool:
    """True if by its types a Reduce has as many lanes as the source that it folds: it never has more."""
    return lanes_in(rule, source) in (1, rule.type_of(at).lanes)
