"""Helper functions, found and read in the text of their modules, without running any of it.

A helper is a `def` at the top level, whose name nothing else in the module binds, marked `@morok.helper` or `@morok.helper(..)`
under any name that a top-level `import morok ..` or `from morok import helper ..` gives the mark; or a top-level import of such
a function from its module. Modules are found where Python would find them, in folders, namespace packages and zip files; the
`__init__` of their packages is not run, so that its changes to `__path__` have no effect.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from morok.names import did_you_mean, nearest

MARKS: Final = frozenset({"morok.helper", "morok.marks.helper"})
LONGEST: Final = 4_000_000  # characters; a longer module is an error
LONGEST_FILE: Final = 4 * LONGEST  # bytes, of which a character has four at most: of a longer one nothing is read


class Unreadable(Exception):
    """The reason why a helper cannot be named, and the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Definition:
    """The `def` of a marked function.

    place       "file:line"
    parameters  the positional parameters, in order; the first `required` of them have no default
    variadic    it has a `*parameter`
    named       the keyword-only parameters without a default
    returns     the annotation of its result
    """

    name: str
    place: str
    parameters: tuple[str, ...]
    required: int
    variadic: bool
    named: tuple[str, ...]
    returns: ast.expr | None

    def takes(self, count: int) -> bool:
        return not self.named and self.required <= count and (self.variadic or count <= len(self.parameters))

    def signature(self) -> str:
        shown = [*self.parameters, *(["*.."] if self.variadic else []), *(f"*, {n}" for n in self.named)]
        return f"{self.name}({', '.join(shown)})"

    def alternatives(self) -> tuple[list[ast.expr], bool] | None:
        """The types in the annotation of its result, and True if None is among them; None without an annotation."""
        if self.returns is None:
            return None
        found: list[ast.expr] = []
        declines = False
        todo = [self.returns]
        while todo:
            at = todo.pop()
            match at:
                case ast.Constant(value=None):
                    declines = True
                case ast.Constant(value=str() as quoted):
                    try:
                        todo.append(ast.parse(quoted, mode="eval").body)
                    except (SyntaxError, ValueError, RecursionError):
                        return None
                case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                    todo += [left, right]
                case ast.Subscript(value=outer, slice=inner) if _last(outer) == "Optional":
                    declines = True
                    todo.append(inner)
                case ast.Subscript(value=outer, slice=ast.Tuple(elts=elements)) if _last(outer) == "Union":
                    todo += elements
                case _:
                    found.append(at)
        return found, declines


def _last(e: ast.expr) -> str:
    return e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""


def several(e: ast.expr) -> int | None:
    """The number of results that an annotation `tuple[A, B]` promises; None for any other."""
    if isinstance(e, ast.Subscript) and _last(e.value) in ("tuple", "Tuple"):
        elements = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        if not any(isinstance(x, ast.Constant) and x.value is ... for x in elements):
            return len(elements)
    return None


# Modules


