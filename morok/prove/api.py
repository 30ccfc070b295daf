"""Proving rules: files, folders or checked rules in, verdicts out."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from morok.arguments import flag, function, several, text, whole
from morok.arguments import path as path_of
from morok.dsl.checked import CheckedRule
from morok.dsl.file_bytes import read_bytes, unreadable
from morok.errors import MorokError, RuleError, UnprovedRuleError, UsageError
from morok.marks import trusting
from morok.out_of_memory import needs_memory
from morok.prove import found_earlier, ledger, obligation_store, promises
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.contract_state import Tested
from morok.prove.limits import Limits
from morok.prove.page import Record
from morok.prove.verdict import Verdict, exit_status
from morok.rewrite import folders
from morok.rewrite.files import RuleFile

Source = str | os.PathLike[str]
Judged = tuple[CheckedRule, Verdict]


def default_jobs() -> int:
    return os.cpu_count() or 1


def rule_files(paths: Iterable[Source]) -> list[Path]:
    """The `.rules` files that these paths name, folders searched; UsageError for a path that is neither, or a folder without."""
    return [file for file, _ in packed_files(paths)]


def packed_files(paths: Iterable[Source]) -> list[tuple[Path, str]]:
    """The same files, each with the pack that its rules' names begin with."""
    found: list[tuple[Path, str]] = []
    for p in map(Path, paths):
        below = folders.files_of(p) if p.is_dir() or p.is_file() else []
        if not below:
            what = "holds no .rules files" if p.is_dir() else "is no file" if p.exists() else "does not exist"
            raise UsageError(f"{p} {what}", expected="a .rules file or a folder of them")
        found += [(f, folders.pack_of(p)) for f in below]
    return found


@dataclass(slots=True)
class _Effort:
    """The work that may be done: the arguments of `prove`, checked."""

    budget: int | None
    jobs: int | None
    rule_limit: float | None
    time_limit: float | None

    def __post_init__(self) -> None:
        self.budget = None if self.budget is None else whole(self.budget, "the budget", 0)
        self.jobs = None if self.jobs is None else whole(self.jobs, "the number of jobs", 0)

    @property
    def units(self) -> int:
        return self.budget or DEFAULT_BUDGET


@dataclass(slots=True)
class _Ledgers:
    """The records that are believed, and those that are made: the arguments of `prove`, checked."""

    use_cache: bool
    write: bool
    trust_ledger: bool
    remember: bool
    frozen: bool

    def __post_init__(self) -> None:
        self.use_cache = flag(self.use_cache, "use_cache")
        self.write = flag(self.write, "write")
        self.trust_ledger = flag(self.trust_ledger, "trust_ledger")


@dataclass(slots=True)
class _Hearers:
    """The functions that are called as things are found: the arguments of `prove`, checked."""

    done: Callable[[Verdict], None] | None
    total: Callable[[int], None] | None
    mistakes: Callable[[MorokError], None] | None
    differs: Callable[[str], None] | None
    notes: Callable[[str], None] | None

    def __post_init__(self) -> None:
        for name in ("done", "total", "mistakes", "differs", "notes"):
            if (hears := getattr(self, name)) is not None:
                function(hears, name)


