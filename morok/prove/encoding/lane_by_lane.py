"""Rules for which vectors of two lanes stand for all: they work lane by lane, and what they ask holds of every lane.

Let such a rule be false at n > 2 lanes, and l a lane where its sides differ. Keep lane l and one other of every vector. Lane l of
each node is computed from lane l, or the only lane, of its operands. So the sides still differ there. What the guards ask of the
nodes that are left was true of all lanes, and is true of some: every lane is within the bounds of a node, and dtypes are one; and
so is what contracts say of helpers lane by lane. So the rule is false at two lanes, or at one.
"""

from __future__ import annotations

from typing import Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.functions import FUNCTIONS
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.encoding.obligation import reads_lanes
from morok.prove.rule_syntax import ops_of

MOST_NEEDED: Final = 2  # lanes
STRUCTURAL: Final = frozenset({"Invalid", "Const", "Index"})  # lane by lane, like the ops that have parameters
# What speaks of several lanes, or of how many there are, and lists of anything.
LISTS: Final = (S.EComprehension, S.EIndex, S.ERange, S.ESpread, S.PSequence)
FACTS: Final = frozenset({"vmin", "vmax", "dtype", "bits", "is_int", "is_float", "safe_cast"})
SEQUENCES: Final = frozenset({"seq", "ints", "bools", "pairs", "several"})


@once_a_rule
def lane_by_lane(rule: CheckedRule) -> bool:
    """True if a rule has only what these tables allow."""
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
    if reads_lanes(rule) or any(isinstance(at, LISTS) for at in everything):
        return False
    named = {t.lanes for t in types}  # `x: i32 x n` makes n the number of lanes
    if any(isinstance(at, S.EName) and at.name in named for at in everything):
        return False
    counted = {id(c) for at in everything for c in _comparisons_of_lanes(at)}
    return all(_allowed(rule, at) or id(at) in counted for at in everything if isinstance(at, S.ECall))


def _loads_only_what_it_builds(rule: CheckedRule) -> bool:
    """True if each Load stands in the target and has no dtype of its own, so that it has as many lanes as its place."""
    pattern = {op for p in S.walk(rule.syntax.pattern) for op in S.ops_matched(p)}
    made = [e for e in S.walk(rule.syntax.target) if isinstance(e, S.ECall) and e.name == "Load"]
    structs = [e for e in S.walk(rule.syntax.target) if isinstance(e, S.EStruct) and e.op == "Load"]
    return "Load" not in pattern and all(len(e.args) == 1 for e in made) and not structs


def _allowed(rule: CheckedRule, call: S.ECall) -> bool:
    if call.name in rule.dialect.ops or call.name in ("const", "eval"):
        return True
    if call.name in rule.externs:
        lets = [c for c in rule.syntax.clauses if isinstance(c, S.Let) and c.value is call]
        unread = all(n.startswith("_") for c in lets for n in c.names)
        return bool(lets) and (unread or _of_every_lane(rule.externs[call.name]))
    function = FUNCTIONS.get(call.name)
    if function is None:
        return False
    return call.name in FACTS if function.fact else SEQUENCES.isdisjoint(function.params)


def _of_every_lane(extern: S.Extern) -> bool:
    """True if a contract holds lane by lane: it counts nothing, iterates over no list, and negates nothing."""
    return all(_says_of_lanes(at) for at in S.walk(*extern.requires, *extern.ensures))


def _says_of_lanes(at: S.Syntax) -> bool:
    match at:
        case S.ECall(name="same" | "free_of") | S.EName() | S.EBinary():
            return True
        case S.ECompare(ops=ops):
            return set(ops) == {"=="}
    return False


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
