"""Compile-time values: the expressions of guards and `let`."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.reading import Reading
from morok.prove.kinds import Constant, DtypeName, FloatLiteral, Node, OpName, Sequence, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import TRUE, Expr, Unsupported, both, either, is_false, is_true, negation


class Values(Reading):
    """Expressions over mathematical integers, constants, dtypes and sequences."""

    def truth(self, e: S.Expr) -> Truth:
        value = self.expression(e)
        if isinstance(value, Truth):
            return value
        if isinstance(value, bool):
            return Truth(smt.BoolVal(value))
        if isinstance(value, Constant) and value.dtype == "bool":
            return Truth(value.term.value, value.exists)
        if isinstance(value, Node) and value.dtype == "bool" and len(value.lanes) == 1:
            return Truth(value.term.value, value.term.defined)
        raise Unsupported("a condition that is no bool")

    def number(self, v: Any) -> Num:
        """A value as a mathematical integer."""
        if isinstance(v, Num):
            return v
        if isinstance(v, bool):
            return self.numbers.const(int(v))
        if isinstance(v, int):
            return self.numbers.const(v)
        if isinstance(v, Constant) and not self.world.is_float(v.dtype):
            n = self.world.number_of(v.dtype, v.term)
            return Num(n.value, both(n.exists, v.exists), bits=n.bits)
        if isinstance(v, Truth):
            n = self.numbers.n
            return Num(n.choose(v.value, n.const(1), n.const(0)), v.exists)
        if isinstance(v, Node) and not self.world.is_float(v.dtype) and len(v.lanes) == 1:  # in contracts, a node is its value
            n = self.world.number_of(v.dtype, v.term)
            return Num(n.value, both(v.term.defined, negation(v.term.invalid)), bits=n.bits)
        raise Unsupported("no number")

    def expression(self, e: S.Expr) -> Any:
        """The compile-time value, or the node, that an expression of a clause stands for."""
        if isinstance(e, S.EName):
            return self.name(e)
        if isinstance(e, S.ENumber):
            if isinstance(e.value, bool):
                return Truth(smt.BoolVal(e.value))
            return FloatLiteral(e.value) if isinstance(e.value, float) else self.numbers.const(e.value)
        if isinstance(e, S.EUnary):
            return self.unary(e)
        if isinstance(e, S.EBinary):
            return self.binary(e)
        if isinstance(e, S.ECompare):
            return self.comparison(e)
        if isinstance(e, S.ECall):
            return self.call(e)
        if isinstance(e, S.EType):
            return DtypeName(self.dtype_name(e.type))
        if isinstance(e, S.EIndex):
            return self.item(e)
        if isinstance(e, S.EList):
            return Sequence(self.items(e))
        if isinstance(e, S.EComprehension):
            return Sequence(tuple(self.comprehension(e)))
        if isinstance(e, S.ERange):
            return Sequence(tuple(self.numbers.const(i) for i in self.span(e)))
        return self.structure_expression(e)

    def structure_expression(self, e: S.Expr) -> Any:
        raise Unsupported(f"{type(e).__name__} expressions")

    def name(self, e: S.EName) -> Any:
        if e.name in self.names:
            return self.names[e.name]
        if e.name in self.instance.dtypes or e.name in self.rule.dialect.dtypes:
            return DtypeName(self.instance.dtypes.get(e.name, e.name))
        if e.name in self.rule.dialect.ops:
            return OpName(e.name)
        if any(t.lanes == e.name for t in self.rule.types.values()):
            return self.lane_number(e.name)
        raise Unsupported(f"the name {e.name}")

    def dtype_name(self, t: S.TypeSyntax) -> str:
        if isinstance(t, S.TName):
            return self.instance.dtypes.get(t.name, t.name)
        if isinstance(t, S.TMaybeInvalid):
            return self.dtype_name(t.inner)
        if isinstance(t, S.TVector):
            return self.dtype_name(t.element)
        raise Unsupported("a dtype of this form")

    def dtype_value(self, t: S.Expr) -> str:
        v = self.expression(t)
        if not isinstance(v, DtypeName):
            raise Unsupported("no dtype")
        return v.name

    def unary(self, e: S.EUnary) -> Any:
        if e.op == "not":
            t = self.truth(e.operand)
            return Truth(negation(t.value), t.exists)
        v = self.expression(e.operand)
        if isinstance(v, FloatLiteral):
            return FloatLiteral(-v.value)
        return self.numbers.unary(e.op, self.number(v))

    def binary(self, e: S.EBinary) -> Any:
        if e.op in ("and", "or"):
            a = self.truth(e.left)
            if is_false(a.value) if e.op == "and" else is_true(a.value):
                return a  # what is not evaluated need not be sayable
            b = self.truth(e.right)
            # Python's order: the right side is evaluated, and must have a value, only where the left does not decide
            decides = negation(a.value) if e.op == "and" else a.value
            value = both(a.value, b.value) if e.op == "and" else either(a.value, b.value)
            return Truth(value, both(a.exists, either(decides, b.exists)))
        left, right = self.expression(e.left), self.expression(e.right)
        if isinstance(left, Sequence) and isinstance(right, Sequence) and e.op == "+":
            return Sequence((*left.items, *right.items))
        if isinstance(left, Truth) and isinstance(right, Truth) and e.op in ("&", "|", "^"):
            combine = {"&": both, "|": either, "^": smt.Xor}[e.op]
            return Truth(combine(left.value, right.value), both(left.exists, right.exists))
        return self.numbers.binary(e.op, self.number(left), self.number(right))

    def comparison(self, e: S.ECompare) -> Truth:
        values = [self.expression(o) for o in e.operands]
        truths = [self.compare(op, a, b) for op, a, b in zip(e.ops, values, values[1:], strict=False)]
        return Truth(both(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    def compare(self, op: str, a: Any, b: Any) -> Truth:
        if isinstance(a, (DtypeName, OpName)) or isinstance(b, (DtypeName, OpName)):
            return Truth(smt.BoolVal((a == b) == (op == "==")))
        if isinstance(a, Sequence) and isinstance(b, Sequence):
            return self.compare_sequences(op, a, b)
        if isinstance(a, Truth) or isinstance(b, Truth):
            x, y = self.as_truth(a), self.as_truth(b)
            if op in ("==", "!="):
                same = x.value == y.value
                return Truth(same if op == "==" else negation(same), both(x.exists, y.exists))
        floats = [v for v in (a, b) if isinstance(v, (FloatLiteral, Constant)) and self.is_float_value(v)]
        if floats:
            return self.compare_floats(op, a, b)
        exists, value = self.numbers.compare(op, self.number(a), self.number(b))
        return Truth(value, exists)

    def compare_sequences(self, op: str, a: Sequence, b: Sequence) -> Truth:
        if op not in ("==", "!="):
            raise Unsupported("an order of sequences")
        if len(a.items) != len(b.items):
            return Truth(smt.BoolVal(op == "!="))
        pairs = [self.compare("==", x, y) for x, y in zip(a.items, b.items, strict=True)]
        same = both(*(t.value for t in pairs))
        return Truth(same if op == "==" else negation(same), both(*(t.exists for t in pairs)))

    def as_truth(self, v: Any) -> Truth:
        if isinstance(v, Truth):
            return v
        if isinstance(v, Constant) and v.dtype == "bool":
            return Truth(v.term.value, v.exists)
        n = self.number(v)
        return Truth(negation(self.numbers.eq(n.value, self.numbers.n.const(0))), n.exists)

    def is_float_value(self, v: Any) -> bool:
        return isinstance(v, FloatLiteral) or self.world.is_float(v.dtype)

    def compare_floats(self, op: str, a: Any, b: Any) -> Truth:
        """As Python compares floats: NaN with nothing, the zeros with each other."""
        dtype = next((v.dtype for v in (a, b) if isinstance(v, Constant) and self.world.is_float(v.dtype)), None)
        if dtype is None:
            raise Unsupported("a comparison of literals")
        n = self.world.arithmetic(self.world.dtype(dtype))

        def term(v: Any) -> tuple[Expr, Expr]:
            if isinstance(v, Constant):
                return v.term.value, v.exists
            if isinstance(v, FloatLiteral):
                return n.const(v.value), TRUE
            known = self.numbers.n.known(self.number(v).value)
            if known is None:
                raise Unsupported("a float compared with a computed integer")
            return n.const(float(known)), TRUE

        (x, ex), (y, ey) = term(a), term(b)
        table = {
            "<": lambda: n.lt(x, y), "<=": lambda: n.le(x, y), ">": lambda: n.lt(y, x), ">=": lambda: n.le(y, x),
            "==": lambda: n.eq(x, y), "!=": lambda: negation(n.eq(x, y)),
        }  # fmt: skip
        return Truth(table[op](), both(ex, ey))
