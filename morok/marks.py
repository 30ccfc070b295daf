"""The mark of helper functions, which rule files may name, and the set of trusted modules, which may be imported.

Loading a rule file runs no code: helpers are found by their mark in the text of their module (morok.dsl.helpers), and the module
is imported only if the user trusts it.
"""

from __future__ import annotations

from contextlib import contextmanager

from morok.errors import UsageError

TYPE_CHECKING = False  # type checkers take it for true; this module is loaded with every helper of the compiler
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar, overload

    F = TypeVar("F", bound=Callable[..., Any])

MARK = "__morok_helper__"
_trusted: set[str] = set()
_vouched: dict[str, Callable[[Any], bool]] = {}

if TYPE_CHECKING:

    @overload
    def helper(function: F) -> F: ...
    @overload
    def helper(
        function: None = None,
        *,
        arguments: Callable[[Any], Iterable[tuple[Any, ...]]] | None = None,
        context: Callable[[], Any] | None = None,
    ) -> Callable[[F], F]: ...


def helper(
    function: Any = None,
    *,
    arguments: Callable[[Any], Iterable[tuple[Any, ...]]] | None = None,
    context: Callable[[], Any] | None = None,
) -> Any:
    """The same function, marked as a helper that rule files may name. UsageError for anything but a function.

    arguments  (random.Random) -> tuples of arguments for the tests of its contract, besides those generated from the types of
               its parameters
    context    () -> the last argument of helpers in a group with `@context`, for the tests

    >>> @morok.helper
    ... def half(c: int) -> int:
    ...     return c // 2
    >>> half(6)
    3
    """

    def mark(function: Any) -> Any:
        try:
            if callable(function):
                setattr(function, MARK, (arguments, context))
                return function
        except (AttributeError, TypeError):  # a function written in C has no attributes
            pass
        raise UsageError("@morok.helper marks a function", expected="`@morok.helper` in the line above its `def`")

    return mark if function is None else mark(function)


def built_in(module: str) -> bool:
    """True if a module belongs to Morok."""
    return module == "morok" or module.startswith("morok.")


def trust(module: str) -> None:
    """Trust a module: rules in this process may import it and call its helpers."""
    _trusted.add(module)


@contextmanager
def trusting(modules: Iterable[str]) -> Iterator[None]:
    """A context in which these modules are trusted."""
    more = set(modules) - _trusted
    _trusted.update(more)
    try:
        yield
    finally:
        _trusted.difference_update(more)


def trusted(module: str) -> bool:
    return built_in(module) or module in _trusted


def vouch(home: str, same: Callable[[Any], bool]) -> None:
    """Record the tested version of the helper `home` ("module:name"): `same` is true for its function."""
    _vouched[home] = same


def vouched(home: str, function: Any) -> bool:
    """True if a function is the tested version of the helper `home`, or none was recorded."""
    same = _vouched.get(home)
    return same is None or same(function)
