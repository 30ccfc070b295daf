"""Measurements of rules `within N ulp`: their code is compiled by LLVM and run on many operands.

Exact values come from the C library in double precision, for f64 from decimal arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from morok.accuracy import ulp
from morok.accuracy.machine_values import launched
from morok.accuracy.measured_code import BUILDS, code_digest, instructions, rendered
from morok.accuracy.record import Measurement, Worst
from morok.accuracy.subject import Subject
from morok.accuracy.switch_points import switch_points
from morok.accuracy.ulp import CHUNK, Array
from morok.codegen.machines import host, host_machine, llvmlite
from morok.ir.dtype import dtypes
from morok.ir.uop import UOp
from morok.rewrite.ruleset import RuleSet
from morok.runtime.cpu import CPUKernel
from morok.runtime.jit import compile_text, llvm_version


def _compile(listing: Sequence[UOp], name: str, build: str) -> CPUKernel:
    made = rendered(listing, name, build)
    return CPUKernel(made, compile_text(made.text, made.symbol, made.effort, None))


class Runner:
    """A runner of the rule's compiled function and of the exact one, on arrays of operands."""

    def __init__(self, s: Subject, builds: Sequence[str], rules: RuleSet | None = None) -> None:
        """A runner of `rules`, by default the subject's rule and its companions in the rule's file."""
        self.subject = s
        self.size = CHUNK
        self.rules = rules or s.rules
        self.kernels = {
            b: _compile(instructions(s, CHUNK, host(), b, self.rules), f"{s.op.name.lower()}_{b}", b) for b in builds
        }
        wide = replace(s, dtype=dtypes.f64)
        self.oracle = (
            None
            if s.dtype is dtypes.f64
            else _compile(instructions(wide, CHUNK, host(), "separate", None), f"{s.op.name.lower()}_exact", "separate")
        )

    def errors(self, bits: Sequence[Array]) -> dict[str, Array]:
        """The errors, in ulp, of each build's results for tuples of operands, given as bit patterns."""
        s = self.subject
        operands = [ulp.widened(s.dtype, b) for b in bits]
        given = operands if s.dtype is dtypes.f64 else [ulp.stored(s.dtype, b) for b in bits]
        results = {b: launched(k, self.size, s.dtype, s.dtype, given) for b, k in self.kernels.items()}
        if self.oracle is None:
            return {b: ulp.errors_of_doubles(s.op, operands, got) for b, got in results.items()}
        exact = launched(self.oracle, self.size, dtypes.f64, dtypes.f64, operands)
        return {
            b: ulp.errors(s.dtype, ulp.widened(s.dtype, got.view(bits[0].dtype)), exact) for b, got in results.items()
        }


def available_builds() -> tuple[str, ...]:
    """The builds to measure here: without FMA instructions only "separate"."""
    return BUILDS if host().fma else ("separate",)


def compiler() -> str:
    """The compiler and its target CPU, as text."""
    return f"LLVM {llvm_version()} (llvmlite {llvmlite().__version__}), {host_machine().cpu}"


def measure(
    s: Subject,
    exhaustive: bool = False,
    builds: Sequence[str] | None = None,
    done: Callable[[int], None] | None = None,
    runner: Runner | None = None,
) -> Measurement:
    """The worst errors of a rule at a dtype, over the fixed sample, or over all operands.

    builds  some of BUILDS; by default available_builds()
    done    called with the number of operands measured so far
    runner  of the rule and these builds, where there is one
    """
    code = code_digest(s)  # first, since the rule file may change during the measurement
    runner = runner or Runner(s, builds or available_builds())
    count, worst = worst_over(runner, operands(s, exhaustive), done)
    return Measurement(s.rule.own, str(s.dtype), code, count, is_everything(s, exhaustive), worst, compiler())


def worst_over(
    runner: Runner, chunks: Iterable[tuple[Array, ...]], done: Callable[[int], None] | None = None
) -> tuple[int, dict[str, Worst]]:
    """The number of operands in chunks, and the worst error over them in each build."""
    worst: dict[str, Worst] = {}
    count = 0
    for bits in chunks:
        for build, off in runner.errors(bits).items():
            at = int(off.argmax())
            if build not in worst or off[at] > worst[build].ulp:
                worst[build] = Worst(float(off[at]), tuple(int(b[at]) for b in bits))
        count += len(bits[0])
        if done is not None:
            done(count)
    return count, worst


def is_everything(s: Subject, exhaustive: bool) -> bool:
    """True if a measurement covers all operands of the dtype."""
    return s.operands == 1 and (s.dtype.bits == 16 or (exhaustive and s.dtype.bits == 32))


def operands(s: Subject, exhaustive: bool) -> Iterator[tuple[Array, ...]]:
    """The operands to measure, as bit patterns, in chunks: the fixed sample, or everything(); pairs are always a sample."""
    if s.operands == 2:
        yield from ulp.pairs(s.dtype)
        return
    chunks: Iterable[Array] = ulp.everything(s.dtype) if exhaustive else ulp.sample(s.dtype)
    for bits in chunks:
        yield (bits,)


def chosen_operands(s: Subject, rules: RuleSet) -> Iterator[tuple[Array, ...]]:
    """The operands at which a rule may do something else than elsewhere: the numbers that it names, and both sides of the
    switch points of what `rules` make; none where all are measured anyway.
    """
    if is_everything(s, False):
        return
    if s.numbers:
        yield ulp.pairs_of_numbers(s.dtype, s.numbers) if s.operands == 2 else (ulp.of_numbers(s.dtype, s.numbers, 2),)
    yield from switch_points(s, rules)
