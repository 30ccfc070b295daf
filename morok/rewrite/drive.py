"""The engine's loop: every node is finished after its operands, by explicit stacks."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from morok.dialect import Dialect, Node, Remembers
from morok.errors import RewriteLimitError
from morok.interrupts import check, waiting
from morok.rewrite import trace as traces
from morok.rewrite.brief import brief
from morok.rewrite.identity import IdentityMap
from morok.rewrite.matcher import Match, Matcher
from morok.rewrite.pending import PENDING

if TYPE_CHECKING:
    from morok.rewrite.specialize import operands, opkey, recall


class Limits(NamedTuple):
    """The limits of rewriting.

    per_node   rewritings of one node, and of what they make of it
    total      rewritings in one call, for a small graph
    per_size   how many more for each node of the graph that was given
    """

    per_node: int = 1_000
    total: int = 100_000
    per_size: int = 100


_REBUILT: Final = -1  # stands where a rule's number would, in a trail
_BEFORE: Final = 1 << 30  # added to the numbers of rules that see original nodes
WHOLE: Final = 1 << 29  # added to the numbers of rules that see whole nests


Trail = tuple[Any, ...]  # earlier forms of a node, each with the number of the rule that replaced it
# whether each leading operand is held, whether the others are, and how many come before the first one that is
Held = tuple[tuple[bool, ...], bool, int]

Planned = tuple["Match | None", "Held | None", "Match | None"]
# A node that waits for an operand: as it was given, its present form, its trail, whether rules fire on it, the operands that are
# still to be looked at, whether an earlier one has changed, the terms of its nest (if these are looked at), all operands, which
# of them are held, its match function
Frame = tuple[
    Node, Node, Trail, bool, Iterator[Any], bool, "list[Node] | None", Sequence[Node], "Held | None", "Match | None"
]  # fmt: skip


Rebuild = Callable[[Node, tuple[Node, ...]], Node]
Rebuilt = tuple[Node, "Match | None", bool]


class Program(Protocol):
    """The state that calls with the same rules share.

    plan     by op key, whatever it is: the match function, which operands are held, and the match function for whole nests
    whole    the rules that see whole nests of one op
    sketch   (node, operands): the node over other operands for these rules to look at, and nobody else
    silent   the op keys whose nodes, if they have no operands, are final as they are
    new_map  makes a map keyed by node identity

    `recorded`, `rebuilt`, `replaced` and `remember` are the steps below of these names, and `unfold` and `gather` those of nests,
    specialized for the dialect.
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
    def recorded(self) -> Callable[[Job, Node], Node | None]: ...
    @property
    def rebuilt(self) -> Callable[..., Rebuilt]: ...
    @property
    def replaced(self) -> Callable[[Job, Node, Node, Trail], Node | None]: ...
    @property
    def remember(self) -> Callable[[Job, Node, Trail, Node], None]: ...
    @property
    def unfold(self) -> Callable[..., list[Node] | None]: ...
    @property
    def gather(self) -> Callable[..., tuple[Node, int] | None]: ...
    @property
    def plan(self) -> Mapping[Hashable, Planned]: ...
    @property
    def silent(self) -> Container[Hashable]: ...
    @property
    def new_map(self) -> Callable[[], Any]: ...


