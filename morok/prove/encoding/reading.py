"""What every part of a reading shares: the rule, the encoding, what is bound, what is assumed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.prove.encoding.obligation import Choices, Obligation
from morok.prove.kinds import Constant, Node, Sequence, Truth
from morok.prove.semantics.numbers import Arithmetic, Num
from morok.prove.semantics.term import TRUE, Expr, Term, both, is_true


class Reading(ABC):
    """One reading of a rule. `world` is the theory's encoding; `choices` which alternatives the pattern takes.

    unnamed  how many nodes and constants without a name were read so far: each becomes an unknown of its own
    counted  how many bounds were asked of what has no name
    calls    how many calls of extern functions were read
    freedoms  what was asked of which nodes: whether the one is free of the other
    """

    def __init__(self, rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> None:
        self.rule = rule
        self.instance = instance
        self.world = world
        self.numbers: Arithmetic = world.numbers
        self.choices = choices
        self.names: dict[str, Any] = {}
        self.out = Obligation()
        self.flags = frozenset(rule.syntax.assuming)
        self.side = "pattern"
        self.unnamed = 0
        self.counted = 0
        self.calls = 0
        self.freedoms: list[tuple[list[Any], Expr]] = []

    def premise(self, *conditions: Expr) -> None:
        self.out.premises.extend(c for c in conditions if not is_true(c))

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        return self.world.equal(dtype, target, pattern)

    def element(self, ty: Ty) -> str:
        return self.instance.element(ty)

    def dtype_of(self, node: S.Syntax) -> str:
        return self.element(self.rule.type_of(node))

    def lanes_of(self, ty: Ty) -> int:
        """How many lanes to read a dtype at: a pointwise rule at one."""
        return 1

    def existence(self, v: Any) -> Expr:
        if isinstance(v, (Num, Truth, Constant)):
            return v.exists
        if isinstance(v, Sequence):
            return both(*(self.existence(i) for i in v.items))
        return TRUE

    # What the files of this folder need of each other.

    @abstractmethod
    def expression(self, e: S.Expr) -> Any:
        """The compile-time value, or the node, that an expression of a clause stands for."""

    @abstractmethod
    def node(self, e: S.Expr, wanted: str | None) -> Any:
        """A node of the target, or a term that a fact is asked of."""

    @abstractmethod
    def as_node(self, v: Any, dtype: str | None) -> Node:
        """A value in operand position: a constant of the dtype that the position requires."""

    @abstractmethod
    def call(self, e: S.ECall) -> Any:
        """The value of a call: of a fact, a function of compile-time values, or an op."""

    @abstractmethod
    def lane_number(self, lanes: int | str) -> Num:
        """How many lanes a node of this kind has."""

    @abstractmethod
    def item(self, e: S.EIndex) -> Any:
        """One item of a sequence."""

    @abstractmethod
    def items(self, e: S.EList) -> tuple[Any, ...]:
        """The items of a list, spreads and comprehensions in place."""

    @abstractmethod
    def comprehension(self, e: S.EComprehension) -> list[Any]:
        """A value for every item of a sequence that the condition admits."""

    @abstractmethod
    def span(self, e: S.ERange) -> range:
        """The integers from one known end to another."""

    @abstractmethod
    def assume_flags(self, dtype: str, term: Term) -> None:
        """`nnan` and `ninf` are premises about every operand and result."""

    @abstractmethod
    def identical(self, a: Any, b: Any) -> list[Expr]:
        """What it means for two bindings to be one node."""
