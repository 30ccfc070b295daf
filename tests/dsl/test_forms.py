"""Every form in the tables of the language parses, type-checks at the right dtypes, and formats to itself."""

from __future__ import annotations

import pytest

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule, Sort
from morok.dsl.format import WIDTH, format_text
from morok.dsl.parse import parse_text
from morok.errors import RuleError

INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
SINTS = INTS[:4]
FLOATS = ("f16", "bf16", "f32", "f64")
NUMBERS = (*INTS, "index", *FLOATS)
SCALARS = ("bool", *NUMBERS)
VALUES = (*SCALARS, "f8e4m3", "f8e5m2")


def rule(text: str, head: str = "") -> CheckedRule:
    (found,) = check_text(f"{head}\ngroup g\n\n{text}\n").rules()
    return found


def dtypes(r: CheckedRule) -> set[tuple[str, ...]]:
    return {tuple(i.dtypes.values()) for i in r.instances}


# The rule, and the dtypes that its variables may take: one entry for each variable, in order of appearance; None: not looked at.
FORMS = {
    "ordered": ("r: Sub(x, y) ~> Neg(Sub(y, x))", [NUMBERS]),
    "commutative": ("r: Add[x, Add(y, z)] ~> Add(Add(x, y), z)", [NUMBERS]),
    "same node": ("r: Idiv(x, x) ~> one(x)", [(*INTS, "index")]),
    "ignored": ("r: And[x, Or[x, _y]] ~> x", [("bool", *INTS)]),
    "wildcard": ("r: Sub(_: int, _) ~> 7", [INTS]),
    "any node": ("r: x: bool if vmin(x) == vmax(x) ~> const(vmin(x), bool)", []),
    "zero": ("r: Mul[x: !float, @zero] ~> zero(x)", [(*INTS, "index")]),
    "one": ("r: Mul[x, @one] ~> x", [NUMBERS]),
    "true": ("r: And[x, @true] ~> x", []),
    "false": ("r: Or[x, @false] ~> x", []),
    "const": ("r: Sub(@const, x: int) ~> x", [INTS]),
    "const value": ("r: Mul[x: int, @const(v)] if v == 1 ~> x", [INTS]),
    "const node and value": ("r: Max[c @const(v), x: int] if vmax(x) <= v ~> c", [INTS]),
    "vconst": ("r: Neg(_c @vconst(vs)) let ns = [eval(Neg, v) for v in vs] ~> VConst(ns)", [NUMBERS]),
    "anyconst": ("r: Neg(_c @anyconst(vs)) let ns = [eval(Neg, v) for v in vs] ~> VConst(ns)", [NUMBERS]),
    "integer literal": ("r: Add[x, 3] ~> Add(x, 3)", [(*INTS, "index")]),
    "negative literal": ("r: Add[x, -1] ~> Sub(x, 1)", [(*INTS, "index")]),
    "float literal": ("r: Add[x, 2.5] ~> Add(x, 2.5)", [FLOATS]),
    "negative zero": ("r: Add[x, -0.0] ~> x", [FLOATS]),
    "exponent": ("r: Add[x, 1e-3] ~> Add(x, 1e-3)", [FLOATS]),
    "inf": ("r: Max[_x: float, inf] ~> inf assuming nnan", [FLOATS]),
    "negative inf": ("r: Min[_x: float, -inf] ~> -inf assuming nnan", [FLOATS]),
    "nan": ("r: Add[_x, nan] ~> nan", [FLOATS]),
    "truth": ("r: Or[_x, true] ~> true", []),
    "bind": ("r: n @ Max[Max[x, y], x] ~> Max(x, y)", [NUMBERS]),
    "op choice": ("r: (Idiv | Mod)(x, 1) ~> Idiv(x, 1)", [(*INTS, "index")]),
    "commutative op choice": ("r: (Add | Mul)[x: int, y] ~> Add(x, y)", [INTS]),
    "alternatives": ("r: Not(Lt(x: int, y)) | Ge(x: int, y) ~> Le(y, x)", [INTS]),
    "alternative operands": ("r: Mul[x: int, @zero | Neg(@zero)] ~> zero(x)", None),
    "struct": ("r: Reduce { src, ranges: rs, op: Add } ~> Reduce { src, ranges: rs, op: Max }", [SCALARS]),
    "struct rest": ("r: Reduce { src: x, ranges: [], .. } ~> x", [SCALARS]),
    "field bound": ("r: Reduce { src, ranges: [_r, rest..], op } ~> Reduce { src, ranges: rest, op }", [SCALARS]),
    "None": (
        "r: Load(Index { buffer: b, indices: is, gate: None }) ~> Load(Index { buffer: b, indices: is })",
        [(*INTS, "index")],
    ),
    "Some": (
        "r: Index { buffer: b, indices: [i], gate: Some(g) } ~> Index { buffer: b, indices: [i], gate: g }",
        [(*INTS, "index")],
    ),
    "sequence": ("r: Vectorize(xs..) if len(xs) == 1 ~> xs[0]", []),
    "first and rest": ("r: End(body, first, rest..) if vmax(first) < 0 ~> End(body, rest..)", []),
    "dtype": ("r: Add(x: i32, y) ~> Add(y, x)", []),
    "bool": ("r: Not(Not(x: bool)) ~> x", []),
    "index": ("r: Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x", []),
    "void": ("r: After(x: void) ~> x", []),
    "class int": ("r: Add(x: int, y) ~> Add(y, x)", [INTS]),
    "class sint": ("r: Add(x: sint, y) ~> Add(y, x)", [SINTS]),
    "class uint": ("r: Add(x: uint, y) ~> Add(y, x)", [INTS[4:]]),
    "class float": ("r: Add(x: float, y) ~> Add(y, x)", [FLOATS]),
    "class number": ("r: Add(x: number, y) ~> Add(y, x)", [NUMBERS]),
    "class any": ("r: Where(c, x: any, x) ~> x", [SCALARS]),
    "class ptr": ("r: After(x: ptr) ~> x", []),
    "union": ("r: Add(x: (i8 | float), y) ~> Add(y, x)", [("i8", *FLOATS)]),
    "not": ("r: Where(c, x: !float, x) ~> x", [("bool", *INTS, "index")]),
    "index?": ("r: Where(_c, x: index?, x) ~> x", []),
    "vector": ("r: Neg(Neg(x: f32x4)) ~> x", []),
    "vector variable": ("r: Neg(x: T x n) if n > 2 ~> Neg(x)", [NUMBERS]),
    "pointer": ("r: Index(b: ptr(T), i: index) ~> Index(b, i)", []),
    "dtype variable": ("r: Add(x: T, y: T) ~> Add(y, x)", [NUMBERS]),
    "cast": ("r: Cast(x: A, B) ~> Cast(x, B)", [VALUES, VALUES]),
    "cast to itself": ("r: Cast(x: A, A) ~> x", [VALUES]),
    "cast to a dtype": ("r: Cast(Cast(x: bool, i32), bool) ~> x", []),
    "cast to a class": ("r: Cast(x: bool, T: int) ~> Cast(x, T)", [INTS]),
    "bitcast": ("r: Bitcast(Bitcast(x: A, B), A) ~> x", None),
    "assuming": ("r: Add[x: float, @zero] ~> x assuming nsz", [FLOATS]),
    "two assumptions": ("r: Mul[x: float, @zero] ~> zero(x) assuming nnan, nsz", [FLOATS]),
    "let": ("r: Add[Add[x: int, @const(a)], @const(b)] let c = a + b ~> Add(x, c)", [INTS]),
    "several lets": ("r: Add[x: int, @const(a)] let b = a * 2, c = b - a if c > 0 ~> Add(x, c)", [INTS]),
    "chained comparison": ("r: Add[x: int, @const(a)] if 0 <= a < 9 and not a == 3 or a != 4 ~> Add(x, a)", [INTS]),
    "arithmetic": (
        "r: Add[x: int, @const(a)] if -a - a * a // 3 % 5 & 6 | 7 ^ 8 << 1 >> ~a == abs(a) + min(a, 1) + gcd(a, max(a, 6)) ~> x",
        [INTS],
    ),
    "truncating": ("r: Add[x: int, @const(a)] if a != 0 and tdiv(7, a) == tmod(7, a) ~> x", [INTS]),
    "powers": ("r: Mul[x: int, @const(c)] if is_pow2(c) ~> Shl(x, log2(c))", [INTS]),
    "facts": ("r: n @ Add(a: int, b) if no_overflow(n) and vmin(n) > vmax(Add(b, a)) and not same(a, b) ~> a", [INTS]),
    "range facts": (
        "r: Reduce { src: x, ranges: [r], op: Max } if free_of(x, r) and lanes(x) == 1 ~> subst(x, r, 0)",
        None,
    ),
    "dtype facts": (
        "r: Cast(Cast(x: A, B), A) if safe_cast(A, B) and is_int(A) and not is_float(B) and bits(dtype(x)) < 64 ~> x",
        None,
    ),
    "eval": ("r: Add(@const(a), @const(b)) ~> eval(Add, a, b)", [NUMBERS]),
    "eval of a cast": ("r: Cast(@const(v): A, B) let w = eval(Cast, v, B) ~> const(w, B)", [SCALARS, SCALARS]),
    "const target": ("r: Idiv(x: int, x) ~> const(1, dtype(x))", [INTS]),
    "value in operand position": (
        "r: Idiv(Idiv(x: index, @const(a)), @const(b)) if a > 0 and b > 0 ~> Idiv(x, a * b)",
        [],
    ),
    "gep": ("r: Gep { vector: Gep { vector: x, indices: i }, indices: o } ~> Gep(x, [i[k] for k in o])", []),
    "gep positional": ("r: Gep(Vectorize(xs..), [i]) ~> xs[i]", []),
    "comprehension": ("r: Neg(x: f32 x n) if n > 1 ~> Vectorize(Neg(Gep(x, [i])) for i in 0..lanes(x))", []),
    "inclusive range": ("r: Vectorize(xs..) if all(same(xs[0], xs[i]) for i in 0..=0) ~> Vectorize(x for x in xs)", []),
    "zip": (
        "r: Neg(Vectorize(xs..)) if any(same(a, b) for a, b in zip(xs, xs)) ~> Vectorize(Neg(x) for x in xs)",
        [NUMBERS],
    ),
    "Invalid": ("r: Neg(Where(c, x: index?, Invalid)) ~> Where(c, Neg(x), Invalid)", []),
    "Noop": ("r: Store(Index { buffer: _b, indices: [Invalid], .. }, _v, _rs..) ~> Noop", []),
    "shared operands": ("r: Load { index, alt: None } ~> Load(index)", []),
    "two sequences": ("r: Pad(x, begins.., ends..) ~> Pad { src: x, begins: begins, ends: ends }", []),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    text, expected = FORMS[name]
    made = rule(text)
    assert made.name == "g.r"
    assert made.instances
    if expected is not None:
        found = [set(made.domains[v]) for v in made.domains]
        assert found == [set(e) for e in expected]
    formatted = format_text(f"group g\n\n{text}\n")
    assert parse_text(formatted) == parse_text(f"group g\n\n{text}\n")
    assert format_text(formatted) == formatted


LANGUAGE = """
helpers "named_by_rules"
group div_mod_recombine "x % n and x // n put together again"

core: Add[Mod(x, n), Mul[Idiv(x, n), n]] ~> x
    "the division algorithm: x = (x // n) * n + x % n"

composed: Add[Mod(Idiv(x, a @const(av)), c @const(cv)), Mul[Idiv(x, @const(bv)), c]]
    if av * cv == bv
    ~> Idiv(x, a)

group range_based_mod_div "facts about bounds make divisions disappear"

mod_in_range: Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x

nested_div: Idiv(Add[Idiv(a: index, @const(c1)), @const(c2)], @const(c3))
    if c1 > 0 and c3 > 0 and c2 >= 0 and vmin(a) >= 0
    let c = c1 * c2, d = c1 * c3
    ~> Idiv(Add(a, c), d)

for op in binary [Add, Sub, Mul, Max, And, Or, Xor] {
    fold: op(@const(a), @const(b)) ~> eval(op, a, b)
}

extern split_terms(n: index, d: const) -> (q: index, r: index)?     # ? : may decline
    requires d > 0
    ensures  n == d * q + r

factor_remainder: Idiv(x: index, @const(d))
    if d > 0 and vmin(x) >= 0
    let (q, r) = split_terms(x, d)
    if vmin(r) >= 0
    => Add(q, Idiv(r, d))
"""


def test_the_examples_of_the_language() -> None:
    checked = check_text(LANGUAGE)
    names = [r.name for r in checked.rules()]
    assert names[:4] == [
        "div_mod_recombine.core",
        "div_mod_recombine.composed",
        "range_based_mod_div.mod_in_range",
        "range_based_mod_div.nested_div",
    ]
    assert names[4:11] == [f"range_based_mod_div.fold.{op}" for op in ("Add", "Sub", "Mul", "Max", "And", "Or", "Xor")]
    last = list(checked.rules())[-1]
    assert last.syntax.partial
    assert set(last.externs) == {"split_terms"}
    assert checked.groups[0].doc == "x % n and x // n put together again"
    assert set(dict.fromkeys(str(i) for i in next(checked.rules()).instances)) == {f"$1={d}" for d in (*INTS, "index")}


def test_every_op_of_a_kind() -> None:
    made = list(
        check_text(
            "group g\n\nfor op in ternary [*] {\n    f: op(@const(a), @const(b), @const(c)) ~> eval(op, a, b, c)\n}\n"
        ).rules()
    )
    assert [r.name for r in made] == ["g.f.Where", "g.f.MulAcc"]


def test_template_variables_stand_on_both_sides() -> None:
    made = list(
        check_text("group g\n\nfor op in binary [Lt, Le] {\n    f: Not(op(x: int, y)) ~> op(y, x)\n}\n").rules()
    )
    assert [r.syntax.target.name for r in made] == ["Lt", "Le"]
    assert [r.syntax.pattern.args[0].ops for r in made] == [("Lt",), ("Le",)]


def test_ends() -> None:
    text = 'group g "doc"\n@ends a, b "why"\n@ends c "because"\n\na: Neg(Neg(x)) ~> x\n'
    (group,) = check_text(text).syntax.groups
    assert [(e.names, e.reason, e.span.line) for e in group.ends] == [(("a", "b"), "why", 2), (("c",), "because", 3)]
    assert format_text(text) == text
    names = ", ".join(f"a_long_name_of_rule_{n}" for n in range(9))
    once = format_text(text.replace("a, b", names))
    assert once.split("\n")[1] == "@ends"
    assert all(len(line) <= WIDTH for line in once.split("\n"))
    assert format_text(once) == once
    with pytest.raises(RuleError, match="doc string"):
        check_text("group g\n@ends a\n\na: Neg(Neg(x)) ~> x\n")


def test_context_and_pack() -> None:
    text = """helpers "named_by_rules"
extern f(x: index) -> (y: index)
group g "doc"
@context Kernel;

r: Neg(x: index) let y = f(x) ~> y
"""
    checked = check_text(text, pack="mine")
    (made,) = checked.rules()
    assert made.name == "mine.g.r"
    assert made.context == "Kernel"
    assert made.helpers == "named_by_rules"
    assert parse_text(format_text(text)) == parse_text(text)


def test_another_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    from morok import dialect
    from morok.ir.morok_dialect import MOROK

    class Other(type(MOROK)):  # type: ignore[misc]
        name = "other"

    monkeypatch.setitem(dialect._registry, "other", Other())
    (made,) = check_text("dialect other\ngroup g\n\nr: Neg(Neg(x)) ~> x\n").rules()
    assert made.dialect.name == "other"


# What the checker makes explicit.


def test_dtype_operands_become_types() -> None:
    made = rule("r: Cast(x: A, B) ~> Cast(x, B)")
    assert isinstance(made.syntax.pattern, S.POp)
    assert isinstance(made.syntax.pattern.args[1], S.PType)
    assert isinstance(made.syntax.target, S.ECall)
    assert isinstance(made.syntax.target.args[1], S.EType)
    assert set(made.domains) == {"A", "B"}


def test_fields_become_structs() -> None:
    made = rule("r: Gep(x, [0, i]) ~> Gep(x, [i, 0])")
    assert isinstance(made.syntax.pattern, S.PStruct)
    assert [f.name for f in made.syntax.pattern.fields] == ["vector", "indices"]
    assert isinstance(made.syntax.pattern.fields[1].value, S.EList)
    assert isinstance(made.syntax.target, S.EStruct)
    assert made.bindings["i"].sort is Sort.VALUE


def test_leaves_become_ops() -> None:
    made = rule("r: Neg(Invalid) ~> Invalid")
    assert made.syntax.pattern == S.POp(("Neg",), (S.POp(("Invalid",), ()),))
    assert made.syntax.target == S.ECall("Invalid", ())


def test_bindings() -> None:
    made = rule("r: Add[c @const(v), x: index] let d = v + 1 if d > vmin(x) ~> c")
    assert {n: b.sort for n, b in made.bindings.items()} == {
        "c": Sort.NODE,
        "v": Sort.VALUE,
        "x": Sort.NODE,
        "d": Sort.VALUE,
    }
    assert made.bindings["c"].constant
    assert made.bindings["v"].constant
    assert made.bindings["d"].type is None
    assert made.bindings["v"].type is not None
    assert made.bindings["v"].type.element == "index"


def test_invalid_is_admitted_only_where_asked_for() -> None:
    made = rule("r: Where(c, x: index?, y: index) ~> Where(Not(c), y, x)")
    assert made.bindings["x"].invalid_ok
    assert not made.bindings["y"].invalid_ok


def test_constants_take_the_dtype_of_their_position() -> None:
    made = rule("r: Add[x: i16, @const(v)] ~> Add(x, v + 1)")
    target = made.syntax.target
    assert isinstance(target, S.ECall)
    assert made.type_of(target.args[1]).element == "i16"
    assert made.sort_of(target.args[1]) is Sort.VALUE


def test_lanes() -> None:
    made = rule("r: Add(x: int, Where(c, y, z)) ~> Where(c, Add(x, y), Add(x, z))")
    x, y, c = (made.bindings[n].type for n in "xyc")
    assert x is not None
    assert y is not None
    assert c is not None
    assert x.lanes == y.lanes
    assert c.lanes != x.lanes  # a scalar condition may govern all lanes
    assert made.pointwise
    assert rule("r: Neg(x: f32x4) ~> Neg(x)").bindings["x"].type.lanes == 4  # type: ignore[union-attr]
    assert not rule("r: Vectorize(x) ~> x").pointwise


def test_bitcast_keeps_the_width() -> None:
    made = rule("r: Bitcast(x: A, B) ~> Bitcast(x, B)")
    assert ("i32", "f32") in dtypes(made)
    assert ("i32", "f64") not in dtypes(made)
    assert ("index", "i64") not in dtypes(made)


def test_dtype_guards_leave_the_instances_alone() -> None:
    made = rule("r: Cast(Cast(x: A, B), A) if safe_cast(A, B) ~> x")
    assert len(made.instances) == len(VALUES) ** 2


def test_what_no_op_looks_at_is_any() -> None:
    made = rule("r: Reshape(Reshape(x, _ms..), ns..) ~> Reshape(x, ns..)")
    assert made.bindings["x"].type is not None
    assert made.bindings["x"].type.element == "any"
    assert made.bindings["ns"].sort is Sort.NODES
    assert len(made.instances) == 1


def test_places() -> None:
    made = rule("r: Load(Index(b, i: index)) ~> Load(Index(b, Add(i, 0)))")
    assert made.bindings["b"].type is not None
    assert made.bindings["b"].type.place
    made = rule("r: Load(Index(b: ptr(f32), i: index)) ~> Load(Index(b, i))")
    assert made.bindings["b"].type == made.bindings["b"].type.__class__(
        "f32", True, made.bindings["b"].type.lanes, pointer=True
    )  # type: ignore[union-attr]


def test_examples_run() -> None:
    from morok.rewrite.examples import run_examples

    good = check_text(
        "group g\n\nr: Add[x: int, 0] ~> x\n    example Add(x: i32, 0) ~> x: i32\n    example Add(0, y: u8) ~> y: u8\n"
    )
    outcome = run_examples(good)
    assert (outcome.count, outcome.errors) == (2, [])
    wrong = ("Add(x: i32, 1) ~> x: i32", "Add(x: i32, 0) ~> y: i32", "Add(x: i3, 0) ~> x")
    text = "group g\n\nr: Add[x: int, 0] ~> x\n" + "".join(f"    example {e}\n" for e in wrong)
    outcome = run_examples(check_text(text, "f.rules"))
    assert outcome.count == 3
    assert [e.place.line for e in outcome.errors if e.place] == [4, 5, 6]
    assert all(e.code == "MRK107" for e in outcome.errors)


def test_examples_of_templates_belong_to_one_op() -> None:
    from morok.rewrite.examples import run_examples

    text = (
        "group g\n\nfor op in binary [Max, Min] {\n    r: op(x, x) ~> x\n        example Min(x: i32, x) ~> x: i32\n}\n"
    )
    outcome = run_examples(check_text(text))
    assert (outcome.count, outcome.errors) == (1, [])


def test_the_pattern_decides_the_dtypes() -> None:
    with pytest.raises(RuleError, match="does not type-check at float"):
        rule("r: Sub(x, x) ~> 0")
    assert set(rule("r: Sub(x: !float, x) ~> 0").domains.values()) == {(*INTS, "index")}


def test_a_promise_stands_behind_the_target() -> None:
    text = "group g\n\nr: Exp(x: f32) ~> Exp2(Mul(x, 1.442695)) within 1.5 ulp assuming nnan\n"
    found = rule(text[text.index("r:") :])
    assert found.syntax.within == 1.5
    assert found.syntax.assuming == ("nnan",)
    assert format_text(text) == text
    assert rule("r: Exp(x: f32) ~> Exp(x)").syntax.within is None


@pytest.mark.parametrize("promise", ["1 ulps", "0.25 ulp", "inf ulp", "nan ulp", "true ulp", "ulp", "-1 ulp"])
def test_a_promise_is_half_an_ulp_or_more(promise: str) -> None:
    with pytest.raises(RuleError):
        rule(f"r: Exp(x: f32) ~> Exp2(x) within {promise}")


def test_bindings_that_do_not_fit_have_a_line_each() -> None:
    bindings = ", ".join(f"a_binding_with_a_long_name_{i} = Add(x, {i})" for i in range(4))
    total = "Add(Add(a_binding_with_a_long_name_0, a_binding_with_a_long_name_1), Max(a_binding_with_a_long_name_2, x))"
    text = format_text(
        f'group g\n\nr: Neg(x: i32) let {bindings} ~> Sub({total}, a_binding_with_a_long_name_3)\n    "doc"\n'
    )
    lines = text.splitlines()
    assert lines[3:7] == [
        "    let a_binding_with_a_long_name_0 = Add(x, 0),",
        *(f"        a_binding_with_a_long_name_{i} = Add(x, {i})" + "," * (i < 3) for i in (1, 2, 3)),
    ]
    assert format_text(text) == text


def test_an_example_that_would_need_a_context() -> None:
    from morok.rewrite.examples import run_examples

    text = """\
helpers "named_by_rules"
extern place(x: index) -> (n: const)?
group g "with a context"
@context Plan;
r: Neg(x: index)
    let n = place(x)
    => Sub(n, x)
    "n comes from a plan"
    example Neg(x: index) ~> Sub(0, x: index)
"""
    (error,) = run_examples(check_text(text, "f.rules")).errors
    assert error.code == "MRK107"
    assert "its helpers take a context" in str(error)
