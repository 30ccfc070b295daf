"""The options and `--help` text of each command: one function for each, with its name. It loads no command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from morok.tools.output import at_least, more_than_none

FORMATS: Final = ("text", "json", "jsonl", "junit", "sarif", "github")  # of `morok prove`
ATTACK_RULES: Final = 1000
MUTANTS: Final = 120
ITERATIONS: Final = 20_000  # most iterations of a kernel that `morok bisect` interprets


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _rule_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)"
    )


def prove(parser: argparse.ArgumentParser) -> None:
    """Prove rule files or folders of them (default: the built-in rules).

    Exit status: 0 every rule is usable; 1 some rule is refuted, can never fire, or relies on a contract that is false; 2 usage,
    parse or type error; 3 none of these, but some verdict is unknown, or contracts are untested; 4 an internal error. With
    --compare also 1 if a verdict, its scope, the solver's resources or the obligations differ from the ledger.

    A mistake in a rule file affects only the rules that contain it. Every format lists the mistakes, with line and column, and
    the files; `jsonl` has one line for each rule as soon as it is decided, and a summary as the last line.
    """
    _rule_paths(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document; the same as --format json")
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="F[=FILE]",
        help=f"{', '.join(FORMATS)}; with =FILE into a file; repeatable",
    )
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="worker processes (default: one a core)")
    parser.add_argument(
        "--budget", type=at_least(1), metavar="UNITS", help="solver resource units an obligation; deterministic"
    )
    parser.add_argument("--no-cache", action="store_true", help="prove everything anew")
    parser.add_argument("--write", action="store_true", help="record the verdicts in the ledger")
    parser.add_argument(
        "--compare", action="store_true", help="prove everything anew; exit 1 if the results differ from the ledger"
    )
    parser.add_argument(
        "--frozen", action="store_true", help="ask no solver: exit 3 if the ledger has no record of a rule"
    )
    parser.add_argument(
        "--rule-limit", type=more_than_none, metavar="S", help="seconds a rule: `unknown` beyond, not recorded"
    )
    parser.add_argument(
        "--time-limit",
        type=more_than_none,
        metavar="S",
        help="seconds for all rules, with reading: the rest are `unknown`",
    )
    parser.add_argument("--smt2", metavar="DIR", help="write the obligations as SMT-LIB, one file a rule")
    parser.add_argument("--bounds", action="store_true", help="prove the transfer functions of the ops' bounds instead")
    parser.add_argument(
        "--trust-helpers", action="store_true", help="run the Python helpers of packs to test their contracts"
    )
    parser.add_argument("--only", metavar="GLOB", help="only rules whose name matches")


def measure(parser: argparse.ArgumentParser) -> None:
    """Measure the rules `within N ulp` (default: the built-in ones): run their results, and compare with exact values.

    Without --all a fixed sample is measured: all operands of 16 bits; every 4093rd operand of f32, and more in the range of most
    programs; thousands of f64. With --all every f32 operand, which takes minutes for each rule, and more of f64. The result is
    compared with the rule's promise, and with the record of its current code.

    Exit status: 0 every rule keeps its promise; 1 some do not, or differ from their record; 2 usage, parse or type error.
    """
    _rule_paths(parser)
    parser.add_argument("--only", metavar="GLOB", default="*", help="only rules whose name matches")
    parser.add_argument("--dtype", metavar="D", help="only this dtype")
    parser.add_argument("--all", action="store_true", help="every operand, not a sample")
    parser.add_argument("--write", action="store_true", help="record the measurements beside the ledger")
    _json(parser)


def check(parser: argparse.ArgumentParser) -> None:
    """Parse, type-check and lint rule files, and run their examples, without a solver.

    With --strict a solver also looks for guards without effect, rules that can never apply, and groups that may not terminate;
    its findings are cached until the file changes.

    A mistake affects only its own rule: other rules of the file are linted, and their examples run.

    Exit status: 0 fine; 2 a mistake in a rule file; 1 lint findings, with --strict.
    """
    _rule_paths(parser)
    parser.add_argument("--strict", action="store_true", help="ask the solver too; lint findings are errors")
    parser.add_argument("--trust-helpers", action="store_true", help="run the Python helpers that examples call")
    _json(parser)


def recheck(parser: argparse.ArgumentParser) -> None:
    """Put the obligations of rules (default: the built-in rules) to a second solver: bitwuzla for bit vectors and floats, cvc5
    for integers.

    The obligations come from proving the rules again, or from a folder written by `morok prove --smt2 DIR`, and are compared
    with their digests in the ledger: of a pack, in its own, which `morok prove --write` makes.

    Exit status: 0 no solver disagrees; 1 some obligation has a counterexample, a rule's obligations differ from the digest in
    the ledger, or the ledger or the folder has none; 2 usage, parse or type error.
    """
    _rule_paths(parser)
    parser.add_argument("--sample", type=at_least(1), metavar="N", help="only N obligations, chosen by --seed")
    parser.add_argument("--seed", default="0", metavar="TEXT")
    parser.add_argument("--limit", type=at_least(1), metavar="MS", help="milliseconds an obligation (default: 500)")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes")
    parser.add_argument("--smt2", metavar="DIR", help="the obligations, as `morok prove --smt2 DIR` wrote them")
    _json(parser)


def mutate(parser: argparse.ArgumentParser) -> None:
    """Mutate rules, each in one place, and check that evaluation at 8 bits, the prover, or measuring detects the mutants.

    Without --all: every mutant of the rules that differ from their record in proofs/mutants.json, and a sample of the mutants of
    other rules, whose outcomes must be as recorded. With --write the results of an interrupted run are kept.

    Exit status: 0 no findings; 1 a guard that could be weaker, without a reason in proofs/guards.json; a mutant that is true for
    the prover and false in evaluation; a mutant that terminated the prover; or an outcome that differs from the record; 2 usage,
    parse or type error.
    """
    _rule_paths(parser)
    parser.add_argument("--all", action="store_true", help="every mutant of every rule")
    parser.add_argument("--only", metavar="GLOB", help="only rules whose name matches")
    parser.add_argument(
        "--sample",
        type=at_least(0),
        default=MUTANTS,
        metavar="N",
        help=f"mutants of unchanged rules (default: {MUTANTS})",
    )
    parser.add_argument("--seed", metavar="TEXT", help="chooses the sample (default: the rules themselves)")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes")
    parser.add_argument(
        "--write", action="store_true", help="record the outcomes of rules whose mutants are all judged"
    )
    _json(parser)


def attack(parser: argparse.ArgumentParser) -> None:
    """Fuzz the prover: random rules are judged by the prover, fired by their matchers, and both sides evaluated.

    Equal seeds give equal rules and equal findings. A finding is a usable rule, by the prover's verdict, that changes a value.
    It is minimized, and printed as a rule with a graph and values as the counterexample. Ctrl-C prints the summary.

    Exit status: 0 no finding; 1 findings, or with --quotas a feature in too few rules; 2 usage error.
    """
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="chooses the rules (default: 0)")
    parser.add_argument(
        "--rules", type=at_least(1), metavar="N", help=f"rules to try (default: {ATTACK_RULES}, without --time)"
    )
    parser.add_argument("--time", type=at_least(1), metavar="SECONDS", help="start no rule after this time")
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="worker processes (default: one a core)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="add the findings to a .rules file of rules that must not fire"
    )
    parser.add_argument(
        "--quotas",
        action="store_true",
        help="fail if an op, function, dtype or class is in fewer than 100 of 100,000 rules",
    )


def fmt(parser: argparse.ArgumentParser) -> None:
    """Rewrite rule files in the canonical layout. With --check, only say which would change.

    Exit status: 0 nothing to change (or changed); 1 with --check, something would change; 2 a file does not parse.
    """
    parser.add_argument("paths", nargs="+", metavar="PATH", help=".rules files or folders")
    parser.add_argument("--check", action="store_true", help="change nothing")
    _json(parser)


def explain(parser: argparse.ArgumentParser) -> None:
    """Explain a rule: its text and meaning, its verdict and scope, the premises of its proof, the laws that prove it for all
    sizes, and the stages that run it; or an error code.

    morok explain add_zero
    morok explain movement.permute --smt2
    morok explain shifts.halve --rules shifts.rules
    morok explain MRK201

    Exit status: 0; 2 for an unknown rule or code.
    """
    parser.add_argument("what", metavar="RULE|CODE", help="group.rule, a rule's own name, or a code such as MRK201")
    parser.add_argument(
        "--rules", nargs="+", default=[], metavar="PATH", help="where the rule is (default: the built-in rules)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--smt2", action="store_true", help="print the obligations of its proof, as SMT-LIB")
    form.add_argument("--json", action="store_true", help="print one JSON document")


def simplify(parser: argparse.ArgumentParser) -> None:
    """Rewrite one expression with the symbolic rules, or with other rule files, and print it.

    morok simplify 'Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)'
    """
    parser.add_argument("expression", metavar="EXPR", help="in the notation of rules")
    parser.add_argument("--rules", nargs="+", metavar="PATH", help="rewrite with these files instead (proved first)")
    parser.add_argument(
        "--trust-helpers", action="store_true", help="test the Python helpers of these files, and use them"
    )
    parser.add_argument("--trace", action="store_true", help="print every rule that fires")
    _json(parser)


def run(parser: argparse.ArgumentParser) -> None:
    """Run a program, with its own arguments, as `python FILE.py` would.

    With --json one document lists the kernels that ran, and the program's output goes to stderr.
    """
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document; what the program prints goes to stderr"
    )
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def trace(parser: argparse.ArgumentParser) -> None:
    """Run a program and print what each of the 22 stages did to each kernel, and the share of firings by each verdict; with
    --save, write every firing as JSON.

    The program's own output goes to stderr. With --json stdout is one document: each kernel after each stage, and the number of
    firings for each verdict.
    """
    parser.add_argument("--save", metavar="FILE.json", help="also write every rule that fired")
    _json(parser)
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def bisect(parser: argparse.ArgumentParser) -> None:
    """Find the first stage after which a kernel's value changes, and the rule or algorithm that changed it.

    The program runs as usual; then the interpreter runs each of its kernels before the first stage and after every stage, on the
    same random numbers, and the stored values are compared: integers and bools exactly, floats with a tolerance for the order of
    sums. If no stage changes a value, the machine runs the kernel on these numbers too, to test code generation.

    With --expect REF.npy the program's own numbers are used: the last result of the same size as the array in that file is
    compared with it, as computed by the scheduled kernels, by the kernels after each stage, and by the machine.

    Exit status: 0 no kernel's value changes; 1 one does; 2 usage.
    """
    parser.add_argument(
        "--limit",
        type=at_least(1),
        default=ITERATIONS,
        metavar="N",
        help=f"skip kernels of more iterations (default: {ITERATIONS})",
    )
    parser.add_argument("--expect", metavar="REF.npy", help="the expected result; may also follow FILE.py")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document; what the program prints goes to stderr"
    )
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def viz(parser: argparse.ArgumentParser) -> None:
    """Show a trace as a page: the firings by stage, with the nodes before and after each.

    MOROK_TRACE=out.json python program.py    # or `morok trace --save out.json program.py`
    morok viz out.json                        # writes out.html, one file that needs no network

    Exit status: 0; 2 if the file is no trace.
    """
    parser.add_argument("trace", metavar="TRACE.json")
    parser.add_argument("--out", metavar="FILE.html", help="the page to write (default: beside the trace)")
    parser.add_argument("--json", action="store_true", help="print one JSON document: the numbers of firings")


def docs(parser: argparse.ArgumentParser) -> None:
    """Write the book of rules: a folder of pages with each rule's text, meaning, verdict, source, and an example of it firing.

    morok docs                         # the built-in rules, into the folder `book`
    morok docs my.rules --out pages    # your own rules; unproved ones are marked
    morok docs --guide docs            # the generated parts of the guide's pages: the stages, the ops, a real trace

    Open index.html in a browser. The pages need no network; equal rules give equal bytes.
    """
    _rule_paths(parser)
    parser.add_argument("--out", default="book", metavar="DIR", help="the folder to write into (default: book)")
    parser.add_argument(
        "--guide", metavar="DIR", help="write the generated parts of the guide in this folder, and no book"
    )
    _json(parser)


def rules(parser: argparse.ArgumentParser) -> None:
    """List the built-in rule groups and their rules with verdicts; --show-code prints the generated matcher of a rule."""
    parser.add_argument("glob", nargs="?", default="*", help="only rules whose name matches")
    parser.add_argument("--count", action="store_true", help="print the number of rules for each verdict")
    parser.add_argument("--show-code", metavar="NAME", help="print the generated matcher of a rule")
    _json(parser)


def pipeline(parser: argparse.ArgumentParser) -> None:
    """List the 22 stages: number, name, rule groups, direction, and the graph algorithm where there is one."""
    _json(parser)


def config(parser: argparse.ArgumentParser) -> None:
    """List every setting: its variable, value, source and meaning."""
    _json(parser)


def doctor(parser: argparse.ArgumentParser) -> None:
    """Report the machine, its backends, and whether the caches and proofs are in order."""
    _json(parser)
