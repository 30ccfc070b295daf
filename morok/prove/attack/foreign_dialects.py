"""Dialects of others, and rules over them: some dialects are right, some have a mistake that no rule over them may get past.

A dialect is made from its name, `attacked_FORM_LOW_HIGH_MISTAKE_OP`: integers from LOW to HIGH, of which sums that leave the
range are clipped or wrap. Nodes are tuples; there are also some of a type that the dialect does not list, where sums wrap further
away.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from morok import dialect as dialects
from morok.dialect import NOT_CONST, OperandInfo, OpInfo
from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.errors import MorokError
from morok.prove import ledger, smt
from morok.prove.attack.outcome import STATES, Outcome
from morok.prove.attack.rule_templates import templates
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.plain import IntegerTheory
from morok.prove.semantics.term import strict
from morok.prove.verdict import Verdict
from morok.prove.workers import prove_all
from morok.rewrite.ruleset import RuleSet

HERE: Final = __name__
PREFIX: Final = "attacked_"
MISTAKES: Final = ("none", "none", "none", "evaluator", "evaluator", "key", "commutes", "constant", "values", "unknowns")
WIDE: Final = 1000  # nodes of the type that no dialect lists
GRAPHS: Final = 12
BUDGET: Final = 3_000  # solver units an obligation
WORLDS: Final = 40

Node = tuple[Any, ...]
FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Max": max,
    "Min": min,
    "Neg": lambda a: -a,
}


class Sketch(NamedTuple):
    """A sketch of a dialect: `mistake` is one of MISTAKES, of the op that `wrong` names."""

    form: str
    low: int
    high: int
    mistake: str
    wrong: str

    @property
    def name(self) -> str:
        low = f"m{-self.low}" if self.low < 0 else str(self.low)
        return f"{PREFIX}{self.form}_{low}_{self.high}_{self.mistake}_{self.wrong}"

    @staticmethod
    def of(name: str) -> Sketch:
        form, low, high, mistake, wrong = name.removeprefix(PREFIX).split("_")
        return Sketch(form, int(low.replace("m", "-")), int(high), mistake, wrong)

    def within(self, v: int) -> int:
        return fit(self.form, self.low, self.high, v)


def fit(form: str, low: int, high: int, v: int) -> int:
    """A number in a range: clipped to it, or counted around it."""
    return max(low, min(high, v)) if form == "clip" else (v - low) % (high - low + 1) + low


def sketch(rng: random.Random, ops: Sequence[str]) -> Sketch:
    """A random dialect, its mistake in one of these ops."""
    low, high = rng.choice(((0, 1), (0, 3), (-2, 1), (-4, 3), (-3, 3), (-8, 7), (0, 15), (-100, 100)))
    return Sketch(rng.choice(("clip", "wrap")), low, high, rng.choice(MISTAKES), rng.choice(ops))


def _evaluator(s: Sketch, name: str) -> Callable[..., int]:
    function = FUNCTIONS[name]
    if s.mistake == "evaluator" and name == s.wrong:
        return lambda d, *values: s.within(function(*values) + (1 if values[-1] == s.high else 0))
    return lambda d, *values: s.within(function(*values))


def _op(s: Sketch, name: str) -> OpInfo:
    count = 1 if name == "Neg" else 2
    key = "add" if s.mistake == "key" and name == "Max" else name.lower()
    return OpInfo(
        name=name,
        key=key,
        operands=tuple(OperandInfo(f"x{k}") for k in range(count)),
        params=("T",) * count,
        result="T",
        domains={"T": ("n",)},
        kind="unary" if count == 1 else "binary",
        commutative=name in ("Add", "Max", "Min") or (s.mistake == "commutes" and name == "Sub"),
        evaluate=_evaluator(s, name),
        solver=f"{HERE}:solve_{name}_{s.name}",
    )


class Attacked:
    """The dialect of a sketch: one dtype, "n", and nodes ("var", name, type), ("const", value, type), (key, operand, ..)."""

    dtypes: Mapping[str, Hashable] = {"n": "n"}
    classes: Mapping[str, frozenset[str]] = {word: frozenset({"n"}) for word in ("any", "int", "number")}
    inline: Mapping[str, str] = {}
    facts: Mapping[str, Callable[..., Any]] = {}

    def __init__(self, s: Sketch) -> None:
        self.sketch = s
        self.name = s.name
        self.ops: Mapping[str, OpInfo] = {name: _op(s, name) for name in FUNCTIONS}
        self.theory = f"{HERE}:Theory_{s.name}"

    def opkey(self, node: Node) -> Hashable:
        key: Hashable = node[0]
        return key

    def operands(self, node: Node) -> Sequence[Node]:
        return () if node[0] in ("var", "const") else node[1:]

    def attr(self, node: Node, name: str) -> Any:
        raise AttributeError(name)

    def type(self, node: Node) -> str:
        return type_of(node)

    def same(self, a: Node, b: Node) -> bool:
        return a == b

    def const_value(self, node: Node) -> Any:
        return node[1] if node[0] == "const" else NOT_CONST

    def const(self, dtype: Hashable, value: Any) -> Node:
        v = self.sketch.within(int(value))
        if self.sketch.mistake == "constant" and v == self.sketch.high:
            v -= 1
        return "const", v, dtype

    def build(self, op: str, operands: Sequence[Node], attrs: Mapping[str, Any], dtype: Hashable | None) -> Node:
        return (op.lower(), *operands)

    def rebuild(self, node: Node, operands: Sequence[Node]) -> Node:
        return (node[0], *operands)


@functools.cache
def registered(name: str) -> Attacked:
    """The dialect of that name, known to rule files from then on."""
    found = Attacked(Sketch.of(name))
    dialects.register(found)
    return found


def __getattr__(name: str) -> Any:
    """The theories and meanings of ops that the prover looks up here, by the names that the dialects give."""
    kind, _, rest = name.partition("_")
    if kind == "Theory":
        return _theory(Sketch.of(rest))
    if kind == "solve":
        op, _, rest = rest.partition("_")
        return _meaning(op, Sketch.of(rest))
    raise AttributeError(name)


@functools.cache
def _theory(s: Sketch) -> Any:
    high = s.high - 1 if s.mistake == "values" else s.high
    return type("Theory", (IntegerTheory,), {"limits": {"n": (s.low, high)}})


@functools.cache
def _meaning(op: str, s: Sketch) -> Callable[..., Any]:
    def fitted(v: Any) -> Any:
        if s.form == "clip":
            return smt.If(v > s.high, s.high, smt.If(v < s.low, s.low, v))
        size = s.high - s.low + 1
        return smt.If(v > s.high, v - size, smt.If(v < s.low, v + size, v))  # of one sum, which leaves the range once at most

    def solve(w: Any, d: Any, a: Any, *more: Any) -> Any:
        b = more[0].value if more else None
        if s.mistake == "unknowns" and op == s.wrong and smt.simplify(a.value).head != "value":
            return strict(a.value, a, *more)  # right of numbers alone
        made: dict[str, Callable[[], Any]] = {
            "Add": lambda: fitted(a.value + b),
            "Sub": lambda: fitted(a.value - b),
            "Max": lambda: smt.If(a.value > b, a.value, b),
            "Min": lambda: smt.If(a.value < b, a.value, b),
            "Neg": lambda: fitted(-a.value),
        }
        return strict(made[op](), a, *more)

    return solve


# The rules, and how they fare.


def foreign(rng: random.Random) -> str:
    """A rule file over a random dialect."""
    rule = rng.choice(templates()["foreign"]).replace("OP", rng.choice(("Add", "Sub", "Max", "Min")))
    s = sketch(rng, [op for op in FUNCTIONS if f"{op}(" in rule or f"{op}[" in rule])
    rule = rule.replace("BELOW", str(s.high - 1)).replace("HIGH", str(s.high)).replace("LOW", str(s.low))
    registered(s.name)
    return f'dialect {s.name}\n\ngroup attack "a random rule"\n\nr: {rule}\n'


def rule_of(text: str) -> CheckedRule:
    registered(text.split()[1])
    return next(iter(check_text(text, "<attack>").rules()))


def verdict_of(rule: CheckedRule, budget: int) -> Verdict:
    """The verdict of `morok prove`, on the dialect and the rule."""
    return prove_all([rule], budget, 1, False)[0]


class Graphs:
    """Nodes that a pattern matches, all of one type: the dialect's, or the one that it does not list."""

    def __init__(self, rule: CheckedRule, rng: random.Random) -> None:
        self.rule, self.rng = rule, rng
        assert isinstance(rule.dialect, Attacked)
        self.dialect = rule.dialect

    def make(self) -> Node:
        self.type = "n" if self.rng.random() < 0.7 else "wide"
        self.names: dict[str, Node] = {}
        return self.of(self.rule.syntax.pattern)

    def number(self) -> int:
        s = self.dialect.sketch
        return self.rng.choice((s.low, s.high, 0, self.rng.randint(s.low, s.high)))

    def of(self, p: S.Pattern) -> Node:
        match p:
            case S.PVar(name=name):
                leaf = ("const", self.number(), self.type) if self.rng.random() < 0.2 else ("var", name, self.type)
                return self.names.setdefault(name, leaf)
            case S.PConst():
                return "const", self.number(), self.type
            case S.PLiteral(value=v):
                return "const", v, self.type
            case S.POp(ops=(op, *_), args=args):
                operands = [self.of(a) for a in args]
                if p.commutative and self.rng.random() < 0.5:
                    operands.reverse()
                return (self.dialect.ops[op].key, *operands)
        raise AssertionError(p)


