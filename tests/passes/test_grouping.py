"""Stage 9's grouped reductions by their rules: the two steps of a fold that threads share, and what their helper promises."""

from __future__ import annotations

import pytest

from morok import config
from morok.dsl import parse
from morok.errors import HelperContractError, LoweringError
from morok.ir import interpret
from morok.ir.dtype import PtrType
from morok.ir.launch import renames, told_apart
from morok.ir.morok_dialect import MOROK
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.axis_expansion import AxisOrder, shared
from morok.passes.pipeline import STAGES, run
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.library import rules_dir
from tests.passes import kernels as K

externs = {e.name: e for e in parse.parse_file(rules_dir() / "vector" / "expand.rules").externs}


def axis(n: int, id: int, kind: AxisType) -> UOp:
    return UOp.range(n, id, kind, True)


BLOCK, ROW, LANE = axis(2, 0, AxisType.Global), axis(3, 1, AxisType.Local), axis(2, 2, AxisType.Upcast)
THREAD, PART, FURTHER = axis(4, 3, AxisType.GroupReduce), axis(5, 4, AxisType.Reduce), axis(2, 5, AxisType.Reduce)


def folded(op: Op, *ranges: UOp) -> UOp:
    """For each block, row and lane the fold of what is there along these ranges."""
    around = [BLOCK, ROW, LANE]
    sizes = [int(r.vmax) + 1 for r in (*around, *ranges)]
    total = 1
    for n in sizes:
        total *= n
    source = K.buffer(1, total).index(K.flat([*around, *ranges], sizes))
    out = K.buffer(0, 12).index(K.flat(around, [2, 3, 2]))
    return K.kernel(out.store(source.reduce(op, *ranges)).end(*around))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("op", [Op.Add, Op.Mul, Op.Max, Op.Min])
@pytest.mark.parametrize("ranges", [(THREAD,), (PART, THREAD), (THREAD, PART), (PART, THREAD, FURTHER)])
def test_threads_fold_what_a_loop_did(op: Op, ranges: tuple[UOp, ...]) -> None:
    ast = folded(op, *ranges)
    with config.settings(check=True):
        grouped = run(STAGES[8], ast, K.GPU)
    assert isinstance(grouped, UOp)
    (buffer,) = [n for n in grouped.toposort() if n.op is Op.DefineLocal]
    assert isinstance(buffer.dtype, PtrType)
    assert buffer.dtype.size == 3 * 4 * 2  # rows, threads, lanes; each block has its own
    folds = [n.src[1:] for n in grouped.toposort() if n.op is Op.Reduce]
    assert all(THREAD not in loops for loops in folds)
    assert len(folds) == (1 if ranges == (THREAD,) else 2)
    launched = grouped
    for number in (10, 11, 12):
        after = run(STAGES[number - 1], launched, K.GPU)
        assert isinstance(after, UOp)
        launched = after
    size = next(
        n.dtype.size for n in ast.toposort() if n.op is Op.DefineGlobal and n.arg == 1 and isinstance(n.dtype, PtrType)
    )
    held = []
    for program in (ast, grouped, launched):
        buffers: dict[int, list[float]] = {
            0: [0.0] * 12,
            1: [1.0 + i % 2 if op is Op.Mul else float(i * 7 % 23) for i in range(size)],
        }
        interpret.run(program, buffers)
        held.append(buffers[0])
    assert held[0] == held[1] == held[2]


def test_two_reductions_have_two_buffers() -> None:
    a, b = (K.buffer(slot, 4).index(THREAD) for slot in (1, 2))
    ast = K.kernel(K.buffer(0, 1).index(0).store(a.reduce(Op.Add, THREAD) * b.reduce(Op.Max, THREAD)))
    grouped = run(STAGES[8], ast, K.GPU)
    assert isinstance(grouped, UOp)
    assert sorted(n.arg for n in grouped.toposort() if n.op is Op.DefineLocal) == [0, 1]
    buffers: dict[int, list[float]] = {0: [0.0], 1: [1.0, 2.0, 3.0, 4.0], 2: [5.0, 7.0, 6.0, 0.0]}
    interpret.run(grouped, buffers)
    assert buffers[0] == [70.0]


def test_shared_keeps_its_contract() -> None:
    source = K.buffer(1, 48).index(K.flat([BLOCK, ROW, LANE, THREAD], [2, 3, 2, 4]))
    buffer, at, again = shared(source, THREAD, AxisOrder.of(source))
    check_call(externs["shared"], MOROK, (source, THREAD), (buffer, at, again))
    assert again.arg == (4, AxisType.Reduce, True)
    wrong = (
        (buffer, at - 1, again),  # outside
        (buffer, ROW * 4 + THREAD, again),  # lanes at one place
        (buffer, ROW * 8 + THREAD * 2 + LANE * 2, again),  # threads and lanes at one place
        (buffer, (BLOCK * 3 + ROW) * 8 + THREAD * 2 + LANE, again),  # as if blocks shared memory
        (K.buffer(1, 48), at, again),  # what is read
        (buffer, at, THREAD),
        (buffer, at, axis(5, 9, AxisType.Reduce)),  # longer
        (buffer, at, LANE),
    )
    for result in wrong:
        with pytest.raises(HelperContractError, match="shared"):
            check_call(externs["shared"], MOROK, (source, THREAD), result)
    with pytest.raises(HelperContractError, match="requires"):
        check_call(externs["shared"], MOROK, (source, PART), (buffer, at, again))


def test_facts_about_places_and_names() -> None:
    source = K.buffer(1, 12).index(ROW * 4 + THREAD)
    assert told_apart(ROW * 4 + THREAD, source, THREAD)
    assert told_apart(THREAD * 3 + ROW, source, THREAD)
    assert not told_apart(ROW * 5 + THREAD, source, THREAD)
    assert not told_apart(THREAD + 0 * ROW, source, THREAD)
    assert not told_apart(THREAD, K.buffer(1, 20).index(PART * 4 + THREAD), THREAD)  # a loop fills it anew
    assert renames(axis(4, 9, AxisType.Reduce), THREAD)
    assert not renames(axis(4, 3, AxisType.Reduce), THREAD)


def test_a_reduction_inside_a_loop_is_not_shared() -> None:
    source = K.buffer(1, 20).index(PART * 4 + THREAD)
    with pytest.raises(LoweringError, match="inside another loop"):
        shared(source, THREAD, AxisOrder.of(source))


def test_nobody_waits_for_other_threads_without_a_barrier() -> None:
    """What a block shares is read when all of it is there: a launch that would read sooner is refused."""
    ast = K.kernel(K.buffer(0, 1).index(0).store(K.buffer(1, 4).index(THREAD).reduce(Op.Add, THREAD)))
    program = ast
    for number in (9, 10, 11):
        after = run(STAGES[number - 1], program, K.GPU)
        assert isinstance(after, UOp)
        program = after
    (barrier,) = [n for n in program.toposort() if n.op is Op.Barrier]
    with pytest.raises(LoweringError, match="without a barrier"):
        run(STAGES[11], program.substitute({barrier: barrier.src[0]}), K.GPU)
