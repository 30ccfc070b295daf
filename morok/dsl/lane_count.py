"""The number of lanes of a dialect's nodes, for matchers and for what judges firings: whatever a dialect says it by."""

from __future__ import annotations

from collections.abc import Callable

from morok.dialect import Dialect, Node


def counts_lanes(dialect: Dialect) -> bool:
    """True if a dialect says how many lanes its nodes have; those of another one have one."""
    return "lanes" in dialect.inline or "lanes" in dialect.facts or callable(getattr(dialect, "lanes_of", None))


def lane_count(dialect: Dialect) -> Callable[[Node], int]:
    """The function that counts the lanes of a node: the fact `lanes`, else the number of those that `lanes_of` gives."""
    if "lanes" in dialect.facts:
        return dialect.facts["lanes"]
    lanes_of = getattr(dialect, "lanes_of", None)
    return (lambda n: len(lanes_of(n))) if callable(lanes_of) else (lambda _: 1)
