"""Sequences among compile-time values: lists, comprehensions, and what is said of all their items."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.dsl.values import OutOfBudget
from morok.prove import smt
from morok.prove.encoding.asked import ANY
from morok.prove.encoding.compile_time import Values
from morok.prove.encoding.encoder_state import MOST_STEPS
from morok.prove.encoding.obligation import Inapplicable, OutOfSteps
from morok.prove.kinds import Sequence, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Unsupported, both, either, is_false, is_true, negation


class Sequences(Values):
    """Sequences of nodes or of values."""

    def sequence(self, e: S.Expr) -> tuple[Any, ...]:
        v = self.expression(e)
        if not isinstance(v, Sequence):
            raise Unsupported("no sequence")
        return v.items

    def items(self, e: S.EList) -> tuple[Any, ...]:
        out: list[Any] = []
        for i in e.items:
            if isinstance(i, S.ESpread):
                out.extend(self.sequence(i.sequence))
            elif isinstance(i, S.EComprehension):
                out.extend(self.comprehension(i))
            else:
                out.append(self.existing(i))
            if len(out) > MOST_STEPS:
                raise OutOfSteps("a list beyond the budget of steps")
        return tuple(out)

    def existing(self, e: S.Expr) -> Any:
        """An item of a sequence: the sequence has a value only where all its items have one."""
        value = self.expression(e)
        self.need(self.existence(value))
        return value

    def item(self, e: S.EIndex) -> Any:
        items = self.sequence(e.sequence)
        place = self.number(self.expression(e.index))
        at = self.numbers.n.known(place.value)
        if at is None:
            raise Unsupported("a computed place in a sequence")
        self.need(place.exists, place.finite)
        if not 0 <= at < len(items):
            raise Inapplicable
        return items[at]

    def span(self, e: S.ERange) -> range:
        ends = [self.number(self.expression(x)) for x in (e.start, e.stop)]
        start, stop = [self.numbers.n.known(n.value) for n in ends]
        if start is None or stop is None:
            raise Unsupported("a range with computed ends")
        self.need(*(n.exists for n in ends), *(n.finite for n in ends))
        if stop + e.inclusive - start > MOST_STEPS:
            raise OutOfSteps("a range beyond the budget of steps")
        return range(start, stop + e.inclusive)

    def comprehension(self, e: S.EComprehension) -> list[Any]:
        out = []
        outer, meant = self.names, self.meanings
        self.meanings = {**meant, **dict.fromkeys(e.names, ANY)}
        try:
            for item in self.steps.taken(self.sequence(e.sequence)):
                parts = item.items if len(e.names) > 1 and isinstance(item, Sequence) else (item,)
                if len(parts) != len(e.names):
                    raise Inapplicable
                self.names = {**outer, **dict(zip(e.names, parts, strict=True))}
                if e.condition is None or self.admitted(e.condition):
                    out.append(self.existing(e.body))
        except OutOfBudget:
            raise OutOfSteps("a comprehension beyond the budget of steps") from None
        finally:
            self.names, self.meanings = outer, meant
        return out

    def admitted(self, condition: S.Expr) -> bool:
        """A filter, where the rule's form decides it."""
        t = self.truth(condition)
        self.need(t.exists)
        v = t.value if is_true(t.value) or is_false(t.value) else smt.simplify(t.value)
        if not (is_true(v) or is_false(v)):
            raise Unsupported("a filter that is not decided by the rule's form")
        return is_true(v)

    def paired(self, *columns: tuple[Any, ...]) -> Sequence:
        if len({len(c) for c in columns}) != 1:
            raise Inapplicable
        return Sequence(tuple(Sequence(row) for row in zip(*columns, strict=True)))

    def in_order(self, items: list[Any]) -> Sequence:
        """A sequence of numbers: it has a value where all of them have one."""
        self.need(*(n.exists for n in items))
        return Sequence(tuple(items))

    def others(self, axes: tuple[Any, ...], n: Num) -> Sequence:
        """The numbers below n that are not among these: so many for each n that the rule's form decides."""
        last, found = self.numbers.n.known(n.value), [self.numbers.n.known(a.value) for a in axes]
        if last is None or None in found:
            raise Unsupported("numbers other than computed ones")
        self.need(n.exists, n.finite, *(e for a in axes for e in (a.exists, a.finite)))
        if last < 0 or len(set(found)) != len(found) or not all(a in range(last) for a in found):
            raise Inapplicable
        if last > MOST_STEPS:
            raise OutOfSteps("a list beyond the budget of steps")
        return Sequence(tuple(self.constant(k) for k in range(last) if k not in found))

    def every(self, items: tuple[Any, ...]) -> Truth:
        truths = [self.as_truth(v) for v in items]
        return Truth(both(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    def some(self, items: tuple[Any, ...]) -> Truth:
        truths = [self.as_truth(v) for v in items]
        return Truth(either(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    def either_of(self, condition: Truth, yes: Any, no: Any) -> Any:
        """One of two values."""
        c, choose = condition.value, self.numbers.n.choose
        if isinstance(yes, Num) and isinstance(no, Num):
            exists = both(condition.exists, either(negation(c), yes.exists), either(c, no.exists))
            low = either(both(c, yes.minus_infinity), both(negation(c), no.minus_infinity))
            high = either(both(c, yes.plus_infinity), both(negation(c), no.plus_infinity))
            return Num(choose(c, yes.value, no.value), exists, low, high)
        if isinstance(yes, Truth) and isinstance(no, Truth):
            value = either(both(c, yes.value), both(negation(c), no.value))
            return Truth(value, both(condition.exists, either(negation(c), yes.exists), either(c, no.exists)))
        raise Unsupported("a choice among these")
