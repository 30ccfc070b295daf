"""What NumPy raises, ours is too: `except IndexError` and its relatives catch the same mistakes."""

from __future__ import annotations

import inspect
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes, errors
from morok.errors import MorokError

A = np.arange(6.0, dtype=np.float32).reshape(2, 3)
I = np.arange(6).reshape(2, 3)  # noqa: E741
B = np.ones((2, 3), np.bool_)


def both(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Tensor]:
    return array.copy(), Tensor(array.copy())


def put(x: Any, key: Any, value: Any) -> None:
    x[key] = value


# For each mistake, what NumPy and what we are asked for.
MISTAKES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}


def mistake(
    name: str, array: np.ndarray[Any, Any], use: Callable[[Any], Any], ours: Callable[[Any], Any] | None = None
) -> None:
    x, t = both(array)
    MISTAKES[name] = (lambda: use(x), lambda: (ours or use)(t))


mistake("an index outside", A, lambda x: x[2])
mistake("a negative index outside", A, lambda x: x[0, -4])
mistake("too many indices", A, lambda x: x[0, 0, 0])
mistake("two ellipses", A, lambda x: x[..., ...])
mistake("an index of letters", A, lambda x: x["a"])
mistake("half an index", A, lambda x: x[0.5])
mistake("positions outside", A, lambda x: x[[0, 2]])
mistake("positions of floats", A, lambda x: x[[0.5]])
mistake("positions that do not broadcast", A, lambda x: x[[0, 1], [0, 1, 2]])
mistake("a mask of another shape", A, lambda x: x[np.ones((3, 2), np.bool_)])
mistake("a slice of letters", A, lambda x: x["a":"b"])
mistake("a step of 0", A, lambda x: x[::0])
mistake("an index of a scalar", np.float32(1), lambda x: x[0])
mistake("values of another shape written", A, lambda x: put(x, 0, [1.0, 2.0]))
mistake("written outside", A, lambda x: put(x, (0, 3), 1.0))
mistake("taken outside", A, lambda x: x.take([6]))
mistake("no such axis", A, lambda x: x.sum(axis=2))
mistake("no such axis of a softmax", A, lambda x: np.max(x, -3), lambda t: t.max(-3))
mistake("an axis twice", A, lambda x: x.sum(axis=(0, 0)))
mistake("an axis of letters", A, lambda x: x.sum(axis="a"))
mistake("half an axis", A, lambda x: np.flip(x, 0.5), lambda t: t.flip(0.5))
mistake("a shape that does not fit", A, lambda x: x.reshape(4, 2))
mistake("a shape of letters", A, lambda x: x.reshape("a"))
mistake("a shape of halves", A, lambda x: x.reshape(1.5, 4))
mistake("two unknown sizes", A, lambda x: x.reshape(-1, -1))
mistake("shapes that do not broadcast", A, lambda x: x + np.ones(2, np.float32))
mistake("inner dimensions that differ", A, lambda x: x @ np.ones((2, 3), np.float32))
mistake("a product with a number", A, lambda x: x @ 3)
mistake("no order of axes", A, lambda x: x.transpose(0, 0), lambda t: t.permute(0, 0))
mistake("no such axis to exchange", A, lambda x: np.swapaxes(x, 0, 2), lambda t: t.transpose(0, 2))
mistake("no such axis to move", A, lambda x: np.moveaxis(x, 0, 2), lambda t: t.moveaxis(0, 2))
mistake("no such axis to squeeze", A, lambda x: np.squeeze(x, 2), lambda t: t.squeeze(2))
mistake("an axis of 3 squeezed", A, lambda x: np.squeeze(x, 1), lambda t: t.squeeze(1))
mistake("broadcast to fewer", A, lambda x: np.broadcast_to(x, (4, 3)), lambda t: t.broadcast_to((4, 3)))
mistake("parts that do not add up", A, lambda x: np.concatenate([x, x[:, :2]]), lambda t: Tensor.concat([t, t[:, :2]]))
mistake("nothing joined", A, lambda x: np.concatenate([]), lambda t: Tensor.concat([]))
mistake("joined along no axis", A, lambda x: np.concatenate([x, x], 2), lambda t: Tensor.concat([t, t], 2))
mistake("the truth of several", A, bool)
mistake("the only one of several", A, lambda x: x.item())
mistake("the integer of several", I, int)
mistake("the float of several", A, float)
mistake("the index of several", I, operator.index)
mistake("the index of a float", np.array(1.0, np.float32), operator.index)
mistake("the length of a scalar", np.array(1.0, np.float32), len)
mistake("the elements of a scalar", np.array(1.0, np.float32), list)
mistake("a dtype of letters", A, lambda x: x.astype("letters"))
mistake("the opposite of bools", B, operator.neg)
mistake("a difference of bools", B, lambda x: x - x)
mistake("bits of floats", A, lambda x: x & x)
mistake("a shift of floats", A, lambda x: x << 1)
mistake("the complement of floats", A, operator.invert)
mistake("a negative size", A, lambda x: np.ones((-1, 2)), lambda t: Tensor.ones((-1, 2)))
mistake("half a size", A, lambda x: np.ones(1.5), lambda t: Tensor.ones(1.5))
mistake("ragged lists", A, lambda x: np.array([[1.0], [1.0, 2.0]]), lambda t: Tensor([[1.0], [1.0, 2.0]]))
mistake("too many letters", A, lambda x: np.einsum("ijk", x), lambda t: Tensor.einsum("ijk", t))
mistake("a result of no operand", A, lambda x: np.einsum("ij->k", x), lambda t: Tensor.einsum("ij->k", t))
mistake("half a number of samples", A, lambda x: np.linspace(0, 1, 1.5), lambda t: Tensor.linspace(0, 1, 1.5))
mistake("fewer than no samples", A, lambda x: np.linspace(0, 1, -1), lambda t: Tensor.linspace(0, 1, -1))
mistake("a side of letters", A[0], lambda x: x.searchsorted(1.0, "up"))


