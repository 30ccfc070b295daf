"""Trials of what a dialect says of nodes of several lanes, by methods, facts and templates: compared with what they evaluate to.

Each node is asked everything that can be asked of one, and each pair whether they are the same.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from morok.dialect import NOT_CONST, Dialect, OpInfo, built_in
from morok.dsl.declared import Mistake
from morok.dsl.structural import takes_dtype
from morok.lane_roles import join, take
from morok.prove.dialect_agreement import Wrong, evaluated
from morok.prove.dialect_calls import call, const_value, filled
from morok.prove.dialect_facts import Case, node_mistakes
from morok.prove.dialect_meanings import signatures
from morok.prove.dialect_nodes import Values, Worlds
from morok.prove.dialect_templates import building_templates, read_templates, remembered, same_template
from morok.prove.dialect_values import few, numbers_of, same_number

SIZES: Final = (2, 8, 64)  # numbers of lanes, besides those that stand in the dialect's code
LARGEST: Final = 256
SHORT: Final = 4  # lanes that pointwise ops are applied to
MENTIONED: Final = 16  # sizes that the code of a dialect mentions
DEPTH: Final = 6  # of nodes that are evaluated
FEW: Final = 4  # vectors of a dtype and a size that pointwise ops are built over, and choices of dtypes of such an op
MOST, PAIRED = 300, 40  # vectors that are compared in pairs: of all dtypes, and of one at least
ACROSS: Final = 8  # vectors of each dtype that are compared with those of the others
METHODS: Final = ("lanes_of", "element", "same", "type", "opkey", "operands", "attr", "const_value")


class Vector(NamedTuple):
    """A node, its lanes with the name of their dtype, what it is in words, and the template that made it, if any."""

    node: Any
    name: str
    lanes: tuple[Any, ...]
    shown: str
    template: str = ""


def sizes_of(dialect: Dialect) -> list[int]:
    """Numbers of lanes to try: some, and those that the code of a dialect mentions, or may count up to."""
    own: list[Any] = [] if built_in(dialect) else [getattr(dialect, m, None) for m in METHODS]
    said = [compile(t, "", "eval", dont_inherit=True) for t in _templates(dialect)] if own else []
    numbers = (
        numbers_of((*own, *(dialect.facts.values() if own else ()), *said), type(dialect).__module__) if own else ()
    )
    mentioned = [int(n) + more for n in dict.fromkeys(numbers) if math.isfinite(n) and n == int(n) for more in (0, 1)]
    return [*SIZES, *[n for n in dict.fromkeys(mentioned) if 2 < n <= LARGEST and n not in SIZES][:MENTIONED]]


def _templates(dialect: Dialect) -> Iterator[str]:
    """The code templates of a dialect that are expressions, with names in their holes."""
    for text in dialect.inline.values():
        try:
            yield text.format(**{k: f"hole_{k}" for k in ("n", "a", "b", "c", "op", "v", "d", "k")})
        except (KeyError, IndexError, ValueError, AttributeError):  # said of its declaration
            continue


def vector_dtype(dialect: Dialect, name: str, lanes: int) -> Any:
    """The dtype of so many lanes, where the dialect has such."""
    of = dialect.dtypes[name]
    return filled(dialect, "vector", name, d=of, k=lanes) if "vector" in dialect.inline else of


def dtype_mistakes(dialect: Dialect, values: Values, worlds: Worlds) -> Iterator[Mistake]:
    """The mistake in what the dialect says of its dtypes, of those of vectors, and of constants of these."""
    try:
        vectors: list[Vector] = []
        for name, some in values.items():
            for k in (0, *sizes_of(dialect)) if "vector" in dialect.inline else (0,):
                of = vector_dtype(dialect, name, k) if k else dialect.dtypes[name]
                _element(dialect, name, of)
                vectors += _constants(dialect, name, few(some, 2), of, k) if k else ()
        _invalid(dialect)
        yield from Lanes(dialect, worlds).mistakes(vectors)
    except Wrong as wrong:
        yield wrong.mistake


def _invalid(dialect: Dialect) -> None:
    """An error where the template `invalid` denies it of a node of the op that always is."""
    info = dialect.ops.get(dialect.inline.get("invalid_op", ""))
    if info is None or "invalid" not in dialect.inline:
        return
    for name, of in dialect.dtypes.items():
        try:
            node = dialect.build(info.name, (), {}, of)
        except Exception:  # there is none of this dtype
            continue
        if call(dialect, "opkey", node) == info.key and not filled(dialect, "invalid", name, n=node):
            raise Wrong("inline['invalid']", f"is not so of {info.name} of {name}")


def _element(dialect: Dialect, name: str, of: Any) -> None:
    """An error unless a dtype is of lanes of the dtype of this name."""
    found = call(dialect, "element", of) if callable(getattr(dialect, "element", None)) else of
    if found != dialect.dtypes[name]:
        field = "element" if callable(getattr(dialect, "element", None)) else "type"
        raise Wrong(field, f"of {of!r}, whose lanes are of {name}, is {found!r}", f"{dialect.dtypes[name]!r}")


def _constants(dialect: Dialect, name: str, some: Sequence[Any], of: Any, k: int) -> Iterator[Vector]:
    """The constants of a vector's dtype, by the method and by the template, where these make any."""
    for v in some:
        makers = [functools.partial(dialect.const, of, v)]
        if "const" in dialect.inline:
            makers.append(functools.partial(filled, dialect, "const", repr(v), v=v, d=of))
        for make in makers:
            try:
                node = make()
            except Exception:  # it refuses
                continue
            yield Vector(node, name, (v,) * k, f"the constant {v!r} in {k} lanes of {name}")


