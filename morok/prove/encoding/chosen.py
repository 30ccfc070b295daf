"""Sums in which one iteration counts: before it the fold is what it is of none, from it on what the rule's target says.

Which iteration that is the target tells, where it substitutes it for the range. Two questions make a proof: one more iteration
leads from the one to the other, and the iteration is one of the loop's, or the target what a fold of none is.
"""

from __future__ import annotations

from morok.dsl import syntax as S
from morok.prove.encoding.counting import CountingEncoder
from morok.prove.encoding.obligation import Obligation
from morok.prove.encoding.structure_parts import Fold, Loop
from morok.prove.kinds import Node
from morok.prove.meanings import solver_function
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both, either, is_false, negation
from morok.prove.smt import Expr


class ChosenEncoder(CountingEncoder):
    """A rule whose pattern is a fold over one range, by induction on the iterations that are done."""

    def by_iterations(self, pattern: Node, fold: Fold, loop: Loop) -> Obligation:
        out, n, end = self.out, self.numbers, loop.end
        assert end is not None
        assert self.step_info is not None
        f, d = solver_function(self.step_info), self.world.dtype(fold.dtype)
        nothing, body = self.identity(fold.op, fold.dtype), fold.body
        if is_false(nothing.defined):
            raise Unsupported("a fold of nothing that has no value")
        target = self.at_end(pattern, end, end.term)
        chosen, last = self.chosen(), self.iterations(loop)
        here = self.world.number_of(loop.node.dtype, loop.node.term)
        inside = both(n.compare("<=", n.const(0), here)[1], n.compare("<", here, last)[1])

        def so_far(done: Num) -> Term:
            term: Term = self.said("choose", self.is_among(chosen, done), target, nothing)
            return term

        known = [*out.premises, end.term.defined]
        # a loop that runs does what it does at every iteration, here among them
        runs = either(n.compare("<=", last, n.const(0))[1], both(inside, body.defined))
        value = f(self.world, d, fold.state, body)
        reached = either(self.is_among(chosen, last), self.holds(fold.dtype, target, nothing))
        out.lemmas.append(("the iteration that counts is done", (*known, *self.world.axioms, runs), reached))
        axioms = [*self.world.axioms]
        out.premises = [
            *known,
            *axioms,
            inside,
            value.defined,
            either(negation(fold.state.defined), self.holds(fold.dtype, so_far(here), fold.state)),
        ]
        self.world.exact = False  # a failure of the invariant is no counterexample to the rule
        after = so_far(n.binary("+", here, n.const(1)))
        out.applicable, out.claim = [*known, *axioms], self.holds(fold.dtype, after, value)
        return out

    def chosen(self) -> Num:
        """The number of the iteration that the target substitutes for the range."""
        calls = [e for e in S.walk(self.rule.syntax.target) if isinstance(e, S.ECall) and e.name == "subst"]
        if len(calls) != 1:
            raise Unsupported("no iteration, or several, in the place of a range")
        at = self.node(calls[0].args[2], None)
        if not isinstance(at, Node) or len(at.lanes) != 1 or self.world.is_float(at.dtype):
            raise Unsupported("an iteration that is no number")
        number: Num = self.world.number_of(at.dtype, at.term)
        return number

    def is_among(self, chosen: Num, done: Num) -> Expr:
        """The condition that the iteration is one of the first so many."""
        n = self.numbers
        return both(n.compare("<=", n.const(0), chosen)[1], n.compare("<", chosen, done)[1])
