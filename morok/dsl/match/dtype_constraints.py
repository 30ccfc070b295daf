"""The constraints on dtypes and lanes that a clause needs: those that its ops do not imply.

Ops imply constraints only in a dialect with closed types. In others, nodes may be of types that the dialect does not list, and
the matcher tests every node whose type the rule depends on.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from morok.dialect import OpInfo, built_in
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.match.clauses import Clause, Clauses, Constraint, Path, Several

ANY: Final = "any"  # the element of a node whose dtype no op depends on


class DtypeConstraints:
    """Classes of a clause's nodes that share their element dtype, or their lanes, in every match."""

    def __init__(self, rule: CheckedRule, clause: Clause, made: Clauses) -> None:
        self.rule = rule
        self.dialect = rule.dialect
        self.made = made
        self.code = made.code
        self.access = made.access
        self.clause = clause
        self.parent: dict[object, object] = {}
        self.known: dict[object, frozenset[str]] = {}
        self.holders: dict[str, list[Path]] = {}  # one path for each class of each dtype variable
        self.first: dict[int | str, Path] = {}  # a path for each named number of lanes
        self.closed = bool(getattr(rule.dialect, "closed_types", False))
        for path, op in clause.ops.items() if self.closed else ():
            info = self.dialect.ops[op]
            if info.params:
                self._pointwise(path, info)
        # of the built-in dialect, whose `same` is identity: nodes of others say their types
        for c in clause.constraints if built_in(rule.dialect) else ():
            if len(c.paths) == 2 and c.condition is self.access.same(*map(made.node, c.paths)):
                self.join(("e", c.paths[0]), ("e", c.paths[1]))
                self.join(("l", c.paths[0]), ("l", c.paths[1]))

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
        for i, word in enumerate(info.params):
            if (*path, i) in self.clause.types or word == info.result:
                self._word(("e", (*path, i)), word, path, info)
        self._word(("e", path), info.result, path, info)
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

    def _admitted(self, ty: Ty) -> frozenset[str]:
        return frozenset((ty.element,)) if ty.fixed else frozenset(self.rule.domains[ty.element])

    def _nodes(self) -> Iterator[tuple[Path, Ty]]:
        return iter(sorted(self.clause.types.items(), key=lambda item: (len(item[0]), item[0])))

    # single nodes

    def of_dtypes(self) -> list[Constraint]:
        made: list[Constraint] = []
        done: set[tuple[str, object]] = set()
        for path, ty in self._nodes():
            if ty.pointer:
                made += self._pointer(path, ty)
            if ty.pointer or ty.place or (ty.fixed and ty.element == ANY):
                continue
            slot = self.find(("e", path))
            if (ty.element, slot) in done:
                continue
            done.add((ty.element, slot))
            known, allowed = self.known.get(slot), self._admitted(ty)
            if ty.fixed:
                if known != allowed:
                    made.append(self._in(path, allowed, known))
                continue
            first = self.holders.setdefault(ty.element, [])
            if not first:
                if not (allowed >= known if known is not None else self._every(allowed)):
                    made.append(self._in(path, allowed, known))
            else:
                made.append(self._alike(first[0], path))
            first.append(path)
        return made + self._joint()

    def _in(self, path: Path, allowed: frozenset[str], known: frozenset[str] | None) -> Constraint:
        """The constraint that the node's element dtype is in `allowed`; `known`: the possible ones, if the ops limit them."""
        return self.made.constraint(self._is_in(self.made.node(path), allowed, known), path)

    def _is_in(self, node: ast.expr, allowed: frozenset[str], known: frozenset[str] | None) -> ast.expr:
        if known is not None:
            wanted = allowed & known
            for name in (n for n in self.access.inline if n.startswith("in.")):
                members = self.dialect.classes.get(name[3:], frozenset((name[3:],))) & known
                if members == wanted:
                    return self.access.asked(name, node)
                if known - members == wanted:
                    return self.code.unary("not", self.access.asked(name, node))
        scalar = self.access.scalar(node)
        if len(allowed) == 1:
            return self.access.alike(scalar, self.access.dtype(next(iter(allowed))))
        return self.code.compare(scalar, "in", self.made.dtypes(allowed))

    def _alike(self, a: Path, b: Path) -> Constraint:
        """The constraint that two nodes have one element dtype."""
        first, second = (self.access.scalar(self.made.node(p)) for p in (a, b))
        return self.made.constraint(self.access.alike(first, second), a, b)

    def _pointer(self, path: Path, ty: Ty) -> list[Constraint]:
        node = self.made.node(path)
        made = [self.made.constraint(self.access.asked("in.ptr", node), path)]
        allowed = self._admitted(ty)
        if ANY not in allowed and not self._every(allowed):
            pointee = self.access.asked("pointee", node)
            made.append(self.made.constraint(self.code.compare(pointee, "in", self.made.dtypes(allowed)), path))
        return made

    def _joint(self) -> list[Constraint]:
        """A constraint on all dtype variables at once, if the admitted choices are not a product of the domains."""
        free = [v for v in self.rule.domains if v in self.holders]
        if len(free) < 2:
            return []
        combinations = {tuple([i.dtypes[v] for v in free]) for i in self.rule.instances}
        if len(combinations) == math.prod(len(self.rule.domains[v]) for v in free):
            return []
        paths = [self.holders[v][0] for v in free]
        key = self.code.tuple_of([self.access.scalar(self.made.node(p)) for p in paths])
        return [self.made.constraint(self.code.compare(key, "in", self._table(combinations)), *paths)]

    def _table(self, combinations: Iterable[tuple[str, ...]]) -> ast.expr:
        return self.made.members(self.code.tuple_of(tuple(map(self.access.dtype, c))) for c in sorted(combinations))

    def of_lanes(self) -> list[Constraint]:
        made: list[Constraint] = []
        done: set[tuple[object, object]] = set()
        for path, ty in self._nodes():
            slot = self.find(("l", path))
            if ty.pointer or ty.place or (ty.lanes, slot) in done or self._one_lane(ty.lanes):
                continue
            done.add((ty.lanes, slot))
            lanes = self.access.lanes(self.made.node(path))
            if isinstance(ty.lanes, int):
                made.append(self.made.constraint(self.code.compare(lanes, "==", self.code.constant(ty.lanes)), path))
            elif ty.lanes in self.first:
                first = self.first[ty.lanes]
                wanted = self.access.lanes(self.made.node(first))
                made.append(self.made.constraint(self.code.compare(wanted, "==", lanes), first, path))
            else:
                self.first[ty.lanes] = path
        return made

    def _one_lane(self, lanes: int | str) -> bool:
        """True if all nodes have these lanes, in a dialect whose nodes have one."""
        return not self.access.counts_lanes and (lanes == 1 or isinstance(lanes, str))

    # operands bound to one name

    def of_sequences(self) -> list[Constraint]:
        """The constraints that every element of the clause's sequences has the dtype and the lanes of its name, as the proof
        assumes.

        To be called after those of single nodes: an element is compared with a single node of the same dtype variable, or with
        other elements if there is none.
        """
        made: list[Constraint] = []
        alone: dict[str, list[Several]] = {}
        counts: dict[str, list[Several]] = {}
        each = self.access.each
        for s in self.clause.several:
            ty = s.type
            if ty.place:
                continue
            if ty.pointer:
                made.append(self._each(s, self.access.asked("in.ptr", each)))
                made += self._each_in(s, self.access.asked("pointee", each))
                continue
            made += self._elements(s, alone)
            made += self._counts(s, counts)
        for name, sequences in alone.items():
            made.append(self._one(sequences, self.access.scalar(each)))
            made += self._joint_with(name, sequences[0])
        return made + [self._one(sequences, self.access.lanes(each)) for sequences in counts.values()]

    def _elements(self, s: Several, alone: dict[str, list[Several]]) -> list[Constraint]:
        ty, scalar = s.type, self.access.scalar(self.access.each)
        if ty.fixed:
            return (
                [] if ty.element == ANY else [self._each(s, self.access.alike(scalar, self.access.dtype(ty.element)))]
            )
        held = self.holders.get(ty.element)
        if held:
            wanted = self.access.scalar(self.made.node(held[0]))
            return [self._each(s, self.access.alike(wanted, scalar), held[0])]
        alone.setdefault(ty.element, []).append(s)
        return self._each_in(s, scalar)

    def _counts(self, s: Several, counts: dict[str, list[Several]]) -> list[Constraint]:
        lanes, wanted = self.access.lanes(self.access.each), s.type.lanes
        if self._one_lane(wanted):
            return []
        if isinstance(wanted, int):
            return [self._each(s, self.code.compare(lanes, "==", self.code.constant(wanted)))]
        if wanted in self.first:
            path = self.first[wanted]
            return [self._each(s, self.code.compare(self.access.lanes(self.made.node(path)), "==", lanes), path)]
        if not self.rule.own_lanes(wanted):
            counts.setdefault(wanted, []).append(s)
        return []

    def _each(self, s: Several, condition: ast.expr, *paths: Path) -> Constraint:
        """The constraint that every element of a sequence meets a condition, which may also read the nodes at some paths."""
        all_of_them = self.code.call("all", self.code.each(condition, ("_o",), s.code))
        return self.made.constraint(all_of_them, s.path, *paths, ends=s.ends)

    def _each_in(self, s: Several, dtype: ast.expr) -> list[Constraint]:
        allowed = self._admitted(s.type)
        if ANY in allowed or self._every(allowed):
            return []
        return [self._each(s, self.code.compare(dtype, "in", self.made.dtypes(allowed)))]

    def _one(self, sequences: list[Several], of: ast.expr) -> Constraint:
        """The constraint that all elements of these sequences have one dtype, or one number of lanes."""
        items = self.code.list_of([self.code.star(s.code) for s in sequences])
        different = self.code.call("len", self.code.distinct(of, ("_o",), items))
        condition = self.code.compare(different, "<=", self.code.constant(1))
        return self.made.constraint(condition, *(s.path for s in sequences), ends=max(s.ends for s in sequences))

    def _joint_with(self, name: str, s: Several) -> list[Constraint]:
        """The constraints of `_joint` for a dtype variable that only the elements of sequences have."""
        free = [v for v in self.rule.domains if self.holders.get(v)]
        combinations = {(*(i.dtypes[v] for v in free), i.dtypes[name]) for i in self.rule.instances}
        if len(combinations) == len({c[:-1] for c in combinations}) * len({c[-1] for c in combinations}):
            return []
        paths = [self.holders[v][0] for v in free]
        key = [*(self.access.scalar(self.made.node(p)) for p in paths), self.access.scalar(self.access.each)]
        return [self._each(s, self.code.compare(self.code.tuple_of(key), "in", self._table(combinations)), *paths)]
