"""Products of small matrices: what they add to is looked at, the product itself is not."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.memory_states import Memory
from morok.prove.encoding.structure_parts import some_function
from morok.prove.kinds import Node
from morok.prove.meanings import solver_function
from morok.prove.semantics.term import Term, Unsupported, both
from morok.prove.symbol import Symbol


class Fragments(Memory):
    """Wmma: to each lane of its third operand it adds some function of all lanes of the other two, the same for one layout."""

    def op_wmma(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        a, b, c = (self.value_of(parts[name]) for name in ("a", "b", "c"))
        if not all(isinstance(n, Node) for n in (a, b, c)) or not (
            self.world.is_int(c.dtype) or self.world.is_float(c.dtype)
        ):
            raise Unsupported("a product of this form")
        layout = self.layout(parts.get("meta"))
        factors = [(n.dtype, t.value) for n in (a, b) for t in n.lanes]
        known = both(*(t.defined for n in (a, b) for t in n.lanes))
        add = solver_function(self.rule.dialect.ops["Add"])
        lanes = []
        for i, sofar in enumerate(c.lanes):
            name = Symbol("product", layout, c.dtype, len(a.lanes), len(c.lanes), i)
            product = some_function(name, self.sort(c.dtype), *factors)
            lanes.append(
                add(self.world, self.world.dtype(c.dtype), sofar, Term(self.in_dtype(c.dtype, product), known))
            )
        return Node(tuple(lanes), c.dtype)

    def layout(self, meta: Any) -> Symbol:
        """The layout of the lanes: the one that the rule names, or any where it names none."""
        if isinstance(meta, S.PVar) and meta.ignored:
            self.unnamed += 1
            return Symbol("ignored", meta.name, self.unnamed)
        if not getattr(meta, "name", ""):
            raise Unsupported("a product without a layout")
        return Symbol("variable", meta.name)

    def in_dtype(self, dtype: str, value: Any) -> Any:
        """A value of the dtype: where it is a number of the solver, one that the dtype holds."""
        if value.sort is smt.IntSort() and self.world.bits(dtype):
            n = self.world.arithmetic(self.world.dtype(dtype))
            self.world.assume(value >= n.low, value <= n.high)
        return value
