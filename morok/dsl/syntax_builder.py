"""From parser reductions to the syntax tree of `morok.dsl.syntax`: one method a grammar rule, called while lark parses."""

from __future__ import annotations

import math
from typing import Any

from lark import Transformer

from morok.dialect import BUILT_IN
from morok.dsl import syntax as S
from morok.dsl.lexer import EXAMPLE_PART, OPEN, Tok

Children = list[Any]


class Mistake(Exception):
    """A mistake that the grammar cannot express; the parser turns it into a RuleSyntaxError."""

    def __init__(self, message: str, at: Any, expected: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.expected, self.hint = message, at.span, expected, hint


class _Args(list[Any]):
    """The arguments of an op or a call, unwrapped by their reader."""


class _Doc(str):
    __slots__ = ()


class _Flags(tuple[str, ...]):
    __slots__ = ()


def _span(first: Any, last: Any) -> S.Span:
    a: S.Span = first.span
    b: S.Span = a if last is first else last.span
    return S.Span(a.file, a.line, a.column, b.end_line or b.line, b.end_column or b.column)


def _end(items: Children, otherwise: Any) -> Any:
    return items[-1] if items else otherwise


def _integer(t: Tok) -> int:
    return int(t.value, 0) if t.value[:2] in ("0x", "0X") else int(t.value)


def _number(t: Tok) -> int | float | bool:
    if t.type == "INTEGER":
        return _integer(t)
    if t.type == "TRUTH":
        return t.value == "true"
    value = float(t.value)
    if math.isinf(value) and t.type == "FLOAT":
        raise Mistake(f"{t.value} is too large for any float", t, "a finite number", "write inf for infinity")
    return value


def unquote(text: str) -> str:
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


class Builder(Transformer[Tok, Any]):
    """The transformer of parser reductions. Children come in the order of the grammar, without keywords and punctuation."""

    # files

    def file(self, c: Children) -> S.File:
        dialects = [i for i in c if isinstance(i, _Head) and i.kind == "dialect"]
        helpers = [i for i in c if isinstance(i, _Head) and i.kind == "helpers"]
        for found in (dialects, helpers):
            if len(found) > 1:
                raise Mistake(f"a second `{found[1].kind}` line", found[1], f"one `{found[1].kind}` in a file")
        groups: list[S.Group] = []
        externs = [i for i in c if isinstance(i, S.Extern)]
        for i in c:
            if isinstance(i, _Group):
                groups.append(i.group)
                externs.extend(i.externs)
        return S.File(
            "",
            dialects[0].value if dialects else BUILT_IN,
            helpers[0].value if helpers else None,
            tuple(externs),
            tuple(groups),
        )

    def rules(self, c: Children) -> tuple[S.Rule, ...]:
        return tuple(c)

    def dialect(self, c: Children) -> Any:
        return _Head("dialect", c[0].value, c[0].span)

    def helpers(self, c: Children) -> Any:
        return _Head("helpers", unquote(c[0].value), c[0].span)

    def group(self, c: Children) -> Any:
        head: S.Group = c[0]
        items = tuple(i for i in c[1:] if not isinstance(i, S.Extern))
        externs = tuple(i for i in c[1:] if isinstance(i, S.Extern))
        return _Group(S.Group(head.name, head.doc, head.context, items, head.ends, span=head.span), externs)

    def group_head(self, c: Children) -> S.Group:
        doc = next((str(i) for i in c[1:] if isinstance(i, _Doc)), "")
        context = next((i.value for i in c[1:] if isinstance(i, Tok)), None)
        ends = tuple(i for i in c[1:] if isinstance(i, S.Ends))
        return S.Group(c[0].value, doc, context, (), ends, span=c[0].span)

    def ends(self, c: Children) -> S.Ends:
        return S.Ends(tuple(t.value for t in c[:-1]), str(c[-1]), span=c[0].span)

    def template(self, c: Children) -> S.Template:
        head: S.Template = c[0]
        return S.Template(head.variable, head.kind, head.ops, tuple(c[1:]), span=head.span)

    def template_head(self, c: Children) -> S.Template:
        if c[1].value not in ("unary", "binary", "ternary"):
            raise Mistake(
                f"`{c[1].value}` is no kind of op",
                c[1],
                "unary, binary or ternary",
                "for op in binary [Add, Mul] { ... }",
            )
        return S.Template(c[0].value, c[1].value, c[2], (), span=c[0].span)

    def names(self, c: Children) -> tuple[str, ...]:
        return tuple(t.value for t in c)

    def doc(self, c: Children) -> _Doc:
        return _Doc(" ".join(unquote(t.value) for t in c))

    def extern(self, c: Children) -> S.Extern:
        rest = c[3:]
        return S.Extern(
            c[0].value,
            tuple(c[1]),
            tuple(c[2]),
            any(isinstance(i, Tok) for i in rest),
            tuple(i.value for i in rest if isinstance(i, _Contract) and i.kind == "requires"),
            tuple(i.value for i in rest if isinstance(i, _Contract) and i.kind == "ensures"),
            next((str(i) for i in rest if isinstance(i, _Doc)), ""),
            span=c[0].span,
        )

    def param(self, c: Children) -> S.Param:
        return S.Param(c[0].value, c[1], span=_span(c[0], c[1]))

    def requires(self, c: Children) -> Any:
        return _Contract("requires", c[0])

    def ensures(self, c: Children) -> Any:
        return _Contract("ensures", c[0])

    # rules

    def rule(self, c: Children) -> S.Rule:
        name: Tok = c[0]
        clauses: list[S.If | S.Let] = []
        at = 2
        while not isinstance(c[at], Tok):
            clauses.extend(c[at])
            at += 1
        arrow, target, rest = c[at], c[at + 1], c[at + 2 :]
        return S.Rule(
            name.value,
            c[1],
            tuple(clauses),
            target,
            arrow.value == "=>",
            next((tuple(i) for i in rest if isinstance(i, _Flags)), ()),
            next((str(i) for i in rest if isinstance(i, _Doc)), ""),
            tuple(i for i in rest if isinstance(i, S.Example)),
            within=next((float(i) for i in rest if isinstance(i, float)), None),
            span=_span(name, next((i for i in reversed(rest) if isinstance(i, S.Example)), target)),
        )

    def guard(self, c: Children) -> list[S.If]:
        return [S.If(c[0], span=c[0].span)]

    def let(self, c: Children) -> list[S.Let]:
        return list(c)

    def bind_one(self, c: Children) -> S.Let:
        return S.Let((c[0].value,), c[1], span=_span(c[0], c[1]))

    def bind_many(self, c: Children) -> S.Let:
        return S.Let(tuple(t.value for t in c[:-1]), c[-1], span=_span(c[0], c[-1]))

    def within(self, c: Children) -> float:
        bound, unit = c
        if unit.value != "ulp":
            raise Mistake(f"`{unit.value}` is no measure of error", unit, "within 1.5 ulp")
        value = bound.value
        if isinstance(value, bool) or not 0.5 <= value < math.inf:
            raise Mistake(f"no result is always within {bound.text} ulp", bound, "a number from 0.5 on")
        return float(value)

    def assuming(self, c: Children) -> _Flags:
        return _Flags(t.value for t in c)

    def example(self, c: Children) -> S.Example:
        token: Tok = c[0]
        source, result = split_example(token.value)
        return S.Example(source, result, span=token.span)

    # patterns

    def alternatives(self, c: Children) -> S.PAlternatives:
        return S.PAlternatives(tuple(c), span=_span(c[0], c[-1]))

    def bind(self, c: Children) -> S.PBind:
        return S.PBind(c[0].value, c[1], span=_span(c[0], c[1]))

    def bind_constant(self, c: Children) -> S.PBind:
        return S.PBind(c[0].value, self.constant(c[1:]), span=_span(c[0], c[-1]))

    def variable(self, c: Children) -> S.PVar:
        if len(c) == 1:
            return S.PVar(c[0].value, span=c[0].span)
        return S.PVar(c[0].value, c[1], span=_span(c[0], c[1]))

    def constant(self, c: Children) -> S.PConst:
        name = next((i.value for i in c[1:] if isinstance(i, Tok)), None)
        kind = c[0].value[1:]
        if name is not None and kind not in ("const", "vconst", "anyconst"):
            raise Mistake(f"@{kind} has no value to bind", c[1], "@const(v), @vconst(vs) or @anyconst(vs)")
        type_ = next((i for i in c[1:] if isinstance(i, S.TypeSyntax)), None)
        return S.PConst(kind, name, type_, span=_span(c[0], c[-1]))

    def literal(self, c: Children) -> S.PLiteral:
        value = _number(c[-1])
        text = "".join(t.value for t in c)
        return S.PLiteral(-value if len(c) == 2 else value, text, span=_span(c[0], c[-1]))

    def _op(self, names: tuple[str, ...], c: Children, commutative: bool) -> S.POp:
        args: _Args = c[1]
        type_ = c[2] if len(c) > 2 else None
        return S.POp(names, tuple(args), commutative, type_, span=_span(c[0], type_ or _end(args, c[0])))

    def ordered(self, c: Children) -> S.POp:
        return self._op((c[0].value,), c, False)

    def commutative(self, c: Children) -> S.POp:
        return self._op((c[0].value,), c, True)

    def _choice(self, c: Children) -> tuple[str, ...]:
        options = c[0].options if isinstance(c[0], S.PAlternatives) else (c[0],)
        names: list[str] = []
        for o in options:
            if not isinstance(o, S.PVar) or o.type is not None:
                raise Mistake("operands follow what is no choice of ops", o, "op names, as in (Add | Mul)(x, y)")
            names.append(o.name)
        return tuple(names)

    def ordered_choice(self, c: Children) -> S.POp:
        return self._op(self._choice(c), c, False)

    def commutative_choice(self, c: Children) -> S.POp:
        return self._op(self._choice(c), c, True)

    def args(self, c: Children) -> _Args:
        return _Args(c)

    def sequence(self, c: Children) -> S.PSequence:
        name, *more = (i for i in c if not (isinstance(i, Tok) and i.type == "REST"))
        return S.PSequence(name.value, more[0] if more else None, span=_span(name, c[-1]))

    def pattern_list(self, c: Children) -> S.PList:
        items: _Args = c[0]
        return S.PList(tuple(items), span=_span(items[0], items[-1]) if items else S.NOWHERE)

    def struct(self, c: Children) -> S.PStruct:
        fields = c[1]
        rest = [f for f in fields if isinstance(f, Tok)]
        if rest and (len(rest) > 1 or rest[0] is not fields[-1]):
            raise Mistake("`..` stands once, as the last field", rest[0])
        named = tuple(f for f in fields if not isinstance(f, Tok))
        return S.PStruct(c[0].value, named, bool(rest), span=_span(c[0], _end(fields, c[0])))

    def field_name(self, c: Children) -> S.PField:
        return S.PField(c[0].value, None, span=c[0].span)

    def field_pattern(self, c: Children) -> S.PField:
        value = c[1]
        return S.PField(c[0].value, value, span=_span(c[0], c[0] if value.span == S.NOWHERE else value))

    def absent(self, c: Children) -> S.PNone:
        return S.PNone()

    def present(self, c: Children) -> S.PSome:
        return S.PSome(c[0], span=c[0].span)

    # dtype constraints

    def named_type(self, c: Children) -> S.TypeSyntax:
        return S.TName(c[0].value, span=c[0].span)

    def maybe_invalid(self, c: Children) -> S.TypeSyntax:
        return S.TMaybeInvalid(S.TName(c[0].value, span=c[0].span), span=c[0].span)

    def not_type(self, c: Children) -> S.TypeSyntax:
        return S.TNot(c[0], span=c[0].span)

    def union_type(self, c: Children) -> S.TypeSyntax:
        if len(c) == 1:
            inner: S.TypeSyntax = c[0]
            return inner
        return S.TUnion(tuple(c), span=_span(c[0], c[-1]))

    def vector_type(self, c: Children) -> S.TypeSyntax:
        if c[1].value != "x":
            raise Mistake(f"unexpected `{c[1].value}` after a dtype", c[1], "`x` and a number of lanes, as in `T x n`")
        lanes = c[2].value if c[2].type == "NAME" else _integer(c[2])
        return S.TVector(c[0], lanes, span=_span(c[0], c[2]))

    def pointer_type(self, c: Children) -> S.TypeSyntax:
        if c[0].value != "ptr":
            raise Mistake(f"`{c[0].value}` takes no dtype", c[0], "ptr(T)")
        return S.TPointer(c[1], span=_span(c[0], c[1]))

    # expressions

    def _binary(self, c: Children, op: str) -> S.EBinary:
        return S.EBinary(op, c[0], c[-1], span=_span(c[0], c[-1]))

    def disjoined(self, c: Children) -> S.EBinary:
        return self._binary(c, "or")

    def conjoined(self, c: Children) -> S.EBinary:
        return self._binary(c, "and")

    def binary(self, c: Children) -> S.EBinary:
        return self._binary(c, c[1].value)

    def negated(self, c: Children) -> S.EUnary:
        return S.EUnary("not", c[0], span=c[0].span)

    def negative(self, c: Children) -> S.Expr:
        inner = c[1]
        if isinstance(inner, S.ENumber) and not isinstance(inner.value, bool) and not inner.text.startswith("-"):
            return S.ENumber(-inner.value, f"-{inner.text}", span=_span(c[0], inner))
        return S.EUnary("-", inner, span=_span(c[0], inner))

    def complement(self, c: Children) -> S.EUnary:
        return S.EUnary("~", c[1], span=_span(c[0], c[1]))

    def chain(self, c: Children) -> S.ECompare:
        return S.ECompare(tuple(t.value for t in c[1::2]), tuple(c[::2]), span=_span(c[0], c[-1]))

    def index(self, c: Children) -> S.EIndex:
        return S.EIndex(c[0], c[1], span=_span(c[0], c[1]))

    def name(self, c: Children) -> S.EName:
        return S.EName(c[0].value, span=c[0].span)

    def number(self, c: Children) -> S.ENumber:
        return S.ENumber(_number(c[0]), c[0].value, span=c[0].span)

    def none(self, c: Children) -> S.ENone:
        return S.ENone()

    def call(self, c: Children) -> S.ECall:
        return S.ECall(c[0].value, tuple(c[1]), span=_span(c[0], _end(c[1], c[0])))

    def struct_call(self, c: Children) -> S.EStruct:
        return S.EStruct(c[0].value, tuple(c[1]), span=c[0].span)

    def operands(self, c: Children) -> _Args:
        return _Args(i.value if isinstance(i, _Loop) else i for i in c)

    def spread(self, c: Children) -> S.ESpread:
        return S.ESpread(c[0], span=c[0].span)

    def struct_field(self, c: Children) -> tuple[str, S.Expr]:
        return c[0].value, c[1] if len(c) > 1 else S.EName(c[0].value, span=c[0].span)

    def list(self, c: Children) -> S.EList | S.EComprehension:
        items = [i for i in c if not isinstance(i, Tok)]
        span = _span(c[0], c[-1])
        if len(items) == 1 and isinstance(items[0], _Loop):
            e = items[0].value
            return S.EComprehension(e.body, e.names, e.sequence, e.condition, span=span)
        for i in items:
            if isinstance(i, _Loop):
                raise Mistake("a comprehension stands alone in its brackets", i.value)
        return S.EList(tuple(items), span=span)

    def comprehension(self, c: Children) -> _Loop:
        condition = c.pop().value if isinstance(c[-1], _Contract) else None
        return _Loop(S.EComprehension(c[0], c[1], c[2], condition, span=_span(c[0], c[2])))

    def condition(self, c: Children) -> Any:
        return _Contract("if", c[0])

    def range(self, c: Children) -> S.ERange:
        return S.ERange(c[0], c[-1], False, span=_span(c[0], c[-1]))

    def range_inclusive(self, c: Children) -> S.ERange:
        return S.ERange(c[0], c[-1], True, span=_span(c[0], c[-1]))


class _Head:
    """`dialect NAME` or `helpers "module"`."""

    __slots__ = ("kind", "span", "value")

    def __init__(self, kind: str, value: str, span: S.Span) -> None:
        self.kind, self.value, self.span = kind, value, span


class _Group:
    __slots__ = ("externs", "group")

    def __init__(self, group: S.Group, externs: tuple[S.Extern, ...]) -> None:
        self.group, self.externs = group, externs


class _Loop:
    """A comprehension without brackets of its own: it fills those of a list, of which `[E for x in xs]` can be an item."""

    __slots__ = ("value",)

    def __init__(self, value: S.EComprehension) -> None:
        self.value = value


class _Contract:
    """An expression marked by the keyword in front of it."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: S.Expr) -> None:
        self.kind, self.value = kind, value


def split_example(text: str) -> tuple[str, str]:
    """The two sides of an example's raw text, without comments; white space becomes one blank, or none at the start of a line in
    brackets.
    """
    sides: list[str] = [""]
    depth = 0
    for m in EXAMPLE_PART.finditer(text):
        part = m.group()
        depth += (part in OPEN) - (part in OPEN.values())
        if part == "~>" and depth == 0 and len(sides) == 1:
            sides.append("")
        elif part[0] == "\n" and sides[-1].rstrip().endswith(("(", "[")):
            sides[-1] = sides[-1].rstrip()
        elif part[0] != "#":
            sides[-1] += part
    source, result = (" ".join(s.split()) for s in sides)
    return source, result
