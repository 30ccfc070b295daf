"""Any legal optimizations, in any order, leave a program's values as they are: run as machine code, whole and by several threads.

The data are small whole numbers, so that sums and products are exact in any order; what is not exact is compared to a few ulp.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from morok import Tensor, config
from morok.errors import OptError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.beam import actions
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes import pipeline
from morok.runtime.device import device
from morok.runtime.kernel import PreparedKernel
from morok.runtime.plan import ExecutionPlan

CPU = device("CPU")
RNG = np.random.default_rng(1)
A, B = (RNG.integers(-3, 4, (14, 12)).astype(np.float32) for _ in range(2))
IMAGE, WEIGHT = (
    RNG.integers(-3, 4, (2, 3, 8, 8)).astype(np.float32),
    RNG.integers(-3, 4, (4, 3, 3, 3)).astype(np.float32),
)

PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (Tensor(A) * 2 + Tensor(B)).relu(),
    "sum": lambda: Tensor(A).sum(),
    "sum of rows": lambda: (Tensor(A) + 1).sum(1),
    "sum of columns": lambda: Tensor(A).sum(0),
    "matmul": lambda: Tensor(A) @ Tensor(np.ascontiguousarray(B.T)),
    "softmax": lambda: Tensor(A).softmax(-1),
    "conv": lambda: Tensor(IMAGE).conv2d(Tensor(WEIGHT), padding=1),
    "transpose": lambda: Tensor(A).transpose(0, 1).contiguous(),
    "running sums": lambda: Tensor(A).cumsum(1) + Tensor(B).sum(1, keepdim=True),
    "pad": lambda: Tensor(A).pad(((1, 2), (3, 4))) * 2,
}


def drawn(ast: UOp, draw: random.Random) -> tuple[Opt, ...]:
    """Some legal optimizations of a kernel."""
    ready: pipeline.Program = ast
    for stage in pipeline.STAGES[:6]:
        ready = pipeline.run(stage, ready, CPU.target)
    assert isinstance(ready, UOp)
    scheduler = Scheduler(ready, CPU.target)
    more = [Opt(OptOp.PADTO, a, n) for a in range(4) for n in (4, 5, 8)] + [
        Opt(OptOp.PACK, s, n) for s in (1, 2) for n in (0, 1, 2)
    ]
    more += [Opt(OptOp.STRIP, a, n) for a in range(3) for n in (0, 4)]
    more += [Opt(OptOp.BLOCK, a, n) for a in range(3) for n in (2, 4)]
    more += [Opt(OptOp.LANES, None, n) for n in (2, 3, 5, 7)]
    choices = [
        a for a in (*actions(CPU.target), *more) if a.op not in (OptOp.LOCAL, OptOp.GROUP, OptOp.GROUPTOP, OptOp.TC)
    ]
    for _ in range(40):
        before = scheduler.ast
        try:
            scheduler.apply(draw.choice(choices))
        except OptError:
            assert scheduler.ast is before
        if len(scheduler.applied) == 4 or scheduler.lanes() > 64:
            break
    return tuple(scheduler.applied)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_legal_optimizations(name: str) -> None:
    applied: Counter[OptOp] = Counter()
    with config.settings(threads=3):
        plan = PROGRAMS[name]().prepare()
        expected = plan.execute().numpy().copy()
        items = PROGRAMS[name]().schedule()
        for seed in range(6):
            draw = random.Random(f"{name} {seed}")
            kernels = []
            for step, item in zip(plan.kernels, items, strict=True):
                opts = drawn(item.ast, draw)
                applied.update(o.op for o in opts)
                ast = UOp.new(Op.Sink, item.ast.src, replace(item.ast.arg, opts=opts))
                kernels.append(
                    PreparedKernel(CPU.compile(pipeline.lower(ast, CPU.target), "k"), step.buffers, step.fixedvars)
                )
            again = ExecutionPlan(kernels, plan.parallel_groups, plan.buffers, plan.output_buffer_idx, threads=3)
            again.output.numpy()[:] = -1
            found = again.execute().numpy()
            if name == "softmax":
                assert np.allclose(found, expected, rtol=1e-5)
            else:
                assert found.tobytes() == expected.tobytes()
    assert applied
