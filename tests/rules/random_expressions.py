"""Random index expressions, half of them products of sums."""

from __future__ import annotations

import random
from typing import Final

from expressions import VARIABLES, constant

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

NAMES: Final = (*VARIABLES, UOp.var("u", dtypes.index), UOp.var("w", dtypes.index, 0, 1))
COEFFICIENTS: Final = (-8, -3, -2, -1, 1, 2, 3, 4, 6, 12)
COMPARISONS: Final = (Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne)


def op(kind: Op, *operands: UOp) -> UOp:
    return UOp.new(kind, operands)


def tree(rng: random.Random, depth: int) -> UOp:
    """An index expression of any shape."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(NAMES) if rng.random() < 0.75 else constant(rng.randrange(-6, 17))
    kind = rng.choice((Op.Add, Op.Add, Op.Sub, Op.Mul, Op.Mul, Op.Idiv, Op.Mod, Op.Max, Op.Min, Op.Neg, Op.Where))
    a = tree(rng, depth - 1)
    if kind is Op.Neg:
        return op(kind, a)
    if kind in (Op.Idiv, Op.Mod, Op.Mul) and rng.random() < 0.5:
        return op(kind, a, constant(rng.choice(COEFFICIENTS)))
    b = tree(rng, depth - 1)
    if kind is Op.Where:
        return op(kind, op(rng.choice(COMPARISONS), tree(rng, depth - 1), tree(rng, depth - 1)), a, b)
    return op(kind, a, b)


def sum_of_terms(rng: random.Random, depth: int) -> UOp:
    out = None
    for _ in range(rng.randrange(1, 4)):
        term = rng.choice(NAMES) if depth == 0 or rng.random() < 0.7 else product_of_sums(rng, depth - 1)
        if rng.random() < 0.4:
            term = op(Op.Mul, term, constant(rng.choice(COEFFICIENTS)))
        out = term if out is None else op(Op.Add, *rng.sample((out, term), 2))
    assert out is not None
    return out if rng.random() < 0.4 else op(Op.Add, out, constant(rng.randrange(-6, 9)))


def product_of_sums(rng: random.Random, depth: int) -> UOp:
    """Two to four factors, multiplied in any order, and perhaps divided."""
    factors = [
        sum_of_terms(rng, depth) if rng.random() < 0.8 else rng.choice(NAMES) for _ in range(rng.randrange(2, 5))
    ]
    while len(factors) > 1:
        at = rng.randrange(len(factors) - 1)
        factors[at : at + 2] = [op(Op.Mul, *factors[at : at + 2])]
    if rng.random() < 0.75:
        return factors[0]
    divisor = constant(rng.choice(COEFFICIENTS)) if rng.random() < 0.6 else sum_of_terms(rng, 0)
    return op(rng.choice((Op.Idiv, Op.Mod)), factors[0], divisor)


def random_expression(seed: int, depth: int = 3) -> UOp:
    """Products of sums, nested less deeply, for odd seeds, trees of any shape for even ones."""
    rng = random.Random(seed)
    return product_of_sums(rng, depth // 2) if seed % 2 else tree(rng, depth)
