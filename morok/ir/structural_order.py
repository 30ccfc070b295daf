"""A structural order of nodes: which operand of a commutative index op stands first.

The order looks at ops, names, ids and constants, never at addresses or serial numbers, so every process finds the same one.
Products come first: a chain of products is the left operand of the next, and no factor goes in front of one. Then come sums;
constants are last. Terms over one variable stand together, its remainders and quotients by growing divisor, so that like terms
and the two halves of a division meet.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from morok.ir.cell import setter
from morok.ir.dtype import DType
from morok.ir.op import Op
from morok.names import data

if TYPE_CHECKING:
    from morok.ir.uop import UOp

# A term without its factor: kind, subject, product of its divisors. Like terms have equal heads.
Head = tuple[int, str, int]
# (head, factor, op, structure without the factor, structure): compared from the left.
Rank = tuple[Head, Any, int, int, int]

_ADD: Final = Op.Add
_MUL: Final = Op.Mul
_IDIV: Final = Op.Idiv
_MOD: Final = Op.Mod
_CONST: Final = Op.Const
_VCONST: Final = Op.VConst
_RANGE: Final = Op.Range
_WHERE: Final = Op.Where
_PRODUCT: Final = (0, "", 0)
_SUM: Final = (1, "", 0)
_OTHER: Final = (5, "", 0)
_NUMBERS: Final = (8, "", 0)
_NUMBER: Final = (9, "", 0)
_NAMED: Final = frozenset({Op.DefineVar, Op.Special})
SHALLOW: Final = 8  # levels that are ranked by recursion
# A number for each op that is the same in every process.
_CODE: Final[dict[Op, int]] = {op: crc32(op.name.encode()) for op in Op}


def precedes(a: UOp, b: UOp) -> bool:
    """True if `a` stands strictly before `b` in the structural order."""
    return (a.rank or order(a)) < (b.rank or order(b))


def order(node: UOp) -> Rank:
    """The sort key of a node. Frequent callers try `node.rank` first."""
    found = node.rank or _rank(node, SHALLOW)
    if found is not None:  # the operands, which are older, have ranks already
        return found
    stack = [node]
    while stack:
        at = stack[-1]
        for s in at.src:
            if s.rank is None:
                stack.append(s)
        if stack[-1] is at:
            stack.pop()
            found = _rank(at, 0)
    assert found is not None
    return found


_type_codes: dict[DType, int] = {}  # the same in every process


def _rank(node: UOp, levels: int) -> Rank | None:
    """The rank of a node, which it stores on the node; None if a node without a rank lies more than `levels` below."""
    op = node.op
    src = node.src
    arg = node.arg
    code = _CODE[op]
    dtype = node.dtype
    typed = _type_codes.get(dtype)
    if typed is None:
        typed = crc32(dtype.name.encode())
        if not dtype.is_ptr:  # there are as many pointer types as sizes of memory
            _type_codes[dtype] = typed
    found: Rank
    if arg is None and len(src) == 2:
        a, b = src
        first = a.rank or (_rank(a, levels - 1) if levels else None)
        if first is None:
            return None
        second = b.rank or (_rank(b, levels - 1) if levels else None)
        if second is None:
            return None
        structure = hash((code, typed, 0, first[4], second[4]))
        if op is _ADD:
            found = (_SUM, 1, code, structure, structure)
        elif b.op is not _CONST:
            found = (_PRODUCT if op is _MUL else _OTHER, 1, code, structure, structure)
        elif op is _MUL:
            found = (first[0], b.arg, first[2], first[3], structure)
        elif op is _IDIV or op is _MOD:
            kind, about, divisor = first[0]
            if kind < 2 or kind > 7:  # sums, products and constants have places of their own in a chain
                kind, about = 4, f"{first[4]:x}"
            if divisor < 1:
                divisor = 1
            found = ((kind, about, divisor * abs(b.arg) if op is _IDIV else divisor), 1, code, structure, structure)
        else:
            found = (_OTHER, 1, code, structure, structure)
    else:
        below: list[int] = []
        for s in src:
            rank = s.rank or (_rank(s, levels - 1) if levels else None)
            if rank is None:
                return None
            below.append(rank[4])
        structure = hash((code, typed, 0 if arg is None else _stable(arg), *below))
        if op is _CONST:
            found = (_NUMBER, arg, code, structure, structure)
        elif op is _VCONST:
            found = (_NUMBERS, 1, code, structure, structure)
        elif op in _NAMED:
            found = ((2, str(node.field("name")), 0), 1, code, structure, structure)
        elif op is _RANGE:
            found = ((3, f"{arg[0]:08d}" if isinstance(arg[0], int) else str(arg[0]), 0), 1, code, structure, structure)
        elif op is _WHERE:  # choices by one condition stand together
            found = ((6, f"{below[0]:x}", 0), 1, code, structure, structure)
        else:
            found = (_OTHER, 1, code, structure, structure)
    _set_rank(node, found)
    return found


def _stable(arg: Any) -> int:
    """A hash of a node's argument that does not depend on the process."""
    if arg is None:
        return 0
    if isinstance(arg, tuple):
        return hash(tuple([_stable(a) for a in arg]))
    if isinstance(arg, (bool, int, float)):  # -1 and -2 have one hash in Python; every NaN alike
        return hash((type(arg).__name__ == "float", arg, arg < -1)) if arg == arg else 1
    if isinstance(arg, str):
        return crc32(data(arg))
    if isinstance(arg, (enum.Enum, DType)):
        return crc32(arg.name.encode())
    return crc32(data(repr(arg)))


_set_rank: Final = setter("rank")
