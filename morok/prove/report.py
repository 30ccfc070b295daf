"""Verdicts, and mistakes in rule files, as people and machines read them: text, JSON, JUnit, SARIF, and GitHub annotations."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO
from urllib.parse import quote

from morok.errors import MorokError
from morok.names import readable
from morok.prove.verdict import Verdict

LISTED: Final = 16  # names of dtypes in a line of a report for people, beyond which some stand for all
COLOURS: Final = {
    "proved": "green", "bounded": "green", "defined": "cyan", "approximate": "cyan",
    "refuted": "red", "inapplicable": "red", "broken": "red", "unknown": "yellow", "error": "magenta",
}  # fmt: skip

# Characters that XML 1.0 does not have, or that terminals obey; not lines, tabs, and the bytes of file names (morok.names).
_UNSAID: Final = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\udc80-\udcff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a run.

    mistakes  syntax and type errors: their rules have no verdicts
    files     that were read, also those without rules
    """

    verdicts: Sequence[Verdict]
    mistakes: Sequence[MorokError] = ()
    files: Sequence[str] = ()

    def empty(self) -> list[str]:
        """The files of which there is nothing to say."""
        said = {v.file for v in self.verdicts} | {e.place.file for e in self.mistakes if e.place}
        return [f for f in self.files if f not in said]


def summary(verdicts: Sequence[Verdict], mistakes: Sequence[MorokError] = ()) -> dict[str, Any]:
    """The number of rules of each verdict, the seconds they took, and the solver's count of its work."""
    counts = Counter(v.verdict for v in verdicts)
    cost = {"seconds": round(sum(v.seconds for v in verdicts), 3), "resources": sum(v.resources for v in verdicts)}
    return {"total": len(verdicts), **{k: counts[k] for k in COLOURS}, "mistakes": len(mistakes), **cost}


def as_json(r: Report) -> str:
    document = {
        "rules": [v.json() for v in r.verdicts],
        "errors": [e.json() for e in r.mistakes],
        "files": list(r.files),
        "summary": summary(r.verdicts, r.mistakes),
    }
    return json.dumps(document, indent=1) + "\n"


def rule_line(v: Verdict) -> str:
    """A rule in `jsonl`: the same object as in `json`, on a line of its own."""
    return json.dumps(v.json()) + "\n"


def error_line(problem: MorokError) -> str:
    return json.dumps({"error": problem.json()}) + "\n"


def summary_line(r: Report) -> str:
    """The last line of `jsonl`."""
    return json.dumps({"summary": summary(r.verdicts, r.mistakes), "files": list(r.files)}) + "\n"


def as_jsonl(r: Report) -> str:
    return "".join([*map(error_line, r.mistakes), *map(rule_line, r.verdicts), summary_line(r)])


def _plain(text: str) -> str:
    r"""A text that changes nothing but what is read: other characters of it are escapes, such as \x1b."""
    return _UNSAID.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _line(text: str) -> str:
    """A name, as `_plain`, in one line."""
    return _plain(text).replace("\n", "\\n")


def _sentence(r: Report) -> str:
    counts = summary(r.verdicts)
    parts = [f"{counts[k]} {k}" for k in COLOURS if counts[k]]
    untested = sum(v.untested for v in r.verdicts)
    if untested:
        parts.append(f"{untested} of them with untested contracts (--trust-helpers)")
    mistakes = f"; {len(r.mistakes)} {'mistake' if len(r.mistakes) == 1 else 'mistakes'}" if r.mistakes else ""
    return f"{counts['total']} rules: {', '.join(parts) or 'none'}{mistakes} ({counts['seconds']:.2f} s of solving)"


def _scope(v: Verdict) -> str:
    """The scope of a proof in one line: of long lists the first names, as JSON and `morok explain` have all of them."""
    told = [": ".join(map(_brief, line.split(": "))) for line in v.scope]
    return "; ".join([*told, f"contracts: {v.contracts}"] if v.contracts else told)


