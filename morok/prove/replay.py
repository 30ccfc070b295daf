"""A counterexample run: the graph that a model describes, rewritten by the rule's own matcher, and both run by the interpreter.

For rules about lanes, memory and folds. What the model leaves open (what a buffer holds, elements of a dtype that the rule does
not look at, how often an unnamed loop runs) is chosen here, so that a difference found is one beyond doubt, and none found says
nothing.
"""

from __future__ import annotations

from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.errors import MorokError, UndefinedError
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.interpret import evaluate, run
from morok.ir.number import same_value
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.prove.encoding.freedom import free_names
from morok.rewrite.ruleset import RuleSet

SIZE: Final = 8  # elements of a buffer
LANES: Final = 4  # of a vector of which the model says nothing
LENGTHS: Final = (0, 1, 2, 3)  # of a loop that the rule does not name the end of
UNDEFINED: Final = "undefined"


class Unmakeable(Exception):
    """The pattern has a form that no graph is made for."""


Outcome = list[Any] | None  # the lanes of a value, or all that is in memory after a statement; None where it is undefined


def confirmed(rule: CheckedRule, instance: Instance, bindings: dict[str, Any]) -> bool:
    """True if the rule, applied to a graph with these bindings, gives another value than the graph has."""
    return Firing(rule, instance).differing(bindings) is not None


class Firing:
    """A rule at an instance, applied to graphs by its own matcher. A length of loops that showed a difference is tried first."""

    def __init__(self, rule: CheckedRule, instance: Instance) -> None:
        self.rule, self.instance = rule, instance
        self.rules = RuleSet.of([rule], unproved=True)
        self.lengths = list(LENGTHS)

    def differing(self, bindings: dict[str, Any]) -> tuple[list[Any], Outcome] | None:
        """The values of a graph with these bindings, and of the rule's result, where the two differ."""
        for length in self.lengths:
            try:
                maker = _Maker(self.rule, self.instance, bindings, length)
                before = maker.make(self.rule.syntax.pattern)
                hit = self.rules.rewrite_node(before)
                found = None if hit is None or hit[0] is before else _differ(before, hit[0], maker)
            except (Unmakeable, MorokError, ArithmeticError, LookupError):
                continue
            if found is not None:
                self.lengths.remove(length)
                self.lengths.insert(0, length)
                return found
        return None


def _differ(before: UOp, after: UOp, maker: _Maker) -> tuple[list[Any], Outcome] | None:
    expected = _outcome(before, maker)
    if expected is None:
        return None
    got = _outcome(after, maker)
    if got is None or len(got) != len(expected):
        return expected, got
    d = before.dtype.scalar() if before.dtype is not dtypes.void else dtypes.i32
    same = all(a is b or same_value(d, a, b) for a, b in zip(expected, got, strict=True))
    return None if same else (expected, got)


def _outcome(node: UOp, maker: _Maker) -> Outcome:
    """The lanes of a value, or all that is in memory after a statement; None where it is undefined."""
    held = {slot: list(content) for slot, content in maker.buffers.items()}
    try:
        if node.dtype is dtypes.void:
            run(UOp.sink(node), held, maker.variables)
            return [v for slot in sorted(held) for v in held[slot]]
        value = evaluate(node, maker.variables, held)
    except UndefinedError:
        return None
    return list(value) if isinstance(value, tuple) else [value]


