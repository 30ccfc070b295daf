"""One random rule put to trial: judged by the prover, fired by its matcher, both sides evaluated."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from morok import config
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.dsl.extent import Extents
from morok.errors import IRError, MorokError, StepLimitError
from morok.ir.uop import UOp
from morok.prove.attack import machine_code, orders, tolerance
from morok.prove.attack.launches import observed
from morok.prove.attack.makers import Graphs
from morok.prove.attack.outcome import STATES, Outcome
from morok.prove.encoding.obligation import OutOfSteps
from morok.prove.obligations import conclude, is_definition, lanewise, prove_any, scope, theory_of
from morok.prove.progress import Progress
from morok.prove.rule_syntax import canonical
from morok.prove.smt.session import Died
from morok.prove.trust import differential
from morok.prove.verdict import Verdict
from morok.prove.workers import failure

BUDGET: Final = 3_000  # solver units an obligation: what is not decided soon is not usable here
LONGER: Final = 30_000  # of rules that firing has shown to be false
AT_EVERY_SIZE: Final = 100_000  # of rules that are not about single lanes: their questions are larger, and soon decided
GRAPHS: Final = 10
WORLDS: Final = 2  # choices of values for a graph
MORE: Final = 30  # graphs for a rule that is usable
COMPILED: Final = 0.3  # the share of usable rules of which one firing is computed by machine code, too


@dataclass(slots=True)
class Fired:
    """The outcome of firing a rule.

    sample  a graph that machine code can compute, and what the rule makes of it
    """

    times: int = 0
    large: int = 0
    changed: bool = False
    different: differential.Difference | None = None
    sample: tuple[UOp, UOp] | None = None


def checked(text: str) -> CheckedRule:
    """The rule of a text, at one of its choices of dtypes; RuleError if it makes no sense."""
    rule = next(iter(check_text(text, "<attack>").rules()))
    return one_choice(rule)


def one_choice(rule: CheckedRule) -> CheckedRule:
    """A rule at one choice of dtypes, which its own text chooses."""
    if len(rule.instances) == 1:
        return rule
    return dataclasses.replace(rule, instances=(random.Random(canonical(rule.syntax)).choice(rule.instances),))


def put(rule: CheckedRule, seed: str) -> Outcome:
    """A rule put to trial: fired first, since what never fires can do no harm, and judged then."""
    found = fire(rule, seed, GRAPHS)
    if not found.times:
        return Outcome("never")
    verdict = verdict_of(rule, budget_of(rule, found.different is not None))
    if not verdict.usable:
        state = verdict.verdict if verdict.verdict in STATES else "refuted"
        return Outcome(state, found.times, found.large, found.changed, message=verdict.message)
    if verdict.extents:  # what counts is what its matcher does, which keeps to them
        found = fire(rule, seed, GRAPHS, verdict.extents)
    if found.different is None:
        more = fire(rule, f"{seed} more", MORE, verdict.extents)
        different = more.different or by_machine(more.sample or found.sample, seed)
        found = Fired(found.times + more.times, found.large + more.large, found.changed or more.changed, different)
    state = "usable" if found.different is None else "false"
    return Outcome(state, found.times, found.large, found.changed, str(found.different or ""), "; ".join(verdict.scope))


def budget_of(rule: CheckedRule, false: bool) -> int:
    """The solver units an obligation for a rule; `false`: firing has shown that it is."""
    if not lanewise(rule):
        return AT_EVERY_SIZE
    return LONGER if false else BUDGET


def by_machine(sample: tuple[UOp, UOp] | None, seed: str) -> differential.Difference | None:
    """The difference between machine code after a firing and the meaning of the graph before it; None if none, or not tried."""
    rng = random.Random(f"{seed} machine")
    return None if sample is None or rng.random() >= COMPILED else machine_code.difference(*sample, rng)


def verdict_of(rule: CheckedRule, budget: int = BUDGET) -> Verdict:
    """The prover's verdict. Unlike `morok prove` no values are tried where it is unsure: firing the rule does that."""
    progress = Progress(budget, keep=False)
    try:
        prove_any(rule, theory_of(rule), progress)
    except (OutOfSteps, Died) as why:
        progress.unknown.append(str(why))
    except Exception as problem:  # as `morok prove` reports it
        return failure(rule, "error", f"{type(problem).__name__}: {problem}")
    kind, message = conclude(rule, progress)
    extents = tuple(sorted(progress.extents.values()))
    helpers = tuple(sorted(rule.externs))
    return Verdict(
        rule.name, rule.file, rule.line, kind, scope(rule, progress), message=message, helpers=helpers, extents=extents
    )


