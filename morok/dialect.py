"""Dialects: op sets that can be rewritten and proved.

The engine (dsl, rewrite, prove) talks to nodes through a `Dialect` alone: it assumes no hash-consing, no bounds, no
closed set of dtypes and no `UOp`. Morok's own IR is the built-in one (`morok.ir.morok_dialect`); `examples/foreign.py`
declares another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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

    holds  "storage": a pointer or a buffer, whose own dtype nobody looks at; "count": elements or iterations are counted;
           "condition": one lane of it governs all lanes of the others; "": a value like any
    """

    name: str
    position: str = "value"
    many: bool = False
    optional: bool = False
    holds: str = ""

    def __post_init__(self) -> None:
        text(self.name, "the name of an operand")
        choice(self.position, f"the position of operand {self.name}", _POSITIONS)
        choice(self.holds, f"what operand {self.name} holds", _HELD)
        for name in ("many", "optional"):
            object.__setattr__(self, name, flag(getattr(self, name), f"{name} of operand {self.name}"))


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One op of a dialect, as rules see it.

    key         what `Dialect.opkey` returns for its nodes
    operands    in order; at most one takes a sequence (`many`), unless two of equal length end the list (Pad, Shrink)
    fields      static attributes, by name
    params      dtype of each operand, as words: a letter of `domains`, or a dtype's name; () if the op is not pointwise
    result      the same for the result; "" if it is not determined that way
    domains     the dtype names that each letter ranges over
    kind        "unary" "binary" "ternary" or "" (what `for op in binary [..]` may name)
    evaluate    (dtype of the operands, *values) -> value, or raises `Undefined`; None if the op has no constant folding
    undefined   the exception type that `evaluate` raises where the op has no value
    solver      import path "module:function" of its solver semantics; "" if rules over it cannot be proved pointwise
    types       of an op without `params`: how the types of its operands and of its result relate, said in words with `;` between:
                "result = x" (one type), "result ~ x" (one element type), "x lanes y", "x bits y" (as many of them), "x scalar",
                "x in int bool" (its elements are of these classes or dtypes); what nothing is said of may be of any type
    field_kinds what static fields hold: "int" "ints" "bool" "bools" "pairs" "const" "consts" "op", with "?" behind it where rules
                may leave the field out; what nothing is said of is passed through unread
    role        of an op that rearranges lanes, by which a firing can be judged at any size: "take" (the lanes that its field
                names), "join" (the lanes of its operands, one behind the other), "constants" (its field, of kind "consts"),
                "fold" (by the op that its field names, of neighbouring lanes and over its other operands), "open" (lanes as
                iterations of the axes that its field names), "close" (these as lanes); "" of any other
    dtype_given whether rules name the dtype of the result as a last argument: `Bitcast(x, i32)`
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
        object.__setattr__(self, "domains", words)
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
        object.__setattr__(self, "field_kinds", kinds)
        object.__setattr__(self, "dtype_given", flag(self.dtype_given, f"dtype_given {of}"))

    @property
    def in_halves(self) -> bool:
        """Truth of two sequences of equal length ending the operands."""
        return sum(o.many for o in self.operands) == 2

    @property
    def converts(self) -> bool:
        """Truth of a result whose dtype no operand has: rules name it."""
        return self.result in self.domains and self.result not in self.params

    @property
    def leading(self) -> int:
        """The place of the operand whose dtype the evaluator is given: the first one that has a letter, else the first."""
        return next((i for i, word in enumerate(self.params) if word in self.domains), 0)

    def field_kind(self, name: str) -> str:
        """The kind of value that the static field of that name holds."""
        return self.field_kinds.get(text(name, "the name of a field"), "other").removesuffix("?")

    @property
    def required(self) -> tuple[str, ...]:
        """The static fields that rules do not leave out."""
        return tuple(f for f in self.fields if not self.field_kinds.get(f, "").endswith("?"))


def _words(value: Any, what: str) -> tuple[str, ...]:
    return tuple([text(w, f"one of {what}") for w in several(value, what, "a tuple of words")])


