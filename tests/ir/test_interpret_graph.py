"""The interpreter on graphs as they are at the various stages."""

from __future__ import annotations

import math

import pytest

from morok.errors import IRError, ShapeError, UndefinedError
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.expression_parser import parse
from morok.ir.interpret import INVALID, evaluate, run, tensor
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

f32, index, i32 = dtypes.f32, dtypes.index, dtypes.i32


def param(slot: int, size: int, dtype=f32) -> UOp:
    return UOp.new(Op.DefineGlobal, (), slot, dtype.ptr(size))


def local(number: int, size: int, dtype=f32) -> UOp:
    return UOp.new(Op.DefineLocal, (), number, dtype.ptr(size, AddrSpace.LOCAL))


def reg(number: int, size: int, dtype=f32) -> UOp:
    return UOp.new(Op.DefineReg, (), number, dtype.ptr(size, AddrSpace.REG))


def test_reduce_over_a_range() -> None:
    i, r = UOp.range(4, 0), UOp.range(3, 1, AxisType.Reduce)
    total = param(1, 12).index(i * 3 + r).reduce(Op.Add, r)
    buffers = {0: [None] * 4, 1: [float(k) for k in range(12)]}
    run(UOp.sink(param(0, 4).index(i).store(total).end(i)), buffers)
    assert buffers[0] == [3.0, 12.0, 21.0, 30.0]


@pytest.mark.parametrize(("op", "value"), [(Op.Add, 0.0), (Op.Mul, 1.0), (Op.Max, -math.inf), (Op.Min, math.inf)])
def test_reduce_over_nothing_is_the_identity(op: Op, value: float) -> None:
    assert evaluate(UOp.const(3.0).reduce(op, UOp.range(0, 0))) == value


def test_max_over_no_index_has_no_value() -> None:
    with pytest.raises(UndefinedError):
        evaluate(UOp.const(3).reduce(Op.Max, UOp.range(0, 0)))


def test_reduce_over_a_triangle() -> None:
    i = UOp.range(5, 0)
    j = UOp.range(i + 1, 1)
    assert evaluate((j * 1).reduce(Op.Add, j, i)) == sum(sum(range(a + 1)) for a in range(5))


def accumulator() -> UOp:
    """What stage 11 makes of a sum."""
    i, r = UOp.range(4, 0), UOp.range(3, 1, AxisType.Reduce)
    acc = reg(0, 1)
    start = acc.after(i).index(0).store(UOp.const(0.0))
    step = acc.index(0).store(acc.after(start, r).index(0) + param(1, 12).index(i * 3 + r)).end(r)
    return UOp.sink(param(0, 4).index(i).store(acc.after(step).index(0)).end(i))


def test_accumulator_loop() -> None:
    buffers = {0: [None] * 4, 1: [float(k) for k in range(12)]}
    run(accumulator(), buffers)
    assert buffers[0] == [3.0, 12.0, 21.0, 30.0]


def test_upcast_range_unroll_and_contract_agree() -> None:
    data = [float(k * k) for k in range(8)]
    i, u = UOp.range(2, 0), UOp.range(4, 1, AxisType.Upcast)
    before = UOp.sink(param(0, 8).index(i * 4 + u).store(param(1, 8).index(i * 4 + u) * 2.0).end(i, u))
    lane = UOp.new(Op.Unroll, (UOp.const((0, 1, 2, 3), index),), ((1, 4),))
    inside = param(0, 8).index(i * 4 + lane).store(param(1, 8).index(i * 4 + lane) * 2.0)
    during = UOp.sink(UOp.new(Op.Contract, (inside,), ((1, 4),)).end(i))
    lanes = UOp.vectorize(*[i * 4] * 4) + UOp.const((0, 1, 2, 3), index)
    after = UOp.sink(param(0, 8).index(lanes).store(param(1, 8).index(lanes) * UOp.const(2.0, f32.vec(4))).end(i))
    wide = param(1, 8).index(i * 4).load(f32.vec(4))
    loads = UOp.sink(param(0, 8).index(i * 4).store(wide * UOp.const(2.0, f32.vec(4))).end(i))
    for root in (before, during, after, loads):
        buffers = {0: [None] * 8, 1: list(data)}
        run(root, buffers)
        assert buffers[0] == [2 * v for v in data]


