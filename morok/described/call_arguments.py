"""The arguments of a call: their key, the inputs that they give a plan, and their stand-ins in a description."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from morok.caller import caller
from morok.described.code_names import slots
from morok.described.value_keys import ARGUMENTS, PLAIN, is_a, key_of, value_key, word_of
from morok.errors import JitArgumentError, MorokError, UsageError
from morok.ir.cell import facts_of
from morok.ir.graph import substitute, toposort
from morok.ir.number import to_bits
from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.nn.module import Module
from morok.passes.rangeify.state import MOVEMENT, beneath
from morok.runtime.buffer import BITS, NUMPY, Buffer
from morok.runtime.device import device
from morok.tensor import registry
from morok.tensor.base import Lazy
from morok.tensor.describing import unknown
from morok.tensor.realize import realize
from morok.tensor.scheduling import placeholder
from morok.tensor.stored import constant, is_empty, memory
from morok.tensor.tensor import Tensor
from morok.tensor.view_methods import reshaped
from morok.tensor.viewed import valid

_PLAIN: Final = object()  # key in a node's memo: the result of `_plain`
_FORM: Final = object()  # key in a node's memo: the result of `_form`
_AGAIN: Final = object()  # in a key: a container that has been there before
_DEEP: Final = 100  # most levels of nested containers

Form = tuple[UOp, tuple[UOp, ...]]


class Arguments:
    """The arguments of one call.

    key         a tuple of all properties that a plan depends on: each argument's kind, and the sharing of memory and variables
    tensors     the distinct tensors by id; for an array a tensor over it
    leaves      the distinct Buffer nodes below them, with their numbers
    serials     the serial numbers of these nodes
    binds       the distinct bound variables (Bind nodes), with their numbers
    containers  the distinct containers by id: lists, tuples, dicts, dataclasses
    roots       what the key contains by identity, which may change: objects, keys of dicts, the classes of containers
    """

    __slots__ = (
        "key",
        "tensors",
        "leaves",
        "serials",
        "binds",
        "containers",
        "roots",
        "nodes",
        "_arrays",
        "_given",
        "_parts",
        "_views",
    )

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tensors: dict[int, Lazy] = {}
        # for constant tensors, which have no memory: their nodes over memory for this call
        self.nodes: dict[int, UOp] = {}
        self.leaves: dict[UOp, int] = {}
        self.binds: dict[UOp, int] = {}
        self.containers: dict[int, Any] = {}
        self.roots: list[Any] = []
        self._arrays: dict[int, Tensor] = {}  # by the identity of the array
        self._given: dict[int, np.ndarray[Any, Any]] = {}
        self._parts: list[Any] = []
        self._views: list[Lazy] = []
        try:
            self._row(args, 0)
            for name, value in kwargs.items():
                self._parts.append(name)
                self._row((value,), 0)
        except MorokError:
            raise
        except Exception as problem:
            raise _unseen(problem) from problem
        if self.binds:
            self._parts += [bind.src[0] for bind in self.binds]
        if self._views:
            numbers = {key: k for k, key in enumerate(self.tensors)}
            for t in self._views:
                seen = [(numbers[id(base)], how) for ref, _, how in valid(t) if id(base := ref()) in numbers]
                if seen:
                    self._parts += ("view", numbers[id(t)], *seen)
        self.key = tuple(self._parts)
        self.serials = [leaf.serial for leaf in self.leaves]

    def _row(self, values: Iterable[Any], depth: int) -> None:
        """Add the values at one level of containers."""
        parts, tensors, leaves, containers = self._parts, self.tensors, self.leaves, self.containers
        for value in values:
            kind = type(value)
            if kind is Tensor:
                node = value.uop
                plain = node.memo.get(_PLAIN)
                # the common case of `_tensor`, without a call
                if plain and not value._viewed and id(value) not in tensors:
                    tensors[id(value)] = value
                    leaf = node if node.op is Op.Buffer else node.src[0]
                    parts += (kind, plain, leaves.setdefault(leaf, len(leaves)))
                else:
                    self._tensor(value)
            elif (kind is tuple or kind is list) and depth < _DEEP and id(value) not in containers:
                containers[id(value)] = value
                parts += (kind, len(value))
                self._row(value, depth + 1)
            elif kind in PLAIN:
                parts += (kind, value)
            elif kind is float:
                parts.append(value_key(value))
            else:
                self._add(value, depth)

    def _add(self, value: Any, depth: int) -> None:
        """Add a value other than an exact Tensor, a plain value, a float, or a tuple or list that has not been there before."""
        parts = self._parts
        kind = type(value)
        if id(value) in self.containers:
            parts += (_AGAIN, [*self.containers].index(id(value)))
        elif kind is UOp:
            form, binds = (value.src[0], (value,)) if value.op is Op.Bind else _form(value)
            parts += (UOp, form, *[self.binds.setdefault(b, len(self.binds)) for b in binds])
        elif is_a(value, Lazy):
            self._tensor(value)
        elif is_a(value, np.ndarray):
            made = self._arrays.get(id(value))
            if made is None:
                made = self._arrays[id(value)] = Tensor(value)
                self._given[id(value)] = value
            parts.append(np.ndarray)
            self._tensor(made)
        elif is_a(value, Module):
            parts += (key_of(kind), id(value))
            self.roots.append(value)
        elif (inner := _inner(value)) is not None:
            if depth == _DEEP:
                raise JitArgumentError(
                    f"an argument of a jitted function is nested {_DEEP} deep",
                    place=caller(),
                    expected="no container in itself",
                )
            self.containers[id(value)] = value
            self.roots += [k for k in value if type(k) not in PLAIN] if _is_dict(kind) else [kind]
            self._named(kind, inner, depth)
        else:
            parts.append(value_key(value))
            self.roots.append(value)

    def _named(self, kind: type, parts: list[tuple[Any, Any]], depth: int) -> None:
        self._parts += (key_of(kind), len(parts))
        for name, value in parts:
            self._parts.append(name)
            self._row((value,), depth + 1)

    def _tensor(self, value: Lazy) -> None:
        key, tensors, leaves = id(value), self.tensors, self.leaves
        if key in tensors:
            self._parts.append([*tensors].index(key))
            return
        tensors[key] = value
        if value._viewed:
            self._views.append(value)
        if hasattr(value, "__dict__"):  # of a class of the user's
            self.roots.append(type(value))
            self._named(dict, list(vars(value).items()), 0)
        node = value.uop
        plain = _plain(node)
        if not plain:
            node = _with_memory(value, self.nodes)
            plain = _plain(node)
        if plain:
            leaf = node if node.op is Op.Buffer else node.src[0]
            self._parts += (value.__class__, plain, leaves.setdefault(leaf, len(leaves)))
            return
        form, binds = _form(node)
        found = leaf_of(node)
        number = -1 if found is None else leaves.setdefault(found, len(leaves))
        self._parts += (value.__class__, form, value.device, number, len(binds))
        self._parts += [self.binds.setdefault(b, len(self.binds)) for b in binds]

    @property
    def numbered(self) -> list[Lazy]:
        """The tensors by number."""
        return list(self.tensors.values())

    def spelled(self, tensor: Lazy) -> Any:
        """The argument for a tensor of this call: the array that it is over, or the tensor itself."""
        return (
            next((self._given[key] for key, t in self._arrays.items() if t is tensor), tensor)
            if self._arrays
            else tensor
        )

    def array(self, value: np.ndarray[Any, Any]) -> Lazy:
        """The tensor over an array among the arguments."""
        return self._arrays[id(value)]

    def copied(self, written: Iterable[int]) -> list[tuple[np.ndarray[Any, Any], Tensor]]:
        """The arrays among some arguments, which are to be written, whose memory their tensors do not share: they have another
        layout. UsageError for one that is read-only.
        """
        if not self._arrays:
            return []
        ids = list(self.tensors)
        found = {ids[k] for k in written}
        arrays = [(self._given[key], t) for key, t in self._arrays.items() if id(t) in found]
        return apart(arrays)


def apart(arrays: list[tuple[np.ndarray[Any, Any], Tensor]]) -> list[tuple[np.ndarray[Any, Any], Tensor]]:
    """The written arrays whose memory their tensors do not share. UsageError for one that is read-only."""
    found = [(array, t) for array, t in arrays if not np.shares_memory(array, t.numpy())]
    if not all(array.flags.writeable for array, _ in found):
        raise UsageError(
            "a jitted function writes to an argument that is a read-only array",
            place=caller(),
            hint="give it array.copy()",
        )
    return found


def is_over(array: np.ndarray[Any, Any], t: Tensor) -> bool:
    """True if a tensor that was made of an array, and written, has the array's memory."""
    found = registry.memory_of(memory(t.uop))
    return found is not None and found.address == array.ctypes.data


