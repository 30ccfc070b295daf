"""What is wrong with a rule file is said with a code, a place, what was expected, and a hint; and all of it at once."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_file, check_text
from morok.errors import RuleError


def problems(text: str) -> list[tuple[str, int, int, str]]:
    with pytest.raises(RuleError) as caught:
        check_text(text, "f.rules")
    found = []
    for e in caught.value.errors:
        assert e.place is not None
        assert e.place.file == "f.rules"
        found.append((e.code, e.place.line, e.place.column, str(e)))
    return found


def problem(rule: str, head: str = "") -> str:
    found = problems(f"{head}group g\n\n{rule}\n")
    assert len(found) == 1, found
    return found[0][3]


# rule -> parts of the message
MISTAKES = {
    # syntax
    "a: Add(x, y ~> x": ["MRK101", "f.rules:3:7", "this `(` is never closed", "      ^"],
    "a: Add(x, y)": ["MRK101", "ends too early", "expected: `~>`, `=>`"],
    "a: Add(x, y) ~>": ["MRK101", "expected: an expression"],
    "a: ) ~> x": ["MRK101", "unexpected `)`", "expected: a pattern"],
    "a: Neg(Neg($x)) ~> x": ["MRK101", "unexpected character '$'", "f.rules:3:12"],
    "a: Neg(if) ~> x": ["MRK101", "`if` is a reserved word"],
    "a: Neg(x: index) if vmin(x) = 3 ~> x": ["MRK101", "comparison is written =="],
    "a: Neg(Neg(x)) ~> x: int": ["MRK101", "belongs to a variable of the pattern"],
    'a: Neg(Neg(x)) ~> x\n    "no end': ["MRK101", "this string is not closed", "f.rules:4:5"],
    "a: Neg(x: f32 y 3) ~> Neg(x)": ["MRK101", "`x` and a number of lanes"],
    "a: Neg(x: pointer(f32)) ~> Neg(x)": ["MRK101", "takes no dtype", "ptr(T)"],
    "a: Mul(x, @zero(v)) ~> x": ["MRK101", "@zero has no value to bind"],
    "a: Add(x, 1e999) ~> x": ["MRK101", "too large for any float", "write inf"],
    "a: Reduce { .., src } ~> src": ["MRK101", "`..` stands once, as the last field"],
    "a: (x | 3)(y) ~> y": ["MRK101", "no choice of ops", "(Add | Mul)(x, y)"],
    "for op in nullary [Add] {\n    a: op(x) ~> x\n}": ["MRK101", "unary, binary or ternary"],
    "a: Neg(Neg(x)) ~> x\n    example Neg(Neg(x: i32) ~> x": ["MRK101", "this example is not whole"],
    "a: Vectorize(xs..) ~> Vectorize([x for x in xs, xs[0]])": [
        "MRK101",
        "a comprehension stands alone in its brackets",
    ],
    # names
    "a: Neg(x: float) let _v = eval(Exp2, 0.0) ~> Neg(Neg(x))": [
        "MRK102",
        "f.rules:3:27",
        "the dtype that Exp2 is evaluated at does not follow",
        "hint: a value that the pattern binds",
    ],
    "a: Neg(x: float) if eval(Lt, 0.0, 1.0) ~> x": ["MRK102", "the dtype that Lt is evaluated at"],
    "a: Gep { vector: x: T, indices: [0] } if bits(T) == 32 ~> Gep(x, [1])": [
        "MRK102",
        "the dtype `T`",
        "ask for dtype(x)",
    ],
    "a: Flip { src: x: i32, axes: [0, 1] } ~> x": [
        "MRK102",
        "f.rules:3:31",
        "axes of Flip is a list of true and false, not 0",
    ],
    "a: Flip(x: i32, f) ~> Flip(x, [1 for _g in f])": ["MRK102", "of true and false, not a list of numbers"],
    "a: Permute { src: x: i32, axes: [true] } ~> x": ["MRK102", "axes of Permute is a list of numbers, not true"],
    "a: Sub(x: float, x) ~> -1": [
        "MRK102",
        "the dtype of an integer constant must be int | index, not float",
        "hint: write -1.0",
    ],
    "a: Add(x, y) if vmim(x) > 0 ~> x": ["MRK103", "there is no op, function or helper `vmim`", "did you mean vmin?"],
    "a: Ad(x, y) ~> x": ["MRK103", "there is no op `Ad`", "did you mean", "Add"],
    "a: Neg(x) ~> neg(x)": ["MRK103", "no op, function or helper `neg`", "Neg"],
    "a: Reduce { sorc: x, .. } ~> x": ["MRK103", "Reduce has no field `sorc`", "did you mean src?"],
    "a: Neg(x) ~> Reduce { src: x, rnges: x, op: Add }": [
        "MRK103",
        "Reduce has no field `rnges`",
        "did you mean ranges?",
    ],
    "a: Add(abc, y) ~> abd": ["MRK103", "`abd` is not bound", "did you mean abc?"],
    "a: Add(x, _y) ~> _y": ["MRK103", "`_y` is matched, not bound", "without `_`"],
    "a: Neg(x) | Not(y) ~> x": ["MRK103", "bound on one side of `|` only"],
    "a: Add(x: itn, y) ~> x": ["MRK103", "there is no dtype `itn`", "did you mean int?"],
    "a: Cast(x: A, B) ~> Cast(x, C)": ["MRK103", "there is no dtype `C`"],
    "a: Add[x: float, @zero] ~> x assuming nzs": ["MRK103", "`nzs` is no assumption", "did you mean nsz?"],
    "a: Reduce { src: x, op: Ad, .. } ~> x": ["MRK103", "there is no op `Ad`"],
    "for op in binary [Add, Sbu] {\n    a: op(x, x) ~> op(x, x)\n}": [
        "MRK103",
        "there is no op `Sbu`",
        "did you mean Sub?",
    ],
    # dtypes
    "a: Cast(x: f16, f8e4m3) ~> Cast(const(1, f8e4m3), f8e4m3)": [
        "MRK102",
        "f.rules:3:33",
        "const(..) makes no constants of f8e4m3",
        "expected: a dtype of the class `any`",
        "hint: a constant of another dtype may be converted to f8e4m3",
    ],
    "a: Cast(x: f8e5m2, f16) ~> Cast(zero(x), f16)": ["MRK102", "zero(..) makes no constants of f8e5m2"],
    "a: Cast(x: f8e5m2, f16) ~> Cast(identity(Add, x), f16)": ["MRK102", "identity(..) makes no constants of f8e5m2"],
    "a: Sqrt(x: int) ~> x": ["MRK102", "operands and result of Sqrt must be float, not int"],
    "a: Add(x: i32, y: f32) ~> x": ["MRK102", "must be i32, not f32"],
    "a: Add(x, x) ~> Shl(x, 1)": [
        "MRK102",
        "does not type-check at float | index",
        "annotate a variable of the pattern: x: int",
    ],
    "a: Sub(x, x) ~> 0": ["MRK102", "does not type-check at float", "(int | index)"],
    "a: Cast(x: A, B) ~> x": ["MRK102", "must be B, not A"],
    "a: Add(x: A, y: B) ~> x": ["MRK102", "must be A, not B"],
    "a: Eq(x: int, y) ~> Lt(0, 1)": ["MRK102", "does not follow from anything bound"],
    "a: Cast(Gep(@vconst(vs): i16, is), i32) ~> Cast(VConst(vs[i] for i in is), i32)": [
        "MRK102",
        "does not follow from anything",
    ],
    "a: Add[Add[x, @const(a)], @const(b)] ~> Add(x, a + b)": [
        "MRK102",
        "may be a constant of dtype float",
        "eval(Add, a, b)",
    ],
    "a: And[And[x, @const(a)], @const(b)] ~> And(x, a & b)": ["MRK102", "dtype bool", "eval(And, a, b)"],
    "a: Add[x: float, @const(a)] if a > 0 ~> x": ["MRK102", "a mathematical integer"],
    "a: Add[x: int, @const(a)] if a > 0.5 ~> x": ["MRK102", "is a float"],
    "a: Add[x: int, y] if x > 0 ~> y": ["MRK102", "is a node", "vmin(x) and vmax(x)"],
    "a: Add[x: int, y] if x ~> y": ["MRK102", "a node stands where a condition is expected"],
    "a: Add[x: int, @const(v)] if vmin(v) > 0 ~> x": ["MRK102", "stands where a node is expected", "binds the node c"],
    "a: Neg(x: f32x4) ~> Neg(Vectorize(Gep(x, [0])))": ["MRK102", "4 lanes"],
    "a: Neg(x: int?) ~> Neg(x)": ["MRK102", "only an index can be Invalid"],
    "a: Cast(x: A, 3) ~> x": ["MRK102", "a pattern stands where a dtype is expected"],
    "a: Cast(x: bool, i32) ~> Cast(x)": ["MRK102", "Cast needs a dtype"],
    # shapes of rules
    "a: Neg(x, y) ~> x": ["MRK102", "Neg has too many arguments"],
    "a: Add(x) ~> x": ["MRK102", "Add has too few operands", "y is missing"],
    "a: Neg(x) ~> Add(x)": ["MRK102", "Add has too few operands"],
    "a: Neg(x) ~> Neg(x, x)": ["MRK102", "Neg has too many arguments"],
    "a: Sub[x, y] ~> x": ["MRK102", "Sub is not commutative"],
    "a: Reduce { src } ~> src": ["MRK102", "Reduce has more fields: op", "end with `..`"],
    "a: Neg(x) ~> Reduce { src: x }": ["MRK102", "Reduce has more fields: op"],
    "a: Neg(x) ~> Reduce(x)": ["MRK102", "Reduce needs op"],
    "a: End(xs.., b) ~> b": ["MRK102", "no sequence"],
    "a: Vectorize(xs..) ~> xs": ["MRK102", "a sequence of nodes"],
    "a: Add(i32, y) ~> y": ["MRK102", "`i32` is a dtype, not a variable"],
    "a: Add(Neg, y) ~> y": ["MRK102", "`Neg` is an op"],
    "a: Add(@vconst(v), @vconst(v)) ~> v": ["MRK102", "the value `v` is bound twice"],
    "a: Add(Cast(@const(v): f32, f64), @const(v)) ~> v": ["MRK102", "must be f32, not f64", "equal at one dtype only"],
    "a: Where(@const(v): bool, @const(v): i32, _x) ~> v": ["MRK102", "must be bool, not i32"],
    "a: Neg(x: index) let x = 3 ~> x": ["MRK102", "`x` is bound already"],
    # dtypes that are looked at
    "a: Vectorize(x: T, y) if T == f32 or same(x, y) ~> Vectorize(x, x)": [
        "MRK102",
        "the dtype `T`",
        "ask for dtype(x)",
    ],
    "a: Index(b: ptr(T), i) if T == f32 ~> Index(b, i)": ["MRK102", "the dtype `T` does not follow"],
    "a: Index(b: ptr(T), i) if dtype(b) == f32 ~> Index(b, i)": ["MRK102", "the dtype of a pointer or a buffer"],
    "a: Max(x: i32, 0) if not safe_cast(dtype(x, 2), i32) or vmin(x) >= 0 ~> x": [
        "MRK102",
        "only the dtype of one lane",
    ],
    "a: Max(x: i32, 7) if bits(dtype(x, vmin(x))) == 32 ~> x": ["MRK102", "only the dtype of one lane"],
    "a: Max(x: i32, y) if safe_cast(i32x2, i32) ~> x": ["MRK102", "only the dtype of one lane"],
    "a: Max(x: i32, y) if dtype(x) == i32x2 ~> x": ["MRK102", "only the dtype of one lane"],
    "a: Max(x: int, y) let k = [dtype(x), i32][1] ~> Cast(Cast(x, k), dtype(x))": [
        "MRK102",
        "the dtype of nothing that is bound",
    ],
    "a: Reduce { src: s: f32, ranges: [], op } ~> Reduce { src: s, ranges: [], op, dtype: dtype(s, 0) }": [
        "MRK102",
        "a node has no such number of lanes",
        "1 to 2,147,483,647",
    ],
    # lists of nodes of which the pattern leaves it open whether they are of one type
    "a: Cast(Add(Cast(x: u8, i16), y: i16), i32) let z = [x, y][1]\n"
    "    ~> Cast(Add(Cast(x, i16), Cast(Cast(y, dtype(z)), i16)), i32)": [
        "MRK102",
        "of different dtypes or numbers of lanes",
    ],
    "a: Sub(Cast(x: u8, i32), y: i32) ~> Sub(Cast(x, i32), [Cast(Cast(y, dtype(z)), i32) for z in [x, y]][1])": [
        "MRK102",
        "of different dtypes or numbers of lanes",
    ],
    "a: Where(c: bool x 1, x: i32, y) if lanes([x, Cast(c, i32)][1]) == 1 ~> x": ["MRK102", "numbers of lanes"],
    "a: Gep(x, [0]) if all(vmin(k) == 0 and vmin(m) == 0 for k, m in zip([x, x], [Cast(x, i8), x])) ~> x": ["MRK102"],
    # what is compared in sequences, however deep
    "a: Sub(x: f32, k @const(c)) if [[c]] != [[0.1]] ~> Where(Eq(k, 0.1), x, Add(x, Neg(k)))": [
        "MRK102",
        "a constant of dtype f32",
        "a mathematical integer",
    ],
    "a: Add(Cast(@const(c): f32, f64), @const(d)) if [[c]] == [[d]] ~> const(d, f64)": [
        "MRK102",
        "a constant of dtype f32",
    ],
    "a: Neg(x: i32) if [p for p in [[0.5, 0.25], [0.1]]][0] == [0.1] ~> x": [
        "MRK102",
        "an operand of a comparison is a float",
    ],
    "a: Neg(x: i32) if any(a == b for a, b in [[0.5, 0.25]]) ~> x": ["MRK102", "an operand of a comparison is a float"],
    "a: Eq(x: i32, y) if zip([x], [x]) != zip([y], [y]) ~> false": ["MRK102", "an operand of a comparison is a node"],
    "a: Eq(x: i32, y) if any(a == b for a, b in [zip([x], [y])][0]) ~> false": ["MRK102", "is a node"],
    "a: Eq(x: i32, y) if [zip([1], [x])] == [zip([1], [y])] ~> false": ["MRK102", "is a node"],
    "a: Add(x: index, y) if width(zip([x], [2])) == 4 ~> y": ["MRK102", "an axis's id or length is a node"],
    # names of comprehensions: what is known of a name is known of it in the whole rule
    "a: Reduce { src: Add(Neg(x: i32), Mul(y, 0)), ranges: rs, op: Add }\n    let z = Neg(x)\n"
    "    ~> Reduce { src: [z for z in [y]][0], ranges: rs, op: Add }": ["MRK102", "`z` is bound already", "at line 4"],
    "a: Add(x: i32, y) if free_of(x, y) ~> [x for x in [y]][0]": ["MRK102", "`x` is bound already", "at line 3"],
    "a: Add(x: i32, y) ~> Vectorize(x for x in [y])": ["MRK102", "`x` is bound already"],
    "a: Add(x: i32, y) ~> [[k for k in [x]][0] for k in [y]][0]": ["MRK102", "`k` is bound already", "around this one"],
    "a: Add(x: i32, y) let a = [z for z in [y]][0], z = Neg(x) ~> Add(a, z)": [
        "MRK102",
        "`z` is bound already",
        "above",
    ],
    "a: Add(x: T, y) if all(T == 1 for T in [1]) ~> y": ["MRK102", "`T` is a dtype, not a variable"],
    "a: Neg(x: index) let (a, b) = vmin(x) ~> x": ["MRK102", "2 names for 1 value"],
    "a: Neg(x: index) if vmin(x, x) > 0 ~> x": ["MRK102", "vmin takes 1 argument, not 2"],
    "a: Neg(x) ~> eval(Neg, x)": ["MRK102", "the value of a constant"],
    "a: Load(i) ~> eval(Load, 1)": ["MRK102", "cannot be evaluated"],
    "for op in binary [Add, Neg] {\n    a: op(x, y) ~> op(x, y)\n}": ["MRK102", "Neg is no binary op"],
    "a: Shrink { src: x, begins: [b, bs..], ends: es } ~> x": [
        "MRK102",
        "begins of Shrink has a sequence among its items",
    ],
    "a: Pad { src: x, begins: bs, ends: [e, es..] } ~> x": ["MRK102", "ends of Pad has a sequence among its items"],
    "a: Pad { src: x, begins: [a, b], ends: [c] } ~> x": ["MRK102", "begins and ends of Pad are equally long"],
    "a: Pad { src: x, begins: [b] } ~> x": ["MRK102", "begins and ends of Pad are equally long", "to ignore the other"],
    # duplicates
    "a: Neg(Neg(x)) ~> x\na: Not(Not(x)) ~> x": ["MRK106", "a second rule `a`", "the first is at line 3"],
    "a: Neg(Neg(x)) ~> x\ngroup g\n\nb: Not(Not(x)) ~> x": ["MRK106", "a second group `g`"],
    "for op in binary [Add, Add] {\n    a: op(x, x) ~> op(x, x)\n}": ["MRK106", "listed twice"],
}


@pytest.mark.parametrize("rule", MISTAKES)
def test_mistake(rule: str) -> None:
    shown = problem(rule)
    for part in MISTAKES[rule]:
        assert part in shown


EXTERN = (
    'helpers "named_by_rules"\n'
    "extern f(x: index, d: const) -> (y: index, r: index)?\n    requires d > 0\n    ensures x == d * y + r\n"
)


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        ("a: Neg(x: index) let (y, _r) = f(x, 2) ~> y", ["MRK102", "may decline", "=> instead of ~>"]),
        ("a: Neg(x: index) let (y, _r) = f(x) => y", ["MRK102", "f takes 2 arguments, not 1"]),
        ("a: Neg(x: index) let y = f(x, 2) => y", ["MRK102", "one name for 2 values"]),
        ("a: Neg(x: f32) let (y, _r) = f(x, 2) => x", ["MRK102", "`x` of f must be index, not f32"]),
        ("a: Neg(x: index) let (y, _r) = f(x, x) => y", ["MRK102", "`d` of f is a node"]),
        ("a: Neg(x: index) let (y, _r) = g(x, x) => y", ["MRK103", "no op, function or helper `g`"]),
    ],
)
def test_helper_mistake(rule: str, parts: list[str]) -> None:
    shown = problem(rule, EXTERN)
    for part in parts:
        assert part in shown


@pytest.mark.parametrize(
    ("extern", "part"),
    [
        ("extern f(x: index) -> (y: index)\n    ensures x == z", "`z` is no parameter of f"),
        ("extern f(x: index) -> (y: index)\n    ensures min(x, y, 1) == z", "`z` is no parameter of f"),
        ("extern f(x: seq) -> (y: index)\n    ensures all(a == b for a, b in zip(x))", "zip takes 2 arguments, not 1"),
        ("extern f(x: index) -> (y: index)\n    requires y > 0", "results are not known yet"),
        ("extern f(x: index, x: const) -> (y: index)", "`x` twice"),
        ("extern f(x: itn) -> (y: index)", "no dtype `itn`"),
        ("extern vmin(x: index) -> (y: index)", "`vmin` has the name of a function of the language"),
        ("extern where(x: index) -> (y: index)", "rename the helper, here and in named_by_rules: my_where, say"),
        ("extern Max(x: index) -> (y: index)", "has the name of an op of morok"),
        ("extern launched(x: index) -> (y: index)", "has the name of a fact of morok"),
        ("extern f(x: index) -> (y: index)\n    ensures foo(x) > 0", "no function `foo`"),
        ("extern f(x: index) -> (y: index)\n    ensures y == Max(x, 1)", "`Max(..)` makes a node"),
        ("extern f(x: index) -> (y: index)\n    ensures y == zero(x)", "`zero(..)` makes a node"),
        (
            "extern f(x: index) -> (y: index)\n    ensures vmin(Neg(x)) > 0",
            "vmin is asked of a node that is given or returned",
        ),
        (
            "extern f(x: index) -> (y: index)\n    ensures vmin(x + y) > 0",
            "vmin is asked of a node that is given or returned",
        ),
        ("extern f(x: index, n: int) -> (y: index)\n    ensures vmin(n) > 0", "vmin is asked of a node"),
        ("extern f(x: index) -> (y: seq)\n    ensures all(x == 1 for x in y)", "`x` is bound already"),
        ("extern f(x: index) -> (y: seq)\n    ensures all(vmin(k) > 0 for k in y)", "vmin is asked of a node"),
        ("extern f(x: index) -> (y: index)\n    ensures bits(x) > 8", "bits is asked of a dtype"),
        ("extern f(x: index) -> (y: index)\n    ensures free_of(y)", "free_of takes 2 arguments, not 1"),
        ("extern f(x: index) -> (y: index)\n    requires defined()", "defined takes 1 argument, not 0"),
        (
            "extern f(x: index) -> (y: index)\n    ensures launched(y + 1)",
            "launched is asked of what is given or returned",
        ),
        ("extern f(x: index) -> (y: index)\n    ensures Reduce { src: x } == y", "a contract says nothing of this"),
    ],
)
def test_contract_mistake(extern: str, part: str) -> None:
    assert part in problem("a: Neg(Neg(x)) ~> x", f'helpers "named_by_rules"\n{extern}\n')


def test_every_mistake_of_a_file() -> None:
    text = """group g

