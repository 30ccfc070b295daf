"""PACK: copies of what inner loops read again, and when the heuristics make them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from morok import Tensor, Variable, config
from morok.codegen.machines import host_caches
from morok.errors import OptError
from morok.ir.dtype import AddrSpace
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize.heuristics import optimize
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import lower
from tests.passes import kernels as K
from tests.passes.test_values import check


def packed(ast: UOp, *opts: Opt) -> UOp:
    return UOp.new(Op.Sink, ast.src, K.KernelInfo(ast.arg.name, opts))


def opts_of(ast: UOp) -> list[str]:
    found: list[UOp] = []
    lower(ast, K.CPU, lambda number, name, before, after: found.append(after) if number == 7 else None)
    return [str(o) for o in found[0].arg.opts]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("slot", [1, 2])
def test_a_factor_is_copied(slot: int, depth: int) -> None:
    """Before all loops, or inside the outermost one, here the rows: then only what one row reads."""
    if (slot, depth) == (1, 1):
        ast = packed(K.matmul(6, 4, 8), Opt(OptOp.PACK, slot, depth))
    else:
        ast = packed(K.matmul(6, 4, 8), Opt(OptOp.SWAP, 0, 1), Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.PACK, slot, depth))
    check(ast, K.CPU)
    program = lower(ast, K.CPU)
    (copy,) = [u for u in program if u.op is Op.DefineLocal]
    assert copy.dtype.space is AddrSpace.LOCAL
    assert copy.dtype.size == {(1, 0): 24, (1, 1): 4, (2, 0): 32, (2, 1): 16}[slot, depth]


@pytest.mark.long
def test_the_copy_of_a_transposed_factor_has_its_columns_side_by_side() -> None:
    ast = packed(K.matmul_transposed(2, 16, 32), Opt(OptOp.SWAP, 0, 1), Opt(OptOp.UPCAST, 0, 16), Opt(OptOp.PACK, 2, 1))
    check(ast, K.CPU)
    program = lower(ast, K.CPU)
    wide = [u for u in program if u.op is Op.Load and u.dtype.count == 16]
    assert any(s.op is Op.DefineLocal for u in wide for s in u.toposort())


@pytest.mark.long
def test_a_transposed_copy_is_filled_a_square_of_vectors_at_a_time() -> None:
    """Wider blocks of columns make the kernel no longer: 32 columns are two squares, one after the other."""
    lanes = K.CPU.vector_bytes // 4
    turned = []
    for columns in (lanes, 2 * lanes):
        opts = Opt(OptOp.SWAP, 0, 1), Opt(OptOp.UPCAST, 0, columns), Opt(OptOp.PACK, 2, 1)
        ast = packed(K.matmul_transposed(2, 32, 64), *opts)
        check(ast, K.CPU)
        program = lower(ast, K.CPU)
        turned.append(sum(u.op is Op.Vectorize and u.src[0].op is Op.Gep for u in program))
    assert turned == [lanes, lanes]


@pytest.mark.long
def test_remainders_have_copies_of_their_own() -> None:
    ast = packed(
        K.matmul(7, 5, 21),
        Opt(OptOp.SWAP, 0, 1),
        Opt(OptOp.UPCAST, 0, 16),
        Opt(OptOp.UPCAST, 1, 3),
        Opt(OptOp.PACK, 2, 1),
    )
    check(ast, K.CPU)


def test_what_cannot_be_copied_is_refused() -> None:
    for ast, opt, says in (
        (K.matmul(6, 4, 8), Opt(OptOp.PACK, 0, 0), "not read"),
        (K.matmul(6, 4, 8), Opt(OptOp.PACK, 7, 0), "not read"),
        (K.matmul(6, 4, 8), Opt(OptOp.PACK, 2, 3), "no 3 output loops"),
        (K.elementwise(12), Opt(OptOp.PACK, 1, 1), "one element only"),
        (K.pad(13, 2, 3), Opt(OptOp.PACK, 1, 0), "gate"),
        (K.gather(12, 5), Opt(OptOp.PACK, 1, 0), "index from memory"),
        (K.matmul(2, 1 << 16, 1 << 16), Opt(OptOp.PACK, 2, 0), "bytes"),
    ):
        s = Scheduler(ast, K.CPU)
        with pytest.raises(OptError, match=says):
            s.apply(opt)
        assert s.ast is ast
    with pytest.raises(OptError, match="threads"):
        Scheduler(K.matmul(6, 4, 8), K.GPU).apply(Opt(OptOp.PACK, 2, 0))
    r = K.loop(8, 0)
    in_place = K.kernel(K.buffer(0, 8).index(r).store(K.buffer(0, 8).index(0) + 1.0).end(r))
    with pytest.raises(OptError, match="written"):
        Scheduler(in_place, K.CPU).apply(Opt(OptOp.PACK, 0, 0))


def test_the_heuristics_copy_what_many_rows_read() -> None:
    """The columns' loop goes outside, the copy inside it; small factors and few rows do without."""
    assert opts_of(K.matmul(256, 256, 256)) == ["SWAP(0, 1)", "UPCAST(0, 32)", "UPCAST(1, 8)", "PACK(2, 1)"]
    assert "PACK(2, 1)" in opts_of(K.matmul_transposed(256, 256, 256))
    assert not any("PACK" in o for o in opts_of(K.matmul(16, 256, 256)))
    assert not any("PACK" in o for o in opts_of(K.matmul(64, 64, 64)))


