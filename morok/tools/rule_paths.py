"""The rule files named on a command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from morok.prove import api
from morok.rewrite.library import rules_dir


def rule_files(paths: Sequence[str]) -> list[Path]:
    """The `.rules` files in `paths`, files or folders; the built-in ones if it is empty. UsageError for a missing path."""
    return api.rule_files(paths or [rules_dir()])


def packed_files(paths: Sequence[str]) -> list[tuple[Path, str]]:
    """(file, pack) for each of rule_files(); the names of a pack's rules begin with its name."""
    return api.packed_files(paths or [rules_dir()])
