"""Proving rules: files, folders or checked rules in, verdicts out."""

from __future__ import annotations

import fnmatch
import lzma
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from morok.dsl.checked import CheckedRule
from morok.errors import Place, UsageError
from morok.prove import ledger, stamp
from morok.prove.verdict import Verdict, exit_status

Source = str | os.PathLike[str]


def default_jobs() -> int:
    return os.cpu_count() or 1


def rule_files(paths: Iterable[Source]) -> list[Path]:
    """The `.rules` files that these paths name, folders searched; UsageError for a path that is neither."""
    found: list[Path] = []
    for p in map(Path, paths):
        if p.is_dir():
            found.extend(sorted(p.rglob("*.rules")))
        elif p.is_file():
            found.append(p)
        else:
            raise UsageError(
                f"there is no rule file or folder {p}", place=Place(str(p), 1), expected="a .rules file or a folder of them"
            )
    return found


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
    done: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """The verdict on every rule of `what`: paths of files and folders, or checked rules; the built-in rules by default.

    budget        solver resource units an obligation
    use_cache     believe the ledger (of the built-in rules, and of what this machine proved) about unchanged rules
    write         record the verdicts in the ledger that belongs to each file, with the obligations
    only          a glob over rule names
    smt2          a folder for the obligations, one file a rule
    trust_ledger  believe a pack's own ledger too
    remember      record on this machine what was proved
    done          hears of each verdict as it comes

    Raises RuleError with every mistake if a file cannot be checked.
    """
    items = (
        [ledger.rules_folder()] if what is None else [what] if isinstance(what, (str, os.PathLike, CheckedRule)) else list(what)
    )
    rules = [i for i in items if isinstance(i, CheckedRule)]
    files = rule_files(i for i in items if not isinstance(i, CheckedRule))
    verdicts: list[Verdict] = []
    pending: list[CheckedRule] = list(rules)
    for file in files:
        known = ledger.unchanged(file, trust_ledger) if use_cache and not write and smt2 is None else None
        if known is not None:
            verdicts += [
                Verdict.recorded(r, str(file), r.line) for r in known.values() if only is None or fnmatch.fnmatch(r.name, only)
            ]
            continue
        from morok.dsl.check import check_file

        pending.extend(check_file(file).rules())
    if only is not None:
        pending = [r for r in pending if fnmatch.fnmatch(r.name, only)]
    todo: list[CheckedRule] = []
    for rule in pending:
        record = ledger.recorded(rule, trust_ledger) if use_cache and smt2 is None else None
        if record is not None and record.verdict in ledger.USABLE:
            verdicts.append(Verdict.recorded(record, rule.file, rule.line))
        else:
            todo.append(rule)
    if todo:
        from morok.prove.solve import DEFAULT_BUDGET
        from morok.prove.workers import prove_all

        keep = write or smt2 is not None
        fresh = prove_all(todo, budget or DEFAULT_BUDGET, jobs or default_jobs(), keep, done)
        verdicts += fresh
        if smt2 is not None:
            write_obligations(Path(smt2), fresh)
    if (write or remember) and pending:
        record_verdicts(pending, verdicts, write, remember, complete=only is None)
    order = {r.name: i for i, r in enumerate(pending)}
    return sorted(verdicts, key=lambda v: order.get(v.name, -1)) if pending else verdicts


def write_obligations(folder: Path, verdicts: Sequence[Verdict]) -> None:
    """One SMT-LIB file a rule; every question in it was answered `unsat`."""
    folder.mkdir(parents=True, exist_ok=True)
    for v in verdicts:
        (folder / f"{v.name}.smt2").write_text(script(v), encoding="utf-8")


def script(v: Verdict) -> str:
    return "".join(f"; {name}\n(reset)\n{text}\n" for name, text in v.obligations)


def record_verdicts(
    rules: Sequence[CheckedRule], verdicts: Sequence[Verdict], write: bool, remember: bool, complete: bool
) -> None:
    """Bring the pages of these rules' files up to date. Only usable verdicts that no wall limit touched are recorded."""
    by_name = {(v.file, v.name): v for v in verdicts}
    for file in dict.fromkeys(r.file for r in rules):
        mine = [r for r in rules if r.file == file]
        targets = ([ledger.page_path(file)] if write else []) + (
            [ledger.machine_path(file)] if remember or not ledger.is_built_in(file) else []
        )
        for path in targets:
            old = ledger.read_page(path)
            records = {} if old is None or complete else dict(old.records)
            for rule in mine:
                verdict = by_name[(file, rule.name)]
                records.pop(rule.name, None)
                if verdict.usable and verdict.final:
                    records[rule.name] = verdict.record(ledger.rule_digest(rule))
            whole = complete and all(r.name in records for r in mine) and Path(file).is_file()
            content = stamp.digest(Path(file).read_bytes()) if whole else ""
            ledger.write_page(path, ledger.Page(Path(file).name, content, stamp.source_bytes(), records))
        if write:
            fresh = [by_name[(file, r.name)] for r in mine if by_name[(file, r.name)].obligations]
            if len(fresh) == len(mine):
                store = ledger.page_path(file).with_suffix(".smt2.xz")
                store.write_bytes(lzma.compress("".join(map(script, fresh)).encode(), preset=9))


__all__ = ["Verdict", "default_jobs", "exit_status", "prove", "rule_files"]
