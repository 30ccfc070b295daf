"""Conversations with the solver, each with a process of its own that was asked nothing before (process.py).

Where there can be no such processes, or no more of them, the solver is asked in this one, in a context of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Final, Protocol

from morok.locks import SOLVER
from morok.prove.smt import process

# seconds for an answer, beyond any limit that the solver is given: some of its steps look at no limit
PATIENCE: Final = 150.0
GRACE: Final = 2.0  # seconds in which the program ends, once nobody is left who could ask


class Died(Exception):
    """The solver's process ended, or was given up, before it answered."""


class Session(Protocol):
    """A solver that reads scripts."""

    def send(self, script: str) -> str: ...

    def close(self) -> None: ...


class _Child:
    """A conversation with a process."""

    def __init__(self, over: socket.socket) -> None:
        self.over = over
        over.settimeout(PATIENCE)
        # not `__del__`: in a circle of garbage the socket may go first, which is a ResourceWarning
        self.close = weakref.finalize(self, over.close)

    def send(self, script: str) -> str:
        try:
            process.send(self.over, script)
            said = process.receive(self.over)
        except OSError as why:
            self.close()
            raise Died(str(why)) from why
        except BaseException:  # an interrupt: nobody will read the answer
            self.close()
            raise
        if said is None:
            raise Died("the solver's process ended")
        return said


class _Server:
    """The process that is forked for conversations. Processes that are forked from this one share it."""

    control: socket.socket | None = None
    program: subprocess.Popen[bytes] | None = None  # it ends when nobody is left who could ask


_server: Final = _Server()


@functools.cache
def library() -> str:
    """The path of z3's shared library, found without loading the package."""
    found = importlib.util.find_spec("z3")
    places = [Path(p) / "lib" for p in (found.submodule_search_locations or ())] if found is not None else []
    names = ("libz3.so", "libz3.dylib", "libz3.dll")
    for file in (p / n for p in places for n in names):
        if file.exists():
            return str(file)
    from z3 import z3core  # lazy: it loads the library, from wherever it is

    return str(z3core.lib()._name)


def start() -> None:
    """Start the process that is forked for conversations, so that processes that are forked from this one share it."""
    _control()


def session() -> Session:
    """A solver that was asked nothing."""
    for _ in range(2):  # a server that is gone is started again, once
        control = _control()
        if control is None:
            break
        try:
            ours, theirs = socket.socketpair()
        except OSError:  # no more descriptors
            break
        with theirs:
            try:
                socket.send_fds(control, [b"?"], [theirs.fileno()])
                return _Child(ours)
            except OSError:
                ours.close()
                _stop(control)
    return _here().context()


@functools.cache
def _here() -> process.Library:
    return process.Library(library())


def _control() -> socket.socket | None:
    """The server's socket; None where there is none."""
    if _server.control is None and sys.executable and hasattr(socket, "send_fds") and hasattr(os, "fork"):
        with SOLVER:
            if _server.control is None:
                with contextlib.suppress(OSError):
                    _server.control = _started()
    return _server.control


def _started() -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            _server.program = subprocess.Popen(
                [sys.executable, "-I", "-S", process.__file__, str(theirs.fileno()), library()],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever asks
            )
        except BaseException:
            ours.close()
            raise
    return ours


def _stop(control: socket.socket) -> None:
    """Leave the server. In a child that was forked from its parent, the parent's socket stays open, and nobody is waited for."""
    with SOLVER:
        if _server.control is control:
            _server.control = None
            control.close()
            if _server.program is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):  # another process may still ask
                    _server.program.wait(GRACE)


@atexit.register
def _leave() -> None:
    if _server.control is not None:
        _stop(_server.control)
