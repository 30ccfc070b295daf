"""Terms as SMT-LIB 2.6, and the values that a solver prints as numerals.

Unknowns, functions and sorts are numbered in the order in which they are met, so that the text of a question does not depend on
names, and is the same in every process. What occurs more than once is defined once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from morok.prove.smt.ieee import Format
from morok.prove.smt.sorts import Sort
from morok.prove.smt.terms import Applicable, Expr

LONGEST: Final = 400  # characters of a term that is written where it occurs

_INDEXED: Final = {
    "extract": lambda e: f"(_ extract {e.data[0]} {e.data[1]})",
    "zero_extend": lambda e: f"(_ zero_extend {e.data})",
    "sign_extend": lambda e: f"(_ sign_extend {e.data})",
    "rotate_left": lambda e: f"(_ rotate_left {e.data})",
    "to_fp": lambda e: f"(_ to_fp {e.sort.exponent} {e.sort.significand})" + (f" {e.data}" if e.data else ""),
    "to_fp_unsigned": lambda e: f"(_ to_fp_unsigned {e.sort.exponent} {e.sort.significand}) {e.data}",
    "fp.to_sbv": lambda e: f"(_ fp.to_sbv {e.sort.width}) {e.data}",
    "fp.to_ubv": lambda e: f"(_ fp.to_ubv {e.sort.width}) {e.data}",
}  # fmt: skip


def number(e: Expr) -> str:
    """A numeral as SMT-LIB writes it."""
    v, kind = e.data, e.sort.kind
    if kind == "Bool":
        return "true" if v else "false"
    if kind == "Int":
        return str(v) if v >= 0 else f"(- {-v})"
    if kind == "Real":
        size = f"{abs(v.numerator)}.0" if v.denominator == 1 else f"(/ {abs(v.numerator)}.0 {v.denominator}.0)"
        return size if v >= 0 else f"(- {size})"
    if kind == "BitVec":
        return f"(_ bv{v} {e.sort.width})"
    form, size = Format(e.sort.exponent, e.sort.significand), f"{e.sort.exponent} {e.sort.significand}"
    if form.is_nan(v):
        return f"(_ NaN {size})"
    sign = "-" if form.negative(v) else "+"
    if form.is_infinite(v):
        return f"(_ {sign}oo {size})"
    if form.is_zero(v):
        return f"(_ {sign}zero {size})"
    bits = f"{v:0{e.sort.width}b}"
    return f"(fp #b{bits[0]} #b{bits[1 : e.sort.exponent + 1]} #b{bits[e.sort.exponent + 1 :]})"


def _applied(e: Expr, called: str, operands: Sequence[str]) -> str:
    indexed = _INDEXED.get(e.head)
    if indexed is not None:
        called = indexed(e)
    elif e.data is not None and e.head != "apply":
        called = f"{e.head} {e.data}"  # a rounding mode
    return f"({called} {' '.join(operands)})"


class Script:
    """A script for a solver, written piece by piece.

    names       what unknowns and functions are called, by identity; the script keeps them
    declared    the unknowns and functions, in the order of their numbers
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.declared: list[Expr | Applicable] = []
        self._sorts: dict[str, str] = {}
        self._texts: dict[int, str] = {}  # of terms that are defined or leaves
        self._roots: list[Sequence[Expr]] = []  # alive for as long as their identities are used
        self._defined = 0

    def conditions(self, conditions: Sequence[Expr]) -> tuple[list[str], list[str]]:
        """(declarations and definitions, a text for each condition)"""
        self._roots.append(conditions)
        before: list[str] = []
        texts = self._texts
        local: dict[int, str] = {}
        for at, shared in _in_order(conditions, texts):
            if not at.args:
                texts[id(at)] = number(at) if at.head == "value" else self._unknown(at, before)
                continue
            called = self._function(at.data, before) if at.head == "apply" else at.head
            text = _applied(at, called, [texts.get(id(a)) or local[id(a)] for a in at.args])
            if shared or len(text) > LONGEST:
                name = f"$t{self._defined}"
                self._defined += 1
                before.append(f"(define-fun {name} () {self.sort(at.sort, before)} {text})")
                texts[id(at)] = name
            else:
                local[id(at)] = text
        return before, [texts.get(id(c)) or local[id(c)] for c in conditions]

    def sort(self, sort: Sort, before: list[str]) -> str:
        if sort.kind != "Uninterpreted":
            return sort.text
        found = self._sorts.get(sort.text)
        if found is None:
            found = self._sorts[sort.text] = f"%s{len(self._sorts)}"
            before.append(f"(declare-sort {found} 0)")
        return found

    def _unknown(self, e: Expr, before: list[str]) -> str:
        return self.names.get(id(e)) or self._declare(e, (), e.sort, before)

    def _function(self, f: Applicable, before: list[str]) -> str:
        return self.names.get(id(f)) or self._declare(f, f.domain, f.range, before)

    def _declare(self, what: Expr | Applicable, domain: Sequence[Sort], result: Sort, before: list[str]) -> str:
        of = " ".join([self.sort(s, before) for s in domain])
        to = self.sort(result, before)
        name = self.names[id(what)] = f"%{len(self.declared)}"
        self.declared.append(what)
        before.append(f"(declare-fun {name} ({of}) {to})")
        return name


