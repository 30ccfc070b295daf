"""The answer to one question about a rule: the solver's, or that of values, amounts and truths that are tried one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.answers import Answer
from morok.prove.encoding.obligation import Obligation
from morok.prove.progress import Progress
from morok.prove.refutation import searched
from morok.prove.semantics.term import is_false, is_true, negation
from morok.prove.smt import FALSE, TRUE
from morok.prove.smt.evaluate import Evaluator
from morok.prove.smt.propagate import refuted

PROBES: Final = {
    "float": (0.0, 1.0, 2048.0, -0.0, 0.1, float("nan"), -3.0, float("inf"), 2.0**24, 2.0**53),
    "int": (0, 1, -1, 2, -3, 5, 7, -8),
}
MOST_PROBES: Final = 1000
FEW_PROBES: Final = 128  # before the solver is asked at length
SOON: Final = 1_000_000  # units; of the 331 rules of algebra 4 have a question that takes more
MOST_PINNED: Final = 1 << 12  # combinations of amounts that are tried: of two amounts at 64 bits
AT_ONCE: Final = 64  # of those that simplifying does not decide, so many are one question


def judge(
    rule: CheckedRule, where: str, o: Obligation, attempt: Any, world: Any, progress: Progress
) -> tuple[Answer, Any]:
    """The laws and lemmas, then the claim. One that fails is a refusal of its own."""
    laws = {name: claim for name, claim in o.laws.items() if f"{name} ({attempt.name})" not in progress.laws}
    for name, premises, claim in [*((name, (), claim) for name, claim in laws.items()), *o.lemmas]:
        if not premises and is_true(claim):
            continue
        result = progress.ask(f"{rule.name} {where} {name}", [*premises, *world.axioms, negation(claim)], attempt.share)
        if result.answer is not Answer.UNSAT:
            if result.answer is Answer.SAT and world.exact:
                progress.refusal = f"{name}: not so, at {where}"
            return Answer.UNKNOWN, None
    progress.laws.update(f"{name} ({attempt.name})" for name in laws)
    conditions = [*o.premises, negation(o.claim)]
    if world.shifts and world.amounts:
        return by_amounts(rule, where, conditions, attempt, world, progress)
    if not world.cases:
        flags = [t.value for _, dtype, t in o.variables if dtype == "bool"][:4]
        dtypes = {dtype for _, dtype, _ in o.variables} | ({o.pattern.dtype} if o.pattern is not None else set())
        if flags and any(world.is_float(dtype) for dtype in dtypes & set(rule.dialect.dtypes)):
            return by_flags(rule, where, conditions, flags, attempt, progress)
        return at_length(rule, where, o, attempt, world, progress)
    return by_cases(rule, where, conditions, attempt, world, progress)


def at_length(
    rule: CheckedRule, where: str, o: Obligation, attempt: Any, world: Any, progress: Progress
) -> tuple[Answer, Any]:
    """A question that is not answered soon is put to a few values, and where the encoding knows too little the rule to a few
    graphs, before the solver has all its budget for it, or is asked in another encoding.
    """
    name, conditions = f"{rule.name} {where}", [*o.premises, negation(o.claim)]
    quick = SOON / progress.budget
    if progress.unknown or attempt.share <= 2 * quick:
        result = progress.ask(name, conditions, attempt.share)
        if result.answer is Answer.UNKNOWN and world.exact and not progress.unknown:
            model = probe(o, world, progress, FEW_PROBES)
            return (Answer.UNKNOWN, None) if model is None else (Answer.SAT, model)
        return result.answer, result.model
    result = progress.ask(name, conditions, quick)
    if result.answer is not Answer.UNKNOWN:
        return result.answer, result.model
    if (model := probe(o, world, progress, FEW_PROBES)) is not None:
        return Answer.SAT, model
    if not world.exact and progress.first_search:
        progress.first_search = False
        progress.refuted = searched(rule)
        if progress.refuted is not None:
            return Answer.UNKNOWN, None
    if not result.timed_out:  # what the clock ended would take as long with more of the budget
        result = progress.ask(name, conditions, attempt.share)
    return result.answer, result.model


def by_flags(
    rule: CheckedRule, where: str, conditions: list[Any], flags: list[Any], attempt: Any, progress: Progress
) -> tuple[Answer, Any]:
    """The question once for every outcome of the rule's own conditions, which float arithmetic is then free of."""
    for outcome in itertools.product((True, False), repeat=len(flags)):
        there = smt.Substitution((f, smt.BoolVal(v)) for f, v in zip(flags, outcome, strict=True))
        pinned = [there(c) for c in conditions]
        pinned += [f if v else smt.Not(f) for f, v in zip(flags, outcome, strict=True)]
        result = progress.ask(f"{rule.name} {where} at {outcome}", pinned, attempt.share)
        if result.answer is not Answer.UNSAT:
            return result.answer, result.model
    return Answer.UNSAT, None


