"""Python numbers beside tensors, and in creators: NumPy's values, bit for bit, at every dtype; or NumPy's error."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st

import morok
from morok import Tensor, dtypes
from morok.errors import DTypeError, MorokError, RangeError
from morok.ir.number import round_fraction

Array = np.ndarray[Any, Any]

NEGATIVE_NAN: Final = math.copysign(math.nan, -1.0)
# What f32 cannot hold, and what lies at the edges of dtypes.
FLOATS: Final = [
    *(
        1.1,
        -1.1,
        0.1,
        1e300,
        -1e300,
        16777217.0,
        2.0**53,
        2.0**53 + 2,
        5e-324,
        1e-40,
        65519.99999,
        65520.0,
        1 + 2**-11 + 2**-40,
    ),
    *(
        0.0,
        -0.0,
        1.0,
        -2.5,
        math.inf,
        -math.inf,
        math.nan,
        NEGATIVE_NAN,
        2.0**31,
        2.0**63,
        -(2.0**63),
        255.9,
        -128.9,
        3e9,
    ),
]
INTEGERS: Final = [
    *(
        0,
        1,
        -1,
        2,
        7,
        127,
        128,
        -128,
        -129,
        255,
        256,
        300,
        65535,
        65536,
        2**24 + 1,
        2**31 - 1,
        2**31,
        -(2**31),
        2**32,
        2**53 + 1,
    ),
    *(2**62 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 2**70, 10**39, -(10**39), 10**400),
]
NUMBERS: Final[list[bool | int | float]] = [False, True, *INTEGERS, *FLOATS]


@pytest.fixture(autouse=True, scope="module")
def _as_written() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"), morok.settings(fast_math=""):
        warnings.simplefilter("ignore")
        yield


def numbers_for(d: str) -> list[bool | int | float]:
    """The Python numbers that take the dtype of a tensor of `d`."""
    return [v for v in NUMBERS if d in trees.FLOATS or isinstance(v, bool) or (d != "bool" and isinstance(v, int))]


def both(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[Array, Array] | None:
    """Both values; None where both are errors, ours of NumPy's class too."""
    refused: type[Exception] | None = None
    try:
        expected = np.asarray(theirs())
    except (OverflowError, ValueError) as problem:
        refused = type(problem)
    if refused is not None:
        with pytest.raises(RangeError) as caught:
            ours()
        assert isinstance(caught.value, refused)
        return None
    mine = ours()
    return (mine.numpy() if isinstance(mine, Tensor) else np.asarray(mine)), expected


def agree(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    values = both(ours, theirs)
    if values is None:
        return
    mine, expected = values
    assert (mine.dtype, mine.shape) == (expected.dtype, expected.shape)
    assert_bits(mine, expected)


def assert_bits(mine: Array, expected: Array) -> None:
    """Equal, zeros and NaNs with their signs."""
    np.testing.assert_array_equal(mine, expected)
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(expected))


# Creators, and what is written to tensors: the number's own bits, so NaN keeps its sign.


def filled(shape: tuple[int, ...], value: Any, d: str) -> Array:
    """np.full() that refuses what np.array() refuses."""
    return np.broadcast_to(np.array(value, d), shape)


def written(x: Any, key: Any, value: Any) -> Any:
    x = x.copy() if isinstance(x, np.ndarray) else Tensor(x.numpy().copy())
    x[key] = value
    return x


def assigned(d: str, value: Any) -> Tensor:
    return Tensor(np.zeros(3, d)).assign(value)


