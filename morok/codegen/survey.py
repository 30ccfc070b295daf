"""Facts about an instruction list from one walk: its loops with their work, its loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.ir.dtype import DType
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp
from morok.passes.affine import Linear, linear

_COUNTED: Final = frozenset(op for op, entry in TABLE.entries.items() if entry.pointwise) | {Op.Bitcast}


@dataclass(slots=True)
class Loop:
    """Counts of a loop, or of the whole list, over its own instructions: those in no inner loop.

    ranges    the loops around it, the outermost first, then itself
    end       its most iterations; `times`: in total, in one run of the kernel
    count     instructions without constants and addresses; `computed`: those without loads and stores
    products  True if there is a MulAcc
    wide      vector accesses to memory
    vectors   True if a value has several lanes; `scalars`: True if an access to memory has one lane
    """

    ranges: tuple[UOp, ...]
    end: int
    times: int
    count: int = 0
    computed: int = 0
    products: bool = False
    wide: int = 0
    vectors: bool = False
    scalars: bool = False
    innermost: bool = True

    @property
    def is_shared_by_threads(self) -> bool:
        return bool(self.ranges) and self.ranges[-1].arg[1] is AxisType.Thread


class Access:
    """A Load or Store.

    node    the Load or Store
    stores  True for a Store
    place   its place, without order edges
    kept    the storage of the place
    dtype   of the value
    loops   the loops around it, the outermost first
    """

    __slots__ = ("_at", "dtype", "kept", "loops", "node", "place", "stores")

    def __init__(self, node: UOp, loops: tuple[UOp, ...]) -> None:
        self.node = node
        self.stores = node.op is Op.Store
        self.place = passed(node.src[0])
        self.kept = storage(self.place)
        self.dtype: DType = node.src[1].dtype if self.stores else node.dtype
        self.loops = loops
        self._at: Linear | None = None

    @property
    def consecutive(self) -> bool:
        """True if it is ungated and accesses consecutive elements."""
        place = self.place
        return place.op is Op.Index and not place.arg and place.src[1].dtype.count == 1

    @property
    def at(self) -> Linear:
        """The linear form of the index of its first element; requires a scalar index."""
        if self._at is None:
            self._at = linear(self.place.src[1])
        return self._at


@dataclass(slots=True)
class Survey:
    """The facts about an instruction list, in its order.

    accesses  the loads and stores
    loops     the whole list, then the loops in it
    depth     for each instruction the number of loops and branches around it; a Range counts as inside its own loop
    """

    accesses: list[Access] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=lambda: [Loop((), 1, 1)])
    depth: dict[UOp, int] = field(default_factory=dict)


def survey(instructions: Sequence[UOp]) -> Survey:
    """The Survey of an instruction list."""
    found = Survey()
    accesses, loops, depths = found.accesses, found.loops, found.depth
    open_ = [loops[0]]
    loop, depth = loops[0], 0
    for u in instructions:
        op = u.op
        if op is Op.Load or op is Op.Store:
            access = Access(u, loop.ranges)
            accesses.append(access)
            lanes = access.dtype.count
            loop.count += 1
            loop.vectors |= lanes > 1
            if access.kept.op is not Op.DefineReg:
                loop.wide += lanes > 1
                loop.scalars |= lanes == 1
        elif op is Op.Range:
            depth += 1
            loop.innermost = False
            end = max(0, int(u.src[0].vmax))
            loop = Loop((*loop.ranges, u), end, loop.times * end)
            loops.append(loop)
            open_.append(loop)
        elif op is Op.End or op is Op.EndIf:
            depth -= depth > 0
            if op is Op.End and len(open_) > 1:
                open_.pop()
                loop = open_[-1]
        elif op is Op.If:
            depth += 1
        else:
            if op in _COUNTED:
                loop.count += 1
                loop.computed += 1
                loop.products |= op is Op.MulAcc
            loop.vectors |= u.dtype.count > 1
        depths[u] = depth
    return found