@pytest.mark.parametrize("axes", [((0, 2), (1, 4)), ((0, 3), (1, 3))])
def test_an_iteration_that_an_axis_does_not_have_has_no_lane(axes: tuple[tuple[int, int], ...]) -> None:
    """An axis that is opened with two lengths: lanes of other iterations are not taken for those that are missing."""
    lanes = UOp.new(Op.Unroll, (UOp.const((0, 1, 2, 3, 4, 5), index),), ((0, 2), (1, 3)))
    assert evaluate(UOp.new(Op.Contract, (lanes,), ((0, 2), (1, 3)))) == (0, 1, 2, 3, 4, 5)
    with pytest.raises(UndefinedError, match=r"iteration [23] of axis [01]"):
        evaluate(UOp.new(Op.Contract, (lanes,), axes))


def test_horizontal_reduce_folds_neighbouring_lanes() -> None:
    v = UOp.const((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), f32)
    assert evaluate(UOp.new(Op.Reduce, (v,), Op.Add, f32.vec(2))) == (6.0, 15.0)
    assert evaluate(UOp.new(Op.Reduce, (v,), Op.Max, f32)) == 6.0


def test_where_defers_what_is_undefined() -> None:
    x = UOp.var("x", i32)
    safe = x.eq(0).where(x.like(7), x.like(100) // x)
    assert evaluate(safe, {"x": 0}) == 7
    assert evaluate(safe, {"x": 3}) == 33
    with pytest.raises(UndefinedError, match="division by zero"):
        evaluate(x.like(100) // x, {"x": 0})
    with pytest.raises(UndefinedError):
        evaluate((x.like(1) // x).eq(0).where(x, x), {"x": 0})


def test_undefined_and_unread_does_not_raise() -> None:
    i = UOp.range(4, 0)
    scratch = reg(0, 1, i32)
    unread = scratch.index(0).store(UOp.const(1, i32) // (i - i).cast(i32))
    after = scratch.after(unread)
    again = after.index(0).store(i.cast(i32))
    buffers = {0: [None] * 4}
    run(UOp.sink(param(0, 4, i32).index(i).store(scratch.after(again).index(0)).end(i)), buffers)
    assert buffers[0] == [0, 1, 2, 3]


def test_gates_and_invalid_read_zero_and_store_nothing() -> None:
    i = UOp.range(6, 0)
    inside = i < 4
    source = param(1, 4)
    gated = source.index(i, gate=inside)
    invalid = source.index(inside.where(i, UOp.invalid_at()))
    with_alternative = UOp.new(Op.Load, (gated, UOp.const(9.0)))
    for value, fill in ((gated, 0.0), (invalid, 0.0), (with_alternative, 9.0)):
        buffers = {0: [None] * 6, 1: [1.0, 2.0, 3.0, 4.0]}
        run(UOp.sink(param(0, 6).index(i).store(value).end(i)), buffers)
        assert buffers[0] == [1.0, 2.0, 3.0, 4.0, fill, fill]
    buffers = {0: [None] * 4}
    run(UOp.sink(param(0, 4).index(inside.where(i, UOp.invalid_at())).store(UOp.const(1.0)).end(i)), buffers)
    assert buffers[0] == [1.0] * 4


def test_arithmetic_is_strict_in_invalid_and_comparison_undefined() -> None:
    assert evaluate(UOp.invalid_at() * 0) is INVALID
    with pytest.raises(UndefinedError):
        evaluate(UOp.invalid_at() < 3)


def stored(place: UOp, inside: bool) -> UOp:
    """The store of an index that is Invalid where nothing is inside."""
    return place.store(UOp.const(inside).where(UOp.const(3), UOp.invalid_at()))


CELL, SHARED, GLOBAL = reg(0, 2, index), local(0, 2, index), param(1, 2, index)


@pytest.mark.parametrize(
    "read",
    [
        lambda inside: CELL.after(stored(CELL.index(0), inside)).index(0).load(),
        lambda inside: CELL.after(stored(CELL.index(0), inside)).index(0),
        lambda inside: (
            CELL.after(CELL.index(0).store(UOp.const(0)), stored(CELL.index(1), inside))
            .index(0)
            .load(index.vec(2))
            .gep(1)
        ),
        lambda inside: UOp.new(Op.Barrier, (SHARED, stored(SHARED.index(0), inside))).index(0),
        lambda inside: GLOBAL.after(stored(GLOBAL.index(0), inside)).index(UOp.const(0), gate=UOp.const(True)).load(),
    ],
)
def test_memory_holds_no_invalid(read) -> None:
    """No node says of what it reads that it may be Invalid, and rules take it for a number."""
    assert not read(False).invalid
    out = param(0, 4, i32)
    for inside in (True, False):
        program = UOp.sink(out.index(read(inside) * 0).store(UOp.const(1, i32)))
        buffers = {0: [0] * 4, 1: [1, 2]}
        if inside:
            run(program, buffers)
            assert buffers[0] == [1, 0, 0, 0]
        else:
            with pytest.raises(UndefinedError, match="Invalid is stored"):
                run(program, buffers)


def test_what_is_left_in_a_buffer_is_not_invalid() -> None:
    with pytest.raises(UndefinedError, match="Invalid is stored"):
        run(UOp.sink(stored(GLOBAL.index(0), False)), {1: [1, 2]})
    buffers = {1: [1, 2]}
    run(
        UOp.sink(
            stored(GLOBAL.index(0), False), GLOBAL.after(stored(GLOBAL.index(0), False)).index(0).store(UOp.const(7))
        ),
        buffers,
    )
    assert buffers[1] == [7, 2], "no value stands there where another one is stored afterwards"


def test_outside_a_buffer() -> None:
    i = UOp.range(5, 0)
    with pytest.raises(UndefinedError, match="element 4 of 4"):
        run(UOp.sink(param(0, 4).index(i).store(UOp.const(1.0)).end(i)), {0: [None] * 4})
    with pytest.raises(UndefinedError, match="element 4 of 4"):
        run(UOp.sink(param(0, 5).index(i).store(param(1, 4).index(i)).end(i)), {0: [None] * 5, 1: [0.0] * 4})


def test_store_and_read_in_no_order() -> None:
    i = UOp.range(4, 0)
    j = UOp.range(4, 1)
    a = param(0, 4)
    first = a.index(i).store(UOp.const(1.0)).end(i)
    unordered = param(1, 4).index(j).store(a.index(j)).end(j)
    ordered = param(1, 4).index(j).store(a.after(first).index(j)).end(j)
    with pytest.raises(UndefinedError, match="in no order"):
        run(UOp.sink(first, unordered), {0: [0.0] * 4, 1: [None] * 4})
    buffers = {0: [0.0] * 4, 1: [None] * 4}
    run(UOp.sink(first, ordered), buffers)
    assert buffers[1] == [1.0] * 4
    # the other way round: what was read may have been meant to be read before or after
    with pytest.raises(UndefinedError, match="in no order"):
        run(UOp.sink(unordered, first), {0: [0.0] * 4, 1: [None] * 4})
    again = a.index(i).store(UOp.const(2.0)).end(i)
    with pytest.raises(UndefinedError, match="in no order"):
        run(UOp.sink(first, again), {0: [0.0] * 4})
    buffers = {0: [0.0] * 4}
    run(UOp.sink(a.after(first).index(i).store(UOp.const(2.0)).end(i)), buffers)
    assert buffers[0] == [2.0] * 4


def test_a_place_behind_a_range_holds_what_earlier_iterations_have_stored() -> None:
    i, j = UOp.range(4, 0), UOp.range(1, 1)
    a = param(0, 1)

    buffers = {0: [1.0]}
    run(UOp.sink(a.index(0).store(a.after(i).index(0) + i.cast(f32)).end(i)), buffers)
    run(UOp.sink(a.index(0).store(a.after(i).after(UOp.const(0)).index(0) + 1.0, i)), buffers)
    assert buffers[0] == [11.0]
    first = a.index(0).store(UOp.const(1.0))
    for other in (j, i * 0, i.cast(i32)):  # a range that nothing was stored in, and numbers
        with pytest.raises(UndefinedError, match="in no order"):
            run(UOp.sink(first, param(1, 1).index(0).store(a.after(other).index(0)).end(i, j)), {0: [0.0], 1: [None]})
    with pytest.raises(UndefinedError, match="in no order"):
        run(UOp.sink(a.index(0).store(a.index(i - i) + 1.0).end(i)), {0: [1.0]})


@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_a_range_waits_for_adds_nothing(count: int) -> None:
    """It is not done for the loop, and what is done in the loop is not behind it."""
    first = param(0, 2).index(0).store(UOp.const(7.0))
    waiting = UOp.range(count, 0, deps=(first,))
    store, read = param(0, 2).index(1).store(UOp.const(5.0)), param(1, 1).index(0).store(param(0, 2).index(0))
    buffers = {0: [1.0, 1.0]}
    run(UOp.sink(store.end(waiting)), buffers)
    assert buffers[0] == [1.0, 5.0 if count else 1.0]
    run(UOp.sink(first, store.end(waiting)), buffers)
    assert buffers[0] == [7.0, 5.0 if count else 1.0]
    buffers[1] = [None]
    if count:
        with pytest.raises(UndefinedError, match="in no order"):
            run(UOp.sink(first, read.end(waiting)), buffers)


def test_a_statement_is_done_at_all_iterations_of_the_axes_open_in_it() -> None:
    """Whatever closes them: a Contract of another length, an End, or nothing."""
    u = UOp.new(Op.Unroll, (parse("VConst([0, 1, 2], indexx3)"),), ((7, 3),))
    store = param(0, 3).index(u).store(u.cast(f32) + 4.0)
    closed = [UOp.new(Op.Contract, (store,), ((7, n),)) for n in (1, 3)]
    whole = (*closed, store.end(u), closed[0].end(u), UOp.new(Op.Store, (*store.src, u)), UOp.new(Op.Group, (store,)))
    for statement in (store, *whole):
        buffers = {0: [None] * 3}
        run(UOp.sink(statement), buffers)
        assert buffers[0] == [4.0, 5.0, 6.0]


def test_in_place_updates() -> None:
    i = UOp.range(4, 0)
    a = param(0, 4)
    buffers = {0: [1.0, 2.0, 3.0, 4.0]}
    run(UOp.sink(a.index(i).store(a.index(i) + 1.0).end(i)), buffers)
    assert buffers[0] == [2.0, 3.0, 4.0, 5.0]
    with pytest.raises(UndefinedError, match="in no order"):
        run(UOp.sink(a.index(i).store(a.index(i.like(3) - i)).end(i)), buffers)


def tiles(barrier: bool) -> UOp:
    """Each thread stores one element of shared memory and reads its neighbour's, twice."""
    g = UOp.new(Op.Special, (UOp.const(2),), "gidx0")
    t = UOp.new(Op.Special, (UOp.const(4),), "lidx0")
    tile = local(0, 4)
    put = tile.index(t).store(param(1, 8).index(g * 4 + t))
    done = UOp.new(Op.Barrier, (put,)) if barrier else put
    got = tile.after(done).index((t + 1) % 4)
    return UOp.sink(param(0, 8).index(g * 4 + t).store(got))


def test_workgroups_share_memory_behind_a_barrier() -> None:
    buffers = {0: [None] * 8, 1: [float(k) for k in range(8)]}
    run(tiles(True), buffers)
    assert buffers[0] == [1.0, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0, 4.0]
    with pytest.raises(UndefinedError, match="barrier"):
        run(tiles(False), {0: [None] * 8, 1: [float(k) for k in range(8)]})


def test_views_are_maps_of_indices() -> None:
    base = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 0), UOp.new(Op.Device, (), "CPU")), 6, f32)
    grid = UOp.new(Op.Reshape, (base, UOp.const(2), UOp.const(3)))
    turned = UOp.new(Op.Permute, (grid,), (1, 0))
    flipped = UOp.new(Op.Flip, (turned,), (True, False))
    padded = UOp.new(Op.Pad, (flipped, UOp.const(1), UOp.const(0), UOp.const(0), UOp.const(1)))
    cut = UOp.new(Op.Shrink, (padded, UOp.const(0), UOp.const(1), UOp.const(3), UOp.const(3)))
    wide = UOp.new(
        Op.Expand, (UOp.new(Op.Reshape, (cut, UOp.const(3), UOp.const(2), UOp.const(1))), *map(UOp.const, (3, 2, 2)))
    )
    data = {base: [float(k) for k in range(6)]}
    flat, shape = tensor(wide, data)
    assert shape == (3, 2, 2)
    assert flat == [0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 0.0, 0.0, 4.0, 4.0, 0.0, 0.0]
    for at in range(12):
        i, j, k = at // 4, at // 2 % 2, at % 2
        assert evaluate(wide.index(i, j, k), buffers=data) == flat[at]


def test_symbolic_dimensions() -> None:
    n = UOp.var("n", index, 1, 8)
    base = parse('Buffer(Unique(0), Device("CPU"), 12): f32')
    grid = UOp.new(Op.Reshape, (base, n, UOp.const(3)))
    padded = UOp.new(Op.Pad, (grid, *map(UOp.const, (1, 0, 0, 1))))
    data = {base: [float(k) for k in range(12)]}
    flat, shape = tensor(padded, data, {"n": 4})
    assert shape == (5, 4)
    assert flat[4:8] == [0.0, 1.0, 2.0, 0.0]
    again = UOp.new(Op.Reshape, (padded, padded.shape[0] * padded.shape[1]))
    assert evaluate(again.index(5), {"n": 4}, data) == 1.0
    assert evaluate(padded.index(0, 1), {"n": 4}, data) == 0.0


def test_reduce_axis_and_elementwise() -> None:
    base = parse('Buffer(Unique(0), Device("CPU"), 200): f32')
    grid = UOp.new(Op.Reshape, (base, UOp.const(10), UOp.const(20)))
    total = UOp.new(Op.ReduceAxis, (grid * grid,), (Op.Add, (1,)))
    assert total.shape == (10,)
    flat, shape = tensor(total, {base: [1.0] * 200})
    assert (flat, shape) == ([20.0] * 10, (10,))


def test_devices_hold_parts() -> None:
    parts = [parse(f'Buffer(Unique({n}), Device("CPU:{n}"), 2): f32') for n in range(2)]
    stack = UOp.new(Op.MStack, tuple(parts))
    total = UOp.new(Op.AllReduce, (stack, UOp.new(Op.Device, (), "CPU:0")), Op.Add)
    data = {parts[0]: [1.0, 2.0], parts[1]: [3.0, 4.0]}
    for n in range(2):
        assert tensor(UOp.new(Op.MSelect, (total,), n), data)[0] == [4.0, 6.0]
    assert tensor(UOp.new(Op.Multi, tuple(parts), 0), data) == ([1.0, 2.0, 3.0, 4.0], (4,))


def test_bufferize_computes_its_elements() -> None:
    r = UOp.range(3, 0)
    held = UOp.new(Op.Bufferize, ((r * r).cast(f32), r), (None, AddrSpace.GLOBAL))
    assert tensor(held, {}) == ([0.0, 1.0, 4.0], (3,))
    assert evaluate(held.index(2)) == 4.0


def test_kernels_run_in_the_order_of_their_edges() -> None:
    a, b = (parse(f'Buffer(Unique({n}), Device("CPU"), 4): f32') for n in range(2))
    i = UOp.range(4, 0)
    ast = UOp.sink(param(0, 4).index(i).store(param(1, 4).index(i) + 1.0).end(i))
    first = UOp.new(Op.Kernel, (ast, b, a), "k")
    second = UOp.new(Op.Kernel, (ast, a, b.after(first)), "k")
    data = {a: [1.0] * 4, b: [None] * 4}
    run(UOp.sink(a.after(second)), data)
    assert data[b] == [2.0] * 4
    assert data[a] == [3.0] * 4


def test_empty_and_single_loops() -> None:
    for count, want in ((0, None), (1, 5.0)):
        r = UOp.range(count, 0)
        buffers = {0: [None]}
        run(UOp.sink(param(0, 1).index(0).store(UOp.const(5.0)).end(r)), buffers)
        assert buffers[0] == [want]


def test_what_has_no_value_says_so() -> None:
    with pytest.raises(IRError, match="variable n has no value"):
        evaluate(UOp.var("n"))
    with pytest.raises(IRError, match=r"bounds 1\.\.=8"):
        evaluate(UOp.var("n", index, 1, 8), {"n": 9})
    with pytest.raises(IRError, match="outside its loop"):
        evaluate(UOp.range(4, 0))
    assert evaluate(UOp.range(4, 0) * 2, {UOp.range(4, 0): 3}) == 6


@pytest.mark.long
def test_deep_graphs() -> None:
    x = u = UOp.var("x", i32)
    for _ in range(100_000):
        u = u + 1
    assert evaluate(u, {"x": 5}) == 100_005
    assert x is not u


def test_one_operand_may_decide_a_connective_alone() -> None:
    """`Where(c, x, false) ~> And(c, x)` holds although x may have no value where c is false."""
    nothing = UOp.const(1, dtypes.i32) // UOp.const(0, dtypes.i32) < 2
    assert evaluate(UOp.const(False) & nothing) is False
    assert evaluate(nothing & UOp.const(False)) is False
    assert evaluate(nothing | UOp.const(True)) is True
    with pytest.raises(UndefinedError):
        evaluate(UOp.const(True) & nothing)


@pytest.mark.parametrize("n", [2**30, 2**62])
def test_tensors_too_large_to_interpret(n: int) -> None:
    size = UOp.var("n", index, 0, 2**62)
    one = UOp.new(Op.Reshape, (UOp.const(1.5, f32), UOp.const(1)))
    for large in (
        UOp.new(Op.Expand, (one, size)),
        UOp.new(Op.Pad, (one, UOp.const(0), size)),
        UOp.new(Op.Iota, (size,)),
        UOp.new(Op.Expand, (UOp.new(Op.Reshape, (one, *[UOp.const(1)] * 3)), UOp.const(0), size, UOp.const(1))),
    ):
        with pytest.raises(IRError, match="is interpreted"):
            tensor(large, {}, {"n": n})
        assert tensor(large, {}, {"n": 0})[1] == large.substitute({size: UOp.const(0)}).shape


@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        (Op.Shrink, (0, 1, 3, 3)),  # the first axis ends behind its last element: no element of the next row is meant
        (Op.Shrink, (2, 0, 1, 3)),
        (Op.Shrink, (-1, 0, 1, 3)),
        (Op.Pad, (0, -1, 0, 0)),
        (Op.Expand, (2, 6)),
        (Op.Expand, (1, 3)),
        (Op.Reshape, (-2, -3)),
    ],
)
def test_views_that_do_not_fit_what_they_are_views_of(op: Op, sizes: tuple[int, ...]) -> None:
    """Sizes that are known when a tensor is computed alone."""
    held = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 1), UOp.new(Op.Device, (), "CPU")), 6, f32)
    whole = UOp.new(Op.Reshape, (held, UOp.const(2), UOp.const(3)))
    names = [UOp.var(f"n{k}", index, -10, 10) for k in range(len(sizes))]
    with pytest.raises(ShapeError, match=op.name):
        tensor(
            UOp.new(op, (whole, *names)), {held: [0.0] * 6}, {n.arg[0]: v for n, v in zip(names, sizes, strict=True)}
        )


