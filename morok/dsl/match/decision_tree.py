"""From clauses to a decision tree: a test that several of them need is made once, and they keep their order.

The clauses of one op are cut into spans. In a span one test is made first, and for each of its outcomes the remaining clauses
(consistent with it, or independent of it) become a tree in the same way. A clause that shares no test is tested as a whole in
its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from morok.dsl.match.actions import Action
from morok.dsl.match.clauses import Clause, Constraint, Path

NEAR: Final = 1  # the greatest depth of a tested node at which clauses independent of the test go into both outcomes


class Candidate:
    """A clause with its constraints that are not tested yet, and the action of its rule."""

    __slots__ = ("action", "clause", "keys", "open")

    def __init__(self, clause: Clause, constraints: tuple[Constraint, ...], action: Action) -> None:
        self.clause = clause
        self.open = constraints
        self.keys = frozenset([c.key for c in constraints if c.key is not None])
        self.action = action

    def without(self, key: object) -> Candidate:
        """The candidate after this test has passed."""
        return Candidate(self.clause, tuple([c for c in self.open if c.key != key]), self.action)

    def with_op(self, path: Path, op: str) -> Candidate | None:
        """The candidate for a node at `path` of this op; None if it requires another op."""
        if any(c.op is not None and c.op != op and c.paths[0] == path for c in self.open):
            return None
        return self.without(("op", path))

    def testable(self) -> list[Constraint]:
        """The constraints that can be tested now: they wait for no open constraint, and for no sequence's end."""
        found: list[Constraint] = []
        above: list[Constraint] = []
        for c in self.open:
            if not c.ends and not any(_waits(c, other) for other in above):
                found.append(c)
            if c.guards:
                above.append(c)
        return found


def _waits(c: Constraint, other: Constraint) -> bool:
    """True if a constraint can be tested only behind another, which guards: that one is about nodes above its own."""
    if other.op is not None and other.paths[0] in c.values:
        return True
    return any(len(q) < len(p) and p[: len(q)] == q for q in other.paths for p in c.paths)


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch over the op of the node at `path`; `clause` is the first that tests it."""

    path: Path
    clause: Clause
    cases: Sequence[tuple[str, Tree]]
    otherwise: Tree


@dataclass(frozen=True, slots=True)
class Test:
    """A constraint that several clauses have."""

    constraint: Constraint
    clause: Clause
    yes: Tree
    no: Tree


Step = Switch | Test | Candidate  # a candidate: a test of its open constraints, and its action
Tree = Sequence[Step]  # one step after the other, until an action has a result


class Builder:
    """The decision tree of the clauses for one op; `uses` counts the places of each action."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.most = 400 + 8 * len(candidates)
        self.placed = 0
        self.uses: Counter[int] = Counter()
        self.tree = self.block(candidates)

    def block(self, candidates: Sequence[Candidate]) -> Tree:
        left = list(candidates)
        steps: list[Step] = []
        while left:
            chosen = self.chosen(left)
            if chosen is None:
                first = left.pop(0)
                self.placed += 1
                self.uses[id(first.action)] += 1
                steps.append(first)
                if not first.open and first.action.cannot_fail:
                    break  # the candidates behind it are unreachable
                continue
            constraint, end = chosen
            steps.append(self.split(constraint, left[:end]))
            left = left[end:]
        return steps

    def chosen(self, candidates: Sequence[Candidate]) -> tuple[Constraint, int] | None:
        """The test to make first, and the number of candidates that it covers: of the tests that the first one can make now, the
        one that most share. None if no other shares one, or the tree has its largest size.
        """
        if self.placed > self.most:
            return None
        best: tuple[Constraint, int] | None = None
        most = 1
        for c in candidates[0].testable():
            if c.key is None or (best is not None and c.key == best[0].key):
                continue
            end = _reach(candidates, c)
            count = sum([c.key in other.keys for other in candidates[:end]])
            if count > most:
                best, most = (c, end), count
        return best

    def split(self, constraint: Constraint, span: Sequence[Candidate]) -> Step:
        key, clause = constraint.key, span[0].clause
        rest = [s for s in span if key not in s.keys]
        if constraint.op is None:
            return Test(constraint, clause, self.block([s.without(key) for s in span]), self.block(rest))
        path = constraint.paths[0]
        asked = Counter(c.op for s in span for c in s.open if c.op is not None and c.paths[0] == path)
        # the ops of most clauses come first, as the most frequent in graphs
        cases = [
            (op, self.block([c for s in span if (c := s.with_op(path, op)) is not None]))
            for op, _ in asked.most_common()
        ]
        return Switch(path, clause, cases, self.block(rest))


def _reach(candidates: Sequence[Candidate], c: Constraint) -> int:
    """The number of candidates that a test covers. A test of the root or its operands: up to the last candidate that makes it, so
    that those in between go into each outcome. A test of deeper nodes: as long as every candidate makes it.
    """
    if max(map(len, c.paths)) > NEAR:
        return next((i for i, other in enumerate(candidates) if c.key not in other.keys), len(candidates))
    return 1 + max([i for i, other in enumerate(candidates) if c.key in other.keys])
