"""The values of the parts of a rule: vectors, sequences and lists of axes, of unknown lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from morok.prove import smt
from morok.prove.parametric.laws import NUMBER, VALUE
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Symbol

Lane = Callable[[Expr, Integer], Expr]


Indices = Callable[[Integer], Integer]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A node as a tensor: of so many axes, each of a size, with an element at every index vector.

    element   given the indices, by the number of the axis, and what stands where a padded tensor has no element
    """

    rank: Integer
    size: Callable[[Integer], Integer]
    element: Callable[[Indices, Expr], Expr]


@dataclass(frozen=True, slots=True, eq=False)
class Remaining:
    """The axes of a tensor that are left without some of them, in order.

    rank    the number of all axes
    gone    truth of an axis being none of those that are left
    count   how many are left
    axis    the axis that is left as so many-th
    place   where an axis is among those that are left
    so      the condition that there are such axes
    alone   the axis that alone is gone; None where there may be others
    """

    rank: Integer
    gone: Callable[[Integer], Expr]
    count: Integer
    axis: Callable[[Integer], Integer]
    place: Callable[[Integer], Integer]
    so: Expr = smt.TRUE
    alone: Integer | None = None


@dataclass(frozen=True, slots=True)
class Folding:
    """The way in which values are folded.

    nothing     the fold of no values
    combine     the function of two values that folds are made of, where these may be regrouped; None where they may not
    times       the product that distributes over it
    idempotent  the fold of one value, as often as it may be, is that value
    outward     the functions g for which the fold of all g(x) is g of a fold of all x, each with that fold
    """

    op: str
    dtype: str
    nothing: Expr
    combine: Applicable | None = None
    times: Applicable | None = None
    idempotent: bool = False
    outward: Mapping[Applicable, Callable[[], Folding]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A fold over the axes that are gone of a tensor: of the element at every index along them.

    part    it is a part of a fold that was taken apart
    """

    by: Folding
    kept: Remaining
    size: Indices
    element: Callable[[Indices], Expr]
    part: bool = False
    within: tuple[Expr, ...] = ()
    sides: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Vector:
    """A node: so many lanes, each a term for every iteration.

    uniform   every lane is the same, and any number of lanes may be meant
    axes, inside   what it is unrolled over, and what is unrolled; None where the rule does not ask for that
    fold      the fold over loops, lane by lane, that it is
    tensor    what it is as a tensor; None where the rule does not ask for that
    register  the register of which it is the element
    shared    the storage of which it is a place, or the value there
    of_vectors  the storage of which its lanes are places, if elements there may be vectors: as a value it has more lanes then
    constant  it is a constant, as the rule has it: not a node that has the lanes of one
    waits     the node that it is behind statements, and what closes these: behind others, it is behind all of them
    indexed   the storage, and the indices, that it is the place of
    is_place  its lanes are places, or may be: of what takes, joins or opens places
    held      of a place the value that is there; None of any other node
    looked_at  of a place at one number the condition, lane by lane, that this has a value; true behind a gate that is closed
    """

    count: Integer
    at: Lane
    uniform: bool = False
    axes: tuple[Expr, ...] = ()
    inside: Vector | None = None
    fold: Fold | None = None
    tensor: Tensor | None = None
    register: Register | None = None
    shared: Shared | None = None
    of_vectors: Expr | None = None
    constant: bool = False
    waits: tuple[Vector, tuple[Loops, ...]] | None = None
    indexed: Indexed | None = None
    is_place: bool = False
    held: Callable[[], Vector] | None = None
    looked_at: Vector | None = None


@dataclass(frozen=True, slots=True)
class Indexed:
    """Storage at any number of indices: the storage, what it is in the rule, and the indices, one by one and by sequences."""

    buffer: Vector
    written: Any
    indices: tuple[Items | Vector, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence: so many items, and each by its place."""

    length: Integer
    at: Callable[[Integer], Any]


@dataclass(frozen=True, slots=True)
class AxisList:
    """Lists of axes behind one another."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Datum:
    """The value of a constant, at a dtype."""

    term: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype: its element, and the number of its lanes."""

    element: str
    lanes: Integer


@dataclass(frozen=True, slots=True)
class Loops:
    """Loops that a rule gives one name.

    function   where they are, as far as they are open, at an iteration of the axes around them
    length     how many there are
    idle       closing them changes nothing: they run once, or the hardware runs them
    never      one of them has no iterations
    runs       each of them has an iteration
    trips      how many iterations they have, if that is a number which the rule knows
    open       those of them are meant that close no axes
    """

    name: str
    function: Applicable
    length: Integer
    idle: Expr
    never: Expr
    runs: Expr = smt.FALSE
    trips: Integer | None = None
    open: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """The effects of a statement: at every iteration of the axes around it, so many, each a few terms, within loops.

    Nothing orders the effects of different iterations: a statement is the set of them. Of lanes that are stored to one place the
    last one stays, where these are the lanes of one store.

    opening   the loops that a store closes itself and that may be axes: it is done at all iterations of those
    ordered   the effects are the values of lanes with their places, and what is stored to one place last stays
    grouped   it is several statements
    behind    the statement that is done before
    kept      what it puts into a register, where it is a store to one
    shared    the storage that threads share, where it is a store to that; `fenced`: all of them have come behind it
    """

    count: Integer
    effect: Callable[[Expr, Integer], tuple[Expr, ...]]
    loops: tuple[Loops, ...] = ()
    opening: tuple[Loops, ...] = ()
    ordered: bool = False
    grouped: bool = False
    behind: Statement | None = None
    kept: Kept | None = None
    shared: Shared | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Register:
    """Storage that a helper gives, as it is behind statements and inside of loops.

    unaware   the nodes that know nothing of it
    """

    name: str
    unaware: tuple[Vector, ...]
    behind: tuple[Statement, ...] = ()
    inside: tuple[Loops, ...] = ()


@dataclass(frozen=True, slots=True)
class Shared:
    """Storage that the threads of a block share, with a place for each iteration of a loop that the hardware runs.

    value    what each iteration stores
    again    another loop of as many iterations, which nothing knows of
    filled   truth of all threads having stored, and come to a barrier
    """

    place: Vector
    value: Vector
    loop: Loops
    again: Loops
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Substituted:
    """A node, at the same iteration of another loop."""

    node: Vector
    loop: Loops
    again: Loops


@dataclass(frozen=True, slots=True)
class Kept:
    """A value put into a register."""

    register: Register
    value: Vector


@dataclass(frozen=True, slots=True)
class Fold:
    """The fold that a vector is: by which op, of which dtype, over which loops, of what.

    neighbours   how many lanes of the source are folded to one
    count        how many lanes it has
    result       its value, lane by lane
    nothing      the value of a fold over no iterations
    combine      the function of two values that it folds by
    one          what an iteration adds to a lane
    """

    op: str
    dtype: str
    loops: tuple[Loops, ...]
    source: Vector
    neighbours: Integer
    count: Integer
    result: Lane
    nothing: Expr
    combine: Applicable
    one: Lane


@dataclass(frozen=True, slots=True)
class Branch:
    """An If, which says under what condition the statements behind it are done, or the end of one."""

    condition: Vector
    ends: Branch | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A node as contracts see it: itself, and the numbers or truths that its lanes are at an iteration."""

    node: Vector
    lane: Callable[[Integer], Integer | Datum]


def vector(value: Any) -> Vector:
    """A value in the place of a node; Unsupported for what is none, and for an element that may be a vector."""
    found = place(value)
    if found.of_vectors is not None:
        raise Unsupported("an element of storage whose elements may be vectors: b: ptr(any) has numbers")
    return found


def place(value: Any) -> Vector:
    """A value where a place is read."""
    if isinstance(value, Vector):
        return value
    if isinstance(value, Datum):
        return splat(value.term)
    if isinstance(value, Seen):
        return value.node
    raise Unsupported(f"{type(value).__name__} where a node is read")


def splat(value: Expr) -> Vector:
    """A constant of any number of lanes."""
    return Vector(integer(1), lambda e, lane: value, uniform=True, constant=True)


def zero(dtype: str) -> Vector:
    """The number 0 of a dtype, in any number of lanes."""
    return splat(smt.Const(Symbol("fixed", "zero", dtype), VALUE))


def items(value: Any) -> Items:
    if isinstance(value, Items):
        return value
    if isinstance(value, Seen):
        return Items(value.node.count, value.lane)
    raise Unsupported(f"{type(value).__name__} where a sequence is read")


def number(value: Any) -> Integer:
    if isinstance(value, Seen):
        value = value.lane(integer(0))
    if isinstance(value, Integer):
        return value
    if isinstance(value, Datum) and value.term.head == "apply" and value.term.data is NUMBER:
        return integer(value.term.args[0])
    raise Unsupported(f"{type(value).__name__} where an integer is read")


def axis_list(value: Any) -> AxisList:
    if isinstance(value, AxisList):
        return value
    raise Unsupported(f"{type(value).__name__} where axes are read")
