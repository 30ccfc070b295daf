"""Rules about folds: their items regrouped, taken in another order, split, left out, or taken twice."""

from __future__ import annotations

import random
import re
from typing import Final

from morok.prove.attack.templates import templates
from morok.prove.attack.terms import DOMAINS, TYPINGS
from morok.prove.attack.themes import place

FLOATING: Final = ("f16", "f16", "bf16", "f32")


def folds(rng: random.Random) -> str:
    """A rule about a fold over lanes, iterations or axes."""
    text, _, length = rng.choice(templates()["folds"]).partition(" where L = ")
    at = rng.choice(FLOATING if rng.random() < 0.5 else DOMAINS["number"])
    fold = rng.choice(("Add", "Add", "Mul", "Max", "Min"))
    other = fold if rng.random() < 0.8 else rng.choice(("Add", "Mul", "Sub", "Max"))
    one = rng.choice([t.op for t in TYPINGS[at] if t.operands == (at,)])
    k = rng.choice((2, 3, 3, 4, 5, 8, 9))
    taken = list(range(k))
    rng.shuffle(taken)
    if rng.random() < 0.2:
        taken[0] = taken[-1]  # one twice, another not at all
    tree = _tree(rng, [f"Gep(x, [{i}])" for i in taken], other)
    words = {"D": at, "FOLD": fold, "OP": other, "UN": one, "TREE": tree, "K": str(k), "PERM": str(taken)[1:-1], "L": length}
    for word, by in words.items():
        text = re.sub(rf"\b{word}\b", by, text)
    return re.sub(r"\bM\b", lambda _: place(rng, length), text)


def _tree(rng: random.Random, leaves: list[str], op: str) -> str:
    """The leaves, in this order, joined by an op in some way."""
    if len(leaves) == 1:
        return leaves[0]
    cut = rng.randrange(1, len(leaves))
    return f"{op}({_tree(rng, leaves[:cut], op)}, {_tree(rng, leaves[cut:], op)})"


__all__ = ["folds"]
