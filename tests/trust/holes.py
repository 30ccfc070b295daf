"""Holes of the kinds that were found in the prover and around it, put back one by one: `morok attack` must find each.

Each patches the product as it was when the hole was open, or as if it were. What makes random rules knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from morok.dsl import check, emit_extents, emit_values, matching, resolve, slots, values
from morok.prove import foreign, symbol, verified
from morok.prove.encoding import reading

Hole = Callable[[pytest.MonkeyPatch], None]


def symbols_coincide(patch: pytest.MonkeyPatch) -> None:
    """Every constant without a name is one unknown."""
    made = symbol._made

    def coinciding(cls: type[symbol.Symbol], kind: symbol.Kind, *parts: symbol.Part) -> symbol.Symbol:
        return made(cls, kind, *(0 if type(p) is int and kind == "constant" else p for p in parts))

    patch.setattr(symbol, "_made", coinciding)


def infinite_arithmetic(patch: pytest.MonkeyPatch) -> None:
    """The matcher calculates with the bounds of a node that has none: infinity less infinity is a number to it."""
    patch.setitem(values.NAMES, "_finite", lambda a: a)
    patch.setattr(emit_values.Values, "finite", lambda self, e: self.value(e))


def negative_places(patch: pytest.MonkeyPatch) -> None:
    """The matcher counts negative places from the end of a sequence."""
    patch.setitem(values.NAMES, "_item", lambda xs, i: xs[i])


def ragged_pairs(patch: pytest.MonkeyPatch) -> None:
    """The matcher pairs sequences of two lengths, as far as the shorter one goes."""
    patch.setitem(values.NAMES, "_paired", lambda *xs: tuple(zip(*xs, strict=False)))


def exact_targets(patch: pytest.MonkeyPatch) -> None:
    """The prover takes the powers that a target makes for exact ones."""
    patch.setattr(reading, "kept_ops", lambda rule: frozenset())


def extents_ignored(patch: pytest.MonkeyPatch) -> None:
    """Matchers fire at sizes that no proof has tried."""
    patch.setattr(emit_extents.Within, "within", lambda self, extent: "True")


def dialects_unverified(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks at a dialect before rules over it are proved."""
    patch.setattr(verified, "broken", lambda rules: {})
    patch.setattr(verified, "literal_mistakes", lambda rule, theory: ())
    patch.setattr(resolve, "op_mistakes", lambda dialect, name: ())
    patch.setattr(check, "dialect_mistakes", lambda dialect: ())


def types_untested(patch: pytest.MonkeyPatch) -> None:
    """Matchers take every node of an op for one of the types that the op lists."""

    def known(of: object, name: str, *default: object) -> object:
        return True if name == "closed_types" else getattr(of, name, *default)

    for module in (slots, matching):
        patch.setattr(module, "getattr", known, raising=False)


def evaluators_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The digest of a verdict says nothing of the evaluators that folding rests on."""
    patch.setattr(foreign, "evaluator_digest", lambda info: "")


HOLES: Final[dict[str, Hole]] = {
    "symbols coincide": symbols_coincide,
    "infinite arithmetic": infinite_arithmetic,
    "negative places": negative_places,
    "ragged pairs": ragged_pairs,
    "exact targets": exact_targets,
    "extents ignored": extents_ignored,
    "dialects unverified": dialects_unverified,
    "types untested": types_untested,
    "evaluators forgotten": evaluators_forgotten,
}
