"""Compile latency: what the compiler itself takes, from the description of a program to code that is ready to run, in a fresh
process with cold caches. Nothing runs, so the time of no run is taken off: Morok prepares a plan, jax lowers and compiles a
function, tinygrad makes its schedule and compiles its kernels. Imports and another program, which runs before, are not counted.

A peer may live in an environment of its own: BENCH_TINYGRAD names a Python that has it (BENCH_JAX likewise). One that cannot
run its warm-up is left out: tinygrad needs a program `clang` (the package ziglang has one: `python -m ziglang clang`)
and DEV=CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bench.harness import Contest


class Program(NamedTuple):
    """One program: its arrays by name, and what is computed of them.

    lazy  an expression of tensors, where each array is one already: Morok's and tinygrad's
    jax   the same of arrays, to be compiled
    most  how many times the peer's latency is asked for, and which peer's
    """

    arrays: Mapping[str, tuple[int, ...]]
    lazy: str
    jax: str
    most: tuple[float, str] = (1.0, "jax")


_NORM = "(lambda d: d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5))(a - a.mean(-1, keepdims=True))"
_SQUARE = {"a": (4096, 4096)}
_CONVOLUTION = {"x": (8, 64, 56, 56), "w": (64, 64, 3, 3)}
_ATTENTION = {"q": (1, 8, 512, 64), "k": (1, 8, 512, 64), "v": (1, 8, 512, 64)}
_DIGITS = {"x": (899, 64), "v": (64, 64), "w": (64, 10), "b": (64,), "c": (10,)}
_MLP = {"x": (512, 784), "v": (784, 128), "w": (128, 10), "b": (128,), "c": (10,)}

PROGRAMS = {
    **{f"matmul {n}": Program({"a": (n, n), "b": (n, n)}, "a @ b", "a @ b") for n in (512, 1024, 2048)},
    "x @ W.T": Program({"a": (1024, 1024), "b": (1024, 1024)}, "a @ b.T", "a @ b.T"),
    "elementwise chain on 16M": Program(
        dict.fromkeys("abc", (16 * 2**20,)), "(a * b + c).relu() * 2 - a", "jax.numpy.maximum(a * b + c, 0) * 2 - a"
    ),
    "gelu of 4M": Program({"a": (4 * 2**20,)}, "a.gelu()", "jax.nn.gelu(a, approximate=False)"),
    "softmax (4096, 1024)": Program({"a": (4096, 1024)}, "a.softmax(-1)", "jax.nn.softmax(a, -1)"),
    "layernorm (4096, 1024)": Program({"a": (4096, 1024)}, "a.layernorm()", _NORM),
    "sum of (4096, 4096), all": Program(_SQUARE, "a.sum()", "a.sum()"),
    "sum of (4096, 4096), axis 0": Program(_SQUARE, "a.sum(0)", "a.sum(0)"),
    "sum of (4096, 4096), axis 1": Program(_SQUARE, "a.sum(1)", "a.sum(1)"),
    "cumsum (4096, 4096) axis 1": Program(_SQUARE, "a.cumsum(1)", "jax.numpy.cumsum(a, axis=1)"),
    "transposed copy (4096, 4096)": Program(_SQUARE, "a.T.contiguous()", "a.T + 0"),
    "conv2d (8, 64, 56, 56) by 64 3x3": Program(
        _CONVOLUTION,
        "x.conv2d(w, padding=1)",
        "jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)))",
        (0.15, "tinygrad"),
    ),
    "MLP 784-128-10, batch 512": Program(_MLP, "(x @ v + b).relu() @ w + c", "jax.nn.relu(x @ v + b) @ w + c"),
    "digits MLP": Program(
        _DIGITS, "((x @ v + b).relu() @ w + c).softmax(-1)", "jax.nn.softmax(jax.nn.relu(x @ v + b) @ w + c, -1)"
    ),
    "attention (1, 8, 512, 64)": Program(
        _ATTENTION,
        "q.scaled_dot_product_attention(k, v)",
        "jax.nn.softmax(q @ jax.numpy.swapaxes(k, -1, -2) / 8, -1) @ v",
        (0.15, "tinygrad"),
    ),
}

SETUP = {
    "morok": "from morok import Tensor\nTensor([1.0]).add(Tensor([2.0])).realize()",
    "tinygrad": "from tinygrad import Tensor\nfrom tinygrad.engine.realize import compile_linear\n"
    "(Tensor(np.ones(3, np.float32)) * 2 + 1).realize()",
    "jax": "import jax\njax.block_until_ready(jax.jit(lambda a: a + 1)(np.ones(3)))",
}


def _python(who: str) -> str:
    return os.environ.get(f"BENCH_{who.upper()}", sys.executable)


def _runs(who: str) -> bool:
    """Whether a peer is there and computes something."""
    done = subprocess.run([_python(who), "-c", f"import numpy as np\n{SETUP[who]}"], capture_output=True, text=True)
    if done.returncode:
        print(f"{who} is left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return done.returncode == 0


def _code(who: str, program: Program) -> str:
    """A Python program that prints the seconds from a description to compiled code."""
    names = ", ".join(program.arrays)
    given = f"{names}, = [Tensor(x).realize() for x in ({names},)]"
    if who == "jax":
        given = f"{names}, = [jax.numpy.asarray(x) for x in ({names},)]"
        compiled = f"jax.jit(lambda {names}: {program.jax}).lower({names}).compile()"
    elif who == "tinygrad":
        compiled = f"compile_linear(({program.lazy}).linear_with_vars()[0])"
    else:
        compiled = f"({program.lazy}).prepare()"
    return "\n".join(
        (
            "import time, numpy as np",
            SETUP[who],
            *(f"{name} = np.ones({shape}, np.float32)" for name, shape in program.arrays.items()),
            given,
            "begin = time.perf_counter()",
            f"kept = {compiled}",
            "print(time.perf_counter() - begin)",
        )
    )


def _fresh(who: str, program: Program) -> Callable[[], float]:
    code = _code(who, program)

    def run() -> float:
        with tempfile.TemporaryDirectory() as cold:
            env = os.environ | {"MOROK_CACHE_DIR": cold, "CACHELEVEL": "0"}
            done = subprocess.run([_python(who), "-c", code], env=env, check=True, capture_output=True, text=True)
        return float(done.stdout.splitlines()[-1])

    return run


def contests() -> Iterator[Contest]:
    runs = {who: _runs(who) for who in ("jax", "tinygrad")}
    for name, program in PROGRAMS.items():
        goal, against = program.most
        peers = dict.fromkeys(("jax", against))
        yield Contest(
            f"compile latency, {name}",
            _fresh("morok", program),
            {p: _fresh(p, program) for p in peers if runs[p]},
            rounds=3,
            reports=True,
            goal=goal,
            against=against,
        )
