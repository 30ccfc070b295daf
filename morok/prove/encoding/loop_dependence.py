"""The loops that each name depends on: what a rule binds under a loop has one value an iteration."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.structure_parts import OPAQUE, Buffer, Loop
from morok.prove.forms import conjuncts
from morok.prove.kinds import CONSTANT, CONSTANTS, INVALID, Node, Sequence
from morok.prove.rule_syntax import names_in
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both, either, is_false, negation
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol


class Freedom(Encoder):
    """Names used under other loops than those that they were bound under: fewer, which do not reach there, or more, in which they
    may depend on the range that is closed around them now.

    inside   the loops around the part of the rule that is being read
    varies   the loops that each name was bound under
    free     (name, range) pairs that the guards say are independent
    no_axes  the names of ranges that the guards say are no axes
    ends     what the rule calls the ends of ranges, by the identity of a range's node: no end depends on its range
    made_of  the names that helpers were given for those that they return
    lets     what `let` calls nodes
    must     what the target needs besides being defined and equal
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.inside: tuple[Any, ...] = ()
        self.varies: dict[str, tuple[Any, ...]] = {}
        self.free = free_names(self.rule.syntax)
        self.no_axes = frozenset(r for c in conditions(self.rule.syntax) if (r := _no_axis(c)))
        self.ends: dict[int, frozenset[str]] = {}
        self.made_of: dict[str, frozenset[str]] = {}
        self.lets: dict[str, S.Expr] = {}
        self.must: list[Expr] = []
        self.asking = False
        self.letting = False

    def name(self, e: S.EName) -> Any:
        found = super().name(e)
        if self.asking or not (self.letting or self.side == "target"):
            return found
        if e.name in self.lets:
            return self.let_value(e.name, found)
        return self.value_here(e.name, found)

    def bound_variable(self, p: S.PVar) -> Any:
        again = not p.ignored and p.name in self.names
        found = super().bound_variable(p)
        return self.value_here(p.name, found) if again and not self.asking else found

    def bind(self, name: str, value: Any) -> Any:
        if not is_constant(value):
            if name in self.names and self.loops_between(name):
                return value  # one node, and two values of it
            self.varies.setdefault(name, self.inside)
        return super().bind(name, value)

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.If):
            super().clause(clause)
        elif isinstance(clause.value, S.ECall) and clause.value.name in self.rule.externs:
            super().clause(clause)
            self.returned(clause.names, clause.value)
        else:
            self.letting = True
            try:
                super().clause(clause)
            finally:
                self.letting = False
            (name,) = clause.names
            if _varying(self.names[name]):
                self.lets[name] = clause.value

    def returned(self, names: Seq[str], call: S.ECall) -> None:
        """The dependence of a helper's results on the loops that its arguments depend on, noted."""
        given = frozenset(names_in(call) & self.names.keys())
        loops = tuple(dict.fromkeys(x for n in given for x in self.varies.get(n, ())))
        for name in names:
            self.made_of[name] = given
            self.varies[name] = loops

    def value_here(self, name: str, found: Any) -> Any:
        """The value of a name under the loops around it: another one than where it was bound, if it may depend on a loop that is
        around only one of the two; but not where that loop runs once. Then, too, an axis around one of the two is another one at
        the other, with a length of its own; no axis is open in a statement.
        """
        if not _varying(found):
            return found
        loops = self.loops_between(name)
        if not loops:
            return found
        if not isinstance(found, Node):
            raise Unsupported("storage, or several nodes, under other loops")
        other = self.elsewhere(name, found)
        axes = found.dtype != "void" and any(
            x.is_axis and x.name not in self.no_axes for x in loops if isinstance(x, Loop)
        )
        if self.side == "pattern" or axes or not all(isinstance(x, Loop) and x.counted for x in loops):
            return other
        once = self.run_once(loops)
        if found.dtype in OPAQUE:  # a statement in a loop that does not run need be nothing
            return replace(
                found,
                lanes=tuple(self.said("choose", once, a, b) for a, b in zip(found.lanes, other.lanes, strict=True)),
            )
        unseen = (negation(x.end.term.defined) for x in loops if x.end is not None)
        self.must.append(either(once, *unseen))  # an end without a value is that of a loop within one that never runs
        return found

    def let_value(self, name: str, found: Any) -> Any:
        """The node that `let` binds, where it is the same as there."""
        if self.inside or any(self.loops_between(n) for n in self.mentioned(self.lets[name])):
            raise Unsupported("what `let` names under other loops")
        return found

    def mentioned(self, e: S.Expr) -> list[str]:
        """The names in an expression, and in what `let` calls by these."""
        found: list[str] = []
        todo = [e]
        while todo:
            for at in S.walk(todo.pop()):
                if isinstance(at, S.EName) and at.name in self.names and at.name not in found:
                    found.append(at.name)
                    todo += [self.lets[at.name]] if at.name in self.lets else []
        return found

    def about(self, x: S.Expr) -> Any:
        """The value of a node in a question about it, which is no use of it: no iteration matters."""
        was, self.asking = self.asking, True
        try:
            return super().about(x)
        finally:
            self.asking = was

    def loops_between(self, name: str) -> list[Any]:
        """The loops around only one of a name's use and of where it was bound, where nothing says that it is free of them."""
        bound = self.varies.get(name, ())
        loops = [*(x for x in bound if x not in self.inside), *(x for x in self.inside if x not in bound)]
        return [x for x in loops if not self.said_free(name, x)]

    def closes(self, loops: Seq[Any], before: frozenset[str]) -> None:
        """The loop variables as values of these ranges' names inside the closing op; names bound `before` keep their value."""
        for name, value in self.names.items():
            own = [x for x in loops if isinstance(x, Loop) and x.node is value]
            if own and name not in before:
                self.varies[name] = (own[0],)

    def run_once(self, loops: Seq[Any]) -> Expr:
        """A condition that all of these run exactly once: then a value that depends on them has one value."""
        return both(*(self.numbers.compare("==", self.iterations(x), self.numbers.const(1))[1] for x in loops))

    def said_free(self, name: str, loop: Any) -> bool:
        """True if a name does not depend on a range: it is said, or it is the range's end, or was made of what does not."""
        if (name, loop.name) in self.free or (isinstance(loop, Loop) and name in self.ends.get(id(loop.node), ())):
            return True
        return name in self.made_of and all(self.said_free(n, loop) for n in self.made_of[name])

    def elsewhere(self, name: str, node: Node) -> Node:
        """The value of the name in an iteration of the loops around it here: anything."""

        def make() -> tuple[Term, ...]:
            terms = []
            for t in node.lanes:
                unknown = self.world.symbol(f"{name}.elsewhere")
                invalid = t.invalid if is_false(t.invalid) else smt.Bool(Symbol("invalid", unknown))
                terms.append(Term(smt.Const(unknown, t.value.sort), smt.Bool(Symbol("defined", unknown)), invalid))
            return tuple(terms)

        # items of a sequence have one name in turn, and values of their own
        values = (e for t in node.lanes for e in (t.value, t.defined, t.invalid))
        return Node(
            self.world.once(("elsewhere", name, *sorted(x.unknown for x in self.inside), *values), make), node.dtype
        )

    def iterations(self, loop: Loop) -> Num:
        assert loop.end is not None
        if loop.end.dtype in OPAQUE or loop.end.dtype not in self.rule.dialect.dtypes:
            return Num(loop.end.term.value)
        number: Num = self.world.number_of(loop.end.dtype, loop.end.term)
        return number


