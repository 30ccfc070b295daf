"""Turns of threads: one describes a function, or runs a plan that writes, at a time.

The function itself runs without the lock while it is described, since it may wait for another thread, which calls a jitted
function or forks the process. Other threads wait for it, as its description would see what they write, but for a second at most.

A turn defers signal handlers, as that of Ctrl-C raises between any two instructions: between a lock and the record that it is
held, or where a description begins or ends, after which all later writes would go to a description that is over. The function
itself runs with its handlers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from morok.interrupts import deferred
from morok.locks import WRITES

PATIENCE: Final = 1.0  # seconds

# functions that run to be described: the thread; set if nobody waits
_running: Final[list[tuple[int, threading.Event]]] = []


class _Turn:
    """A context in which this thread has its turn; it may be entered again inside."""

    def __enter__(self) -> None:
        deferred.__enter__()
        WRITES.__enter__()
        try:
            while (found := _others()) is not None:
                _wait(found)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        WRITES.__exit__()
        deferred.__exit__()


TURN: Final = _Turn()


def _others() -> threading.Event | None:
    """The event that ends the wait for another thread's function; None if there is no such function."""
    if not _running:
        return None
    me = threading.get_ident()
    return next((done for thread, done in list(_running) if thread != me and not done.is_set()), None)


def _wait(done: threading.Event) -> None:
    WRITES.__exit__()
    try:
        done.wait(PATIENCE)
        done.set()  # others need not wait, too
    finally:
        WRITES.__enter__()


def without_turn(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The value of a function that is described, called inside a turn: it may wait for other threads."""
    entry = threading.get_ident(), threading.Event()
    _running.append(entry)
    WRITES.__exit__()
    try:
        deferred.__exit__()  # it may call handlers, which may raise
        return function(*args, **kwargs)
    finally:
        try:
            deferred.__enter__()
        except BaseException:  # a handler has raised, and the rest of the turn is not to be interrupted again
            deferred.__enter__()
            raise
        finally:
            entry[1].set()
            WRITES.__enter__()
            _running.remove(entry)


def _forget() -> None:
    """Forget the functions of other threads, in a forked child: only the thread that forked runs there."""
    me = threading.get_ident()
    _running[:] = [entry for entry in _running if entry[0] == me]


os.register_at_fork(after_in_child=_forget)
