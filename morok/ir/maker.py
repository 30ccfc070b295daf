"""Who is making nodes: the user, whose line an error names and an origin keeps, or a rewriting."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from morok.errors import Place

if TYPE_CHECKING:
    from morok.ir.provenance import Origin

_PACKAGE: Final = str(Path(__file__).resolve().parent.parent) + os.sep


class _Maker(threading.local):
    """Who is creating nodes in this thread: None for the user, whose frame is recorded, else what to record instead."""

    origin: Origin | None = None
    stage: str = ""  # what a rewriting in progress calls itself


maker: Final = _Maker()


def user_frame() -> FrameType | None:
    """The innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def caller() -> Place | None:
    """The user's file and line, for error messages."""
    frame = user_frame()
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)
