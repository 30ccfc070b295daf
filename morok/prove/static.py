"""The calls of functions, read from the text of their modules: nothing is imported, no solver is loaded.

A *piece* is what one name stands for at the top of a module: its definition, or the statements that bind it, with those that
change it. The closure of a piece is itself and every piece it mentions, in whatever module, and so on.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from morok.prove.function_digest import DYNAMIC

_LOOKS: Final = frozenset(("get", "pop", "values", "items", "setdefault", "__getitem__"))
_BUILTINS: Final = frozenset(dir(builtins))
_OPEN: Final = frozenset(  # attributes by which code reaches what it does not mention, and methods by which classes do
    (
        "__doc__",
        "__dict__",
        "__globals__",
        "__builtins__",
        "__subclasses__",
        "__init_subclass__",
        "__set_name__",
        "f_globals",
    )
)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS: Final = (*_FUNCTIONS, ast.ClassDef)


def without_docstrings(tree: ast.AST) -> str:
    """The syntax of a piece of Python, without layout, comments and docstrings."""
    for node in _nodes(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, *_DEFINITIONS)) and isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:] or [ast.Pass()]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


@dataclass(slots=True)
class Mentions:
    """The references in a piece of Python.

    names    by themselves
    chains   `a.b.c` of a name, in parts
    attrs    attributes of anything
    defined  functions and classes in it
    called   names that are called
    tables   names that it looks something up in
    dynamic  it reaches what it does not mention, or calls what it has looked up
    bare     names that it does not ask for an attribute there
    """

    names: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    chains: set[tuple[str, ...]] = field(default_factory=set)
    attrs: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    dynamic: bool = False


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree: as ast.walk, in half its time."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += [v for v in value if isinstance(v, ast.AST)]


def mentions(tree: ast.AST) -> Mentions:
    """The names, and the names of attributes, in a piece of Python, whatever scope they are of."""
    found = Mentions()
    asked: set[int] = set()  # nodes of which an attribute is asked: those above come first
    for node in _nodes(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.names.add(node.id)
                if id(node) not in asked:
                    found.bare.add(node.id)
        elif isinstance(node, _DEFINITIONS):
            found.defined.add(node.name)
            found.dynamic |= node.name in _OPEN or (isinstance(node, ast.ClassDef) and bool(node.keywords))
        elif isinstance(node, ast.Attribute):
            found.attrs.add(node.attr)
            found.dynamic |= node.attr in _OPEN
            asked.add(id(node.value))
            chain = _chain(node)
            if chain:
                found.chains.add(chain)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            found.tables.add(node.value.id)
        elif isinstance(node, ast.Call):
            _call(node, found)
    return found


def _call(node: ast.Call, found: Mentions) -> None:
    called = node.func
    while isinstance(called, ast.Call):
        called = called.func
        if isinstance(called, ast.Attribute) and called.attr in _LOOKS:
            found.dynamic = True  # what was looked up is called
    if isinstance(called, ast.Name):
        found.called.add(called.id)
        found.dynamic |= called.id in DYNAMIC
    elif isinstance(called, ast.Attribute):
        found.dynamic |= called.attr in DYNAMIC
        if called.attr in _LOOKS and isinstance(called.value, ast.Name):
            found.tables.add(called.value.id)
    elif not isinstance(called, ast.Lambda):
        found.dynamic = True


def _chain(node: ast.AST) -> tuple[str, ...]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


class Module:
    """A module's pieces, and where its other names come from.

    pieces   by name, the statements that bind it or change it
    imports  names that other modules, or pieces of them (module, piece), stand for
    stars    modules whose names are all taken over
    members  the functions and constants of its classes, by bare name
    """

    def __init__(self, name: str, content: bytes, package: bool = False) -> None:
        self.name = name
        self.package = package
        self.pieces: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        self.stars: list[str] = []
        self.members: dict[str, list[ast.stmt]] = {}
        self.effects: list[ast.stmt] = []
        self.tree = ast.parse(content)
        for node in _nodes(self.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        for statement in self.tree.body:
            self._statement(statement)
        changed = [(s, self._changed(s)) for s in self.effects]
        for statement, names in changed:
            for name_ in names:
                self.pieces[name_].append(statement)
        self._owned = [(s, bool(names)) for s, names in changed if not isinstance(s, _DEFINITIONS)]

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for a in node.names:
                self.imports[a.asname or a.name.partition(".")[0]] = (
                    a.name if a.asname else a.name.partition(".")[0],
                    "",
                )
            return
        base = node.module or ""
        if node.level:
            above = self.name.split(".")
            above = above[: len(above) - node.level + self.package]
            base = ".".join([*above, *([node.module] if node.module else [])])
        for a in node.names:
            if a.name == "*":
                self.stars.append(base)
            else:
                self.imports[a.asname or a.name] = (base, a.name)

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, _DEFINITIONS):
            self.pieces.setdefault(s.name, []).append(s)
            if s.decorator_list:
                self.effects.append(s)
            if isinstance(s, ast.ClassDef):
                for name, item in _members(s):
                    self.members.setdefault(name, []).append(item)
        elif isinstance(s, (ast.Import, ast.ImportFrom, ast.Pass)) or _is_text(s):
            pass
        elif isinstance(s, ast.If) and _never_when_imported(s.test):
            for other in s.orelse:
                self._statement(other)
        else:
            bound = set(_bound(s))
            for name in bound:
                self.pieces.setdefault(name, []).append(s)
            if not (
                isinstance(s, (ast.Assign, ast.AnnAssign))
                and all(isinstance(t, (ast.Name, ast.Tuple)) for t in _targets(s))
            ):
                self.effects.append(s)

    @functools.cached_property
    def loose(self) -> bool:
        """True if a statement may change what is not told: of another module, or by names that it makes."""
        return any(not owned or self._reaches_out(s) for s, owned in self._owned)

    def _reaches_out(self, s: ast.stmt) -> bool:
        seen: set[str] = set()
        todo: list[ast.AST] = [s]
        while todo:
            at = todo.pop()
            said = mentions(at)
            if said.dynamic or any(n in self.imports for n in _written(at)):
                return True
            todo += [d for n in said.names - seen for d in self.pieces.get(n, ()) if isinstance(d, _DEFINITIONS)]
            seen |= said.names
        return False

    def named_modules(self) -> Iterator[str]:
        """The names of modules that this one imports, or that what it imports from them may be, with the packages above."""
        for base in {
            *self.stars,
            *(b for b, _ in self.imports.values()),
            *(f"{b}.{n}" for b, n in self.imports.values() if n),
        }:
            parts = base.split(".")
            yield from (".".join(parts[: i + 1]) for i in range(len(parts)))

    def _changed(self, s: ast.stmt) -> set[str]:
        """The pieces that a statement may change: those it mentions, and those that functions which it calls write to."""
        at: list[ast.AST] = [*s.decorator_list] if isinstance(s, _DEFINITIONS) else [s]
        named: set[str] = set()
        for tree in at:
            named |= mentions(tree).names
        found = set() if isinstance(s, _DEFINITIONS) else {n for n in named if n in self.pieces}
        seen: set[str] = set()
        todo = list(named)
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for piece in self.pieces.get(name, ()):
                if isinstance(piece, _DEFINITIONS):
                    found |= {n for n in _written(piece) if n in self.pieces}
                    todo += mentions(piece).names
        return found

    def binds(self, name: str) -> bool:
        return name in self.pieces or name in self.imports


def _never_when_imported(test: ast.expr) -> bool:
    """`__name__ == "__main__"`, `TYPE_CHECKING`."""
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name):
        return test.left.id == "__name__" and isinstance(test.ops[0], ast.Eq)
    return (test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")) == "TYPE_CHECKING"


def _targets(s: ast.stmt) -> list[ast.expr]:
    return list(s.targets) if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []


def _members(c: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    for item in c.body:
        if isinstance(item, _FUNCTIONS):
            yield item.name, item
        elif isinstance(item, (ast.Assign, ast.AnnAssign)):
            yield from ((t.id, item) for t in _targets(item) if isinstance(t, ast.Name))


def _bound(s: ast.AST) -> Iterator[str]:
    """The names of the module that a statement binds, in all its branches, but not inside of functions and classes."""
    todo: list[ast.AST] = [s]
    while todo:
        at = todo.pop()
        if isinstance(at, _DEFINITIONS):
            yield at.name
        elif isinstance(at, ast.Name) and isinstance(at.ctx, ast.Store):
            yield at.id
        elif not isinstance(at, ast.Lambda):
            todo += ast.iter_child_nodes(at)


def _written(function: ast.AST) -> set[str]:
    """The names of the module that a function binds, or whose objects it may change."""
    found: set[str] = set()
    for node in _nodes(function):
        if isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            found.update(_root(node))
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            found.update(_root(node.value.func))
    return found


def _root(node: ast.expr) -> tuple[str, ...]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return (node.id,) if isinstance(node, ast.Name) else ()


@dataclass(slots=True)
class Found:
    """The contents of a closure.

    text     of each piece
    dynamic  modules with calls that do not resolve
    outside  modules that are mentioned and have no text that was read
    """

    text: dict[tuple[str, str], str] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)

    def said(self) -> str:
        return "\n".join(f"{m}:{n}:{t}" for (m, n), t in sorted(self.text.items()))


class Closure:
    """Closures over the modules that `read` finds (None for those that are none of its business).

    by_class  a class that is mentioned counts as a whole; else its members count where an attribute of their name is mentioned
    """

    def __init__(self, read: Callable[[str], Module | None], by_class: bool = True) -> None:
        self.read = read
        self.by_class = by_class
        self._known: dict[int, tuple[Mentions, ast.AST]] = {}
        self._dumped: dict[int, str] = {}

    def of(self, roots: Iterable[tuple[str, str]], attrs: Iterable[str] = (), modules: Iterable[str] = ()) -> Found:
        """The closure of pieces (module, name), and of the members that go by `attrs` in `modules`."""
        found = Found()
        seen_attrs = set(attrs)
        among = [m for name in modules if (m := self.read(name)) is not None]
        todo = list(roots)
        members = [(m, a) for m in among for a in seen_attrs]
        while todo or members:
            if todo:
                module, name = todo.pop()
                at = self.read(module)
                if at is None:
                    found.outside.add(module)
                if at is None or (module, name) in found.text:
                    continue
                statements = at.pieces.get(name)
                if statements is None:
                    todo += self._elsewhere(at, name, found)
                    continue
            else:
                at, name = members.pop()
                module, name, statements = at.name, f".{name}", at.members.get(name)
                if statements is None or (module, name) in found.text:
                    continue
            found.text[module, name] = "".join(self._text(s) for s in statements)
            for s in statements:
                said = self._mentions(s)
                todo += self.references(at, said)
                if self.by_class:
                    found.dynamic |= {*([module] if self._is_dynamic(at, said) else []), *self._handed(at, said)}
                members += [(m, a) for m in among for a in said.attrs - seen_attrs]
                seen_attrs |= said.attrs
        return found

    def _mentions(self, s: ast.AST) -> Mentions:
        known = self._known.get(id(s))
        if known is None:
            known = self._known[id(s)] = (mentions(self._part(s)), s)
        return known[0]

    def _part(self, s: ast.AST) -> ast.AST:
        """A class without its members, where these count one by one."""
        if self.by_class or not isinstance(s, ast.ClassDef):
            return s
        implicit = [i for i in s.body if not isinstance(i, _FUNCTIONS) or i.name.startswith("__")]
        return ast.ClassDef(s.name, s.bases, s.keywords, implicit, s.decorator_list)

    def _text(self, s: ast.AST) -> str:
        if id(s) not in self._dumped:
            self._dumped[id(s)] = without_docstrings(self._part(s))
        return self._dumped[id(s)]

    def _elsewhere(self, at: Module, name: str, found: Found) -> list[tuple[str, str]]:
        """The origin of a name that the module does not bind itself."""
        if name in at.imports:
            module, piece = at.imports[name]
            if piece and self.read(f"{module}.{piece}") is not None and not self._binds(module, piece):
                return []  # a module: what is mentioned of it counts
            return [(module, piece)] if piece else []
        if name in _BUILTINS and not at.stars:
            return []
        found.text[at.name, name] = "not here"
        found.dynamic.add(at.name)
        return [
            *((star, name) for star in at.stars),
            *([(at.name, "__getattr__")] if "__getattr__" in at.pieces else []),
        ]

    def _binds(self, module: str, name: str) -> bool:
        at = self.read(module)
        return at is not None and at.binds(name)

    def references(self, at: Module, said: Mentions) -> list[tuple[str, str]]:
        """The pieces that are mentioned there."""
        found = [(at.name, n) for n in said.names if at.binds(n) or (at.stars and n not in _BUILTINS)]
        for chain in said.chains:
            home = at.imports.get(chain[0])
            if home is None:
                continue
            module, rest = ".".join(filter(None, home)), chain[1:]
            if home[1] and self.read(module) is None:
                continue  # an attribute of something that was imported, which counts itself
            while len(rest) > 1 and self.read(f"{module}.{rest[0]}") is not None:
                module, rest = f"{module}.{rest[0]}", rest[1:]
            found.append((module, rest[0]))
        return found

    def _handed(self, at: Module, said: Mentions) -> Iterator[str]:
        """The modules that are mentioned as such: whoever they are handed to may read any of them."""
        for home in (at.imports[n] for n in said.bare if n in at.imports):
            name = ".".join(filter(None, home))
            if self.read(name) is not None and not (home[1] and self._binds(*home)):
                yield name

    def _is_dynamic(self, at: Module, said: Mentions) -> bool:
        if said.dynamic or any(at.imports.get(c[0], ("",))[0] == "sys" and "modules" in c for c in said.chains):
            return True
        if any(at.imports.get(n) == ("sys", "modules") for n in said.names):
            return True
        own = said.defined | {"cls", "super"}
        if any(n not in own and n not in _BUILTINS and not at.binds(n) and not at.stars for n in said.called):
            return True  # a parameter, or a variable, is called
        return any(self._is_table(at, n) for n in said.tables)

    def _is_table(self, at: Module, name: str) -> bool:
        """True if a piece holds more than numbers and texts, so that what is looked up in it may be called."""
        for s in at.pieces.get(name, ()):
            value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else s
            if value is not None and any(
                isinstance(n, (ast.Lambda, ast.Call))
                or (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in at.pieces)
                for n in _nodes(value)
            ):
                return not isinstance(s, _DEFINITIONS)
        if name in at.imports:
            module, piece = at.imports[name]
            other = self.read(module) if piece else None
            return other is not None and self._is_table(other, piece)
        return False


def modules_in(folder: Path, package: str) -> Callable[[str], Module | None]:
    """The modules of one package, whose folder this is, each read once."""
    known: dict[str, Module | None] = {}

    def read(name: str) -> Module | None:
        if name not in known:
            known[name] = None
            if name == package or name.startswith(f"{package}."):
                file = folder.joinpath(*name[len(package) + 1 :].split(".")) if name != package else folder
                known[name] = read_module(name, file / "__init__.py" if file.is_dir() else file.with_suffix(".py"))
        return known[name]

    return read


def read_module(name: str, file: Path) -> Module | None:
    """The module of that file; None where there is no text."""
    try:
        return Module(name, file.read_bytes(), file.name == "__init__.py")
    except (OSError, SyntaxError, ValueError):
        return None
