"""LLVM, as a compiler of IR text in this process: object code out, or an address to call.

Explicit vectors leave the middle end nothing to do, so code is generated straight from the text; only where a scalar loop
remains does LLVM's own pipeline (O2, with its vectorizer) run. The text has its addresses in the form that machines take and its
instructions in a good order, so that the passes of code generation that look for these are left out: they take a third of the
time, and kernels are as fast without. A kernel that waits for memory needs no more of them than give its values registers; where
values are multiplied and added in one instruction, the others are what keeps these from being copied about. Objects are kept on
disk by what they were made from.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from morok.codegen.llvm import half, short_loops
from morok.codegen.machines import Machine, host_machine, llvmlite
from morok.codegen.rendered import Effort
from morok.disk_cache import DiskCache
from morok.errors import CompileError
from morok.locks import COMPILER
from morok.runtime.compiling import Aside
from morok.runtime.loading import Library, link, llvm, make_room

_GENERATION: Final = "3"  # changes with the way objects are made from text
_LONG: Final = 20_000  # lines of IR from which on code is generated quickly, in a quarter of the time
_WORK: Final = 64  # bytes of memory for one of text: 45 are needed at most
# LLVM's settings as other users of it have them. The last two it has by itself, but at level 0, where they cost speed for haste.
_USUAL: Final = {
    "disable-lsr": "false",
    "disable-cgp": "false",
    "enable-misched": "true",
    "fast-isel": "false",
    "optimize-regalloc": "true",
}
# What is set otherwise meanwhile: without loop strength reduction, sinking addresses to their uses, and ordering instructions.
_SETTINGS: Final[dict[str, dict[str, str]]] = {
    "all": {},
    "code": {"disable-lsr": "true", "disable-cgp": "true", "enable-misched": "false"},
    "plain": {"enable-misched": "false"},
    "long": {"fast-isel": "true", "optimize-regalloc": "false"},
}
_LEVELS: Final = {"all": 2, "code": 1, "plain": 0, "long": 0}


@dataclass(slots=True)
class Counters:
    """The number of kernels compiled, read from disk, and found in memory, since the program began."""

    compiled: int = 0
    from_disk: int = 0
    from_memory: int = 0


COUNTERS: Final = Counters()


@dataclass(frozen=True, slots=True)
class Code:
    """Loaded machine code: valid while this object lives."""

    address: int
    size: int
    keep: Library = field(repr=False)


@functools.cache
def _machine(m: Machine, level: int) -> Any:
    target = llvm().Target.from_triple(m.triple)
    return target.create_target_machine(cpu=m.cpu, features=m.features, opt=level, reloc="pic", codemodel="default")


@functools.cache
def _pass_builder(m: Machine, level: int, middle_end: bool) -> Any:
    """LLVM's maker of passes for a machine, kept for the process: llvmlite never frees 1.5 KB of each."""
    options = llvm().create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = middle_end
    return llvm().create_pass_builder(_machine(m, level), options)


def llvm_version() -> str:
    """The version of LLVM in use: "22.1.0"."""
    return ".".join(map(str, llvm().llvm_version_info))


@functools.cache
def _versions() -> str:
    return f"{_GENERATION}/{llvmlite().__version__}/{llvm_version()}"


