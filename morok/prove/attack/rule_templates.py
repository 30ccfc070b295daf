"""The templates of random rules, by section."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path


@functools.cache
def templates() -> Mapping[str, Sequence[str]]:
    """The lines of each section of rule_templates.txt."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            found.setdefault(section, []).append(line)
    return found
