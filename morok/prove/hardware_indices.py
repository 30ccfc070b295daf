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
_FAR: Final = 1 << 20  # a distance of numbers of ranges that no graph has which tests rules


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


def pairs(r: UOp) -> Iterator[tuple[UOp, UOp]]:
    """Pairs of launched ranges, the first one like `r`. The other is of each kind and of a few lengths, and has the next number
    or one far off; none where the two have too many values together to go through.
    """
    length, (number, kind, *rest) = int(r.vmax) + 1, r.arg
    far = UOp.new(Op.Range, r.src, (number + _FAR, kind, *rest))
    for other in sorted(BLOCKS | THREADS, key=lambda kind: kind.name):
        for n in dict.fromkeys((length, *_LENGTHS)):
            if n * length <= _MOST:
                beside, apart = (UOp.range(n, number + after, other) for after in (1, _FAR + 1))
                yield from ((r, beside), (r, apart), (far, apart))


def count_both(ranges: tuple[UOp, UOp], numbers: tuple[UOp, UOp]) -> bool:
    """True if two numbers take each pair of values of two ranges equally often, over all values of the hardware's indices. One
    index has one length.
    """
    specials = list(dict.fromkeys(n for number in numbers for n in number.toposort() if n.op is Op.Special))
    if len({s.arg for s in specials}) < len(specials):
        return False
    lengths = [int(s.vmax) + 1 for s in specials]
    if math.prod(lengths) > _MOST:
        return True  # as far as was tried
    every = itertools.product(*map(range, lengths))
    met = Counter(tuple([evaluate(n, dict(zip(specials, at, strict=True))) for n in numbers]) for at in every)
    return set(met) == set(itertools.product(*(range(int(r.vmax) + 1) for r in ranges))) and len(set(met.values())) == 1
