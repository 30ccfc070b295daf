"""Checks of helpers' contracts at each call (MOROK_CHECK=1): `requires` on the arguments, `ensures` on the results.

A contract constrains values, but a call passes nodes. So the nodes are evaluated under a few assignments of values to their
leaves, and the contract is checked under each assignment.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from morok.dialect import NOT_CONST, Dialect, Node, OpInfo, built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.concrete import Asked, compiled
from morok.dsl.contract import COMPILE_TIME
from morok.dsl.evaluation import evaluated
from morok.dsl.functions import FUNCTIONS
from morok.dsl.lane_count import lane_count
from morok.dsl.special_ops import loads
from morok.dsl.values import FAILURES, NoValue, OutOfBudget, Steps, no_value
from morok.errors import HelperContractError
from morok.rewrite.abbreviate import abbreviate, op_name

SAMPLES: Final = 6
# of one condition. Contracts nested over some hundred lanes need more steps than guards of rules may take
STEPS: Final = 1 << 22
PRESENT: Final = 0.6  # the share of loads whose places are there
FAR: Final = 1000  # the width of the range of samples of a leaf that has at most one finite bound


def asserting(rules: Sequence[CheckedRule]) -> Callable[[str, Any], Any]:
    """A wrapper for the helpers of these rules: it returns the same function with its contract checked at each call."""
    externs = {name: (e, r.dialect) for r in rules for name, e in r.externs.items()}

    def wrap(name: str, helper: Any) -> Any:
        extern, dialect = externs[name]

        def checked(*args: Any) -> Any:
            result = helper(*args)
            check_call(extern, dialect, args[: len(extern.params)], result)
            return result

        return checked

    return wrap


def check_call(extern: S.Extern, dialect: Dialect, args: Sequence[Any], result: Any, seed: int = 0) -> None:
    """Raise HelperContractError if the arguments or the result of a helper's call break its contract."""
    if result is None:
        if not extern.partial:
            raise HelperContractError(f"helper {extern.name} declined, which its declaration does not allow (`?`)")
        return
    results = (result,) if len(extern.results) == 1 else tuple(result)
    if len(results) != len(extern.results):
        raise HelperContractError(f"helper {extern.name} returned {len(results)} results, not {len(extern.results)}")
    call = Call(extern, dialect, args)
    made = {p.name: r for p, r in zip(extern.results, results, strict=True)}
    objects = call.arguments | made
    nodes = {p.name for p in extern.results if _is_node(p.type, made[p.name])}
    for at in call.assignments(seed):
        for lane in range(max([1, *(at.count(made[k]) for k in nodes - call.vectors), call.lanes(at)])):
            names = call.names(at, lane)
            if names is None:
                continue
            _check_conditions(extern, "requires", extern.requires, names, dialect, call.arguments)
            names |= {k: at.contract_value(v, k in call.vectors, lane) if k in nodes else v for k, v in made.items()}
            for k in made:
                if k in nodes and names[k] is UNDEFINED:
                    raise HelperContractError(
                        f"helper {extern.name}: {k} has no value where the arguments have one",
                        excerpt=_call_text(extern, dialect, objects),
                    )
            _check_conditions(extern, "ensures", extern.ensures, names, dialect, objects)


def admissible(extern: S.Extern, dialect: Dialect, args: Sequence[Any], seed: int = 0) -> bool:
    """True if the arguments have values and satisfy a helper's `requires`, under each of a few assignments."""
    call = Call(extern, dialect, args)
    valued = False
    for at in call.assignments(seed):
        for lane in range(max(1, call.lanes(at))):
            names = call.names(at, lane)
            if names is None:
                continue
            valued = True
            try:
                _check_conditions(extern, "requires", extern.requires, names, dialect, call.arguments)
            except (HelperContractError, ArithmeticError, LookupError):
                return False
    return valued


