"""Linear forms: an index expression as `c1*v1 + .. + cn*vn + k` with distinct `v`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.op import Op
from morok.ir.ranges import remember

if TYPE_CHECKING:
    from morok.ir.uop import UOp

Terms = tuple[tuple["UOp", int], ...]

_ADD: Final = Op.Add
_SUB: Final = Op.Sub
_MUL: Final = Op.Mul
_NEG: Final = Op.Neg
_CONST: Final = Op.Const
LINEAR: Final = frozenset({_ADD, _SUB, _MUL, _NEG})  # the ops of which sums consist
_FORM: Final = "terms"


def terms(x: UOp) -> tuple[Terms, int]:
    """`x` as ((v1, c1), ..), k: the sum of ci*vi and k, the v distinct and no sums, no c zero."""
    op = x.op
    if op not in LINEAR:
        return ((), x.arg) if op is _CONST else (((x, 1),), 0)
    found: tuple[Terms, int] | None = x.memo.get(_FORM)
    if found is not None:
        return found
    form = _of_chain(x) or _of_any(x)
    parts = form[0]
    # a product is its own only term; a fact that holds the node would keep it alive
    if len(parts) != 1 or parts[0][0] is not x:
        remember(x, _FORM, form)
    return form


def _of_chain(x: UOp) -> tuple[Terms, int] | None:
    """`terms` of a chain of distinct c*v and constants, as simplified sums are; None of any other."""
    found: list[tuple[UOp, int]] = []
    constant = 0
    node: UOp | None = x
    while node is not None:
        node, term = node.src if node.op is _ADD else (None, node)
        op = term.op
        if op is _CONST:
            constant += term.arg
        elif op not in LINEAR:
            found.append((term, 1))
        elif op is _MUL:
            v, c = term.src
            if c.op is not _CONST or v.op in LINEAR or not c.arg:
                return None
            found.append((v, c.arg))
        else:
            return None
    if len(found) > 1:
        if len(dict(found)) < len(found):
            return None
        found.reverse()
    return tuple(found), constant


def _of_any(x: UOp) -> tuple[Terms, int]:
    """`terms` of any tree of sums, differences and products."""
    total: dict[UOp, int] = {}
    constant = 0
    stack = [(x, 1)]
    while stack:
        node, factor = stack.pop()
        op = node.op
        src = node.src
        if op is _ADD:
            stack.append((src[1], factor))
            stack.append((src[0], factor))
        elif op is _CONST:
            constant += factor * node.arg
        elif op is _MUL and src[1].op is _CONST:
            stack.append((src[0], factor * src[1].arg))
        elif op is _MUL and src[0].op is _CONST:
            stack.append((src[1], factor * src[0].arg))
        elif op is _SUB:
            stack.append((src[1], -factor))
            stack.append((src[0], factor))
        elif op is _NEG:
            stack.append((src[0], -factor))
        else:
            total[node] = total.get(node, 0) + factor
    return tuple([(v, c) for v, c in total.items() if c]), constant
