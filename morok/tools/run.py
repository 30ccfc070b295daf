"""Run a program, with its own arguments, as `python FILE.py` would."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from functools import partial
from types import TracebackType

from morok.tools.output import existing_file


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def _show(main: str, kind: type[BaseException], problem: BaseException, frames: TracebackType | None) -> None:
    """The program's traceback as Python prints it, from the program's own first frame on."""
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


def run(args: argparse.Namespace) -> int:
    execute(args.file, args.args)
    return 0
