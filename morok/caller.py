"""The line of the user's program that called Morok, for error messages."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from morok.errors import Place

_BETWEEN: Final = frozenset({contextlib.__file__, dataclasses.__file__})  # library code between the user and Morok
_PACKAGE: Final = str(Path(__file__).resolve().parent) + os.sep


def user_frame() -> FrameType | None:
    """The innermost frame outside this package, without frames of contextlib and of generated methods of our dataclasses."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = file.startswith(_PACKAGE) or file in _BETWEEN
        if not ours and (file != "<string>" or not frame.f_globals.get("__name__", "").startswith("morok.")):
            break
        frame = frame.f_back
    return frame


def caller() -> Place | None:
    """The user's file and line; None without a frame of the user."""
    frame = user_frame()
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)
