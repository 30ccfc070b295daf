"""Nodes of all ops over operands drawn at random: what is neither refused with an error of ours, nor a node that can be used.

    python tests/property/wrong_nodes.py 50000 [seed]

Each line that is printed is a finding: the op, its operands, what was asked of the node, and the exception.
"""

from __future__ import annotations

import contextlib
import pickle
import random
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import wrong_calls

from morok import UOp, dtypes
from morok.errors import MorokError
from morok.ir.dtype import AddrSpace, DType
from morok.ir.interpret import evaluate, run, tensor
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.structural_order import order
from morok.ir.text import dump
from morok.ir.verify import verify

I32, F32, INDEX, BOOL = dtypes.i32, dtypes.f32, dtypes.index, dtypes.bool
DTYPES: Final[list[DType | None]] = [
    *(None, I32, F32, INDEX, BOOL, dtypes.u8),
    *(dtypes.u64, dtypes.f16, dtypes.f8e4m3, dtypes.void, dtypes.image, F32.vec(2), I32.vec(4)),
    *(F32.ptr(8), F32.ptr(4, AddrSpace.LOCAL), I32.ptr(), F32.ptr(8).vec(2)),
    *(INDEX.vec(2), dtypes.f64, BOOL.vec(2), F32.ptr(2, AddrSpace.REG)),
]  # fmt: skip
ARGUMENTS: Final[list[Any]] = [
    *(None, 0, 1, 2, 3, -1, 2**64, True, False, 1.5, float("nan")),
    *(float("inf"), "a", "", "CPU", "CPU:1", (), (0,), (1, 0), (2, 0, 1), (5,), (0, 0)),
    *((0, 1), (1, 1.5), (0, 2, 4), (True, False), (True,), (False, True, False)),
    *(Op.Add, Op.Max, Op.Min, Op.Mul, Op.Sub, (Op.Add, (0,)), (Op.Max, (1,))),
    *((Op.Add, (5,)), (Op.Add, (0, 0)), (Op.Mul, (-1,)), ((0, 2),)),
    *(((0, 2), (1, 4)), ((0, 0),), ((0, -2),), (0, AxisType.Loop, False)),
    *((1, AxisType.Reduce, True), (2, AxisType.Upcast, False), (3, AxisType.Global, False)),
    *(("n", 0, 5), ("m", -3, 2), ("f", -float("inf"), float("inf"))),
    *(("n", 5, 0), (None, AddrSpace.GLOBAL), ("CPU", AddrSpace.LOCAL), [], {}, object),
    *(np.float32(1), b"", (-1, 3), (0, 4), (2, 100), ("a", "b")),
]  # fmt: skip


def _leaves() -> list[UOp]:
    c = UOp.const
    x, y = UOp.range(4, 0), UOp.range(3, 1, AxisType.Reduce)
    p = UOp.new(Op.DefineGlobal, (), 0, F32.ptr(8))
    q = UOp.new(Op.DefineGlobal, (), 1, I32.ptr(6))
    unique, cpu = UOp.new(Op.Unique, (), 7), UOp.new(Op.Device, (), "CPU")
    a = UOp.new(Op.Buffer, (unique, cpu), 6, F32)
    b = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 8), cpu), 6, I32)
    n = UOp.var("n", INDEX, 1, 5)
    matrix = UOp.new(Op.Reshape, (a, c(2), c(3)))
    empty = UOp.new(Op.Reshape, (UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 9), cpu), 0, F32), c(0), c(3)))
    return [
        *(c(0), c(1), c(2), c(3), c(6), c(-1)),
        *(c(1.5, F32), c(2, I32), c(True), c((1, 2), I32), c((1.0, 2.0), F32), c(2**62), c(1.0, dtypes.f64)),
        *(x, y, p, q, unique, cpu, a),
        *(b, n, matrix, empty, UOp.var("f", F32), UOp.var("i", I32), UOp.var("b", BOOL), UOp.var("v", F32.vec(2))),
        *(p.index(x), p.index(x).load(), q.index(y)),
        *(p.index(x).store(c(1.0, F32)), UOp.invalid_at(), UOp.new(Op.Bind, (n, c(3)))),
        *(UOp.new(Op.Iota, (c(4),)), UOp.new(Op.Permute, (matrix,), (1, 0))),
        *(UOp.new(Op.Noop), UOp.range(n, 5), UOp.var("u", dtypes.u64)),
        UOp.range(c(3, I32), 6),
        *(UOp.new(Op.DefineLocal, (), 0, F32.ptr(4, AddrSpace.LOCAL)), UOp.new(Op.DefineReg, (), 0, F32.ptr(2, AddrSpace.REG))),
    ]  # fmt: skip


def _number(d: DType) -> Any:
    one: Any = True if d.is_bool else 1.0 if d.is_float else 1
    return one if d.count == 1 else (one,) * d.count


def _variables(node: UOp) -> Mapping[UOp, Any]:
    return {n: _number(n.dtype) for n in node.toposort() if n.op in (Op.DefineVar, Op.Range, Op.Special)}


def _buffers(node: UOp) -> Mapping[Any, list[Any]]:
    named = (Op.Buffer, Op.Param, Op.DefineGlobal)
    return {n: [_number(getattr(n.dtype, "base", n.dtype).scalar())] * 8 for n in node.toposort() if n.op in named}


