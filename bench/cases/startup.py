"""How long a fresh interpreter takes to import us, against a bare one; and its first `simplify`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from bench.harness import Contest


def _fresh(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def contests() -> Iterator[Contest]:
    bare = {"a bare interpreter": _fresh("pass")}
    yield Contest("import morok", _fresh("import morok"), bare, goal=2.0, against="a bare interpreter", rounds=25)
    first = "import morok; x = morok.UOp.var('x', morok.dtypes.index, 0, 31); morok.simplify((x * 4 + 3).idiv(4))"
    yield Contest("first simplify of a process", _fresh(first), bare, rounds=9)