def fire(rule: CheckedRule, seed: str, graphs: int, extents: Extents = ()) -> Fired:
    """Fire a rule, within the extents of its proof, on graphs that it matches, and compare what it makes with what it took; the
    first difference ends it.
    """
    rng = random.Random(seed)
    found = Fired()
    apply = differential.Rewriter(rule, extents)
    off = frozenset() if is_definition(rule.syntax) else tolerance.made(rule)
    assumed = frozenset(rule.syntax.assuming)
    for before, large in Graphs(rule, rule.instances[0], rng).first(graphs):
        try:
            with config.settings(fast_math=assumed):
                after = apply(before)
        except IRError as why:
            if next(worlds(before, rng), None) is None:
                continue
            found.times, found.changed = found.times + 1, True
            found.different = differential.Difference(before, None, why=f"becomes what is no node: {why.message}")
            return found
        except MorokError:  # a helper of the library's, where its contract excludes the call
            continue
        if after is None:
            continue
        with tolerance.within(off):
            fared = compared(*observed(before, after), rng, assumed)
        if fared is None:
            continue
        found.times += 1
        found.large += large
        found.changed |= after is not before
        if (
            not assumed
            and after is not before
            and found.sample is None
            and machine_code.compilable(before)
            and machine_code.compilable(after)
        ):
            found.sample = before, after
        if isinstance(fared, differential.Difference):
            found.different = fared
            return found
    return found


def compared(
    before: UOp, after: UOp, rng: random.Random, assumed: frozenset[str] = frozenset()
) -> differential.Difference | bool | None:
    """A difference of two graphs, True where some values show none; None where the first has no value."""
    if after.dtype is not before.dtype:
        return differential.Difference(before, after)
    seen: bool | None = None
    for at, expected in worlds(before, rng):
        if assumed and not holds(assumed, (before, after), at):
            continue
        seen = True
        try:
            got = differential.value(after, at)
        except StepLimitError:
            continue
        except (IRError, ValueError) as why:
            return differential.Difference(before, after, at, expected, None, f"has no meaning: {why}")
        if got is not None and "nsz" in assumed:
            expected, got = differential.unsigned(expected), differential.unsigned(got)
        if got is None or not differential.alike(before, expected, got):
            if got is not None and orders.free(before) and orders.permitted(before, at, got, rng):
                continue
            return differential.Difference(before, after, at, expected, got)
    return seen


def holds(assumed: frozenset[str], graphs: Sequence[UOp], at: differential.World) -> bool:
    """True if what a rule assumes of floats is so of every node of both graphs, where it has a value."""
    for n in {n: None for g in graphs for n in g.toposort()}:
        if n.dtype.scalar().is_float and not n.dtype.is_ptr:
            found = differential.value_in_time(n, at)
            for v in found if isinstance(found, tuple) else (found,):
                if isinstance(v, float) and (("nnan" in assumed and v != v) or ("ninf" in assumed and math.isinf(v))):
                    return False
    return True


def worlds(graph: UOp, rng: random.Random) -> Iterator[tuple[differential.World, Any]]:
    """Values of the graph's variables where it has a value, and that."""
    folded = orders.free(graph)
    for _ in range(WORLDS):
        at = differential.world(graph, rng)
        if at is not None and folded and rng.random() < 0.6:
            at = orders.coarse(at, rng)
        expected = None if at is None else differential.value_in_time(graph, at)
        if at is not None and expected is not None:
            yield at, expected
