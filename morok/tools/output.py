"""What the commands share: one JSON document on stdout, tables on terminals, files of rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from morok.errors import UsageError


def emit_json(document: Any) -> None:
    json.dump(document, sys.stdout, indent=1, default=str)
    sys.stdout.write("\n")


def emit_table(rows: Iterable[Sequence[str]], header: Sequence[str]) -> None:
    """A table: drawn on a terminal, tab-separated elsewhere, so that other programs can read it."""
    rows = list(rows)
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def rule_files(paths: Sequence[str]) -> list[Path]:
    """The `.rules` files that `paths` name, folders searched; without any, the built-in ones. UsageError if one is missing."""
    from morok.rewrite.library import rules_dir

    found: list[Path] = []
    for path in [Path(p) for p in paths] or [rules_dir()]:
        if path.is_dir():
            below = sorted(path.rglob("*.rules"))
            if not below:
                raise UsageError(f"{path} holds no .rules files")
            found += below
        elif path.exists():
            found.append(path)
        else:
            raise UsageError(f"{path} does not exist", expected="a .rules file or a folder of them")
    return found


def read_text(path: Path) -> str:
    """A rule file's text; RuleEncodingError on what is no UTF-8 text."""
    from morok.dsl.parse import read

    return read(path)
