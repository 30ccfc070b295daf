"""Functions written against `Dialect`, compiled anew with the dialect's own field accesses in place of its methods.

The engine's loop is one ordinary typed function. A dialect that offers code templates (`Dialect.inline`) gets a copy of
it in which `opkey(n)`, `operands(n)` and their like are those templates, so that generality costs nothing at run time.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from morok.dialect import Dialect

# The calls that may be replaced, with the placeholders of their arguments in `Dialect.inline`.
CALLS: Mapping[str, tuple[str, ...]] = {"opkey": ("n",), "operands": ("n",), "same": ("a", "b"), "recall": ("n",)}


class _Inliner(ast.NodeTransformer):
    def __init__(self, inline: Mapping[str, str]) -> None:
        self.inline = inline

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in self.inline or node.func.id not in CALLS:
            return node
        arguments = {k: f"({ast.unparse(a)})" for k, a in zip(CALLS[node.func.id], node.args, strict=True)}
        return ast.parse(self.inline[node.func.id].format(**arguments), mode="eval").body


def specialize(function: Callable[..., Any], dialect: Dialect) -> Callable[..., Any]:
    """`function` for `dialect`: its calls of `opkey`, `operands`, `same` and `recall` inlined, or bound to the methods."""
    bound = {name: getattr(dialect, name, None) for name in CALLS}
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree = ast.fix_missing_locations(_Inliner(dialect.inline).visit(tree))
    name = f"<{function.__name__} for {dialect.name}>"
    linecache.cache[name] = (0, None, [line + "\n" for line in ast.unparse(tree).splitlines()], name)
    namespace = {**function.__globals__, **bound}
    exec(compile(ast.unparse(tree), name, "exec"), namespace)
    specialized: Callable[..., Any] = namespace[function.__name__]
    return specialized