class Job:
    """One call's state.

    done       the final form of every node that was finished, and PENDING for those that a rule has replaced, until it is known:
               whoever needs his own final form comes by one of them
    held       the same for nodes in positions where no rule fires
    memo_key   under which finished nodes remember their final form; None where rules depend on a context
    fired      how many rules have fired, of those `allowed` before limits are looked at again
    longest    trail, in which each firing is two items
    rebuild    (node, operands): the node over other operands
    inside     nodes that were looked at as parts of a nest of their op, and not on their own
    """

    __slots__ = (
        "program", "context", "limits", "memo_key", "trace", "stage", "rebuild", "done", "held", "inside", "fired",
        "allowed", "longest", "size", "root", "stack",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        context: Any,
        limits: Limits,
        memo_key: int | None,
        trace: traces.Trace | None,
        stage: str,
        rebuild: Rebuild,
    ) -> None:
        self.program = program
        self.context = context
        self.limits = limits
        self.memo_key = memo_key
        self.trace = trace
        self.stage = stage
        self.rebuild = rebuild
        new_map = program.new_map
        self.done = new_map()
        self.held = new_map()
        self.inside = new_map()
        self.fired = 0
        self.size: int | None = None
        self.root: Node = None  # `drive` says it
        self.stack: list[Frame] = []
        self.allowed = limits.total
        self.longest = 2 * limits.per_node

    def rule_name(self, number: int) -> str:
        if number >= _BEFORE:
            assert self.program.before is not None
            return self.program.before.names[number - _BEFORE]
        if number >= WHOLE:
            assert self.program.whole is not None
            return self.program.whole.names[number - WHOLE]
        return self.program.after.names[number]

    def record(self, number: int, before: Node, after: Node) -> None:
        assert self.trace is not None
        self.trace.record(self.program.dialect, self.stage, self.rule_name(number), before, after)

    def recall(self, node: Node) -> Node | None:
        """The final form of a node if it is known: PENDING while it is in the making."""
        found = self.done.get(node)
        return self.program.recorded(self, node) if found is None else found

    def original_hit(self, node: Node) -> tuple[Node, int] | None:
        """Stage 0: the result of a rule that sees nodes as they were given, and its number."""
        before = self.program.before
        assert before is not None
        match = before.table.get(self.program.dialect.opkey(node), before.default)
        hit = None if match is None else match(node, self.context)
        return None if hit is None else (hit[0], hit[1] + _BEFORE)

    def hold(self, final: Node, trail: Trail) -> None:
        """Note a final form where no rule fires, and that of the forms before it."""
        for form in (final, *trail[::2]):
            self.held[form] = final

    def finals_of(self, kids: Sequence[Node], holds: Held | None, trail: Trail) -> tuple[Node, ...] | None:
        """The final forms of finished operands, of which some are held; None if they are final themselves."""
        done, held = self.done.get, self.held.get
        if holds is None:
            return tuple(map(done, kids))
        finals = [(held if h else done)(kid) for kid, h in _with_holds(kids, holds)]
        moved = False
        for kid, final in zip(kids, finals, strict=True):
            if final is PENDING:
                raise self.circle(kid, trail)
            moved = moved or final is not kid
        return tuple(finals) if moved else None

    def waiting(self, pairs: Iterator[tuple[Node, bool]]) -> tuple[Node | None, bool]:
        """The next operand that is not finished, and True if rules fire on it, of operands and whether each is held; None if all
        are.
        """
        for kid, hold in pairs:
            if (self.held.get(kid) if hold else self.recall(kid)) is None:
                return kid, not hold
        return None, True

    def trails(self) -> list[Trail]:
        """The trails of the nodes that wait for their operands, outermost first."""
        return [frame[2] for frame in self.stack]

    def allow(self, trail: Trail) -> int:
        """Called when the count of firings reaches `limits.total`: the count to stop at, or RewriteLimitError."""
        if self.size is None:
            self.size = _size(self.program.dialect, self.root)
        allowed = self.limits.total + self.limits.per_size * self.size
        if self.fired >= allowed:
            raise self.too_many(trail, f"{self.fired:,} rewritings did not settle a graph of {self.size:,} nodes")
        return allowed

    def too_many(self, trail: Trail, what: str) -> RewriteLimitError:
        names = [self.rule_name(n) for t in (*self.trails()[-50:], trail) for n in t[1::2] if n != _REBUILT]
        common = Counter(names[-1000:]).most_common(6)
        fired = ", ".join(f"{name} ({times:,} times)" for name, times in common)
        at = trail[0] if trail else self.root
        return RewriteLimitError(
            f"{what}; the last rules to fire: {fired}",
            excerpt=f"  at {brief(self.program.dialect, at)}",
            hint="make each rule produce something simpler, or raise Limits",
        )

    def circle(self, again: Node, trail: Trail) -> RewriteLimitError:
        """The error for a node whose final form depends on itself."""
        names: list[str] = []
        for path in (trail, *reversed(self.trails())):
            forms = [i for i in range(0, len(path), 2) if path[i] is again]
            first = forms[0] if forms else 0
            names[:0] = [self.rule_name(n) for n in path[first + 1 :: 2] if n != _REBUILT]
            if forms:
                break
        rules = " then ".join(names)
        return RewriteLimitError(
            f"rewriting goes in a circle: {rules} lead{'s' if len(names) == 1 else ''} back to the same node",
            excerpt=f"  at {brief(self.program.dialect, again)}",
            hint="two rules with opposite canonical forms; keep one, or guard both so that only one applies",
        )


def _with_holds(kids: Sequence[Node], holds: Held) -> Iterator[tuple[Node, bool]]:
    leading, rest, _ = holds
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


def recorded(job: Job, node: Node) -> Node | None:
    """The final form of a node that this call has not finished: itself if it is a leaf that no rule names, or what an earlier
    call made of it; None where neither is so.
    """
    if not operands(node) and opkey(node) in job.program.silent:
        final = node
    else:
        key = job.memo_key
        kept = None if key is None or not (facts := recall(node)) else facts.get(key)
        final = node if kept is True else None if kept is None else kept()
    if final is not None:
        job.done[node] = job.done[final] = final
    return final


