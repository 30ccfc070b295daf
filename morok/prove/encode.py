"""From a checked rule to what the solver must judge: one instance, one choice of alternatives, one encoding at a time."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Any

import z3

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.prove.kinds import Constant, DtypeName, FloatLiteral, Made, Node, OpName, Sequence, Truth
from morok.prove.semantics.numbers import Arithmetic, Num
from morok.prove.semantics.term import FALSE, TRUE, Expr, Term, Unsupported, both, either, negation

ARITHMETIC_SIGN = {"Add": "+", "Sub": "-", "Mul": "*"}


class Inapplicable(Exception):
    """This choice of alternatives cannot match at this instance."""


@dataclass(slots=True)
class Obligation:
    """What must hold: the premises imply that the target is defined and equal to the pattern.

    lemmas     (name, premises, claim) that the rule's proof also rests on: what helpers require, orders of commutative ops
    variables  (name, dtype, term) of everything the rule binds, to read counterexamples
    facts      (text, kind, number) of the bounds assumed
    """

    premises: list[Expr] = field(default_factory=list)
    pattern: Node | None = None
    target: Node | None = None
    claim: Expr = TRUE
    lemmas: list[tuple[str, tuple[Expr, ...], Expr]] = field(default_factory=list)
    variables: list[tuple[str, str, Term]] = field(default_factory=list)
    facts: list[tuple[str, str, Num]] = field(default_factory=list)


class Choices:
    """Which option is taken at each place where the matcher may choose; `advance` moves to the next combination."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.sizes: list[int] = []
        self.at = 0

    def restart(self) -> None:
        self.at = 0

    def pick(self, options: int) -> int:
        if self.at == len(self.taken):
            self.taken.append(0)
            self.sizes.append(options)
        self.at += 1
        return self.taken[self.at - 1]

    def advance(self) -> bool:
        del self.taken[self.at :], self.sizes[self.at :]
        while self.taken:
            if self.taken[-1] + 1 < self.sizes[-1]:
                self.taken[-1] += 1
                return True
            self.taken.pop()
            self.sizes.pop()
        return False


def solver_function(info: OpInfo) -> Callable[..., Term]:
    """The solver semantics that an op's entry names; Unsupported if it names none."""
    module, _, name = info.solver.partition(":")
    if not name:
        raise Unsupported(f"{info.name} has no pointwise solver semantics")
    found: Callable[..., Term] = getattr(importlib.import_module(module), name)
    return found


def mentions_maybe_invalid(t: S.TypeSyntax | None) -> bool:
    """Whether a constraint says `index?`: only then does a variable match nodes that may be Invalid."""
    if isinstance(t, S.TMaybeInvalid):
        return True
    return t is not None and any(mentions_maybe_invalid(c) for c in S.children(t))


