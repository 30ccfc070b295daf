"""Walks over graphs of nodes: iterative, since graphs are deep, and linear, since nodes are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morok.ir.uop import UOp


def toposort(roots: Iterable[UOp]) -> list[UOp]:
    """Every node below `roots`, operands first, each once."""
    seen: set[UOp] = set()
    out: list[UOp] = []
    enter, finish = seen.add, out.append
    stack: list[tuple[UOp | None, Iterator[UOp]]] = []
    at: UOp | None = None  # the node whose operands are being visited; None: the roots
    pending = iter(roots)
    while True:
        for node in pending:
            if node not in seen:
                enter(node)
                if node.src:
                    stack.append((at, pending))
                    at, pending = node, iter(node.src)
                    break
                finish(node)
        else:
            if at is None:
                return out
            finish(at)
            at, pending = stack.pop()


def operands(node: UOp) -> tuple[UOp, ...]:
    return node.src


def reached(roots: Sequence[UOp], onward: Callable[[UOp], Iterable[UOp]] = operands) -> Iterator[UOp]:
    """Each of `roots`, and each node that is reached from them, once, in no order that counts; `onward` gives the nodes that a
    walk goes on to from one, by default all its operands.
    """
    seen = set(roots)
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        below = [s for s in onward(node) if s not in seen]
        stack += below
        seen.update(below)


def flattened(root: UOp, is_inner: Callable[[UOp], bool]) -> list[UOp]:
    """The nodes at the ends of a tree of inner nodes, in order: `root` itself if it is none."""
    ends: list[UOp] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if is_inner(node):
            stack += reversed(node.src)
        else:
            ends.append(node)
    return ends


def substitute(roots: Sequence[UOp], mapping: Mapping[UOp, UOp]) -> list[UOp]:
    """`roots` with every node of `mapping` replaced at once."""
    done: dict[UOp, UOp] = dict(mapping)
    stack = [r for r in reversed(roots) if r not in done]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        waiting = [s for s in node.src if s not in done]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        src = tuple([done[s] for s in node.src])
        done[node] = node if src == node.src else node.replace(src)
    return [done[r] for r in roots]


def new_forms(
    root: UOp,
    besides: Mapping[UOp, Sequence[UOp]],
    make: Callable[[UOp, Mapping[UOp, UOp]], UOp],
    over: Callable[[UOp, tuple[UOp, ...]], UOp],
) -> dict[UOp, UOp]:
    """The new form of each node below `root`, operands first. A node in `besides` is made by `make`, after its operands and the
    further nodes that `besides` names for it; a node above a changed one is put over its new operands by `over`.
    """
    done: dict[UOp, UOp] = {}
    stack: list[tuple[UOp, Iterator[UOp]]] = []
    at, pending = root, iter((*root.src, *besides.get(root, ())))
    while True:
        for node in pending:
            if node not in done:
                old = node.src
                more = besides.get(node)
                if old or more is not None:
                    stack.append((at, pending))
                    at, pending = node, iter(old if more is None else (*old, *more))
                    break
                done[node] = node
        else:
            if at in besides:
                done[at] = make(at, done)
            else:
                old = at.src
                src = tuple([done[s] for s in old])
                done[at] = at if src == old else over(at, src)
            if not stack:
                return done
            at, pending = stack.pop()