def rebuilt(job: Job, at: Node, fresh: tuple[Node, ...], trail: Trail, fires: bool, match: Match | None) -> Rebuilt:
    """A node over the final forms of its operands, the match function to try on it, and True if rules for original nodes look at
    it first. If its own final form is known already, it is that one, and there is nothing to try.
    """
    op = opkey(at)
    at = job.rebuild(at, fresh)
    final = job.recall(at) if fires else job.held.get(at)
    if final is PENDING:
        raise job.circle(at, trail)
    if final is not None:
        return final, None, False
    if opkey(at) is not op:  # a constructor chose another op
        match = job.program.plan[opkey(at)][0]
    return at, match, fires and job.program.before is not None


def replaced(job: Job, at: Node, new: Node, trail: Trail) -> Node | None:
    """The final form of the node that a rule puts in the place of `at`; None where it is still to be found. The trail ends with
    this firing.
    """
    job.fired += 1
    if waiting:
        check()
    if job.trace is not None:
        job.record(trail[-1], at, new)
    if job.fired >= job.allowed:
        job.allowed = job.allow(trail)
    if len(trail) > job.longest:
        raise job.too_many(trail, f"one node was rewritten {len(trail) // 2:,} times")
    final = job.done.get(new)
    if final is PENDING:
        raise job.circle(new, trail)
    if final is None and (final := job.program.recorded(job, new)) is None:
        job.done[at] = PENDING
    return final


def remember(job: Job, node: Node, trail: Trail, final: Node) -> None:
    """Note the final form of a node and of its forms in between, and in the node itself for later calls."""
    done = job.done
    done[node] = final
    if len(trail) > 2:
        for form in trail[2::2]:
            done[form] = final
    if job.memo_key is not None:
        recall(node)[job.memo_key] = weakref.ref(final)


def drive(job: Job, root: Node) -> Node:
    """The final form of `root`. Iterative: the depth of a graph is bounded by memory alone. A node is gone through operand by
    operand; at one that is not finished its `Frame` is left on the stack, to be taken up again behind that operand.
    """
    program, done, stack, key, context = job.program, job.done, job.stack, job.memo_key, job.context
    plan, lookup, known, staged = program.plan, job.done.get, program.recorded, program.before is not None
    job.root = node = at = root
    trail: Trail = ()
    pending: Iterator[Any]
    fires, original, gathered = True, staged, False
    while True:  # `at` has not been looked at
        kids = operands(at)
        match, holds, whole = plan[opkey(at)]
        hit = job.original_hit(at) if original else None
        nest, changed = None, False
        if hit is not None:
            holds, pending = None, iter(())
        elif whole is not None and fires and not gathered and (nest := program.unfold(job, at)) is not None:
            holds, pending = None, reversed(nest)  # its terms are finished first, whatever their depth
        elif holds is None or len(kids) <= holds[2]:
            holds, pending = None, iter(kids)
        else:
            pending = _with_holds(kids, holds)
        while True:  # what is pending of the operands, and behind them `at` itself
            below = True
            if holds is not None:
                kid, below = job.waiting(pending)
            else:
                for kid in pending:
                    new = lookup(kid)
                    if new is kid:
                        continue
                    if new is None and (new := known(job, kid)) is None:
                        break
                    if new is PENDING:
                        raise job.circle(kid, trail)
                    changed = changed or new is not kid
                else:
                    kid = None
            if kid is not None:  # come back when it is finished
                stack.append((node, at, trail, fires, pending, changed, nest, kids, holds, match))
                node = at = kid
                trail, fires, original, gathered = (), below, below and staged, False
                break
            if nest is not None:
                hit = program.gather(job, at, nest, not trail, plan[opkey(at)][2], match)
                if hit is None:
                    nest, changed, pending = None, False, iter(kids)
                    continue
            elif hit is None:
                if (changed or holds is not None) and (fresh := job.finals_of(kids, holds, trail)) is not None:
                    changed = True
                    trail += (at, _REBUILT)
                    at, match, original = program.rebuilt(job, at, fresh, trail, fires, match)
                    if original:
                        break
                if match is not None and fires:  # stage 1: the node over finished operands
                    hit = match(at, context)
            if hit is not None:
                trail += (at, hit[1])
                final = program.replaced(job, at, hit[0], trail)
                if final is None:
                    at, original, gathered = hit[0], staged, hit[1] >= WHOLE
                    break
                at, hit = final, None
            else:  # `at` is final
                if not fires:
                    job.hold(at, trail)
                else:
                    done[at] = at
                    if key is not None:
                        recall(at)[key] = True
            if trail and fires:
                program.remember(job, node, trail, at)
            if not stack:
                return at
            moved = at is not node
            node, at, trail, fires, pending, changed, nest, kids, holds, match = stack.pop()
            changed = changed or moved
