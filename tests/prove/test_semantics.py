"""One meaning per op: what the solver is told agrees with what the evaluator computes, at every dtype, on edges and at random."""

from __future__ import annotations

import importlib
import itertools
import math
import random
from typing import Any

import pytest

import morok.ir.uop  # noqa: F401  (fills the op table)
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.number import coerce, same_value
from morok.ir.op import TABLE, OpDef, Undefined
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.semantics import MorokWorld
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.solve import ask
from morok.prove.symbol import Symbol

OPS = [e for e in TABLE.entries.values() if e.solver and e.evaluate is not None and e.signature is not None]
ENCODINGS: dict[str, dict[str, bool]] = {
    "bits": {},
    "witnesses": {"integers": True, "witnesses": True},
    "builtin": {"integers": True, "builtin": True},
    "functions": {"integers": True},
    "one division": {"integers": True, "witnesses": True, "one_division": True},
}
FLOAT_EDGES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 1e-8, 65504.0, 3e38, 1e-40, 2.0**31,
    -(2.0**31), 127.9, -128.5, 255.5,
)  # fmt: skip


def samples(d: DType, rng: random.Random) -> list[Any]:
    if d.is_bool:
        return [False, True]
    if d.is_index:
        return [0, 1, -1, 2, -2, 3, -7, 7, 10**12, -(10**12)]
    if d.is_int:
        edges = (
            0,
            1,
            2,
            3,
            7,
            d.min,
            d.max,
            d.max - 1,
            d.min + 1,
            -1,
            -2,
            -7,
            d.bits - 1,
            d.bits,
            rng.randrange(int(d.min), int(d.max)),
        )
        return [int(v) for v in edges if d.min <= v <= d.max]
    return [coerce(d, v) for v in (*FLOAT_EDGES, rng.uniform(-100, 100))]


def solved(world: MorokWorld, e: Any) -> Any:
    """The numeral that a closed term is."""
    if not world.axioms:
        return smt.simplify(e)
    found = ask(world.axioms, DEFAULT_BUDGET)
    assert found.answer is Answer.SAT
    return found.model.value(e)


def compare(entry: OpDef, d: DType, source: DType, options: dict[str, bool], values: tuple[Any, ...]) -> bool:
    """Compare one application; False where the encoding does not have it."""
    module, _, name = entry.solver.partition(":")
    function = getattr(importlib.import_module(module), name)
    assert entry.signature is not None
    assert entry.evaluate is not None
    operand_types = [{"T": d, "S": source, "bool": dtypes.bool}[p] for p in entry.signature.params]
    extra = (source,) if entry.name == "Cast" else ()
    world = MorokWorld("test", **options)
    try:
        terms = [world.constant(t.name, v) for t, v in zip(operand_types, values, strict=True)]
        got: Term = function(world, d, *terms, *extra)
    except Unsupported:
        return False
    try:
        want = entry.evaluate(d, *values, *extra)
        defined = True
    except Undefined:
        want, defined = None, False
    assert (smt.simplify(got.defined) is smt.TRUE) == defined, (entry.name, d, values)
    if not defined:
        return True
    result = dtypes.bool if entry.signature.result == "bool" else d
    if not world.exact:  # a function of which only some values are known: the evaluator's must be possible
        found = ask([*world.axioms, got.value == world.constant(result.name, want).value], DEFAULT_BUDGET)
        assert found.answer is Answer.SAT, (entry.name, d, values, want)
        return True
    found = world.read(result.name, solved(world, got.value))
    assert same_value(result, found, want), (entry.name, d, source, values, want, found)
    return True


