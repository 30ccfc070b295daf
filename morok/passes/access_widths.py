"""Helpers of rules/vector/devectorize.rules: the widths of accesses and arithmetic on a target, and lanes at adjacent places."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from operator import lt
from typing import Final

from morok import config
from morok.ir.dtype import AddrSpace, DType, PtrType
from morok.ir.op import Op
from morok.ir.typecheck import PARAMS
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.affine import lane_offsets, linear
from morok.passes.node_order import nodes_of
from morok.passes.target import Target

Lanes = tuple[int, ...]

WIDEST: Final = 1 << 10  # most lanes of a vector that the code generator splits
_LANEWISE: Final = frozenset({Op.Bitcast, Op.Precast})
_IN_LANES: Final = frozenset({Op.Vectorize, Op.VConst, Op.Const})

SMALL: Final = Target("", vector_bytes=16)  # the default target


@dataclass(frozen=True, slots=True)
class Widths:
    """The widths of a target, in lanes, and cached facts about the vectors of one graph.

    limit     most lanes of one arithmetic op
    whole     True if accesses keep the program's widths and the code generator splits them
    simplify  the symbolic rules, applied to the index of one lane
    operands  the vectors that arithmetic of the same width uses
    sizes     cache of `access_widths` by dtype
    whole_leaves, accumulated, lane_offsets  caches of `_has_whole_leaves`, `_is_accumulated` and `offsets`
    """

    target: Target
    limit: int
    whole: bool
    simplify: Callable[[UOp], UOp]
    operands: frozenset[UOp] = frozenset()
    sizes: dict[DType, list[int]] = field(default_factory=dict)
    whole_leaves: dict[UOp, bool] = field(default_factory=dict)
    accumulated: dict[UOp, bool] = field(default_factory=dict)
    lane_offsets: dict[UOp, tuple[UOp, Lanes] | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, root: UOp, target: Target = SMALL, simplify: Callable[[UOp], UOp] = lambda x: x, mode: int = 1
    ) -> Widths:
        """The widths for the graph under `root`.

        mode  the ops to split: 0 loads and stores; 1 arithmetic too; 2 none
        """
        vectors = target.vector_bytes > 0  # modes 0 and 2 do not apply to targets with scalar arithmetic
        limit = WIDEST if vectors and mode != 1 else arithmetic_lanes(target)
        # indices and gates are analysed lane by lane
        arithmetic = [n for n in nodes_of(root) if n.dtype.count > 1 and n.op in PARAMS]
        numbers = [n for n in arithmetic if not n.dtype.is_index and not n.dtype.is_bool]
        operands = frozenset(
            s for n in numbers for s in n.src if s.dtype.count == n.dtype.count and not s.dtype.is_index
        )
        return cls(target, limit, vectors and mode == 2, simplify, operands)


def access_widths(target: Target, d: DType, whole: bool = False) -> list[int]:
    """The numbers of consecutive elements that one load or store may access, widest first: powers of two.

    whole  no limit by the target, since the code generator splits accesses: up to WIDEST
    """
    if whole:
        return [1 << k for k in reversed(range(WIDEST.bit_length()))]
    most = max(1, target.memory_bytes // max(1, d.scalar().itemsize))
    if target.has_local and d.scalar().itemsize == 2 and not config.ALLOW_HALF8.value:
        most = min(most, 4)
    if target.vector_bytes:  # an access wider than arithmetic would only be split again
        most = min(most, arithmetic_lanes(target))
    return [1 << k for k in reversed(range(most.bit_length()))]


def _sizes(w: Widths, d: DType) -> list[int]:
    found = w.sizes.get(d)
    if found is None:
        found = w.sizes[d] = access_widths(w.target, d, w.whole)
    return found


def arithmetic_lanes(target: Target) -> int:
    """The most lanes of a vector in arithmetic: a register of 32-bit lanes. LLVM splits vectors of wider elements well."""
    return max(1, target.vector_bytes // 4)


# Indices.


@helper
def offsets(i: UOp, w: Widths) -> tuple[UOp, Lanes] | None:
    """(base, offsets): a vector of indices as a scalar base plus a constant for each lane; None if lanes differ otherwise."""
    if i not in w.lane_offsets:
        w.lane_offsets[i] = _offsets(i, w)
    return w.lane_offsets[i]


def _offsets(i: UOp, w: Widths) -> tuple[UOp, Lanes] | None:
    found = lane_offsets(i)
    if found is not None:
        return found[0].node(i), found[1]
    if i.op is not Op.Vectorize:
        return None
    sums = [linear(w.simplify(s)) for s in i.src]
    if any(s.terms != sums[0].terms for s in sums):
        return None
    return sums[0].node(i, constant=False), tuple([s.constant for s in sums])


@helper
def scattered(i: UOp, w: Widths) -> bool:
    """True if a vector of indices must be split into lanes before these can be compared."""
    return i.op not in _IN_LANES and offsets(i, w) is None


@helper
def gated(i: UOp, w: Widths) -> bool:
    """True if a vector of indices has a gate of its own for each lane."""
    return i.op is Op.Where and i.src[2].op is Op.Invalid and i.src[0].dtype.count > 1


@helper
def in_lanes(x: UOp, w: Widths) -> bool:
    """True if a vector is a constant or a Vectorize, whose lanes can be compared."""
    return x.op in _IN_LANES


@helper
def alike(g: UOp, w: Widths) -> Lanes | None:
    """For each lane the number of the first lane equal to it; None if the lanes cannot be compared."""
    if g.op is Op.Const:
        return (0,) * g.dtype.count
    lanes = g.src if g.op is Op.Vectorize else g.arg if g.op is Op.VConst else None
    if lanes is None:
        return None
    first: dict[object, int] = {}
    return tuple([first.setdefault(x, k) for k, x in enumerate(lanes)])


@helper
def runs(at: Sequence[int], same: Sequence[int], base: UOp, n: UOp, w: Widths) -> tuple[tuple[Lanes, ...], Lanes]:
    """(runs, positions): runs of lanes at consecutive offsets, one access each, and each lane's position in the concatenation.
    Of several lanes at one offset the last is in a run, and all have its position.

    same  a class for each lane, and every run is within one class; empty: all lanes are in one class
    """
    if not same and all(map(lt, at, islice(at, 1, None))):  # ascending, as most vectors are: lanes keep their positions
        ends = list(accumulate(size for _, size in accesses(_sizes(w, n.dtype), at, _alignment(base, w))))
        return tuple([tuple(range(*cut)) for cut in pairwise([0, *ends])]), tuple(range(len(at)))
    found: list[Lanes] = []
    where = [0] * len(at)
    count = 0
    alignment = _alignment(base, w)
    for by_offset in _by_offset(at, same):
        for start, size in accesses(_sizes(w, n.dtype), sorted(by_offset), alignment):
            owners = [by_offset[start + i] for i in range(size)]
            for k, lanes in enumerate(owners):
                for lane in lanes:
                    where[lane] = count + k
            count += size
            found.append(tuple([lanes[-1] for lanes in owners]))
    return tuple(found), tuple(where)


@helper
def last_runs(at: Sequence[int], same: Sequence[int], base: UOp, v: UOp, w: Widths) -> tuple[Lanes, ...] | None:
    """The runs of `runs`, with the last of several lanes stored at one offset; None if lanes of two classes share an offset."""
    if same and sum(map(len, _by_offset(at, same))) != len(set(at)):
        return None
    return runs(at, same, base, v, w)[0]


def _by_offset(at: Sequence[int], same: Sequence[int]) -> list[dict[int, list[int]]]:
    groups: dict[int, dict[int, list[int]]] = {}
    for lane, (offset, number) in enumerate(zip(at, same or (0,) * len(at), strict=True)):
        groups.setdefault(number, {}).setdefault(offset, []).append(lane)
    return list(groups.values())


def _alignment(base: UOp, w: Widths) -> int | None:
    """A divisor of the base of an access, in elements, if the target's wide accesses must be aligned; else None."""
    return linear(base).factor if w.target.aligned else None


