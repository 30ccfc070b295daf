"""Run a program and print what each of the 22 stages did to each kernel; with --save, write every rule that fired as JSON.

What the program itself prints goes to stderr: what the stages did is alone on stdout. With --json it is one document: of each
kernel the program after each stage.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from morok import config
from morok.errors import UsageError
from morok.ir.uop import UOp
from morok.passes import pipeline
from morok.passes.pipeline import Program, Stage, kernel_name
from morok.passes.shown import showing_on
from morok.passes.target import Target
from morok.rewrite.trace import current
from morok.tensor.plans import forget_kernels
from morok.tools.output import emit_json
from morok.tools.run import execute, printing


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--save", metavar="FILE.json", help="also write every rule that fired")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def run(args: argparse.Namespace) -> int:
    if args.save == "":
        raise UsageError("--save names nothing", expected="a file to write")
    with config.settings(**({} if args.json else {"debug": "ir"}), **({"trace": args.save} if args.save else {})):
        current()  # the file is written at the end, also of a program in which no rule fires
        if args.json:
            forget_kernels()
            _as_document(args)
            return 0
        with showing_on(sys.stdout), printing(True):
            execute(args.file, args.args)
    return 0


def _as_document(args: argparse.Namespace) -> None:
    """Of each kernel what it was, and what each stage made of it; null where it changed nothing."""
    kernels: list[dict[str, Any]] = []

    def look(target: Target, stage: Stage, before: Program, after: Program) -> None:
        if isinstance(before, UOp) and stage.number == 1:
            kernels.append({"name": kernel_name(before), "before": _text(before), "stages": []})
        text = None if after is before or after == before else _text(after)
        kernels[-1]["stages"].append({"stage": stage.number, "name": stage.name, "after": text})

    try:
        with printing(True), pipeline.watching(look):
            execute(args.file, args.args)
    except SystemExit:  # the program says itself how it ends
        emit_json({"file": args.file, "kernels": kernels})
        raise
    emit_json({"file": args.file, "kernels": kernels})


def _text(program: Program) -> str:
    return pipeline.listing(program) if isinstance(program, list) else program.tree()
