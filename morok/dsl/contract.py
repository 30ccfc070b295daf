"""The language of helpers' contracts: numbers, values of nodes, and facts about the arguments and the results themselves.

Proofs assume a contract, and calls test it. It therefore states only what a call can test, and builds no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from morok.dialect import Dialect
from morok.dsl import syntax as S
from morok.dsl.functions import FUNCTIONS, SPECIAL, Function
from morok.dsl.parse import suggest
from morok.errors import RuleError, RuleTypeError, UnknownNameError

# The types of parameters and results that are no nodes; a `bool` may also be a node.
COMPILE_TIME: Final = frozenset({"const", "bool", "int", "dtype", "seq"})
EVERY_DIALECT: Final = ("same", "dtype", "lanes")
_BUILDERS: Final = frozenset(SPECIAL) - {"axes"}
_READ: Final = (S.ENumber, S.EUnary, S.EBinary, S.ECompare, S.EIndex, S.ERange, S.EList, S.ESpread)
_SAID: Final = "numbers, and facts about what the helper is given and returns"


class Wrong(NamedTuple):
    """A mistake in a contract."""

    kind: type[RuleError]
    message: str
    at: S.Syntax
    expected: str = ""
    hint: str = ""


def mistakes(extern: S.Extern, dialect: Dialect) -> Iterator[Wrong]:
    """The mistakes in the `requires` and `ensures` of a helper."""
    params = {p.name: p for p in extern.params}
    everything = params | {p.name: p for p in extern.results}
    for clause, known in [(c, params) for c in extern.requires] + [(c, everything) for c in extern.ensures]:
        todo: list[tuple[S.Syntax, frozenset[str]]] = [(clause, frozenset())]
        while todo:
            node, counted = todo.pop()
            wrong = None
            if isinstance(node, S.EName):
                if node.name not in {*known, *counted, *dialect.dtypes}:
                    early = "results are not known yet in `requires`" if node.name in everything else ""
                    hint = suggest(node.name, {*known, *counted}) or early
                    wrong = Wrong(UnknownNameError, f"`{node.name}` is no parameter of {extern.name}", node, hint=hint)
            elif isinstance(node, S.EComprehension):
                taken = next((n for n in node.names if n in {*everything, *counted} and not n.startswith("_")), None)
                if taken is not None:
                    wrong = Wrong(RuleTypeError, f"`{taken}` is bound already", node)
                counted |= set(node.names)
            elif isinstance(node, S.ECall):
                wrong = _call(node, dialect, {n: p for n, p in known.items() if n not in counted})
            elif not isinstance(node, _READ):
                wrong = Wrong(RuleTypeError, "a contract says nothing of this", node, _SAID)
            if wrong is not None:
                yield wrong
            else:
                todo += [(c, counted) for c in S.children(node)]


def _call(e: S.ECall, dialect: Dialect, named: dict[str, S.Param]) -> Wrong | None:
    """The mistake in one call of a function or a fact; None if it has none."""
    if e.name in dialect.ops or e.name in _BUILDERS:
        message = f"`{e.name}(..)` makes a node, or a constant of one, and a contract is about values"
        return Wrong(RuleTypeError, message, e, _SAID)
    function = FUNCTIONS.get(e.name)
    if function is None and e.name not in dialect.facts:
        functions = {*FUNCTIONS, *dialect.facts}
        return Wrong(UnknownNameError, f"there is no function `{e.name}`", e, hint=suggest(e.name, functions))
    if function is not None and not _counted(function, len(e.args)):
        some = len(function.params)
        return Wrong(RuleTypeError, f"{e.name} takes {some} argument{'s' if some > 1 else ''}, not {len(e.args)}", e)
    if function is not None and function.fact and e.name not in (*EVERY_DIALECT, *dialect.facts):
        return Wrong(
            RuleTypeError, f"the dialect {dialect.name} has no {e.name}", e, hint=suggest(e.name, dialect.facts)
        )
    kinds = ("any",) * len(e.args) if function is None else function.kinds(len(e.args))
    for kind, a in zip(kinds, e.args, strict=True):
        if kind == "node" and not (isinstance(a, S.EName) and a.name in named and _may_be_node(named[a.name])):
            return Wrong(RuleTypeError, f"{e.name} is asked of a node that is given or returned", a, _SAID)
        if kind == "dtype" and not _is_dtype(a, dialect, named):
            return Wrong(RuleTypeError, f"{e.name} is asked of a dtype", a, "dtype(x)")
        if function is None and not (isinstance(a, S.EName) and a.name in named):
            return Wrong(RuleTypeError, f"{e.name} is asked of what is given or returned", a, _SAID)
    return None


def _counted(function: Function, count: int) -> bool:
    """True if a function takes `count` operands; a fold and `zip` take any number of them."""
    some = len(function.params)
    return count >= some if function.params == ("several",) or function.result == "tuple" else count == some


def _may_be_node(p: S.Param) -> bool:
    return not (isinstance(p.type, S.TName) and p.type.name in COMPILE_TIME and p.type.name != "bool")


def _is_dtype(e: S.Expr, dialect: Dialect, named: dict[str, S.Param]) -> bool:
    if isinstance(e, S.ECall):
        return e.name == "dtype"
    if not isinstance(e, S.EName):
        return False
    p = named.get(e.name)
    return e.name in dialect.dtypes if p is None else isinstance(p.type, S.TName) and p.type.name == "dtype"
