"""Run a program, with its own arguments, as `python FILE.py` would."""

from __future__ import annotations

import argparse
import contextlib
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType

from morok.runtime.buffer import Buffer
from morok.tensor.realize import watching
from morok.tensor.scheduling import Prepared
from morok.tools.output import emit_json, existing_file


def _show(main: str, kind: type[BaseException], problem: BaseException, frames: TracebackType | None) -> None:
    """Print the program's traceback as Python does, without our frames before the program's first."""
    while frames is not None and frames.tb_frame.f_code.co_filename != main:
        frames = frames.tb_next
    traceback.print_exception(kind, problem, frames)


def execute(file: str, arguments: list[str]) -> None:
    """Run the program in this process, as its main module."""
    path = existing_file(file, "a Python program")
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    sys.excepthook = partial(_show, file)
    runpy.run_path(file, run_name="__main__")


@contextlib.contextmanager
def printing(elsewhere: bool) -> Iterator[None]:
    """A context in which stdout is redirected to stderr if `elsewhere`, to keep stdout for our document."""
    with contextlib.redirect_stdout(sys.stderr) if elsewhere else contextlib.nullcontext():
        yield


def execute_beside(args: argparse.Namespace, then: Callable[[], None]) -> None:
    """Run the program with its output on stderr; then call `then`, also if it exits by SystemExit, whose status is kept."""
    try:
        with printing(True):
            execute(args.file, args.args)
    except SystemExit:
        then()
        raise
    then()


def run(args: argparse.Namespace) -> int:
    if not args.json:
        execute(args.file, args.args)
        return 0
    kernels: list[dict[str, str]] = []

    def look(prepared: Prepared) -> Callable[[Sequence[Buffer]], None]:
        kernels.extend({"name": s.ast.arg.name, "device": prepared.device.name} for s in prepared.schedule.steps)
        return lambda memory: None

    with watching(look):
        execute_beside(args, lambda: emit_json({"file": args.file, "kernels": kernels}))
    return 0
