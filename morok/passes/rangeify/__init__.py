"""Rangeify: views become index arithmetic, reductions become loops, and values to store are marked.

Eight passes, in the order of PASSES. The result is a Sink of Bufferize nodes: a Bufferize is a value over its ranges, and reads
others as Index(Bufferize, indices..). No movement op and no ReduceAxis is left. A Bufferize in local memory is a row buffer
inside a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from morok.ir.dtype import AddrSpace
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.assign_ranges import assign_ranges
from morok.passes.rangeify.cleanup import drop_dead_axes, fold_buffers, remove_buffers, simplify_reductions
from morok.passes.rangeify.demand_values import core
from morok.passes.rangeify.early import early_rewrites, split_large
from morok.passes.rangeify.state import STORAGE, THREADS, State
from morok.passes.rebuilding import own_origins
from morok.passes.target import Target

PASSES: Final[tuple[tuple[str, Callable[[State], None]], ...]] = (
    ("early rewrites", early_rewrites),
    ("split of large reductions", split_large),
    ("range assignment", assign_ranges),
    ("core rangeify", core),
    ("reduction simplification", simplify_reductions),
    ("buffer folding", fold_buffers),
    ("dead axis removal", drop_dead_axes),
    ("cost-based buffer removal", remove_buffers),
)


def rangeify(
    roots: Sequence[UOp],
    device: str,
    observe: Callable[[str, State], None] | None = None,
    most_buffers: int = 0,
    target: Target = THREADS,
    cuts: Mapping[UOp, bool] = MappingProxyType({}),
) -> State:
    """The state after the eight passes: `sink` has for each root its Bufferize, or the root itself if it is memory already.

    observe       called with the name of each pass and the state after it
    most_buffers  most buffers of one kernel; 0: no limit
    target, cuts  State.target, State.overrides
    """
    state = State(list(roots), device, target, most_buffers=most_buffers, overrides=cuts)
    with own_origins():
        for name, run in PASSES:
            if state.roots:
                maker.origin = state.roots[0].origin  # the default provenance of new nodes
            run(state)
            if observe is not None:
                observe(name, state)
    return state


def in_memory(node: UOp) -> bool:
    """True if a node is a Bufferize in global memory, filled by a kernel of its own, not a row buffer inside a kernel."""
    return node.op is Op.Bufferize and node.arg[1] is AddrSpace.GLOBAL


def reads_memory(node: UOp) -> bool:
    """True for the read of a buffer, or of what another kernel stores."""
    return node.op is Op.Index and (in_memory(node.src[0]) or node.src[0].op in STORAGE)


def beside_memory(node: UOp) -> tuple[UOp, ...]:
    """The operands of a node that its own kernel computes."""
    return node.src[1:] if reads_memory(node) else node.src


def stored(sink: UOp) -> Iterator[UOp]:
    """The Bufferizes that the kernels of a rangeified graph fill, each after those that it reads."""
    return filter(in_memory, sink.toposort())
