"""The place in the user's program where something was asked for: the line that an error names."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from morok.errors import Place

_BETWEEN: Final = frozenset({contextlib.__file__, dataclasses.__file__})  # what calls us for the user
_PACKAGE: Final = str(Path(__file__).resolve().parent) + os.sep


def user_frame() -> FrameType | None:
    """The innermost frame outside this package, and of none that Python puts between: of a `with`, or of a dataclass of ours."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = file.startswith(_PACKAGE) or file in _BETWEEN
        if not ours and (file != "<string>" or not frame.f_globals.get("__name__", "").startswith("morok.")):
            break
        frame = frame.f_back
    return frame


def caller() -> Place | None:
    """The user's file and line, for error messages."""
    frame = user_frame()
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)
