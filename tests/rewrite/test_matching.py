"""Every form of the tables in the language's description, matched and not matched. Rules here are not proved: some are false."""

from __future__ import annotations

import ast
import math

import pytest
from rule_text import rules

from morok.dsl.check import check_file
from morok.dsl.compile import module_of
from morok.errors import RuleTypeError
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.expression_parser import parse
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.rewrite.folders import rules_folder

HELPERS = 'helpers "rewrite_helpers"\nextern half(n: const) -> (h: const)?\n'
X = UOp.var("x", dtypes.index, 0, 10)
Y = UOp.var("y", dtypes.index, 0, 10)
F = UOp.var("f", dtypes.f32)
G = UOp.var("g", dtypes.f32)
J = UOp.var("i", dtypes.i32)
U = UOp.var("u", dtypes.u8)
B = UOp.var("b", dtypes.bool)
V = UOp.var("v", dtypes.f32.vec(4))
LANES = UOp.const((1.0, 2.0, 3.0, 4.0), dtypes.f32)
MAYBE = B.where(X, UOp.invalid_at())


def neg(x: UOp) -> UOp:
    return UOp.new(Op.Neg, (x,))


def exp2(x: UOp) -> UOp:
    return UOp.new(Op.Exp2, (x,))


def c(value, dtype=dtypes.index) -> UOp:
    return UOp.const(value, dtype)


def fires(text: str, node: UOp, head: str = "") -> UOp | None:
    group = rules(text, head)
    hit = group.rewrite_node(node)
    return None if hit is None else hit[0]


