"""The trial of a dialect: each op in a process of its own, over constants, and over nodes of the ops without mistakes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

from morok.dialect import Dialect, built_in
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
    values: dict[str, list[Any]] = {}
    used = {n for i in dialect.ops.values() if i.name not in broken for d in i.domains.values() for n in d}
    used |= {
        p for i in dialect.ops.values() if i.name not in broken for p in (*i.params, i.result) if p in dialect.dtypes
    }
    made: dict[str, list[Any]] = {}  # the worlds of each dtype
    kinds: dict[Hashable, Any] = {}  # a world of each kind of encoding
    for name in dialect.dtypes:
        if name not in used:
            continue
        try:
            attempts = worlds(theory, dialect, next(iter(dialect.ops), ""), [name])
            known = [a.world() for a in attempts]
            values[name] = candidates(known[0], name, random.Random(name))
            made[name] = known
            kinds |= zip(map(kind_of, attempts), known, strict=True)
        except Exception:  # said where an op is tried at it
            continue
    constants = list(nodes.constant_mistakes(dialect, values, made))
    if not op and over is not None:
        ops = [info for name, info in dialect.ops.items() if name in over]
        yield from equality_mistakes(made, ops)
        yield from meanings.shared_mistakes(dialect, theory, ops, values)
        return
    if not op:
        if made:
            yield from dtype_mistakes(dialect, kinds.values())
            if not constants:
                yield from lanes.dtype_mistakes(dialect, values, made)
        yield from theory_mistakes(made, values)
        for name, some in values.items():
            if some and not constants:  # else its constants are wrong, or unknown to the theory, which is said of them
                yield from excluded_constants(dialect, name, made[name])
                yield from other_constants(dialect, name, some, made[name])
                yield from nodes.template_of_constants(dialect, name, some)
        yield from constants
        return
    if not dialect.ops[op].params:
        if not constants:
            yield from role_mistakes(dialect, dialect.ops[op], values, made)
        return
    if over is None:
        yield from meanings.meaning_mistakes(dialect, theory, dialect.ops[op])
    if not any(m.everything for m in constants):
        if over is None:
            yield from nodes.OpNodes(dialect, dialect.ops[op], values, made).mistakes()
        else:
            yield from Trees(dialect, dialect.ops[op], values, made, over).mistakes()
