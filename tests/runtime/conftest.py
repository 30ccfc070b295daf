"""Caches of their own for every test, and the instruction-list helpers of tests/codegen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from morok import config

sys.path.append(str(Path(__file__).parent.parent / "codegen"))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder for the code inside the test."""
    with config.settings(cache_dir=tmp_path):
        yield tmp_path
