"""From syntax trees to checked rules: templates expanded, names resolved, dtypes inferred.

A rule's pattern decides the dtypes that it holds at: every one at which the pattern type-checks. Clauses and target must then
type-check at all of these; where they do not, the rule is ill-typed, and nothing is narrowed in silence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from morok.dialect import Dialect, built_in, find
from morok.dsl import syntax as S
from morok.dsl.checked import Binding, CheckedFile, CheckedGroup, CheckedRule, Instance, Ty
from morok.dsl.contract import COMPILE_TIME, mistakes
from morok.dsl.declared import dialect_mistakes
from morok.dsl.file_bytes import decode, read_bytes
from morok.dsl.functions import FUNCTIONS, SPECIAL
from morok.dsl.helpers import Definition, Unreadable, definition, outline, several
from morok.dsl.infer import Namer, T
from morok.dsl.match.clauses import Clauses
from morok.dsl.match.patterns import MOST_CLAUSES, clauses_of
from morok.dsl.node_expressions import Expressions
from morok.dsl.parse import excerpt, raise_all, recover, suggest
from morok.dsl.pattern_checks import Patterns
from morok.dsl.resolve import Resolver, Stop
from morok.dsl.scope import FLAGS
from morok.dsl.templates import expand, ops_of
from morok.errors import (
    DuplicateRuleError,
    MorokError,
    Place,
    RuleError,
    RuleLimitError,
    RuleTypeError,
    UnknownNameError,
)

MAX_INSTANCES: Final = 20_000
# assumptions of products and sums, quotients and reciprocals by name
_OF_MOROK: Final = frozenset(("contract", "arcp"))


def check_file(path: str | Path, dialect: Dialect | None = None, pack: str = "") -> CheckedFile:
    """The checked rules of a file. Raises a RuleError that holds every mistake (`errors`)."""
    return check_bytes(read_bytes(path), str(path), dialect, pack)


def check_bytes(content: bytes, file: str, dialect: Dialect | None = None, pack: str = "") -> CheckedFile:
    """The checked file of bytes that were read already, for callers that need the bytes twice."""
    return check_text(decode(content, file), file, dialect, pack)


def check_text(text: str, file: str = "<text>", dialect: Dialect | None = None, pack: str = "") -> CheckedFile:
    """The checked rules of a text; `pack` is put in front of rule names. Raises a RuleError that holds every mistake."""
    checked, errors = partly_checked(text, file, dialect, pack)
    raise_all(errors)
    assert checked is not None, "a file without errors is checked"
    return checked


def partly_checked(
    text: str, file: str = "<text>", dialect: Dialect | None = None, pack: str = ""
) -> tuple[CheckedFile | None, list[MorokError]]:
    """The correct rules of a text, in its order (None without a valid dialect), and every mistake in the others.

    Raises RuleLimitError or RuleEncodingError if the text cannot be read at all.
    """
    parsed = recover(text, file)
    checker = _FileChecker(text, parsed.file, pack, parsed.errors)
    checked = checker.check(dialect)
    checker.errors.sort(key=lambda e: (e.place.line, e.place.column) if e.place else (0, 0))
    return checked, checker.errors


class _FileChecker:
    def __init__(self, text: str, file: S.File, pack: str, errors: list[MorokError]) -> None:
        self.text = text
        self.file = file
        self.pack = pack
        self.errors = errors
        self.definitions: dict[str, Definition] = {}
        self.miscounted: set[tuple[str, bool]] = set()

    def error(self, kind: type[RuleError], message: str, span: S.Span, expected: str = "", hint: str = "") -> RuleError:
        width = span.end_column - span.column if span.end_line == span.line else 1
        return kind(
            message,
            place=Place(self.file.path, span.line, span.column),
            excerpt=excerpt(self.text, span.line, span.column, width),
            expected=expected,
            hint=hint,
        )

    def add(self, kind: type[RuleError], message: str, at: S.Syntax, expected: str = "", hint: str = "") -> None:
        self.errors.append(self.error(kind, message, at.span, expected, hint))

    def check(self, dialect: Dialect | None) -> CheckedFile | None:
        if dialect is None:
            if not self.file.dialect:
                return None
            try:
                dialect = find(self.file.dialect)
            except KeyError:
                hint = "register it first: morok.dialect.register(..)"
                place = Place(self.file.path, 1)
                self.errors.append(
                    UnknownNameError(f"there is no dialect `{self.file.dialect}`", place=place, hint=hint)
                )
                return None
        misdeclared = [m for m in dialect_mistakes(dialect) if m.everything]
        if misdeclared:
            self.errors += [m.error(dialect.name, Place(self.file.path, 1)) for m in misdeclared]
            return None
        externs = self._externs(dialect)
        groups: list[CheckedGroup] = []
        seen: dict[str, S.Group] = {}
        for g in self.file.groups:
            rules = tuple(self._rules(g, dialect, externs))
            if g.name in seen:
                self.add(
                    DuplicateRuleError,
                    f"a second group `{g.name}`",
                    g,
                    hint=f"the first is at line {seen[g.name].span.line}",
                )
                continue
            seen[g.name] = g
            if g.name:
                groups.append(CheckedGroup(g.name, g.doc, self.file.path, rules, g.context))
        wrong = self._wrong_contracts()
        if wrong:
            groups = [replace(g, rules=tuple(r for r in g.rules if wrong.isdisjoint(r.externs))) for g in groups]
        return CheckedFile(self.file.path, self.file, tuple(groups), self.text)

    def _wrong_contracts(self) -> frozenset[str]:
        """The helpers with a mistake in their declarations: rules that rely on one are left out."""
        lines = [e.place.line for e in self.errors if e.place]

        def wrong(e: S.Extern) -> bool:
            end = max(at.span.end_line for at in S.walk(e))
            return e.name not in self.definitions or any(e.span.line <= n <= end for n in lines)

        return frozenset(e.name for e in self.file.externs if wrong(e))

    def _rules(self, group: S.Group, dialect: Dialect, externs: Mapping[str, S.Extern]) -> Iterator[CheckedRule]:
        seen: dict[str, S.Rule] = {}
        for item in group.items:
            expanded: Iterator[tuple[S.Rule, str]] = (
                iter(((item, ""),)) if isinstance(item, S.Rule) else self._expand(item, dialect)
            )
            reported: set[tuple[Any, ...]] = set()
            for rule, op in expanded:
                name = f"{rule.name}.{op}" if op else rule.name
                if name in seen:
                    self.add(
                        DuplicateRuleError,
                        f"a second rule `{name}` in group {group.name}",
                        rule,
                        hint=f"the first is at line {seen[name].span.line}",
                    )
                    continue
                seen[name] = rule
                checker = _RuleChecker(self, rule, f"{group.name}.{name}", dialect, externs, group)
                made = checker.check()
                for e in checker.resolver.errors:
                    key = (e.place, type(e)) if op else (id(e),)
                    if key not in reported:  # a mistake in a template is one mistake
                        reported.add(key)
                        self.errors.append(e)
                if made is not None:
                    yield made

    def _expand(self, template: S.Template, dialect: Dialect) -> Iterator[tuple[S.Rule, str]]:
        if template.variable in dialect.ops:
            self.add(UnknownNameError, f"`{template.variable}` is an op, not a variable", template, "for op in ..")
            return
        good: list[str] = []
        for op in ops_of(template, dialect):
            info = dialect.ops.get(op)
            if info is None:
                kind = [n for n, i in dialect.ops.items() if i.kind == template.kind]
                self.add(UnknownNameError, f"there is no op `{op}`", template, hint=suggest(op, kind))
            elif info.kind != template.kind:
                self.add(RuleTypeError, f"{op} is no {template.kind} op", template)
            elif op in good:
                self.add(DuplicateRuleError, f"{op} is listed twice", template)
            else:
                good.append(op)
        if good:
            yield from expand(replace(template, ops=tuple(good)), dialect)

    def _externs(self, dialect: Dialect) -> dict[str, S.Extern]:
        found: dict[str, S.Extern] = {}
        for e in self.file.externs:
            if e.name in found:
                self.add(
                    DuplicateRuleError,
                    f"a second helper `{e.name}`",
                    e,
                    hint=f"the first is at line {found[e.name].span.line}",
                )
                continue
            taken = self._taken(e.name, dialect)
            if taken:
                where = f" and in {self.file.helpers}" if self.file.helpers else ""
                hint = (
                    f"rename the helper, here{where}: my_{e.name}, say; where its `def` must stay as it is, import it"
                )
                hint += f" there by `from .. import {e.name} as my_{e.name}`"
                self.add(DuplicateRuleError, f"the helper `{e.name}` has the name of {taken}", e, hint=hint)
                continue
            found[e.name] = e
            self._contract(e, dialect)
        self._definitions(tuple(found.values()))
        return found

    def _taken(self, name: str, dialect: Dialect) -> str:
        """The function, op or fact that has a helper's name already, in words; "" if there is none."""
        if name in FUNCTIONS or name in SPECIAL:
            return "a function of the language"
        return (
            f"an op of {dialect.name}"
            if name in dialect.ops
            else f"a fact of {dialect.name}"
            if name in dialect.facts
            else ""
        )

    def _definitions(self, externs: Sequence[S.Extern]) -> None:
        """Each helper's `def`, read from its module's text into `definitions`; a missing one is an error of the declaration."""
        module = self.file.helpers
        for e in externs:
            try:
                if module is None:
                    raise Unreadable(
                        "the rule file names no module of helpers", 'helpers "package.module", at its head'
                    )
                self.definitions[e.name] = made = definition(module, e.name)
            except Unreadable as problem:
                hint, expected = problem.hint, "a function that its module marks with @morok.helper"
                self.add(UnknownNameError, f"the helper {e.name}: {problem.message}", e, expected, hint)
                if module is None or not self._readable(module):
                    return  # every other helper would give the same error
                continue
            self._signature(e, made)

    def _readable(self, module: str) -> bool:
        try:
            outline(module)
        except Unreadable:
            return False
        return True

    def _signature(self, e: S.Extern, made: Definition) -> None:
        """Errors where the names and types in a `def` contradict a declaration."""
        names = [p.name for p in e.params]
        theirs = list(made.parameters[: len(names)])
        where = f"{made.signature()}, {made.place}"
        if names != theirs and sorted(names) == sorted(theirs):
            self.add(
                RuleTypeError, f"`{e.name}` has its parameters in another order than {where}", e, ", ".join(theirs)
            )
        said = made.alternatives()
        if said is None:
            return
        types, declines = said
        if declines and not e.partial:
            hint = "with `?` behind its results, or a function that always answers"
            self.add(
                RuleTypeError, f"`{e.name}` may decline, says {made.place}, and its declaration does not", e, hint=hint
            )
        counts = [c for t in types if (c := several(t)) is not None]
        if len(e.results) > 1 and counts and len(e.results) not in counts:
            what = f"`{e.name}` has {len(e.results)} results, and {counts[0]} in {made.place}"
            self.add(RuleTypeError, what, e)

    def called(self, e: S.Extern, context: str | None) -> None:
        """An error unless a helper takes as many arguments as the rules of a group give it."""
        made = self.definitions.get(e.name)
        count = len(e.params) + (context is not None)
        if made is None or made.takes(count) or (e.name, context is None) in self.miscounted:
            return
        self.miscounted.add((e.name, context is None))
        with_context = " and the group's context" if context is not None else ""
        expected = f"a function of {count} arguments: {', '.join(p.name for p in e.params) or 'none'}{with_context}"
        self.add(
            RuleTypeError,
            f"`{e.name}` is called with {count} arguments, and is {made.signature()}, {made.place}",
            e,
            expected,
        )

    def _contract(self, extern: S.Extern, dialect: Dialect) -> None:
        resolver = Resolver(dialect, self.error)
        names: set[str] = set()
        for p in (*extern.params, *extern.results):
            if p.name in names:
                self.add(DuplicateRuleError, f"`{p.name}` twice in `{extern.name}`", p)
            names.add(p.name)
            if isinstance(p.type, S.TName) and p.type.name in COMPILE_TIME:
                continue
            try:
                resolver.annotate(resolver.types.fresh(), p.type, f"`{p.name}`")
            except Stop:
                self.errors += resolver.errors
                resolver.errors = []
        for wrong in mistakes(extern, dialect):
            self.add(*wrong)


