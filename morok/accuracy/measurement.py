"""Measurements: what a rule `within N ulp` becomes, compiled by LLVM and run over many operands.

Exact values come from the C library in double precision, for f64 from decimal arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from morok.accuracy import ulp
from morok.accuracy.measured_code import BUILDS, code_digest, instructions, rendered
from morok.accuracy.record import Measurement, Worst
from morok.accuracy.subject import Subject
from morok.accuracy.ulp import CHUNK, Array
from morok.codegen.machines import host, host_machine, llvmlite
from morok.ir.dtype import DType, dtypes
from morok.ir.uop import UOp
from morok.rewrite.ruleset import RuleSet
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import CPUKernel
from morok.runtime.device import device
from morok.runtime.jit import compile_text, llvm_version


def _compile(listing: Sequence[UOp], name: str, build: str) -> CPUKernel:
    made = rendered(listing, name, build)
    return CPUKernel(made, compile_text(made.text, made.symbol, made.effort, None))


class Runner:
    """The rule's function and the exact one, over arrays of operands."""

    def __init__(self, s: Subject, builds: Sequence[str], rules: RuleSet | None = None) -> None:
        """A runner of `rules`: the subject's own and its companions, by default those of the rule's file."""
        self.subject = s
        self.size = CHUNK
        used = rules or s.rules
        self.kernels = {b: _compile(instructions(s, CHUNK, host(), b, used), f"{s.op.name.lower()}_{b}", b) for b in builds}
        wide = replace(s, dtype=dtypes.f64)
        self.oracle = (
            None
            if s.dtype is dtypes.f64
            else _compile(instructions(wide, CHUNK, host(), "separate", None), f"{s.op.name.lower()}_exact", "separate")
        )

    def _run(self, kernel: CPUKernel, d: DType, operands: Sequence[Array]) -> Array:
        """`kernel` over up to `size` operands."""
        cpu = device("CPU")
        out = np.zeros(self.size, operands[0].dtype)
        padded = [a if len(a) == self.size else np.concatenate([a, np.zeros(self.size - len(a), a.dtype)]) for a in operands]
        kernel.launch([Buffer.wrap(cpu, a, d) for a in (out, *padded)])
        return out[: len(operands[0])]

    def errors(self, bits: Sequence[Array]) -> dict[str, Array]:
        """The error in ulp of each build's result for each tuple of operands, given as bit patterns."""
        s = self.subject
        operands = [ulp.widened(s.dtype, b) for b in bits]
        given = operands if s.dtype is dtypes.f64 else [ulp.stored(s.dtype, b) for b in bits]
        results = {b: self._run(k, s.dtype, given) for b, k in self.kernels.items()}
        if self.oracle is None:
            return {b: ulp.errors_of_doubles(s.op, operands, got) for b, got in results.items()}
        exact = self._run(self.oracle, dtypes.f64, operands)
        return {b: ulp.errors(s.dtype, ulp.widened(s.dtype, got.view(bits[0].dtype)), exact) for b, got in results.items()}


def available_builds() -> tuple[str, ...]:
    """The builds that this machine runs at full speed."""
    return BUILDS if host().fma else ("separate",)


def compiler() -> str:
    """The compiler and the machine that it compiled for."""
    return f"LLVM {llvm_version()} (llvmlite {llvmlite().__version__}), {host_machine().cpu}"


def measure(
    s: Subject, exhaustive: bool = False, builds: Sequence[str] | None = None, done: Callable[[int], None] | None = None
) -> Measurement:
    """The worst error of a rule at a dtype over the stated sample, or over everything there is.

    builds  those of BUILDS that are wanted; by default all that this machine has
    done    hears how many operands have been measured
    """
    code = code_digest(s)  # of the rules as they are now, whatever becomes of their file meanwhile
    runner = Runner(s, builds or available_builds())
    worst: dict[str, Worst] = {}
    count = 0
    for bits in operands(s, exhaustive):
        for build, off in runner.errors(bits).items():
            at = int(off.argmax())
            if build not in worst or off[at] > worst[build].ulp:
                worst[build] = Worst(float(off[at]), tuple(int(b[at]) for b in bits))
        count += len(bits[0])
        if done is not None:
            done(count)
    return Measurement(s.rule.own, str(s.dtype), code, count, is_everything(s, exhaustive), worst, compiler())


def is_everything(s: Subject, exhaustive: bool) -> bool:
    """True if a measurement tries every operand that there is."""
    return s.operands == 1 and (s.dtype.bits == 16 or (exhaustive and s.dtype.bits == 32))


def operands(s: Subject, exhaustive: bool) -> Iterator[tuple[Array, ...]]:
    """The operands to try, as bit patterns, in chunks: everything there is, or the stated sample."""
    if s.operands == 2:
        yield from ulp.pairs(s.dtype)
        return
    chunks: Iterable[Array] = ulp.everything(s.dtype) if exhaustive else ulp.sample(s.dtype)
    for bits in chunks:
        yield (bits,)