# (rule, node, what it becomes: None for no match)
CASES = {
    # operands
    "ordered": ("r: Sub(x, @zero) ~> x", X - 0, X),
    "ordered, turned": ("r: Sub(x, @zero) ~> x", c(0) - X, None),
    "commutative": ("r: Add[x, @zero] ~> x", X + 0, X),
    "commutative, turned": ("r: Add[x, @zero] ~> x", c(0) + X, X),
    "nested commutative": ("r: Add[Mod(x, n), Mul[Idiv(x, n), n]] ~> x", (c(3) * X.idiv(3)) + X % 3, X),
    "nested commutative, another n": ("r: Add[Mod(x, n), Mul[Idiv(x, n), n]] ~> x", (c(4) * X.idiv(3)) + X % 3, None),
    "the same node": ("r: Idiv(x, x) ~> one(x)", X.idiv(X), c(1)),
    "not the same node": ("r: Idiv(x, x) ~> one(x)", X.idiv(Y), None),
    "ignored": ("r: Mul[_x: !float, @zero] ~> 7", X * 0, c(7)),
    "ignored twice is not the same": ("r: Sub(_: index, _) ~> 7", X - Y, c(7)),
    "bound whole": (
        "r: Max[n @ Max[x, _y], x] ~> n",
        UOp.new(Op.Max, (X, UOp.new(Op.Max, (X, Y)))),
        UOp.new(Op.Max, (X, Y)),
    ),
    "depth four": ("r: Neg(Neg(Neg(Neg(x)))) ~> x", neg(neg(neg(neg(X)))), X),
    # constants
    "zero": ("r: Add[x, @zero] ~> x", J + 0, J),
    "zero is +0.0": ("r: Add[x, @zero] ~> x", F + 0.0, F),
    "zero is not -0.0": ("r: Add[x, @zero] ~> x", F + -0.0, None),
    "zero is false": ("r: Or[x, @zero] ~> x", B | UOp.const(False), B),
    "zero of all lanes": ("r: Add[x, @zero] ~> x", V + UOp.const(0.0, V.dtype), V),
    "zero of some lanes": ("r: Add[x, @zero] ~> x", V + UOp.const((0.0, 0.0, 1.0, 0.0), dtypes.f32), None),
    "one": ("r: Mul[x, @one] ~> x", F * 1.0, F),
    "one at integers": ("r: Mul[x, @one] ~> x", U * 1, U),
    "not one": ("r: Mul[x, @one] ~> x", U * 2, None),
    "true": ("r: And[x, @true] ~> x", B & UOp.const(True), B),
    "true is not false": ("r: And[x, @true] ~> x", B & UOp.const(False), None),
    "false": ("r: Or[x, @false] ~> x", B | UOp.const(False), B),
    "one value": ("r: Sub(Add[x, @const(v)], @const(v)) ~> x", (X + 5) - 5, X),
    "two values": ("r: Sub(Add[x, @const(v)], @const(v)) ~> x", (X + 5) - 4, None),
    "one value at two dtypes": (
        "r: Add(Cast(@const(v): u8, i32), @const(v)) ~> v",
        c(200, U.dtype).cast(J.dtype) + 200,
        c(200, J.dtype),
    ),
    "the same bits of two values": (
        "r: Add(Cast(@const(v): u8, i32), @const(v)) ~> v",
        c(200, U.dtype).cast(J.dtype) + -56,
        None,
    ),
    "one NaN": (
        "r: Sub(@const(v): f32, @const(v)) ~> v",
        c(math.nan, F.dtype) - c(math.nan, F.dtype),
        c(math.nan, F.dtype),
    ),
    "two zeros": ("r: Sub(@const(v): f32, @const(v)) ~> v", c(0.0, F.dtype) - c(-0.0, F.dtype), None),
    "any constant": ("r: Add(x: index, @const) ~> x", X + 5, X),
    "no constant": ("r: Add(x: index, @const) ~> x", X + Y, None),
    "value": ("r: Add(x: index, @const(v)) ~> Mul(x, v)", X + 5, X * 5),
    "node and value": ("r: Add(x: index, c @const(v)) if v > 3 ~> Mul(x, c)", X + 5, X * 5),
    "vector constant": ("r: Add(_a: float, v @vconst(vs)) ~> v", V + LANES, LANES),
    "a splat is no vconst": ("r: Add(_a: float, v @vconst(vs)) ~> v", V + UOp.const(1.0, V.dtype), None),
    "either kind, vector": ("r: Neg(v @anyconst(vs)) if len(vs) == 4 ~> v", neg(LANES), LANES),
    "either kind, splat": (
        "r: Neg(v @anyconst(vs)) if len(vs) == 4 ~> v",
        neg(UOp.const(1.0, dtypes.f32.vec(4))),
        UOp.const(1.0, dtypes.f32.vec(4)),
    ),
    "either kind, scalar": (
        "r: Neg(v @anyconst(vs)) if len(vs) == 1 ~> v",
        neg(c(2.5, dtypes.f32)),
        c(2.5, dtypes.f32),
    ),
    # literals
    "integer": ("r: Add[x, 3] ~> x", X + 3, X),
    "integer at i32": ("r: Add[x, 3] ~> x", J + 3, J),
    "integer is not float": ("r: Add[x, 3] ~> x", F + 3.0, None),
    "negative integer": ("r: Mul[x: sint, -1] ~> x", J * -1, J),
    "float": ("r: Add[x, 2.5] ~> x", F + 2.5, F),
    "float rounded to the dtype": ("r: Mul[x: f32, 0.1] ~> x", F * 0.1, F),
    "float at another dtype": (
        "r: Mul[x: (f16 | f32), 0.1] ~> x",
        UOp.var("h", dtypes.f16) * 0.1,
        UOp.var("h", dtypes.f16),
    ),
    "minus zero": ("r: Add[x, -0.0] ~> x", F + -0.0, F),
    "minus zero is not zero": ("r: Add[x, -0.0] ~> x", F + 0.0, None),
    "exponent": ("r: Add[x: f32, 1e-3] ~> x", F + 1e-3, F),
    "infinity": ("r: Add[x, inf] ~> x", F + math.inf, F),
    "negative infinity is another": ("r: Add[x, inf] ~> x", F + -math.inf, None),
    "nan": ("r: Add[x, nan] ~> x", F + math.nan, F),
    "a literal true": ("r: And[x, true] ~> x", B & UOp.const(True), B),
    "a literal false": ("r: Or[x, false] ~> x", B | UOp.const(False), B),
    # alternatives
    "several ops": ("r: (Add | Mul)(x: index, y) ~> x", X * Y, X),
    "several ops, none of them": ("r: (Add | Mul)(x: index, y) ~> x", X - Y, None),
    "several patterns": ("r: Sub(x: index, 1) | Sub(x: index, 2) ~> x", X - 2, X),
    "several patterns inside": ("r: Neg((Add(x: index, _y) | Mul(x: index, _y))) ~> x", neg(X * Y), X),
    # dtypes
    "a dtype": ("r: Add(x: i32, y) ~> x", J + J, J),
    "another dtype": ("r: Add(x: i32, y) ~> x", X + X, None),
    "a class": ("r: Neg(x: int) ~> x", neg(U), U),
    "int leaves out index": ("r: Neg(x: int) ~> x", neg(X), None),
    "signed": ("r: Neg(x: sint) ~> x", neg(J), J),
    "signed is not unsigned": ("r: Neg(x: sint) ~> x", neg(U), None),
    "unsigned": ("r: Neg(x: uint) ~> x", neg(U), U),
    "a union": ("r: Neg(x: (index | float)) ~> x", neg(F), F),
    "not in the union": ("r: Neg(x: (index | float)) ~> x", neg(J), None),
    "not float": ("r: Neg(x: !float) ~> x", neg(X), X),
    "float after all": ("r: Neg(x: !float) ~> x", neg(F), None),
    "a vector of the class": ("r: Neg(x: float) ~> x", neg(V), V),
    "a vector dtype": ("r: Neg(x: f32x4) ~> x", neg(V), V),
    "not that vector": ("r: Neg(x: f32x4) ~> x", neg(F), None),
    "cast to the same": ("r: Cast(x: A, A) ~> x", F.cast(dtypes.f32), F),
    "cast to another": ("r: Cast(x: A, A) ~> x", F.cast(dtypes.f16), None),
    "there and back": ("r: Cast(Cast(x: A, B), A) if safe_cast(A, B) ~> x", J.cast(dtypes.i64).cast(dtypes.i32), J),
    "there and back, narrower": (
        "r: Cast(Cast(x: A, B), A) if safe_cast(A, B) ~> x",
        J.cast(dtypes.i8).cast(dtypes.i32),
        None,
    ),
    "cast in the target": (
        "r: Cast(Cast(x: A, B), C) if safe_cast(A, B) ~> Cast(x, C)",
        U.cast(dtypes.i16).cast(dtypes.f32),
        U.cast(dtypes.f32),
    ),
    # Invalid
    "valid": ("r: Neg(x: index) ~> x", neg(X), X),
    "maybe Invalid": ("r: Neg(x: index) ~> x", neg(MAYBE), None),
    "maybe Invalid, unannotated": ("r: Neg(x) ~> x", neg(MAYBE), None),
    "maybe Invalid, ignored": ("r: Mul[_x: !float, @zero] ~> 7", MAYBE * 0, None),
    "maybe Invalid, asked for": ("r: Neg(x: index?) ~> x", neg(MAYBE), MAYBE),
    "Invalid itself": ("r: Where(c, x: index?, Invalid) ~> x", MAYBE, X),
    "comparison of what may be Invalid": ("r: Lt(x: index, y) ~> Le(x, y)", MAYBE < X, None),
    "comparison of what may not": ("r: Lt(x: index, y) ~> Le(x, y)", X < Y, X <= Y),
    # clauses
    "a guard that holds": ("r: Add(x: index, @const(v)) if v > 3 ~> x", X + 4, X),
    "a guard that fails": ("r: Add(x: index, @const(v)) if v > 3 ~> x", X + 3, None),
    "the other order is tried": ("r: Add[x: index, y] if vmin(x) > 5 ~> x", X + c(7), c(7)),
    "in the order written": ("r: Add[x: index, y] if vmin(x) >= 0 ~> x", X + Y, X),
    "a chain": ("r: Add(x: index, @const(v)) if 3 <= v < 5 ~> x", X + 4, X),
    "a chain that ends": ("r: Add(x: index, @const(v)) if 3 <= v < 5 ~> x", X + 5, None),
    "let": ("r: Add(x: index, @const(v)) let w = v * v, u = w + 1 ~> Mul(x, u)", X + 3, X * 10),
    "floor division": ("r: Add(x: index, @const(v)) let w = v // 2 ~> Mul(x, w)", X + -3, X * -2),
    "floor remainder": ("r: Add(x: index, @const(v)) let w = v % 4 ~> Mul(x, w)", X + -3, X * 1),
    "truncated division": (
        "r: Add(x: index, @const(v)) let w = tdiv(v, 2), u = tmod(v, 2) ~> Mul(x, w * 10 + u)",
        X + -3,
        X * -11,
    ),
    "division by zero": ("r: Add(x: index, @const(v)) if 8 // v == 4 ~> x", X + c(0), None),
    "division by zero in let": ("r: Add(x: index, @const(v)) let w = 8 // v ~> Mul(x, w)", X + c(0), None),
    "division by zero where the left decides": (
        "r: Add(x: index, @const(v)) if v == 0 or 8 // v == 4 ~> x",
        X + c(0),
        X,
    ),
    "division by zero on the left": ("r: Add(x: index, @const(v)) if 8 // v == 4 or v == 0 ~> x", X + c(0), None),
    "division by zero, negated": ("r: Add(x: index, @const(v)) if not 8 // v == 4 ~> x", X + c(0), None),
    "a negative shift": ("r: Add(x: index, @const(v)) if 1 << v > 0 ~> x", X + c(-1), None),
    "a shift too far": ("r: Add(x: index, @const(v)) if 1 << v > 0 ~> x", X + c(5000), None),
    "shifts and bits": (
        "r: Add(x: index, @const(v)) let w = ((1 << v) | 1) ^ 2 & 3, u = ~w ~> Mul(x, u)",
        X + c(3),
        X * ~((8 | 1) ^ (2 & 3)),
    ),
    "a power of two": ("r: Mul(x: index, @const(v)) if is_pow2(v) let k = log2(v) ~> Add(x, k)", X * 8, X + 3),
    "no power of two": ("r: Mul(x: index, @const(v)) let k = log2(v) ~> Add(x, k)", X * 6, None),
    "gcd, min, max, abs": (
        "r: Add(x: index, @const(v)) let w = gcd(v, 12) + min(v, 2) + max(v, 100) + abs(-v) ~> Mul(x, w)",
        X + 8,
        X * 114,
    ),
    "unknown bounds compare": ("r: Neg(x: index) if vmin(x) < -5 ~> x", neg(UOp.var("z")), UOp.var("z")),
    "unknown bounds have no sum": ("r: Neg(x: index) if vmin(x) - 1 < 0 ~> x", neg(UOp.var("z")), None),
    "unknown bounds are no constant": ("r: Neg(x: index) ~> vmin(x)", neg(UOp.var("z")), None),
    "known bounds are": ("r: Neg(x: index) ~> vmax(x)", neg(X), c(10)),
    "or": ("r: Add(x: index, @const(v)) if v == 1 or v == 2 ~> x", X + 2, X),
    "not": ("r: Add(x: index, @const(v)) if not v == 1 ~> x", X + 1, None),
    # facts
    "vmin of a term": ("r: Sub(x: index, y) if vmin(Add(x, y)) >= 0 ~> x", X - Y, X),
    "no_overflow holds": (
        "r: n @ Add(x: i32, _y) if no_overflow(n) ~> x",
        UOp.var("s", dtypes.i32, 0, 9) + 1,
        UOp.var("s", dtypes.i32, 0, 9),
    ),
    "no_overflow fails": ("r: n @ Add(x: i32, _y) if no_overflow(n) ~> x", J + 1, None),
    "no_overflow of a term": (
        "r: Sub(x: u8, y) if no_overflow(Mul(x, y)) ~> x",
        UOp.var("p", dtypes.u8, 0, 15) - 16,
        UOp.var("p", dtypes.u8, 0, 15),
    ),
    "no_overflow of a term that does": (
        "r: Sub(x: u8, y) if no_overflow(Mul(x, y)) ~> x",
        UOp.var("p", dtypes.u8, 0, 15) - 18,
        None,
    ),
    "same": ("r: Sub(x: index, y) if not same(x, y) ~> x", X - X, None),
    "dtype": ("r: Add(x: int, _y) if bits(dtype(x)) == 8 ~> x", U + U, U),
    "is_int and is_float": ("r: Neg(x) if is_float(dtype(x)) and not is_int(dtype(x)) ~> x", neg(F), F),
    "lanes": ("r: Neg(x: float) if lanes(x) == 4 ~> x", neg(V), V),
    # targets
    "a constant wraps": ("r: Add(x: u8, @const(v)) ~> Mul(x, v + 250)", U + 10, U * 4),
    "a constant takes the dtype of its place": ("r: Lt(x: f32, _y) ~> Lt(x, 0.1)", F < G, F < 0.1),
    "a constant as target": ("r: Lt(x, x) ~> false", V < V, UOp.const(False, dtypes.bool.vec(4))),
    "const, zero, one": (
        "r: Sub(x: index, _y) ~> Add(Add(zero(x), one(x)), const(3, dtype(x)))",
        X - Y,
        (c(0) + 1) + 3,
    ),
    "eval wraps": (
        "r: Add(@const(a), @const(b)) let v = eval(Add, a, b) ~> v",
        c(200, dtypes.u8) + 100,
        c(44, dtypes.u8),
    ),
    "eval rounds": (
        "r: Add(@const(a), @const(b)) let v = eval(Add, a, b) ~> v",
        c(0.1, dtypes.f32) + 0.2,
        c(0.30000001192092896, dtypes.f32),
    ),
    "eval has no value": (
        "r: Idiv(@const(a), @const(b)) let v = eval(Idiv, a, b) ~> v",
        c(1, dtypes.i32).idiv(0),
        None,
    ),
    "eval of a comparison": (
        "r: Lt(@const(a), @const(b)) let v = eval(Lt, a, b) ~> v",
        c(1, dtypes.i32) < 2,
        UOp.const(True),
    ),
    "eval of a cast": (
        "r: Cast(@const(v): A, B) let w = eval(Cast, v, B) ~> const(w, B)",
        c(300, dtypes.i32).cast(dtypes.u8),
        c(44, dtypes.u8),
    ),
    "eval of a cast without a value": (
        "r: Cast(@const(v): A, B) let w = eval(Cast, v, B) ~> const(w, B)",
        c(math.nan, dtypes.f32).cast(dtypes.u8),
        None,
    ),
    "eval lane by lane": (
        "r: Neg(_a @vconst(xs)) let ys = [eval(Neg, x) for x in xs] ~> VConst(ys)",
        neg(UOp.const((1, 2), dtypes.i32)),
        UOp.const((-1, -2), dtypes.i32),
    ),
    "zip": (
        "r: Add(_a @vconst(xs), _b @vconst(ys)) let zs = [eval(Add, x, y) for x, y in zip(xs, ys)] ~> VConst(zs)",
        UOp.const((1, 2), dtypes.i32) + UOp.const((10, 20), dtypes.i32),
        UOp.const((11, 22), dtypes.i32),
    ),
    "the node itself is no rewriting": ("r: Add(x: index, y) ~> Add(x, y)", X + Y, None),
    # helpers
    "a helper": ("r: Add(x: index, @const(v)) let h = half(v) => Mul(x, h)", X + 8, X * 4),
    "a helper declines": ("r: Add(x: index, @const(v)) let h = half(v) => Mul(x, h)", X + 7, None),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_form(name):
    text, node, expected = CASES[name]
    assert fires(text, node, HELPERS) is expected


def test_a_rule_that_declines_leaves_the_node_to_the_next():
    text = "first: Add(x: index, @const(v)) let h = half(v) => Mul(x, h)\nsecond: Add(x: index, @const) ~> x"
    group = rules(text, HELPERS)
    assert group.rewrite_node(X + 8) == (X * 4, "t.first")
    assert group.rewrite_node(X + 7) == (X, "t.second")


def test_the_first_rule_wins():
    group = rules("zz: Fdiv(@zero, @zero) ~> nan\nxx: Fdiv(x: float, x) ~> one(x)")
    zero = c(0.0, dtypes.f32)
    (out, name) = group.rewrite_node(zero / zero)
    assert (name, out.op) == ("t.zz", Op.Const)
    assert out.arg != out.arg
    assert group.rewrite_node(F / F) == (c(1.0, dtypes.f32), "t.xx")


def test_concatenation_puts_the_left_rules_first():
    a, b = rules("a: Neg(x: index) ~> x"), rules("b: Neg(x: index) ~> Mul(x, -1)")
    assert (a + b).rewrite_node(neg(X)) == (X, "t.a")
    assert (b + a).rewrite_node(neg(X)) == (X * -1, "t.b")


def test_rules_for_any_op_keep_their_place():
    group = rules("one: Neg(x: index) ~> x\nany: n: index if vmin(n) == 5 ~> 99\ntwo: Abs(x: index) ~> x")
    five = UOp.var("five", dtypes.index, 5, 6)
    assert group.rewrite_node(neg(UOp.var("m", dtypes.index, -6, -5)))[1] == "t.one"
    assert group.rewrite_node(UOp.new(Op.Abs, (five,)))[1] == "t.any"
    assert group.rewrite_node(UOp.new(Op.Abs, (X,)))[1] == "t.two"
    assert group.rewrite_node(five)[1] == "t.any"
    assert group.rewrite_node(X + Y) is None


def test_templates():
    group = rules(
        'for op in binary [Add, Sub, Mul] {\n    f: op(@const(a), @const(b)) let v = eval(op, a, b) ~> v\n    "constants"\n}'
    )
    assert group.names == ("t.f.Add", "t.f.Sub", "t.f.Mul")
    assert group.rewrite_node(c(7) - 3) == (c(4), "t.f.Sub")
    assert group["t.f.Mul"].apply(c(7) * 3) is c(21)
    assert group["t.f.Mul"].apply(c(7) - 3) is None


# structure

BUFFER = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16))
R0 = UOp.range(4, 0)
R1 = UOp.range(8, 1, AxisType.Reduce)
R2 = UOp.range(1, 2, AxisType.Reduce)


