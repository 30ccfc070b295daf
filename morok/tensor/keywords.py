"""`dim` and `keepdims` beside `axis` and `keepdim`: the names that other libraries have for them.

A method with `@other_names` takes its arguments under either name. What the other names accept is said in its signature, as
`**also: Unpack[Along]`, for type checkers; the method itself never sees them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypedDict, TypeVar

from morok.arguments import shown
from morok.caller import caller
from morok.errors import ArgumentTypeError

P = ParamSpec("P")
R = TypeVar("R")

Axis = int | Sequence[int] | None

_OTHER: Final = {"dim": "axis", "keepdims": "keepdim", "axis": "dim", "keepdim": "keepdims"}


class Along(TypedDict, total=False):
    """The other name of one axis."""

    dim: int


class AlongOrFlat(TypedDict, total=False):
    """The other name of one axis, or None for all elements in order."""

    dim: int | None


class Over(TypedDict, total=False):
    """The other name of some axes."""

    dim: Axis


class Reducing(Over, total=False):
    """The other names of a reduction's axes, and of keeping them with size 1."""

    keepdims: bool


class Locating(AlongOrFlat, total=False):
    """The other names of the axis of a position, and of keeping it with size 1."""

    keepdims: bool


class AsAxis(TypedDict, total=False):
    """The other name of one `dim`."""

    axis: int


class AsAxes(TypedDict, total=False):
    """The other name of several dimensions `dim`."""

    axis: Axis


class AnyAxes(TypedDict, total=False):
    """Names of axes that are given one by one, too."""

    axis: Axis
    dim: Axis


def other_names(method: Callable[P, R]) -> Callable[P, R]:
    """`method`, taking `dim` as `axis`, `keepdims` as `keepdim`, and the reverse; of `*axes`, `axis` and `dim` are names too.

    ArgumentTypeError where an argument is given twice, and for names that are no argument.
    """
    parameters = inspect.signature(method).parameters.values()
    own = frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    # how many positional arguments there are where one is given by position
    beyond = {p.name: k + 1 for k, p in enumerate(parameters) if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)}
    taken = own | {"axis", "dim"} if "axes" in beyond else own

    def renamed(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        out = {name: value for name, value in named.items() if name in own}
        for name, value in named.items():
            if name in own:
                continue
            mine = _OTHER.get(name)
            if mine not in own:
                mine = "axes" if "axes" in beyond and name in ("axis", "dim") else None
            if mine is None:
                raise ArgumentTypeError(
                    f"{method.__name__}() has no argument {shown(name)}",
                    place=caller(),
                    expected=f"one of {', '.join(sorted(taken - {'self', 'cls'}))}",
                )
            if mine in out or len(args) >= beyond.get(mine, len(args) + 1):
                raise ArgumentTypeError(
                    f"{method.__name__}() was given {mine} and {name}", place=caller(), expected="one of the two"
                )
            if mine == "axes":
                args = (*args, value)
            else:
                out[mine] = value
        return args, out

    @functools.wraps(method)
    def taking(*args: P.args, **named: P.kwargs) -> R:
        if own.issuperset(named):
            for name in named:
                if len(args) >= beyond.get(name, len(args) + 1):
                    raise ArgumentTypeError(f"{method.__name__}() was given {name} twice", place=caller(), expected="it once")
            return method(*args, **named)
        renamed_args, renamed_named = renamed(args, named)
        return method(*renamed_args, **renamed_named)

    return taking
