"""The page: the 22 stages from a kernel to its instructions, in order.

Each stage is at most one graph algorithm, which runs first, and the rules of some groups, applied until none fires. Order is
said here and nowhere else.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from morok import config
from morok.errors import UnprovedRuleError
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import listing_stream, steps
from morok.passes.appended import admit, appended_to, joined
from morok.passes.target import KernelInfo, Target
from morok.rewrite import library
from morok.rewrite.engine import InitialSubstitution
from morok.rewrite.files import forget_syntax
from morok.rewrite.peephole import line_rewrite
from morok.rewrite.tiers import SYM, SYMBOLIC, SYMBOLIC_SIMPLE

if TYPE_CHECKING:
    from morok.rewrite.ruleset import RuleSet

Program = UOp | list[UOp]
Observer = Callable[[int, str, Program, Program], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    groups     the rule groups that it applies, in order
    direction  "top-down": rules see rewritten operands; "bottom-up": they see the node as it was; "lines": they see a list, one
               instruction after the other; "-": no rules
    algorithm  what runs before the rules, or None
    adds       the field of Target that holds rules of the target's own
    first      groups that are applied before the others, one after the other
    context    what rules of `@context` groups get, found in the program; None from it: there is nothing for the groups to do
    known      what stands for some nodes from the outset, before rules are applied
    finish     what runs behind the rules, or None
    """

    number: int
    name: str
    groups: tuple[str, ...] = ()
    direction: str = "-"
    algorithm: Callable[[Any, Target], Any] | None = None
    adds: str = ""
    context: Callable[[UOp, Target], Any] | None = None
    known: Callable[[UOp, Target], InitialSubstitution | None] | None = None
    first: tuple[str, ...] = ()
    finish: Callable[[UOp, Target], UOp] | None = None

    @property
    def applied(self) -> tuple[str, ...]:
        """All its groups, in the order in which they are applied."""
        return (*self.first, *self.groups)

    @property
    def algorithm_name(self) -> str:
        return ", ".join(f.__name__ for f in (self.algorithm, self.finish) if f is not None)


DOWN: Final = "top-down"
UP: Final = "bottom-up"
APPLY_OPTS: Final = 7
LINES: Final = "lines"
DECOMPOSITIONS: Final = 18
PRE: Final = ("group_for_reduce", "pre_expander")
EXPAND: Final = (*SYMBOLIC_SIMPLE, "gep_pushing", "recollect", "take_lanes", "expander")
MERGE: Final = ("merge_ranges", *SYMBOLIC)  # which put the quotient and the remainder of a merged range together again
LOWER: Final = ("lower_gates", "lower_index", "nested_ends")
FOLDS: Final = ("bool_folds", "accumulators", "horizontal_folds", "tensor_cores", "gep_pushing", "recollect")
GPU_DIMS: Final = ("gpudims", "dead_loop", "after_simplification")
WIDTHS: Final = ("lower_gates", "wide_accesses", "cut_lanes", "gep_pushing", "take_lanes", "push_lanes")
FINAL: Final = ("nested_ends", "render", "gep_pushing", "safe_division")
LATE: Final = ("transcendental", "floor_division", "powers_of_two", "late_forms", "multiply_add")

