"""Rules about numbers, on graphs of tensors: what they leave has the same elements, and as many."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import morok
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.shape import has_shape, is_number, may_have_axes, same_axes
from morok.ir.uop import UOp
from morok.prove.parametric import tensor_rules

INDEX = dtypes.index


def tensor(slot: int, *shape: int, dtype=dtypes.i32) -> UOp:
    size = 1
    for n in shape:
        size *= n
    buffer = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), slot), UOp.new(Op.Device, (), "CPU")), size, dtype)
    return UOp.new(Op.Reshape, (buffer, *[UOp.const(n, INDEX) for n in shape]))


def value(graph: UOp):
    buffers = {n: [(7 * i + n.src[0].arg) % 5 - 2 for i in range(n.arg)] for n in graph.toposort() if n.op is Op.Buffer}
    return interpret.tensor(graph, buffers)


def summed(x: UOp) -> UOp:
    return UOp.new(Op.ReduceAxis, (x,), (Op.Add, (0,)))


T = tensor(1, 4)
N = tensor(2, 4, dtype=dtypes.bool)
I = UOp.new(Op.Iota, (UOp.const(5, INDEX),), None)  # noqa: E741


@pytest.mark.parametrize(
    "graph",
    [
        T - T,
        T * 0,
        UOp.new(Op.Cast, (T.eq(T),), dtype=dtypes.i32),
        summed(UOp.new(Op.Cast, (T.eq(T),), dtype=dtypes.i32)),
        summed((T - T) + 1),
        UOp.new(Op.Concat, (T - T, T), 0),
        UOp.new(Op.Pad, (T * 0, UOp.const(1, INDEX), UOp.const(1, INDEX))),
        summed(UOp.new(Op.Where, (N | UOp.const(True), UOp.const(3, dtypes.i32), UOp.const(4, dtypes.i32)))),
        summed(I - I + 2),
        summed(I * 3 - I * 3 + 1),
    ],
    ids=lambda g: g.text().partition("; ")[2] or g.text(),
)
def test_what_is_simplified_is_as_large(graph: UOp) -> None:
    assert value(morok.simplify(graph)) == value(graph)


PARAM = UOp.new(Op.Param, (), 0, dtypes.i32)
LOOP = UOp.range(3, 0)
BUFFERIZED = UOp.new(Op.Bufferize, (UOp.new(Op.Cast, (LOOP,), dtype=dtypes.i32), LOOP), ("CPU", AddrSpace.GLOBAL))


@pytest.mark.parametrize("x", [PARAM, BUFFERIZED, -PARAM, UOp.new(Op.Detach, (BUFFERIZED,))], ids=lambda x: x.op.name)
def test_what_no_graph_counts_keeps_its_elements(x: UOp) -> None:
    """The elements of a parameter, or of what is stored of a loop's iterations, are as many as they are."""
    for graph in (x - x, x * 0, (x + 0) * 1, UOp.new(Op.Max, (x, x))):
        assert interpret.tensor(morok.simplify(graph), {PARAM: [3, 4, 5]}) == interpret.tensor(
            graph, {PARAM: [3, 4, 5]}
        )
        assert not has_shape(graph)
    assert morok.simplify((x + 0) * 1) is morok.simplify(x) is morok.simplify(UOp.new(Op.Neg, (-x,)))


def test_a_number_that_serves_all_elements_is_simplified() -> None:
    x = UOp.var("x", dtypes.i32)
    assert morok.simplify(T + (x - x)) is T
    assert morok.simplify(summed((x - x) + 1 + T)) is summed(T + 1)
    assert morok.simplify((T + 0) * 1) is T


MARKED = """
group marked "rules about numbers behind marks, which are read as numbers"

stored: Contiguous(Mul(x: i32, 0)) ~> 0
detached: Detach(Sub(x: i32, x)) ~> 0
added: Add(Detach(Sub(x: i32, x)), y) ~> y
chosen: Where(Eq(x: i32, x), y: f32, z) ~> y
"""


def test_rules_of_users_keep_the_axes_of_tensors(tmp_path: Path) -> None:
    file = tmp_path / "marked.rules"
    file.write_text(MARKED)
    rules = morok.load_rules(file)
    zeros, none = UOp.new(Op.Contiguous, (T * 0,), ()), UOp.new(Op.Detach, (T - T,))
    one, two = (UOp.const(v, dtypes.f32) for v in (1.0, 2.0))
    for graph in (zeros, none, none + 1, UOp.new(Op.Where, (T.eq(T), one, two))):
        assert value(morok.rewrite(summed(graph), rules)) == value(summed(graph))
    assert morok.rewrite(none + T, rules) is T
    x = UOp.var("x", dtypes.i32)
    assert morok.rewrite(UOp.new(Op.Detach, (x - x,)), rules) is UOp.const(0, dtypes.i32)