class _Maker:
    """Makes the graph of a pattern from values by name; `length` is that of loops of which nothing is known."""

    def __init__(self, rule: CheckedRule, instance: Instance, bindings: dict[str, Any], length: int) -> None:
        self.rule, self.instance, self.bindings, self.length = rule, instance, bindings, length
        self.nodes: dict[str, UOp] = {}
        self.variables: dict[str, Any] = {}
        self.buffers: dict[int, list[Any]] = {}
        self.loops: list[UOp] = []
        self.free = {name for name, _ in free_names(rule.syntax)}
        self.unnamed = 0

    def dtype(self, ty: Ty) -> DType:
        name = self.instance.element(ty)
        return dtypes.i32 if name == "any" else BY_NAME[name]

    def type_of(self, p: S.Pattern, name: str = "") -> Ty:
        found = self.rule.types.get(id(p))
        bound = self.rule.bindings.get(name)
        if found is None and bound is not None:
            found = bound.type
        if found is None:
            raise Unmakeable("a node without a type")
        return found

    def make(self, p: Any) -> UOp:
        if isinstance(p, S.PExpr):
            p = p.value
        if isinstance(p, S.PSome):
            return self.make(p.inner)
        if isinstance(p, S.PBind):
            if p.name not in self.nodes:
                self.nodes[p.name] = self.constant(p.inner, p.name) if isinstance(p.inner, S.PConst) else self.make(p.inner)
            return self.nodes[p.name]
        if isinstance(p, S.PVar):
            return self.variable(p)
        if isinstance(p, S.PConst):
            return self.constant(p)
        if isinstance(p, S.PLiteral):
            return UOp.const(p.value, self.dtype(self.type_of(p)))
        if isinstance(p, S.PAlternatives):
            return self.make(p.options[0])
        if isinstance(p, S.POp):
            info = self.rule.dialect.ops[p.ops[0]]
            arguments = [a for a in p.args if not isinstance(a, S.PType)]
            if p.ops[0] == "Range":
                return self.loop(self.make(arguments[0]))
            if p.ops[0] == "End":
                ranges = self.ranges(arguments[1:])
                return self.make(arguments[0]).end(*ranges)
            if any(o.many for o in info.operands) and sum(o.many for o in info.operands) > 1:
                raise Unmakeable("two sequences of operands")
            return self.built(p.ops[0], [u for a in arguments for u in self.several(a)], {}, p)
        if isinstance(p, S.PStruct):
            return self.struct(p)
        raise Unmakeable(type(p).__name__)

    def built(self, op: str, operands: list[UOp], fields: dict[str, Any], p: S.Pattern) -> UOp:
        dtype: Any = None
        if op in ("Cast", "Bitcast", "Load") and id(p) in self.rule.types:
            dtype = self.dtype(self.type_of(p)).vec(operands[0].dtype.count if op != "Load" else 1)
        elif op == "Invalid":
            return UOp.invalid_at(dtypes.index)
        made: UOp = self.rule.dialect.build(op, operands, fields, dtype)
        return made

    def several(self, p: Any) -> list[UOp]:
        """The operands that one argument stands for: a sequence as many as the model names."""
        if isinstance(p, S.PSequence):
            count = len({k.split(".")[0] for k in self.bindings if k.startswith(f"{p.name}#")})
            ty = self.type_of(p, p.name)
            return [self.leaf(f"{p.name}#{i}", ty) for i in range(count)]
        if isinstance(p, (list, S.PList)):
            return [u for item in (p if isinstance(p, list) else p.items) for u in self.several(item)]
        return [self.make(p)]

    def struct(self, p: S.PStruct) -> UOp:
        info = self.rule.dialect.ops[p.op]
        parts = {f.name: f.value if f.value is not None else S.PVar(f.name) for f in p.fields}
        if p.op == "Reduce":
            return self.fold(parts)
        if p.op == "Range":
            return self.loop(self.make(parts["end"]))
        operands: list[UOp] = []
        for o in info.operands:
            part = parts.get(o.name)
            if part is not None and not isinstance(part, S.PNone):
                operands += self.several(part)
        return self.built(p.op, operands, {n: self.static(parts[n], n) for n in info.fields if n in parts}, p)

    def static(self, part: Any, field: str) -> Any:
        """A list of numbers or flags: as written, or as the model has it."""
        if isinstance(part, S.PExpr):
            part = part.value
        if isinstance(part, (S.PList, S.EList)):
            return tuple(self.number(i) for i in part.items)
        name = getattr(part, "name", "")
        found = [k for k in self.bindings if k.startswith(f"{name}[")]
        if not found:
            raise Unmakeable(f"a field {field} that the model does not name")
        return tuple(self.bindings[f"{name}[{i}]"] for i in range(len(found)))

    def number(self, item: Any) -> Any:
        if isinstance(item, S.PExpr):
            item = item.value
        if isinstance(item, (S.PLiteral, S.ENumber)):
            return item.value
        return self.bindings[item.name]

    def fold(self, parts: dict[str, Any]) -> UOp:
        ranges = self.ranges(parts["ranges"])
        self.loops = ranges
        body = self.make(parts["src"])
        self.loops = []
        op = getattr(parts.get("op"), "value", parts.get("op"))
        name = getattr(op, "name", "Add")
        return UOp.new(Op.Reduce, (body, *ranges), Op[name] if name in self.rule.dialect.ops else Op.Add)

    def ranges(self, part: Any) -> list[UOp]:
        items = part.items if isinstance(part, S.PList) else part if isinstance(part, list) else [part]
        out: list[UOp] = []
        for item in items:
            if isinstance(item, (S.PVar, S.PSequence)):
                out.append(self.loop(UOp.const(self.length, dtypes.index)))
            else:
                out.append(self.make(item))
        return out

    def loop(self, end: UOp) -> UOp:
        self.unnamed += 1
        return UOp.range(end, 100 + self.unnamed, AxisType.Reduce, True)

    def variable(self, p: S.PVar) -> UOp:
        if p.ignored:
            self.unnamed += 1
            label = next((k for k in self.bindings if k.split(".")[0].rstrip("0123456789") == p.name), f"{p.name}!{self.unnamed}")
            return self.leaf(label, self.type_of(p, p.name))
        if p.name not in self.nodes:
            self.nodes[p.name] = self.leaf(p.name, self.type_of(p, p.name))
        return self.nodes[p.name]

    def constant(self, p: S.PConst, node: str | None = None) -> UOp:
        d = self.dtype(self.type_of(p))
        fixed = {"zero": 0, "one": 1, "true": True, "false": False}
        if p.kind in fixed:
            return UOp.const(float(fixed[p.kind]) if d.is_float else fixed[p.kind], d)
        name = p.name or node
        if p.kind != "const" or name not in self.bindings:
            raise Unmakeable("a constant that the model does not name")
        return UOp.const(self.bindings[name], d)

    def leaf(self, name: str, ty: Ty) -> UOp:
        d = self.dtype(ty)
        if ty.pointer or ty.place:
            return self.buffer(d)
        if self.loops and name not in self.free and (d.is_int or d.is_float):
            return self.buffer(d).index(self.loops[0])
        if name in self.bindings:
            return self.known(name, d)
        lanes = [k for k in self.bindings if k.rpartition(".")[0] == name and k.rpartition(".")[2].isdigit()]
        if lanes:
            values = [self.bindings[f"{name}.{i}"] for i in range(len(lanes))]
            if UNDEFINED not in values:
                return vconst(d, values)
            return UOp.vectorize(*(self.known(f"{name}.{i}", d) for i in range(len(lanes))))
        if self.instance.element(ty) != "any":
            raise Unmakeable(f"{name}, of which the model says nothing")
        self.unnamed += 1
        first = 10 * self.unnamed
        if ty.lanes == 1 or (isinstance(ty.lanes, str) and not self.vectors()):
            return UOp.const(first, d)
        return vconst(d, [first + i for i in range(LANES)])

    def vectors(self) -> bool:
        """True if the rule takes lanes out of what it does not look at."""
        pattern = self.rule.syntax.pattern
        return isinstance(pattern, S.PStruct) and pattern.op == "Gep"

    def known(self, name: str, d: DType) -> UOp:
        value = self.bindings[name]
        if value == UNDEFINED:
            base = d if d.is_integral else dtypes.index
            none = UOp.const(1, base) // UOp.const(0, base)
            return none if base is d else none.cast(d)
        if value == "Invalid":
            return UOp.invalid_at(d)
        low, high = (self.bindings.get(f"{kind}.{name}") for kind in ("vmin", "vmax"))
        if d.is_integral and (low is not None or high is not None):
            return UOp.const(value, d)  # whose bounds are as near as any that the model may have
        self.variables[name] = value
        return UOp.var(name, d)

    def buffer(self, d: DType) -> UOp:
        slot = len(self.buffers)
        content: list[Any] = [(7 * i + 3 * slot + 1) % 13 for i in range(SIZE)]
        self.buffers[slot] = [bool(v % 2) if d.is_bool else float(v) if d.is_float else v for v in content]
        return UOp.new(Op.DefineGlobal, (), slot, d.ptr(SIZE))
