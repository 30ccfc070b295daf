"""Folds over lanes and iterations, and the loops with registers that they become: read in any commutative monoid.

A Reduce folds its iterations, and neighbouring lanes where it has fewer than its source, in an order that nothing says. So a rule
that says how may build any tree over the same terms, each as often as before, and identities. Whether it does is a question
about sums of unknowns: two words over free generators of a commutative monoid are one element if they hold each generator
equally often, that is, if they are one number whatever integers the generators are. The fold's op is read as +, its identity as
0, what is folded as unknown integers, one for each lane and iteration; no other op may touch them. That the identity changes no
value of the dtype is a lemma of its own; and a fold has a value where all its terms have one, on both sides.

Lanes, iterations and the integers that helpers return are enumerated up to a stated bound. Memory is executed: registers are
cells, a statement runs once for each iteration of the loops that it depends on, what does not depend on a loop runs before it. A
cell that is read without waiting for the last store to it holds anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from typing import Any, Final

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.facts import REDUCTIONS
from morok.prove.encoding.folds import OF_TRUTHS
from morok.prove.encoding.obligation import Inapplicable, Obligation
from morok.prove.encoding.operands import called
from morok.prove.encoding.places import Buffer
from morok.prove.encoding.sizes import numbers
from morok.prove.encoding.structure import StructureEncoder
from morok.prove.forms import reduction_of
from morok.prove.kinds import ANY_FOLD, Made, Node, OpName
from morok.prove.meanings import solver_function
from morok.prove.rule_syntax import canonical, names_in
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both, is_false
from morok.prove.semantics.theory import Attempt
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

FOLDED_LANES: Final = numbers(1, 2, 3, 4, 5, 6, 7, 8)
PART_LANES: Final = numbers(1, 2, 3)  # of the parts of a Cat
MORE_PARTS: Final = numbers(0, 1, 2)  # behind those that a rule names
ITERATIONS: Final = numbers(0, 1, 2, 3)
HELPED: Final = numbers(0, 1, 2, 3, 4)  # what a helper may return for an integer
ENCODING: Final = Attempt("any commutative monoid", 4.0)
ANY_OP: Final = "any op"
MEMORY: Final = frozenset({"Index", "Store", "End"})


@dataclass(frozen=True, slots=True)
class Later:
    """A node that a `let` names: it is read where it is used, at the iteration that it is used in."""

    e: S.Expr


class MonoidEncoder(StructureEncoder):
    """A rule about a fold, its op any commutative and associative one with an identity.

    at        the iteration of the fold's loops that is being read; None outside of them
    owned     storage of which a helper promises that what is folded knows nothing of it
    cells     what each register holds, lane by lane, which store put it there, and in which iteration; None: nothing yet
    finished  what has run, by its text and its iteration
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.one_lane = False
        self.at: int | None = None
        self.loop_names: tuple[str, ...] = ()
        self.bodies: set[str] = set()
        self.trips = 0
        self.results = 1
        self.source: Any = None
        self.op = ""
        self.owned: set[str] = set()
        self.cells: dict[str, tuple[tuple[Expr, ...], str, int | None] | None] = {}
        self.finished: dict[tuple[str, int | None], Any] = {}

    # the rule

    def encode(self) -> Obligation:
        pattern = reduction_of(self.rule.syntax.pattern)
        assert pattern is not None
        parts = self.parts("Reduce", pattern)
        self.op = self.reduction(parts.get("op", ANY_FOLD))
        ranges = parts["ranges"]
        items = list(ranges.items) if isinstance(ranges, S.PList) else ranges if isinstance(ranges, list) else [ranges]
        if not all(isinstance(i, (S.PVar, S.PSequence)) for i in items):
            raise Unsupported("ranges of this form")
        self.loop_names = tuple(i.name for i in items if isinstance(i, (S.PVar, S.PSequence)))
        self.trips = self.sizes.one("trips", ", ".join(map(called, self.loop_names)), ITERATIONS) if items else 1
        self.source = parts["src"]
        source = self.value_of(self.source)
        if not isinstance(source, Node):
            raise Unsupported("a fold of what is no value")
        lanes = self.lanes_of(self.rule.type_of(pattern))
        if lanes > len(source.lanes) or len(source.lanes) % lanes:
            raise Inapplicable
        self.results, dtype = lanes, source.dtype
        # sums of zeros and ones tell words apart at any dtype of numbers; other monoids may have words that are one element
        self.world.exact = self.op in (ANY_OP, "Add") and dtype != "bool"
        at: S.Pattern = self.rule.syntax.pattern
        while isinstance(at, S.PBind):
            self.names[at.name] = Node((Term(smt.IntVal(0)),) * lanes, dtype, Made("folded", ()))
            at = at.inner
        for clause in self.rule.syntax.clauses:
            self.clause(clause)
            if any(is_false(smt.simplify(p)) for p in self.out.premises):
                raise Inapplicable
        self.side = "target"
        terms = [tuple(self.here(t, i) for t in source.lanes) for i in (range(self.trips) if items else (None,))]
        for i, lanes_there in enumerate(terms):
            for k, t in enumerate(lanes_there):
                self.premise(t.value >= 0, t.value <= 1)
                self.out.bind(f"lane {k} in iteration {i}", "any", t)
        folded = self.neighbours([self.total([t[k] for t in terms]) for k in range(len(source.lanes))], lanes)
        made = self.made(lambda: self.node(self.rule.syntax.target, dtype))
        if not isinstance(made, Node) or made.dtype != dtype or len(made.lanes) != lanes:
            raise Unsupported("a target of other lanes or of another dtype")
        self.out.claim = both(*(t.value == p.value for t, p in zip(made.lanes, folded, strict=True)))
        self.out.pattern, self.out.target = Node(folded, "any"), replace(made, dtype="any")
        return self.out

    # values

    def variable(self, name: Symbol, ty: Any, maybe_invalid: bool) -> Node:
        """The folded value: an unknown for each lane, another in each iteration."""
        dtype, lanes = self.element(ty), self.lanes_of(ty)
        self.bodies.add(name.label)
        made = Made("folded", (name,))
        return Node(tuple(Term(smt.Int(Symbol("lane", name, i))) for i in range(lanes)), dtype, made)

    def lane_count(self, lanes: str) -> int:
        if lanes not in self.lane_counts:
            options = PART_LANES if "Cat" in names_in(self.rule.syntax.pattern) else FOLDED_LANES
            self.lane_counts[lanes] = self.sizes.one("lanes", lanes, options)
        return self.lane_counts[lanes]

    def here(self, t: Term, at: int | None) -> Term:
        there = smt.Function(Symbol("function", "at"), smt.IntSort(), smt.IntSort(), smt.IntSort())
        return t if at is None else Term(there(t.value, smt.IntVal(at)))

    def total(self, terms: Seq[Term]) -> Term:
        return Term(smt.Sum([t.value for t in terms]) if terms else smt.IntVal(0))

    def neighbours(self, terms: Seq[Term], lanes: int) -> tuple[Term, ...]:
        each = len(terms) // lanes
        return tuple(self.total(terms[i * each : (i + 1) * each]) for i in range(lanes))

    def name(self, e: S.EName) -> Any:
        found = self.names.get(e.name)
        if isinstance(found, Later):
            return self.node(found.e, None)
        if isinstance(found, Node) and found.made is not None and found.made.op == "folded" and not self.asking:
            if not found.made.operands:
                raise Unsupported("the Reduce in what becomes of it")
            if not self.loop_names:
                return found
            if self.at is None:
                return self.anything(len(found.lanes), found.dtype)  # what is folded, where no iteration is
            return Node(tuple(self.here(t, self.at) for t in found.lanes), found.dtype)
        return super().name(e)

    def anything(self, lanes: int, dtype: str) -> Node:
        return Node(tuple(Term(self.world.fresh("unknown", smt.IntSort())) for _ in range(lanes)), dtype)

    def reduction(self, part: Any) -> str:
        """The op of a fold; one that the pattern binds is any: it is no op that the rule names."""
        if isinstance(part, S.PVar):
            self.names.setdefault(part.name, OpName(ANY_OP))
        return super().reduction(part)

    def adding(self, op: str, dtype: str) -> str:
        """The op that adds a term: truth values are added and maximized by Or, multiplied and minimized by And."""
        return OF_TRUTHS.get(op, op) if dtype == "bool" else op

    def apply(self, info: OpInfo, operands: Seq[Any], result: str) -> Node:
        if not all(isinstance(o, Node) and o.dtype == result for o in operands) or info.name != self.adding(self.op, result):
            raise Unsupported(f"{info.name} where {self.op} is folded")
        if len({len(o.lanes) for o in operands}) != 1:
            raise Unsupported(f"{info.name} of different numbers of lanes")
        if self.side == "pattern" and not self.regroups():
            raise Unsupported(f"{info.name} under a fold of floats, which folds what it has rounded")
        return Node(tuple(self.total(ts) for ts in zip(*(o.lanes for o in operands), strict=True)), result)

    def regroups(self) -> bool:
        """Truth of what is folded being open to being taken apart itself: of floats, these are roundings."""
        floats = any(map(self.world.is_float, self.folded_dtypes()))
        return not floats or self.op in ("Max", "Min")

    def bound(self, x: S.Expr, least: bool) -> Num:
        raise Unsupported("bounds in a monoid")

    def like(self, x: S.Expr, value: int) -> Node:
        node = self.fact_node(x)
        return Node((self.element_of(value),) * len(node.lanes), node.dtype)

    def as_node(self, v: Any, dtype: str | None) -> Node:
        if isinstance(v, Node) or (dtype is not None and dtype not in self.folded_dtypes()):
            return super().as_node(v, dtype)
        known = self.numbers.n.known(v.value) if isinstance(v, Num) else None
        if dtype is None or known is None:
            raise Unsupported("a constant where nothing but a fold's op is known")
        return Node((self.element_of(known),), dtype)

    def splat(self, term: Term, dtype: str, ty: Any) -> Node:
        """A constant of the pattern, which is no unknown."""
        raise Unsupported("a constant where nothing but a fold's op is known")

    def element_of(self, value: int) -> Term:
        """A number among integers that are added: elsewhere it is no element of any monoid."""
        if self.op != "Add" or not all(map(self.world.is_int, self.folded_dtypes())):
            raise Unsupported("a constant where nothing but a fold's op is known")
        return Term(smt.IntVal(value))

    def folded_dtypes(self) -> set[str]:
        return {i.element(self.rule.type_of(self.source)) for i in self.rule.instances}

    def call_identity(self, op: S.Expr, x: S.Expr) -> Node:
        node, found = self.fact_node(x), self.expression(op)
        if not isinstance(found, OpName) or self.adding(found.name, node.dtype) != self.adding(self.op, node.dtype):
            raise Unsupported("the identity of another op")
        ops = REDUCTIONS if self.op == ANY_OP else (self.op,)
        for dtype in dict.fromkeys(i.element(self.rule.type_of(self.source)) for i in self.rule.instances):
            for name in ops:
                self.neutral(name, dtype)
        return Node((Term(smt.IntVal(0)),) * len(node.lanes), node.dtype)

    def neutral(self, op: str, dtype: str) -> None:
        """That the identity changes no value of the dtype."""
        info = self.rule.dialect.ops[self.adding(op, dtype)]
        term = self.world.variable(self.world.symbol("any"), dtype)
        added = solver_function(info)(self.world, self.world.dtype(dtype), self.identity(op, dtype), term)
        claim = both(added.defined, self.world.equal(dtype, added, term))
        self.out.laws[f"the identity of {info.name} at {dtype}"] = claim

    def op_gep(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        vector = self.value_of(parts["vector"])
        wanted = [self.numbers.n.known(self.number(i).value) for i in self.static(parts["indices"], "lanes").items]
        if not wanted or any(i is None or not 0 <= i < len(vector.lanes) for i in wanted):
            raise Unsupported("lanes that are not there")
        return Node(tuple(vector.lanes[i] for i in wanted), vector.dtype)

    def rest(self, name: str, at: S.Syntax) -> list[Any]:
        self.expect = None if name in self.names else self.sizes.one("length", called(name), MORE_PARTS)
        try:
            return super().rest(name, at)
        finally:
            self.expect = None

    def op_reduce(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        fold = self.reduction(parts.get("op", ANY_FOLD))
        ranges = parts["ranges"]
        listed = list(ranges.items) if isinstance(ranges, S.EList) else [ranges]
        if listed and not self.all_loops(listed):
            raise Unsupported("other loops than those of the pattern")
        if listed and self.at is not None:
            raise Unsupported("a loop inside itself")
        steps = []
        was = self.at
        for i in range(self.trips) if listed else (was,):
            self.at = i
            steps.append(self.value_of(parts["src"]))
        self.at = was
        sample = self.value_of(parts["src"]) if not steps else steps[0]
        if not isinstance(sample, Node) or self.adding(fold, sample.dtype) != self.adding(self.op, sample.dtype):
            raise Unsupported(f"a fold of {fold} where {self.op} is folded")
        lanes = self.lanes_made(parts, at, len(sample.lanes))
        if lanes < 1 or len(sample.lanes) % lanes:
            raise Unsupported("a fold of lanes that are no multiple of its own")
        return Node(
            self.neighbours([self.total([s.lanes[k] for s in steps]) for k in range(len(sample.lanes))], lanes), sample.dtype
        )

    def lanes_made(self, parts: dict[str, Any], at: S.Syntax, source: int) -> int:
        """The number of lanes of a Reduce in the target: those that it names, those of the match if it takes its place."""
        if "dtype" in parts:
            return self.lanes_said(parts)
        if at is self.rule.syntax.target:
            return self.results
        return source

    def all_loops(self, items: Seq[Any]) -> bool:
        """True if these are the loops of the pattern, in their order."""
        names = []
        for i in items:
            e = i.sequence if isinstance(i, S.ESpread) else i
            names.append(e.name if isinstance(e, S.EName) else "")
        return tuple(names) == self.loop_names

    # clauses

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.Let) and self.is_node(clause.value) and len(clause.names) == 1:
            self.names[clause.names[0]] = Later(clause.value)
        else:
            super().clause(clause)

    def is_node(self, e: S.Expr) -> bool:
        return isinstance(e, S.EStruct) or (isinstance(e, S.ECall) and e.name in self.rule.dialect.ops)

    def helper(self, extern: S.Extern, call: S.ECall) -> list[Any]:
        """A helper; one that returns a pointer returns storage of its own, and says that what is folded knows nothing of it."""
        self.asking = True  # it is told which nodes, at no iteration
        try:
            found = super().helper(extern, call)
        finally:
            self.asking = False
        if any(isinstance(v, Buffer) for v in found):
            passed = {a.name: p.name for p, a in zip(extern.params, call.args, strict=True) if isinstance(a, S.EName)}
            said = {names for e in extern.ensures if (names := freed(e)) is not None}
            for result, v in zip(extern.results, found, strict=True):
                if isinstance(v, Buffer) and all((passed.get(b), result.name) in said for b in self.bodies):
                    self.owned.add(v.name)
        return found

    def result(self, extern: S.Extern, r: S.Param, call: int, arguments: dict[str, Any], defined: Expr, invalid: Expr) -> Any:
        if isinstance(r.type, S.TPointer):
            register = Symbol("result", extern.name, r.name, call)
            self.cells[register] = None
            return Buffer(register, next(v.dtype for v in arguments.values() if isinstance(v, Node)))
        if isinstance(r.type, S.TName) and r.type.name == "int":
            return self.numbers.const(self.sizes.one("number", f"{extern.name}.{r.name}", HELPED))
        return super().result(extern, r, call, arguments, defined, invalid)

    # memory

    def op_index(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """The value of a register now, if its store is waited for; else anything."""
        assert isinstance(at, S.Expr)

        def read() -> Node:
            buffer = self.storage(parts)
            held = self.cells[buffer.name]
            if held is None or buffer.name not in self.owned or not self.waits_for(at, *held[1:]):
                return self.anything(self.results, buffer.dtype)
            return Node(tuple(Term(v) for v in held[0]), buffer.dtype)

        return self.once(at, read)

    def op_store(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        assert isinstance(at, S.Expr)

        def write() -> Node:
            place = self.said(parts["index"])
            if not isinstance(place, S.ECall) or place.name != "Index":
                raise Unsupported("a store to what is no register")
            value = self.value_of(parts["value"])
            buffer = self.storage(self.parts("Index", place))
            held = self.cells[buffer.name]
            if held is not None and not self.waits_for(at, *held[1:]):
                raise Unsupported("stores in no order")
            if len(value.lanes) != self.results:
                raise Unsupported("a store of other lanes")
            self.cells[buffer.name] = (tuple(t.value for t in value.lanes), self.key(at), self.at)
            return Node((Term(smt.IntVal(0)),), "void")

        return self.once(at, write)

    def op_end(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """The body in every iteration; what in it does not depend on the loop once, before."""
        assert isinstance(at, S.Expr)

        def loop() -> Node:
            if self.at is not None or not self.all_loops(parts["ranges"]):
                raise Unsupported("other loops than those of the pattern")
            for e in self.below(parts["body"]):
                if isinstance(e, S.ECall) and e.name in MEMORY and not self.in_loop(e):
                    self.value_of(e)
            for i in range(self.trips):
                self.at = i
                self.value_of(parts["body"])
            self.at = None
            return Node((Term(smt.IntVal(0)),), "void")

        return self.once(at, loop)

    def op_after(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        raise Unsupported("order among values")

    def once(self, e: S.Expr, run: Any) -> Node:
        """A node has one value, and is executed once, in each iteration of the loops that it depends on."""
        key = self.key(e), self.at if self.in_loop(e) else None
        if key not in self.finished:
            self.finished[key] = run()
        found: Node = self.finished[key]
        return found

    def storage(self, place: dict[str, Any]) -> Buffer:
        """The register of a place, once what it waits for has been executed."""
        index = [i.value if isinstance(i, S.ENumber) else None for i in place["indices"]]
        if index != [0] or place.get("gate") is not None:
            raise Unsupported("a place in a register")
        e = self.said(place["buffer"])
        while isinstance(e, S.ECall) and e.name == "After":
            for wait in e.args[1:]:
                if not self.names_loop(wait):
                    self.value_of(wait)
            e = self.said(e.args[0])
        found = self.names.get(e.name) if isinstance(e, S.EName) else None
        if not isinstance(found, Buffer):
            raise Unsupported("storage of the pattern's")
        return found

    def waits_for(self, e: S.Expr, store: str, iteration: int | None) -> bool:
        """True if a node comes behind a store: it is made of it, or runs in the same loop as the store, in a later iteration."""
        later = self.at is not None and iteration is not None and iteration < self.at and self.in_loop(e)
        return later or any(self.key(x) == store for x in self.below(e))

    # expressions as they are written, names of nodes followed

    def said(self, e: Any) -> Any:
        while isinstance(e, S.EName) and isinstance(found := self.names.get(e.name), Later):
            e = found.e
        return e

    def names_loop(self, e: Any) -> bool:
        e = e.sequence if isinstance(e, S.ESpread) else e
        return isinstance(e, S.EName) and e.name in self.loop_names

    def below(self, e: Any) -> Iterator[Any]:
        """Everything that an expression is made of, itself last."""
        e = self.said(e)
        for c in S.children(e):
            yield from self.below(c)
        yield e

    def in_loop(self, e: Any) -> bool:
        """Truth of an expression depending on the loops. What depends on some of them alone is done less often, and not read."""
        names = {x.name for x in self.below(e) if isinstance(x, S.EName)}
        if not names.isdisjoint(self.bodies):
            return True
        loops = names.intersection(self.loop_names)
        if loops and loops != set(self.loop_names):
            raise Unsupported("what some of the loops go around")
        return bool(loops)

    def key(self, e: Any) -> str:
        """The text of an expression: nodes of one text are one node."""
        e = self.said(e)
        if isinstance(e, S.ECall):
            return f"{e.name}({', '.join(self.key(a) for a in e.args)})"
        if isinstance(e, S.EStruct):
            return f"{e.op}({', '.join(f'{n}: {self.key(v)}' for n, v in e.fields)})"
        return canonical(e)


def freed(promise: S.Expr) -> tuple[str, str] | None:
    """The names of which a promise says that the first is free of the second."""
    match promise:
        case S.ECall(name="free_of", args=(S.EName(name=x), S.EName(name=of))):
            return x, of
    return None
