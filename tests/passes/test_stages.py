"""What single stages promise: the acceptance rows of the 22 stages, input and output by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from morok import config
from morok.errors import LoweringError, OptError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, PtrType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.optimize.thread_loops import loops
from morok.passes import pipeline
from morok.passes.gpudims import limit_dims
from morok.passes.linearize import PRIORITY, linearize, order_loops
from morok.passes.magic import magic
from morok.passes.pipeline import STAGES, listing, lower, section
from morok.passes.range_stages import const_end
from morok.rewrite import library, matchers
from morok.rewrite.matcher import Matcher
from morok.rewrite.ruleset import RuleSet
from tests.passes import kernels as K
from tests.passes.lowering import after, ops, registers, stage

f32, i32, i64, index = dtypes.f32, dtypes.i32, dtypes.i64, dtypes.index


def ranges(program: UOp) -> list[tuple[int, AxisType]]:
    return [(int(n.src[0].arg), n.arg[1]) for n in program.toposort() if n.op is Op.Range]


def test_the_page() -> None:
    assert [s.number for s in STAGES] == list(range(1, 23))
    assert len({s.name for s in STAGES}) == 22
    for s in STAGES:
        assert (s.direction == "-") == (not s.groups and not s.adds)


@pytest.mark.parametrize("end", [UOp.const(16), UOp.var("n", vmin=1, vmax=16)])
def test_a_loop_is_named_by_itself_and_computed_with_as_a_number(end: UOp) -> None:
    """Where it closes, and where something waits for it, the loop; in an address its number, cast to nothing."""
    r = UOp.range(end, 0)
    register = UOp.new(Op.DefineReg, (), 0, f32.ptr(1, AddrSpace.REG))
    place = register.after(r).index(0)
    out = stage(
        15,
        UOp.sink(
            UOp.new(Op.Group, (place.store(UOp.const(0.0)), K.buffer(0, 64).index(r * 4).store(UOp.const(1.0)))).end(r)
        ),
    )
    found = [n for n in out.toposort() if n.op is Op.Range]
    assert [n.dtype for n in found] == [i32]
    loop = found[0]
    assert all(loop in n.src for n in out.toposort() if n.op in (Op.End, Op.After, Op.Mul))
    assert not any(n.op is Op.Cast or n.dtype.is_index for n in out.toposort())


@pytest.mark.parametrize("ast", [K.matmul(512, 300, 512), K.transpose(64, 48)], ids=["matmul", "transpose"])
def test_an_end_closes_one_loop_before_registers_are_cut(ast: UOp) -> None:
    """Stage 15 makes all Ends anew; where stage 19 took them apart, it would make anew what stands behind them, too."""
    assert any(n.op is Op.End and len(n.src) > 2 for n in after(14, ast, K.CPU).toposort())
    assert all(len(n.src) == 2 for n in after(15, ast, K.CPU).toposort() if n.op is Op.End)


def test_the_first_kernel_makes_the_matchers_of_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []
    make = matchers.matcher_for

    def noted(rules: RuleSet, flags: frozenset[str], checked: bool) -> Matcher:
        made.append(rules.names)
        return make(rules, flags, checked)

    monkeypatch.setattr(matchers, "matcher_for", noted)
    monkeypatch.setattr(library, "_sets", {})
    monkeypatch.setattr(pipeline, "_prepared", set())
    lower(K.elementwise(16), K.CPU)
    assert made
    made.clear()
    lower(K.pad(1024, 3, 5), K.CPU)
    lower(K.matmul(8, 8, 8), K.CPU)
    assert not made


def test_load_collapse() -> None:
    """Sums that only count: no Range is left, and the numbers are right on both sides of the clamp."""
    k = K.fold(64, 0)
    length = UOp.var("length", index, -10, 100)
    one, none = UOp.const(3, i32), UOp.const(0, i32)
    cases = {
        k.ge(length).where(one, none): lambda n: 3 * sum(j >= n for j in range(64)),
        (k < length).where(none, one): lambda n: 3 * sum(j >= n for j in range(64)),
        (k * -1 + 20 < length).where(one, none): lambda n: 3 * sum(20 - j < n for j in range(64)),
        (k + 5).gt(length).cast(i32): lambda n: sum(j + 5 > n for j in range(64)),
        (length + 1).le(k).cast(i32): lambda n: sum(n + 1 <= j for j in range(64)),
        one: lambda n: 192,
    }
    for body, wanted in cases.items():
        ast = K.kernel(K.buffer(0, 1, i32).index(0).store(body.reduce(Op.Add, k)))
        out = after(2, ast)
        assert not {Op.Range, Op.Reduce} & set(ops(out))
        for n in (-10, 0, 1, 20, 63, 64, 65, 100):
            held: dict[int, list[int]] = {0: [0]}
            interpret.run(out, held, {"length": n})
            assert held[0] == [wanted(n)]
    scaled = K.kernel(K.buffer(0, 1, i32).index(0).store((K.buffer(1, 64, i32).index(k) * 3).reduce(Op.Add, k)))
    (fold,) = [n for n in after(2, scaled).toposort() if n.op is Op.Reduce]
    assert fold.src[0].op is Op.Index  # one product behind the loop, not one an iteration
    read = K.buffer(1, 64).index(k)
    for product in (read * 3.0, UOp.new(Op.Mul, (UOp.const(3.0), read)), read * 3.0 * 0.5):
        ast = K.kernel(K.buffer(0, 1).index(0).store((product + 1.0).reduce(Op.Add, k) + product.reduce(Op.Add, k)))
        folds = [n.src[0] for n in after(2, ast).toposort() if n.op is Op.Reduce]
        assert product in folds  # a float rounds every time
        with config.settings(fast_math={"reassoc"}):
            folds = [n.src[0] for n in after(2, ast).toposort() if n.op is Op.Reduce]
        assert read in folds
    floats = K.kernel(K.buffer(0, 1).index(0).store(UOp.const(0.1).reduce(Op.Add, k)))
    assert Op.Reduce in ops(after(2, floats))  # adding rounds every time


def test_split_ranges() -> None:
    r = K.loop(12, 0)
    ast = K.kernel(K.buffer(0, 12).index(r).store(K.buffer(1, 4).index(r % 4)).end(r))
    assert sorted(ranges(stage(3, ast))) == [(3, AxisType.Loop), (4, AxisType.Loop)]
    r = K.loop(10, 0)
    ast = K.kernel(K.buffer(0, 10).index(r).store(K.buffer(1, 4).index(r % 4)).end(r))
    assert stage(3, ast) is ast  # 4 does not divide 10


def test_merge_ranges() -> None:
    i, j = K.loop(4, 0), K.loop(8, 1)
    at = i * 8 + j
    ast = K.kernel(K.buffer(0, 32).index(at).store(K.buffer(1, 32).index(at) + K.buffer(2, 32).index(at)).end(i, j))
    assert ranges(stage(5, ast)) == [(32, AxisType.Loop)]
    ast = K.kernel(
        K.buffer(0, 32).index(at).store(K.buffer(1, 32).index(at) + K.buffer(2, 32).index(j * 4 + i)).end(i, j)
    )
    assert stage(5, ast) is ast  # transposed: one loop would divide


def test_split_store() -> None:
    r = K.loop(100, 0)
    value = (r < 50).where(K.buffer(1, 100).index(r), K.buffer(2, 100).index(r))
    ast = K.kernel(K.buffer(0, 100).index(r).store(value).end(r))
    assert ranges(stage(6, ast)) == [(50, AxisType.Loop), (50, AxisType.Loop)]
    program = after(8, ast)
    assert Op.Where not in ops(program)
    assert ranges(after(6, ast, K.GPU)) == [(100, AxisType.Loop)]  # CPU only


def test_expand_makes_vectors() -> None:
    ast = K.kernel(*K.elementwise(100).src, name="k")
    scheduler = Scheduler(ast, K.CPU)
    scheduler.apply(Opt(OptOp.UPCAST, 0, 4))
    out = stage(9, scheduler.kernel())
    assert {n.dtype for n in out.toposort() if n.op is Op.Add and n.dtype.is_float} == {f32.vec(4)}
    assert not {Op.Unroll, Op.Contract} & set(ops(out))


def test_remove_reduce() -> None:
    r = K.fold(32, 0)
    ast = K.kernel(K.buffer(0, 1).index(0).store(K.buffer(1, 32).index(r).reduce(Op.Max, r)))
    out = stage(11, ast, K.SCALAR)
    assert Op.Reduce not in ops(out)
    start = [n for n in out.toposort() if n.op is Op.Store and n.src[1].op is Op.Const]
    assert [s.src[1].arg for s in start] == [float("-inf")]


def test_two_reductions_keep_two_accumulators() -> None:
    r, s = K.fold(8, 0), K.fold(9, 1)
    a = K.buffer(1, 8).index(r).reduce(Op.Add, r) + K.buffer(2, 9).index(s).reduce(Op.Add, s)
    out = stage(11, K.kernel(K.buffer(0, 1).index(0).store(a)), K.SCALAR)
    assert ops(out).count(Op.DefineReg) == 2


def test_reductions_that_do_not_wait_for_each_other_share_a_loop() -> None:
    """A sum and a maximum over one range run in one loop; what waits for them runs in another, over a range of its own."""
    r = K.fold(8, 0)
    x = K.buffer(1, 8).index(r)
    total, top = x.reduce(Op.Add, r), x.reduce(Op.Max, r)
    ast = K.kernel(K.buffer(0, 1).index(0).store((x - total * top).reduce(Op.Add, r)))
    out = stage(11, ast, K.SCALAR)
    ends = [n for n in out.toposort() if n.op is Op.End]
    assert [n.src[0].op for n in ends] == [Op.Group, Op.Store]
    assert ends[0].src[1] is not ends[1].src[1]
    values = [1.0, 2.0, -3.0, 0.5, 4.0, -1.0, 0.25, 2.5]
    held: dict[int, list[float]] = {0: [0.0], 1: values}
    interpret.run(out, held)
    assert held[0] == [sum(values) - 8 * sum(values) * max(values)]


def test_unrolled_sum_keeps_partial_sums() -> None:
    """8 lanes over registers of 4: two vectors accumulate, one until the last stages, and are folded after the loop."""
    target = K.Target("LLVM", vector_bytes=16, memory_bytes=16)
    scheduler = Scheduler(K.total(64), target)
    scheduler.apply(Opt(OptOp.UNROLL, 0, 8))
    out = stage(11, stage(9, scheduler.kernel()), target)
    assert registers(out) == [f32.vec(8)]
    assert registers(stage(19, stage(13, out, target), target)) == [f32.vec(4), f32.vec(4)]


def test_gpu_dimensions() -> None:
    assert limit_dims((64, 3, 4), (16, 16, 16)) == (16, 12, 4)
    assert limit_dims((2, 3, 4, 5), (16, 16, 16)) == (6, 4, 5)
    assert limit_dims((256, 256, 256), (65536, 256)) == (65536, 256)
    assert limit_dims((2048,), (1024, 1024)) == (1024, 2)
    for dims, limits in (((256, 256, 256), (256, 256)), ((17, 17), (16, 16)), ((2048,), (1024,))):
        with pytest.raises(LoweringError, match="cannot fit"):
            limit_dims(dims, limits)


def test_global_axes_become_specials() -> None:
    names = {n.arg for n in lower(K.elementwise(4096), K.GPU) if n.op is Op.Special}
    assert names == {"gidx0", "lidx0"}


def test_unused_threads_do_not_store() -> None:
    """Threads that a store does not tell apart: only the first one stores."""
    i, t = K.loop(4, 0), UOp.range(8, 1, AxisType.Local, True)
    first = K.buffer(0, 32).index(i * 8 + t).store(K.buffer(2, 4).index(i))
    second = K.buffer(1, 4).index(i).store(K.buffer(2, 4).index(i))
    program = after(12, K.kernel(first.end(i, t), second.end(i, t)), K.GPU)
    assert isinstance(program, UOp)
    gates = [n.src[0].arg for n in program.toposort() if n.op is Op.Store]
    assert sorted(gates) == [False, True]


def test_contiguous_loads_are_wide() -> None:
    for target, lanes_wanted in ((K.CPU, 16), (K.AVX2, 8), (K.GPU, 4)):
        loads = [n.dtype.count for n in lower(K.elementwise(4096), target) if n.op is Op.Load]
        assert set(loads) == {lanes_wanted}
    # scalar arithmetic where the target has no vectors
    adds = [n.dtype.count for n in lower(K.elementwise(4096), K.GPU) if n.op is Op.Sub and n.dtype.is_float]
    assert set(adds) == {1}


def test_modes_of_devectorizing() -> None:
    """Vectors of 16 over registers of 8: split, split where they are stored, or left to the code generator."""
    for mode, lanes_wanted in ((1, 8), (0, 8), (2, 16)):
        with config.settings(devectorize=mode):
            loads = [n.dtype.count for n in lower(K.elementwise(4096), K.AVX2) if n.op is Op.Load]
        assert set(loads) == {lanes_wanted}
    with config.settings(devectorize=2):  # where arithmetic is scalar nothing else can be left whole
        assert max(n.dtype.count for n in lower(K.elementwise(4096), K.GPU)) == 4


def test_matmul_tile() -> None:
    """Accumulators are one register each, rows are broadcast, columns are wide loads, and products are fused."""
    program = lower(K.matmul(64, 64, 64), K.CPU)
    assert registers(program) == [f32.vec(16)] * 16
    assert max(n.dtype.count for n in program) == 16
    assert len(program) < 400


def test_lower_index_by_bounds() -> None:
    def dtype_of(top: int) -> set[str]:
        x = UOp.var("x", index, 0, top)
        out = stage(15, UOp.sink(K.buffer(0, 1).index(x).store(UOp.const(0.0))))
        return {n.dtype.name for n in out.toposort() if n.op is Op.DefineVar}

    assert dtype_of(2**31 - 1) == {"i32"}
    assert dtype_of(2**31) == {"i64"}
    with pytest.raises(LoweringError, match="fits neither"):
        dtype_of(2**64)


def test_lower_index_widens_products() -> None:
    """i32 operands whose product does not fit: computed in i64."""
    x = UOp.var("x", index, 0, 2**20)
    out = stage(15, UOp.sink(K.buffer(0, 1).index(x * 4096).store(UOp.const(0.0))))
    assert {n.dtype for n in out.toposort() if n.op is Op.Mul} == {i64}
    assert not any(n.dtype.is_index for n in out.toposort())


def test_invalid_becomes_a_gate() -> None:
    x = UOp.var("x", index, -5, 20)
    place = K.buffer(1, 10).index((x.ge(0) & x.lt(10)).where(x, UOp.invalid_at()))
    out = stage(15, UOp.sink(K.buffer(0, 1).index(0).store(place.load())))
    (gated,) = [n for n in out.toposort() if n.op is Op.Index and n.arg]
    assert gated.src[2].op is Op.And
    assert Op.Invalid not in ops(out)


def test_magic_numbers() -> None:
    assert magic(1000, 7) == (1171, 13)
    for d in (3, 5, 6, 7, 9, 10, 11, 13, 100, 641):
        for top in (1, d - 1, d, 2 * d, 999, 5000):
            found = magic(top, d)
            assert found is not None
            m, s = found
            assert all(x // d == (x * m) >> s for x in range(top + 1))


def loop32(n: int, id: int) -> UOp:
    return UOp.range(UOp.const(n, i32), id, AxisType.Loop, True)


def test_split_ends() -> None:
    i, j = loop32(3, 0), loop32(4, 1)
    out = stage(19, K.kernel(K.buffer(0, 12).index(i * 4 + j).store(UOp.const(1.0)).end(i, j)))
    end = out.src[0]
    assert end.src[1] is i
    assert end.src[0].op is Op.End
    assert end.src[0].src[1] is j


def closed_by(root: UOp) -> list[UOp]:
    """The ranges that nested Ends close, the outermost first."""
    out, end = [], root.src[0]
    while end.op is Op.End:
        assert len(end.src) == 2
        out.append(end.src[1])
        end = end.src[0]
    return out


def test_loops_nest_in_one_order_however_their_end_names_them() -> None:
    """Threads around all else, then by the axis, then the earlier id; a loop whose length depends on another inside that."""
    a, b = loop32(3, 0), UOp.range(UOp.const(4, i32), 1, AxisType.Reduce, True)
    long, thread = UOp.range(a + 1, 2, AxisType.Loop, True), UOp.range(UOp.const(2, i32), 3, AxisType.Thread, True)
    store = K.buffer(0, 12).index(a * 4 + b).store(UOp.const(1.0))
    for named in itertools.permutations((a, b, long)):
        assert closed_by(stage(19, K.kernel(store.end(*named)))) == [a, b, long]
    for named in itertools.permutations((a, b, thread)):
        assert closed_by(stage(19, K.kernel(store.end(*named)))) == [thread, a, b]


def test_sibling_loops_are_ordered() -> None:
    r, s = K.loop(8, 0), K.loop(9, 1)
    ast = K.kernel(
        K.buffer(0, 8).index(r).store(UOp.const(1.0)).end(r), K.buffer(1, 9).index(s).store(UOp.const(2.0)).end(s)
    )
    out = order_loops(ast)
    second = [n for n in out.toposort() if n.op is Op.Range and len(n.src) > 1]
    assert len(second) == 1
    assert second[0].src[1].op is Op.End


def test_two_ends_of_one_loop_are_refused() -> None:
    r = K.loop(8, 0)
    twice = K.kernel(
        K.buffer(0, 8).index(r).store(UOp.const(1.0)).end(r), K.buffer(1, 8).index(r).store(UOp.const(2.0)).end(r)
    )
    with pytest.raises(LoweringError, match=r"stage 20: the loop Range\(8, 0\) of \w+ is closed by two Ends") as caught:
        order_loops(twice)
    assert "Group" in caught.value.hint


def test_a_loop_that_waits_already_is_refused() -> None:
    """Only this stage says what loops wait for: rules have dropped what one has waited for, as it means nothing."""
    first = K.buffer(1, 1).index(0).store(UOp.const(1.0))
    r = UOp.range(8, 0, deps=(first,))
    with pytest.raises(LoweringError, match=r"stage 20: the loop Range\(8, 0\) of \w+ waits for other nodes") as caught:
        order_loops(K.kernel(first, K.buffer(0, 8).index(r).store(UOp.const(1.0)).end(r)))
    assert "After" in caught.value.hint


def test_linear_order() -> None:
    """Every op after its operands, definitions first, what does not depend on a loop before it, loops closed inside out."""
    for ast in (K.matmul(64, 64, 64), K.normalize(8, 40), K.rows(5, 100)):
        program = lower(ast, K.CPU)
        place = {n: i for i, n in enumerate(program)}
        for n in program:
            assert all(place[s] < place[n] for s in n.src if s in place)
        first_range = min(i for i, n in enumerate(program) if n.op is Op.Range)
        assert all(i < first_range for i, n in enumerate(program) if n.op in (Op.DefineGlobal, Op.DefineReg))
        open_loops: list[UOp] = []
        for n in program:
            if n.op is Op.Range:
                open_loops.append(n)
            elif n.op is Op.End:
                assert open_loops.pop() is n.src[1]
        assert not open_loops
    assert (
        PRIORITY[Op.DefineGlobal]
        < PRIORITY[Op.Const]
        < PRIORITY[Op.End]
        < PRIORITY[Op.Load]
        < PRIORITY[Op.Store]
        < PRIORITY[Op.Range]
    )


def test_gated_stores_branch() -> None:
    x = UOp.var("x", index, 0, 20)
    ast = UOp.sink(K.buffer(0, 10).index(x, gate=x.lt(10)).store(UOp.const(1.0)))
    program = lower(ast, K.SCALAR)
    kinds = ops(program)
    at = kinds.index(Op.If)
    assert kinds[at : at + 3] == [Op.If, Op.Store, Op.EndIf]
    predicated = K.Target("P", predicated=True)
    assert Op.If not in ops(lower(ast, predicated))


def test_shared_memory() -> None:
    """A Bufferize in local memory is one DefineLocal, filled, then a barrier."""
    i, t, k = K.loop(4, 0), UOp.range(8, 1, AxisType.Local, True), K.fold(8, 2)
    held = UOp.new(Op.Bufferize, (K.buffer(1, 32).index(i * 8 + t), t), (None, AddrSpace.LOCAL))
    total = held.index(k).reduce(Op.Add, k)
    program = after(10, K.kernel(K.buffer(0, 4).index(i).store(total).end(i)), K.GPU)
    assert ops(program).count(Op.DefineLocal) == 1
    assert Op.Barrier in ops(program)
    assert Op.Bufferize not in ops(program)


def test_marks_are_gone_before_code_is_generated() -> None:
    r = K.loop(8, 0)
    read = K.buffer(1, 8).index(r)
    marked = UOp.new(Op.Contiguous, (read,))
    nothing = UOp.new(Op.Noop, (K.buffer(0, 8).index(r).store(UOp.new(Op.Noop, (marked,))).end(r),))
    out = stage(10, K.kernel(nothing))
    assert out is K.kernel(K.buffer(0, 8).index(r).store(read).end(r))


def test_optimizations_are_checked() -> None:
    s = Scheduler(K.matmul(6, 4, 8), K.GPU)
    assert [r.arg[1] for r in s.ranges] == [AxisType.Global, AxisType.Global, AxisType.Reduce]
    for opt in (
        Opt(OptOp.UPCAST, 2, 2),  # reduced
        Opt(OptOp.UPCAST, 0, 4),  # 4 does not divide 6
        Opt(OptOp.UPCAST, 5, 2),
        Opt(OptOp.UNROLL, 1, 2),
        Opt(OptOp.SWAP, 0, 2),
        Opt(OptOp.LOCAL, 2, 2),
        Opt(OptOp.TC, 0, 0),
        Opt(OptOp.GROUP, 0, 3),  # 3 does not divide 4
        Opt(OptOp.GROUPTOP, 1, 2),
        Opt(OptOp.THREAD, 0, 2),
        Opt(OptOp.PADTO, 0, 3),  # nothing to add
        Opt(OptOp.PADTO, 0, 25),
        Opt(OptOp.PACK, 2, 0),
    ):
        before = s.ast
        with pytest.raises(OptError):
            s.apply(opt)
        assert s.ast is before
    for opt, axis in (
        (Opt(OptOp.UPCAST, 1, 4), AxisType.Upcast),
        (Opt(OptOp.LOCAL, 0, 3), AxisType.Local),
        (Opt(OptOp.UNROLL, 0, 0), AxisType.Unroll),
    ):
        s.apply(opt)
        assert axis in [r.arg[1] for r in s.ranges]
    assert [str(o) for o in s.kernel().arg.opts] == ["UPCAST(1, 4)", "LOCAL(0, 3)", "UNROLL(0, 0)"]
    for op in (OptOp.LOCAL, OptOp.GROUP, OptOp.GROUPTOP):
        with pytest.raises(OptError, match="has no blocks"):
            Scheduler(K.matmul(6, 4, 8), K.CPU).apply(Opt(op, 0, 2))


def test_padding_is_gated() -> None:
    """A row of 37 padded to 48: whole vectors, the last of them behind a gate, and nothing outside is read or written."""
    s = Scheduler(K.elementwise(37), K.CPU)
    s.apply(Opt(OptOp.PADTO, 0, 16))
    s.apply(Opt(OptOp.UPCAST, 0, 16))
    assert sorted(n for n, _ in ranges(s.ast)) == [3, 16]


def test_threads_divide_an_output_loop() -> None:
    target = replace(K.AVX2, threads=4)
    s = Scheduler(K.matmul(6, 4, 8), target)
    for opt, says in (
        (Opt(OptOp.THREAD, 2, 2), "output axis"),
        (Opt(OptOp.THREAD, 0, 4), "does not divide"),
        (Opt(OptOp.THREAD, 1, 8), "8 threads\n  expected: at most 4"),
        (Opt(OptOp.THREAD, 7, 2), "no axis"),
    ):
        with pytest.raises(OptError, match=says):
            s.apply(opt)
    s.apply(Opt(OptOp.THREAD, 1, 2))
    assert [(const_end(r), r.arg[1]) for r in s.ranges] == [
        (2, AxisType.Thread), (6, AxisType.Loop), (4, AxisType.Loop), (4, AxisType.Reduce),
    ]  # fmt: skip
    with pytest.raises(OptError, match="already"):
        s.apply(Opt(OptOp.THREAD, 1))
    program = lower(UOp.new(Op.Sink, K.matmul(6, 4, 8).src, K.KernelInfo("matmul", tuple(s.applied))), target)
    assert next(u.arg[1] for u in program if u.op is Op.Range) is AxisType.Thread
    with pytest.raises(OptError, match="one thread"):
        Scheduler(K.matmul(6, 4, 8), K.AVX2).apply(Opt(OptOp.THREAD, 0))
    r = K.loop(8, 0)
    reversed_ = K.kernel(K.buffer(0, 8).index(r).store(K.buffer(0, 8).index(r * -1 + 7)).end(r))
    with pytest.raises(OptError, match="another thread"):
        Scheduler(reversed_, target).apply(Opt(OptOp.THREAD, 0))
    with pytest.raises(OptError, match="same place"):
        Scheduler(K.kernel(K.buffer(0, 1).index(0).store(K.buffer(1, 8).index(r)).end(r)), target).apply(
            Opt(OptOp.THREAD, 0)
        )


def test_threads_divide_what_steps_furthest() -> None:
    """A thread writes one piece of the output, whatever the order of the loops' ids."""
    i, b = K.loop(16, 0), K.loop(64, 1)
    ast = K.kernel(K.buffer(0, 1024).index(b * 16 + i).store(K.buffer(1, 64).index(b)).end(i, b))
    assert loops(ast, 2) == [b]
    assert loops(ast, 2, as_nested=True) == [i]
    assert [const_end(r) for r in loops(K.matmul(32, 4, 8), 2)] == [32]
    assert [const_end(r) for r in loops(K.matmul(3, 4, 64), 2)] == [64]  # three rows are no work for two


