"""The graph algorithms and contexts of the stages, each a function of (program, target), for `morok/passes/pipeline.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from morok import config
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import (
    index_set_splitting,
    local,
    lower_index,
    prefix_scan_registers,
    range_stages,
    reduce,
    register_accumulators,
)
from morok.passes import linearize as linearization
from morok.passes.access_widths import Widths
from morok.passes.accumulators import Accumulators
from morok.passes.appended import joined
from morok.passes.axis_expansion import AxisOrder, refuse_unrolled
from morok.passes.gpudims import Launch
from morok.passes.index_set_splitting import CutStores
from morok.passes.node_order import nodes_of
from morok.passes.optimizer import optimizer
from morok.passes.range_splitting import RangeIds
from morok.passes.target import Target
from morok.rewrite import library
from morok.rewrite.engine import InitialSubstitution, graph_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.tiers import SYMBOLIC

T = TypeVar("T")

EXPANDED: Final = 9  # the stage that makes vectors of lanes
ONE_PLACE: Final = ("lower_gates", "wide_accesses", "gep_pushing", "take_lanes")


def rewrite(
    x: UOp,
    groups: Sequence[str],
    stage: int,
    bottom_up: bool = False,
    before: RuleSet | None = None,
    after: RuleSet | None = None,
    context: Any = None,
    initial: InitialSubstitution | None = None,
) -> UOp:
    """`x` after the rules of these built-in groups, applied until none fires. UnprovedRuleError if one of them is not proved.

    before     rules to try before those of the groups; ignored without groups
    after      rules to try after those of the groups
    context    the context object of `@context` groups
    initial    the initial substitution
    """
    rules = library.groups(*groups) if groups else None
    if before is not None and rules is not None:
        rules = joined(before, rules)
    if after is not None:
        rules = after if rules is None else joined(rules, after)
    if rules is None:
        return x
    name = str(stage)
    remember = stage < EXPANDED  # vectors and registers differ between kernels, so their results are not cached
    out: UOp = graph_rewrite(
        x, rules, bottom_up=bottom_up, stage=name, context=context, initial=initial, remember=remember
    )
    return out


def simplify(x: UOp) -> UOp:
    """`x`, the index of one lane, after the symbolic rules."""
    return rewrite(x, SYMBOLIC, 14)


def graph_only(step: Callable[[UOp], T]) -> Callable[[UOp, Target], T]:
    """`step`, which needs no target, as a function of (program, target)."""

    @functools.wraps(step)
    def applied(ast: UOp, target: Target) -> T:
        return step(ast)

    return applied


range_ids = graph_only(RangeIds.of)
merging = graph_only(range_stages.merged_ranges)
flatten_ranges = graph_only(range_stages.flatten_ranges)
number_by_nesting = graph_only(range_stages.number_by_nesting)
set_apart = graph_only(index_set_splitting.set_apart)
axis_order = graph_only(AxisOrder.of)
share_loops = graph_only(reduce.share_loops)
lower_names = graph_only(lower_index.lower_names)
names = graph_only(lower_index.names)
order_loops = graph_only(linearization.order_loops)
linearize = graph_only(linearization.linearize)


def cut_stores(ast: UOp, target: Target) -> CutStores | None:
    """The loops to cut; None if there are none. A GPU gets none: its threads do not predict branches."""
    found = None if target.has_local else CutStores.of(ast)
    return found if found is not None and found.chosen else None


def apply_opts(ast: UOp, target: Target) -> UOp:
    return optimizer().optimized(ast, target)


def add_local_buffers(ast: UOp, target: Target) -> UOp:
    refuse_unrolled(ast)
    return local.add_local_buffers(ast)


def separate_loops(ast: UOp, target: Target) -> UOp:
    return reduce.separate_loops(prefix_scan_registers.registers(ast, target))


def accumulators(ast: UOp, target: Target) -> Accumulators | None:
    return Accumulators.of(ast, optimizer().vectors(ast, target))


def launch(ast: UOp, target: Target) -> Launch | None:
    """The launch of a kernel on a GPU; None if no range becomes a hardware index, as on a CPU."""
    found = Launch.of(ast, target) if target.has_local else None
    return found if found is not None and (found.indices or found.coordinates) else None


def split_accesses(ast: UOp, target: Target) -> UOp:
    """`ast` with accesses split to runs of adjacent places, before arithmetic: so `Widths` sees the users of whole vectors."""
    if not target.vector_bytes:  # scalar arithmetic has no whole vectors
        return ast
    return rewrite(ast, ONE_PLACE, 14, bottom_up=True, context=widths(ast, target))


def widths(ast: UOp, target: Target) -> Widths:
    return Widths.of(ast, optimizer().vectors(ast, target), simplify, config.DEVECTORIZE.value)


def images(ast: UOp, target: Target) -> InitialSubstitution | None:
    """The initial substitution that keeps places of images as places, without loads, but with loads in their coordinates; None if
    there are none.
    """
    forms: dict[UOp, UOp] = {}
    initial = InitialSubstitution(forms, {}, lambda rebuild: rebuild)
    for place in nodes_of(ast):
        if place.op is Op.Index and place.dtype.kind == "image":
            storage, *coordinates = place.src
            forms[place] = place.replace(
                (storage, *(rewrite(s, ("add_loads",), 13, initial=initial) for s in coordinates))
            )
    return initial if forms else None


def cut_registers(ast: UOp, target: Target) -> UOp:
    return register_accumulators.cut_registers(ast, optimizer().vectors(ast, target))
