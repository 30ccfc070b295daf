"""Symbols: what the unknowns of an obligation are, whatever a rule calls its parts.

A symbol is its kind and the parts that tell it from others of its kind: names of the rule, numbers, other symbols. Its text is an
injective function of these, so that two unknowns never share a name because their labels happen to be spelled alike, and the same
question is the same text in every process. What a reader is shown is the label, which need not be unique.
"""

from __future__ import annotations

import functools
import re
from typing import Final, Literal

Kind = Literal[
    "variable",  # what the pattern binds to a name
    "ignored",  # a wildcard of the pattern, by its name and its number
    "value",  # the value of a constant node, by the name that is bound to it
    "constant",  # the value of a constant node without such a name, by its number
    "item",  # of a sequence of the pattern: by the name of the sequence, or its symbol, and its place
    "lane",  # of a node: its symbol and the number of the lane
    "defined",  # whether something has a value
    "invalid",  # whether it is Invalid
    "infinite",  # whether a bound is
    "result",  # of a helper: by the names of both and the number of the call
    "lanes",  # how many lanes the nodes of a kind have
    "range",  # the variable of a range that the rule makes, by its number
    "loop",  # a loop, by the symbol of its variable or by the name of a sequence of loops
    "never",  # whether a loop does not run
    "dimension",  # of a tensor of which the rule says none, by its number
    "cell",  # the function from index vectors to the elements of a buffer
    "inside",  # where a buffer has elements
    "filled",  # where something was stored there, or put there from outside
    "somewhere",  # where indices into storage that may be a place, or a view, lead anywhere
    "alias",  # where indices into such storage lead to the same place as others
    "store",  # the effect of a store to a buffer
    "after",  # a value, or whether there is one, behind effects, by the dtypes of both; storage behind some, by a number
    "product",  # a lane of a product of matrices
    "function",  # an uninterpreted function of the prover's own
    "fixed",  # a constant of the prover's own, with one meaning everywhere
    "fresh",  # an unknown that was introduced on the way, by its number
    "computed",  # a term whose meaning is forgotten, by its number
    "op",  # an op, where values are terms of which nothing is known
    "foreign",  # an op of another dialect, likewise: no law of an op of Morok's is one of it, whatever it is called
    "number",  # an integer among those
    "at",  # something at an iteration of the axes
    "unrolled",  # what is unrolled to something
    "bound",  # an end of an interval
    "bits",  # of a float of 8 bits, by the name of the float
    "library",  # an unknown or a function that an expression of the solver's own library names
]
Part = str | int

_LETTERS: Final = re.compile(r"[^\w .]", re.ASCII)


class Symbol(str):
    """One unknown, or function, of an obligation. As a string it is its name in the solver."""

    __slots__ = ("kind", "label", "parts")

    kind: Kind
    parts: tuple[Part, ...]
    label: str

    def __new__(cls, kind: Kind, *parts: Part) -> Symbol:
        return _made(cls, kind, *parts)


@functools.lru_cache(maxsize=1 << 16, typed=True)  # a symbol as a part is another one than a name that is spelled so
def _made(cls: type[Symbol], kind: Kind, *parts: Part) -> Symbol:
    made = str.__new__(cls, f"{kind}({','.join(map(_said, parts))})")
    made.kind, made.parts = kind, parts
    made.label = _label(kind, parts)
    return made


def _said(part: Part) -> str:
    """A part as text: symbols have brackets, numbers a #, and names neither."""
    if isinstance(part, Symbol):
        return part
    return f"#{part}" if isinstance(part, int) else _LETTERS.sub(lambda c: f"%{ord(c[0]):x}%", part)


def _label(kind: Kind, parts: tuple[Part, ...]) -> str:
    words = [p.label if isinstance(p, Symbol) else str(p) for p in parts]
    if kind == "item":
        return "#".join(words)
    if kind == "at":
        return f"{words[0]}.{words[1]}@{','.join(words[2:])}"
    if kind in ("ignored", "fresh"):
        return "".join(words)
    if kind == "constant":
        return f"_const{words[0]}"
    if kind in ("range", "loop", "never", "invalid", "infinite", "defined", "inside", "filled"):
        return f"{'.'.join(words)}.{kind}"
    return ".".join(words)


def symbol(name: Symbol) -> Symbol:
    """The symbol itself; TypeError for a plain string, which may be anybody's name."""
    if type(name) is not Symbol:
        raise TypeError(f"{name!r} is no symbol: the unknowns of an obligation are made of symbols, not of names")
    return name
