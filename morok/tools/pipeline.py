"""List the 22 stages: number, name, rule groups, direction, and the graph algorithm where there is one."""

from __future__ import annotations

import argparse

from morok.passes.pipeline import STAGES
from morok.tools.output import emit_json, emit_table


def run(args: argparse.Namespace) -> int:
    if args.json:
        emit_json(
            {
                "stages": [
                    {
                        "number": s.number,
                        "name": s.name,
                        "groups": list(s.applied),
                        "direction": s.direction,
                        "algorithm": s.algorithm_name,
                    }
                    for s in STAGES
                ]
            }
        )
        return 0
    rows = [(str(s.number), s.name, " ".join(s.applied) or "-", s.direction, s.algorithm_name or "-") for s in STAGES]
    emit_table(rows, ("stage", "name", "rule groups", "direction", "algorithm"))
    return 0
