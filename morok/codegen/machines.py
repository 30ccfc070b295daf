"""The machines that code is generated for, as the pipeline sees them."""

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

_LIBRARY: Final = 200 << 20  # bytes of addresses that LLVM takes as it is loaded: it ends the process if it does not get them
CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
# What stage 18 writes as arithmetic (rules/target/transcendental.rules), so that it vectorizes, and is the same on every machine.
TRANSCENDENTAL: Final = frozenset({Op.Exp2, Op.Exp, Op.Log2, Op.Log, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf})


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor that LLVM compiles for: its name and features, as LLVM spells them, and its triple."""

    cpu: str
    features: str
    triple: str

    def has(self, feature: str) -> bool:
        return f"+{feature}" in self.features.split(",")

    @property
    def is_arm(self) -> bool:
        """64-bit ARM."""
        return self.triple.startswith(("aarch64", "arm64"))


def llvmlite() -> Any:
    """The package that binds LLVM. CompileError where LLVM's library cannot be loaded, OutOfMemoryError if it would not fit."""
    if "llvmlite.binding" not in sys.modules and not room_for(_LIBRARY):
        raise no_memory("load LLVM")
    try:
        import llvmlite.binding  # lazy: loads LLVM
    except (OSError, ImportError) as problem:
        hint = "is llvmlite installed, and is there memory for its library? it takes some 200 MB of addresses"
        raise CompileError(f"LLVM cannot be loaded: {problem}", expected="the library of llvmlite", hint=hint) from None
    return llvmlite


def bindings() -> Any:
    """LLVM's functions. CompileError where its library cannot be loaded."""
    return llvmlite().binding


def machine(cpu: str, features: str = "") -> Machine:
    """A processor of this machine's architecture by name; `features` in LLVM's spelling ("+avx2,+fma")."""
    return Machine(cpu, features, bindings().get_process_triple())


@functools.cache
def host_machine() -> Machine:
    """The processor that this program runs on."""
    binding = bindings()
    return Machine(binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten(), binding.get_process_triple())


def llvm_target(m: Machine) -> Target:
    """The abilities of LLVM on `m`: the width and the number of its vector registers, and what is one instruction."""
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
    """LLVM on this machine, with the caches of its first core."""
    return replace(llvm_target(host_machine()), caches=host_caches())


def host_caches(folder: Path = CACHES) -> tuple[int, int]:
    """Bytes of a core's first data cache and of its second one, as Linux says in `folder`; else of a common processor."""
    found = dict(enumerate(Target("LLVM").caches, 1))
    for entry in folder.glob("index*"):
        try:
            level, kind, size = [(entry / name).read_text().strip() for name in ("level", "type", "size")]
            if kind != "Instruction" and int(level) in found:
                found[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):  # another kernel's format
            continue
    return found[1], found[2]


# Compute capability 8.0 and later: limits that every such GPU has.
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
    buffers=480,  # parameters take 4 KiB: pointers of 8 bytes, and room for run-time values
    predicated=False,
    unsupported=TRANSCENDENTAL,
)
