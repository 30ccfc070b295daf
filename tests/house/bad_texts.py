"""Texts of rules and expressions with one token lost, doubled, exchanged or replaced."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_TOKEN: Final = re.compile(r'"[^"\n]*"|\w+|\.\.=?|~>|=>|[<>=!]=|\s+|.', re.DOTALL)
_STRANGE: Final = (
    "Ad",
    "f31",
    "@",
    "$",
    "99999999999999999999",
    "..",
    "~>",
    "if",
    "let",
    "group",
    '"',
    "é",
    "Const",
    "x",
    "-",
    "(",
    "]",
)


def mistaken(text: str, rng: random.Random) -> str:
    """The text with a mistake in one place; it may be right all the same."""
    tokens = _TOKEN.findall(text)
    places = [k for k, t in enumerate(tokens) if not t.isspace()]
    at = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        del tokens[at]
    elif kind == 1:
        tokens.insert(at, f"{tokens[at]} ")
    elif kind == 2:
        tokens[at] = rng.choice(_STRANGE)
    else:
        other = rng.choice(places)
        tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


def groups_of(files: Sequence[Path]) -> Iterator[str]:
    """Each group of these files as a file of its own, below what stands in front of the file's first group.

    Files whose helpers are Python beside them are left out: what is wrong there is always the same.
    """
    for file in files:
        head, *groups = re.split(r"^(?=group )", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if "\nextern " not in f"\n{head}":
            yield from (head + group for group in groups)