class _Proving:
    """One call of `prove`, step by step. What is said of a rule is kept by the rule's id: two of them, as before and after an
    edit, may have one file and one name.

    known     the verdicts of files that need no judging
    pending   the rules that are still to be judged, in the order of their verdicts
    found     the verdicts on these; `fresh` are those that no ledger had
    contents  the bytes of each file all of whose rules are judged: what is parsed, proved and recorded are these
    broken    the files with mistakes
    called    the modules of helpers that keep their contracts: proofs may call them
    contract_of  the state of the contracts that each rule relies on
    """

    def __init__(
        self,
        effort: _Effort,
        ledgers: _Ledgers,
        hearers: _Hearers,
        only: str | None,
        smt2: Path | None,
        contracts: bool,
    ) -> None:
        self.effort = effort
        self.ledgers = ledgers
        self.hearers = hearers
        self.only = only
        self.smt2 = smt2
        self.contracts = contracts
        self.known: list[Verdict] = []
        self.pending: list[CheckedRule] = []
        self.found: dict[int, Verdict] = {}
        self.fresh: list[Verdict] = []
        self.contents: dict[str, bytes] = {}
        self.broken: set[str] = set()
        self.limits = Limits.of(effort.rule_limit, effort.time_limit)  # what prepares the proofs is a part of the time
        self.called: list[str] = []
        self.contract_of: dict[int, Tested | None] = {}

    def read(self, items: Sequence[CheckedRule | Path]) -> None:
        """Take the rules, and the files, whose rules are pending unless the ledger knows the file as it is."""
        given = [i for i in items if isinstance(i, CheckedRule)]
        self.pending += given
        for file, pack in packed_files(i for i in items if not isinstance(i, CheckedRule)):
            if str(file) not in self.contents and not self._read_bytes(file):
                continue
            loaded = RuleFile(file, self.contents[str(file)], pack)
            known = self._unchanged(loaded)
            if known is None:
                self._read_rules(loaded)
            else:
                named = [(r, r.name.removeprefix(f"{pack}.")) for g in loaded.index.groups for r in g.rules]
                self.known += [
                    Verdict.recorded(known[own], r.name, str(file), r.line)
                    for r, own in named
                    if _wanted(self.only, r.name, own)
                ]
        if self.only is None:
            others = self.broken.union(r.file for r in given)  # which may be of another text
            self.contents = {f: c for f, c in self.contents.items() if f not in others}
        else:  # a page forgets no rule that was not asked for
            self.contents = {}
            self.pending = [r for r in self.pending if _wanted(self.only, r.name, r.own)]

    def _read_bytes(self, file: Path) -> bool:
        """True if a file can be read. Where somebody hears of mistakes it is one if not, and other files have their verdicts."""
        try:
            self.contents[str(file)] = read_bytes(file)
        except OSError as problem:
            if self.hearers.mistakes is None:
                raise
            self.hearers.mistakes(unreadable(file, problem))
            return False
        return True

    def _unchanged(self, file: RuleFile) -> Mapping[str, Record] | None:
        """The records of a file that the ledger knows as it is; None where it does not, or where its rules are to be judged anew:
        contracts of their helpers may have to be tested.
        """
        if not self.ledgers.use_cache or self.ledgers.write or self.smt2 is not None or self.ledgers.frozen:
            return None
        own = folders.is_built_in(file.path)
        try:
            dialect = None if own else file.foreign
        except RuleError:  # which are told where its rules are read
            return None
        known = ledger.unchanged(file.path, file.content, self.ledgers.trust_ledger, dialect)
        calling = known is not None and not own and any(r.helpers for r in known.values())
        return None if calling else known

    def _pages_read(self, file: RuleFile) -> tuple[bool, bool]:
        """(the page in a file's own ledger is read, and this machine's is)"""
        asked = self.ledgers
        believed = asked.use_cache and (asked.trust_ledger or folders.is_built_in(file.path))
        compared = asked.write or asked.frozen or self.hearers.differs is not None
        return believed or compared, asked.use_cache and not asked.frozen

    def _read_rules(self, file: RuleFile) -> None:
        """Take a file's rules, and what is wrong with it."""
        from morok.prove.parsed_files import misdeclared, rules_of  # lazy: a file that the ledger knows is not parsed

        mistakes, notes = self.hearers.mistakes, self.hearers.notes
        mine, wrong = rules_of(file, mistakes is not None)
        self.pending += mine
        if mistakes is None and wrong:
            named = ((v, v.name.removeprefix(f"{file.pack}.")) for v in misdeclared(file, wrong))
            self.known += [v for v, own in named if _wanted(self.only, v.name, own)]
        if notes is not None:
            for line in ledger.outdated(file.path, *self._pages_read(file)):
                notes(
                    f"{line}: {'none of its rules has a proof' if self.ledgers.frozen else 'its rules are proved again'}"
                )
        if wrong:
            self.broken.add(str(file.path))
        if mistakes is not None:
            for error in wrong:
                mistakes(error)

    def test_contracts(self, trust_helpers: bool) -> None:
        """Test the contracts of the pending rules' helpers, as far as their modules may be called."""
        tested = promises.of_rules(self.pending, trust_helpers, self.limits) if self.contracts else {}
        for rule in self.pending:
            found = self.contract_of[id(rule)] = tested.get(id(rule))
            if trust_helpers and found is not None and found.state == "tested":
                self.called.append(str(rule.helpers))

    def _told(self, rule: CheckedRule | None, v: Verdict) -> Verdict:
        """A verdict as it is told: with the state of the contracts that it relies on, and the place of what cannot be used."""
        told = v.with_contracts(self.contract_of.get(id(rule))) if self.contracts else v
        return told if rule is None or told.usable else replace(told, column=rule.syntax.span.column)

    def _tell(self, rule: CheckedRule | None, v: Verdict) -> None:
        if self.hearers.done is not None:
            self.hearers.done(self._told(rule, v))

    def _hear(self, rule: CheckedRule, v: Verdict) -> None:
        self.found[id(rule)] = v
        self._tell(rule, v)

    def judge(self) -> None:
        """Give every pending rule its verdict."""
        if self.hearers.total is not None:
            self.hearers.total(len(self.known) + len(self.pending))
        for verdict in self.known:
            self._tell(None, verdict)
        if self.ledgers.frozen:
            _frozen(self.pending, self._hear)
            return
        # what is measured runs through the pipeline, which asks the ledger about the rules that are proved
        measured = [r for r in self.pending if r.syntax.within is not None]
        proved = [r for r in self.pending if r.syntax.within is None]
        if not (measured and self.ledgers.write) or all(map(_admitted, proved)):
            self._judge(self.pending)
            return
        self._judge(proved)
        late = {r.file for r in measured}
        self._record([r for r in self.pending if r.file not in late])
        self._judge(measured)

    def _judge(self, rules: Sequence[CheckedRule]) -> None:
        """Give these rules their verdicts: recorded ones where they may be believed, and others by the solver. When the time is
        over, only the ledger is asked.
        """
        ledgers, units = self.ledgers, self.effort.units
        believed = ledgers.use_cache and self.smt2 is None
        todo: list[CheckedRule] = []
        for rule in rules:
            why = self.limits.over()
            found = _recorded(rule, ledgers.trust_ledger, ledgers.write) if believed else None
            if found is None and why:
                found = Verdict(rule.name, rule.file, rule.line, "unknown", message=why, final=False)
            if found is None and believed:
                found = _found_earlier(rule, units, ledgers.write)
            if found is None:
                todo.append(rule)
            else:
                self._hear(rule, found)
        if not todo:
            return
        from morok.prove.workers import prove_all, told_of  # lazy: loads the solver

        told = told_of(todo)
        # of what is proved, as it is before: files of a dialect may be edited while the solver is asked
        meanings = {id(r): ledger.rule_digest(r) for r in todo if r.syntax.within is None}

        def heard(rule: CheckedRule, v: Verdict) -> None:
            if v.final and not v.digest and rule.syntax.within is None:
                v = replace(v, digest=meanings[id(rule)])
                found_earlier.save(v, v.digest, units)
            self.fresh.append(v)
            self._hear(rule, v)

        keep = ledgers.write or self.smt2 is not None or self.hearers.differs is not None
        with trusting(self.called):
            prove_all(todo, units, self.effort.jobs or default_jobs(), keep, heard, self.limits, told)

    def record(self) -> None:
        """Write what was asked for: obligations, differences from the ledger, the ledger."""
        if self.smt2 is not None and self.fresh:
            obligation_store.write(self.smt2, self.fresh)
        if self.hearers.differs is not None:
            notes = self.hearers.notes or self.hearers.differs
            compare_with_ledger(self._judged(self.pending), self.hearers.differs, notes)
        if (self.ledgers.write or self.ledgers.remember) and self.pending:
            self._record(self.pending)

    def _record(self, rules: Sequence[CheckedRule]) -> None:
        record_verdicts(self._judged(rules), self.ledgers.write, self.ledgers.remember, self.contents)

    def _judged(self, rules: Iterable[CheckedRule]) -> list[Judged]:
        return [(r, self.found[id(r)]) for r in rules]

    def in_order(self) -> list[Verdict]:
        """The verdicts in the order of the rules, those first that needed no judging."""
        known = [self._told(None, v) for v in self.known]
        return [*known, *(self._told(r, v) for r, v in self._judged(self.pending))]


