"""Python functions on symbolic integers, run once for every way that their comparisons can go.

A transfer function of the bounds is ordinary Python on two numbers an operand. Here the numbers are unknowns of the solver: each
comparison whose outcome the facts so far leave open is a fork, and what comes out is a list of paths, each with the conditions
under which it is taken. So the function that the compiler calls is itself what is proved (King 1976, symbolic execution).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from morok.prove import smt
from morok.prove.nonlinear_lemmas import Product, Quotient
from morok.prove.smt import Expr
from morok.prove.solve import Asserted
from morok.prove.symbol import Symbol as Unknown

MOST_PATHS: Final = 20_000
# solver units to decide whether a fork can go both ways; beyond, it is taken to go both ways
FEASIBILITY: Final = 200_000


@dataclass(slots=True)
class Explorer:
    """The paths of one function.

    width      0: unknowns are mathematical integers; else signed bit vectors of this many bits, too wide for anything to wrap
    premises   what holds of the unknowns
    facts      of the present path: the conditions taken, and what the lemmas (nonlinear_lemmas.py) say of products and quotients
    exact      the definitions of those products and quotients: multiplication of unknowns, which solvers find hard
    solver     knows the premises and the first `told` facts of the path
    """

    width: int
    premises: Sequence[Expr]
    facts: list[Expr] = field(default_factory=list)
    exact: list[Expr] = field(default_factory=list)
    products: dict[tuple[int, int], Product] = field(default_factory=dict)
    quotients: dict[tuple[int, int], Quotient] = field(default_factory=dict)
    named: int = 0
    solver: Asserted | None = None
    told: int = 0
    trail: list[bool] = field(default_factory=list)
    open: list[list[bool]] = field(default_factory=list)
    at: int = 0

    def number(self, v: Any) -> Expr:
        if isinstance(v, Symbol):
            return v.value
        return smt.BitVecVal(int(v), self.width) if self.width else smt.IntVal(int(v))

    def _fresh(self, stem: str) -> Expr:
        self.named += 1
        return smt.Int(Unknown("fresh", stem, self.named))

    def product(self, x: Expr, y: Expr) -> Expr:
        """x * y; where neither is a numeral, a name for it, of which the lemmas hold."""
        if self.width or x.head == "value" or y.head == "value":
            return x * y
        key = (min(x.number, y.number), max(x.number, y.number))
        if key not in self.products:
            new = Product(x, y, self._fresh("product"))
            self.exact.append(new.definition)
            self.facts += [new.sign, *(new.beside(old) for old in self.products.values())]
            self.products[key] = new
        return self.products[key].value

    def quotient(self, a: Expr, b: Expr) -> Expr:
        """a / b rounded down, b > 0."""
        key = (a.number, b.number)
        if key not in self.quotients:
            new = Quotient(a, b, self._fresh("quotient"))
            self.quotient_is(new)
        return self.quotients[key].value

    def quotient_is(self, new: Quotient) -> None:
        """A quotient that has a name already."""
        (self.facts if new.divisor.head == "value" else self.exact).append(new.definition)
        self.facts += [new.size, *(f for old in self.quotients.values() for f in (new.beside(old), old.beside(new)))]
        self.quotients[new.dividend.number, new.divisor.number] = new

    def decide(self, condition: Expr) -> bool:
        """The way that this path goes here."""
        plain = smt.simplify(condition)
        if plain.head == "value":
            return bool(plain.data)
        if self.at < len(self.trail):
            taken = self.trail[self.at]
        else:
            taken = self._possible(condition)
            if taken and self._possible(smt.Not(condition)):
                self.open.append([*self.trail, False])
            self.trail.append(taken)
        self.at += 1
        self.facts.append(condition if taken else smt.Not(condition))
        return taken

    def _possible(self, condition: Expr) -> bool:
        if self.solver is None:
            self.solver = Asserted(FEASIBILITY)
            self.solver.add(self.premises)
        self.solver.add(self.facts[self.told :])
        self.told = len(self.facts)
        return self.solver.possible(condition)

    def paths(self, function: Callable[[], Any]) -> Iterator[Any]:
        """The result on each path; `facts` and `exact` are the path's until the next is asked for."""
        self.open = [[]]
        found = 0
        while self.open:
            self.trail, self.at = self.open.pop(), 0
            self.facts, self.exact, self.products, self.quotients, self.named = [], [], {}, {}, 0
            self.solver, self.told = None, 0
            found += 1
            assert found <= MOST_PATHS, "a transfer function with too many paths"
            yield function()


