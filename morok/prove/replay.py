"""A counterexample run: the graph that a model describes, rewritten by the rule's own matcher, and both run by the interpreter.

For rules of values, folds of them and their lanes: others are tried on random graphs (morok.prove.trust.differential).
"""

from __future__ import annotations

import random
import string
from collections.abc import Mapping
from typing import Any, Final

from morok import config
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.errors import MorokError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp
from morok.prove.rule_syntax import names_in
from morok.prove.trust.arranged import numbers_in
from morok.prove.trust.differential import STEPS, World, same, unsigned, value
from morok.prove.trust.graphs import MISMADE, Maker, Unmakeable, parts_of
from morok.rewrite.ruleset import RuleSet

LANES: Final = 3
MOST_LANES: Final = 128  # of the numbers in a rule, those of lanes that are tried
LOOPS: Final = 100  # numbers of loops that the rule counts begin there
UNDEFINED = "undefined"
INVALID = "Invalid"


class Firing:
    """A rule at an instance, applied to graphs by its own matcher."""

    def __init__(self, rule: CheckedRule, instance: Instance) -> None:
        self.rule, self.instance = rule, instance
        self.rules = RuleSet.of([rule], unproved=True)
        named = {t.lanes for t in rule.types.values()} | {"lanes"}
        asks = any(not named.isdisjoint(names_in(c)) for c in rule.syntax.clauses)
        few = (1, LANES) if asks or not rule.pointwise else (1,)
        said = {n for n in named if isinstance(n, int) and 1 < n <= MOST_LANES}
        said |= set(numbers_in(rule.syntax, MOST_LANES)) if asks else set()
        self.lanes = (*few, *sorted(said.difference(few)))

    def differing(self, bindings: Mapping[str, Any], steps: int = STEPS) -> tuple[Any, Any] | None:
        """The values of the graph with these bindings and of the rule's result, None where this has none; None if they agree, or
        take more steps.
        """
        return next((found for n in self.lanes if (found := self._differing(bindings, n, steps)) is not None), None)

    def _differing(self, bindings: Mapping[str, Any], lanes: int, steps: int) -> tuple[Any, Any] | None:
        maker = _Named(self.rule, self.instance, bindings, lanes)
        try:
            before = maker.make(self.rule.syntax.pattern)
            with config.settings(fast_math=frozenset(self.rule.syntax.assuming)):
                hit = self.rules.rewrite_node(before)
            at = World(maker.variables, {})
            if hit is None:
                return None
            expected = value(before, at, steps * lanes)
            if expected is None:
                return None
            got = value(hit[0], at, steps * lanes)
        except (Unmakeable, MorokError, *MISMADE):
            return None
        if got is not None and "nsz" in self.rule.syntax.assuming:
            expected, got = unsigned(expected), unsigned(got)
        return None if got is not None and same(before.dtype, expected, got) else (expected, got)


class _First(random.Random):
    """The first of all choices."""

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def random(self) -> float:
        return 1.0


class _Named(Maker):
    """The graph of a pattern, with values for its variables and constants by their names, the same in all lanes. Conditions have
    one lane.
    """

    def __init__(self, rule: CheckedRule, instance: Instance, bindings: Mapping[str, Any], lanes: int) -> None:
        super().__init__(rule, instance, _First(), lanes)
        self.bindings = bindings
        self.variables: dict[Any, Any] = {}
        # in the order in which a pattern has them
        self.unnamed = (k for k in bindings if k.rstrip(string.digits) == "_const")
        asked = (at for at in S.walk(*rule.syntax.clauses) if isinstance(at, S.ECall) and at.name == "free_of")
        self.loops = {name for at in asked for name in names_in(at.args[-1])}  # others depend on no variable

    def make(self, p: S.Pattern) -> UOp:
        match p:
            case S.PVar(name=name) if p.ignored:
                numbered = (k for k in self.bindings if k not in self.nodes and k.rstrip(string.digits) == name)
                name = next(numbered, name)
                self.nodes[name] = self.known(name, self.scalar(p))
                return self.nodes[name]
            case S.PVar(name=name) if name not in self.nodes:
                self.nodes[name] = self.known(name, self.scalar(p))
            case S.PBind(name=name, inner=S.PConst(kind="const", bound=None) as inner) if name not in self.nodes:
                self.nodes[name] = self.const(self.scalar(inner), self.number(name))
            case S.PConst(kind="const"):
                return self.const(self.scalar(p), self.number(p.bound))
            case S.POp(ops=("Invalid", *_)):
                return UOp.invalid_at(dtypes.index)
            case S.POp(ops=("Range",)) | S.PStruct(op="Range"):
                self.count += 1
                return UOp.range(self.make(parts_of(p)["end"]), LOOPS + self.count, AxisType.Reduce)
            case S.PStruct(op="Gep"):
                return self.make(parts_of(p)["vector"]).gep(0)
            case S.PStruct(op="Reduce"):
                parts = parts_of(p)
                ranges = [self.make(r) for r in getattr(parts["ranges"], "items", ()) if not isinstance(r, S.PSequence)]
                name = getattr(parts.get("op"), "name", "")
                return self.make(parts["src"]).reduce(Op[name] if name in Op.__members__ else Op.Add, *ranges)
            case S.POp(ops=(op, *_)) if not TABLE[Op[op]].pointwise:
                raise Unmakeable(op)
        return super().make(p)

    def number(self, name: str | None) -> Any:
        """The number of a constant: under its name, or under one that the prover gave to a constant whose number has no name."""
        return self.bindings[name if name is not None and name in self.bindings else next(self.unnamed, "")]

    def known(self, name: str, d: DType) -> UOp:
        """A variable with the bounds that the model has for it, where it has one alone with its value as the other; a constant
        where one of them is infinite.
        """
        found, d = self.bindings[name], d if d.is_bool else d.vec(self.lanes)
        if found == UNDEFINED:
            base = d if d.is_integral else dtypes.index
            none = UOp.const(1, base) // UOp.const(0, base)
            return none if base is d else none.cast(d)
        if found == INVALID:
            return UOp.invalid_at(d)
        low, high = (self.bindings.get(b, found) for b in (f"vmin.{name}", f"vmax.{name}"))
        bounded = f"vmin.{name}" in self.bindings or f"vmax.{name}" in self.bindings
        if bounded and not (d.is_integral and isinstance(low, int) and isinstance(high, int)):
            return UOp.const(found, d)
        looping = name in self.loops and isinstance(found, int) and found >= 0
        made = (
            UOp.range(UOp.const(found + 1, d), len(self.variables))
            if looping
            else UOp.var(name, d, *((low, high) if bounded else ()))
        )
        self.variables[made] = found
        return made
