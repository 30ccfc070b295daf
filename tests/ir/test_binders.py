"""What closes loops: a Range, an Unroll or a number, and nothing that a rule about values could change; and axes, of which a
vectorized range is one.
"""

from __future__ import annotations

import itertools

import pytest

from morok.errors import IRTypeError, UndefinedError, VerifyError
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.expression_parser import parse
from morok.ir.interpret import evaluate, run
from morok.ir.morok_dialect import MOROK
from morok.ir.op import AxisType, Op, Undefined
from morok.ir.ranges import free_of, free_of_axes, open_axes, open_ranges, replace_range
from morok.ir.uop import UOp, intern, vconst
from morok.ir.verify import verify
from morok.rewrite.library import groups

index, i32 = dtypes.index, dtypes.i32
R, Q, P = UOp.range(4, 0), UOp.range(2, 1), UOp.range(2, 2)
OUT = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(8))


def unroll(axis: int, length: int) -> UOp:
    return UOp.new(Op.Unroll, (vconst(index, range(length)),), ((axis, length),))


def contract(x: UOp, axis: int, length: int) -> UOp:
    return UOp.new(Op.Contract, (x,), ((axis, length),))


# operands that say which loops are closed

CLOSERS = {
    "End": lambda r: OUT.index(R).store(R.cast(i32)).end(r),
    "Store": lambda r: OUT.index(R).store(R.cast(i32), r),
    "Reduce": lambda r: R.reduce(Op.Add, r),
    "Bufferize": lambda r: UOp.new(Op.Bufferize, (R, r), (None, AddrSpace.GLOBAL)),
}
EXPRESSIONS = {
    "a sum": R + 0,
    "what is no loop in the end": R * 0 + 5,
    "lanes of a vector": unroll(7, 4).cast(i32),
    "a variable": UOp.var("n", index, 0, 3),
    "what is read": UOp.new(Op.DefineGlobal, (), 1, index.ptr(4)).index(R).load(),
    "what comes after": R.after(R),
}


@pytest.mark.parametrize("closer", CLOSERS)
@pytest.mark.parametrize("what", EXPRESSIONS)
def test_no_expression_says_which_loops_are_closed(closer: str, what: str) -> None:
    make = CLOSERS[closer]
    for r in (R, unroll(7, 4), UOp.const(0)):
        assert make(r).op is Op[closer]
    with pytest.raises(IRTypeError, match="a Range, an Unroll, or a number"):
        make(EXPRESSIONS[what])


def test_no_text_and_no_program_names_an_expression() -> None:
    with pytest.raises(Exception, match="a Range, an Unroll, or a number"):
        parse("Reduce(Range(4, 0, Loop), Add(Range(4, 0, Loop), 1), Add)")
    unchecked = intern(Op.End, dtypes.void, (OUT.index(R).store(R.cast(i32)), R * 1), None)
    with pytest.raises(VerifyError, match="a Range, an Unroll, or a number"):
        verify(UOp.sink(unchecked.end(R)), 3)


@pytest.mark.parametrize(
    ("value", "loops"),
    [
        (Q * 2 + P, (Q, P)),
        (P + Q * 2, (P, Q)),
        (Q + Q, (Q,)),
        (Q * 2 + unroll(7, 2), (Q, unroll(7, 2))),
        (UOp.const(3), (UOp.const(3),)),
        (UOp.var("n", index, 0, 3) + 1, ()),
        (UOp.range(Q + 1, 3) + 1, (UOp.range(Q + 1, 3),)),
    ],
)
def test_what_takes_the_place_of_a_loop_is_closed_by_its_loops(value: UOp, loops: tuple[UOp, ...]) -> None:
    """Where an expression of loops is put in the place of one, what closed that closes them."""
    reduce = R.reduce(Op.Add, R)
    assert reduce.substitute({R: value}).src == (value, *loops)
    assert reduce.replace((R, value)).src == (R, *loops)
    assert R.reduce(Op.Add, R, Q).substitute({R: value}).src[1:] == tuple(dict.fromkeys((*loops, Q)))


# axes

OPENERS = {
    "Unroll": unroll(0, 4),
    "Upcast": UOp.range(4, 0, AxisType.Upcast),
    "a range of kind Unroll": UOp.range(4, 0, AxisType.Unroll),
}


@pytest.mark.parametrize(("opener", "closer"), [*itertools.product(OPENERS, OPENERS)])
def test_a_vectorized_range_is_its_axis(opener: str, closer: str) -> None:
    """Whichever opens it, and whichever closes it."""
    x, r = OPENERS[opener], OPENERS[closer]
    for node, value in (
        ((x + 1).reduce(Op.Add, r), 1 + 2 + 3 + 4),
        (contract(x + 1, 0, 4), (1, 2, 3, 4)),
        ((contract(x, 0, 4).gep(3) + r).reduce(Op.Add, x), 4 * 3 + 6),
        (UOp.const(1).reduce(Op.Add, x, r), 4),
    ):
        assert evaluate(node) == value
        assert open_ranges(node) == open_axes(node) == frozenset()
    assert not free_of(x + 1, r)
    assert not free_of_axes(x + 1, [(0, 4)])
    assert free_of(x + 1, UOp.range(4, 0)), "a loop of the same number is another one"
    assert free_of(x + 1, UOp.range(4, 1, AxisType.Upcast))
    for statement in (
        OUT.index(x).store(x.cast(i32)).end(r),
        OUT.index(x).store(x.cast(i32), r),
        OUT.index(x).store(contract(r, 0, 4).gep(3).cast(i32)).end(x),
        OUT.index(x).store(x.cast(i32)),
    ):
        stored = [-1] * 8
        run(UOp.sink(statement), {0: stored})
        assert stored[:4] == ([3] * 4 if Op.Contract in {n.op for n in statement.toposort()} else [0, 1, 2, 3])


