"""Proving rules: files, folders or checked rules in, verdicts out."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from morok.arguments import flag, function, several, text, whole
from morok.arguments import path as path_of
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.reading import decode, read_bytes
from morok.errors import DialectError, MorokError, RuleError, UnprovedRuleError, UsageError
from morok.marks import trusting
from morok.memory import needs_memory
from morok.prove import found_earlier, ledger, obligation_store, promises
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.limits import Limits
from morok.prove.verdict import Verdict, exit_status
from morok.rewrite import folders
from morok.rewrite.files import RuleFile

Source = str | os.PathLike[str]


def default_jobs() -> int:
    return os.cpu_count() or 1


def rule_files(paths: Iterable[Source]) -> list[Path]:
    """The `.rules` files that these paths name, folders searched; UsageError for a path that is neither, or a folder without."""
    return [file for file, _ in packed_files(paths)]


def packed_files(paths: Iterable[Source]) -> list[tuple[Path, str]]:
    """The same files, each with the pack that its rules' names begin with."""
    found: list[tuple[Path, str]] = []
    for p in map(Path, paths):
        below = [f for f in sorted(p.rglob("*.rules")) if not f.is_dir()] if p.is_dir() else [p] if p.is_file() else []
        if not below:
            what = "holds no .rules files" if p.is_dir() else "is no file" if p.exists() else "does not exist"
            raise UsageError(f"{p} {what}", expected="a .rules file or a folder of them")
        found += [(f, folders.pack_of(p)) for f in below]
    return found


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
    time_limit    seconds that all of them may: what is left then is `unknown`, and is asked again by the next run
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
    budget = None if budget is None else whole(budget, "the budget", 0)
    jobs = None if jobs is None else whole(jobs, "the number of jobs", 0)
    use_cache, write, trust_ledger = flag(use_cache, "use_cache"), flag(write, "write"), flag(trust_ledger, "trust_ledger")
    trust_helpers = flag(trust_helpers, "trust_helpers")
    only = None if only is None else text(only, "only")
    for hears, name in ((done, "done"), (total, "total"), (mistakes, "mistakes"), (differs, "differs"), (notes, "notes")):
        if hears is not None:
            function(hears, name)
    folder = None if smt2 is None else path_of(smt2, "the folder of smt2")
    rules = [i for i in items if isinstance(i, CheckedRule)]
    files = packed_files(i for i in items if not isinstance(i, CheckedRule))
    verdicts: list[Verdict] = []
    pending: list[CheckedRule] = list(rules)
    contents: dict[str, bytes] = {}  # read once: what is parsed, proved and recorded are these bytes
    broken: set[str] = set()
    for file, pack in files:
        if str(file) not in contents:
            contents[str(file)] = read_bytes(file)
        content = contents[str(file)]
        loaded = RuleFile(file, content, pack)
        looked = use_cache and not write and smt2 is None and not frozen
        known = ledger.unchanged(file, content, trust_ledger) if looked else None
        calling = known is not None and not folders.is_built_in(file) and any(r.helpers for r in known.values())
        if known is not None and not calling:
            named = [(r, r.name.removeprefix(f"{pack}.")) for g in loaded.index.groups for r in g.rules]
            verdicts += [
                Verdict.recorded(known[own], r.name, str(file), r.line) for r, own in named if _wanted(only, r.name, own)
            ]
            continue
        mine, wrong = _rules_of(loaded, mistakes is not None)
        pending.extend(mine)
        if mistakes is None and wrong:
            broken.add(str(file))
            verdicts += [v for v in _misdeclared(loaded, wrong) if _wanted(only, v.name, v.name.removeprefix(f"{pack}."))]
        if notes is not None and use_cache:
            for line in ledger.outdated(file, trust_ledger or write):
                notes(line)
        if mistakes is not None and wrong:
            broken.add(str(file))
            for error in wrong:
                mistakes(error)
    contents = {} if only is not None else {f: c for f, c in contents.items() if f not in broken}
    if only is not None:
        pending = [r for r in pending if _wanted(only, r.name, r.own)]
    tested = promises.of_rules(pending, trust_helpers) if contracts else {}
    # what keeps its contract is called where a rule is tried
    called = [str(r.helpers) for r in pending if trust_helpers and (t := tested.get(id(r))) is not None and t.state == "tested"]
    contract_of = {(r.file, r.name): tested.get(id(r)) for r in pending}

    def tell(v: Verdict) -> None:
        if done is not None:
            done(v.with_contracts(contract_of.get((v.file, v.name))) if contracts else v)

    if total is not None:
        total(len(verdicts) + len(pending))
    for verdict in verdicts:
        tell(verdict)
    if frozen:
        verdicts += _frozen(pending, tell)
    fresh: list[Verdict] = []
    units = budget or DEFAULT_BUDGET
    limits = Limits.of(rule_limit, time_limit)
    # what is measured runs through the pipeline, which asks the ledger about the rules that are proved
    measured = [r for r in pending if r.syntax.within is not None]
    proved = [r for r in pending if r.syntax.within is None]
    waits = bool(measured) and write and not all(map(_admitted, proved))
    late = {r.file for r in measured}
    meant = {(r.file, r.name): r for r in pending}

    def heard(v: Verdict) -> None:
        rule = meant[v.file, v.name]
        if not v.digest and rule.syntax.within is None:
            v = replace(v, digest=ledger.rule_digest(rule))
            found_earlier.save(v, v.digest, units)
        verdicts.append(v)
        fresh.append(v)
        tell(v)

    for batch in () if frozen else (proved, measured) if waits else (pending,):
        todo: list[CheckedRule] = []
        for rule in batch:
            found = _known(rule, units, trust_ledger, write) if use_cache and smt2 is None else None
            if found is None:
                todo.append(rule)
            else:
                verdicts.append(found)
                tell(found)
        if todo:
            from morok.prove.workers import prove_all

            keep = write or smt2 is not None or differs is not None
            with trusting(called):
                prove_all(todo, units, jobs or default_jobs(), keep, heard, limits)
        if waits and batch is proved:
            record_verdicts([r for r in pending if r.file not in late], verdicts, write, remember, contents)
    if folder is not None and fresh:
        obligation_store.write(folder, fresh)
    if differs is not None:
        compare_with_ledger(pending, verdicts, differs, notes or differs)
    if (write or remember) and pending:
        record_verdicts(pending, verdicts, write, remember, contents)
    if contracts:
        verdicts = [v.with_contracts(contract_of.get((v.file, v.name))) for v in verdicts]
    order = {r.name: i for i, r in enumerate(pending)}
    return sorted(verdicts, key=lambda v: order.get(v.name, -1)) if pending else verdicts


