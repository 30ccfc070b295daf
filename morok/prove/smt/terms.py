"""Terms of SMT-LIB: nodes of a graph, each made once, so that the same term is the same object.

A table keeps every node from one `forget` to the next; within that time `is` and `number` tell terms apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from morok.prove.smt.sorts import BOOL, INT, Sort

Mode = str  # of rounding: RNE, RTZ, RTP, RTN
Value = bool | int | Fraction


class SortError(TypeError):
    """Operands of sorts that a function does not take."""


class Applicable:
    """An uninterpreted function, to be applied."""

    __slots__ = ("domain", "name", "range")

    def __init__(self, name: str, domain: tuple[Sort, ...], range: Sort) -> None:
        self.name = name
        self.domain = domain
        self.range = range

    def __call__(self, *arguments: Any) -> Expr:
        operands = tuple([coerced(of, a) for of, a in zip(self.domain, arguments, strict=True)])
        return make("apply", operands, self.range, self)


class Expr:
    """A term.

    head      the function, as SMT-LIB spells it; "value" of a numeral, "const" of an unknown, "apply" of a `Applicable`
    args      the operands
    sort      of the result
    data      of a numeral its value (of bit vectors and floats the bits, as a number), of an unknown its name; the function
              that is applied; of functions with indices or a rounding mode, these
    number    of terms in the order in which they were made
    """

    __slots__ = ("args", "data", "head", "number", "sort")

    def __init__(self, head: str, args: tuple[Expr, ...], sort: Sort, data: Any) -> None:
        self.head = head
        self.args = args
        self.sort = sort
        self.data = data
        self.number: int = next(_numbers)

    @property
    def value(self) -> Any:
        """The value of a numeral: bool, int, Fraction, or the bits of a bit vector or float; None of other terms."""
        return self.data if self.head == "value" else None

    def __repr__(self) -> str:
        if not self.args:
            return str(self.data)
        return f"({self.data.name if self.head == 'apply' else self.head} {' '.join(map(repr, self.args))})"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        """The truth of a numeral; of an equation, True if both sides are the same term, so that terms may be looked up."""
        if self.head in ("=", "distinct"):
            return (self.args[0] is self.args[1]) == (self.head == "=")
        if self.sort is BOOL and self.head == "value":
            return bool(self.data)
        raise TypeError("a term is no truth: it may hold or not; `is TRUE` tells whether it is the constant")

    # equations and operators make terms

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return make("=", (self, coerced(self.sort, other)), BOOL)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return make("distinct", (self, coerced(self.sort, other)), BOOL)

    def __neg__(self) -> Expr:
        return make(_spelled("neg", self.sort), (self,), self.sort)

    def __invert__(self) -> Expr:
        return make(_spelled("invert", self.sort), (self,), self.sort)

    def __add__(self, other: Any) -> Expr:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _binary("div", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _binary("mod", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _binary("mod", other, self)

    def __and__(self, other: Any) -> Expr:
        return _binary("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _binary("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return _binary("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _binary("or", other, self)

    def __xor__(self, other: Any) -> Expr:
        return _binary("xor", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return _binary("xor", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return _binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Expr:
        return _binary("shl", other, self)

    def __rshift__(self, other: Any) -> Expr:
        return _binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Expr:
        return _binary("shr", other, self)

    def __lt__(self, other: Any) -> Expr:
        return _binary("lt", self, other, BOOL)

    def __le__(self, other: Any) -> Expr:
        return _binary("le", self, other, BOOL)

    def __gt__(self, other: Any) -> Expr:
        return _binary("gt", self, other, BOOL)

    def __ge__(self, other: Any) -> Expr:
        return _binary("ge", self, other, BOOL)


# Python's operators, as SMT-LIB spells them at each kind of sort; on bit vectors those that have a sign are signed.
_NUMBERS: Final = {"neg": "-", "add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPERATORS: Final[dict[str, dict[str, str]]] = {
    "Int": {**_NUMBERS, "div": "div", "mod": "mod"},
    "Real": {**_NUMBERS, "div": "/"},
    "BitVec": {
        "neg": "bvneg", "invert": "bvnot", "add": "bvadd", "sub": "bvsub", "mul": "bvmul", "div": "bvsdiv", "mod": "bvsmod",
        "and": "bvand", "or": "bvor", "xor": "bvxor", "shl": "bvshl", "shr": "bvashr",
        "lt": "bvslt", "le": "bvsle", "gt": "bvsgt", "ge": "bvsge",
    },
}  # fmt: skip

_numbers = itertools.count()
_made: Final[dict[tuple[Any, ...], Expr]] = {}
_forgotten: Final[list[Callable[[], None]]] = []
_translators: Final[list[Callable[[Any], Expr | None]]] = []


def _spelled(operator: str, sort: Sort) -> str:
    found = _OPERATORS.get(sort.kind, {}).get(operator)
    if found is None:
        raise SortError(f"{sort} has no operator {operator}")
    return found


def _binary(operator: str, a: Any, b: Any, result: Sort | None = None) -> Expr:
    sort: Sort = a.sort if isinstance(a, Expr) else b.sort
    head = _spelled(operator, sort)
    return make(head, (coerced(sort, a), coerced(sort, b)), result or sort)


def make(head: str, args: tuple[Expr, ...], sort: Sort, data: Any = None) -> Expr:
    """The term of these parts, which nobody checks: the same object each time."""
    key = (head, data, id(sort), *map(id, args))
    found = _made.get(key)
    if found is None:
        found = _made[key] = Expr(head, args, sort, data)
    return found


def numeral(sort: Sort, value: Value) -> Expr:
    """The numeral of a value; bit vectors and floats are given by their bits, and taken modulo 2^width."""
    return make("value", (), sort, value % (1 << sort.width) if sort.width else value)


TRUE: Final = numeral(BOOL, True)
FALSE: Final = numeral(BOOL, False)


def coerced(sort: Sort, value: Any) -> Expr:
    """A value as a term of a sort: a term of it, a Python number or truth. SortError for anything else."""
    if isinstance(value, Expr):
        if value.sort is sort:
            return value
        raise SortError(f"a term of {sort}, not {value} of {value.sort}")
    if isinstance(value, bool) and sort is BOOL:
        return TRUE if value else FALSE
    if isinstance(value, int) and not isinstance(value, bool):
        if sort is INT or sort.kind == "BitVec":
            return numeral(sort, value)
        if sort.kind == "Real":
            return numeral(sort, Fraction(value))
    if isinstance(value, Fraction) and sort.kind == "Real":
        return numeral(sort, value)
    if (translated := _translated(value)) is not None:
        return coerced(sort, translated)
    raise SortError(f"a term of {sort}, not {value!r}")


def translating(translate: Callable[[Any], Expr | None]) -> None:
    """Have what is no term translated where one is wanted: `translate` gives None of what it does not know."""
    if translate not in _translators:
        _translators.append(translate)


def _translated(value: Any) -> Expr | None:
    return next((found for translate in _translators if (found := translate(value)) is not None), None)


def term(value: Any) -> Expr:
    """A term, a truth, an integer, or an expression of the solver's library, as a term."""
    if isinstance(value, Expr):
        return value
    if (translated := _translated(value)) is not None:
        return translated
    return coerced(BOOL if isinstance(value, bool) else INT, value)


def at_forgetting(clear: Callable[[], None]) -> None:
    """Have something that knows terms by identity emptied when they are forgotten."""
    _forgotten.append(clear)


def forget() -> None:
    """Keep the terms made so far no longer than others do."""
    _made.clear()
    for truth in (TRUE, FALSE):
        _made["value", truth.data, id(BOOL)] = truth
    for clear in _forgotten:
        clear()
