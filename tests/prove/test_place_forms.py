"""Rules about places: what they make of one must be the same one, and not only have its value."""

from __future__ import annotations

import random

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.ir.dtype import dtypes
from morok.ir.interpret import run
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove import smt
from morok.prove.obligations import prove_any, theory_of
from morok.prove.place_forms import keeps_places
from morok.prove.progress import Progress
from morok.prove.trust.differential import Trial
from morok.rewrite.ruleset import RuleSet

GATED = "Index { buffer: b: ptr(i32), indices: [i: index x 1], gate: Some(g: bool x 1) }"
NOT_ZERO = (
    f"{GATED} ~> Index {{ buffer: b, indices: [i], gate: And(g, Ne(Index {{ buffer: b, indices: [i], gate: g }}, 0)) }}"
)
LOST = {
    "chosen": "Index(b: ptr(i32), Where(g: bool, i: index, j: index)) ~> Where(g, Index(b, i), Index(b, j))",
    "by what is there": NOT_ZERO,
    "by the value that is matched": f"n @ {GATED} ~> Index {{ buffer: b, indices: [i], gate: And(g, Ne(n, 0)) }}",
    "by another name": f"{GATED} let c = b, h = Ne(Index {{ buffer: c, indices: [i], gate: g }}, 0)"
    " ~> Index { buffer: b, indices: [i], gate: And(g, h) }",
    "in a vector": "Vectorize(x: i32 x 1, y) ~> Add(Vectorize(x, y), 0)",
    "a lane": "Gep { vector: Vectorize(x: i32 x 1, _y), indices: [0] } ~> Add(x, 0)",
    "behind something": "After(x: i32, d: void) ~> Add(After(x, d), 0)",
    "what was stored there": "Index { buffer: After(b: ptr(T), s @ Store(Index(b, i: index x 1), v: T x 1)), indices: [i],"
    " gate: None } ~> After(v, s)",
    "storage": "Detach(x: i32) ~> Add(x, 0)",
    "in each of some": "Vectorize(xs..: i32 x 1) ~> Vectorize(Add(x, 0) for x in xs)",
}
KEPT = {
    "an index": "Index(b: ptr(i32), Add(i: index x 1, 0)) ~> Index(b, i)",
    "a gate": f"{GATED.replace('g: bool x 1', 'And(g: bool x 1, g)')} ~> Index {{ buffer: b, indices: [i], gate: g }}",
    "read elsewhere": "Index(b: ptr(i32), Add(Index(d: ptr(index), j: index x 1), 0)) ~> Index(b, Index(d, j))",
    "a load": "Index(b: ptr(i32), i: index x 1) ~> Load(Index(b, i))",
    "lanes": "Gep { vector: Vectorize(xs..: i32 x 1), indices: [i] } ~> xs[i]",
    "waiting": "After(Vectorize(xs..), ds..) ~> Vectorize(After(x, ds..) for x in xs)",
    "no place": "Gep { vector: Add(x: i32, y), indices: is } ~> Add(Gep(x, is), Gep(y, is))",
    "an element of a sum": "Index(Add(x: number, y), is..: index) if same_shape(x, y) ~> Add(Index(x, is..), Index(y, is..))",
    "a loaded value": "Load(Index(b: ptr(i32), i: index x 1)): i32 x 1 ~> Add(Load(Index(b, i)), 0)",
}


def rule(text: str) -> CheckedRule:
    (found,) = check_text(f'group g "one"\n\nr: {text}\n').rules()
    return found


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_a_rule_that_makes_a_value_of_a_place_is_not_proved(text: str) -> None:
    found, progress = rule(text), Progress(20_000, keep=False, first_search=False)
    smt.forget()
    prove_any(found, theory_of(found), progress)
    assert progress.unknown or progress.refuted


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_rule_that_makes_the_same_place_is_judged_by_its_value(text: str) -> None:
    assert keeps_places(rule(text))


def test_a_place_that_is_chosen_by_what_it_holds_is_another_to_a_store() -> None:
    b, g = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(1)), UOp.var("g", dtypes.bool)
    place = UOp.new(Op.Index, (b, UOp.const(0), g), True)
    made = RuleSet.of([rule(NOT_ZERO)], unproved=True).rewrite_node(place)
    assert made is not None
    held = []
    for p in (place, made[0]):
        buffers = {0: [0]}
        run(UOp.sink(p.store(UOp.const(7, dtypes.i32))), buffers, {"g": True})
        held.append(buffers[0])
    assert held == [[7], [0]]


def test_a_store_to_what_is_no_place_has_no_value() -> None:
    nowhere = UOp.new(Op.Store, (UOp.new(Op.Gep, (UOp.var("p", dtypes.i32.vec(2)),), (0,)), UOp.var("v", dtypes.i32)))
    assert not Trial(nowhere, random.Random(0)).has_value()
