"""LLVM, as a compiler of IR text in this process: object code out, or an address to call.

Explicit vectors leave the middle end nothing to do, so code is generated straight from the text; only where a scalar loop
remains does LLVM's own pipeline (O2, with its vectorizer) run. The text has its addresses in the form that machines take and its
instructions in a good order, so that the passes of code generation that look for these are left out: they take a third of the
time, and kernels are as fast without. Objects are kept on disk by what they were made from.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from morok.codegen.llvm import half, unrolled
from morok.codegen.targets import Machine, host_machine
from morok.errors import CompileError
from morok.runtime.cache import DiskCache
from morok.runtime.compiling import Aside

_GENERATION: Final = "2"  # changes with the way objects are made from text
_LONG: Final = 20_000  # lines of IR from which on code is generated quickly, in a quarter of the time
# Loop strength reduction, sinking addresses to their uses, and ordering instructions: what leaves them out, and puts them back.
_LEFT_OUT: Final = (
    ("-disable-lsr=true", "-disable-lsr=false"),
    ("-disable-cgp=true", "-disable-cgp=false"),
    ("-enable-misched=false", "-enable-misched=true"),
)
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


def digest(text: str, m: Machine, optimize: bool) -> str:
    """The key of the object made from `text`: everything that it depends on."""
    parts = (_versions(), m.triple, m.cpu, m.features, str(optimize), text)
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


_are_left_out = False


def _leave_out(few: bool) -> None:
    """Leave those passes out, or put them back. LLVM's settings are the whole process's: another user of LLVM that comes in
    between gets code that is as right, and a little slower.
    """
    global _are_left_out
    with _lock:
        if few is not _are_left_out:
            for leave_out, put_back in _LEFT_OUT:
                _binding().set_option("morok", leave_out if few else put_back)
            _are_left_out = few


def emit(text: str, m: Machine | None = None, optimize: bool = False) -> bytes:
    """The object code of IR `text` for `m` (the host); `optimize` runs LLVM's middle end, else the loops that the text asks for
    are unrolled, and no more."""
    return _emission(text, m or host_machine(), optimize)()


def _emission(text: str, m: Machine, optimize: bool) -> Callable[[], bytes]:
    """Read `text`, and have LLVM's settings as its code needs them; what is returned makes the code, on any thread."""
    with _lock:
        llvm = _binding()
        module = parse(text)
        machine = _machine(m, 0 if text.count("\n") > _LONG else 2 if optimize else 1)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = optimize
        builder = llvm.create_pass_builder(machine, options)
        if optimize:
            passes = builder.getModulePassManager()
        elif unrolled.ASKED in text:
            passes = llvm.create_new_module_pass_manager()
            passes.add_loop_unroll_pass()
        else:
            passes = None
        _leave_out(not optimize)

    def make() -> bytes:
        with _lock:
            try:
                _leave_out(not optimize)  # nothing is left to do, but where another kernel has been read or made since
                if passes is not None:
                    passes.run(module, builder)
                code: bytes = machine.emit_object(module)
                return code
            finally:
                _leave_out(False)

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


def compile_text(text: str, name: str, optimize: bool, cache: DiskCache | None) -> Code:
    """The function `name` of IR `text` for the host, from `cache` if it holds it."""
    return _begun(text, name, optimize, cache, lambda work: work)()


def begin_text(text: str, name: str, optimize: bool, cache: DiskCache | None) -> Callable[[], Code]:
    """`compile_text`, with its code made on another thread; what is returned waits for it."""
    return _begun(text, name, optimize, cache, lambda work: Aside(work, f"compile {name}").result)


def _begun(
    text: str, name: str, optimize: bool, cache: DiskCache | None, how: Callable[[Callable[[], bytes]], Callable[[], bytes]]
) -> Callable[[], Code]:
    key = digest(text, host_machine(), optimize)
    if cache is not None and (found := cache.get(key)) is not None:
        with _lock:
            COUNTERS.from_disk += 1
        return functools.partial(load, found, name)
    emission = how(_emission(text, host_machine(), optimize))

    def finish() -> Code:
        code = emission()
        with _lock:
            COUNTERS.compiled += 1
        if cache is not None:
            cache.put(key, code)
        return load(code, name)

    return finish
