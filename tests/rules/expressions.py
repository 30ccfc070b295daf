"""Random index expressions, and their values, for the tests of the rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from morok.ir.dtype import dtypes
from morok.ir.op import Op, Undefined
from morok.ir.uop import UOp

X = UOp.var("x", dtypes.index, 0, 7)
Y = UOp.var("y", dtypes.index, 0, 3)
Z = UOp.var("z", dtypes.index, -4, 4)
R = UOp.range(6, 0)
VARIABLES = (X, Y, Z, R)


def constant(value: int) -> UOp:
    return UOp.const(value, dtypes.index)


def value(node: UOp, environment: Mapping[UOp, Any]) -> Any:
    """The value of a scalar node, its variables and ranges given; None where it is undefined. Lazy in the branches of Where."""
    values: dict[UOp, Any] = {}
    for n in node.toposort():
        if n in environment:
            values[n] = environment[n]
        elif n.op is Op.Const:
            values[n] = n.arg
        elif n.op is Op.Range:
            raise KeyError(n)
        elif n.op is Op.Where:
            c = values[n.src[0]]
            values[n] = None if c is None else values[n.src[1] if c else n.src[2]]
        else:
            operands = [values[s] for s in n.src]
            if (
                n.op in (Op.And, Op.Or)
                and n.dtype.is_bool
                and (n.op is Op.Or) in [o for o in operands if o is not None]
            ):
                values[n] = n.op is Op.Or  # one operand decides: the other need not have a value
                continue
            if None in operands:
                values[n] = None
                continue
            evaluate = n.entry.evaluate
            assert evaluate is not None, n.op
            d = n.src[0].dtype if n.entry.comparison else n.dtype
            try:
                values[n] = evaluate(d.scalar(), *operands, *([n.src[0].dtype] if n.op is Op.Cast else []))
            except Undefined:
                values[n] = None
    return values[node]


def leaves(nodes: Iterable[UOp]) -> list[UOp]:
    """The variables and ranges below these nodes."""
    found: dict[UOp, None] = {}
    for node in nodes:
        for n in node.toposort():
            if n.op in (Op.DefineVar, Op.Range):
                found[n] = None
    return list(found)


def environments(nodes: Iterable[UOp], most: int = 2000) -> Iterator[dict[UOp, int]]:
    """Every choice of values for the variables below these nodes; evenly spread ones where there are more than `most`."""
    names = leaves(nodes)
    choices = [range(int(n.vmin), int(n.vmax) + 1) for n in names]
    total = 1
    for c in choices:
        total *= len(c)
    if total <= most:
        for values in itertools.product(*choices):
            yield dict(zip(names, values, strict=True))
        return
    for i in range(most):
        step = i * (total - 1) // (most - 1)
        picked = []
        for c in choices:
            step, at = divmod(step, len(c))
            picked.append(c[at])
        yield dict(zip(names, picked, strict=True))


def refines(before: UOp, after: UOp, most: int = 2000) -> None:
    """Assert that `after` has the value of `before` wherever that has one."""
    for env in environments((before,), most):
        expected = value(before, env)
        if expected is not None:
            got = value(after, env)
            named = {n.text(): v for n, v in env.items()}
            assert got == expected, f"{before.text()} is {expected}, {after.text()} is {got} at {named}"


def cost(node: UOp) -> int:
    """ops.md, Cost: distinct nodes that are no leaves, divisions 10, products 3, others 1."""
    total = 0
    for n in node.toposort():
        if n.src and n.op is not Op.Range:
            total += 10 if n.op in (Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod) else 3 if n.op is Op.Mul else 1
    return total


def sums(atoms: st.SearchStrategy[UOp]) -> st.SearchStrategy[UOp]:
    """Sums of up to four atoms with coefficients, and a constant."""

    def add(parts: list[tuple[UOp, int]], k: int) -> UOp:
        out: UOp | None = None
        for v, c in parts:
            term = v if c == 1 else v * constant(c)
            out = term if out is None else out + term
        if out is None:
            return constant(k)
        return out if k == 0 else out + constant(k)

    coefficient = st.sampled_from((1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, -1, -2, -3, -4, -8))
    return st.builds(add, st.lists(st.tuples(atoms, coefficient), min_size=1, max_size=4), st.integers(-20, 40))


DIVISOR = st.sampled_from((2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 18, 24))
ATOM = st.sampled_from(VARIABLES)
SUM = sums(ATOM)
QUOTIENT = st.builds(lambda s, d, mod: (s % d) if mod else s // d, SUM, DIVISOR, st.booleans())
NESTED_SUM = sums(st.one_of(ATOM, QUOTIENT))


def expressions() -> st.SearchStrategy[UOp]:
    """Index expressions of any shape: sums, products, divisions by constants and by variables, Max, Min, Where."""

    def grow(inner: st.SearchStrategy[UOp]) -> st.SearchStrategy[UOp]:
        divisor = st.one_of(DIVISOR.map(constant), st.sampled_from((-2, -3, -8)).map(constant), st.just(Y + 1))
        comparison = st.builds(
            lambda a, b, op: UOp.new(op, (a, b)), inner, inner, st.sampled_from((Op.Lt, Op.Le, Op.Eq, Op.Ne))
        )
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, c: a * c, inner, st.integers(-6, 9)),
            st.builds(lambda a, b: a // b, inner, divisor),
            st.builds(lambda a, b: a % b, inner, divisor),
            st.builds(lambda a, b: a // b, inner, divisor),
            st.builds(lambda a, b: a % b, inner, divisor),
            st.builds(lambda a, b: a.max(b), inner, inner),
            st.builds(lambda a, b: a.min(b), inner, inner),
            st.builds(lambda c, a, b: c.where(a, b), comparison, inner, inner),
        )

    return st.recursive(st.one_of(ATOM, st.integers(-9, 20).map(constant)), grow, max_leaves=9)