def test_threads_take_outermost_loops_alone() -> None:
    """The loop over columns that a cut left beside another, both inside the loop over rows, is no thread's to take."""
    s = Scheduler(K.matmul(8, 4, 10), replace(K.AVX2, threads=2))
    s.apply(Opt(OptOp.UPCAST, 1, 4))
    with pytest.raises(OptError, match="cut"):
        s.apply(Opt(OptOp.THREAD, 1))
    s.apply(Opt(OptOp.THREAD, 0))


@pytest.mark.parametrize("op", [OptOp.GROUP, OptOp.GROUPTOP])
def test_grouped_reductions_share_memory(op: OptOp) -> None:
    s = Scheduler(K.rows(6, 24), K.GPU)
    s.apply(Opt(OptOp.LOCAL, 0, 3))
    s.apply(Opt(op, 0, 8))
    assert AxisType.GroupReduce in [r.arg[1] for r in s.ranges]
    (shared,) = [n for n in stage(9, s.ast, K.GPU).toposort() if n.op is Op.DefineLocal]
    assert isinstance(shared.dtype, PtrType)
    assert shared.dtype.size == 24  # three rows of eight threads
    program = lower(UOp.new(Op.Sink, K.rows(6, 24).src, K.KernelInfo("rows", tuple(s.applied))), K.GPU)
    assert ops(program).count(Op.Barrier) == 1
    for opt in (Opt(op, 0, 2), Opt(OptOp.UNROLL, 0, 2), Opt(OptOp.LOCAL, 0, 2), Opt(OptOp.NOLOCALS)):
        with pytest.raises(OptError, match=r"GROUP|threads divide"):
            s.apply(opt)
    with pytest.raises(OptError, match="threads in a block"):
        Scheduler(K.total(4096), K.GPU).apply(Opt(op, 0, 2048))