@runtime_checkable
class Dialect(Protocol):
    """An op set. `inline` makes the generated matchers as fast as hand-written ones; without it they call the methods.

    name      what `dialect NAME` in a rule file says
    ops       by the name that rules use
    dtypes    scalar dtypes by name
    classes   dtype classes by name ("int", "float"): the dtype names in each
    inline    code templates by method name, `{n}` the node: {"opkey": "{n}.op", "operands": "{n}.src", "type": "{n}.dtype",
              "same": "{a} is {b}", "attr.NAME": ..., "attr.OP.NAME": ..., "vmin": "{n}.vmin", ...}
    facts     the facts that guards may ask of nodes, by name, as functions of nodes: vmin, vmax, free_of, ...
    theory    import path "module:Class" of its solver theory (sorts and values of its dtypes); imported by the prover only

    `operands` returns the same objects each time: the engine tells nodes apart by identity. More, where a dialect has it:

    hash_consed  True if equal nodes are one object, hashed and compared by identity; their types are compared by equality
    closed_types True if every node of an op is of a type that the op lists, has its operands in their number, and they are of the
                 types listed: matchers then leave out the tests that follow from ops. Without it each node is tested
    inline       also "lanes", "scalar" and "vector" (of a dtype {d} and a count {k}) where there are vectors; "const_op", the op
                 whose nodes are the constants; "const" ({v}, {d}); "pointwise1" to "pointwise3" ({op}, {a}, {b}, {c});
                 "build.OP" of an op with one operand {a}, given the result's dtype {d};
                 "invalid" ({n} may be no value at all; arithmetic is strict in such) with "invalid_op", the op that always is;
                 "in.CLASS" ({n} has such an element dtype)
    element      (dtype) -> one lane of it, where there are vectors
    members      what static fields hold besides values, by the name that rules use: members of enums
    lanes_of     (node) -> its lanes, each a node, where there are vectors
    names        what these templates mention;  undefined  the exception type that `OpInfo.evaluate` raises
    read, show   (text) -> node, and back: the terms in `example` clauses, and in what is said of them
    node         the class of its nodes: what is of no such class is refused with an error of its own
    recall       (node) -> the dict that it carries for derived facts
    maker        an object with `origin` and `stage`, recorded in new nodes;  origin  (node): what it was made from;
                 derive  (node, rule): called before a rule builds its target;  keep  (node, result, rule): called where the
                 target is a node that was there before
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
        """A node of the op of this name; `dtype` where the rule states it, else None."""

    def rebuild(self, node: Node, operands: tuple[Node, ...]) -> Node:
        """`node` with other operands."""


@runtime_checkable
class Remembers(Protocol):
    """A dialect whose nodes carry derived facts."""

    def recall(self, node: Node) -> dict[Any, Any]: ...


@runtime_checkable
class Traces(Protocol):
    """A dialect whose nodes know where they came from; `maker` has `origin` and `stage`."""

    maker: Any

    def origin(self, node: Node) -> Any: ...


@runtime_checkable
class Nests(Protocol):
    """A dialect whose sums of sums, and their like, rules can see as a whole (morok.rewrite.ac_chains).

    nests   whether this node may be the root of one: of an op with `params`, at a type where it is associative
    sketch  a node over other operands that such rules look at, and nobody else: it need not be a node of a graph
    """

    def nests(self, node: Node) -> bool: ...
    def sketch(self, node: Node, operands: tuple[Node, ...]) -> Node: ...


@runtime_checkable
class HasPlaces(Protocol):
    """A dialect with nodes that loads and stores take for places, and indices for storage.

    A pattern that is a bare variable matches none of these ops, which are told by their names:

    places   ops of a place in storage
    passing  ops whose nodes are places, or storage, where their first operands are
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

    same_axes  whether a node may take the other's place: it is as large, or the other is a number. Rules about numbers that may
               drop axes (`Sub(x, x) ~> zero(x)`) fire where it says so.
    of_axes    the names of the ops that make axes, or change them: rules that name one are about tensors, not about numbers
    """

    of_axes: frozenset[str]

    def same_axes(self, node: Node, made: Node) -> bool: ...


@runtime_checkable
class Instructions(Protocol):
    """A dialect whose programs end as lists of instructions.

    in_turn     the instructions, in order, that a node which is none itself stands for; None for an instruction
    has_effect  whether an instruction does something besides having a value
    stays       whether an instruction is another one elsewhere in a list: it has an effect, or a value that does not follow from
                its operands alone
    opens       whether an instruction begins a loop or a branch
    closes      the instructions that began what this one ends, the innermost first; () for one that ends nothing
    scopes      the names of the ops that do: no rule for lists replaces their nodes
    waits       the names of the ops that pass a value on once statements are done: a rule that speaks of one is of several
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
    """A dialect some of whose instructions read what others change.

    reads  the names of their ops: what they give depends on where in a list they stand, so that no rule for lists speaks of them
    """

    reads: frozenset[str]


