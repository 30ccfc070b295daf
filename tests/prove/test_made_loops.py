"""Loops and axes that a rule makes: of the kind of those that they take the place of, and none that is there already."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

RENAMED = """End(s: void, r @ Range {{ end: e @ @const(n): index, axis{old}, renumbered, .. }})
    if n > 1
    let p = Range {{ end: e, id: 90, axis{new}, renumbered }}
    if free_of(s, p)
    ~> End(subst(s, r, p), p)"""
AXIS = "let a = [[90, 1]]"
ONCE = "let p = Range {{ end: const(1, index), id: 90, axis: {kind}, renumbered: true }}"
FOLD = "~> Neg(Reduce { src: x, ranges: [p], op: Add })"


def proved(text: str, true: bool) -> bool:
    """Truth of a rule being proved; one that is false is tried for a shorter time."""
    (found,) = check_text(f'group made "loops that a rule makes"\n\nr: {text}\n').rules()
    return judge(found, DEFAULT_BUDGET // (1 if true else 500), False).verdict == "proved"


@pytest.mark.parametrize(
    ("old", "new"),
    [(": Loop", ": Upcast"), (": Upcast", ": Loop"), (": Loop", ": Global"), ("", ""), (": Loop", ": Loop")],
)
def test_new_ranges_are_of_the_kind_of_the_old_ones(old: str, new: str) -> None:
    """Iterations in order, those of threads and those of an axis see different things in memory."""
    assert proved(RENAMED.format(old=old, new=new), old == new) is (old == new)


@pytest.mark.parametrize(
    ("text", "true"),
    [
        (f"Neg(x: i32 x 1) {ONCE.format(kind='Upcast')} {FOLD}", False),
        (f"Neg(x: i32 x 1) {ONCE.format(kind='Upcast')} if free_of(x, p) {FOLD}", True),
        (f"Neg(x: i32 x 1) {ONCE.format(kind='Loop')} {FOLD}", True),
        (f"Neg(x: i32 x 1) {AXIS} ~> Neg(Contract {{ src: x, axes: a }})", False),
        (f"Neg(x: i32 x 1) {AXIS} if free_of_axes(x, a) ~> Neg(Contract {{ src: x, axes: a }})", True),
        (f"Neg(x: i32 x 1) {AXIS} ~> Neg(Unroll {{ src: x, axes: a }})", False),
    ],
)
def test_an_axis_that_a_rule_closes_is_not_open_in_what_it_takes(text: str, true: bool) -> None:
    """One of one iteration, too: of its number there may be one of more."""
    assert proved(text, true) is true
