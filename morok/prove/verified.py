"""The verification of a dialect: once for each digest of it, and of what the solver is told as it is loaded, before its first
verdict, and kept in the cache folder. A proof is found by a process that has loaded the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from morok.dialect import Dialect, built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.declared import Mistake, dialect_mistakes, op_mistakes
from morok.errors import DialectError
from morok.prove import foreign, smt, sources
from morok.prove.rule_syntax import names_of, ops_of
from morok.rewrite import store


def mistakes(dialect: Dialect) -> tuple[Mistake, ...]:
    """Everything that is wrong with a dialect, as far as edges and random values show; nothing is asked again that was before."""
    found = [*dialect_mistakes(dialect), *(m for name in dialect.ops for m in op_mistakes(dialect, name))]
    if any(m.everything for m in found):
        return tuple(found)
    if built_in(dialect):  # nothing digests what it evaluates and builds with: it is verified in CI
        return (*found, *_tried(dialect, found)[0])
    said = f"verified {sources.whole_digest(dialect)} {foreign.solving_digest(dialect)}"
    key = hashlib.sha256(said.encode()).hexdigest()
    kept = store.load_json(key)
    if kept is not None:
        return (*found, *map(_loaded, kept))
    tried, final = _tried(dialect, found)
    if final:
        store.save_json(key, [asdict(m) for m in tried])
    return (*found, *tried)


def _tried(dialect: Dialect, found: Sequence[Mistake]) -> tuple[list[Mistake], bool]:
    from morok.prove.dialect_trials import trials  # lazy: what is kept is not tried

    return trials(dialect, frozenset(m.op for m in found))


def _loaded(data: dict[str, Any]) -> Mistake:
    return Mistake(**{**data, "dtypes": tuple(data["dtypes"]), "facts": tuple(data["facts"])})


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
    dialect = rule.dialect
    for name, number in dict.fromkeys(_written(rule)):
        world = next(iter(theory.attempts(frozenset(ops_of(rule)), [name], False, False))).world()
        made = dialect.const_value(dialect.const(dialect.dtypes[name], number))
        wanted = float(number) if world.is_float(name) else number
        one, other = world.constant(name, wanted).value, world.constant(name, made).value
        if smt.simplify(one == other) is not smt.TRUE:
            what = f"of the number {number!r} that the rule writes it makes {made!r} at {name}"
            yield Mistake("", "const", what, f"a number that is a value of {name}", constants=True)


def _written(rule: CheckedRule) -> Iterator[tuple[str, Any]]:
    """(dtype, number) of the constants that a rule says in numbers, or as `zero(x)`, `one(x)` or `const(3, T)`."""
    for at in S.walk(rule.syntax.pattern, *rule.syntax.clauses, rule.syntax.target):
        ty = rule.types.get(id(at))
        if isinstance(at, (S.PLiteral, S.ENumber)):
            number = at.value
        elif isinstance(at, S.ECall) and at.name in ("zero", "one"):
            number, ty = int(at.name == "one"), ty or rule.types.get(id(at.args[-1]))
        elif isinstance(at, S.ECall) and at.name == "const" and isinstance(at.args[0], S.ENumber):
            number = at.args[0].value
        else:
            continue
        if ty is not None and not ty.pointer and not ty.place:
            names = (instance.element(ty) for instance in rule.instances)
            yield from ((name, number) for name in names if name in rule.dialect.dtypes)


def encoding_mistakes(rule: CheckedRule, theory: Any, attempts: Iterable[Any]) -> Iterator[Mistake]:
    """Encodings that a theory has for a rule, and for none of its ops: nobody has compared them with what runs."""
    from morok.prove.dialect_encodings import kind_of, worlds  # lazy, like the trials

    dtypes = sorted(_dtypes(rule))
    known = {
        kind_of(a)
        for op in ops_of(rule)
        for d in (dtypes, *([n] for n in dtypes))
        for a in worlds(theory, rule.dialect, op, d)
    }
    if any(kind_of(a) not in known for a in attempts):
        yield Mistake(
            "",
            "theory",
            "`attempts` has encodings for the rule that it has for none of its ops",
            "the same for each op",
        )


def broken(rules: Sequence[CheckedRule]) -> dict[int, tuple[Mistake, ...]]:
    """The rules that mistakes of their dialects spoil, by their numbers."""
    dialects = {id(r.dialect): r.dialect for r in rules if not built_in(r.dialect)}  # two of them may have one name
    known = {i: mistakes(d) for i, d in dialects.items()}
    found = {i: tuple(m for m in known.get(id(r.dialect), ()) if spoils(m, r)) for i, r in enumerate(rules)}
    return {i: m for i, m in found.items() if m}


def message(dialect: str, found: Iterable[Mistake]) -> str:
    """The mistakes in a rule's dialect, one in a line."""
    lines = [
        f"{DialectError.code}: {m.text(dialect)}" + (f" (expected: {m.expected})" if m.expected else "") for m in found
    ]
    return "\n".join(dict.fromkeys(lines))
