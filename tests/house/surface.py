"""The public names: of which classes they are, their parameters and defaults."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import morok
import morok.dialect
import morok.errors
from morok import nn
from morok.errors import MorokError

_IMPORT = re.compile(r"^ *((?:from morok[\w.]* import .*?|import morok[\w., ]*))(?: *#.*)?$", re.MULTILINE)


def parameters(value: Any) -> str:
    """Names, kinds and defaults; annotations are the business of type checkers."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "no signature"
    shown = []
    for p in found:
        default = "" if p.default is p.empty else f" = {p.default!r}" if " at 0x" not in repr(p.default) else " = ..."
        shown.append(f"{p.kind.name.lower()} {p.name}{default}")
    return "\n".join(shown)


def members(value: type) -> Iterator[tuple[str, str]]:
    for name in dir(value):
        if not name.startswith("_"):
            static = inspect.getattr_static(value, name)
            member = getattr(value, name, None)
            is_value = isinstance(static, property) or not callable(member)
            yield name, "a value" if is_value else parameters(member)


def surface(guide: Path) -> dict[str, str]:
    """Every public name, and whether each import that the README, docs and examples show works."""
    found = {"morok": "\n".join(sorted(morok.__all__))}
    homes = {
        "morok": (morok, morok.__all__),
        "morok.nn": (nn, dir(nn)),
        "morok.dialect": (morok.dialect, dir(morok.dialect)),
    }
    for home, (module, names) in homes.items():
        for name in names:
            value = getattr(module, name)
            if name.startswith("_") or not getattr(value, "__module__", "").startswith("morok"):
                continue
            found[f"{home}.{name}"] = parameters(value)
            if isinstance(value, type):
                if issubclass(value, enum.Enum):
                    found[f"{home}.{name}"] = "\n".join(value.__members__)
                found |= {f"{home}.{name}.{member}": shown for member, shown in members(value)}
    for name, value in vars(morok.errors).items():
        if isinstance(value, type) and issubclass(value, MorokError):
            found[f"morok.errors.{name}"] = f"{value.code}: {', '.join(c.__name__ for c in value.__mro__)}"
    pages = [guide / "README.md", *sorted((guide / "docs").glob("*.md")), *sorted((guide / "examples").glob("*.py"))]
    for line in sorted({m[1] for page in pages for m in _IMPORT.finditer(page.read_text(encoding="utf-8"))}):
        try:
            exec(line, {})
            found[f"import: {line}"] = "works"
        except Exception as error:
            found[f"import: {line}"] = f"{type(error).__name__}: {error}"
    return found
