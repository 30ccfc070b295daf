"""Helpers' contracts, asserted at each call (MOROK_CHECK=1): `requires` on the arguments, `ensures` on the results.

A contract is about values, a call is about nodes: both are evaluated on a few assignments to the leaves below the nodes.
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
from morok.dsl.lane_count import lane_count
from morok.dsl.values import FAILURES, NoValue, OutOfBudget, Steps, no_value
from morok.errors import HelperContractError
from morok.rewrite.abbreviate import abbreviate, op_name

SAMPLES: Final = 6
STEPS: Final = 1 << 22  # in one condition: nested over some hundred lanes, contracts take more of them than rules may
FAR: Final = 1000  # how far from a finite bound leaves without the other one are tried


def asserting(rules: Sequence[CheckedRule]) -> Callable[[str, Any], Any]:
    """The replacement of each helper of these rules: the same function, with its contract asserted."""
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
    """Raise HelperContractError where a call of a helper, or its result, breaks the contract."""
    if result is None:
        if not extern.partial:
            raise HelperContractError(f"helper {extern.name} declined, which its declaration does not allow (`?`)")
        return
    results = (result,) if len(extern.results) == 1 else tuple(result)
    if len(results) != len(extern.results):
        raise HelperContractError(f"helper {extern.name} returned {len(results)} results, not {len(extern.results)}")
    call = Call(extern, dialect, args)
    made = {p.name: r for p, r in zip(extern.results, results, strict=True)}
    objects = call.given | made
    nodes = {p.name for p in extern.results if _is_node(p.type, made[p.name])}
    for at in call.assignments(seed):
        for lane in range(max([1, *(at.count(made[k]) for k in nodes - call.vectors), call.lanes(at)])):
            names = call.names(at, lane)
            if names is None:
                continue
            _hold(extern, "requires", extern.requires, names, dialect, call.given)
            names |= {k: at.seen(v, k in call.vectors, lane) if k in nodes else v for k, v in made.items()}
            for k in made:
                if k in nodes and names[k] is UNDEFINED:
                    raise HelperContractError(
                        f"helper {extern.name}: {k} has no value where the arguments have one",
                        excerpt=_call(extern, dialect, objects),
                    )
            _hold(extern, "ensures", extern.ensures, names, dialect, objects)


def admissible(extern: S.Extern, dialect: Dialect, args: Sequence[Any], seed: int = 0) -> bool:
    """True if arguments satisfy a helper's `requires`, and have values, as far as a few assignments tell."""
    call = Call(extern, dialect, args)
    valued = False
    for at in call.assignments(seed):
        for lane in range(max(1, call.lanes(at))):
            names = call.names(at, lane)
            if names is None:
                continue
            valued = True
            try:
                _hold(extern, "requires", extern.requires, names, dialect, call.given)
            except (HelperContractError, ArithmeticError, LookupError):
                return False
    return valued


class Call:
    """The arguments of a call, and their values."""

    def __init__(self, extern: S.Extern, dialect: Dialect, args: Sequence[Any]) -> None:
        self.dialect = dialect
        self.given = {p.name: a for p, a in zip(extern.params, args, strict=True)}
        self.nodes = {p.name for p in extern.params if _is_node(p.type, self.given[p.name])}
        self.vectors = lanes_named(extern)

    def assignments(self, seed: int) -> Iterator[Assignment]:
        rng = random.Random(seed)
        for _ in range(SAMPLES):
            yield Assignment(self.dialect, rng)

    def lanes(self, at: Assignment) -> int:
        """The number of lanes of the arguments of which the contract names none: it holds for each."""
        return max([at.count(self.given[k]) for k in self.nodes - self.vectors], default=1)

    def names(self, at: Assignment, lane: int) -> dict[str, Any] | None:
        """The values of the parameters in a lane; None where one of them has no value."""
        found = _Names(self.dialect)
        found |= {k: at.seen(v, k in self.vectors, lane) if k in self.nodes else v for k, v in self.given.items()}
        return None if any(found[k] is UNDEFINED for k in self.nodes) else found


