"""Stage 12 by its rules: whole kernels before and after, the hardware's indices, and what its helpers promise."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from morok import config
from morok.dsl import parse
from morok.errors import HelperContractError, LoweringError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.launch import counts
from morok.ir.morok_dialect import MOROK
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.gpudims import Launch, coordinate, dimension, idle
from morok.passes.pipeline import STAGES, lower, run
from morok.passes.target import Target
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.library import rules_dir
from tests.passes import kernels as K

externs = {e.name: e for e in parse.parse_file(rules_dir() / "target" / "gpudims.rules").externs}
SMALL = replace(K.GPU, grid_max=(8, 8), block_max=(4, 4), block_threads=16)  # few dimensions, and none of them long


def grid(n: int | UOp, id: int) -> UOp:
    return UOp.range(n, id, AxisType.Global, True)


def thread(n: int, id: int) -> UOp:
    return UOp.range(n, id, AxisType.Local, True)


def stage_12(ast: UOp, target: Target = SMALL) -> UOp:
    out = run(STAGES[11], ast, target)
    assert isinstance(out, UOp)
    return out


def special(n: int, name: str) -> UOp:
    return UOp.new(Op.Special, (UOp.const(n),), name)


def copied(loops: list[UOp]) -> UOp:
    """out[i, j, ..] = in[i, j, ..] + 1, in these loops."""
    sizes = [int(r.vmax) + 1 for r in loops]
    at, size = K.flat(loops, sizes), math.prod(sizes)
    return K.kernel(K.buffer(0, size).index(at).store(K.buffer(1, size).index(at) + UOp.const(1.0)).end(*loops))


def where(r: UOp, launch: Launch) -> UOp:
    """What stands for a range."""
    own, shared = dimension(r, launch), coordinate(r, launch)
    if own is not None:
        return own
    assert shared is not None
    return shared[0] // shared[1] % r.src[0]


KERNELS = {
    "dimensions of their own": [grid(3, 0), grid(5, 1)],
    "more loops than dimensions": [grid(2, 0), grid(3, 1), grid(2, 2), grid(3, 3)],
    "a loop too long for a dimension": [grid(40, 0)],
    "both": [grid(2, 0), grid(24, 1)],
    "blocks of threads": [grid(3, 0), thread(2, 1), thread(2, 2), thread(3, 3)],
    "threads that count two dimensions": [grid(3, 0), thread(8, 1)],
    "a loop that nothing launches": [grid(3, 0), thread(2, 1), K.loop(5, 2)],
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_does_what_the_loops_did(name: str) -> None:
    ast = copied(KERNELS[name])
    with config.settings(check=True):
        launched = stage_12(ast)
    left = {n.arg[1] for n in launched.toposort() if n.op is Op.Range}
    assert left <= {AxisType.Loop}
    size = math.prod(int(r.vmax) + 1 for r in KERNELS[name])
    held = []
    for program in (ast, launched):
        buffers: dict[int, list[float]] = {0: [0.0] * size, 1: [float(i * 7 % 11) for i in range(size)]}
        interpret.run(program, buffers)
        held.append(buffers[0])
    assert held[0] == held[1]


@pytest.mark.parametrize("name", KERNELS)
def test_every_iteration_is_launched_once(name: str) -> None:
    loops = [r for r in KERNELS[name] if r.arg[1] is not AxisType.Loop]
    launch = Launch.of(copied(KERNELS[name]), SMALL)
    places = [where(r, launch) for r in loops]
    specials = sorted({n for p in places for n in p.toposort() if n.op is Op.Special}, key=lambda s: str(s.arg))
    found = []
    for at in itertools.product(*(range(int(s.vmax) + 1) for s in specials)):
        found.append(tuple(interpret.evaluate(p, dict(zip(specials, at, strict=True))) for p in places))
    assert sorted(found) == list(itertools.product(*(range(int(r.vmax) + 1) for r in loops)))
    limits = {"gidx": SMALL.grid_max, "lidx": SMALL.block_max}
    assert all(s.vmax < limits[s.arg[:4]][int(s.arg[4:])] for s in specials)


def test_helpers_keep_their_contracts() -> None:
    for loops in KERNELS.values():
        ast = copied(loops)
        launch = Launch.of(ast, SMALL)
        for r in loops:
            own, shared = dimension(r, launch), coordinate(r, launch)
            assert (own is None) + (shared is None) == (2 if r.arg[1] is AxisType.Loop else 1)
            check_call(externs["dimension"], MOROK, (r,), own)
            check_call(externs["coordinate"], MOROK, (r,), shared)
    i, t = grid(4, 0), thread(8, 1)
    used, shared_place = K.buffer(0, 32).index(i * 8 + t), K.buffer(1, 4).index(i)
    launch = Launch.of(K.kernel(used.store(shared_place).end(i, t)), K.GPU)
    assert idle(used, launch) is None
    assert idle(shared_place, launch) is t
    check_call(externs["idle"], MOROK, (shared_place,), t)
    assert idle(UOp.new(Op.DefineLocal, (), 0, dtypes.f32.ptr(4, AddrSpace.LOCAL)).index(i), launch) is None
    for wrong in (i, K.loop(3, 7)):
        with pytest.raises(HelperContractError, match="idle"):
            check_call(externs["idle"], MOROK, (shared_place,), wrong)


def test_an_index_of_another_size_breaks_the_contract() -> None:
    r = grid(6, 0)
    a, b = special(3, "gidx0"), special(4, "gidx1")
    assert counts(a + b * 3, r, 1)
    assert counts(a + b * 3, r, 2)
    assert not counts(a + b * 3, r, 3)  # 18 numbers for 12
    assert not counts(a + special(3, "gidx1") * 3, r, 1)  # 9 numbers for 6: some iterations twice
    assert not counts(a + b * 4, r, 1)  # numbers left out
    assert not counts(a + b * 2, r, 1)  # numbers twice
    assert not counts(a + grid(4, 1) * 3, r, 1)  # no hardware index
    assert not counts(a + a * 3, grid(9, 0), 1)  # 3 numbers for 9: the two are one index
    for wrong in ((a + b * 3, 3), (a + b * 4, 1), (a, 1)):
        with pytest.raises(HelperContractError, match="coordinate"):
            check_call(externs["coordinate"], MOROK, (r,), wrong)
    for other in (special(5, "gidx0"), special(7, "gidx0"), r):
        with pytest.raises(HelperContractError, match="dimension"):
            check_call(externs["dimension"], MOROK, (r,), other)


def test_symbolic_lengths_are_dimensions_of_their_own() -> None:
    n = UOp.var("n", dtypes.index, 1, 9)
    r, t = grid(n, 0), thread(2, 1)
    ast = K.kernel(K.buffer(0, 18).index(r * 2 + t).store(UOp.const(5.0)).end(r, t))
    launched = stage_12(ast)
    assert {s.arg: s.src[0] for s in launched.toposort() if s.op is Op.Special} == {"gidx0": n, "lidx0": UOp.const(2)}
    buffers = {0: [0.0] * 18}
    interpret.run(launched, buffers, {"n": 4})
    assert buffers[0] == [5.0] * 8 + [0.0] * 10
    with pytest.raises(LoweringError, match="symbolic lengths"):
        stage_12(
            K.kernel(
                K.buffer(0, 99)
                .index(r * 6 + grid(2, 1) * 3 + grid(3, 2))
                .store(UOp.const(5.0))
                .end(r, grid(2, 1), grid(3, 2))
            )
        )


def test_one_thread_stores_what_all_would() -> None:
    """A place that two of three thread indices tell apart, behind a gate: the gate stays, and the third index has to be 0."""
    a, b, c = thread(2, 0), thread(2, 1), thread(3, 2)
    open_ = K.buffer(1, 4, dtypes.i32).index(a * 2 + b).ne(0)
    place = K.buffer(0, 4).index(a * 2 + b, gate=open_)
    value = c.lt(3).where(UOp.const(4.0), UOp.const(1.0))
    other = K.buffer(2, 12).index(K.flat([a, b, c], [2, 2, 3])).store(UOp.const(2.0))
    launched = stage_12(K.kernel(place.store(value).end(a, b, c), other.end(a, b, c)), K.GPU)
    gates = {n.src[0].src[0].arg: n.src[0].src[2:] for n in launched.toposort() if n.op is Op.Store}
    assert gates[2] == ()
    assert gates[0][0].op is Op.And
    buffers: dict[int, list[float]] = {0: [0.0] * 4, 1: [1, 0, 0, 1], 2: [0.0] * 12}
    interpret.run(launched, buffers)
    assert buffers[0] == [4.0, 0.0, 0.0, 4.0]
    assert buffers[2] == [2.0] * 12


def test_what_is_waited_for_stays() -> None:
    """A register that waits for a block, a loop and a store keeps the last two."""
    g, r = grid(2, 0), K.fold(4, 1)
    register = UOp.new(Op.DefineReg, (), 0, dtypes.f32.ptr(1))
    start = register.index(0).store(UOp.const(0.0))
    total = register.after(g, start, r).index(0)
    done = total.store(total + K.buffer(1, 8).index(g * 4 + r)).end(r)
    ast = K.kernel(K.buffer(0, 2).index(g).store(register.after(start, done).index(0)).end(g))
    launched = stage_12(ast)
    waits = [n.src[1:] for n in launched.toposort() if n.op is Op.After and r in n.src[1:]]
    assert [[w.op for w in ws] for ws in waits] == [[Op.Store, Op.Range]]
    buffers: dict[int, list[float]] = {0: [0.0] * 2, 1: [float(i) for i in range(8)]}
    interpret.run(launched, buffers)
    assert buffers[0] == [6.0, 22.0]


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(LoweringError, match="32 threads in a block"):
        stage_12(copied([thread(8, 0), thread(4, 1)]))


def test_a_cpu_keeps_its_loops() -> None:
    ast = copied([grid(3, 0), thread(2, 1)])
    assert stage_12(ast, K.CPU) is ast


def test_the_first_thread_is_the_first_of_its_own_loop() -> None:
    """Threads of two loops in one index, of which a store uses one: whoever is 0 along the other stores."""
    i, j = thread(4, 0), thread(4, 1)
    one = replace(K.GPU, block_max=(16,))
    ast = K.kernel(
        K.buffer(0, 4).index(i).store(UOp.const(1.0)).end(i, j),
        K.buffer(1, 16).index(i * 4 + j).store(UOp.const(2.0)).end(i, j),
    )
    buffers = {0: [0.0] * 4, 1: [0.0] * 16}
    interpret.run(stage_12(ast, one), buffers)
    assert buffers == {0: [1.0] * 4, 1: [2.0] * 16}
    instructions = lower(ast, one)
    assert {n.arg: int(n.src[0].arg) for n in instructions if n.op is Op.Special} == {"lidx0": 16}