class Call:
    """The arguments of a call, with their values under assignments."""

    def __init__(self, extern: S.Extern, dialect: Dialect, args: Sequence[Any]) -> None:
        self.dialect = dialect
        self.arguments = {p.name: a for p, a in zip(extern.params, args, strict=True)}
        self.nodes = {p.name for p in extern.params if _is_node(p.type, self.arguments[p.name])}
        self.vectors = lanewise_names(extern)
        self._split: Callable[[Node], Sequence[Node]] = getattr(dialect, "lanes_of", lambda node: (node,))
        self._lanes: dict[int, tuple[Node, Sequence[Node]]] = {}

    def assignments(self, seed: int) -> Iterator[Assignment]:
        rng = random.Random(seed)
        for _ in range(SAMPLES):
            yield Assignment(self.dialect, rng, self.lanes_of)

    def lanes_of(self, node: Node) -> Sequence[Node]:
        """The lanes of a node as nodes, remembered: every assignment asks for those of the same nodes."""
        found = self._lanes.get(id(node))
        if found is None:
            found = self._lanes[id(node)] = node, self._split(node)
        return found[1]

    def lanes(self, at: Assignment) -> int:
        """The most lanes of an argument whose lanes the contract does not name. The contract must hold in each of these lanes."""
        return max([at.count(self.arguments[k]) for k in self.nodes - self.vectors], default=1)

    def names(self, at: Assignment, lane: int) -> dict[str, Any] | None:
        """The values of the parameters in a lane; None if one of them has no value."""
        found = _Names(self.dialect)
        found |= {
            k: at.contract_value(v, k in self.vectors, lane) if k in self.nodes else v
            for k, v in self.arguments.items()
        }
        return None if any(found[k] is UNDEFINED for k in self.nodes) else found


class _Names(dict[str, Any]):
    """The values of parameters and results. Any other name is a dtype."""

    def __init__(self, dialect: Dialect) -> None:
        self.dtypes = dialect.dtypes

    def __missing__(self, name: str) -> Any:
        return self.dtypes[name]


def lanewise_names(extern: S.Extern) -> set[str]:
    """The arguments and results that a contract uses as sequences of lanes: in `x[k]`, `len(x)` or `same(x, y)`."""
    found: set[str] = set()
    for at in S.walk(*extern.requires, *extern.ensures):
        if isinstance(at, S.EIndex) and isinstance(at.sequence, S.EName):
            found.add(at.sequence.name)
        elif isinstance(at, S.ECall) and at.name in ("len", "same"):
            found.update(a.name for a in at.args if isinstance(a, S.EName))
    return found


def _is_node(kind: S.TypeSyntax, thing: Any) -> bool:
    """True if the argument is a node. An argument of type `bool` is either a node or a compile-time truth value."""
    if isinstance(kind, S.TName) and kind.name in COMPILE_TIME:
        return kind.name == "bool" and not isinstance(thing, bool)
    return True


def _check_conditions(
    extern: S.Extern,
    word: str,
    conditions: Sequence[S.Expr],
    names: Mapping[str, Any],
    dialect: Dialect,
    objects: Mapping[str, Any],
) -> None:
    asked = _NodeFacts(dialect, objects)
    for c in conditions:
        # NaN is equal to nothing: what compares a node that is NaN says nothing of it, and all else is to hold
        if any(k in objects and names[k] is not objects[k] and names[k] != names[k] for k in _compared(c)):
            continue
        if not _is_satisfied(extern, c, names, asked):
            at = ", ".join(f"{k} = {v}" for k, v in names.items())
            raise HelperContractError(
                f"helper {extern.name} breaks what it {word} (line {c.span.line}): {at}",
                excerpt=_call_text(extern, dialect, objects),
            )


def _compared(c: S.Syntax) -> Iterator[str]:
    """The names of the values that a condition computes with: not of the nodes that it asks facts about."""
    if isinstance(c, S.EName):
        yield c.name
    elif not (isinstance(c, S.ECall) and c.name in FUNCTIONS and FUNCTIONS[c.name].fact):
        for part in S.children(c):
            yield from _compared(part)


def _is_satisfied(extern: S.Extern, c: S.Expr, names: Mapping[str, Any], asked: Asked) -> bool:
    """True if the condition has a value and the value is true."""
    try:
        return bool(compiled(c)(names, Steps(STEPS), asked))
    except OutOfBudget:
        message = f"helper {extern.name}: the contract in line {c.span.line} takes more than {STEPS:,} steps here"
        raise HelperContractError(message) from None
    except FAILURES:
        return False


