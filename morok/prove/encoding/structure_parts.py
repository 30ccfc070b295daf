"""The parts of structure: storage, places, loops and folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from morok.prove import smt
from morok.prove.kinds import Node
from morok.prove.semantics.term import Term
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

ELEMENT: Final = smt.DeclareSort("Element")  # values of a dtype that the rule does not look at, and what statements do
NOTHING: Final = smt.Const(Symbol("fixed", "nothing"), ELEMENT)
ABSENT: Final = object()  # what the name of an optional operand stands for where there is none
# Structure that treats every lane alike, so that one stands for all.
OPAQUE: Final = frozenset({"any", "void"})


Effects = frozenset[tuple[str, Expr]]  # values that something waits for, each with its dtype


def some_function(name: Symbol, result: smt.Sort, *arguments: tuple[str, Expr]) -> Expr:
    """Some function of values, each with its dtype, of which nothing else is known. It is another one at other dtypes, also where
    the solver has one sort for both.
    """
    of_dtypes = Symbol(name.kind, *name.parts, *(dtype for dtype, _ in arguments))
    return smt.Function(of_dtypes, *(e.sort for _, e in arguments), result)(*(e for _, e in arguments))


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage: where `inside` holds of an index vector there is an element.

    behind      what it is once a statement is done
    is_pointer  True if no element is a vector, so that several lanes at a place go on with the elements behind it, and no two
                places are one. Other storage may be a view, or a place behind a gate.
    """

    name: Symbol
    dtype: str
    behind: Stored | None = None
    is_pointer: bool = True


@dataclass(frozen=True, slots=True)
class Stored:
    """The effect of statements on storage.

    before  the storage as it is without
    places  of each lane of the last of them, and values
    beside  the places of stores before it that it does not wait for, nor they for it: none of them is one of its own
    effects all that must be done before the storage is looked at
    done    the statements that are done before, by their identities: those of `before`, this one, and what its storage waits for
    unknown nothing is known of what stands there
    """

    before: Buffer
    places: tuple[Place, ...] = ()
    values: tuple[Term, ...] = ()
    beside: tuple[Place, ...] = ()
    effects: Effects = frozenset()
    done: frozenset[int] = frozenset()
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One lane of an address: `valid` unless gated off or Invalid, in which case it is nowhere. `lane` is the lane of an element
    that is a vector.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    valid: Expr
    defined: Expr
    lane: int = 0

    @property
    def part(self) -> tuple[int, ...]:
        """The part of a name that tells its symbols from those of the first lane of an element."""
        return (self.lane,) if self.lane else ()


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A range: its variable and its end. `name` is what the rule calls it, if anything; `counted` where the rule names its end;
    `kind` the name of its kind, or the rule's name for that, "" where the rule has none; `is_axis` False where it is known to be
    no axis.

    Two are one loop if they have one variable, whatever they are called.
    """

    node: Node
    end: Node | None
    unknown: Symbol
    name: str = ""
    counted: bool = False
    kind: str = ""
    is_axis: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loop) and self.node is other.node

    def __hash__(self) -> int:
        return id(self.node)


@dataclass(frozen=True, slots=True)
class Loops:
    """A sequence of ranges of unknown length. `name` is what the rule calls it, if anything."""

    unknown: Symbol
    name: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """One Reduce: the state of its accumulator, the value of its body, its op, the loops it closes."""

    op: str
    dtype: str
    state: Term
    body: Term
    loops: tuple[Any, ...]
