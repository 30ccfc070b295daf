"""Python values as keys: by type and bits, not by `==`."""

from __future__ import annotations

import enum
import struct
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

# Values of these types are the same where `is` or `==` says so, and nothing in them can change.
PLAIN: Final = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented)})


def value_key(value: Any) -> Hashable:
    """A key that is equal for values of one type and the same bits: 1, 1.0 and True are three, so are 0.0 and -0.0, a NaN is
    itself.

    Objects that are no values have their identity. JitArgumentError for what has no hash.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is float:
        return kind, struct.pack("<d", value)
    if kind is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if kind in (slice, range):
        return kind, *[value_key(v) for v in (value.start, value.stop, value.step)]
    if kind is tuple:
        return kind, *[value_key(v) for v in value]
    if kind is frozenset:
        return kind, frozenset(map(value_key, value))
    if isinstance(value, Variable):
        return kind, value.node
    if isinstance(value, (DType, UOp, Lazy, Module, np.ndarray, enum.Enum, type)):
        return kind, id(value)
    try:
        hash(value)
    except TypeError:
        raise JitArgumentError(
            f"an argument of a jitted function is of type {kind.__name__}, which has no hash",
            place=caller(),
            expected="tensors, arrays, modules, numbers, texts; lists, tuples, dicts and dataclasses of them",
            hint="a frozenset in place of a set, a Module for what holds tensors and changes",
        ) from None
    if getattr(kind, "__hash__", None) is object.__hash__:
        return kind, id(value)
    return kind, value, repr(value)


def same(a: Any, b: Any) -> bool:
    """True if two values are one object, or of one type and the same bits."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in PLAIN:
        return bool(a == b)
    if isinstance(a, (float, complex, np.generic, slice, range, tuple, frozenset, Variable)):
        try:
            return value_key(a) == value_key(b)
        except JitArgumentError:  # of something in a tuple
            return False
    return False
