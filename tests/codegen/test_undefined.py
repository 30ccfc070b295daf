"""What a program leaves undefined is an arbitrary value in machine code and nothing worse.

A connective of bools that one side decides has a value whatever the other side is (`false And undefined = false`), and a Where
that chooses the other branch too. To a compiler a shift by too much, or a sum that was promised not to overflow, is worse than
arbitrary: it may take everything made of it for what it likes, the connective included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cuda_runner import build, launch
from instruction_lists import Listing

from morok.codegen.cuda import render as render_cuda
from morok.codegen.llvm import render
from morok.codegen.overflow_flags import bounded
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

i32, f32, boolean = dtypes.i32, dtypes.f32, dtypes.bool
XS = [0, 1, 5, 127, -1, -(2**31), 2**31 - 1]
NS = [0, 1, 3, 29, 31, 32, 33, 61, 64, 100, -1, -2, -(2**31)]
FS = [1.0, float("nan"), 1e30, float("-inf")]
ROWS = list(itertools.product(XS, NS, FS))
ROWS += ROWS[: -len(ROWS) % 16]

# Each from x and n (any i32) and f (any f32), undefined for some of them.
VALUES: dict[str, Callable[[UOp, UOp, UOp], UOp]] = {
    "shl": lambda x, n, f: x << n,
    "shr": lambda x, n, f: x >> n,
    # never a value, which LLVM sees
    "shl by 32 or more": lambda x, n, f: x << (n | n.like(32)),
    "shr by 32 or more": lambda x, n, f: x >> (n | n.like(96)),
    "shr by less than 0": lambda x, n, f: (x >> (n | n.like(-8))) + x.like(1),
    # 0..=15 where it has a value, so that the product would fit
    "product of a shift": lambda x, n, f: ((x & x.like(127)) >> ((n & n.like(127)) + n.like(3))) * x.like(100_000_000),
    "sum of a quotient": lambda x, n, f: (
        UOp.new(Op.Idiv, (x & x.like(127), (n & n.like(127)))) + x.like(2**31 - 1 - 127)
    ),
    "idiv": lambda x, n, f: UOp.new(Op.Idiv, (x, n)),
    "mod": lambda x, n, f: UOp.new(Op.Mod, (x, n)),
    "floordiv": lambda x, n, f: UOp.new(Op.FloorDiv, (x, n)),
    "floormod": lambda x, n, f: UOp.new(Op.FloorMod, (x, n)),
    "pow": lambda x, n, f: UOp.new(Op.Pow, (x, n)) - x,
    "cast": lambda x, n, f: f.cast(i32 if f.dtype.count == 1 else i32.vec(f.dtype.count)) + x,
}
# The other side, and what then is right: c stands for "x is 5".
USES: dict[str, tuple[Callable[[UOp, UOp], UOp], Callable[[bool], bool | None]]] = {
    "and": (lambda c, v: c & v, lambda c: None if c else False),
    "and, turned round": (lambda c, v: v & c, lambda c: None if c else False),
    "or": (lambda c, v: v | c, lambda c: True if c else None),
    "where": (lambda c, v: c.where(c, v), lambda c: True if c else None),
    "shift of the outcome": (lambda c, v: c & (v.cast(c.like(True).dtype) ^ v), lambda c: None if c else False),
}
EXAMPLES = list(itertools.product(VALUES, USES))


def program(value: str, use: str, lanes: int) -> tuple[Listing, list[np.ndarray], list[bool | None]]:
    b = Listing()
    n = len(ROWS)
    kinds = (boolean, i32, i32, f32)
    out, *ins = (b.buffer(slot, d, n) for slot, d in enumerate(kinds))
    r = b.range(n // lanes)
    at = r * lanes if lanes > 1 else r
    x, amount, f = (b.load(i, at, d.vec(lanes)) for i, d in zip(ins, kinds[1:], strict=True))
    v = VALUES[value](x, amount, f)
    made, right = USES[use]
    b.store(out, at, b.add(made(x.eq(x.like(5)), v.gt(v.like(7)))))
    b.end(r)
    expected = [right(row[0] == 5) for row in ROWS]
    arrays = [
        np.array([w is not True for w in expected]),  # what is right must be written
        *(np.array([row[k] for row in ROWS], t) for k, t in enumerate((np.int32, np.int32, np.float32))),
    ]
    return b, arrays, expected


def check(label: str, got: np.ndarray, expected: list[bool | None]) -> None:
    for row, g, w in zip(ROWS, got.tolist(), expected, strict=True):
        assert w is None or g is w, f"{label} of {row}: {g} where {w} is right"


# a scalar loop goes through LLVM's optimizer, which is quick to use such promises
@pytest.mark.parametrize("lanes", [pytest.param(1, marks=pytest.mark.long), 8])
def test_llvm(lanes: int) -> None:
    cpu = device("CPU")
    for value, use in EXAMPLES:
        b, arrays, expected = program(value, use, lanes)
        kernel = cpu.compile(b.list, "undefined")
        kernel.launch([Buffer.wrap(cpu, a) for a in arrays])
        check(f"{value} under {use}", arrays[0], expected)


@pytest.mark.long
def test_cuda(tmp_path: Path) -> None:
    made = {(value, use): program(value, use, 1) for value, use in EXAMPLES}
    texts = {key: render_cuda(b.list, f"k{i}") for i, (key, (b, _, _)) in enumerate(made.items())}
    library = build(list(texts.values()), tmp_path, "-O2")
    for key, (_, arrays, expected) in made.items():
        launch(library, texts[key], arrays)
        check(" under ".join(key), arrays[0], expected)


def test_amounts_known_to_fit_are_not_masked() -> None:
    b = Listing()
    out, x = b.buffer(0, i32, 4), b.buffer(1, i32, 4)
    v = b.load(x, 0)
    b.store(out, 0, b.add(v << v.like(3)))
    b.store(out, 1, b.add(v >> (v & v.like(31))))
    text = render(b.list, "k").text
    assert text.count(" and ") == 1
    assert "31" not in render_cuda(b.list, "k").text.replace("& 31", "", 1)


@pytest.mark.long
def test_bounds_of_what_may_be_undefined_are_not_relied_on() -> None:
    x, n = UOp.var("x", i32, 0, 127), UOp.var("n", i32, 0, 100)
    assert bounded(x + n)
    assert bounded(x >> UOp.var("m", i32, 0, 31))
    assert not bounded((x >> (n + 3)) + 1)
    assert not bounded(UOp.new(Op.Idiv, (x, n)))
    assert bounded(UOp.new(Op.Idiv, (x, n + 1)))
    chain = x >> (n + 3)
    for _ in range(20_000):
        chain = (chain & x).max(n)
    assert not bounded(chain)
