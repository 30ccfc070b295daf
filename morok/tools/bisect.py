"""Find the first stage after which a kernel's value changes, and the rule or algorithm that changed it."""

from __future__ import annotations

import argparse
import contextlib
import copy
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from morok.errors import IRError, UndefinedError, UsageError
from morok.ir import interpret
from morok.ir.dtype import DType, PtrType
from morok.ir.graph import toposort
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import pipeline
from morok.passes.pipeline import Program, Stage
from morok.passes.target import KernelInfo, Target
from morok.rewrite.trace import Trace, tracing
from morok.runtime.device import device
from morok.tensor.plans import forget_kernels
from morok.tensor.realize import watching
from morok.tools import expected
from morok.tools.execution import compiled, interpreted
from morok.tools.output import emit_json
from morok.tools.run import execute, printing

TOLERANCE: Final = {1: 0.2, 2: 0.02, 4: 1e-4, 8: 1e-10}  # relative and absolute, by bytes of a float
TRIALS: Final = 20  # assignments of variables on which both sides of a firing are compared

Buffers = dict[Any, list[Any]]


@dataclass(slots=True)
class Recording:
    """The lowering of one kernel: its program before the first stage, and after each."""

    target: Target
    before: UOp
    after: list[tuple[Stage, Program]]

    @property
    def name(self) -> str:
        return self.before.arg.name if isinstance(self.before.arg, KernelInfo) else "kernel"


class Culprit(NamedTuple):
    """The cause of a changed value: a rule, with both of its sides; `rule` is "" for the algorithm of a stage."""

    rule: str
    before: str
    after: str
    values: str


class Change(NamedTuple):
    """The first difference in the stored values of a kernel, and its stage; None: code generation, after the last stage."""

    kernel: str
    stage: Stage | None
    what: str
    culprit: Culprit | None


class Recorder:
    """An observer of the pipeline that makes a recording of each kernel."""

    def __init__(self) -> None:
        self.recordings: list[Recording] = []

    def __call__(self, target: Target, stage: Stage, before: Program, after: Program) -> None:
        if stage.number == 1:
            assert isinstance(before, UOp)
            self.recordings.append(Recording(target, before, []))
        self.recordings[-1].after.append((stage, after))


def _nodes(program: Program) -> list[UOp]:
    return toposort([program] if isinstance(program, UOp) else program)


def iterations(ast: UOp) -> float:
    """The most times that the innermost statement of a kernel runs."""
    return math.prod(max(1, n.src[0].vmax) for n in _nodes(ast) if n.op in (Op.Range, Op.Special))


def _number(d: DType, rng: random.Random) -> Any:
    if d.is_bool:
        return rng.random() < 0.5
    if d.is_float:
        return rng.randint(-8, 8) / 4
    return rng.randint(max(int(d.min), -9), 9)


def inputs(ast: UOp, seed: int) -> tuple[Buffers, dict[str, Any]]:
    """(buffers, variables): random numbers for a kernel, determined by kernel and seed."""
    rng = random.Random(seed)
    buffers: Buffers = {}
    variables: dict[str, Any] = {}
    for n in _nodes(ast):
        if n.op is Op.DefineGlobal and n.arg not in buffers:
            assert isinstance(n.dtype, PtrType)
            buffers[n.arg] = [_number(n.dtype.base.scalar(), rng) for _ in range(n.dtype.size)]
        elif n.op is Op.DefineVar:
            variables[n.arg[0]] = rng.randint(int(n.vmin), int(min(n.vmax, n.vmin + 16)))
    return buffers, variables


def outcome(program: Program, given: Buffers, variables: dict[str, Any]) -> Buffers | str:
    """The contents of the buffers after the program has run; if it is undefined, the reason as text."""
    buffers = copy.deepcopy(given)
    return interpreted(program, buffers, variables) or buffers


def same(a: Any, b: Any, size: int) -> bool:
    """True if two elements are equal, floats within TOLERANCE; `size` is the bytes of a float."""
    if isinstance(a, float) and isinstance(b, float):
        return (
            a == b
            or (math.isnan(a) and math.isnan(b))
            or math.isclose(a, b, rel_tol=TOLERANCE[size], abs_tol=TOLERANCE[size])
        )
    return bool(a == b)


