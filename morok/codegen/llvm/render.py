"""One instruction list as one LLVM function `void name(ptr args, ptr vars)`.

`args` is an array: the buffer addresses by slot, then the address of working memory if the kernel needs any, then the part to run
if it has a THREAD axis. `vars` is an array of 8-byte slots. Vectors are explicit, and accumulators are phi nodes. A gated load
reads zeros from a constant instead of its buffer if the gate is false; a gated store is a branch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.codegen.frame import Frame
from morok.codegen.inplace import overwritable
from morok.codegen.llvm import library_calls as library_calls  # fills OPS
from morok.codegen.llvm import short_loops
from morok.codegen.llvm.builder import ANY, Builder
from morok.codegen.llvm.cost_model import parts_of, work_of
from morok.codegen.llvm.kernel_memory import ALIGNMENT, Memory, element_of
from morok.codegen.llvm.nontemporal_stores import Streams, streamed
from morok.codegen.llvm.op_instructions import OPS, Emit
from morok.codegen.llvm.prefetch import prefetching_loads
from morok.codegen.llvm.strength_reduction import addresses
from morok.codegen.llvm.transpose_shuffles import columns, join
from morok.codegen.llvm.types import constant, literal, type_of
from morok.codegen.llvm.vectorizer_workarounds import wrapping_loops
from morok.codegen.register_memory import Slot, analyze, runs
from morok.codegen.rendered import CONTRACT, Rendered, symbol
from morok.codegen.survey import survey
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.pure import PURE
from morok.ir.uop import UOp
from morok.passes.target import Target

_POINTWISE: Final[dict[Op, Emit]] = {
    op: OPS[entry.llvm]
    for op, entry in TABLE.entries.items()
    if (entry.pointwise or op is Op.Bitcast) and entry.llvm in OPS
}


@dataclass(slots=True)
class _Loop:
    """An open loop: the type of its counter, the line of its phi nodes, and the values that they merge.

    grow  other induction variables: (name, start of the phi node, the instruction for the next value)
    """

    range: UOp
    type: str
    header: str
    before: str
    begin: str
    patch: int
    counter: str
    end: str
    tested_first: bool
    exit: str
    phis: dict[Slot, tuple[str, str]]
    grow: list[tuple[str, str, str]] = field(default_factory=list)
    innermost: bool = True


@dataclass(slots=True)
class _Branch:
    """An open IF, with the values of registers before it."""

    before: str
    merge: str
    env: dict[Slot, str]


@dataclass(slots=True)
class Renderer(Memory):
    """The state of rendering one list.

    loops, branches  the open loops and branches
    columns          the columns of tiles, with their rows and lanes
    unvectorized     loops that LLVM must not vectorize
    marked           the metadata of marked loops (short_loops)
    shuffles         the shuffles so far, by block, operands and mask
    """

    loops: list[_Loop] = field(default_factory=list)
    branches: list[_Branch] = field(default_factory=list)
    columns: dict[UOp, tuple[list[UOp], int]] = field(default_factory=dict)
    unvectorized: frozenset[UOp] = frozenset()
    marked: list[str] = field(default_factory=list)
    shuffles: dict[tuple[str, str, str, tuple[int, ...]], str] = field(default_factory=dict)

    def compute(self, u: UOp) -> None:
        _HANDLERS[u.op](self, u)

    # Control flow.

    def _part(self, u: UOp, t: str, end: str) -> tuple[str, str]:
        """(begin, end) of the shared loop `u` in this call: one part of a THREAD axis; of another loop all iterations or none."""
        b = self.b
        if u.arg[1] is not AxisType.Thread:
            return b.emit(f"select i1 %first, {t} 0, {t} {end}"), end
        wide = b.convert("sext" if u.dtype.is_signed else "zext", t, "i64", 1, end) if t != "i64" else end
        cuts = [b.emit(f"udiv i64 {b.binary('mul', 'i64', 1, wide, k)}, %parts") for k in ("%part", "%part.next")]
        low, high = [b.convert("trunc", "i64", t, 1, c) if t != "i64" else c for c in cuts]
        return low, high

    def range(self, u: UOp) -> None:
        b = self.b
        wide = u in self.addresses.wide and u.dtype.bits < 64
        t, end = ("i64", self.in_64_bits(u.src[0])) if wide else (type_of(u.dtype), self.value(u.src[0]))
        begin, shared = "0", u in self.registers.shared
        if shared:
            begin, end = self._part(u, t, end)
        header, exit_ = b.label("loop"), b.label("done")
        walks = [w for w in self.addresses.walks.get(u, ()) if w[0] in self.values.names]
        starts = [self.previous_pointer(base, at) for base, at, _ in walks]
        before = b.block
        b.do(f"br label %{header}")
        b.start(header)
        counter = b.name()
        phis: dict[Slot, tuple[str, str]] = {}
        for slot in self.registers.merged.get(u, ()):
            phis[slot] = (b.name(), self.env[slot])
            self.env[slot] = phis[slot][0]
        tested_first = shared or not runs(u)
        loop = _Loop(u, t, header, before, begin, len(b.lines), counter, end, tested_first, exit_, phis)
        self.loops.append(loop)
        b.lines.append("")  # for the phi nodes, filled in at the end of the body
        self.open(u)
        if tested_first:
            body = b.label("body")
            inside = b.emit(f"icmp {'slt' if u.dtype.is_signed else 'ult'} {t} {counter}, {end}")
            b.do(f"br i1 {inside}, label %{body}, label %{exit_}")
            b.start(body)
        for (base, at, step), start in zip(walks, starts, strict=True):
            self.pointers[base, at] = pointer = b.name()
            further = f"getelementptr i8, ptr {pointer}, i64 {step * element_of(base).itemsize}"
            loop.grow.append((pointer, f"ptr [ {start},", further))
        for multiple in self.addresses.multiples.get(u, ()):
            self.wide[multiple] = number = b.name()
            loop.grow.append((number, "i64 [ 0,", f"add nsw i64 {number}, {int(multiple.src[1].arg)}"))
        if wide:
            self.wide[u] = counter
            self.values[u] = b.emit(f"trunc i64 {counter} to {type_of(u.dtype)}")
        else:
            self.values[u] = counter

    def end(self, u: UOp) -> None:
        b = self.b
        self.frame.close(u)
        loop = self.loops.pop()
        t = loop.type
        following = b.emit(f"add nuw{' nsw' if loop.range.dtype.is_signed else ''} {t} {loop.counter}, 1")
        grown = [b.emit(further) for _, _, further in loop.grow]
        latch = b.block
        short = (
            not loop.tested_first
            and self.loops
            and loop.innermost
            and short_loops.is_short(loop.range, len(b.lines) - loop.patch)
        )
        asked = short_loops.FULL if short else short_loops.NO_VECTORS if loop.range in self.unvectorized else None
        mark = "" if asked is None else short_loops.mark(len(self.marked))
        self.marked += [] if asked is None else [asked]
        if loop.tested_first:
            b.do(f"br label %{loop.header}{mark}")
        else:
            more = b.emit(f"icmp {'slt' if loop.range.dtype.is_signed else 'ult'} {t} {following}, {loop.end}")
            b.do(f"br i1 {more}, label %{loop.header}, label %{loop.exit}{mark}")
        for around in self.loops:
            around.innermost = False
        lines = [f"  {loop.counter} = phi {t} [ {loop.begin}, %{loop.before} ], [ {following}, %{latch} ]"]
        for (name, start, _), further in zip(loop.grow, grown, strict=True):
            lines.append(f"  {name} = phi {start} %{loop.before} ], [ {further}, %{latch} ]")
        for slot, (name, initial) in loop.phis.items():
            lines.append(
                f"  {name} = phi {type_of(slot.dtype)} [ {initial}, %{loop.before} ], [ {self.env[slot]}, %{latch} ]"
            )
            if loop.tested_first:
                self.env[slot] = name
        b.lines[loop.patch] = "\n".join(lines)
        self.close(forget=loop.tested_first)
        b.start(loop.exit)

    def if_(self, u: UOp) -> None:
        b = self.b
        then, merge = b.label("then"), b.label("merge")
        b.do(f"br i1 {self.value(u.src[0])}, label %{then}, label %{merge}")
        stored = self.registers.merged.get(u, ())
        self.branches.append(_Branch(b.block, merge, {slot: self.env[slot] for slot in stored}))
        b.start(then)
        self.open(u)

    def endif(self, u: UOp) -> None:
        b = self.b
        self.frame.close(u)
        branch = self.branches.pop()
        self.close()
        inside = b.block
        b.do(f"br label %{branch.merge}")
        b.start(branch.merge)
        for slot, old in branch.env.items():
            new = self.env[slot]
            self.env[slot] = b.emit(f"phi {type_of(slot.dtype)} [ {new}, %{inside} ], [ {old}, %{branch.before} ]")

    # Lanes.

    def _shared_shuffle(self, base: str, lanes: int, a: str, b: str, mask: list[int]) -> str:
        """A shuffle of two vectors, emitted once in each block. LLVM would try in vain to merge each with the shuffles that it
        depends on, in time that grows with their number: `llvm.arithmetic.fence`, which costs no instruction, prevents that.
        """
        key = (self.b.block, a, b, tuple(mask))
        if key not in self.shuffles:
            made = self.b.shuffle(base, lanes, a, b, mask)
            fenced = base in ("float", "double")
            self.shuffles[key] = self.b.intrinsic("arithmetic.fence", base, lanes, made) if fenced else made
        return self.shuffles[key]

    def _column(self, base: str, rows: list[UOp], lane: int) -> str:
        n, size = rows[0].dtype.count, rows[0].dtype.scalar().itemsize
        joined, lanes = join(
            [self.value(r) for r in rows], lane, n, size, functools.partial(self._shared_shuffle, base, n)
        )
        whole = len(lanes) == n and lanes == sorted(lanes)
        return joined if whole else self.b.shuffle(base, n, joined, "poison", lanes)

    def _with_constants(self, u: UOp, base: str, source: UOp, constants: list[str]) -> str:
        """A vector of lanes of `source` and of constants, by one shuffle."""
        n, scalar = source.dtype.count, u.dtype.scalar()
        mask = [n + constants.index(literal(scalar, s.arg)) if s.op is Op.Const else s.arg[0] for s in u.src]
        filled = [*constants, *constants[:1] * (n - len(constants))]
        return self.b.shuffle(base, n, self.value(source), f"<{', '.join(f'{base} {c}' for c in filled)}>", mask)

    def vectorize(self, u: UOp) -> None:
        base = type_of(u.dtype.scalar())
        tile = self.columns.get(u)
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
        """Give a Barrier or After the value of its first operand, without code: the list has the order."""
        found = self.values.get(u.src[0])
        if found is not None:
            self.values[u] = found

    def nothing(self, u: UOp) -> None:
        """Emit nothing, for ops that only group others."""

    def const(self, u: UOp) -> None:
        self.values[u] = constant(u)

    vconst = const

    def pointwise(self, u: UOp) -> None:
        self.values[u] = _POINTWISE[u.op](self.b, u, *[self.value(s) for s in u.src])

    # The function.

    def run(self, instructions: Sequence[UOp]) -> None:
        wide, pointers, unneeded = self.addresses.wide, self.addresses.pointers, self.addresses.unneeded
        for u in instructions:
            if u not in unneeded:
                self._instruction(u)
                self.b.divide()
            if u in wide:
                self.in_64_bits(u)
            for base in pointers.get(u, ()):
                if base in self.values.names:
                    self.pointer(base, u)
        self.streams.close(self.b)

    def _instruction(self, u: UOp) -> None:
        handler = _HANDLERS.get(u.op) or self.frame.refuse(u, "LLVM")
        if u.op not in PURE and u.op is not Op.Store:
            self.streams.close(self.b)
        handler(self, u)

    def globals(self) -> list[str]:
        """The lines before the function: the constant of zeros, and declarations."""
        zeros = f"@zeros = internal constant [{self.zeros} x i8] zeroinitializer, align {ALIGNMENT}\n"
        return [*([zeros] if self.zeros else []), *([*self.b.declared.values(), ""] if self.b.declared else [])]

    def function(self) -> list[str]:
        out = [f"define void @{symbol(self.frame.name)}(ptr %args, ptr %vars) {{", "entry:"]
        out += self.b.entry
        if self.scratch:
            slot = max(self.frame.arguments, default=-1) + 1
            out.append(f"  %scratch.at = getelementptr inbounds ptr, ptr %args, i64 {slot}")
            out.append("  %scratch = load ptr, ptr %scratch.at, align 8")
            out += [f"  {name} = getelementptr i8, ptr %scratch, i64 {at}" for name, at in self.scratch_users]
        if self.registers.shared:
            slot = max(self.frame.arguments, default=-1) + 1 + bool(self.scratch)
            out += [
                f"  %part.at = getelementptr inbounds ptr, ptr %args, i64 {slot}",
                "  %part.both = load i64, ptr %part.at, align 8",
                "  %part = and i64 %part.both, 4294967295",
                "  %part.next = add i64 %part, 1",
                "  %parts = lshr i64 %part.both, 32",
                "  %first = icmp eq i64 %part, 0",
            ]
        out += [*self.streams.entry(), *self.b.lines, *self.streams.leave()]
        return [*out, "  ret void", "}", "", *self.streams.metadata(), *short_loops.metadata(self.marked)]


# The op table names the method of each op; the remaining ops only order or group others.
_HANDLERS: Final[dict[Op, Callable[[Renderer, UOp], None]]] = {
    **{op: getattr(Renderer, entry.llvm) for op, entry in TABLE.entries.items() if entry.llvm and op not in _POINTWISE},
    **dict.fromkeys(_POINTWISE, Renderer.pointwise),
    **dict.fromkeys((Op.Sink, Op.Group, Op.Noop), Renderer.nothing),
    Op.After: Renderer.barrier,
}


def render(instructions: Sequence[UOp], name: str, target: Target = ANY, math: frozenset[str] = CONTRACT) -> Rendered:
    """The LLVM IR of `instructions` (the list after stage 22) as a function for the kernel `name`.

    `math`: LLVM's fast-math flags (MOROK_FAST_MATH). Raises CompileError for an instruction without LLVM code.
    """
    found = survey(instructions)
    builder = Builder(target, math)
    registers = analyze(instructions, found)
    tiles = columns(instructions)
    plan = addresses(instructions, found, tiles, registers.slots, registers.shared)
    unvectorized = wrapping_loops(instructions)
    streams, prefetches = Streams(streamed(found.accesses)), prefetching_loads(found.accesses)
    renderer = Renderer(
        Frame(name), builder, registers, streams, prefetches, plan, columns=tiles, unvectorized=unvectorized
    )
    renderer.run(instructions)
    arguments, variables = renderer.frame.parameters()
    return Rendered(
        name,
        "LLVM",
        "\n".join(renderer.globals() + renderer.function()),
        arguments,
        variables,
        renderer.scratch,
        parts_of(found.loops),
        *work_of(found.loops),
        overwritable(found.accesses),
    )
