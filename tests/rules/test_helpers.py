"""Every helper keeps the contract that its rule file states, on generated arguments."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from expressions import DIVISOR, NESTED_SUM, SUM, VARIABLES, X, Y, Z, constant, environments, value
from hypothesis import given, settings
from hypothesis import strategies as st
from rulesets import rw

import morok
from morok.dsl import parse
from morok.dsl import syntax as S
from morok.ir import conjunctions, sums
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.structural_order import order, precedes
from morok.ir.uop import UOp, sketch
from morok.passes import gates
from morok.rewrite.simplify import simplify
from morok.rewrite.trace import Trace, tracing

RULES = Path(morok.__file__).parent.parent / "rules"
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def tdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tdiv": tdiv,
    "tmod": lambda a, b: a - tdiv(a, b) * b,
    "gcd": math.gcd,
    "min": min,
    "max": max,
}


def truth(e: S.Expr, names: Mapping[str, Any]) -> Any:
    """The value of a contract's expression."""
    match e:
        case S.EName(name=name):
            return names[name]
        case S.ENumber(value=v):
            return v
        case S.EUnary(op=op, operand=a):
            inner = truth(a, names)
            return -inner if op == "-" else not inner
        case S.EBinary(op=op, left=a, right=b):
            return BINARY[op](truth(a, names), truth(b, names))
        case S.ECompare(ops=ops, operands=operands):
            values = [truth(o, names) for o in operands]
            return all(BINARY[op](a, b) for op, a, b in zip(ops, values, values[1:], strict=False))
        case S.ECall(name=name, args=args):
            return FUNCTIONS[name](*[truth(a, names) for a in args])
    raise AssertionError(e)


FILES = [parse.parse_file(path) for path in sorted(RULES.glob("index/*.rules"))]
EXTERNS = {e.name: e for f in FILES for e in f.externs}
HELPERS = {e.name: getattr(import_module(f.helpers), e.name) for f in FILES if f.helpers is not None for e in f.externs}


def keeps_contract(name: str, *arguments: Any) -> bool:
    """Call a helper; where it answers assert its contract everywhere; whether it answered."""
    extern = EXTERNS[name]
    params = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
    function = HELPERS[name]
    nodes = [a for a in arguments if isinstance(a, UOp)]
    for env in environments(nodes, 300):
        known = {k: value(v, env) if isinstance(v, UOp) else v for k, v in params.items()}
        if None not in known.values() and not all(truth(r, known) for r in extern.requires):
            return False
    answer = function(*arguments)
    if answer is None:
        assert extern.partial
        return False
    results = answer if len(extern.results) > 1 else (answer,)
    named = {p.name: r for p, r in zip(extern.results, results, strict=True)}
    for env in environments(nodes, 300):
        values = {k: value(v, env) if isinstance(v, UOp) else v for k, v in {**params, **named}.items()}
        if any(values[k] is None for k in params):
            continue  # an argument is undefined here
        assert None not in values.values(), f"{name}: a result is undefined where the arguments are not"
        for e in extern.ensures:
            assert truth(e, values), f"{name}{[str(a) for a in arguments]} = {named} at {values}"
    return True


BY_CONSTANT = [n for n, e in EXTERNS.items() if [p.name for p in e.params] == ["x", "d"]]


@pytest.mark.long
@pytest.mark.parametrize("name", BY_CONSTANT)
def test_division_helpers_keep_their_contracts(name: str) -> None:
    answers = 0

    @settings(max_examples=150)
    @given(NESTED_SUM, DIVISOR)
    def run(x: UOp, d: int) -> None:
        nonlocal answers
        answers += keeps_contract(name, x, d)

    run()
    assert answers > 3, f"{name} hardly ever answers: {answers}"


@pytest.mark.long
@given(NESTED_SUM, st.integers(1, 6), st.integers(1, 6))
def test_digits(x: UOp, d: int, k: int) -> None:
    assert keeps_contract("digits", x.max(0), d * k, d)


@pytest.mark.long
@given(SUM)
def test_two_values(x: UOp) -> None:
    keeps_contract("two_values", x)
    v = UOp.var("bit", dtypes.index, 3, 4)
    assert keeps_contract("two_values", v * 3 + 2)


@pytest.mark.long
@given(NESTED_SUM, st.integers(-30, 60))
def test_below(x: UOp, b: int) -> None:
    parts, _ = sums.terms(x)
    keeps_contract("below", sums.build(parts, 0, x.dtype), b)