def _brief(names: str) -> str:
    named = names.split(", ")
    return names if len(named) <= LISTED else ", ".join([*named[: LISTED // 2], f"{len(named) - LISTED // 2} more"])


def _head(v: Verdict) -> str:
    """The line above the reason why a rule cannot be used."""
    column = f":{v.column}" if v.column else ""
    return f"{_line(v.file)}:{v.line}{column}: {v.code}: {v.name} is {v.shown}"


def _rules_as_text(r: Report) -> str:
    width = max((len(v.name) for v in r.verdicts), default=0)
    lines = [f"{v.name:<{width}}  {v.verdict:<12} {_scope(v)}".rstrip() for v in r.verdicts]
    for v in r.verdicts:
        if not v.usable:
            lines += ["", _head(v)]
            lines += [f"  {_plain(line)}" for line in v.message.splitlines()]
    return "\n".join([*lines, "", _sentence(r)]) + "\n"


def as_text(r: Report) -> str:
    """One line a rule, then what was wrong with each that cannot be used, then the sum; before them all mistakes."""
    return "".join(f"{_plain(str(e))}\n\n" for e in r.mistakes) + _rules_as_text(r)


def print_text(verdicts: Sequence[Verdict], stream: TextIO, mistakes: Sequence[MorokError] = ()) -> None:
    """`as_text`, but of the mistakes only their number: they stand on stderr. In colours where `stream` is a terminal."""
    r = Report(verdicts, mistakes)
    if mistakes and not verdicts:
        return
    if not stream.isatty():
        stream.write(_rules_as_text(r))
        return
    from rich import console, table, text  # lazy: drawn on terminals alone

    styled = text.Text
    rows = table.Table(box=None, pad_edge=False)
    for head in ("rule", "verdict", "scope"):
        rows.add_column(head, overflow="fold")
    for v in r.verdicts:
        rows.add_row(v.name, styled(v.verdict, style=COLOURS.get(v.verdict, "")), styled(_scope(v), style="dim"))
    out = console.Console(file=stream)
    out.print(rows)
    for v in r.verdicts:
        if not v.usable:
            out.print(styled(f"\n{_head(v)}", style="bold"))
            out.print(styled(f"  {_plain(v.message)}"))
    out.print(styled(_sentence(r), style="bold"))


def as_junit(r: Report) -> str:
    """One test case a rule, a failure if it cannot be used; one an error of a file; and one a file of which nothing is said."""
    from xml.sax import saxutils  # lazy: it loads `urllib.request`, 40 ms

    def quoted(text: str) -> str:
        return saxutils.quoteattr(readable(_plain(text)))

    def said(text: str) -> str:
        return saxutils.escape(readable(_plain(text)))

    cases, failures, errors = [], 0, len(r.mistakes)
    for e in r.mistakes:
        row = e.json()
        file = quoted(str(row["file"]))
        place = f'file={file} line="{row["line"]}" column="{row["column"]}"'
        head = f"  <testcase classname={file} name={quoted(e.code)} {place}"
        cases.append(
            f"{head}><error type={quoted(e.code)} message={quoted(e.message)}>{said(str(e))}</error></testcase>"
        )
    for v in r.verdicts:
        group, _, name = v.name.rpartition(".")
        column = f' column="{v.column}"' if v.column else ""
        place = f'file={quoted(v.file)} line="{v.line}"{column} time="{v.seconds:.3f}"'
        head = f"  <testcase classname={quoted(group)} name={quoted(name)} {place}"
        if v.usable:
            cases.append(f"{head}/>")
            continue
        tag = "error" if v.verdict == "error" else "failure"
        failures, errors = failures + (tag == "failure"), errors + (tag == "error")
        cases.append(
            f"{head}><{tag} type={quoted(v.shown)} message={quoted(v.code)}>{said(v.message)}</{tag}></testcase>"
        )
    for file in r.empty():
        shown = quoted(file)
        cases.append(f'  <testcase classname={shown} name="no rules" file={shown}/>')
    head = f'<testsuite name="morok prove" tests="{len(cases)}" failures="{failures}" errors="{errors}">'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *cases, "</testsuite>"]) + "\n"


def _uri(file: str) -> dict[str, str]:
    return {"uri": quote(os.fsencode(file))}


def _result(kind: str, level: str, text: str, file: str, line: int, column: int = 0) -> dict[str, Any]:
    """A result of SARIF."""
    region = {"startLine": max(line, 1), **({"startColumn": column} if column else {})}
    where = [{"physicalLocation": {"artifactLocation": _uri(file), "region": region}}] if file else []
    return {"ruleId": kind, "level": level, "message": {"text": text}, "locations": where}


def as_sarif(r: Report) -> str:
    """SARIF 2.1.0: one result a mistake, by its code, and one a rule that cannot be used."""
    kinds = ["refuted", "inapplicable", "broken", "unknown", "untested", "error"]
    results = []
    for e in r.mistakes:
        text = "; ".join(t for t in (e.message, f"expected: {e.expected}" if e.expected else "", e.hint) if t)
        file, line, column = (e.place.file, e.place.line, e.place.column) if e.place else ("", 0, 0)
        results.append(_result(e.code, "error", readable(text), file, line, column))
    for v in r.verdicts:
        if not v.usable:
            level = "warning" if v.verdict == "unknown" or v.untested else "error"
            results.append(_result("untested" if v.untested else v.verdict, level, _said(v), v.file, v.line, v.column))
    rules = [{"id": k} for k in (*kinds, *sorted({e.code for e in r.mistakes}))]
    artifacts = [{"location": _uri(f)} for f in r.files]
    run = {"tool": {"driver": {"name": "morok prove", "rules": rules}}, "artifacts": artifacts, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _said(v: Verdict) -> str:
    return f"{v.name} is {v.shown}" + (f": {v.message}" if v.message else "")


def as_github(r: Report) -> str:
    """Annotations of a GitHub workflow."""

    def escaped(text: str) -> str:
        return _plain(text).replace("%", "%25").replace("\n", "%0A")

    def line(kind: str, text: str, **properties: Any) -> str:
        said = (f"{name}={escaped(str(v)).replace(':', '%3A').replace(',', '%2C')}" for name, v in properties.items())
        return f"::{kind} {','.join(said)}::{escaped(text)}\n"

    out = []
    for e in r.mistakes:
        row = e.json()
        hints = "".join(f"\n{t}" for t in (f"expected: {e.expected}" if e.expected else "", e.hint) if t)
        out.append(
            line("error", e.message + hints, file=row["file"], line=row["line"], col=row["column"], title=e.code)
        )
    for v in r.verdicts:
        if not v.usable:
            kind = "warning" if v.verdict == "unknown" or v.untested else "error"
            column = {"col": v.column} if v.column else {}
            out.append(line(kind, _said(v), file=v.file, line=v.line, **column, title=f"morok prove {v.code}"))
    return "".join(out)


FORMATS: Final[dict[str, Callable[[Report], str]]] = {
    "text": as_text,
    "json": as_json,
    "jsonl": as_jsonl,
    "junit": as_junit,
    "sarif": as_sarif,
    "github": as_github,
}


def render(
    verdicts: Sequence[Verdict], form: str, mistakes: Sequence[MorokError] = (), files: Sequence[str] = ()
) -> str:
    """The findings in one of FORMATS."""
    return FORMATS[form](Report(verdicts, mistakes, files))
