"""Rules about unrolled axes: both sides as functions of iterations (`unrolled`), compared at every one, for every choice of axes.

All that such a rule computes at compile time is known here: axes, lengths and lanes are enumerated up to a stated bound, values
are terms. Helpers are read by their contracts: one that ends in `result == expression` is that expression, of any other every
sequence of axes that its contract admits is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import z3

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.dsl.concrete import Concrete
from morok.dsl.values import FAILURES
from morok.prove.digest import ops_of
from morok.prove.encoding import unrolled as U
from morok.prove.encoding.freedom import conjuncts
from morok.prove.encoding.obligation import Choices, Inapplicable, Obligation
from morok.prove.encoding.places import ELEMENT
from morok.prove.encoding.unrolled import Axes, IllFormed, Statement, Vector
from morok.prove.semantics.term import FALSE, TRUE, Expr, Unsupported, both, either

OPS: Final = frozenset({"Unroll", "Contract"})
BINDERS: Final = frozenset({"Reduce", "Store", "End"})  # whose `ranges` close axes
VECTOR_AXES: Final = ("Upcast", "Unroll")
Memo = dict[tuple[Any, ...], list[Any]]


def about_axes(rule: CheckedRule) -> bool:
    """Whether a rule is about unrolled axes. Then it looks at no dtype."""
    return rule.dialect.name == "morok" and (not OPS.isdisjoint(ops_of(rule)) or asks_for_axes(rule.syntax))


class UnrollingEncoder:
    """A whole rule about unrolled axes, all choices of them in one question."""

    def __init__(self, rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> None:
        self.rule, self.instance, self.world = rule, instance, world

    def encode(self) -> Obligation:
        out, memo, picks, claims = Obligation(), Memo(), Choices(), []
        while True:
            picks.restart()
            reading = _Reading(self.rule, picks, memo)
            try:
                differences = reading.differences()
            except Inapplicable:
                pass
            else:
                claims.append(TRUE)
                if differences:  # one is enough, and says at which choice the rule is false
                    claims, out.shown = [differences[0][0]], (str(differences[0][1]), str(differences[0][2]))
                    out.facts = reading.facts(self.world)
                    break
            if not picks.advance():
                break
        if not claims:
            raise Inapplicable
        self.world.limit(U.SCOPE)
        if reading.statements:
            self.world.limit(U.UNORDERED)
        if reading.ranges:
            self.world.limit(U.NUMBERED)
        out.claim = both(*claims)
        return out


class _Reading(Concrete):
    """One choice of axes, lengths and lanes."""

    def __init__(self, rule: CheckedRule, picks: Choices, memo: Memo) -> None:
        super().__init__({})
        self.rule = rule
        self.ops = rule.dialect.ops
        self.picks = picks
        self.memo = memo
        self.lanes: dict[str, int] = {}
        self.statements = False
        self.ranges = False
        self.unnamed = 0
        self.asks = asks_for_axes(rule.syntax)
        self.learning = False

    def differences(self) -> list[tuple[Expr, Expr, Expr]]:
        """(claim, pattern, target) wherever the sides are not one and the same term."""
        try:
            pattern = self.pattern(self.rule.syntax.pattern)
        except IllFormed:
            raise Inapplicable from None
        nowhere = z3.Const("ill-formed", ELEMENT)
        try:
            for clause in self.rule.syntax.clauses:
                self.clause(clause)
            target = self.target(self.rule.syntax.target, pattern)
        except FAILURES:  # a computation without a value: the rule does not fire
            raise Inapplicable from None
        except IllFormed:
            return [(FALSE, nowhere, nowhere)]
        if isinstance(pattern, Statement) and isinstance(target, Statement):
            self.statements = True
            return same_effects(U.collected(pattern), U.collected(target))
        if not isinstance(pattern, Vector) or not isinstance(target, Vector):
            raise Unsupported("a statement for a value")
        if target.count != pattern.count and not target.any_width:
            return [(FALSE, nowhere, nowhere)]
        pairs = [(pattern.at(w, k), target.at(w, k)) for w in U.ITERATIONS for k in range(pattern.count)]
        found = [(U.TERMS.expression(p), U.TERMS.expression(t)) for p, t in pairs if p != t]
        return [(p == t, p, t) for p, t in found]

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

    # clauses

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.If):
            for c in conjuncts(clause.condition):
                self.learning = says_free(c)
                if not self.value(c):
                    raise Inapplicable
            self.learning = False
            return
        if len(clause.names) != 1:
            raise Unsupported("several names for one value")
        self.names[clause.names[0]] = self.value(clause.value)

    def call(self, e: S.ECall) -> Any:
        if e.name in self.ops:
            return self.made(e.name, self.parts(e.name, e), e)
        if e.name in self.rule.externs:
            return self.helper(self.rule.externs[e.name], tuple(self.value(a) for a in e.args))
        handler: Callable[..., Any] | None = getattr(self, f"call_{e.name}", None)
        if handler is not None:
            return handler(*[self.value(a) for a in e.args])
        try:
            return super().call(e)
        except KeyError:
            raise Unsupported(f"the function {e.name}") from None

    def call_lanes(self, x: Vector) -> int:
        return x.count

    def call_axes(self, x: Vector) -> Axes:
        return x.axes

    def call_inside(self, x: Vector) -> Vector:
        return x.inside

    def call_free_of_axes(self, x: Vector, axes: Axes) -> bool:
        """What an Unroll opens it depends on; a name does not, where the guard says so."""
        if not self.learning:
            raise Unsupported("free_of_axes where nothing may be learned of it")
        ids = {i for i, _ in axes}
        if not ids.isdisjoint(i for i, _ in x.axes):
            return False
        if x.inside.free is None:
            raise Unsupported("free_of_axes of what is no name")
        x.inside.free |= ids
        return True

    def call_dtype(self, x: Vector) -> int:
        """Of a dtype only the lanes are known."""
        return x.count

    def call_vector(self, dtype: int, lanes: int) -> int:
        return lanes

    def call_const(self, v: Vector, dtype: int) -> Vector:
        return v

    def helper(self, extern: S.Extern, arguments: tuple[Any, ...]) -> Any:
        key = (extern.name, arguments)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = promised(extern, arguments)
        if not found:
            raise Unsupported(f"{extern.name}: nothing in the scope of the proof is as its contract says")
        return found[self.picks.pick(len(found))]

    def other(self, e: S.Expr) -> Any:
        if isinstance(e, S.EStruct):
            return self.made(e.op, self.parts(e.op, e), e)
        if isinstance(e, S.EType):
            return 1
        raise Unsupported(f"{type(e).__name__} among rules about axes")

    # patterns

    def type(self, at: Any) -> Ty | None:
        found = self.rule.types.get(id(at))
        if found is None and isinstance(at, S.PVar) and at.name in self.rule.bindings:
            found = self.rule.bindings[at.name].type
        return found

    def lane_count(self, ty: Ty, own: str = "") -> int:
        if isinstance(ty.lanes, int):
            return ty.lanes
        name = ty.lanes + own
        if name not in self.lanes:
            self.lanes[name] = U.OWN[self.picks.pick(len(U.OWN))]
        return self.lanes[name]

    def pattern(self, p: Any) -> Any:
        if isinstance(p, S.PExpr):
            return self.value(p.value)
        if isinstance(p, S.PVar):
            if p.name in self.names:
                return self.names[p.name]
            self.unnamed += 1
            made = self.variable(f"{p.name}{self.unnamed}" if p.ignored else p.name, self.type(p))
            return made if p.ignored else self.bound(p.name, made)
        if isinstance(p, S.PBind):
            return self.bound(p.name, self.pattern(p.inner))
        if isinstance(p, S.PConst) and p.kind == "const":
            made = U.splat(U.constant(f"constant {p.name}"))
            made.count = self.lane_count(self.rule.type_of(p))
            return made if p.name is None else self.bound(p.name, made)
        if isinstance(p, S.POp):
            return self.made(p.ops[self.picks.pick(len(p.ops))], self.parts(p.ops[0], p), p)
        if isinstance(p, S.PStruct):
            return self.made(p.op, self.parts(p.op, p), p)
        raise Unsupported(f"{type(p).__name__} among rules about axes")

    def bound(self, name: str, made: Any) -> Any:
        if name in self.names and self.names[name] is not made:
            raise Unsupported("one name for two nodes")
        self.names[name] = made
        return made

    def variable(self, name: str, ty: Ty | None, own: str = "", binder: bool = False) -> Any:
        if ty is None or ty.pointer or ty.place:
            return U.opaque(name, 1)
        if ty.element == "void":
            return Statement(lambda where: [U.constant(f"{name}@{where}")])
        forms = U.BINDERS if binder else U.FORMS if self.asks else U.FORMS[:1]
        axes = forms[self.picks.pick(len(forms))]
        if binder:  # a loop, or what closes axes: an Unroll of constants
            return U.unroll(U.numbers(range(U.width(axes))), axes) if axes else U.opaque(name, 1)
        count = self.lane_count(ty, own)
        return U.unroll(U.opaque(f"{name}.inside", U.width(axes) * count), axes) if axes else U.opaque(name, count)

    def sequence(self, p: Any, binder: bool = False) -> tuple[Any, ...]:
        """A name for several operands."""
        if p.name in self.names:
            found: tuple[Any, ...] = self.names[p.name]
            return found
        ty = self.type(p)
        own = ty is not None and self.rule.own_lanes(ty.lanes)
        count = self.picks.pick(U.MANY + 1)
        made = tuple(self.variable(f"{p.name}#{k}", ty, f"#{k}" if own else "", binder) for k in range(count))
        if not p.name.startswith("_"):
            self.names[p.name] = made
        return made

    # parts

    def parts(self, op: str, p: Any) -> dict[str, Any]:
        """Operands and fields by name, each still as it is written; of a sequence of operands the list of its items."""
        if isinstance(p, S.PStruct):
            return {f.name: S.PVar(f.name) if f.value is None else f.value for f in p.fields}
        if isinstance(p, S.EStruct):
            return dict(p.fields)
        arguments = list(p.args)
        out: dict[str, Any] = {}
        if arguments and isinstance(arguments[-1], (S.PType, S.EType)):
            out["dtype"] = arguments.pop()
        for operand in self.ops[op].operands:
            if operand.many:
                out[operand.name], arguments = arguments, []
            elif arguments:
                out[operand.name] = arguments.pop(0)
        return out

    def one(self, part: Any) -> Any:
        if isinstance(part, S.PSome):
            part = part.inner
        return self.pattern(part) if isinstance(part, S.Pattern) else self.value(part)

    def optional(self, part: Any) -> Vector | None:
        if part is None or isinstance(part, (S.PNone, S.ENone)):
            return None
        found: Vector = self.one(part)
        return found

    def many(self, part: Any, binder: bool = False) -> tuple[Any, ...]:
        if part is None:
            return ()
        if isinstance(part, (S.PVar, S.PSequence)):
            return self.sequence(part, binder)
        if isinstance(part, S.PList):
            part = list(part.items)
        if not isinstance(part, list):
            found: tuple[Any, ...] = self.value(part)
            return found
        out: list[Any] = []
        for item in part:
            if isinstance(item, (S.PSequence, S.PVar)) and (isinstance(item, S.PSequence) or binder):
                out.extend(self.sequence(item, binder) if isinstance(item, S.PSequence) else [self.one(item)])
            elif isinstance(item, S.ESpread):
                out.extend(self.value(item.sequence))
            elif isinstance(item, S.EComprehension):
                out.extend(self.comprehension(item))
            elif isinstance(item, S.EName) and isinstance(self.names.get(item.name), tuple):
                out.extend(self.names[item.name])
            else:
                out.append(self.one(item))
        return tuple(out)

    def axes(self, part: Any) -> Axes:
        if isinstance(part, S.PVar):
            if part.name not in self.names:
                form = U.FORMS[self.picks.pick(len(U.FORMS))]
                if part.ignored:
                    return form
                self.names[part.name] = form
            found: Axes = self.names[part.name]
            return found
        given: Axes = self.value(part)
        return given

    # ops

    def made(self, op: str, parts: dict[str, Any], at: Any) -> Any:
        info = self.ops[op]
        handler: Callable[..., Any] | None = getattr(self, f"op_{op.lower()}", None)
        if handler is not None:
            return handler(parts, at)
        if info.params or op == "Bitcast":
            operands = [self.one(parts[o.name]) for o in info.operands]
            return U.lanewise(op, operands, info.commutative, (0,) if op == "Where" else ())
        raise Unsupported(f"{op} among rules about axes")

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
            count = 1 + self.picks.pick(U.MANY)
            self.names[part.name] = tuple(self.picks.pick(x.count) for _ in range(count))
        return U.gep(x, self.names[part.name] if isinstance(part, S.PVar) else self.value(part))

    def op_vectorize(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.joined(self.many(parts["elements"]), single=True)

    def op_cat(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.joined(self.many(parts["sources"]), single=False)

    def op_vconst(self, parts: dict[str, Any], at: Any) -> Vector:
        return U.numbers(self.many(parts.get("values", parts.get("value"))))

    def op_range(self, parts: dict[str, Any], at: Any) -> Vector:
        """A range that is vectorized: the axis of its number."""
        kind, end, label = parts.get("axis"), parts["end"], parts.get("id")
        if getattr(kind, "name", "") not in VECTOR_AXES or not isinstance(end, S.PConst) or not isinstance(label, S.PVar):
            raise Unsupported("a range that is not vectorized")
        self.ranges = True
        axis, length = U.AXES[self.picks.pick(len(U.AXES))]
        if end.name is not None:
            self.bound(end.name, length)
        self.bound(label.name, axis)
        return U.unroll(U.numbers(range(length)), ((axis, length),))

    def op_index(self, parts: dict[str, Any], at: Any) -> Vector:
        buffer = self.one(parts["buffer"])
        indices = self.many(parts["indices"])
        gate = self.optional(parts.get("gate"))
        if not indices:
            raise IllFormed("no indices")
        operands = [buffer, *indices, *([] if gate is None else [gate])]
        return U.lanewise(f"Index{'' if gate is None else ' gated'}", operands, scalars=range(len(operands)))

    def op_load(self, parts: dict[str, Any], at: Any) -> Vector:
        place = self.one(parts["index"])
        alt = self.optional(parts.get("alt"))
        if isinstance(at, S.Pattern) and self.lane_count(self.rule.type_of(at)) != place.count:
            raise Inapplicable  # a load of several elements from one place on
        return U.lanewise("Load", [place] if alt is None else [place, alt])

    def op_store(self, parts: dict[str, Any], at: Any) -> Statement:
        place, value = self.one(parts["index"]), self.one(parts["value"])
        if place.count != value.count:
            raise IllFormed("a store of other lanes than its places")
        done = U.lanewise("Store", [place, value])
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
        x = self.one(parts["src"])
        ranges = self.many(parts.get("ranges"), binder=True)
        op = parts["op"]
        if isinstance(op, S.PVar):
            self.bound(op.name, f"of {op.name}")
            label = op.name
        else:
            op = getattr(op, "value", op)
            label = op.name
        count = self.value(parts["dtype"]) if "dtype" in parts else x.count
        if isinstance(at, S.Pattern):
            count = self.lane_count(self.rule.type_of(at))
        elif at is self.rule.syntax.target:
            count = self.wanted
        if not ranges and count == x.count:
            return x  # type: ignore[no-any-return]
        return U.fold(label, x, count, closed_by(ranges), [r for r in ranges if not r.axes])

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
        return U.splat(U.constant("Invalid"))

    def target(self, e: S.Expr, pattern: Any) -> Any:
        self.wanted = pattern.count if isinstance(pattern, Vector) else 1
        return self.value(e)


def says_free(condition: S.Expr) -> bool:
    """Whether a condition holds only where every `free_of_axes` in it does."""
    if not isinstance(condition, S.ECall) or len(condition.args) != 1 or condition.name != "all":
        return isinstance(condition, S.ECall) and condition.name == "free_of_axes"
    over = condition.args[0]
    return isinstance(over, S.EComprehension) and all(says_free(c) for c in conjuncts(over.body))


def closed_by(ranges: tuple[Vector, ...]) -> list[int]:
    return [i for r in ranges for i, _ in r.axes]


def asks_for_axes(rule: S.Rule) -> bool:
    """Whether a rule asks of nodes whether they are unrolled."""
    todo: list[Any] = [rule.target, *rule.clauses]
    while todo:
        at = todo.pop()
        if isinstance(at, S.ECall) and at.name in ("axes", "inside"):
            return True
        todo += S.children(at)
    return False


def promised(extern: S.Extern, arguments: tuple[Any, ...]) -> list[Any]:
    """What a helper may return: what its contract says that it is, or every sequence of axes that the contract admits."""
    given = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
    if len(extern.results) != 1:
        raise Unsupported(f"{extern.name}, which has several results")
    if not all(Concrete(given).value(r) for r in extern.requires):
        raise IllFormed(f"{extern.name} on what it does not take")
    name = extern.results[0].name
    for e in extern.ensures:
        if isinstance(e, S.ECompare) and e.ops == ("==",) and isinstance(e.operands[0], S.EName) and e.operands[0].name == name:
            return [Concrete(given).value(e.operands[1])]
    return [form for form in U.FORMS if all(Concrete({**given, name: form}).value(e) for e in extern.ensures)]


def same_effects(pattern: list[U.Term], target: list[U.Term]) -> list[tuple[Expr, Expr, Expr]]:
    """Claims that two sets are one, for every member that is not plainly in both."""
    if set(pattern) == set(target):
        return []
    left, right = ([U.TERMS.expression(t) for t in terms] for terms in (pattern, target))
    found = []
    for some, others in ((left, right), (right, left)):
        for e in some:
            if not any(e.eq(o) for o in others):
                found.append((either(*(e == o for o in others)) if others else FALSE, e, others[0] if others else e))
    return found


__all__ = ["UnrollingEncoder", "about_axes"]
