"""Stage 9: what is done to unrolled operands, op by op, and in which order lanes come; the interpreter compares."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from morok.dsl.check import check_file
from morok.errors import LoweringError
from morok.ir import interpret
from morok.ir.dtype import DType, dtypes
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.passes import steps
from morok.passes.axis_expansion import AxisOrder, refuse_unrolled, swizzle, union
from morok.passes.pipeline import PRE
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.library import rules_dir

f32, i32, index = dtypes.f32, dtypes.i32, dtypes.index
A, B, C = (0, 2), (1, 3), (2, 2)


def expand(root: UOp) -> UOp:
    root = steps.rewrite(root, PRE, 9)
    return steps.rewrite(root, ("gep_pushing", "take_lanes", "expander"), 9, context=AxisOrder.of(root))


def unroll(x: UOp, *axes: tuple[int, int]) -> UOp:
    return UOp.new(Op.Unroll, (x,), axes)


def values(d: DType, *axes: tuple[int, int], own: int = 1, start: int = 1) -> UOp:
    """Different values of a dtype for every iteration of axes."""
    count = own
    for _, n in axes:
        count *= n
    given: list[Any] = [bool((start + k) % 3) for k in range(count)] if d.is_bool else [start + k for k in range(count)]
    return unroll(vconst(d, given), *axes)


def contract(x: UOp, *axes: tuple[int, int]) -> UOp:
    return UOp.new(Op.Contract, (x,), axes)


def lanes(x: UOp, *axes: tuple[int, int]) -> UOp:
    """What is left of x over these axes, which has the same value, and no Unroll and no Contract."""
    before = contract(x, *axes)
    after = expand(before)
    assert not {Op.Unroll, Op.Contract} & {n.op for n in after.toposort()}
    assert after.dtype is before.dtype
    assert interpret.evaluate(after, HELD) == interpret.evaluate(before, HELD)
    return after


HELD = {"x": 5, "p": True, "y": 2.5}
X, P = UOp.var("x", i32), UOp.var("p", dtypes.bool)


def test_contract_of_unroll() -> None:
    """Axis by axis: what Unroll spread, Contract collects, in its own order."""
    a, b = (0, 2), (1, 4)
    assert lanes(unroll(vconst(i32, range(4)), b), b) is vconst(i32, range(4))
    both = unroll(vconst(i32, range(8)), a, b)
    assert lanes(both, a, b) is vconst(i32, range(8))
    assert lanes(both, b, a) is vconst(i32, [0, 4, 1, 5, 2, 6, 3, 7])
    # an axis that stays open is in the Unroll around the result
    half = expand(contract(both, b))
    assert (half.op, half.arg, half.src[0]) == (Op.Unroll, (a,), vconst(i32, range(8)))
    assert expand(contract(both, a)).src[0] is vconst(i32, [0, 4, 1, 5, 2, 6, 3, 7])


def test_contract_without_the_axis_repeats() -> None:
    assert lanes(X, A) is UOp.vectorize(X, X)
    assert expand(unroll(X)) is X


def test_unrolled_operands_meet() -> None:
    a, b = unroll(vconst(i32, [0, 4]), A), unroll(vconst(i32, range(3)), B)
    assert lanes(a + b, A, B) is vconst(i32, [0, 0, 0, 4, 4, 4]) + vconst(i32, [0, 1, 2, 0, 1, 2])
    assert lanes(a + unroll(vconst(i32, [5, 6]), A), A) is vconst(i32, [0, 4]) + vconst(i32, [5, 6])


POINTWISE = [op for op, e in TABLE.entries.items() if e.pointwise and op is not Op.Cast]


def dtypes_of(op: Op) -> list[DType]:
    """A dtype for each operand."""
    signature = TABLE[op].signature
    assert signature is not None
    liked = (f32, i32, dtypes.u64, dtypes.bool)
    found = {k: next(d for d in liked if d in v) for k, v in signature.domains.items()}
    return [found.get(word) or getattr(dtypes, word) for word in signature.params]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_pointwise_ops(op: Op) -> None:
    """With all operands unrolled, over the same axes and over others, and with each of them alone."""
    ds = dtypes_of(op)
    choices = [[values(d, A, start=k + 1), values(d, B, A, start=k + 1), UOp.var(f"v{k}", d)] for k, d in enumerate(ds)]
    for operands in itertools.product(*choices):
        if any(o.op is Op.Unroll for o in operands):
            before = contract(UOp.new(op, operands), B, A)
            after = expand(before)
            assert not {Op.Unroll, Op.Contract} & {n.op for n in after.toposort()}
            held = {f"v{k}": d.is_bool or (2.5 if d.is_float else 3) for k, d in enumerate(ds)}
            assert str(interpret.evaluate(after, held)) == str(interpret.evaluate(before, held))


def test_conversions() -> None:
    assert lanes(values(i32, A, own=2).cast(f32), A).op is Op.Cast
    assert lanes(values(i32, A, own=2).bitcast(f32.vec(2)), A).op is Op.Bitcast


def test_one_condition_for_all_lanes() -> None:
    out = lanes(P.where(values(i32, A), X), A)
    assert out.op is Op.Where
    assert out.src[0] is P


def test_lanes_of_lanes() -> None:
    lanes(values(i32, B, A, own=2).gep(1), A, B)
    lanes(values(i32, A, own=2).gep(1, 0, 1), A)
    lanes(UOp.vectorize(values(i32, A), X, values(i32, B, A)), A, B)
    lanes(UOp.new(Op.Cat, (values(i32, A, own=2), values(i32, B, own=2, start=9))), B, A)
    lanes(unroll(values(i32, A, own=3), B), A, B)


def test_places() -> None:
    """Indices and gates of every kind; what is read is read at the places of all iterations."""
    held = {0: list(range(40, 60))}
    buffer = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(20))
    at, gate = values(index, A, B), values(dtypes.bool, B)
    for place in (
        buffer.index(at),
        buffer.index(at, gate=P),
        buffer.index(at, gate=gate),
        buffer.index(UOp.const(3), gate=gate),
    ):
        for read in (place, place.load(), UOp.new(Op.Load, (place, values(i32, A)))):
            before = contract(read, B, A)
            after = expand(before)
            assert not {Op.Unroll, Op.Contract} & {n.op for n in after.toposort()}
            assert interpret.evaluate(after, HELD, held) == interpret.evaluate(before, HELD, held)


def test_order_is_kept() -> None:
    out = lanes(UOp.new(Op.After, (values(i32, A), UOp.new(Op.Noop, ()))), A)
    assert out.op is Op.After


@pytest.mark.parametrize("op", [Op.Add, Op.Mul, Op.Max, Op.Min])
def test_folds(op: Op) -> None:
    """Over axes, over axes that the source lacks, over a loop inside of axes, over both."""
    closes = unroll(vconst(index, range(2)), A)
    r = UOp.range(3, 7, AxisType.Reduce)
    for source, ranges, left in (
        (values(i32, A, B), (closes,), (B,)),
        (values(i32, B), (closes,), (B,)),
        (values(i32, A) + r.cast(i32), (r,), (A,)),
        (values(i32, B, A) + r.cast(i32), (r, closes), (B,)),
        (values(i32, A), (closes,), ()),
    ):
        out = lanes(UOp.new(Op.Reduce, (source, *ranges), op), *left)
        assert out.op is Op.Reduce
        assert all(n.op is not Op.Unroll for n in out.src)


def stored(root: UOp) -> list[Any]:
    held: dict[int, list[Any]] = {0: [0] * 40}
    interpret.run(UOp.sink(root), held, HELD)
    return held[0]


def test_stores() -> None:
    """Closed by an End or by themselves, in a loop or not, with places that go with one axis and values that go with two."""
    buffer = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(40))
    closes = [unroll(vconst(index, range(n)), (i, n)) for i, n in (A, B)]
    r = UOp.range(3, 7, AxisType.Loop)
    place = buffer.index(r * 12 + values(index, B, A))
    for before in (
        place.store(values(i32, A, B)).end(r, *closes),
        place.store(X).end(closes[0], r, closes[1]),
        place.store(values(i32, A, B), *closes).end(r),
        place.store(values(i32, B), closes[1]).end(r, closes[0]),
    ):
        after = expand(before)
        assert not {Op.Unroll, Op.Contract} & {n.op for n in after.toposort()}
        assert stored(after) == stored(before)


def test_vectorized_ranges_become_lanes() -> None:
    r = UOp.range(4, 3, AxisType.Upcast)
    assert expand(r) is unroll(vconst(index, range(4)), (3, 4))
    out = expand(UOp.new(Op.DefineGlobal, (), 0, index.ptr(4)).index(r).store(r * 2).end(r))
    assert out.src[0].src[1] is vconst(index, range(4)) * UOp.const(2, index.vec(4))
    assert len(out.src) == 1
    with pytest.raises(LoweringError, match="constant length"):
        AxisOrder.of(UOp.range(UOp.var("n", index, 1, 9), 0, AxisType.Unroll))


def test_the_contiguous_axis_runs_fastest() -> None:
    i, j = UOp.range(2, 0, AxisType.Upcast), UOp.range(3, 1, AxisType.Upcast)
    buffer = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(6))
    order = AxisOrder.of(buffer.index(j * 2 + i).store(X).end(i, j))
    assert union([(A,), (B, A)], order) == (B, A)
    assert union([(A,), (B, A)], AxisOrder.of(X)) == (A, B)
    with pytest.raises(LoweringError, match="two lengths"):
        union([((0, 2),), ((0, 3),)], order)


def test_what_has_no_lanes_is_refused() -> None:
    wide = UOp.new(Op.Custom, (values(i32, A),), "f({0})", i32)
    with pytest.raises(LoweringError, match="Custom cannot be vectorized"):
        refuse_unrolled(expand(UOp.sink(wide)))


@pytest.mark.long
def test_helpers_keep_their_contracts() -> None:
    externs = {e.name: e for r in check_file(rules_dir() / "vector/expand.rules").rules() for e in r.externs.values()}
    dialect = next(iter(check_file(rules_dir() / "vector/expand.rules").rules())).dialect
    forms = [p for k in range(3) for p in itertools.permutations((A, B, C), k)]
    order = AxisOrder.of(X)
    for a, b in itertools.product(forms, forms):
        joint = union([a, b], order)
        check_call(externs["union"], dialect, ((a, b),), joint)
        for own in (1, 2):
            check_call(externs["swizzle"], dialect, (joint, a, own), swizzle(joint, a, own, order))
            check_call(externs["swizzle"], dialect, (b, a, own), swizzle(b, a, own, order))
