"""The corpora: what must be proved is proved, what must fail is refuted, and confirmed where it can be run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.ir.dtype import dtypes
from morok.ir.interpret import run
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.prove import obligations
from morok.prove.encoding.obligation import Inapplicable, Obligation
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.verdict import Verdict
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

HERE = Path(__file__).parent
ENCODING_BUDGET = 20_000  # solver units: a wrong proof by an encoding that assumes too much is a quick one
SAMPLED = 4  # of so many false rules, one is put to each encoding alone
_found: dict[str, Verdict] = {}


def corpus(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


def verdict(rule: CheckedRule) -> Verdict:
    key = f"{rule.file}:{rule.name}"
    if key not in _found:
        _found[key] = judge(rule, DEFAULT_BUDGET, False)
    return _found[key]


@pytest.mark.long
def test_the_corpora_are_large_enough() -> None:
    assert sum(len(corpus(name)) for name in ("false", "structure_false", "accesses_false", "contracts_false")) >= 170


@pytest.mark.sampled(360)
@pytest.mark.parametrize("rule", corpus("false"), ids=lambda r: r.name)
def test_false_rules_are_refuted_and_run(rule: CheckedRule) -> None:
    found = verdict(rule)
    assert found.verdict == "refuted", found.message
    assert found.counterexample is not None
    assert found.counterexample["confirmed"] is True, found.message
    assert set(found.counterexample) == {"dtype", "bindings", "lhs", "rhs", "confirmed"}
    assert json.loads(json.dumps(found.json()))["counterexample"] == found.counterexample


def by_encoding(rule: CheckedRule, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Verdict]]:
    """The verdicts of each encoding of the rule alone, the others being left out."""
    every = obligations.encodings
    for n in itertools.count():
        used: list[str] = []

        def one(*arguments: Any, n: int = n, used: list[str] = used) -> Iterator[Any]:
            for attempt in itertools.islice(every(*arguments), n, n + 1):
                used.append(attempt.name)
                yield attempt

        monkeypatch.setattr(obligations, "encodings", one)
        found = judge(rule, ENCODING_BUDGET, False)
        if not used:
            return
        yield used[0], found


@pytest.mark.long
@pytest.mark.parametrize("name", ["false", "structure_false", "accesses_false"])
def test_no_encoding_proves_a_false_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encodings: dict[str, int] = {}
    for rule in corpus(name)[::SAMPLED]:
        for encoding, found in by_encoding(rule, monkeypatch):
            assert not found.usable, f"{rule.name}: {encoding} alone calls it {found.verdict}"
            encodings[encoding] = encodings.get(encoding, 0) + (found.verdict == "refuted")
        monkeypatch.undo()
    assert sum(n > 0 for n in encodings.values()) >= (1 if name == "accesses_false" else 2), encodings


# Numbers beyond their dtypes, which are the numbers that the dtypes make of them: what each encoding must take them for.
BEYOND = {
    "Min(2147483648, x: i32) ~> x": False,
    "Min[Min(2147483648, Square(Sign(x: i32))), y: i32] ~> Min(Square(Sign(x)), y)": False,
    "Max(x: u8, -1) ~> x": False,
    "Lt(x: i8, 200) ~> true": False,
    "Min(x: i64, 9223372036854775808) ~> x": False,
    "Sub(Add(x: f16, 70000.0), 70000.0) ~> x assuming reassoc": False,
    "Add(x: i32, 4294967296) ~> x": True,
    "Min(x: u8, 511) ~> x": True,
    "Max(x: i8, 128) ~> x": True,
    "Mul(x: u16, 65537) ~> x": True,
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("text", "holds"), BEYOND.items(), ids=BEYOND)
def test_every_encoding_takes_a_number_for_what_its_dtype_makes_of_it(
    text: str, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rule,) = check_text(f"group beyond\n\nr: {text}\n").rules()
    found = {encoding: v.verdict for encoding, v in by_encoding(rule, monkeypatch)}
    assert set(found.values()) <= ({"proved"} if holds else {"refuted", "unknown"}), found


@pytest.mark.long
def test_no_reading_proves_a_false_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does any of the ways to read a rule about structure, the others being left out."""
    every = obligations.readings
    alone: set[str] = set()
    for rule in corpus("structure_false"):
        ways = every(rule)
        for way in ways if len(ways) > 1 else ():
            monkeypatch.setattr(obligations, "readings", lambda _, way=way: [way])
            found = judge(rule, ENCODING_BUDGET, False)
            assert not found.usable, f"{rule.name}: {way.__name__} alone calls it {found.verdict}"
            alone.add(way.__name__)
    assert {"CountingEncoder", "encoder_for"} <= alone


