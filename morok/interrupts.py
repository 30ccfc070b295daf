"""Signals that wait: no handler of the program runs while something is half done.

Python calls a signal's handler between any two instructions of the main thread, and that of Ctrl-C raises there: inside LLVM's
library, within a lock, or when a kernel has written and nobody has noted it yet. What must not be cut in two runs in
`with deferred:`. A signal that arrives meanwhile is noted, and its handler is called by the next `check()`, or at the end of the
block. The program's own handlers are in place again after the block, and while one of them is called: it may compute tensors too.

Only handlers written in Python wait. Other threads never run any; nothing changes for them.
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

# A fault of the processor is handled where it occurs; of the last two there are no handlers.
_NEVER: Final = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGKILL", "SIGSTOP"}
_SIGNALS: Final = tuple(sorted(int(s) for s in signal.valid_signals() if getattr(s, "name", "") not in _NEVER))
try:  # `signal` makes enumerations of what these return: 25 to 40 us for all signals, of 160 that a small `realize` takes
    _fast: ModuleType = importlib.import_module("_signal")
except ImportError:
    _fast = signal
_handler_of: Final[Callable[[int], Any]] = _fast.getsignal
_set_handler: Final[Callable[[int, Any], Any]] = _fast.signal

waiting: Final[dict[int, FrameType | None]] = {}  # signals that have arrived, and what ran then. Not empty: call `check`
_withheld: Final[dict[int, Handler]] = {}  # the program's handlers, in whose places `_note` is


def _note(number: int, frame: FrameType | None) -> None:
    """The handler of every signal inside a block."""
    if deferred.depth:
        waiting[number] = frame
    elif (handler := _withheld.get(number)) is not None:  # the block has not begun yet
        handler(number, frame)


def _withhold() -> None:
    for number in _SIGNALS:
        handler = _handler_of(number)
        if callable(handler) and handler is not _note:
            _withheld[number] = handler
            _set_handler(number, _note)  # calls the handlers of what has arrived before


def _put_back() -> None:
    """Put all handlers back, also where one of them is called, and raises, before the last is in its place."""
    while _withheld:
        number, handler = next(iter(_withheld.items()))
        try:
            if _handler_of(number) is _note:  # the program may have set another one in the meantime
                _set_handler(number, handler)
            _withheld.pop(number, None)
        except BaseException:
            _put_back()
            raise


def _call_waiting() -> None:
    """Call the handlers of all signals that have arrived, also where one of them raises."""
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
    """`with deferred:`, in any function and inside each other. There is one of these.

    depth  of blocks that the main thread is in
    owner  the main thread's identity, while it is in one
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
        """Leave all blocks, and call the handlers that wait."""
        try:
            _put_back()
        finally:
            self.depth = 0
            _call_waiting()

    def interrupt(self) -> None:
        """Leave all blocks for as long as the handlers that wait are called."""
        depth = self.depth
        try:
            self.end()
        finally:
            self.__enter__()
            if self.depth:
                self.depth = depth


deferred: Final = _Deferred()


def check() -> None:
    """Call the handlers of the signals that have arrived: for a place where nothing is half done. They may raise."""
    if waiting and get_ident() == main_thread().ident:
        if deferred.depth:
            deferred.interrupt()
        else:
            _call_waiting()


def _in_child() -> None:
    """A new state in a forked child: the signals that arrived are the parent's. A child of a thread that was not in the block has
    that thread as its main one.
    """
    waiting.clear()
    if deferred.depth and deferred.owner != get_ident():
        deferred.depth = 0
        _put_back()


os.register_at_fork(after_in_child=_in_child)
