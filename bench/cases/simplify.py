"""Simplification of random index expressions, the same ones for everybody."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import Contest

COUNT, DEPTH = 300, 5


def _expression(rng: random.Random, depth: int, leaf: Callable[[int], Any], constant: Callable[[int], Any]) -> Any:
    """A random tree of + * // % over variables in 0..16, the divisors positive constants."""
    if depth == 0 or rng.random() < 0.1:
        return leaf(rng.randrange(4)) if rng.random() < 0.75 else constant(rng.randrange(1, 17))
    kind = rng.choice("++*/%")
    a = _expression(rng, depth - 1, leaf, constant)
    if kind == "+":
        return a + _expression(rng, depth - 1, leaf, constant)
    c = constant(rng.choice((1, 2, 3, 4, 6, 8, 12, 16)))
    return a * c if kind == "*" else a // c if kind == "/" else a % c


def _build(leaf: Callable[[int], Any], constant: Callable[[int], Any]) -> list[Any]:
    rng = random.Random(20)
    return [_expression(rng, DEPTH, leaf, constant) for _ in range(COUNT)]


def contests() -> Iterator[Contest]:
    from tinygrad.uop.ops import UOp as TheirUOp

    import morok
    from morok import UOp, dtypes

    # Both engines remember results, so every round gets variables, and with them nodes, of its own.
    turn = iter(range(1_000_000))
    state: dict[str, list[Any]] = {}

    def prepare() -> None:
        k = next(turn)
        ours = [UOp.var(f"v{i}_{k}", dtypes.index, 0, 16) for i in range(4)]
        theirs = [TheirUOp.variable(f"v{i}_{k}", 0, 16) for i in range(4)]
        width = theirs[0].dtype
        state["ours"] = _build(ours.__getitem__, lambda v: UOp.const(v, dtypes.index))
        state["theirs"] = _build(theirs.__getitem__, lambda v: TheirUOp.const(v, width))

    prepare()
    yield Contest(
        f"simplify {COUNT} random index expressions of depth {DEPTH}",
        lambda: [morok.simplify(e) for e in state["ours"]],
        {"tinygrad": lambda: [e.simplify() for e in state["theirs"]]},
        goal=1 / 4,
        against="tinygrad",
        rounds=7,
        prepare=prepare,
    )
