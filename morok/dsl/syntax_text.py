"""Syntax trees back to text: patterns, dtype constraints, expressions and clauses as documents of the pretty printer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.layout import STEP, Brackets, Chain, Doc, flat
from morok.dsl.lexer import MAX_DEPTH

_LEVELS: Final = {
    "or": 1, "and": 2, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "//": 10, "%": 10,
}  # fmt: skip
_NOT, _COMPARE, _UNARY, _ATOM = 3, 4, 11, 12


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# lists and concatenation


def beside(*docs: Doc) -> Doc:
    return "".join(map(flat, docs)) if all(isinstance(d, str) for d in docs) else docs


def separated(items: Sequence[Doc]) -> tuple[Doc, ...]:
    """The items with a comma behind each but the last."""
    return (*(beside(i, ",") for i in items[:-1]), *items[-1:])


def listed(opening: str, items: Sequence[Doc], closing: str) -> Doc:
    return _rows(opening, separated(items), closing)


def _rows(opening: str, items: tuple[Doc, ...], closing: str) -> Doc:
    """Items in brackets, with the commas between them; names and numbers alone stand many on a line."""
    if not items:
        return opening + closing
    words = all(isinstance(i, str) and " " not in i for i in items)
    return Brackets(opening, (chain(items, step=0),) if words else items, closing)


def _braces(op: str, fields: Sequence[Doc]) -> Doc:
    return Brackets(f"{op} {{", separated(fields), " }", pad=" ") if fields else f"{op} {{}}"


def chain(parts: Sequence[Doc], fill: bool = True, step: int = STEP) -> Doc:
    return Chain(tuple(parts), fill, step) if len(parts) > 1 else parts[0]


def _operators(first: Doc, rest: Sequence[tuple[str, Doc]]) -> Doc:
    """`a op b op c`: lines begin with an operator."""
    return chain((first, *(beside(f"{op} ", d) for op, d in rest)))


# dtype constraints


def type_doc(t: S.TypeSyntax) -> Doc:
    match t:
        case S.TName():
            return t.name
        case S.TNot():
            return beside("!", _atomic(t.inner))
        case S.TUnion():
            first, *rest = t.options
            return beside("(", _operators(type_doc(first), [("|", type_doc(o)) for o in rest]), ")")
        case S.TMaybeInvalid():
            return beside(type_doc(t.inner), "?")
        case S.TVector():
            return beside(_atomic(t.element), f" x {t.lanes}")
        case S.TPointer():
            return Brackets("ptr(", (type_doc(t.base),), ")")
    raise AssertionError(f"{type(t).__name__} is no dtype constraint")


def _atomic(t: S.TypeSyntax) -> Doc:
    return beside("(", type_doc(t), ")") if isinstance(t, S.TVector) else type_doc(t)


def _typed(doc: Doc, t: S.TypeSyntax | None) -> Doc:
    return doc if t is None else beside(doc, ": ", type_doc(t))


# patterns


def pattern_doc(p: S.Pattern) -> Doc:
    match p:
        case S.PVar():
            return _typed(p.name, p.type)
        case S.PConst():
            return _typed(f"@{p.kind}" + (f"({p.name})" if p.name is not None else ""), p.type)
        case S.PLiteral():
            return p.text
        case S.PBind():
            return beside(p.name, " " if isinstance(p.inner, S.PConst) else " @ ", _enclosed(p.inner))
        case S.POp():
            brackets = "[]" if p.commutative else "()"
            args = [pattern_doc(a) for a in p.args]
            if len(p.ops) == 1:
                return _typed(listed(p.ops[0] + brackets[0], args, brackets[1]), p.type)
            ops = _operators(p.ops[0], [("|", o) for o in p.ops[1:]])
            return _typed(beside("(", ops, ")", listed(brackets[0], args, brackets[1])), p.type)
        case S.PSequence():
            return _typed(f"{p.name}..", p.type)
        case S.PType():
            return type_doc(p.type)
        case S.PStruct():
            return _braces(p.op, [_field(f) for f in p.fields] + [".."] * p.rest)
        case S.PAlternatives():
            return _operators(_enclosed(p.options[0]), [("|", _enclosed(o)) for o in p.options[1:]])
        case S.PExpr():
            return expr_doc(p.value)
        case S.PList():
            return listed("[", [pattern_doc(i) for i in p.items], "]")
    raise AssertionError(f"{type(p).__name__} is no pattern")


def _enclosed(p: S.Pattern) -> Doc:
    return beside("(", pattern_doc(p), ")") if isinstance(p, S.PAlternatives) else pattern_doc(p)


def _field(f: S.PField) -> Doc:
    match f.value:
        case None:
            return f.name
        case S.PNone():
            return f"{f.name}: None"
        case S.PSome():
            return Brackets(f"{f.name}: Some(", (pattern_doc(f.value.inner),), ")")
        case S.Pattern():
            return beside(f"{f.name}: ", pattern_doc(f.value))
        case S.Expr():
            return beside(f"{f.name}: ", expr_doc(f.value))


# expressions


def expr_text(e: S.Expr) -> str:
    return flat(expr_doc(e))


def expr_doc(e: S.Expr, level: int = 0) -> Doc:
    """The text of `e`, in brackets where its surroundings bind tighter than `level`."""
    doc, own = _expr(e)
    return beside("(", doc, ")") if own < level else doc


def _expr(e: S.Expr) -> tuple[Doc, int]:
    match e:
        case S.EName():
            return e.name, _ATOM
        case S.ENumber():
            return e.text, _UNARY if e.text.startswith("-") else _ATOM
        case S.EUnary():
            own = _NOT if e.op == "not" else _UNARY
            return beside(f"{e.op}{' ' if e.op == 'not' else ''}", expr_doc(e.operand, own)), own
        case S.EBinary():
            return _binary(e)
        case S.ECompare():
            first, *rest = (expr_doc(o, _COMPARE + 1) for o in e.operands)
            return _operators(first, list(zip(e.ops, rest, strict=True))), _COMPARE
        case S.ECall():
            args = e.args
            if len(args) == 1 and isinstance(args[0], S.EComprehension):
                return Brackets(f"{e.name}(", (_comprehension(args[0]),), ")"), _ATOM
            return listed(f"{e.name}(", [expr_doc(a) for a in args], ")"), _ATOM
        case S.EStruct():
            return _braces(e.op, [_argument(n, v) for n, v in e.fields]), _ATOM
        case S.EIndex():
            return beside(expr_doc(e.sequence, _ATOM), Brackets("[", (expr_doc(e.index),), "]")), _ATOM
        case S.EList():
            return listed("[", [expr_doc(i) for i in e.items], "]"), _ATOM
        case S.ESpread():
            return beside(expr_doc(e.sequence), ".."), 0
        case S.ERange():
            return beside(expr_doc(e.start), "..=" if e.inclusive else "..", expr_doc(e.stop)), 0
        case S.EComprehension():
            return Brackets("[", (_comprehension(e),), "]"), _ATOM
        case S.EType():
            return type_doc(e.type), _ATOM
        case S.ENone():
            return "None", _ATOM
    raise AssertionError(f"{type(e).__name__} is no expression")


def _binary(e: S.EBinary) -> tuple[Doc, int]:
    own = _LEVELS[e.op]
    unclear = e.op in ("<<", ">>", "&", "^", "|")  # readers do not remember how these bind: brackets show it
    rest: list[tuple[str, Doc]] = []
    at: S.Expr = e
    while isinstance(at, S.EBinary) and (at.op == e.op if unclear else _LEVELS[at.op] == own):
        rest.append((at.op, expr_doc(at.right, _UNARY if unclear else own + 1)))
        at = at.left
    return _operators(expr_doc(at, _UNARY if unclear else own), rest[::-1]), own


def _comprehension(e: S.EComprehension) -> Doc:
    *names, last = separated(e.names)
    loop = beside("for ", chain((*names, beside(last, " in ", expr_doc(e.sequence)))))
    condition = () if e.condition is None else (beside("if ", expr_doc(e.condition)),)
    return Chain((expr_doc(e.body), loop, *condition), step=0)


def _argument(name: str, value: S.Expr) -> Doc:
    return name if isinstance(value, S.EName) and value.name == name else beside(f"{name}: ", expr_doc(value))


# clauses


def clause_docs(clauses: Sequence[S.If | S.Let]) -> list[Doc]:
    """`if E`, `let a = E, b = E`: adjacent bindings share one `let`, and have a line each if they do not fit on one."""
    out: list[Doc] = []
    for bind, run in groupby(clauses, lambda c: isinstance(c, S.Let)):
        docs = [_clause(c) for c in run]
        if bind:
            first, *rest = separated(docs)
            docs = [chain((beside("let ", first), *rest), fill=False)]
        out += docs
    return out


def _clause(c: S.If | S.Let) -> Doc:
    if isinstance(c, S.If):
        return beside("if ", expr_doc(c.condition))
    return beside(c.names[0] if len(c.names) == 1 else listed("(", c.names, ")"), " = ", expr_doc(c.value))


def target_doc(r: S.Rule) -> Doc:
    """`~> E within N ulp assuming a, b`"""
    arrow = beside("=> " if r.partial else "~> ", expr_doc(r.target))
    within = () if r.within is None else (f"within {r.within:g} ulp",)
    assuming = (f"assuming {r.assuming[0]}", *r.assuming[1:]) if r.assuming else ()
    behind = (*within, *separated(assuming))
    return beside(arrow, Chain(("", *behind))) if behind else arrow


def signature_doc(e: S.Extern) -> Doc:
    def params(opening: str, ps: Sequence[S.Param]) -> Doc:
        return listed(opening, [_typed(p.name, p.type) for p in ps], ")")

    return Chain(
        (params(f"extern {e.name}(", e.params), beside("-> ", params("(", e.results), "?" if e.partial else ""))
    )


# examples


_OPENING: Final = ("(", "[")
_CLOSING: Final = (")", "]")
_EXAMPLE_PART: Final = re.compile(r'"[^"]*"|\w*[(\[]|[)\]]|\s|[^\s()\[\]"]+|"')


def example_doc(e: S.Example) -> Doc:
    """An example in the text of the file's dialect: its arrow may begin a line, and items in ( and [ have one each."""
    return Chain((beside("example ", _raw(e.source)), beside("~> ", _raw(e.result))))


