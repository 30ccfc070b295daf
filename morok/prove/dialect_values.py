"""Values of a dialect's dtypes to try: edges, what its code mentions, and random ones; those that the dtype has."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from morok.dialect import NUMBERS, OpInfo
from morok.prove import smt
from morok.prove.function_digest import code_of
from morok.prove.symbol import Symbol

EDGES: Final = (0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 8, 10, 13, 31, 32, 63, 64, 99, 100, 101, -99, -100, -101)
FLOATS: Final = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    math.inf,
    -math.inf,
    math.nan,
    65504.0,
    2.0**31,
    -128.5,
    255.5,
)
WIDTHS: Final = (4, 7, 8, 15, 16, 31, 32, 63, 64)
MOST: Final = 24  # values of one dtype
SMALL: Final = 256  # values of a dtype that are all tried where an op has one operand
RANDOM: Final = 6
NUMBERED: Final = 500  # numbers in an op's code that are tried


def misnumbered(value: Any, whole: bool = False) -> str:
    """The reason why something is no number of Python's own, as all numbers of a proof are; "" of one: others may wrap.

    whole  it has to be an integer, or infinite
    """
    if type(value) in NUMBERS:
        rounded = whole and isinstance(value, float) and not math.isinf(value)
        return f"{value!r}, a float: what rules compute of it is rounded" if rounded else ""
    return f"{value!r}, of class {type(value).__name__}: numbers in rules are those of Python, which never wrap"


def same_number(a: Any, b: Any) -> bool:
    """True if two values are one: floats with their sign, NaNs alike, bools as the integers they are. A float is no integer: what
    rules compute of it is rounded, and has no bits.
    """
    if isinstance(a, float) != isinstance(b, float):
        return False
    try:
        if a != a or b != b:
            return bool(a != a and b != b)
        return bool(a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) if isinstance(a, float) else bool(a == b)
    except (TypeError, ValueError, OverflowError):
        return False


def mentioned(info: OpInfo) -> tuple[float, ...]:
    """The numbers in an evaluator's code and in all that it refers to, those of its own code first."""
    return () if info.evaluate is None else numbers_of(info.evaluate, getattr(info.evaluate, "__module__", "") or "")


def numbers_of(code: Any, module: str) -> tuple[float, ...]:
    """The numbers in code, and in all that it refers to."""
    try:
        return code_of(code, module).numbers[:NUMBERED]
    except Exception:  # the code is somebody's own; without it there are fewer values to try
        return ()


def near(world: Any, name: str, numbers: Sequence[float], known: Sequence[Any]) -> list[Any]:
    """Values of a dtype at numbers and next to them, but for those that are known."""
    known_to = holder(world, name)
    if world.is_float(name):
        tried: list[Any] = [f(v) for n in numbers for v in (float(n), -float(n)) for f in (float, _above, _below)]
    else:
        tried = [v for n in map(int, numbers) for v in (n, n - 1, n + 1, -n)]
    new = {repr(v): v for v in tried}.keys() - set(map(repr, known))
    return [v for v in {repr(v): v for v in tried if repr(v) in new}.values() if known_to(v)]


def _above(v: float) -> float:
    return math.nextafter(v, math.inf)


def _below(v: float) -> float:
    return math.nextafter(v, -math.inf)


def candidates(world: Any, name: str, rng: random.Random) -> list[Any]:
    """Values of this dtype, as the world says: those that it has a constant for which is that value again."""
    known_to = holder(world, name)
    if world.is_float(name):
        tried: list[Any] = [*FLOATS, *(rng.uniform(-100, 100) for _ in range(RANDOM))]
        return [v for v in tried if known_to(v)][:MOST]
    powers = [s * (1 << w) + o for w in WIDTHS for s in (1, -1) for o in (-1, 0)]
    wide = [v for v in powers if known_to(v)]
    most = max(map(abs, wide), default=100)
    chance = [rng.randint(-most, most) for _ in range(4 * RANDOM)]
    inner = [v for v in dict.fromkeys([*EDGES, *chance]) if known_to(v)]
    ends = list(dict.fromkeys([*sorted(wide, key=abs)[-4:], *([min(inner), max(inner)] if inner else [])]))
    found = list(dict.fromkeys([*inner[: MOST - RANDOM], *ends, *[v for v in chance if v in inner][:RANDOM]]))
    if (
        found
        and all(v in (0, 1) for v in found)
        and known_to(True)
        and world.read(name, _closed(world, name, True)) is True
    ):
        return [False, True]
    return found


def every(world: Any, name: str, some: Sequence[Any]) -> list[int]:
    """All values of a dtype of integers, some of which are known; nothing where there are many."""
    whole = [int(v) for v in some if isinstance(v, int)]
    if not whole or world.is_float(name) or max(whole) - min(whole) >= SMALL:
        return []
    known_to = holder(world, name)
    found = [v for v in range(min(whole), max(whole) + 1) if known_to(v)]
    for step, last in ((1, max(whole)), (-1, min(whole))):
        while len(found) <= SMALL and known_to(last + step):
            last += step
            found.append(last)
    return sorted(found) if len(found) <= SMALL else []


def few(values: Sequence[Any], most: int) -> list[Any]:
    """So many of a dtype's values: the first, and its least and its greatest, at which results leave it."""
    whole = [v for v in values if isinstance(v, int)]
    ends = [min(whole), max(whole)] if whole else []
    return list(dict.fromkeys([*values[: most - len(ends)], *ends]))


def _closed(world: Any, name: str, value: Any) -> Any:
    return smt.simplify(smt.term(world.constant(name, value).value))


def holder(world: Any, name: str) -> Callable[[Any], bool]:
    """A function that is true of the values of a dtype: a value's constant is it, and satisfies what is assumed of a variable."""
    denies: list[Callable[[Any], bool]] = []

    def has(value: Any) -> bool:
        try:
            if not same_number(world.read(name, _closed(world, name, value)), value):
                return False
            if not denies:
                denies.append(denial(world, name))
            return not denies[0](value)
        except Exception:  # the theory has no such constant
            return False

    return has


def denial(world: Any, name: str) -> Callable[[Any], bool]:
    """A function that is true of the values that are excluded by what is assumed of a variable of this dtype."""
    before = len(world.axioms)
    x = world.variable(Symbol("value", name), name).value
    assumed = world.axioms[before:]
    del world.axioms[before:]

    def denied(value: Any) -> bool:
        there = smt.Substitution([(x, world.constant(name, value).value)])
        return any(there(a) is smt.FALSE for a in assumed)

    return denied
