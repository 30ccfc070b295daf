"""Random programs, described once and computed twice: by tensors and by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from morok import Tensor

Array = np.ndarray[Any, Any]

INTS: Final = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS: Final = ["float16", "float32", "float64"]
DTYPES: Final = ["bool", *INTS, *FLOATS]
SIZES: Final = [0, 1, 1, 2, 3, 5, 7, 8, 13]


@dataclass(frozen=True)
class Pair:
    """The same value twice."""

    ours: Tensor
    theirs: Array

    def map(self, ours: Callable[[Any], Any], theirs: Callable[[Any], Any] | None = None) -> Pair:
        return Pair(ours(self.ours), np.asarray((theirs or ours)(self.theirs)))


def check(p: Pair, exactly: bool = True, tolerance: float = 0.0) -> None:
    """Shapes, dtypes and values agree; NaN is NaN, and -0.0 is not 0.0 where it matters (`exactly`)."""
    ours = p.ours.numpy()
    assert ours.shape == p.theirs.shape
    assert ours.dtype == p.theirs.dtype
    if not exactly:
        np.testing.assert_allclose(ours, p.theirs, rtol=tolerance, atol=tolerance)
        return
    np.testing.assert_array_equal(ours, p.theirs)
    if ours.dtype.kind == "f":
        numbers = ~np.isnan(ours)
        np.testing.assert_array_equal(np.signbit(ours[numbers]), np.signbit(p.theirs[numbers]))


def specials(d: str) -> list[Any]:
    if d == "bool":
        return [False, True]
    if d in FLOATS:
        tiny = float(np.finfo(d).smallest_subnormal)
        return [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, float(np.finfo(d).max), tiny, 0.5, -2.5, 3.0, 100.0]
    limits = np.iinfo(d)
    return [0, 1, 2, 3, 5, 7, limits.max, limits.min, limits.max - 1, *([-1, -2, -7] if limits.min < 0 else [])]


def numbers(d: str) -> list[Any]:
    """Python numbers that a dtype has or rounds to, among them some that f32 has not."""
    if d in FLOATS:
        return [*specials(d), 1.1, -0.1, 16777217, 16777217.0, 2**53 + 1, 1e300]
    return [*specials(d), *([16777217] if np.iinfo(d).max > 16777217 else [])] if d != "bool" else specials(d)


def shapes(ndim: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(SIZES), max_size=ndim).map(tuple)


def leaf(draw: st.DrawFn, d: str, shape: tuple[int, ...], values: list[Any] | None = None) -> Pair:
    """A tensor of a dtype, of special values unless others are given."""
    chosen = np.array(values if values is not None else specials(d), d)
    seed = draw(st.integers(0, 1 << 16))
    theirs = np.random.default_rng(seed).choice(chosen, shape).astype(d)
    return Pair(Tensor(theirs), theirs)


def broadcastable(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    begin = draw(st.integers(0, len(shape)))
    return tuple(1 if draw(st.booleans()) and draw(st.booleans()) else n for n in shape[begin:])


# Elementwise.


def _least(a: Any, b: Any) -> Any:
    """The least of two, -0.0 below 0.0: of these NumPy gives either."""
    if isinstance(a, Tensor):
        return a.minimum(b)
    zeros = np.signbit(np.asarray(a, float)) | np.signbit(np.asarray(b, float))
    return _ordered(np.minimum(a, b), a, b, zeros)


def _greatest(a: Any, b: Any) -> Any:
    """The greatest of two, 0.0 above -0.0."""
    if isinstance(a, Tensor):
        return a.maximum(b)
    zeros = np.signbit(np.asarray(a, float)) & np.signbit(np.asarray(b, float))
    return _ordered(np.maximum(a, b), a, b, zeros)


def _ordered(found: Any, a: Any, b: Any, negative: Array) -> Any:
    """The number that was found; where both are a zero of floats, that of the sign."""
    if np.asarray(found).dtype.kind != "f":
        return found
    zero = np.where(negative, np.asarray(-0.0, found.dtype), np.asarray(0.0, found.dtype))
    return np.where((a == 0) & (b == 0), zero, found)


_ANY: Final[dict[str, Callable[[Any, Any], Any]]] = {"min": _least, "max": _greatest}
_NUMBERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **_ANY,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}
_BITS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_SHIFTS: Final[dict[str, Callable[[Any, Any], Any]]] = {"shl": lambda a, b: a << b, "shr": lambda a, b: a >> b}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_ON_FLOATS: Final = ["floor", "ceil", "trunc", "round", "sqrt"]


def _binary(d: str) -> dict[str, Callable[[Any, Any], Any]]:
    if d == "bool":
        return {**_ANY, **_BITS}
    if d in FLOATS:
        return {**_NUMBERS, "div": lambda a, b: a / b}
    return {**_NUMBERS, **_BITS, **_SHIFTS}


def tree(draw: st.DrawFn, d: str, shape: tuple[int, ...], depth: int, made: list[Pair]) -> Pair:
    """A value of a dtype whose shape broadcasts to `shape`; what has been `made` may be used again."""
    kinds = ["leaf", "binary", "binary", "number", "one", "where", "cast", "again"]
    kind = draw(st.sampled_from(kinds)) if depth else "leaf"
    again = [p for p in made if p.theirs.dtype == d]
    if kind == "again" and again:
        return draw(st.sampled_from(again))
    out = _node(draw, kind, d, shape, depth, made)
    made.append(out)
    return out


def _node(draw: st.DrawFn, kind: str, d: str, shape: tuple[int, ...], depth: int, made: list[Pair]) -> Pair:
    if kind == "binary":
        if d == "bool" and draw(st.booleans()):
            inner = draw(st.sampled_from(DTYPES))
            f = draw(st.sampled_from(list(_COMPARISONS.values())))
        else:
            inner, f = d, draw(st.sampled_from(list(_binary(d).values())))
        a, b = tree(draw, inner, shape, depth - 1, made), tree(draw, inner, shape, depth - 1, made)
        return Pair(f(a.ours, b.ours), np.asarray(f(a.theirs, b.theirs)))
    if kind == "number":
        a, v = tree(draw, d, shape, depth - 1, made), draw(st.sampled_from(numbers(d)))
        name = draw(st.sampled_from([*_binary(d), "where"]))
        if name == "where":
            c = tree(draw, "bool", shape, depth - 1, made)
            return Pair(c.ours.where(a.ours, v), np.where(c.theirs, a.theirs, np.array(v, d)))
        f = _binary(d)[name]
        if name not in _ANY and draw(st.booleans()):
            return Pair(f(v, a.ours), np.asarray(f(v, a.theirs)))
        return Pair(f(a.ours, v), np.asarray(f(a.theirs, v)))
    if kind == "one":
        a = tree(draw, d, shape, depth - 1, made)
        if d in FLOATS and draw(st.booleans()):
            name = draw(st.sampled_from(_ON_FLOATS))
            return Pair(getattr(a.ours, name)(), np.asarray(getattr(np, name)(a.theirs)))
        return a.map(lambda x: ~x) if d == "bool" else a.map(lambda x: -x) if draw(st.booleans()) else a.map(abs)
    if kind == "where":
        c = tree(draw, "bool", shape, depth - 1, made)
        a, b = tree(draw, d, shape, depth - 1, made), tree(draw, d, shape, depth - 1, made)
        return Pair(c.ours.where(a.ours, b.ours), np.where(c.theirs, a.theirs, b.theirs))
    if kind == "cast":
        # out of range NumPy's own loops disagree for the wider unsigned integers
        source = draw(st.sampled_from([s for s in DTYPES if not (s in FLOATS and d in ("uint32", "uint64"))]))
        a = tree(draw, source, shape, depth - 1, made)
        return Pair(a.ours.cast(d), a.theirs.astype(d))
    return leaf(draw, d, broadcastable(draw, shape))


# Views.


def moved(draw: st.DrawFn, p: Pair, steps: int) -> Pair:
    """A chain of views: other orders and shapes of the same elements, some left out, some repeated, zeros around them."""
    for _ in range(steps):
        kind = draw(st.sampled_from(["permute", "reshape", "expand", "pad", "slice", "flip", "flatten"]))
        shape = p.theirs.shape
        if kind == "permute":
            order = tuple(draw(st.permutations(range(len(shape)))))
            p = p.map(lambda x, o=order: x.permute(*o), lambda x, o=order: x.transpose(o))
        elif kind == "reshape":
            new = _factors(draw, int(np.prod(shape)))
            p = p.map(lambda x, n=new: x.reshape(n))
        elif kind == "flatten":
            p = p.map(lambda x: x.reshape(-1))
        elif kind == "expand" and p.theirs.size < 400:
            new = (draw(st.integers(1, 3)), *[draw(st.integers(0, 4)) if n == 1 else n for n in shape])
            p = p.map(lambda x, n=new: x.expand(*n), lambda x, n=new: np.broadcast_to(x, n))
        elif kind == "pad" and p.theirs.size < 400:
            p = padded(draw, p)
        elif kind == "slice":
            key = tuple(_slice(draw, n) for n in shape)
            p = p.map(lambda x, k=key: x[k])
        elif kind == "flip" and shape:
            axis = draw(st.integers(0, len(shape) - 1))
            p = p.map(lambda x, a=axis: x.flip(a), lambda x, a=axis: np.flip(x, a))
    return p


def padded(draw: st.DrawFn, p: Pair) -> Pair:
    """The same elements with zeros around them."""
    edges = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in p.theirs.shape]
    return p.map(lambda x: x.pad(edges), lambda x: np.pad(x, edges) if edges else x)


def repeated(draw: st.DrawFn, p: Pair) -> Pair:
    """The same elements over and over, along axes of size 1; there is one more of these at the end or in front, or none."""
    shape = draw(st.sampled_from([(*p.theirs.shape, 1), (1, *p.theirs.shape), p.theirs.shape]))
    new = tuple(draw(st.sampled_from([1, 8, 9, 17])) if n == 1 else n for n in shape)
    return p.map(lambda x: x.reshape(shape).broadcast_to(new), lambda x: np.broadcast_to(x.reshape(shape), new))


def joined(draw: st.DrawFn, p: Pair) -> Pair:
    """A tensor and a slice of it behind each other along an axis."""
    if not p.theirs.ndim:
        return p
    axis = draw(st.integers(-p.theirs.ndim, p.theirs.ndim - 1))
    key = tuple(_slice(draw, n) if a == axis % p.theirs.ndim else slice(None) for a, n in enumerate(p.theirs.shape))
    return p.map(lambda x: Tensor.concat([x, x[key]], axis), lambda x: np.concatenate([x, x[key]], axis))


def _factors(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A shape of this many elements."""
    if size == 0:
        return tuple(draw(st.permutations([0, draw(st.integers(0, 3)), draw(st.integers(1, 3))])))
    out: list[int] = []
    while size > 1 and len(out) < 4:
        f = draw(st.sampled_from([k for k in range(1, min(size, 12) + 1) if size % k == 0]))
        out.append(f)
        size //= f
    return tuple(draw(st.permutations([*out, size])))


