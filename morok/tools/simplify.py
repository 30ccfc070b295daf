"""Rewrite one expression with the symbolic rules, or with rule files of yours, and print it.

morok simplify 'Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)'
"""

from __future__ import annotations

import argparse

from morok.ir.expression_parser import parse
from morok.rewrite.library import load_rules, rewrite, symbolic
from morok.rewrite.trace import Trace
from morok.tools.output import emit_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("expression", metavar="EXPR", help="in the notation of rules")
    parser.add_argument("--rules", nargs="+", metavar="PATH", help="rewrite with these files instead (proved first)")
    parser.add_argument("--trust-helpers", action="store_true", help="test the Python helpers of these files, and use them")
    parser.add_argument("--trace", action="store_true", help="print every rule that fires")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    before = parse(args.expression)
    rules = symbolic()
    if args.rules:
        rules = load_rules(args.rules[0], trust_helpers=args.trust_helpers)
        for path in args.rules[1:]:
            rules = rules + load_rules(path, trust_helpers=args.trust_helpers)
    trace = Trace()
    after = rewrite(before, rules, trace=trace)
    if args.json:
        emit_json({"before": before.text(), "after": after.text(), "fired": [f.row() for f in trace.firings]})
        return 0
    if args.trace:
        for f in trace.firings:
            print(f"{f.rule}: {f.before}  ~>  {f.after}")
    print(after.text())
    return 0
