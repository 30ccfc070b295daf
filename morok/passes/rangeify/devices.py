"""Values on several devices, resolved to the part of one device.

An MStack is a value that may differ between devices; ops on it apply on each device. AllReduce folds the values of all devices,
and each has the result. A schedule is for one device, and MSelect selects the value of one.
"""

from __future__ import annotations

from typing import Final

from morok.errors import IRTypeError
from morok.ir.graph import toposort
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.state import State
from morok.passes.rebuilding import own_origins

ON_DEVICES: Final = frozenset({Op.MStack, Op.MSelect, Op.Multi, Op.AllReduce})
_ON_BOOLS: Final = {Op.Add: Op.Or, Op.Max: Op.Or, Op.Mul: Op.And, Op.Min: Op.And}


def on_one_device(state: State) -> None:
    """Remove the ops in ON_DEVICES; a root on several devices becomes the value of the first. IRTypeError for a device number out
    of range, and for an op on values of different numbers of devices.
    """
    done: dict[UOp, UOp] = {}
    with own_origins():
        for node in toposort(state.roots):
            maker.origin = node.origin
            done[node] = _without_device_ops(node, tuple([done[s] for s in node.src]))
        done.update({root: _on_device(done[root], 0) for root in state.roots})
    state.replace_nodes(done)


def _without_device_ops(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """A node without ops in ON_DEVICES but MStack at the top, for operands of the same form."""
    op = node.op
    if op is Op.MSelect:
        return _on_device(src[0], node.arg)
    if op is Op.AllReduce:
        if src[0].op is not Op.MStack:
            return src[0]  # equal on all devices
        fold = _ON_BOOLS[node.arg] if node.dtype.is_bool else node.arg
        total, *others = src[0].src
        for value in others:
            total = UOp.new(fold, (total, value))
        return UOp.new(Op.MStack, (total,) * len(src[0].src))
    if op is Op.MStack or op is Op.Multi:
        parts = tuple([_on_device(s, k) for k, s in enumerate(src)])
        if op is Op.MStack:
            return UOp.new(Op.MStack, parts)
        return parts[0] if node.arg is None else UOp.new(Op.Concat, parts, node.arg)
    widths = {len(s.src) for s in src if s.op is Op.MStack}
    if not widths:
        return node if src == node.src else node.replace(src)
    if len(widths) > 1:
        raise IRTypeError(
            f"the operands of {op.name} are on {' and '.join(map(str, sorted(widths)))} devices",
            expected="the same number of devices",
        )
    return UOp.new(
        Op.MStack, tuple([node.replace(tuple([_on_device(s, k) for s in src])) for k in range(widths.pop())])
    )


def _on_device(x: UOp, device: int) -> UOp:
    """The value of `x` on one device. IRTypeError if there is no such device."""
    if x.op is not Op.MStack:
        return x
    if not 0 <= device < len(x.src):
        raise IRTypeError(
            f"there is no device {device} of a value on {len(x.src)} devices", expected=f"a number below {len(x.src)}"
        )
    return x.src[device]
