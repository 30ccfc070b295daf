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


def settle() -> None:
    """Take all objects that there are for old ones: those of a library that has been loaded stay, and are not walked because some
    young ones have been let go of. Only a search through everything finds their cycles. Where the user froze objects, they stay.
    """
    if not gc.get_freeze_count():
        gc.freeze()  # all of them go to a generation of their own, and from there
        gc.unfreeze()  # to the oldest, without being looked at