CREATED: Final[dict[str, tuple[Callable[[str, Any], Any], Callable[[str, Any], Any]]]] = {
    "Tensor": (lambda d, v: Tensor(v, dtype=d), lambda d, v: np.array(v, d)),
    "Tensor of a list": (lambda d, v: Tensor([v, 1], dtype=d), lambda d, v: np.array([v, 1], d)),
    "full": (lambda d, v: Tensor.full((2, 3), v, dtype=d), lambda d, v: filled((2, 3), v, d)),
    "full_like": (lambda d, v: Tensor(np.zeros(2, d)).full_like(v), lambda d, v: filled((2,), v, d)),
    "full_like of a dtype": (lambda d, v: Tensor([1]).full_like(v, d), lambda d, v: filled((1,), v, d)),
    "assign": (assigned, lambda d, v: filled((3,), v, d)),
    "an element": (lambda d, v: written(Tensor(np.ones(3, d)), 1, v), lambda d, v: written(np.ones(3, d), 1, v)),
    "a slice": (
        lambda d, v: written(Tensor(np.ones(3, d)), slice(1), v),
        lambda d, v: written(np.ones(3, d), slice(1), v),
    ),
    "a list": (
        lambda d, v: written(Tensor(np.ones(3, d)), slice(2), [v, 0]),
        lambda d, v: written(np.ones(3, d), slice(2), [v, 0]),
    ),
    "positions": (
        lambda d, v: written(Tensor(np.ones(3, d)), [0, 2], v),
        lambda d, v: written(np.ones(3, d), [0, 2], v),
    ),
    "scatter": (
        lambda d, v: Tensor(np.ones(3, d)).scatter(0, [1], v),
        lambda d, v: written(np.ones(3, d), 1, v),
    ),
    "pad": (
        lambda d, v: Tensor(np.ones(1, d)).pad([(1, 2)], v),
        lambda d, v: np.concatenate([filled((1,), v, d), np.ones(1, d), filled((2,), v, d)]),
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("how", CREATED)
@settings(max_examples=40)
@given(d=st.sampled_from(trees.DTYPES), value=st.sampled_from(NUMBERS))
def test_a_number_becomes_an_element(how: str, d: str, value: Any) -> None:
    ours, theirs = CREATED[how]
    agree(lambda: ours(d, value), lambda: theirs(d, value))


@settings(max_examples=100)
@given(d=st.sampled_from(trees.FLOATS), value=st.floats() | st.integers(-(2**70), 2**70))
def test_floats_of_chance(d: str, value: float) -> None:
    if isinstance(value, int) and abs(value) > 2**53 and d != "float64":
        # NumPy rounds twice, to f64 in between: once is right
        expected = round_fraction(getattr(dtypes, d), Fraction(value))
        assert Tensor(value, dtype=d).item() == expected
        return
    agree(lambda: Tensor(value, dtype=d), lambda: np.array(value, d))


@settings(max_examples=100)
@given(d=st.sampled_from(trees.INTS), value=st.floats() | st.integers(-(2**70), 2**70))
def test_integers_of_chance(d: str, value: float) -> None:
    agree(lambda: Tensor(value, dtype=d), lambda: np.array(value, d))


@pytest.mark.parametrize("d", ["bf16", "f8e4m3", "f8e5m2"])
def test_formats_that_numpy_has_not(d: str) -> None:
    for value in [v for v in FLOATS if math.isfinite(v)]:
        rounded = math.copysign(round_fraction(getattr(dtypes, d), Fraction(value)), value)
        expected = math.nan if rounded != rounded else rounded  # beyond the greatest number of e4m3 is NaN
        assert_bits(Tensor(value, dtype=d).numpy(), np.array(expected, np.float32))
        assert_bits(Tensor.full((2,), value, dtype=d).numpy(), np.full(2, expected, np.float32))
    assert np.signbit(Tensor(NEGATIVE_NAN, dtype="bf16").numpy())


# Operands. NumPy's operators treat a Python number as an array of the tensor's dtype.

OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": lambda x, v: x + v,
    "radd": lambda x, v: v + x,
    "sub": lambda x, v: x - v,
    "rsub": lambda x, v: v - x,
    "mul": lambda x, v: x * v,
    "rmul": lambda x, v: v * x,
    "floordiv": lambda x, v: x // v,
    "rfloordiv": lambda x, v: v // x,
    "mod": lambda x, v: x % v,
    "rmod": lambda x, v: v % x,
    "lt": lambda x, v: x < v,
    "le": lambda x, v: x <= v,
    "gt": lambda x, v: x > v,
    "ge": lambda x, v: x >= v,
    "rlt": lambda x, v: v < x,
    "rge": lambda x, v: v >= x,
    "eq": lambda x, v: x == v,
    "ne": lambda x, v: x != v,
    "maximum": lambda x, v: x.maximum(v) if isinstance(x, Tensor) else np.maximum(x, v),
    "minimum": lambda x, v: x.minimum(v) if isinstance(x, Tensor) else np.minimum(x, v),
    "clip below": lambda x, v: x.clip(v, None),
    "clip above": lambda x, v: x.clip(None, v),
}
ON_FLOATS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "truediv": lambda x, v: x / v,
    "rtruediv": lambda x, v: v / x,
    "copysign": lambda x, v: x.copysign(v) if isinstance(x, Tensor) else np.copysign(x, v),
}
ON_INTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "and": lambda x, v: x & v,
    "ror": lambda x, v: v | x,
    "xor": lambda x, v: x ^ v,
    "lshift": lambda x, v: x << v,
    "rshift": lambda x, v: x >> v,
}
ON_BOOLS: Final = ("mul", "add", "lt", "le", "gt", "ge", "rlt", "rge", "eq", "ne", "maximum", "minimum")


