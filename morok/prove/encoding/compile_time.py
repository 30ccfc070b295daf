"""Compile-time values: the expressions of guards and `let`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.functions import BINARY, COMPARISONS, UNARY, Function
from morok.dsl.values import OutOfBudget
from morok.prove import smt
from morok.prove.encoding.encoder_state import Reading
from morok.prove.encoding.obligation import Inapplicable, OutOfSteps
from morok.prove.kinds import Constant, DtypeName, FloatLiteral, Node, OpName, Sequence, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Unsupported, both, either, is_false, is_true, negation
from morok.prove.smt import FALSE, TRUE, Expr


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
        if isinstance(value, Node) and value.dtype == "bool" and len(value.lanes) == 1 and self.promising:
            return Truth(value.term.value, value.term.defined)
        raise Unsupported("a condition that is no bool")

    @property
    def promising(self) -> bool:
        """True in a contract, where a node is its value; a rule's clauses know nodes by identity."""
        return bool(self.world.place == "contracts")

    def number(self, v: Any) -> Num:
        """A value as a mathematical integer."""
        if isinstance(v, Num):
            return v
        if isinstance(v, int) and not isinstance(v, bool):  # a condition is no number, though Python's is one
            return self.numbers.const(v)
        if isinstance(v, Constant) and not self.world.is_float(v.dtype):
            n = self.said("number_of", v.dtype, v.term)
            return Num(n.value, both(n.exists, v.exists), bits=n.bits)
        if isinstance(v, Node) and self.promising and not self.world.is_float(v.dtype) and len(v.lanes) == 1:
            n = self.said("number_of", v.dtype, v.term)
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
        return self.known_dtype(v).name

    def known_dtype(self, v: DtypeName) -> DtypeName:
        """A dtype of the dialect, which its name tells from all others; Unsupported of what the rule does not look at."""
        if v.name not in self.rule.dialect.dtypes:
            raise Unsupported("a dtype that the rule does not look at")
        return v

    def arguments(self, function: Function, operands: Seq[S.Expr]) -> tuple[Any, ...]:
        kinds = function.kinds(len(operands))
        return tuple(self.argument(kind, e) for kind, e in zip(kinds, operands, strict=True))

    def argument(self, kind: str, e: S.Expr) -> Any:
        if kind == "bool":
            return self.truth(e)
        value = self.expression(e)
        if isinstance(value, Sequence) and kind in ("seq", "ints", "bools", "several"):
            return value.items
        if isinstance(value, Sequence) and kind == "pairs":
            if not all(isinstance(p, Sequence) and len(p.items) == 2 for p in value.items):
                raise Unsupported("axes that are no pairs")
            pairs = tuple(tuple(self.number(n) for n in p.items) for p in value.items)
            self.need(*(c for pair in pairs for n in pair for c in (n.exists, n.finite)))
            return pairs
        if kind not in ("int", "several"):
            raise Unsupported("no sequence")
        return self.number(value)

    # the domain of the table's meanings

    def constant(self, value: int) -> Num:
        number: Num = self.numbers.const(value)
        return number

    def operation(self, name: str, *operands: Num) -> Num | Truth:
        """An operation on integers: where it has a value, all its operands have one and none is infinite."""
        a = operands[0]
        if name == "is_pow2":
            return Truth(self.numbers.is_power(a), both(a.exists, a.finite))
        return self.numbers.unary(name, a) if len(operands) == 1 else self.numbers.binary(name, *operands)

    def combined(self, op: str, values: Seq[Any], empty: int | None = None) -> Num:
        """An operation over integers, or over the items of one sequence; of none at all, `empty`, or no value. Where it has none
        for no items, it is of one item the operation on it twice: the divisor of -7 alone is 7.
        """
        items = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        numbers = [self.number(v) for v in items]
        if not numbers:
            if empty is None:
                raise Inapplicable
            return self.constant(empty)
        out = Num(numbers[0].value, both(numbers[0].exists, numbers[0].finite), bits=numbers[0].bits)
        for n in numbers[1:] or (numbers if empty is None else ()):
            out = self.numbers.binary(op, out, n)
        return out

    def opposite(self, t: Truth) -> Truth:
        return Truth(negation(t.value), t.exists)

    def unary(self, e: S.EUnary) -> Any:
        if e.op == "-" and isinstance(e.operand, S.ENumber) and isinstance(e.operand.value, float):
            return FloatLiteral(-e.operand.value)
        return UNARY[e.op].meaning(self, *self.arguments(UNARY[e.op], (e.operand,)))

    def binary(self, e: S.EBinary) -> Any:
        if e.op not in ("and", "or"):
            return BINARY[e.op].meaning(self, *self.arguments(BINARY[e.op], (e.left, e.right)))
        return self.then(e.op, self.truth(e.left), lambda: self.truth(e.right))

    def then(self, op: str, a: Truth, right: Callable[[], Truth]) -> Truth:
        """`and` or `or`, as in Python: the right side must have a value only where the left does not decide."""
        if is_false(a.value) if op == "and" else is_true(a.value):
            return a  # what is not evaluated need not be sayable
        try:
            b, needed = self.reading(right)
        except Inapplicable:
            b, needed = Truth(FALSE), FALSE
        decides = negation(a.value) if op == "and" else a.value
        value = both(a.value, b.value) if op == "and" else either(a.value, b.value)
        return Truth(value, both(a.exists, either(decides, both(b.exists, needed))))

    def comparison(self, e: S.ECompare) -> Truth:
        """Each operand is evaluated once, and only where the comparisons before it hold."""
        left = self.expression(e.operands[0])
        truth = Truth(TRUE)
        for n, (op, operand) in enumerate(zip(e.ops, e.operands[1:], strict=True)):
            values = [left]

            def held(op: str = op, operand: S.Expr = operand, values: list[Any] = values) -> Truth:
                values.append(self.expression(operand))
                truth: Truth = COMPARISONS[op].meaning(self, *values)
                return truth

            truth = held() if n == 0 else self.then("and", truth, held)
            if len(values) < 2:
                return truth
            left = values[1]
        return truth

    def compare(self, op: str, a: Any, b: Any) -> Truth:
        if isinstance(a, (DtypeName, OpName)) or isinstance(b, (DtypeName, OpName)):
            same = all(self.known_dtype(v) for v in (a, b) if isinstance(v, DtypeName)) and a == b
            return Truth(smt.BoolVal(same == (op == "==")))
        if isinstance(a, Sequence) and isinstance(b, Sequence):
            return self.compare_sequences(op, a, b)
        if isinstance(a, Sequence) or isinstance(b, Sequence):
            raise Unsupported("a sequence compared with a number")
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
        try:
            self.steps.taken(a.items)
        except OutOfBudget:
            raise OutOfSteps("a comparison beyond the budget of steps") from None
        pairs = [self.compare("==", x, y) for x, y in zip(a.items, b.items, strict=True)]
        same = both(*(t.value for t in pairs))
        return Truth(same if op == "==" else negation(same), both(*(t.exists for t in pairs)))

    def as_truth(self, v: Any) -> Truth:
        if isinstance(v, Truth):
            return v
        if isinstance(v, Constant) and v.dtype == "bool":
            return Truth(v.term.value, v.exists)
        if isinstance(v, Node) and self.promising and v.dtype == "bool" and len(v.lanes) == 1:
            return Truth(v.term.value, both(v.term.defined, negation(v.term.invalid)))
        raise Unsupported("no bool")

    def is_float_value(self, v: Any) -> bool:
        return isinstance(v, FloatLiteral) or self.world.is_float(v.dtype)

    def compare_floats(self, op: str, a: Any, b: Any) -> Truth:
        """The comparison of floats as Python makes it: NaN with nothing, the zeros with each other."""
        dtype = next((v.dtype for v in (a, b) if isinstance(v, Constant) and self.world.is_float(v.dtype)), None)
        if dtype is None:
            raise Unsupported("a comparison of literals")
        n = self.world.arithmetic(self.world.dtype(dtype))

        def term(v: Any) -> tuple[Expr, Expr]:
            if isinstance(v, Constant):
                return v.term.value, v.exists
            if isinstance(v, FloatLiteral) and not self.promising:
                raise Unsupported("a float literal compared")
            known = v.value if isinstance(v, FloatLiteral) else self.numbers.n.known(self.number(v).value)
            if known is None:
                raise Unsupported("a float compared with a computed integer")
            made = n.const(float(known))
            if n.read(made) != known:  # an evaluator compares with the number itself
                raise Unsupported("a float compared with a number that its dtype has none of")
            return made, TRUE

        (x, ex), (y, ey) = term(a), term(b)
        if x.sort != y.sort:
            raise Unsupported("a comparison of floats of two dtypes")
        table: dict[str, Callable[[], Expr]] = {
            "<": lambda: n.lt(x, y), "<=": lambda: n.le(x, y), ">": lambda: n.lt(y, x), ">=": lambda: n.le(y, x),
            "==": lambda: n.eq(x, y), "!=": lambda: negation(n.eq(x, y)),
        }  # fmt: skip
        return Truth(table[op](), both(ex, ey))
