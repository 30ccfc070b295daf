"""Random programs of models' pieces, over tensors or, the same in f64, over NumPy's arrays.

A program is a graph of 3 to 12 pieces (norms, linear layers, convolutions, attention, activations, pools, residuals, concats):
each takes the values of earlier ones, the last ones more often. Values that nothing takes are joined to the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Cut = Callable[[Any], Any]
ERF = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Step:
    """One piece: its name, the values it takes by number (0: the input), and the shapes of its weights by name."""

    piece: str
    sources: tuple[int, ...]
    weights: tuple[tuple[str, tuple[int, ...]], ...] = ()
    heads: int = 1


@dataclass(frozen=True)
class Program:
    """Steps over an input: rows [n, d], or an image [1, c, h, w]."""

    shape: tuple[int, ...]
    steps: tuple[Step, ...]

    def numbers(self, seed: int) -> dict[str, Array]:
        """Its input and weights at random, in f32; layers keep the size of what they are given."""
        rng = np.random.default_rng(seed)
        shapes = {name: shape for step in self.steps for name, shape in step.weights}
        sums = {name: shape[0] if len(shape) == 2 else math.prod(shape[1:]) for name, shape in shapes.items()}
        scaled = {name: rng.standard_normal(shape) / math.sqrt(sums[name]) for name, shape in shapes.items()}
        return {name: a.astype(np.float32) for name, a in {"input": rng.standard_normal(self.shape), **scaled}.items()}

    def run(self, pieces: Mapping[str, Callable[..., Any]], numbers: Mapping[str, Any], cut: Cut = lambda x: x) -> Any:
        """Its result, each value marked by `cut`, where the program may be cut."""
        values = [numbers["input"]]
        for step in self.steps:
            args = [values[s] for s in step.sources]
            values.append(
                cut(pieces[step.piece](*args, *[numbers[name] for name, _ in step.weights], heads=step.heads))
            )
        return pieces["end"]([values[k] for k in self.ends()])

    def ends(self) -> list[int]:
        taken = {s for step in self.steps for s in step.sources}
        return [k for k in range(1, len(self.steps) + 1) if k not in taken]


def drawn(rng: np.random.Generator, size: int, pieces: tuple[int, int] = (3, 12)) -> Program:
    """A program over rows or an image of about `size` numbers an axis of its input."""
    rows = bool(rng.integers(2))
    a, b = (int(n) for n in rng.integers(max(2, size // 2), 2 * size + 1, 2))
    side = max(3, round(math.sqrt(size) * 2))
    shape = (
        (a, b) if rows else (1, max(2, side // 2), int(rng.integers(side, 2 * side)), int(rng.integers(side, 2 * side)))
    )
    shapes, steps = [shape], list[Step]()
    for k in range(int(rng.integers(pieces[0], pieces[1] + 1))):
        at = max(0, len(shapes) - 1 - int(rng.geometric(0.6)) + 1)
        x = shapes[at]
        name = str(rng.choice(OF_ROWS if rows else OF_IMAGES))
        others = [o for o, s in enumerate(shapes) if o != at and (s == x if name == "residual" else s[2:] == x[2:])]
        if name in ("residual", "concat"):
            if not others or (name == "concat" and x[1] > 4 * shape[1]):
                name = "relu"
            else:
                other = others[int(rng.integers(len(others)))]
                steps.append(Step(name, (at, other)))
                shapes.append(x if name == "residual" else (x[0], x[1] + shapes[other][1], *x[2:]))
                continue
        if name in ("max_pool", "avg_pool") and min(x[2:]) < 4:
            name = "relu"
        step, shape_after = _layer(rng, name, at, x, k, shape[1])
        steps.append(step)
        shapes.append(shape_after)
    return Program(shape, tuple(steps))


def _layer(
    rng: np.random.Generator, name: str, at: int, x: tuple[int, ...], k: int, width: int
) -> tuple[Step, tuple[int, ...]]:
    """A piece of one value, and the shape of what it makes."""
    if name == "linear":
        out = int(rng.integers(max(2, width // 2), 2 * width + 1))
        return Step(name, (at,), ((f"w{k}", (x[-1], out)), (f"b{k}", (out,)))), (*x[:-1], out)
    if name == "attention":
        heads = next(h for h in (4, 3, 2, 1) if x[1] % h == 0)
        return Step(name, (at,), tuple((f"{n}{k}", (x[1], x[1])) for n in "qkv"), heads), x
    if name in ("conv", "conv1x1"):
        out, window = int(rng.integers(max(2, width // 2), 2 * width + 1)), 3 if name == "conv" else 1
        return Step("conv", (at,), ((f"w{k}", (out, x[1], window, window)),)), (x[0], out, *x[2:])
    if name == "depthwise":
        return Step(name, (at,), ((f"w{k}", (x[1], 1, 3, 3)),)), x
    if name in ("layernorm", "batchnorm"):
        size = (x[-1],) if name == "layernorm" else (x[1],)
        return Step(name, (at,), ((f"g{k}", size), (f"b{k}", size))), x
    if name in ("max_pool", "avg_pool"):
        return Step(name, (at,)), (*x[:2], x[2] // 2, x[3] // 2)
    return Step(name, (at,)), x


OF_ROWS: Final = (
    *("linear",) * 3,
    *(
        "layernorm",
        "rms_norm",
        "softmax",
        "relu",
        "gelu",
        "silu",
        "attention",
        "residual",
        "residual",
        "concat",
        "cumsum",
    ),
)
OF_IMAGES: Final = (
    *("conv",) * 3,
    *(
        "conv1x1",
        "depthwise",
        "batchnorm",
        "group_norm",
        "relu",
        "gelu",
        "max_pool",
        "avg_pool",
        "residual",
        "residual",
        "concat",
    ),
)


def _attention(x: Any, q: Any, k: Any, v: Any, heads: int) -> Any:
    split = [(x @ w).reshape(x.shape[0], heads, x.shape[1] // heads).permute(1, 0, 2) for w in (q, k, v)]
    return split[0].scaled_dot_product_attention(split[1], split[2]).permute(1, 0, 2).reshape(x.shape)


def _end(values: Sequence[Any]) -> Any:
    first, *others = [v.mean((2, 3)) if v.ndim == 4 and len(values) > 1 else v for v in values]
    return first.cat(*others, axis=1) if others else first


OF_TENSORS: Final[dict[str, Callable[..., Any]]] = {
    "linear": lambda x, w, b, heads: x @ w + b,
    "layernorm": lambda x, g, b, heads: x.layernorm() * g + b,
    "rms_norm": lambda x, heads: x.rms_norm(),
    "softmax": lambda x, heads: x.softmax(-1),
    "relu": lambda x, heads: x.relu(),
    "gelu": lambda x, heads: x.gelu(),
    "silu": lambda x, heads: x.silu(),
    "cumsum": lambda x, heads: x.cumsum(1) * 0.1,
    "attention": _attention,
    "residual": lambda x, y, heads: x + y,
    "concat": lambda x, y, heads: x.cat(y, axis=1),
    "conv": lambda x, w, heads: x.conv2d(w, padding=w.shape[-1] // 2),
    "depthwise": lambda x, w, heads: x.conv2d(w, padding=1, groups=x.shape[1]),
    "batchnorm": lambda x, g, b, heads: x * g.reshape(1, -1, 1, 1) + b.reshape(1, -1, 1, 1),
    "group_norm": lambda x, heads: x.group_norm(2 if x.shape[1] % 2 == 0 else 1),
    "max_pool": lambda x, heads: x.max_pool2d(2),
    "avg_pool": lambda x, heads: x.avg_pool2d(2),
    "end": _end,
}


def _normalized(x: Array, axes: int | tuple[int, ...]) -> Array:
    centred = x - x.mean(axes, keepdims=True)
    out: Array = centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + 1e-5)
    return out


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    out: Array = e / e.sum(-1, keepdims=True)
    return out


def _attention_of_arrays(x: Array, q: Array, k: Array, v: Array, heads: int) -> Array:
    a, b, c = [(x @ w).reshape(x.shape[0], heads, -1).transpose(1, 0, 2) for w in (q, k, v)]
    out: Array = (_softmax(a @ b.transpose(0, 2, 1) / math.sqrt(a.shape[-1])) @ c).transpose(1, 0, 2).reshape(x.shape)
    return out


def _windows(x: Array, size: int, padding: int, step: int) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))[:, :, ::step, ::step]


def _grouped(x: Array) -> Array:
    groups = 2 if x.shape[1] % 2 == 0 else 1
    return _normalized(x.reshape(x.shape[0], groups, -1), 2).reshape(x.shape)


def _end_of_arrays(values: Sequence[Array]) -> Array:
    return values[0] if len(values) == 1 else np.concatenate([v.mean((2, 3)) if v.ndim == 4 else v for v in values], 1)


OF_ARRAYS: Final[dict[str, Callable[..., Any]]] = {
    "linear": lambda x, w, b, heads: x @ w + b,
    "layernorm": lambda x, g, b, heads: _normalized(x, -1) * g + b,
    "rms_norm": lambda x, heads: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6),
    "softmax": lambda x, heads: _softmax(x),
    "relu": lambda x, heads: np.maximum(x, 0),
    "gelu": lambda x, heads: x * (1 + ERF(x / math.sqrt(2))) / 2,
    "silu": lambda x, heads: x / (1 + np.exp(-x)),
    "cumsum": lambda x, heads: x.cumsum(1) * 0.1,
    "attention": _attention_of_arrays,
    "residual": lambda x, y, heads: x + y,
    "concat": lambda x, y, heads: np.concatenate((x, y), 1),
    "conv": lambda x, w, heads: np.einsum("nchwab,ocab->nohw", _windows(x, w.shape[-1], w.shape[-1] // 2, 1), w),
    "depthwise": lambda x, w, heads: np.einsum("nchwab,cab->nchw", _windows(x, 3, 1, 1), w[:, 0]),
    "batchnorm": lambda x, g, b, heads: x * g.reshape(1, -1, 1, 1) + b.reshape(1, -1, 1, 1),
    "group_norm": lambda x, heads: _grouped(x),
    "max_pool": lambda x, heads: _windows(x, 2, 0, 2).max((4, 5)),
    "avg_pool": lambda x, heads: _windows(x, 2, 0, 2).mean((4, 5)),
    "end": _end_of_arrays,
}
