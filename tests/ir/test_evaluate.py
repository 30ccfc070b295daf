"""Every pointwise op at every dtype against NumPy, on edge values and random ones."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from typing import Any

import numpy as np
import pytest
from numpy_types import NUMPY

from morok.ir import number
from morok.ir.dtype import FLOATS, INTS, SCALARS, STORAGE_FLOATS, dtypes
from morok.ir.op import TABLE, Op, Undefined
from morok.ir.ops import exact

D = dtypes


def samples(d: Any, count: int = 24) -> list[Any]:
    rng = random.Random(d.name)
    if d.is_bool:
        return [False, True]
    if d.is_int:
        edges = [d.min, d.min + 1, -1, 0, 1, 2, 3, 7, d.max - 1, d.max]
        return (
            [v for v in edges if d.min <= v <= d.max]
            + [rng.randint(d.min, d.max) for _ in range(count)]
            + [number.wrap(d, rng.randint(-40, 40)) for _ in range(count // 2)]
        )
    if d.is_index:
        return [-(1 << 70), -7, -3, -1, 0, 1, 3, 7, 1 << 70]
    if d.bits <= 8:
        return [number.from_bits(d, c) for c in range(256)]
    big = number._greatest(d)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        math.inf,
        -math.inf,
        math.nan,
        big,
        -big,
        number.from_bits(d, 1),
    ]
    return [
        *edges,
        *[number.round_float(d, rng.gauss(0, 3)) for _ in range(count)],
        *[number.from_bits(d, rng.getrandbits(d.bits)) for _ in range(count)],
    ]


def same(d: Any, a: Any, b: Any) -> bool:
    return number.same_value(d, a, b)


def as_python(d: Any, v: Any) -> Any:
    return bool(v) if d.is_bool else int(v) if d.is_int else float(v)


BINARY = {
    Op.Add: np.add,
    Op.Sub: np.subtract,
    Op.Mul: np.multiply,
    Op.And: np.bitwise_and,
    Op.Or: np.bitwise_or,
    Op.Xor: np.bitwise_xor,
}
COMPARE = {
    Op.Lt: np.less,
    Op.Le: np.less_equal,
    Op.Gt: np.greater,
    Op.Ge: np.greater_equal,
    Op.Eq: np.equal,
    Op.Ne: np.not_equal,
}


def domain(op: Op) -> list[Any]:
    signature = TABLE[op].signature
    assert signature is not None
    return [d for d in signature.domains["T"] if not d.is_index]


def cases(ops: Any) -> list[Any]:
    return [pytest.param(op, d, id=f"{op.name}-{d.name}") for op in ops for d in domain(op)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("op", "d"), cases(BINARY))
def test_arithmetic(op: Op, d: Any) -> None:
    evaluate = TABLE[op].evaluate
    assert evaluate is not None
    values = samples(d, 8)
    t = NUMPY[d]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in itertools.product(values, repeat=2):
            if d in (D.f16, D.bf16):  # one operation in float32 rounds once more, but innocuously
                want = float(BINARY[op](np.float32(a), np.float32(b)).astype(t))
            else:
                want = as_python(d, BINARY[op](t(a), t(b)))
            assert same(d, evaluate(d, a, b), want), (a, b)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("op", "d"), cases(COMPARE))
def test_comparisons(op: Op, d: Any) -> None:
    evaluate = TABLE[op].evaluate
    assert evaluate is not None
    with np.errstate(all="ignore"):
        for a, b in itertools.product(samples(d, 8), repeat=2):
            assert evaluate(d, a, b) is bool(COMPARE[op](NUMPY[d](a), NUMPY[d](b)))


@pytest.mark.parametrize("d", INTS)
def test_divisions(d: Any) -> None:
    t = NUMPY[d]
    for a, b in itertools.product(samples(d, 10), repeat=2):
        quotients = [TABLE[op].evaluate for op in (Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod)]
        if b == 0 or (d.is_signed and a == d.min and b == -1):
            for f in quotients:
                with pytest.raises(Undefined):
                    f(d, a, b)
            continue
        tq, tr, fq, fr = [f(d, a, b) for f in quotients]
        assert (fq, fr) == (int(np.floor_divide(t(a), t(b))), int(np.remainder(t(a), t(b))))
        assert tr == int(np.fmod(t(a), t(b)))
        assert tq * b + tr == a


@pytest.mark.parametrize("d", INTS)
def test_shifts(d: Any) -> None:
    t = NUMPY[d]
    for a in samples(d, 8):
        for b in range(d.bits):
            assert TABLE[Op.Shl].evaluate(d, a, b) == int(np.left_shift(t(a), t(b)))
            assert TABLE[Op.Shr].evaluate(d, a, b) == int(np.right_shift(t(a), t(b)))
        for b in (-1, d.bits):
            if d.min <= b:
                with pytest.raises(Undefined):
                    TABLE[Op.Shl].evaluate(d, a, b)


@pytest.mark.parametrize("d", [*INTS, *FLOATS])
def test_max_and_min(d: Any) -> None:
    for a, b in itertools.product(samples(d, 8), repeat=2):
        high, low = TABLE[Op.Max].evaluate(d, a, b), TABLE[Op.Min].evaluate(d, a, b)
        if d.is_float and (a != a or b != b):
            assert high != high
            assert low != low
        elif a == b:  # -0 is less than +0
            signs = sorted(math.copysign(1, v) for v in (a, b))
            assert (math.copysign(1, low), math.copysign(1, high)) == tuple(signs)
        else:
            assert (low, high) == (min(a, b), max(a, b))


@pytest.mark.parametrize("d", FLOATS)
def test_float_division_and_roots(d: Any) -> None:
    t = NUMPY[d]
    with np.errstate(all="ignore"):
        for a, b in itertools.product(samples(d, 10), repeat=2):
            wide = np.float32 if d.bits == 16 else t
            assert same(d, TABLE[Op.Fdiv].evaluate(d, a, b), float((wide(a) / wide(b)).astype(t))), (a, b)
        for a in samples(d, 100):
            wide = np.float64 if d is not D.f64 else t
            assert same(d, TABLE[Op.Sqrt].evaluate(d, a), float(np.sqrt(wide(a)).astype(t))), a
            assert same(d, TABLE[Op.Reciprocal].evaluate(d, a), float((wide(1) / wide(a)).astype(t))), a
            for op, f in (
                (Op.Trunc, np.trunc),
                (Op.Floor, np.floor),
                (Op.Ceil, np.ceil),
                (Op.Round, np.rint),
                (Op.Abs, np.abs),
            ):
                assert same(d, TABLE[op].evaluate(d, a), float(f(wide(a)))), (op, a)
            assert same(d, TABLE[Op.Neg].evaluate(d, a), -a)
            assert TABLE[Op.Sign].evaluate(d, a) == np.sign(a) or a != a


@pytest.mark.parametrize("d", INTS)
def test_integer_unaries(d: Any) -> None:
    t = NUMPY[d]
    with np.errstate(all="ignore"):
        for a in samples(d):
            assert TABLE[Op.Neg].evaluate(d, a) == int(np.negative(t(a)))
            assert TABLE[Op.Not].evaluate(d, a) == int(np.invert(t(a)))
            assert TABLE[Op.Abs].evaluate(d, a) == int(np.abs(t(a)))
            assert TABLE[Op.Sign].evaluate(d, a) == int(np.sign(t(a)))
            assert TABLE[Op.Square].evaluate(d, a) == int(np.square(t(a)))
            for op in (Op.Trunc, Op.Floor, Op.Ceil, Op.Round):
                assert TABLE[op].evaluate(d, a) == a
            for b in range(9):
                assert TABLE[Op.Pow].evaluate(d, a, b) == number.wrap(d, a**b)
            if d.is_signed:
                with pytest.raises(Undefined):
                    TABLE[Op.Pow].evaluate(d, a, -1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("d", [*INTS, *FLOATS])
def test_fused_multiply_add(d: Any) -> None:
    from fractions import Fraction

    f = TABLE[Op.MulAcc].evaluate
    rng = random.Random(3)
    values = samples(d, 12)
    for _ in range(2000):
        a, b, c = (rng.choice(values) for _ in range(3))
        got = f(d, a, b, c)
        if d.is_int:
            assert got == number.wrap(d, a * b + c)
        elif all(math.isfinite(v) for v in (a, b, c)):
            exact_value = Fraction(a) * Fraction(b) + Fraction(c)
            assert got == number.round_fraction(d, exact_value), (a, b, c)
        elif math.isfinite(a) and math.isfinite(b):
            assert same(d, got, c)
    if d is D.f64:
        assert f(d, 1e200, 1e200, -math.inf) == -math.inf
        assert math.copysign(1, f(d, -0.0, 1.0, -0.0)) == -1
        assert math.copysign(1, f(d, 1.0, 1.0, -1.0)) == 1


@pytest.mark.parametrize("source", [*[d for d in SCALARS if not d.is_index], *STORAGE_FLOATS])
def test_casts(source: Any) -> None:
    f = TABLE[Op.Cast].evaluate
    with np.errstate(all="ignore"):
        for target in [*[d for d in SCALARS if not d.is_index], *STORAGE_FLOATS]:
            for v in samples(source, 12):
                if target.is_bool:
                    assert f(target, v, source) is (v != 0)
                elif target.is_int and source.is_float:
                    if math.isfinite(v) and target.min <= int(v) <= target.max:
                        assert f(target, v, source) == int(v)
                    else:
                        with pytest.raises(Undefined):
                            f(target, v, source)
                elif target.is_int:
                    assert f(target, v, source) == int(np.array(v, NUMPY[source]).astype(NUMPY[target]))
                elif source.is_float:
                    if target.bits == 64 or source.bits <= 32:
                        # bfloat16 and fp8 of ml_dtypes convert through float32, exactly here
                        want = (
                            np.array(v, NUMPY[source])
                            .astype(np.float64 if target.bits == 64 else np.float32)
                            .astype(NUMPY[target])
                        )
                        assert same(target, f(target, v, source), float(want)), (target, v)
                else:
                    from fractions import Fraction

                    assert same(target, f(target, v, source), number.round_fraction(target, Fraction(int(v))))


def test_casts_of_index() -> None:
    f = TABLE[Op.Cast].evaluate
    assert f(D.i8, 127, D.index) == 127
    assert f(D.index, 255, D.u8) == 255
    assert f(D.index, -2.5, D.f32) == -2
    for v, d in ((128, D.i8), (-1, D.u64)):
        with pytest.raises(Undefined):
            f(d, v, D.index)
    with pytest.raises(Undefined):
        f(D.index, math.nan, D.f32)


def test_threefry_known_answers() -> None:
    """The vectors of Random123 for 20 rounds of 2x32 (Salmon et al. 2011)."""
    f = TABLE[Op.Threefry].evaluate
    for counter, key, want in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ):
        words = [low | high << 32 for low, high in (counter, key, want)]
        assert f(D.u64, words[0], words[1]) == words[2]


# Elementary functions


NEAR = {
    Op.Exp2: np.exp2,
    Op.Log2: np.log2,
    Op.Sin: np.sin,
    Op.Cos: np.cos,
    Op.Tan: np.tan,
    Op.Tanh: np.tanh,
    Op.Exp: np.exp,
    Op.Log: np.log,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("d", [D.f16, D.bf16, D.f32])
@pytest.mark.parametrize("op", NEAR)
def test_elementary_functions_round_correctly_to_narrow_dtypes(op: Op, d: Any) -> None:
    """Against long double, of 64 bits; where even that is too near a rounding boundary, either neighbour passes."""
    f = TABLE[op].evaluate
    rng = random.Random(op.name)
    with np.errstate(all="ignore"):
        for _ in range(1500):
            a = number.round_float(
                d, rng.choice([rng.gauss(0, 3), rng.uniform(0, 100), math.ldexp(rng.random(), rng.randint(-30, 30))])
            )
            want = NEAR[op](np.longdouble(a))
            low, high = (float(np.float64(want * (1 + s * np.longdouble(2.0) ** -58))) for s in (-1, 1))
            bounds = number.round_float(d, low), number.round_float(d, high)
            got = f(d, a)
            assert same(d, got, bounds[0]) or same(d, got, bounds[1]), a


SPECIAL = [
    (
        Op.Exp2,
        [
            (-math.inf, 0.0),
            (math.inf, math.inf),
            (0.0, 1.0),
            (-1074.0, 5e-324),
            (-1075.0, 0.0),
            (1024.0, math.inf),
            (10.0, 1024.0),
        ],
    ),
    (
        Op.Log2,
        [(0.0, -math.inf), (-0.0, -math.inf), (-1.0, math.nan), (math.inf, math.inf), (5e-324, -1074.0), (1.0, 0.0)],
    ),
    (Op.Sin, [(math.inf, math.nan), (-0.0, -0.0), (1e22, -0.8522008497671888), (6381956970095103 * 2.0**797, 1.0)]),
    (Op.Cos, [(math.inf, math.nan), (0.0, 1.0), (6381956970095103 * 2.0**797, -4.687165924254628e-19)]),
    (Op.Tan, [(-math.inf, math.nan), (-0.0, -0.0), (math.pi / 2, 1.633123935319537e16)]),
    (Op.Tanh, [(math.inf, 1.0), (-math.inf, -1.0), (-0.0, -0.0), (100.0, 1.0), (1e-300, 1e-300)]),
    (Op.Erf, [(math.inf, 1.0), (-100.0, -1.0), (-0.0, -0.0), (0.5, 0.5204998778130465)]),
    (Op.Exp, [(-math.inf, 0.0), (math.inf, math.inf), (1.0, math.e), (710.0, math.inf), (-746.0, 0.0)]),
    (Op.Log, [(0.0, -math.inf), (-1.0, math.nan), (math.inf, math.inf), (1.0, 0.0)]),
    (
        Op.Rsqrt,
        [(0.0, math.inf), (-0.0, -math.inf), (-1.0, math.nan), (math.inf, 0.0), (4.0, 0.5), (2.0, 0.7071067811865476)],
    ),
]


@pytest.mark.parametrize(("op", "pairs"), SPECIAL, ids=lambda v: v.name if isinstance(v, Op) else "")
def test_special_cases(op: Op, pairs: list[tuple[float, float]]) -> None:
    f = TABLE[op].evaluate
    for a, want in [*pairs, (math.nan, math.nan)]:
        assert same(D.f64, f(D.f64, a), want), a


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", [*NEAR, Op.Erf, Op.Rsqrt])
def test_the_quick_answer_is_the_exact_one(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the C library's double decides, against decimal arithmetic alone."""
    f = TABLE[op].evaluate
    values = [number.from_bits(D.f16, code) for code in range(0, 1 << 16, 131)]
    quick = [f(D.f16, v) for v in values]
    ziv = exact.ziv
    monkeypatch.setattr(exact, "ziv", lambda d, near, digits: ziv(d, math.nan, digits))
    for v, got in zip(values, quick, strict=True):
        assert same(D.f16, got, f(D.f16, v)), v