def test_fields_by_name():
    text = "r: Reduce { src: x: float, ranges: rs, op: Add } ~> Reduce { src: Neg(x), ranges: rs, op: Max }"
    node = F.reduce(Op.Add, R1, R2)
    assert fires(text, node) is neg(F).reduce(Op.Max, R1, R2)
    assert fires(text, F.reduce(Op.Mul, R1, R2)) is None


def test_a_field_that_is_passed_on():
    text = "r: Reduce { src: Neg(x: float), op, ranges } ~> Reduce { src: x, op: op, ranges: ranges }"
    assert fires(text, neg(F).reduce(Op.Max, R1)) is F.reduce(Op.Max, R1)


def test_the_rest_is_ignored():
    assert fires("r: Reduce { src: x: float, .. } ~> x", F.reduce(Op.Add, R1, R2)) is F


def test_optional_operands():
    plain, gated = BUFFER.index(X), BUFFER.index(X, gate=B)
    absent = "r: Exp2(Index { gate: None, .. }) ~> 1.0"
    present = "r: Exp2(Index { buffer, indices, gate: Some(g) }) ~> Where(g, 1.0, 2.0)"
    assert fires(absent, exp2(plain)) is c(1.0, dtypes.f32)
    assert fires(absent, exp2(gated)) is None
    assert fires(present, exp2(gated)) is B.where(c(1.0, dtypes.f32), c(2.0, dtypes.f32))
    assert fires(present, exp2(plain)) is None


