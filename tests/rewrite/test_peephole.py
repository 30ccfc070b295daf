"""Rewriting lists of instructions: each by one rule, in its place."""

from __future__ import annotations

import pytest
from rule_text import rules

from morok.errors import UsageError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.ir.verify import verify
from morok.passes.pipeline import LINES, STAGES
from morok.rewrite import library
from morok.rewrite.peephole import line_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.trace import Trace

i32 = dtypes.i32


def buffer(slot: int, size: int = 8) -> UOp:
    return UOp.new(Op.DefineGlobal, (), slot, i32.ptr(size, AddrSpace.GLOBAL))


def ops(program: list[UOp]) -> list[Op]:
    return [n.op for n in program]


def gated_loop() -> list[UOp]:
    """for r in 0..8: if r < 5: out[r] = 7"""
    out, end, seven, five = buffer(0), UOp.const(8, i32), UOp.const(7, i32), UOp.const(5, i32)
    r = UOp.new(Op.Range, (end,), (0, UOp.range(1, 0).arg[1], True))
    gate = r.lt(five)
    place = out.index(r, gate=gate)
    store = place.store(seven)
    return [out, end, seven, five, r, gate, place, store, store.end(r)]


def test_a_gated_store_becomes_a_branch_in_its_place() -> None:
    program = gated_loop()
    trace = Trace()
    made = line_rewrite(program, library.group("branches"), trace=trace, stage="22")
    assert ops(made) == [
        Op.DefineGlobal, Op.Const, Op.Const, Op.Const, Op.Range, Op.Lt, Op.Index, Op.If, Op.Store, Op.EndIf, Op.End,
    ]  # fmt: skip
    assert not any(n.arg for n in made if n.op is Op.Index)  # the gated place served the store alone, and is gone
    assert [(f.stage, f.rule) for f in trace.firings] == [("22", "branches.gated")]
    verify(made, 22)
    for listing in (program, made):
        held = {0: [0] * 8}
        interpret.run_instructions(listing, held)
        assert held[0] == [7] * 5 + [0] * 3


def test_what_others_use_stays() -> None:
    out, other, gate, place, value = (
        buffer(0),
        buffer(1),
        UOp.var("g", dtypes.bool),
        UOp.const(3, i32),
        UOp.const(7, i32),
    )
    gated = out.index(place, gate=gate)
    read = UOp.new(Op.Load, (gated,))
    plain = other.index(place)
    program = [out, other, gate, place, value, gated, plain, read, plain.store(read), gated.store(value)]
    made = line_rewrite(program, library.group("branches"))
    assert gated in made  # it is read, too
    assert ops(made)[-4:] == [Op.Index, Op.If, Op.Store, Op.EndIf]


def test_a_place_that_stands_already_is_not_put_there_again() -> None:
    out, gate, place, value = buffer(0), UOp.var("g", dtypes.bool), UOp.const(3, i32), UOp.const(7, i32)
    plain, gated = out.index(place), out.index(place, gate=gate)
    read = UOp.new(Op.Load, (plain,))
    program = [out, gate, place, value, plain, gated, read, gated.store(read + 1)]
    program.insert(-1, program[-1].src[1])
    made = line_rewrite(program, library.group("branches"))
    assert made.count(plain) == 1
    assert gated not in made


def test_two_stores_behind_one_gate_are_two_branches() -> None:
    out, gate, place = buffer(0), UOp.var("g", dtypes.bool), UOp.const(3, i32)
    gated = out.index(place, gate=gate)
    program = [out, gate, place, UOp.const(1, i32), UOp.const(2, i32), gated]
    program += [gated.store(UOp.const(1, i32)), gated.store(UOp.const(2, i32))]
    made = line_rewrite(program, library.group("branches"))
    assert ops(made)[-6:] == [Op.If, Op.Store, Op.EndIf] * 2
    assert len({n for n in made if n.op is Op.If}) == 2
    for g, expected in ((True, 2), (False, 0)):
        held = {0: [0] * 8}
        interpret.run_instructions(made, held, {"g": g})
        assert held[0][3] == expected


def test_users_of_an_instruction_use_what_it_became() -> None:
    x, two = UOp.var("x", i32), UOp.const(2, i32)
    twice, out = x * two, buffer(0)
    place = out.index(UOp.const(0, i32))
    program = [x, two, twice, twice + x, out, place.src[1], place, place.store(twice + x)]
    made = line_rewrite(program, rules("double: Mul(x: i32, 2) ~> Add(x, x)"))
    assert two not in made  # nobody else used it
    assert made[-1].src[1] is (x + x) + x
    assert made.index(x + x) < made.index((x + x) + x)


def test_a_rule_may_leave_an_instruction_out() -> None:
    out, place = buffer(0), UOp.const(0, i32)
    at, value = out.index(place), UOp.var("x", i32) * 2
    program = [out, place, at, *value.src, value, at.store(value)]
    made = line_rewrite(program, rules("idle: Store(p, Mul(x: i32, 2)) ~> Noop()"))
    assert made == [out, value.src[0]]  # nor is the place needed, or what was to be stored there; arguments remain


@pytest.mark.parametrize(
    "rule",
    [
        "later: Where(g: bool x 1, Load(Index(b: ptr(i32), i: index x 1)), v: i32 x 1)"
        " ~> Load(Index { buffer: b, indices: [i], gate: g }, v)",
        "back: Store(Index(b: ptr(i32), i: index x 1), Load(Index(b, i))) ~> Noop()",
    ],
    ids=("makes a read", "looks at one"),
)
def test_rules_that_speak_of_reads_are_refused(rule: str) -> None:
    """Rules for lists name no Load: between a load and the instruction that is rewritten another one may store."""
    with pytest.raises(UsageError, match="names Load"):
        line_rewrite([], rules(rule))


def test_the_rules_for_lists_speak_of_no_reads() -> None:
    groups = [name for stage in STAGES if stage.direction == LINES for name in stage.applied]
    assert groups
    assert not library.groups(*groups).mentions("Load")


def test_nothing_to_do_is_the_list_as_it_is() -> None:
    program = line_rewrite(gated_loop(), library.group("branches"))
    assert line_rewrite(program, library.group("branches")) == program


def test_a_dialect_without_lists_is_refused() -> None:
    class NoLists:
        name = "no lists"

    some = library.group("branches")
    other = RuleSet(some.parts)
    other.dialect = NoLists()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="not lists of instructions"):
        line_rewrite([], other)
