"""Simplification of random index expressions, the same ones for everybody."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import Contest

COUNT, DEPTH, LINKS = 300, 5, 200


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


def _folded(constant: Callable[[int], Any], first: int) -> Any:
    """A chain of operations on constants, with values of its own for each `first`."""
    out = constant(first)
    for i in range(LINKS):
        k = i % 13 + 2
        out = out + constant(k) if i % 3 == 0 else out * constant(k) if i % 3 == 1 else out % constant(1_000_003)
    return out


def _offset(x: Any, constant: Callable[[int], Any]) -> Any:
    """A variable and a chain of constants added to it."""
    for i in range(LINKS):
        x = x + constant(i % 7 + 1)
    return x


def _divisions(names: list[Any], constant: Callable[[int], Any]) -> Any:
    """A sum of 50 quotients and remainders of few variables."""
    rng = random.Random(1)
    total = constant(0)
    for _ in range(50):
        v, d = rng.choice(names), constant(rng.choice((2, 3, 4, 8)))
        total = total + ((v // d) * d if rng.random() < 0.5 else (v * constant(3) + constant(1)) % d)
    return total


def contests() -> Iterator[Contest]:
    from tinygrad.uop.ops import UOp as TheirUOp

    import morok
    from morok import UOp, dtypes

    # Both engines remember results, so every round gets variables, and with them nodes, of its own.
    turn = iter(range(1_000_000))
    state: dict[str, Any] = {}

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
        goal=1 / 10,
        against="tinygrad",
        rounds=7,
        prepare=prepare,
    )

    def constants() -> None:
        k = 1000 * next(turn) + 1
        width = TheirUOp.variable("v", 0, 16).dtype
        state["ours"] = _folded(lambda v: UOp.const(v, dtypes.index), k)
        state["theirs"] = _folded(lambda v: TheirUOp.const(v, width), k)

    def offsets() -> None:
        k = next(turn)
        ours, theirs = UOp.var(f"v{k}", dtypes.index, 0, 16), TheirUOp.variable(f"v{k}", 0, 16)
        state["ours"] = _offset(ours, lambda v: UOp.const(v, dtypes.index))
        state["theirs"] = _offset(theirs, lambda v: TheirUOp.const(v, theirs.dtype))

    def divisions() -> None:  # tinygrad does not finish this one
        k = next(turn)
        names = [UOp.var(f"n{i}_{k}", dtypes.index, 0, 100 + i) for i in range(10)]
        state["ours"] = _divisions(names, lambda v: UOp.const(v, dtypes.index))

    both = {"tinygrad": lambda: state["theirs"].simplify()}
    for what, make in (
        (f"fold {LINKS} operations on constants", constants),
        (f"add {LINKS} constants to a variable", offsets),
    ):
        make()
        yield Contest(
            what, lambda: morok.simplify(state["ours"]), both, goal=1 / 5, against="tinygrad", rounds=15, prepare=make
        )
    divisions()
    yield Contest(
        "simplify a sum of 50 quotients and remainders",
        lambda: morok.simplify(state["ours"]),
        most=0.1,
        prepare=divisions,
    )
