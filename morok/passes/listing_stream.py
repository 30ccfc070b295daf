"""The stream for the stages' listings: standard error under MOROK_DEBUG=ir, standard output for `morok trace`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TextIO

_stream: TextIO | None = None  # one for the process: kernels may be lowered in other threads


def show(section: str) -> None:
    print(section, file=sys.stderr if _stream is None else _stream)


@contextlib.contextmanager
def showing_on(stream: TextIO) -> Iterator[None]:
    """Print sections on `stream` inside the `with` block."""
    global _stream
    before, _stream = _stream, stream
    try:
        yield
    finally:
        _stream = before
