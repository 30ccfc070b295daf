"""The hardware indices that a helper gives to two ranges of one kernel: together they count what both ranges do."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from morok.dsl import syntax as S
from morok.ir.interpret import evaluate
from morok.ir.launch import BLOCKS, THREADS
from morok.ir.op import Op
from morok.ir.uop import UOp

_LENGTHS: Final = (2, 3)  # of the other range, besides the first one's
_MOST: Final = 256  # values of hardware indices that are gone through
_ID: Final = 1 << 20  # of the other range: no range of a graph that tests rules has it


def counted(extern: S.Extern) -> list[S.ECall]:
    """The facts of a contract that say which range a hardware index counts."""
    return [at for e in extern.ensures for at in S.walk(e) if isinstance(at, S.ECall) and at.name == "counts"]


def read(fact: S.ECall, names: Mapping[str, Any]) -> tuple[UOp, UOp] | None:
    """The range of a fact, and the number that the hardware has for it; None where the fact is not about names and numbers."""
    found = [names.get(a.name) if isinstance(a, S.EName) else getattr(a, "value", None) for a in fact.args]
    index, of, *steps = found
    if not isinstance(index, UOp) or not isinstance(of, UOp) or any(type(step) is not int for step in steps):
        return None
    digits = [UOp.new(Op.Mod, (UOp.new(Op.Idiv, (index, UOp.const(step))), of.src[0])) for step in steps]
    return of, digits[0] if digits else index


def others(r: UOp) -> Iterator[UOp]:
    """Launched ranges of each kind and of a few lengths; none where they have too many values together with `r` to go through."""
    for kind in sorted(BLOCKS | THREADS, key=lambda kind: kind.name):
        for length in dict.fromkeys((int(r.vmax) + 1, *_LENGTHS)):
            if length * (int(r.vmax) + 1) <= _MOST:
                yield UOp.range(length, _ID, kind)


def count_both(ranges: tuple[UOp, UOp], numbers: tuple[UOp, UOp]) -> bool:
    """Truth of two numbers taking each pair of values of two ranges equally often, over all values of the hardware's indices."""
    specials = list(dict.fromkeys(n for number in numbers for n in number.toposort() if n.op is Op.Special))
    lengths = [int(s.vmax) + 1 for s in specials]
    if math.prod(lengths) > _MOST:
        return True  # as far as was tried
    every = itertools.product(*map(range, lengths))
    met = Counter(tuple([evaluate(n, dict(zip(specials, at, strict=True))) for n in numbers]) for at in every)
    return set(met) == set(itertools.product(*(range(int(r.vmax) + 1) for r in ranges))) and len(set(met.values())) == 1


__all__ = ["count_both", "counted", "others", "read"]