@pytest.mark.long
@given(NESTED_SUM, NESTED_SUM, st.integers(-6, 9))
def test_sums_are_merged_and_scaled(x: UOp, y: UOp, c: int) -> None:
    keeps_contract("merged", x, y)
    assert keeps_contract("scaled", x, c)
    assert rw(x + y) is rw(y + x)


@pytest.mark.long
@given(NESTED_SUM, NESTED_SUM)
def test_sums_are_gathered(x: UOp, y: UOp) -> None:
    assert keeps_contract("gathered", x, y)
    assert sums.gathered(sketched(x), sketched(y)) is rw(x + y), (
        "the terms of sketches are put in order, whatever their order was"
    )


def sketched(x: UOp) -> UOp:
    """A sum over its terms in their final form, as the engine shows it to rules for whole nests."""
    return sketch(x, tuple([sketched(s) for s in x.src])) if x.op is Op.Add else rw(x)


@pytest.mark.long
@given(NESTED_SUM)
def test_terms_are_distinct_and_no_sums(x: UOp) -> None:
    """Of a sum as it was written, and of the chain that it becomes, which they make again."""
    chain = rw(x)
    for y in (x, chain):
        parts, _ = sums.terms(y)
        assert len({v for v, _ in parts}) == len(parts)
        assert all(c and v.op not in (Op.Add, Op.Sub, Op.Neg, Op.Const) for v, c in parts)
    assert sums.build(*sums.terms(chain), x.dtype) is chain


def test_a_sum_that_is_shared_is_gathered_once() -> None:
    a = UOp.var("a", dtypes.index, 0, 3)
    twice = a
    for _ in range(200):
        twice = twice + twice
    assert simplify(twice) is a * 2**200


def test_a_reversed_sum_takes_few_firings() -> None:
    """n log n: every term moves once. Put in order term by term the chain would be made anew for each."""
    x = UOp.var("v999", dtypes.index, 0, 9)
    for i in reversed(range(999)):
        x = x + UOp.var(f"v{i:03}", dtypes.index, 0, 9)
    with tracing(Trace()) as trace:
        out = simplify(x)
    assert len(trace.firings) < 10
    assert [n.arg[0] for n in out.toposort() if n.op is Op.DefineVar] == [f"v{i:03}" for i in range(1000)]


def test_merged_walks_back_no_further_than_it_must() -> None:
    a, b, c, d = (UOp.var(n, dtypes.index, 0, 9) for n in "abcd")
    assert sums.merged(a + b + c, d) is None
    assert sums.merged(a + c * 2 + d + 3, b + c + 4) is a + b + c * 3 + d + 7
    assert sums.merged(a + b, b * -1) is a
    both = a.max(constant(-1)), a.max(constant(-2))
    assert rw(both[0] + both[1]) is rw(both[1] + both[0]), "Python hashes -1 and -2 alike"


@pytest.mark.long
@given(NESTED_SUM)
def test_negated_and_support(x: UOp) -> None:
    parts, _ = sums.terms(x)
    keeps_contract("negated", sums.build([(v, -abs(c)) for v, c in parts], 0, x.dtype))
    keeps_contract("support", sums.build([(v, abs(c)) for v, c in parts], 0, x.dtype))


@pytest.mark.long
@given(
    st.lists(st.tuples(st.sampled_from(VARIABLES), st.integers(-6, 9)), min_size=1, max_size=3),
    st.integers(-12, 12),
    st.integers(1, 6),
)
def test_products(parts: list[tuple[UOp, int]], k: int, c: int) -> None:
    y = (Y + 1) * c
    x = sums.build([(v * y, e) for v, e in parts], 0, X.dtype)
    keeps_contract("common_product", x + k, y)
    keeps_contract("split_by", x + k, y)
    if any(sum(e for u, e in parts if u is v) for v, _ in parts):  # else nothing is left of the sum
        assert keeps_contract("common_product", x, y)


