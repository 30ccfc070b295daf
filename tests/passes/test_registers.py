"""Stage 19 cuts accumulators, and what is added to them, into the target's registers: values stay, widths do not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from morok.ir import interpret
from morok.ir.dtype import AddrSpace, DType, dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.places import storage
from morok.ir.uop import UOp, vconst
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.accumulators import native_lanes
from morok.passes.register_accumulators import cut_registers
from morok.passes.target import Target
from tests.passes import kernels as K
from tests.passes.lowering import after, nodes, ops, programs, registers

f32, f64, i32 = dtypes.f32, dtypes.f64, dtypes.i32
FOUR = Target("LLVM", vector_bytes=16, memory_bytes=16)
SIZE = 64
SLOTS = {f32: 1, f64: 2, i32: 3}
ACCESSES = (Op.Load, Op.Store)


def accumulate(r: UOp, added: UOp, op: Op = Op.Add, slot: int = 0) -> UOp:
    """What a register holds behind the loop `r`, to which each iteration adds a vector."""
    register = UOp.new(Op.DefineReg, (), slot, added.dtype.ptr(1, AddrSpace.REG))
    start = register.index(0).store(added.like(identity(op, added.dtype.scalar())))
    sofar = register.after(start, r).index(0)
    step = sofar.store(UOp.new(op, (sofar.load(), added))).end(r)
    return register.after(start, step).index(0).load()


def random_vector(draw: random.Random, r: UOp, d: DType, lanes: int, depth: int) -> UOp:
    """A vector of so many lanes, of numbers from memory, other vectors and constants, in any order."""
    made = ["sum", "where", "gep", "cat", "vectorize", "cast", "scalar"]
    kind = draw.choice(made if depth else ["load", "const", "vconst"])
    below = depth - 1
    if kind == "load":
        width = draw.choice([k for k in (1, 2, 4) if k <= lanes])
        parts = [
            K.buffer(SLOTS[d], SIZE, d).index(r * draw.randint(0, 4) + draw.randint(0, 16)).load(d.vec(width))
            for _ in range(-(-lanes // width))
        ]
        whole = parts[0] if len(parts) == 1 else UOp.new(Op.Cat, tuple(parts))
        return whole if whole.dtype.count == lanes else whole.gep(*range(lanes))
    if kind == "const":
        return UOp.const(draw.randint(-3, 3), d.vec(lanes))
    if kind == "vconst":
        return vconst(d, [draw.randint(-3, 3) for _ in range(lanes)])
    if kind == "sum":
        op = draw.choice([Op.Add, Op.Mul, Op.Max, Op.Sub])
        return UOp.new(op, (random_vector(draw, r, d, lanes, below), random_vector(draw, r, d, lanes, below)))
    if kind == "where":
        condition = random_vector(draw, r, d, lanes, below) < random_vector(draw, r, d, lanes, below)
        return condition.where(random_vector(draw, r, d, lanes, below), random_vector(draw, r, d, lanes, below))
    if kind == "scalar":
        condition = random_vector(draw, r, d, 1, 0) < random_vector(draw, r, d, 1, 0)
        return condition.where(random_vector(draw, r, d, lanes, below), random_vector(draw, r, d, lanes, below))
    if kind == "cast":
        return (
            random_vector(draw, r, i32, lanes, below).cast(d)
            if d is not i32
            else -random_vector(draw, r, d, lanes, below)
        )
    if kind == "gep":
        inner = draw.choice([2, 3, 4, lanes, 2 * lanes])
        at = [draw.randrange(inner) for _ in range(lanes)] if draw.random() < 0.7 else [draw.randrange(inner)] * lanes
        return random_vector(draw, r, d, inner, below).gep(*at)
    if kind == "cat":
        cut = draw.randint(1, lanes - 1) if lanes > 1 else 1
        parts = [random_vector(draw, r, d, n, below) for n in (cut, lanes - cut) if n]
        return parts[0] if len(parts) == 1 else UOp.new(Op.Cat, tuple(parts))
    one = [random_vector(draw, r, d, 1, 0) for _ in range(2)]
    return UOp.vectorize(*[draw.choice(one) for _ in range(lanes)])


def results(program: UOp, seed: int) -> dict[int, list[Any]]:
    draw = random.Random(seed)
    held: dict[int, list[Any]] = {slot: [0.0] * SIZE for slot in (8, 9)}
    for d, slot in SLOTS.items():
        numbers = [draw.randint(-4, 4) for _ in range(SIZE)]
        held[slot] = [float(v) for v in numbers] if d.is_float else numbers
    interpret.run(program, held)
    return held


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(60))
def test_values_stay_and_widths_do_not(seed: int) -> None:
    """Two accumulators, one of them of what was accumulated in the other, behind it or in the same loop."""
    draw = random.Random(seed)
    d = draw.choice([f32, f64])
    r, q = K.fold(3, 0), K.fold(2, 1)
    lanes = draw.choice([5, 6, 8, 12])
    first = accumulate(r, random_vector(draw, r, d, lanes, 3), draw.choice([Op.Add, Op.Max]))
    taken = first.gep(*[draw.randrange(lanes) for _ in range(lanes)])
    second = accumulate(q, UOp.new(Op.Add, (taken, random_vector(draw, q, d, lanes, 2))), slot=1)
    program = K.kernel(
        *[K.buffer(8, SIZE, d).index(k).store(first.gep(k)) for k in range(lanes)],
        K.buffer(9, SIZE, d).index(draw.randint(0, 9)).store(second.gep(*[draw.randrange(lanes) for _ in range(4)])),
    )
    out = cut_registers(program, FOUR)
    assert results(out, seed) == results(program, seed)
    native = native_lanes(FOUR, d)
    stored = sorted(w.count for w in registers(out))
    assert stored == sorted(2 * [*[native] * (lanes // native), *[lanes % native] * (lanes % native > 0)])
    assert max(n.dtype.count for n in nodes(out) if n.op in ACCESSES and storage(n.src[0]).op is Op.DefineReg) == native


def test_what_a_tile_adds_is_computed_in_registers() -> None:
    """Two rows by eight columns: four registers of four, a product for each, two vectors of columns and each row in all lanes."""
    r = K.fold(8, 0)
    row = [K.buffer(1, SIZE).index(r + k).load() for k in (0, 8)]
    column = UOp.new(Op.Cat, tuple(K.buffer(2, SIZE).index(r * 8 + k).load(f32.vec(4)) for k in (0, 4)))
    terms = UOp.new(Op.Mul, (UOp.vectorize(*[row[k // 8] for k in range(16)]), column.gep(*[k % 8 for k in range(16)])))
    tile = accumulate(r, terms)
    program = K.kernel(*[K.buffer(0, 16).index(4 * k).store(tile.gep(*range(4 * k, 4 * k + 4))) for k in range(4)])
    out = nodes(cut_registers(program, FOUR))
    assert max(n.dtype.count for n in out) == 4
    floats = [n.op for n in out if n.dtype.is_float]
    assert [floats.count(op) for op in (Op.Mul, Op.Add, Op.Vectorize, Op.Gep)] == [4, 4, 2, 0]


def test_what_is_computed_of_a_tile_is_one_vector_until_stage_19() -> None:
    """max(a @ b + c, 0), in tiles of 4 x 8: one sum and one maximum of 32 lanes, then of 4 lanes each."""
    i, j, k = K.loop(8, 0), K.loop(8, 1), K.fold(4, 2)
    product = K.buffer(1, 32).index(i * 4 + k) * K.buffer(2, 32).index(k * 8 + j)
    total = product.reduce(Op.Add, k) + K.buffer(3, 8).index(j)
    ast = K.kernel(K.buffer(0, 64).index(i * 8 + j).store(total.max(total.like(0))).end(i, j))
    scheduler = Scheduler(ast, FOUR)
    for axis, amount in ((0, 4), (1, 8)):
        scheduler.apply(Opt(OptOp.UPCAST, axis, amount))
    opts = K.KernelInfo("k", tuple(scheduler.applied))
    found = programs(UOp.new(Op.Sink, ast.src, opts), FOUR)
    maxima = [[n.dtype.count for n in nodes(found[at - 1]) if n.op is Op.Max] for at in (14, 18, 19)]
    assert maxima == [[32], [32], [4] * 8]
    values = {slot: [float(v % 7 - 3) for v in range(64)] for slot in range(4)}
    held = [{slot: list(v) for slot, v in values.items()} for _ in range(3)]
    for program, at in zip((ast, found[17], found[18]), held, strict=True):
        interpret.run(program, at)
    assert held[0][0] == held[1][0] == held[2][0]


def test_lanes_of_vectors_from_memory_are_taken_last() -> None:
    """Columns of 16 rows of 16 are lanes of the rows side by side; each lane is a node of its own from stage 19 on."""
    programs = [after(k, K.transpose(64, 64), K.CPU) for k in (18, 19)]
    taken = [[n.src[0].op for n in p.toposort() if n.op is Op.Gep] for p in programs]
    assert taken == [[Op.Cat] * 16, [Op.Load] * 256]
    assert Op.Cat not in ops(programs[1])


def test_what_needs_no_cut_stays() -> None:
    r = K.fold(8, 0)
    narrow = K.kernel(K.buffer(0, 4).index(0).store(accumulate(r, K.buffer(1, SIZE).index(r * 4).load(f32.vec(4)))))
    assert cut_registers(narrow, FOUR) is narrow
    wide = K.kernel(K.buffer(0, 8).index(0).store(accumulate(r, K.buffer(1, SIZE).index(r * 8).load(f32.vec(8)))))
    assert cut_registers(wide, K.SCALAR) is wide
