"""Morok: rewrite rules that are proved before they run, and a lazy tensor compiler built on them."""

from __future__ import annotations

import importlib

import morok.late_imports
from morok.handed import hand_in

TYPE_CHECKING = False  # type checkers take it for true; importing typing would double the time of `import morok`

__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    import morok.accuracy.machine_values
    import morok.optimize.stage
    import morok.prove.admission
    from morok.ir.dtype import dtypes as dtypes
    from morok.ir.uop import UOp as UOp
    from morok.marks import helper as helper
    from morok.passes.optimizer import Optimizer
    from morok.prove.attack.machine_code import Machine
    from morok.prove.measuring import Measuring
    from morok.rewrite.gate import Gate

    _gate: Gate = morok.prove.admission
    _machine: Machine = morok.accuracy.machine_values
    _optimizer: Optimizer = morok.optimize.stage
    _measuring: Measuring = morok.accuracy  # checked here: each part satisfies the Protocol of the lower floor

# Names load with their modules on first use, so that `import morok` costs nothing.
_HOME = {
    "Tensor": "morok.tensor.tensor",
    "Variable": "morok.tensor.variable",
    "UOp": "morok.ir.uop",
    "Op": "morok.ir.op",
    "AxisType": "morok.ir.op",
    "dtypes": "morok.ir.dtype",
    "parse": "morok.ir.expression_parser",
    "simplify": "morok.rewrite.simplify",
    "load_rules": "morok.rewrite.library",
    "rewrite": "morok.rewrite.library",
    "append_rules": "morok.passes.appended",
    "prove": "morok.prove.api",
    "jit": "morok.described.function",
    "helper": "morok.marks",
    "settings": "morok.config",
    "OptimizerConfig": "morok.optimize.strategy",
    "Beam": "morok.optimize.strategy",
    "Heuristics": "morok.optimize.strategy",
    "Unoptimized": "morok.optimize.strategy",
    "Explicit": "morok.optimize.strategy",
    "Opt": "morok.optimize.opts",
    "OptOp": "morok.optimize.opts",
}
# Parts of higher floors that satisfy Protocols of lower ones, by import path.
hand_in(
    {
        "argument KernelInfo": "morok.passes.target:KernelInfo",
        "argument Opt": "morok.optimize.opts:Opt",
        "argument OptOp": "morok.optimize.opts:OptOp",
        "text of nodes": "morok.ir.text:dump",
        "drawing of nodes": "morok.ir.drawing:draw",
        "pickled nodes": "morok.ir.pickling",
        "dialect morok": "morok.ir.morok_dialect:MOROK",
        "verification": "morok.prove.verified:mistakes",
        "bounds check": "morok.prove.bounds_check:check",
        "optimizer": "morok.optimize.stage",
        "gate": "morok.prove.admission",
        "machine": "morok.accuracy.machine_values",
        "measuring": "morok.accuracy",
    }
)
_PACKAGES = frozenset({"errors", "ir", "nn"})
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        if name in _PACKAGES:
            return importlib.import_module(f"morok.{name}")
        raise AttributeError(f"module 'morok' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_PACKAGES})