@needs_memory("prove rules")
def prove(
    what: Source | CheckedRule | Sequence[Source | CheckedRule] | None = None,
    *,
    budget: int | None = None,
    jobs: int | None = None,
    use_cache: bool = True,
    write: bool = False,
    only: str | None = None,
    smt2: Source | None = None,
    trust_ledger: bool = False,
    remember: bool = False,
    trust_helpers: bool = False,
    contracts: bool = True,
    frozen: bool = False,
    rule_limit: float | None = None,
    time_limit: float | None = None,
    done: Callable[[Verdict], None] | None = None,
    total: Callable[[int], None] | None = None,
    mistakes: Callable[[MorokError], None] | None = None,
    differs: Callable[[str], None] | None = None,
    notes: Callable[[str], None] | None = None,
) -> list[Verdict]:
    """The verdict on every rule of `what`: paths of files and folders, or checked rules; the built-in rules by default.

    budget        solver resource units an obligation
    use_cache     believe the ledger (of the built-in rules, and of what this machine proved) about unchanged rules
    write         record the verdicts in the ledger that belongs to each file
    only          a glob over rule names, with their pack's or without
    smt2          a folder for the obligations, one file a rule
    trust_ledger  believe a pack's own ledger too
    remember      record on this machine what was proved
    frozen        ask no solver: a rule that its file's ledger has no record of is `unknown`
    rule_limit    seconds a rule may take, and
    time_limit    seconds that all of them may, with what prepares their proofs: what is left then is `unknown`, and is asked
                  again by the next run. Files are read to their ends, since every rule has its verdict
    trust_helpers run the modules of helpers to test their contracts, where no earlier test is of the same files
    contracts     say of each verdict whether the contracts that it relies on are tested, and call it `broken` where one is false
    done          hears of each verdict as it comes, recorded ones first
    total         hears how many verdicts there will be, before the first
    mistakes      hears of every mistake in a file, and every other rule gets its verdict
    differs       hears of everything in which the ledger says other than what was found: verdicts, scopes, resources, obligations
    notes         hears of pages of another format, which count for nothing; with `differs`, of a solver of another version than
                  the ledger has: its resources are not compared

    Without `mistakes` raises RuleError with every mistake if a file cannot be checked.
    """
    items = [folders.rules_folder()] if what is None else _items(what)
    effort = _Effort(budget, jobs, rule_limit, time_limit)
    ledgers = _Ledgers(use_cache, write, trust_ledger, remember, frozen)
    hearers = _Hearers(done, total, mistakes, differs, notes)
    folder = None if smt2 is None else path_of(smt2, "the folder of smt2")
    proving = _Proving(effort, ledgers, hearers, None if only is None else text(only, "only"), folder, contracts)
    proving.read(items)
    proving.test_contracts(flag(trust_helpers, "trust_helpers"))
    proving.judge()
    proving.record()
    return proving.in_order()