def accesses(widths: Sequence[int], at: Sequence[int], alignment: int | None) -> list[tuple[int, int]]:
    """Accesses (start, size), of these widths, that cover sorted offsets; `widths` are tried in order, the widest first.

    alignment  a divisor of the base of the offsets; None if a wide access may begin anywhere
    """
    out: list[tuple[int, int]] = []
    i = 0
    while i < len(at):
        start = at[i]
        run = 1
        while i + run < len(at) and at[i + run] == start + run:
            run += 1
        while run:
            size = next(
                n for n in widths if n <= run and (alignment is None or (start % n == 0 and alignment % n == 0))
            )
            out.append((start, size))
            start, run, i = start + size, run - size, i + size
    return out


@helper
def bases(i: UOp, same: Lanes, w: Widths) -> tuple[tuple[Lanes, ...], Lanes] | None:
    """(groups, positions): the lanes grouped by equal bases, and each lane's position in the concatenated groups; None if `i` is
    no Vectorize.
    """
    if i.op is not Op.Vectorize:
        return None
    groups: dict[object, list[int]] = {}
    for lane, s in enumerate(i.src):
        groups.setdefault((frozenset(linear(w.simplify(s)).terms.items()), same[lane] if same else 0), []).append(lane)
    order = [lane for lanes in groups.values() for lane in lanes]
    return tuple(map(tuple, groups.values())), tuple([order.index(lane) for lane in range(len(order))])


