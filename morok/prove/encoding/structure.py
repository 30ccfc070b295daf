"""Rules about structure: lanes, places and memory, loops, folds, movement.

Lanes are enumerated up to a stated bound; memory is a function from index vectors to elements with its own notion of what lies
inside; statements are values of a sort of effects; a fold is judged by induction over its iterations (`induction`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from morok.dsl import syntax as S
from morok.prove.encoding.fold_induction import Folds
from morok.prove.encoding.structure_parts import OPAQUE, Buffer, View
from morok.prove.kinds import CONSTANT, INVALID, Node
from morok.prove.semantics.term import Unsupported, both


class StructureEncoder(Folds):
    """A whole rule about structure."""

    def target(self, e: S.Expr, pattern: Any) -> Any:
        return self.node(e, pattern.dtype if isinstance(pattern, Node) else None)

    def start_clauses(self, pattern: Any) -> None:
        if isinstance(pattern, Node):
            super().start_clauses(pattern)
        elif not isinstance(pattern, (Buffer, View)):
            raise Unsupported("a rule about what is no value")

    def finish(self, pattern: Any, target: Any) -> None:
        if isinstance(pattern, (Buffer, View)) and isinstance(target, (Buffer, View)):
            self.out.claim = both(*self.must, self.same_views(pattern, target))
            return
        if not isinstance(pattern, Node) or not isinstance(target, Node):
            raise Unsupported("a target that is no value")
        pattern = self.with_values_of(pattern, target)
        if {pattern.dtype, target.dtype} <= OPAQUE:
            target = replace(target, dtype=pattern.dtype)
        if (
            len(target.lanes) == 1
            and len(pattern.lanes) > 1
            and target.made is not None
            and target.made.op in (CONSTANT, INVALID)
        ):
            target = replace(target, lanes=target.lanes * len(pattern.lanes))  # a constant fills the vector
        super().finish(pattern, target)
        self.out.claim = both(*self.must, self.out.claim)
