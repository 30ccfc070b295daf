"""Elementwise programs against NumPy: every dtype, with the values that go wrong elsewhere."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import Tensor, dtypes
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import DType, promote
from morok.tensor.base import numpy_name

Array = np.ndarray[Any, Any]
INTS = [dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64, dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64]
FLOATS = [dtypes.f16, dtypes.f32, dtypes.f64]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def compute(t: Tensor) -> Array:
    return t.numpy()


def samples(d: DType, n: int = 24) -> Array:
    """Values of a dtype, the special ones first. Sums and products of the others are exact."""
    rng = np.random.default_rng(7)
    kind = numpy_name(d)
    if d.is_bool:
        return rng.integers(0, 2, n).astype(kind)
    if d.is_float:
        special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 2.5, -7.5, 3.0]
        return np.array([*special, *rng.integers(-32, 32, n - len(special)) / 2], kind)
    special = [0, 1, int(d.max), int(d.min), int(d.max) - 1, *([-1, -7] if d.is_signed else [7])]
    return np.array([*special, *rng.integers(max(int(d.min), -40), 40, n - len(special))], kind)


def pairs(d: DType) -> tuple[Array, Array]:
    """Every sample against every other."""
    x = samples(d)
    a, b = np.meshgrid(x, x)
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def agree(ours: Array, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
SHIFTS: dict[str, Callable[[Any, Any], Any]] = {"shl": lambda a, b: a << b, "shr": lambda a, b: a >> b}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("d", INTS + FLOATS, ids=str)
def test_arithmetic_and_comparisons_are_numpys(d: DType) -> None:
    a, b = pairs(d)
    x, y = Tensor(a), Tensor(b)
    for f in [*ARITHMETIC.values(), *COMPARISONS.values()]:
        agree(compute(f(x, y)), f(a, b))
    agree(compute(x.maximum(y)), np.maximum(a, b))
    agree(compute(x.minimum(y)), np.minimum(a, b))


@pytest.mark.long
@pytest.mark.parametrize("d", INTS, ids=str)
def test_bits_and_shifts_are_numpys(d: DType) -> None:
    a, b = pairs(d)
    x, y = Tensor(a), Tensor(b)
    for f in [*BITWISE.values(), *SHIFTS.values()]:
        agree(compute(f(x, y)), f(a, b))
    agree(compute(~x), ~a)


@pytest.mark.long
def test_bools_are_numpys() -> None:
    a, b = pairs(dtypes.bool)
    x, y = Tensor(a), Tensor(b)
    for f in [*BITWISE.values(), *COMPARISONS.values(), ARITHMETIC["add"], ARITHMETIC["mul"]]:
        agree(compute(f(x, y)), f(a, b))
    agree(compute(~x), ~a)
    with pytest.raises(DTypeError):
        x - y


@pytest.mark.sampled(12)
@pytest.mark.parametrize("d", INTS + FLOATS, ids=str)
def test_functions_of_one_element(d: DType) -> None:
    a = samples(d)
    x = Tensor(a)
    agree(compute(-x), -a)
    agree(compute(abs(x)), abs(a))
    agree(compute(x.sign()), np.sign(a))
    agree(compute(x.relu()), np.maximum(a, a.dtype.type(0)))
    agree(compute(x.logical_not()), np.logical_not(a))
    agree(compute(x.isnan()), np.isnan(a))
    agree(compute(x.isinf()), np.isinf(a))
    agree(compute(x.isfinite()), np.isfinite(a))
    agree(compute(x**2), a**2)
    if d.is_float:
        for name in ("floor", "ceil", "trunc", "sqrt", "square"):
            agree(compute(getattr(x, name)()), getattr(np, name)(a))
        agree(compute(x.round()), np.round(a))


@pytest.mark.long
@pytest.mark.parametrize("d", [dtypes.f32, dtypes.f64], ids=str)
def test_transcendental_functions(d: DType) -> None:
    a = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 10.0, -10.0, 87.0, -87.0, 1e-20, np.inf, -np.inf, np.nan], numpy_name(d))
    x = Tensor(a)
    for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "sqrt", "reciprocal"):
        ours = compute(getattr(x, name)())
        np.testing.assert_allclose(
            ours, getattr(np, name)(a), rtol=4 * float(np.finfo(a.dtype).eps), atol=0, err_msg=name
        )
    np.testing.assert_allclose(compute(x.sigmoid()), 1 / (1 + np.exp(-a)), rtol=1e-6)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("source", [dtypes.bool, *INTS, *FLOATS], ids=str)
@pytest.mark.parametrize("target", [dtypes.bool, *INTS, *FLOATS], ids=str)
def test_casts_are_numpys(source: DType, target: DType) -> None:
    a = samples(source)
    if source.is_float and target in (dtypes.u32, dtypes.u64):
        a = a[np.isfinite(a)]  # NumPy's own results differ between its vector and its scalar loops
    if source.is_float and target.is_int:
        a = np.concatenate([a, np.array([300.7, -300.7, 60000.0], a.dtype)])
        if source is not dtypes.f16 and target not in (dtypes.u32, dtypes.u64):
            a = np.concatenate([a, np.array([3e9, -3e9, 1e19, -1e19, 1e30, 2.0**31, -(2.0**31), 2.0**63], a.dtype)])
    agree(compute(Tensor(a).cast(target)), a.astype(numpy_name(target)))


def test_large_floats_become_unsigned() -> None:
    a = np.array([2.0**31, 2.0**32 - 1, 4e9], np.float64)
    agree(compute(Tensor(a).cast("u32")), a.astype(np.uint32))
    b = np.array([2.0**63, 2.0**64 - 4096, 1.5e19, 1e10], np.float64)
    agree(compute(Tensor(b).cast("u64")), b.astype(np.uint64))


def test_division_by_zero_and_overflow_do_not_trap() -> None:
    least = np.iinfo(np.int32).min
    a = np.array([5, least, least, -7], np.int32)
    b = np.array([0, -1, 0, 2], np.int32)
    assert compute(Tensor(a) // Tensor(b)).tolist() == [0, least, 0, -4]
    assert compute(Tensor(a) % Tensor(b)).tolist() == [0, 0, 0, 1]
    assert compute(Tensor(a) // 0).tolist() == [0, 0, 0, 0]
    assert compute(Tensor(a) // -1).tolist() == [-5, least, least, 7]
    assert compute(Tensor([-7]) // 2).tolist() == [-4]


@pytest.mark.long
def test_powers() -> None:
    a = np.array([-3, -1, 0, 1, 2, 5], np.int64)
    b = np.array([3, 5, 0, 7, 10, 2], np.int64)
    agree(compute(Tensor(a) ** Tensor(b)), a**b)
    # NumPy refuses negative exponents of integers; ours give the truncated reciprocal
    assert compute(Tensor(a) ** -3).tolist() == [0, -1, 0, 1, 0, 0]
    x = np.array([0.5, 2.0, 9.0, 0.0, 1.5], np.float32)
    for e in (0, 1, 2, 0.5, -1, 3.5):
        np.testing.assert_allclose(compute(Tensor(x) ** e), x**e, rtol=1e-6)


@pytest.mark.long
def test_powers_of_doubles_at_their_edges() -> None:
    edges = [0.0, 5e-324, 1e-310, 0.5, 1.0 - 2**-53, 1.0, 1.0 + 2**-52, 1.5, 3.0, 2.0**53, 1.7e308, math.inf]
    values = np.array([v for e in edges for v in (e, -e)] + [math.nan])
    a, b = (g.ravel() for g in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        wanted = np.power(a, b)
    got = compute(Tensor(a) ** Tensor(b))
    assert (np.isnan(got) == np.isnan(wanted)).all()
    assert (np.signbit(got) == np.signbit(wanted))[~np.isnan(wanted)].all()
    np.testing.assert_array_max_ulp(got[~np.isnan(got)], wanted[~np.isnan(wanted)], 1)


def test_python_numbers_take_the_tensors_dtype() -> None:
    assert (Tensor([1.0]) + 1).dtype is dtypes.f32
    assert (Tensor([1], dtype="i8") + 1).dtype is dtypes.i8
    assert (Tensor([1], dtype="i8") + 1.5).dtype is dtypes.f32
    assert (Tensor([True]) + 1).dtype is dtypes.i64
    assert (Tensor(np.zeros(1)) * 2.5).dtype is dtypes.f64
    assert (Tensor([1, 2]) / 2).dtype is dtypes.f32
    with pytest.raises(DTypeError, match="300"):
        Tensor([1], dtype="u8") + 300
    assert compute(Tensor([1, 2], dtype="u8") < 300).tolist() == [True, True]
    assert compute(Tensor([1, 2], dtype="u8") > -1).tolist() == [True, True]


@pytest.mark.parametrize("a", INTS, ids=str)
@pytest.mark.parametrize("b", INTS, ids=str)
def test_comparisons_of_integers_of_two_dtypes_compare_the_numbers(a: DType, b: DType) -> None:
    """A dtype that holds both, as NumPy's comparisons have: u64 has no negative numbers, and i64 no great ones."""
    x, y = np.meshgrid(samples(a)[:10], np.append(samples(b)[:10], samples(a)[:10].astype(numpy_name(b))))
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        agree(compute(compare(Tensor(x), Tensor(y))), compare(x, y))
        agree(compute(compare(Tensor(x[:, :1]), y[0, 0])), compare(x[:, :1], y[0, 0]))


