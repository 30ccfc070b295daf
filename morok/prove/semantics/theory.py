"""The solver theory of Morok's own dialect: its dtypes as sorts, and which encodings to try for a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from morok.ir.dtype import BY_NAME, DType, safe_cast
from morok.ir.number import coerce
from morok.prove import smt
from morok.prove.semantics.bits import Bits
from morok.prove.semantics.floats import E4M3, Floats, Reals
from morok.prove.semantics.integers import Integers
from morok.prove.semantics.numbers import Arithmetic, Num, WholeNumbers, WideBits
from morok.prove.semantics.ops import float_of_number
from morok.prove.semantics.term import Term, Unsupported, World, both, choose, either, is_false, is_true, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Symbol

DIVISIONS = frozenset({"Idiv", "Mod", "FloorDiv", "FloorMod"})
BITWISE = frozenset({"And", "Or", "Xor", "Not", "Shl", "Shr", "Threefry", "Bitcast"})


@dataclass(slots=True)
class MorokWorld(World):
    """One encoding of Morok's dtypes.

    integers     whether fixed-width integers are mathematical integers here (else bit vectors)
    builtin      division by the solver's operators instead of axioms
    reals        floats as real numbers (`assuming reassoc`)
    """

    integers: bool = False
    builtin: bool = False
    reals: bool = False
    numbers: Arithmetic = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = Arithmetic(self, WholeNumbers(self, self.builtin) if self.integers else WideBits(self))

    def dtype(self, name: str) -> DType:
        found = BY_NAME.get(name)
        if found is None:
            raise Unsupported(f"values of {name} dtype")
        return found

    def arithmetic(self, d: DType) -> Any:
        if d.is_float:
            return (
                Reals(self, d.name)
                if self.reals
                else E4M3(self, d.name)
                if d.name == "f8e4m3"
                else Floats(self, d.name)
            )
        if d.is_index:
            if not self.integers:
                raise Unsupported("index as bit vectors")
            return Integers(self, 0, True, self.builtin)
        if not d.is_int:
            raise Unsupported(f"arithmetic at {d}")
        if self.integers:
            return Integers(self, d.bits, d.is_signed, self.builtin)
        return Bits(self, d.bits, d.is_signed)

    def sort(self, d: DType) -> Any:
        return smt.BoolSort() if d.is_bool else self.arithmetic(d).sort

    def variable(self, name: Symbol, dtype: str, maybe_invalid: bool = False) -> Term:
        """Any value of the dtype; Invalid among them where `maybe_invalid`."""
        d = self.dtype(dtype)
        value = smt.Bool(name) if d.is_bool else self.arithmetic(d).variable(name)
        return Term(value, TRUE, smt.Bool(Symbol("invalid", name)) if maybe_invalid and d.is_index else FALSE)

    def constant(self, dtype: str, value: Any) -> Term:
        """The constant that the IR makes of a number at `dtype`: wrapped or rounded to it, in every encoding alike."""
        d = self.dtype(dtype)
        held = coerce(d, value)
        return Term(smt.BoolVal(held) if d.is_bool else self.arithmetic(d).const(held))

    def invalid(self) -> Term:
        return Term(smt.IntVal(0), TRUE, TRUE)

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        """A condition that both have the same value; where the pattern's is any of a set, that the target's is one of them."""
        same = target.value == pattern.value if pattern.allows is None else pattern.allows(target.value)
        if self.dtype(dtype).is_index:
            return choose(either(target.invalid, pattern.invalid), both(target.invalid, pattern.invalid), same)
        return same

    def equal_but_zero_signs(self, dtype: str, target: Term, pattern: Term) -> Expr:
        d = self.dtype(dtype)
        same = self.equal(dtype, target, pattern)
        if not d.is_float:
            return same
        n = self.arithmetic(d)
        return either(same, smt.And(n.is_zero(target.value), n.is_zero(pattern.value)))

    # compile-time values

    def number_of(self, dtype: str, term: Term) -> Num:
        """The mathematical integer that an integer, index or bool constant is."""
        d = self.dtype(dtype)
        if d.is_bool:
            n = self.numbers.n
            return Num(n.choose(term.value, n.const(1), n.const(0)), bits=1)
        return Num(self.numbers.n.of(term.value, self.arithmetic(d)), bits=d.bits)

    def constant_of(self, dtype: str, number: Num) -> Term:
        """A compile-time number as a constant of `dtype`, wrapped to it."""
        d = self.dtype(dtype)
        if d.is_bool:
            return Term(negation(self.numbers.eq(number.value, self.numbers.n.const(0))))
        if d.is_float:
            v = self.numbers.n.known(number.value)
            if v is None:
                return Term(float_of_number(self, self.arithmetic(d), number.value))
            return self.constant(dtype, v)  # the integer itself: a double of it would be rounded twice
        return Term(self.numbers.n.to(number.value, self.arithmetic(d)))

    def bound(self, dtype: str, name: Symbol, term: Term, least: bool) -> tuple[Num, Expr]:
        """(the fact vmin or vmax of a node, what is known of it): any bound that holds of the node's value."""
        d = self.dtype(dtype)
        n = self.numbers
        if d.is_float:
            return n.infinity(-1 if least else 1), TRUE
        if d.is_bool:
            value = n.n.variable(name, 1)
            sound = (
                n.compare("<=", Num(value), self.number_of(dtype, term))
                if least
                else n.compare(">=", Num(value), self.number_of(dtype, term))
            )
            inside = both(n.compare("<=", n.const(0), Num(value))[1], n.compare("<=", Num(value), n.const(1))[1])
            return Num(value), both(inside, either(negation(term.defined), sound[1]))
        bits = d.bits
        value = n.n.variable(name, bits)
        infinite = FALSE if bits else smt.Bool(Symbol("infinite", name))
        # no value is within the bounds of Invalid: its least is plus infinity, its greatest minus infinity
        beyond = (
            FALSE
            if bits or is_false(term.invalid)
            else both(term.invalid, smt.Bool(Symbol("infinite", name, "on the other side")))
        )
        within = both(infinite, negation(beyond))
        number = Num(value, TRUE, within if least else beyond, beyond if least else within)
        has_value = both(term.defined, negation(term.invalid))
        order = n.compare("<=" if least else ">=", number, self.number_of(dtype, term))[1]
        facts = [either(negation(has_value), order)]
        if bits:  # a bound of a fixed-width node is a value of its dtype
            facts.append(n.compare("<=", n.const(int(d.min)), number)[1])
            facts.append(n.compare("<=", number, n.const(int(d.max)))[1])
        return number, both(*facts)

    def fits(self, dtype: str, number: Num) -> Expr:
        d = self.dtype(dtype)
        if not d.is_int:
            return TRUE
        n = self.numbers
        return both(n.compare("<=", n.const(int(d.min)), number)[1], n.compare("<=", number, n.const(int(d.max)))[1])

    def bits(self, dtype: str) -> int:
        return self.dtype(dtype).bits

    def is_float(self, dtype: str) -> bool:
        return self.dtype(dtype).is_float

    def is_int(self, dtype: str) -> bool:
        return self.dtype(dtype).is_int

    def is_index(self, dtype: str) -> bool:
        return self.dtype(dtype).is_index

    def safe_cast(self, a: str, b: str) -> bool:
        return safe_cast(self.dtype(a), self.dtype(b))

    def read(self, dtype: str, value: Expr) -> Any:
        """The Python value of a numeral of the model."""
        d = self.dtype(dtype)
        return is_true(value) if d.is_bool else self.arithmetic(d).read(value)

    def read_number(self, value: Expr) -> int:
        return self.numbers.n.read(value)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An encoding to try, with the share of the budget that it gets."""

    name: str
    share: float
    integers: bool = False
    builtin: bool = False
    witnesses: bool = False
    one_division: bool = False
    reals: bool = False
    shifts: bool = False

    def world(self) -> MorokWorld:
        return MorokWorld(
            self.name,
            witnesses=self.witnesses,
            one_division=self.one_division,
            integers=self.integers,
            builtin=self.builtin,
            reals=self.reals,
            shifts=self.shifts,
        )


STRUCTURAL = frozenset({"Gep", "Vectorize", "Cat", "Index", "Load", "Store", "Reduce"})


def _divisions(stem: str, share: float, reals: bool, structural: bool) -> list[Attempt]:
    """Integers, with divisions said in each way: which one the solver sees through differs from rule to rule."""
    found = [
        Attempt(stem, share, integers=True, witnesses=True, reals=reals),
        Attempt(f"{stem}, division built in", share, integers=True, builtin=True, reals=reals),
        Attempt(f"{stem}, quotients as functions", share, integers=True, reals=reals),
        Attempt(f"{stem}, one division", share, integers=True, witnesses=True, one_division=True, reals=reals),
    ]
    return [found[2], *found[:2], found[3]] if structural else found  # where the same quotient is only moved about


class MorokTheory:
    """The encodings that suit a rule."""

    def attempts(self, ops: frozenset[str], dtypes: Sequence[str], numeric_guards: bool, reals: bool) -> list[Attempt]:
        """The encodings to try, in order, for a rule with these ops at these dtypes: each with little first, then with more.

        `numeric_guards`: whether its clauses compute with numbers; `reals`: whether it assumes `reassoc`.
        """
        index = any(BY_NAME[d].is_index for d in dtypes if d in BY_NAME)
        ints = any(BY_NAME[d].is_int for d in dtypes if d in BY_NAME)
        divides = bool(ops & DIVISIONS)
        structural = bool(ops & STRUCTURAL)
        if index:
            if not divides and not numeric_guards:
                return [Attempt("integers", 1.0, integers=True, reals=reals)]
            return [a for share in (0.1, 1.0) for a in _divisions("integers", share, reals, structural)]
        if not ints:
            return [
                Attempt("floats and bools" if not reals else "real numbers", share, reals=reals) for share in (1.0, 6.0)
            ]
        hard = divides or numeric_guards
        found: list[Attempt] = []
        lift = not ops & BITWISE - {"Shl", "Shr", "And", "Not"}
        shifts = bool(ops & {"Shl", "Shr"})
        found.append(Attempt("bit vectors", 0.02 if (hard and lift) or shifts else 0.5, reals=reals))
        if shifts:
            found.append(Attempt("bit vectors, each amount", 0.1, reals=reals, shifts=True))
        if lift:
            found += [a for share in (0.1, 1.0) for a in _divisions("lifted integers", share, reals, structural)]
        found.append(Attempt("bit vectors", 4.0, reals=reals))
        return found