def test_elements_of_views_that_do_not_fit() -> None:
    """A place in a view has no value where the view has none, though its operand may have an element there."""
    held = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 1), UOp.new(Op.Device, (), "CPU")), 6, f32)
    n = UOp.var("n", index, -10, 10)
    for view in (
        UOp.new(Op.Shrink, (held, UOp.const(0), n)),
        UOp.new(Op.Pad, (held, n, UOp.const(1))),
        UOp.new(Op.Expand, (held, n)),
    ):
        values, wrong = {held: [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}, -1 if view.op is Op.Pad else 9
        assert evaluate(view.index(UOp.const(1)), {"n": 6}, values) is not None
        with pytest.raises(ShapeError, match=view.op.name):
            evaluate(view.index(UOp.const(1)), {"n": wrong}, values)


@pytest.mark.parametrize("op", [Op.Shrink, Op.Pad, Op.Expand, Op.Flip, Op.Permute])
def test_places_outside_of_views(op: Op) -> None:
    """A part has no element beyond its ends, where what it is a part of has some."""
    held = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 1), UOp.new(Op.Device, (), "CPU")), 6, f32)
    part = UOp.new(Op.Shrink, (held, UOp.const(2), UOp.const(4)))
    rows = UOp.new(Op.Reshape, (part, UOp.const(2), UOp.const(1)))
    views = {
        Op.Shrink: part,
        Op.Pad: UOp.new(Op.Pad, (part, UOp.const(0), UOp.const(0))),
        Op.Expand: UOp.new(Op.Expand, (rows, UOp.const(2), UOp.const(2))),
        Op.Flip: UOp.new(Op.Flip, (part,), (True,)),
        Op.Permute: UOp.new(Op.Permute, (rows,), (1, 0)),
    }
    first = {Op.Expand: [UOp.const(0)], Op.Permute: [UOp.const(0)]}.get(op, [])
    i = UOp.var("i", index, -10, 10)
    values = {held: [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}
    assert evaluate(views[op].index(*first, i), {"i": 1}, values) in (5.0, 6.0)
    for outside in (-1, 2):
        with pytest.raises(UndefinedError, match=f"index {outside} of 2"):
            evaluate(views[op].index(*first, i), {"i": outside}, values)


def test_an_element_is_at_one_index_for_each_axis() -> None:
    """A view has no flat index, and neither has what is computed: storage alone has."""
    held = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 1), UOp.new(Op.Device, (), "CPU")), 6, f32)
    whole = UOp.new(Op.Reshape, (held, UOp.const(2), UOp.const(3)))
    values = {held: [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}
    for of in (whole, -whole):
        assert abs(evaluate(of.index(UOp.const(1), UOp.const(2)), {}, values)) == 8.0
        with pytest.raises(IRError, match="1 indices"):
            evaluate(of.index(UOp.const(5)), {}, values)
    assert evaluate(held.index(UOp.const(5)), {}, values) == 8.0


def test_an_index_into_a_place_has_no_value_where_what_that_says_has_none() -> None:
    """Also where it is nowhere itself; a gate without a value is looked at where it is chosen, and else not."""
    held = UOp.new(Op.DefineGlobal, (), 0, f32.ptr(8))
    n, g = UOp.var("n", index, 0, 10), UOp.var("g", dtypes.bool)
    one = UOp.const(1)
    no_index, no_gate = one.idiv(n), one.idiv(n).lt(one)
    values = {0: [1.0] * 8}
    nowhere = g.where(one, UOp.invalid_at())
    assert evaluate(held.index(one, gate=g).index(one), {"g": False}, values) == 0.0
    for place in (
        held.index(no_index).index(nowhere),
        held.index(one, gate=no_gate).index(nowhere),
        held.index(one, gate=g).index(no_index),
        held.index(one, gate=no_gate).index(UOp.const(0)),
    ):
        with pytest.raises(UndefinedError):
            evaluate(place, {"n": 0, "g": False}, values)
        assert evaluate(g.where(place, UOp.const(2.0, f32)), {"n": 0, "g": False}, values) == 2.0


def test_tensors_behind_each_other_have_one_shape_but_for_an_axis() -> None:
    held = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 1), UOp.new(Op.Device, (), "CPU")), 2, f32)
    column = UOp.new(Op.Reshape, (held, UOp.const(2), UOp.const(1)))
    n, m = (UOp.var(name, index, -10, 10) for name in "nm")
    joined = UOp.new(Op.Concat, tuple(UOp.new(Op.Expand, (column, UOp.const(2), k)) for k in (n, m)), 0)
    assert tensor(joined, {held: [3.0, 4.0]}, {"n": 1, "m": 1}) == ([3.0, 4.0, 3.0, 4.0], (4, 1))
    with pytest.raises(ShapeError, match="behind each other"):
        tensor(joined, {held: [3.0, 4.0]}, {"n": 1, "m": 2})
    with pytest.raises(ShapeError, match="Iota"):
        tensor(UOp.new(Op.Iota, (n,)), {}, {"n": -1})


