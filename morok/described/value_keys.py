"""Keys of Python values that compare types and bits, unlike `==`."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import re
import struct
import types
import uuid
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from morok.caller import caller
from morok.errors import JitArgumentError
from morok.ir.dtype import DType
from morok.ir.uop import UOp
from morok.nn.module import Module
from morok.tensor.base import Lazy
from morok.tensor.variable import Variable

ARGUMENTS: Final = "tensors, arrays, modules, numbers, texts; lists, tuples, dicts and dataclasses of them"
# Immutable types whose values compare correctly by `==`.
PLAIN: Final = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented)})
# Immutable types of objects that differ in value or in their words if anything in them differs.
_SPELLED: Final = frozenset(
    {
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.timezone,
        decimal.Decimal,
        fractions.Fraction,
        pathlib.PosixPath,
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
        pathlib.WindowsPath,
        re.Pattern,
        uuid.UUID,
    }
)
_WORD: Final = vars(type)["__name__"]
_METHODS: Final = (types.BuiltinMethodType, types.MethodWrapperType)
_VALUES: Final = PLAIN | _SPELLED | {float, complex, slice, range, tuple, frozenset, types.MethodType}


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """True if a value is of these classes, whatever it says itself, as mocks and proxies do by `__class__`."""
    return issubclass(type(value), kinds)


def word_of(kind: type) -> str:
    """The name of a class, whatever its metaclass says."""
    return str(_WORD.__get__(kind))


def key_of(kind: type) -> Hashable:
    """A key for a class, whatever equality and hash its metaclass has."""
    return kind if type(kind) is type else id(kind)


def value_key(value: Any) -> Hashable:
    """A key that is equal for values of the same type and bits: 1, 1.0 and True have different keys, as have 0.0 and -0.0; NaNs
    of the same bits have the same key.

    Other objects have their id in their key, also those with an equality of their own, which may ignore what the function
    looks at. JitArgumentError for a value without a hash.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is float:
        return kind, struct.pack("<d", value)
    if kind is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if is_a(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if kind is slice or kind is range:
        return kind, *[value_key(v) for v in (value.start, value.stop, value.step)]
    if kind is tuple:
        return kind, *[value_key(v) for v in value]
    if kind is frozenset:
        return kind, *map(value_key, value)  # in the order in which it is iterated over
    if kind is types.MethodType:
        return kind, id(value.__func__), id(value.__self__)
    if is_a(value, _METHODS):
        return kind, value.__name__, id(value.__self__)
    if is_a(value, Variable):
        return kind, value.node
    if kind is decimal.Decimal:
        return kind, repr(value)
    if is_a(value, (DType, UOp, Lazy, Module, np.ndarray, enum.Enum, type)):
        return key_of(kind), id(value)
    try:
        hash(value)
    except Exception:
        raise JitArgumentError(
            f"an argument of a jitted function is of type {word_of(kind)}, which has no hash",
            place=caller(),
            expected=ARGUMENTS,
            hint="a frozenset in place of a set, a Module for an object with tensors and changing attributes",
        ) from None
    if kind in _SPELLED or is_a(value, np.dtype):
        return kind, value, repr(value)
    return key_of(kind), id(value)


def is_value(value: Any) -> bool:
    """True if a value of this type cannot change, but for parts that can: its key is made of its parts, not of its id."""
    return type(value) in _VALUES or is_a(value, (np.generic, np.dtype, Variable, *_METHODS))


def same(a: Any, b: Any) -> bool:
    """True if two values are the same object, or have the same type and bits."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in PLAIN:
        return bool(a == b)
    if is_value(a):
        try:
            return value_key(a) == value_key(b)
        except JitArgumentError:  # a tuple contains a value without a hash
            return False
    return False
