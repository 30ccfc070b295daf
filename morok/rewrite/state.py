"""The state of one rewriting: the final forms found so far, the limits, and the errors of exceeding them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, Protocol

from morok.dialect import Dialect, Node, Remembers
from morok.errors import RewriteLimitError
from morok.rewrite import trace as traces
from morok.rewrite.abbreviate import abbreviate
from morok.rewrite.identity import IdentityMap
from morok.rewrite.matcher import Match, Matcher


class Limits(NamedTuple):
    """The limits on the number of firings.

    per_node   firings at one node and its replacements
    total      firings in one call, without those that `per_size` allows
    per_size   additional firings in one call, for each node of its graph
    """

    per_node: int = 1_000
    total: int = 100_000
    per_size: int = 100


REBUILT: Final = -1  # in a trail, instead of a rule's number: the node got new operands
BEFORE: Final = 1 << 30  # added to the numbers of rules for original nodes
WHOLE: Final = 1 << 29  # added to the numbers of rules for whole AC chains


Trail = list[Any]  # the earlier forms of a node, each followed by the number of the rule that replaced it
# (for each leading operand, True if it is frozen; True if all others are; the number of operands before the first frozen one)
Frozen = tuple[tuple[bool, ...], bool, int]

Planned = tuple["Match | None", "Match | None", "Frozen | None", "Match | None"]


class Program(Protocol):
    """The state shared by all calls with the same rules.

    after      the rules for nodes over finished operands
    before     the rules for original nodes
    whole      the rules for whole AC chains
    plan       by op key: the match functions of `before` and of `after`, the frozen operands, the match function of `whole`
    sketch     (node, operands): a temporary node with other operands, seen by the rules of `whole` only
    inert_ops  the keys of ops that no rule matches: their nodes without operands are final
    new_map    a new map keyed by node identity
    """

    @property
    def dialect(self) -> Dialect: ...
    @property
    def memory(self) -> Remembers | None: ...
    @property
    def after(self) -> Matcher: ...
    @property
    def before(self) -> Matcher | None: ...
    @property
    def whole(self) -> Matcher | None: ...
    @property
    def sketch(self) -> Callable[[Node, tuple[Node, ...]], Node]: ...
    @property
    def flatten(self) -> Callable[..., list[Node]]: ...
    @property
    def gather(self) -> Callable[..., tuple[Node, int] | None]: ...
    @property
    def plan(self) -> Mapping[Hashable, Planned]: ...
    @property
    def inert_ops(self) -> Container[Hashable]: ...
    @property
    def new_map(self) -> Callable[[], Any]: ...


class RewriteState:
    """The state of one call.

    done       the final form of every finished node. PENDING: a rule has replaced the node and the replacement is unfinished;
               meeting it again means that the rules form a cycle
    frozen     the same for nodes in positions where no rule fires
    memo_key   the key under which nodes remember their final forms; None if this call neither uses nor leaves such memories
    fired      the number of firings; once it reaches `allowed`, it is compared with the limits
    longest    the maximal length of a trail; a longer one means that a node was rewritten too often
    trails     the trails of the nodes being visited, outermost first
    in_chain   the inner nodes of AC chains; they get no final forms
    """

    __slots__ = (
        "program", "context", "limits", "memo_key", "trace", "stage", "done", "frozen", "fired", "in_chain", "size", "root",
        "trails", "plan", "inert_ops", "rebuild", "allowed", "longest", "before",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        context: Any,
        limits: Limits,
        memo_key: int | None,
        trace: traces.Trace | None,
        stage: str,
        rebuild: Callable[[Node, tuple[Node, ...]], Node],
    ) -> None:
        self.program = program
        self.plan = program.plan
        self.before = program.before
        self.inert_ops = program.inert_ops
        self.rebuild = rebuild
        self.context = context
        self.limits = limits
        self.memo_key = memo_key
        self.trace = trace
        self.stage = stage
        new_map = program.new_map
        self.done = new_map()
        self.frozen = new_map()
        self.in_chain = new_map()
        self.fired = 0
        self.size: int | None = None
        self.allowed = limits.total
        self.longest = 2 * limits.per_node
        self.root: Node = None  # set by `rewrite_fixpoint`
        self.trails: list[Trail] = []

    def rule_name(self, number: int) -> str:
        if number >= BEFORE:
            assert self.program.before is not None
            return self.program.before.names[number - BEFORE]
        if number >= WHOLE:
            assert self.program.whole is not None
            return self.program.whole.names[number - WHOLE]
        return self.program.after.names[number]

    def record(self, number: int, before: Node, after: Node) -> None:
        assert self.trace is not None
        self.trace.record(self.program.dialect, self.stage, self.rule_name(number), before, after)

    def check_limits(self, trail: Trail) -> None:
        """RewriteLimitError if too many rules have fired, in this call or at the node with this trail."""
        if self.fired >= self.allowed:
            if self.size is None:
                self.size = _size(self.program.dialect, self.root)
            self.allowed = self.limits.total + self.limits.per_size * self.size
            if self.fired >= self.allowed:
                raise self.limit_error(
                    f"{self.fired:,} rewrites of a graph of {self.size:,} nodes have not reached a fixpoint"
                )
        if len(trail) > self.longest:
            raise self.limit_error(f"one node was rewritten {len(trail) // 2:,} times")

    def limit_error(self, what: str) -> RewriteLimitError:
        names = [self.rule_name(n) for t in self.trails[-51:] for n in t[1::2] if n != REBUILT]
        common = Counter(names[-1000:]).most_common(6)
        fired = ", ".join(f"{name} ({times:,} times)" for name, times in common)
        at = self.trails[-1][0]
        return RewriteLimitError(
            f"{what}; the last rules to fire: {fired}",
            excerpt=f"  at {abbreviate(self.program.dialect, at)}",
            hint="make the result of each rule simpler than its pattern, or pass higher Limits",
        )

    def cycle_error(self, again: Node) -> RewriteLimitError:
        """The error for a node whose final form depends on itself."""
        names: list[str] = []
        for path in reversed(self.trails):
            forms = [i for i in range(0, len(path), 2) if path[i] is again]
            first = forms[0] if forms else 0
            names[:0] = [self.rule_name(n) for n in path[first + 1 :: 2] if n != REBUILT]
            if forms:
                break
        rules = " then ".join(names)
        return RewriteLimitError(
            f"the rules form a cycle: {rules} lead{'s' if len(names) == 1 else ''} back to the same node",
            excerpt=f"  at {abbreviate(self.program.dialect, again)}",
            hint="rules of a cycle undo each other; remove one, or add guards so that only one applies to a node",
        )


def with_frozen(kids: Sequence[Node], frozen: Frozen) -> Iterator[tuple[Node, bool]]:
    leading, rest, _ = frozen
    return zip(kids, chain(leading, repeat(rest)), strict=False)


def _size(dialect: Dialect, root: Node) -> int:
    seen = map_of(dialect)()
    stack = [root]
    total = 0
    while stack:
        node = stack.pop()
        if seen.get(node) is None:
            seen[node] = True
            total += 1
            stack.extend(dialect.operands(node))
    return total


def map_of(dialect: Dialect) -> Callable[[], Any]:
    """The maker of maps keyed by node identity: dicts where nodes hash by identity (hash-consed ones), else by address."""
    return dict if getattr(dialect, "hash_consed", False) else IdentityMap
