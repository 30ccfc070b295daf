"""Common functions of the commands: JSON documents and tables on stdout, checks of arguments and files."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from morok.errors import FileAccessError, MorokError, RuleError, UsageError


def emit_json(document: Any) -> None:
    json.dump(document, sys.stdout, indent=1, default=str)
    sys.stdout.write("\n")


def error_rows(problem: MorokError) -> list[dict[str, object]]:
    """The rows of `--json` for an error: one for each mistake in it."""
    problems = problem.errors if isinstance(problem, RuleError) else [problem]
    return [p.json() for p in problems]


def emit_table(rows: Iterable[Sequence[str]], header: Sequence[str]) -> None:
    """Print a table: formatted on a terminal, tab-separated for other programs elsewhere."""
    rows = list(rows)
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    from rich import console, table  # lazy: drawn on terminals alone

    drawn = table.Table(*header, box=None, pad_edge=False)
    for row in rows:
        drawn.add_row(*row)
    console.Console().print(drawn)


def at_least(least: int) -> Callable[[str], int]:
    """An argparse type for whole numbers of at least `least`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return value

    return read


def more_than_none(text: str) -> float:
    """The positive, finite number of seconds in an argument; an argparse type."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def access_error(problem: OSError) -> FileAccessError:
    """The system's error about a file as a FileAccessError."""
    where = problem.filename2 or problem.filename
    what = problem.strerror or str(problem)
    return FileAccessError(f"{where}: {what}" if where else what, hint=FileAccessError.whose)


def existing_file(file: str, expected: str) -> Path:
    """The path of a file that a user named; UsageError if it is no file."""
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"{file} {'is no file' if path.exists() else 'does not exist'}", expected=expected)
    return path
