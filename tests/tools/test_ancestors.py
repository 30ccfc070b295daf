"""No class has more than three classes of ours in its method resolution order, itself included and errors aside."""

from __future__ import annotations

import importlib
import inspect
from functools import cache

import pytest
from test_floors import MODULES

MOST = 3
# Modules with classes that have more: nothing is added here, and a module goes once none of its classes has.
TOWERS = {
    "morok.prove.attack.makers",
    "morok.prove.attack.orders",
    "morok.prove.encoding",
    "morok.prove.lint.questions",
}


@cache
def ancestors() -> dict[str, int]:
    """How many classes of ours each class has in its order, itself included, by qualified name."""
    found: dict[str, int] = {}
    for name in sorted(set(MODULES) - {"morok.__main__"}):
        for value in vars(importlib.import_module(name)).values():
            if inspect.isclass(value) and value.__module__ == name and not issubclass(value, BaseException):
                ours = [c for c in value.__mro__ if c.__module__.partition(".")[0] == "morok"]
                found[f"{name}.{value.__qualname__}"] = len(ours)
    return found


def test_a_class_has_at_most_three_classes_of_ours_in_its_order() -> None:
    assert len(ancestors()) > 300
    above = {name for name, count in ancestors().items() if count > MOST}
    assert {name for name in above if not name.startswith(tuple(f"{m}." for m in TOWERS))} == set()


@pytest.mark.parametrize("module", sorted(TOWERS))
def test_a_module_that_may_have_towers_has_one(module: str) -> None:
    assert any(count > MOST for name, count in ancestors().items() if name.startswith(f"{module}."))