def chosen(ast: UOp, target: K.Target = K.CPU) -> list[str]:
    return [str(o) for o in optimize(ast, target).arg.opts]


def test_many_columns_are_copied_where_the_rows_are_far() -> None:
    """Rows of more than a megabyte are read once, eight at a time, for all columns or as many of them as make up a megabyte."""
    whole = ["UPCAST(1, 32)", "UPCAST(0, 8)", "PACK(2, 0)"]
    assert chosen(K.matmul(1024, 512, 128)) == chosen(K.matmul_transposed(1024, 512, 128)) == whole
    blocks = ["SWAP(0, 1)", "BLOCK(0, 512)", "UPCAST(2, 32)", "UPCAST(1, 8)", "PACK(2, 1)"]
    assert chosen(K.matmul(1024, 512, 1024)) == chosen(K.matmul_transposed(1024, 512, 1024)) == blocks
    few = ["SWAP(0, 1)", "UPCAST(0, 32)", "UPCAST(1, 8)", "PACK(2, 1)"]
    assert chosen(K.matmul(512, 512, 512)) == few  # rows of a megabyte
    assert chosen(K.matmul(1024, 1024, 128)) == few  # eight rows are more than the nearest cache keeps
    assert chosen(K.matmul(1 << 13, 128, 128)) == few  # which keeps 64 columns
    assert "PACK(2, 1)" in chosen(K.matmul(1028, 512, 128))  # no multiple of eight rows
    assert "PACK(2, 0)" not in chosen(K.matmul(1024, 512, 128), replace(K.CPU, threads=2))  # each would make one


@pytest.mark.long
def test_tiles_fit_the_caches() -> None:
    """A first cache of 16 KiB keeps no eight rows of 512 numbers, a second one of 128 KiB no 32 columns of them."""
    product, caches = K.matmul(1024, 512, 128), replace(K.CPU, caches=(1 << 14, 1 << 21))
    assert "PACK(2, 0)" in chosen(product)
    assert "PACK(2, 1)" in chosen(product, caches)
    assert "BLOCK(0, 32)" in chosen(product, replace(K.CPU, caches=(48 << 10, 1 << 17)))
    for first, second in ((0, 0), (1 << 14, 0), (0, 1 << 17), (1, 1)):
        with config.settings(threads=1, l1_bytes=first, l2_bytes=second):
            x, w = np.arange(-600, 600.0, dtype=np.float32).reshape(1, 3, 20, 20), np.ones((32, 3, 3, 3), np.float32)
            windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
            np.testing.assert_array_equal(
                Tensor(x).conv2d(Tensor(w), stride=2).numpy(), windows.sum((1, 4, 5))[:, None].repeat(32, 1)
            )


