"""Rules to Python: one generated function per op key, a decision tree over the rules that can match there.

`compile_rules` makes the text, `link` turns it into functions over a dialect. What is generated is the same in every
process, so that it can be kept on disk (morok.rewrite.matchers).
"""

from __future__ import annotations

import hashlib
import importlib
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from morok.dialect import NOT_CONST, Dialect
from morok.dsl import values
from morok.dsl.checked import CheckedRule
from morok.dsl.emit import Emitter
from morok.dsl.matching import variants
from morok.dsl.rows import OpTest
from morok.dsl.tree import Constants, Row, Tests, Tree


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated text, before it knows any object.

    source   defines one function per op, and MATCH: op name -> function; "" stands for every other op
    names    of the rules, by number
    helpers  "module:function" of each helper the text calls, by the name it calls it
    """

    source: str
    names: tuple[str, ...]
    helpers: Mapping[str, str]


def compile_rules(rules: Sequence[CheckedRule]) -> Generated:
    """The matcher of rules in priority order. They share a dialect."""
    dialect = rules[0].dialect
    constants = Constants()
    tests = Tests(dialect, constants)
    rows = _rows(rules)
    ops = dict.fromkeys(op for row in rows if (op := row.variant.ops.get(())) is not None)
    lines: list[str] = []
    functions: dict[str, str] = {}
    for op in ops:
        name = f"match_{op}"
        functions[op] = name
        mine = [_at_root(r) for r in rows if r.variant.ops.get(()) in (None, op)]
        lines += Tree(dialect, tests, dialect.ops[op]).function(name, mine)
    rest = [r for r in rows if r.variant.ops.get(()) is None]
    if rest:
        functions[""] = "match_any"
        lines += Tree(dialect, tests, None).function("match_any", rest)
    table = ", ".join(f"{op!r}: {name}" for op, name in functions.items())
    head = [f"# Generated from {len(rules)} rules of dialect {dialect.name}.", *constants.lines(), "", ""]
    source = "\n".join([*head, *lines, f"MATCH = {{{table}}}", ""])
    helpers = {f"H_{name}": f"{r.helpers}:{name}" for r in rules for name in r.externs}
    return Generated(source, tuple(r.name for r in rules), helpers)


def _rows(rules: Sequence[CheckedRule]) -> list[Row]:
    rows = []
    for number, rule in enumerate(rules):
        for order, variant in enumerate(variants(rule)):
            tail = Emitter(rule, variant, number, order).emit()
            rows.append(Row(rule.name, number, variant, variant.tests, tail))
    return rows


def _at_root(row: Row) -> Row:
    """Without the test of the root's op, which the table makes."""
    return Row(
        row.name, row.number, row.variant, tuple(t for t in row.tests if not (isinstance(t, OpTest) and not t.path)), row.tail
    )


def to_code(generated: Generated, title: str) -> CodeType:
    """The text compiled, under a file name by which tracebacks find its lines."""
    digest = hashlib.sha256(generated.source.encode()).hexdigest()[:12]
    return compile(generated.source, f"<matcher {title} {digest}>", "exec", dont_inherit=True)


def link(code: CodeType, generated: Generated, dialect: Dialect, wrap: Callable[[str, Any], Any] | None = None) -> dict[str, Any]:
    """MATCH of the generated text: op name -> function. `wrap` replaces each helper (its name, the function) by another."""
    source = generated.source
    linecache.cache[code.co_filename] = (len(source), None, source.splitlines(keepends=True), code.co_filename)
    namespace: dict[str, Any] = {
        **values.NAMES,
        **getattr(dialect, "names", {}),
        "_d": dialect,
        "_failures": (
            values.NoValue,
            ZeroDivisionError,
            OverflowError,
            IndexError,
            getattr(dialect, "undefined", values.NoValue),
        ),
        "_derive": getattr(dialect, "derive", None),
        "_subst": dialect.facts.get("subst"),
        "NOT_CONST": NOT_CONST,
    }
    for name in _names(code):
        if name in namespace:
            continue
        kind, _, rest = name.partition("_")
        if kind == "K":
            namespace[name] = dialect.ops[rest].key
        elif kind == "D":
            namespace[name] = dialect.dtypes[rest]
        elif kind == "E":
            namespace[name] = dialect.ops[rest].evaluate
        elif kind == "F":
            namespace[name] = dialect.facts[rest]
        elif kind == "H":
            module, _, function = generated.helpers[name].rpartition(":")
            helper = getattr(importlib.import_module(module), function)
            namespace[name] = helper if wrap is None else wrap(function, helper)
    exec(code, namespace)
    found: dict[str, Any] = namespace["MATCH"]
    return found


def _names(code: CodeType) -> set[str]:
    """Every global name that a code object and those inside it mention."""
    names: set[str] = set()
    stack = [code]
    while stack:
        at = stack.pop()
        names.update(at.co_names)
        stack.extend(c for c in at.co_consts if isinstance(c, CodeType))
    return names


__all__ = ["Generated", "compile_rules", "link", "to_code"]