# fmt: off
STAGES: Final[tuple[Stage, ...]] = (
    Stage(1,  "Early movement ops",   ("movement", "nested_index"),            UP),
    Stage(2,  "Load collapse",        ("load_collapse", "reduce_mul_chain"),   DOWN),
    Stage(3,  "Split ranges",         ("split_ranges",),                       DOWN, context=steps.range_ids),
    Stage(4,  "Initial symbolic",     SYMBOLIC,                                DOWN, steps.flatten_ranges),
    Stage(5,  "Simplify ranges",      MERGE,                                   DOWN, steps.flatten_ranges, context=steps.merging),
    Stage(6,  "Split store",          ("split_store",),                        DOWN, steps.number_by_nesting,
          context=steps.cut_stores, finish=steps.set_apart),
    Stage(7,  "Apply opts",           (),                                      "-",  steps.apply_opts),
    Stage(8,  "Post-opt symbolic",    SYM,                                     DOWN),
    Stage(9,  "Expander",             EXPAND,                                  DOWN, context=steps.axis_order, first=PRE),
    Stage(10, "Add local buffers",    ("rangeify_codegen",),                   DOWN, steps.add_local_buffers),
    Stage(11, "Remove reduce",        FOLDS,                                   DOWN, steps.separate_loops,
          context=steps.accumulators, finish=steps.share_loops),
    Stage(12, "Add GPU dims",         GPU_DIMS,                                DOWN, context=steps.launch, first=("launch",)),
    Stage(13, "Add loads",            ("add_loads",),                          DOWN, known=steps.images),
    Stage(14, "Devectorize",          WIDTHS,                                  UP,   steps.split_accesses, context=steps.widths),
    Stage(15, "Lower index dtype",    LOWER,                                   UP,   steps.lower_names, known=steps.names),
    Stage(16, "Post-index symbolic",  SYMBOLIC,                                DOWN),
    Stage(17, "Pre-matcher",          (),                                      DOWN, adds="pre_matcher"),
    Stage(18, "Decompositions",       LATE,                                    DOWN),
    Stage(19, "Final rewrite",        FINAL,                                   DOWN, steps.cut_registers, adds="extra_matcher"),
    Stage(20, "Add control flow",     (),                                      "-",  steps.order_loops),
    Stage(21, "Linearize",            (),                                      "-",  steps.linearize),
    Stage(22, "Cleanup IF/ENDIF",     ("branches",),                           LINES),
)
# fmt: on


_prepared: Final[set[Target]] = set()

