"""A docstring begins with what the result is, by a noun: not with a clause about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = Path(__file__).resolve().parents[2] / "morok"
CLAUSES: Final = ("What", "Whether", "How", "Of", "Those")
MOST: Final = 5


def docstrings() -> Iterator[tuple[str, str]]:
    """Each docstring of the package, with the place of what it is about."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node)
                if text:
                    yield f"{path.relative_to(PACKAGE)}:{getattr(node, 'name', '')}", text


@pytest.mark.long
def test_docstrings_begin_with_a_noun() -> None:
    found = [where for where, text in docstrings() if text.split()[0].rstrip(",.:;") in CLAUSES]
    assert len(found) <= MOST, found


@pytest.mark.long
def test_every_module_with_code_has_a_docstring() -> None:
    said = {where for where, _ in docstrings() if where.endswith(":")}
    modules = [p.relative_to(PACKAGE) for p in sorted(PACKAGE.rglob("*.py")) if p.read_text(encoding="utf-8").strip()]
    assert [m for m in modules if f"{m}:" not in said] == []