def test_caches_are_as_linux_says(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate(
        (("1", "Data", "32K"), ("1", "Instruction", "64K"), ("2", "Unified", "512K"))
    ):
        (tmp_path / f"index{index}").mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (tmp_path / f"index{index}" / name).write_text(text + "\n")
    assert host_caches(tmp_path) == (32 << 10, 512 << 10)
    (tmp_path / "index2" / "size").write_text("much")
    assert host_caches(tmp_path) == (32 << 10, 2 << 20)
    assert host_caches(tmp_path / "nothing") == (48 << 10, 2 << 20)


@pytest.mark.long
@pytest.mark.parametrize("columns", [64, 1120])
def test_products_with_far_rows(columns: int) -> None:
    """All columns at once, and five blocks of 224."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((520, 900), (900, columns)))
    with config.settings(threads=1):
        np.testing.assert_array_equal((Tensor(a) @ Tensor(b)).relu().numpy(), np.maximum(a @ b, 0))
        np.testing.assert_array_equal((Tensor(a) @ Tensor(np.ascontiguousarray(b.T)).T).numpy(), a @ b)
        np.testing.assert_array_equal((Tensor(np.ascontiguousarray(a.T)).T @ Tensor(b)).numpy(), a @ b)


@pytest.mark.long
def test_rows_that_lie_across_memory_are_copied_side_by_side() -> None:
    """Results and columns run along memory, and so do the lanes of a vector: what becomes lanes last."""
    both = ["UPCAST(0, 8)", "UPCAST(1, 32)", "PACK(2, 0)", "PACK(1, 1)"]
    assert chosen(K.matmul_turned(64, 256, 128)) == both
    blocks = ["SWAP(0, 1)", "BLOCK(0, 128)", "UPCAST(1, 8)", "UPCAST(2, 32)", "PACK(2, 1)", "PACK(1, 2)"]
    assert chosen(K.matmul_turned(64, 2048, 256)) == blocks
    few = ["SWAP(0, 1)", "UPCAST(1, 8)", "UPCAST(0, 32)", "PACK(2, 1)"]
    # no multiple of eight rows
    assert chosen(K.matmul_turned(60, 256, 128)) == [o.replace("(1, 8)", "(1, 6)") for o in few]
    assert chosen(K.matmul_turned(64, 256, 128), replace(K.CPU, threads=2)) == [*few, "THREAD(0, 0)"]
    assert chosen(K.matmul_turned(64, 16, 64)) == ["UPCAST(0, 4)", "UPCAST(1, 64)"]  # too small for a copy
    tile = (Opt(OptOp.UPCAST, 0, 2), Opt(OptOp.UPCAST, 1, 16), Opt(OptOp.PACK, 2, 0), Opt(OptOp.PACK, 1, 1))
    check(packed(K.matmul_turned(4, 3, 32), *tile), K.CPU)
    check(K.matmul_turned(5, 3, 20), K.CPU)


def test_a_column_of_biases_is_no_factor() -> None:
    x, w, b = (Tensor(np.ones(shape, np.float32)) for shape in ((64, 256), (256, 128), (64, 1)))
    with config.settings(threads=1):
        (plain,), (biased,) = (t.kernels() for t in (x @ w, x @ w + b))
    assert plain.opts == tuple(o.replace("PACK(2", "PACK(1") for o in biased.opts)


@pytest.mark.long
def test_a_copy_of_many_columns_is_read_by_blocks() -> None:
    tile = (Opt(OptOp.UPCAST, 1, 16), Opt(OptOp.UPCAST, 0, 2), Opt(OptOp.PACK, 2, 0))
    check(packed(K.matmul(4, 3, 32), *tile), K.CPU)
    blocks = (Opt(OptOp.SWAP, 0, 1), Opt(OptOp.BLOCK, 0, 32), Opt(OptOp.UPCAST, 2, 16), Opt(OptOp.UPCAST, 1, 2))
    check(packed(K.matmul(4, 3, 64), *blocks, Opt(OptOp.PACK, 2, 1)), K.CPU)


def test_blocks_run_inside_all_other_loops() -> None:
    s = Scheduler(K.matmul(6, 4, 8), K.CPU)
    s.apply(Opt(OptOp.BLOCK, 0, 3))
    assert [r.src[0].arg for r in s.output_ranges] == [2, 8, 3]
    check(s.kernel(), K.CPU)
    for opt, target, says in (
        (Opt(OptOp.BLOCK, 0, 4), K.CPU, "divide"),
        (Opt(OptOp.BLOCK, 0, 6), K.CPU, "the whole axis"),
        (Opt(OptOp.BLOCK, 2, 2), K.CPU, "Reduce"),
        (Opt(OptOp.BLOCK, 0, 3), K.GPU, "no fixed order"),
    ):
        with pytest.raises(OptError, match=says):
            Scheduler(K.matmul(6, 4, 8), target).apply(opt)
    filled = Scheduler(K.matmul(6, 4, 8), K.CPU)
    filled.apply(Opt(OptOp.PACK, 1, 1))
    with pytest.raises(OptError, match="fills a local buffer again"):
        filled.apply(Opt(OptOp.BLOCK, 0, 3))


def test_a_bias_is_no_factor() -> None:
    """What is added to every row is read along columns too, but once a column."""
    x, w, b = (Tensor(np.ones(shape, np.float32)) for shape in ((64, 256), (256, 128), (128,)))
    kinds = [any("PACK" in o for o in k.opts) for t in (x @ w, x @ w + b, (x @ w + b).relu()) for k in t.kernels()]
    assert kinds == [True, True, True]


@pytest.mark.long
@pytest.mark.parametrize(
    "shape", [(65, 130, 100), (64, 200, 33), (130, 129, 257), (33, 400, 31), (70, 300, 1), (64, 144, 128)]
)
def test_products_of_awkward_sizes(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (k, n)))
    np.testing.assert_array_equal((Tensor(a) @ Tensor(b)).numpy(), a @ b)
    np.testing.assert_array_equal((Tensor(a) @ Tensor(np.ascontiguousarray(b.T)).T).numpy(), a @ b)
    np.testing.assert_array_equal((Tensor(np.ascontiguousarray(a.T)).T @ Tensor(b)).numpy(), a @ b)
    batch = np.stack([a, a + 1])
    np.testing.assert_array_equal((Tensor(batch) @ Tensor(b)).numpy(), batch @ b)
    np.testing.assert_array_equal(
        (Tensor(a) @ Tensor(b) * 2 + Tensor(b[0])).relu().numpy(), np.maximum(a @ b * 2 + b[0], 0)
    )


@pytest.mark.long
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("m", "k", "n"), [(79, 108, 108), (64, 128, 128), (100, 96, 37)])
def test_a_product_of_two_transposed_factors_copies_one(m: int, k: int, n: int) -> None:
    """Neither factor is contiguous where the result is: as many elements are turned once as a factor has, not in each tile."""
    x, w = np.random.default_rng(0).standard_normal((2, 128, 128)).astype(np.float32)
    t = Tensor(x[:k, :m].copy()).T @ Tensor(w[:n, :k].copy()).T
    (item,) = t.schedule()
    assert any("PACK" in o for o in opts_of(item.ast))
    np.testing.assert_allclose(t.numpy(), x[:k, :m].T @ w[:n, :k].T, rtol=1e-4, atol=1e-4)


def test_a_transposed_copy_is_made_in_tiles() -> None:
    """Whole vectors are read along the one axis and written along the other; also where tiles do not fill the matrix."""
    assert opts_of(K.transpose(64, 64)) == ["SWAP(0, 1)", "UPCAST(1, 16)", "UPCAST(0, 16)"]
    assert len(opts_of(K.flip(64))) == 1
    check(K.transpose(18, 21), K.CPU)
    for shape in ((64, 48), (37, 101), (100, 3), (1, 50)):
        a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal((Tensor(a).T + Tensor(a).T).numpy(), a.T + a.T)
        np.testing.assert_array_equal((Tensor(a).T - Tensor(np.ascontiguousarray(a.T))).numpy(), 0 * a.T)


def test_a_symbolic_number_of_rows() -> None:
    rows = Variable("rows", 1, 128)
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((128, 96), (96, 200)))
    for n in (1, 40, 128):
        x = Tensor(a).shrink(((0, rows.bind(n)), (0, 96)))
        np.testing.assert_array_equal((x @ Tensor(b)).numpy(), a[:n] @ b)


def test_axes_of_a_copy_are_loops() -> None:
    s = Scheduler(K.matmul(6, 4, 8), K.CPU)
    s.apply(Opt(OptOp.UPCAST, 1, 4))
    s.apply(Opt(OptOp.PACK, 2, 0))
    kinds = [r.arg[1] for r in s.ranges]
    assert kinds.count(AxisType.Upcast) == 2  # the tile's, and the copy's own
    assert kinds.count(AxisType.Reduce) == 1


def test_a_product_that_an_outer_loop_repeats_is_tiled_as_it_is_alone() -> None:
    """A loop that no factor depends on is around those that fold, not behind them."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((24, 40), (40, 32)))
    alone = Tensor(a) @ Tensor(b)
    again = Tensor(a).reshape(1, 24, 40).expand(3, 24, 40) @ Tensor(b).reshape(1, 40, 32).expand(3, 40, 32)
    (one,), (three,) = alone.kernels(), again.kernels()
    assert "UPCAST" in one.opts[0]
    assert [o.split("(")[0] for o in three.opts] == [o.split("(")[0] for o in one.opts]
    np.testing.assert_array_equal(again.numpy(), np.broadcast_to(a @ b, (3, 24, 32)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("batch", "rows", "inner", "outer"), [(2, 2, 12, 24), (2, 3, 12, 24), (3, 3, 16, 32), (2, 2, 24, 48)]
)
@pytest.mark.parametrize("first", [True, False])
def test_rows_around_the_columns_that_a_copy_holds(batch: int, rows: int, inner: int, outer: int, first: bool) -> None:
    """A few rows along two axes are one tile, whichever loops are further outside."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((batch, rows, inner), (outer, inner)))
    at = np.array([1, 0])
    t = Tensor(x).take(Tensor(at), 1).linear(Tensor(w)) if first else Tensor(x).linear(Tensor(w)).take(Tensor(at), 1)
    np.testing.assert_allclose(t.numpy(), x[:, at] @ w.T, rtol=1e-4, atol=1e-5)
