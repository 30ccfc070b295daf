"""The parts of the text of clauses and target: variables and dtypes, where the pattern left them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort, Ty
from morok.dsl.infer import universe
from morok.dsl.rows import Accessors, BoundCode, BoundNode, BoundNodes, BoundValue, Path, Variant, key_name, step_name


@functools.cache
def node_name(path: Path) -> str:
    """The variable that holds the node at `path`: n, n0, n0_1, ng0p1."""
    return "n" + "_".join(map(step_name, path))


def value_name(path: Path) -> str:
    """The variable that holds the value of the constant at `path`."""
    return "v" + node_name(path)[1:]


def helper_name(rule: CheckedRule, name: str) -> str:
    """The name of a helper in generated code: files may declare helpers of one name in different modules."""
    return f"H_{(rule.helpers or '').replace('.', '_')}_{name}"


@dataclass(slots=True)
class Tail:
    """The text for a row after its tests.

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


class Names:
    """One row of a rule, and the text made for it so far."""

    def __init__(self, rule: CheckedRule, row: Variant, number: int, order: int) -> None:
        self.rule = rule
        self.row = row
        self.number = number
        self.dialect = rule.dialect
        self.access = Accessors(rule.dialect)
        self.tail = Tail(order)
        self.locals: dict[str, str] = {}
        self.shadowing: set[str] = set()  # variables of the comprehensions that the text is inside of
        self.counters: set[str] = set()  # of these, the variables that run over numbers from 0 on
        self.iterating = 0  # how many comprehensions the text is the sequence of
        self.needs_steps = False  # the text counts steps
        self.raises = False
        self.temporaries = 0
        self.matched = self._matched_terms()
        self.most: dict[str, int] = {}  # compile-time amounts that were tried: shifts, powers of two

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

    def _matched_terms(self) -> dict[tuple[str, tuple[str, ...]], Path]:
        """The pattern's own pointwise nodes, so that a clause or target that says one again does not build it."""
        found = {}
        for path, op in self.row.ops.items():
            info = self.dialect.ops[op]
            if info.params and not self.given_dtype(info):
                found[(op, tuple(node_name((*path, i)) for i in range(len(info.params))))] = path
        return found

    def sort(self, e: S.Expr) -> Sort | None:
        return self.rule.sorts.get(id(e))

    def type(self, e: S.Syntax) -> Ty | None:
        return self.rule.types.get(id(e))

    def is_dtype(self, e: S.Expr) -> bool:
        return isinstance(e, S.EType) or self.sort(e) is Sort.DTYPE

    def given_dtype(self, info: OpInfo) -> bool:
        return info.result in info.domains and info.result not in info.params

    def name(self, name: str) -> str:
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
                return f"{self.access.operands(self.node_at(bound.path))}{bound.span}"
            case BoundCode():
                return bound.template.format(self.node_at(bound.path))
        if any(ty.lanes == name for ty in (*self.row.types.values(), *(s.type for s in self.row.several))):
            return self.lanes_of(name)
        if name in self.dialect.ops:
            return self.key(name)
        if name in self.dialect.dtypes:
            return f"D_{name}"
        if name in self.rule.domains:
            return self.dtype_variable(name)
        return repr(name)

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
        for s in self.row.several:  # the matcher has seen that there is one
            if s.type.element == name and not s.type.fixed and not s.type.pointer and not s.type.place:
                return self.access.scalar(f"{s.template.format(self.node_at(s.path))}[0]")
        raise AssertionError(f"{self.rule.name}: nothing in the pattern has the dtype {name}")

    def lanes_of(self, lanes: int | str) -> str:
        if isinstance(lanes, int):
            return str(lanes)
        for path, known in self.row.types.items():
            if known.lanes == lanes:
                return self.access.lanes(self.node_at(path))
        for s in self.row.several:
            if s.type.lanes == lanes and not self.rule.own_lanes(lanes):
                return self.access.lanes(f"{s.template.format(self.node_at(s.path))}[0]")
        return "1"

    def vector_of(self, element: str, lanes: int | str) -> str:
        return self.access.inline["vector"].format(d=element, k=self.lanes_of(lanes))

    def type_syntax(self, t: S.TypeSyntax) -> str:
        match t:
            case S.TName():
                if t.name in self.dialect.dtypes:
                    return f"D_{t.name}"
                vector = universe(self.dialect).vector(t.name)
                return self.dtype_variable(t.name) if vector is None else self.vector_of(f"D_{vector[0]}", vector[1])
            case S.TVector():
                element = self.type_syntax(t.element)
                return self.vector_of(element, t.lanes)
            case S.TMaybeInvalid():
                return self.type_syntax(t.inner)
        raise AssertionError(f"{type(t).__name__} names no single dtype")


def bare(code: str) -> str:
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
