"""Lack of memory: an error of ours, wherever it was noticed."""

from __future__ import annotations

import contextlib
import functools
import mmap
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from morok.caller import caller
from morok.errors import MorokError, OutOfMemoryError

F = TypeVar("F", bound=Callable[..., Any])
# What CPython says in a SystemError where a step of its interpreter, or a call of a function written in Python, found no memory
# and raised nothing. Of other functions it can say the like: an extension module may have one that is wrong.
_UNSAID: Final = re.compile("error return without exception set|<function .* returned NULL without setting an exception")
# How mmap is asked for memory that other processes do not see.
_OWN: Final[dict[str, Any]] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
# To make an error, and to print it, takes memory. These addresses are kept for it; no page of them is ever touched.
_BYTES: Final = 8 << 20
_reserve: list[mmap.mmap] = []


def _keep() -> None:
    """Addresses kept for the next error, if there are any left."""
    with contextlib.suppress(OSError, MemoryError):
        _reserve.append(mmap.mmap(-1, _BYTES, **_OWN))


def _spend() -> None:
    """The addresses that were kept, given back to the process."""
    for kept in list(_reserve):
        kept.close()
    _reserve.clear()


def room_for(nbytes: int) -> bool:
    """True if the process can have `nbytes` more of addresses."""
    try:
        mmap.mmap(-1, nbytes, **_OWN).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def no_memory(work: str) -> OutOfMemoryError:
    """The error of who finds no memory to do `work`."""
    _spend()
    hint = "free tensors, or raise the limit of the process (`ulimit -v`)"
    return OutOfMemoryError(f"there is not enough memory to {work}", place=caller(), hint=hint)


def needs_memory(work: str) -> Callable[[F], F]:
    """A public function that does `work`: where Python finds no memory in it, an OutOfMemoryError says so."""

    def wrapped(function: F) -> F:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if not _reserve:
                _keep()
            try:
                return function(*arguments, **named)
            except MemoryError as problem:
                if isinstance(problem, MorokError):
                    raise
            except SystemError as problem:
                if not _UNSAID.fullmatch(str(problem)):
                    raise
            raise no_memory(work)  # here, where nothing holds the frames of what failed any more

        return cast(F, call)

    return wrapped