def value(s: Sketch, node: Node, at: Mapping[str, int]) -> int:
    """The meaning of a node, stated apart from the dialect."""
    if node[0] == "var":
        return at[node[1]]
    if node[0] == "const":
        return int(node[1])
    values = [value(s, n, at) for n in node[1:]]
    found = FUNCTIONS[node[0].capitalize()](*values)
    return s.within(found) if type_of(node) == "n" else fit("wrap", -WIDE, WIDE, found)


def type_of(node: Node) -> str:
    return str(node[2]) if node[0] in ("var", "const") else type_of(node[1])


def variables(node: Node) -> set[str]:
    return {node[1]} if node[0] == "var" else set() if node[0] == "const" else set().union(*map(variables, node[1:]))


def worlds(s: Sketch, names: Sequence[str], at: str, rng: random.Random) -> Iterator[dict[str, int]]:
    """Values of variables: all there are where they are few, else edges and random ones."""
    low, high = (s.low, s.high) if at == "n" else (-WIDE, WIDE)
    if (high - low + 1) ** len(names) <= WORLDS:
        yield from (dict(zip(names, vs, strict=True)) for vs in itertools.product(range(low, high + 1), repeat=len(names)))
        return
    for _ in range(WORLDS):
        yield {n: rng.choice((low, high, 0, rng.randint(low, high), rng.randint(-4, 4) if at != "n" else high)) for n in names}


