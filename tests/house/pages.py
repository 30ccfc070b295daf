"""Recordings as text: a page is a file of entries, each a heading and its lines, in the order of their headings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

HEAD: Final = "=== "
_VOLATILE: Final = (
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|us|seconds)\b"), "<time>"),
    (re.compile(r'("(?:seconds|time|rate)": )[-+.\de]+'), r"\1<time>"),
    (re.compile(r"\bratio \d+\.\d+"), "ratio <time>"),  # of the times that an example measures
    (re.compile(r"\bat 0x[0-9a-f]{6,}"), "at <address>"),
)


def scrubbed(text: str, folders: Mapping[str, str]) -> str:
    """The text without times and addresses, each of `folders` (path -> name) under its name; the longest path first."""
    for path in sorted(folders, key=len, reverse=True):
        text = text.replace(path, folders[path])
    for pattern, shown in _VOLATILE:
        text = pattern.sub(shown, text)
    return text


def write(path: Path, entries: Mapping[str, str]) -> None:
    """The page of these entries; a line of an entry that looks like a heading is moved in by a space."""
    lines: list[str] = []
    for key in sorted(entries):
        assert "\n" not in key, key
        lines.append(HEAD + key)
        lines += [f" {line}" if line.startswith(HEAD) else line for line in entries[key].splitlines()]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="backslashreplace")


def read(path: Path) -> dict[str, list[str]]:
    """The lines of each entry of a page."""
    entries: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        if line.startswith(HEAD):
            lines = entries[line.removeprefix(HEAD)] = []
        else:
            lines.append(line)
    return entries


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def counted(names: Iterable[str]) -> str:
    """Names in their order, one a line; equal ones that follow each other are one line with their number."""
    lines: list[str] = []
    last, count = None, 0
    for name in (*names, None):
        if name == last:
            count += 1
            continue
        if last is not None:
            lines.append(last if count == 1 else f"{last} x {count}")
        last, count = name, 1
    return "\n".join(lines)
