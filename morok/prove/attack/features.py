"""The features that a rule exercises: ops, functions of the expression language, dtypes, classes of structure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.functions import BINARY, COMPARISONS, FUNCTIONS, SPECIAL, UNARY
from morok.ir.morok_dialect import MOROK
from morok.prove.attack.random_terms import DOMAINS
from morok.prove.encoding.structure import StructureEncoder
from morok.prove.parametric.structural_ops import READ
from morok.prove.parametric.tensor_rules import OPS as TENSORS
from morok.prove.rule_syntax import ops_of

CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "lanes taken and joined": frozenset({"Gep", "Vectorize", "Cat", "VConst"}),
    "axes": frozenset({"Unroll", "Contract"}),
    "places": frozenset({"Index", "Load", "Store", "PtrCat"}),
    "folds": frozenset({"Reduce"}),
    "loops": frozenset({"Range", "End"}),
    "products": frozenset({"Wmma"}),
    "movement": frozenset({"Reshape", "Permute", "Expand", "Pad", "Shrink", "Flip"}),
    "tensors joined and counted": frozenset({"Concat", "Iota"}),
}


UNCOUNTED: Final = frozenset({"Barrier", "If", "EndIf"})  # what is launched, and what branches in lists of instructions


def _read() -> frozenset[str]:
    """The ops that a usable rule may have: of another (a copy between devices, a kernel, what is launched) no rule is."""
    found = TENSORS | frozenset(
        name
        for name, info in MOROK.ops.items()
        if info.params or info.solver or info.role or name in READ or hasattr(StructureEncoder, f"op_{name.lower()}")
    )
    return found - UNCOUNTED


KINDS: Final[Mapping[str, frozenset[str]]] = {
    "op": _read(),
    "function": frozenset((*(f"unary {n}" for n in UNARY), *BINARY, *COMPARISONS, *FUNCTIONS, *SPECIAL)),
    "dtype": frozenset(DOMAINS["any"]),
    "class": frozenset((*CLASSES, "lanewise", "helpers", "contexts")),
}


def features(rule: CheckedRule) -> list[tuple[str, str]]:
    """Pairs of a kind and a name, each once."""
    ops = set(ops_of(rule))
    found = {("op", op) for op in ops}
    found |= {("function", name) for name in _functions(rule)}
    instance = rule.instances[0]
    elements = {t.element if t.fixed else instance.dtypes[t.element] for t in rule.types.values()}
    found |= {("dtype", d) for d in elements}
    found |= {("class", name) for name, some in CLASSES.items() if ops & some}
    if rule.pointwise:
        found.add(("class", "lanewise"))
    if rule.externs:
        found.add(("class", "helpers"))
    if rule.context is not None:
        found.add(("class", "contexts"))
    return sorted((kind, name) for kind, name in found if name in KINDS[kind])


def _functions(rule: CheckedRule) -> Iterable[str]:
    for at in S.walk(*rule.syntax.clauses, rule.syntax.target):
        if isinstance(at, S.ECall):
            yield at.name
        elif isinstance(at, S.EUnary):
            yield f"unary {at.op}"
        elif isinstance(at, S.EBinary):
            yield at.op
        elif isinstance(at, S.ECompare):
            yield from at.ops
