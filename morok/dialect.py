"""Dialects: op sets that can be rewritten and proved.

The engine (dsl, rewrite, prove) accesses nodes only through a `Dialect`: it assumes no hash-consing, no bounds, no closed
set of dtypes and no `UOp`. Morok's own IR is the built-in dialect (`morok.ir.morok_dialect`); `examples/foreign.py` declares
another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from morok import handed
from morok.arguments import choice, flag, function, instance, mapping, mistyped, several, shown, text
from morok.caller import caller
from morok.errors import DialectError, UnknownDialectError

Node = Any
DTypeLike = Hashable
_POSITIONS: Final = ("value", "place", "binder", "order")
_HELD: Final = ("", "storage", "count", "condition")
_ROLES: Final = ("", "take", "join", "constants", "fold", "open", "close")
_FIELD_KINDS: Final = ("int", "ints", "bool", "bools", "pairs", "const", "consts", "op", "other")


@dataclass(frozen=True, slots=True)
class OperandInfo:
    """One operand: its name in struct patterns; `position` is "value", "place", "binder" or "order".

    many      True for a sequence of operands
    optional  True if nodes may lack it
    holds     "storage": a pointer or a buffer, whose own dtype is ignored; "count": a number of elements or iterations;
              "condition": one lane of it governs all lanes of the others; "": an ordinary value
    """

    name: str
    position: str = "value"
    many: bool = False
    optional: bool = False
    holds: str = ""

    def __post_init__(self) -> None:
        text(self.name, "the name of an operand")
        choice(self.position, f"the position of operand {self.name}", _POSITIONS)
        choice(self.holds, f"`holds` of operand {self.name}", _HELD)
        for name in ("many", "optional"):
            object.__setattr__(self, name, flag(getattr(self, name), f"{name} of operand {self.name}"))


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One op of a dialect, as rules use it: a value, whose mappings are read-only.

    key         the value of `Dialect.opkey` for its nodes
    operands    in order; at most one takes a sequence (`many`), unless two of equal length end the list (Pad, Shrink)
    fields      names of static attributes
    params      the dtype of each operand: a letter of `domains`, or a dtype's name; () if the op is not pointwise
    result      the same for the result; "" if letters and names do not determine it
    domains     letter -> the dtype names that it ranges over
    kind        "unary" "binary" "ternary" or "", for `for op in binary [..]`
    evaluate    (dtype of the operands, *values) -> value, or raises the dialect's `undefined`; None without constant folding
    solver      import path "module:function" of its solver semantics; "" if rules over it cannot be proved pointwise
    types       for an op without `params`: relations between the types of operands and result, separated by `;`: "result = x"
                (same type), "result ~ x" (same element type), "x lanes y", "x bits y" (same number of them), "x scalar",
                "x in int bool" (element types of these classes or dtypes); operands without a relation may have any type
    field_kinds the kinds of static fields: "int" "ints" "bool" "bools" "pairs" "const" "consts" "op", followed by "?" if rules
                may omit the field; fields without a kind are passed through unread
    role        the effect of an op that rearranges lanes, to judge firings at any size: "take" (the lanes that its field
                names), "join" (the lanes of its operands, concatenated), "constants" (its field, of kind "consts"), "fold" (by
                the op that its field names, of adjacent lanes and over its other operands), "open" (lanes as iterations of the
                axes that its field names), "close" (the reverse); "" for other ops
    dtype_given True if rules name the dtype of the result as a last argument: `Bitcast(x, i32)`
    """

    name: str
    key: Hashable
    operands: tuple[OperandInfo, ...]
    fields: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    result: str = ""
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    kind: str = ""
    commutative: bool = False
    comparison: bool = False
    evaluate: Callable[..., Any] | None = None
    solver: str = ""
    types: str = ""
    field_kinds: Mapping[str, str] = field(default_factory=dict, hash=False)
    dtype_given: bool = False
    role: str = ""

    def __post_init__(self) -> None:
        of = f"of op {text(self.name, 'the name of an op')}"
        try:
            hash(self.key)
        except TypeError:
            raise mistyped(self.key, f"the key {of}", "something that has a hash") from None
        operands = several(self.operands, f"the operands {of}", "a tuple of OperandInfo")
        for o in operands:
            instance(o, OperandInfo, f"an operand {of}", "an OperandInfo")
        object.__setattr__(self, "operands", tuple(operands))
        for name in ("fields", "params"):
            object.__setattr__(self, name, _words(getattr(self, name), f"the {name} {of}"))
        domains = mapping(self.domains, f"the domains {of}", "the names of dtypes by letters")
        words = {text(letter, f"a letter {of}"): _words(names, f"a domain {of}") for letter, names in domains.items()}
        object.__setattr__(self, "domains", MappingProxyType(words))
        text(self.result, f"the result {of}")
        choice(self.role, f"the role {of}", _ROLES)
        choice(self.kind, f"the kind {of}", ("unary", "binary", "ternary", ""))
        for name in ("commutative", "comparison"):
            object.__setattr__(self, name, flag(getattr(self, name), f"{name} {of}"))
        if self.evaluate is not None:
            function(self.evaluate, f"evaluate {of}")
        text(self.solver, f"the solver {of}")
        text(self.types, f"the types {of}")
        kinds = mapping(self.field_kinds, f"the field kinds {of}", "kinds by the names of fields")
        for name, kind in kinds.items():
            choice(name, f"a field with a kind {of}", self.fields or ("no field",))
            choice(kind.removesuffix("?"), f"the kind of field {name} {of}", _FIELD_KINDS)
        object.__setattr__(self, "field_kinds", MappingProxyType(dict(kinds)))
        object.__setattr__(self, "dtype_given", flag(self.dtype_given, f"dtype_given {of}"))

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, f.name) for f in fields(self)]
        return OpInfo, tuple([dict(v) if isinstance(v, MappingProxyType) else v for v in values])

    @property
    def in_halves(self) -> bool:
        """True if the operands end with two sequences of equal length."""
        return sum(o.many for o in self.operands) == 2

    @property
    def converts(self) -> bool:
        """True if no operand has the result's dtype, so that rules must name it."""
        return self.result in self.domains and self.result not in self.params

    @property
    def leading(self) -> int:
        """The number of the operand whose dtype is passed to `evaluate`: the first with a letter, else the first."""
        return next((i for i, word in enumerate(self.params) if word in self.domains), 0)

    def field_kind(self, name: str) -> str:
        """The kind of a static field, without "?"; "other" for a field without a kind."""
        return self.field_kinds.get(text(name, "the name of a field"), "other").removesuffix("?")

    @property
    def required(self) -> tuple[str, ...]:
        """The static fields that rules must not omit."""
        return tuple(f for f in self.fields if not self.field_kinds.get(f, "").endswith("?"))


