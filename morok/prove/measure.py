"""Rules `within N ulp`: not proved but measured, by compiling what they make and running it over many operands.

What is measured is what runs: a kernel that applies the rule's op to every element of a buffer goes through the 22 stages with
the rule in place, and LLVM compiles it, once with a product and a sum rounded together ("contracted", on machines that can) and
once without ("separate"). Exact values come from the C library in double precision, for f64 from decimal arithmetic.
"""

from __future__ import annotations

import collections
import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from morok import config
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.errors import MorokError
from morok.prove import measured
from morok.prove.measured import Measurement, Worst
from morok.prove.verdict import Verdict

if TYPE_CHECKING:
    import numpy as np

    from morok.ir.dtype import DType
    from morok.ir.op import Op
    from morok.ir.uop import UOp
    from morok.passes.target import Target
    from morok.rewrite.ruleset import RuleSet
    from morok.runtime.cpu import CPUKernel

    Array = np.ndarray[Any, Any]

BUILDS: Final = ("contracted", "separate")
SLACK: Final = 1e-6  # ulp: by how much C libraries differ


@dataclass(frozen=True, slots=True)
class Subject:
    """One rule at one dtype: what is measured. `rules` are those that its op becomes code by: it, and its companions.

    pattern  the op over operands, or over ops of operands and numbers
    names    of the operands
    """

    rule: CheckedRule
    rules: RuleSet
    op: Op
    dtype: DType
    pattern: S.POp
    names: tuple[str, ...]

    @property
    def operands(self) -> int:
        return len(self.names)

    def of(self, operands: Sequence[UOp]) -> UOp:
        """The pattern of these operands."""
        from morok.ir.op import Op
        from morok.ir.uop import UOp

        known = dict(zip(self.names, operands, strict=True))

        def made(p: S.Pattern) -> UOp:
            if isinstance(p, S.POp):
                return UOp.new(Op[p.ops[0]], tuple([made(a) for a in p.args]))
            if isinstance(p, S.PVar):
                return known[p.name]
            assert isinstance(p, S.PLiteral)
            return UOp.const(p.value, self.dtype)

        return made(self.pattern)


class NotMeasurableError(Exception):
    """The rule is none that a kernel of one op would show."""


def subject(rule: CheckedRule, instance: Instance) -> Subject:
    """What to measure of a rule whose pattern is one op over operands of its dtype, or over ops of such and numbers."""
    from morok.ir.dtype import dtypes
    from morok.ir.op import Op

    p = rule.syntax.pattern
    while isinstance(p, S.PBind):
        p = p.inner
    if rule.dialect.name != "morok" or not _one_op(p) or rule.context is not None:
        raise NotMeasurableError("only a pattern of one op can be measured")
    inner = [a for a in p.args if not isinstance(a, S.PVar)]
    leaves = [x for a in p.args for x in (a.args if _one_op(a) else (a,))]
    names = tuple([x.name for x in leaves if isinstance(x, S.PVar)])
    plain = all(isinstance(x, S.PVar | S.PLiteral) for x in leaves) and all(map(_one_op, inner))
    if not plain or not names or len(set(names)) != len(names):
        raise NotMeasurableError("only an op over operands of any value can be measured: op(x, y), or op(other(x, 1))")
    elements = {instance.element(rule.type_of(a)) for a in (p, *inner, *leaves)}
    if len(elements) != 1:
        raise NotMeasurableError(f"operands and result have different dtypes: {', '.join(sorted(elements))}")
    d: DType = getattr(dtypes, elements.pop())
    if inner and d is dtypes.f64:
        raise NotMeasurableError("at f64 only an op over plain operands can be measured: op(x, y)")
    return Subject(rule, _rules(rule), Op[p.ops[0]], d, p, names)


def _one_op(p: S.Pattern) -> TypeGuard[S.POp]:
    return isinstance(p, S.POp) and len(p.ops) == 1


# The program


@functools.lru_cache(maxsize=8)
def _approximations(text: str, file: str) -> tuple[CheckedRule, ...]:
    from morok.dsl.check import check_text

    return tuple(r for r in check_text(text, file).rules() if r.syntax.within is not None)


def companions(rule: CheckedRule) -> tuple[CheckedRule, ...]:
    """The approximations in the rule's own file: what its target is made of in turn."""
    return _approximations(rule.text, rule.file) if rule.text else ()


