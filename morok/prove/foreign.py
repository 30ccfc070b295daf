"""Digests of the code that gives the rules of a foreign dialect their meaning.

What evaluates, builds and reads nodes is what is loaded: its byte code, with closures, defaults and what the names in it stand
for now. What the solver is told may not be loaded yet: it is read from the text of its modules (morok.prove.static); of a module
that is loaded, what is not as the text says counts too. Where calls do not resolve, all sources of the distribution count.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import re
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.prove.distributions import distribution_digest, find, installed, moroks, pythons
from morok.prove.fingerprints import digest
from morok.prove.function_digest import DYNAMIC, Without, code_of, has_docstring
from morok.prove.seen_objects import state
from morok.prove.static import Closure, Found, Module

# The standard library and the solver, of which a version is as good as its text; Morok's own part is digested as such.
_BESIDE: Final = frozenset((*sys.stdlib_module_names, *sys.builtin_module_names, "z3", "morok"))
_SAID: Final = frozenset(("name", "ops", "dtypes", "classes", "inline", "facts", "theory", "names", "members"))
# The facts that the language asks of nodes where a rule does not name them.
UNASKED: Final = frozenset(("no_overflow_of", "lanes", "free_of_axes", "inside", "identity", "subst"))


# What is loaded


def evaluator_digest(info: OpInfo) -> str:
    """A digest of the evaluation of an op, and of its key."""
    module = getattr(info.evaluate, "__module__", None) or type(info.evaluate).__module__
    return code_of((info.evaluate, info.key, type(info)), "" if info.evaluate is None else module).digest


def common_digest(dialect: Dialect, names: frozenset[str]) -> str:
    """A digest of the dialect as an object, without what it says of single ops and facts: of the facts among `names`, of those
    that matchers ask unasked, and of what any code of it reaches by itself.
    """
    asked = sorted((names | UNASKED) & dialect.facts.keys())
    said = (
        dialect.name,
        sorted((k, sorted(v)) for k, v in dialect.classes.items()),
        sorted(dialect.inline.items()),
        sorted((k, _shown(getattr(dialect, k, None))) for k in ("hash_consed", "closed_types")),
    )
    templates = {word for text in dialect.inline.values() for word in re.findall(r"\w+", text)}
    parts = [
        Without(dialect, _SAID),
        sorted(dialect.dtypes.items()),
        [getattr(dialect, n, None) for n in ("node", "undefined")],  # of a dialect that is a proxy, or a module
        [(n, dialect.facts[n]) for n in asked],
        sorted(getattr(dialect, "names", {}).items()),
        sorted(getattr(dialect, "members", {}).items()),
    ]
    reached: dict[str, Any] = {}
    while True:
        code = code_of((*parts, sorted(reached.items())), _home(dialect))
        found = _reached(dialect, code.names | templates)
        if found.keys() == reached.keys():
            return digest(f"{said!r} {code.digest}")
        reached = found


def solving_digest(dialect: Dialect) -> str:
    """A digest of the theory and of the solver functions as they are loaded, which is done here: constants of theirs may be
    anything, whatever the text says. Those that cannot be loaded are no part of it.
    """
    found = []
    for place in sorted({dialect.theory, *(info.solver for info in dialect.ops.values())}):
        module, _, name = place.partition(":")
        with contextlib.suppress(Exception):  # verification says what is wrong
            found.append(f"{place} {code_of(getattr(importlib.import_module(module), name), module).digest}")
    return digest("\n".join(found))


def closed(dialect: Dialect) -> tuple[str, ...]:
    """The kinds of objects that a dialect reaches and that show nobody what they hold: its verdicts are of one process."""
    return code_of((dialect, dict(dialect.ops), dict(dialect.facts), dict(dialect.dtypes)), _home(dialect)).closed


def _home(dialect: Dialect) -> str:
    """The name of the module that a dialect is of, or is."""
    named = dialect if isinstance(dialect, type) else type(dialect)
    return dialect.__name__ if isinstance(dialect, types.ModuleType) else named.__module__


def _reached(dialect: Dialect, names: frozenset[str]) -> dict[str, Any]:
    """The facts and the ops that code with these names may look up in the dialect, whatever a rule says."""
    every = not DYNAMIC.isdisjoint(names)
    found: dict[str, Any] = {}
    if every or "facts" in names:
        found["facts"] = sorted(dialect.facts.items())
    if every or "ops" in names:
        found["ops"] = [(k, i.name, i.key, i.fields) for k, i in sorted(dialect.ops.items())]
    if every or {"ops", "evaluate"} <= names:
        found["evaluators"] = [i.evaluate for _, i in sorted(dialect.ops.items())]
    return found


def _shown(value: Any) -> str:
    """A value as text that is the same in every process."""
    text = repr(value)
    return f"{type(value).__module__}.{type(value).__qualname__}" if " at 0x" in text else text


_NOTHING: Final = object()


# What is read


def static_digest(module: str, function: str) -> str:
    """A function that may not be loaded yet, with all that it calls in any module."""
    reader = _Reader()
    found = Closure(reader.read).of([(module, function)])
    at = reader.read(module)
    parts = [found.said(), "" if at is not None else f"no {module} {_loaded_digest(module, function)}"]
    # code of another language, or none at all
    found.dynamic |= {name for name in found.outside if not _is_beside(name)}
    parts += [f"{name} {_loaded_digest(name)}" for name in sorted(found.dynamic - {module})]
    inside = {m for m, _ in found.text}
    parts += [_difference(reader, found, name) for name in sorted(inside)]
    loaded = _loaded_with(reader, inside)
    found.dynamic |= {name for name, at_ in loaded.items() if at_.loose}
    if found.dynamic:  # which may reach any of them
        found.dynamic |= loaded.keys()
    parts += [distribution_digest(m) for m in sorted(found.dynamic)]
    return digest("\n".join(parts))


def _loaded_digest(name: str, function: str = "") -> str:
    """A digest of a function of a module, or of all the module, as it is loaded, if there is no file to read it from: it was
    typed in, as in a notebook, or made by code. "" for any other.
    """
    module = sys.modules.get(name)
    if not isinstance(module, types.ModuleType) or find(name) is not None:
        return ""
    has = state(module)
    return code_of(has.get(function, has.get("__getattr__")) if function else Without(module, frozenset()), name).digest


def _loaded_with(reader: _Reader, names: Iterable[str]) -> dict[str, Module]:
    """The modules of these names, and those that are imported with them, whose statements run before their functions do."""
    found: dict[str, Module] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        at = None if name in found else reader.read(name)
        if at is not None:
            found[name] = at
            todo += at.named_modules()
    return found


def _is_beside(name: str) -> bool:
    """True for a module of Python's, of the solver's or of Morok's own: one beside somebody's own may be named like one."""
    return name.partition(".")[0] in _BESIDE and (pythons(name) or moroks(name) or installed(name))


class _Reader:
    """The modules that foreign code is in, found as Python finds them, and read anew: their text may have changed."""

    _parsed: Final[dict[tuple[str, bytes], Module | None]] = {}
    _compiled: Final[dict[bytes, dict[str, str]]] = {}

    def __init__(self) -> None:
        self.known: dict[str, Module | None] = {}
        self.files: dict[str, tuple[Path, bytes]] = {}

    def read(self, name: str) -> Module | None:
        if name not in self.known:
            self.known[name] = None
            if not _is_beside(name) and (file := find(name)) is not None and file.suffix == ".py":
                self.known[name] = self._module(name, file)
        return self.known[name]

    def _module(self, name: str, file: Path) -> Module | None:
        try:
            content = file.read_bytes()
        except OSError:
            return None
        self.files[name] = (file, content)
        key = (name, hashlib.sha256(content).digest())
        if key not in self._parsed:
            try:
                self._parsed[key] = Module(name, content, file.name == "__init__.py")
            except (SyntaxError, ValueError):
                self._parsed[key] = None
        return self._parsed[key]

    def compiled(self, name: str) -> dict[str, str]:
        """The digest of each function of a module, by its qualified name, as its text says it."""
        file, content = self.files[name]
        key = hashlib.sha256(content).digest()
        if key not in self._compiled:
            found: dict[str, str] = {}
            stack = [("", compile(content, str(file), "exec", dont_inherit=True))]
            while stack:
                above, code = stack.pop()
                for c in code.co_consts:
                    if isinstance(c, types.CodeType):
                        found[above + c.co_name] = _code_text(c)
                        stack.append((f"{above}{c.co_name}.", c))
            self._compiled[key] = found
        return self._compiled[key]


def _difference(reader: _Reader, found: Found, name: str) -> str:
    """The loaded part of a module where it differs from the text: it was changed since, or patched."""
    module = sys.modules.get(name)
    at = reader.read(name)
    if module is None or at is None or getattr(module, "__spec__", None) is None:
        return ""
    parts = []
    for piece in sorted(p for m, p in found.text if m == name):
        for s in at.pieces.get(piece, ()):
            if not hasattr(module, piece):
                continue
            thing = getattr(module, piece)
            if isinstance(s, ast.FunctionDef) and not s.decorator_list and len(at.pieces[piece]) == 1:
                said = reader.compiled(name).get(piece)
                now = _code_text(thing.__code__) if isinstance(thing, types.FunctionType) else _shown(thing)
                parts += [f"{name}:{piece} is {now}"] if now != said else []
            elif isinstance(s, ast.ClassDef):
                parts += [f"{name}:{piece}.{n}" + t for n, t in _class_difference(reader.compiled(name), s, thing)]
            elif isinstance(s, ast.Assign) and len(at.pieces[piece]) == 1:
                said_value = _literal(s, piece)
                if said_value is not _NOTHING and _shown(said_value) != _shown(thing):
                    parts.append(f"{name}:{piece} is {_shown(thing)}")
    return "\n".join(parts)


def _literal(s: ast.Assign, name: str) -> Any:
    """The value that an assignment of numbers and texts gives a name."""
    try:
        value = ast.literal_eval(s.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOTHING
    for target in s.targets:
        if isinstance(target, ast.Name) and target.id == name:
            return value
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for t, v in zip(target.elts, value, strict=True):
                if isinstance(t, ast.Name) and t.id == name:
                    return v
    return _NOTHING


def _class_difference(compiled: dict[str, str], s: ast.ClassDef, kind: Any) -> list[tuple[str, str]]:
    if not isinstance(kind, type):
        return [("", _shown(kind))]
    found = []
    own = vars(kind)
    for item in s.body:
        if isinstance(item, ast.FunctionDef) and not item.decorator_list:
            now = own.get(item.name)
            text = _code_text(now.__code__) if isinstance(now, types.FunctionType) else _shown(now)
            if text != compiled.get(f"{s.name}.{item.name}", text):
                found.append((item.name, text))
        elif isinstance(item, ast.Assign):
            for name in (t.id for t in item.targets if isinstance(t, ast.Name)):
                value = _literal(item, name)
                if value is not _NOTHING and _shown(value) != _shown(own.get(name)):
                    found.append((name, _shown(own.get(name))))
    return found


def _code_text(code: types.CodeType) -> str:
    """The text of a function's code, whatever line it stands in."""
    consts = [
        _code_text(c) if isinstance(c, types.CodeType) else _shown(c) for c in code.co_consts[has_docstring(code) :]
    ]
    said = (
        code.co_code, code.co_exceptiontable, code.co_flags, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, consts,
    )  # fmt: skip
    return hashlib.sha256(repr(said).encode("utf-8", "backslashreplace")).hexdigest()[:32]
