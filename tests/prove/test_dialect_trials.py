"""The parts of a dialect's verification, each asked alone: what they try, and what they find."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from mistaken import HIGH, LOW, Encoding, Saturating, clip, dialect, op, with_op

from morok.dialect import NOT_CONST
from morok.prove.dialect_agreement import Agreement, Case, Wrong
from morok.prove.dialect_encodings import kind_of, worlds
from morok.prove.dialect_facts import dtype_mistakes
from morok.prove.dialect_meanings import meaning_mistakes, shared_mistakes, signatures, theory_of
from morok.prove.dialect_nodes import OpNodes, template_of_constants
from morok.prove.dialect_theory import equality_mistakes, theory_mistakes
from morok.prove.dialect_trees import Trees
from morok.prove.dialect_values import candidates
from morok.prove.function_digest import code_of
from morok.prove.made_arguments import EDGES, Arguments
from morok.prove.semantics.plain import IntegerWorld

SPECIAL = 57
TABLE = {"at": [[71], 57]}
MANY = tuple(f"d{i}" for i in range(14))


def in_a_tuple(d: Any, a: int, b: int) -> int:
    return 3 if a in (57, 71) and b == 1 else clip(a + b)


def in_a_constant(d: Any, a: int, b: int) -> int:
    return 3 if a == SPECIAL and b == 1 else clip(a + b)


def in_a_table(d: Any, a: int, b: int) -> int:
    return 3 if a in TABLE["at"] and b == 1 else clip(a + b)


def in_a_default(d: Any, a: int, b: int, at: tuple[int, ...] = (57,)) -> int:
    return 3 if a in at and b == 1 else clip(a + b)


def behind_others(d: Any, a: int, b: int) -> int:
    for known in (11, 22, 33, 44, 55):
        if a == known:
            return clip(known + b)
    return 3 if a == 57 and b == 1 else clip(a + b)


def of_two(d: Any, a: int, b: int) -> int:
    return 3 if a == 57 and b == -71 else clip(a + b)


def meanings_of(made: Saturating, name: str) -> list[tuple[str, str]]:
    return [(m.field, m.message) for m in meaning_mistakes(made, theory_of(made), made.ops[name])]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("evaluate", [in_a_tuple, in_a_constant, in_a_table, in_a_default, behind_others, of_two])
def test_the_numbers_that_an_evaluator_knows_are_tried(evaluate: Callable[..., int]) -> None:
    """Wherever they stand in its code and in what that refers to."""
    assert meanings_of(dialect(), "Add") == []
    found = meanings_of(with_op(dialect(), "Add", evaluate=evaluate, commutative=False), "Add")
    assert [field for field, _ in found] == ["evaluate"]
    assert "Add(57, " in found[0][1]


def test_the_numbers_of_a_helper_are_those_of_all_that_it_refers_to() -> None:
    assert {57, 71} <= set(code_of(in_a_tuple, __name__).numbers)
    assert {57, 71} <= set(code_of(in_a_table, __name__).numbers)
    assert 57 in code_of(in_a_constant, __name__).numbers
    made = Arguments.__new__(Arguments)
    made.rng = random.Random(0)
    kinds = [list(range(EDGES)), [True, False]]
    assert {v for v, _ in made._covered(kinds)} == set(kinds[0])


def converting(evaluate: Callable[..., int]) -> Saturating:
    made = dialect()
    made.theory = "mistaken:Many"
    made.dtypes = {n: n for n in MANY}
    letters = {"T": MANY[:7], "U": MANY[:7]}
    made.ops = {
        "Conv": op("Conv", 1, evaluate, params=("T",), result="U", domains=letters, solver="mistaken:solve_conv")
    }
    return made


@pytest.mark.long
def test_every_choice_of_dtypes_is_tried() -> None:
    tried = set()

    def evaluate(d: Any, a: int, source: Any) -> int:
        tried.add((source, d))
        return 7 if len(tried) == 49 else a

    made = converting(evaluate)
    assert [field for field, _ in meanings_of(made, "Conv")] == ["evaluate"]
    assert len(tried) == len(signatures(made.ops["Conv"])) == 49


def test_facts_about_dtypes_are_asked_of_all_pairs() -> None:
    made = dialect()
    made.dtypes = {n: n for n in MANY}
    world = IntegerWorld("integers", limits={n: (0, 9) if n == MANY[-1] else (0, 99) for n in MANY})
    made.facts = {"safe_cast": lambda a, b: b != MANY[-1] or a == b}
    assert list(dtype_mistakes(made, [world])) == []
    made.facts = {"safe_cast": lambda a, b: True}
    assert [m.facts for m in dtype_mistakes(made, [world])] == [("safe_cast",)]


@pytest.mark.parametrize(
    ("solver", "field"), [("solve_neg", None), ("one_unknown", "evaluate"), ("unknown_of_each", None)]
)
def test_what_is_known_in_part_is_asked_of_all_applications_at_once(solver: str, field: str | None) -> None:
    """One unknown for all operands can be the value of each, and not of all: `Sub(Hash(x), Hash(y)) ~> zero(x)` is false."""
    found = meanings_of(with_op(dialect(), "Neg", solver=f"mistaken:{solver}"), "Neg")
    assert [f for f, _ in found] == ([] if field is None else [field])
    assert all("which it cannot be to the solver where Neg(" in message for _, message in found)


@pytest.mark.parametrize(("other", "wrong"), [(1, True), (0, False)])
def test_what_is_known_in_part_of_two_ops_is_asked_of_both_at_once(other: int, wrong: bool) -> None:
    """Two ops that are one unknown to the solver are one value in proofs: `Neg(x) ~> Other(x)` is proved."""
    made = with_op(dialect(), "Neg", solver="mistaken:one_unknown", evaluate=lambda d, a: 0)
    made.ops = {**made.ops, "Other": op("Other", 1, lambda d, a: other, solver="mistaken:one_unknown")}
    assert meanings_of(made, "Neg") == meanings_of(made, "Other") == []
    found = list(
        shared_mistakes(made, theory_of(made), [*made.ops.values()], {"sat": [0, 1, -1], "bool": [False, True]})
    )
    assert [(m.op, m.field) for m in found] == [("Other", "evaluate")] * wrong
    assert all("is 1, which it cannot be to the solver where Neg(" in m.message for m in found)


def test_the_case_that_others_exclude_is_named() -> None:
    import mistaken

    agreement = Agreement(op("Neg", 1, lambda d, a: -a), mistaken.one_unknown, Encoding(IntegerWorld), ["sat"], "sat")
    cases = [Case((v,), 0 if v < 5 else 1) for v in range(9)]
    assert agreement.of_constants(cases[:5]) == cases[:5]
    with pytest.raises(Wrong, match=r"Neg\(5,?\) is 1, which it cannot be to the solver where Neg\(\d,?\) is 0"):
        agreement.of_constants(cases)


@pytest.mark.parametrize(
    "world", ["EqualIfUnknown", "EqualOfResults", "UnequalIfUnknown", "OffIfUnknown", "TurnedIfUnknown", "IntegerWorld"]
)
def test_theories_are_asked_about_unknowns(world: str) -> None:
    """What is so of constants says nothing of what rules are about."""
    import mistaken

    made = dialect()
    attempt = Encoding(getattr(mistaken, world))
    values = {"sat": candidates(attempt.world(), "sat", random.Random(0))}
    worlds = {"sat": [attempt.world()]}
    wrong = [*theory_mistakes(worlds, values), *equality_mistakes(worlds, [*made.ops.values()])]
    found = {m.message.split("`")[1] for m in wrong}
    part = {"OffIfUnknown": {"number_of", "bound"}, "TurnedIfUnknown": {"bound"}, "IntegerWorld": set()}
    assert found == part.get(world, {"equal"})


def test_encodings_of_two_names_are_two() -> None:
    """An encoding may make another world because of its name, or of its share of the budget."""
    kinds = {kind_of(Encoding(IntegerWorld, name=name, share=share)) for name in ("a", "b") for share in (0.5, 1.0)}
    assert len(kinds) == 4
    assert kind_of(Encoding(IntegerWorld)) == kind_of(Encoding(IntegerWorld))


def trials_of(made: Saturating, name: str) -> set[tuple[str, str]]:
    """(op, field) of the mistakes in the nodes of an op, over constants and over nodes."""
    theory = theory_of(made)
    known = {n: [a.world() for a in worlds(theory, made, "Add", [n])] for n in ("sat", "bool")}
    values = {n: candidates(w[0], n, random.Random(n)) for n, w in known.items()}
    found = OpNodes(made, made.ops[name], values, known).mistakes()
    found += Trees(made, made.ops[name], values, known, frozenset(made.ops)).mistakes()
    return {(m.op, m.field) for m in found}


SMALL = {"classes": {"small": frozenset({"sat"}), "any": frozenset({"sat", "bool"}), "int": frozenset({"sat"})}}
TEMPLATES: dict[str, tuple[dict[str, Any], str, str]] = {
    "value of a node": (
        {"inline": {"const_value": "({n}[2] if {n}[0] == 'const' else len({n}))"}},
        "",
        "inline['const_value']",
    ),
    "value of what is nested": (
        {"inline": {"const_value": "({n}[2] if {n}[0] == 'const' else 0 if {n}[1][0] == 'add' else None)"}},
        "",
        "inline['const_value']",
    ),
    "operands of what is nested": (
        {"inline": {"operands": "({n}[1:] if {n}[0] not in ('const', 'var') and {n}[1][0] != 'add' else ())"}},
        "",
        "inline['operands']",
    ),
    "class of a node": (
        {"inline": {"in.small": "({n}[0] == 'const' and {n}[1] == 'sat')"}, **SMALL},
        "",
        "inline['in.small']",
    ),
    "dtype of a node": ({"inline": {"scalar": "({n}[1] if {n}[0] == 'const' else 'bool')"}}, "", "inline['scalar']"),
    "one operand": (
        {"inline": {"pointwise1": "({op}, {a}) if {a}[0] != 'add' else {a}"}},
        "Neg",
        "inline['pointwise1']",
    ),
    "two operands": ({"inline": {"pointwise2": "({op}, {b}, {a})"}}, "Sub", "inline['pointwise2']"),
    "nodes of an op": ({"inline": {"build.Neg": "('neg', ('const', 'sat', 77))"}}, "Neg", "inline['build.Neg']"),
}


@pytest.mark.parametrize(("state", "owner", "field"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_templates_are_compared_with_methods_on_every_node(state: dict[str, Any], owner: str, field: str) -> None:
    made = dialect()
    name = owner or "Sub"
    assert trials_of(made, name) == set()
    for attribute, value in state.items():
        setattr(made, attribute, value)
    assert trials_of(made, name) == {(owner, field)}


def test_templates_that_say_what_the_methods_say_are_no_mistake() -> None:
    made = dialect()
    made.inline = {
        "opkey": "{n}[0]",
        "operands": "_d.operands({n})",
        "const_value": "({n}[2] if {n}[0] == 'const' else None)",
        "scalar": "_d.type({n})",
        "same": "({a} == {b})",
        "pointwise1": "({op}, {a})",
        "pointwise2": "({op}, {a}, {b})",
        "const": "_d.const({d}, {v})",
        "in.int": "_d.type({n}) == 'sat'",
    }
    for name in made.ops:
        assert trials_of(made, name) == set()


@pytest.mark.parametrize(
    ("template", "wrong"),
    [
        ("('const', {d}, {v})", True),
        ("('const', {d}, max(-100, min(100, int({v}))))", False),
        ("_d.const({d}, {v})", False),
    ],
)
def test_the_template_of_constants_makes_what_the_method_makes_of_numbers_beyond_the_dtype(
    template: str, wrong: bool
) -> None:
    made = dialect()
    made.inline = {"const": template}
    assert [m.field for m in template_of_constants(made, "sat", [LOW, 0, HIGH])] == ["inline['const']"] * wrong


@pytest.mark.parametrize("counts", [(0,), (2,), (1,)])
def test_ops_that_take_more_operands_or_fewer_are_not_closed(counts: tuple[int, ...]) -> None:
    """A node of one operand more is matched as if it had those that its op lists."""

    def build(self: Any, name: str, operands: Any, attrs: Any, d: Any) -> Any:
        listed = (*(1 if name == "Neg" else 2 for _ in "a"), *counts)
        if len(operands) not in listed or any(o[1] == "bool" for o in operands):
            raise ValueError(name)
        return (name.lower(), *operands)

    made = dialect(build=build, closed_types=True)
    assert trials_of(made, "Neg") == ({("Neg", "closed_types")} if counts != (1,) else set())


def test_what_has_no_value_is_no_constant() -> None:
    assert dialect().const_value(("neg", ("const", "sat", 1))) is NOT_CONST
