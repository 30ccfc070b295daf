"""Open ranges: the loops that a node runs in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from morok.ir.cell import facts_of
from morok.ir.op import BINDERS, AxisType, Op, Undefined

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_memo: Final = "ranges"
_memo_axes: Final = "axes"

# The index of the first operand that is a closed range (those of Wmma are in its metadata).
CLOSES: Final = {Op.Bufferize: 1, Op.Reduce: 1, Op.Store: 2, Op.End: 1}
VECTOR_AXES: Final = frozenset({AxisType.Upcast, AxisType.Unroll})  # the kinds of ranges that are axes
_NONE: Final[frozenset[UOp]] = frozenset()
_NO_AXES: Final[frozenset[int]] = frozenset()
_RANGE: Final = Op.Range
_UNROLL: Final = Op.Unroll
_CONTRACT: Final = Op.Contract


def remember(node: UOp, key: str, value: object) -> None:
    """Keep a derived fact on the node. Facts are pure, so two threads that race write the same."""
    facts_of(node)[key] = value


def vector_axis(r: UOp) -> int | None:
    """The number of the axis that a range is: one of kind Upcast or Unroll is the axis of its number, as an Unroll opens it and
    a Contract closes it (docs/ops.md). None for any other node.
    """
    return r.arg[0] if r.op is _RANGE and r.arg[1] in VECTOR_AXES else None


def axes_of(x: UOp) -> tuple[tuple[int, int], ...]:
    """The axes that a node opens by itself, with their lengths. Undefined where one has no number as its length, or none."""
    if x.op is _UNROLL:
        found: tuple[tuple[int, int], ...] = x.arg
        return found
    axis = vector_axis(x)
    if axis is None:
        return ()
    end = x.src[0]
    if end.op is not Op.Const or end.arg < 1:
        raise Undefined(f"axis {axis} has no constant length")
    return ((axis, int(end.arg)),)


def is_spread(node: UOp) -> bool:
    """True of a statement: it is done at all iterations of the axes that are open in its operands, and leaves none open."""
    return node.dtype.kind == "void"


def closed_by(node: UOp) -> tuple[frozenset[UOp], frozenset[int]]:
    """The ranges that `node` closes, and the axes."""
    first = CLOSES.get(node.op)
    if first is None:
        return _NONE, frozenset([a for a, _ in node.arg]) if node.op is _CONTRACT else _NO_AXES
    binders = node.src[first:]
    ranges = [r for r in binders if r.op is _RANGE]
    axes = [a for r in binders if r.op is _UNROLL for a, _ in r.arg]
    vectors = [a for r in ranges if (a := vector_axis(r)) is not None]
    if vectors:
        ranges = [r for r in ranges if vector_axis(r) is None]
    return frozenset(ranges), frozenset(axes + vectors) if axes or vectors else _NO_AXES


def binders(src: tuple[UOp, ...], first: int) -> tuple[UOp, ...]:
    """Operands of an op that closes loops, from `first` on, once loops were replaced in them: an expression stands for the ranges
    in it, and for the lanes that some have become.
    """
    if all(s.op in BINDERS for s in src[first:]):
        return src
    found: list[UOp] = []
    seen: set[UOp] = set()
    for s in src[first:]:
        stack = [s]
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            if n.op is _RANGE or n.op is _UNROLL or (n is s and n.op is Op.Const):
                found.append(n)
            else:
                stack += reversed(n.src)
            if n.op is not Op.Const:
                seen.add(n)
    return (*src[:first], *found)


def open_ranges(root: UOp) -> frozenset[UOp]:
    """The ranges below `root` that nothing closes on the way up; a Range is open in itself."""
    found: frozenset[UOp] | None = root.memo.get(_memo)
    if found is None:
        for node in unknown(root, _memo):
            found = _left_open(node, [_remembered_ranges(s) for s in node.src])
            remember(node, _memo, found)
        assert found is not None
    return found | {root} if root.op is _RANGE else found


def all_open_ranges(nodes: Iterable[UOp]) -> dict[UOp, frozenset[UOp]]:
    """The open ranges of each of these nodes, which come operands first. The result is not kept on the nodes: for nodes
    that are visited once.
    """
    found: dict[UOp, frozenset[UOp]] = {}
    for node in nodes:
        left = _left_open(node, [found[s] for s in node.src])
        found[node] = left | {node} if node.op is _RANGE else left
    return found


def _merged(sets: Sequence[frozenset[UOp]]) -> frozenset[UOp]:
    """The union of sets, without a copy if they are all the same."""
    merged = _NONE
    for more in sets:
        if more is not merged and not more <= merged:
            merged = merged | more if merged and not merged <= more else more
    return merged


def _left_open(node: UOp, below: Sequence[frozenset[UOp]]) -> frozenset[UOp]:
    """The ranges that are open in a node's operands, without those that it closes."""
    merged = _merged(below)
    spread = is_spread(node)
    if not merged or not (spread or node.op in CLOSES or node.op is _CONTRACT):
        return merged
    ranges, axes = closed_by(node)
    if axes or spread:
        ranges |= {r for r in merged if (a := vector_axis(r)) is not None and (spread or a in axes)}
    return merged - ranges