def test_a_size_that_is_invalid() -> None:
    b = UOp.var("b", dtypes.bool)
    size = b.where(UOp.const(2), UOp.invalid_at())
    held = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 1), UOp.new(Op.Device, (), "CPU")), 2, f32)
    below = UOp.new(Op.Reshape, (held, size, UOp.const(1)))
    element = UOp.new(Op.Reshape, (below, UOp.const(1), UOp.const(2))).index(UOp.const(0), UOp.const(1))
    assert evaluate(element.load(), {"b": True}, {held: [3.0, 4.0]}) == 4.0
    with pytest.raises(IRError, match="a size"):
        evaluate(element.load(), {"b": False}, {held: [3.0, 4.0]})


def test_an_iteration_of_a_fold_does_not_see_what_others_have_stored() -> None:
    """A fold is done in any order: a counter has no value there, and what each iteration begins anew has one."""
    r, j = UOp.range(4, 0, AxisType.Reduce), UOp.range(3, 1, AxisType.Loop)
    zero, cell = UOp.const(0), reg(0, 1, i32)
    start = cell.index(zero).store(UOp.const(0, i32))
    counted = cell.index(zero).store(cell.after(start, r).index(zero) + UOp.const(1, i32))
    with pytest.raises(UndefinedError, match="of an earlier iteration of a fold"):
        evaluate(cell.after(counted).index(zero).reduce(Op.Add, r))
    anew = cell.index(zero).store(r.cast(i32))
    added = cell.index(zero).store(cell.after(anew, j).index(zero) + r.cast(i32)).end(j)
    assert evaluate(cell.after(added).index(zero).reduce(Op.Add, r)) == 4 * (0 + 1 + 2 + 3)
    outside = cell.index(zero).store(UOp.const(5, i32))
    assert evaluate((cell.after(outside).index(zero) + r.cast(i32)).reduce(Op.Add, r)) == 4 * 5 + 6


def test_two_arguments_are_two_memories_where_one_is_stored_to() -> None:
    r = UOp.range(2, 0)
    copied = UOp.sink(param(0, 2, i32).index(r).store(param(1, 2, i32).index(r).load()).end(r))
    buffer = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 0), UOp.new(Op.Device, (), "CPU")), 4, i32)
    halves = [UOp.new(Op.BufferView, (buffer,), (at, 2), i32) for at in (0, 1, 2)]
    for graph, given in (
        (copied, {0: (same := [1, 2]), 1: same}),
        (UOp.sink(UOp.new(Op.Kernel, (copied, *halves[:2]))), {buffer: [1, 2, 3, 4]}),
    ):
        with pytest.raises(IRError, match="one memory"):
            run(graph, given)
    run(UOp.sink(UOp.new(Op.Kernel, (copied, halves[0], halves[2]))), apart := {buffer: [1, 2, 3, 4]})
    assert apart[buffer] == [3, 4, 3, 4]
    read = UOp.sink(param(2, 2, i32).index(r).store(param(0, 2, i32).index(r) + param(1, 2, i32).index(r)).end(r))
    run(read, kept := {0: same, 1: same, 2: [0, 0]})
    assert kept[2] == [2, 4]
