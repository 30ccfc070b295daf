"""Optimizations of one kernel: transformations of its loops, which morok/optimize/scheduler.py checks and applies.

An Opt refers to a range by its position among all ranges, the outermost first (UPCAST, LOCAL, THREAD, SWAP, PADTO, STRIP, BLOCK),
or among the reduced ranges (UNROLL, GROUP, GROUPTOP). PACK refers to a buffer by its slot, and LANES to nothing.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from morok.arguments import instance, whole
from morok.errors import ConfigError


class OptOp(enum.Enum):
    """The kinds of optimizations of one kernel.

    TC         tensor cores
    UPCAST     a range as lanes of vectors
    LOCAL      a range as threads of a block
    UNROLL     a reduced range as lanes
    GROUP      a reduction by `arg` threads in two steps through shared memory, interleaved; GROUPTOP: in contiguous parts
    THREAD     a range divided among CPU threads
    NOLOCALS   no blocks of threads
    SWAP       two output ranges exchanged
    PADTO      a range padded to a multiple of `arg`
    PACK       a local copy of a buffer's elements, made inside the `arg` outermost loops
    STRIP      the results of a fold for `arg` iterations of a range in a local buffer, with the loop over them inside the fold's
    BLOCK      a range in blocks of `arg` iterations, with the loop over one block inside all other output loops
    LANES      vectors of `arg` 32-bit lanes, fewer than a register holds, for rows of that length
    """

    __hash__ = object.__hash__  # Enum's is a Python function, and slow

    TC = enum.auto()
    UPCAST = enum.auto()
    LOCAL = enum.auto()
    UNROLL = enum.auto()
    GROUP = enum.auto()
    GROUPTOP = enum.auto()
    THREAD = enum.auto()
    NOLOCALS = enum.auto()
    SWAP = enum.auto()
    PADTO = enum.auto()
    PACK = enum.auto()
    STRIP = enum.auto()
    BLOCK = enum.auto()
    LANES = enum.auto()


_TEXT: Final = re.compile(r"([A-Z]+)\((-?\d+)(?:, *(-?\d+))?\)")


@dataclass(frozen=True, slots=True)
class Opt:
    """One optimization of a kernel: the meaning of `axis` and `arg` depends on the op; an `arg` of 0 is the whole range.

    ConfigError for an op that is no OptOp, and for an axis or arg that is no whole number.

    >>> str(Opt(OptOp.UPCAST, 0, 4))
    'UPCAST(0, 4)'
    """

    op: OptOp
    axis: int | None = None
    arg: int = 0

    def __post_init__(self) -> None:
        instance(self.op, OptOp, "the op of an Opt", "an OptOp, such as OptOp.UPCAST", ConfigError)
        for name in ("axis", "arg"):
            value = getattr(self, name)
            if value.__class__ is not int and (value is not None or name == "arg"):
                object.__setattr__(self, name, whole(value, f"the {name} of an Opt", error=ConfigError))

    def __str__(self) -> str:
        parts = [str(x) for x in (self.axis, self.arg) if x is not None]
        return f"{self.op.name}({', '.join(parts)})"


def read(text: str) -> tuple[Opt, ...]:
    """Optimizations parsed from a text such as `UPCAST(0, 4) LOCAL(1, 16)`, in order. ConfigError for an unknown op."""
    found: list[Opt] = []
    for name, first, second in _TEXT.findall(text):
        if name not in OptOp.__members__:
            raise ConfigError(f"there is no optimization {name}", expected=f"one of {', '.join(OptOp.__members__)}")
        found.append(Opt(OptOp[name], int(first), int(second)) if second else Opt(OptOp[name], None, int(first)))
    return tuple(found)
