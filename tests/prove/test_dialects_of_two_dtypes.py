"""What a dialect does at one dtype says nothing of another, and what its ops are called says nothing of what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_sizes import BIG, OPS, OTHERS, SM, Term, dialect, term

from morok.dialect import verify
from morok.dsl.check import check_text
from morok.errors import HelperContractError
from morok.rewrite.asserted_contracts import check_call

X, Y = ("var", BIG, "x"), ("var", BIG, "y")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_the_sound_dialect_has_no_mistakes() -> None:
    assert verify(dialect()) == verify(dialect(ops={**OPS, **OTHERS})) == []


@pytest.mark.parametrize(
    ("promised", "broken", "made", "given"),
    [
        ("q == x", "x == 0 or q == y", ("Where", X, Y, ("const", BIG, 1)), (X, Y)),
        ("q == x", "q == min(x, 100)", ("First", ("const", BIG, 500), ("const", SM, 0)), (("const", BIG, 500), Y)),
    ],
)
def test_contracts_are_tested_by_what_ops_of_the_dialect_mean(
    promised: str, broken: str, made: Term, given: tuple[Term, ...]
) -> None:
    """An op called Where has its condition last, and an evaluator is given the dtype of its leading operand."""
    d = dialect(ops={**OPS, **OTHERS})
    head = f'dialect {d.name}\nhelpers "two_sizes"\n\nextern chosen(x: big, y: big) -> (q: big)\n    ensures '
    group = '\n\ngroup g "g"\n\nr: Mul(x: big, y: big) let q = chosen(x, y) => Mul(x, q)\n'
    sound, unsound = (next(check_text(head + promise + group).rules()).externs["chosen"] for promise in (promised, broken))
    result = term(d, *made)
    check_call(sound, d, given, result)
    with pytest.raises(HelperContractError, match="breaks what it ensures"):
        check_call(unsound, d, given, result)
