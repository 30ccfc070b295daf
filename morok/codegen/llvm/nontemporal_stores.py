"""Nontemporal stores, which bypass the caches.

A store to uncached memory first reads the cache line that it overwrites. If a kernel fills, by whole vectors, a buffer too large
to stay in cache, nontemporal stores save that read: 64 of the 320 MB that an elementwise kernel over three inputs of 64 MB moves.
They need aligned addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.types import memory_type
from morok.codegen.survey import Access
from morok.ir.dtype import DType, PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp

LEAST_BYTES: Final = 1 << 24  # least bytes of a buffer that does not stay in cache
LINE_BYTES: Final = 64


def streamed(accesses: Sequence[Access]) -> dict[UOp, int]:
    """The nontemporal stores, with the slots of their buffers: to large buffers that the kernel does not read, by whole cache
    lines. A line written in parts, with other lines between, would go to memory once for each part. Stores to a constant place,
    such as the remainder after a vectorized loop, are plain stores.
    """
    stores: dict[UOp, list[Access]] = {}
    for a in accesses:
        if a.stores and a.kept.op is Op.DefineGlobal and _is_large(a.kept):
            stores.setdefault(a.kept, []).append(a)
    if not stores:
        return {}
    read = {a.kept for a in accesses if not a.stores}
    out: dict[UOp, int] = {}
    for b, found in stores.items():
        many = [a for a in found if not (a.consecutive and not a.at.terms)]  # without stores to a constant place
        if b not in read and many and _fills_lines(many):
            out.update(dict.fromkeys([a.node for a in many], b.arg))
    return out


def _is_large(buffer: UOp) -> bool:
    assert isinstance(buffer.dtype, PtrType)
    base = buffer.dtype.base
    return buffer.dtype.size * base.itemsize >= LEAST_BYTES and base.count == 1 and not base.is_bool


def _fills_lines(stores: Sequence[Access]) -> bool:
    """True if stores at constant distances from each other cover whole cache lines."""
    covered: dict[frozenset[tuple[UOp, int]], set[int]] = {}
    line = 1
    for store in stores:
        d = store.dtype
        if not store.consecutive or d.itemsize < 16 or LINE_BYTES % d.itemsize:
            return False
        at = store.at
        line = LINE_BYTES // d.scalar().itemsize
        if at.factor % line or at.constant % d.count:
            return False
        covered.setdefault(frozenset(at.terms.items()), set()).update(range(at.constant, at.constant + d.count))
    return all(k - k % line + i in elements for elements in covered.values() for k in elements for i in range(line))


class Streams:
    """The nontemporal stores of a kernel, with their slots; plain stores if one of these buffers is not aligned to a cache line.

    Adjacent stores share one alignment branch, placed after all stored values are computed.
    """

    def __init__(self, stores: Mapping[UOp, int]) -> None:
        self.stores = stores
        self.slots = frozenset(stores.values())
        self._open: list[tuple[str, DType, str]] = []  # (value, dtype, address) of pending stores

    def write(self, value: str, d: DType, address: str) -> None:
        """Add a pending store of `value`, of dtype `d` in its form in memory."""
        self._open.append((value, d, address))

    def close(self, b: Builder) -> None:
        """Emit the pending stores: before any other access to memory, and before control flow."""
        if not self._open:
            return
        streaming, plain, after = b.label("streaming"), b.label("plain"), b.label("stored")
        b.do(f"br i1 %aligned, label %{streaming}, label %{plain}, !prof !1")
        for label in (streaming, plain):
            b.start(label)
            for value, d, address in self._open:
                how = f"align {d.itemsize}, !nontemporal !0" if label is streaming else f"align {d.scalar().itemsize}"
                b.do(f"store {memory_type(d)} {value}, ptr {address}, {how}")
            b.do(f"br label %{after}")
        b.start(after)
        self._open.clear()

    def entry(self) -> list[str]:
        """The lines that set `%aligned` to true if all buffers are aligned; their addresses are `%data` and the slot."""
        bits, lines = "0", list[str]()
        for slot in sorted(self.slots):
            lines += [
                f"  %address{slot} = ptrtoint ptr %data{slot} to i64",
                f"  %bits{slot} = or i64 {bits}, %address{slot}",
            ]
            bits = f"%bits{slot}"
        return (
            [*lines, f"  %odd = and i64 {bits}, {LINE_BYTES - 1}", "  %aligned = icmp eq i64 %odd, 0"] if lines else []
        )

    def leave(self) -> list[str]:
        """The lines at the function's end: a fence, since nontemporal stores are not ordered before later stores."""
        return ["  fence seq_cst"] if self.slots else []

    def metadata(self) -> list[str]:
        """The metadata after the function."""
        return ["!0 = !{i32 1}", '!1 = !{!"branch_weights", i32 1000, i32 1}', ""] if self.slots else []