class _NotConst:
    def __repr__(self) -> str:
        return "NOT_CONST"


NOT_CONST: Final = _NotConst()
NUMBERS: Final = (int, bool, float)  # the classes of values: arithmetic on them is that of proofs, which never wraps

_registry: Final[dict[str, Dialect]] = {}
BUILT_IN: Final = "morok"  # handed in by the package


_METHODS: Final = ("opkey", "operands", "attr", "type", "same", "const_value", "const", "build", "rebuild")


def register(dialect: Dialect) -> None:
    """Make `dialect` known by its name: `dialect NAME` in rule files finds it. DialectError for the name of the built-in one."""
    for method in _METHODS:  # and not isinstance(): facts may be found when they are first asked for
        if not callable(getattr(dialect, method, None)):
            raise mistyped(dialect, "what is registered", f"a dialect, which has a method {method}()")
    name = text(getattr(dialect, "name", None), "the name of a dialect")
    if name == BUILT_IN and not built_in(dialect):  # whose rules were proved of the built-in one
        what = f"{type(dialect).__name__} is called {shown(name)}, as the built-in dialect is"
        raise DialectError(what, place=caller(), expected="a name of its own", field="name")
    _registry[name] = dialect


def registered() -> tuple[Dialect, ...]:
    """The dialects that were registered; the built-in one once it was asked for."""
    return tuple(_registry.values())


def built_in(dialect: Dialect) -> bool:
    """True for Morok's own dialect: its evaluation and construction are tested in CI, and are no part of digests."""
    return type(dialect).__module__ == handed.home(f"dialect {BUILT_IN}")


def verify(dialect: Dialect) -> list[DialectError]:
    """The mistakes in a dialect, as far as its declarations, edges and random values show: [] where nothing is.

    Every op is tried at every dtype that it lists, its evaluator against its solver semantics; what is built against what it was
    built of; facts and code templates against methods. Each error has the `op` and the `field` that it is about. The prover asks
    the same before the first verdict on a rule of the dialect, and proves no rule that uses what is wrong. The answer is kept in
    the cache folder until the dialect, or anything that it calls, changes.
    """
    for method in _METHODS:
        if not callable(getattr(dialect, method, None)):
            raise mistyped(dialect, "what is verified", f"a dialect, which has a method {method}()")
    mistakes: Callable[[Dialect], Iterable[_Mistake]] = handed.part("verification")
    return [m.error(dialect.name) for m in mistakes(dialect)]


class _Mistake(Protocol):
    """A mistake in a dialect, as verification finds it."""

    def error(self, dialect: str) -> DialectError: ...


def find(name: str) -> Dialect:
    """The dialect of that name; UnknownDialectError if there is none. Built-in ones are loaded when first asked for."""
    if text(name, "the name of a dialect", UnknownDialectError) == BUILT_IN and name not in _registry:
        register(handed.part(f"dialect {name}"))
    found = _registry.get(name)
    if found is None:
        known = ", ".join(sorted({BUILT_IN, *_registry}))
        raise UnknownDialectError(f"there is no dialect {shown(name)}", place=caller(), expected=known)
    return found
