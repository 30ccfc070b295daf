"""List the 22 stages: number, name, rule groups, direction, and the graph algorithm where there is one."""

from __future__ import annotations

import argparse

from morok.tools.output import emit_json, emit_table


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from morok.passes.pipeline import STAGES

    rows = [
        {
            "number": s.number,
            "name": s.name,
            "groups": list(s.groups),
            "direction": s.direction,
            "algorithm": s.algorithm_name,
        }
        for s in STAGES
    ]
    if args.json:
        emit_json({"stages": rows})
    else:
        emit_table(
            [(str(r["number"]), r["name"], " ".join(r["groups"]) or "-", r["direction"], r["algorithm"] or "-") for r in rows],
            ("stage", "name", "rule groups", "direction", "algorithm"),
        )
    return 0