def _in_order(roots: Sequence[Expr], known: dict[int, str]) -> Iterator[tuple[Expr, bool]]:
    """The terms below, operands first, each once, and whether it occurs more than once; none that is `known`."""
    uses: dict[int, int] = {}
    order: list[Expr] = []
    todo: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while todo:
        at, ready = todo.pop()
        if ready:
            order.append(at)
            continue
        key = id(at)
        if key in uses:
            uses[key] += 1
            continue
        if key in known:
            continue
        uses[key] = 1
        todo.append((at, True))
        todo.extend([(a, False) for a in reversed(at.args)])
    for at in order:
        yield at, uses[id(at)] > 1


def question(conditions: Sequence[Expr]) -> tuple[str, Script]:
    """The script that asserts conditions, without the command that asks, and its names."""
    script = Script()
    before, asserted = script.conditions(conditions)
    return "\n".join([*before, *(f"(assert {c})" for c in asserted)]) + "\n", script


def legend(script: Script) -> str:
    """The names of the unknowns and functions of a script, for people, as comments."""
    lines = [f"; %{i} {d.data if isinstance(d, Expr) else d.name}" for i, d in enumerate(script.declared)]
    return "".join(line.replace("\n", " ") + "\n" for line in lines)


# What a solver prints

_TOKEN: Final = re.compile(r"[()]|\|[^|]*\||[^\s()]+")
Parsed = str | list[Any]


class Unreadable(ValueError):
    """A value that a solver prints in a way that nobody here reads."""


def parsed(text: str) -> Parsed:
    """An S-expression as nested lists of tokens."""
    stack: list[list[Any]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise Unreadable(text)
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise Unreadable(text)
    found: Parsed = stack[0][0]
    return found


def value(text: str, sort: Sort) -> Any:
    """A value as a solver prints it: what `Expr.value` of its numeral is; its name where the sort is uninterpreted."""
    read: dict[str, Callable[[Parsed, Sort], Any]] = {
        "Bool": lambda v, _: {"true": True, "false": False}[str(v)],
        "Int": lambda v, _: _integer(v),
        "Real": lambda v, _: _real(v),
        "BitVec": lambda v, _: _pattern(v),
        "Float": _float,
        "Uninterpreted": lambda v, _: v if isinstance(v, str) else str(v[1]),
    }
    try:
        return read[sort.kind](parsed(text), sort)
    except (KeyError, IndexError, ValueError, TypeError) as why:
        raise Unreadable(f"{text!r} as a value of {sort}") from why


def _integer(v: Parsed) -> int:
    return int(v) if isinstance(v, str) else -_integer(v[1])


def _real(v: Parsed) -> Fraction:
    if isinstance(v, str):
        return Fraction(v.removesuffix("?"))
    first, *rest = map(_real, v[1:])
    return first / rest[0] if v[0] == "/" else -first


def _pattern(v: Parsed) -> int:
    if isinstance(v, list):
        return int(v[1].removeprefix("bv"))
    return int(v[2:], 16 if v.startswith("#x") else 2)


def _float(v: Parsed, sort: Sort) -> int:
    form = Format(sort.exponent, sort.significand)
    if v[0] == "fp":
        sign, exponent, rest = map(_pattern, v[1:])
        return form.canonical((sign << sort.exponent | exponent) << (sort.significand - 1) | rest)
    if v[1] == "NaN":
        return form.nan
    negative = v[1].startswith("-")
    return form.infinity(negative) if v[1].endswith("oo") else form.zero(negative)
