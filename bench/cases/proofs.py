"""The proof of all built-in rules on two cores, and what it takes to see that nothing has changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from bench.harness import Contest


def _prove(*options: str) -> Callable[[], object]:
    command = [sys.executable, "-m", "morok", "prove", "--jobs", "2", *options]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def contests() -> Iterator[Contest]:
    yield Contest("prove the library, unchanged", _prove(), most=2.0, rounds=5)
    yield Contest("prove the library, cold", _prove("--no-cache"), most=60.0, rounds=1, warm=False)
