"""Stage 15: loops, variables and hardware indices of dtype index become i32, or i64 if i32 does not hold all their values.

A loop counter has one dtype at all its uses, so the whole graph is rewritten at once. The rules of rules/index/lower.rules then
choose, also by bounds, the dtypes of all expressions over these.
"""

from __future__ import annotations

from typing import Final

from morok.errors import LoweringError
from morok.ir.dtype import DType, dtypes
from morok.ir.maker import maker
from morok.ir.op import TABLE, Op, Position
from morok.ir.positions import positions
from morok.ir.uop import UOp
from morok.passes.node_order import nodes_of
from morok.passes.rebuilding import own_origins
from morok.rewrite.engine import InitialSubstitution, Rebuild

_NAMED: Final = frozenset({Op.Range, Op.Special, Op.DefineVar})
_OPERANDS: Final = frozenset({Position.BINDER, Position.ORDER})  # positions that name the loop itself, not its counter
_NAMING: Final = frozenset(e.op for e in TABLE.entries.values() if any(o.position in _OPERANDS for o in e.operands))


def concrete(x: UOp) -> DType:
    """The narrowest of i32 and i64 that holds every value of `x`; LoweringError if neither does."""
    for d in (dtypes.i32, dtypes.i64):
        if d.min <= x.vmin and x.vmax <= d.max:
            return d
    raise LoweringError(
        f"an index with the bounds {x.vmin}..={x.vmax} fits neither i32 nor i64: {x}",
        expected="bounds within those of i64",
        hint="use smaller shapes, or variables with closer bounds",
    )


def _named(node: UOp, src: tuple[UOp, ...]) -> UOp:
    if node.op is Op.DefineVar:
        return UOp.new(Op.DefineVar, (), node.arg, concrete(node))
    end, *waits = src
    d = dtypes.i32 if node.op is Op.Special else concrete(node.src[0])
    if end.dtype is not d:
        end = UOp.const(end.arg, d) if end.op is Op.Const else end.cast(d)
    return UOp.new(node.op, (end, *waits), node.arg)


def _is_plain(node: UOp) -> bool:
    """True if all operands of a loop, variable or hardware index are constants."""
    return all(s.op is Op.Const for s in node.src)


def names(root: UOp) -> InitialSubstitution | None:
    """The initial substitution for the rules: concrete loops, variables and hardware indices in place of those of dtype index;
    None if there are none.
    """
    made: dict[UOp, UOp] = {}
    forms: dict[UOp, UOp] = {}
    with own_origins():
        for node in nodes_of(root):
            if node.op in _NAMED and node.dtype.is_index:
                maker.origin = node.origin
                made[node] = _named(node, node.src)
                forms[node] = made[node].cast(dtypes.index)
    if not made:
        return None
    numbered = {form: made[node] for node, form in forms.items()}

    def naming(rebuild: Rebuild) -> Rebuild:
        def rebuilt(node: UOp, src: tuple[UOp, ...]) -> UOp:
            if node.op in _NAMING and not numbered.keys().isdisjoint(src):
                src = tuple(
                    [numbered.get(s, s) if p in _OPERANDS else s for s, p in zip(src, positions(node), strict=True)]
                )
            out: UOp = rebuild(node, src)
            return out

        return rebuilt

    return InitialSubstitution(forms, made, naming)


def lower_names(root: UOp) -> UOp:
    """`root` with concrete loops, variables and hardware indices, each cast to index wherever its value is used.

    `root` itself if all of them have constant operands: then `names` substitutes them. LoweringError for a value that i64 does
    not hold.
    """
    nodes = nodes_of(root)
    for node in nodes:
        if node.dtype.is_index and node.vmin <= node.vmax:
            concrete(node)  # refuses indices too large for i64, also those that no rule lowers
    if all(_is_plain(n) for n in nodes if n.op in _NAMED):
        return root
    made: dict[UOp, UOp] = {}
    done: dict[UOp, UOp] = {}
    with own_origins():
        for node in nodes:
            src = tuple([done[s] for s in node.src])
            maker.origin = node.origin
            if node.op in _NAMED and node.dtype.is_index:
                made[node] = _named(node, src)
                done[node] = made[node].cast(dtypes.index)
                continue
            if src == node.src:
                done[node] = node
                continue
            if node.op in _NAMING:
                at = zip(node.src, src, positions(node), strict=True)
                src = tuple([made[s] if s in made and p in _OPERANDS else new for s, new, p in at])
            done[node] = node.replace(src)
    return done[root]
