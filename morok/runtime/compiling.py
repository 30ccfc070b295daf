"""Compiling one kernel on a thread of its own: LLVM works outside of Python's lock, so the next kernel is lowered meanwhile."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morok.ir.uop import UOp
    from morok.runtime.device import Device
    from morok.runtime.kernel import Kernel


class Compiling(threading.Thread):
    """A kernel that is being compiled, under the settings of the thread that began it."""

    def __init__(self, device: Device, instructions: Sequence[UOp], name: str) -> None:
        super().__init__(name=f"compile {name}")
        self._work = (contextvars.copy_context(), device, instructions, name)
        self._kernel: Kernel | None = None
        self._problem: BaseException | None = None
        self.start()

    def run(self) -> None:
        context, device, instructions, name = self._work
        try:
            self._kernel = context.run(device.compile, instructions, name)
        except BaseException as problem:
            self._problem = problem

    def result(self) -> Kernel:
        """The kernel, once it is there; raises what compiling it raised."""
        self.join()
        if self._problem is not None:
            raise self._problem
        assert self._kernel is not None
        return self._kernel
