"""What modules may import, those inside functions included: the engine stands below the compiler, and no floor has a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "morok"
ENGINE = ("dialect", "dsl", "rewrite")  # lowest first
# What everything may use: it knows neither rules nor tensors.
GROUND = {
    "arguments", "atomic", "cache_folder", "caller", "collector", "config", "errors", "estate", "interrupts", "locks", "marks",
    "memory", "names",
}  # fmt: skip
# Where the engine asks the prover by name, until it is handed in: this list only shrinks.
ABOVE = {
    ("morok.dialect", "morok.prove.verified"),
    ("morok.rewrite.files", "morok.prove.sources"),
    ("morok.rewrite.gate", "morok.prove.ledger"),
    ("morok.rewrite.gate", "morok.prove.promises"),
    ("morok.rewrite.library", "morok.prove.ledger"),
    ("morok.rewrite.library", "morok.prove.promises"),
}


def named(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {named(path): path for path in PACKAGE.rglob("*.py")}


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only type checkers read."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from nodes(child)


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of this package that a module imports, wherever in its text."""
    found: set[str] = set()
    for node in nodes(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = {f"{node.module}.{a.name}" for a in node.names}
            found |= {name if name in MODULES else node.module for name in whole}
    return frozenset(found & MODULES.keys() - {module, "morok"})


def floor(module: str) -> str:
    return module.split(".")[1]


def of_floor(*names: str) -> list[str]:
    return sorted(m for m in MODULES if "." in m and floor(m) in names)


def reached(start: str, among: set[str]) -> set[str]:
    """The modules that a module leads to, itself where there is a circle."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        new = (imports(todo.pop()) & among) - seen
        seen |= new
        todo += new
    return seen


@pytest.mark.parametrize("name", ENGINE)
def test_a_floor_of_the_engine_stands_on_those_below(name: str) -> None:
    below = {*ENGINE[: ENGINE.index(name) + 1], *GROUND}
    wrong = {(m, other) for m in of_floor(name) for other in imports(m) if floor(other) not in below}
    assert wrong == {(m, other) for m, other in ABOVE if floor(m) == name}


def test_the_ground_knows_no_rules_and_no_tensors() -> None:
    assert {(m, other) for m in of_floor(*GROUND) for other in imports(m) if floor(other) not in GROUND} == set()


def test_the_engine_has_no_circle_of_imports() -> None:
    among = set(of_floor(*ENGINE))
    assert [m for m in sorted(among) if m in reached(m, among)] == []
