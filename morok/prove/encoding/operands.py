"""Operands of structural ops: by name, in sequences, and static fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from morok.dialect import OpInfo, built_in
from morok.dsl import syntax as S
from morok.dsl.checked import Ty
from morok.prove import smt
from morok.prove.encoding.facts import MOST_LANES
from morok.prove.encoding.loop_dependence import Freedom
from morok.prove.encoding.obligation import Inapplicable, reads_lanes
from morok.prove.encoding.sizes import Sizes
from morok.prove.encoding.structure_parts import (
    ELEMENT,
    LANES,
    LENGTHS,
    OPAQUE,
    Buffer,
    Effects,
    Fold,
    Loop,
    Loops,
    Place,
    View,
)
from morok.prove.forms import mentions_maybe_invalid
from morok.prove.kinds import Constant, Node, Parts, Sequence, whole
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

LANEWISE: Final = frozenset(
    {"Invalid", "Const", "Reduce", "Range", "End", "Noop", "After", "Detach", "Contiguous", "ContiguousBackward"}
)


# By which method an op of a role is read, and what this calls its operands and fields, in their order.
ROLES: Final = {
    "take": ("op_gep", "vector", "indices"),
    "join": ("op_cat", "sources"),
    "constants": ("op_vconst", "values"),
}


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
        self.sizes = Sizes(self.choices, self.world)
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
        self.expect: int | None = None  # the length that a sequence of operands must have
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
            self.lane_counts[lanes] = self.sizes.one("lanes", lanes, LANES)
        return self.lane_counts[lanes]

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
            return Buffer(name, dtype, of_numbers=ty.pointer or not built_in(self.rule.dialect))
        if dtype in OPAQUE:
            lanes = [Symbol("lane", name, i) for i in range(self.lanes_of(ty))]
            node = Node(tuple(Term(smt.Const(n, ELEMENT), smt.Bool(Symbol("defined", n))) for n in lanes), dtype)
        else:
            node = super().variable(name, ty, maybe_invalid)
        self.called[id(node)] = name
        self.kept.append(node)
        return node

    def identical(self, a: Any, b: Any) -> list[Expr]:
        if isinstance(a, (Buffer, View)) or isinstance(b, (Buffer, View)):
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
        several = [o.name for o in info.operands if o.many]
        for operand in info.operands:
            if operand.many:
                # Pad and Shrink end in two of one length
                take = len(arguments) // (len(several) - several.index(operand.name))
                out[operand.name] = arguments[:take]
                arguments = arguments[take:]
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
            if isinstance(found, (Buffer, View, Loop, Node)):
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
            was, self.expect = self.expect, self.left_for(part)
            try:
                return [v for item in part for v in self.many_item(item)]
            finally:
                self.expect = was
        found = self.expression(part)
        if isinstance(found, Sequence):
            return [self.as_operand(v) for v in found.items]
        raise Unsupported("operands of this form")

    def left_for(self, items: list[Any]) -> int | None:
        """The number of operands of the sequence among these, so that all are as many as is expected; None if nothing says it."""
        if self.expect is None:
            return None
        sequences = [i for i in items if isinstance(i, (S.PSequence, S.ESpread, S.EComprehension))]
        return self.expect - len(items) + 1 if len(sequences) == 1 else None

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
        """Operands bound to one name: a few, each of its own."""
        if name in self.names:
            found = self.names[name] if self.asking else self.value_here(name, self.names[name])
            return list(found.items) if isinstance(found, Sequence) else [found]
        length = self.sizes.one("length", called(name), LENGTHS) if self.expect is None else self.expect
        if length < 0:
            raise Inapplicable
        binding = self.rule.bindings.get(name)
        ty = self.type_or_none(at) or (binding.type if binding is not None else None)
        if ty is None:
            raise Unsupported(f"operands {name} of unknown dtype")
        ok = binding.invalid_ok if binding is not None else mentions(at)
        own = not self.one_lane and self.rule.own_lanes(ty.lanes)
        each = [replace(ty, lanes=f"{ty.lanes}#{i}") if own else ty for i in range(length)]
        sequence = self.sequence_symbol(name)
        items = tuple(self.variable(Symbol("item", sequence, i), t, ok) for i, t in enumerate(each))
        self.bind(name, Sequence(items))
        return list(items)

    def sequence_symbol(self, name: str) -> Symbol:
        """The symbol of a sequence of the pattern: one without a name is another every time."""
        if not name.startswith("_"):
            return Symbol("variable", name)
        self.unnamed += 1
        return Symbol("ignored", name, self.unnamed)

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
        if not built_in(self.rule.dialect):  # an op of this name may mean anything there
            return self.by_role(self.rule.dialect.ops[op], parts, at)
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

    def by_role(self, info: OpInfo, parts: dict[str, Any], at: S.Syntax) -> Any:
        """An op of another dialect, read as that of Morok's which rearranges lanes alike."""
        if info.role not in ROLES:
            raise Unsupported(f"the structure of {info.name}, which declares no role")
        if info.role == "constants" and any(info.field_kind(f) != "consts" for f in info.fields):
            raise Unsupported(f"{info.name}, of whose field nothing says that it holds constants")
        handler, *names = ROLES[info.role]
        theirs = [*(o.name for o in info.operands), *info.fields]
        if len(theirs) != len(names) or not parts.keys() <= set(theirs):
            raise Unsupported(f"{info.name}, which has other operands and fields than its role")
        given = Parts({ours: parts[t] for t, ours in zip(theirs, names, strict=True) if t in parts})
        return getattr(self, handler)(given, at)

    def node(self, e: S.Expr, wanted: str | None) -> Any:
        if isinstance(e, S.EStruct):
            return self.structure_expression(e)
        if isinstance(e, S.EName) and isinstance(found := self.name(e), (Buffer, View, Loop)):
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

    def static_number(self, item: Any) -> Num:
        """The number of a lane in a static list of a pattern: a literal, or a name for any."""
        if isinstance(item, (S.PLiteral, S.ENumber)):
            number: Num = self.numbers.const(whole(item))
            return number
        if isinstance(item, S.PExpr):
            return self.static_number(item.value)
        if isinstance(item, (S.PVar, S.EName)):
            if item.name not in self.names:
                made = Num(self.numbers.n.variable(self.sequence_symbol(item.name), MOST_LANES))
                self.out.learn(item.name, "value", made)
                if item.name.startswith("_"):
                    return made
                self.names[item.name] = made
            return self.number(self.names[item.name])
        return self.number(self.expression(item))

    def static_constant(self, item: Any, dtype: str) -> Constant:
        """A constant of a dtype in a static list of a pattern: a literal, or a name for any."""
        item = item.value if isinstance(item, S.PExpr) else item
        if isinstance(item, (S.PLiteral, S.ENumber)):
            return Constant(self.world.constant(dtype, item.value), dtype)
        if isinstance(item, (S.PVar, S.EName)):
            return Constant(self.any_value(None if item.name.startswith("_") else item.name, dtype), dtype)
        raise Unsupported("constants that a pattern computes")


def called(name: str) -> str:
    """The name of a sequence of the pattern in an extent."""
    return "_" if name.startswith("_") else name


def mentions(at: S.Syntax) -> bool:
    return mentions_maybe_invalid(getattr(at, "type", None))