@pytest.mark.long
@given(SUM, st.integers(2, 9), st.integers(-3, 3), st.integers(-4, 4).filter(bool), SUM, st.booleans())
def test_remainder_pair(x: UOp, n: int, shift: int, k: int, other: UOp, mod_last: bool) -> None:
    y = sums.build(*sums.terms(x + constant(n * shift)), x.dtype)
    quotient, remainder = (x // n) * (k * n), (y % n) * k
    s = other + quotient + remainder if mod_last else other + remainder + quotient
    assert keeps_contract("remainder_pair", s)


@pytest.mark.long
@given(st.lists(st.sampled_from([X < 3, Y < 2, Z < 1, X.ne(5), (X // Y).ne(1), (X % Z) < 2]), min_size=1, max_size=4))
def test_gates(conditions: list[UOp]) -> None:
    c = conjunctions.conjunction(conditions)
    assert keeps_contract("gate", c, X + Y)
    for which in range(1 << len(conjunctions.clauses(c))):
        assert keeps_contract("split", c, which)


def parts(c: UOp, place: UOp) -> tuple[UOp, UOp] | None:
    """What goes into the address of a load, and what is asked around it."""
    which = gates.gate_clauses(c, place)
    return None if which is None else gates.split(c, which)


def test_clauses_about_other_loops_stay_outside() -> None:
    r, s = UOp.range(4, 0), UOp.range(4, 1)
    assert gates.gate((r < 3) & (s < 2), r + 1) is None
    assert parts((r < 3) & (s < 2), r + 1) == (r < 3, s < 2)
    assert parts((s < 2) & (r < 3) & (s > 0) & (r > 1), r + 1) == ((r < 3) & (r > 1), (s < 2) & (s > 0))
    place = (r < 3).where(r + 1, UOp.invalid_at())
    assert parts((r < 3) & (s < 2), place) == (r < 3, s < 2)
    assert parts(s < 2, place) is None


def test_a_clause_that_the_gate_implies_does_not_move_again() -> None:
    """Reduced by the others, `3r + s > 3` is `r > 1`: it would be added to the gate, and reduced, for ever."""
    r, s = UOp.range(4, 0), UOp.range(2, 1)
    loaded = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(3)).index(r).ne(0)
    beyond, first = UOp.const(3, dtypes.index) < r * 3 + s, s < 1
    c, place = beyond & loaded, r + s
    assert parts(c, place) == (beyond, c)
    assert parts(c, (beyond & first).where(place, UOp.invalid_at())) is None
    assert parts(c, ((UOp.const(1, dtypes.index) < r) & first).where(place, UOp.invalid_at())) is None
    assert parts(c, first.where(place, UOp.invalid_at())) == (beyond, c)


def test_a_clause_that_may_have_no_value_is_not_asked_alone() -> None:
    """It has none where a clause that goes into the address fails: only their conjunction has."""
    r, s = UOp.range(4, 0), UOp.range(4, 1)
    storage = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(3))
    within, beyond = storage.index(s % 3).ne(0), storage.index(s).ne(0)
    assert parts((r < 3) & within, r) == (r < 3, within)
    for other in (beyond, (s // (r - 3)).ne(0), (s // r).ne(0) & within):
        c = (r < 3) & other
        assert parts(c, r) == (r < 3, c)
        assert parts(c, (r < 3).where(r, UOp.invalid_at())) is None
        assert parts(other, r) is None


def test_order_is_structural() -> None:
    names = [UOp.var(n, dtypes.index, 0, 9) for n in ("b", "a", "c")]
    assert [v.arg[0] for v in sorted(names, key=order)] == ["a", "b", "c"]
    a, b, _ = sorted(names, key=order)
    assert precedes(a, b)
    assert not precedes(b, a)
    assert not precedes(a, a)
    assert precedes(a + b, a), "sums stand first: a chain leans to the left"
    assert precedes(b, constant(3)), "constants stand last"
    assert precedes(a % 8, a // 8)
    assert precedes(a // 8, b), "what is about one variable stands together"


@pytest.mark.long
def test_order_of_a_deep_graph() -> None:
    node = X
    bit = UOp.var("bit", dtypes.index, 0, 1)  # with other factors its bounds would have 100,000 digits, at every level
    for i in range(100_000):
        node = node * bit + i
    assert precedes(node, X)


def test_order_does_not_depend_on_construction() -> None:
    import subprocess
    import sys

    program = """
from morok.ir.uop import UOp, sketch
from morok.passes import gates
from morok.passes import validity
from morok.ir.dtype import dtypes
from morok.ir.structural_order import order
import sys
names = sys.argv[1:]
v = {n: UOp.var(n, dtypes.index, 0, 9) for n in names}
e = {n: (v[n] * 3 + 1) // 4 % 5 for n in names}
print(sorted(names, key=lambda n: order(e[n])), [order(e[n])[3] for n in sorted(names)])
"""
    runs = {
        subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True, check=True).stdout
        for names in (("p", "q", "r"), ("r", "q", "p"))
    }
    assert len(runs) == 1
