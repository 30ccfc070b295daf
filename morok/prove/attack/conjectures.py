"""Conjectures: two random terms that agree at ordinary values, as the two sides of a rule. What is false of them is so at special
values: zeros of either sign, infinities and NaN, the ends of dtypes, shifts beyond the width, indices that do not fit.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from morok.ir import number
from morok.ir.dtype import DType
from morok.ir.op import TABLE, Op, Undefined
from morok.prove.attack.guards import Clauses
from morok.prove.attack.random_terms import FLOATS, TYPINGS, Printer, Term, Terms, Typing, dtype, walk

POOL: Final = 90  # terms among which two are looked for
POOLS: Final = 4  # of which one is taken that has two
TRIED: Final = 20  # pairs that are compared at special values
ORDINARY: Final = 8  # choices of values at which both are computed
SPECIAL: Final = 14
SINGLE: Final = (
    "f16", "f16", "f16", "f16", "bf16", "bf16", "f32", "f64", "i8", "i8", "u8", "u8", "i16", "u16", "i32", "index", "bool",
)  # fmt: skip
# In each of these a term mixes two dtypes: what is narrow is soon proved, and what converts is where ends are met.
PAIRS: Final = (
    *[(d, d) for d in SINGLE],
    ("index", "i8"), ("index", "u8"), ("index", "i16"), ("index", "i32"), ("i8", "index"), ("u8", "index"), ("i32", "index"),
    ("i8", "u8"), ("u8", "i16"), ("f16", "i8"), ("i8", "f16"), ("bf16", "f16"), ("bool", "f16"), ("f32", "f16"), ("bool", "i8"),
    ("i64", "index"), ("u64", "u8"), ("f64", "f32"), ("u32", "i8"),
)  # fmt: skip
SLOW: Final = frozenset({"Threefry", "Sqrt", "Pow", "MulAcc"})  # seldom proved in time
# Of these a rule says more than of others: they have special values, or an operand for which they have none.
TELLING: Final = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Fdiv",
        "Reciprocal",
        "Neg",
        "Idiv",
        "Mod",
        "FloorDiv",
        "FloorMod",
        "Shl",
        "Shr",
        "And",
        "Max",
        "Min",
    }
)
NOTHING: Final = "no value"  # of a term, where an operand is out of what its op is defined for


def conjecture(rng: random.Random) -> str:
    """A rule of two such terms, now and then under a guard; of the constants some are bound by the pattern."""
    for _ in range(POOLS):
        found = _pair(rng)
        if found is not None:
            break
    else:
        raise AssertionError("no two terms of four pools agree")
    left, right = found
    dtypes = {t.name: t.dtype for t in walk(left) if t.kind == "var"}
    printer = Printer(rng, dtypes)
    before, after = printer.pattern(left), printer.target(right)
    guard = f" {Clauses(rng, dtypes).clauses(1)}" if rng.random() < 0.1 else ""
    return f"{before}{guard} ~> {after}"


def _pair(rng: random.Random) -> tuple[Term, Term] | None:
    """Two terms that agree at ordinary values: at special ones, too, or only at most of them."""
    at, other = rng.choice(PAIRS)
    maker = _Small(rng, at, other)
    result = rng.choice((at, at, "bool"))
    depths = (1,) if rng.random() < 0.5 else (1, 2, 2, 3)
    pool = [*maker.leaves(result), *(maker.term(result, rng.choice(depths)) for _ in range(POOL))]
    ordinary = [maker.values(special=False) for _ in range(ORDINARY)]
    special = [maker.values(special=True) for _ in range(SPECIAL)]
    alike: dict[Hashable, list[Term]] = {}
    for t in dict.fromkeys(pool):
        alike.setdefault(tuple([near(value(t, env)) for env in ordinary]), []).append(t)
    groups = [g for key, g in alike.items() if len(g) > 1 and key != (NOTHING,) * ORDINARY]
    roots: dict[str, list[tuple[Term, Term]]] = {}
    for left, right in ((a, b) for group in groups for a in group for b in group if a is not b and _fits(a, b)):
        for op in {left.name, right.name if right.kind == "op" else left.name}:
            roots.setdefault(op, []).append((left, right))
    if not roots:
        return None
    pairs = roots[rng.choice(sorted(roots))]  # of rare ops as often as of others
    true: list[tuple[Term, Term]] = []
    false: dict[int, list[tuple[Term, Term]]] = {}
    for left, right in rng.sample(pairs, min(len(pairs), TRIED)):
        differ = sum(not becomes(value(left, env), value(right, env)) for env in special)
        (false.setdefault(differ, []) if differ else true).append((left, right))
    if not false or (true and rng.random() < 0.5):
        return rng.choice(true)
    return rng.choice(false[min(false) if rng.random() < 0.6 else rng.choice(sorted(false))])


def _fits(left: Term, right: Term) -> bool:
    """True if these are the sides of a rule: the pattern is no leaf, and binds what the target has."""
    here = {t.name for t in walk(left) if t.kind == "var"}
    return left.kind == "op" and bool(here) and all(t.name in here for t in walk(right) if t.kind == "var")


def near(v: Any) -> Hashable:
    """A value, the zeros being one."""
    return repr(v + 0.0) if isinstance(v, float) else (type(v).__name__, v)


def becomes(a: Any, b: Any) -> bool:
    """True if one value may stand for another: they are the same bits, or there is none that must be kept."""
    return a is NOTHING or repr(a) == repr(b)


class _Small:
    """Small terms over two variables of one dtype and one of another."""

    def __init__(self, rng: random.Random, at: str, other: str) -> None:
        self.rng = rng
        self.variables = {"x": at, "y": at} | ({"z": other} if other != at or rng.random() < 0.3 else {})
        self.dtypes = {at, other, "bool"}
        self.literals = Terms(rng)
        self.known = rng.choice((0.75, 0.6, 0.4))  # the share of variables among its leaves

    def leaves(self, result: str) -> list[Term]:
        """The results without an op that a rule may have: the variables and all special constants."""
        found = [Term("var", n, d) for n, d in self.variables.items() if d == result]
        return found + [Term("literal", text, result) for text in constants(result)]

    def literal(self, at: str) -> Term:
        rng = self.rng
        return Term("literal", rng.choice(constants(at)), at) if rng.random() < 0.8 else self.literals.literal(at)

    def term(self, at: str, depth: int) -> Term:
        """A term of which every op has an operand that is no literal."""
        rng = self.rng
        named = [n for n, d in self.variables.items() if d == at]
        if depth <= 0:
            return Term("var", rng.choice(named), at) if named and rng.random() < self.known else self.literal(at)
        if at in self.dtypes and rng.random() < (0.12 if named and len(self.dtypes) < 3 else 0.4):
            sources = sorted(self.dtypes - {at})
            made = self.term(rng.choice(sources), depth - 1) if sources else None
            if made is not None and made.kind != "literal":
                return Term("op", "Cast", at, (made,))
        typing = rng.choice(self.typings(at))
        args = [self.term(d, depth - 1 - rng.randrange(2)) for d in typing.operands]
        if all(a.kind == "literal" for a in args):
            place = rng.randrange(len(args))
            args[place] = self.some(typing.operands[place], args[place])
        if args[-1].kind == "literal" and typing.operands[0] == "bool" and args[1:] and args[1].kind == "literal":
            args[1] = self.some(typing.operands[1], args[1])  # the branches of a Where, which else have no dtype
        return Term("op", typing.op, at, tuple(args))

    def some(self, at: str, otherwise: Term) -> Term:
        named = [n for n, d in self.variables.items() if d == at]
        return Term("var", self.rng.choice(named), at) if named else otherwise

    def typings(self, at: str) -> Sequence[Typing]:
        return fitting(at, frozenset(self.variables.values()))

    def values(self, special: bool) -> dict[str, Any]:
        """A value for each variable: special ones for most of them, or ordinary ones for all."""
        rng = self.rng
        found = {}
        for n, d in self.variables.items():
            here = special and rng.random() < 0.7
            found[n] = rng.choice(extremes(d) if here else ordinary_values(d))
        return found


@functools.cache
def fitting(at: str, dtypes: frozenset[str]) -> tuple[Typing, ...]:
    """The ops of a result over operands of these dtypes, or of bools."""
    found = [t for t in TYPINGS[at] if all(d in dtypes or d in ("bool", at) for d in t.operands) and t.op not in SLOW]
    compared = [t for t in found if t.operands[0] != at]
    return tuple(compared * 3 + found if at == "bool" else [*found, *[t for t in found if t.op in TELLING] * 4])


@functools.cache
def constants(at: str) -> tuple[str, ...]:
    """The literals of a dtype at which ops have ends, or laws."""
    d = dtype(at)
    if d.is_bool:
        return "true", "false"
    if d.is_float:
        return "0.0", "-0.0", "1.0", "-1.0", "2.0", "0.5", "inf", "-inf", "nan"
    bits = 8 if d.is_index else d.bits
    small = ["0", "0", "1", "1", "2", "3", str(bits - 1), str(bits)]
    if not d.is_unsigned:
        small.append("-1")
    return (*small, str(int(d.max)), str(int(d.min))) if not d.is_index else (*small, "127", "128", "255", "256")


@functools.cache
def extremes(at: str) -> tuple[Any, ...]:
    """Values at the ends of what ops are defined for."""
    d = dtype(at)
    if d.is_bool:
        return False, True
    if d.is_float:
        greatest, least = (number.from_bits(d, bits) for bits in (number.to_bits(d, float("inf")) - 1, 1))
        return 0.0, -0.0, float("inf"), float("-inf"), number.NAN, greatest, -greatest, least, 1.0, -1.0
    if d.is_index:
        return 0, -1, 127, 128, 255, 256, -128, -129, 1 << 15, 1 << 31, -(1 << 31) - 1, 1 << 40
    return 0, 1, int(d.max), int(d.max) - 1, int(d.min), *((-1,) if d.is_signed else ()), d.bits - 1, d.bits, d.bits + 1


@functools.cache
def ordinary_values(at: str) -> tuple[Any, ...]:
    d = dtype(at)
    if d.is_bool:
        return False, True
    if d.is_float:
        return 1.0, 2.0, 3.0, -3.0, 0.5, -1.5, 5.0, -2.0
    return (1, 2, 3, 5, 6, 7) if d.is_unsigned else (1, 2, 3, 5, -2, -3, 6, 7)


def value(t: Term, env: Mapping[str, Any]) -> Any:
    """The value of a term at these values of its variables; NOTHING where it is not defined."""
    if t.kind == "var":
        return env[t.name]
    if t.kind == "literal":
        return literal_value(t.name, t.dtype)
    if t.name == "Where":
        condition = value(t.args[0], env)
        return condition if condition is NOTHING else value(t.args[1 if condition else 2], env)
    given = [value(a, env) for a in t.args]
    d = dtype(t.args[0].dtype if TABLE[Op[t.name]].comparison else t.dtype)
    if d.is_bool and t.name in ("And", "Or") and (t.name == "Or") in given:
        return t.name == "Or"
    return NOTHING if NOTHING in given else _applied(t.name, d, given, dtype(t.args[0].dtype))


def _applied(op: str, d: DType, given: Sequence[Any], source: DType) -> Any:
    evaluate = TABLE[Op[op]].evaluate
    assert evaluate is not None
    try:
        return evaluate(d, *given, source) if op == "Cast" else evaluate(d, *given)
    except Undefined:
        return NOTHING


@functools.cache
def literal_value(text: str, at: str) -> Any:
    return text == "true" if at == "bool" else float(text) if at in FLOATS else int(text)
