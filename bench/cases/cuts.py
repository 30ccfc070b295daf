"""Where programs are cut into kernels: pairs of a producer and a consumer as written, against the best of all cuts by hand, one
thread.

A cut by hand is `.contiguous()` at the producer's output, or inside the producer at an output of its parts. The pairs of
PAIRS have sizes of their own, and as many are drawn at random, with their sizes, from all producers and consumers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from bench.harness import BEST, Contest

Cut = Callable[[Any], Any]  # marks the output of a producer, where a program may be cut
Program = Callable[[Cut], Any]
DRAWN: Final = 30
SEED: Final = 13
TURN: Final = 400e-6  # seconds of a turn: caches are as a program leaves them that runs again and again
GOAL: Final = 1.15


class Numbers:
    """Tensors of random numbers, each of its own; of one shape and name the same."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.made: dict[object, Any] = {}

    def __call__(self, *shape: int, name: str = "") -> Any:
        from morok import Tensor

        if (name, shape) not in self.made:
            self.made[name, shape] = Tensor(self.rng.standard_normal(shape).astype(np.float32))
        return self.made[name, shape]

    def below(self, n: int, count: int) -> Any:
        """Integers below n."""
        from morok import Tensor

        if ("below", n, count) not in self.made:
            self.made["below", n, count] = Tensor(self.rng.integers(0, n, count))
        return self.made["below", n, count]


def _linear(x: Any, out: int, new: Numbers, name: str = "linear") -> Any:
    return x @ new(x.shape[-1], out, name=name)


