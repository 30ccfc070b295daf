"""Proofs at every size of rules of the library, and none of their false twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.rewrite.library import rules_dir
from tests.prove.every_size import shown

HERE = Path(__file__).parent
FILES = {"gpudims": "target/gpudims", "launch": "target/gpudims", "branches": "target/branches"}
FILES |= {"group_for_reduce": "vector/expand", "expander": "vector/expand", "cut_lanes": "vector/devectorize"}
WAITED = "Index(After(b, Barrier(End(Store(Index(b, at), s), t))), subst(at, t, q))"
TURNED = "    => Store { index: Index { buffer: b, indices: [is[len(is) - 1 - k] for k in 0..len(is)], gate: And(g, Eq(r, 0))"


@pytest.mark.sampled(36)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("gpudims.whole", "    ensures counts(h, r)\n", ""),
        ("gpudims.digit", "    ensures counts(h, r, step)\n", ""),
        ("gpudims.digit", "=> Mod(Idiv(h, step), n)", "=> Idiv(h, step)"),
        ("gpudims.digit", "=> Mod(Idiv(h, step), n)", "=> Mod(h, n)"),
        ("launch.once", "    ensures launched(r)\n", ""),
        ("launch.once", "    ensures free_of(p, r)\n", ""),
        ("launch.once", "let r = idle(p)", "let r = idle(v)"),
        ("launch.once", "gate: Eq(r, 0)", "gate: Eq(r, 1)"),
        ("launch.once", "gate: Eq(r, 0)", "gate: Gt(r, 0)"),
        ("launch.once", "indices: is, gate: Eq(r, 0)", "indices: [is[0]], gate: Eq(r, 0)"),
        ("launch.once_gated", "gate: And(g, Eq(r, 0))", "gate: Eq(r, 0)"),
        ("launch.once_gated", "gate: And(g, Eq(r, 0))", "gate: Or(g, Eq(r, 0))"),
        ("launch.once_gated", "gate: And(g, Eq(r, 0)) }, value: v", "gate: And(g, Eq(r, 0)) }, value: zero(v)"),
        ("launch.once_gated", "    => Store { index: Index { buffer: b, indices: is, gate: And(g, Eq(r, 0))", TURNED),
        ("branches.gated", "If(g, place", "If(Not(g), place"),
        ("branches.gated", "Group(branch, Store(place, v), EndIf(branch))", "Group(Store(place, v), branch, EndIf(branch))"),
        ("branches.gated", "Group(branch, Store(place, v), EndIf(branch))", "Group(branch, EndIf(branch), Store(place, v))"),
        ("branches.gated", "Group(branch, Store(place, v), EndIf(branch))", "Group(branch, Store(place, v))"),
        ("branches.gated", "EndIf(branch)", "EndIf(If(g, place))"),
        ("branches.gated", "Store(place, v)", "Store(place, Gep(v, [0]))"),
        *(("group_for_reduce.shared", WAITED, WAITED.replace(*twin)) for twin in (
            ("Barrier(End(Store(Index(b, at), s), t))", "End(Store(Index(b, at), s), t)"),
            ("End(Store(Index(b, at), s), t)", "Store(Index(b, at), s)"),
            ("End(Store(Index(b, at), s), t)", "End(Store(Index(b, at), s), q)"),
            ("Index(b, at), s)", "Index(b, at), zero(s))"),
            ("Index(b, at), s)", "Index(b, subst(at, t, q)), s)"),
            ("subst(at, t, q)", "at"),
            ("subst(at, t, q)", "subst(at, q, t)"),
            (WAITED, "Index(b, at)"),
            (WAITED, "Index(b, subst(at, t, q))"),
            (WAITED, "s"),
        )),
        ("group_for_reduce.shared", "ranges: [q], op }", "ranges: [t], op }"),
        ("group_for_reduce.shared", "ranges: [q], op }", "ranges: [q, t], op }"),
        ("group_for_reduce.shared", " and lanes(s) == 1", ""),
        *(("group_for_reduce.shared", f"    ensures {promise}\n", "") for promise in (
            "free_of(s, b)", "told_apart(at, s, t)", "renames(q, t)", "free_of(s, q)", "free_of(at, q)",
        )),
        ("expander.store", "ranges: open }", "ranges: rs }"),
        ("cut_lanes.parts", "[is[k] - begin[of[q]] for k", "[is[k] for k"),
        ("cut_lanes.parts", "Cat(Gep(xs[of[q]], ", "Cat(Gep(xs[q], "),
        ("cut_lanes.parts", "cuts[q + 1]]) for q in 0..len(of))", "cuts[q + 1]]) for q in 0..len(of) - 1)"),
        ("cut_lanes.parts", "begin[of[q]] <= is[k] and is[k] < begin[of[q] + 1]", "begin[of[q]] <= is[k]"),
        ("cut_lanes.parts", "begin[of[q]] <= is[k] and is[k] < begin[of[q] + 1]", "is[k] < begin[of[q] + 1]"),
        ("cut_lanes.parts", "begin[of[q] + 1] for k in 0..len(is))", "begin[of[q] + 1] for k in 0..min(8, len(is)))"),
        ("cut_lanes.parts", " and cuts[0] == 0 ", " "),
        ("cut_lanes.parts", " and cuts[len(cuts) - 1] == len(wanted)", ""),
        ("cut_lanes.parts", "cuts[q] < cuts[q + 1] and ", ""),
        ("cut_lanes.parts", "    ensures len(of) + 1 == len(cuts)\n", ""),
    ],
)  # fmt: skip
def test_a_rule_is_shown_and_its_false_twin_is_not(name: str, old: str, new: str) -> None:
    """With the contracts of the library, and not where one says less, or a rule reads it otherwise."""
    text = (rules_dir() / f"{FILES[name.split('.')[0]]}.rules").read_text()
    assert old in text
    assert shown(named(text, name))
    assert not shown(named(text.replace(old, new), name))


def named(text: str, name: str) -> CheckedRule:
    return next(r for r in check_text(text).rules() if r.name == name)


@pytest.mark.parametrize("file", [pytest.param("launched_false", marks=pytest.mark.long), "grouped_false"])
def test_no_false_rule_about_launches_is_shown(file: str) -> None:
    assert [r.name for r in check_file(HERE / f"{file}.rules").rules() if shown(r)] == []


def test_a_store_may_close_loops_that_are_no_axes() -> None:
    """Of those that are, a store is done at all iterations: it may then store over what another iteration uses."""
    text = (rules_dir() / "vector" / "expand.rules").read_text()
    asked = "len(axes(p)) + len(axes(v)) + sum(len(axes(r)) for r in rs) > 0"
    assert text.count(asked) == 1
    assert text.count("ranges: open }") == 1
    every = text.replace("ranges: open }", "ranges: rs }")
    assert shown(named(every.replace(asked, "all(len(axes(r)) == 0 for r in rs)"), "expander.store"))
    assert not shown(named(every, "expander.store"))
