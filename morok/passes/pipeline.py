"""The page: the 22 stages from a kernel to its instructions, in order.

A stage is at most one graph algorithm, which runs first, and rule groups, applied until none fires. This module alone defines the
order.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from morok import config
from morok.errors import UnprovedRuleError
from morok.handed import part
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import listing_stream, steps
from morok.passes.appended import admit, appended_to, joined
from morok.passes.rebuilding import own_origins
from morok.passes.target import KernelInfo, Target
from morok.rewrite import library
from morok.rewrite.engine import InitialSubstitution
from morok.rewrite.files import forget_syntax
from morok.rewrite.peephole import line_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.tiers import SYM, SYMBOLIC, SYMBOLIC_SIMPLE

Program = UOp | list[UOp]
Observer = Callable[[int, str, Program, Program], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    groups     its rule groups, in order, applied together
    direction  "top-down": rules see rewritten operands; "bottom-up": they see the original node; "lines": they see a list of
               instructions, one after the other; "-": no rules
    algorithm  the graph algorithm before the rules, or None
    adds       the field of Target with the target's own rules for this stage
    first      groups applied before the others, one after the other
    context    the context of `@context` groups, computed from the program; if it returns None, the groups are skipped
    initial    the initial substitution for the rules, computed from the program
    finish     the graph algorithm after the rules, or None
    """

    number: int
    name: str
    groups: tuple[str, ...] = ()
    direction: str = "-"
    algorithm: Callable[[Any, Target], Any] | None = None
    adds: str = ""
    context: Callable[[UOp, Target], Any] | None = None
    initial: Callable[[UOp, Target], InitialSubstitution | None] | None = None
    first: tuple[str, ...] = ()
    finish: Callable[[UOp, Target], UOp] | None = None

    @property
    def applied(self) -> tuple[str, ...]:
        """All groups of the stage, in the order of their application."""
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
MERGE: Final = ("merge_ranges", *SYMBOLIC)  # SYMBOLIC recombines the quotient and the remainder of a merged range
CUT: Final = ("split_store", "where_bound")  # each piece loses what its bounds exclude before it is cut again
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
    Stage(6,  "Split store",          CUT,                                     DOWN, steps.number_by_nesting,
          context=steps.cut_stores, finish=steps.set_apart),
    Stage(7,  "Apply opts",           (),                                      "-",  steps.apply_opts),
    Stage(8,  "Post-opt symbolic",    SYM,                                     DOWN),
    Stage(9,  "Expander",             EXPAND,                                  DOWN, context=steps.axis_order, first=PRE),
    Stage(10, "Add local buffers",    ("rangeify_codegen",),                   DOWN, steps.add_local_buffers),
    Stage(11, "Remove reduce",        FOLDS,                                   DOWN, steps.separate_loops,
          context=steps.accumulators, finish=steps.share_loops),
    Stage(12, "Add GPU dims",         GPU_DIMS,                                DOWN, context=steps.launch, first=("launch",)),
    Stage(13, "Add loads",            ("add_loads",),                          DOWN, initial=steps.images),
    Stage(14, "Devectorize",          WIDTHS,                                  UP,   steps.split_accesses, context=steps.widths),
    Stage(15, "Lower index dtype",    LOWER,                                   UP,   steps.lower_names, initial=steps.names),
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
    """The stage's groups that `target` needs, then the built-in groups that the target adds, up to its first rule set."""
    groups = list(_wanted(stage.groups, target))
    for rules in _added(stage, target):
        if not isinstance(rules, str):
            break
        groups.append(rules)
    return tuple(groups)


def _own(stage: Stage, target: Target) -> RuleSet | None:
    """The rules that the target adds from its first rule set on, joined; None if it adds built-in groups alone."""
    found: RuleSet | None = None
    for rules in itertools.dropwhile(lambda added: isinstance(added, str), _added(stage, target)):
        more = library.groups(rules) if isinstance(rules, str) else rules
        found = more if found is None else joined(found, more)
    return found


def _added(stage: Stage, target: Target) -> tuple[str | RuleSet, ...]:
    return getattr(target, stage.adds) if stage.adds else ()


