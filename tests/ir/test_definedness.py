"""What is said to have a value has one, wherever its variables and loops have theirs, whatever memory holds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from morok.errors import MorokError, UndefinedError
from morok.ir.definedness import defined
from morok.ir.dtype import DType, dtypes
from morok.ir.interpret import INVALID, evaluate
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp, vconst

DTYPES: Final = (dtypes.bool, dtypes.i8, dtypes.u8, dtypes.i32, dtypes.f32, dtypes.index)
SIZE: Final = 5
BUFFERS: Final = {
    UOp.new(Op.DefineGlobal, (), i, d.ptr(SIZE)): d for i, d in enumerate((dtypes.i8, dtypes.i32, dtypes.f32))
}
DIVISIONS: Final = (Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod)
PARTIAL: Final = frozenset({*DIVISIONS, Op.Shl, Op.Shr, Op.Index, Op.Load, Op.Cast})
POINTWISE: Final = [op for op, e in TABLE.entries.items() if e.pointwise and op not in (Op.Cast, Op.Where)]
FLOATS: Final = (0.0, -0.0, 1.0, -2.5, 3e9, float("inf"), float("-inf"), float("nan"))


class Graphs:
    """Random nodes, each made of those before it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        end = UOp.var("n", dtypes.index, 0, 3)
        low = rng.choice((-3, 0, 0, 1))
        self.loops = [UOp.range(rng.choice((1, 3, 5)), 0), UOp.range(end, 1), UOp.range(rng.choice((0, 2)), 2)]
        self.nodes = [
            end,
            *self.loops,
            UOp.var("a", dtypes.index, low, low + 4),
            UOp.var("b", dtypes.i8, rng.choice((-128, -1, 0, 1)), rng.choice((1, 3, 127))),
            UOp.var("c", dtypes.i32, rng.choice((-2, 0, 1)), rng.choice((2, 4, 31, 32))),
            UOp.var("u", dtypes.u8, 0, rng.choice((4, 8))),
            UOp.var("p", dtypes.bool),
            UOp.var("x", dtypes.f32),
            vconst(dtypes.i8, (1, rng.choice((2, -1, 0)))),
        ]

    def constant(self, d: DType) -> UOp:
        least = 0 if d.is_bool or d.is_unsigned else -1
        return UOp.const(self.rng.choice(FLOATS) if d.is_float else self.rng.randrange(least, 2 if d.is_bool else 5), d)

    def some(self, d: DType, count: int = 1) -> UOp:
        found = [n for n in self.nodes if n.dtype is d.vec(count)]
        if not found or (count == 1 and self.rng.random() < 0.2):
            return self.constant(d.vec(count))
        return self.rng.choice(found[-12:])

    def make(self) -> UOp:
        rng = self.rng
        d, count = rng.choice(DTYPES), 2 if rng.random() < 0.15 else 1
        form = rng.randrange(13)
        if form < 5:
            op = rng.choice(POINTWISE)
            return UOp.new(op, tuple(self.some(d, count) for _ in TABLE[op].operands))
        if form == 5:
            x, y = self.some(d, count), self.some(d, count)
            return UOp.new(rng.choice((*DIVISIONS, Op.Shl, Op.Shr)), (x, y))
        if form == 6:
            return self.some(rng.choice(DTYPES), count).cast(d.vec(count))
        if form == 7:
            nowhere = rng.random() < 0.2 and d is dtypes.index
            return self.some(dtypes.bool).where(self.some(d), UOp.invalid_at() if nowhere else self.some(d))
        if form == 8:
            at = rng.choice((self.some(dtypes.index), self.some(dtypes.index) % SIZE, rng.choice(self.loops)))
            read = rng.choice(list(BUFFERS)).index(at)
            return rng.choice((read, read, read.load(), read.load(read.dtype.vec(2))))
        if form == 9:
            return self.some(d).reduce(
                rng.choice((Op.Add, Op.Mul, Op.Max, Op.Min)), *rng.sample(self.loops, rng.randrange(1, 3))
            )
        if form == 10:
            return UOp.new(Op.Vectorize, (self.some(d), self.some(d)))
        if form == 11:
            return self.some(d, 2).gep(rng.randrange(2))
        return self.some(dtypes.i32).bitcast(dtypes.f32)

    def made(self, count: int) -> Iterator[UOp]:
        while count:
            try:
                node = self.make()
            except MorokError:
                continue
            count -= 1
            self.nodes.append(node)
            yield node