@pytest.mark.sampled(80)
@pytest.mark.parametrize("rule", [*corpus("structure_false"), *corpus("accesses_false")], ids=lambda r: r.name)
def test_false_rules_about_structure_are_refuted(rule: CheckedRule) -> None:
    """A false rule that no graph refutes, and that is read at every size alone, is not proved."""
    unproved = rule.name in NOT_SHOWN or rule.name.startswith("accumulated.")
    assert verdict(rule).verdict == ("unknown" if unproved else "refuted"), verdict(rule).message


@pytest.mark.sampled(18)
@pytest.mark.parametrize("rule", corpus("facts_false"), ids=lambda r: r.name)
def test_facts_of_one_node_say_nothing_of_another(rule: CheckedRule) -> None:
    assert verdict(rule).verdict == "refuted", verdict(rule).message


@pytest.mark.sampled(16)
@pytest.mark.parametrize("rule", corpus("unread_false"), ids=lambda r: r.name)
def test_false_rules_that_nothing_refutes_are_not_usable(rule: CheckedRule) -> None:
    assert verdict(rule).verdict == "unknown", verdict(rule).verdict


@pytest.mark.sampled(60)
@pytest.mark.parametrize("rule", corpus("true"), ids=lambda r: r.name)
def test_true_rules_are_proved_at_every_dtype(rule: CheckedRule) -> None:
    found = verdict(rule)
    assert found.verdict == ("defined" if rule.name == "scalar.fold" else "proved"), found.message
    covered = "; ".join(found.scope)
    for instance in rule.instances:
        for dtype in instance.dtypes.values():
            assert dtype in covered


@pytest.mark.sampled(160)
@pytest.mark.parametrize("rule", corpus("structure_true"), ids=lambda r: r.name)
def test_true_rules_about_structure_are_proved(rule: CheckedRule) -> None:
    found = verdict(rule)
    assert found.usable, found.message
    assert (found.verdict == "bounded") == any(s.startswith("bounded: ") for s in found.scope)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rule", corpus("contracts_false"), ids=lambda r: r.name)
def test_rules_that_ask_more_than_contracts_promise_are_refused(rule: CheckedRule) -> None:
    vacuous = rule.name.startswith("promised_too_much.")
    assert verdict(rule).verdict == ("inapplicable" if vacuous else "refuted"), verdict(rule).message
    assert not verdict(rule).usable


# What no graph shows of rules about axes, launches and folds of lanes: helpers that no program gives a register to (neither are
# those of `accumulated`), loops that lie around what is unrolled, conversions that only large values tell apart.
NOT_SHOWN = {
    "unrolled_folds.stored_elsewhere",
    "unrolled_folds.loops_forgotten",
    "false_stores.any_stays",  # the helper keeps more than it promises
    "captured.part_of_a_let",
    "said.taken_in_by_a_list",
    "said.another_end",
    "written_constants.one_of_it",
    "empty_views.another_size",  # at 70,001 elements alone
    "anywhere.first",
    "elements_of_vectors.taken",
    "elements_of_vectors.loaded",
    "elements_of_vectors.behind_a_vector",
}

# What no graph shows of others: values that only a body which never runs would have, tensors of which the pattern says too
# little, constants by lane beside vectors, places in a list that the matcher does not come to, because one before them matches,
# loops that are closed again or are around a node already, an end of one length in hundreds,
# sums of products that wrap as the products do, places beyond what a buffer of a few elements has, storage of
# vectors.
NOT_RUN = {
    "folds.maybe_undefined",
    "folds.other_defined",
    "folds.not_defined",
    "more_folds.float_sum",
    "captured.condition",
    "captured.factor",
    "captured.at_two_iterations",
    "constants_by_lane.first_lane",
    "constants_by_lane.some_lane",
    "constants_by_lane.not_all",
    "dtypes_of_one_sort.sum_of_a_product",
    "dtypes_of_one_sort.index_of_a_place",
    *(f"written_constants.{n}" for n in ("half", "nearly_one", "wide", "unsigned")),
}


