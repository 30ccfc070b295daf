"""The node: identity, immutability, release, errors, walks over deep and shared graphs, provenance."""

from __future__ import annotations

import gc
import math
import pickle
import sys
import threading
from pathlib import Path

import pytest

import morok.ir
from morok.errors import IRTypeError
from morok.ir import provenance
from morok.ir.cell import NO_FACTS, facts_of
from morok.ir.dtype import dtypes
from morok.ir.expression_parser import parse
from morok.ir.interpret import evaluate
from morok.ir.maker import maker
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.pickling import Row, restore
from morok.ir.uop import UOp, came_from, vconst

D = dtypes
DEEP = 100_000


def test_operands_and_identity() -> None:
    a, b = UOp.var("a"), UOp.var("b")
    assert UOp.add(a, b).src == (a, b)
    assert a + b is a + b
    assert a + b is UOp.new(Op.Add, (a, b))
    assert a + b is not b + a
    assert a + b is (a + b).replace((a, b))
    assert (a * 2).replace((b, UOp.const(2))) is b * 2
    assert UOp.var("a") is a
    assert UOp.var("a", D.index, 0, 3) is not a


def test_python_notation() -> None:
    x, f, p = UOp.var("x", D.i32), UOp.var("f", D.f32), UOp.var("p", D.bool)
    seven = x.like(7)
    for made, op, src in (
        (x + 7, Op.Add, (x, seven)),
        (7 + x, Op.Add, (seven, x)),
        (x - 7, Op.Sub, (x, seven)),
        (7 - x, Op.Sub, (seven, x)),
        (x * 7, Op.Mul, (x, seven)),
        (7 * x, Op.Mul, (seven, x)),
        (x // 7, Op.Idiv, (x, seven)),
        (7 // x, Op.Idiv, (seven, x)),
        (x % 7, Op.Mod, (x, seven)),
        (7 % x, Op.Mod, (seven, x)),
        (x & 7, Op.And, (x, seven)),
        (7 | x, Op.Or, (seven, x)),
        (7 ^ x, Op.Xor, (seven, x)),
        (x << 7, Op.Shl, (x, seven)),
        (7 >> x, Op.Shr, (seven, x)),
        (x < 7, Op.Lt, (x, seven)),
        (x > 7, Op.Gt, (x, seven)),
        (x >= 7, Op.Ge, (x, seven)),
        (x <= 7, Op.Le, (x, seven)),
        (x.eq(7), Op.Eq, (x, seven)),
        (f / 2, Op.Fdiv, (f, f.like(2))),
        (1 / f, Op.Fdiv, (f.like(1), f)),
        (-f, Op.Neg, (f,)),
        (~p, Op.Not, (p,)),
        (x.idiv(7), Op.Idiv, (x, seven)),
        (x.max(7), Op.Max, (x, seven)),
        (f.exp2(), Op.Exp2, (f,)),
        (p.where(x, seven), Op.Where, (p, x, seven)),
    ):
        assert (made.op, made.src) == (op, src)


def test_nodes_are_immutable() -> None:
    u = UOp.var("a") + 1
    for name in ("op", "dtype", "src", "arg", "vmin", "extra"):
        with pytest.raises(AttributeError):
            setattr(u, name, None)
    with pytest.raises(AttributeError):
        del u.src


def test_constants_are_keyed_by_type_and_bits() -> None:
    values = [
        UOp.const(True), UOp.const(1), UOp.const(1.0), UOp.const(1, D.i32), UOp.const(1, D.u32), UOp.const(1.0, D.f64),
        UOp.const(0.0), UOp.const(-0.0), UOp.const(False), UOp.const(0), UOp.const(math.nan), UOp.const(math.inf),
    ]  # fmt: skip
    assert len({id(v) for v in values}) == len(values)
    assert UOp.const(math.nan) is UOp.const(-math.nan)
    assert math.copysign(1.0, UOp.const(-0.0).arg) == -1.0
    assert UOp.const((0.0, -0.0), D.f32) is not UOp.const((0.0, 0.0), D.f32)
    assert UOp.const((2, 2, 2), D.i32) is UOp.const(2, D.i32.vec(3))
    assert UOp.const((1, 2)).dtype is D.index.vec(2)


def test_every_field_is_part_of_the_identity() -> None:
    d = D.f32.ptr(1)
    assert UOp.new(Op.DefineReg, (), 0, d) is not UOp.new(Op.DefineReg, (), 1, d)
    x = UOp.const(1.0, D.f32.vec(2))
    assert UOp.range(4, 0) is not UOp.range(4, 1)
    assert UOp.range(4, 0) is not UOp.range(4, 0, AxisType.Reduce)
    assert UOp.range(4, 0) is not UOp.range(4, 0, renumbered=True)
    assert x.gep(0) is not x.gep(1)
    sources = parse('Buffer(Unique(0), Device("CPU"), 16): f32'), parse('Buffer(Unique(1), Device("CPU"), 16): f32')
    assert sources[0] is not sources[1]
    # True == 1 in Python, and means another argument here
    shape = UOp.new(Op.Reshape, (sources[0], UOp.const(4), UOp.const(4)))
    assert UOp.new(Op.Flip, (shape,), (True, False)).arg == (True, False)
    with pytest.raises(IRTypeError):
        UOp.new(Op.Flip, (shape,), (1, 0))


def test_constants_wrap_and_round() -> None:
    assert UOp.const(300, D.u8).arg == 44
    assert UOp.const(-1, D.u16).arg == 65535
    assert UOp.const(0.1).arg != 0.1
    assert UOp.const(0.1) is UOp.const(UOp.const(0.1).arg)
    assert UOp.const(1e300).arg == math.inf
    assert UOp.const(2**24 + 1, D.f32).arg == 2.0**24
    assert UOp.const(3.0, D.i32).arg == 3
    for value, d in (("x", D.i32), (math.nan, D.i8), (2.5, D.i8), (math.inf, D.index), (None, D.f32), (1, D.void)):
        with pytest.raises(IRTypeError):
            UOp.const(value, d)
    with pytest.raises(IRTypeError):
        vconst(D.f32, [])


def test_an_address_is_not_converted() -> None:
    place = UOp.new(Op.DefineGlobal, (), 0, D.f32.ptr(8)).index(UOp.const(3))
    converted = UOp.new(Op.Cast, (place,), dtype=D.i32)
    for wrong in (lambda: converted.load(), lambda: converted.store(UOp.const(1, D.i32))):
        with pytest.raises(IRTypeError, match="a place"):
            wrong()


def test_errors_name_the_callers_line() -> None:
    with pytest.raises(IRTypeError) as caught:
        UOp.load(UOp.const(1))
    place = caught.value.place
    assert place is not None
    assert place.file == __file__
    assert "UOp.load(UOp.const(1))" in Path(__file__).read_text().splitlines()[place.line - 1]
    assert "expected a place" in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: UOp.var("a", D.i32) + UOp.var("b", D.f32),
        lambda: UOp.new(Op.Add, (UOp.const(1),)),
        lambda: UOp.new(Op.And, (UOp.const(1.0), UOp.const(1.0))),
        lambda: UOp.new(Op.Where, (UOp.const(1), UOp.const(1), UOp.const(1))),
        lambda: UOp.new(Op.Add, (UOp.const(True), UOp.const(True))),
        lambda: UOp.const(1.0, D.f32.vec(2)).gep(2),
        lambda: UOp.const(1.0).bitcast(D.i64),
        lambda: UOp.const(1.0, D.f32.vec(2)).cast(D.i32.vec(3)),
        lambda: UOp.const(1.0).cast(D.void),
        lambda: UOp.new(Op.Reduce, (UOp.const(1.0), UOp.range(3, 0)), Op.Sub),
        lambda: UOp.range(UOp.const(1.0), 0),
        lambda: UOp.vectorize(UOp.const(1.0), UOp.const(1)),
        lambda: UOp.new(Op.Range, (UOp.const(3),), (0, "Loop", False)),
        lambda: UOp.new(Op.Permute, (UOp.const(1.0),), (1, 1)),
        lambda: UOp.sink(UOp.const(1), info=[1]),
        lambda: UOp.var("a", D.i8, 0, 300),
        lambda: UOp.var("a", D.index, 3, 2),
        lambda: UOp.var("a", D.f32, 0, 1),
        lambda: UOp.new(Op.Bind, (UOp.var("n", D.index, 1, 8), UOp.const(9))),
        lambda: UOp.new(Op.Sink, (), None).store(UOp.const(1)),
    ],
)
def test_wrong_operands_raise(wrong) -> None:
    with pytest.raises(IRTypeError):
        wrong()