def digest(text: str, m: Machine, effort: Effort) -> str:
    """The key of the object made from `text`: everything that it depends on."""
    parts = (_versions(), m.triple, m.cpu, m.features, effort, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def parse(text: str) -> Any:
    """`text` as an LLVM module, verified; CompileError with LLVM's complaint."""
    with COMPILER:
        binding = llvm()
        opened = [binding.create_context()]  # types and constants stay in a context for as long as it lives
        try:
            opened.append(binding.parse_assembly(text, opened[0]))
            opened[1].verify()
        except RuntimeError as problem:
            _close(opened)
            raise CompileError(
                f"LLVM rejects the kernel: {problem}", hint="this is a mistake in Morok, not in your program"
            ) from None
        return opened[1]


def _close(opened: list[Any]) -> None:
    """Dispose of LLVM's objects, the last first."""
    while opened:
        opened.pop().close()


class _Passes:
    """LLVM's passes over one module: its middle end, or nothing but the unrolling of the loops that ask for it."""

    def __init__(self, builder: Any, middle_end: bool) -> None:
        self._builder = builder
        if middle_end:
            self._manager = builder.getModulePassManager()
        else:
            self._manager = llvm().create_new_module_pass_manager()
            self._manager.add_loop_unroll_pass()

    def run(self, module: Any) -> None:
        self._manager.run(module, self._builder)

    def close(self) -> None:
        """Free the passes, with all that they have noted of the module: 30 to 130 KB. llvmlite's `close` of a pass manager frees
        nothing: `ObjectRef._dispose`, which is empty, stands before `NewPassManager._dispose` among its bases. Another llvmlite
        may have no such method, or one that `close` calls: there `close` does what it can.
        """
        manager = self._manager
        base = getattr(getattr(llvm(), "newpassmanagers", None), "NewPassManager", None)
        dispose = getattr(base, "_dispose", None)
        if dispose is None or type(manager)._dispose is dispose:
            manager.close()
        else:
            dispose(manager)
            manager.detach()


_settings: dict[str, str] = {}


def _settle(how: str) -> None:
    """Have LLVM's settings so. They are the whole process's: another user of LLVM that comes in between gets code that is as
    right, and a little slower.
    """
    for name, value in (_USUAL | _SETTINGS[how]).items():
        if _settings.get(name) != value:
            llvm().set_option("morok", f"-{name}={value}")
            _settings[name] = value


def emit(text: str, m: Machine | None = None, effort: Effort = "code") -> bytes:
    """The object code of IR `text` for `m` (the host). "all" runs LLVM's middle end; else the loops that the text asks for are
    unrolled, and no more.
    """
    return _emission(text, m or host_machine(), effort)()


def _emission(text: str, m: Machine, effort: Effort) -> Callable[[], bytes]:
    """Read `text`, and have LLVM's settings as its code needs them; what is returned makes the code, on any thread."""
    how: str = effort
    if effort != "all" and text.count("\n") > _LONG:
        how = "long"
    elif effort == "plain" and m.is_arm:
        how = "code"  # level 0 is another code generator there
    opened: list[Any] = []  # closed when the code is made, by whoever makes it: never by a finalizer, wherever that would run
    with COMPILER:
        make_room(len(text), _WORK)
        module = parse(text)
        opened += [module._context, module]
        machine = _machine(m, _LEVELS[how])
        passes = None
        if effort == "all" or short_loops.ASKED in text:
            passes = _Passes(_pass_builder(m, _LEVELS[how], effort == "all"), effort == "all")
            opened.append(passes)
        _settle(how)

    made: list[bytes] = []

    def make() -> bytes:
        with COMPILER:
            if made:  # a forked child asks again
                return made[0]
            try:
                make_room(len(text), _WORK)
                _settle(how)  # nothing is left to do, but where another kernel has been read or made since
                if passes is not None:
                    passes.run(module)
                made.append(machine.emit_object(module))
                return made[0]
            finally:
                _settle("all")
                _close(opened)

    return make


@functools.cache
def _half_functions() -> Library:
    """The conversions that LLVM calls where the processor has none."""
    return link(emit(half.TEXT), half.NAMES, {})


def load(code: bytes, name: str, also: Sequence[str] = ()) -> Code:
    """Object code made callable: the address of the function `name`, beside which `also` are loaded. CompileError for a symbol
    nobody defines.
    """
    with COMPILER:
        imports = _half_functions().addresses if any(n.encode() in code for n in half.NAMES) else {}
        library = link(code, (name, *also), imports)
        return Code(library.addresses[name], len(code), library)


def compile_text(text: str, name: str, effort: Effort, cache: DiskCache | None, also: Sequence[str] = ()) -> Code:
    """The function `name` of IR `text` for the host, and the functions `also` beside it, from `cache` if it holds them."""
    return _begun(text, name, effort, cache, lambda work: work, also)()


def begin_text(text: str, name: str, effort: Effort, cache: DiskCache | None) -> Callable[[], Code]:
    """`compile_text`, with its code made on another thread; what is returned waits for it."""
    return _begun(text, name, effort, cache, lambda work: Aside(work, f"compile {name}").result)


def _begun(
    text: str,
    name: str,
    effort: Effort,
    cache: DiskCache | None,
    how: Callable[[Callable[[], bytes]], Callable[[], bytes]],
    also: Sequence[str] = (),
) -> Callable[[], Code]:
    key = digest(text, host_machine(), effort)
    if cache is not None and (found := cache.get(key)) is not None:
        with COMPILER:
            COUNTERS.from_disk += 1
        return functools.partial(load, found, name, also)
    emission = how(_emission(text, host_machine(), effort))

    def finish() -> Code:
        code = emission()
        with COMPILER:
            COUNTERS.compiled += 1
        if cache is not None:
            cache.put(key, code)
        return load(code, name, also)

    return finish