def test_an_optional_operand_at_the_end():
    place = BUFFER.index(X)
    with_alt = UOp.new(Op.Load, (place, F))
    assert fires("r: Exp2(Load { index: p, alt: None }) ~> 1.0", exp2(place.load())) is c(1.0, dtypes.f32)
    assert fires("r: Exp2(Load { index: p, alt: None }) ~> 1.0", exp2(with_alt)) is None
    assert fires("r: Load { index: p, alt: Some(a) } ~> a", with_alt) is F


def test_sequences():
    node = UOp.vectorize(F, G, F)
    assert fires("r: Vectorize(xs..: float) if len(xs) == 3 ~> Vectorize(Neg(x) for x in xs)", node) is UOp.vectorize(
        neg(F), neg(G), neg(F)
    )
    assert fires("r: Vectorize(xs..: float) if len(xs) == 2 ~> Vectorize(Neg(x) for x in xs)", node) is None
    assert fires("r: Vectorize(a, rest..) ~> Vectorize(rest.., a)", node) is UOp.vectorize(G, F, F)
    assert fires("r: Vectorize(a, b, a) ~> Vectorize(b, b, b)", node) is UOp.vectorize(G, G, G)
    assert fires("r: Vectorize(a, b) ~> Vectorize(b, a)", node) is None


