"""Rules whose target is more than their pattern: a term said in a longer way, or carried to the other side of a structure.

What a longer way adds need not have a value: where the pattern has one and the target none, the rule is false. What is carried
may come out changed in one place: in an op, a number, or the dtype of a conversion.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from morok.prove.attack import identities
from morok.prove.attack.guards import Clauses
from morok.prove.attack.random_terms import FLOATS, INTS, TYPINGS, Printer, Term, Terms, dtype, substituted, walk

NARROW: Final = ("i8", "u8", "i16", "index", "bool", "i32", "f16")
CONVERSIONS: Final = ("Cast", "Bitcast")
PARTIAL: Final = frozenset({"Idiv", "Mod", "FloorDiv", "FloorMod", "Shl", "Shr", "Fdiv", "Reciprocal"})


class Known:
    """Terms over variables that there are."""

    def __init__(self, rng: random.Random, variables: Mapping[str, str], parts: Sequence[Term]) -> None:
        self.rng = rng
        self.variables = variables
        self.parts = parts

    def leaf(self, at: str) -> Term:
        rng = self.rng
        alike = [n for n, d in self.variables.items() if d == at]
        if alike and rng.random() < 0.85:
            return Term("var", rng.choice(alike), at)
        others = [n for n, d in self.variables.items() if d != at]
        if others and (at != "bool" or rng.random() < 0.5) and rng.random() < 0.7:
            name = rng.choice(others)
            return Term("op", "Cast", at, (Term("var", name, self.variables[name]),))
        return Terms(rng).literal(at)

    def term(self, at: str) -> Term:
        """A term that need not have a value; often a part of the pattern, which has one."""
        rng = self.rng
        inside = [p for p in self.parts if p.dtype == at and p.kind == "op"]
        if inside and rng.random() < 0.35:
            return rng.choice(inside)
        others = [n for n, d in self.variables.items() if d != at]
        if others and rng.random() < 0.3:  # which not all values have
            name = rng.choice(others)
            return Term("op", "Cast", at, (Term("var", name, self.variables[name]),))
        if rng.random() < 0.2:
            return self.leaf(at)
        options = TYPINGS[at]
        partial = [t for t in options if t.op in PARTIAL]
        if at == "bool":
            partial = [t for t in options if t.operands[0] != "bool"]
        made = rng.choice(partial if partial and rng.random() < 0.7 else options)
        operands = made.operands
        if at == "bool" and rng.random() < 0.6:
            used = sorted(set(self.variables.values()))
            operands = next((t.operands for t in partial if t.op == made.op and t.operands[0] in used), operands)
        return Term("op", made.op, at, tuple(self.leaf(d) for d in operands))


def expanded(rng: random.Random) -> str:
    """A random term, of which the target says some parts in a longer way."""
    terms = Terms(rng)
    left = _host(rng, terms)
    variables = {t.name: t.dtype for t in walk(left) if t.kind == "var"}
    known = Known(rng, variables, walk(left))
    right, last = left, left
    for _ in range(rng.choice((1, 2, 2, 3))):
        within = last if rng.random() < 0.6 else right
        if last.name == "Where" and rng.random() < 0.7:
            within = Term("only", "", last.dtype, (rng.choice(last.args[1:]),))
        right, last = _longer(rng, right, within, known)
    printer = Printer(rng, {**terms.variables, **terms.constants})
    before, after = printer.pattern(left), printer.target(right)
    guard = f" {Clauses(rng, variables).clauses(1)}" if rng.random() < 0.15 else ""
    return f"{before}{guard} ~> {after}"


def _host(rng: random.Random, terms: Terms) -> Term:
    """A small pattern with variables of two dtypes."""
    at, other = rng.choice(NARROW), rng.choice(NARROW)
    x, y, a, b = (terms.variable(d, 0.0) for d in (at, at, other, other))
    form = rng.randrange(4)
    if form == 0:
        compared = [t for t in TYPINGS["bool"] if t.operands == (other, other)]
        return Term("op", "Where", at, (Term("op", rng.choice(compared).op, "bool", (a, b)), x, y))
    if form == 1 and at != other:
        y = Term("op", "Cast", at, (a,))
    binary = [t for t in TYPINGS[at] if t.operands == (at, at)]
    found = Term("op", rng.choice(binary).op, at, (x, y))
    if form == 2:
        return Term("op", rng.choice(binary).op, at, (found, rng.choice((x, y, terms.literal(at)))))
    return found


def _longer(rng: random.Random, t: Term, within: Term, known: Known) -> tuple[Term, Term]:
    """A term with some part of `within` replaced by what it is equal to where all has a value, and that; `only` what is in it."""
    for _ in range(20):
        part = within.args[0] if within.kind == "only" else rng.choice(walk(within))
        found = identities.backwards(rng, part)
        if found is not None:
            free = {u.name: known.term(u.dtype) for u in walk(found) if u.kind == "var" and u.name in "ABCPQ"}
            made = substituted(found, free)
            return _with(t, part, made), made
    return t, t


def _with(t: Term, part: Term, by: Term) -> Term:
    return by if t is part else replace(t, args=tuple(_with(a, part, by) for a in t.args))


# Terms carried through structures: what stands around HOLE in pattern and target, X being the term.
STRUCTURES: Final = (
    ("Unroll { src: x: D, axes: a }", "Unroll { src: X, axes: a }"),
    ("Unroll { src: x: D, axes: a }", "Unroll { src: X, axes: a }"),
    ("Unroll { src: Unroll { src: x: D, axes: a }, axes: b }", "Unroll { src: Unroll { src: X, axes: a }, axes: b }"),
    ("Vectorize(x: D, y)", "Vectorize(X, Y)"),
    ("Cat(x: D, y)", "Cat(X, Y)"),
    ("Gep { vector: x: D, indices: is }", "Gep { vector: X, indices: is }"),
)
COLLECTED: Final = (
    ("Gep { vector: X, indices: is }", "Gep { vector: x, indices: is }"),
    ("Gep { vector: X, indices: [0] }", "Gep { vector: x, indices: [0] }"),
    ("Contract { src: X, axes: a }", "Contract { src: x, axes: a }"),
    ("Gep { vector: Vectorize(X, Y), indices: [1] }", "y"),
)
MAYBE_INVALID: Final = "(any | index?)"


def through(rng: random.Random) -> str:
    """A chain of ops of one operand on one side of a structure, and on the other: the same chain, or one with a place changed."""
    at = rng.choice(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "f16", "f32", "bool"))
    chain = _chain(rng, Term("var", "x", at), rng.choice((1, 2, 2, 3, 3)))
    other = _changed(rng, chain) if rng.random() < 0.5 else chain
    printer = Printer(rng, {})

    def around(t: Term, inside: str) -> str:
        return printer.target(substituted(t, {"x": Term("var", inside, at)}))

    def matched(inside: str) -> str:
        printer.seen.add(inside)  # it says itself what it is
        return printer.pattern(substituted(chain, {"x": Term("var", inside, at)}))

    if rng.random() < 0.5:
        structure, made = rng.choice(STRUCTURES)
        before = matched(structure.replace("D", at))
        return f"{before} ~> {_filled(made, around(other, 'x'), around(other, 'y'))}"
    structure, made = rng.choice(COLLECTED)
    ty = MAYBE_INVALID if rng.random() < 0.3 else at
    before = _filled(structure, matched(f"x: {ty}"), matched(f"y: {ty}"))
    return f"{before} ~> {around(other, made)}"


def _filled(structure: str, x: str, y: str) -> str:
    return structure.replace("X", "\0").replace("Y", y).replace("\0", x)


def _chain(rng: random.Random, t: Term, length: int) -> Term:
    """Ops over a term: conversions, ops of one operand, ops with a number, comparisons with one."""
    terms = Terms(rng)
    for _ in range(length):
        form = rng.randrange(6)
        if form < 3 or t.dtype == "bool":
            t = Term("op", "Cast", rng.choice([d for d in (*INTS, *FLOATS) if d != t.dtype]), (t,))
        elif form == 3 and (other := terms.of_width(t.dtype)) is not None:
            t = Term("op", "Bitcast", other, (t,))
        else:
            options = [m for m in TYPINGS[t.dtype] if set(m.operands) == {t.dtype}]
            compared = [m for m in TYPINGS["bool"] if m.operands == (t.dtype, t.dtype)]
            m = rng.choice(compared if rng.random() < 0.25 else [o for o in options if len(o.operands) < 3])
            t = Term("op", m.op, m.result, (t, *(terms.literal(d) for d in m.operands[1:])))
    return t


def _changed(rng: random.Random, t: Term) -> Term:
    """A chain with one place changed: mostly to another rule of the same type."""
    places = [p for p in walk(t) if p.kind != "var"]
    between = [a for p in places for a in p.args if p.name in CONVERSIONS and a.name in CONVERSIONS]
    part = rng.choice(between if between and rng.random() < 0.5 else places)
    if part.kind == "literal":
        return _with(t, part, Terms(rng).literal(part.dtype))
    if part.name in CONVERSIONS:
        above = [p for p in walk(t) if p.name in CONVERSIONS and any(a is part for a in p.args)]
        if above:  # the dtype between two conversions
            width = dtype(part.dtype).bits
            others = [d for d in (*INTS, *FLOATS) if d != part.dtype]
            if "Bitcast" in (part.name, above[0].name):
                others = [d for d in others if dtype(d).bits == width]
            return _with(t, part, replace(part, dtype=rng.choice(others))) if others else t
        return t
    typed = tuple(a.dtype for a in part.args)
    options = [m.op for m in TYPINGS[part.dtype] if m.operands == typed and m.op != part.name]
    return _with(t, part, replace(part, name=rng.choice(options))) if options else t
