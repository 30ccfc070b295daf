"""Nodes that a rule builds, as Python text: constants, pointwise ops, structs, sequences of operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import Sort, Ty
from morok.dsl.emit_names import bare
from morok.dsl.emit_values import Values
from morok.dsl.rows import BoundCode, BoundNode
from morok.dsl.slots import ANY


class Nodes(Values):
    """Expressions of every sort."""

    def any(self, e: S.Expr) -> str:
        """The code of an expression of whatever sort it has."""
        sort = self.sort(e)
        if sort is Sort.NODE:
            return self.node(e)
        if sort is Sort.NODES:
            return self.sequence(e)
        return self.value(e)

    def node(self, e: S.Expr) -> str:
        """A node: an expression of sort NODE, or a compile-time value in operand position, which becomes a constant."""
        match e:
            case S.EName():
                bound = self.row.names.get(e.name)
                if e.name not in self.locals and isinstance(bound, BoundNode):
                    return self.node_at(bound.path)
                if self._is_node(e):
                    return self.name(e.name)
                return self.constant(e)
            case S.ECall():
                if e.name in self.dialect.ops:
                    return self.build(self.dialect.ops[e.name], e)
                if e.name in ("zero", "one", "const", "identity"):
                    return self.special_constant(e)
                if e.name == "subst":
                    self.raises = True  # where a loop inside would capture what is put in
                    return f"_subst({', '.join(bare(self.node(a)) for a in e.args)})"
                if e.name == "inside":
                    return f"{self.fact('inside')}({self.node(e.args[0])})"
                if e.name in self.rule.externs and self.sort(e) is Sort.NODE:
                    return self.helper(e)
                return self.constant(e)
            case S.EStruct():
                return self.build_struct(self.dialect.ops[e.op], e)
            case S.EIndex():
                return self.item(e) if self.sort(e) is Sort.NODE else self.constant(e)
        return self.constant(e)

    def bearer(self, e: S.Expr) -> str:
        """A node of which only a fact is read."""
        bound = self.row.names.get(e.name) if isinstance(e, S.EName) and e.name not in self.locals else None
        return self.node_at(bound.path) if isinstance(bound, BoundNode) else self.node(e)

    def _is_node(self, e: S.EName) -> bool:
        sort = self.sort(e)
        if sort is not None:
            return sort is Sort.NODE
        binding = self.rule.bindings.get(e.name)
        return binding is not None and binding.sort is Sort.NODE

    def constant(self, e: S.Expr) -> str:
        code = self.finite(e)
        ty = self.type(e)
        assert ty is not None, f"{self.rule.name}: the dtype of a constant is not known"
        return self.const_of(code, self.dtype_of(ty))

    def const_of(self, value: str, dtype: str) -> str:
        template = self.access.inline.get("const")
        if template is None:
            return f"_d.const({dtype}, {bare(value)})"
        return template.format(v=bare(value), d=dtype)

    def may_be_index(self, ty: Ty | None) -> bool:
        """True if a node may be of a dtype without a least and a greatest value."""
        admitted = () if ty is None else (ty.element,) if ty.fixed else self.rule.domains[ty.element]
        return ty is None or "index" in admitted

    def special_constant(self, e: S.ECall) -> str:
        ty = self.type(e)
        if e.name == "const":
            value = self.finite(e.args[0])
            assert ty is not None
            return self.const_of(value, self.dtype_of(ty))
        dtype = self.access.type(self.bearer(e.args[-1])) if ty is None else self.dtype_of(ty)
        if e.name == "identity":
            self.raises = self.raises or self.may_be_index(self.type(e.args[1]))
            scalar = self.access.scalar(self.bearer(e.args[1]))
            return self.const_of(f"{self.fact('identity')}({self.value(e.args[0])}, {scalar})", dtype)
        return self.const_of("0" if e.name == "zero" else "1", dtype)

    def sequence(self, e: S.Expr) -> str:
        """A sequence of nodes or values."""
        match e:
            case S.EName():
                return self.name(e.name)
            case S.EList():
                return self.listed(e)
            case S.EComprehension():
                return f"[{self.comprehension(e)}]"
            case S.ERange():
                return self.range(e)
        return self.value(e)

    def listed(self, e: S.EList) -> str:
        """A list; one that others are spread in may become too long to have a value."""
        items = self._items(e.items)
        if sum(isinstance(i, S.ESpread) for i in e.items) < 2:
            return f"[{', '.join(items)}]"
        return self.checked("_listed", f"({', '.join([*items, ''])})")

    def _items(self, items: Iterable[S.Expr], operands: bool = False) -> list[str]:
        """The items of a list; among `operands` all are nodes, and the name of a sequence stands for all of them."""
        out = []
        for item in items:
            if isinstance(item, S.ESpread):
                out.append(f"*{self.sequence(item.sequence)}")
            elif isinstance(item, S.EComprehension):
                out.append(f"*[{self.comprehension(item, nodes=operands)}]")
            elif operands and isinstance(item, S.EName) and self._is_sequence(item):
                out.append(f"*{self.sequence(item)}")
            elif isinstance(item, S.EList) and not operands:  # an axis among axes is a pair
                out.append(f"({', '.join([*self._items(item.items), ''])})")
            else:
                out.append(bare(self.node(item) if operands else self.any(item)))
        return out

    def _is_sequence(self, e: S.EName) -> bool:
        binding = self.rule.bindings.get(e.name)
        return self.sort(e) is Sort.NODES or (binding is not None and binding.sort is Sort.NODES)

    def comprehension(self, e: S.EComprehension, nodes: bool = False) -> str:
        self.iterating += 1
        source = self.items(e.sequence)
        self.iterating -= 1
        self.needs_steps = self.raises = True
        paired = len(e.names) == 1 or (isinstance(e.sequence, S.ECall) and e.sequence.name == "zip")
        paid = f"steps.taken({bare(source)})" if paired else f"steps.parted({bare(source)}, {len(e.names)})"
        saved, outer, counters = dict(self.locals), self.shadowing, self.counters
        self.shadowing = outer | set(e.names)
        counts = isinstance(e.sequence, S.ERange) and self.from_zero(e.sequence.start)
        self.counters = counters | set(e.names) if counts else counters - set(e.names)
        names = [f"u_{n}" for n in e.names]
        self.locals.update(zip(e.names, names, strict=True))
        body = bare(self.node(e.body) if nodes else self.any(e.body))
        condition = "" if e.condition is None else f" if {bare(self.condition(e.condition))}"
        self.locals, self.shadowing, self.counters = saved, outer, counters
        return f"{body} for {', '.join(names)} in {paid}{condition}"

    def range(self, e: S.ERange) -> str:
        start, stop = bare(self.finite(e.start)), self.finite(e.stop)
        if e.inclusive:
            stop = f"{stop} + 1"
        as_many_as_there_are = isinstance(e.stop, S.ECall) and e.stop.name in ("len", "lanes") and self.from_zero(e.start)
        if as_many_as_there_are and not e.inclusive:
            return f"range({start}, {bare(stop)})"
        self.raises = True
        return f"_numbers({start}, {stop})"

    def build(self, info: OpInfo, e: S.ECall) -> str:
        args = [a for a in e.args if not self.is_dtype(a)]
        if info.params and not self.given_dtype(info) and len(args) == len(info.params) and not info.fields:
            operands = [self.node(a) for a in args]
            return self.pointwise(info.name, operands)
        many = any(o.many for o in info.operands)
        count = len(args) if many else min(len(args), len(info.operands))
        operands = self._items(args[:count], operands=True)
        fields = dict(zip(info.fields, args[count:], strict=False))
        return self.assemble(
            info, operands, {k: self.field(k, v, info.field_kind(k)) for k, v in fields.items()}, self.wanted_dtype(info, e)
        )

    def pointwise(self, op: str, operands: Sequence[str]) -> str:
        matched = self.matched.get((op, tuple(operands)))
        if matched is not None:
            return self.node_at(matched)
        template = self.access.inline.get(f"pointwise{len(operands)}")
        if template is None:
            return f"_d.build({op!r}, ({', '.join(operands)},), {{}}, None)"
        return template.format(op=self.key(op), **dict(zip("abc", map(bare, operands), strict=False)))

    def assemble(self, info: OpInfo, operands: Sequence[str], fields: dict[str, str], dtype: str) -> str:
        template = self.access.inline.get(f"build.{info.name}")
        if template is not None and len(operands) == 1 and not operands[0].startswith("*") and not fields:
            return template.format(a=bare(operands[0]), d=dtype)
        given = ", ".join(f"{k!r}: {v}" for k, v in fields.items())
        tupled = f"({', '.join(operands)},)" if operands else "()"
        return f"_d.build({info.name!r}, {tupled}, {{{given}}}, {dtype})"

    def wanted_dtype(self, info: OpInfo, e: S.ECall | S.EStruct) -> str:
        """The dtype that a node is built with: the matched node's for the target; elsewhere the one that is written, or that
        follows from the pattern; "None" where the op finds it by its operands.
        """
        if e is self.rule.syntax.target:
            return self.access.type(self.node_at(()))
        ty = self.type(e)
        if ty is None or ty.pointer or ty.place or ty.element == ANY:
            return "None"
        written = self.given_dtype(info) or not info.operands or (isinstance(e, S.ECall) and any(map(self.is_dtype, e.args)))
        known = isinstance(ty.lanes, int) or any(t.lanes == ty.lanes for t in self.row.types.values())
        return self.dtype_of(ty) if written or known else "None"

    def build_struct(self, info: OpInfo, e: S.EStruct) -> str:
        given = dict(e.fields)
        operands: list[str] = []
        for o in info.operands:
            value = given.pop(o.name, None)
            if value is None or isinstance(value, S.ENone):
                continue
            if o.many and isinstance(value, S.EList):
                operands += self._items(value.items, operands=True)
            elif o.many and isinstance(value, S.EComprehension):
                operands += self._items((value,), operands=True)
            elif o.many:
                operands.append(f"*{self.sequence(value)}")
            elif o.optional and isinstance(value, S.EName) and isinstance(self.row.names.get(value.name), BoundCode):
                name = self.name(value.name)  # bound as it was: a node or None
                operands.append(f"*(() if {name} is None else ({name},))")
            else:
                operands.append(bare(self.node(value)))
        dtype = given.pop("dtype", None)
        fields = {k: self.field(k, v, info.field_kind(k)) for k, v in given.items()}
        return self.assemble(info, operands, fields, self.wanted_dtype(info, e) if dtype is None else self.value(dtype))

    def field(self, name: str, e: S.Expr, kind: str) -> str:
        """A static field: sequences, also of pairs, become tuples, and an unbound name is a member of the field's enum."""
        if isinstance(e, S.EName) and name != "op" and e.name not in self.locals and e.name not in self.row.names:
            return f"_d.members[{e.name!r}]"
        infinite = id(e) in self.rule.unbounded
        if isinstance(e, (S.EList, S.EComprehension)) or self.sort(e) is Sort.VALUES:
            items = self.sequence(e)
            self.raises = self.raises or infinite
            if kind == "pairs" and not (isinstance(e, S.EName) and e.name in self.row.names):
                return f"tuple(map(tuple, {items}))"
            return f"tuple(map(_finite, {items}))" if infinite else f"tuple({items})"
        return bare(self.finite(e) if infinite else self.value(e))
