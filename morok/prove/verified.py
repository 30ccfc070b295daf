"""The verification of a dialect: once for each digest of it, before its first verdict, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from morok.dialect import Dialect, built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.declared import Mistake, dialect_mistakes, op_mistakes
from morok.prove import sources
from morok.prove.limits import Limits
from morok.prove.processes import in_processes
from morok.prove.rule_syntax import names_of, ops_of
from morok.rewrite import store

LONGEST: Final = 60.0  # seconds of CPU that one op is tried
PATIENCE: Final = 10  # times as long it may wait, for the solver and for the machine


def mistakes(dialect: Dialect) -> tuple[Mistake, ...]:
    """Everything that is wrong with a dialect, as far as edges and random values show; nothing is asked again that was before."""
    found = [*dialect_mistakes(dialect), *(m for name in dialect.ops for m in op_mistakes(dialect, name))]
    if any(m.everything for m in found):
        return tuple(found)
    if built_in(dialect):  # nothing digests what it evaluates and builds with: it is verified in CI
        return (*found, *_apart(dialect, frozenset(m.op for m in found))[0])
    key = hashlib.sha256(f"verified {sources.whole_digest(dialect)}".encode()).hexdigest()
    kept = store.load(key)
    if kept is not None:
        return (*found, *map(_loaded, json.loads(kept)))
    tried, final = _apart(dialect, frozenset(m.op for m in found))
    if final:
        store.save(key, json.dumps([asdict(m) for m in tried]).encode())
    return (*found, *tried)


def _loaded(data: dict[str, Any]) -> Mistake:
    return Mistake(**{**data, "dtypes": tuple(data["dtypes"]), "facts": tuple(data["facts"])})


def _apart(dialect: Dialect, broken: frozenset[str]) -> tuple[list[Mistake], bool]:
    """The mistakes found, and True if all trials came to an end. Each op is tried in a process of its own: a dialect's code may
    end it, and the solver is to know nothing of it here.
    """
    from morok.prove import dialect_meanings, dialect_nodes, dialect_trees, dialect_values  # noqa: F401 - once, before processes are forked

    def died(task: str, why: str) -> list[Mistake] | None:
        return None

    here = os.getpid()

    def trial(op: str, over: frozenset[str] | None) -> list[Mistake] | None:
        if os.getpid() != here:  # its own process: what else the machine does is not held against a dialect
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, LONGEST)
        return _tried(dialect, broken, op, over)

    all_found: list[Mistake] = []
    final = True

    def tried(ops: Iterable[str], over: frozenset[str] | None) -> None:
        nonlocal final
        limits = Limits(PATIENCE * LONGEST)
        for op, found in in_processes(deque(ops), lambda op: trial(op, over), died, 1, limits=limits):
            if found is None:
                final = False
                what = (
                    f"trying {op or 'its constants'} ended its process or the solver's, or took more than {LONGEST:.0f} s of CPU"
                )
                found = [Mistake(op, "evaluate" if op else "const", what, "functions and methods that return")]
            all_found.extend(m for m in found if m not in all_found)

    tried(["", *(name for name, info in dialect.ops.items() if info.params and name not in broken)], None)
    if all(m.op or m.facts for m in all_found):  # else there is nothing to build of
        unsound = {m.op for m in all_found} | broken
        sound = [name for name, info in dialect.ops.items() if info.params and name not in unsound]
        tried(sound, frozenset(sound))
    return all_found, final


def _tried(dialect: Dialect, broken: frozenset[str], op: str, over: frozenset[str] | None) -> list[Mistake] | None:
    """The mistakes that trying an op finds; None where it came to no end."""
    from morok.prove.smt.session import Died  # lazy: so is all that asks the solver

    try:
        return list(_all(dialect, broken, op, over))
    except Died:
        return None
    except Exception as problem:
        return [Mistake(op, "solver" if op else "theory", f"trying it ends in {type(problem).__name__}: {problem}"[:300])]


def _all(dialect: Dialect, broken: frozenset[str], op: str, over: frozenset[str] | None) -> Iterator[Mistake]:
    """The mistakes in an op, over constants or over nodes of these ops; in the common part of all ops where none is named."""
    import random

    from morok.prove import dialect_meanings as meanings
    from morok.prove import dialect_nodes as nodes
    from morok.prove import dialect_trees as trees
    from morok.prove.dialect_values import candidates, worlds

    try:
        theory = meanings.theory_of(dialect)
    except meanings.Wrong as wrong:
        if not op:
            yield Mistake("", wrong.field, wrong.message, wrong.expected)
        return
    values: dict[str, list[Any]] = {}
    used = {n for i in dialect.ops.values() if i.name not in broken for d in i.domains.values() for n in d}
    used |= {p for i in dialect.ops.values() if i.name not in broken for p in (*i.params, i.result) if p in dialect.dtypes}
    world = None
    for name in dialect.dtypes:
        if name not in used:
            continue
        try:
            attempts = worlds(theory, dialect, next(iter(dialect.ops), ""), [name])
            world = attempts[0].world()
            values[name] = candidates(world, name, (), random.Random(name))
        except Exception:  # said where an op is tried at it
            continue
    constants = list(nodes.constant_mistakes(dialect, values))
    if not op:
        if world is not None:
            yield from nodes.dtype_mistakes(dialect, world)
        yield from constants
        return
    if over is None:
        yield from meanings.meaning_mistakes(dialect, theory, dialect.ops[op])
    if not any(m.everything for m in constants):
        if over is None:
            yield from nodes.OpNodes(dialect, dialect.ops[op], values).mistakes()
        else:
            yield from trees.Trees(dialect, dialect.ops[op], values, over).mistakes()


def spoils(mistake: Mistake, rule: CheckedRule) -> bool:
    """True if a rule uses what a mistake is about."""
    if mistake.op and mistake.op not in ops_of(rule):
        return False
    if mistake.dtypes and not _dtypes(rule).intersection(mistake.dtypes):
        return False
    if mistake.facts and not names_of(rule).intersection(mistake.facts):
        return False
    return not mistake.constants or has_constants(rule)


def _dtypes(rule: CheckedRule) -> set[str]:
    return {n for i in rule.instances for n in i.dtypes.values()} | {t.element for t in rule.types.values() if t.fixed}


def has_constants(rule: CheckedRule) -> bool:
    """True if a rule matches constants, or makes any."""
    parts = S.walk(rule.syntax.pattern, *rule.syntax.clauses, rule.syntax.target)
    return any(
        isinstance(at, (S.PConst, S.PLiteral, S.ENumber, S.EBinary, S.EUnary, S.Let))
        or (isinstance(at, S.ECall) and at.name in ("zero", "one", "const", "identity", "eval"))
        for at in parts
    )


def literal_mistakes(rule: CheckedRule, theory: Any) -> Iterator[Mistake]:
    """Numbers that a rule writes, of which the dialect makes other constants than the solver is told."""
    from morok.prove import smt

    dialect = rule.dialect
    seen = set()
    for at in S.walk(rule.syntax.pattern, *rule.syntax.clauses, rule.syntax.target):
        ty = rule.types.get(id(at))
        if not isinstance(at, (S.PLiteral, S.ENumber)) or ty is None or ty.pointer or ty.place:
            continue
        for instance in rule.instances:
            name = instance.element(ty)
            if name not in dialect.dtypes or (name, at.value) in seen:
                continue
            seen.add((name, at.value))
            made = dialect.const_value(dialect.const(dialect.dtypes[name], at.value))
            world = next(iter(theory.attempts(frozenset(ops_of(rule)), [name], False, False))).world()
            one, other = world.constant(name, at.value).value, world.constant(name, made).value
            if smt.simplify(one == other) is not smt.TRUE:
                what = f"of the number {at.value!r} that the rule writes it makes {made!r} at {name}"
                yield Mistake("", "const", what, f"a number that is a value of {name}", constants=True)


def broken(rules: Sequence[CheckedRule]) -> dict[int, tuple[Mistake, ...]]:
    """The rules that mistakes of their dialects spoil, by their numbers."""
    dialects = {r.dialect.name: r.dialect for r in rules if not built_in(r.dialect)}
    known = {name: mistakes(d) for name, d in dialects.items()}
    found = {i: tuple(m for m in known.get(r.dialect.name, ()) if spoils(m, r)) for i, r in enumerate(rules)}
    return {i: m for i, m in found.items() if m}


def message(dialect: str, found: Iterable[Mistake]) -> str:
    """The mistakes in a rule's dialect, one in a line."""
    from morok.errors import DialectError

    lines = [f"{DialectError.code}: {m.text(dialect)}" + (f" (expected: {m.expected})" if m.expected else "") for m in found]
    return "\n".join(dict.fromkeys(lines))
