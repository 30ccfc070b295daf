"""Compiled code on disk."""

from __future__ import annotations

from morok.disk_cache import DiskCache, cache_of


def disk_cache() -> DiskCache | None:
    """The cache of kernels; None where none are kept."""
    return cache_of("kernels")
