"""PENDING, the mark of a node that a rule has replaced while the replacement is unfinished."""

from __future__ import annotations

from typing import Final


class _Pending:
    def __repr__(self) -> str:
        return "PENDING"


PENDING: Final = _Pending()
