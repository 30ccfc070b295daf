"""The statements of a dialect about nodes over nodes: such a node has the value that its op gives the values of its operands.

A dialect whose `build` makes another node of the same value, as one that folds, is right; what is asked of is the value alone.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from morok.dialect import NOT_CONST, Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.dsl.values import NoValue
from morok.prove.dialect_meanings import choices, evaluated
from morok.prove.dialect_nodes import OpNodes, Values, Worlds, Wrong, call, const_value, constant, remembered
from morok.prove.dialect_values import few, same_number

LEAVES: Final = 5  # constants of a dtype
INNER: Final = 12  # nodes of a dtype that are operands of others
MOST: Final = 60  # nodes of one op at one choice of dtypes
DEPTH: Final = 4  # of nodes that are evaluated


class Tree(NamedTuple):
    """A node, its value, and what it was built of."""

    node: Any
    value: Any
    shown: str


class Trees:
    """The nodes of one op over nodes of some ops, and what is wrong with them."""

    def __init__(self, dialect: Dialect, info: OpInfo, values: Values, worlds: Worlds, over: Collection[str]) -> None:
        self.dialect = dialect
        self.info = info
        self.values = values
        self.worlds = worlds
        self.over = over
        self.nodes = OpNodes(dialect, info, values, worlds)

    def mistakes(self) -> list[Mistake]:
        """The mistakes of the op's nodes, the first of each field."""
        if self.info.fields or self.info.evaluate is None:
            return []
        rng = random.Random(self.info.name)
        for names, result in _signatures(self.dialect, self.info):
            if all(n in self.values for n in names):
                try:
                    operands = {n: self._operands(n, rng) for n in dict.fromkeys(names)}
                    self._at(names, result, [operands[n] for n in names], rng)
                except Wrong as wrong:
                    if wrong.mistake.field in ("build", "rebuild"):
                        self.nodes.add(wrong.mistake)
                    else:  # a method that is asked about the nodes of every op
                        self.nodes.found.setdefault(wrong.mistake.field, wrong.mistake)
        return list(self.nodes.found.values())

    def _operands(self, name: str, rng: random.Random) -> list[Tree]:
        """Constants of a dtype, and nodes of all ops over these."""
        leaves = [Tree(constant(self.dialect, name, v), v, repr(v)) for v in few(self.values[name], LEAVES)]
        inner = [
            (info, names, chosen)
            for info in (self.dialect.ops[op] for op in sorted(self.over))
            if not info.fields and info.evaluate is not None
            for names, result in _signatures(self.dialect, info)
            if result == name and all(n in self.values for n in names)
            for chosen in itertools.product(*(few(self.values[n], LEAVES) for n in names))
        ]
        some = [self._over_constants(*i, name) for i in rng.sample(inner, min(INNER, len(inner)))]
        return [*leaves, *(t for t in some if t is not None)]

    def _over_constants(self, info: OpInfo, names: Sequence[str], given: tuple[Any, ...], result: str) -> Tree | None:
        """A node over constants; None where it is not built, or has no value or another: its own op is asked about that."""
        try:
            value = evaluated(self.dialect, info, names, result, given)
            operands = tuple(constant(self.dialect, n, v) for n, v in zip(names, given, strict=True))
            node = OpNodes(self.dialect, info, self.values, self.worlds).build(operands, result)
            alike = same_number(self._value(node), value)
        except Exception:
            return None
        return Tree(node, value, f"{info.name}({', '.join(map(repr, given))})") if alike else None

    def _at(self, names: Sequence[str], result: str, operands: Sequence[Sequence[Tree]], rng: random.Random) -> None:
        every = list(itertools.product(*operands))
        equal = [c for c in every if all(t is c[0] for t in c)]  # one object, where there are others that are equal to it
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
            if last is not None:
                self._is(call(self.dialect, "rebuild", last, tuple(t.node for t in at)), value, "rebuild", shown)
            last = node if call(self.dialect, "opkey", node) == self.info.key else last
            made.append(Tree(node, value, shown))
        others = [t for one in operands for t in one]
        for a, b in itertools.combinations([*made, *others], 2):
            if not same_number(a.value, b.value) and call(self.dialect, "same", a.node, b.node):
                raise Wrong("same", f"takes {a.shown} for {b.shown}", "whether nodes are equal")
            remembered(self.dialect, a.node, b.node, a.shown, b.shown)

    def _is(self, node: Any, wanted: Any, method: str, shown: str) -> None:
        """An error unless a node has the value that is wanted."""
        value = self._value(node)
        if value is NOT_CONST or same_number(value, wanted):
            return
        d, field = self.dialect, method
        if method == "build" and call(d, "const_value", node) is not NOT_CONST:
            field = method if self.nodes.is_plain(node, self.nodes.name_of(node)) else "const_value"
        elif method == "build":
            field = "operands" if call(d, "opkey", node) == self.info.key else "opkey"
        raise Wrong(field, f"of {shown} makes what is {value!r}, and the value is {wanted!r}", "what has that value")

    def _value(self, node: Any, depth: int = 0) -> Any:
        """The value that a node has by what the dialect says of it; NOT_CONST where that is none, or cannot be told."""
        value = const_value(self.dialect, node)
        if value is not NOT_CONST or depth > DEPTH:
            return value
        key = call(self.dialect, "opkey", node)
        info = next((i for i in self.dialect.ops.values() if i.key == key and i.evaluate is not None and not i.fields), None)
        held = call(self.dialect, "operands", node)
        given = tuple(self._value(o, depth + 1) for o in held)
        if info is None or len(held) != len(info.params) or any(v is NOT_CONST for v in given):
            return NOT_CONST
        names = [self.nodes.name_of(o) for o in held]
        try:
            return evaluated(self.dialect, info, names, self.nodes.name_of(node), given)
        except Exception:  # it has none, or is of other dtypes
            return NOT_CONST


def _signatures(dialect: Dialect, info: OpInfo) -> Iterator[tuple[list[str], str]]:
    """The dtypes of an op's operands and of its result, at each choice."""
    for at in choices(dialect, info):
        yield [at.get(p, p) for p in info.params], at.get(info.result, info.result)


__all__ = ["Trees"]
