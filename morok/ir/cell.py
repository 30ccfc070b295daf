"""The storage of a node, with its fields writable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from morok.ir.dtype import DType
    from morok.ir.op import Op
    from morok.ir.provenance import Origin
    from morok.ir.structural_order import Rank
    from morok.ir.uop import UOp


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
    memo: dict[Any, Any]
    serial: int
