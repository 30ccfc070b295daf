"""The trial of a dialect: each op in a process of its own, over constants, and over nodes of the ops without mistakes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from morok.dialect import Dialect, OpInfo, built_in
from morok.dsl.declared import Mistake
from morok.prove import dialect_lanes as lanes
from morok.prove import dialect_meanings as meanings
from morok.prove import dialect_nodes as nodes
from morok.prove.dialect_agreement import Wrong
from morok.prove.dialect_encodings import kind_of, worlds
from morok.prove.dialect_facts import dtype_mistakes
from morok.prove.dialect_roles import role_mistakes
from morok.prove.dialect_theory import equality_mistakes, excluded_constants, other_constants, theory_mistakes
from morok.prove.dialect_trees import Trees
from morok.prove.dialect_values import candidates
from morok.prove.limits import Limits
from morok.prove.processes import in_processes
from morok.prove.smt.session import Died

LONGEST: Final = 60.0  # seconds of CPU that one op is tried
PATIENCE: Final = 10  # times as long it may wait, for the solver and for the machine
WHOLE: Final = 600.0  # seconds for all of a dialect


def trials(dialect: Dialect, broken: frozenset[str]) -> tuple[list[Mistake], bool]:
    """The mistakes found, and True if all trials came to an end. Each op is tried in a process of its own: a dialect's code may
    end it, and the solver is to know nothing of it here.
    """

    def died(task: str, why: str) -> list[Mistake] | None:
        return None

    here = os.getpid()

    def trial(op: str, over: frozenset[str] | None) -> list[Mistake] | None:
        if os.getpid() != here:  # its own process: what else the machine does is not held against a dialect
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, LONGEST)
        return _tried(dialect, broken, op, over)

    own = built_in(dialect)  # whose ops with a role are tested as all that rearranges lanes, in CI, as long as it takes
    all_found: list[Mistake] = []
    final = True
    began = time.monotonic()
    spent: dict[str, float] = {}

    def tried(ops: Iterable[str], over: frozenset[str] | None) -> None:
        nonlocal final
        limits = Limits(PATIENCE * LONGEST) if own else Limits(PATIENCE * LONGEST, began + WHOLE, WHOLE)
        last = time.monotonic()
        for op, found in in_processes(deque(ops), lambda op: trial(op, over), died, 1, limits=limits):
            now = time.monotonic()
            spent[op], last = spent.get(op, 0.0) + now - last, now
            if found is None:
                final = False
                what = _unended(op, spent, bool(limits.over()))
                found = [Mistake(op, "evaluate" if op else "const", what, "functions and methods that return")]
            all_found.extend(m for m in found if m not in all_found)

    named = (name for name, info in dialect.ops.items() if info.params or (info.role and not own))
    tried(["", *(name for name in named if name not in broken)], None)
    if all(m.op or m.facts for m in all_found):  # else there is nothing to build of
        unsound = {m.op for m in all_found} | broken
        sound = [name for name, info in dialect.ops.items() if info.params and name not in unsound]
        tried(["", *sound], frozenset(sound))
    return all_found, final


def _unended(op: str, spent: Mapping[str, float], over: bool) -> str:
    """The mistake of an op whose trial came to no end, or for which no time was left."""
    if over:
        most = max(spent, key=spent.__getitem__)
        of = most or "its constants"
        return f"trying this dialect takes more than {WHOLE:.0f} s, of which {of} took {spent[most]:.0f}: this op is not tried"
    return f"trying {op or 'its constants'} ended its process or the solver's, or took more than {LONGEST:.0f} s of CPU"


def _tried(dialect: Dialect, broken: frozenset[str], op: str, over: frozenset[str] | None) -> list[Mistake] | None:
    """The mistakes that trying an op finds; None where it came to no end."""
    try:
        return list(_all(dialect, broken, op, over))
    except Died:
        return None
    except Exception as problem:
        return [
            Mistake(op, "solver" if op else "theory", f"trying it ends in {type(problem).__name__}: {problem}"[:300])
        ]


def _all(dialect: Dialect, broken: frozenset[str], op: str, over: frozenset[str] | None) -> Iterator[Mistake]:
    """The mistakes in an op, over constants or over nodes of these ops; in the common part of all ops where none is named."""
    try:
        theory = meanings.theory_of(dialect)
    except Wrong as wrong:
        if not op:
            yield wrong.mistake
        return
    sample = _sampled(dialect, theory, broken)
    constants = list(nodes.constant_mistakes(dialect, sample.values, sample.worlds))
    if op:
        yield from _of_op(dialect, theory, dialect.ops[op], over, sample, constants)
    elif over is None:
        yield from _of_constants(dialect, sample, constants)
    else:
        ops = [info for name, info in dialect.ops.items() if name in over]
        yield from equality_mistakes(sample.worlds, ops)
        yield from meanings.shared_mistakes(dialect, theory, ops, sample.values)


class _Sample(NamedTuple):
    """Some values of each dtype that ops use, the encodings of each, and one of each kind of encoding."""

    values: dict[str, list[Any]]
    worlds: dict[str, list[Any]]
    kinds: dict[Hashable, Any]


def _sampled(dialect: Dialect, theory: Any, broken: frozenset[str]) -> _Sample:
    sample = _Sample({}, {}, {})
    sound = [info for info in dialect.ops.values() if info.name not in broken]
    used = {n for i in sound for d in i.domains.values() for n in d} | {p for i in sound for p in (*i.params, i.result)}
    for name in (name for name in dialect.dtypes if name in used):
        try:
            attempts = worlds(theory, dialect, next(iter(dialect.ops), ""), [name])
            known = [a.world() for a in attempts]
            sample.values[name] = candidates(known[0], name, random.Random(name))
            sample.worlds[name] = known
            sample.kinds.update(zip(map(kind_of, attempts), known, strict=True))
        except Exception:  # said where an op is tried at it
            continue
    return sample


def _of_constants(dialect: Dialect, sample: _Sample, constants: list[Mistake]) -> Iterator[Mistake]:
    """The mistakes in what all ops have in common; `constants` are those in constants, which come last."""
    if sample.worlds:
        yield from dtype_mistakes(dialect, sample.kinds.values())
        if not constants:
            yield from lanes.dtype_mistakes(dialect, sample.values, sample.worlds)
    yield from theory_mistakes(sample.worlds, sample.values)
    for name, some in sample.values.items():
        if some and not constants:  # else its constants are wrong, or unknown to the theory, which is said of them
            yield from excluded_constants(dialect, name, sample.worlds[name])
            yield from other_constants(dialect, name, some, sample.worlds[name])
            yield from nodes.template_of_constants(dialect, name, some)
    yield from constants


def _of_op(
    dialect: Dialect,
    theory: Any,
    info: OpInfo,
    over: frozenset[str] | None,
    sample: _Sample,
    constants: list[Mistake],
) -> Iterator[Mistake]:
    """The mistakes in an op; `constants` are those in constants, over which nodes are built."""
    if not info.params:
        if not constants:
            yield from role_mistakes(dialect, info, sample.values, sample.worlds)
        return
    if over is None:
        yield from meanings.meaning_mistakes(dialect, theory, info)
    if any(m.everything for m in constants):
        return
    if over is None:
        yield from nodes.OpNodes(dialect, info, sample.values, sample.worlds).mistakes()
    else:
        yield from Trees(dialect, info, sample.values, sample.worlds, over).mistakes()
