"""Rewriting a list of instructions: each by one rule at most, in its place.

The rules are those of graphs, with the same patterns. A target that stands for a sequence of instructions (in Morok a Group) puts
all of them where one instruction was.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from morok.caller import caller
from morok.dialect import Instructions, Node, ReadsMemory, Traces
from morok.errors import UsageError
from morok.rewrite import trace as traces
from morok.rewrite.parts import mentions, names_in_pattern
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.state import map_of


def line_rewrite(
    instructions: Sequence[Node], rules: RuleSet, *, context: Any = None, trace: traces.Trace | None = None, stage: str = ""
) -> list[Node]:
    """`instructions`, each rewritten once by the first rule that applies to it.

    What a rule makes stands in the instruction's place, behind those of its operands that the list does not hold yet; whoever
    used the instruction uses what it became. What has no effect, and only replaced instructions used, is left out. A value that
    the list holds in a loop or a branch is not put behind it again: it is computed again where it is used. A rule does not fire
    where one instruction would stand for two that are done one after the other: stores, loads.

    The other arguments are those of `graph_rewrite`. Raises UsageError for a dialect whose programs are no lists, for a list in
    which instructions stand twice, or loops and branches do not nest, and for rules that are not for lists: they name an op that
    reads memory, or waits for statements (a rule is proved of one moment, and in a list each instruction has its own), or replace
    what begins or ends a loop or a branch, or make a statement that they do not list.
    """
    dialect = rules.dialect
    if not isinstance(dialect, Instructions):
        raise UsageError(f"programs of dialect {dialect.name} are no lists of instructions", expected="a dialect with `in_turn`")
    _refuse_moments(rules, dialect)
    _refuse_scopes(rules, dialect)
    history = dialect if isinstance(dialect, Traces) else None
    trace = trace or traces.current()
    if history is None:
        return _rewritten(dialect, rules, context, trace, stage, instructions)
    maker = history.maker
    origin, maker_stage = maker.origin, maker.stage
    maker.stage = stage
    try:
        return _rewritten(dialect, rules, context, trace, stage, instructions)
    finally:
        maker.origin, maker.stage = origin, maker_stage


def _refuse_moments(rules: RuleSet, dialect: Instructions) -> None:
    """UsageError where a rule names an op that reads memory, or waits: what is read there may have changed where the rule has it
    read, and what is waited for was done before others.
    """
    for op in (*(dialect.reads if isinstance(dialect, ReadsMemory) else ()), *dialect.waits):
        if rules.mentions(op):
            name = next(r.name for r in rules.rules if mentions(r, op))
            hint = "what stands in memory may have changed between two instructions; on a graph the rule fires (morok.rewrite)"
            expected = "rules for lists that read no memory, and wait for nothing"
            raise UsageError(f"{name} speaks of {op}", place=caller(), expected=expected, hint=hint)


def _refuse_scopes(rules: RuleSet, dialect: Instructions) -> None:
    """UsageError where a rule replaces what begins or ends a loop or a branch: what it leaves may not nest."""
    for op in sorted(dialect.scopes):
        if rules.dialect.ops[op].key in rules.matcher.table:
            name = next((r.name for r in rules.rules if names_in_pattern(r, op)), "a rule")
            hint = "the other end would stay in the list; on a graph the rule fires (morok.rewrite)"
            what = f"{name} replaces {op}, which begins or ends a loop or a branch"
            raise UsageError(what, place=caller(), expected="rules for lists that replace other instructions", hint=hint)


def _rewritten(
    dialect: Any, rules: RuleSet, context: Any, trace: traces.Trace | None, stage: str, instructions: Sequence[Node]
) -> list[Node]:
    """The list after the rewriting; where one instruction came to be two, again, with fewer rules that fire."""
    held: Any = map_of(dialect)()
    opkey, table, default = dialect.opkey, rules.matcher.table, rules.matcher.default
    candidates = [n for n in instructions if table.get(opkey(n), default) is not None]
    while True:
        lines = _Lines(dialect, rules, context, held, instructions)
        if all(lines.hit(n, n) is None for n in candidates):
            return list(instructions)
        try:
            made = lines.rewrite()
        except _Held as e:
            for n in e.at:
                held[n] = True
            continue
        if trace is not None:
            for rule, before, after in lines.firings:
                trace.record(dialect, stage, rule, before, after)
        return made


class _Held(Exception):
    """Instructions that no rule may fire at."""

    def __init__(self, *at: Node) -> None:
        self.at = at


class _Lines:
    """One rewriting.

    held     instructions that no rule may fire at
    out      the new list
    open     the instructions that began the loops and branches that are open at its end
    became   what stands for each instruction that was replaced, or whose operands were
    source   the instruction in whose place each one was put
    fired    the instructions that rules fired at
    firings  the rules that fired, with the node before and after
    """

    def __init__(self, dialect: Any, rules: RuleSet, context: Any, held: Any, instructions: Sequence[Node]) -> None:
        self.dialect = dialect
        self.matcher = rules.matcher
        self.context = context
        self.held = held
        self.given = instructions
        self.out: list[Node] = []
        self.open: list[Node] = []
        self.became: Any = map_of(dialect)()
        self.source: Any = map_of(dialect)()
        self.fired: Any = map_of(dialect)()
        self.firings: list[tuple[str, Node, Node]] = []

    def rewrite(self) -> list[Node]:
        replaced: list[Node] = []
        for n in self.given:
            now = self.present(n) if replaced else n
            hit = self.hit(n, now)
            if hit is None:
                self.keep(n, now)
                continue
            made, rule = hit
            self.fired[n] = True
            self.firings.append((self.matcher.names[rule], now, made))
            self.replace(n, now, made)
            self.became[n] = made
            replaced.append(now)
        if self.open:
            raise UsageError(f"{self.open[-1]} is never closed", place=caller(), expected="loops and branches that nest")
        return self.used(replaced)

    def hit(self, n: Node, now: Node) -> tuple[Node, int] | None:
        """The target that a rule makes of an instruction, in its present form, and the rule's number."""
        match = self.matcher.table.get(self.dialect.opkey(now), self.matcher.default)
        if match is None or self.held.get(n) or self.dialect.opens(n) or self.dialect.closes(n):
            return None
        return match(now, self.context)

    def present(self, n: Node) -> Node:
        """`n` over the new forms of its operands. Operands that are no instructions may hold some that are."""
        stack = [n]
        while stack:
            at = stack[-1]
            operands = self.dialect.operands(at)
            waits = [
                s
                for s in operands
                if self.became.get(s) is None and self.source.get(s) is None and self.dialect.in_turn(s) is not None
            ]
            if waits:
                stack += waits
                continue
            stack.pop()
            now = [s if (found := self.became.get(s)) is None else found for s in operands]
            same = all(a is b for a, b in zip(now, operands, strict=True))
            made = at if same else self.dialect.rebuild(at, tuple(now))
            if at is not n or not same:
                self.became[at] = made
        found = self.became.get(n)
        return n if found is None else found

    def keep(self, n: Node, now: Node) -> None:
        """Put an instruction in its place, unless what it makes is in the list already."""
        if self.source.get(now) is None:
            self.put(n, now)
        elif self.dialect.stays(now):
            raise self.one_for_two(n, now)

    def put(self, n: Node, at: Node) -> None:
        """Put an instruction at the end, in place of `n`."""
        for opener in self.dialect.closes(at):
            if not self.open or self.open.pop() is not opener:
                what = f"{at} closes something other than what was opened last"
                raise UsageError(what, place=caller(), expected="loops and branches that nest")
        if self.dialect.opens(at):
            self.open.append(at)
        self.out.append(at)
        self.source[at] = n

    def one_for_two(self, n: Node, now: Node) -> Exception:
        """A new start where one node has come to be two instructions: no rule fires that has led to it."""
        found = [at for at in self.below(n, self.source[now]) if self.fired.get(at)]
        if found:
            return _Held(*found)
        return UsageError(f"{now} stands twice", place=caller(), expected="a list of different instructions")

    def below(self, *roots: Node) -> Iterator[Node]:
        """These nodes and all that they use."""
        seen: Any = map_of(self.dialect)()
        stack = list(roots)
        while stack:
            at = stack.pop()
            if seen.get(at) is None:
                seen[at] = True
                yield at
                stack += self.dialect.operands(at)

    def replace(self, n: Node, now: Node, made: Node) -> None:
        """Put what a rule has made of `n`."""
        outer, self.open = self.open, []
        does = self.dialect.has_effect(now)
        for m in self.sequence(made):
            self.place(n, now, m, does and self.dialect.stays(m))
        if self.open:
            raise self.not_for_lists("does not close each loop and branch that it opens")
        self.open = outer

    def sequence(self, made: Node) -> Iterator[Node]:
        """The instructions that a node stands for, in order."""
        stack = [made]
        while stack:
            at = stack.pop()
            several = self.dialect.in_turn(at)
            if several is None:
                yield at
            else:
                stack += reversed(several)

    def place(self, n: Node, now: Node, made: Node, done: bool) -> None:
        """Put an instruction that a rule has made of `n`, first its operands; nothing that is there already.

        done  it is done here, whether it stands elsewhere or not
        """
        stack = [made]
        while stack:
            at = stack[-1]
            if (at is not made or not done) and self.there(n, now, at):
                stack.pop()
                continue
            waits = [s for s in self.dialect.operands(at) if not self.there(n, now, s)]
            if waits:
                stack += reversed(waits)
                continue
            stack.pop()
            if at is now:
                self.keep(n, now)
            elif at is made and done and (self.source.get(at) is not None or self.listed.get(at)):
                raise _Held(n)
            else:
                self.put(n, at)

    def there(self, n: Node, now: Node, at: Node) -> bool:
        """True if a node can be used at the end of the list. UsageError for a statement, or a read, that a rule makes outside of
        its sequence.
        """
        if self.source.get(at) is not None:
            return True
        if at is now or not self.dialect.stays(at):
            return False
        if self.listed.get(at):  # it is done further down
            raise _Held(n)
        if self.known.get(at):
            return True  # an argument of the program that the list leaves out
        raise self.not_for_lists(f"makes {at}, and does not list it")

    @functools.cached_property
    def listed(self) -> Any:
        """The instructions that were given."""
        return self.those(self.given)

    @functools.cached_property
    def known(self) -> Any:
        """These, and all that they use."""
        return self.those(self.below(*self.given))

    def those(self, nodes: Iterable[Node]) -> Any:
        found: Any = map_of(self.dialect)()
        for n in nodes:
            found[n] = True
        return found

    def not_for_lists(self, why: str) -> UsageError:
        name, *_ = self.firings[-1]
        return UsageError(f"{name} {why}", place=caller(), expected="a target that is a sequence of statements for a list")

    def used(self, replaced: Sequence[Node]) -> list[Node]:
        """The list without the operands of replaced instructions alone."""
        doubtful: Any = map_of(self.dialect)()
        for n in replaced:
            for s in self.dialect.operands(n):
                doubtful[s] = True
        used: Any = map_of(self.dialect)()
        kept: list[Node] = []
        for n in reversed(self.out):
            unused = doubtful.get(n) and used.get(n) is None and not self.dialect.has_effect(n)
            if not unused:
                kept.append(n)
            for s in self.dialect.operands(n):
                (doubtful if unused else used)[s] = True
        kept.reverse()
        return kept


__all__ = ["line_rewrite"]
