"""Traces: records of all firings, made on request.

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
    """A firing of a rule.

    before, after        the texts of the node and of the result, cut off below a few levels
    before_id, after_id  numbers of the two nodes, unique within a trace
    seconds              the time since the trace began
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
    """A list of firings in the order of time. Several threads may record into one trace."""

    def __init__(self) -> None:
        self.firings: list[Firing] = []
        self._began = time.perf_counter()
        self._ids: dict[int, tuple[int, Node]] = {}

    def record(self, dialect: Dialect, stage: str, rule: str, before: Node, after: Node) -> None:
        seconds = time.perf_counter() - self._began
        with TRACES:
            b, a = self._id(before), self._id(after)
            self.firings.append(
                Firing(stage, rule, abbreviate(dialect, before), b, abbreviate(dialect, after), a, seconds)
            )

    def _id(self, node: Node) -> int:
        # the trace keeps the node alive, so that no other node gets its address
        return self._ids.setdefault(id(node), (len(self._ids), node))[0]

    def write(self, path: Path) -> None:
        """Write the firings as JSON: `{"firings": [...]}`."""
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
    """The trace that records firings now: that of the innermost `tracing` block, else that of MOROK_TRACE, else None."""
    return current_or(config.TRACE.value)


def current_or(path: Path | None) -> Trace | None:
    """The current trace, with `path` as the value of MOROK_TRACE."""
    found = _current.get()
    if found is not None:
        return found
    return None if path is None else _of_file(path)


def _of_file(path: Path) -> Trace:
    with TRACES:
        found = _of_files.get(path)
        if found is None:
            try:
                path.open("ab").close()  # so that an unwritable file is an error now, not when the process ends
            except OSError as problem:
                raise ConfigError(
                    f"the trace {path} cannot be written: {problem.strerror}",
                    expected="a file name in an existing folder",
                ) from None
            found = _of_files[path] = Trace()
            atexit.register(found.write, path.absolute())
        return found
