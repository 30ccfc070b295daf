"""Who is making nodes: the user, whose line an error names and an origin keeps, or a rewriting."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from morok.errors import Place

if TYPE_CHECKING:
    from morok.ir.provenance import Origin

_CONTEXTLIB: Final = contextlib.__file__
_PACKAGE: Final = str(Path(__file__).resolve().parent.parent) + os.sep


class _Maker(threading.local):
    """Who is creating nodes in this thread: None for the user, whose frame is recorded, else what to record instead."""

    origin: Origin | None = None
    stage: str = ""  # what a rewriting in progress calls itself


maker: Final = _Maker()


def user_frame() -> FrameType | None:
    """The innermost frame outside this package, and of none that Python puts between: of a `with`, or of a dataclass of ours."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = file.startswith(_PACKAGE) or file == _CONTEXTLIB
        if not ours and (file != "<string>" or not frame.f_globals.get("__name__", "").startswith("morok.")):
            break
        frame = frame.f_back
    return frame


def caller() -> Place | None:
    """The user's file and line, for error messages."""
    frame = user_frame()
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)
