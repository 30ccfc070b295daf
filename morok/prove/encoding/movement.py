"""Movement: a tensor is a function of index vectors, and a part of it another one. Other views are read at every size alone."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.lane_selection import Lanes
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.structure_parts import RANKS, Buffer, Part, Place
from morok.prove.kinds import Node
from morok.prove.semantics.term import Unsupported, both, either, negation
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol


class Movement(Lanes):
    """Parts of tensors, of ranks up to a stated bound."""

    def of_length(self, length: int | None, part: Any) -> list[Any]:
        was, self.expect = self.expect, length
        try:
            found = self.many(part)
        finally:
            self.expect = was
        if length is not None and len(found) != length:
            raise Inapplicable
        return found

    def resolve(self, x: Any, indices: tuple[Expr, ...], valid: Expr, defined: Expr) -> Place:
        """The place in a buffer, or in that which a view is a part of."""
        if isinstance(x, Buffer):
            return Place(x, indices, valid, defined)
        bounds = both(*(smt.And(i >= 0, i < e - b) for i, b, e in zip(indices, x.begins, x.ends, strict=True)))
        there = tuple(i + b for i, b in zip(indices, x.begins, strict=True))
        return Place(x.base, there, valid, both(defined, either(negation(valid), bounds)))  # outside there are no elements

    def tensor(self, x: Any) -> Any:
        """A tensor: a buffer, a view, or any node in such a position, whose elements are then what it is."""
        if isinstance(x, Node) and x.made is None:
            if len(x.lanes) != 1:
                raise Inapplicable  # its lanes are not looked at: one stands for all
            tensor: Symbol = self.world.once(("tensor", x.term.value), lambda: self.world.symbol("tensor"))
            return Buffer(tensor, x.dtype)
        if not isinstance(x, (Buffer, Part)):
            raise Unsupported("a tensor of this form")
        return x

    def edges(self, part: Any, rank: int) -> tuple[Expr, ...]:
        """Where a part of a tensor begins, or ends: integers."""
        nodes = self.of_length(rank, part)
        if not all(isinstance(n, Node) and len(n.lanes) == 1 and n.term.value.sort is smt.IntSort() for n in nodes):
            raise Unsupported("edges that are no numbers")
        self.premise(*(n.term.defined for n in nodes))
        return tuple(n.term.value for n in nodes)

    def same_place(self, p: Place, q: Place) -> Expr:
        """A condition that two places are one element of one tensor."""
        if p.buffer.name != q.buffer.name or len(p.indices) != len(q.indices):
            raise Unsupported("elements of two tensors")
        return both(*(i == j for i, j in zip(p.indices, q.indices, strict=True)))

    def op_shrink(self, parts: dict[str, Any], at: S.Syntax) -> Part:
        x = self.tensor(self.value_of(parts["src"]))
        if not isinstance(x, Buffer) or not isinstance(at, S.Pattern):
            raise Unsupported("a part of a part, or one that a rule makes")
        rank = self.world.once(("rank", x.name), lambda: self.sizes.one("rank", "", RANKS))
        begins, ends = (self.edges(parts[name], rank) for name in ("begins", "ends"))
        sizes = [smt.Int(Symbol("dimension", x.name, i)) for i in range(rank)]
        self.premise(*(smt.And(b >= 0, b <= e, e <= n) for b, e, n in zip(begins, ends, sizes, strict=True)))
        return Part(x, begins, ends)