# Lanes.


@helper
def at_once(x: UOp, w: Widths) -> int:
    """The lanes of each piece of a node that the rules split; 0 for a node that they leave whole.

    Left whole besides nodes that are not lane by lane: arithmetic of at most w.limit lanes that other arithmetic uses, or whose
    leaves are all registers or contiguous loads; and arithmetic on accumulators, which stage 19 splits along with them.
    """
    lanewise = x.op in PARAMS or x.op in _LANEWISE
    return w.limit if lanewise and not _stays_whole(x, w) and not _is_accumulated(x, w) else 0


@helper
def sections(x: UOp, wanted: Sequence[int], w: Widths) -> tuple[list[int], list[int]] | None:
    """(cuts, operands): the wanted lanes of a Cat cut into runs from one operand each, from 0 to the number of lanes, and the
    number of each run's operand.

    None for more lanes than one op computes (they are never used together), and for a Cat of loads alone (stage 19 takes their
    lanes).
    """
    if len(wanted) > arithmetic_lanes(w.target) or all(s.op is Op.Load for s in x.src):
        return None
    ends = list(accumulate(s.dtype.count for s in x.src))
    of = [bisect_right(ends, lane) for lane in wanted]
    begins = [k for k in range(len(of)) if k == 0 or of[k] != of[k - 1]]
    return [*begins, len(of)], [of[k] for k in begins]


@helper
def widest(n: UOp, w: Widths) -> int:
    """The most elements of `n`'s dtype that one load or store may access."""
    return _sizes(w, n.dtype)[0]


def _stays_whole(x: UOp, w: Widths) -> bool:
    one = 1 < x.dtype.count <= w.limit and x.op in PARAMS
    return one and (x in w.operands or _has_whole_leaves(x, w))


def _has_whole_leaves(node: UOp, w: Widths) -> bool:
    """True if a node is vector arithmetic whose leaves are all registers or contiguous loads."""

    def below(n: UOp) -> bool | list[UOp]:
        if n.dtype.count == 1 or n.op not in PARAMS:
            return False
        return [s for s in _vectors(n) if not _is_accumulator(s) and not _is_row(s, w)]

    return _decided(node, w.whole_leaves, below, all)


def _vectors(node: UOp) -> list[UOp]:
    """The operands of a node; the whole vector for a Gep."""
    return [s.src[0] if s.op is Op.Gep else s for s in node.src]


def _decided(
    node: UOp,
    known: dict[UOp, bool],
    below: Callable[[UOp], bool | list[UOp]],
    combined: Callable[[Iterable[bool]], bool],
) -> bool:
    """The answer for a node, cached in `known`: that of `below`, or all answers for the nodes that it gives, `combined`."""
    stack = [node]
    while stack:
        n = stack[-1]
        if n not in known:
            found = below(n)
            if isinstance(found, bool):
                known[n] = found
            elif missing := [s for s in found if s not in known]:
                stack += missing
                continue
            else:
                known[n] = combined(known[s] for s in found)
        stack.pop()
    return known[node]


def _is_row(x: UOp, w: Widths) -> bool:
    """True if a vector is a contiguous load without a gate, or a Cat of such loads."""
    if x.op is Op.Cat:
        return all(_is_row(s, w) for s in x.src)
    if x.op is not Op.Load or len(x.src) > 1 or x.src[0].op is not Op.Index or len(x.src[0].src) != 2:
        return False
    i = x.src[0].src[1]
    if i.dtype.count == 1:
        return x.dtype.count > 1
    found = offsets(i, w)
    return found is not None and all(b - a == 1 for a, b in pairwise(found[1]))


def _is_accumulated(node: UOp, w: Widths) -> bool:
    """True if a node is arithmetic wider than w.limit that depends on registers. The rules know nothing about the contents of
    registers, so splitting such a node into lanes would simplify none of them.
    """

    def below(n: UOp) -> bool | list[UOp]:
        if n.dtype.count <= w.limit or n.op not in PARAMS or not all(map(_is_number, (n, *n.src))):
            return False
        vectors = _vectors(n)
        return any(map(_is_accumulator, vectors)) or vectors

    return _decided(node, w.accumulated, below, any)


def _is_number(x: UOp) -> bool:
    return not x.dtype.is_index and not x.dtype.is_bool


def _is_accumulator(x: UOp) -> bool:
    """True if a vector is loaded from a register."""
    if x.op is not Op.Load or x.src[0].op is not Op.Index:
        return False
    d = x.src[0].src[0].dtype
    return isinstance(d, PtrType) and d.space is AddrSpace.REG
