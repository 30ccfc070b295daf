"""Every rule of the library fires at every dtype that it admits, and what it makes has the value of what it took."""

from __future__ import annotations

import pytest
from firing import Fired, fire
from rulesets import checked_files

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove import ledger

RULES = [r for file in checked_files() for r in file.rules()]
TRIES = 60  # graphs for a rule at a dtype
MORE = 40_000  # where those were not enough
EXCLUDED = "excluded by the guards: "

# Rules, or dtypes of rules, that no graph was found for, each with the reason.
UNFIRED: dict[str, list[str]] = {}


def excluded(rule: CheckedRule) -> frozenset[str]:
    """The instances at which the proof found that the rule's guards never hold."""
    page = ledger.read_page(ledger.page_path(rule.file))
    assert page is not None
    record = page.records.get(rule.name)
    scope = record.scope if record is not None else ()
    return frozenset(label for s in scope if s.startswith(EXCLUDED) for label in s.removeprefix(EXCLUDED).split(", "))


def fired(text: str) -> Fired:
    rule = next(iter(check_text(f'group g "fired"\n\nr: {text}\n    "a rule"\n').rules()))
    return fire(rule, TRIES, TRIES)


FILES = sorted({r.file for r in RULES})


@pytest.mark.parametrize(
    "file",
    [pytest.param(f, marks=[] if f.endswith(("/sums.rules", "/rangeify.rules")) else pytest.mark.long) for f in FILES],
    ids=lambda f: f.rpartition("/")[2],
)
def test_rules_fire_at_every_dtype_and_keep_the_value(file: str) -> None:
    unfired: dict[str, list[str]] = {}
    for rule in (r for r in RULES if r.file == file):
        found = fire(rule, TRIES, TRIES if rule.name in UNFIRED else MORE, excluded(rule))
        assert found.different is None, f"{rule.name}: {found.different}"
        if found.missing:
            unfired[rule.name] = found.missing
    assert unfired == {
        name: missing for name, missing in UNFIRED.items() if name in {r.name for r in RULES if r.file == file}
    }


def test_a_rule_that_changes_a_value_is_found_out() -> None:
    assert fired("Sub(x: i32, y) ~> Sub(y, x)").different is not None
    assert fired("Add[x: f16, @zero] ~> x").different is not None
    assert fired("Gep { vector: Vectorize(x, y), indices: [0] } ~> y").different is not None
    assert (
        fired(
            "Reduce { src: s: i32, ranges: [Range(_e), rest..], op } ~> Reduce { src: s, ranges: rest, op: op }"
        ).different
        is not None
    )
    assert (
        fired("Index(Flip { src: x @ Reshape(_y, n), axes: [true] }, i: index) ~> Index(x, Sub(n, i))").different
        is not None
    )
    assert fired(
        "Store(Index { buffer: b, indices: [i: index], .. }, v) ~> Store(Index { buffer: b, indices: [Add(i, 1)] }, v)"
    ).different


def test_a_rule_that_never_fires_is_listed() -> None:
    assert fired("Mod(x: i32, @const(n)) if n > 5 and n < 3 ~> x").missing == ["never"]
    assert fired("Add(x: int, @const(c)) if c == 17 * 19 ~> x").missing