class Symbol:
    """An unknown integer, in the place of an `int`: it says that it is one. Comparing it decides the path."""

    __slots__ = ("explorer", "value")

    @property
    def __class__(self) -> type:
        return int

    @__class__.setter
    def __class__(self, other: type) -> None:
        raise TypeError("an unknown integer stays one")

    def __init__(self, explorer: Explorer, value: Expr) -> None:
        self.explorer = explorer
        self.value = value

    def _make(self, value: Expr) -> Symbol:
        return Symbol(self.explorer, value)

    def _of(self, other: Any) -> Expr:
        return self.explorer.number(other)

    def __add__(self, other: Any) -> Symbol:
        return self._make(self.value + self._of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self._make(self.value - self._of(other))

    def __rsub__(self, other: Any) -> Symbol:
        return self._make(self._of(other) - self.value)

    def __mul__(self, other: Any) -> Symbol:
        return self._make(self.explorer.product(self.value, self._of(other)))

    __rmul__ = __mul__

    def __neg__(self) -> Symbol:
        return self._make(-self.value)

    def __abs__(self) -> Symbol:
        return self if self >= 0 else -self

    def __floordiv__(self, other: Any) -> Symbol:
        """Python's division: rounded down."""
        a, b = self.value, self._of(other)
        if not self.explorer.decide(b > 0):
            a, b = -a, -b
        return self._make(self.explorer.quotient(a, b))

    def __rfloordiv__(self, other: Any) -> Symbol:
        return self._make(self._of(other)) // self

    def __and__(self, other: Any) -> Symbol:
        return self._make(self.value & self._of(other))

    __rand__ = __and__

    def __or__(self, other: Any) -> Symbol:
        return self._make(self.value | self._of(other))

    __ror__ = __or__

    def __xor__(self, other: Any) -> Symbol:
        return self._make(self.value ^ self._of(other))

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Symbol:
        return self._make(self.value << self._of(other))

    def __rlshift__(self, other: Any) -> Symbol:
        return self._make(self._of(other) << self.value)

    def __rshift__(self, other: Any) -> Symbol:
        return self._make(self.value >> self._of(other))

    def bit_length(self) -> Symbol:
        """The number of binary digits of the magnitude of a bit vector."""
        magnitude = smt.If(self.value < 0, -self.value, self.value)
        length = self._of(0)
        for i in range(self.explorer.width):
            length = smt.If(smt.Extract(i, i, magnitude) == 1, self._of(i + 1), length)
        return self._make(length)

    def __lt__(self, other: Any) -> bool:
        return other > 0 if isinstance(other, float) else self.explorer.decide(self.value < self._of(other))

    def __le__(self, other: Any) -> bool:
        return other > 0 if isinstance(other, float) else self.explorer.decide(self.value <= self._of(other))

    def __gt__(self, other: Any) -> bool:
        return other < 0 if isinstance(other, float) else self.explorer.decide(self.value > self._of(other))

    def __ge__(self, other: Any) -> bool:
        return other < 0 if isinstance(other, float) else self.explorer.decide(self.value >= self._of(other))

    def __eq__(self, other: object) -> bool:
        return not isinstance(other, float) and self.explorer.decide(self.value == self._of(other))

    def __ne__(self, other: object) -> bool:
        return not self == other
