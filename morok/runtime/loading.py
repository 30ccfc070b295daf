"""Machine code in this process's memory: loaded from object code, and unloaded when nobody has it any more.

Of each library that is loaded, LLVM's loader keeps some 9 KB for as long as the loader lives. So a loader takes so many libraries
and no more, and goes when the last of them has gone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from morok.codegen.machines import bindings
from morok.errors import CompileError
from morok.estate import Estate, Heir
from morok.locks import COMPILER
from morok.out_of_memory import no_memory, room_for

_LIBRARIES: Final = 32  # of one loader: making one takes a millisecond, a library 0.15
_ROOM: Final = 8 << 20  # bytes that LLVM has at hand for anything it does; more by what it is given


@functools.cache
def llvm() -> Any:
    """llvmlite, ready to make code for this machine."""
    binding = bindings()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def make_room(given: int, each: int) -> None:
    """OutOfMemoryError unless LLVM will find memory to work on `given` bytes, `each` times as much: it would end the process."""
    if not room_for(_ROOM + given * each):
        raise no_memory("compile a kernel")


class Library:
    """Loaded object code, which stays as long as this object is alive: the address of each exported function by its name."""

    __slots__ = ("addresses", "__weakref__")

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self.addresses = addresses


class _Loader:
    """One of LLVM's loaders, with how many libraries it has ever had, and has now."""

    def __init__(self) -> None:
        self.engine = llvm().create_lljit_compiler()
        self.loaded = self.alive = 0

    def unload(self, tracker: Any) -> None:
        tracker.close()
        self.alive -= 1
        if self.loaded == _LIBRARIES and not self.alive:
            self.engine.close()


_loaders: list[_Loader] = []  # the one that takes more libraries, last
_dead: Final[Estate[tuple[_Loader, Any]]] = Estate()
_alive: Final[set[Heir[tuple[_Loader, Any]]]] = set()


def _unload_dead() -> None:
    for heir in _dead.taken():
        _alive.discard(heir)
        loader, tracker = heir.left
        loader.unload(tracker)


def link(code: bytes, names: Sequence[str], imports: Mapping[str, int]) -> Library:
    """Load object code that exports the functions `names`; those it calls are at the addresses `imports`, or functions of this
    process. CompileError for a symbol that nobody defines. What has died since the last call is unloaded.
    """
    with COMPILER:
        _unload_dead()
        make_room(len(code), 4)
        if not _loaders or _loaders[-1].loaded == _LIBRARIES:
            _loaders[:] = [_Loader()]
        loader = _loaders[-1]
        builder = llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in names:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        loader.loaded += 1  # a name is used once, whatever becomes of the library
        try:
            tracker = builder.link(loader.engine, f"library{loader.loaded}")
        except RuntimeError as problem:
            raise CompileError(f"the code of {', '.join(names)} cannot be loaded: {problem}") from None
        loader.alive += 1
        library = Library({name: tracker[name] for name in names})
        _alive.add(_dead.leave(library, (loader, tracker)))
        return library
