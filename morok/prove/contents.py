"""The rules of a file, for the ledger: the own name of each, and the digest of its meaning.

It takes parsing to find out; so it is remembered on this machine, by the bytes of the file and all that digests depend on
besides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from morok.prove import fingerprints
from morok.rewrite import store

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule

_GENERATION: Final = 1  # changes with the form of what is remembered


class Entry(NamedTuple):
    """One rule of a file."""

    own: str
    digest: str


def rule_digest(rule: CheckedRule) -> str:
    """A name for exactly this meaning of a rule (morok.prove.digest)."""
    from morok.prove import digest, distributions  # lazy: reads the sources of the prover

    with distributions.at_one_moment():
        return digest.rule_digest(rule)


def of(rules: Iterable[CheckedRule]) -> tuple[Entry, ...]:
    """The entries of these rules. UnprovedRuleError where one was measured in code that unproved rules make."""
    return tuple(Entry(r.own, rule_digest(r)) for r in rules)


def recall(content: bytes, sources: str) -> tuple[Entry, ...] | None:
    """The rules of a file of these bytes; None where this machine has not found out."""
    kept = store.load_json(_key(content, sources))
    return None if kept is None else tuple(Entry(*row) for row in kept)


def keep(content: bytes, sources: str, entries: Iterable[tuple[str, str]]) -> None:
    """Remember which rules are in a file of these bytes."""
    store.save_json(_key(content, sources), list(entries))


def _key(content: bytes, sources: str) -> str:
    return fingerprints.digest(f"contents {_GENERATION} {fingerprints.digest(content)} {sources}")