class Encoder:
    """One reading of a rule. `world` is the theory's encoding; `choices` which alternatives the pattern takes."""

    def __init__(self, rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> None:
        self.rule = rule
        self.instance = instance
        self.world = world
        self.numbers: Arithmetic = world.numbers
        self.choices = choices
        self.names: dict[str, Any] = {}
        self.out = Obligation()
        self.flags = frozenset(rule.syntax.assuming)
        self.side = "pattern"

    # The whole rule.

    def encode(self) -> Obligation:
        """Build the obligation; Unsupported if this encoding cannot say it, Inapplicable if this choice matches nothing."""
        out = self.out
        pattern = self.pattern(self.rule.syntax.pattern)
        self.start_clauses(pattern)
        for clause in self.rule.syntax.clauses:
            self.clause(clause)
        if any(z3.is_false(z3.simplify(p)) for p in out.premises):
            raise Inapplicable
        self.side = "target"
        target = self.target(self.rule.syntax.target, pattern)
        self.finish(pattern, target)
        out.premises.extend(self.world.axioms)
        return out

    def start_clauses(self, pattern: Any) -> None:
        self.premise(*(lane.defined for lane in pattern.lanes))

    def target(self, e: S.Expr, pattern: Any) -> Any:
        return self.node(e, pattern.dtype)

    def finish(self, pattern: Any, target: Any) -> None:
        if pattern.dtype != target.dtype:
            raise Unsupported(f"a {pattern.dtype} pattern with a {target.dtype} target")
        if len(pattern.lanes) != len(target.lanes):
            raise Unsupported(f"{len(pattern.lanes)} lanes become {len(target.lanes)}")
        equal = self.world.equal_but_zero_signs if "nsz" in self.flags else self.equal
        self.out.pattern, self.out.target = pattern, target
        self.out.claim = both(
            *(both(t.defined, equal(pattern.dtype, t, p)) for p, t in zip(pattern.lanes, target.lanes, strict=True))
        )

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        return self.world.equal(dtype, target, pattern)

    def premise(self, *conditions: Expr) -> None:
        self.out.premises.extend(c for c in conditions if not z3.is_true(c))

    # Dtypes.

    def element(self, ty: Ty) -> str:
        return self.instance.element(ty)

    def dtype_of(self, node: S.Syntax) -> str:
        return self.element(self.rule.type_of(node))

    def lanes_of(self, ty: Ty) -> int:
        """How many lanes to read a dtype at: a pointwise rule at one."""
        return 1

    # Patterns.

    def variable(self, name: str, ty: Ty, maybe_invalid: bool) -> Node:
        dtype = self.element(ty)
        lanes = self.lanes_of(ty)
        terms = []
        for i in range(lanes):
            label = name if lanes == 1 else f"{name}.{i}"
            found = self.world.variable(label, dtype, maybe_invalid)
            # a node need not have a value: under a Where it may stand where nobody looks
            term = Term(found.value, z3.Bool(f"{label}.defined"), found.invalid)
            self.out.variables.append((label, dtype, term))
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
            return self.bind(p.name, self.pattern(p.inner))
        if isinstance(p, S.PAlternatives):
            return self.pattern(p.options[self.choices.pick(len(p.options))])
        if isinstance(p, S.POp):
            return self.op_pattern(p)
        return self.structure_pattern(p)

    def structure_pattern(self, p: S.Pattern) -> Any:
        raise Unsupported(f"{type(p).__name__} patterns")

    def bind(self, name: str, value: Any) -> Any:
        known = self.names.get(name)
        if known is None:
            self.names[name] = value
            return value
        # the same node twice: one value, and where it was said how the node is made, that too
        self.premise(*(self.identical(known, value)))
        return known

    def identical(self, a: Any, b: Any) -> list[Expr]:
        if getattr(self.world, "homomorphic", False):
            raise Unsupported("equality of nodes where integers do not wrap")
        if not isinstance(a, Node) or not isinstance(b, Node) or a.dtype != b.dtype or len(a.lanes) != len(b.lanes):
            raise Inapplicable
        same = []
        for x, y in zip(a.lanes, b.lanes, strict=True):
            same += [self.equal(a.dtype, x, y), x.defined == y.defined]
        return same

    def bound_variable(self, p: S.PVar) -> Any:
        if p.ignored:
            self.unnamed = getattr(self, "unnamed", 0) + 1
            return self.variable(f"{p.name}{self.unnamed}", self.type_at(p), mentions_maybe_invalid(p.type))
        if p.name not in self.names:
            binding = self.rule.bindings[p.name]
            self.names[p.name] = self.variable(p.name, self.type_at(p), binding.invalid_ok)
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
        return Node((term,) * self.lanes_of(ty), dtype, Made("Const", ()))

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
            return self.any_constant(p.name, ty)
        return self.vector_constant(p, ty)

    def any_constant(self, name: str | None, ty: Ty) -> Node:
        """`@const(v)`: any value of the dtype, the same in every lane."""
        dtype = self.element(ty)
        if name is not None and isinstance(self.names.get(name), Constant):
            return self.splat(self.names[name].term, dtype, ty)
        self.unnamed = getattr(self, "unnamed", 0) + 1
        label = name or f"_const{self.unnamed}"
        term = self.world.variable(label, dtype)
        self.out.variables.append((label, dtype, term))
        self.assume_flags(dtype, term)
        if name is not None:
            self.names[name] = Constant(term, dtype)
        return self.splat(term, dtype, ty)

    def vector_constant(self, p: S.PConst, ty: Ty) -> Node:
        """`@vconst(vs)`, `@anyconst(vs)`: any value in every lane."""
        node = self.variable(p.name or "_vconst", ty, False)
        if p.name is not None:
            self.names[p.name] = Sequence(tuple(Constant(t, node.dtype) for t in node.lanes))
        return Node(node.lanes, node.dtype, Made("VConst", ()))

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
        return self.apply(info, operands, self.dtype_of(p))

    def structure_op_pattern(self, op: str, p: S.POp) -> Any:
        if op == "Invalid":
            return self.invalid_node()
        info = self.rule.dialect.ops[op]
        if info.solver:
            return self.apply(info, [self.pattern(a) for a in p.args if not isinstance(a, (S.PType, S.PExpr))], self.dtype_of(p))
        raise Unsupported(f"{op} is not pointwise")

    def invalid_node(self) -> Node:
        return Node((self.world.invalid(),), "index", Made("Invalid", ()))

    def admits(self, op: str, p: S.POp) -> bool:
        """Whether an op of `(A | B)(..)` has these operand dtypes at this instance."""
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

    def commutes(self, info: OpInfo, operands: Seq[Node]) -> None:
        """`Op[x, y]` matches in both orders: one proof serves both because the op's meaning does not tell them apart."""
        dtype = operands[0].dtype
        key = ("commutes", info.name, dtype)
        if key in self.world.known:
            return
        self.world.known[key] = True
        a, b = self.world.variable("left", dtype), self.world.variable("right", dtype)
        f = solver_function(info)
        d = self.world.dtype(dtype)
        ab, ba = f(self.world, d, a, b), f(self.world, d, b, a)
        result = "bool" if info.comparison else dtype
        claim = both(ab.defined == ba.defined, either(negation(ab.defined), self.world.equal(result, ba, ab)))
        self.out.lemmas.append((f"{info.name} commutes at {dtype}", (), claim))

    def apply(self, info: OpInfo, operands: Seq[Any], result: str) -> Node:
        """A pointwise op, lane by lane; a scalar operand among vectors serves every lane."""
        f = solver_function(info)
        nodes = [o if isinstance(o, Node) else self.as_node(o, result) for o in operands]
        lanes = self.width(info, nodes)
        extra: list[Any] = []
        d = self.world.dtype(result)
        if info.params and info.result not in info.params and info.result in info.domains:  # a conversion
            extra.append(self.world.dtype(nodes[0].dtype))
        elif info.comparison:
            d = self.world.dtype(nodes[0].dtype)
        elif not info.params:
            extra.append(self.world.dtype(nodes[0].dtype))
        terms = []
        for i in range(lanes):
            lane = [n.lanes[i] if len(n.lanes) > 1 else n.lanes[0] for n in nodes]
            terms.append(self.relaxed(info, d, nodes, i) or f(self.world, d, *lane, *extra))
        node = Node(tuple(terms), result, Made(info.name, tuple(nodes)))
        if self.side == "pattern":
            for t in terms:
                self.assume_flags(result, t)
        return node

    def width(self, info: OpInfo, nodes: Seq[Node]) -> int:
        """The lanes of a result: those of its operands, which agree; a scalar condition and a constant serve any number."""
        governing = [n for n, word in zip(nodes, info.params, strict=False) if word in info.domains] or nodes
        counts = {len(n.lanes) for n in governing if n.made is None or n.made.op != "Const" or len(n.lanes) > 1}
        if len(counts) > 1:
            raise Inapplicable
        lanes = counts.pop() if counts else 1
        if any(len(n.lanes) not in (1, lanes) for n in nodes):
            raise Inapplicable
        return lanes

    def relaxed(self, info: OpInfo, d: Any, nodes: Seq[Node], lane: int) -> Term | None:
        """What `contract` and `arcp` permit: Add(Mul(a, b), c) read as MulAcc(a, b, c), Fdiv(x, y) as Mul(x, Reciprocal(y))."""
        ops = self.rule.dialect.ops
        pick = [n.lanes[lane] if len(n.lanes) > 1 else n.lanes[0] for n in nodes]
        if "contract" in self.flags and info.name == "Add" and d.is_float:
            for product, other in ((0, 1), (1, 0)):
                made = nodes[product].made
                if made is not None and made.op == "Mul":
                    factors = [n.lanes[lane] if len(n.lanes) > 1 else n.lanes[0] for n in made.operands]
                    return solver_function(ops["MulAcc"])(self.world, d, *factors, pick[other])
        if "arcp" in self.flags and info.name == "Fdiv":
            inverse = solver_function(ops["Reciprocal"])(self.world, d, pick[1])
            return solver_function(ops["Mul"])(self.world, d, pick[0], inverse)
        return None

    # Clauses.

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.If):
            truth = self.truth(clause.condition)
            self.premise(truth.exists, truth.value)
            return
        value = clause.value
        if isinstance(value, S.ECall) and value.name in self.rule.externs:
            results = self.helper(self.rule.externs[value.name], value)
            for name, result in zip(clause.names, results, strict=True):
                self.names[name] = result
            return
        result = self.expression(value)
        if len(clause.names) != 1:
            raise Unsupported("several names for one value")
        self.premise(self.existence(result))
        self.names[clause.names[0]] = result

    def existence(self, v: Any) -> Expr:
        if isinstance(v, (Num, Truth, Constant)):
            return v.exists
        if isinstance(v, Sequence):
            return both(*(self.existence(i) for i in v.items))
        return TRUE

    def helper(self, extern: S.Extern, call: S.ECall) -> list[Any]:
        """A helper by its contract: what it requires is proved from the clauses before, what it ensures is assumed."""
        arguments: dict[str, Any] = {}
        nodes: list[Node] = []
        for param, arg in zip(extern.params, call.args, strict=False):
            value = self.expression(arg)
            arguments[param.name] = value
            if isinstance(value, Node):
                nodes.append(value)
        defined = both(*(t.defined for n in nodes for t in n.lanes))
        invalid = either(*(t.invalid for n in nodes for t in n.lanes))
        self.calls = getattr(self, "calls", 0) + 1
        results = [self.result(extern, r, self.calls, arguments, defined, invalid) for r in extern.results]
        outer, self.names = self.names, {**arguments, **{r.name: v for r, v in zip(extern.results, results, strict=True)}}
        try:
            for i, requirement in enumerate(extern.requires):
                needed = self.truth(requirement)
                claim = both(needed.exists, needed.value)
                self.out.lemmas.append((f"{extern.name} requires #{i + 1}", tuple(self.out.premises), claim))
            for promise in extern.ensures:
                kept = self.truth(promise)
                self.premise(either(negation(both(defined, negation(invalid))), both(kept.exists, kept.value)))
        finally:
            self.names = outer
        return results

    def result(self, extern: S.Extern, r: S.Param, call: int, arguments: dict[str, Any], defined: Expr, invalid: Expr) -> Any:
        label = f"{extern.name}.{r.name}.{call}"
        kind = r.type.name if isinstance(r.type, S.TName) else ""
        if kind in ("const", "int"):
            number = Num(self.numbers.n.variable(label))
            self.out.facts.append((label, "value", number))
            return number
        nodes = any(isinstance(v, Node) and v.dtype == "bool" for v in arguments.values())
        if kind == "bool" and not nodes:  # of a condition that is a node, a helper makes conditions that are nodes
            return Truth(z3.Bool(label))
        if kind in ("seq", "dtype"):
            raise Unsupported(f"helpers that return {kind}")
        dtype = self.result_dtype(kind, arguments)
        term = self.world.variable(label, dtype)
        self.out.variables.append((label, dtype, term))
        return Node((Term(term.value, defined, invalid if self.world.is_index(dtype) else FALSE),), dtype)

    def result_dtype(self, kind: str, arguments: dict[str, Any]) -> str:
        """A dtype by name, or the dtype of the node arguments where the contract names a class or a variable."""
        if kind in self.rule.dialect.dtypes:
            return kind
        for v in arguments.values():
            if isinstance(v, Node):
                return v.dtype
        raise Unsupported(f"a helper's result of dtype {kind}")

    # Compile-time expressions.

    def truth(self, e: S.Expr) -> Truth:
        value = self.expression(e)
        if isinstance(value, Truth):
            return value
        if isinstance(value, bool):
            return Truth(z3.BoolVal(value))
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
                return Truth(z3.BoolVal(e.value))
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
        raise Unsupported(f"the name {e.name}")

    def dtype_name(self, t: S.TypeSyntax) -> str:
        if isinstance(t, S.TName):
            return self.instance.dtypes.get(t.name, t.name)
        if isinstance(t, S.TMaybeInvalid):
            return self.dtype_name(t.inner)
        if isinstance(t, S.TVector):
            return self.dtype_name(t.element)
        raise Unsupported("a dtype of this form")

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
            if z3.is_false(a.value) if e.op == "and" else z3.is_true(a.value):
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
            combine = {"&": both, "|": either, "^": z3.Xor}[e.op]
            return Truth(combine(left.value, right.value), both(left.exists, right.exists))
        return self.numbers.binary(e.op, self.number(left), self.number(right))

    def comparison(self, e: S.ECompare) -> Truth:
        values = [self.expression(o) for o in e.operands]
        truths = [self.compare(op, a, b) for op, a, b in zip(e.ops, values, values[1:], strict=False)]
        return Truth(both(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    def compare(self, op: str, a: Any, b: Any) -> Truth:
        if isinstance(a, (DtypeName, OpName)) or isinstance(b, (DtypeName, OpName)):
            return Truth(z3.BoolVal((a == b) == (op == "==")))
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
            return Truth(z3.BoolVal(op == "!="))
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

    def call(self, e: S.ECall) -> Any:
        if e.name in self.rule.dialect.ops:
            return self.node(e, None)
        handler = getattr(self, f"call_{e.name}", None)
        if handler is None and e.name in self.rule.dialect.facts:  # any answer: the proof learns nothing from it
            for a in e.args:
                self.expression(a)
            return Truth(self.world.fresh(e.name, z3.BoolSort()))
        if handler is None:
            raise Unsupported(f"the function {e.name}")
        return handler(*e.args) if e.name != "eval" else self.call_eval(e)

    def call_vmin(self, x: S.Expr) -> Num:
        return self.bound(x, least=True)

    def call_vmax(self, x: S.Expr) -> Num:
        return self.bound(x, least=False)

    def bound(self, x: S.Expr, least: bool) -> Num:
        """The fact vmin or vmax: any bound that is sound. One node has one, however often it is asked."""
        node = self.fact_node(x)
        kind = "vmin" if least else "vmax"
        key = (kind, *(t.value.get_id() for t in node.lanes), *(t.invalid.get_id() for t in node.lanes))
        found = self.world.known.get(key)
        if found is None:
            self.counted = getattr(self, "counted", 0) + 1
            name = f"{kind}.{x.name}" if isinstance(x, S.EName) else f"{kind}.{self.counted}"
            numbers = [self.world.bound(node.dtype, name, t, least) for t in node.lanes]
            found = (numbers[0][0], node)
            self.world.known[key] = found
            self.premise(*(fact for _, fact in numbers))
            self.out.facts.append((name, kind, found[0]))
        number: Num = found[0]
        return number

    def fact_node(self, x: S.Expr) -> Node:
        v = self.expression(x)
        if isinstance(v, Node):
            return v
        if isinstance(v, Constant):
            return Node((v.term,), v.dtype)
        raise Unsupported("a fact about what is no node")

    def call_no_overflow(self, x: S.Expr) -> Truth:
        """The exact result of the node's op on its operands' values fits the dtype, wherever these are defined."""
        node = self.fact_node(x)
        if not self.world.is_int(node.dtype):
            return Truth(TRUE)
        if node.made is None:
            raise Unsupported("no_overflow of a node whose op is not known")
        fits = []
        for i, term in enumerate(node.lanes):
            lanes = [n.lanes[i] if len(n.lanes) > 1 else n.lanes[0] for n in node.made.operands]
            numbers = [self.world.number_of(node.dtype, t) for t in lanes]
            exact = self.exact(node.made.op, numbers)
            fits.append(either(negation(term.defined), self.world.fits(node.dtype, exact)))
        return Truth(both(*fits))

    def exact(self, op: str, n: Seq[Num]) -> Num:
        a = self.numbers
        if op in ARITHMETIC_SIGN:
            return a.binary(ARITHMETIC_SIGN[op], n[0], n[1])
        if op == "Neg":
            return a.binary("-", a.const(0), n[0])
        if op == "Square":
            return a.binary("*", n[0], n[0])
        if op == "MulAcc":
            return a.binary("+", a.binary("*", n[0], n[1]), n[2])
        if op == "Shl":
            return a.binary("<<", n[0], n[1])
        if op == "Abs":
            return a.unary("abs", n[0])
        raise Unsupported(f"no_overflow of {op}")

    def call_same(self, a: S.Expr, b: S.Expr) -> Truth:
        x, y = self.expression(a), self.expression(b)
        if isinstance(x, Node) and isinstance(y, Node):
            return Truth(both(*self.identical(x, y)))
        return self.compare("==", x, y)

    def call_free_of(self, x: S.Expr, r: S.Expr) -> Truth:
        return Truth(TRUE)  # says nothing about one value; where binders matter `structure` reads it

    def call_dtype(self, x: S.Expr) -> DtypeName:
        v = self.expression(x)
        if isinstance(v, (Node, Constant)):
            return DtypeName(v.dtype)
        raise Unsupported("the dtype of what has none")

    def call_lanes(self, x: S.Expr) -> Num:
        if self.rule.pointwise:  # any number: the rule is read at one lane
            value = self.numbers.n.variable("lanes", 16)
            self.premise(z3.Not(self.numbers.n.lt(value, self.numbers.n.const(1))))
            return Num(value)
        v = self.expression(x)
        return self.numbers.const(len(v.lanes) if isinstance(v, Node) else 1)

    def call_bits(self, t: S.Expr) -> Num:
        return self.numbers.const(self.world.bits(self.dtype_value(t)))

    def dtype_value(self, t: S.Expr) -> str:
        v = self.expression(t)
        if not isinstance(v, DtypeName):
            raise Unsupported("no dtype")
        return v.name

    def call_is_int(self, t: S.Expr) -> Truth:
        return Truth(z3.BoolVal(self.world.is_int(self.dtype_value(t))))

    def call_is_float(self, t: S.Expr) -> Truth:
        return Truth(z3.BoolVal(self.world.is_float(self.dtype_value(t))))

    def call_safe_cast(self, a: S.Expr, b: S.Expr) -> Truth:
        return Truth(z3.BoolVal(self.world.safe_cast(self.dtype_value(a), self.dtype_value(b))))

    def call_is_pow2(self, c: S.Expr) -> Truth:
        n = self.number(self.expression(c))
        return Truth(self.numbers.is_power(n), both(n.exists, n.finite))

    def call_log2(self, c: S.Expr) -> Num:
        n: Num = self.numbers.unary("log2", self.number(self.expression(c)))
        return n

    def call_abs(self, a: S.Expr) -> Num:
        n: Num = self.numbers.unary("abs", self.number(self.expression(a)))
        return n

    def _fold(self, op: str, arguments: Seq[S.Expr]) -> Num:
        values = [self.number(self.expression(a)) for a in arguments]
        out = values[0]
        for v in values[1:]:
            out = self.numbers.binary(op, out, v)
        return out

    def call_min(self, *a: S.Expr) -> Num:
        return self._fold("min", a)

    def call_max(self, *a: S.Expr) -> Num:
        return self._fold("max", a)

    def call_gcd(self, *a: S.Expr) -> Num:
        return self._fold("gcd", a)

    def call_tdiv(self, a: S.Expr, b: S.Expr) -> Num:
        return self._fold("tdiv", (a, b))

    def call_tmod(self, a: S.Expr, b: S.Expr) -> Num:
        return self._fold("tmod", (a, b))

    def call_const(self, v: S.Expr, t: S.Expr) -> Any:
        dtype = self.dtype_value(t)
        return self.as_node(self.expression(v), dtype)

    def call_zero(self, x: S.Expr) -> Node:
        return self.like(x, 0)

    def call_one(self, x: S.Expr) -> Node:
        return self.like(x, 1)

    def like(self, x: S.Expr, value: int) -> Node:
        v = self.expression(x)
        if isinstance(v, DtypeName):
            node = Node((self.world.constant(v.name, value),), v.name)
        elif isinstance(v, (Node, Constant)):
            constant = float(value) if self.world.is_float(v.dtype) else value
            lanes = len(v.lanes) if isinstance(v, Node) else 1
            node = Node((self.world.constant(v.dtype, constant),) * lanes, v.dtype, Made("Const", ()))
        else:
            raise Unsupported("zero or one of what has no dtype")
        return node

    def call_eval(self, e: S.ECall) -> Constant:
        """The op's own meaning on constants; without a value where the op is undefined on them."""
        op = self.expression(e.args[0])
        if not isinstance(op, OpName):
            raise Unsupported("eval of what is no op")
        info = self.rule.dialect.ops[op.name]
        values = [self.expression(a) for a in e.args[1:]]
        wanted = next((v.name for v in values if isinstance(v, DtypeName)), None)
        values = [v for v in values if not isinstance(v, DtypeName)]
        known = next((v.dtype for v in values if isinstance(v, Constant) and v.dtype != "bool"), None)
        known = known or next((v.dtype for v in values if isinstance(v, Constant)), None)
        result = wanted or ("bool" if info.result == "bool" else None)
        if result is None:
            result = self.element(self.rule.types[id(e)]) if id(e) in self.rule.types else known
        if result is None:
            raise Unsupported("eval at an unknown dtype")
        nodes = [self.as_node(v, v.dtype if isinstance(v, Constant) else known or result) for v in values]
        made = self.apply(info, nodes, result)
        return Constant(
            made.lanes[0],
            result,
            both(*(self.existence(v) for v in values), made.lanes[0].defined, negation(made.lanes[0].invalid)),
        )

    def call_len(self, xs: S.Expr) -> Num:
        v = self.expression(xs)
        if not isinstance(v, Sequence):
            raise Unsupported("the length of what is no sequence")
        n: Num = self.numbers.const(len(v.items))
        return n

    def call_zip(self, *sequences: S.Expr) -> Sequence:
        columns = [self.sequence(s) for s in sequences]
        return Sequence(tuple(Sequence(row) for row in zip(*columns, strict=False)))

    def call_all(self, xs: S.Expr) -> Truth:
        truths = [self.as_truth(v) for v in self.sequence(xs)]
        return Truth(both(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    def call_any(self, xs: S.Expr) -> Truth:
        truths = [self.as_truth(v) for v in self.sequence(xs)]
        return Truth(either(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    # Sequences.

    def sequence(self, e: S.Expr) -> tuple[Any, ...]:
        v = self.expression(e)
        if not isinstance(v, Sequence):
            raise Unsupported("no sequence")
        return v.items

    def items(self, e: S.EList) -> tuple[Any, ...]:
        out: list[Any] = []
        for i in e.items:
            if isinstance(i, S.ESpread):
                out.extend(self.sequence(i.sequence))
            elif isinstance(i, S.EComprehension):
                out.extend(self.comprehension(i))
            else:
                out.append(self.expression(i))
        return tuple(out)

    def item(self, e: S.EIndex) -> Any:
        items = self.sequence(e.sequence)
        at = self.numbers.n.known(self.number(self.expression(e.index)).value)
        if at is None:
            raise Unsupported("a computed place in a sequence")
        if not 0 <= at < len(items):
            raise Inapplicable
        return items[at]

    def span(self, e: S.ERange) -> range:
        ends = [self.numbers.n.known(self.number(self.expression(x)).value) for x in (e.start, e.stop)]
        if ends[0] is None or ends[1] is None:
            raise Unsupported("a range with computed ends")
        return range(ends[0], ends[1] + e.inclusive)

    def comprehension(self, e: S.EComprehension) -> list[Any]:
        out = []
        outer = self.names
        for item in self.sequence(e.sequence):
            parts = item.items if len(e.names) > 1 and isinstance(item, Sequence) else (item,)
            self.names = {**outer, **dict(zip(e.names, parts, strict=True))}
            if e.condition is not None:
                t = self.truth(e.condition)
                v = z3.simplify(t.value)
                if not (z3.is_true(v) or z3.is_false(v)):
                    raise Unsupported("a filter that is not decided by the rule's form")
                if z3.is_false(v):
                    continue
            out.append(self.expression(e.body))
        self.names = outer
        return out

    # Targets.

    def as_node(self, v: Any, dtype: str | None) -> Node:
        """A value in operand position: a constant of the dtype that the position requires."""
        if isinstance(v, Node):
            return v
        if isinstance(v, Constant):
            if self.side == "target":
                self.needs(v.exists)
            return Node((v.term,), v.dtype, Made("Const", ()))
        if dtype is None:
            raise Unsupported("a constant whose dtype nothing says")
        if isinstance(v, FloatLiteral):
            return Node((self.world.constant(dtype, v.value),), dtype, Made("Const", ()))
        if isinstance(v, Truth):
            if self.side == "target":
                self.needs(v.exists)
            if dtype == "bool":
                return Node((Term(v.value),), dtype, Made("Const", ()))
        number = self.number(v)
        if self.side == "target":
            self.needs(both(number.exists, number.finite))
        return Node((self.world.constant_of(dtype, number),), dtype, Made("Const", ()))

    def needs(self, exists: Expr) -> None:
        """A computation in the target without a value makes the rule not fire, so the proof has it as a premise."""
        self.premise(exists)

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
            result = "bool" if info.result == "bool" else dtype
            if info.params and info.result not in info.params and info.result in info.domains:
                named = [self.dtype_value(a) for a in e.args if self.is_dtype(a)]
                result = named[0] if named else dtype
            if result is None:
                result = nodes[-1].dtype
            return self.apply(info, nodes, result)
        return self.as_node(self.expression(e), dtype)

    def structure_op(self, e: S.ECall) -> Any:
        if e.name == "Invalid":
            return self.invalid_node()
        info = self.rule.dialect.ops[e.name]
        if info.solver:
            named = [self.dtype_value(a) for a in e.args if self.is_dtype(a)]
            return self.apply(
                info, [self.node(a, None) for a in e.args if not self.is_dtype(a)], named[0] if named else self.dtype_of(e)
            )
        raise Unsupported(f"{e.name} is not pointwise")

    def is_dtype(self, e: S.Expr) -> bool:
        return isinstance(e, S.EType) or (
            isinstance(e, S.EName)
            and e.name not in self.names
            and (e.name in self.instance.dtypes or e.name in self.rule.dialect.dtypes)
        )

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
