"""Graph rewriting to a fixpoint.

Every node is finished after its operands: rebuilt over their final forms, then matched; what a rule makes of it is
finished in turn (stage 1). With `bottom_up` the rules see each node as it was before its operands were touched
(stage 0), and again after a rebuild. One call cascades until no rule fires anywhere: Where(Lt(3, 5), t, f) becomes t.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from morok.dialect import Dialect, Node
from morok.errors import RewriteLimitError
from morok.rewrite import trace as traces
from morok.rewrite.brief import brief
from morok.rewrite.identity import IdentityMap
from morok.rewrite.ruleset import Matcher, RuleSet
from morok.rewrite.specialize import specialize


@dataclass(frozen=True, slots=True)
class Limits:
    """How much rewriting is too much.

    per_node   rewritings of one node, and of what they make of it
    total      rewritings in one call, for a small graph
    per_size   how many more for each node of the graph that was given
    """

    per_node: int = 1_000
    total: int = 100_000
    per_size: int = 100


DEFAULT_LIMITS: Final = Limits()
# Value rules do not rewrite binders (ops.md, Positions): below a binder everything is rewritten, the binder itself is kept.
FIRES: Final = frozenset({"value", "place", "order"})


class _Pending:
    """Stands for the final form of a node that is being worked on."""

    def __repr__(self) -> str:
        return "PENDING"


PENDING: Final = _Pending()
_NO_RULES: Final = Matcher({}, None, ())
_REBUILT: Final = -1  # stands where a rule's number would, in a trail
_BEFORE: Final = 1 << 30  # added to the numbers of rules that see original nodes
_NOTHING_HELD: Final[Mapping[Hashable, tuple[tuple[bool, ...], bool]]] = {}


@dataclass(slots=True)
class Job:
    """One call's state.

    done       the final form of every node that was finished, and PENDING for those in the making
    held       the same for nodes in positions where no rule fires
    positions  by op key: whether each leading operand is held, and whether the others are
    memo_key   under which finished nodes remember their final form; None where rules depend on a context
    """

    dialect: Dialect
    after: Matcher
    before: Matcher | None
    context: Any
    limits: Limits
    done: Any
    held: Any
    positions: Mapping[Hashable, tuple[tuple[bool, ...], bool]]
    memo_key: int | None
    trace: traces.Trace | None = None
    stage: str = ""
    fired: int = 0
    size: int | None = None
    root: Node = None
    stack: list[Any] = field(default_factory=list)

    def rule_name(self, number: int) -> str:
        if number >= _BEFORE:
            assert self.before is not None
            return self.before.names[number - _BEFORE]
        return self.after.names[number]

    def record(self, number: int, before: Node, after: Node) -> None:
        assert self.trace is not None
        self.trace.record(self.dialect, self.stage, self.rule_name(number), before, after)

    def recall(self, node: Node) -> Node | None:
        """The final form of a node that rules just made, or of an original: None if it is not known."""
        found = self.done.get(node)
        if found is None and self.memo_key is not None:
            memo = self.dialect.recall(node)  # type: ignore[attr-defined]
            if memo is not None:
                kept = memo.get(self.memo_key)
                if kept is not None:
                    found = node if kept is True else kept()
                    if found is not None:
                        self.done[found] = found
        return found

    def finals_of(self, kids: Sequence[Node], holds: tuple[tuple[bool, ...], bool]) -> list[Node] | None:
        """The final forms of operands of which some are held; None if some are not finished."""
        fresh = []
        for i, kid in enumerate(kids):
            new = self.held.get(kid) if _is_held(holds, i) else self.recall(kid)
            if new is None:
                return None
            fresh.append(new)
        return fresh

    def push(self, kids: Sequence[Node], holds: tuple[tuple[bool, ...], bool]) -> None:
        """Put unfinished operands of which some are held on the stack."""
        for i in range(len(kids) - 1, -1, -1):
            finals = self.held if _is_held(holds, i) else self.done
            if finals.get(kids[i]) is None:
                self.stack.append((kids[i], kids[i], None, finals))

    def allow(self, trail: list[Any]) -> int:
        """Called when the count of firings reaches `limits.total`: the count to stop at, or RewriteLimitError."""
        if self.size is None:
            self.size = _size(self.dialect, self.root)
        allowed = self.limits.total + self.limits.per_size * self.size
        if self.fired >= allowed:
            raise self.too_many(trail, f"{self.fired:,} rewritings did not settle a graph of {self.size:,} nodes")
        return allowed

    def too_many(self, trail: list[Any], what: str) -> RewriteLimitError:
        names = [self.rule_name(n) for t in (*(f[2] or () for f in self.stack[-50:]), trail) for n in t[1::2] if n != _REBUILT]
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
        for path in (trail, *(f[2] or () for f in reversed(self.stack))):
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


def _is_held(holds: tuple[tuple[bool, ...], bool], i: int) -> bool:
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


def recall(node: Node) -> dict[int, Any] | None:
    raise NotImplementedError


def drive(job: Job, root: Node, rebuild: Any, remember: Any) -> Node:
    """The final form of `root`. Iterative: the depth of a graph is bounded by memory alone.

    A frame of the stack is (node, its present form, trail, map of final forms): the trail lists earlier forms, each with
    the number of the rule that replaced it, and is None until the operands were looked at.
    """
    done = job.done
    lookup = done.get
    held = job.held
    table = job.after.table
    default = job.after.default
    before = job.before
    positions = job.positions
    context = job.context
    key = job.memo_key
    tracing = job.trace is not None
    longest = 2 * job.limits.per_node
    allowed = job.limits.total
    stack = job.stack
    stack.append((root, root, None, done))
    while stack:
        node, at, trail, finals = stack.pop()
        fires = finals is done
        original = before is not None and fires and trail is None
        if trail is None:
            if (job.recall(node) if fires else held.get(node)) is not None:
                continue
            trail = []
        finished = False
        while True:
            # stage 0: the node as it was given
            if original:
                assert before is not None
                match = before.table.get(opkey(at), before.default)
                hit = None if match is None else match(at, context)
                if hit is not None:
                    new, number = hit
                    number += _BEFORE
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
                    known = job.recall(new)
                    if known is PENDING:
                        raise job.circle(new, trail)
                    at = new
                    if known is not None:
                        at = known
                        break
                    continue
                original = False
            # the operands' final forms
            kids = operands(at)
            if kids:
                holds = positions.get(opkey(at))
                fresh: list[Any] | None
                if holds is not None:
                    fresh = job.finals_of(kids, holds)
                else:
                    fresh = found = []
                    for kid in kids:
                        new = lookup(kid)
                        if (
                            new is None
                            and key is not None
                            and (memo := recall(kid)) is not None
                            and (kept := memo.get(key)) is not None
                        ):
                            new = kid if kept is True else kept()
                            if new is not None:
                                done[kid] = done[new] = new
                        if new is None:
                            fresh = None
                            break
                        found.append(new)
                if fresh is None:  # some operand is not finished: come back when it is
                    finals[at] = PENDING
                    stack.append((node, at, trail, finals))
                    if holds is not None:
                        job.push(kids, holds)
                    else:
                        for kid in reversed(kids):
                            if lookup(kid) is None:
                                stack.append((kid, kid, None, done))
                    at = PENDING
                    break
                for kid, new in zip(kids, fresh, strict=True):
                    if new is not kid:
                        if PENDING in fresh:
                            raise job.circle(kids[fresh.index(PENDING)], trail)
                        trail.append(at)
                        trail.append(_REBUILT)
                        finals[at] = PENDING
                        at = rebuild(at, fresh)
                        known = job.recall(at) if fires else held.get(at)
                        if known is not None:
                            if known is PENDING:
                                raise job.circle(at, trail)
                            at = known
                            finished = True
                        original = before is not None and fires
                        break
                if finished:
                    break
                if original:
                    continue
            # stage 1: the node over finished operands
            if not fires:
                break
            match = table.get(opkey(at), default)
            if match is None:
                break
            hit = match(at, context)
            if hit is None:
                break
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
            known = job.recall(new)
            if known is PENDING:
                raise job.circle(new, trail)
            at = new
            if known is not None:
                at = known
                break
            original = before is not None
        if at is PENDING:
            continue
        finals[at] = at
        if trail:
            for i in range(0, len(trail), 2):
                finals[trail[i]] = at
        elif node is not at:
            finals[node] = at
        if key is not None and fires:
            remember(at, key, True)
            if node is not at:
                remember(node, key, weakref.ref(at))
    return done[root]


_drivers: dict[int, tuple[Dialect, Any]] = {}


def _driver(dialect: Dialect) -> Any:
    found = _drivers.get(id(dialect))
    if found is None or found[0] is not dialect:
        found = _drivers[id(dialect)] = (dialect, specialize(drive, dialect))
    return found[1]


_held: dict[tuple[str, frozenset[str]], Mapping[Hashable, tuple[tuple[bool, ...], bool]]] = {}


def _positions(dialect: Dialect, fires: frozenset[str]) -> Mapping[Hashable, tuple[tuple[bool, ...], bool]]:
    """For each op with operands in positions where nothing fires: which of the leading ones, and whether the rest."""
    found = _held.get((dialect.name, fires))
    if found is None:
        table: dict[Hashable, tuple[tuple[bool, ...], bool]] = {}
        for info in dialect.ops.values():
            leading: list[bool] = []
            rest = False
            for o in info.operands:
                if o.many:
                    rest = o.position not in fires
                    break
                leading.append(o.position not in fires)
            if rest or any(leading):
                table[info.key] = (tuple(leading), rest)
        found = _held[(dialect.name, fires)] = table
    return found


_memo_keys: dict[Any, int] = {}
_next_memo_key = count(1)


def _memo_key(after: RuleSet | None, before: RuleSet | None, fires: frozenset[str]) -> int | None:
    """A number for what these rules make of a node; None if that depends on a context."""
    if any(r is not None and r.has_context for r in (after, before)):
        return None
    what = (after and after.identity, before and before.identity, fires)
    found = _memo_keys.get(what)
    if found is None:
        found = _memo_keys.setdefault(what, next(_next_memo_key))
    return found


def graph_rewrite(
    root: Node,
    rules: RuleSet | None,
    *,
    context: Any = None,
    bottom_up: bool = False,
    before: RuleSet | None = None,
    positions: frozenset[str] = FIRES,
    limits: Limits = DEFAULT_LIMITS,
    trace: traces.Trace | None = None,
    stage: str = "",
) -> Node:
    """`root` rewritten until no rule fires.

    rules      see each node over rewritten operands; with `bottom_up` they see the node as it was given instead
    before     rules that see original nodes, together with `rules` that see rewritten ones
    context    what rules of `@context` groups get as their helpers' last argument
    positions  in which operand positions rules fire ("value", "place", "order", "binder"); operands below are always reached
    limits     RewriteLimitError beyond them, and where rules lead in a circle; both name the rules
    trace      where firings are recorded (default: the current trace, see morok.rewrite.trace)
    stage      what traces and provenance call this rewriting
    """
    return rewrite_all(
        (root,),
        rules,
        context=context,
        bottom_up=bottom_up,
        before=before,
        positions=positions,
        limits=limits,
        trace=trace,
        stage=stage,
    )[0]


def rewrite_all(
    roots: Sequence[Node],
    rules: RuleSet | None,
    *,
    context: Any = None,
    bottom_up: bool = False,
    before: RuleSet | None = None,
    positions: frozenset[str] = FIRES,
    limits: Limits = DEFAULT_LIMITS,
    trace: traces.Trace | None = None,
    stage: str = "",
) -> list[Node]:
    """Several roots in one rewriting: what they share is rewritten once. The arguments are those of `graph_rewrite`."""
    if bottom_up:
        if before is not None:
            raise ValueError("bottom_up puts `rules` in the place of `before`: give one of them")
        rules, before = None, rules
    first = rules if rules is not None else before
    if first is None:
        return list(roots)
    dialect = first.dialect
    if rules is not None and before is not None and rules.dialect is not before.dialect:
        raise ValueError(f"rules of dialect {rules.dialect.name} and of {before.dialect.name} rewrite different graphs")
    trace = trace or traces.current()
    remember = getattr(dialect, "remember", None)
    job = Job(
        dialect=dialect,
        after=_NO_RULES if rules is None else rules.matcher,
        before=None if before is None else before.matcher,
        context=context,
        limits=limits,
        done=_map_for(dialect),
        held=_map_for(dialect),
        positions=_positions(dialect, positions),
        # a trace is to show every firing, so what is remembered from earlier calls is not used
        memo_key=None if remember is None or trace is not None else _memo_key(rules, before, positions),
        trace=trace,
        stage=stage,
    )
    run = _driver(dialect)
    maker = getattr(dialect, "maker", None)
    if maker is None:
        return [_finish(run, job, root, dialect, remember) for root in roots]
    origin, maker_stage = maker.origin, maker.stage
    maker.stage = stage
    try:
        out = []
        for root in roots:
            maker.origin = dialect.origin(root)  # type: ignore[attr-defined]
            out.append(_finish(run, job, root, dialect, remember))
        return out
    finally:
        maker.origin = origin
        maker.stage = maker_stage


def _finish(run: Any, job: Job, root: Node, dialect: Dialect, remember: Any) -> Node:
    job.root = root
    known = job.recall(root)
    if known is not None:
        return known
    return run(job, root, dialect.rebuild, remember)


__all__ = ["DEFAULT_LIMITS", "FIRES", "Limits", "RuleSet", "graph_rewrite", "rewrite_all"]