class _Names(dict[str, Any]):
    """The values of parameters and results; what else may be named is a dtype."""

    def __init__(self, dialect: Dialect) -> None:
        self.dtypes = dialect.dtypes

    def __missing__(self, name: str) -> Any:
        return self.dtypes[name]


def lanes_named(extern: S.Extern) -> set[str]:
    """The arguments and results that a contract names lane by lane (`x[k]`, `len(x)`, `same(x, y)`): they are sequences to it."""
    found: set[str] = set()
    todo: list[Any] = [*extern.requires, *extern.ensures]
    while todo:
        at = todo.pop()
        if isinstance(at, S.EIndex) and isinstance(at.sequence, S.EName):
            found.add(at.sequence.name)
        elif isinstance(at, S.ECall) and at.name in ("len", "same"):
            found.update(a.name for a in at.args if isinstance(a, S.EName))
        todo += S.children(at)
    return found


def _is_node(kind: S.TypeSyntax, thing: Any) -> bool:
    """True if a parameter was given a node: a `bool` may be one, or a compile-time truth value."""
    if isinstance(kind, S.TName) and kind.name in COMPILE_TIME:
        return kind.name == "bool" and not isinstance(thing, bool)
    return True


def _hold(
    extern: S.Extern,
    word: str,
    conditions: Sequence[S.Expr],
    names: Mapping[str, Any],
    dialect: Dialect,
    objects: Mapping[str, Any],
) -> None:
    asked = _Facts(dialect, objects)
    for c in conditions:
        if not _has_and_holds(extern, c, names, asked):
            at = ", ".join(f"{k} = {v}" for k, v in names.items())
            raise HelperContractError(
                f"helper {extern.name} breaks what it {word} (line {c.span.line}): {at}", excerpt=_call(extern, dialect, objects)
            )


def _has_and_holds(extern: S.Extern, c: S.Expr, names: Mapping[str, Any], asked: Asked) -> bool:
    """True if a condition has a value, and the value is true."""
    try:
        return bool(compiled(c)(names, Steps(STEPS), asked))
    except OutOfBudget:
        message = f"helper {extern.name}: the contract in line {c.span.line} takes more than {STEPS:,} steps here"
        raise HelperContractError(message) from None
    except FAILURES:
        return False


class _Facts(Asked):
    """The answers to facts about the nodes of a call."""

    def __init__(self, dialect: Dialect, objects: Mapping[str, Any]) -> None:
        self.dialect = dialect
        self.objects = objects

    def named(self, name: str) -> Any:
        return self.objects[name] if name in self.objects else self.dialect.dtypes[name]

    def fact(self, name: str, *about: Any) -> Any:
        dialect = self.dialect
        if name != "same" and any(a.__class__ is bool for a in about):  # of a parameter that may be a node or a truth value
            no_value()
        match name:
            case "same":  # in each lane
                return identical(*about)
            case "free_of":  # of nodes, not of their values
                return knows_nothing_of(dialect, *about)
            case "dtype":
                return getattr(dialect, "element", lambda d: d)(dialect.type(*about))
            case "lanes" if name not in dialect.facts:
                return lane_count(dialect)(*about)
        try:
            return dialect.facts[name](*about)
        except getattr(dialect, "undefined", ArithmeticError):
            no_value()


