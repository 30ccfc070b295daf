"""Identities of ops: templates of rules that are true by construction, whatever terms stand for their letters.

`=` holds both ways; `~>` one way, since the other side has fewer letters, or less is defined there. Letters A, B, C are terms of
the identity's dtype, P, Q conditions; `F(..)` stands for any op of so many operands that makes this dtype of itself.
"""

from __future__ import annotations

import random
import re
from typing import Final, NamedTuple

from morok.prove.attack.random_terms import DOMAINS, TYPINGS, Term, substituted
from morok.prove.attack.rule_templates import templates


class Identity(NamedTuple):
    """Two sides as terms over letters at some dtype, and the dtypes that there are."""

    domain: str
    left: str
    right: str


def _read(backwards: bool = False) -> list[Identity]:
    """The identities; `backwards`: those of a letter alone, or of a number, with what it is equal to on the right."""
    found = []
    for line in templates()["identities"]:
        domain, _, one = line.partition(": ")
        left, right = one.split(" ~> " if " ~> " in one else " = ")
        if backwards:
            found += [Identity(domain, a, b) for a, b in ((left, right), (right, left)) if a == "A" or not letters(a)]
            continue
        ways = [(left, right)] if " ~> " in one else [(left, right), (right, left)]
        found += [Identity(domain, a, b) for a, b in ways if len(a) > 1 and letters(b) <= letters(a)]
    return found


def letters(side: str) -> set[str]:
    return set(re.findall(r"\b[ABCPQ]\b", side))


IDENTITIES: Final = _read()
BACKWARDS: Final = _read(backwards=True)


class Parser:
    """Reads one side: letters become variables, `F` the op that was chosen."""

    def __init__(self, text: str, at: str, chosen: str) -> None:
        self.text, self.place, self.at, self.chosen = text, 0, at, chosen

    def term(self, at: str) -> Term:
        start = self.place
        while self.place < len(self.text) and self.text[self.place] not in "(),":
            self.place += 1
        word = self.text[start : self.place].strip()
        if self.place < len(self.text) and self.text[self.place] == "(":
            op = self.chosen if word == "F" else word
            typing = self.typing(op, at)
            args = []
            for d in typing:
                self.place += 1  # the bracket, or the comma
                args.append(self.term(d))
            self.place += 1
            return Term("op", op, at, tuple(args))
        if word in "ABCPQ":
            return Term("var", word, at)
        return Term("literal", number(word, at), at)

    def typing(self, op: str, at: str) -> tuple[str, ...]:
        """The dtypes of an op's operands in an identity whose letters are of `self.at`."""
        if op == "Where":
            return "bool", at, at
        options = [t.operands for t in TYPINGS[at] if t.op == op]
        found = next((o for o in options if o[0] == self.at), None) if at == "bool" else options[0] if options else None
        if found is None and at == "bool" and options:
            found = ("bool",) * len(options[0])
        if found is None:
            raise LookupError(f"no {op} at {at}")
        return found


INEXACT: Final = frozenset({"Exp", "Exp2", "Log", "Log2", "Sin", "Cos", "Tan", "Tanh", "Erf", "Rsqrt", "Sqrt", "Pow"})
COMPARISONS: Final = ("Lt", "Le", "Gt", "Ge", "Eq", "Ne")
CONNECTIVES: Final = ("And", "Or", "Xor", "Not")


def number(word: str, at: str) -> str:
    """The number of an identity at a dtype: of unsigned ones -1 is the greatest, of bools 0 is false."""
    if word in ("true", "false"):
        return word
    if at == "bool":
        return {"0": "false", "1": "true"}[word]
    if at.startswith(("f", "b")):
        return word if "." in word else f"{word}.0"
    if "." in word:
        raise LookupError(f"no {word} at {at}")
    if at.startswith("u") and word.startswith("-"):
        return str((1 << int(at[1:])) + int(word))
    return word


