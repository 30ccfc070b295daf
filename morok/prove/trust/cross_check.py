"""A second opinion: the ledger's obligations, put to solvers that share no code with the one that answered them.

The ledger keeps a digest of each rule's obligations: they are made again, and compared. Each was answered `unsat`. Bitwuzla
decides those over bit vectors, floats and uninterpreted functions, cvc5 those over integers, reals and uninterpreted sorts. An
answer `sat` from either is a disagreement: one of the solvers is wrong, or the obligation is not the one that was proved.
"""

from __future__ import annotations

import functools
import multiprocessing
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.errors import UsageError
from morok.prove import ledger
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.api import Source, packed_files
from morok.prove.obligation_store import Obligation
from morok.prove.workers import prove_all

LIMIT_MS: Final = 500  # wall milliseconds an obligation: what takes longer stays with the first solver
SOLVERS: Final = ("bitwuzla", "cvc5")

_NUMBERS: Final = re.compile(r"\b(Int|Real)\b|declare-sort|declare-datatype")
_BFLOAT: Final = re.compile(r"\(_ FloatingPoint 8 8\)|\(_ to_fp 8 8\)")  # a format that bitwuzla is not built with


@dataclass(frozen=True, slots=True)
class Question:
    """One obligation of a rule: its name, and SMT-LIB whose answer was `unsat`."""

    rule: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A second solver's answer: "unsat", "sat", "unknown" within its limit, or "unsupported" and why."""

    solver: str
    answer: str
    why: str = ""


def questions(rule: str, obligations: Iterable[Obligation]) -> list[Question]:
    """The obligations of a rule, in their order."""
    return [Question(rule, name, text) for name, text in obligations]


def rules_of(paths: Iterable[Source]) -> list[CheckedRule]:
    """The rules of these files and folders whose proofs are questions to a solver: what is measured is none. UsageError where
    two have one name: obligations in a folder are told apart by it.
    """
    files = packed_files(paths)
    rules = [r for file, pack in files for r in check_file(file, pack=pack).rules() if r.syntax.within is None]
    named = Counter(r.name for r in rules)
    if twice := [name for name, count in named.items() if count > 1]:
        raise UsageError(
            f"{len(twice)} names are those of several rules: {twice[0]}", hint="recheck their packs one by one"
        )
    return rules


def made(rules: Sequence[CheckedRule], jobs: int) -> dict[str, tuple[Obligation, ...]]:
    """The obligations of these rules, by name: they are proved again for it."""
    return {v.name: v.obligations for v in prove_all(rules, DEFAULT_BUDGET, jobs, True)}


def recorded(rules: Sequence[CheckedRule]) -> dict[str, str]:
    """The digest of each rule's obligations in the ledger of its file, whatever else this machine remembers; "" where that has
    none of its present meaning.
    """
    found = {}
    for rule in rules:
        page = ledger.page_at(ledger.page_path(rule.file))
        record = None if page is None else page.find(rule.own, ledger.rule_digest(rule))
        found[rule.name] = "" if record is None else record.questions
    return found


def ask(text: str, limit_ms: int = LIMIT_MS) -> Reply:
    """The answer of the solver whose fragment the question is in; cvc5's where bitwuzla has none."""
    if not _NUMBERS.search(text) and not _BFLOAT.search(text):
        said = _bitwuzla(text, limit_ms)
        if said.answer in ("sat", "unsat"):
            return said
    return _cvc5(text, limit_ms)


def _bitwuzla(text: str, limit_ms: int) -> Reply:
    import bitwuzla  # lazy: a solver of its own

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, limit_ms)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    try:
        parser.parse(text.replace("(check-sat)", ""), True, False)
        return Reply("bitwuzla", str(parser.bitwuzla().check_sat()))
    except bitwuzla.BitwuzlaException as why:
        return Reply("bitwuzla", "unsupported", _first_line(str(why)))


def _cvc5(text: str, limit_ms: int) -> Reply:
    import cvc5  # lazy: a solver of its own

    solver = cvc5.Solver(cvc5.TermManager())
    for name, value in (("tlimit-per", str(limit_ms)), ("fp-exp", "true")):
        solver.setOption(name, value)
    solver.setLogic("ALL")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    symbols = parser.getSymbolManager()
    said = ""
    try:
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, symbols)).strip()
    except RuntimeError as why:
        return Reply("cvc5", "unsupported", _first_line(str(why)))
    if said in ("sat", "unsat"):
        return Reply("cvc5", said)
    return Reply("cvc5", "unknown" if said.startswith("unknown") else "unsupported", _first_line(said))


def _first_line(text: str) -> str:
    """An error, without the numbers in it, so that errors of one kind are counted together."""
    return re.sub(r"\d+", "N", text.strip().splitlines()[0] if text.strip() else "")[:160]


def missing_solvers() -> list[str]:
    return [name for name in SOLVERS if find_spec(name) is None]


def replies(asked: Sequence[Question], jobs: int, limit_ms: int = LIMIT_MS) -> Iterator[tuple[Question, Reply]]:
    """Every question with its answer; equal texts are asked once. More than one job forks."""
    texts = list(dict.fromkeys(q.text for q in asked))
    if jobs > 1 and len(texts) > 1:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            said = pool.map(functools.partial(ask, limit_ms=limit_ms), texts, chunksize=64)
    else:
        said = [ask(t, limit_ms) for t in texts]
    found = dict(zip(texts, said, strict=True))
    for q in asked:
        yield q, found[q.text]


@dataclass(frozen=True, slots=True)
class Report:
    """The number of obligations checked again, by solver and answer; and those answered `sat`."""

    obligations: int
    distinct: int
    counts: dict[tuple[str, str], int]
    reasons: dict[str, int]
    disagreements: tuple[str, ...]
    rules: int
    rules_checked: int


def report(pairs: Iterable[tuple[Question, Reply]]) -> Report:
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    texts: set[str] = set()
    disagreements = []
    open_rules: set[str] = set()
    rules: set[str] = set()
    for q, r in pairs:
        counts[r.solver, r.answer] += 1
        texts.add(q.text)
        rules.add(q.rule)
        if r.answer != "unsat":
            open_rules.add(q.rule)
        if r.answer == "sat":
            disagreements.append(f"{q.name}: {r.solver} has a counterexample")
        elif r.answer != "unsat":
            reasons[f"{r.solver}: {r.why or r.answer}"] += 1
    return Report(
        sum(counts.values()),
        len(texts),
        dict(sorted(counts.items())),
        dict(reasons.most_common()),
        tuple(disagreements),
        len(rules),
        len(rules - open_rules),
    )