def operations(d: str) -> list[str]:
    if d == "bool":
        return list(ON_BOOLS)
    return [*OPERATIONS, *(ON_FLOATS if d in trees.FLOATS else ON_INTS)]


@pytest.mark.long
@settings(max_examples=150)
@given(st.data())
def test_a_number_is_an_operand(data: st.DataObject) -> None:
    d = data.draw(st.sampled_from(trees.DTYPES))
    value = data.draw(st.sampled_from(numbers_for(d)))
    name = data.draw(st.sampled_from(operations(d)))
    f = {**OPERATIONS, **ON_FLOATS, **ON_INTS}[name]
    x = np.array([*trees.specials(d), *([1.1, 16777217.0] if d in trees.FLOATS else [])], d)
    values = both(lambda: f(Tensor(x), value), lambda: f(x, value))
    if values is None:
        return
    mine, expected = values
    assert (mine.dtype, mine.shape) == (expected.dtype, expected.shape)
    # which NaN arithmetic gives is the processor's matter
    real = ~np.isnan(expected) if expected.dtype.kind == "f" and name != "copysign" else np.full(expected.shape, True)
    np.testing.assert_array_equal(mine, expected)
    if name not in ("maximum", "minimum", "clip below", "clip above"):  # of two zeros either is the greater
        assert_bits(mine[real], expected[real])


@pytest.mark.long
@settings(max_examples=60)
@given(d=st.sampled_from(trees.FLOATS), value=st.sampled_from([v for v in FLOATS if v == v]), left=st.booleans())
def test_powers(d: str, value: float, left: bool) -> None:
    x = np.array([0.5, 1.0, 1.1, 2.0, 7.0], d)
    mine = (Tensor(x) ** value if left else value ** Tensor(x)).numpy()
    expected = x**value if left else np.array(value, d) ** x
    assert mine.dtype == expected.dtype
    np.testing.assert_allclose(mine, expected, rtol=8 * float(np.finfo(d).eps), atol=float(np.finfo(d).smallest_normal))


@pytest.mark.long
@settings(max_examples=60)
@given(st.data())
def test_a_number_is_chosen(data: st.DataObject) -> None:
    d = data.draw(st.sampled_from(trees.FLOATS))
    value = data.draw(st.sampled_from(numbers_for(d)))
    x, holds = np.array([1.0, 2.0, -3.0], d), np.array([True, False, True])
    chosen = lambda: np.where(holds, np.array(value, d), x)  # noqa: E731
    agree(lambda: Tensor(holds).where(value, Tensor(x)), chosen)
    agree(lambda: Tensor(~holds).where(Tensor(x), value), chosen)
    agree(lambda: Tensor(x).masked_fill(holds, value), chosen)


