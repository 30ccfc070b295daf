"""Stores that go past the caches.

A store to memory that is in no cache first reads the line that it is about to overwrite. Where a kernel fills a buffer too large
to be found in a cache afterwards, whole vectors at a time, its stores can say so (`nontemporal`), and the read is saved: of
the 320 MB that an elementwise kernel over three inputs of 64 MB moves, 64. Such stores need aligned addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp
from morok.passes.affine import linear

LEAST_BYTES: Final = 1 << 24  # of a buffer: larger than what caches keep of it
LINE_BYTES: Final = 64


def streamed_slots(instructions: Sequence[UOp]) -> frozenset[int]:
    """The large buffers that a kernel writes and does not read, whole lines at a time: a line that is written in parts, with
    others between them, goes to memory once for each part.
    """
    stores: dict[UOp, list[UOp]] = {}
    read: set[UOp] = set()
    for u in instructions:
        if u.op is Op.Load:
            read.add(storage(u.src[0]))
        elif u.op is Op.Store and storage(u.src[0]).op is Op.DefineGlobal:
            stores.setdefault(storage(u.src[0]), []).append(u)
    return frozenset(b.arg for b, found in stores.items() if b not in read and _is_large(b) and _fills_lines(found))


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


def dispatcher(name: str, slots: Sequence[int], alignment: int) -> str:
    """The function `name`, which calls `name_streaming` where the buffers of `slots` are aligned, else `name_plain`."""
    lines = [f"define void @{name}(ptr %args, ptr %vars) {{", "entry:", "  %bits0 = add i64 0, 0"]
    for i, slot in enumerate(slots):
        lines += [
            f"  %at{i} = getelementptr inbounds ptr, ptr %args, i64 {slot}",
            f"  %address{i} = load i64, ptr %at{i}, align 8",
            f"  %bits{i + 1} = or i64 %bits{i}, %address{i}",
        ]
    lines += [
        f"  %odd = and i64 %bits{len(slots)}, {alignment - 1}",
        "  %aligned = icmp eq i64 %odd, 0",
        "  br i1 %aligned, label %streaming, label %plain",
        "streaming:",
        f"  call void @{name}_streaming(ptr %args, ptr %vars)",
        "  ret void",
        "plain:",
        f"  call void @{name}_plain(ptr %args, ptr %vars)",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
