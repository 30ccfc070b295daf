"""Modules that are imported late, inside functions, and forks.

While a thread imports a module it holds a lock of Python's that belongs to the module. In a child that is forked meanwhile the
module stays half imported, and who imports it there waits forever. So a fork waits until no other thread imports what the
compiler uses.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from _thread import get_ident

TYPE_CHECKING = False  # type checkers take it for true; importing typing would double the time of `import morok`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The top packages of what the compiler imports beside the standard library. Their imports end, and wait for no lock of its own.
_USED = ("bitwuzla", "cupy", "cvc5", "lark", "llvmlite", "ml_dtypes", "morok", "numpy", "platformdirs", "rich", "z3")
# Python's locks by the names of modules, as weak references: there is no other way to ask what is being imported.
_locks: dict[str, Any] = getattr(sys.modules[importlib._bootstrap.__name__], "_module_locks", {})

_held: list[tuple[Callable[[], None], Callable[[], None]]] = []


def hold_before_a_fork(acquire: Callable[[], None], release: Callable[[], None]) -> None:
    """Register what a fork acquires first. It is released while the fork waits for an import, which may run finalizers."""
    _held.append((acquire, release))


def _in_use() -> list[tuple[str, Any]]:
    """The locks of modules that threads import, or are about to, by their names."""
    return [(name, lock) for name, known in list(_locks.items()) if (lock := known()) is not None]


def _is_used(name: str) -> bool:
    top = name.partition(".")[0]
    return top in _USED or top in sys.stdlib_module_names


def _others_import() -> bool:
    """True if another thread is importing a module that the compiler uses."""
    me = get_ident()
    return any(_is_used(name) and lock.owner not in (None, me) for name, lock in _in_use())


def _wait() -> None:
    while True:
        held = list(_held)
        for acquire, _ in held:
            acquire()
        if not _others_import():
            return
        for _, release in held:
            release()
        time.sleep(0.001)


def _forget() -> None:
    """In a child nobody is about to import a module, and one of the compiler's that has only just begun begins again."""
    me = get_ident()
    for name, lock in _in_use():
        begun = lock.owner is not None
        if lock.owner == me or (begun and not _is_used(name)):
            continue
        del _locks[name]
        if begun and getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]


os.register_at_fork(before=_wait, after_in_child=_forget)
