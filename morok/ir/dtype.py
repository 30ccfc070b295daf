"""Data types: scalars, vectors, pointers; promotion; lossless casts.

Every DType is interned: two equal dtypes are one object, so `is` compares them and hashing is by identity.
"""

from __future__ import annotations

import enum
import math
from typing import Any, ClassVar, Final

from morok.arguments import instance, refused, whole
from morok.errors import IRTypeError
from morok.ir.alive import Alive

inf: Final = math.inf
_MOST_LANES: Final = (1 << 31) - 1
_MOST_ELEMENTS: Final = (1 << 63) - 1


class AddrSpace(enum.Enum):
    """The memory that a pointer points into."""

    GLOBAL = "global"
    LOCAL = "local"
    REG = "reg"


class DType:
    """A scalar type, or `count` lanes of one.

    name      "f32", "i8", "index", "f32x4"
    kind      "bool" "int" "uint" "index" "float" "void" "ptr" "image"
    bits      width of one lane; 0 for index and void, which have none
    itemsize  bytes that one element occupies in a buffer (bool: 1)
    count     lanes
    min, max  the least and the greatest value of an integer lane; -inf and inf at index and floats
    to_numbers  True for a single pointer to scalar elements
    """

    __slots__ = (
        "name", "kind", "bits", "itemsize", "count", "min", "max", "is_int", "is_signed", "is_unsigned", "is_float", "is_bool",
        "is_index", "is_integral", "is_number", "is_ptr", "to_numbers", "_scalar", "_vectors", "__weakref__",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, bits: int, count: int = 1, scalar: DType | None = None) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits
        self.count = count
        self.itemsize = count * ((bits + 7) // 8)
        self.is_int = kind in ("int", "uint")
        self.is_signed = kind == "int"
        self.is_unsigned = kind == "uint"
        self.is_float = kind == "float"
        self.is_bool = kind == "bool"
        self.is_index = kind == "index"
        self.is_integral = self.is_int or self.is_index
        self.is_number = self.is_integral or self.is_float
        self.is_ptr = kind == "ptr"
        self.to_numbers = False
        self.min, self.max = _limits(kind, bits)
        self._scalar = scalar
        self._vectors: dict[int, DType] = {1: self} if scalar is None else {}

    def scalar(self) -> DType:
        """One lane of this type."""
        return self if self._scalar is None else self._scalar

    def vec(self, n: int) -> DType:
        """`n` lanes of this scalar type; n = 1 is the scalar itself."""
        if self._scalar is not None:
            raise refused(
                self, "what becomes a vector", "a scalar dtype", IRTypeError, ".scalar() is one lane of a vector"
            )
        found = self._vectors.get(n) if n.__class__ is int else None
        if found is None:
            n = whole(n, "the number of lanes", 1, _MOST_LANES, IRTypeError)
            # setdefault is one atomic step, so that two threads get one object
            found = self._vectors.setdefault(n, self._make_vector(n))
        return found

    def _make_vector(self, n: int) -> DType:
        return DType(f"{self.name}x{n}", self.kind, self.bits, n, self)

    def ptr(self, size: int = -1, space: AddrSpace = AddrSpace.GLOBAL) -> PtrType:
        """A pointer to `size` elements of this type (-1: unknown)."""
        return PtrType.of(self, size, space)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype, (self.name,))


class PtrType(DType):
    """A pointer to elements of `base`; `.vec(n)` of it is n pointers, not a pointer to a vector. Interned by weak
    references: there are as many pointer types as sizes of memory.
    """

    __slots__ = ("base", "size", "space")
    _interned: ClassVar[Alive[PtrType]] = Alive()

    base: DType
    size: int
    space: AddrSpace

    @classmethod
    def of(cls, base: DType, size: int, space: AddrSpace) -> PtrType:
        size = whole(size, "the size of what a pointer points to", -1, _MOST_ELEMENTS, IRTypeError)
        instance(base, DType, "what a pointer points to", "a dtype", IRTypeError)
        instance(space, AddrSpace, "where a pointer points", "an AddrSpace", IRTypeError)
        key = (base, size, space.value)  # the hash of an enum is a Python function: see morok.ir.alive
        entry = cls._interned.get(key)
        found = None if entry is None else entry()
        if found is None:
            parts = [base.name] + ([str(size)] if size >= 0 or space is not AddrSpace.GLOBAL else [])
            parts += [space.value] if space is not AddrSpace.GLOBAL else []
            found = cls._build(f"ptr({', '.join(parts)})", base, size, space, 1, None)
            found = cls._interned.entered(key, found)
        return found

    @classmethod
    def _build(cls, name: str, base: DType, size: int, space: AddrSpace, count: int, scalar: PtrType | None) -> PtrType:
        made = cls(name, "ptr", 64, count, scalar)
        made.base, made.size, made.space = base, size, space
        made.to_numbers = base.count == count == 1
        return made

    def _make_vector(self, n: int) -> PtrType:
        return self._build(f"{self.name}x{n}", self.base, self.size, self.space, n, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_load_ptr, (self.base, self.size, self.space, self.count))


def _load_ptr(base: DType, size: int, space: AddrSpace, count: int) -> DType:
    return PtrType.of(base, size, space).vec(count)


def _limits(kind: str, bits: int) -> tuple[int | float, int | float]:
    if kind == "bool":
        return 0, 1
    if kind == "int":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if kind == "uint":
        return 0, (1 << bits) - 1
    return -inf, inf


