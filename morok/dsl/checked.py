"""A checked rule: the one tree from which both the matcher and the proof are made.

The checker (`morok.dsl.check`) expands templates, resolves names and infers dtypes; a rule with a mistake never becomes a
CheckedRule.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from morok.dialect import Dialect
from morok.dsl import syntax as S


class Sort(enum.Enum):
    """The kind of thing that a name of a rule denotes."""

    NODE = "node"  # a node of the graph
    NODES = "nodes"  # a sequence of nodes
    VALUE = "value"  # a compile-time value: a number or a bool
    VALUES = "values"  # a sequence of such
    DTYPE = "dtype"  # a dtype variable
    OP = "op"  # the value of a field that holds an op (Reduce's `op`)
    OTHER = "other"  # another static field, passed through unread


@dataclass(frozen=True, slots=True)
class Ty:
    """The dtype of a node in a rule: an element, and lanes.

    element  a dtype variable "$1" or "T" (a key of CheckedRule.domains), or a dtype's name when `fixed`; "any", fixed, where no
             op of the rule depends on the dtype (the operand of End, of Reshape): void, pointers and images included
    lanes    a number; a name ("n", or "$l1" for implicit lanes); 1 for scalars. Nodes with the same name have equally many:
             pointwise ops imply that of their operands and result (but not of the condition of a Where, which may be scalar),
             elsewhere the matcher tests it
    pointer  the node is a pointer to such elements (`x: ptr(T)`)
    place    the node is storage of such elements, a pointer or a buffer; its own dtype does not matter
    """

    element: str
    fixed: bool = False
    lanes: int | str = 1
    pointer: bool = False
    place: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """A name bound by a rule.

    type        the dtype of a NODE, or of the elements of NODES; for a VALUE read from a constant, the constant's dtype;
                None for any other VALUE: a mathematical integer or a bool (let, fields)
    invalid_ok  the node may be Invalid (`x: index?`)
    constant    the node is a constant (`c @const(v)`), or the value came from one
    """

    name: str
    sort: Sort
    type: Ty | None = None
    invalid_ok: bool = False
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """One choice of scalar dtype for every dtype variable at which the whole rule type-checks."""

    dtypes: Mapping[str, str]

    def element(self, ty: Ty) -> str:
        return ty.element if ty.fixed else self.dtypes[ty.element]

    def __str__(self) -> str:
        return ", ".join(f"{k}={v}" for k, v in self.dtypes.items())


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule without mistakes, its names resolved and its dtypes inferred.

    name        "group.rule", "group.rule.Add" from a template, with its pack's name in front outside the built-in rules
    own         the name without the pack's: the rule's key in the ledger, the same for every way to load its file
    syntax      after template expansion, and made explicit: every op name is an op of the dialect; `Invalid` is POp("Invalid") or
                ECall("Invalid"); the B of `Cast(x, B)` is a PType or EType, as is every dtype name in an expression; an op
                that is given fields is a PStruct or EStruct, so a POp or ECall holds operands only (and that last dtype); in a
                struct a field that is a fixed value holds an Expr, one that binds holds a PVar, a list of operands a PList
    bindings    every name bound by the pattern and by `let`
    types       dtype of every pattern and expression node of `syntax` that is a node or a constant, by `id(node)` of the
                syntax node (the rule keeps its syntax alive, so ids are stable)
    sorts       the sort of each expression of the clauses and the target, by id
    unbounded   ids of the expressions whose value may be an infinite bound of a node, or a sequence of such bounds
    domains     the scalar dtype names that each dtype variable may take
    instances   every admitted choice, in a fixed order; never empty
    externs     the helpers it calls, by name
    pointwise   every op in it is pointwise: it holds lane by lane, at any number of lanes
    text        the whole text of its file when it was checked: the file may have changed since
    """

    name: str
    own: str
    file: str
    line: int
    dialect: Dialect
    syntax: S.Rule
    bindings: Mapping[str, Binding]
    types: Mapping[int, Ty]
    sorts: Mapping[int, Sort]
    domains: Mapping[str, tuple[str, ...]]
    instances: tuple[Instance, ...]
    externs: Mapping[str, S.Extern] = field(default_factory=dict)
    unbounded: frozenset[int] = frozenset()
    helpers: str | None = None
    context: str | None = None
    pointwise: bool = True
    text: str = field(default="", repr=False, compare=False)

    def type_of(self, node: S.Syntax) -> Ty:
        return self.types[id(node)]

    def own_lanes(self, lanes: int | str) -> bool:
        """True if the elements of a sequence with this number of lanes may differ in it: the rule gives no number, and equates it
        with that of no other node of the pattern.
        """
        if isinstance(lanes, int) or not lanes.startswith("$"):
            return False
        types = (self.types.get(id(node)) for node in S.walk(self.syntax.pattern))
        return sum(ty is not None and ty.lanes == lanes for ty in types) <= 1

    def sort_of(self, node: S.Syntax) -> Sort:
        return self.sorts[id(node)]


@dataclass(frozen=True, slots=True)
class CheckedGroup:
    """The rules of a group, in priority order."""

    name: str
    doc: str
    file: str
    rules: tuple[CheckedRule, ...]
    context: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    path: str
    syntax: S.File
    groups: tuple[CheckedGroup, ...]
    text: str = field(default="", repr=False)

    def rules(self) -> Iterator[CheckedRule]:
        for g in self.groups:
            yield from g.rules
