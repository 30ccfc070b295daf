"""A record of every rewriting, kept only where somebody asked for it.

`MOROK_TRACE=out.json` records the whole process and writes the file when it ends; a `Trace` passed to a rewriting, or
made current with `with tracing(trace):`, records that part.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from morok import config
from morok.dialect import Dialect, Node
from morok.errors import ConfigError
from morok.locks import TRACES
from morok.rewrite.abbreviate import abbreviate


class Firing(NamedTuple):
    """One rule that fired: `seconds` since the trace began; `before` and `after` are text, cut off below a few levels.

    `before_id` and `after_id` tell nodes apart within one trace.
    """

    stage: str
    rule: str
    before: str
    before_id: int
    after: str
    after_id: int
    seconds: float

    def row(self) -> dict[str, Any]:
        """The firing as a JSON object."""
        return self._asdict()


class Trace:
    """Firings in the order in which they happened. Several threads may record into one trace."""

    def __init__(self) -> None:
        self.firings: list[Firing] = []
        self._began = time.perf_counter()
        self._ids: dict[int, tuple[int, Node]] = {}

    def record(self, dialect: Dialect, stage: str, rule: str, before: Node, after: Node) -> None:
        seconds = time.perf_counter() - self._began
        with TRACES:
            b, a = self._id(before), self._id(after)
            self.firings.append(Firing(stage, rule, abbreviate(dialect, before), b, abbreviate(dialect, after), a, seconds))

    def _id(self, node: Node) -> int:
        # the node is kept, so that its address names it for as long as the trace lives
        return self._ids.setdefault(id(node), (len(self._ids), node))[0]

    def write(self, path: Path) -> None:
        """The firings as JSON: `{"firings": [...]}`."""
        path.write_text(json.dumps({"firings": [f.row() for f in self.firings]}, indent=1) + "\n", encoding="utf-8")


_current: contextvars.ContextVar[Trace | None] = contextvars.ContextVar("morok trace", default=None)
_of_files: dict[Path, Trace] = {}


@contextlib.contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Record every firing inside the `with` block, in this thread or task, into `trace`."""
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


def current() -> Trace | None:
    """The trace that firings go to now: the innermost `tracing` block's, else MOROK_TRACE's, else none."""
    return current_or(config.TRACE.value)


def current_or(path: Path | None) -> Trace | None:
    """`current`, with this value of MOROK_TRACE."""
    found = _current.get()
    if found is not None:
        return found
    return None if path is None else _of_file(path)


def _of_file(path: Path) -> Trace:
    with TRACES:
        found = _of_files.get(path)
        if found is None:
            try:
                path.open("ab").close()  # what cannot be written is said now, and not when the process ends
            except OSError as problem:
                raise ConfigError(
                    f"the trace {path} cannot be written: {problem.strerror}", expected="a file name, in a folder that there is"
                ) from None
            found = _of_files[path] = Trace()
            atexit.register(found.write, path.absolute())
        return found
