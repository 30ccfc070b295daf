"""Every contract in the library has a test on its real helper; here is that of what divides by multiplying."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from test_helpers import truth

from morok.dsl import parse, syntax
from morok.passes import magic
from morok.rewrite.library import rules_dir

HERE = Path(__file__).parent
TOPS = st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1), st.sampled_from((2**31 - 1, 2**32 - 1, 2**63 - 1)))
DIVISORS = st.one_of(
    st.integers(1, 40), st.integers(1, 2**31 - 1), st.sampled_from((1, 2, 3, 7, 641, 2**31 - 1, 2**32 + 1))
)


@functools.cache
def externs() -> dict[str, syntax.Extern]:
    return {e.name: e for path in sorted(rules_dir().rglob("*.rules")) for e in parse.parse_file(path).externs}


def keeps(top: int, d: int) -> bool:
    """Whether `reciprocal` answered; then its contract is asserted."""
    contract = externs()["reciprocal"]
    assert all(truth(r, {"top": top, "d": d}) for r in contract.requires)
    answer = magic.reciprocal(top, d)
    if answer is None:
        return False
    m, p = answer
    assert all(truth(e, {"top": top, "d": d, "m": m, "p": p}) for e in contract.ensures), (top, d, m, p)
    return True


@given(TOPS, DIVISORS)
def test_reciprocals(top: int, d: int) -> None:
    keeps(top, d)


def test_reciprocals_divide() -> None:
    answers = 0
    for d in range(1, 60):
        for top in (0, 1, 9, 127, 255, 1000):
            answers += keeps(top, d)
            if (found := magic.reciprocal(top, d)) is not None:
                m, p = found
                assert all(x * m // p == x // d for x in range(top + 1))
    assert answers > 100


def test_every_helper_of_the_library_has_a_test_of_its_contract() -> None:
    tests = "".join(p.read_text() for p in sorted(HERE.parent.glob("*/test_*.py")))
    called = set(re.findall(r'(?:keeps_contract\(\s*|check_call\(externs\[)"(\w+)"', tests))
    by_constant = {n for n, e in externs().items() if [p.name for p in e.params] == ["x", "d"]}  # all in one test
    assert "BY_CONSTANT" in tests
    promising = {n for n, e in externs().items() if e.ensures}  # the others promise nothing that a proof could use
    assert promising - by_constant - called == {"reciprocal"}
