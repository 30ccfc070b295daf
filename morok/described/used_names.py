"""The names by which the code that a function reaches can find attributes. Attributes of other names do not count: the function
neither reads nor sets them.

Code finds attributes by the names and texts in it. Beyond these:

- Operators call methods with names like `__mul__`: these count always; those that make, compare or spell an object do where code
  may do that.
- Code that computes names, as for `getattr` without a text, and libraries that may look into what they are given: then all
  attributes count.
- All attributes of an object count if its class has a base class of a library, for its methods read them, or looks attributes up
  itself, as by `__getattr__`. Of a `Module` the tensors, layers and containers count where code walks or spells modules.
"""

from __future__ import annotations

import abc
import types
import typing
from typing import Any, Final

import numpy as np

from morok.described.code_names import LOOKUPS, SETS, is_library, names_of, only_set, top
from morok.nn.module import Module
from morok.tensor.base import Lazy

_HARMLESS: Final = frozenset({
    "_abc", "_collections", "_collections_abc", "_contextvars", "_functools", "_operator", "_random", "_struct", "_thread",
    "_weakref", "_weakrefset", "abc", "array", "bisect", "builtins", "cmath", "collections", "contextlib", "contextvars",
    "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "genericpath", "heapq", "itertools", "keyword",
    "logging", "math", "morok", "nt", "ntpath", "numbers", "numpy", "operator", "os", "pathlib", "posix", "posixpath", "random",
    "re", "string", "struct", "sys", "time", "types", "typing", "uuid", "warnings", "weakref",
})  # fmt: skip
"""Packages of libraries that look up no attributes of what they are given, but those in `_PROTOCOLS` and `_NUMPYS`."""
_PROTOCOLS: Final = frozenset({
    "_summary", "as_integer_ratio", "close", "denominator", "detach", "dtype", "flush", "forward", "imag", "item", "items",
    "keys", "measured", "ndim", "numerator", "read", "readline", "real", "requires_grad", "send", "throw", "values",
    "write",
})  # fmt: skip
"""Names that Python's functions, and Morok, look up without their being in the code: `print` calls `write`, a layer `forward`."""
_NUMPYS: Final = frozenset(dir(np.ndarray)) | {n for n, f in vars(np).items() if isinstance(f, np.ufunc)}
_WALKS: Final = frozenset({
    "train", "eval", "parameters", "state_dict", "load_state_dict", "_children", "_modules", "_tensors", "repr", "str", "print",
    "ascii", "__repr__", "__str__", "__format__",
})  # fmt: skip
"""Names in code that walks the tensors and layers of a module, or spells it."""
_MAKES: Final = frozenset({
    "__init__", "__init_subclass__", "__new__", "__post_init__", "__del__", "__copy__", "__deepcopy__", "__reduce__",
    "__reduce_ex__", "__replace__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__", "__getinitargs__",
})  # fmt: skip
"""Methods by which objects of a class are made, which count if the code has the class."""
_SETS: Final = frozenset({"__init__", "__post_init__"})
_COMPARES: Final = frozenset({
    "__contains__", "__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__", "count", "index", "max", "min", "remove", "sort",
    "sorted",
})  # fmt: skip
"""Names in code that may compare by `==`."""
_NUMBERS: Final = (
    np.generic,
    np.dtype,
    np.ufunc,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.RandomState,
    type(np.sum),
)
_BY_NAME: Final = frozenset({"__dataclass_fields__", "__dataclass_params__", "__match_args__"})
_CLASSES: Final = frozenset({"type", "__class__", "__new__", "__mro__", "mro", "__bases__", "__base__"})
"""Names in code that has the classes of objects."""
_LOOKS: Final = frozenset({"__getattr__", "__getattribute__", "__setattr__", "__delattr__"})
_BASES: Final = frozenset({object, Module, abc.ABC, typing.Generic, typing.Protocol})
_METACLASSES: Final = frozenset({object, type, abc.ABCMeta, type(typing.Protocol)})
_CONTAINERS: Final = (Lazy, Module, list, tuple, dict)
_OF_C: Final = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)


