"""Kernels run a piece at a time, one after the other, so that what they pass on stays in a cache.

The scores of attention are large, and three kernels in turn write and read all of them in memory. But each works on a head at a
time: run for the first head all three, then for the second, and the scores of one head are all that is kept. The outermost loops
of the kernels become variables, whose values the plan counts through; the buffers between them shrink to one piece.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from morok.ir.dtype import PtrType
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.affine import linear
from morok.passes.ranges import const_end

WHOLE_BYTES: Final = 1 << 22  # of a buffer: what no core's own cache keeps until the next kernel reads it
PIECE_BYTES: Final = 1 << 20  # at most, of a piece: what it keeps
LEAST_BYTES: Final = 1 << 17  # of a piece: enough work that starting kernels so often costs nothing
MOST: Final = 1 << 10  # pieces: each is a record of its own in the plan


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel: its Sink, and the buffers by slot, as numbers."""

    ast: UOp
    buffers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps, by number, that run a piece at a time.

    asts     their kernels, which compute the piece that the variables say
    lengths  how many values each of the variables has, the slowest first: see `variable`
    sizes    the elements of each buffer that is only as large as a piece, by its number
    """

    steps: tuple[int, ...]
    asts: tuple[UOp, ...]
    lengths: tuple[int, ...]
    sizes: Mapping[int, int]


def variable(k: int) -> str:
    """The name of the variable that counts the `k`-th loop of a chain."""
    return f"_piece{k}"


def chains(steps: Sequence[Step], groups: Sequence[Sequence[int]], inner: Collection[int], threads: int) -> list[Chain]:
    """The chains among `steps`, no two of which share one.

    groups   steps that may run at the same time, in order: a chain is of such that run alone, one after the other
    inner    the buffers that nothing but these steps reads
    threads  how many share a kernel: each has a cache of its own
    """
    stores = [_store(s.ast) for s in steps]
    written = [None if w is None else s.buffers[w.src[0].src[0].arg] for s, w in zip(steps, stores, strict=True)]
    if not any(w is not None and b in inner and _bytes(w) >= WHOLE_BYTES * threads for w, b in zip(stores, written, strict=True)):
        return []
    found: list[Chain] = []
    at = 0
    while at < len(groups):
        chain = _longest(steps, written, groups[at:], inner, threads)
        if chain is not None:
            found.append(chain)
        at += len(chain.steps) if chain is not None else 1
    return found


def _longest(
    steps: Sequence[Step], written: Sequence[int | None], groups: Sequence[Sequence[int]], inner: Collection[int], threads: int
) -> Chain | None:
    """The longest chain that begins with the first group; `written` is the buffer that each step stores to."""
    members: list[int] = []
    between: list[int] = []
    best: Chain | None = None
    for group in groups:
        if len(group) != 1 or (last := written[group[0]]) is None:
            break
        if members and (between[-1] not in inner or between[-1] not in steps[group[0]].buffers):
            break
        members.append(group[0])
        best = _chain(steps, members, between, last, threads) or best
        if last in between:
            break
        between.append(last)
    return best


def _store(ast: UOp) -> UOp | None:
    """The only store of a kernel to a buffer, which it does not read; None where there is no such one."""
    if len(ast.src) != 1 or ast.src[0].op is not Op.End or ast.src[0].src[0].op is not Op.Store:
        return None
    store = ast.src[0].src[0]
    place = store.src[0]
    if place.op is not Op.Index or place.src[0].op is not Op.DefineGlobal:
        return None
    alone = sum(n.op is Op.Index and n.src[0] is place.src[0] for n in ast.toposort()) == 1
    return store if alone else None


def _bytes(store: UOp) -> int:
    """The size of the buffer that a kernel stores to."""
    memory = store.src[0].src[0].dtype
    assert isinstance(memory, PtrType)
    return memory.size * memory.base.itemsize


def _chain(steps: Sequence[Step], members: Sequence[int], between: Sequence[int], last: int, threads: int) -> Chain | None:
    """These steps as a chain, which store to the buffers `between` them and to the `last`; None where that is not possible or not
    worth it.
    """
    if len(members) < 2:
        return None
    chosen = [steps[m] for m in members]
    if any(last in s.buffers for s in chosen[:-1]):
        return None
    outside = {b for k, s in enumerate(steps) if k not in members for b in s.buffers}
    if not outside.isdisjoint(between):
        return None
    loops = [s.ast.src[0].src[1:] for s in chosen]
    for depth in range(1, min(map(len, loops)) + 1):
        lengths = [const_end(r) for r in loops[0][:depth]]
        same = all([const_end(r) for r in own[:depth]] == lengths and _plain(own[:depth]) for own in loops)
        known = [n for n in lengths if n is not None]
        if not same or len(known) < depth:
            return None
        cut = [_cut(s, between, known) for s in chosen]
        sizes: dict[int, int] = {}
        bytes_: list[int] = []
        for c in cut:
            if c is None:
                return None
            for number, (elements, size) in c[1].items():
                if sizes.setdefault(number, elements) != elements:
                    return None
                bytes_.append(elements * size)
        if max(bytes_) * math.prod(known) < WHOLE_BYTES * threads or max(bytes_) < LEAST_BYTES:
            return None
        if max(bytes_) <= PIECE_BYTES and 1 < math.prod(known) <= MOST:
            return Chain(tuple(members), tuple([c[0] for c in cut if c is not None]), tuple(known), sizes)
    return None


def _plain(ranges: Sequence[UOp]) -> bool:
    return all(r.op is Op.Range and r.arg[1] is AxisType.Loop for r in ranges)


def _cut(step: Step, between: Collection[int], lengths: Sequence[int]) -> tuple[UOp, dict[int, tuple[int, int]]] | None:
    """The kernel of one piece, with the elements of a piece of each buffer `between`, and an element's bytes; None where a piece
    is not one run of consecutive elements of each.
    """
    end = step.ast.src[0]
    outer = end.src[1 : 1 + len(lengths)]
    pieces = [UOp.var(variable(k), r.dtype, 0, n - 1) for k, (r, n) in enumerate(zip(outer, lengths, strict=True))]
    sizes: dict[int, tuple[int, int]] = {}
    mapping: dict[UOp, UOp] = {}
    for node in end.toposort():
        if node.op is not Op.DefineGlobal or step.buffers[node.arg] not in between:
            continue
        assert isinstance(node.dtype, PtrType)
        elements, left = divmod(node.dtype.size, math.prod(lengths))
        if left:
            return None
        small = UOp.new(Op.DefineGlobal, (), node.arg, node.dtype.base.ptr(elements))
        sizes[step.buffers[node.arg]] = elements, node.dtype.base.itemsize
        for user in end.toposort():
            if node in user.src:
                if user.op is not Op.Index or len(user.src) != 2 or not _in_piece(user.src[1], outer, lengths, elements):
                    return None
                zero = dict.fromkeys(outer, UOp.const(0, outer[0].dtype))
                mapping[user] = small.index(substitute((user.src[1],), zero)[0])
    # places inside a piece first: what they hold of the loops that are left stays as it is
    body = substitute(substitute((end.src[0],), mapping), dict(zip(outer, pieces, strict=True)))[0]
    rest = end.src[1 + len(lengths) :]
    return step.ast.replace((body.end(*rest),)), sizes


def _in_piece(index: UOp, outer: Sequence[UOp], lengths: Sequence[int], elements: int) -> bool:
    """Whether an index is `elements` times the number of the piece, plus less than that."""
    total = linear(index)
    steps = [elements * math.prod(islice(lengths, k + 1, None)) for k in range(len(lengths))]
    if [total.terms.get(r, 0) for r in outer] != steps:
        return False
    rest = [(t, c) for t, c in total.terms.items() if t not in outer]
    if any(not t.ranges.isdisjoint(outer) for t, _ in rest):
        return False
    low = total.constant + sum(min(c * int(t.vmin), c * int(t.vmax)) for t, c in rest)
    high = total.constant + sum(max(c * int(t.vmin), c * int(t.vmax)) for t, c in rest)
    return low >= 0 and high < elements
