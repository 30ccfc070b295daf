"""Shapes of tensor-level nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from morok.ir.cell import facts_of
from morok.ir.linear_forms import terms
from morok.ir.op import TABLE, Op
from morok.ir.ranges import remember, unknown
from morok.view_meanings import padded_size, shrunk_size

if TYPE_CHECKING:
    from morok.ir.uop import UOp

Size: TypeAlias = "int | UOp"
Shape: TypeAlias = "tuple[Size, ...]"
_memo: Final = "shape"
_OPS: Final = TABLE.entries
# By name: the ops of which a rule is proved with the axes of tensors, since they make or change them.
OF_AXES: Final = frozenset({"Reshape", "Permute", "Expand", "Pad", "Shrink", "Flip", "Concat", "Iota", "ReduceAxis"})
AXES: Final = "may have axes"  # among the facts of a node: it may be a tensor, or a view of one
_number: Final = "number"
_NUMBERS: Final = frozenset({Op.Const, Op.DefineVar, Op.Range, Op.Special, Op.Index, Op.Load, Op.Gep})
_CONST: Final = Op.Const


def dim(node: UOp) -> Size:
    """A dimension operand as an int if it is a constant, else as the node."""
    return int(node.arg) if node.op is _CONST else node


def shape_of(root: UOp) -> Shape:
    """The shape of a tensor-level node: () for scalars; each dimension is an int or a node of dtype index."""
    found: Shape | None = root.memo.get(_memo)
    if found is None:
        for s in root.src:
            if _memo not in s.memo:
                for node in unknown(root, _memo):
                    remember(node, _memo, _compute(node))
                return _remembered_shape(root)
        found = facts_of(root)[_memo] = _compute(root)
    return found


_VIEWS: Final = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip, Op.After, Op.Barrier})
LISTED: Final = frozenset({Op.Reshape, Op.Expand, Op.Shrink})  # ops whose operands give the shape
_SHAPELESS: Final = frozenset({Op.Param, Op.Bufferize})  # whose elements a graph does not count
_ON_DEVICES: Final = frozenset({Op.MStack, Op.Multi})  # an AllReduce counts the devices that its operand is on
_counted: Final = "counted"
_one: Final = "one value"


def has_shape(node: UOp) -> bool:
    """True if a node has a definite number of axes; False for a kernel's parameters and allocations, views of these, and values
    computed from them.
    """
    while node.op in _VIEWS:
        node = node.src[0]
    return counted(node)


def counted(node: UOp) -> bool:
    """True if the graph states the number of elements of a node: it is computed from no parameter or allocation, except below a
    view with a shape.
    """
    passed: set[UOp] = set()
    below = [node]
    for x in below:  # which grows
        if x.op in _SHAPELESS or x.dtype.is_ptr:
            return False
        if x.op in _NUMBERS or x.op in LISTED or x in passed or _counted in x.memo:
            continue
        passed.add(x)
        below += x.src[:1] if x.op in _VIEWS else [s for s in x.src if not s.dtype.is_ptr and s.dtype.kind != "void"]
    for x in passed:
        facts_of(x)[_counted] = True
    return True


def _on_devices(node: UOp) -> bool:
    """True if a node is computed of a value that may differ between devices."""
    passed: set[UOp] = set()
    below = [node]
    for x in below:  # which grows
        if x.op in _ON_DEVICES:
            return True
        if x.op not in _NUMBERS and x not in passed and _one not in x.memo:
            passed.add(x)
            below += x.src
    for x in passed:
        facts_of(x)[_one] = True
    return False


def is_number(node: UOp) -> bool:
    """True if a node has no axes, and one value on all devices. It looks no further than where a kernel's values come from:
    loads, loops and lanes.
    """
    passed: set[UOp] = set()
    below = _elements(node)
    for x in below:  # which grows
        if x.op in _NUMBERS or x.dtype.count > 1 or x.dtype.kind == "void":
            continue
        if x.op in _SHAPELESS or x.op in _ON_DEVICES:
            return False
        if x.op in _SHAPES:
            if shape_of(x) or _on_devices(x):
                return False
        elif _number not in x.memo and x not in passed:
            passed.add(x)
            below += x.src
    for x in passed:
        facts_of(x)[_number] = True
    return True


def same_axes(node: UOp, made: UOp) -> bool:
    """True if `made` has the shape of `node` and is on as many devices; also if `node` is a number or a vector, which has lanes
    and no axes. If the number of its elements is unknown, or it is on several devices: True if `made` is an operand of which that
    is true too.
    """
    if not may_have_axes(node.op, node.src) or node.dtype.count > 1 or node.op in _SHAPELESS or is_number(node):
        return True
    elements = _elements(node)
    if not all(map(_known, elements)):
        return any(made is x and not _known(x) for x in node.src)
    return next((shape for x in elements if (shape := shape_of(x))), ()) == shape_of(made)


def _known(node: UOp) -> bool:
    """True if the graph states the number of elements of a node, and the node is not on several devices."""
    return counted(node) and not _on_devices(node)


def _elements(node: UOp) -> list[UOp]:
    """The operands of a pointwise op, whose elements it works on; for other ops the node itself. A node may be provisional."""
    return list(node.src) if _OPS[node.op].signature is not None else [node]


def differ(a: Size, b: Size) -> bool:
    """True if two dimensions are numbers that are not equal."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def may_have_axes(op: Op, src: tuple[UOp, ...]) -> bool:
    """True unless a node over these operands certainly has no axes: the op makes axes, or an operand may have some, which its
    memo says from the beginning.
    """
    for s in src:
        if s.memo and AXES in s.memo:
            return op not in _NUMBERS
    return op in WITH_AXES


