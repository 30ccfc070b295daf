"""Checks of compile-time values, facts, sequences and calls: the kind of value of each, and its dtype."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.declared import Mistake
from morok.dsl.functions import BINARY, FUNCTIONS, SPECIAL, UNARY, Function
from morok.dsl.infer import T
from morok.dsl.parse import suggest
from morok.dsl.resolve import Resolver, Stop
from morok.dsl.scope import Value
from morok.dsl.structural import takes_dtype
from morok.dsl.values import LONGEST_SHIFT, MOST_BITS, MOST_LANES, MOST_STEPS
from morok.errors import RuleLimitError, UnknownNameError

_VALUE_PARAMETERS = {"const": "int", "int": "int", "bool": "bool", "dtype": "dtype", "seq": "seq"}
_ANY_NUMBER: Final = ("min", "max", "gcd", "zip")  # of operands
_BOUND_VALUE: Final = "a value that the pattern binds, as @const(v) does, has a dtype"


class ValueExpressions(ABC):
    """A walk over expressions; the pattern's bindings are in the resolver, the variables of comprehensions are here."""

    def __init__(self, resolver: Resolver, externs: Mapping[str, S.Extern]) -> None:
        self.r = resolver
        self.types = resolver.types
        self.externs = externs
        self.called: dict[str, S.Extern] = {}
        self.locals: dict[str, Value] = {}
        self.iterated: set[str] = set()  # the variables of comprehensions so far

    @abstractmethod
    def operand(self, e: S.Expr, t: T, what: str) -> S.Expr:
        """An expression in operand position, where the dtype is `t`: a node, or a value that becomes a constant."""

    @abstractmethod
    def _build(self, e: S.ECall) -> tuple[S.Expr, T]:
        """A call that builds a node."""

    @abstractmethod
    def _build_struct(self, e: S.EStruct) -> tuple[S.Expr, T]:
        """A node built by the names of its fields."""

    @abstractmethod
    def _convert(self, v: Value, t: T, e: S.Expr) -> None:
        """Constrain `t`, the dtype of the constant that a value of kind `v` becomes."""

    # values

    def value(self, e: S.Expr) -> tuple[S.Expr, Value]:
        """The checked form, and the value, of an expression that is not in operand position."""
        made, v = self._value(e)
        self.is_of(made, v)
        if v.type is not None and not v.many and v.kind != "dtype":
            self.r.note(made, v.type)
        return made, v

    def is_of(self, made: S.Expr, v: Value) -> None:
        """Record the value of an expression."""
        self.r.sort(made, v.sort)
        if v.bounds:
            self.r.unbounded.append((made, v.bounds))
        if v.bits > MOST_BITS:
            self.r.report(
                RuleLimitError,
                f"numbers here may have {v.bits:,} bits",
                made,
                f"at most {MOST_BITS:,}, where the rule is given numbers of 64 bits",
            )
            raise Stop

    def _value(self, e: S.Expr) -> tuple[S.Expr, Value]:
        match e:
            case S.EName():
                return self._name(e)
            case S.ENumber():
                if isinstance(e.value, (bool, float)):
                    return e, Value("bool" if isinstance(e.value, bool) else "float")
                return e, Value("int", bits=e.value.bit_length())
            case S.EUnary():
                (operand,), (v,) = self._operands_of(UNARY[e.op], (e.operand,), f"the operand of `{e.op}`", e)
                return replace(e, operand=operand), Value(UNARY[e.op].result, bits=v.bits + 1)
            case S.EBinary(op="and" | "or"):
                return replace(e, left=self.condition(e.left), right=self.condition(e.right)), Value("bool")
            case S.EBinary():
                (left, right), (v, w) = self._operands_of(BINARY[e.op], (e.left, e.right), f"an operand of `{e.op}`", e)
                return replace(e, left=left, right=right), Value(BINARY[e.op].result, bits=_bits(e, v.bits, w.bits))
            case S.ECompare():
                return self._compare(e), Value("bool")
            case S.ECall():
                return self._call(e)
            case S.EStruct():
                made, t = self._build_struct(e)
                return made, Value("node", t)
            case S.EIndex():
                sequence, v = self.sequence(e.sequence)
                return replace(e, sequence=sequence, index=self.integer(e.index, "an index")), self.item_of(
                    v, e.sequence
                )
            case S.EList():
                return self._list(e)
            case S.EComprehension():
                return self._comprehension(e)
            case S.ERange():
                return self._range(e), Value("int", many=True)
            case S.EType():
                return self._asked_dtype(e)
        self.r.fail("this stands where a value is expected", e)

    def _name(self, e: S.EName) -> tuple[S.Expr, Value]:
        name = e.name
        if name in self.locals:
            return e, self.locals[name]
        b = self.r.bound.get(name)
        if b is not None:
            return e, b.value
        if name in self.types.named or name in self.r.universe.bits or self.r.universe.vector(name) is not None:
            return self._asked_dtype(e)
        info = self.r.dialect.ops.get(name)
        if info is not None:
            if not info.required and all(o.many or o.optional for o in info.operands):
                return self._call(S.ECall(name, (), span=e.span))
            return e, Value("op")
        if name.startswith("_"):
            self.r.report(
                UnknownNameError,
                f"`{name}` is matched, not bound",
                e,
                hint=f"a name without `_` can be used: {name.lstrip('_') or 'x'}",
            )
            return e, Value("unknown")
        self.r.report(UnknownNameError, f"`{name}` is not bound", e, hint=self._suggest(name))
        return e, Value("unknown")

    def _suggest(self, name: str) -> str:
        return suggest(name, (*self.r.bound, *self.locals, *self.types.named)) or "the pattern or a `let` binds names"

    def condition(self, e: S.Expr) -> S.Expr:
        made, v = self.value(e)
        if v.kind in ("bool", "other", "unknown") and not v.many:
            return made
        if v.kind == "const" and v.type is not None and self.types.mask(v.type.elem) == self.r.universe.boolean:
            return made
        self.r.fail(f"{self._describe(v)} stands where a condition is expected", e, "a comparison, a fact or a bool")

    def integer(self, e: S.Expr, what: str) -> S.Expr:
        """An expression over mathematical integers."""
        return self._integer(e, what)[0]

    def _integer(self, e: S.Expr, what: str) -> tuple[S.Expr, Value]:
        made, v = self.value(e)
        self._need_integer(v, e, what)
        return made, v

    def _operands_of(
        self, function: Function, operands: Sequence[S.Expr], what: str, at: S.Expr
    ) -> tuple[tuple[S.Expr, ...], tuple[Value, ...]]:
        """The checked operands of a function or an operator, each of the kind that it takes."""
        kinds = function.kinds(len(operands)) if function.name in _ANY_NUMBER else function.params
        if len(kinds) != len(operands):
            n = len(kinds)
            self.r.fail(f"{function.name} takes {n} argument{'s' if n > 1 else ''}, not {len(operands)}", at)
        checked = [self._operand_of(kind, e, what) for kind, e in zip(kinds, operands, strict=True)]
        return tuple(made for made, _ in checked), tuple(v for _, v in checked)

    def _operand_of(self, kind: str, e: S.Expr, what: str) -> tuple[S.Expr, Value]:
        match kind:
            case "int":
                return self._integer(e, what)
            case "bool":
                return self.condition(e), Value("bool")
            case "node":
                made, t = self.node(e)
                return made, Value("node", t)
            case "dtype":
                return self._asked_dtype(e)
        made, v = self.value(e)
        if kind == "several":
            if not v.many and v.kind not in ("other", "unknown"):
                self.r.fail(f"{what} is {self._describe(v)}", e, "two integers or more, or one sequence of them")
        elif not v.many and v.kind not in ("other", "unknown"):
            self.r.fail(f"{self._describe(v)} stands where a sequence is expected", e)
        self._need_items(kind, v, e, what)
        return made, v

    def _need_items(self, kind: str, v: Value, e: S.Expr, what: str) -> None:
        """An error unless the items of a sequence are of the kind that a function takes."""
        item = v.element()
        if kind in ("several", "ints"):
            self._need_integer(item, e, f"an item of {what}")
        elif kind == "bools" and not self._is_bool(item):
            self.r.fail(
                f"{self._describe(v)} stands where conditions are expected",
                e,
                "a sequence of comparisons, facts or bools",
            )
        elif kind == "pairs":
            if item.kind not in ("other", "unknown") and not (item.kind == "tuple" and len(item.parts) == 2):
                self.r.fail(
                    f"{self._describe(v)} stands where axes are expected",
                    e,
                    "a sequence of pairs, as [[id, length], ..]",
                )
            for part in (p for pair in item.alternatives() for p in pair.items()):
                self._need_integer(part, e, "an axis's id or length")

    def _range(self, e: S.ERange) -> S.ERange:
        start, stop = self.integer(e.start, "a bound"), self.integer(e.stop, "a bound")
        if isinstance(start, S.ENumber) and isinstance(stop, S.ENumber) and stop.value - start.value > MOST_STEPS:
            self.r.report(
                RuleLimitError, f"{stop.value - start.value:,} numbers in a range", e, f"at most {MOST_STEPS:,}"
            )
            raise Stop
        return replace(e, start=start, stop=stop)

    def _need_integer(self, v: Value, e: S.Expr, what: str) -> None:
        if v.many:
            self.r.fail(f"{what} is {self._describe(v)}", e, "an integer")
        if v.kind in ("int", "other", "unknown"):
            return
        if v.kind == "const" and v.type is None:
            return
        if v.kind == "const" and v.type is not None:
            u = self.r.universe
            mask = self.types.mask(v.type.elem)
            if not u.integral:
                return  # a dialect without integer dtypes: its theory defines its constants
            odd = mask & u.any & ~u.integral
            if not odd:
                return
            floats = bool(odd & u.floats)
            message = f"{what} may be a constant of dtype {u.describe(odd)}"
            self.r.fail(
                message,
                e,
                "a mathematical integer",
                "constants of a float dtype are combined by eval(Add, a, b), or a variable is annotated: x: (int | index)"
                if floats
                else "eval(And, a, b) combines constants of any dtype",
            )
        if v.kind == "float":
            self.r.fail(f"{what} is a float", e, "a mathematical integer", "floats are combined by eval(Add, a, b)")
        hint = "its bounds are vmin(x) and vmax(x); a node is built by an op: Add(x, y)" if v.kind == "node" else ""
        self.r.fail(f"{what} is {self._describe(v)}", e, "a mathematical integer", hint)

    def _describe(self, v: Value) -> str:
        words = {
            "node": "a node", "int": "an integer", "bool": "a bool", "const": "the value of a constant", "dtype": "a dtype",
            "op": "an op", "float": "a float", "other": "a field", "unknown": "an unknown name", "tuple": "a tuple",
        }  # fmt: skip
        return f"a sequence of {words[v.kind].split(' ', 1)[1]}s" if v.many else words[v.kind]

    def _compare(self, e: S.ECompare) -> S.Expr:
        checked = [self.value(o) for o in e.operands]
        for op, (a, v), (b, w) in zip(
            e.ops, _paired(e.operands, checked), _paired(e.operands, checked)[1:], strict=False
        ):
            self._comparable(op, a, v, b, w)
        return replace(e, operands=tuple(m for m, _ in checked))

    def _comparable(self, op: str, a: S.Expr, v: Value, b: S.Expr, w: Value) -> None:
        """An error unless two values can be compared: integers; for == and != two bools, dtypes, ops, or sequences of such."""
        if v.many or w.many:
            for one, x, other in ((v, a, w), (w, b, v)):
                if op not in ("==", "!="):
                    self.r.fail(
                        f"an operand of a comparison is {self._describe(one if one.many else other)}", x, "an integer"
                    )
                if not one.many and one.kind not in ("other", "unknown"):
                    self.r.fail(f"{self._describe(one)} is compared with a sequence", x)
                if one.kind == "node":
                    self.r.fail(
                        "sequences of nodes cannot be compared", x, hint="same(x, y) says that two nodes are one"
                    )
            v, w = v.element(), w.element()
        self._alike(op, a, v, b, w)

    def _alike(self, op: str, a: S.Expr, v: Value, b: S.Expr, w: Value) -> None:
        """The same for every pair of alternatives, and for the items of two sequences."""
        for x in v.alternatives():
            for y in w.alternatives():
                if x.kind == y.kind == "tuple" and len(x.parts) == len(y.parts):
                    for p, q in zip(x.parts, y.parts, strict=True):
                        self._alike(op, a, p, b, q)
                elif x.many or y.many or "tuple" in (x.kind, y.kind):  # a sequence differs from any other value
                    for p in x.items():
                        for q in y.items():
                            self._alike(op, a, p, b, q)
                else:
                    self._comparable_values(op, a, x, b, y)

    def _comparable_values(self, op: str, a: S.Expr, v: Value, b: S.Expr, w: Value) -> None:
        known = {v.kind, w.kind} - {"other", "unknown"}
        if op in ("==", "!="):
            if known <= {"dtype"} or known <= {"op"} or (self._is_bool(v) and self._is_bool(w)):
                return
            if v.kind == w.kind == "const" and v.type is not None and w.type is not None:
                alike = self.types.find(v.type.elem) == self.types.find(w.type.elem)
                if alike and not self.types.mask(v.type.elem) & self.r.universe.floats:
                    return
        for x, one in ((a, v), (b, w)):
            if one.kind in ("dtype", "op", "bool"):
                self.r.fail("these cannot be compared", x, "two integers, or for == and != two bools, dtypes or ops")
            self._need_integer(one, x, "an operand of a comparison")

    def _is_bool(self, v: Value) -> bool:
        if v.kind == "const" and v.type is not None:
            return self.types.mask(v.type.elem) == self.r.universe.boolean
        return v.kind in ("bool", "unknown", "other")

    # sequences

    def sequence(self, e: S.Expr) -> tuple[S.Expr, Value]:
        made, v = self.value(e)
        if not v.many and v.kind not in ("other", "unknown"):
            self.r.fail(f"{self._describe(v)} stands where a sequence is expected", e)
        return made, v

    def _list(self, e: S.EList) -> tuple[S.Expr, Value]:
        items: list[S.Expr] = []
        found: Value | None = None
        for i in e.items:
            if isinstance(i, S.ESpread):
                inner, v = self.sequence(i.sequence)
                items.append(replace(i, sequence=inner))
                self.r.sort(items[-1], v.sort)
                v = v.element()
            else:
                made, v = self.value(i)
                items.append(made)
                if v.many or v.kind == "tuple":  # the items of a nested sequence are checked where they are used
                    if v.kind == "node":
                        self.r.fail("a list holds nodes or values, not sequences of nodes", i)
                    v = Value.one_of(v)
            found = v if found is None else self._joined(found, v, i)
        return replace(e, items=tuple(items)), replace(found or Value("int"), many=True)

    def _joined(self, a: Value, b: Value, at: S.Expr) -> Value:
        """The kind of the items of a list that holds items of these kinds."""
        bounds, bits = (*a.bounds, *b.bounds), max(a.bits, b.bits)
        if "unknown" in (a.kind, b.kind):
            return Value("unknown")
        if (a.kind == "node") != (b.kind == "node"):
            self.r.fail("a list holds nodes or values, not both", at)
        if "other" in (a.kind, b.kind) or "tuple" in (a.kind, b.kind):
            return Value.one_of(a, b)
        if a.kind == b.kind == "node":
            return replace(a, type=self._type_of_both(a.type, b.type, at))
        if a.kind == b.kind and a.type is None:
            return replace(a, bounds=bounds, bits=bits)
        if a.kind == b.kind == "dtype":
            alike = (
                a.type is not None
                and b.type is not None
                and self.types.find(a.type.elem) == self.types.find(b.type.elem)
            )
            return a if alike else Value("dtype")
        consts = [v.type for v in (a, b) if v.kind == "const" and v.type is not None]
        if len(consts) == 2 and self.types.find(consts[0].elem) == self.types.find(consts[1].elem):
            return replace(a, bits=bits)
        if {a.kind, b.kind} <= {"int", "const"}:
            for v in (a, b):
                self._need_integer(v, at, "an item beside integers")
            kind, type_ = ("const", consts[0]) if len(consts) == 1 else ("int", None)
            return Value(kind, type_, bounds=bounds, bits=bits)
        self.r.fail(f"a list holds {self._describe(a)} and {self._describe(b)}", at, "items of one kind")

    def _type_of_both(self, a: T | None, b: T | None, at: S.Expr) -> T | None:
        """The type of the items of a list that holds nodes of both types; None if the pattern does not make the two one."""
        if a is None or b is None:
            return None
        types, (elements, lanes) = self.types, self.r.matched
        one = {types.find(a.elem), types.find(b.elem)}
        count = {types.find_lane(a.lanes), types.find_lane(b.lanes)}
        dtypes = {types.mask(e) for e in one}
        if (
            len(one) == 2
            and one <= set(map(types.find, elements))
            and (len(dtypes) == 2 or any(m & (m - 1) for m in dtypes))
        ):
            return None
        if len(count) == 2 and count <= set(map(types.find_lane, lanes)):
            said = {types.lane_value(n) for n in count}
            if len(said) == 2 or None in said:
                return None
        if a.form != b.form:
            return None
        self.r.unify(b, a, "an item of this list", at)
        return a

    def item_of(self, v: Value, at: S.Expr) -> Value:
        """The value of one item of a sequence; an error if the rule does not determine its type."""
        if v.kind == "node" and v.type is None:
            self.r.fail(
                "the items of this list may be of different dtypes or numbers of lanes", at, "nodes of one dtype"
            )
        return v.element()

    def _comprehension(self, e: S.EComprehension) -> tuple[S.Expr, Value]:
        sequence, v = self.sequence(e.sequence)
        outer = dict(self.locals)
        self._enter(e, v)
        condition = None if e.condition is None else self.condition(e.condition)
        body, inner = self.value(e.body)
        self.locals = outer
        made = replace(e, body=body, sequence=sequence, condition=condition)
        if inner.many or inner.kind == "tuple":
            if inner.kind == "node":
                self.r.fail("a sequence holds nodes or values, not sequences of nodes", e.body)
            inner = Value.one_of(inner)
        return made, replace(inner, many=True)

    def _enter(self, e: S.EComprehension, v: Value) -> None:
        parts = v.parts if len(e.names) > 1 or v.kind == "tuple" else (self.item_of(v, e.sequence),)
        if v.kind in ("other", "unknown") and len(e.names) > 1:
            parts = tuple(self._part(v.element(), n) for n in range(len(e.names)))
        if len(parts) != len(e.names):
            self.r.fail(
                f"{len(e.names)} names for {max(len(parts), 1)} values",
                e,
                hint="zip(xs, ys) pairs sequences: for x, y in zip(xs, ys)",
            )
        for name, part in zip(e.names, parts, strict=True):
            if not name.startswith("_"):
                self.r.unused(name, e)
                if name in self.locals:
                    self.r.fail(f"`{name}` is bound already", e, hint="by the comprehension around this one")
                self.iterated.add(name)
            self.locals[name] = part

    def _part(self, item: Value, n: int) -> Value:
        """Part `n` of an item: of a tuple the part at this position, of a sequence any item."""
        found = [p for v in item.alternatives() for p in (v.parts[n : n + 1] if v.kind == "tuple" else v.items())]
        return Value.one_of(*found) if found else Value("other")

    # calls

    def _call(self, e: S.ECall) -> tuple[S.Expr, Value]:
        name = e.name
        if name in self.r.dialect.ops:
            made, t = self._build(e)
            return made, Value("node", t)
        if name in self.externs:
            return self._helper(e)
        if name == "eval":
            return self._eval(e)
        if name == "const":
            self._count(e, 2)
            v, value = self.value(e.args[0])
            target, t = self.dtype(e.args[1])
            self._check_const(e, value, t)
            return replace(e, args=(v, target)), Value("node", t)
        if name in ("zero", "one"):
            self._count(e, 1)
            arg, t = self.node(e.args[0])
            self._has_constants(t, e)
            return replace(e, args=(arg,)), Value(
                "node", T(t.elem, t.lanes if t.form == "value" else self.types.lane())
            )
        if name in ("identity", "subst", "axes", "inside"):
            self._asked(name, e)
        if name == "identity":
            self._count(e, 2)
            fold, of = self.value(e.args[0])
            if of.kind not in ("op", "unknown"):
                self.r.fail(f"{self._describe(of)} stands where an op is expected", e.args[0], "identity(Add, x)")
            self.r.sort(fold, of.sort)
            arg, t = self.node(e.args[1])
            self._has_constants(t, e)
            return replace(e, args=(fold, arg)), Value(
                "node", T(t.elem, t.lanes if t.form == "value" else self.types.lane())
            )
        if name == "subst":
            self._count(e, 3)
            source, t = self.node(e.args[0])
            bound, range_type = self.node(e.args[1])
            return replace(e, args=(source, bound, self.operand(e.args[2], range_type, "the substitute"))), Value(
                "node", t
            )
        if name in ("axes", "inside"):
            self._count(e, 1)
            arg, t = self.node(e.args[0])
            found = Value("other", many=True) if name == "axes" else Value("node", T(t.elem, self.types.lane(), t.form))
            return replace(e, args=(arg,)), found
        if name == "dtype":
            return self._asked_dtype(e)
        if name in FUNCTIONS:
            return self._function(e, FUNCTIONS[name])
        if name in self.r.dialect.facts:
            return replace(e, args=tuple(self.value(a)[0] for a in e.args)), Value("bool")
        if name.startswith("_"):
            self.r.unknown(f"there is no function `{name}`", e, name, ())
        known = (*FUNCTIONS, *SPECIAL, *self.externs, *self.r.dialect.facts, *self.r.dialect.ops)
        hint = "an op is bound by `for op in binary [..]`, not by a field" if name in self.r.bound else ""
        self.r.unknown(f"there is no op, function or helper `{name}`", e, name, known, hint)

    def _count(self, e: S.ECall, n: int) -> None:
        if len(e.args) != n:
            self.r.fail(f"{e.name} takes {n} argument{'s' if n > 1 else ''}, not {len(e.args)}", e)

    def _asked(self, name: str, e: S.ECall) -> None:
        """An error unless the dialect declares a fact."""
        if name not in self.r.dialect.facts and not (name in ("vmin", "vmax") and name in self.r.dialect.inline):
            known = ", ".join(self.r.dialect.facts) or "nothing"
            message = f"it has no {name}, which a rule asks for; it declares {known}"
            self.r.misdeclared(Mistake("", f"facts[{name!r}]", message, "a function of nodes, or of dtypes"), e)
            raise Stop

    def _function(self, e: S.ECall, function: Function) -> tuple[S.Expr, Value]:
        if function.asked:
            self._asked(e.name, e)
        args, given = self._operands_of(function, e.args, f"an argument of {e.name}", e)
        made = replace(e, args=args)
        if function.result == "bound":
            t = given[0].type
            return made, Value("int", bounds=() if t is None else (t,))
        if function.result == "tuple":
            return made, Value("tuple", None, True, tuple(self.item_of(v, e) for v in given))
        if function.result == "ints":
            return made, Value("int", many=True)
        if function.result == "sizes":
            return made, Value("node", self.types.fixed("index", 1), many=True)
        growth = MOST_STEPS.bit_length() if e.name == "sum" else 1
        return made, Value(function.result, bits=max((v.bits for v in given), default=64) + growth)

    def node(self, e: S.Expr) -> tuple[S.Expr, T]:
        """A bound node, or a term built of bound nodes, and its type."""
        made, v = self.value(e)
        if v.kind == "unknown":
            return made, self.types.fresh()
        if v.kind != "node" or v.many or v.type is None:
            hint = "`c @const(v)` binds the node c and its value v" if v.kind == "const" else ""
            self.r.fail(
                f"{self._describe(v)} stands where a node is expected", e, "a bound node, or a term of such", hint
            )
        return made, v.type

    def dtype(self, e: S.Expr) -> tuple[S.Expr, T]:
        """An expression that yields a dtype to build a node or a constant with, and that dtype."""
        if isinstance(e, S.EName) and e.name not in self.r.bound and e.name not in self.locals:
            if not (e.name in self.r.universe.bits or e.name in self.types.named or self.r.universe.vector(e.name)):
                known = (*self.types.named, *self.r.universe.bits)
                self.r.unknown(
                    f"there is no dtype `{e.name}`", e, e.name, known, "dtype variables are bound by the pattern: x: T"
                )
            e = S.EType(S.TName(e.name, span=e.span), span=e.span)
        if isinstance(e, S.EType):
            t = self.types.fresh()
            self.r.annotate(t, e.type, "the dtype")
            self.r.sort(e, Sort.DTYPE)
            self.r.note(e, t)
            name = e.type.name if isinstance(e.type, S.TName) else "written here"
            self.r.asked.append((e, t, f"the dtype `{name}`", "annotate its node with any, and ask for dtype(x)"))
            return e, t
        if isinstance(e, S.ECall) and e.name == "dtype":
            return self._dtype_of(e)
        made, v = self.value(e)
        if v.kind not in ("dtype", "unknown") or v.many:
            self.r.fail(
                f"{self._describe(v)} stands where a dtype is expected", e, "a dtype, a dtype variable or dtype(x)"
            )
        if v.type is None and v.kind == "dtype":
            self.r.fail("this is the dtype of nothing that is bound", e, "a dtype, a dtype variable or dtype(x)")
        return made, v.type or self.types.fresh()

    def _dtype_of(self, e: S.ECall) -> tuple[S.Expr, T]:
        """`dtype(x)`, or `dtype(x, k)` of k lanes."""
        if len(e.args) != 2:
            self._count(e, 1)
        arg, t = self.node(e.args[0])
        if t.form != "value":
            self.r.fail("the dtype of a pointer or a buffer is not asked for", e, "the dtype of a value")
        made = replace(e, args=(arg, *(self.integer(k, "a number of lanes") for k in e.args[1:])))
        for k in made.args[1:]:
            if isinstance(k, S.ENumber) and not 1 <= k.value <= MOST_LANES:
                self.r.fail("a node has no such number of lanes", e, f"1 to {MOST_LANES:,}")
        self.r.sort(made, Sort.DTYPE)
        return made, t if len(e.args) == 1 else T(t.elem, self.types.lane())

    def _asked_dtype(self, e: S.Expr) -> tuple[S.Expr, Value]:
        """A dtype as the operand of a fact or a comparison: that of one lane, which the pattern must determine."""
        vectors = isinstance(e, S.ECall) and len(e.args) > 1
        if isinstance(e, (S.EName, S.ECall, S.EType)) and not self._is_value(e):
            made, t = self.dtype(e)
            lanes = self.types.lane_value(t.lanes) if isinstance(made, S.EType) else None
            if t.form != "value" or vectors or lanes is not None:
                self.r.fail("only the dtype of one lane is looked at", e, "f32, a dtype variable or dtype(x)")
            if isinstance(made, S.ECall):
                self.r.restrict(t, self.r.universe.any, "a dtype that is looked at", e)
                self.r.asked.append((made, t, "this dtype", "a variable of the pattern has one: x: T"))
            return made, Value("dtype", t)
        made, v = self.value(e)
        if v.kind not in ("dtype", "unknown") or v.many:
            self.r.fail(
                f"{self._describe(v)} stands where a dtype is expected", e, "a dtype, a dtype variable or dtype(x)"
            )
        return made, v

    def _is_value(self, e: S.Expr) -> bool:
        """True unless an expression is the name of a dtype, or `dtype(..)`."""
        if isinstance(e, S.EName):
            return e.name in self.r.bound or e.name in self.locals
        return isinstance(e, S.ECall) and e.name != "dtype"

    def _has_constants(self, t: T, e: S.ECall) -> None:
        """An error where rules have no constants of a dtype, as of floats of 8 bits: they are values that are converted."""
        mask = self.types.mask(t.elem)
        if not mask & self.r.universe.any:
            given = self.r.universe.describe(mask)
            hint = f"a constant of another dtype may be converted to {given}"
            self.r.fail(f"{e.name}(..) makes no constants of {given}", e, "a dtype of the class `any`", hint)
        self.types.restrict(t.elem, self.r.universe.any)

    def _check_const(self, e: S.ECall, v: Value, t: T) -> None:
        self._has_constants(t, e)
        if v.many or v.kind not in ("int", "float", "bool", "const", "other", "unknown"):
            self.r.fail(f"const(v, T) takes a value, not {self._describe(v)}", e.args[0])
        u = self.r.universe
        if v.kind == "const" and v.type is not None and u.integral:
            if self.types.find(v.type.elem) != self.types.find(t.elem) and self.types.mask(v.type.elem) & ~u.integral:
                self.r.fail("the constant is of another dtype", e.args[0], hint="eval(Cast, v, T) converts it")
        elif v.kind == "float" and self.types.mask(t.elem) & u.any & ~u.floats:
            self.r.fail(f"a float is no constant of dtype {u.describe(self.types.mask(t.elem))}", e.args[0])

    def _eval(self, e: S.ECall) -> tuple[S.Expr, Value]:
        if not e.args or not isinstance(e.args[0], S.EName):
            self.r.fail("eval takes an op and the values of its operands", e, "eval(Add, a, b)")
        name = e.args[0]
        b = self.r.bound.get(name.name)
        result = self.types.fresh()
        if b is not None and b.value.kind == "op":
            args, bits = self._constants_of(e.args[1:], [result] * len(e.args[1:]))
            self.r.asked.append((e, result, f"the dtype that {name.name} is evaluated at", _BOUND_VALUE))
            self.r.sort(name, Sort.OP)
            return replace(e, args=(name, *args)), Value("const", result, bits=self._bits_of_eval(result, bits))
        info = self.r.op(name.name, name)
        if info.evaluate is None or not info.params:
            self.r.fail(f"{info.name} cannot be evaluated on constants", name, "an op that works lane by lane")
        given = takes_dtype(info)
        if len(e.args) != 1 + len(info.params) + given:
            takes = f"{len(info.params)} value{'s' if len(info.params) > 1 else ''}" + (" and a dtype" if given else "")
            self.r.fail(f"eval({info.name}, ..) takes {takes}, not {len(e.args) - 1}", e)
        slots: dict[str, list[T]] = {o.name: [self.types.fresh()] for o in info.operands}
        self.r.operand_types(info, slots, result, e)
        args, bits = self._constants_of(e.args[1 : 1 + len(info.operands)], [slots[o.name][0] for o in info.operands])
        if given:
            made, v = self._asked_dtype(e.args[-1])
            if v.type is not None:
                self.r.unify(v.type, result, "the dtype", e.args[-1])
            args.append(made)
        for operand in (result, *(slots[o.name][0] for o in info.operands)):
            self.r.asked.append((e, operand, f"the dtype that {info.name} is evaluated at", _BOUND_VALUE))
        self.r.sort(name, Sort.OP)
        return replace(e, args=(name, *args)), Value("const", result, bits=self._bits_of_eval(result, bits))

    def _bits_of_eval(self, result: T, bits: int) -> int:
        """The largest number of bits of an op's value: at an index, which never wraps, that of all its operands together."""
        index = self.r.universe.bits.get("index", 0) | self.r.universe.opaque
        return bits + 1 if self.types.mask(result.elem) & index or not self.r.universe.integral else 64

    def _constants_of(self, operands: Sequence[S.Expr], types: Sequence[T]) -> tuple[list[S.Expr], int]:
        """The checked operands of `eval`, and the sum of their bits."""
        found = [self._constant_of(e, t) for e, t in zip(operands, types, strict=False)]
        return [made for made, _ in found], sum(bits for _, bits in found)

    def _constant_of(self, e: S.Expr, t: T) -> tuple[S.Expr, int]:
        """A compile-time value that is an operand of `eval`, at dtype `t`, and its largest number of bits."""
        made, v = self._value(e)
        self.is_of(made, v)
        if v.kind == "node" or v.many or v.kind in ("dtype", "op", "tuple"):
            hint = "`c @const(v)` binds the node c and its value v" if v.kind == "node" else ""
            self.r.fail(f"{self._describe(v)} stands where the value of a constant is expected", e, hint=hint)
        if v.kind == "const" and v.type is not None:
            with self.r.typing("the dtype of this value", e):
                self.types.same_element(t.elem, v.type.elem)
        else:
            self._convert(v, t, e)
        self.r.note(made, t)
        return made, v.bits

    def _helper(self, e: S.ECall) -> tuple[S.Expr, Value]:
        extern = self.externs[e.name]
        self.called[e.name] = extern
        self._count(e, len(extern.params))
        variables: dict[str, int] = {}
        made: list[S.Expr] = []
        nodes = False
        for p, a in zip(extern.params, e.args, strict=True):
            kind = _VALUE_PARAMETERS.get(p.type.name) if isinstance(p.type, S.TName) else None
            if kind == "int":
                made.append(self.integer(a, f"`{p.name}` of {e.name}"))
            elif kind == "bool":
                one, v = self.value(a)
                if v.kind == "node" and v.type is not None:
                    nodes = True
                    self.r.restrict(v.type, self.r.universe.boolean, f"`{p.name}` of {e.name}", a)
                elif not self._is_bool(v):
                    self.r.fail(f"`{p.name}` of {e.name} is {self._describe(v)}", a, "a bool")
                made.append(one)
            elif kind == "dtype":
                made.append(self._asked_dtype(a)[0])
            elif kind == "seq":
                made.append(self.sequence(a)[0])
            else:
                one, t = self.node(a)
                wanted = self._parameter(p, variables)
                self.r.unify(T(t.elem, wanted.lanes, t.form), wanted, f"`{p.name}` of {e.name}", a)
                made.append(one)
        results: list[Value] = []
        for p in extern.results:
            kind = _VALUE_PARAMETERS.get(p.type.name) if isinstance(p.type, S.TName) else None
            if kind == "bool" and nodes:  # given conditions as nodes, a helper returns nodes
                results.append(Value("node", self.types.fresh(self.r.universe.boolean, 1)))
            elif kind == "seq":
                results.append(Value("other", many=True))
            elif kind is not None:
                results.append(Value(kind))
            else:
                results.append(Value("node", self._parameter(p, variables)))
        call = replace(e, args=tuple(made))
        return call, results[0] if len(results) == 1 else Value("tuple", None, False, tuple(results))

    def _parameter(self, p: S.Param, variables: dict[str, int]) -> T:
        """The type of a node that a helper takes or returns; its dtype variables are its own."""
        t = self.types.fresh()
        if isinstance(p.type, S.TName) and self.r.is_dtype_variable(p.type.name):
            with self.r.typing(f"`{p.name}`", p):
                self.types.same_element(
                    variables.setdefault(p.type.name, self.types.element(self.r.universe.full)), t.elem
                )
        else:
            self.r.annotate(t, p.type, f"`{p.name}`")
        return t


def _paired(operands: Sequence[S.Expr], checked: Sequence[tuple[S.Expr, Value]]) -> list[tuple[S.Expr, Value]]:
    return [(o, v) for o, (_, v) in zip(operands, checked, strict=True)]


def _bits(e: S.EBinary, left: int, right: int) -> int:
    """The largest number of bits of an operator's result."""
    match e.op:
        case "*":
            return left + right
        case "<<":
            amount = e.right.value if isinstance(e.right, S.ENumber) and e.right.value >= 0 else LONGEST_SHIFT
            return left + min(int(amount), LONGEST_SHIFT)
        case "//" | ">>":
            return left + 1
        case "%":
            return right
    return max(left, right) + 1
