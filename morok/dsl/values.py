"""Compile-time arithmetic of guards and `let` over mathematical integers; NoValue where an operation is undefined.

Generated code calls these functions; `morok.dsl.functions` maps the functions of the language to them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from morok.dialect import Dialect

LONGEST_SHIFT: Final = 4096
# The budget of one clause. A program's vectors have at most some hundred lanes, and clauses compare few of them in pairs: 2^14
# steps or so. 2^16 take the slowest evaluator less than a second.
MOST_STEPS: Final = 1 << 16
MOST_LANES: Final = (1 << 31) - 1  # of a vector
MOST_BITS: Final = 1 << 14  # of a number, if the numbers that a rule is given have at most 64


class NoValue(ArithmeticError):
    """A compile-time operation has no value: the clause that asked for it fails."""


class OutOfBudget(NoValue):
    """A clause takes more steps than `MOST_STEPS`: it has no value."""


# The exceptions by which the evaluation of a clause shows that it has no value.
FAILURES: Final = (NoValue, ZeroDivisionError, OverflowError, IndexError)


def no_value() -> NoReturn:
    raise NoValue


class Steps:
    """A budget of steps: every item of a comprehension takes one."""

    __slots__ = ("left",)

    def __init__(self, left: int = MOST_STEPS) -> None:
        self.left = left

    def taken(self, items: Iterable[Any]) -> Sequence[Any]:
        """The items, each paid for with a step; OutOfBudget if too few steps are left."""
        if not isinstance(items, (tuple, list, range)):
            items = tuple(items)
        self.left -= len(items)
        if self.left < 0:
            raise OutOfBudget
        return items

    def parted(self, items: Iterable[Any], names: int) -> Sequence[Any]:
        """The same for items that are sequences, one part for each name; NoValue for others."""
        found = self.taken(items)
        for one in found:
            if not isinstance(one, (tuple, list)) or len(one) != names:
                raise NoValue
        return found


def numbers(start: int, stop: int) -> range:
    """The integers from `start` to before `stop`, none where stop <= start; OutOfBudget for more than a clause has steps."""
    if stop - start > MOST_STEPS:
        raise OutOfBudget
    return range(start, stop)


def listed(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items of a list with spreads in it; OutOfBudget if there are more than MOST_STEPS."""
    if len(items) > MOST_STEPS:
        raise OutOfBudget
    return items


def finite(a: Any) -> Any:
    """A number; NoValue if it is the infinite bound of a node."""
    if a.__class__ is float:
        raise NoValue
    return a


def integer(a: Any) -> int:
    """A field or a helper's result as an integer; NoValue if it is anything else."""
    if a.__class__ is not int:
        raise NoValue
    return a


def truth(a: Any) -> bool:
    """A field or a helper's result as a condition; NoValue if it is anything else."""
    if a.__class__ is not bool:
        raise NoValue
    return a


def given(a: Any) -> Any:
    """The result of a helper that may decline; NoValue where it does."""
    if a is None:
        raise NoValue
    return a


def sequence(a: Any) -> Sequence[Any]:
    """A field or a helper's result as a sequence; NoValue if it is anything else."""
    if not isinstance(a, (tuple, list, range)):
        raise NoValue
    return a


def item(xs: Sequence[Any], i: int) -> Any:
    """xs[i] for 0 <= i < len(xs), elsewhere no value: nothing is counted from the end."""
    if i < 0:
        raise NoValue
    return xs[i]


def lane_count(n: int) -> int:
    """A number of lanes; NoValue if no node can have it."""
    if not 1 <= n <= MOST_LANES:
        raise NoValue
    return n


