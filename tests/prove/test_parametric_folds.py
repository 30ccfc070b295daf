"""Proofs at every size of folds of folds."""

from __future__ import annotations

import pytest

from morok.rewrite.library import rules_dir
from tests.prove.every_size import shown
from tests.prove.test_parametric_library import named

TEXT = (rules_dir() / "loops" / "accumulate.rules").read_text()
BEGIN, END = (TEXT.index(name) for name in ("partial: n @", "pieces: n @"))


def shown_with(old: str, new: str) -> bool:
    """Truth of the library's rule of partial results being shown, where it says something else."""
    rule = TEXT[BEGIN:END]
    assert old in rule
    return shown(named(TEXT[:BEGIN] + rule.replace(old, new) + TEXT[END:], "accumulators.partial"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p % t * k + p % f // t", "p % f"),
        ("src: near", "src: s"),
        ("lanes(s) > m * k and ", ""),
    ],
)
def test_lanes_may_be_folded_in_another_order(old: str, new: str) -> None:
    assert shown_with(old, old)
    assert shown_with(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p % f // t", "p % f // k"),
        ("p % t * k", "p % t * t"),
        ("p // f * f + ", ""),
        ("in 0..m * f]", "in 0..m * f - 1]"),
        ("p % t * k + p % f // t", "min(p % t * k + p % f // t, 8)"),
        ("t = f // k", "t = f // (k + 1)"),
        (" and lanes(s) % (m * k) == 0", ""),
        ("lanes(s) % (m * k) == 0", "lanes(s) % m == 0"),
        ("lanes(s) % (m * k) == 0", "lanes(s) % (m * k) == 1"),
        ("partial_results(n, s)", "partial_results(n, s) + 1"),
        ("dtype(s, m * k)", "dtype(s, m)"),
        ("src: results", "src: near"),
        ("src: results, ranges: []", "src: results, ranges: [r]"),
        ("src: near, ranges: [r, rest..]", "src: near, ranges: rest"),
    ],
)
def test_no_lane_is_folded_twice_or_left_out(old: str, new: str) -> None:
    assert not shown_with(old, new)
