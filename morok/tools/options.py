"""The options of each command, and what its `--help` says: a function a command, of its name. No command is loaded."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from morok.tools.output import at_least, more_than_none

FORMATS: Final = ("text", "json", "jsonl", "junit", "sarif", "github")  # of `morok prove`
ATTACK_RULES: Final = 1000
MUTANTS: Final = 120
ITERATIONS: Final = 20_000  # of a kernel that `morok bisect` interprets


def prove(parser: argparse.ArgumentParser) -> None:
    """Prove rule files or folders of them (default: the built-in rules).

    Exit status: 0 every rule is usable; 1 some rule is refuted, can never fire, or relies on a contract that is false; 2 usage,
    parse or type error; 3 none of these, but some verdict is unknown, or contracts are untested; 4 an internal error. With
    --compare also 1 where a verdict, its scope, the resources that it took or its obligations are not what the ledger says.

    A mistake in a rule file costs only its own rules their verdicts. Every format has the mistakes too, with line and column, and
    every file that was read; `jsonl` has a line for each rule as it is decided, and a last one with the summary.
    """
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--json", action="store_true", help="print one JSON document; the same as --format json")
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="F[=FILE]",
        help=f"{', '.join(FORMATS)}; with =FILE into a file; repeatable",
    )
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="worker processes (default: one a core)")
    parser.add_argument("--budget", type=at_least(1), metavar="UNITS", help="solver resource units an obligation; deterministic")
    parser.add_argument("--no-cache", action="store_true", help="prove everything anew")
    parser.add_argument("--write", action="store_true", help="record the verdicts in the ledger")
    parser.add_argument(
        "--compare", action="store_true", help="prove everything anew; exit 1 where the ledger says other than what was found"
    )
    parser.add_argument("--frozen", action="store_true", help="ask no solver: exit 3 where the ledger has no record of a rule")
    parser.add_argument("--rule-limit", type=more_than_none, metavar="S", help="seconds a rule: `unknown` beyond, not recorded")
    parser.add_argument("--time-limit", type=more_than_none, metavar="S", help="seconds for all rules: what is left is `unknown`")
    parser.add_argument("--smt2", metavar="DIR", help="write the obligations as SMT-LIB, one file a rule")
    parser.add_argument("--bounds", action="store_true", help="instead of rules: the transfer functions of the ops' bounds")
    parser.add_argument("--trust-helpers", action="store_true", help="run the Python helpers of packs to test their contracts")
    parser.add_argument("--only", metavar="GLOB", help="only rules whose name matches")


def measure(parser: argparse.ArgumentParser) -> None:
    """Measure the rules `within N ulp` (default: the built-in ones): compile what they make, run it, compare with exact values.

    Without --all a stated sample is measured: all operands of 16 bits, every 4093rd of f32 and more where most programs' operands
    lie, thousands of f64. With it every f32 operand is, which takes minutes a rule, and more of f64. The result is compared with
    what the rule promises, and with the record of its present code.

    Exit status: 0 every rule keeps its promise; 1 some do not, or differ from their record; 2 usage, parse or type error.
    """
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--only", metavar="GLOB", default="*", help="only rules whose name matches")
    parser.add_argument("--dtype", metavar="D", help="only this dtype")
    parser.add_argument("--all", action="store_true", help="every operand, not a sample")
    parser.add_argument("--write", action="store_true", help="record what was measured beside the ledger")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def check(parser: argparse.ArgumentParser) -> None:
    """Parse, type-check and lint rule files, and run their examples, without a solver.

    With --strict a solver also looks for guards that decide nothing, rules that never apply, and groups that may not come to an
    end; what it found is remembered for as long as the file stays the same.

    A mistake costs only its own rule: the others of its file are linted, and their examples run.

    Exit status: 0 fine; 2 a mistake in a rule file; 1 lint findings, with --strict.
    """
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--strict", action="store_true", help="ask the solver too; lint findings are errors")
    parser.add_argument("--trust-helpers", action="store_true", help="run the Python helpers that examples call")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def recheck(parser: argparse.ArgumentParser) -> None:
    """Put the ledger's obligations to a second solver: bitwuzla for bit vectors and floats, cvc5 for integers.

    They are made by proving the rules again, or read from a folder that `morok prove --smt2 DIR` has written, and compared with
    the digests that the ledger keeps.

    Exit status: 0 no solver disagrees; 1 some obligation has a counterexample, or a rule's obligations are not those that the
    ledger has a digest of; 2 usage.
    """
    parser.add_argument("--sample", type=at_least(1), metavar="N", help="so many obligations only, chosen by --seed")
    parser.add_argument("--seed", default="0", metavar="TEXT")
    parser.add_argument("--limit", type=at_least(1), metavar="MS", help="milliseconds an obligation (default: 500)")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes")
    parser.add_argument("--smt2", metavar="DIR", help="the obligations, as `morok prove --smt2 DIR` wrote them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def mutate(parser: argparse.ArgumentParser) -> None:
    """Change rules in one place each, and see that it is noticed: by evaluation at 8 bits, by the prover, by measuring.

    Without --all: every mutant of the rules that are not as proofs/mutants.json knows them, and a sample of the others', which
    must be as recorded. With --write what an interrupted run has found is kept.

    Exit status: 0 nothing to mend; 1 a guard that may be weaker and proofs/guards.json gives no reason, a mutant that the prover
    calls true and evaluation false, one that ended the prover, or a record that says something else; 2 usage, parse or type
    error.
    """
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--all", action="store_true", help="every mutant of every rule")
    parser.add_argument("--only", metavar="GLOB", help="only rules whose name matches")
    parser.add_argument(
        "--sample", type=at_least(0), default=MUTANTS, metavar="N", help=f"mutants of unchanged rules (default: {MUTANTS})"
    )
    parser.add_argument("--seed", metavar="TEXT", help="chooses the sample (default: the rules themselves)")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes")
    parser.add_argument("--write", action="store_true", help="record what became of the rules all of whose mutants were judged")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def attack(parser: argparse.ArgumentParser) -> None:
    """Try to break the promise that what fires is true: random rules, judged by the prover, fired by their matcher, and
    evaluated.

    Equal seeds give equal rules and equal findings. A finding is a rule that the prover calls usable and that changes a value:
    it is made as small as it can be, and printed as rules are written, with a graph and values that show it. Ctrl-C ends with
    the summary.

    Exit status: 0 no finding; 1 findings, or with --quotas something that rules are too seldom about; 2 usage error.
    """
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="chooses the rules (default: 0)")
    parser.add_argument("--rules", type=at_least(1), metavar="N", help=f"rules to try (default: {ATTACK_RULES}, without --time)")
    parser.add_argument("--time", type=at_least(1), metavar="SECONDS", help="begin no more rules after so long")
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="worker processes (default: one a core)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the findings to a .rules file of rules that must not fire")
    parser.add_argument(
        "--quotas",
        action="store_true",
        help="an op, function, dtype or class in fewer rules than 100 in 100,000 fails the command",
    )


def fmt(parser: argparse.ArgumentParser) -> None:
    """Rewrite rule files in the canonical layout. With --check, only say which would change.

    Exit status: 0 nothing to change (or changed); 1 with --check, something would change; 2 a file does not parse.
    """
    parser.add_argument("paths", nargs="+", metavar="PATH", help=".rules files or folders")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def explain(parser: argparse.ArgumentParser) -> None:
    """Explain a rule: its text, what it says, its verdict and for which sizes it holds, what its proof takes for granted, by
    which laws it holds at every size and from what, and where it runs; or an error code.

    morok explain add_zero
    morok explain movement.permute --smt2
    morok explain shifts.halve --rules shifts.rules
    morok explain MRK201

    Exit status: 0; 2 where there is no such rule or code.
    """
    parser.add_argument("what", metavar="RULE|CODE", help="group.rule, a rule's own name, or a code such as MRK201")
    parser.add_argument("--rules", nargs="+", default=[], metavar="PATH", help="where the rule is (default: the built-in rules)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--smt2", action="store_true", help="print what the solver was asked to prove it, as SMT-LIB")
    form.add_argument("--json", action="store_true", help="print one JSON document")


def simplify(parser: argparse.ArgumentParser) -> None:
    """Rewrite one expression with the symbolic rules, or with rule files of yours, and print it.

    morok simplify 'Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)'
    """
    parser.add_argument("expression", metavar="EXPR", help="in the notation of rules")
    parser.add_argument("--rules", nargs="+", metavar="PATH", help="rewrite with these files instead (proved first)")
    parser.add_argument("--trust-helpers", action="store_true", help="test the Python helpers of these files, and use them")
    parser.add_argument("--trace", action="store_true", help="print every rule that fires")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(parser: argparse.ArgumentParser) -> None:
    """Run a program, with its own arguments, as `python FILE.py` would.

    With --json one document says which kernels ran, and what the program prints goes to stderr.
    """
    parser.add_argument("--json", action="store_true", help="print one JSON document; what the program prints goes to stderr")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def trace(parser: argparse.ArgumentParser) -> None:
    """Run a program and print what each of the 22 stages did to each kernel, and how many firings were of proved rules; with
    --save, write every rule that fired as JSON.

    What the program itself prints goes to stderr: what the stages did is alone on stdout. With --json it is one document: of each
    kernel the program after each stage, and the number of firings for each verdict.
    """
    parser.add_argument("--save", metavar="FILE.json", help="also write every rule that fired")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def bisect(parser: argparse.ArgumentParser) -> None:
    """Find the first stage after which a kernel's value changes, and the rule or algorithm that changed it.

    The program runs as usual; then each of its kernels is interpreted before the first stage and after every one, on the same
    numbers, and what it stores is compared: integers and bools exactly, floats as far as the order of sums may matter. Where no
    stage changes anything, the machine runs the kernel on these numbers too: code generation can be wrong as well.

    With --expect REF.npy the program's own numbers are used: the last result with as many elements is compared with the array in
    that file, as the scheduler's kernels compute it, as they do after each stage, and as the machine did.

    Exit status: 0 no kernel's value changes; 1 one does; 2 usage.
    """
    parser.add_argument(
        "--limit",
        type=at_least(1),
        default=ITERATIONS,
        metavar="N",
        help=f"pass over kernels of more iterations (default: {ITERATIONS})",
    )
    parser.add_argument("--expect", metavar="REF.npy", help="what the program should compute; may stand behind FILE.py as well")
    parser.add_argument("--json", action="store_true", help="print one JSON document; what the program prints goes to stderr")
    parser.add_argument("file", metavar="FILE.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed to the program")


def viz(parser: argparse.ArgumentParser) -> None:
    """Show a trace as a page: which rules fired in which stage, and what each made of what.

    MOROK_TRACE=out.json python program.py    # or `morok trace --save out.json program.py`
    morok viz out.json                        # writes out.html, one file that needs no network

    Exit status: 0; 2 where the file is no trace.
    """
    parser.add_argument("trace", metavar="TRACE.json")
    parser.add_argument("--out", metavar="FILE.html", help="the page to write (default: beside the trace)")
    parser.add_argument("--json", action="store_true", help="print one JSON document: what fired how often")


def docs(parser: argparse.ArgumentParser) -> None:
    """Write the book of rules: a folder of pages with each rule's text, meaning, verdict, source, and an example of it firing.

    morok docs                         # the built-in rules, into the folder `book`
    morok docs my.rules --out pages    # rules of yours; what is not proved yet is marked so
    morok docs --guide docs            # the generated parts of the guide's pages: the stages, the ops, a real trace

    Open index.html in a browser. The pages need no network, and the same rules make the same bytes.
    """
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--out", default="book", metavar="DIR", help="the folder to write into (default: book)")
    parser.add_argument("--guide", metavar="DIR", help="write the generated parts of the guide in this folder anew, and no book")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def rules(parser: argparse.ArgumentParser) -> None:
    """List the built-in rule groups and their rules with verdicts; --show-code prints the matcher made from one."""
    parser.add_argument("glob", nargs="?", default="*", help="only rules whose name matches")
    parser.add_argument("--count", action="store_true", help="print how many rules there are, by verdict")
    parser.add_argument("--show-code", metavar="NAME", help="print the generated matcher of a rule")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def pipeline(parser: argparse.ArgumentParser) -> None:
    """List the 22 stages: number, name, rule groups, direction, and the graph algorithm where there is one."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def config(parser: argparse.ArgumentParser) -> None:
    """List every setting: its variable, value, where the value came from, and what it means."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def doctor(parser: argparse.ArgumentParser) -> None:
    """Report the machine, its backends, and whether the caches and proofs are in order."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
