"""The transfer functions of the bounds are proved, and the prover of them refuses wrong ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from morok.ir import bounds as B
from morok.ir.dtype import dtypes
from morok.ir.op import TABLE, Op
from morok.prove import bounds_proofs, bounds_record, nonlinear_lemmas
from morok.prove.answers import Answer


def findings(op: Op, transfer: Callable[..., Any], dtype: Any) -> list[bounds_proofs.Finding]:
    entry = dataclasses.replace(TABLE[op], bounds=transfer)
    return [bounds_proofs.judge(case) for case in bounds_proofs._pointwise(entry, dtype)]


def test_the_ledger_is_of_the_present_functions() -> None:
    """After an edit: `morok prove --bounds --write`."""
    assert bounds_record.is_current()


def test_every_function_is_covered() -> None:
    for op in bounds_record.bounded_ops():
        assert next(bounds_proofs.cases(op), None) is not None, op


def no_overflow(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    return a.vmin + b.vmin, a.vmax + b.vmax


def corners_of_the_ends_alone(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    return B.fit(d, B.times(a.vmin, b.vmin), B.times(a.vmax, b.vmax))


def remainder_below_the_divisor(d: Any, src: Any, arg: Any) -> Any:
    return 0, max(src[1].vmax - 1, 0)


def a_quotient_without_int_min(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    ends = [B.tdiv(x, y) for part in B._divisor_parts(b.vmin, b.vmax) for x in (a.vmin, a.vmax) for y in part]
    return (max(min(ends), d.min), min(max(ends), d.max)) if ends else (d.min, d.max)


def wrong_where_all_is_usual(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    if a.vmax.__class__ is int and b.vmax.__class__ is int and a.vmin >= 0 and b.vmin > 0:
        return a.vmin // b.vmin, a.vmax // b.vmin
    return B.idiv(d, src, arg)


def a_limit_that_cuts_off(d: Any, src: Any, arg: Any) -> Any:
    lo, hi = B.plus(src[0].vmin, src[1].vmin), B.plus(src[0].vmax, src[1].vmax)
    return B.LIMIT if lo > B.LIMIT else lo, B.LIMIT if hi > B.LIMIT else hi


def or_of_the_greater(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    return (max(a.vmin, b.vmin), max(a.vmax, b.vmax)) if a.vmin >= 0 and b.vmin >= 0 else (d.min, d.max)


def both_ends_shifted_alike(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    if b.vmin < 0 or b.vmax >= d.bits:
        return d.min, d.max
    return a.vmin >> b.vmax, a.vmax >> b.vmin


def strictly_less(d: Any, src: Any, arg: Any) -> Any:
    a, b = src
    return B.TRUE if a.vmax <= b.vmin else B.EITHER


def the_chosen_branch_is_the_first(d: Any, src: Any, arg: Any) -> Any:
    return src[1].vmin, src[1].vmax


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("op", "transfer", "dtype"),
    [
        (Op.Add, no_overflow, dtypes.u8),
        (Op.Add, no_overflow, dtypes.i64),
        (Op.Mul, corners_of_the_ends_alone, dtypes.i32),
        (Op.Mul, corners_of_the_ends_alone, dtypes.index),
        (Op.Mod, remainder_below_the_divisor, dtypes.index),
        (Op.Idiv, a_quotient_without_int_min, dtypes.i8),
        (Op.Idiv, wrong_where_all_is_usual, dtypes.index),
        (Op.Add, a_limit_that_cuts_off, dtypes.index),
        (Op.Or, or_of_the_greater, dtypes.u16),
        (Op.Shr, both_ends_shifted_alike, dtypes.i32),
        (Op.Lt, strictly_less, dtypes.i16),
        (Op.Where, the_chosen_branch_is_the_first, dtypes.i32),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_a_wrong_function_is_refuted(op: Op, transfer: Callable[..., Any], dtype: Any) -> None:
    found = findings(op, transfer, dtype)
    assert Answer.SAT in [f.answer for f in found]
    assert any(f.counterexample for f in found)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("op", "dtype"), [(Op.Add, dtypes.i32), (Op.Xor, dtypes.u8), (Op.FloorMod, dtypes.i8), (Op.Max, dtypes.index)]
)
def test_the_real_ones_are_proved(op: Op, dtype: Any) -> None:
    found = [bounds_proofs.judge(case) for case in bounds_proofs._pointwise(TABLE[op], dtype)]
    assert {f.answer for f in found} == {Answer.UNSAT}


def test_lemmas_are_proved_and_no_premise_is_contradictory() -> None:
    from morok.prove.solve import ask

    assert {f.answer for f in bounds_proofs.prove_lemmas()} == {Answer.UNSAT}
    for _, premises, _ in nonlinear_lemmas.lemmas():
        assert ask(list(premises), bounds_proofs.BUDGET).answer is Answer.SAT


def test_a_division_of_int_min_alone_has_the_bounds_of_its_dtype() -> None:
    from morok.ir.uop import UOp

    x, y = UOp.var("x", dtypes.i8, -128, -128), UOp.var("y", dtypes.i8, -1, 0)
    assert ((x // y).vmin, (x // y).vmax) == (-128, 127)
