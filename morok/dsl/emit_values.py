"""Compile-time values of a rule as Python text: the table's functions, facts, evaluation, conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from morok.dsl import syntax as S
from morok.dsl.checked import Sort, Ty
from morok.dsl.emit_names import Names, bare, helper_name
from morok.dsl.functions import BINARY, FUNCTIONS, UNARY, Function

WIDEST_LITERAL = 128  # bits: powers of two up to here are written out
AMOUNTS = {"<<": "shift", ">>": "shift", "log2": "power", "is_pow2": "power"}  # what bounds the last operand of these
FOLDS = {"min": "least", "max": "most", "gcd": "gcd"}
ITEMS = {"sum": "total", "all": "every", "any": "some"}


class Values(Names, ABC):
    """Expressions that are no nodes. Those that are, and sequences, are said by `Nodes`."""

    @abstractmethod
    def node(self, e: S.Expr) -> str:
        """The code of a node."""

    @abstractmethod
    def bearer(self, e: S.Expr) -> str:
        """The code of a node of which only a fact is read."""

    @abstractmethod
    def any(self, e: S.Expr) -> str:
        """The code of an expression of whatever sort it has."""

    @abstractmethod
    def sequence(self, e: S.Expr) -> str:
        """The code of a sequence."""

    def value(self, e: S.Expr) -> str:
        match e:
            case S.EName():
                return self.name(e.name)
            case S.ENumber():
                return _number(e.value)
            case S.EUnary():
                return self.applied(UNARY[e.op], (e.operand,))
            case S.EBinary(op="and" | "or"):
                return f"({self.condition(e.left)} {e.op} {self.condition(e.right)})"
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
                return self.type_syntax(e.type)
            case S.ENone():
                return "None"
        raise AssertionError(f"{type(e).__name__} has no value")

    def arithmetic(self, e: S.EBinary) -> str:
        left, right = e.left, e.right
        if isinstance(right, S.ENumber):
            if e.op == "<<" and isinstance(left, S.ENumber) and left.value >= 0 and 0 <= right.value < WIDEST_LITERAL:
                return str(int(left.value) << int(right.value))
            if e.op in ("//", "%") and right.value:
                return f"({self.finite(left)} {e.op} {self.finite(right)})"
        return self.applied(BINARY[e.op], (left, right))

    def applied(self, function: Function, operands: Sequence[S.Expr]) -> str:
        """An entry of the table on its operands."""
        if callable(function.code):
            raise AssertionError(f"{function.name} is no plain operation")
        kinds = function.kinds(len(operands))
        codes = [self.argument(kind, e) for kind, e in zip(kinds, operands, strict=True)]
        kind = AMOUNTS.get(function.name, "")
        if kind in self.most and not isinstance(operands[-1], S.ENumber):
            codes[-1] = self.checked("_upto", f"{bare(codes[-1])}, {self.most[kind]}")
        self.raises = self.raises or function.partial
        if function.code[0].isalpha() and len(codes) == 1 and function.code.endswith(" "):
            return f"({function.code}{codes[0]})"
        if function.code[0].isalpha() or function.code[0] == "_":
            return f"{function.code}({', '.join(map(bare, codes))})"
        return f"({function.code}{codes[0]})" if len(codes) == 1 else f"({codes[0]} {function.code} {codes[1]})"

    def argument(self, kind: str, e: S.Expr) -> str:
        match kind:
            case "int":
                return self.finite(e)
            case "bool":
                return self.condition(e)
            case "seq" | "ints" | "bools" | "pairs":
                return self.items(e)
        return self.any(e)

    def checked(self, check: str, code: str) -> str:
        """A value that passes a check, or has none."""
        self.raises = True
        return f"{check}({bare(code)})"

    def finite(self, e: S.Expr) -> str:
        """A number that arithmetic is done on: an infinite bound makes the clause fail, and so does a field that is no number."""
        code = self.value(e)
        if self.sort(e) is Sort.OTHER:
            return self.checked("_integer", code)
        if id(e) not in self.rule.unbounded:
            return code
        if self.iterating:  # Python takes no assignment there
            return self.checked("_finite", code)
        self.raises = True
        name = self.temporary()
        return f"({name} if ({name} := {bare(code)}).__class__ is not float else _no_value())"

    def condition(self, e: S.Expr) -> str:
        """A condition; a field that is no bool makes the clause fail."""
        code = self.value(e)
        return self.checked("_truth", code) if self.sort(e) is Sort.OTHER else code

    def items(self, e: S.Expr) -> str:
        """A sequence; a field that is none makes the clause fail."""
        code = self.sequence(e)
        return self.checked("_sequence", code) if self.sort(e) is Sort.OTHER else code

    def item(self, e: S.EIndex) -> str:
        """An item of a sequence: nothing is counted from the end."""
        self.raises = True
        sequence, index = self.items(e.sequence), self.finite(e.index)
        return f"{sequence}[{bare(index)}]" if self.from_zero(e.index) else f"_item({bare(sequence)}, {bare(index)})"

    def from_zero(self, e: S.Expr) -> bool:
        """True if a number is plainly not negative."""
        match e:
            case S.ENumber():
                return not isinstance(e.value, float) and e.value >= 0
            case S.EName():
                return e.name in self.counters
            case S.EBinary(op="+" | "*" | "//"):
                return self.from_zero(e.left) and self.from_zero(e.right)
            case S.EBinary(op="%"):
                return self.from_zero(e.right)
            case S.ECall(name="len" | "lanes"):
                return True
        return False

    def call(self, e: S.ECall) -> str:
        name = e.name
        if name in self.rule.externs:
            return self.helper(e)
        if name in self.dialect.ops or name in ("zero", "one", "const", "identity", "subst"):
            return self.node(e)
        if name == "eval":
            return self.evaluate(e)
        function = FUNCTIONS.get(name)
        if function is None:
            return self.asked(e)
        return function.code(self, e) if callable(function.code) else self.applied(function, e.args)

    # what the table asks for

    def asked(self, e: S.ECall) -> str:
        """A fact, asked of the dialect."""
        return f"{self.fact(e.name)}({', '.join(self.any(a) for a in e.args)})"

    def bound(self, e: S.ECall) -> str:
        template = self.access.inline.get(e.name)
        return f"{self.fact(e.name)}({self.node(e.args[0])})" if template is None else template.format(n=self.bearer(e.args[0]))

    def lane_count(self, e: S.ECall) -> str:
        return self.access.lanes(self.bearer(e.args[0]))

    def same(self, e: S.ECall) -> str:
        return f"({self.access.same(self.node(e.args[0]), self.node(e.args[1]))})"

    def dtype_asked(self, e: S.ECall) -> str:
        element = self.access.scalar(self.bearer(e.args[0]))
        return element if len(e.args) == 1 else self.access.inline["vector"].format(d=element, k=self.finite(e.args[1]))

    def of_several(self, e: S.ECall, name: str) -> str:
        """min, max or gcd: Python's own where there are two numbers or more."""
        if len(e.args) > 1 and name != "gcd":
            return f"{name}({', '.join(bare(self.finite(a)) for a in e.args)})"
        self.raises = True
        given = [self.items(e.args[0])] if len(e.args) == 1 else map(self.finite, e.args)
        return f"{'_' + FOLDS[name]}({', '.join(map(bare, given))})"

    def of_items(self, e: S.ECall, name: str) -> str:
        """sum, all or any: Python's own where every item is a number or a bool."""
        over = e.args[0]
        inner = self.items(over)
        plain = isinstance(over, S.ERange) or (
            isinstance(over, S.EComprehension) and self.sort(over.body) is Sort.VALUE and id(over.body) not in self.rule.unbounded
        )
        return f"{name}({bare(inner)})" if plain else self.checked(f"_{ITEMS[name]}", inner)

    def fact(self, name: str) -> str:
        return f"F_{name}"

    def no_overflow(self, e: S.Expr) -> str:
        """Text that is true if the exact result of a term fits its dtype; the term is not built where its operands tell."""
        if "no_overflow_of" in self.dialect.facts and isinstance(e, S.ECall) and e.name in self.dialect.ops:
            operands = [self.node(a) for a in e.args]
            if self.matched.get((e.name, tuple(operands))) is None:
                return f"{self.fact('no_overflow_of')}({self.key(e.name)}, ({', '.join(operands)},))"
        return f"{self.fact('no_overflow')}({self.node(e)})"

    def evaluate(self, e: S.ECall) -> str:
        """`eval(op, ..)`: the op's evaluator, at the dtype of its operands (of the result, for casts)."""
        op = e.args[0]
        assert isinstance(op, S.EName)
        info = self.dialect.ops[op.name]
        self.raises = True
        values = [a for a in e.args[1:] if not self.is_dtype(a)]
        function = f"E_{op.name}"
        codes = ", ".join(bare(self.finite(a)) for a in values)
        if self.given_dtype(info):
            result = self.type(e)
            assert result is not None
            return f"{function}({self.element_of(result)}, {codes}, {self.element_of(self._value_type(values[0]))})"
        place = next((i for i, word in enumerate(info.params) if word in info.domains), 0)
        return f"{function}({self.element_of(self._value_type(values[place]))}, {codes})"

    def _value_type(self, e: S.Expr) -> Ty:
        """The dtype of a constant's value: that of the constant it came from."""
        binding = self.rule.bindings.get(e.name) if isinstance(e, S.EName) and e.name not in self.shadowing else None
        ty = binding.type if binding is not None and binding.type is not None else self.type(e)
        assert ty is not None, f"{self.rule.name}: eval of a value without a dtype"
        return ty

    def helper(self, e: S.ECall) -> str:
        kinds = [p.type.name if isinstance(p.type, S.TName) else "" for p in self.rule.externs[e.name].params]
        args = [bare(self.finite(a) if k in ("const", "int") else self.any(a)) for k, a in zip(kinds, e.args, strict=True)]
        if self.rule.context is not None:
            args.append("context")
        return f"{helper_name(self.rule, e.name)}({', '.join(args)})"

    def comparison(self, e: S.ECompare) -> str:
        sorts = [self.sort(o) for o in e.operands]
        if Sort.VALUES in sorts or Sort.OTHER in sorts:
            return self.general_comparison(e)
        codes = [self.any(o) for o in e.operands]
        identical = Sort.DTYPE in sorts and self.access.equal == "is"
        text = codes[0]
        for op, code in zip(e.ops, codes[1:], strict=True):
            text += f" { ({'==': 'is', '!=': 'is not'}.get(op, op) if identical else op) } {code}"
        return f"({text})"

    def general_comparison(self, e: S.ECompare) -> str:
        """A comparison of sequences, or of fields that may be such: item by item, whatever Python calls them."""
        pairs = [S.ECompare((op,), (a, b), span=e.span) for a, op, b in zip(e.operands, e.ops, e.operands[1:], strict=False)]
        if len(pairs) > 1:
            return f"({' and '.join(self.comparison(p) for p in pairs)})"
        a, b = e.operands
        if e.ops[0] not in ("==", "!="):
            return f"({self.compared_number(a)} {e.ops[0]} {self.compared_number(b)})"
        if Sort.VALUES not in (self.sort(a), self.sort(b)) and (self.is_number(a) or self.is_number(b)):
            return f"({self.value(a)} {e.ops[0]} {self.value(b)})"
        self.raises = True
        return f"({'' if e.ops[0] == '==' else 'not '}_equal({bare(self.any(a))}, {bare(self.any(b))}))"

    def compared_number(self, e: S.Expr) -> str:
        """A number that is compared: it may be infinite."""
        return self.checked("_integer", self.value(e)) if self.sort(e) is Sort.OTHER else self.value(e)

    def is_number(self, e: S.Expr) -> bool:
        return self.sort(e) is Sort.VALUE


def _number(value: int | float | bool) -> str:
    if isinstance(value, (bool, int)):
        return repr(value)
    if value != value:
        return "_nan"
    return "_inf" if value == float("inf") else "(-_inf)" if value == float("-inf") else repr(value)
