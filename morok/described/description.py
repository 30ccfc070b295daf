"""Descriptions of a function: the results and writes of a call, as graphs over stand-ins for its arguments."""

from __future__ import annotations

import enum
import gc
import sys
import types
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from morok.arguments import shown
from morok.caller import caller
from morok.described.call_arguments import Stands, rebuilt
from morok.described.left_behind import settle
from morok.described.reach import Reach
from morok.described.turns import without_turn
from morok.described.value_keys import is_a, is_value, same, value_key, word_of
from morok.errors import JitArgumentError, JitDifferenceError, JitEffectError
from morok.ir.dtype import DType, dtypes
from morok.ir.graph import toposort
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor import registry
from morok.tensor.base import Lazy, show
from morok.tensor.describing import Description
from morok.tensor.scheduling import Normal, normalised
from morok.tensor.stored import constant, content, leaves_of, memory


@dataclass(frozen=True, slots=True)
class New:
    """A tensor in the result that the call makes."""

    uop: UOp
    device: str
    kind: type[Lazy]


@dataclass(frozen=True, slots=True)
class Write:
    """A write: the new node of an existing tensor.

    tensor    the tensor, if the function reaches it; None for an argument
    given     an argument's number among the tensors of the arguments
    in_place  True if its memory is overwritten (Assign)
    """

    tensor: Lazy | None
    given: int | None
    uop: UOp
    device: str
    in_place: bool


@dataclass(slots=True)
class Described:
    """One description: its result (see `Pattern`), the new tensors in it, the writes, the record, the arguments' Bind nodes, the
    tensors that the function reaches with their nodes before.
    """

    pattern: Any
    new: list[New]
    writes: list[Write]
    noted: Description
    binds: list[UOp]
    nodes: list[tuple[Lazy, UOp]]
    normal: Normal = field(init=False)

    def __post_init__(self) -> None:
        self.normal = normalised([*[n.uop for n in self.new], *[w.uop for w in self.writes]], "")

    @property
    def buffers(self) -> list[UOp]:
        return self.normal.buffers


class Pattern:
    """A maker of patterns, results as nested tuples: ("new", k) for a new tensor, ("given", k) for an argument's, ("container",
    k) for an argument's container, ("value", v), ("node", n), ("parts", container, patterns), ("again", k) for the container that
    was the k-th to be complete.

    reached  the ids of the objects that the function reaches, which are values
    """

    def __init__(self, stands: Stands, noted: Description, reached: frozenset[int]) -> None:
        self.new: list[Lazy] = []
        self.reached = reached
        self.made: dict[int, int] = {}
        self.given = {id(t): k for k, t in enumerate(stands.tensors.values())}
        numbers = {key: k for k, key in enumerate(stands.given.containers)}
        self.containers = {id(made): numbers[key] for key, (_, made) in stands.containers.items()}
        self.binds = {made: k for k, made in enumerate(stands.binds.values())}
        self.noted = noted

    def of(self, value: Any) -> Any:
        if is_a(value, Lazy):
            if id(value) in self.given:
                return "given", self.given[id(value)]
            if not self.noted.is_own(value):
                return "value", value
            if getattr(value, "__dict__", None):
                raise _unable("returns a new tensor with attributes")
            at = next((k for k, t in enumerate(self.new) if t is value), len(self.new))
            if at == len(self.new):
                self.new.append(value)
            return "new", at
        if id(value) in self.containers:
            return "container", self.containers[id(value)]
        if is_a(value, UOp):
            return "node", value
        if id(value) in self.reached or is_a(value, np.ndarray) or _is_constant(value):
            return "value", value
        if id(value) in self.made:
            return "again", self.made[id(value)]
        parts: list[Any] = []
        try:
            made = rebuilt(value, lambda v: parts.append(self.of(v)))
        except RecursionError:
            raise JitArgumentError(
                "a result contains itself", place=caller(), expected="no container in itself"
            ) from None
        if made is None:
            raise _unable(f"returns a new {word_of(type(value))}")
        self.made[id(value)] = len(self.made)
        return "parts", made, tuple(parts)


def _is_constant(value: Any) -> bool:
    """True if a value in a result stands for itself: nobody can change it, and no call makes another one."""
    if is_a(value, (frozenset, slice)):
        return all(map(_is_constant, value if is_a(value, frozenset) else (value.start, value.stop, value.step)))
    if is_a(value, (tuple, types.MethodType)):
        return False
    return is_value(value) or is_a(value, (DType, enum.Enum, type, types.FunctionType, types.ModuleType))


def _unable(what: str) -> JitArgumentError:
    return JitArgumentError(
        f"a jitted function {what}",
        place=caller(),
        expected="tensors, arrays, numbers, texts; lists, tuples, dicts and dataclasses of them",
        hint="return its parts, and make the object of them outside the function",
    )


