"""The bar of long compilations: on terminals, after a while, and gone when all is done."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Generator

from morok.runtime.progress_bar import PATIENCE, shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seconds(step: float) -> Callable[[], float]:
    ticks = itertools.count()
    return lambda: next(ticks) * step


def test_nothing_is_shown_where_nobody_looks_or_waits() -> None:
    file, terminal = io.StringIO(), Terminal()
    assert list(shown([1, 2, 3], "compiling", file, seconds(100.0))) == [1, 2, 3]
    assert list(shown([1, 2, 3], "compiling", terminal, seconds(PATIENCE / 10))) == [1, 2, 3]
    assert list(shown([1], "compiling", terminal, seconds(100.0))) == [1]
    assert file.getvalue() == terminal.getvalue() == ""


def test_a_long_wait_shows_how_far_it_is() -> None:
    terminal = Terminal()
    assert list(shown(["a", "b", "c"], "compiling kernels", terminal, seconds(PATIENCE))) == ["a", "b", "c"]
    assert "compiling kernels" in terminal.getvalue()
    assert "2/3" in terminal.getvalue()


def test_a_failure_takes_the_bar_with_it() -> None:
    terminal = Terminal()
    items = shown([1, 2, 3], "compiling", terminal, seconds(100.0))
    assert isinstance(items, Generator)
    next(items)
    next(items)
    items.close()
    length = len(terminal.getvalue())
    assert length > 0
    assert list(items) == []
    assert len(terminal.getvalue()) == length
