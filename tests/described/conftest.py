"""Fixtures of the tests of described functions."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def little_to_collect() -> Iterator[None]:
    """What other tests left behind is not looked through each time that this one collects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
