"""The optimizer of kernels as the stages see it: a part of a higher floor (`morok.optimize.stage`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from morok.handed import part

if TYPE_CHECKING:
    from morok.ir.uop import UOp
    from morok.passes.target import Target


class Optimizer(Protocol):
    """The choice of a kernel's optimizations."""

    def optimized(self, ast: UOp, target: Target) -> UOp:
        """The kernel with its optimizations applied; OptError if one that was asked for does not fit it."""

    def vectors(self, ast: UOp, target: Target) -> Target:
        """The target, with vectors of as many 32-bit lanes as the optimization LANES of a kernel sets."""


def optimizer() -> Optimizer:
    found: Optimizer = part("optimizer")
    return found
