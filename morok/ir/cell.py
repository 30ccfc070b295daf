"""The storage of a node, with its fields writable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from morok.ir.dtype import DType
    from morok.ir.op import Op
    from morok.ir.provenance import Origin
    from morok.ir.structural_order import Rank
    from morok.ir.uop import UOp


NO_FACTS: Final[Mapping[Any, Any]] = MappingProxyType({})  # the memo of a node without facts


class Cell:
    """The storage of a node; `UOp` inherits it, and refuses assignments."""

    __slots__ = (
        "op",
        "dtype",
        "src",
        "arg",
        "vmin",
        "vmax",
        "invalid",
        "origin",
        "rank",
        "memo",
        "serial",
        "__weakref__",
    )

    op: Op
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    vmin: int | float
    vmax: int | float
    invalid: bool
    origin: Origin | None
    rank: Rank | None
    memo: Mapping[Any, Any]
    serial: int


def setter(field: str) -> Callable[[UOp, Any], None]:
    """The setter of a field of nodes, past the refusal of `UOp`: to fill a new node, or to store a derived fact."""
    assign: Callable[[UOp, Any], None] = Cell.__dict__[field].__set__
    return assign


_give: Final = setter("memo")
_first: Final[dict[UOp, dict[Any, Any]]] = {}  # the dicts that `facts_of` is giving to nodes


def facts_of(node: UOp) -> dict[Any, Any]:
    """The dict of facts on a node, to be added to. Racing threads get the same dict, by the atomic step of `setdefault`: a lock
    could deadlock with a signal handler. A thread that finds no dict on the node after that step has the one that all others get.
    """
    if node.memo is NO_FACTS:
        facts = _first.setdefault(node, {})
        if node.memo is NO_FACTS:
            _give(node, facts)
        _first.pop(node, None)
    return cast("dict[Any, Any]", node.memo)