def _items(what: Source | CheckedRule | Sequence[Source | CheckedRule]) -> list[CheckedRule | Path]:
    """The rules and files to prove, one by one."""
    one = isinstance(what, (str, os.PathLike, CheckedRule))
    given = (
        [what]
        if one
        else several(what, "what is to be proved", "the path of a .rules file or of a folder, a rule, or a list")
    )
    return [i if isinstance(i, CheckedRule) else path_of(i, "what is to be proved") for i in given]


def _wanted(only: str | None, *names: str) -> bool:
    return only is None or any(fnmatch.fnmatch(name, only) for name in names)


def _whole(v: Verdict, write: bool) -> bool:
    """True if a verdict says all that is needed: where it is written, what was asked, too."""
    return not write or v.verdict not in ledger.USABLE or v.verdict == "approximate" or bool(v.questions)


def _recorded(rule: CheckedRule, trust_ledger: bool, write: bool) -> Verdict | None:
    """The verdict on a rule of this meaning that a ledger has."""
    record = ledger.recorded(rule, trust_ledger)
    if record is None or record.verdict not in ledger.USABLE:
        return None
    found = Verdict.recorded(record, rule.name, rule.file, rule.line)
    return found if _whole(found, write) else None


def _found_earlier(rule: CheckedRule, budget: int, write: bool) -> Verdict | None:
    """The verdict on a rule of this meaning that this machine has found before."""
    if rule.syntax.within is not None:
        return None
    found = found_earlier.load(rule, ledger.rule_digest(rule), budget)
    return found if found is not None and _whole(found, write) else None


