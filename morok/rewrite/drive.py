"""The engine's loop: every node is finished after its operands, by explicit stacks."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from morok.dialect import Dialect, Node
from morok.errors import RewriteLimitError
from morok.rewrite import trace as traces
from morok.rewrite.brief import brief
from morok.rewrite.identity import IdentityMap
from morok.rewrite.ruleset import Match, Matcher


class Limits(NamedTuple):
    """How much rewriting is too much.

    per_node   rewritings of one node, and of what they make of it
    total      rewritings in one call, for a small graph
    per_size   how many more for each node of the graph that was given
    """

    per_node: int = 1_000
    total: int = 100_000
    per_size: int = 100


class _Pending:
    """Stands for the final form of a node that is being worked on."""

    def __repr__(self) -> str:
        return "PENDING"


PENDING: Final = _Pending()
RESUME: Final = object()  # on the stack: go on with the last frame
HELD: Final = object()  # on the stack: no rule fires on the node below
_REBUILT: Final = -1  # stands where a rule's number would, in a trail
_BEFORE: Final = 1 << 30  # added to the numbers of rules that see original nodes


Held = tuple[tuple[bool, ...], bool]  # whether each leading operand is held, and whether the others are

Planned = tuple["Match | None", "Held | None"]


class Job:
    """One call's state.

    done       the final form of every node that was finished, and PENDING for those in the making
    held       the same for nodes in positions where no rule fires
    plan       by op key: the match function, and which operands are held
    memo_key   under which finished nodes remember their final form; None where rules depend on a context
    fired      how many rules have fired
    """

    def __init__(
        self,
        dialect: Dialect,
        after: Matcher,
        before: Matcher | None,
        context: Any,
        limits: Limits,
        plan: Mapping[Hashable, Planned],
        memo_key: int | None,
        trace: traces.Trace | None,
        stage: str,
    ) -> None:
        self.dialect = dialect
        self.after = after
        self.before = before
        self.context = context
        self.limits = limits
        self.plan = plan
        self.fallback = (after.default, None)
        self.memo_key = memo_key
        self.trace = trace
        self.stage = stage
        self.done = _map_for(dialect)
        self.held = _map_for(dialect)
        self.fired = 0
        self.size: int | None = None
        self.root: Node = None
        self.stack: list[Any] = []
        self.frames: list[tuple[Node, Node, list[Any], bool]] = []

    def rule_name(self, number: int) -> str:
        if number >= _BEFORE:
            assert self.before is not None
            return self.before.names[number - _BEFORE]
        return self.after.names[number]

    def record(self, number: int, before: Node, after: Node) -> None:
        assert self.trace is not None
        self.trace.record(self.dialect, self.stage, self.rule_name(number), before, after)

    def recall(self, node: Node) -> Node | None:
        """The final form of a node if it is known: PENDING while it is in the making."""
        found = self.done.get(node)
        if found is None and self.memo_key is not None:
            kept = self.dialect.recall(node).get(self.memo_key)  # type: ignore[attr-defined]
            if kept is not None:
                found = node if kept is True else kept()
                if found is not None:
                    self.done[node] = self.done[found] = found
        return found

    def finals_of(self, kids: Sequence[Node], holds: Held) -> list[Node]:
        """The final forms of operands of which some are held; None for those that are not finished."""
        return [self.held.get(kid) if _is_held(holds, i) else self.recall(kid) for i, kid in enumerate(kids)]

    def push(self, kids: Sequence[Node], holds: Held) -> None:
        """Put unfinished operands of which some are held on the stack."""
        for i in range(len(kids) - 1, -1, -1):
            if _is_held(holds, i):
                if self.held.get(kids[i]) is None:
                    self.stack += (kids[i], HELD)
            elif self.recall(kids[i]) is None:
                self.stack.append(kids[i])

    def allow(self, trail: list[Any]) -> int:
        """Called when the count of firings reaches `limits.total`: the count to stop at, or RewriteLimitError."""
        if self.size is None:
            self.size = _size(self.dialect, self.root)
        allowed = self.limits.total + self.limits.per_size * self.size
        if self.fired >= allowed:
            raise self.too_many(trail, f"{self.fired:,} rewritings did not settle a graph of {self.size:,} nodes")
        return allowed

    def too_many(self, trail: list[Any], what: str) -> RewriteLimitError:
        names = [self.rule_name(n) for t in (*(f[2] for f in self.frames[-50:]), trail) for n in t[1::2] if n != _REBUILT]
        common = Counter(names[-1000:]).most_common(6)
        fired = ", ".join(f"{name} ({times:,} times)" for name, times in common)
        at = trail[0] if trail else self.root
        return RewriteLimitError(
            f"{what}; the last rules to fire: {fired}",
            excerpt=f"  at {brief(self.dialect, at)}",
            hint="make each rule produce something simpler, or raise Limits",
        )

    def circle(self, again: Node, trail: list[Any]) -> RewriteLimitError:
        """The error for a node whose final form depends on itself."""
        names: list[str] = []
        for path in (trail, *(f[2] for f in reversed(self.frames))):
            forms = [i for i in range(0, len(path), 2) if path[i] is again]
            first = forms[0] if forms else 0
            names[:0] = [self.rule_name(n) for n in path[first + 1 :: 2] if n != _REBUILT]
            if forms:
                break
        rules = " then ".join(names)
        return RewriteLimitError(
            f"rewriting goes in a circle: {rules} lead{'s' if len(names) == 1 else ''} back to the same node",
            excerpt=f"  at {brief(self.dialect, again)}",
            hint="two rules with opposite canonical forms; keep one, or guard both so that only one applies",
        )


def _is_held(holds: Held, i: int) -> bool:
    leading, rest = holds
    return leading[i] if i < len(leading) else rest


def _size(dialect: Dialect, root: Node) -> int:
    seen: Any = _map_for(dialect)
    stack = [root]
    total = 0
    while stack:
        node = stack.pop()
        if seen.get(node) is None:
            seen[node] = True
            total += 1
            stack.extend(dialect.operands(node))
    return total


def _map_for(dialect: Dialect) -> Any:
    """A map keyed by node identity: a dict where nodes hash by identity (hash-consed ones), else by address."""
    return {} if getattr(dialect, "hash_consed", False) else IdentityMap()


# What `specialize` puts in place of these names.
def opkey(node: Node) -> Hashable:
    raise NotImplementedError


def operands(node: Node) -> Sequence[Node]:
    raise NotImplementedError


def recall(node: Node) -> dict[int, Any]:
    raise NotImplementedError


def drive(job: Job, root: Node, rebuild: Any) -> Node:
    """The final form of `root`. Iterative: the depth of a graph is bounded by memory alone.

    The stack holds nodes to finish. One whose operands must be finished first leaves RESUME there and a frame: the node as it
    was given, its present form, its trail, whether rules fire on it. The trail lists earlier forms, each with the number of the
    rule that replaced it.
    """
    done = job.done
    lookup = done.get
    held = job.held
    plan = job.plan
    fallback = job.fallback
    before = job.before
    context = job.context
    key = job.memo_key
    tracing = job.trace is not None
    longest = 2 * job.limits.per_node
    allowed = job.limits.total
    stack = job.stack
    frames = job.frames
    pop = stack.pop
    push = stack.append
    push(root)
    while stack:
        node = pop()
        fires = True
        ready = False  # the operands are finished
        original = before is not None
        if node is RESUME:
            node, at, trail, fires = frames.pop()
            ready = True
            original = False
        elif node is HELD:
            at = node = pop()
            if held.get(node) is not None:
                continue
            trail = []
            fires = original = False
        else:
            if lookup(node) is not None:
                continue
            at = node
            trail = []
        while True:
            hit: Any = None
            fresh: Any
            if original:  # stage 0: the node as it was given
                original = False
                assert before is not None
                match = before.table.get(opkey(at), before.default)
                if match is not None:
                    hit = match(at, context)
                    if hit is not None:
                        hit = (hit[0], hit[1] + _BEFORE)
            if hit is None:
                match, holds = plan.get(opkey(at), fallback)
                kids = operands(at)
                if kids:
                    changed = waits = False
                    if holds is not None:
                        fresh = job.finals_of(kids, holds)
                        if None in fresh:
                            push(RESUME)
                            job.push(kids, holds)
                            waits = True
                        else:
                            for kid, new in zip(kids, fresh, strict=True):
                                if new is not kid:
                                    if new is PENDING:
                                        raise job.circle(kid, trail)
                                    changed = True
                    elif ready:
                        for kid in kids:
                            new = lookup(kid)
                            if new is not kid:
                                if new is PENDING:
                                    raise job.circle(kid, trail)
                                changed = True
                    else:
                        for kid in kids:
                            new = lookup(kid)
                            if new is kid:
                                continue
                            if new is None:
                                if before is None and not operands(kid) and plan.get(opkey(kid), fallback)[0] is None:
                                    done[kid] = kid  # a leaf that no rule is about
                                    continue
                                if key is not None and (kept := recall(kid).get(key)) is not None:
                                    new = kid if kept is True else kept()
                                if new is None:
                                    if not waits:
                                        waits = True
                                        push(RESUME)
                                        first = len(stack)
                                    push(kid)
                                    continue
                                done[kid] = done[new] = new
                                if new is kid:
                                    continue
                            if new is PENDING:
                                raise job.circle(kid, trail)
                            changed = True
                        if waits and len(stack) - first > 1:  # the first operand is finished first
                            stack[first:] = stack[: first - 1 : -1]
                    if waits:  # come back when they are finished
                        (done if fires else held)[at] = PENDING
                        frames.append((node, at, trail, fires))
                        break
                    if changed:
                        if holds is None:
                            fresh = [lookup(kid) for kid in kids]
                        (done if fires else held)[at] = PENDING
                        trail.append(at)
                        trail.append(_REBUILT)
                        at = rebuild(at, fresh)
                        known = job.recall(at) if fires else held.get(at)
                        if known is not None:
                            if known is PENDING:
                                raise job.circle(at, trail)
                            at = known
                            match = None
                        elif before is not None and fires:
                            original = True
                            ready = False
                            continue
                        elif opkey(at) is not opkey(trail[-2]):  # a constructor chose another op
                            match, holds = plan.get(opkey(at), fallback)
                if match is not None and fires:  # stage 1: the node over finished operands
                    hit = match(at, context)
                if hit is None:  # `at` is final
                    if fires:
                        done[at] = at
                        if trail:
                            for form in trail[::2]:
                                done[form] = at
                            if key is not None:
                                recall(node)[key] = weakref.ref(at)
                        if key is not None:
                            recall(at)[key] = True
                    else:
                        held[at] = at
                        for form in trail[::2]:
                            held[form] = at
                    break
            # a rule fired
            new, number = hit
            job.fired += 1
            trail.append(at)
            trail.append(number)
            if tracing:
                job.record(number, at, new)
            if job.fired >= allowed:
                allowed = job.allow(trail)
            if len(trail) > longest:
                raise job.too_many(trail, f"one node was rewritten {len(trail) // 2:,} times")
            done[at] = PENDING
            at = new
            known = lookup(new)
            if known is None and key is not None and (kept := recall(new).get(key)) is not None:
                known = new if kept is True else kept()
                if known is not None:
                    done[new] = done[known] = known
            if known is not None:
                if known is PENDING:
                    raise job.circle(new, trail)
                at = known
                for form in trail[::2]:
                    done[form] = at
                if key is not None:
                    recall(node)[key] = weakref.ref(at)
                break
            ready = False
            original = before is not None
    return done[root]
