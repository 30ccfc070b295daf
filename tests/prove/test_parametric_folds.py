"""Proofs at every size of folds of folds."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.marks import trusting
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.parametric.folds import OF_TRUTHS, TAKEN_OUT
from morok.prove.workers import judge
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


@pytest.mark.sampled(3)
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


@pytest.mark.long
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


COMPUTED = """group g "folds"

r: n @ Reduce { src: PATTERN, ranges: [], op: FOLD } if lanes(n) == 1 ~> TARGET
"""
DTYPES = {"int": "i8", "index": "index", "float": "f16", "bool": "bool"}
TAKEN = [
    (kind, fold, op, of) for kind, folds in TAKEN_OUT.items() for fold, ops in folds.items() for op, of in ops.items()
]


def computed_of_the_fold(kind: str, fold: str, op: str, of: str) -> str:
    """The verdict on computing an op of a fold instead of its items."""
    folded = f"Reduce {{ src: x, ranges: [], op: {of}, dtype: dtype(n) }}"
    if op in ("Neg", "Not"):
        pattern, target = f"{op}(x: {DTYPES[kind]})", f"{op}({folded})"
    else:
        pattern = f"{op}(Gep {{ vector: c: {DTYPES[kind]} x 1, indices: _is }}, x)"
        target = f"{op}(c, {folded})"
    text = COMPUTED.replace("PATTERN", pattern).replace("TARGET", target).replace("FOLD", fold)
    return judge(next(iter(check_text(text).rules())), DEFAULT_BUDGET, False).verdict


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("kind", "fold", "op", "of"), TAKEN)
def test_what_is_computed_of_items_may_be_computed_of_their_fold(kind: str, fold: str, op: str, of: str) -> None:
    assert computed_of_the_fold(kind, fold, op, of) == "proved"


@pytest.mark.long
@pytest.mark.parametrize(("kind", "fold", "op", "of"), TAKEN)
def test_of_no_other_fold(kind: str, fold: str, op: str, of: str) -> None:
    others = {"Max", "Min"} if kind == "bool" else set(OF_TRUTHS)
    for other in others - {of}:
        assert computed_of_the_fold(kind, fold, op, other) == "refuted", other


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "fold", "op", "of"),
    [
        ("int", "Max", "Neg", "Min"),
        ("float", "Add", "Neg", "Add"),
        ("float", "Add", "Mul", "Add"),
        ("bool", "Max", "Or", "Max"),
    ],
)
def test_what_is_no_law_is_not_shown(kind: str, fold: str, op: str, of: str) -> None:
    """The least number has no negative; floats round; a truth may decide where another has no value."""
    assert computed_of_the_fold(kind, fold, op, of) in ("unknown", "refuted")


REGISTER = """
helpers "morok.passes.accumulators"

extern accumulator(n: any, s: any) -> (acc: ptr(any))
    ensures free_of(s, acc)

group registers
@context Accumulators;

r: n @ Reduce { src: s: f32, ranges: [r, rest..], op: Add }
    if lanes(s) == lanes(n)
    let acc = accumulator(n, s),
        start = Store(Index(acc, 0), identity(Add, n)),
        sofar = Index(After(acc, start, r, rest..), 0),
        done = End(Store(sofar, Add(sofar, s)), r, rest..),
        found = Index(After(acc, start, done), 0)
    ~> """


@pytest.mark.parametrize(
    ("target", "holds"),
    [("found", True), ("Where(Lt(found, n), 0.0, n)", False), ("Where(Lt(n, found), n, 0.0)", False)],
)
def test_a_register_folds_in_an_order_of_its_own(target: str, holds: bool) -> None:
    (of,) = check_text(f"{REGISTER}{target}\n").rules()
    with trusting(["morok.passes.accumulators"]):
        assert judge(of, DEFAULT_BUDGET, False).verdict in (("proved",) if holds else ("unknown", "refuted"))
