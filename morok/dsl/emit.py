"""What happens once a pattern has matched: clauses, helpers and target of a rule, as Python text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort, Ty
from morok.dsl.rows import Accessors, BoundCode, BoundNode, BoundNodes, BoundValue, Path, Variant, key_name
from morok.dsl.slots import ANY

# Arithmetic that may have no value raises this (morok.dsl.runtime.NoValue) or ZeroDivisionError.
_FAILURES = "_failures"
_INFIX = {"+", "-", "*", "//", "%", "&", "|", "^"}
_CALLS = {"is_pow2": "_is_pow2", "log2": "_log2", "tdiv": "_tdiv", "tmod": "_tmod", "gcd": "_gcd"}
_DTYPE_FACTS = ("bits", "is_int", "is_float", "safe_cast")


def node_name(path: Path) -> str:
    """The variable that holds the node at `path`: n, n0, n0_1."""
    return "n" + "_".join(str(i) if i >= 0 else f"m{-i}" for i in path)


def value_name(path: Path) -> str:
    """The variable that holds the value of the constant at `path`."""
    return "v" + node_name(path)[1:]


def helper_name(rule: CheckedRule, name: str) -> str:
    """How generated code calls a helper: files may declare helpers of one name in different modules."""
    return f"H_{(rule.helpers or '').replace('.', '_')}_{name}"


@dataclass(slots=True)
class Tail:
    """The text of what a row does after its tests.

    order  which of its rule's rows it belongs to
    lines  indented from 0; falls off the end where a clause fails, else returns
    nodes, values  which path variables it reads
    certain  it never falls off the end
    """

    order: int
    lines: list[str] = field(default_factory=list)
    nodes: set[Path] = field(default_factory=set)
    values: set[Path] = field(default_factory=set)
    certain: bool = True


class Emitter:
    """Emits the tail of row `order` of the rule that a matcher knows by `number`."""

    def __init__(self, rule: CheckedRule, row: Variant, number: int, order: int) -> None:
        self.rule = rule
        self.row = row
        self.number = number
        self.dialect = rule.dialect
        self.access = Accessors(rule.dialect)
        self.tail = Tail(order)
        self.depth = 0
        self.locals: dict[str, str] = {}
        self.shadowing: set[str] = set()  # variables of the comprehensions that the text is inside of
        self.infinite: set[str] = set()  # let-bound names that may hold an unknown bound
        self.raises = False
        self.temporaries = 0
        self.matched = self._matched_terms()

    # text

    def line(self, text: str) -> None:
        self.tail.lines.append("    " * self.depth + text)

    def temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def key(self, op: str) -> str:
        return key_name(op)

    def node_at(self, path: Path) -> str:
        self.tail.nodes.add(path)
        return node_name(path)

    def value_at(self, path: Path) -> str:
        self.tail.values.add(path)
        return value_name(path)

    def emit(self) -> Tail:
        for clause in self.rule.syntax.clauses:
            if isinstance(clause, S.If):
                self.guard(clause.condition)
            else:
                self.let(clause)
        self.target()
        return self.tail

    def _matched_terms(self) -> dict[tuple[str, tuple[str, ...]], Path]:
        """The pattern's own pointwise nodes, so that a clause or target that says one again does not build it."""
        found = {}
        for path, op in self.row.ops.items():
            info = self.dialect.ops[op]
            if info.params and not self._given_dtype(info):
                found[(op, tuple(node_name((*path, i)) for i in range(len(info.params))))] = path
        return found

    # clauses

    def guard(self, condition: S.Expr) -> None:
        self.tail.certain = False
        self.raises = False
        code = self.boolean(condition, strict=False)
        if self.raises:
            test = self.temporary()
            self.line("try:")
            self.line(f"    {test} = {code}")
            self.line(f"except {_FAILURES}:")
            self.line(f"    {test} = False")
            code = test
        self.line(f"if {_bare(code)}:")
        self.depth += 1

    def let(self, clause: S.Let) -> None:
        self.raises = False
        value = clause.value
        partial = isinstance(value, S.ECall) and value.name in self.rule.externs and self.rule.externs[value.name].partial
        code = self.any(value)
        names = [f"u_{name}" for name in clause.names]
        target = names[0] if len(names) == 1 else f"({', '.join(names)})"
        if partial:
            self.tail.certain = False
            result = self.temporary()
            if self.raises:
                self.line("try:")
                self.line(f"    {result} = {code}")
                self.line(f"except {_FAILURES}:")
                self.line(f"    {result} = None")
            else:
                self.line(f"{result} = {code}")
            self.line(f"if {result} is not None:")
            self.depth += 1
            self.line(f"{target} = {result}")
        elif self.raises:
            self.tail.certain = False
            self.line("try:")
            self.line(f"    {target} = {_bare(code)}")
            self.line(f"except {_FAILURES}:")
            self.line("    pass")
            self.line("else:")
            self.depth += 1
        else:
            self.line(f"{target} = {_bare(code)}")
        for name, local in zip(clause.names, names, strict=True):
            self.locals[name] = local
            if len(names) == 1 and self.may_be_infinite(value):
                self.infinite.add(name)

    def target(self) -> None:
        self.raises = False
        code = self.node(self.rule.syntax.target)
        root = self.node_at(())
        operand = code in {node_name(p) for p in self.tail.nodes if p}
        if operand:  # never the node itself
            if hasattr(self.dialect, "keep"):
                self.line(f"_keep({root}, {code}, {self.rule.name!r})")
            self.line(f"return {code}, {self.number}")
            return
        made = code not in self.locals.values()
        derive = [f"_derive({root}, {self.rule.name!r})"] if made and hasattr(self.dialect, "derive") else []
        if self._is_new() and not self.raises:
            for text in derive:
                self.line(text)
            self.line(f"return {_bare(code)}, {self.number}")
            return
        self.tail.certain = False
        result = self.temporary()
        lines = [*derive, f"{result} = {_bare(code)}"]
        if self.raises:
            self.line("try:")
            for text in lines:
                self.line("    " + text)
            self.line(f"except {_FAILURES}:")
            self.line("    pass")
            self.line("else:")
            self.depth += 1
        else:
            for text in lines:
                self.line(text)
        self.line(f"if not ({self.access.same(result, root)}):")
        if not made and hasattr(self.dialect, "keep"):
            self.line(f"    _keep({root}, {result}, {self.rule.name!r})")
        self.line(f"    return {result}, {self.number}")

    def _is_new(self) -> bool:
        """Whether the target cannot be the node that was matched, because it is a node of another op."""
        target = self.rule.syntax.target
        root = self.row.ops.get(())
        const = self.access.const_op
        if root is None or root in (const, "VConst"):
            return False
        match target:
            case S.ECall() if target.name in self.dialect.ops:
                return root != target.name
            case S.EStruct():
                return root != target.op
            case S.ECall(name="zero" | "one" | "const") | S.ENumber() | S.EBinary() | S.EUnary():
                return const is not None
            case S.EName() | S.ECall():
                return const is not None and self.sort(target) is Sort.VALUE
        return False

    # expressions

    def sort(self, e: S.Expr) -> Sort | None:
        return self.rule.sorts.get(id(e))

    def type(self, e: S.Syntax) -> Ty | None:
        return self.rule.types.get(id(e))

    def any(self, e: S.Expr) -> str:
        """The code of an expression of whatever sort it has."""
        sort = self.sort(e)
        if sort is Sort.NODE:
            return self.node(e)
        if sort is Sort.NODES:
            return self.sequence(e)
        return self.value(e)

    # nodes

    def node(self, e: S.Expr) -> str:
        """A node: an expression of sort NODE, or a compile-time value in operand position, which becomes a constant."""
        match e:
            case S.EName():
                bound = self.row.names.get(e.name)
                if e.name not in self.locals and isinstance(bound, BoundNode):
                    return self.node_at(bound.path)
                if self._is_node(e):
                    return self._name(e.name)
                return self.constant(e)
            case S.ECall():
                if e.name in self.dialect.ops:
                    return self.build(self.dialect.ops[e.name], e)
                if e.name in ("zero", "one", "const"):
                    return self.special_constant(e)
                if e.name == "subst":
                    return f"_subst({', '.join(_bare(self.node(a)) for a in e.args)})"
                if e.name in self.rule.externs and self.sort(e) is Sort.NODE:
                    return self.helper(e)
                return self.constant(e)
            case S.EStruct():
                return self.build_struct(self.dialect.ops[e.op], e)
            case S.EIndex():
                if self.sort(e) is Sort.NODE:
                    return f"{self.any(e.sequence)}[{self.value(e.index)}]"
                return self.constant(e)
        return self.constant(e)

    def _is_node(self, e: S.EName) -> bool:
        if self.sort(e) is Sort.NODE:
            return True
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
            return f"_d.const({dtype}, {_bare(value)})"
        return template.format(v=_bare(value), d=dtype)

    def special_constant(self, e: S.ECall) -> str:
        ty = self.type(e)
        if e.name == "const":
            value = self.finite(e.args[0])
            assert ty is not None
            return self.const_of(value, self.dtype_of(ty))
        dtype = self.access.type(self.node(e.args[0])) if ty is None else self.dtype_of(ty)
        return self.const_of("0" if e.name == "zero" else "1", dtype)

    def sequence(self, e: S.Expr) -> str:
        """A sequence of nodes or values."""
        match e:
            case S.EName():
                return self._name(e.name)
            case S.EList():
                return f"[{', '.join(self._items(e.items))}]"
            case S.EComprehension():
                return f"[{self.comprehension(e)}]"
            case S.ERange():
                return self.range(e)
            case S.ECall(name="zip"):
                return f"zip({', '.join(self.sequence(a) for a in e.args)}, strict=True)"
            case S.ECall() if e.name in self.rule.externs:
                return self.helper(e)
            case S.EIndex():
                return f"{self.sequence(e.sequence)}[{self.value(e.index)}]"
        return self.value(e)

    def _items(self, items: Iterable[S.Expr]) -> list[str]:
        out = []
        for item in items:
            if isinstance(item, S.ESpread):
                out.append(f"*{self.sequence(item.sequence)}")
            elif isinstance(item, S.EComprehension):
                out.append(f"*[{self.comprehension(item)}]")
            else:
                out.append(_bare(self.any(item)))
        return out

    def _operand_items(self, items: Iterable[S.Expr]) -> list[str]:
        out = []
        for item in items:
            if isinstance(item, S.ESpread):
                out.append(f"*{self.sequence(item.sequence)}")
            elif isinstance(item, S.EComprehension):
                out.append(f"*[{self.comprehension(item, nodes=True)}]")
            elif isinstance(item, S.EName) and self._is_sequence(item):
                out.append(f"*{self.sequence(item)}")
            else:
                out.append(_bare(self.node(item)))
        return out

    def _is_sequence(self, e: S.EName) -> bool:
        binding = self.rule.bindings.get(e.name)
        return self.sort(e) is Sort.NODES or (binding is not None and binding.sort is Sort.NODES)

    def comprehension(self, e: S.EComprehension, nodes: bool = False) -> str:
        source = self.sequence(e.sequence)
        saved, outer = dict(self.locals), self.shadowing
        self.shadowing = outer | set(e.names)
        names = [f"u_{n}" for n in e.names]
        self.locals.update(zip(e.names, names, strict=True))
        body = _bare(self.node(e.body) if nodes else self.any(e.body))
        condition = "" if e.condition is None else f" if {_bare(self.boolean(e.condition, strict=True))}"
        self.locals, self.shadowing = saved, outer
        return f"{body} for {', '.join(names)} in {source}{condition}"

    def range(self, e: S.ERange) -> str:
        stop = self.finite(e.stop)
        return (
            f"range({_bare(self.finite(e.start))}, {stop} + 1)"
            if e.inclusive
            else f"range({_bare(self.finite(e.start))}, {_bare(stop)})"
        )

    # building

    def _given_dtype(self, info: OpInfo) -> bool:
        return info.result in info.domains and info.result not in info.params

    def build(self, info: OpInfo, e: S.ECall) -> str:
        args = [a for a in e.args if not self._is_dtype(a)]
        if info.params and not self._given_dtype(info) and len(args) == len(info.params) and not info.fields:
            operands = [self.node(a) for a in args]
            return self.pointwise(info.name, operands)
        many = any(o.many for o in info.operands)
        count = len(args) if many else min(len(args), len(info.operands))
        operands = self._operand_items(args[:count])
        fields = dict(zip(info.fields, args[count:], strict=False))
        return self.assemble(info, operands, {k: self.field(k, v) for k, v in fields.items()}, self.wanted_dtype(info, e))

    def pointwise(self, op: str, operands: Sequence[str]) -> str:
        matched = self.matched.get((op, tuple(operands)))
        if matched is not None:
            return self.node_at(matched)
        template = self.access.inline.get(f"pointwise{len(operands)}")
        if template is None:
            return f"_d.build({op!r}, ({', '.join(operands)},), {{}}, None)"
        return template.format(op=self.key(op), **dict(zip("abc", map(_bare, operands), strict=False)))

    def assemble(self, info: OpInfo, operands: Sequence[str], fields: dict[str, str], dtype: str) -> str:
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
        written = self._given_dtype(info) or not info.operands or (isinstance(e, S.ECall) and any(map(self._is_dtype, e.args)))
        known = isinstance(ty.lanes, int) or any(t.lanes == ty.lanes for t in self.row.types.values())
        return self.dtype_of(ty) if written or known else "None"

    def _is_dtype(self, e: S.Expr) -> bool:
        return isinstance(e, S.EType) or self.sort(e) is Sort.DTYPE

    def build_struct(self, info: OpInfo, e: S.EStruct) -> str:
        given = dict(e.fields)
        operands: list[str] = []
        for o in info.operands:
            value = given.pop(o.name, None)
            if value is None or isinstance(value, S.ENone):
                continue
            if o.many and isinstance(value, S.EList):
                operands += self._operand_items(value.items)
            elif o.many and isinstance(value, S.EComprehension):
                operands += self._operand_items((value,))
            elif o.many:
                operands.append(f"*{self.sequence(value)}")
            elif o.optional and isinstance(value, S.EName) and isinstance(self.row.names.get(value.name), BoundCode):
                name = self._name(value.name)  # bound as it was: a node or None
                operands.append(f"*(() if {name} is None else ({name},))")
            else:
                operands.append(_bare(self.node(value)))
        dtype = given.pop("dtype", None)
        fields = {k: self.field(k, v) for k, v in given.items()}
        return self.assemble(info, operands, fields, self.wanted_dtype(info, e) if dtype is None else self.value(dtype))

    def field(self, name: str, e: S.Expr) -> str:
        """A static field: sequences become tuples, names that nothing binds are members of the field's enum."""
        if isinstance(e, S.EName) and name != "op" and e.name not in self.locals and e.name not in self.row.names:
            return f"_d.members[{e.name!r}]"
        if isinstance(e, (S.EList, S.EComprehension)) or self.sort(e) is Sort.VALUES:
            return f"tuple({self.sequence(e)})"
        return _bare(self.value(e))

    # dtypes

    def dtype_of(self, ty: Ty) -> str:
        """The dtype object of a Ty: that of a node of the pattern which has it, else made from the element's and the lanes."""
        for path, known in self.row.types.items():
            if known == ty and not ty.pointer and not ty.place:
                return self.access.type(self.node_at(path))
        element = self.element_of(ty)
        vector = self.access.inline.get("vector")
        if ty.lanes == 1 or vector is None:
            return element
        return vector.format(d=element, k=self.lanes_of(ty.lanes))

    def element_of(self, ty: Ty) -> str:
        if ty.fixed:
            return f"D_{ty.element}"
        return self.dtype_variable(ty.element)

    def dtype_variable(self, name: str) -> str:
        for path, known in self.row.types.items():
            if known.element == name and not known.fixed and not known.pointer and not known.place:
                return self.access.scalar(self.node_at(path))
        raise AssertionError(f"{self.rule.name}: nothing in the pattern has the dtype {name}")

    def lanes_of(self, lanes: int | str) -> str:
        if isinstance(lanes, int):
            return str(lanes)
        for path, known in self.row.types.items():
            if known.lanes == lanes:
                return self.access.lanes(self.node_at(path))
        return "1"

    def type_syntax(self, t: S.TypeSyntax) -> str:
        match t:
            case S.TName():
                if t.name in self.dialect.dtypes:
                    return f"D_{t.name}"
                return self.dtype_variable(t.name)
            case S.TVector():
                element = self.type_syntax(t.element)
                return self.access.inline["vector"].format(d=element, k=self.lanes_of(t.lanes))
            case S.TMaybeInvalid():
                return self.type_syntax(t.inner)
        raise AssertionError(f"{type(t).__name__} names no single dtype")

    # values

    def _name(self, name: str) -> str:
        local = self.locals.get(name)
        if local is not None:
            return local
        bound = self.row.names.get(name)
        match bound:
            case BoundNode():
                return self.node_at(bound.path)
            case BoundValue():
                return self.value_at(bound.path)
            case BoundNodes():
                stop = "" if bound.stop is None else bound.stop
                return f"{self.access.operands(self.node_at(bound.path))}[{bound.start}:{stop}]"
            case BoundCode():
                return bound.template.format(self.node_at(bound.path))
        if any(ty.lanes == name for ty in self.row.types.values()):
            return self.lanes_of(name)
        if name in self.dialect.ops:
            return self.key(name)
        if name in self.dialect.dtypes:
            return f"D_{name}"
        if name in self.rule.domains:
            return self.dtype_variable(name)
        return repr(name)

    def value(self, e: S.Expr) -> str:
        match e:
            case S.EName():
                return self._name(e.name)
            case S.ENumber():
                return _number(e.value)
            case S.EUnary(op="not"):
                return self.boolean(e, strict=True)
            case S.EUnary():
                return f"({e.op}{self.finite(e.operand)})"
            case S.EBinary(op="and" | "or"):
                return self.boolean(e, strict=True)
            case S.EBinary():
                return self.arithmetic(e)
            case S.ECompare():
                return self.boolean(e, strict=True)
            case S.ECall():
                return self.call(e)
            case S.EIndex():
                self.raises = True
                return f"{self.sequence(e.sequence)}[{self.value(e.index)}]"
            case S.EList() | S.EComprehension() | S.ERange():
                return self.sequence(e)
            case S.EType():
                return self.type_syntax(e.type)
            case S.ENone():
                return "None"
        raise AssertionError(f"{type(e).__name__} has no value")

    def arithmetic(self, e: S.EBinary) -> str:
        left, right = self.finite(e.left), self.finite(e.right)
        if e.op in ("<<", ">>"):
            self.raises = True
            return f"{'_shl' if e.op == '<<' else '_shr'}({_bare(left)}, {_bare(right)})"
        assert e.op in _INFIX, e.op
        if e.op in ("//", "%") and not (isinstance(e.right, S.ENumber) and e.right.value):
            self.raises = True
        return f"({left} {e.op} {right})"

    def finite(self, e: S.Expr) -> str:
        """A value that arithmetic is done on: an unknown bound makes the clause fail."""
        code = self.value(e)
        if not self.may_be_infinite(e):
            return code
        self.raises = True
        name = self.temporary()
        return f"({name} if ({name} := {_bare(code)}).__class__ is not float else _no_value())"

    def may_be_infinite(self, e: S.Expr) -> bool:
        match e:
            case S.EName():
                return e.name in self.infinite
            case S.ECall(name="vmin" | "vmax"):
                ty = self.type(e.args[0])
                if ty is None and isinstance(e.args[0], S.EName):
                    binding = self.rule.bindings.get(e.args[0].name)
                    ty = None if binding is None else binding.type
                if ty is None:
                    return True
                names = (ty.element,) if ty.fixed else self.rule.domains.get(ty.element, ("index",))
                return any(n == "index" or n in self.dialect.classes.get("float", ()) for n in names)
            case S.ECall(name="min" | "max" | "abs"):
                return any(self.may_be_infinite(a) for a in e.args)
        return False

    def call(self, e: S.ECall) -> str:
        name = e.name
        if name in self.rule.externs:
            return self.helper(e)
        if name in self.dialect.ops or name in ("zero", "one", "const", "subst"):
            return self.node(e)
        if name == "eval":
            return self.evaluate(e)
        if name in ("vmin", "vmax"):
            node = self.node(e.args[0])
            template = self.access.inline.get(name)
            return f"{self.fact(name)}({node})" if template is None else template.format(n=node)
        if name == "same":
            return f"({self.access.same(self.node(e.args[0]), self.node(e.args[1]))})"
        if name == "dtype":
            return self.access.scalar(self.node(e.args[0]))
        if name == "lanes":
            return self.access.lanes(self.node(e.args[0]))
        if name == "no_overflow":
            return self.no_overflow(e.args[0])
        if name in _DTYPE_FACTS:
            return f"{self.fact(name)}({', '.join(self.value(a) for a in e.args)})"
        if name in _CALLS:
            self.raises = True
            return f"{_CALLS[name]}({', '.join(self.finite(a) for a in e.args)})"
        if name in ("min", "max", "abs"):
            return f"{name}({', '.join(_bare(self.value(a)) for a in e.args)})"
        if name in ("len", "all", "any"):
            inner = self.sequence(e.args[0]) if e.args else "()"
            return f"{name}({inner})"
        if name == "zip":
            return self.sequence(e)
        return f"{self.fact(name)}({', '.join(self.any(a) for a in e.args)})"

    def fact(self, name: str) -> str:
        return f"F_{name}"

    def no_overflow(self, e: S.Expr) -> str:
        """Whether the exact result of a term fits its dtype; the term is not built where its operands tell."""
        if "no_overflow_of" in self.dialect.facts and isinstance(e, S.ECall) and e.name in self.dialect.ops:
            operands = [self.node(a) for a in e.args]
            if self.matched.get((e.name, tuple(operands))) is None:
                return f"{self.fact('no_overflow_of')}({self.key(e.name)}, ({', '.join(operands)},))"
        return f"{self.fact('no_overflow')}({self.node(e)})"

    def evaluate(self, e: S.ECall) -> str:
        """`eval(op, ..)`: the op's evaluator, at the dtype of its operands (of the result, for casts)."""
        op = e.args[0]
        assert isinstance(op, S.EName)
        info = self.dialect.ops[op.name]
        self.raises = True
        values = [a for a in e.args[1:] if not self._is_dtype(a)]
        function = f"E_{op.name}"
        codes = ", ".join(_bare(self.finite(a)) for a in values)
        if self._given_dtype(info):
            result = self.type(e)
            assert result is not None
            return f"{function}({self.element_of(result)}, {codes}, {self.element_of(self._value_type(values[0]))})"
        place = next((i for i, word in enumerate(info.params) if word in info.domains), 0)
        return f"{function}({self.element_of(self._value_type(values[place]))}, {codes})"

    def _value_type(self, e: S.Expr) -> Ty:
        """The dtype of a constant's value: that of the constant it came from."""
        binding = self.rule.bindings.get(e.name) if isinstance(e, S.EName) and e.name not in self.shadowing else None
        ty = binding.type if binding is not None and binding.type is not None else self.type(e)
        assert ty is not None, f"{self.rule.name}: eval of a value without a dtype"
        return ty

    def helper(self, e: S.ECall) -> str:
        args = [_bare(self.any(a)) for a in e.args]
        if self.rule.context is not None:
            args.append("context")
        return f"{helper_name(self.rule, e.name)}({', '.join(args)})"

    # conditions

    def boolean(self, e: S.Expr, strict: bool) -> str:
        """A condition. Where the outcome is used positively, a part without a value may be skipped after one that is false;
        elsewhere (`strict`) every part is computed, as the proof's premise has it.
        """
        match e:
            case S.EBinary(op="and"):
                joint = " & " if strict else " and "
                return f"({self.boolean(e.left, strict)}{joint}{self.boolean(e.right, strict)})"
            case S.EBinary(op="or"):
                left, right = self._strictly(e.left), self._strictly(e.right)
                joint = " | " if left[1] or right[1] else " or "
                return f"({left[0]}{joint}{right[0]})"
            case S.EUnary(op="not"):
                return f"(not {self.boolean(e.operand, strict=True)})"
            case S.ECompare():
                return self.comparison(e, strict)
        return self.value(e)

    def _strictly(self, e: S.Expr) -> tuple[str, bool]:
        """Code that computes every part, and whether it can fail."""
        before, self.raises = self.raises, False
        code = self.boolean(e, strict=True)
        risky = self.raises
        self.raises = before or risky
        return code, risky

    def comparison(self, e: S.ECompare, strict: bool) -> str:
        dtypes = any(self.sort(o) is Sort.DTYPE for o in e.operands)
        codes = [self.any(o) for o in e.operands]
        if strict and len(e.ops) > 1 and self.raises:
            held = [self.temporary() for _ in codes]
            pairs = " and ".join(f"{a} {op} {b}" for a, op, b in zip(held, e.ops, held[1:], strict=False))
            every = ", ".join(f"({t} := {_bare(c)})" for t, c in zip(held, codes, strict=True))
            return f"([{every}] and {pairs})"
        ops = [{"==": "is", "!=": "is not"}.get(op, op) if dtypes and self.access.equal == "is" else op for op in e.ops]
        text = codes[0]
        for op, code in zip(ops, codes[1:], strict=True):
            text += f" {op} {code}"
        return f"({text})"


def _number(value: int | float | bool) -> str:
    if isinstance(value, (bool, int)):
        return repr(value)
    if value != value:
        return "_nan"
    return "_inf" if value == float("inf") else "(-_inf)" if value == float("-inf") else repr(value)


def _bare(code: str) -> str:
    """Without one pair of parentheses around the whole."""
    if not (code.startswith("(") and code.endswith(")")):
        return code
    depth = 0
    for i, c in enumerate(code):
        depth += c == "("
        depth -= c == ")"
        if depth == 0 and i < len(code) - 1:
            return code
    inner = code[1:-1]
    # a tuple stays one, and a walrus needs its parentheses
    return code if _has_top_level(inner) else inner


def _has_top_level(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += c in "([{"
        depth -= c in ")]}"
        if depth == 0 and (c == "," or text[i : i + 2] == ":="):
            return True
    return False


__all__ = ["Emitter", "Tail", "helper_name", "node_name", "value_name"]
