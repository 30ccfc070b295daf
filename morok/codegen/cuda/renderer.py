"""One instruction list as one CUDA kernel: `extern "C" __global__ void name(buffers.., run-time values..)`.

A vector is one C variable for each lane; only loads and stores are wide, if their offset is provably a multiple of the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.codegen.cuda import prelude
from morok.codegen.cuda.c_expressions import OPS, Emit
from morok.codegen.cuda.type_names import REGISTER, WIDE, from_memory, from_wide, literal, memory, to_wide
from morok.codegen.frame import Frame
from morok.codegen.machines import CUDA
from morok.codegen.register_memory import Registers, Slot, analyze
from morok.codegen.rendered import Rendered, symbol
from morok.codegen.scopes import Values
from morok.codegen.survey import survey
from morok.errors import CompileError
from morok.ir.dtype import DType, PtrType, dtypes
from morok.ir.op import TABLE, Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp

BLOCK: Final = {"gidx0": "blockIdx.x", "gidx1": "blockIdx.y", "gidx2": "blockIdx.z"}
THREAD: Final = {"lidx0": "threadIdx.x", "lidx1": "threadIdx.y", "lidx2": "threadIdx.z"}
_FIELDS: Final = "xyzw"
_POINTWISE: Final[dict[Op, Emit]] = {
    op: OPS[e.cuda] for op, e in TABLE.entries.items() if e.pointwise and e.cuda in OPS
}
_BIT_NAMES: Final = {
    (dtypes.f32, "int"): "__float_as_int({})",
    (dtypes.f32, "uint"): "__float_as_uint({})",
    (dtypes.f64, "int"): "__double_as_longlong({})",
    (dtypes.f64, "uint"): "(unsigned long long)__double_as_longlong({})",
    (dtypes.f16, "int"): "(short)__half_as_ushort({})",
    (dtypes.f16, "uint"): "__half_as_ushort({})",
    (dtypes.bf16, "int"): "(short)__bfloat16_as_ushort({})",
    (dtypes.bf16, "uint"): "__bfloat16_as_ushort({})",
}
_FROM_BITS: Final = {
    dtypes.f32: "__uint_as_float((unsigned int){})",
    dtypes.f64: "__longlong_as_double((long long){})",
    dtypes.f16: "__ushort_as_half((unsigned short){})",
    dtypes.bf16: "__ushort_as_bfloat16((unsigned short){})",
}


def _factor(u: UOp, known: dict[UOp, int]) -> int:
    """A divisor of all values of the integer `u`; 0 if `u` is 0."""
    if u.op is Op.Const:
        return abs(int(u.arg))
    a = [known.get(s, 1) for s in u.src]
    if u.op is Op.Mul:
        return a[0] * a[1]
    if u.op in (Op.Add, Op.Sub):
        return math.gcd(a[0], a[1])
    if u.op is Op.Where:
        return math.gcd(a[1], a[2])
    if u.op is Op.Shl and u.src[1].op is Op.Const:
        return a[0] << int(u.src[1].arg)
    if u.op is Op.Cast or u.op is Op.After:
        return a[0]
    return 1


@dataclass(slots=True)
class Renderer:
    """The state of rendering one list: the C names of all lanes of each value, and the lines so far.

    wide  True if loads and stores may be wide; `widened`: True if one is
    """

    frame: Frame
    registers: Registers
    wide: bool = True
    widened: bool = False
    lines: list[str] = field(default_factory=list)
    values: Values[list[str]] = field(default_factory=Values)
    factors: dict[UOp, int] = field(default_factory=dict)
    specials: dict[str, UOp] = field(default_factory=dict)
    needed: dict[str, None] = field(default_factory=dict)
    count: int = 0
    shared: int = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * (len(self.frame.open) + 1) + text)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def define(self, d: DType, text: str) -> str:
        """A new variable of scalar dtype `d`."""
        name = self.fresh()
        self.line(f"const {REGISTER[d]} {name} = {text};")
        return name

    def need(self, function: str) -> None:
        self.needed[function] = None

    def value(self, u: UOp) -> list[str]:
        """The names of the lanes of the value of `u`."""
        return self.values.find(u, self.compute, self.frame.name)

    def compute(self, u: UOp) -> None:
        _HANDLERS[u.op](self, u)

    # Storage.

    def define_global(self, u: UOp) -> None:
        self.values[u] = [f"data{self.frame.buffer(u)}"]

    def define_var(self, u: UOp) -> None:
        self.values[u] = [f"var{self.frame.variable(u)}"]

    def define_local(self, u: UOp) -> None:
        assert isinstance(u.dtype, PtrType)
        size = max(u.dtype.size, 1) * u.dtype.base.count
        self.shared += size * u.dtype.base.scalar().itemsize
        if self.shared > CUDA.local_bytes:
            raise CompileError(
                f"kernel {self.frame.name} needs {self.shared} bytes of shared memory",
                expected=f"at most {CUDA.local_bytes} bytes",
                hint="use fewer threads in a block, or smaller tiles",
            )
        self.values[u] = [f"local{u.arg}"]
        self.line(f"__shared__ __align__(16) {memory(u.dtype.base.scalar())} local{u.arg}[{size}];")

    def define_reg(self, u: UOp) -> None:
        assert isinstance(u.dtype, PtrType)
        d = u.dtype.base.scalar()
        if u in self.registers.memory:
            self.values[u] = [f"reg{u.arg}"]
            self.line(f"{memory(d)} reg{u.arg}[{max(u.dtype.size, 1) * u.dtype.base.count}];")
        else:
            for slot in self.registers.slots[u].values():
                self.line(f"{REGISTER[d]} {', '.join(self.accumulators(slot))};")

    def accumulators(self, slot: Slot) -> list[str]:
        return [f"acc{slot.reg.arg}_{slot.start + i}" for i in range(slot.lanes)]

    def special(self, u: UOp) -> None:
        label = str(u.arg)
        where = BLOCK.get(label) or THREAD.get(label)
        if where is None:
            raise CompileError(
                f"kernel {self.frame.name}: there is no hardware index {label}",
                expected=f"one of {', '.join([*BLOCK, *THREAD])}",
            )
        self.specials[label] = u.src[0]
        self.values[u] = [label]
        self.line(f"const {REGISTER[u.dtype]} {label} = {where};")

    # Memory.

    def index(self, u: UOp) -> None:
        """Check an Index; its address is part of the accesses that use it."""
        if u.op is Op.Index and u.arg and u.src[-1].dtype.count not in (1, u.src[1].dtype.count):
            raise CompileError(
                f"kernel {self.frame.name}: the gate of an Index has {u.src[-1].dtype.count} lanes",
                expected=f"one gate, or one for each of the {u.src[1].dtype.count} places",
            )

    pointer_index = index

    def _element(self, place: UOp) -> DType:
        base = passed(place.src[0]).dtype
        return base.base if isinstance(base, PtrType) else base

    def _pointer(self, place: UOp) -> str:
        """The C expression for the base pointer of `place`."""
        base = passed(place.src[0])
        if base.op is Op.Index or base.op is Op.PointerIndex:
            return f"({self._pointer(base)} + {self._offsets(base)[0]})"
        return self.value(base)[0]

    def _offsets(self, place: UOp) -> list[str]:
        count = self._element(place).count
        offsets = self.value(place.src[1])
        return offsets if count == 1 else [f"{x} * {count}" for x in offsets]

    def _gates(self, place: UOp) -> list[str] | None:
        return self.value(place.src[-1]) if place.op is Op.Index and place.arg else None

    def _chunks(self, place: UOp, d: DType) -> list[int]:
        """The lanes of each access to a value of `d` at the scalar `place`: the widest that alignment allows."""
        scalar = d.scalar()
        factor = self.factors.get(place.src[1], 1) * self._element(place).count
        direct = self.wide and passed(place.src[0]).op in (Op.DefineGlobal, Op.DefineLocal)
        out: list[int] = []
        done = 0
        while done < d.count:
            widths = [
                w for w in WIDE[scalar][1] if direct and done + w <= d.count and factor % w == 0 and done % w == 0
            ]
            out.append(widths[0] if widths else 1)
            done += out[-1]
        self.widened |= any(w > 1 for w in out)
        return out

    def load(self, u: UOp) -> None:
        place = passed(u.src[0])
        d, scalar = u.dtype, u.dtype.scalar()
        touched = self.registers.touched.get(u)
        if touched is not None:
            names = [a for slot in touched for a in self.accumulators(slot)]
            self.values[u] = [self.define(scalar, a) for a in names]
            return
        alt = self.value(u.src[1]) if len(u.src) > 1 else [literal(scalar, 0.0 if scalar.is_float else 0)] * d.count
        gates = self._gates(place)
        pointer = self._pointer(place)
        offsets = self._offsets(place)
        lanes: list[str] = []
        if len(offsets) > 1:
            each = d.count // len(offsets)
            for i in range(d.count):
                read = from_memory(scalar, f"{pointer}[{self._at(offsets[i // each], i % each)}]")
                gate = None if gates is None else gates[i // each if len(gates) > 1 else 0]
                lanes.append(self.define(scalar, read if gate is None else f"{gate} ? {read} : {alt[i]}"))
        else:
            gate = None if gates is None else gates[0]
            for width in self._chunks(place, d):
                lanes += self._read(scalar, width, pointer, self._at(offsets[0], len(lanes)), gate, alt[len(lanes) :])
        self.values[u] = lanes

    def _at(self, offset: str, step: int) -> str:
        return f"{offset} + {step}" if step else offset

    def _read(self, d: DType, width: int, pointer: str, at: str, gate: str | None, alt: list[str]) -> list[str]:
        if width == 1:
            read = from_memory(d, f"{pointer}[{at}]")
            return [self.define(d, read if gate is None else f"{gate} ? {read} : {alt[0]}")]
        wide = f"{WIDE[d][0]}{width}"
        read = f"*(const {wide}*)({pointer} + {at})"
        if gate is not None:
            read = f"{gate} ? {read} : make_{wide}({', '.join(to_wide(d, a) for a in alt[:width])})"
        name = self.fresh()
        self.line(f"const {wide} {name} = {read};")
        return [self.define(d, from_wide(d, f"{name}.{_FIELDS[i]}")) for i in range(width)]

    def store(self, u: UOp) -> None:
        place = passed(u.src[0])
        d, scalar = u.src[1].dtype, u.src[1].dtype.scalar()
        lanes = self.value(u.src[1])
        touched = self.registers.touched.get(u)
        if touched is not None:
            names = [a for slot in touched for a in self.accumulators(slot)]
            for name, x in zip(names, lanes, strict=True):
                self.line(f"{name} = {x};")
            return
        pointer, offsets, gates = self._pointer(place), self._offsets(place), self._gates(place)
        self.frame.mark_written(storage(place))
        if len(offsets) > 1:
            each = d.count // len(offsets)
            for i, x in enumerate(lanes):
                gate = "" if gates is None else f"if ({gates[i // each if len(gates) > 1 else 0]}) "
                self.line(f"{gate}{pointer}[{self._at(offsets[i // each], i % each)}] = {x};")
            return
        gate = "" if gates is None else f"if ({gates[0]}) "
        done = 0
        for width in self._chunks(place, d):
            at, part = self._at(offsets[0], done), lanes[done : done + width]
            if width == 1:
                self.line(f"{gate}{pointer}[{at}] = {part[0]};")
            else:
                wide = f"{WIDE[scalar][0]}{width}"
                packed = ", ".join(to_wide(scalar, x) for x in part)
                self.line(f"{gate}*({wide}*)({pointer} + {at}) = make_{wide}({packed});")
            done += width

    # Control flow.

    def range(self, u: UOp) -> None:
        name = f"i{self.count}"
        self.count += 1
        c = REGISTER[u.dtype]
        self.line(f"for ({c} {name} = 0; {name} < {self.value(u.src[0])[0]}; {name}++) {{")
        self.frame.open.append(u)
        self.values.open()
        self.values[u] = [name]

    def end(self, u: UOp) -> None:
        self.frame.close(u)
        self.values.close()
        self.line("}")

    def if_(self, u: UOp) -> None:
        self.line(f"if ({self.value(u.src[0])[0]}) {{")
        self.frame.open.append(u)
        self.values.open()

    endif = end

    def barrier(self, u: UOp) -> None:
        self.line("__syncthreads();")
        self.after(u)

    # Values.

    def pointwise(self, u: UOp) -> None:
        n = u.dtype.count
        scalar = u.dtype.scalar()
        operands = [self.value(s) for s in u.src]
        emit = _POINTWISE[u.op]
        self.values[u] = [
            self.define(scalar, emit(self.need, u, *[x[i if len(x) > 1 else 0] for x in operands])) for i in range(n)
        ]

    def bitcast(self, u: UOp) -> None:
        s, t = u.src[0].dtype, u.dtype
        if s.count != t.count:
            raise CompileError(
                f"kernel {self.frame.name}: a Bitcast from {s} to {t} changes the number of lanes",
                hint="load the buffer at the other dtype",
            )
        self.values[u] = [self.define(t.scalar(), _bits(s.scalar(), t.scalar(), x)) for x in self.value(u.src[0])]

    def vectorize(self, u: UOp) -> None:
        self.values[u] = [x for s in u.src for x in self.value(s)]

    cat = vectorize

    def gep(self, u: UOp) -> None:
        lanes = self.value(u.src[0])
        self.values[u] = [lanes[i] for i in u.arg]

    def custom(self, u: UOp) -> None:
        self.values[u] = [self.define(u.dtype.scalar(), str(u.arg).format(*[self.value(s)[0] for s in u.src]))]

    def const(self, u: UOp) -> None:
        d = u.dtype.scalar()
        lanes = u.arg if u.op is Op.VConst else [u.arg] * u.dtype.count
        self.values[u] = [literal(d, v) for v in lanes]

    vconst = const

    def after(self, u: UOp) -> None:
        """Give an After or Barrier the value of its first operand."""
        found = self.values.get(u.src[0])
        if found is not None:
            self.values[u] = found

    def nothing(self, u: UOp) -> None:
        """Emit nothing, for ops that only group others."""

    # The kernel.

    def run(self, instructions: Sequence[UOp]) -> None:
        for u in instructions:
            handler = _HANDLERS.get(u.op) or self.frame.refuse(u, "CUDA")
            handler(self, u)
            if u.dtype.is_int:
                self.factors[u] = _factor(u, self.factors)

    def text(self, threads: int) -> str:
        parameters = []
        arguments, variables = self.frame.parameters()
        for a in arguments:
            parameters.append(f"{'' if a.written else 'const '}{memory(a.dtype.scalar())}* data{a.slot}")
        parameters += [f"{REGISTER[v.dtype]} var{i}" for i, v in enumerate(variables)]
        bounds = f"__launch_bounds__({threads}) " if threads else ""
        body = "\n".join(self.lines)
        out = [
            f"#include <{header}>"
            for word, header in (("__half", "cuda_fp16.h"), ("bfloat16", "cuda_bf16.h"))
            if word in body
        ]
        out += [prelude.text(self.needed)] if self.needed else []
        out.append(f'extern "C" __global__ void {bounds}{symbol(self.frame.name)}({", ".join(parameters)}) {{')
        return "\n".join([*out, body, "}", ""])

    def dims(self, names: Sequence[str]) -> tuple[UOp, ...]:
        one = UOp.const(1, dtypes.i32)
        return tuple(self.specials.get(name, one) for name in names)


def _bits(s: DType, t: DType, x: str) -> str:
    """The C expression for `x` of dtype `s`, bitcast to `t`."""
    if s is t:
        return x
    if s.is_float and s.bits > 8:
        x = _BIT_NAMES[s, "uint" if not t.is_signed else "int"].format(x)
    if t.is_float and t.bits > 8:
        return _FROM_BITS[t].format(x)
    return f"{x} != 0" if t.is_bool else f"({REGISTER[t]}){x}"


# The op table names the method of each op; the remaining ops only order or group others.
_HANDLERS: Final[dict[Op, Callable[[Renderer, UOp], None]]] = {
    **{op: getattr(Renderer, entry.cuda) for op, entry in TABLE.entries.items() if entry.cuda and op not in _POINTWISE},
    **dict.fromkeys(_POINTWISE, Renderer.pointwise),
    **dict.fromkeys((Op.Sink, Op.Group, Op.Noop), Renderer.nothing),
    Op.After: Renderer.after,
}


def render(instructions: Sequence[UOp], name: str) -> Rendered:
    """The CUDA C of `instructions` (the list after stage 22) as a kernel called `name`, and its launch dimensions.

    Raises CompileError for an instruction without CUDA code, and for more shared memory than a GPU has.
    """
    registers = analyze(instructions, survey(instructions))
    renderer = Renderer(Frame(name), registers)
    renderer.run(instructions)
    block = renderer.dims(tuple(THREAD))
    threads = math.prod(int(d.arg) for d in block) if all(d.op is Op.Const for d in block) else 0
    narrow = ""
    if renderer.widened:
        again = Renderer(Frame(name), registers, wide=False)
        again.run(instructions)
        narrow = again.text(threads)
    return Rendered(
        name,
        "CUDA",
        renderer.text(threads),
        *renderer.frame.parameters(),
        narrow=narrow,
        grid=renderer.dims(tuple(BLOCK)),
        block=block,
    )
