"""Table 1.5: the rewrite engine."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import morok
from acceptance.notation import ROOT, R, V, argument, unproved
from morok import UOp
from morok import dtypes as d
from morok.errors import RewriteLimitError
from morok.ir.dtype import AddrSpace
from morok.ir.op import AxisType, Op
from morok.passes.pipeline import lower
from morok.passes.target import KernelInfo, Target
from morok.rewrite import library
from morok.rewrite.engine import DEFAULT_LIMITS, Limits, graph_rewrite
from morok.rewrite.trace import Trace

X, Y = V("x", 0, 31), V("y", 0, 31)


def test_bottom_up_sees_nodes_before_their_operands_change() -> None:
    both = unproved("outer: Neg(Abs(x: index)) ~> Mul(x, 7)\ninner: Abs(x: index) ~> x")
    assert graph_rewrite(-X.abs(), both, bottom_up=True) is X * 7
    assert graph_rewrite(-X.abs(), both) is -X


def test_a_cascade_settles_in_one_call() -> None:
    node = UOp.const(3).lt(UOp.const(5)).where(X, Y)
    assert morok.simplify(node) is X


def test_results_are_linked() -> None:
    """A shared node is rewritten once, and everything above it sees the one result."""
    node = X
    for _ in range(20):
        node = (node + 0).max((node + 0) * 1)
    trace = Trace()
    result = graph_rewrite(
        node,
        unproved("z: Add[x: index, @zero] ~> x\no: Mul[x: index, @one] ~> x\nm: Max(x: index, x) ~> x"),
        trace=trace,
    )
    assert result is X
    assert len(trace.firings) <= 60


def test_a_pattern_over_a_bufferize_matches_only_bottom_up() -> None:
    r = R(8)
    stored = UOp.new(Op.Bufferize, (X.cast(d.f32), r), (None, AddrSpace.GLOBAL))
    node = stored.index(Y)
    rules = unproved(
        "reads: Index { buffer: Bufferize { compute: c: float, .. }, .. } ~> c\n"
        "gone: Bufferize { compute: c: float, ranges: rs, device, space } ~> Contiguous(c)"
    )
    assert graph_rewrite(node, rules, bottom_up=True) is X.cast(d.f32)
    down = graph_rewrite(node, rules)
    assert down is not X.cast(d.f32)
    assert down.src[0].op is Op.Contiguous


def test_three_modes() -> None:
    before = unproved("outer: Neg(Abs(x: index)) ~> Abs(Mul(x, 7))")
    after = unproved("inner: Abs(x: index) ~> x")
    assert graph_rewrite(-X.abs(), after) is -X
    assert graph_rewrite(-X.abs(), before, bottom_up=True) is (X * 7).abs()
    assert graph_rewrite(-X.abs(), after, before=before) is X * 7


def _tree(rng: random.Random, depth: int) -> UOp:
    if depth == 0:
        return rng.choice([X, Y, V("z", -4, 4), UOp.const(rng.randrange(-6, 9))])
    a, b = _tree(rng, depth - 1), _tree(rng, rng.randrange(depth))
    kind = rng.randrange(8)
    if kind == 0:
        return a.lt(b).where(a, b)
    if kind == 1:
        return a // rng.choice([2, 3, -2, 8])
    if kind == 2:
        return a % rng.choice([2, 3, 5, 8])
    return [a + b, a - b, a * rng.choice([2, 3, 4]), a.max(b), a + rng.randrange(5)][kind - 3]


def test_a_fixpoint_is_reached() -> None:
    rng = random.Random(3)
    for _ in range(200):
        once = morok.simplify(_tree(rng, 4))
        assert morok.simplify(once) is once


def test_a_pair_that_oscillates_is_named() -> None:
    with pytest.raises(RewriteLimitError) as caught:
        graph_rewrite(X + Y, unproved("a: Add(x: index, y) ~> Add(y, x)"))
    assert str(caught.value).count("t.a") == 2
    with pytest.raises(RewriteLimitError, match=r"t\.there"):
        graph_rewrite(X + X, unproved("there: Add(x: index, x) ~> Mul(x, 2)\nback: Mul(x: index, 2) ~> Add(x, x)"))


def test_limits_can_be_set() -> None:
    assert DEFAULT_LIMITS.per_node == 1000
    assert DEFAULT_LIMITS.total == 100_000
    grow = unproved("grow: Add(x: index, c @const) ~> Add(Neg(x), c)")
    with pytest.raises(RewriteLimitError, match="1,001 times"):
        graph_rewrite(X + 1, grow)
    with pytest.raises(RewriteLimitError, match="11 times"):
        graph_rewrite(X + 1, grow, limits=Limits(per_node=10))


def test_a_gated_store_becomes_a_branch() -> None:
    i = UOp.range(10, 0, AxisType.Loop, True)
    place = argument(0, 10).index(argument(1, 10).index(i).lt(5.0).where(i, UOp.invalid_at()))
    ast = UOp.sink(place.store(UOp.const(1.0)).end(i), info=KernelInfo("k"))
    written = lower(ast, Target("LLVM", memory_bytes=8))
    kinds = [u.op for u in written if u.op in (Op.If, Op.Store, Op.EndIf)]
    assert kinds == [Op.If, Op.Store, Op.EndIf]


def test_every_firing_is_recorded(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    program = (
        "import morok; from morok import UOp; x = UOp.var('x', morok.dtypes.index, 0, 9); morok.simplify((x + 0) * 1)"
    )
    environment = {**os.environ, "MOROK_TRACE": str(out)}
    line = [sys.executable, "-c", program]
    run = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    firings = json.loads(out.read_text())["firings"]
    assert len(firings) >= 2
    for f in firings:
        assert {"stage", "rule", "before", "before_id", "after", "after_id", "seconds"} <= set(f)
    assert {"identity_and_zero.add_zero", "identity_and_zero.mul_one"} <= {f["rule"] for f in firings}
    assert {f["rule"] for f in firings} <= set(library.symbolic().names)
