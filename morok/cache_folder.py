"""The cache folder, with files that can be made again: matchers, kernels, verdicts, results of searches.

Its contents are trusted, and some are executed. So the folder is used only if it belongs to the user and nobody else can write to
it; otherwise nothing is cached, with one warning.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from morok import config
from morok.atomic import OTHERS
from morok.caller import caller

_warned: set[Path] = set()


def part(name: str = "") -> Path | None:
    """The folder `name` of the cache, or the cache itself, which need not exist; None if it must not be used."""
    top = config.cache_dir()
    for folder in (top, top / name):
        why = refusal(folder)
        if why:
            _warn(folder, why)
            return None
    return top / name


def refusal(folder: Path) -> str:
    """The reason not to use a folder, in words; "" for a usable or missing one."""
    try:
        status = os.stat(folder)
    except OSError:
        return ""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others can write to it" if status.st_mode & OTHERS else ""


def make(folder: Path) -> None:
    """Make a folder of the cache, and the cache, accessible to their owner only; OSError."""
    top = config.cache_dir()
    top.parent.mkdir(parents=True, exist_ok=True)
    for at in (top, folder):
        at.mkdir(mode=0o700, exist_ok=True)


def _warn(folder: Path, why: str) -> None:
    """Warn, once in a process, that a folder is not used, why, and what to do."""
    if folder in _warned:
        return
    _warned.add(folder)
    place = caller()
    at = ("morok", 1) if place is None else (place.file, place.line)
    said = f"nothing is cached in {folder}: {why}; set MOROK_CACHE_DIR to a folder that is yours alone, or empty this one and"
    warnings.warn_explicit(f"{said} make it so: `chmod 700 {folder}`", UserWarning, *at)
