"""Beam search on a device: timing of candidates, a cache of results on disk, progress on the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from morok import config
from morok.codegen.rendered import Rendered
from morok.errors import MorokError, OptError
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize import beam, heuristics
from morok.optimize.opts import Opt
from morok.optimize.scheduler import Scheduler
from morok.passes import pipeline
from morok.passes.target import KernelInfo
from morok.runtime import kernel_timing
from morok.runtime.abstract_device import Device
from morok.runtime.kernel_timing import FAILED, Timing
from morok.runtime.tuned import key, store_for

COMPILE_SECONDS: Final = 10.0  # time limit for compiling a candidate, and again for timing it
_APPLY: Final = 7  # the stage that applies optimizations


@dataclass(slots=True)
class Counters:
    """Counts since the process began: searches, results found on disk, candidates timed."""

    searches: int = 0
    remembered: int = 0
    timed: int = 0


COUNTERS: Final = Counters()


def limits() -> beam.Limits:
    """The limits of a search, from the settings."""
    return beam.Limits(
        config.BEAM.value, config.BEAM_TIMEOUT.value, config.BEAM_UPCAST_MAX.value, config.BEAM_LOCAL_MAX.value,
        not config.NO_OUTPUT_UPCAST.value,
    )  # fmt: skip


def tuned(ast: UOp, device: Device) -> UOp:
    """The kernel `ast` with the optimizations from a search, or from its result on disk; unchanged if beam search is off, the
    device cannot time kernels, or optimizations are given."""
    info = ast.arg
    if (
        not config.BEAM.value
        or config.NOOPT.value
        or config.OPTS.value
        or not device.measures
        or config.CPU_BACKEND.value != "LLVM"
        or not isinstance(info, KernelInfo)
        or info.opts is not None
    ):
        return ast
    target = device.target
    ready: Any = ast
    for stage in pipeline.STAGES[: _APPLY - 1]:
        ready = pipeline.run(stage, ready, target)
    store = store_for(target)
    name = key(ast, device.identity, target, config.code_key(), limits())
    opts = None if store is None or config.IGNORE_BEAM_CACHE.value else store.get(name)
    if opts is not None and _legal(ready, device, opts):
        COUNTERS.remembered += 1
    else:
        opts = _search(ready, device, info.name)
        if store is not None:
            store.put(name, opts)
    return UOp.new(Op.Sink, ast.src, replace(info, opts=opts))


def _legal(ready: UOp, device: Device, opts: Sequence[Opt]) -> bool:
    """True if optimizations found on disk, perhaps by an earlier version, are legal for the kernel."""
    scheduler = Scheduler(ready, device.target)
    try:
        for opt in opts:
            scheduler.apply(opt)
    except OptError:
        return False
    return True


def _search(ready: UOp, device: Device, name: str) -> tuple[Opt, ...]:
    COUNTERS.searches += 1
    first = heuristics.optimize(ready, device.target).arg.opts
    with _progress(name) as report:
        return beam.search(ready, device.target, first, Bench(ready, device).measure, limits(), report)


class Bench:
    """A timer of candidates on a device, in worker processes. Each call times candidates with equal texts once."""

    def __init__(self, ast: UOp, device: Device) -> None:
        self.device = device
        nodes = ast.toposort()
        pointers = {n.arg: n.dtype for n in nodes if n.op is Op.DefineGlobal}
        self.buffers = tuple([(d.base, d.size) for _, d in sorted(pointers.items()) if isinstance(d, PtrType)])
        self.values = {n.arg[0]: (int(n.vmin) + int(n.vmax)) // 2 for n in nodes if n.op is Op.DefineVar}
        self.settings = {s.name.lower(): s.value for s in (*config.CODE.settings, config.CACHE_DIR, config.CHECK)}
        self.settings["beam"] = 0

    def rendered(self, kernel: UOp) -> Rendered | None:
        """The rendered kernel; None if it cannot be lowered, or has too many instructions."""
        program: Any = kernel
        info = replace(kernel.arg, name="candidate")
        try:
            # the graph has its optimizations already: of the stage that applies them only the rules run
            program = pipeline.apply_groups(
                pipeline.STAGES[_APPLY - 1], UOp.new(Op.Sink, kernel.src, info), self.device.target
            )
            for stage in pipeline.STAGES[_APPLY:]:
                program = pipeline.run(stage, program, self.device.target)
            if len(program) > config.BEAM_UOPS_MAX.value:
                return None
            return self.device.render(program, info.name)
        except (MorokError, RecursionError):
            return None

    def measure(self, kernels: Sequence[UOp], best: float) -> list[float]:
        """The seconds of each kernel; FAILED for one that cannot be compiled or run. `best` is the best time so far."""
        texts = [self.rendered(k) for k in kernels]
        distinct = {r.text: r for r in texts if r is not None}
        tasks = {text: self._task(r, 0, best) for text, r in distinct.items()}
        # compiled in parallel, timed one after the other, on an otherwise idle machine
        compiled = kernel_timing.workshop.run(list(tasks.values()), max(1, config.THREADS.default))
        alive = [text for text, seconds in zip(tasks, compiled, strict=True) if seconds != FAILED]
        times = kernel_timing.workshop.run([self._task(distinct[t], config.BEAM_RUNS.value, best) for t in alive], 1)
        COUNTERS.timed += len(alive)
        found = dict(zip(alive, times, strict=True))
        return [FAILED if r is None else found.get(r.text, FAILED) for r in texts]

    def _task(self, rendered: Rendered, runs: int, best: float) -> Timing:
        return Timing(
            self.device.name,
            rendered,
            self.buffers,
            self.values,
            config.THREADS.value,
            runs,
            best,
            self.settings,
            COMPILE_SECONDS,
        )


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Callable[[beam.Progress], None]]:
    """A context with a function that shows the progress of a search on the terminal, if there is one."""
    if not sys.stderr.isatty():
        yield lambda so_far: None
        return
    from rich import console, progress  # lazy: drawn on terminals alone

    columns = (progress.SpinnerColumn(), progress.TextColumn("{task.description}"), progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{name}: searching")

        def report(so_far: beam.Progress) -> None:
            bar.update(
                task,
                description=f"{name}: round {so_far.rounds + 1}, {so_far.timed} timed, best {so_far.best * 1e6:.1f} us",
            )

        yield report
