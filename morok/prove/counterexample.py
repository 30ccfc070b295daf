"""A model of the solver, turned back into values and run: a refutation that does not rest on the encoding alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from morok.dialect import built_in
from morok.dsl.checked import CheckedRule, Instance
from morok.errors import UnknownNameError
from morok.prove.encoding.obligation import Obligation
from morok.prove.kinds import Node
from morok.prove.semantics.term import is_true
from morok.prove.solve import Model

if TYPE_CHECKING:
    from morok.prove.trust.sieve import Difference

# Graphs that are made for a rule which is proved at every size, and on how many that have a value it is to fire; then large ones.
GRAPHS: Final = ((250, 24), (40, 8))
LARGE: Final = 300  # graphs of large sizes, where nothing else refutes a rule or proves it at every size
UNDEFINED = "undefined"
INVALID = "Invalid"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Values at which the rule is false.

    confirmed   evaluating both sides on them, without the solver, showed the difference too
    """

    dtype: str
    bindings: dict[str, Any]
    lhs: Any
    rhs: Any
    confirmed: bool

    def json(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "bindings": {k: plain(v) for k, v in self.bindings.items()},
            "lhs": plain(self.lhs),
            "rhs": plain(self.rhs),
            "confirmed": self.confirmed,
        }

    def text(self) -> str:
        at = ", ".join(f"{k} = {show(v)}" for k, v in self.bindings.items())
        sure = "" if self.confirmed else " (not confirmed by evaluation)"
        return f"at {self.dtype}, {at}: the pattern is {show(self.lhs)}, the target {show(self.rhs)}{sure}"


def plain(v: Any) -> Any:
    """A value that JSON can say: as text all that is no finite number, truth or sequence of such, and -0.0."""
    if isinstance(v, (list, tuple)):
        return [plain(i) for i in v]
    number = isinstance(v, int) or (isinstance(v, float) and math.isfinite(v) and (v != 0 or math.copysign(1.0, v) > 0))
    return v if number else show(v)


def show(v: Any) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    return f"[{', '.join(show(i) for i in v)}]" if isinstance(v, (list, tuple)) else str(v)


def read(rule: CheckedRule, instance: Instance, o: Obligation, world: Any, model: Model) -> Counterexample:
    """The counterexample that a model is, evaluated where the dialect can."""
    bindings: dict[str, Any] = {}
    for name, dtype, term in o.variables:
        if not is_true(model.value(term.defined)):
            bindings[name] = UNDEFINED
            continue
        bindings[name] = INVALID if is_true(model.value(term.invalid)) else scalar(rule, world, dtype, model.value(term.value))
    for name, _, number in o.facts:
        bindings[name] = _number(world, model, number)
    used = dict.fromkeys([*instance.dtypes.values(), *(dtype for _, dtype, _ in o.variables)])
    dtypes = [d for d in used if d != "bool"][:1] or list(used) or ["any"]
    where = dtypes[0] if len(instance.dtypes) < 2 else ", ".join(f"{k}={v}" for k, v in instance.dtypes.items())
    smaller = _smaller(rule, instance, o, bindings, where)
    if smaller is not None:
        return smaller
    if o.pattern is None or o.target is None:
        return Counterexample(where, bindings, None, None, fired(rule, instance, bindings))
    lhs, rhs = value_in(rule, world, model, o.pattern), value_in(rule, world, model, o.target)
    confirmed = fired(rule, instance, bindings) if built_in(rule.dialect) else folded(rule, o, world, model)
    return Counterexample(where, bindings, lhs, rhs, confirmed)


BOUNDS: Final = ("vmin.", "vmax.")


def _smaller(rule: CheckedRule, instance: Instance, o: Obligation, bindings: dict[str, Any], where: str) -> Counterexample | None:
    """The least values that evaluation finds from those of a model on; None where these do not show that the rule is false.

    A value whose bounds the rule asks for is a constant, with itself for both.
    """
    if not built_in(rule.dialect) or rule.externs or rule.syntax.assuming:
        return None
    of = {name: dtype for name, dtype, _ in o.variables if name in bindings}
    numbers = [name for name, _, _ in o.facts]
    if not all(n.startswith(BOUNDS) and n[len(BOUNDS[0]) :] in of for n in numbers):
        return None
    from morok.prove import least
    from morok.prove.replay import Firing

    firing = Firing(rule, instance)

    def bounded(values: Mapping[str, Any]) -> dict[str, Any]:
        return {**values, **{n: values[n[len(BOUNDS[0]) :]] for n in numbers}}

    def false_at(values: Mapping[str, Any]) -> bool:
        return firing.differing(bounded(values)) is not None

    if not false_at(bindings):
        return None
    found = bounded(least.least(bindings, {n: d for n, d in of.items() if d in rule.dialect.dtypes}, false_at))
    outcome = firing.differing(found)
    if outcome is None:
        return None
    lhs, rhs = (UNDEFINED if v is None else v for v in outcome)
    return Counterexample(where, found, lhs, rhs, True)


def fired(rule: CheckedRule, instance: Instance, bindings: dict[str, Any]) -> bool:
    """True if the rule's own matcher, on a graph with these bindings, gives another value than the graph has."""
    if not built_in(rule.dialect) or rule.externs:
        return False
    from morok.prove.replay import Firing  # lazy: another dialect's proofs load none of the IR

    return Firing(rule, instance).differing(bindings) is not None


def searched(rule: CheckedRule) -> Counterexample | None:
    """A graph on which the rule's own matcher and the interpreter show that it is false, whatever a model says.

    None where some hundred random graphs, small ones and large ones, show nothing, which says nothing.
    """
    if not built_in(rule.dialect):
        return None
    from morok.prove.trust import sieve

    try:
        found = sieve.counterexample(rule) or sieve.counterexample(rule, sieve.Trials(rule, rule.instances))
        found = found or sieve.counterexample(rule, sieve.Trials(rule, rule.instances, worlds=2, large=True), LARGE)
    except (UnknownNameError, TypeError):  # there is only what its helpers promise
        return None
    return None if found is None else _told(rule, found)


def _told(rule: CheckedRule, found: Difference) -> Counterexample:
    """A difference that trials have found, made small, as a counterexample."""
    from morok.prove.trust import sieve
    from morok.prove.trust.smallest import smallest

    found = smallest(found, nsz=bool(rule.syntax.assuming))
    bindings: dict[str, Any] = {"graph": found.before.text()}
    if found.after is not None:
        bindings["becomes"] = found.after.text()
    if found.at is not None:
        bindings |= found.at.shown()
    got = found.why or (UNDEFINED if found.got is None else found.got)
    expected, got = (str(v) if isinstance(v, sieve.Elements) else v for v in (found.expected, got))
    return Counterexample(found.before.dtype.name, bindings, expected, got, True)


def evaluated(rule: CheckedRule) -> tuple[Counterexample | None, bool]:
    """A graph, among small and large ones, on which the rule is false; and the truth of one having been met on which it fires and
    which has a value.
    """
    from morok.prove.trust import sieve

    met = False
    for large, (tries, enough) in enumerate(GRAPHS):
        try:
            found, here = sieve.tried(rule, sieve.Trials(rule, rule.instances, worlds=2, large=large > 0), tries, enough)
        except (UnknownNameError, TypeError):  # there is only what its helpers promise
            return None, False
        if found is not None:
            return _told(rule, found), True
        met = met or here
    return None, met


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
    if made is None or made.op == "Const":
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
