"""Rewriting: engine, rule sets, library, traces. The package is callable: `morok.rewrite(graph, rules)`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from morok.rewrite.ruleset import RuleSet
    from morok.rewrite.trace import Trace


class _Package(ModuleType):
    """The type of this package. `morok.rewrite` is both a package and a function that users call, so the package is callable."""

    def __call__(
        self, graph: Any, rules: RuleSet, *, context: Any = None, bottom_up: bool = False, trace: Trace | None = None
    ) -> Any:
        """`graph` rewritten until none of `rules` fires: morok.rewrite.library.rewrite."""
        from morok.rewrite.library import rewrite  # lazy: importing the package loads none of its modules

        return rewrite(graph, rules, context=context, bottom_up=bottom_up, trace=trace)


sys.modules[__name__].__class__ = _Package
