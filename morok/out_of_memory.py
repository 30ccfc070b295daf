"""Lack of memory: an error of ours, wherever it was noticed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from morok.caller import caller
from morok.errors import MorokError, OutOfMemoryError

F = TypeVar("F", bound=Callable[..., Any])
# What CPython says in a SystemError where a step of its interpreter found no memory and raised nothing. Of functions that do
# so, which an extension module may have, it says something else.
_UNSAID: Final = "error return without exception set"


def no_memory(work: str) -> OutOfMemoryError:
    """The error of who finds no memory to do `work`."""
    hint = "free tensors, or raise the limit of the process (`ulimit -v`)"
    return OutOfMemoryError(f"there is not enough memory to {work}", place=caller(), hint=hint)


def needs_memory(work: str) -> Callable[[F], F]:
    """A public function that does `work`: where Python finds no memory in it, an OutOfMemoryError says so."""

    def wrapped(function: F) -> F:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except MemoryError as problem:
                if isinstance(problem, MorokError):
                    raise
            except SystemError as problem:
                if str(problem) != _UNSAID:
                    raise
                raise no_memory(work) from problem
            raise no_memory(work)

        return cast(F, call)

    return wrapped
