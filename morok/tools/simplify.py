"""Rewrite one expression with the symbolic rules, or with other rule files, and print it."""

from __future__ import annotations

import argparse

from morok.ir.expression_parser import parse
from morok.rewrite.library import load_rules, rewrite, symbolic
from morok.rewrite.trace import Trace
from morok.tools.output import emit_json


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