@pytest.mark.parametrize("d", [dtypes.bool, *INTS], ids=str)
def test_quotients_of_integers_and_any_number(d: DType) -> None:
    """A quotient is a float, as is the number beside the integers: it need not fit their dtype."""
    x = samples(d)
    for number in (-1, 300, -(2**40), 2**70):
        agree(compute(Tensor(x) / number), (x.astype(np.float32) / np.float32(number)))
        agree(compute(number / Tensor(x)), (np.float32(number) / x.astype(np.float32)))


@given(st.sampled_from([dtypes.bool, *INTS, *FLOATS]), st.sampled_from([dtypes.bool, *INTS, *FLOATS]))
@settings(max_examples=40)
def test_promotion(a: DType, b: DType) -> None:
    x, y = Tensor(samples(a, 12)[:3]), Tensor(samples(b, 12)[:3])
    assert (x == x).where(x, y).dtype is promote(a, b)


SHAPES = st.lists(st.integers(1, 4), max_size=3).map(tuple)


@pytest.mark.long
@given(SHAPES, SHAPES, SHAPES)
@settings(max_examples=60)
def test_broadcasting_is_numpys(a: Any, b: Any, c: Any) -> None:
    x, y, z = (np.arange(int(np.prod(s)), dtype=np.float32).reshape(s) for s in (a, b, c))
    try:
        wanted = np.broadcast_shapes(a, b, c)
    except ValueError:
        with pytest.raises(ShapeError):
            Tensor(x) + Tensor(y) * Tensor(z)
        return
    out = Tensor(x) + Tensor(y) * Tensor(z)
    assert out.shape == wanted
    agree(compute(out), x + y * z)