def identical(a: Any, b: Any) -> bool:
    """True if two values are one: floats by their sign too, NaNs alike."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(identical, a, b))
    return bool(a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or bool(a != a and b != b)


def knows_nothing_of(dialect: Dialect, x: Node, y: Node) -> bool:
    """True if a node depends on no such loop, and reaches no such storage."""
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


def _call(extern: S.Extern, dialect: Dialect, objects: Mapping[str, Any]) -> str:
    kinds = {p.name: p.type for p in (*extern.params, *extern.results)}
    shown = [f"{k} = {abbreviate(dialect, v) if _is_node(kinds[k], v) else v}" for k, v in objects.items()]
    return "  " + ", ".join(shown)


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined()


_DECIDES: Final = {"And": False, "Or": True}  # the operand that decides a connective of Morok's own


class Assignment:
    """Values for the leaves below nodes, made up when first asked for; pointwise ops follow by their evaluators."""

    def __init__(self, dialect: Dialect, rng: random.Random) -> None:
        self.dialect = dialect
        self.rng = rng
        self._values: dict[int, tuple[Node, Any]] = {}
        self._lane_count = lane_count(dialect)
        self._lanes_of: Callable[[Node], Sequence[Node]] = getattr(dialect, "lanes_of", lambda node: (node,))
        self._undefined: Any = getattr(dialect, "undefined", ArithmeticError)
        self._own = built_in(dialect)  # elsewhere an op means what its evaluator says, whatever it is called

    def count(self, root: Node) -> int:
        """The number of lanes of `root`, where the dialect tells."""
        return int(self._lane_count(root))

    def seen(self, root: Node, whole: bool, lane: int) -> Any:
        """The values of all lanes, or the one of this lane: of a node with one lane that. UNDEFINED where there is none."""
        if whole:
            return self.lanes(root)
        if self.count(root) == 1:
            value = self.value(root)
        else:
            values = self.lanes(root)
            value = UNDEFINED if values is UNDEFINED else values[min(lane, len(values) - 1)]
        return UNDEFINED if value != value else value  # a contract says nothing of what is no number

    def lanes(self, root: Node) -> Any:
        """The values of all lanes of `root`, or UNDEFINED, where the dialect tells its lanes."""
        values = tuple([self.value(lane) for lane in self._lanes_of(root)])
        return UNDEFINED if UNDEFINED in values else values

    def value(self, root: Node) -> Any:
        """The value of one lane of `root`, or UNDEFINED."""
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
        """The op of a node that has a value by its evaluator: of one without `params` nobody has compared that with what rules
        are proved of, but for Morok's own.
        """
        info = self.dialect.ops.get(op_name(self.dialect, self.dialect.opkey(node)))
        return info if info is not None and info.evaluate is not None and (self._own or info.params) else None

    def _apply(self, node: Node, info: OpInfo, operands: Sequence[Node]) -> Any:
        args = [self._values[id(o)][1] for o in operands]
        if self._own and info.name == "Where" and args[0] is not UNDEFINED:
            return args[1] if args[0] else args[2]
        if self._own and info.name in _DECIDES and any(a is _DECIDES[info.name] for a in args):
            return _DECIDES[info.name]  # whatever the other operand is
        if UNDEFINED in args:
            return UNDEFINED
        scalar = getattr(self.dialect, "element", lambda d: d)
        kinds = [scalar(self.dialect.type(n)) for n in (node, *operands)]
        try:
            if not info.params:  # a conversion of bits
                assert info.evaluate is not None
                return info.evaluate(kinds[0], *args, kinds[1])
            return evaluated(self.dialect, info, kinds[1:], kinds[0], args)
        except (NoValue, self._undefined):
            return UNDEFINED

    def _leaf(self, node: Node) -> Any:
        facts = self.dialect.facts
        if getattr(self.dialect.type(node), "is_float", False):
            return self.rng.choice((0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, self.rng.uniform(-FAR, FAR)))
        if "vmin" not in facts:
            return self.rng.randint(-FAR, FAR)
        low, high = facts["vmin"](node), facts["vmax"](node)
        if low == -math.inf:
            low = -FAR if high == math.inf else high - FAR
        if high == math.inf:
            high = max(low, 0) + FAR
        if low > high:
            return UNDEFINED  # no value at all: Invalid
        if getattr(self.dialect.type(node), "is_bool", False):
            return self.rng.random() < 0.5 if low != high else bool(low)
        return self.rng.choice((low, high, self.rng.randint(int(low), int(high))))
