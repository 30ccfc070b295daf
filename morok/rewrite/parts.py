"""The parts of rule sets: sequences of rules that are admitted together."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from morok.caller import caller
from morok.dialect import Dialect
from morok.errors import UsageError

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule
    from morok.dsl.extent import Extents


class Standing(enum.Enum):
    """The admission of rules by the gate (morok.rewrite.gate)."""

    ASK = "the ledger is asked when they become a matcher"
    ADMITTED = "the gate has let them pass"
    UNPROVED = "their maker wrote unproved=True"


class Part(Protocol):
    """The rules of one group of a file, or of a list, as a part of a rule set.

    standing  the admission of the rules; only the gate changes it
    limits    the extents beyond which rules must not fire, by the rules' positions in the part, because two rules may have the
              same name. Empty until the gate has admitted the rules
    meant     the digest of the dialect when the gate admitted the rules; "" before, and for built-in files
    identity  a key that is equal for parts with the same rules, in this process
    cache     a key that is equal for parts with the same rules in any process; "" if there is none
    """

    standing: Standing
    limits: Mapping[int, Extents]
    meant: str

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
        """True if one of these rules names the op."""


def mentions(rule: CheckedRule, op: str) -> bool:
    """True if the op of this name occurs in the rule's pattern, in a clause or in its target."""
    return op in _ops_named(rule.syntax.pattern, *rule.syntax.clauses, rule.syntax.target)


def names_in_pattern(rule: CheckedRule, op: str) -> bool:
    """True if the op of this name occurs in the rule's pattern."""
    return op in _ops_named(rule.syntax.pattern)


def _ops_named(*parts: Any) -> frozenset[str]:
    from morok.dsl.syntax import ops_named  # lazy: compiled rules run without the syntax module

    return ops_named(*parts)


NO_LIMITS: Final[Mapping[str, Extents]] = {}


def limits_by_position(names: Sequence[str], limits: Mapping[str, Extents]) -> dict[int, Extents]:
    """The limits of rules by position, from limits by name. The names must be distinct."""
    return {i: limits[name] for i, name in enumerate(names) if name in limits} if limits else {}


def several_dialects(one: Dialect, other: Dialect) -> UsageError:
    """The error for rules of two dialects in one set."""
    what = f"one rule set cannot hold rules of dialect {one.name} and of dialect {other.name}"
    again = one.name == other.name
    hint = (
        f"dialect {one.name} was registered again after some of the rules were loaded; load these rules again"
        if again
        else ""
    )
    return UsageError(what, place=caller(), expected="rules of one dialect", hint=hint)


class Listed:
    """A part made from a list of checked rules. `limits` are keyed by rule name; `meant` is "" unless they are admitted."""

    cache = ""

    def __init__(
        self,
        rules: Sequence[CheckedRule],
        standing: Standing = Standing.ASK,
        limits: Mapping[str, Extents] = NO_LIMITS,
        meant: str = "",
    ) -> None:
        if not rules:
            raise UsageError("a set of no rules", place=caller(), expected="at least one rule")
        self._rules = tuple(rules)
        for rule in self._rules:
            if rule.dialect is not self.dialect:
                raise several_dialects(self.dialect, rule.dialect)
        self.standing = standing
        self.meant = meant
        self.limits: Mapping[int, Extents] = limits_by_position(self.names, limits)
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
