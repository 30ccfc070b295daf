"""The package as a wheel lays it out, away from the checkout: rules and proofs are found, programs run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import morok
from morok import Tensor
print(morok.__file__)
print((Tensor([[1.0, 2.0], [3.0, 4.0]]) @ Tensor([1.0, 1.0])).relu().tolist())
print(morok.rewrite.library.rules_dir())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages as pip would fill it, from what pyproject.toml says of the wheel."""
    folder = tmp_path_factory.mktemp("site")
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, folder / target)
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    elsewhere = site.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(site), "MOROK_CACHE_DIR": str(site.parent / "cache")}
    done = subprocess.run([sys.executable, *arguments], cwd=elsewhere, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.long
def test_the_commands(site: Path) -> None:
    assert "index[0..=31]" in run(site, "-m", "morok", "simplify", "Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)").stdout
    assert "0 errors" in run(site, "-m", "morok", "check").stdout
    assert "proved" in run(site, "-m", "morok", "doctor").stdout
    shutil.copy(ROOT / "examples" / "book_hello.py", site.parent)
    assert run(site, "-m", "morok", "run", str(site.parent / "book_hello.py")).stdout


@pytest.mark.long
def test_the_ledger_comes_along(site: Path) -> None:
    """Nothing is proved again: the ledger knows every rule."""
    assert "0.00 s of solving" in run(site, "-m", "morok", "prove").stdout


@pytest.mark.long
def test_a_program_uses_the_installed_package(site: Path) -> None:
    where, result, rules = run(site, "-c", PROGRAM).stdout.splitlines()
    assert where.startswith(str(site))
    assert result == "[3.0, 7.0]"
    assert rules == str(site / "morok" / "data" / "rules")
