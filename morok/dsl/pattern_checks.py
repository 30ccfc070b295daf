"""Checking patterns: names become ops, dtypes or variables; every node gets a type; the tree is made explicit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from morok.dialect import OperandInfo, OpInfo
from morok.dsl import syntax as S
from morok.dsl.infer import T
from morok.dsl.node_expressions import FIELDS
from morok.dsl.resolve import Resolver, field_value
from morok.dsl.scope import Bound, Value
from morok.dsl.special_ops import constants_op
from morok.dsl.structural import takes_dtype
from morok.errors import UnknownNameError

_VECTOR_CONSTANTS: Final = ("vconst", "anyconst")
_CONSTANT_MASKS: Final = ("zero", "one", "const", *_VECTOR_CONSTANTS)


class Patterns:
    """The checker of one pattern. The limits on nesting (lexer.MAX_DEPTH) bound its recursion."""

    def __init__(self, resolver: Resolver) -> None:
        self.r = resolver
        self.types = resolver.types

    def pattern(self, p: S.Pattern, t: T) -> S.Pattern:
        """The explicit form of `p`, checked against the type `t` of its position."""
        made = self._pattern(p, t)
        self.r.note(made, t)
        return made

    def _pattern(self, p: S.Pattern, t: T) -> S.Pattern:
        match p:
            case S.PVar():
                return self._variable(p, t)
            case S.PConst():
                return self._constant(p, t)
            case S.PLiteral():
                self._literal(p, t)
                return p
            case S.PBind():
                inner = self.pattern(p.inner, t)
                constant = isinstance(inner, S.PConst | S.PLiteral)
                if not p.name.startswith("_"):
                    self.r.bind(p.name, Value("node", t), p, invalid_ok=True, constant=constant)
                return p if inner is p.inner else replace(p, inner=inner)
            case S.POp():
                return self._op(p, t)
            case S.PStruct():
                return self._struct(p, t)
            case S.PAlternatives():
                return self._alternatives(p, t)
            case S.PSequence():
                self.r.fail(f"`{p.name}..` stands where one operand is expected", p)
            case _:
                self.r.fail("a list stands where an operand is expected", p, "a pattern")

    def _variable(self, p: S.PVar, t: T) -> S.Pattern:
        info = self.r.dialect.ops.get(p.name)
        if info is not None:
            if any(not (o.many or o.optional) for o in info.operands):
                self.r.fail(
                    f"`{p.name}` is an op", p, f"its operands: {p.name}({', '.join(o.name for o in info.operands)})"
                )
            return self._op(S.POp((p.name,), (), False, p.type, span=p.span), t)
        maybe = self.r.annotate(t, p.type, f"`{p.name}`") if p.type is not None else False
        if p.name.startswith("_"):
            return p
        self.r.bind(p.name, Value("node", t), p, invalid_ok=maybe)
        return p

    def _constant(self, p: S.PConst, t: T) -> S.Pattern:
        u = self.r.universe
        if p.kind in _VECTOR_CONSTANTS and constants_op(self.r.dialect) is None:
            needed = 'one op with the role "constants" and a field of the kind "consts"'
            self.r.fail(f"`@{p.kind}`: the dialect {self.r.dialect.name} has no vector constants", p, needed)
        mask = u.any if p.kind in _CONSTANT_MASKS else u.boolean
        self.r.restrict(t, mask, f"@{p.kind}", p)
        if p.type is not None:
            self.r.annotate(t, p.type, f"@{p.kind}")
        if p.name is not None and not p.name.startswith("_"):
            self.r.bind(p.name, Value("const", t, many=p.kind in _VECTOR_CONSTANTS), p, constant=True)
        return p

    def _literal(self, p: S.PLiteral, t: T) -> None:
        u = self.r.universe
        if isinstance(p.value, bool):
            self.r.restrict(t, u.boolean, f"`{p.text}`", p)
        elif isinstance(p.value, int):
            self.r.restrict(t, u.integral, f"the integer `{p.text}`", p)
        else:
            self.r.restrict(t, u.floats, f"`{p.text}`", p)

    # ops

    def _op(self, p: S.POp, t: T) -> S.Pattern:
        infos = [self.r.op(name, p) for name in p.ops]
        first = infos[0]
        if p.commutative:
            for i in infos:
                if not i.commutative:
                    self.r.fail(
                        f"{i.name} is not commutative",
                        p,
                        f"{i.name}(x, y)",
                        "square brackets try every order of the operands",
                    )
        slots: dict[str, list[T]] = {}
        args, fields = self._arguments(p, infos, slots, t)
        if p.type is not None:
            self.r.annotate(t, p.type, "this operation")
        for i in infos:
            self.r.operand_types(i, slots, t, p)
        if any(isinstance(a, S.PSequence) for a in args) and first.in_halves:
            return self._halves(p, infos, args, fields)
        if not fields:
            return replace(p, args=args)
        if len(infos) > 1:
            self.r.fail("a choice of ops takes operands only", p)
        operands = [a for a in args if not isinstance(a, S.PType)]
        listed: list[S.PField] = []
        for o in first.operands:
            if o.many:
                listed.append(S.PField(o.name, S.PList(tuple(operands), span=p.span), span=p.span))
                break
            if operands:
                given = operands.pop(0)
                listed.append(S.PField(o.name, S.PSome(given, span=p.span) if o.optional else given, span=p.span))
        listed += fields
        listed += [S.PField("dtype", a, span=p.span) for a in args if isinstance(a, S.PType)]
        return S.PStruct(first.name, tuple(listed), True, span=p.span)

    def _halves(self, p: S.POp, infos: list[OpInfo], args: tuple[S.Pattern, ...], fields: list[S.PField]) -> S.Pattern:
        """The struct pattern of an op with two sequences, equally long, behind its operands: `Shrink(x, begins.., ends..)`."""
        first = infos[0]
        given = [a for a in args if not isinstance(a, S.PType)]
        single = [o for o in first.operands if not o.many]
        if len(infos) > 1:
            self.r.fail("a choice of ops takes no two sequences", p)
        if len(given) != len(first.operands) or not all(isinstance(a, S.PSequence) for a in given[len(single) :]):
            names = ", ".join(f"{o.name}.." if o.many else o.name for o in first.operands)
            self.r.fail(
                f"the two sequences of {first.name} share its operands evenly",
                p,
                f"{first.name}({names})",
                "name both, or neither",
            )
        listed = [S.PField(o.name, a, span=p.span) for o, a in zip(first.operands, given, strict=True)]
        listed += fields
        listed += [S.PField("dtype", a, span=p.span) for a in args if isinstance(a, S.PType)]
        return S.PStruct(first.name, tuple(listed), True, span=p.span)

    def _arguments(
        self, p: S.POp, infos: list[OpInfo], slots: dict[str, list[T]], result: T
    ) -> tuple[tuple[S.Pattern, ...], list[S.PField]]:
        """Arguments in order: operands, then static fields, then the dtype of ops that are given one."""
        first = infos[0]
        args = list(p.args)
        made: list[S.Pattern] = []
        for n, o in enumerate(first.operands):
            if o.many:
                if sum(q.many for q in first.operands) == 1:
                    self._places(list(itertools.takewhile(lambda a: not isinstance(a, S.PList), args)))
                while args and not isinstance(args[0], S.PList):
                    made.append(self._operand(first, o, args.pop(0), slots))
                    if isinstance(made[-1], S.PSequence) and n + 1 < len(first.operands) and first.operands[n + 1].many:
                        break
                continue
            if not args or isinstance(args[0], S.PList):
                if o.optional or not (needed := [q.name for q in first.operands[n:] if not (q.many or q.optional)]):
                    break
                self.r.fail(
                    f"{first.name} has too few operands",
                    p,
                    f"{', '.join(q.name for q in first.operands)}",
                    f"{needed[0]} is missing",
                )
            made.append(self._operand(first, o, args.pop(0), slots))
        fields: list[S.PField] = []
        for name in first.fields:
            if not args or name not in first.required or (takes_dtype(first) and self._is_dtype(args[0])):
                break
            arg = args.pop(0)
            fields.append(self._field(first, S.PField(name, arg, span=p.span), result))
        if args and takes_dtype(first):
            made.append(self._dtype(args.pop(0), result))
        if args:
            most = len(first.operands) + len(first.fields) + takes_dtype(first)
            self.r.fail(f"{first.name} has too many arguments", args[0], f"at most {most}" if most else "none")
        for other in infos[1:]:
            if len(other.operands) != len(first.operands) or other.fields or takes_dtype(other) != takes_dtype(first):
                self.r.fail(f"{first.name} and {other.name} take different operands", p)
        return tuple(made), fields

    def _is_dtype(self, p: S.Pattern) -> bool:
        return isinstance(p, S.PVar) and (p.name in self.r.universe.bits or p.name in self.types.named)

    def _dtype(self, p: S.Pattern, result: T) -> S.PType:
        """The `B` of `Cast(x, B)`; `T: int` constrains it."""
        if isinstance(p, S.PType):
            type_: S.TypeSyntax = p.type
        elif isinstance(p, S.PVar):
            type_ = S.TName(p.name, span=p.span)
            if p.type is not None:
                self.r.annotate(result, p.type, f"`{p.name}`")
            if p.name.startswith("_"):
                return S.PType(type_, span=p.span)
        else:
            self.r.fail("a pattern stands where a dtype is expected", p, "a dtype, or a name for it: Cast(x, B)")
        self.r.annotate(result, type_, "the dtype")
        return S.PType(type_, span=p.span)

    def _places(self, items: Sequence[S.Pattern]) -> None:
        """Errors unless a list decides which operands its sequences take; `[before.., p, q, rest..]` is the most general form."""
        at = [n for n, i in enumerate(items) if isinstance(i, S.PSequence)]
        if len(at) < 2:
            return
        first, second = items[at[0]], items[at[1]]
        names = [i.name for i in items if isinstance(i, S.PSequence)]
        if at[1] == at[0] + 1:
            self.r.fail(f"`{names[0]}..` and `{names[1]}..` stand side by side: where the one ends is not said", second)
        if len(at) > 2 or at[1] != len(items) - 1:
            self.r.fail(
                f"behind `{names[0]}..` only a last sequence can stand",
                first,
                "[before.., p, rest..]",
                "two rules can say it",
            )

    def _operand(self, info: OpInfo, o: OperandInfo, p: S.Pattern, slots: dict[str, list[T]]) -> S.Pattern:
        form = "place" if o.holds == "storage" else "value"
        t = self.types.fresh(self._mask(o), form=form)
        slots.setdefault(o.name, []).append(t)
        if isinstance(p, S.PSequence):
            if not o.many:
                self.r.fail(
                    f"`{p.name}..` stands for operands of {info.name} that are no sequence",
                    p,
                    f"one pattern for {o.name}",
                )
            return self._sequence(p, t)
        return self.pattern(p, t)

    def _mask(self, o: OperandInfo) -> int:
        """The dtypes of an operand before its op constrains them: ranges are integers, though no op may depend on that."""
        u = self.r.universe
        return u.integral | u.opaque if o.position == "binder" and u.integral else u.full

    def _sequence(self, p: S.PSequence, t: T) -> S.PSequence:
        maybe = self.r.annotate(t, p.type, f"`{p.name}`") if p.type is not None else False
        if not p.name.startswith("_"):
            self.r.bind(p.name, Value("node", t, many=True), p, invalid_ok=maybe)
        self.r.note(p, t)
        return p

    # structs

    def _struct(self, p: S.PStruct, t: T) -> S.Pattern:
        info = self.r.op(p.op, p)
        operands = {o.name: o for o in info.operands}
        known = (*operands, *info.fields, "dtype")
        slots: dict[str, list[T]] = {}
        fields: list[S.PField] = []
        given: set[str] = set()
        for f in p.fields:
            if f.name in given:
                self.r.fail(f"{info.name} has one `{f.name}`", f)
            given.add(f.name)
            if f.name in operands:
                made = self._operand_field(info, operands[f.name], f, slots)
            elif f.name in info.fields:
                made = self._field(info, f, t)
            elif f.name == "dtype":
                value = f.value if isinstance(f.value, S.Pattern) else S.PVar("T", span=f.span)
                made = replace(f, value=self._dtype(value, t))
            else:
                self.r.unknown(f"{info.name} has no field `{f.name}`", f, f.name, known, f"it has {', '.join(known)}")
            fields.append(made)
        if not p.rest:
            missing = [o.name for o in info.operands if not (o.many or o.optional) and o.name not in given]
            missing += [n for n in info.required if n not in given]
            if missing:
                self.r.fail(
                    f"{info.name} has more fields: {', '.join(missing)}", p, hint="end with `..` to ignore the rest"
                )
        if info.in_halves:
            self._equal_lists(p, info, fields)
        self.r.operand_types(info, slots, t, p)
        return replace(p, fields=tuple(fields))

    def _equal_lists(self, p: S.PStruct, info: OpInfo, fields: Sequence[S.PField]) -> None:
        """Errors unless the rule writes two equally long sequences as names, or as lists of equally many items."""
        halves = [o.name for o in info.operands if o.many]
        if not p.rest and sum(f.name in halves for f in fields) == 1:
            self.r.fail(
                f"{' and '.join(halves)} of {info.name} are equally long",
                p,
                "both",
                "end with `..` to ignore the other",
            )
        written = [(f, f.value.items) for f in fields if isinstance(f.value, S.PList)]
        for f, items in written:
            if any(isinstance(i, S.PSequence) for i in items):
                what = f"{f.name} of {info.name} has a sequence among its items, and is as long as another sequence"
                self.r.fail(
                    what,
                    f,
                    "a name for all of it, or all its items",
                    f"{f.name}: {f.name}, and items by [..] in the guard",
                )
        if len({len(items) for _, items in written}) > 1:
            names = " and ".join(f.name for f, _ in written)
            self.r.fail(f"{names} of {info.name} are equally long", written[1][0], "as many items for each")

    def _operand_field(self, info: OpInfo, o: OperandInfo, f: S.PField, slots: dict[str, list[T]]) -> S.PField:
        value = S.PVar(f.name, span=f.span) if f.value is None else f.value
        if f.value is None and self.r.reserved(f.name) and not (o.many or o.optional):
            # `Load { index, .. }`: an operand that has the name of a dtype
            t = self.types.fresh(self._mask(o))
            slots.setdefault(o.name, []).append(t)
            self.r.bound[f.name] = Bound(f.name, Value("node", t), f.span)
            self.r.note(f, t)
            return f
        if isinstance(value, S.PNone | S.PSome):
            if not o.optional:
                self.r.fail(f"{info.name} always has its {o.name}", f, "a pattern")
            if isinstance(value, S.PNone):
                return f
            return replace(f, value=replace(value, inner=self._operand(info, o, value.inner, slots)))
        if o.many:
            if isinstance(value, S.PList):
                slots.setdefault(o.name, [])
                self._places(value.items)
                listed = [self._operand(info, o, i, slots) for i in value.items]
                return replace(f, value=replace(value, items=tuple(listed)))
            if not isinstance(value, S.PVar) or value.name in self.r.dialect.ops:
                self.r.fail(f"{o.name} of {info.name} is a sequence", f, "a name for all of it, or a list of patterns")
            t = self.types.fresh(self._mask(o))
            slots.setdefault(o.name, []).append(t)
            self._sequence(S.PSequence(value.name, value.type, span=value.span), t)
            self.r.note(f if f.value is None else value, t)
            return f if f.value is None else replace(f, value=value)
        if o.optional and isinstance(value, S.PVar) and value.name not in self.r.dialect.ops:
            # bound as it is: a node, or None
            t = self.types.fresh()
            slots.setdefault(o.name, []).append(t)
            if value.type is not None:
                self.r.annotate(t, value.type, f"`{value.name}`")
            if not value.name.startswith("_"):
                self.r.bind(value.name, Value("node", t), value, invalid_ok=True)
            self.r.note(value, t)
            return replace(f, value=value)
        if o.optional:
            self.r.fail(
                f"{o.name} of {info.name} may be absent", f, f"{o.name}: Some(..), {o.name}: None or a name for either"
            )
        if not isinstance(value, S.Pattern) or isinstance(value, S.PList):
            self.r.fail(f"{o.name} of {info.name} is one operand", f, "a pattern")
        made = self._operand(info, o, value, slots)
        if f.value is None:
            self.r.note(f, slots[o.name][-1])
            return f
        return replace(f, value=made)

    def _field(self, info: OpInfo, f: S.PField, t: T) -> S.PField:
        """A static field of a node of type `t`: a capital name or a number is compared, a small name is bound, a list does either
        to each item.
        """
        kind = info.field_kind(f.name)
        value = f.value
        if value is None:
            self._bind_field(f.name, field_value(kind, t), f)
            return f
        if isinstance(value, S.PVar) and value.type is None:
            if self._is_constant_name(value.name):
                self._check_member(kind, value.name, value)
                return replace(f, value=S.EName(value.name, span=value.span))
            self._bind_field(value.name, field_value(kind, t), value)
            return f
        if isinstance(value, S.PLiteral):
            return replace(f, value=self._literal_field(info, f.name, kind, value, t))
        if isinstance(value, S.PList):
            items: list[S.Expr] = []
            for i in value.items:
                if isinstance(i, S.PVar) and i.type is None:
                    if not self._is_constant_name(i.name):
                        item = Value("other") if kind == "pairs" else field_value(kind.removesuffix("s"), t)
                        self._bind_field(i.name, item, i)
                    items.append(S.EName(i.name, span=i.span))
                elif isinstance(i, S.PLiteral):
                    items.append(self._literal_field(info, f.name, kind.removesuffix("s"), i, t))
                else:
                    self.r.fail(f"{f.name} of {info.name} is no list of operands", i, "numbers and names")
            return replace(f, value=S.EList(tuple(items), span=value.span))
        self.r.fail(
            f"{f.name} of {info.name} is a static field, not an operand", f, "a name, a number or a list of them"
        )

    def _literal_field(self, info: OpInfo, field: str, kind: str, p: S.PLiteral, t: T) -> S.ENumber:
        """The number or bool that a field, or an item of it, is compared with; `t`: the type of the node, and of a constant."""
        if kind == "const":
            if self.r.universe.integral:
                self._literal(p, t)
            else:
                self.r.restrict(t, self.r.universe.any, f"`{p.text}`", p)
        elif kind != "other" and type(p.value) is not {"int": int, "bool": bool}.get(kind):
            self.r.fail(f"{field} of {info.name} is {FIELDS[info.field_kind(field)]}, not {p.text}", p)
        return S.ENumber(p.value, p.text, span=p.span)

    def _bind_field(self, name: str, value: Value, at: S.Syntax) -> None:
        if not name.startswith("_"):
            self.r.bind(name, value, at)

    def _is_constant_name(self, name: str) -> bool:
        return name[:1].isupper()

    def _check_member(self, kind: str, name: str, at: S.Syntax) -> None:
        if kind == "op" and name not in self.r.dialect.ops:
            self.r.unknown(f"there is no op `{name}`", at, name, self.r.dialect.ops)

    # alternatives

    def _alternatives(self, p: S.PAlternatives, t: T) -> S.Pattern:
        before = dict(self.r.bound)
        found: list[dict[str, Bound]] = []
        options: list[S.Pattern] = []
        for o in p.options:
            self.r.bound = dict(before)
            options.append(self.pattern(o, t))
            found.append({k: v for k, v in self.r.bound.items() if k not in before})
        self.r.bound = before
        names = set(found[0])
        for o, other in zip(p.options[1:], found[1:], strict=True):
            odd = sorted(names ^ set(other))
            if odd:
                self.r.report(
                    UnknownNameError,
                    f"`{odd[0]}` is bound on one side of `|` only",
                    o,
                    "the same names in every alternative",
                )
                self.r.bound.update(found[0])
        for name, b in found[0].items():
            self.r.bound[name] = b
            for other in found[1:]:
                c = other.get(name)
                if c is None:
                    continue
                if (c.value.kind, c.value.many) != (b.value.kind, b.value.many):
                    self.r.fail(f"`{name}` stands for two kinds of things", p)
                if b.value.type is not None and c.value.type is not None:
                    self.r.unify(c.value.type, b.value.type, f"`{name}`", p)
                b.invalid_ok = b.invalid_ok or c.invalid_ok
                b.constant = b.constant and c.constant
        return replace(p, options=tuple(options))
