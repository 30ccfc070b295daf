"""Random kernels (loops, accumulators, gates, IFs, vectors, casts): the interpreter, LLVM and CUDA agree bit for bit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cuda_runner import build, launch
from instruction_lists import Listing, c
from kernels import Example
from test_kernels import arrays_of, same
from values import sample

from morok import config
from morok.codegen.cuda import render as render_cuda
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

TYPES = (
    dtypes.i8,
    dtypes.u16,
    dtypes.i32,
    dtypes.u32,
    dtypes.i64,
    dtypes.f16,
    dtypes.bf16,
    dtypes.f32,
    dtypes.f64,
    dtypes.bool,
)
ROWS = 6
PROGRAMS = 60


class Generator:
    """Grows one program: a pool of values of every dtype, all of one lane count, inside an outer loop."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.b = Listing()
        self.lanes = self.rng.choice((1, 1, 2, 3, 4, 8))
        self.buffers: dict[int, tuple[DType, list[object]]] = {}
        self.pool: dict[DType, list[UOp]] = {d: [] for d in TYPES}

    def program(self) -> Example:
        rng, b = self.rng, self.b
        n = ROWS * self.lanes
        outs, ins = rng.sample(TYPES, 2), rng.sample(TYPES, 3)
        for slot, d in enumerate([*outs, *ins]):
            self.buffers[slot] = (d, sample(d, n, rng.randrange(1 << 30)))
        storage = [b.buffer(slot, d, n) for slot, (d, _) in self.buffers.items()]
        accumulated = rng.choice(ins)
        register = b.reg(0, accumulated, self.lanes)
        b.store(register, 0, self.constant(accumulated))
        r = b.range(ROWS)
        at = b.add(r * self.lanes) if self.lanes > 1 else r
        gate = r < c(rng.randrange(ROWS + 1))
        for slot, d in enumerate(ins, start=len(outs)):
            gated = rng.random() < 0.4
            alt = self.constant(d) if gated and rng.random() < 0.5 else None
            self.pool[d].append(b.load(storage[slot], at, d.vec(self.lanes), gate if gated else None, alt))
        for _ in range(rng.randrange(6, 25)):
            self.grow()
        self.accumulate(register, accumulated, gate)
        for slot, d in enumerate(outs):
            b.store(storage[slot], at, self.value(d), gate if rng.random() < 0.2 else None)
        b.end(r)
        b.store(storage[0], 0, b.add(self.total(register, accumulated).cast(outs[0].vec(self.lanes))))
        return Example(b, self.buffers)

    def total(self, register: UOp, d: DType) -> UOp:
        """What was accumulated, in a range that every dtype can hold."""
        value = self.b.load(register, 0, d.vec(self.lanes))
        if not d.is_float:
            return value.cast(dtypes.bool.vec(self.lanes))
        return value.ne(value)

    def accumulate(self, register: UOp, d: DType, gate: UOp) -> None:
        b, rng = self.b, self.rng
        branch = b.if_(gate) if rng.random() < 0.5 else None
        j = b.range(rng.randrange(1, 4), AxisType.Reduce)
        old = b.load(register, 0, d.vec(self.lanes))
        step = self.value(d)
        b.store(register, 0, old ^ step if d.is_bool else old + step if rng.random() < 0.6 else old.max(step))
        b.end(j)
        if branch is not None:
            b.endif(branch)

    def constant(self, d: DType) -> UOp:
        return c(sample(d, 1, self.rng.randrange(1 << 30))[0], d.vec(self.lanes))

    def value(self, d: DType) -> UOp:
        """A value of `d`: one there is, a constant, or a cast where that is defined."""
        some = self.pool[d]
        if some and self.rng.random() < 0.85:
            return self.rng.choice(some)
        others = [v for e in TYPES for v in self.pool[e] if d.is_float or d.is_bool or not e.is_float]
        if others and self.rng.random() < 0.8:
            return self.b.add(self.rng.choice(others).cast(d.vec(self.lanes)))
        return self.constant(d)

    def grow(self) -> None:
        rng = self.rng
        d = rng.choice(TYPES)
        x, y = self.value(d), self.value(d)
        if d.is_bool:
            made = rng.choice((lambda: x & y, lambda: x | y, lambda: x ^ y, lambda: ~x))()
        elif rng.random() < 0.2:
            op = rng.choice((Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne))
            d, made = dtypes.bool, UOp.new(op, (x, y))
        elif rng.random() < 0.2:
            made = self.value(dtypes.bool).where(x, y)
        elif d.is_float:
            op = rng.choice(
                (
                    Op.Add,
                    Op.Sub,
                    Op.Mul,
                    Op.Fdiv,
                    Op.Max,
                    Op.Min,
                    Op.Neg,
                    Op.Abs,
                    Op.Sqrt,
                    Op.Floor,
                    Op.Round,
                    Op.MulAcc,
                )
            )
            made = UOp.new(op, (x, y, self.value(d))[: len(op_operands(op))])
        else:
            made = self.integer(d, x, y)
        self.pool[d].append(self.b.add(made))

    def integer(self, d: DType, x: UOp, y: UOp) -> UOp:
        rng = self.rng
        op = rng.choice(
            (
                Op.Add,
                Op.Sub,
                Op.Mul,
                Op.And,
                Op.Or,
                Op.Xor,
                Op.Max,
                Op.Min,
                Op.Not,
                Op.Idiv,
                Op.FloorMod,
                Op.Shl,
                Op.Shr,
            )
        )
        if op is Op.Not:
            return ~x
        if op in (Op.Shl, Op.Shr):
            return UOp.new(op, (x, y & y.like(d.bits - 1)))
        if op in (Op.Idiv, Op.FloorMod):
            return UOp.new(op, (x, y.max(y.like(1))))
        return UOp.new(op, (x, y))


def op_operands(op: Op) -> tuple[str, ...]:
    from morok.ir.op import TABLE

    return TABLE[op].signature.params


def test_llvm_agrees_with_the_interpreter() -> None:
    cpu = device("CPU")
    for seed in range(PROGRAMS):
        e = Generator(seed).program()
        arrays = arrays_of(e)
        with config.settings(fast_math=""):
            kernel = cpu.compile(e.listing.list, f"random{seed}")
        kernel.launch([Buffer.wrap(cpu, arrays[slot], d) for slot, (d, _) in e.buffers.items()])
        same(e, arrays)


@pytest.mark.long
def test_cuda_agrees_with_the_interpreter(tmp_path: Path) -> None:
    examples = {seed: Generator(seed).program() for seed in range(PROGRAMS)}
    texts = {seed: render_cuda(e.listing.list, f"random{seed}") for seed, e in examples.items()}
    library = build(list(texts.values()), tmp_path, "-O0")
    for seed, e in examples.items():
        arrays = arrays_of(e)
        launch(library, texts[seed], [arrays[slot] for slot in sorted(arrays)])
        same(e, arrays)


@pytest.mark.parametrize("seed", range(4))
def test_the_generator_is_deterministic(seed: int) -> None:
    assert Generator(seed).program().listing.list == Generator(seed).program().listing.list