class Names:
    """The names in the code that is reached so far; `settle` must follow each addition.

    own     packages that are not taken as libraries
    found   the names and texts
    walks   True if the code walks or spells modules
    """

    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.found = {"__getattr__"}
        self.looks = self.walks = False
        self._all = False  # a library may look up any attribute
        self._classes: set[type] = set()  # whose name is in the code
        self._closed: set[type] = set()  # those of which all attributes count
        self._open: dict[int, bool] = {}  # by the id of the class, which may say that it equals others
        self._protocols = _PROTOCOLS
        self._makes = False
        self._set: set[str] = set()
        self._sets = False

    def is_foreign(self, module: Any) -> bool:
        """True if the module of this name belongs to a library that neither the function nor an argument is of."""
        name = str(module)
        return is_library(name) and top(name) not in self.own

    def add_code(self, code: types.CodeType) -> None:
        """Add the names in a function's code. What a method that makes objects sets is of a new object, unless others call it."""
        names = names_of(code)
        if code.co_name in _SETS:
            self._set |= only_set(code)
            names -= only_set(code)
        elif not names.isdisjoint(_SETS):
            self._sets = True
        self.found |= names

    def add_function(self, code: types.CodeType) -> None:
        """Note that the code has a function itself, not as a method under its own name."""
        self._sets = self._sets or code.co_name in _SETS

    def add_library(self, module: Any) -> None:
        """Add the names that the library of this module may look up."""
        package = top(str(module))
        if package not in _HARMLESS:
            self._all = True
        elif package not in ("builtins", "math", "morok"):
            self.found |= {"__eq__", "__format__"}
        if package == "numpy":
            self._protocols = _PROTOCOLS | _NUMPYS

    def add_object(self, value: Any) -> None:
        """Add the names that an object of a library may look up; note if it may call code of the program."""
        module = str(type(value).__module__)
        self.add_library(module)
        package = top(module)
        if package == "numpy":
            is_own = not issubclass(type(value), np.ufunc) or vars(np).get(value.__name__) is value
            is_known = is_own and issubclass(type(value), _NUMBERS)
        elif package == "datetime":
            is_known = getattr(value, "tzinfo", None) is None
        else:
            is_known = package != "typing"
        if not is_known:
            self.add_unknown()

    def add_alias(self, name: str) -> None:
        """Add the own name of a library's function or class, whatever name the code has for it."""
        if not name.startswith("__"):
            self.found.add(name)

    def add_unknown(self) -> None:
        """Note that code is reached whose names nobody knows."""
        self._all = True

    def add_class(self, kind: type) -> None:
        """Note that the code has a class itself, and may make objects of it."""
        self._classes.update(kind.__mro__)
        if kind is types.FunctionType or kind is types.CodeType:
            self.add_unknown()
        # for `isinstance`, which asks for these
        for base in kind.__mro__ if isinstance(kind, type(typing.Protocol)) else ():
            self.found.update(vars(base), vars(base).get("__annotations__", ()))
        if self.is_foreign(kind.__module__):
            self.add_alias(kind.__name__)

    def settle(self) -> None:
        """Update the facts that follow from the names found so far."""
        if self._sets:
            self.found |= self._set
        self.looks = not self.found.isdisjoint(LOOKUPS)
        self.walks = not self.found.isdisjoint(_WALKS)
        self._makes = not self.found.isdisjoint(_CLASSES)

    def is_global(self, name: str) -> bool:
        """True if a global of a module counts."""
        return name in self.found or (self.looks and not name.startswith("__"))

    def is_attribute(self, name: str, value: Any, owner: Any) -> bool:
        """True if an attribute of an object or function counts."""
        if name in self.found or name in self._protocols or self.looks or self._all or name.startswith("__"):
            return True
        return (
            self.walks
            and issubclass(type(owner), Module)
            and (name == "training" or issubclass(type(value), _CONTAINERS))
        )

    def of_class(self, name: str, kind: type) -> bool:
        """True if an entry of a class counts."""
        if self.looks or self._all or kind in self._closed:
            return True
        if name in _MAKES and (self._makes or kind in self._classes):
            return True
        if name in _SETS:
            return self._sets
        if name in self.found or name in self._protocols or name in self._set:  # to set it may call a property
            return True
        if name in _MAKES:
            return False
        # it is called by name, or where code compares
        if name == "__eq__" and vars(kind).get("__hash__", name) is None:
            return not self.found.isdisjoint(_COMPARES)
        if name == "__repr__":
            return self.walks
        if name in ("__setattr__", "__delattr__"):
            return SETS in self.found or self.walks
        return name.startswith("__") and name.endswith("__") and name not in _BY_NAME

    def is_open(self, kind: type) -> bool:
        """True if attributes of the objects of a class count by name, since only code that is reached can read them."""
        found = self._open.get(id(kind))
        if found is None:
            is_known = all(map(self._is_plain, kind.__mro__)) and self._is_made_by_python(type(kind))
            if not is_known:
                self._closed.update(kind.__mro__)
            found = is_known and all(base in _BASES or _LOOKS.isdisjoint(vars(base)) for base in kind.__mro__)
            self._open[id(kind)] = found
        return found

    def _is_plain(self, base: type) -> bool:
        if base in _BASES:
            return True
        if self.is_foreign(base.__module__):
            return False
        made = [n for n, v in vars(base).items() if type(v) in _OF_C and v.__objclass__ is base]
        if not {"__dict__", "__weakref__"}.issuperset(made):
            self._all = True  # an extension of the user's in another language
            return False
        return True

    def _is_made_by_python(self, meta: type) -> bool:
        return all(m in _METACLASSES or not self.is_foreign(m.__module__) for m in meta.__mro__)
