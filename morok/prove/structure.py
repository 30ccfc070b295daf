"""Rules about structure: lanes, places and memory, loops, folds, movement.

Lanes are enumerated up to a stated bound; memory is a function from index vectors to elements with its own notion of what lies
inside; statements are values of a sort of effects; a fold is judged by induction over its iterations (`induction`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from typing import Any, Final

import z3

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import Sort, Ty
from morok.prove.digest import ops_of
from morok.prove.encode import Encoder, Inapplicable, Obligation, mentions_maybe_invalid, solver_function
from morok.prove.kinds import Constant, DtypeName, Made, Node, OpName, Sequence, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import FALSE, TRUE, Expr, Term, Unsupported, both, choose, either, negation

LANES: Final = (1, 2, 3)
LENGTHS: Final = (1, 2, 3)
RANKS: Final = (1, 2, 3, 4)
ELEMENT: Final = z3.DeclareSort("Element")  # values of a dtype that the rule does not look at, and what statements do
NOTHING: Final = z3.Const("nothing", ELEMENT)
# Structure that treats every lane alike, so that one stands for all.
LANEWISE: Final = frozenset({"Invalid", "Const", "Reduce", "Range", "End", "Noop", "After"})
OPAQUE: Final = frozenset({"any", "void"})
REDUCTIONS: Final = ("Add", "Mul", "Max", "Min")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage: where `inside` holds of an index vector there is an element."""

    name: str
    dtype: str
    shape: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A movement of a buffer or of another view: `rank` is its own, `read` maps an index vector to the place it stands for."""

    base: Any
    rank: int
    shape: tuple[Expr, ...] | None
    map: Any


@dataclass(frozen=True, slots=True)
class Place:
    """One lane of an address: `valid` unless gated off or Invalid, in which case it is nowhere."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    valid: Expr
    defined: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """A range: its variable and its end. `name` is what the rule calls it; `counted` where the rule names its end."""

    node: Node
    end: Node | None
    name: str = ""
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Loops:
    """A sequence of ranges of unknown length."""

    name: str


@dataclass(frozen=True, slots=True)
class Fold:
    """One Reduce: the state of its accumulator, the value of its body, its op, the loops it closes."""

    op: str
    dtype: str
    state: Term
    body: Term
    loops: tuple[Any, ...]


