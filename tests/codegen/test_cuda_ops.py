"""Every op at every dtype as CUDA C: NVRTC takes it for sm_80, and run on the CPU it computes what `OpDef.evaluate` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_runner import build, launch
from nvrtc import compile_ptx
from op_programs import INEXACT, POINTWISE, Program, cast_program, op_program
from test_llvm_ops import close
from values import bits, decode

from morok.codegen.cuda import render
from morok.codegen.rendered import Rendered
from morok.ir.dtype import FLOATS, INTS, STORAGE_FLOATS, dtypes

CASTS = [dtypes.bool, *INTS, *FLOATS, *STORAGE_FLOATS]


@pytest.fixture(scope="module")
def programs() -> dict[str, tuple[Program, Rendered, bool]]:
    """Every op and every cast: its program, its text, and whether its results are exact. Lanes are variables in CUDA."""
    made: dict[str, tuple[Program, bool]] = {op.name: (op_program(op, (1,)), op not in INEXACT) for op in POINTWISE}
    made |= {f"Cast_{d.name}": (cast_program(d, (1,)), True) for d in CASTS}
    return {name: (p, render(p.listing.list, f"test_{name}"), exact) for name, (p, exact) in made.items()}


def test_every_op_runs_as_the_table_says(programs: dict[str, tuple[Program, Rendered, bool]], tmp_path: Path) -> None:
    library = build([r for _, r, _ in programs.values()], tmp_path, "-O0")
    for program, rendered, exact in programs.values():
        launch(library, rendered, program.arrays)
        for case in program.cases:
            got = decode(case.result, program.arrays[case.slot])
            for i, (g, w) in enumerate(zip(got, case.expected, strict=True)):
                if w is None:
                    continue
                same = bits(case.result, g) == bits(case.result, w) if exact else close(case.result, g, w)
                assert same, f"{case.label}, row {i}: {g!r} where {w!r} is right"


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", [op.name for op in POINTWISE] + [f"Cast_{d.name}" for d in CASTS])
def test_nvrtc_accepts_every_op(name: str, programs: dict[str, tuple[Program, Rendered, bool]]) -> None:
    rendered = programs[name][1]
    assert rendered.name in compile_ptx(rendered.text, rendered.name, "compute_80", fmad=False).ptx
