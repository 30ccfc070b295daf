"""One kernel an op: every dtype, scalar and vector, over pairs of edge values; and what it must compute."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from instruction_lists import Listing
from values import edges, encode, sample

from morok.ir.dtype import BY_NAME, FLOATS, INTS, STORAGE_FLOATS, DType, dtypes
from morok.ir.op import TABLE, Op, Undefined
from morok.ir.uop import UOp

LANES = (1, 3, 16)  # a scalar, an awkward vector, a register
BLOCK = 48
INEXACT = {
    Op.Exp2, Op.Log2, Op.Sin, Op.Exp, Op.Log, Op.Cos, Op.Tan, Op.Tanh, Op.Erf, Op.Rsqrt, Op.Pow,
}  # fmt: skip
POINTWISE = [op for op, e in TABLE.entries.items() if e.pointwise and op is not Op.Cast]


@dataclass
class Case:
    """One loop of a program: operands, where the result goes, and what is right (None: undefined there)."""

    label: str
    result: DType
    slot: int
    expected: list[Any]


@dataclass
class Program:
    listing: Listing = field(default_factory=Listing)
    arrays: list[np.ndarray] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    outputs: dict[int, DType] = field(default_factory=dict)

    def input(self, d: DType, values: Sequence[Any]) -> UOp:
        self.arrays.append(encode(d, values))
        return self.listing.buffer(len(self.arrays) - 1, d, len(values))

    def output(self, d: DType, n: int) -> UOp:
        zero = [False if d.is_bool else 0] * n
        self.arrays.append(encode(d, zero))
        return self.listing.buffer(len(self.arrays) - 1, d, n)

    def loop(self, label: str, result: DType, build: Callable[..., UOp], ins: Sequence[tuple[UOp, DType]], n: int, lanes: int,
             expected: list[Any]) -> None:  # fmt: skip
        out = self.output(result, n)
        listing = self.listing
        r = listing.range(n // lanes)
        at = r * lanes if lanes > 1 else r
        values = [listing.load(b, at, d.vec(lanes)) for b, d in ins]
        listing.store(out, at, listing.add(build(*values)))
        listing.end(r)
        self.cases.append(Case(f"{label} x{lanes}", result, len(self.arrays) - 1, expected))


def padded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return rows + [rows[0]] * (-len(rows) % BLOCK)


def operand_rows(op: Op, d: DType, arity: int, has_condition: bool) -> list[tuple[Any, ...]]:
    values = edges(d)
    if has_condition:
        rows = [(c, a, b) for c in (True, False) for a, b in zip(values, reversed(values), strict=True)]
    elif arity == 1:
        rows = [(v,) for v in values + sample(d, 60, 1)]
    elif arity == 2:
        rows = list(itertools.product(values, values))
        if op in (Op.Shl, Op.Shr):
            rows += [(a, s) for a in values for s in range(d.bits)]
        if op is Op.Pow and d.is_int:
            rows += [(a, s) for a in values for s in range(9)]
        rows += list(zip(sample(d, 96, 2), sample(d, 96, 3), strict=True))
    else:
        some = values[:: max(1, len(values) // 7)]
        rows = list(itertools.product(some, some, some))
        rows += list(zip(sample(d, 480, 4), sample(d, 480, 5), sample(d, 480, 6), strict=True))
    return padded(rows)


def evaluate(op: Op, d: DType, row: Sequence[Any]) -> Any:
    try:
        return TABLE[op].evaluate(d, *row)
    except Undefined:
        return None


def op_program(op: Op, lanes: Sequence[int] = LANES) -> Program:
    """Every dtype of a pointwise op."""
    if op is Op.Pow:  # long code, one lane like another
        lanes = lanes[:2]
    entry = TABLE[op]
    program = Program()
    for d in entry.signature.domains["T"]:
        if d.is_index:
            continue
        arity = len(entry.signature.params)
        has_condition = op is Op.Where
        rows = operand_rows(op, d, arity, has_condition)
        types = [dtypes.bool, d, d] if has_condition else [d] * arity
        columns = [[r[i] for r in rows] for i in range(arity)]
        ins = [(program.input(t, col), t) for t, col in zip(types, columns, strict=True)]
        expected = [evaluate(op, d, r) for r in rows]
        result = dtypes.bool if entry.comparison else d
        for n in lanes:
            program.loop(f"{op.name} {d}", result, lambda *xs: UOp.new(op, xs), ins, len(rows), n, expected)
    return program


def cast_program(source: DType, lanes: Sequence[int] = LANES) -> Program:
    """Casts of one dtype to every other, the 8-bit floats among them."""
    program = Program()
    values = edges(source) + sample(source, 200, 7)
    if source.is_int and source.bits == 64:  # halfway between neighbours of the float formats, and just beside
        for e in (24, 25, 33, 54, 55, 62):
            base = (1 << e) + (1 << (e - 8))
            values += [base, base + 1, base - 1, (1 << e) + (1 << (e - 24)), (1 << e) + (1 << (e - 24)) + 1]
        if source.is_signed:
            values += [-v for v in values[-20:]]
    if source.is_float and source.bits > 16:  # the same for rounding to the narrow ones
        for mantissa in (1 + 2**-8, 1 + 2**-11, 1 + 2**-4, 1 + 2**-3, 1 + 3 * 2**-8, 1 + 3 * 2**-11):
            for step in (0.0, 2.0**-23, -(2.0**-23), 2.0**-24, 2.0**-52, -(2.0**-52)):
                values += [evaluate(Op.Neg, source, [-(mantissa + step)])] if source is dtypes.f64 else []
        from morok.ir.number import round_float

        values = [round_float(source, v) for v in values]
    rows = padded([(v,) for v in values])
    column = [r[0] for r in rows]
    operand = program.input(source, column)
    targets = [d for d in BY_NAME.values() if d in (dtypes.bool, *INTS, *FLOATS, *STORAGE_FLOATS)]
    for target in targets:
        expected = [_cast(target, v, source) for v in column]
        for n in lanes:
            program.loop(
                f"Cast {source} to {target}",
                target,
                lambda x, t=target: x.cast(t),
                [(operand, source)],
                len(rows),
                n,
                expected,
            )
    return program


def _cast(target: DType, v: Any, source: DType) -> Any:
    try:
        return TABLE[Op.Cast].evaluate(target, v, source)
    except Undefined:
        return None
