"""Random well-typed terms of the rule language, over variables and constants."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from morok.ir.dtype import BY_NAME, DType
from morok.ir.morok_dialect import MOROK

INTS: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS: Final = ("f16", "bf16", "f32", "f64")
NAMES: Final = ("x", "y", "z", "w", "p", "q", "s", "t")
# the domains that identities name, by word; narrow dtypes more often, since their ends are soonest met
DOMAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "int": INTS,
    "sint": INTS[:4],
    "uint": INTS[4:],
    "index": ("index",),
    "float": FLOATS,
    "bool": ("bool",),
    "bits": (*INTS, "bool"),
    "exact": (*INTS, "index"),
    "number": (*INTS, "index", *FLOATS),
    "any": (*INTS, "index", *FLOATS, "bool"),
    "u64": ("u64",),
}


@dataclass(frozen=True, slots=True)
class Term:
    """A term: an op over others, or a leaf.

    kind  "op", "var", "const" (a constant that the pattern binds), "literal"
    name  of the op, the variable or the constant; the literal's number
    """

    kind: str
    name: str
    dtype: str
    args: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Typing:
    """A typing of an op at one dtype: the dtypes of operands and result."""

    op: str
    operands: tuple[str, ...]
    result: str


def _typings() -> dict[str, list[Typing]]:
    """Every typing of every op with a signature, by the dtype of its result; casts are added by who makes them."""
    found: dict[str, list[Typing]] = {}
    for info in MOROK.ops.values():
        if not info.params or info.name == "Cast":
            continue
        for name in info.domains["T"]:
            at = {"T": name}
            made = Typing(info.name, tuple(at.get(p, p) for p in info.params), at.get(info.result, info.result))
            found.setdefault(made.result, []).append(made)
    return found


TYPINGS: Final = _typings()
COMMUTATIVE: Final = frozenset(i.name for i in MOROK.ops.values() if i.commutative)


def dtype(name: str) -> DType:
    return BY_NAME[name]


class Terms:
    """Makes terms, and remembers the variables and constants that it has made, by name with their dtypes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.variables: dict[str, str] = {}
        self.constants: dict[str, str] = {}

    def variable(self, at: str, old: float = 0.3) -> Term:
        rng = self.rng
        known = [n for n, d in self.variables.items() if d == at]
        if known and rng.random() < old:
            return Term("var", rng.choice(known), at)
        free = [n for n in NAMES if n not in self.variables]
        if not free:
            return Term("var", rng.choice(known), at) if known else self.literal(at)
        self.variables[free[0]] = at
        return Term("var", free[0], at)

    def constant(self, at: str) -> Term:
        """A constant that the pattern binds, with its value."""
        name = f"c{len(self.constants) + 1}"
        self.constants[name] = at
        return Term("const", name, at)

    def literal(self, at: str) -> Term:
        rng = self.rng
        d = dtype(at)
        if d.is_bool:
            return Term("literal", rng.choice(("true", "false")), at)
        if d.is_float:
            return Term("literal", rng.choice(("0.0", "-0.0", "1.0", "2.0", "0.5", "-3.0", "inf", "nan")), at)
        least = 0 if d.is_unsigned else -3
        edges = [int(d.min), int(d.max)] if d.is_int else [1 << 31, -(1 << 40)]
        return Term("literal", str(rng.choice(edges) if rng.random() < 0.15 else rng.randint(least, 9)), at)

    def term(self, at: str, depth: int) -> Term:
        """A term of this dtype: an op at its root while there is depth."""
        rng = self.rng
        if depth <= 0:
            roll = rng.random()
            return self.variable(at) if roll < 0.8 else self.constant(at) if roll < 0.9 else self.literal(at)
        roll = rng.random()
        if roll < 0.12:
            return self.cast(at, depth)
        if roll < 0.17 and (other := self.of_width(at)) is not None:
            return Term("op", "Bitcast", at, (self.term(other, depth - 1),))
        made = rng.choice(TYPINGS[at])
        return Term("op", made.op, at, tuple([self.term(d, depth - 1 - rng.randrange(2)) for d in made.operands]))

    def cast(self, at: str, depth: int) -> Term:
        source = self.rng.choice([d for d in DOMAINS["any"] if d != at])
        return Term("op", "Cast", at, (self.term(source, depth - 1),))

    def of_width(self, at: str) -> str | None:
        """Another dtype of as many bits."""
        if at in ("index", "bool"):
            return None
        others = [d for d in (*INTS, *FLOATS) if d != at and dtype(d).bits == dtype(at).bits]
        return self.rng.choice(others)


def walk(t: Term) -> Sequence[Term]:
    found = [t]
    for a in t.args:
        found += walk(a)
    return found


class Printer:
    """Prints the two sides of a rule: in the pattern each variable has its dtype where it first stands."""

    def __init__(self, rng: random.Random, dtypes: Mapping[str, str]) -> None:
        self.rng = rng
        self.dtypes = dtypes  # of the variables and constants
        self.seen: set[str] = set()

    def pattern(self, t: Term) -> str:
        if t.kind == "var":
            first = t.name not in self.seen
            self.seen.add(t.name)
            return f"{t.name}: {t.dtype}" if first else t.name
        if t.kind == "const":
            first = t.name not in self.seen
            self.seen.add(t.name)
            return f"{t.name} @const({t.name}v)" if first else t.name
        if t.kind == "literal":
            return self.number(t)
        args = [self.pattern(a) for a in t.args]
        if t.name in ("Cast", "Bitcast"):
            return f"{t.name}({args[0]}, {t.dtype})"
        if t.name in COMMUTATIVE and self.rng.random() < 0.4:
            return f"{t.name}[{', '.join(args)}]"
        return f"{t.name}({', '.join(args)})"

    def number(self, t: Term) -> str:
        if self.rng.random() < 0.3:
            special = {"0": "@zero", "0.0": "@zero", "1": "@one", "1.0": "@one", "true": "@true", "false": "@false"}
            if t.dtype != "bool" or t.name in ("true", "false"):
                return special.get(t.name, t.name)
        return t.name

    def target(self, t: Term) -> str:
        if t.kind in ("var", "const"):
            return t.name
        if t.kind == "literal":
            return self.made_number(t)
        args = [self.target(a) for a in t.args]
        if t.name in ("Cast", "Bitcast"):
            return f"{t.name}({args[0]}, {t.dtype})"
        return f"{t.name}({', '.join(args)})"

    def made_number(self, t: Term) -> str:
        """A constant of the target: a literal, or one of the ways to make it, of a variable of its dtype."""
        rng = self.rng
        alike = [n for n in sorted(self.seen) if self.dtypes.get(n) == t.dtype]
        if alike and rng.random() < 0.5 and t.name in ("0", "1", "0.0", "1.0"):
            return f"{'zero' if t.name[0] == '0' else 'one'}({rng.choice(alike)})"
        if rng.random() < 0.2 and t.name.lstrip("-").isdigit():
            return f"const({t.name}, {t.dtype})"
        return t.name


def substituted(t: Term, by: Mapping[str, Term]) -> Term:
    """A term with terms in place of its variables."""
    if t.kind == "var":
        return by.get(t.name, t)
    return replace(t, args=tuple([substituted(a, by) for a in t.args]))
