"""The meanings of the parts of a rule while it is turned into an obligation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from morok.dsl import syntax as S
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import TRUE, Expr

# by which nodes are made that no op makes, whatever it is called
CONSTANT, CONSTANTS, INVALID = ("@const", "@vconst", "@invalid")
ANY_FOLD: Final = S.PVar("_")  # the op of a Reduce whose pattern does not name it


def whole(literal: S.PLiteral | S.ENumber) -> int:
    """The integer that a rule writes; Unsupported of any other number."""
    if type(literal.value) is not int:
        raise Unsupported(f"{literal.text} where an integer is read")
    return literal.value


class Parts(dict[str, Any]):
    """The operands and fields of an op, by name. What a rule does not write is not there to be read."""

    def __missing__(self, name: str) -> Any:
        raise Unsupported(f"an op without its {name}")


@dataclass(frozen=True, slots=True)
class Made:
    """The construction of a node, where the rule states it: the op, its operands, its static fields."""

    op: str
    operands: tuple[Any, ...]
    fields: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its lanes, one Term each, at a scalar dtype. A pointwise rule is read at one lane that stands for all."""

    lanes: tuple[Term, ...]
    dtype: str
    made: Made | None = field(default=None, compare=False)

    @property
    def term(self) -> Term:
        """The lane of a scalar."""
        if len(self.lanes) != 1:
            raise Unsupported(f"{len(self.lanes)} lanes where a scalar is read")
        return self.lanes[0]


@dataclass(frozen=True, slots=True)
class Constant:
    """The value of a constant node, or one that `eval` computed: at a dtype; `exists` is whether the computation has a value."""

    term: Term
    dtype: str
    exists: Expr = TRUE


@dataclass(frozen=True, slots=True)
class Truth:
    """A compile-time bool."""

    value: Expr
    exists: Expr = TRUE


@dataclass(frozen=True, slots=True)
class FloatLiteral:
    value: float


@dataclass(frozen=True, slots=True)
class DtypeName:
    name: str


@dataclass(frozen=True, slots=True)
class OpName:
    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of nodes or of values."""

    items: tuple[Any, ...]
