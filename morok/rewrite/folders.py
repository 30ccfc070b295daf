"""The folders of the built-in rule files and of their ledger, and a test whether a rule file is built in or of a pack."""

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
    """The folder of the built-in rule files: inside an installed package, beside the package in a checkout."""
    installed = _PACKAGE / "data" / "rules"
    return installed if installed.is_dir() else _PACKAGE.parent / "rules"


def proofs_folder() -> Path:
    """The folder of the built-in ledger, with a page for each built-in rule file under the same relative path."""
    installed = _PACKAGE / "data" / "proofs"
    return installed if installed.is_dir() else _PACKAGE.parent / "proofs"


@functools.cache
def _real(folder: Path) -> str:
    return os.path.realpath(folder)


def inside(file: str | Path) -> str | None:
    """The path of a built-in rule file relative to its folder; "" for the folder itself; None for any other file."""
    folder, path = _real(rules_folder()), os.path.realpath(file)
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + os.sep) else None


def is_built_in(file: str | Path) -> bool:
    """True for a file in the folder of the built-in rules, also if the path is a link to it."""
    return inside(file) is not None


def is_built_in_rule(rule: CheckedRule) -> bool:
    """True for a rule of a built-in file. A rule of a pack is none, even if its file has become a link to a built-in file."""
    return rule.name == rule.own and is_built_in(rule.file)


def page_path(file: str | Path) -> Path:
    """The path of the ledger page of a rule file: in the built-in ledger, or in the folder `proofs` beside a pack's file."""
    built_in = inside(file)
    if built_in is not None:
        return (proofs_folder() / built_in).with_suffix(".json")
    path = Path(file).resolve()
    return path.parent / "proofs" / (path.stem + ".json")


def files_of(where: Path) -> list[Path]:
    """The rule files below a folder, or the path itself if it is no folder. Pipes and devices in a folder are left out; dangling
    links are kept, so that reading them raises an error.
    """
    if not where.is_dir():
        return [where]
    return [f for f in sorted(where.rglob("*.rules")) if f.is_file() or not f.exists()]


def pack_of(where: str | Path) -> str:
    """The name prefix of rules from this file or folder; "" for built-in rules."""
    return "" if is_built_in(where) else readable(Path(where).resolve().stem)
