"""The fingerprint of a list of nodes, in a few bytes that keep none of the nodes alive.

A program is the same as another where their nodes are the same objects, as long as somebody has these. Who remembers programs by
their nodes keeps the nodes, some 900 bytes each with what has been found out about them.
"""

from __future__ import annotations

import enum
import hashlib
from array import array
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import DType
from morok.ir.graph import toposort
from morok.ir.op import Op
from morok.ir.ops.field_values import PLAIN

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_NAMES: Final = {op: op.name for op in Op}
_SPELLED: Final = frozenset({int, float, bool, str, type(None)})  # what is another value is spelled otherwise, -0.0 too


def fingerprint(nodes: Sequence[UOp]) -> Hashable:
    """A key that is equal for lists of the same nodes in the same order, be they alive or made again; it is another for all other
    lists, as far as SHA-256 goes.
    """
    numbers: dict[UOp, int] = {}
    kinds: dict[tuple[Op, DType, Any], int] = {}  # nodes but for their operands: few, so they are spelled out
    row: list[int] = []  # of each node its kind, and how many operands, which
    for node in toposort(nodes):
        arg = node.arg
        if arg is not None and node.op not in PLAIN and _is_spelled(arg):
            arg = repr(arg)  # which tells 0.0 from -0.0, and 1 from True
        src = node.src
        row.append(kinds.setdefault((node.op, node.dtype, arg), len(kinds)))
        row.append(len(src))
        row += [numbers[s] for s in src]
        numbers[node] = len(numbers)
    row += [numbers[n] for n in nodes]
    others = [arg for _, _, arg in kinds if not _is_spelled(arg)]  # they are compared as they are
    spelled = repr((len(numbers), [(_NAMES[op], dtype.name, arg if _is_spelled(arg) else ...) for op, dtype, arg in kinds]))
    digest = hashlib.sha256(spelled.encode("utf-8", "surrogatepass"))
    digest.update(array("q", row))
    return (digest.digest(), tuple(others)) if others else digest.digest()


def _is_spelled(arg: Any) -> bool:
    """True if the text of an argument says all of it."""
    kind = type(arg)
    return kind in _SPELLED or kind is DType or isinstance(arg, enum.Enum) or (kind is tuple and all(map(_is_spelled, arg)))
