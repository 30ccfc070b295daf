"""The walks of CONTRIBUTING.md, each made in a copy of the checkout: its changes apply, and what follows them runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK: Final = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
WALKS: Final = {
    title: BLOCK.findall(body)
    for title, body in re.findall(r"^## (An? .*?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what is changed and run."""
    for folder in ("morok", "rules", "proofs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def changed(text: str, diff: str) -> str:
    """`text` after a change: the lines kept and taken out stand in it once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    assert text.count(before) == 1, f"{text.count(before)} times: {before}"
    return text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))


def run(checkout: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    if checkout != ROOT:  # the changed copy caches in itself, and nothing is written into the checkout under test
        environment["MOROK_CACHE_DIR"] = str(checkout / "cache")
    done = subprocess.run([sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_a_walk_for_each_kind_of_addition() -> None:
    assert list(WALKS) == ["An op", "A rule", "A stage", "A backend", "A command"]


@pytest.mark.long
@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_works_in_a_copy_of_the_checkout(checkout: Path, walk: str) -> None:
    for language, what, text in WALKS[walk]:
        if language == "diff":
            file = checkout / what
            file.write_text(changed(file.read_text(encoding="utf-8"), text), encoding="utf-8")
        elif language == "console":
            for line in text.splitlines():
                run(checkout, "-m", *shlex.split(line.removeprefix("$ ")))
        elif what == "check":
            with pytest.raises(AssertionError):  # without these changes it fails: they are what makes it work
                run(ROOT, "-c", text)
            run(checkout, "-c", text)
        else:
            assert not (checkout / what).exists()
            (checkout / what).write_text(text, encoding="utf-8")
    files = [what for language, what, _ in WALKS[walk] if what.endswith(".py")]
    if files:
        run(checkout, "-m", "ruff", "check", *files)
        run(checkout, "-m", "ruff", "format", "--check", *files)


def test_a_change_that_does_not_fit_is_noticed() -> None:
    assert changed("a\nb\n", " a\n+c\n") == "a\nc\nb\n"
    with pytest.raises(AssertionError):
        changed("a\na\n", " a\n+c\n")
