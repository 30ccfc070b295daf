"""Questions to the solver about guards: do they always hold, never hold, or hold wherever another rule applies?

An answer is True only where it was proved, at every dtype that the rule admits. Whatever cannot be said to the solver, or takes
longer than the budget, is False: a finding is certain, its absence is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Sort
from morok.dsl.functions import BINARY, FUNCTIONS
from morok.dsl.lint import fits
from morok.prove import smt
from morok.prove.answers import Answer
from morok.prove.encoding.asked import ANY, words_of
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.obligation import Choices, Inapplicable, OutOfSteps
from morok.prove.kinds import Constant, Node, Truth
from morok.prove.lint.cover import Matching, variants
from morok.prove.obligations import encodings, lanewise, theory_of
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Unsupported, both, negation
from morok.prove.smt import FALSE, TRUE
from morok.prove.solve import ask

BUDGET: Final = 300_000  # solver units a question: about 0.1 s


class _Aside(Encoder):
    """Reads a rule's pattern and remembers which node each part of it stands for."""

    def __init__(self, rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> None:
        super().__init__(rule, instance, world, choices)
        self.nodes: dict[int, Any] = {}

    def pattern(self, p: S.Pattern) -> Any:
        found = self.nodes[id(p)] = super().pattern(p)
        return found


def _unsatisfiable(conditions: list[Any]) -> bool:
    plain = [s for c in conditions if (s := smt.simplify(c)) is not TRUE]
    if any(c is FALSE for c in plain):
        return True
    return bool(plain) and ask(plain, BUDGET).answer is Answer.UNSAT


Reading = Callable[[Encoder], list[Any]]  # conditions besides the premises, read when the clauses before have been


def _never(rule: CheckedRule, upto: int, read: Reading) -> bool:
    """True if pattern, the first `upto` clauses and what `read` gives cannot hold together, at any instance and alternative."""
    for instance in rule.instances:
        choices = Choices()
        while True:
            if not _impossible(Encoder, rule, instance, choices, upto, read):
                return False
            try:
                if not choices.advance():
                    break
            except OutOfSteps:
                return False
    return True


def _impossible(
    reader: type[Encoder], rule: CheckedRule, instance: Instance, choices: Choices, upto: int | None, read: Reading
) -> bool:
    """True if pattern, the first `upto` clauses (None: all) and what `read` gives cannot hold together; False if nobody knows."""
    for attempt in encodings(rule, instance, theory_of(rule)):
        world = attempt.world()
        choices.restart()
        encoder = reader(rule, instance, world, choices)
        try:
            pattern = encoder.pattern(rule.syntax.pattern)
            encoder.start_clauses(pattern)
            for clause in rule.syntax.clauses[:upto]:
                encoder.clause(clause)
            conditions = read(encoder)
        except Inapplicable:
            return True
        except (Unsupported, OutOfSteps, KeyError):
            continue
        return _unsatisfiable([*encoder.out.premises, *world.axioms, *conditions])
    return False


def parts(e: S.Expr, op: str) -> list[S.Expr]:
    """The operands of a chain of `and` or `or`, left to right."""
    if isinstance(e, S.EBinary) and e.op == op:
        return [*parts(e.left, op), *parts(e.right, op)]
    return [e]


def guards(rule: CheckedRule) -> Iterator[tuple[S.Expr, str]]:
    """The parts of a rule's guards that decide nothing, each with "always" or "never"."""
    for number, clause in enumerate(rule.syntax.clauses):
        if not isinstance(clause, S.If):
            continue
        earlier: list[S.Expr] = []
        for part in parts(clause.condition, "and"):
            if _never(rule, number, partial(_fails, earlier, part)):
                yield part, "always"
            for option in parts(part, "or"):
                if _never(rule, number, partial(_passes, earlier, option)):
                    yield option, "never"
            earlier.append(part)


def _passes(earlier: Sequence[S.Expr], part: S.Expr, encoder: Encoder) -> list[Any]:
    return [*_hold(encoder, earlier), encoder.has_and_holds(part)]


def _fails(earlier: Sequence[S.Expr], part: S.Expr, encoder: Encoder) -> list[Any]:
    return [*_hold(encoder, earlier), negation(encoder.has_and_holds(part))]


def _hold(encoder: Encoder, conditions: Sequence[S.Expr]) -> list[Any]:
    return [encoder.has_and_holds(c) for c in conditions]


def fires_always(rule: CheckedRule) -> bool:
    """True if a rule surely fires once its pattern and guards hold: nothing in its target may be without a value."""
    if rule.syntax.partial or rule.externs:
        return False
    for at in S.walk(rule.syntax.target):
        function = (
            FUNCTIONS.get(at.name)
            if isinstance(at, S.ECall)
            else BINARY.get(at.op)
            if isinstance(at, S.EBinary)
            else None
        )
        if function is not None and (function.partial or function.result == "bound"):
            return False
        if isinstance(at, S.EIndex | S.EComprehension) or (isinstance(at, S.ECall) and at.name == "eval"):
            return False
    return True


def covers(above: CheckedRule, below: CheckedRule) -> bool:
    """True if the earlier rule fires wherever the later one would."""
    if not fires_always(above) or not set(above.syntax.assuming) <= set(below.syntax.assuming):
        return False
    chosen = variants(below.syntax.pattern)
    return bool(chosen) and all(_covers_variant(above, below, q) for q in chosen)


def _covers_variant(above: CheckedRule, below: CheckedRule, q: S.Pattern) -> bool:
    matching = Matching(above, below)
    known = _types_of_copies(below, q)
    for pairs, names in matching.ways(above.syntax.pattern, q, [], {}):
        originals = [(p, known.get(id(part), part)) for p, part in pairs]
        at = matching.instances(originals)
        if at is None:
            continue
        if not above.syntax.clauses:
            return True
        if lanewise(above) and lanewise(below):
            bound = {name: known.get(id(part), part) for name, part in names.items()}
            if all(_implied(above, at[n], below, instance, bound) for n, instance in enumerate(below.instances)):
                return True
    return False


def _types_of_copies(rule: CheckedRule, q: S.Pattern) -> dict[int, S.Syntax]:
    """The parts of the written pattern that a variant's parts are copies of: the written ones are those that have types."""
    spans = {(type(at), at.span): at for at in S.walk(rule.syntax.pattern)}
    copies = ((id(at), spans.get((type(at), at.span))) for at in S.walk(q) if id(at) not in rule.types)
    return {copy: at for copy, at in copies if at is not None}


def _implied(
    above: CheckedRule, at: Instance, below: CheckedRule, instance: Instance, names: dict[str, S.Syntax]
) -> bool:
    """True if the earlier rule's clauses hold wherever the later rule applies, the names standing for parts of its pattern."""

    def fails(encoder: Any) -> list[Any]:
        stands = {n: _stands_for(encoder, above, n, part) for n, part in names.items()}
        return _fail(above, at, encoder.world, stands, {n: _meaning(n, part) for n, part in names.items()})

    return _impossible(_Aside, below, instance, Choices(), None, fails)


def _stands_for(encoder: _Aside, above: CheckedRule, name: str, part: S.Syntax) -> Any:
    node = encoder.nodes[id(part)]
    if above.bindings[name].sort is Sort.VALUE:
        return Constant(node.term, node.dtype)
    return node


def _meaning(name: str, part: Any) -> Any:
    """The words that a name of another rule stands for: those of a part of this one, or its own."""
    words = words_of(part, {})
    return ("other", name) if words is ANY else words


def _fail(
    rule: CheckedRule, instance: Instance, world: Any, names: dict[str, Any], meanings: dict[str, Any]
) -> list[Any]:
    """The condition that a clause of a rule does not hold where its names stand for these nodes; and the facts about bounds that
    this reads. In questions about nodes its names mean the words of another rule.
    """
    reader = Encoder(rule, instance, world, Choices())
    reader.names, reader.meanings = dict(names), dict(meanings)
    held: list[Any] = []
    for clause in rule.syntax.clauses:
        if isinstance(clause, S.If):
            held.append(reader.has_and_holds(clause.condition))
            continue
        value, needed = reader.reading(partial(reader.expression, clause.value))
        held.append(needed)
        if len(clause.names) != 1:
            raise Unsupported("several names at once")
        if isinstance(value, Num):
            held.append(both(value.exists, value.finite))
        elif isinstance(value, Constant | Truth):
            held.append(value.exists)
        elif not isinstance(value, Node):
            raise Unsupported("a value of this kind")
        reader.names[clause.names[0]] = value
        words = words_of(clause.value, reader.meanings)
        reader.meanings[clause.names[0]] = ("other", clause.names[0]) if words is ANY else words
    return [*reader.out.premises, negation(both(*held))]


def returns(rule: CheckedRule) -> bool:
    """True if a rule surely applies again to what it made, whatever its names stand for."""
    if not rule.syntax.clauses or not fires_always(rule) or not lanewise(rule):
        return False
    matched = [names for names in _onto(rule, rule.syntax.pattern, rule.syntax.target, {}) if names is not None]
    return any(all(_returns_at(rule, instance, names) for instance in rule.instances) for names in matched)


def _onto(rule: CheckedRule, p: S.Pattern, e: S.Expr, names: dict[str, S.Expr]) -> Iterator[dict[str, S.Expr] | None]:
    """The ways in which the pattern matches what the target builds."""
    if isinstance(p, S.PBind):
        if p.name not in names:
            yield from _onto(rule, p.inner, e, {**names, p.name: e})
    elif isinstance(p, S.PVar):
        if fits(rule, p, e) and (p.ignored or names.setdefault(p.name, e) == e):
            yield names
    elif isinstance(p, S.POp) and isinstance(e, S.ECall) and e.name in p.ops and len(p.args) == len(e.args):
        for args in (p.args, p.args[::-1]) if p.commutative and len(p.args) == 2 else (p.args,):
            found: list[dict[str, S.Expr]] = [dict(names)]
            for a, b in zip(args, e.args, strict=True):
                found = [more for n in found for more in _onto(rule, a, b, dict(n)) if more is not None]
            yield from found


def _returns_at(rule: CheckedRule, instance: Instance, names: dict[str, S.Expr]) -> bool:

    def fails(encoder: Encoder) -> list[Any]:
        made = {n: encoder.node(e, None) for n, e in names.items()}
        return _fail(rule, instance, encoder.world, made, {n: _meaning(n, e) for n, e in names.items()})

    return _impossible(Encoder, rule, instance, Choices(), None, fails)