# 2^11, 2^24 and 2^53 are where f16, f32 and f64 stop holding every integer, 0.1 is no float at all


def probe(o: Obligation, world: Any, progress: Progress, most: int = MOST_PROBES) -> Any:
    """A counterexample among a few plain values, where the solver gives up: what is false at 0 or NaN need not stay unknown.

    A model of the premises and the negated claim; None if none of the values makes one.
    """
    conditions = [*o.premises, negation(o.claim)]
    options = []
    plain = []
    for _, dtype, term in o.variables:
        if dtype in ("any", "void"):  # values that the rule does not look at
            return None
        values: tuple[Any, ...] = (
            PROBES["float" if world.is_float(dtype) else "int"] if dtype != "bool" else (False, True)
        )
        if term.value.sort.kind == "BitVec":
            values = (*values, -(1 << (term.value.sort.width - 1)))  # the least signed one has no negative
        options.append([(term.value, world.constant(dtype, v).value) for v in values])
        plain += [(term.defined, TRUE)] if not term.defined.args and not is_true(term.defined) else []
        plain += [(term.invalid, FALSE)] if not term.invalid.args and not is_false(term.invalid) else []
    at = Evaluator(conditions, [*(t for t, _ in plain), *(among[0][0] for among in options)])
    for chosen in itertools.islice(itertools.product(*options), most):
        at.choose([*(v.value for _, v in plain), *(v.value for _, v in chosen)])
        if all(at.value(c) for c in conditions):
            result = progress.ask("probe", [*conditions, *(a == b for a, b in (*chosen, *plain))], 1.0)
            if result.answer is Answer.SAT:
                return result.model
    return None


def by_cases(
    rule: CheckedRule, where: str, conditions: list[Any], attempt: Any, world: Any, progress: Progress
) -> tuple[Answer, Any]:
    """The question once for every likely value of a variable (the powers of two), and once for all others: all must be unsat."""
    leaf, values = next(iter(world.cases.values()))
    others = [*conditions, *(leaf != v for v in values)]
    result = progress.ask(f"{rule.name} {where} elsewhere", others, attempt.share)
    if result.answer is not Answer.UNSAT:
        return result.answer, result.model
    for value in values:
        there = smt.Substitution([(leaf, value)])
        pinned = [there(c) for c in conditions]
        pinned.append(leaf == value)  # so that a model names it
        result = progress.ask(f"{rule.name} {where} at {value}", pinned, attempt.share)
        if result.answer is not Answer.UNSAT:
            return result.answer, result.model
    return Answer.UNSAT, None


def by_amounts(
    rule: CheckedRule, where: str, conditions: list[Any], attempt: Any, world: Any, progress: Progress
) -> tuple[Answer, Any]:
    """The question for every combination of amounts by which something is shifted, and for all else: all must be unsat.

    Shifts by numerals only move bits, which simplifying sees through; what it does not decide is put to the solver together.
    """
    leaves: list[tuple[Any, tuple[Any, ...]]] = []
    for leaf, values in world.amounts.values():
        if math.prod(len(v) for _, v in leaves) * len(values) <= MOST_PINNED:
            leaves.append((leaf, values))
    name = f"{rule.name} {where}"
    for leaf, values in leaves:
        if world.holds(smt.ULT(leaf, len(values))):
            continue
        beyond = progress.ask(f"{name} elsewhere", [*conditions, *(leaf != v for v in values)], attempt.share)
        if beyond.answer is not Answer.UNSAT:
            return beyond.answer, beyond.model
    undecided = (smt.And(pinned) for pinned in pins(conditions, leaves) if not refuted(pinned))
    while some := list(itertools.islice(undecided, AT_ONCE)):
        result = progress.ask(f"{name} at some amounts", [smt.Or(some)], attempt.share)
        if result.answer is not Answer.UNSAT:
            return result.answer, result.model
    return Answer.UNSAT, None


def pins(conditions: list[Any], leaves: Sequence[tuple[Any, tuple[Any, ...]]]) -> Iterator[list[Any]]:
    """The conditions at each combination of values, where they are not plainly false."""
    if not leaves:
        yield conditions
        return
    (leaf, values), *more = leaves
    for value in values:
        there = smt.Substitution([(leaf, value)])
        pinned = [there(c) for c in conditions]
        if not any(is_false(c) for c in pinned):
            yield from pins([*pinned, leaf == value], more)  # so that a model names it