def _conv(x: Any, new: Numbers, size: int = 3, groups: int = 1, name: str = "conv") -> Any:
    channels = x.shape[1]
    return x.conv2d(new(channels, channels // groups, size, size, name=name), padding=size // 2, groups=groups)


def _upsampled(x: Any) -> Any:
    return x.repeat_interleave(2, 2).repeat_interleave(2, 3)


# Of rows [n, d] to rows [n, d], or of images [1, c, h, w] to images.
ROWS: Final[dict[str, Callable[[Any, Cut, Numbers], Any]]] = {
    "layernorm": lambda x, cut, new: x.layernorm(),
    "rms_norm": lambda x, cut, new: x.rms_norm(),
    "softmax": lambda x, cut, new: x.softmax(-1),
    "log_softmax": lambda x, cut, new: x.log_softmax(-1),
    "softmax of columns": lambda x, cut, new: x.softmax(0),
    "gelu": lambda x, cut, new: x.gelu(),
    "relu": lambda x, cut, new: x.relu(),
    "silu, gate": lambda x, cut, new: x.silu() * new(*x.shape, name="gate"),
    "add": lambda x, cut, new: x + new(*x.shape, name="other"),
    "pad": lambda x, cut, new: x[1:-1, 1:-1].pad(((1, 1), (1, 1))),
    "gather": lambda x, cut, new: x[new.below(x.shape[0], x.shape[0])],
    "concat": lambda x, cut, new: x[:, : x.shape[1] // 3].cat(new(*x.shape)[:, : x.shape[1] - x.shape[1] // 3], axis=1),
    "concat of computed": lambda x, cut, new: cut((x[:, : x.shape[1] // 2] * 2).exp()).cat(
        cut(x[:, x.shape[1] // 2 :].tanh()), axis=1
    ),
    "cumsum": lambda x, cut, new: x.cumsum(1),
    "linear": lambda x, cut, new: _linear(x, x.shape[1], new, "first"),
    "linear, relu": lambda x, cut, new: _linear(x, x.shape[1], new, "first").relu(),
    "linear, residual": lambda x, cut, new: cut(_linear(x, x.shape[1], new, "first")) + x,
    "transposed": lambda x, cut, new: new(x.shape[1], x.shape[0], name="turned").T * 1.5,
}
OF_ROWS: Final[dict[str, Callable[[Any, Cut, Numbers], Any]]] = {
    "linear": lambda x, cut, new: _linear(x, x.shape[1], new),
    "wide linear": lambda x, cut, new: _linear(x, 4 * x.shape[1], new),
    "as the right factor": lambda x, cut, new: new(x.shape[0], x.shape[0], name="left") @ x,
    "times its transpose": lambda x, cut, new: x @ x.T,
    "sum of columns": lambda x, cut, new: x.sum(0),
    "sum of rows": lambda x, cut, new: x.sum(1),
    "variance": lambda x, cut, new: x.var(1),
    "softmax": lambda x, cut, new: x.softmax(-1),
    "layernorm": lambda x, cut, new: x.layernorm(),
    "cumsum": lambda x, cut, new: x.cumsum(1),
    "gather": lambda x, cut, new: x[new.below(x.shape[0], 2 * x.shape[0])],
    "concat": lambda x, cut, new: x.cat(new(*x.shape, name="beside"), axis=1) * 2,
    "two linears": lambda x, cut, new: (
        cut(_linear(x, x.shape[1], new)) * _linear(x, x.shape[1], new, "second").sigmoid()
    ),
    "residual": lambda x, cut, new: x + cut(_linear(x, x.shape[1], new)),
}
IMAGES: Final[dict[str, Callable[[Any, Cut, Numbers], Any]]] = {
    "conv": lambda x, cut, new: _conv(x, new, name="first"),
    "conv, relu": lambda x, cut, new: _conv(x, new, name="first").relu(),
    "conv 1x1": lambda x, cut, new: _conv(x, new, 1, name="first"),
    "depthwise conv": lambda x, cut, new: _conv(x, new, 3, x.shape[1], name="first"),
    "batchnorm, relu": lambda x, cut, new: x.batchnorm(
        *[new(x.shape[1], name=n) for n in ("weight", "bias", "mean")], new(x.shape[1], name="var").square()
    ).relu(),
    "batchnorm of itself": lambda x, cut, new: x.batchnorm(),
    "group_norm": lambda x, cut, new: x.group_norm(4),
    "max_pool": lambda x, cut, new: x.max_pool2d(3, 1, 1),
    "avg_pool": lambda x, cut, new: x.avg_pool2d(3, 1, 1),
    "gelu": lambda x, cut, new: x.gelu(),
    "pad": lambda x, cut, new: x[:, :, 2:-2, 2:-2].pad(((0, 0), (0, 0), (2, 2), (2, 2))),
    "concat": lambda x, cut, new: (x[:, : x.shape[1] // 2] * 2).cat(x[:, x.shape[1] // 2 :].relu(), axis=1),
    "upsample": lambda x, cut, new: _upsampled(x[:, :, ::2, ::2])[:, :, : x.shape[2], : x.shape[3]],
}
OF_IMAGES: Final[dict[str, Callable[[Any, Cut, Numbers], Any]]] = {
    "conv": lambda x, cut, new: _conv(x, new),
    "conv 1x1": lambda x, cut, new: _conv(x, new, 1),
    "depthwise conv": lambda x, cut, new: _conv(x, new, 3, x.shape[1]),
    "max_pool": lambda x, cut, new: x.max_pool2d(3, 2, 1),
    "avg_pool": lambda x, cut, new: x.avg_pool2d(2),
    "mean": lambda x, cut, new: x.mean((2, 3)),
    "group_norm": lambda x, cut, new: x.group_norm(4),
    "softmax of channels": lambda x, cut, new: x.softmax(1),
    "linear of rows": lambda x, cut, new: _linear(x, x.shape[3], new),
    "residual": lambda x, cut, new: x + cut(_conv(x, new)),
    "concat, conv": lambda x, cut, new: _conv(x.cat(new(*x.shape, name="skip"), axis=1), new),
}
# (producer, consumer, n, d) and (producer, consumer, channels, height).
PAIRS: Final = (
    ("layernorm", "wide linear", 64, 256),
    ("layernorm", "linear", 128, 512),
    ("gelu", "linear", 128, 512),
    ("softmax", "linear", 128, 512),
    ("rms_norm", "linear", 96, 384),
    ("layernorm", "two linears", 128, 256),
    ("linear", "softmax", 128, 512),
    ("linear, relu", "linear", 128, 512),
    ("linear, residual", "layernorm", 128, 512),
    ("concat", "linear", 128, 512),
    ("concat of computed", "linear", 128, 512),
    ("pad", "linear", 128, 512),
    ("gather", "linear", 128, 512),
    ("cumsum", "linear", 128, 512),
    ("linear", "cumsum", 128, 512),
    ("softmax of columns", "as the right factor", 256, 256),
    ("gelu", "variance", 512, 512),
    ("layernorm", "times its transpose", 256, 256),
    ("conv, relu", "conv", 16, 32),
    ("conv, relu", "conv", 64, 28),
    ("conv", "max_pool", 16, 56),
    ("max_pool", "conv", 16, 56),
    ("max_pool", "avg_pool", 32, 56),
    ("conv", "mean", 32, 28),
    ("batchnorm, relu", "conv", 32, 28),
    ("batchnorm of itself", "conv", 32, 28),
    ("pad", "conv", 32, 28),
    ("concat", "conv", 32, 28),
    ("depthwise conv", "conv 1x1", 32, 56),
    ("upsample", "conv", 32, 28),
    ("conv, relu", "concat, conv", 16, 32),
    ("conv", "residual", 16, 32),
)


def paired(producer: str, consumer: str, a: int, b: int, seed: int = 0) -> Program:
    """The program of a pair: rows [a, b], or an image of a channels and b x b pixels."""
    new = Numbers(np.random.default_rng(seed))
    if producer in IMAGES and consumer in OF_IMAGES:
        return lambda cut: OF_IMAGES[consumer](cut(IMAGES[producer](new(1, a, b, b), cut, new)), cut, new)
    return lambda cut: OF_ROWS[consumer](cut(ROWS[producer](new(a, b), cut, new)), cut, new)


def drawn(count: int, seed: int) -> Iterator[tuple[str, str, int, int]]:
    """Pairs of any producer and any consumer, in sizes at random."""
    rng = np.random.default_rng(seed)
    rows, images = [list(itertools.product(*t)) for t in ((ROWS, OF_ROWS), (IMAGES, OF_IMAGES))]
    for _ in range(count):
        k = int(rng.integers(len(rows) + len(images)))
        if k < len(rows):
            yield (*rows[k], int(rng.integers(64, 640)), int(rng.integers(128, 1024)))
        else:
            yield (*images[k - len(rows)], 4 * int(rng.integers(2, 17)), int(rng.integers(14, 96)))


def cut_by_hand(program: Program, most: int = 4, seed: int = 0) -> dict[tuple[int, ...], Any]:
    """The plans of a program as written, (), and with cuts at some of its marks, of which `most` are drawn if there are more;
    each plan once.
    """
    marks = 0

    def counting(t: Any) -> Any:
        nonlocal marks
        marks += 1
        return t

    program(counting)
    drawn = np.random.default_rng(seed).permutation(marks)[:most].tolist()
    plans: dict[tuple[int, ...], Any] = {}
    seen = set()
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(sorted(drawn), n) for n in range(len(drawn) + 1)
    ):
        at = itertools.count()
        plan = program(lambda t, at=at, chosen=chosen: t.contiguous() if next(at) in chosen else t).prepare()
        steps = tuple([(k.kernel, k.buffers, tuple(k.fixedvars.items())) for k in plan.kernels])
        if steps not in seen:
            seen.add(steps)
            plans[chosen] = plan
    return plans


def turns(plan: Any) -> Callable[[], float]:
    """Runs a plan for a while, and returns the seconds of one run."""
    plan.execute()
    start = time.perf_counter()
    plan.execute()
    times = max(1, int(TURN / max(time.perf_counter() - start, 1e-7)))

    def turn() -> float:
        plan.execute()
        start = time.perf_counter()
        for _ in range(times):
            plan.execute()
        return (time.perf_counter() - start) / times

    return turn


def contest(name: str, program: Program, goal: float = GOAL, rounds: int = 25, seed: int = 0) -> Contest:
    """A program as written, against the best of its cuts by hand; without a peer where those are the same kernels."""
    plans = cut_by_hand(program, seed=seed)
    ours = turns(plans.pop(()))
    peers = {f"cut at {', '.join(map(str, chosen))}": turns(plan) for chosen, plan in plans.items()}
    return Contest(
        name, ours, peers, goal=goal if peers else None, against=BEST, rounds=rounds, reports=True, typical=min
    )


def contests() -> Iterator[Contest]:
    for pair in (*PAIRS, *drawn(DRAWN, SEED)):
        producer, consumer, a, b = pair
        yield contest(f"{producer} -> {consumer} ({a}, {b})", paired(*pair))
