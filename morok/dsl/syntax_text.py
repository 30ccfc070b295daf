"""Syntax trees back to text, on one line each: patterns, dtype constraints, expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.dsl import syntax as S

_LEVELS: Final = {
    "or": 1, "and": 2, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "//": 10, "%": 10,
}  # fmt: skip
_NOT, _COMPARE, _UNARY, _ATOM = 3, 4, 11, 12


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# dtype constraints


def type_text(t: S.TypeSyntax) -> str:
    match t:
        case S.TName():
            return t.name
        case S.TNot():
            return f"!{_atomic(t.inner)}"
        case S.TUnion():
            return f"({' | '.join(type_text(o) for o in t.options)})"
        case S.TMaybeInvalid():
            return f"{type_text(t.inner)}?"
        case S.TVector():
            return f"{_atomic(t.element)} x {t.lanes}"
        case S.TPointer():
            return f"ptr({type_text(t.base)})"
    raise AssertionError(f"{type(t).__name__} is no dtype constraint")


def _atomic(t: S.TypeSyntax) -> str:
    return f"({type_text(t)})" if isinstance(t, S.TVector) else type_text(t)


def _typed(text: str, t: S.TypeSyntax | None) -> str:
    return text if t is None else f"{text}: {type_text(t)}"


# patterns


def pattern_text(p: S.Pattern) -> str:
    match p:
        case S.PVar():
            return _typed(p.name, p.type)
        case S.PConst():
            return _typed(f"@{p.kind}" + (f"({p.name})" if p.name is not None else ""), p.type)
        case S.PLiteral():
            return p.text
        case S.PBind():
            inner = _bracketed(p.inner)
            return f"{p.name} {inner}" if isinstance(p.inner, S.PConst) else f"{p.name} @ {inner}"
        case S.POp():
            args = ", ".join(pattern_text(a) for a in p.args)
            return _typed(f"{op_names(p)}{'[' if p.commutative else '('}{args}{']' if p.commutative else ')'}", p.type)
        case S.PSequence():
            return _typed(f"{p.name}..", p.type)
        case S.PType():
            return type_text(p.type)
        case S.PStruct():
            fields = struct_fields(p)
            return f"{p.op} {{ {', '.join(fields)} }}" if fields else f"{p.op} {{}}"
        case S.PAlternatives():
            return " | ".join(_bracketed(o) for o in p.options)
        case S.PExpr():
            return expr_text(p.value)
        case S.PList():
            return f"[{', '.join(pattern_text(i) for i in p.items)}]"
    raise AssertionError(f"{type(p).__name__} is no pattern")


def _bracketed(p: S.Pattern) -> str:
    return f"({pattern_text(p)})" if isinstance(p, S.PAlternatives) else pattern_text(p)


def op_names(p: S.POp) -> str:
    return p.ops[0] if len(p.ops) == 1 else f"({' | '.join(p.ops)})"


def struct_fields(p: S.PStruct) -> list[str]:
    return [_field(f) for f in p.fields] + ([".."] if p.rest else [])


def _field(f: S.PField) -> str:
    match f.value:
        case None:
            return f.name
        case S.PNone():
            return f"{f.name}: None"
        case S.PSome():
            return f"{f.name}: Some({pattern_text(f.value.inner)})"
        case S.Pattern():
            return f"{f.name}: {pattern_text(f.value)}"
        case S.Expr():
            return f"{f.name}: {expr_text(f.value)}"


# expressions


def expr_text(e: S.Expr, level: int = 0) -> str:
    """The text of `e`, in brackets where its surroundings bind tighter than `level`."""
    text, own = _expr(e)
    return f"({text})" if own < level else text


def _expr(e: S.Expr) -> tuple[str, int]:
    match e:
        case S.EName():
            return e.name, _ATOM
        case S.ENumber():
            return e.text, _UNARY if e.text.startswith("-") else _ATOM
        case S.EUnary():
            own = _NOT if e.op == "not" else _UNARY
            return f"{e.op}{' ' if e.op == 'not' else ''}{expr_text(e.operand, own)}", own
        case S.EBinary():
            own = _LEVELS[e.op]
            left, right = own, own + 1
            if e.op in ("<<", ">>", "&", "^", "|"):  # nobody knows by heart how these bind
                left = own if isinstance(e.left, S.EBinary) and e.left.op == e.op else _UNARY
                right = _UNARY
            return f"{expr_text(e.left, left)} {e.op} {expr_text(e.right, right)}", own
        case S.ECompare():
            parts = [expr_text(e.operands[0], _COMPARE + 1)]
            for op, operand in zip(e.ops, e.operands[1:], strict=True):
                parts += [op, expr_text(operand, _COMPARE + 1)]
            return " ".join(parts), _COMPARE
        case S.ECall():
            return f"{e.name}({', '.join(call_arguments(e))})", _ATOM
        case S.EStruct():
            fields = struct_arguments(e)
            return (f"{e.op} {{ {', '.join(fields)} }}" if fields else f"{e.op} {{}}"), _ATOM
        case S.EIndex():
            return f"{expr_text(e.sequence, _ATOM)}[{expr_text(e.index)}]", _ATOM
        case S.EList():
            return f"[{', '.join(_operand(i) for i in e.items)}]", _ATOM
        case S.ESpread():
            return f"{expr_text(e.sequence)}..", 0
        case S.ERange():
            return f"{expr_text(e.start)}{'..=' if e.inclusive else '..'}{expr_text(e.stop)}", 0
        case S.EComprehension():
            return f"[{comprehension_text(e)}]", _ATOM
        case S.EType():
            return type_text(e.type), _ATOM
        case S.ENone():
            return "None", _ATOM
    raise AssertionError(f"{type(e).__name__} is no expression")


def comprehension_text(e: S.EComprehension) -> str:
    condition = "" if e.condition is None else f" if {expr_text(e.condition)}"
    return f"{expr_text(e.body)} for {', '.join(e.names)} in {expr_text(e.sequence)}{condition}"


def _operand(e: S.Expr) -> str:
    return expr_text(e)


def call_arguments(e: S.ECall) -> list[str]:
    if len(e.args) == 1 and isinstance(e.args[0], S.EComprehension):
        return [comprehension_text(e.args[0])]
    return [_operand(a) for a in e.args]


def struct_arguments(e: S.EStruct) -> list[str]:
    return [n if isinstance(v, S.EName) and v.name == n else f"{n}: {expr_text(v)}" for n, v in e.fields]


# clauses


def clause_texts(clauses: Sequence[S.If | S.Let]) -> list[str]:
    """`if E`, `let a = E, b = E`: neighbouring bindings stand behind one `let`."""
    out: list[str] = []
    for i, c in enumerate(clauses):
        if isinstance(c, S.If):
            out.append(f"if {expr_text(c.condition)}")
            continue
        names = c.names[0] if len(c.names) == 1 else f"({', '.join(c.names)})"
        binding = f"{names} = {expr_text(c.value)}"
        if i and isinstance(clauses[i - 1], S.Let):
            out[-1] += f", {binding}"
        else:
            out.append(f"let {binding}")
    return out


def signature(e: S.Extern) -> str:
    def params(ps: Sequence[S.Param]) -> str:
        return f"({', '.join(f'{p.name}: {type_text(p.type)}' for p in ps)})"

    return f"extern {e.name}{params(e.params)} -> {params(e.results)}{'?' if e.partial else ''}"


__all__ = [
    "call_arguments", "clause_texts", "comprehension_text", "expr_text", "op_names", "pattern_text", "quote", "signature",
    "struct_arguments", "struct_fields", "type_text",
]  # fmt: skip
