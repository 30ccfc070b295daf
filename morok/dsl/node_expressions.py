"""Checks of the nodes that guards, `let` and targets build, and of the values that become constants among their operands."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.infer import T
from morok.dsl.scope import Bound, Value
from morok.dsl.special_ops import lists_scalars
from morok.dsl.structural import takes_dtype
from morok.dsl.value_expressions import ValueExpressions

FIELDS: Final = {
    "int": "a number", "ints": "a list of numbers", "bool": "true or false", "bools": "a list of true and false", "op": "an op",
    "pairs": "a list of pairs", "consts": "a list of constants",
}  # fmt: skip


class Expressions(ValueExpressions):
    """Expressions of every kind."""

    def operand(self, e: S.Expr, t: T, what: str) -> S.Expr:
        """An expression in operand position, where the dtype is `t`: a node, or a value that becomes a constant."""
        made, v = self._value(e)
        self.is_of(made, v)
        if v.kind == "node" and not v.many and v.type is not None:
            self.r.note(made, v.type)
            self.r.unify(v.type, t, what, e)
            return made
        if v.kind == "unknown":
            return made
        if v.many or v.kind in ("dtype", "op", "tuple"):
            self.r.fail(f"{what} is {self._describe(v)}", e, "a node, or a value that becomes a constant")
        self._convert(v, t, e)
        self.r.note(made, t)
        self.r.constants.append((made, t))
        return made

    def _convert(self, v: Value, t: T, e: S.Expr) -> None:
        """Constrain `t`, the dtype of the constant that a value of kind `v` becomes."""
        u = self.r.universe
        if not u.integral:
            return
        if v.kind == "int":
            hint = f"write {e.text}.0" if isinstance(e, S.ENumber) else ""
            self.r.restrict(t, u.integral, "the dtype of an integer constant", e, hint)
        elif v.kind == "float":
            self.r.restrict(t, u.floats, "the dtype of a float constant", e)
        elif v.kind == "bool":
            self.r.restrict(t, u.boolean, "the dtype of a truth value", e)
        elif v.kind == "const" and v.type is not None and self.types.find(v.type.elem) != self.types.find(t.elem):
            if not self.types.mask(v.type.elem) & ~u.integral:
                self.r.restrict(t, u.integral, "the dtype of an integer constant", e)
            else:
                with self.r.typing("the dtype of this constant", e):
                    self.types.same_element(t.elem, v.type.elem)
        else:
            self.r.restrict(t, u.any, "the dtype of a constant", e)

    def _operands(self, info: OpInfo, name: str, e: S.Expr, slots: dict[str, list[T]]) -> S.Expr:
        """The term for one operand, or for several in a sequence: `x`, `xs..`, a comprehension."""
        what = f"{name} of {info.name}"
        held = next((o.holds for o in info.operands if o.name == name), "")
        form = "place" if held == "storage" else "value"
        if isinstance(e, S.ESpread):
            inner, v = self.sequence(e.sequence)
            made: S.Expr = replace(e, sequence=inner)
            self.r.sort(made, v.sort)
            if v.kind != "node":
                self.r.fail(f"{what} is {self._describe(v)}", e, "a sequence of nodes")
            self.item_of(v, e)
            t = self.types.fresh(form=form)
            slots.setdefault(name, []).append(t)
            if v.type is not None:
                self.r.unify(T(v.type.elem, v.type.lanes, v.type.form), t, what, e)
            return made
        if isinstance(e, S.EComprehension):
            sequence, v = self.sequence(e.sequence)
            outer = dict(self.locals)
            self._enter(e, v)
            condition = None if e.condition is None else self.condition(e.condition)
            t = self.types.fresh(form=form)
            slots.setdefault(name, []).append(t)
            body = self.operand(e.body, t, what)
            self.locals = outer
            made = replace(e, body=body, sequence=sequence, condition=condition)
            self.r.sort(made, Sort.NODES)
            return made
        t = self.types.fresh(form=form)
        slots.setdefault(name, []).append(t)
        if held == "count":
            self.r.addresses.append(t)
        return self.operand(e, t, what)

    def _build(self, e: S.ECall) -> tuple[S.Expr, T]:
        """An op applied to operands, and perhaps to static fields and a dtype."""
        info = self.r.op(e.name, e)
        result = self.types.fresh()
        slots: dict[str, list[T]] = {}
        many = any(o.many for o in info.operands)
        operands, fields_given, given_dtype = self._arguments(info, e)
        made_operands: list[S.Expr] = []
        singles = [o for o in info.operands if not o.many]
        least = len([o for o in info.operands if not (o.many or o.optional)])
        for n, a in enumerate(operands):
            o = (
                singles[n]
                if n < len(singles) and n < least
                else next((q for q in info.operands if q.many), singles[min(n, len(singles) - 1)] if singles else None)
            )
            assert o is not None
            if isinstance(a, S.ESpread | S.EComprehension) and not many:
                self.r.fail(f"{info.name} takes no sequence", a)
            made_operands.append(self._operands(info, o.name, a, slots))
        if many and len(operands) < least and not any(isinstance(a, S.ESpread) for a in operands):
            self.r.fail(f"{info.name} has too few operands", e, ", ".join(o.name for o in info.operands))
        self._result_lanes(info, operands, fields_given, result)
        extra: list[S.Expr] = []
        if given_dtype is not None:
            made, t = self.dtype(given_dtype)
            with self.r.typing("the dtype", given_dtype):
                self.types.same_element(t.elem, result.elem)
            extra.append(made)
        elif takes_dtype(info) and info.params:
            self.r.fail(f"{info.name} needs a dtype", e, f"{info.name}(x, T)")
        self.r.operand_types(info, slots, result, e)
        if not fields_given:
            return replace(e, args=(*made_operands, *extra)), result
        fields: list[tuple[str, S.Expr]] = [(o.name, a) for o, a in zip(info.operands, made_operands, strict=False)]
        fields += [(f, self._static(info, f, a, result)) for f, a in zip(info.required, fields_given, strict=True)]
        if extra:
            fields.append(("dtype", extra[0]))
            self._lanes_said(extra[0], e, result)
        return S.EStruct(e.name, tuple(fields), span=e.span), result

    def _arguments(self, info: OpInfo, e: S.ECall) -> tuple[list[S.Expr], list[S.Expr], S.Expr | None]:
        """The arguments of an op: its operands, its static fields, and its dtype, if that is given."""
        wanted = info.required
        if any(o.many for o in info.operands):
            if wanted:
                self.r.fail(
                    f"{info.name} needs {', '.join(wanted)}",
                    e,
                    hint=f"by name: {info.name} {{ {', '.join(f'{o.name}: ..' for o in info.operands)}, {wanted[0]}: .. }}",
                )
            return list(e.args), [], None
        plain = info.operands
        operands, rest = list(e.args[: len(plain)]), list(e.args[len(plain) :])
        if len(operands) < sum(not o.optional for o in plain):
            self.r.fail(f"{info.name} has too few operands", e, ", ".join(o.name for o in plain))
        fields, rest = rest[: len(wanted)], rest[len(wanted) :]
        dtype = rest.pop(0) if rest and takes_dtype(info) else None
        if rest:
            self.r.fail(f"{info.name} has too many arguments", rest[0])
        if len(fields) < len(wanted):
            self.r.fail(f"{info.name} has more fields: {', '.join(wanted[len(fields) :])}", e)
        return operands, fields, dtype

    def _result_lanes(self, info: OpInfo, operands: list[S.Expr], fields: list[S.Expr], result: T) -> None:
        """Constrain the lanes of a node that lists them, as scalars or in its field, to the length of the list."""
        listed = (
            operands
            if lists_scalars(info)
            else fields[0].items
            if info.role == "take" and fields and isinstance(fields[0], S.EList)
            else None
        )
        if listed is not None and not any(isinstance(i, S.ESpread | S.EComprehension) for i in listed):
            self.types.same_lanes(result.lanes, self.types.lane(len(listed)))

    def _static(self, info: OpInfo, field: str, e: S.Expr, result: T) -> S.Expr:
        """The value of a static field of a node of this type."""
        if (
            isinstance(e, S.EName)
            and e.name[:1].isupper()
            and e.name not in self.types.named
            and e.name not in self.r.dialect.ops
        ):
            self.r.sort(e, Sort.OTHER)  # a member of the field's own enumeration
            return e
        made, v = self.value(e)
        kind = info.field_kind(field)
        if v.kind == "node":
            self.r.fail(f"{field} of {info.name} is a static field, not a node", e, "a compile-time value")
        if kind == "op" and v.kind not in ("op", "unknown"):
            self.r.fail(f"{field} of {info.name} is an op, not {self._describe(v)}", e)
        if kind in ("ints", "bools", "pairs", "consts") and not v.many and v.kind not in ("other", "unknown"):
            self.r.fail(f"{field} of {info.name} is a sequence, not {self._describe(v)}", e, "[i, j]")
        if kind in ("const", "consts"):
            self._convert(v.element(), result, e)
            of_any_lanes = self.types.fresh()
            self.types.same_element(of_any_lanes.elem, result.elem)
            self.r.constants.append((e, of_any_lanes))
        empty = isinstance(made, S.EList) and not made.items
        if not empty and {kind.removesuffix("s"), v.kind} == {"int", "bool"}:
            self.r.fail(f"{field} of {info.name} is {FIELDS[kind]}, not {FIELDS[v.kind + 's' * v.many]}", e)
        return made

    def _build_struct(self, e: S.EStruct) -> tuple[S.Expr, T]:
        info = self.r.op(e.op, e)
        operands = {o.name: o for o in info.operands}
        result = self.types.fresh()
        slots: dict[str, list[T]] = {}
        fields: list[tuple[str, S.Expr]] = []
        given: set[str] = set()
        for name, value in e.fields:
            if name in given:
                self.r.fail(f"{info.name} has one `{name}`", value)
            given.add(name)
            if name in operands:
                o = operands[name]
                if isinstance(value, S.ENone):
                    if not o.optional:
                        self.r.fail(f"{info.name} always has its {name}", e)
                    fields.append((name, value))
                elif o.many:
                    fields.append((name, self._many(info, name, value, slots)))
                else:
                    fields.append((name, self._operands(info, name, value, slots)))
            elif name in info.fields:
                fields.append((name, self._static(info, name, value, result)))
            elif name == "dtype":
                made, t = self.dtype(value)
                with self.r.typing("the dtype", value):
                    self.types.same_element(t.elem, result.elem)
                self._lanes_said(made, value, result)
                fields.append((name, made))
            else:
                known = (*operands, *info.fields, "dtype")
                self.r.unknown(f"{info.name} has no field `{name}`", value, name, known, f"it has {', '.join(known)}")
        missing = [o.name for o in info.operands if not (o.many or o.optional) and o.name not in given]
        missing += [f for f in info.required if f not in given]
        if missing:
            self.r.fail(f"{info.name} has more fields: {', '.join(missing)}", e)
        self.r.operand_types(info, slots, result, e)
        return replace(e, fields=tuple(fields)), result

    def _lanes_said(self, dtype: S.Expr, at: S.Expr, result: T) -> None:
        """Constrain a node's lanes to those of the dtype written for it; `dtype(x)` has one lane, as `f32` has."""
        count: int | str | None = 1
        match dtype:
            case S.EType(type=S.TName(name=name)) if (vector := self.r.universe.vector(name)) is not None:
                count = vector[1]
            case S.EType(type=S.TVector(lanes=lanes)):
                count = lanes
            case S.ECall(args=(_, S.ENumber(value=int(k)))):
                count = k
            case S.ECall(args=(_, _)):
                count = None  # computed lanes are left to the proof
        if count is not None:
            with self.r.typing("the lanes of the dtype", at):
                self.types.same_lanes(self.types.lane(count), result.lanes)

    def _many(self, info: OpInfo, name: str, value: S.Expr, slots: dict[str, list[T]]) -> S.Expr:
        if isinstance(value, S.EList):
            made: S.Expr = replace(value, items=tuple(self._operands(info, name, i, slots) for i in value.items))
            slots.setdefault(name, [])
            self.r.sort(made, Sort.NODES)
            return made
        if isinstance(value, S.EComprehension):
            return self._operands(info, name, value, slots)
        inner, v = self.sequence(value)
        if v.kind not in ("node", "unknown", "other"):
            self.r.fail(f"{name} of {info.name} is {self._describe(v)}", value, "a sequence of nodes")
        self.item_of(v, value)
        t = self.types.fresh()
        slots.setdefault(name, []).append(t)
        if v.type is not None:
            self.r.unify(T(v.type.elem, v.type.lanes, v.type.form), t, f"{name} of {info.name}", value)
        return inner

    # clauses

    def let(self, clause: S.Let) -> S.Let:
        made, v = self.value(clause.value)
        if len(clause.names) == 1:
            values: tuple[Value, ...] = (v,)
            if v.kind == "tuple" and not v.many:
                self.r.fail(
                    f"one name for {len(v.parts)} values", clause, f"let ({', '.join('abcdef'[: len(v.parts)])}) = .."
                )
        else:
            values = v.parts if v.kind == "tuple" and not v.many else (v,)
            if len(values) != len(clause.names):
                self.r.fail(
                    f"{len(clause.names)} names for {len(values)} value{'s' if len(values) > 1 else ''}", clause
                )
        for name, one in zip(clause.names, values, strict=True):
            if name.startswith("_"):
                continue
            self.r.unused(name, clause)
            if name in self.iterated:
                self.r.fail(f"`{name}` is bound already", clause, hint="by a comprehension above")
            self.r.bound[name] = Bound(name, one, clause.span, False, one.kind == "const")
        return replace(clause, value=made)
