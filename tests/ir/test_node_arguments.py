"""Wrong arguments of what makes nodes: an error of ours, at the line that passes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes
from morok.errors import IRError, IRTypeError, MorokError
from morok.ir.dtype import AddrSpace
from morok.ir.op import Op

X = UOp.var("x", dtypes.index, 0, 31)
F = UOp.var("f", dtypes.f32)

WRONG: dict[str, Callable[[], Any]] = {
    "a tuple as a dtype": lambda: UOp.var("x", (1,)),  # type: ignore[arg-type]
    "a name as a dtype": lambda: X.cast("i32"),  # type: ignore[arg-type]
    "no dtype": lambda: X.cast(None),  # type: ignore[arg-type]
    "a number as a dtype": lambda: F.bitcast(32),  # type: ignore[arg-type]
    "a class as the dtype of a constant": lambda: UOp.const(1, int),  # type: ignore[arg-type]
    "a word as the dtype of a load": lambda: F.load("f32"),  # type: ignore[arg-type]
    "a word as a constant": lambda: UOp.const("1.5", dtypes.f32),
    "a word as a bool": lambda: UOp.const("false", dtypes.bool),
    "a complex number": lambda: UOp.const(np.complex64(1j), dtypes.f32),
    "a number as an op": lambda: UOp.new(1, (X,)),  # type: ignore[arg-type]
    "a list as an op": lambda: UOp.new([], (X,)),  # type: ignore[arg-type, call-overload]
    "a number as operands": lambda: UOp.new(Op.Sink, 3),  # type: ignore[arg-type]
    "a number that is ordered": lambda: X.after(3),  # type: ignore[arg-type]
    "a list that is closed": lambda: X.end([X]),  # type: ignore[arg-type]
    "a tensor as a gate": lambda: UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(4)).index(X, gate=Tensor([True])),  # type: ignore[arg-type]
    "a node as nodes": lambda: UOp.range(8, 0, deps=X),  # type: ignore[arg-type]
    "no lanes of a constant": lambda: UOp.const((), dtypes.f32.vec(2)),
    "a tensor as a constant": lambda: UOp.const(Tensor([1.0, 2.0]), dtypes.f32),
    "half of an integer as a constant": lambda: X + 0.5,
    "a pointer as a number": lambda: UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(4)).cast(dtypes.i32),
    "two lanes of four": lambda: UOp.var("v", dtypes.f32.vec(4)).cast(dtypes.i32.vec(2)),
    "bits of another width": lambda: F.bitcast(dtypes.i64),
    "no lanes": lambda: UOp.vectorize(),
    "one lane that is a number": lambda: UOp.vectorize(1.0),  # type: ignore[arg-type]
    "a number in place of operands": lambda: X.replace(1),  # type: ignore[arg-type]
    "a tensor in place of an operand": lambda: (X + 1).replace((X, Tensor(1, dtype="i64"))),  # type: ignore[arg-type]
    "a number as a mapping": lambda: X.substitute(-1),  # type: ignore[arg-type]
    "a number in place of a node": lambda: X.substitute({X: 3}),  # type: ignore[dict-item]
    "a field that is no name": lambda: X.field(np.ones((1, 2))),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_have_an_error_of_ours_at_their_line(what: str) -> None:
    with pytest.raises(MorokError) as caught:
        WRONG[what]()
    assert isinstance(caught.value, (TypeError, ValueError))
    assert "expected" in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_field_that_is_not_there_is_an_attribute_error_too() -> None:
    with pytest.raises(AttributeError, match="no field 'axes'") as caught:
        X.field("axes")
    assert isinstance(caught.value, IRError)
    assert "name or min or max" in caught.value.expected


@pytest.mark.parametrize("name", ["\ud800", "a\udcff", "\N{GREEK SMALL LETTER ALPHA}"], ids=ascii)
def test_any_text_names_a_variable_that_stands_in_an_order(name: str) -> None:
    """A text with surrogates has no bytes in UTF-8."""
    x, y = UOp.var(name, dtypes.index, 0, 9), UOp.var("y", dtypes.index, 0, 9)
    assert morok.simplify(x + y) is morok.simplify(y + x)


def test_numbers_of_numpy_are_constants() -> None:
    assert UOp.const(np.int64(3)) is UOp.const(3)
    assert UOp.const(np.float32(1.5), dtypes.f32) is UOp.const(1.5, dtypes.f32)
    assert UOp.const(np.bool_(True), dtypes.bool) is UOp.const(True)


def buffer(n: int, *shape: int) -> UOp:
    flat = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 7), UOp.new(Op.Device, (), "CPU")), n, dtypes.f32)
    return UOp.new(Op.Reshape, (flat, *map(UOp.const, shape))) if shape else flat


MATRIX = buffer(6, 2, 3)
P = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(4))
TWO = UOp.var("i", dtypes.index.vec(2))

PLACES = buffer(4, 2, 2)
TRANSPOSED = buffer(6, 3, 2)
ROW = buffer(3, 1, 3)
CHOICE = MATRIX.lt(0.5)
CANNOT_BE: dict[str, Callable[[], Any]] = {
    "a sum of two shapes": lambda: UOp.new(Op.Add, (MATRIX, TRANSPOSED)),
    "a product of two shapes, by an operator": lambda: MATRIX * TRANSPOSED,
    "a comparison of two shapes": lambda: MATRIX < TRANSPOSED,
    "a sum of one axis and two": lambda: MATRIX + buffer(3),
    "a sum over an axis of size 1": lambda: MATRIX + ROW,
    "a choice by a condition of another shape": lambda: CHOICE.where(TRANSPOSED, TRANSPOSED),
    "a choice between two shapes": lambda: CHOICE.where(MATRIX, TRANSPOSED),
    "a choice by a number between two shapes": lambda: F.lt(1.0).where(MATRIX, TRANSPOSED),
    "a product and a sum of another shape": lambda: UOp.new(Op.MulAcc, (MATRIX, MATRIX, TRANSPOSED)),
    "a sum of computed tensors of two shapes": lambda: (MATRIX * 2 + F).exp2() - (F - TRANSPOSED).cast(dtypes.f32),
    "operands of two shapes in place of one": lambda: (MATRIX + MATRIX).replace((MATRIX, TRANSPOSED)),
    "a tensor of another shape in place of one": lambda: (MATRIX * 2 + MATRIX.sqrt()).substitute({MATRIX.sqrt(): TRANSPOSED}),
    "lanes of two shapes": lambda: UOp.vectorize(MATRIX, TRANSPOSED),
    "a loop to a tensor": lambda: UOp.range(PLACES.cast(dtypes.index), 0),
    "a branch by a tensor": lambda: UOp.new(Op.If, (CHOICE,)),
    "a fold over an f32": lambda: F.reduce(Op.Add, F),
    "an end of an f32": lambda: P.index(X).store(F).end(F),
    "a store that closes an f32": lambda: P.index(X).store(F, F),
    "a buffer over an f32": lambda: UOp.new(Op.Bufferize, (F, F), (None, AddrSpace.GLOBAL)),
    "an If of an f32": lambda: UOp.new(Op.If, (F, P.index(X).store(F))),
    "a load of one lane from two places": lambda: UOp.new(Op.Load, (P.index(TWO),), None, dtypes.f32),
    "two values for three places": lambda: P.index(UOp.var("j", dtypes.index.vec(3))).store(UOp.var("v", dtypes.f32.vec(2))),
    "an If of two conditions": lambda: UOp.new(Op.If, (UOp.var("g", dtypes.bool.vec(2)), P.index(X).store(F))),
    "the end of no If": lambda: UOp.new(Op.EndIf, (X,)),
    "six elements as seven": lambda: UOp.new(Op.Reshape, (MATRIX, UOp.const(7))),
    "a size that is an f32": lambda: UOp.new(Op.Reshape, (MATRIX, F)),
    "a size below 0": lambda: UOp.new(Op.Reshape, (MATRIX, UOp.const(-2), UOp.const(-3))),
    "axis 5 of two": lambda: UOp.new(Op.ReduceAxis, (MATRIX,), (Op.Add, (5,))),
    "an axis twice": lambda: UOp.new(Op.ReduceAxis, (MATRIX,), (Op.Add, (1, 1))),
    "three axes of two": lambda: UOp.new(Op.Permute, (MATRIX,), (2, 0, 1)),
    "three flips of two": lambda: UOp.new(Op.Flip, (MATRIX,), (True, False, True)),
    "three rows of two": lambda: UOp.new(Op.Expand, (MATRIX, UOp.const(3), UOp.const(3))),
    "an edge of two axes": lambda: UOp.new(Op.Pad, (MATRIX, UOp.const(1), UOp.const(1))),
    "a begin without an end": lambda: UOp.new(Op.Pad, (buffer(6), UOp.const(1))),
    "a part beyond the end": lambda: UOp.new(Op.Shrink, (buffer(6), UOp.const(2), UOp.const(9))),
    "a part that ends before it begins": lambda: UOp.new(Op.Shrink, (buffer(6), UOp.const(4), UOp.const(2))),
    "a view beyond the end": lambda: UOp.new(Op.BufferView, (buffer(6),), (4, 4), dtypes.f32),
    "six elements in place of five": lambda: UOp.new(Op.Assign, (buffer(5), buffer(6))),
    "bits of an index": lambda: UOp.new(Op.Bitcast, (X,), dtype=dtypes.i32),
    "64 of 32 bits": lambda: UOp.new(Op.Bitcast, (F,), dtype=dtypes.i64),
    "a variable bound to another dtype": lambda: UOp.new(Op.Bind, (X, UOp.const(1.0, dtypes.f32))),
    "an index instead of an f32 that is read": lambda: UOp.new(Op.Load, (P.index(X), X)),
    "a gate alone": lambda: UOp.new(Op.Index, (UOp.new(Op.Param, (), 0, dtypes.bool),), True),
    "a begin behind its axis": lambda: UOp.new(Op.Shrink, (MATRIX, *map(UOp.const, (0, 4, 2, 3)))),
    "more ends than an axis has": lambda: UOp.new(Op.Shrink, (MATRIX, *map(UOp.const, (0, 0, 2, 4)))),
    "less than nothing to pad": lambda: UOp.new(Op.Pad, (buffer(6), UOp.const(-1), UOp.const(1))),
    "an axis too many": lambda: UOp.new(Op.ReduceAxis, (MATRIX,), (Op.Add, (0, 2))),
    "lanes of statements": lambda: UOp.new(Op.Cat, (UOp.new(Op.Noop), UOp.new(Op.Noop))),
    "a constant of void": lambda: UOp.new(Op.Const, (), 1, dtypes.void),
    "a vector of no numbers": lambda: UOp.new(Op.VConst, (), 1, dtypes.i32),
    "a copy to a number": lambda: UOp.new(Op.Copy, (MATRIX, X)),
    "a class as an operand": lambda: X.end(UOp),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("what", CANNOT_BE)
def test_what_cannot_be_is_refused_where_it_is_made(what: str) -> None:
    with pytest.raises(IRTypeError) as caught:
        CANNOT_BE[what]()
    assert caught.value.place is not None
    assert caught.value.place.file == __file__
    assert "expected" in str(caught.value)


def test_views_of_what_has_no_axes_yet_are_made() -> None:
    """A kernel's parameters have no shape of their own, and symbolic sizes are compared with nothing."""
    n = UOp.var("n", dtypes.index, 1, 8)
    assert UOp.new(Op.Flip, (P,), (True,)).dtype is P.dtype
    assert UOp.new(Op.Reshape, (MATRIX, n, UOp.const(3))).shape == (n, 3)
    assert UOp.new(Op.Shrink, (MATRIX, UOp.const(0), n, UOp.const(1), n + 1)).shape == (1, 1)
    assert UOp.new(Op.Reshape, (buffer(0), UOp.const(0), UOp.const(5))).shape == (0, 5)
