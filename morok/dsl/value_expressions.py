"""Checking compile-time values, facts, sequences and calls: what each yields, and of which dtype."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.infer import T
from morok.dsl.resolve import Resolver
from morok.dsl.scope import FUNCTIONS, SPECIAL_FUNCTIONS, Value
from morok.dsl.structural import DERIVED_FIELDS
from morok.errors import UnknownNameError

_VALUE_PARAMETERS = {"const": "int", "int": "int", "bool": "bool", "dtype": "dtype", "seq": "seq"}
_BOUND_VALUE: Final = "a value that the pattern binds, as @const(v) does, has a dtype"


class ValueExpressions(ABC):
    """Walks expressions; what the pattern bound is in the resolver, the variables of comprehensions are here."""

    def __init__(self, resolver: Resolver, externs: Mapping[str, S.Extern]) -> None:
        self.r = resolver
        self.types = resolver.types
        self.externs = externs
        self.called: dict[str, S.Extern] = {}
        self.locals: dict[str, Value] = {}

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
        """A value of kind `v` becomes a constant at `t`."""

    # values

    def value(self, e: S.Expr) -> tuple[S.Expr, Value]:
        """Any expression that is not in operand position."""
        made, v = self._value(e)
        self.r.sort(made, v.sort)
        if v.type is not None and not v.many:
            self.r.note(made, v.type)
        return made, v

    def _value(self, e: S.Expr) -> tuple[S.Expr, Value]:
        match e:
            case S.EName():
                return self._name(e)
            case S.ENumber():
                return e, Value("bool" if isinstance(e.value, bool) else "float" if isinstance(e.value, float) else "int")
            case S.EUnary():
                if e.op == "not":
                    return replace(e, operand=self.condition(e.operand)), Value("bool")
                return replace(e, operand=self.integer(e.operand, f"the operand of `{e.op}`")), Value("int")
            case S.EBinary():
                if e.op in ("and", "or"):
                    return replace(e, left=self.condition(e.left), right=self.condition(e.right)), Value("bool")
                what = f"an operand of `{e.op}`"
                return replace(e, left=self.integer(e.left, what), right=self.integer(e.right, what)), Value("int")
            case S.ECompare():
                return self._compare(e), Value("bool")
            case S.ECall():
                return self._call(e)
            case S.EStruct():
                made, t = self._build_struct(e)
                return made, Value("node", t)
            case S.EIndex():
                sequence, v = self.sequence(e.sequence)
                return replace(e, sequence=sequence, index=self.integer(e.index, "an index")), v.element()
            case S.EList():
                return self._list(e)
            case S.EComprehension():
                return self._comprehension(e)
            case S.ERange():
                made = replace(e, start=self.integer(e.start, "a bound"), stop=self.integer(e.stop, "a bound"))
                return made, Value("int", many=True)
            case S.EType():
                self.r.annotate(self.types.fresh(), e.type, "the dtype")
                return e, Value("dtype")
        self.r.fail("this stands where a value is expected", e)

    def _name(self, e: S.EName) -> tuple[S.Expr, Value]:
        name = e.name
        if name in self.locals:
            return e, self.locals[name]
        b = self.r.bound.get(name)
        if b is not None:
            return e, b.value
        if name in self.types.named or name in self.r.universe.bits or self.r.universe.vector(name) is not None:
            return S.EType(S.TName(name, span=e.span), span=e.span), Value("dtype")
        info = self.r.dialect.ops.get(name)
        if info is not None:
            if not any(not (o.many or o.optional) for o in info.operands) and not [
                f for f in info.fields if f not in DERIVED_FIELDS
            ]:
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
        from morok.dsl.parse import suggest

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
        made, v = self.value(e)
        self._need_integer(v, e, what)
        return made

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
                return  # a dialect with dtypes of its own: its constants are what its theory makes of them
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
        kinds = {v.kind for _, v in checked} - {"other", "unknown"}
        equality = all(op in ("==", "!=") for op in e.ops)
        if not equality or not (kinds <= {"dtype"} or kinds <= {"op"} or kinds <= {"bool"} or any(v.many for _, v in checked)):
            consts = [v.type for _, v in checked if v.kind == "const" and v.type is not None]
            alike = equality and len(consts) == len(checked) and len({self.types.find(t.elem) for t in consts}) == 1
            boolean = equality and all(self._is_bool(v) for _, v in checked)
            if kinds & {"dtype", "op"} or (kinds & {"bool"} and not boolean):
                odd = next(o for o, (_, v) in zip(e.operands, checked, strict=True) if v.kind in ("dtype", "op", "bool"))
                self.r.fail("these cannot be compared", odd, "two integers, or for == and != two bools, dtypes or ops")
            if not boolean and not (alike and not self.types.mask(consts[0].elem) & self.r.universe.floats):
                for o, (_, v) in zip(e.operands, checked, strict=True):
                    self._need_integer(v, o, "an operand of a comparison")
        return replace(e, operands=tuple(m for m, _ in checked))

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
        found = Value("int", many=True)
        for n, i in enumerate(e.items):
            if isinstance(i, S.ESpread):
                inner, v = self.sequence(i.sequence)
                items.append(replace(i, sequence=inner))
                self.r.sort(items[-1], v.sort)
            else:
                made, v = self.value(i)
                items.append(made)
            if n == 0 or (found.kind == "int" and v.kind in ("const", "other")):
                found = Value(v.kind, v.type, True, v.parts)
            elif (v.kind == "node") != (found.kind == "node") and "unknown" not in (v.kind, found.kind):
                self.r.fail("a list holds nodes or values, not both", i)
        return replace(e, items=tuple(items)), found

    def _comprehension(self, e: S.EComprehension) -> tuple[S.Expr, Value]:
        sequence, v = self.sequence(e.sequence)
        outer = dict(self.locals)
        self._enter(e, v)
        condition = None if e.condition is None else self.condition(e.condition)
        body, inner = self.value(e.body)
        self.locals = outer
        made = replace(e, body=body, sequence=sequence, condition=condition)
        return made, Value(inner.kind, inner.type, True, inner.parts)

    def _enter(self, e: S.EComprehension, v: Value) -> None:
        parts = v.parts if len(e.names) > 1 or v.kind == "tuple" else (v.element(),)
        if v.kind in ("other", "unknown"):
            parts = (Value("other"),) * len(e.names)
        if len(parts) != len(e.names):
            self.r.fail(
                f"{len(e.names)} names for {max(len(parts), 1)} values",
                e,
                hint="zip(xs, ys) pairs sequences: for x, y in zip(xs, ys)",
            )
        for name, part in zip(e.names, parts, strict=True):
            if self.r.reserved(name):
                self.r.fail(f"`{name}` is a dtype, not a variable", e, hint="dtype names are reserved words")
            self.locals[name] = part

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
            with self.r.typing(f"{name}(..)", e):
                self.types.restrict(t.elem, self.r.universe.any)
            return replace(e, args=(arg,)), Value("node", T(t.elem, t.lanes if t.form == "value" else self.types.lane()))
        if name == "identity":
            self._count(e, 2)
            fold, of = self.value(e.args[0])
            if of.kind not in ("op", "unknown"):
                self.r.fail(f"{self._describe(of)} stands where an op is expected", e.args[0], "identity(Add, x)")
            self.r.sort(fold, of.sort)
            arg, t = self.node(e.args[1])
            with self.r.typing("identity(..)", e):
                self.types.restrict(t.elem, self.r.universe.any)
            return replace(e, args=(fold, arg)), Value("node", T(t.elem, t.lanes if t.form == "value" else self.types.lane()))
        if name == "subst":
            self._count(e, 3)
            source, t = self.node(e.args[0])
            bound, range_type = self.node(e.args[1])
            return replace(e, args=(source, bound, self.operand(e.args[2], range_type, "the substitute"))), Value("node", t)
        if name == "zip":
            if len(e.args) < 2:
                self.r.fail("zip takes two sequences or more", e)
            both = [self.sequence(a) for a in e.args]
            parts = tuple(v.element() for _, v in both)
            return replace(e, args=tuple(m for m, _ in both)), Value("tuple", None, True, parts)
        if name in ("axes", "inside"):
            self._count(e, 1)
            arg, t = self.node(e.args[0])
            found = Value("other", many=True) if name == "axes" else Value("node", T(t.elem, self.types.lane(), t.form))
            return replace(e, args=(arg,)), found
        if name in FUNCTIONS:
            return self._function(e, *FUNCTIONS[name])
        if name in self.r.dialect.facts:
            return replace(e, args=tuple(self.value(a)[0] for a in e.args)), Value("bool")
        if name.startswith("_"):
            self.r.unknown(f"there is no function `{name}`", e, name, ())
        known = (*FUNCTIONS, *SPECIAL_FUNCTIONS, *self.externs, *self.r.dialect.facts, *self.r.dialect.ops)
        hint = "an op is bound by `for op in binary [..]`, not by a field" if name in self.r.bound else ""
        self.r.unknown(f"there is no op, function or helper `{name}`", e, name, known, hint)

    def _count(self, e: S.ECall, n: int) -> None:
        if len(e.args) != n:
            self.r.fail(f"{e.name} takes {n} argument{'s' if n > 1 else ''}, not {len(e.args)}", e)

    def _function(self, e: S.ECall, params: tuple[str, ...], result: str) -> tuple[S.Expr, Value]:
        kinds = list(params)
        if kinds[-1] == "*":
            kinds = [kinds[0]] * max(len(e.args), 1)
        self._count(e, len(kinds))
        made: list[S.Expr] = []
        for kind, a in zip(kinds, e.args, strict=True):
            if kind == "node":
                made.append(self.node(a)[0])
            elif kind == "dtype":
                made.append(self.dtype(a)[0])
            elif kind == "seq":
                made.append(self.sequence(a)[0])
            elif len(kinds) == 1 and e.name in ("min", "max", "gcd"):
                one, v = self.value(a)
                if not v.many:
                    self._need_integer(v, a, f"an argument of {e.name}")
                made.append(one)
            else:
                made.append(self.integer(a, f"an argument of {e.name}"))
        return replace(e, args=tuple(made)), Value(result)

    def node(self, e: S.Expr) -> tuple[S.Expr, T]:
        """A bound node, or a term built of such."""
        made, v = self.value(e)
        if v.kind == "unknown":
            return made, self.types.fresh()
        if v.kind == "other":
            return made, self.types.fresh()
        if v.kind != "node" or v.many or v.type is None:
            hint = "`c @const(v)` binds the node c and its value v" if v.kind == "const" else ""
            self.r.fail(f"{self._describe(v)} stands where a node is expected", e, "a bound node, or a term of such", hint)
        return made, v.type

    def dtype(self, e: S.Expr) -> tuple[S.Expr, T]:
        """An expression that yields a dtype, and that dtype."""
        if isinstance(e, S.EName) and e.name not in self.r.bound and e.name not in self.locals:
            t = self.types.fresh()
            if not (e.name in self.r.universe.bits or e.name in self.types.named or self.r.universe.vector(e.name)):
                known = (*self.types.named, *self.r.universe.bits)
                self.r.unknown(
                    f"there is no dtype `{e.name}`", e, e.name, known, "dtype variables are bound by the pattern: x: T"
                )
            type_ = S.TName(e.name, span=e.span)
            self.r.annotate(t, type_, "the dtype")
            made: S.Expr = S.EType(type_, span=e.span)
            self.r.sort(made, Sort.DTYPE)
            self.r.note(made, t)
            self.r.asked.append((made, t, f"the dtype `{e.name}`", "annotate its node with any, and ask for dtype(x)"))
            return made, t
        if isinstance(e, S.ECall) and e.name == "dtype":
            if len(e.args) != 2:
                self._count(e, 1)
            arg, t = self.node(e.args[0])
            made = replace(e, args=(arg, *(self.integer(k, "a number of lanes") for k in e.args[1:])))
            self.r.sort(made, Sort.DTYPE)
            return made, t if len(e.args) == 1 else T(t.elem, self.types.lane())
        made, v = self.value(e)
        if v.kind not in ("dtype", "unknown"):
            self.r.fail(f"{self._describe(v)} stands where a dtype is expected", e, "a dtype, a dtype variable or dtype(x)")
        return made, self.types.fresh()

    def _check_const(self, e: S.ECall, v: Value, t: T) -> None:
        with self.r.typing("a constant's dtype", e):
            self.types.restrict(t.elem, self.r.universe.any)
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
            args = [self._constant_of(a, result) for a in e.args[1:]]
            self.r.asked.append((e, result, f"the dtype that {name.name} is evaluated at", _BOUND_VALUE))
            self.r.sort(name, Sort.OP)
            return replace(e, args=(name, *args)), Value("const", result)
        info = self.r.op(name.name, name)
        if info.evaluate is None or not info.params:
            self.r.fail(f"{info.name} cannot be evaluated on constants", name, "an op that works lane by lane")
        given = self.r.gives_dtype(info)
        if len(e.args) != 1 + len(info.params) + given:
            takes = f"{len(info.params)} value{'s' if len(info.params) > 1 else ''}" + (" and a dtype" if given else "")
            self.r.fail(f"eval({info.name}, ..) takes {takes}, not {len(e.args) - 1}", e)
        slots: dict[str, list[T]] = {o.name: [self.types.fresh()] for o in info.operands}
        self.r.operand_types(info, slots, result, e)
        args = [self._constant_of(a, slots[o.name][0]) for a, o in zip(e.args[1:], info.operands, strict=False)]
        if given:
            made, t = self.dtype(e.args[-1])
            self.r.unify(t, result, "the dtype", e.args[-1])
            args.append(made)
        for operand in (result, *(slots[o.name][0] for o in info.operands)):
            self.r.asked.append((e, operand, f"the dtype that {info.name} is evaluated at", _BOUND_VALUE))
        self.r.sort(name, Sort.OP)
        return replace(e, args=(name, *args)), Value("const", result)

    def _constant_of(self, e: S.Expr, t: T) -> S.Expr:
        """A compile-time value that is an operand of `eval`, at dtype `t`."""
        made, v = self._value(e)
        self.r.sort(made, v.sort)
        if v.kind == "node" or v.many or v.kind in ("dtype", "op", "tuple"):
            hint = "`c @const(v)` binds the node c and its value v" if v.kind == "node" else ""
            self.r.fail(f"{self._describe(v)} stands where the value of a constant is expected", e, hint=hint)
        if v.kind == "const" and v.type is not None:
            with self.r.typing("the dtype of this value", e):
                self.types.same_element(t.elem, v.type.elem)
        else:
            self._convert(v, t, e)
        self.r.note(made, t)
        return made

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
                made.append(self.dtype(a)[0])
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
            if kind == "bool" and nodes:  # a helper that is given conditions as nodes returns such
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
                self.types.same_element(variables.setdefault(p.type.name, self.types.element(self.r.universe.full)), t.elem)
        else:
            self.r.annotate(t, p.type, f"`{p.name}`")
        return t


__all__ = ["ValueExpressions"]
