"""Verdicts as people and machines read them: text, JSON, JUnit, SARIF, and GitHub annotations."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from morok.names import readable
from morok.prove.verdict import Verdict

COLOURS: Final = {
    "proved": "green", "bounded": "green", "defined": "cyan", "approximate": "cyan",
    "refuted": "red", "inapplicable": "red", "broken": "red", "unknown": "yellow", "error": "magenta",
}  # fmt: skip


def summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """How many rules there are of each verdict, the seconds they took, and what the solver counted of its work."""
    counts = Counter(v.verdict for v in verdicts)
    cost = {"seconds": round(sum(v.seconds for v in verdicts), 3), "resources": sum(v.resources for v in verdicts)}
    return {"total": len(verdicts), **{k: counts[k] for k in COLOURS}, **cost}


def as_json(verdicts: Sequence[Verdict]) -> str:
    return json.dumps({"rules": [v.json() for v in verdicts], "summary": summary(verdicts)}, indent=1) + "\n"


def _sentence(verdicts: Sequence[Verdict]) -> str:
    counts = summary(verdicts)
    parts = [f"{counts[k]} {k}" for k in COLOURS if counts[k]]
    untested = sum(v.untested for v in verdicts)
    if untested:
        parts.append(f"{untested} of them with untested contracts (--trust-helpers)")
    return f"{counts['total']} rules: {', '.join(parts) or 'none'} ({counts['seconds']:.2f} s of solving)"


def _scope(v: Verdict) -> tuple[str, ...]:
    return (*v.scope, f"contracts: {v.contracts}") if v.contracts else v.scope


def as_text(verdicts: Sequence[Verdict]) -> str:
    """One line a rule, then what was wrong with each that cannot be used, then the sum."""
    width = max((len(v.name) for v in verdicts), default=0)
    lines = [f"{v.name:<{width}}  {v.verdict:<12} {'; '.join(_scope(v))}".rstrip() for v in verdicts]
    for v in verdicts:
        if not v.usable:
            lines += ["", f"{v.file}:{v.line}: {v.code}: {v.name} is {v.shown}"]
            lines += [f"  {line}" for line in v.message.splitlines()]
    return "\n".join([*lines, "", _sentence(verdicts)]) + "\n"


def print_text(verdicts: Sequence[Verdict], stream: TextIO) -> None:
    """`as_text`, in colours where `stream` is a terminal."""
    if not stream.isatty():
        stream.write(as_text(verdicts))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for head in ("rule", "verdict", "scope"):
        table.add_column(head, overflow="fold")
    for v in verdicts:
        table.add_row(v.name, Text(v.verdict, style=COLOURS.get(v.verdict, "")), Text("; ".join(_scope(v)), style="dim"))
    console = Console(file=stream)
    console.print(table)
    for v in verdicts:
        if not v.usable:
            console.print(Text(f"\n{v.file}:{v.line}: {v.code}: {v.name} is {v.shown}", style="bold"))
            console.print(Text(f"  {v.message}"))
    console.print(Text(_sentence(verdicts), style="bold"))


def as_junit(verdicts: Sequence[Verdict]) -> str:
    """One test case a rule: a failure if it cannot be used."""
    bad = [v for v in verdicts if not v.usable]
    out = ['<?xml version="1.0" encoding="utf-8"?>']
    errors = sum(v.verdict == "error" for v in bad)
    out.append(f'<testsuite name="morok prove" tests="{len(verdicts)}" failures="{len(bad) - errors}" errors="{errors}">')
    for v in verdicts:
        group, _, name = v.name.rpartition(".")
        place = f'file={quoteattr(readable(v.file))} line="{v.line}" time="{v.seconds:.3f}"'
        head = f"  <testcase classname={quoteattr(group)} name={quoteattr(name)} {place}"
        if v.usable:
            out.append(f"{head}/>")
            continue
        tag = "error" if v.verdict == "error" else "failure"
        out.append(f"{head}><{tag} type={quoteattr(v.shown)}>{escape(v.message)}</{tag}></testcase>")
    return "\n".join([*out, "</testsuite>"]) + "\n"


def as_sarif(verdicts: Sequence[Verdict]) -> str:
    """SARIF 2.1.0: one result a rule that cannot be used."""
    kinds = ("refuted", "inapplicable", "broken", "unknown", "untested", "error")
    results = [
        {
            "ruleId": "untested" if v.untested else v.verdict,
            "level": "warning" if v.verdict == "unknown" or v.untested else "error",
            "message": {"text": f"{v.name} is {v.shown}" + (f": {v.message}" if v.message else "")},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(os.fsencode(v.file))},
                        "region": {"startLine": max(v.line, 1)},
                    }
                }
            ],
        }
        for v in verdicts
        if not v.usable
    ]
    run = {"tool": {"driver": {"name": "morok prove", "rules": [{"id": k} for k in kinds]}}, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def as_github(verdicts: Sequence[Verdict]) -> str:
    """Annotations of a GitHub workflow."""

    def line(v: Verdict) -> str:
        kind = "warning" if v.verdict == "unknown" or v.untested else "error"
        text = f"{v.name} is {v.shown}" + (f": {v.message}" if v.message else "")
        text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        return f"::{kind} file={v.file},line={v.line},title=morok prove::{text}\n"

    return "".join(line(v) for v in verdicts if not v.usable)


FORMATS: Final[dict[str, Callable[[Sequence[Verdict]], str]]] = {
    "text": as_text,
    "json": as_json,
    "junit": as_junit,
    "sarif": as_sarif,
    "github": as_github,
}


def render(verdicts: Sequence[Verdict], form: str) -> str:
    """The verdicts in one of FORMATS."""
    return FORMATS[form](verdicts)