@pytest.mark.parametrize("name", MISTAKES)
def test_our_error_is_of_the_class_that_numpy_raises(name: str) -> None:
    theirs, ours = MISTAKES[name]
    with pytest.raises(Exception) as expected:  # noqa: PT011
        theirs()
    with pytest.raises(MorokError) as caught:
        ours()
    of_python = [c for c in type(expected.value).__mro__ if c.__module__ == "builtins" and c.__name__.endswith("Error")]
    assert isinstance(caught.value, of_python[0])
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


OWN = [v for v in vars(errors).values() if inspect.isclass(v) and issubclass(v, MorokError)]


def test_each_class_has_a_code_of_its_own() -> None:
    codes = [c.__dict__["code"] for c in OWN]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", [c for c in OWN if c not in (MorokError, errors.TensorError)])
def test_each_class_is_one_of_pythons_too(kind: type[MorokError]) -> None:
    assert [c for c in kind.__mro__ if c.__module__ == "builtins" and c not in (Exception, BaseException, object)]
    made = kind("what", expected="more", hint="try", place=errors.Place("f.py", 3))
    assert str(made) == f"f.py:3:1: {kind.code}: what\n  expected: more\n  hint: try"
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), str(again)) == (kind, str(made))


def test_graphs_raise_pythons_classes() -> None:
    x = UOp.var("x", dtypes.index, 0, 3)
    for use, kind in [
        (lambda: bool(x), TypeError),
        (lambda: x + UOp.const(1, dtypes.i32), TypeError),
        (lambda: morok.parse("Add("), ValueError),
        (lambda: morok.Variable("n", 1, 4).bind(9), ValueError),
        (lambda: morok.settings(device=7).__enter__(), ValueError),
        (lambda: Tensor([1.0], device="GPU"), ValueError),
        (lambda: morok.load_rules("no_such.rules"), ValueError),
    ]:
        with pytest.raises(kind) as caught:
            use()
        assert isinstance(caught.value, MorokError)
