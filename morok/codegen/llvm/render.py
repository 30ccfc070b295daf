"""One instruction list as one LLVM function `void name(ptr args, ptr vars)`.

`args` is an array of buffer addresses by slot, with the address of working memory behind the last one if the kernel needs
any, then the part to run if it has a THREAD axis; `vars` an array of 8-byte slots. Vectors are explicit, accumulators are phi
nodes, and a gated access touches no memory where its gate is false: the address is exchanged for one of zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.codegen.inplace import overwritable
from morok.codegen.llvm import functions as functions  # fills OPS
from morok.codegen.llvm import unrolled
from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.columns import column, join, lanes_of_columns
from morok.codegen.llvm.distances import apart, distances
from morok.codegen.llvm.nests import parts_of, work_of
from morok.codegen.llvm.ops import OPS, Emit
from morok.codegen.llvm.prefetch import Ahead, loads_ahead
from morok.codegen.llvm.streams import Streams, streamed
from morok.codegen.llvm.types import constant, literal, memory_type, type_of
from morok.codegen.registers import Registers, Slot, analyze, runs
from morok.codegen.rendered import CONTRACT, Argument, Rendered, Variable, symbol
from morok.codegen.scopes import PURE, Values
from morok.errors import CompileError
from morok.ir.dtype import DType, PtrType
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp

STACK_BYTES: Final = 1 << 16  # local buffers up to this size live on the stack
ALIGNMENT: Final = 64
_POINTWISE: Final[dict[Op, Emit]] = {
    op: OPS[entry.llvm] for op, entry in TABLE.entries.items() if (entry.pointwise or op is Op.Bitcast) and entry.llvm in OPS
}


def zero(d: DType) -> str:
    """The constant 0 (or false) of dtype `d`."""
    return "zeroinitializer" if d.count > 1 else literal(d.scalar(), 0.0 if d.is_float else 0)


@dataclass(slots=True)
class _Loop:
    """An open loop: where its phi nodes go, and what they merge."""

    range: UOp
    header: str
    before: str
    begin: str
    patch: int
    counter: str
    end: str
    tested_first: bool
    exit: str
    phis: dict[Slot, tuple[str, str]]
    innermost: bool = True


@dataclass(slots=True)
class _Branch:
    """An open IF: the registers as they were before it."""

    before: str
    merge: str
    env: dict[Slot, str]


@dataclass(slots=True)
class Renderer:
    """The state of rendering one list.

    values   the name of each instruction's result; of an Index the address
    env      the current value of each register slot
    streams  the buffers whose stores go past the caches, and such stores
    ahead    the loads that fetch what lies further as well
    short    how many loops LLVM is to write out
    """

    name: str
    b: Builder
    registers: Registers
    streams: Streams
    ahead: Mapping[UOp, Ahead]
    values: Values[str] = field(default_factory=Values)
    env: dict[Slot, str] = field(default_factory=dict)
    arguments: dict[int, Argument] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)
    branches: list[_Branch] = field(default_factory=list)
    stack_used: int = 0
    short: int = 0
    scratch: int = 0
    scratch_users: list[tuple[str, int]] = field(default_factory=list)
    zeros: int = 0
    shuffles: dict[tuple[str, str, str, tuple[int, ...]], str] = field(default_factory=dict)

    # Operands.

    def value(self, u: UOp) -> str:
        """The name (or constant) of what `u` computed."""
        return self.values.find(u, self.compute, self.name)

    def compute(self, u: UOp) -> None:
        _HANDLERS[u.op](self, u)

    # Storage.

    def define_global(self, u: UOp) -> None:
        assert isinstance(u.dtype, PtrType)
        slot = int(u.arg)
        self.arguments[slot] = Argument(slot, u.dtype.base, False)
        self.values[u] = name = f"%data{slot}"
        self.b.entry.append(f"  {name}.at = getelementptr inbounds ptr, ptr %args, i64 {slot}")
        self.b.entry.append(f"  {name} = load ptr, ptr {name}.at, align 8")

    def define_var(self, u: UOp) -> None:
        label = str(u.arg[0])
        if label not in self.variables:
            self.variables[label] = Variable(label, u.dtype)
        slot = list(self.variables).index(label)
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
        """Memory for a local buffer: on the stack, or in the caller's working memory if it is large."""
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
        if storage(u).op is Op.DefineReg and storage(u) not in self.registers.memory:
            return
        if self.values.get(u) is not None:
            return  # another place is so and so far from it
        gated = u.op is Op.Index and bool(u.arg)
        offsets = u.src[1:-1] if gated else u.src[1:]
        if len(offsets) != 1:
            raise CompileError(f"kernel {self.name}: an Index has one flat offset here, not {len(offsets)}")
        base = passed(u.src[0]).dtype
        element = base.base if isinstance(base, PtrType) else base
        if gated and u.src[-1].dtype.count not in (1, offsets[0].dtype.count):
            raise CompileError(f"kernel {self.name}: an Index has one gate, or one a place")
        if offsets[0].dtype.count > 1:
            return  # one address a lane, computed where they are used
        start, distance = apart(offsets[0])
        if distance:
            near = self.value(u.src[0].index(start))
            self.values[u] = self.b.emit(f"getelementptr i8, ptr {near}, i64 {distance * element.itemsize}")
        else:
            self.values[u] = self._address(self.value(u.src[0]), element, start, self.value(start))

    def _address(self, pointer: str, element: DType, offset: UOp, name: str) -> str:
        """`pointer` plus `offset` elements; lanes of a vector element lie next to each other."""
        integer = type_of(offset.dtype.scalar())
        if offset.dtype.is_unsigned and offset.dtype.bits < 64:
            name, integer = self.b.convert("zext", integer, "i64", 1, name), "i64"
        if element.count > 1:
            name = self.b.binary("mul", integer, 1, name, str(element.count))
        return self.b.emit(f"getelementptr {memory_type(element.scalar())}, ptr {pointer}, {integer} {name}")

    def _lanes(self, place: UOp, lanes: int) -> list[tuple[str, str | None]]:
        """The address and the gate of each lane of a place with a vector of offsets."""
        gated = bool(place.arg)
        offset = place.src[1]
        gate = place.src[-1] if gated else None
        base = passed(place.src[0]).dtype
        element = base.base if isinstance(base, PtrType) else base
        integer = type_of(offset.dtype.scalar())
        out: list[tuple[str, str | None]] = []
        for i in range(lanes):
            at = self.b.extract(integer, offset.dtype.count, self.value(offset), i)
            address = self._address(self.value(place.src[0]), element, offset, at)
            allowed = None if gate is None else self.b.extract("i1", gate.dtype.count, self.value(gate), i)
            out.append((address, allowed))
        return out

    pointer_index = index

    # Loads.

    def load(self, u: UOp) -> None:
        place = passed(u.src[0])
        d = u.dtype
        if storage(place).op is Op.DefineReg and storage(place) not in self.registers.memory:
            self.values[u] = self._load_register(place, d)
            return
        alt = self.value(u.src[1]) if len(u.src) > 1 else None
        if place.op is Op.Index and place.src[1].dtype.count > 1:
            self.values[u] = self._gather(place, d, alt)
            return
        gate = place.src[-1] if place.op is Op.Index and place.arg else None
        address = self.value(place)
        if u in self.ahead:
            elements, nearest = self.ahead[u]
            self.b.prefetch(self.b.emit(f"getelementptr {memory_type(d.scalar())}, ptr {address}, i64 {elements}"), nearest)
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
        """`width` lanes of `x` from `start` on."""
        base = type_of(d.scalar())
        if width == d.count:
            return x
        if width == 1:
            return self.b.extract(base, d.count, x, start)
        return self.b.shuffle(base, d.count, x, "poison", list(range(start, start + width)))

    # Stores.

    def store(self, u: UOp) -> None:
        place = passed(u.src[0])
        d = u.src[1].dtype
        kept = storage(place)
        if kept.op is Op.DefineReg and kept not in self.registers.memory:
            self._store_register(place, d, self.value(u.src[1]))
            return
        if kept.op is Op.DefineGlobal:
            slot = int(kept.arg)
            self.arguments[slot] = Argument(slot, self.arguments[slot].dtype, True)
        x = self._to_memory(d, self.value(u.src[1]))
        if place.op is Op.Index and place.src[1].dtype.count > 1:
            self.streams.close(self.b)
            self._scatter(place, d, x)
            return
        gate = place.src[-1] if place.op is Op.Index and place.arg else None
        address = self.value(place)
        once = self._once(kept, None if gate is None else self.value(gate))
        if u in self.streams.stores and once is None:
            self.streams.write(x, d, address)
        else:
            self.streams.close(self.b)
            self._write(address, d, x, once)

    def _once(self, kept: UOp, gate: str | None) -> str | None:
        """The gate of a store to `kept`: of threads that share a kernel one stores what is in none of the loops they share."""
        shared = self.registers.shared
        if not shared or kept.op is not Op.DefineGlobal or any(loop.range in shared for loop in self.loops):
            return gate
        return "%first" if gate is None else self.b.binary("and", "i1", 1, "%first", gate)

    def _write(self, address: str, d: DType, x: str, gate: str | None) -> None:
        """Store `x`, a value as memory holds it, where `gate` is true."""
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

    def _load_register(self, place: UOp, d: DType) -> str:
        slots = self.registers.covering(place, d)
        if len(slots) == 1:
            return self.env[slots[0]]
        return self.b.pack(type_of(d.scalar()), [self.env[s] for s in slots])

    def _store_register(self, place: UOp, d: DType, x: str) -> None:
        slots = self.registers.covering(place, d)
        if len(slots) == 1:
            self.env[slots[0]] = x
            return
        base = type_of(d.scalar())
        for i, slot in enumerate(slots):
            self.env[slot] = self.b.extract(base, d.count, x, i)

    # Control flow.

    def _part(self, u: UOp, end: str) -> tuple[str, str]:
        """First and last iteration of the loop `u` in this call: of a THREAD axis a part, of other loops all or nothing."""
        b, t = self.b, type_of(u.dtype)
        if u.arg[1] is not AxisType.Thread:
            return b.emit(f"select i1 %first, {t} 0, {t} {end}"), end
        wide = b.convert("sext" if u.dtype.is_signed else "zext", t, "i64", 1, end) if t != "i64" else end
        cuts = [b.emit(f"udiv i64 {b.binary('mul', 'i64', 1, wide, k)}, %parts") for k in ("%part", "%part.next")]
        low, high = [b.convert("trunc", "i64", t, 1, c) if t != "i64" else c for c in cuts]
        return low, high

    def range(self, u: UOp) -> None:
        b = self.b
        end = self.value(u.src[0])
        begin, shared = "0", u in self.registers.shared
        if shared:
            begin, end = self._part(u, end)
        header, exit_ = b.label("loop"), b.label("done")
        before = b.block
        b.do(f"br label %{header}")
        b.start(header)
        counter = b.name()
        phis: dict[Slot, tuple[str, str]] = {}
        for slot in self.registers.merged.get(u, ()):
            phis[slot] = (b.name(), self.env[slot])
            self.env[slot] = phis[slot][0]
        tested_first = shared or not runs(u)
        loop = _Loop(u, header, before, begin, len(b.lines), counter, end, tested_first, exit_, phis)
        self.loops.append(loop)
        b.lines.append("")  # the phi nodes, once the values from the end of the body are known
        self.values.open()
        self.values[u] = counter
        if tested_first:
            body = b.label("body")
            inside = b.emit(f"icmp {'slt' if u.dtype.is_signed else 'ult'} {type_of(u.dtype)} {counter}, {end}")
            b.do(f"br i1 {inside}, label %{body}, label %{exit_}")
            b.start(body)

    def end(self, u: UOp) -> None:
        b = self.b
        if not self.loops or self.loops[-1].range is not u.src[1] or len(u.src) != 2:
            raise CompileError(f"kernel {self.name}: an End closes the innermost open loop, and exactly one")
        loop = self.loops.pop()
        t = type_of(loop.range.dtype)
        following = b.emit(f"add nuw{' nsw' if loop.range.dtype.is_signed else ''} {t} {loop.counter}, 1")
        latch = b.block
        if loop.tested_first:
            b.do(f"br label %{loop.header}")
        else:
            more = b.emit(f"icmp {'slt' if loop.range.dtype.is_signed else 'ult'} {t} {following}, {loop.end}")
            short = self.loops and loop.innermost and unrolled.is_short(loop.range, len(b.lines) - loop.patch)
            b.do(f"br i1 {more}, label %{loop.header}, label %{loop.exit}{unrolled.mark(self.short) if short else ''}")
            self.short += bool(short)
        for around in self.loops:
            around.innermost = False
        lines = [f"  {loop.counter} = phi {t} [ {loop.begin}, %{loop.before} ], [ {following}, %{latch} ]"]
        for slot, (name, initial) in loop.phis.items():
            lines.append(f"  {name} = phi {type_of(slot.dtype)} [ {initial}, %{loop.before} ], [ {self.env[slot]}, %{latch} ]")
            if loop.tested_first:
                self.env[slot] = name
        b.lines[loop.patch] = "\n".join(lines)
        self.values.close(forget=loop.tested_first)
        b.start(loop.exit)

    def if_(self, u: UOp) -> None:
        b = self.b
        then, merge = b.label("then"), b.label("merge")
        b.do(f"br i1 {self.value(u.src[0])}, label %{then}, label %{merge}")
        stored = self.registers.merged.get(u, ())
        self.branches.append(_Branch(b.block, merge, {slot: self.env[slot] for slot in stored}))
        b.start(then)
        self.values.open()

    def endif(self, u: UOp) -> None:
        b = self.b
        if not self.branches:
            raise CompileError(f"kernel {self.name}: an EndIf without its If")
        branch = self.branches.pop()
        self.values.close()
        inside = b.block
        b.do(f"br label %{branch.merge}")
        b.start(branch.merge)
        for slot, old in branch.env.items():
            new = self.env[slot]
            self.env[slot] = b.emit(f"phi {type_of(slot.dtype)} [ {new}, %{inside} ], [ {old}, %{branch.before} ]")

    # Lanes.

    def _shared_shuffle(self, base: str, lanes: int, a: str, b: str, mask: list[int]) -> str:
        """A shuffle of two vectors, made once in a block. LLVM tries to merge each with those that it is made of, at a cost that
        grows with their number, and finds nothing: a fence, which is no instruction, keeps it from looking.
        """
        key = (self.b.block, a, b, tuple(mask))
        if key not in self.shuffles:
            made = self.b.shuffle(base, lanes, a, b, mask)
            fenced = base in ("float", "double")
            self.shuffles[key] = self.b.intrinsic("arithmetic.fence", base, lanes, made) if fenced else made
        return self.shuffles[key]

    def _column(self, base: str, rows: list[UOp], lane: int) -> str:
        n, size = rows[0].dtype.count, rows[0].dtype.scalar().itemsize
        joined, lanes = join([self.value(r) for r in rows], lane, n, size, functools.partial(self._shared_shuffle, base, n))
        whole = len(lanes) == n and lanes == sorted(lanes)
        return joined if whole else self.b.shuffle(base, n, joined, "poison", lanes)

    def _with_constants(self, u: UOp, base: str, source: UOp, constants: list[str]) -> str:
        """Lanes of one vector between some constants: one shuffle."""
        n, scalar = source.dtype.count, u.dtype.scalar()
        mask = [n + constants.index(literal(scalar, s.arg)) if s.op is Op.Const else s.arg[0] for s in u.src]
        filled = [*constants, *constants[:1] * (n - len(constants))]
        return self.b.shuffle(base, n, self.value(source), f"<{', '.join(f'{base} {c}' for c in filled)}>", mask)

    def vectorize(self, u: UOp) -> None:
        base = type_of(u.dtype.scalar())
        tile = column(u)
        if tile is not None:
            self.values[u] = self._column(base, *tile)
            return
        sources = list(dict.fromkeys(s.src[0] for s in u.src if s.op is Op.Gep and s.src[0].dtype.count > 1))
        constants = {literal(u.dtype.scalar(), s.arg): None for s in u.src if s.op is Op.Const}
        taken = all(s.op is Op.Const or (s.op is Op.Gep and s.src[0] in sources) for s in u.src)
        if taken and len(sources) == 1 and 0 < len(constants) <= sources[0].dtype.count:
            self.values[u] = self._with_constants(u, base, sources[0], list(constants))
            return
        whole = all(s.op is Op.Gep and s.src[0].dtype.count > 1 for s in u.src)
        if whole and len(sources) <= 2 and len({s.dtype for s in sources}) == 1:
            lanes = sources[0].dtype.count
            mask = [s.arg[0] + lanes * sources.index(s.src[0]) for s in u.src]
            second = self.value(sources[1]) if len(sources) > 1 else "poison"
            if len(sources) == 1 and mask == list(range(lanes)):
                self.values[u] = self.value(sources[0])
            else:
                self.values[u] = self.b.shuffle(base, lanes, self.value(sources[0]), second, mask)
        else:
            self.values[u] = self.b.pack(base, [self.value(s) for s in u.src])

    def gep(self, u: UOp) -> None:
        source = u.src[0]
        base, lanes = type_of(source.dtype.scalar()), source.dtype.count
        x = self.value(source)
        if lanes == 1:
            self.values[u] = self.b.broadcast(base, len(u.arg), x)
        elif len(u.arg) == 1:
            self.values[u] = self.b.extract(base, lanes, x, u.arg[0])
        elif u.arg == tuple(range(lanes)):
            self.values[u] = x
        else:
            self.values[u] = self.b.shuffle(base, lanes, x, "poison", list(u.arg))

    def cat(self, u: UOp) -> None:
        base = type_of(u.dtype.scalar())
        parts: list[str] = []
        for s in u.src:
            parts += [self.b.extract(base, s.dtype.count, self.value(s), i) for i in range(s.dtype.count)]
        self.values[u] = self.b.pack(base, parts)

    def custom(self, u: UOp) -> None:
        self.values[u] = self.b.emit(str(u.arg).format(*[self.value(s) for s in u.src]))

    def barrier(self, u: UOp) -> None:
        """Barrier and After pass their first operand on: one thread runs the kernel, so order is the list's."""
        found = self.values.get(u.src[0])
        if found is not None:
            self.values[u] = found

    def nothing(self, u: UOp) -> None:
        """What only holds a program together leaves no code."""

    def const(self, u: UOp) -> None:
        self.values[u] = constant(u)

    vconst = const

    def pointwise(self, u: UOp) -> None:
        self.values[u] = _POINTWISE[u.op](self.b, u, *[self.value(s) for s in u.src])

    # The function.

    def run(self, instructions: Sequence[UOp]) -> None:
        unneeded = lanes_of_columns(instructions) | distances(instructions)
        for u in instructions:
            if u in unneeded:
                continue
            handler = _HANDLERS.get(u.op)
            if handler is None:
                raise CompileError(
                    f"kernel {self.name}: LLVM has no code for {u.op.name}",
                    expected="an instruction that stage 22 may leave",
                    hint="lower it in the pipeline; Target.unsupported names the ops to decompose",
                )
            if u.op not in PURE and u.op is not Op.Store:
                self.streams.close(self.b)
            handler(self, u)
        self.streams.close(self.b)
        if self.loops or self.branches:
            raise CompileError(f"kernel {self.name}: a loop or IF is never closed")

    def globals(self) -> list[str]:
        """What stands in front of the functions."""
        zeros = f"@zeros = internal constant [{self.zeros} x i8] zeroinitializer, align {ALIGNMENT}\n"
        return [*([zeros] if self.zeros else []), *([*self.b.declared.values(), ""] if self.b.declared else [])]

    def function(self) -> list[str]:
        out = [f"define void @{symbol(self.name)}(ptr %args, ptr %vars) {{", "entry:"]
        out += self.b.entry
        if self.scratch:
            slot = max(self.arguments, default=-1) + 1
            out.append(f"  %scratch.at = getelementptr inbounds ptr, ptr %args, i64 {slot}")
            out.append("  %scratch = load ptr, ptr %scratch.at, align 8")
            out += [f"  {name} = getelementptr i8, ptr %scratch, i64 {at}" for name, at in self.scratch_users]
        if self.registers.shared:
            slot = max(self.arguments, default=-1) + 1 + bool(self.scratch)
            out += [
                f"  %part.at = getelementptr inbounds ptr, ptr %args, i64 {slot}",
                "  %part.both = load i64, ptr %part.at, align 8",
                "  %part = and i64 %part.both, 4294967295",
                "  %part.next = add i64 %part, 1",
                "  %parts = lshr i64 %part.both, 32",
                "  %first = icmp eq i64 %part, 0",
            ]
        out += [*self.streams.entry(), *self.b.lines, *self.streams.leave()]
        return [*out, "  ret void", "}", "", *self.streams.metadata(), *unrolled.metadata(self.short)]


