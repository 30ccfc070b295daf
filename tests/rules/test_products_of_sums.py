"""Simplification ends: random index expressions, half of them products of sums, whose factors and terms have an order."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import z3
from expressions import VARIABLES, constant, refines
from random_expressions import NAMES, op, random_expression
from rulesets import ruleset, rw

from morok.dialect import Dialect
from morok.ir.expression_parser import parse
from morok.ir.op import Op
from morok.ir.structural_order import precedes
from morok.ir.uop import UOp
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.tiers import TIERS
from morok.rewrite.trace import Trace

_CIRCLED = [
    "Mul(Mul(Add(a: index[0..=7], 5), Add(b: index[0..=3], 1)), Add(Mul(b, -1), 4))",
    "Mul(Mul(Add(a: index[0..=7], 5), Add(b: index[0..=3], 1)), Mul(Add(Mul(b, -1), 4), Add(a, b)))",
    "Mul(Add(Mul(b: index[0..=3], -1), 4), Mul(Add(a: index[0..=7], 5), Add(b, 1)))",
    "Mod(Mul(Mul(Add(a: index, 5), Mul(Add(b: index, 1), a)), Add(Mul(b, -1), a)), 12)",
]


@pytest.mark.parametrize("text", _CIRCLED)
def test_a_product_of_sums_comes_to_an_end(text: str) -> None:
    before = parse(text)
    after = rw(before)
    assert rw(after) is after
    if not text.startswith("Mod"):
        refines(before, after)


@pytest.mark.long
def test_simplification_of_random_expressions_ends() -> None:
    for seed in range(6000):
        after = rw(random_expression(seed))
        assert rw(after) is after, seed


def test_products_of_sums_keep_their_meaning() -> None:
    for seed in range(1, 801, 2):
        before = random_expression(seed)
        if not any(n.op is Op.DefineVar and n.vmin == float("-inf") for n in before.toposort()):
            refines(before, rw(before), 40)


def test_one_product_has_one_form() -> None:
    """However its factors are nested and ordered."""
    for seed in range(200):
        rng = random.Random(seed)
        factors = [rw(rng.choice(NAMES) + rng.choice((0, 1, 5, -3))) for _ in range(4)]
        forms = set()
        for _ in range(6):
            nest = rng.sample(factors, 4)
            while len(nest) > 1:
                at = rng.randrange(len(nest) - 1)
                nest[at : at + 2] = [op(Op.Mul, *nest[at : at + 2])]
            forms.add(rw(nest[0]))
        assert len(forms) == 1, [f.text() for f in forms]


def test_no_factor_goes_in_front_of_a_product() -> None:
    """A chain of products is the left operand of the next: only so do the two rules about products agree."""
    x, y, *_ = VARIABLES
    others = [x, x + 1, x + y * -1, x // 2, x % 2, x.max(y), (x < y).where(x, y), constant(3), x * 3, (x // 3) * 5]
    for product in (x * y, (x + 1) * (y + 2), (x + 1) * (y + 2) * y):
        for other in others:
            assert not precedes(other, product)
            assert rw(op(Op.Mul, product, other)) is rw(op(Op.Mul, other, product))


def factors(node: UOp) -> list[UOp]:
    return [f for s in node.src for f in factors(s)] if node.op is Op.Mul else [node]


def measure(product: UOp) -> tuple[int, int]:
    """Pairs of factors out of order; factors to the right of a multiplication, added up."""
    row = factors(product)
    pairs = sum(precedes(b, a) for a, b in itertools.combinations(row, 2))

    def leaning(node: UOp) -> int:
        return len(factors(node.src[1])) + sum(map(leaning, node.src)) if node.op is Op.Mul else 0

    return pairs, leaning(product)


class Measured(Trace):
    """Asserts of each rule that only moves factors that it makes a product smaller."""

    moves = 0

    def record(self, dialect: Dialect, stage: str, rule: str, before: Any, after: Any) -> None:
        group, _, name = rule.partition(".")
        if group == "commutative_canonicalization" and before.op is Op.Mul and before.dtype.is_index and name != "sum":
            assert measure(after) < measure(before), f"{rule}: {before.text()} becomes {after.text()}"
            self.moves += 1


@pytest.mark.long
@pytest.mark.parametrize("tier", TIERS)
def test_each_move_of_a_factor_makes_the_measure_smaller(tier: str) -> None:
    trace, rules = Measured(), ruleset(*TIERS[tier])
    for seed in range(1200):
        graph_rewrite(random_expression(seed, 4), rules, trace=trace)
    assert trace.moves > 300


def test_the_measure_by_the_solver() -> None:
    def proved(*claims: z3.BoolRef) -> bool:
        solver = z3.Solver()
        solver.add(z3.Not(z3.And(*claims)))
        return solver.check() == z3.unsat

    # Mul(x, Mul(y, z)) has the factors of Mul(Mul(x, y), z) in the same order, and leans less
    y, z, rest = z3.Ints("y z rest")  # how many factors y and z have, and what leans inside x, y and z
    assert proved(z3.Implies(z3.And(y >= 1, z >= 1), rest + y + z < rest + (y + z) + z))
    # two neighbours out of order change places, whatever the others are
    for count in range(2, 7):
        row = z3.Ints(" ".join(f"f{i}" for i in range(count)))

        def pairs(row: list[z3.ArithRef]) -> z3.ArithRef:
            return z3.Sum([z3.If(b < a, 1, 0) for a, b in itertools.combinations(row, 2)])

        for at in range(count - 1):
            moved = [*row[:at], row[at + 1], row[at], *row[at + 2 :]]
            assert proved(z3.Implies(row[at + 1] < row[at], pairs(moved) < pairs(row)))
