"""Rules that are false, or too large, by their clauses: each ends without a verdict that lets it fire, or never fires."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from clauses import fires, index

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.errors import RuleError, RuleLimitError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

INFINITE = float("inf")


def rule(text: str) -> CheckedRule:
    return next(iter(check_text(f'group g "guards"\n\nr: {text}\n    "a guard"\n').rules()))


def lt(low: float, high: float) -> UOp:
    return UOp.new(Op.Lt, (index(low, high), UOp.const(11, dtypes.index)))


# What an unknown bound went through on its way into arithmetic, or into what must not see it.
THROUGH = [
    "if not ([vmax(x)][0] + ([vmax(x)][0] - [vmax(x)][0]) > 10)",
    "let m = vmax(x) if not (m - m + 1 > 0)",
    "let ms = [vmax(x), 3] if not (ms[0] - ms[0] == 0)",
    "if not (sum(vmax(x) - vmax(x) for _k in 0..1) == 0)",
    "if not (sum([vmax(x), 0 - 1]) < 10)",
    "if not (min(vmax(x), 3) - 3 > 0)",
    "if not (max(0 - 5, vmin(x)) > 0)",
    "if not (abs(vmin(x)) < 5)",
    "let ps = zip([vmax(x)], [1]) if not (all(p - p == 0 for p, _q in ps))",
    "let ms = [[vmax(x)], [3]] if all(not (m[0] - m[0] == 0) for m in ms)",
    "if not (gcd(vmax(x), 4) == 0)",
    "if not (gcd([vmax(x), 4]) == 0)",
    "if not (len([k for k in 0..vmax(x)]) > 0)",
    "if not ([5, 6][vmax(x)] == 7)",
    "if not (1 << vmax(x) == 0)",
    "if not (vmax(x) // vmax(x) == 7)",
    "if not (width([[0, vmax(x)]]) == 7)",
    "if not (is_pow2(vmax(x)))",
    "if not (- vmax(x) > 0)",
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("clauses", THROUGH)
def test_an_infinite_bound_is_only_compared(clauses: str) -> None:
    false = rule(f"Lt(x: index, 11) {clauses} ~> true")
    assert not fires(false, lt(-INFINITE, INFINITE))


NO_VALUE = [
    "if not ([1, 2][0 - 1] == 7)",
    "if not ([1, 2][2] == 7)",
    "if not (sum(p for p, _q in [[1, 2], [3]]) == 7)",
    "if not (sum(p for p, _q in [[1, 2, 3]]) == 7)",
    "let i = 0 - len([1]) if not ([1, 2][i] == 7)",
    "if not (len(zip([1, 2], [1])) == 7)",
    "if not (any(p == q for p, q in zip([1, 2], [1])))",
    "if not (1 // (vmin(x) - vmin(x)) == 7)",
    "if not (tdiv(1, vmin(x) - vmin(x)) == 7)",
    "if not (1 % (vmin(x) - vmin(x)) == 7)",
    "if not (tmod(1, vmin(x) - vmin(x)) == 7)",
    "if not (log2(0) == 7)",
    "if not (log2(12) == 7)",
    "if not (min([]) == 7)",
    "if not (max([k for k in 0..0]) == 7)",
    "if not (gcd([]) == 7)",
    "if not (1 << (0 - 1) == 7)",
    "if not (1 >> 4097 == 7)",
    "if not (1 << 4097 == 7)",
    "if not (len([1 // (k - 1) for k in 0..3]) == 7)",
    "if not (len([1 for k in 0..3 if 1 // (k - 1) > 0]) == 7)",
    "if not ([1, 1 // (vmin(x) - vmin(x))][0] == 7)",
    "if not (any(1 // (k - 1) > 0 for k in 0..3))",
    "if not (at([[0, 0]], 0, 3) == 7)",
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("clauses", NO_VALUE)
def test_what_has_no_value_fires_nothing(clauses: str) -> None:
    false = rule(f"Lt(x: index, 11) {clauses} ~> true")
    assert not fires(false, lt(0, 5))
    assert judge(false, DEFAULT_BUDGET, False).verdict in ("inapplicable", "unknown")


# True where the matcher fires, and false: the prover must see that these hold for some x.
FIRES = [
    "if vmax(x) > 100 or [1][5] == 1",
    "if vmax(x) > 100 or log2(12) == 1",
    "if vmax(x) > 100 or len(zip([1], [1, 2])) == 1",
    "if not (vmax(x) < 100 and [1][5] == 1)",
    "let ks = [k for k in 0..2] if [[0, 1], [2]] == [ks, [2]] and vmax(x) > 100",
    "if [k for k in 0..2] == [0, 1] and vmax(x) > 100",
    "if 0 < vmax(x) > 100",
    "if len([k for k in 5..2]) == 0 and vmax(x) > 100",
    "if step([[0, 2], [1, 3]], 2) == 0 and vmax(x) > 100",
    "if all(k > 3 for k in [4, 5]) and vmax(x) > 100",
    "if sum(k for k in [k + 1 for k in 0..3]) == 6 and vmax(x) > 100",
    "if min([3]) == 3 and vmax(x) > 100",
    "if log2(1 << 70) == 70 and vmax(x) > 100",
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("clauses", FIRES)
def test_the_prover_sees_what_fires(clauses: str) -> None:
    false = rule(f"Lt(x: index, 11) {clauses} ~> true")
    assert fires(false, lt(50, 200))
    assert judge(false, DEFAULT_BUDGET, False).verdict == "refuted"


MISTAKES = [
    "if [x] != [x]",
    "if [1.5] == [1.5]",
    "if [true] == [2]",
    "if [1, true] == [1, 1]",
    "if [1, 2] < [1, 3]",
    "if min(3) == 3",
    "if min() == 3",
    "if sum([true]) == 1",
    "if all([1])",
    "if len(zip([1])) == 1",
    "if width([1, 2]) == 2",
    "if true == 1",
    "if vmin(x) == 1.5",
    "if [x, 1] == [1]",
    "if len(3) == 3",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("clauses", MISTAKES)
def test_kinds_that_do_not_go_together(clauses: str) -> None:
    with pytest.raises(RuleError):
        rule(f"Lt(x: index, 11) {clauses} ~> true")


# The budget.

SQUARES = ", ".join(f"s{i + 1} = s{i} * s{i}" for i in range(40))
SQUARES_BY_EVAL = ", ".join(f"s{i + 1} = eval(Mul, s{i}, s{i})" for i in range(40))
TOO_LARGE = {
    "range": "if all(k >= 0 for k in 0..100000000000)",
    "literal": f"if vmax(x) > {'9' * 4000}",
    "million digits": f"if vmax(x) > {'9' * 1_000_000}",
    "squares": f"let s0 = 3 let {SQUARES} if s40 > 0",
    "squares of bounds": f"let s0 = vmax(x) let {SQUARES} if s40 > 0",
    "squares by eval": f"let s0 = c let {SQUARES_BY_EVAL} if s40 > 0",
    "shifts": "if vmax(x) < (((1 << 4096) << 4096) << 4096) << 4096",
    "shifts by bounds": "let p = 1 << vmax(x) let q = p * p let r = q * q let t = r * r if t > 0",
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_constant_beyond_the_budget_is_refused(name: str) -> None:
    with pytest.raises(RuleError) as caught:
        rule(f"Lt(Add(x: index, @const(c)), 11) {TOO_LARGE[name]} ~> true")
    assert any(isinstance(e, RuleLimitError) for e in caught.value.errors)


LIST = ", ".join(f"l{i + 1} = [l{i}.., l{i}..]" for i in range(40))
PAIRS = ", ".join(f"p{i + 1} = [p{i}, p{i}], q{i + 1} = [q{i}, q{i}]" for i in range(40))
ENDLESS = {
    "range": "if all(k >= 0 for k in 0..(vmax(x) * 100000000000))",
    "nested": "if all(all(all(i + j + k >= 0 for i in 0..1000) for j in 0..1000) for k in 0..1000)",
    "negative start": "if all(k < 100 for k in (0 - vmax(x) * 100000000000)..5)",
    "one after another": "let " + ", ".join(f"l{i} = [k for k in 0..60000]" for i in range(40)) + " if len(l39) > 0",
    "doubled lists": f"let l0 = [1, 2] let {LIST} if len(l40) > 0",
    "nested lists": f"let p0 = [1], q0 = [1] let {PAIRS} if p40 == q40",
}


@pytest.mark.long
@pytest.mark.parametrize("name", ENDLESS)
def test_what_takes_too_many_steps_has_no_value(name: str) -> None:
    """In another process, for the memory: nothing fires, and nothing is proved of it."""
    program = f"""
        import resource, sys
        sys.path.insert(0, {str(__import__("pathlib").Path(__file__).parent)!r})
        from test_guards import ENDLESS, fires, lt, rule
        endless = rule("Lt(x: index, 11) " + ENDLESS[{name!r}] + " ~> true")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert not fires(endless, lt(50, 200))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "doubled lists" else pytest.mark.long) for n in ENDLESS]
)
def test_nothing_is_proved_of_what_takes_too_many_steps(name: str) -> None:
    assert not judge(rule(f"Lt(x: index, 11) {ENDLESS[name]} ~> true"), DEFAULT_BUDGET, False).usable
