"""The current maker of nodes, for their origins: the user, whose line is recorded, or a rewriting."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from morok.ir.provenance import Origin


class _Maker(threading.local):
    """The maker of nodes in this thread: None for the user, whose frame is recorded, else the origin to record instead."""

    origin: Origin | None = None
    stage: str = ""  # the name of the stage that is rewriting; "" outside the pipeline


maker: Final = _Maker()
