"""Clauses: the constraints that a match must meet, and the values that its names are bound to then.

A clause is a conjunction. Nodes are named by their path from the root: (0, 1) is operand 1 of operand 0. Behind a sequence the
place of an operand is known only once the sequence's length is: a step of a path then says how far it lies behind that sequence
(`behind`), and the matcher tries the sequence's lengths, a `Gap`, one by one.

Constraints are hash-consed: rules that ask the same of the same node share one object.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from morok.dialect import Dialect
from morok.dsl.checked import Ty
from morok.dsl.match.access import Access
from morok.dsl.match.code import Code

Path = tuple[int, ...]

_BEHIND: Final = 1 << 16  # steps from here on are relative to the end of a sequence


def behind(gap: int, offset: int) -> int:
    """The step to the operand that stands so far behind the sequence of this number."""
    return (gap + 1) * _BEHIND + offset


def ends_before(path: Path) -> int:
    """The number of sequences whose ends must be known before the node at `path` is."""
    return max((step // _BEHIND for step in path), default=0)


def step_offset(step: int) -> tuple[int | None, int]:
    """The number of the sequence that a step is behind, None for a step from the first operand, and how far."""
    return (None, step) if step < _BEHIND else (step // _BEHIND - 1, step % _BEHIND)


def gap_name(number: int) -> str:
    """The variable that holds where the sequence of this number ends."""
    return f"_gap{number}"


def _step_name(step: int) -> str:
    gap, offset = step_offset(step)
    if gap is not None:
        return f"g{gap}p{offset}"
    return str(step) if step >= 0 else f"m{-step}"


@functools.cache
def node_name(path: Path) -> str:
    """The variable that holds the node at `path`: n, n0, n0_1, ng0p1."""
    return "n" + "_".join(map(_step_name, path))


@functools.cache
def value_name(path: Path) -> str:
    """The variable that holds the value of the constant at `path`."""
    return "v" + node_name(path)[1:]


@dataclass(frozen=True, slots=True)
class Gap:
    """A sequence of operands of the node at `path` that others stand behind.

    first   which operand it begins with
    after   how many operands stand behind it, at least
    end     behind which operand the list ends
    pinned  no sequence ends the list, so that this one ends in one place
    """

    path: Path
    first: int
    after: int
    end: ast.expr
    pinned: bool


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A condition on a match: one object for all clauses that have it.

    key        by which clauses share a test: for the op of a node its path alone, since one look decides for all ops; None where
               a test is not worth sharing
    condition  its code
    paths      of the nodes that it reads
    values     of these the constants whose values it reads
    op         the op of the node, where that is the condition
    ends       how many sequences must have ended before it can be tested
    of_gap     it is about the operands of a sequence that others stand behind
    """

    key: object
    condition: ast.expr
    paths: tuple[Path, ...]
    values: tuple[Path, ...] = ()
    op: str | None = None
    ends: int = 0
    of_gap: bool = False
    guards: bool = True


@dataclass(frozen=True, slots=True)
class Binding:
    """The value of a name: a node, the value of a constant, or something read from the node at `path`: operands, a static field.

    code    its expression
    ends    how many sequences must have ended before it can be read
    """

    kind: Literal["node", "value", "read"]
    path: Path
    code: ast.expr
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Several:
    """Operands of the node at `path` that are all of one type."""

    path: Path
    code: ast.expr
    type: Ty
    ends: int = 0


class Clause(NamedTuple):
    """One conjunction of a rule: an order of commutative operands, and a choice of alternatives.

    constraints  all of which must hold; nothing is tested before what it reads is known to be there
    names   what the pattern binds
    types   the dtype of each node of the pattern, by path
    ops     the op of each node that the pattern names one for
    leaves  the variables that must not be Invalid, each time they stand
    several the sequences of operands whose elements have a type
    gaps    the sequences behind which operands stand, by their numbers
    unnamed what stands where the pattern has a name without a meaning: operands and fields, but single nodes
    """

    constraints: tuple[Constraint, ...] = ()
    names: Mapping[str, Binding] = MappingProxyType({})
    types: Mapping[Path, Ty] = MappingProxyType({})
    ops: Mapping[Path, str] = MappingProxyType({})
    leaves: tuple[tuple[Path, str], ...] = ()
    several: tuple[Several, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unnamed: tuple[Binding, ...] = ()

    def plus(self, *constraints: Constraint) -> Clause:
        return self._replace(constraints=(*self.constraints, *constraints)) if constraints else self


class Clauses:
    """The expressions and constraints of one matcher, each made once."""

    def __init__(self, dialect: Dialect) -> None:
        self.code = Code()
        self.access = Access(dialect, self.code)
        self._made: dict[tuple[object, ...], Constraint] = {}
        self.tables: dict[ast.expr, str] = {}  # sets and mappings that conditions look values up in, and their names

    def node(self, path: Path) -> ast.expr:
        return self.code.name(node_name(path))

    def value(self, path: Path) -> ast.expr:
        return self.code.name(value_name(path))

    def op(self, path: Path, op: str) -> Constraint:
        """The node at `path` is of this op."""
        found = self._made.get((path, op))
        if found is None:
            condition = self.access.is_op(self.node(path), op)
            found = Constraint(("op", path), condition, (path,), op=op, ends=ends_before(path))
            self._made[path, op] = found
        return found

    def constraint(
        self,
        condition: ast.expr,
        *paths: Path,
        values: Sequence[Path] = (),
        ends: int = 0,
        shared: bool = True,
        guards: bool = False,
    ) -> Constraint:
        """Any other condition, which reads the nodes at these paths; `ends`: what is read besides of sequences that have
        ended.
        """
        key = (condition, paths, ends, guards)
        found = self._made.get(key)
        if found is None:
            before = max(ends, *map(ends_before, paths))
            found = Constraint(condition if shared else None, condition, paths, tuple(values), None, before, bool(ends), guards)
            self._made[key] = found
        return found

    def same(self, a: Binding, b: Binding) -> Constraint:
        """Two names stand for one node."""
        first, second = sorted((a, b), key=lambda bound: bound.path)
        condition = self.access.same(first.code, second.code)
        return self.constraint(condition, first.path, second.path, ends=max(a.ends, b.ends), guards=True)

    def bound(self, clause: Clause, name: str, binding: Binding) -> Clause:
        """With `name` bound; where it was bound before, with the constraint that both are the same."""
        if name.startswith("_"):
            return clause._replace(unnamed=(*clause.unnamed, binding)) if binding.kind == "read" else clause
        old = clause.names.get(name)
        if old is None:
            return clause._replace(names={**clause.names, name: binding})
        return clause if old == binding else clause.plus(self.same(old, binding))

    def node_bound(self, path: Path) -> Binding:
        return Binding("node", path, self.node(path))

    def table(self, kind: str, made: ast.expr) -> ast.expr:
        """The name of a set or a mapping that is made once."""
        return self.code.name(self.tables.setdefault(made, f"{kind}_{len(self.tables)}"))

    def members(self, items: Iterable[ast.expr]) -> ast.expr:
        """The name of a set of these."""
        return self.table("T", self.code.call("frozenset", self.code.tuple_of(tuple(items))))

    def dtypes(self, names: Iterable[str]) -> ast.expr:
        """The name of a set of dtypes."""
        return self.members(map(self.access.dtype, sorted(names)))


__all__ = [
    "Binding", "Clause", "Clauses", "Constraint", "Gap", "Path", "Several", "behind", "ends_before", "gap_name", "node_name",
    "step_offset", "value_name",
]  # fmt: skip