def test_remainders() -> None:
    """A CPU vectorizes what a vector divides and loops over the rest."""
    s = Scheduler(K.elementwise(37), K.CPU)
    s.apply(Opt(OptOp.UPCAST, 0, 16))
    assert sorted(n for n, _ in ranges(s.ast)) == [2, 5, 16]


def test_a_trace_has_22_sections() -> None:
    ast = K.elementwise(10000)
    sections: list[str] = []
    stages = iter(STAGES)
    lower(
        ast, K.CPU, lambda number, name, before, program: sections.append(section(ast, next(stages), before, program))
    )
    assert len(sections) == 22
    for s, text in zip(STAGES, sections, strict=True):
        assert text.startswith(f"=== elementwise: stage {s.number}: {s.name}")
    assert "(no change)" in sections[1]
    assert "(no change)" not in sections[8]
    assert len(listing(lower(ast, K.CPU)).splitlines()) == len(lower(ast, K.CPU))


def test_run_counts_put_constants_outside() -> None:
    r = K.loop(8, 0)
    a = UOp.new(Op.DefineGlobal, (), 0, f32.ptr(8))
    at = UOp.new(Op.Index, (a, UOp.range(UOp.const(8, i32), 0, AxisType.Loop, True)), False)
    program = linearize(UOp.sink(at.store(UOp.const(2.0)).end(at.src[1])))
    assert program[0] is a
    assert program.index(UOp.const(2.0)) < program.index(at.src[1])
    assert r.dtype is index


