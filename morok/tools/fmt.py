"""Rewrite rule files in the canonical layout."""

from __future__ import annotations

import argparse
import sys

from morok import atomic
from morok.dsl.format import format_text
from morok.dsl.parse import read
from morok.tools.output import emit_json
from morok.tools.rule_paths import rule_files


def run(args: argparse.Namespace) -> int:
    changed: list[str] = []
    for path in rule_files(args.paths):
        before = read(path)
        after = format_text(before, str(path))
        if before == after:
            continue
        changed.append(str(path))
        print(f"{'would change' if args.check else 'changed'} {path}", file=sys.stderr)
        if not args.check:
            atomic.rewrite(path, after)
    if args.json:
        emit_json({"changed": changed, "written": not args.check})
    return 1 if changed and args.check else 0
