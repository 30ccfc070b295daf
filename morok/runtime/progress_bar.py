"""A progress bar for long work, on terminals only, shown after a delay."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TextIO, TypeVar

T = TypeVar("T")

PATIENCE: Final = 1.0  # seconds before anything is shown


def shown(
    items: Sequence[T], what: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[T]:
    """The items, one after the other, with a progress bar on `stream` (standard error by default) if it is a terminal."""
    out = sys.stderr if stream is None else stream
    if len(items) < 2 or out is None or not out.isatty():  # sys.stderr is None in a program without a console
        yield from items
        return
    begin = clock()
    bar = None
    try:
        for done, item in enumerate(items):
            if bar is None and clock() - begin >= PATIENCE:
                from rich import console, progress  # lazy: drawn on terminals alone

                columns = (
                    progress.TextColumn("{task.description}"),
                    progress.BarColumn(),
                    progress.MofNCompleteColumn(),
                    progress.TimeElapsedColumn(),
                )
                bar = progress.Progress(*columns, console=console.Console(file=out), transient=True)
                task = bar.add_task(what, total=len(items))
                bar.start()
            if bar is not None:
                bar.update(task, completed=done, refresh=True)
            yield item
    finally:
        if bar is not None:
            bar.stop()
