"""Random graphs for patterns about structure: lanes, storage, loops and views."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.ir.dtype import BY_NAME, AddrSpace, DType, dtypes
from morok.ir.interpret.lane_values import Lanes, combine
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp
from morok.prove.encoding.fold_induction import has_lanes_of_source
from morok.prove.fold_forms import regroups
from morok.prove.forms import folds_lanes
from morok.prove.kinds import ANY_FOLD
from morok.prove.parametric.tensor_rules import VIEWS
from morok.prove.rule_syntax import ops_of
from morok.prove.trust.graphs import Maker, Unmakeable, parts_of
from morok.prove.trust.tensor_graphs import ATTEMPTS, Misfit, TensorMaker

ELEMENTS: Final = 12  # of a buffer that is read at one index
SHAPES: Final = ((3, 4), (2, 2, 3))  # of one that is read at two, at three
LOOPS: Final = 20  # more than a graph has
FOLDS: Final = (Op.Add, Op.Mul, Op.Max, Op.Min)
# least and greatest number of iterations
ENDS: Final = ((0, 0), (1, 1), (1, 1), (2, 2), (3, 3), (4, 4), (4, 4), (0, 1), (0, 2), (1, 2), (-1, 0))
MEMORY: Final = {"DefineGlobal": AddrSpace.GLOBAL, "DefineLocal": AddrSpace.LOCAL, "DefineReg": AddrSpace.REG}
ANY: Final = ("i32", "f32")  # stand for every dtype in rules that do not look at it


@dataclass(frozen=True, slots=True)
class Layout:
    """The metadata of some Wmma: to lane i it adds the products of all lanes, those of the second operand turned by i."""

    dtype: DType

    def multiply(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        out = []
        for i, total in enumerate(c):
            for k, x in enumerate(a):
                product = combine(Op.Mul, self.dtype, x, b[(k + i) % len(b)], None)
                total = combine(Op.Add, self.dtype, total, product, None)
            out.append(total)
        return tuple(out)


class StructureMaker(Maker):
    """Makes a graph for a pattern of any form; vectors have the lanes that their Gep asks for."""

    ends: tuple[tuple[int, int], ...] = ENDS

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.loops: list[UOp] = []
        self.outward = False  # whether a loop made now lies around those made before
        self.buffers = 0
        self.named: dict[DType, UOp] = {}  # the last buffer of a dtype that the pattern has a name for
        self.limit = 0  # indices made now are below it, if it is not 0
        self.rank = 0  # of a view made now, if it is not 0
        self.statics: dict[str, Any] = {}
        self.widths: dict[str, int] = {}  # lanes by the name that the pattern has for them
        self.any = BY_NAME[rng.choice(ANY)]
        self.sequence = 0  # how many loops, or statements, a name for several stands for; 0 for any
        if "Wmma" in ops_of(rule):  # of fewer than three lanes it is the same with its factors exchanged
            self.lanes = rng.choice((1, 3, 4))
        self.in_any_order = folds_lanes(rule) or regroups(rule) or "reassoc" in rule.syntax.assuming

    def scalar(self, node: S.Syntax) -> DType:
        ty = self.rule.types.get(id(node))
        name = "any" if ty is None else self.instance.element(ty)
        return BY_NAME.get(name, self.any) if name != "void" else dtypes.void

    def width(self, node: S.Syntax) -> int:
        """The lanes that the pattern gives a node: a number, one choice for each name, else those that are wanted here."""
        ty = self.rule.types.get(id(node))
        if ty is None or ty.lanes is None:
            return self.lanes
        if isinstance(ty.lanes, int):
            return ty.lanes
        return self.widths.setdefault(str(ty.lanes), self.rng.choice((1, 2, 2, 3)))

    def variable(self, d: DType, maybe_invalid: bool = False) -> UOp:
        rng = self.rng
        if d is dtypes.void:
            return self.effect()
        if d.is_float and self.in_any_order:  # a sum or a product of these is one number
            self.count += 1
            positive = UOp.var(f"v{self.count}", dtypes.bool.vec(self.lanes))
            return positive.where(self.const(d, 1.0), self.const(d, -1.0))
        if self.loops and self.lanes == 1 and rng.random() < 0.6:
            at = rng.choice(self.loops)
            if rng.random() < 0.3:
                at = UOp.new(rng.choice((Op.Mod, Op.Mod, Op.Idiv)), (at, at.like(rng.choice((2, 2, 3)))))
            return at if at.dtype is d else at.cast(d)
        if self.limit and d.is_index and not maybe_invalid:
            self.count += 1
            return UOp.var(f"v{self.count}", d.vec(self.lanes), 0, self.limit - 1)
        return super().variable(d, maybe_invalid)

    def constants(self, d: DType, count: int) -> list[Any]:
        """The numbers of a vector constant; of indices often different ones, of elements that there are."""
        if not self.limit or not d.is_index or self.rng.random() < 0.3:
            return super().constants(d, count)
        there = range(max(self.there, count))
        return self.rng.sample(there, count) if self.rng.random() < 0.7 else self.rng.choices(there, k=count)

    @property
    def there(self) -> int:
        """The number of elements that an index may be one of."""
        return self.limit

    def make(self, p: S.Pattern) -> UOp:
        ty = self.rule.types.get(id(p))
        if ty is not None and ty.lanes == 1 and self.lanes != 1:
            return self.vector(p, 1)
        match p:
            case S.PStruct(op=op) | S.POp(ops=(op, *_)) if op in VIEWS:
                return self.view(p)
            case S.PStruct(op="Reduce"):
                return self.op_reduce(parts_of(p), p)
            case S.PStruct(op=op) | S.POp(ops=(op,)) if op in MEMORY:
                return self.memory(op, p)
            case S.PStruct(op=op):
                return self.structure(op, parts_of(p))
            case S.POp(ops=("Bitcast",), args=(x, *_)):  # of as many lanes
                read = self.make(x)
                return read.bitcast(self.scalar(p).vec(read.dtype.count))
            case S.POp(ops=ops) if not TABLE[Op[ops[0]]].pointwise:
                return self.structure(ops[0], parts_of(p))
            case S.PVar(name=name) if name in self.nodes:
                return self.nodes[name]
        return super().make(p)

    # parts by name

    def bind(self, p: Any, node: UOp) -> UOp:
        """Remember what a variable of the pattern stands for."""
        if isinstance(p, S.PVar) and not p.ignored:
            self.nodes[p.name] = node
        return node

    def structure(self, op: str, parts: dict[str, Any]) -> UOp:
        build = getattr(self, f"op_{op.lower()}", None)
        if build is None:
            raise Unmakeable(op)
        made: UOp = build(parts)
        return made

    def static(self, p: Any, choices: Sequence[Any]) -> Any:
        """The value of a static field: what the pattern says, or a choice that its name is bound to."""
        match p:
            case S.EName(name=name) if name in Op.__members__:
                return Op[name]
            case S.EName(name=name) | S.PVar(name=name):
                if name not in self.statics or name.startswith("_"):
                    self.statics[name] = self.rng.choice(choices)
                return self.statics[name]
            case S.ENumber(value=v) | S.PLiteral(value=v):
                return v
            case S.EList(items=items) | S.PList(items=items):
                return tuple(self.static(i, choices) for i in items)
        raise Unmakeable(type(p).__name__)

    # loops

    def loop(self, p: Any = None, axis: AxisType = AxisType.Loop) -> UOp:
        """A new range, or the one that a pattern of a Range describes."""
        if isinstance(p, S.PBind):
            return self.bind(S.PVar(p.name), self.loop(p.inner, axis))
        if isinstance(p, S.PVar):
            if p.name in self.nodes:
                return self.nodes[p.name]
            again = self.loops and self.rng.random() < 0.1  # two names may be one loop
            return self.bind(p, self.loops[-1] if again else self.op_range({}, axis, self.counter(p)))
        return self.op_range({} if p is None else parts_of(p), axis)

    def counter(self, p: S.Syntax) -> DType:
        """The dtype that a loop's counter has by the pattern."""
        d = self.scalar(p)
        return d if d.is_int and p is not None and id(p) in self.rule.types else dtypes.index

    def op_range(self, parts: dict[str, Any], axis: AxisType = AxisType.Loop, d: DType = dtypes.index) -> UOp:
        end = parts.get("end")
        d = d if end is None else self.scalar(end)
        least, most = self.rng.choice(self.ends)
        if isinstance(end, S.PConst):
            least = most
        least = max(least, int(d.min)) if d.is_int else least
        self.count += 1
        count = self.iterations(d, least, most)
        if end is not None:
            self.bind(end, count)
        made = UOp.range(count, LOOPS - len(self.loops) if self.outward else len(self.loops), axis)
        self.loops.append(made)
        return made

    def iterations(self, d: DType, least: int, most: int) -> UOp:
        """The length of a loop, between two numbers."""
        return UOp.const(most, d) if least == most else UOp.var(f"n{self.count}", d, least, most)

    def loops_of(self, p: Any, axis: AxisType) -> list[UOp]:
        items = (
            p.items
            if isinstance(p, S.PList)
            else p
            if isinstance(p, list)
            else [S.PSequence(p.name)]
            if p is not None
            else []
        )
        found: list[UOp] = []
        for item in items:
            if isinstance(item, S.PSequence):
                found += [
                    self.op_range({}, axis, self.counter(item)) for _ in range(self.sequence or self.rng.randrange(2))
                ]
            else:
                found.append(self.loop(item, axis))
        return found

    def op_reduce(self, parts: dict[str, Any], p: S.PStruct) -> UOp:
        ranges = self.loops_of(parts.get("ranges"), AxisType.Reduce)
        op = self.static(parts.get("op", ANY_FOLD), FOLDS)
        if folds_lanes(self.rule):
            results = self.rng.choice((1, 1, 1, 2, 3, 5))
            source = self.vector(parts["src"], results * self.folded())
            results = results if source.dtype.count % results == 0 else 1
        elif has_lanes_of_source(self.rule, parts["src"], p) or self.rng.random() < 0.7:
            return self.make(parts["src"]).reduce(op, *ranges)
        else:
            results = 1
            source = self.vector(parts["src"], self.rng.choice((2, 3)))
        return UOp.new(Op.Reduce, (source, *ranges), op, source.dtype.scalar().vec(results))

    def folded(self) -> int:
        """The number of lanes that are folded into one."""
        return self.rng.choice((1, 2, 2, 3, 4, 4, 5, 6, 35))

    def op_end(self, parts: dict[str, Any]) -> UOp:
        self.outward = self.rng.random() < 0.5
        ranges = self.loops_of(parts["ranges"], AxisType.Loop)
        body = parts["body"]
        made = (
            self.make(body)
            if isinstance(body, (S.PStruct, S.POp)) and "End" in S.ops_matched(body)
            else self.bind(body, self.effect())
        )
        return UOp.new(Op.End, (made, *ranges))

    def effect(self) -> UOp:
        """A store, at a place and of a value that may depend on the loops."""
        if self.rule.context is not None and self.loops:
            return self.effect_of_a_kernel()
        at = self.loops[-1] if self.loops and self.loops[-1].dtype.is_index else UOp.const(self.rng.randrange(3))
        if self.rng.random() < 0.2:  # several iterations store to one place, the last one for good
            at = UOp.new(Op.Mod, (at, at.like(2)))
        return self.storage(self.any).index(at).store(self.variable(self.any))

    def effect_of_a_kernel(self) -> UOp:
        """A store as kernels have it, to a place of its own in each iteration, perhaps of what depends on a condition."""
        at, size = UOp.const(0), 1
        for r in self.loops:
            length = int(r.vmax) + 1
            at, size = at * length + (r if r.dtype.is_index else r.cast(dtypes.index)), size * length
        value = self.variable(self.any)
        if self.rng.random() < 0.3:
            loop = self.rng.choice(self.loops)
            value = loop.lt(loop.like(self.rng.choice((1, 2)))).where(value, self.variable(self.any))
        return self.storage(self.any, size).index(at).store(value)

    # storage

    def storage(self, d: DType, size: int = ELEMENTS) -> UOp:
        self.buffers += 1
        return UOp.new(Op.DefineGlobal, (), self.buffers, d.ptr(size))

    def memory(self, op: str, p: S.POp | S.PStruct) -> UOp:
        """Storage of which the pattern says what it is."""
        self.buffers += 1
        number = [self.static(field, [self.buffers]) for field in parts_of(p).values()]
        return UOp.new(Op[op], (), number[0] if number else self.buffers, self.scalar(p).ptr(ELEMENTS, MEMORY[op]))

    def shaped(self, d: DType, rank: int) -> UOp:
        """A buffer that is read at so many indices: for two names it may be one."""
        if rank == 1:
            if d not in self.named or self.rng.random() < 0.7:
                self.named[d] = self.storage(d)
            return self.named[d]
        if not 2 <= rank < len(SHAPES) + 2:
            raise Unmakeable(f"a buffer of {rank} dimensions")
        return self.tensor(SHAPES[rank - 2], d)

    def op_index(self, parts: dict[str, Any]) -> UOp:
        p, where = parts["buffer"], parts["indices"]
        patterns = where.items if isinstance(where, S.PList) else where
        every = isinstance(patterns, S.PVar) or (len(patterns) == 1 and isinstance(patterns[0], S.PSequence))
        inner = p.inner if isinstance(p, S.PBind) else p
        if isinstance(inner, (S.POp, S.PStruct, S.PAlternatives)):
            self.rank = 0 if every else len(patterns)
            buffer = self.make(p)
        elif p.name in self.nodes:
            buffer = self.nodes[p.name]
        else:
            buffer = self.bind(p, self.shaped(self.scalar(p), 1 if every else len(patterns)))
        sizes = [n if isinstance(n, int) else int(n.arg) for n in buffer.shape]
        # kernels' storage has no shape; a place in it has none either, nor elements
        if not sizes and buffer.op is not Op.Index:
            sizes = [ELEMENTS]
        if every:
            patterns = [S.PVar("_") for _ in sizes]
        elif len(patterns) != len(sizes):
            raise Unmakeable(f"{len(patterns)} indices of {len(sizes)} dimensions")
        indices = []
        for item, n in zip(patterns, sizes, strict=True):
            self.limit = n
            indices.append(self.variable(dtypes.index) if item == S.PVar("_") else self.vector(item, self.width(item)))
            self.limit = 0
        gate = self.vector(parts["gate"], self.width(parts["gate"])) if "gate" in parts else None
        return buffer.index(*indices, gate=gate)

    def op_load(self, parts: dict[str, Any]) -> UOp:
        place = self.make(parts["index"])
        if place.dtype.count == 1 and "alt" not in parts and self.rng.random() < 0.2:
            return place.load(place.dtype.vec(self.rng.choice((2, 3))))
        return UOp.new(Op.Load, (place, *([self.make(parts["alt"])] if "alt" in parts else [])))

    def op_store(self, parts: dict[str, Any]) -> UOp:
        loops = self.loops_of(parts.get("ranges"), AxisType.Loop)
        place = self.make(parts["index"])
        value = parts["value"]
        lanes = max([1, *[i.dtype.count for i in place.src[1:]]])
        if (ty := self.rule.types.get(id(value))) is not None and isinstance(ty.lanes, int):
            lanes = max(lanes, ty.lanes)
        if isinstance(value, S.PVar) and value.name not in self.nodes:
            kept, self.lanes = self.lanes, self.stored(value, lanes)
            made = self.bind(value, self.variable(place.dtype.scalar()))
            self.lanes = kept
        else:
            made = self.vector(value, lanes)
        return UOp.new(Op.Store, (place, made, *loops))

    def stored(self, value: S.PVar, places: int) -> int:
        """The number of lanes that are stored to so many places."""
        return places

    def op_invalid(self, parts: dict[str, Any]) -> UOp:
        return UOp.invalid_at()

    def op_noop(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Noop, tuple([self.vector(p, 1) for p in parts.get("sources", ())]))

    def op_group(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Group, tuple(self.statements(parts["sources"])))

    def op_after(self, parts: dict[str, Any]) -> UOp:
        x, *rest = parts.values()
        if not isinstance(x, S.PVar) or self.is_number(x) or x.name in self.nodes:
            passed = self.make(x)
        else:
            passed = self.bind(x, self.shaped(self.scalar(x), 1))
        return UOp.new(Op.After, (passed, *(s for deps in rest for s in self.statements(deps))))

    def statements(self, patterns: Sequence[S.Pattern]) -> list[UOp]:
        """One for each pattern, and several for a sequence."""
        found: list[UOp] = []
        for p in patterns:
            if isinstance(p, S.PSequence):
                found += [self.effect() for _ in range(self.sequence or self.rng.randrange(1, 4))]
            else:
                found.append(self.vector(p, 1))
        return found

    def is_number(self, p: S.Pattern) -> bool:
        """True if a pattern states the dtype of the numbers that it matches."""
        ty = self.rule.types.get(id(p))
        return ty is not None and not ty.pointer and not ty.place and self.instance.element(ty) in BY_NAME

    def op_detach(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Detach, (self.make(parts["src"]),))

    def op_contiguous(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Contiguous, (self.make(parts["src"]),))

    def op_contiguousbackward(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.ContiguousBackward, (self.make(parts["src"]),))

    # lanes

    def vector(self, p: Any, lanes: int) -> UOp:
        kept, self.lanes = self.lanes, lanes
        if isinstance(p, S.PVar) and p.name not in self.nodes and self.scalar(p) is dtypes.void:
            made = self.bind(p, self.effect())
        else:
            made = self.make(p)
        self.lanes = kept
        return made

    def op_gep(self, parts: dict[str, Any]) -> UOp:
        vector = self.vector(parts["vector"], self.rng.choice((1, 2, 3, 4)) if self.lanes == 1 else self.lanes)
        count = vector.dtype.count
        which = parts["indices"]
        if isinstance(which, (S.EList, S.PList)):
            lanes = self.static(which, range(count))
        elif self.rng.random() < 0.3:
            lanes = tuple(range(count))
        else:
            lanes = tuple(self.rng.randrange(count) for _ in range(self.rng.choice((1, 2, 2, 3))))
        return vector.gep(*lanes)

    def elements(self, p: Any, lanes: int, most: int = 4) -> list[UOp]:
        """Vectors, or scalars, for a list of operands and its rest."""
        found: list[UOp] = []
        for item in p if isinstance(p, list) else [p]:
            if isinstance(item, S.PSequence):
                d, kept, self.lanes = self.scalar(item), self.lanes, lanes
                found += self.several_of(d, self.items(lanes, most))
                self.lanes = kept
            else:
                found.append(self.vector(item, lanes))
        return [f if f.dtype.scalar() is found[0].dtype.scalar() else found[0] for f in found]

    def several_of(self, d: DType, count: int) -> list[UOp]:
        return [self.variable(d) for _ in range(count)]

    def items(self, lanes: int, most: int) -> int:
        """The number of items of a sequence, each of so many lanes."""
        return self.rng.randrange(1, most)

    def op_vectorize(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Vectorize, tuple(self.elements(parts["elements"], 1)))

    def op_cat(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Cat, tuple(self.joined(parts["sources"], self.rng.choice((1, 2)))))

    def joined(self, sources: Any, lanes: int) -> list[UOp]:
        """The operands of a Cat: of so many lanes, or each with those that the pattern gives it."""
        if not isinstance(sources, list) or self.rng.random() < 0.5:
            return self.elements(sources, lanes, 3)
        widths = [lanes if isinstance(s, S.PSequence) else self.width(s) for s in sources]
        return [x for s, width in zip(sources, widths, strict=True) for x in self.elements(s, width, 3)]

    def op_ptrcat(self, parts: dict[str, Any]) -> UOp:
        places: list[UOp] = []
        for item in parts["sources"]:
            for _ in range(self.items(1, 4) if isinstance(item, S.PSequence) else 1):
                places.append(self.bind(item, self.storage(self.any).index(self.rng.randrange(ELEMENTS))))
        return UOp.new(Op.PtrCat, tuple(places))

    def op_wmma(self, parts: dict[str, Any]) -> UOp:
        c = self.vector(parts["c"], self.lanes)
        d = c.dtype.scalar()
        a, b = (self.factor(parts[name], d) for name in ("a", "b"))
        if any(f.dtype.scalar().is_float != d.is_float for f in (a, b)):
            raise ValueError("a product of floats and integers")  # another choice of dtypes may fit
        return UOp.new(Op.Wmma, (a, b, c), Layout(d))

    def factor(self, p: S.Pattern, d: DType) -> UOp:
        """A factor of a product: what a pattern says of it, else numbers of the dtype of the sum."""
        ty = self.rule.types.get(id(p))
        if not isinstance(p, S.PVar) or (ty is not None and ty.fixed):
            return self.vector(p, self.lanes)
        return self.bind(p, self.variable(d))

    # views

    def tensor(self, dims: Sequence[int], d: DType | None = None) -> UOp:
        self.buffers += 1
        unique = UOp.new(Op.Unique, (), self.buffers)
        base = UOp.new(Op.Buffer, (unique, UOp.new(Op.Device, (), "CPU")), math.prod(dims), d or self.any)
        return UOp.new(Op.Reshape, (base, *map(UOp.const, dims)))

    def view(self, p: S.POp | S.PStruct) -> UOp:
        """A view of as many axes as it is read at, or of a few, as the maker of tensors makes it."""
        rank, self.rank = self.rank or self.rng.choice((1, 2, 2, 3)), 0
        tensors = TensorMaker(self.rule, self.instance, self.rng)
        tensors.any, tensors.count, tensors.buffers = self.any, self.count, self.buffers
        for _ in range(ATTEMPTS):
            tensors.nodes = dict(self.nodes)
            tensors.fields.clear()
            with contextlib.suppress(Misfit):
                made = tensors.tensor(p, tuple([self.rng.choice((1, 2, 2, 3)) for _ in range(rank)]))
                self.nodes, self.count, self.buffers = tensors.nodes, tensors.count, tensors.buffers
                return made
        raise ValueError("no view whose parts fit each other")
