"""Rules tried without a solver: fired on random graphs that their patterns match, and both sides evaluated.

The graphs are made at 8 bits (and f16, bool, index) where the rule admits that: narrow dtypes reach their ends soonest. What a
trial finds is a counterexample beyond doubt; that it finds none proves nothing.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from zlib import crc32

from morok import config
from morok.dsl.checked import CheckedRule, Instance
from morok.dsl.compiled import helper_module
from morok.dsl.extent import Extents
from morok.errors import IRError, StepLimitError, UndefinedError
from morok.ir import number
from morok.ir.dtype import DType, PtrType, dtypes
from morok.ir.interpret import INVALID, evaluate, run, separate_lanes, tensor
from morok.ir.interpret.memory_places import MOVEMENT
from morok.ir.launch import launched
from morok.ir.op import Op
from morok.ir.ranges import open_axes
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.marks import trusted
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.forms import VECTOR_AXES, about_axes, about_lanes, about_launches
from morok.prove.open_operands import completed
from morok.prove.rule_syntax import names_in
from morok.prove.trust.graphs import FLOATS, MISMADE, Maker, Unmakeable, environment
from morok.prove.trust.lane_memory_graphs import LaneMaker
from morok.prove.trust.large import LargeAxes, LargeLanes, LargeLaunches, LargeStructures, LargeTensors, size
from morok.prove.trust.simt_graphs import LaunchMaker
from morok.prove.trust.structures import StructureMaker
from morok.prove.trust.tensor_graphs import TensorMaker, about_tensors_alone
from morok.prove.trust.unrolled import UnrolledMaker
from morok.rewrite.parts import Listed, Standing
from morok.rewrite.ruleset import RuleSet

TENSORS: Final = MOVEMENT | {Op.Concat, Op.Iota, Op.ReduceAxis}
NARROW: Final = frozenset({"i8", "u8", "f16", "bool", "index"})
TRIES: Final = 400  # graphs made for a rule
FURTHER: Final = 4 * TRIES  # where more depends on it
ENVIRONMENTS: Final = 6  # choices of values for the variables of a graph on which it fired
STEPS: Final = 1 << 14  # of the interpreter, for a value: what takes more says nothing


def narrow(rule: CheckedRule) -> tuple[Instance, ...]:
    """The instances of a rule at narrow dtypes; all of them where there is none."""
    found = tuple(i for i in rule.instances if NARROW.issuperset(i.dtypes.values()))
    return found or rule.instances


def same(d: DType, a: Any, b: Any) -> bool:
    """True if two values of a dtype are one: lane by lane, by bits, NaNs alike, Invalid only itself. Where a lane of the first
    has no value, which is None, anything may be in its place.
    """
    if a is None or b is None:
        return a is None
    if a is INVALID or b is INVALID:
        return a is b
    if isinstance(a, Elements) or isinstance(b, Elements):
        alike = isinstance(a, Elements) and isinstance(b, Elements) and a.shape == b.shape
        return alike and all(same(d, x, y) for x, y in zip(a.flat, b.flat, strict=True))
    if isinstance(a, tuple) or isinstance(b, tuple):  # lanes; one value is not a vector of one
        both = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
        return both and all(same(d, x, y) for x, y in zip(a, b, strict=True))
    return number.same_value(d.scalar(), a, b)


def unsigned(v: Any) -> Any:
    """A value with -0.0 made 0.0."""
    if isinstance(v, Elements):
        return Elements(v.shape, tuple(map(unsigned, v.flat)))
    return tuple(map(unsigned, v)) if isinstance(v, tuple) else v + 0.0 if isinstance(v, float) else v


CLOSE: Final = 4e-3  # relative: two roundings of an f16; what tolerances really are is measured elsewhere


def alike(before: UOp, a: Any, b: Any, within: bool = False) -> bool:
    """True if two outcomes of a graph are one: its values, or what a statement left in storage."""
    d = before.dtype
    if within:
        finite = isinstance(a, float) and isinstance(b, float) and math.isfinite(a) and math.isfinite(b)
        return same(d, a, b) or not finite or math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)
    if d.scalar().is_float and a == b == 0 and any(n.op is Op.Reduce and n.arg is Op.Add for n in before.toposort()):
        return True  # a sum of -0.0 alone: the order of a fold is free, and so is whether it begins at +0.0
    if d is dtypes.void or d.is_ptr:
        return len(a) == len(b) and all(repr(x) == repr(y) for x, y in zip(a, b, strict=True))
    return same(d, a, b)


@dataclass(frozen=True, slots=True)
class World:
    """The world that a graph is run in: values of its variables and open loops, elements of its storage."""

    variables: dict[Any, Any]
    buffers: dict[UOp, list[Any]]

    def text(self) -> str:
        return ", ".join(f"{k} = {v}" for k, v in self.shown().items())

    def shown(self) -> dict[str, Any]:
        """All of it, by the text of what has it; an axis has a number."""
        said = {k.text() if isinstance(k, UOp) else f"axis {k[1]}": v for k, v in self.variables.items()}
        return said | {k.text(): v for k, v in self.buffers.items()}


def world(node: UOp, rng: random.Random) -> World | None:
    """Some values for what a graph is made of; None if a loop that they are to be inside of has no iterations."""
    variables: dict[Any, Any] = {**environment(node, rng)}
    for loop in sorted(node.ranges, key=lambda r: str(r.arg)):
        if node.dtype is dtypes.void and launched(loop):
            continue  # a statement is done for all its iterations
        count = evaluate(loop.src[0], variables)
        if count <= 0:
            return None
        variables[loop] = rng.randrange(count)
        if loop.arg[1].name in VECTOR_AXES:  # the axis of its number
            variables[("axis", loop.arg[0])] = variables[loop]
    for axis, length in lengths_of(node):
        variables.setdefault(("axis", axis), rng.randrange(length))
    stored = [n for n in node.toposort() if n.op in (Op.Buffer, Op.DefineGlobal)]
    return World(variables, {n: [element(n.dtype, rng) for _ in range(length_of(n))] for n in stored})


def lengths_of(node: UOp) -> tuple[tuple[int, int], ...]:
    """The axes that are open in a graph, with the lengths that an Unroll opens them with."""
    axes = open_axes(node)
    if not axes:
        return ()
    lengths = {i: n for at in node.toposort() if at.op is Op.Unroll for i, n in at.arg}
    return tuple((i, lengths[i]) for i in sorted(axes & lengths.keys()))


@dataclass(frozen=True, slots=True)
class Elements:
    """The value of a tensor."""

    shape: tuple[int, ...]
    flat: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{list(self.flat)} of shape {self.shape}"


def is_tensor(node: UOp) -> bool:
    """True if a graph is read as a whole: a view, or an op on tensors element by element."""
    todo, seen = [node], {node}
    while todo:
        at = todo.pop()
        if at.op in TENSORS or shape_of(at):
            return True
        if at.op is not Op.Index:
            todo += (s for s in at.src if s not in seen)
            seen.update(at.src)
    return False


def length_of(storage: UOp) -> int:
    d = storage.dtype
    return int(storage.arg) if not isinstance(d, PtrType) else int(d.size)


def element(d: DType, rng: random.Random) -> Any:
    d = d.base if isinstance(d, PtrType) else d
    if d.is_bool:
        return rng.random() < 0.5
    if d.is_float:
        return UOp.const(rng.choice(FLOATS), d).arg
    return rng.choice((int(max(d.min, -7)), rng.randrange(9), rng.randrange(100), int(min(d.max, 1 << 40))))


def value(node: UOp, at: World, steps: int = STEPS) -> Any:
    """The value of a node, or of a statement what it leaves in storage; None where it is undefined, also as one of several lanes.

    A loop that is open here and not in the graph that the world was made for is one that runs once: its counter is 0.
    Raises StepLimitError where it takes more than so many steps.
    """
    buffers = {k: list(v) for k, v in at.buffers.items()}
    variables = at.variables | {r: 0 for r in node.ranges if r not in at.variables}
    ops = {n.op for n in node.toposort()}
    if Op.PtrCat in ops and ops.isdisjoint((Op.Load, Op.Store)):  # it is the places themselves
        node = node.load()
    try:
        if node.dtype is dtypes.void:
            if axes := lengths_of(node):  # it is done for all their iterations
                node = UOp.new(Op.Contract, (node,), axes)
            if parallel := sorted((r for r in node.ranges if launched(r)), key=lambda r: str(r.arg)):
                node = node.end(*parallel)
            if node.op is not Op.Noop:
                run(UOp.sink(node), buffers, variables, steps)
            return tuple(x for v in buffers.values() for x in v)
        if node.dtype.is_ptr:
            return tuple(evaluate(node.index(i), variables, buffers, steps) for i in range(2))
        if is_tensor(node):
            elements, shape = tensor(node, buffers, variables, steps)
            return Elements(shape, tuple(elements)) if shape else elements[0]
        return evaluate(node, variables, buffers, steps)
    except UndefinedError:
        return (
            None
            if node.dtype.count < 2 or node.dtype.is_ptr or is_tensor(node)
            else _lane_by_lane(node, variables, at, steps)
        )


def _lane_by_lane(node: UOp, variables: Mapping[Any, Any], at: World, steps: int) -> tuple[Any, ...] | None:
    """The lanes of a vector, None where one is undefined; None where all are."""

    def buffers() -> dict[Any, list[Any]]:
        return {k: list(v) for k, v in at.buffers.items()}

    def lane(i: int) -> Any:
        try:
            return evaluate(UOp.new(Op.Gep, (node,), (i,)), variables, buffers(), steps)
        except UndefinedError:
            return None

    try:
        found = separate_lanes(node, variables, buffers(), steps)
    except UndefinedError:
        found = tuple(map(lane, range(node.dtype.count)))
    return None if all(v is None for v in found) else found


def value_in_time(node: UOp, at: World, steps: int = STEPS) -> Any:
    """The value of a node; None where it has none, or none in so many steps, or no meaning, as a store to what is no place."""
    try:
        return value(node, at, steps)
    except (IRError, StepLimitError):
        return None


MAKERS: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {  # of small graphs, and of large ones
    "tensors": (TensorMaker, LargeTensors),
    "launches": (LaunchMaker, LargeLaunches),
    "axes": (UnrolledMaker, LargeAxes),
    "lanes": (LaneMaker, LargeLanes),
    "structures": (StructureMaker, LargeStructures),
}


@once_a_rule
def subject(rule: CheckedRule) -> str:
    """The subject of a rule: it says who makes graphs for its pattern."""
    asked = {"tensors": about_tensors_alone, "launches": about_launches, "axes": about_axes, "lanes": about_lanes}
    found = next((name for name, about in asked.items() if about(rule)), "structures")
    by_lane = rule.pointwise or of_vector_constants(rule) or asks_for_lanes(rule)
    return "values" if found == "structures" and by_lane else found


@once_a_rule
def asks_for_lanes(rule: CheckedRule) -> bool:
    """True if a rule matches ops alone that work lane by lane, and asks for the lanes of its operands."""
    structural = (n for n, info in rule.dialect.ops.items() if not info.params)
    return names_in(rule.syntax.pattern).isdisjoint(structural) and any(
        "lanes" in names_in(c) for c in rule.syntax.clauses
    )


@once_a_rule
def of_vector_constants(rule: CheckedRule) -> bool:
    """True if a rule speaks of vector constants, and of ops that work lane by lane alone."""
    named = names_in(rule.syntax.pattern)
    structural = (n for n, info in rule.dialect.ops.items() if not info.params)
    return not named.isdisjoint(("vconst", "anyconst")) and named.isdisjoint(structural)


def graphs_at(
    rule: CheckedRule, tries: int, instances: tuple[Instance, ...], large: bool = False
) -> Iterator[tuple[UOp, random.Random, Instance]]:
    """Up to `tries` graphs that the rule's pattern matches at these instances, the same in every process, with the instance that
    each is of; Unmakeable if the pattern has no maker. `large`: of larger sizes.
    """
    rng = random.Random(crc32(rule.name.encode()))
    for _ in range(tries):
        instance, graph = graph_at(rule, rng, instances, large)
        if graph is not None:
            yield graph, rng, instance


def graph_at(
    rule: CheckedRule, rng: random.Random, instances: tuple[Instance, ...], large: bool = False
) -> tuple[Instance, UOp | None]:
    """A graph that the rule's pattern matches, as chance has it, with the instance that it is of; None where the parts that were
    chosen make none; Unmakeable if the pattern has no maker.
    """
    about = subject(rule)
    opened = completed(rule)
    if asks_for_lanes(rule):
        lanes = rng.choice((1, 2, 3, 4))
    else:
        lanes = 3 if of_vector_constants(rule) or rng.random() < 0.1 else 1
    instance = rng.choice(instances)
    if large and about in ("values", "structures"):
        lanes = size(rng)
    matched = rule if opened is rule or rng.random() < 0.5 else opened  # what is left open is there, or is not
    maker = Maker(matched, instance, rng, lanes) if about == "values" else MAKERS[about][large](matched, instance, rng)
    try:
        return instance, maker.make(matched.syntax.pattern)
    except (IRError, *MISMADE):
        return instance, None  # no such node: constants out of a dtype's range made a vector constant a scalar one, say


@dataclass(frozen=True, slots=True)
class Difference:
    """A graph, and values at which what a rule makes of it is not the same.

    expected, got  the two values; `got` is None where it is undefined
    why            what is wrong instead of a value, in words
    instance       of the rule, that the graph was made for
    """

    before: UOp
    after: UOp | None
    at: World | None = None
    expected: Any = None
    got: Any = None
    why: str = ""
    instance: Instance | None = None

    def __str__(self) -> str:
        if self.after is None:
            return f"{self.before.text()} {self.why}"
        if self.at is None:
            return f"{self.before.text()} is {self.before.dtype.name}, {self.after.text()} is {self.after.dtype.name}"
        shown = self.why or ("is undefined" if self.got is None else f"is {self.got}")
        where = "" if self.why else f" at {self.at.text()}"
        return f"{self.before.text()} is {self.expected}, {self.after.text()} {shown}{where}"


def _counted(before: UOp, after: UOp) -> Difference | None:
    """A difference, unless the replacement of a launched range takes each of its values as often as the hardware's indices do."""
    specials = [n for n in after.toposort() if n.op is Op.Special]
    every = itertools.product(*(range(int(s.vmax) + 1) for s in specials))
    try:
        found = sorted(evaluate(after, dict(zip(specials, at, strict=True))) for at in every)
    except UndefinedError as why:
        return Difference(before, after, why=f"has no value for some of the hardware's indices: {why.message}")
    wanted = sorted([*range(int(before.vmax) + 1)] * (len(found) // (int(before.vmax) + 1)))
    return None if found == wanted else Difference(before, after, why=f"takes the values {found}")


class Trial:
    """A graph, and what it is at a few choices of values; these are made when they are first asked for, and kept."""

    __slots__ = ("_found", "_most", "_outcomes", "_rng", "_steps", "_tried", "graph", "instance")

    def __init__(
        self,
        graph: UOp,
        rng: random.Random,
        worlds: int = ENVIRONMENTS,
        instance: Instance | None = None,
        steps: int = STEPS,
    ) -> None:
        self.graph = graph
        self.instance = instance
        self._steps = steps
        self._most = worlds
        self._rng = rng
        self._tried = 0
        self._outcomes: list[tuple[World, Any]] = []
        self._found: dict[UOp, Difference | None] = {}

    def outcomes(self) -> Iterator[tuple[World, Any]]:
        """Values of the graph's variables, and the graph's own value there, where it has one."""
        yield from self._outcomes
        while self._tried < self._most:
            self._tried += 1
            at = world(self.graph, self._rng)
            expected = None if at is None else value_in_time(self.graph, at, self._steps)
            if at is not None and expected is not None:
                self._outcomes.append((at, expected))
                yield at, expected

    def has_value(self) -> bool:
        """True if the graph is defined at some of these values: rules about what never is are of no use."""
        return next(self.outcomes(), None) is not None

    def differs(self, after: UOp, within: bool = False, nsz: bool = False) -> Difference | None:
        """Values at which another graph is not the same; None if there are none here. `within`: close is enough; `nsz`: zeros are
        all one.
        """
        if after not in self._found:
            self._found[after] = self._differs(after, within, nsz)
        return self._found[after]

    def _differs(self, after: UOp, within: bool, nsz: bool) -> Difference | None:
        before = self.graph
        if after.dtype is not before.dtype:
            return Difference(before, after)
        if launched(before):
            return _counted(before, after)
        for at, expected in self.outcomes():
            try:
                got = value(after, at, self._steps)
            except StepLimitError:
                continue
            except (IRError, ValueError, LookupError) as why:  # a place of too few indices, or outside, say
                return Difference(before, after, at, expected, None, f"has no meaning: {why}")
            if got is not None and nsz:
                expected, got = unsigned(expected), unsigned(got)
            if got is None or not alike(before, expected, got, within):
                return Difference(before, after, at, expected, got)
        return None


def _no_context(_: UOp) -> None:
    return None


class Rewriter:
    """A rule as its matcher applies it: at the root, with a context of the graph's own (its class has a method `of`) where the
    rule's helpers get one.
    """

    def __init__(self, rule: CheckedRule, extents: Extents = ()) -> None:
        """`extents`: of a proof that the matcher is to keep to."""
        limits = {rule.name: extents} if extents else {}
        self._rules = RuleSet((Listed((rule,), Standing.UNPROVED, limits),))
        self._context: Callable[[UOp], Any] | None = _no_context
        if (rule.externs or rule.context is not None) and rule.helpers is not None and not trusted(rule.helpers):
            self._context = None
        elif rule.context is not None:
            helpers = helper_module(rule.helpers) if rule.helpers is not None else None
            self._context = getattr(getattr(helpers, rule.context, None), "of", None)

    def __call__(self, graph: UOp) -> UOp | None:
        """The graph after the rule, if it applies; raises what a helper raises where its contract excludes the call."""
        if self._context is None:
            return None  # what the helpers know of the whole kernel no graph by itself has, or nobody said to run them
        hit = self._rules.rewrite_node(graph, self._context(graph))
        return None if hit is None else hit[0]


class Trials:
    """The graphs that a rule's pattern matches, in one order; what is found out about them serves every rule of this pattern."""

    def __init__(
        self,
        rule: CheckedRule,
        instances: tuple[Instance, ...] | None = None,
        worlds: int = ENVIRONMENTS,
        large: bool = False,
    ) -> None:
        """`instances`: those to make graphs at; by default the narrow ones. `worlds`: choices of values for each graph."""
        self._worlds = worlds
        self._made: list[Trial] = []
        self._more = enumerate(graphs_at(rule, FURTHER, narrow(rule) if instances is None else instances, large))
        self._name = rule.name

    def first(self, count: int) -> Iterator[Trial]:
        """Up to so many of them; none if the pattern has no maker."""
        for i in range(count):
            while len(self._made) <= i:
                try:
                    at, (graph, _, instance) = next(self._more)
                except (StopIteration, Unmakeable):
                    return
                self._made.append(Trial(graph, random.Random(f"{self._name} {at}"), self._worlds, instance))
            yield self._made[i]


class Original:
    """A rule that holds, to compare its mutants with: its graphs, and what it makes of each."""

    def __init__(self, rule: CheckedRule) -> None:
        self.rule = rule
        self.trials = Trials(rule)
        self._apply = Rewriter(rule)
        self._made: dict[Trial, UOp | None] = {}

    def serves(self, mutant: CheckedRule) -> bool:
        """True if the mutant takes the same graphs."""
        return mutant.syntax.pattern == self.rule.syntax.pattern and mutant.instances == self.rule.instances

    def makes(self, trial: Trial) -> UOp | None:
        if trial not in self._made:
            self._made[trial] = self._apply(trial.graph)
        return self._made[trial]


def counterexample(rule: CheckedRule, trials: Trials | None = None, tries: int = TRIES) -> Difference | None:
    """A graph and values at which the rule, as its matcher applies it, is false; None if a few hundred trials found none."""
    return _search(rule, None, trials or Trials(rule), tries).difference if _claims_equality(rule) else None


def compared(mutant: CheckedRule, original: Original, guard: bool) -> tuple[Difference | None, str | None]:
    """A counterexample to a mutant with the original's pattern; and a graph with a value on which it fires and the original does
    not. `guard`: only guards are changed, and there is more to look at than values.

    Where both make the same, nothing is evaluated: the original is known to hold.
    """
    found = _search(mutant, original, original.trials, FURTHER if guard else TRIES)
    return found.difference, found.further


def tried(rule: CheckedRule, trials: Trials, tries: int, enough: int) -> tuple[Difference | None, bool]:
    """A graph and values at which a rule is false, and the truth of it having fired on a graph that has a value: in so many
    tries, or in as many as make it fire on enough of these.
    """
    found = _search(rule, None, trials, tries, enough)
    return found.difference, found.met > 0


class _Searched(NamedTuple):
    """The outcome of trials: a counterexample; a graph with a value on which only the mutant fires; how many it fires on."""

    difference: Difference | None = None
    further: str | None = None
    met: int = 0


def _search(
    rule: CheckedRule, original: Original | None, trials: Trials, tries: int, enough: int = FURTHER
) -> _Searched:
    with config.settings(fast_math=frozenset(rule.syntax.assuming)):
        return _compare(rule, Rewriter(rule), original, trials.first(tries), _claims_equality(rule), enough)


def _claims_equality(rule: CheckedRule) -> bool:
    """True if a rule claims that bits are equal; of one that claims much less evaluation sees whether it fires, and no more."""
    return set(rule.syntax.assuming) <= {"nsz"} and rule.syntax.within is None


class Judged:
    """A rule that is false somewhere, judged on other graphs: one after the other, each in few steps of the interpreter."""

    def __init__(self, rule: CheckedRule, steps: int) -> None:
        self._rule, self._steps = rule, steps
        self._apply = Rewriter(rule)

    def __call__(self, graph: UOp, instance: Instance | None) -> Difference | None:
        """The difference that the rule makes to a graph, at values that are the same in every process; None if there is none."""
        trial = Trial(graph, random.Random(f"{self._rule.name} again"), ENVIRONMENTS, instance, self._steps)
        with config.settings(fast_math=frozenset(self._rule.syntax.assuming)):
            return _compare(self._rule, self._apply, None, iter((trial,)), strict=True, enough=FURTHER).difference


def _compare(
    rule: CheckedRule, apply: Rewriter, original: Original | None, trials: Iterator[Trial], strict: bool, enough: int
) -> _Searched:
    further: str | None = None
    met = 0
    for trial in trials:
        try:
            made = apply(trial.graph)
            known = None if original is None or made is None else original.makes(trial)
        except (ArithmeticError, LookupError):
            continue  # parts or arguments that the rule should exclude: that is for the prover to see
        except IRError as why:
            if strict:
                no_node = Difference(
                    trial.graph, None, why=f"becomes what is no node: {why.message}", instance=trial.instance
                )
                return _Searched(no_node, met=met)
            continue
        if made is None or made is known:
            continue
        if strict and (found := trial.differs(made, nsz=bool(rule.syntax.assuming))) is not None:
            return _Searched(replace(found, instance=trial.instance), met=met + 1)
        if original is None:
            met += trial.has_value()
            if met == enough:
                break
        elif known is None and further is None and trial.has_value():
            further = trial.graph.text()
    return _Searched(None, further, met)