def difference(ast: UOp, expected: Buffers | str, got: Buffers | str) -> str | None:
    """The difference of two outcomes as text; None if they agree, or the expected one is undefined."""
    if isinstance(expected, str):
        return None
    if isinstance(got, str):
        return got
    sizes = {
        n.arg: n.dtype.base.scalar().itemsize
        for n in _nodes(ast)
        if n.op is Op.DefineGlobal and isinstance(n.dtype, PtrType)
    }
    for slot, wanted in expected.items():
        for i, (a, b) in enumerate(zip(wanted, got[slot], strict=True)):
            if not same(a, b, sizes[slot]):
                return f"element {i} of buffer {slot} is {b}, was {a}"
    return None


class _Firings(Trace):
    """A trace that keeps the nodes of every firing."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[tuple[str, UOp, UOp]] = []

    def record(self, dialect: Any, stage: str, rule: str, before: UOp, after: UOp) -> None:
        self.nodes.append((rule, before, after))


def _value(node: UOp, variables: dict[Any, Any], buffers: Buffers) -> Any:
    try:
        return interpret.evaluate(node, variables, buffers)
    except UndefinedError:
        return None


def wrong_firing(before: UOp, after: UOp, buffers: Buffers) -> str | None:
    """A text with values at which a rule's result differs from its match; None if none were found, or the match has no value."""
    if not (before.dtype.is_number or before.dtype.is_bool) or before.dtype is not after.dtype:
        return None
    rng = random.Random(0)
    nodes = toposort([before, after])
    if any(n.op is Op.Special for n in nodes) and not any(n.op is Op.Special for n in toposort([before])):
        return None  # a hardware index that replaces a range has its value only in a launch
    leaves = [n for n in nodes if n.op in (Op.DefineVar, Op.Range, Op.Special)]
    size = before.dtype.scalar().itemsize
    for _ in range(TRIALS):
        variables: dict[Any, Any] = {n: rng.randint(int(n.vmin), int(min(n.vmax, n.vmin + 64))) for n in leaves}
        try:
            a, b = _value(before, variables, buffers), _value(after, variables, buffers)
        except IRError:  # no value outside of its loop
            return None
        pairs = zip(a, b, strict=True) if isinstance(a, tuple) and isinstance(b, tuple) else ((a, b),)
        if a is not None and not all(same(x, y, size) for x, y in pairs):
            at = ", ".join(f"{n.text()} = {v}" for n, v in variables.items())
            return f"{a} became {b}" + (f" at {at}" if at else "")
    return None


def culprit(stage: Stage, target: Target, before: Program, given: Buffers, variables: dict[str, Any]) -> Culprit | None:
    """The cause of a changed value in a stage: its algorithm, or the first rule whose two sides differ; None if unknown."""
    program = before
    expected = outcome(before, given, variables)
    if stage.algorithm is not None:
        firings = _Firings()
        with tracing(firings):
            program = stage.algorithm(before, target)
        if difference(_whole(before), expected, outcome(program, given, variables)) is not None:
            return _first_wrong(firings, given) or Culprit("", "", "", "")
    firings = _Firings()
    with tracing(firings):
        if isinstance(program, UOp):
            pipeline.apply_groups(stage, program, target)
        elif stage.groups:
            pipeline.apply_to_lines(stage, program, target)
    found = _first_wrong(firings, given)
    if found is None and stage.finish is not None:  # no rule is wrong: the last part of the stage must be
        return Culprit("", "", "", "")
    return found


def _first_wrong(firings: _Firings, given: Buffers) -> Culprit | None:
    for rule, before, after in firings.nodes:
        values = wrong_firing(before, after, given)
        if values is not None:
            return Culprit(rule, before.text(), after.text(), values)
    return None


def _whole(program: Program) -> UOp:
    return program if isinstance(program, UOp) else UOp.sink(*program)


def first_change(recording: Recording, seed: int = 0) -> Change | None:
    """The first stage after which the kernel stores other values, or code generation; None if there is none."""
    given, variables = inputs(recording.before, seed)
    expected = outcome(recording.before, given, variables)
    before: Program = recording.before
    for stage, after in recording.after:
        if after is not before and after != before:
            what = difference(recording.before, expected, outcome(after, given, variables))
            if what is not None:
                return Change(recording.name, stage, what, culprit(stage, recording.target, before, given, variables))
        before = after
    if isinstance(expected, str) or not isinstance(before, list) or recording.target != device("CPU").target:
        return None
    what = difference(recording.before, expected, compiled(recording.before, before, recording.name, given, variables))
    return None if what is None else Change(recording.name, None, what, None)


