"""Short names for what the feature table writes: V, R, and one rule group run to a fixpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from morok import AxisType, UOp
from morok import dtypes as d
from morok.dsl.check import check_text
from morok.ir.dtype import DType
from morok.ir.op import Op
from morok.rewrite import library
from morok.rewrite.ruleset import RuleSet

ROOT = Path(__file__).resolve().parents[2]


def V(name: str, lo: int, hi: int) -> UOp:
    """An index variable in lo..=hi."""
    return UOp.var(name, d.index, lo, hi)


def R(n: int | UOp, id: int = 0) -> UOp:
    return UOp.range(n, id, AxisType.Loop)


def rw(node: UOp, *groups: str) -> UOp:
    """`node` rewritten with built-in groups, through the gate."""
    result = library.rewrite(node, library.groups(*groups))
    assert isinstance(result, UOp)
    return result


def unproved(text: str) -> RuleSet:
    """Rules in text, not proved: for checks about matching and limits, not about truth."""
    return RuleSet.of(list(check_text(f'group t "test"\n\n{text}\n').rules()), unproved=True)


def buffer(n: int = 0, size: int = 8) -> UOp:
    return UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), n), UOp.new(Op.Device, (), "CPU")), size, d.f32)


def argument(slot: int, size: int, element: DType = d.f32) -> UOp:
    """A kernel's argument: `size` elements."""
    return UOp.new(Op.DefineGlobal, (), slot, element.ptr(size))


def shaped(*shape: int) -> UOp:
    """A tensor of that shape over a buffer of its own."""
    size = 1
    for n in shape:
        size *= n
    return UOp.new(Op.Reshape, (buffer(size=size), *map(UOp.const, shape)))


def command(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`morok ARGUMENTS` in a process of its own."""
    line = [sys.executable, "-m", "morok", *map(str, arguments)]
    return subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
