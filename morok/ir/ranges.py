"""Open ranges: which loops a node runs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_memo: Final = "ranges"

# The first operand that is a range being closed (Wmma's are in its metadata).
CLOSES: Final = {Op.Bufferize: 1, Op.Reduce: 1, Op.Store: 2, Op.End: 1}
_NONE: Final[frozenset[UOp]] = frozenset()


def remember(node: UOp, key: str, value: object) -> None:
    """Keep a derived fact on the node. Facts are pure, so two threads that race write the same."""
    node.memo[key] = value


def open_ranges(root: UOp) -> frozenset[UOp]:
    """The ranges below `root` that nothing closes on the way up; a Range is open in itself."""
    if _memo not in root.memo:
        for node in unknown(root, _memo):
            remember(node, _memo, _compute(node))
    return _of(root)


def _compute(node: UOp) -> frozenset[UOp]:
    """The open ranges of `node`, without itself."""
    below = [b for s in node.src if (b := _of(s))]
    if not below:
        return _NONE
    merged = below[0] if all(b is below[0] or b == below[0] for b in below) else frozenset().union(*below)
    first = CLOSES.get(node.op)
    if first is None:
        return merged
    closed: set[UOp] = set()
    for r in node.src[first:]:
        closed |= {r} if r.op is Op.Range else _of(r)
    return merged - closed


def _of(node: UOp) -> frozenset[UOp]:
    found: frozenset[UOp] = node.memo[_memo]
    # made on demand, so that a Range is not kept alive by what is remembered about itself
    return found | {node} if node.op is Op.Range else found


def unknown(root: UOp, key: str) -> list[UOp]:
    """The nodes below `root` that do not remember the fact `key`, operands first; below one that does all others do."""
    out: list[UOp] = []
    seen: set[UOp] = set()
    stack: list[tuple[UOp, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            out.append(node)
        elif node not in seen and key not in node.memo:
            seen.add(node)
            stack.append((node, True))
            stack.extend([(s, False) for s in node.src if s not in seen])
    return out
