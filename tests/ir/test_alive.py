"""Tables of what is alive: what has died is forgotten, in one step in C and in Python alike."""

from __future__ import annotations

import _weakref
import functools
from collections.abc import Callable
from typing import Any

import pytest

from morok.ir import alive
from morok.ir.alive import Alive, in_python, remove_dead


class Thing:
    """Something that can be referred to weakly."""


@pytest.mark.parametrize("remove", [remove_dead, in_python])
def test_what_has_died_is_forgotten_and_nothing_else(
    remove: Callable[[Any, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "remove_dead", remove)
    table: Alive[Thing] = Alive()
    assert isinstance(table.remove, functools.partial)
    assert table.remove.func is remove
    first, second = Thing(), Thing()
    assert table.entered("first", first) is first
    assert table.entered("first", second) is first
    assert table.entered("second", second) is second
    table.remove("first")  # told too early, or of another that had this key before
    assert set(table) == {"first", "second"}
    del first
    assert set(table) == {"second"}
    table.remove("first")
    again = Thing()
    assert table.entered("first", again) is again


def test_the_step_in_c_is_in_use() -> None:
    """Without it an interrupt is lost when it arrives in the callback of a weak reference."""
    assert remove_dead is _weakref._remove_dead_weakref  # type: ignore[attr-defined]
