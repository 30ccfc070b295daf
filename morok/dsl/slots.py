"""The dtype tests that a row needs: its ops make the others superfluous.

An op makes a test superfluous only in a dialect whose types are closed: elsewhere its nodes may be of types that the dialect does
not list, and every node whose type a rule looks at is tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from morok.dialect import OpInfo
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.rows import Accessors, CodeTest, Path, Several, Test, TypeTest, Variant, hole

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
        self.holders: dict[str, list[Path]] = {}  # one path for each class of each dtype variable
        self.first: dict[int | str, Path] = {}  # a path for each named number of lanes
        self.closed = bool(getattr(rule.dialect, "closed_types", False))
        for path, op in row.ops.items() if self.closed else ():
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

    def _every(self, allowed: AbstractSet[str]) -> bool:
        """True if these are all dtypes that a node can have."""
        return self.closed and allowed >= set(self.dialect.dtypes)

    def dtype_tests(self) -> list[Test]:
        rule = self.rule
        access = self.access
        tests: list[Test] = []
        holders = self.holders
        done: set[tuple[str, object]] = set()
        for path, ty in sorted(self.row.types.items(), key=lambda item: (len(item[0]), item[0])):
            if ty.pointer:
                tests += self._pointer(path, ty)
            if ty.pointer or ty.place or (ty.fixed and ty.element == ANY):
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
                if not (allowed >= known if known is not None else self._every(allowed)):
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
        if ANY not in allowed and not self._every(allowed):
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
        first = self.first
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

    # operands bound to one name

    def bound_tests(self) -> list[Test]:
        """That every element of the row's sequences has the dtype and the lanes of its name, as the proof takes for granted.

        Asked once the single nodes are: an element is compared with what they say a variable is, and with other elements
        where no single node does.
        """
        tests: list[Test] = []
        alone: dict[str, list[Several]] = {}
        counts: dict[str, list[Several]] = {}
        for s in self.row.several:
            ty = s.type
            if ty.place:
                continue
            if ty.pointer:
                tests += self._each(s, self.access.inline["in.ptr"].format(n="_o"))
                pointee = self.access.inline["pointee"].format(n="_o")
                tests += self._each_of(s, pointee, {ty.element} if ty.fixed else set(self.rule.domains[ty.element]))
                continue
            tests += self._element_tests(s, alone)
            tests += self._count_tests(s, counts)
        for name, sequences in alone.items():
            tests += self._alike(sequences, self.access.scalar("_o"))
            tests += self._joint_with(name, sequences[0])
        for sequences in counts.values():
            tests += self._alike(sequences, self.access.lanes("_o"))
        return tests

    def _element_tests(self, s: Several, alone: dict[str, list[Several]]) -> list[Test]:
        ty, scalar = s.type, self.access.scalar("_o")
        if ty.fixed:
            return [] if ty.element == ANY else self._each(s, f"{scalar} {self.access.equal} D_{ty.element}")
        held = self.holders.get(ty.element)
        if held:
            said = f"{self.access.scalar('{1}')} {self.access.equal} {scalar}"
            return [CodeTest((s.path, held[0]), f"all([{said} for _o in {s.template}])")]
        alone.setdefault(ty.element, []).append(s)
        return self._each_of(s, scalar, set(self.rule.domains[ty.element]))

    def _count_tests(self, s: Several, counts: dict[str, list[Several]]) -> list[Test]:
        if "lanes" not in self.access.inline:
            return []
        lanes, wanted = self.access.lanes("_o"), s.type.lanes
        if isinstance(wanted, int):
            return self._each(s, f"{lanes} == {wanted}")
        if wanted in self.first:
            said = f"{self.access.lanes('{1}')} == {lanes}"
            return [CodeTest((s.path, self.first[wanted]), f"all([{said} for _o in {s.template}])")]
        if not self.rule.own_lanes(wanted):
            counts.setdefault(wanted, []).append(s)
        return []

    def _each(self, s: Several, condition: str) -> list[Test]:
        return [CodeTest((s.path,), f"all([{condition} for _o in {s.template}])")]

    def _each_of(self, s: Several, dtype: str, allowed: set[str]) -> list[Test]:
        if ANY in allowed or self._every(allowed):
            return []
        table = ", ".join(f"D_{n}" for n in sorted(allowed))
        return [CodeTest((s.path,), f"all([{dtype} in {{table}} for _o in {s.template}])", table)]

    def _alike(self, sequences: list[Several], what: str) -> list[Test]:
        """That all elements of these have one dtype, or one number of lanes."""
        lists = ", ".join(f"*{s.template.replace('{0}', hole(i))}" for i, s in enumerate(sequences))
        return [CodeTest(tuple(s.path for s in sequences), f"len({{{{{what} for _o in [{lists}]}}}}) <= 1")]

    def _joint_with(self, name: str, s: Several) -> list[Test]:
        """As `_joint`, for a dtype variable that only the elements of sequences have."""
        free = [v for v in self.rule.domains if self.holders.get(v)]
        combos = {(*(i.dtypes[v] for v in free), i.dtypes[name]) for i in self.rule.instances}
        product = len({c[:-1] for c in combos}) * len({c[-1] for c in combos})
        if len(combos) == product:
            return []
        keys = [self.access.scalar(hole(i + 1)) for i in range(len(free))]
        table = ", ".join("(" + ", ".join(f"D_{n}" for n in c) + ",)" for c in sorted(combos))
        key = ", ".join([*keys, self.access.scalar("_o")])
        paths = (s.path, *(self.holders[v][0] for v in free))
        return [CodeTest(paths, f"all([({key},) in {{table}} for _o in {s.template}])", table)]