@pytest.mark.long
@settings(max_examples=30)
@given(d=st.sampled_from(trees.FLOATS), value=st.sampled_from([v for v in FLOATS if v == v]))
def test_a_number_is_searched_for(d: str, value: float) -> None:
    x = np.sort(np.array([1.1, -1.1, 0.1, 3.0, 1e5], d))
    assert Tensor(x).searchsorted(value).item() == np.searchsorted(x, np.array(value, d))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("value", [v for v in FLOATS if v == v])
def test_lists_beside_f64(value: float) -> None:
    x = np.array([1.0, -3.0])
    assert_bits((Tensor(x) * [value, 1.0]).numpy(), x * [value, 1.0])
    assert_bits(Tensor([Tensor(x)[0], value]).numpy(), np.array([x[0], value]))
    assert_bits(Tensor([Tensor([1.0])[0], value], dtype="f64").numpy(), np.array([1.0, value]))


# Comparisons with integers beyond the dtype: exact.


@pytest.mark.sampled(9)
@pytest.mark.parametrize("d", trees.INTS)
@pytest.mark.parametrize("value", [-(2**70), -(2**63) - 1, -129, -1, 256, 2**31, 2**63, 2**64 - 1, 2**64, 2**70])
def test_comparisons_with_any_integer(d: str, value: int) -> None:
    x = np.array(trees.specials(d), d)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        f = OPERATIONS[name]
        assert f(Tensor(x), value).tolist() == [f(int(e), value) for e in x]


# Sequences. The oracle is exact arithmetic at f16, where what np.arange computes drifts; at f32 and f64 it is np.arange
# (test_arange.py).


@pytest.mark.long
@settings(max_examples=40)
@given(
    d=st.just("float16"),
    start=st.sampled_from([0, 1, -7, 0.1, -2.5, 16777217.0, 2.0**53, 1e300]),
    step=st.sampled_from([1, 2, -3, 0.1, 1.1, -0.25, 1e299]),
    count=st.integers(0, 12),
)
def test_ranges_of_floats(d: str, start: float, step: float, count: int) -> None:
    if abs(start) > 1e15 and abs(step) < 4:
        step *= 64
    mine = Tensor.arange(start, start + (count - 0.5) * step, step, dtype=d).numpy()
    exact = [Fraction(start) + i * Fraction(step) for i in range(count)]
    assert mine.dtype == d
    expected = np.array([round_fraction(getattr(dtypes, d), v) for v in exact], d)
    if abs(start) < 1e100:
        assert mine.shape == expected.shape
        # computed in f64 from both numbers, rounded once more
        wide = np.array([float(abs(Fraction(start)) + abs(i * Fraction(step))) for i in range(count)])
        bound = 4 * float(np.finfo(np.float64).eps) * wide + np.spacing(np.abs(expected)).astype(np.float64)
        near = np.abs(mine.astype(np.float64) - expected.astype(np.float64)) <= bound
        assert (near | (mine == expected)).all()
    if all(isinstance(v, int) for v in (start, step)):
        np.testing.assert_array_equal(mine, expected)


@pytest.mark.long
@settings(max_examples=60)
@given(st.data())
def test_ranges_of_integers(data: st.DataObject) -> None:
    d = data.draw(st.sampled_from(trees.INTS))
    limits = np.iinfo(d)
    start = data.draw(
        st.integers(int(limits.min), int(limits.max)) | st.sampled_from([int(limits.max), int(limits.min), 0])
    )
    step = data.draw(st.integers(1, 5) | st.integers(-5, -1))
    count = data.draw(st.integers(0, 6))
    stop = start + step * count
    mine = Tensor.arange(start, stop, step, dtype=d).numpy()
    expected = np.array([start + i * step for i in range(count)], object)
    wrapped = [int(v) % (1 << limits.bits) for v in expected]
    assert mine.dtype == d
    assert [int(v) % (1 << limits.bits) for v in mine] == wrapped


