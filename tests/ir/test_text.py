"""Expression text: every op round-trips, text is linear in the graph, and nothing that is no expression gets through."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import morok
from morok.errors import MorokError, ParseError
from morok.ir.dtype import FLOATS, INTS, SCALARS, AddrSpace, dtypes
from morok.ir.expression_parser import parse
from morok.ir.op import REDUCE_OPS, TABLE, AxisType, Op
from morok.ir.text import dump
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.passes.target import KernelInfo

D = dtypes


def buffer(n: int = 0, size: int = 24) -> UOp:
    return UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), n), UOp.new(Op.Device, (), "CPU")), size, D.f32)


def bestiary() -> list[UOp]:
    """At least one node of every op, with every kind of field."""
    x, i, j = UOp.var("x", D.f32), UOp.range(4, 0), UOp.range(6, 1, AxisType.Reduce, True)
    v4 = UOp.var("v", D.f32.vec(4))
    arg = UOp.new(Op.DefineGlobal, (), 0, D.f32.ptr(24))
    local = UOp.new(Op.DefineLocal, (), 1, D.f16.vec(2).ptr(8, AddrSpace.LOCAL))
    reg = UOp.new(Op.DefineReg, (), 2, D.i32.ptr(1, AddrSpace.REG))
    grid = UOp.new(Op.Reshape, (buffer(), UOp.const(4), UOp.const(6)))
    place = arg.index(i * 6 + j)
    gated = arg.index(i, gate=i < 3)
    store = place.store(x)
    lanes = UOp.const((0, 1, 2, 3), D.index)
    n = UOp.var("n", D.index, 1, 8)
    sub, end = (0, 0, 1, 1), (2, 2)
    kernel = UOp.new(Op.Kernel, (UOp.sink(store.end(i, j), info=KernelInfo("k")), buffer(), buffer(1)), "k_4_6")
    one = UOp.const(1)
    nodes = [
        UOp.const(3),
        UOp.const(3, D.i8),
        UOp.const((1, 2), D.u16),
        UOp.invalid_at(),
        UOp.invalid_at(D.index.vec(2)),
        x,
        n,
        v4.cast(D.i32),
        x.cast(D.f8e4m3),
        UOp.const(1.0).bitcast(D.i32),
        UOp.new(Op.Precast, (x,), dtype=D.f16),
        i,
        j,
        UOp.range(n, 5, AxisType.Global, False, (store,)),
        store.end(i),
        x.reduce(Op.Max, i),
        (x + 1.0).reduce(Op.Add, i, j),
        UOp.new(Op.ReduceAxis, (grid,), (Op.Min, (0, 1))),
        UOp.new(Op.Reduce, (v4,), Op.Add, D.f32),
        UOp.new(Op.AllReduce, (buffer(), UOp.new(Op.Device, (), "CPU:1")), Op.Add),
        UOp.new(Op.If, (i < 2, store)),
        UOp.new(Op.EndIf, (UOp.new(Op.If, (i < 2,)),)),
        UOp.new(Op.Special, (UOp.const(64),), "gidx0"),
        buffer(),
        UOp.new(Op.BufferView, (buffer(),), (4, 8), D.f32),
        UOp.new(Op.Bufferize, (place, i, j), (None, AddrSpace.GLOBAL)),
        UOp.new(Op.Bufferize, (place, i, j), ("CPU", AddrSpace.LOCAL)),
        UOp.new(Op.Param, (), 3, D.u8),
        arg,
        local,
        reg,
        place,
        gated,
        grid.index(i, j, gate=i < j),
        arg.index(lanes),
        local.index(i),
        UOp.new(Op.PointerIndex, (arg, one), dtype=D.f32),
        place.load(),
        place.load(D.f32.vec(4)),
        UOp.new(Op.Load, (gated, UOp.const(2.0))),
        UOp.new(Op.Load, (arg.index(i), UOp.const(0.0, D.f32.vec(2))), dtype=D.f32.vec(2)),
        UOp.new(Op.Load, (arg.index(i), UOp.const(0.0)), dtype=D.f32.vec(2)),
        store,
        place.store(UOp.const(0.5)),
        arg.index(i).store(UOp.const(0.5, D.f32.vec(4))),
        UOp.new(Op.Store, (place, x, i, j)),
        UOp.new(Op.Copy, (buffer(), UOp.new(Op.Device, (), "CUDA"))),
        UOp.new(Op.Assign, (buffer(), buffer(1))),
        UOp.new(Op.Bind, (n, UOp.const(5))),
        arg.after(store),
        UOp.new(Op.Barrier, (store, store.end(i))),
        kernel,
        UOp.sink(store),
        UOp.sink(store, info=KernelInfo("name", (Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.NOLOCALS)))),
        UOp.new(Op.Group, (store,)),
        UOp.new(Op.Noop, ()),
        UOp.new(Op.Custom, (x,), 'sin({0}) "quoted"\n', D.f32),
        UOp.new(Op.CustomI, (x, x), "{0}+{1}", D.f32),
        UOp.vectorize(x, x + 1.0, UOp.const(2.0)),
        v4.gep(0),
        v4.gep(3, 3, 0),
        UOp.new(Op.Cat, (v4, v4)),
        UOp.new(Op.PtrCat, (arg.index(i), arg.index(j))),
        UOp.new(Op.Unroll, (lanes,), ((0, 2), (3, 2))),
        UOp.new(Op.Contract, (UOp.new(Op.Unroll, (lanes,), ((0, 4),)),), ((0, 4),)),
        UOp.new(Op.Wmma, (v4, v4, v4), ("16x16x16", (2, 3), 1.5, None, True, D.f16)),
        grid,
        UOp.new(Op.Permute, (grid,), (1, 0)),
        UOp.new(Op.Expand, (grid, UOp.const(4), n)),
        UOp.new(Op.Pad, (grid, *map(UOp.const, sub))),
        UOp.new(Op.Shrink, (grid, one, one, *map(UOp.const, end))),
        UOp.new(Op.Flip, (grid,), (True, False)),
        UOp.new(Op.Iota, (n,)),
        UOp.new(Op.Concat, (grid, UOp.new(Op.Flip, (grid,), (False, True)), grid), 1),
        UOp.new(Op.Contiguous, (grid,)),
        UOp.new(Op.ContiguousBackward, (grid,)),
        UOp.new(Op.Detach, (grid,)),
        UOp.new(Op.Multi, (buffer(), buffer(1)), 0),
        UOp.new(Op.Multi, (buffer(),), None),
        UOp.new(Op.MSelect, (buffer(),), 1),
        UOp.new(Op.MStack, (buffer(), buffer(1))),
    ]
    return nodes


def pointwise() -> list[UOp]:
    out = []
    for entry in TABLE.entries.values():
        if entry.signature is None or entry.op is Op.Cast:
            continue
        for d in entry.signature.domains["T"]:
            for lanes in (1, 4):
                t = d.vec(lanes)
                names = [
                    UOp.var(f"{c}_{t.name}", D.bool if p == "bool" else t)
                    for c, p in zip("abc", entry.signature.params, strict=False)
                ]
                out.append(UOp.new(entry.op, tuple(names)))
                two = UOp.const(True if d.is_bool else 2, t)
                out.append(UOp.new(entry.op, (*names[:-1], two)))
                if entry.op is not Op.Where:
                    out.append(UOp.new(entry.op, (two,) * len(names)))
                else:
                    out.append(UOp.new(entry.op, (UOp.const(True), two, two)))
    return out


def test_every_op_of_the_bestiary_round_trips() -> None:
    nodes = [*bestiary(), *pointwise()]
    assert {n.op for root in nodes for n in root.toposort()} == set(Op)
    for u in nodes:
        text = u.text()
        assert parse(text) is u, text
        assert "`" not in text
        assert pickle.loads(pickle.dumps(u)) is u
        assert u.tree()
    everything = UOp.new(Op.Noop, tuple(nodes))
    assert parse(everything.text()) is everything


@pytest.mark.sampled(4)
@pytest.mark.parametrize("d", SCALARS, ids=lambda d: d.name)
def test_constants_at_every_dtype(d: Any) -> None:
    rng = random.Random(d.name)
    if d.is_bool:
        values: list[Any] = [True, False]
    elif d.is_integral:
        values = [0, 1, -1, 7] + ([d.min, d.max] if d.is_int else [1 << 80, -(1 << 80)])
    else:
        values = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 1e-7, 1e30, 3.0, *[rng.gauss(0, 1) for _ in range(50)]]
        values += [math.ldexp(rng.random(), rng.randint(-1074, 1000)) for _ in range(50)]
    x = UOp.var("x", d)
    for v in values:
        for u in (UOp.const(v, d), UOp.const(v, d.vec(3)), UOp.const((v, values[0], v), d), x.eq(UOp.const(v, d))):
            assert parse(u.text()) is u, u.text()


def test_the_notation_of_the_interfaces() -> None:
    assert parse("Idiv(Add(x: index[0..=31], 3), 4)") is (UOp.var("x", D.index, 0, 31) + 3) // 4
    u = parse("%1 = Mul(x: i32, 3); Add(%1, %1)")
    assert u.src[0] is u.src[1]
    assert u.text() == "%1 = Mul(x: i32, 3); Add(%1, %1)"
    assert parse("Range(8, 0, Loop)") is UOp.range(8, 0)
    assert parse("Const(3, i8)") is UOp.const(3, D.i8)
    assert parse("Add(v: f32x4, 1)") is UOp.var("v", D.f32.vec(4)) + 1.0
    assert parse("Where(p: bool, y: i32, -1)").src[2] is UOp.const(-1, D.i32)
    assert parse("x: index[..=5]") is UOp.var("x", D.index, None, 5)
    assert parse("# a comment\n Add( x:i8 , # here\n x )") is UOp.var("x", D.i8) + UOp.var("x", D.i8)
    assert morok.parse("Neg(x: f64)") is -UOp.var("x", D.f64)
    assert str(UOp.var("x") + 1) == "Add(x: index, 1)"
    assert UOp.const(0.1).text() == "0.1"


def test_variables_of_one_name_stay_apart() -> None:
    a, b = UOp.var("x", D.index, 0, 3), UOp.var("x", D.index, 0, 9)
    u = (a + b) * (b + a)
    assert parse(u.text()) is u
    for name in ("Add", "true", "f32", "nan", "a b", "%1", "", "x.y", "i8x4", "é", "ptr", 'quo"te', "None", "Loop"):
        v = UOp.var(name, D.i32, 0, 3) + 1
        assert parse(v.text()) is v, v.text()


def test_shared_nodes_are_named_once() -> None:
    u = UOp.var("x", D.i32)
    for _ in range(60):
        u = u * u + u
    assert len(u.text()) < 6000
    assert parse(u.text()) is u


def test_tree_of_a_shared_node() -> None:
    x = UOp.var("x", D.i32)
    lines = (x + x * 2).tree().splitlines()
    assert lines == [
        "[0] Add : i32",
        "├─ [1] DefineVar x: i32 : i32",
        "└─ [2] Mul : i32",
        "   ├─ [1] DefineVar -> (same as above)",
        "   └─ [3] Const 2 : i32",
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "the text ends here"),
        ("Add(x: i32,\n  y: i33)", 2, 6, "no dtype i33"),
        ("Add(x: i32, 2.5)", 1, 13, "2.5 is no i32"),
        ("Add(x: i8, 300)", 1, 12, "does not fit i8"),
        ("Add(x: i32, y: f32)", 1, 1, "operands of one dtype"),
        ("Adds(x: i32)", 1, 1, "did you mean Add"),
        ("Add(x, x)", 1, 5, "write `x: index`"),
        ("Add(%1, 2)", 1, 5, "%1 is not defined"),
        ("%1 = 3; %1 = 4; %1", 1, 9, "defined twice"),
        ("Add(x: i32, 1", 1, 14, "the text ends here"),
        ("x: i32 y", 1, 8, "unexpected"),
        ("Add(x: i32, 1) // 2", 1, 16, "hint: an operation is written as an op"),
        ("Add(-x, 1)", 1, 5, "hint: an operation is written as an op"),
        ("Add(x: i32; 1)", 1, 11, "expected: `)`, `,`"),
        ("Add(x: i32, 1) $", 1, 16, "unexpected '$'"),
        ("Const(x: i32, i8)", 1, 1, "a number, true or false"),
        ("Const(1, i8x99999999)", 1, 10, "lanes"),
        ("Gep(x: f32x4, [9])", 1, 1, "lanes in 0..4"),
        ("Gep(x: f32x4, 1)", 1, 1, "a tuple of ints"),
        ("Range(4, 0, Sideways)", 1, 13, "Sideways"),
        ("Range(4, 0)", 1, 1, "takes (end"),
        ("Range(4)", 1, 1, "axis missing"),
        ("Range(4, 0, Loop, colour=3)", 1, 19, "no field colour"),
        ("Index(x: f32, gate=1, 3)", 1, 1, "after gate="),
        ("Load(3)", 1, 1, "expected a place"),
        ("Cast(x: i32, 7)", 1, 1, "a dtype"),
        ("Cast()", 1, 1, "an operand and a dtype"),
        ("x: ptr(f32, 3, attic)", 1, 16, "no address space"),
        ("x: i32[5..=2]", 1, 1, "bounds of x"),
        ("Add: i32", 1, 1, "is an op"),
        ("true: i32", 1, 1, "is reserved"),
        ("9" * 5000, 1, 1, "too long"),
        ("Add(x: i32,\0 1)", 1, 12, "NUL"),
        ("\"text\"", 1, 1, "no operand"),
        ("[1, 2]", 1, 1, "no operand"),
        ("Sink(info=KernelInfo(nme=3))", 1, 11, "nme"),
        ("Custom(x: f32, \"a\\q\"): f32", 1, 16, "not a string"),
        ("Unroll(x: f32x4, [[0, 0]])", 1, 1, "each axis once"),
    ],
)  # fmt: skip
def test_mistakes_have_a_place(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, "here")
    error = caught.value
    assert error.place is not None
    assert (error.place.file, error.place.line, error.place.column) == ("here", line, column)
    assert said in str(error)
    assert error.excerpt.splitlines()[-1].strip() == "^"


def test_what_is_no_text() -> None:
    for wrong in (None, 3, b"x: i32"):
        with pytest.raises(ParseError):
            parse(wrong)  # type: ignore[arg-type]


PIECES = [
    "Add",
    "Mul",
    "Range",
    "Where",
    "Gep",
    "Cast",
    "Const",
    "Index",
    "Sink",
    "Load",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    ";",
    "=",
    "%1",
    "%",
    "x",
    "i32",
    "f32x4",
    "ptr",
    "..=",
    "1",
    "-2",
    "2.5",
    "nan",
    "inf",
    "true",
    "Loop",
    "gate",
    '"s"',
    " ",
    "\n",
    "#",
    "\0",
    "é",
    "\\",
    "KernelInfo",
    "None",
    "`",
]


_BYTES = st.binary(max_size=40).map(lambda b: b.decode("latin-1"))


@pytest.mark.long
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
        _BYTES,
    )
)
def test_garbage_never_crashes(text: str) -> None:
    try:
        u = parse(text)
    except MorokError:
        return
    assert parse(dump(u)) is u


@pytest.mark.long
@given(st.data())
def test_damaged_text_never_crashes(data: Any) -> None:
    text = data.draw(st.sampled_from(_TEXTS))
    at = data.draw(st.integers(0, len(text)))
    piece = data.draw(st.sampled_from([*PIECES, ""]))
    cut = data.draw(st.integers(0, 4))
    try:
        u = parse(text[:at] + piece + text[at + cut :])
    except MorokError:
        return
    assert parse(dump(u)) is u


_TEXTS = [u.text() for u in bestiary()]


@pytest.mark.long
def test_deep_brackets() -> None:
    depth = 50_000
    with pytest.raises(ParseError):
        parse("(" * depth)
    with pytest.raises(ParseError):
        parse("Neg(" * depth)
    with pytest.raises(ParseError, match="nest too deep"):
        parse("[" * 1_000_001)
    assert parse("Neg(" * depth + "x: f32" + ")" * depth).op is Op.Neg


@st.composite
def graphs(draw: Any) -> UOp:
    """Random graphs of pointwise ops over several dtypes, with sharing, vectors and constants."""
    pool: list[UOp] = [UOp.var("p", D.bool), UOp.var("q", D.f32.vec(2))]
    for d in (*INTS[:3], D.index, *FLOATS[2:]):
        pool += [UOp.var(f"v_{d.name}", d), UOp.const(draw(st.integers(-100, 100)), d)]
    entries = [e for e in TABLE.entries.values() if e.signature is not None and e.op is not Op.Cast]
    for _ in range(draw(st.integers(1, 12))):
        entry = draw(st.sampled_from(entries))
        a = draw(st.sampled_from(pool))
        same = [u for u in pool if u.dtype is a.dtype]
        operands = tuple(draw(st.sampled_from(same)) for _ in range(len(entry.signature.params)))
        if entry.op is Op.Where:
            operands = (draw(st.sampled_from([u for u in pool if u.dtype is D.bool])), *operands[1:])
        try:
            pool.append(UOp.new(entry.op, operands))
        except MorokError:
            pool.append(a.reduce(draw(st.sampled_from(REDUCE_OPS)), UOp.range(draw(st.integers(0, 9)), 0)))
    return UOp.new(Op.Group, tuple(pool[-4:]))


@pytest.mark.long
@given(graphs())
def test_random_graphs_round_trip(u: UOp) -> None:
    assert parse(u.text()) is u
    assert pickle.loads(pickle.dumps(u)) is u


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Add(x: i32, Add(3, 4))", "Add(x: i32, Add(Const(3, i32), Const(4, i32)))"),
        ("Add(Neg(Mul(3, 4)), x: i8)", "Add(Neg(Mul(Const(3, i8), Const(4, i8))), x: i8)"),
        ("Mul(x: f32, Add(1, 2.5))", "Mul(x: f32, Add(Const(1.0, f32), Const(2.5, f32)))"),
        ("Add(v: f32x4, Max(1, 2))", "Add(v: f32x4, Max(Const(1.0, f32x4), Const(2.0, f32x4)))"),
        ("And(p: bool, Xor(true, false))", "And(p: bool, Xor(Const(true, bool), Const(false, bool)))"),
        ("Where(p: bool, Add(1, 2), x: u8)", "Where(p: bool, Add(Const(1, u8), Const(2, u8)), x: u8)"),
        ("Lt(Sub(3, 4), x: i64)", "Lt(Sub(Const(3, i64), Const(4, i64)), x: i64)"),
        ("Add(3, Add(4, 5))", "Add(Const(3, index), Add(Const(4, index), Const(5, index)))"),
        ("Add(x: index, Where(Lt(3, 4), 1, 2))", "Add(x: index, Where(Lt(Const(3, index), Const(4, index)), 1, 2))"),
    ],
)
def test_ops_of_constants_take_the_dtype_of_their_position(text: str, meant: str) -> None:
    u = morok.parse(text)
    assert u is morok.parse(meant)
    assert morok.parse(u.text()) is u


def test_ops_of_constants_that_fit_no_position() -> None:
    for text, said in (
        ("Add(x: i8, Add(3, 400))", "400 does not fit i8"),
        ("Add(x: i32, Add(3, 2.5))", "2.5 is no i32"),
    ):
        with pytest.raises(ParseError, match=said):
            morok.parse(text)
    deep = "Neg(" * 900 + "1" + ")" * 900
    assert morok.parse(f"Add(x: i16, {deep})").src[1].dtype is dtypes.i16
