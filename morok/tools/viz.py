"""Show a trace as a page."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from morok import atomic
from morok.errors import UsageError
from morok.names import readable
from morok.passes.pipeline import STAGES
from morok.tools.output import emit_json, existing_file

FIELDS: Final = ("stage", "rule", "before", "before_id", "after", "after_id", "seconds")
_ASSETS: Final = Path(__file__).with_name("book") / "assets"


def read(path: Path) -> list[Mapping[str, Any]]:
    """The firings in a trace file; UsageError if it is no trace."""
    existing_file(str(path), "a file that MOROK_TRACE or `morok trace --save` wrote")
    try:
        firings = json.loads(path.read_text(encoding="utf-8"))["firings"]
        for firing in firings:
            if not all(
                isinstance(firing[f], int | float if f.endswith("_id") or f == "seconds" else str) for f in FIELDS
            ):
                raise TypeError("a field of another kind")
    except (ValueError, KeyError, TypeError) as problem:
        raise UsageError(
            f"{path} is no trace: {type(problem).__name__}: {problem}",
            expected='{"firings": [...]}, as MOROK_TRACE writes it',
        ) from None
    return list(firings)


def stage_name(stage: str) -> str:
    """A stage's number and name; unchanged text for anything but a number of a stage; "outside the pipeline" for ""."""
    names = {str(s.number): f"{s.number} {s.name}" for s in STAGES}
    return names.get(stage, stage or "outside the pipeline")


def counts(firings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The numbers of firings: all, by stage in the order of the trace, by rule with the most frequent first; and the seconds."""
    stages = Counter(stage_name(f["stage"]) for f in firings)
    rules = Counter(f["rule"] for f in firings)
    return {
        "firings": len(firings),
        "seconds": max((f["seconds"] for f in firings), default=0.0),
        "stages": dict(stages),
        "rules": dict(sorted(rules.items(), key=lambda item: (-item[1], item[0]))),
    }


def page(title: str, firings: Sequence[Mapping[str, Any]]) -> str:
    """The HTML page of a trace, self-contained."""
    strings: dict[str, int] = {}

    def number(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def row(f: Mapping[str, Any]) -> list[float]:
        before, after = (number(f["before"]), f["before_id"]), (number(f["after"]), f["after_id"])
        return [number(stage_name(f["stage"])), number(f["rule"]), *before, *after, round(f["seconds"] * 1e3, 3)]

    rows = [row(f) for f in firings]
    total = counts(firings)
    data = json.dumps({"strings": list(strings), "rows": rows, "total": total}, separators=(",", ":"))
    data = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")  # text cannot end the script
    style = "".join((_ASSETS / name).read_text(encoding="utf-8") for name in ("book.css", "viz.css"))
    script = (_ASSETS / "viz.js").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<nav><a class=home href="#top">{escape(title)}</a>
<input id=search type=search placeholder="search rules and graphs" aria-label="search rules and graphs" autocomplete=off>
<div id=found class=quiet aria-live="polite"></div>
<h4>stages</h4><div id=stages></div>
<h4>rules</h4><div id=rules></div></nav>
<main id=top>
<header><h1>{escape(title)}</h1>
<p>{total["firings"]} rewritings by {len(total["rules"])} rules in {total["seconds"] * 1e3:.1f} ms, in the order in which they
happened. A click on a node's number follows what became of it.</p></header>
<ol id=firings></ol>
<button id=more hidden>show more</button>
</main>
<script id=data type="application/json">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def run(args: argparse.Namespace) -> int:
    path = Path(args.trace)
    firings = read(path)
    out = Path(args.out) if args.out else path.with_suffix(".html")
    with atomic.naming(out):
        out.write_text(page(readable(path.name), firings), encoding="utf-8")
    total = counts(firings)
    if args.json:
        emit_json({"page": str(out), **total})
    else:
        print(f"{out}: {total['firings']} rewritings by {len(total['rules'])} rules in {len(total['stages'])} stages")
    return 0
