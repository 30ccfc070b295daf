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

# (kind, what it is about, divisor so far, factor, op, structure without the factor, structure): compared from the left. The
# first three are those of a term whatever its factor: like terms agree in them.
Key = tuple[int, str, int, Any, int, int, int]

_KEY: Final = "order"
_ADD: Final = Op.Add
_MUL: Final = Op.Mul
_IDIV: Final = Op.Idiv
_MOD: Final = Op.Mod
_CONST: Final = Op.Const
_VCONST: Final = Op.VConst
_RANGE: Final = Op.Range
_WHERE: Final = Op.Where
_NAMED: Final = frozenset({Op.DefineVar, Op.Special})
# A number for each op that is the same in every process.
_CODE: Final[dict[Op, int]] = {op: crc32(op.name.encode()) for op in Op}


def precedes(a: UOp, b: UOp) -> bool:
    """Whether `a` stands strictly before `b` in the structural order."""
    first, second = a.memo, b.memo
    if first is not None and second is not None:
        x, y = first.get(_KEY), second.get(_KEY)
        if x is not None and y is not None:
            return bool(x < y)
    return order(a) < order(b)


def order(node: UOp) -> Key:
    """The sort key of a node."""
    found: Key | None = node.memo.get(_KEY)
    if found is not None:
        return found
    stack = [node]
    while stack:
        at = stack[-1]
        for s in at.src:
            if _KEY not in s.memo:
                stack.append(s)
        if stack[-1] is at:
            stack.pop()
            found = at.memo[_KEY] = _key(at)
    assert found is not None
    return found


_DTYPES: Final[dict[DType, int]] = {}


def _dtype_code(d: DType) -> int:
    return _DTYPES.setdefault(d, crc32(d.name.encode()))


def _known(node: UOp) -> Key:
    key: Key = node.memo[_KEY]
    return key


_type_codes: dict[DType, int] = {}


def _type_code(d: DType) -> int:
    """A number for a dtype that is the same in every process."""
    code = _type_codes.get(d)
    if code is None:
        code = _type_codes[d] = crc32(d.name.encode())
    return code


def _key(node: UOp) -> Key:
    """The key of a node whose operands have theirs."""
    op = node.op
    src = node.src
    arg = node.arg
    code = _CODE[op]
    structure = hash((code, _type_code(node.dtype), 0 if arg is None else _stable(arg), *[s.memo[_KEY][6] for s in src]))
    if op is _ADD:
        return (0, "", 0, 1, code, structure, structure)
    if op is _MUL:
        if src[1].op is _CONST:
            kind, about, divisor, _, inner, bare, _ = _known(src[0])
            return (kind, about, divisor, src[1].arg, inner, bare, structure)
        return (1, "", 0, 1, code, structure, structure)
    if op is _CONST:
        return (9, "", 0, node.arg, code, structure, structure)
    if op is _VCONST:
        return (8, "", 0, 1, code, structure, structure)
    if op in _NAMED:
        return (2, str(node.field("name")), 0, 1, code, structure, structure)
    if op is _RANGE:
        return (3, f"{node.arg[0]:08d}" if isinstance(node.arg[0], int) else str(node.arg[0]), 0, 1, code, structure, structure)
    if (op is _IDIV or op is _MOD) and src[1].op is _CONST:
        kind, about, divisor, _, _, _, inside = _known(src[0])
        if kind < 2 or kind > 7:  # sums, products and constants have places of their own in a chain
            kind, about = 4, f"{inside:x}"
        divisor = max(divisor, 1)
        return (kind, about, divisor * abs(src[1].arg) if op is _IDIV else divisor, 1, code, structure, structure)
    if op is _WHERE:  # choices by one condition stand together
        return (6, f"{_known(src[0])[6]:x}", 0, 1, code, structure, structure)
    return (5, "", 0, 1, code, structure, structure)


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
