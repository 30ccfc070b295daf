"""Stores that go past the caches.

A store to memory that is in no cache first reads the line that it is about to overwrite. Where a kernel fills a buffer too large
to be found in a cache afterwards, whole vectors at a time, its stores can say so (`nontemporal`), and the read is saved: of
the 320 MB that an elementwise kernel over three inputs of 64 MB moves, 64. Such stores need aligned addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.codegen.registers import passed, storage
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.affine import linear

LEAST_BYTES: Final = 1 << 25  # of a buffer: larger than what caches keep of it
VECTOR_BYTES: Final = (16, 32, 64)


def streamed_slots(instructions: Sequence[UOp]) -> frozenset[int]:
    """The large buffers that a kernel writes and does not read, with whole vectors at multiples of their size only."""
    found: dict[int, bool] = {}
    read: set[int] = set()
    for u in instructions:
        if u.op not in (Op.Load, Op.Store):
            continue
        buffer = storage(u.src[0])
        if buffer.op is not Op.DefineGlobal:
            continue
        if u.op is Op.Load:
            read.add(buffer.arg)
        else:
            found[buffer.arg] = found.get(buffer.arg, True) and _is_whole(u, buffer)
    return frozenset(slot for slot, whole in found.items() if whole and slot not in read)


def _is_whole(store: UOp, buffer: UOp) -> bool:
    place, d = passed(store.src[0]), store.src[1].dtype
    assert isinstance(buffer.dtype, PtrType)
    if buffer.dtype.size * buffer.dtype.base.itemsize < LEAST_BYTES or d.is_bool or buffer.dtype.base.count > 1:
        return False
    if d.itemsize not in VECTOR_BYTES or place.op is not Op.Index or place.arg or place.src[1].dtype.count > 1:
        return False
    at = linear(place.src[1])
    return at.factor % d.count == 0 and at.constant % d.count == 0


def dispatcher(name: str, slots: Sequence[int], alignment: int) -> str:
    """The function `name`, which calls `name.streaming` where the buffers of `slots` are aligned, else `name.plain`."""
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
        f"  call void @{name}.streaming(ptr %args, ptr %vars)",
        "  ret void",
        "plain:",
        f"  call void @{name}.plain(ptr %args, ptr %vars)",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
