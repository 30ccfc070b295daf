"""Induction on a loop's end: a fold over one range of a named end is what its target says, for any number of iterations.

The target read with the end replaced by n is the invariant: it is the fold over the first n iterations. Three questions make a
proof: over no iterations, over one, and from n >= 1 of them to n + 1. Guards and facts speak of the end itself throughout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.obligation import Obligation
from morok.prove.encoding.structure import StructureEncoder
from morok.prove.encoding.structure_parts import Fold, Loop
from morok.prove.kinds import Constant, Node
from morok.prove.meanings import solver_function
from morok.prove.semantics.term import Term, Unsupported, both, either, is_false, negation
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol


class CountingEncoder(StructureEncoder):
    """A rule whose pattern is a fold over one range, by induction on the range's end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.fold: Fold | None = None
        self.step_info: OpInfo | None = None

    def folded(self, op: str, info: OpInfo, body: Node, loops: tuple[Any, ...], nested: tuple[Any, ...]) -> Term:
        if self.side == "target" or self.fold is not None or len(loops) != 1 or not isinstance(loops[0], Loop):
            raise Unsupported("more than one fold over one range")
        if not loops[0].counted:
            raise Unsupported("a range whose end the rule does not name")
        self.fold = Fold(op, body.dtype, self.state(body.dtype), body.term, loops)
        self.step_info = info
        return self.fold.state

    def name(self, e: S.EName) -> Any:
        if self.side == "target" and not self.asking:
            if id(self.names.get(e.name)) in self.ranges:
                raise Unsupported("a loop's variable outside the loop")
            if self.loops_between(e.name):
                raise Unsupported(f"{e.name}, which depends on the loop, outside it")
        return super().name(e)

    def fact_node(self, x: S.Expr) -> Node:
        if self.side == "target":
            raise Unsupported("facts in the target of an induction")
        return super().fact_node(x)

    def call_subst(self, x: S.Expr, r: S.Expr, t: S.Expr) -> Node:
        """`x` at the iteration `t`: the value that it has here if this is that iteration."""
        node, loop = self.varying(x), self.ranges.get(id(self.names.get(getattr(r, "name", ""))))
        if not isinstance(x, S.EName) or loop is None:
            raise Unsupported("a substitution of this form")
        if not self.loops_between(x.name):
            return node
        at = self.node(t, None)
        assert isinstance(at, Node)
        lane = self.iteration(node, at, loop)
        return Node((replace(lane, defined=both(at.term.defined, lane.defined)),), node.dtype)

    def varying(self, x: S.Expr) -> Node:
        node = self.names.get(getattr(x, "name", ""))
        if not isinstance(node, Node) or len(node.lanes) != 1:
            raise Unsupported("a substitution in what is no value")
        return node

    def iteration(self, node: Node, at: Node, loop: Loop) -> Term:
        """A node at some iteration: a function of the iteration, which is the node itself at the one that is here."""
        here, t = loop.node.term.value, node.term
        if not is_false(t.invalid) or at.term.value.sort is not here.sort:
            raise Unsupported("a substitution in what may be Invalid, or of another dtype")
        unknown = self.world.once(("of the iteration", here, t.value, t.defined), lambda: self.world.symbol("at"))
        value = smt.Function(unknown, here.sort, t.value.sort)
        defined = smt.Function(Symbol("defined", unknown), here.sort, smt.BoolSort())
        self.world.once(
            ("here", unknown), lambda: self.world.assume(value(here) == t.value, defined(here) == t.defined)
        )
        return Term(self.in_dtype(node.dtype, value(at.term.value)), defined(at.term.value))

    def in_dtype(self, dtype: str, value: Expr) -> Expr:
        """A value of the dtype: where it is a number of the solver, one that the dtype holds."""
        if value.sort is smt.IntSort() and self.world.bits(dtype):
            n = self.world.arithmetic(self.world.dtype(dtype))
            self.world.assume(value >= n.low, value <= n.high)
        return value

    def encode(self) -> Obligation:
        pattern = self.pattern(self.rule.syntax.pattern)
        if self.fold is None or len(pattern.lanes) != 1 or pattern.term is not self.fold.state:
            raise Unsupported("no fold to count the iterations of")
        for clause in self.rule.syntax.clauses:
            self.clause(clause)
        self.side = "target"
        fold = self.fold
        found: Obligation = self.made(lambda: self.by_iterations(pattern, fold, fold.loops[0]))
        return found

    def by_iterations(self, pattern: Node, fold: Fold, loop: Loop) -> Obligation:
        out, n, end = self.out, self.numbers, loop.end
        assert end is not None
        assert self.step_info is not None
        f, d = solver_function(self.step_info), self.world.dtype(fold.dtype)
        count = self.world.variable(self.world.symbol("iterations"), end.dtype)
        done, last = self.world.number_of(end.dtype, count), self.iterations(loop)
        here = self.world.number_of(loop.node.dtype, loop.node.term)
        after = n.binary("+", done, n.const(1))
        first, body = self.identity(fold.op, fold.dtype), fold.body
        known = [*out.premises, end.term.defined]
        # without an identity the first begins the fold
        once = body if is_false(first.defined) else f(self.world, d, first, body)
        results = (
            (self.at_end(pattern, end, end.term), first),
            (self.at_end(pattern, end, self.world.constant(end.dtype, 1)), once),
            (self.at_end(pattern, end, self.said("constant_of", end.dtype, after)), f(self.world, d, fold.state, body)),
        )
        claims = [self.holds(fold.dtype, target, value) for target, value in results]
        so_far = self.at_end(pattern, end, count)
        none = n.compare("<=", last, n.const(0))[1]
        one = both(n.compare("<=", n.const(1), last)[1], n.compare("==", here, n.const(0))[1], results[1][1].defined)
        axioms = [*self.world.axioms]
        out.lemmas.append(("over no iterations", (*known, *axioms, none), claims[0]))
        out.lemmas.append(("over one iteration", (*known, *axioms, one), claims[1]))
        out.premises = [
            *known,
            *axioms,
            n.compare("<=", n.const(1), done)[1],
            n.compare("<", done, last)[1],
            n.compare("==", here, done)[1],
            results[2][1].defined,
            either(negation(fold.state.defined), self.holds(fold.dtype, so_far, fold.state)),
        ]
        # a failure of the invariant is no counterexample to the rule
        self.world.exact = False
        out.applicable, out.claim = [*known, *axioms], claims[2]
        return out

    def holds(self, dtype: str, target: Term, value: Term) -> Expr:
        """The condition that the target is defined and is this value."""
        equal = self.world.equal_but_zero_signs if "nsz" in self.flags else self.equal
        return both(target.defined, equal(dtype, target, value))

    def at_end(self, pattern: Node, end: Node, count: Term) -> Term:
        """The target, with this many iterations for the end of the range."""
        was = self.names
        self.names = {k: self.in_its_place(v, end, count) for k, v in was.items()}
        try:
            target = self.target(self.rule.syntax.target, pattern)
        finally:
            self.names = was
        if not isinstance(target, Node) or target.dtype != pattern.dtype or len(target.lanes) != 1:
            raise Unsupported("a target of another dtype")
        return target.term

    def in_its_place(self, v: Any, end: Node, count: Term) -> Any:
        if isinstance(v, Node) and len(v.lanes) == 1 and v.term.value is end.term.value:
            return Node((count,), end.dtype)
        if isinstance(v, Constant) and v.term.value is end.term.value:
            return replace(v, term=count)
        return v
