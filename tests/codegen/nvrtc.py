"""NVIDIA's run-time compiler, which needs neither driver nor GPU, through ctypes."""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Compiled:
    """What NVRTC made of a kernel: its assembly and the compiler's remarks."""

    ptx: str
    log: str


@functools.cache
def _folder() -> Path:
    spec = importlib.util.find_spec("nvidia")
    assert spec is not None, "the package nvidia-cuda-nvrtc is among the test dependencies"
    (found,) = glob.glob(f"{next(iter(spec.submodule_search_locations))}/cu*/lib/libnvrtc.so.*")
    return Path(found)


@functools.cache
def _library() -> ctypes.CDLL:
    for builtins in glob.glob(str(_folder().parent / "libnvrtc-builtins.so.*")):
        ctypes.CDLL(builtins)
    return ctypes.CDLL(str(_folder()))


@functools.cache
def headers() -> str:
    """A folder with cuda_fp16.h and its like, unpacked from the library itself."""
    folder = str(Path(tempfile.gettempdir()) / "morok-tests-cuda-headers")
    log = ctypes.c_char_p()
    code = _library().nvrtcInstallBundledHeaders(folder.encode(), 0, ctypes.byref(log))
    assert code == 0, log.value
    return folder


def compile_ptx(text: str, name: str, arch: str = "sm_80", fmad: bool = True) -> Compiled:
    """CUDA C to machine code for `arch` ("compute_80": to assembly only); AssertionError with the log if it is rejected."""
    library = _library()
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None) == 0
    options = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        f"--include-path={headers()}",
        f"--fmad={str(fmad).lower()}",
    ]
    options += ["--ptxas-options=-v"] if arch.startswith("sm") else []
    given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    try:
        code = library.nvrtcCompileProgram(program, len(options), given)
        log = _text(program, "ProgramLog")
        assert code == 0, f"{log}\n{text}"
        return Compiled(_text(program, "PTX"), log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    assert getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    data = ctypes.create_string_buffer(size.value)
    assert getattr(_library(), f"nvrtcGet{what}")(program, data) == 0
    return data.value.decode(errors="replace")