def _rules_of(file: RuleFile, partly: bool) -> tuple[list[CheckedRule], list[MorokError]]:
    """The rules of a file, and its mistakes; unless `partly`, these are raised, but for those of its dialect."""
    from morok.dsl.check import partly_checked
    from morok.dsl.parse import MAX_ERRORS

    try:
        _ = file.index  # kept, so that nothing is parsed the next time
        return list(file.checked.rules()), []
    except RuleError as refused:
        if not partly and not all(isinstance(e, DialectError) for e in refused.errors):
            raise
    try:
        checked, errors = partly_checked(decode(file.content, str(file.path)), str(file.path), pack=file.pack)
    except RuleError as refused:
        checked, errors = None, list(refused.errors)
    return ([] if checked is None else list(checked.rules())), errors[:MAX_ERRORS]


def _misdeclared(file: RuleFile, wrong: Sequence[MorokError]) -> list[Verdict]:
    """The verdicts on the rules of a file that use what its dialect declares wrongly."""
    from morok.dsl.parse import recover

    found = []
    for g in recover(decode(file.content, str(file.path)), str(file.path)).file.groups:
        for rule in (r for item in g.items for r in (item.rules if isinstance(item, S.Template) else (item,))):
            first, last = rule.span.line, rule.span.end_line
            mine = [e for e in wrong if e.place is None or e.place.line == 1 or first <= e.place.line <= last]
            if mine:
                name = ".".join(filter(None, (file.pack, g.name, rule.name)))
                message = "\n".join(dict.fromkeys(f"{e.code}: {e.message}" for e in mine))
                found.append(Verdict(name, str(file.path), first, "broken", message=message, final=False))
    return found


def _items(what: Source | CheckedRule | Sequence[Source | CheckedRule]) -> list[CheckedRule | Path]:
    """The rules and files to prove, one by one."""
    one = isinstance(what, (str, os.PathLike, CheckedRule))
    given = (
        [what] if one else several(what, "what is to be proved", "the path of a .rules file or of a folder, a rule, or a list")
    )
    return [i if isinstance(i, CheckedRule) else path_of(i, "what is to be proved") for i in given]


def _wanted(only: str | None, *names: str) -> bool:
    return only is None or any(fnmatch.fnmatch(name, only) for name in names)