def assignments(node: UOp, rng: random.Random) -> Iterator[dict[Any, Any]]:
    """Values for the variables and the open loops of a node, within bounds: ends of bounds, 0, 1 and -1."""
    names = [n for n in node.toposort() if n.op is Op.DefineVar]
    choices: list[list[Any]] = []
    for n in names:
        if n.dtype.is_bool or n.dtype.is_float:
            choices.append([False, True] if n.dtype.is_bool else list(FLOATS))
        else:
            choices.append(sorted({int(n.vmin), int(n.vmax), *[v for v in (-1, 0, 1) if n.vmin <= v <= n.vmax]}))
    all_of_them = list(itertools.product(*choices))
    for values in rng.sample(all_of_them, min(len(all_of_them), 24)):
        env: dict[Any, Any] = dict(zip(names, values, strict=True))
        counts = {r: evaluate(r.src[0], env) for r in node.ranges}
        if all(n > 0 for n in counts.values()):
            yield env | {r: rng.choice((0, n - 1)) for r, n in counts.items()}


def memory(rng: random.Random) -> dict[UOp, list[Any]]:
    def element(d: DType) -> Any:
        return rng.choice(FLOATS) if d.is_float else rng.choice((int(d.min), int(d.max), -1, 0, 1, 2))

    return {b: [element(d) for _ in range(SIZE)] for b, d in BUFFERS.items()}


def has_value(node: UOp, env: dict[Any, Any], buffers: dict[UOp, list[Any]]) -> bool:
    try:
        found = evaluate(node, env, buffers)
    except UndefinedError:
        return False
    return INVALID not in (found if isinstance(found, tuple) else (found,))


@pytest.mark.long
@pytest.mark.parametrize("chance", range(4))
def test_what_is_said_to_have_a_value_has_one(chance: int) -> None:
    said: dict[Op, int] = dict.fromkeys(PARTIAL, 0)
    without = 0
    for seed in range(120):
        graphs = Graphs(1000 * chance + seed)
        for node in graphs.made(25):
            values = [has_value(node, env, memory(graphs.rng)) for env in assignments(node, graphs.rng)]
            if defined(node):
                assert all(values), node.text()
                for op in {n.op for n in node.toposort()} & PARTIAL:
                    said[op] += 1
            without += not all(values)
    assert without > 200
    assert min(said.values()) > 10, said


def test_by_bounds() -> None:
    i, (read, *_) = UOp.range(4, 0), BUFFERS
    x = UOp.var("x", dtypes.i32)
    for node in (
        read.index(i),
        read.index(i + 1),
        read.index(i + 1).load() * 2,
        x // 3,
        x % UOp.var("y", dtypes.i32, 1, 9),
    ):
        assert defined(node)
        assert defined(node.cast(dtypes.f32) * 0.5)
    for node in (
        read.index(i + 2),
        read.index(i - 1),
        x // -1,
        x % x,
        read.index(x.cast(dtypes.index)),
        UOp.invalid_at(),
    ):
        assert not defined(node)
        assert not defined(node.eq(node))
    assert not defined(read.index(i).load(dtypes.i8.vec(4)))  # beyond the last
    assert not defined(UOp.new(Op.DefineGlobal, (), 9, dtypes.i32.ptr()).index(0))  # of no known size
    assert not defined(i.reduce(Op.Max, i))  # the greatest of none
    assert defined(i.reduce(Op.Add, i))