def _sentences(change: Change) -> list[str]:
    if change.stage is None:
        return [f"{change.kernel}: right after every stage and wrong on the machine: in code generation: {change.what}"]
    stage = f"stage {change.stage.number}: {change.stage.name}"
    lines = [f"{change.kernel}: the value changes in {stage}: {change.what}"]
    found = change.culprit
    if found is None:
        lines.append("  no rule that fired there is false by itself")
    elif not found.rule:
        lines.append(f"  by its algorithm, {change.stage.algorithm_name}")
    else:
        lines += [f"  by the rule {found.rule}", f"    {found.before}", f"    ~> {found.after}", f"    {found.values}"]
    return lines


def _place(stage: Stage | None) -> dict[str, Any]:
    """A stage for JSON; code generation has the number after the last stage's."""
    if stage is None:
        return {"stage": len(pipeline.STAGES) + 1, "name": "code generation"}
    return {"stage": stage.number, "name": stage.name}


def _take_expect(args: argparse.Namespace) -> None:
    """Take `--expect REF.npy` from the program's arguments, where users write it too."""
    given: list[str] = args.args
    for at, word in enumerate(given):
        if args.expect is None and word == "--expect" and at + 1 < len(given):
            args.expect = given[at + 1]
            del given[at : at + 2]
            return
        if args.expect is None and word.startswith("--expect="):
            args.expect = word.removeprefix("--expect=")
            del given[at]
            return


def _execute(args: argparse.Namespace) -> None:
    """Run the program, also if it ends by sys.exit: the status of the command is its own."""
    with contextlib.suppress(SystemExit):
        execute(args.file, args.args)


def _expect(args: argparse.Namespace) -> int:
    """The exit status of a run with --expect."""
    wanted = expected.reference(args.expect)
    runs = expected.Runs(wanted.size)
    with printing(args.json), watching(runs):
        _execute(args)
    last = runs.last
    if last is None:
        raise UsageError(
            f"{args.file} realizes nothing of {wanted.size} elements", expected=f"a result like {args.expect}"
        )
    total = sum(iterations(step.ast) for step in last.schedule.steps)
    if total > args.limit:
        raise UsageError(f"the kernels have {total:.0f} iterations", expected=f"at most {args.limit}", hint="--limit")
    found = expected.first_difference(last, wanted, same)
    number, what = (None, "") if found is None else found
    if number is None:
        name, verdict = "", "as expected, after every stage and on the machine"
    elif number == expected.SCHEDULED:
        name, verdict = (
            "schedule",
            "already wrong before stage 1: in the program, in its schedule, or in what it realized before",
        )
    elif number == expected.MACHINE:
        name, verdict = "code generation", "right after every stage and wrong on the machine: in code generation"
    else:
        name = pipeline.STAGES[number - 1].name
        verdict = f"first wrong after stage {number}: {name}"
    if args.json:
        emit_json({"stage": number, "name": name, "what": what})
    else:
        print(f"{verdict}: {what}" if what else verdict)
    return 0 if found is None else 1


def run(args: argparse.Namespace) -> int:
    forget_kernels()
    _take_expect(args)
    if args.expect is not None:
        return _expect(args)
    recorder = Recorder()
    with printing(args.json), pipeline.watching(recorder):
        _execute(args)
    passed_over = [r for r in recorder.recordings if iterations(r.before) > args.limit]
    changes: Sequence[Change] = [
        c for r in recorder.recordings if iterations(r.before) <= args.limit and (c := first_change(r)) is not None
    ]
    tried = len(recorder.recordings) - len(passed_over)
    if args.json:
        rows = [
            {"kernel": c.kernel, **_place(c.stage), "what": c.what}
            | {"culprit": None if c.culprit is None else c.culprit._asdict()}
            for c in changes
        ]
        emit_json({"kernels": tried, "passed_over": [r.name for r in passed_over], "changes": rows})
    else:
        for change in changes:
            print("\n".join(_sentences(change)))
        for r in passed_over:
            print(f"{r.name}: passed over, up to {iterations(r.before):.0f} iterations", file=sys.stderr)
        print(f"{tried} kernels interpreted after each stage: {len(changes)} change their value")
    return 1 if changes else 0
