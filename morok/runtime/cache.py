"""Compiled code on disk."""

from __future__ import annotations

from morok.disk_cache import DiskCache, cache_of


def disk_cache() -> DiskCache | None:
    """The cache of kernels; None if there is no usable cache folder."""
    return cache_of("kernels")
