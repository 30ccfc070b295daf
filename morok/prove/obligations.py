"""One rule's obligations: every instance, every alternative, the encodings in turn, and what follows from the answers."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule, Instance
from morok.dsl.extent import texts
from morok.dsl.special_ops import invalid_op
from morok.errors import RuleError
from morok.marks import trusted
from morok.prove import smt
from morok.prove.answers import Answer, Result
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.counterexample import Counterexample
from morok.prove.encoding.chosen import ChosenEncoder
from morok.prove.encoding.counting import CountingEncoder
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.foreign_lanes import ForeignLanes
from morok.prove.encoding.obligation import Choices, Inapplicable, Obligation, OutOfSteps, reads_lanes
from morok.prove.encoding.reindexing import AnyOrderEncoder, ReindexingEncoder
from morok.prove.encoding.structure import StructureEncoder
from morok.prove.forms import about_axes, about_launches, folds_lanes, keeps_statements
from morok.prove.judging import judge, probe
from morok.prove.meanings import asked
from morok.prove.parametric.proof import never_met, parametric_proof
from morok.prove.parametric.setting import Proves
from morok.prove.parametric.tensor_rules import about_tensors, may_be_invalid
from morok.prove.place_forms import keeps_places
from morok.prove.progress import Progress
from morok.prove.refutation import evaluated, read, searched
from morok.prove.rule_syntax import implied_ops, names_in, ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.solve import version
from morok.prove.verdict import Verdict

FIRST: Final = {"base": "over no iterations", "first": "over one iteration"}  # where inductions over iterations begin
OF_NUMBERS: Final = 200_000  # solver units an obligation of a rule about numbers that a proof needs
COMPUTING: Final = {
    "Where",
    "Pad",
    "Wmma",
}  # of what these choose, or make, it is tried whether numbers say that a rule holds
# instances of which nothing is known: no proof comes of the others, and whole graphs are tried yet
ENOUGH_UNKNOWN: Final = 12


def theory_of(rule: CheckedRule) -> Any:
    """The solver theory of the rule's dialect."""
    module, _, name = rule.dialect.theory.partition(":")
    return getattr(importlib.import_module(module), name)()


def prove_rule(rule: CheckedRule, budget: int, keep: bool = False) -> Verdict:
    """Judge one rule. `budget` is in solver units an obligation; `keep` returns the obligations as SMT-LIB."""
    started = time.perf_counter()
    smt.forget()
    progress = Progress(budget, keep)
    theory = theory_of(rule)
    asked.clear()
    try:
        prove_any(rule, theory, progress)
    except OutOfSteps as why:
        progress.unknown.append(str(why))
    settle(rule, progress)
    forgotten = asked.difference(ops_of(rule), implied_ops(rule))
    assert not forgotten, f"the digest of {rule.name} does not cover the meaning of {', '.join(sorted(forgotten))}"
    kind, message = conclude(rule, progress)
    return Verdict(
        name=rule.name,
        file=rule.file,
        line=rule.line,
        verdict=kind,
        scope=scope(rule, progress),
        seconds=time.perf_counter() - started,
        helpers=tuple(sorted(rule.externs)),
        counterexample=progress.refuted.json() if progress.refuted else None,
        message=message,
        resources=progress.resources,
        solver=version(),
        obligations=tuple(progress.obligations),
        final=progress.final,
        extents=tuple(sorted(progress.extents.values())),
    )


def settle(rule: CheckedRule, progress: Progress) -> None:
    """The rest, beyond the sizes that were tried: whatever leaves a rule without a proof at every size, graphs are searched."""
    if progress.extents and progress.refuted is None and not progress.unknown:
        if progress.covered:
            prove_beyond(rule, progress)
        else:
            rule_out_beyond(rule, progress)
    doubtful = progress.refuted is not None and not progress.refuted.confirmed
    if doubtful or (progress.refuted is None and (progress.extents or progress.unknown or progress.refusal)):
        progress.refuted = searched(rule) or progress.refuted
    if not (progress.covered or progress.unknown or progress.refusal or progress.refuted) and built_in(rule.dialect):
        progress.refuted, met = evaluated(rule)
        if met:
            progress.unknown.append(
                "a graph is met on which it fires, and its pattern was read as never having a value"
            )


