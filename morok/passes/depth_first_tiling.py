"""Depth-first tiling: chains of kernels that run piece by piece, so that intermediate results stay in cache.

Example: attention has large scores, and three kernels in turn write and read all of them. But the outermost loop of each kernel
is over heads: if all three run for the first head, then for the second, only the scores of one head are kept. The outermost loops
of the kernels become variables that the plan iterates over, and the buffers between the kernels shrink to one piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final

from morok.ir.dtype import PtrType
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.affine import linear
from morok.passes.range_stages import const_end

# least size of a buffer to tile: no core's own cache keeps it until the next kernel reads it
WHOLE_BYTES: Final = 1 << 22
PIECE_BYTES: Final = 1 << 20  # most bytes of a piece: a core's own cache keeps it
LEAST_BYTES: Final = 1 << 17  # least bytes of a piece: its work outweighs the start of a kernel
MOST: Final = 1 << 10  # most pieces: each is a record of its own in the plan
LONGEST: Final = 64  # most kernels of a chain, so that the search is linear in the length of a program


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel: its Sink, and the number of its buffer in each slot."""

    ast: UOp
    buffers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps, by number, that run a piece at a time.

    asts     their kernels, each computing the piece with the number in the variables
    lengths  the number of values of each variable, the slowest first: see `variable`
    sizes    the elements of each buffer that shrinks to one piece, by its number
    """

    steps: tuple[int, ...]
    asts: tuple[UOp, ...]
    lengths: tuple[int, ...]
    sizes: Mapping[int, int]


_Piece = tuple[UOp, dict[int, int]]  # the kernel of one piece, and the elements of each buffer that shrinks to one


def variable(k: int) -> str:
    """The name of the variable that counts the `k`-th loop of a chain."""
    return f"_piece{k}"


def chains(steps: Sequence[Step], groups: Sequence[Sequence[int]], inner: Collection[int], threads: int) -> list[Chain]:
    """Disjoint chains of `steps`.

    groups   steps that may run in parallel, in order: a chain consists of consecutive groups of one step
    inner    the buffers that only these steps read
    threads  the threads that share a kernel, each with a cache of its own
    """
    users: dict[int, set[int]] = {}
    for k, step in enumerate(steps):
        for buffer in step.buffers:
            users.setdefault(buffer, set()).add(k)
    known: dict[tuple[int, tuple[int, ...], frozenset[int]], _Piece | None] = {}

    def cut(m: int, between: Collection[int], lengths: tuple[int, ...]) -> _Piece | None:
        key = (m, lengths, frozenset(between).intersection(steps[m].buffers))
        if key not in known:
            known[key] = _cut(steps[m], between, lengths)
        return known[key]

    found: list[Chain] = []
    for run in _runs(steps, groups):
        worth = any(link.bytes >= WHOLE_BYTES * threads for link in run[:-1])
        at = 0
        while worth and at < len(run) - 1:
            chain = _longest(run[at : at + LONGEST], users, inner, threads, cut)
            if chain is not None:
                found.append(chain)
            at += len(chain.steps) if chain is not None else 1
    return found


@dataclass(frozen=True, slots=True)
class _Link:
    """A step that may be in a chain.

    number   of the step
    written  the number of the buffer that it stores to, which has `bytes` bytes
    buffers  the numbers of all buffers that it uses
    loops    the lengths of its outermost loops, up to the first that is no Loop axis of constant length
    """

    number: int
    written: int
    bytes: int
    buffers: frozenset[int]
    loops: tuple[int, ...]


def _runs(steps: Sequence[Step], groups: Sequence[Sequence[int]]) -> list[list[_Link]]:
    """Maximal runs of consecutive groups of one step, each step using the buffer that the one before wrote."""
    links: dict[UOp, tuple[int, int, tuple[int, ...]] | None] = {}
    runs: list[list[_Link]] = [[]]
    for group in groups:
        step = steps[group[0]]
        if step.ast not in links:
            links[step.ast] = _link_facts(step.ast)
        found = links[step.ast] if len(group) == 1 else None
        if found is None:
            runs.append([])
            continue
        slot, size, loops = found
        if runs[-1] and runs[-1][-1].written not in step.buffers:
            runs.append([])
        runs[-1].append(_Link(group[0], step.buffers[slot], size, frozenset(step.buffers), loops))
    return runs


def _link_facts(ast: UOp) -> tuple[int, int, tuple[int, ...]] | None:
    """(slot that a kernel stores to, bytes of its buffer, _Link.loops); None for a kernel that no chain can have."""
    store = _store(ast)
    if store is None:
        return None
    buffer = store.src[0].src[0]
    assert isinstance(buffer.dtype, PtrType)
    loops: list[int] = []
    for r in ast.src[0].src[1:]:
        length = const_end(r) if r.op is Op.Range and r.arg[1] is AxisType.Loop else None
        if length is None:
            break
        loops.append(length)
    return buffer.arg, buffer.dtype.size * buffer.dtype.base.itemsize, tuple(loops)


def _longest(
    run: Sequence[_Link],
    users: Mapping[int, Collection[int]],
    inner: Collection[int],
    threads: int,
    cut: Callable[[int, Collection[int], tuple[int, ...]], _Piece | None],
) -> Chain | None:
    """The longest chain that begins with the first of these steps; None if there is none."""
    loops = run[0].loops
    candidates: list[tuple[int, tuple[int, ...]]] = []  # (number of steps, Chain.lengths)
    between: set[int] = set()
    read: set[int] = set()  # the buffers of all members but the last
    elsewhere: set[tuple[int, int]] = set()  # (buffer of `between`, step that uses it and is no member)
    members: set[int] = set()
    largest = 0
    for count, link in enumerate(run, 1):
        if count > 1:
            passed = run[count - 2]
            if passed.written in between or passed.written not in inner:
                break
            between.add(passed.written)
            read |= passed.buffers
            elsewhere.update((passed.written, k) for k in users[passed.written] if k not in members)
            largest = max(largest, passed.bytes)
        members.add(link.number)
        elsewhere.difference_update((b, link.number) for b in link.buffers)
        loops = _common(loops, link.loops)
        if not loops:
            break
        if count > 1 and not elsewhere and link.written not in read:
            lengths = _pieces(largest, loops, threads)
            if lengths is not None:
                candidates.append((count, lengths))
    most = len(run)
    for count, lengths in reversed(candidates):
        if count <= most:
            chain, most = _chain(run[:count], lengths, cut)
            if chain is not None:
                return chain
    return None


def _common(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The longest common prefix."""
    return tuple([x for x, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))])


