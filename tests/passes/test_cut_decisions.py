"""Decisions where to cut: deterministic, linear in edges, at the upper bound of a symbolic size, behind every view, for a GPU."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from morok import Tensor, Variable
from morok.passes.rangeify.cost import Weights
from morok.passes.rangeify.cuts import Cuts
from tests.passes.test_cuts import STORED, data, filters, image, kernels, state_of, tensor, upsampled


def decided(t: Tensor) -> list[tuple[str, int, int, bool]]:
    return [(d.node.op.name, d.size, d.runs, d.cut) for d in state_of(t).decisions]


def blocks(count: int) -> Tensor:
    x = tensor(64, 96)
    for k in range(count):
        x = x + x.layernorm().gelu() @ tensor(96, 96, seed=k)
    return x


@pytest.mark.long
def test_decisions_take_time_linear_in_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Weights] = []
    asked: list[object] = []
    init, worth = Weights.__init__, Cuts.worth_storing

    def counted(self: Weights, *args: object) -> None:
        made.append(self)
        init(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Weights, "__init__", counted)
    monkeypatch.setattr(
        Cuts, "worth_storing", lambda self, node, demands: (asked.append(node), worth(self, node, demands))[1]
    )
    for count in (4, 40):
        made.clear()
        asked.clear()
        state = state_of(blocks(count))
        edges = sum(len(n.src) for n in state.order)
        assert len(made) == 1
        assert made[0].visits <= 2 * edges
        assert len(asked) <= 2 * len(state.order)


@pytest.mark.long
def test_decisions_are_the_same_in_every_process() -> None:
    program = (
        "from tests.passes.test_cuts import STORED; from tests.passes.test_cut_decisions import decided, blocks\n"
        "print([decided(p()) for p, _ in STORED.values()], decided(blocks(3)))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def numpys_layernorm(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    c = x - x.mean(-1, keepdims=True)
    return np.asarray(c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5))


@pytest.mark.long
def test_symbolic_sizes_count_at_their_upper_bound() -> None:
    n = Variable("n", 1, 128)
    x, w = data(128, 512), data(512, 256, seed=1)
    for size in (1, 2, 77, 127, 128):
        t = Tensor(x).shrink([(0, n.bind(size)), None]).layernorm() @ Tensor(w)
        assert kernels(t) == kernels(Tensor(x).layernorm() @ Tensor(w)) == 2
        np.testing.assert_allclose(t.numpy(), numpys_layernorm(x[:size]) @ w, rtol=1e-4, atol=1e-4)
    few = Variable("few", 1, 2)
    assert kernels(Tensor(x[:, :16]).shrink([(0, few.bind(1)), None]).exp() @ Tensor(w[:16, :8])) == 1
    assert kernels(Tensor(x[:, :16]).shrink([(0, n.bind(1)), None]).exp() @ Tensor(w[:16])) == 2


@pytest.mark.long
def test_what_is_added_is_in_the_plans_memory_and_given_back() -> None:
    """A chain of blocks, each with values stored for speed: no more than four of them live at a time, however long it is."""
    held = []
    for count in (4, 12):
        plan = blocks(count).prepare()
        known = 64 * 96 * 4 + count * 96 * 96 * 4
        spans = sorted({(b.address, b.address + b.nbytes) for b in plan.buffers})
        total = end = 0
        for first, last in spans:
            total += max(0, last - max(first, end))
            end = max(end, last)
        held.append(total - known)
    assert held[0] == held[1]
    assert 0 < held[0] <= 4 * 64 * 96 * 4


W = tensor(256, 256, seed=3)
BEHIND: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "a pad": (lambda h: h.pad(((3, 5), (0, 0))) @ W, lambda h: np.pad(h, ((3, 5), (0, 0))) @ W.numpy()),
    "a window": (lambda h: h[3:97, :] @ W, lambda h: h[3:97] @ W.numpy()),
    "a gather": (lambda h: h[Tensor(np.arange(0, 128, 2))] @ W, lambda h: h[::2] @ W.numpy()),
    "a transposition": (lambda h: W @ h.T, lambda h: W.numpy() @ h.T),
    "a concat": (lambda h: h.cat(h * 2, axis=0) @ W, lambda h: np.concatenate((h, h * 2)) @ W.numpy()),
    "a cast": (lambda h: h.cast("f64") @ W.cast("f64"), lambda h: h @ W.numpy()),
    "several consumers": (lambda h: h @ W + (h * 2) @ W.T, lambda h: h @ W.numpy() + 2 * h @ W.numpy().T),
    "a scan": (lambda h: h.cumsum(1) @ W, lambda h: h.cumsum(1) @ W.numpy()),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", BEHIND)
def test_a_norm_is_stored_behind(name: str) -> None:
    program, numpys = BEHIND[name]
    x = tensor(128, 256)
    t = program(x.layernorm())
    assert any(d.cut and d.size >= 64 * 256 for d in state_of(t).decisions)  # of the norm itself, not its rows' sums
    np.testing.assert_allclose(t.numpy(), numpys(numpys_layernorm(x.numpy())), rtol=1e-4, atol=1e-3)


def test_what_is_joined_is_one_stored_value_for_all_its_consumers() -> None:
    a, b = tensor(128, 100), tensor(128, 156, seed=1)
    joined = a.gelu().cat(b.tanh(), axis=1)
    t = joined @ W + joined @ W.T
    state = state_of(t)
    assert sum(d.cut and d.node.op.name == "Concat" for d in state.decisions) == 1
    together = Tensor(np.concatenate((a.gelu().numpy(), b.tanh().numpy()), 1))
    np.testing.assert_allclose(t.numpy(), (together @ W + together @ W.T).numpy(), rtol=1e-5, atol=1e-4)


def numpys_group_norm(x: np.ndarray, groups: int) -> np.ndarray:
    rows = x.reshape(x.shape[0] * groups, -1)
    return ((rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)).reshape(x.shape)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (2, 8, 5, 3), (1, 16, 29, 31), (3, 4, 40, 1), (1, 32, 40, 40)])
def test_norms_of_what_is_repeated(shape: tuple[int, ...], times: int) -> None:
    x = data(*shape)
    wide = x.repeat(times, 2).repeat(times, 3)
    t = upsampled(Tensor(x), times)
    np.testing.assert_allclose(t.group_norm(4).numpy(), numpys_group_norm(wide, 4), rtol=1e-3, atol=1e-4)
    exps = np.exp(wide - wide.max(1, keepdims=True))
    np.testing.assert_allclose(t.softmax(1).numpy(), exps / exps.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        (t.mean((2, 3)) + t[:, :, 0, -1]).numpy(), wide.mean((2, 3)) + wide[:, :, 0, -1], atol=1e-4
    )


@pytest.mark.long
def test_of_what_is_repeated_and_cropped_no_more_is_stored_than_is_wanted() -> None:
    x = data(1, 12, 31, 31)
    wide = x.repeat(2, 2).repeat(2, 3)[:, :, :61, :61]
    cropped = upsampled(Tensor(x))[:, :, :61, :61]
    assert max(size for _, size, _, cut in decided(cropped.group_norm(4)) if cut) == 12 * 61 * 61
    np.testing.assert_allclose(cropped.group_norm(4).numpy(), numpys_group_norm(wide, 4), rtol=1e-3, atol=1e-4)
    w = data(61, 40, seed=1)
    np.testing.assert_allclose((cropped @ Tensor(w)).numpy(), wide @ w, rtol=1e-3, atol=1e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(0, 3), (3, 1), (1, 3), (33, 7), (129, 257), (384, 128)])
def test_norms_of_columns(shape: tuple[int, int]) -> None:
    x = data(*shape)
    np.testing.assert_allclose(
        Tensor(x).T.layernorm().numpy(), numpys_layernorm(x.T) if x.size else x.T, rtol=1e-4, atol=1e-4
    )
    exps = np.exp(x.T - x.T.max(-1, keepdims=True)) if x.size else x.T
    np.testing.assert_allclose(
        Tensor(x).T.softmax(-1).numpy(), exps / exps.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6
    )
    padded = np.pad(x.T, ((1, 0), (2, 1)))
    np.testing.assert_allclose(
        Tensor(x).T.pad(((1, 0), (2, 1))).layernorm().numpy(), numpys_layernorm(padded), rtol=1e-4, atol=1e-4
    )


def test_norms_of_columns_of_a_size_that_varies() -> None:
    x, n = data(384, 128), Variable("n", 1, 128)
    for size in (1, 50, 128):
        found = Tensor(x)[:, : n.bind(size)].T.layernorm().numpy()
        np.testing.assert_allclose(found[:size], numpys_layernorm(x.T[:size]), rtol=1e-4, atol=1e-4)


CUDA: dict[str, tuple[Callable[[Tensor], Tensor], Tensor, Callable[[Tensor], Tensor]]] = {
    "gelu, linear": (Tensor.gelu, tensor(512, 512), lambda x: x @ tensor(512, 512)),
    "tanh, linear": (Tensor.tanh, tensor(512, 512), lambda x: x @ tensor(512, 512)),
    "exp, conv": (Tensor.exp, image(64, 64), lambda x: x.conv2d(filters(64), padding=1)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CUDA)
def test_no_thread_of_a_gpu_computes_a_function_for_each_of_its_products(name: str) -> None:
    """A function is known by the coefficients of its polynomial."""
    function, x, consumer = CUDA[name]
    codes = [k.code for k in consumer(function(x)).kernels("CUDA")]
    (alone,) = [k.code for k in function(x).kernels("CUDA")]
    (bare,) = [k.code for k in consumer(x).kernels("CUDA")]
    first, last, own, others = (
        set(re.findall(r"[0-9.]*\.[0-9]{3,}\w*", code)) for code in (codes[0], codes[-1], alone, bare)
    )
    assert len(codes) == 2
    assert own - others
    assert own - others <= first
    assert last.isdisjoint(own - others)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "program",
    [
        lambda: tensor(512, 512).relu() @ tensor(512, 512),
        lambda: (tensor(512, 512) @ tensor(512, 512)).relu() * 2 + 1,
        lambda: image(16, 64).relu().conv2d(filters(16), padding=1),
        lambda: (tensor(512, 512) * 2 + 1).relu().sum(1),
    ],
)
def test_cheap_chains_are_no_launches_of_their_own(program: Callable[[], Tensor]) -> None:
    assert len(program().kernels("CUDA")) == 1


@pytest.mark.long
def test_each_launch_of_a_gpu_saves_more_than_it_takes() -> None:
    for program, _ in STORED.values():
        state = state_of(program(), nested=False)
        assert all(d.why or d.merged > d.stored for d in state.decisions if d.cut)
        assert len(state.stored) == 1 + sum(d.cut for d in state.decisions)


def test_the_passes_are_two_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    ranges = sys.modules["morok.passes.rangeify.assign_ranges"]
    assign = ranges._assign
    monkeypatch.setattr(ranges, "_assign", lambda *args: (runs.append(args), assign(*args))[1])
    state_of(blocks(6))
    assert len(runs) <= 2


def test_many_reductions_one_behind_the_other_are_several_kernels() -> None:
    """Optimizing a kernel takes time quadratic in its loops. Reductions that wait for none of each other are one kernel still."""
    wanted, softened = data(4, 8).astype(np.float64), tensor(4, 8)
    for _ in range(40):
        powers = np.exp(wanted - wanted.max(1, keepdims=True))
        wanted, softened = powers / powers.sum(1, keepdims=True), softened.softmax(1)
    whys = [d.why for d in state_of(softened).decisions if d.cut]
    assert whys == ["many reductions one behind the other"] * 2
    assert kernels(softened) == 3
    np.testing.assert_allclose(softened.numpy(), wanted, rtol=1e-5)

    sums = [tensor(4, 8, seed=k).sum(1) for k in range(40)]
    assert kernels(functools.reduce(Tensor.add, sums)) == 1
