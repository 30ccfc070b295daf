"""Sequences among compile-time values: lists, comprehensions, and what is said of all their items."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.values import Values
from morok.prove.kinds import Sequence, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Unsupported, both, either, is_false, is_true


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
                out.append(self.expression(i))
        return tuple(out)

    def item(self, e: S.EIndex) -> Any:
        items = self.sequence(e.sequence)
        at = self.numbers.n.known(self.number(self.expression(e.index)).value)
        if at is None:
            raise Unsupported("a computed place in a sequence")
        if not 0 <= at < len(items):
            raise Inapplicable
        return items[at]

    def span(self, e: S.ERange) -> range:
        ends = [self.numbers.n.known(self.number(self.expression(x)).value) for x in (e.start, e.stop)]
        if ends[0] is None or ends[1] is None:
            raise Unsupported("a range with computed ends")
        return range(ends[0], ends[1] + e.inclusive)

    def comprehension(self, e: S.EComprehension) -> list[Any]:
        out = []
        outer = self.names
        for item in self.sequence(e.sequence):
            parts = item.items if len(e.names) > 1 and isinstance(item, Sequence) else (item,)
            self.names = {**outer, **dict(zip(e.names, parts, strict=True))}
            if e.condition is not None:
                t = self.truth(e.condition)
                v = t.value if is_true(t.value) or is_false(t.value) else smt.simplify(t.value)
                if not (is_true(v) or is_false(v)):
                    raise Unsupported("a filter that is not decided by the rule's form")
                if is_false(v):
                    continue
            out.append(self.expression(e.body))
        self.names = outer
        return out

    def call_len(self, xs: S.Expr) -> Num:
        v = self.expression(xs)
        if not isinstance(v, Sequence):
            raise Unsupported("the length of what is no sequence")
        n: Num = self.numbers.const(len(v.items))
        return n

    def call_zip(self, *sequences: S.Expr) -> Sequence:
        columns = [self.sequence(s) for s in sequences]
        return Sequence(tuple(Sequence(row) for row in zip(*columns, strict=False)))

    def call_all(self, xs: S.Expr) -> Truth:
        truths = [self.as_truth(v) for v in self.sequence(xs)]
        return Truth(both(*(t.value for t in truths)), both(*(t.exists for t in truths)))

    def call_any(self, xs: S.Expr) -> Truth:
        truths = [self.as_truth(v) for v in self.sequence(xs)]
        return Truth(either(*(t.value for t in truths)), both(*(t.exists for t in truths)))
