"""Optimizations that a program gives itself: for all kernels by OptimizerConfig or a setting, for one by `contiguous`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Explicit, Heuristics, Opt, OptimizerConfig, OptOp, Tensor, config
from morok.errors import ConfigError, OptError
from morok.ir.op import Op
from morok.optimize.opts import read
from morok.optimize.strategy import Strategy

Array = np.ndarray[Any, Any]

UPCAST = Opt(OptOp.UPCAST, 0, 4)
UNROLL = Opt(OptOp.UNROLL, 0, 2)


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


A, B = data(12, 16), data(16, 20, seed=1)
GIVEN: dict[str, tuple[Callable[[], Tensor], Array, tuple[Opt, ...]]] = {
    "lanes": (lambda: Tensor(A) + 1, A + 1, (UPCAST,)),
    "lanes of a sum": (lambda: Tensor(A).sum(1), A.sum(1), (UNROLL, Opt(OptOp.UPCAST, 0, 3))),
    "a tile": (lambda: Tensor(A) @ Tensor(B), A @ B, (Opt(OptOp.UPCAST, 1, 10), Opt(OptOp.UPCAST, 0, 3))),
    "another order": (lambda: Tensor(A).T * 2, A.T * 2, (Opt(OptOp.SWAP, 0, 1), Opt(OptOp.UPCAST, 1, 4))),
    "none": (lambda: Tensor(A) @ Tensor(B), A @ B, ()),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", GIVEN)
def test_kernels_have_what_is_given(name: str) -> None:
    make, expected, opts = GIVEN[name]
    listed = tuple(map(str, opts))
    strategies: tuple[Strategy | list[Opt], ...] = (Explicit(opts), list(opts))
    for strategy in strategies:
        chosen = OptimizerConfig(strategy)
        assert chosen == OptimizerConfig.builder().strategy(strategy).build()
        with config.settings(**chosen.settings()):
            kernel = make().kernels()[-1]
            assert kernel.opts == listed
        np.testing.assert_array_equal(make().realize(config=chosen).numpy(), expected)
        np.testing.assert_array_equal(make().prepare(config=chosen).execute().numpy().reshape(expected.shape), expected)


def test_a_program_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOROK_OPTS", "UPCAST(0, 2)  UPCAST(1, 4)")
    assert (Tensor(A) @ Tensor(B)).kernels()[0].opts == ("UPCAST(0, 2)", "UPCAST(1, 4)")
    with config.settings(**OptimizerConfig(Heuristics()).settings()):
        assert (Tensor(A) @ Tensor(B)).kernels()[0].opts != ("UPCAST(0, 2)", "UPCAST(1, 4)")
    with config.settings(beam=2):  # nothing is left to search for
        assert (Tensor(A) @ Tensor(B)).kernels()[0].opts == ("UPCAST(0, 2)", "UPCAST(1, 4)")


def test_text_of_optimizations() -> None:
    opts = (UPCAST, Opt(OptOp.NOLOCALS), Opt(OptOp.LANES, None, 4), Opt(OptOp.GROUPTOP, 2, 0))
    assert read(" ".join(map(str, opts))) == opts
    with pytest.raises(ConfigError, match="no optimization CAST"), config.settings(opts="CAST(0, 4)"):
        (Tensor(A) - 1).kernels()
    for wrong in ("UPCAST", "UPCAST(0, 4", "UPCAST(x)", "upcast(0, 4)", "UPCAST(0, 4) and"):
        with pytest.raises(ConfigError, match="cannot be read"), config.settings(opts=wrong):
            pass


def test_what_a_kernel_cannot_have_is_named() -> None:
    with pytest.raises(OptError, match=r"kernel map_12x16.*no axis 7|kernel map_192.*no axis 7"):
        (Tensor(A) * 3).realize(config=OptimizerConfig([Opt(OptOp.UPCAST, 7, 4)]))
    with pytest.raises(OptError, match="no blocks of threads"):
        (Tensor(A) * 3).contiguous(Opt(OptOp.LOCAL, 0, 4)).realize()
    for wrong in ([1], ["UPCAST(0, 4)"]):
        with pytest.raises(ConfigError, match="is not a list of optimizations"):
            OptimizerConfig(wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="is not a list of optimizations"):
            (Tensor(A) * 3).contiguous(*wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="is not a list of optimizations"):
            Tensor(A).contiguous(*wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "axis", "arg"),
    [("UPCAST", 0, 4), (None, 0, 4), (OptOp, 0, 4), (OptOp.UPCAST, "0", 4), (OptOp.UPCAST, 0, True), (OptOp.UPCAST, 0, None),
     (OptOp.UPCAST, 1.0, 4), (OptOp.UPCAST, 0, 2.5), (OptOp.UPCAST, [], 4)]
)  # fmt: skip
def test_an_opt_has_an_op_and_whole_numbers(op: Any, axis: Any, arg: Any) -> None:
    with pytest.raises(ConfigError, match="of an Opt"):
        Opt(op, axis, arg)


def test_whole_numbers_of_numpy_in_an_opt() -> None:
    assert Opt(OptOp.UPCAST, np.int64(1), np.int8(4)) == Opt(OptOp.UPCAST, 1, 4)  # type: ignore[arg-type]
    assert str(Opt(OptOp.UPCAST, np.int64(1), np.int8(4))) == "UPCAST(1, 4)"  # type: ignore[arg-type]


@pytest.mark.long
def test_contiguous_gives_one_kernel_its_optimizations() -> None:
    opts = (Opt(OptOp.UPCAST, 1, 5), Opt(OptOp.UPCAST, 0, 2))

    def program() -> Tensor:
        product = (Tensor(A) @ Tensor(B)).contiguous(*opts)
        return (product - product.max(1, keepdim=True)).exp()

    kernels = program().kernels()
    plain = (Tensor(A) @ Tensor(B)).kernels()[0]
    assert kernels[0].opts == tuple(map(str, opts)) != plain.opts
    product = A @ B
    np.testing.assert_allclose(program().numpy(), np.exp(product - product.max(1, keepdims=True)), rtol=1e-5)
    with config.settings(**OptimizerConfig([]).settings()):  # nothing for the others
        assert [k.opts for k in program().kernels()] == [kernels[0].opts, *[()] * (len(kernels) - 1)]
    (gpu,) = (Tensor(A) @ Tensor(B)).contiguous(Opt(OptOp.LOCAL, 1, 4)).kernels(device="CUDA")
    assert gpu.opts == ("LOCAL(1, 4)",)
    assert "threadIdx.x" in gpu.code


def test_the_last_word_counts() -> None:
    first, last = Opt(OptOp.UPCAST, 0, 2), Opt(OptOp.UPCAST, 0, 4)
    for t in ((Tensor(A) + 1).contiguous(first).contiguous(last), (Tensor(A) + 1).contiguous().contiguous(last)):
        assert [k.opts for k in t.kernels()] == [(str(last),)]
    assert [k.opts for k in (Tensor(A) + 1).contiguous(last).contiguous().kernels()] == [(str(last),)]
    stored = Tensor(A)
    assert stored.contiguous(last).uop is stored.uop


@pytest.mark.long
def test_given_kernels_stay_apart() -> None:
    """Elementwise results that one kernel would store have one each; and so have results with an axis that nothing depends on."""
    x = Tensor(A)
    one, two = (x + 1).contiguous(UPCAST), (x * 2).contiguous(Opt(OptOp.UPCAST, 0, 2))
    Tensor.realize_batch([one, two])
    np.testing.assert_array_equal(one.numpy(), A + 1)
    np.testing.assert_array_equal(two.numpy(), A * 2)
    assert len(Tensor.prepare_batch([(x + 3).contiguous(UPCAST), x * 5]).kernels) == 2
    spread = (Tensor(A[:, :1]) * 2).expand(12, 16).contiguous(Opt(OptOp.UPCAST, 0, 2))
    np.testing.assert_array_equal(spread.numpy(), np.broadcast_to(A[:, :1] * 2, (12, 16)))


def test_the_mark_has_a_text() -> None:
    x = morok.UOp.var("x", morok.dtypes.f32)
    marked = morok.UOp.new(Op.Contiguous, (x,), (UPCAST, UNROLL))
    assert morok.parse(marked.text()) is marked
    assert morok.UOp.new(Op.Contiguous, (x,)).text() == "Contiguous(x: f32)"
