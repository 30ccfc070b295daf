"""Proofs at every size of what is loaded and stored: the wide accesses of the library, and false twins of them."""

from __future__ import annotations

import re

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.interpret import evaluate
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.rewrite.library import rules_dir
from morok.rewrite.ruleset import RuleSet
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
    "the next elements": (
        "load_chunks",
        changed(("indices: [Add(i, ls[0])] }, dtype", "indices: [Add(i, ls[0] + 1)] }, dtype")),
    ),
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
        changed(
            ("Store { index: Index { buffer: After(b, others), indices", "Store { index: Index { buffer: b, indices")
        ),
    ),
    "a lane for the last": (
        "store_last",
        changed(("indices: [Gep(i, [last])] }, value", "indices: [Gep(i, [0])] }, value")),
    ),
    "lanes in any order": (
        "load_bases",
        without(
            "all(any(any(sum(len(rs[q]) for q in 0..r) + j == order[k] and rs[r][j] == k for j in 0..len(rs[r]))"
            " for r in 0..len(rs)) for k in 0..len(i))"
        ),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ACCESSES)
def test_wide_accesses_are_shown(name: str) -> None:
    assert shown(rule(name))


@pytest.mark.sampled(15)
@pytest.mark.parametrize("what", sorted(FALSE))
def test_false_twins_are_not(what: str) -> None:
    assert not shown(rule(*FALSE[what]))


STORED = (
    "Store { index: Index { buffer: b: ptr(any), indices: [i: index x 1], gate: None }, value: v: any x 1, ranges: [] }"
)
ZERO = "Store { index: Index { buffer: b, indices: [i] }, value: zero(v) }"
BEHIND = "Store { index: Index { buffer: After(b, s), indices: [i] }, value: v }"
ELSEWHERE = "Store { index: Index { buffer: b, indices: [Add(i, 1)], gate: c }, value: v }"
WITH_GATE = STORED.replace("v: any x 1", "Where(c: bool x 1, v: any x 1, w)")
PARTS = (
    "Store { index: p @ Index { buffer: b: ptr(any), indices: [i: index x 1], gate: None }, value: Cat(v: any, w), ranges: [] }"
    " if lanes(p) == 1 ~> Group(Store { index: Index { buffer: b, indices: [i] }, value: v },"
    " Store { index: Index { buffer: b, indices: [Add(i, lanes(v))] }, value: w })"
)
HALVES = (
    "Store { index: p @ Index { buffer: b: ptr(any), indices: [i: index x 1], gate: None }, value: v: any, ranges: [] }"
    " if lanes(p) == 1 and lanes(v) > 3"
    " let s = Store { index: Index { buffer: b, indices: [Add(i, lanes(v))] }, value: Gep(v, [0]) }"
    " ~> Group(Store { index: Index { buffer: b, indices: [i] }, value: Gep(v, [k for k in 0..3]) },"
    " Store { index: Index { buffer: After(b, s), indices: [Add(i, 3)] }, value: Gep(v, [k for k in 3..lanes(v)]) })"
)
HIDDEN = {
    "another place": f"{WITH_GATE} let s = {ELSEWHERE} ~> Store {{ index: Index {{ buffer: After(b, s), indices: [i] }},"
    " value: Where(c, v, w) }",
    "the same place": f"{STORED} let s = {ZERO} ~> {BEHIND}",
    "in a loop": f"End({STORED}, rs..) let s = {ZERO} ~> End({BEHIND}, rs..)",
    "behind another than that beside it": HALVES,
    "of which the value was read": PARTS,
    "in a branch": "Store(Index { buffer: b, indices: [i: int], gate: Some(g: bool x 1) }, v: i32)"
    " let p = Index(b, i), s = Store(p, v), branch = If(g, p, After(v, s)) ~> Group(branch, Store(p, v), EndIf(branch))",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_what_is_stored_besides_is_not_overlooked(text: str) -> None:
    (found,) = check_text(f'group g "one"\n\nr: {text}\n').rules()
    assert not shown(found)


def test_stores_beside_each_other_may_read_what_the_others_store() -> None:
    (found,) = check_text(f'group g "one"\n\nr: {PARTS}\n').rules()
    place = UOp.new(Op.DefineReg, (), 0, dtypes.i32.ptr(2, AddrSpace.REG)).index
    filled = UOp.new(Op.Group, (place(0).store(UOp.const(1, dtypes.i32)), place(1).store(UOp.const(2, dtypes.i32))))
    held = [UOp.new(Op.After, (place(k).src[0], filled)).index(k) for k in range(2)]
    turned = held[0].store(UOp.new(Op.Cat, (held[1].load(), held[0].load())))
    made = RuleSet.of([found], unproved=True).rewrite_node(turned)
    assert made is not None
    after = [
        [evaluate(UOp.new(Op.After, (place(k).src[0], s)).index(k).load()) for k in range(2)] for s in (turned, made[0])
    ]
    assert after == [[2, 1], [2, 2]]
