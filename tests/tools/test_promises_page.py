"""docs/promises.md is held: each row names tests that exist, and its lists and tables are those of the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
import tracemalloc
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

import morok
import morok.errors
from morok import UOp, dtypes
from morok.config import SETTINGS
from morok.prove import page
from morok.prove.verdict import Verdict, exit_status
from morok.tools.cli import main

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
TESTS: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
Captured = pytest.CaptureFixture[str]


def rows(title: str) -> list[list[str]]:
    """The cells of every table whose heading begins so, row by row."""
    tables = re.findall(rf"^\| {title} \|.*?\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert tables
    return [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for table in tables
        for line in table.splitlines()
    ]


def names(start: str) -> list[str]:
    """What stands in backquotes in the paragraph that begins so."""
    return re.findall(r"`(\w+)`", re.search(rf"^{start}: (.*?)\n\n", TEXT, re.MULTILINE | re.DOTALL)[1])  # type: ignore[index]


@cache
def functions_in(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("row", [*rows("promise"), *rows("campaign")], ids=lambda row: row[0][:60])
def test_a_promise_names_tests_that_exist(row: list[str]) -> None:
    held = TESTS.findall(row[-1])
    assert held
    assert TESTS.sub("", row[-1]).strip() == ""
    assert [(file, test) for file, test in held if test not in functions_in(file)] == []


def test_public_names_are_those_of_the_page() -> None:
    assert set(names("Public names")) == set(morok.__all__)
    program = "import morok, sys; print(*[m for m in sys.modules if m.startswith('morok.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"morok.handed", "morok.late_imports"}


def test_the_format_of_ledgers_is_that_of_the_page() -> None:
    assert f"A ledger page has a format number, now {page.FORMAT}." in TEXT


def test_public_packages_can_be_imported() -> None:
    for name in ("nn", "errors", "ir", "dialect", "rewrite"):
        assert importlib.import_module(f"morok.{name}").__doc__


@pytest.mark.long
def test_no_public_name_is_deprecated() -> None:
    program = "import morok, morok.nn as nn\nfor m in (morok, nn):\n    for n in m.__all__: getattr(m, n)"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_settings_are_those_of_the_page() -> None:
    assert names("Settings") == sorted(s.name for s in SETTINGS)


def test_error_codes_are_those_of_the_page() -> None:
    listed = re.findall(r"(MRK\d{3})\s+(\w+)", re.search(r"^Codes: (.*?)\.\n", TEXT, re.MULTILINE | re.DOTALL)[1])  # type: ignore[index]
    classes = [c for c in vars(morok.errors).values() if inspect.isclass(c) and issubclass(c, morok.errors.MorokError)]
    assert sorted(listed) == sorted((c.code, c.__name__) for c in classes)


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        (("proved", "bounded", "approximate", "defined"), 0),
        (("proved", "refuted"), 1),
        (("inapplicable", "unknown"), 1),
        (("proved", "unknown"), 3),
        (("unknown", "error"), 4),
    ],
)
def test_a_verdict_has_one_exit_status(verdicts: tuple[str, ...], status: int) -> None:
    assert exit_status([Verdict(f"g.{v}", "f.rules", 1, v) for v in verdicts]) == status


def fields(document: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", next(row[1] for row in rows("document") if row[0] == document)))


@pytest.mark.long
def test_json_documents_have_the_fields_of_the_page(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "mine.rules"

    def document(*command: str) -> Any:
        main([*command])
        return json.loads(capsys.readouterr().out)

    file.write_text('group g "shifts"\n\ndouble: Add(x: i8, x) ~> Shl(x, 1)\nhalve: Idiv(x: i8, 2) ~> Shr(x, 1)\n')
    proved = document("prove", "--json", str(file))
    assert set(proved) >= fields("`prove --json`")
    assert all(set(rule) >= fields("a rule of it") for rule in proved["rules"])
    assert set(proved["rules"][1]["counterexample"]) >= fields("a counterexample")
    for title, command in {
        "`check --json`": ("check", "--json", str(file)),
        "`fmt --check --json`": ("fmt", "--check", "--json", str(file)),
        "`explain --json`": ("explain", "--json", "boolean.not_not"),
        "`simplify --json`": ("simplify", "--json", "Add(x: i32, 0)"),
        "`rules --json`": ("rules", "--json"),
        "`pipeline --json`": ("pipeline", "--json"),
        "`config --json`": ("config", "--json"),
        "`doctor --json`": ("doctor", "--json"),
    }.items():
        assert set(document(*command)) >= fields(title), title
    file.write_text("group g\n\nr: Nonsense(x) ~> x\n")
    assert all(set(error) >= fields("an error") for error in document("check", "--json", str(file))["errors"])


PROGRAM: Final = """
import numpy as np
from morok import Tensor
x = Tensor(np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32))
Tensor.manual_seed(1)
y = (x @ x.T).softmax(-1).sum(0) + x.exp().mean(1) + Tensor.rand(64) + x.gelu().var(1)
print(y.numpy().tobytes().hex())
"""


@pytest.mark.long
def test_bits_are_the_same_in_every_run(tmp_path: Path) -> None:
    printed = set()
    for folder, seed in (("a", "1"), ("a", "2"), ("b", "3")):  # cold, warm, cold
        environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path / folder), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        printed.add(done.stdout)
    assert len(printed) == 1
    assert len(printed.pop()) > 500


def test_versions_are_those_of_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = dict(d.split(">=") for d in project["dependencies"]) | {
        "python": project["requires-python"].removeprefix(">=")
    }
    for package, at_least, tested in rows("package"):
        name = package.strip("`")
        installed = platform.python_version() if name == "python" else version(name)
        assert least[name] == at_least, name
        assert installed.split(".")[:2] == tested.split("."), name


@pytest.mark.parametrize("row", rows("limit"), ids=lambda row: row[0])
def test_limits_are_those_of_the_page(row: list[str]) -> None:
    file, _, constant = row[2].strip("`").partition("::")
    found: Any = importlib.import_module("morok." + file.removesuffix(".py").replace("/", "."))
    for part in constant.split("."):
        found = found._field_defaults[part] if hasattr(found, "_field_defaults") else getattr(found, part)
    assert found == int(row[1])


@pytest.mark.long
def test_a_node_takes_no_more_memory_than_the_page_says() -> None:
    most = next(int(value) for what, value, _ in rows("limit") if what.startswith("bytes of a node"))
    x = UOp.var("x", dtypes.i32)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = x
        for i in range(1_000_000, 1_010_000):
            kept = kept + i  # a sum and a constant
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / 20_000 <= most


def cases(campaign: str) -> int:
    return next(int(row[1]) for row in rows("campaign") if row[0].startswith(campaign))


def test_ci_attacks_with_as_many_rules_as_the_page_says() -> None:
    counts = re.findall(r"morok attack .*--rules (\d+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert [int(n) >= cases("Random rules") for n in counts] == [True]


def test_as_many_mutants_are_on_record_as_the_page_says() -> None:
    record = json.loads((ROOT / "proofs" / "mutants.json").read_text(encoding="utf-8"))
    assert sum(sum(entry["counts"].values()) for entry in record.values()) >= cases("Mutants")


@pytest.mark.parametrize("campaign", ["Random tensor programs", "Random writes", "Random expressions", "Random text"])
def test_hypothesis_draws_as_many_examples_as_the_page_says(campaign: str) -> None:
    (row,) = (row for row in rows("campaign") if row[0].startswith(campaign))
    drawn = 0
    for file, test in TESTS.findall(row[-1]):
        for text in map(ast.unparse, functions_in(file)[test].decorator_list):
            if "max_examples=" in text or "'examples'" in text:  # the quick run has a case with fewer
                drawn += max(map(int, re.findall(r"\b\d+\b", text)))
    assert drawn >= int(row[1])
