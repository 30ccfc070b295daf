"""Strength reduction of addresses, which saves LLVM the work.

The loop-invariant part of an offset is added to the pointer outside of the innermost loop. A constant part becomes a displacement
at the access. The rest, with the loop counters in it, is computed in 64 bits, the width of addresses. LLVM would do all of this
itself (loop strength reduction, sinking of addresses), at a quarter of its time for code generation.
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

SUMS: Final = {Op.Add: "add", Op.Sub: "sub", Op.Mul: "mul"}

Walk = tuple[UOp, UOp, int]  # an induction pointer: (buffer, offset, elements added in each iteration)
Step = tuple[UOp | None, UOp | int]  # an offset as a sum: (the offset of an earlier pointer, None for 0; the addend)


@dataclass(slots=True)
class Addresses:
    """The plan for computing every offset in a list.

    steps     the step to each offset
    pointers  by offset: the buffers in which it needs a pointer
    wide      the values needed in 64 bits
    sums      the members of `wide` computed in 64 bits, as sums, differences and products of others
    multiples by loop: products of its counter and a constant, as 64-bit induction variables
    walks     by loop: its induction pointers
    unneeded  the instructions without code at their position
    """

    steps: dict[UOp, Step] = field(default_factory=dict)
    pointers: dict[UOp, list[UOp]] = field(default_factory=dict)
    wide: set[UOp] = field(default_factory=set)
    sums: set[UOp] = field(default_factory=set)
    multiples: dict[UOp, list[UOp]] = field(default_factory=dict)
    walks: dict[UOp, list[Walk]] = field(default_factory=dict)
    unneeded: set[UOp] = field(default_factory=set)

    def plan_pointer(
        self, base: UOp, offset: UOp, depth: dict[UOp, int], users: dict[UOp, list[tuple[UOp, UOp]]]
    ) -> None:
        """Plan the pointer into `base` at `offset`, and the pointers on the way to it; `users` lists the pointers that each
        addend makes.
        """
        at: UOp | None = offset
        while at is not None:
            step = self.steps.get(at)
            if step is None:
                step = self.steps[at] = split(at, depth)
            previous, by = step
            if isinstance(by, UOp):
                bases = self.pointers.setdefault(at, [])
                if base in bases:
                    return
                bases.append(base)
                users.setdefault(by, []).append((base, at))
            at = previous


def never_wraps(u: UOp) -> bool:
    """True if `u` is a sum, difference or product of signed integers with the same value in 64 bits."""
    return u.op in SUMS and u.dtype.is_signed and u.dtype.count == 1 and cannot_wrap(u)


def split(offset: UOp, depth: dict[UOp, int]) -> Step:
    """The step to `offset`, a signed integer; `depth` is the number of loops and branches around each instruction."""
    if offset.op is Op.Add and never_wraps(offset):
        a, b = offset.src
        if b.op is Op.Const:
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
    """The plan for the addresses in `instructions`.

    columns       Vectorizes that use whole vectors rather than the lanes in their operands
    in_registers  the registers without memory
    shared        the loops that may not begin at 0
    """
    depth = survey.depth
    outer = {loop.ranges[-1] for loop in survey.loops[1:] if not loop.innermost}
    plan = Addresses()
    wide, unneeded = plan.wide, plan.unneeded
    wanted: set[UOp] = set()
    users: dict[UOp, list[tuple[UOp, UOp]]] = {}  # addend -> the pointers (base, offset) that it makes
    for u in reversed(instructions):
        op, src = u.op, u.src
        if (op is Op.Index or op is Op.PointerIndex) and src[1].dtype.count == 1 and src[1].dtype.is_signed:
            if passed(src[0]) in in_registers:
                unneeded.add(u)
                continue
            plan.plan_pointer(passed(src[0]), src[1], depth, users)
            if isinstance(plan.steps[src[1]][1], int):
                unneeded.add(u)
            wanted.add(src[0])
            wanted.update(src[2:])
            continue
        multiple = op is Op.Mul and src[0].op is Op.Range and src[1].op is Op.Const and src[0] not in shared
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
            elif op is Op.Range:
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