class StructureEncoder(Encoder):
    """One reading of a rule about structure.

    phase   how a Reduce is read: "base" as its identity, "before" and "after" one step of the induction
    """

    def __init__(self, *args: Any, phase: str = "before") -> None:
        super().__init__(*args)
        self.phase = phase
        ops = self.rule.dialect.ops
        self.one_lane = all(ops[n].params or ops[n].solver or n in LANEWISE for n in ops_of(self.rule))
        self.by_induction = not any(n in ("Range", "End") for n in ops_of(self.rule))
        self.places: dict[int, tuple[Place, ...]] = {}
        self.loops: dict[str, Any] = {}
        self.folds: list[Fold] = []
        self.inside: tuple[Any, ...] = ()
        self.varies: dict[str, tuple[Any, ...]] = {}
        self.lane_counts: dict[str, int] = {}
        self.must: list[Expr] = []
        self.free = free_names(self.rule.syntax)
        self.asking = False
        self.expect: int | None = None  # the length that a sequence of operands must have

    # Dtypes and lanes.

    def type_or_none(self, node: S.Syntax) -> Ty | None:
        return self.rule.types.get(id(node))

    def lanes_of(self, ty: Ty) -> int:
        if isinstance(ty.lanes, int):
            return ty.lanes
        if self.one_lane:
            return 1
        if ty.lanes not in self.lane_counts:
            self.bounded()
            self.lane_counts[ty.lanes] = LANES[self.choices.pick(len(LANES))]
        return self.lane_counts[ty.lanes]

    def bounded(self) -> None:
        self.world.limit(f"at most {LANES[-1]} lanes and {LENGTHS[-1]} elements of a sequence")

    def equal(self, dtype: str, target: Term, pattern: Term) -> Expr:
        if dtype in OPAQUE:
            return target.value == pattern.value
        return super().equal(dtype, target, pattern)

    def sort(self, dtype: str) -> Any:
        return ELEMENT if dtype in OPAQUE else self.world.sort(self.world.dtype(dtype))

    def zero_of(self, dtype: str) -> Expr:
        if dtype in OPAQUE:
            return z3.Const("zero", ELEMENT)
        value: Expr = self.world.constant(dtype, 0.0 if self.world.is_float(dtype) else 0).value
        return value

    # Variables.

    def variable(self, name: str, ty: Ty, maybe_invalid: bool) -> Any:
        dtype = self.element(ty)
        if ty.pointer or ty.place:
            return Buffer(name, dtype)
        if self.inside and name not in self.varies:
            self.varies[name] = self.inside
        if dtype not in OPAQUE:
            return super().variable(name, ty, maybe_invalid)
        lanes = self.lanes_of(ty)
        terms = tuple(Term(z3.Const(f"{name}.{i}", ELEMENT), z3.Bool(f"{name}.{i}.defined")) for i in range(lanes))
        return Node(terms, dtype)

    def identical(self, a: Any, b: Any) -> list[Expr]:
        if isinstance(a, (Buffer, View)) or isinstance(b, (Buffer, View)):
            if a is not b:
                raise Inapplicable
            return []
        return super().identical(a, b)

    def name(self, e: S.EName) -> Any:
        found = super().name(e)
        if isinstance(found, Node) and self.side == "target" and not self.asking:
            loops = self.escaped(e.name)
            if loops:
                if not all(isinstance(x, Loop) and x.counted for x in loops):
                    return self.elsewhere(e.name, found)
                self.must.append(self.run_once(loops))
        return found

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
            terms.append(Term(z3.Const(f"{name}.elsewhere.{i}", t.value.sort()), z3.Bool(f"{name}.elsewhere.{i}.defined")))
        return Node(tuple(terms), node.dtype)

    def fact_node(self, x: S.Expr) -> Node:
        was, self.asking = self.asking, True
        try:
            return super().fact_node(x)
        finally:
            self.asking = was

    def call_free_of(self, x: S.Expr, r: S.Expr) -> Truth:
        return Truth(TRUE)

    def call_all(self, xs: S.Expr) -> Truth:
        if (
            isinstance(xs, S.EComprehension)
            and isinstance(xs.sequence, S.EName)
            and isinstance(self.names.get(xs.sequence.name), Loops)
        ):
            if isinstance(xs.body, S.ECall) and xs.body.name == "free_of":
                return Truth(TRUE)  # what it says of names, `free_names` has read
            raise Unsupported("a condition on every loop")
        return super().call_all(xs)

    # Parts of ops: operands by name and static fields by name, whether written in order or as a struct.

    def parts(self, op: str, p: Any) -> dict[str, Any]:
        info = self.rule.dialect.ops[op]
        if isinstance(p, S.PStruct):
            return {f.name: (S.PVar(f.name) if f.value is None else f.value) for f in p.fields}
        if isinstance(p, S.EStruct):
            return dict(p.fields)
        arguments = [a for a in p.args if not isinstance(a, (S.PType, S.EType))]
        out: dict[str, Any] = {}
        dtypes = [a for a in p.args if isinstance(a, (S.PType, S.EType))]
        if dtypes:
            out["dtype"] = dtypes[0]
        several = [o.name for o in info.operands if o.many]
        for operand in info.operands:
            if operand.many:
                take = len(arguments) // (len(several) - several.index(operand.name))  # Pad and Shrink end in two of one length
                out[operand.name] = arguments[:take]
                arguments = arguments[take:]
            elif arguments:
                out[operand.name] = arguments.pop(0)
        return out

    def value_of(self, part: Any) -> Any:
        if isinstance(part, S.PExpr):
            part = part.value
        if isinstance(part, S.PSome):
            part = part.inner
        return self.pattern(part) if isinstance(part, S.Pattern) else self.operand_value(part)

    def operand_value(self, e: S.Expr) -> Any:
        if isinstance(e, S.EName):
            found = self.name(e)
            if isinstance(found, (Buffer, View, Loop, Node)):
                return found
        return self.node(e, None)

    def many(self, part: Any) -> list[Any]:
        """A sequence of operands, each a value; a name for all that remain is a list of its own."""
        if part is None:
            return []
        if isinstance(part, S.PList):
            part = list(part.items)
        if isinstance(part, S.PVar):
            return self.rest(part.name, part)
        if isinstance(part, S.PSequence):
            return self.rest(part.name, part)
        if isinstance(part, list):
            return [v for item in part for v in self.many_item(item)]
        found = self.expression(part)
        if isinstance(found, Sequence):
            return [self.as_operand(v) for v in found.items]
        raise Unsupported("operands of this form")

    def many_item(self, item: Any) -> list[Any]:
        if isinstance(item, S.PSequence):
            return self.rest(item.name, item)
        if isinstance(item, S.ESpread):
            return self.many(item.sequence)
        if isinstance(item, S.EComprehension):
            return [self.as_operand(v) for v in self.comprehension(item)]
        return [self.value_of(item)]

    def as_operand(self, v: Any) -> Any:
        return v if isinstance(v, (Node, Loop, Loops, Buffer)) else self.as_node(v, None)

    def rest(self, name: str, at: S.Syntax) -> list[Any]:
        """Operands bound to one name: a few, each of its own."""
        if name in self.names:
            found = self.names[name]
            return list(found.items) if isinstance(found, Sequence) else [found]
        if self.expect is not None:
            length = self.expect
        else:
            self.bounded()
            length = self.choices.pick(len(LENGTHS) + 1)
        binding = self.rule.bindings.get(name)
        ty = self.type_or_none(at) or (binding.type if binding is not None else None)
        if ty is None:
            raise Unsupported(f"operands {name} of unknown dtype")
        ok = binding.invalid_ok if binding is not None else mentions(at)
        items = tuple(self.variable(f"{name}#{i}", ty, ok) for i in range(length))
        if not name.startswith("_"):
            self.names[name] = Sequence(items)
        return list(items)

    # Patterns.

    def structure_pattern(self, p: S.Pattern) -> Any:
        if isinstance(p, S.PStruct):
            return self.structural(p.op, self.parts(p.op, p), p)
        if isinstance(p, S.PExpr):
            return self.expression(p.value)
        return super().structure_pattern(p)

    def structure_op_pattern(self, op: str, p: S.POp) -> Any:
        if op == "Invalid" or self.rule.dialect.ops[op].solver:
            return super().structure_op_pattern(op, p)
        return self.structural(op, self.parts(op, p), p)

    def structure_op(self, e: S.ECall) -> Any:
        if e.name == "Invalid" or self.rule.dialect.ops[e.name].solver:
            return super().structure_op(e)
        return self.structural(e.name, self.parts(e.name, e), e)

    def structure_expression(self, e: S.Expr) -> Any:
        if isinstance(e, S.EStruct):
            return self.structural(e.op, self.parts(e.op, e), e)
        if isinstance(e, S.ESpread):
            return Sequence(tuple(self.many(e.sequence)))
        return super().structure_expression(e)

    def structural(self, op: str, parts: dict[str, Any], at: S.Syntax) -> Any:
        handler = getattr(self, f"op_{op.lower()}", None)
        if handler is None:
            raise Unsupported(f"the structure of {op}")
        return handler(parts, at)

    def node(self, e: S.Expr, wanted: str | None) -> Any:
        if isinstance(e, S.EStruct):
            return self.structure_expression(e)
        if isinstance(e, S.EName) and isinstance(found := self.name(e), (Buffer, View, Loop)):
            return found.node if isinstance(found, Loop) else found
        return super().node(e, wanted)

    # Lanes.

    def static(self, part: Any, what: str) -> Any:
        """A static field: bound where the pattern names it, else computed."""
        if isinstance(part, S.PVar):
            return self.names.get(part.name, None)
        if isinstance(part, S.PList):
            return Sequence(tuple(self.static_number(i) for i in part.items))
        if isinstance(part, S.PExpr):
            part = part.value
        if self.side == "pattern" and isinstance(part, S.EList):
            return Sequence(tuple(self.static_number(i) for i in part.items))
        if (
            self.side == "pattern"
            and isinstance(part, S.EName)
            and part.name not in self.names
            and part.name in self.rule.bindings
        ):
            return None
        return self.expression(part)

    def static_number(self, item: Any) -> Num:
        """A number of a static list in a pattern: a literal, or a name for any."""
        if isinstance(item, (S.PLiteral, S.ENumber)):
            number: Num = self.numbers.const(int(item.value))
            return number
        if isinstance(item, S.PExpr):
            return self.static_number(item.value)
        if isinstance(item, (S.PVar, S.EName)):
            if item.name not in self.names:
                label = item.name
                self.names[label] = Num(self.numbers.n.variable(label, 16))
                self.out.facts.append((label, "value", self.names[label]))
            return self.number(self.names[item.name])
        return self.number(self.expression(item))

    def lane_list(self, part: Any) -> tuple[Num, ...]:
        """The lanes of a Gep: in a pattern any few, by name."""
        found = self.static(part, "lanes")
        if found is None:
            name = part.name
            self.bounded()
            length = LENGTHS[self.choices.pick(len(LENGTHS))]
            found = Sequence(tuple(Num(self.numbers.n.variable(f"{name}#{i}", 16)) for i in range(length)))
            self.out.facts.extend((f"{name}[{i}]", "value", n) for i, n in enumerate(found.items))
            if not name.startswith("_"):
                self.names[name] = found
        return tuple(self.number(i) for i in found.items)

    def pick_lane(self, lanes: Seq[Term], at: Num) -> Term:
        """The lane at a computed place; that it exists is a premise about patterns and part of the claim about targets."""
        n = self.numbers
        self.in_range(at, len(lanes))
        chosen = lanes[0]
        for i, t in enumerate(lanes[1:], 1):
            chosen = self.world.choose(n.eq(at.value, n.n.const(i)), t, chosen)
        return chosen

    def in_range(self, at: Num, length: int) -> None:
        n = self.numbers
        low = n.compare("<=", n.const(0), at)[1]
        high = n.compare("<", at, n.const(length))[1]
        (self.must if self.side == "target" else self.out.premises).extend((at.exists, low, high))

    def op_gep(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        vector = self.value_of(parts["vector"])
        if not isinstance(vector, Node):
            raise Unsupported("lanes of what is no vector")
        wanted = self.lane_list(parts["indices"])
        if vector.dtype == "void":
            return vector
        if not wanted:
            raise Inapplicable
        return Node(tuple(self.pick_lane(vector.lanes, i) for i in wanted), vector.dtype)

    def op_vectorize(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return self.joined(self.many(parts["elements"]), single=True)

    def op_cat(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return self.joined(self.many(parts["sources"]), single=False)

    op_ptrcat = op_cat

    def joined(self, nodes: Seq[Any], single: bool) -> Node:
        if not nodes or not all(isinstance(n, Node) for n in nodes):
            raise Inapplicable
        if single and any(len(n.lanes) != 1 for n in nodes):
            raise Unsupported("vectors among the elements of a vector") if self.side == "target" else Inapplicable
        return Node(tuple(t for n in nodes for t in n.lanes), nodes[0].dtype)

    def op_vconst(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        values = self.static(parts.get("values") if "values" in parts else parts.get("value"), "values")
        dtype = self.dtype_of(at)
        terms = [self.as_node(v, dtype).term for v in values.items]
        return Node(tuple(terms), dtype, Made("VConst", ()))

    def item(self, e: S.EIndex) -> Any:
        items = self.sequence(e.sequence)
        at = self.number(self.expression(e.index))
        known = self.numbers.n.known(at.value)
        if known is not None or not items:
            return super().item(e)
        self.in_range(at, len(items))
        n = self.numbers
        chosen = items[0]
        for i, v in enumerate(items[1:], 1):
            here = n.eq(at.value, n.n.const(i))
            chosen = self.either_of(here, v, chosen)
        return chosen

    def either_of(self, condition: Expr, yes: Any, no: Any) -> Any:
        if isinstance(yes, Node) and isinstance(no, Node) and len(yes.lanes) == len(no.lanes):
            return Node(tuple(self.select(condition, a, b) for a, b in zip(yes.lanes, no.lanes, strict=True)), yes.dtype)
        if isinstance(yes, Constant) and isinstance(no, Constant):
            return Constant(self.world.choose(condition, yes.term, no.term), yes.dtype, both(yes.exists, no.exists))
        if isinstance(yes, Num) and isinstance(no, Num):
            return Num(self.numbers.n.choose(condition, yes.value, no.value), both(yes.exists, no.exists))
        raise Unsupported("a choice among these")

    def select(self, condition: Expr, a: Term, b: Term) -> Term:
        return Term(
            choose(condition, a.value, b.value), choose(condition, a.defined, b.defined), choose(condition, a.invalid, b.invalid)
        )

    def like(self, x: S.Expr, value: int) -> Node:
        v = self.expression(x)
        dtype = v.dtype if isinstance(v, (Buffer, Node)) else None
        if isinstance(v, Buffer) and dtype not in OPAQUE:
            return Node(
                (self.world.constant(v.dtype, float(value) if self.world.is_float(v.dtype) else value),),
                v.dtype,
                Made("Const", ()),
            )
        if dtype in OPAQUE and dtype is not None:
            if value:
                raise Unsupported("one, of a dtype that the rule does not look at")
            lanes = len(v.lanes) if isinstance(v, Node) else 1
            return Node((Term(self.zero_of(dtype)),) * lanes, dtype, Made("Const", ()))
        return super().like(x, value)

    def call_lanes(self, x: S.Expr) -> Num:
        node = self.fact_node(x)
        number: Num = self.numbers.const(len(node.lanes))
        return number

    # Memory.

    def op_index(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """A place, and the element there: 0 at a false gate or an Invalid index."""
        buffer = self.tensor(self.value_of(parts["buffer"]))
        indices = self.of_length(self.rank(buffer), parts.get("indices"))
        gate_part = parts.get("gate")
        gate = None if gate_part is None or isinstance(gate_part, (S.PNone, S.ENone)) else self.value_of(gate_part)
        if gate is not None and not isinstance(gate, Node):
            raise Unsupported("a gate that may be absent")
        lanes = max([len(n.lanes) for n in indices] + [1])
        places = []
        for i in range(lanes):
            terms = [n.lanes[i] if len(n.lanes) > 1 else n.lanes[0] for n in indices]
            open_ = TRUE if gate is None else (gate.lanes[i] if len(gate.lanes) > 1 else gate.lanes[0])
            # behind a false gate nothing is read, the indices neither
            defined = both(*(t.defined for t in terms))
            if gate is not None:
                defined = both(open_.defined, either(negation(open_.value), defined))
            valid = both(*(negation(t.invalid) for t in terms), TRUE if gate is None else open_.value)
            places.append(self.resolve(buffer, tuple(t.value for t in terms), valid, defined))
        dtype = places[0].buffer.dtype
        node = Node(tuple(self.read(p, dtype, self.zero_of(dtype), TRUE) for p in places), dtype, Made("Index", ()))
        self.places[id(node)] = tuple(places)
        self.kept = getattr(self, "kept", [])
        self.kept.append(node)  # so that ids stay apart
        return node

    # Movement: a tensor is a function of index vectors, and a view of it another one.

    def rank(self, b: Any) -> int | None:
        if isinstance(b, View):
            return b.rank
        return None if b.shape is None else len(b.shape)

    def of_length(self, length: int | None, part: Any) -> list[Any]:
        was, self.expect = self.expect, length
        try:
            found = self.many(part)
        finally:
            self.expect = was
        if length is not None and len(found) != length:
            raise Inapplicable
        return found

    def resolve(self, b: Any, indices: tuple[Expr, ...], valid: Expr, defined: Expr) -> Place:
        """The place in the buffer below all views."""
        while isinstance(b, View):
            if b.shape is not None:  # outside its shape a view has no elements
                bounds = both(*(z3.And(i >= 0, i < n) for i, n in zip(indices, b.shape, strict=True)))
                defined = both(defined, either(negation(valid), bounds))
            indices, there = b.map(indices)
            valid, b = both(valid, there), b.base
        return Place(b, indices, valid, defined)

    def moved(self, parts: dict[str, Any]) -> Any:
        return self.tensor(self.value_of(parts["src"]))

    def tensor(self, x: Any) -> Any:
        """A tensor: a buffer, a view, or any node in such a position, whose elements are then what it is."""
        if isinstance(x, Node) and x.made is None:
            if len(x.lanes) != 1:
                raise Inapplicable  # its lanes are not looked at: one stands for all
            return Buffer(str(x.term.value), x.dtype)
        if not isinstance(x, (Buffer, View)):
            raise Unsupported("a tensor of this form")
        return x

    def sizes(self, part: Any, length: int | None) -> tuple[Expr, ...]:
        """Dimensions, or edges: integers that are not negative, as every shape's are."""
        nodes = self.of_length(length, part)
        for n in nodes:
            if not isinstance(n, Node):
                raise Unsupported("a dimension that is no number")
            if len(n.lanes) != 1:
                raise Inapplicable  # dimensions are scalars
        values = tuple(z3.Int(f"{n.term.value}.size") if n.dtype in OPAQUE else n.term.value for n in nodes)
        if not all(z3.is_int(v) for v in values):
            raise Unsupported("dimensions as bit vectors")
        self.premise(*(n.term.defined for n in nodes), *(v >= 0 for v in values))
        return values

    def some_rank(self, x: Any) -> int:
        found = self.rank(x)
        if found is None:
            self.world.limit(f"rank at most {RANKS[-1]}")
            found = RANKS[self.choices.pick(len(RANKS))]
        return found

    def op_reshape(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        x = self.moved(parts)
        length = None
        if isinstance(parts.get("shape"), (S.PVar, S.PSequence)) or any(
            isinstance(i, S.PSequence) for i in parts.get("shape") or ()
        ):
            self.world.limit(f"rank at most {RANKS[-1]}")
            length = RANKS[self.choices.pick(len(RANKS))]
        shape = self.sizes(parts["shape"], length)
        old = x.shape
        if old is None:  # of a tensor about which nothing is known: one of this shape
            return Buffer(f"{x.name if isinstance(x, Buffer) else 'view'}.reshaped", self.base_dtype(x), shape)
        self.premise(z3.Product(*shape) == z3.Product(*old) if len(shape) + len(old) > 2 else shape[0] == old[0])

        def index(i: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
            flat = i[0]
            for n, k in zip(shape[1:], i[1:], strict=True):
                flat = flat * n + k
            out: list[Expr] = []
            for n in reversed(old[1:]):
                q = self.world.arithmetic(self.world.dtype("index")).tdiv(flat, n)
                out.insert(0, flat - q * n)
                flat = q
            return (flat, *out), TRUE

        return View(x, len(shape), shape, index)

    def base_dtype(self, x: Any) -> str:
        while isinstance(x, View):
            x = x.base
        dtype: str = x.dtype
        return dtype

    def op_permute(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        part = parts["axes"]
        if isinstance(part, (S.PVar, S.EName)) and part.name not in self.names:
            orders = list(itertools.permutations(range(self.some_rank(x))))
            axes: tuple[int, ...] = orders[self.choices.pick(len(orders))]
            self.names[part.name] = Sequence(tuple(self.numbers.const(a) for a in axes))
        else:
            known = [self.numbers.n.known(self.number(a).value) for a in self.static(part, "axes").items]
            axes = tuple(a for a in known if a is not None)
        inverse = sorted(range(len(axes)), key=axes.__getitem__)
        shape = None if x.shape is None else tuple(x.shape[a] for a in axes)
        return View(x, len(axes), shape, lambda i: (tuple(i[inverse[k]] for k in range(len(axes))), TRUE))

    def op_expand(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        if x.shape is None:
            raise Unsupported("an expansion of unknown sizes")
        old = x.shape
        shape = self.sizes(parts["shape"], len(old))
        self.premise(*(z3.Or(n == 1, n == m) for n, m in zip(old, shape, strict=True)))
        return View(x, len(shape), shape, lambda i: (tuple(z3.If(n == 1, 0, k) for n, k in zip(old, i, strict=True)), TRUE))

    def edges(self, parts: dict[str, Any], x: Any) -> tuple[tuple[Expr, ...], tuple[Expr, ...], int]:
        rank = self.some_rank(x)
        return self.sizes(parts["begins"], rank), self.sizes(parts["ends"], rank), rank

    def op_shrink(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        begins, ends, rank = self.edges(parts, x)
        self.premise(*(b <= e for b, e in zip(begins, ends, strict=True)))
        shape = tuple(e - b for b, e in zip(begins, ends, strict=True))
        return View(x, rank, shape, lambda i: (tuple(k + b for k, b in zip(i, begins, strict=True)), TRUE))

    def op_pad(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        if x.shape is None:
            raise Unsupported("padding of unknown sizes")
        old = x.shape
        begins, ends, rank = self.edges(parts, x)
        shape = tuple(b + n + e for b, n, e in zip(begins, old, ends, strict=True))

        def index(i: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
            inner = tuple(k - b for k, b in zip(i, begins, strict=True))
            return inner, both(*(z3.And(k >= 0, k < n) for k, n in zip(inner, old, strict=True)))

        return View(x, rank, shape, index)

    def op_flip(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        if x.shape is None:
            raise Unsupported("a flip of unknown sizes")
        old = x.shape
        part = parts["axes"]
        if isinstance(part, (S.PVar, S.EName)) and part.name not in self.names:
            picks = list(itertools.product((False, True), repeat=len(old)))
            flips = picks[self.choices.pick(len(picks))]
            self.names[part.name] = Sequence(tuple(Truth(z3.BoolVal(f)) for f in flips))
        else:
            flips = tuple(
                z3.is_true(z3.simplify(self.flag(f)))
                for f in (part.items if isinstance(part, (S.PList, S.EList)) else self.names[part.name].items)
            )
        if len(flips) != len(old):
            raise Inapplicable
        return View(
            x, len(old), old, lambda i: (tuple(n - 1 - k if f else k for k, n, f in zip(i, old, flips, strict=True)), TRUE)
        )

    def flag(self, f: Any) -> Expr:
        if isinstance(f, Truth):
            return f.value
        written = f.value if isinstance(f, S.PExpr) else f
        assert isinstance(written, (S.ENumber, S.PLiteral))
        return z3.BoolVal(bool(written.value))

    def read(self, p: Place, dtype: str, otherwise: Expr, otherwise_defined: Expr) -> Term:
        """The element at a place: an access outside the buffer is undefined, one at an Invalid place is `otherwise`."""
        if self.phase == "flat":
            raise Unsupported("memory here")
        cell = z3.Function(f"{p.buffer.name}@{len(p.indices)}", *(i.sort() for i in p.indices), self.sort(dtype))(*p.indices)
        inside = self.within(p)
        return Term(choose(p.valid, cell, otherwise), both(p.defined, choose(p.valid, inside, otherwise_defined)))

    def within(self, p: Place) -> Expr:
        if p.buffer.shape is not None and len(p.buffer.shape) == len(p.indices):
            return both(*(z3.And(i >= 0, i < n) for i, n in zip(p.indices, p.buffer.shape, strict=True)))
        return z3.Function(f"{p.buffer.name}@{len(p.indices)}.inside", *(i.sort() for i in p.indices), z3.BoolSort())(*p.indices)

    def op_load(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        place = self.value_of(parts["index"])
        places = self.places.get(id(place))
        if places is None:
            raise Unsupported("a load from what is no place")
        alt = self.value_of(parts["alt"]) if parts.get("alt") is not None else None
        ty = self.type_or_none(at)
        lanes = self.lanes_of(ty) if ty is not None else len(places)
        if lanes != len(places):
            if len(places) != 1:
                raise Inapplicable
            p = places[0]
            *outer, last = p.indices
            places = tuple(replace(p, indices=(*outer, last + i)) for i in range(lanes))
        terms = []
        for i, p in enumerate(places):
            other = None if alt is None else alt.lanes[i] if len(alt.lanes) > 1 else alt.lanes[0]
            zero = self.zero_of(place.dtype) if other is None else other.value
            terms.append(self.read(p, place.dtype, zero, TRUE if other is None else other.defined))
        return Node(tuple(terms), place.dtype)

    def op_store(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """A statement: what it does is the place and the value, or nothing at an Invalid place."""
        place = self.value_of(parts["index"])
        places = self.places.get(id(place))
        value = self.value_of(parts["value"])
        if places is None or not isinstance(value, Node):
            raise Unsupported("a store to what is no place")
        done: list[Expr] = []
        defined: list[Expr] = []
        for i, p in enumerate(places):
            v = value.lanes[i] if len(value.lanes) > 1 else value.lanes[0]
            effect = z3.Function(f"store.{p.buffer.name}", *(x.sort() for x in p.indices), v.value.sort(), ELEMENT)(
                *p.indices, v.value
            )
            done.append(choose(p.valid, effect, NOTHING))
            defined.append(both(p.defined, either(negation(p.valid), both(self.within(p), v.defined))))
        for loop in self.many(parts.get("ranges")):
            done = [self.uses(loop, d) for d in done]
        return Node((Term(self.in_turn(done), both(*defined)),), "void")

    def in_turn(self, effects: Seq[Expr]) -> Expr:
        out = effects[0]
        for e in effects[1:]:
            out = z3.Function("then", ELEMENT, ELEMENT, ELEMENT)(out, e)
        return out

    def uses(self, loop: Any, effect: Expr) -> Expr:
        return effect

    def op_noop(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return Node((Term(NOTHING),), "void")

    # Order: values pass through; what must be waited for is a set that may only grow.

    def op_after(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        x = self.value_of(parts["passthrough"])
        waits = self.many(parts.get("deps"))
        if not waits:
            return x
        if not isinstance(x, Node):
            raise Unsupported("a buffer after something")
        tokens = [t.value for n in waits if isinstance(n, Node) for t in n.lanes]
        terms = tuple(replace(t, value=t.value) for t in x.lanes)
        node = Node(terms, x.dtype)
        self.waits = getattr(self, "waits", {})
        before = self.waits.get(id(x), frozenset())
        self.waits[id(node)] = before | frozenset(t.get_id() for t in tokens)
        self.kept = [*getattr(self, "kept", []), node, x, *tokens]
        return node

    def op_detach(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        """Marks for the scheduler: the value is the operand's."""
        return self.value_of(parts["src"])

    op_contiguous = op_detach
    op_contiguousbackward = op_detach

    # Loops.

    def op_range(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        end = self.value_of(parts["end"])
        dtype = self.dtype_of(at) if self.type_or_none(at) is not None else end.dtype
        self.counter = getattr(self, "counter", 0) + 1
        r = self.world.variable(f"range{self.counter}", dtype)
        n = self.numbers
        i, e = self.world.number_of(dtype, r), self.world.number_of(end.dtype, end.term)
        runs = both(n.compare("<=", n.const(0), i)[1], n.compare("<", i, e)[1])
        node = Node((Term(r.value, both(end.term.defined, runs)),), dtype)
        self.ranges = getattr(self, "ranges", {})
        self.ranges[id(node)] = Loop(node, end, f"range{self.counter}", True)
        self.kept = [*getattr(self, "kept", []), node]
        return node

    def bind(self, name: str, value: Any) -> Any:
        loop = getattr(self, "ranges", {}).get(id(value))
        if loop is not None:
            self.ranges[id(value)] = replace(loop, name=name)
        return super().bind(name, value)

    def loop_of(self, v: Any, name: str = "") -> Any:
        """A range operand as a loop: one made in the rule, or any other, with an end of its own."""
        found = getattr(self, "ranges", {}).get(id(v))
        if found is not None:
            return found
        if isinstance(v, Node):
            if v.dtype in OPAQUE:
                end = z3.Int(f"{v.lanes[0].value}.end")
                return Loop(v, Node((Term(end),), "index"), str(v.lanes[0].value))
            label = str(v.term.value)
            end_term = self.world.variable(f"{label}.end", v.dtype)
            return Loop(v, Node((end_term,), v.dtype), label)
        raise Unsupported("a loop of this form")

    def iterations(self, loop: Loop) -> Num:
        assert loop.end is not None
        if loop.end.dtype in OPAQUE or loop.end.dtype not in self.rule.dialect.dtypes:
            return Num(loop.end.term.value)
        number: Num = self.world.number_of(loop.end.dtype, loop.end.term)
        return number

    def op_end(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        """A loop without iterations does nothing, one with one does its body; of any other nothing is known but its parts."""
        loops = [self.loop_of(r) for r in self.many(parts.get("ranges"))]
        body = self.value_of(parts["body"])
        if not isinstance(body, Node):
            raise Unsupported("a loop around what is no statement")
        if not loops:
            return body
        if len(body.lanes) != 1 or body.dtype not in OPAQUE:
            raise Unsupported("a loop around a value")
        value, defined = body.term.value, body.term.defined
        n = self.numbers
        repeat = z3.Function("repeat", ELEMENT, z3.IntSort(), z3.IntSort(), ELEMENT)
        # ends close inner loops first, and two loops may change places only where the rule keeps their order
        for loop in reversed(loops):
            count = self.iterations(loop)
            label = z3.Int(f"loop.{loop.name}")
            many = repeat(value, count.value if z3.is_int(count.value) else z3.IntVal(0), label)
            one = n.compare("==", count, n.const(1))[1]
            none = n.compare("<=", count, n.const(0))[1]
            value = choose(either(none, value == NOTHING), NOTHING, choose(one, value, many))
            assert loop.end is not None
            defined = both(loop.end.term.defined, either(none, defined))
        # the body's value and whether it has one depend on the loops; where none runs neither matters
        return Node((Term(value, defined),), body.dtype)

    def op_reduce(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        part = parts["ranges"]
        loops = self.fold_loops(part)
        was, self.inside = self.inside, (*self.inside, *loops)
        body = self.value_of(parts["src"])
        self.inside = was
        op = self.reduction(parts.get("op"))
        if not isinstance(body, Node):
            raise Unsupported("a fold of what is no value")
        if "dtype" in parts and self.lanes_of(self.rule.type_of(at)) != len(body.lanes):
            raise Unsupported("a fold over lanes")
        if body.dtype in OPAQUE:
            raise Unsupported("a fold at an unknown dtype")
        if not loops:
            return body
        info = self.rule.dialect.ops[op]
        if body.dtype == "bool" and op in ("Add", "Mul", "Max", "Min"):
            info = self.rule.dialect.ops[{"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And"}[op]]
        return Node(tuple(self.folded(op, info, Node((lane,), body.dtype), loops) for lane in body.lanes), body.dtype)

    def fold_loops(self, part: Any) -> tuple[Any, ...]:
        if isinstance(part, S.PVar) and part.name not in self.names:
            loops = Loops(part.name)
            self.names[part.name] = loops
            return (loops,)
        if isinstance(part, S.EName) and isinstance(found := self.names.get(part.name), (Loops, Loop)):
            return (found,)
        items = list(part.items) if isinstance(part, (S.PList, S.EList)) else part if isinstance(part, list) else None
        if items is None:
            return tuple(self.loop_of(v) for v in self.many(part))
        out: list[Any] = []
        for item in items:
            name = getattr(item, "name", None) if isinstance(item, (S.PSequence, S.PVar)) else None
            if isinstance(item, S.ESpread) and isinstance(item.sequence, S.EName):
                found = self.names.get(item.sequence.name)
                if isinstance(found, Loops):
                    out.append(found)
                    continue
            if isinstance(item, S.PSequence):
                loops = self.names.setdefault(item.name, Loops(item.name))
                out.append(loops)
                continue
            v = self.value_of(item)
            out.append(replace(self.loop_of(v), name=name) if name else self.loop_of(v))
        return tuple(out)

    def reduction(self, part: Any) -> str:
        if isinstance(part, S.PVar) or (isinstance(part, S.EName) and part.name not in self.rule.dialect.ops):
            if part.name not in self.names:
                chosen = OpName(REDUCTIONS[self.choices.pick(len(REDUCTIONS))])
                if part.name.startswith("_"):
                    return chosen.name
                self.names[part.name] = chosen
            found = self.names[part.name]
            assert isinstance(found, OpName)
            return found.name
        if isinstance(part, S.PExpr):
            part = part.value
        if isinstance(part, S.EName):
            return part.name
        raise Unsupported("the op of a fold")

    def identity(self, op: str, dtype: str) -> Term:
        """What a fold over no iterations is."""
        if dtype == "index" and op in ("Max", "Min"):
            return Term(z3.IntVal(0), FALSE)
        if self.world.is_float(dtype):
            value: Any = {"Add": 0.0, "Mul": 1.0, "Max": float("-inf"), "Min": float("inf")}[op]
        elif dtype == "bool":
            value = op in ("Mul", "Min")
        elif op in ("Add", "Mul"):
            value = 0 if op == "Add" else 1
        else:
            d = self.world.dtype(dtype)
            value = int(d.min if op == "Max" else d.max)
        term: Term = self.world.constant(dtype, value)
        return term

    def folded(self, op: str, info: OpInfo, body: Node, loops: tuple[Any, ...]) -> Term:
        """A fold. Where the rule says how often a loop runs, it is unfolded; else it is judged by induction over iterations."""
        single = [loop for loop in loops if isinstance(loop, Loop) and loop.counted]
        if not single:
            return self.step(op, info, body, loops)
        n = self.numbers
        none = either(*(n.compare("<=", self.iterations(x), n.const(0))[1] for x in single))
        once = both(*(n.compare("==", self.iterations(x), n.const(1))[1] for x in single))
        others = tuple(loop for loop in loops if loop not in single)
        inner = self.unknown(op, body, others) if others else body.term
        found = self.select(none, self.identity(op, body.dtype), self.select(once, inner, self.unknown(op, body, loops)))
        return replace(found, defined=both(found.defined, *(x.end.term.defined for x in single if x.end is not None)))

    def unknown(self, op: str, body: Node, loops: tuple[Any, ...]) -> Term:
        """Some fold: the same for the same op, body and loops, and nothing more is known of it."""
        key = ("fold", op, body.dtype, body.term.value, tuple(x.name for x in loops))
        found: Term = self.world.once(key, lambda: self.state(body.dtype))
        return found

    def step(self, op: str, info: OpInfo, body: Node, loops: tuple[Any, ...]) -> Term:
        """The accumulator: the identity, any state, or the state after one more iteration, as the phase asks."""
        if not self.by_induction:
            return self.unknown(op, body, loops)
        if self.inside or any(f.loops != loops for f in self.folds):
            raise Unsupported("induction over several loops at once")
        state = self.unknown(op, body, loops)
        self.folds.append(Fold(op, body.dtype, state, body.term, loops))
        if self.phase == "base":
            return self.identity(op, body.dtype)
        if self.phase == "before":
            return state
        stepped: Term = solver_function(info)(self.world, self.world.dtype(body.dtype), state, body.term)
        return stepped

    def state(self, dtype: str) -> Term:
        self.states = getattr(self, "states", 0) + 1
        value = z3.Const(f"accumulator{self.states}", self.sort(dtype))
        if z3.is_int(value) and self.world.bits(dtype):
            n = self.world.arithmetic(self.world.dtype(dtype))
            self.world.assume(value >= n.low, value <= n.high)
        return Term(value, z3.Bool(f"accumulator{self.states}.defined"))

    # The end.

    def target(self, e: S.Expr, pattern: Any) -> Any:
        if isinstance(pattern, Node):
            return self.node(e, pattern.dtype)
        raise Unsupported("a rule about what is no value")

    def start_clauses(self, pattern: Any) -> None:
        if not isinstance(pattern, Node):
            raise Unsupported("a rule about what is no value")
        super().start_clauses(pattern)

    def finish(self, pattern: Any, target: Any) -> None:
        if not isinstance(target, Node):
            raise Unsupported("a target that is no value")
        if {pattern.dtype, target.dtype} <= OPAQUE:
            target = replace(target, dtype=pattern.dtype)
        if (
            len(target.lanes) == 1
            and len(pattern.lanes) > 1
            and target.made is not None
            and target.made.op in ("Const", "Invalid")
        ):
            target = replace(target, lanes=target.lanes * len(pattern.lanes))  # a constant fills the vector
        super().finish(pattern, target)
        waits = getattr(self, "waits", {})
        if not waits.get(id(pattern), frozenset()) <= waits.get(id(target), frozenset()):
            raise Unsupported("the target waits for less than the pattern")
        self.out.claim = both(*self.must, self.out.claim)


def mentions(at: S.Syntax) -> bool:
    return mentions_maybe_invalid(getattr(at, "type", None))


def free_names(rule: S.Rule) -> frozenset[tuple[str, str]]:
    """What the guards say is free of which ranges: `free_of(x, r)`, and `all(free_of(x, r) for r in rs)`, in a conjunction."""
    found: set[tuple[str, str]] = set()
    todo: list[S.Expr] = [c.condition for c in rule.clauses if isinstance(c, S.If)]
    while todo:
        e = todo.pop()
        if isinstance(e, S.EBinary) and e.op == "and":
            todo += [e.left, e.right]
        elif isinstance(e, S.ECall) and e.name == "free_of" and all(isinstance(a, S.EName) for a in e.args):
            found.add((e.args[0].name, e.args[1].name))  # type: ignore[attr-defined]
        elif isinstance(e, S.ECall) and e.name == "all" and len(e.args) == 1 and isinstance(e.args[0], S.EComprehension):
            c = e.args[0]
            body = c.body
            if (
                isinstance(body, S.ECall) and body.name == "free_of" and c.condition is None and isinstance(c.sequence, S.EName)
                and len(body.args) == 2 and isinstance(body.args[0], S.EName) and isinstance(body.args[1], S.EName)
                and c.names == (body.args[1].name,)
            ):  # fmt: skip
                found.add((body.args[0].name, c.sequence.name))
    return frozenset(found)


__all__ = ["DtypeName", "Obligation", "Sort", "StructureEncoder"]
