"""Helpers' contracts, asserted at each call (MOROK_CHECK=1): `requires` on the arguments, `ensures` on what comes back.

A contract is about values, a call is about nodes: both are evaluated on a few assignments to the leaves below the nodes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from morok.dialect import NOT_CONST, Dialect, Node
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.concrete import compiled
from morok.errors import HelperContractError
from morok.rewrite.brief import brief, op_name

SAMPLES: Final = 6
FAR: Final = 1000  # how far from a finite bound leaves without the other one are tried
# Kinds of parameters that are no nodes.
COMPILE_TIME: Final = frozenset({"const", "bool", "int", "dtype", "seq"})


def asserting(rules: Sequence[CheckedRule]) -> Callable[[str, Any], Any]:
    """What replaces each helper of these rules: the same function, with its contract asserted."""
    externs = {name: (e, r.dialect) for r in rules for name, e in r.externs.items()}

    def wrap(name: str, helper: Any) -> Any:
        extern, dialect = externs[name]

        def checked(*args: Any) -> Any:
            result = helper(*args)
            check_call(extern, dialect, args[: len(extern.params)], result)
            return result

        return checked

    return wrap


def check_call(extern: S.Extern, dialect: Dialect, args: Sequence[Any], result: Any) -> None:
    """Raise HelperContractError where a call of a helper, or its result, breaks the contract."""
    if result is None:
        if not extern.partial:
            raise HelperContractError(f"helper {extern.name} declined, which its declaration does not allow (`?`)")
        return
    results = (result,) if len(extern.results) == 1 else tuple(result)
    if len(results) != len(extern.results):
        raise HelperContractError(f"helper {extern.name} returned {len(results)} results, not {len(extern.results)}")
    given = {p.name: a for p, a in zip(extern.params, args, strict=True)}
    made = {p.name: r for p, r in zip(extern.results, results, strict=True)}
    kinds = {p.name: p.type for p in (*extern.params, *extern.results)}
    nodes = {name for name, thing in (given | made).items() if _is_node(kinds[name], thing)}
    vectors = lanes_named(extern)
    rng = random.Random(0)
    for _ in range(SAMPLES):
        at = Assignment(dialect, rng)
        told = {k: at.lanes if k in vectors else at.value for k in nodes}
        names = {k: told[k](v) if k in nodes else v for k, v in given.items()}
        if UNDEFINED in [names[k] for k in given if k in nodes]:
            continue
        _hold(extern, "requires", extern.requires, names, dialect, given)
        names |= {k: told[k](v) if k in nodes else v for k, v in made.items()}
        for k in made:
            if k in nodes and names[k] is UNDEFINED:
                raise HelperContractError(
                    f"helper {extern.name}: {k} has no value where the arguments have one",
                    excerpt=_call(extern, dialect, {**given, **made}),
                )
        _hold(extern, "ensures", extern.ensures, names, dialect, {**given, **made})


def lanes_named(extern: S.Extern) -> set[str]:
    """The arguments and results of which a contract names lanes (`x[k]`, `len(x)`): they are sequences to it."""
    found: set[str] = set()
    todo: list[Any] = [*extern.requires, *extern.ensures]
    while todo:
        at = todo.pop()
        if isinstance(at, S.EIndex) and isinstance(at.sequence, S.EName):
            found.add(at.sequence.name)
        elif isinstance(at, S.ECall) and at.name == "len" and isinstance(at.args[0], S.EName):
            found.add(at.args[0].name)
        todo += S.children(at)
    return found


def _is_node(kind: S.TypeSyntax, thing: Any) -> bool:
    """Whether a parameter was given a node: a `bool` may be one, or a compile-time truth value."""
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
    for c in conditions:
        if isinstance(c, S.ECall) and c.name == "free_of":  # of nodes, not of their values
            held = knows_nothing_of(dialect, *[objects[a.name] for a in c.args if isinstance(a, S.EName)])
        elif isinstance(c, S.ECall) and c.name in dialect.facts:
            held = dialect.facts[c.name](*[objects[a.name] for a in c.args if isinstance(a, S.EName)])
        else:
            held = compiled(c)(names)
        if not held:
            at = ", ".join(f"{k} = {v}" for k, v in names.items())
            raise HelperContractError(
                f"helper {extern.name} breaks what it {word} (line {c.span.line}): {at}", excerpt=_call(extern, dialect, objects)
            )


def knows_nothing_of(dialect: Dialect, x: Node, y: Node) -> bool:
    """Whether a node depends on no such loop, and reaches no such storage."""
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
    shown = [f"{k} = {brief(dialect, v) if _is_node(kinds[k], v) else v}" for k, v in objects.items()]
    return "  " + ", ".join(shown)


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined()


class Assignment:
    """Values for the leaves below nodes, made up when first asked for; pointwise ops follow by their evaluators."""

    def __init__(self, dialect: Dialect, rng: random.Random) -> None:
        self.dialect = dialect
        self.rng = rng
        self._values: dict[int, tuple[Node, Any]] = {}
        self._lanes_of: Callable[[Node], Sequence[Node]] = getattr(dialect, "lanes_of", lambda node: (node,))
        self._undefined: Any = getattr(dialect, "undefined", ArithmeticError)

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
            info = self.dialect.ops.get(op_name(self.dialect, self.dialect.opkey(node)))
            computed = info is not None and info.evaluate is not None and info.params
            operands = self.dialect.operands(node) if computed else ()
            waiting = [o for o in operands if id(o) not in self._values]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            constant = self.dialect.const_value(node)
            if constant is not NOT_CONST:
                value = constant
            elif computed:
                value = self._apply(node, info, operands)
            else:
                value = self._leaf(node)
            self._values[id(node)] = (node, value)
        return self._values[id(root)][1]

    def _apply(self, node: Node, info: Any, operands: Sequence[Node]) -> Any:
        args = [self._values[id(o)][1] for o in operands]
        scalar = getattr(self.dialect, "element", lambda d: d)
        if info.name == "Where" and args[0] is not UNDEFINED:
            return args[1] if args[0] else args[2]
        if (info.name == "And" and any(a is False for a in args)) or (info.name == "Or" and any(a is True for a in args)):
            return info.name == "Or"  # one side decides, whatever the other is
        if UNDEFINED in args:
            return UNDEFINED
        try:
            if info.result in info.domains and info.result not in info.params:  # a conversion
                return info.evaluate(scalar(self.dialect.type(node)), *args, scalar(self.dialect.type(operands[0])))
            return info.evaluate(scalar(self.dialect.type(operands[-1])), *args)
        except self._undefined:
            return UNDEFINED

    def _leaf(self, node: Node) -> Any:
        facts = self.dialect.facts
        if "vmin" not in facts:
            return self.rng.randint(-FAR, FAR)
        low, high = facts["vmin"](node), facts["vmax"](node)
        if low == -math.inf:
            low = -FAR if high == math.inf else high - FAR
        if high == math.inf:
            high = max(low, 0) + FAR
        if low > high:
            return UNDEFINED  # no value at all: Invalid
        return self.rng.choice((low, high, self.rng.randint(int(low), int(high))))
