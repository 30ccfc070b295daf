"""Proving: semantics, obligations, verdicts, the ledger. The package is callable: `morok.prove("my.rules")`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from morok.prove.verdict import Verdict


class _Package(ModuleType):
    """`morok.prove` names this package and the function that users call; so the package is both."""

    def __call__(self, what: Any = None, **options: Any) -> list[Verdict]:
        """The verdict on every rule of `what`; see morok.prove.api.prove."""
        from morok.prove.api import prove  # lazy: the folder itself loads none of its modules

        return prove(what, **options)


sys.modules[__name__].__class__ = _Package
