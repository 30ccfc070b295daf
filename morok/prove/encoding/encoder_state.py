"""The state that every part of a reading shares: the rule, the encoding, bindings, assumptions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from collections.abc import Sequence as Seq
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.dsl.functions import Function
from morok.dsl.special_ops import invalid_op
from morok.dsl.values import Steps
from morok.prove import stand_ins
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.encoding.obligation import Choices, Obligation
from morok.prove.kinds import Constant, Node, Sequence, Truth
from morok.prove.open_operands import completed
from morok.prove.semantics.numbers import Arithmetic, Num
from morok.prove.semantics.term import Term, both, is_true
from morok.prove.smt import TRUE, Expr

# Items that one reading of a rule goes over: each becomes terms of the solver, once for each encoding. The built-in rules, whose
# sequences have a few items, need fewer; nothing is said of a rule that takes more.
MOST_STEPS: Final = 1 << 11


@once_a_rule
def kept_ops(rule: CheckedRule) -> frozenset[str]:
    """The ops that a rule leaves applications of: in its target, in the nodes that clauses and contracts make, in the parts of
    its pattern that any of these names, and below the pattern's root, where other nodes of the graph may use them.

    The root itself goes away wherever it is used. Where no application is left, whatever the op's tolerance permits may be taken
    for the value of one that goes away; `afn` permits that everywhere.
    """
    if "afn" in rule.syntax.assuming:
        return frozenset()
    promised = (c for e in rule.externs.values() for c in (*e.requires, *e.ensures))
    after = (rule.syntax.target, *rule.syntax.clauses, *promised)
    names = {e.name for e in S.walk(*after) if isinstance(e, S.EName)}
    parts = [p.inner for p in S.walk(rule.syntax.pattern) if isinstance(p, S.PBind) and p.name in names]
    parts += [below for root in _roots(rule.syntax.pattern) for below in S.children(root)]
    made = {e.op if isinstance(e, S.EStruct) else e.name for e in S.walk(*after) if isinstance(e, (S.ECall, S.EStruct))}
    matched = {op for p in S.walk(*parts) if isinstance(p, S.POp) for op in p.ops}
    matched |= {p.op for p in S.walk(*parts) if isinstance(p, S.PStruct)}
    return frozenset((made | matched) & rule.dialect.ops.keys())


def _roots(pattern: S.Syntax) -> list[S.Syntax]:
    """The patterns that match the node itself: each alternative, without the names."""
    if isinstance(pattern, S.PBind):
        return _roots(pattern.inner)
    return [r for o in pattern.options for r in _roots(o)] if isinstance(pattern, S.PAlternatives) else [pattern]


class Reading(ABC):
    """One reading of a rule. `world` is the theory's encoding; `choices` which alternatives the pattern takes.

    unnamed  how many nodes and constants without a name were read so far: each becomes an unknown of its own
    counted  how many bounds were asked of what has no name
    calls    how many calls of extern functions were read
    meanings  what names mean in questions about nodes, other than themselves
    bounded  the bounds that are known to be on their sides of which values
    intervals  the bounds that were asked of nodes, by the words of the questions
    ordered_bounds  that these are in order: needed where nothing says that there is a value between them
    needed  what must hold so that all parts of the expression that is being read have values; None outside of such
    has_value  that the pattern has one, in some lane: a premise of the claim, and of nothing that is done at the match
    steps   what is left of the budget for going over sequences
    """

    def __init__(self, rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> None:
        self.rule = completed(rule)
        self.instance = instance
        self.world = world
        self.world.apart = kept_ops(self.rule)
        self.invalid_op = invalid_op(rule.dialect)
        self.numbers: Arithmetic = world.numbers
        self.choices = choices
        self.names: dict[str, Any] = {}
        self.out = Obligation()
        self.flags = frozenset(rule.syntax.assuming)
        self.side = "pattern"
        self.unnamed = 0
        self.counted = 0
        self.calls = 0
        self.meanings: dict[str, Any] = {}
        self.bounded: set[tuple[Any, ...]] = set()
        self.intervals: dict[Any, dict[str, Num]] = {}
        self.ordered_bounds: list[Expr] = []
        self.needed: list[Expr] | None = None
        self.has_value: Expr = TRUE
        self.steps = Steps(MOST_STEPS)

    def premise(self, *conditions: Expr) -> None:
        for c in conditions:
            if not is_true(c):
                self.out.premises.append(c)
                self.world.hold(c)

    def need(self, *conditions: Expr) -> None:
        """The expression that is being read has a value only where these hold; of a pattern or target, they are premises."""
        if self.needed is None:
            self.premise(*conditions)
        else:
            self.needed.extend(c for c in conditions if not is_true(c))

    def reading(self, read: Callable[[], Any]) -> tuple[Any, Expr]:
        """The result of `read`, and the condition under which all its parts have values; Inapplicable where they never do."""
        outer, self.needed = self.needed, []
        try:
            return read(), both(*self.needed)
        finally:
            self.needed = outer

    def said(self, name: str, *arguments: Any) -> Any:
        """The result of the world's method of that name."""
        return stand_ins.asked(self.world, getattr(self.world, name), *arguments)

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        found: Expr = self.said("equal", dtype, target, pattern)
        return found

    def element(self, ty: Ty) -> str:
        return self.instance.element(ty)

    def dtype_of(self, node: S.Syntax) -> str:
        return self.element(self.rule.type_of(node))

    def lanes_of(self, ty: Ty) -> int:
        """The number of lanes to read a dtype at: a pointwise rule at one."""
        return 1

    def existence(self, v: Any) -> Expr:
        if isinstance(v, (Num, Truth, Constant)):
            return v.exists
        if isinstance(v, Sequence):
            # those exist since they were made
            return both(*(self.existence(i) for i in v.items if not isinstance(i, Sequence)))
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
        """The number of lanes of a node of this kind."""

    @abstractmethod
    def arguments(self, function: Function, operands: Seq[S.Expr]) -> tuple[Any, ...]:
        """The operands of an entry of the table, each of the kind that it takes."""

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
        """The conditions under which two bindings are one node."""