def test_a_listed_sequence():
    text = "r: Reduce { src: x, ranges: [one: index, two: index], op: Add } ~> Reduce { src: x, ranges: [two, one], op: Add }"
    assert fires(text, F.reduce(Op.Add, R1, R2)) is F.reduce(Op.Add, R2, R1)
    assert fires(text, F.reduce(Op.Add, R1)) is None


def test_fields_of_ordered_patterns():
    assert fires("r: Gep(Vectorize(xs..), [i]) ~> xs[i]", UOp.vectorize(F, G).gep(1)) is G
    assert fires("r: Gep(x, [0]) ~> Gep(x, [1])", V.gep(0)) is V.gep(1)
    assert fires("r: Gep(x, [0]) ~> Gep(x, [1])", V.gep(2)) is None


def test_comprehensions_over_lanes():
    out = fires("r: Neg(x: f32x4) ~> Vectorize(Neg(Gep(x, [i])) for i in 0..lanes(x))", neg(V))
    assert out is UOp.vectorize(*[neg(V.gep(i)) for i in range(4)])
    inclusive = fires("r: Neg(x: f32x4) ~> Vectorize(Gep(x, [3 - i]) for i in 0..=3)", neg(V))
    assert inclusive is UOp.vectorize(*[V.gep(3 - i) for i in range(4)])


def test_named_lanes():
    text = "r: Neg(x: T x n) if n > 2 ~> x"
    assert fires(text, neg(V)) is V
    assert fires(text, neg(UOp.var("w", dtypes.f32.vec(2)))) is None


def test_free_of_and_subst():
    text = "r: Reduce { src: x, ranges: [r], op: Add } if not free_of(x, r) ~> subst(x, r, 0)"
    assert fires(text, (R1 * 3 + 1).reduce(Op.Add, R1)) is c(0) * 3 + 1
    assert fires(text, (R0 * 3 + 1).reduce(Op.Add, R1)) is None


def test_enumerated_fields():
    text = "r: Neg(Range { end: e, axis: Reduce, .. }) ~> e"
    assert fires(text, neg(R1)) is c(8)
    assert fires(text, neg(R0)) is None


def test_a_scalar_condition_of_a_vector_is_not_its_value():
    """Where(c, true, false) is c only where c has as many lanes."""
    text = "r: Where(c: bool, @true, @false) ~> c"
    lanes = dtypes.bool.vec(4)
    assert fires(text, B.where(UOp.const(True), UOp.const(False))) is B
    assert fires(text, B.where(UOp.const(True, lanes), UOp.const(False, lanes))) is None