def _spec(module: str) -> Any:
    """The import spec of a module; None if Python would not find it. Runs neither the module nor its packages."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        found = getattr(loaded, "__spec__", None)
        if found is None and file is not None:  # a program that runs as a script
            return importlib.util.spec_from_file_location(module, file)
        return found
    first, *rest = module.split(".")
    spec = _top(first)
    at = first
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        at = f"{at}.{part}"
        spec = _below(at, list(spec.submodule_search_locations))
    return spec


def _below(name: str, folders: list[str]) -> Any:
    """The import spec of a module of a package in these folders; None if there is none."""
    try:
        return importlib.machinery.PathFinder.find_spec(name, folders)
    except KeyError:  # a namespace package: Python looks for its parent in sys.modules, where it is not
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        inner = [Path(f, name.rpartition(".")[2]) for f in folders]
        spec.submodule_search_locations = [str(f) for f in inner if f.is_dir()]
        return spec


def _top(name: str) -> Any:
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    for finder in sys.meta_path:
        found = finder.find_spec(name, None) if hasattr(finder, "find_spec") else None
        if found is not None:
            return found
    return None


def source(module: str) -> tuple[str, str]:
    """The file of a module, and its text; Unreadable if it has none."""
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise Unreadable(
            f"{module!r} is no name of a module", 'a dotted name, as behind `import`: helpers "package.module"'
        )
    try:
        spec = _spec(module)
        if spec is None:
            importlib.invalidate_caches()  # the module may be newer than Python's cached listing of its folder
            spec = _spec(module)
    except (ImportError, OSError, ValueError) as problem:
        raise Unreadable(f"the module {module} cannot be found: {problem}") from None
    if spec is None:
        raise Unreadable(f"No module named {module!r}", "is it installed, or its folder in PYTHONPATH?")
    file = str(spec.origin)
    try:
        read = getattr(spec.loader, "get_source", None)
        if spec.has_location and os.path.isfile(file) and (size := os.path.getsize(file)) > LONGEST_FILE:
            raise Unreadable(f"{file} has {size:,} bytes, and at most {LONGEST_FILE:,} are read")
        text = read(module) if read is not None and spec.has_location else None
    except (ImportError, OSError, SyntaxError, ValueError) as problem:
        raise Unreadable(f"the text of {module} cannot be read: {problem}") from None
    if text is None:
        what = "a folder without a module" if spec.origin is None else "compiled"
        hint = "name the module of Python text that defines it, or write one that calls it"
        raise Unreadable(f"{module} is {what}: there is no text of it in which a function could be marked", hint)
    if len(text) > LONGEST:
        raise Unreadable(f"{module} has {len(text):,} characters, and at most {LONGEST:,} are read")
    return file, text


# Their text


@dataclass(frozen=True, slots=True)
class Outline:
    """A module's top-level functions, and the statements that bind each of its names."""

    module: str
    file: str
    functions: Mapping[str, ast.FunctionDef]
    bound: Mapping[str, tuple[tuple[ast.stmt, bool], ...]]  # the flag is True inside a block
    imported: Mapping[str, str]  # the import path of each name that top-level imports alone bind

    def marked(self, function: ast.FunctionDef) -> bool:
        return any(self._stands_for(d.func if isinstance(d, ast.Call) else d) in MARKS for d in function.decorator_list)

    def _stands_for(self, e: ast.expr) -> str:
        parts: list[str] = []
        while isinstance(e, ast.Attribute):
            parts.append(e.attr)
            e = e.value
        if not isinstance(e, ast.Name) or e.id not in self.imported:
            return ""
        return ".".join([self.imported[e.id], *reversed(parts)])

    def origin(self, name: str) -> tuple[str, str] | None:
        """The module and the name from which a top-level `from .. import ..` takes this name; None if it is bound otherwise."""
        places = self.bound.get(name, ())
        if len(places) != 1 or places[0][1] or not isinstance(places[0][0], ast.ImportFrom):
            return None
        s = places[0][0]
        was = next(a.name for a in s.names if (a.asname or a.name) == name)
        if not s.level:
            return s.module or "", was
        package = self.module if Path(self.file).name == "__init__.py" else self.module.rpartition(".")[0]
        for _ in range(s.level - 1):
            package = package.rpartition(".")[0]
        return f"{package}.{s.module}".strip(".") if s.module else package, was

    def helpers(self) -> list[str]:
        """The functions that rule files may name."""
        return [name for name, f in self.functions.items() if len(self.bound[name]) == 1 and self.marked(f)]


def outline(module: str) -> Outline:
    """The outline of a module's text; Unreadable if it has none, or the text is no Python."""
    return _outline(module, *source(module))


def forget_outlines() -> None:
    """Free the outlines of modules; the next use parses the text again."""
    _outline.cache_clear()


@functools.lru_cache(maxsize=64)
def _outline(module: str, file: str, text: str) -> Outline:
    try:
        tree = ast.parse(text)
    except SyntaxError as problem:
        raise Unreadable(f"{file}:{problem.lineno} is no Python: {problem.msg}") from None
    except (ValueError, RecursionError, MemoryError) as problem:
        raise Unreadable(f"{file} is no Python: {problem}") from None
    bound: dict[str, list[tuple[ast.stmt, bool]]] = {}
    for statement, nested in _statements(tree.body, False):
        for name in _binds(statement):
            bound.setdefault(name, []).append((statement, nested))
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    imported = {}
    for name, places in bound.items():
        meanings = {_meaning(s, name) if not nested else "" for s, nested in places}
        if len(meanings) == 1 and "" not in meanings:
            imported[name] = meanings.pop()
    return Outline(module, file, functions, {n: tuple(p) for n, p in bound.items()}, imported)


