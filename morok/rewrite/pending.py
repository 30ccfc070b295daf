"""The mark in place of a final form: a rule has replaced the node, and the replacement is unfinished."""

from __future__ import annotations

from typing import Final


class _Pending:
    def __repr__(self) -> str:
        return "PENDING"


PENDING: Final = _Pending()
