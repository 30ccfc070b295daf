"""Compiling a whole network: ResNet-18 described and run for the first time in a fresh process, with cold caches.

The time runs from the first call of the model until its output can be read, so it is never negative; a single run of the
network is a hundredth of it. Imports, weights and a warm-up on another program are not counted. The peer is tinygrad without
a beam search (BENCH_TINYGRAD names a Python that has it); both compute with the same weights, and the outputs are compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.cases.latency import _python, _runs
from bench.harness import Contest

ROOT = Path(__file__).resolve().parents[2]
WIDTH, PIXELS = 32, 96
TOLERANCE = 1e-4  # of the greatest output

OURS = f"""
import sys, time, numpy as np
sys.path[:0] = [{str(ROOT / "examples")!r}, {str(ROOT)!r}]
from models import ResNet18
from morok import Tensor
Tensor([1.0]).add(Tensor([2.0])).realize()
state, x = dict(np.load(sys.argv[1])), Tensor(np.load(sys.argv[2]))
model = ResNet18({WIDTH})
model.load_state_dict(state)
start = time.perf_counter()
out = model(x).realize().numpy()
print(time.perf_counter() - start)
np.save(sys.argv[3], out)
"""

TINYGRAD = """
import sys, time, numpy as np
from tinygrad import Tensor
(Tensor(np.ones(3, np.float32)) * 2 + 1).realize()
s = {name: Tensor(a).realize() for name, a in np.load(sys.argv[1]).items()}
x = Tensor(np.load(sys.argv[2])).realize()

def norm(x, name):
    inverse = (s[name + ".running_var"] + 1e-5).rsqrt()
    return x.batchnorm(s[name + ".weight"], s[name + ".bias"], s[name + ".running_mean"], inverse)

def conv(x, name, stride=1, padding=0):
    return x.conv2d(s[name + ".weight"], stride=stride, padding=padding)

def network(x):
    x = norm(conv(x, "conv1", 2, 3), "bn1").relu().max_pool2d(3, 2, padding=1)
    for block in range(8):
        name, stride = f"blocks.{block}", 2 if block in (2, 4, 6) else 1
        y = norm(conv(x, name + ".conv1", stride, 1), name + ".bn1").relu()
        y = norm(conv(y, name + ".conv2", 1, 1), name + ".bn2")
        if stride == 2:
            x = norm(conv(x, name + ".shortcut.0", 2), name + ".shortcut.1")
        x = (y + x).relu()
    return x.mean((2, 3)) @ s["fc.weight"].T + s["fc.bias"]

start = time.perf_counter()
out = network(x).numpy()
print(time.perf_counter() - start)
np.save(sys.argv[3], out)
"""


def _fresh(who: str, code: str, folder: Path) -> Callable[[], float]:
    """A first run in a process of its own: its seconds."""

    def run() -> float:
        with tempfile.TemporaryDirectory() as cold:
            env = os.environ | {"MOROK_CACHE_DIR": cold, "CACHELEVEL": "0", "BEAM": "0"}
            files = [str(folder / name) for name in ("state.npz", "x.npy", f"{who}.npy")]
            done = subprocess.run(
                [_python(who), "-c", code, *files], env=env, check=True, capture_output=True, text=True
            )
        return float(done.stdout.splitlines()[-1])

    return run


def contests() -> Iterator[Contest]:
    from bench.cases.models import networks
    from morok import Tensor

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Tensor.manual_seed(0)
        np.savez(folder / "state.npz", **networks().ResNet18(WIDTH).state_dict())
        np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((1, 3, PIXELS, PIXELS), np.float32))
        ours, peers = _fresh("morok", OURS, folder), {}
        if _runs("tinygrad"):
            peers["tinygrad"] = _fresh("tinygrad", TINYGRAD, folder)
            ours(), peers["tinygrad"]()
            mine, theirs = np.load(folder / "morok.npy"), np.load(folder / "tinygrad.npy")
            off = float(np.abs(mine - theirs).max() / np.abs(theirs).max())
            if not off <= TOLERANCE:
                sys.exit(f"ResNet-18: an output is {off:.1e} off tinygrad's (of the greatest)")
        figure = f"compile and run ResNet-18 once (width {WIDTH}, {PIXELS} x {PIXELS})"
        yield Contest(figure, ours, peers, goal=0.3, against="tinygrad", rounds=3, reports=True)
