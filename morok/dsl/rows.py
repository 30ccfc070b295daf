"""Rows: the tests that a matcher makes before a rule applies, and the values of the rule's names then.

A row is a conjunction. Nodes are named by their path from the root: (0, 1) is operand 1 of operand 0. Behind a sequence the
place of an operand is known only once the sequence's length is: a step of a path then says how far it lies behind that sequence
(`behind`), and the matcher tries the sequence's lengths, a `Gap`, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from morok.dialect import Dialect
from morok.dsl.checked import Ty

Path = tuple[int, ...]

_BEHIND = 1 << 16  # steps from here on are relative to the end of a sequence
_GAP = re.compile(r"_gap(\d+)")


def behind(gap: int, offset: int) -> int:
    """The step to the operand that stands so far behind the sequence of this number."""
    return (gap + 1) * _BEHIND + offset


def step_name(step: int) -> str:
    """The part of a variable's name for one step."""
    if step < _BEHIND:
        return str(step) if step >= 0 else f"m{-step}"
    return f"g{step // _BEHIND - 1}p{step % _BEHIND}"


def step_index(step: int) -> str:
    """A step as an index into operands, as Python text."""
    if step < _BEHIND:
        return str(step)
    offset = step % _BEHIND
    return gap_name(step // _BEHIND - 1) + (f" + {offset}" if offset else "")


def gap_name(number: int) -> str:
    """The variable that holds where the sequence of this number ends."""
    return f"_gap{number}"


@dataclass(frozen=True, slots=True)
class Gap:
    """A sequence of operands of the node at `path` that others stand behind.

    first   which operand it begins with
    after   how many operands stand behind it, at least
    end     behind which operand the list ends: a Python expression, in which {0} is that node
    pinned  no sequence ends the list, so that this one ends in one place
    """

    path: Path
    first: int
    after: int
    end: str
    pinned: bool


# Tests. Nothing is tested before what it reads is known to be there: a row lists them in an order that is safe.


@dataclass(frozen=True, slots=True)
class OpTest:
    """The node at `path` has that op."""

    path: Path
    op: str

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass(frozen=True, slots=True)
class TypeTest:
    """The element dtype of the node at `path` is one of `allowed`; `known` holds the ones it can be at all, if that is known."""

    path: Path
    allowed: frozenset[str]
    known: frozenset[str] | None

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass(frozen=True, slots=True)
class ValidTest:
    """The node at `path` cannot be Invalid."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """The constant at `path` is this one. kind: "zero" "one" "true" "false" "int" "float"; text: its value, by repr()."""

    path: Path
    kind: str
    text: str
    dtypes: frozenset[str]

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass(frozen=True, slots=True)
class CodeTest:
    """Any other: a Python expression, in which {0} is the node at paths[0], {v0} its value as a constant, {table} the set whose
    members `table` lists.
    """

    paths: tuple[Path, ...]
    template: str
    table: str = ""


Test = OpTest | TypeTest | ValidTest | LiteralTest | CodeTest


def gaps_before(test: Test) -> int:
    """The number of sequences whose ends must be known before the test can be made."""
    known = [step // _BEHIND for path in test.paths for step in path]
    if isinstance(test, CodeTest):
        known += [int(n) + 1 for n in _GAP.findall(test.template)]
    return max(known, default=0)


def looks_at_sequence(test: Test) -> bool:
    """True if the test is about the operands of a sequence that others stand behind."""
    return isinstance(test, CodeTest) and _GAP.search(test.template) is not None


# What names stand for.


@dataclass(frozen=True, slots=True)
class BoundNode:
    path: Path


@dataclass(frozen=True, slots=True)
class BoundValue:
    """The value of the constant at `path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class BoundNodes:
    """Operands of the node at `path`, from `start` to `stop` as in a slice."""

    path: Path
    start: int
    stop: int | None

    @property
    def span(self) -> str:
        """The slice that takes them out of the node's operands; "" for all of them."""
        if self.stop is None:
            return f"[{self.start}:]" if self.start else ""
        return f"[{self.start}:{self.stop}]"


@dataclass(frozen=True, slots=True)
class BoundCode:
    """A Python expression of the node at `path`, written {0} in it."""

    path: Path
    template: str


Bound = BoundNode | BoundValue | BoundNodes | BoundCode


@dataclass(frozen=True, slots=True)
class Several:
    """Operands of the node at `path` that are all of one type: `template` is a Python expression, in which {0} is that node."""

    path: Path
    template: str
    type: Ty


@dataclass(frozen=True, slots=True)
class Variant:
    """One row.

    tests   all of which must hold
    names   what the pattern binds
    types   the dtype of each node of the pattern, by path
    ops     the op of each node that the pattern names one for
    several the sequences of operands whose elements have a type
    gaps    the sequences behind which operands stand, by their numbers
    unnamed what stands where the pattern has a name without a meaning: operands and fields, but single nodes
    """

    tests: tuple[Test, ...] = ()
    names: Mapping[str, Bound] = field(default_factory=dict)
    types: Mapping[Path, Ty] = field(default_factory=dict)
    ops: Mapping[Path, str] = field(default_factory=dict)
    leaves: tuple[tuple[Path, str], ...] = ()  # variables that must not be Invalid, each time they stand
    several: tuple[Several, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unnamed: tuple[BoundNodes | BoundCode, ...] = ()

    def plus(self, *tests: Test) -> Variant:
        return replace(self, tests=(*self.tests, *tests))

    def bind(self, name: str, bound: Bound, same: str) -> Variant:
        """With `name` bound; where it was bound before, with a test that both are the same. `same` compares two nodes."""
        if name.startswith("_"):
            return replace(self, unnamed=(*self.unnamed, bound)) if isinstance(bound, (BoundNodes, BoundCode)) else self
        old = self.names.get(name)
        if old is None:
            return replace(self, names={**self.names, name: bound})
        if old == bound:
            return self
        return self.plus(CodeTest((old.path, bound.path), same.format(_node_text(old, 0, name), _node_text(bound, 1, name))))


def _node_text(bound: Bound, number: int, name: str) -> str:
    """The one node that a name stands for, where the node at its path is number `number` of a template."""
    if isinstance(bound, BoundCode):
        return bound.template.replace("{0}", hole(number))
    assert isinstance(bound, BoundNode), f"{name} is bound twice"
    return hole(number)


class Accessors:
    """Generated code that reads the nodes of a dialect: by its templates where it has some, else by its methods."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.inline = dialect.inline
        # op keys and dtypes of a hash-consed dialect are single objects too
        self.equal = "is" if getattr(dialect, "hash_consed", False) else "=="

    def _of(self, name: str, method: str, **values: str) -> str:
        template = self.inline.get(name)
        return method if template is None else template.format(**values)

    def opkey(self, n: str) -> str:
        return self._of("opkey", f"_d.opkey({n})", n=n)

    def operands(self, n: str) -> str:
        return self._of("operands", f"_d.operands({n})", n=n)

    def same(self, a: str, b: str) -> str:
        return self._of("same", f"_d.same({a}, {b})", a=a, b=b)

    def type(self, n: str) -> str:
        return self._of("type", f"_d.type({n})", n=n)

    def scalar(self, n: str) -> str:
        return self._of("scalar", self.type(n), n=n)

    def lanes(self, n: str) -> str:
        return self._of("lanes", "1", n=n)

    def value(self, n: str) -> str:
        return self._of("const_value", f"_d.const_value({n})", n=n)

    def field(self, op: str, n: str, name: str) -> str:
        template = self.inline.get(f"attr.{op}.{name}") or self.inline.get(f"attr.{name}")
        return f"_d.attr({n}, {name!r})" if template is None else template.format(n=n)

    @property
    def const_op(self) -> str | None:
        return self.inline.get("const_op")


def key_name(op: str) -> str:
    """The name of the key of an op in generated code."""
    return f"K_{op}"


def hole(i: int) -> str:
    """Where a template names its node number i."""
    return "{" + str(i) + "}"
