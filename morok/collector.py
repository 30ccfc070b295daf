"""Python's collector of cycles, kept from work that makes many objects and few cycles."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Search for no cycles inside the `with` block: what is let go of is freed at once, as ever, and what is alive is not walked
    again and again. Where the collector is off already, by the user or by another thread in here, it is left alone.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
