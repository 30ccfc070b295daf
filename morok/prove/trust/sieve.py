"""Rules tried without a solver: fired on random graphs that their patterns match, and both sides evaluated.

The graphs are made at 8 bits (and f16, bool, index) where the rule admits that: narrow dtypes reach their ends soonest. What a
trial finds is a counterexample beyond doubt; that it finds none proves nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from morok.dsl.checked import CheckedRule, Instance
from morok.errors import IRError, UndefinedError
from morok.ir import number
from morok.ir.dtype import DType, PtrType, dtypes
from morok.ir.interpret import INVALID, evaluate, run, tensor
from morok.ir.interpret.places import MOVEMENT
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.trust.graphs import FLOATS, Maker, Unmakeable, environment
from morok.prove.trust.structures import StructureMaker
from morok.rewrite.ruleset import RuleSet

NARROW: Final = frozenset({"i8", "u8", "f16", "bool", "index"})
TRIES: Final = 400  # graphs made for a rule
ENVIRONMENTS: Final = 6  # choices of values for the variables of a graph on which it fired


def narrow(rule: CheckedRule) -> tuple[Instance, ...]:
    """The instances of a rule at narrow dtypes; all of them where there is none."""
    found = tuple(i for i in rule.instances if NARROW.issuperset(i.dtypes.values()))
    return found or rule.instances


def same(d: DType, a: Any, b: Any) -> bool:
    """Whether two values of a dtype are one: lane by lane, by bits, NaNs alike, Invalid only itself."""
    if a is INVALID or b is INVALID:
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(d, x, y) for x, y in zip(a, b, strict=True))
    return number.same_value(d.scalar(), a, b)


CLOSE: Final = 4e-3  # relative: two roundings of an f16; what tolerances really are is measured elsewhere


def alike(before: UOp, a: Any, b: Any, within: bool = False) -> bool:
    """Whether two outcomes of a graph are one: its values, or what a statement left in storage."""
    d = before.dtype
    if within:
        finite = isinstance(a, float) and math.isfinite(a) and math.isfinite(b)
        return same(d, a, b) or not finite or math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)
    if d.scalar().is_float and a == b == 0 and any(n.op is Op.Reduce and n.arg is Op.Add for n in before.toposort()):
        return True  # a sum of -0.0 alone: the order of a fold is free, and so is whether it begins at +0.0
    if d is dtypes.void or d.is_ptr:
        return len(a) == len(b) and all(repr(x) == repr(y) for x, y in zip(a, b, strict=True))
    return same(d, a, b)


@dataclass(frozen=True, slots=True)
class World:
    """What a graph is run in: values of its variables and open loops, elements of its storage."""

    variables: dict[UOp, Any]
    buffers: dict[UOp, list[Any]]

    def text(self) -> str:
        shown = [f"{k.text()} = {v}" for k, v in self.variables.items()]
        return ", ".join([*shown, *(f"{k.text()} = {v}" for k, v in self.buffers.items())])


def world(node: UOp, rng: random.Random) -> World | None:
    """Some values for what a graph is made of; None if a loop that they are to be inside of has no iterations."""
    variables = environment(node, rng)
    for loop in sorted(node.ranges, key=lambda r: str(r.arg)):
        count = evaluate(loop.src[0], variables)
        if count <= 0:
            return None
        variables[loop] = rng.randrange(count)
    stored = [n for n in node.toposort() if n.op in (Op.Buffer, Op.DefineGlobal)]
    return World(variables, {n: [element(n.dtype, rng) for _ in range(size(n))] for n in stored})


def size(storage: UOp) -> int:
    d = storage.dtype
    return int(storage.arg) if not isinstance(d, PtrType) else int(d.size)


def element(d: DType, rng: random.Random) -> Any:
    d = d.base if isinstance(d, PtrType) else d
    if d.is_bool:
        return rng.random() < 0.5
    if d.is_float:
        return UOp.const(rng.choice(FLOATS), d).arg
    return rng.choice((int(max(d.min, -7)), rng.randrange(9), rng.randrange(100), int(min(d.max, 1 << 40))))


def value(node: UOp, at: World) -> Any:
    """The value of a node, or of a statement what it leaves in storage; None where it is undefined.

    A loop that is open here and not in the graph that the world was made for is one that runs once: its counter is 0.
    """
    buffers = {k: list(v) for k, v in at.buffers.items()}
    variables = at.variables | {r: 0 for r in node.ranges if r not in at.variables}
    if any(n.op is Op.PtrCat for n in node.toposort()):
        node = node.load()
    try:
        if node.dtype is dtypes.void:
            if node.op is not Op.Noop:
                run(UOp.sink(node), buffers, variables)
            return tuple(x for v in buffers.values() for x in v)
        if node.dtype.is_ptr:
            return tuple(evaluate(node.index(i), variables, buffers) for i in range(2))
        if node.op in MOVEMENT:
            elements, _ = tensor(node, buffers, variables)
            return tuple(elements)
        return evaluate(node, variables, buffers)
    except UndefinedError:
        return None


def graphs(rule: CheckedRule, tries: int) -> Iterator[tuple[UOp, random.Random]]:
    """Up to `tries` graphs that the rule's pattern matches, the same in every process; Unmakeable if the pattern has no maker."""
    for graph, rng, _ in graphs_at(rule, tries, narrow(rule)):
        yield graph, rng


