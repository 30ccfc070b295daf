"""Measure the rules `within N ulp` (default: the built-in ones): compile and run their results, and compare with exact values."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Iterator
from typing import Final

from morok.accuracy import judgement, measurement, record
from morok.accuracy.record import Measurement
from morok.accuracy.subject import Subject, subject
from morok.dsl.check import check_bytes
from morok.dsl.checked import CheckedRule
from morok.dsl.file_bytes import read_bytes
from morok.errors import UsageError
from morok.tools.output import emit_json
from morok.tools.rule_paths import packed_files

FLOATS: Final = ("f16", "bf16", "f32", "f64")


def _subjects(rules: list[CheckedRule], only: str, dtype: str | None) -> Iterator[Subject]:
    for rule in rules:
        if fnmatch.fnmatch(rule.name, only):
            for instance in rule.instances:
                found = subject(rule, instance)
                if dtype in (None, str(found.dtype)):
                    yield found


def _judged(s: Subject, found: Measurement) -> tuple[list[str], bool]:
    """(remarks, True if the rule keeps its promise and its record) about one measurement."""
    promised = s.rule.syntax.within
    assert promised is not None
    kept = record.find(s.rule, str(s.dtype))
    remarks = []
    well = all(w.ulp <= promised for w in found.worst.values())
    if not well:
        remarks.append(f"promised: {promised:g} ulp")
    if kept is None:
        remarks.append("no record")
    elif kept.code != found.code:
        remarks.append("the code has changed since it was recorded")
    elif kept.count < found.count:
        remarks.append(f"recorded over {kept.count}")
    else:
        worse = [b for b, w in found.worst.items() if b in kept.worst and w.ulp > kept.worst[b].ulp + judgement.SLACK]
        well = well and not worse
        remarks.append("worse than recorded" if worse else "as recorded")
    return remarks, well


def _row(s: Subject, found: Measurement, remarks: list[str], well: bool) -> dict[str, object]:
    worst = {build: {"ulp": w.ulp, "at": list(w.at)} for build, w in found.worst.items()}
    operands = {"operands": found.count, "everything": found.everything}
    return {"name": s.rule.name, "dtype": found.dtype, **operands, "worst": worst, "promised": s.rule.syntax.within, "kept": well,
            "remarks": remarks}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if args.dtype is not None and args.dtype not in FLOATS:
        raise UsageError(f"there is no dtype {args.dtype!r} to measure at", expected=", ".join(FLOATS))
    status = 0
    rows: list[dict[str, object]] = []
    for file, pack in packed_files(args.paths):
        content = read_bytes(file)
        if b"within" not in content:
            continue
        rules = [r for r in check_bytes(content, str(file), pack=pack).rules() if r.syntax.within is not None]
        found = []
        for s in _subjects(rules, args.only, args.dtype):
            m = measurement.measure(s, args.all)
            remarks, well = _judged(s, m)
            if not args.json:
                print(f"{s.rule.name:<32} {judgement.describe(s, m)} ({'; '.join(remarks)})")
                sys.stdout.flush()
            found.append(m)
            rows.append(_row(s, m, remarks, well))
            status |= not well
        if args.write and found:
            record.write(file, found, [r.own for r in rules])
    if not rows:
        which = f" of {', '.join(args.paths)}" if args.paths else ""
        only = "" if args.only == "*" else f" called {args.only!r}"
        at = "" if args.dtype is None else f" at {args.dtype}"
        hint = "exact rules are proved, not measured: `morok prove`"
        raise UsageError(f"no rule{only}{which} says `within N ulp`{at}", hint=hint)
    if args.json:
        emit_json({"measured": rows})
    return status
