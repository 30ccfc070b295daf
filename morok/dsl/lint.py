"""Lint for `morok check --strict`: rules that are correct, but probably not intended. Uses no solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedFile, CheckedRule
from morok.dsl.parse import excerpt
from morok.dsl.syntax_text import expr_text
from morok.errors import (
    IdleRuleError,
    LintError,
    MissingDocError,
    MorokError,
    Place,
    SelfMatchingRuleError,
    ShadowedRuleError,
    UnusedNameError,
)


def lint(checked: CheckedFile) -> list[MorokError]:
    """Every finding in a file, in the order of its lines; each kind has an error class, and so a code, of its own."""
    findings: dict[tuple[type, int, str], MorokError] = {}
    for group in checked.groups:
        for rule, found in _group(group.rules):
            kind, message, span, hint = found
            key = (kind, span.line, message)  # a finding in a template is one finding
            if key not in findings:
                place = Place(rule.file, span.line, max(span.column, 1))
                width = span.end_column - span.column if span.end_line == span.line else 1
                findings[key] = kind(
                    message, place=place, excerpt=excerpt(checked.text, span.line, span.column, width), hint=hint
                )
    return sorted(findings.values(), key=lambda e: (e.place.line, e.place.column) if e.place else (0, 0))


Finding = tuple[type[LintError], str, S.Span, str]


def _group(rules: Iterable[CheckedRule]) -> Iterator[tuple[CheckedRule, Finding]]:
    earlier: dict[str, CheckedRule] = {}
    for rule in rules:
        for found in _rule(rule):
            yield rule, found
        pattern = _canonical(rule.syntax.pattern)
        above = earlier.get(pattern)
        if above is not None and set(rule.syntax.assuming) >= set(above.syntax.assuming):
            name = rule.name.rpartition(".")[2]
            message = f"`{name}` never applies: `{above.name}` (line {above.line}) matches the same and has no guard"
            yield rule, (ShadowedRuleError, message, rule.syntax.span, "put it first, or remove it")
        if above is None and not rule.syntax.clauses and not rule.syntax.partial:
            earlier[pattern] = rule


def _rule(rule: CheckedRule) -> Iterator[Finding]:
    syntax = rule.syntax
    if not syntax.doc and _several_lines(syntax):
        message = f"`{syntax.name}` has no doc string"
        yield MissingDocError, message, syntax.span, 'a rule of several lines says what it does: "..." below its target'
    used = _used(syntax)
    for node, name in _bound(syntax):
        if name not in used and not name.startswith("_"):
            yield UnusedNameError, f"`{name}` is bound and never used", node.span, f"write _{name}"
    same = _as_expression(syntax.pattern)
    if same is not None and same == expr_text(syntax.target):
        yield (
            IdleRuleError,
            f"`{syntax.name}` rewrites its pattern to itself",
            syntax.span,
            "it would never come to an end",
        )
    elif not syntax.clauses and _matches(rule, syntax.pattern, syntax.target, {}):
        yield (
            SelfMatchingRuleError,
            f"`{syntax.name}` applies to its own result, again and again",
            syntax.span,
            "add a guard that its target fails",
        )


def _several_lines(rule: S.Rule) -> bool:
    spans = [n.span for n in S.walk(rule.pattern, *rule.clauses, rule.target) if n.span.line]
    return len({rule.span.line, *(line for s in spans for line in (s.line, s.end_line))}) > 1


def in_order(root: S.Syntax) -> Iterator[Any]:
    """Every syntax node of a tree, in the order in which they were written."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(S.children(node))


def _bound(rule: S.Rule) -> Iterator[tuple[S.Syntax, str]]:
    """Names that the pattern and `let` bind, each once."""
    seen: set[str] = set()
    for root in (rule.pattern, *rule.clauses):
        for n in in_order(root):
            names: tuple[str, ...] = ()
            if isinstance(n, S.PVar | S.PBind | S.PSequence) or (isinstance(n, S.PConst) and n.name):
                names = (n.name or "",)
            elif isinstance(n, S.Let):
                names = n.names
            for name in names:
                if name not in seen:
                    seen.add(name)
                    yield n, name


def _used(rule: S.Rule) -> set[str]:
    """Names that clauses and target read, and names that the pattern binds twice."""
    used: set[str] = set()
    for root in (*rule.clauses, rule.target):
        for n in in_order(root):
            if isinstance(n, S.EName | S.ECall | S.TName):
                used.add(n.name)
            elif isinstance(n, S.TVector) and isinstance(n.lanes, str):
                used.add(n.lanes)
            elif isinstance(n, S.EStruct):
                used |= {v.name for _, v in n.fields if isinstance(v, S.EName)}
    used |= _repeated(rule.pattern)
    for n in in_order(rule.pattern):  # alternatives bind the same names on every side
        if isinstance(n, S.PAlternatives):
            for option in n.options[1:]:
                used -= {
                    m.name for m in in_order(option) if isinstance(m, S.PVar | S.PSequence | S.PConst)
                } - _read_names(rule)
    return used


