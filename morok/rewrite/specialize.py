"""Specialization of the engine's modules for a dialect: calls such as `opkey(n)` are replaced by the dialect's field accesses.

The engine's loop is written as ordinary typed functions. For a dialect with code templates (`Dialect.inline`) this module
compiles a copy in which the templates replace the calls, so that generality costs nothing at run time.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import linecache
import marshal
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from morok.dialect import Dialect, Node
from morok.rewrite import store

# The calls that templates may replace, with the placeholders of their arguments in `Dialect.inline`.
CALLS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("opkey", "operands", "recall", "nests"), ("n",)) | {
    "same": ("a", "b")
}


if TYPE_CHECKING:  # names used by specialized functions: `specialize` binds or inlines the dialect's own
    opkey: Callable[[Node], Hashable]
    operands: Callable[[Node], Sequence[Node]]
    recall: Callable[[Node], dict[int, Any]]
    nests: Callable[[Node], bool]


class _Inliner(ast.NodeTransformer):
    def __init__(self, inline: Mapping[str, str], names: Mapping[str, Any]) -> None:
        self.inline = inline
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in self.inline or node.func.id not in CALLS:
            return node
        letters = CALLS[node.func.id]
        template = self.inline[node.func.id].format(**{k: f"hole_{k}" for k in letters})
        arguments = {f"hole_{k}": a for k, a in zip(letters, node.args, strict=True)}
        filled: ast.expr = _TemplateFiller(arguments, self.names).visit(ast.parse(template, mode="eval").body)
        return filled


class _TemplateFiller(ast.NodeTransformer):
    """A transformer that puts arguments into a template, and mangles the dialect's names, lest they clash with local names."""

    def __init__(self, arguments: Mapping[str, ast.expr], names: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.names:
            return ast.Name(_mangled(node.id), node.ctx)
        return self.arguments.get(node.id, node)


def _mangled(name: str) -> str:
    return f"_of_the_dialect_{name}"


def specialize(module: ModuleType, dialect: Dialect) -> Mapping[str, Any]:
    """The functions of `module` by name, for a dialect. Calls in CALLS become its templates, or else calls of its methods."""
    bound = {name: getattr(dialect, name, None) for name in CALLS}
    templates = {name: dialect.inline[name] for name in CALLS if name in dialect.inline}
    title = f"<{module.__name__} for {dialect.name}>"
    text = Path(str(module.__file__)).read_bytes()
    names: Mapping[str, Any] = getattr(dialect, "names", {})
    inputs = repr((importlib.util.MAGIC_NUMBER, sys.version, title, text, sorted(templates.items()), sorted(names)))
    key = hashlib.sha256(inputs.encode()).hexdigest()
    cached = store.load(key)
    if cached is not None:
        source, code = marshal.loads(cached)
    else:
        source = ast.unparse(ast.fix_missing_locations(_Inliner(templates, names).visit(ast.parse(text))))
        code = compile(source, title, "exec")
        store.save(key, marshal.dumps((source, code)))
    linecache.cache[title] = (len(source), None, source.splitlines(keepends=True), title)
    namespace = {"__name__": module.__name__, **bound, **{_mangled(name): value for name, value in names.items()}}
    exec(code, namespace)
    return namespace
