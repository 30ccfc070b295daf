"""Which names depend on which loops: what a rule binds under a loop has one value an iteration."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.places import OPAQUE, Loop
from morok.prove.kinds import Node
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Expr, Term, both


class Freedom(Encoder):
    """Names used where a loop that they were bound under does not reach.

    inside   the loops around the part of the rule that is being read
    varies   the loops that each name was bound under
    free     (name, range) pairs that the guards say are independent
    must     what the target needs besides being defined and equal
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.inside: tuple[Any, ...] = ()
        self.varies: dict[str, tuple[Any, ...]] = {}
        self.free = free_names(self.rule.syntax)
        self.must: list[Expr] = []
        self.asking = False

    def name(self, e: S.EName) -> Any:
        found = super().name(e)
        if isinstance(found, Node) and self.side == "target" and not self.asking:
            loops = self.escaped(e.name)
            if loops:
                if not all(isinstance(x, Loop) and x.counted for x in loops):
                    return self.elsewhere(e.name, found)
                self.must.append(self.run_once(loops))
        return found

    def about(self, x: S.Expr) -> Any:
        """What is asked about a node is not its use: no iteration matters."""
        was, self.asking = self.asking, True
        try:
            return super().about(x)
        finally:
            self.asking = was

    def escaped(self, name: str) -> list[Any]:
        """The loops under which a name is bound and which do not reach its use, where nothing says that it is free of them."""
        return [x for x in self.varies.get(name, ()) if x not in self.inside and not self.said_free(name, x)]

    def run_once(self, loops: Seq[Any]) -> Expr:
        """Whether all of these run exactly once: then what depends on them has one value."""
        return both(*(self.numbers.compare("==", self.iterations(x), self.numbers.const(1))[1] for x in loops))

    def said_free(self, name: str, loop: Any) -> bool:
        return (name, loop.name) in self.free

    def elsewhere(self, name: str, node: Node) -> Node:
        """The value of the name at some other iteration: anything."""
        terms = []
        for i, t in enumerate(node.lanes):
            terms.append(Term(smt.Const(f"{name}.elsewhere.{i}", t.value.sort()), smt.Bool(f"{name}.elsewhere.{i}.defined")))
        return Node(tuple(terms), node.dtype)

    def iterations(self, loop: Loop) -> Num:
        assert loop.end is not None
        if loop.end.dtype in OPAQUE or loop.end.dtype not in self.rule.dialect.dtypes:
            return Num(loop.end.term.value)
        number: Num = self.world.number_of(loop.end.dtype, loop.end.term)
        return number


def conjuncts(e: S.Expr) -> list[S.Expr]:
    """The conditions that a conjunction is made of."""
    found: list[S.Expr] = []
    todo = [e]
    while todo:
        at = todo.pop()
        if isinstance(at, S.EBinary) and at.op == "and":
            todo += [at.right, at.left]
        else:
            found.append(at)
    return found


def free_names(rule: S.Rule) -> frozenset[tuple[str, str]]:
    """What the guards say is free of which ranges: `free_of(x, r)`, and conjunctions of it for all x, or r, of a sequence."""
    found: set[tuple[str, str]] = set()
    for e in (c for clause in rule.clauses if isinstance(clause, S.If) for c in conjuncts(clause.condition)):
        found.update(_pair(e, {}))
        c = e.args[0] if isinstance(e, S.ECall) and e.name == "all" and len(e.args) == 1 else None
        if isinstance(c, S.EComprehension) and c.condition is None and isinstance(c.sequence, S.EName) and len(c.names) == 1:
            for said in conjuncts(c.body):
                found.update(_pair(said, {c.names[0]: c.sequence.name}))
    return frozenset(found)


def _pair(e: S.Expr, items: dict[str, str]) -> list[tuple[str, str]]:
    """(name, range) of a `free_of`, an item of a sequence by the name of the sequence."""
    if not isinstance(e, S.ECall) or e.name != "free_of" or len(e.args) != 2:
        return []
    x, r = e.args
    if not isinstance(x, S.EName) or not isinstance(r, S.EName):
        return []
    return [(items.get(x.name, x.name), items.get(r.name, r.name))]