def test_truth_is_not_guessed() -> None:
    with pytest.raises(TypeError, match="not known at compile time"):
        bool(UOp.var("a") < 3)
    assert bool(UOp.const(True))


def test_threads_build_the_same_objects() -> None:
    start = threading.Barrier(8)
    found: list[list[UOp]] = [[] for _ in range(8)]

    def build(k: int) -> None:
        start.wait()
        x = UOp.var("threads", D.i32)
        for n in range(1000):
            found[k].append((x + n) * (x - n))

    threads = [threading.Thread(target=build, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for other in found[1:]:
        assert all(a is b for a, b in zip(found[0], other, strict=True))
    assert len({id(u) for u in found[0]}) == 1000
    assert len({u.serial for f in found for u in f}) == 1000


def test_threads_that_remember_a_first_fact_share_one_dict() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for k in range(200):
            node = UOp.new(Op.Vectorize, (UOp.var(f"fact{k}", D.i32), UOp.var("y", D.i32)))
            assert node.memo is NO_FACTS
            ready = threading.Barrier(4)
            found: list[dict[object, object]] = []

            def remember(name: int, node: UOp = node, ready: threading.Barrier = ready, found: list = found) -> None:
                ready.wait()
                facts_of(node)[name] = name
                found.append(facts_of(node))

            threads = [threading.Thread(target=remember, args=(t,)) for t in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert all(f is node.memo for f in found)
            assert set(node.memo) == {0, 1, 2, 3}
    finally:
        sys.setswitchinterval(interval)


def test_what_nodes_without_facts_share_is_not_written() -> None:
    node = UOp.new(Op.Vectorize, (UOp.var("x", D.i32), UOp.var("z", D.i32)))
    with pytest.raises(TypeError):
        node.memo["fact"] = 1  # type: ignore[index]
    assert not NO_FACTS
    assert facts_of(node) is not facts_of(UOp.new(Op.Vectorize, node.src[::-1]))


@pytest.mark.long
def test_threads_that_drop_and_rebuild() -> None:
    problems: list[BaseException] = []

    def churn() -> None:
        x = UOp.var("churn", D.i32)
        try:
            for _ in range(200):
                for n in range(50):
                    u = x + n
                    assert u is x + n
                    assert u.src[1].arg == n
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


@pytest.mark.long
def test_dropped_nodes_leave_the_cache() -> None:
    gc.collect()
    before = morok.ir.live()
    nodes = [UOp.const(n + 0.5, D.f64) for n in range(10_000)]
    assert morok.ir.live() >= before + 9_990
    del nodes
    assert morok.ir.live() <= before + 5


def test_dropped_nodes_need_no_garbage_collector() -> None:
    """What is remembered about a node (ranges, shape) makes no cycle through it."""
    gc.collect()
    gc.disable()
    try:
        before = morok.ir.live()
        for n in range(100):
            r = UOp.range(n + 1000, 77)
            u = (r * 3 + n).reduce(Op.Add, r)
            assert u.ranges == frozenset()
            assert r.ranges == {r}
            assert u.shape == ()
        del r, u
        assert morok.ir.live() <= before + 5
    finally:
        gc.enable()


def test_origins_keep_no_graph_alive() -> None:
    before = morok.ir.live()
    u = UOp.var("kept", D.i32) * 1234
    for n in range(50):
        maker.origin = provenance.rewritten(u.origin, "4", f"group.rule{n}")
        try:
            u = UOp.var("kept", D.i32) * (5000 + n)
        finally:
            maker.origin = None
    assert morok.ir.live() <= before + 4


def chain(n: int) -> UOp:
    u = UOp.var("chain", D.i32)
    for k in range(n):
        u = u + (k % 5)
    return u


@pytest.mark.long
def test_a_chain_of_100_000() -> None:
    u = chain(DEEP)
    assert len(u.toposort()) == DEEP + 6
    other = u.substitute({UOp.var("chain", D.i32): UOp.var("link", D.i32)})
    assert other is not u
    assert other.substitute({UOp.var("link", D.i32): UOp.var("chain", D.i32)}) is u
    text = u.text()
    assert parse(text) is u
    assert len(u.tree().splitlines()) > DEEP
    assert pickle.loads(pickle.dumps(u)) is u
    assert evaluate(u, {"chain": 0}) == 2 * DEEP
    assert u.ranges == frozenset()
    assert u.shape == ()
    assert repr(u) == text
    del other, text


@pytest.mark.long
def test_a_deep_chain_is_released() -> None:
    gc.collect()
    before = morok.ir.live()
    u = UOp.var("released", D.i32)
    for k in range(DEEP):
        u = u * 3 + k % 3
    del u
    gc.collect()
    assert morok.ir.live() <= before + 5


def test_a_diamond_of_twenty_levels() -> None:
    x, y = UOp.var("x", D.i32), UOp.var("y", D.i32)
    u = x
    for _ in range(20):
        u = u + u
    before = UOp.const(0.123, D.f64).serial
    v = u.substitute({x: y})
    assert UOp.const(0.456, D.f64).serial - before <= 21  # a new node a level, none a path
    assert len(v.toposort()) == 21
    assert evaluate(v, {"y": 1}) == 1 << 20
    assert len(u.text()) < 1000
    assert len(u.tree().splitlines()) == 41


def test_substitution_is_simultaneous() -> None:
    x, y = UOp.var("x"), UOp.var("y")
    assert (x + y * 2).substitute({x: y, y: x}) is y + x * 2
    assert (x + 1).substitute({x: x + 1}) is x + 1 + 1
    assert x.substitute({x: y}) is y
    assert (x + y).substitute({}) is x + y


def test_ranges_close() -> None:
    i, j, r = UOp.range(4, 0), UOp.range(5, 1), UOp.range(6, 2, AxisType.Reduce)
    buffer = UOp.new(Op.DefineGlobal, (), 0, D.f32.ptr(120))
    body = buffer.index(i * 30 + j * 6 + r)
    assert body.ranges == {i, j, r}
    total = body.reduce(Op.Add, r)
    assert total.ranges == {i, j}
    store = buffer.index(i * 5 + j).store(total)
    assert store.ranges == {i, j}
    assert UOp.new(Op.Store, (buffer.index(i * 5 + j), total, i, j)).ranges == frozenset()
    assert store.end(j).ranges == {i}
    assert UOp.sink(store.end(j).end(i)).ranges == frozenset()
    n = UOp.range(i + 1, 7)
    assert n.ranges == {i, n}
    held = UOp.new(Op.Bufferize, (total, i, j), (None, morok.ir.dtype.AddrSpace.GLOBAL))
    assert held.ranges == frozenset()


def test_shapes() -> None:
    n = UOp.var("n", D.index, 1, 8)
    base = parse('Buffer(Unique(0), Device("CPU"), 32): f32')
    grid = UOp.new(Op.Reshape, (base, n, UOp.const(4)))
    assert grid.shape == (n, 4)
    assert UOp.new(Op.ReduceAxis, (grid,), (Op.Add, (1,))).shape == (n,)
    assert (grid + grid).shape == (n, 4)
    assert (grid * 2.0).shape == (n, 4)
    assert UOp.new(Op.Permute, (grid,), (1, 0)).shape == (4, n)
    padded = UOp.new(Op.Pad, (grid, UOp.const(0), UOp.const(1), UOp.const(0), UOp.const(2)))
    assert padded.shape[1] == 7
    assert UOp.const(1.0).shape == ()


def test_provenance_names_the_line() -> None:
    x = UOp.var("provenance")
    u = x + 17
    (line,) = u.provenance()
    assert line.startswith(f"{__file__}:")
    assert line.endswith("`x + 17`")
    maker.origin = provenance.rewritten(u.origin, "4", "identity.example")
    try:
        v = x * 17
    finally:
        maker.origin = None
    assert v.provenance() == [line, "stage 4 rule `identity.example`"]
    came_from(x, provenance.rewritten(u.origin, "4", "identity.add_zero"))
    assert x.provenance() == [line, "stage 4 rule `identity.add_zero`"]


def test_provenance_does_not_grow_without_end() -> None:
    origin = UOp.var("long").origin
    for _ in range(1000):
        origin = provenance.rewritten(origin, "", "a.b")
    steps = provenance.describe(origin)
    assert len(steps) == provenance.LONGEST + 1
    assert steps[-1] == "rule `a.b`"
    assert provenance.place(origin) is not None


def test_fields_by_name() -> None:
    r = UOp.range(4, 3, AxisType.Reduce)
    assert (r.field("id"), r.field("axis"), r.field("renumbered"), r.field("dtype")) == (
        3,
        AxisType.Reduce,
        False,
        D.index,
    )
    with pytest.raises(AttributeError, match="no field"):
        r.field("op")


def test_the_table_is_whole() -> None:
    assert len(list(Op)) >= 80
    assert set(TABLE.entries) == set(Op)
    for entry in TABLE.entries.values():
        assert (entry.signature is None) != (entry.typing is None) or entry.op is Op.Cast, entry.op
        if entry.pointwise:
            assert entry.evaluate is not None
            assert entry.solver
        assert sum(1 for o in entry.operands if o.optional) <= 1


@pytest.mark.parametrize(
    ("node", "other"),
    [
        (UOp.var("i", dtypes.i32).bitcast(dtypes.f32), UOp.var("u", dtypes.u32)),
        (UOp.new(Op.Precast, (UOp.var("i", dtypes.i32),), dtype=dtypes.f32), UOp.var("u", dtypes.u32)),
        (UOp.new(Op.Custom, (UOp.var("i", dtypes.i32),), "f", dtypes.f32), UOp.var("h", dtypes.f16)),
        (UOp.new(Op.CustomI, (UOp.var("i", dtypes.i32),), "f", dtypes.f32), UOp.var("h", dtypes.f16)),
    ],
)
def test_a_dtype_that_its_maker_says_stays_with_other_operands(node: UOp, other: UOp) -> None:
    replaced = node.replace((other,))
    assert replaced.dtype is dtypes.f32
    assert replaced.src == (other,)
    assert replaced is UOp.new(node.op, (other,), node.arg, dtypes.f32)


def test_a_pointer_into_another_buffer_keeps_its_dtype() -> None:
    p, q = (UOp.new(Op.DefineGlobal, (), n, dtypes.f32.ptr(8 * n + 8)) for n in range(2))
    at = UOp.new(Op.PointerIndex, (p, UOp.var("i")), dtype=p.dtype)
    assert at.replace((q, at.src[1])).dtype is p.dtype


def test_replaced_operands_are_checked() -> None:
    bits = UOp.var("i", dtypes.i32).bitcast(dtypes.f32)
    with pytest.raises(IRTypeError, match="a dtype of 64 bits"):
        bits.replace((UOp.var("d", dtypes.f64),))
    with pytest.raises(IRTypeError, match="operands"):
        bits.replace(())


def test_a_size_has_no_axes() -> None:
    """A tensor of one element is none: an op that works on it element by element has its axes."""
    one = UOp.const(1)
    for size in (UOp.const(2), UOp.var("n", dtypes.index, 0, 4), UOp.new(Op.Reshape, (UOp.const(2),))):
        assert UOp.new(Op.Iota, (size,)).shape == (size.arg if size.op is Op.Const else size,)
    for size in (UOp.new(Op.Reshape, (UOp.const(2), one)), UOp.new(Op.Reshape, (UOp.const(2), one, one)) + 1):
        with pytest.raises(IRTypeError, match="an end without axes"):
            UOp.new(Op.Iota, (size,))
        with pytest.raises(IRTypeError, match="sizes without axes"):
            UOp.new(Op.Expand, (UOp.new(Op.Reshape, (one, one)), size))


@pytest.mark.parametrize(
    "row",
    [
        (Op.Add, D.f32, (0, 0), None),
        (Op.Add, D.i32, (0, 1), None),
        (Op.Add, D.i32, (0,), None),
        (Op.Lt, D.i32, (0, 0), None),
        (Op.AllReduce, D.i32, (0, 2), None),
    ],
    ids=["of another dtype", "over two dtypes", "of one operand", "a comparison", "without its op"],
)
def test_a_pickle_that_makes_no_graph_is_an_error(row: Row) -> None:
    """Rules rely on the types of nodes, and a pickle may be damaged, or written by hand."""
    leaves = (UOp.var("x", D.i32, 0, 9), UOp.var("f", D.f32), UOp.const(1, D.i32))
    rows: list[Row] = [(u.op, u.dtype, (), u.arg) for u in leaves]
    assert restore(rows) is UOp.const(1, D.i32)
    with pytest.raises(IRTypeError):
        restore([*rows, row])