def fire(rule: CheckedRule, rng: random.Random) -> tuple[int, bool, str]:
    """The number of firings, True if any changed something, and a difference, if there is one."""
    graphs = Graphs(rule, rng)
    rules = RuleSet.of([rule], unproved=True)
    s = graphs.dialect.sketch
    times, changed = 0, False
    for _ in range(GRAPHS):
        before = graphs.make()
        try:
            hit = rules.rewrite_node(before, None)
        except MorokError:
            continue
        if hit is None:
            continue
        after = hit[0]
        times, changed = times + 1, changed or after != before
        for at in worlds(s, sorted(variables(before)), type_of(before), rng):
            one, other = value(s, before, at), value(s, after, at)
            if one != other or type_of(before) != type_of(after):
                return times, changed, f"{before} is {one}, {after} is {other} at {at}"
    return times, changed, ""


def put(text: str, name: str, budget: int = BUDGET) -> Outcome:
    """A rule over a dialect of its own put to trial; and once more as if the dialect had been edited after it was proved."""
    rule = rule_of(text)
    rng = random.Random(name)
    times, changed, shown = fire(rule, rng)
    if not times:
        return Outcome("never")
    verdict = verdict_of(rule, budget)
    if not verdict.usable:
        return Outcome(verdict.verdict if verdict.verdict in STATES else "refuted", times, 0, changed, message=verdict.message)
    scope = "; ".join(verdict.scope)
    if not shown and (stale := edited(rule, text, rng)):
        shown, scope = stale, f"{scope}; recorded before the dialect was edited, and still believed"
    return Outcome("false" if shown else "usable", times, 0, changed, shown, scope)


def edited(rule: CheckedRule, text: str, rng: random.Random) -> str:
    """A difference that the rule makes once an evaluator of its dialect is another, where a record of it would still count."""
    assert isinstance(rule.dialect, Attacked)
    s = rule.dialect.sketch
    for op in ops_of(rule):
        other = Attacked(s)
        evaluate = _evaluator(s._replace(mistake="evaluator", wrong=op), op)
        other.ops = {**other.ops, op: dataclasses.replace(other.ops[op], evaluate=evaluate)}
        again = next(iter(check_text(text, "<attack>", other).rules()))
        if ledger.rule_digest(again) == ledger.rule_digest(rule) and (shown := fire(again, rng)[2]):
            return shown
    return ""
