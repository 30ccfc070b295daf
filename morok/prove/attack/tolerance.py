"""The possible values of ops with a tolerance: any function within it, the same for equal operands."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.ir.op import TABLE, Op
from morok.ir.ops.transcendental import TOLERANCE
from morok.ir.uop import UOp


def made(rule: CheckedRule) -> frozenset[Op]:
    """The inexact ops of which a rule leaves an application: in its target, in a clause, in a part of its pattern that has a name
    or is not the root, so that other nodes may use it.

    Of others only the pattern has one, which may be taken for any value within the tolerance: they are evaluated as they are.
    (That is said here apart from the prover's own reading, which is what is attacked.)
    """
    root = rule.syntax.pattern
    while isinstance(root, S.PBind):
        root = root.inner
    left: list[S.Syntax] = [rule.syntax.target, *rule.syntax.clauses]
    left += [p.inner for p in S.walk(rule.syntax.pattern) if isinstance(p, S.PBind)]
    left += [p for r in (root.options if isinstance(root, S.PAlternatives) else (root,)) for p in S.children(r)]
    names: set[str] = set()
    for at in S.walk(*left):
        if isinstance(at, S.ECall):
            names.add(at.name)
        elif isinstance(at, S.POp):
            names.update(at.ops)
    return frozenset(op for op in TOLERANCE if op.name in names)


def _off(op: Op, evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def off(d: Any, *values: Any) -> Any:
        exact = evaluate(d, *values)
        special = values[1] == 0 or values[0] == 1 if op is Op.Pow else values[0] == 0
        if not d.is_float or special or exact == 0 or not all(map(math.isfinite, (exact, *values))):
            return exact  # what is exact at every tolerance
        near = math.frexp(exact)
        step = math.ldexp(1.0, near[1] - {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[d.name])
        moved = exact + (1, 0, -1)[crc32(repr((op.name, d.name, values)).encode()) % 3] * step
        return UOp.const(moved, d).arg

    return off


@contextmanager
def within(ops: frozenset[Op]) -> Iterator[None]:
    """Evaluation with these ops off by a unit in the last place, or not, as their operands say."""
    kept = {op: TABLE.entries[op] for op in ops}
    try:
        for op, entry in kept.items():
            assert entry.evaluate is not None
            TABLE.entries[op] = dataclasses.replace(entry, evaluate=_off(op, entry.evaluate))
        yield
    finally:
        TABLE.entries.update(kept)
