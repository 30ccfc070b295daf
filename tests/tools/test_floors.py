"""The floors: which modules a module may import, inside functions and by names in strings too; and no floor has a circle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import morok

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "morok"
ENGINE = ("dialect", "dsl", "rewrite")  # lowest first
# What everything may use: it knows neither rules nor tensors.
GROUND = {
    "arguments", "atomic", "cache_folder", "caller", "config", "disk_cache", "errors", "handed", "interrupts", "lane_roles",
    "late_imports", "locks", "marks", "names", "out_of_memory", "reference_queue", "value_domains", "view_meanings",
}  # fmt: skip
SOLVER: Final = "morok.prove.semantics"  # where the solver functions are that ops name: loaded when something is proved
MODULE: Final = re.compile(r"(morok(?:\.\w+)+)(\.?)(?::\w+)?")  # a dot at the end where more follows


def named(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {named(path): path for path in PACKAGE.rglob("*.py")}


def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def for_checkers(node: ast.AST) -> bool:
    """True of the block that only type checkers read."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def nodes(module: str) -> Iterator[ast.AST]:
    """Every node of a module but those that only type checkers read."""
    todo: list[ast.AST] = [tree(module)]
    while todo:
        yield (node := todo.pop())
        todo += [child for child in ast.iter_child_nodes(node) if not for_checkers(child)]


def at(name: str) -> str:
    """The module that a dotted name leads to: itself, or the one that has it; "morok" where none is named."""
    home = morok._HOME.get(name.removeprefix("morok."), name)
    while home not in MODULES:
        home = home.rpartition(".")[0]
    return home