def test_shape_errors_show_both_shapes() -> None:
    with pytest.raises(ShapeError) as caught:
        Tensor(np.zeros((3, 2))) + Tensor(np.zeros(3))
    assert "(3, 2)" in str(caught.value)
    assert "(3,)" in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


class _Trees:
    """Random expressions over three leaves, built for Morok and for NumPy side by side."""

    @staticmethod
    @st.composite
    def expressions(draw: st.DrawFn, kinds: list[DType]) -> tuple[Tensor, Array]:
        leaves = [samples(draw(st.sampled_from(kinds))) for _ in range(3)]
        pool: list[tuple[Tensor, Array]] = [(Tensor(x), x) for x in leaves]
        for _ in range(draw(st.integers(1, 5))):
            (t, a), (u, b) = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
            d = numpy_name(promote(t.dtype, u.dtype))
            a2, b2 = a.astype(d), b.astype(d)
            ops: list[Callable[[], tuple[Tensor, Any]]] = [
                lambda t=t, u=u, a=a2, b=b2: (t.maximum(u), np.maximum(a, b)),
                lambda t=t, u=u, a=a2, b=b2: (t + u, a + b),
                lambda t=t, u=u, a=a2, b=b2: (t * u, a * b),
                lambda t=t, u=u, a=a2, b=b2: ((t < u).where(t, u), np.where(a < b, a, b)),
                lambda t=t, u=u, a=a2, b=b2: (t != u, a != b),
            ]
            if d != "bool":
                ops += [
                    lambda t=t, u=u, a=a2, b=b2: (t - u, a - b),
                    lambda t=t, u=u, a=a2, b=b2: (t // u, a // b),
                    lambda t=t, u=u, a=a2, b=b2: (t % u, a % b),
                ]
            if d != "bool" and "float" not in d:
                ops += [
                    lambda t=t, u=u, a=a2, b=b2: (t << u, a << b),
                    lambda t=t, u=u, a=a2, b=b2: (t >> u, a >> b),
                    lambda t=t, u=u, a=a2, b=b2: (t ^ u, a ^ b),
                ]
            made, reference = draw(st.sampled_from(ops))()
            pool.append((made, np.asarray(reference)))
        return pool[-1]


@pytest.mark.long
@given(st.data())
@settings(max_examples=60)
def test_random_integer_expressions(data: st.DataObject) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = data.draw(_Trees.expressions([dtypes.bool, *INTS]))
        agree(compute(ours), theirs)


@pytest.mark.long
@given(st.data())
@settings(max_examples=40)
def test_random_float_expressions(data: st.DataObject) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = data.draw(_Trees.expressions([dtypes.f32, dtypes.f64]))
        result = compute(ours)
        assert result.dtype == theirs.dtype
        # contraction rounds once where NumPy rounds twice
        np.testing.assert_allclose(result, theirs, rtol=1e-5, atol=1e-5)
