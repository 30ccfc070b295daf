"""A ready-made encoding for dialects whose values are integers in ranges: mathematical integers, every result clipped by its op.

A dialect subclasses `IntegerTheory`, names its dtypes' ranges, and writes each op as a function (world, dtype, *terms) -> Term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from morok.prove import smt
from morok.prove.semantics.integers import Integers
from morok.prove.semantics.numbers import Arithmetic, Num, WholeNumbers
from morok.prove.semantics.term import Term, Unsupported, World, both, either, is_true, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Symbol


@dataclass(slots=True)
class IntegerWorld(World):
    """Dtypes by name, each with its least and greatest value; "bool" is the solver's bool."""

    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    numbers: Arithmetic = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = Arithmetic(self, WholeNumbers(self, builtin=True))

    def dtype(self, name: str) -> str:
        return name

    def arithmetic(self, d: str) -> Integers:
        return Integers(self, 0, True, builtin=True)

    def variable(self, name: Symbol, dtype: str, maybe_invalid: bool = False) -> Term:
        if dtype == "bool":
            return Term(smt.Bool(name))
        v = smt.Int(name)
        low, high = self.limits[dtype]
        self.assume(low <= v, v <= high)
        return Term(v)

    def constant(self, dtype: str, value: Any) -> Term:
        return Term(smt.BoolVal(bool(value)) if dtype == "bool" else smt.IntVal(int(value)))

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        return target.value == pattern.value

    def equal_but_zero_signs(self, dtype: str, target: Term, pattern: Term) -> Expr:
        raise Unsupported("signed zeros of integers")

    def number_of(self, dtype: str, term: Term) -> Num:
        return Num(smt.If(term.value, 1, 0) if dtype == "bool" else term.value)

    def constant_of(self, dtype: str, number: Num) -> Term:
        """A computed number as a constant: it has none where the dtype cannot hold it."""
        if dtype == "bool":
            return Term(number.value != 0)
        return Term(number.value, self.fits(dtype, number))

    def bound(self, dtype: str, name: Symbol, term: Term, least: bool) -> tuple[Num, Expr]:
        n = Num(smt.Int(name))
        value = self.number_of(dtype, term).value
        sound = n.value <= value if least else value <= n.value
        return n, either(negation(term.defined), sound)

    def fits(self, dtype: str, number: Num) -> Expr:
        low, high = self.limits[dtype]
        return both(low <= number.value, number.value <= high)

    def bits(self, dtype: str) -> int:
        raise Unsupported("the width of a range of integers")

    def is_float(self, dtype: str) -> bool:
        return False

    def is_int(self, dtype: str) -> bool:
        return dtype in self.limits

    def is_index(self, dtype: str) -> bool:
        return False

    def safe_cast(self, a: str, b: str) -> bool:
        (low, high), (least, most) = self.limits[a], self.limits[b]
        return least <= low and high <= most

    def read(self, dtype: str, value: Expr) -> Any:
        return is_true(value) if dtype == "bool" else int(value.data)

    def read_number(self, value: Expr) -> int:
        return int(value.data)


@dataclass(frozen=True, slots=True)
class _Attempt:
    limits: Mapping[str, tuple[int, int]]
    name: str = "integers"
    share: float = 1.0

    def world(self) -> IntegerWorld:
        return IntegerWorld(self.name, limits=self.limits)


class IntegerTheory:
    """The theory of a dialect of ranged integers; `limits` are its dtypes."""

    limits: ClassVar[Mapping[str, tuple[int, int]]] = {}

    def attempts(self, ops: frozenset[str], dtypes: Sequence[str], numeric_guards: bool, reals: bool) -> list[Any]:
        return [_Attempt(self.limits)]


__all__ = ["FALSE", "TRUE", "IntegerTheory", "IntegerWorld"]
