"""Rules to Python: one generated function per op key, a decision tree over the rules that can match there.

`compile_rules` makes the text, the same in every process, so that it can be kept on disk; `morok.dsl.compiled` makes functions
of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from morok.dialect import Dialect
from morok.dsl.checked import CheckedRule
from morok.dsl.compiled import Generated, generated
from morok.dsl.emit import Emitter, helper_name
from morok.dsl.extent import Limits
from morok.dsl.matching import variants
from morok.dsl.rows import OpTest
from morok.dsl.tree import Constants, Row, Tests, Tree

NO_LIMITS: Final[Mapping[str, Limits]] = {}


def compile_rules(
    rules: Sequence[CheckedRule], dialect: Dialect, counting: bool = False, limits: Mapping[str, Limits] = NO_LIMITS
) -> Generated:
    """The matcher of rules of one dialect, in priority order; `counting`: it calls `_tried` with the number of each rule that the
    ops of a node and of its operands do not rule out. `limits`: what it does beyond the extents of proofs, by the rules' names.
    """
    constants = Constants()
    tests = Tests(dialect, constants)
    rows = _rows(rules, limits)
    ops = dict.fromkeys(op for row in rows if (op := row.variant.ops.get(())) is not None)
    lines: list[str] = []
    functions: dict[str, str] = {}
    for op in ops:
        name = f"match_{op}"
        functions[op] = name
        mine = [_at_root(r) for r in rows if r.variant.ops.get(()) in (None, op)]
        lines += Tree(dialect, tests, dialect.ops[op], counting).function(name, mine)
    rest = [r for r in rows if r.variant.ops.get(()) is None]
    if rest:
        functions[""] = "match_any"
        lines += Tree(dialect, tests, None, counting).function("match_any", rest)
    table = ", ".join(f"{op!r}: {name}" for op, name in functions.items())
    head = [f"# Generated from {len(rules)} rules of dialect {dialect.name}.", *constants.lines(), "", ""]
    source = "\n".join([*head, *lines, f"MATCH = {{{table}}}", ""])
    helpers = {helper_name(r, name): f"{r.helpers}:{name}" for r in rules for name in r.externs}
    return generated(source, tuple(r.name for r in rules), helpers)


def _rows(rules: Sequence[CheckedRule], limits: Mapping[str, Limits]) -> list[Row]:
    rows = []
    for number, rule in enumerate(rules):
        for order, variant in enumerate(variants(rule)):
            tail = Emitter(rule, variant, number, order, limits.get(rule.name)).emit()
            rows.append(Row(rule.name, number, variant, variant.tests, tail))
    return rows


def _at_root(row: Row) -> Row:
    """Without the test of the root's op, which the table makes."""
    return row.left_with([t for t in row.tests if not (isinstance(t, OpTest) and not t.path)])


__all__ = ["compile_rules"]
