"""Jitted functions and memory that they see in more ways than one: views, arrays, buffers, constants; and failed descriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor

Function = Callable[..., Any]


def square() -> Tensor:
    return Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))


def vector(*numbers: float) -> Tensor:
    return Tensor(np.array(numbers, np.float32))


def alike(program: Callable[[Callable[[Function], Function]], list[Any]]) -> None:
    """A program has the same results with its functions jitted as without."""
    assert program(morok.jit) == program(lambda f: f)


CHANGES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "base assigned": lambda g, v: g.assign(g + 10),
    "base written": lambda g, v: [g.__setitem__(0, 9), g.realize()],
}
VIEWS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "transposed": (lambda g: g.T, lambda v: v.T),
    "permuted": (lambda g: g.reshape(1, 2, 2).permute(2, 0, 1), lambda v: v.permute(1, 2, 0).reshape(2, 2)),
    "reshaped": (lambda g: g.reshape(4), lambda v: v.reshape(2, 2)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("writes", [False, True])
def test_views_that_fold_away_in_the_function(view: str, change: str, writes: bool) -> None:
    there, back = VIEWS[view]

    def program(jit: Callable[[Function], Function]) -> list[Any]:
        g = square()
        v = there(g)

        @jit
        def f(x: Tensor) -> Tensor:
            if writes:
                g.assign(g + x)
            return back(v) + x

        found = [f(square()).tolist(), f(square()).tolist()]
        CHANGES[change](g, v)
        return [*found, f(square()).tolist(), f(square()).tolist(), g.tolist(), v.tolist()]

    alike(program)


@pytest.mark.parametrize("make", [lambda: square().T, lambda: Tensor.arange(4).reshape(2, 2).T], ids=["memory", "none"])
def test_a_view_alone_that_folds_away(make: Callable[[], Tensor]) -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        v = make()
        f = jit(lambda x: v.T + x)
        found = f(square()).tolist()
        v.assign(v * 2)
        return [found, f(square()).tolist()]

    alike(program)
