"""Rewriting lists with loops and branches: what a program does is what it did, whatever values and statements come to be one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_text import rules

from morok.errors import IRError, UsageError, VerifyError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.ir.verify import verify
from morok.rewrite import library
from morok.rewrite.peephole import line_rewrite

i32 = dtypes.i32
RULES = rules(
    """
twice: Add(x: i32, x) ~> Mul(x, 2)
shifted: Shl(x: i32, 1) ~> Mul(x, 2)
less: Lt(x: i32, y) ~> Not(Ge(x, y))
nothing: Or(x: i32, 0) ~> x
difference: Sub(x: i32, y) ~> Add(x, Mul(y, -1))
"""
)
BRANCHES = rules(
    """
only: Store(Index(b: ptr(i32), i: i32 x 1), Xor(v: i32 x 1, 1))
    let branch = If(Lt(i, 2))
    ~> Group(branch, Store(Index(b, i), Mul(v, 2)), EndIf(branch), Store(Index(b, zero(i)), Mul(v, 2)))
"""
)


def out(size: int = 4) -> UOp:
    return UOp.new(Op.DefineGlobal, (), 0, i32.ptr(size, AddrSpace.GLOBAL))


def number(n: int) -> UOp:
    return UOp.const(n, i32)


def loop(end: int, which: int = 0) -> UOp:
    return UOp.range(number(end), which)


def branch(*operands: UOp) -> tuple[UOp, UOp]:
    made = UOp.new(Op.If, operands)
    return made, UOp.new(Op.EndIf, (made,))


def shifted(x: UOp) -> UOp:
    return UOp.new(Op.Shl, (x, number(1)))


def results(program: list[UOp]) -> list[Any]:
    """What stands in memory after a program, for each value of its variables."""
    found = []
    for c in (False, True):
        for x in (0, 3, -5):
            held = {0: [7, 8, 9, 10]}
            interpret.run_instructions(program, held, {"c": c, "x": x})
            found.append(held[0])
    return found


def in_a_branch() -> list[UOp]:
    """if c: out[0] = x + x; out[1] = x << 1"""
    c, x, b = UOp.var("c", dtypes.bool), UOp.var("x", i32), out()
    i, e = branch(c)
    p, q = b.index(number(0)), b.index(number(1))
    return [c, x, b, p, q, i, x + x, p.store(x + x), e, shifted(x), q.store(shifted(x))]


def in_a_loop() -> list[UOp]:
    """for r in 0..0: out[r] = x + x; out[1] = x << 1"""
    x, b, r = UOp.var("x", i32), out(), loop(0)
    p, q = b.index(r), b.index(number(1))
    first = p.store(x + x)
    return [x, b, q, r, p, x + x, first, UOp.new(Op.End, (first, r)), shifted(x), q.store(shifted(x))]


def further_in() -> list[UOp]:
    """for r in 0..3: { if r == 0: { if c: out[0] = r + r }; out[r] = r << 1 }"""
    c, b, r = UOp.var("c", dtypes.bool), out(), loop(3)
    zero = UOp.new(Op.Eq, (r, number(0)))
    (i, e), (j, f) = branch(zero), branch(c)
    p, q = b.index(number(0)), b.index(r)
    last = q.store(shifted(r))
    return [c, b, p, r, zero, q, i, j, r + r, p.store(r + r), f, e, shifted(r), last, UOp.new(Op.End, (last, r))]


def moved_twice() -> list[UOp]:
    """if c: { if x < 3: out[0] = x + x; out[1] = x << 1 }; out[2] = x - x, after what became of both"""
    c, x, b = UOp.var("c", dtypes.bool), UOp.var("x", i32), out()
    (i, e), (j, f) = branch(c), branch(x.lt(number(3)))
    p, q, s = (b.index(number(k)) for k in range(3))
    value = UOp.new(Op.Or, (shifted(x), number(0)))
    return [
        c, x, b, p, q, s, x.lt(number(3)), i, j, x + x, p.store(x + x), f, value.src[0], q.store(value.src[0]), e,
        UOp.new(Op.Sub, (x, x)), s.store(UOp.new(Op.Sub, (x, x))),
    ]  # fmt: skip


def two_stores() -> list[UOp]:
    """out[0] = x + x; out[0] = x; out[0] = x << 1: what they store comes to be one value"""
    x, b = UOp.var("x", i32), out()
    p = b.index(number(0))
    return [x, b, p, x + x, shifted(x), p.store(x + x), p.store(x), p.store(shifted(x))]


def a_store_that_is_there() -> list[UOp]:
    """out[0] = x + x; out[0] = x; out[0] = x * 2"""
    x, b = UOp.var("x", i32), out()
    p = b.index(number(0))
    return [x, b, p, x + x, number(2), x * 2, p.store(x + x), p.store(x), p.store(x * 2)]


def two_loads() -> list[UOp]:
    """v = out[r + r]; out[r + r] = x; out[3] = out[r << 1] + v"""
    x, b, r = UOp.var("x", i32), out(), loop(1)
    one, other = b.index(r + r), b.index(shifted(r))
    v, w = UOp.new(Op.Load, (one,)), UOp.new(Op.Load, (other,))
    last = b.index(number(3)).store(w + v)
    return [
        x,
        b,
        r,
        r + r,
        shifted(r),
        one,
        other,
        v,
        one.store(x),
        w,
        w + v,
        last.src[0],
        last,
        UOp.new(Op.End, (last, r)),
    ]


@pytest.mark.parametrize(
    "made",
    [in_a_branch, in_a_loop, further_in, moved_twice, two_stores, a_store_that_is_there, two_loads],
    ids=lambda f: f.__name__,
)
def test_a_program_does_what_it_did(made: Callable[[], list[UOp]]) -> None:
    program = made()
    verify(program, 22)
    after = line_rewrite(program, RULES)
    verify(after, 22)
    assert results(after) == results(program)


def test_what_a_rule_makes_in_a_branch_of_its_own_can_be_used_behind_it() -> None:
    b, x = out(), UOp.var("x", i32)
    p, value = b.index(number(2)), UOp.new(Op.Xor, (x, number(1)))
    made = line_rewrite([b, x, p, value, p.store(value)], BRANCHES)
    verify(made, 22)
    assert [n.op for n in made if n.op is not Op.Const][-6:] == [Op.If, Op.Mul, Op.Store, Op.EndIf, Op.Index, Op.Store]
    assert results(made)[0] == [0, 8, 9, 10]  # the condition does not hold: x * 2 is computed behind the branch


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("empty: End(_s: void, Range(e)) if vmax(e) <= 0 ~> Noop()", "empty replaces End"),
        (
            "once: Range { end: @const(n): index, id, axis, renumbered } if n > 1 => Range { end: 1, id, axis, renumbered }",
            "once replaces Range",
        ),
        ("always: If(true) ~> If(Not(false))", "always replaces If"),
        ("done: EndIf(_i) ~> Noop()", "done replaces EndIf"),
        ("same: After(x: i32, _s: void) ~> x", "same names After"),
        ("reached: Barrier(x: void) ~> x", "reached names Barrier"),
    ],
    ids=("end", "range", "if", "endif", "after", "barrier"),
)
def test_rules_that_are_not_for_lists_are_refused(rule: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        line_rewrite([], rules(rule))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("Group(If(Lt(v, 1)), Store(p, v))", "does not close"),
        ("EndIf(If(Lt(v, 1)))", "without listing it"),
        ("Group(If(Lt(v, 1), Store(p, v)))", "without listing it"),
    ],
    ids=("a branch without an end", "an end alone", "a statement in another"),
)
def test_targets_that_do_not_nest_are_refused(target: str, why: str) -> None:
    b, x = out(), UOp.var("x", i32)
    p = b.index(number(1))
    with pytest.raises(UsageError, match=f"bad .*{why}"):
        line_rewrite([b, x, p, x ^ 1, p.store(x ^ 1)], rules(f"bad: Store(p, Xor(v: i32 x 1, 1)) ~> {target}"))


@pytest.mark.parametrize("times", [2, 3])
def test_lists_that_are_none_are_refused(times: int) -> None:
    b, x = out(), UOp.var("x", i32)
    p = b.index(number(0))
    i, e = branch(UOp.var("c", dtypes.bool))
    with pytest.raises(UsageError, match="is in the list twice"):
        line_rewrite([b, x, p, x + x, *[p.store(x)] * times], RULES)
    with pytest.raises(UsageError, match="has no end"):
        line_rewrite([b, x, p, x + x, i, p.store(x + x)], RULES)
    with pytest.raises(UsageError, match="ends something else"):
        line_rewrite([b, x, p, x + x, p.store(x + x), e], RULES)


def behind(what: Callable[[UOp, UOp], UOp]) -> list[UOp]:
    """for r in 0..0: { v = out[r] }; out[1] = what(r, v)"""
    b, r = out(), loop(0)
    p, q = b.index(r), b.index(number(1))
    v = UOp.new(Op.Load, (p,))
    made = [n for n in what(r, v).toposort() if n.op is Op.Add]
    return [b, q, r, p, v, *made, UOp.new(Op.End, (UOp.new(Op.Group, ()), r)), q.store(what(r, v))]


@pytest.mark.parametrize("what", [lambda r, v: r, lambda r, v: v, lambda r, v: r + 1, lambda r, v: (v + 1) + 2])
def test_what_cannot_be_computed_again_is_not_used_behind_its_loop(what: Callable[[UOp, UOp], UOp]) -> None:
    program = behind(what)
    with pytest.raises(VerifyError, match="was made in a loop, or a branch, that is closed"):
        verify(program, 22)
    with pytest.raises(IRError, match="behind its loop"):
        results(program)


class Written:
    """A list at random: `choose(n)` is one of 0..n. What can be used where it ends stands in levels, one for each open loop or
    branch.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.buffer = out()
        c, x = UOp.var("c", dtypes.bool), UOp.var("x", i32)
        numbers = [number(k) for k in range(3)]
        self.lines = [self.buffer, c, x, *numbers, *(self.buffer.index(k) for k in numbers)]
        self.standing = set(self.lines)
        self.levels = [self.lines[1:]]
        self.closers: list[UOp] = []

    def some(self, wanted: Callable[[UOp], bool]) -> UOp:
        found = [n for level in self.levels for n in level if wanted(n)]
        return found[self.choose(len(found))]

    def value(self) -> UOp:
        return self.some(lambda n: n.dtype is i32 and n.op is not Op.Index)

    def condition(self) -> UOp:
        return self.some(lambda n: n.dtype is dtypes.bool)

    def place(self) -> UOp:
        return self.some(lambda n: n.op is Op.Index and not n.arg)

    def put(self, n: UOp) -> bool:
        """Put an instruction at the end, if it stands nowhere; True if it can be used there."""
        if n not in self.standing:
            self.lines.append(n)
            self.standing.add(n)
            self.levels[-1].append(n)
        return any(n is m for level in self.levels for m in level)

    def compute(self) -> None:
        op = (Op.Add, Op.Add, Op.Shl, Op.Sub, Op.Or, Op.Mul)[self.choose(6)]
        x = self.value()
        self.put(UOp.new(op, (x, number(1) if op is Op.Shl else x if self.choose(2) else self.value())))

    def compare(self) -> None:
        self.put(self.value().lt(self.value()))

    def load(self) -> None:
        self.put(UOp.new(Op.Load, (self.place(),)))

    def store(self) -> None:
        self.put(self.place().store(self.value()))

    def store_behind_a_gate(self) -> None:
        place = self.buffer.index(self.place().src[1], gate=self.condition())
        if self.put(place):
            self.put(place.store(self.value()))

    def open_loop(self) -> None:
        r = UOp.range(number(self.choose(3)), len(self.lines))
        self.put(r)
        self.levels.append([self.levels[-1].pop()])
        self.closers.append(UOp.new(Op.End, (UOp.new(Op.Group, ()), r)))

    def open_branch(self) -> None:
        begin, end = branch(self.condition(), number(len(self.lines)))
        self.put(begin)
        self.levels.append([])
        self.closers.append(end)

    def close(self) -> None:
        if self.closers:
            self.levels.pop()
            self.put(self.closers.pop())

    def all(self, steps: int) -> list[UOp]:
        does = (self.compute, self.compute, self.compare, self.load, self.store, self.store, self.store_behind_a_gate,
                self.open_loop, self.open_branch, self.close, self.close)  # fmt: skip
        for _ in range(steps):
            does[self.choose(len(does))]()
        while self.closers:
            self.close()
        return self.lines


