"""A structural order of nodes: which operand of a commutative index op stands first.

The order looks at ops, names, ids and constants, never at addresses or serial numbers, so every process finds the same one.
Sums come first (they are the left end of a chain), constants last; terms over one variable stand together, its remainders
and quotients by growing divisor, so that like terms and the two halves of a division meet.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from morok.ir.dtype import DType
from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

# What a term is whatever its factor: kind, what it is about, divisor so far. Like terms agree in it.
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
_SUM: Final = (0, "", 0)
_PRODUCT: Final = (1, "", 0)
_OTHER: Final = (5, "", 0)
_NUMBERS: Final = (8, "", 0)
_NUMBER: Final = (9, "", 0)
_NAMED: Final = frozenset({Op.DefineVar, Op.Special})
# A number for each op that is the same in every process.
_CODE: Final[dict[Op, int]] = {op: crc32(op.name.encode()) for op in Op}


def precedes(a: UOp, b: UOp) -> bool:
    """Whether `a` stands strictly before `b` in the structural order."""
    return (a.rank or order(a)) < (b.rank or order(b))


def order(node: UOp) -> Rank:
    """The sort key of a node. What asks often looks at `node.rank` first."""
    found = node.rank
    if found is not None:
        return found
    for s in node.src:
        if s.rank is None:
            break
    else:  # as most often: what is below is older, and was asked for
        found = _rank(node)
        _set_rank(node, found)
        return found
    stack = [node]
    while stack:
        at = stack[-1]
        for s in at.src:
            if s.rank is None:
                stack.append(s)
        if stack[-1] is at:
            stack.pop()
            found = _rank(at)
            _set_rank(at, found)
    assert found is not None
    return found


_type_codes: dict[DType, int] = {}  # the same in every process


def _rank(node: UOp) -> Rank:
    """The rank of a node whose operands have theirs."""
    op = node.op
    src = node.src
    arg = node.arg
    code = _CODE[op]
    dtype = node.dtype
    typed = _type_codes.get(dtype)
    if typed is None:
        typed = _type_codes[dtype] = crc32(dtype.name.encode())
    below: Any
    if arg is None and len(src) == 2:
        a, b = src
        below = a.rank, b.rank
        structure = hash((code, typed, 0, below[0][4], below[1][4]))
    else:
        below = [s.rank for s in src]  # all are known
        structure = hash((code, typed, 0 if arg is None else _stable(arg), *[r[4] for r in below]))
    if op is _ADD:
        return (_SUM, 1, code, structure, structure)
    if op is _MUL:
        if src[1].op is _CONST:
            head, _, inner, bare, _ = below[0]
            return (head, src[1].arg, inner, bare, structure)
        return (_PRODUCT, 1, code, structure, structure)
    if op is _CONST:
        return (_NUMBER, arg, code, structure, structure)
    if op is _VCONST:
        return (_NUMBERS, 1, code, structure, structure)
    if op in _NAMED:
        return ((2, str(node.field("name")), 0), 1, code, structure, structure)
    if op is _RANGE:
        return ((3, f"{arg[0]:08d}" if isinstance(arg[0], int) else str(arg[0]), 0), 1, code, structure, structure)
    if (op is _IDIV or op is _MOD) and src[1].op is _CONST:
        (kind, about, divisor), _, _, _, inside = below[0]
        if kind < 2 or kind > 7:  # sums, products and constants have places of their own in a chain
            kind, about = 4, f"{inside:x}"
        divisor = max(divisor, 1)
        return ((kind, about, divisor * abs(src[1].arg) if op is _IDIV else divisor), 1, code, structure, structure)
    if op is _WHERE:  # choices by one condition stand together
        return ((6, f"{below[0][4]:x}", 0), 1, code, structure, structure)
    return (_OTHER, 1, code, structure, structure)


def _stable(arg: Any) -> int:
    """A hash of a node's argument that does not depend on the process."""
    if arg is None:
        return 0
    if isinstance(arg, tuple):
        return hash(tuple([_stable(a) for a in arg]))
    if isinstance(arg, (bool, int, float)):  # -1 and -2 have one hash in Python; every NaN alike
        return hash((type(arg).__name__ == "float", arg, arg < -1)) if arg == arg else 1
    if isinstance(arg, str):
        return crc32(arg.encode())
    if isinstance(arg, (enum.Enum, DType)):
        return crc32(arg.name.encode())
    return crc32(repr(arg).encode())


from morok.ir.uop import _Cell  # noqa: E402

_set_rank: Final = _Cell.__dict__["rank"].__set__
