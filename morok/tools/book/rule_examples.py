"""Examples of rules firing: a small graph made from a rule's pattern, and the rule's result.

The graphs are those of the differential tests, the same in every process; of the first ENOUGH on which the rule fires the most
readable is the example.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from morok import config
from morok.dsl.checked import CheckedRule
from morok.errors import MorokError
from morok.ir.op import Op, Undefined
from morok.ir.uop import UOp
from morok.prove.trust.differential import Rewriter, graphs_at
from morok.prove.trust.graphs import Unmakeable

TRIES: Final = (200, 400, 4000)  # graphs of the preferred choice of dtypes, of the first few, of all
ENOUGH: Final = 40  # examples to find; the most readable of them is shown
PREFERRED: Final = ("i32", "index", "f32", "bool", "f16", "u32", "i64")
NAMES: Final = "xyzabcdefg"  # of the variables v1, v2, .. of the graphs


class Example(NamedTuple):
    """A graph, and the rule's result on it, as expression text."""

    before: str
    after: str


def example(rule: CheckedRule) -> Example | None:
    """The rule's own `example`, or one found by trying graphs; None if the rule fires on none of them."""
    if rule.syntax.examples:
        own = rule.syntax.examples[0]
        return Example(own.source, own.result)
    apply = Rewriter(rule)
    found: list[Example] = []
    for graph in _graphs(rule):
        try:
            made = apply(graph)
        except (MorokError, ArithmeticError, LookupError, ValueError, Undefined):  # an impossible graph
            continue
        if made is not None and made is not graph:
            found.append(Example(graph.text(), made.text()))
            if len(found) == ENOUGH:
                break
    return min(found, key=lambda e: (_clutter(e), e)) if found else None


# Unclear parts of an example, with weights: variables with one value, special numbers, uncommon dtypes, and in the graph itself
# constants and empty lists.
_DULL: Final = (
    (re.compile(r"\[(-?\d+)\.\.=\1\]"), 30),
    (re.compile(r"\b(?:nan|inf)\b"), 20),
    (re.compile(r"\b[01]\b(?!\.\.)"), 6),
    (re.compile(r"\b(?:i8|u8|f16|bf16|f64)"), 5),
    (re.compile(r"-\d"), 4),
)
_DULL_BEFORE: Final = (
    (re.compile(r"\[\]"), 10),
    (re.compile(r"\b(?:Const|VConst|true|false)\b|(?<=[(, ])-?\d+(?=[,)])"), 20),
)


def _clutter(e: Example) -> int:
    """The cost of reading an example: its length, plus weights for unclear parts."""
    text = f"{e.before} {e.after}"
    dull = [(text, *row) for row in _DULL] + [(e.before, *row) for row in _DULL_BEFORE]
    return len(text) + sum(weight * len(pattern.findall(where)) for where, pattern, weight in dull)


def _graphs(rule: CheckedRule) -> Iterator[UOp]:
    """Graphs that the rule's pattern matches, at preferred dtypes first."""
    liked = tuple(sorted(rule.instances, key=lambda i: [_rank(d) for d in i.dtypes.values()]))
    with contextlib.suppress(Unmakeable):
        for tries, instances in zip(TRIES, (liked[:1], liked[:4], liked), strict=True):
            for graph, _, _ in graphs_at(rule, tries, instances):
                yield _named(graph)


def _rank(dtype: str) -> int:
    return PREFERRED.index(dtype) if dtype in PREFERRED else len(PREFERRED)


def _named(graph: UOp) -> UOp:
    """`graph` with the names x, y, .. for its variables."""
    variables = [n for n in graph.toposort() if n.op is Op.DefineVar and re.fullmatch(r"v\d+", n.arg[0])]
    renamed = {v: UOp.var(name, v.dtype, *v.arg[1:]) for v, name in zip(variables, NAMES, strict=False)}
    made: UOp = graph.substitute(renamed)
    return made


def examples(rules: Sequence[CheckedRule]) -> dict[str, Example]:
    """The examples by rule, for rules that have one, with all fast-math flags allowed."""
    flags = sorted({flag for r in rules for flag in r.syntax.assuming})
    with config.settings(fast_math=",".join(flags)) if flags else config.settings():
        return {r.name: e for r in rules if (e := example(r)) is not None}
