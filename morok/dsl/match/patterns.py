"""From a checked pattern to the clauses that a matcher tests: one for each choice of operand orders and alternatives."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from morok.dialect import OpInfo, built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.match import literals
from morok.dsl.match.clauses import Binding, Clause, Clauses, Constraint, Gap, Path, Several, behind, gap_name
from morok.dsl.match.dtype_constraints import DtypeConstraints
from morok.dsl.special_ops import constants_op
from morok.errors import Place, RuleLimitError

MOST_CLAUSES: Final = 512  # of one rule: each commutative pattern in it doubles them


def clauses_of(rule: CheckedRule, made: Clauses) -> list[Clause]:
    """The clauses of a rule, in the order in which they are to be tried."""
    patterns = _Patterns(rule, made)
    found = []
    for clause in patterns.pattern(rule.syntax.pattern, (), Clause()):
        found.append(patterns.typed(clause))
        if len(found) > MOST_CLAUSES:
            raise RuleLimitError(
                f"rule {rule.name} has more than {MOST_CLAUSES} orders of operands to try",
                place=Place(rule.file, rule.line),
                hint="write some of its commutative patterns with parentheses",
            )
    return _distinct(found, certain=not rule.syntax.clauses and not rule.syntax.partial)


def _distinct(clauses: list[Clause], certain: bool) -> list[Clause]:
    """The clauses without any that can never be the first to apply: it has the constraints of an earlier one, and, unless nothing
    can fail after them (`certain`), its bindings.
    """
    seen: set[object] = set()
    out = []
    for clause in clauses:
        key = (frozenset(clause.constraints), clause.gaps, None if certain else tuple(clause.names.items()))
        if key not in seen:
            seen.add(key)
            out.append(clause)
    return out


class _Patterns:
    """The patterns of one rule; each method extends a clause."""

    def __init__(self, rule: CheckedRule, made: Clauses) -> None:
        self.rule = rule
        self.dialect = rule.dialect
        self.made = made
        self.code = made.code
        self.access = made.access
        self.closed = bool(getattr(rule.dialect, "closed_types", False))
        # the ops whose operands are to be statements
        apart = made.branches.isdisjoint(S.ops_named(rule.syntax.pattern))
        self.whole = made.among if apart else frozenset[str]()

    def info(self, name: str) -> OpInfo:
        return self.dialect.ops[name]

    def asked(self, condition: ast.expr, *paths: Path, values: Sequence[Path] = (), ends: int = 0) -> Constraint:
        """The constraint with a condition of the pattern: nodes below are read only after it."""
        return self.made.constraint(condition, *paths, values=values, ends=ends, guards=True)

    def of_op(self, clause: Clause, path: Path, op: str) -> Clause:
        clause = clause._replace(
            constraints=(*clause.constraints, self.made.op(path, op)), ops={**clause.ops, path: op}
        )
        return clause.plus(self.of_statements(path)) if op in self.whole else clause

    def of_statements(self, path: Path) -> Constraint:
        """The constraint that no operand is a part of a branch, which holds together what stands between it and another."""
        parts = self.made.members(map(self.access.key, sorted(self.made.branches)))
        each = self.code.each(
            self.code.compare(self.access.opkey(self.access.each), "in", parts),
            ("_o",),
            self.access.operands(self.made.node(path)),
        )
        return self.asked(self.code.unary("not", self.code.call("any", each)), path)

    # patterns

    def pattern(self, p: S.Pattern, path: Path, clause: Clause) -> Iterator[Clause]:
        ty = self.rule.types.get(id(p))
        if ty is not None and path not in clause.types:
            clause = clause._replace(types={**clause.types, path: ty})
        match p:
            case S.PVar():
                yield self.variable(p, path, clause)
            case S.PBind():
                for c in self.pattern(p.inner, path, clause):
                    yield self.made.bound(c, p.name, self.made.node_bound(path))
            case S.PConst():
                yield self.constant(p, path, clause)
            case S.PLiteral():
                clause = self.is_const(path, clause)
                yield clause.plus(literals.equal(self.made, p.value, path, self.possible(path, clause)))
            case S.POp():
                for op in p.ops:
                    yield from self.operation(p, op, path, clause)
            case S.PStruct():
                yield from self.struct(p, path, clause)
            case S.PAlternatives():
                for option in p.options:
                    yield from self.pattern(option, path, clause)
            case _:
                raise AssertionError(f"{type(p).__name__} is no pattern of a node")

    def variable(self, p: S.PVar, path: Path, clause: Clause) -> Clause:
        clause = self.made.bound(clause, p.name, self.made.node_bound(path))
        binding = self.rule.bindings.get(p.name)
        tolerant = _mentions_maybe(p.type) or (binding is not None and binding.invalid_ok)
        return clause if tolerant else clause._replace(leaves=(*clause.leaves, (path, p.name)))

    def is_const(self, path: Path, clause: Clause) -> Clause:
        op = self.access.const_op
        if op is not None:
            clause = self.of_op(clause, path, op)
        return (
            clause
            if built_in(self.dialect)
            else clause.plus(self.asked(self.access.holds_number(self.made.node(path)), path))
        )

    def constant(self, p: S.PConst, path: Path, clause: Clause) -> Clause:
        if p.kind in ("vconst", "anyconst"):
            return self.vector_constant(p, path, clause)
        clause = self.is_const(path, clause)
        if p.kind != "const":
            return clause.plus(literals.special(self.made, p.kind, path, self.possible(path, clause)))
        if p.bound is None:
            return clause
        old = clause.names.get(p.bound)
        if old is not None:
            same = self.code.call("_same_value", old.code, self.made.value(path))
            values = (old.path, path) if old.kind == "value" else (path,)
            return clause.plus(self.asked(same, old.path, path, values=values, ends=old.ends))
        return self.made.bound(clause, p.bound, Binding("value", path, self.made.value(path)))

    def vector_constant(self, p: S.PConst, path: Path, clause: Clause) -> Clause:
        n, info = self.made.node(path), constants_op(self.dialect)
        assert info is not None  # the checker has said so
        lanes = self.access.field(info.name, n, info.fields[0])
        if p.kind == "vconst":
            clause = self.of_op(clause, path, info.name)
            read = lanes
        else:
            vector = self.access.is_op(n, info.name)
            clause = clause.plus(self.asked(self.code.any_of((vector, self.access.is_const(n))), path))
            repeated = self.code.binary(self.code.tuple_of((self.access.value(n),)), "*", self.access.lanes(n))
            read = self.code.choice(vector, lanes, repeated)
        return clause if p.name is None else self.made.bound(clause, p.name, Binding("read", path, read))

    def possible(self, path: Path, clause: Clause) -> frozenset[str]:
        """The element dtypes that the rule admits at `path`."""
        ty = clause.types.get(path)
        if ty is None:
            return frozenset(self.dialect.dtypes)
        return frozenset((ty.element,)) if ty.fixed else frozenset(self.rule.domains[ty.element])

    def operation(self, p: S.POp, op: str, path: Path, clause: Clause) -> Iterator[Clause]:
        clause = self.of_op(clause, path, op)
        info = self.info(op)
        operands = [a for a in p.args if not isinstance(a, S.PType)]
        sequences = [a for a in operands if isinstance(a, S.PSequence)]
        clause = self.counted(info, len(operands) - len(sequences), bool(sequences), path, clause)
        end = self.access.count(self.made.node(path))
        for order in itertools.permutations(operands) if p.commutative else (operands,):
            c, placed = self.in_order(order, 0, end, None, path, clause)
            yield from self.operands(placed, path, c)

    def in_order(
        self, items: Sequence[S.Pattern], index: int, end: ast.expr, stop: ast.expr | None, path: Path, clause: Clause
    ) -> tuple[Clause, list[tuple[int, S.Pattern]]]:
        """The clause with these patterns for the operands from `index` on, and (step, pattern) of each that is no sequence.

        `end`: the index behind their last operand; `stop`: the same as the end of a slice.
        """
        at = next((i for i, item in enumerate(items) if isinstance(item, S.PSequence)), None)
        if at is None:
            return clause, [(index + i, item) for i, item in enumerate(items)]
        first = items[at]
        assert isinstance(first, S.PSequence)
        before = [(index + i, item) for i, item in enumerate(items[:at])]
        start = index + at
        operands = self.access.operands(self.made.node(path))
        if at == len(items) - 1:
            read = self.code.part(operands, self._start(start), stop)
            return self.sequence(first, Binding("read", path, read), clause), before
        last = items[-1] if isinstance(items[-1], S.PSequence) else None
        single = items[at + 1 : -1] if last is not None else items[at + 1 :]
        number = len(clause.gaps)
        ended = self.code.name(gap_name(number))
        clause = clause._replace(gaps=(*clause.gaps, Gap(path, start, len(single), end, pinned=last is None)))
        read = self.code.part(operands, self.code.constant(start), ended)
        clause = self.sequence(first, Binding("read", path, read, number + 1), clause)
        if last is not None:
            rest = self.code.part(operands, self.code.plus(ended, len(single)), stop)
            clause = self.sequence(last, Binding("read", path, rest, number + 1), clause)
        return clause, before + [(behind(number, i), item) for i, item in enumerate(single)]

    def _start(self, index: int) -> ast.expr | None:
        return self.code.constant(index) if index else None

    def operands(self, operands: list[tuple[int, S.Pattern]], path: Path, clause: Clause) -> Iterator[Clause]:
        if not operands:
            yield clause
            return
        (i, first), rest = operands[0], operands[1:]
        for c in self.pattern(first, (*path, i), clause):
            yield from self.operands(rest, path, c)

    def has_count(self, path: Path, op: str, count: int) -> Constraint:
        """The constraint that compares the node's number of operands with `count`."""
        number = self.access.count(self.made.node(path))
        return self.asked(self.code.compare(number, op, self.code.constant(count)), path)

    def counted(self, info: OpInfo, singles: int, more: bool, path: Path, clause: Clause) -> Clause:
        """The clause with a constraint on the number of operands, unless the op fixes it."""
        if not any(o.many or o.optional for o in info.operands):
            assert singles + more >= 1 or not info.operands, info.name
            return self.exactly(len(info.operands), path, clause)
        least = sum(1 for o in info.operands if not (o.many or o.optional))
        if more:
            return clause if singles <= least else clause.plus(self.has_count(path, ">=", singles))
        return clause.plus(self.has_count(path, "==", singles))

    def exactly(self, count: int, path: Path, clause: Clause) -> Clause:
        """The clause with the constraint that the node has as many operands as its op, unless the dialect guarantees that."""
        return clause if self.closed else clause.plus(self.has_count(path, "==", count))

    def sequence(self, p: S.PSequence | S.PVar, bound: Binding, clause: Clause) -> Clause:
        """The clause with operands bound to one name: each has the name's dtype and lanes, and none is Invalid unless the name
        may be.
        """
        code, path = self.code, bound.path
        old = clause.names.get(p.name)
        if old is not None and old.kind == "read":  # the same nodes as before
            a, b = code.name("a"), code.name("b")
            pairs = code.each(self.access.same(a, b), ("a", "b"), code.call("zip", old.code, bound.code))
            alike = code.compare(code.call("len", old.code), "==", code.call("len", bound.code))
            condition = code.all_of((alike, code.call("all", pairs)))
            return clause.plus(self.asked(condition, old.path, path, ends=max(old.ends, bound.ends)))
        binding = self.rule.bindings.get(p.name)
        ty = self.rule.types.get(id(p)) or (binding.type if binding is not None else None)
        tolerant = _mentions_maybe(p.type) or (binding is not None and binding.invalid_ok)
        if self.may_be_invalid(ty) and not tolerant:
            invalid = code.each(self.access.asked("invalid", self.access.each), ("_o",), bound.code)
            condition = code.unary("not", code.call("any", invalid))
            clause = clause.plus(self.asked(condition, path, ends=bound.ends))
        if ty is not None:
            clause = clause._replace(several=(*clause.several, Several(path, bound.code, ty, bound.ends)))
        return self.made.bound(clause, p.name, bound)

    def may_be_invalid(self, ty: Ty | None) -> bool:
        """True if a node of this dtype could be Invalid: only at index, and only in dialects with an Invalid."""
        if "invalid" not in self.access.inline or ty is None or ty.pointer or ty.place:
            return False
        return ty.element == "index" if ty.fixed else "index" in self.rule.domains[ty.element]

    # struct patterns

    def struct(self, p: S.PStruct, path: Path, clause: Clause) -> Iterator[Clause]:
        info = self.info(p.op)
        clause = self.of_op(clause, path, p.op)
        if not any(o.many or o.optional for o in info.operands):
            clause = self.exactly(len(info.operands), path, clause)
        named = {f.name: f.value for f in p.fields}
        clause = (
            self.waits_for_nothing(info, named, path, clause) if p.rest else self.no_more(info, named, path, clause)
        )
        nested: list[tuple[int, S.Pattern]] = []
        for f in p.fields:
            index = next((i for i, o in enumerate(info.operands) if o.name == f.name), None)
            if index is None:
                n = self.made.node(path)
                read = self.access.type(n) if f.name == "dtype" else self.access.field(p.op, n, f.name)
                value = S.EName(f.name) if f.value is None else f.value
                clause = self.field(info, f.name, value, Binding("read", path, read), clause)
                continue
            operand = info.operands[index]
            if isinstance(f.value, S.PList):
                clause, listed = self.listed(info, f.value, index, path, clause)
                nested += listed
            elif operand.many:
                clause = self.many(info, f, index, path, clause)
            elif operand.optional:
                clause, pattern = self.optional(info, f, index, path, clause)
                if pattern is not None:
                    nested.append(pattern)
            else:
                nested.append((index, S.PVar(f.name) if f.value is None else _as_pattern(f.value)))
                if f.value is None:
                    clause = clause._replace(types={**clause.types, **self._field_type(f, (*path, index))})
        yield from self.operands(nested, path, clause)

    def _field_type(self, f: S.PField, path: Path) -> dict[Path, Ty]:
        binding = self.rule.bindings.get(f.name)
        ty = self.rule.types.get(id(f)) or (binding.type if binding is not None else None)
        return {} if ty is None else {path: ty}

    def waits_for_nothing(self, info: OpInfo, named: Mapping[str, object], path: Path, clause: Clause) -> Clause:
        """The clause with the constraint that the node has no order dependence that the pattern does not name: `..` ignores no
        effects.
        """
        if not any(o.many and o.position == "order" and o.name not in named for o in info.operands):
            return clause
        return self.no_more(info, {o.name: None for o in info.operands if o.optional} | dict(named), path, clause)

    def no_more(self, info: OpInfo, named: Mapping[str, object], path: Path, clause: Clause) -> Clause:
        """The clause with the constraint that operands without a name in the pattern are absent."""
        optional = [i for i, o in enumerate(info.operands) if o.optional]
        for i in optional:
            if info.operands[i].name not in named:
                clause = clause.plus(self.asked(self.code.unary("not", self.presence(info, i, path)), path))
        if all(o.name in named for o in info.operands if o.many):
            return clause
        least = sum(1 for o in info.operands if not (o.many or o.optional))
        count = self.access.count(self.made.node(path))
        for i in optional:
            count = self._without(count, info, i, path)
        return clause.plus(self.asked(self.code.compare(count, "==", self.code.constant(least)), path))

    def _without(self, count: ast.expr, info: OpInfo, index: int, path: Path) -> ast.expr:
        """The number of operands without the optional one at `index`."""
        return self.code.binary(count, "-", self.code.call("bool", self.presence(info, index, path)))

    def presence(self, info: OpInfo, index: int, path: Path) -> ast.expr:
        """The test that an optional operand is present: by a field if a sequence stands before it, else by the count."""
        n = self.made.node(path)
        if any(o.many for o in info.operands[:index]):
            return self.access.field(info.name, n, info.fields[0])
        return self.code.compare(self.access.count(n), ">", self.code.constant(index))

    def listed(
        self, info: OpInfo, items: S.PList, index: int, path: Path, clause: Clause
    ) -> tuple[Clause, list[tuple[int, S.Pattern]]]:
        """The clause with a list of patterns for a sequence, and (step, pattern) of each. Two sequences at the end share the
        operands evenly.
        """
        if info.in_halves:
            singles, count = sum(1 for o in info.operands if not o.many), len(items.items)
            clause = clause.plus(self.has_count(path, "==", singles + 2 * count))
            start = singles if index == singles else singles + count
            return clause, [(start + i, item) for i, item in enumerate(items.items)]
        single = sum(1 for i in items.items if not isinstance(i, S.PSequence))
        after = [i for i, o in enumerate(info.operands) if o.optional and i > index]
        end = self.access.count(self.made.node(path))
        if after:
            end = self._without(end, info, after[0], path)
        enough = self.code.compare(
            end, "==" if single == len(items.items) else ">=", self.code.constant(index + single)
        )
        clause = clause.plus(self.asked(enough, path))
        return self.in_order(items.items, index, end, end if after else None, path, clause)

    def many(self, info: OpInfo, f: S.PField, index: int, path: Path, clause: Clause) -> Clause:
        code = self.code
        p = S.PVar(f.name) if f.value is None else _as_sequence(f.value)
        operands = self.access.operands(self.made.node(path))
        after = [i for i, o in enumerate(info.operands) if o.optional and i > index]
        if info.in_halves:
            singles = sum(1 for o in info.operands if not o.many)
            rest = code.plus(self.access.count(self.made.node(path)), -singles)
            middle = code.binary(code.constant(singles), "+", code.binary(rest, "//", code.constant(2)))
            first = index == singles
            read = code.part(operands, code.constant(singles), middle) if first else code.part(operands, middle, None)
        elif after:  # the optional operand at the end may be absent
            short = code.part(operands, code.constant(index), code.constant(-1))
            here = self.presence(info, after[0], path)
            read = code.choice(here, short, code.part(operands, code.constant(index), None))
        else:
            read = code.part(operands, self._start(index), None)
        return self.sequence(p, Binding("read", path, read), clause)

    def optional(
        self, info: OpInfo, f: S.PField, index: int, path: Path, clause: Clause
    ) -> tuple[Clause, tuple[int, S.Pattern] | None]:
        code = self.code
        here = self.presence(info, index, path)
        at = -1 if any(o.many for o in info.operands[:index]) else index
        match f.value:
            case S.PNone():
                return clause.plus(self.asked(code.unary("not", here), path)), None
            case S.PSome():
                return clause.plus(self.asked(here, path)), (at, f.value.inner)
            case None:  # bound as it is: a node or None
                p = S.PVar(f.name)
            case _:
                p = _as_variable(f.value)
        node = self.access.operand(self.made.node(path), at)
        binding = self.rule.bindings.get(p.name)
        ty = self.rule.types.get(id(p)) or (binding.type if binding is not None else None)
        if ty is not None:
            listed = code.choice(here, code.list_of((node,)), code.tuple_of(()))
            clause = clause._replace(several=(*clause.several, Several(path, listed, ty)))
        # a name's own constraints cover the others
        if p.ignored and self.may_be_invalid(ty) and not _mentions_maybe(p.type):
            invalid = code.all_of((here, self.access.asked("invalid", node)))
            clause = clause.plus(self.asked(code.unary("not", invalid), path))
        bound = Binding("read", path, code.choice(here, node, code.none))
        old = clause.names.get(p.name)
        if old is not None and old.kind == "read":
            return clause.plus(self.asked(code.compare(old.code, "is", bound.code), old.path, path)), None
        return self.made.bound(clause, p.name, bound), None

    # static fields

    def field(self, info: OpInfo, name: str, value: object, read: Binding, clause: Clause) -> Clause:
        """The clause with a field matched against an expression: variables are bound, all else is compared; constants as their
        dtype's.
        """
        code, path = self.code, read.path
        match value:
            case S.PVar() | S.EName():
                old = clause.names.get(value.name)
                if value.name.startswith("_"):
                    return self.made.bound(clause, value.name, read)
                if old is not None:
                    assert old.kind != "node", "a node is no static field"
                    values = (old.path,) if old.kind == "value" else ()
                    is_constant = info.field_kind(name) in ("const", "consts")
                    pair = (old.code, read.code)
                    same = code.call("_same_value", *pair) if is_constant else code.compare(pair[0], "==", pair[1])
                    return clause.plus(self.asked(same, old.path, path, values=values, ends=old.ends))
                if value.name in self.rule.bindings:
                    return self.made.bound(clause, value.name, read)
                if name == "op" and value.name in self.dialect.ops:
                    return clause.plus(self.asked(self.access.alike(read.code, self.access.key(value.name)), path))
                # a member of an enum, compared by name
                named = code.call("getattr", read.code, code.constant("name"), read.code)
                return clause.plus(self.asked(code.compare(named, "==", code.constant(value.name)), path))
            case S.PLiteral() | S.ENumber() if info.field_kind(name) in ("const", "consts"):
                found = literals.held(self.made, value.value, read.code, path, self.possible(path, clause))
                return clause.plus(self.asked(code.all_of(found), path))
            case S.PLiteral() | S.ENumber():
                return clause.plus(self.asked(code.compare(read.code, "==", code.constant(value.value)), path))
            case S.EList():
                length = code.compare(code.call("len", read.code), "==", code.constant(len(value.items)))
                clause = clause.plus(self.asked(length, path))
                for i, item in enumerate(value.items):
                    clause = self.field(info, name, item, replace(read, code=code.item(read.code, i)), clause)
                return clause
            case S.PExpr():
                return self.field(info, name, value.value, read, clause)
            case S.EType() | S.PType():
                return clause  # a dtype field: the dtype constraints look at it
        raise AssertionError(f"{type(value).__name__} cannot be matched with a field")

    # dtypes, lanes, Invalid

    def typed(self, clause: Clause) -> Clause:
        """The clause with the constraints on dtypes, lanes and Invalid that its ops do not imply."""
        dtypes = DtypeConstraints(self.rule, clause, self.made)
        clause = clause.plus(*dtypes.of_dtypes(), *dtypes.of_lanes(), *dtypes.of_sequences())
        return clause.plus(*self.valid(clause))

    def valid(self, clause: Clause) -> list[Constraint]:
        """The constraints that variables at index are not Invalid. Arithmetic is strict in Invalid: if all operands of a node
        need the test, the node itself is tested instead, a test that more rules share.
        """
        names = dict(clause.leaves)
        wanted = {p for p in names if self.may_be_invalid(clause.types.get(p))}
        covered: set[str] = set()  # variables below a node that is tested
        for path in sorted(clause.ops, key=len, reverse=True):
            info = self.info(clause.ops[path])
            if not info.result or info.result not in info.params:
                continue
            below = [(*path, i) for i, word in enumerate(info.params) if word == info.result]
            const = self.access.const_op
            if any(b in wanted for b in below) and all(b in wanted or clause.ops.get(b) == const for b in below):
                wanted.difference_update(below)
                covered.update(names[b] for b in below if b in names)
                wanted.add(path)
        for path in sorted(wanted & names.keys()):
            if not names[path].startswith("_"):
                if names[path] in covered:  # the same node was tested elsewhere
                    wanted.discard(path)
                covered.add(names[path])
        return [self.made.constraint(self.is_valid(p), p) for p in sorted(wanted)]

    def is_valid(self, path: Path) -> ast.expr:
        return self.code.unary("not", self.access.asked("invalid", self.made.node(path)))


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
