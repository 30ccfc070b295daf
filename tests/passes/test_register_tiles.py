"""The tiles of a product, and the cuts at factors that many tiles would compute."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from morok import Tensor
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.optimize.heuristics import optimize
from morok.optimize.opts import OptOp
from morok.passes.rangeify import rangeify
from morok.passes.rangeify.state import COSTLY, Decision
from morok.passes.register_tiles import tiles
from morok.passes.target import Target
from tests.passes import kernels as K
from tests.passes.test_cuts import tensor
from tests.passes.test_packing import opts_of

TARGETS = {
    "wide": Target("LLVM", vector_bytes=64, registers=32),
    "middle": Target("LLVM", vector_bytes=32, registers=16),
    "narrow": Target("LLVM", vector_bytes=16, registers=16),
}
on_every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


@on_every_target
def test_the_tiles_that_count_are_those_that_are_made(target: Target) -> None:
    rng = random.Random(0)
    for d in (dtypes.f32, dtypes.f64):
        for _ in range(20):
            rows, columns = rng.randint(2, 90), rng.choice((rng.randint(2, 24), rng.randint(2, 300)))
            column, *others = optimize(K.matmul(rows, 3, columns, d), target).arg.opts
            row = next(o for o in others if o.axis == 0)  # behind the rest of the columns
            assert column.op is row.op is OptOp.UPCAST
            assert tiles(rows, columns, d.itemsize, target) == (-(-rows // row.arg), -(-columns // column.arg))


FACTORS: dict[str, tuple[Callable[[], Tensor], int]] = {
    "columns of few vectors": (lambda: (tensor(38, 34).tanh().T @ tensor(38, 55)).softmax(), 38 * 34),
    "few rows": (lambda: tensor(8, 64).exp() @ tensor(64, 200), 8 * 64),
    "few gathered rows": (lambda: tensor(100, 64).gelu()[Tensor(np.arange(8) * 9)] @ tensor(64, 300), 8 * 64),
    "many rows": (lambda: tensor(400, 128) @ tensor(128, 24).tanh(), 128 * 24),
    "few rows that lie along the sum, as the other factor does": (
        lambda: tensor(23, 119) @ (tensor(29, 119).silu() * tensor(29, 119)).T,
        29 * 119,
    ),
    "a scan": (lambda: tensor(112, 64).sigmoid().cumprod(-1), 112 * 64),
}


FOLDED: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "sum": (lambda x: x.tanh().sum(1), 39),
    "max": (lambda x: x.tanh().max(1), 39),
    "of a power": (lambda x: ((x * x + 1) ** 1.5).sum(1), 37),
}


@on_every_target
@pytest.mark.parametrize("name", FOLDED)
def test_what_a_fold_takes_one_at_a_time_is_stored_if_much_of_it_is(name: str, target: Target) -> None:
    """Behind the whole vectors of a row: of whole vectors nothing is stored."""
    program, length = FOLDED[name]
    cut = {n: any(d.cut for d in decisions(program(tensor(400, n)), target)) for n in (length, 32)}
    assert cut == {length: True, 32: False}


def decisions(t: Tensor, target: Target) -> list[Decision]:
    return rangeify([t.uop], "CPU", target=target).decisions


@on_every_target
@pytest.mark.parametrize("name", FACTORS)
def test_what_many_tiles_would_compute_is_stored(name: str, target: Target) -> None:
    program, size = FACTORS[name]
    assert any(d.cut and not d.why and d.size == size for d in decisions(program(), target))


@on_every_target
def test_of_joined_values_each_element_is_computed_once_if_they_are_stored(target: Target) -> None:
    """In a sum of rows each is computed for all elements, where parts end inside a vector."""
    a, b = tensor(150, 71), tensor(150, 70)
    found = {d.node.op: d for d in decisions((a * 2).exp().cat(b.tanh(), axis=1).sum(1), target)}
    assert found[Op.Concat].cut
    assert {op: (d.runs, d.cut) for op, d in found.items() if op in COSTLY} == {
        Op.Exp: (a.size, False),
        Op.Tanh: (b.size, False),
    }
    alone = {d.node.op: d for d in decisions(a.exp().cat(b.tanh(), axis=1) * 2, target)}
    assert not any(d.cut for d in alone.values())
    assert alone[Op.Concat].merged < found[Op.Concat].merged / 1.5


@on_every_target
def test_a_register_holds_half_as_many_doubles(target: Target) -> None:
    def merged(t: Tensor) -> float:
        return max(d.merged for d in decisions(t.tanh().argmax(1), target) if d.node.op is Op.Tanh)

    assert merged(tensor(104, 64).cast("f64").realize()) > 1.5 * merged(tensor(104, 64))


@on_every_target
def test_a_factor_is_computed_once_in_each_tile(target: Target) -> None:
    """The time if it is merged is in proportion to the tiles."""

    def merged(t: Tensor) -> float:
        (found,) = [d.merged for d in decisions(t, target) if d.node.op in COSTLY]
        return found

    left = {n: merged(tensor(8, 512).exp() @ tensor(512, n)) for n in (64, 55, 200)}
    right = {m: merged(tensor(m, 512) @ tensor(512, 64).exp()) for m in (8, 34, 200)}
    for n, ns in left.items():
        assert ns / left[64] == pytest.approx(tiles(8, n, 4, target)[1] / tiles(8, 64, 4, target)[1])
    for m, ns in right.items():
        assert ns / right[8] == pytest.approx(tiles(m, 64, 4, target)[0] / tiles(8, 64, 4, target)[0])


def test_what_is_left_of_a_loop_is_one_vector_also_if_it_is_as_long_as_the_loop_over_whole_vectors() -> None:
    for whole in (2, 3, 4, 5):
        length = 17 * whole
        (item,) = (tensor(5, 96)[:, :length] * 2).schedule()
        assert opts_of(item.ast) == ["UPCAST(1, 16)", f"UPCAST(2, {whole})"]
        rows = [f"UPCAST(0, {whole})"]
        assert opts_of(K.matmul(whole, 3, length)) == ["UPCAST(1, 16)", f"UPCAST(2, {whole})", *rows]


def test_a_sum_of_gathered_rows_is_folded_along_the_rows() -> None:
    """What is read to know the rows lies along the sum, and is wider: neither decides about vectors of what is summed."""
    x, rows = tensor(148, 101), Tensor(np.arange(148)[::-1].copy())
    assert opts_of(x.gelu()[rows].sum(0).schedule()[-1].ast) == ["UPCAST(0, 16)", "UPCAST(1, 5)"]