def test_a_factor_that_depends_on_the_loop_of_a_sum_is_not_moved_into_it() -> None:
    """What the counterexample to it is: each row of a triangle, times the sum of its columns."""
    rule = next(r for r in corpus("structure_false") if r.name == "captured.factor")
    r = UOp.range(3, 0, AxisType.Loop)
    i = r.cast(dtypes.i32)
    before = UOp.new(Op.Mul, (i, UOp.new(Op.Reduce, (i, r), Op.Add, dtypes.i32)))
    found = RuleSet.of([rule], unproved=True).rewrite_node(before, None)
    assert found is not None
    out = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(3))
    stored = []
    for value in (before, found[0]):
        buffers = {0: [0, 0, 0]}
        run(UOp.sink(out.index(r).store(value).end(r)), buffers)
        stored.append(buffers[0])
    assert stored == [[0, 3, 6], [5, 5, 5]]


PLACE = "Index {{ buffer: {b}, indices: [{i}: index x 1], gate: {g} }}"
WRITTEN = "s @ Store(" + PLACE + ", v: T x 1)"


@pytest.mark.parametrize(
    ("buffer", "place", "gate", "target"),
    [
        pytest.param("b", "i", "None", "v", marks=pytest.mark.long),
        ("b", "j", "None", "After(v, s)"),
        ("b", "j", "None", "After(Index(b, j), s)"),
        ("d: ptr(T)", "i", "None", "After(v, s)"),
        ("b", "i", "Some(_g: bool x 1)", "After(v, s)"),
    ],
    ids=["store forgotten", "another place", "as before", "another buffer", "perhaps nowhere"],
)
def test_what_a_place_holds_behind_a_store_is_not_taken_for_less_than_it_may_be(
    buffer: str, place: str, gate: str, target: str
) -> None:
    written = WRITTEN.format(b=buffer, i="i", g=gate)
    before = f"Index {{ buffer: After(b: ptr(T), {written}), indices: [{place}: index x 1], gate: None }}"
    (rule,) = check_text(f'group g "one"\nr: {before} ~> {target}\n').rules()
    assert not judge(rule, ENCODING_BUDGET, False).usable


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("dtype", "op", "least", "end", "target"),
    [
        ("i32", "Max", 1, "n - 1", "Max(FOLD, subst(x, r, const(0, index)))"),
        ("i32", "Add", 1, "n", "Add(FOLD, subst(x, r, const(n - 1, index)))"),
        ("i32", "Add", 0, "n - 1", "Add(FOLD, subst(x, r, const(n - 1, index)))"),
        ("i32", "Max", 1, "n - 1", "Add(FOLD, subst(x, r, const(n - 1, index)))"),
        ("bool", "Mul", 1, "n - 1", "Or(FOLD, subst(x, r, const(n - 1, index)))"),
        ("index", "Max", 1, "n - 1", "Max(FOLD, subst(x, r, const(n - 1, index)))"),
    ],
    ids=["another one", "one twice", "perhaps none", "joined by another op", "all is not any", "a maximum of nothing"],
)
def test_no_iteration_is_taken_off_a_fold_that_the_fold_of_the_others_does_not_leave_out(
    dtype: str, op: str, least: int, end: str, target: str
) -> None:
    fold = f"Reduce {{ src: subst(x, r, s), ranges: [s], op: {op} }}"
    text = f"""helpers "promised"
extern unused(s: any) -> (k: int)
group g "one"
r: Reduce {{ src: x: {dtype}, ranges: [r @ Range {{ end: @const(n): index, axis, renumbered, .. }}], op: {op} }}
    let k = unused(x)
    if n >= {least}
    let s = Range {{ end: const({end}, index), id: k, axis, renumbered }}
    if free_of(x, s)
    => {target.replace("FOLD", fold)}
    "not so"
"""
    (rule,) = check_text(text).rules()
    assert not judge(rule, ENCODING_BUDGET, False).usable


