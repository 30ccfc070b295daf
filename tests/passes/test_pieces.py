"""Kernels that run a piece at a time: which do, and that they compute what they did."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import pytest

from morok import Tensor, config
from morok.passes import depth_first_tiling
from morok.tensor import plans, stored

rng = np.random.default_rng(0)
A, B, C = (rng.standard_normal((3, 4, 16, 16), dtype=np.float32) for _ in range(3))
HEAD = 16 * 16 * 4  # bytes


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Caches of a thousandth of the size, for one thread."""
    monkeypatch.setattr(depth_first_tiling, "WHOLE_BYTES", 8 * HEAD)
    monkeypatch.setattr(depth_first_tiling, "PIECE_BYTES", HEAD)
    monkeypatch.setattr(depth_first_tiling, "LEAST_BYTES", HEAD)
    with config.settings(threads=1):
        yield


def attention(a: np.ndarray = A, b: np.ndarray = B, c: np.ndarray = C) -> Tensor:
    return Tensor(a).scaled_dot_product_attention(Tensor(b), Tensor(c))


def whole(make: Callable[[], Tensor]) -> np.ndarray:
    """What the kernels of a schedule compute, each run once."""
    t = make()
    items = t.schedule()
    for item in items:
        (kernel,) = plans.compiled([item.ast], item.buffers[0].device)
        kernel.launch(item.buffers, item.fixedvars)
    return items[-1].buffers[0].numpy().reshape(t.shape)


def test_attention_runs_a_head_at_a_time(small: None) -> None:
    plan = attention().prepare()
    assert len(plan.kernels) == 3 * 12
    assert [k.fixedvars for k in plan.kernels[:6:3]] == [{"_piece0": 0, "_piece1": 0}, {"_piece0": 0, "_piece1": 1}]
    assert sorted(b.size for b in plan.buffers)[:2] == [256, 256]
    for _ in range(2):
        np.testing.assert_array_equal(plan.execute().numpy().reshape(A.shape), whole(attention))
    np.testing.assert_array_equal(attention().numpy(), whole(attention))


def test_new_inputs_reach_every_piece(small: None) -> None:
    a = A.copy()
    t = Tensor(a)
    plan = t.scaled_dot_product_attention(Tensor(B), Tensor(C)).prepare()
    plan.execute()
    source = next(
        k
        for k, b in enumerate(plan.buffers)
        if b.numpy().size == a.size and np.array_equal(b.numpy().ravel(), a.ravel())
    )
    other = Tensor(2 * a).realize()
    memory = stored.memory_of(other.uop, other.device)
    assert memory is not None
    got = plan.execute({source: memory}).numpy().reshape(A.shape)
    np.testing.assert_array_equal(got, whole(lambda: attention(2 * a)))


def test_kernels_are_shown_as_they_run(small: None) -> None:
    assert ["%var0" in k.code for k in attention().kernels()] == [True, False, True]  # the softmax sees one piece alone


def test_what_is_kept_is_not_cut(small: None) -> None:
    scores = Tensor(A) @ Tensor(B)
    out = scores.softmax(-1) @ Tensor(C)
    out.realize()
    e = np.exp((A @ B) - (A @ B).max(-1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), e / e.sum(-1, keepdims=True) @ C, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(scores.numpy(), A @ B, rtol=2e-4, atol=1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda: Tensor(A) @ Tensor(B), 1),
        (lambda: Tensor(A) @ Tensor(B) @ Tensor(C), 2 * 12),
        # heads in another order
        (lambda: (Tensor(A) @ Tensor(B)).permute(1, 0, 2, 3) @ Tensor(C.reshape(4, 3, 16, 16)), 2),
        (lambda: (Tensor(A) @ Tensor(B)).flip(0) @ Tensor(C), 2),
        (lambda: (Tensor(A) @ Tensor(B)).contiguous().sum((0, 1)), 2),  # all heads for one
        (lambda: Tensor(A[0]) @ Tensor(B[0]) @ Tensor(C[0]), 2),  # in a cache
    ],
)
def test_only_kernels_that_pass_on_whole_pieces_are_cut(small: None, make: Callable[[], Tensor], steps: int) -> None:
    assert len(make().prepare().kernels) == steps
    np.testing.assert_array_equal(make().prepare().execute().numpy().reshape(make().shape), whole(make))


def test_threads_have_a_cache_each(small: None) -> None:
    with config.settings(threads=2):
        assert len(attention().prepare().kernels) == 3


def test_what_the_caches_hold_is_not_cut() -> None:
    with config.settings(threads=1):
        assert len(attention().prepare().kernels) == 3


def test_probabilities_lie_where_the_scores_did(small: None) -> None:
    plan = attention().prepare()
    assert [k.buffers[:2] for k in plan.kernels[1::3]] == [(plan.kernels[0].buffers[0],) * 2] * 12
    np.testing.assert_array_equal(plan.execute().numpy().reshape(A.shape), whole(attention))


def test_each_kernel_of_a_long_schedule_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    store = depth_first_tiling._store
    monkeypatch.setattr(depth_first_tiling, "_store", lambda ast: (looked.append(ast), store(ast))[1])
    t = Tensor(A)
    for k in range(12):
        t = (t.flip(k % 4) * 2 + k).contiguous()
    plan = t.prepare()
    assert len(looked) == len(plan.kernels) == 12


def doubled(times: int) -> Tensor:
    x = Tensor(A)
    for k in range(times):
        x = (x * 2.0 if k % 2 else x * 0.5).contiguous()
    return x


def test_a_long_program_is_several_chains(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth_first_tiling, "LONGEST", 8)
    plan = doubled(20).prepare()
    assert len(plan.kernels) == 20 * 12
    at = [k.fixedvars for k in plan.kernels]
    assert at[0] == at[7] != at[8]  # eight kernels, a head at a time
    np.testing.assert_array_equal(doubled(20).numpy(), A)


@pytest.mark.parametrize("times", [40, 80])
def test_what_is_no_chain_is_looked_at_a_few_times(small: None, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """However long the program is: each kernel turns the order of the heads, so none passes on whole pieces."""
    looked: list[depth_first_tiling.Step] = []
    cut = depth_first_tiling._cut

    def counted(step: depth_first_tiling.Step, between: Collection[int], lengths: Sequence[int]) -> object:
        looked.append(step)
        return cut(step, between, lengths)

    monkeypatch.setattr(depth_first_tiling, "_cut", counted)
    x = Tensor(A)
    for _ in range(times):
        x = (x.flip(0) * 2.0).contiguous()
    assert len(x.prepare().kernels) == times
    assert times <= len(looked) + 1 <= 4 * times
