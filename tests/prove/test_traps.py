"""Ways in which "proved" turns out to mean nothing, each with the check against it (proofs.md)."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove.obligations import is_definition
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.verdict import Verdict, exit_status
from morok.prove.workers import failure, judge


def rule(text: str, head: str = "") -> CheckedRule:
    return next(iter(check_text(f'{head}group g "trap"\n\nr: {text}\n    "a trap"\n').rules()))


def verdict(text: str, head: str = "", budget: int = DEFAULT_BUDGET) -> Verdict:
    return judge(rule(text, head), budget, False)


@pytest.mark.parametrize(
    "text",
    [
        "Mod(x: i32, @const(n)) if n > 5 and n < 3 ~> x",
        "Add(x: u8, @const(c)) if c < 0 ~> x",
        "Lt(x: index, y) if vmin(x) > vmax(x) ~> true",
        "Add[x: i8, @const(c)] if c == 300 ~> Mul(x, x)",
    ],
)
def test_guards_that_never_hold(text: str) -> None:
    assert verdict(text).verdict == "inapplicable"


@pytest.mark.parametrize(
    "text",
    [
        "Vectorize(xs..) if len(xs) > 80 ~> Vectorize(xs[i] for i in 0..len(xs))",
        "Gep { vector: Vectorize(xs..), indices: [i] } if len(xs) > 500 ~> xs[i]",
        "Neg(x: f32) if lanes(x) == 700 ~> Vectorize(Neg(Gep(x, [i])) for i in 0..700)",
    ],
)
def test_guards_that_no_lanes_meet_that_were_tried(text: str) -> None:
    found = verdict(text)
    assert found.verdict == "unknown"
    assert found.message.startswith("at every size: no graph is found on which it fires")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text",
    [
        "Neg(Unroll { src: x: i32, axes: a }) if len(a) == 50 ~> Unroll { src: Neg(x), axes: a }",
        "Contract { src: Neg(x: i32), axes: a } if len(a) == 50 ~> Neg(Contract { src: x, axes: a })",
    ],
)
def test_guards_that_no_graph_meets_that_was_tried(text: str) -> None:
    """A rule that holds at every size is not proved while it fires on no graph; at sizes that some graphs have it is."""
    found = verdict(text)
    assert (found.verdict, found.message) == ("unknown", "at every size: no graph is found on which it fires")
    assert verdict(text.replace("50", "5")).verdict == "proved"


@pytest.mark.long
def test_guards_that_large_graphs_meet_alone() -> None:
    right = "Gep { vector: Vectorize(xs..), indices: [i] } if len(xs) > 5 ~> xs[i]"
    assert verdict(right).verdict == "proved"
    assert not verdict(right.replace("xs[i]", "xs[min(i, 5)]")).usable
    wrong = "Contract { src: x: i32, axes: a } if free_of_axes(x, a) and len(a) == 4 ~> Gep(x, [0 for _ in a])"
    assert not verdict(wrong).usable


@pytest.mark.parametrize(
    "text",
    [
        "Vectorize(xs..) if len(xs) > 8 and len(xs) < 7 ~> Vectorize(xs[i] for i in 0..len(xs))",
        "Neg(x: f32) if lanes(x) > 7 and lanes(x) < 7 ~> Vectorize(Neg(Gep(x, [i])) for i in 0..lanes(x))",
        "Neg(Unroll { src: x: i32, axes: a }) if len(a) == 5 and len(a) == 6 ~> Unroll { src: Neg(x), axes: a }",
    ],
)
def test_guards_that_no_size_at_all_meets(text: str) -> None:
    found = verdict(text)
    assert found.verdict == "inapplicable", found.message
    assert not found.extents
    assert not any(s.startswith("bounded") for s in found.scope)


def test_an_instance_that_guards_exclude_is_listed_and_not_claimed() -> None:
    found = verdict("Add[x: int, @const(c)] if c == 300 ~> Add(x, 300)")
    assert found.verdict == "proved"
    assert "excluded by the guards: i8, u8" in found.scope
    assert not any(s.startswith("i8") for s in found.scope)


@pytest.mark.long
def test_out_of_resources_is_not_proved() -> None:
    found = verdict("Mul(x: f64, Mul(y, z)) ~> Mul(x, Mul(z, y))", budget=DEFAULT_BUDGET)
    assert found.verdict in ("unknown", "proved")
    hard = verdict("Idiv(Mul(Idiv(x: i64, y), y), y) ~> Idiv(x, y)", budget=50)
    assert hard.verdict == "unknown"


def test_errors_are_not_proved() -> None:
    found = failure(rule("Add(x: i32, y) ~> Add(y, x)"), "error", "broken")
    assert not found.usable
    assert not found.final
    assert exit_status([found]) == 4


def test_an_integer_lift_assumes_nothing_about_overflow() -> None:
    found = verdict("Lt(Neg(x: i8), Neg(y)) ~> Lt(y, x)")
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample["confirmed"] is True


def test_guards_are_mathematical_where_operands_wrap() -> None:
    # at u8 the product 16 * 16 is 0 in the dtype and 256 in a guard
    assert verdict("Mul[Mul[x: u8, @const(a)], @const(b)] if a * b == 256 ~> zero(x)").verdict == "proved"
    assert verdict("Mul[Mul[x: u8, @const(a)], @const(b)] if a * b == 0 ~> x").verdict == "refuted"


def test_a_clause_without_a_value_is_a_premise_and_no_licence() -> None:
    assert verdict("Mul[x: i32, @const(c)] if 6 // c == 6 ~> x").verdict == "proved"
    assert verdict("Mul[x: i32, @const(c)] if 6 // c >= 3 ~> x").verdict == "refuted"


def test_both_orders_are_covered_because_the_op_commutes() -> None:
    from dataclasses import replace

    checked = rule("Add[x: i32, y] ~> Add(y, x)")
    assert judge(checked, DEFAULT_BUDGET, False).verdict == "proved"
    pattern = replace(checked.syntax.pattern, ops=("Sub",))  # a dialect that claims that Sub commutes
    target = replace(checked.syntax.target, name="Sub", args=checked.syntax.target.args[::-1])  # type: ignore[attr-defined, call-arg]
    types = {
        **checked.types,
        id(pattern): checked.types[id(checked.syntax.pattern)],
        id(target): checked.types[id(checked.syntax.target)],
    }
    lying = replace(checked, syntax=replace(checked.syntax, pattern=pattern, target=target), types=types)
    found = judge(lying, DEFAULT_BUDGET, False)
    assert found.verdict == "refuted"
    assert "commutes" in found.message


def test_every_alternative_is_judged() -> None:
    assert verdict("(Add | Sub)(x: i32, @zero) ~> x").verdict == "proved"
    assert verdict("(Add | Mul)(x: i32, @zero) ~> x").verdict == "refuted"
    assert verdict("(Mul | Add)(x: i32, @zero) ~> x").verdict == "refuted"


HELPER = """\
helpers "promised"
extern split(n: index, d: const) -> (q: index, r: index)?
    requires d > 0
    ensures n == d * q + r