def _raw(text: str) -> Doc:
    levels: list[list[Doc]] = [[]]  # the parts inside each open bracket
    deep, opened = "", 0  # text in brackets nested deeper than in any rule is left whole
    for part in _EXAMPLE_PART.findall(text):
        if opened or (part[-1] in _OPENING and len(levels) > MAX_DEPTH):
            deep += part
            opened += (part[-1] in _OPENING) - (part in _CLOSING)
            if not opened:
                levels[-1].append(deep)
                deep = ""
            continue
        if part in _CLOSING and len(levels) > 1:
            inside = levels.pop()
            opening = flat(levels[-1].pop())
            levels[-1].append(_rows(opening, _items(inside), part))
            continue
        levels[-1].append(part)
        if part[-1] in _OPENING:
            levels.append([])
    levels[-1] += [deep] if deep else []
    return beside(*(d for level in levels for d in level))  # more than one level if a bracket is never closed


def _items(parts: list[Doc]) -> tuple[Doc, ...]:
    """The items of brackets, cut behind each comma that a blank follows."""
    items: list[list[Doc]] = [[]]
    for part in parts:
        if part == " " and items[-1] and flat(items[-1][-1]).endswith(","):
            items.append([])
        else:
            items[-1].append(part)
    return tuple(beside(*i) for i in items if i)