def built(pattern: Any, make: Callable[[str, Any], Any], done: list[Any] | None = None) -> Any:
    """The value of a pattern; `make(kind, what)` makes the value of each innermost tuple. `done` are the complete containers."""
    kind, what = pattern[0], pattern[1]
    done = [] if done is None else done
    if kind == "again":
        return done[what]
    if kind != "parts":
        return make(kind, what)
    parts = iter(pattern[2])
    done.append(rebuilt(what, lambda _: built(next(parts), make, done)))
    return done[-1]


def described(
    function: Callable[..., Any],
    stands: Stands,
    keys: list[UOp],
    roots: Sequence[tuple[str, Any]],
    name: str,
    shifted: bool,
) -> Described:
    """One description of the function. Nobody else sees its writes, its exceptions propagate. JitEffectError for side effects.

    roots  (name, object) of the function and of objects among the arguments
    """
    born = registry.new_name()
    noted = Description(born, keys, lambda device: registry.new_buffer(dtypes.u64, 1, device))
    try:
        return _described(function, stands, noted, roots, name, shifted)
    except BaseException:
        settle(noted, stands)
        raise


def _described(
    function: Callable[..., Any],
    stands: Stands,
    noted: Description,
    roots: Sequence[tuple[str, Any]],
    name: str,
    shifted: bool,
) -> Described:
    """The result of described(), in its record."""
    before, loaded = Reach(roots), frozenset(sys.modules)
    stands.keep(before.ids)
    nodes = [(t, t.uop) for t in before.tensors]
    arrays = [(path, value, _sum_of(value)) for path, value in before.values.items() if is_a(value, np.ndarray)]
    with noted.active():
        args, kwargs = stands.anew(shifted)
        noted.stands = {k: (weakref.ref(t), t._mark) for k, t in stands.tensors.items() if k not in stands.kept}
        noted.constants = stands.constants()
        started = {key: t.uop for key, t in stands.tensors.items()}
        result = _called(function, args, kwargs, noted)
        del args, kwargs
    pattern = Pattern(stands, noted, before.ids)
    shape = pattern.of(result)
    new = [New(t.uop, t.device, type(t)) for t in pattern.new]
    numbers = {key: k for k, key in enumerate(stands.given.tensors)}
    writes = [
        Write(None, numbers[key], t.uop, t.device, _is_in_place(t.uop, started[key]))
        for key, t in stands.tensors.items()
        if key not in stands.kept and t.uop is not started[key]
    ]
    given = {id(t): numbers[key] for key, t in stands.tensors.items() if key in stands.kept}
    writes += [
        Write(None if key in given else t, given.get(key), now, t.device, _is_in_place(now, old))
        for key, (t, old) in noted.before.items()
        if (now := noted.now[key]) is not old
    ]
    changed = stands.changed()
    del result
    pattern.new.clear()
    if changed:
        raise _effect(name, f"changes {changed}")
    # Loading a module changes objects, which is no effect of the function. If the call was the first to load one, objects are
    # compared in the next description, which finds it loaded.
    if loaded.issuperset(sys.modules) and (difference := before.difference(Reach(roots))):
        raise _effect(name, f"changes an object that it reaches: {difference}")
    if rewritten := next((path for path, array, was in arrays if _sum_of(array) != was), None):
        raise _effect(name, f"writes to an array that it reaches: {rewritten}")
    _refuse_lost(noted, [*[n.uop for n in new], *[w.uop for w in writes]], name)
    _refuse_leaks(noted, stands, name)
    return Described(shape, new, writes, noted, list(stands.binds.values()), nodes)


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], noted: Description) -> Any:
    """The result of a call. The first error for elements that were needed, also if the function has caught it: without jit it
    would have had the elements.
    """
    try:
        result = without_turn(function, args, kwargs)
    except Exception as problem:
        if noted.refused is None or problem is noted.refused:
            raise
        raise noted.refused from None
    if noted.refused is not None:
        raise noted.refused
    return result


def _sum_of(array: np.ndarray[Any, Any]) -> int:
    """A checksum of an array's elements."""
    plain = array.flags.c_contiguous and array.dtype.kind in "biufc"
    return zlib.crc32(array.data if plain else array.tobytes())


def _is_in_place(uop: UOp, old: UOp) -> bool:
    return content(uop).op is Op.Assign and memory(uop) is content(old)


def _effect(name: str, what: str) -> JitEffectError:
    return JitEffectError(
        f"{name} {what}",
        place=caller(),
        expected="a function of its arguments without other effects than writes to tensors",
        hint="write to a tensor in place, t.assign(..) or t[..] = ..; return new tensors",
    )


def _refuse_lost(noted: Description, roots: list[UOp], name: str) -> None:
    """JitEffectError if an array that the function gives to a jitted one is written, and computing `roots` does not write it."""
    computed = set(toposort(roots)) if noted.written_arrays else set()
    if any(is_apart or content(node) not in computed for node, is_apart in noted.written_arrays):
        raise _effect(name, "lets another jitted function write to an array")


