"""The syntax of a rule as proofs and digests read it: as text, and by the names that occur in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort
from morok.prove.cached_per_rule import once_a_rule, once_a_tree


def canonical(tree: S.Syntax) -> str:
    """A syntax tree as text: everything that carries meaning, nothing of places, comments, documentation and examples."""
    out: list[str] = []
    todo: list[Any] = [tree]
    while todo:
        at = todo.pop()
        if isinstance(at, S.Syntax):
            names = [n for n in at.__dataclass_fields__ if n not in ("span", "doc", "examples", "comments", "text")]
            if isinstance(at, S.Rule) and at.within is None:
                names.remove("within")
            out.append(f"{type(at).__name__}(")
            todo.append(_END)
            todo.extend(getattr(at, n) for n in reversed(names))
        elif isinstance(at, tuple):
            out.append("[")
            todo.append(_CLOSE)
            todo.extend(reversed(at))
        elif at is _END or at is _CLOSE:
            out.append(str(at.value))
        else:
            out.append(f"{type(at).__name__}:{at!r} ")
    return "".join(out)


@dataclass(frozen=True, slots=True)
class _Mark:
    value: str


_END: Final = _Mark(")")
_CLOSE: Final = _Mark("]")


@once_a_tree
def names_in(tree: S.Syntax) -> frozenset[str]:
    """Every string in a syntax tree, among them the names of ops and helpers."""
    found: set[str] = set()
    todo: list[Any] = [tree]
    while todo:
        at = todo.pop()
        if isinstance(at, S.Span):
            continue
        if isinstance(at, S.Syntax):
            todo.extend(getattr(at, n) for n in at.__dataclass_fields__)
        elif isinstance(at, tuple):
            todo.extend(at)
        elif isinstance(at, str):
            found.add(at)
    return frozenset(found)


@once_a_rule
def names_of(rule: CheckedRule) -> frozenset[str]:
    """Every string in a rule and in its helpers' contracts."""
    return names_in(rule.syntax).union(*(names_in(e) for e in rule.externs.values()))


@once_a_rule
def ops_of(rule: CheckedRule) -> tuple[str, ...]:
    """The ops that a rule mentions, in its text and in its helpers' contracts."""
    return tuple(sorted(n for n in names_of(rule) if n in rule.dialect.ops))


# What else is asked of the solver, by the liberties that a rule takes and the ops that it mentions: of what is added to a product
# rules about numbers are stated, below a choice.
_IMPLIED: Final = {"contract": ("MulAcc",), "arcp": ("Mul", "Reciprocal"), "Wmma": ("Add", "Where")}
_FOLDED: Final = {"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And"}  # an op that folds, and what does so with bools


@once_a_rule
def implied_ops(rule: CheckedRule) -> tuple[str, ...]:
    """The ops whose meaning a proof may use though the rule does not mention them."""
    if not built_in(rule.dialect):
        return ()
    names = names_of(rule)
    found = {n for word in names & _IMPLIED.keys() for n in _IMPLIED[word]}
    if "Reduce" in names:
        folded = names & _FOLDED.keys()
        if not folded or not _names_what_it_folds(rule):
            folded = frozenset(_FOLDED)
        found |= folded | {_FOLDED[op] for op in folded}
    if len({bool(rule.dialect.ops[n].params) for n in ops_of(rule)}) > 1:
        found.add("Where")  # below which rules about numbers are stated
    return tuple(sorted(found - set(ops_of(rule))))


def _names_what_it_folds(rule: CheckedRule) -> bool:
    """True if every Reduce of the pattern says by which op, rather than binding it or taking any."""
    if any(b.sort is Sort.OP for b in rule.bindings.values()):
        return False
    for at in S.walk(rule.syntax.pattern):
        if isinstance(at, S.PStruct) and at.op == "Reduce":
            if not any(f.name == "op" and isinstance(f.value, S.EName) for f in at.fields):
                return False
        elif isinstance(at, S.POp) and "Reduce" in at.ops:
            return False
    return True


def typing_of(rule: CheckedRule) -> str:
    """All that the checker found out about a rule, as text: the dtype, the lanes and the sort of everything in it, where a bound
    may be infinite, what it binds, what its dtype variables may be, and where its helpers are. A matcher is made of no more.
    """
    out = [f"{name}:{b}" for name, b in sorted(rule.bindings.items())]
    out += [f"{letter}:{dtypes}" for letter, dtypes in rule.domains.items()]
    for at in S.walk(rule.syntax.pattern, *rule.syntax.clauses, rule.syntax.target):
        ty, sort = rule.types.get(id(at)), rule.sorts.get(id(at))
        typed = "" if ty is None else f"{ty.element} {ty.fixed:d} {ty.lanes} {ty.pointer:d} {ty.place:d}"
        out.append(f"{typed} {'' if sort is None else sort.value} {id(at) in rule.unbounded:d}")
    return "\n".join([*out, f"{rule.pointwise:d} {rule.helpers} {rule.context}"])


@once_a_rule
def only_names(rule: CheckedRule) -> frozenset[str]:
    """The names of a rule that stand for one node wherever they stand: those of its pattern that nothing else is called."""
    trees = [
        *rule.syntax.clauses,
        rule.syntax.target,
        *(c for e in rule.externs.values() for c in (*e.requires, *e.ensures)),
    ]
    others = {n for c in S.walk(*trees) if isinstance(c, S.EComprehension) for n in c.names}
    others |= {n for c in rule.syntax.clauses if isinstance(c, S.Let) for n in c.names}
    others |= {p.name for e in rule.externs.values() for p in (*e.params, *e.results)}
    return frozenset(rule.bindings.keys() - others)
