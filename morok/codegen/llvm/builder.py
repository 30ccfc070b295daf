"""A builder of LLVM IR text: names, blocks, declarations, and one method for each kind of instruction.

Types are given as a base ("float") and a number of lanes, so that a helper serves scalars and vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from morok.codegen.llvm.types import splat, suffix, vector
from morok.codegen.rendered import CONTRACT
from morok.passes.target import Target

ANY: Final = Target("LLVM")
MOST_LINES: Final = 1000  # lines after which `divide` ends a block


@dataclass(slots=True)
class Builder:
    """The body of one function.

    target    the target machine
    math      LLVM's fast-math flags of float arithmetic
    lines     instructions so far; a loop's phi nodes are patched in when the loop closes
    entry     instructions at the start of the entry block (memory of registers and locals)
    block     the label of the current block
    begun     the number of lines up to its label
    declared  declarations of the functions in use, by name
    """

    target: Target = ANY
    math: frozenset[str] = CONTRACT
    lines: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    block: str = "entry"
    begun: int = 0
    declared: dict[str, str] = field(default_factory=dict)
    count: int = 0
    fast: str = ""

    def __post_init__(self) -> None:
        self.fast = "".join(f"{name} " for name in sorted(self.math))

    # Names and blocks.

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def start(self, label: str) -> None:
        """Begin the block `label`; the previous block must have its terminator."""
        self.lines.append(f"{label}:")
        self.block = label
        self.begun = len(self.lines)

    def divide(self) -> None:
        """Begin a new block if the current one is very long: some of LLVM's passes take quadratic time in a block."""
        if len(self.lines) - self.begun >= MOST_LINES:
            label = self.label("next")
            self.do(f"br label %{label}")
            self.start(label)

    def emit(self, text: str) -> str:
        """The name of the result of a new instruction."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    # Instructions.

    def binary(self, op: str, base: str, lanes: int, a: str, b: str) -> str:
        return self.emit(f"{op} {vector(base, lanes)} {a}, {b}")

    def floating(self, op: str, base: str, lanes: int, a: str, b: str) -> str:
        """The result of a floating-point operation with the flags in `math`."""
        return self.emit(f"{op} {self.fast}{vector(base, lanes)} {a}, {b}")

    def convert(self, op: str, source: str, target: str, lanes: int, a: str) -> str:
        return a if source == target else self.emit(f"{op} {vector(source, lanes)} {a} to {vector(target, lanes)}")

    def compare(self, condition: str, base: str, lanes: int, a: str, b: str) -> str:
        op = "fcmp" if base in ("half", "float", "double") else "icmp"
        return self.emit(f"{op} {condition} {vector(base, lanes)} {a}, {b}")

    def select(self, c: str, base: str, lanes: int, t: str, f: str, condition_lanes: int | None = None) -> str:
        n = lanes if condition_lanes is None else condition_lanes
        return self.emit(f"select {vector('i1', n)} {c}, {vector(base, lanes)} {t}, {vector(base, lanes)} {f}")

    def const(self, base: str, lanes: int, text: str | int) -> str:
        return splat(base, lanes, str(text))

    def intrinsic(self, name: str, base: str, lanes: int, *operands: str, flags: str = "") -> str:
        """The result of intrinsic `llvm.name`, for operands of the result's type."""
        t = vector(base, lanes)
        full = f"@llvm.{name}.{suffix(base, lanes)}"
        if full not in self.declared:
            self.declared[full] = f"declare {t} {full}({', '.join([t] * len(operands))})"
        return self.emit(f"call {flags}{t} {full}({', '.join(f'{t} {a}' for a in operands)})")

    def intrinsic_abs(self, base: str, lanes: int, x: str) -> str:
        """The magnitude of an integer; the least integer is its own."""
        t = vector(base, lanes)
        return self.call(f"@llvm.abs.{suffix(base, lanes)}", t, [(t, x), ("i1", "false")])

    def call(self, function: str, result: str, operands: list[tuple[str, str]]) -> str:
        """The result of a call of `function`, with operands as (type, value)."""
        if function not in self.declared:
            self.declared[function] = f"declare {result} {function}({', '.join(t for t, _ in operands)})"
        return self.emit(f"call {result} {function}({', '.join(f'{t} {v}' for t, v in operands)})")

    def ternary_logic(self, lanes: int, table: int, operands: tuple[str, str, str]) -> str:
        """The result of AVX-512's vpternlog on 512 bits of integers: bit 4x + 2y + z of `table` is the result for x, y, z."""
        letter, t = {16: ("d", "<16 x i32>"), 8: ("q", "<8 x i64>")}[lanes]
        return self.call(
            f"@llvm.x86.avx512.pternlog.{letter}.512", t, [*[(t, x) for x in operands], ("i32", str(table))]
        )

    def prefetch(self, address: str, nearest: bool) -> None:
        """Prefetch the cache line at `address` for reading, into L1 (`nearest`) or L2; an invalid address is ignored."""
        function = "@llvm.prefetch.p0"
        self.declared.setdefault(function, f"declare void {function}(ptr, i32, i32, i32)")
        self.do(f"call void {function}(ptr {address}, i32 0, i32 {3 if nearest else 2}, i32 1)")

    # Lanes.

    def extract(self, base: str, lanes: int, x: str, lane: int) -> str:
        return x if lanes == 1 else self.emit(f"extractelement {vector(base, lanes)} {x}, i64 {lane}")

    def shuffle(self, base: str, lanes: int, a: str, b: str, mask: list[int]) -> str:
        """A vector of the lanes `mask` of the concatenation of `a` and `b`, each of `lanes` lanes."""
        t = vector(base, lanes)
        picks = ", ".join(f"i32 {i}" for i in mask)
        return self.emit(f"shufflevector {t} {a}, {t} {b}, <{len(mask)} x i32> <{picks}>")

    def broadcast(self, base: str, lanes: int, x: str) -> str:
        """A vector with the scalar `x` in every lane."""
        if lanes == 1:
            return x
        t = vector(base, lanes)
        one = self.emit(f"insertelement {t} poison, {base} {x}, i64 0")
        return self.emit(f"shufflevector {t} {one}, {t} poison, <{lanes} x i32> zeroinitializer")

    def pack(self, base: str, elements: list[str]) -> str:
        """A vector of these scalars; the scalar itself if there is one."""
        if len(elements) == 1:
            return elements[0]
        if all(e == elements[0] for e in elements):
            return self.broadcast(base, len(elements), elements[0])
        t = vector(base, len(elements))
        out = "poison"
        for i, e in enumerate(elements):
            out = self.emit(f"insertelement {t} {out}, {base} {e}, i64 {i}")
        return out