@pytest.mark.long
@pytest.mark.parametrize(
    ("guard", "target"),
    [
        ("", "Reduce { src: Reduce { src: x, ranges: [s], op: Add }, ranges: [r], op: Add }"),
        ("if free_of(r, s)", "Reduce { src: x, ranges: [s, r], op: Add }"),
        ("if free_of(r, s) and free_of(s, r)", "Reduce { src: x, ranges: [s, r, r], op: Add }"),
    ],
    ids=["lengths that depend on each other", "one that depends on the other", "a loop twice"],
)
def test_folds_of_folds_are_not_one_over_other_iterations(guard: str, target: str) -> None:
    before = "Reduce { src: Reduce { src: x: i32, ranges: [r], op: Add }, ranges: [s], op: Add }"
    (rule,) = check_text(f'group g "one"\nr: {before} {guard} ~> {target}\n').rules()
    assert not judge(rule, ENCODING_BUDGET, False).usable


@pytest.mark.long
def test_a_store_of_what_was_there_before_another_is_not_taken_for_none() -> None:
    first = f"Store({PLACE.format(b='b', i='i', g='None')}, _v: T x 1)"
    index = f"Index {{ buffer: After(b: ptr(T), {first}), indices: [i], gate: None }}"
    before = f"Store {{ index: {index}, value: Load({PLACE.format(b='b', i='i', g='None')}): T x 1, ranges: [] }}"
    (rule,) = check_text(f'group g "one"\nr: {before} ~> Noop()\n').rules()
    assert not judge(rule, ENCODING_BUDGET, False).usable


@pytest.mark.long
@pytest.mark.parametrize(
    ("ranges", "after"),
    [("[_r]", "[]"), ("[r, _rest..]", "[r]"), ("[]", "[i]")],
    ids=["one", "all but one", "one more"],
)
def test_loops_that_a_store_closes_are_not_forgotten(ranges: str, after: str) -> None:
    before = f"Store {{ index: Index(b: ptr(i32), i: index), value: v: i32, ranges: {ranges} }}"
    target = f"Store {{ index: Index(b, i), value: v, ranges: {after} }}"
    (rule,) = check_text(f'group g "one"\nr: {before} ~> {target}\n').rules()
    assert not judge(rule, ENCODING_BUDGET, False).usable


ABOUT_STRUCTURE = [
    r for r in (*corpus("structure_false"), *corpus("accesses_false")) if not r.name.startswith("accumulated.")
]


@pytest.mark.sampled(100)
@pytest.mark.parametrize("rule", ABOUT_STRUCTURE, ids=lambda r: r.name)
def test_a_counterexample_about_structure_is_run(rule: CheckedRule) -> None:
    """The rule's own matcher makes of some graph another one, and the interpreter finds that they differ."""
    found = verdict(rule).counterexample
    is_run = found is not None and found["confirmed"] is True
    assert is_run == (rule.name not in NOT_RUN | NOT_SHOWN)


def test_what_is_not_run_is_in_the_corpora() -> None:
    assert {rule.name for rule in ABOUT_STRUCTURE} >= NOT_RUN | NOT_SHOWN


def test_no_rule_that_fires_is_said_never_to_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an encoding takes for never having a value: a graph is met on which the rule fires."""

    def never(self: object) -> Obligation:
        raise Inapplicable

    monkeypatch.setattr(obligations.StructureEncoder, "encode", never)
    (rule,) = check_text(
        'group g "g"\n\nr: Reduce { src: Not(x: i32), ranges: rs, op: Max } ~> Not(Reduce { src: x, ranges: rs, op: Min })\n'
    ).rules()
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "unknown", found.message


def test_counterexamples_call_constants_what_the_rule_calls_them() -> None:
    for pattern in ("c @const", "@const(c)"):
        (rule,) = check_text(f'group g "g"\n\nbad: Add(x: i32, {pattern}) ~> x\n').rules()
        found = judge(rule, DEFAULT_BUDGET, False)
        assert found.counterexample is not None
        assert set(found.counterexample["bindings"]) == {"x", "c"}
        assert found.counterexample["confirmed"] is True
