"""Sorts of SMT-LIB: one object each, so that identity is equality."""

from __future__ import annotations

import functools
from typing import Final, Literal

Kind = Literal["Bool", "Int", "Real", "BitVec", "Float", "Uninterpreted"]


class Sort:
    """A sort, as SMT-LIB writes it.

    text      its spelling
    width     of bit vectors and floats: how many bits a value has, else 0
    exponent, significand   of floats: their bits; the significand's with the hidden one
    """

    __slots__ = ("exponent", "kind", "significand", "text", "width")

    def __init__(self, kind: Kind, text: str, width: int = 0, exponent: int = 0, significand: int = 0) -> None:
        self.kind: Kind = kind
        self.text = text
        self.width = width
        self.exponent = exponent
        self.significand = significand

    def __repr__(self) -> str:
        return self.text


BOOL: Final = Sort("Bool", "Bool")
INT: Final = Sort("Int", "Int")
REAL: Final = Sort("Real", "Real")


def BoolSort() -> Sort:
    """The sort of truths."""
    return BOOL


def IntSort() -> Sort:
    """The sort of mathematical integers."""
    return INT


def RealSort() -> Sort:
    """The sort of real numbers."""
    return REAL


@functools.cache
def BitVecSort(width: int) -> Sort:
    """The sort of bit vectors of a width of at least 1."""
    return Sort("BitVec", f"(_ BitVec {width})", width)


@functools.cache
def FPSort(exponent: int, significand: int) -> Sort:
    """The sort of IEEE 754 floats with so many bits of exponent, and of significand with the hidden one."""
    return Sort("Float", f"(_ FloatingPoint {exponent} {significand})", exponent + significand, exponent, significand)


@functools.cache
def DeclareSort(name: str) -> Sort:
    """A sort of which only equality is known."""
    return Sort("Uninterpreted", name)
