"""Clauses: the constraints that a match must meet, and the bindings of its names.

A clause is a conjunction. Nodes are named by their path from the root: (0, 1) is operand 1 of operand 0. The place of an operand
behind a sequence depends on the sequence's length: such a step of a path counts from the end of the sequence (`behind`), and the
matcher tries the lengths of the sequence, a `Gap`, one by one.

Constraints are hash-consed: rules with the same condition on the same node share one object.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from morok.dialect import Branches, Dialect, Tensors
from morok.dsl.checked import Ty
from morok.dsl.match.access import Access
from morok.dsl.match.code import Code

Path = tuple[int, ...]

_BEHIND: Final = 1 << 16  # steps from here on count from the end of a sequence


def behind(gap: int, offset: int) -> int:
    """The step to the operand at this offset from the end of a sequence, given the sequence's number."""
    return (gap + 1) * _BEHIND + offset


def ends_before(path: Path) -> int:
    """The number of sequences whose ends decide the place of the node at `path`."""
    return max((step // _BEHIND for step in path), default=0)


def step_offset(step: int) -> tuple[int | None, int]:
    """(number of a sequence, offset from its end) of a step; (None, offset) for a step from the first operand."""
    return (None, step) if step < _BEHIND else (step // _BEHIND - 1, step % _BEHIND)


def gap_name(number: int) -> str:
    """The variable that holds the end of the sequence with this number."""
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
    """A sequence of operands of the node at `path`, with other operands behind it.

    first   the index of its first operand
    after   the least number of operands behind it
    end     the index behind the last operand of the list
    pinned  no sequence ends the list, so that this one has one possible end
    """

    path: Path
    first: int
    after: int
    end: ast.expr
    pinned: bool


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A condition on a match: one object for all clauses that have it.

    key        clauses share tests with equal keys: for the op of a node the key is its path alone, since one switch tests all
               ops; None if a test is not worth sharing
    condition  its code
    paths      the paths of the nodes that it reads
    values     the paths of the constants whose values it reads, a subset
    op         the op of the node, if that is the condition
    ends       the number of sequences whose ends it depends on
    of_gap     it reads a sequence with other operands behind it
    guards     constraints on nodes below its own must be tested after it
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
    ends    the number of sequences whose ends it depends on
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

    constraints  all must hold; each comes after the ones that show that the nodes it reads exist
    names   what the pattern binds
    types   the dtype of each node of the pattern, by path
    ops     the op of each node that the pattern names one for
    leaves  (path, name) of each variable that must not be Invalid, for every occurrence
    several the sequences of operands whose elements have a type
    gaps    the sequences with operands behind them, by their numbers
    unnamed the sequences of operands and the fields that the pattern matches with a name that begins with `_`
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
        self.branches, self.among = (
            (dialect.branches, dialect.among) if isinstance(dialect, Branches) else (frozenset[str](), frozenset[str]())
        )
        self.of_axes = dialect.of_axes if isinstance(dialect, Tensors) else None
        self._made: dict[tuple[object, ...], Constraint] = {}
        self.tables: dict[ast.expr, str] = {}  # sets and mappings that conditions look values up in, and their names

    def node(self, path: Path) -> ast.expr:
        return self.code.name(node_name(path))

    def value(self, path: Path) -> ast.expr:
        return self.code.name(value_name(path))

    def op(self, path: Path, op: str) -> Constraint:
        """The constraint that the node at `path` is of this op."""
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
        """The constraint with any other condition, which reads the nodes at these paths; `ends`: the number of sequences whose
        ends it depends on besides.
        """
        key = (condition, paths, ends, guards)
        found = self._made.get(key)
        if found is None:
            before = max(ends, *map(ends_before, paths))
            found = Constraint(
                condition if shared else None, condition, paths, tuple(values), None, before, bool(ends), guards
            )
            self._made[key] = found
        return found

    def same(self, a: Binding, b: Binding) -> Constraint:
        """The constraint that two bindings are the same node."""
        first, second = sorted((a, b), key=lambda bound: bound.path)
        condition = self.access.same(first.code, second.code)
        return self.constraint(condition, first.path, second.path, ends=max(a.ends, b.ends), guards=True)

    def bound(self, clause: Clause, name: str, binding: Binding) -> Clause:
        """The clause with `name` bound; if it is bound already, with the constraint that both are the same node."""
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
