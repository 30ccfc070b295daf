"""Compile latency: from a lazy graph to the first result, in a fresh process with cold caches, imports and a warm-up on
another program not counted.

A peer may live in an environment of its own: BENCH_TINYGRAD names a Python that has it (BENCH_TORCH, BENCH_JAX likewise).
One that cannot run its warm-up, for want of a compiler say, is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench.harness import Contest

PROGRAMS = {
    "matmul 512": {
        "numpy": "a = np.ones((512, 512), np.float32); b = np.ones((512, 512), np.float32)",
        "morok": "(T(a) @ T(b))",
        "tinygrad": "(T(a) @ T(b))",
        "torch": "(lambda a, b: a @ b, a, b)",
        "jax": "(lambda a, b: a @ b, a, b)",
    },
    "softmax (4096, 1024)": {
        "numpy": "a = np.ones((4096, 1024), np.float32)",
        "morok": "T(a).softmax(-1)",
        "tinygrad": "T(a).softmax(-1)",
        "torch": "(lambda a: torch.softmax(a, -1), a)",
        "jax": "(lambda a: jax.nn.softmax(a, -1), a)",
    },
    "digits MLP": {
        "numpy": "x, v, w, b, c = (np.ones(s, np.float32) for s in ((899, 64), (64, 64), (64, 10), (64,), (10,)))",
        "morok": "((T(x) @ T(v) + T(b)).relu() @ T(w) + T(c)).softmax(-1)",
        "tinygrad": "((T(x) @ T(v) + T(b)).relu() @ T(w) + T(c)).softmax(-1)",
        "torch": "(lambda x, v, w, b, c: torch.softmax(torch.relu(x @ v + b) @ w + c, -1), x, v, w, b, c)",
        "jax": "(lambda x, v, w, b, c: jax.nn.softmax(jax.nn.relu(x @ v + b) @ w + c, -1), x, v, w, b, c)",
    },
}

SETUP = {
    "morok": "from morok import Tensor as T\nrun = lambda t: t.realize()\nrun(T([1.0]) + T([2.0]))",
    "tinygrad": "from tinygrad import Tensor as T\nrun = lambda t: t.realize()\nrun(T(np.ones(3, np.float32)) * 2 + 1)",
    "torch": "import torch\nrun = lambda p: torch.compile(p[0])(*map(torch.tensor, p[1:]))\nrun((lambda a: a + 1, np.ones(3)))",
    "jax": "import jax\nrun = lambda p: jax.block_until_ready(jax.jit(p[0])(*p[1:]))\nrun((lambda a: a + 1, np.ones(3)))",
}


def _python(who: str) -> str:
    return os.environ.get(f"BENCH_{who.upper()}", sys.executable)


def _runs(who: str) -> bool:
    """Whether a peer is there and computes something."""
    done = subprocess.run([_python(who), "-c", f"import numpy as np\n{SETUP[who]}"], capture_output=True, text=True)
    if done.returncode:
        print(f"{who} is left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return done.returncode == 0


def _fresh(who: str, program: dict[str, str]) -> Callable[[], float]:
    code = "\n".join(
        (
            "import time, numpy as np",
            SETUP[who],
            program["numpy"],
            "start = time.perf_counter()",
            f"run({program[who]})",
            "print(time.perf_counter() - start)",
        )
    )

    def run() -> float:
        with tempfile.TemporaryDirectory() as cold:
            env = os.environ | {"MOROK_CACHE_DIR": cold, "CACHELEVEL": "0", "TORCHINDUCTOR_CACHE_DIR": cold}
            done = subprocess.run([_python(who), "-c", code], env=env, check=True, capture_output=True, text=True)
        return float(done.stdout.splitlines()[-1])

    return run


def contests() -> Iterator[Contest]:
    peers = [p for p in ("tinygrad", "torch", "jax") if _runs(p)]
    for name, program in PROGRAMS.items():
        yield Contest(
            f"compile latency, {name}",
            _fresh("morok", program),
            {p: _fresh(p, program) for p in peers},
            rounds=3,
            reports=True,
            goal=1 / 3 if name == "matmul 512" else None,
            against="tinygrad",
        )
