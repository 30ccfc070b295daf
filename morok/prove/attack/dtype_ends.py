"""Random rules about numbers at the ends of integer dtypes and beyond, which the dtypes make others of."""

from __future__ import annotations

import random
from typing import Final

from morok.prove.attack.random_terms import INTS, Printer, Terms, dtype

# What ops may make of a term and a number: that is greater, or less, than every value, or with which they do nothing.
LAWS: Final = (
    ("Min({x}, {n})", "{x}"), ("Max({x}, {n})", "{x}"), ("Min({x}, {n})", "{n}"), ("Max({x}, {n})", "{n}"),
    ("Lt({x}, {n})", "true"), ("Lt({x}, {n})", "false"), ("Le({x}, {n})", "true"), ("Ge({x}, {n})", "true"),
    ("Gt({x}, {n})", "false"), ("Eq({x}, {n})", "false"), ("Ne({x}, {n})", "true"), ("Add({x}, {n})", "{x}"),
    ("Sub({x}, {n})", "{x}"), ("Mul({x}, {n})", "{x}"), ("And({x}, {n})", "{x}"), ("Or({x}, {n})", "{x}"),
    ("Xor({x}, {n})", "{x}"), ("Idiv({x}, {n})", "0"), ("Mod({x}, {n})", "{x}"),
)  # fmt: skip


def ends(rng: random.Random) -> str:
    """A law of one op at a number near an end of a dtype, or as many turns from there as wrapping takes back."""
    at = rng.choice(INTS)
    d = dtype(at)
    number = (
        int(rng.choice((d.min, d.max))) + rng.choice((-1, -1, 0, 1, 1)) + rng.choice((-1, 0, 0, 0, 1)) * (1 << d.bits)
    )
    terms = Terms(rng)
    x = terms.term(at, rng.choice((0, 0, 1, 2)))
    printer = Printer(rng, {**terms.variables, **terms.constants})
    pattern, target = rng.choice(LAWS)
    before = pattern.format(x=printer.pattern(x), n=number)
    return f"{before} ~> {target.format(x=printer.target(x), n=number)}"
