"""The options of commands: each command has some, and its help loads nothing else of it."""

from __future__ import annotations

import subprocess
import sys

from morok.prove.report import FORMATS
from morok.tools import options
from morok.tools.cli import COMMANDS

GROUND = {
    "caller",
    "errors",
    "handed",
    "late_imports",
    "names",
    "out_of_memory",
    "tools",
}  # what a mistake in use is reported with


def test_help_loads_the_options_of_commands_and_no_command() -> None:
    program = f"""
import contextlib, sys
from morok.tools.cli import main
for name in {list(COMMANDS)}:
    with contextlib.suppress(SystemExit):
        main([name, "--help"])
print(*(m for m in sys.modules if m.startswith("morok.")), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {m.removeprefix("morok.") for m in done.stderr.split()}
    assert "tools.options" in loaded
    assert {m.partition(".")[0] for m in loaded} <= GROUND
    assert not {f"tools.{name}" for name in COMMANDS} & loaded


def test_prove_is_told_of_every_format_that_there_is() -> None:
    assert tuple(FORMATS) == options.FORMATS
