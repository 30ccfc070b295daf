"""The collector of cycles rests while a kernel is lowered, and is afterwards as it was."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from morok.collector import paused, settle
from morok.errors import OptError
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.passes.pipeline import lower
from morok.passes.target import KernelInfo
from tests.passes import kernels as K


def test_it_rests_inside_and_works_again_behind() -> None:
    assert gc.isenabled()
    with paused():
        assert not gc.isenabled()
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_one_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_rests_while_a_kernel_is_lowered_and_works_again_when_that_fails() -> None:
    seen: list[bool] = []
    lower(K.elementwise(16), K.CPU, lambda *_: seen.append(gc.isenabled()))
    assert len(seen) == 22
    assert not any(seen)
    wrong = UOp.sink(*K.elementwise(16).src, info=KernelInfo("k", (Opt(OptOp.TC, 0),)))
    with pytest.raises(OptError):
        lower(wrong, K.CPU)
    assert gc.isenabled()


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_what_is_settled_is_old_and_its_circles_are_found_all_the_same() -> None:
    circle = Circle()
    seen = weakref.ref(circle)
    settle()
    assert not any(o is circle for generation in (0, 1) for o in gc.get_objects(generation))
    assert any(o is circle for o in gc.get_objects(2))
    assert gc.get_freeze_count() == 0
    del circle
    gc.collect(1)
    assert seen() is not None
    gc.collect()
    assert seen() is None


def test_what_the_user_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        settle()
        assert gc.get_freeze_count() == count
    finally:
        gc.unfreeze()


def test_the_library_is_old_once_a_kernel_has_been_lowered(tmp_path: Path) -> None:
    """Made from its files, it is 130,000 objects, which the next search among the young ones would walk."""
    program = (
        "import gc; from morok import Tensor; Tensor([1.0]).add(2).realize(); print(*map(len, map(gc.get_objects, (0, 1, 2))))"
    )
    env = os.environ | {"MOROK_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    young, middle, old = map(int, done.stdout.split())
    assert young + middle < 10_000 < 50_000 < old