def prove_beyond(rule: CheckedRule, progress: Progress) -> None:
    """The proof at every size of what was shown of another dialect's rule at some sizes, where it was met: it has no extents."""
    before = len(progress.obligations)
    if not built_in(rule.dialect) and parametric_proof(rule, progress.ask).holds:
        progress.extents.clear()
        progress.everywhere = ("lanes", "items")
    else:
        del progress.obligations[before:]


def rule_out_beyond(rule: CheckedRule, progress: Progress) -> None:
    """The proof that pattern and guards hold together at no size, as they do at none that was tried."""
    before = len(progress.obligations)
    if never_met(rule, progress.ask):
        progress.extents.clear()
    else:
        del progress.obligations[before:]
        tried = ", ".join(texts(progress.extents.values()))
        progress.unknown.append(f"the pattern and the guards hold together at no size that was tried: {tried}")


def prove_any(rule: CheckedRule, theory: Any, progress: Progress) -> None:
    """The proof of a rule: of one about structure for all sizes at once where that can be, else instance by instance."""
    if not keeps_places(rule):
        progress.unknown.append("what is made of a place is no place, or another where something else is stored")
        return
    if not keeps_statements(rule):
        progress.unknown.append(
            "a store, or a loop, is made beside one of the pattern that may be done, too, in no order"
        )
        return
    if not built_in(rule.dialect) or lanewise(rule):
        prove_instances(rule, theory, progress)
        return
    why = decided_at_every_size(rule, progress)
    if why:
        if not (about_axes(rule) or about_launches(rule) or folds_lanes(rule)):
            prove_instances(rule, theory, progress)
            if progress.refuted is not None or progress.refusal or not progress.unknown:
                return
        before = len(progress.obligations)
        if never_met(rule, progress.ask):
            progress.unknown.clear()
            progress.covered.clear()
        else:
            del progress.obligations[before:]
            progress.unknown.insert(0, f"at every size: {why}")


def decided_at_every_size(rule: CheckedRule, progress: Progress) -> str:
    """The reason why a rule is not proved at every size; nothing where it is, or where a graph refutes it.

    A proof counts where the interpreter agrees: the rule is fired on graphs of small and large sizes, and changes the value of
    none. Some of these must be met, as nothing else shows that its pattern and its guards can hold together.
    """
    before = len(progress.obligations)
    proof = parametric_proof(rule, progress.ask, by_numbers(rule, progress))
    tensors = about_tensors(rule)
    met = False
    if proof.holds or tensors:
        progress.refuted, met = evaluated(rule)
    if progress.refuted is None and proof.holds and met:
        progress.covered["tensors" if tensors else "terms"] = ["every dtype"]
        progress.everywhere = ("axes", "elements") if tensors else ("lanes", "items", "axes", "iterations")
        return ""
    del progress.obligations[before:]
    if progress.refuted is not None:
        return ""
    if proof.holds and rule.externs and not trusted(str(rule.helpers)):
        progress.final = False  # whoever trusts them may hear more
        return "no helper of its is called to try it: `morok prove --trust-helpers` and load_rules(.., trust_helpers=True) do"
    return proof.why or "no graph is found on which it fires"


def by_numbers(rule: CheckedRule, progress: Progress) -> Proves | None:
    """The judgement of rules about single numbers by a rule's ops, each by its text at a choice of dtypes: truth of one being
    proved at all choices of the rule. None for a rule of which nothing computes, numbers may be Invalid, or the bits of NaN tell.
    """
    ops = {*ops_of(rule), *implied_ops(rule)}
    if not built_in(rule.dialect) or not COMPUTING & ops or {"Invalid", "Bitcast"} & ops or may_be_invalid(rule):
        return None
    found: dict[str, bool] = {}
    assuming = f" assuming {', '.join(rule.syntax.assuming)}" if rule.syntax.assuming else ""

    def proved(text: str) -> bool:
        try:
            (of,) = check_text(f'group numbers "of a rule"\n\nr: {text}{assuming}\n').rules()
        except RuleError:
            return False
        own = Progress(min(progress.budget, OF_NUMBERS), progress.keep)
        prove_instances(of, theory_of(of), own)
        progress.resources += own.resources
        progress.obligations += own.obligations
        return bool(own.covered) and not (own.unknown or own.refusal or own.refuted or own.extents)

    def every(text: Callable[[Mapping[str, str]], str]) -> bool:
        return all(
            found[t] if t in found else found.setdefault(t, proved(t)) for t in (text(i.dtypes) for i in rule.instances)
        )

    return every


