"""Digests of the code that gives the rules of a foreign dialect their meaning.

What evaluates, builds and reads nodes is what is loaded: its byte code, with closures, defaults and what the names in it stand
for now. What the solver is told may not be loaded yet: it is read from the text of its modules (morok.prove.static); of a module
that is loaded, what is not as the text says counts too. Where calls do not resolve, all sources of the distribution count.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import types
from pathlib import Path
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.prove.distributions import distribution_digest, find
from morok.prove.fingerprints import digest
from morok.prove.function_digest import code_of
from morok.prove.static import Closure, Found, Module

# The standard library and the solver, of which a version is as good as its text; Morok's own part is digested as such.
_BESIDE: Final = frozenset((*sys.stdlib_module_names, *sys.builtin_module_names, "z3", "morok"))
_READING: Final = ("opkey", "operands", "attr", "type", "same", "const_value", "const", "build", "rebuild")
_OPTIONAL: Final = ("lanes_of", "element", "recall", "origin", "nests", "sketch", "in_turn", "has_effect")
_SAID: Final = frozenset(("name", "ops", "dtypes", "classes", "inline", "facts", "theory", "names", "members"))


# What is loaded


def evaluator_digest(info: OpInfo) -> str:
    """A digest of the evaluation of an op, and of its key."""
    return digest(f"{_shown(info.key)} {_loaded_digest((info.evaluate,))}")


def common_digest(dialect: Dialect, names: frozenset[str]) -> str:
    """A digest of the reading and building of nodes, of the dialect's own declarations, and of the facts among `names`."""
    kind = type(dialect)
    methods = [_function(dialect, n) for n in (*_READING, *_OPTIONAL)]
    used = {n for m in methods for n in _names(m)} - {*_READING, *_OPTIONAL}
    state = [(n, x) for n in sorted(used - _SAID) if (x := _attribute(dialect, n)) is not _NOTHING]
    asked = [dialect.facts[n] for n in sorted(names & dialect.facts.keys())]
    said = (
        dialect.name,
        f"{kind.__module__}:{kind.__qualname__}",
        sorted((k, _shown(v)) for k, v in dialect.dtypes.items()),
        sorted((k, sorted(v)) for k, v in dialect.classes.items()),
        sorted(dialect.inline.items()),
        sorted(names & dialect.facts.keys()),
        sorted((k, _shown(getattr(dialect, k, None))) for k in ("hash_consed", "closed_types", "node", "undefined")),
        sorted((k, i.name, _shown(i.key), i.fields) for k, i in dialect.ops.items()) if "ops" in used else (),
    )
    names_ = sorted(getattr(dialect, "names", {}).items())
    loaded = _loaded_digest((methods, state, asked, names_, dict(getattr(dialect, "members", {}))), kind.__module__)
    return digest(f"{said!r} {loaded}")


def _loaded_digest(what: Any, module: str = "") -> str:
    """The code and the values that these objects consist of."""
    if what == (None,):
        return ""
    if not module:
        module = getattr(what[0], "__module__", None) or type(what[0]).__module__
    return code_of(what, module).digest


_NOTHING: Final = object()


def _attribute(dialect: Dialect, name: str) -> Any:
    """An attribute of the dialect, a method as its function."""
    if isinstance(getattr(type(dialect), name, None), property):
        return _function(dialect, name)
    found = getattr(dialect, name, _NOTHING)
    return getattr(found, "__func__", found) if getattr(found, "__self__", None) is dialect else found


def _function(dialect: Dialect, name: str) -> Any:
    found = getattr(type(dialect), name, None)
    if isinstance(found, property):
        return found.fget
    found = getattr(dialect, name, None)
    return getattr(found, "__func__", found)


def _names(function: Any) -> set[str]:
    code = getattr(function, "__code__", None)
    found: set[str] = set()
    stack = [code] if code is not None else []
    while stack:
        at = stack.pop()
        found.update(at.co_names)
        stack += [c for c in at.co_consts if isinstance(c, types.CodeType)]
    return found


def _shown(value: Any) -> str:
    """A value as text that is the same in every process."""
    text = repr(value)
    return f"{type(value).__module__}.{type(value).__qualname__}" if " at 0x" in text else text


# What is read


def static_digest(module: str, function: str) -> str:
    """A function that may not be loaded yet, with all that it calls in any module."""
    reader = _Reader()
    found = Closure(reader.read).of([(module, function)])
    at = reader.read(module)
    parts = [found.said(), "" if at is not None else f"no {module}"]
    for name in sorted(found.outside):
        if name.partition(".")[0] not in _BESIDE:
            found.dynamic.add(name)  # code of another language, or none at all
    for name in sorted({m for m, _ in found.text}):
        parts.append(_difference(reader, found, name))
    parts += [distribution_digest(m) for m in sorted(found.dynamic)]
    return digest("\n".join(parts))


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
            if name.partition(".")[0] not in _BESIDE and (file := find(name)) is not None and file.suffix == ".py":
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
    consts = [_code_text(c) if isinstance(c, types.CodeType) else _shown(c) for c in code.co_consts]
    if code.co_consts and isinstance(code.co_consts[0], str):
        consts[0] = ""  # its docstring, as often as not
    said = (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount, consts)
    return hashlib.sha256(repr(said).encode("utf-8", "backslashreplace")).hexdigest()[:32]
