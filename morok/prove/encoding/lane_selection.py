"""Lanes that a rule writes one by one, and constants of so many lanes."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.constant_lanes import lanes_said
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.operands import Operands
from morok.prove.encoding.structure_parts import OPAQUE, Buffer
from morok.prove.kinds import CONSTANT, CONSTANTS, INVALID, Made, Node, Sequence
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both


class Lanes(Operands):
    """A whole rule about vectors."""

    def start_clauses(self, pattern: Any) -> None:
        if not isinstance(pattern, Node):
            raise Unsupported("a rule about what is no value")
        super().start_clauses(pattern)

    def target(self, e: S.Expr, pattern: Any) -> Any:
        return self.node(e, pattern.dtype)

    def finish(self, pattern: Any, target: Any) -> None:
        if not isinstance(target, Node):
            raise Unsupported("a target that is no value")
        if {pattern.dtype, target.dtype} <= OPAQUE:
            target = replace(target, dtype=pattern.dtype)
        if (
            len(target.lanes) == 1
            and len(pattern.lanes) > 1
            and target.made is not None
            and target.made.op in (CONSTANT, INVALID)
        ):
            target = replace(target, lanes=target.lanes * len(pattern.lanes))  # a constant fills the vector
        super().finish(pattern, target)
        self.out.claim = both(*self.must, self.out.claim)

    def op_vectorize(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return self.joined(self.many(parts["elements"]), single=True)

    def joined(self, nodes: Seq[Any], single: bool) -> Node:
        if not nodes:
            raise Inapplicable
        if not all(isinstance(n, Node) for n in nodes):
            raise Unsupported("joined storage")
        if single and any(len(n.lanes) != 1 for n in nodes):
            raise Unsupported("vectors among the elements of a vector") if self.side == "target" else Inapplicable
        return Node(tuple(t for n in nodes for t in n.lanes), nodes[0].dtype)

    def op_vconst(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        dtype = self.dtype_of(at)
        part = parts.get("values") if "values" in parts else parts.get("value")
        values = self.static(part, lambda i: self.static_constant(i, dtype))
        if not isinstance(values, Sequence):
            raise Unsupported("constants by lane, in a list that the pattern binds")
        terms = [self.as_node(v, dtype).term for v in values.items]
        return Node(tuple(terms), dtype, Made(CONSTANTS, ()))

    def like(self, x: S.Expr, value: int) -> Node:
        v = self.about(x)
        dtype = v.dtype if isinstance(v, (Buffer, Node)) else None
        if isinstance(v, Buffer) and dtype not in OPAQUE:
            return Node(
                (self.world.constant(v.dtype, float(value) if self.world.is_float(v.dtype) else value),),
                v.dtype,
                Made(CONSTANT, ()),
            )
        if dtype in OPAQUE and dtype is not None:
            if value:
                raise Unsupported("one, of a dtype that the rule does not look at")
            lanes = len(v.lanes) if isinstance(v, Node) else 1
            return Node((Term(self.zero_of(dtype)),) * lanes, dtype, Made(CONSTANT, ()))
        return super().like(x, value)

    def of_its_lanes(self, e: S.Expr, made: Node, beside: Seq[S.Expr]) -> Node:
        """An operand of an op that works lane by lane; a constant that is made with so many lanes has no others."""
        said = None if self.one_lane or not self.serves_any(made) else lanes_said(self.rule, e, beside)
        return made if said is None else of_lanes(made, said)

    def call_const(self, v: S.Expr, t: S.Expr) -> Any:
        made = super().call_const(v, t)
        if self.one_lane:
            return made
        if isinstance(t, S.ECall) and len(t.args) == 1:
            like = self.about(t.args[0])
            return replace(made, lanes=made.lanes * len(like.lanes)) if isinstance(like, Node) else made
        if isinstance(t, S.EName):
            raise Unsupported("a constant of a dtype that has a name of its own")
        ty = self.type_or_none(t)
        said = isinstance(t, S.ECall) or (ty is not None and isinstance(ty.lanes, int))
        return of_lanes(made, self.lanes_said({"dtype": t})) if said else made

    def call_lanes(self, x: S.Expr) -> Num:
        if self.one_lane:
            return super().call_lanes(x)
        number: Num = self.numbers.const(len(self.fact_node(x).lanes))
        return number

    def lane_number(self, lanes: int | str) -> Num:
        if self.one_lane or isinstance(lanes, int):
            return super().lane_number(lanes)
        number: Num = self.numbers.const(self.lane_count(lanes))
        return number


def of_lanes(made: Node, count: int) -> Node:
    """A constant of so many lanes, which serves no other number."""
    return replace(made, lanes=made.lanes[:1] * count, made=Made(CONSTANT, (), (("lanes", count),)))