def _pieces(largest: int, loops: Sequence[int], threads: int) -> tuple[int, ...] | None:
    """The lengths of the outer loops that the plan iterates over, if the largest buffer between has `largest` bytes; None if
    tiling does not pay.
    """
    if largest < WHOLE_BYTES * threads:
        return None
    for depth in range(1, len(loops) + 1):
        pieces = math.prod(loops[:depth])
        if largest < LEAST_BYTES * pieces:
            return None
        if largest <= PIECE_BYTES * pieces and 1 < pieces <= MOST:
            return tuple(loops[:depth])
    return None


def _store(ast: UOp) -> UOp | None:
    """The only store of a kernel, to a buffer that it does not read; None for other kernels."""
    if len(ast.src) != 1 or ast.src[0].op is not Op.End or ast.src[0].src[0].op is not Op.Store:
        return None
    store = ast.src[0].src[0]
    place = store.src[0]
    if place.op is not Op.Index or place.src[0].op is not Op.DefineGlobal:
        return None
    alone = sum(n.op is Op.Index and n.src[0] is place.src[0] for n in ast.toposort()) == 1
    return store if alone else None


def _chain(
    run: Sequence[_Link],
    lengths: tuple[int, ...],
    cut: Callable[[int, Collection[int], tuple[int, ...]], _Piece | None],
) -> tuple[Chain | None, int]:
    """(chain of these steps, their number), or (None, the most of them that may still be a chain)."""
    between = {link.written for link in run[:-1]}
    asts: list[UOp] = []
    sizes: dict[int, int] = {}
    for k, link in enumerate(run):
        piece = cut(link.number, between, lengths)
        if piece is None or any(
            sizes.setdefault(number, elements) != elements for number, elements in piece[1].items()
        ):
            return None, k + 1  # as the last of a shorter chain, step k keeps its whole buffer
        asts.append(piece[0])
    return Chain(tuple([link.number for link in run]), tuple(asts), lengths, sizes), len(run)


def _cut(step: Step, between: Collection[int], lengths: Sequence[int]) -> _Piece | None:
    """The kernel of one piece, and the elements of a piece of each buffer `between` that it uses; None if a piece is not a
    contiguous part of each.
    """
    end = step.ast.src[0]
    outer = end.src[1 : 1 + len(lengths)]
    pieces = [UOp.var(variable(k), r.dtype, 0, n - 1) for k, (r, n) in enumerate(zip(outer, lengths, strict=True))]
    sizes: dict[int, int] = {}
    mapping: dict[UOp, UOp] = {}
    for node in end.toposort():
        if node.op is not Op.DefineGlobal or step.buffers[node.arg] not in between:
            continue
        assert isinstance(node.dtype, PtrType)
        elements, left = divmod(node.dtype.size, math.prod(lengths))
        if left:
            return None
        small = UOp.new(Op.DefineGlobal, (), node.arg, node.dtype.base.ptr(elements))
        sizes[step.buffers[node.arg]] = elements
        for user in end.toposort():
            if node in user.src:
                if (
                    user.op is not Op.Index
                    or len(user.src) != 2
                    or not _in_piece(user.src[1], outer, lengths, elements)
                ):
                    return None
                zero = dict.fromkeys(outer, UOp.const(0, outer[0].dtype))
                mapping[user] = small.index(substitute((user.src[1],), zero)[0])
    # first the indices inside a piece (outer loops become 0), then all other uses of the outer loops
    body = substitute(substitute((end.src[0],), mapping), dict(zip(outer, pieces, strict=True)))[0]
    rest = end.src[1 + len(lengths) :]
    return step.ast.replace((body.end(*rest),)), sizes


def _in_piece(index: UOp, outer: Sequence[UOp], lengths: Sequence[int], elements: int) -> bool:
    """True if an index is `elements` times the number of the piece, plus an offset in [0, elements)."""
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
