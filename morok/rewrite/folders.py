"""The folders of the built-in rule files and of their ledger, and the test that tells built-in files from those of packs."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from morok.names import readable

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def rules_folder() -> Path:
    """The built-in rule files: inside the package when installed, beside it in a checkout."""
    installed = _PACKAGE / "data" / "rules"
    return installed if installed.is_dir() else _PACKAGE.parent / "rules"


def proofs_folder() -> Path:
    """The built-in ledger: a page for each of these files, in folders of the same names."""
    installed = _PACKAGE / "data" / "proofs"
    return installed if installed.is_dir() else _PACKAGE.parent / "proofs"


@functools.cache
def _real(folder: Path) -> str:
    return os.path.realpath(folder)


def inside(file: str | Path) -> str | None:
    """The path of a built-in rule file in its folder, "" for the folder; None for any other file."""
    folder, path = _real(rules_folder()), os.path.realpath(file)
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + os.sep) else None


def is_built_in(file: str | Path) -> bool:
    """True for a file of the folder of the built-in rules, wherever a link to it stands."""
    return inside(file) is not None


def is_built_in_rule(rule: CheckedRule) -> bool:
    """True for a rule that came from a built-in file: one of a pack did not, wherever a link to its file leads by now."""
    return rule.name == rule.own and is_built_in(rule.file)


def page_path(file: str | Path) -> Path:
    """The path of the page of a rule file: in the built-in ledger, or the folder `proofs` beside a pack's file."""
    built_in = inside(file)
    if built_in is not None:
        return (proofs_folder() / built_in).with_suffix(".json")
    path = Path(file).resolve()
    return path.parent / "proofs" / (path.stem + ".json")


def files_of(where: Path) -> list[Path]:
    """The rule files that a path names: those below a folder, or the path itself. What is no regular file (a pipe, a device) is
    none in a folder, but for a link to nothing, of which whoever reads it says so.
    """
    if not where.is_dir():
        return [where]
    return [f for f in sorted(where.rglob("*.rules")) if f.is_file() or not f.exists()]


def pack_of(where: str | Path) -> str:
    """The prefix of the names of rules that come from this file or folder; "" for the built-in ones."""
    return "" if is_built_in(where) else readable(Path(where).resolve().stem)