class _NodeFacts(Asked):
    """The facts about the nodes of a call that a contract asks for."""

    def __init__(self, dialect: Dialect, objects: Mapping[str, Any]) -> None:
        self.dialect = dialect
        self.objects = objects

    def named(self, name: str) -> Any:
        return self.objects[name] if name in self.objects else self.dialect.dtypes[name]

    def fact(self, name: str, *about: Any) -> Any:
        dialect = self.dialect
        if name != "same" and any(a.__class__ is bool for a in about):  # a truth value, which has no facts
            no_value()
        match name:
            case "same":  # lane by lane
                return identical(*about)
            case "free_of":  # a fact about nodes, not about their values
                return is_free_of(dialect, *about)
            case "dtype":
                return getattr(dialect, "element", lambda d: d)(dialect.type(*about))
            case "lanes" if name not in dialect.facts:
                return lane_count(dialect)(*about)
        try:
            return dialect.facts[name](*about)
        except getattr(dialect, "undefined", ArithmeticError):
            no_value()


def identical(a: Any, b: Any) -> bool:
    """True if two values are identical. Zeros of different sign are different; NaNs are all alike."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(identical, a, b))
    return bool(a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or bool(a != a and b != b)


def is_free_of(dialect: Dialect, x: Node, y: Node) -> bool:
    """True if `x` depends on no loop of `y`; for a pointer `y`, if `x` does not reach its storage."""
    if not getattr(dialect.type(y), "is_ptr", False):
        return bool(dialect.facts["free_of"](x, y))
    while dialect.operands(y):
        y = dialect.operands(y)[0]
    seen: dict[int, Node] = {}
    stack = [x]
    while stack:
        node = stack.pop()
        if dialect.same(node, y):
            return False
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(dialect.operands(node))
    return True


def _call_text(extern: S.Extern, dialect: Dialect, objects: Mapping[str, Any]) -> str:
    kinds = {p.name: p.type for p in (*extern.params, *extern.results)}
    shown = [f"{k} = {abbreviate(dialect, v) if _is_node(kinds[k], v) else v}" for k, v in objects.items()]
    return "  " + ", ".join(shown)


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined()


_DECIDES: Final = {"And": False, "Or": True}  # the operand that decides the connective, whatever the other operand is


class Assignment:
    """An assignment of random values to leaves, each made on first use. Evaluators compute the values of pointwise ops.

    What is loaded has a value only where its place is there, which in every second assignment not all places are: a load that
    stood behind a condition has none without it.
    """

    def __init__(self, dialect: Dialect, rng: random.Random, lanes_of: Callable[[Node], Sequence[Node]]) -> None:
        self.dialect = dialect
        self.rng = rng
        self._values: dict[int, tuple[Node, Any]] = {}
        self._lane_values: dict[int, tuple[Node, Any]] = {}
        self._lane_count = lane_count(dialect)
        self._lanes_of = lanes_of
        self._undefined: Any = getattr(dialect, "undefined", ArithmeticError)
        self._reads = loads(dialect) if rng.random() < 0.5 else frozenset()
        self._present: dict[int, tuple[Node, bool]] = {}  # loads, and the truth of their places being there
        self._built_in = built_in(dialect)  # in other dialects only an op's evaluator defines it, never its name

    def count(self, root: Node) -> int:
        """The number of lanes of `root`, where the dialect tells."""
        return int(self._lane_count(root))

    def contract_value(self, root: Node, whole: bool, lane: int) -> Any:
        """The values of all lanes of `root` if `whole`, else the value of one lane, whatever the others have; UNDEFINED if it has
        no value.

        A node of one lane has the same value in every lane, and one of fewer lanes repeats its last.
        """
        if whole:
            return self.lanes(root)
        if self.count(root) == 1:
            return self.value(root)
        lanes = self._lanes_of(root)
        return self.value(lanes[min(lane, len(lanes) - 1)])

    def lanes(self, root: Node) -> Any:
        """The values of all lanes of `root`; UNDEFINED if one of them has none."""
        found = self._lane_values.get(id(root))
        if found is None:
            values = tuple([self.value(lane) for lane in self._lanes_of(root)])
            found = self._lane_values[id(root)] = root, UNDEFINED if UNDEFINED in values else values
        return found[1]

    def value(self, root: Node) -> Any:
        """The value of `root`, a node of one lane; UNDEFINED if it has none."""
        stack = [root]
        while stack:
            node = stack[-1]
            if id(node) in self._values:
                stack.pop()
                continue
            info = self._computed(node)
            operands = self.dialect.operands(node) if info is not None else ()
            waiting = [o for o in operands if id(o) not in self._values]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            constant = self.dialect.const_value(node)
            if constant is not NOT_CONST:
                value = constant
            elif info is not None:
                value = self._apply(node, info, operands)
            else:
                value = self._leaf(node)
            self._values[id(node)] = (node, value)
        return self._values[id(root)][1]

    def _computed(self, node: Node) -> OpInfo | None:
        """The op of a node, if its evaluator defines the node's value; else None, and the node is a leaf.

        The evaluator of a foreign op without `params` has not been compared with the meaning that proofs use.
        """
        info = self.dialect.ops.get(op_name(self.dialect, self.dialect.opkey(node)))
        return info if info is not None and info.evaluate is not None and (self._built_in or info.params) else None

    def _apply(self, node: Node, info: OpInfo, operands: Sequence[Node]) -> Any:
        args = [self._values[id(o)][1] for o in operands]
        if self._built_in and info.name == "Where" and args[0] is not UNDEFINED:
            return args[1] if args[0] else args[2]
        if self._built_in and info.name in _DECIDES and any(a is _DECIDES[info.name] for a in args):
            return _DECIDES[info.name]
        if UNDEFINED in args:
            return UNDEFINED
        scalar = getattr(self.dialect, "element", lambda d: d)
        kinds = [scalar(self.dialect.type(n)) for n in (node, *operands)]
        try:
            if not info.params:  # a cast of bits
                assert info.evaluate is not None
                return info.evaluate(kinds[0], *args, kinds[1])
            return evaluated(self.dialect, info, kinds[1:], kinds[0], args)
        except (NoValue, self._undefined):
            return UNDEFINED

    def _is_absent(self, leaf: Node) -> bool:
        """True if a leaf has no value: it is loaded from a place that is not there, or of something that is."""
        stack = [leaf] if self._reads else []
        seen: dict[int, Node] = {}
        while stack:
            node = stack.pop()
            name = op_name(self.dialect, self.dialect.opkey(node))
            if id(node) not in self._present and name in self._reads:
                self._present[id(node)] = node, self.rng.random() < PRESENT or self._has_value(node)
            if not self._present.get(id(node), (node, True))[1]:
                return True
            if id(node) not in seen:
                seen[id(node)] = node
                stack.extend(self._needed(node, name))
        return False

    def _has_value(self, load: Node) -> bool:
        """True if bounds say that its place is there, or if a gate of that is closed."""
        d = self.dialect
        if "defined" in d.facts and d.facts["defined"](load):
            return True
        gates = [g for place in d.operands(load)[:1] for g in d.operands(place) if getattr(d.type(g), "is_bool", False)]
        return any(lanes is not UNDEFINED and not all(lanes) for lanes in map(self.lanes, gates))

    def _needed(self, node: Node, name: str) -> Sequence[Node]:
        """The operands without which a node has no value in any case."""
        operands = self.dialect.operands(node)
        if self._built_in and name == "Where":
            return operands[:1]
        return () if self._built_in and name in _DECIDES else operands

    def _leaf(self, node: Node) -> Any:
        if self._is_absent(node):
            return UNDEFINED
        facts = self.dialect.facts
        if getattr(self.dialect.type(node), "is_float", False):
            return self.rng.choice((0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, self.rng.uniform(-FAR, FAR)))
        if "vmin" not in facts:
            return self.rng.randint(-FAR, FAR)
        low, high = facts["vmin"](node), facts["vmax"](node)
        if low == -math.inf:
            low = -FAR if high == math.inf else high - FAR
        if high == math.inf:
            high = max(low, 0) + FAR
        if low > high:
            return UNDEFINED  # an empty range: Invalid
        if getattr(self.dialect.type(node), "is_bool", False):
            return self.rng.random() < 0.5 if low != high else bool(low)
        return self.rng.choice((low, high, self.rng.randint(int(low), int(high))))
