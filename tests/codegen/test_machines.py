"""Processors other than this one: LLVM has code for every op, without half conversions and FMA too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from morok.codegen.cuda.c_expressions import OPS as CUDA_OPS
from morok.codegen.cuda.renderer import Renderer as CUDARenderer
from morok.codegen.llvm.op_instructions import OPS as LLVM_OPS
from morok.codegen.llvm.render import Renderer as LLVMRenderer
from morok.ir.op import TABLE, OpDef

HERE = Path(__file__).parent
MACHINES = [
    ("x86-64", "+sse2", "4", "run"),  # any x86-64 processor runs this
    ("haswell", "+avx,+avx2,+fma,+f16c,+bmi,+bmi2", "8", "emit"),
    ("skylake-avx512", "+avx,+avx2,+avx512f,+avx512bw,+avx512dq,+avx512vl,+fma,+f16c", "3,16", "emit"),
]


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m[0])
def test_every_op_has_code(machine: tuple[str, str, str, str]) -> None:
    done = subprocess.run([sys.executable, str(HERE / "other_machines.py"), *machine], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "done\n"


@pytest.mark.parametrize("entry", TABLE.entries.values(), ids=lambda e: e.name)
def test_the_table_names_what_exists(entry: OpDef) -> None:
    if entry.llvm:
        assert entry.llvm in LLVM_OPS or callable(getattr(LLVMRenderer, entry.llvm, None))
    if entry.cuda:
        assert entry.cuda in CUDA_OPS or callable(getattr(CUDARenderer, entry.cuda, None))


def test_every_renderer_of_an_op_is_named_by_the_table() -> None:
    assert {e.llvm for e in TABLE.entries.values()} >= set(LLVM_OPS)
    assert {e.cuda for e in TABLE.entries.values()} >= set(CUDA_OPS)
