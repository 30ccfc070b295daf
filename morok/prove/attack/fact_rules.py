"""Random rules that ask facts of two nodes of one value: a fact is of a node, so that the answers may differ."""

from __future__ import annotations

import random
import re
from typing import Final

from morok.prove.attack import identities
from morok.prove.attack.random_terms import INTS, Printer, Term, substituted, walk

# What is computed of L and R, which have one value, and differs.
ASKED: Final = (
    "vmin(L) != vmin(R)", "vmin(L) < vmin(R)", "vmax(L) != vmax(R)", "vmax(L) > vmax(R)", "not same(L, R)", "not same(L, R)",
    "no_overflow(L) and not no_overflow(R)", "defined(L) and not defined(R)",
)  # fmt: skip


def facts(rng: random.Random) -> str:
    """A rule that swaps two operands, where they are one node, or two nodes of one value have other facts."""
    while True:
        left, right, at = identities.some(rng)
        names = {t.name for t in walk(left) if t.kind == "var"}
        if (
            left.dtype == right.dtype == at
            and right.kind != "literal"
            and at in (*INTS, "index")
            and names <= {"A", "B"}
        ):
            break
    by = {"A": Term("var", "x", at), "B": Term("var", "y", at)}
    printer = Printer(rng, {"x": at, "y": at})
    one, other = (printer.target(substituted(t, by)) for t in (left, right))
    if rng.random() < 0.35:
        one, other = "x", _passed_on(rng, at)
    guard = re.sub(r"\b[LR]\b", lambda side: one if side[0] == "L" else other, rng.choice(ASKED))
    op = rng.choice(("Sub", "Lt"))
    return f"{op}(x: {at}, y) if {guard} or same(x, y) ~> {op}(y, x)"


def _passed_on(rng: random.Random, at: str) -> str:
    """A term that has the value of x, and of which less is known."""
    found = ["Where(true, x, Idiv(x, y))", "Where(false, Idiv(y, x), x)"]
    if at != "index":
        found.append(f"Bitcast(Bitcast(x, {'u' if at[0] == 'i' else 'i'}{at[1:]}), {at})")
    return rng.choice(found)
