"""The cover of one rule's pattern by another's, with the meaning of its names there.

Patterns are compared as trees: an answer of None means only that nothing was found.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.dsl.special_ops import chooses, invalid_op, loads
from morok.prove.forms import mentions_maybe_invalid

MOST_VARIANTS: Final = 16
# What a name or an unnamed part of the earlier pattern stands for: parts of the later one.
Match = dict[str, S.Syntax]


def variants(p: S.Pattern) -> list[S.Pattern]:
    """The pattern with every choice made: operand orders, alternatives, ops. Empty where there are too many.

    Parts that offer no choice are kept as they are, so that what is known of them by identity stays known.
    """
    found = list(itertools.islice(_variants(p), MOST_VARIANTS + 1))
    return found if len(found) <= MOST_VARIANTS else []


def _variants(p: S.Pattern) -> Iterator[S.Pattern]:
    if isinstance(p, S.PAlternatives):
        for option in p.options:
            yield from _variants(option)
    elif isinstance(p, S.PBind):
        for inner in _variants(p.inner):
            yield p if inner is p.inner else dataclasses.replace(p, inner=inner)
    elif isinstance(p, S.POp):
        yield from _op_variants(p)
    else:
        yield p


def _op_variants(p: S.POp) -> Iterator[S.Pattern]:
    for args in itertools.product(*(list(_variants(a)) for a in p.args)):
        same = all(a is b for a, b in zip(args, p.args, strict=True))
        for op in p.ops:
            chosen = (
                p
                if same and len(p.ops) == 1 and not p.commutative
                else dataclasses.replace(p, args=args, ops=(op,), commutative=False)
            )
            yield chosen
            if p.commutative and len(args) == 2 and args[0] != args[1]:
                yield dataclasses.replace(p, args=args[::-1], ops=(op,), commutative=False)


class Matching:
    """The ways in which an earlier rule's pattern matches all that a later one's matches."""

    def __init__(self, above: CheckedRule, below: CheckedRule) -> None:
        self.above = above
        self.below = below
        d = below.dialect
        self.maybe_invalid = {invalid_op(d)} | loads(d) | {name for name, info in d.ops.items() if chooses(info)}

    def ways(
        self, p: S.Pattern, q: S.Pattern, pairs: list[tuple[S.Syntax, S.Syntax]], names: Match
    ) -> Iterator[tuple[list[Any], Match]]:
        """(pairs of parts, names) for each way in which `p` matches wherever `q`, without choices, does."""
        if isinstance(q, S.PBind):
            yield from self.ways(p, q.inner, pairs, names)
        elif isinstance(p, S.PBind):
            if (bound := _bound(names, p.name, q)) is not None:
                yield from self.ways(p.inner, q, pairs, bound)
        elif isinstance(p, S.PAlternatives):
            for option in p.options:
                yield from self.ways(option, q, pairs, names)
        elif isinstance(p, S.PVar):
            if isinstance(q, S.PSequence | S.PType | S.PList) or (
                not mentions_maybe_invalid(p.type) and self.invalid_within(q)
            ):
                return
            bound = names if p.ignored else _bound(names, p.name, q)
            if bound is not None:
                yield [*pairs, (p, q)], bound
        elif isinstance(p, S.PConst):
            if _constant_covers(p, q):
                bound = names if p.name is None else _bound(names, p.name, q, value=True)
                if bound is not None:
                    yield [*pairs, (p, q)], bound
        elif isinstance(p, S.PLiteral):
            if isinstance(q, S.PLiteral) and p.text == q.text:
                yield [*pairs, (p, q)], names
        elif isinstance(p, S.PType):
            if (
                isinstance(q, S.PType)
                and p == q
                and isinstance(p.type, S.TName)
                and p.type.name in self.above.dialect.dtypes
            ):
                yield pairs, names
        elif isinstance(p, S.POp) and isinstance(q, S.POp) and q.ops[0] in p.ops and len(p.args) == len(q.args):
            yield from self.operands(p.args, q.args, [*pairs, (p, q)], names)
            if p.commutative and len(p.args) == 2:
                yield from self.operands(p.args[::-1], q.args, [*pairs, (p, q)], names)

    def operands(self, ps: Any, qs: Any, pairs: list[Any], names: Match) -> Iterator[tuple[list[Any], Match]]:
        if not ps:
            yield pairs, names
            return
        for more, bound in self.ways(ps[0], qs[0], pairs, names):
            yield from self.operands(ps[1:], qs[1:], more, bound)

    def invalid_within(self, q: S.Syntax) -> bool:
        return any(
            isinstance(at, S.TMaybeInvalid) or (isinstance(at, S.POp) and at.ops[0] in self.maybe_invalid)
            for at in S.walk(q)
        )

    def instances(self, pairs: list[tuple[S.Syntax, S.Syntax]]) -> Mapping[int, Instance] | None:
        """For each of the later rule's instances (by number) an instance of the earlier one that takes the same dtypes; None if
        one has none.
        """
        lanes: dict[Any, Any] = {}
        typed: list[tuple[Ty, Ty]] = []
        for p, q in pairs:
            a, b = self.above.types.get(id(p)), self.below.types.get(id(q))
            if a is None or b is None or a.pointer != b.pointer or a.place != b.place:
                return None
            if isinstance(a.lanes, int) and a.lanes != b.lanes:
                return None
            if lanes.setdefault(a.lanes, b.lanes) != b.lanes:
                return None
            typed.append((a, b))
        found: dict[int, Instance] = {}
        for number, instance in enumerate(self.below.instances):
            chosen = self.instance(instance, typed)
            if chosen is None:
                return None
            found[number] = chosen
        return found

    def instance(self, below: Instance, typed: list[tuple[Ty, Ty]]) -> Instance | None:
        wanted: dict[str, str] = {}
        for a, b in typed:
            element = below.element(b)
            if a.fixed:
                if a.element not in ("any", element):
                    return None
            elif wanted.setdefault(a.element, element) != element:
                return None
        for candidate in self.above.instances:
            if all(candidate.dtypes.get(name) == dtype for name, dtype in wanted.items()):
                return candidate
        return None


def _bound(names: Match, name: str, part: S.Syntax, value: bool = False) -> Match | None:
    """`names` with one more; None if it stands for something else already."""
    known = names.get(name)
    if known is None:
        return {**names, name: part}
    if isinstance(known, S.PVar) and isinstance(part, S.PVar) and known.name == part.name and not known.ignored:
        return names  # the same node
    if (
        value
        and isinstance(known, S.PConst)
        and isinstance(part, S.PConst)
        and known.name == part.name
        and known.name is not None
    ):
        return names  # the same value
    return None


def _constant_covers(p: S.PConst, q: S.Syntax) -> bool:
    if isinstance(q, S.PConst):
        return p.kind == q.kind or (p.kind == "const" and q.kind in ("zero", "one", "true", "false"))
    return p.kind == "const" and isinstance(q, S.PLiteral)
