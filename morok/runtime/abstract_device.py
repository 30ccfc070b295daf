"""The base class of devices, with a cache of compiled kernels."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok import config
from morok.codegen.rendered import Rendered
from morok.ir.uop import UOp
from morok.locks import KERNELS
from morok.passes.target import Target
from morok.remembered import Remembered
from morok.runtime.compiling import Aside
from morok.runtime.jit import COUNTERS
from morok.runtime.kernel import Kernel

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer

# most kernels a device compiles at a time; more accumulate only if errors prevent programs from using theirs
_BEGUN: Final = 64


class Device(ABC):
    """One device.

    name                "CPU", "CPU:1", "CUDA", "NULL"
    shares_host_memory  True if a buffer can use an ndarray's memory
    measures            True if kernels can run here, with meaningful times
    identity            the hardware and software that the speed of kernels depends on, as text
    """

    name: str
    shares_host_memory = False

    def __init__(self) -> None:
        self._kernels: Remembered[Kernel] = Remembered()
        self._begun: dict[Any, Callable[[], Kernel]] = {}

    def __repr__(self) -> str:
        return f"<device {self.name}>"

    @property
    def measures(self) -> bool:
        return False

    @property
    def identity(self) -> str:
        return self.name

    def forget_begun(self) -> None:
        """Drop pending compilations, in a forked child: their threads exist in the parent only."""
        self._begun.clear()

    @property
    @abstractmethod
    def target(self) -> Target:
        """The abilities of its code generator."""

    @abstractmethod
    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        """The kernel as text; needs no hardware."""

    @abstractmethod
    def load(self, rendered: Rendered) -> Kernel:
        """The kernel of text, compiled or from a cache. CompileError, DeviceError."""

    @abstractmethod
    def allocate(self, nbytes: int) -> tuple[Any, int]:
        """New memory: (owner, address). OutOfMemoryError, DeviceError."""

    @abstractmethod
    def copy_in(self, buffer: Buffer, array: Any) -> None:
        """Copy the bytes of the flat ndarray `array` to `buffer`."""

    @abstractmethod
    def copy_out(self, buffer: Buffer) -> bytes:
        """The bytes of `buffer`."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all launched kernels are done."""

    def start(self, rendered: Rendered) -> Callable[[], Kernel]:
        """A function that waits for the kernel of text, which another thread compiles. CompileError, DeviceError."""
        return Aside(lambda: self.load(rendered), f"compile {rendered.name}").result

    def compile(self, instructions: Sequence[UOp], name: str) -> Kernel:
        """The kernel of `instructions` (the list after stage 22). The same list twice is compiled once."""
        return self.begin(instructions, name, aside=False)()

    def begin(
        self, instructions: Sequence[UOp], name: str, between: Callable[[], None] = lambda: None, aside: bool = True
    ) -> Callable[[], Kernel]:
        """A function that returns the kernel of `instructions`, as compile(). The kernel is rendered now, then `between` is
        called; compilation starts now on another thread if `aside`, else in the function.
        """
        rendered = self.render(instructions, name)
        between()
        key = (_known_by(rendered), config.FAST_MATH.value)
        with KERNELS:
            found = self._kernels.get(key)
            if found is not None or key in self._begun:
                COUNTERS.from_memory += 1
            elif aside:
                self._begun[key] = self.start(rendered)
                while len(self._begun) > _BEGUN:  # a dropped kernel is compiled again if it is used
                    del self._begun[next(iter(self._begun))]

        def finish() -> Kernel:
            with KERNELS:
                kernel = self._kernels.get(key)
                if kernel is None:
                    begun = self._begun.pop(key, None)  # None if it was not started, or failed
                    kernel = self.load(rendered) if begun is None else begun()
                self._kernels.put(key, kernel, kernel.nbytes)
                return kernel

        return finish


def _known_by(rendered: Rendered) -> Hashable:
    """The key of a kernel, independent of its name; its texts as a digest, to save memory."""
    texts = f"{rendered.text}\0{rendered.narrow}".replace(f"{rendered.symbol}(", "(")
    return replace(rendered, name="", text="", narrow=""), hashlib.sha256(
        texts.encode("utf-8", "surrogatepass")
    ).digest()