@pytest.mark.parametrize("kind", [AxisType.Upcast, AxisType.Unroll])
def test_what_opens_more_of_an_axis_than_is_gone_through_has_no_value(kind: AxisType) -> None:
    long, short = UOp.range(4, 0, kind), UOp.range(1, 0, kind)
    assert evaluate(short.reduce(Op.Add, short)) == 0
    for x in (long, unroll(0, 4)):
        for closed in (short, unroll(0, 1)):
            with pytest.raises(UndefinedError, match="iteration 0 of axis 0, which has 4"):
                evaluate(x.reduce(Op.Add, closed))
    with pytest.raises(UndefinedError, match="iteration 1 of axis 0, which has 1"):
        evaluate(short.reduce(Op.Add, long))


def test_an_axis_that_is_closed_inside_says_nothing_of_one_that_is_open() -> None:
    stored = [-1] * 8
    run(UOp.sink(OUT.index(unroll(0, 2)).store(contract(unroll(0, 4).cast(i32), 0, 4).gep(3))), {0: stored})
    assert stored == [3, 3] + [-1] * 6


def test_rules_ask_a_vectorized_range_for_the_axis_that_it_is() -> None:
    axes, inside = MOROK.facts["axes"], MOROK.facts["inside"]
    for x in OPENERS.values():
        assert axes(x) == ((0, 4),)
        assert inside(x) is vconst(index, range(4))
        assert axes(x + 1) == ()
    assert axes(R) == ()
    assert inside(R) is R
    for length in (0, UOp.var("n", index, 1, 4)):
        with pytest.raises(Undefined):
            axes(UOp.range(length, 0, AxisType.Upcast))


def test_an_axis_is_replaced_only_where_its_range_alone_opens_it() -> None:
    r = OPENERS["Upcast"]
    assert replace_range(r * 2 + 1, r, Q) is Q * 2 + 1
    assert replace_range(contract(r, 0, 4).gep(2) + r, r, Q) is contract(r, 0, 4).gep(2) + Q
    assert replace_range(unroll(0, 4).reduce(Op.Add, r) + r, r, Q) is unroll(0, 4).reduce(Op.Add, r) + Q
    for other in (OPENERS["Unroll"], OPENERS["a range of kind Unroll"]):
        with pytest.raises(Undefined, match="opens the axis too"):
            replace_range(r + other, r, Q)
        with pytest.raises(Undefined, match="closes a range"):
            replace_range((R + other).reduce(Op.Add, other), R, r)
    with pytest.raises(Undefined, match="closes a range"):
        replace_range(contract(R + r, 0, 4), R, r)
    with pytest.raises(Undefined, match="no range"):
        replace_range(OPENERS["Unroll"] + 1, OPENERS["Unroll"], Q)


def test_a_statement_leaves_no_axis_open() -> None:
    """A statement is done at all iterations of its axes: no iteration of one around it is put into it, and none outside is."""
    r = OPENERS["Upcast"]
    before = OUT.index(r).store((r + 1).cast(i32))
    read = OUT.after(before).index(3 - r).load()
    assert not open_axes(before)
    assert not open_ranges(before)
    assert replace_range(read, r, Q) is OUT.after(before).index(3 - Q).load()
    assert replace_range(before, r, Q) is before
    with pytest.raises(Undefined, match="all iterations of an axis"):
        replace_range(OUT.index(R).store(R.cast(i32)), R, r)
    at = UOp.var("q", index, 0, 3)
    found = UOp.new(Op.Where, (r.eq(at), read, UOp.const(0, i32))).reduce(Op.Add, r)
    hit = groups("load_collapse").rewrite_node(found)
    for x in (found, hit and hit[0]):
        assert x is not None
        assert evaluate(x, {at: 1}, {OUT: [70] * 8}) == 3


def closing(closer: str, *loops: UOp) -> UOp:
    """A program that leaves in OUT[0] 1, or in a fold's case the number of iterations."""
    place, one = OUT.index(0), UOp.const(1, i32)
    if closer == "Reduce":
        return UOp.sink(place.store(one.reduce(Op.Add, *loops)))
    return UOp.sink(place.store(one).end(*loops) if closer == "End" else UOp.new(Op.Store, (place, one, *loops)))


@pytest.mark.parametrize("closer", ["End", "Store", "Reduce"])
@pytest.mark.parametrize("lengths", [(4, 0), (0, 4), (4, 3)])
def test_loops_over_one_axis_that_are_closed_together_have_one_length(closer: str, lengths: tuple[int, int]) -> None:
    """Else there is no value, whichever of them a rule goes by; where another loop has no iterations nobody asks."""
    loops = [UOp.range(n, 7, AxisType.Upcast) for n in lengths]
    with pytest.raises(UndefinedError, match="different lengths of one axis"):
        run(closing(closer, *loops), {0: [-1] * 8})
    empty, left = UOp.range(0, 9), 0 if closer == "Reduce" else -1
    for program in (closing(closer, empty, *loops), closing(closer, *loops, empty)):
        stored = [-1] * 8
        run(program, {0: stored})
        assert stored[0] == left
