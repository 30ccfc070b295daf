"""Run a program and print what each of the 22 stages did to each kernel, and the share of firings by each verdict."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from morok import config
from morok.errors import UsageError
from morok.ir.uop import UOp
from morok.passes import pipeline
from morok.passes.listing_stream import showing_on
from morok.passes.pipeline import Program, Stage, kernel_name
from morok.passes.target import Target
from morok.rewrite.trace import Trace, current, tracing
from morok.tensor.plans import forget_kernels
from morok.tools import firings
from morok.tools.output import emit_json
from morok.tools.run import execute_beside


def run(args: argparse.Namespace) -> int:
    if args.save == "":
        raise UsageError("--save names nothing", expected="a file to write")
    with config.settings(**({} if args.json else {"debug": "ir"}), **({"trace": args.save} if args.save else {})):
        trace = current() or Trace()  # made now, so that the file is written even if no rule fires
        with tracing(trace):
            if args.json:
                forget_kernels()
                _as_document(args, trace)
            else:
                with showing_on(sys.stdout):
                    execute_beside(args, lambda: print(firings.summary(trace.firings)))
    return 0


def _as_document(args: argparse.Namespace, trace: Trace) -> None:
    """Run the program, and print a JSON document with each kernel before the stages and after each; null for no change."""
    kernels: list[dict[str, Any]] = []

    def look(target: Target, stage: Stage, before: Program, after: Program) -> None:
        if isinstance(before, UOp) and stage.number == 1:
            kernels.append({"name": kernel_name(before), "before": _text(before), "stages": []})
        text = None if after is before or after == before else _text(after)
        kernels[-1]["stages"].append({"stage": stage.number, "name": stage.name, "after": text})

    def show() -> None:
        emit_json({"file": args.file, "kernels": kernels, "firings": firings.by_verdict(trace.firings)})

    with pipeline.watching(look):
        execute_beside(args, show)


def _text(program: Program) -> str:
    return pipeline.listing(program) if isinstance(program, list) else program.tree()