def _wanted(groups: tuple[str, ...], target: Target) -> tuple[str, ...]:
    """The groups that `target` needs: without groups for instructions that it lacks, or that replace instructions that it has."""
    wanted = {
        "multiply_add": target.fma,
        "transcendental": bool(target.unsupported),
        "branches": not target.predicated,
        "group_for_reduce": target.has_local,
    }
    return tuple(g for g in groups if wanted.get(g, True))


def run(stage: Stage, program: Program, target: Target, before: RuleSet | None = None) -> Program:
    """The program after one stage: its algorithm, its rules, its finish. Rules in `before` are tried before the stage's own."""
    if stage.algorithm is not None:
        program = stage.algorithm(program, target)
    if not isinstance(program, UOp):
        return program if stage.direction != LINES else apply_to_lines(stage, program, target)
    program = apply_groups(stage, program, target, before)
    return program if stage.finish is None else stage.finish(program, target)


def lower(ast: UOp, target: Target, observer: Observer | None = None, trial: RuleSet | None = None) -> list[UOp]:
    """The instructions of the kernel `ast` (a Sink) for `target`.

    observer  called after each stage with its number, its name, and the program before and after: a list from stage 21 on
    trial     rules to try before those of the decomposition stage, even if they are not proved: to measure their accuracy

    Rules appended to a stage by `morok.append_rules` are tried after its own.

    Raises LoweringError for a program that some stage cannot lower, OptError for an illegal optimization; under MOROK_CHECK
    OutOfBoundsError for an access outside of a buffer, before the first stage or after the last, and VerifyError if the program
    after a stage violates the stage's postcondition.
    """
    with own_origins():
        maker.origin = ast.origin  # the default provenance of new nodes, which algorithms may refine
        return _lower(ast, target, observer, trial)


def apply_groups(stage: Stage, program: UOp, target: Target, trial: RuleSet | None = None) -> UOp:
    """The program after the stage's rules, for a program after its algorithm. The order: `trial`, the stage's rules, the target's
    own, appended rules.
    """
    groups, own, after, context = _groups(stage, target), _own(stage, target), appended_to(stage.number), None
    if own is not None:
        after = own if after is None else joined(own, after)
    if stage.context is not None:
        context = stage.context(program, target)
        groups = () if context is None else groups
    for name in _wanted(stage.first, target) if groups else ():
        program = steps.rewrite(program, (name,), stage.number, context=context)
    initial = None if stage.initial is None else stage.initial(program, target)
    return steps.rewrite(program, groups, stage.number, stage.direction == UP, trial, after, context, initial)


def prepare(target: Target) -> None:
    """Compile the matchers of all stages, or read them from the cache, including stages that only some kernels need: the first
    kernel pays for all of them, later kernels for none. UsageError or UnprovedRuleError for rules of the target's own that no
    stage can use.
    """
    for rules in target.own_rules:
        admit(rules)
    together: list[tuple[str, ...]] = [steps.ONE_PLACE] if target.vector_bytes else []
    for stage in STAGES:
        if stage.context is steps.launch and not target.has_local:
            continue  # this target has no hardware indices
        together += [_groups(stage, target), *((name,) for name in _wanted(stage.first, target))]
    for groups in filter(None, together):
        with contextlib.suppress(UnprovedRuleError):  # reported by the stage, if a kernel needs it
            library.groups(*groups).make_matchers()
    forget_syntax()


def apply_to_lines(stage: Stage, program: list[UOp], target: Target) -> list[UOp]:
    """A list of instructions after the stage's rules."""
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
    """OutOfBoundsError if an access of the kernel may be outside of its buffer. The only part of lowering that uses a solver."""
    check: Callable[[Program, str], None] = part("bounds check")  # loads the solver
    check(program, kernel_name(ast))


def kernel_name(ast: UOp) -> str:
    return (ast.arg.name if isinstance(ast.arg, KernelInfo) else "") or "kernel"


def section(ast: UOp, stage: Stage, before: Program, after: Program) -> str:
    """The listing of one stage under MOROK_DEBUG=ir: a title, and the program unless it is unchanged."""
    title = f"=== {kernel_name(ast)}: stage {stage.number}: {stage.name}"
    if before is after or before == after:
        return f"{title} (no change)"
    return f"{title}\n{listing(after) if isinstance(after, list) else after.tree()}"


def listing(instructions: Sequence[UOp]) -> str:
    """A listing of instructions, one on each line, numbered, with operands by number and indented by loop and branch."""
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
