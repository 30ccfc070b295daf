"""Machine code in this process's memory: loaded from object code, and unloaded when its last reference is gone.

LLVM's loader keeps some 9 KB of each library for as long as the loader lives. So a loader takes a limited number of libraries,
and is closed when all of them are unloaded.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from morok.codegen.machines import bindings
from morok.errors import CompileError
from morok.locks import COMPILER
from morok.out_of_memory import no_memory, room_for
from morok.reference_queue import OwnerReference, ReferenceQueue

_LIBRARIES: Final = 32  # most libraries of one loader: making a loader takes 1 ms, loading a library 0.15 ms
_ROOM: Final = 8 << 20  # bytes that must be available for any work of LLVM, besides those for its input


@functools.cache
def llvm() -> Any:
    """llvmlite's bindings, initialized for code generation for this machine."""
    binding = bindings()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def make_room(given: int, each: int) -> None:
    """OutOfMemoryError unless there is memory for LLVM to process `given` bytes, `each` bytes for one: without, LLVM aborts."""
    if not room_for(_ROOM + given * each):
        raise no_memory("compile a kernel")


class Library:
    """Loaded object code, unloaded when this object dies: the address of each exported function by its name."""

    __slots__ = ("addresses", "__weakref__")

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self.addresses = addresses


class _Loader:
    """One of LLVM's loaders; `loaded` counts all libraries it has loaded, `alive` those not unloaded yet."""

    def __init__(self) -> None:
        # JITLink allocates a library in one piece. The older linker aborts the process where code and constants, which it
        # allocates one by one, come to lie more than 2 GB apart, as they do between large mappings of other libraries.
        self.engine = llvm().create_lljit_compiler(use_jit_link=True)
        self.loaded = self.alive = 0

    def unload(self, tracker: Any) -> None:
        tracker.close()
        self.alive -= 1
        if self.loaded == _LIBRARIES and not self.alive:
            self.engine.close()


_loaders: list[_Loader] = []  # at most one: the loader for the next library
_dead: Final[ReferenceQueue[tuple[_Loader, Any]]] = ReferenceQueue()
_alive: Final[set[OwnerReference[tuple[_Loader, Any]]]] = set()


def _unload_dead() -> None:
    for reference in _dead.drain():
        _alive.discard(reference)
        loader, tracker = reference.resource
        loader.unload(tracker)


def link(code: bytes, names: Sequence[str], imports: Mapping[str, int]) -> Library:
    """The library of object code that exports the functions `names`; functions that it calls are at the addresses `imports`, or
    functions of this process. CompileError for an undefined symbol. Also unloads the libraries that died since the last call.
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
        loader.loaded += 1  # even if linking fails: LLVM allows a library's name once
        try:
            tracker = builder.link(loader.engine, f"library{loader.loaded}")
        except RuntimeError as problem:
            raise CompileError(f"the code of {', '.join(names)} cannot be loaded: {problem}") from None
        loader.alive += 1
        library = Library({name: tracker[name] for name in names})
        _alive.add(_dead.watch(library, (loader, tracker)))
        return library
