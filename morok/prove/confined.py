"""Work in a process of its own that may hang, end, run out of memory or print without end: what came of it, within limits."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from morok.interrupts import check

MEMORY: Final = 1 << 30  # bytes that may be taken besides what this process has
PRINTED: Final = 1 << 20  # bytes that may be printed
FILES: Final = 16 << 20  # bytes that a file may have
SHOWN: Final = 2000  # bytes of what it says it is doing
PATIENCE = 10.0  # seconds for one step
LIMIT = 120.0  # seconds for all


class Outcome(NamedTuple):
    """The result of the work; or, in `died`, the end that it found instead, and in `doing` the last thing that it reported."""

    answer: Any = None
    died: str = ""
    doing: str = ""


def possible() -> bool:
    """True if this system has such processes."""
    return hasattr(os, "fork")


def confined(work: Callable[[Callable[[str], None]], Any]) -> Outcome:
    """The result of `work`, as JSON has it. It calls its argument with the next thing it does, at each step."""
    said = mmap.mmap(-1, SHOWN + 16)
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            _serve(work, said, writing, printed)
        os.close(writing)
        try:
            died, content = _watched(said, reading, printed)
        finally:
            _end(child)
            os.close(reading)
    steps, size = int.from_bytes(said[:8], "little"), int.from_bytes(said[8:16], "little")
    doing = said[16 : 16 + size].decode("utf-8", "replace") if steps else ""
    if not died:
        try:
            return Outcome(json.loads(content), "", doing)
        except ValueError:
            died = "ended the process"
    return Outcome(None, died, doing)


def _watched(said: mmap.mmap, reading: int, printed: Any) -> tuple[str, bytes]:
    """The end of the process, if it did not answer; and its answer."""
    content = b""
    began = moved = time.monotonic()
    before = b""
    while True:
        ready, _, _ = select.select([reading], [], [], 0.05)
        check()
        if ready:
            part = os.read(reading, 1 << 16)
            if not part:
                return "", content
            content += part
        now = time.monotonic()
        if said[:8] != before:
            before, moved = said[:8], now
        if os.fstat(printed.fileno()).st_size > PRINTED:
            return f"printed more than {PRINTED >> 20} MB", content
        if now - moved > PATIENCE:
            return f"did not return within {PATIENCE:g} s", content
        if now - began > LIMIT:
            return f"took more than {LIMIT:g} s in all", content


def _end(child: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _serve(work: Callable[[Callable[[str], None]], Any], said: mmap.mmap, writing: int, printed: Any) -> None:
    """The child's side, which does not return."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for end, there in ((0, nothing), (1, printed.fileno()), (2, printed.fileno())):
            os.dup2(there, end)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        _limit()
        steps = 0

        def step(doing: str) -> None:
            nonlocal steps
            steps += 1
            text = doing.encode("utf-8", "backslashreplace")[:SHOWN]
            said[16 : 16 + len(text)] = text
            said[8:16] = len(text).to_bytes(8, "little")
            said[:8] = steps.to_bytes(8, "little")

        answer = json.dumps(work(step)).encode()
        while answer:
            answer = answer[os.write(writing, answer) :]
        status = 0
    finally:
        os._exit(status)


def _limit() -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILES, FILES))
    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = taken + MEMORY if most == resource.RLIM_INFINITY else min(taken + MEMORY, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
