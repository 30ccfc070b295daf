"""Run by test_machines in a process of its own: every op for a named processor, since LLVM aborts where it has no instruction.

Usage: other_machines.py CPU FEATURES LANES run|emit. Prints "done" at the end.
"""

from __future__ import annotations

import sys

from op_programs import INEXACT, POINTWISE, Program, cast_program, op_program
from test_llvm_ops import close
from values import bits, decode

from morok.codegen.llvm import render
from morok.codegen.machines import llvm_target, machine
from morok.ir.dtype import FLOATS, INTS, STORAGE_FLOATS, dtypes
from morok.ir.op import Op
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import CPUKernel
from morok.runtime.device import device
from morok.runtime.jit import emit, load


def main(cpu: str, features: str, lanes: str, how: str) -> None:
    m = machine(cpu, features)
    target = llvm_target(m)
    widths = [int(n) for n in lanes.split(",")]

    def check(program: Program, name: str, exact: bool) -> None:
        rendered = render(program.listing.list, name, target, frozenset())
        code = emit(rendered.text, m)
        if how == "emit":
            return
        types = [
            u.dtype.base
            for u in sorted((a for a in program.listing.list if a.op is Op.DefineGlobal), key=lambda u: u.arg)
        ]
        buffers = [Buffer.wrap(device("CPU"), a, t) for a, t in zip(program.arrays, types, strict=True)]
        CPUKernel(rendered, load(code, rendered.symbol)).launch(buffers)
        for case in program.cases:
            for g, w in zip(decode(case.result, program.arrays[case.slot]), case.expected, strict=True):
                if w is not None:
                    same = bits(case.result, g) == bits(case.result, w) if exact else close(case.result, g, w)
                    assert same, f"{case.label}: {g!r} where {w!r} is right"

    for op in POINTWISE:
        check(op_program(op, widths), f"op_{op.name}", op not in INEXACT)
    for d in (dtypes.bool, *INTS, *FLOATS, *STORAGE_FLOATS):
        check(cast_program(d, widths), f"cast_{d.name}", True)
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
