"""Rewriting of a list of instructions: at most one rule fires at each instruction, and its result takes the instruction's place.

The rules and patterns are those of graphs. If the target groups several instructions (in Morok by a Group), all of them take the
place of the one that was replaced.
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
    instructions: Sequence[Node],
    rules: RuleSet,
    *,
    context: Any = None,
    trace: traces.Trace | None = None,
    stage: str = "",
) -> list[Node]:
    """The list of instructions, each rewritten once by the first rule that applies to it.

    The result of a rule takes the place of the instruction, preceded by those of its operands that are not in the list yet. Later
    instructions use the result instead. Instructions without effect that only replaced instructions used are removed. A value
    that is computed inside a loop or a branch is computed again for a use behind it. A rule does not fire if it would merge two
    loads or stores into one instruction.

    The other arguments are those of `graph_rewrite`. UsageError for a dialect whose programs are not lists; for a list with an
    instruction twice, or with loops and branches that do not nest; and for rules that do not suit lists. Such a rule names an op
    that reads memory or waits for statements (its proof assumes one state of memory, but each instruction of a list runs in its
    own), replaces the beginning or the end of a loop or a branch, or makes a statement without listing it.
    """
    dialect = rules.dialect
    if not isinstance(dialect, Instructions):
        raise UsageError(
            f"programs of dialect {dialect.name} are not lists of instructions",
            expected="a dialect with the methods of `Instructions`",
        )
    _refuse_reads_and_waits(rules, dialect)
    _refuse_scopes(rules, dialect)
    history = dialect if isinstance(dialect, Traces) else None
    trace = trace or traces.current()
    if history is None:
        return _rewrite_list(dialect, rules, context, trace, stage, instructions)
    maker = history.maker
    origin, maker_stage = maker.origin, maker.stage
    maker.stage = stage
    try:
        return _rewrite_list(dialect, rules, context, trace, stage, instructions)
    finally:
        maker.origin, maker.stage = origin, maker_stage


def _refuse_reads_and_waits(rules: RuleSet, dialect: Instructions) -> None:
    """UsageError if a rule names an op that reads memory or waits for statements. The proof of such a rule assumes one state of
    memory, and in a list the memory may change between two instructions.
    """
    for op in (*(dialect.reads if isinstance(dialect, ReadsMemory) else ()), *dialect.waits):
        if rules.mentions(op):
            name = next(r.name for r in rules.rules if mentions(r, op))
            hint = "memory may change between two instructions of a list; apply the rule to a graph with morok.rewrite"
            expected = "rules that neither read memory nor wait for statements"
            raise UsageError(
                f"{name} names {op}, which rules for lists must not", place=caller(), expected=expected, hint=hint
            )


def _refuse_scopes(rules: RuleSet, dialect: Instructions) -> None:
    """UsageError if a rule replaces the beginning or the end of a loop or a branch: the other end would remain."""
    for op in sorted(dialect.scopes):
        if rules.dialect.ops[op].key in rules.matcher.table:
            name = next((r.name for r in rules.rules if names_in_pattern(r, op)), "a rule")
            hint = "the other end would stay in the list; apply the rule to a graph with morok.rewrite"
            what = f"{name} replaces {op}, which begins or ends a loop or a branch"
            raise UsageError(what, place=caller(), expected="rules that replace other instructions", hint=hint)


def _rewrite_list(
    dialect: Any, rules: RuleSet, context: Any, trace: traces.Trace | None, stage: str, instructions: Sequence[Node]
) -> list[Node]:
    """The rewritten list. If firings would merge two instructions, the rewriting starts again without these firings."""
    blocked: Any = map_of(dialect)()
    opkey, table, default = dialect.opkey, rules.matcher.table, rules.matcher.default
    candidates = [n for n in instructions if table.get(opkey(n), default) is not None]
    while True:
        rewriter = _ListRewriter(dialect, rules, context, blocked, instructions)
        if all(rewriter.hit(n, n) is None for n in candidates):
            return list(instructions)
        try:
            made = rewriter.rewrite()
        except _Blocked as e:
            for n in e.at:
                blocked[n] = True
            continue
        if trace is not None:
            for rule, before, after in rewriter.firings:
                trace.record(dialect, stage, rule, before, after)
        return made


class _Blocked(Exception):
    """A request to start again, with no rule firing at these instructions."""

    def __init__(self, *at: Node) -> None:
        self.at = at


class _ListRewriter:
    """One rewriting of a list.

    blocked       the instructions at which no rule may fire
    out           the new list
    open          the beginnings of the loops and branches that are open at the end of the new list
    replacements  the new form of each instruction that was replaced, or that has a replaced operand
    source        the original instruction in whose place each new one was put
    fired         the instructions at which rules fired
    firings       (name of the rule, node before, node after) for each firing
    """

    def __init__(self, dialect: Any, rules: RuleSet, context: Any, blocked: Any, instructions: Sequence[Node]) -> None:
        self.dialect = dialect
        self.matcher = rules.matcher
        self.context = context
        self.blocked = blocked
        self.instructions = instructions
        self.out: list[Node] = []
        self.open: list[Node] = []
        self.replacements: Any = map_of(dialect)()
        self.source: Any = map_of(dialect)()
        self.fired: Any = map_of(dialect)()
        self.firings: list[tuple[str, Node, Node]] = []

    def rewrite(self) -> list[Node]:
        replaced: list[Node] = []
        for n in self.instructions:
            now = self.current(n) if replaced else n
            hit = self.hit(n, now)
            if hit is None:
                self.keep(n, now)
                continue
            made, rule = hit
            self.fired[n] = True
            self.firings.append((self.matcher.names[rule], now, made))
            self.replace(n, now, made)
            self.replacements[n] = made
            replaced.append(now)
        if self.open:
            raise UsageError(
                f"the loop or branch that {self.open[-1]} begins has no end",
                place=caller(),
                expected="loops and branches that nest",
            )
        return self.without_dead_operands(replaced)

    def hit(self, n: Node, now: Node) -> tuple[Node, int] | None:
        """(the result of the first rule that applies to `now`, the present form of `n`; the rule's number), or None."""
        match = self.matcher.table.get(self.dialect.opkey(now), self.matcher.default)
        if match is None or self.blocked.get(n) or self.dialect.opens(n) or self.dialect.closes(n):
            return None
        return match(now, self.context)

    def current(self, n: Node) -> Node:
        """The instruction `n` over the new forms of its operands. Operands that are not instructions may contain some."""
        stack = [n]
        while stack:
            at = stack[-1]
            operands = self.dialect.operands(at)
            waits = [
                s
                for s in operands
                if self.replacements.get(s) is None
                and self.source.get(s) is None
                and self.dialect.in_turn(s) is not None
            ]
            if waits:
                stack += waits
                continue
            stack.pop()
            now = [s if (found := self.replacements.get(s)) is None else found for s in operands]
            same = all(a is b for a, b in zip(now, operands, strict=True))
            made = at if same else self.dialect.rebuild(at, tuple(now))
            if at is not n or not same:
                self.replacements[at] = made
        found = self.replacements.get(n)
        return n if found is None else found

    def keep(self, n: Node, now: Node) -> None:
        """Append an unreplaced instruction, unless its value is in the list already."""
        if self.source.get(now) is None:
            self.put(n, now)
        elif self.dialect.stays(now):
            raise self.duplicate_error(n, now)

    def put(self, n: Node, at: Node) -> None:
        """Append an instruction in the place of `n`."""
        for opener in self.dialect.closes(at):
            if not self.open or self.open.pop() is not opener:
                what = f"{at} ends something else than the innermost open loop or branch"
                raise UsageError(what, place=caller(), expected="loops and branches that nest")
        if self.dialect.opens(at):
            self.open.append(at)
        self.out.append(at)
        self.source[at] = n

    def duplicate_error(self, n: Node, now: Node) -> Exception:
        """The exception for one node in two places: _Blocked if firings led to it, UsageError for a list that had it twice."""
        found = [at for at in self.with_operands(n, self.source[now]) if self.fired.get(at)]
        if found:
            return _Blocked(*found)
        return UsageError(f"{now} is in the list twice", place=caller(), expected="a list of different instructions")

    def with_operands(self, *roots: Node) -> Iterator[Node]:
        """The nodes and all nodes below them, each once."""
        seen: Any = map_of(self.dialect)()
        stack = list(roots)
        while stack:
            at = stack.pop()
            if seen.get(at) is None:
                seen[at] = True
                yield at
                stack += self.dialect.operands(at)

    def replace(self, n: Node, now: Node, made: Node) -> None:
        """Append the result of a rule at `n`."""
        outer, self.open = self.open, []
        does = self.dialect.has_effect(now)
        for m in self.sequence(made):
            self.put_with_operands(n, now, m, does and self.dialect.stays(m))
        if self.open:
            raise self.target_error("does not close each loop and branch that it opens")
        self.open = outer

    def sequence(self, made: Node) -> Iterator[Node]:
        """The instructions that a node groups, in order; the node itself if it groups none."""
        stack = [made]
        while stack:
            at = stack.pop()
            several = self.dialect.in_turn(at)
            if several is None:
                yield at
            else:
                stack += reversed(several)

    def put_with_operands(self, n: Node, now: Node, made: Node, done: bool) -> None:
        """Append an instruction of a rule's result at `n`, after those of its operands that are not in the list yet.

        done  True if the instruction must run here, even if it is in the list already
        """
        stack = [made]
        while stack:
            at = stack[-1]
            if (at is not made or not done) and self.is_available(n, now, at):
                stack.pop()
                continue
            waits = [s for s in self.dialect.operands(at) if not self.is_available(n, now, s)]
            if waits:
                stack += reversed(waits)
                continue
            stack.pop()
            if at is now:
                self.keep(n, now)
            elif at is made and done and (self.source.get(at) is not None or self.original.get(at)):
                raise _Blocked(n)
            else:
                self.put(n, at)

    def is_available(self, n: Node, now: Node, at: Node) -> bool:
        """True if the value of a node is available at the end of the list. UsageError for a statement or a load that a rule makes
        without listing it.
        """
        if self.source.get(at) is not None:
            return True
        if at is now or not self.dialect.stays(at):
            return False
        if self.original.get(at):  # it runs further down
            raise _Blocked(n)
        if self.reachable.get(at):
            return True  # an argument of the program, which is not in the list
        raise self.target_error(f"makes {at} without listing it")

    @functools.cached_property
    def original(self) -> Any:
        """The set of the original instructions."""
        return self.node_set(self.instructions)

    @functools.cached_property
    def reachable(self) -> Any:
        """The set of the original instructions and all nodes below them."""
        return self.node_set(self.with_operands(*self.instructions))

    def node_set(self, nodes: Iterable[Node]) -> Any:
        found: Any = map_of(self.dialect)()
        for n in nodes:
            found[n] = True
        return found

    def target_error(self, why: str) -> UsageError:
        name, *_ = self.firings[-1]
        return UsageError(
            f"{name} {why}", place=caller(), expected="a target that is a sequence of statements for a list"
        )

    def without_dead_operands(self, replaced: Sequence[Node]) -> list[Node]:
        """The new list without instructions that have no effect and were used by replaced instructions only."""
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
