"""The storage of a node, with its fields writable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from morok.locks import FACTS

if TYPE_CHECKING:
    from morok.ir.dtype import DType
    from morok.ir.op import Op
    from morok.ir.provenance import Origin
    from morok.ir.structural_order import Rank
    from morok.ir.uop import UOp


NO_FACTS: Final[Mapping[Any, Any]] = MappingProxyType({})  # what a node remembers that nobody has asked yet


class Cell:
    """The storage of a node while it is filled; `UOp` has the same layout and refuses assignment."""

    __slots__ = ("op", "dtype", "src", "arg", "vmin", "vmax", "invalid", "origin", "rank", "memo", "serial", "__weakref__")

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


_give: Final[Any] = Cell.__dict__["memo"].__set__


def facts_of(node: UOp) -> dict[Any, Any]:
    """The facts that a node remembers, to be added to. Threads that race get one dict."""
    if node.memo is NO_FACTS:
        with FACTS.inner:
            if node.memo is NO_FACTS:
                _give(node, {})
    facts: dict[Any, Any] = cast("Any", node.memo)
    return facts
