"""The tests that a match lies within the extents of its rule's proof."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from morok.dsl.extent import Extent
from morok.dsl.match.matched import Matched


class ExtentTests:
    """Tests of the sizes of a match. A size without a test here counts as beyond its extent."""

    def __init__(self, matched: Matched) -> None:
        self.matched = matched
        self.clause = matched.clause
        self.access = matched.access
        self.code = matched.code

    def within(self, extent: Extent) -> ast.expr:
        """The test that all sizes which an extent names lie within it."""
        if extent.what in ("shift", "power"):
            return self.code.constant(not extent.of)  # tested where they are computed (`ValueCode.applied`)
        tests: dict[str, Callable[[Extent], list[ast.expr]]] = {
            "lanes": self._lanes,
            "length": self._length,
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

    def _sequences(self, of: str) -> Iterator[ast.expr]:
        """The sequences of a match: of this name, or without one (`_`)."""
        if of == "_":
            yield from map(self.matched.read, self.clause.unnamed)
            return
        bound = self.clause.names.get(of)
        if bound is not None and bound.kind == "read":
            yield self.matched.read(bound)

    def leaves(self) -> ast.expr:
        """The matched nodes whose operands the pattern does not match."""
        ops, names = self.clause.ops, self.clause.names.values()
        paths = {p for p in self.clause.types if p and p not in ops}
        paths |= {b.path for b in names if b.kind == "node" and b.path and b.path not in ops}
        found = [self.matched.node(p) for p in sorted(paths)]
        self.matched.nodes.update(s.path for s in self.clause.several)
        return self.code.tuple_of([*found, *(self.code.star(s.code) for s in self.clause.several)])
