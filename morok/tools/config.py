"""List every setting: its variable, value, where the value came from, and what it means."""

from __future__ import annotations

import argparse

from morok import config
from morok.tools.output import emit_json, emit_table


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _show(value: object) -> str:
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return "" if value is None else str(value)


def run(args: argparse.Namespace) -> int:
    rows = []
    for setting in config.SETTINGS:
        value, source = setting.read()
        rows.append((f"MOROK_{setting.name}", _show(value), source, setting.takes, setting.meaning))
    if args.json:
        keys = ("name", "value", "source", "takes", "meaning")
        emit_json({"settings": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        emit_table(rows, ("variable", "value", "from", "takes", "meaning"))
    return 0
