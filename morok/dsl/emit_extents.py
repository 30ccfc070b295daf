"""Python text that is true if a match lies within the extents of its rule's proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.emit_nodes import Nodes
from morok.dsl.extent import Extent
from morok.dsl.rows import BoundCode, BoundNode, BoundNodes

OUTSIDE: Final = "False"  # of what a matcher cannot know


class Within(Nodes):
    """Tests of the sizes of a match. What has no test here is outside of every extent."""

    def within(self, extent: Extent) -> str:
        """The test of one extent: all that it names, as the matched node has it."""
        if extent.what in ("shift", "power"):
            return "True" if not extent.of else OUTSIDE  # where they are computed (`amount`)
        tests: dict[str, Callable[[Extent], list[str]]] = {
            "lanes": self._lanes,
            "length": self._length,
            "rank": self._rank,
            "trips": self._trips,
            "number": self._number,
            "numbers": self._numbers,
            "axes": self._axes,
        }
        found = tests[extent.what](extent) if extent.what in tests else []
        return " and ".join(found) if found else OUTSIDE

    def _between(self, e: Extent, code: str) -> str:
        return f"{e.least} <= {code} <= {e.most}"

    def _lanes(self, e: Extent) -> list[str]:
        name = e.of.partition("#")[0]
        paths = sorted(p for p, ty in self.row.types.items() if ty.lanes == name and not ty.pointer and not ty.place)
        found = [] if "#" in e.of else [self._between(e, self.access.lanes(self.node_at(p))) for p in paths[:1]]
        for s in self.row.several:
            if s.type.lanes == name and not s.type.pointer and not s.type.place:
                each = s.template.format(self.node_at(s.path))
                found.append(f"all([{self._between(e, self.access.lanes('_o'))} for _o in {each}])")
        return found

    def _length(self, e: Extent) -> list[str]:
        return [self._between(e, f"_size({code})") for code in self._sequences(e.of)]

    def _rank(self, e: Extent) -> list[str]:
        return [self._between(e, f"_size({code})") for code in (*self._sequences("_"), *self._sequences(""))]

    def _sequences(self, of: str) -> Iterator[str]:
        """The sequences of a match: of this name, without one (`_`), or all that have one."""
        if of == "_":
            yield from map(self._spelled, self.row.unnamed)
            return
        for name, bound in self.row.names.items():
            binding = self.rule.bindings.get(name)
            several = binding is not None and binding.sort in (Sort.NODES, Sort.VALUES)
            if isinstance(bound, (BoundNodes, BoundCode)) and (name == of or (not of and several)):
                yield self._spelled(bound)

    def _spelled(self, bound: BoundNodes | BoundCode) -> str:
        node = self.node_at(bound.path)
        return bound.template.format(node) if isinstance(bound, BoundCode) else f"{self.access.operands(node)}{bound.span}"

    def _trips(self, e: Extent) -> list[str]:
        if "vmax" not in self.dialect.facts:
            return []
        ends = []
        for name in e.of.split(", "):
            bound = self.row.names.get(name)
            if isinstance(bound, BoundNode):
                ends.append(f"{self.access.operands(self.node_at(bound.path))}[0]")
            elif isinstance(bound, (BoundNodes, BoundCode)):
                ends.append(f"*[{self.access.operands('_o')}[0] for _o in {self._spelled(bound)}]")
            else:
                return []
        return [f"{e.least} <= _trips(F_vmax, [{', '.join(ends)}]) <= {e.most}"]

    def _number(self, e: Extent) -> list[str]:
        return [self._between(e, local) for local in self._returned(e.of)]

    def _numbers(self, e: Extent) -> list[str]:
        return [f"_numbers_within({local}, {e.most}, {e.each[0][0]}, {e.each[0][1]})" for local in self._returned(e.of)]

    def _returned(self, of: str) -> list[str]:
        """The results of a helper, as text, if every call of it is the value of a `let`."""
        helper, _, result = of.partition(".")
        extern = self.rule.externs.get(helper)
        lets = [c for c in self.rule.syntax.clauses if isinstance(c, S.Let) and isinstance(c.value, S.ECall)]
        mine = [c for c in lets if isinstance(c.value, S.ECall) and c.value.name == helper]
        everything = S.walk(*self.rule.syntax.clauses, self.rule.syntax.target)
        if extern is None or sum(isinstance(e, S.ECall) and e.name == helper for e in everything) != len(mine):
            return []
        at = next((k for k, r in enumerate(extern.results) if r.name == result), None)
        return [] if at is None else [self.locals[c.names[at]] for c in mine]

    def _axes(self, e: Extent) -> list[str]:
        test = f"_axes_within({{}}, {e.least}, {e.most}, {e.each!r})"
        if e.of.startswith("axes(") and "axes" in self.dialect.facts:
            name = e.of[5:-1].partition("#")[0]
            bound = self.row.names.get(name)
            if isinstance(bound, BoundNode) and "#" not in e.of:
                return [test.format(f"F_axes({self.node_at(bound.path)})")]
            if isinstance(bound, (BoundNodes, BoundCode)) and "#" in e.of:
                return [f"all([{test.format('F_axes(_o)')} for _o in {self._spelled(bound)}])"]
            return []
        if "." in e.of:
            return [test.format(local) for local in self._returned(e.of)]
        return [test.format(code) for code in self._sequences(e.of)] if e.of else []

    def leaves(self) -> str:
        """The nodes of the match below which a rule does not look, as items of a tuple."""
        paths = [p for p in self.row.types if p and p not in self.row.ops]
        paths += [b.path for b in self.row.names.values() if isinstance(b, BoundNode) and b.path and b.path not in self.row.ops]
        found = [self.node_at(p) for p in sorted(set(paths))]
        found += [f"*{s.template.format(self.node_at(s.path))}" for s in self.row.several]
        return f"({', '.join([*found, ''])})" if found else "()"