def _refuse_leaks(noted: Description, stands: Stands, name: str) -> None:
    """JitEffectError if a tensor made by the function is alive, although it is not in the result."""
    stands.tensors, stands.containers = ({k: t for k, t in stands.tensors.items() if k in stands.kept}, {})
    for attempt in range(2):
        alive = [t for r in noted.made if (t := r()) is not None]
        if not alive:
            return
        if attempt == 0:
            shapes = [f"{show(t.shape)} {t.dtype}" for t in alive]
            del alive
            gc.collect()  # a reference cycle may hold it
        else:
            raise _effect(name, f"leaves a tensor somewhere: {shapes[0]}")


def agree(first: Described, second: Described, name: str) -> None:
    """JitDifferenceError if two descriptions differ."""

    def differ(what: str) -> JitDifferenceError:
        return JitDifferenceError(
            f"described twice, {name} {what}",
            place=caller(),
            expected="one graph for one set of arguments",
            hint="pass values that change from call to call as arguments, or write them to tensors in place",
        )

    a, b = first, second
    if len(a.writes) != len(b.writes) or any(
        v.tensor is not w.tensor or v.given != w.given for v, w in zip(a.writes, b.writes, strict=True)
    ):
        raise differ("writes different tensors")
    if a.noted.events != b.noted.events:
        raise differ("draws random numbers in another way")
    if not _same_pattern(a.pattern, b.pattern, dict(zip(b.binds, a.binds, strict=True))):
        texts = [shown(_plain(d.pattern)) for d in (a, b)]
        raise differ(f"returns {texts[0]} and {texts[1] if texts[0] != texts[1] else 'something else of these words'}")
    if [(n.kind, n.device, n.uop.dtype) for n in a.new] != [(n.kind, n.device, n.uop.dtype) for n in b.new]:
        raise differ("returns tensors of other kinds")
    if a.normal.roots != b.normal.roots:
        raise differ("computes something else")
    own = [{d.normal.forms[x].arg[0] for x in d.binds if x in d.normal.forms} for d in (a, b)]
    if own[0] != own[1] or any(a.normal.values[n] != b.normal.values[n] for n in a.normal.values if n not in own[0]):
        raise differ("binds variables to other values")
    for x, y in zip(a.buffers, b.buffers, strict=True):
        if not _same_data(x, y, a.noted, b.noted):
            raise differ("computes with other numbers")


def _plain(pattern: Any) -> Any:
    return built(pattern, lambda kind, what: what if kind == "value" else f"<{kind} {what}>")


def _same_pattern(a: Any, b: Any, binds: dict[UOp, UOp]) -> bool:
    if a[0] != b[0]:
        return False
    if a[0] == "parts":
        if type(a[1]) is not type(b[1]) or len(a[2]) != len(b[2]):
            return False
        if is_a(a[1], dict) and [*map(value_key, a[1])] != [*map(value_key, b[1])]:
            return False
        return all(_same_pattern(v, w, binds) for v, w in zip(a[2], b[2], strict=True))
    if a[0] == "node":
        return a[1] is b[1].substitute(binds)
    if is_a(a[1], np.ndarray) and is_a(b[1], np.ndarray):
        return a[1] is b[1] or (
            a[1].dtype == b[1].dtype and a[1].shape == b[1].shape and a[1].tobytes() == b[1].tobytes()
        )
    return same(a[1], b[1])


def is_same_array(x: UOp, y: UOp, a: Description, b: Description) -> bool:
    """True if two Buffer nodes were made of the same ndarray, or of two views of the same memory."""
    if x not in a.arrays or y not in b.arrays:
        return False
    first, second = a.arrays[x][0], b.arrays[y][0]
    return first is second or (first.size > 0 and first.__array_interface__ == second.__array_interface__)


def _same_data(x: UOp, y: UOp, a: Description, b: Description) -> bool:
    if x is y or is_same_array(x, y, a, b):
        return True
    if x.src[0].arg < a.born or y.src[0].arg < b.born or x.src[1] is not y.src[1]:
        return False
    first, second = registry.memory_of(x), registry.memory_of(y)
    if first is None or second is None:
        return first is second
    return first.numpy().tobytes() == second.numpy().tobytes()


def lazies(made: Described) -> list[Lazy]:
    """The outer tensors that are lazy, and whose nodes a description contains, or that are made of memory which it writes."""
    nodes = set(toposort([*[n.uop for n in made.new], *[w.uop for w in made.writes]]))
    written = {memory(w.uop) for w in made.writes if w.in_place}

    def is_part(uop: UOp) -> bool:
        node = content(uop)
        if node.op is Op.Buffer or constant(node) is not None:
            return False
        return node in nodes or not written.isdisjoint(leaves_of(node))

    return [t for t in registry.tensors() if is_part(t.uop) and not made.noted.is_own(t)]
