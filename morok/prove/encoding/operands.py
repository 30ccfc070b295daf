"""Operands of structural ops: by name, in sequences, and static fields.

Of a rule that works lane by lane two lanes stand for all (`lane_by_lane`). Any other rule of Morok's about any number of lanes,
or of operands, is for the reading at every size: here nodes have the lanes that the rule writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import Ty
from morok.prove import smt
from morok.prove.encoding.lane_by_lane import MOST_NEEDED, lane_by_lane
from morok.prove.encoding.loop_dependence import Freedom
from morok.prove.encoding.obligation import Inapplicable, reads_lanes
from morok.prove.encoding.structure_parts import ELEMENT, OPAQUE, Buffer, Effects, Fold, Loop, Loops, Place
from morok.prove.forms import mentions_maybe_invalid
from morok.prove.kinds import Constant, Node, Parts, Sequence
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

LANEWISE: Final = frozenset({"Invalid", "Const", "Reduce", "Range", "End", "Group", "After"})


class Operands(Freedom):
    """A rule about structure: its parts.

    phase       how a Reduce is read: "base" as its identity, "first" over one iteration, "before" and "after" one step
    behind      by the identity of a node that is read, or waits for effects: what its lanes are once more of these are done
    stored      the places and values of a statement that stores, lane by lane, by its identity
    kept        what tables know by identity, so that no other object gets the same
    introduced  how many ranges and shapes were made so far: each is an unknown of its own
    called      the symbols of variables, by the identities of their nodes
    """

    def __init__(self, *args: Any, phase: str = "before") -> None:
        super().__init__(*args)
        self.phase = phase
        ops = self.rule.dialect.ops
        self.one_lane = not reads_lanes(self.rule) and all(
            ops[n].params or ops[n].solver or n in LANEWISE for n in ops_of(self.rule)
        )
        self.by_induction = not any(n in ("Range", "End") for n in ops_of(self.rule))
        self.places: dict[int, tuple[Place, ...]] = {}
        self.loops: dict[str, Any] = {}
        self.ranges: dict[int, Loop] = {}  # by the identity of their nodes
        self.folds: list[Fold] = []
        self.lane_counts: dict[str, int] = {}
        self.behind: dict[int, Callable[[Effects], tuple[Term, ...]]] = {}
        self.stored: dict[int, tuple[tuple[Place, ...], tuple[Term, ...]]] = {}
        self.kept: list[Any] = []
        self.introduced = 0
        self.called: dict[int, Symbol] = {}

    def another(self) -> int:
        """A number for something that the rule makes, the same in every reading of it."""
        self.introduced += 1
        return self.introduced

    def type_or_none(self, node: S.Syntax) -> Ty | None:
        return self.rule.types.get(id(node))

    def lanes_of(self, ty: Ty) -> int:
        if isinstance(ty.lanes, int):
            return ty.lanes
        return 1 if self.one_lane or (ty.fixed and ty.element == "void") else self.lane_count(ty.lanes)

    def lane_count(self, lanes: str) -> int:
        """The number of lanes that the nodes of one kind are read at now."""
        if lanes not in self.lane_counts:
            self.lane_counts[lanes] = self.some_lanes(lanes)
        return self.lane_counts[lanes]

    def some_lanes(self, of: str) -> int:
        """A number of lanes that stands for any: one or two, of a rule that works lane by lane."""
        if not lane_by_lane(self.rule):
            raise Unsupported("nodes of any number of lanes")
        named = (name for name, b in self.rule.bindings.items() if b.type is not None and b.type.lanes == of)
        return 1 + self.choices.pick(MOST_NEEDED, next(named, of))

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        if dtype in OPAQUE:
            return target.value == pattern.value
        return super().equal(dtype, target, pattern)

    def sort(self, dtype: str) -> Any:
        return ELEMENT if dtype in OPAQUE else self.world.sort(self.world.dtype(dtype))

    def zero_of(self, dtype: str) -> Expr:
        if dtype in OPAQUE:
            return smt.Const(Symbol("fixed", "zero"), ELEMENT)
        value: Expr = self.world.constant(dtype, 0.0 if self.world.is_float(dtype) else 0).value
        return value

    def variable(self, name: Symbol, ty: Ty, maybe_invalid: bool) -> Any:
        dtype = self.element(ty)
        if self.inside and name.label not in self.varies:
            self.varies[name.label] = self.inside
        if ty.pointer or ty.place:
            return Buffer(name, dtype, is_pointer=ty.pointer or not built_in(self.rule.dialect))
        if dtype in OPAQUE:
            lanes = [Symbol("lane", name, i) for i in range(self.lanes_of(ty))]
            node = Node(tuple(Term(smt.Const(n, ELEMENT), smt.Bool(Symbol("defined", n))) for n in lanes), dtype)
        else:
            node = super().variable(name, ty, maybe_invalid)
        self.called[id(node)] = name
        self.kept.append(node)
        return node

    def identical(self, a: Any, b: Any) -> list[Expr]:
        if isinstance(a, Buffer) or isinstance(b, Buffer):
            if a is not b:
                raise Inapplicable
            return []
        return super().identical(a, b)

    def parts(self, op: str, p: Any) -> Parts:
        info = self.rule.dialect.ops[op]
        if isinstance(p, S.PStruct):
            return Parts({f.name: (S.PVar(f.name) if f.value is None else f.value) for f in p.fields})
        if isinstance(p, S.EStruct):
            return Parts(p.fields)
        arguments = [a for a in p.args if not isinstance(a, (S.PType, S.EType))]
        out = Parts()
        dtypes = [a for a in p.args if isinstance(a, (S.PType, S.EType))]
        if dtypes:
            out["dtype"] = dtypes[0]
        for operand in info.operands:
            if operand.many:
                out[operand.name], arguments = arguments, []
            elif arguments:
                given = arguments.pop(0)  # by its place it is there; by a field's name it need not be
                out[operand.name] = S.PSome(given) if operand.optional and isinstance(given, S.Pattern) else given
        return out

    def value_of(self, part: Any) -> Any:
        if isinstance(part, S.PExpr):
            part = part.value
        if isinstance(part, S.PSome):
            part = part.inner
        return self.pattern(part) if isinstance(part, S.Pattern) else self.operand_value(part)

    def operand_value(self, e: S.Expr) -> Any:
        if isinstance(e, S.EName):
            found = self.name(e)
            if isinstance(found, (Buffer, Loop, Node)):
                return found
        return self.node(e, None)

    def many(self, part: Any) -> list[Any]:
        """A sequence of operands, each a value; a name for all that remain is a list of its own."""
        if part is None:
            return []
        if isinstance(part, S.PList):
            part = list(part.items)
        if isinstance(part, S.PVar):
            return self.rest(part.name, part)
        if isinstance(part, S.PSequence):
            return self.rest(part.name, part)
        if isinstance(part, list):
            return [v for item in part for v in self.many_item(item)]
        found = self.expression(part)
        if isinstance(found, Sequence):
            return [self.as_operand(v) for v in found.items]
        raise Unsupported("operands of this form")

    def many_item(self, item: Any) -> list[Any]:
        if isinstance(item, S.PSequence):
            return self.rest(item.name, item)
        if isinstance(item, S.ESpread):
            return self.many(item.sequence)
        if isinstance(item, S.EComprehension):
            ty = self.type_or_none(item.body)
            return [self.as_operand(v, None if ty is None else self.element(ty)) for v in self.comprehension(item)]
        return [self.value_of(item)]

    def as_operand(self, v: Any, dtype: str | None = None) -> Any:
        return v if isinstance(v, (Node, Loop, Loops, Buffer)) else self.as_node(v, dtype)

    def rest(self, name: str, at: S.Syntax) -> list[Any]:
        """Operands bound to one name."""
        if name not in self.names:
            return self.any_operands(name, at)
        found = self.names[name] if self.asking else self.value_here(name, self.names[name])
        return list(found.items) if isinstance(found, Sequence) else [found]

    def any_operands(self, name: str, at: S.Syntax) -> list[Any]:
        raise Unsupported("any number of operands")

    def structure_pattern(self, p: S.Pattern) -> Any:
        if isinstance(p, S.PStruct):
            return self.structural(p.op, self.parts(p.op, p), p)
        if isinstance(p, S.PExpr):
            return self.expression(p.value)
        return super().structure_pattern(p)

    def structure_op_pattern(self, op: str, p: S.POp) -> Any:
        if op == self.invalid_op or self.rule.dialect.ops[op].solver:
            return super().structure_op_pattern(op, p)
        return self.structural(op, self.parts(op, p), p)

    def structure_op(self, e: S.ECall) -> Any:
        if e.name == self.invalid_op or self.rule.dialect.ops[e.name].solver:
            return super().structure_op(e)
        return self.structural(e.name, self.parts(e.name, e), e)

    def structure_expression(self, e: S.Expr) -> Any:
        if isinstance(e, S.EStruct):
            return self.structural(e.op, self.parts(e.op, e), e)
        if isinstance(e, S.ESpread):
            return Sequence(tuple(self.many(e.sequence)))
        return super().structure_expression(e)

    def structural(self, op: str, parts: dict[str, Any], at: S.Syntax) -> Any:
        handler = getattr(self, f"op_{op.lower()}", None)
        if handler is None:
            raise Unsupported(f"the structure of {op}")
        made = handler(parts, at)
        if (
            "dtype" in parts
            and isinstance(at, S.Expr)
            and not (isinstance(made, Node) and len(made.lanes) == self.lanes_said(parts))
        ):
            raise Unsupported("a dtype of other lanes than what is made")
        return made

    def lanes_said(self, parts: dict[str, Any]) -> int:
        """The lanes of a node that is built with the dtype among its parts: `dtype(x)` is that of one."""
        dtype = parts["dtype"]
        if isinstance(dtype, S.ECall) and dtype.name == "dtype" and len(dtype.args) == 2:
            known = self.numbers.n.known(self.number(self.expression(dtype.args[1])).value)
            if known is None:
                raise Unsupported("a computed number of lanes")
            return int(known)
        ty = self.type_or_none(dtype)
        return ty.lanes if isinstance(dtype, S.EType) and ty is not None and isinstance(ty.lanes, int) else 1

    def node(self, e: S.Expr, wanted: str | None) -> Any:
        if isinstance(e, S.EStruct):
            return self.structure_expression(e)
        if isinstance(e, S.EName) and isinstance(found := self.name(e), (Buffer, Loop)):
            return found.node if isinstance(found, Loop) else found
        return super().node(e, wanted)

    def static(self, part: Any, read: Callable[[Any], Any]) -> Any:
        """A static field: bound where the pattern names it, else computed; `read`: the items of a list that a pattern writes."""
        if isinstance(part, S.PVar):
            return self.names.get(part.name, None)
        if isinstance(part, S.PList):
            return Sequence(tuple(map(read, part.items)))
        if isinstance(part, S.PExpr):
            part = part.value
        if self.side == "pattern" and isinstance(part, S.EList):
            return Sequence(tuple(map(read, part.items)))
        if (
            self.side == "pattern"
            and isinstance(part, S.EName)
            and part.name not in self.names
            and part.name in self.rule.bindings
        ):
            return None
        return self.expression(part)

    def static_constant(self, item: Any, dtype: str) -> Constant:
        """A constant of a dtype in a static list of a pattern: a literal, or a name for any."""
        item = item.value if isinstance(item, S.PExpr) else item
        if isinstance(item, (S.PLiteral, S.ENumber)):
            return Constant(self.world.constant(dtype, item.value), dtype)
        if isinstance(item, (S.PVar, S.EName)):
            return Constant(self.any_value(None if item.name.startswith("_") else item.name, dtype), dtype)
        raise Unsupported("constants that a pattern computes")


def mentions(at: S.Syntax) -> bool:
    return mentions_maybe_invalid(getattr(at, "type", None))
