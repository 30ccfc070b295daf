"""No wrong argument of a public function, and no operands of an op, end in an exception that is none of ours: calls of chance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("campaign", "count"),
    [
        ("wrong_calls.py", 150),
        ("wrong_nodes.py", 500),
        pytest.param("wrong_calls.py", 1500, marks=pytest.mark.long),
        pytest.param("wrong_nodes.py", 8000, marks=pytest.mark.long),
    ],
)
def test_calls_of_chance_end_in_errors_of_ours(campaign: str, count: int, tmp_path: Path) -> None:
    """In a process of its own, which may crash, and has not all memory: its findings are what it prints."""
    last = tmp_path / "last"
    found = subprocess.run(
        [sys.executable, str(HERE / campaign), str(count), "13"],
        cwd=tmp_path,
        env={**os.environ, "WRONG_CALLS_LAST": str(last)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, (
        f"{found.stdout}{found.stderr[-4000:]}\n{last.read_text(errors='replace') if last.exists() else ''}"
    )