def _repeated(pattern: S.Pattern) -> set[str]:
    """The names that a pattern has more than once."""
    count = Counter(
        n.name for n in in_order(pattern) if isinstance(n, S.PVar | S.PSequence | S.PBind | S.PConst) and n.name
    )
    return {name for name, times in count.items() if times > 1}


def _read_names(rule: S.Rule) -> set[str]:
    return {n.name for root in (*rule.clauses, rule.target) for n in in_order(root) if isinstance(n, S.EName)}


def _canonical(p: S.Pattern) -> str:
    """The text of a pattern with its variables numbered, so that patterns that match the same are the same text."""
    names: dict[str, str] = {}
    parts: list[str] = []
    repeated = _repeated(p)
    for n in in_order(p):
        kind = type(n).__name__
        match n:
            case S.PVar() | S.PSequence():
                name = f"_{len(parts)}" if n.name.startswith("_") else names.setdefault(n.name, f"v{len(names)}")
                parts.append(f"{kind} {name}")
            case S.PBind():
                names.setdefault(n.name, f"v{len(names)}")
            case S.PConst():
                equal = names.setdefault(n.bound, f"v{len(names)}") if n.bound in repeated else ""
                parts.append(f"{kind} {n.kind} {equal}")
            case S.PLiteral() | S.ENumber():
                parts.append(f"{kind} {n.text}")
            case S.POp():
                parts.append(f"{kind} {n.ops} {n.commutative} {len(n.args)}")
            case S.PStruct():
                parts.append(f"{kind} {n.op} {[f.name for f in n.fields]} {n.rest}")
            case S.TName() | S.EName():
                parts.append(f"{kind} {n.name}")
            case S.TVector():
                parts.append(f"{kind} {n.lanes}")
            case S.PField():
                parts.append(
                    f"{kind} {n.name}" + (f" {names.setdefault(n.name, f'v{len(names)}')}" if n.value is None else "")
                )
            case _:
                parts.append(f"{kind} {len(S.children(n))}")
    return "; ".join(parts)


def _as_expression(p: S.Pattern) -> str | None:
    """A pattern as the text of a target, if it can be one."""
    match p:
        case S.PVar() if not p.name.startswith("_"):
            return p.name
        case S.PLiteral():
            return p.text
        case S.PBind() if isinstance(p.inner, S.PConst):
            return p.name
        case S.PBind():
            return _as_expression(p.inner)
        case S.PConst() if p.name is not None:
            return p.name
        case S.POp() if len(p.ops) == 1:
            args = [
                a.type.name if isinstance(a, S.PType) and isinstance(a.type, S.TName) else _as_expression(a)
                for a in p.args
            ]
            return None if None in args else f"{p.ops[0]}({', '.join(a for a in args if a is not None)})"
        case S.PSequence():
            return f"{p.name}.."
    return None


def fits(rule: CheckedRule, p: S.PVar | S.POp, e: S.Expr) -> bool:
    """True if the constraints of a part of the pattern, on dtypes and Invalid, certainly hold for a part of the target."""
    if p.type is None:
        return True
    bound = rule.bindings.get(p.name) if isinstance(p, S.PVar) else None
    valid = (bound is not None and bound.invalid_ok) or not any(b.invalid_ok for b in rule.bindings.values())
    return valid and id(p) in rule.types and rule.types[id(p)] == rule.types.get(id(e))


def _matches(rule: CheckedRule, p: S.Pattern, e: S.Expr, bound: dict[str, str]) -> bool:
    """True if the pattern certainly matches the target's result, for all values of its variables."""
    match p:
        case S.PVar():
            return fits(rule, p, e) and (
                p.name.startswith("_") or bound.setdefault(p.name, expr_text(e)) == expr_text(e)
            )
        case S.PBind():
            return _matches(rule, p.inner, e, bound)
        case S.POp() if isinstance(e, S.ECall) and e.name in p.ops and fits(rule, p, e):
            args = [a for a in p.args if not isinstance(a, S.PType)]
            given = [a for a in e.args if not isinstance(a, S.EType)]
            if len(args) != len(p.args) or len(args) != len(given) or any(isinstance(a, S.PSequence) for a in args):
                return False
            if all(_matches(rule, a, g, bound) for a, g in zip(args, given, strict=True)):
                return True
            swapped = p.commutative and len(args) == 2
            return (
                swapped
                and all(_matches(rule, a, g, {}) for a, g in zip(args, reversed(given), strict=True))
                and _linear(p)
            )
    return False


def _linear(p: S.Pattern) -> bool:
    names = [n.name for n in in_order(p) if isinstance(n, S.PVar)]
    return len(names) == len(set(names))
