"""The bytes of rule files, and their text. Imports no parser: the ledger needs the bytes alone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from morok import atomic
from morok.errors import FileAccessError, Place, RuleEncodingError, RuleLimitError

MAX_BYTES: Final = 1 << 20


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a rule file, at most MAX_BYTES + 1, enough to show that it is too long. OSError if it cannot be read, or is no
    regular file.
    """
    return atomic.read(Path(path), MAX_BYTES)


def unreadable(path: str | Path, problem: OSError) -> FileAccessError:
    """The mistake that a rule file cannot be read, where others are read beside it."""
    return FileAccessError(
        f"the file cannot be read: {problem.strerror or problem}",
        place=Place(str(path), 1),
        hint=FileAccessError.whose,
    )


def decode(data: bytes, name: str) -> str:
    """The text of a rule file's bytes, with line feeds as line ends. Raises RuleLimitError, or RuleEncodingError."""
    if len(data) > MAX_BYTES:
        raise RuleLimitError(
            f"the file has more than {MAX_BYTES:,} bytes",
            place=Place(name, 1),
            expected=f"at most {MAX_BYTES:,}",
            hint="split it into several files: one theme a file",
        )
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as e:
        before = data[: e.start]
        line = before.count(b"\n") + 1
        column = e.start - before.rfind(b"\n")
        raise RuleEncodingError(
            f"byte 0x{data[e.start]:02x} is no UTF-8",
            place=Place(name, line, column),
            expected="UTF-8 text",
            hint="save the file as UTF-8",
        ) from None
