"""Statements in turn, as a list of instructions has them: those from an If to its EndIf are done where its condition holds."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.prove.encoding.memory import Memory
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.places import ELEMENT, NOTHING
from morok.prove.kinds import Node
from morok.prove.semantics.term import Term, Unsupported, both, choose, either, negation
from morok.prove.smt import TRUE, Expr


class Branches(Memory):
    """Group, If and EndIf of a target. Of a branch by itself nothing is known: what it guards is what lies behind it.

    branches  the condition of each If, by the identity of its node
    closed    the identity of the If that each EndIf closes, by its own
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.branches: dict[int, Node] = {}
        self.closed: dict[int, int] = {}

    def op_if(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        condition = self.value_of(parts["cond"])
        if not isinstance(condition, Node):
            raise Unsupported("a condition of this form")
        if len(condition.lanes) != 1:
            raise Inapplicable  # one condition decides
        self.many(parts.get("body"))
        node = self.part_of_a_branch()
        self.branches[id(node)] = condition
        self.kept.append(node)
        return node

    def part_of_a_branch(self) -> Node:
        """A statement that has a meaning in a Group alone."""
        self.world.exact = False
        return Node((Term(self.world.fresh("branch", ELEMENT)),), "void")

    def op_endif(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        opened = self.value_of(parts["if_op"])
        node = self.part_of_a_branch()
        self.closed[id(node)] = id(opened)
        self.kept.append(node)
        return node

    def op_group(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """The effects of its statements, one after the other where an If says that they are a list of instructions: others, and
        those of a pattern, have no order, and nothing is known of several.
        """
        sources = self.many(parts.get("sources"))
        in_order = isinstance(at, S.Expr) and any(id(n) in self.branches for n in sources)
        if len(sources) > 1 and not in_order:
            raise Unsupported("statements without an order")
        open_: list[int] = []
        done: list[Expr] = []
        defined: list[Expr] = []
        for n in sources:
            if not isinstance(n, Node) or n.dtype != "void" or n.term.value.sort is not ELEMENT:
                raise Unsupported("statements of this form")
            here = both(TRUE, *(self.branches[b].term.value for b in open_))
            if id(n) in self.branches:
                defined.append(either(negation(here), self.branches[id(n)].term.defined))
                open_.append(id(n))
            elif id(n) in self.closed:
                if not open_ or open_.pop() != self.closed[id(n)]:
                    raise Unsupported("an EndIf that does not close what was opened last")
            else:
                done.append(choose(here, n.term.value, NOTHING))
                defined.append(either(negation(here), n.term.defined))
        if open_:
            raise Unsupported("an If that is never closed")
        return Node((Term(self.in_turn(done) if done else NOTHING, both(*defined)),), "void")
