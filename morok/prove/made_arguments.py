"""Arguments to try helpers on: what the rules that call them give them, at each of their dtypes, edges first."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Sort
from morok.dsl.contract import COMPILE_TIME
from morok.errors import MorokError
from morok.prove.calls import Site, UnmadeError
from morok.prove.dialect_values import NUMBERED

if TYPE_CHECKING:
    from morok.prove.random_nodes import RandomNodes

INTEGERS: Final = (
    *range(-2, 5),
    7,
    8,
    10,
    16,
    31,
    32,
    63,
    64,
    100,
    255,
    256,
    1 << 31,
    -(1 << 31),
    1 << 63,
    -(1 << 63),
    10**30,
)
FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e30, -1e-30, math.inf, -math.inf)
SEQUENCES: Final = ((), (0,), (0, 1), (1, 0), (0, 1, 2, 3), (3, 2, 1, 0), (0, 0, 1, 1), (2, 2), (0, 2, 4, 6))
LONGEST: Final = 64  # items of a sequence that is made up
EDGES: Final = 400  # choices of edge values that are tried, at most


class Arguments:
    """The arguments of a helper's calls, made up.

    numbers  that stand in its code, and in what that refers to
    """

    def __init__(self, extern: S.Extern, places: Sequence[Site], numbers: Sequence[Any], rng: random.Random) -> None:
        self.extern = extern
        self.places = places
        self.rng = rng
        near = [n + k for n in numbers[:NUMBERED] if isinstance(n, int) for k in (0, -1, 1)]
        self.integers = tuple(dict.fromkeys([*near, *INTEGERS]))
        self.lengths = tuple(n for n in self.integers if 0 <= n <= LONGEST)
        self.floats = (*FLOATS, *map(float, numbers[:NUMBERED]))

    def edges(self) -> Iterator[tuple[Any, ...]]:
        """All choices of edge values, or as many as are tried; of nodes any, of so many lanes together."""
        for site in self.places:
            for instance in self._some(site.rule.instances, 3):
                nodes = _nodes_of(site.rule, self.rng)
                try:
                    kinds = [
                        self._edges(p, a, site, instance, nodes)
                        for p, a in zip(self.extern.params, site.call.args, strict=True)
                    ]
                except (UnmadeError, MorokError):
                    continue
                if math.prod(map(len, kinds)) <= EDGES:
                    yield from itertools.product(*kinds)
                else:
                    yield from self._covered(kinds)

    def _covered(self, kinds: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
        """Choices of which each value of each kind is in one, and random ones."""
        for i, kind in enumerate(kinds):
            for v in kind:
                yield tuple(v if k == i else self.rng.choice(of) for k, of in enumerate(kinds))
        rest = EDGES - sum(map(len, kinds))
        yield from (tuple(self.rng.choice(k) for k in kinds) for _ in range(rest))

    def random(self) -> Iterator[tuple[Any, ...]]:
        """Random arguments without end; none where none can be made up."""
        failed = 0
        while failed < 100:
            site = self.rng.choice(self.places)
            instance = self.rng.choice(site.rule.instances)
            nodes = _nodes_of(site.rule, self.rng)
            try:
                made = tuple(
                    self._one(p, a, site, instance, nodes)
                    for p, a in zip(self.extern.params, site.call.args, strict=True)
                )
            except (UnmadeError, MorokError):
                failed += 1
                continue
            yield made

    def _some(self, of: Sequence[Any], count: int) -> list[Any]:
        return list(of) if len(of) <= count else self.rng.sample(list(of), count)

    def _kind(self, p: S.Param) -> str:
        return p.type.name if isinstance(p.type, S.TName) and p.type.name in COMPILE_TIME else ""

    def _is_node(self, p: S.Param, a: S.Expr, site: Site) -> bool:
        kind = self._kind(p)
        return not kind or (kind == "bool" and site.rule.sorts.get(id(a)) is Sort.NODE)

    def _dtype(self, a: S.Expr, site: Site, instance: Instance) -> str:
        """The dtype that a compile-time value came from; "" where it is a number of its own."""
        ty = site.rule.types.get(id(a))
        binding = site.rule.bindings.get(a.name) if isinstance(a, S.EName) else None
        ty = ty or (binding.type if binding is not None else None)
        return "" if ty is None or ty.element == "any" else instance.element(ty)

    def _numbers(self, a: S.Expr, site: Site, instance: Instance) -> tuple[Any, ...]:
        name = self._dtype(a, site, instance)
        dtype = site.rule.dialect.dtypes.get(name)
        if name == "bool":
            return (False, True)
        if getattr(dtype, "is_float", False):
            return self.floats
        low, high = getattr(dtype, "min", -math.inf), getattr(dtype, "max", math.inf)
        if not isinstance(low, int) or not isinstance(high, int):
            return self.integers
        return tuple(dict.fromkeys([*(n for n in self.integers if low <= n <= high), low, high, low + 1, high - 1]))

    def _edges(self, p: S.Param, a: S.Expr, site: Site, instance: Instance, nodes: RandomNodes | None) -> list[Any]:
        kind = self._kind(p)
        if self._is_node(p, a, site):
            return [self._one(p, a, site, instance, nodes) for _ in range(6)]
        if kind == "bool":
            return [False, True]
        if kind == "dtype":
            return list(site.rule.dialect.dtypes.values())
        if kind == "seq":
            long = (numbers for n in self.lengths for numbers in (tuple(range(n)), tuple(range(n))[::-1]))
            return [self._sequence(a, site, s) for s in (*SEQUENCES, *long)]
        return list(self._numbers(a, site, instance))

    def _sequence(self, a: S.Expr, site: Site, numbers: tuple[int, ...]) -> tuple[Any, ...]:
        if site.rule.sorts.get(id(a)) not in (Sort.VALUES, None):
            raise UnmadeError(f"no sequences of nodes, or of fields, are made up for {self.extern.name}")
        return numbers

    def _one(self, p: S.Param, a: S.Expr, site: Site, instance: Instance, nodes: RandomNodes | None) -> Any:
        kind, rng = self._kind(p), self.rng
        if self._is_node(p, a, site):
            ty = site.rule.types.get(id(a))
            if not site.any_node(a):
                raise UnmadeError(f"what `{p.name}` of {self.extern.name} is given, a pattern says")
            if ty is None:
                raise UnmadeError(f"nothing says of which dtype `{p.name}` of {self.extern.name} is")
            if nodes is None:
                hint = "@morok.helper(arguments=..) makes them"
                raise UnmadeError(f"no nodes of dialect {site.rule.dialect.name} are made up: {hint}")
            return nodes.make(ty, instance, self.integers)
        if kind == "bool":
            return rng.random() < 0.5
        if kind == "dtype":
            return rng.choice(list(site.rule.dialect.dtypes.values()))
        if kind == "seq":
            count = rng.choice((0, 1, 2, 3, 4, 8, rng.choice(self.lengths)))
            spread = rng.choice((2, 4, 12))
            return self._sequence(
                a, site, tuple(rng.randrange(-1 if spread == 12 else 0, spread) for _ in range(count))
            )
        numbers = self._numbers(a, site, instance)
        if numbers and isinstance(numbers[-1], float):
            return rng.choice((rng.choice(numbers), rng.uniform(-100, 100), float(rng.randint(-20, 20))))
        if numbers == (False, True):
            return rng.random() < 0.5
        low, high = (
            (min(numbers), max(numbers)) if self._dtype(a, site, instance) not in ("", "index") else (-100_000, 100_000)
        )
        small = rng.randint(max(low, -4), min(high, 12))
        return rng.choice((rng.choice(numbers), small, small, rng.randint(low, high)))


def _nodes_of(rule: CheckedRule, rng: random.Random) -> RandomNodes | None:
    """A maker of random nodes of Morok's own ops; None for other dialects, of which none are made up."""
    if not built_in(rule.dialect):
        return None
    from morok.prove.random_nodes import RandomNodes  # lazy: calls with nodes of another dialect load none of the IR

    return RandomNodes(rng)
