"""Loops: ranges, what closes them, and which names depend on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.memory_states import Memory
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.structure_parts import Loop, Loops
from morok.prove.forms import conjuncts
from morok.prove.kinds import Node, Truth
from morok.prove.rule_syntax import names_in
from morok.prove.semantics.term import Term, Unsupported, both
from morok.prove.symbol import Symbol


class Ranges(Memory):
    """Range: a number below an end that the rule names, or does not."""

    def call(self, e: S.ECall) -> Any:
        xs = e.args[0] if e.name == "all" and len(e.args) == 1 else None
        if (
            isinstance(xs, S.EComprehension)
            and isinstance(xs.sequence, S.EName)
            and isinstance(self.names.get(xs.sequence.name), Loops)
        ):
            if all(isinstance(c, S.ECall) and c.name == "free_of" for c in conjuncts(xs.body)):
                return Truth(self.world.fresh("free_of", smt.BoolSort()))  # what it says of names, `free_names` has read
            raise Unsupported("a condition on every loop")
        return super().call(e)

    def op_range(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        end = self.value_of(parts["end"])
        if not isinstance(end, Node):
            raise Unsupported("a range to what is no number")
        if len(end.lanes) != 1:
            raise Inapplicable  # a range counts to one number
        dtype = self.dtype_of(at) if self.type_or_none(at) is not None else end.dtype
        name = Symbol("range", self.another())
        r = self.world.variable(name, dtype)
        runs = self.numbers.within(self.world.number_of(dtype, r), self.world.number_of(end.dtype, end.term))
        node = Node((Term(r.value, both(end.term.defined, runs)),), dtype)
        self.ranges[id(node)] = Loop(node, end, name, counted=True)
        written = parts["end"]
        self.ends[id(node)] = frozenset(names_in(written)) if isinstance(written, S.Syntax) else frozenset()
        self.kept.append(node)
        return node

    def bind(self, name: str, value: Any) -> Any:
        loop = self.ranges.get(id(value))
        if loop is not None:
            self.ranges[id(value)] = replace(loop, name=name)
        return super().bind(name, value)

    def loop_of(self, v: Any) -> Any:
        """A range operand as a loop: one made in the rule, or any other, with an end of its own."""
        found = self.ranges.get(id(v))
        if found is not None:
            return found
        if isinstance(v, Node):
            if len(v.lanes) != 1:
                raise Inapplicable  # a range counts one number
            made = self.called.get(id(v)) or self.world.once(("loop", v.term.value), lambda: self.world.symbol("loop"))
            return Loop(v, None, made, made.label)
        raise Unsupported("a loop of this form")
