"""Proofs at every size of what is loaded and stored: the wide accesses of the library, and false twins of them."""

from __future__ import annotations

import re

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.rewrite.library import rules_dir
from tests.prove.every_size import shown

FILE = (rules_dir() / "vector" / "devectorize.rules").read_text()
TEXT = re.sub(r"\n {8,}", " ", re.sub(r"(?<=[(\[])\n {8,}", "", FILE))  # each part of a rule on one line, however long


def rule(name: str, text: str = TEXT) -> CheckedRule:
    return next(r for r in check_text(text).rules() if r.name == f"wide_accesses.{name}")


def changed(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def without(contract: str) -> str:
    """The rule file less a line of a contract."""
    return changed((f"    ensures {contract}\n", ""))


ACCESSES = (
    "load",
    "load_gates",
    "load_chunks",
    "load_bases",
    "store",
    "store_gates",
    "store_chunks",
    "store_last",
    "store_last_gates",
)
ORDER = (
    "all(any(any(sum(len(rs[q]) for q in 0..r) + j == order[k] and at[rs[r][j]] == at[k] and (len(same) == 0 or same[rs[r][j]]"
    " == same[k]) for j in 0..len(rs[r])) for r in 0..len(rs)) for k in 0..len(at))"
)
RUN = "all(all(at[ls[j]] == at[ls[0]] + j for j in 0..len(ls)) for ls in rs)"
FALSE = {
    "another place": (
        "load",
        changed(("indices: [Add(base, at[ls[0]])] }, dtype", "indices: [Add(base, at[ls[0]] + 1)] }, dtype")),
    ),
    "lanes that no contract places": ("load", without(ORDER)),
    "runs that are none": ("load", without(RUN)),
    "runs of places that are none": ("store", without(RUN)),
    "gates that are not alike": ("load_gates", without("all(g[k] == g[same[k]] for k in 0..len(same))")),
    "the next elements": ("load_chunks", changed(("indices: [Add(i, ls[0])] }, dtype", "indices: [Add(i, ls[0] + 1)] }, dtype"))),
    "any lane of one place": (
        "store",
        changed(("at[l] == at[k] and l >= k and (len(same)", "at[l] == at[k] and (len(same)")),
    ),
    "a place that is stored twice": (
        "store",
        without("all(sum(sum(1 for l in ls if at[l] == at[k]) for ls in rs) == 1 for k in 0..len(at))"),
    ),
    "the last lane not behind the others": (
        "store_last",
        changed(("Store { index: Index { buffer: After(b, others), indices", "Store { index: Index { buffer: b, indices")),
    ),
    "a lane for the last": ("store_last", changed(("indices: [Gep(i, [last])] }, value", "indices: [Gep(i, [0])] }, value"))),
    "lanes in any order": (
        "load_bases",
        without(
            "all(any(any(sum(len(rs[q]) for q in 0..r) + j == order[k] and rs[r][j] == k for j in 0..len(rs[r]))"
            " for r in 0..len(rs)) for k in 0..len(i))"
        ),
    ),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", ACCESSES)
def test_wide_accesses_are_shown(name: str) -> None:
    assert shown(rule(name))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("what", FALSE)
def test_false_twins_are_not(what: str) -> None:
    assert not shown(rule(*FALSE[what]))