def _with_memory(t: Lazy, nodes: dict[int, UOp]) -> UOp:
    """A tensor's node over memory: a constant tensor gets memory, and its new node is added to `nodes`; other lazy tensors are
    computed. Views stay views.
    """
    if beneath(t.uop, MOVEMENT).op is Op.Buffer:
        return t.uop
    known = constant(t.uop)
    if known is None and not is_empty(t.shape):
        realize([t], asked=False)
        return t.uop
    if not all(isinstance(d, int) for d in t.shape):  # a constant of symbolic shape
        nodes[id(t)] = t.uop
        return t.uop
    total = math.prod([int(d) for d in t.shape if isinstance(d, int)])
    buffer = Buffer(device(t.device), t.dtype, total)
    if known is not None:
        buffer.copy_in(_filled(t, known, total).view(NUMPY[t.dtype]))
    nodes[id(t)] = made = reshaped(registry.new_buffer(t.dtype, total, t.device, buffer), t.shape)
    return made


def is_without_memory(t: Lazy) -> bool:
    """True if a tensor is made of a number by views alone."""
    return beneath(t.uop, MOVEMENT).op is Op.Const


def _filled(t: Lazy, known: UOp, total: int) -> np.ndarray[Any, Any]:
    if t.dtype in BITS:
        return np.full(total, to_bits(t.dtype, known.arg), NUMPY[t.dtype])
    return np.full(total, known.arg, NUMPY[t.dtype])