class Lanes:
    """Vectors of a dialect, and what is wrong with what it says of them."""

    def __init__(self, dialect: Dialect, worlds: Worlds) -> None:
        self.dialect = dialect
        self.worlds = worlds
        self.by_key = {info.key: info for info in dialect.ops.values()}
        self.tells = callable(getattr(dialect, "lanes_of", None))

    def mistakes(self, vectors: Sequence[Vector]) -> Iterator[Mistake]:
        """The mistakes in what is said of these, and of nodes of pointwise ops over them. Wrong of the first in a method."""
        every = [*vectors, *self._pointwise(vectors)]
        facts: dict[str, Mistake] = {}
        for v in every:
            self._asked(v)
            for lane in {repr(x): x for x in v.lanes}.values():
                case = Case(
                    self.dialect, v.node, "", (), v.name, lane, self.worlds.get(v.name, ()), v.shown, len(v.lanes)
                )
                for mistake in node_mistakes(case):
                    facts.setdefault(mistake.field, mistake)
        remembered(self.dialect, [(v.node, v.shown) for v in every])
        self._pairs(every)
        yield from facts.values()

    def _asked(self, v: Vector) -> None:
        """An error unless the methods and the templates say of a node what it is."""
        d = self.dialect
        if self.tells:
            self._has(v)
        of = call(d, "type", v.node)
        _element(d, v.name, of)
        value = const_value(d, v.node)
        if value is not NOT_CONST and not all(same_number(value, lane) for lane in v.lanes):
            raise Wrong(
                "const_value", f"of {v.shown} is {value!r}", "the value of each lane, or NOT_CONST", constants=True
            )
        op = d.inline.get("const_op")
        if op is not None and value is NOT_CONST and call(d, "opkey", v.node) == d.ops[op].key:
            raise Wrong("const_value", f"of {v.shown}, whose op is that of constants, is NOT_CONST", constants=True)
        read_templates(d, v.node, v.shown, v.name, len(v.lanes))

    def _has(self, v: Vector) -> None:
        """An error unless `lanes_of` gives the lanes that a node has, and its op, operands and fields are of such a node."""
        lanes = tuple(call(self.dialect, "lanes_of", v.node))
        field = f"inline[{v.template!r}]" if v.template else ""
        found = [self._meant(lane) for lane in lanes]
        if not alike(found, [(x,) for x in v.lanes], alike):
            what = f"of {v.shown} gives {len(lanes)} nodes, of which the lanes are {found!r}"[:300]
            raise Wrong(field or "lanes_of", what, f"a node for each of {v.lanes!r}"[:300])
        for lane in lanes:
            _element(self.dialect, v.name, call(self.dialect, "type", lane))
        meant = self._meant(v.node)
        if not alike(meant, v.lanes):
            what = f"by its opkey, operands and fields {v.shown} has the lanes {meant!r}"[:300]
            raise Wrong(field or "opkey", what, f"{v.lanes!r}"[:300])

    def _meant(self, node: Any, depth: int = 0) -> tuple[Any, ...] | None:
        """The values of a node's lanes by its op, operands and fields; None where they cannot be told."""
        d = self.dialect
        value = const_value(d, node)
        if value is not NOT_CONST:
            return (value,) * len(call(d, "lanes_of", node))
        info = self.by_key.get(call(d, "opkey", node))
        held = call(d, "operands", node)
        given = [self._meant(o, depth + 1) for o in held] if info is not None and depth < DEPTH else [None]
        known = [lanes for lanes in given if lanes is not None]
        if info is None or len(known) != len(given):
            return None
        try:
            return self._of_op(info, node, held, known)
        except Exception:  # lanes that are not there, or ops without a value
            return None

    def _of_op(
        self, info: OpInfo, node: Any, held: Sequence[Any], given: Sequence[tuple[Any, ...]]
    ) -> tuple[Any, ...] | None:
        d = self.dialect
        if info.role == "join":
            return join(given)
        if info.role in ("take", "constants"):
            said = call(d, "attr", node, info.fields[0])
            return tuple(said) if info.role == "constants" else take(given[0], said)
        if not self._is_pointwise(info):
            return None
        names, result = [self._name_of(o) for o in held], self._name_of(node)
        return tuple(evaluated(d, info, names, result, at) for at in zip(*given, strict=True))

    @staticmethod
    def _is_pointwise(info: OpInfo) -> bool:
        return bool(info.params) and info.evaluate is not None and not info.fields and not info.role

    def _name_of(self, node: Any) -> str:
        of = call(self.dialect, "type", node)
        scalar = getattr(self.dialect, "element", lambda d: d)(of)
        return next(name for name, d in self.dialect.dtypes.items() if d == scalar)

    def _pointwise(self, vectors: Sequence[Vector]) -> Iterator[Vector]:
        """Nodes of pointwise ops over vectors of one size, by the method and by templates, as far as the dialect builds them."""
        pools: dict[tuple[str, int], list[Vector]] = {}
        for v in vectors:
            if len(v.lanes) > 1 or const_value(self.dialect, v.node) is NOT_CONST:
                pools.setdefault((v.name, len(v.lanes)), []).append(v)
        sizes = sorted({k for _, k in pools if k <= SHORT})[:3]
        told = self.tells and not built_in(self.dialect)  # whose ops are tested on vectors elsewhere
        for info in self.dialect.ops.values() if told else ():
            for names, result in signatures(info)[:FEW] if self._is_pointwise(info) else ():
                for k in sizes:
                    operands = [pools.get((n, k), ())[:FEW] for n in names]
                    for turn in range(max(map(len, operands), default=0) if all(operands) else 0):
                        over = [some[(turn + i) % len(some)] for i, some in enumerate(operands)]
                        yield from self._over(info, names, result, over)

    def _over(self, info: OpInfo, names: Sequence[str], result: str, over: Sequence[Vector]) -> Iterator[Vector]:
        d, shown = self.dialect, f"{info.name}({', '.join(v.shown for v in over)})"
        operands = tuple(v.node for v in over)
        try:
            lanes = tuple(evaluated(d, info, names, result, at) for at in zip(*(v.lanes for v in over), strict=True))
            of = vector_dtype(d, result, len(lanes))
            node = d.build(info.name, operands, {}, of if takes_dtype(info) else None)
        except Exception:  # there is no value, or the dialect has no such nodes
            return
        yield Vector(node, result, lanes, shown)
        for template, made in building_templates(d, info, operands, of):
            yield Vector(made, result, lanes, f"{shown} by {template}", template)

    def _pairs(self, every: Sequence[Vector]) -> None:
        """An error where vectors of unlike lanes are the same to the method or to the template."""
        by_name: dict[str, list[Vector]] = {}
        for v in every:
            by_name.setdefault(v.name, []).append(v)
        most = max(PAIRED, MOST // max(1, len(by_name)))
        by_name = {n: random.Random(n).sample(some, min(len(some), most)) for n, some in by_name.items()}
        within = (pair for some in by_name.values() for pair in itertools.combinations(some, 2))
        across = (
            p for a, b in itertools.combinations(by_name.values(), 2) for p in itertools.product(a[:ACROSS], b[:ACROSS])
        )
        for a, b in itertools.chain(within, across):
            for one, other in ((a, b), (b, a)):
                if (a.name != b.name or not alike(a.lanes, b.lanes)) and call(
                    self.dialect, "same", one.node, other.node
                ):
                    raise Wrong("same", f"takes {one.shown} for {other.shown}"[:300], "whether nodes are equal")
                same_template(self.dialect, one.node, other.node, f"{one.shown} and {other.shown}"[:300])


def alike(found: Sequence[Any] | None, wanted: Sequence[Any], each: Callable[[Any, Any], bool] = same_number) -> bool:
    """True if two sequences of lanes have the same values."""
    return found is not None and len(found) == len(wanted) and all(map(each, found, wanted))
