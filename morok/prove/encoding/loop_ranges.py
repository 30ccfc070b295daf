"""Loops: ranges, what closes them, and which names depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.memory_states import Memory
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.structure_parts import OPAQUE, Loop, Loops
from morok.prove.forms import VECTOR_AXES, conjuncts
from morok.prove.kinds import Node, Truth
from morok.prove.rule_syntax import names_in
from morok.prove.semantics.term import Term, Unsupported, both, either
from morok.prove.smt import TRUE, Expr
from morok.prove.symbol import Symbol


class Ranges(Memory):
    """Range: a number below its end."""

    def call(self, e: S.ECall) -> Any:
        if (said := self.said_of_loops(e)) is not None:
            if all(isinstance(c, S.ECall) and c.name == "free_of" for c in said):
                # what it says of names, `free_names` has read
                return Truth(self.world.fresh("free_of", smt.BoolSort()))
            raise Unsupported("a condition on every loop")
        return super().call(e)

    def said_of_loops(self, e: S.Expr) -> list[S.Expr] | None:
        """The conditions on every one of some loops, and of others for each of these; None where it is no such condition."""
        xs = e.args[0] if isinstance(e, S.ECall) and e.name == "all" and len(e.args) == 1 else None
        if not isinstance(xs, S.EComprehension) or not isinstance(xs.sequence, S.EName):
            return None
        if not isinstance(self.names.get(xs.sequence.name), Loops):
            return None
        return [one for c in conjuncts(xs.body) for one in self.said_of_loops(c) or [c]]

    def op_range(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        end = self.value_of(parts["end"])
        if not isinstance(end, Node):
            raise Unsupported("a range to what is no number")
        if len(end.lanes) != 1:
            raise Inapplicable  # a range counts to one number
        waits = parts.get("deps")
        if isinstance(at, S.Expr) and getattr(waits, "items", waits):
            raise Unsupported("a range that is made to wait: that is for the order of instructions (docs/ops.md)")
        dtype = self.dtype_of(at) if self.type_or_none(at) is not None else end.dtype
        name = Symbol("range", self.another())
        r = self.world.variable(name, dtype)
        n = self.numbers
        i, e = self.world.number_of(dtype, r), self.world.number_of(end.dtype, end.term)
        runs = both(n.compare("<=", n.const(0), i)[1], n.compare("<", i, e)[1])
        node = Node((Term(r.value, both(end.term.defined, runs)),), dtype)
        kind = parts.get("axis")
        called = kind.name if isinstance(kind, (S.EName, S.PVar)) else ""
        self.ranges[id(node)] = Loop(node, end, name, counted=True, kind=called, is_axis=self.may_be_axis(kind))
        written = parts["end"]
        self.ends[id(node)] = frozenset(names_in(written)) if isinstance(written, S.Syntax) else frozenset()
        self.kept.append(node)
        return node

    def may_be_axis(self, kind: Any) -> bool:
        """False where the kind of a range is written, and one of no axes."""
        return not isinstance(kind, S.EName) or kind.name in (*self.rule.bindings, *self.names, *VECTOR_AXES)

    def bind(self, name: str, value: Any) -> Any:
        self.is_called(name, value)
        return super().bind(name, value)

    def clause(self, clause: S.If | S.Let) -> None:
        super().clause(clause)
        for name in clause.names if isinstance(clause, S.Let) else ():
            self.is_called(name, self.names[name])

    def is_called(self, name: str, value: Any) -> None:
        """A range's name in the rule, noted."""
        loop = self.ranges.get(id(value))
        if loop is not None:
            self.ranges[id(value)] = replace(loop, name=name)

    def loop_of(self, v: Any, name: str = "") -> Any:
        """A range operand as a loop: one made in the rule, or any other, with an end of its own."""
        found = self.ranges.get(id(v))
        if found is not None:
            return found
        if isinstance(v, Node):
            opaque = v.dtype in OPAQUE
            if len(v.lanes) != 1 and not opaque:
                raise Inapplicable  # a range counts one number

            def make() -> tuple[Symbol, Term]:
                unknown, end = self.called.get(id(v)) or self.world.symbol("loop"), self.world.symbol("end")
                return unknown, Term(smt.Int(end)) if opaque else self.world.variable(end, v.dtype)

            unknown, end_term = self.world.once(("loop", v.lanes[0].value), make)
            return Loop(v, Node((end_term,), "index" if opaque else v.dtype), unknown, unknown.label)
        raise Unsupported("a loop of this form")

    def ends_have_values(self, loops: Sequence[Any]) -> Expr:
        """The condition that the ends which the rule names of loops that are closed together have values. Of a pattern's that is
        known where the loops around have iterations: else nobody has looked at it.
        """
        n = self.numbers
        ends = {x: x.end.term.defined for x in loops if isinstance(x, Loop) and x.end is not None and x.counted}

        def never(x: Any) -> Expr:
            return n.compare("<=", self.iterations(x), n.const(0))[1] if x in ends else TRUE

        around = {x: loops[: loops.index(x)] if self.side == "pattern" else () for x in ends}
        return both(*(either(end, *map(never, around[x])) for x, end in ends.items()))
