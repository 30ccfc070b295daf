"""Tensors computed by the interpreter instead of a compiler: schedules and kernels checked without any of the later stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from morok import Tensor
from morok.ir import interpret
from morok.tensor import schedule, stored
from morok.tensor.base import numpy_name
from morok.tensor.elements import sizes_of


def run(*tensors: Tensor) -> list[np.ndarray[Any, Any]]:
    """The values of tensors that no constant stands for: each kernel of their schedule run by the interpreter."""
    roots = stored.wanted(tensors)
    prepared = schedule.with_memory(roots, "CPU")
    inputs = prepared.schedule.inputs
    memory: list[list[Any]] = [list(m.numpy().tolist()) for m in prepared.memory[:inputs]]
    memory += [[None] * m.size for m in prepared.memory[inputs:]]
    for step in prepared.schedule.steps:
        interpret.run(step.ast, {slot: memory[n] for slot, n in enumerate(step.buffers)}, prepared.values)
    held = dict(zip(roots, prepared.schedule.outputs, strict=True))
    return [array(memory[held[stored.content(t.uop)]], t) for t in tensors]


def array(elements: Sequence[Any], like: Tensor) -> np.ndarray[Any, Any]:
    sizes = sizes_of(like)
    count = int(np.prod(sizes))
    return np.array(list(elements)[:count], dtype=numpy_name(like.dtype)).reshape(sizes)


def compute(t: Tensor) -> np.ndarray[Any, Any]:
    """The value of a tensor, computed by the interpreter; constants are known without it."""
    if stored.constant(t.uop) is not None or not stored.wanted([t]):
        return t.numpy()
    return run(t)[0]