def _kernel(s: Subject, n: int) -> UOp:
    from morok.ir.op import AxisType, Op
    from morok.ir.uop import UOp
    from morok.passes.target import KernelInfo

    r = UOp.range(n, 0, AxisType.Loop, True)
    data = [UOp.new(Op.DefineGlobal, (), slot, s.dtype.ptr(n)).index(r) for slot in range(s.operands + 1)]
    return UOp.sink(data[0].store(s.of(data[1:])).end(r), info=KernelInfo(f"{s.op.name.lower()}_{s.dtype}"))


def instructions(s: Subject, n: int, target: Target, build: str, rules: RuleSet | None) -> list[UOp]:
    """The instructions of a kernel that applies the op to `n` elements, by `rules` where there are any.

    Whoever watches a program's kernels (`morok trace`, `morok bisect`) is not shown these.
    """
    from morok.passes.pipeline import lower, unwatched

    target = replace(target, fma=build == "contracted", unsupported=frozenset())
    flags = "contract" if build == "contracted" else ""
    with unwatched(), config.settings(fast_math=flags, check=False, noopt=False, opts="", debug=""):
        return lower(_kernel(s, n), target, trial=rules)


def _rules(rule: CheckedRule) -> RuleSet:
    """The rule and its companions, one object for as long as they are these, so that their matcher is made once."""
    from morok.rewrite.ruleset import RuleSet

    wanted = (rule, *(r for r in companions(rule) if r.own != rule.own))
    for known in _known:
        if len(known) == len(wanted) and all(a is b for a, b in zip(known.rules, wanted, strict=True)):
            return known
    _known.append(RuleSet.of(wanted, unproved=True))
    return _known[-1]


_known: Final[collections.deque[RuleSet]] = collections.deque(maxlen=8)


def _text(listing: Sequence[UOp], name: str, build: str) -> Any:
    from morok.codegen.llvm import render
    from morok.codegen.rendered import CONTRACT

    fma = build == "contracted"
    return render(listing, name, CONTRACT if fma else frozenset(), fma, False)


def code_digests(rule: CheckedRule) -> list[str]:
    """A name for the code that a rule becomes at each dtype; none where it cannot be measured."""
    try:
        return [code_digest(subject(rule, instance)) for instance in rule.instances]
    except NotMeasurableError:
        return []


_VALUE: Final = re.compile(r"%[\w.]+")


def arithmetic(s: Subject, build: str) -> str:
    """The LLVM IR that the rule becomes for one element on a machine without vectors: what computes, without what loads, stores
    and loops. Values are named in the order in which they appear.
    """
    from morok.passes.target import Target

    text: str = _text(instructions(s, 1, Target("LLVM", memory_bytes=8), build, s.rules), "measured", build).text
    names: dict[str, str] = {}
    lines = [line.strip() for line in text.splitlines() if " = " in line and "ptr" not in line]
    return "\n".join(_VALUE.sub(lambda m: names.setdefault(m[0], f"%{len(names)}"), line) for line in lines)


def code_digest(s: Subject) -> str:
    """A name for the code that the rule becomes, in both builds."""
    from morok.prove.stamp import digest

    return digest("\n\n".join(arithmetic(s, b) for b in BUILDS))


def _compile(listing: Sequence[UOp], name: str, build: str) -> CPUKernel:
    from morok.runtime.cpu import CPUKernel
    from morok.runtime.jit import compile_text

    made = _text(listing, name, build)
    return CPUKernel(made, compile_text(made.text, made.symbol, made.effort, None))


