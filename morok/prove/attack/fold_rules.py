"""Rules about folds: their items regrouped, taken in another order, split, left out, or taken twice."""

from __future__ import annotations

import random
import re
from typing import Final

from morok.prove.attack.random_terms import DOMAINS, TYPINGS
from morok.prove.attack.rule_templates import templates
from morok.prove.attack.themes import place

FLOATING: Final = ("f16", "f16", "bf16", "f32")
REDUCTIONS: Final = ("Add", "Add", "Mul", "Max", "Min")


def folds(rng: random.Random) -> str:
    """A rule about a fold over lanes, iterations or axes."""
    at = rng.choice(FLOATING if rng.random() < 0.5 else DOMAINS["number"])
    fold = rng.choice(REDUCTIONS)
    if rng.random() < 0.5:
        return _composed(rng, at, fold)
    text, _, length = rng.choice(templates()["folds"]).partition(" where L = ")
    other = fold if rng.random() < 0.8 else rng.choice(("Add", "Mul", "Sub", "Max"))
    one = rng.choice([t.op for t in TYPINGS[at] if t.operands == (at,)])
    k = rng.choice((2, 3, 3, 4, 5, 8, 9))
    taken = list(range(k))
    rng.shuffle(taken)
    if rng.random() < 0.2:
        taken[0] = taken[-1]  # one twice, another not at all
    tree = _tree(rng, [f"Gep(x, [{i}])" for i in taken], other)
    words = {
        "D": at,
        "FOLD": fold,
        "OP": other,
        "UN": one,
        "TREE": tree,
        "K": str(k),
        "PERM": str(taken)[1:-1],
        "L": length,
    }
    for word, by in words.items():
        text = re.sub(rf"\b{word}\b", by, text)
    return re.sub(r"\bM\b", lambda _: place(rng, length), text)


def _composed(rng: random.Random, at: str, fold: str) -> str:
    """A fold of what an op makes of two or three operands; and the folds of these joined by the op, the fold of them joined in
    another order, or with the lanes of one moved.
    """
    binary = [t.op for t in TYPINGS[at] if t.operands == (at, at)]
    op = fold if rng.random() < 0.85 else rng.choice(binary)
    names = ["x", "y", "z"][: 3 if rng.random() < 0.25 else 2]
    closed = rng.random() < 0.6  # whether axes end below the fold
    length = f"(width(a) * lanes({names[-1]}))" if closed else f"lanes({names[-1]})"

    def joined(parts: list[str]) -> str:
        return _tree(rng, parts, op)

    def around(part: str) -> str:
        return f"Contract {{ src: {part}, axes: a }}" if closed else part

    def folded(part: str, dtype: str = "") -> str:
        return f"Reduce {{ src: {part}, ranges: [], op: {fold}{dtype} }}"

    source = around(joined([f"{n}: {at}" if n == "x" else n for n in names]))
    taken = list(names)
    rng.shuffle(taken)
    form = rng.randrange(7 if closed else 4)
    if form < 2:
        target = joined([folded(around(n), ", dtype: dtype(n)") for n in taken])
    elif form == 2:
        target = folded(joined([around(n) for n in taken]))
    else:
        moved = f"Gep({around(names[-1])}, [{_place(rng, length)} for i in 0..{length}])"
        target = folded(joined([*[around(n) for n in names[:-1]], moved]))
    guard = "" if closed else f" if lanes(n) == 1 and lanes(x) {rng.choice(('> 1', '> 1', '== 3', '== 4', '<= 8'))}"
    return f"n @ {folded(source)}{guard} ~> {target}"


def _place(rng: random.Random, length: str) -> str:
    """A function of the place i in a sequence of this length, mostly i itself as long as it is short."""
    if rng.random() < 0.25:
        return place(rng, length)
    longer = rng.choice(("L - 1 - i", "(i + 1) % L", "(i + L - 1) % L", "(i + L // 2) % L", "i // 2"))
    return f"[i, {longer.replace('L', length)}][min({length} // {rng.randint(7, 40)}, 1)]"


def _tree(rng: random.Random, leaves: list[str], op: str) -> str:
    """The leaves, in this order, joined by an op in some way."""
    if len(leaves) == 1:
        return leaves[0]
    cut = rng.randrange(1, len(leaves))
    return f"{op}({_tree(rng, leaves[:cut], op)}, {_tree(rng, leaves[cut:], op)})"
