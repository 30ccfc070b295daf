"""The folder of files that this machine has made and may make again: matchers, kernels, verdicts, results of searches.

What is found there is believed, and some of it runs. So it is used only where nobody but its owner can write, as Python uses its
own compiled code; a folder that others can write to costs time, and one warning.
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path
from typing import Final

from morok import config
from morok.caller import caller

OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_warned: set[Path] = set()


def part(name: str = "") -> Path | None:
    """The folder `name` of the cache, or the cache itself, which may not be there; None where it is not to be used."""
    top = config.cache_dir()
    for folder in (top, top / name):
        why = refusal(folder)
        if why:
            _warn(folder, why)
            return None
    return top / name


def refusal(folder: Path) -> str:
    """The reason not to use a folder, in words; "" for one that is, or that is not there."""
    try:
        status = os.stat(folder)
    except OSError:
        return ""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others can write to it" if status.st_mode & OTHERS else ""


def make(folder: Path) -> None:
    """Make a folder of the cache, and the cache, for their owner alone; OSError where that cannot be."""
    top = config.cache_dir()
    top.parent.mkdir(parents=True, exist_ok=True)
    for at in (top, folder):
        at.mkdir(mode=0o700, exist_ok=True)


def _warn(folder: Path, why: str) -> None:
    """Say once in a process that a folder is not used, why, and what to do."""
    if folder in _warned:
        return
    _warned.add(folder)
    place = caller()
    at = ("morok", 1) if place is None else (place.file, place.line)
    said = f"nothing is cached in {folder}: {why}; set MOROK_CACHE_DIR to a folder that is yours alone, or empty this one and"
    warnings.warn_explicit(f"{said} make it so: `chmod 700 {folder}`", UserWarning, *at)
