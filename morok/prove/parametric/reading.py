"""The reading of a rule at every size: what its pattern binds, its clauses, its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.prove import smt
from morok.prove.encoding.obligation import Choices
from morok.prove.forms import admits_invalid, asks_for_axes, conjuncts, pointers
from morok.prove.kinds import Parts, whole
from morok.prove.open_operands import left_open
from morok.prove.parametric import (
    axis_conditions,
    conditions,
    contracts,
    expressions,
    laws,
    statements,
    structural_ops,
    tensor_rules,
    tensors,
)
from morok.prove.parametric.lane_unknowns import Lanes
from morok.prove.parametric.op_functions import one_of, ring, whole_number, wraps, zero_of
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.rule_values import (
    AxisList,
    Branch,
    Datum,
    Dtype,
    Fold,
    Items,
    Register,
    Shared,
    Statement,
    Vector,
    items,
    number,
    place,
    splat,
    vector,
)
from morok.prove.parametric.sequences import axis_list_or_none, listed, one_by_one, segments
from morok.prove.parametric.setting import Setting
from morok.prove.parametric.shapes import Shapes, evaluated
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

VALUE, AXES, ITERATION = laws.VALUE, laws.AXES, laws.ITERATION


_NUMBERS: Final = {"zero": 0, "one": 1}
_TRUTHS: Final = {"true": True, "false": False}


class LengthAsked(Exception):
    """The length that a reading ended at, and the claim that it is not negative there."""

    def __init__(self, length: Integer, claim: Expr) -> None:
        super().__init__()
        self.length = length
        self.claim = claim


class Reading:
    """One rule, with one choice among the alternatives of its pattern.

    names      what each name stands for
    guards     the conditions of each guard, with one case of those that have several
    part       of the rule, that is being read
    sure       the expressions of guards, by their identities, without a value of which the rule does not fire
    shapes     the variables that guards say are of one shape
    wanted     how many lanes the result has
    folded     the fold that the pattern is
    closing    the loops that close axes where they are folded over
    fixed      the dtypes that it names
    guarding   truth of a guard being read: what is not known of it is left open
    premising  truth of a condition being read of which only what follows from it is asked
    here       the iteration at which the sides are compared
    one_lane   truth of every node having one lane, as elements of tensors have
    met_tensors  truth of the pattern having something that only tensors have
    about_axes  truth of the rule having something to do with axes, and `asks` of it asking nodes for these
    numbers    truth of the operands that are read being sizes of tensors, or indices, and not tensors
    probing    greater than 0 where something is read again, of which all claims are made
    places     the places, in the sequences that are gone over, of the items that names stand for
    lengths_there  how many items there are where a place is of one of them
    asked      the function that each question about a bound is, by the identity of its expression
    lengths    how many ranges were read whose lengths may be negative, as far as is known, and `last` the number of the one that
               the reading ends at; None where it ends at none
    """

    def __init__(self, rule: CheckedRule, choices: Choices, last: int | None = None) -> None:
        self.rule = rule
        self.last = last
        self.lengths = 0
        self.choices = choices
        self.setting = Setting()
        self.names: dict[str, Any] = {}
        guards = [c for c in rule.syntax.clauses if isinstance(c, S.If)]
        self.guards = {id(g): [self._case(c) for c in conjuncts(g.condition)] for g in guards}
        conditions = [c for g in guards for c in self.guards[id(g)]]
        self.sure = {id(at) for c in conditions for at in evaluated(c)}
        self.shapes = Shapes(conditions)
        self.tensors = tensor_rules.about_tensors(rule)
        self.one_lane = self.tensors and tensor_rules.has_one_lane(rule)
        self.setting.few_elements = self.tensors and tensor_rules.folds_one_element(rule)
        self.met_tensors = False
        self.built_in = built_in(rule.dialect)
        self.lanes = Lanes(rule, self.setting, conditions, self.one_lane)
        self.about_axes = asks_for_axes(rule.syntax) or not {"Unroll", "Contract"}.isdisjoint(ops_of(rule))
        self.asks = axis_conditions.asked_of_nodes(rule.syntax)
        self.part: Literal["pattern", "clauses", "target"] = "pattern"
        self.fixed = {t.element for t in rule.types.values() if t.fixed}
        self.guarding = False
        self.probing = 0
        self.premising = False
        self.numbers = False
        self.here = self.setting.iteration(smt.Const(Symbol("fixed", "here"), ITERATION))
        self.wanted = integer(1)
        self.folded: Fold | None = None
        self.closing: set[str] = set()
        self.places: tuple[smt.Expr, ...] = ()
        self.lengths_there: dict[smt.Expr, Integer] = {}
        self.asked: dict[tuple[int, str], Symbol] = {}

    def _case(self, condition: S.Expr) -> S.Expr:
        """One of two conditions on lanes of which a guard asks for either: a rule that holds under each holds under both."""
        match condition:
            case S.EBinary(op="or", left=S.ECompare() as left, right=S.ECompare() as right) if all(
                isinstance(side.operands[0], S.ECall) and side.operands[0].name == "lanes" for side in (left, right)
            ):
                return (left, right)[self.choices.pick(2)]
        return condition

    def sides(self) -> tuple[Any, Any]:
        """Pattern and target: two nodes, or two statements."""
        pattern = self.pattern(self.rule.syntax.pattern)
        if self.one_lane and not self.met_tensors:
            raise Unsupported("a pattern without tensors, whose nodes may be vectors")
        if isinstance(pattern, Vector):
            self.wanted = pattern.count if pattern.of_vectors is None or pattern.held is None else pattern.held().count
        self.folded = pattern.fold if isinstance(pattern, Vector) else None
        self.part = "clauses"
        for clause in self.rule.syntax.clauses:
            if isinstance(clause, S.Let):
                self.let(clause)
            else:
                for c in self.guards[id(clause)]:
                    self.guard(c)
        self.part = "target"
        return pattern, self.node(self.rule.syntax.target)

    def let(self, clause: S.Let) -> None:
        value = self.value(clause.value)
        if clause.names[0] in self.lanes.stand_ins:
            self.names[clause.names[0]] = known = self.lanes.stand_ins[clause.names[0]]
            self.setting.premise(known.term == number(value).term)
        elif len(clause.names) == 1:
            self.names[clause.names[0]] = value
        elif isinstance(value, tuple) and len(value) == len(clause.names):
            self.names |= dict(zip(clause.names, value, strict=True))
        else:
            raise Unsupported("several names for one value")

    def guard(self, condition: S.Expr) -> None:
        """A premise; one that is not understood is left out, so that less is known."""
        self.guarding = True
        try:
            self.setting.premise(self.known(condition))
        except Unsupported:
            pass
        finally:
            self.guarding = False

    @property
    def surely(self) -> bool:
        """True if the part that is being read has a value wherever the rule fires: it stands in no condition, which may leave it
        out, and is not about the items of a sequence, of which there may be none. Any other part may add no premises: neither
        that it has a value, nor what its claims say, which are not made there, or not for all items.
        """
        return not (self.guarding or self.probing or self.setting.guard or self.setting.trying)

    def claim(self, condition: Expr) -> None:
        """A condition that what is built must meet."""
        if self.part != "pattern" and not self.guarding and not self.probing:
            self.setting.claim(condition)

    def exists(self, condition: Expr) -> None:
        """A condition on every node of an op: known of the nodes that are matched, to be shown of those that are built."""
        if self.part == "pattern":
            self.setting.premise(condition)
        else:
            self.claim(condition)

    def reached(self, condition: Expr) -> None:
        """A condition without which the rule does not fire: a premise where a `let` needs it for its value. What is needed for
        the items of sequences, and in the target, must be shown.
        """
        if self.part == "clauses" and self.surely:
            self.setting.premise(condition)
        else:
            self.claim(condition)

    def ranged(self, length: Integer) -> None:
        """Claim that a range has no negative length. What is read after it takes the difference of the ends for its length, which
        is so where this claim holds: it must be shown of what is known before. LengthAsked where the reading ends here.
        """
        s = self.setting
        if self.last is not None and not (self.probing or s.trying or s.surely_not_negative(length)):
            if self.lengths == self.last:
                claim = length.term >= 0
                raise LengthAsked(length, smt.Implies(smt.And(*s.guard), claim) if s.guard else claim)
            self.lengths += 1
        self.claim(length.term >= 0)

    # what the files of this folder read by each other

    def value(self, e: S.Expr) -> Any:
        """The value of a compile-time expression, or the node that it makes."""
        return expressions.value(self, e)

    def truth(self, e: S.Expr) -> Expr:
        """The condition that an expression is."""
        return conditions.truth(self, e)

    def known(self, e: S.Expr) -> Expr:
        """A condition that is known: what follows from it, and perhaps less than it says."""
        was, self.premising = self.premising, True
        try:
            return conditions.truth(self, e)
        finally:
            self.premising = was

    def dtype(self, e: S.Expr) -> Dtype:
        """The dtype that a node is made with: `dtype(x)` is that of one lane."""
        found = self.value(e)
        if isinstance(e, S.ECall) and len(e.args) == 1 and isinstance(found, Dtype):
            return Dtype(found.element, integer(1))
        if not isinstance(found, Dtype):
            raise Unsupported("a dtype that is not read")
        return found

    def made(self, op: str, parts: Parts, at: Any) -> Vector | Statement | Register | Shared | Branch:
        """A node of an op."""
        return structural_ops.made(self, op, parts, at)

    def result(self, call: S.ECall, arguments: list[Any]) -> Any:
        """The result of a helper."""
        return contracts.result(self, self.rule.externs[call.name], arguments, id(call) in self.sure)

    # types

    def type(self, at: Any) -> Ty | None:
        found = self.rule.types.get(id(at))
        if found is None and isinstance(at, S.PVar) and at.name in self.rule.bindings:
            found = self.rule.bindings[at.name].type
        if found is not None and found.place and isinstance(at, (S.PVar, S.EName)) and at.name in pointers(self.rule):
            return replace(found, pointer=True, place=False)
        return found

    def element(self, at: Any) -> str:
        """The dtype of a node's elements, or the variable that it is in the rule."""
        ty = self.type(at)
        if ty is None:
            raise Unsupported("an operand of a dtype that nothing says")
        return f"ptr {ty.element}" if ty.pointer else ty.element

    # patterns

    def pattern(self, p: Any) -> Any:
        match p:
            case S.PExpr():
                return self.value(p.value)
            case S.PSome():
                return self.pattern(p.inner)
            case S.PVar():
                if p.name in self.names:
                    return self.names[p.name]
                name = self.symbol(p.name)
                made = self.variable(name, self.type(p))
                if admits_invalid(self.rule, p) and isinstance(made, Vector):  # the lanes, and the elements of a tensor
                    self.setting.may_be_invalid |= {made.at(self.here, integer(0)).data, tensors.cell(name)}
                return made if p.ignored else self.bind(p.name, made)
            case S.PBind():
                return self.bind(p.name, self.pattern(p.inner))
            case S.PConst():
                return self.constant(p)
            case S.PLiteral():
                return splat(self.literal(p, self.element(p)))
            case S.POp():
                op = p.ops[self.choices.pick(len(p.ops))]
                return self.made(op, self.parts(op, p), p)
            case S.PStruct():
                return self.made(p.op, self.parts(p.op, p), p)
            case S.PAlternatives():
                return self.pattern(p.options[self.choices.pick(len(p.options))])
        raise Unsupported(f"{type(p).__name__} at every size")

    def symbol(self, name: str) -> Symbol:
        return self.setting.symbol(name) if name.startswith("_") else Symbol("variable", name)

    def bind(self, name: str, made: Any) -> Any:
        if name in self.names and self.names[name] is not made:
            raise Unsupported("one name for two nodes")
        self.names[name] = made
        return made

    def literal(self, written: S.PLiteral | S.ENumber, dtype: str) -> Expr:
        """The constant of a dtype that a number is; of numbers that wrap or are rounded, what is written."""
        if dtype == "index":
            return laws.NUMBER(smt.IntVal(whole(written)))
        if isinstance(written.value, bool):
            return laws.TRUTH(smt.BoolVal(written.value))
        text = written.text
        if wraps(self, dtype):
            return whole_number(integer(whole(written)), dtype)
        return smt.Const(Symbol("fixed", "literal", text, dtype), VALUE)

    def constant(self, p: S.PConst) -> Vector:
        count = self.lanes.of(self.rule.type_of(p))
        dtype = self.element(p)
        if p.kind in ("vconst", "anyconst"):
            lane_of = self.lane_of_constant(
                self.setting.symbol("vconst") if p.bound is None else Symbol("value", p.bound), dtype
            )
            if p.bound is not None:
                self.bind(p.bound, Items(self.setting.count(count), lambda k: Datum(lane_of(k), dtype)))
            return Vector(count, lambda e, lane: lane_of(lane), constant=True)
        name = self.setting.symbol(p.kind) if p.bound is None else Symbol("value", p.bound)
        value = smt.Const(name, VALUE)
        if dtype == "index" and p.kind in _NUMBERS:
            value = laws.NUMBER(smt.IntVal(_NUMBERS[p.kind]))
        elif p.kind == "zero":  # of floats the positive one
            ring(self, dtype)
            value = zero_of(dtype)
        elif p.kind == "one" and wraps(self, dtype):
            value = one_of(dtype)
        elif dtype == "index":
            value = laws.NUMBER(smt.Int(name))
        elif dtype == "bool" and p.kind in _TRUTHS:
            value = laws.TRUTH(smt.BoolVal(_TRUTHS[p.kind]))
        if p.bound is not None and not self._stands_for(p.bound, value):
            self.bind(p.bound, Datum(value, dtype))
        self.setting.constants.add(value)
        return Vector(count, lambda e, lane: value, tensor=tensors.scalar(value), constant=True)

    def lane_of_constant(self, name: Symbol, dtype: str) -> Callable[[Integer], Expr]:
        """The lanes of a constant vector: of dtype index each is a number, of bools a truth."""
        if dtype in ("index", "bool"):
            of, made = (INT, laws.NUMBER) if dtype == "index" else (laws.BOOL, laws.TRUTH)
            number_of = smt.Function(name, INT, of)
            return lambda lane: made(number_of(lane.term))
        f = smt.Function(name, INT, VALUE)
        self.setting.constant_lanes.add(f)
        return lambda lane: f(lane.term)

    def integer_of(self, value: Integer, dtype: str) -> Expr:
        """An integer as a constant of a dtype: of one that wraps it must be within the bounds, at every choice of dtypes."""
        if dtype == "index":
            return laws.NUMBER(value.term)
        if not wraps(self, dtype):
            raise Unsupported(f"an integer that {dtype} may not hold")
        of = self.rule.domains.get(dtype, (dtype,))
        least = max(-(1 << int(d[1:]) - 1) if d[0] == "i" else 0 for d in of)
        most = min((1 << int(d[1:]) - (d[0] == "i")) - 1 for d in of)
        if value.known is None or not least <= value.known <= most:
            if self.part != "target" or self.guarding:
                raise Unsupported(f"an integer that {dtype} may not hold")
            self.claim(smt.And(value.term >= least, value.term <= most))
        made = whole_number(value, dtype)
        self.setting.constants.add(made)
        return made

    def _stands_for(self, name: str, value: Expr) -> bool:
        """True if a name denotes the same value of a constant already."""
        known = self.names.get(name)
        return isinstance(known, Datum) and known.term is value

    def variable(self, name: Symbol, ty: Ty | None) -> Vector | Statement:
        """A statement, or a node of which nothing is known but its lanes; where the rule asks for its axes, what is inside."""
        if ty is None:
            raise Unsupported("a node of a dtype that nothing says")
        if ty.element == "void":
            return statements.opaque(name)
        count = integer(1) if ty.place or ty.pointer else self.lanes.of(ty)
        if self.tensors:
            made = self.opaque(name, count)
            as_tensor = tensors.scalar(made.at(self.here, integer(0))) if self.numbers else tensors.opaque(self, name)
            return replace(made, tensor=as_tensor)
        if ty.pointer or ty.place or not self.asks:
            return self.opaque(name, count)
        axes = smt.Const(Symbol("unrolled", name), AXES)
        self.setting.premise(laws.DISTINCT(axes))
        return self.unrolled(self.opaque(name, laws.width(axes) * count), axes, count)

    def opaque(self, name: Symbol, count: Integer) -> Vector:
        f = smt.Function(name, ITERATION, INT, VALUE)
        return Vector(count, lambda e, lane: f(e, lane.term))

    def unrolled(self, inside: Vector, axes: Expr, own: Integer) -> Vector:
        """`inside` spread over axes, with so many lanes at each iteration. Over no axes it is `inside` itself."""
        return Vector(own, lambda e, lane: inside.at(e, laws.block(axes, e) * own + lane), axes=(axes,), inside=inside)

    def sequence(self, p: Any) -> Items:
        """A name for any number of operands."""
        if p.name in self.names:
            found = self.names[p.name]
            if not isinstance(found, Items):
                raise Unsupported("a node for several operands")
            return found
        ty = self.type(p)
        if ty is None or ty.element == "void":
            raise Unsupported("statements at every size")
        name = self.symbol(p.name)
        length = self.setting.count(self.setting.unknown(f"{p.name} length"))
        self.setting.premise(length.term >= 0)
        f = smt.Function(Symbol("item", name), INT, ITERATION, INT, VALUE)
        if admits_invalid(self.rule, p):
            self.setting.may_be_invalid.add(f)
        axes = smt.Function(Symbol("unrolled", name), INT, AXES) if self.asks else None
        count = self.lanes.of_items(p.name, name, ty, length)

        def item(k: Integer) -> Vector:
            n = count(k)
            if axes is None:
                return Vector(n, lambda e, lane: f(k.term, e, lane.term))
            a = axes(k.term)
            self.setting.instance(
                "Axes that are opened together are different ones.", smt.Implies(within(k, 0, length), laws.DISTINCT(a))
            )
            return self.unrolled(Vector(laws.width(a) * n, lambda e, lane: f(k.term, e, lane.term)), a, n)

        made = Items(length, item)
        if not p.name.startswith("_"):
            self.names[p.name] = made
        return made

    # operands

    def parts(self, op: str, p: Any) -> Parts:
        """Operands and fields by name, as they are written; of a sequence of operands the list of its items.

        Unsupported where a pattern leaves open what an op has.
        """
        info = self.rule.dialect.ops[op]
        if isinstance(p, S.PStruct):
            found = Parts({f.name: S.PVar(f.name) if f.value is None else f.value for f in p.fields})
            for o in left_open(info, p):
                if not o.optional:
                    raise Unsupported(f"{op} of which some operands are left open")
                found[o.name] = self.open_operand(o.name)
            return found
        if isinstance(p, S.EStruct):
            return Parts(p.fields)
        arguments = list(p.args)
        out = Parts()
        if arguments and isinstance(arguments[-1], (S.PType, S.EType)):
            out["dtype"] = arguments.pop()
        for operand in info.operands:
            if operand.many:
                out[operand.name], arguments = arguments, []
            elif arguments:
                found = arguments.pop(0)  # one that may be absent is there where something stands for it
                out[operand.name] = S.PSome(found) if operand.optional and isinstance(found, S.Pattern) else found
        for name in info.fields:
            if arguments:
                out[name] = arguments.pop(0)
        if arguments:
            raise Unsupported(f"{op} of more than it takes")
        return out

    def open_operand(self, name: str) -> Any:
        """An operand that a pattern says nothing of: absent, or there, of any lanes."""
        if not self.choices.pick(2):
            return S.PNone()
        count = self.setting.unknown(f"{name} lanes")
        self.setting.premise(count.term > 0)
        return self.opaque(self.setting.symbol(name), count)

    def node(self, e: S.Expr) -> Any:
        """A node of the target: a number is a constant of the dtype that its place has."""
        if isinstance(e, S.ENumber):
            return splat(self.literal(e, self.element(e)))
        value = self.value(e)
        if isinstance(value, Integer):
            return splat(self.integer_of(value, self.element(e)))
        if isinstance(value, Expr) and value.sort is laws.BOOL:
            return splat(laws.TRUTH(value))
        return value

    def one(self, part: Any) -> Vector:
        return vector(self.one_of_any_kind(part))

    def held(self, part: Any) -> Vector:
        """An operand of which the value is read: of a place what is there."""
        found = self.place(part)
        return vector(found) if found.held is None else found.held()

    def place(self, part: Any) -> Vector:
        """An operand where a place is read."""
        return place(self.one_of_any_kind(part))

    def one_of_any_kind(self, part: Any) -> Any:
        """An operand: a node or a statement."""
        if isinstance(part, S.PSome):
            part = part.inner
        if isinstance(part, Vector):
            return part
        return self.pattern(part) if isinstance(part, S.Pattern) else self.node(part)

    def optional(self, part: Any) -> Vector | None:
        """An operand that may be absent: absent, or there. A bare name in a pattern leaves open which."""
        if part is None or isinstance(part, (S.PNone, S.ENone)):
            return None
        if isinstance(part, (S.PVar, S.PBind)) and part.name not in self.names:
            raise Unsupported("an operand that may be absent, at every size")
        return self.one(part)

    def many(self, part: Any) -> list[Items | Vector]:
        """Operands, one by one and by sequences."""
        if isinstance(part, (S.PSequence, S.ESpread)):
            part = [part]
        if isinstance(part, S.PVar) and not isinstance(self.names.get(part.name), Vector):
            return [self.sequence(part)]
        if isinstance(part, S.PList):
            part = list(part.items)
        if not isinstance(part, list):
            return [x for s in segments(self.value(part)) for x in one_by_one(s, self.numbers)]
        out: list[Items | Vector] = []
        for item in part:
            if isinstance(item, S.PSequence):
                out.append(self.sequence(item))
            elif isinstance(item, S.ESpread):
                out += [x for s in segments(self.value(item.sequence)) for x in one_by_one(s, self.numbers)]
            elif isinstance(item, S.EComprehension):
                out.append(self.value(item))
            else:
                out.append(self.one(item))
        return out

    def numbered(self, part: Any) -> list[Items | Vector]:
        """Operands that are sizes, or indices."""
        was, self.numbers = self.numbers, True
        try:
            return self.many(part)
        finally:
            self.numbers = was

    def axes(self, part: Any) -> AxisList:
        """The axes of an op: in a target they must be distinct."""
        if isinstance(part, S.PVar) and part.name not in self.names:
            made = smt.Const(self.symbol(part.name), AXES)
            self.setting.premise(laws.DISTINCT(made))
            found = AxisList((made,))
            return found if part.ignored else self.bind(part.name, found)
        list_ = getattr(part, "value", part)
        if self.part == "pattern" and isinstance(list_, (S.EList, S.PList)):
            return self._axes_named(list_)
        found = axis_list_or_none(
            self.value(S.EName(part.name) if isinstance(part, S.PVar) else getattr(part, "value", part))
        )
        for a in found.parts:
            if a.head == "apply" and a.data is laws.SINGLE:
                self.claim(a.args[1] > 0)
        if found.parts:
            self.claim(laws.DISTINCT(self.setting.together(found.parts)))
        return found

    def _axes_named(self, part: S.EList | S.PList) -> AxisList:
        """The axes that a pattern names one by one: they are different, and have iterations."""
        found = axis_list_or_none(listed([self._axis_named(item) for item in part.items]))
        for a in found.parts:
            self.setting.premise(a.args[1] > 0)
        if found.parts:
            self.setting.premise(laws.DISTINCT(self.setting.together(found.parts)))
        return found

    def _axis_named(self, item: Any) -> Items:
        item = getattr(item, "value", item)
        if isinstance(item, (S.EName, S.PVar)):
            if item.name in self.names:
                return items(self.names[item.name])
            made = listed([integer(smt.Int(Symbol("item", self.symbol(item.name), what))) for what in ("id", "length")])
            return made if item.name.startswith("_") else self.bind(item.name, made)
        raise Unsupported("an axis that is no name")


__all__ = ["LengthAsked", "Reading"]