def result_of(text: str, at: str) -> str:
    """The dtype of a side whose letters are of `at`."""
    root = text.partition("(")[0]
    if root in COMPARISONS or text in ("true", "false", "P", "Q"):
        return "bool"
    if root in CONNECTIVES and any(c + "(" in text for c in COMPARISONS):
        return "bool"
    return at


def chosen_op(rng: random.Random, identity: Identity, at: str) -> str | None:
    """An op for `F`: of as many operands as the identity gives it, all of its dtype; None if there is none."""
    count = identity.left[identity.left.index("F(") :].partition(")")[0].count(",") + 1 if "F(" in identity.left else 0
    nested = "Where(P, A, B)" in identity.left and "F(Where" in identity.left
    if not count:
        return ""
    if nested:
        count = 1 if "C" not in identity.left else 2
    options = [t.op for t in TYPINGS[at] if t.operands == (at,) * count]
    inexact = [op for op in options if op in INEXACT]
    return rng.choice(inexact if inexact and rng.random() < 0.3 else options) if options else None


def sides(rng: random.Random, identity: Identity, at: str) -> tuple[Term, Term] | None:
    """Both sides over letters; None if there is no such op at this dtype."""
    chosen = chosen_op(rng, identity, at)
    if chosen is None:
        return None
    result = result_of(identity.left if identity.left not in ("true", "false") else identity.right, at)
    try:
        made = [Parser(text, at, chosen).term(result) for text in (identity.left, identity.right)]
    except LookupError:  # an op, or a number, that this dtype has not
        return None
    return made[0], made[1]


ELSEWHERE: Final = ("f16", "f16", "bf16", "f32", "bool", "i8", "u8", "i16", "index")
NOT_EVERYWHERE: Final = [i for i in IDENTITIES if i.domain != "any"]
QUICK: Final = frozenset({"i8", "u8", "i16", "i32", "u64", "f16", "bf16", "index", "bool"})
_DIVIDES: Final = re.compile(r"Idiv|Mod|FloorDiv|Fdiv|Reciprocal|Sqrt|Pow")


def some(rng: random.Random, quick: bool = False, anywhere: bool = False) -> tuple[Term, Term, str]:
    """A random identity at a random dtype of its domain; a `quick` one is soon proved wherever it stands; `anywhere`: at one that
    it is not meant for.
    """
    while True:
        identity = rng.choice(NOT_EVERYWHERE if anywhere else IDENTITIES)
        at = rng.choice(
            [d for d in ELSEWHERE if d not in DOMAINS[identity.domain]] if anywhere else DOMAINS[identity.domain]
        )
        if quick and (at not in QUICK or _DIVIDES.search(identity.left + identity.right)):
            continue
        found = sides(rng, identity, at)
        if found is not None:
            return (*found, at)


def backwards(rng: random.Random, t: Term) -> Term | None:
    """A term equal to this one by an identity whose other letters have values; None where chance finds no such identity."""
    numbers = ("true", "false") if t.dtype == "bool" else ("0", "1", "-1")
    fitting = [
        i for i in BACKWARDS
        if (t.dtype in DOMAINS[i.domain] if i.left == "A" or i.left not in ("true", "false") else True)
        and (i.left == "A" or (t.kind == "literal" and i.left in numbers and number(i.left, t.dtype) == t.name))
    ]  # fmt: skip
    if not fitting:
        return None
    root = rng.choice(sorted({i.right.partition("(")[0] for i in fitting}))
    chosen = rng.choice([i for i in fitting if i.right.partition("(")[0] == root])
    at = rng.choice(DOMAINS[chosen.domain]) if chosen.left in ("true", "false") else t.dtype
    found = sides(rng, Identity(chosen.domain, chosen.right, chosen.left), at)
    if found is None or found[1].dtype != t.dtype:
        return None
    return substituted(found[0], {"A": t}) if chosen.left == "A" else found[0]