def prove_instances(rule: CheckedRule, theory: Any, progress: Progress) -> None:
    for instance in rule.instances:
        prove_instance(rule, instance, theory, progress)
        if progress.refuted is not None or progress.refusal or len(progress.unknown) >= ENOUGH_UNKNOWN:
            break


def conclude(rule: CheckedRule, progress: Progress) -> tuple[str, str]:
    if progress.refuted is not None:
        return "refuted", progress.refuted.text()
    if progress.refusal:
        return "refuted", progress.refusal
    if progress.unknown:
        return "unknown", "; ".join(list(dict.fromkeys(progress.unknown))[:4])
    if not progress.covered:
        return "inapplicable", "the pattern and the guards never hold together: " + "; ".join(progress.excluded[:4])
    if is_definition(rule.syntax):
        return "defined", ""
    if progress.extents:
        return "bounded", ""
    return "proved", ""


def scope(rule: CheckedRule, progress: Progress) -> tuple[str, ...]:
    """The cover of a proof, in words: the instances by encoding, the bounds, the assumptions, the cases that guards exclude."""
    out = [f"{', '.join(dict.fromkeys(names))}: {encoding}" for encoding, names in progress.covered.items()]
    if progress.extents:
        out.append(f"bounded: {', '.join(texts(progress.extents.values()))}")
    if rule.syntax.assuming:
        out.append(f"assuming {', '.join(rule.syntax.assuming)}")
    if "reassoc" in rule.syntax.assuming:
        out.append("over the real numbers")
    if everywhere := progress.everywhere or (("lanes",) if lanewise(rule) else ()):
        out.append(f"any number of {', '.join(everywhere)}")
    if progress.excluded:
        out.append(f"excluded by the guards: {', '.join(dict.fromkeys(progress.excluded))}")
    return tuple(out)


def label(rule: CheckedRule, instance: Instance) -> str:
    """The instance in a word: its dtypes, or the dtypes that the rule itself names."""
    values = list(instance.dtypes.values())
    if not values:
        named = {t.element for t in rule.types.values() if t.fixed and t.element not in ("bool", "void", "any")}
        values = sorted(named) or ["bool" if any(t.element == "bool" for t in rule.types.values()) else "any"]
    return values[0] if len(set(values)) == 1 else "/".join(values)


def prove_instance(rule: CheckedRule, instance: Instance, theory: Any, progress: Progress) -> None:
    """Every alternative of the pattern at one choice of dtypes."""
    choices = Choices()
    attempts = [(a, r) for a in encodings(rule, instance, theory) for r in readings(rule)]
    applicable = False
    stopped = False
    while True:
        found = prove_choice(rule, instance, attempts, choices, progress)
        applicable |= found
        if progress.refuted is not None or progress.refusal:
            stopped = True
            break
        if len(progress.unknown) >= ENOUGH_UNKNOWN or not choices.advance():
            break
    if not applicable and not stopped:
        progress.excluded.append(label(rule, instance))


def encodings(rule: CheckedRule, instance: Instance, theory: Any) -> Iterator[Any]:
    dtypes = sorted({*instance.dtypes.values(), *(t.element for t in rule.types.values() if t.fixed)})
    numeric = any(isinstance(c, S.If) or not _is_eval(c.value) for c in rule.syntax.clauses)
    yield from theory.attempts(frozenset(ops_of(rule)), dtypes, numeric, "reassoc" in rule.syntax.assuming)


