"""The statements of a dialect about nodes over nodes: such a node has the value that its op gives the values of its operands.

A dialect whose `build` makes another node of the same value, as one that folds, is right; what is asked of is the value alone.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from morok.dialect import NOT_CONST, Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.dsl.values import NoValue
from morok.prove.dialect_agreement import Wrong, evaluated
from morok.prove.dialect_calls import call
from morok.prove.dialect_meanings import signatures
from morok.prove.dialect_nodes import BUILDING, OpNodes, Values, Worlds, constant
from morok.prove.dialect_templates import remembered, same_template
from morok.prove.dialect_values import few, same_number

LEAVES: Final = 5  # constants of a dtype
INNER: Final = 12  # nodes of a dtype that are operands of others
MOST: Final = 60  # nodes of one op at one choice of dtypes


class Tree(NamedTuple):
    """A node, its value, and what it was built of."""

    node: Any
    value: Any
    shown: str


class Trees:
    """The nodes of one op over nodes of some ops, and what is wrong with them.

    few   some values of each dtype
    made  the ops that give each dtype, each with the dtypes of its operands
    """

    def __init__(self, dialect: Dialect, info: OpInfo, values: Values, worlds: Worlds, over: Collection[str]) -> None:
        self.dialect = dialect
        self.info = info
        self.values = values
        self.worlds = worlds
        self.nodes = OpNodes(dialect, info, values, worlds)
        self.few = {name: few(some, LEAVES) for name, some in values.items()}
        self.made: dict[str, list[tuple[OpInfo, list[str]]]] = {}
        for op in (dialect.ops[name] for name in sorted(over)):
            for names, result in signatures(op) if not op.fields and op.evaluate is not None else ():
                if all(n in values for n in names):
                    self.made.setdefault(result, []).append((op, names))

    def mistakes(self) -> list[Mistake]:
        """The mistakes of the op's nodes, the first of each field."""
        if self.info.fields or self.info.evaluate is None:
            return []
        rng = random.Random(self.info.name)
        for names, result in signatures(self.info):
            if all(n in self.values for n in names):
                try:
                    operands = {n: self._operands(n, rng) for n in dict.fromkeys(names)}
                    self._at(names, result, [operands[n] for n in names], rng)
                except Wrong as wrong:
                    if wrong.mistake.field.startswith(BUILDING):
                        self.nodes.add(wrong.mistake)
                    else:  # a method that is asked about the nodes of every op
                        self.nodes.found.setdefault(wrong.mistake.field, wrong.mistake)
        return list(self.nodes.found.values())

    def _operands(self, name: str, rng: random.Random) -> list[Tree]:
        """Constants of a dtype, and nodes of all ops over these."""
        leaves = [Tree(constant(self.dialect, name, v), v, repr(v)) for v in self.few[name]]
        made = self.made.get(name, [])
        ends = list(itertools.accumulate(math.prod(len(self.few[n]) for n in names) for _, names in made))
        every = range(ends[-1] if ends else 0)
        some = []
        for number in rng.sample(every, min(INNER, len(every))):
            at = bisect.bisect_right(ends, number)
            info, names = made[at]
            given = _combination([self.few[n] for n in names], ends[at] - number - 1)
            some.append(self._over_constants(info, names, given, name))
        return [*leaves, *(t for t in some if t is not None)]

    def _over_constants(self, info: OpInfo, names: Sequence[str], given: tuple[Any, ...], result: str) -> Tree | None:
        """A node over constants; None where it is not built, or has no value or another: its own op is asked about that."""
        try:
            value = evaluated(self.dialect, info, names, result, given)
            operands = tuple(constant(self.dialect, n, v) for n, v in zip(names, given, strict=True))
            node = OpNodes(self.dialect, info, self.values, self.worlds).build(operands, result)
            alike = same_number(self.nodes.value(node), value)
        except Exception:
            return None
        return Tree(node, value, f"{info.name}({', '.join(map(repr, given))})") if alike else None

    def _at(self, names: Sequence[str], result: str, operands: Sequence[Sequence[Tree]], rng: random.Random) -> None:
        every = list(itertools.product(*operands))
        # one object, where there are others that are equal to it
        equal = [c for c in every if all(t is c[0] for t in c)]
        chosen = [*equal[:INNER], *rng.sample(every, min(MOST, len(every)))]
        made: list[Tree] = []
        last: Any = None  # a node of the op
        for at in chosen:
            shown = f"{self.info.name}({', '.join(t.shown for t in at)})"
            given = tuple(t.value for t in at)
            try:
                value = evaluated(self.dialect, self.info, names, result, given)
            except NoValue:
                value = NoValue
            except Exception:  # said of the evaluator
                return
            node = self.nodes.build(tuple(t.node for t in at), result)
            if call(self.dialect, "opkey", node) == self.info.key:
                self.nodes.facts(node, given, result, shown)
            if value is NoValue:
                continue
            self._is(node, value, "build", shown)
            self.nodes.templates(node, tuple(t.node for t in at), result, value, shown)
            if last is not None:
                self._is(call(self.dialect, "rebuild", last, tuple(t.node for t in at)), value, "rebuild", shown)
            last = node if call(self.dialect, "opkey", node) == self.info.key else last
            made.append(Tree(node, value, shown))
        others = [t for one in operands for t in one]
        for a, b in itertools.combinations([*made, *others], 2):
            if not same_number(a.value, b.value) and call(self.dialect, "same", a.node, b.node):
                raise Wrong("same", f"takes {a.shown} for {b.shown}", "whether nodes are equal")
            same_template(self.dialect, a.node, b.node, f"{a.shown} and {b.shown}")
        remembered(self.dialect, [(t.node, t.shown) for t in (*made, *others)])

    def _is(self, node: Any, wanted: Any, method: str, shown: str) -> None:
        """An error unless a node has the value that is wanted."""
        value = self.nodes.value(node)
        if value is NOT_CONST or same_number(value, wanted):
            return
        d, field = self.dialect, method
        if method == "build" and call(d, "const_value", node) is not NOT_CONST:
            field = method if self.nodes.is_plain(node, self.nodes.name_of(node)) else "const_value"
        elif method == "build":
            field = "operands" if call(d, "opkey", node) == self.info.key else "opkey"
        raise Wrong(field, f"of {shown} makes what is {value!r}, and the value is {wanted!r}", "what has that value")


def _combination(values: Sequence[Sequence[Any]], number: int) -> tuple[Any, ...]:
    """The combination of values of this number, of as many as there are."""
    found = []
    for some in values:
        number, at = divmod(number, len(some))
        found.append(some[at])
    return tuple(found)
