"""The values of terms where some unknowns have values: what simplifying would compute, without a term made of every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from morok.prove.smt.fold import value_of
from morok.prove.smt.terms import Expr, Value

_ASKED: Final = object()  # not computed yet; None: the values of these unknowns do not say


class Evaluator:
    """Terms, to be evaluated at many values of their unknowns.

    Subterms are numbered by the last of the unknowns that they depend on: from one choice of values to the next, what depends
    only on unknowns before the first that changed stays. So choices are best tried in lexicographic order.
    """

    def __init__(self, terms: Sequence[Expr], unknowns: Sequence[Expr]) -> None:
        level = {id(u): n for n, u in enumerate(unknowns, 1)}
        order = _operands_first(terms, level)
        for e in order:
            level.setdefault(id(e), max((level[id(a)] for a in e.args), default=0))
        order.sort(key=lambda e: level[id(e)])
        place = {id(e): n for n, e in enumerate(order)}
        given = {id(u) for u in unknowns}
        self._nodes = [(e, () if id(e) in given else tuple([place[id(a)] for a in e.args])) for e in order]
        self._roots = {id(t): place[id(t)] for t in terms}
        self._unknowns = [place.get(id(u)) for u in unknowns]
        self._begin = [
            next((n for n, e in enumerate(order) if level[id(e)] > k), len(order)) for k in range(len(unknowns) + 1)
        ]
        self._blank: list[Any] = [e.value if e.head == "value" or not args else _ASKED for e, args in self._nodes]
        self._known = list(self._blank)
        self._values: Sequence[Value | None] = ()

    def choose(self, values: Sequence[Value | None]) -> None:
        """Have the unknowns these values from here on, in their order; None: any value."""
        before = self._values
        first = next((n for n, v in enumerate(values) if n >= len(before) or v != before[n]), len(values))
        begin = self._begin[first]
        self._known[begin:] = self._blank[begin:]
        for place, value in zip(self._unknowns[first:], values[first:], strict=True):
            if place is not None:
                self._known[place] = value
        self._values = values

    def value(self, term: Expr) -> Value | None:
        """The value of one of the terms; None if it has none by these of the unknowns alone."""
        root = self._roots[id(term)]
        known, nodes = self._known, self._nodes
        todo = [root]
        while todo:
            at = todo[-1]
            if known[at] is not _ASKED:
                todo.pop()
                continue
            e, args = nodes[at]
            found = _LAZY.get(e.head, _strict)(e, args, known)
            if found is _ASKED:  # for the first operand that decides
                todo.append(next(a for a in args if known[a] is _ASKED) if e.head != "ite" else _branch(args, known))
            else:
                known[at] = found
                todo.pop()
        found_value: Value | None = known[root]
        return found_value


def _operands_first(terms: Sequence[Expr], given: dict[int, int]) -> list[Expr]:
    """Every subterm once, behind its operands; what is given is taken whole."""
    order: list[Expr] = []
    seen: set[int] = set()
    todo = [(t, False) for t in reversed(terms)]
    while todo:
        at, ready = todo.pop()
        if ready:
            order.append(at)
        elif id(at) not in seen:
            seen.add(id(at))
            todo.append((at, True))
            if id(at) not in given:
                todo += [(a, False) for a in reversed(at.args)]
    return order


# The value of a term over operands; _ASKED where one more of them has to be known.


def _strict(e: Expr, args: tuple[int, ...], known: list[Any]) -> Any:
    values = []
    for a in args:
        value = known[a]
        if value is None or value is _ASKED:
            return value
        values.append(value)
    found = value_of(e, tuple(values))
    return found if found is None or not e.sort.width else int(found) % (1 << e.sort.width)


def _junction(absorbing: bool) -> Callable[[Expr, tuple[int, ...], list[Any]], Any]:
    def joined(e: Expr, args: tuple[int, ...], known: list[Any]) -> Any:
        found: bool | None = not absorbing
        for a in args:
            value = known[a]
            if value is absorbing or value is _ASKED:
                return value
            if value is None:
                found = None
        return found

    return joined


def _implied(e: Expr, args: tuple[int, ...], known: list[Any]) -> Any:
    a, b = known[args[0]], known[args[1]]
    if a is _ASKED:
        return a
    if a is False:
        return True
    return b if a is True or b is True or b is _ASKED else None


def _chosen(e: Expr, args: tuple[int, ...], known: list[Any]) -> Any:
    condition = known[args[0]]
    return condition if condition is None or condition is _ASKED else known[args[1 if condition else 2]]


def _branch(args: tuple[int, ...], known: list[Any]) -> int:
    """The operand of a choice that has to be known next."""
    condition = known[args[0]]
    return args[0] if condition is _ASKED else args[1 if condition else 2]


_LAZY: Final = {"and": _junction(False), "or": _junction(True), "=>": _implied, "ite": _chosen}
