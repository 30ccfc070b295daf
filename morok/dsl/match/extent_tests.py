"""The tests that a match lies within the extents of its rule's proof."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.extent import Extent
from morok.dsl.match.clauses import Binding
from morok.dsl.match.matched import Matched


class ExtentTests:
    """Tests of the sizes of a match. A size without a test here counts as beyond its extent."""

    def __init__(self, matched: Matched) -> None:
        self.matched = matched
        self.rule = matched.rule
        self.clause = matched.clause
        self.access = matched.access
        self.code = matched.code
        self.facts = matched.dialect.facts

    def within(self, extent: Extent) -> ast.expr:
        """The test that all sizes which an extent names lie within it."""
        if extent.what in ("shift", "power"):
            return self.code.constant(not extent.of)  # tested where they are computed (`ValueCode.applied`)
        tests: dict[str, Callable[[Extent], list[ast.expr]]] = {
            "lanes": self._lanes,
            "length": self._length,
            "rank": self._rank,
            "trips": self._trips,
            "number": self._number,
            "numbers": self._numbers,
            "axes": self._axes,
        }
        found = tests[extent.what](extent) if extent.what in tests else []
        return self.code.all_of(found) if found else self.code.constant(False)

    def _between(self, e: Extent, number: ast.expr) -> ast.expr:
        return self.code.compare(self.code.constant(e.least), "<=", number, "<=", self.code.constant(e.most))

    def _every(self, condition: ast.expr, items: ast.expr) -> ast.expr:
        return self.code.call("all", self.code.each(condition, ("_o",), items))

    def _lanes(self, e: Extent) -> list[ast.expr]:
        name = e.of.partition("#")[0]
        types = self.clause.types
        paths = sorted((types[p].place, p) for p, ty in types.items() if ty.lanes == name and not ty.pointer)
        alone = [] if "#" in e.of else [p for _, p in paths[:1]]  # a place has those of its elements
        found = [self._between(e, self.access.lanes(self.matched.node(p))) for p in alone]
        for s in self.clause.several:
            if s.type.lanes == name and not s.type.pointer and not s.type.place:
                self.matched.nodes.add(s.path)
                found.append(self._every(self._between(e, self.access.lanes(self.access.each)), s.code))
        return found

    def _length(self, e: Extent) -> list[ast.expr]:
        return [self._between(e, self.code.call("_size", items)) for items in self._sequences(e.of)]

    def _rank(self, e: Extent) -> list[ast.expr]:
        return [self._between(e, self.code.call("_size", s)) for s in (*self._sequences("_"), *self._sequences(""))]

    def _sequences(self, of: str) -> Iterator[ast.expr]:
        """The sequences of a match: of this name, without one (`_`), or all that have one."""
        if of == "_":
            yield from map(self.matched.read, self.clause.unnamed)
            return
        for name, bound in self.clause.names.items():
            binding = self.rule.bindings.get(name)
            several = binding is not None and binding.sort in (Sort.NODES, Sort.VALUES)
            if bound.kind == "read" and (name == of or (not of and several)):
                yield self.matched.read(bound)

    def _trips(self, e: Extent) -> list[ast.expr]:
        if "vmax" not in self.facts:
            return []
        ends = []
        for name in e.of.split(", "):
            bound = self.clause.names.get(name)
            if bound is None or bound.kind == "value":
                return []
            if bound.kind == "node":
                ends.append(self.access.operand(self.matched.read(bound), 0))
            else:
                each = self.code.each(self.access.operand(self.access.each, 0), ("_o",), self.matched.read(bound))
                ends.append(self.code.star(each))
        return [self._between(e, self.code.call("_trips", self.code.name("F_vmax"), self.code.list_of(ends)))]

    def _number(self, e: Extent) -> list[ast.expr]:
        return [self._between(e, local) for local in self._returned(e.of)]

    def _numbers(self, e: Extent) -> list[ast.expr]:
        limits = [self.code.constant(n) for n in (e.most, *e.each[0])]
        return [self.code.call("_numbers_within", local, *limits) for local in self._returned(e.of)]

    def _returned(self, of: str) -> list[ast.expr]:
        """The results of a helper, if every call of it is the value of a `let`."""
        helper, _, result = of.partition(".")
        extern = self.rule.externs.get(helper)
        lets = [c for c in self.rule.syntax.clauses if isinstance(c, S.Let) and isinstance(c.value, S.ECall)]
        mine = [c for c in lets if isinstance(c.value, S.ECall) and c.value.name == helper]
        everything = S.walk(*self.rule.syntax.clauses, self.rule.syntax.target)
        if extern is None or sum(isinstance(e, S.ECall) and e.name == helper for e in everything) != len(mine):
            return []
        at = next((k for k, r in enumerate(extern.results) if r.name == result), None)
        return [] if at is None else [self.matched.locals[c.names[at]] for c in mine]

    def _axes(self, e: Extent) -> list[ast.expr]:
        pairs = [self.code.tuple_of([self.code.constant(i), self.code.constant(n)]) for i, n in e.each]

        def within(axes: ast.expr) -> ast.expr:
            limits = self.code.constant(e.least), self.code.constant(e.most), self.code.tuple_of(pairs)
            return self.code.call("_axes_within", axes, *limits)

        if e.of.startswith("axes(") and "axes" in self.facts:
            name = e.of[5:-1].partition("#")[0]
            bound = self.clause.names.get(name)
            if bound is not None and bound.kind == ("read" if "#" in e.of else "node"):
                return [self._axes_of(bound, within)]
            return []
        if "." in e.of:
            return list(map(within, self._returned(e.of)))
        return list(map(within, self._sequences(e.of))) if e.of else []

    def _axes_of(self, bound: Binding, within: Callable[[ast.expr], ast.expr]) -> ast.expr:
        """The test of the axes of a node, or of each node of a sequence."""
        if bound.kind == "node":
            return within(self.code.call("F_axes", self.matched.read(bound)))
        return self._every(within(self.code.call("F_axes", self.access.each)), self.matched.read(bound))

    def leaves(self) -> ast.expr:
        """The matched nodes whose operands the pattern does not match."""
        ops, names = self.clause.ops, self.clause.names.values()
        paths = {p for p in self.clause.types if p and p not in ops}
        paths |= {b.path for b in names if b.kind == "node" and b.path and b.path not in ops}
        found = [self.matched.node(p) for p in sorted(paths)]
        self.matched.nodes.update(s.path for s in self.clause.several)
        return self.code.tuple_of([*found, *(self.code.star(s.code) for s in self.clause.several)])
