"""Rules to Python: one generated function per op key, a decision tree over the clauses that can match there.

`compile_rules` makes a code object, equal in every process, so that it can be cached on disk; `morok.dsl.compiled` links it to
the objects of a dialect.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from morok.dialect import Branches, Dialect, HasPlaces
from morok.dsl.checked import CheckedRule
from morok.dsl.compiled import Generated
from morok.dsl.extent import Extents
from morok.dsl.match.actions import action_of
from morok.dsl.match.clauses import Clauses
from morok.dsl.match.code import Located, assign, title
from morok.dsl.match.decision_tree import Candidate
from morok.dsl.match.matched import helper_name
from morok.dsl.match.patterns import clauses_of
from morok.dsl.match.writer import function_of
from morok.names import data

NO_LIMITS: Final[Mapping[int, Extents]] = {}


def compile_rules(
    rules: Sequence[CheckedRule], dialect: Dialect, counting: bool = False, limits: Mapping[int, Extents] = NO_LIMITS
) -> Generated:
    """The matcher of rules of one dialect, in priority order.

    counting  the matcher calls `_tried` with the number of each rule whose ops agree with those of a node and its operands
    limits    by a rule's number, the matcher's reaction to sizes beyond the extents of the rule's proof
    """
    names = tuple(r.name for r in rules)
    said = repr((dialect.name, names, counting, sorted(limits.items()), sorted({r.text for r in rules})))
    file = f"morok-rules-{hashlib.sha256(data(said)).hexdigest()[:16]}.py"  # tracebacks find the text by this name
    code = compile(module_of(rules, dialect, counting, limits), file, "exec", dont_inherit=True)
    helpers = {helper_name(r, name): f"{r.helpers}:{name}" for r in rules for name in r.externs}
    return Generated(code, lambda: text_of(rules, dialect, counting, limits), names, helpers)


def text_of(
    rules: Sequence[CheckedRule], dialect: Dialect, counting: bool = False, limits: Mapping[int, Extents] = NO_LIMITS
) -> str:
    """The same matcher as Python text, for readers only."""
    return ast.unparse(module_of(rules, dialect, counting, limits))


def module_of(
    rules: Sequence[CheckedRule], dialect: Dialect, counting: bool, limits: Mapping[int, Extents]
) -> ast.Module:
    """The syntax tree of the generated module: functions, and MATCH, the table from ops to functions."""
    made = Clauses(dialect)
    rows: list[tuple[str | None, Candidate]] = []  # each with the op of its root
    for number, rule in enumerate(rules):
        for order, clause in enumerate(clauses_of(rule, made)):
            action = action_of(rule, clause, made, number, order, limits.get(number))
            root = clause.ops.get(())
            # looking the function up in the table has tested the op of the root
            open_ = tuple([c for c in clause.constraints if c.op is None or c.paths != ((),)])
            rows.append((root, Candidate(clause, open_, action)))
    functions: dict[str, str] = {}
    body: list[ast.stmt] = []
    rest = [candidate for root, candidate in rows if root is None]
    others = _no_variables(dialect) if rest else frozenset()
    for op in dict.fromkeys([*(root for root, _ in rows if root is not None), *sorted(others)]):
        name = functions[op] = f"match_{op}"
        mine = [candidate for root, candidate in rows if root == op or (root is None and op not in others)]
        body += function_of(name, dialect.ops[op], mine, made, counting)
    if rest:
        functions[""] = "match_any"
        body += function_of("match_any", None, rest, made, counting)
    table = made.code.dict_of({made.code.constant(op): made.code.name(name) for op, name in functions.items()})
    head = title(f"Generated from {len(rules)} rules of dialect {dialect.name}.")
    tables = [assign([name], value) for value, name in made.tables.items()]
    return Located(made.code, [head, *tables, *body, assign(["MATCH"], table)]).module


def _no_variables(dialect: Dialect) -> frozenset[str]:
    """The ops that a pattern which is a bare variable does not match: places, and parts of branches."""
    places = dialect.places | dialect.passing | dialect.storage if isinstance(dialect, HasPlaces) else frozenset()
    return places | (dialect.branches if isinstance(dialect, Branches) else frozenset())
