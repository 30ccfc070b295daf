"""The distributions that modules are of: Python's, Morok's, installed ones and others; and what stands for all of one."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import os
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from morok.prove.seen_objects import state

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_PYTHONS: Final = frozenset((*sys.stdlib_module_names, *sys.builtin_module_names)) - {"__main__"}


Answer = TypeVar("Answer")
_moment: Final = contextvars.ContextVar[dict[tuple[str, str], Any] | None](
    "what modules are at one moment", default=None
)


@contextlib.contextmanager
def at_one_moment() -> Iterator[None]:
    """A context in which files of modules are as they are found first: one digest asks for the same ones hundreds of times."""
    token = _moment.set({})
    try:
        yield
    finally:
        _moment.reset(token)


def _once_a_moment(ask: Callable[[str], Answer]) -> Callable[[str], Answer]:
    @functools.wraps(ask)
    def asked(name: str) -> Answer:
        known = _moment.get()
        if known is None:
            return ask(name)
        key = (ask.__name__, name)
        if key not in known:
            known[key] = ask(name)
        found: Answer = known[key]
        return found

    return asked


@_once_a_moment
def find(name: str) -> Path | None:
    """The file of a module, found without running it or the packages above it."""
    if file := loaded_file(name):
        return Path(file)
    path: Iterable[str] | None = None
    spec: importlib.machinery.ModuleSpec | None = None
    parts = name.split(".")
    for i in range(len(parts)):
        spec = _spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and i < len(parts) - 1:
            return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.has_location else None


def loaded_file(name: str) -> str:
    """The file that a loaded module is of; "" for any other. No code of the module is asked for what it lacks."""
    found = state(sys.modules.get(name)).get("__file__")
    return found if isinstance(found, str) else ""


def _spec(name: str, path: Iterable[str] | None) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        try:
            found = finder.find_spec(name, None if path is None else list(path), None)
        except KeyError:  # a folder without an __init__.py, in a package that is not loaded
            found = importlib.machinery.ModuleSpec(name, None, is_package=True)
            found.submodule_search_locations = [os.path.join(p, name.rpartition(".")[2]) for p in path or ()]
        except (ImportError, AttributeError, ValueError):  # one without the method among them
            continue
        if found is not None:
            return found
    return None


def importable() -> set[str]:
    """The names of uppermost modules that are loaded, or that folders of the path may have; none of them is asked for."""
    found = {name.partition(".")[0] for name in list(sys.modules)} - {"__main__"}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            found |= _listed(folder or os.getcwd(), os.stat(folder or os.curdir).st_mtime_ns)
    return found


@functools.lru_cache(maxsize=64)
def _listed(folder: str, changed: int) -> frozenset[str]:
    """The names in a folder, up to their first dots, as they are since it was `changed`."""
    return frozenset(name.partition(".")[0] for name in os.listdir(folder))


# Whose a module is


@_once_a_moment
def pythons(module: str) -> bool:
    """True for a module of Python's own, of which Python's version says all."""
    if module.partition(".")[0] not in _PYTHONS:
        return False
    file = find(module)
    return file is None or (_within(file, _library()) and not _within(file, _installations()))


@_once_a_moment
def moroks(module: str) -> bool:
    """True for a module of this package."""
    file = find(module)
    return file is not None and _within(file, (_PACKAGE,))


@_once_a_moment
def installed(module: str) -> bool:
    """True for a module of a distribution that was installed with a record of its files: what else lies there is anybody's."""
    file = find(module)
    return file is not None and _within(file, _installations()) and bool(_projects(module.partition(".")[0]))


def _within(file: Path, folders: Iterable[Path]) -> bool:
    at = file.resolve()
    return any(at.is_relative_to(folder) for folder in folders)


@functools.cache
def _library() -> tuple[Path, ...]:
    return _folders(sysconfig.get_paths().get(n) for n in ("stdlib", "platstdlib"))


