"""Values of a graph computed by machine code: its variables become elements of buffers, one for each assignment of values."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from morok import config
from morok.codegen.llvm import render
from morok.codegen.machines import host
from morok.errors import MorokError
from morok.ir.dtype import DType, dtypes
from morok.ir.number import to_bits
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.pipeline import lower, unwatched
from morok.passes.target import KernelInfo, Target
from morok.runtime.buffer import BITS, NUMPY, Buffer
from morok.runtime.cpu import CPUKernel, elements
from morok.runtime.device import device
from morok.runtime.jit import compile_text


def values(graph: UOp, variables: Sequence[UOp], worlds: Sequence[Mapping[Any, Any]]) -> list[Any]:
    """The results of machine code for a graph, one for each of `worlds`, assignments of values to its variables."""
    cpu, n = device("CPU"), len(worlds)
    kernel = compiled(graph, variables, n)
    out = Buffer.wrap(cpu, np.zeros(n, NUMPY[graph.dtype]), graph.dtype)
    kernel.launch([out, *(Buffer.wrap(cpu, _array(v.dtype, [w[v] for w in worlds]), v.dtype) for v in variables)])
    return elements(out)


def compiled(graph: UOp, variables: Sequence[UOp], n: int) -> CPUKernel:
    """A kernel that computes a graph for n assignments; its buffers are the results and one for each variable."""
    text = render(_lowered(graph, variables, n), "attacked", Target("LLVM", fma=False), frozenset())
    return CPUKernel(text, compile_text(text.text, text.symbol, text.effort, None))


def launched(
    kernel: CPUKernel, n: int, result: DType, dtype: DType, operands: Sequence[np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """The results of a kernel for `n` elements of `dtype`, of which the first are given, as arrays of up to `n`."""
    cpu, given = device("CPU"), len(operands[0])
    out = np.zeros(n, NUMPY[result])
    padded = [np.concatenate([a, np.zeros(n - given, a.dtype)]) if given < n else a for a in operands]
    kernel.launch([Buffer.wrap(cpu, out, result), *(Buffer.wrap(cpu, a, dtype) for a in padded)])
    return out[:given]


def load() -> None:
    """Load what makes machine code of graphs, its rules among it, so that processes that are forked have it."""
    x = UOp.var("x", dtypes.i32)
    with contextlib.suppress(MorokError):  # said where machine code is wanted
        _lowered(x + x, [x], 1)


def _lowered(graph: UOp, variables: Sequence[UOp], n: int) -> list[UOp]:
    """The instructions of such a kernel."""
    at = UOp.range(n, 0, AxisType.Loop, True)
    out, *given = [UOp.new(Op.DefineGlobal, (), k, v.dtype.ptr(n)).index(at) for k, v in enumerate((graph, *variables))]
    made = graph.substitute(dict(zip(variables, given, strict=True)))
    sink = UOp.sink(out.store(made).end(at), info=KernelInfo("attacked"))
    with unwatched(), config.settings(fast_math="", check=False, noopt=False, opts="", debug=""):
        return lower(sink, replace(host(), fma=False, unsupported=frozenset()))


def _array(d: DType, given: Sequence[Any]) -> Any:
    return np.array([to_bits(d, v) for v in given] if d in BITS else list(given), NUMPY[d])