class Runner:
    """The rule's function and the exact one, over arrays of operands."""

    def __init__(self, s: Subject, builds: Sequence[str], rules: RuleSet | None = None) -> None:
        """`rules`: the subject's own and those that its target is made of; by default what stands in its file."""
        from morok.codegen.targets import host
        from morok.ir.dtype import dtypes
        from morok.prove.accuracy import CHUNK

        self.subject = s
        self.size = CHUNK
        used = rules or s.rules
        self.kernels = {b: _compile(instructions(s, CHUNK, host(), b, used), f"{s.op.name.lower()}_{b}", b) for b in builds}
        wide = replace(s, dtype=dtypes.f64)
        self.oracle = (
            None
            if s.dtype is dtypes.f64
            else _compile(instructions(wide, CHUNK, host(), "separate", None), f"{s.op.name.lower()}_exact", "separate")
        )

    def _run(self, kernel: CPUKernel, d: DType, operands: Sequence[Array]) -> Array:
        """`kernel` over up to `size` operands."""
        import numpy as np

        from morok.runtime.buffer import Buffer
        from morok.runtime.device import device

        cpu = device("CPU")
        out = np.zeros(self.size, operands[0].dtype)
        padded = [a if len(a) == self.size else np.concatenate([a, np.zeros(self.size - len(a), a.dtype)]) for a in operands]
        kernel.launch([Buffer.wrap(cpu, a, d) for a in (out, *padded)])
        return out[: len(operands[0])]

    def errors(self, bits: Sequence[Array]) -> dict[str, Array]:
        """The error in ulp of each build's result for each tuple of operands, given as bit patterns."""
        from morok.ir.dtype import dtypes
        from morok.prove import accuracy

        s = self.subject
        operands = [accuracy.widened(s.dtype, b) for b in bits]
        given = operands if s.dtype is dtypes.f64 else [accuracy.stored(s.dtype, b) for b in bits]
        results = {b: self._run(k, s.dtype, given) for b, k in self.kernels.items()}
        if self.oracle is None:
            return {b: accuracy.errors_of_doubles(s.op, operands, got) for b, got in results.items()}
        exact = self._run(self.oracle, dtypes.f64, operands)
        return {
            b: accuracy.errors(s.dtype, accuracy.widened(s.dtype, got.view(bits[0].dtype)), exact) for b, got in results.items()
        }


def available_builds() -> tuple[str, ...]:
    """The builds that this machine runs at full speed."""
    from morok.codegen.targets import host

    return BUILDS if host().fma else ("separate",)


def compiler() -> str:
    """What compiled, and for what."""
    import llvmlite

    from morok.codegen.targets import host_machine
    from morok.runtime.jit import llvm_version

    return f"LLVM {llvm_version()} (llvmlite {llvmlite.__version__}), {host_machine().cpu}"


def measure(
    s: Subject, exhaustive: bool = False, builds: Sequence[str] | None = None, done: Callable[[int], None] | None = None
) -> Measurement:
    """The worst error of a rule at a dtype over the stated sample, or over everything there is.

    builds  those of BUILDS that are wanted; by default all that this machine has
    done    hears how many operands have been measured
    """
    code = code_digest(s)  # of the rules as they are now, whatever becomes of their file meanwhile
    runner = Runner(s, builds or available_builds())
    worst: dict[str, Worst] = {}
    count = 0
    for bits in _operands(s, exhaustive):
        for build, off in runner.errors(bits).items():
            at = int(off.argmax())
            if build not in worst or off[at] > worst[build].ulp:
                worst[build] = Worst(float(off[at]), tuple(int(b[at]) for b in bits))
        count += len(bits[0])
        if done is not None:
            done(count)
    return Measurement(s.rule.own, str(s.dtype), code, count, is_everything(s, exhaustive), worst, compiler())


def is_everything(s: Subject, exhaustive: bool) -> bool:
    """Whether a measurement tries every operand that there is."""
    return s.operands == 1 and (s.dtype.bits == 16 or (exhaustive and s.dtype.bits == 32))


def _operands(s: Subject, exhaustive: bool) -> Iterator[tuple[Array, ...]]:
    from morok.prove import accuracy

    if s.operands == 2:
        yield from accuracy.pairs(s.dtype)
        return
    chunks: Iterable[Array] = accuracy.everything(s.dtype) if exhaustive else accuracy.sample(s.dtype)
    for bits in chunks:
        yield (bits,)


# The verdict


def judge(rule: CheckedRule) -> Verdict:
    """The verdict on a rule `within N ulp`: `approximate`, if its op allows that error and no measured one is larger.

    Where the ledger has a measurement of the very code that the rule becomes now, the sample is measured again and must agree.
    """
    started = time.perf_counter()
    verdict, message = "approximate", ""
    scope: list[str] = []
    assert rule.syntax.within is not None
    for instance in rule.instances:
        verdict, said = _judge(rule, instance, rule.syntax.within)
        if verdict != "approximate":
            scope, message = [], said
            break
        scope.append(said)
    seconds = time.perf_counter() - started
    helpers = tuple(sorted(rule.externs))
    return Verdict(rule.name, rule.file, rule.line, verdict, tuple(scope), seconds, helpers, None, message, solver="measured")


