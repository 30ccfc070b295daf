"""What programs leave behind for good: nothing, once they are dropped and caches with bounds have been emptied."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from morok import UOp, dtypes
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.op import Op

CAMPAIGN = Path(__file__).with_name("memory_campaign.py")
KINDS = ("elementwise", "shapes", "sizes", "reductions", "bound", "wrong", "expressions", "writes")


@pytest.mark.long
def test_programs_that_are_all_different_leave_nothing_behind(tmp_path: Path) -> None:
    """Less than 1 KB each of Python's memory (a block has some 100 bytes), and 2 KB of the C library's, where LLVM's is: llvmlite
    frees all of a pass builder but its callbacks, 1.5 KB for each kernel that LLVM's passes are run on. Some widths of vectors
    are new in the shapes: of these types there are no more than lanes in a kernel's tile.
    """
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), "left", "30"],
        env={**os.environ, "MOROK_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [f["kind"] for f in found] == list(KINDS)
    assert all(f["blocks"] < 7 for f in found), done.stdout
    assert all(f["bytes"] < 2048 for f in found), done.stdout


@pytest.mark.long
def test_a_pointer_type_lives_as_long_as_somebody_has_it() -> None:
    gc.collect()
    before = len(PtrType._interned)
    kept = dtypes.f32.ptr(123_457).vec(4)
    node = UOp.new(Op.DefineGlobal, (), 0, dtypes.i8.ptr(123_458))
    for n in range(200_000, 200_300):
        assert dtypes.f32.ptr(n) is dtypes.f32.ptr(n)
        assert dtypes.f32.ptr(n, AddrSpace.LOCAL).vec(2).scalar().vec(2).name == f"ptr(f32, {n}, local)x2"
    gc.collect()
    assert len(PtrType._interned) == before + 2
    assert dtypes.f32.ptr(123_457).vec(4) is kept
    assert node.dtype is dtypes.i8.ptr(123_458)


def test_threads_that_make_one_pointer_type_get_one_object() -> None:
    wrong: list[int] = []

    def work() -> None:
        for n in range(2000):
            a, b = dtypes.f64.ptr(n + 1), dtypes.f64.ptr(n + 1)
            if a is not b:
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