def graphs_at(rule: CheckedRule, tries: int, instances: tuple[Instance, ...]) -> Iterator[tuple[UOp, random.Random, Instance]]:
    """The same at these instances, with the instance that each is of."""
    rng = random.Random(crc32(rule.name.encode()))
    vectors = "vconst_" in rule.name
    lanewise = rule.pointwise or vectors
    for _ in range(tries):
        lanes = 3 if vectors or rng.random() < 0.1 else 1
        instance = rng.choice(instances)
        maker = Maker(rule, instance, rng, lanes) if lanewise else StructureMaker(rule, instance, rng)
        try:
            yield maker.make(rule.syntax.pattern), rng, instance
        except IRError:  # no such node: constants out of a dtype's range made a vector constant a scalar one
            continue


def differs(before: UOp, after: UOp, rng: random.Random, within: bool = False) -> str | None:
    """Values at which two graphs differ, in words; None if a few trials found none. `within`: they need only be close."""
    if after.dtype is not before.dtype:
        return f"{before.text()} is {before.dtype.name}, {after.text()} is {after.dtype.name}"
    for _ in range(ENVIRONMENTS):
        at = world(before, rng)
        expected = None if at is None else value(before, at)
        if at is None or expected is None:
            continue
        got = value(after, at)
        if got is None or not alike(before, expected, got, within):
            shown = "undefined" if got is None else got
            return f"{before.text()} is {expected}, {after.text()} is {shown} at {at.text()}"
    return None


def has_value(node: UOp, rng: random.Random) -> bool:
    """Whether a node is defined at some of a few values of its variables: rules about what never is are of no use."""
    worlds = (world(node, rng) for _ in range(ENVIRONMENTS))
    return any(at is not None and value(node, at) is not None for at in worlds)


def counterexample(rule: CheckedRule, tries: int = TRIES) -> str | None:
    """A graph and values at which the rule, as its matcher applies it, is false; None if a few hundred trials found none."""
    if rule.syntax.assuming or rule.syntax.within is not None:  # it is not bit equality that such a rule claims
        return None
    rules = RuleSet.of([rule])
    try:
        for before, rng in graphs(rule, tries):
            try:
                hit = rules.rewrite_node(before)
            except ArithmeticError:  # the rule calls a helper with what its contract excludes: that is for the prover to see
                return None
            except IRError as why:
                return f"{before.text()} becomes what is no node: {why.message}"
            if hit is not None and (found := differs(before, hit[0], rng)) is not None:
                return found
    except Unmakeable:
        return None
    return None


def reaches_further(changed: CheckedRule, original: CheckedRule, tries: int = 10 * TRIES) -> str | None:
    """A graph with a value on which the changed rule fires and the original does not; None if no trial found one."""
    ours, theirs = RuleSet.of([changed]), RuleSet.of([original])
    try:
        for before, rng in graphs(original, tries):
            if ours.rewrite_node(before) is not None and theirs.rewrite_node(before) is None and has_value(before, rng):
                return before.text()
    except (Unmakeable, IRError, ArithmeticError):
        return None
    return None
