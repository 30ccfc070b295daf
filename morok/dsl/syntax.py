"""The syntax tree of `.rules` files, made by the parser and printed by the formatter.

Every node has a `span`, which takes no part in comparisons, so that two rules with the same text anywhere are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a piece of text; lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


NOWHERE = Span("", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Syntax:
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# dtype constraints: `x: int`, `x: !float`, `x: (i32 | i64)`, `x: index?`, `x: f32x4`, `x: T x n`, `x: ptr(T)`


class TypeSyntax(Syntax):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TName(TypeSyntax):
    """A dtype, a class, or (when neither) a dtype variable."""

    name: str


@dataclass(frozen=True, slots=True)
class TNot(TypeSyntax):
    inner: TypeSyntax


@dataclass(frozen=True, slots=True)
class TUnion(TypeSyntax):
    options: tuple[TypeSyntax, ...]


@dataclass(frozen=True, slots=True)
class TMaybeInvalid(TypeSyntax):
    """`index?`"""

    inner: TypeSyntax


@dataclass(frozen=True, slots=True)
class TVector(TypeSyntax):
    """`f32x4` and `T x n`: `lanes` is a number or a name."""

    element: TypeSyntax
    lanes: int | str


@dataclass(frozen=True, slots=True)
class TPointer(TypeSyntax):
    base: TypeSyntax


# patterns


class Pattern(Syntax):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PVar(Pattern):
    """`x`, `x: int`; a name that begins with `_` is matched and not bound."""

    name: str
    type: TypeSyntax | None = None

    @property
    def ignored(self) -> bool:
        return self.name.startswith("_")


@dataclass(frozen=True, slots=True)
class PConst(Pattern):
    """`@zero @one @true @false @const @const(v) @vconst(vs) @anyconst(vs)`; `name` binds the value."""

    kind: str
    name: str | None = None
    type: TypeSyntax | None = None

    @property
    def bound(self) -> str | None:
        """The name that binds the value; None for one that begins with `_`."""
        return None if self.name is None or self.name.startswith("_") else self.name


@dataclass(frozen=True, slots=True)
class PLiteral(Pattern):
    """A number or a bool as a pattern; `text` keeps how it was written, and alone decides equality (nan is not equal to nan)."""

    value: int | float | bool = field(compare=False)
    text: str


@dataclass(frozen=True, slots=True)
class PBind(Pattern):
    """`name @ PATTERN` (and `c @const(v)`, which is the same thing)."""

    name: str
    inner: Pattern

    @property
    def ignored(self) -> bool:
        return self.name.startswith("_")


@dataclass(frozen=True, slots=True)
class POp(Pattern):
    """`Sub(x, y)` ordered, `Add[x, y]` commutative; `ops` has several names for `(Add | Mul)(x, y)`.

    A name may be a `for` variable until templates are expanded. Arguments: patterns, at most two of them a PSequence; for Cast a
    PType; for ops with fields after the operands an expression (`Gep(x, [i])`).
    """

    ops: tuple[str, ...]
    args: tuple[Pattern, ...]
    commutative: bool = False
    type: TypeSyntax | None = None


@dataclass(frozen=True, slots=True)
class PSequence(Pattern):
    """`xs..`: all remaining operands, except one for each pattern behind it."""

    name: str
    type: TypeSyntax | None = None


@dataclass(frozen=True, slots=True)
class PType(Pattern):
    """A dtype in operand position: the `B` of `Cast(x: A, B)`."""

    type: TypeSyntax


@dataclass(frozen=True, slots=True)
class PField(Syntax):
    """`name: value` in a struct pattern: a pattern for an operand, an expression for a static field, `None`, `Some(p)`.

    The parser cannot tell operands from static fields and makes patterns of both; the checker makes expressions of the latter.

    `value` is None for `field` alone, which binds it under its own name.
    """

    name: str
    value: Pattern | Expr | PSome | PNone | None


@dataclass(frozen=True, slots=True)
class PSome(Syntax):
    inner: Pattern


@dataclass(frozen=True, slots=True)
class PNone(Syntax):
    pass


@dataclass(frozen=True, slots=True)
class PStruct(Pattern):
    """`Reduce { src, ranges: rs, op: Add, .. }`; `rest` when `..` ends it."""

    op: str
    fields: tuple[PField, ...]
    rest: bool


@dataclass(frozen=True, slots=True)
class PAlternatives(Pattern):
    options: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class PExpr(Pattern):
    """A static field in argument position of an ordered pattern, for tools that build rules; parsing makes none."""

    value: Expr


@dataclass(frozen=True, slots=True)
class PList(Pattern):
    """`ranges: [r, rest..]` in a struct pattern: exactly these operands.

    As a static field (the `[0, i]` of `Gep(x, [0, i])`) the parser makes one too; the checker turns that into an EList.
    """

    items: tuple[Pattern, ...]


# expressions: guards, `let`, targets


class Expr(Syntax):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class EName(Expr):
    name: str


@dataclass(frozen=True, slots=True)
class ENumber(Expr):
    value: int | float | bool = field(compare=False)
    text: str


@dataclass(frozen=True, slots=True)
class EUnary(Expr):
    """`op` is "-", "~" or "not"."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class EBinary(Expr):
    """`op` is one of + - * // % & | ^ << >> and or."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class ECompare(Expr):
    """A chain: `0 <= a < b` has two ops and three operands."""

    ops: tuple[str, ...]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ECall(Expr):
    """A fact, a function, a helper, or an op that builds a node: which one, the checker decides by name."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class EStruct(Expr):
    """`Reduce { src: x, ranges: rs, op: Add }` as a target."""

    op: str
    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class EIndex(Expr):
    """`xs[i]`"""

    sequence: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class EList(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ESpread(Expr):
    """`xs..` among the operands of a target."""

    sequence: Expr


@dataclass(frozen=True, slots=True)
class ERange(Expr):
    """`a..b`, or `a..=b` when `inclusive`."""

    start: Expr
    stop: Expr
    inclusive: bool


@dataclass(frozen=True, slots=True)
class EComprehension(Expr):
    """`body for names in sequence if condition`, inside brackets or as the only operand of an op."""

    body: Expr
    names: tuple[str, ...]
    sequence: Expr
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class EType(Expr):
    """A dtype in an expression: `Cast(x, i32)`, `const(0, T)`, `is_int(T)`."""

    type: TypeSyntax


@dataclass(frozen=True, slots=True)
class ENone(Expr):
    """`None` for an optional operand of a struct target; `Some(e)` is written as `e`."""


# clauses, rules, files


@dataclass(frozen=True, slots=True)
class If(Syntax):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Let(Syntax):
    """`let a = e`, or `let (q, r) = helper(x)`: one binding; `let a = .., b = ..` parses to two."""

    names: tuple[str, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Example(Syntax):
    """`example EXPR ~> EXPR`, in expression text (morok.ir.text for the built-in dialect), kept as written."""

    source: str
    result: str


@dataclass(frozen=True, slots=True)
class Rule(Syntax):
    """One rule; `partial` when written with `=>`; `within`: how many ulp the target's value may be off (None: it is exact)."""

    name: str
    pattern: Pattern
    clauses: tuple[If | Let, ...]
    target: Expr
    partial: bool = False
    assuming: tuple[str, ...] = ()
    doc: str = ""
    examples: tuple[Example, ...] = ()
    comments: tuple[str, ...] = field(default=(), compare=False)
    within: float | None = None


@dataclass(frozen=True, slots=True)
class Template(Syntax):
    """`for op in binary [Add, Sub] { rules }`; `ops` is empty for `[*]`."""

    variable: str
    kind: str
    ops: tuple[str, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Param(Syntax):
    """`n: index` in an extern: a dtype (a node of it), or one of const, bool, int, dtype, seq (compile-time values)."""

    name: str
    type: TypeSyntax


@dataclass(frozen=True, slots=True)
class Extern(Syntax):
    """`extern f(n: index, d: const) -> (q: index, r: index)? requires E ensures E`; `partial` for `?`."""

    name: str
    params: tuple[Param, ...]
    results: tuple[Param, ...]
    partial: bool
    requires: tuple[Expr, ...] = ()
    ensures: tuple[Expr, ...] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Ends(Syntax):
    """`@ends lean, sort "reason"`: these rules terminate for this reason, though no measure shows it."""

    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Group(Syntax):
    name: str
    doc: str
    context: str | None
    items: tuple[Rule | Template, ...]
    ends: tuple[Ends, ...] = ()


@dataclass(frozen=True, slots=True)
class File(Syntax):
    path: str
    dialect: str
    helpers: str | None
    externs: tuple[Extern, ...]
    groups: tuple[Group, ...]


def walk(*trees: Any) -> Iterator[Any]:
    """Every syntax node of these trees, in no particular order."""
    todo = list(trees)
    while todo:
        at = todo.pop()
        yield at
        todo += children(at)


def ops_matched(p: Syntax) -> tuple[str, ...]:
    """The op of a part of a pattern, or those of which it may be any."""
    return p.ops if isinstance(p, POp) else (p.op,) if isinstance(p, PStruct) else ()


def ops_at(at: Syntax) -> tuple[str, ...]:
    """The ops of a part of a pattern, or the op of an expression: what is called may also be a function."""
    return (at.name,) if isinstance(at, ECall) else (at.op,) if isinstance(at, EStruct) else ops_matched(at)


def ops_named(*trees: Any) -> frozenset[str]:
    """The ops, and functions, that parts of a rule name."""
    return frozenset(op for at in walk(*trees) for op in ops_at(at))


def children(node: Any) -> list[Any]:
    """The syntax nodes directly below `node`, in the order in which they were written."""
    found: list[Any] = []
    for name in _parts_of(node.__class__):
        value = getattr(node, name)
        if isinstance(value, Syntax):
            found.append(value)
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Syntax):
                    found.append(item)
                elif isinstance(item, tuple):  # EStruct's (name, expression) pairs
                    found.extend(i for i in item if isinstance(i, Syntax))
    return found


_parts: dict[type[Syntax], tuple[str, ...]] = {}


def _parts_of(kind: type[Syntax]) -> tuple[str, ...]:
    """The fields of a syntax node that may hold syntax nodes: all but its place."""
    found = _parts.get(kind)
    if found is None:
        found = _parts[kind] = tuple(f.name for f in fields(kind) if f.name != "span")
    return found
