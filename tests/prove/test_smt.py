"""Terms built without the library's wrappers: the same nodes as the library builds, kept once, and wrong ones refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3

from morok.prove import smt
from morok.prove.kept import FALSE, TRUE, Built, adopted, forget
from morok.prove.semantics.term import World, both, either, is_true
from morok.prove.symbol import Symbol

UNKNOWNS = ("Const", "Bool", "Int", "Real", "BitVec", "Function")


def named(name: str) -> Symbol:
    return Symbol("variable", name)


class Ours:
    """The functions here, by names that they make symbols of."""

    def __getattr__(self, name: str) -> Any:
        made = getattr(smt, name)
        return (lambda name, *rest: made(named(name), *rest)) if name in UNKNOWNS else made


class Library:
    """The same names, as the library has them: of a symbol what the solver calls it there."""

    def __getattr__(self, name: str) -> Any:
        made = getattr(z3, name)
        if name not in UNKNOWNS:
            return made

        def unknown(name: str, *rest: Any) -> Any:
            sorts = [s.sexpr() for s in rest] if rest and isinstance(rest[0], z3.SortRef) else [made(name, *rest).sort().sexpr()]
            return made(f"{named(name)}: {' '.join(sorts)}", *rest)

        return unknown

    NEAREST, TO_ZERO, UP = z3.RNE(), z3.RTZ(), z3.RTP()


OURS = Ours()
ARITHMETIC: list[Callable[..., Any]] = [
    lambda s, x, y: x + y,
    lambda s, x, y: x + 1,
    lambda s, x, y: 1 + x,
    lambda s, x, y: x - y,
    lambda s, x, y: 1 - x,
    lambda s, x, y: x * y,
    lambda s, x, y: -3 * x,
    lambda s, x, y: -x,
    lambda s, x, y: x / y,
    lambda s, x, y: 7 / x,
    lambda s, x, y: x == y,
    lambda s, x, y: x == 3,
    lambda s, x, y: x != y,
    lambda s, x, y: x != 3,
    lambda s, x, y: x < y,
    lambda s, x, y: x < 3,
    lambda s, x, y: x <= 2,
    lambda s, x, y: x > y,
    lambda s, x, y: y >= 5,
    lambda s, x, y: s.If(x < y, x, y),
    lambda s, x, y: s.If(x < y, x, 0),
    lambda s, x, y: s.If(x < y, 0, x),
    lambda s, x, y: s.Function("f", x.sort(), s.BoolSort(), x.sort())(x, y == 1),
    lambda s, x, y: s.Function("g", x.sort(), x.sort())(3),
]
INTEGERS: list[Callable[..., Any]] = [
    lambda s, x, y: x % y,
    lambda s, x, y: 7 % x,
    lambda s, x, y: s.Sum([x, y, x]),
    lambda s, x, y: s.Sum([x, 1]),
    lambda s, x, y: s.Product([x, y]),
    lambda s, x, y: s.Product(x, y),
    lambda s, x, y: s.ToReal(x),
    lambda s, x, y: x + s.Real("r"),
    lambda s, x, y: x == s.Real("r"),
    lambda s, x, y: s.If(x < y, x, s.Real("r")),
    lambda s, x, y: x * (x < y),
    lambda s, x, y: s.ToInt(s.Real("r")),
    lambda s, x, y: s.Real("r") + 0.5,
]
BITS: list[Callable[..., Any]] = [
    lambda s, v, w: v % w,
    lambda s, v, w: v & w,
    lambda s, v, w: v | 3,
    lambda s, v, w: 3 ^ v,
    lambda s, v, w: ~v,
    lambda s, v, w: v << w,
    lambda s, v, w: v >> 1,
    lambda s, v, w: 1 << v,
    lambda s, v, w: s.LShR(v, w),
    lambda s, v, w: s.UDiv(v, w),
    lambda s, v, w: s.URem(v, w),
    lambda s, v, w: s.SRem(v, w),
    lambda s, v, w: s.ULT(v, 3),
    lambda s, v, w: s.ULE(3, v),
    lambda s, v, w: s.RotateLeft(v, 3),
    lambda s, v, w: s.SignExt(3, v),
    lambda s, v, w: s.ZeroExt(0, v),
    lambda s, v, w: s.Extract(5, 2, v),
    lambda s, v, w: s.Concat(s.Extract(5, 2, v), w),
    lambda s, v, w: s.BitVecVal(-1, 8) + s.BitVecVal(300, s.BitVecSort(8)),
]
LOGIC: list[Callable[..., Any]] = [
    lambda s, a, b: s.And(a, b),
    lambda s, a, b: s.And([a, b, True]),
    lambda s, a, b: s.And(),
    lambda s, a, b: s.And(a),
    lambda s, a, b: s.Or(c for c in (a, b)),
    lambda s, a, b: s.Or(),
    lambda s, a, b: s.Not(a),
    lambda s, a, b: s.Implies(a, b),
    lambda s, a, b: s.Implies(False, b),
    lambda s, a, b: s.Xor(a, b),
    lambda s, a, b: a == b,
    lambda s, a, b: a != s.BoolVal(True),
    lambda s, a, b: s.If(a, 1, 0),
    lambda s, a, b: s.If(a, True, False),
    lambda s, a, b: s.If(a, b, True),
    lambda s, a, b: s.BoolVal(True),
]
FLOATS: list[Callable[..., Any]] = [
    lambda s, f, g: s.fpAdd(s.NEAREST, f, g),
    lambda s, f, g: s.fpSub(s.NEAREST, f, g),
    lambda s, f, g: s.fpMul(s.UP, f, g),
    lambda s, f, g: s.fpDiv(s.NEAREST, f, g),
    lambda s, f, g: s.fpFMA(s.NEAREST, f, g, f),
    lambda s, f, g: s.fpSqrt(s.NEAREST, f),
    lambda s, f, g: s.fpRoundToIntegral(s.TO_ZERO, f),
    lambda s, f, g: s.fpNeg(f),
    lambda s, f, g: s.fpAbs(f),
    lambda s, f, g: s.fpLT(f, g),
    lambda s, f, g: s.fpLEQ(f, g),
    lambda s, f, g: s.fpGT(f, g),
    lambda s, f, g: s.fpEQ(f, g),
    lambda s, f, g: s.fpIsNaN(f),
    lambda s, f, g: s.fpIsInf(f),
    lambda s, f, g: s.fpIsZero(f),
    lambda s, f, g: s.fpIsNegative(f),
    lambda s, f, g: s.fpFPToFP(s.NEAREST, f, s.FPSort(11, 53)),
    lambda s, f, g: f == g,
    lambda s, f, g: f == 1.5,
    lambda s, f, g: f != g,
]
CASES = [
    *(("Int", case) for case in [*ARITHMETIC, *INTEGERS]),
    *(("Real", case) for case in ARITHMETIC),
    *(("BitVec", case) for case in [*ARITHMETIC, *BITS]),
    *(("Bool", case) for case in LOGIC),
    *(("FP", case) for case in FLOATS),
]


def operands(s: Any, kind: str) -> tuple[Any, Any]:
    if kind == "BitVec":
        return s.BitVec("p", 8), s.BitVec("q", 8)
    if kind == "FP":
        return s.Const("p", s.FPSort(8, 24)), s.Const("q", s.FPSort(8, 24))
    return getattr(s, kind)("p"), getattr(s, kind)("q")


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_a_term_is_the_node_that_the_library_builds(kind: str, case: Callable[..., Any]) -> None:
    ours, library = case(OURS, *operands(OURS, kind)), case(Library(), *operands(Library(), kind))
    assert isinstance(ours, Built)
    assert ours.eq(library)
    assert library.eq(ours)
    assert ours.sort() == library.sort()
    assert case(OURS, *operands(OURS, kind)) is ours  # built once
    mixed = case(OURS, operands(OURS, kind)[0], operands(Library(), kind)[1])
    assert mixed.eq(ours)


def test_numerals_can_be_read() -> None:
    assert smt.IntVal(-3).as_long() == -3
    assert smt.BitVecVal(255, 8).as_signed_long() == -1
    assert smt.simplify(smt.BitVecVal(255, 8) + 2).as_long() == 1
    assert smt.simplify(smt.If(OURS.Bool("a"), smt.IntVal(1), 1)).as_long() == 1
    assert smt.simplify(smt.ToReal(smt.IntVal(1)) / 3).numerator_as_long() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: OURS.BitVec("v", 8) + OURS.BitVec("w", 9),
        lambda: smt.ULT(OURS.BitVec("v", 8), OURS.BitVec("w", 9)),
        lambda: OURS.Int("x") + OURS.BitVec("v", 8),
        lambda: smt.And(OURS.Int("x")),
        lambda: smt.Not(OURS.Int("x")),
        lambda: smt.Extract(9, 0, OURS.BitVec("v", 8)),
        lambda: smt.fpAdd(smt.NEAREST, OURS.Const("f", smt.FPSort(8, 24)), OURS.Const("g", smt.FPSort(11, 53))),
        lambda: OURS.Function("f", smt.BoolSort(), smt.IntSort())(OURS.Int("x")),
        lambda: OURS.Function("f", smt.IntSort(), smt.IntSort())(),
    ],
)
def test_what_is_no_term_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises((z3.Z3Exception, ValueError)):
        wrong()


def test_what_is_forgotten_can_still_be_used_and_is_built_anew() -> None:
    x = OURS.Int("x")
    before = x + 1
    text = before.sexpr()
    forget()
    after = OURS.Int("x") + 1
    assert after is not before
    assert after.eq(before)
    del after
    forget()
    many = [OURS.Int(f"x{i}") * i for i in range(2, 2000)]  # where what was forgotten may have been
    assert before.sexpr() == text
    assert {m.sexpr() for m in many} == {f"(* |{named(f'x{i}')}: Int| {i})" for i in range(2, 2000)}
    assert both(before > 0, TRUE).eq(before > 0)


def test_truths_stay_what_they_are() -> None:
    forget()
    assert smt.simplify(z3.Or(z3.Bool("a"), z3.Not(z3.Bool("a")))) is TRUE
    assert adopted(z3.BoolVal(False)) is FALSE
    assert is_true(z3.And(True, True)) is False
    assert both(z3.BoolVal(True)) is TRUE
    assert either(z3.Bool("a"), z3.BoolVal(True)) is TRUE


def test_a_term_is_a_key_for_as_long_as_the_world_is_there() -> None:
    world = World("test")
    x, y = OURS.Int("x"), OURS.Int("y")
    assert world.once(("quotient", x + y), lambda: world.fresh("q", z3.IntSort())) is world.once(
        ("quotient", OURS.Int("x") + OURS.Int("y")), lambda: world.fresh("q", z3.IntSort())
    )


def test_sums_and_products_of_one_term_are_the_term() -> None:
    """SMT-LIB's `+` and `*` have two operands at least: other solvers refuse one."""
    for of in (z3.Int("n"), z3.Real("r")):
        assert smt.Sum(of).eq(of)
        assert smt.Product([of]).eq(of)
        assert "(+ " not in smt.Sum(smt.Sum([of])).sexpr()
