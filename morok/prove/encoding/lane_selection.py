"""Lanes: taking them out of vectors, putting them together, choosing among them."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.constant_lanes import lanes_said
from morok.prove.encoding.facts import MOST_LANES
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.operands import Operands, called
from morok.prove.encoding.structure_parts import OPAQUE, SOME, Buffer
from morok.prove.kinds import CONSTANT, CONSTANTS, Constant, Made, Node, Sequence, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both
from morok.prove.symbol import Symbol


class Lanes(Operands):
    """Gep, Vectorize, Cat, vector constants: lanes enumerated up to a stated bound."""

    def lane_list(self, part: Any) -> tuple[Num, ...]:
        """The lanes of a Gep: in a pattern any few, by name."""
        found = self.static(part, self.static_number)
        if found is None:
            name = part.name
            length = self.sizes.one("length", called(name), SOME)
            sequence = self.sequence_symbol(name)
            found = Sequence(
                tuple(Num(self.numbers.n.variable(Symbol("item", sequence, i), MOST_LANES)) for i in range(length))
            )
            for i, n in enumerate(found.items):
                self.out.learn(f"{name}[{i}]", "value", n)
            if not name.startswith("_"):
                self.names[name] = found
        return tuple(self.number(i) for i in found.items)

    def pick_lane(self, lanes: Seq[Term], at: Num) -> Term:
        """The lane at a computed place; that it exists is a premise about patterns and part of the claim about targets."""
        n = self.numbers
        self.in_range(at, len(lanes))
        chosen = lanes[0]
        for i, t in enumerate(lanes[1:], 1):
            chosen = self.said("choose", n.eq(at.value, n.n.const(i)), t, chosen)
        return chosen

    def in_range(self, at: Num, length: int) -> None:
        n = self.numbers
        low = n.compare("<=", n.const(0), at)[1]
        high = n.compare("<", at, n.const(length))[1]
        if self.side == "target":
            self.must.extend((at.exists, at.finite, low, high))
        else:
            self.need(at.exists, at.finite, low, high)

    def op_gep(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        vector = self.value_of(parts["vector"])
        if not isinstance(vector, Node):
            raise Unsupported("lanes of what is no vector")
        wanted = self.lane_list(parts["indices"])
        if vector.dtype == "void":
            return vector
        if not wanted:
            raise Inapplicable
        return Node(tuple(self.pick_lane(vector.lanes, i) for i in wanted), vector.dtype)

    def op_vectorize(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return self.joined(self.many(parts["elements"]), single=True)

    def op_cat(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return self.joined(self.many(parts["sources"]), single=False)

    op_ptrcat = op_cat

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

    def item(self, e: S.EIndex) -> Any:
        items = self.sequence(e.sequence)
        at = self.number(self.expression(e.index))
        known = self.numbers.n.known(at.value)
        if known is not None or not items:
            return super().item(e)
        self.in_range(at, len(items))
        n = self.numbers
        chosen = items[0]
        for i, v in enumerate(items[1:], 1):
            chosen = self.either_of(Truth(n.eq(at.value, n.n.const(i))), v, chosen)
        return chosen

    def either_of(self, condition: Truth, yes: Any, no: Any) -> Any:
        if isinstance(yes, Node) and isinstance(no, Node) and len(yes.lanes) == len(no.lanes):
            return Node(
                tuple(self.said("choose", condition.value, a, b) for a, b in zip(yes.lanes, no.lanes, strict=True)),
                yes.dtype,
            )
        if isinstance(yes, Constant) and isinstance(no, Constant) and yes.dtype == no.dtype:
            return Constant(
                self.said("choose", condition.value, yes.term, no.term), yes.dtype, both(yes.exists, no.exists)
            )
        return super().either_of(condition, yes, no)

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
