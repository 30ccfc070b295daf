"""Memory in LLVM IR: storage of buffers, variables and accumulators, addresses, loads and stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.codegen.frame import Frame
from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.nontemporal_stores import Streams
from morok.codegen.llvm.prefetch import Prefetch
from morok.codegen.llvm.strength_reduction import SUMS, Addresses
from morok.codegen.llvm.types import literal, memory_type, type_of
from morok.codegen.register_memory import Registers, Slot
from morok.codegen.scopes import Scopes, Values
from morok.errors import CompileError
from morok.ir.dtype import DType, PtrType
from morok.ir.op import Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp

STACK_BYTES: Final = 1 << 16  # most bytes of local buffers on the stack
ALIGNMENT: Final = 64


def element_of(base: UOp) -> DType:
    """The dtype of an element of `base`."""
    return base.dtype.base if isinstance(base.dtype, PtrType) else base.dtype


def _in_memory(element: DType) -> str:
    """The LLVM type of an element in memory, with contiguous lanes."""
    one = memory_type(element.scalar())
    return one if element.count == 1 else f"[{element.count} x {one}]"


def zero(d: DType) -> str:
    """The constant 0 (or false) of dtype `d`."""
    return "zeroinitializer" if d.count > 1 else literal(d.scalar(), 0.0 if d.is_float else 0)


@dataclass(slots=True)
class Memory(ABC):
    """The memory of a list during rendering, and its accesses.

    values   the name of each instruction's result; for an Index its address
    pointers (base, offset) -> the name of the pointer
    wide     the names of values extended to 64 bits
    env      the current value of each register slot
    streams  the nontemporal stores
    prefetches  the loads that also prefetch
    """

    frame: Frame
    b: Builder
    registers: Registers
    streams: Streams
    prefetches: Mapping[UOp, Prefetch]
    addresses: Addresses
    values: Values[str] = field(default_factory=Values)
    pointers: Scopes[tuple[UOp, UOp], str] = field(default_factory=Scopes)
    wide: Scopes[UOp, str] = field(default_factory=Scopes)
    env: dict[Slot, str] = field(default_factory=dict)
    stack_used: int = 0
    scratch: int = 0
    scratch_users: list[tuple[str, int]] = field(default_factory=list)
    zeros: int = 0

    def value(self, u: UOp) -> str:
        """The name (or constant) of the value of `u`."""
        found = self.values.names.get(u)
        return self.values.find(u, self.compute, self.frame.name) if found is None else found

    def open(self, u: UOp) -> None:
        """Open the scope of a loop or branch."""
        self.frame.open.append(u)
        self.values.open()
        self.pointers.open()
        self.wide.open()

    def close(self, forget: bool = True) -> None:
        """Close the innermost scope. If `forget`, its values cannot be used any more."""
        self.values.close(forget)
        self.pointers.close(forget)
        self.wide.close(forget)

    @abstractmethod
    def compute(self, u: UOp) -> None:
        """Render one instruction."""

    # Storage.

    def define_global(self, u: UOp) -> None:
        slot = self.frame.buffer(u)
        self.values[u] = name = f"%data{slot}"
        self.b.entry.append(f"  {name}.at = getelementptr inbounds ptr, ptr %args, i64 {slot}")
        self.b.entry.append(f"  {name} = load ptr, ptr {name}.at, align 8")

    def define_var(self, u: UOp) -> None:
        slot = self.frame.variable(u)
        name = f"%var{slot}"
        self.values[u] = name
        memory = memory_type(u.dtype)
        self.b.entry.append(f"  {name}.at = getelementptr inbounds i64, ptr %vars, i64 {slot}")
        raw = f"{name}.byte" if u.dtype.is_bool else name
        self.b.entry.append(f"  {raw} = load {memory}, ptr {name}.at, align 8")
        if u.dtype.is_bool:
            self.b.entry.append(f"  {name} = icmp ne i8 {raw}, 0")

    def define_local(self, u: UOp) -> None:
        self._reserve(u, f"%local{u.arg}")

    def define_reg(self, u: UOp) -> None:
        if u in self.registers.memory:
            self._reserve(u, f"%reg{u.arg}")
        else:
            for slot in self.registers.slots[u].values():
                self.env[slot] = zero(slot.dtype)

    def _reserve(self, u: UOp, name: str) -> None:
        """Reserve memory for a local buffer: on the stack, or in the caller's working memory once that is full."""
        assert isinstance(u.dtype, PtrType)
        size = max(u.dtype.size, 1) * u.dtype.base.itemsize
        self.values[u] = name
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if self.stack_used + size <= STACK_BYTES:
            self.stack_used += size
            self.b.entry.append(f"  {name} = alloca [{size} x i8], align {ALIGNMENT}")
        else:
            self.scratch_users.append((name, self.scratch))
            self.scratch += size

    # Addresses.

    def index(self, u: UOp) -> None:
        base = passed(u.src[0])
        if base.op is Op.DefineReg and base not in self.registers.memory:
            return
        gated = u.op is Op.Index and bool(u.arg)
        offsets = u.src[1:-1] if gated else u.src[1:]
        if len(offsets) != 1:
            raise CompileError(
                f"kernel {self.frame.name}: an Index has {len(offsets)} offsets", expected="one flat offset"
            )
        offset = offsets[0]
        if gated and u.src[-1].dtype.count not in (1, offset.dtype.count):
            raise CompileError(
                f"kernel {self.frame.name}: the gate of an Index has {u.src[-1].dtype.count} lanes",
                expected=f"one gate, or one for each of the {u.src[1].dtype.count} places",
            )
        if offset.dtype.count > 1:
            return  # one address for each lane, computed at their uses
        if offset in self.addresses.steps:
            self.values[u] = self.pointer(base, offset)
        else:
            self.values[u] = self._address(self.value(u.src[0]), element_of(base), offset, self.value(offset))

    pointer_index = index

    def address(self, place: UOp) -> str:
        """The address of a place."""
        if place not in self.values.names:
            self.index(place)
        return self.value(place)

    def pointer(self, base: UOp, offset: UOp) -> str:
        """The address of element `offset` of `base`, by the steps of `addresses`."""
        steps: list[UOp] = []
        at: UOp | None = offset
        found: str | None = None
        while at is not None and found is None:
            found = self.pointers.get((base, at))
            if found is None:
                steps.append(at)
                at = self.addresses.steps[at][0]
        if found is None:
            found = self._begin(base)
        element = element_of(base)
        for step in reversed(steps):
            by = self.addresses.steps[step][1]
            if isinstance(by, int):
                found = self.b.emit(f"getelementptr i8, ptr {found}, i64 {by * element.itemsize}")
            elif (number := self.in_64_bits(by)) != "0":
                found = self.b.emit(f"getelementptr {_in_memory(element)}, ptr {found}, i64 {number}")
            self.pointers[base, step] = found
        return found

    def previous_pointer(self, base: UOp, offset: UOp) -> str:
        """The address one step before that of element `offset` of `base`."""
        at = self.addresses.steps[offset][0]
        return self._begin(base) if at is None else self.pointer(base, at)

    def _begin(self, base: UOp) -> str:
        """The address of the first element of `base`."""
        return self.address(base) if base.op is Op.PointerIndex else self.value(base)

    def in_64_bits(self, u: UOp) -> str:
        """The signed integer `u` as an i64."""
        if u.op is Op.Const:
            return str(int(u.arg))
        if u.dtype.bits == 64:
            return self.value(u)
        found = self.wide.get(u)
        stack = [u] if found is None else []
        while stack:
            n = stack[-1]
            if n in self.wide.names:
                stack.pop()
                continue
            if n not in self.addresses.sums:
                self.wide[n] = self.b.emit(f"sext {type_of(n.dtype)} {self.value(n)} to i64")
                continue
            missing = [s for s in n.src if s.op is not Op.Const and s not in self.wide.names]
            stack += missing
            if not missing:
                x, y = [str(int(s.arg)) if s.op is Op.Const else self.wide.names[s] for s in n.src]
                self.wide[n] = self.b.emit(f"{SUMS[n.op]} nsw i64 {x}, {y}")
        return self.wide.names[u]

    def _address(self, pointer: str, element: DType, offset: UOp, name: str) -> str:
        """The address `offset` elements after `pointer`; the lanes of a vector element are contiguous."""
        integer = type_of(offset.dtype.scalar())
        if offset.dtype.is_unsigned and offset.dtype.bits < 64:
            name, integer = self.b.convert("zext", integer, "i64", 1, name), "i64"
        if element.count > 1:
            name = self.b.binary("mul", integer, 1, name, str(element.count))
        return self.b.emit(f"getelementptr {memory_type(element.scalar())}, ptr {pointer}, {integer} {name}")

    def _lanes(self, place: UOp, lanes: int) -> list[tuple[str, str | None]]:
        """(address, gate or None) of each lane of a place with a vector of offsets."""
        gated = bool(place.arg)
        offset = place.src[1]
        gate = place.src[-1] if gated else None
        element = element_of(passed(place.src[0]))
        pointer = self.value(place.src[0])
        integer = type_of(offset.dtype.scalar())
        out: list[tuple[str, str | None]] = []
        for i in range(lanes):
            at = self.b.extract(integer, offset.dtype.count, self.value(offset), i)
            address = self._address(pointer, element, offset, at)
            allowed = None if gate is None else self.b.extract("i1", gate.dtype.count, self.value(gate), i)
            out.append((address, allowed))
        return out

    # Loads.

    def load(self, u: UOp) -> None:
        place = passed(u.src[0])
        d = u.dtype
        touched = self.registers.touched.get(u)
        if touched is not None:
            env = self.env
            self.values[u] = (
                env[touched[0]] if len(touched) == 1 else self.b.pack(type_of(d.scalar()), [env[s] for s in touched])
            )
            return
        alt = self.value(u.src[1]) if len(u.src) > 1 else None
        if place.op is Op.Index and place.src[1].dtype.count > 1:
            self.values[u] = self._gather(place, d, alt)
            return
        gate = place.src[-1] if place.op is Op.Index and place.arg else None
        address = self.address(place)
        if u in self.prefetches:
            elements, nearest = self.prefetches[u]
            self.b.prefetch(
                self.b.emit(f"getelementptr {memory_type(d.scalar())}, ptr {address}, i64 {elements}"), nearest
            )
        if gate is None:
            self.values[u] = self._read(address, d)
        else:
            self.values[u] = self._read_gated(address, self.value(gate), d, alt)

    def _read(self, address: str, d: DType) -> str:
        text = self.b.emit(f"load {memory_type(d)}, ptr {address}, align {d.scalar().itemsize}")
        return self._from_memory(d, text)

    def _from_memory(self, d: DType, x: str) -> str:
        return self.b.compare("ne", "i8", d.count, x, self.b.const("i8", d.count, 0)) if d.is_bool else x

    def _to_memory(self, d: DType, x: str) -> str:
        return self.b.convert("zext", "i1", "i8", d.count, x) if d.is_bool else x

    def _read_gated(self, address: str, gate: str, d: DType, alt: str | None) -> str:
        self.zeros = max(self.zeros, d.itemsize)
        safe = self.b.emit(f"select i1 {gate}, ptr {address}, ptr @zeros")
        read = self._read(safe, d)
        if alt is None or alt in (zero(d), "zeroinitializer"):
            return read
        return self.b.select(gate, type_of(d.scalar()), d.count, read, alt, 1)

    def _gather(self, place: UOp, d: DType, alt: str | None) -> str:
        lanes = place.src[1].dtype.count
        width = d.count // lanes
        element = d.scalar().vec(width)
        base = type_of(d.scalar())
        parts: list[str] = []
        for i, (address, gate) in enumerate(self._lanes(place, lanes)):
            if gate is None:
                read = self._read(address, element)
            else:
                one = None if alt is None else self._slice(alt, d, i * width, width)
                read = self._read_gated(address, gate, element, one)
            parts += [self.b.extract(base, width, read, k) for k in range(width)]
        return self.b.pack(base, parts)

    def _slice(self, x: str, d: DType, start: int, width: int) -> str:
        """The `width` lanes of `x` from `start` on."""
        base = type_of(d.scalar())
        if width == d.count:
            return x
        if width == 1:
            return self.b.extract(base, d.count, x, start)
        return self.b.shuffle(base, d.count, x, "poison", list(range(start, start + width)))

    # Stores.

    def store(self, u: UOp) -> None:
        d = u.src[1].dtype
        touched = self.registers.touched.get(u)
        if touched is not None:
            self._store_register(touched, d, self.value(u.src[1]))
            return
        place = passed(u.src[0])
        kept = storage(place)
        self.frame.mark_written(kept)
        x = self._to_memory(d, self.value(u.src[1]))
        if place.op is Op.Index and place.src[1].dtype.count > 1:
            self.streams.close(self.b)
            self._scatter(place, d, x)
            return
        gate = place.src[-1] if place.op is Op.Index and place.arg else None
        address = self.address(place)
        once = self._once(kept, None if gate is None else self.value(gate))
        if u in self.streams.stores and once is None:
            self.streams.write(x, d, address)
        else:
            self.streams.close(self.b)
            self._write(address, d, x, once)

    def _once(self, kept: UOp, gate: str | None) -> str | None:
        """The gate of a store to `kept`: a global store outside of all shared loops is done by the first thread alone."""
        shared = self.registers.shared
        if not shared or kept.op is not Op.DefineGlobal or not shared.isdisjoint(self.frame.open):
            return gate
        return "%first" if gate is None else self.b.binary("and", "i1", 1, "%first", gate)

    def _write(self, address: str, d: DType, x: str, gate: str | None) -> None:
        """Store `x`, in its form in memory, if `gate` is true or None."""
        if gate is not None:
            then, after = self.b.label("store"), self.b.label("stored")
            self.b.do(f"br i1 {gate}, label %{then}, label %{after}")
            self.b.start(then)
        self.b.do(f"store {memory_type(d)} {x}, ptr {address}, align {d.scalar().itemsize}")
        if gate is not None:
            self.b.do(f"br label %{after}")
            self.b.start(after)

    def _scatter(self, place: UOp, d: DType, x: str) -> None:
        lanes = place.src[1].dtype.count
        width = d.count // lanes
        scalar = d.scalar()
        base = memory_type(scalar)
        for i, (address, gate) in enumerate(self._lanes(place, lanes)):
            if width == 1:
                part = self.b.extract(base, d.count, x, i)
            else:
                part = self.b.shuffle(base, d.count, x, "poison", list(range(i * width, (i + 1) * width)))
            self._write(address, scalar.vec(width), part, self._once(storage(place), gate))

    # Registers.

    def _store_register(self, slots: Sequence[Slot], d: DType, x: str) -> None:
        if len(slots) == 1:
            self.env[slots[0]] = x
            return
        base = type_of(d.scalar())
        for i, slot in enumerate(slots):
            self.env[slot] = self.b.extract(base, d.count, x, i)