def _plain(node: UOp) -> tuple[Any, ...]:
    """(shape, dtype, device) of a Buffer, or of a reshaped Buffer; () for other nodes and symbolic shapes."""
    found: tuple[Any, ...] | None = node.memo.get(_PLAIN)
    if found is None:
        leaf = node.src[0] if node.op is Op.Reshape else node
        shape = shape_of(node) if leaf.op is Op.Buffer else ()
        known = leaf.op is Op.Buffer and all(isinstance(d, int) for d in shape)
        found = facts_of(node)[_PLAIN] = _shared((shape, leaf.dtype, leaf.src[1].arg)) if known else ()
    return found


@functools.lru_cache(maxsize=1024)
def _shared(plain: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first of equal tuples, cached: keys with the same object compare by identity."""
    return plain


def leaf_of(node: UOp) -> UOp | None:
    """The Buffer node below a view; None if there is none."""
    return next((n for n in toposort([node]) if n.op is Op.Buffer), None)


def _form(node: UOp) -> Form:
    """(normalised node, its Bind nodes in order): Binds are replaced by numbered variables, the Buffer by a placeholder."""
    found: Form | None = node.memo.get(_FORM)
    if found is None:
        order = toposort([node])
        binds = tuple([n for n in order if n.op is Op.Bind])
        mapping = {b: UOp.var(f"{b.src[0].arg[0]}#{k}", b.dtype, *b.src[0].arg[1:]) for k, b in enumerate(binds)}
        leaf = leaf_of(node)
        if leaf is not None:
            mapping[leaf] = placeholder(0, leaf.dtype, leaf.arg, leaf.src[1].arg)
        form = substitute([node], mapping)[0]
        found = (form, binds)
        if form is not node:  # else the node would refer to itself, and stay alive
            facts_of(node)[_FORM] = found
    return found


def _inner(value: Any) -> list[tuple[Any, Any]] | None:
    """(name, part) of each part of a container: a list, tuple, dict or dataclass; None for anything else. The attributes of a
    container of a class are parts of it.
    """
    kind = type(value)
    if kind is list or kind is tuple:
        return list(enumerate(value))
    if _is_named_tuple(kind):
        return [*enumerate(tuple.__iter__(value)), *getattr(value, "__dict__", {}).items()]
    if _is_dict(kind):
        return [*((value_key(k), v) for k, v in value.items()), *_beside_items(value)]
    if _is_dataclass(kind):
        return [(name, getattr(value, name)) for name in _attributes(value)]
    return None


def _is_dict(kind: type) -> bool:
    """True for Python's own dicts, by identity: a class may say that it equals any."""
    return kind is dict or kind is OrderedDict or kind is defaultdict


def _beside_items(value: Any) -> list[tuple[Any, Any]]:
    """(name, part) of what a dict of Python's has besides its items: a factory of defaults, or attributes."""
    if type(value) is defaultdict:
        return [("default_factory", value.default_factory)]
    return [*getattr(value, "__dict__", {}).items()]


def _is_named_tuple(kind: type) -> bool:
    entries = [vars(base) for base in kind.__mro__]
    return issubclass(kind, tuple) and any("_fields" in e for e in entries) and any("_make" in e for e in entries)


def _is_dataclass(kind: type) -> bool:
    return any("__dataclass_fields__" in vars(base) for base in kind.__mro__)


def _unseen(problem: Exception) -> JitArgumentError:
    """The error for an argument or result whose own code raises when it is looked into."""
    return JitArgumentError(
        f"an argument or a result of a jitted function raises {word_of(type(problem))} when it is looked into: {problem}",
        place=caller(),
        expected=ARGUMENTS,
        hint="the error before this one says where",
    )


def _attributes(value: Any) -> list[str]:
    """The names of a dataclass's fields, and of the other attributes that it has."""
    names = [f.name for f in dataclasses.fields(value)]
    return [n for n in dict.fromkeys((*names, *slots(value), *getattr(value, "__dict__", ()))) if hasattr(value, n)]


def rebuilt(value: Any, replace: Callable[[Any], Any]) -> Any:
    """A container of the same kind, with its parts replaced by `replace`; None for anything but a container."""
    try:
        return _rebuilt(value, replace)
    except (MorokError, RecursionError):
        raise
    except Exception as problem:
        raise _unseen(problem) from problem


def _rebuilt(value: Any, replace: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind is list:
        return [replace(v) for v in value]
    if kind is tuple:
        return tuple([replace(v) for v in value])
    if _is_named_tuple(kind):
        row = kind._make([replace(v) for v in tuple.__iter__(value)])
        for name, v in getattr(value, "__dict__", {}).items():
            setattr(row, name, replace(v))
        return row
    if _is_dict(kind):
        found: Any = kind() if kind is not defaultdict else defaultdict(replace(value.default_factory))
        found.update({k: replace(v) for k, v in value.items()})
        for name, v in getattr(value, "__dict__", {}).items():
            setattr(found, name, replace(v))
        return found
    if _is_dataclass(kind):
        try:
            made = object.__new__(kind)
        except TypeError:  # a dataclass that is a list, say
            made = copy.copy(value)
        for name in _attributes(value):
            object.__setattr__(made, name, replace(getattr(value, name)))
        return made
    return None


def over_arrays(value: Any, made: dict[int, tuple[Any, Tensor]], depth: int = 0) -> Any:
    """`value` with a tensor in place of each array, also inside containers; `value` itself if it has none. `made` has the arrays
    and their tensors, by the id of the array.
    """
    if is_a(value, np.ndarray):
        if id(value) not in made:
            made[id(value)] = value, Tensor(value)
        return made[id(value)][1]
    if depth == _DEEP or type(value) in PLAIN or is_a(value, (Lazy, Module, UOp)):
        return value
    changed = False

    def replaced(part: Any) -> Any:
        nonlocal changed
        now = over_arrays(part, made, depth + 1)
        changed |= now is not part
        return now

    now = rebuilt(value, replaced)
    return now if changed else value


class Stands:
    """The stand-ins for the arguments of a call in its descriptions: unknown Buffer nodes, the same in all descriptions; tensors
    over them, and containers of these, new in each.

    kept    ids of tensors and containers that are passed themselves: the function also reaches them otherwise, or their memory
    """

    def __init__(self, given: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.given, self.args, self.kwargs = given, args, kwargs
        self.leaves = [
            unknown(registry.new_buffer(leaf.dtype, leaf.arg, leaf.src[1].arg), "an argument") for leaf in given.leaves
        ]
        self.kept: set[int] = set()
        self.tensors: dict[int, Lazy] = {}  # id of the call's tensor -> its stand-in
        self.containers: dict[int, tuple[Any, Any]] = {}  # id of the argument -> (argument, stand-in)
        self.binds: dict[UOp, UOp] = {}

    def anew(self, shifted: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) of stand-ins for another description; if `shifted`, variables have other values than in the call."""
        self.tensors, self.containers = {}, {}
        self.binds = {b: _shifted(b) if shifted else b for b in self.given.binds}
        mapping = {**dict(zip(self.given.leaves, self.leaves, strict=True)), **self.binds}
        for key, t in self.given.tensors.items():
            if key in self.kept:
                self.tensors[key] = t
            else:
                node = self.given.nodes.get(key, t.uop)
                made = self.tensors[key] = type(t)._make(substitute([node], mapping)[0], t.device)
                made._viewed, made._mark = valid(t), object()
        for key, t in self.given.tensors.items():
            if key not in self.kept and hasattr(t, "__dict__"):
                vars(self.tensors[key]).update({name: self._replaced(v) for name, v in vars(t).items()})
        return tuple([self._replaced(a) for a in self.args]), {k: self._replaced(a) for k, a in self.kwargs.items()}

    def keep(self, reached: frozenset[int]) -> None:
        """Pass those arguments themselves that are among these ids. A list with arrays is not, as tensors are to be in it."""
        self.kept |= reached & self.given.tensors.keys()
        self.kept |= {
            key for key in reached & self.given.containers.keys() if _is_without_arrays(self.given.containers[key])
        }

    def constants(self) -> dict[UOp, int]:
        """The stand-ins for the memory of arguments that are constants, with the arguments' numbers."""
        leaves = [leaf_of(self.given.nodes[k]) if is_without_memory(t) else None for k, t in self.given.tensors.items()]
        return {self.leaves[self.given.leaves[leaf]]: k for k, leaf in enumerate(leaves) if leaf is not None}

    def _replaced(self, value: Any) -> Any:
        if is_a(value, Lazy):
            return self.tensors[id(value)]
        if is_a(value, np.ndarray):
            return self.tensors[id(self.given.array(value))]
        if is_a(value, UOp):
            return substitute([value], self.binds)[0]
        if id(value) not in self.given.containers or id(value) in self.kept:
            return value
        if id(value) not in self.containers:
            self.containers[id(value)] = (value, _AGAIN)
            self.containers[id(value)] = (value, rebuilt(value, self._replaced))
        made = self.containers[id(value)][1]
        if made is _AGAIN:
            raise JitArgumentError(
                "an argument of a jitted function contains itself", place=caller(), expected="no container in itself"
            )
        return made

    def changed(self) -> str:
        """A container argument that the function changed, in words; "" if there is none."""
        owners = [(t, self.tensors[key]) for key, t in self.given.tensors.items() if hasattr(t, "__dict__")]
        changeable = [
            (value, made, _inner(value) or [], _inner(made) or []) for value, made in self.containers.values()
        ]
        changeable += [(t, made, [*vars(t).items()], [*vars(made).items()]) for t, made in owners if t is not made]
        for value, _, before, now in changeable:
            replaced = [(name, self._replaced(v)) for name, v in before]
            if len(now) != len(replaced) or any(
                a != b or v is not w for (a, v), (b, w) in zip(now, replaced, strict=True)
            ):
                return f"an argument, a {type(value).__name__} of {len(before)}"
        return ""


def _is_without_arrays(value: Any) -> bool:
    return over_arrays(value, {}) is value


def _shifted(bind: UOp) -> UOp:
    """A Bind with another value, if there is one: the value plus 1, cyclically, so that different values stay different."""
    variable, value = bind.src
    low, high = int(variable.vmin), int(variable.vmax)
    other = int(value.arg) + 1 if int(value.arg) < high else low
    return UOp.new(Op.Bind, (variable, UOp.const(other, value.dtype)))