def _statements(body: list[ast.stmt], nested: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements that run when a module is imported, each with True if it stands in a block."""
    todo: list[tuple[ast.stmt, bool]] = [(s, nested) for s in body]
    while todo:
        at, inside = todo.pop()
        yield at, inside
        if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for child in ast.iter_child_nodes(at):
            if isinstance(child, ast.stmt):
                todo.append((child, True))
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                todo += [(s, True) for s in child.body]


def _binds(s: ast.stmt) -> Iterator[str]:
    """The names that a statement, without the statements inside it, binds or deletes."""
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield s.name
        return
    if isinstance(s, (ast.Import, ast.ImportFrom)):
        yield from (a.asname or a.name.partition(".")[0] for a in s.names)
        return
    todo: list[ast.AST] = [c for c in ast.iter_child_nodes(s) if not isinstance(c, ast.stmt)]
    while todo:
        at = todo.pop()
        if isinstance(at, ast.Name) and not isinstance(at.ctx, ast.Load):
            yield at.id
        elif isinstance(at, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and at.name is not None:
            yield at.name
        elif isinstance(at, ast.MatchMapping) and at.rest is not None:
            yield at.rest
        if not isinstance(at, ast.Lambda):
            todo += [c for c in ast.iter_child_nodes(at) if not isinstance(c, ast.stmt)]


def _meaning(s: ast.stmt, name: str) -> str:
    """The import path that an import binds a name to; "" for other statements, and for imports relative to a package."""
    if isinstance(s, ast.Import):
        return next(
            (a.name if a.asname else name for a in s.names if (a.asname or a.name.partition(".")[0]) == name), ""
        )
    if isinstance(s, ast.ImportFrom) and not s.level:
        return next((f"{s.module}.{a.name}" for a in s.names if (a.asname or a.name) == name), "")
    return ""


def definition(module: str, name: str) -> Definition:
    """The `def` of the helper that a module defines or imports by this name; Unreadable, with the reason, if it has none."""
    seen: set[tuple[str, str]] = set()
    while (module, name) not in seen:
        seen.add((module, name))
        found = outline(module)
        origin = found.origin(name)
        if origin is None:
            return _definition(found, name)
        module, name = origin
    raise Unreadable(f"{name} of {module} is an import of itself")


def _definition(found: Outline, name: str) -> Definition:
    module, file = found.module, found.file
    places = found.bound.get(name)
    if not places:
        raise Unreadable(f"{module} has no function {name}", did_you_mean(nearest(name, found.helpers(), 2)))
    statement, nested = places[0]
    where = f"{Path(file).name}:{statement.lineno}"
    if len(places) > 1:
        lines = " and ".join(str(n) for n in sorted(s.lineno for s, _ in places))
        raise Unreadable(f"{module} binds {name} more than once, in lines {lines}", "a helper has one definition")
    if not isinstance(statement, ast.FunctionDef):
        raise Unreadable(f"{name} of {module} is no `def` ({where})", "a helper is defined by `def`")
    if nested:
        raise Unreadable(f"{name} of {module} stands in a block ({where})", "a helper's `def` is not indented")
    if not found.marked(statement):
        how = [n for n, m in found.imported.items() if m in MARKS] or [
            f"{n}.helper" for n, m in found.imported.items() if m == "morok"
        ]
        line = f"@{how[0]}" if how else "@morok.helper"
        also = "" if how else ", and `import morok` at the head of the module"
        raise Unreadable(
            f"{name} of {module} is not marked as a helper", f"write `{line}` above its `def` in {where}{also}"
        )
    a = statement.args
    positional = [p.arg for p in (*a.posonlyargs, *a.args)]
    named = [p.arg for p, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is None]
    return Definition(
        name,
        f"{file}:{statement.lineno}",
        tuple(positional),
        len(positional) - len(a.defaults),
        a.vararg is not None,
        tuple(named),
        statement.returns,
    )