def _known(rule: CheckedRule, budget: int, trust_ledger: bool, write: bool) -> Verdict | None:
    """The verdict on a rule of this meaning that a ledger has, or that this machine has found before.

    write  it must say what was asked, as the ledger does
    """

    def whole(v: Verdict) -> bool:
        return not write or v.verdict not in ledger.USABLE or v.verdict == "approximate" or bool(v.questions)

    record = ledger.recorded(rule, trust_ledger)
    if record is not None and record.verdict in ledger.USABLE:
        found = Verdict.recorded(record, rule.name, rule.file, rule.line)
        if whole(found):
            return found
    if rule.syntax.within is not None:
        return None
    earlier = found_earlier.load(rule, ledger.rule_digest(rule), budget)
    return earlier if earlier is not None and whole(earlier) else None


def _frozen(rules: Sequence[CheckedRule], tell: Callable[[Verdict], None]) -> list[Verdict]:
    """The verdicts in the ledgers of these rules' files, whatever this machine remembers; `unknown` where there is none."""
    found = []
    for file in dict.fromkeys(r.file for r in rules):
        page = ledger.read_page(ledger.page_path(file))
        records = {} if page is None else {r.digest: r for r in page.records.values()}
        for rule in (r for r in rules if r.file == file):
            try:
                record = records.get(ledger.rule_digest(rule))
            except UnprovedRuleError:  # measured in code that rules make which nothing vouches for
                record = None
            if record is not None and record.verdict in ledger.USABLE:
                found.append(Verdict.recorded(record, rule.name, rule.file, rule.line))
            else:
                message = f"{ledger.page_path(file)} has no proof of its present text: `morok prove --write` records one"
                found.append(Verdict(rule.name, rule.file, rule.line, "unknown", message=message, final=False))
            tell(found[-1])
    return found


def _admitted(rule: CheckedRule) -> bool:
    record = ledger.recorded(rule)
    return record is not None and record.verdict in ledger.USABLE


def compare_with_ledger(
    rules: Sequence[CheckedRule],
    verdicts: Sequence[Verdict],
    differs: Callable[[str], None],
    notes: Callable[[str], None],
) -> None:
    """Calls of `differs` for all in which the ledger of these rules' files is not what proving them has just found.

    Resources are counts of one version of the solver. A rule recorded by another version has been proved again by this one,
    so its verdict, scope, digest and obligations are compared, and `notes` is called once for each pair of versions.
    """
    by_name = {(v.file, v.name): v for v in verdicts}
    versions: dict[tuple[str, str], int] = {}
    for file in dict.fromkeys(r.file for r in rules):
        page = ledger.read_page(ledger.page_path(file))
        records = {} if page is None else page.records
        for rule in (r for r in rules if r.file == file):
            found, record = by_name[(file, rule.name)], records.get(rule.own)
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


def record_verdicts(
    rules: Sequence[CheckedRule], verdicts: Sequence[Verdict], write: bool, remember: bool, contents: Mapping[str, bytes]
) -> None:
    """Bring the pages of these rules' files up to date. Only usable verdicts that no wall limit touched are recorded.

    contents  the bytes of the files all of whose rules these are: their pages forget every other rule
    """
    by_name = {(v.file, v.name): v for v in verdicts}
    found: dict[str, tuple[bytes, dict[str, str]]] = {}
    for file in dict.fromkeys(r.file for r in rules):
        mine = [r for r in rules if r.file == file]
        complete = file in contents
        digests = {r.name: by_name[(file, r.name)].digest or ledger.rule_digest(r) for r in mine}
        own = ledger.machine_path(file) if remember or not folders.is_built_in(file) else None
        for path in filter(None, (ledger.page_path(file) if write else None, own)):
            old = ledger.page_at(path)
            records = {} if old is None or complete else dict(old.records)
            for rule in mine:
                verdict = by_name[(file, rule.name)]
                name = rule.own
                records.pop(name, None)
                if verdict.usable and verdict.final:
                    records[name] = verdict.record(digests[rule.name], name)
            page = ledger.Page(Path(file).name, records)
            if path == own:
                ledger.keep_page(path, page)
            else:
                ledger.write_page(path, page)
        if complete:
            found[file] = contents[file], {r.own: digests[r.name] for r in mine}
            ledger.remember(*found[file])
    if write:
        ledger.seal_up(found)


__all__ = ["Verdict", "default_jobs", "exit_status", "packed_files", "prove", "rule_files"]
