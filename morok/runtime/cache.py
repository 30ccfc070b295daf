"""Compiled code on disk."""

from __future__ import annotations

from morok.disk_cache import DiskCache, cache_of


def disk_cache() -> DiskCache | None:
    """Where kernels are kept; None where they are not."""
    return cache_of("kernels")
