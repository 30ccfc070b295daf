"""Targets, and terms that facts are asked of: nodes made of what the pattern bound."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any, Final

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.prove.encoding.facts import Facts
from morok.prove.kinds import CONSTANT, INVALID, Constant, FloatLiteral, Made, Node, Truth
from morok.prove.semantics.term import Term, Unsupported

NOT_LOOKED_AT: Final = ("any", "void")


class Targets(Facts):
    """Expressions in node position."""

    def as_node(self, v: Any, dtype: str | None) -> Node:
        """A value in operand position: a constant of the dtype that the position requires."""
        if isinstance(v, Node):
            return v
        if isinstance(v, Constant) and dtype in (None, v.dtype, *NOT_LOOKED_AT):
            self.need(v.exists)
            return Node((v.term,), v.dtype, Made(CONSTANT, ()))
        if dtype is None:
            raise Unsupported("a constant whose dtype nothing says")
        if isinstance(v, FloatLiteral):
            return Node((self.world.constant(dtype, v.value),), dtype, Made(CONSTANT, ()))
        if isinstance(v, Truth):
            self.need(v.exists)
            if dtype == "bool":
                return Node((Term(v.value),), dtype, Made(CONSTANT, ()))
            v = self.either_of(v, self.constant(1), self.constant(0))
        number = self.number(v)
        self.need(number.exists, number.finite)
        return Node((self.said("constant_of", dtype, number),), dtype, Made(CONSTANT, ()))

    def node(self, e: S.Expr, wanted: str | None) -> Any:
        """A node of the target, or a term that a fact is asked of."""
        ty = self.rule.types.get(id(e))
        dtype = self.element(ty) if ty is not None else wanted
        if isinstance(e, S.ECall) and e.name in self.rule.dialect.ops:
            info = self.rule.dialect.ops[e.name]
            if not info.params:
                return self.structure_op(e)
            arguments = [a for a in e.args if not self.is_dtype(a)]
            operands = [self.operand(a, info, i, dtype) for i, a in enumerate(arguments)]
            nodes = self.agree(info, operands, dtype)
            nodes = [self.of_its_lanes(a, n, arguments) for a, n in zip(arguments, nodes, strict=True)]
            result = "bool" if info.result == "bool" else dtype
            if info.params and info.converts:
                named = [self.dtype_value(a) for a in e.args if self.is_dtype(a)]
                result = named[0] if named else dtype
            if result is None:
                result = nodes[-1].dtype
            return self.apply(info, nodes, result)
        return self.as_node(self.expression(e), dtype)

    def of_its_lanes(self, e: S.Expr, made: Node, beside: Seq[S.Expr]) -> Node:
        """An operand of an op that works lane by lane."""
        return made

    def structure_op(self, e: S.ECall) -> Any:
        if e.name == self.invalid_op:
            return self.invalid_node()
        info = self.rule.dialect.ops[e.name]
        if info.solver:
            named = [self.dtype_value(a) for a in e.args if self.is_dtype(a)]
            return self.apply(
                info,
                [self.node(a, None) for a in e.args if not self.is_dtype(a)],
                named[0] if named else self.dtype_of(e),
            )
        raise Unsupported(f"{e.name} is not pointwise")

    def invalid_node(self) -> Node:
        return Node((self.world.invalid(),), "index", Made(INVALID, ()))

    def is_dtype(self, e: S.Expr) -> bool:
        return isinstance(e, S.EType) or self.rule.sorts.get(id(e)) is Sort.DTYPE

    def operand(self, e: S.Expr, info: OpInfo, at: int, dtype: str | None) -> Any:
        if id(e) in self.rule.types or (isinstance(e, S.ECall) and e.name in self.rule.dialect.ops):
            return self.node(e, None)
        return self.expression(e)

    def agree(self, info: OpInfo, operands: Seq[Any], dtype: str | None) -> list[Node]:
        """Operands that are compile-time values take the dtype of their siblings."""
        out = []
        for i, v in enumerate(operands):
            if isinstance(v, Node):
                out.append(v)
                continue
            word = info.params[min(i, len(info.params) - 1)]
            sibling = next(
                (
                    o.dtype
                    for j, o in enumerate(operands)
                    if isinstance(o, (Node, Constant)) and info.params[min(j, len(info.params) - 1)] == word
                ),
                None,
            )
            own = dtype if word == info.result else word if word not in info.domains else None
            out.append(self.as_node(v, sibling or own))
        return out
