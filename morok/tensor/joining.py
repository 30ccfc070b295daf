"""Tensors put together, taken apart and repeated along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes, promote
from morok.tensor import creation
from morok.tensor.arguments import each, known, only_tensors, whole
from morok.tensor.base import show
from morok.tensor.creators import Creators

T = TypeVar("T", bound="Joining")


class Joining(Creators):
    """Joining, splitting, repeating."""

    __slots__ = ()

    def cat(self: T, *others: T, axis: int = 0) -> T:
        """Tensors behind each other along `axis`; `a.cat(b, c)` or `Tensor.concat([a, b, c])`."""
        if not isinstance(self, Joining):
            raise ShapeError(
                f"cat of {type(self).__name__}", place=caller(), expected="a tensor", hint="Tensor.concat takes a list"
            )
        return type(self).concat([self, *others], axis)

    @classmethod
    def concat(cls: type[T], tensors: Sequence[T], axis: int | None = 0) -> T:
        """Tensors behind each other along `axis`, flattened first for None; dtypes promote.

        ShapeError unless their other dimensions are equal.
        """
        parts = _several(cls, tensors, "concat")
        if axis is None:
            parts, axis = [t.flatten() for t in parts], 0
        first = parts[0]
        a = first._axis(axis)
        for t in parts[1:]:
            if t.ndim != first.ndim or any(x != y for k, (x, y) in enumerate(zip(t.shape, first.shape, strict=True)) if k != a):
                raise ShapeError(
                    f"shapes {' and '.join(show(x.shape) for x in parts)} cannot be joined along axis {axis}",
                    place=caller(),
                    expected="equal dimensions, except along that axis",
                )
        device = creation.same_device([t.device for t in parts])
        d = promote(*[t.dtype for t in parts])
        parts = [t.cast(d) for t in parts if t.shape[a] != 0]
        if not parts:
            return first.cast(d)
        total = sum(known(t, a, "concat") for t in parts)
        begin = 0
        placed: list[T] = []
        for t in parts:
            n = known(t, a, "concat")
            placed.append(t._pad_zero([(begin, total - begin - n) if k == a else None for k in range(t.ndim)]))
            begin += n
        out = placed[-1]
        end = total - known(parts[-1], a, "concat")
        for t, p in zip(reversed(parts[:-1]), reversed(placed[:-1]), strict=True):
            out = (out._positions(a, dtypes.i64) < end).where(p, out)
            end -= known(t, a, "concat")
        return cls._make(out.uop, device)

    @classmethod
    def stack(cls: type[T], tensors: Sequence[T], axis: int = 0) -> T:
        """Tensors of one shape along a new axis."""
        parts = _several(cls, tensors, "stack")
        if any(t.shape != parts[0].shape for t in parts):
            raise ShapeError(
                f"shapes {' and '.join(show(t.shape) for t in parts)} cannot be stacked", place=caller(), expected="one shape"
            )
        return cls.concat([t.unsqueeze(axis) for t in parts], axis if axis >= 0 else axis + parts[0].ndim + 1)

    def unstack(self, axis: int = 0) -> tuple[Self, ...]:
        """The parts along an axis, which they lose."""
        a = self._axis(axis)
        return tuple(self._picked(a, i) for i in range(known(self, a, "unstack")))

    def split(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[Self, ...]:
        """Parts of these sizes along `axis`; of one size for a number, the last one with what is left."""
        a = self._axis(axis)
        n = known(self, a, "split")
        if isinstance(sizes, (tuple, list)):
            parts = each(sizes, len(sizes), "a part", 0)
        else:
            one = whole(sizes, "the size of a part", 1)
            parts = tuple(min(one, n - begin) for begin in range(0, n, one)) or (0,)
        if sum(parts) != n:
            raise ShapeError(
                f"split of shape {show(self.shape)} along axis {axis} into {list(parts)}",
                place=caller(),
                expected=f"{n} together",
            )
        out: list[Self] = []
        begin = 0
        for size in parts:
            out.append(self.shrink([(begin, begin + size) if k == a else None for k in range(self.ndim)]))
            begin += size
        return tuple(out)

    def chunk(self, chunks: int, axis: int = 0) -> tuple[Self, ...]:
        """At most `chunks` parts of one size along `axis`, the last one with what is left."""
        n = known(self, self._axis(axis), "chunk")
        return self.split(max(1, -(-n // whole(chunks, "the number of chunks", 1))), axis)

    def tile(self, *repeats: Any) -> Self:
        """The whole tensor repeated along each axis; missing counts are 1 in front, missing axes stand in front."""
        given = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], (tuple, list)) else repeats
        counts = each(tuple(given), len(given), "a repetition", 0)
        ndim = max(self.ndim, len(counts))
        counts = (1,) * (ndim - len(counts)) + counts
        shape = (1,) * (ndim - self.ndim) + self.shape
        x = self.reshape(tuple(n for d in shape for n in (1, d)))
        x = x.expand(tuple(n for c, d in zip(counts, shape, strict=True) for n in (c, d)))
        return x.reshape(tuple(c * d for c, d in zip(counts, shape, strict=True)))

    def repeat(self, repeats: int, axis: int | None = None) -> Self:
        """Every element `repeats` times, along `axis`; of the flattened tensor for None."""
        whole(repeats, "repeats", 0)
        return self.flatten().repeat_interleave(repeats, 0) if axis is None else self.repeat_interleave(repeats, axis)

    def roll(self, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Self:
        """Elements moved along an axis, those that leave it at one end come back at the other; None: of the flattened tensor."""
        if axis is None:
            return self.flatten().roll(shift, 0).reshape(self.shape)
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        x = self._same()
        for step, named in zip(each(shift, len(axes), "shift", -(1 << 63)), axes, strict=True):
            a = x._axis(named)
            n = known(x, a, "roll")
            if n == 0 or (begin := -step % n) == 0:
                continue
            # of the axis twice, the stretch that begins there
            twice = x.unsqueeze(a).expand((*x.shape[:a], 2, *x.shape[a:])).flatten(a, a + 1)
            x = twice.shrink([(begin, begin + n) if k == a else None for k in range(x.ndim)])
        return x

    def diff(self, axis: int = -1, n: int = 1) -> Self:
        """What each element has more than the one before it along `axis`, `n` times over; one element less each time."""
        a = self._axis(axis)
        x = self._same()
        for _ in range(min(whole(n, "n", 0), known(self, a, "diff"))):
            size = known(x, a, "diff")
            later, earlier = (
                x.shrink([(begin, begin + size - 1) if k == a else None for k in range(x.ndim)]) for begin in (1, 0)
            )
            x = later != earlier if x.dtype.is_bool else later - earlier
        return x

    @classmethod
    def meshgrid(cls: type[T], *axes: T, indexing: str = "xy") -> tuple[T, ...]:
        """Each of these vectors repeated over the axes of the others; "xy" exchanges the first two, "ij" does not."""
        only_tensors(axes, "meshgrid", Joining)
        if indexing not in ("xy", "ij") or any(t.ndim > 1 for t in axes):
            raise ShapeError(
                f"meshgrid of {' and '.join(show(t.shape) for t in axes)}, indexing={indexing!r}",
                place=caller(),
                expected="vectors, and 'xy' or 'ij'",
            )
        order = list(range(len(axes)))
        if indexing == "xy" and len(axes) > 1:
            order[:2] = [1, 0]
        sizes = [t.size for t in axes]
        shape = tuple(sizes[k] for k in order)
        return tuple(t.reshape(tuple(t.size if k == mine else 1 for k in order)).expand(shape) for mine, t in enumerate(axes))


def _several(cls: type[T], given: Sequence[T], what: str) -> list[T]:
    if isinstance(given, Creators) or not isinstance(given, (tuple, list)) or not given:
        raise ShapeError(f"{what} of {type(given).__name__}", place=caller(), expected="a list of at least one tensor")
    only_tensors(given, what, Joining)
    return list(given)
