"""Kernel time, one thread: against NumPy, and torch and JAX where they are installed.

Inputs and weights are loaded before, NumPy and torch write to outputs allocated before where they can. JAX has no such parameter:
its allocations are kept from going back to the system, so that no page is fetched twice. The time is that of this process's
threads together, so that what else the machine does is not counted, and JAX's own thread is.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.harness import BEST, Contest

N = 16 * 2**20
FEW = 9  # rounds of a case of tens of milliseconds
PRODUCTS = (
    ("matmul", 512, 512, 512),
    ("matmul", 1024, 1024, 1024),
    ("matmul", 2048, 2048, 2048),
    ("matmul", 64, 1024, 1024),
    ("x @ W.T", 1024, 1024, 1024),
)
Run = Callable[[], object]
contest = functools.partial(Contest, clock=time.process_time)


def _keep_memory() -> None:
    """Ask the C library (glibc) to hand no freed memory back: M_TRIM_THRESHOLD, and M_MMAP_MAX of 0."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-1, 2**31 - 1)
        mallopt(-4, 0)


# of sides that are whole vectors, and others
CONVOLUTIONS: list[tuple[str, tuple[int, ...], tuple[int, ...], int, int]] = [
    ("(8, 64, 56, 56) by 64 3x3", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    ("(8, 64, 56, 56) by 64 1x1", (8, 64, 56, 56), (64, 64, 1, 1), 1, 1),
    ("(8, 64, 56, 56) depthwise 3x3", (8, 64, 56, 56), (64, 1, 3, 3), 1, 64),
    ("(8, 64, 56, 56) by 64 3x3, stride 2", (8, 64, 56, 56), (64, 64, 3, 3), 2, 1),
    ("(1, 3, 224, 224) by 64 7x7, stride 2", (1, 3, 224, 224), (64, 3, 7, 7), 2, 1),
    ("(1, 64, 28, 28) by 64 3x3", (1, 64, 28, 28), (64, 64, 3, 3), 1, 1),
    ("(1, 128, 6, 6) by 256 3x3, stride 2", (1, 128, 6, 6), (256, 128, 3, 3), 2, 1),
]


def _torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def _jax() -> Any:
    """JAX on one thread, that of the caller."""
    if importlib.util.find_spec("jax") is None:
        return None
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    settings: Any = jax.config
    settings.update("jax_cpu_enable_async_dispatch", False)
    return jax


class Peers:
    """Contestants for one figure after the other, from the same arrays."""

    def __init__(self) -> None:
        _keep_memory()
        self.torch, self.jax = _torch(), _jax()
        self._rng = np.random.default_rng(0)

    def floats(self, *shape: int) -> np.ndarray:
        return self._rng.standard_normal(shape, dtype=np.float32)

    def of(
        self, arrays: tuple[np.ndarray, ...], numpy: Run | None = None, torch: Any = None, jax: Any = None
    ) -> dict[str, Run]:
        """`numpy` as it is; `torch(t, *tensors)` and `jax(j, *arrays)`, the latter compiled, where they are installed."""
        found: dict[str, Run] = {} if numpy is None else {"numpy": numpy}
        if self.torch is not None and torch is not None:
            found["torch"] = functools.partial(torch, self.torch, *map(self.torch.from_numpy, arrays))
        if self.jax is not None and jax is not None:
            inputs = [self.jax.numpy.asarray(a) for a in arrays]
            function = self.jax.jit(functools.partial(jax, self.jax))
            found["jax"] = lambda: self.jax.block_until_ready(function(*inputs))
        return found

    def like(self, array: np.ndarray) -> Any:
        """An output for torch."""
        return None if self.torch is None else self.torch.from_numpy(np.empty_like(array))


def _plan(t: Any) -> Run:
    run: Run = t.prepare().execute
    return run


def _often(peers: dict[str, Run], ours: Run, times: int) -> tuple[dict[str, Run], Run]:
    """Each contestant so many times a round: for what takes microseconds."""

    def repeat(run: Run) -> Run:
        def all_of_them() -> None:
            for _ in range(times):
                run()

        return all_of_them

    return {name: repeat(run) for name, run in peers.items()}, repeat(ours)


def contests() -> Iterator[Contest]:
    peers = Peers()
    for part in (products, elementwise, rows, sums, copies, networks):
        yield from part(peers)


def products(p: Peers) -> Iterator[Contest]:
    from morok import Tensor

    for name, m, k, n in PRODUCTS:
        turned = name == "x @ W.T"
        a, b, out = p.floats(m, k), p.floats(n, k) if turned else p.floats(k, n), np.empty((m, n), np.float32)
        to = p.like(out)
        others = p.of(
            (a, b),
            functools.partial(np.matmul, a, b.T if turned else b, out=out),
            lambda t, x, y, to=to, turned=turned: t.matmul(x, y.T if turned else y, out=to),
            lambda _, x, y, turned=turned: x @ (y.T if turned else y),
        )
        right = Tensor(b).T if turned else Tensor(b)
        yield contest(
            f"{name} ({m}, {k}, {n})", _plan(Tensor(a) @ right), others, goal=1 / 0.95, against="numpy", rounds=FEW
        )


def elementwise(p: Peers) -> Iterator[Contest]:
    from morok import Tensor

    a, b, c = p.floats(N), p.floats(N), p.floats(N)
    out, last = np.empty_like(a), np.empty_like(a)

    def chain() -> None:
        np.multiply(a, b, out=out)
        np.add(out, c, out=out)
        np.maximum(out, 0, out=out)
        np.multiply(out, 2, out=out)
        np.subtract(out, a, out=last)

    x, y, z = Tensor(a), Tensor(b), Tensor(c)
    others = p.of((a, b, c), chain, None, lambda j, x, y, z: j.numpy.maximum(x * y + z, 0) * 2 - x)
    ours = _plan((x * y + z).relu() * 2 - x)
    yield contest("elementwise chain on 16M", ours, others, goal=0.35, against="numpy", rounds=FEW)

    # Three arrays are read and one is written: a copy of two arrays to two others moves as many bytes.
    twice, copied = p.floats(2 * N), np.empty(2 * N, np.float32)
    to = p.like(twice)
    memcpy = ctypes.CDLL(None).memcpy
    memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    others = p.of((twice,), lambda: np.copyto(copied, twice), lambda t, x: to.copy_(x))
    others["memcpy"] = functools.partial(memcpy, copied.ctypes.data, twice.ctypes.data, twice.nbytes)
    others["our copy"] = _plan(Tensor(twice) + 0.0)
    yield contest("elementwise chain on 16M, to a copy of its bytes", ours, others, goal=1.05, against=BEST, rounds=FEW)

    x = p.floats(4 * 2**20)
    to = p.like(x)
    for how in ("none", "tanh"):
        others = p.of(
            (x,),
            None,
            lambda t, x, how=how: t._C._nn.gelu(x, approximate=how, out=to),
            lambda j, x, how=how: j.nn.gelu(x, approximate=how == "tanh"),
        )
        goal = 0.75 if how == "none" else None
        yield contest(
            f"gelu of 4M, approximate={how}", _plan(Tensor(x).gelu(how)), others, goal=goal, against="jax", rounds=FEW
        )


def rows(p: Peers) -> Iterator[Contest]:
    from morok import Tensor

    s = p.floats(4096, 1024)
    wide, tall, to = np.empty_like(s), np.empty((4096, 1), np.float32), p.like(s)

    def softmax() -> None:
        np.max(s, axis=1, keepdims=True, out=tall)
        np.subtract(s, tall, out=wide)
        np.exp(wide, out=wide)
        np.sum(wide, axis=1, keepdims=True, out=tall)
        np.divide(wide, tall, out=wide)

    others = p.of((s,), softmax, lambda t, x: t.softmax(x, -1, out=to), lambda j, x: j.nn.softmax(x, -1))
    yield contest("softmax (4096, 1024)", _plan(Tensor(s).softmax(-1)), others, goal=0.6, against="torch", rounds=FEW)

    def layernorm(j: Any, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * j.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    others = p.of((s,), None, lambda t, x: t.nn.functional.layer_norm(x, (1024,)), layernorm)
    yield contest("layernorm (4096, 1024)", _plan(Tensor(s).layernorm()), others, goal=0.7, against="jax", rounds=FEW)

    c = p.floats(4096, 4096)
    out, to = np.empty_like(c), p.like(c)
    others = p.of(
        (c,),
        lambda: np.cumsum(c, axis=1, out=out),
        lambda t, x: t.cumsum(x, 1, out=to),
        lambda j, x: j.numpy.cumsum(x, axis=1),
    )
    yield contest("cumsum (4096, 4096) axis 1", _plan(Tensor(c).cumsum(1)), others, goal=0.5, against="torch", rounds=3)


def sums(p: Peers) -> Iterator[Contest]:
    from morok import Tensor

    a = p.floats(4096, 4096)
    for axis in (None, 0, 1):
        out = np.empty(() if axis is None else 4096, np.float32)
        to = p.like(out)
        others = p.of(
            (a,),
            functools.partial(np.sum, a, axis=axis, out=out),
            lambda t, x, axis=axis, to=to: t.sum(x) if axis is None else t.sum(x, axis, out=to),
            lambda _, x, axis=axis: x.sum(axis),
        )
        name = "all" if axis is None else f"axis {axis}"
        yield contest(
            f"sum of (4096, 4096), {name}", _plan(Tensor(a).sum(axis)), others, goal=1.0, against=BEST, rounds=FEW
        )


def copies(p: Peers) -> Iterator[Contest]:
    from morok import Tensor

    a = p.floats(4096, 4096)
    out, to = np.empty_like(a), p.like(a)
    others = p.of((a,), lambda: np.copyto(out, a), lambda t, x: to.copy_(x), None)
    yield contest("copy of 16M floats", _plan(Tensor(a) + 0.0), others, rounds=FEW)
    others = p.of((a,), lambda: np.copyto(out, a.T), lambda t, x: to.copy_(x.T), None)
    yield contest(
        "transposed copy (4096, 4096)", _plan(Tensor(a).T.contiguous()), others, goal=0.5, against="torch", rounds=FEW
    )


def networks(p: Peers) -> Iterator[Contest]:
    from morok import Tensor

    for name, image, weight, stride, groups in CONVOLUTIONS:
        x, w, padding = p.floats(*image), p.floats(*weight), weight[-1] // 2
        sizes = {"stride": stride, "padding": padding, "groups": groups}
        others = p.of(
            (x, w),
            None,
            lambda t, x, w, sizes=sizes: t.nn.functional.conv2d(x, w, **sizes),
            lambda j, x, w, stride=stride, padding=padding, groups=groups: j.lax.conv_general_dilated(
                x, w, (stride, stride), ((padding, padding),) * 2, feature_group_count=groups
            ),
        )
        ours = _plan(Tensor(x).conv2d(Tensor(w), **sizes))
        yield contest(f"conv2d {name}", ours, others, goal=1.1, against="torch", rounds=FEW)

    v, c, w, d = p.floats(784, 128), p.floats(128), p.floats(128, 10), p.floats(10)
    for batch in (1, 512):
        x, h, out = p.floats(batch, 784), np.empty((batch, 128), np.float32), np.empty((batch, 10), np.float32)

        def mlp(x: np.ndarray = x, h: np.ndarray = h, out: np.ndarray = out) -> None:
            np.matmul(x, v, out=h)
            np.add(h, c, out=h)
            np.maximum(h, 0, out=h)
            np.matmul(h, w, out=out)
            np.add(out, d, out=out)

        others = p.of(
            (x, v, c, w, d),
            mlp,
            lambda t, x, v, c, w, d: t.addmm(d, t.relu_(t.addmm(c, x, v)), w),
            lambda j, x, v, c, w, d: j.numpy.maximum(x @ v + c, 0) @ w + d,
        )
        ours = _plan((Tensor(x) @ Tensor(v) + Tensor(c)).relu() @ Tensor(w) + Tensor(d))
        others, ours = _often(others, ours, 200 if batch == 1 else 5)
        against = "numpy" if batch == 1 else BEST
        yield contest(f"MLP 784-128-10, batch {batch}", ours, others, goal=1.0, against=against)

    q, k, v = (p.floats(1, 8, 512, 64) for _ in range(3))

    def attention(j: Any, q: Any, k: Any, v: Any) -> Any:
        return j.nn.softmax(q @ j.numpy.swapaxes(k, -1, -2) / math.sqrt(64), -1) @ v

    others = p.of((q, k, v), None, lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v), attention)
    ours = _plan(Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v)))
    yield contest("attention (1, 8, 512, 64)", ours, others, goal=0.85, against="torch", rounds=FEW)
