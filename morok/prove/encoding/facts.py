"""The facts of nodes, dtypes and constants that guards may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from typing import Any, Final, TypeVar

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.functions import FUNCTIONS, SPECIAL
from morok.prove import smt
from morok.prove.encoding.asked import ANY, words_of
from morok.prove.encoding.pointwise import Pointwise
from morok.prove.kinds import CONSTANT, Constant, DtypeName, Made, Node, OpName, Truth
from morok.prove.semantics.numbers import Arithmetic, Num
from morok.prove.semantics.term import Term, Unsupported, both, either, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Symbol

T = TypeVar("T")
MOST_LANES = 31  # bits that the number of lanes takes, of any vector that there can be
REDUCTIONS: Final = ("Add", "Mul", "Max", "Min")
ARITHMETIC_SIGN = {"Add": "+", "Sub": "-", "Mul": "*"}
# The facts of a foreign dialect of which a proof learns something: those that its verification tries (prove/dialect_facts.py).
MEANT: Final = frozenset(("vmin", "vmax", "no_overflow", "defined", "bits", "is_int", "is_float", "safe_cast"))
# whatever a dialect's facts are
_LANGUAGE: Final = frozenset(("same", "dtype", "lanes", "eval", "const", "zero", "one"))


class Facts(Pointwise):
    """The functions that guards and `let` may call."""

    def call(self, e: S.ECall) -> Any:
        if e.name in self.rule.dialect.ops:
            return self.node(e, None)
        if e.name in self.rule.externs:
            results = ", ".join(r.name for r in self.rule.externs[e.name].results)
            given = ", ".join(a.name if isinstance(a, S.EName) else ".." for a in e.args)
            wanted = f"({results})" if "," in results else results
            mend = f"`let {wanted} = {e.name}({given})` before it mends that"
            raise Unsupported(f"the helper {e.name} inside an expression: {mend}")
        if e.name == "eval":
            return self.call_eval(e)
        function = FUNCTIONS.get(e.name)
        if function is None:
            return self.fact(e.name, e.args)
        if function.fact:
            return function.meaning(self, *e.args)
        operands = self.arguments(function, e.args)
        self.need(*(c for v in operands for c in self.there(v)))  # whatever the meaning makes of it
        return function.meaning(self, *operands)

    def there(self, v: Any) -> Iterator[Expr]:
        """The condition that an operand has a value, and is no infinite bound, if it is a number."""
        if isinstance(v, Num):
            yield from (v.exists, v.finite)
        elif isinstance(v, Truth):
            yield v.exists

    def fact(self, name: str, operands: Seq[S.Expr]) -> Any:
        dialect = self.rule.dialect
        if not built_in(dialect) and name in dialect.facts and name not in MEANT | _LANGUAGE:
            return self.unknown_fact(name, operands)
        handler = getattr(self, f"call_{name}", None)
        if handler is not None:
            return handler(*operands)
        if name not in self.rule.dialect.facts or name in SPECIAL:
            raise Unsupported(f"the function {name}")
        return self.unknown_fact(name, operands)

    def unknown_fact(self, name: str, operands: Seq[S.Expr]) -> Num | Truth:
        """Any answer of the fact's kind: the proof learns nothing from it."""
        if name in SPECIAL:
            raise Unsupported(f"the fact {name} of a dialect of one's own")
        for a in operands:
            self.expression(a)
        return self.any_answer(name)

    def any_answer(self, name: str) -> Num | Truth:
        """An unknown of the kind that a function answers with, from which a proof learns nothing; perhaps there is no answer."""
        function = FUNCTIONS.get(name)
        exists = self.world.fresh(name, smt.BoolSort()) if function is not None and function.partial else TRUE
        if function is None or function.result == "bool":  # a fact that a dialect adds is a bool
            return Truth(self.world.fresh(name, smt.BoolSort()), exists)
        if function.result == "int":
            return Num(self.numbers.n.variable(self.world.symbol(name)), exists)
        raise Unsupported(f"{name} of what a rule says nothing of")

    def call_vmin(self, x: S.Expr) -> Num:
        return self.bound(x, least=True)

    def call_vmax(self, x: S.Expr) -> Num:
        return self.bound(x, least=False)

    def bound(self, x: S.Expr, least: bool) -> Num:
        """The fact vmin or vmax: any bound that is sound. One node has one, however often it is asked."""
        node = self.fact_node(x)
        if node.dtype not in self.rule.dialect.dtypes:
            raise Unsupported("bounds of a dtype that the rule does not look at")
        kind = "vmin" if least else "vmax"

        def make() -> Symbol:
            unknown: Symbol = self.world.symbol(kind)
            self.counted += 1
            number = self.said("bound", node.dtype, unknown, node.lanes[0], least)[0]
            self.out.learn(f"{kind}.{x.name if isinstance(x, S.EName) else self.counted}", kind, number)
            return unknown

        unknown = self.one_answer(kind, make, x)
        numbers = [self.said("bound", node.dtype, unknown, t, least) for t in node.lanes]
        for t, (_, fact) in zip(node.lanes, numbers, strict=True):
            if (unknown, t.value, t.defined, t.invalid) not in self.bounded:
                self.bounded.add((unknown, t.value, t.defined, t.invalid))
                self.premise(fact)
        first: Num = numbers[0][0]
        self.nonempty(words_of(x, self.meanings), kind, first, node)
        return first

    def nonempty(self, words: Any, kind: str, bound: Num, node: Node) -> None:
        """Note that the bounds of a node are in order, whether or not it has a value: `prove.bounds_proofs` shows it of each op
        of Morok's. There is nothing between the bounds of Invalid alone.
        """
        if words is ANY or not built_in(self.rule.dialect):
            return
        ends = self.intervals.setdefault(words, {})
        new = ends.setdefault(kind, bound) is bound
        if new and len(ends) == 2:
            in_order = self.numbers.compare("<=", ends["vmin"], ends["vmax"])[1]
            self.ordered_bounds.append(either(*(t.invalid for t in node.lanes), in_order))

    def one_answer(self, kind: str, make: Callable[[], T], *of: S.Expr) -> T:
        """The answer to a question about nodes: the earlier one where the same nodes were asked about, else a new one."""
        words = [words_of(e, self.meanings) for e in of]
        if ANY in words:
            return make()
        found: T = self.world.once((kind, *(sorted(words, key=repr) if kind == "same" else words)), make)
        return found

    def about(self, x: S.Expr) -> Any:
        """The node, constant or dtype that something is asked about."""
        return self.expression(x)

    def fact_node(self, x: S.Expr) -> Node:
        v = self.about(x)
        if isinstance(v, Node):
            return v
        if isinstance(v, Constant):
            return Node((v.term,), v.dtype)
        raise Unsupported("a fact about what is no node")

    def call_no_overflow(self, x: S.Expr) -> Truth:
        """A fact that says, where it holds: the exact result of the op on the operands' values fits the dtype, wherever these are
        defined. That it does not says nothing, as it is decided by bounds.
        """
        node = self.fact_node(x)
        if not self.world.is_int(node.dtype):  # bounds of floats say nothing: that it does not hold neither
            return self.only_if("no_overflow", TRUE, x)
        if node.made is None:
            raise Unsupported("no_overflow of a node whose op is not known")
        fits = []
        for i, term in enumerate(node.lanes):
            lanes = [n.lanes[i] if len(n.lanes) > 1 else n.lanes[0] for n in node.made.operands]
            numbers = [self.said("number_of", node.dtype, t) for t in lanes]
            result = exact(self.world, node.made.op, numbers)
            fits.append(either(negation(term.defined), self.said("fits", node.dtype, result)))
        return self.only_if("no_overflow", both(*fits), x)

    def call_defined(self, x: S.Expr) -> Truth:
        """A fact that says, where it holds: the node has a value, which is not Invalid, also where the pattern asks for none, as
        in a loop that does not run. That it does not says nothing, as it is decided by bounds.
        """
        node = self.fact_node(x)
        has_value = (both(t.defined, negation(t.invalid)) for t in node.lanes)
        return self.only_if("defined", both(*has_value), x)

    def only_if(self, kind: str, implied: Expr, *of: S.Expr) -> Truth:
        """A fact of nodes that implies something, and whose absence implies nothing."""
        return Truth(both(self.unknown_truth(kind, *of), implied))

    def unknown_truth(self, kind: str, *of: S.Expr) -> Expr:
        """The answer to a question about nodes, of which nothing is known."""
        return self.one_answer(kind, lambda: smt.Bool(self.world.symbol(kind)), *of)

    def call_same(self, a: S.Expr, b: S.Expr) -> Truth:
        """One node has one value; two nodes may have the same."""
        x, y = self.expression(a), self.expression(b)
        if isinstance(x, Node) and isinstance(y, Node):
            one = isinstance(a, S.EName) and isinstance(b, S.EName) and a.name == b.name
            return Truth(TRUE) if one else self.only_if("same", both(*self.identical(x, y)), a, b)
        return self.compare("==", x, y)

    def call_free_of(self, x: S.Expr, r: S.Expr) -> Truth:
        """It says nothing about one value; where loops matter, `freedom` reads it."""
        return Truth(self.unknown_truth("free_of", x, r))

    def call_independent(self, s: S.Expr, r: S.Expr) -> Truth:
        """It, too, is no matter of values: `reindexing` reads it."""
        return Truth(self.unknown_truth("independent", s, r))

    def call_is_axis(self, r: S.Expr) -> Truth:
        """Nor is this one of values: `loop_dependence` reads that a range is none."""
        return Truth(self.unknown_truth("is_axis", r))

    def call_done_within(self, s: S.Expr, p: S.Expr, q: S.Expr) -> Truth:
        """The same holds of which statements are done in which loops."""
        return Truth(self.unknown_truth("done_within", s, p, q))

    def call_subst(self, x: S.Expr, r: S.Expr, t: S.Expr) -> Node:
        raise Unsupported("subst")

    def call_dtype(self, x: S.Expr, *lanes: S.Expr) -> DtypeName:
        v = self.about(x)
        if isinstance(v, (Node, Constant)):
            return DtypeName(v.dtype)
        raise Unsupported("the dtype of what has none")

    def call_lanes(self, x: S.Expr) -> Num:
        ty = self.rule.types.get(id(x))
        if ty is None or ty.place or ty.pointer:
            raise Unsupported("the lanes of what has no dtype")
        return self.lane_number(ty.lanes)

    def lane_number(self, lanes: int | str) -> Num:
        """Any number: the rule is read at one lane. Nodes of one kind have one, a scalar condition its own."""
        if isinstance(lanes, int):
            return self.numbers.const(lanes)
        value = self.numbers.n.variable(Symbol("lanes", lanes), MOST_LANES)
        self.premise(smt.Not(self.numbers.n.lt(value, self.numbers.n.const(1))))
        return Num(value)

    def call_bits(self, t: S.Expr) -> Num:
        return self.numbers.const(self.world.bits(self.dtype_value(t)))

    def call_is_int(self, t: S.Expr) -> Truth:
        return Truth(smt.BoolVal(self.world.is_int(self.dtype_value(t))))

    def call_is_float(self, t: S.Expr) -> Truth:
        return Truth(smt.BoolVal(self.world.is_float(self.dtype_value(t))))

    def call_safe_cast(self, a: S.Expr, b: S.Expr) -> Truth:
        return Truth(smt.BoolVal(self.world.safe_cast(self.dtype_value(a), self.dtype_value(b))))

    def call_const(self, v: S.Expr, t: S.Expr) -> Any:
        dtype = self.dtype_value(t)
        return self.as_node(self.expression(v), dtype)

    def call_zero(self, x: S.Expr) -> Node:
        return self.like(x, 0)

    def call_one(self, x: S.Expr) -> Node:
        return self.like(x, 1)

    def like(self, x: S.Expr, value: int) -> Node:
        v = self.about(x)
        if isinstance(v, DtypeName):
            node = Node((self.world.constant(v.name, value),), v.name)
        elif isinstance(v, (Node, Constant)):
            constant = float(value) if self.world.is_float(v.dtype) else value
            lanes = len(v.lanes) if isinstance(v, Node) else 1
            node = Node((self.world.constant(v.dtype, constant),) * lanes, v.dtype, Made(CONSTANT, ()))
        else:
            raise Unsupported("zero or one of what has no dtype")
        return node

    def call_identity(self, op: S.Expr, x: S.Expr) -> Node:
        v, found = self.about(x), self.expression(op)
        if (
            not isinstance(found, OpName)
            or not isinstance(v, (Node, Constant))
            or v.dtype not in self.rule.dialect.dtypes
        ):
            raise Unsupported("the identity of an op or at a dtype that the rule does not say")
        term = self.identity(found.name, v.dtype)
        self.need(term.defined)  # elsewhere the rule does not fire
        return Node((term,) * (len(v.lanes) if isinstance(v, Node) else 1), v.dtype, Made(CONSTANT, ()))

    def identity(self, op: str, dtype: str) -> Term:
        """The value of a fold over no iterations."""
        if op not in REDUCTIONS or not built_in(self.rule.dialect):
            raise Unsupported(f"a fold by {op}")
        if dtype == "index" and op in ("Max", "Min"):
            return Term(smt.IntVal(0), FALSE)
        from morok.ir.ops.loop import identity_of  # lazy: another dialect's proofs load none of the IR

        term: Term = self.world.constant(dtype, identity_of(op, dtype))
        return term

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
        at = [v.dtype if isinstance(v, Constant) else known or result for v in values]
        nodes = list(map(self.as_node, values, at))
        held = [self.held(v, d) for v, d in zip(values, at, strict=True) if not isinstance(v, Constant)]
        self.world.stage = "eval"
        try:
            made = self.apply(info, nodes, result)
        finally:
            self.world.stage = "run"
        return Constant(
            made.lanes[0],
            result,
            both(*(self.existence(v) for v in values), *held, made.lanes[0].defined, negation(made.lanes[0].invalid)),
        )

    def held(self, v: Any, dtype: str) -> Expr:
        """The condition that a dtype holds a number: of one that it does not, and would wrap, an evaluator has no value."""
        n = self.numbers
        if not isinstance(v, Num) or self.world.is_float(dtype):
            return TRUE
        if not built_in(self.rule.dialect) and n.n.known(v.value) is None:
            raise Unsupported("a computed number, of which the dialect may make another constant")
        if dtype == "bool":
            return either(*(n.compare("==", v, n.const(i))[1] for i in (0, 1)))
        found: Expr = self.said("fits", dtype, v)
        return found


def exact(world: Any, op: str, n: Seq[Num]) -> Num:
    """The exact result of an op on numbers, whatever its dtype holds."""
    a: Arithmetic = world.numbers
    if op in ARITHMETIC_SIGN:
        return a.binary(ARITHMETIC_SIGN[op], n[0], n[1])
    if op == "Neg":
        return a.binary("-", a.const(0), n[0])
    if op == "Square":
        return a.binary("*", n[0], n[0])
    if op == "MulAcc":
        return a.binary("+", a.binary("*", n[0], n[1]), n[2])
    if op == "Shl":
        was, world.place = world.place, "values"
        try:
            return a.binary("<<", n[0], n[1])
        finally:
            world.place = was
    if op == "Abs":
        return a.unary("abs", n[0])
    raise Unsupported(f"no_overflow of {op}")