Watcher = Callable[[Target, Stage, Program, Program], None]
_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("morok pipeline watcher", default=None)


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` after each stage of every kernel lowered inside the `with` block, in this thread or task."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Call no watcher for kernels lowered inside the `with` block."""
    token = _watcher.set(None)
    try:
        yield
    finally:
        _watcher.reset(token)


def _groups(stage: Stage, target: Target) -> tuple[str, ...]:
    """The stage's groups, without those for instructions that `target` lacks, or has; then the groups that the target adds."""
    groups = list(_wanted(stage.groups, target))
    for rules in _added(stage, target):
        if not isinstance(rules, str):
            break
        groups.append(rules)
    return tuple(groups)


def _own(stage: Stage, target: Target) -> RuleSet | None:
    """The rules that the target adds behind groups: a rule set of its own, and all that follows it."""
    found: RuleSet | None = None
    for rules in itertools.dropwhile(lambda added: isinstance(added, str), _added(stage, target)):
        more = library.groups(rules) if isinstance(rules, str) else rules
        found = more if found is None else joined(found, more)
    return found


def _added(stage: Stage, target: Target) -> tuple[str | RuleSet, ...]:
    return getattr(target, stage.adds) if stage.adds else ()


def _wanted(groups: tuple[str, ...], target: Target) -> tuple[str, ...]:
    """The groups without those for instructions that `target` lacks, or has."""
    wanted = {
        "multiply_add": target.fma,
        "transcendental": bool(target.unsupported),
        "branches": not target.predicated,
        "group_for_reduce": target.has_local,
    }
    return tuple(g for g in groups if wanted.get(g, True))


def run(stage: Stage, program: Program, target: Target, before: RuleSet | None = None) -> Program:
    """One stage: its algorithm, then its rules; `before` are rules to try before those."""
    if stage.algorithm is not None:
        program = stage.algorithm(program, target)
    if not isinstance(program, UOp):
        return program if stage.direction != LINES else apply_to_lines(stage, program, target)
    program = apply_groups(stage, program, target, before)
    return program if stage.finish is None else stage.finish(program, target)


def lower(ast: UOp, target: Target, observer: Observer | None = None, trial: RuleSet | None = None) -> list[UOp]:
    """The instructions of the kernel `ast` (a Sink) for `target`.

    observer  called after each stage with its number, its name, and the program before and after: a list from stage 21 on
    trial     rules that the stage of decompositions uses before its own, without asking whether they are proved: to measure them

    Each stage's rules are followed by those that `morok.append_rules` appends to it.

    Raises LoweringError where a stage meets what it cannot lower, OptError for an illegal optimization; under MOROK_CHECK
    OutOfBoundsError for an access outside of a buffer, before the first stage or after the last, and VerifyError where a stage
    breaks its promise.
    """
    origin = maker.origin
    maker.origin = ast.origin  # nodes come from the kernel, unless an algorithm knows better
    try:
        return _lower(ast, target, observer, trial)
    finally:
        maker.origin = origin


def apply_groups(stage: Stage, program: UOp, target: Target, trial: RuleSet | None = None) -> UOp:
    """The program under the stage's rules, its algorithm having run: those on trial, its own, those appended to it."""
    groups, own, after, context = _groups(stage, target), _own(stage, target), appended_to(stage.number), None
    if own is not None:
        after = own if after is None else joined(own, after)
    if stage.context is not None:
        context = stage.context(program, target)
        groups = () if context is None else groups
    for name in _wanted(stage.first, target) if groups else ():
        program = steps.rewrite(program, (name,), stage.number, context=context)
    known = None if stage.known is None else stage.known(program, target)
    return steps.rewrite(program, groups, stage.number, stage.direction == UP, trial, after, context, known)


def prepare(target: Target) -> None:
    """Make the matchers of all stages: of those, too, whose rules only some kernels have something to do for. They are made, or
    read, when the first kernel is lowered, and no later kernel waits for them. UsageError or UnprovedRuleError for rules of the
    target's own that no stage can use.
    """
    for rules in target.own_rules:
        admit(rules)
    together: list[tuple[str, ...]] = [steps.ONE_PLACE] if target.vector_bytes else []
    for stage in STAGES:
        if stage.context is steps.launch and not target.has_local:
            continue  # what hardware runs in parallel
        together += [_groups(stage, target), *((name,) for name in _wanted(stage.first, target))]
    for groups in filter(None, together):
        with contextlib.suppress(UnprovedRuleError):  # the stage says so, if it is to use them
            library.groups(*groups).make_matchers()
    forget_syntax()


def apply_to_lines(stage: Stage, program: list[UOp], target: Target) -> list[UOp]:
    """A list of instructions under the stage's rules."""
    groups = _groups(stage, target)
    return line_rewrite(program, library.groups(*groups), stage=str(stage.number)) if groups else program


def _lower(ast: UOp, target: Target, observer: Observer | None, trial: RuleSet | None) -> list[UOp]:
    check, show = config.CHECK.value, config.DEBUG.value == "ir"
    watcher = _watcher.get()
    program: Program = ast
    if check:
        _check_accesses(ast, ast)
    if target not in _prepared:
        prepare(target)
        _prepared.add(target)
    for stage in STAGES:
        before = program
        program = run(stage, program, target, trial if stage.number == DECOMPOSITIONS else None)
        if check:
            from morok.ir.verify import verify  # lazy: under MOROK_CHECK alone

            verify(program, stage.number, target.unsupported)
        if show:
            listing_stream.show(section(ast, stage, before, program))
        if observer is not None:
            observer(stage.number, stage.name, before, program)
        if watcher is not None:
            watcher(target, stage, before, program)
    assert isinstance(program, list)
    if check:
        _check_accesses(ast, program)
    return program


def _check_accesses(ast: UOp, program: Program) -> None:
    """OutOfBoundsError if a place that the kernel reads or writes can be outside of its buffer; only here a solver is loaded."""
    from morok.prove.bounds_check import check  # lazy: loads the solver, under MOROK_CHECK alone

    check(program, kernel_name(ast))


def kernel_name(ast: UOp) -> str:
    return (ast.arg.name if isinstance(ast.arg, KernelInfo) else "") or "kernel"


def section(ast: UOp, stage: Stage, before: Program, after: Program) -> str:
    """One stage as MOROK_DEBUG=ir prints it."""
    title = f"=== {kernel_name(ast)}: stage {stage.number}: {stage.name}"
    if before is after or before == after:
        return f"{title} (no change)"
    return f"{title}\n{listing(after) if isinstance(after, list) else after.tree()}"


def listing(instructions: Sequence[UOp]) -> str:
    """Instructions one a line, numbered, operands by number."""
    numbers = {n: i for i, n in enumerate(instructions)}
    lines, depth = [], 0
    for i, n in enumerate(instructions):
        if n.op in (Op.End, Op.EndIf):
            depth -= 1
        operands = ", ".join(f"%{numbers[s]}" if s in numbers else s.op.name for s in n.src)
        arg = "" if n.arg is None else f" {n.arg}"
        lines.append(f"{i:4} {'  ' * depth}{n.op.name}({operands}){arg} : {n.dtype}")
        if n.op in (Op.Range, Op.If):
            depth += 1
    return "\n".join(lines)