a: Add(x, y ~> x
b: Sub(x, y) ~> z
for op in binary [Add, Sub] {
    c: op(x, y)) ~> x
    d: op(x, y) ~> w
}
e: Neg(Neg(x)) ~> x
f: Sqrt(x: int) ~> x
extern bad(
group h

g: Mul[x, @one ~> x
"""
    assert [(code, line) for code, line, _, _ in problems(text)] == [
        ("MRK101", 3),
        ("MRK103", 4),
        ("MRK101", 6),
        ("MRK103", 7),
        ("MRK102", 10),
        ("MRK101", 11),
        ("MRK101", 14),
    ]


def test_a_loop_that_begins_a_line_is_no_mistake_beside_another_one() -> None:
    text = "group g\n\na: Neg(x: i32) @ y ~> x\nb: Cat(xs..: i32)\n    ~> Cat(\n        xs[i]\n        for i in 0..len(xs))\n"
    assert [(code, line) for code, line, _, _ in problems(text)] == [("MRK101", 3)]


def test_one_unclosed_bracket_is_one_mistake() -> None:
    rules = [f"r{i}: Add(Neg(x{i}), Neg(y)) ~> Neg(Add(x{i}, y))" for i in range(20)]
    for i in range(20):
        broken = [*rules[:i], rules[i].replace("))", ")"), *rules[i + 1 :]]
        found = problems("group g\n\n" + "\n".join(broken) + "\n")
        assert [(code, line) for code, line, _, _ in found] == [("MRK101", 3 + i)]


@pytest.mark.parametrize("block", ["for op in binary [Add, Sub] {\n    f: op(x, y) ~> op(x, y)\n"])
def test_one_unclosed_brace_is_one_mistake(block: str) -> None:
    for after in (
        "g: Neg(Neg(x)) ~> x\n",
        "group h\n\ng: Neg(Neg(x)) ~> x\n",
        "for op in unary [Neg] {\n    g: op(op(x)) ~> x\n}\n",
        "",
    ):
        found = problems(f"group g\n\n{block}{after}")
        assert [(code, line) for code, line, _, _ in found] == [("MRK101", 3)]


def test_a_rule_outside_groups() -> None:
    (found,) = problems("a: Neg(Neg(x)) ~> x\n")
    assert "stands in no group" in found[3]


def test_what_may_stand_above_the_first_group() -> None:
    (found,) = problems('include "other.rules"\ngroup g\n\na: Neg(Neg(x)) ~> x\n')
    assert "unexpected `include`" in found[3]
    assert "expected: `dialect`, `extern`, `helpers` or `group`" in found[3]


def test_a_constants_value_is_not_its_node() -> None:
    (found,) = problems("group g\n\na: Sub(Mul(x: index, @const(c)), Mul(y: index, c)) ~> Mul(Sub(x, y), c)\n")
    assert "write n for it" in found[3]
    check_text("group g\n\na: Sub(Mul(x: index, n @const(c)), Mul(y: index, n)) ~> Mul(Sub(x, y), c)\n")


def test_a_mistake_in_a_template_is_one_mistake() -> None:
    assert len(problems("group g\n\nfor op in binary [Add, Sub, Mul] {\n    a: op(x, y) ~> z\n}\n")) == 1


def test_more_orders_of_operands_than_are_tried() -> None:
    many = "(Add|Sub|Mul|Max|Min)"
    said = problem(f"a: {many}({many}({many}(x: i32, _y), (Add|Mul)(_z, _w)), {many}(_p, _q)) ~> x")
    assert "MRK104" in said
    assert "more than 512 orders" in said


def test_an_unknown_dialect() -> None:
    (found,) = problems("dialect nowhere\ngroup g\n\na: Neg(Neg(x)) ~> x\n")
    assert "there is no dialect `nowhere`" in found[3]


def test_the_excerpt_points_at_the_mistake() -> None:
    shown = problem("a: Add(first, Mul(first, secnd)) ~> second")
    lines = shown.split("\n")
    assert lines[0] == "f.rules:3:37: MRK103: `second` is not bound"
    assert lines[1] == "  a: Add(first, Mul(first, secnd)) ~> second"
    assert lines[2] == " " * 38 + "^" * 6
    assert lines[3] == "  hint: did you mean secnd?"


def test_places_of_files(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "my.rules"
    path.write_text("group g\n\na: Ad(x, y) ~> x\n")
    with pytest.raises(RuleError) as caught:
        check_file(path)
    assert str(caught.value).startswith(f"{path}:3:4: MRK103")
