"""Solver semantics of every op (`OpDef.solver` names them: "morok.prove.semantics:add"), and the theory of Morok's dialect.

They live in `ops` and `theory`, and load when asked for: another dialect's proofs need neither.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    home = "theory" if name in ("MorokTheory", "MorokWorld") else "ops"
    module = importlib.import_module(f"morok.prove.semantics.{home}")
    if name.startswith("_") or not hasattr(module, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(module, name)
