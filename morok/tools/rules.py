"""List the built-in rule groups and their rules with verdicts; --show-code prints the generated matcher of a rule."""

from __future__ import annotations

import argparse
import fnmatch
from collections import Counter

from morok.errors import UsageError
from morok.rewrite.library import catalogue, group
from morok.tools.output import emit_json, emit_table


def run(args: argparse.Namespace) -> int:
    if args.show_code:
        wanted = args.show_code
        names = [entry.name for entry in catalogue() if entry.name == wanted or entry.name.endswith("." + wanted)]
        if not names:
            raise UsageError(f"there is no rule {wanted!r}", hint="`morok rules` lists them")
        for name in names:
            print(group(name.partition(".")[0])[name].code)
        return 0
    entries = [entry for entry in catalogue() if fnmatch.fnmatchcase(entry.name, args.glob)]
    if not entries:
        raise UsageError(f"no rule matches {args.glob!r}", hint="`morok rules` lists them")
    if args.count:
        counts = Counter(entry.verdict for entry in entries)
        if args.json:
            emit_json({"rules": len(entries), "verdicts": counts})
        else:
            rows = [*sorted(counts.items()), ("all", len(entries))]
            emit_table([(verdict, str(n)) for verdict, n in rows], ("verdict", "rules"))
        return 0
    if args.json:
        emit_json({"rules": [{"name": e.name, "verdict": e.verdict, "file": e.file, "line": e.line} for e in entries]})
    else:
        emit_table([(e.name, e.verdict, f"{e.file}:{e.line}") for e in entries], ("rule", "verdict", "place"))
    return 0
