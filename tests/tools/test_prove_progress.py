"""The counter of `morok prove` on terminals."""

from __future__ import annotations

from typing import Any

from morok.prove.verdict import Verdict
from morok.tools.prove import _Progress


class Line:
    """A line of a terminal, and what it has shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, text: str) -> None:
        self.shown.append(text)


def test_it_says_how_many_there_are_before_the_first_is_decided() -> None:
    line: Any = Line()
    progress = _Progress()
    progress.status = line
    progress.started(2)
    assert line.shown == ["0 of 2"]
    progress.done(Verdict("g.r", "a.rules", 1, "proved"))
    assert line.shown[1:] == ["1 of 2; last g.r: proved"]


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    progress = _Progress()
    progress.started(2)
    progress.done(Verdict("g.r", "a.rules", 1, "proved"))
    assert (progress.count, progress.total) == (1, 2)
