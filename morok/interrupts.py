"""Deferred signals: no handler of the program runs inside a critical section.

Python calls a signal's handler between any two instructions of the main thread, and that of Ctrl-C raises there: inside LLVM's
library, within a lock, or between a kernel's writes and the update of the graphs. Critical sections are blocks of
`with deferred:`. A signal that arrives in one is recorded, and its handler is called by the next `check()`, or at the end of the
block. The program's own handlers are restored after the block, and while one of them is called: it may compute tensors too.

Only handlers written in Python are deferred. Other threads never run handlers, and are not affected.
"""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from threading import get_ident, main_thread
from types import FrameType, ModuleType
from typing import Any, Final

Handler = Callable[[int, FrameType | None], Any]

# Faults of the processor must be handled where they occur; the last two signals cannot have handlers.
_NEVER: Final = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGKILL", "SIGSTOP"}
_SIGNALS: Final = tuple(sorted(int(s) for s in signal.valid_signals() if getattr(s, "name", "") not in _NEVER))
try:  # `signal` converts results to enumerations: 25 to 40 us for all signals, of 160 us for a small `realize`
    _fast: ModuleType = importlib.import_module("_signal")
except ImportError:
    _fast = signal
_handler_of: Final[Callable[[int], Any]] = _fast.getsignal
_set_handler: Final[Callable[[int, Any], Any]] = _fast.signal

# recorded signals, with the interrupted frame; if not empty, call `check`
waiting: Final[dict[int, FrameType | None]] = {}
_withheld: Final[dict[int, Handler]] = {}  # the program's handlers, replaced by `_note`


def _note(number: int, frame: FrameType | None) -> None:
    """Record a signal: the handler of all signals inside a block."""
    if deferred.depth:
        waiting[number] = frame
    elif (handler := _withheld.get(number)) is not None:  # the block has not begun yet
        handler(number, frame)


def _withhold() -> None:
    for number in _SIGNALS:
        handler = _handler_of(number)
        if callable(handler) and handler is not _note:
            _withheld[number] = handler
            _set_handler(number, _note)  # runs handlers of signals that arrived before


def _put_back() -> None:
    """Restore all handlers, even if one of them is called meanwhile and raises."""
    while _withheld:
        number, handler = next(iter(_withheld.items()))
        try:
            if _handler_of(number) is _note:  # else the program has set another handler in the meantime
                _set_handler(number, handler)
            _withheld.pop(number, None)
        except BaseException:
            _put_back()
            raise


def _call_waiting() -> None:
    """Call the handlers of all recorded signals, even if one of them raises."""
    while waiting:
        number, frame = waiting.popitem()
        handler = _handler_of(number)
        if callable(handler):
            try:
                handler(number, frame)
            except BaseException:
                _call_waiting()
                raise


class _Deferred:
    """The context manager of `with deferred:`, which may be nested. There is one instance.

    depth  the number of nested blocks of the main thread
    owner  the main thread's identity, inside a block
    """

    __slots__ = ("depth", "owner")

    def __init__(self) -> None:
        self.depth = 0
        self.owner = 0

    def __enter__(self) -> None:
        me = get_ident()
        if self.depth:
            if me == self.owner:
                self.depth += 1
        elif me == main_thread().ident:
            try:
                _withhold()
                self.owner = me
                self.depth = 1
            except BaseException:
                _put_back()
                raise

    def __exit__(self, *_: object) -> None:
        if self.depth > 1:
            if get_ident() == self.owner:
                self.depth -= 1
        elif self.depth and get_ident() == self.owner:
            self.end()

    def end(self) -> None:
        """Leave all blocks, and call the handlers of recorded signals."""
        try:
            _put_back()
        finally:
            self.depth = 0
            _call_waiting()

    def interrupt(self) -> None:
        """Leave all blocks, call the handlers of recorded signals, and enter the blocks again."""
        depth = self.depth
        try:
            self.end()
        finally:
            self.__enter__()
            if self.depth:
                self.depth = depth


deferred: Final = _Deferred()


def check() -> None:
    """Call the handlers of recorded signals, at a consistent point inside a block. They may raise."""
    if waiting and get_ident() == main_thread().ident:
        if deferred.depth:
            deferred.interrupt()
        else:
            _call_waiting()


def _in_child() -> None:
    """Reset the state in a forked child: recorded signals belong to the parent. If the forking thread was not in a block, it is
    the child's main thread, and in none.
    """
    waiting.clear()
    if deferred.depth and deferred.owner != get_ident():
        deferred.depth = 0
        _put_back()


os.register_at_fork(after_in_child=_in_child)