def _orders(p: Any) -> int:
    """At most so many orders of operands, and choices of ops, are to be tried for a pattern."""
    own = 2 * len(p.ops) if isinstance(p, S.POp) else 1
    below = [_orders(q) for q in S.children(p)]
    return own * (sum(below) if isinstance(p, S.PAlternatives) else math.prod(below))


@dataclass(slots=True)
class _RuleChecker:
    file: _FileChecker
    rule: S.Rule
    own: str
    dialect: Dialect
    externs: Mapping[str, S.Extern]
    group: S.Group
    resolver: Resolver = field(init=False)

    def __post_init__(self) -> None:
        self.resolver = Resolver(self.dialect, self.file.error)

    def check(self) -> CheckedRule | None:
        try:
            found = self._check()
            if found is not None and _orders(found.syntax.pattern) > MOST_CLAUSES:
                clauses_of(found, Clauses(self.dialect))  # which are counted
        except Stop:
            return None
        except RuleLimitError as limit:
            self.file.errors.append(limit)
            return None
        return found

    def _check(self) -> CheckedRule | None:
        r, rule = self.resolver, self.rule
        for flag in rule.assuming:
            if flag not in FLAGS:
                r.report(
                    UnknownNameError,
                    f"`{flag}` is no assumption",
                    rule.target,
                    f"one of {', '.join(FLAGS)}",
                    suggest(flag, FLAGS),
                )
            elif flag in _OF_MOROK and not built_in(self.dialect):
                r.report(RuleTypeError, f"`{flag}` says something of the built-in dialect's ops alone", rule.target)
        root = r.types.fresh()
        pattern = Patterns(r).pattern(rule.pattern, root)
        r.settle_equal_values()
        frozen = {e: (r.types.find(e), r.types.mask(e)) for e in r.types.elements()}
        r.matched = r.types.elements(), r.types.lane_classes()
        matched = [t for _, t in r.typed]
        pattern_names = set(r.bound)

        expressions = Expressions(r, self.externs)
        clauses: list[S.If | S.Let] = []
        for c in rule.clauses:
            clauses.append(
                expressions.let(c) if isinstance(c, S.Let) else replace(c, condition=expressions.condition(c.condition))
            )
        target = expressions.operand(rule.target, T(root.elem, root.lanes), "the target")
        for e in expressions.called.values():
            self.file.called(e, self.group.context)
        partial = [e for e in expressions.called.values() if e.partial]
        if partial and not rule.partial:
            r.report(
                RuleTypeError, f"`{partial[0].name}` may decline, so this rule may", rule.target, "=> instead of ~>"
            )
        if r.errors:
            return None
        self._unchanged(frozen)
        self._determined(frozen, matched, pattern_names)
        if r.errors:
            return None
        return self._made(replace(rule, pattern=pattern, clauses=tuple(clauses), target=target), expressions)

    def _unchanged(self, frozen: Mapping[int, tuple[int, int]]) -> None:
        """Errors where clauses or target exclude a dtype that the pattern admits, or unify two dtypes of the pattern."""
        r = self.resolver
        u = r.universe
        roots: dict[int, int] = {}
        for e, (root, before) in frozen.items():
            now = r.types.find(e)
            after = r.types.masks[now]
            lost = before & u.any & ~after
            at = r.types.culprit.get(now) or self.rule.target
            if lost:
                admitted = u.describe(after & u.any) if after & u.any else u.describe(after)
                r.fail(
                    f"this does not type-check at {u.describe(lost)}, where the pattern matches",
                    at,
                    "a rule that holds at every dtype of its pattern",
                    f"annotate a variable of the pattern: x: {admitted if '|' not in admitted else f'({admitted})'}",
                )
            other = roots.setdefault(now, root)
            if other != root and after & (after - 1):
                names = [r.types.names.get(n) for n in (other, root)]
                what = (
                    " and ".join(n for n in names if n)
                    if all(names)
                    else "two dtypes that the pattern leaves independent"
                )
                r.fail(
                    f"this needs {what} to be one dtype",
                    at,
                    hint="give both the same dtype variable in the pattern: x: T",
                )

    def _determined(self, frozen: Mapping[int, Any], matched: Sequence[T], names: set[str]) -> None:
        """Errors where the dtype of a constant does not follow from a bound name. Constants chosen by a condition have its lanes,
        unless another use decides them.
        """
        r = self.resolver
        known = {r.types.find(e) for e in frozen}
        lanes = {r.types.find_lane(t.lanes) for t in matched}
        for n in names:
            b = r.bound.get(n)
            if b is not None and b.value.kind == "int":
                lanes |= {i for i in lanes if r.types.lane_value(i) == n}
        for chosen, condition in r.chosen:
            if r.types.find_lane(chosen) not in lanes and r.types.lane_value(chosen) is None:
                r.types.same_lanes(chosen, condition)
        lanes = {r.types.find_lane(n) for n in lanes}
        u = r.universe
        addresses = {r.types.find(t.elem) for t in r.addresses}
        for e, t in r.constants:
            root = r.types.find(t.elem)
            mask = r.types.masks[root]
            if root not in known and mask & (mask - 1):
                if u.integral and mask == u.integral and root in addresses:
                    r.types.restrict(t.elem, u.bits["index"])  # the default dtype of an address
                else:
                    r.fail(
                        "the dtype of this constant does not follow from anything bound",
                        e,
                        hint="const(v, T) or zero(x) says it",
                    )
            if r.types.find_lane(t.lanes) not in lanes and r.types.lane_value(t.lanes) is None:
                r.types.same_lanes(t.lanes, r.types.lane(1))

        read = {r.types.find(t.elem) for t in matched if t.form == "value"}  # the matcher reads no dtype off a pointer
        for asked, t, what, hint in r.asked:
            root = r.types.find(t.elem)
            mask = r.types.masks[root]
            if mask & u.opaque or (root not in read and mask & (mask - 1)):
                r.fail(f"{what} does not follow from anything bound", asked, hint=hint)

    def _made(self, rule: S.Rule, expressions: Expressions) -> CheckedRule:
        r = self.resolver
        namer = Namer(r.types)
        kept = set(map(id, S.walk(rule)))  # the nodes that the rule keeps alive: Python may reuse the ids of others
        types: dict[int, Ty] = {id(node): namer.ty(t) for node, t in r.typed if id(node) in kept}
        bindings = {}
        for n, b in r.bound.items():
            ty = namer.ty(b.value.type) if b.value.type is not None and b.value.kind != "dtype" else None
            bindings[n] = Binding(n, b.value.sort, ty, b.invalid_ok, b.constant)
        domains = {name: r.universe.members(r.types.masks[root]) for root, name in namer.elements.items()}
        return CheckedRule(
            f"{self.file.pack}.{self.own}" if self.file.pack else self.own,
            self.own,
            self.file.file.path,
            rule.span.line,
            self.dialect,
            rule,
            bindings,
            types,
            dict(r.sorts),
            domains,
            self._instances(namer, domains),
            expressions.called,
            frozenset(id(e) for e, of in r.unbounded if any(self._may_be_unbounded(t) for t in of)),
            self.file.file.helpers,
            self.group.context,
            r.pointwise and not any(b.value.many for b in r.bound.values()),
            self.file.text,
        )

    def _may_be_unbounded(self, t: T) -> bool:
        """True if nodes of this type may have infinite bounds: indices may, and floats have no useful ones."""
        u = self.resolver.universe
        return not u.integral or bool(self.resolver.types.mask(t.elem) & (u.bits.get("index", 0) | u.floats | u.opaque))

    def _instances(self, namer: Namer, domains: Mapping[str, tuple[str, ...]]) -> tuple[Instance, ...]:
        r = self.resolver
        count = math.prod(len(d) for d in domains.values())
        if count > MAX_INSTANCES:
            r.fail(
                f"the rule has {count:,} choices of dtypes",
                self.rule,
                f"at most {MAX_INSTANCES:,}",
                "annotate its variables",
            )
        choices = [dict(zip(domains, choice, strict=True)) for choice in itertools.product(*domains.values())]
        pairs = [(namer.element(a.elem)[0], namer.element(b.elem)[0]) for a, b in r.same_width]
        if pairs:
            widths = {n: getattr(self.dialect.dtypes[n], "bits", None) for n in r.universe.names}
            choices = [
                at for at in choices if all(widths.get(at.get(a, a)) == widths.get(at.get(b, b)) for a, b in pairs)
            ]
        made = tuple(map(Instance, choices))
        if not made:
            r.fail("no choice of dtypes fits this rule", self.rule)
        return made
