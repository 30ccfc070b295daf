"""Types of Tensor's public names, as mypy shows them: functions that the class lists are methods, and return its subclass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from morok import Tensor

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from morok.tensor.tensor import Tensor

class Mine(Tensor): ...

x = Mine(1)
"""
UNTYPED = {"item", "tolist"}  # numbers, or lists as deep as the tensor has axes
OF_THE_CLASS = {
    "exp",
    "sum",
    "reshape",
    "where",
    "zeros",
    "rand",
    "concat",
    "einsum",
    "T",
    "realize",
    "unique_values",
    "__radd__",
}


@pytest.mark.long
def test_mypy_shows_a_precise_type_for_every_public_name(tmp_path: Path) -> None:
    names = [
        *(n for n in dir(Tensor) if not n.startswith("_")),
        "__add__",
        "__radd__",
        "__getitem__",
        "__eq__",
        "__matmul__",
    ]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "".join(f"reveal_type(x.{name})\n" for name in names), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    types = dict(zip(names, re.findall(r'Revealed type is "(.*)"', done.stdout), strict=True))
    assert {name for name, shown in types.items() if re.search(r"(^|-> |\[)Any$", shown)} == UNTYPED
    assert {name for name in OF_THE_CLASS if not types[name].endswith("program.Mine")} == set()
