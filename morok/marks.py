"""The functions that rule files may name, and the modules whose code this process may run.

A rule file runs no code: it names functions that their own module marks, the mark is read from the module's text
(morok.dsl.helpers), and the module is imported only where whoever runs Morok trusts it.
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
    """The same function, marked as one that rule files may name. UsageError for anything but a function.

    arguments  (random.Random) -> tuples of arguments to test its contract on, besides those that are made up from the types of
               its parameters
    context    () -> what helpers of a group with a `@context` take last, for the tests

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
        except (AttributeError, TypeError):  # of what C wrote
            pass
        raise UsageError("@morok.helper marks a function", expected="`@morok.helper` in the line above its `def`")

    return mark if function is None else mark(function)


def built_in(module: str) -> bool:
    """True if a module is one of Morok's own."""
    return module == "morok" or module.startswith("morok.")


def trust(module: str) -> None:
    """Let the rules of this process import and call the helpers of a module."""
    _trusted.add(module)


@contextmanager
def trusting(modules: Iterable[str]) -> Iterator[None]:
    """Let rules call the helpers of these modules for a while."""
    more = set(modules) - _trusted
    _trusted.update(more)
    try:
        yield
    finally:
        _trusted.difference_update(more)


def trusted(module: str) -> bool:
    return built_in(module) or module in _trusted


def vouch(home: str, same: Callable[[Any], bool]) -> None:
    """Say which function, by "module:name", was tested: one of which `same` is true."""
    _vouched[home] = same


def vouched(home: str, function: Any) -> bool:
    """True if a function is the one that was tested, if one was."""
    same = _vouched.get(home)
    return same is None or same(function)
