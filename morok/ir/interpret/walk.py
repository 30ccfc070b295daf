"""Walks over one program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from morok.ir.op import Op
from morok.ir.uop import UOp


def operands(node: UOp) -> tuple[UOp, ...]:
    """The operands that the value of a node depends on, in the same program: not the program of a kernel, and not the nodes that
    a Range waits for, which only order a list of instructions.
    """
    if node.op is Op.Range:
        return node.src[:1]
    return node.src[1:] if node.op is Op.Kernel else node.src


def order(roots: Iterable[UOp], below: Callable[[UOp], Sequence[UOp]] = operands) -> list[UOp]:
    """Every node of the program below `roots`, operands first."""
    seen: set[UOp] = set()
    out: list[UOp] = []
    stack = [(r, False) for r in roots]
    while stack:
        node, ready = stack.pop()
        if ready:
            out.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend([(s, False) for s in below(node) if s not in seen])
    return out
