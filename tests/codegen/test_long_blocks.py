"""A kernel of very many instructions comes in blocks that LLVM compiles in a time that grows with their number."""

from __future__ import annotations

import numpy as np
import pytest

from morok import Tensor
from morok.codegen.llvm.builder import MOST_LINES


def blocks(code: str) -> list[int]:
    """How many lines each block has."""
    sizes = [0]
    for line in code.splitlines():
        if line.endswith(":"):
            sizes.append(0)
        sizes[-1] += 1
    return sizes


@pytest.mark.long
def test_long_blocks_are_divided() -> None:
    """Also inside a loop whose accumulator goes through all of them."""
    x = np.arange(1, 101, dtype=np.int32)
    t, wanted = Tensor(x), x
    for k in range(1500):
        t, wanted = t * 3 ^ k, wanted * 3 ^ k
    total = t.sum()
    (kernel,) = total.kernels()
    sizes = blocks(kernel.code)
    assert len([n for n in sizes if n > MOST_LINES / 2]) > 2
    assert max(sizes) < MOST_LINES + 50
    assert total.item() == wanted.sum()
