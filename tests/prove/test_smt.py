"""Terms: each function computed as the solver computes it, simplified to what is equal, printed and read back, and translated."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from morok.prove import smt
from morok.prove.semantics.floats import FORMATS
from morok.prove.semantics.term import World, both, either, negation
from morok.prove.smt import FALSE, TRUE, Expr, Sort, smtlib
from morok.prove.smt.evaluate import Evaluator
from morok.prove.smt.fold import _FUNCTIONS, form_of, value_of
from morok.prove.smt.ring import Polynomials, refuted_as_polynomials
from morok.prove.smt.session import session
from morok.prove.smt.term_graphs import constants, subterms
from morok.prove.smt.terms import make
from morok.prove.smt.z3_expressions import term_of
from morok.prove.symbol import Symbol

BOOL, INT, REAL = smt.BoolSort(), smt.IntSort(), smt.RealSort()
FLOATS = [smt.FPSort(*FORMATS[name]) for name in FORMATS]
MODES = (smt.NEAREST, smt.TO_ZERO, smt.UP, smt.DOWN)
CORE = ("and", "or", "not", "=>", "xor")
NUMBERS = ("+", "-", "*", "<", "<=", ">", ">=")


def named(name: str) -> Symbol:
    return Symbol("variable", name)


def bits(width: int) -> Sort:
    return smt.BitVecSort(width)


def number(rng: random.Random, sort: Sort) -> Expr:
    """A numeral: edges as often as not."""
    if sort is BOOL:
        return smt.BoolVal(rng.random() < 0.5)
    if sort is INT:
        return smt.IntVal(rng.choice((0, 1, -1, 2, -7, 12, rng.randint(-1000, 1000), rng.randint(-(2**70), 2**70))))
    if sort is REAL:
        return smt.RealVal(Fraction(rng.randint(-50, 50), rng.randint(1, 9)))
    if sort.kind == "BitVec":
        w = sort.width
        return smt.BitVecVal(
            rng.choice((0, 1, -1, 1 << (w - 1), (1 << (w - 1)) - 1, rng.getrandbits(w), rng.getrandbits(3))), sort
        )
    form, sign = form_of(sort), rng.random() < 0.5
    patterns = (
        form.zero(sign),
        form.infinity(sign),
        form.nan,
        form.zero(sign) | 1,  # the least subnormal
        form.infinity(sign) - 1,  # the greatest
        form.zero(sign) | 1 << (form.significand - 1),  # the least normal
        form.rounded(Fraction(rng.randint(-9, 9), 2), "RNE"),
        form.canonical(rng.getrandbits(sort.width)),
    )
    return smt.numeral(sort, rng.choice((*patterns, patterns[-1], patterns[-1])))


def applications(rng: random.Random, head: str, operand: Any) -> Iterator[Expr]:
    """The function at each kind of operands that it takes, which `operand(sort)` gives."""
    mode = rng.choice(MODES)
    width, more = rng.choice((1, 2, 5, 8, 16)), rng.choice((1, 3, 8))
    form, other = rng.choice(FLOATS), rng.choice(FLOATS)
    if head in CORE:
        yield make(head, tuple(operand(BOOL) for _ in range(1 if head == "not" else 2)), BOOL)
    elif head in ("=", "distinct", "ite"):
        for sort in (BOOL, INT, REAL, bits(width), form):
            a, b = operand(sort), operand(sort)
            yield make("ite", (operand(BOOL), a, b), sort) if head == "ite" else make(head, (a, b), BOOL)
    elif head in NUMBERS:
        for sort in (INT, REAL):
            of = BOOL if head in ("<", "<=", ">", ">=") else sort
            yield make(head, (operand(sort), operand(sort)), of)
            if head in ("+", "*"):
                yield make(head, (operand(sort), operand(sort), operand(sort)), of)
            if head == "-":
                yield make(head, (operand(sort),), of)
    elif head in ("div", "mod"):
        yield make(head, (operand(INT), operand(INT)), INT)
    elif head == "/":
        yield make(head, (operand(REAL), operand(REAL)), REAL)
    elif head == "to_real":
        yield smt.ToReal(operand(INT))
    elif head == "to_int":
        yield smt.ToInt(operand(REAL))
    elif head in ("bvneg", "bvnot"):
        yield make(head, (operand(bits(width)),), bits(width))
    elif head.startswith("bv"):
        compares = head.removeprefix("bv")[0] in "us" and head[3:] in ("lt", "le", "gt", "ge")
        yield make(head, (operand(bits(width)), operand(bits(width))), BOOL if compares else bits(width))
    elif head == "rotate_left":
        yield smt.RotateLeft(operand(bits(width)), rng.randint(0, width))
    elif head in ("zero_extend", "sign_extend"):
        yield (smt.ZeroExt if head[0] == "z" else smt.SignExt)(more, operand(bits(width)))
    elif head == "extract":
        low = rng.randint(0, width - 1)
        yield smt.Extract(rng.randint(low, width - 1), low, operand(bits(width)))
    elif head == "concat":
        yield smt.Concat(operand(bits(width)), operand(bits(more)))
    elif head == "to_fp":
        yield smt.fpFPToFP(mode, operand(form), other)
        yield smt.fpSignedToFP(mode, operand(bits(width)), form)
        yield smt.fpBVToFP(operand(bits(form.width)), form)
        yield smt.fpRealToFP(mode, operand(REAL), form)
    elif head == "to_fp_unsigned":
        yield smt.fpUnsignedToFP(mode, operand(bits(width)), form)
    elif head in ("fp.to_sbv", "fp.to_ubv"):
        yield (smt.fpToSBV if head[6] == "s" else smt.fpToUBV)(mode, operand(form), bits(rng.choice((8, 16, 32))))
    elif head == "fp.to_real":
        yield smt.fpToReal(operand(form))
    else:
        count = {"fp.fma": 3}.get(
            head, 2 if head[3:] in ("add", "sub", "mul", "div", "lt", "leq", "gt", "geq", "eq") else 1
        )
        rounds = head in ("fp.add", "fp.sub", "fp.mul", "fp.div", "fp.fma", "fp.sqrt", "fp.roundToIntegral")
        computes = rounds or head in ("fp.neg", "fp.abs")
        yield make(
            head, tuple(operand(form) for _ in range(count)), form if computes else BOOL, mode if rounds else None
        )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("head", sorted(_FUNCTIONS))
def test_every_function_is_computed_as_the_solver_computes_it(head: str) -> None:
    rng = random.Random(head)
    asked = [e for _ in range(40) for e in applications(rng, head, lambda sort: number(rng, sort))]
    over = session()
    wrong = []
    for e in asked:
        (said,) = smtlib.Script().conditions([e])[1]
        mine = value_of(e, tuple(a.data for a in e.args))
        if mine is None:  # SMT-LIB leaves it open
            assert head in ("div", "mod", "/", "fp.to_sbv", "fp.to_ubv", "fp.to_real")
            continue
        theirs = smtlib.value(over.send(f"(simplify {said})"), e.sort)
        if mine != theirs:
            wrong.append((said, mine, theirs))
    over.close()
    assert not wrong


def grown(rng: random.Random, sort: Sort, depth: int) -> Expr:
    """A random term of a sort, over three unknowns of each."""
    if depth == 0 or rng.random() < 0.1:
        return number(rng, sort) if rng.random() < 0.4 else smt.Const(named(f"{sort.text}{rng.randint(0, 2)}"), sort)
    while True:
        head = rng.choice(sorted(_FUNCTIONS))
        if found := [e for e in applications(rng, head, lambda s: number(rng, s)) if e.sort is sort]:
            e = rng.choice(found)
            return make(e.head, tuple(grown(rng, a.sort, depth - 1) for a in e.args), e.sort, e.data)


def at_random(rng: random.Random, terms: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    return [(c, number(rng, c.sort)) for c in constants(terms)]


@pytest.mark.long
@given(st.integers(0, 2**32), st.sampled_from([BOOL, INT, REAL, bits(8), FLOATS[0]]))
def test_what_is_simplified_is_equal_wherever_it_has_a_value(seed: int, sort: Sort) -> None:
    rng = random.Random(seed)
    e = grown(rng, sort, 4)
    simple = smt.simplify(e)
    assert simple.sort is sort
    assert smt.simplify(simple) is simple
    for _ in range(5):
        there = at_random(rng, [e])
        a, b = smt.Substitution(there)(e), smt.Substitution(there)(simple)
        if a.head == b.head == "value":
            assert a is b
        plain = smt.simplify(smt.substitute(e, *there))
        if plain.head == a.head == "value":
            assert plain is a


@pytest.mark.long
@given(st.integers(0, 2**32))
def test_terms_are_evaluated_to_what_they_become_with_values_in_place(seed: int) -> None:
    rng = random.Random(seed)
    terms = [grown(rng, rng.choice((BOOL, BOOL, INT, REAL, bits(8), FLOATS[0])), 4) for _ in range(3)]
    unknowns = constants(terms)
    given = [u for u in unknowns if rng.random() < 0.9]
    at = Evaluator(terms, given)
    values = [number(rng, u.sort) for u in given]
    for _ in range(6):
        values = [number(rng, u.sort) if rng.random() < 0.5 else v for u, v in zip(given, values, strict=True)]
        at.choose([v.value for v in values])
        there = smt.Substitution(zip(given, values, strict=True))
        for t in rng.sample(terms, len(terms)):
            found, numeral = at.value(t), there(t)
            if found is not None:
                assert numeral is smt.numeral(t.sort, found), t
            elif len(given) == len(unknowns) and not any(s.head in OPEN for s in subterms(terms)):
                raise AssertionError(f"{t} has no value at {values}")


OPEN = ("div", "mod", "/", "fp.to_ubv", "fp.to_sbv", "fp.to_real")  # without a value by 0, or of what is no number


def test_what_is_not_needed_is_not_evaluated() -> None:
    x, y, p = smt.Int(named("x")), smt.Int(named("y")), smt.Bool(named("p"))
    by_zero = smt.IntVal(7) / y == 1
    for e, values, value in (
        (smt.If(p, x, smt.IntVal(7) / y), (5, 0, True), 5),
        (smt.If(p, x, smt.IntVal(7) / y), (5, 0, False), None),
        (smt.And(by_zero, p), (5, 0, False), False),
        (smt.And(by_zero, p), (5, 0, True), None),
        (smt.Or(by_zero, p), (5, 0, True), True),
        (smt.Or(by_zero, p), (5, 0, False), None),
        (smt.Implies(by_zero, p), (5, 0, True), True),
        (smt.Implies(p, by_zero), (5, 0, False), True),
        (smt.Implies(p, by_zero), (5, 0, True), None),
        (x + y, (5, None, True), None),
    ):
        at = Evaluator([e], [x, y, p])
        at.choose(values)
        assert at.value(e) == value, (e, values)


SMALLEST = smt.FPSort(2, 3)  # 27 values: few enough to try all
EVERY = [smt.numeral(SMALLEST, b) for b in range(1 << SMALLEST.width) if form_of(SMALLEST).canonical(b) == b]


@pytest.mark.long
@pytest.mark.parametrize("head", ["fp.add", "fp.sub", "fp.mul", "fp.div"])
def test_normal_forms_of_floats_are_equal_at_all_values(head: str) -> None:
    x, y = (smt.Const(named(n), SMALLEST) for n in "xy")
    operands = [x, y, smt.fpNeg(x), smt.fpNeg(y), *EVERY]
    for p, q in itertools.product(operands[:4], operands):
        for e in (make(head, (p, q), SMALLEST, "RNE"), make(head, (q, p), SMALLEST, "RNE")):
            simple = smt.simplify(e)
            for a, b in itertools.product(EVERY, EVERY if q in (y, operands[3]) else EVERY[:1]):
                assert computed(e, (x, a), (y, b)).data == computed(simple, (x, a), (y, b)).data, (e, simple, a, b)


@pytest.mark.sampled(36)
@pytest.mark.parametrize("factor", EVERY, ids=str)
def test_normal_forms_of_fused_products_are_equal_at_all_values(factor: Expr) -> None:
    x, y = (smt.Const(named(n), SMALLEST) for n in "xy")
    for e in (
        smt.fpFMA("RNE", factor, x, y),
        smt.fpFMA("RNE", smt.fpNeg(x), factor, y),
        smt.fpFMA("RNE", x, y, factor),
    ):
        simple = smt.simplify(e)
        for a, b in itertools.product(EVERY, EVERY):
            assert computed(e, (x, a), (y, b)).data == computed(simple, (x, a), (y, b)).data, (e, simple, a, b)


NARROW = bits(3)
ON_BITS = (
    "bvadd",
    "bvsub",
    "bvmul",
    "bvneg",
    "bvnot",
    "bvshl",
    "bvlshr",
    "bvashr",
    "bvand",
    "bvudiv",
    "bvurem",
    "bvsrem",
)


def bit_term(rng: random.Random, depth: int) -> Expr:
    """A term of three bits over two unknowns: ring operations, shifts and masks by numerals as often as not, choices, parts."""
    if depth == 0:
        return (
            smt.BitVecVal(rng.getrandbits(3), NARROW) if rng.random() < 0.4 else smt.BitVec(named(rng.choice("xy")), 3)
        )
    parts = [bit_term(rng, depth - 1) for _ in range(2)]
    kind = rng.randrange(len(ON_BITS) + 3)
    if kind == len(ON_BITS):
        return smt.If(rng.choice((smt.ULT, smt.ULE))(*parts), bit_term(rng, depth - 1), parts[0])
    if kind == len(ON_BITS) + 1:
        wide = rng.choice((smt.ZeroExt, smt.SignExt))
        return smt.Extract(2, 0, wide(3, parts[0]) * wide(3, parts[1]))
    if kind == len(ON_BITS) + 2:
        return smt.If(parts[0] == parts[1], *(bit_term(rng, depth - 1) for _ in range(2)))
    head = ON_BITS[kind]
    return make(head, tuple(parts[:1] if head in ("bvneg", "bvnot") else parts), NARROW)


@pytest.mark.long
@given(st.integers(0, 2**32))
def test_normal_forms_of_bit_vectors_are_equal_at_all_values(seed: int) -> None:
    rng = random.Random(seed)
    a, b = bit_term(rng, 3), bit_term(rng, 3)
    said = [a == b, smt.ULT(a, b), a != b]
    formed, simple = Polynomials().rebuilt(said), [smt.simplify(e) for e in said]
    x, y = smt.BitVec(named("x"), 3), smt.BitVec(named("y"), 3)
    always = True
    for p, q in itertools.product(range(8), repeat=2):
        there = (x, smt.BitVecVal(p, NARROW)), (y, smt.BitVecVal(q, NARROW))
        values = [computed(e, *there) for e in said]
        assert [computed(e, *there) for e in formed] == values, (said, there)
        assert [computed(e, *there) for e in simple] == values, (said, there)
        always &= values[0] is TRUE
    if refuted_as_polynomials([a != b]):
        assert always


def test_a_product_of_many_factors_is_left_as_it_is() -> None:
    """Squares of squares: each has twice as many factors, and the sixtieth more than any memory holds."""
    x = square = smt.BitVec(named("x"), 32)
    for _ in range(60):
        square = make("bvmul", (square, square), square.sort)
    assert not refuted_as_polynomials([square != x])
    fourth = make("bvmul", (x * x, x * x), x.sort)
    assert refuted_as_polynomials([x * x * x * x != fourth])
    wide = smt.ZeroExt(32, square) * smt.ZeroExt(32, square)
    assert not refuted_as_polynomials([smt.Extract(31, 0, wide) != x])


def computed(e: Expr, *values: tuple[Expr, Expr]) -> Expr:
    """The numeral that a term is at these values, each of its functions computed as it stands."""
    for unknown, value in values:
        if e is unknown:
            return value
    found = value_of(e, tuple(computed(a, *values).data for a in e.args)) if e.args else e.data
    assert found is not None
    return smt.numeral(e.sort, found)


@pytest.mark.long
@given(st.integers(0, 2**32))
def test_the_solver_reads_every_term_and_agrees_about_its_value(seed: int) -> None:
    rng = random.Random(seed)
    e = grown(rng, rng.choice([BOOL, INT, bits(8), FLOATS[0]]), 3)
    there = at_random(rng, [e])
    value = smt.Substitution(there)(e)
    script = smtlib.Script()
    before, (said, *equations) = script.conditions([e, *(c == v for c, v in there)])
    over = session()
    printed = over.send(
        "\n".join([*before, *(f"(assert {q})" for q in equations), f"(check-sat)(eval {said} :completion true)"])
    )
    over.close()
    assert "error" not in printed, printed
    if value.head == "value":
        assert smtlib.value(printed.partition("\n")[2], e.sort) == value.data


@pytest.mark.parametrize("sort", [BOOL, INT, REAL, bits(1), bits(64), *FLOATS], ids=str)
def test_numerals_are_read_as_they_are_printed(sort: Sort) -> None:
    rng = random.Random(str(sort))
    for _ in range(50):
        n = number(rng, sort)
        assert smtlib.value(smtlib.number(n), sort) == n.data


def test_values_that_nobody_can_read_are_named() -> None:
    for said in ("(", "(- )", "(fp)", "what", "#q", ""):
        with pytest.raises(smtlib.Unreadable):
            smtlib.value(said, INT)


def test_a_term_is_one_object_until_terms_are_forgotten() -> None:
    x = smt.Int(named("x"))
    assert x is smt.Int(named("x"))
    assert x + 1 is x + smt.IntVal(1)
    assert smt.Const(named("x"), BOOL) is not x
    held = x + 2
    smt.forget()
    assert smt.BoolVal(True) is TRUE
    assert smt.Not(FALSE) is smt.Not(smt.BoolVal(False))
    assert smt.simplify(held == x + 2) is TRUE


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: smt.Int(named("x")) + smt.Bool(named("b")),
        lambda: smt.And(smt.Int(named("x"))),
        lambda: smt.BitVec(named("x"), 8) + smt.BitVec(named("y"), 16),
        lambda: smt.Int(named("x")) & 3,
        lambda: smt.If(smt.Bool(named("b")), smt.Int(named("x")), smt.Bool(named("c"))),
        lambda: smt.fpAdd(smt.NEAREST, smt.FPVal(1.0, FLOATS[0]), smt.FPVal(1.0, FLOATS[1])),
        lambda: smt.Int(named("x")) + 1.5,
        lambda: smt.UDiv(smt.Int(named("x")), 3),
    ],
)
def test_operands_of_other_sorts_are_refused(wrong: Any) -> None:
    with pytest.raises(smt.SortError):
        wrong()


def test_a_condition_is_no_truth_of_pythons() -> None:
    x, y = smt.Int(named("x")), smt.Int(named("y"))
    with pytest.raises(TypeError, match="no truth"):
        bool(x < y)
    assert x == x
    assert x in (y, x)
    assert y not in (x,)


def test_what_stands_twice_is_written_once_and_names_do_not_matter() -> None:
    def chain(name: str) -> Expr:
        x = smt.Int(named(name))
        for _ in range(200):
            x = x * x
        return x == 0

    said = smtlib.question([chain("x")])[0]
    assert len(said) < 20_000
    assert said == smtlib.question([chain("and then |")])[0]
    assert "; %0 variable(x)" in smtlib.legend(smtlib.question([chain("x")])[1])


def test_connectives_leave_out_what_is_plain() -> None:
    a, b = smt.Bool(named("a")), smt.Bool(named("b"))
    assert both(a, TRUE, b) is smt.And(a, b)
    assert either(a, FALSE, b) is smt.Or(a, b)
    assert both() is TRUE
    assert either(a, TRUE) is TRUE
    assert negation(TRUE) is FALSE
    assert World("w").fresh("x", INT) is not World("w", introduced=1).fresh("x", INT)


@pytest.mark.long
def test_deep_terms_are_walked_without_recursion() -> None:
    x = smt.Int(named("x"))
    for i in range(20 * sys.getrecursionlimit()):
        x = smt.If(smt.Bool(named(f"b{i % 7}")), x, smt.IntVal(i))
    assert smtlib.question([x == 0])[0]
    assert smt.simplify(x).sort is INT
    assert smt.Substitution([(smt.Bool(named("b0")), FALSE)])(x).sort is INT
    at = Evaluator([x], flags := [smt.Bool(named(f"b{i}")) for i in range(7)])
    at.choose([True] * len(flags))
    assert at.value(x) is None


# Expressions of the library

X, Y = z3.Ints("x y")
V, W = z3.BitVecs("v w", 8)
F, G = z3.FPs("f g", z3.Float32())
EXPRESSIONS = [
    X + Y - 3 * X, -X / Y, X % 7, z3.If(X > Y, X, -Y), z3.And(X >= 1, z3.Or(X < Y, Y <= 2)), z3.Implies(X == Y, z3.Not(X != 0)),
    z3.Xor(X > 0, Y > 0), z3.ToReal(X) / 3, z3.ToInt(z3.ToReal(X) / 2), z3.Distinct(X, Y), z3.Sum([X, Y, 1]), z3.Product([X, Y]),
    V + W, V - W, V * W, V / W, z3.UDiv(V, W), z3.URem(V, W), z3.SRem(V, W), V % W, V & W, V | W, V ^ W, ~V, -V, V << W, V >> W,
    z3.LShR(V, W), V < W, z3.ULT(V, W), z3.UGT(V, W), z3.UGE(V, W), z3.ULE(V, W), V >= W, z3.Extract(5, 2, V), z3.Concat(V, W),
    z3.ZeroExt(3, V), z3.SignExt(3, V), z3.RotateLeft(V, 3),
    z3.fpAdd(z3.RNE(), F, G), z3.fpSub(z3.RTZ(), F, G), z3.fpMul(z3.RTP(), F, G), z3.fpDiv(z3.RTN(), F, G),
    z3.fpFMA(z3.RNE(), F, G, F),
    z3.fpSqrt(z3.RNE(), F), z3.fpRoundToIntegral(z3.RTZ(), F), z3.fpNeg(F), z3.fpAbs(F), z3.fpLT(F, G), F <= G, z3.fpEQ(F, G),
    z3.fpIsNaN(F), z3.fpToFP(z3.RNE(), F, z3.Float16()), z3.fpToFP(z3.RNE(), V, z3.Float32()),
    z3.fpToFPUnsigned(z3.RNE(), V, z3.Float32()), z3.fpBVToFP(z3.Concat(V, V, W, W), z3.Float32()),
    z3.fpToSBV(z3.RTZ(), F, z3.BitVecSort(16)),
    z3.fpToReal(F), F + 1.5, z3.FPVal(-0.0, z3.Float32()), z3.BoolVal(True), z3.RealVal("1/3"),
]  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_expressions_of_the_library_become_the_terms_that_they_are(expression: Any) -> None:
    rng = random.Random(str(expression))
    e = term_of(expression)
    for _ in range(8):
        there = at_random(rng, [e])
        values = [(_unknown(c), _numeral(n)) for c, n in there]
        mine, theirs = smt.Substitution(there)(e), term_of(z3.simplify(z3.substitute(expression, *values)))
        assert mine is theirs or mine.head != "value" or theirs.head != "value"


def _unknown(c: Expr) -> Any:
    return {str(v): v for v in (X, Y, V, W, F, G)}[c.data.parts[0]]


def _numeral(n: Expr) -> Any:
    if n.sort is INT:
        return z3.IntVal(n.data)
    if n.sort.kind == "BitVec":
        return z3.BitVecVal(n.data, n.sort.width)
    return z3.simplify(z3.fpBVToFP(z3.BitVecVal(n.data, 32), z3.Float32()))


def test_what_terms_have_no_function_for_is_refused() -> None:
    for wrong in (z3.Array("a", z3.IntSort(), z3.IntSort()), z3.StringVal("s"), z3.ForAll([X], X > 0)):
        with pytest.raises(smt.SortError):
            term_of(wrong)
