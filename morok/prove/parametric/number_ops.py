"""Values as numbers and truths: what the ops of indices, and of truths, make of them.

An op has a value where its operands have one (a quotient where the divisor is not 0; of a choice only the branch that is taken
need have one, of And and Or only an operand that decides), and is Invalid where one of them is. Of anything else there is an
unknown: the number or truth that it is, if it has a value. A number means something only where the value is valid: those who ask
for it see to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import COMPARISONS, Integer, integer
from morok.prove.parametric.sequences import chosen
from morok.prove.parametric.setting import Setting
from morok.prove.semantics.term import Unsupported, both, is_true
from morok.prove.smt import Applicable, Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

VALUE: Final = laws.VALUE
VALID: Final = smt.Function(Symbol("function", "is valid"), VALUE, laws.BOOL)
HAS_VALUE: Final = smt.Function(Symbol("function", "has a value"), VALUE, laws.BOOL)
TRUTH_OF: Final = smt.Function(Symbol("function", "truth of"), VALUE, laws.BOOL)


def op(name: str, *dtypes: str) -> Applicable:
    """The function of values that an op is at these dtypes."""
    return smt.Function(Symbol("op", name, *dtypes), *([VALUE] * len(dtypes)), VALUE)


def _truncated(s: Setting, a: Integer, b: Integer) -> Integer:
    """A quotient rounded toward zero; of a divisor that is not positive nothing is known but that it is one number."""
    return _of_quotient(s, a, b, lambda q: q)


def _of_quotient(s: Setting, a: Integer, b: Integer, f: Callable[[Integer], Integer]) -> Integer:
    """A function of a quotient rounded toward zero: of one or the other, so that their parts stay known."""
    if b.known is not None and b.known < 0:
        return _of_quotient(s, a, -b, lambda q: f(-q))
    down = f(s.divided(a, b)[0])
    up = f(-s.divided(-a, b)[0])
    towards: Integer = chosen(a.term >= 0, down, up)
    if b.known is not None:
        return towards
    return integer(smt.If(b.term > 0, towards.term, f(integer(laws.QUOTIENT_BY_NEGATIVE(a.term, b.term))).term))


_NUMBERS: Final[dict[Applicable, Callable[[Setting, Integer, Integer], Integer]]] = {
    op("Add", "index", "index"): lambda s, a, b: a + b,
    op("Sub", "index", "index"): lambda s, a, b: a - b,
    op("Mul", "index", "index"): lambda s, a, b: a * b,
    op("Max", "index", "index"): lambda s, a, b: chosen(a.term >= b.term, a, b),
    op("Min", "index", "index"): lambda s, a, b: chosen(a.term <= b.term, a, b),
    op("Idiv", "index", "index"): _truncated,
    op("Mod", "index", "index"): lambda s, a, b: _of_quotient(s, a, b, lambda q: a - b * q),
    op("FloorDiv", "index", "index"): lambda s, a, b: s.divided(a, b)[0],
    op("FloorMod", "index", "index"): lambda s, a, b: s.divided(a, b)[1],
}
_DIVISIONS: Final = frozenset(op(name, "index", "index") for name in ("Idiv", "Mod", "FloorDiv", "FloorMod"))
_COMPARED: Final = {
    op(name, "index", "index"): COMPARISONS[sign]
    for name, sign in (("Lt", "<"), ("Le", "<="), ("Gt", ">"), ("Ge", ">="), ("Eq", "=="), ("Ne", "!="))
}
_TRUTHS: Final[dict[Applicable, Callable[..., Expr]]] = {
    op("And", "bool", "bool"): lambda a, b: smt.And(a, b),
    op("Or", "bool", "bool"): lambda a, b: smt.Or(a, b),
    op("Not", "bool"): smt.Not,
}
DECIDING: Final = ("And", "Or")  # one of their operands may decide, whether the other has a value or not
# ops that may have a value where an operand has none: of all others each has
LENIENT: Final = frozenset({*DECIDING, "Where"})
_OR: Final = op("Or", "bool", "bool")
JOINING: Final = frozenset(op(name, "bool", "bool") for name in DECIDING)
_WHERE: Final = op("Where", "bool", "index", "index")
_NEG: Final = op("Neg", "index")


def number(s: Setting, t: Expr) -> Integer:
    """The integer that a value of dtype index is, where it has a value and is valid."""
    if t.head == "ite":
        condition, yes, no = t.args
        found: Integer = chosen(condition, number(s, yes), number(s, no))
        return found
    if t.head == "apply":
        if t.data is laws.NUMBER:
            return s.polynomial(t.args[0])
        if t.data is _NEG:
            return -number(s, t.args[0])
        if t.data is _WHERE:
            condition, yes, no = t.args
            if yes is laws.INVALID or no is laws.INVALID:
                return number(s, no if yes is laws.INVALID else yes)
            taken: Integer = chosen(truth(s, condition), number(s, yes), number(s, no))
            return taken
        if (calculate := _NUMBERS.get(t.data)) is not None:
            a, b = (number(s, x) for x in t.args)
            return calculate(s, a, b)
    return integer(laws.INDEX_OF(t))


def truth(s: Setting, t: Expr) -> Expr:
    """The truth that a value of dtype bool is, where it has a value. Unsupported where it compares what may be Invalid."""
    if _is_false(t):
        return smt.FALSE
    if t.head == "ite":
        condition, yes, no = t.args
        return smt.If(condition, truth(s, yes), truth(s, no))
    if t.head == "apply":
        if t.data is laws.TRUTH:
            return t.args[0]
        if (compare := _COMPARED.get(t.data)) is not None:
            if not all(is_true(is_valid(s, x)) for x in t.args):
                raise Unsupported("a comparison with what may be Invalid")
            a, b = (number(s, x) for x in t.args)
            s.compared(a, b)
            return compare(a.term, b.term)
        if (join := _TRUTHS.get(t.data)) is not None:
            return join(*(truth(s, x) for x in t.args))
    return TRUTH_OF(t)


def decided(s: Setting, t: Expr) -> Expr:
    """The truth that a value is, as far as it is read: of a comparison with what may be Invalid an unknown."""
    try:
        return truth(s, t)
    except Unsupported:
        return TRUTH_OF(t)


def _is_false(t: Expr) -> bool:
    return t.head == "const" and t.data == Symbol("fixed", "zero", "bool")


def _is_written(t: Expr) -> bool:
    """True if a term is the number, or the truth, that a rule writes, or 0."""
    return t.head == "const" and t.data.kind == "fixed" and t.data.parts[0] in ("literal", "zero")


def has_value(s: Setting, t: Expr) -> Expr:
    """The condition that an index, or a truth, has a value. Invalid is one."""
    if t is laws.INVALID or t in s.constants or _is_written(t):
        return smt.TRUE
    if t.head == "ite":
        condition, yes, no = t.args
        return smt.If(condition, has_value(s, yes), has_value(s, no))
    if t.head == "apply":
        if t.data is laws.NUMBER or t.data is laws.TRUTH or t.data in s.constant_lanes:
            return smt.TRUE
        if t.data is _WHERE:
            condition, yes, no = t.args
            return smt.And(has_value(s, condition), smt.If(truth(s, condition), has_value(s, yes), has_value(s, no)))
        if t.data in JOINING:
            a, b = t.args
            decides = [smt.And(has_value(s, x), truth(s, x) if t.data is _OR else smt.Not(truth(s, x))) for x in (a, b)]
            return smt.Or(smt.And(has_value(s, a), has_value(s, b)), *decides)
        if t.data is _NEG or t.data in _NUMBERS or t.data in _COMPARED or t.data in _TRUTHS:
            every = [has_value(s, x) for x in t.args]
            if t.data in _DIVISIONS:
                every.append(smt.Not(number(s, t.args[1]).term == 0))
            if t.data in _COMPARED:
                every.append(_valid_if_known(s, t))
            return smt.And(*every)
    return HAS_VALUE(t)


def is_valid(s: Setting, t: Expr) -> Expr:
    """The condition that an index is not Invalid. Of variables those may be of which a pattern says so."""
    if t is laws.INVALID:
        return smt.FALSE
    if t.head == "ite":
        condition, yes, no = t.args
        return _either(condition, is_valid(s, yes), is_valid(s, no))
    if t.head == "apply" and t.data is _WHERE:
        condition, yes, no = t.args
        return _either(truth(s, condition), is_valid(s, yes), is_valid(s, no))
    if t.head == "apply" and (t.data is _NEG or t.data in _NUMBERS):
        return both(*(is_valid(s, x) for x in t.args))
    if t.head == "apply" and t.data in s.may_be_invalid:
        return VALID(t)
    if (s.may_be_invalid or s.invalid_named) and _made_of_invalid(s, t):
        raise Unsupported("what another op makes of what may be Invalid")
    return smt.TRUE


def _valid_if_known(s: Setting, t: Expr) -> Expr:
    """The condition that no operand is Invalid; where that is not read, an unknown."""
    try:
        return both(*(is_valid(s, x) for x in t.args))
    except Unsupported:
        return HAS_VALUE(t)


def _made_of_invalid(s: Setting, t: Expr) -> bool:
    """True if a value is made of Invalid, or of what may be so."""
    with s.anywhere() as place:
        return any(
            x is laws.INVALID or (x.head == "apply" and x.data in s.may_be_invalid) for x in parts_of(s, [t], place)
        )


def parts_of(s: Setting, terms: Iterable[Expr], place: Integer) -> Iterator[Expr]:
    """All terms inside of these, of the items of sequences among them at a place, and of the elements of folds, once each."""
    looked_at: set[Expr] = set()
    terms = list(terms)
    while terms:
        inside = [t for t in subterms(terms) if t not in looked_at]
        looked_at.update(inside)
        yield from inside
        terms = [s.sequences[t][1](place) for t in inside if t in s.sequences]
        with s.indices() as b:
            terms += [s.folded[t].element(b) for t in inside if t in s.folded]


def _either(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return yes if yes is no else smt.If(condition, yes, no)
