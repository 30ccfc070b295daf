"""The mark for the final form of a node that is being worked on."""

from __future__ import annotations

from typing import Final


class _Pending:
    def __repr__(self) -> str:
        return "PENDING"


PENDING: Final = _Pending()
