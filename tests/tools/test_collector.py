"""The collector of cycles rests while a kernel is lowered, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from morok.collector import paused
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
