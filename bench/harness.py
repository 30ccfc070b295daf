"""Run a case and its peers in one process, in turn, warm, and compare medians, or minima.

A case is a function that yields `Contest`s. Each contestant is a callable without arguments whose outputs are allocated
already. Contestants take turns, so that a slow moment of the machine hits all of them, and the ratio is that of the
medians. `python -m bench [CASE ...]` prints the table and, with --save, writes `bench/results/MACHINE.json`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

BEST: Final = "the best"


@dataclass(frozen=True)
class Contest:
    """One figure: our time against each peer's.

    figure  what is measured
    goal    the greatest ratio ours / best peer that reaches the figure; None where none is set
    against the peer that the goal is about, or BEST: whichever peer is fastest
    or_more seconds: so many more than the peer that the goal is about reach the figure, too
    most    the most seconds that reach the figure, where it is about no peer
    prepare called before every round, not timed
    warm    whether each contestant runs once before it counts
    reports whether the contestants return the seconds that count, because they measure in a process of their own
    typical of the times of one contestant the one that counts: the median, or the least, of what a busy machine disturbs
    clock   the time that counts: by the clock on the wall, or of this thread alone (time.thread_time), which other programs
            on the machine do not lengthen; only where every contestant computes in the calling thread
    """

    figure: str
    ours: Callable[[], object]
    peers: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    goal: float | None = None
    against: str = ""
    or_more: float = 0.0
    most: float | None = None
    rounds: int = 15
    prepare: Callable[[], object] | None = None
    warm: bool = True
    reports: bool = False
    typical: Callable[[Sequence[float]], float] = statistics.median
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class Outcome:
    """Medians in seconds, and each ratio ours / peer."""

    figure: str
    ours: float
    peers: dict[str, float]
    goal: float | None
    against: str
    or_more: float
    most: float | None

    @property
    def ratios(self) -> dict[str, float]:
        return {name: self.ours / t for name, t in self.peers.items()}

    @property
    def reached(self) -> bool | None:
        if self.most is not None:
            return self.ours <= self.most
        peers = {**self.peers, BEST: min(self.peers.values())} if self.peers else {}
        if self.goal is None or self.against not in peers:
            return None
        theirs = peers[self.against]
        return self.ours <= (max(self.goal * theirs, theirs + self.or_more) if self.or_more else self.goal * theirs)


def contend(contest: Contest) -> Outcome:
    """Run one contest."""
    contestants = {"": contest.ours, **contest.peers}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    said: object = None
    if contest.warm and not contest.reports:
        for f in contestants.values():  # warm up: caches, lazy imports, compiled matchers
            f()
    for _ in range(contest.rounds):
        for name, f in contestants.items():
            said = None  # nobody's time is charged with the release of another's result
            if contest.prepare:
                contest.prepare()
            start = contest.clock()
            said = f()
            spent = contest.clock() - start
            times[name].append(float(said) if contest.reports and isinstance(said, float) else spent)
    medians = {name: contest.typical(t) for name, t in times.items()}
    ours = medians.pop("")
    return Outcome(contest.figure, ours, medians, contest.goal, contest.against, contest.or_more, contest.most)