@pytest.mark.sampled(30)
@pytest.mark.parametrize("entry", OPS, ids=lambda e: e.name)
def test_solver_agrees_with_evaluator(entry: OpDef) -> None:
    rng = random.Random(entry.name)
    assert entry.signature is not None
    compared = 0
    divides = entry.name in ("Idiv", "Mod", "FloorDiv", "FloorMod", "Shr", "And")
    for encoding, options in ENCODINGS.items():
        if not divides and encoding not in ("bits", "witnesses"):
            continue
        for d in entry.signature.domains["T"]:
            sources = entry.signature.domains.get("S", (d,))
            for source in sources:
                types = [{"T": d, "S": source, "bool": dtypes.bool}[p] for p in entry.signature.params]
                combinations = list(itertools.product(*(samples(t, rng) for t in types)))
                rng.shuffle(combinations)
                for values in combinations[: 4 if len(sources) > 1 else 8]:
                    compared += compare(entry, d, source, options, values)
    assert compared >= 8


@pytest.mark.parametrize("d", [d for d in BY_NAME.values() if d.is_float], ids=str)
def test_a_number_of_a_guard_as_a_float_is_the_nearest_one(d: DType) -> None:
    for v in (
        0,
        1,
        -3,
        255,
        449,
        65504,
        65519,
        65520,
        -65520,
        2**24 + 1,
        2**53 + 1,
        -(2**63) + 1,
        2**64 - 1,
        2**64 - 2**10 - 1,
    ):
        world = MorokWorld("test")
        number = smt.BitVec(Symbol("v"), 66)
        term = world.constant_of(d.name, Num(number))
        found = ask(
            [number == smt.BitVecVal(v, 66), term.value == world.constant(d.name, coerce(d, v)).value], DEFAULT_BUDGET
        )
        other = ask(
            [number == smt.BitVecVal(v, 66), term.value != world.constant(d.name, coerce(d, v)).value], DEFAULT_BUDGET
        )
        assert (found.answer, other.answer) == (Answer.SAT, Answer.UNSAT), v


def test_every_scalar_op_names_its_semantics() -> None:
    for entry in TABLE.entries.values():
        if entry.pointwise:
            module, _, name = entry.solver.partition(":")
            assert callable(getattr(importlib.import_module(module), name)), entry.name


def test_bits_of_floats_go_and_come_back() -> None:
    world = MorokWorld("test")
    from morok.prove.semantics import bitcast

    for bits, value in ((0x3F800000, 1.0), (0x80000000, -0.0), (0x7F800000, math.inf)):
        term = bitcast(world, dtypes.f32, world.constant("u32", bits), dtypes.u32)
        assert same_value(dtypes.f32, world.read("f32", smt.simplify(term.value)), value)
    nan = bitcast(world, dtypes.u32, world.constant("f32", math.nan), dtypes.f32)
    assert nan.allows is not None
    for pattern in (0x7FC00000, 0x7F800001, 0xFFC00000):
        assert smt.simplify(nan.allows(smt.BitVecVal(pattern, 32))) is smt.TRUE
    assert smt.simplify(nan.allows(smt.BitVecVal(0x7F800000, 32))) is smt.FALSE


def test_invalid_is_strict_in_arithmetic_and_undefined_in_comparisons() -> None:
    from morok.prove.semantics import add, lt, where

    world = MorokWorld("test", integers=True)
    x, nowhere = world.constant("index", 3), world.invalid()
    assert add(world, dtypes.index, x, nowhere).invalid is smt.TRUE
    assert smt.simplify(lt(world, dtypes.index, x, nowhere).defined) is smt.FALSE
    chosen = where(world, dtypes.index, world.constant("bool", True), x, nowhere)
    assert smt.simplify(chosen.invalid) is smt.FALSE


def test_only_the_chosen_branch_need_be_defined() -> None:
    from morok.prove.semantics import idiv, where

    world = MorokWorld("test")
    bad = idiv(world, dtypes.i32, world.constant("i32", 1), world.constant("i32", 0))
    good = where(world, dtypes.i32, world.constant("bool", False), bad, world.constant("i32", 5))
    assert smt.simplify(good.defined) is smt.TRUE