@pytest.mark.long
@settings(max_examples=40)
@given(
    d=st.sampled_from([*trees.FLOATS, *trees.INTS]),
    start=st.sampled_from([0, 1, -1, 0.1, 1.1, -2.5, 16777217.0]),
    stop=st.sampled_from([1, 5, 1.1, 16777219.0, 100]),
    num=st.integers(0, 9),
    endpoint=st.booleans(),
)
def test_linspace(d: str, start: float, stop: float, num: int, endpoint: bool) -> None:
    mine = Tensor.linspace(start, stop, num, dtype=d, endpoint=endpoint).numpy()
    expected = np.linspace(start, stop, num, endpoint, dtype=d)
    assert mine.dtype == expected.dtype
    if d in trees.FLOATS:
        np.testing.assert_allclose(mine, expected, rtol=float(np.finfo(d).eps))
    else:
        np.testing.assert_array_equal(mine, expected)


# What is refused.


@pytest.mark.parametrize(
    "use",
    [
        lambda: Tensor(1j),
        lambda: Tensor([1j]),
        lambda: Tensor.full((2,), 1j),
        lambda: Tensor([1.0]) + 1j,
        lambda: 1j * Tensor([1.0]),
        lambda: Tensor([1.0]) == 1j,
        lambda: Tensor([True]).where(1j, 0),
        lambda: Tensor([1.0]).pad([(1, 1)], 1j),
        lambda: Tensor([1.0]).clip(1j),
        lambda: Tensor([1.0]).assign(1j),
        lambda: written(Tensor([1.0]), 0, 1j),
        lambda: Tensor.arange(1j),
        lambda: Tensor.linspace(0, 1j, 3),
        lambda: Tensor(np.complex64(1)),
    ],
)
def test_complex_numbers_are_refused(use: Callable[[], Any]) -> None:
    with pytest.raises(DTypeError) as caught:
        use()
    assert "1j" in str(caught.value) or "complex" in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_ranges_that_have_no_count() -> None:
    for use in (
        lambda: Tensor.arange(math.inf),
        lambda: Tensor.arange(0, math.nan),
        lambda: Tensor.arange(1e300),
        lambda: Tensor.arange(0, 5, 0),
    ):
        with pytest.raises(ValueError, match="MRK"):
            use()
    with pytest.raises(OverflowError) as caught:
        Tensor.arange(2**63, 2**63 + 3)
    assert isinstance(caught.value, MorokError)


def test_numbers_of_subclasses() -> None:
    import enum

    class Size(enum.IntEnum):
        SMALL = 3

    class Length(float):
        pass

    assert Tensor(Size.SMALL).item() == 3
    assert (Tensor([1]) + Size.SMALL).dtype is dtypes.i64
    assert (Tensor(np.array([1.0])) + Length(0.1)).item() == 1.0 + 0.1
    # NumPy's numbers have a dtype
    assert (Tensor(np.float32([1.0])) + np.float64(0.1)).dtype is dtypes.f64


def test_one_nan_stays_a_constant() -> None:
    assert Tensor(math.nan).uop is Tensor(math.nan).uop
    assert not np.signbit(Tensor(math.nan).numpy())
    assert Tensor(NEGATIVE_NAN).signbit().item()
    np.testing.assert_array_equal(np.signbit((Tensor.full((3,), NEGATIVE_NAN)).realize().numpy()), [True] * 3)


@pytest.mark.parametrize("how", ["list", "default", "array", "copied", "jit"])
def test_numbers_beyond_a_dtype_are_infinite_whatever_numpy_is_told(how: str) -> None:
    array = np.array([1e300, 1e-300])
    make: dict[str, Callable[[], Tensor]] = {
        "list": lambda: Tensor([1e300, 1e-300], dtype="f16"),
        "default": lambda: Tensor([1e300, 1e-300]),
        "array": lambda: Tensor(array, dtype="f32"),
        "copied": lambda: Tensor.from_slice([1e300, 1e-300], dtype="f32"),
        "jit": morok.jit(lambda: Tensor(array, dtype="f32") + 0),
    }
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert make[how]().tolist() == [math.inf, 0.0]


def test_a_complex_number_is_named_wherever_it_is_given() -> None:
    for use in (lambda: Tensor(1j), lambda: Tensor.full((2,), 1j)):
        with pytest.raises(DTypeError, match="1j is complex"):
            use()
