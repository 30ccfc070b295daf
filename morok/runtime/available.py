"""The memory available to this process. A system that overcommits would grant more, and kill the process that uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SYSTEM: Final = Path("/proc/meminfo")
_GROUP: Final = Path("/sys/fs/cgroup")  # the control group, as seen inside a container


def available(system: Path = _SYSTEM, group: Path = _GROUP) -> int | None:
    """The bytes available now, swap included: the least of the system's and the control group's; None if neither is reported."""
    known = [n for n in (_of_system(system), _of_group(group)) if n is not None]
    return min(known) if known else None


def _of_system(path: Path) -> int | None:
    table = _table(path)
    if "MemAvailable:" not in table:
        return None
    return 1024 * (table["MemAvailable:"] + table.get("SwapFree:", 0))


def _of_group(folder: Path) -> int | None:
    limit, used = (_number(folder / name) for name in ("memory.max", "memory.current"))
    if limit is None or used is None:
        return None
    # the page cache counts as used, but is freed on demand
    return max(0, limit - used + _table(folder / "memory.stat").get("inactive_file", 0))


def _table(path: Path) -> dict[str, int]:
    """The number on each line by the name on it; {} for a missing file."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
