"""Values at which the premises of a rule hold: then nobody need be asked whether they can hold.

A few plain values are tried, and those that the solver found for other alternatives and dtypes of the same rule. Everything that
the premises leave open is given a value, and functions are the same everywhere, so that what makes them true is a model of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from morok.prove import smt
from morok.prove.encoding.obligation import Obligation
from morok.prove.semantics.term import is_true
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.smt.term_graphs import unknowns
from morok.prove.symbol import Symbol

# (number, flag): what every number and every condition of a rule is tried at
PLAIN: Final = ((0, True), (1, True), (2, False), (7, True), (0, False), (1, False))
MOST: Final = 3  # how many models are remembered

# Of unknowns, by their names, and by these without their last numbers: of the third operand there may be no more known than of
# the second
Values = Mapping[str, int]
_NUMBER: Final = re.compile(r"#[0-9]+(?=[^#]*$)")


class Witnesses:
    """The values found to satisfy one rule so far."""

    def __init__(self) -> None:
        self.earlier: list[Values] = []

    def learn(self, premises: Sequence[Expr], model: Any) -> None:
        """Remember a model of premises, for others like them: at another dtype, of more lanes."""
        found: dict[str, int] = {}
        for at in unknowns(premises)[0]:
            if (value := _read(model.value(at))) is not None:
                name = at.data
                found[name] = value
                found.setdefault(_stem(name), value)
        self.earlier = [found, *self.earlier][:MOST]

    def exists(self, o: Obligation, premises: Sequence[Expr]) -> bool:
        """True if these premises hold at values that are tried."""
        constants, functions = unknowns(premises)
        tried = _Tried(o, constants)
        for chosen, number, flag in tried.choices(self.earlier):
            there = smt.Substitution(chosen)
            conditions = premises
            if functions:
                bodies = [(f, body) for f in functions if (body := _value(f.range, number, flag)) is not None]
                conditions = [smt.substitute_functions(p, bodies) for p in premises]
            if all(is_true(there(p)) for p in conditions):
                return True
        return False


class _Tried:
    """The unknowns of some premises, and values for them."""

    def __init__(self, o: Obligation, constants: Sequence[Expr]) -> None:
        self.defined = {id(t.defined) for _, _, t in o.variables}
        self.unlikely = {id(t.invalid) for _, _, t in o.variables}
        self.unlikely |= {id(i) for _, _, n in o.facts for i in (n.minus_infinity, n.plus_infinity)}
        self.constants = [(at, id(at), at.sort) for at in constants]

    def choices(self, earlier: Sequence[Values]) -> Iterator[tuple[list[tuple[Expr, Expr]], int, bool]]:
        """Values for all of them, with the number and the flag that stand for anything else."""
        for found in earlier:
            yield list(self.chosen(*PLAIN[0], found)), *PLAIN[0]
        for number, flag in PLAIN:
            yield list(self.chosen(number, flag, {})), number, flag

    def chosen(self, number: int, flag: bool, found: Values) -> Iterator[tuple[Expr, Expr]]:
        for at, name, sort in self.constants:
            said: int | None = None
            if found:
                called = at.data
                said = found.get(called, found.get(_stem(called)))
            likely = name in self.defined or (flag and name not in self.unlikely)
            value = _value(sort, number, likely) if said is None else _value(sort, said, bool(said))
            if value is not None:
                yield at, value


def _stem(name: str) -> str:
    return _NUMBER.sub("", name)


def _read(value: Expr) -> int | None:
    """The integer of a numeral; None of floats, and of other terms."""
    if value.head != "value" or value.sort.kind in ("Float", "Real"):
        return None
    return smt.signed(value.data, value.sort.width) if value.sort.width else int(value.data)


def _value(sort: smt.Sort, number: int, flag: bool) -> Expr | None:
    """A value of this sort; None of those that have no plain ones."""
    match sort.kind:
        case "Bool":
            return TRUE if flag else FALSE
        case "Int":
            return smt.IntVal(number)
        case "BitVec":
            return smt.BitVecVal(number, sort)
        case "Float":
            return smt.FPVal(float(number), sort)
        case "Uninterpreted":
            return smt.Const(Symbol("fixed", "any"), sort)
    return None
