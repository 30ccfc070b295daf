"""Mutation testing: does anybody notice when a rule is changed?

Every mutant of a proved rule must be refuted, never apply, or be a true rule itself. Most die by evaluation at 8 bits, which
costs a fiftieth of a proof; the solver judges the others. What is proved is listed: most are other ways to say the rule, but a
mutant whose guard lets more through is a finding against our guard. A mutant that evaluation shows to be false and that the
prover calls true is a finding against the prover. Where the prover cannot decide, evaluation goes on at every dtype.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from morok.dsl.checked import CheckedRule, Instance
from morok.errors import RuleError
from morok.prove import processes, workers
from morok.prove.measuring import measuring
from morok.prove.trust import differential
from morok.prove.trust.mutants import Mutant, mutants, recheck
from morok.prove.verdict import Verdict

NOTICED: Final = ("evaluated", "refuted", "ill-typed", "inapplicable")
KINDS: Final = (*NOTICED, "true", "wider", "unknown", "error", "disputed")
TOGETHER: Final = 16  # dtypes, or choices of several, that the prover is asked about at once
CROSS_CHECK: Final = 10  # of so many mutants that evaluation refutes, one is shown to the prover too


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a mutant.

    kind    "evaluated" (evaluation refuted it), "refuted" (the solver did), "ill-typed", "inapplicable", "true" (proved: a true
            rule itself), "wider" (proved, and by its guard it fires where the original does not), "unknown", "error",
            "disputed" (refuted by evaluation, and yet proved)
    detail  the counterexample, the scope of the proof, the graph on which it fires and the original does not
    """

    rule: str
    change: str
    kind: str
    detail: str = ""

    @property
    def noticed(self) -> bool:
        return self.kind in NOTICED


Pair = tuple[CheckedRule, Mutant]


def every(rules: Iterable[CheckedRule]) -> list[Pair]:
    return [(r, m) for r in rules for m in mutants(r.syntax, r.dialect)]


@dataclass(frozen=True, slots=True)
class _Sift:
    """Evaluate the mutants of one rule: their numbers."""

    of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """The findings of evaluation about a mutant: a counterexample; a graph on which it fires and the original does not."""

    false: str | None = None
    further: str | None = None


@dataclass(frozen=True, slots=True)
class _Judge:
    """Ask the prover about a mutant."""

    which: int
    shown: Shown


# by the numbers of mutants: what became of them, and what evaluation has found of those that the prover is to judge
_Answer = tuple[dict[int, Outcome], dict[int, Shown]]


