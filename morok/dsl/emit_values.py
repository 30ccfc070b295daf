"""Compile-time values of a rule as Python text: arithmetic over mathematical integers, facts, evaluation, conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from morok.dsl import syntax as S
from morok.dsl.checked import Sort, Ty
from morok.dsl.emit_names import Names, bare, helper_name

WIDEST_LITERAL = 128  # bits: powers of two up to here are written out
_INFIX = {"+", "-", "*", "//", "%", "&", "|", "^"}
_CALLS = {"is_pow2": "_is_pow2", "log2": "_log2", "tdiv": "_tdiv", "tmod": "_tmod", "gcd": "_gcd"}
_DTYPE_FACTS = ("bits", "is_int", "is_float", "safe_cast")


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
            case S.EUnary(op="not"):
                return self.boolean(e, strict=True)
            case S.EUnary():
                return f"({e.op}{self.finite(e.operand)})"
            case S.EBinary(op="and" | "or"):
                return self.boolean(e, strict=True)
            case S.EBinary():
                return self.arithmetic(e)
            case S.ECompare():
                return self.boolean(e, strict=True)
            case S.ECall():
                return self.call(e)
            case S.EIndex():
                self.raises = True
                return f"{self.sequence(e.sequence)}[{self.value(e.index)}]"
            case S.EList() | S.EComprehension() | S.ERange():
                return self.sequence(e)
            case S.EType():
                return self.type_syntax(e.type)
            case S.ENone():
                return "None"
        raise AssertionError(f"{type(e).__name__} has no value")

    def arithmetic(self, e: S.EBinary) -> str:
        left, right = self.finite(e.left), self.finite(e.right)
        if e.op == "<<" and left.isdigit() and right.isdigit() and int(right) < WIDEST_LITERAL:
            return str(int(left) << int(right))
        if e.op in ("<<", ">>"):
            self.raises = True
            return f"{'_shl' if e.op == '<<' else '_shr'}({bare(left)}, {bare(right)})"
        assert e.op in _INFIX, e.op
        if e.op in ("//", "%") and not (isinstance(e.right, S.ENumber) and e.right.value):
            self.raises = True
        return f"({left} {e.op} {right})"

    def finite(self, e: S.Expr) -> str:
        """A value that arithmetic is done on: an unknown bound makes the clause fail."""
        code = self.value(e)
        if not self.may_be_infinite(e):
            return code
        self.raises = True
        name = self.temporary()
        return f"({name} if ({name} := {bare(code)}).__class__ is not float else _no_value())"

    def may_be_infinite(self, e: S.Expr) -> bool:
        match e:
            case S.EName():
                return e.name in self.infinite
            case S.ECall(name="vmin" | "vmax"):
                ty = self.type(e.args[0])
                if ty is None and isinstance(e.args[0], S.EName):
                    binding = self.rule.bindings.get(e.args[0].name)
                    ty = None if binding is None else binding.type
                if ty is None:
                    return True
                names = (ty.element,) if ty.fixed else self.rule.domains.get(ty.element, ("index",))
                return any(n == "index" or n in self.dialect.classes.get("float", ()) for n in names)
            case S.ECall(name="min" | "max" | "abs"):
                return any(self.may_be_infinite(a) for a in e.args)
        return False

    def call(self, e: S.ECall) -> str:
        name = e.name
        if name in self.rule.externs:
            return self.helper(e)
        if name in self.dialect.ops or name in ("zero", "one", "const", "identity", "subst"):
            return self.node(e)
        if name == "eval":
            return self.evaluate(e)
        if name in ("vmin", "vmax"):
            template = self.access.inline.get(name)
            return f"{self.fact(name)}({self.node(e.args[0])})" if template is None else template.format(n=self.bearer(e.args[0]))
        if name == "same":
            return f"({self.access.same(self.node(e.args[0]), self.node(e.args[1]))})"
        if name == "dtype":
            element = self.access.scalar(self.bearer(e.args[0]))
            if len(e.args) == 1:
                return element
            return self.access.inline["vector"].format(d=element, k=self.finite(e.args[1]))
        if name == "lanes":
            return self.access.lanes(self.bearer(e.args[0]))
        if name == "no_overflow":
            return self.no_overflow(e.args[0])
        if name in _DTYPE_FACTS:
            return f"{self.fact(name)}({', '.join(self.value(a) for a in e.args)})"
        if name in _CALLS:
            self.raises = True
            return f"{_CALLS[name]}({', '.join(self.finite(a) for a in e.args)})"
        if name in ("min", "max", "abs"):
            return f"{name}({', '.join(bare(self.value(a)) for a in e.args)})"
        if name in ("width", "step", "at"):
            return f"_{name}({', '.join([self.sequence(e.args[0]), *(bare(self.finite(a)) for a in e.args[1:])])})"
        if name in ("len", "all", "any", "sum"):
            inner = self.sequence(e.args[0]) if e.args else "()"
            return f"{name}({inner})"
        if name == "zip":
            return self.sequence(e)
        return f"{self.fact(name)}({', '.join(self.any(a) for a in e.args)})"

    def fact(self, name: str) -> str:
        return f"F_{name}"

    def no_overflow(self, e: S.Expr) -> str:
        """Whether the exact result of a term fits its dtype; the term is not built where its operands tell."""
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
        args = [bare(self.any(a)) for a in e.args]
        if self.rule.context is not None:
            args.append("context")
        return f"{helper_name(self.rule, e.name)}({', '.join(args)})"

    def boolean(self, e: S.Expr, strict: bool) -> str:
        """A condition. Where the outcome is used positively, a part without a value may be skipped after one that is false;
        elsewhere (`strict`) every part is computed, as the proof's premise has it.
        """
        match e:
            case S.EBinary(op="and"):
                joint = " & " if strict else " and "
                return f"({self.boolean(e.left, strict)}{joint}{self.boolean(e.right, strict)})"
            case S.EBinary(op="or"):
                left, right = self._strictly(e.left), self._strictly(e.right)
                joint = " | " if left[1] or right[1] else " or "
                return f"({left[0]}{joint}{right[0]})"
            case S.EUnary(op="not"):
                return f"(not {self.boolean(e.operand, strict=True)})"
            case S.ECompare():
                return self.comparison(e, strict)
        return self.value(e)

    def _strictly(self, e: S.Expr) -> tuple[str, bool]:
        """Code that computes every part, and whether it can fail."""
        before, self.raises = self.raises, False
        code = self.boolean(e, strict=True)
        risky = self.raises
        self.raises = before or risky
        return code, risky

    def comparison(self, e: S.ECompare, strict: bool) -> str:
        dtypes = any(self.sort(o) is Sort.DTYPE for o in e.operands)
        codes = [self.any(o) for o in e.operands]
        if strict and len(e.ops) > 1 and self.raises:
            held = [self.temporary() for _ in codes]
            pairs = " and ".join(f"{a} {op} {b}" for a, op, b in zip(held, e.ops, held[1:], strict=False))
            every = ", ".join(f"({t} := {bare(c)})" for t, c in zip(held, codes, strict=True))
            return f"([{every}] and {pairs})"
        ops = [{"==": "is", "!=": "is not"}.get(op, op) if dtypes and self.access.equal == "is" else op for op in e.ops]
        text = codes[0]
        for op, code in zip(ops, codes[1:], strict=True):
            text += f" {op} {code}"
        return f"({text})"


def _number(value: int | float | bool) -> str:
    if isinstance(value, (bool, int)):
        return repr(value)
    if value != value:
        return "_nan"
    return "_inf" if value == float("inf") else "(-_inf)" if value == float("-inf") else repr(value)