def _words(value: Any, what: str) -> tuple[str, ...]:
    return tuple([text(w, f"one of {what}") for w in several(value, what, "a tuple of words")])


@runtime_checkable
class Dialect(Protocol):
    """An op set. `inline` makes the generated matchers as fast as hand-written ones; without it they call the methods.

    name      its name in rule files: `dialect NAME`
    ops       by name in rules
    dtypes    scalar dtypes by name
    classes   dtype classes by name ("int", "float"): the dtype names in each
    inline    code templates by method name, `{n}` the node: {"opkey": "{n}.op", "operands": "{n}.src", "type": "{n}.dtype",
              "same": "{a} is {b}", "attr.NAME": ..., "attr.OP.NAME": ..., "vmin": "{n}.vmin", ...}
    facts     functions of nodes for guards, by name: vmin, vmax, free_of, ...
    theory    import path "module:Class" of its solver theory (sorts and values of its dtypes); imported by the prover only

    `operands` must return the same objects each time: the engine compares nodes by identity. Optional attributes:

    hash_consed  True if equal nodes are one object, hashed and compared by identity; their types are compared by equality
    closed_types True if the dtypes and the number of operands in every node are as its op declares: matchers then omit the tests
                 that follow from the op. Without it each node is tested
    inline       also "lanes", "scalar" and "vector" (of a dtype {d} and a count {k}) for vectors; "const_op", the op of
                 constants; "const" ({v}, {d}); "pointwise1" to "pointwise3" ({op}, {a}, {b}, {c}); "build.OP" of an op with
                 one operand {a}, at the result's dtype {d}; "invalid" ({n} may be Invalid, in which arithmetic is strict),
                 with "invalid_op", the op that always is; "in.CLASS" (the element dtype of {n} is in the class)
    element      (dtype) -> the dtype of one lane, for vectors
    members      other values of static fields, members of enums, by name in rules
    lanes_of     (node) -> the nodes of its lanes, for vectors: lanes are counted by it where there is no template and no fact
                 "lanes"; in a dialect that has none of the three every node has one
    names        the names used in the templates;  undefined  the exception type that `OpInfo.evaluate` raises
    read, show   (text) -> node, and the reverse, for the terms in `example` clauses and messages
    node         the class of its nodes: other objects are refused with a specific error
    recall       (node) -> the node's dict for derived facts
    maker        an object with `origin` and `stage`, recorded in new nodes;  origin  (node) -> its origin;
                 derive  (node, rule): called before a rule builds its target;  keep  (node, result, rule): called if the
                 target is an existing node
    """

    name: str
    ops: Mapping[str, OpInfo]
    dtypes: Mapping[str, DTypeLike]
    classes: Mapping[str, frozenset[str]]
    inline: Mapping[str, str]
    facts: Mapping[str, Callable[..., Any]]
    theory: str

    def opkey(self, node: Node) -> Hashable:
        """The key of the node's op, as in `OpInfo.key`."""

    def operands(self, node: Node) -> Sequence[Node]:
        """The node's operands in the op's order: the same objects each time."""

    def attr(self, node: Node, name: str) -> Any:
        """The value of a static field of the node."""

    def type(self, node: Node) -> DTypeLike:
        """The dtype of the node's result."""

    def same(self, a: Node, b: Node) -> bool:
        """True if a rule that names one variable twice may match these two nodes."""

    def const_value(self, node: Node) -> Any:
        """The value of a constant node, an int, a bool or a float; `NOT_CONST` for any other."""

    def const(self, dtype: DTypeLike, value: Any) -> Node:
        """The constant node of this value."""

    def build(self, op: str, operands: Sequence[Node], attrs: Mapping[str, Any], dtype: DTypeLike | None) -> Node:
        """A node of the op of this name; `dtype` is None unless the rule states it."""

    def rebuild(self, node: Node, operands: tuple[Node, ...]) -> Node:
        """`node` with other operands."""