def test_elementary_functions_at_f64_against_another_computation() -> None:
    """The first attempt of Ziv's loop against one with four times the digits."""
    rng = random.Random(11)
    for f, digits in (
        (exact.sin, exact._sine),
        (exact.cos, exact._cosine),
        (exact.tan, exact._tangent),
        (exact.tanh, exact._tanh),
        (exact.erf, exact._erf),
    ):
        for _ in range(40):
            a = rng.choice([rng.uniform(-6, 6), math.ldexp(rng.random(), rng.randint(-40, 2))])
            assert f(D.f64, a) == _precise(digits, a), (f, a)


def _precise(digits: Any, a: float) -> float:
    import decimal
    from decimal import Decimal

    with decimal.localcontext(exact._context(250)):
        return float(digits(Decimal(a), 150))


def test_power() -> None:
    f = TABLE[Op.Pow].evaluate
    for a, b, want in (
        (2.0, -1074.0, 5e-324),
        (2.0, -1075.0, 0.0), (-2.0, 1023.0, -(2.0**1023)), (-2.0, 1025.0, -math.inf), (0.0, -3.0, math.inf),
        (-0.0, -3.0, -math.inf), (-0.0, -2.0, math.inf), (-8.0, 1 / 3, math.nan), (1.0, math.nan, 1.0), (math.nan, 0.0, 1.0),
        (-1.0, math.inf, 1.0), (2.25, 1.5, 3.375), (10.0, 22.0, 1e22), (3.0, 40.0, 1.2157665459056929e19), (0.5, math.inf, 0.0),
    ):  # fmt: skip
        assert same(D.f64, f(D.f64, a, b), want), (a, b)
    rng = random.Random(5)
    for _ in range(500):
        a, b = number.round_float(D.f32, rng.uniform(0, 9)), number.round_float(D.f32, rng.uniform(-30, 30))
        assert abs(f(D.f64, a, b) - math.pow(a, b)) <= math.ulp(math.pow(a, b))
        # half-way cases of a narrow dtype are decided exactly
        assert f(D.f32, a, 2.0) == number.round_float(D.f32, a * a)
    assert f(D.f16, 4097.0 / 4096, 1.0) == 1.0


def test_integer_wrap_of_constants() -> None:
    from morok.ir.interpret import evaluate
    from morok.ir.uop import UOp

    assert evaluate(UOp.const(2**31 - 1, D.i32) + 1) == -2147483648
    assert UOp.const(300, D.u8).arg == 44


def test_bitcasts() -> None:
    from morok.ir.interpret import evaluate
    from morok.ir.uop import UOp

    assert evaluate(UOp.const(1.0).bitcast(D.i32)) == 0x3F800000
    assert evaluate(UOp.const(0x3F800000, D.u32).bitcast(D.f32)) == 1.0
    assert evaluate(UOp.const((1, 2), D.u16).bitcast(D.u32)) == 0x20001
    assert evaluate(UOp.const(-1, D.i64).bitcast(D.u8.vec(8))) == (255,) * 8
