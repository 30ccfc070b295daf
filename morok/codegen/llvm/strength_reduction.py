"""Address computation, arranged so that LLVM need not find the arrangement.

The accesses of a loop move together. What of an offset stands still while the innermost loop runs is added to the pointer outside
of it; what is a constant becomes a distance from the pointer, said where the access is; and the rest, with the counters that it
is made of, is computed in 64 bits, as addresses are. LLVM would find all of this by itself (loop strength reduction, sinking
addresses to their uses), in a quarter of the time that it takes to generate code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.codegen.overflow_flags import cannot_wrap
from morok.codegen.survey import Survey
from morok.ir.op import Op
from morok.ir.places import passed
from morok.ir.pure import PURE
from morok.ir.uop import UOp

_INDEX: Final = Op.Index
_POINTER_INDEX: Final = Op.PointerIndex
_CONST: Final = Op.Const
_ADD: Final = Op.Add
_MUL: Final = Op.Mul
_RANGE: Final = Op.Range
SUMS: Final = {Op.Add: "add", Op.Sub: "sub", Op.Mul: "mul"}

Walk = tuple[UOp, UOp, int]  # a pointer that each iteration of a loop moves: into what, at which offset, by how many elements
Step = tuple[UOp | None, UOp | int]  # an offset: another one, of a pointer to be had there (None: 0), and how much further it is


@dataclass(slots=True)
class Addresses:
    """The computation of every offset in a list.

    steps     how to get to each offset
    pointers  the memory into which pointers are wanted, by the instruction that computes the offset
    wide      the numbers wanted in 64 bits
    sums      those of them that are the sums, differences and products of others, in 64 bits too
    multiples the products of a loop's counter and a number: what grows by that number in each iteration
    walks     the pointers that move so
    unneeded  the instructions that need no code where they stand
    """

    steps: dict[UOp, Step] = field(default_factory=dict)
    pointers: dict[UOp, list[UOp]] = field(default_factory=dict)
    wide: set[UOp] = field(default_factory=set)
    sums: set[UOp] = field(default_factory=set)
    multiples: dict[UOp, list[UOp]] = field(default_factory=dict)
    walks: dict[UOp, list[Walk]] = field(default_factory=dict)
    unneeded: set[UOp] = field(default_factory=set)

    def want(self, base: UOp, offset: UOp, depth: dict[UOp, int], users: dict[UOp, list[tuple[UOp, UOp]]]) -> None:
        """Ask for the pointer into `base` at `offset`, and those that it is made from; the pointers go to the `users` of what is
        added to make them.
        """
        at: UOp | None = offset
        while at is not None:
            step = self.steps.get(at)
            if step is None:
                step = self.steps[at] = split(at, depth)
            nearer, by = step
            if isinstance(by, UOp):
                bases = self.pointers.setdefault(at, [])
                if base in bases:
                    return
                bases.append(base)
                users.setdefault(by, []).append((base, at))
            at = nearer


def never_wraps(u: UOp) -> bool:
    """True if `u` is a sum, difference or product of signed integers that is the same in more bits."""
    return u.op in SUMS and u.dtype.is_signed and u.dtype.count == 1 and cannot_wrap(u)


def split(offset: UOp, depth: dict[UOp, int]) -> Step:
    """The step that leads to `offset`, a signed integer; `depth` counts the loops and branches around each instruction."""
    if offset.op is _ADD and never_wraps(offset):
        a, b = offset.src
        if b.op is _CONST:
            return a, int(b.arg)
        outer, inner = depth.get(a, 0), depth.get(b, 0)
        if outer != inner:
            return (a, b) if outer < inner else (b, a)
    return None, offset


def addresses(
    instructions: Sequence[UOp],
    survey: Survey,
    columns: Collection[UOp],
    in_registers: Collection[UOp],
    shared: Collection[UOp],
) -> Addresses:
    """The computation of the addresses in `instructions`. `columns`: those that use the vectors whose lanes they are made of as a
    whole; `in_registers`: the registers that are no memory; `shared`: the loops that may begin elsewhere than at 0.
    """
    depth = survey.depth
    outer = {loop.ranges[-1] for loop in survey.loops[1:] if not loop.innermost}
    plan = Addresses()
    wide, unneeded = plan.wide, plan.unneeded
    wanted: set[UOp] = set()
    users: dict[UOp, list[tuple[UOp, UOp]]] = {}  # of a number that is added to pointers, these
    for u in reversed(instructions):
        op, src = u.op, u.src
        if (op is _INDEX or op is _POINTER_INDEX) and src[1].dtype.count == 1 and src[1].dtype.is_signed:
            if passed(src[0]) in in_registers:
                unneeded.add(u)
                continue
            plan.want(passed(src[0]), src[1], depth, users)
            if isinstance(plan.steps[src[1]][1], int):
                unneeded.add(u)
            wanted.add(src[0])
            wanted.update(src[2:])
            continue
        multiple = op is _MUL and src[0].op is _RANGE and src[1].op is _CONST and src[0] not in shared
        if u in users:
            if multiple and (src[0] in outer or len(users[u]) == 1):
                plan.walks.setdefault(src[0], []).extend((base, at, int(src[1].arg)) for base, at in users[u])
                for base, at in users[u]:
                    plan.pointers[at].remove(base)
            else:
                wide.add(u)
        if u in wide:
            if u.dtype.bits < 64 and never_wraps(u):
                plan.sums.add(u)
                wide.update(src)
                if multiple:
                    plan.multiples.setdefault(src[0], []).append(u)
            elif op is _RANGE:
                wide.update(src[:1])
            else:
                wanted.add(u)
        if u in columns:
            wanted.update([s.src[0] for s in src])
        elif op in PURE and u not in wanted:
            unneeded.add(u)
        else:
            wanted.update(src)
    return plan
