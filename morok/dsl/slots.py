"""Which dtype tests a row needs: those that its ops do not make superfluous."""

from __future__ import annotations

import math
from collections.abc import Mapping

from morok.dialect import OpInfo
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.rows import Accessors, CodeTest, Path, Test, TypeTest, Variant, hole

ANY = "any"  # the element of a node whose dtype nothing looks at


class Slots:
    """Which nodes of a row share their element dtype, and their lanes, whatever graph the row is matched with."""

    def __init__(self, rule: CheckedRule, row: Variant) -> None:
        self.rule = rule
        self.dialect = rule.dialect
        self.access = Accessors(rule.dialect)
        self.row = row
        self.parent: dict[object, object] = {}
        self.known: dict[object, frozenset[str]] = {}
        for path, op in row.ops.items():
            info = self.dialect.ops[op]
            if info.params:
                self._pointwise(path, info)
        same = self.access.same("{0}", "{1}")
        for test in row.tests:
            if isinstance(test, CodeTest) and test.template == same:
                a, b = test.paths
                self.join(("e", a), ("e", b))
                self.join(("l", a), ("l", b))

    def find(self, x: object) -> object:
        while x in self.parent:
            x = self.parent[x]
        return x

    def join(self, a: object, b: object) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        self.parent[a] = b
        if a in self.known:
            self.narrow(b, self.known.pop(a))

    def narrow(self, slot: object, names: frozenset[str]) -> None:
        slot = self.find(slot)
        self.known[slot] = self.known[slot] & names if slot in self.known else names

    def _pointwise(self, path: Path, info: OpInfo) -> None:
        words = {"result": info.result}
        for i, word in enumerate(info.params):
            if (*path, i) in self.row.types or word == info.result:
                self._word(("e", (*path, i)), word, path, info)
        self._word(("e", path), words["result"], path, info)
        # one lane count for operands and result; a Where's condition may be a scalar, so it is not taken for granted
        scalar_first = info.params[0] not in info.domains and len(info.params) > 1
        for i in range(1 if scalar_first else 0, len(info.params)):
            self.join(("l", (*path, i)), ("l", path))

    def _word(self, slot: object, word: str, path: Path, info: OpInfo) -> None:
        if word in info.domains:
            letter = ("letter", path, word)
            self.narrow(letter, frozenset(info.domains[word]))
            self.join(slot, letter)
        elif word:
            self.narrow(slot, frozenset((word,)))

    def dtype_tests(self) -> list[Test]:
        rule = self.rule
        access = self.access
        tests: list[Test] = []
        holders: dict[str, list[Path]] = {}  # one path for each class of each dtype variable
        done: set[tuple[str, object]] = set()
        for path, ty in sorted(self.row.types.items(), key=lambda item: (len(item[0]), item[0])):
            if ty.place or (ty.fixed and ty.element == ANY):
                continue
            if ty.pointer:
                tests += self._pointer(path, ty)
                continue
            slot = self.find(("e", path))
            if (ty.element, slot) in done:
                continue
            done.add((ty.element, slot))
            known = self.known.get(slot)
            if ty.fixed:
                if known != frozenset((ty.element,)):
                    tests.append(TypeTest(path, frozenset((ty.element,)), known))
                continue
            first = holders.setdefault(ty.element, [])
            if not first:
                allowed = frozenset(rule.domains[ty.element])
                if not (allowed >= known if known is not None else allowed >= set(self.dialect.dtypes)):
                    tests.append(TypeTest(path, allowed, known))
            else:
                tests.append(CodeTest((first[0], path), f"{access.scalar('{0}')} {access.equal} {access.scalar('{1}')}"))
            first.append(path)
        return tests + self._joint(holders)

    def _pointer(self, path: Path, ty: Ty) -> list[Test]:
        access = self.access
        tests: list[Test] = [CodeTest((path,), access.inline["in.ptr"].format(n="{0}"))]
        pointee = access.inline["pointee"].format(n="{0}")
        allowed = {ty.element} if ty.fixed else set(self.rule.domains[ty.element])
        if ANY not in allowed and not allowed >= set(self.dialect.dtypes):
            tests.append(CodeTest((path,), f"{pointee} in {{table}}", ", ".join(f"D_{n}" for n in sorted(allowed))))
        return tests

    def _joint(self, holders: Mapping[str, list[Path]]) -> list[Test]:
        """Where the admitted choices are not a product of the domains: a test of all dtype variables at once."""
        rule = self.rule
        free = [v for v in rule.domains if v in holders]
        combos = {tuple(i.dtypes[v] for v in free) for i in rule.instances}
        if len(free) < 2 or len(combos) == math.prod(len(rule.domains[v]) for v in free):
            return []
        access = self.access
        key = ", ".join(access.scalar(hole(i)) for i in range(len(free)))
        table = ", ".join("(" + ", ".join(f"D_{n}" for n in c) + ")" for c in sorted(combos))
        return [CodeTest(tuple(holders[v][0] for v in free), f"({key}) in {{table}}", table)]

    def lane_tests(self) -> list[Test]:
        if "lanes" not in self.access.inline:
            return []
        access = self.access
        tests: list[Test] = []
        first: dict[str, Path] = {}
        done: set[tuple[object, object]] = set()
        for path, ty in sorted(self.row.types.items(), key=lambda item: (len(item[0]), item[0])):
            slot = self.find(("l", path))
            if ty.pointer or ty.place or (ty.lanes, slot) in done:
                continue
            done.add((ty.lanes, slot))
            if isinstance(ty.lanes, int):
                tests.append(CodeTest((path,), f"{access.lanes('{0}')} == {ty.lanes}"))
            elif ty.lanes in first:
                tests.append(CodeTest((first[ty.lanes], path), f"{access.lanes('{0}')} == {access.lanes('{1}')}"))
            else:
                first[ty.lanes] = path
        return tests
