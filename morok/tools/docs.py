"""Write the book of rules: a folder of pages with each rule's text, meaning, verdict, source, and an example of it firing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from morok import atomic
from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.errors import UsageError
from morok.names import readable
from morok.prove import ledger
from morok.rewrite.library import rules_dir
from morok.tools.book import pages
from morok.tools.book.entries import chapter
from morok.tools.book.guide import refresh
from morok.tools.catalogue import entries
from morok.tools.output import emit_json
from morok.tools.rule_paths import packed_files


def _verdict(rule: CheckedRule) -> tuple[str, Sequence[str]]:
    record = ledger.recorded(rule)
    return ("unproved", ()) if record is None else (record.verdict, record.scope)


def _guide(args: argparse.Namespace) -> int:
    folder = Path(args.guide)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", expected="the guide's folder: docs in a checkout")
    changed = refresh(folder)
    if changed is None:
        raise UsageError(
            f"{folder} has no page with a generated part",
            expected="the guide's folder: docs in a checkout",
            hint="a part stands between `<!-- part NAME -->` and `<!-- end -->`",
        )
    if args.json:
        emit_json({"folder": str(folder), "changed": [p.name for p in changed]})
    else:
        print(f"{folder}: {len(changed)} pages changed")
    return 0


def run(args: argparse.Namespace) -> int:
    if args.guide is not None:
        return _guide(args)
    out = Path(args.out)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is no folder", expected="a folder to write into, made if it does not exist")
    built_in = not args.paths
    texts = entries(rules_dir()) if built_in else []
    chapters = []
    for path, pack in packed_files(args.paths):
        shown = path.relative_to(rules_dir()).as_posix() if built_in else readable(path.name)
        checked = check_file(path, pack=pack)
        chapters.append(chapter(shown, checked.text, checked, _verdict, texts, built_in))
    made = {"index.html": pages.index("Book of rules", chapters, built_in)}
    if built_in:
        made["texts.html"] = pages.texts(texts, chapters)
    made |= {name: pages.asset(name) for name in pages.ASSETS}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        with atomic.naming(out / name):
            (out / name).write_text(text, encoding="utf-8")
    written = [e for c in chapters for s in c.sections for e in s.entries]
    counts = {
        "rules": sum(len(e.verdicts) for e in written),
        "entries": len(written),
        "examples": sum(e.example is not None for e in written),
    }
    if args.json:
        emit_json({"folder": str(out), "files": sorted(made), **counts})
    else:
        print(
            f"{out / 'index.html'}: {counts['rules']} rules in {counts['entries']} entries, {counts['examples']} with an example"
        )
    return 0
