"""The code that a rule becomes: a kernel that applies its op to every element of a buffer, lowered and rendered.

It goes through the 22 stages with the rule in place, once with a product and a sum rounded together ("contracted") and once
without ("separate").
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
    """The instructions of a kernel that applies the op to `n` elements, by `rules` where there are any.

    Whoever watches a program's kernels (`morok trace`, `morok bisect`) is not shown these.
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
    """A name for the code that a rule becomes at each dtype; none where it cannot be measured."""
    try:
        return [code_digest(subject(rule, instance)) for instance in rule.instances]
    except NotMeasurableError:
        return []


_VALUE: Final = re.compile(r"%[\w.]+")


def arithmetic(s: Subject, build: str) -> str:
    """The LLVM IR that the rule becomes for one element on a machine without vectors: the arithmetic, without loads, stores and
    loops. Values are named in the order in which they appear.
    """
    text: str = rendered(instructions(s, 1, Target("LLVM", memory_bytes=8), build, s.rules), "measured", build).text
    names: dict[str, str] = {}
    lines = [line.strip() for line in text.splitlines() if " = " in line and "ptr" not in line]
    return "\n".join(_VALUE.sub(lambda m: names.setdefault(m[0], f"%{len(names)}"), line) for line in lines)


def code_digest(s: Subject) -> str:
    """A name for the code that the rule becomes, in both builds."""
    return digest("\n\n".join(arithmetic(s, b) for b in BUILDS))