ASKED: Final[dict[str, Callable[[UOp, random.Random], object]]] = {
    "shape": lambda n, rng: n.shape,
    "ranges": lambda n, rng: n.ranges,
    "bounds": lambda n, rng: n.vmin <= n.vmax,
    "text": lambda n, rng: dump(n),
    "tree": lambda n, rng: n.tree(),
    "order": lambda n, rng: order(n),
    "pickle": lambda n, rng: pickle.loads(pickle.dumps(n)),
    "fields": lambda n, rng: [n.field(f) for f in n.entry.fields],
    "replace": lambda n, rng: n.replace(n.src),
    "verify": lambda n, rng: verify(n if n.op is Op.Sink else UOp.sink(n), rng.randrange(1, 21)),
    "verify a list": lambda n, rng: verify(n.toposort(), rng.randrange(21, 23)),
    "evaluate": lambda n, rng: evaluate(n, _variables(n), _buffers(n)),
    "tensor": lambda n, rng: tensor(n, _buffers(n), _variables(n)),
    "run": lambda n, rng: run(n, _buffers(n), _variables(n)),
}
# the others answer for every node
MAY_REFUSE: Final = frozenset({"verify", "verify a list", "evaluate", "tensor", "run"})
_BIG: Final = 1 << 10  # iterations, and elements, of what is interpreted


def _big(node: UOp) -> bool:
    """Whether interpreting a node would take long: many lanes, iterations or elements."""
    total = 1
    for n in node.toposort():
        sizes = [d if isinstance(d, int) else _BIG if d.vmax > 64 else int(d.vmax) for d in n.shape]
        loops = n.src[0].vmax if n.op in (Op.Range, Op.Special, Op.Iota) else 1
        total *= max(1, loops if n.op is not Op.Iota else 1)
        if total > _BIG or loops > _BIG or int(np.prod(sizes, dtype=object)) > _BIG or n.dtype.count > 64:
            return True
    return False


class Nodes:
    """Nodes that were made, among which the operands of new ones are drawn."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.leaves = _leaves()
        self.made: list[UOp] = []

    def operand(self) -> UOp:
        return self.rng.choice(self.made if self.made and self.rng.random() < 0.5 else self.leaves)

    def parts(self) -> tuple[Op, tuple[UOp, ...], Any, DType | None]:
        """An op, operands most often as many as it takes, most often of one dtype, an argument and a dtype."""
        rng = self.rng
        op = rng.choice(list(TABLE.entries))
        entry = TABLE[op]
        count = sum(
            rng.choice((1, 1, 2, 3)) if o.many else rng.randrange(2) if o.optional else 1 for o in entry.operands
        )
        if rng.random() < 0.03:
            count = rng.randrange(5)
        src = [self.operand() for _ in range(count)]
        if src and rng.random() < 0.5:
            alike = [n for n in (*self.leaves, *self.made) if n.dtype is src[0].dtype]
            src = [src[0], *[rng.choice(alike) if rng.random() < 0.8 else s for s in src[1:]]]
        arg = rng.choice(ARGUMENTS) if entry.fields or rng.random() < 0.02 else None
        return op, tuple(src), arg, rng.choice(DTYPES) if rng.random() < 0.5 else None

    def made_of(self, op: Op, src: tuple[UOp, ...], arg: Any, dtype: DType | None) -> UOp | None:
        """A node, where it is not refused; some of those that are small are kept."""
        try:
            node = UOp.new(op, src, arg, dtype)
        except MorokError:
            return None
        if len(node.toposort()) < 16:
            self.made.append(node)
            if len(self.made) > 300:
                self.made.pop(self.rng.randrange(300))
        return node


def _one(nodes: Nodes, say: Callable[[str], None]) -> bool:
    """Whether one node, drawn at random, is as it should be."""
    parts = nodes.parts()
    asked = "construction"
    made = None
    signal.setitimer(signal.ITIMER_REAL, wrong_calls.SECONDS)
    try:
        made = nodes.made_of(*parts)
        if made is None:
            return True
        for asked, question in ASKED.items():
            if asked in ("evaluate", "tensor", "run") and _big(made):
                continue
            with contextlib.suppress(*((MorokError,) if asked in MAY_REFUSE else ())):
                question(made, nodes.rng)
        return True
    except (Exception, wrong_calls.Endless) as problem:
        if made in nodes.made:
            nodes.made.remove(made)
        op, src, arg, dtype = parts
        shown = ", ".join(f"{s.op.name}: {s.dtype} {tuple(str(d)[:20] for d in s.shape)}" for s in src)
        say(f"{op.name}({shown}), {arg!r}, {dtype}: {asked}  # {wrong_calls.site(problem)}")
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_nodes(count: int, seed: int, say: Callable[[str], None]) -> int:
    """Draw so many nodes; the number of findings, of which `say` hears."""
    rng = random.Random(seed)
    nodes = Nodes(rng)
    return sum(not _one(nodes, say) for _ in range(count))


if __name__ == "__main__":
    sys.exit(wrong_calls.main(sys.argv[1:], run_nodes))
