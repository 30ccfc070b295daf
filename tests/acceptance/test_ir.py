"""Table 1.1: nodes."""

from __future__ import annotations

import gc
import inspect
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import morok
from acceptance.notation import ROOT, R, V, argument, rw
from morok import Tensor, UOp
from morok import dtypes as d
from morok.errors import IRTypeError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace
from morok.ir.op import Op


def test_a_node_is_immutable() -> None:
    x, y = V("x", 0, 9), V("y", 0, 9)
    u = UOp.add(x, y)
    assert u.src == (x, y)
    for name in ("op", "dtype", "src", "arg", "anything"):
        with pytest.raises(AttributeError):
            setattr(u, name, None)


def test_eighty_ops() -> None:
    assert len(list(Op)) >= 80


def test_a_wrong_operand_names_the_callers_line() -> None:
    here = inspect.currentframe()
    assert here is not None
    with pytest.raises(IRTypeError) as caught:
        UOp.load(UOp.const(1))
    assert f"{__file__}:{here.f_lineno - 1}" in str(caught.value)


def test_equal_expressions_are_one_object() -> None:
    a, b = V("a", 0, 9), V("b", 0, 9)
    assert a + b is a + b
    s, t = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    assert (s + t).uop is (s + t).uop


def test_eight_threads_build_the_same_thousand() -> None:
    start = threading.Barrier(8)
    built: list[list[UOp]] = []

    def build() -> None:
        start.wait()
        x = UOp.var("threads")
        built.append([(x + n) * (x - n) for n in range(1000)])

    threads = [threading.Thread(target=build) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(built) == 8
    assert len({id(u) for mine in built for u in mine}) == 1000


@pytest.mark.long
def test_dropped_nodes_leave_the_cache() -> None:
    gc.collect()
    before = morok.ir.live()
    nodes = [UOp.const(n, d.i64) for n in range(10**9, 10**9 + 10_000)]
    assert morok.ir.live() >= before + 10_000
    del nodes
    gc.collect()
    assert morok.ir.live() <= before


def test_live_needs_no_other_import() -> None:
    run = [sys.executable, "-c", "import morok; print(morok.ir.live())"]
    result = subprocess.run(run, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr


def test_tree_draws_a_shared_node_once() -> None:
    x = UOp.var("x")
    drawing = (x + x * 2).tree()
    assert drawing.count("x: index") == 1
    assert drawing.count("-> (same as above)") == 1
    assert drawing.splitlines()[0] == "[0] Add : index"


@pytest.mark.long
def test_a_chain_of_100_000_sums() -> None:
    assert sys.getrecursionlimit() <= 3000
    x, y = UOp.var("x", d.f32), UOp.var("y", d.f32)
    u = x
    for n in range(100_000):
        u = u + (x if n % 2 else y)
    assert len(u.toposort()) == 100_002
    assert u.text().count("Add(") == 100_000
    assert len(u.tree().splitlines()) > 100_000
    assert morok.simplify(u * 1.0) is u


def test_bounds_at_construction() -> None:
    v = V("v", -5, 5)
    for u, want in [(V("x", 0, 100) * 3 + V("y", 0, 10), (0, 310)), (v % 3, (-2, 2)), (v // 3, (-1, 1))]:
        assert (u.vmin, u.vmax) == want


def test_a_random_value_lies_within_the_bounds() -> None:
    rng = random.Random(0)
    leaves = [V("x", -7, 12), V("y", 0, 31), V("z", -3, -1)]
    ops: list[Callable[[UOp, UOp], UOp]] = [
        UOp.__add__, UOp.__sub__, UOp.__mul__, lambda a, b: a.max(b), lambda a, b: a.min(b),
        lambda a, b: a // rng.choice([-3, 2, 7]), lambda a, b: a % rng.choice([-4, 3, 8]), lambda a, b: a.lt(b).where(a, b),
    ]  # fmt: skip
    for _ in range(300):
        u = rng.choice(leaves)
        for _ in range(rng.randrange(1, 5)):
            u = rng.choice(ops)(u, rng.choice([*leaves, UOp.const(rng.randrange(-9, 9))]))
        values = {v.arg[0]: rng.randint(int(v.vmin), int(v.vmax)) for v in leaves}
        assert u.vmin <= interpret.evaluate(u, values) <= u.vmax


def test_constants_wrap() -> None:
    total = UOp.const(2**31 - 1, d.i32) + 1
    assert rw(total, "constant_folding") is UOp.const(-2147483648, d.i32)


def test_comparisons_decided_by_bounds() -> None:
    assert morok.simplify(V("a", 0, 3).lt(V("b", 5, 9))) is UOp.const(True)


def test_substitution_in_a_diamond_of_twenty_levels() -> None:
    x, y = UOp.var("x"), UOp.var("y")
    u = x
    for _ in range(20):
        u = u * u
    v = u.substitute({x: y})
    assert v.substitute({y: x}) is u
    assert len(v.toposort()) == 21


def test_open_ranges() -> None:
    i, j, k = R(4, 0), R(8, 1), R(3, 2)
    place = argument(0, 96).index(i * 8 + j)
    value = (argument(1, 3).index(k) + 1.0).reduce(Op.Add, k)
    assert place.ranges == {i, j}
    assert value.ranges == frozenset()
    assert place.store(value).ranges == {i, j}
    assert place.store(value, i, j).ranges == frozenset()
    assert place.store(value, i).ranges == {j}
    assert place.store(value).end(i, j).ranges == frozenset()
    assert UOp.new(Op.Bufferize, (place, i, j), (None, AddrSpace.GLOBAL)).ranges == frozenset()


def test_provenance_names_line_and_rule() -> None:
    b = UOp.var("provenance_b", d.i32)
    u = morok.simplify(b + 0)
    assert u is b
    written, *fired = u.provenance()
    assert written.startswith(f"{__file__}:")
    assert "b + 0" in written
    assert any("identity_and_zero.add_zero" in step for step in fired)
    v = morok.simplify((b + 3) + 4)
    assert v is b + 7
    assert any("alu_folding" in step for step in v.provenance())


def test_a_kernels_name_survives(capfd: pytest.CaptureFixture[str]) -> None:
    t = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).sum(1)
    with morok.settings(debug="ir"):
        (kernel,) = t.kernels()
    sections = [line for line in capfd.readouterr().err.splitlines() if line.startswith("=== ")]
    assert len(sections) == 22
    assert all(line.startswith(f"=== {kernel.name}: stage") for line in sections)
    assert kernel.name in kernel.code


def test_shapes_hold_symbols() -> None:
    n = V("n", 1, 8)
    assert Tensor.empty(n, 4).sum(1).shape == (n,)


def test_pickles_come_back_as_the_same_node() -> None:
    x = V("x", 0, 31)
    for u in (x, (x * 4 + 3) // 4, argument(0, 4).index(x % 4).store(UOp.const(1.0)), UOp.const((1, 2), d.u8)):
        assert pickle.loads(pickle.dumps(u)) is u
        assert morok.parse(u.text()) is u
