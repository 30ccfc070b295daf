"""The rule files that command lines name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from morok.prove import api
from morok.rewrite.library import rules_dir


def rule_files(paths: Sequence[str]) -> list[Path]:
    """The `.rules` files that `paths` name, folders searched; without any, the built-in ones. UsageError if one is missing."""
    return api.rule_files(paths or [rules_dir()])


def packed_files(paths: Sequence[str]) -> list[tuple[Path, str]]:
    """The same files, each with the pack that its rules' names begin with."""
    return api.packed_files(paths or [rules_dir()])
