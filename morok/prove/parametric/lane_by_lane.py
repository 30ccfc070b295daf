"""Rules for which vectors of two lanes stand for all: they work lane by lane, and what they ask holds of every lane.

Let such a rule be false at n > 2 lanes, and l a lane where its sides differ. Keep lane l and one other of every vector: lane l of
each node is computed from lane l, or the only lane, of its operands, so the sides still differ there. What the guards ask of the
nodes that are left was true of all lanes, and is true of some: bounds of a node bound every lane, and dtypes have none. So the
rule is false at two lanes, where it was tried.
"""

from __future__ import annotations

from typing import Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.extent import Extent
from morok.dsl.functions import FUNCTIONS
from morok.prove.asked_of_rules import once_a_rule
from morok.prove.rule_syntax import ops_of

STRUCTURAL: Final = frozenset({"Invalid", "Const", "Index"})  # lane by lane, like the ops that have parameters
# What speaks of several lanes, or of how many there are, and lists of anything.
LISTS: Final = (S.EComprehension, S.EIndex, S.ERange, S.ESpread, S.PSequence)
FACTS: Final = frozenset({"vmin", "vmax", "dtype", "bits", "is_int", "is_float", "safe_cast"})
SEQUENCES: Final = frozenset({"seq", "ints", "bools", "pairs", "several"})


@once_a_rule
def lane_by_lane(rule: CheckedRule) -> bool:
    """Truth of a rule having only what these lines allow."""
    ops = rule.dialect.ops
    if not built_in(rule.dialect):
        return False
    target = {op for op in ops_of(rule) if not (ops[op].params or ops[op].solver or op in STRUCTURAL)}
    if target and not (target == {"Load"} and _loads_only_what_it_builds(rule)):
        return False
    types = [*rule.types.values(), *(b.type for b in rule.bindings.values() if b.type is not None)]
    if any(isinstance(t.lanes, int) and t.lanes > 1 for t in types):
        return False
    everything = list(S.walk(rule.syntax.pattern, rule.syntax.target, *rule.syntax.clauses))
    if any(isinstance(at, LISTS) or (isinstance(at, S.PConst) and at.kind in ("vconst", "anyconst")) for at in everything):
        return False
    counted = {id(c) for at in everything for c in _comparisons_of_lanes(at)}
    return all(_allowed(rule, at) or id(at) in counted for at in everything if isinstance(at, S.ECall))


def covered(extent: Extent) -> bool:
    """Truth of an extent being one that such a rule needs no more of: one lane and two were tried."""
    return extent.what == "lanes" and extent.least <= 1 and extent.most >= 2


def _loads_only_what_it_builds(rule: CheckedRule) -> bool:
    """Truth of every Load being one of the target with no dtype of its own: it has as many lanes as its place."""
    pattern = {op for p in S.walk(rule.syntax.pattern) for op in getattr(p, "ops", None) or (getattr(p, "op", None),)}
    made = [e for e in S.walk(rule.syntax.target) if isinstance(e, S.ECall) and e.name == "Load"]
    structs = [e for e in S.walk(rule.syntax.target) if isinstance(e, S.EStruct) and e.op == "Load"]
    return "Load" not in pattern and all(len(e.args) == 1 for e in made) and not structs


def _allowed(rule: CheckedRule, call: S.ECall) -> bool:
    if call.name in rule.dialect.ops or call.name in ("const", "eval"):
        return True
    if call.name in rule.externs:
        return not any(
            isinstance(c, S.Let) and c.value is call and any(not n.startswith("_") for n in c.names) for c in rule.syntax.clauses
        ) and any(isinstance(c, S.Let) and c.value is call for c in rule.syntax.clauses)
    function = FUNCTIONS.get(call.name)
    if function is None:
        return False
    return call.name in FACTS if function.fact else SEQUENCES.isdisjoint(function.params)


def _comparisons_of_lanes(at: S.Syntax) -> list[S.Expr]:
    """The calls in `lanes(x) > 1` and `lanes(x) == lanes(y)`, which two lanes meet where more do."""
    if not isinstance(at, S.ECompare) or len(at.ops) != 1:
        return []
    left, right = at.operands
    counts = [o for o in at.operands if isinstance(o, S.ECall) and o.name == "lanes"]
    if len(counts) == 2 and at.ops == ("==",):
        return list(counts)
    alone = isinstance(right, S.ENumber) and right.value == 1 and at.ops in ((">",), ("==",), ("!=",))
    return [left] if counts == [left] and alone else []
