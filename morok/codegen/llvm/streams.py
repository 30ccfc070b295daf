"""Stores that go past the caches.

A store to memory that is in no cache first reads the line that it is about to overwrite. Where a kernel fills a buffer too large
to be found in a cache afterwards, whole vectors at a time, its stores can say so (`nontemporal`), and the read is saved: of
the 320 MB that an elementwise kernel over three inputs of 64 MB moves, 64. Such stores need aligned addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.types import memory_type
from morok.ir.dtype import DType, PtrType
from morok.ir.op import Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp
from morok.passes.affine import linear

LEAST_BYTES: Final = 1 << 24  # of a buffer: larger than what caches keep of it
LINE_BYTES: Final = 64


def streamed(instructions: Sequence[UOp]) -> dict[UOp, int]:
    """The stores, with their slots, to large buffers that a kernel writes and does not read, whole lines at a time: a line that
    is written in parts, with others between them, goes to memory once for each part. What is stored once, behind a loop that no
    vector divides, is stored as usual.
    """
    stores: dict[UOp, list[UOp]] = {}
    read: set[UOp] = set()
    for u in instructions:
        if u.op is Op.Load:
            read.add(storage(u.src[0]))
        elif u.op is Op.Store and storage(u.src[0]).op is Op.DefineGlobal:
            stores.setdefault(storage(u.src[0]), []).append(u)
    out: dict[UOp, int] = {}
    for b, found in stores.items():
        many = [s for s in found if not _once(s)]
        if b not in read and _is_large(b) and many and _fills_lines(many):
            out.update(dict.fromkeys(many, b.arg))
    return out


def _once(store: UOp) -> bool:
    """Whether a store is always to the same place."""
    place = passed(store.src[0])
    return place.op is Op.Index and len(place.src) == 2 and place.src[1].dtype.count == 1 and not linear(place.src[1]).terms


def _is_large(buffer: UOp) -> bool:
    assert isinstance(buffer.dtype, PtrType)
    base = buffer.dtype.base
    return buffer.dtype.size * base.itemsize >= LEAST_BYTES and base.count == 1 and not base.is_bool


def _fills_lines(stores: Sequence[UOp]) -> bool:
    """Whether those of the stores that are made together, at constant distances, cover lines of memory entirely."""
    covered: dict[frozenset[tuple[UOp, int]], set[int]] = {}
    line = 1
    for store in stores:
        place, d = passed(store.src[0]), store.src[1].dtype
        if place.op is not Op.Index or place.arg or place.src[1].dtype.count > 1 or d.itemsize < 16 or LINE_BYTES % d.itemsize:
            return False
        at = linear(place.src[1])
        line = LINE_BYTES // d.scalar().itemsize
        if at.factor % line or at.constant % d.count:
            return False
        covered.setdefault(frozenset(at.terms.items()), set()).update(range(at.constant, at.constant + d.count))
    return all(k - k % line + i in elements for elements in covered.values() for k in elements for i in range(line))


class Streams:
    """Some stores of a kernel, with their slots: past the caches where all of those buffers are aligned, else as usual.

    One branch decides for stores that follow each other, so that what they store is computed by the same code.
    """

    def __init__(self, stores: Mapping[UOp, int]) -> None:
        self.stores = stores
        self.slots = frozenset(stores.values())
        self._open: list[tuple[str, DType, str]] = []  # what goes where, not yet written

    def write(self, value: str, d: DType, address: str) -> None:
        """Store `value` of dtype `d`, as memory holds it, with those that follow."""
        self._open.append((value, d, address))

    def close(self, b: Builder) -> None:
        """Write what is open, before anything else touches memory or control goes elsewhere."""
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
        """Whether all the buffers are aligned, as `%aligned`; their addresses are `%data` and the slot."""
        bits, lines = "0", list[str]()
        for slot in sorted(self.slots):
            lines += [
                f"  %address{slot} = ptrtoint ptr %data{slot} to i64",
                f"  %bits{slot} = or i64 {bits}, %address{slot}",
            ]
            bits = f"%bits{slot}"
        return [*lines, f"  %odd = and i64 {bits}, {LINE_BYTES - 1}", "  %aligned = icmp eq i64 %odd, 0"] if lines else []

    def leave(self) -> list[str]:
        """What ends the function: other threads see these stores no earlier than they must, else."""
        return ["  fence seq_cst"] if self.slots else []

    def metadata(self) -> list[str]:
        """What stands behind the function."""
        return ["!0 = !{i32 1}", '!1 = !{!"branch_weights", i32 1000, i32 1}', ""] if self.slots else []
