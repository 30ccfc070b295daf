"""Counterexamples of least magnitude: a solver's model names any values at which a rule is false, evaluation finds smaller ones.

Integers are small by absolute value, floats by digits. First come combinations of the smallest values, the least one first, and
then each value alone comes as near to 0 as it can. The number of evaluations is bounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from morok.errors import MorokError
from morok.ir.dtype import BY_NAME
from morok.ir.uop import UOp

TRIES: Final = 600  # evaluations
COMBINED: Final = 400  # of these at most so many of small values together
INTEGERS: Final = (0, *(sign * n for n in range(1, 9) for sign in (1, -1)))
NEGATIVE_ZERO: Final = (1, 1.6, True)  # the size of -0.0, which is read as 0: behind those of 1.0, 2.0, 3.0 and 0.5
FLOATS: Final = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, -0.0, math.inf, -math.inf, math.nan)
TRUTHS: Final = (False, True)
UNKNOWN: Final = "any"  # of a value that is of no dtype: a mathematical integer

Values = Mapping[str, Any]


def weight(v: Any) -> tuple[float, ...]:
    """The size of a value, to be compared with those of its kind; a value that is no number is larger than all."""
    if isinstance(v, bool):
        return (0, v)
    if isinstance(v, int):
        return (0, abs(v), v < 0)
    if not isinstance(v, float):
        return (math.inf,)
    if not math.isfinite(v):
        return (99, v != v, v < 0)
    if v == 0 and math.copysign(1.0, v) < 0:
        return NEGATIVE_ZERO
    digits = repr(v).lower().replace("-", "").partition("e")[0].replace(".", "").strip("0")
    return (len(digits), abs(math.log2(abs(v))) if v else -1, math.copysign(1.0, v) < 0)


def least(values: Values, dtypes: Mapping[str, str], false_at: Callable[[Values], bool]) -> dict[str, Any]:
    """Values no larger than these at which `false_at` holds; these themselves where it finds none.

    dtypes  of the values that may be others, by name
    """
    found = dict(values)
    movable = [n for n in dtypes if isinstance(found.get(n), (bool, int, float))]
    budget = iter(range(TRIES))

    def tried(changed: Values) -> bool:
        return next(budget, None) is not None and false_at({**found, **changed})

    for small in itertools.islice(_combined([dtypes[n] for n in movable], [found[n] for n in movable]), COMBINED):
        if tried(dict(zip(movable, small, strict=True))):
            found.update(zip(movable, small, strict=True))
            break

    def lowered(name: str) -> bool:
        """True if a value alone is smaller now: a small one, or one that is nearer to 0 by powers of two, the largest first."""
        before = found[name]
        for v in _smaller(before, dtypes[name]):
            if tried({name: v}):
                found[name] = v
                break
        for step in _steps(found[name]):
            v = found[name] - step
            if weight(v) < weight(found[name]) and _is_of(v, dtypes[name]) and tried({name: v}):
                found[name] = v
        return weight(found[name]) < weight(before)

    while any(lowered(name) for name in movable):
        pass
    return found


def _small(dtype: str, like: Any) -> list[Any]:
    """The smallest values of a dtype, the least first, as far as they are no larger than one that is known."""
    pool: tuple[Any, ...] = TRUTHS if isinstance(like, bool) else INTEGERS if isinstance(like, int) else FLOATS
    return [v for v in pool if weight(v) <= weight(like) and _is_of(v, dtype)]


def _is_of(v: Any, dtype: str) -> bool:
    if dtype == UNKNOWN:
        return True
    try:
        held = UOp.const(v, BY_NAME[dtype]).arg
    except (MorokError, KeyError):
        return False
    return bool(held == v or (held != held and v != v))


def _combined(dtypes: list[str], like: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Combinations of small values, none larger than these, those of the least sum of ranks first."""
    pools = [_small(d, v) for d, v in zip(dtypes, like, strict=True)]
    for total in range(sum(len(p) - 1 for p in pools) + 1):
        for ranks in _summing(total, [len(p) for p in pools]):
            yield tuple(p[r] for p, r in zip(pools, ranks, strict=True))


def _summing(total: int, most: list[int]) -> Iterator[tuple[int, ...]]:
    """Numbers below `most`, one each, of this sum."""
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(min(total + 1, most[0])):
        for rest in _summing(total - first, most[1:]):
            yield (first, *rest)


def _smaller(v: Any, dtype: str) -> Iterator[Any]:
    """Smaller values, the least first: small ones, then floats of fewer digits, and an integer's negative."""
    limit = weight(v)
    made: list[Any] = _small(dtype, v)
    if isinstance(v, float):
        made += [float(f"{v:.{digits}g}") for digits in range(17)] if math.isfinite(v) else []
        made += [math.copysign(2.0**k, v) for k in range(-3, 33)]
    elif isinstance(v, int) and not isinstance(v, bool):
        made.append(-v)
    yield from (m for m in dict.fromkeys(made) if weight(m) < limit and _is_of(m, dtype))


def _steps(v: Any) -> Iterator[int]:
    """Amounts to lessen an integer by, each once: powers of two, the largest first, as in a search by halves."""
    if isinstance(v, int) and not isinstance(v, bool):
        yield from (int(math.copysign(1, v)) << k for k in reversed(range(abs(v).bit_length())))