def _is_eval(e: S.Expr) -> bool:
    return isinstance(e, S.ECall) and e.name == "eval"


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative of a rule at one instance in one encoding, and what must hold."""

    attempt: Any
    world: Any
    obligation: Obligation


def prove_choice(
    rule: CheckedRule, instance: Instance, attempts: Sequence[Any], choices: Choices, progress: Progress
) -> bool:
    """One alternative at one instance. Whether pattern and guards can hold together."""
    reasons: list[str] = []
    where = label(rule, instance)
    refutation = Refutation(rule, instance, where, progress, reasons)
    undecided: list[Case] = []
    favourites = [f for f in progress.favourites if f in attempts]
    for favourite in [*favourites, *(a for a in attempts if a not in favourites)]:
        attempt, reading = favourite
        choices.restart()
        world = attempt.world()
        encoder = reading(rule, instance, world, choices)
        try:
            obligation = encoder.encode()
            if getattr(encoder, "folds", None):
                obligation = by_induction(rule, instance, world, choices, obligation, attempt)
        except Unsupported as why:
            reasons.append(f"{attempt.name}: {why}")
            continue
        except Inapplicable:
            progress.tried(world)
            return False
        possible = _applicable(f"{rule.name} {where} applicable", obligation, attempt, progress)
        if possible.answer is Answer.UNSAT:
            if progress.keep:
                progress.obligations.pop()
            progress.tried(world)
            return False
        case = Case(attempt, world, obligation)
        reasons += [
            f"{attempt.name}: {op} is known within its tolerance alone" for op in sorted(getattr(world, "inexact", ()))
        ]
        state, model = judge(rule, where, obligation, attempt, world, progress)
        if state is Answer.UNSAT:
            if possible.answer is Answer.UNKNOWN and not progress.covered:
                reasons.append(f"{attempt.name}: whether it applies at all is not known")
                continue
            progress.covered.setdefault(attempt.name, []).append(where)
            # likely next
            progress.favourites = [favourite, *(f for f in progress.favourites if f != favourite)]
            progress.tried(world)
            return True
        if progress.refusal or progress.refuted is not None or (state is Answer.SAT and refutation.by(case, model)):
            return True
        if state is Answer.UNKNOWN:
            reasons.append(f"{attempt.name}: out of resources")
            undecided.append(case)
    for case in undecided:  # only now, since nothing proves it
        model = probe(case.obligation, case.world, progress)
        if model is not None and refutation.by(case, model):
            return True
    progress.unknown.append(f"{where}: {', '.join(in_few_words(reasons)) or 'no encoding'}{refutation.maybe()}")
    return True


def _applicable(name: str, obligation: Obligation, attempt: Any, progress: Progress) -> Result:
    """The answer to whether pattern and guards can hold together: SAT where a known witness shows it."""
    premises = obligation.premises if obligation.applicable is None else obligation.applicable
    if progress.witnesses.exists(obligation, premises):
        return Result(Answer.SAT)
    possible: Result = progress.ask(name, premises, attempt.share, model=False)
    if possible.model is not None:
        progress.witnesses.learn(premises, possible.model)
    return possible


def in_few_words(reasons: Sequence[str]) -> list[str]:
    """The reasons why encodings failed, each once: with the encoding's name where only one had it."""
    named: dict[str, list[str]] = {}
    for reason in reasons:
        name, _, why = reason.partition(": ")
        named.setdefault(why, []).append(name)
    return [f"{names[0]}: {why}" if len(set(names)) == 1 else why for why, names in named.items()]


@dataclass(slots=True)
class Refutation:
    """The refutation of a rule by models of the premises and the negated claim.

    doubtful  a model in which the rule is false, of an encoding that knows too little, and that evaluation does not confirm
    """

    rule: CheckedRule
    instance: Instance
    where: str
    progress: Progress
    reasons: list[str]
    doubtful: Counterexample | None = None

    def by(self, case: Case, model: Any) -> bool:
        """True if this model refutes the rule: then `progress` has it; else why not is among the reasons."""
        name, o, world = case.attempt.name, case.obligation, case.world
        found = read(self.rule, self.instance, o, world, model)
        if world.exact or found.confirmed:
            self.progress.refuted = found
            return True
        self.doubtful = self.doubtful or found
        self.reasons.append(f"{name}: a model that is no counterexample in itself")
        return False

    def maybe(self) -> str:
        return f" ({self.doubtful.text()})" if self.doubtful else ""