def programs_do_what_they_did(data: st.DataObject, steps: int) -> None:
    program = Written(lambda n: data.draw(st.integers(0, n - 1))).all(steps)
    verify(program, 22)
    after = line_rewrite(line_rewrite(program, RULES), library.group("branches"))
    verify(after, 22)
    assert results(after) == results(program)


@pytest.mark.parametrize("examples", [20, pytest.param(150, marks=pytest.mark.long)])
def test_programs_at_random_do_what_they_did(examples: int) -> None:
    settings(max_examples=examples)(given(st.data(), st.integers(4, 30))(programs_do_what_they_did))()


@pytest.mark.parametrize(
    "rule",
    [
        "alone: Group(s: void) ~> s",
        "nested: Group(s: void, rest..) if len(rest) > 2 ~> Group(s, Group(rest..))",
        "listed: Group { sources: ss } if len(ss) > 0 ~> Group(Group(), ss..)",
        "flat: Group(before.., Group(ss..), rest..) ~> Group(before.., ss.., rest..)",
        "any: s: void ~> Group(s)",
    ],
)
def test_a_variable_stands_for_no_part_of_a_branch(rule: str) -> None:
    b, c = out(), UOp.var("c", dtypes.bool)
    i, e = branch(c)
    stores = [b.index(number(k)).store(number(5)) for k in range(2)]
    matcher = rules(rule).matcher
    for torn in ((i,), (i, stores[0], e, stores[1]), (UOp.new(Op.Group, (stores[0],)), i, stores[1], e)):
        group = UOp.new(Op.Group, torn)
        outer = UOp.new(Op.Group, (group, stores[1])) if rule.startswith("flat") else group
        for n in (i, e) if rule.startswith("any") else (group, outer):
            match = matcher.table.get(n.op, matcher.default)
            assert match is None or match(n, None) is None
