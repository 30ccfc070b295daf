"""The fingerprint of a list of nodes, in a few bytes that keep none of the nodes alive.

A program is the same as another where their nodes are the same objects, as long as somebody has these. Who remembers programs by
their nodes keeps the nodes, some 900 bytes each with what has been found out about them.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import DType
from morok.ir.graph import toposort
from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_NAMES: Final = {op: op.name for op in Op}
_SPELLED: Final = frozenset({int, float, bool, str, type(None)})  # what is another value is spelled otherwise, -0.0 too


def fingerprint(nodes: Sequence[UOp]) -> Hashable:
    """A key that is equal for lists of the same nodes in the same order, be they alive or made again; it is another for all other
    lists, as far as SHA-256 goes.
    """
    numbers: dict[UOp, int] = {}
    rows: list[Any] = []
    others: list[Any] = []  # arguments that are not spelled out are compared as they are
    for node in toposort(nodes):
        arg = node.arg
        if arg.__class__ not in _SPELLED and not _is_spelled(arg):
            others.append(arg)
            arg = ...
        rows.append((_NAMES[node.op], node.dtype.name, [numbers[s] for s in node.src], arg))
        numbers[node] = len(numbers)
    rows.append([numbers[n] for n in nodes])
    digest = hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).digest()
    return (digest, tuple(others)) if others else digest


def _is_spelled(arg: Any) -> bool:
    """True if the text of an argument says all of it."""
    kind = type(arg)
    return kind in _SPELLED or kind is DType or isinstance(arg, enum.Enum) or (kind is tuple and all(map(_is_spelled, arg)))
