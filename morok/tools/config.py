"""List every setting: its variable, value, source and meaning."""

from __future__ import annotations

import argparse

from morok import config
from morok.tools.output import emit_json, emit_table


def _show(value: object) -> str:
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return "" if value is None else str(value)


def run(args: argparse.Namespace) -> int:
    rows = []
    for setting in config.SETTINGS:
        value, source = setting.read()
        rows.append((setting.variables[0], _show(value), source, setting.takes, setting.meaning))
    if args.json:
        keys = ("name", "value", "source", "takes", "meaning")
        bare = {s.variables[0]: s.name for s in config.SETTINGS if s.bare}
        emit_json(
            {
                "settings": [{**dict(zip(keys, row, strict=True)), "also": bare.get(row[0], "")} for row in rows],
                "absent": dict(config.ABSENT),
            }
        )
    else:
        also = {s.variables[0]: f" (also {s.name})" for s in config.SETTINGS if s.bare}
        shown = [(name + also.get(name, ""), *rest) for name, *rest in rows]
        shown += [(name, "", "absent", "", meaning) for name, meaning in config.ABSENT.items()]
        emit_table(shown, ("variable", "value", "from", "takes", "meaning"))
    return 0