def is_constant(v: Any) -> bool:
    """True if it is a constant node: the same in every iteration."""
    return isinstance(v, Node) and v.made is not None and v.made.op in (CONSTANT, CONSTANTS, INVALID)


def _varying(v: Any) -> bool:
    """True if it is a node that may have another value in another iteration, or several things one of which is."""
    several = v.items if isinstance(v, Sequence) else v if isinstance(v, (list, tuple)) else ()
    return isinstance(v, Buffer) or (isinstance(v, Node) and not is_constant(v)) or any(map(_varying, several))


def conditions(rule: S.Rule) -> list[S.Expr]:
    """The conditions that the guards of a rule state, each of which holds."""
    return [c for clause in rule.clauses if isinstance(clause, S.If) for c in conjuncts(clause.condition)]


def _no_axis(e: S.Expr) -> str:
    """The name in `not is_axis(r)`; none of any other condition."""
    match e:
        case S.EUnary(op="not", operand=S.ECall(name="is_axis", args=(S.EName(name=r),))):
            return r
    return ""


def free_names(rule: S.Rule, fact: str = "free_of") -> frozenset[tuple[str, str]]:
    """The pairs that the guards state in `free_of(x, r)`, and in conjunctions of it for all x, or r, of a sequence."""
    return frozenset(pair for e in conditions(rule) for pair in _pairs(fact, e, {}))


def _pairs(fact: str, e: S.Expr, items: dict[str, str]) -> list[tuple[str, str]]:
    """The pairs that a condition states, and conjunctions of it for all items of sequences, by the names of the sequences."""
    if not items.keys() <= names_in(e):
        return []  # of no items at all, what does not speak of them is not said
    found = _pair(fact, e, items)
    c = e.args[0] if isinstance(e, S.ECall) and e.name == "all" and len(e.args) == 1 else None
    if (
        isinstance(c, S.EComprehension)
        and c.condition is None
        and isinstance(c.sequence, S.EName)
        and len(c.names) == 1
    ):
        within = {**items, c.names[0]: c.sequence.name}
        found += [pair for said in conjuncts(c.body) for pair in _pairs(fact, said, within)]
    return found


def _pair(fact: str, e: S.Expr, items: dict[str, str]) -> list[tuple[str, str]]:
    """(name, range) of a `free_of`, an item of a sequence by the name of the sequence."""
    if not isinstance(e, S.ECall) or e.name != fact or len(e.args) != 2:
        return []
    x, r = e.args
    if not isinstance(x, S.EName) or not isinstance(r, S.EName):
        return []
    return [(items.get(x.name, x.name), items.get(r.name, r.name))]
