"""From a checked rule to what the solver must judge: one instance, one choice of alternatives, one encoding at a time."""

from __future__ import annotations

import functools
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.guard_clauses import Clauses
from morok.prove.encoding.obligation import Inapplicable, Obligation
from morok.prove.semantics.term import Unsupported, both, either, is_false, negation


class Encoder(Clauses):
    """A whole rule of lanewise ops."""

    def encode(self) -> Obligation:
        """Build the obligation; Unsupported if this encoding cannot say it, Inapplicable if this choice matches nothing."""
        out = self.out
        pattern = self.pattern(self.rule.syntax.pattern)
        self.start_clauses(pattern)
        for clause in self.rule.syntax.clauses:
            self.clause(clause)
        if any(is_false(smt.simplify(p)) for p in out.premises):
            raise Inapplicable
        self.side = "target"
        target = self.made(lambda: self.target(self.rule.syntax.target, pattern))
        if self.world.shifts and not self.world.amounts:
            raise Unsupported("no shift by an amount of its own")
        self.finish(pattern, target)
        out.premises.extend(self.world.axioms)
        return out

    def start_clauses(self, pattern: Any) -> None:
        self.has_value = either(*(lane.defined for lane in pattern.lanes))
        self.premise(self.has_value)

    def target(self, e: S.Expr, pattern: Any) -> Any:
        return self.node(e, pattern.dtype)

    def finish(self, pattern: Any, target: Any) -> None:
        if pattern.dtype != target.dtype:
            raise Unsupported(f"a {pattern.dtype} pattern with a {target.dtype} target")
        if len(pattern.lanes) != len(target.lanes):
            raise Unsupported(f"{len(pattern.lanes)} lanes become {len(target.lanes)}")
        equal = functools.partial(self.said, "equal_but_zero_signs") if "nsz" in self.flags else self.equal
        self.out.pattern, self.out.target = pattern, target
        pairs = list(zip(pattern.lanes, target.lanes, strict=True))
        kept = [both(t.defined, equal(pattern.dtype, t, p)) for p, t in pairs]
        # Who takes some lanes asks nothing of the others: each is kept where it has a value, whether or not the others have one.
        self.out.claim = (
            kept[0] if len(kept) == 1 else both(*map(either, (negation(p.defined) for p, _ in pairs), kept))
        )