def _frozen(rules: Sequence[CheckedRule], hear: Callable[[CheckedRule, Verdict], None]) -> None:
    """Calls of `hear` with the verdicts in the ledgers of these rules' files, whatever this machine remembers; `unknown` where
    there is none.
    """
    for file in dict.fromkeys(r.file for r in rules):
        page = ledger.read_page(ledger.page_path(file))
        records = {} if page is None else {r.digest: r for r in page.records.values()}
        missing = (
            "".join(ledger.outdated(file, True, False)) or f"{ledger.page_path(file)} has no proof of its present text"
        )
        for rule in (r for r in rules if r.file == file):
            try:
                record = records.get(ledger.rule_digest(rule))
            except UnprovedRuleError:  # measured in code that rules make which nothing vouches for
                record = None
            if record is not None and record.verdict in ledger.USABLE:
                hear(rule, Verdict.recorded(record, rule.name, rule.file, rule.line))
            else:
                message = f"{missing}: `morok prove --write` records one"
                hear(rule, Verdict(rule.name, rule.file, rule.line, "unknown", message=message, final=False))


def _admitted(rule: CheckedRule) -> bool:
    record = ledger.recorded(rule)
    return record is not None and record.verdict in ledger.USABLE


def compare_with_ledger(judged: Sequence[Judged], differs: Callable[[str], None], notes: Callable[[str], None]) -> None:
    """Calls of `differs` for all in which the ledger of these rules' files is not what proving them has just found.

    Resources are counts of one version of the solver. A rule recorded by another version has been proved again by this one,
    so its verdict, scope, digest and obligations are compared, and `notes` is called once for each pair of versions.
    """
    versions: dict[tuple[str, str], int] = {}
    for file in dict.fromkeys(r.file for r, _ in judged):
        page = ledger.read_page(ledger.page_path(file))
        records = {} if page is None else page.records
        for rule, found in ((r, v) for r, v in judged if r.file == file):
            record = records.get(rule.own)
            if record is None:
                differs(f"{rule.name}: {found.verdict}, and the ledger has no record of it")
                continue
            fresh = found.record(found.digest or ledger.rule_digest(rule), rule.own)
            compared = ["digest", "verdict", "scope", "questions", "solver", "resources"]
            if fresh.solver != record.solver and fresh.solver.split()[:1] == record.solver.split()[:1]:
                versions[fresh.solver, record.solver] = versions.get((fresh.solver, record.solver), 0) + 1
                compared = compared[:4]
            for name in compared:
                now, before = getattr(fresh, name), getattr(record, name)
                if now != before:
                    differs(f"{rule.name}: {name} is {now}, in the ledger {before}")
    for (now, before), count in versions.items():
        notes(
            f"{now} proved {count} rules that the ledger has from {before}; verdicts and scopes were compared, resources were not"
        )


def record_verdicts(judged: Sequence[Judged], write: bool, remember: bool, contents: Mapping[str, bytes]) -> None:
    """Bring the pages of these rules' files up to date. Only usable verdicts that no wall limit touched are recorded; of a rule
    that one left `unknown`, an earlier record of the same meaning stays.

    contents  the bytes of the files of which all rules are among these, and no others: their pages forget every other rule
    """
    found: dict[str, tuple[bytes, dict[str, str]]] = {}
    dialects = {r.file: r.dialect for r, _ in judged}  # of a file that was read they are of one
    for file, dialect in dialects.items():
        mine = [(r.own, v, v.digest or ledger.rule_digest(r)) for r, v in judged if r.file == file]
        complete = file in contents
        own = ledger.machine_path(file) if remember or not folders.is_built_in(file) else None
        for path in filter(None, (ledger.page_path(file) if write else None, own)):
            old = ledger.page_at(path)
            records = {} if old is None or complete else dict(old.records)
            for name, verdict, digest in mine:
                records.pop(name, None)
                open_still = verdict.verdict == "unknown" and not verdict.final
                earlier = old.find(name, digest) if old is not None and open_still else None
                if verdict.usable and verdict.final:
                    records[name] = verdict.record(digest, name)
                elif earlier is not None:
                    records[name] = replace(earlier, name=name)
            page = ledger.Page(Path(file).name, records)
            if path == own:
                ledger.keep_page(path, page)
            else:
                ledger.write_page(path, page)
        if complete:
            found[file] = contents[file], {name: digest for name, _, digest in mine}
            ledger.remember(*found[file], dialect)
    if write:
        ledger.seal_up(found)


__all__ = ["Verdict", "default_jobs", "exit_status", "packed_files", "prove", "rule_files"]