def by_induction(
    rule: CheckedRule,
    instance: Instance,
    world: Any,
    choices: Choices,
    before: Obligation,
    attempt: Any,
) -> Obligation:
    """A rule about folds: true of no iterations (a lemma), and of one more where it is true of some (what is returned). That it
    is true of one is a lemma, too, where a fold of nothing has no value.
    """
    lemmas: list[tuple[str, tuple[Any, ...], Any]] = []
    for phase, said in FIRST.items():
        apart = attempt.world()
        apart.part = phase  # what it introduces is not what `world` does, though one question is about both
        choices.restart()
        encoder = StructureEncoder(rule, instance, apart, choices, phase=phase)
        try:
            found = encoder.encode()
            lemmas += [*found.lemmas, (said, tuple(found.premises), found.claim)]
        except Inapplicable:
            pass  # the pattern has no value there
        for extent in apart.extents.values():
            world.tries(extent)
        if not encoder.begins_anew():
            break
    choices.restart()
    after = StructureEncoder(rule, instance, world, choices, phase="after").encode()
    assert before.pattern is not None
    lanes = before.pattern.lanes
    after.premises.append(before.claim if len(lanes) > 1 else smt.Or(smt.Not(lanes[0].defined), before.claim))
    after.laws |= before.laws
    after.lemmas += lemmas
    return after


def encoder_for(rule: CheckedRule, instance: Instance, world: Any, choices: Choices) -> Encoder:
    if lanewise(rule):
        return Encoder(rule, instance, world, choices)
    return (StructureEncoder if built_in(rule.dialect) else ForeignLanes)(rule, instance, world, choices)


@once_a_rule
def readings(rule: CheckedRule) -> list[Callable[..., Any]]:
    """The ways to read a rule: by its form, as an index map of loops that it closes anew, by induction on a fold's length."""
    found: list[Callable[..., Any]] = [encoder_for]
    ops = set(ops_of(rule))
    if "Range" in ops and "subst" in names_in(rule.syntax.target):
        found += [ReindexingEncoder, AnyOrderEncoder] if "Reduce" in ops else [ReindexingEncoder]
    if {"Reduce", "Range"} <= ops:
        found += [ChosenEncoder, CountingEncoder] if "subst" in names_in(rule.syntax.target) else [CountingEncoder]
    return found


@once_a_rule
def lanewise(rule: CheckedRule) -> bool:
    """True if one lane stands for all: every op works lane by lane, or is the same in every lane."""
    ops = rule.dialect.ops
    special = (invalid_op(rule.dialect), rule.dialect.inline.get("const_op"))
    if reads_lanes(rule):
        return False
    return rule.pointwise or all(ops[n].params or ops[n].solver or n in special for n in ops_of(rule))


def is_definition(rule: S.Rule) -> bool:
    """True if a rule is the meaning of an op: `op(@const(a), ..)` becomes the constant `eval(op, a, ..)`, and nothing else.

    Read off the rule's form: one op over constants that are bound to distinct names, one `let` that evaluates exactly this op on
    exactly these names in this order, and that value as the target.
    """
    p = rule.pattern
    if not isinstance(p, S.POp) or len(p.ops) != 1 or rule.assuming or len(rule.clauses) != 1:
        return False
    let = rule.clauses[0]
    if (
        not isinstance(let, S.Let)
        or len(let.names) != 1
        or not isinstance(let.value, S.ECall)
        or let.value.name != "eval"
    ):
        return False
    named = [a for a in p.args if not isinstance(a, S.PType)]
    if not all(isinstance(a, S.PConst) and a.kind == "const" and a.name is not None for a in named):
        return False
    names = [a.name for a in named if isinstance(a, S.PConst)]
    dtypes = [a.type for a in p.args if isinstance(a, S.PType)]
    op, *arguments = let.value.args
    wanted = [*names, *(t.name for t in dtypes if isinstance(t, S.TName))]
    given = [a.name if isinstance(a, S.EName) else a.type.name if isinstance(a, S.EType) and isinstance(a.type, S.TName) else None
             for a in arguments]  # fmt: skip
    if not isinstance(op, S.EName) or op.name != p.ops[0] or given != wanted or len(set(names)) != len(names):
        return False
    t = rule.target
    if isinstance(t, S.ECall) and t.name == "const" and len(t.args) == 2:
        return isinstance(t.args[0], S.EName) and t.args[0].name == let.names[0]
    return isinstance(t, S.EName) and t.name == let.names[0]


__all__ = ["Progress", "is_definition", "prove_rule"]
