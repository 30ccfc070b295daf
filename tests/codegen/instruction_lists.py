"""Instruction lists written by hand: nodes are listed when first mentioned, with what they need in front."""

from __future__ import annotations

from morok.ir.dtype import AddrSpace, DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

i32 = dtypes.i32


class Listing:
    """A list that grows in program order."""

    def __init__(self) -> None:
        self.list: list[UOp] = []
        self.seen: set[UOp] = set()
        self.ranges = 0
        self.last: dict[UOp, UOp] = {}

    def add(self, node: UOp) -> UOp:
        stack = [(node, False)]
        while stack:
            u, ready = stack.pop()
            if ready:
                if u not in self.seen:
                    self.seen.add(u)
                    self.list.append(u)
            elif u not in self.seen:
                stack.append((u, True))
                stack.extend((s, False) for s in reversed(u.src))
        return node

    def buffer(self, slot: int, dtype: DType, size: int) -> UOp:
        return self.add(UOp.new(Op.DefineGlobal, (), slot, dtype.ptr(size)))

    def local(self, id: int, dtype: DType, size: int) -> UOp:
        return self.add(UOp.new(Op.DefineLocal, (), id, dtype.ptr(size, AddrSpace.LOCAL)))

    def reg(self, id: int, dtype: DType, size: int = 1) -> UOp:
        return self.add(UOp.new(Op.DefineReg, (), id, dtype.ptr(size, AddrSpace.REG)))

    def var(self, name: str, dtype: DType = i32, lo: int | None = None, hi: int | None = None) -> UOp:
        return self.add(UOp.var(name, dtype, lo, hi))

    def range(self, end: UOp | int, axis: AxisType = AxisType.Loop) -> UOp:
        self.ranges += 1
        return self.add(UOp.range(UOp.const(end, i32) if isinstance(end, int) else end, self.ranges - 1, axis, True))

    def end(self, r: UOp, body: UOp | None = None) -> UOp:
        return self.add((body if body is not None else self.list[-1]).end(r))

    def load(
        self, buffer: UOp, at: UOp | int, dtype: DType | None = None, gate: UOp | None = None, alt: UOp | None = None
    ) -> UOp:
        """A load of `buffer`; of a register or local, after everything stored to it so far."""
        place = self.place(buffer, at, gate)
        src = (place,) if alt is None else (place, alt)
        return self.add(UOp.new(Op.Load, src, dtype=dtype))

    def store(self, buffer: UOp, at: UOp | int, value: UOp, gate: UOp | None = None) -> UOp:
        done = self.add(self.place(buffer, at, gate).store(value))
        self.last[buffer] = done
        return done

    def place(self, buffer: UOp, at: UOp | int, gate: UOp | None) -> UOp:
        offset = UOp.const(at, i32) if isinstance(at, int) else at
        # the marker keeps two accesses of one register apart, as the pipeline's AFTER edges do
        kept = buffer.after(self.list[-1]) if buffer.op is not Op.DefineGlobal else buffer
        return kept.index(offset, gate=gate)

    def if_(self, cond: UOp) -> UOp:
        return self.add(UOp.new(Op.If, (cond,)))

    def endif(self, i: UOp) -> UOp:
        return self.add(UOp.new(Op.EndIf, (i,)))


def c(value: object, dtype: DType = i32) -> UOp:
    return UOp.const(value, dtype)


def special(name: str, end: int) -> UOp:
    return UOp.new(Op.Special, (c(end),), name)