@runtime_checkable
class Remembers(Protocol):
    """A dialect whose nodes carry derived facts."""

    def recall(self, node: Node) -> dict[Any, Any]: ...


@runtime_checkable
class Traces(Protocol):
    """A dialect whose nodes record their origin; `maker` has `origin` and `stage`."""

    maker: Any

    def origin(self, node: Node) -> Any: ...


@runtime_checkable
class Nests(Protocol):
    """A dialect with AC chains: rules can match sums of sums, and similar nests, as a whole (morok.rewrite.ac_chains).

    nests   True if this node may be the root of a chain: of an op with `params`, at a type for which it is associative
    sketch  a node with other operands, only for matching such rules: it need not be a valid node of a graph
    """

    def nests(self, node: Node) -> bool: ...
    def sketch(self, node: Node, operands: tuple[Node, ...]) -> Node: ...


@runtime_checkable
class HasPlaces(Protocol):
    """A dialect with memory: loads and stores have operands that are places, and indices operands that are storage.

    A pattern that is a bare variable matches no node of these ops, given by name:

    places   ops of a place in storage
    passing  ops whose nodes are places, or storage, if their first operands are
    storage  ops of storage
    """

    places: frozenset[str]
    passing: frozenset[str]
    storage: frozenset[str]


@runtime_checkable
class Branches(Protocol):
    """A dialect in which some operands of a node belong together, as the beginning and the end of a branch do.

    branches  the names of the ops that are no statements, but parts of one among the others
    among     the names of the ops whose operands they are. A pattern of such an op matches no node with such operands, unless it
              names their ops: a variable, or a sequence, stands for statements alone
    """

    branches: frozenset[str]
    among: frozenset[str]


@runtime_checkable
class Tensors(Protocol):
    """A dialect whose nodes may be whole tensors, on which ops work element by element.

    same_axes  True if node `made` may replace `node`: it is as large, or `node` is a number. Rules about numbers that may drop
               axes (`Sub(x, x) ~> zero(x)`) fire only if it is true
    of_axes    the names of the ops that make or change axes: rules that name one are about tensors, not about numbers
    """

    of_axes: frozenset[str]

    def same_axes(self, node: Node, made: Node) -> bool: ...