NAMED = """
group named "rules at numbers that name ops of axes"

guarded: Sub(x: i32 x 1, x) if is_pow2(4) or rank(Iota(4)) == 1 ~> zero(x)
listed: Mul[x: i32 x 1, @zero] if all(rank(Iota(4)) == 2 for k in 0..0) ~> 0
beside: Add(Where(@true, @zero, x: i32), e @ Index(Flip { src: _b: i32, axes: _a }, _is..: index)) ~> e
"""


def test_a_rule_at_numbers_keeps_the_axes_of_tensors_whatever_it_names(tmp_path: Path) -> None:
    file = tmp_path / "named.rules"
    file.write_text(NAMED)
    rules = morok.load_rules(file)
    read = UOp.new(Op.Index, (UOp.new(Op.Flip, (tensor(3, 2),), (True,)), UOp.const(0, INDEX)), False)
    nothing = UOp.new(Op.Where, (UOp.const(True), UOp.const(0, dtypes.i32), T))
    for graph in (T - T, T * 0, nothing + read):
        assert value(morok.rewrite(summed(graph), rules)) == value(summed(graph))
    x = UOp.var("x", dtypes.i32)
    assert morok.rewrite(x - x, rules) is UOp.const(0, dtypes.i32)


def test_a_value_on_several_devices_stays_on_as_many() -> None:
    """An AllReduce folds as many values as there are devices."""
    devices = [UOp.new(Op.Device, (), name) for name in ("CPU", "CPU:1")]
    parts = [UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), i), d), 1, dtypes.i32) for i, d in enumerate(devices)]
    one, several = UOp.const(1, dtypes.i32), UOp.new(Op.MStack, tuple(parts))
    number = UOp.new(Op.Reshape, (several,))
    row = UOp.new(Op.Reshape, (one, UOp.const(1, INDEX)))
    for x in (
        UOp.new(Op.Where, (number.eq(number), one, number)),
        UOp.new(Op.Where, (UOp.const(True), row, several)),
        number - number + 1,
    ):
        for graph in (x, UOp.new(Op.AllReduce, (x, devices[0]), Op.Add)):
            total = UOp.new(Op.AllReduce, (graph, devices[0]), Op.Add)
            assert value(morok.simplify(total)) == value(total)
    assert morok.simplify(number + 0) is number


def test_what_certainly_has_no_axes_is_a_number() -> None:
    x = UOp.var("x", dtypes.i32)
    parts = tuple(UOp.new(Op.Add, (x, UOp.const(k, dtypes.i32))) for k in range(2))
    stack = UOp.new(Op.MStack, parts)
    number = UOp.const(1, dtypes.i32)
    for node in (x, stack, stack + 1, PARAM, PARAM + x, T, T + x, T + T, summed(T), number):
        assert is_number(node) or may_have_axes(node.op, node.src), node.text()
    assert not same_axes(stack + 1, number)
    assert not same_axes(PARAM + x, number)
    assert same_axes(x + 1, number)


@st.composite
def elementwise(draw: st.DrawFn, depth: int = 3) -> UOp:
    """An expression over tensors of one shape, and numbers, that has much to cancel."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([T, T, tensor(3, 4), UOp.const(0, dtypes.i32), UOp.const(1, dtypes.i32)]))
    a, b = draw(elementwise(depth - 1)), draw(elementwise(depth - 1))
    op = draw(st.sampled_from([Op.Add, Op.Sub, Op.Mul, Op.Max, Op.Min, Op.Xor]))
    made = UOp.new(op, (a, draw(st.sampled_from([a, b, b]))))
    return UOp.new(Op.Where, (a.eq(b), made, a)) if draw(st.integers(0, 3)) == 0 else made


@pytest.mark.long
@given(elementwise(), st.sampled_from(["", "sum", "pad", "concat"]))
def test_random_expressions_keep_their_elements(e: UOp, above: str) -> None:
    if not any(n.op is Op.Buffer for n in e.toposort()):
        e = e + T
    if above == "sum":
        e = summed(e)
    elif above == "pad":
        e = UOp.new(Op.Pad, (e, UOp.const(1, INDEX), UOp.const(0, INDEX)))
    elif above == "concat":
        e = UOp.new(Op.Concat, (e, T), 0)
    assert value(morok.simplify(e)) == value(e)


def test_the_prover_takes_the_same_ops_for_tensors() -> None:
    assert MOROK.of_axes == tensor_rules.OPS
