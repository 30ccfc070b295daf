"""A convolution in the tiles that are chosen for this machine's caches, against more than twenty others of it, one thread.

Each tiling has so many output channels and pixels in registers, the weights copied inside so many loops, or no copy.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator

import numpy as np

from bench.harness import BEST, Contest


def contests() -> Iterator[Contest]:
    from morok import Tensor
    from morok.errors import OptError
    from morok.optimize.opts import Opt, OptOp
    from morok.optimize.strategy import OptimizerConfig

    rng = np.random.default_rng(0)
    for stride in (1, 2):
        x, w = rng.standard_normal((8, 64, 56, 56), np.float32), rng.standard_normal((64, 64, 3, 3), np.float32)
        lazy = functools.partial(Tensor(x).conv2d, Tensor(w), padding=1, stride=stride)
        others = {}
        for channels, pixels, depth in itertools.product((16, 32, 64), (2, 4, 7, 8, 14), (0, 1)):
            if channels * pixels > 256:
                continue
            opts = [Opt(OptOp.UPCAST, 3, pixels), Opt(OptOp.UPCAST, 1, channels), Opt(OptOp.PACK, 1, depth)]
            try:
                plan = lazy().prepare(config=OptimizerConfig(opts))
            except OptError:
                continue
            others[f"{channels} x {pixels}, {depth}"] = plan.execute
        yield Contest(
            f"conv2d with stride {stride}, as chosen / {len(others)} tilings",
            lazy().prepare().execute,
            others,
            goal=1.1,
            against=BEST,
            rounds=9,
            clock=time.process_time,
        )