def test_generated_code_is_shown_in_tracebacks():
    import traceback

    head = 'helpers "rewrite_helpers"\nextern broken(n: const) -> (h: const)?\n'
    group = rules("r: Add(x: index, @const(v)) let h = broken(v) => Mul(x, h)", head)
    with pytest.raises(RuntimeError) as caught:
        group.rewrite_node(X + 1)
    shown = "".join(traceback.format_exception(caught.value))
    assert "_broken(" in shown


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", ["algebra/select.rules", "loops/reduce.rules", "vector/expand.rules"])
def test_statements_of_generated_code_stand_on_the_lines_of_its_text(file: str) -> None:
    """The lines of all statements, those of error handlers, `elif` and `else` among them."""
    checked = list(check_file(rules_folder() / file).rules())
    tree = module_of(checked, checked[0].dialect, False, {})
    kinds = (ast.stmt, ast.ExceptHandler)
    made, read = (
        [(type(s), s.lineno) for s in ast.walk(t) if isinstance(s, kinds)] for t in (tree, ast.parse(ast.unparse(tree)))
    )
    assert made == read


def test_code_of_one_rule():
    group = rules("a: Add[x: !float, @zero] ~> x\nb: Neg(x: index) ~> x")
    code = group["t.a"].code
    assert "def match_Add(n, context):" in code
    assert "t.b" not in code
    assert "def match_Neg(n, context):" in group.code


@pytest.mark.long
def test_a_thousand_rules_are_indexed_by_op():
    many = "\n".join(f"r{i}: Add(x: index, {i}) ~> x" for i in range(1000))
    group = rules(many + "\nrange: Neg(x: index) ~> x")
    text = group.code
    assert text.count("t.r999") >= 1
    start = text.index("def match_Neg")
    assert "t.r" not in text[start:].replace("t.range", "")
    assert group.rewrite_node(X + 999) == (X, "t.r999")


@pytest.mark.long
def test_too_many_orders_are_refused():
    from morok.errors import RuleLimitError

    deep = "x"
    for i in range(10):
        deep = f"Add[{deep}, Mul[y{i}, z{i}]]"
    with pytest.raises(RuleLimitError, match="orders"):
        rules(f"r: {deep.replace('x', 'x: index', 1)} if vmin(x) > 0 ~> x").code  # noqa: B018


def test_symmetric_orders_are_tried_once():
    from morok.dsl.match.clauses import Clauses
    from morok.dsl.match.patterns import clauses_of

    (rule,) = rules("r: Add[Mul[x: index, x], Mul[y, y]] ~> x").rules
    assert len(clauses_of(rule, Clauses(rule.dialect))) == 1
    (rule,) = rules("r: Add[x: index, y] if vmin(x) > 0 ~> x").rules
    assert len(clauses_of(rule, Clauses(rule.dialect))) == 2


def test_text_of_the_notation_matches():
    node = parse("Add(Mod(x: index[0..=31], 4), Mul(Idiv(x, 4), 4))")
    assert fires("core: Add[Mod(x, n), Mul[Idiv(x, n), n]] ~> x", node) is node.src[0].src[0]


def test_a_vector_read_stays_one():
    text = "r: Load { index: Index { buffer: b, indices: [i: index], gate: None }, .. } ~> Load(Index(b, Add(i, 1)))"
    wide = dtypes.f32.vec(4)
    assert fires(text, BUFFER.index(X).load(wide)) is BUFFER.index(X + 1).load(wide)
    assert fires(text, BUFFER.index(X).load()) is BUFFER.index(X + 1).load()


def test_a_gate_in_the_target():
    text = "r: Load(Index { buffer: b, indices: is, gate: Some(g) }) ~> Load(Index { buffer: b, indices: is, gate: Not(g) })"
    assert fires(text, BUFFER.index(X, gate=B).load()) is BUFFER.index(X, gate=~B).load()


def test_a_bitcast_and_back():
    text = "r: Bitcast(Bitcast(x: A, B), A) ~> x"
    assert fires(text, F.bitcast(dtypes.i32).bitcast(dtypes.f32)) is F
    assert fires(text, F.bitcast(dtypes.i32).bitcast(dtypes.u32)) is None


@pytest.mark.long
def test_ops_rule_out_most_of_a_thousand_rules() -> None:
    text = "\n".join(f"sub{n}: Sub(x: i32, {n}) ~> x" for n in range(600))
    text += '\nfor op in unary [*] {\n    one: op(op(x: number)) ~> x\n        "a template"\n}\n'
    text += "\n".join(f"mul{n}: Mul(Mul(x: i32, {n}), _y) ~> x" for n in range(400))
    text += "\nloop: r @ Range { end: e: index, .. } if vmin(e) > 5 ~> zero(r)\nany: x if vmin(x) == 77 ~> x\n"
    thousand = rules(text)
    assert len(thousand) > 1000
    assert thousand.tried(UOp.range(4, 0)) == ["t.loop", "t.any"]
    assert thousand.tried(J * J) == ["t.any"], "an operand of another op rules a rule out too"
    assert thousand.tried(neg(neg(F))) == ["t.one.Neg"], "it fires"
    assert thousand.tried(J * 3 * J) == ["t.mul0", "t.mul1", "t.mul2", "t.mul3"]


