"""A command's reports, in several formats, each to standard output or to a file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from morok import atomic
from morok.errors import MorokError, UsageError
from morok.names import SHOWN
from morok.prove.report import FORMATS, Report, error_line, print_text, render, rule_line, summary_line
from morok.prove.verdict import Verdict

STREAMED = "jsonl"


def forms(wanted: Sequence[str]) -> list[tuple[str, str]]:
    """(format, file) pairs of options `F` and `F=FILE`; the file is empty for stdout."""
    pairs = []
    for item in wanted:
        form, named, file = item.partition("=")
        if form not in FORMATS:
            raise UsageError(f"there is no format {form!r}", expected=", ".join(FORMATS))
        if named and not file:
            raise UsageError(f"--format {item} names no file", hint=f"--format {form} prints it")
        pairs.append((form, file))
    if sum(not file for _, file in pairs) > 1:
        raise UsageError(
            "two formats for one standard output", hint="give all but one a file: --format junit=report.xml"
        )
    return pairs


class Reports:
    """The reports of one run. Files are created at the beginning; `jsonl` is written verdict by verdict, others at the end."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = pairs
        self.verdicts: list[Verdict] = []
        self.mistakes: list[MorokError] = []
        self.files: list[str] = []
        self.streams: list[TextIO] = []
        self.opened = contextlib.ExitStack()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """A context for the run: creates all files at its beginning, and writes the reports at its end."""
        with self.opened:
            for form, file in self.pairs:
                if file:
                    made = Path(file).open("w", encoding="utf-8", errors=SHOWN)  # noqa: SIM115
                    self.opened.callback(_close, made)
                    if form == STREAMED:
                        self.streams.append(made)
                elif form == STREAMED:
                    self.streams.append(sys.stdout)
            yield
            self._line(summary_line(Report(self.verdicts, self.mistakes, self.files)))
        self._whole()

    def heard(self, verdict: Verdict) -> None:
        """Report a verdict, in the streamed formats."""
        self._line(rule_line(verdict))

    def mistake(self, error: MorokError) -> None:
        self.mistakes.append(error)
        self._line(error_line(error))

    def _line(self, line: str) -> None:
        for stream in self.streams:
            with contextlib.nullcontext() if stream is sys.stdout else atomic.naming(stream.name):
                stream.write(line)
                stream.flush()

    def _whole(self) -> None:
        """Write the reports in formats that are not streamed."""
        for form, file in self.pairs:
            if form == STREAMED:
                continue
            if file:
                text = render(self.verdicts, form, self.mistakes, self.files)
                with atomic.naming(file):
                    Path(file).write_text(text, encoding="utf-8", errors=SHOWN)
            elif form == "text":
                print_text(self.verdicts, sys.stdout, self.mistakes)
            else:
                sys.stdout.write(render(self.verdicts, form, self.mistakes, self.files))


def _close(file: TextIO) -> None:
    """Close a file; OSError with its name, if the disk is full."""
    with atomic.naming(file.name):
        file.close()
