"""A model of the solver, turned back into values and run: a refutation that does not rest on the encoding alone."""

from __future__ import annotations

import math
from typing import Any

from morok.dialect import built_in
from morok.dsl.checked import CheckedRule, Instance
from morok.prove.counterexample import INVALID, UNDEFINED, Counterexample
from morok.prove.encoding.obligation import Obligation
from morok.prove.kinds import CONSTANT, Node
from morok.prove.semantics.term import is_true
from morok.prove.solve import Model


def read(rule: CheckedRule, instance: Instance, o: Obligation, world: Any, model: Model) -> Counterexample:
    """The counterexample that a model is, evaluated where the dialect can."""
    bindings: dict[str, Any] = {}
    for name, dtype, term in o.variables:
        if not is_true(model.value(term.defined)):
            bindings[name] = UNDEFINED
            continue
        bindings[name] = (
            INVALID if is_true(model.value(term.invalid)) else scalar(rule, world, dtype, model.value(term.value))
        )
    for name, _, number in o.facts:
        bindings[name] = _number(world, model, number)
    used = dict.fromkeys([*instance.dtypes.values(), *(dtype for _, dtype, _ in o.variables)])
    dtypes = [d for d in used if d != "bool"][:1] or list(used) or ["any"]
    where = dtypes[0] if len(instance.dtypes) < 2 else ", ".join(f"{k}={v}" for k, v in instance.dtypes.items())
    confirmed = False
    if built_in(rule.dialect):
        from morok.prove import graph_counterexample  # lazy: another dialect's proofs load none of the IR

        smaller = graph_counterexample.smaller(rule, instance, o, bindings, where)
        if smaller is not None:
            return smaller
        confirmed = graph_counterexample.fired(rule, instance, bindings)
    if o.pattern is None or o.target is None:
        return Counterexample(where, bindings, None, None, confirmed)
    lhs, rhs = value_in(rule, world, model, o.pattern), value_in(rule, world, model, o.target)
    return Counterexample(
        where, bindings, lhs, rhs, confirmed or (not built_in(rule.dialect) and folded(rule, o, world, model))
    )


def searched(rule: CheckedRule) -> Counterexample | None:
    """A graph on which the rule's own matcher and the interpreter show that it is false, whatever a model says.

    None where some hundred random graphs, small ones and large ones, show nothing, which says nothing.
    """
    if not built_in(rule.dialect):
        return None
    from morok.prove import graph_counterexample  # lazy: another dialect's proofs load none of the IR

    return graph_counterexample.searched(rule)


def evaluated(rule: CheckedRule) -> tuple[Counterexample | None, bool]:
    """A graph, among small and large ones, on which the rule is false; and the truth of one having been met on which it fires and
    which has a value.
    """
    from morok.prove import graph_counterexample  # lazy: another dialect's proofs load none of the IR

    return graph_counterexample.evaluated(rule)


def _number(world: Any, model: Model, number: Any) -> Any:
    if is_true(model.value(number.minus_infinity)):
        return -math.inf
    if is_true(model.value(number.plus_infinity)):
        return math.inf
    return world.read_number(model.value(number.value))


def scalar(rule: CheckedRule, world: Any, dtype: str, value: Any) -> Any:
    """A value of the model; of a dtype that the rule does not look at, a name for it."""
    return world.read(dtype, value) if dtype in rule.dialect.dtypes and dtype != "void" else str(value)


def value_in(rule: CheckedRule, world: Any, model: Model, node: Node) -> Any:
    lanes = []
    for t in node.lanes:
        if not is_true(model.value(t.defined)):
            lanes.append(UNDEFINED)
        elif is_true(model.value(t.invalid)):
            lanes.append(INVALID)
        else:
            lanes.append(scalar(rule, world, node.dtype, model.value(t.value)))
    return lanes[0] if len(lanes) == 1 else lanes


class Unreplayable(Exception):
    """Some node of the rule has no evaluation outside the solver."""


def folded(rule: CheckedRule, o: Obligation, world: Any, model: Model) -> bool:
    """True if evaluating both sides by the `evaluate` of a dialect's own ops shows that the rule is false here."""
    assert o.pattern is not None
    assert o.target is not None
    try:
        left, right = (_folded(rule, world, model, side) for side in (o.pattern, o.target))
    except Unreplayable:
        return False
    if left == UNDEFINED or right == UNDEFINED:
        return bool(left != UNDEFINED)
    if isinstance(left, float) and isinstance(right, float):
        signs_alike = "nsz" in rule.syntax.assuming or math.copysign(1.0, left) == math.copysign(1.0, right)
        return not (left == right and signs_alike) and not (left != left and right != right)
    return bool(left != right)


def _folded(rule: CheckedRule, world: Any, model: Model, node: Node) -> Any:
    """The value of a node of one lane, bottom up by `OpInfo.evaluate`."""
    if len(node.lanes) != 1:
        raise Unreplayable
    made, t = node.made, node.lanes[0]
    if made is None or made.op == CONSTANT:
        if not is_true(model.value(t.defined)):
            return UNDEFINED
        return INVALID if is_true(model.value(t.invalid)) else world.read(node.dtype, model.value(t.value))
    info = rule.dialect.ops.get(made.op)
    if info is None or info.evaluate is None:
        raise Unreplayable
    operands = [_folded(rule, world, model, n) for n in made.operands]
    if UNDEFINED in operands:
        return UNDEFINED
    name = made.operands[0].dtype if info.comparison else node.dtype
    try:
        return info.evaluate(rule.dialect.dtypes[name], *operands)
    except Exception as undefined:
        if type(undefined).__name__ == "Undefined":
            return UNDEFINED
        raise Unreplayable from undefined
