"""A run of the adversary: candidates in processes, what became of them, and the findings, minimized."""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from morok.dsl.checked import CheckedRule
from morok.errors import RuleError
from morok.prove import processes, workers
from morok.prove.attack import foreign_dialects, machine_code, promised
from morok.prove.attack.candidates import candidate, library, written
from morok.prove.attack.features import KINDS, features
from morok.prove.attack.minimize import minimized
from morok.prove.attack.outcome import Outcome
from morok.prove.attack.trial import checked, put

CHUNK: Final = 20  # candidates that share a process, so that no candidate depends on how many are tried at once
HUNDRED_THOUSAND: Final = 100_000
# The themes whose rules come with more than their text, and how these are put to trial.
OWN_TRIALS: Final[Mapping[str, Callable[[str, str], Outcome]]] = {
    "foreign": foreign_dialects.put,
    "promised": promised.put,
}
WANTED: Final = 100  # of each op, function, dtype and class, in so many


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that is false, and usable: its text, what made it, and what shows that it is false."""

    number: int
    theme: str
    text: str
    shown: str
    scope: str


@dataclass(slots=True)
class Report:
    """The findings of a run so far.

    states    of the rules, by theme
    seen      of those that are usable and fired with two sides that differ: how many have each op, function, dtype, class
    large     of the same, how many fired on graphs with 5 to 64 lanes or items
    errors    what ended the prover, or a trial, each with the rule that it was
    """

    seed: int
    rules: int = 0
    states: dict[str, Counter[str]] = field(default_factory=dict)
    counted: int = 0
    large: int = 0
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    errors: list[tuple[int, str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, one: Tried) -> None:
        self.rules += 1
        self.states.setdefault(one.theme, Counter())[one.outcome.state] += 1
        if one.outcome.state == "error":
            self.errors.append((one.number, one.outcome.message, one.text))
        if one.outcome.counts:
            self.counted += 1
            self.large += one.outcome.large > 0
            self.seen.update(one.features)
        if one.finding is not None:
            self.findings.append(one.finding)

    def of_state(self, state: str) -> int:
        return sum(c[state] for c in self.states.values())

    def rare(self, kind: str) -> dict[str, int]:
        """The items of a kind that would occur less often than they should in 10^5 rules, with their frequency."""
        scale = HUNDRED_THOUSAND / max(self.rules, 1)
        found = {name: round(self.seen[kind, name] * scale) for name in sorted(KINDS[kind])}
        return {name: n for name, n in found.items() if n < WANTED}

    def json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "rules": self.rules,
            "seconds": round(self.seconds, 1),
            "states": {theme: dict(c) for theme, c in sorted(self.states.items())},
            "usable, with two sides that differ": self.counted,
            "of them at 5 to 64 lanes or items": self.large,
            "seen": {kind: {n: self.seen[kind, n] for n in sorted(KINDS[kind])} for kind in KINDS},
            "findings": [
                {"number": f.number, "theme": f.theme, "rule": f.text, "shown": f.shown, "scope": f.scope}
                for f in self.findings
            ],
            "errors": [{"number": n, "message": m, "rule": t} for n, m, t in self.errors],
        }


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate, and what became of it."""

    number: int
    theme: str
    outcome: Outcome
    features: list[tuple[str, str]] = field(default_factory=list)
    finding: Finding | None = None
    text: str = ""


def tried(seed: int, number: int, small: bool = True) -> Tried:
    """One candidate put to trial; a finding is minimized if it is to be `small`."""
    made = candidate(seed, number)
    name = f"{seed} {number}"
    try:
        if made.theme in OWN_TRIALS:
            fared = OWN_TRIALS[made.theme](made.text, name)
            finding = (
                Finding(number, made.theme, made.text, fared.shown, fared.message) if fared.state == "false" else None
            )
            counted = promised.exercised(made.text) if fared.counts and made.theme == "promised" else []
            return Tried(number, made.theme, fared, counted, finding, made.text)
        rule = checked(made.text)
        outcome = put(rule, name)
    except RuleError as why:
        return Tried(number, made.theme, Outcome("ill-typed", message=why.message))
    except Exception as problem:  # a trial that ends like this is reported: it is the product's mistake, or ours
        return Tried(
            number, made.theme, Outcome("error", message=f"{type(problem).__name__}: {problem}"), text=made.text
        )
    if outcome.state != "false":
        return Tried(number, made.theme, outcome, features(rule) if outcome.counts else [], text=made.text)
    least = minimized(rule, lambda r: is_false(r, name)) if small else rule
    last = put(least, name) if small else outcome
    finding = Finding(number, made.theme, written(least, least.syntax), last.shown, last.message)
    return Tried(number, made.theme, outcome, features(rule), finding, made.text)


def is_false(rule: CheckedRule, name: str) -> bool:
    """True if a rule is usable, and changes a value."""
    try:
        return put(rule, name).state == "false"
    except Exception:  # what ends the trial is another mistake
        return False


def run(
    seed: int,
    rules: int | None,
    seconds: float | None,
    jobs: int,
    done: Callable[[Report], None] | None = None,
    enough: int | None = None,
    small: bool = True,
) -> Report:
    """Try candidates until so many are tried, so much time has passed, or there are `enough` findings; an interrupt ends it with
    what there is. Findings are minimized if they are to be `small`.
    """
    report = Report(seed)
    started = time.monotonic()
    starts = _starts(rules)
    tasks: deque[range] = deque()

    def feed() -> None:
        late = seconds is not None and time.monotonic() - started >= seconds
        if late or (enough is not None and len(report.findings) >= enough):
            tasks.clear()
            return
        while len(tasks) <= jobs:
            one = next(starts, None)
            if one is None:
                return
            tasks.append(one)

    def work(numbers: range) -> list[Tried]:
        return [tried(seed, n, small) for n in numbers]

    def died(numbers: range, why: str) -> list[Tried]:
        return [Tried(n, "", Outcome("error", message=why)) for n in numbers]

    _prepare()
    feed()
    try:
        for _, found in processes.in_processes(tasks, work, died, jobs):
            for one in found:
                report.add(one)
            report.seconds = time.monotonic() - started
            if done is not None:
                done(report)
            feed()
    except KeyboardInterrupt:
        pass
    report.seconds = time.monotonic() - started
    report.findings.sort(key=lambda f: f.number)
    return report


def _starts(rules: int | None) -> Iterator[range]:
    """The numbers of candidates, some at a time."""
    first = 0
    while rules is None or first < rules:
        last = first + CHUNK if rules is None else min(first + CHUNK, rules)
        yield range(first, last)
        first = last


def _prepare() -> None:
    """Load what every process needs, before any is forked."""
    library(random.Random(0))
    machine_code.machine().load()
    workers.load_solver([checked('group g "g"\n\nr: Add(x: i8, 0) ~> x\n')])
