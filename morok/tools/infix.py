"""Terms in infix notation: `a <= b and f(a) == c`, with the labels of the unknowns."""

from __future__ import annotations

from typing import Final

from morok.prove.smt.terms import Expr
from morok.prove.symbol import Symbol

_INFIX: Final = {  # operator -> (precedence, its text)
    "=>": (1, " implies "),
    "or": (2, " or "),
    "and": (3, " and "),
    "=": (5, " == "),
    "distinct": (5, " != "),
    "<=": (5, " <= "),
    "<": (5, " < "),
    ">=": (5, " >= "),
    ">": (5, " > "),
    "+": (6, " + "),
    "-": (6, " - "),
    "*": (7, " * "),
}
# functions of the prover's that operators stand for
_OF_NUMBERS: Final = {"times": " * ", "quotient": " // ", "remainder": " % "}
_NOT: Final = 4
_ATOM: Final = 9
_OPPOSITE: Final = {"=": " != ", "<": " >= ", "<=": " > ", ">": " <= ", ">=": " < "}


def infix(e: Expr) -> str:
    """A term in infix notation; `true` is dropped from conjunctions."""
    return _text(e)[1]


def conjuncts(e: Expr) -> list[str]:
    """The parts of a conjunction, in infix notation."""
    return [infix(a) for a in e.args if not _is_true(a)] or [infix(e)] if e.head == "and" else [infix(e)]


def _text(e: Expr) -> tuple[int, str]:
    """(precedence, text) of a term."""
    if e.head == "not":
        inner = e.args[0]
        if inner.head in _OPPOSITE:
            return 5, _joined(inner, 5, _OPPOSITE[inner.head])
        return _NOT, f"not {_within(inner, _NOT)}"
    if e.head == "and":
        args = [a for a in e.args if not _is_true(a)]
        if len(args) < 2:
            return _text(args[0]) if args else (_ATOM, "true")
        return 3, " and ".join(_conjuncts(args))
    if e.head == "=>" and _is_true(e.args[0]):
        return _text(e.args[1])
    if e.head in _INFIX and len(e.args) > 1:
        binds, word = _INFIX[e.head]
        return binds, _joined(e, binds, word)
    if e.head == "ite" and _is_true(e.args[0]):
        return _text(e.args[1])
    if e.head == "ite":
        condition, yes, no = (_within(a, 1) for a in e.args)
        return 0, f"{yes} if {condition} else {no}"
    if e.head in ("const", "apply"):
        name = e.data if e.head == "const" else e.data.name
        operator = _OF_NUMBERS.get(name.label) if isinstance(name, Symbol) and name.kind == "function" else None
        if operator is not None and len(e.args) == 2:
            return 7, f"{_within(e.args[0], 7)}{operator}{_within(e.args[1], 8)}"
        head = _named(name)
        return _ATOM, f"{head}({', '.join(infix(a) for a in e.args)})" if e.args else head
    if e.head == "value":
        return _ATOM, str(e.data).lower() if isinstance(e.data, bool) else str(e.data)
    return _ATOM, f"{e.head}({', '.join(infix(a) for a in e.args)})"


def _named(name: object) -> str:
    """The name of an unknown: of the number of lanes, or of items, what a rule writes for it."""
    match name:
        case Symbol(kind="lanes", parts=(of,)):
            return f"lanes({of.label if isinstance(of, Symbol) else of})"
        case Symbol(kind="item", parts=(Symbol() as of, "length")):
            return f"len({of.label})"
        case Symbol(kind="fresh", parts=(str(what), _)) if what.endswith(" length"):
            return f"len({what.removesuffix(' length')})"
        case Symbol():
            return name.label.replace(" ", "_")
    return str(name).replace(" ", "_")


def _joined(e: Expr, binds: int, word: str) -> str:
    return word.join(
        _within(a, binds + 1 if binds in (1, 5) or (word == " - " and k) else binds) for k, a in enumerate(e.args)
    )


def _conjuncts(args: list[Expr]) -> list[str]:
    """The texts of the parts of a conjunction, with `a <= b and b < c` joined to `a <= b < c`."""
    out: list[str] = []
    before: Expr | None = None
    for a in args:
        if before is not None and a.head in ("<", "<=") and before.head in ("<", "<=") and before.args[1] is a.args[0]:
            out[-1] += f"{_INFIX[a.head][1]}{_within(a.args[1], 6)}"
        else:
            out.append(_within(a, 3))
        before = a
    return out


def _within(e: Expr, least: int) -> str:
    binds, text = _text(e)
    return text if binds >= least else f"({text})"


def _is_true(e: Expr) -> bool:
    """True if a term is `true`, or a conjunction of such terms."""
    return (e.head == "value" and e.data is True) or (e.head == "and" and all(_is_true(a) for a in e.args))
