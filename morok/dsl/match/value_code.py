"""The code of compile-time values of a rule: the table's functions, facts, evaluation, conditions."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import Sort, Ty
from morok.dsl.functions import BINARY, FUNCTIONS, UNARY, Function
from morok.dsl.match.code import BINARY as OPERATORS
from morok.dsl.match.code import UNARY as PREFIXES
from morok.dsl.match.matched import Matched, helper_name

WIDEST_LITERAL: Final = 128  # bits: powers of two up to here are written out
AMOUNTS: Final = {"<<": "shift", ">>": "shift", "log2": "power", "is_pow2": "power"}  # the extents of last operands
NODES: Final = frozenset(("zero", "one", "const", "identity", "subst"))  # calls that make nodes


class ValueCode(ABC):
    """The code of numbers, conditions, dtypes. Nodes and sequences are `NodeCode`'s."""

    def __init__(self, matched: Matched) -> None:
        self.matched = matched
        self.rule = matched.rule
        self.dialect = matched.dialect
        self.access = matched.access
        self.code = matched.code

    @abstractmethod
    def node(self, e: S.Expr) -> ast.expr:
        """The code of a node."""

    @abstractmethod
    def any(self, e: S.Expr) -> ast.expr:
        """The code of an expression of any sort."""

    @abstractmethod
    def sequence(self, e: S.Expr) -> ast.expr:
        """The code of a sequence."""

    def value(self, e: S.Expr) -> ast.expr:
        match e:
            case S.EName():
                return self.matched.name(e.name)
            case S.ENumber():
                return self.code.constant(e.value)
            case S.EUnary():
                return self.applied(UNARY[e.op], (e.operand,))
            case S.EBinary(op="and"):
                return self.code.all_of((self.condition(e.left), self.condition(e.right)))
            case S.EBinary(op="or"):
                return self.code.any_of((self.condition(e.left), self.condition(e.right)))
            case S.EBinary():
                return self.arithmetic(e)
            case S.ECompare():
                return self.comparison(e)
            case S.ECall():
                return self.call(e)
            case S.EIndex():
                return self.item(e)
            case S.EList() | S.EComprehension() | S.ERange():
                return self.sequence(e)
            case S.EType():
                return self.matched.type_syntax(e.type)
            case S.ENone():
                return self.code.none
        raise AssertionError(f"{type(e).__name__} has no value")

    def arithmetic(self, e: S.EBinary) -> ast.expr:
        left, right = e.left, e.right
        if isinstance(right, S.ENumber):
            if e.op == "<<" and isinstance(left, S.ENumber) and left.value >= 0 and 0 <= right.value < WIDEST_LITERAL:
                return self.code.constant(int(left.value) << int(right.value))
            if e.op in ("//", "%") and right.value:
                return self.code.binary(self.finite(left), e.op, self.finite(right))
        return self.applied(BINARY[e.op], (left, right))

    def applied(self, function: Function, operands: Sequence[S.Expr]) -> ast.expr:
        """The code of a function or operator applied to operands."""
        kinds = function.kinds(len(operands))
        symbol = str(function.code).strip()
        codes = [self.argument(kind, e) for kind, e in zip(kinds, operands, strict=True)]
        most = self.matched.most.get(AMOUNTS.get(function.name, ""))
        if most is not None and not isinstance(operands[-1], S.ENumber):
            codes[-1] = self.checked("_upto", codes[-1], self.code.constant(most))
        self.matched.raises = self.matched.raises or function.partial
        if len(codes) == 1 and symbol in PREFIXES:
            return self.code.unary(symbol, codes[0])
        if symbol in OPERATORS:
            return self.code.binary(codes[0], symbol, codes[1])
        return self.code.call(symbol, *codes)

    def argument(self, kind: str, e: S.Expr) -> ast.expr:
        match kind:
            case "int":
                return self.finite(e)
            case "bool":
                return self.condition(e)
            case "seq" | "ints" | "bools" | "pairs":
                return self.items(e)
        return self.any(e)

    def checked(self, check: str, *values: ast.expr) -> ast.expr:
        """The code of a check that returns its first value, or raises."""
        self.matched.raises = True
        return self.code.call(check, *values)

    def finite(self, e: S.Expr) -> ast.expr:
        """A number as an operand of arithmetic: an infinite bound, or a field that is no number, makes the clause fail."""
        value = self.value(e)
        if self.matched.sort(e) is Sort.OTHER:
            return self.checked("_integer", value)
        if id(e) not in self.rule.unbounded:
            return value
        if self.matched.iterating:  # Python allows no assignment in the source of a comprehension
            return self.checked("_finite", value)
        self.matched.raises = True
        name = self.matched.temporary()
        kind = self.code.attribute(self.code.assigned(name, value), "__class__")
        is_finite = self.code.compare(kind, "is not", self.code.name("float"))
        return self.code.choice(is_finite, self.code.name(name), self.code.call("_no_value"))

    def condition(self, e: S.Expr) -> ast.expr:
        """A condition; a field that is no bool makes the clause fail."""
        value = self.value(e)
        return self.checked("_truth", value) if self.matched.sort(e) is Sort.OTHER else value

    def items(self, e: S.Expr) -> ast.expr:
        """A sequence; a field that is none makes the clause fail."""
        items = self.sequence(e)
        return self.checked("_sequence", items) if self.matched.sort(e) is Sort.OTHER else items

    def item(self, e: S.EIndex) -> ast.expr:
        """An item of a sequence: nothing is counted from the end."""
        self.matched.raises = True
        sequence, index = self.items(e.sequence), self.finite(e.index)
        return self.code.item(sequence, index) if self.from_zero(e.index) else self.code.call("_item", sequence, index)

    def from_zero(self, e: S.Expr) -> bool:
        """True if the syntax of a number shows that it is not negative."""
        match e:
            case S.ENumber():
                return not isinstance(e.value, float) and e.value >= 0
            case S.EName():
                return e.name in self.matched.counters
            case S.EBinary(op="+" | "*" | "//"):
                return self.from_zero(e.left) and self.from_zero(e.right)
            case S.EBinary(op="%"):
                return self.from_zero(e.right)
            case S.ECall(name="len" | "lanes"):
                return True
        return False

    # calls

    def call(self, e: S.ECall) -> ast.expr:
        name = e.name
        if name in self.rule.externs:
            return self.helper(e)
        if name in self.dialect.ops or name in NODES:
            return self.node(e)
        if name == "eval":
            return self.evaluate(e)
        function = FUNCTIONS.get(name)
        if function is None:
            return self.asked(e)
        make: Any = function.code
        return make(self, e) if callable(make) else self.applied(function, e.args)

    # the makers of code that `functions.py` names

    def asked(self, e: S.ECall) -> ast.expr:
        """The code of a fact, which may have no value."""
        self.matched.raises = self.matched.raises or (e.name in FUNCTIONS and FUNCTIONS[e.name].partial)
        return self.fact(e.name, *map(self.any, e.args))

    def fact(self, name: str, *arguments: ast.expr) -> ast.expr:
        """The call of the dialect's function for a fact."""
        return self.code.call(f"F_{name}", *arguments)

    def bound(self, e: S.ECall) -> ast.expr:
        node = self.node(e.args[0])
        return self.access.asked(e.name, node) if e.name in self.access.inline else self.fact(e.name, node)

    def lane_count(self, e: S.ECall) -> ast.expr:
        return self.access.lanes(self.node(e.args[0]))

    def same(self, e: S.ECall) -> ast.expr:
        return self.access.same(self.node(e.args[0]), self.node(e.args[1]))

    def dtype_asked(self, e: S.ECall) -> ast.expr:
        element = self.access.scalar(self.node(e.args[0]))
        if len(e.args) == 1:
            return element
        lanes = self.finite(e.args[1])
        is_one = isinstance(e.args[1], S.ENumber) or (isinstance(e.args[1], S.ECall) and e.args[1].name == "lanes")
        return self.access.vector(element, lanes if is_one else self.checked("_lane_count", lanes))

    def of_several(self, e: S.ECall, name: str) -> ast.expr:
        """min, max or gcd: Python's own min and max of two numbers or more."""
        if len(e.args) > 1 and name != "gcd":
            return self.code.call(name, *map(self.finite, e.args))
        self.matched.raises = True
        given = [self.items(e.args[0])] if len(e.args) == 1 else map(self.finite, e.args)
        return self.code.call({"min": "_least", "max": "_most", "gcd": "_gcd"}[name], *given)

    def of_items(self, e: S.ECall, name: str) -> ast.expr:
        """sum, all or any: Python's own if every item is certain to be a finite number or a bool."""
        over = e.args[0]
        inner = self.items(over)
        plain = isinstance(over, S.ERange) or (
            isinstance(over, S.EComprehension)
            and self.matched.sort(over.body) is Sort.VALUE
            and id(over.body) not in self.rule.unbounded
        )
        if plain:
            return self.code.call(name, inner)
        return self.checked({"sum": "_total", "all": "_every", "any": "_some"}[name], inner)

    def no_overflow(self, e: S.Expr) -> ast.expr:
        """The test that the exact result of a term fits its dtype, without building the term if the dialect can decide that."""
        if "no_overflow_of" in self.dialect.facts and isinstance(e, S.ECall) and e.name in self.dialect.ops:
            operands = [self.node(a) for a in e.args]
            if (e.name, *operands) not in self.matched.terms:
                return self.fact("no_overflow_of", self.access.key(e.name), self.code.tuple_of(operands))
        return self.fact("no_overflow", self.node(e))

    def evaluate(self, e: S.ECall) -> ast.expr:
        """`eval(op, ..)`: the op's evaluator, at the dtype of its operands (of the result, for casts). It has no value
        for a number that its dtype does not hold; floats are rounded to theirs.
        """
        op = e.args[0]
        assert isinstance(op, S.EName)
        info = self.dialect.ops[op.name]
        self.matched.raises = True
        values = [a for a in e.args[1:] if not self.matched.is_dtype(a)]
        more: list[ast.expr] = []
        if info.converts:
            result = self.matched.type(e)
            assert result is not None
            of = self.matched.element_of(result)
            more.append(self.matched.element_of(self._value_type(values[0])))
        else:
            of = self.matched.element_of(self._value_type(values[info.leading]))
        codes = []
        for word, a in zip(info.params, values, strict=True):
            dtype = self.access.dtype(word) if word not in info.domains else more[0] if more else of
            codes.append(self.finite(a) if self._is_of_a_dtype(a) else self.code.call("_held", dtype, self.finite(a)))
        return self.code.call(f"E_{op.name}", of, *codes, *more)

    def _is_of_a_dtype(self, e: S.Expr) -> bool:
        """True for the value of a constant, and the result of `eval`: the dtype may not hold any other number."""
        if isinstance(e, S.ECall):
            return e.name == "eval"
        binding = (
            self.rule.bindings.get(e.name) if isinstance(e, S.EName) and e.name not in self.matched.shadowing else None
        )
        return binding is not None and binding.type is not None

    def _value_type(self, e: S.Expr) -> Ty:
        """The dtype of a constant's value: that of the constant it came from."""
        named = isinstance(e, S.EName) and e.name not in self.matched.shadowing
        binding = self.rule.bindings.get(e.name) if isinstance(e, S.EName) and named else None
        ty = binding.type if binding is not None and binding.type is not None else self.matched.type(e)
        assert ty is not None, f"{self.rule.name}: eval of a value without a dtype"
        return ty

    def helper(self, e: S.ECall) -> ast.expr:
        """The result of a helper as a part of an expression, which has no value where the helper declines."""
        made = self.helper_call(e)
        return self.checked("_given", made) if self.rule.externs[e.name].partial else made

    def helper_call(self, e: S.ECall) -> ast.expr:
        """The call of a helper: None where it declines."""
        kinds = [p.type.name if isinstance(p.type, S.TName) else "" for p in self.rule.externs[e.name].params]
        given = [self.finite(a) if k in ("const", "int") else self.any(a) for k, a in zip(kinds, e.args, strict=True)]
        if self.rule.context is not None:
            given.append(self.code.name("context"))
        return self.code.call(helper_name(self.rule, e.name), *given)

    # comparisons

    def comparison(self, e: S.ECompare) -> ast.expr:
        sorts = [self.matched.sort(o) for o in e.operands]
        if Sort.VALUES in sorts or Sort.OTHER in sorts:
            return self.general_comparison(e)
        identical = {"==": "is", "!=": "is not"} if Sort.DTYPE in sorts and self.access.equal == "is" else {}
        first, *rest = map(self.any, e.operands)
        return self.code.compare(
            first, *(x for op, code in zip(e.ops, rest, strict=True) for x in (identical.get(op, op), code))
        )

    def general_comparison(self, e: S.ECompare) -> ast.expr:
        """A comparison of sequences, or of fields that may be sequences: item by item, across Python's sequence types."""
        pairs = [
            S.ECompare((op,), (a, b), span=e.span) for a, op, b in zip(e.operands, e.ops, e.operands[1:], strict=False)
        ]
        if len(pairs) > 1:
            return self.code.all_of(list(map(self.comparison, pairs)))
        a, b = e.operands
        if e.ops[0] not in ("==", "!="):
            return self.code.compare(self.compared_number(a), e.ops[0], self.compared_number(b))
        sorts = self.matched.sort(a), self.matched.sort(b)
        if Sort.VALUES not in sorts and Sort.VALUE in sorts:
            return self.code.compare(self.value(a), e.ops[0], self.value(b))
        alike = self.checked("_equal", self.any(a), self.any(b))
        return alike if e.ops[0] == "==" else self.code.unary("not", alike)

    def compared_number(self, e: S.Expr) -> ast.expr:
        """A number as the operand of a comparison: it may be infinite."""
        return self.checked("_integer", self.value(e)) if self.matched.sort(e) is Sort.OTHER else self.value(e)
