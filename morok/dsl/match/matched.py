"""The match of a clause as actions read it: the variables and dtypes that the pattern binds."""

from __future__ import annotations

import ast

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort, Ty
from morok.dsl.infer import universe
from morok.dsl.match.clauses import Binding, Clause, Clauses, Path, Several


class Matched:
    """One clause of a rule, and the state of generating the code of its action.

    nodes, values  the paths of the nodes, and of the constants' values, that the code reads
    locals     the variables of `let` and of comprehensions
    shadowing  the names that the comprehensions around the code bind
    counters   the subset of these with integers >= 0 as values
    iterating  the number of comprehensions over whose sequences the code is
    steps      the code counts steps
    raises     the code may raise an exception, for lack of a value
    builds     it builds a node of an op that may refuse operands of its dtypes: with static fields, or any number of operands
    terms      the pattern's own pointwise nodes, by op and operands: a clause or target reuses such a node
    most       the greatest compile-time amounts that the proof tried: shifts, powers of two
    """

    def __init__(self, rule: CheckedRule, clause: Clause, made: Clauses) -> None:
        self.rule = rule
        self.clause = clause
        self.made = made
        self.code = made.code
        self.access = made.access
        self.dialect = rule.dialect
        self.nodes: set[Path] = set()
        self.values: set[Path] = set()
        self.locals: dict[str, ast.expr] = {}
        self.shadowing: set[str] = set()
        self.counters: set[str] = set()
        self.iterating = 0
        self.steps = False
        self.raises = False
        self.builds = False
        self.temporaries = 0
        self.terms: dict[tuple[object, ...], Path] = {}
        for path, op in clause.ops.items():
            info = self.dialect.ops[op]
            if info.params and not info.converts:
                self.terms[op, *(made.node((*path, i)) for i in range(len(info.params)))] = path
        self.most: dict[str, int] = {}

    def temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def node(self, path: Path) -> ast.expr:
        self.nodes.add(path)
        return self.made.node(path)

    def read(self, binding: Binding) -> ast.expr:
        (self.values if binding.kind == "value" else self.nodes).add(binding.path)
        return binding.code

    def sort(self, e: S.Expr) -> Sort | None:
        return self.rule.sorts.get(id(e))

    def type(self, e: S.Syntax) -> Ty | None:
        return self.rule.types.get(id(e))

    def is_dtype(self, e: S.Expr) -> bool:
        return isinstance(e, S.EType) or self.sort(e) is Sort.DTYPE

    def name(self, name: str) -> ast.expr:
        local = self.locals.get(name)
        if local is not None:
            return local
        bound = self.clause.names.get(name)
        if bound is not None:
            return self.read(bound)
        if any(ty.lanes == name for ty in (*self.clause.types.values(), *(s.type for s in self.clause.several))):
            return self.lanes_of(name)
        if name in self.dialect.ops:
            return self.access.key(name)
        if name in self.dialect.dtypes:
            return self.access.dtype(name)
        if name in self.rule.domains:
            return self.dtype_variable(name)
        return self.code.constant(name)

    def dtype_of(self, ty: Ty) -> ast.expr:
        """The dtype object of a Ty: read from a node of the pattern that has it, else built from element and lanes."""
        for path, known in self.clause.types.items():
            if known == ty and not ty.pointer and not ty.place:
                return self.access.type(self.node(path))
        element = self.element_of(ty)
        if ty.lanes == 1 or "vector" not in self.access.inline:
            return element
        return self.access.vector(element, self.lanes_of(ty.lanes))

    def element_of(self, ty: Ty) -> ast.expr:
        return self.access.dtype(ty.element) if ty.fixed else self.dtype_variable(ty.element)

    def dtype_variable(self, name: str) -> ast.expr:
        for path, known in self.clause.types.items():
            if known.element == name and not known.fixed and not known.pointer and not known.place:
                return self.access.scalar(self.node(path))
        for s in self.clause.several:  # the matcher has tested that its elements have one dtype
            if s.type.element == name and not s.type.fixed and not s.type.pointer and not s.type.place:
                return self.access.scalar(self.first(s))
        raise AssertionError(f"{self.rule.name}: nothing in the pattern has the dtype {name}")

    def first(self, s: Several) -> ast.expr:
        """The first of some operands, which stands for all; it has no value where there is none."""
        self.nodes.add(s.path)
        self.raises = True
        return self.code.item(s.code, 0)

    def tells(self, lanes: int | str) -> bool:
        """True if the pattern has a node of these lanes, or a sequence whose elements all have them."""
        found = (*self.clause.types.values(), *(s.type for s in self.clause.several if not self.rule.own_lanes(lanes)))
        return isinstance(lanes, int) or any(ty.lanes == lanes for ty in found)

    def lanes_of(self, lanes: int | str) -> ast.expr:
        """The number of lanes that a type names; no value where nothing that was matched has it."""
        if isinstance(lanes, int):
            return self.code.constant(lanes)
        for path, known in self.clause.types.items():
            if known.lanes == lanes:
                return self.access.lanes(self.node(path))
        for s in self.clause.several:
            if s.type.lanes == lanes and not self.rule.own_lanes(lanes):
                return self.access.lanes(self.first(s))
        self.raises = True
        return self.code.call("_no_value")

    def type_syntax(self, t: S.TypeSyntax) -> ast.expr:
        match t:
            case S.TName():
                if t.name in self.dialect.dtypes:
                    return self.access.dtype(t.name)
                vector = universe(self.dialect).vector(t.name)
                if vector is None:
                    return self.dtype_variable(t.name)
                return self.access.vector(self.access.dtype(vector[0]), self.lanes_of(vector[1]))
            case S.TVector():
                return self.access.vector(self.type_syntax(t.element), self.lanes_of(t.lanes))
            case S.TMaybeInvalid():
                return self.type_syntax(t.inner)
        raise AssertionError(f"{type(t).__name__} names no single dtype")


def helper_name(rule: CheckedRule, name: str) -> str:
    """The name of a helper in generated code: files may declare helpers of one name in different modules."""
    return f"H_{(rule.helpers or '').replace('.', '_')}_{name}"
