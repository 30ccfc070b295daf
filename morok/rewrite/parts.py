"""The parts of rule sets: rules that stand together, and their admission."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from morok.caller import caller
from morok.dialect import Dialect
from morok.errors import UsageError

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule
    from morok.dsl.extent import Limits


class Standing(enum.Enum):
    """The reason that rules may fire (morok.rewrite.gate)."""

    ASK = "the ledger is asked when they become a matcher"
    ADMITTED = "the gate has let them pass"
    UNPROVED = "their maker wrote unproved=True"


class Part(Protocol):
    """Rules that a rule set holds together: one group of a file, or a list of rules.

    standing  changed by the gate alone
    limits    of rules what they do beyond the extents of their proofs, by the rules' places in the part, as two of them may have
              one name: known where the gate has let them pass
    identity  equal for parts that rewrite alike; `cache` is the same for use across processes, "" where there is none
    """

    standing: Standing
    limits: Mapping[int, Limits]

    @property
    def dialect(self) -> Dialect: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def has_context(self) -> bool: ...
    @property
    def identity(self) -> Hashable: ...
    @property
    def cache(self) -> str: ...
    def rules(self) -> Sequence[CheckedRule]: ...
    def mentions(self, op: str) -> bool:
        """False if no rule of these names that op."""


def mentions(rule: CheckedRule, op: str) -> bool:
    """True if the op of that name is in the rule's pattern, a clause or its target."""
    from morok.dsl.syntax import ops_named  # lazy: rules that are compiled run without it

    return op in ops_named(rule.syntax.pattern, *rule.syntax.clauses, rule.syntax.target)


def names_in_pattern(rule: CheckedRule, op: str) -> bool:
    """True if the op of that name is in the rule's pattern."""
    from morok.dsl.syntax import ops_named  # lazy: as above

    return op in ops_named(rule.syntax.pattern)


NO_LIMITS: Final[Mapping[str, Limits]] = {}


def placed(names: Sequence[str], limits: Mapping[str, Limits]) -> dict[int, Limits]:
    """The limits of rules by their places, out of those by name: of names that are one rule's each."""
    return {i: limits[name] for i, name in enumerate(names) if name in limits} if limits else {}


def several_dialects(one: Dialect, other: Dialect) -> UsageError:
    """The error of rules of two dialects in one set."""
    what = f"rules of dialect {one.name} and of {other.name} cannot be put together"
    again = one.name == other.name
    hint = f"{one.name} was registered again after some of the rules were loaded: load these again" if again else ""
    return UsageError(what, place=caller(), expected="rules of one dialect", hint=hint)


class Listed:
    """A part made of checked rules at hand. `limits`: by the rules' names."""

    cache = ""

    def __init__(
        self, rules: Sequence[CheckedRule], standing: Standing = Standing.ASK, limits: Mapping[str, Limits] = NO_LIMITS
    ) -> None:
        if not rules:
            raise UsageError("a set of no rules", place=caller(), expected="at least one rule")
        self._rules = tuple(rules)
        for rule in self._rules:
            if rule.dialect is not self.dialect:
                raise several_dialects(self.dialect, rule.dialect)
        self.standing = standing
        self.limits: Mapping[int, Limits] = placed(self.names, limits)
        self.identity: Hashable = object()

    @property
    def dialect(self) -> Dialect:
        return self._rules[0].dialect

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self._rules)

    @property
    def has_context(self) -> bool:
        return any(r.context is not None for r in self._rules)

    def rules(self) -> Sequence[CheckedRule]:
        return self._rules

    def mentions(self, op: str) -> bool:
        return any(mentions(r, op) for r in self._rules)
