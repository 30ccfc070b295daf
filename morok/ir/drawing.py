"""Drawings of graphs: one line a node, `[id] OP : dtype`, a shared node once and then `-> (same as above)`."""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.text import argument, declaration, literal
from morok.ir.uop import UOp

DEEPEST: Final = 48  # levels of indentation; what lies deeper is drawn below, from the left margin again


def label(node: UOp) -> str:
    """The text of `node` in a drawing, without its dtype: op and argument."""
    if node.op is Op.DefineVar:
        return f"DefineVar {declaration(node)}"
    if node.op is Op.Const:
        return f"Const {literal(node.dtype.scalar(), node.arg)}"
    fields = node.entry.fields
    if not fields or node.arg is None:
        return node.op.name
    values = (node.arg,) if len(fields) == 1 else node.arg
    return f"{node.op.name} " + ", ".join(f"{f}={argument(v)}" for f, v in zip(fields, values, strict=True))


def draw(root: UOp) -> str:
    """The graph below `root`; ids count in the order of the lines."""
    ids: dict[UOp, int] = {}
    drawn: set[UOp] = set()
    lines: list[str] = []
    later = [root]
    for start in later:  # grows while it runs
        if start in drawn:
            continue
        if lines:
            lines.append("")
        # a node, the text before it, the text before its operands, its depth
        stack: list[tuple[UOp, str, str, int]] = [(start, "", "", 0)]
        while stack:
            node, lead, below, depth = stack.pop()
            number = ids.setdefault(node, len(ids))
            line = f"{lead}[{number}] {label(node)} : {node.dtype}"
            if node in drawn:
                lines.append(f"{lead}[{number}] {node.op.name} -> (same as above)")
                continue
            if depth >= DEEPEST and node.src:
                lines.append(f"{line} -> (drawn below)")
                later.append(node)
                continue
            drawn.add(node)
            lines.append(line)
            for i in range(len(node.src) - 1, -1, -1):
                last = i == len(node.src) - 1
                stack.append(
                    (node.src[i], below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), depth + 1)
                )
    return "\n".join(lines)
