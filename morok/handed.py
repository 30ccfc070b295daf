"""Parts that floors are handed from above, by import path: each is loaded when it is first asked for.

The package itself (morok/__init__.py) says what is handed in. So a floor asks for what it needs by its own Protocol, and imports
nothing that stands above it.
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
    """Make parts known by import paths, "module" or "module:name"."""
    _paths.update(parts)


def home(name: str) -> str:
    """The module that a part is in; "" where none of that name was handed in."""
    return _paths.get(name, "").partition(":")[0]


def part(name: str) -> Any:
    """The part of that name, which was handed in: KeyError for any other."""
    found = _loaded.get(name)
    if found is None:
        module, _, attribute = _paths[name].partition(":")
        found = importlib.import_module(module)
        found = _loaded[name] = getattr(found, attribute) if attribute else found
    return found
