"""The `morok` command: parses a subcommand's options, loads its module to run it, and turns errors into messages and statuses."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from morok import __version__
from morok.errors import MorokError, UsageError
from morok.names import SHOWN, did_you_mean, nearest
from morok.out_of_memory import no_memory

# name -> one line of help; its options are in morok.tools.options.NAME, and morok.tools.NAME has `run(args) -> exit status`
COMMANDS: Final = {
    "prove": "prove rule files (default: the built-in rules)",
    "measure": "measure the errors of rules `within N ulp` in compiled code",
    "check": "parse, type-check and lint rule files, without a solver",
    "recheck": "put the ledger's obligations to a second solver",
    "mutate": "mutate proved rules and check that the mutants are detected",
    "attack": "search random rules for a false one that the prover calls usable",
    "fmt": "rewrite rule files in the canonical layout",
    "explain": "a rule's text, meaning and verdict; or an error code",
    "simplify": "rewrite one expression and print it",
    "run": "run a program",
    "trace": "run a program and print what each of the 22 stages did",
    "bisect": "run a program and find the first stage after which a kernel's value changes",
    "viz": "show a trace as a page",
    "docs": "write the book of rules: a folder of pages",
    "rules": "list rule groups and rules with their verdicts",
    "pipeline": "list the 22 stages",
    "config": "list every setting, its value and its source",
    "doctor": "report the machine, its backends, caches and proofs",
}

# commands that run a program, with its own arguments and errors
PROGRAMS: Final = frozenset({"run", "trace", "bisect"})


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, with the usage and a hint."""

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        raise UsageError(message, expected=usage, hint=f"see `{self.prog} --help`")


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    about = "Rewrite rules that are proved before they run, and a tensor compiler built on them."
    return f"usage: morok COMMAND ...\n\n{about}\n\ncommands:\n{rows}\n\n`morok COMMAND --help` lists its options.\n"


def _open_streams() -> None:
    """Open /dev/null in place of closed streams (`morok rules >&-`), so that output to them is no error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _parser(command: str) -> _Parser:
    """The parser of a command's options, made without loading the command."""
    from morok.tools import options  # lazy: `morok --help` needs none of it

    describe = getattr(options, command)
    about = "\n".join(line.removeprefix("    ") for line in (describe.__doc__ or "").rstrip().splitlines())
    parser = _Parser(prog=f"morok {command}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    describe(parser)
    return parser


def _report(problem: MorokError | OSError, as_json: bool) -> None:
    """Print an error, ours or the system's, on stderr; with `as_json` also as the JSON document on stdout."""
    from morok.tools import output  # lazy: `morok --help` needs none of it

    error = problem if isinstance(problem, MorokError) else output.access_error(problem)
    if as_json:
        output.emit_json({"errors": output.error_rows(error)})
    print(error, file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of the command line `argv`, by default the process's, after running it."""
    _open_streams()
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        print(_help(), end="")
        return 0 if args else 2
    if args[0] == "--version":
        print(f"morok {__version__}")
        return 0
    name = args[0]
    if name != "run" and isinstance(sys.stdout, io.TextIOWrapper):  # `run` leaves the program's output unchanged
        sys.stdout.reconfigure(errors=SHOWN)
    if name not in COMMANDS:
        said = [f"there is no command {name!r}", did_you_mean(nearest(name, COMMANDS))]
        print(f"morok: {'; '.join(filter(None, said))}\n\n{_help()}", end="", file=sys.stderr)
        return 2
    as_json = "--json" in args and name not in PROGRAMS
    try:
        options = _parser(name).parse_args(args[1:])
        as_json = getattr(options, "json", False)
        status = importlib.import_module(f"morok.tools.{name}").run(options)
        sys.stdout.flush()
        return int(status)
    except MorokError as problem:
        _report(problem, as_json)
        return 2
    except BrokenPipeError:  # the reader of our output has exited, as in `morok rules | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        if name in PROGRAMS:  # the program's own
            raise
        _report(problem, as_json and bool(problem.filename2 or problem.filename))
        return 2
    except MemoryError:
        if name in PROGRAMS:
            raise
        _report(no_memory(f"do `morok {name}`"), as_json)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
