"""Verdicts on rules `within N ulp`: `approximate` if no measured error is larger, and the rule's op allows that error."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from morok.accuracy import record, ulp
from morok.accuracy.measured_code import BUILDS
from morok.accuracy.measurement import Runner, available_builds, chosen_operands, measure, operands, worst_over
from morok.accuracy.record import Measurement, Worst
from morok.accuracy.subject import NotMeasurableError, Subject, subject
from morok.dsl.checked import CheckedRule, Instance
from morok.errors import MorokError
from morok.ir.op import Op
from morok.ir.ops.transcendental import TOLERANCE
from morok.ir.uop import UOp
from morok.prove.verdict import Verdict
from morok.rewrite.ruleset import RuleSet

SLACK: Final = 1e-6  # ulp: the difference between C libraries


def judge(rule: CheckedRule) -> Verdict:
    """The verdict on a rule `within N ulp`: `approximate`, if its op allows that error and no measured one is larger.

    If the record has a measurement of the rule's current code, the sample is measured again and must not be worse. What the rule
    does at the numbers that it names, and where it switches, must be within its promise, too.
    """
    started = time.perf_counter()
    verdict, message = "approximate", ""
    scope: list[str] = []
    assert rule.syntax.within is not None
    for instance in rule.instances:
        verdict, said = _judge(rule, instance, rule.syntax.within)
        if verdict != "approximate":
            scope, message = [], said
            break
        scope.append(said)
    seconds = time.perf_counter() - started
    helpers = tuple(sorted(rule.externs))
    return Verdict(
        rule.name, rule.file, rule.line, verdict, tuple(scope), seconds, helpers, None, message, solver="measured"
    )


def judge_trial(rule: CheckedRule, beside: Sequence[CheckedRule]) -> Verdict:
    """The verdict on a rule outside of a file, from the build that every machine has; the first operand with too large an error
    refutes it.

    beside  the rules that its target may use
    """
    started = time.perf_counter()
    verdict, message = "approximate", ""
    promised = rule.syntax.within
    assert promised is not None
    for instance in rule.instances:
        s = _subject_of(rule, instance, promised)
        if isinstance(s, tuple):
            verdict, message = s
            break
        try:
            runner = Runner(s, BUILDS[-1:], RuleSet.of((rule, *beside), unproved=True))
        except MorokError as why:
            verdict, message = "refuted", f"at {s.dtype} it becomes no kernel: {why.message}"
            break
        for bits in itertools.chain(operands(s, False), chosen_operands(s, runner.rules)):
            off = runner.errors(bits)[BUILDS[-1]]
            at = int(off.argmax())
            if not off[at] <= promised:
                w = Worst(float(off[at]), tuple(int(b[at]) for b in bits))
                verdict, message = "refuted", f"at {s.dtype}, {_point(s, w)}: {w.ulp:.4g} ulp off"
                break
        if message:
            break
    seconds = time.perf_counter() - started
    return Verdict(
        rule.name, rule.file, rule.line, verdict, (), seconds, message=message, solver="measured", final=False
    )


def _subject_of(rule: CheckedRule, instance: Instance, promised: float) -> Subject | tuple[str, str]:
    """The subject to measure of the rule at one dtype; or (verdict, reason) without measuring."""
    try:
        s = subject(rule, instance)
    except NotMeasurableError as problem:
        return "unknown", str(problem)
    allowed = TOLERANCE.get(s.op)
    if allowed is None:
        return "refuted", f"{s.op.name} is exact: no rule may make it anything else"
    if promised > allowed:
        return (
            "refuted",
            f"{s.op.name} may be off by {allowed:g} ulp, and the rule promises no better than {promised:g}",
        )
    if not _applies(s):
        return "inapplicable", f"the rule does not apply to {s.op.name} at {s.dtype}"
    return s


def _judge(rule: CheckedRule, instance: Instance, promised: float) -> tuple[str, str]:
    """(verdict, finding in words) at one dtype."""
    s = _subject_of(rule, instance, promised)
    if isinstance(s, tuple):
        return s
    runner = Runner(s, available_builds())
    found = measure(s, runner=runner)
    _, chosen = worst_over(runner, chosen_operands(s, runner.rules))
    kept = record.find(s.rule, str(s.dtype))
    if kept is None or kept.code != found.code:
        kept = found
    for build, w in (*found.worst.items(), *kept.worst.items(), *chosen.items()):
        if not w.ulp <= promised:
            return (
                "refuted",
                f"at {s.dtype}, {_point(s, w)}: {w.ulp:.4g} ulp off ({build}), where {promised:g} are promised",
            )
    for build, w in found.worst.items():
        if build in kept.worst and w.ulp > kept.worst[build].ulp + SLACK:
            recorded = kept.worst[build].ulp
            return (
                "refuted",
                f"at {s.dtype}, {_point(s, w)}: {w.ulp:.6g} ulp off ({build}), more than the recorded {recorded:.6g}",
            )
    return "approximate", describe(s, kept)


def _applies(s: Subject) -> bool:
    xs = tuple(UOp.new(Op.DefineGlobal, (), i, s.dtype.ptr(1)).index(0) for i in range(s.operands))
    return RuleSet.of((s.rule,), unproved=True).rewrite_node(s.of(xs)) is not None


def _point(s: Subject, w: Worst) -> str:
    names = "xyz"
    values = [float(ulp.widened(s.dtype, np.array([b], ulp.BITS[s.dtype]))[0]) for b in w.at]
    return ", ".join(f"{names[i]} = {v!r}" for i, v in enumerate(values))


def describe(s: Subject, m: Measurement) -> str:
    """One line of text about a measurement."""
    most = max(m.worst.values(), key=lambda w: w.ulp)
    how = f"all {m.count} operands" if m.everything else f"a sample of {m.count}"
    return f"{s.dtype}: at most {most.ulp:.4f} ulp over {how}, worst at {_point(s, most)}"
