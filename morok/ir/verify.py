"""The ops and dtypes that may exist after each of the 22 stages: checked between stages in tests and under MOROK_CHECK=1.

A kernel's program enters stage 1 as a Sink. Each stage promises that some ops or dtypes are gone for good, and some
promise more (places are read by Loads, indices fit the hardware, instructions stand in an order that runs).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NoReturn

from morok.arguments import instance, several, whole
from morok.errors import IRError, IRTypeError, Place, UndefinedError, VerifyError
from morok.ir import provenance
from morok.ir.divisors import excludes_overflow, excludes_zero
from morok.ir.dtype import DType, PtrType
from morok.ir.graph import reached, toposort
from morok.ir.interpret import INVALID, evaluate
from morok.ir.op import NO_INSTRUCTION, AxisType, Op, Position
from morok.ir.ops.field_values import check as check_fields
from morok.ir.places import storage
from morok.ir.positions import positions
from morok.ir.pure import PURE
from morok.ir.typecheck import pointwise_type
from morok.ir.uop import UOp

_VIEWS: Final = {Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip}
_TENSOR: Final = {
    Op.Iota, Op.ReduceAxis, Op.AllReduce, Op.Multi, Op.MSelect, Op.MStack, Op.Copy, Op.Assign, Op.Detach, Op.ContiguousBackward,
    Op.Unique, Op.Device, Op.Buffer, Op.BufferView, Op.Kernel, Op.Concat,
}  # fmt: skip


# The stage from which on these ops are gone.
GONE: Final[tuple[tuple[int, frozenset[Op]], ...]] = (
    (1, frozenset(_VIEWS | _TENSOR)),
    (9, frozenset({Op.Unroll, Op.Contract})),
    (10, frozenset({Op.Bufferize, Op.Contiguous})),
    (11, frozenset({Op.Reduce})),
    (14, frozenset({Op.PtrCat})),
    (15, frozenset({Op.Invalid})),
    (19, frozenset({Op.Cat, Op.Precast})),
    (21, NO_INSTRUCTION),
)
# The stage from which on no loop has these axes.
NO_AXIS: Final = ((9, frozenset({AxisType.Upcast, AxisType.Unroll})),)
FIRST_IF: Final = 22
FIRST_WAITING: Final = 20  # loops wait for what stands before them
LOADS_FROM: Final = 13  # every read is a Load
IN_BOUNDS_FROM: Final = 8
CONCRETE_FROM: Final = 15  # no dtype index
GUARDED_FROM: Final = 19  # divisors
SINGLE_ENDS_FROM: Final = 19
LINEAR_FROM: Final = 21
LAST: Final = 22
_DIVISIONS: Final = frozenset({Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod})
_SAMPLES: Final = 1024  # assignments of ranges to try if bounds alone do not show that a place is inside its buffer


def verify(program: UOp | Sequence[UOp], stage: int, unsupported: Collection[Op] = ()) -> None:
    """Raise VerifyError, naming the node and the stage, if `program` may not exist after `stage`.

    program      a Sink up to stage 20, the list of instructions from stage 21 on
    unsupported  ops that the target cannot run, which stage 18 has decomposed
    """
    stage = whole(stage, "the stage", 0, LAST, VerifyError)
    for op in (without := several(unsupported, "what the target cannot run", "a set of ops", VerifyError)):
        instance(op, Op, "what the target cannot run", "an Op", VerifyError)
    unsupported = frozenset(without)
    nodes = _nodes(program, stage)
    gone = frozenset().union(*[ops for first, ops in GONE if stage >= first])
    axes = frozenset().union(*[a for first, a in NO_AXIS if stage >= first])
    ids: dict[int, UOp] = {}
    for node in nodes:
        op = node.op
        if op in gone:
            _refuse(node, stage, f"{op.name} is gone after stage {next(f for f, ops in GONE if op in ops)}")
        if stage >= 18 and op in unsupported:
            _refuse(node, stage, f"the target has no {op.name}")
        if op in (Op.If, Op.EndIf) and stage < FIRST_IF:
            _refuse(node, stage, f"{op.name} comes with stage {FIRST_IF}")
        if stage >= CONCRETE_FROM and _has_index(node.dtype):
            _refuse(node, stage, f"dtype index is gone after stage {CONCRETE_FROM}")
        if op is Op.Range:
            if node.arg[1] in axes:
                _refuse(node, stage, f"{node.arg[1].name} loops are gone after stage 9")
            if len(node.src) > 1 and stage < FIRST_WAITING:
                _refuse(node, stage, f"what a loop waits for comes with stage {FIRST_WAITING}")
            other = ids.setdefault(node.arg[0], node)
            if other is not node:
                _refuse(node, stage, f"another loop has the same id: {_shown(other)}")
        if op is Op.End and stage >= SINGLE_ENDS_FROM and (len(node.src) != 2 or node.src[1].op is not Op.Range):
            _refuse(node, stage, "an End closes one Range after stage 19")
        _check_types(node, stage)
        if stage >= LOADS_FROM:
            _check_reads(node, stage)
        if stage >= GUARDED_FROM and op in _DIVISIONS:
            _check_division(node, stage)
    if stage >= IN_BOUNDS_FROM:
        inside_if = _under_if(program) if not isinstance(program, UOp) else set()
        reach = _reach(nodes)
        for node in nodes:
            if node.op is Op.Index and node not in inside_if:
                _check_place(node, reach.get(node, 1), stage)


def _nodes(program: UOp | Sequence[UOp], stage: int) -> list[UOp]:
    """The nodes of a program, operands first; VerifyError if it is a graph where a list belongs, or the other way round, if
    instructions are in no order, or a loop is never closed.
    """
    if stage < LINEAR_FROM:
        if not isinstance(program, UOp) or program.op is not Op.Sink:
            what = program.op.name if isinstance(program, UOp) else "a list of instructions"
            raise VerifyError(f"after stage {stage} the program is {what}", expected="a Sink, up to stage 20")
        for r in program.ranges:
            _refuse(r, stage, "this loop is never closed")
        return program.toposort()
    if isinstance(program, UOp):
        raise VerifyError(
            f"after stage {stage} the program is a graph, {program.op.name}",
            expected="a list of instructions, from stage 21 on",
            hint="stage 21 makes the list of the graph",
        )
    instructions = several(program, "a program", "a list of instructions", VerifyError)
    for n in instructions:
        instance(n, UOp, "an instruction", "a node", VerifyError)
    _check_order(instructions, stage)
    return list(dict.fromkeys(instructions))


def _shown(node: UOp) -> str:
    """The node as text, shortened."""
    below = toposort((node,))
    if len(below) > 40:
        return f"{node.op.name}(..): {node.dtype}"
    text = node.text()
    return text if len(text) <= 300 else text[:297] + "..."


def _refuse(node: UOp, stage: int, why: str) -> NoReturn:
    where = provenance.place(node.origin)
    steps = provenance.describe(node.origin)
    raise VerifyError(
        f"after stage {stage}: {why}: {_shown(node)}",
        place=None if where is None else Place(*where),
        hint=" -> ".join(steps[-4:]) if steps else "",
    )


def _has_index(d: DType) -> bool:
    return d.is_index or (isinstance(d, PtrType) and d.base.is_index)


def _check_types(node: UOp, stage: int) -> None:
    """VerifyError unless the node is as the checked constructor would make it."""
    entry = node.entry
    try:
        if entry.typing is not None:
            check_fields(node.op, entry.fields, node.arg)
            dtype = entry.typing(node.src, node.arg, node.dtype)
        elif node.op is Op.Cast:
            dtype = node.dtype if node.dtype.count == node.src[0].dtype.count else node.src[0].dtype
        else:
            dtype = pointwise_type(entry, node.src)
    except (TypeError, ValueError, IRTypeError) as problem:
        _refuse(node, stage, f"{node.op.name} is mistyped ({problem})")
    if dtype is not node.dtype:
        _refuse(node, stage, f"{node.op.name} has dtype {node.dtype}, its operands give {dtype}")


def _check_reads(node: UOp, stage: int) -> None:
    """VerifyError if anything but a Load reads a place, other than of an image (from stage 13 on)."""
    if not (node.entry.pointwise or node.op in (Op.Store, Op.Wmma)):
        return
    for s, position in zip(node.src, positions(node), strict=True):
        if position is Position.VALUE and s.op in (Op.Index, Op.PtrCat) and s.dtype.kind != "image":
            _refuse(node, stage, f"operand {s.op.name} is read without a Load")


# Divisions


def _check_division(node: UOp, stage: int) -> None:
    x, y = node.src
    if not excludes_zero(y):
        _refuse(node, stage, f"the divisor, in {y.vmin}..={y.vmax}, may be 0")
    if not excludes_overflow(x, y):
        _refuse(node, stage, f"{node.dtype.scalar().min} may be divided by -1")


# Places


def _reach(nodes: Sequence[UOp]) -> dict[UOp, int]:
    """The number of consecutive elements that are accessed from a place on."""
    found: dict[UOp, int] = {}
    for n in nodes:
        if n.op in (Op.Load, Op.Store):
            place, lanes = n.src[0], (n if n.op is Op.Load else n.src[1]).dtype.count
            if place.op is Op.Index and place.src[1].dtype.count == 1:
                found[place] = max(found.get(place, 1), lanes // place.dtype.count)
    return found


def _check_place(node: UOp, reach: int, stage: int) -> None:
    """VerifyError unless a place has one flat index, and, without a gate of its own, lies inside its buffer with the `reach`
    elements that an access needs from there on.
    """
    if len(node.src) - bool(node.arg) != 2:
        _refuse(node, stage, "a place has one flat index")
    at = node.src[1]
    d = storage(node).dtype
    if node.arg or at.invalid or not isinstance(d, PtrType) or d.size < 0:
        return
    if at.vmin >= 0 and at.vmax + reach - 1 < d.size:
        return
    _try(node, at, reach, d.size, stage)


def _try(node: UOp, at: UOp, reach: int, size: int, stage: int) -> None:
    """VerifyError if an iteration reaches outside, or memory gives the index. (The bounds of the index may be too wide.)"""
    leaves = [n for n in at.toposort() if n.op in (Op.Range, Op.Special, Op.DefineVar)]
    if any(n.op in (Op.Load, Op.Index) for n in at.toposort()):
        _refuse(node, stage, f"an index from memory, in {at.vmin}..={at.vmax}, may be outside of {size} elements")
    loops = [n for n in leaves if n.op is Op.Range and n.src[0].op is not Op.Const]
    for given in _assignments([_values(n) for n in leaves]):
        values = dict(zip(leaves, given, strict=True))
        try:
            # no iteration: the loop depends on a variable
            if any(values[r] >= evaluate(r.src[0], values) for r in loops):
                continue
            found = evaluate(at, values)
        except (UndefinedError, IRError):
            continue
        for i in found if isinstance(found, tuple) else (found,):
            if i is not INVALID and not 0 <= i <= size - reach:
                said = ", ".join(f"{_shown(n)} = {v}" for n, v in zip(leaves, given, strict=True))
                what = f"element {i}" if reach == 1 else f"elements {i}..{i + reach}"
                _refuse(node, stage, f"{what} of {size} where {said}")


def _assignments(choices: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """All combinations of these choices, or a sample of them, the same on every run."""
    if math.prod(len(c) for c in choices) <= _SAMPLES:
        yield from itertools.product(*choices)
        return
    yield tuple([c[-1] for c in choices])
    draw = random.Random(0)
    for _ in range(_SAMPLES):
        yield tuple([draw.choice(c) for c in choices])


def _values(leaf: UOp) -> list[int]:
    lo, hi = leaf.vmin, leaf.vmax
    if isinstance(lo, float) or isinstance(hi, float):
        return [0]
    if hi - lo <= 64:
        return list(range(lo, hi + 1))
    return sorted({lo, lo + 1, (lo + hi) // 2, hi - 1, hi})


# Instruction lists


def _check_order(program: Sequence[UOp], stage: int) -> None:
    """VerifyError unless every instruction follows its operands, loops and branches nest, one End closes each loop, and a value
    that is used after the loop or branch that makes it can be computed again.
    """
    done: set[UOp] = set()
    gone: set[UOp] = set()  # made in a loop or branch that is closed
    open_: list[UOp] = []
    made: list[list[UOp]] = [[]]
    for node in program:
        if node in done:
            _refuse(node, stage, "an instruction stands twice")
        for s, waits in _used(node):
            if s not in done and s.op not in (Op.Const, Op.VConst):
                _refuse(node, stage, f"operand {s.op.name} comes after its use")
            lost = None if waits else _lost(s, gone)
            if lost is not None:
                _refuse(node, stage, f"operand {lost.op.name} was made in a loop, or a branch, that is closed")
        done.add(node)
        if node.op in (Op.Range, Op.If):
            open_.append(node)
            made.append([])
        elif node.op in (Op.End, Op.EndIf):
            closed = node.src[1] if node.op is Op.End and len(node.src) > 1 else node.src[0]
            if not open_ or open_.pop() is not closed:
                _refuse(node, stage, "this closes something other than what was opened last")
            gone.update(made.pop())
        made[-1].append(node)
    if open_:
        _refuse(open_[-1], stage, "this is never closed")


def _lost(operand: UOp, gone: Collection[UOp]) -> UOp | None:
    """A node that an operand needs, made in a closed loop, or branch, and cannot be computed again; None where all can."""

    def onward(n: UOp) -> list[UOp]:
        return [s for s in (n.src[:1] if n.op in (Op.After, Op.Barrier) else n.src) if s in gone]

    return next((n for n in reached([operand] if operand in gone else [], onward) if n.op not in PURE), None)


def _used(node: UOp) -> Iterator[tuple[UOp, bool]]:
    """The instructions that one needs, each with the truth of it being needed for its effect alone."""
    roles = positions(node)
    # an If names the stores that it guards, which follow it
    waiting = [(s, p is Position.ORDER) for s, p in zip(node.src, roles, strict=True)][
        : 1 if node.op is Op.If else None
    ]
    while waiting:
        s, waits = waiting.pop()
        if s.op in NO_INSTRUCTION:
            waiting.extend((below, waits) for below in s.src)
        else:
            yield s, waits


def _under_if(program: Sequence[UOp]) -> set[UOp]:
    """Instructions that a branch guards, and the places that only their stores use."""
    found: set[UOp] = set()
    depth = 0
    for node in program:
        depth += (node.op is Op.If) - (node.op is Op.EndIf)
        if depth:
            found.add(node)
            found.update(s for s in node.src if s.op is Op.Index and node.op is Op.Store)
    return found
