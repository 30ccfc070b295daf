"""Rewriting a list of instructions: each by one rule at most, in its place.

The rules are those of graphs, with the same patterns. A target that stands for a sequence of instructions (in Morok a Group) puts
all of them where one instruction was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from morok.caller import caller
from morok.dialect import Instructions, Node, ReadsMemory, Traces
from morok.errors import UsageError
from morok.rewrite import trace as traces
from morok.rewrite.parts import mentions
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.state import map_of


def line_rewrite(
    instructions: Sequence[Node], rules: RuleSet, *, context: Any = None, trace: traces.Trace | None = None, stage: str = ""
) -> list[Node]:
    """`instructions`, each rewritten once by the first rule that applies to it.

    What a rule makes stands in the instruction's place, behind those of its operands that the list does not hold yet; whoever
    used the instruction uses what it became. What has no effect, and only replaced instructions used, is left out. The other
    arguments are those of `graph_rewrite`. Raises UsageError for a dialect whose programs are no lists, and for rules that name
    an op which reads memory: a rule is proved of one moment, and in a list each read has its own.
    """
    dialect = rules.dialect
    if not isinstance(dialect, Instructions):
        raise UsageError(f"programs of dialect {dialect.name} are no lists of instructions", expected="a dialect with `in_turn`")
    _refuse_reads(rules)
    history = dialect if isinstance(dialect, Traces) else None
    if history is None:
        return _Lines(dialect, rules, context, trace or traces.current(), stage).rewrite(instructions)
    maker = history.maker
    origin, maker_stage = maker.origin, maker.stage
    maker.stage = stage
    try:
        return _Lines(dialect, rules, context, trace or traces.current(), stage).rewrite(instructions)
    finally:
        maker.origin, maker.stage = origin, maker_stage


def _refuse_reads(rules: RuleSet) -> None:
    """UsageError where a rule names an op that reads memory: what it reads may have changed where the rule would have it read."""
    for op in rules.dialect.reads if isinstance(rules.dialect, ReadsMemory) else ():
        if rules.mentions(op):
            name = next(r.name for r in rules.rules if mentions(r, op))
            hint = "what stands in memory may have changed between two instructions; on a graph the rule fires (morok.rewrite)"
            raise UsageError(f"{name} speaks of {op}", place=caller(), expected="rules for lists that read no memory", hint=hint)


class _Lines:
    """One rewriting.

    out      the new list
    placed   what stands in it
    became   what stands for each instruction that was replaced, or whose operands were
    """

    def __init__(self, dialect: Any, rules: RuleSet, context: Any, trace: traces.Trace | None, stage: str) -> None:
        self.dialect = dialect
        self.matcher = rules.matcher
        self.context = context
        self.trace = trace
        self.stage = stage
        self.out: list[Node] = []
        self.placed: Any = map_of(dialect)()
        self.became: Any = map_of(dialect)()

    def rewrite(self, instructions: Sequence[Node]) -> list[Node]:
        table, default = self.matcher.table, self.matcher.default
        opkey = self.dialect.opkey
        replaced: list[Node] = []
        for n in instructions:
            now = self.present(n) if replaced else n
            match = table.get(opkey(now), default)
            hit = None if match is None else match(now, self.context)
            if hit is None:
                if self.placed.get(now) is None:
                    self.placed[now] = True
                    self.out.append(now)
                continue
            made, rule = hit
            if self.trace is not None:
                self.trace.record(self.dialect, self.stage, self.matcher.names[rule], now, made)
            self.became[n] = self.became[now] = made
            replaced.append(now)
            several = self.dialect.in_turn(made)
            for m in (made,) if several is None else several:
                self.place(m)
        return self.used(replaced) if replaced else list(instructions)

    def present(self, n: Node) -> Node:
        """`n` over the new forms of its operands. Operands that are no instructions may hold some that are."""
        stack = [n]
        while stack:
            at = stack[-1]
            operands = self.dialect.operands(at)
            waits = [
                s
                for s in operands
                if self.became.get(s) is None and self.placed.get(s) is None and self.dialect.in_turn(s) is not None
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

    def place(self, made: Node) -> None:
        """Put an instruction at the end, first its operands. Nothing that stands in the list already is put there again."""
        stack = [made]
        while stack:
            at = stack[-1]
            waits = [s for s in self.dialect.operands(at) if self.placed.get(s) is None] if self.placed.get(at) is None else []
            if waits:
                stack += reversed(waits)
                continue
            stack.pop()
            if self.placed.get(at) is None:
                self.placed[at] = True
                if self.dialect.in_turn(at) is None:
                    self.out.append(at)

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
