"""Open ranges: the loops that a node runs in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from morok.ir.cell import facts_of
from morok.ir.op import Op, Undefined

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_memo: Final = "ranges"
_memo_axes: Final = "axes"

# The index of the first operand that is a closed range (those of Wmma are in its metadata).
CLOSES: Final = {Op.Bufferize: 1, Op.Reduce: 1, Op.Store: 2, Op.End: 1}
_NONE: Final[frozenset[UOp]] = frozenset()
_RANGE: Final = Op.Range


def remember(node: UOp, key: str, value: object) -> None:
    """Keep a derived fact on the node. Facts are pure, so two threads that race write the same."""
    facts_of(node)[key] = value


def open_ranges(root: UOp) -> frozenset[UOp]:
    """The ranges below `root` that nothing closes on the way up; a Range is open in itself."""
    found: frozenset[UOp] | None = root.memo.get(_memo)
    if found is None:
        for node in unknown(root, _memo):
            found = _compute(node)
            remember(node, _memo, found)
        assert found is not None
    return found | {root} if root.op is _RANGE else found


def all_open_ranges(nodes: Iterable[UOp]) -> dict[UOp, frozenset[UOp]]:
    """The open ranges of each of these nodes, which come operands first. The result is not kept on the nodes: for nodes
    that are visited once.
    """
    found: dict[UOp, frozenset[UOp]] = {}
    for node in nodes:
        op, src = node.op, node.src
        merged = _merged([found[s] for s in src])
        if op is _RANGE:
            merged |= {node}
        elif op in CLOSES:
            merged = merged.difference(*[{r} if r.op is _RANGE else found[r] for r in src[CLOSES[op] :]])
        found[node] = merged
    return found


def _merged(sets: Sequence[frozenset[UOp]]) -> frozenset[UOp]:
    """The union of sets, without a copy if they are all the same."""
    merged = _NONE
    for more in sets:
        if more is not merged and not more <= merged:
            merged = merged | more if merged and not merged <= more else more
    return merged


def _compute(node: UOp) -> frozenset[UOp]:
    """The open ranges of `node`, without itself."""
    merged = _merged([_of(s) for s in node.src])
    return merged - closed_by(node) if node.op in CLOSES else merged


def closed_by(node: UOp) -> set[UOp]:
    """The ranges that `node` closes; the open ranges of its operands must be in their memos."""
    closed: set[UOp] = set()
    for r in node.src[CLOSES[node.op] :] if node.op in CLOSES else ():
        closed |= {r} if r.op is Op.Range else _of(r)
    return closed


def _of(node: UOp) -> frozenset[UOp]:
    found: frozenset[UOp] = node.memo[_memo]
    # added on demand: in its own memo, a Range would keep itself alive
    return found | {node} if node.op is _RANGE else found


def open_axes(root: UOp) -> frozenset[int]:
    """The axes that an Unroll below `root` opens and nothing closes on the way up."""
    if _memo_axes not in root.memo:
        for node in unknown(root, _memo_axes):
            remember(node, _memo_axes, _compute_axes(node))
    found: frozenset[int] = root.memo[_memo_axes]
    return found


def _compute_axes(node: UOp) -> frozenset[int]:
    below: list[frozenset[int]] = [s.memo[_memo_axes] for s in node.src]
    merged = frozenset().union(*below)
    if node.op is Op.Unroll:
        return merged | {i for i, _ in node.arg}
    if not merged:
        return merged
    if node.op is Op.Contract:
        return merged - {i for i, _ in node.arg}
    return merged.difference(*below[CLOSES[node.op] :]) if node.op in CLOSES else merged


def free_of(x: UOp, r: UOp) -> bool:
    """True if `x` is the same at all iterations of a range `r`, or of all ranges and axes that are open in any other node `r`;
    for storage `r`, if `x` does not mention it.
    """
    if r.op is _RANGE:
        return r not in open_ranges(x)
    if r.dtype.is_ptr:
        return r not in x.toposort()
    return open_ranges(x).isdisjoint(open_ranges(r)) and open_axes(x).isdisjoint(open_axes(r))


def free_of_axes(x: UOp, axes: Iterable[tuple[int, int]]) -> bool:
    """True if `x` is the same for all iterations of these axes."""
    return open_axes(x).isdisjoint([i for i, _ in axes])


def replace_range(root: UOp, r: UOp, value: UOp) -> UOp:
    """`root` with `value` for the range `r` wherever it is open: an op that closes `r` inside keeps it, as it is another loop's.
    What comes after `r` (After) comes after the ranges of `value`: it is what their earlier iterations have left.

    Raises Undefined if a loop inside closes a range that `value` depends on, which it would capture. Callers outside rules give
    that loop an id of its own first; a rule does not apply. Linear in the graph.
    """
    if root is r:
        return value
    if r.op is not Op.Range:  # lanes of an unrolled loop, which nothing binds
        return root.substitute({r: value})
    free = open_ranges(value)
    waited = tuple(sorted(free, key=lambda x: x.arg[0])) or (value,)
    done: dict[UOp, UOp] = {r: value}
    open_ranges(root)
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if r not in open_ranges(node):
            done[node] = node
            continue
        waiting = [s for s in node.src if s not in done]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        closed = closed_by(node)
        if not free.isdisjoint(closed):
            raise Undefined(f"{node.op.name} closes a range of what is put inside it")
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