def judge_trial(rule: CheckedRule, beside: Sequence[CheckedRule]) -> Verdict:
    """The verdict on a rule that stands in no file, by the build that every machine has; the first operand too far off ends it.

    beside  the rules that its target may be made of
    """
    from morok.rewrite.ruleset import RuleSet

    started = time.perf_counter()
    verdict, message = "approximate", ""
    promised = rule.syntax.within
    assert promised is not None
    for instance in rule.instances:
        s = _subject_of(rule, instance, promised)
        if isinstance(s, tuple):
            verdict, message = s
            break
        try:
            runner = Runner(s, BUILDS[-1:], RuleSet.of((rule, *beside), unproved=True))
        except MorokError as why:
            verdict, message = "refuted", f"at {s.dtype} it becomes no kernel: {why.message}"
            break
        for bits in _operands(s, False):
            off = runner.errors(bits)[BUILDS[-1]]
            at = int(off.argmax())
            if not off[at] <= promised:
                w = Worst(float(off[at]), tuple(int(b[at]) for b in bits))
                verdict, message = "refuted", f"at {s.dtype}, {_point(s, w)}: {w.ulp:.4g} ulp off"
                break
        if message:
            break
    seconds = time.perf_counter() - started
    return Verdict(rule.name, rule.file, rule.line, verdict, (), seconds, message=message, solver="measured", final=False)


def _subject_of(rule: CheckedRule, instance: Instance, promised: float) -> Subject | tuple[str, str]:
    """What to measure of the rule at one dtype; or the verdict where nothing is to be measured."""
    from morok.ir.ops.transcendental import TOLERANCE

    try:
        s = subject(rule, instance)
    except NotMeasurableError as problem:
        return "unknown", str(problem)
    allowed = TOLERANCE.get(s.op)
    if allowed is None:
        return "refuted", f"{s.op.name} is exact: no rule may make it anything else"
    if promised > allowed:
        return "refuted", f"{s.op.name} may be off by {allowed:g} ulp, and the rule promises no better than {promised:g}"
    if not _applies(s):
        return "inapplicable", f"the rule does not apply to {s.op.name} at {s.dtype}"
    return s


def _judge(rule: CheckedRule, instance: Instance, promised: float) -> tuple[str, str]:
    """The verdict at one dtype, and what was found, in words."""
    s = _subject_of(rule, instance, promised)
    if isinstance(s, tuple):
        return s
    found = measure(s)
    kept = measured.find(s.rule, str(s.dtype))
    if kept is None or kept.code != found.code:
        kept = found
    for build, w in (*found.worst.items(), *kept.worst.items()):
        if not w.ulp <= promised:
            return "refuted", f"at {s.dtype}, {_point(s, w)}: {w.ulp:.4g} ulp off ({build}), where {promised:g} are promised"
    for build, w in found.worst.items():
        if build in kept.worst and w.ulp > kept.worst[build].ulp + SLACK:
            recorded = kept.worst[build].ulp
            return (
                "refuted",
                f"at {s.dtype}, {_point(s, w)}: {w.ulp:.6g} ulp off ({build}), more than the recorded {recorded:.6g}",
            )
    return "approximate", describe(s, kept)


def _applies(s: Subject) -> bool:
    from morok.ir.op import Op
    from morok.ir.uop import UOp
    from morok.rewrite.ruleset import RuleSet

    xs = tuple(UOp.new(Op.DefineGlobal, (), i, s.dtype.ptr(1)).index(0) for i in range(s.operands))
    return RuleSet.of((s.rule,), unproved=True).rewrite_node(s.of(xs)) is not None


def _point(s: Subject, w: Worst) -> str:
    import numpy as np

    from morok.prove import accuracy

    names = "xyz"
    values = [float(accuracy.widened(s.dtype, np.array([b], accuracy.BITS[s.dtype]))[0]) for b in w.at]
    return ", ".join(f"{names[i]} = {v!r}" for i, v in enumerate(values))


def describe(s: Subject, m: Measurement) -> str:
    """A measurement in a line."""
    most = max(m.worst.values(), key=lambda w: w.ulp)
    how = f"all {m.count} operands" if m.everything else f"a sample of {m.count}"
    return f"{s.dtype}: at most {most.ulp:.4f} ulp over {how}, worst at {_point(s, most)}"
