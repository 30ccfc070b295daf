"""Where programs are cut into kernels: what is expensive to compute again is stored, what is cheap is not."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, config
from morok.ir.op import Op
from morok.passes.listing_stream import showing_on
from morok.passes.rangeify import rangeify
from morok.passes.rangeify.cost import CPU
from morok.passes.rangeify.state import State

Array = np.ndarray[Any, Any]


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tensor(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(data(*shape, seed=seed))


def kernels(t: Tensor) -> int:
    return len(t.schedule())


def image(channels: int, size: int) -> Tensor:
    return tensor(1, channels, size, size)


def filters(channels: int, size: int = 3) -> Tensor:
    return tensor(channels, channels, size, size, seed=1)


def upsampled(t: Tensor, times: int = 2) -> Tensor:
    return t.repeat_interleave(times, 2).repeat_interleave(times, 3)


# What each value costs again is a reduction, or a function, or a gate, for each of the hundred and more times that a product's
# loops compute it; none of them needs more than the kernels of its parts, of which a row's statistics are no kernel of their own.
STORED: dict[str, tuple[Callable[[], Tensor], int]] = {
    "layernorm, linear": (lambda: tensor(64, 256).layernorm() @ tensor(256, 1024), 2),
    "rms_norm, linear": (lambda: tensor(96, 384).rms_norm() @ tensor(384, 384), 2),
    "softmax, linear": (lambda: tensor(128, 512).softmax(-1) @ tensor(512, 256), 2),
    "gelu, linear": (lambda: tensor(128, 512).gelu() @ tensor(512, 512), 2),
    "relu, linear": (lambda: tensor(128, 512).relu() @ tensor(512, 512), 2),
    "pad, linear": (lambda: tensor(126, 510).pad(((1, 1), (1, 1))) @ tensor(512, 512), 2),
    "concat, linear": (lambda: tensor(128, 256).cat(tensor(128, 256), axis=1) @ tensor(512, 512), 2),
    "pad, right factor": (lambda: tensor(206, 206) @ tensor(204, 107).pad(((1, 1), (1, 1))), 2),
    "concat, right factor": (lambda: tensor(206, 206) @ tensor(206, 36).cat(tensor(206, 73), axis=1), 2),
    "pad, conv of 1": (
        lambda: image(24, 26).pad(((0, 0), (0, 0), (2, 2), (2, 2))).conv2d(filters(24, 1)),
        2,
    ),
    "conv, relu, conv": (lambda: image(16, 32).conv2d(filters(16), padding=1).relu().conv2d(filters(16), padding=1), 2),
    "conv, max_pool": (lambda: image(16, 56).conv2d(filters(16), padding=1).max_pool2d(3, 2, 1), 2),
    "conv, max_pool of 2": (lambda: image(16, 56).conv2d(filters(16), padding=1).max_pool2d(2), 2),
    "conv, mean": (lambda: image(32, 28).conv2d(filters(32), padding=1).relu().mean((2, 3)), 2),
    "max_pool, avg_pool": (lambda: image(32, 56).max_pool2d(3, 1, 1).avg_pool2d(3, 1, 1), 2),
    "two products": (
        lambda: tensor(128, 256) @ tensor(256, 512) + tensor(128, 256, seed=1) @ tensor(256, 512, seed=1),
        2,
    ),
    "gelu, variance": (lambda: tensor(512, 512).gelu().var(1), 3),
    "gelu, group_norm": (lambda: image(40, 34).gelu().group_norm(4), 2),
    "gelu, distances of pairs": (
        lambda: (lambda x: (x.unsqueeze(0) - x[:8].unsqueeze(1)).abs().sum(2))(tensor(98, 32).gelu()),
        2,
    ),
    "gelu, gather": (lambda: tensor(512, 1024).gelu()[Tensor(np.arange(1024) // 2)], 2),
    "pad, sum": (lambda: tensor(510, 1022).pad(((1, 1), (1, 1))).sum(1), 2),
    "a concat where no vector begins, sum": (lambda: tensor(300, 350).cat(tensor(300, 350), axis=1).sum(1), 2),
    "columns, layernorm": (lambda: (tensor(384, 128).T * 1.5).layernorm(), 2),
    "columns as they are, layernorm": (lambda: tensor(384, 128).T.layernorm(), 2),
    "columns as they are, softmax": (lambda: tensor(384, 128).T.softmax(-1), 2),
    "pad, layernorm": (lambda: tensor(126, 510).pad(((1, 1), (1, 1))).layernorm(), 2),
    "pad, softmax": (lambda: tensor(126, 510).pad(((1, 1), (1, 1))).softmax(-1), 2),
    "upsampled, linear of rows": (lambda: upsampled(image(16, 28)) @ tensor(56, 56), 2),
    "upsampled, group_norm": (lambda: upsampled(image(16, 28)).group_norm(4), 2),
    "upsampled, mean": (lambda: upsampled(image(16, 28)).mean((2, 3)), 2),
    "upsampled, softmax of channels": (lambda: upsampled(image(16, 28)).softmax(1), 5),
    "columns and rows, sum": (lambda: (tensor(512, 1024).T * tensor(1024, 512)).relu().sum(1), 2),
    "batchnorm, relu, avg_pool": (
        lambda: (image(32, 64) * tensor(32, 1, 1) + tensor(32, 1, 1)).relu().avg_pool2d(2),
        2,
    ),
    "group_norm, conv, residual": (
        lambda: (lambda x: x + x.conv2d(filters(24), padding=1))(image(24, 36).group_norm(4)),
        2,
    ),
}


def heads(seed: int, length: int = 16) -> Tensor:
    return tensor(1, 2, length, 16, seed=seed)


# Of little: no time decides, but merged into the product the row's sum needs a kernel of its own, too.
STORED_ON_THE_WAY: dict[str, tuple[Callable[[], Tensor], int]] = {
    "attention": (lambda: heads(0).scaled_dot_product_attention(heads(1), heads(2)), 3),
    "masked attention": (lambda: heads(0).scaled_dot_product_attention(heads(1), heads(2), is_causal=True), 3),
    "attention of one to many": (lambda: heads(0, 1).scaled_dot_product_attention(heads(1), heads(2)), 3),
    "layernorm, linear": (lambda: tensor(8, 16).layernorm() @ tensor(16, 8), 2),
    "softmax, linear": (lambda: tensor(8, 16).softmax(-1) @ tensor(16, 8), 2),
    "rms_norm, linear": (lambda: tensor(8, 16).rms_norm() @ tensor(16, 8), 2),
}
STORED |= STORED_ON_THE_WAY


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STORED)
def test_what_is_expensive_to_compute_again_is_stored(name: str) -> None:
    program, count = STORED[name]
    assert kernels(program()) == count


def half(*shape: int) -> Tensor:
    return tensor(*shape).cast("f16").realize()


MERGED: dict[str, Callable[[], Tensor]] = {
    "a chain and a sum": lambda: (tensor(64, 128) * 2 + 1).relu().sum(1),
    "a function and a sum": lambda: tensor(512, 512).gelu().sum(0),
    "half products": lambda: half(128, 512).cast("f32") @ half(512, 512).cast("f32"),
    "a broadcast": lambda: tensor(128, 1) + tensor(1, 128),
    "a constant": lambda: (Tensor.ones(128, 512) * 3) @ tensor(512, 512),
    "a mask": lambda: (Tensor.arange(512).unsqueeze(1) >= Tensor.arange(512)).where(tensor(512, 512), 0.0).sum(1),
    "an upsampled image": lambda: (
        image(16, 28)
        .reshape(1, 16, 28, 1, 28, 1)
        .expand(1, 16, 28, 2, 28, 2)
        .reshape(1, 16, 56, 56)
        .conv2d(filters(16))
    ),
    "what is padded for a convolution": lambda: image(16, 32).relu().conv2d(filters(16), padding=1),
    "a softmax": lambda: tensor(64, 512).softmax(-1),
    "a layernorm": lambda: tensor(64, 512).layernorm(),
    "x - mean": lambda: (lambda x: x - x.mean(-1, keepdim=True))(tensor(64, 512)),
    "an activation behind a product": lambda: (tensor(128, 512) @ tensor(512, 512) + tensor(512)).relu() * 2,
    "a gather and a sum": lambda: tensor(512, 1024)[Tensor(np.arange(512)[::-1].copy())].sum(1),
    "products and a sum of pairs": lambda: (tensor(512, 1024) * tensor(512, 1024)).reshape(512, 512, 2).sum(-1),
    "a concat where a vector begins, and a sum": lambda: tensor(512, 512).cat(tensor(512, 512), axis=1).sum(1),
    "a relu and a pool": lambda: image(32, 64).relu().max_pool2d(2),
    "columns and a sum": lambda: (tensor(512, 1024).T * 1.5).sum(1),
    "columns as they are, and a sum": lambda: tensor(512, 1024).T.sum(1),
    "columns as they are, and a product": lambda: tensor(512, 1024).T @ tensor(512, 256),
    "short columns as they are, and a softmax": lambda: tensor(4, 4096).T.softmax(-1),
    "upsampled, and a pool": lambda: upsampled(image(16, 28)).avg_pool2d(2),
    "upsampled, and a convolution": lambda: upsampled(image(16, 28)).conv2d(filters(16), padding=1),
    "upsampled, and a map": lambda: upsampled(image(16, 28)) * 2 + 1,
    "a long scan of rows": lambda: tensor(2, 40000).cumsum(1),
    "a long scan of columns": lambda: tensor(40000, 2).cummax(0),
    "a function of a little": lambda: tensor(8, 16).exp() @ tensor(16, 8),
}


@pytest.mark.parametrize("name", MERGED)
def test_what_is_cheap_to_compute_again_is_not_stored(name: str) -> None:
    assert kernels(MERGED[name]()) == 1


def test_a_cut_by_hand_stays() -> None:
    assert kernels((tensor(8, 8) + 1).contiguous().sum(1)) == 2


def test_the_trace_says_what_was_decided_and_why() -> None:
    out = io.StringIO()
    with config.settings(debug="ir"), showing_on(out):
        (tensor(67, 131).layernorm() @ tensor(131, 1031)).schedule()
    lines = out.getvalue().splitlines()
    begin = lines.index("where to cut, and the time that decided it:")
    stored = [
        re.fullmatch(r"%\d+ = Mul, 8777 elements computed 9049087 times: stored, for (.*) us against (.*) us", x)
        for x in lines
    ]
    (found,) = filter(None, stored[begin:])
    assert 0 < float(found[1]) < float(found[2])


def state_of(t: Tensor, nested: bool = True) -> State:
    """What rangeify decides about a tensor's program, on the CPU or, not nested, on a GPU."""
    return rangeify([t.uop], "CPU", target=CPU.target) if nested else rangeify([t.uop], "CUDA")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STORED)
def test_every_value_that_is_stored_has_its_decision(name: str) -> None:
    state = state_of(STORED[name][0]())
    by_hand = {n for n in state.stored if n in state.roots or n.op is Op.Contiguous}
    assert set(state.stored) - by_hand == {d.node for d in state.decisions if d.cut}
