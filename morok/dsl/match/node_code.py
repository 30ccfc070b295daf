"""The code of the nodes that a rule builds: constants, pointwise ops, structs, sequences of operands."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import Sort, Ty
from morok.dsl.constant_lanes import beside
from morok.dsl.match.dtype_constraints import ANY
from morok.dsl.match.matched import Matched
from morok.dsl.match.value_code import ValueCode


class NodeCode(ValueCode):
    """The code of expressions of every sort.

    beside  the dtypes of constants that have that of a node beside them, by the identities of their expressions
    """

    def __init__(self, matched: Matched) -> None:
        super().__init__(matched)
        self.beside: dict[int, ast.expr] = {}

    def any(self, e: S.Expr) -> ast.expr:
        """The code of an expression of any sort."""
        sort = self.matched.sort(e)
        if sort is Sort.NODE:
            return self.node(e)
        if sort is Sort.NODES:
            return self.sequence(e)
        return self.value(e)

    def node(self, e: S.Expr) -> ast.expr:
        """A node: an expression of sort NODE, or a compile-time value in operand position, which becomes a constant."""
        match e:
            case S.EName():
                bound = self.matched.clause.names.get(e.name)
                is_bound = e.name not in self.matched.locals and bound is not None and bound.kind == "node"
                return self.matched.name(e.name) if is_bound or self._is_node(e) else self.constant(e)
            case S.ECall():
                if e.name in self.dialect.ops:
                    return self.build(self.dialect.ops[e.name], e)
                if e.name in ("zero", "one", "const", "identity"):
                    return self.special_constant(e)
                if e.name == "subst":
                    self.matched.raises = True  # it raises where a loop inside would capture the substitute
                    return self.code.call("_subst", *map(self.node, e.args))
                if e.name == "inside":
                    return self.fact("inside", self.node(e.args[0]))
                if e.name in self.rule.externs and self.matched.sort(e) is Sort.NODE:
                    return self.helper(e)
            case S.EStruct():
                return self.build_struct(self.dialect.ops[e.op], e)
            case S.EIndex() if self.matched.sort(e) is Sort.NODE:
                return self.item(e)
        return self.constant(e)

    def _is_node(self, e: S.EName) -> bool:
        sort = self.matched.sort(e)
        if sort is not None:
            return sort is Sort.NODE
        binding = self.rule.bindings.get(e.name)
        return binding is not None and binding.sort is Sort.NODE

    # constants

    def constant(self, e: S.Expr) -> ast.expr:
        value = self.finite(e)
        ty = self.matched.type(e)
        assert ty is not None, f"{self.rule.name}: the dtype of a constant is not known"
        return self.const_of(value, self.beside.get(id(e)) or self.matched.dtype_of(ty))

    def operands_of(self, given: Sequence[S.Expr]) -> list[ast.expr]:
        """The operands of an op that works lane by lane. A constant of lanes that the pattern does not tell has the dtype of a
        node beside it.
        """
        for at, node in beside(self.rule, given).items():
            ty = self.matched.type(node)
            if ty is not None and not self.matched.tells(ty.lanes):
                self.beside[at] = self.access.type(self.node(node))
        return [self.node(a) for a in given]

    def dtype_like(self, of: S.Expr, ty: Ty | None) -> ast.expr:
        """The dtype of a node, which is known to be `ty`; of storage that of one element."""
        own = self.matched.type(of)
        if ty is not None and own is not None and (own.pointer or own.place):
            return self.matched.element_of(ty)
        if ty is None or not self.matched.tells(ty.lanes):
            return self.access.type(self.node(of))
        return self.matched.dtype_of(ty)

    def dtype_said(self, e: S.ECall, ty: Ty) -> ast.expr:
        """The dtype of `const(v, T)`."""
        said = e.args[1]
        if id(e) in self.beside:
            return self.beside[id(e)]
        if self.matched.tells(ty.lanes):
            return self.matched.dtype_of(ty)
        if isinstance(said, S.ECall) and said.name == "dtype" and len(said.args) == 1:
            return self.dtype_like(said.args[0], ty)
        if isinstance(said, S.EType) and any(s.type.lanes == ty.lanes for s in self.matched.clause.several):
            return self.matched.dtype_of(ty)
        return self.value(said)

    def const_of(self, value: ast.expr, dtype: ast.expr) -> ast.expr:
        template = self.access.inline.get("const")
        if template is None:
            return self.access.method("const", dtype, value)
        return self.code.filled(template, v=value, d=dtype)

    def may_be_index(self, ty: Ty | None) -> bool:
        """True if a node may be of a dtype without a least and a greatest value."""
        admitted = () if ty is None else (ty.element,) if ty.fixed else self.rule.domains[ty.element]
        return ty is None or "index" in admitted

    def special_constant(self, e: S.ECall) -> ast.expr:
        ty = self.matched.type(e)
        if e.name == "const":
            assert ty is not None
            return self.const_of(self.finite(e.args[0]), self.dtype_said(e, ty))
        dtype = self.dtype_like(e.args[-1], ty)
        if e.name == "identity":
            self.matched.raises = self.matched.raises or self.may_be_index(self.matched.type(e.args[1]))
            scalar = self.access.scalar(self.node(e.args[1]))
            return self.const_of(self.fact("identity", self.value(e.args[0]), scalar), dtype)
        return self.const_of(self.code.constant(0 if e.name == "zero" else 1), dtype)

    # sequences

    def sequence(self, e: S.Expr) -> ast.expr:
        """A sequence of nodes or values."""
        match e:
            case S.EName():
                return self.matched.name(e.name)
            case S.EList():
                return self.listed(e)
            case S.EComprehension():
                return self.comprehension(e)
            case S.ERange():
                return self.range(e)
        return self.value(e)

    def listed(self, e: S.EList) -> ast.expr:
        """A list; with several spreads it may be too long to have a value."""
        items = self._items(e.items)
        if sum(isinstance(i, S.ESpread) for i in e.items) < 2:
            return self.code.list_of(items)
        return self.checked("_listed", self.code.tuple_of(items))

    def _items(self, items: Iterable[S.Expr], operands: bool = False) -> list[ast.expr]:
        """The items of a list; among `operands` all are nodes, and the name of a sequence stands for all of them."""
        out = []
        for item in items:
            if isinstance(item, S.ESpread):
                out.append(self.code.star(self.sequence(item.sequence)))
            elif isinstance(item, S.EComprehension):
                out.append(self.code.star(self.comprehension(item, nodes=operands)))
            elif operands and isinstance(item, S.EName) and self._is_sequence(item):
                out.append(self.code.star(self.sequence(item)))
            elif isinstance(item, S.EList) and not operands:  # an axis among axes is a pair
                out.append(self.code.tuple_of(self._items(item.items)))
            else:
                out.append(self.node(item) if operands else self.any(item))
        return out

    def _is_sequence(self, e: S.EName) -> bool:
        binding = self.rule.bindings.get(e.name)
        return self.matched.sort(e) is Sort.NODES or (binding is not None and binding.sort is Sort.NODES)

    def comprehension(self, e: S.EComprehension, nodes: bool = False) -> ast.expr:
        m = self.matched
        m.iterating += 1
        source = self.items(e.sequence)
        m.iterating -= 1
        m.steps = m.raises = True
        steps = self.code.name("steps")
        if len(e.names) == 1 or (isinstance(e.sequence, S.ECall) and e.sequence.name == "zip"):
            paid = self.code.call(self.code.attribute(steps, "taken"), source)
        else:
            paid = self.code.call(self.code.attribute(steps, "parted"), source, self.code.constant(len(e.names)))
        outer = dict(m.locals), m.shadowing, m.counters
        m.shadowing = m.shadowing | set(e.names)
        counts = isinstance(e.sequence, S.ERange) and self.from_zero(e.sequence.start)
        m.counters = m.counters | set(e.names) if counts else m.counters - set(e.names)
        names = [local_name(n) for n in e.names]
        m.locals.update(zip(e.names, map(self.code.name, names), strict=True))
        body = self.node(e.body) if nodes else self.any(e.body)
        condition = None if e.condition is None else self.condition(e.condition)
        m.locals, m.shadowing, m.counters = outer
        return self.code.each(body, names, paid, condition)

    def range(self, e: S.ERange) -> ast.expr:
        start, stop = self.finite(e.start), self.finite(e.stop)
        if e.inclusive:
            stop = self.code.plus(stop, 1)
        elif isinstance(e.stop, S.ECall) and e.stop.name in ("len", "lanes") and self.from_zero(e.start):
            return self.code.call("range", start, stop)  # no longer than a sequence or a vector that exists
        return self.checked("_numbers", start, stop)

    # nodes

    def build(self, info: OpInfo, e: S.ECall) -> ast.expr:
        given = [a for a in e.args if not self.matched.is_dtype(a)]
        if info.params and not info.converts and len(given) == len(info.params) and not info.fields:
            return self.pointwise(info.name, self.operands_of(given))
        many = any(o.many for o in info.operands)
        count = len(given) if many else min(len(given), len(info.operands))
        operands = self._items(given[:count], operands=True)
        fields = dict(zip(info.fields, given[count:], strict=False))
        made = {k: self.field(k, v, info.field_kind(k)) for k, v in fields.items()}
        return self.assemble(info, operands, made, self.wanted_dtype(info, e))

    def pointwise(self, op: str, operands: Sequence[ast.expr]) -> ast.expr:
        matched = self.matched.terms.get((op, *operands))
        if matched is not None:
            return self.matched.node(matched)
        template = self.access.inline.get(f"pointwise{len(operands)}")
        if template is None:
            return self.built(op, operands, {}, self.code.none)
        return self.code.filled(template, op=self.access.key(op), **dict(zip("abc", operands, strict=False)))

    def assemble(
        self, info: OpInfo, operands: Sequence[ast.expr], fields: Mapping[str, ast.expr], dtype: ast.expr
    ) -> ast.expr:
        template = self.access.inline.get(f"build.{info.name}")
        if template is not None and len(operands) == 1 and not isinstance(operands[0], ast.Starred) and not fields:
            return self.code.filled(template, a=operands[0], d=dtype)
        if info.fields or any(o.many for o in info.operands):
            self.matched.builds = True
        return self.built(info.name, operands, fields, dtype)

    def built(self, op: str, operands: Sequence[ast.expr], fields: Mapping[str, ast.expr], dtype: ast.expr) -> ast.expr:
        """The call of the dialect's method that builds a node."""
        given = self.code.dict_of({self.code.constant(k): v for k, v in fields.items()})
        return self.access.method("build", self.code.constant(op), self.code.tuple_of(operands), given, dtype)

    def wanted_dtype(self, info: OpInfo, e: S.ECall | S.EStruct) -> ast.expr:
        """The dtype that a node is built with: the matched node's for the target; elsewhere the one that the rule writes, or that
        follows from the pattern; None if the op derives it from its operands.
        """
        if e is self.rule.syntax.target:
            return self.access.type(self.matched.node(()))
        ty = self.matched.type(e)
        if ty is None or ty.pointer or ty.place or ty.element == ANY:
            return self.code.none
        dtypes = isinstance(e, S.ECall) and any(map(self.matched.is_dtype, e.args))
        written = info.converts or not info.operands or dtypes
        known = isinstance(ty.lanes, int) or any(t.lanes == ty.lanes for t in self.matched.clause.types.values())
        if known:
            return self.matched.dtype_of(ty)
        return self.matched.element_of(ty) if written else self.code.none  # the op finds its lanes by its operands

    def build_struct(self, info: OpInfo, e: S.EStruct) -> ast.expr:
        given = dict(e.fields)
        operands: list[ast.expr] = []
        for o in info.operands:
            value = given.pop(o.name, None)
            if value is None or isinstance(value, S.ENone):
                continue
            bound = self.matched.clause.names.get(value.name) if isinstance(value, S.EName) else None
            if o.many and isinstance(value, S.EList):
                operands += self._items(value.items, operands=True)
            elif o.many and isinstance(value, S.EComprehension):
                operands += self._items((value,), operands=True)
            elif o.many:
                operands.append(self.code.star(self.sequence(value)))
            elif o.optional and bound is not None and bound.kind == "read":
                there = self.matched.read(bound)  # bound as it was: a node or None
                absent = self.code.compare(there, "is", self.code.none)
                operands.append(
                    self.code.star(self.code.choice(absent, self.code.tuple_of(()), self.code.tuple_of((there,))))
                )
            else:
                operands.append(self.node(value))
        dtype = given.pop("dtype", None)
        fields = {k: self.field(k, v, info.field_kind(k)) for k, v in given.items()}
        return self.assemble(info, operands, fields, self.wanted_dtype(info, e) if dtype is None else self.value(dtype))

    def field(self, name: str, e: S.Expr, kind: str) -> ast.expr:
        """A static field: sequences, also of pairs, become tuples, and an unbound name is a member of the field's enum."""
        names = self.matched.clause.names
        if isinstance(e, S.EName) and name != "op" and e.name not in self.matched.locals and e.name not in names:
            return self.code.item(self.code.attribute(self.access.methods, "members"), self.code.constant(e.name))
        infinite = id(e) in self.rule.unbounded
        if isinstance(e, (S.EList, S.EComprehension)) or self.matched.sort(e) is Sort.VALUES:
            items = self.sequence(e)
            self.matched.raises = self.matched.raises or infinite
            if kind == "pairs" and not (isinstance(e, S.EName) and e.name in names):
                items = self.code.call("map", self.code.name("tuple"), items)
            elif infinite:
                items = self.code.call("map", self.code.name("_finite"), items)
            return self.code.call("tuple", items)
        return self.finite(e) if infinite else self.value(e)


def local_name(name: str) -> str:
    """The variable of a name that `let` or a comprehension binds."""
    return f"u_{name}"
