"""The state of one rewriting: the final forms so far, the limits, and the errors beyond them."""

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
    """The limits of rewriting.

    per_node   firings on one node and on its replacements
    total      firings in one call, not counting those that `per_size` allows
    per_size   further firings in one call, for each node of its graph
    """

    per_node: int = 1_000
    total: int = 100_000
    per_size: int = 100


REBUILT: Final = -1  # in a trail, in place of a rule's number: the node got other operands
BEFORE: Final = 1 << 30  # added to the numbers of rules that see original nodes
WHOLE: Final = 1 << 29  # added to the numbers of rules that see whole AC chains


Trail = list[Any]  # the earlier forms of a node, each followed by the number of the rule that replaced it
# True for each leading operand that is held; True if all others are; the number of operands before the first held one
Held = tuple[tuple[bool, ...], bool, int]

Planned = tuple["Match | None", "Match | None", "Held | None", "Match | None"]


class Program(Protocol):
    """The state that calls with the same rules share.

    after      the rules that see nodes over finished operands
    before     the rules that see original nodes
    whole      the rules that see whole AC chains
    plan       by op key: the match functions of `before` and of `after`, the held operands, the match function of `whole`
    sketch     (node, operands): an ephemeral view of the node over other operands, for the rules of `whole` alone
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
    """One call's state.

    done       the final form of every node that is finished; PENDING: a rule has replaced this node and the replacement is
               unfinished, so that meeting it again means the rules form a cycle
    held       the same for nodes in positions where no rule fires
    memo_key   the key under which nodes remember their final forms; None where rules depend on a context
    fired      the number of firings; from `allowed` on they are compared with the limits
    longest    the length of a trail beyond which a node has been rewritten too often
    trails     the trails of the nodes being visited, outermost first
    in_chain   the inner nodes of AC chains, which are not finished themselves
    """

    __slots__ = (
        "program", "context", "limits", "memo_key", "trace", "stage", "done", "held", "fired", "in_chain", "size", "root",
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
        self.held = new_map()
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

    def limit(self, trail: Trail) -> None:
        """RewriteLimitError if more rules have fired than may, in this call or on the node with this trail."""
        if self.fired >= self.allowed:
            if self.size is None:
                self.size = _size(self.program.dialect, self.root)
            self.allowed = self.limits.total + self.limits.per_size * self.size
            if self.fired >= self.allowed:
                raise self.too_many(f"{self.fired:,} rewritings did not settle a graph of {self.size:,} nodes")
        if len(trail) > self.longest:
            raise self.too_many(f"one node was rewritten {len(trail) // 2:,} times")

    def too_many(self, what: str) -> RewriteLimitError:
        names = [self.rule_name(n) for t in self.trails[-51:] for n in t[1::2] if n != REBUILT]
        common = Counter(names[-1000:]).most_common(6)
        fired = ", ".join(f"{name} ({times:,} times)" for name, times in common)
        at = self.trails[-1][0]
        return RewriteLimitError(
            f"{what}; the last rules to fire: {fired}",
            excerpt=f"  at {abbreviate(self.program.dialect, at)}",
            hint="make each rule produce something simpler, or raise Limits",
        )

    def circle(self, again: Node) -> RewriteLimitError:
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
            f"rewriting goes in a circle: {rules} lead{'s' if len(names) == 1 else ''} back to the same node",
            excerpt=f"  at {abbreviate(self.program.dialect, again)}",
            hint="two rules with opposite canonical forms; keep one, or guard both so that only one applies",
        )


def with_held(kids: Sequence[Node], held: Held) -> Iterator[tuple[Node, bool]]:
    leading, rest, _ = held
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
