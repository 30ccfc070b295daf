"""Node construction: nodes that are new, and nodes that are there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import Contest

N = 20_000


def _build(x: Any, constants: list[Any]) -> Callable[[], object]:
    return lambda: [x + c for c in constants]


def contests() -> Iterator[Contest]:
    from tinygrad import dtypes as their_dtypes
    from tinygrad.uop.ops import UOp as TheirUOp

    from morok import UOp, dtypes

    x = UOp.var("x", dtypes.i32)
    y = TheirUOp.variable("y", 0, 1000, dtype=their_dtypes.int)
    ours: list[Any] = [UOp.const(i, dtypes.i32) for i in range(N)]
    theirs: list[Any] = [TheirUOp.const(i, their_dtypes.int) for i in range(N)]
    # without a reference to the results every sum is released, so each round makes all of them anew
    yield Contest(f"{N} new nodes", _build(x, ours), {"tinygrad": _build(y, theirs)}, goal=1 / 2, against="tinygrad")
    kept = (_build(x, ours)(), _build(y, theirs)())
    yield Contest(
        f"{N} nodes that exist", _build(x, ours), {"tinygrad": _build(y, theirs)}, goal=1 / 4, against="tinygrad"
    )
    del kept