def noted_shape(node: UOp) -> Shape:
    """The shape of a node, as `shape_of`; () at once for a node that certainly has no axes."""
    return shape_of(node) if node.memo and AXES in node.memo else ()


def one_shape(nodes: tuple[UOp, ...]) -> bool:
    """False if two of these nodes have axes, and not the same. A number has none, and stands beside a tensor of any shape; how
    large a parameter or an allocation is, a graph does not say.
    """
    first: UOp | None = None
    for s in nodes:
        if shape := noted_shape(s):
            if first is None:
                first = s
            elif unlike(shape_of(first), shape) and has_shape(first) and has_shape(s):
                return False
    return True


def shown_shape(shape: Sequence[Size]) -> str:
    """A shape as text; sizes that are no numbers as question marks."""
    return f"({', '.join(str(d) if isinstance(d, int) else '?' for d in shape)}{',' if len(shape) == 1 else ''})"


def unlike(a: Shape, b: Shape) -> bool:
    """True if two shapes have not as many axes, or sizes that are numbers and not equal."""
    return len(a) != len(b) or any(map(differ, a, b))


def edges(node: UOp) -> tuple[tuple[UOp, UOp], ...]:
    """The (begin, end) pairs of a Pad or Shrink, one an axis."""
    half = (len(node.src) - 1) // 2
    return tuple(zip(node.src[1 : 1 + half], node.src[1 + half :], strict=True))


def _compute(node: UOp) -> Shape:
    of = _SHAPES.get(node.op)
    if of is not None:
        return of(node)
    for s in node.src:
        if shape := _remembered_shape(s):
            return shape
    return ()


def _scalar(node: UOp) -> Shape:
    return ()


def _listed(node: UOp) -> Shape:
    return tuple([dim(s) for s in node.src[1:]])


def _permuted(node: UOp) -> Shape:
    below = _remembered_shape(node.src[0])
    return tuple([below[a] for a in node.arg]) if below else ()


def _reduced(node: UOp) -> Shape:
    axes = node.arg[1]
    return tuple([d for i, d in enumerate(_remembered_shape(node.src[0])) if i not in axes])


def _joined(node: UOp) -> Shape:
    whole = list(_remembered_shape(node.src[0]))
    if node.arg is not None:
        for s in node.src[1:]:
            whole[node.arg] = _plus(whole[node.arg], _remembered_shape(s)[node.arg])
    return tuple(whole)


def _padded(node: UOp) -> Shape:
    around = _remembered_shape(node.src[0])
    return (
        tuple([padded_size(d, dim(b), dim(e), _plus) for d, (b, e) in zip(around, edges(node), strict=True)])
        if around
        else ()
    )


def _shrunk(node: UOp) -> Shape:
    return tuple([shrunk_size(dim(b), dim(e), _minus) for b, e in edges(node)])


# Any other op has the shape of its first operand with a shape.
_SHAPES: Final[dict[Op, Callable[[UOp], Shape]]] = {
    Op.Buffer: lambda node: (node.arg,),
    Op.BufferView: lambda node: (node.arg[1],),
    Op.Iota: lambda node: (dim(node.src[0]),),
    Op.Reshape: _listed,
    Op.Expand: _listed,
    Op.Permute: _permuted,
    Op.ReduceAxis: _reduced,
    Op.Concat: _joined,
    Op.Multi: _joined,
    Op.Pad: _padded,
    Op.Shrink: _shrunk,
    **dict.fromkeys((Op.Const, Op.DefineVar, Op.Range, Op.Index, Op.Unique, Op.Device), _scalar),
}

WITH_AXES: Final = _SHAPELESS | _ON_DEVICES | {op for op, of in _SHAPES.items() if of is not _scalar}


def _remembered_shape(node: UOp) -> Shape:
    found: Shape = node.memo[_memo]
    return found


def _plus(a: Size, b: Size) -> Size:
    return a if isinstance(b, int) and b == 0 else a + b


def _minus(a: Size, b: Size) -> Size:
    """The difference of two dimensions: an int if it is constant, as between the ends of a window at a variable."""
    if isinstance(a, int) or isinstance(b, int):
        return a if isinstance(b, int) and b == 0 else a - b
    (parts, constant), (others, less) = terms(a), terms(b)
    return constant - less if dict(parts) == dict(others) else a - b