@functools.cache
def _installations() -> tuple[Path, ...]:
    """The folders that distributions are installed to."""
    paths = sysconfig.get_paths()
    return _folders((paths.get("purelib"), paths.get("platlib"), *site.getsitepackages(), site.getusersitepackages()))


def _folders(paths: Iterable[str | None]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(p).resolve() for p in paths if p))


# What was installed


class Identity(NamedTuple):
    """A digest of distributions, by their names, versions and records, and the files that say these."""

    digest: str
    files: tuple[str, ...]


@functools.cache
def identity(top: str) -> Identity:
    """The distributions that an installed package is of, with all that they require."""
    todo = list(_projects(top))
    seen: dict[str, Path] = {}
    while todo:
        name = todo.pop()
        record = _records().get(name)
        if record is None or name in seen:
            continue  # an optional requirement that is not there
        seen[name] = record
        wanted = importlib.metadata.PathDistribution(record.parent).requires or ()
        todo += [_normal(re.split(r"[^\w.-]", w, maxsplit=1)[0]) for w in wanted if "extra" not in w.partition(";")[2]]
    h = hashlib.sha256()
    for _, record in sorted(seen.items()):
        h.update(record.parent.name.encode() + b"\0" + contents_of(record))
    return Identity(h.hexdigest(), tuple(str(record) for _, record in sorted(seen.items())))


def _normal(project: str) -> str:
    return re.sub(r"[-_.]+", "-", project).lower()


@functools.cache
def _records() -> dict[str, Path]:
    """The record of each distribution that has one, by the name of its project."""
    there = (r for folder in _installations() for r in folder.glob("*.dist-info/RECORD"))
    return {_normal(r.parent.name.partition("-")[0]): r for r in there}


@functools.cache
def _projects(top: str) -> tuple[str, ...]:
    """The projects with records that a package is of."""
    files = re.compile(rb"(?m)^%s[/.]" % re.escape(top).encode())
    named = _records().get(_normal(top))
    if named is not None and files.search(contents_of(named)):
        return (_normal(top),)  # the common case, which is found without reading all records
    return tuple(sorted(n for n, record in _records().items() if files.search(contents_of(record))))


@functools.cache
def file_digest(file: str) -> str:
    """A digest of a file of what is installed, which is read once in a process."""
    return hashlib.sha256(contents_of(Path(file))).hexdigest()


def contents_of(file: Path) -> bytes:
    """The bytes of a file; none where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


# All sources


def distribution_digest(module: str) -> str:
    """All sources of the distribution that a module is of; of one that was installed, its identity."""
    top = module.partition(".")[0]
    if installed(module):
        return identity(top).digest
    h = hashlib.sha256(top.encode())
    for source in _sources(module):
        h.update(str(source).encode("utf-8", "backslashreplace") + b"\0" + contents_of(source))
    return h.hexdigest()[:32]


def distribution_files(module: str) -> tuple[str, ...]:
    """The files that `distribution_digest` reads."""
    return identity(module.partition(".")[0]).files if installed(module) else tuple(map(str, _sources(module)))


def source_folder(module: str) -> tuple[Path, bool] | None:
    """The folder of a module's uppermost package, and True; the folder of a module that is of none, and False; None for a module
    without a file.
    """
    file = find(module)
    if file is None:
        return None
    at = file.parent if file.name == "__init__.py" else file.with_suffix("")
    depth = module.count(".")
    package = depth > 0 or file.name == "__init__.py"
    return (at, *at.parents)[depth] if package else file.parent, package


def _sources(module: str) -> list[Path]:
    """The sources in the folder of a module's uppermost package, or beside a module that is of none."""
    found = source_folder(module)
    if found is None:
        return []
    folder, package = found
    suffixes = (".py", *importlib.machinery.EXTENSION_SUFFIXES)
    return [p for p in sorted(folder.rglob("*") if package else folder.glob("*")) if p.name.endswith(suffixes)]