def run(
    pairs: Sequence[Pair], budget: int, jobs: int = 1, done: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """The outcomes of these mutants, in their order. `budget` is in solver units an obligation; `done` hears of each as it comes.

    The mutants of a rule are first evaluated together, then each that is left, and some that are not, in a process of its own.
    """
    found: dict[int, Outcome] = {}

    def work(task: _Sift | _Judge) -> _Answer:
        if isinstance(task, _Sift):
            return sift([(i, *pairs[i]) for i in task.of])
        return {task.which: judge(*pairs[task.which], task.shown, budget)}, {}

    def died(task: _Sift | _Judge, why: str) -> _Answer:
        which = task.of if isinstance(task, _Sift) else (task.which,)
        return {i: Outcome(pairs[i][0].name, pairs[i][1].change, "error", why) for i in which}, {}

    by_rule: dict[int, list[int]] = {}
    for i, (rule, _) in enumerate(pairs):
        by_rule.setdefault(id(rule), []).append(i)
    tasks: deque[_Sift | _Judge] = deque(_Sift(tuple(which)) for which in by_rule.values())
    workers.load_solver(r for r, _ in pairs)
    for rule in [r for r, _ in pairs if r.syntax.within is not None][:1]:
        measuring().code_digests(rule)  # which loads the code generator, before processes are forked
    for _, (known, asked) in processes.in_processes(tasks, work, died, jobs):
        tasks.extendleft(_Judge(i, shown) for i, shown in reversed(asked.items()))  # so that a rule is soon done with
        for i, outcome in known.items():
            found[i] = outcome
            if done is not None:
                done(outcome)
    return [found[i] for i in range(len(pairs))]


def is_cross_checked(rule: str, change: str) -> bool:
    """True if the prover is asked about this mutant even if evaluation refutes it."""
    return crc32(f"{rule} {change}".encode()) % CROSS_CHECK == 0


def sift(which: Iterable[tuple[int, CheckedRule, Mutant]]) -> _Answer:
    """The findings of evaluation about mutants of one rule."""
    known: dict[int, Outcome] = {}
    asked: dict[int, Shown] = {}
    unchanged: differential.Original | None = None
    for i, original, mutant in which:
        try:
            rule = recheck(original, mutant.rule)
        except RuleError as why:
            known[i] = Outcome(original.name, mutant.change, "ill-typed", why.message)
            continue
        unchanged = unchanged or differential.Original(original)
        if unchanged.serves(rule):
            false, further = differential.compared(rule, unchanged, mutant.guard)
            shown = Shown(_said(false), further)
        else:
            shown = Shown(_said(differential.counterexample(rule)))
        if not shown.false or is_cross_checked(original.name, mutant.change):
            asked[i] = shown
        else:
            known[i] = Outcome(original.name, mutant.change, "evaluated", shown.false)
    return known, asked


def _said(found: differential.Difference | None) -> str | None:
    return None if found is None else str(found)


def judge(original: CheckedRule, mutant: Mutant, shown: Shown, budget: int) -> Outcome:
    """The prover's outcome for a mutant."""
    rule = recheck(original, mutant.rule)
    if rule.syntax.within is None:
        verdict = in_stages(rule, budget)
    else:
        verdict = measuring().judge_trial(rule, [r for r in measuring().companions(original) if r.own != original.own])
    kind, detail = verdict.verdict, verdict.message or "; ".join(verdict.scope)
    if shown.false:
        kind, detail = "disputed" if verdict.usable else "evaluated", shown.false
    elif verdict.usable:
        kind, detail = ("wider", shown.further) if mutant.guard and shown.further else ("true", detail)
    elif kind == "unknown":
        late = differential.counterexample(rule, differential.Trials(rule, rule.instances), differential.FURTHER)
        kind, detail = ("evaluated", str(late)) if late is not None else (kind, detail)
    return Outcome(original.name, mutant.change, kind, detail)


def in_stages(rule: CheckedRule, budget: int) -> Verdict:
    """The verdict on a rule that is likely false, some dtypes at a time: one refutation is enough.

    What is unknown at the narrowest dtype is asked once more, at one of another kind, and then left.
    """
    found: list[Verdict] = []
    unknown: Verdict | None = None
    for instances in stages(rule):
        some = instances if unknown is None else instances[:1]
        verdict = workers.judge(
            dataclasses.replace(rule, instances=some), budget if unknown is None else budget // 10, False
        )
        if verdict.verdict not in ("inapplicable", "unknown") and not verdict.usable:
            return verdict
        if unknown is not None:
            break
        unknown = verdict if verdict.verdict == "unknown" else None
        found.append(verdict)
    usable = [v for v in found if v.usable]
    return unknown or (usable[0] if usable else found[0])


def stages(rule: CheckedRule) -> list[tuple[Instance, ...]]:
    """The instances in the order in which they are tried: the narrowest; the narrowest of the other kinds (bool, signed,
    unsigned, index, float); the rest, some at a time.
    """
    kinds: dict[tuple[str, ...], Instance] = {}
    for instance in rule.instances:
        kinds.setdefault(tuple(d.rstrip("0123456789") for d in instance.dtypes.values()), instance)
    first, *others = kinds.values()
    chosen = {id(i) for i in kinds.values()}
    rest = [i for i in rule.instances if id(i) not in chosen]
    parts = [others[i : i + TOGETHER] for i in range(0, len(others), TOGETHER)]
    parts += [rest[i : i + TOGETHER] for i in range(0, len(rest), TOGETHER)]
    return [(first,), *map(tuple, parts)]
