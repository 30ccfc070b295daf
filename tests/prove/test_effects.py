"""Proofs of rules about effects, at the sizes that are tried: what they wait for, and what they leave behind."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.errors import UndefinedError
from morok.ir.dtype import dtypes
from morok.ir.interpret import run
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove import smt
from morok.prove.obligations import prove_any, prove_instances, theory_of
from morok.prove.progress import Progress

BUDGET = 20_000  # solver units: a wrong proof by an encoding that assumes too much is a quick one


def shown(text: str) -> bool:
    """Truth of a rule being shown at the sizes that are tried."""
    (rule,) = check_text(f'group g "one"\n\nr: {text}\n').rules()
    smt.forget()
    progress = Progress(BUDGET, keep=False, first_search=False)
    prove_instances(rule, theory_of(rule), progress)
    return bool(progress.covered) and not (progress.unknown or progress.refusal or progress.refuted)


WAITS = {
    "a value that comes to be": "Mul(After(x: i32, _d: void), @zero) ~> Mul(x, 0)",
    "two that come to be": "Sub(After(x: i32, d: void), After(x, d)) ~> Sub(x, x)",
    "a value where there was none": "After(Idiv(x: i32, y), d: void) ~> After(Where(Ne(y, 0), Idiv(x, y), 0), d)",
    "another without a value": "After(Idiv(x: i32, y), d: void) ~> After(Idiv(x, Where(Eq(y, 0), 1, y)), d)",
    "an index that comes to be": "Add(After(Where(c: bool, i: index, Invalid), d: void), j: index)"
    " ~> Where(c, Add(After(i, d), j), Invalid)",
    "a place without a value": "Add(After(x: i32 x 1, Store(Index(b: ptr(i32), i: index x 1), v: i32 x 1)), y: i32 x 1)"
    " ~> Add(After(x, Store(Index(b, Add(i, Cast(Sub(Idiv(1, y), Idiv(1, y)), index))), v)), y)",
    "a stored value without a value": "Add(After(x: i32 x 1, Store(Index(b: ptr(i32), i: index x 1), v: i32 x 1)), y: i32 x 1)"
    " ~> Add(After(x, Store(Index(b, i), Add(v, Sub(Idiv(1, y), Idiv(1, y))))), y)",
    "in a let": "Add(After(x: i32 x 1, Store(Index(b: ptr(i32), i: index x 1), v: i32 x 1)), y: i32 x 1)"
    " let w = After(x, Store(Index(b, Add(i, Cast(Sub(Idiv(1, y), Idiv(1, y)), index))), v)) ~> Add(w, y)",
    "behind a store": "Load(Index(After(b: ptr(i32), Store(Index(b, i: index x 1), v: i32 x 1)), j: index x 1)): i32 x 1"
    " ~> Load(Index(After(b, Store(Index(b, Add(i, Sub(Idiv(1, j), Idiv(1, j)))), v)), j))",
}
STORES = {
    "the lane beside one without a value": "Store(Index(b: ptr(i32), i: index x 1), Vectorize(Idiv(x: i32 x 1, y), z))"
    " ~> Store(Index(b, i), Vectorize(Idiv(x, y), Where(Eq(y, 0), 0, z)))",
    "the place of what has no value": "Store(Index(b: ptr(i32), i: index x 1), Idiv(x: i32 x 1, y))"
    " ~> Store(Index(b, Where(Eq(y, 0), Add(i, 1), i)), Idiv(x, Where(Eq(y, 0), 1, y)))",
    "what has no value is not stored": "Store(Index(b: ptr(i32), i: index x 1), Idiv(x: i32 x 1, y))"
    " ~> Store(Index { buffer: b, indices: [i], gate: Ne(y, 0) }, Idiv(x, y))",
    "what is Invalid": "Store(Index(b: ptr(index), i: index x 1), Where(c: bool x 1, j: index x 1, Invalid))"
    " ~> Store(Index(b, i), Where(c, j, 0))",
    "what was there earlier": "Store(p @ Index { buffer: _b: ptr(T), indices: [_i: index x 1], gate: None }, Load(p): T x 1)"
    " ~> Noop()",
    "what was there earlier, or another value": "Store(p @ Index { buffer: b: ptr(T), indices: [i: index x 1], gate: None },"
    " Where(c: bool x 1, Load(p), v: T x 1)) ~> Store(Index { buffer: b, indices: [i], gate: Not(c) }, v)",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", [*WAITS.values(), *STORES.values()], ids=[*WAITS, *STORES])
def test_a_false_rule_about_effects_is_not_shown(text: str) -> None:
    assert not shown(text)


TRUE = {
    "a choice": "Where(c: bool, After(x: i32, d: void), y) ~> Where(Not(c), y, After(x, d))",
    "where another is chosen": "Where(c: bool x 1,"
    " After(x: i32 x 1, s @ Store(Index(_b: ptr(i32), _i: index x 1), _v: i32 x 1)), y) ~> Where(Not(c), y, After(x, s))",
    "its value": "After(Mul(x: i32 x 1, 1), s @ Store(Index(_b: ptr(i32), _i: index x 1), _v: i32 x 1)) ~> After(x, s)",
    "a value where there is none": "Store(Index(b: ptr(i32), i: index x 1), Mul(0, v: i32 x 1)) ~> Store(Index(b, i), 0)",
    "a lane where there is none": "Store(Index(b: ptr(i32), i: index x 1), Vectorize(Idiv(x: i32 x 1, x), z))"
    " ~> Store(Index(b, i), Vectorize(1, z))",
}


@pytest.mark.parametrize("text", TRUE.values(), ids=TRUE)
def test_a_true_rule_beside_them_is_shown(text: str) -> None:
    assert shown(text)


MEMORY = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(3))


def stored_behind_another() -> tuple[UOp, UOp]:
    """A store of what was loaded, behind another store that hangs nowhere else."""
    behind = MEMORY.after(MEMORY.index(0).store(UOp.const(5, dtypes.i32))).index(1)
    back = behind.store(behind.load())
    return back, UOp.sink(back)


def left_by(program: UOp) -> list[list[int]] | None:
    """The elements of a buffer behind a program; None if it has no value."""
    buffers = {0: [7, 8, 9]}
    try:
        run(program, buffers)
    except UndefinedError:
        return None
    return list(buffers.values())


def test_a_store_of_what_was_loaded_is_missed() -> None:
    """Why it is not taken for nothing: what its storage waits for would go with it."""
    back, program = stored_behind_another()
    without = {back: UOp.new(Op.Noop, ())}
    for node in program.toposort():
        without.setdefault(node, UOp.new(node.op, tuple(without[s] for s in node.src), node.arg, node.dtype))
    assert left_by(program) == [[5, 8, 9]]
    assert left_by(without[program]) != left_by(program)


REMADE = {
    "behind a value": "After(x: i32 x 1, Store(Index(b: ptr(i32), i: index x 1), Mul(v: i32 x 1, 1)))"
    " ~> After(x, Store(Index(b, i), v))",
    "behind storage": "Load(Index(After(b: ptr(i32), Store(Index(b, i: i16 x 1), v: i32 x 1)), j: index x 1)): i32 x 1"
    " ~> Load(Index(After(b, Store(Index(b, Cast(i, i32)), v)), j))",
    "beside itself": "After(x: i32 x 1, s @ Store(Index(b: ptr(i32), i: i16 x 1), v: i32 x 1))"
    " ~> After(x, s, Store(Index(b, Cast(i, i32)), v))",
    "in loops": "End(Store(Index(b: ptr(i32), i: index x 1), Mul(v: i32 x 1, 1)), r) ~> End(Store(Index(b, i), v), r)",
    "in a group": "Group(Store(Index(b: ptr(i32), i: index x 1), Mul(v: i32 x 1, 1))) ~> Store(Index(b, i), v)",
    "in a let": "After(x: i32 x 1, Store(Index(b: ptr(i32), i: index x 1), Mul(v: i32 x 1, 1)))"
    " let s = Store(Index(b, i), v) ~> After(x, s)",
    "where another is chosen": "Where(c: bool x 1, After(x: i32 x 1, Store(Index(b: ptr(i32), Add(i: index x 1, 0)), v)), y)"
    " ~> Where(c, After(x, Store(Index(b, i), v)), y)",
    "loops behind a value": "After(x: i32 x 1, End(s: void, r, q)) if free_of(r, q) and free_of(q, r) ~> After(x, End(s, q, r))",
    "loops taken apart": "After(x: i32 x 1, End(s: void, r, q)) if free_of(r, q) and free_of(q, r)"
    " ~> After(x, End(End(s, r), q))",
    "loops behind storage": "Load(Index(After(b: ptr(i32), End(s: void, r, q)), i: index x 1)): i32 x 1"
    " if free_of(r, q) and free_of(q, r) ~> Load(Index(After(b, End(s, q, r)), i))",
    "loops in a group": "Group(End(s: void, r, q)) if free_of(r, q) and free_of(q, r) ~> Group(End(s, q, r))",
    "loops in loops": "End(End(s: void, r: index), q: index) if free_of(q, r) and free_of(r, q) ~> End(s, r, q)",
    "any number of loops": "After(x: i32 x 1, End(s: void, rs.., r)) ~> After(x, End(s, r, rs..))",
}


@pytest.mark.parametrize("text", REMADE.values(), ids=REMADE)
def test_a_statement_is_not_made_in_place_of_one_that_may_be_done_too(text: str) -> None:
    (rule,) = check_text(f'group g "one"\n\nr: {text}\n').rules()
    progress = Progress(BUDGET, keep=False, first_search=False)
    smt.forget()
    prove_any(rule, theory_of(rule), progress)
    assert progress.unknown or progress.refuted


def test_a_statement_in_place_of_the_root_is() -> None:
    for text in (
        "End(s: void, r, q) if free_of(r, q) and free_of(q, r) ~> End(s, q, r)",
        "Store(Index(b: ptr(i32), i: index x 1), Mul(v: i32 x 1, 1)) ~> Store(Index(b, i), v)",
        "Store(Index(After(b: ptr(i32), s @ Store(Index(b, j: index x 1), w: i32 x 1)), i: index x 1), Mul(v: i32 x 1, 1))"
        " ~> Store(Index(After(b, s), i), v)",
    ):
        (rule,) = check_text(f'group g "one"\n\nr: {text}\n').rules()
        progress = Progress(BUDGET, keep=False, first_search=False)
        smt.forget()
        prove_any(rule, theory_of(rule), progress)
        assert progress.covered
        assert not progress.unknown


def test_two_stores_of_one_value_are_in_no_order() -> None:
    """Why: another node may wait for the store that the pattern has, and then both are done."""
    one, v = UOp.const(1, dtypes.i32), UOp.var("v", dtypes.i32, 3, 3)
    was, made = (MEMORY.index(0).store(value) for value in (v * one, v))
    out = UOp.new(Op.DefineGlobal, (), 1, dtypes.i32.ptr(1)).index(0)
    for store, left in ((was, [3, 8, 9]), (made, None)):
        buffers = {0: [7, 8, 9], 1: [0]}
        program = UOp.sink(was, out.store(UOp.new(Op.After, (MEMORY, store)).index(0).load()))
        if left is None:
            with pytest.raises(UndefinedError):
                run(program, buffers, {"v": 3})
        else:
            run(program, buffers, {"v": 3})
            assert buffers[0] == left


def test_two_loops_around_one_statement_are_in_no_order() -> None:
    """Why: another node may wait for the loops that the pattern has, and then both are gone through, unless they are one node."""
    r, q = UOp.range(2, 0), UOp.range(3, 1)
    place = MEMORY.after(r, q).index(0)
    out = UOp.new(Op.DefineGlobal, (), 1, dtypes.i32.ptr(1)).index(0)

    def left(was: UOp, made: UOp) -> list[int] | None:
        buffers = {0: [0, 8, 9], 1: [0]}
        behind = UOp.new(Op.After, (UOp.const(4, dtypes.i32), made))
        try:
            run(UOp.sink(was, out.store(behind)), buffers)
        except UndefinedError:
            return None
        return buffers[0]

    counted = place.store(place.load() + 1)
    was = UOp.new(Op.End, (counted, r, q))
    assert left(was, was) == [6, 8, 9]
    assert left(was, UOp.new(Op.End, (counted, q, r))) is None
    once = MEMORY.after(r).index(0)
    counted = once.store(once.load() + 1)
    inner = UOp.new(Op.End, (counted, r))
    assert left(UOp.new(Op.End, (inner, q)), inner) == [2, 8, 9]
    assert left(UOp.new(Op.End, (counted, r, q)), inner) is None