def test_debug_prints_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with config.settings(debug="ir"):
        lower(K.elementwise(64), K.CPU)
    shown = capsys.readouterr().err
    assert [line for line in shown.splitlines() if line.startswith("=== elementwise: stage ")] != []
    assert shown.count("=== elementwise: stage ") == 22


def test_no_optimizations() -> None:
    with config.settings(noopt=True):
        assert {n.dtype.count for n in lower(K.elementwise(64), K.CPU)} == {1}


@pytest.mark.long
def test_products_are_fused_where_the_target_can() -> None:
    fused = lower(K.matmul(8, 8, 32), K.CPU)
    assert Op.MulAcc in ops(fused)
    plain = lower(K.matmul(8, 8, 32), K.Target("LLVM", vector_bytes=64, memory_bytes=64, registers=32, fma=False))
    assert Op.MulAcc not in ops(plain)
    with config.settings(fast_math=""):
        assert Op.MulAcc not in ops(lower(K.matmul(8, 8, 32), K.CPU))


@pytest.mark.long
def test_long_chains() -> None:
    """20,000 ops in one kernel, at Python's default recursion limit."""
    r = K.loop(4, 0)
    value = K.buffer(1, 4).index(r)
    for i in range(20_000):
        value = value.max(value.like(float(i))) if i % 2 else value * -1.0
    program = lower(K.kernel(K.buffer(0, 4).index(r).store(value).end(r)), K.CPU)
    assert len(program) > 20_000


def test_a_target_adds_rules_before_decomposition() -> None:
    r = K.loop(4, 0)
    ast = K.kernel(K.buffer(0, 4).index(r).store(K.buffer(1, 4).index(r) * -1.0).end(r))
    target = K.Target("LLVM", pre_matcher=("late_forms",))
    assert ops(after(16, ast, target)).count(Op.Neg) == 0
    assert ops(after(17, ast, target)).count(Op.Neg) == 1
    assert ops(after(17, ast, K.SCALAR)).count(Op.Neg) == 0
