"""`dim` and `keepdims` are understood wherever `axis` and `keepdim` are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import ArgumentTypeError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OTHER = {"axis": "dim", "dim": "axis", "keepdim": "keepdims"}

# What else methods need.
REST: dict[str, tuple[Any, ...]] = {
    "chunk": (2,),
    "concat": ([Tensor(X), Tensor(X)],),
    "stack": ([Tensor(X), Tensor(X)],),
    "cat": (Tensor(X), Tensor(X)),
    "repeat": (2,),
    "repeat_interleave": (2,),
    "roll": (1,),
    "split": (1,),
    "take": ([0, 1],),
    "take_along_axis": (np.zeros((2, 1, 4), np.int64),),
    "topk": (2,),
    "vecdot": (Tensor(X),),
}
NAMED: dict[str, dict[str, Any]] = {
    "scatter": {"indices": np.zeros((2, 1, 4), np.int64), "values": 5.0},
    "scatter_add": {"indices": np.zeros((2, 1, 4), np.int64), "values": 5.0},
}


def taking(name: str) -> list[str]:
    """The public methods with an argument of this name."""
    found = []
    for method in sorted(n for n in dir(Tensor) if not n.startswith("_") and callable(getattr(Tensor, n))):
        parameters = inspect.signature(getattr(Tensor, method)).parameters
        if name in parameters and parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL:
            found.append(method)
    return found


def call(method: str, **named: Any) -> Any:
    t = Tensor(X).squeeze() if method != "squeeze" and method != "try_squeeze" else Tensor(X[:, :1])
    return getattr(t, method)(*REST.get(method, ()), **NAMED.get(method, {}), **named)


def values(result: Any) -> list[Any]:
    return [t.numpy() for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("name", "method"), [(n, m) for n in ("axis", "dim") for m in taking(n)])
def test_an_axis_has_two_names(name: str, method: str) -> None:
    mine, other = values(call(method, **{name: 1})), values(call(method, **{OTHER[name]: 1}))
    for a, b in zip(mine, other, strict=True):
        np.testing.assert_array_equal(a, b)
    for value in (1, None):
        with pytest.raises(TypeError, match=f"was given {name} and {OTHER[name]}") as caught:
            call(method, **{name: 1, OTHER[name]: value})
        assert isinstance(caught.value, ArgumentTypeError)
        assert caught.value.place is not None
        assert caught.value.place.file == __file__
    with pytest.raises(TypeError, match="has no argument 'axs'"):
        call(method, **{name: 1, "axs": 1})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", taking("keepdim"))
def test_keeping_an_axis_has_two_names(method: str) -> None:
    t = Tensor(X)
    for keep in (True, False):
        expected = getattr(t, method)(1, keep).numpy()
        np.testing.assert_array_equal(getattr(t, method)(1, keepdims=keep).numpy(), expected)
        np.testing.assert_array_equal(getattr(t, method)(dim=1, keepdims=keep).numpy(), expected)
        np.testing.assert_array_equal(getattr(t, method)(keepdim=keep, dim=1).numpy(), expected)
    for use in (
        lambda: getattr(t, method)(1, True, keepdims=True),
        lambda: getattr(t, method)(keepdim=True, keepdims=False),
    ):
        with pytest.raises(TypeError, match="keepdim and keepdims"):
            use()


@pytest.mark.long
def test_names_and_positions() -> None:
    t = Tensor(X)
    twice: list[Callable[[], Any]] = [
        lambda: t.sum(1, dim=1),
        lambda: t.sum(1, dim=None),
        lambda: t.softmax(1, dim=1),
        lambda: Tensor.concat([t, t], 1, dim=1),
        lambda: t.squeeze(0, axis=0),
        lambda: t.unsqueeze(0, axis=0),
        lambda: t.flip(0, axis=0),
        lambda: t.flip(axis=0, dim=0),
        lambda: t.split(1, 1, dim=1),
    ]
    for use in twice:
        with pytest.raises(TypeError, match="was given"):
            use()
    # what stands behind *others is given by name alone
    np.testing.assert_array_equal(t.cat(t, t, t, dim=2).numpy(), np.concatenate([X] * 4, 2))
    np.testing.assert_array_equal(t.sum(dim=(0, 2)).numpy(), X.sum((0, 2)))
    np.testing.assert_array_equal(t.sum(None, dtype="f64", keepdims=True).numpy(), X.sum(keepdims=True, dtype="f8"))
    for axes in (1, (0, 2), None):
        np.testing.assert_array_equal(t.flip(axis=axes).numpy(), np.flip(X, axes))
        np.testing.assert_array_equal(t.flip(dim=axes).numpy(), np.flip(X, axes))
    with pytest.raises(TypeError, match="has no argument 'keepdims'"):
        t.softmax(keepdims=True)  # type: ignore[call-arg]
    for name in ("keepdim", "keepdims"):
        with pytest.raises(TypeError, match=f"has no argument '{name}'"):
            t.flip(**{name: 1})  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="axis 3"):
        t.sum(dim=3)
