"""Findings about rules that take a solver: guards that decide nothing, rules that never get their turn, groups that may not end.

What was found is kept in the cache folder under the digest of the file and of all sources, so that an unchanged file is not
asked about twice, and no solver is loaded for it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from morok import errors
from morok.dsl.checked import CheckedFile
from morok.dsl.parse import excerpt
from morok.errors import MorokError, Place
from morok.prove import fingerprints
from morok.rewrite import store

_FIELDS: Final = ("line", "column", "end_line", "end_column")


def findings(checked: CheckedFile) -> list[MorokError]:
    """Every finding in a file, in the order of its lines."""
    text = checked.text
    key = fingerprints.digest(f"lint {text} {fingerprints.source_bytes()} {_own_bytes()}")
    rows = store.load_json(key)
    if rows is None:
        from morok.prove.lint.solver_findings import solver_findings  # lazy: loads the solver

        rows = [
            [k.__name__, message, *(getattr(span, f) for f in _FIELDS), hint]
            for k, message, span, hint in solver_findings(checked)
        ]
        store.save_json(key, rows)
    return [_error(checked.path, text, row) for row in rows]


@cache
def _own_bytes() -> str:
    return fingerprints.digest(b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py"))))


def _error(file: str, text: str, row: list[Any]) -> MorokError:
    name, message, line, column, end_line, end_column, hint = row
    kind: type[MorokError] = getattr(errors, name)
    width = end_column - column if end_line == line else 1
    place = Place(file, line, max(column, 1))
    return kind(message, place=place, excerpt=excerpt(text, line, column, width), hint=hint)
