"""The code of a rule for measurement: a kernel that applies its op to every element of a buffer, lowered and rendered.

There are two builds, both lowered by the 22 stages with the rule: with fused multiply-adds ("contracted"), and without
("separate").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from morok import config
from morok.accuracy.subject import NotMeasurableError, Subject, subject
from morok.codegen.llvm import render
from morok.codegen.rendered import CONTRACT
from morok.dsl.checked import CheckedRule
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.pipeline import lower, unwatched
from morok.passes.target import KernelInfo, Target
from morok.prove.fingerprints import digest
from morok.rewrite.ruleset import RuleSet

BUILDS: Final = ("contracted", "separate")


def _kernel(s: Subject, n: int) -> UOp:
    r = UOp.range(n, 0, AxisType.Loop, True)
    data = [UOp.new(Op.DefineGlobal, (), slot, s.dtype.ptr(n)).index(r) for slot in range(s.operands + 1)]
    return UOp.sink(data[0].store(s.of(data[1:])).end(r), info=KernelInfo(f"{s.op.name.lower()}_{s.dtype}"))


def instructions(s: Subject, n: int, target: Target, build: str, rules: RuleSet | None) -> list[UOp]:
    """The instructions of a kernel that applies the op to `n` elements, lowered with `rules` if given.

    Observers of the program's kernels (`morok trace`, `morok bisect`) do not see it.
    """
    target = replace(target, fma=build == "contracted", unsupported=frozenset())
    flags = "contract" if build == "contracted" else ""
    with unwatched(), config.settings(fast_math=flags, check=False, noopt=False, opts="", debug=""):
        return lower(_kernel(s, n), target, trial=rules)


def rendered(listing: Sequence[UOp], name: str, build: str) -> Any:
    """The LLVM IR of these instructions."""
    fma = build == "contracted"
    return render(listing, name, Target("LLVM", fma=fma), CONTRACT if fma else frozenset())


def code_digests(rule: CheckedRule) -> list[str]:
    """The code digest of a rule at each dtype; [] if it cannot be measured."""
    try:
        return [code_digest(subject(rule, instance)) for instance in rule.instances]
    except NotMeasurableError:
        return []


_VALUE: Final = re.compile(r"%[\w.]+")


def arithmetic(s: Subject, build: str) -> str:
    """The arithmetic in the LLVM IR of the rule for one element on a machine without vectors, without loads, stores and loops.
    Values are renamed in order of appearance.
    """
    text: str = rendered(instructions(s, 1, Target("LLVM", memory_bytes=8), build, s.rules), "measured", build).text
    names: dict[str, str] = {}
    lines = [line.strip() for line in text.splitlines() if " = " in line and "ptr" not in line]
    return "\n".join(_VALUE.sub(lambda m: names.setdefault(m[0], f"%{len(names)}"), line) for line in lines)


def code_digest(s: Subject) -> str:
    """A digest of the rule's code, in both builds."""
    return digest("\n\n".join(arithmetic(s, b) for b in BUILDS))
