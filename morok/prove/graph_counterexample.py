"""Counterexamples to rules about Morok's own IR: values and graphs on which the rule's matcher and the interpreter differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from morok.dsl.checked import CheckedRule, Instance
from morok.errors import UnknownNameError
from morok.prove.counterexample import Counterexample, said
from morok.prove.encoding.obligation import Obligation
from morok.prove.least import least
from morok.prove.replay import Firing
from morok.prove.trust.differential import Difference, Elements, Trials, counterexample, tried
from morok.prove.trust.least_graph import least_graph
from morok.prove.trust.smallest import smallest

BOUNDS: Final = ("vmin.", "vmax.")
# Graphs that are made for a rule which is proved at every size, and on how many that have a value it is to fire; then large ones.
SIZES: Final = ((250, 24), (40, 8))
FEW: Final = 1 << 10  # steps of the interpreter, for one of hundreds of tries: what takes more is not small
LARGE: Final = 300  # graphs of large sizes, where nothing else refutes a rule or proves it at every size


def smaller(
    rule: CheckedRule, instance: Instance, o: Obligation, bindings: dict[str, Any], where: str
) -> Counterexample | None:
    """The least values no larger than a model's at which evaluation shows that the rule is false; None where it finds none.

    A model may be of nodes that there are not, as a loop variable below 0, where small values are of some that there are. A value
    whose bounds the rule asks for is a constant, with itself for both; or else it has the model's, as wide as the value needs.
    """
    if rule.externs or rule.syntax.assuming:
        return None
    of = {name: dtype for name, dtype, _ in o.variables if name in bindings}
    numbers = [name for name, _, _ in o.facts]
    if not all(n.startswith(BOUNDS) and n[len(BOUNDS[0]) :] in of for n in numbers):
        return None
    firing = Firing(rule, instance)

    moved = {n: d for n, d in of.items() if d in rule.dialect.dtypes}

    def bounded(values: Mapping[str, Any], kept: bool) -> dict[str, Any]:
        own = {n: values[n[len(BOUNDS[0]) :]] for n in numbers}
        if kept:
            widest = {n: min if n.startswith(BOUNDS[0]) else max for n, v in own.items() if isinstance(v, (int, float))}
            own |= {n: choose(own[n], values[n]) for n, choose in widest.items()}
        return {**values, **own}

    def least_at(kept: bool) -> dict[str, Any]:
        def false_at(values: Mapping[str, Any]) -> bool:
            return firing.differing(bounded(values, kept), FEW) is not None

        limits = {n: of[n[len(BOUNDS[0]) :]] for n in numbers} if kept else {}
        return bounded(
            least(bindings, moved | {n: d for n, d in limits.items() if d in rule.dialect.dtypes}, false_at), kept
        )

    for kept in (False, True) if numbers else (False,):
        outcome = firing.differing(found := least_at(kept))
        if outcome is not None:
            lhs, rhs = map(said, outcome)
            return Counterexample(where, found, lhs, rhs, True)
    return None


def fired(rule: CheckedRule, instance: Instance, bindings: dict[str, Any]) -> bool:
    """True if the rule's own matcher, on a graph with these bindings, gives another value than the graph has."""
    return not rule.externs and Firing(rule, instance).differing(bindings) is not None


def searched(rule: CheckedRule) -> Counterexample | None:
    """A graph on which the rule's own matcher and the interpreter show that it is false, whatever a model says.

    None where some hundred random graphs, small ones and large ones, show nothing, which says nothing.
    """
    try:
        found = counterexample(rule) or counterexample(rule, Trials(rule, rule.instances))
        found = found or counterexample(rule, Trials(rule, rule.instances, worlds=2, large=True), LARGE)
    except (UnknownNameError, TypeError):  # there is only what its helpers promise
        return None
    return None if found is None else _of_difference(rule, found)


def _of_difference(rule: CheckedRule, found: Difference) -> Counterexample:
    """A difference that trials have found, made small, as a counterexample."""
    found = smallest(least_graph(rule, found), nsz=bool(rule.syntax.assuming))
    bindings: dict[str, Any] = {"graph": found.before.text()}
    if found.after is not None:
        bindings["becomes"] = found.after.text()
    if found.at is not None:
        bindings |= found.at.shown()
    expected, got = (str(v) if isinstance(v, Elements) else said(v) for v in (found.expected, found.why or found.got))
    return Counterexample(found.before.dtype.name, bindings, expected, got, True)


def evaluated(rule: CheckedRule) -> tuple[Counterexample | None, bool]:
    """A graph, among small and large ones, on which the rule is false; and the truth of one having been met on which it fires and
    which has a value.
    """
    met = False
    for large, (tries, enough) in enumerate(SIZES):
        try:
            found, here = tried(rule, Trials(rule, rule.instances, worlds=2, large=large > 0), tries, enough)
        except (UnknownNameError, TypeError):  # there is only what its helpers promise
            return None, False
        if found is not None:
            return _of_difference(rule, found), True
        met = met or here
    return None, met