def test_two_sequences_share_the_operands_evenly() -> None:
    place = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(64))
    image = UOp.new(Op.Reshape, (place, c(8), c(8)))
    edges = (c(1), c(2), c(6), c(7))
    cut = UOp.new(Op.Shrink, (image, *edges))
    halves = rules(
        "cut: Shrink(x, bs.., es..) if len(bs) == 2 and len(es) == 2 and vmin(bs[1]) == 2 and vmin(es[0]) == 6 ~> x"
    )
    hit = halves.rewrite_node(cut)
    assert hit is not None
    assert hit[0] is image
    ends = rules("first: Shrink(x, bs.., es..) if len(bs) == 2 and same(bs[0], es[1]) ~> x")
    assert ends.rewrite_node(cut) is None
    assert ends.rewrite_node(UOp.new(Op.Shrink, (image, c(1), c(0), c(6), c(1)))) is not None
    with pytest.raises(RuleTypeError, match="evenly"):
        rules("bad: Shrink(x, bs.., _e) ~> x")


def test_an_operand_without_a_name_that_may_be_absent_is_valid_where_it_is_there() -> None:
    """As the proof takes it: what is not read has the place's dtype, and at index that is no Invalid."""
    rule = rules("r: Neg(Load { index: p, alt: _ }) ~> Load { index: p }")
    place = UOp.new(Op.DefineGlobal, (), 0, dtypes.index.ptr(8)).index(X)
    for alt, fires in (((), True), ((X,), True), ((MAYBE,), False)):
        assert (rule.rewrite_node(-UOp.new(Op.Load, (place, *alt))) is not None) is fires


def test_a_pointer_with_a_dtype_is_one_pointer_to_numbers() -> None:
    load = "r: Load { index: Index { buffer: b: ptr(i32), indices: [i: index x 1], gate: None }, alt: None } ~> Const(0, i32)"
    of_any = "r: Index { buffer: b: ptr(any), indices: [i], gate: None } ~> Index { buffer: b, indices: [Add(i, 0)] }"
    numbers, vectors = (UOp.new(Op.DefineGlobal, (), 0, d.ptr(8)) for d in (dtypes.i32, dtypes.i32.vec(2)))
    assert fires(load, numbers.index(X).load()) is UOp.const(0, dtypes.i32)
    assert fires(load, vectors.index(X).load()) is None
    assert fires(of_any, numbers.index(X)) is not None
    assert fires(of_any, vectors.index(X)) is None


def test_what_a_node_waits_for_is_named_or_not_there() -> None:
    """`..` passes over values, and over no effects."""
    store = (
        UOp.new(Op.DefineReg, (), 0, dtypes.i32.ptr(1, AddrSpace.REG))
        .index(UOp.const(0))
        .store(UOp.const(5, dtypes.i32))
    )
    waits, free = (UOp.new(Op.Range, (UOp.const(4), *more), (0, AxisType.Loop, True)) for more in ((store,), ()))
    for text in (
        "r @ Range { end: _e, .. } ~> zero(r)",
        "r @ Range(_e) ~> zero(r)",
        "r @ Range { end: _e, id: _i, .. } ~> zero(r)",
    ):
        assert fires(f"r: {text}", free) is UOp.const(0)
        assert fires(f"r: {text}", waits) is None
    assert fires("r: r @ Range { end: _e, deps: ds, .. } if len(ds) == 1 ~> zero(r)", waits) is UOp.const(0)


FLOATS = (0.0, -0.0, 1.0, 0.1, 6e-8, 1e-30, -1e-30, 1e-300, 5e-324, 1e39, 1e300, math.nan, math.inf, -math.inf)


@pytest.mark.parametrize(
    "literal", ["0.0", "-0.0", "0.1", "2.98e-8", "1e-30", "-1e-30", "5e-324", "1e39", "-1e300", "nan", "-inf"]
)
def test_a_literal_is_the_constant_that_it_becomes_at_the_dtype_of_its_place(literal: str) -> None:
    """Signs are those of what is rounded: `1e-30` is +0.0 at f16, and no -0.0."""
    for group, floats in (("float", (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64)), ("f16", (dtypes.f16,))):
        rule = rules(f"r: Max(x: {group}, {literal}) ~> x")
        for d in floats:
            made = c(float(literal), d)
            for constant in {made, *(c(v, d) for v in FLOATS)}:
                hit = rule.rewrite_node(UOp.new(Op.Max, (UOp.var("x", d), constant)))
                assert (hit is not None) is (constant is made), constant.text()


@pytest.mark.parametrize(
    ("text", "dtype", "fires_on", "and_not_on"),
    [
        ("Add(x: f32, VConst { values: [0.0, 1.0] }) ~> x", dtypes.f32, (0.0, 1.0), (-0.0, 1.0)),
        ("Add(x: f32, VConst { values: [-0.0, 1.0] }) ~> x", dtypes.f32, (-0.0, 1.0), (0.0, 1.0)),
        ("Add(x: f32, VConst { values: [v, _w, v] }) ~> x", dtypes.f32, (math.nan, 1.0, math.nan), (-0.0, 1.0, 0.0)),
        ("Add(x: f32, VConst { values: [nan, v] }) ~> x", dtypes.f32, (math.nan, 2.0), (math.inf, 2.0)),
        ("Add(x: f16, VConst { values: [0.1, 1e-30] }) ~> x", dtypes.f16, (0.1, 0.0), (0.1, -0.0)),
        ("Add(x: i8, VConst { values: [300, v] }) ~> x", dtypes.i8, (44, 1), (43, 1)),
        ("Add(VConst { values: [v, w] }, Mul(x: f32 x 2, @const(v))) ~> x", dtypes.f32, (0.0, 1.0), (-0.0, 1.0)),
    ],
)
def test_constants_by_lane_are_compared_as_constants_are(text, dtype, fires_on, and_not_on) -> None:
    x = UOp.var("x", dtype.vec(len(fires_on)))
    for values, matches in ((fires_on, True), (and_not_on, False)):
        lanes = UOp.const(values, dtype)
        node = lanes + x * UOp.const(0.0, x.dtype) if "Mul" in text else x + lanes
        assert (fires(f"r: {text}", node) is not None) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Gep { vector: Vectorize(x: f32, _y), indices: [inf] } ~> x", "indices of Gep is a list of numbers, not inf"),
        ("Gep { vector: x: f32, indices: 3 } ~> x", "indices of Gep is a list of numbers, not 3"),
        ("Unroll { src: x: f32, axes: [2] } ~> x", "axes of Unroll is a list of pairs, not 2"),
        ("Concat { sources: [x, _y], axis: 0.5 } ~> x", "axis of Concat is a number, not 0.5"),
        ("Or(x: bool, VConst { values: [2, 0] }) ~> x", "must be bool"),
        ("Add(x: f32, VConst { values: [1, 2] }) ~> x", "must be f32"),
        ("And(x: bool, VConst { values: [v, _w] }) if v < 2 ~> x", "may be a constant of dtype bool"),
        ("Add(x: i32, VConst { values: [nan, 1.0] }) ~> x", "must be i32"),
        ("Neg(x: i32) ~> Add(x, VConst { values: [nan, 1.0] })", "must be i32, not float"),
    ],
)
def test_a_static_field_holds_what_its_kind_and_its_dtype_say(text: str, message: str) -> None:
    with pytest.raises(RuleTypeError, match=message):
        rules(f"r: {text}")