class dtypes:
    """The scalar dtypes by name.

    >>> dtypes.f32.bits, dtypes.i8.min, dtypes.f32.vec(4)
    (32, -128, f32x4)
    """

    bool = DType("bool", "bool", 8)
    i8 = DType("i8", "int", 8)
    i16 = DType("i16", "int", 16)
    i32 = DType("i32", "int", 32)
    i64 = DType("i64", "int", 64)
    u8 = DType("u8", "uint", 8)
    u16 = DType("u16", "uint", 16)
    u32 = DType("u32", "uint", 32)
    u64 = DType("u64", "uint", 64)
    f8e4m3 = DType("f8e4m3", "float", 8)
    f8e5m2 = DType("f8e5m2", "float", 8)
    f16 = DType("f16", "float", 16)
    bf16 = DType("bf16", "float", 16)
    f32 = DType("f32", "float", 32)
    f64 = DType("f64", "float", 64)
    index = DType("index", "index", 0)
    void = DType("void", "void", 0)
    image = DType("image", "image", 0)

    int8, int16, int32, int64 = i8, i16, i32, i64
    uint8, uint16, uint32, uint64 = u8, u16, u32, u64
    float16, bfloat16, float32, float64 = f16, bf16, f32, f64
    half, float, double = f16, f32, f64


SIGNED: Final = (dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64)
UNSIGNED: Final = (dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64)
INTS: Final = SIGNED + UNSIGNED
FLOATS: Final = (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64)
STORAGE_FLOATS: Final = (dtypes.f8e4m3, dtypes.f8e5m2)  # kept in buffers, computed with as f16
NUMBERS: Final = (*INTS, dtypes.index, *FLOATS)
SCALARS: Final = (dtypes.bool, *NUMBERS)
VALUES: Final = (*SCALARS, *STORAGE_FLOATS)  # the dtypes that ops move, select and convert

BY_NAME: Final[dict[str, DType]] = {d.name: d for d in (*VALUES, dtypes.void, dtypes.image)}


def dtype(name: str) -> DType:
    """The scalar or vector dtype with this name ("f32", "i8x4"); KeyError if there is none."""
    found = BY_NAME.get(name)
    if found is not None:
        return found
    base, x, lanes = name.rpartition("x")
    if x and lanes.isascii() and lanes.isdigit() and int(lanes) > 0 and base in BY_NAME:
        return BY_NAME[base].vec(int(lanes))
    raise KeyError(name)


# (mantissa bits with the hidden one, least exponent of a unit in the last place, greatest exponent) of a float format
FLOAT_FORMAT: Final[dict[DType, tuple[int, int, int]]] = {
    dtypes.f8e4m3: (4, -9, 8),
    dtypes.f8e5m2: (3, -16, 15),
    dtypes.f16: (11, -24, 15),
    dtypes.bf16: (8, -133, 127),
    dtypes.f32: (24, -149, 127),
    dtypes.f64: (53, -1074, 1023),
}


def safe_cast(a: DType, b: DType) -> bool:
    """True if every value of `a` is a value of `b` (inclusion of value sets, not a comparison of widths)."""
    if a.count != b.count:
        return False
    a, b = a.scalar(), b.scalar()
    if a is b:
        return True
    if b.is_float:
        if a.is_float:
            (pa, ua, ea), (pb, ub, eb) = FLOAT_FORMAT[a], FLOAT_FORMAT[b]
            # e4m3 has NaN but no infinity, so nothing with an infinity fits in it
            return pa <= pb and ua >= ub and ea <= eb and b is not dtypes.f8e4m3
        if a.is_bool:
            return True
        if a.is_int:
            precision, _, exponent = FLOAT_FORMAT[b]
            magnitude = a.bits - (1 if a.is_signed else 0)
            return magnitude <= precision and magnitude - 1 <= exponent
        return False
    if not (a.is_integral or a.is_bool) or not (b.is_integral or b.is_bool):
        return False
    return b.min <= a.min and a.max <= b.max


# Each type's immediate successors in the promotion order; bool promotes into everything, floats absorb integers.
_PROMOTES: Final[dict[DType, tuple[DType, ...]]] = {
    dtypes.bool: (dtypes.i8, dtypes.u8, dtypes.index),
    dtypes.index: (dtypes.i64,),
    dtypes.i8: (dtypes.i16,),
    dtypes.i16: (dtypes.i32,),
    dtypes.i32: (dtypes.i64,),
    dtypes.i64: (dtypes.u64,),
    dtypes.u8: (dtypes.u16, dtypes.i16),
    dtypes.u16: (dtypes.u32, dtypes.i32),
    dtypes.u32: (dtypes.u64, dtypes.i64),
    dtypes.u64: (dtypes.f8e4m3, dtypes.f8e5m2),
    dtypes.f8e4m3: (dtypes.f16, dtypes.bf16),
    dtypes.f8e5m2: (dtypes.f16, dtypes.bf16),
    dtypes.f16: (dtypes.f32,),
    dtypes.bf16: (dtypes.f32,),
    dtypes.f32: (dtypes.f64,),
    dtypes.f64: (),
}


def _above(d: DType) -> dict[DType, None]:
    seen: dict[DType, None] = {}
    todo = [d]
    while todo:
        at = todo.pop()
        if at not in seen:
            seen[at] = None
            todo.extend(_PROMOTES[at])
    return seen


_ABOVE: Final[dict[DType, dict[DType, None]]] = {d: _above(d) for d in _PROMOTES}
_RANK: Final[dict[DType, tuple[int, int]]] = {d: (-len(_ABOVE[d]), i) for i, d in enumerate(_PROMOTES)}


def promote(*types: DType) -> DType:
    """The least dtype that all of these promote to: (i8, u8) -> i16, (i32, f16) -> f16, (f16, bf16) -> f32."""
    common = set(_ABOVE[types[0].scalar()])
    for t in types[1:]:
        common &= _ABOVE[t.scalar()].keys()
    return min(common, key=_RANK.__getitem__)