# The op table names the method of an op; what it leaves unnamed is order.
_HANDLERS: Final[dict[Op, Callable[[Renderer, UOp], None]]] = {
    **{op: getattr(Renderer, entry.llvm) for op, entry in TABLE.entries.items() if entry.llvm and op not in _POINTWISE},
    **dict.fromkeys(_POINTWISE, Renderer.pointwise),
    **dict.fromkeys((Op.Sink, Op.Group, Op.Noop), Renderer.nothing),
    Op.After: Renderer.barrier,
}


def render(
    instructions: Sequence[UOp],
    name: str,
    math: frozenset[str] = CONTRACT,
    fma: bool = True,
    half_fma: bool = False,
    ieee_extremes: bool = False,
    avx512: bool = False,
) -> Rendered:
    """The LLVM IR of `instructions` (the list after stage 22) as a function called `name`.

    `math`: the liberties of float arithmetic (MOROK_FAST_MATH). `fma`: whether the target has fused multiply-add;
    `half_fma`: at f16 too. `ieee_extremes`: whether it has IEEE maximum and minimum of vectors as instructions;
    `avx512`: whether it has AVX-512.
    Raises CompileError for an instruction that has no code.
    """
    streams = Streams(streamed(instructions))
    renderer = Renderer(
        name, Builder(math, fma, half_fma, ieee_extremes, avx512), analyze(instructions), streams, loads_ahead(instructions)
    )
    renderer.run(instructions)
    text = "\n".join(renderer.globals() + renderer.function())
    return Rendered(
        name,
        "LLVM",
        text,
        tuple(renderer.arguments[slot] for slot in sorted(renderer.arguments)),
        tuple(renderer.variables.values()),
        renderer.scratch,
        parts_of(instructions),
        *work_of(instructions),
        overwritable(instructions),
    )