def _slice(draw: st.DrawFn, n: int) -> slice:
    begin = draw(st.none() | st.integers(-n, n))
    end = draw(st.none() | st.integers(-n, n))
    return slice(begin, end, draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


# Reductions.


def reduced(draw: st.DrawFn, p: Pair) -> tuple[Pair, bool]:
    """A reduction over axes of chance; and whether its value is exact whatever the order."""
    ndim, d = p.theirs.ndim, str(p.theirs.dtype)
    axes = tuple(sorted(draw(st.sets(st.integers(0, ndim - 1))))) if ndim else ()
    axis = None if not axes or draw(st.booleans()) else axes
    keep = draw(st.booleans())
    empty = p.theirs.size == 0
    names = ["any", "all"] if d == "bool" else ["sum", "any", "all", *(["prod"] if d not in FLOATS else [])]
    if not empty:
        names += ["max", "min"] + ([] if d == "bool" else ["mean", "argmax"])
    name = draw(st.sampled_from(names))
    if name == "argmax":
        one = None if axis is None else axis[0]
        return p.map(lambda x: x.argmax(one, keepdim=keep), lambda x: np.argmax(x, one, keepdims=keep)), True
    if name == "mean":
        wide = np.float64 if d == "float64" else np.float32
        return (
            p.map(
                lambda x: x.mean(axis, keep),
                lambda x: x.mean(axis, dtype=np.float64, keepdims=keep).astype(d if d in FLOATS else wide),
            ),
            False,
        )
    numpys = getattr(np, name)
    if name in ("sum", "prod") and d == "float16":
        return p.map(
            lambda x: x.sum(axis, keep), lambda x: x.sum(axis, dtype=np.float32, keepdims=keep).astype(d)
        ), True
    return p.map(lambda x: getattr(x, name)(axis, keep), lambda x: numpys(x, axis=axis, keepdims=keep)), True


def scanned(draw: st.DrawFn, p: Pair) -> Pair:
    """A scan of integers along an axis of chance."""
    axis, d = draw(st.integers(0, p.theirs.ndim - 1)), p.theirs.dtype
    name, numpys = draw(st.sampled_from([("cumsum", np.add), ("cumprod", np.multiply), ("cummax", np.maximum)]))
    return p.map(lambda x: getattr(x, name)(axis).cast(d.name), lambda x: numpys.accumulate(x, axis, dtype=d))


def exact_values(d: str) -> list[Any]:
    """Values whose sums and products of a few hundred are exact in every order."""
    if d == "bool":
        return [False, True]
    return [0, 1, 2, 3] if d.startswith("u") else [0, 1, -1, 2, -3]
