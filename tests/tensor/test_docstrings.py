"""Docstrings of public names: each has one, its example runs, and something raises each error that it names."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from documented_errors import RAISING, SETUP

import morok
import morok.dialect
import morok.errors
from morok import Tensor, nn
from morok.ir.op import TABLE
from morok.prove import api
from morok.rewrite import library

NAMES: Final = {name: getattr(morok, name) for name in morok.__all__} | {"np": np, "nn": nn, "morok": morok}
# Its examples would take longer than all others, be of no interest, or be the page of ops.
WITHOUT_AN_EXAMPLE: Final = {"prove", "Op", "OptOp"}


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public functions of a class by name, static, class and property ones too."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        found = getattr(found, "__func__", getattr(found, "fget", found))
        if not name.startswith("_") and inspect.isfunction(found):
            yield name, found


def public() -> dict[str, Any]:
    """Every public name of the package: functions, classes, and the methods of these."""
    found = {name: getattr(morok, name) for name in morok.__all__}
    # both names are packages, too, once something imports them
    found |= {"rewrite": library.rewrite, "prove": api.prove}
    found |= {f"nn.{name}": getattr(nn, name) for name in nn.__all__}
    of_classes = {f"{name}.{n}": f for name, kind in found.items() if inspect.isclass(kind) for n, f in methods(kind)}
    return found | of_classes


PUBLIC: Final = public()
DIALECT: Final = [morok.dialect.Dialect, morok.dialect.OpInfo, morok.dialect.OperandInfo]
# documented by one sentence
POINTWISE: Final = {f"UOp.{e.op.name.lower()}" for e in TABLE.entries.values() if e.pointwise}


def said(name: str) -> str:
    return inspect.getdoc(PUBLIC[name]) or ""


def named_errors() -> list[tuple[str, str]]:
    """Pairs of a public function, by its own name (aliases share one), and an error that its docstring names."""
    found: dict[tuple[str, str], None] = {}
    for name, value in PUBLIC.items():
        function = inspect.unwrap(value) if callable(value) else value
        own = f"Tensor.{function.__name__}" if name.startswith("Tensor.") else getattr(function, "__qualname__", name)
        found.update({(own, error): None for error in re.findall(r"\b[A-Z]\w*Error\b", said(name))})
    return list(found)


def test_every_public_name_has_a_docstring() -> None:
    assert len(PUBLIC) > 400
    assert [name for name in PUBLIC if not said(name)] == []
    assert [f"{kind.__name__}.{n}" for kind in DIALECT for n, f in methods(kind) if not f.__doc__] == []
    assert all(kind.__doc__ for kind in (*DIALECT, morok.dialect.register, morok.dialect.find, morok.dialect.verify))


def test_every_public_name_has_an_example() -> None:
    without = {name for name in PUBLIC if ">>> " not in said(name)}
    assert without - POINTWISE == WITHOUT_AN_EXAMPLE


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [name for name in PUBLIC if ">>> " in said(name)])
def test_an_example_has_the_value_that_it_shows(name: str) -> None:
    example = doctest.DocTestParser().get_doctest(said(name), dict(NAMES), name, None, None)
    result = doctest.DocTestRunner(verbose=False).run(example)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_error_that_a_docstring_names_has_a_program_that_raises_it() -> None:
    assert set(named_errors()) == set(RAISING)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "error"), list(RAISING), ids=lambda x: x)
def test_an_error_that_a_docstring_names_is_raised(name: str, error: str) -> None:
    scope: dict[str, Any] = {}
    exec(SETUP, scope)
    with pytest.raises(getattr(morok.errors, error)):
        exec(RAISING[name, error], scope)


def test_tensors_examples_cover_its_methods() -> None:
    assert sum(name.startswith("Tensor.") for name in PUBLIC) == len(dict(methods(Tensor)))
