"""Users' rules in the pipeline: appended to a stage, they are tried after the stage's own.

They apply inside a `with` block, in this thread or task, and are part of the key of the kernel cache.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Final

from morok.arguments import instance, whole
from morok.caller import caller
from morok.dialect import built_in
from morok.errors import UsageError
from morok.rewrite import gate
from morok.rewrite.files import dialect_digest
from morok.rewrite.ruleset import RuleSet

LAST: Final = 20  # from stage 21 on a program is a list of instructions
_appended: Final = contextvars.ContextVar[tuple[tuple[int, "RuleSet"], ...]](
    "morok rules appended to stages", default=()
)


@contextlib.contextmanager
def append_rules(stage: int, rules: RuleSet) -> Iterator[None]:
    """A `with` block in which every kernel is compiled with `rules` appended to stage `stage` of the pipeline.

    They are tried after the stage's own groups, in the stage's direction, until none fires. UsageError for a stage that
    rewrites no graph, for rules over other nodes than UOps, and for rules that need a context; UnprovedRuleError for a
    rule that no ledger records as proved.

    >>> with morok.append_rules(8, morok.rewrite.library.group("identity_and_zero")):
    ...     (Tensor([1, 2]) + 0).tolist()
    [1, 2]
    """
    if not 1 <= whole(stage, "the stage") <= LAST:
        raise UsageError(
            f"no rules can be appended to stage {stage}",
            place=caller(),
            expected=f"a stage from 1 to {LAST}: `morok pipeline`",
        )
    admit(rules)
    token = _appended.set((*_appended.get(), (stage, rules)))
    try:
        yield
    finally:
        _appended.reset(token)


def admit(rules: RuleSet) -> None:
    """Check that a stage can use these rules. UsageError for rules over other nodes than UOps, and for rules that need a context;
    UnprovedRuleError for a rule that no ledger records as proved.
    """
    instance(rules, RuleSet, "the second argument of append_rules()", "rules, as load_rules(..) returns them")
    if not built_in(rules.dialect):
        raise UsageError(
            f"rules of dialect {rules.dialect.name} cannot rewrite UOps", expected="rules of dialect morok"
        )
    if rules.has_context:
        raise UsageError(
            "rules with a @context cannot be appended to a stage", expected="rules that need no context object"
        )
    gate.admit_proved(rules, dialect_digest(rules.dialect))


def appended_to(stage: int) -> RuleSet | None:
    """The rules currently appended to this stage; None if there are none."""
    found = [rules for number, rules in _appended.get() if number == stage]
    if not found:
        return None
    out = found[0]
    for more in found[1:]:
        out = joined(out, more)
    return out


def appended_key() -> Hashable:
    """The currently appended rules, as part of a cache key."""
    return tuple((stage, rules.identity) for stage, rules in _appended.get())


@lru_cache(maxsize=128)
def joined(first: RuleSet, second: RuleSet) -> RuleSet:
    """`first + second`, cached, so that its matcher is compiled once."""
    return first + second