def _remembered_ranges(node: UOp) -> frozenset[UOp]:
    found: frozenset[UOp] = node.memo[_memo]
    # added on demand: in its own memo, a Range would keep itself alive
    return found | {node} if node.op is _RANGE else found


def open_axes(root: UOp) -> frozenset[int]:
    """The axes that an Unroll below `root` opens, or a range that is one, and nothing closes on the way up: no op that closes it,
    and no statement.
    """
    if _memo_axes not in root.memo:
        for node in unknown(root, _memo_axes):
            remember(node, _memo_axes, _compute_axes(node))
    found: frozenset[int] = root.memo[_memo_axes]
    return found


def _compute_axes(node: UOp) -> frozenset[int]:
    if is_spread(node):
        return _NO_AXES
    merged: frozenset[int] = _NO_AXES.union(*[s.memo[_memo_axes] for s in node.src])
    if node.op is _UNROLL:
        return merged | {a for a, _ in node.arg}
    axis = vector_axis(node)
    if axis is not None:
        return merged | {axis}
    return merged - closed_by(node)[1] if merged else merged


def free_of(x: UOp, r: UOp) -> bool:
    """True if `x` is the same at all iterations of a range `r`, or of all ranges and axes that are open in any other node `r`;
    for storage `r`, if `x` does not mention it.
    """
    if r.op is _RANGE:
        axis = vector_axis(r)
        return r not in open_ranges(x) if axis is None else axis not in open_axes(x)
    if r.dtype.is_ptr:
        return r not in x.toposort()
    return open_ranges(x).isdisjoint(open_ranges(r)) and open_axes(x).isdisjoint(open_axes(r))


def free_of_axes(x: UOp, axes: Iterable[tuple[int, int]]) -> bool:
    """True if `x` is the same for all iterations of these axes."""
    return open_axes(x).isdisjoint([i for i, _ in axes])


def replace_range(root: UOp, r: UOp, value: UOp) -> UOp:
    """`root` with `value` for the range `r` wherever it is open: an op that closes `r` inside keeps it, as it is another loop's.
    What comes after `r` (After) comes after the ranges of `value`: it is what their earlier iterations have left.

    Raises Undefined if a loop inside closes a range that `value` depends on, or a statement an axis, which it would capture, or
    if `r` is an axis that another node opens, and if it is no range. Callers outside rules give that loop an id of its own first;
    a rule does not apply. Linear in the graph.
    """
    if root is r:
        return value
    if r.op is not _RANGE:
        raise Undefined(f"{r.op.name} is no range")
    axis = vector_axis(r)
    free, axes = open_ranges(value), open_axes(value)
    waited = tuple(sorted(free, key=lambda x: x.arg[0])) or (value,)
    done: dict[UOp, UOp] = {r: value}
    open_ranges(root)
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if r not in open_ranges(node) if axis is None else axis not in open_axes(node):
            done[node] = node
            continue
        waiting = [s for s in node.src if s not in done]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if axis is not None and (
            vector_axis(node) == axis or (node.op is _UNROLL and axis in [a for a, _ in node.arg])
        ):
            raise Undefined(f"{node.op.name} opens the axis too")
        ranges, closed = closed_by(node)
        if not free.isdisjoint(ranges) or not axes.isdisjoint(closed):
            raise Undefined(f"{node.op.name} closes a range of what is put inside it")
        if axes and is_spread(node):
            raise Undefined(f"{node.op.name} would be done at all iterations of an axis that is put inside it")
        src = [done[s] for s in node.src]
        if node.op is Op.After and r in node.src[1:]:
            src[1:] = dict.fromkeys(x for s in node.src[1:] for x in (waited if s is r else (done[s],)))
        done[node] = node.replace(tuple(src))
    return done[root]


def unknown(root: UOp, key: str) -> list[UOp]:
    """The nodes below `root` without the fact `key` in their memos, operands first. All nodes below one with it have it too."""
    out: list[UOp] = []
    seen: set[UOp] = set()
    stack: list[UOp | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:  # all operands of the next node on the stack are visited
            done = stack.pop()
            assert done is not None
            out.append(done)
        elif node not in seen and key not in node.memo:
            seen.add(node)
            if node.src:
                stack += (node, None)
                stack += node.src
            else:
                out.append(node)
    return out