def paired(*sequences: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    """The items of equally long sequences in pairs; NoValue for unequal lengths."""
    if len({len(s) for s in sequences}) != 1:
        raise NoValue
    return tuple(zip(*sequences, strict=True))


def where(condition: Any, yes: Any, no: Any) -> int:
    """One of two integers; both must have a value."""
    a, b = integer(yes), integer(no)
    return a if truth(condition) else b


def inverse(axes: Sequence[Any]) -> tuple[int, ...]:
    """The inverse of a permutation; NoValue for any other sequence."""
    found = [integer(a) for a in axes]
    places = {a: k for k, a in enumerate(found)}
    if len(places) != len(found) or any(k not in places for k in range(len(found))):
        raise NoValue
    return tuple(places[k] for k in range(len(found)))


def others(axes: Sequence[Any], n: Any) -> tuple[int, ...]:
    """The numbers from 0 to n - 1 that are not in `axes`, in order; NoValue unless `axes` holds such numbers, each once."""
    every, found = numbers(0, integer(n)), {integer(a) for a in axes}
    if n < 0 or len(found) != len(axes) or not all(a in every for a in found):
        raise NoValue
    return tuple(k for k in every if k not in found)


def equal(a: Any, b: Any) -> bool:
    """Equality of values, and of sequences item by item, of any of Python's types. Sequences of different lengths differ."""
    if a.__class__ is int and b.__class__ is int:
        return a == b
    left = MOST_STEPS
    pairs = [(a, b)]
    while pairs:
        x, y = pairs.pop()
        if isinstance(x, (tuple, list, range)) and isinstance(y, (tuple, list, range)):
            if len(x) != len(y):
                return False
            left -= len(x)
            if left < 0:
                raise OutOfBudget
            pairs += zip(x, y, strict=True)
        elif x != y:
            return False
    return True


def shl(a: int, b: int) -> int:
    if not 0 <= b <= LONGEST_SHIFT:
        raise NoValue
    return a << b


def shr(a: int, b: int) -> int:
    if not 0 <= b <= LONGEST_SHIFT:
        raise NoValue
    return a >> b


def tdiv(a: int, b: int) -> int:
    """a / b truncated toward zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def tmod(a: int, b: int) -> int:
    """The remainder of `tdiv`, with the sign of a."""
    return a - tdiv(a, b) * b


def is_pow2(a: int) -> bool:
    return a > 0 and a & (a - 1) == 0


def log2(a: int) -> int:
    """The exponent of a power of two."""
    if not is_pow2(a):
        raise NoValue
    return a.bit_length() - 1


def of_several(fold: Any) -> Any:
    """min, max or gcd of integers or of the items of one sequence; of an empty one, no value."""

    def folded(*values: Any) -> int:
        items = [integer(v) for v in (values[0] if len(values) == 1 else values)]
        if not items:
            raise NoValue
        result: int = fold(*items) if len(items) > 1 else fold(items[0], items[0])
        return result

    return folded


least = of_several(min)
most = of_several(max)
gcd = of_several(math.gcd)


def total(xs: Sequence[Any]) -> int:
    return sum([integer(x) for x in xs])


def every(xs: Sequence[Any]) -> bool:
    held = [truth(x) for x in xs]  # all of them must have a value
    return all(held)


def some(xs: Sequence[Any]) -> bool:
    held = [truth(x) for x in xs]
    return any(held)


def finite_axes(axes: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The axes; NoValue if an id or a length is infinite."""
    for i, n in axes:
        if i.__class__ is float or n.__class__ is float:
            raise NoValue
    return axes


def width(axes: Sequence[tuple[int, int]]) -> int:
    """The number of lanes that axes, pairs of an id and a length, make of one."""
    return math.prod([n for _, n in finite_axes(axes)])


def step(axes: Sequence[tuple[int, int]], axis: int) -> int:
    """The distance in lanes between iterations of one of these axes, the last axis running fastest; 0 if it is none of them."""
    lanes = 1
    for i, n in reversed(finite_axes(axes)):
        if i == axis:
            return lanes
        lanes *= n
    return 0


def at(axes: Sequence[tuple[int, int]], axis: int, lane: int) -> int:
    """The iteration of an axis that a lane belongs to; the first if it is none of these axes."""
    lanes = 1
    for i, n in reversed(finite_axes(axes)):
        if i == axis:
            return lane // lanes % n
        lanes *= n
    return 0


def same_value(a: Any, b: Any) -> bool:
    """Equality of constants: by bits, with all NaNs one value and the zeros distinct."""
    if a.__class__ is float and b.__class__ is float:
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    return bool(a == b)


# The names of these functions, and of a few constants, in generated code.
NAMES: Final[dict[str, Any]] = {
    "_no_value": no_value,
    "_Steps": Steps,
    "_numbers": numbers,
    "_listed": listed,
    "_finite": finite,
    "_integer": integer,
    "_truth": truth,
    "_given": given,
    "_sequence": sequence,
    "_item": item,
    "_lane_count": lane_count,
    "_paired": paired,
    "_inverse": inverse,
    "_others": others,
    "_where": where,
    "_equal": equal,
    "_shl": shl,
    "_shr": shr,
    "_tdiv": tdiv,
    "_tmod": tmod,
    "_least": least,
    "_most": most,
    "_gcd": gcd,
    "_total": total,
    "_every": every,
    "_some": some,
    "_is_pow2": is_pow2,
    "_log2": log2,
    "_width": width,
    "_step": step,
    "_at": at,
    "_same_value": same_value,
    "_sign": math.copysign,
    "_inf": math.inf,
    "_nan": math.nan,
}


def held(dialect: Dialect, dtype: Hashable, v: Any) -> Any:
    """A number as a constant of a dtype: floats are rounded to it. NoValue for a number that the dtype does not hold."""
    found = dialect.const_value(dialect.const(dtype, v))
    if not isinstance(found, float) and (isinstance(v, float) or found != v):
        raise NoValue
    return found
