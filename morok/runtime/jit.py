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
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from morok.codegen.llvm import half, unrolled
from morok.codegen.rendered import Effort
from morok.codegen.targets import Machine, host_machine
from morok.errors import CompileError
from morok.runtime.cache import DiskCache
from morok.runtime.compiling import Aside

_GENERATION: Final = "3"  # changes with the way objects are made from text
_LONG: Final = 20_000  # lines of IR from which on code is generated quickly, in a quarter of the time
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
_lock: Final = threading.RLock()


@dataclass(slots=True)
class Counters:
    """How often kernels were compiled, read from disk, and found in memory, since the program began."""

    compiled: int = 0
    from_disk: int = 0
    from_memory: int = 0


COUNTERS: Final = Counters()


@dataclass(frozen=True, slots=True)
class Code:
    """Loaded machine code: valid while this object lives."""

    address: int
    size: int
    keep: Any = field(repr=False)


@functools.cache
def _binding() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def _machine(m: Machine, level: int) -> Any:
    target = _binding().Target.from_triple(m.triple)
    return target.create_target_machine(cpu=m.cpu, features=m.features, opt=level, reloc="pic", codemodel="default")


@functools.cache
def _jit() -> Any:
    return _binding().create_lljit_compiler()


def llvm_version() -> str:
    """The version of LLVM in use: "22.1.0"."""
    return ".".join(map(str, _binding().llvm_version_info))


@functools.cache
def _versions() -> str:
    import llvmlite

    return f"{_GENERATION}/{llvmlite.__version__}/{llvm_version()}"


def digest(text: str, m: Machine, effort: Effort) -> str:
    """The key of the object made from `text`: everything that it depends on."""
    parts = (_versions(), m.triple, m.cpu, m.features, effort, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def parse(text: str) -> Any:
    """`text` as an LLVM module, verified; CompileError with LLVM's complaint."""
    try:
        module = _binding().parse_assembly(text)
        module.verify()
    except RuntimeError as problem:
        raise CompileError(
            f"LLVM rejects the kernel: {problem}", hint="this is a mistake in Morok, not in your program"
        ) from None
    return module


_settings: dict[str, str] = {}


def _settle(how: str) -> None:
    """Have LLVM's settings so. They are the whole process's: another user of LLVM that comes in between gets code that is as
    right, and a little slower.
    """
    with _lock:
        for name, value in (_USUAL | _SETTINGS[how]).items():
            if _settings.get(name) != value:
                _binding().set_option("morok", f"-{name}={value}")
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
    with _lock:
        llvm = _binding()
        module = parse(text)
        machine = _machine(m, _LEVELS[how])
        passes = builder = None
        if effort == "all" or unrolled.ASKED in text:
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.slp_vectorization = effort == "all"
            builder = llvm.create_pass_builder(machine, options)
            if effort == "all":
                passes = builder.getModulePassManager()
            else:
                passes = llvm.create_new_module_pass_manager()
                passes.add_loop_unroll_pass()
        _settle(how)

    def make() -> bytes:
        with _lock:
            try:
                _settle(how)  # nothing is left to do, but where another kernel has been read or made since
                if passes is not None:
                    passes.run(module, builder)
                code: bytes = machine.emit_object(module)
                return code
            finally:
                _settle("all")

    return make


_loaded = 0


def _link(code: bytes, names: Sequence[str], imports: Mapping[str, int]) -> Any:
    """Load object code; what keeps it alive, and gives the addresses of `names`."""
    global _loaded
    _loaded += 1
    builder = _binding().JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        builder.export_symbol(name)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    try:
        return builder.link(_jit(), f"kernel{_loaded}")
    except RuntimeError as problem:
        raise CompileError(f"the code of {', '.join(names)} cannot be loaded: {problem}") from None


@functools.cache
def _half_functions() -> tuple[Mapping[str, int], Any]:
    """The conversions that LLVM calls where the processor has none, and what keeps them alive."""
    tracker = _link(emit(half.TEXT), half.NAMES, {})
    return {name: tracker[name] for name in half.NAMES}, tracker


def load(code: bytes, name: str) -> Code:
    """Object code made callable: the address of the function `name`. CompileError for a symbol nobody defines."""
    with _lock:
        imports = _half_functions()[0] if any(n.encode() in code for n in half.NAMES) else {}
        tracker = _link(code, (name,), imports)
        return Code(tracker[name], len(code), tracker)


def compile_text(text: str, name: str, effort: Effort, cache: DiskCache | None) -> Code:
    """The function `name` of IR `text` for the host, from `cache` if it holds it."""
    return _begun(text, name, effort, cache, lambda work: work)()


def begin_text(text: str, name: str, effort: Effort, cache: DiskCache | None) -> Callable[[], Code]:
    """`compile_text`, with its code made on another thread; what is returned waits for it."""
    return _begun(text, name, effort, cache, lambda work: Aside(work, f"compile {name}").result)


def _begun(
    text: str, name: str, effort: Effort, cache: DiskCache | None, how: Callable[[Callable[[], bytes]], Callable[[], bytes]]
) -> Callable[[], Code]:
    key = digest(text, host_machine(), effort)
    if cache is not None and (found := cache.get(key)) is not None:
        with _lock:
            COUNTERS.from_disk += 1
        return functools.partial(load, found, name)
    emission = how(_emission(text, host_machine(), effort))

    def finish() -> Code:
        code = emission()
        with _lock:
            COUNTERS.compiled += 1
        if cache is not None:
            cache.put(key, code)
        return load(code, name)

    return finish
