"""`dim` and `keepdims` as synonyms of `axis` and `keepdim`: the names in other libraries.

A method with `@other_names` takes these arguments under either name. For type checkers its signature declares the synonyms, as
`**also: Unpack[Along]`; the method itself never receives them.
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
    """The synonym of `axis`, one axis."""

    dim: int


class AlongOrFlat(TypedDict, total=False):
    """The synonym of `axis`, one axis, or None for the flat tensor."""

    dim: int | None


class Over(TypedDict, total=False):
    """The synonym of `axis`, one or several axes."""

    dim: Axis


class Reducing(Over, total=False):
    """The synonyms of a reduction's `axis` and `keepdim`."""

    keepdims: bool


class Locating(AlongOrFlat, total=False):
    """The synonyms of the `axis` and `keepdim` of argmax() and argmin()."""

    keepdims: bool


class AsAxis(TypedDict, total=False):
    """The synonym of `dim`, one axis."""

    axis: int


class AsAxes(TypedDict, total=False):
    """The synonym of `dim`, one or several axes."""

    axis: Axis


class AnyAxes(TypedDict, total=False):
    """Keywords for `*axes`."""

    axis: Axis
    dim: Axis


def other_names(method: Callable[P, R]) -> Callable[P, R]:
    """`method`, which also takes `dim` for `axis`, `keepdims` for `keepdim`, and the reverse; and `axis` or `dim` for `*axes`.

    ArgumentTypeError for an argument given twice, and for unknown names.
    """
    parameters = inspect.signature(method).parameters.values()
    own = frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    # for each parameter the number of positional arguments from which on it is given by position
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
                    raise ArgumentTypeError(
                        f"{method.__name__}() was given {name} twice", place=caller(), expected="it once"
                    )
            return method(*args, **named)
        renamed_args, renamed_named = renamed(args, named)
        return method(*renamed_args, **renamed_named)

    return taking
