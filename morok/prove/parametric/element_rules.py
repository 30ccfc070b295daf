"""Terms that ops compute of the same values, as a rule about single numbers says, which is proved like any other.

An op works lane by lane, and element by element (docs/ops.md). So two terms of ops are one value where, for all numbers in the
places of what no op computes, the one is what the other is: a rule that is written down, checked, and proved at every choice of
dtypes. In it the terms stand below a choice, since a value within a tolerance, or any NaN, may be another where it is the root.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.number_ops import has_value, is_valid, number, truth
from morok.prove.parametric.setting import Setting
from morok.prove.smt import Expr

Atom = tuple[Expr, str]  # what no op computes, and its dtype
Names = Mapping[Atom, str]

MOST_BRANCHES: Final = 32  # of two terms
MOST: Final = 8  # ways in which what no op computes on one side may be the same on the other
NO_NUMBERS: Final = (laws.INVALID, laws.NONE, laws.NOWHERE, laws.UNSAID)


def agreement(s: Setting, dtype: str, one: Expr, other: Expr) -> list[Expr]:
    """The conditions that a value, where it is one, is another value."""
    if dtype == "bool":
        return [has_value(s, other), truth(s, one) == truth(s, other)]
    if dtype == "index":
        valid = is_valid(s, one)
        same = smt.Implies(valid, number(s, one).term == number(s, other).term)
        return [has_value(s, other), valid == is_valid(s, other), same]
    return [one == other]


def relate(s: Setting, dtype: str, one: Expr, other: Expr, whole: bool = False) -> bool:
    """True if a law was added: a term of the pattern that has a value equals one of the target where their parts are equal.

    `whole`: they are all that the sides compute. Sums that are regrouped are one value only so: what else is computed of them,
    as a comparison, may tell them apart.
    """
    said = False
    pairs = list(itertools.islice(_branches(s, one, other), MOST_BRANCHES)) if s.elements.proves is not None else []
    if s.elements.regrouping and not (whole and len(pairs) == 1):
        return False
    for a, b in pairs:
        if a is not b and any(t.head == "apply" and t.data in s.elements.ops for t in (a, b)):
            said = _related(s, dtype, a, b) or said
    return said


def _branches(s: Setting, one: Expr, other: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The pairs of terms that two terms may be, whatever conditions on places say, also of what ops compute of."""
    condition = _condition(s, one)
    if condition is None:
        condition = _condition(s, other)
    if condition is None:
        yield one, other
        return
    for k in (1, 2):
        yield from _branches(s, _where(s, one, condition, k), _where(s, other, condition, k))


def _condition(s: Setting, t: Expr) -> Expr | None:
    """A condition that a term, or what ops compute it of, depends on."""
    if t.head == "ite":
        return t.args[0]
    if t.head == "apply" and t.data in s.elements.ops:
        return next((c for a in t.args if (c := _condition(s, a)) is not None), None)
    return None


def _where(s: Setting, t: Expr, condition: Expr, k: int) -> Expr:
    """A term where a condition holds, 1, or does not, 2."""
    if t.head == "ite":
        return t.args[k] if t.args[0] is condition else t
    if t.head == "apply" and t.data in s.elements.ops:
        found: Expr = t.data(*(_where(s, a, condition, k) for a in t.args))
        return found
    return t


def _related(s: Setting, dtype: str, one: Expr, other: Expr) -> bool:
    assert s.elements.proves is not None
    atoms, its = (list(dict.fromkeys(_atoms(s, t, dtype))) for t in (one, other))
    if not {*NO_NUMBERS}.isdisjoint(t for t, _ in (*atoms, *its)):
        return False
    choices = [_candidates(atoms, atom) for atom in its]
    for chosen in itertools.islice(itertools.product(*choices), MOST):
        names = {atom: f"x{k}" for k, atom in enumerate(atoms)}
        its_names = {atom: names[a] for atom, a in zip(its, chosen, strict=True)}

        def text(dtypes: Mapping[str, str], its_names: Names = its_names, names: Names = names) -> str:
            typed = {(a, d): f"{name}: {dtypes.get(d, d)}" for (a, d), name in names.items()}
            root = dtypes.get(dtype, dtype)
            before, after = _written(s, (one, dtype), typed, dtypes), _written(s, (other, dtype), its_names, dtypes)
            return f"Where(c: bool, {before}, d: {root}) ~> Where(c, {after}, d)"

        if s.elements.proves(text):
            same = (a == b for (a, _), (b, _) in zip(chosen, its, strict=True))
            said = f"An op works lane by lane, and of numbers it is proved: {text({})}"
            s.instance(said, smt.Implies(smt.And(has_value(s, one), *same), smt.And(*agreement(s, dtype, one, other))))
            s.elements.related = True
            return True
    return False


def _candidates(atoms: Sequence[Atom], its: Atom) -> list[Atom]:
    """Those that may be one of the other side; first of all itself."""
    found = [(a, d) for a, d in atoms if d == its[1] and _may_be(a, its[0])]
    return sorted(found, key=lambda atom: atom[0] is not its[0])


def _may_be(a: Expr, b: Expr) -> bool:
    """True if two terms are one, or apply one function at places that may be equal."""
    return a is b or (a.head == b.head == "apply" and a.data is b.data)


def _atoms(s: Setting, t: Expr, dtype: str) -> Iterator[Atom]:
    """The parts of a term that no op computes, each with its dtype: a name may stand for constants of several. Numbers that the
    rule writes are none.
    """
    if t.head == "apply" and t.data in s.elements.ops:
        for a, d in zip(t.args, s.elements.ops[t.data][1], strict=True):
            yield from _atoms(s, a, d)
    elif not _numeral(t):
        yield t, dtype


def _numeral(t: Expr) -> str:
    """A number, or a truth, as a rule writes it; nothing for an unknown."""
    if t.head == "apply" and t.data in (laws.NUMBER, laws.TRUTH) and t.args[0].value is not None:
        return str(t.args[0].value).lower()
    if t.head == "const" and t.data.kind == "fixed" and t.data.parts[0] in ("literal", "zero"):
        return str(t.data.parts[1]) if t.data.parts[0] == "literal" else "false" if t.data.parts[1] == "bool" else "0"
    return ""


def _written(s: Setting, at: Atom, names: Names, dtypes: Mapping[str, str]) -> str:
    """A term of a dtype as a rule writes it."""
    t, dtype = at
    if t.head == "apply" and t.data in s.elements.ops:
        op, its, to = s.elements.ops[t.data]
        operands = [_written(s, a, names, dtypes) for a in zip(t.args, its, strict=True)]
        return f"{op}({', '.join([*operands, *([] if to is None else [dtypes.get(to, to)])])})"
    written = _numeral(t) or names[at]
    return f"{written}.0" if written.lstrip("-").isdigit() and "f" in dtypes.get(dtype, dtype) else written
