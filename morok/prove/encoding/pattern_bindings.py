"""Patterns: what a match binds, and what it says of the bound."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import Ty
from morok.prove import smt
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.targets import Targets
from morok.prove.forms import admits_invalid
from morok.prove.kinds import CONSTANT, CONSTANTS, Constant, Made, Node, Sequence
from morok.prove.semantics.term import Term, Unsupported, negation
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol


class Patterns(Targets):
    """Every form of pattern over lanewise ops."""

    def variable(self, name: Symbol, ty: Ty, maybe_invalid: bool) -> Node:
        dtype = self.element(ty)
        lanes = self.lanes_of(ty)
        terms = []
        for i in range(lanes):
            lane = name if lanes == 1 else Symbol("lane", name, i)
            found = self.world.variable(lane, dtype, maybe_invalid)
            # a node need not have a value: under a Where it may stand where nobody looks
            term = Term(found.value, smt.Bool(Symbol("defined", lane)), found.invalid)
            self.out.bind(lane.label, dtype, term)
            self.assume_flags(dtype, term)
            terms.append(term)
        return Node(tuple(terms), dtype)

    def assume_flags(self, dtype: str, term: Term) -> None:
        """`nnan` and `ninf` are premises about every operand and result."""
        if ("nnan" in self.flags or "ninf" in self.flags) and self.world.is_float(dtype):
            n = self.world.arithmetic(self.world.dtype(dtype))
            if "nnan" in self.flags:
                self.premise(negation(n.is_nan(term.value)))
            if "ninf" in self.flags:
                self.premise(negation(n.is_inf(term.value)))

    def pattern(self, p: S.Pattern) -> Any:
        if isinstance(p, S.PVar):
            return self.bound_variable(p)
        if isinstance(p, S.PConst):
            return self.constant_pattern(p)
        if isinstance(p, S.PLiteral):
            dtype = self.dtype_of(p)
            return self.splat(self.world.constant(dtype, p.value), dtype, self.rule.type_of(p))
        if isinstance(p, S.PBind):
            unnamed = isinstance(p.inner, S.PConst) and p.inner.kind == "const" and p.inner.name is None
            return self.bind(
                p.name,
                self.any_constant(None, self.rule.type_of(p.inner), p.name) if unnamed else self.pattern(p.inner),
            )
        if isinstance(p, S.PAlternatives):
            return self.pattern(p.options[self.choices.pick(len(p.options))])
        if isinstance(p, S.POp):
            return self.op_pattern(p)
        return self.structure_pattern(p)

    def structure_pattern(self, p: S.Pattern) -> Any:
        raise Unsupported(f"{type(p).__name__} patterns")

    def bind(self, name: str, value: Any) -> Any:
        if name.startswith("_"):
            return value
        known = self.names.get(name)
        if known is None:
            self.names[name] = value
            return value
        # the same node twice: one value, and where it was said how the node is made, that too
        self.premise(*(self.identical(known, value)))
        return known

    def identical(self, a: Any, b: Any) -> list[Expr]:
        if not isinstance(a, Node) or not isinstance(b, Node) or a.dtype != b.dtype or len(a.lanes) != len(b.lanes):
            raise Inapplicable
        same = []
        for x, y in zip(a.lanes, b.lanes, strict=True):
            same += [self.equal(a.dtype, x, y), x.defined == y.defined]
        return same

    def bound_variable(self, p: S.PVar) -> Any:
        if p.ignored:
            self.unnamed += 1
            return self.variable(Symbol("ignored", p.name, self.unnamed), self.type_at(p), admits_invalid(self.rule, p))
        if p.name not in self.names:
            name = Symbol("variable", p.name)
            self.names[p.name] = self.variable(name, self.type_at(p), admits_invalid(self.rule, p))
        return self.names[p.name]

    def type_at(self, p: S.PVar) -> Ty:
        """The type of a variable, also where a struct names it by its field alone."""
        found = self.rule.types.get(id(p))
        if found is None and p.name in self.rule.bindings:
            found = self.rule.bindings[p.name].type
        if found is None:
            raise Unsupported(f"{p.name} has no type")
        return found

    def splat(self, term: Term, dtype: str, ty: Ty) -> Node:
        return Node((term,) * self.lanes_of(ty), dtype, Made(CONSTANT, ()))

    def constant_pattern(self, p: S.PConst) -> Any:
        ty = self.rule.type_of(p)
        dtype = self.element(ty)
        fixed = {"zero": 0, "one": 1, "true": True, "false": False}
        if p.kind in fixed:
            value: Any = fixed[p.kind]
            if dtype not in self.rule.dialect.dtypes:
                raise Unsupported("a constant of a dtype that the rule does not look at")
            if self.world.is_float(dtype):
                value = float(value)
            return self.splat(self.world.constant(dtype, value), dtype, ty)
        if p.kind == "const":
            return self.any_constant(p.bound, ty)
        return self.vector_constant(p, ty)

    def any_constant(self, name: str | None, ty: Ty, node: str | None = None) -> Node:
        """`@const(v)`: any value of the dtype, the same in every lane."""
        dtype = self.element(ty)
        return self.splat(self.any_value(name, dtype, node), dtype, ty)

    def any_value(self, name: str | None, dtype: str, node: str | None = None) -> Term:
        """Any value of a dtype, or the one that the name has. Counterexamples call it by its own name, or the node's."""
        known = self.names.get(name) if name is not None else None
        if name is not None and isinstance(known, Constant):
            return known.term if known.dtype == dtype else self.equal_number(name, known, dtype)
        self.unnamed += 1
        unknown = Symbol("value", name) if name is not None else Symbol("constant", self.unnamed)
        term: Term = self.world.variable(unknown, dtype)
        self.out.bind(name or node or unknown.label, dtype, term)
        self.assume_flags(dtype, term)
        if name is not None:
            self.names[name] = Constant(term, dtype)
        return term

    def equal_number(self, name: str, known: Constant, dtype: str) -> Term:
        """The constant of another dtype that is the same integer; the rule matches only where there is one."""
        term: Term = self.world.variable(Symbol("value", name, dtype), dtype)
        self.premise(*self.numbers.compare("==", self.number(known), self.number(Constant(term, dtype))))
        return term

    def vector_constant(self, p: S.PConst, ty: Ty) -> Node:
        """`@vconst(vs)`, `@anyconst(vs)`: any value in every lane."""
        self.unnamed += 1
        unknown = Symbol("value", p.bound) if p.bound is not None else Symbol("constant", self.unnamed)
        node = self.variable(unknown, ty, False)
        if p.bound is not None:
            self.names[p.bound] = Sequence(tuple(Constant(t, node.dtype) for t in node.lanes))
        return Node(node.lanes, node.dtype, Made(CONSTANTS, ()))

    def op_pattern(self, p: S.POp) -> Any:
        ops = [o for o in p.ops if self.admits(o, p)]
        if not ops:
            raise Inapplicable
        op = ops[self.choices.pick(len(ops))]
        info = self.rule.dialect.ops[op]
        if not info.params:
            return self.structure_op_pattern(op, p)
        operands = [self.pattern(a) for a in p.args if not isinstance(a, (S.PType, S.PExpr))]
        if p.commutative and len(operands) == 2:
            self.commutes(info, operands)
        return self.apply(info, operands, self.dtype_of(p), matched=True)

    def structure_op_pattern(self, op: str, p: S.POp) -> Any:
        if op == self.invalid_op:
            return self.invalid_node()
        info = self.rule.dialect.ops[op]
        if info.solver:
            return self.apply(
                info, [self.pattern(a) for a in p.args if not isinstance(a, (S.PType, S.PExpr))], self.dtype_of(p)
            )
        raise Unsupported(f"{op} is not pointwise")

    def admits(self, op: str, p: S.POp) -> bool:
        """True if an op of `(A | B)(..)` has these operand dtypes at this instance."""
        if len(p.ops) == 1:
            return True
        info = self.rule.dialect.ops[op]
        domain = info.domains.get(info.result) or info.domains.get(info.params[0] if info.params else "")
        where = p.args[0] if info.comparison else p
        return (
            domain is None
            or not isinstance(where, S.Syntax)
            or id(where) not in self.rule.types
            or self.dtype_of(where) in domain
        )
