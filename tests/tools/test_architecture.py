"""docs/architecture.md is true: floors and circles are those of the code; a named function runs in the program beside it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_floors import GROUND, MODULES, floor, imports, of_floor, reached

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"^```python\n# program: (\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
NAMED = re.findall(r"\| `([\w/]+\.py)::([\w.]+)` \| (\w+) \|$", TEXT, re.MULTILINE)
# Runs each program, and records every function of the package that is called, on any thread: by module, since the engine
# specializes functions and so gives them other files.
TRACER = """
import contextlib, io, json, sys, threading

def profile(frame, event, argument):
    if event == "call":
        calls.add((frame.f_globals.get("__name__", ""), frame.f_code.co_qualname))

found = {}
for name, text in json.load(sys.stdin).items():
    calls = set()
    threading.setprofile(profile)
    sys.setprofile(profile)
    exec(compile(text, name, "exec"), {"__name__": "program"})
    sys.setprofile(None)
    threading.setprofile(None)
    found[name] = sorted(c for c in calls if c[0].startswith("morok"))
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[str, str]]]:
    """The functions that each program calls, by module and qualified name, with empty caches."""
    environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run(
        [sys.executable, "-c", TRACER], input=json.dumps(PROGRAMS), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return {name: {(m, q) for m, q in found} for name, found in json.loads(done.stdout).items()}


def module_of(file: str) -> str:
    return "morok." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_the_page_answers_thirty_questions_in_five_programs() -> None:
    questions = [line for line in TEXT.splitlines() if line.startswith("| Where ")]
    assert len(questions) >= 30
    assert len(NAMED) == len(re.findall(r"^\| .*::", TEXT, re.MULTILINE))
    assert {program for _, _, program in NAMED} == set(PROGRAMS)
    assert len(PROGRAMS) == 5


@pytest.mark.long
@pytest.mark.parametrize(("file", "function", "program"), NAMED, ids=lambda x: x)
def test_a_named_function_exists_and_runs_in_its_program(
    calls: dict[str, set[tuple[str, str]]], file: str, function: str, program: str
) -> None:
    assert (ROOT / "morok" / file).is_file()
    found: Any = importlib.import_module(module_of(file))
    for part in function.split("."):
        found = getattr(found, part)
    code = getattr(found, "__wrapped__", found).__code__
    assert Path(code.co_filename) == ROOT / "morok" / file
    assert (module_of(file), code.co_qualname) in calls[program]


def rows(title: str) -> list[list[str]]:
    """The cells of the table with this heading, row by row."""
    table = re.search(rf"^\| {title} \|.*?\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


@pytest.mark.long
def test_the_floors_import_what_the_page_says() -> None:
    stated = {name.strip("`"): set(re.findall(r"`(\w+)`", below)) for name, _, below in rows("floor")}
    assert set(stated) == {floor(m) for m in MODULES if "." in m} - GROUND - {"__main__", "remembered"}
    for name, below in stated.items():
        used = {floor(other) for m in of_floor(name) for other in imports(m) if other != "morok"}
        assert used - GROUND - {name, "remembered"} == below, name
    order = list(stated)
    leads_up = {(name, b) for name, below in stated.items() for b in below if order.index(b) > order.index(name)}
    assert leads_up == {("ir", "prove")}  # solver functions, by import path


@cache
def circles() -> frozenset[frozenset[str]]:
    """Sets of modules that import each other: inside functions, by names in strings, for type checkers from folder to folder."""
    among = set(MODULES) - {"morok"}
    leads = {m: reached(m, among, checkers=True) for m in among}
    return frozenset(frozenset(o for o in leads[m] if m in leads[o]) for m in among if m in leads[m])


@pytest.mark.long
def test_imports_have_no_circle() -> None:
    assert "No modules import each other in a circle" in TEXT
    assert circles() == set()