def said(text: str) -> set[str]:
    """The modules that a string names: one, or all of a package where the rest of the name is put behind it."""
    found = MODULE.fullmatch(text)
    if found is None:
        return set()
    return {m for m in MODULES if m.startswith(found[0])} if found[2] else {at(found[1])} - {"morok"}


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of this package that a module imports, wherever in its text; "morok" stands for the package's own names."""
    found: set[str] = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {at(a.name) for a in node.names if a.name.partition(".")[0] == "morok"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports name modules in full"
            if (node.module or "").partition(".")[0] == "morok":
                found |= {at(f"{node.module}.{a.name}") for a in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= said(node.value)
    return frozenset(found - {module})


def floor(module: str) -> str:
    return module.split(".")[1]


def of_floor(*names: str) -> list[str]:
    return sorted(m for m in MODULES if "." in m and floor(m) in names)


def reached(start: str, among: set[str], checkers: bool = False) -> set[str]:
    """The modules that a module leads to, itself where there is a circle; `checkers`: by imports for type checkers, too."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        module = todo.pop()
        found = imports(module) | read_by_checkers(module) if checkers else imports(module)
        new = (found & among) - seen
        seen |= new
        todo += new
    return seen


@cache
def read_by_checkers(module: str) -> frozenset[str]:
    """The modules of other folders that a module imports for type checkers alone."""
    found: set[str] = set()
    for block in ast.walk(tree(module)):
        if for_checkers(block):
            for node in ast.walk(block):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "morok":
                    found |= {at(f"{node.module}.{a.name}") for a in node.names}
    folder = module.rpartition(".")[0]
    return frozenset(m for m in found if m.rpartition(".")[0] != folder)


def strangers(names: set[str], below: set[str]) -> set[tuple[str, str]]:
    """The imports of these floors that lead to others than those `below`."""
    return {
        (m, other) for m in of_floor(*names) for other in imports(m) if other == "morok" or floor(other) not in below
    }


@pytest.mark.parametrize("name", ENGINE)
def test_a_floor_of_the_engine_stands_on_those_below(name: str) -> None:
    assert strangers({name}, {*ENGINE[: ENGINE.index(name) + 1], *GROUND}) == set()


def test_the_engine_loads_nothing_that_stands_above_it() -> None:
    program = f"import importlib, sys\nfor m in {of_floor(*ENGINE)}: importlib.import_module(m)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {m for m in done.stdout.split() if m.startswith("morok.")}
    assert loaded >= set(of_floor(*ENGINE))
    assert {floor(m) for m in loaded} <= {*ENGINE, *GROUND}


def test_the_ir_stands_on_what_a_dialect_is() -> None:
    assert {(m, other) for m, other in strangers({"ir"}, {"ir", "dialect", *GROUND}) if other != SOLVER} == set()


@pytest.mark.long
def test_the_prover_stands_on_the_engine_and_the_ir() -> None:
    assert strangers({"prove"}, {"prove", "ir", *ENGINE, *GROUND}) == set()


@pytest.mark.long
def test_accuracy_stands_above_the_runtime_and_only_tools_use_it() -> None:
    assert (
        strangers({"accuracy"}, {"accuracy", "runtime", "codegen", "passes", "prove", "ir", *ENGINE, *GROUND}) == set()
    )
    above = {floor(m) for m in MODULES if m != "morok" and any(".accuracy" in other for other in imports(m))}
    assert above == {"accuracy", "tools"}


def test_the_ground_knows_no_rules_and_no_tensors() -> None:
    assert strangers(GROUND, GROUND) == set()


@pytest.mark.long
def test_the_engine_the_prover_and_the_interpreter_have_no_circle_of_imports() -> None:
    among = {*of_floor(*ENGINE, "prove"), *(m for m in MODULES if m.startswith("morok.ir.interpret"))}
    assert [m for m in sorted(among) if m in reached(m, among)] == []


def with_node(wanted: Callable[[ast.AST], bool]) -> set[str]:
    """The modules of the engine, the prover and the accuracy that have such a node."""
    return {m for m in of_floor(*ENGINE, "prove", "accuracy") if any(map(wanted, nodes(m)))}


@pytest.mark.long
def test_nothing_asks_for_a_dialect_by_its_name() -> None:
    """A name is anybody's: `morok.dialect.built_in` says whose a dialect is."""
    name = re.compile(r"'morok'|\bBUILT_IN\b")

    def by_name(node: ast.AST) -> bool:
        said = ast.unparse(node) if isinstance(node, ast.Compare) else ""
        return "dialect" in said and name.search(said) is not None

    # which keeps the name for its owner, leaves it out of files, and does not load the built-in dialect to know its files
    assert with_node(by_name) == {"morok.dialect", "morok.dsl.format", "morok.rewrite.files"}


def test_the_name_of_the_built_in_dialect_is_written_once() -> None:
    said = with_node(lambda node: isinstance(node, ast.Constant) and node.value == "morok")
    # modules' names
    package = {"morok.dsl.helpers", "morok.prove.bounds_record", "morok.prove.foreign", "morok.prove.sources"}
    assert said - package == {"morok.dialect"}


def test_imports_are_seen_wherever_they_are() -> None:
    assert said("morok.prove.semantics:add") == {"morok.prove.semantics"}
    assert said("morok.prove.encoding.") >= {"morok.prove.encoding.counting", "morok.prove.encoding.structure"}
    assert said("see morok.prove.api") == said("morok") == set()
    assert at("morok.load_rules") == at("morok.rewrite.library.load_rules") == "morok.rewrite.library"
    assert "morok.prove.workers" in imports("morok.prove.api")  # inside a function
    assert "morok.nn.linear" in imports("morok.nn")  # by a string that is put together


def imports_inside(body: list[ast.stmt], inside: bool = False) -> list[ast.stmt]:
    """The import statements that stand inside functions, of a body, `inside` of one or not."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [node] * inside
        within = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name in ("body", "orelse", "finalbody"):
            found += imports_inside(getattr(node, name, []), within)
        for block in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            found += imports_inside(block.body, within)
    return found


def test_imports_inside_functions_are_found() -> None:
    text = """
import a
def f():
    import b
    try:
        with f: import c
    except E:
        while f(): import d
    finally:
        match f:
            case 1: import e
class C:
    import g
    def h(self):
        if self: pass
        else: from x import i
        lambda: f
"""
    assert {ast.unparse(n).split()[-1] for n in imports_inside(ast.parse(text).body)} == {*"bcdei"}


def test_an_import_inside_a_function_says_why_and_there_are_few() -> None:
    inside = set()
    for module, path in MODULES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        found = imports_inside(tree(module).body)
        assert [n.lineno for n in found if "lazy" not in lines[n.lineno - 1]] == [], module
        inside |= {(module, n.lineno) for n in found}
    assert len(inside) <= 60
