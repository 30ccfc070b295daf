"""Programs known by their fingerprints: equal exactly where the nodes are."""

from __future__ import annotations

import gc
import itertools
import math
import weakref

from morok.ir import uop
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.fingerprint import fingerprint
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp


def programs() -> list[list[UOp]]:
    """Lists that differ in one thing each: the value of a constant, its kind, a dtype, an argument, an operand, the order."""
    x, y = UOp.var("x", dtypes.f32), UOp.var("y", dtypes.f32)
    ptr = [dtypes.f32.ptr(4), dtypes.f32.ptr(5), dtypes.f32.ptr(4, AddrSpace.LOCAL), dtypes.f32.ptr(4).vec(2)]
    out = [[x], [y], [x, y], [y, x], [x + y, x], [x, x + y], [x * y], [x + x], [UOp.var("x", dtypes.f64)]]
    out += [[UOp.const(v, dtypes.f32)] for v in (0.0, -0.0, 1.0, math.nan, math.inf, 1e-45, 0.1)]
    out += [[UOp.const(v, d)] for d in (dtypes.i32, dtypes.i64, dtypes.index, dtypes.f64) for v in (0, 1)]
    out += [
        [UOp.const(True, dtypes.bool)],
        [UOp.const((1.0, 2.0), dtypes.f32.vec(2))],
        [UOp.const((2.0, 1.0), dtypes.f32.vec(2))],
    ]
    out += [[UOp.new(Op.DefineGlobal, (), 0, d)] for d in ptr] + [[UOp.new(Op.DefineGlobal, (), 1, ptr[0])]]
    out += [[UOp.range(n, k, axis)] for n in (2, 3) for k in (0, 1) for axis in (AxisType.Loop, AxisType.Upcast)]
    out += [[UOp.new(Op.CustomI, (), text, dtypes.i32)] for text in ("a", "b", "'a'", "\ud800", "1")]
    return out


def test_equal_programs_and_no_others_have_one_fingerprint() -> None:
    made = programs()
    for a, b in itertools.product(made, made):
        assert (fingerprint(a) == fingerprint(b)) == (a == b), (a, b)


def test_a_fingerprint_keeps_no_node_alive_and_is_that_of_a_program_made_again() -> None:
    def made() -> list[UOp]:
        a = UOp.var("only_here", dtypes.f32)
        return [a, UOp.new(Op.Sqrt, (a * 3.0,))]

    nodes = made()
    first, alive = fingerprint(nodes), [weakref.ref(n) for n in nodes]
    del nodes
    gc.collect()
    assert [r() for r in alive] == [None, None]
    before = uop.live()
    assert fingerprint(made()) == first
    gc.collect()
    assert uop.live() <= before