"""


def test_helpers_are_known_by_their_contracts_alone() -> None:
    good = "Idiv(x: index, @const(d)) if d > 0 and vmin(x) >= 0 let (q, r) = split(x, d) if vmin(r) >= 0 => Add(q, Idiv(r, d))"
    found = verdict(good, HELPER)
    assert found.verdict == "proved"
    assert found.helpers == ("split",)
    assert verdict(good, HELPER.replace("d * q + r", "d * q - r")).verdict == "refuted"
    assert verdict(good.replace("if d > 0 and", "if"), HELPER).verdict != "proved"  # what it requires is not shown


def test_bounds_are_any_sound_bounds() -> None:
    assert verdict("Lt(x: i32, y) if vmax(x) < vmin(y) ~> true").verdict == "proved"
    assert verdict("Lt(x: i32, y) if vmin(x) < vmin(y) ~> true").verdict == "refuted"
    assert verdict("n @ Lt(x: index, y) if vmin(n) == 1 ~> true").verdict == "proved"
    assert verdict("Add(x: index, y) if vmin(x) + vmin(y) >= 0 ~> Add(Abs(x), y)").verdict == "refuted"


def test_floats_are_equal_by_bits() -> None:
    assert verdict("Add[x: f32, @zero] ~> x").verdict == "refuted"
    assert verdict("Add[x: f32, @zero] ~> x assuming nsz").verdict == "proved"
    assert verdict("Sub(x: f32, @zero) ~> x").verdict == "proved"
    assert verdict("Max(x: f32, y) ~> Max(y, x)").verdict == "proved"


@pytest.mark.long
def test_reassociation_is_labelled() -> None:
    found = verdict("Add(Add(x: f32, y), z) ~> Add(x, Add(y, z)) assuming reassoc")
    assert found.verdict == "proved"
    assert "over the real numbers" in found.scope
    assert verdict("Add(Add(x: f16, y), z) ~> Add(x, Add(y, z))").verdict == "refuted"


@pytest.mark.parametrize(
    "text",
    [
        "Eq(x: f32, x) ~> true",
        "Lt(x: f16, Add(x, 0.0009)) ~> true",
        "Where(Lt(x: f16, Add(x, 0.0009)), y: i32, _z) ~> y",
        "Cast(Cast(x: f64, f16), f64) ~> x",
        "Cast(Mul(Cast(x: i64, f32), 2.0), f64) ~> Mul(Cast(x, f64), 2.0)",
        "Cast(Sub(Add(x: f32, y), x), bool) ~> Cast(y, bool)",
    ],
)
def test_over_the_real_numbers_nothing_is_compared_or_converted(text: str) -> None:
    """A comparison tells NaN and what was rounded from real numbers, and a conversion rounds on purpose."""
    assert verdict(f"{text} assuming reassoc").verdict == "unknown"


def test_only_the_meaning_of_an_op_is_a_definition() -> None:
    assert is_definition(rule("Add(@const(a), @const(b)) let v = eval(Add, a, b) ~> v").syntax)
    for other in (
        "Add(@const(a), @const(b)) let v = eval(Add, b, a) ~> v",
        "Add(@const(a), @const(b)) let v = eval(Sub, a, b) ~> v",
        "And(@const(a), @const(b)) let u = eval(And, a, b), v = eval(And, a, u) ~> v",
    ):
        assert not is_definition(rule(other).syntax)
    assert verdict("Sub(@const(a), @const(b)) let v = eval(Add, a, b) ~> v").verdict == "refuted"
    assert verdict("Idiv(@const(a), @const(b)) let v = eval(Idiv, a, b) ~> v").verdict == "defined"


def test_undefined_may_become_defined_and_not_the_reverse() -> None:
    assert verdict("Idiv(x: i32, x) ~> one(x)").verdict == "proved"
    assert verdict("Mul[x: i32, @zero] ~> Idiv(zero(x), x)").verdict == "refuted"
    assert verdict("Where(c, Idiv(x: i32, y), x) ~> Idiv(x, Where(c, y, one(x)))").verdict == "proved"
    assert verdict("Where(Ne(y: i32, 0), Mod(x, y), 0) ~> Mod(x, y)").verdict == "refuted"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        # nothing says that x is the same in every iteration
        "Reduce { src: x: i32, ranges: [r @ Range(e: index)], op: Add } if vmin(e) >= 1 and vmax(e) < 99 ~> Mul(x, Cast(e, i32))",
        # the invariant would be true of every iteration but hold of no fold: r has no value after its loop
        "Reduce { src: @one: index, ranges: [r @ Range(e: index)], op: Add } if vmin(e) >= 1 ~> Add(r, 1)",
        # an iteration that does not run
        "Reduce { src: Where(Eq(r, q), f: i32, @zero), ranges: [r @ Range(e: index)], op: Add } if free_of(q, r) and vmin(e) >= 1"
        " ~> Where(And(Ge(q, 0), Le(q, e)), subst(f, r, q), zero(f))",
    ],
)
def test_an_induction_that_does_not_close_proves_nothing(text: str) -> None:
    assert not verdict(text, budget=100_000).usable


EXTERNS = """helpers "promised"
extern factor(s: any, r: index) -> (c: int)?
extern unused(s: any) -> (k: int)
"""
SPLIT = """Reduce { src: s: f32, ranges: [r @ Range { end: @const(n): index, axis, renumbered, .. }, rest..], op }
    let c = factor(s, r), k = unused(s)
    if GUARD
    let outer = Range { end: const(n // c, index), id: k, axis, renumbered }
    let inner = Range { end: const(c, index), id: ID, axis, renumbered }
    if free_of(s, outer) FRESH
    if all(free_of(x, r) and free_of(x, outer) and free_of(x, inner) for x in rest)
    => Reduce { src: subst(s, r, MAP), ranges: [ORDER, rest..], op }"""
RIGHT = {
    "GUARD": "c > 1 and n % c == 0",
    "ID": "k + 1",
    "FRESH": "and free_of(s, inner)",
    "MAP": "Add(Mul(outer, c), inner)",
    "ORDER": "outer, inner",
}


def split(**wrong: str) -> str:
    text = SPLIT
    for name, part in {**RIGHT, **wrong}.items():
        text = text.replace(name, part)
    return text


def test_a_range_is_split_by_an_index_map() -> None:
    assert verdict(split(), EXTERNS).verdict == "proved"


@pytest.mark.sampled(14)
@pytest.mark.parametrize(
    "wrong",
    [
        {"FRESH": ""},  # the body may already use the inner range
        {"GUARD": "c > 1"},  # some iterations are missing
        {"GUARD": "n % c == 0"},  # a negative factor
        {"ID": "k"},  # where both have one length they are one range
        {"MAP": "Add(Mul(inner, c), outer)"},  # other iterations
        {"MAP": "Mul(outer, c)"},  # the same one again and again
        {"ORDER": "inner, outer"},  # another order
        {"ORDER": "outer"},  # a range that nothing closes
    ],
    ids=lambda w: str(w),
)
def test_an_index_map_that_is_no_bijection_in_order_proves_nothing(wrong: dict[str, str]) -> None:
    assert not verdict(split(**wrong), EXTERNS, budget=300_000).usable


MERGE = """Reduce {
        src: s: f32,
        ranges: [
            p @ Range { end: @const(n): index, axis, renumbered, .. },
            q @ Range { end: @const(m): index, axis, .. },
            rest..
        ],
        op
    }
    let k = unused(s)
    if n > 0 and m > 0
    let r = Range { end: const(LENGTH, index), id: k, axis, renumbered }
    if free_of(s, r) and free_of(p, q)
    if all(free_of(x, p) and free_of(x, q) and free_of(x, r) for x in rest)
    ~> Reduce { src: subst(subst(s, p, OUTER), q, INNER), ranges: [r, rest..], op }"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("length", "outer", "inner", "usable"),
    [
        ("n * m", "Idiv(r, m)", "Mod(r, m)", True),
        ("n * m - 1", "Idiv(r, m)", "Mod(r, m)", False),  # one iteration less
        ("n * m", "Mod(r, n)", "Idiv(r, n)", False),  # the outer range fastest
        ("n * m", "Idiv(r, n)", "Mod(r, n)", False),  # the other length
    ],
)
def test_ranges_are_merged_by_an_index_map_that_keeps_the_order(
    length: str, outer: str, inner: str, usable: bool
) -> None:
    text = MERGE.replace("LENGTH", length).replace("OUTER", outer).replace("INNER", inner)
    assert verdict(text, EXTERNS, budget=300_000).usable is usable


ONE_RANGE = """End(body, r: i32, q: i32, rest..: i32)
    if GUARD
    ~> End(End(body, r), q, rest..)"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("guard", "usable"),
    [
        ("free_of(q, r) and all(free_of(x, r) for x in rest)", True),
        ("free_of(q, r)", False),  # the length of another loop may depend on the one inside it
        ("all(free_of(x, r) for x in rest)", False),
        ("free_of(r, q) and all(free_of(r, x) for x in rest)", False),  # the wrong way round
    ],
)
def test_a_loop_is_closed_first_if_no_length_around_it_depends_on_it(guard: str, usable: bool) -> None:
    assert verdict(ONE_RANGE.replace("GUARD", guard), EXTERNS, budget=300_000).usable is usable


CUT = """End(s: void, a, r @ Range { end: @const(n): index, axis, renumbered, .. }, rest..)
    let k = unused(s)
    if GUARD and APART
    let p = Range { end: const(FIRST, index), id: k, axis, renumbered },
        q = Range { end: const(SECOND, index), id: k + 1, axis, renumbered }
    if free_of(s, p) and free_of(s, q)
    if free_of(a, r) and free_of(a, p) and free_of(a, q)
    if all(free_of(x, r) and free_of(x, p) and free_of(x, q) for x in rest)
    ~> Group(End(subst(s, r, p), a, p, rest..), End(subst(s, r, MAP), a, q, rest..))"""
WHOLE = {"GUARD": "n > 7", "APART": "independent(s, r)", "FIRST": "7", "SECOND": "n - 7", "MAP": "Add(q, 7)"}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("wrong", "usable"),
    [
        ({}, True),
        ({"SECOND": "n - 8"}, False),  # the last iteration is lost
        ({"SECOND": "n - 6"}, False),  # one too many
        ({"FIRST": "6"}, False),  # the one before the cut is lost
        ({"FIRST": "8"}, False),  # one is done twice
        ({"MAP": "Add(q, 8)"}, False),  # off by one
        ({"MAP": "q"}, False),  # the first ones again
        ({"MAP": "p"}, False),  # a loop that is not around it
        ({"GUARD": "n > 3"}, False),  # a piece of negative length
        ({"FIRST": "n - 7", "SECOND": "7"}, False),  # the pieces exchanged
        ({"APART": "independent(s, a)"}, False),  # of another loop
        ({"APART": "not independent(s, r)"}, False),  # an iteration may need what an earlier one has stored
    ],
    ids=lambda w: str(w),
)
def test_a_loop_is_cut_into_pieces_that_are_all_its_iterations(wrong: dict[str, str], usable: bool) -> None:
    text = CUT
    for name, part in {**WHOLE, **wrong}.items():
        text = text.replace(name, part)
    assert verdict(text, EXTERNS.replace("unused(s: any)", "unused(s: (any | void))"), budget=300_000).usable is usable


REQUIRING = """helpers "promised"
extern f(a: int) -> (r: int)
    requires a < 1000
"""


@pytest.mark.parametrize(("dtype", "usable"), [("i8", True), ("i16", False), ("(i8 | i16)", False)])
def test_what_a_helper_requires_is_asked_at_every_dtype(dtype: str, usable: bool) -> None:
    text = f"Add(@const(a): {dtype}, @const(b)) let _r = f(a), c = eval(Add, a, b) => c"
    assert verdict(text, REQUIRING).usable is usable


@pytest.mark.parametrize(("second", "usable"), [("b", True), ("8 * b", False)])
def test_what_a_helper_requires_is_asked_at_every_call(second: str, usable: bool) -> None:
    text = f"Add(@const(a): i8, @const(b)) let _r = f(a), _s = f({second}), c = eval(Add, a, b) => c"
    assert verdict(text, REQUIRING).usable is usable


def test_that_an_op_commutes_is_asked_of_rules_about_folds_too() -> None:
    checked = rule(
        "Reduce { src: Mul[x: i32, @const(c)], ranges: rs, op: Add } ~> Mul(Reduce { src: x, ranges: rs, op: Add }, c)"
    )
    found = judge(checked, DEFAULT_BUDGET, keep=True)
    assert found.usable
    assert any("Mul commutes at i32" in name for name, _ in found.obligations)


FIRST = """helpers "promised"
extern first(at: seq) -> (c: int)
    ensures c == at[0]
"""


@pytest.mark.long
def test_a_helper_of_another_pack_is_another_helper() -> None:
    """Two packs in one process, each with a helper `first` of its own that promises the same."""
    text = "Gep(x, ls) if len(ls) == 1 let c = first(ls) ~> Gep(x, [c])"
    shown, not_shown = (verdict(text, head) for head in (FIRST, requiring(FIRST, "len(at) > 1")))
    assert (shown.verdict, shown.final) == ("unknown", False)  # all that is left is to call the helper
    assert (not_shown.verdict, not_shown.final) == ("unknown", True)
    text = "Add(x: index, @const(c)) let d = f(c) ~> Add(x, const(d, index))"
    head = FIRST.replace("first(at: seq) -> (c", "f(n: int) -> (d").replace("c == at[0]", "d == n")
    assert verdict(text, head).verdict == "proved"
    assert verdict(text, requiring(head, "n > 1")).verdict == "refuted"


def requiring(head: str, condition: str) -> str:
    return head.replace("    ensures", f"    requires {condition}\n    ensures")


SIZE = """helpers "promised"
extern size(x: {}) -> (c: int)
    ensures c == len(x)
"""


@pytest.mark.long
def test_a_vector_of_so_many_lanes_is_no_sequence_of_that_number() -> None:
    """Nor is what a helper says of the one in one pack what it says of the other in the next."""
    right = "Gep(x, ls) let c = size(x) if lanes(x) == 2 ~> Gep(x, [l * c // 2 for l in ls])"
    assert verdict(right, SIZE.format("any")).verdict == "unknown"  # open: it is true
    wrong = "Gep(x, ls) let c = size([lanes(x)]) if lanes(x) == 2 ~> Gep(x, [l * c // 2 for l in ls])"
    not_shown, shown = (verdict(text, SIZE.format("seq")) for text in (wrong, wrong.replace("// 2", "// 1")))
    assert (not_shown.verdict, not_shown.final) == ("unknown", True)
    assert (shown.verdict, shown.final) == ("unknown", False)  # all that is left is to call the helper


HALVES = """\
helpers "promised"
extern half(n: int) -> (h: int)?
    requires n % 2 == 0
    ensures n == 2 * h
"""


def test_a_helper_inside_an_expression_says_how_to_mend_it() -> None:
    found = verdict("Mul(x: index, @const(c)) if c % 2 == 0 => Mul(Mul(x, 2), half(c))", HALVES)
    assert found.verdict == "unknown"
    assert "`let h = half(c)` before it" in found.message
    assert (
        verdict("Mul(x: index, @const(c)) if c % 2 == 0 let h = half(c) => Mul(Mul(x, 2), h)", HALVES).verdict
        == "proved"
    )


def test_the_least_number_is_tried_where_the_solver_gives_up() -> None:
    # the remainder of the least number by -1 has no value
    found = verdict("Mod(x: i32, Neg(y)) ~> Mod(x, y)", budget=100_000)
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample["confirmed"] is True


@pytest.mark.sampled(12)
@pytest.mark.parametrize("said", ["x[0] == 3", "any(k == 3 for k in x)", "not x[0] != 3", "x == 3", "vmin(x) >= 0"])
@pytest.mark.parametrize("then", ["ls == [0]", "all(x[k] == x[0] + k for k in ls)"])
def test_a_helper_is_not_taken_to_decline_where_its_answer_hangs_on_values(said: str, then: str) -> None:
    extern = f"extern lower(x: index) -> (ls: seq)?\n    ensures len(x) == 1 or {said}\n    ensures {then}\n"
    found = verdict(
        "Gep(x: index, is) if len(is) == 1 let ls = lower(x) => Gep(x, ls)", f'helpers "promised"\n{extern}\n'
    )
    assert found.verdict == "unknown", found.scope


@pytest.mark.long
def test_what_trust_in_its_helpers_would_show_is_said_of_a_rule() -> None:
    """It is shown at every size, and no graph is tried; that the other readings cannot say it was all that was told."""
    head = 'helpers "promised"\n\nextern unused(x: any) -> (k: int)\n\n'
    found = verdict(
        "Gep { vector: Neg(x: i32), indices: is } if all(unused(x) >= i for i in is) ~> Neg(Gep(x, is))", head
    )
    assert found.verdict == "unknown"
    assert not found.final
    assert found.message.startswith(
        "at every size: no helper of its is called to try it: `morok prove --trust-helpers`"
    )
