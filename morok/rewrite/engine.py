"""Graph rewriting to a fixpoint.

The engine finishes the operands of a node first, rebuilds the node over their final forms, and matches it. If a rule fires, the
engine finishes the result in the same way. With `bottom_up` the rules see each node before its operands are rewritten, and again
after each rebuild. One call ends when no rule fires anywhere: Where(Lt(3, 5), t, f) becomes t.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from types import ModuleType
from typing import Any, Final, NamedTuple

from morok import config
from morok.dialect import Dialect, Nests, Node, Remembers, Traces
from morok.interrupts import check
from morok.locks import RULES
from morok.rewrite import ac_chains, fixpoint
from morok.rewrite import trace as traces
from morok.rewrite.matcher import Matcher
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.specialize import specialize
from morok.rewrite.state import Frozen, Limits, Planned, RewriteState, map_of

DEFAULT_LIMITS: Final = Limits()
_NO_RULES: Final = Matcher({}, None, ())

Rebuild = Callable[[Node, tuple[Node, ...]], Node]

_specialized: dict[tuple[str, int], tuple[Dialect, Mapping[str, Any]]] = {}


def _specialized_functions(module: ModuleType, dialect: Dialect) -> Mapping[str, Any]:
    """The functions of a module by name, specialized for a dialect."""
    found = _specialized.get((module.__name__, id(dialect)))
    if found is None or found[0] is not dialect:
        found = _specialized[module.__name__, id(dialect)] = (dialect, specialize(module, dialect))
    return found[1]


_frozen_tables: dict[tuple[str, frozenset[str]], tuple[Dialect, Mapping[Hashable, Frozen]]] = {}


def _frozen_operands(dialect: Dialect, fires: frozenset[str]) -> Mapping[Hashable, Frozen]:
    """The frozen operands of ops by op key: those in positions where no rule fires. Ops without any are left out."""
    found = _frozen_tables.get((dialect.name, fires))
    if found is None or found[0] is not dialect:
        table: dict[Hashable, Frozen] = {}
        for info in dialect.ops.values():
            leading: list[bool] = []
            rest = False
            for o in info.operands:
                if o.many:
                    rest = o.position not in fires
                    break
                leading.append(o.position not in fires)
            if rest or any(leading):
                first = leading.index(True) if any(leading) else len(leading)
                table[info.key] = (tuple(leading), rest, first)
        found = _frozen_tables[(dialect.name, fires)] = (dialect, table)
    return found[1]


class _Plan(dict[Hashable, Planned]):
    """The match functions and the frozen operands by op key. An op that no rule names gets the rules that match every op."""

    def __init__(
        self,
        before: Matcher,
        after: Matcher,
        whole: Matcher,
        frozen: Mapping[Hashable, Frozen],
        keys: Iterable[Hashable],
    ) -> None:
        self.others: Planned = (before.default, after.default, None, None)
        for k in {*keys, *before.table, *after.table, *frozen}:
            first, match = before.table.get(k, before.default), after.table.get(k, after.default)
            self[k] = (first, match, frozen.get(k), whole.table.get(k))

    def __missing__(self, key: Hashable) -> Planned:
        return self.others


class _Program:
    """The state shared by all calls of the engine with the same rules."""

    def __init__(
        self, dialect: Dialect, after: Matcher, before: Matcher | None, whole: Matcher | None, fires: frozenset[str]
    ) -> None:
        self.dialect = dialect
        self.after = after
        self.before = before
        self.whole = whole
        # rules that see original nodes see the inner nodes of chains too
        seen = whole if whole is not None and before is None and isinstance(dialect, Nests) else _NO_RULES
        keys = [info.key for info in dialect.ops.values()]
        self.plan = _Plan(before or _NO_RULES, after, seen, _frozen_operands(dialect, fires), keys)
        self.inert_ops = frozenset(k for k, (first, match, *_) in self.plan.items() if first is match is None)
        self.memo_key = _memo_key(_program_key(after, before, whole, fires))
        self.rewrite_fixpoint = _specialized_functions(fixpoint, dialect)["rewrite_fixpoint"]
        self.sketch: Any = getattr(dialect, "sketch", None)
        self.flatten = _specialized_functions(ac_chains, dialect)["flatten"]
        self.gather = _specialized_functions(ac_chains, dialect)["gather"]
        unproved = any(m is not None and m.unproved for m in (after, before, whole))
        self.memory = dialect if isinstance(dialect, Remembers) and not unproved else None
        self.new_map = map_of(dialect)
        self.history = dialect if isinstance(dialect, Traces) else None


class InitialSubstitution(NamedTuple):
    """The initial substitution: nodes already mapped to their replacements, which the rules see instead.

    forms    replacements in positions where rules fire
    frozen   replacements in the other positions
    rebuild  wraps `rebuild` for stages that replace a node differently in value and in binder position
    """

    forms: Mapping[Node, Node]
    frozen: Mapping[Node, Node]
    rebuild: Callable[[Rebuild], Rebuild]


ProgramKey = tuple[int, int, int, frozenset[str]]
_PROGRAMS: Final = 1024  # so many are kept for sets of the same rules; one that is dropped is made again
_programs: dict[tuple[str, ProgramKey], _Program] = {}


def _program_key(after: Matcher, before: Matcher | None, whole: Matcher | None, fires: frozenset[str]) -> ProgramKey:
    return after.serial, 0 if before is None else before.serial, 0 if whole is None else whole.serial, fires


def _program(
    dialect: Dialect, after: Matcher, before: Matcher | None, whole: Matcher | None, fires: frozenset[str]
) -> _Program:
    key = (dialect.name, _program_key(after, before, whole, fires))
    found = _programs.get(key)
    if found is None or found.after is not after or found.before is not before or found.whole is not whole:
        found = _programs[key] = _Program(dialect, after, before, whole, fires)
        for oldest in list(_programs)[:-_PROGRAMS]:
            _programs.pop(oldest, None)  # another thread may have dropped it
    return found


_memo_keys: dict[ProgramKey, int] = {}
_next_memo_key = count(1)


def _memo_key(key: ProgramKey) -> int:
    """The key under which nodes remember their final forms under these rules."""
    found = _memo_keys.get(key)
    if found is None:
        found = _memo_keys.setdefault(key, next(_next_memo_key))
    return found


def graph_rewrite(
    root: Node,
    rules: RuleSet | None,
    *,
    context: Any = None,
    bottom_up: bool = False,
    before: RuleSet | None = None,
    positions: frozenset[str] | None = None,
    initial: InitialSubstitution | None = None,
    limits: Limits = DEFAULT_LIMITS,
    trace: traces.Trace | None = None,
    stage: str = "",
    remember: bool = True,
) -> Node:
    """`root` rewritten until no rule fires.

    rules      the rules; they see each node over rewritten operands, or with `bottom_up` the original node
    before     further rules, which see original nodes while `rules` see rewritten ones
    context    the last argument of the helpers of `@context` groups
    positions  the operand positions in which rules fire: "value", "place", "order", "binder" (default: those of the rules).
               Operands in other positions are kept, but nodes below them are rewritten
    initial    the initial substitution: nodes already mapped to their replacements
    limits     the limits on firings. RewriteLimitError beyond them, and for rules that form a cycle; it names the rules
    trace      the record of firings (default: the current trace, see morok.rewrite.trace)
    stage      the name of this rewriting in traces and provenance
    remember   True if nodes remember their final forms for later calls with the same rules
    """
    return rewrite_all(
        (root,),
        rules,
        context=context,
        bottom_up=bottom_up,
        before=before,
        positions=positions,
        initial=initial,
        limits=limits,
        trace=trace,
        stage=stage,
        remember=remember,
    )[0]


def rewrite_all(
    roots: Sequence[Node],
    rules: RuleSet | None,
    *,
    context: Any = None,
    bottom_up: bool = False,
    before: RuleSet | None = None,
    positions: frozenset[str] | None = None,
    initial: InitialSubstitution | None = None,
    limits: Limits = DEFAULT_LIMITS,
    trace: traces.Trace | None = None,
    stage: str = "",
    remember: bool = True,
) -> list[Node]:
    """The roots, rewritten together: shared nodes are rewritten once. The arguments are those of `graph_rewrite`."""
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
    if positions is None:  # by default rules keep binders and rewrite the nodes below them (ops.md, Positions)
        positions = first.fires if before is None or rules is None else rules.fires & before.fires
    check()
    flags, checked, path = config.REWRITING.values
    if trace is None:
        trace = traces.current_or(path)
    program: _Program | None = (
        None if rules is None or before is not None else rules.programs.get((flags, checked, positions))
    )
    if program is None:
        program = _make_program(dialect, rules, before, (flags, checked, positions))
    contextual = (rules is not None and rules.has_context) or (before is not None and before.has_context)
    # a trace must show every firing, so a traced call does not use results remembered from earlier calls
    isolated = contextual or initial is not None or trace is not None or not remember
    rebuild: Rebuild = dialect.rebuild if initial is None else initial.rebuild(dialect.rebuild)
    memo_key = None if isolated or program.memory is None else program.memo_key
    state = RewriteState(program, context, limits, memo_key, trace, stage, rebuild)
    if initial is not None:
        for node, form in initial.forms.items():
            state.done[node] = form
        for node, form in initial.frozen.items():
            state.frozen[node] = form
    if program.history is None:
        return [program.rewrite_fixpoint(state, root) for root in roots]
    return _traced(program, program.history, state, roots)


def _traced(program: _Program, history: Traces, state: RewriteState, roots: Sequence[Node]) -> list[Node]:
    """The final forms of the roots. New nodes get as provenance the root that they come from and the stage of this call."""
    maker, stage = history.maker, state.stage
    origin, maker_stage = maker.origin, maker.stage
    try:
        if stage != maker_stage:
            maker.stage = stage
        out = []
        for root in roots:
            maker.origin = history.origin(root)
            out.append(program.rewrite_fixpoint(state, root))
        return out
    finally:
        maker.origin = origin
        if stage != maker_stage:
            maker.stage = maker_stage


def _make_program(
    dialect: Dialect,
    rules: RuleSet | None,
    before: RuleSet | None,
    conditions: tuple[frozenset[str], bool, frozenset[str]],
) -> _Program:
    """The program of these rules under `conditions`: (flags, checked, positions). Without `before`, the rule set keeps it."""
    flags, checked, positions = conditions
    with RULES:
        program = _program(
            dialect,
            _NO_RULES if rules is None else rules.matcher_under(flags, checked),
            None if before is None else before.matcher_under(flags, checked),
            None if rules is None or rules.whole is None else rules.whole.matcher_under(flags, checked),
            positions,
        )
    if rules is not None and before is None:
        rules.programs[conditions] = program
    return program


def fire(node: Node, rules: RuleSet, *, stage: str = "") -> Node | None:
    """The result of the first rule that applies at the root of a node; None if none applies. Traces record the firing."""
    check()
    dialect = rules.dialect
    maker = getattr(dialect, "maker", None)
    outer = "" if maker is None else maker.stage
    if maker is not None:
        maker.stage = stage
    try:
        hit = rules.rewrite_node(node)
    finally:
        if maker is not None:
            maker.stage = outer
    trace = traces.current()
    if hit is not None and trace is not None:
        trace.record(dialect, stage, hit[1], node, hit[0])
    return None if hit is None else hit[0]


__all__ = ["DEFAULT_LIMITS", "InitialSubstitution", "Limits", "RuleSet", "fire", "graph_rewrite", "rewrite_all"]
