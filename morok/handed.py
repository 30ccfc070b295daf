"""Dependency injection for lower floors: parts of higher floors by import path, loaded on first use.

morok/__init__.py registers the parts. So a floor uses what it needs of higher floors through a Protocol of its own, without
importing them.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # type checkers take it for true; importing typing would double the time of `import morok`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_paths: dict[str, str] = {}
_loaded: dict[str, Any] = {}


def hand_in(parts: Mapping[str, str]) -> None:
    """Register parts by name, with import paths "module" or "module:name"."""
    _paths.update(parts)


def home(name: str) -> str:
    """The module of a part; "" for an unknown name."""
    return _paths.get(name, "").partition(":")[0]


def part(name: str) -> Any:
    """The part of that name, loaded; KeyError for an unknown name."""
    found = _loaded.get(name)
    if found is None:
        module, _, attribute = _paths[name].partition(":")
        found = importlib.import_module(module)
        found = _loaded[name] = getattr(found, attribute) if attribute else found
    return found
