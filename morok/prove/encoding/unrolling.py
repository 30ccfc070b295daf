"""Rules about unrolled axes: both sides as functions of iterations (`unrolled`), compared at every one, for every choice of axes.

All that such a rule computes at compile time is known here: axes, lengths and lanes are enumerated up to a stated bound, values
are terms. Helpers are read by their contracts: one that ends in `result == expression` is that expression, of any other every
sequence of axes that its contract admits is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.dsl.values import FAILURES, OutOfBudget
from morok.prove.encoding import unrolled as U
from morok.prove.encoding.obligation import Choices, Inapplicable, Obligation, OutOfSteps
from morok.prove.encoding.operands import called
from morok.prove.encoding.sizes import Sizes
from morok.prove.encoding.unrolled import IllFormed, Statement, Vector
from morok.prove.encoding.unrolled_reading import Memo, UnrolledReading
from morok.prove.forms import VECTOR_AXES
from morok.prove.kinds import ANY_FOLD
from morok.prove.semantics.term import Unsupported, both, either
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Symbol


class Difference(NamedTuple):
    """A claim, and what pattern and target are where it is false, in words.

    plain   they differ whatever the ops in them compute
    """

    claim: Expr
    pattern: str
    target: str
    plain: bool = True


class UnrollingEncoder:
    """A whole rule about unrolled axes, all choices of them in one question."""

    def __init__(self, rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> None:
        self.rule, self.instance, self.world = rule, instance, world

    def encode(self) -> Obligation:
        U.TERMS.forget()
        out, memo, picks, claims = Obligation(), Memo(), Choices(), []
        while True:
            picks.restart()
            reading = self.reading(Sizes(picks, self.world), memo)
            try:
                differences = reading.differences()
            except Inapplicable:
                pass
            else:
                claims.append(TRUE)
                if differences:  # one is enough, and says at which choice the rule is false
                    found = next((d for d in differences if d.plain), differences[0])
                    claims, out.shown = [found.claim], (found.pattern, found.target)
                    out.facts = reading.facts(self.world)
                    self.world.exact = found.plain
                    break
            if not picks.advance():
                break
        if not claims:
            raise Inapplicable
        out.claim = both(*claims)
        return out

    def reading(self, sizes: Sizes, memo: Memo) -> Reading:
        return Reading(self.rule, sizes, memo)


class Reading(UnrolledReading):
    """One choice of axes, lengths and lanes."""

    def differences(self) -> list[Difference]:
        """Wherever the sides are not one and the same term."""
        try:
            pattern = self.pattern(self.rule.syntax.pattern)
        except IllFormed:
            raise Inapplicable from None
        try:
            for clause in self.rule.syntax.clauses:
                self.clause(clause)
            target = self.target(self.rule.syntax.target, pattern)
            return self.compared(pattern, target)
        except OutOfBudget:
            raise OutOfSteps("a rule beyond the budget of steps") from None
        except FAILURES:  # a computation without a value: the rule does not fire
            raise Inapplicable from None
        except IllFormed:
            return [Difference(FALSE, "ill-formed", "ill-formed")]

    def compared(self, pattern: Any, target: Any) -> list[Difference]:
        """Wherever two sides are not one and the same term."""
        if isinstance(pattern, Statement) and isinstance(target, Statement):
            return same_effects(U.collected(pattern), U.collected(target))
        if not isinstance(pattern, Vector) or not isinstance(target, Vector):
            raise Unsupported("a statement for a value")
        return same_lanes(pattern, target, U.ITERATIONS)

    def facts(self, world: Any) -> list[tuple[str, str, Any]]:
        """The known numbers of this choice, for a counterexample."""
        numbers = world.numbers
        found = []
        for name, v in self.names.items():
            if isinstance(v, int):
                found.append((name, "value", numbers.const(int(v))))
            elif isinstance(v, tuple) and all(isinstance(i, int) for i in v):
                found += [(f"{name}[{k}]", "value", numbers.const(i)) for k, i in enumerate(v)]
            elif isinstance(v, tuple) and all(isinstance(i, tuple) for i in v):
                found += [(f"{name}[{k}]", "axis", numbers.const(i[0])) for k, i in enumerate(v)]
        return found

    # ops

    def made(self, op: str, parts: dict[str, Any], at: Any) -> Any:
        info = self.ops[op]
        handler: Callable[..., Any] | None = getattr(self, f"op_{op.lower()}", None)
        if handler is not None:
            made = handler(parts, at)
            if "dtype" in parts and isinstance(at, S.Expr) and made.count != self.lanes_said(parts["dtype"]):
                raise IllFormed("a dtype of other lanes")
            return made
        if info.params or op == "Bitcast":
            operands = [self.one(parts[o.name]) for o in info.operands]
            return U.lanewise(self.function(op, parts, at), operands, info.commutative, (0,) if op == "Where" else ())
        raise Unsupported(f"{op} among rules about axes")

    def function(self, op: str, parts: dict[str, Any], at: Any) -> Symbol:
        """The function of values that a pointwise op is: where the dtype of its result does not tell that of its operands (in
        conversions and comparisons), one for each of these dtypes.
        """
        info = self.ops[op]
        if info.result in info.params:
            return Symbol("op", op)
        types = [self.type(parts[info.operands[0].name]), self.type(at)]
        if None in types:
            raise Unsupported(f"{op} of a dtype that nothing says")
        return Symbol("op", op, *(ty.element for ty in types if ty is not None))

    def op_unroll(self, parts: dict[str, Any], at: Any) -> Vector:
        axes = self.axes(parts["axes"])
        inner = parts["src"]
        below = self.type(inner)
        if isinstance(at, S.Pattern) and below is not None and isinstance(below.lanes, str) and below.lanes not in self.lanes:
            self.lanes[below.lanes] = self.lane_count(self.rule.type_of(at)) * U.width(axes)
        x = self.one(inner)
        if isinstance(x, Statement):
            raise Unsupported("an unrolled statement")
        made = U.unroll(x, axes)
        if isinstance(at, S.Pattern):
            lanes = self.rule.type_of(at).lanes
            if made.count != (lanes if isinstance(lanes, int) else self.lanes.setdefault(lanes, made.count)):
                raise Inapplicable
        return made

    def op_contract(self, parts: dict[str, Any], at: Any) -> Any:
        x = self.one(parts["src"])
        axes = self.axes(parts["axes"])
        if isinstance(x, Statement):
            return U.closing(x.effects, [i for i, _ in axes], ())
        return U.contract(x, axes)

    def op_gep(self, parts: dict[str, Any], at: Any) -> Vector:
        x = self.one(parts["vector"])
        part = parts["indices"]
        if isinstance(part, S.PVar) and part.name not in self.names:
            count = self.sizes.one("length", called(part.name), U.SOME)
            chosen = tuple(self.picks.pick(x.count) for _ in range(count))
            if part.ignored:
                return U.gep(x, chosen)
            self.names[part.name] = chosen
        return U.gep(x, self.names[part.name] if isinstance(part, S.PVar) else self.value(part))

    def op_vectorize(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.joined(self.many(parts["elements"]), single=True)

    def op_cat(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.joined(self.many(parts["sources"]), single=False)

    def op_vconst(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.constants(self.many(parts.get("values", parts.get("value"))))

    def op_range(self, parts: dict[str, Any], at: Any) -> Vector:
        """A range that is vectorized: the axis of its number."""
        kind, end, label = parts.get("axis"), parts["end"], parts.get("id")
        if getattr(kind, "name", "") not in VECTOR_AXES or not isinstance(end, S.PConst) or not isinstance(label, S.PVar):
            raise Unsupported("a range that is not vectorized")
        axis, length = self.sizes.one("axes", f"range {called(label.name)}", U.ONE_AXIS)
        self.there.add((axis, length))
        if end.name is not None:
            self.bound(end.name, length)
        self.bound(label.name, axis)
        return U.unroll(U.constants(range(length)), ((axis, length),))

    def op_index(self, parts: dict[str, Any], at: Any) -> Vector:
        buffer = self.one(parts["buffer"])
        indices = self.many(parts["indices"])
        gate = self.optional(parts.get("gate"))
        if not indices:
            raise IllFormed("no indices")
        operands = [buffer, *indices, *([] if gate is None else [gate])]
        return U.lanewise(Symbol("op", f"Index{'' if gate is None else ' gated'}"), operands, scalars=range(len(operands)))

    def op_load(self, parts: dict[str, Any], at: Any) -> Vector:
        place = self.one(parts["index"])
        alt = self.optional(parts.get("alt"))
        if isinstance(at, S.Pattern) and self.lane_count(self.rule.type_of(at)) != place.count:
            raise Inapplicable  # a load of several elements from one place on
        return U.lanewise(Symbol("op", "Load"), [place] if alt is None else [place, alt])

    def op_store(self, parts: dict[str, Any], at: Any) -> Statement:
        place, value = self.one(parts["index"]), self.one(parts["value"])
        if place.count != value.count:
            raise IllFormed("a store of other lanes than its places")
        done = U.lanewise(Symbol("op", "Store"), [place, value])
        return self.over(
            lambda where: [done.at(where, k) for k in range(done.count)], self.many(parts.get("ranges"), binder=True)
        )

    def op_end(self, parts: dict[str, Any], at: Any) -> Statement:
        body = self.one(parts["body"])
        if not isinstance(body, Statement):
            raise Unsupported("a loop around a value")
        return self.over(body.effects, self.many(parts.get("ranges"), binder=True))

    def over(self, effects: Callable[[U.Iteration], list[U.Term]], ranges: tuple[Vector, ...]) -> Statement:
        return U.closing(effects, closed_by(ranges), [r for r in ranges if not r.axes])

    def op_reduce(self, parts: dict[str, Any], at: Any) -> Vector:
        x: Vector = self.one(parts["src"])
        ranges = self.many(parts.get("ranges"), binder=True)
        op = self.folding(parts.get("op", ANY_FOLD))
        count = x.count
        if isinstance(at, S.Pattern):
            count = self.lane_count(self.rule.type_of(at))
        elif "dtype" in parts:
            count = self.lanes_said(parts["dtype"])
        elif at is self.rule.syntax.target:
            count = self.wanted
        if not ranges and count == x.count:
            return x
        return U.fold(op, x, count, closed_by(ranges), [r for r in ranges if not r.axes])

    def op_after(self, parts: dict[str, Any], at: Any) -> Any:
        x = self.one(parts["passthrough"])
        deps = self.many(parts.get("deps"))
        if isinstance(x, Statement):
            raise Unsupported("a statement after others")

        def lane(where: U.Iteration, k: int) -> U.Term:
            tokens = [e for d in deps for e in (d.effects(where) if isinstance(d, Statement) else [d.at(where, 0)])]
            return U.term("After", [x.at(where, k), *tokens])

        return Vector(x.count, lane)

    def op_invalid(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.splat(U.term("Invalid"))

    def target(self, e: S.Expr, pattern: Any) -> Any:
        self.wanted = pattern.count if isinstance(pattern, Vector) else 1
        return self.value(e)


def closed_by(ranges: tuple[Vector, ...]) -> list[int]:
    return [i for r in ranges for i, _ in r.axes]


def same_lanes(pattern: Vector, target: Vector, iterations: Sequence[U.Iteration]) -> list[Difference]:
    """Wherever two nodes are not one and the same term; IllFormed if they have other lanes."""
    if target.count != pattern.count and not target.any_width:
        raise IllFormed(f"{target.count} lanes for {pattern.count}")
    pairs = [(pattern.at(w, k), target.at(w, k)) for w in iterations for k in range(pattern.count)]
    said = U.TERMS
    return [
        Difference(said.expression(p) == said.expression(t), said.text(p), said.text(t), said.plainly_other(p, t))
        for p, t in pairs
        if p != t
    ]


def same_effects(pattern: list[U.Term], target: list[U.Term]) -> list[Difference]:
    """Claims that two sets are one, for every member that is not plainly in both."""
    if set(pattern) == set(target):
        return []
    said = U.TERMS
    found = []
    for some, others in ((pattern, target), (target, pattern)):
        for e in some:
            if e not in others:
                claim = either(*(said.expression(e) == said.expression(o) for o in others)) if others else FALSE
                found.append(Difference(claim, said.text(e), said.text(others[0] if others else e)))
    return found


__all__ = ["Difference", "Reading", "UnrollingEncoder", "same_lanes"]
