"""A program that answers SMT-LIB: it loads the solver once, asks it nothing, and is forked for every conversation.

So a question costs the same whatever was asked before, by whomever, and one that crashes the solver or has to be given up costs a
process that nobody needs. It is run by file, imports the standard library alone, and uses the C interface of z3's library:

    python process.py CONTROL LIBRARY

CONTROL is the descriptor of a socket. Each byte that comes with a descriptor opens a conversation over that: messages of a length
(4 bytes) and a text, a script there and what the solver prints back. It ends with the other end of its socket.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
import threading

_LENGTH = struct.Struct("!I")
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint)
# an error is in what the solver prints; left alone it ends the process
_PRINTED = _HANDLER(lambda context, error: None)


class Library:
    """z3's shared library."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        for name, arguments, result in (
            ("Z3_mk_config", (), ctypes.c_void_p),
            ("Z3_mk_context", (ctypes.c_void_p,), ctypes.c_void_p),
            ("Z3_del_context", (ctypes.c_void_p,), None),
            ("Z3_set_error_handler", (ctypes.c_void_p, _HANDLER), None),
            ("Z3_eval_smtlib2_string", (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_char_p),
        ):
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, result

    def context(self) -> Context:
        return Context(self)


class Context:
    """A solver that has been asked nothing."""

    def __init__(self, of: Library) -> None:
        self.library = of.library
        self.at: int | None = self.library.Z3_mk_context(self.library.Z3_mk_config())
        self.library.Z3_set_error_handler(self.at, _PRINTED)

    def send(self, script: str) -> str:
        """The output of the solver when it reads a script."""
        said: bytes = self.library.Z3_eval_smtlib2_string(self.at, script.encode())
        return said.decode()

    def close(self) -> None:
        if self.at is not None:
            self.library.Z3_del_context(self.at)
            self.at = None


def send(to: socket.socket, text: str) -> None:
    said = text.encode()
    to.sendall(_LENGTH.pack(len(said)) + said)


def receive(of: socket.socket) -> str | None:
    """The next message; None where the other end is closed."""
    head = _exactly(of, _LENGTH.size)
    said = None if head is None else _exactly(of, _LENGTH.unpack(head)[0])
    return None if said is None else said.decode()


def _exactly(of: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = of.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def converse(over: socket.socket, context: Context) -> None:
    """Answer scripts until the other end is closed, and then stop whatever the solver is doing."""

    def answer(script: str) -> None:
        with contextlib.suppress(OSError):
            send(over, context.send(script))

    with contextlib.suppress(OSError):  # the other end was closed before it had read an answer
        while (script := receive(over)) is not None:
            # the next script comes after its answer
            threading.Thread(target=answer, args=(script,), daemon=True).start()


def serve(control: socket.socket, context: Context) -> None:
    """Fork for each conversation that is asked for, until nobody is left who could ask."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
    context.send("")  # makes the tables of the language's names, once for all children: a millisecond of each
    while True:
        asked, given, _, _ = socket.recv_fds(control, 1, 1)
        if not asked:
            return
        for descriptor in given:
            if _forked() == 0:
                try:
                    control.close()
                    converse(socket.socket(fileno=descriptor), context)
                finally:
                    os._exit(0)
            os.close(descriptor)


def _forked() -> int:
    """The result of `os.fork`; -1 where there are no more processes: the conversation is then closed, which says it."""
    try:
        return os.fork()
    except OSError:
        return -1


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), Library(sys.argv[2]).context())
