"""The reading of a rule about unrolled axes: its clauses, the bindings of its pattern, operands by name and in sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.concrete import Concrete
from morok.prove.encoding import unrolled as U
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.operands import called
from morok.prove.encoding.sizes import Sizes, Tried
from morok.prove.encoding.unrolled import Axes, IllFormed, Statement, Vector
from morok.prove.forms import asks_for_axes, conjuncts
from morok.prove.kinds import Parts
from morok.prove.semantics.term import Unsupported
from morok.prove.symbol import Symbol

Memo = dict[tuple[Any, ...], list[Any]]


class UnrolledReading(Concrete, ABC):
    """One choice of axes, lengths and lanes.

    sizes   where it gets them; `picks` chooses among what there is besides
    counts  how many lanes of its own a node may have
    most    how many operands a sequence may have
    there   the axes of this choice that the pattern has
    """

    counts: Tried[int] = U.LANES
    most: Tried[int] = U.MANY

    def __init__(self, rule: CheckedRule, sizes: Sizes, memo: Memo) -> None:
        super().__init__({})
        self.rule = rule
        self.ops = rule.dialect.ops
        self.sizes = sizes
        self.picks = sizes.choices
        self.memo = memo
        self.lanes: dict[str, int] = {}
        self.unnamed = 0
        self.asks = asks_for_axes(rule.syntax)
        self.learning = False
        self.there: set[tuple[int, int]] = set()

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
        """True if a node is independent of axes: it depends on those that an Unroll in it opens; a name does not, where the guard
        states it.
        """
        if not self.learning:
            raise Unsupported("free_of_axes where nothing may be learned of it")
        ids = {i for i, _ in axes}
        if not ids.isdisjoint(i for i, _ in x.axes):
            return False
        if x.inside.free is None:
            raise Unsupported("free_of_axes of what is no name")
        x.inside.free |= ids
        return True

    def call_dtype(self, x: Vector, lanes: int | None = None) -> int:
        """The lanes of a dtype; nothing else about it is known."""
        return x.count if lanes is None else lanes

    def lanes_said(self, dtype: S.Expr) -> int:
        """The lanes of a node that is built with this dtype: `dtype(x)` is that of one."""
        if isinstance(dtype, S.ECall) and dtype.name == "dtype" and len(dtype.args) == 2:
            return int(self.value(dtype))
        ty = self.type(dtype) if isinstance(dtype, S.EType) else None
        return ty.lanes if ty is not None and isinstance(ty.lanes, int) else 1

    def call_const(self, v: Vector, dtype: int) -> Vector:
        """A constant of so many lanes."""
        return Vector(dtype, v.compute)

    def helper(self, extern: S.Extern, arguments: tuple[Any, ...]) -> Any:
        key = (extern.name, arguments)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = promised(extern, arguments, self.sizes)
        if not found:
            raise Unsupported(f"{extern.name}: nothing in the scope of the proof is as its contract says")
        return found[self.picks.pick(len(found))]

    def other(self, e: S.Expr) -> Any:
        if isinstance(e, S.EStruct):
            return self.made(e.op, self.parts(e.op, e), e)
        if isinstance(e, S.EType):
            return self.lanes_said(e)
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
            self.lanes[name] = self.sizes.one("lanes", name, self.counts)
        return self.lanes[name]

    def pattern(self, p: Any) -> Any:
        if isinstance(p, S.PExpr):
            return self.value(p.value)
        if isinstance(p, S.PVar):
            if p.name in self.names:
                return self.names[p.name]
            made = self.variable(self.symbol(p.name), self.type(p))
            return made if p.ignored else self.bound(p.name, made)
        if isinstance(p, S.PBind):
            return self.bound(p.name, self.pattern(p.inner))
        if isinstance(p, S.PConst) and p.kind == "const":
            self.unnamed += 1
            made = U.splat(U.constant(Symbol("constant", self.unnamed) if p.bound is None else Symbol("value", p.bound)))
            made.count = self.lane_count(self.rule.type_of(p))
            return made if p.bound is None else self.bound(p.bound, made)
        if isinstance(p, S.POp):
            return self.made(p.ops[self.picks.pick(len(p.ops))], self.parts(p.ops[0], p), p)
        if isinstance(p, S.PStruct):
            return self.made(p.op, self.parts(p.op, p), p)
        raise Unsupported(f"{type(p).__name__} among rules about axes")

    def symbol(self, name: str) -> Symbol:
        """The symbol of a name of the pattern: without a meaning it is another one every time."""
        if not name.startswith("_"):
            return Symbol("variable", name)
        self.unnamed += 1
        return Symbol("ignored", name, self.unnamed)

    def folding(self, op: Any) -> Symbol:
        """A fold by the op that a rule names, or by any."""
        op = getattr(op, "value", op)
        if not isinstance(op, S.PVar):
            found = self.names.get(op.name)
            return Symbol("op", "fold", found if isinstance(found, Symbol) else op.name)
        any_op = self.symbol(op.name)
        if not op.ignored:
            self.bound(op.name, any_op)
        return Symbol("op", "fold", any_op)

    def bound(self, name: str, made: Any) -> Any:
        if name in self.names and self.names[name] is not made:
            raise Unsupported("one name for two nodes")
        self.names[name] = made
        return made

    def variable(self, name: Symbol, ty: Ty | None, own: str = "", binder: bool = False) -> Any:
        if ty is None or ty.pointer or ty.place:
            return U.opaque(name, 1)
        if ty.element == "void":
            return Statement(lambda where: [U.constant(Symbol("at", name, *where))])
        if binder:  # a loop, or what closes axes: an Unroll of constants
            closed = self.axes_chosen("closed", name.label, U.BINDERS)
            return U.unroll(U.constants(range(U.width(closed))), closed) if closed else U.opaque(name, 1)
        axes = self.axes_chosen("axes", f"axes({called(name.label)})", U.ANY_AXES) if self.asks else ()
        count = self.lane_count(ty, own)
        return U.unroll(U.opaque(Symbol("unrolled", name), U.width(axes) * count), axes) if axes else U.opaque(name, count)

    def sequence(self, p: Any, binder: bool = False) -> tuple[Any, ...]:
        """A name for several operands."""
        if p.name in self.names:
            found: tuple[Any, ...] = self.names[p.name]
            return found
        ty = self.type(p)
        own = ty is not None and self.rule.own_lanes(ty.lanes)
        count = self.sizes.one("length", called(p.name), self.most)
        sequence = self.symbol(p.name)
        made = tuple(self.variable(Symbol("item", sequence, k), ty, f"#{k}" if own else "", binder) for k in range(count))
        if not p.name.startswith("_"):
            self.names[p.name] = made
        return made

    # parts

    def parts(self, op: str, p: Any) -> Parts:
        """Operands and fields by name, each still as it is written; of a sequence of operands the list of its items."""
        if isinstance(p, S.PStruct):
            return Parts({f.name: S.PVar(f.name) if f.value is None else f.value for f in p.fields})
        if isinstance(p, S.EStruct):
            return Parts(p.fields)
        arguments = list(p.args)
        out = Parts()
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
                form = self.axes_chosen("axes", called(part.name), U.ANY_AXES)
                if part.ignored:
                    return form
                self.names[part.name] = form
            found: Axes = self.names[part.name]
            return found
        return self.made_axes(self.value(part))

    def axes_chosen(self, kind: str, name: str, tried: Tried[Axes]) -> Axes:
        """Some axes that the pattern has."""
        found = self.sizes.one(kind, name, tried)
        self.there.update(found)
        return found

    def made_axes(self, axes: Axes) -> Axes:
        """Axes of a node that a rule makes: each once, with the length that it has everywhere, and of those that are there. Of
        another nobody knows which length it has in the graph around.
        """
        lengths = dict(self.there)
        if len({i for i, _ in axes}) < len(axes) or any(lengths.get(i, n) != n for i, n in axes):
            raise IllFormed(f"no axes {axes}")
        if any(i not in lengths for i, _ in axes):
            raise Unsupported("an axis that the pattern does not have")
        return axes

    # ops

    @abstractmethod
    def made(self, op: str, parts: dict[str, Any], at: Any) -> Any:
        """A node of this op."""


def says_free(condition: S.Expr) -> bool:
    """True if the condition implies every `free_of` in it, so that the proof may assume each of them."""
    if not isinstance(condition, S.ECall) or len(condition.args) != 1 or condition.name != "all":
        return isinstance(condition, S.ECall) and condition.name in ("free_of_axes", "free_of")
    over = condition.args[0]
    return isinstance(over, S.EComprehension) and all(says_free(c) for c in conjuncts(over.body))


def promised(extern: S.Extern, arguments: tuple[Any, ...], sizes: Sizes) -> list[Any]:
    """The possible results of a helper: the one that its contract states, or every sequence of axes that the contract admits."""
    given = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
    if len(extern.results) != 1:
        raise Unsupported(f"{extern.name}, which has several results")
    if not all(Concrete(given).value(r) for r in extern.requires):
        raise IllFormed(f"{extern.name} on what it does not take")
    name = extern.results[0].name
    for e in extern.ensures:
        if isinstance(e, S.ECompare) and e.ops == ("==",) and isinstance(e.operands[0], S.EName) and e.operands[0].name == name:
            return [Concrete(given).value(e.operands[1])]
    forms = sizes.all("axes", f"{extern.name}.{name}", U.ANY_AXES)
    return [form for form in forms if all(Concrete({**given, name: form}).value(e) for e in extern.ensures)]