@pytest.mark.parametrize(
    "text",
    [
        "Mul(Cat(xs..: i32), @zero) ~> Cat(zero(x) for x in xs)",
        "Mul(Cat(xs..: i32), @zero) if len(xs) == 2 ~> Cat(zero(xs[0]), identity(Add, xs[1]))",
        "Mul(Cat(x: i32, y), @zero) ~> Cat(zero(Gep(x, [i for i in 0..lanes(x)])), zero(y))",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(Mul(x, 3) for x in xs)",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(Mul(xs[k], v) for k in 0..len(xs))",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(Mul(x, const(v, dtype(x))) for x in xs)",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(Mul(const(v, i32), x) for x in xs)",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(Where(Lt(x, v), 3, Mul(x, v)) for x in xs)",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(const(v, dtype(x)) for x in xs)",
        "Mul(Cat(xs..: i32), @const(v)) ~> Cat(const(v, dtype(x, lanes(x))) for x in xs)",
    ],
)
def test_a_constant_has_the_lanes_of_the_item_that_it_is_made_for_or_beside(text: str) -> None:
    vectors = UOp.new(Op.Cat, (UOp.var("x", dtypes.i32.vec(2)), J, UOp.var("y", dtypes.i32.vec(4))))
    node = vectors * UOp.const(0, vectors.dtype)
    if "x: i32, y" in text or "len" in text:
        node = UOp.new(Op.Cat, (vectors.src[0], J)) * UOp.const(0, dtypes.i32.vec(3))
    made = fires(f"r: {text}", node)
    assert made is not None
    assert [s.dtype.count for s in made.src] == [s.dtype.count for s in node.src[0].src]


EMPTY = {
    "Cat(y: i32 x m, rest..: i32 x n) if n * 0 == 0 and len(rest) == 0 ~> y": False,
    "Cat(y: i32 x m, rest..: i32 x n) if len(rest) == 0 or n == 1 ~> y": True,
    "Cat(y: i32 x m, rest..: i32 x n) let k = n - 1 if k == 0 or len(rest) == 0 ~> y": False,
    "Cat(y: i32 x m, rest..: T x n) if bits(T) == 32 ~> y": True,
    "Reshape(y: i32, ns..: T) if bits(T) == 32 or len(ns) == 0 ~> y": False,
}


@pytest.mark.parametrize(("text", "does"), EMPTY.items())
def test_what_the_items_of_an_empty_sequence_would_tell_has_no_value(text: str, does: bool) -> None:
    """A number of lanes, or a dtype: a clause that asks for it does not hold, and raises nothing."""
    nodes = {"Cat": UOp.new(Op.Cat, (UOp.var("x", dtypes.i32.vec(2)),)), "Reshape": UOp.new(Op.Reshape, (J,))}
    assert (fires(f"r: {text}", nodes[text.split("(")[0]]) is not None) is does


@pytest.mark.parametrize(
    "clause",
    [
        "if half(c) != 7",
        "if half(c) < 7",
        "let h = half(c) + 1 if h > 0",
        "let h = [half(c + k) for k in 0..1] if len(h) == 1",
    ],
)
def test_a_helper_that_declines_has_no_value_within_an_expression(clause: str) -> None:
    text = f"r: Mul(x: index, @const(c)) {clause} => x"
    assert fires(text, X * 4, HELPERS) is X
    assert fires(text, X * 5, HELPERS) is None


@pytest.mark.parametrize(
    "clause",
    [
        "if lanes(Gep(v, [l + 1])) == 1",
        "if l < 0 or lanes(Gep(v, [l + 1])) == 1",
        "let p = Gep(v, [l + 1]) if lanes(p) == 1",
        "let ps = [lanes(Gep(v, [l + k])) for k in 0..2] if len(ps) == 2",
    ],
)
def test_a_clause_that_builds_no_node_has_no_value(clause: str) -> None:
    """An op that refuses its operands, as Gep does a lane that there is not, raises nothing out of a match."""
    text = f"r: Gep(v: f32, [l]) {clause} ~> Neg(Gep(v, [l]))"
    assert fires(text, V.gep(2)) is neg(V.gep(2))
    assert fires(text, V.gep(3)) is None
