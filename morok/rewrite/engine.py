"""Graph rewriting to a fixpoint.

Every node is finished after its operands: rebuilt over their final forms, then matched; what a rule makes of it is
finished in turn (stage 1). With `bottom_up` the rules see each node as it was before its operands were touched
(stage 0), and again after a rebuild. One call cascades until no rule fires anywhere: Where(Lt(3, 5), t, f) becomes t.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from morok.dialect import Dialect, Node
from morok.rewrite import trace as traces
from morok.rewrite.drive import Held, Job, Limits, Planned, drive
from morok.rewrite.ruleset import Matcher, RuleSet
from morok.rewrite.specialize import specialize

DEFAULT_LIMITS: Final = Limits()
# Value rules do not rewrite binders (ops.md, Positions): below a binder everything is rewritten, the binder itself is kept.
FIRES: Final = frozenset({"value", "place", "order"})
_NO_RULES: Final = Matcher({}, None, ())

_drivers: dict[int, tuple[Dialect, Any]] = {}


def _driver(dialect: Dialect) -> Any:
    found = _drivers.get(id(dialect))
    if found is None or found[0] is not dialect:
        found = _drivers[id(dialect)] = (dialect, specialize(drive, dialect))
    return found[1]


_held: dict[tuple[str, frozenset[str]], Mapping[Hashable, Held]] = {}


def _positions(dialect: Dialect, fires: frozenset[str]) -> Mapping[Hashable, Held]:
    """For each op with operands in positions where nothing fires: which of the leading ones, and whether the rest."""
    found = _held.get((dialect.name, fires))
    if found is None:
        table: dict[Hashable, Held] = {}
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


_plans: dict[tuple[str, int, frozenset[str]], tuple[Matcher, Mapping[Hashable, Planned]]] = {}


def _plan(dialect: Dialect, after: Matcher, fires: frozenset[str]) -> Mapping[Hashable, Planned]:
    what = (dialect.name, after.serial, fires)
    found = _plans.get(what)
    if found is None or found[0] is not after:
        held = _positions(dialect, fires)
        plan = {k: (after.table.get(k, after.default), held.get(k)) for k in {*after.table, *held}}
        found = _plans[what] = (after, plan)
    return found[1]


_memo_keys: dict[tuple[int, int, frozenset[str]], int] = {}
_next_memo_key = count(1)


def _memo_key(after: Matcher, before: Matcher | None, fires: frozenset[str]) -> int:
    """A number for what these rules make of a node."""
    what = (after.serial, 0 if before is None else before.serial, fires)
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
    contextual = any(r is not None and r.has_context for r in (rules, before))
    after_matcher = _NO_RULES if rules is None else rules.matcher
    before_matcher = None if before is None else before.matcher
    # a trace is to show every firing, so what is remembered from earlier calls is not used
    forgetful = not hasattr(dialect, "recall") or contextual or trace is not None
    job = Job(
        dialect=dialect,
        after=after_matcher,
        before=before_matcher,
        context=context,
        limits=limits,
        plan=_plan(dialect, after_matcher, positions),
        memo_key=None if forgetful else _memo_key(after_matcher, before_matcher, positions),
        trace=trace,
        stage=stage,
    )
    run = _driver(dialect)
    maker = getattr(dialect, "maker", None)
    if maker is None:
        return [_finish(run, job, root) for root in roots]
    origin, maker_stage = maker.origin, maker.stage
    maker.stage = stage
    try:
        out = []
        for root in roots:
            maker.origin = dialect.origin(root)  # type: ignore[attr-defined]
            out.append(_finish(run, job, root))
        return out
    finally:
        maker.origin = origin
        maker.stage = maker_stage


def _finish(run: Any, job: Job, root: Node) -> Node:
    job.root = root
    known = job.recall(root)
    return run(job, root, job.dialect.rebuild) if known is None else known


__all__ = ["DEFAULT_LIMITS", "FIRES", "Limits", "RuleSet", "graph_rewrite", "rewrite_all"]
