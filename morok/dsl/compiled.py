"""Generated matchers, linked to functions. Imports no compiler: a matcher cached on disk runs without loading it."""

from __future__ import annotations

import functools
import importlib
import linecache
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from morok.dialect import NUMBERS, Dialect
from morok.dsl import extent, values
from morok.errors import IRTypeError, UnknownNameError, UnprovedRuleError, UntrustedHelperError
from morok.marks import MARK, trusted, vouched


class Generated(NamedTuple):
    """A generated matcher, not yet linked to the objects of a dialect.

    code     defines one function per op, and MATCH: op name -> function; "" stands for every other op
    source   makes its text, on demand: for readers and tracebacks
    names    the names of the rules, by number
    helpers  "module:function" of each helper that the code calls, by the helper's name in the code
    """

    code: CodeType
    source: Callable[[], str]
    names: tuple[str, ...]
    helpers: Mapping[str, str]


class _Text:
    """The source text of a module without a file; the module keeps it alive."""

    def __init__(self, source: Callable[[], str]) -> None:
        self.source = source


class _Loader:
    """The loader of such a module, for linecache. Its reference is weak: linecache outlives the rules."""

    def __init__(self, text: _Text) -> None:
        self.text = weakref.ref(text)

    def get_source(self, name: str) -> str:
        text = self.text()
        return "" if text is None else text.source()


def link(
    made: Generated,
    dialect: Dialect,
    wrap: Callable[[str, Any], Any] | None = None,
    tried: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """MATCH of generated code: op name -> function. `wrap` replaces each helper (its name, the function) by another; a counting
    matcher calls `tried` with a rule's number.
    """
    code, text = made.code, _Text(made.source)
    failures = (*values.FAILURES, getattr(dialect, "undefined", values.NoValue))
    namespace: dict[str, Any] = {
        **values.NAMES,
        **extent.NAMES,
        **getattr(dialect, "names", {}),
        "_d": dialect,
        "_held": functools.partial(values.held, dialect),
        "_failures": failures,
        "_no_node": (*failures, IRTypeError),
        "_derive": getattr(dialect, "derive", None),
        "_keep": getattr(dialect, "keep", None),
        "_same_axes": getattr(dialect, "same_axes", None),
        "_subst": dialect.facts.get("subst"),
        "NUMBERS": NUMBERS,
        "_tried": tried,
        "__name__": code.co_filename,
        "__loader__": _Loader(text),
        "__text__": text,
    }
    linecache.lazycache(code.co_filename, namespace)
    for name in names_in(code):
        if name in namespace:
            continue
        kind, _, rest = name.partition("_")
        if kind == "K":
            namespace[name] = dialect.ops[rest].key
        elif kind == "D":
            namespace[name] = dialect.dtypes[rest]
        elif kind == "E":
            namespace[name] = dialect.ops[rest].evaluate
        elif kind == "F":
            namespace[name] = dialect.facts[rest]
        elif name == "_stands_in":
            from morok.dsl.instance import Checks  # lazy: few matchers have rules that are not proved at every size

            namespace[name] = Checks(dialect).stands_in
        elif kind == "H":
            function, helper = _helper(made.helpers[name])
            namespace[name] = helper if wrap is None else wrap(function, helper)
    exec(code, namespace)
    found: dict[str, Any] = namespace["MATCH"]
    return found


def helper_module(module: str) -> Any:
    """The module of helpers, imported; UntrustedHelperError unless the user trusts its code."""
    if not trusted(module):
        what = f"the rules call helpers of {module}, Python code that nobody said to trust"
        hint = "load_rules(.., trust_helpers=True), or `--trust-helpers`, tests their contracts and uses them"
        raise UntrustedHelperError(what, expected="a module whose code may run here", hint=hint)
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        hint = "it is imported as by any Python program: is it installed, or its folder in PYTHONPATH?"
        raise UnknownNameError(
            f"the helpers of {module}: {problem}", expected="a module that can be imported", hint=hint
        ) from problem


def _helper(home: str) -> tuple[str, Any]:
    """(name, function) of the helper at "module:function". UnknownNameError if the module marks no such function;
    UnprovedRuleError if it is not the one whose contract was tested.
    """
    module, _, name = home.rpartition(":")
    found = getattr(helper_module(module), name, None)
    if found is None or not hasattr(found, MARK):
        what = f"{module} has no function {name}" if found is None else f"{name} of {module} is not marked as a helper"
        expected = f"a function {name} that the module marks: `@morok.helper` above its `def`"
        raise UnknownNameError(f"{what}, which a rule file declares", expected=expected)
    if not vouched(home, found):
        hint = "load the rules again: that tests what there is now"
        raise UnprovedRuleError(f"{name} of {module} is not the function whose contract was tested", hint=hint)
    return name, found


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of functions inside it."""
    stack = [code]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(c for c in at.co_consts if isinstance(c, CodeType))


def names_in(code: CodeType) -> set[str]:
    """The names of globals and attributes in a function's code, and in that of functions inside it."""
    return {name for at in codes(code) for name in at.co_names}
