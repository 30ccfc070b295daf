"""OutOfMemoryError for every lack of memory, wherever it is noticed."""

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
# CPython's messages in a SystemError if its interpreter, or a call of a Python function, runs out of memory without an error.
# Calls of other functions are not matched: such an error may be a bug in an extension module.
_UNSAID: Final = re.compile(
    "error return without exception set|<function .* returned NULL without setting an exception"
)
# Arguments of mmap for private memory.
_OWN: Final[dict[str, Any]] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
# Reserved address space, freed before an error is made and printed, which takes memory. Its pages are never touched.
_BYTES: Final = 8 << 20
_reserve: list[mmap.mmap] = []


def _keep() -> None:
    """Reserve address space for the next error, if there is any."""
    with contextlib.suppress(OSError, MemoryError):
        _reserve.append(mmap.mmap(-1, _BYTES, **_OWN))


def _spend() -> None:
    """Free the reserved address space."""
    for kept in list(_reserve):
        kept.close()
    _reserve.clear()


def room_for(nbytes: int) -> bool:
    """True if the process can get `nbytes` more of address space."""
    try:
        mmap.mmap(-1, nbytes, **_OWN).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def no_memory(work: str) -> OutOfMemoryError:
    """The error for too little memory to do `work`; frees the reserve."""
    _spend()
    hint = "free tensors, or raise the limit of the process (`ulimit -v`)"
    return OutOfMemoryError(f"there is not enough memory to {work}", place=caller(), hint=hint)


def needs_memory(work: str) -> Callable[[F], F]:
    """A decorator for public functions that do `work`: lack of memory in them raises OutOfMemoryError."""

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
            raise no_memory(work)  # outside of `except`, where the frames of the failed call are free

        return cast(F, call)

    return wrapped
