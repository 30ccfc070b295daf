"""From a checked pattern to the rows of tests that a matcher makes: one for each choice of operand orders and alternatives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from morok.dialect import OperandInfo, OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.rows import (
    Accessors,
    Bound,
    BoundCode,
    BoundNode,
    BoundNodes,
    BoundValue,
    CodeTest,
    Gap,
    LiteralTest,
    OpTest,
    Path,
    Several,
    Test,
    ValidTest,
    Variant,
    behind,
    gap_name,
    key_name,
)
from morok.dsl.slots import Slots
from morok.errors import Place, RuleLimitError

MOST_ROWS = 512  # of one rule: each commutative pattern in it doubles them


def variants(rule: CheckedRule) -> list[Variant]:
    """The rows of a rule, in the order in which they are to be tried."""
    walker = _Walker(rule)
    rows = []
    for row in walker.pattern(rule.syntax.pattern, (), Variant()):
        rows.append(walker.typed(row))
        if len(rows) > MOST_ROWS:
            raise RuleLimitError(
                f"rule {rule.name} has more than {MOST_ROWS} orders of operands to try",
                place=Place(rule.file, rule.line),
                hint="write some of its commutative patterns with parentheses",
            )
    return _distinct(rows, certain=not rule.syntax.clauses and not rule.syntax.partial)


def _distinct(rows: list[Variant], certain: bool) -> list[Variant]:
    """Without rows that can never be the first to apply: those with the tests of an earlier one, and (unless nothing can fail
    after the tests) its bindings.
    """
    seen: set[object] = set()
    out = []
    for row in rows:
        key = (frozenset(_mirrored(t) for t in row.tests), row.gaps, None if certain else tuple(row.names.items()))
        if key not in seen:
            seen.add(key)
            out.append(row)
    return out


def _mirrored(test: Test) -> Test:
    """Equal for the two ways to say that two nodes are the same."""
    return CodeTest(tuple(sorted(test.paths)), test.template) if isinstance(test, CodeTest) and len(test.paths) == 2 else test


class _Walker:
    def __init__(self, rule: CheckedRule) -> None:
        self.rule = rule
        self.dialect = rule.dialect
        self.access = Accessors(rule.dialect)
        self.same = self.access.same("{0}", "{1}")

    def info(self, name: str) -> OpInfo:
        return self.dialect.ops[name]

    # patterns

    def pattern(self, p: S.Pattern, path: Path, row: Variant) -> Iterator[Variant]:
        ty = self.rule.types.get(id(p))
        if ty is not None and path not in row.types:
            row = replace(row, types={**row.types, path: ty})
        match p:
            case S.PVar():
                yield self.variable(p, path, row)
            case S.PBind():
                for r in self.pattern(p.inner, path, row):
                    yield r.bind(p.name, BoundNode(path), self.same)
            case S.PConst():
                yield self.constant(p, path, row)
            case S.PLiteral():
                yield self.literal(p, path, row)
            case S.POp():
                for op in p.ops:
                    yield from self.operation(p, op, path, row)
            case S.PStruct():
                yield from self.struct(p, path, row)
            case S.PAlternatives():
                for option in p.options:
                    yield from self.pattern(option, path, row)
            case _:
                raise AssertionError(f"{type(p).__name__} is no pattern of a node")

    def variable(self, p: S.PVar, path: Path, row: Variant) -> Variant:
        row = row.bind(p.name, BoundNode(path), self.same)
        binding = self.rule.bindings.get(p.name)
        tolerant = _mentions_maybe(p.type) or (binding is not None and binding.invalid_ok)
        return row if tolerant else replace(row, leaves=(*row.leaves, (path, p.name)))

    def is_const(self, path: Path, row: Variant) -> Variant:
        op = self.access.const_op
        if op is not None:
            return replace(row.plus(OpTest(path, op)), ops={**row.ops, path: op})
        return row.plus(CodeTest((path,), "_d.const_value({0}) is not NOT_CONST"))

    def constant(self, p: S.PConst, path: Path, row: Variant) -> Variant:
        if p.kind in ("vconst", "anyconst"):
            return self.vector_constant(p, path, row)
        row = self.is_const(path, row)
        if p.kind != "const":
            return row.plus(LiteralTest(path, p.kind, "", self.possible(path, row)))
        if p.bound is None:
            return row
        old = row.names.get(p.bound)
        if isinstance(old, BoundValue):
            return row.plus(CodeTest((old.path, path), "_same_value({v0}, {v1})"))
        return row.bind(p.bound, BoundValue(path), self.same)

    def vector_constant(self, p: S.PConst, path: Path, row: Variant) -> Variant:
        lanes = self.access.field("VConst", "{0}", "values")
        if p.kind == "vconst":
            row = replace(row.plus(OpTest(path, "VConst")), ops={**row.ops, path: "VConst"})
            bound = BoundCode(path, lanes)
        else:
            vector = f"{self.access.opkey('{0}')} {self.access.equal} {key_name('VConst')}"
            op = self.access.const_op
            single = (
                f"{self.access.opkey('{0}')} {self.access.equal} {key_name(op)}" if op else "_d.const_value({0}) is not NOT_CONST"
            )
            row = row.plus(CodeTest((path,), f"({vector} or {single})"))
            bound = BoundCode(path, f"({lanes} if {vector} else ({self.access.value('{0}')},) * {self.access.lanes('{0}')})")
        return row if p.name is None else row.bind(p.name, bound, self.same)

    def possible(self, path: Path, row: Variant) -> frozenset[str]:
        """The element dtypes that the rule admits at `path`."""
        ty = row.types.get(path)
        if ty is None:
            return frozenset(self.dialect.dtypes)
        return frozenset((ty.element,)) if ty.fixed else frozenset(self.rule.domains[ty.element])

    def literal(self, p: S.PLiteral, path: Path, row: Variant) -> Variant:
        row = self.is_const(path, row)
        kind = {bool: "true" if p.value else "false", int: "int", float: "float"}[type(p.value)]
        return row.plus(LiteralTest(path, kind, repr(p.value), self.possible(path, row)))

    def operation(self, p: S.POp, op: str, path: Path, row: Variant) -> Iterator[Variant]:
        row = replace(row.plus(OpTest(path, op)), ops={**row.ops, path: op})
        info = self.info(op)
        operands = [a for a in p.args if not isinstance(a, S.PType)]
        sequences = [a for a in operands if isinstance(a, S.PSequence)]
        row = self.counted(info, len(operands) - len(sequences), bool(sequences), path, row)
        for order in itertools.permutations(operands) if p.commutative else (operands,):
            r, placed = self.in_order(order, 0, f"len({self.access.operands('{0}')})", "", path, row)
            yield from self.operand_rows(placed, path, r)

    def in_order(
        self, items: Sequence[S.Pattern], index: int, end: str, stop: str, path: Path, row: Variant
    ) -> tuple[Variant, list[tuple[int, S.Pattern]]]:
        """With these patterns for the operands from `index` on, and the steps to those that are no sequences. `end` says behind
        which operand they end, `stop` the same as the end of a slice.
        """
        at = next((i for i, item in enumerate(items) if isinstance(item, S.PSequence)), None)
        if at is None:
            return row, [(index + i, item) for i, item in enumerate(items)]
        first = items[at]
        assert isinstance(first, S.PSequence)
        before = [(index + i, item) for i, item in enumerate(items[:at])]
        start = index + at
        if at == len(items) - 1:
            bound = BoundCode(path, f"{self.access.operands('{0}')}[{start}:{stop}]") if stop else BoundNodes(path, start, None)
            return self.sequence(first, path, bound, row), before
        last = items[-1] if isinstance(items[-1], S.PSequence) else None
        single = items[at + 1 : -1] if last is not None else items[at + 1 :]
        number = len(row.gaps)
        gap = Gap(path, start, len(single), end, pinned=last is None)
        row = replace(row, gaps=(*row.gaps, gap))
        operands = self.access.operands("{0}")
        row = self.sequence(first, path, BoundCode(path, f"{operands}[{start}:{gap_name(number)}]"), row)
        if last is not None:
            rest = f"{operands}[{gap_name(number)} + {len(single)}:{stop}]"
            row = self.sequence(last, path, BoundCode(path, rest), row)
        return row, before + [(behind(number, i), item) for i, item in enumerate(single)]

    def operand_rows(self, operands: list[tuple[int, S.Pattern]], path: Path, row: Variant) -> Iterator[Variant]:
        if not operands:
            yield row
            return
        (i, first), rest = operands[0], operands[1:]
        for r in self.pattern(first, (*path, i), row):
            yield from self.operand_rows(rest, path, r)

    def counted(self, info: OpInfo, singles: int, more: bool, path: Path, row: Variant) -> Variant:
        """With a test of the number of operands, where the op does not fix it."""
        fixed = len(info.operands)
        if not any(o.many or o.optional for o in info.operands):
            assert singles + more >= 1 or fixed == 0, info.name
            return self.exactly(fixed, path, row)
        least = sum(1 for o in info.operands if not (o.many or o.optional))
        length = f"len({self.access.operands('{0}')})"
        if more:
            return row if singles <= least else row.plus(CodeTest((path,), f"{length} >= {singles}"))
        return row.plus(CodeTest((path,), f"{length} == {singles}"))

    def exactly(self, count: int, path: Path, row: Variant) -> Variant:
        """With a test that the node has as many operands as its op, where the dialect does not vouch for its nodes."""
        if getattr(self.dialect, "closed_types", False):
            return row
        return row.plus(CodeTest((path,), f"len({self.access.operands('{0}')}) == {count}"))

    def sequence(self, p: S.PSequence | S.PVar, path: Path, bound: BoundNodes | BoundCode, row: Variant) -> Variant:
        """With these operands bound to one name: each of the name's dtype and lanes, none Invalid unless the name may be."""
        elements = self.elements(bound)
        old = row.names.get(p.name)
        if isinstance(old, (BoundNodes, BoundCode)):  # the same nodes as before
            a, b = self.elements(old), _shifted(elements)
            pairs = f"all([{self.access.same('a', 'b')} for a, b in zip({a}, {b})])"
            return row.plus(CodeTest((old.path, path), f"(len({a}) == len({b}) and {pairs})"))
        binding = self.rule.bindings.get(p.name)
        ty = self.rule.types.get(id(p)) or (binding.type if binding is not None else None)
        tolerant = _mentions_maybe(p.type) or (binding is not None and binding.invalid_ok)
        if self.may_be_invalid(ty) and not tolerant:
            valid = self.access.inline["invalid"].format(n="_o")
            row = row.plus(CodeTest((path,), f"not any([{valid} for _o in {elements}])"))
        if ty is not None:
            row = replace(row, several=(*row.several, Several(path, elements, ty)))
        return row.bind(p.name, bound, self.same)

    def elements(self, bound: BoundNodes | BoundCode) -> str:
        return bound.template if isinstance(bound, BoundCode) else f"{self.access.operands('{0}')}{bound.span}"

    def may_be_invalid(self, ty: Ty | None) -> bool:
        """True if a node of this dtype could be Invalid: only at index, and only in dialects that have such a thing."""
        if "invalid" not in self.access.inline or ty is None or ty.pointer or ty.place:
            return False
        return ty.element == "index" if ty.fixed else "index" in self.rule.domains[ty.element]

    # struct patterns

    def struct(self, p: S.PStruct, path: Path, row: Variant) -> Iterator[Variant]:
        info = self.info(p.op)
        row = replace(row.plus(OpTest(path, p.op)), ops={**row.ops, path: p.op})
        named = {f.name: f.value for f in p.fields}
        if not any(o.many or o.optional for o in info.operands):
            row = self.exactly(len(info.operands), path, row)
        if not p.rest:
            row = self.no_more(info, named, path, row)
        nested: list[tuple[int, S.Pattern]] = []
        for f in p.fields:
            place = _operand_index(info, f.name)
            if place is None:
                template = self.access.type("{0}") if f.name == "dtype" else self.access.field(p.op, "{0}", f.name)
                value = S.EName(f.name) if f.value is None else f.value
                row = self.field(f.name, value, path, template, row)
                continue
            index, operand = place
            if isinstance(f.value, S.PList):
                row, listed = self.listed(p.op, info, f.value, index, path, row)
                nested += listed
            elif operand.many:
                row = self.many(p.op, info, f, index, path, row)
            elif operand.optional:
                row, pattern = self.optional(p.op, info, f, index, path, row)
                if pattern is not None:
                    nested.append(pattern)
            else:
                nested.append((index, S.PVar(f.name) if f.value is None else _as_pattern(f.value)))
                if f.value is None:
                    row = replace(row, types={**row.types, **self._field_type(f, (*path, index))})
        yield from self.operand_rows(nested, path, row)

    def _field_type(self, f: S.PField, path: Path) -> dict[Path, Ty]:
        binding = self.rule.bindings.get(f.name)
        ty = self.rule.types.get(id(f)) or (binding.type if binding is not None else None)
        return {} if ty is None else {path: ty}

    def no_more(self, info: OpInfo, named: Mapping[str, object], path: Path, row: Variant) -> Variant:
        """Operands that the pattern does not name are not there."""
        optional = [i for i, o in enumerate(info.operands) if o.optional]
        for i in optional:
            if info.operands[i].name not in named:
                row = row.plus(CodeTest((path,), f"not ({self.presence(info.name, info, i)})"))
        if all(o.name in named for o in info.operands if o.many):
            return row
        least = sum(1 for o in info.operands if not (o.many or o.optional))
        there = "".join(f" - bool({self.presence(info.name, info, i)})" for i in optional)
        return row.plus(CodeTest((path,), f"len({self.access.operands('{0}')}){there} == {least}"))

    def presence(self, op: str, info: OpInfo, index: int) -> str:
        """Text that is true if an optional operand is there: by a field where a sequence stands before it, else by the count."""
        if any(o.many for o in info.operands[:index]):
            return self.access.field(op, "{0}", info.fields[0])
        return f"len({self.access.operands('{0}')}) > {index}"

    def listed(
        self, op: str, info: OpInfo, items: S.PList, index: int, path: Path, row: Variant
    ) -> tuple[Variant, list[tuple[int, S.Pattern]]]:
        """These operands in the place of a sequence; where two sequences of equal length end the operands, in that of half."""
        if info.in_halves:
            singles, count = sum(1 for o in info.operands if not o.many), len(items.items)
            row = row.plus(CodeTest((path,), f"len({self.access.operands('{0}')}) == {singles + 2 * count}"))
            start = singles if index == singles else singles + count
            return row, [(start + i, item) for i, item in enumerate(items.items)]
        single = sum(1 for i in items.items if not isinstance(i, S.PSequence))
        after = [i for i, o in enumerate(info.operands) if o.optional and i > index]
        end = f"len({self.access.operands('{0}')})" + (f" - bool({self.presence(op, info, after[0])})" if after else "")
        row = row.plus(CodeTest((path,), f"{end} {'==' if single == len(items.items) else '>='} {index + single}"))
        return self.in_order(items.items, index, end, end if after else "", path, row)

    def many(self, op: str, info: OpInfo, f: S.PField, index: int, path: Path, row: Variant) -> Variant:
        p = S.PVar(f.name) if f.value is None else _as_sequence(f.value)
        after = [i for i, o in enumerate(info.operands) if o.optional and i > index]
        if info.in_halves:
            singles = sum(1 for o in info.operands if not o.many)
            half = f"(len({self.access.operands('{0}')}) - {singles}) // 2"
            first = index == singles
            span = f"[{singles}:{singles} + {half}]" if first else f"[{singles} + {half}:]"
            return self.sequence(p, path, BoundCode(path, f"{self.access.operands('{0}')}{span}"), row)
        return self.sequence(p, path, self.before(op, info, BoundNodes(path, index, None), after), row)

    def before(self, op: str, info: OpInfo, bound: BoundNodes, after: list[int]) -> BoundNodes | BoundCode:
        """Without the optional operand at the end, which is there or not."""
        if not after:
            return bound
        here = self.presence(op, info, after[0])
        operands = self.access.operands("{0}")
        return BoundCode(bound.path, f"({operands}[{bound.start}:-1] if {here} else {operands}[{bound.start}:])")

    def optional(
        self, op: str, info: OpInfo, f: S.PField, index: int, path: Path, row: Variant
    ) -> tuple[Variant, tuple[int, S.Pattern] | None]:
        here = self.presence(op, info, index)
        at = -1 if any(o.many for o in info.operands[:index]) else index
        match f.value:
            case S.PNone():
                return row.plus(CodeTest((path,), f"not ({here})")), None
            case S.PSome():
                return row.plus(CodeTest((path,), here)), (at, f.value.inner)
            case None:  # bound as it is: a node or None
                p = S.PVar(f.name)
            case _:
                p = _as_variable(f.value)
        node = f"{self.access.operands('{0}')}[{at}]"
        binding = self.rule.bindings.get(p.name)
        ty = self.rule.types.get(id(p)) or (binding.type if binding is not None else None)
        if ty is not None:
            row = replace(row, several=(*row.several, Several(path, f"([{node}] if {here} else ())", ty)))
        if p.ignored and self.may_be_invalid(ty) and not _mentions_maybe(p.type):  # what has a name says itself what it may be
            row = row.plus(CodeTest((path,), f"not ({here} and {self.access.inline['invalid'].format(n=node)})"))
        template = f"({node} if {here} else None)"
        old = row.names.get(p.name)
        if isinstance(old, BoundCode):
            return row.plus(CodeTest((old.path, path), f"{old.template} is {_shifted(template)}")), None
        return row.bind(p.name, BoundCode(path, template), self.same), None

    # static fields

    def field(self, name: str, value: object, path: Path, template: str, row: Variant) -> Variant:
        """With the field that `template` reads matched against an expression: variables are bound, all else is compared."""
        match value:
            case S.PVar() | S.EName():
                old = row.names.get(value.name)
                if value.name.startswith("_"):
                    return row.bind(value.name, BoundCode(path, template), self.same)
                if old is not None:
                    return row.plus(CodeTest((_path_of(old), path), f"{_template_of(old)} == {_shifted(template)}"))
                if value.name in self.rule.bindings:
                    return row.bind(value.name, BoundCode(path, template), self.same)
                if name == "op" and value.name in self.dialect.ops:
                    return row.plus(CodeTest((path,), f"{template} {self.access.equal} {key_name(value.name)}"))
                # a member of an enum, compared by name
                return row.plus(CodeTest((path,), f"getattr({template}, 'name', {template}) == {value.name!r}"))
            case S.PLiteral() | S.ENumber():
                return row.plus(CodeTest((path,), f"{template} == {value.value!r}"))
            case S.EUnary(op="-", operand=S.ENumber() as number):
                return row.plus(CodeTest((path,), f"{template} == -{number.value!r}"))
            case S.EList():
                row = row.plus(CodeTest((path,), f"len({template}) == {len(value.items)}"))
                for i, item in enumerate(value.items):
                    row = self.field(name, item, path, f"{template}[{i}]", row)
                return row
            case S.PExpr():
                return self.field(name, value.value, path, template, row)
            case S.EType() | S.PType():
                return row  # a dtype field: the dtype tests look at it
        raise AssertionError(f"{type(value).__name__} cannot be matched with a field")

    # dtypes, lanes, Invalid

    def typed(self, row: Variant) -> Variant:
        """With the tests of dtypes, lanes and Invalid that the ops do not make superfluous."""
        slots = Slots(self.rule, row)
        row = row.plus(*slots.dtype_tests(), *slots.lane_tests(), *slots.bound_tests())
        return row.plus(*self.valid_tests(row))

    def valid_tests(self, row: Variant) -> list[Test]:
        """Variables at index must not be Invalid. Arithmetic is strict in it: where all its operands are to be tested, the
        node itself is tested instead, which more rules have in common.
        """
        names = dict(row.leaves)
        wanted = {p for p in names if self.may_be_invalid(row.types.get(p))}
        covered: set[str] = set()  # variables below a node that is tested
        for path in sorted(row.ops, key=len, reverse=True):
            info = self.info(row.ops[path])
            if not info.result or info.result not in info.params:
                continue
            below = [(*path, i) for i, word in enumerate(info.params) if word == info.result]
            if any(b in wanted for b in below) and all(b in wanted or row.ops.get(b) == self.access.const_op for b in below):
                wanted.difference_update(below)
                covered.update(names[b] for b in below if b in names)
                wanted.add(path)
        for path in sorted(wanted & names.keys()):
            if not names[path].startswith("_"):
                if names[path] in covered:  # the same node was tested elsewhere
                    wanted.discard(path)
                covered.add(names[path])
        return [ValidTest(p) for p in sorted(wanted)]


def _mentions_maybe(ty: S.TypeSyntax | None) -> bool:
    if isinstance(ty, S.TMaybeInvalid):
        return True
    if isinstance(ty, S.TUnion):
        return any(_mentions_maybe(o) for o in ty.options)
    if isinstance(ty, S.TVector):
        return _mentions_maybe(ty.element)
    return False


def _as_pattern(value: object) -> S.Pattern:
    assert isinstance(value, S.Pattern), value
    return value


def _as_sequence(value: object) -> S.PSequence | S.PVar:
    assert isinstance(value, (S.PVar, S.PSequence)), value
    return value


def _as_variable(value: object) -> S.PVar:
    assert isinstance(value, S.PVar), value
    return value


def _path_of(bound: Bound) -> Path:
    return bound.path


def _template_of(bound: Bound) -> str:
    match bound:
        case BoundCode():
            return bound.template
        case BoundValue():
            return "{v0}"
    raise AssertionError("a node is no static field")


def _shifted(template: str) -> str:
    return template.replace("{0}", "{1}").replace("{v0}", "{v1}")


def _operand_index(info: OpInfo, name: str) -> tuple[int, OperandInfo] | None:
    for i, o in enumerate(info.operands):
        if o.name == name:
            return i, o
    return None
