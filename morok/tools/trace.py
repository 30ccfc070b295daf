"""Run a program and print what each of the 22 stages did to each kernel; with --save, write every rule that fired as JSON.

What the program itself prints goes to stderr: what the stages did is alone on stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import sys

from morok import config
from morok.errors import UsageError
from morok.passes.shown import showing_on
from morok.rewrite.trace import current
from morok.tools.run import execute


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--save", metavar="FILE.json", help="also write every rule that fired")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def run(args: argparse.Namespace) -> int:
    if args.save == "":
        raise UsageError("--save names nothing", expected="a file to write")
    with config.settings(debug="ir", **({"trace": args.save} if args.save else {})):
        current()  # the file is written at the end, also of a program in which no rule fires
        with showing_on(sys.stdout), contextlib.redirect_stdout(sys.stderr):
            execute(args.file, args.args)
    return 0
