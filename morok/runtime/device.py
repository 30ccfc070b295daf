"""The devices by name, and the NULL device, which runs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from morok import config
from morok.arguments import device_name
from morok.caller import caller
from morok.codegen.rendered import Rendered
from morok.errors import DeviceError
from morok.ir.uop import UOp
from morok.locks import DEVICES
from morok.passes.target import Target
from morok.runtime.abstract_device import Device
from morok.runtime.kernel import Kernel

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer


class NullDevice(Device):
    """A device that compiles for the CPU and runs nothing, for inspecting programs without executing them."""

    name = "NULL"

    @property
    def target(self) -> Target:
        return device("CPU").target

    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        return device("CPU").render(instructions, name)

    def load(self, rendered: Rendered) -> Kernel:
        device("CPU").load(rendered)
        kernel: Kernel = _cpus().NullKernel(rendered)
        return kernel

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


def _cpus() -> ModuleType:
    from morok.runtime import cpu  # lazy: making tensors and printing code do not need it

    return cpu


def _gpus() -> ModuleType:
    from morok.runtime import gpu  # lazy: few programs use a GPU

    return gpu


_MAKERS: Final[dict[str, Callable[[], Device]]] = {
    "CPU": lambda: _cpus().CPUDevice(),
    "CUDA": lambda: _gpus().CUDADevice(),
    "NULL": NullDevice,
}
_devices: Final[dict[str, Device]] = {}


def device(name: str | None = None) -> Device:
    """The device called `name`, by default that of MOROK_DEVICE. DeviceError for an unknown name.

    A device without its hardware can render kernels; allocating or compiling on it raises DeviceError.
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
    for known in _devices.values():
        known.forget_begun()


os.register_at_fork(after_in_child=_forget_begun)


def status() -> str:
    """One line of text: the GPU for CUDA kernels, or the reason why CUDA cannot be used."""
    return str(_gpus().status().message)