@runtime_checkable
class Instructions(Protocol):
    """A dialect whose programs are finally lowered to lists of instructions.

    in_turn     the instructions, in order, in a node that groups several; None for an instruction
    has_effect  True if an instruction has an effect besides its value
    stays       True if an instruction is another one elsewhere in a list: it has an effect, or a value that does not follow from
                its operands alone
    opens       True if an instruction begins a loop or a branch
    closes      the instructions that began the loops and branches that this one ends, the innermost first; () for any other
    scopes      the names of the ops that begin or end one: no rule for lists replaces their nodes
    waits       the names of the ops that pass on a value once statements are done: a rule that names one is about several
                moments, and none for lists
    """

    scopes: frozenset[str]
    waits: frozenset[str]

    def in_turn(self, node: Node) -> Sequence[Node] | None: ...
    def has_effect(self, node: Node) -> bool: ...
    def stays(self, node: Node) -> bool: ...
    def opens(self, node: Node) -> bool: ...
    def closes(self, node: Node) -> Sequence[Node]: ...


@runtime_checkable
class ReadsMemory(Protocol):
    """A dialect some of whose instructions read memory that others change.

    reads  the names of their ops: their values depend on their position in a list, so that rules for lists must not use them
    """

    reads: frozenset[str]


class _NotConst:
    def __repr__(self) -> str:
        return "NOT_CONST"


NOT_CONST: Final = _NotConst()
NUMBERS: Final = (int, bool, float)  # the classes of values, with the exact arithmetic of proofs, which never wraps

_registry: Final[dict[str, Dialect]] = {}
BUILT_IN: Final = "morok"  # registered by the package, through `handed`


_METHODS: Final = ("opkey", "operands", "attr", "type", "same", "const_value", "const", "build", "rebuild")


def register(dialect: Dialect) -> None:
    """Register `dialect` by its name, for `dialect NAME` in rule files. DialectError for the name of the built-in one."""
    for method in _METHODS:  # not isinstance(), which would compute attributes such as `facts` too early
        if not callable(getattr(dialect, method, None)):
            raise mistyped(dialect, "the argument of register()", f"a dialect, which has a method {method}()")
    name = text(getattr(dialect, "name", None), "the name of a dialect")
    if name == BUILT_IN and not built_in(dialect):  # the rules under this name were proved for the built-in one
        what = f"{type(dialect).__name__} is called {shown(name)}, as the built-in dialect is"
        raise DialectError(what, place=caller(), expected="a name of its own", field="name")
    _registry[name] = dialect


def built_in(dialect: Dialect) -> bool:
    """True for Morok's own dialect, and for no copy of it: its evaluation and construction are tested in CI, and are no part of
    digests.
    """
    part = f"dialect {BUILT_IN}"
    # which loads nothing for others
    return type(dialect).__module__ == handed.home(part) and dialect is handed.part(part)


def verify(dialect: Dialect) -> list[DialectError]:
    """The mistakes in a dialect that its declarations, and tests on edge cases and random values, show; [] if there are none.

    The tests compare, for every op at every dtype that it lists, its evaluator with its solver semantics; the parts of built
    nodes with the arguments; facts and code templates with the methods. Each error has the `op` and the `field` in question. The
    prover runs the same tests before the first verdict on a rule of the dialect, and proves no rule that uses a wrong part. The
    result is cached in the cache folder until the dialect, or a function that it calls, changes.
    """
    for method in _METHODS:
        if not callable(getattr(dialect, method, None)):
            raise mistyped(dialect, "the argument of verify()", f"a dialect, which has a method {method}()")
    mistakes: Callable[[Dialect], Iterable[_Mistake]] = handed.part("verification")
    return [m.error(dialect.name) for m in mistakes(dialect)]


class _Mistake(Protocol):
    """A mistake in a dialect, from verification."""

    def error(self, dialect: str) -> DialectError: ...


def find(name: str) -> Dialect:
    """The dialect of that name; UnknownDialectError if there is none. The built-in one is loaded on first use."""
    if text(name, "the name of a dialect", UnknownDialectError) == BUILT_IN and name not in _registry:
        register(handed.part(f"dialect {name}"))
    found = _registry.get(name)
    if found is None:
        known = ", ".join(sorted({BUILT_IN, *_registry}))
        raise UnknownDialectError(f"there is no dialect {shown(name)}", place=caller(), expected=known)
    return found
