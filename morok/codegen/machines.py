"""The target machines of code generation, and their `Target` descriptions for the pipeline."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from morok.errors import CompileError
from morok.ir.op import Op
from morok.out_of_memory import no_memory, room_for
from morok.passes.target import Target

_LIBRARY: Final = 200 << 20  # bytes of address space that LLVM needs to load: without them it ends the process
CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
# The ops that stage 18 decomposes into arithmetic (rules/target/transcendental.rules), to vectorize, equal on every machine.
TRANSCENDENTAL: Final = frozenset({Op.Exp2, Op.Exp, Op.Log2, Op.Log, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf})


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor for LLVM: its name, features and triple in LLVM's spelling."""

    cpu: str
    features: str
    triple: str

    def has(self, feature: str) -> bool:
        return f"+{feature}" in self.features.split(",")

    @property
    def is_arm(self) -> bool:
        """True for 64-bit ARM."""
        return self.triple.startswith(("aarch64", "arm64"))


def llvmlite() -> Any:
    """The package llvmlite. CompileError if LLVM's library cannot be loaded, OutOfMemoryError if there is no memory for it."""
    if "llvmlite.binding" not in sys.modules and not room_for(_LIBRARY):
        raise no_memory("load LLVM")
    try:
        import llvmlite.binding  # lazy: loads LLVM
    except (OSError, ImportError) as problem:
        hint = "check that llvmlite is installed, and that 200 MB of address space are free for its library"
        raise CompileError(f"LLVM cannot be loaded: {problem}", expected="the library of llvmlite", hint=hint) from None
    return llvmlite


def bindings() -> Any:
    """The module `llvmlite.binding`. CompileError if LLVM's library cannot be loaded."""
    return llvmlite().binding


def machine(cpu: str, features: str = "") -> Machine:
    """The processor of this name, of this machine's architecture; `features` in LLVM's spelling ("+avx2,+fma")."""
    return Machine(cpu, features, bindings().get_process_triple())


@functools.cache
def host_machine() -> Machine:
    """The processor of this machine."""
    binding = bindings()
    return Machine(binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten(), binding.get_process_triple())


def llvm_target(m: Machine) -> Target:
    """The Target for LLVM on `m`: width and number of vector registers, and available instructions."""
    avx512 = m.has("avx512f")
    if avx512:
        width, registers = 64, 32
    elif m.has("avx"):
        width, registers = 32, 16
    else:
        width, registers = 16, 32 if m.is_arm else 16
    fma = m.has("fma") or m.is_arm
    return Target(
        "LLVM",
        vector_bytes=width,
        memory_bytes=width,
        registers=registers,
        fma=fma,
        half_fma=m.has("avx512fp16"),
        ieee_extremes=m.is_arm,
        avx512=avx512,
        unsupported=TRANSCENDENTAL,
    )


@functools.cache
def host() -> Target:
    """The Target for LLVM on this machine, with the caches of its first core."""
    return replace(llvm_target(host_machine()), caches=host_caches())


def host_caches(folder: Path = CACHES) -> tuple[int, int]:
    """(L1, L2) data cache bytes of a core, from Linux's files in `folder`; the defaults of Target where there are none."""
    found = dict(enumerate(Target("LLVM").caches, 1))
    for entry in folder.glob("index*"):
        try:
            level, kind, size = [(entry / name).read_text().strip() for name in ("level", "type", "size")]
            if kind != "Instruction" and int(level) in found:
                found[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):  # another version's format
            continue
    return found[1], found[2]


# The limits common to all GPUs of compute capability 8.0 and later.
CUDA: Final = Target(
    "CUDA",
    vector_bytes=0,
    memory_bytes=16,
    registers=255,
    fma=True,
    has_local=True,
    grid_max=(2**31 - 1, 65535, 65535),
    block_max=(1024, 1024, 64),
    block_threads=1024,
    local_bytes=48 * 1024,
    buffers=480,  # parameters are limited to 4 KiB: 480 pointers of 8 bytes, the rest for run-time values
    predicated=False,
    unsupported=TRANSCENDENTAL,
)
