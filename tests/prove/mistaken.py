"""A sound foreign dialect with a part for each thing that dialects get wrong, so that tests can replace one at a time."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from morok.dialect import NOT_CONST, OperandInfo, OpInfo, register
from morok.prove import smt
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.plain import IntegerTheory, IntegerWorld
from morok.prove.semantics.term import Term as Meaning
from morok.prove.semantics.term import comparison, strict
from morok.prove.symbol import Symbol

LOW, HIGH = -100, 100
Term = tuple[Any, ...]
_numbers = itertools.count()


def clip(v: int) -> int:
    return max(LOW, min(HIGH, v))


class Theory(IntegerTheory):
    limits = {"sat": (LOW, HIGH)}


def _clipped(value: Any, *operands: Any) -> Any:
    return strict(z3.If(value > HIGH, HIGH, z3.If(value < LOW, LOW, value)), *operands)


def solve_add(w: Any, d: Any, a: Any, b: Any) -> Any:
    return _clipped(a.value + b.value, a, b)


def solve_sub(w: Any, d: Any, a: Any, b: Any) -> Any:
    return _clipped(a.value - b.value, a, b)


def solve_neg(w: Any, d: Any, a: Any) -> Any:
    return strict(-a.value, a)


def solve_max(w: Any, d: Any, a: Any, b: Any) -> Any:
    return strict(z3.If(a.value > b.value, a.value, b.value), a, b)


def solve_lt(w: Any, d: Any, a: Any, b: Any) -> Any:
    return comparison(a.value < b.value, a, b)


def solve_xor(w: Any, d: Any, a: Any, b: Any) -> Any:
    return strict(a.value != b.value, a, b)


def solve_idiv(w: Any, d: Any, a: Any, b: Any) -> Any:
    """Toward minus infinity."""
    quotient = z3.If(b.value > 0, a.value / b.value, (-a.value) / (-b.value))
    return strict(z3.If(quotient > HIGH, HIGH, quotient), a, b, when=b.value != 0)


def one_more(w: Any, d: Any, a: Any, b: Any) -> Any:
    return _clipped(a.value + b.value + 1, a, b)


def solve_conv(w: Any, d: Any, a: Any, source: Any) -> Any:
    return strict(a.value, a)


def depth(e: Any) -> int:
    return 1 + max((depth(a) for a in smt.term(e).args), default=0)


def less_where_deep(w: Any, d: Any, a: Any, b: Any) -> Any:
    """A sum, and a difference of what is a long term: what is written so, and not what has some value."""
    value = a.value - b.value if depth(a.value) > 6 else a.value + b.value
    return strict(smt.If(value > HIGH, HIGH, smt.If(value < LOW, LOW, value)), a, b)


def half_in_terms(w: Any, d: Any, a: Any) -> Any:
    """An unknown of which the double is the operand, or one less."""
    half = w.fresh("half", smt.IntSort())
    w.assume(2 * half <= a.value, a.value < 2 * half + 2)
    return strict(half, a)


def one_unknown(w: Any, d: Any, a: Any) -> Any:
    """One unknown for whatever operand."""
    w.exact = False
    v = smt.Int(Symbol("variable", "hash"))
    w.assume(v >= LOW, v <= HIGH)
    return strict(v, a)


def unknown_of_each(w: Any, d: Any, a: Any) -> Any:
    """An unknown function of the operand."""
    return strict(w.opaque("hash", smt.IntSort(), smt.term(a.value)), a)


class Many(IntegerTheory):
    limits = {f"d{i}": (LOW, HIGH) for i in range(14)}


class Narrow(IntegerTheory):
    limits = {"sat": (-10, 10)}


class Zero(IntegerTheory):
    """A theory of one value, which sums, differences and negations of it never leave."""

    limits = {"sat": (0, 0)}


def _theory(attempts: Callable[..., list[Any]]) -> type[IntegerTheory]:
    return type("Changed", (Theory,), {"attempts": lambda self, ops, dtypes, numeric, reals: attempts(ops, numeric)})


@dataclass(frozen=True)
class Encoding:
    """An encoding in a world of this class."""

    world_class: type[IntegerWorld]
    limits: tuple[int, int] = (LOW, HIGH)
    name: str = "integers"
    share: float = 1.0

    def world(self) -> IntegerWorld:
        return self.world_class(self.name, limits={"sat": self.limits})


class EqualWorld(IntegerWorld):
    def equal(self, dtype: str, target: Any, pattern: Any) -> Any:
        return smt.TRUE


class OffWorld(IntegerWorld):
    def number_of(self, dtype: str, term: Meaning) -> Num:
        n = IntegerWorld.number_of(self, dtype, term)
        return n if dtype == "bool" else Num(n.value + 1)


class TurnedWorld(IntegerWorld):
    def bound(self, dtype: str, name: Any, term: Meaning, least: bool) -> tuple[Num, Any]:
        return IntegerWorld.bound(self, dtype, name, term, not least)


def _unknown(*terms: Meaning) -> bool:
    return any(smt.simplify(smt.term(t.value)).head != "value" for t in terms)


class EqualIfUnknown(IntegerWorld):
    """A world that takes all that is no number for equal."""

    def equal(self, dtype: str, target: Any, pattern: Any) -> Any:
        return smt.TRUE if _unknown(target, pattern) else IntegerWorld.equal(self, dtype, target, pattern)


class EqualIfDeep(IntegerWorld):
    """A world that takes for equal what is a long term."""

    def equal(self, dtype: str, target: Any, pattern: Any) -> Any:
        return smt.TRUE if depth(target.value) > 6 else IntegerWorld.equal(self, dtype, target, pattern)


class WrappedIfDeep(EqualIfDeep):
    """The same world, whose method says that it is the one of the prover that it wraps."""

    @functools.wraps(IntegerWorld.equal)
    def equal(self, dtype: str, target: Any, pattern: Any) -> Any:
        return super().equal(dtype, target, pattern)


class EqualOfResults(IntegerWorld):
    """The same of what ops give alone."""

    def equal(self, dtype: str, target: Any, pattern: Any) -> Any:
        results = {"+", "-", "neg", "ite", "*"}
        found = smt.term(target.value).head in results or smt.term(pattern.value).head in results
        return smt.TRUE if found else IntegerWorld.equal(self, dtype, target, pattern)


class UnequalIfUnknown(IntegerWorld):
    """A world that takes no unknowns for equal, so that a premise that two are never holds."""

    def equal(self, dtype: str, target: Any, pattern: Any) -> Any:
        return smt.FALSE if _unknown(target, pattern) else IntegerWorld.equal(self, dtype, target, pattern)


class OffIfUnknown(IntegerWorld):
    def number_of(self, dtype: str, term: Meaning) -> Num:
        n = IntegerWorld.number_of(self, dtype, term)
        return Num(n.value + 1) if dtype != "bool" and _unknown(term) else n


class TurnedIfUnknown(IntegerWorld):
    def bound(self, dtype: str, name: Any, term: Meaning, least: bool) -> tuple[Num, Any]:
        return IntegerWorld.bound(self, dtype, name, term, least != _unknown(term))


Deep = _theory(lambda ops, numeric: [Encoding(EqualIfDeep)])
Wrapped = _theory(lambda ops, numeric: [Encoding(WrappedIfDeep)])
AllEqual = _theory(lambda ops, numeric: [Encoding(EqualWorld)])
OffByOne = _theory(lambda ops, numeric: [Encoding(OffWorld)])
Turned = _theory(lambda ops, numeric: [Encoding(TurnedWorld)])
TwoFaced = _theory(lambda ops, numeric: [Encoding(IntegerWorld, (0, 0) if len(ops) > 1 or numeric else (LOW, HIGH))])
Paired = _theory(lambda ops, numeric: [Encoding(IntegerWorld, (0, 0) if len(ops) == 2 else (LOW, HIGH))])


@dataclass(frozen=True)
class Made:
    """An encoding in whatever world this makes."""

    make: Callable[[], IntegerWorld]
    name: str = "integers"
    share: float = 1.0

    def world(self) -> IntegerWorld:
        return self.make()


def world_of(limits: tuple[int, int]) -> IntegerWorld:
    return IntegerWorld("integers", limits={"sat": limits})


class Slotted:
    __slots__ = ("__limits",)

    def __init__(self, limits: tuple[int, int]) -> None:
        self.__limits = limits

    def __call__(self) -> IntegerWorld:
        return world_of(self.__limits)


class Fielded:
    def __init__(self, limits: tuple[int, int]) -> None:
        self.limits = limits

    def made(self) -> IntegerWorld:
        return world_of(self.limits)


def of_two_codes(limits: tuple[int, int]) -> Callable[[], IntegerWorld]:
    if limits == (0, 0):
        return lambda: world_of((0, 0))
    return lambda: world_of((LOW, HIGH))


# Ways in which an encoding holds what its worlds are made of.
HELD: dict[str, Callable[[tuple[int, int]], Callable[[], IntegerWorld]]] = {
    "closure": lambda limits: lambda: world_of(limits),
    "code": of_two_codes,
    "default": lambda limits: lambda held=limits: world_of(held),
    "partial": lambda limits: functools.partial(world_of, limits),
    "slots": Slotted,
    "method": lambda limits: Fielded(limits).made,
    "list": lambda limits: lambda held=[{"limits": limits}]: world_of(held[0]["limits"]),
}


def __getattr__(name: str) -> Any:
    """The theories `Pairs_HELD`, of whose encodings those for rules of two ops know 0 alone, and `Same_HELD`, all alike."""
    kind, _, held = name.partition("_")
    if held not in HELD:
        raise AttributeError(name)
    return _theory(
        lambda ops, numeric: [Made(HELD[held]((0, 0) if kind == "Pairs" and len(ops) == 2 else (LOW, HIGH)))]
    )


def seen_less(w: Any, d: Any, a: Any, b: Any) -> Any:
    """True of numbers alone, as Python takes them."""
    return comparison(smt.BoolVal(smt.simplify(smt.term(a.value < b.value)) is smt.TRUE), a, b)


def seen_equal(w: Any, d: Any, a: Any, b: Any) -> Any:
    """As if all that is no number were one unknown."""
    if smt.simplify(smt.term(a.value)).head != "value" and smt.simplify(smt.term(b.value)).head != "value":
        return strict(smt.IntVal(0), a, b)
    return solve_sub(w, d, a, b)


def no_term(w: Any, d: Any, a: Any, b: Any) -> Any:
    return a.value + b.value


def raising(w: Any, d: Any, a: Any, b: Any) -> Any:
    raise KeyError("sat")


def too_few(w: Any, d: Any, a: Any) -> Any:
    return a


def of_no_sort(w: Any, d: Any, a: Any, b: Any) -> Any:
    return Meaning(a.value < b.value)


def op(name: str, arity: int, evaluate: Callable[..., Any] | None, **more: Any) -> OpInfo:
    given: dict[str, Any] = {
        "name": name,
        "key": name.lower(),
        "operands": tuple(OperandInfo(n) for n in "xyz"[:arity]),
        "params": ("T",) * arity,
        "result": "T",
        "domains": {"T": ("sat",)},
        "kind": {1: "unary", 2: "binary", 3: "ternary"}[arity],
        "commutative": name in ("Add", "Max"),
        "evaluate": evaluate,
        "solver": f"{__name__}:solve_{name.lower()}",
    }
    return OpInfo(**{**given, **more})


def ops() -> dict[str, OpInfo]:
    return {
        "Add": op("Add", 2, lambda d, a, b: clip(a + b)),
        "Sub": op("Sub", 2, lambda d, a, b: clip(a - b)),
        "Max": op("Max", 2, lambda d, a, b: max(a, b)),
        "Neg": op("Neg", 1, lambda d, a: -a),
        "Lt": op("Lt", 2, lambda d, a, b: a < b, result="bool", comparison=True),
        "Idiv": op("Idiv", 2, lambda d, a, b: clip(a // b)),
    }


KEYS = {"add": 2, "sub": 2, "max": 2, "neg": 1, "lt": 2, "idiv": 2, "xor": 2}


class Saturating:
    """Nodes are (op, operand..), ("const", dtype, value) or ("var", dtype, name)."""

    theory = f"{__name__}:Theory"

    def __init__(self) -> None:
        self.name = "mistaken"
        self.ops: Mapping[str, OpInfo] = ops()
        self.dtypes: Mapping[str, Hashable] = {"sat": "sat", "bool": "bool"}
        some = frozenset({"sat"})
        self.classes: Mapping[str, frozenset[str]] = {"any": frozenset({"sat", "bool"}), "int": some, "number": some}
        self.inline: Mapping[str, str] = {}
        self.facts: Mapping[str, Callable[..., Any]] = {"vmin": lambda n: LOW, "vmax": lambda n: HIGH}

    def opkey(self, node: Term) -> Hashable:
        return node[0]

    def operands(self, node: Term) -> Sequence[Term]:
        return node[1:] if node[0] in KEYS else ()

    def attr(self, node: Term, name: str) -> Any:
        raise AttributeError(name)

    def type(self, node: Term) -> Hashable:
        return node[1] if node[0] in ("const", "var") else "bool" if node[0] in ("lt", "xor") else "sat"

    def same(self, a: Term, b: Term) -> bool:
        return a == b

    def const_value(self, node: Term) -> Any:
        return node[2] if node[0] == "const" else NOT_CONST

    def const(self, dtype: Hashable, value: Any) -> Term:
        return ("const", dtype, bool(value) if dtype == "bool" else clip(int(value)))

    def build(self, op: str, operands: Sequence[Term], attrs: Mapping[str, Any], dtype: Hashable | None) -> Term:
        return (op.lower(), *operands)

    def rebuild(self, node: Term, operands: Sequence[Term]) -> Term:
        return (node[0], *operands)


def dialect(**methods: Callable[..., Any]) -> Saturating:
    """A new dialect with some methods replaced, registered."""
    kind = types.new_class("Changed", (Saturating,), exec_body=lambda scope: scope.update(methods))
    made: Saturating = kind()
    made.name = (
        f"mistaken{next(_numbers)}"  # here, since what the class itself refers to is part of the dialect's digest
    )
    register(made)
    return made


def of_ops(*names: str) -> Saturating:
    """A sound dialect of these ops alone: each op that a dialect has is verified."""
    made = dialect()
    made.ops = {name: info for name, info in made.ops.items() if name in names}
    return made


def with_op(made: Saturating, name: str, **changes: Any) -> Saturating:
    """The dialect with a field of one op replaced."""
    old = made.ops[name]
    fields = {f: getattr(old, f) for f in old.__dataclass_fields__}
    made.ops = {**made.ops, name: OpInfo(**{**fields, **changes})}
    return made
