"""Rules about structure: places and memory, loops, folds, and the lanes that they write.

Memory is a function from index vectors to elements with its own notion of what lies inside; statements are values of a sort of
effects; a fold is judged by induction over its iterations.
"""

from __future__ import annotations

from typing import Any

from morok.prove.encoding.fold_induction import Folds
from morok.prove.kinds import Node


class StructureEncoder(Folds):
    """A whole rule about structure."""

    def finish(self, pattern: Any, target: Any) -> None:
        super().finish(self.with_values_of(pattern, target) if isinstance(target, Node) else pattern, target)
