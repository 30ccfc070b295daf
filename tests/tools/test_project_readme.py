"""The README's examples are run: its rules, its commands, its Python."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    found = [text for name, text in BLOCKS if name == language]
    assert found, f"the README has no {language} block"
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shifts.rules").write_text(blocks("rules")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python(folder: Path) -> None:
    for text in blocks("python"):
        exec(compile(text, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.long
def test_console(folder: Path) -> None:
    command, printed = None, ""
    for line in [*"".join(blocks("console")).splitlines(), "$ true"]:
        if not line.startswith("$ "):
            assert command is not None
            assert line in printed.splitlines(), f"{command} printed {printed!r}"
            continue
        command = shlex.split(line[2:])
        if command[0] == "morok":
            command = [sys.executable, "-m", "morok", *command[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        printed = done.stdout
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_refuted_without_its_guard(folder: Path) -> None:
    text = (folder / "shifts.rules").read_text(encoding="utf-8")
    (folder / "shifts.rules").write_text(text.replace(" and vmin(x) >= 0", ""), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "morok", "prove", "shifts.rules"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    import morok
    from morok.errors import UnprovedRuleError

    with pytest.raises(UnprovedRuleError, match="halve"):
        morok.load_rules("shifts.rules")


def test_commands_name_what_exists() -> None:
    for text in blocks("sh"):
        for file in re.findall(r"\S+\.py", text):
            if "/bin/" not in file:
                assert (README.parent / file).is_file()
