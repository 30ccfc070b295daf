"""The devices: their abilities, and where to find each by name."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok import config
from morok.arguments import device_name
from morok.caller import caller
from morok.codegen.rendered import Rendered
from morok.errors import DeviceError
from morok.ir.fingerprint import fingerprint
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.locks import DEVICES, KERNELS
from morok.passes.target import Target
from morok.remembered import Remembered
from morok.runtime.compiling import Aside
from morok.runtime.jit import COUNTERS
from morok.runtime.kernel import Kernel

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer

_BEGUN: Final = 64  # kernels being compiled a device; more stay only where errors kept programs from asking for theirs


class Device(ABC):
    """One device.

    name                "CPU", "CPU:1", "CUDA", "NULL"
    shares_host_memory  whether an ndarray's memory can be a buffer's
    measures            whether kernels can be run here, and their time means something
    identity            the hardware, as far as the speed of a kernel depends on it
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

    @property
    @abstractmethod
    def target(self) -> Target:
        """The abilities of its code generator."""

    @abstractmethod
    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        """The kernel as text; needs no hardware."""

    @abstractmethod
    def load(self, rendered: Rendered) -> Kernel:
        """Compile text, or find it compiled. CompileError, DeviceError."""

    @abstractmethod
    def allocate(self, nbytes: int) -> tuple[Any, int]:
        """Memory: its owner and its address. OutOfMemoryError, DeviceError."""

    @abstractmethod
    def copy_in(self, buffer: Buffer, array: Any) -> None:
        """Bytes of the flat ndarray `array` to `buffer`."""

    @abstractmethod
    def copy_out(self, buffer: Buffer) -> bytes:
        """The bytes of `buffer`."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything launched is done."""

    def start(self, rendered: Rendered) -> Callable[[], Kernel]:
        """Begin to compile text on another thread; what is returned waits for the kernel. CompileError, DeviceError."""
        return Aside(lambda: self.load(rendered), f"compile {rendered.name}").result

    def compile(self, instructions: Sequence[UOp], name: str) -> Kernel:
        """The kernel of `instructions` (the list after stage 22). The same list twice is compiled once."""
        return self.begin(instructions, name, aside=False)()

    def begin(self, instructions: Sequence[UOp], name: str, aside: bool = True) -> Callable[[], Kernel]:
        """Render a kernel and begin to compile it, on another thread if `aside`; what is returned waits for it, as `compile`."""
        key = (fingerprint([u for u in instructions if u.op is not Op.Sink]), config.FAST_MATH.value)
        with KERNELS:
            found = self._kernels.get(key)
            if found is not None or key in self._begun:
                COUNTERS.from_memory += 1
            elif aside:
                self._begun[key] = self.start(self.render(instructions, name))
                while len(self._begun) > _BEGUN:  # who asks all the same compiles again
                    del self._begun[next(iter(self._begun))]

        def finish() -> Kernel:
            with KERNELS:
                kernel = self._kernels.get(key)
                if kernel is None:
                    begun = self._begun.pop(key, None)  # none where it was not begun, or failed
                    kernel = self.load(self.render(instructions, name)) if begun is None else begun()
                self._kernels.put(key, kernel, kernel.nbytes)
                return kernel

        return finish


class NullDevice(Device):
    """Compiles for the CPU and runs nothing: programs can be counted and read without being executed."""

    name = "NULL"

    @property
    def target(self) -> Target:
        return device("CPU").target

    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        return device("CPU").render(instructions, name)

    def load(self, rendered: Rendered) -> Kernel:
        from morok.runtime.cpu import NullKernel

        device("CPU").load(rendered)
        return NullKernel(rendered)

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        return nbytes, 0

    def copy_in(self, buffer: Buffer, array: Any) -> None:
        """Nothing is kept."""

    def copy_out(self, buffer: Buffer) -> bytes:
        """The bytes of a buffer without elements; DeviceError for any other."""
        if buffer.nbytes:
            raise DeviceError(
                "a tensor on NULL has no elements to read: kernels are compiled there and do not run",
                place=caller(),
                expected="a tensor on CPU or CUDA",
                hint="kernels(), schedule() and prepare() need no elements",
            )
        return b""

    def synchronize(self) -> None:
        """Nothing was launched."""


def _cpu() -> Device:
    from morok.runtime.cpu import CPUDevice

    return CPUDevice()


def _cuda() -> Device:
    from morok.runtime.gpu import CUDADevice

    return CUDADevice()


_MAKERS: Final = {"CPU": _cpu, "CUDA": _cuda, "NULL": NullDevice}
_devices: Final[dict[str, Device]] = {}


def device(name: str | None = None) -> Device:
    """The device called `name`, by default the one that MOROK_DEVICE names. DeviceError if there is none such.

    A device without its hardware is returned all the same: it renders; allocating or compiling on it raises DeviceError.
    """
    wanted = config.DEVICE.value if name is None else device_name(name)
    found = _devices.get(wanted)
    if found is not None:
        return found
    with DEVICES:
        found = _devices.get(wanted)
        if found is None:
            found = _MAKERS[wanted.partition(":")[0]]()
            found.name = wanted
            _devices[wanted] = found
        return found


def _forget_begun() -> None:
    """The threads that compile are the parent's: a forked child begins again."""
    for known in _devices.values():
        known._begun.clear()


os.register_at_fork(after_in_child=_forget_begun)


def status() -> str:
    """One line: which GPU CUDA kernels would run on, or why none can."""
    from morok.runtime.gpu import status as cuda_status

    return cuda_status().message
