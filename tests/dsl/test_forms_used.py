"""Every form of the language at work: it is parsed, matches what it says and nothing else, and a rule that uses it is judged."""

from __future__ import annotations

import pytest

from morok import UOp, parse, settings
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

# form: (rule, what it makes of what, what it does not match, verdict)
Row = tuple[str, dict[str, str], list[str], str]

PATTERNS: dict[str, Row] = {
    "ordered": ("Sub(x: int, 0) ~> x", {"Sub(x: i32, 0)": "x: i32"}, ["Sub(0, x: i32)"], "proved"),
    "ordered, false": ("Sub(x: int, y) ~> Sub(y, x)", {"Sub(x: i8, y: i8)": "Sub(y: i8, x: i8)"}, [], "refuted"),
    "commutative": (
        "Add[x: int, Neg(y)] ~> Sub(x, y)",
        {"Add(x: i32, Neg(y: i32))": "Sub(x: i32, y: i32)", "Add(Neg(y: i32), x: i32)": "Sub(x: i32, y: i32)"},
        ["Sub(x: i32, Neg(y: i32))"],
        "proved",
    ),
    "commutative, nested": (
        "Add[x: int, Mul[y, Neg(z)]] ~> Sub(x, Mul(y, z))",
        {"Add(Mul(Neg(z: i8), y: i8), x: i8)": "Sub(x: i8, Mul(y: i8, z: i8))"},
        ["Add(Mul(z: i8, y: i8), x: i8)"],
        "proved",
    ),
    "commutative, guarded": (  # where the guard fails in one order, the other is tried
        "Add[x: int, y] if vmin(x) == 3 and vmax(x) == 3 ~> Add(y, 3)",
        {"Add(y: i32, x: i32[3..=3])": "Add(y: i32, 3)", "Add(x: i32[3..=3], y: i32)": "Add(y: i32, 3)"},
        ["Add(x: i32, y: i32)"],
        "proved",
    ),
    "any node": (
        "x: bool if vmin(x) == vmax(x) ~> const(vmin(x), bool)",
        {"And(x: bool, false)": "false"},
        ["x: bool"],
        "proved",
    ),
    "ignored": ("Mul[_: int, 0] ~> 0", {"Mul(0, Neg(x: i32))": "Const(0, i32)"}, ["Mul(x: i32, 1)"], "proved"),
    "ignored, named": ("And[_x: int, 0] ~> 0", {"And(x: u8, 0)": "Const(0, u8)"}, ["And(x: u8, 1)"], "proved"),
    "same node": ("Sub(x: int, x) ~> 0", {"Sub(x: i32, x)": "Const(0, i32)"}, ["Sub(x: i32, y: i32)"], "proved"),
    "same node, floats": ("Sub(x: float, x) ~> 0.0", {"Sub(x: f32, x)": "0.0"}, [], "refuted"),
    "zero": (
        "Mul[_x: !float, z @ @zero] ~> z",
        {"Mul(x: i32, 0)": "Const(0, i32)", "Mul(x: i8x2, Const(0, i8x2))": "Const(0, i8x2)"},
        ["Mul(x: i32, 1)", "Mul(x: f32, 0.0)"],
        "proved",
    ),
    "zero of floats": ("Sub(x: float, @zero) ~> x", {"Sub(x: f32, 0.0)": "x: f32"}, ["Sub(x: f32, -0.0)"], "proved"),
    "one": ("Mul[x, @one] ~> x", {"Mul(1.0, x: f32)": "x: f32", "Mul(x: u8, 1)": "x: u8"}, ["Mul(x: u8, 2)"], "proved"),
    "true": ("And[x, @true] ~> x", {"And(true, x: bool)": "x: bool"}, ["And(false, x: bool)"], "proved"),
    "false": ("Or[x, @false] ~> x", {"Or(x: bool, false)": "x: bool"}, ["Or(x: bool, true)"], "proved"),
    "const": ("Lt(x: int, @const) ~> Ne(x, x)", {"Lt(x: i32, 3)": "Ne(x: i32, x)"}, ["Lt(x: i32, y: i32)"], "refuted"),
    "const value": (
        "Add[x: int, @const(v)] ~> Sub(x, -v)",
        {"Add(x: i32, 3)": "Sub(x: i32, -3)"},
        ["Add(x: i32, y: i32)"],
        "proved",
    ),
    "const node and value": (
        "Max[c @const(v), x: int] if vmax(x) <= v ~> c",
        {"Max(x: i32[0..=7], 9)": "Const(9, i32)"},
        ["Max(x: i32, 9)"],
        "proved",
    ),
    "vconst": (
        "Neg(_c @vconst(vs)) let ns = [eval(Neg, v) for v in vs] ~> VConst(ns)",
        {"Neg(VConst([1, 2], i32x2))": "VConst([-1, -2], i32x2)"},
        ["Neg(Const(3, i32x2))"],
        "usable",
    ),
    "anyconst": (
        "Neg(_c @anyconst(vs)) let ns = [eval(Neg, v) for v in vs] ~> VConst(ns)",
        {"Neg(Const(3, i32x2))": "Const(-3, i32x2)", "Neg(VConst([1, 2], i32x2))": "VConst([-1, -2], i32x2)"},
        ["Neg(x: i32x2)"],
        "usable",
    ),
    "3": ("Add[x: int, 3] ~> Sub(x, -3)", {"Add(3, x: u8)": "Sub(x: u8, 253)"}, ["Add(4, x: u8)"], "proved"),
    "-1": (
        "Mul[x: int, -1] ~> Neg(x)",
        {"Mul(x: i8, -1)": "Neg(x: i8)", "Mul(x: u8, 255)": "Neg(x: u8)"},
        ["Mul(x: i8, 1)"],
        "proved",
    ),
    "2.5": (
        "Fdiv(x: float, 2.5) ~> Mul(x, 0.4)",
        {"Fdiv(x: f32, 2.5)": "Mul(x: f32, 0.4)"},
        ["Fdiv(x: f32, 2.0)"],
        "refuted",
    ),
    "-0.0": ("Add[x: float, -0.0] ~> x", {"Add(x: f32, -0.0)": "x: f32"}, ["Add(x: f32, 0.0)"], "proved"),
    "1e-3": (
        "Add[x: f64, 1e-3] ~> Sub(x, -1e-3)",
        {"Add(x: f64, 0.001)": "Sub(x: f64, -0.001)"},
        ["Add(x: f64, 0.01)"],
        "proved",
    ),
    "inf": ("Lt(inf, _x: float) ~> false", {"Lt(inf, x: f32)": "false"}, ["Lt(-inf, x: f32)"], "proved"),
    "nan": ("Add[_x: float, nan] ~> nan", {"Add(nan, x: f32)": "nan"}, ["Add(inf, x: f32)"], "proved"),
    "true and false": (
        "Where(true, x: int, _y) ~> x",
        {"Where(true, x: i8, y: i8)": "x: i8"},
        ["Where(false, x: i8, y: i8)"],
        "proved",
    ),
    "whole match": ("n @ Max(x: int, y) if same(x, y) ~> n", {}, ["Max(x: i32, y: i32)"], "proved"),
    "op alternatives": (
        "(Add | Sub)(x: int, 0) ~> x",
        {"Add(x: i32, 0)": "x: i32", "Sub(x: i32, 0)": "x: i32"},
        ["Mul(x: i32, 0)"],
        "proved",
    ),
    "op alternatives, one false": ("(Add | Mul)(x: int, 0) ~> x", {"Mul(x: i32, 0)": "x: i32"}, [], "refuted"),
    "alternatives": (
        "Not(Lt(x: int, y)) | Ge(x: int, y) ~> Le(y, x)",
        {"Not(Lt(x: i32, y: i32))": "Le(y: i32, x: i32)", "Ge(x: i32, y: i32)": "Le(y: i32, x: i32)"},
        ["Not(Le(x: i32, y: i32))"],
        "proved",
    ),
    "fields": (
        "Reduce { src: x: i32, ranges: [Range(e), _rest..], op: Mul } if vmax(e) <= 0 ~> 1",
        {"Reduce(x: i32, Range(0, 0, Reduce), Mul)": "Const(1, i32)"},
        ["Reduce(x: i32, Range(0, 0, Reduce), Max)", "Reduce(x: i32, Range(1, 0, Reduce), Mul)"],
        "usable",
    ),
    "a field alone": (
        "Reduce { src: s: i32, ranges, op: Max } ~> Reduce { src: s, ranges, op: Min }",
        {"Reduce(x: i32, Range(4, 0, Reduce), Max)": "Reduce(x: i32, Range(4, 0, Reduce), Min)"},
        ["Reduce(x: i32, Range(4, 0, Reduce), Min)"],
        "refuted",
    ),
    "the rest of the fields": (
        "Mod(Range { end: e: index, .. }, @const(n)) if vmin(e) == 1 and vmax(e) == 1 and n > 0 ~> 0",
        {"Mod(Range(1, 0, Loop), 7)": "0", "Mod(Range(1, 3, Upcast), 7)": "0"},
        ["Mod(Range(2, 0, Loop), 7)"],
        "usable",
    ),
    "None": (
        "l @ Load(Index { buffer: _b, indices: [Invalid], gate: None }) ~> zero(l)",
        {"Load(Index(DefineGlobal(0): ptr(i32, 8), Invalid))": "Const(0, i32)"},
        [
            "Load(Index(DefineGlobal(0): ptr(i32, 8), Invalid, gate=c: bool))",
            "Load(Index(DefineGlobal(0): ptr(i32, 8), 1))",
        ],
        "usable",
    ),
    "Some": (
        "l @ Load(Index { buffer: _b, indices: [_i: index], gate: Some(@false) }) ~> zero(l)",
        {"Load(Index(DefineGlobal(0): ptr(i32, 8), 1, gate=false))": "Const(0, i32)"},
        ["Load(Index(DefineGlobal(0): ptr(i32, 8), 1, gate=c: bool))", "Load(Index(DefineGlobal(0): ptr(i32, 8), 1))"],
        "usable",
    ),
    "a sequence": (
        "Neg(Vectorize(xs..)) ~> Vectorize(Neg(x) for x in xs)",
        {"Neg(Vectorize(x: i32, y: i32))": "Vectorize(Neg(x: i32), Neg(y: i32))"},
        ["Neg(x: i32x2)"],
        "usable",
    ),
    "first and rest": (
        "Gep { vector: Vectorize(first, _rest..), indices: [0] } ~> first",
        {"Gep(Vectorize(x: i32, y: i32), [0])": "x: i32"},
        ["Gep(Vectorize(x: i32, y: i32), [1])"],
        "usable",
    ),
    "a dtype": ("Add(x: i32, x) ~> Shl(x, 1)", {"Add(x: i32, x)": "Shl(x: i32, 1)"}, ["Add(x: i64, x)"], "proved"),
    "int": (
        "Add(x: int, x) ~> Shl(x, 1)",
        {"Add(x: u8, x)": "Shl(x: u8, 1)"},
        ["Add(x: index, x)", "Add(x: f32, x)"],
        "proved",
    ),
    "sint": (
        "Max(x: sint, @const(v)) if v == -1 << bits(dtype(x)) - 1 ~> x",
        {"Max(x: i8, -128)": "x: i8"},
        ["Max(x: u8, 128)"],
        "proved",
    ),
    "uint": ("Lt(_x: uint, 0) ~> false", {"Lt(x: u8, 0)": "false"}, ["Lt(x: i8, 0)"], "proved"),
    "float": ("Sub(x: float, 0.0) ~> x", {"Sub(x: f64, 0.0)": "x: f64"}, ["Sub(x: f64, 1.0)"], "proved"),
    "number": ("Max(x: number, x) ~> x", {"Max(x: f16, x)": "x: f16", "Max(x: index, x)": "x: index"}, [], "proved"),
    "any": (
        "Where(_c, x: any, x) ~> x",
        {"Where(c: bool, x: bool, x)": "x: bool", "Where(c: bool, x: f32, x)": "x: f32"},
        [],
        "proved",
    ),
    "ptr": (
        "Index(After(b: ptr), i: index) ~> Index(b, i)",
        {"Index(After(DefineGlobal(0): ptr(i32, 8)), i: index)": "Index(DefineGlobal(0): ptr(i32, 8), i: index)"},
        ["Index(After(x: i32), i: index)"],
        "usable",
    ),
    "one of several": (
        "Neg(Neg(x: (i8 | float))) ~> x",
        {"Neg(Neg(x: f32))": "x: f32"},
        ["Neg(Neg(x: i16))"],
        "proved",
    ),
    "not": ("Add[x: !float, @zero] ~> x", {"Add(x: index, 0)": "x: index"}, ["Add(x: f32, 0.0)"], "proved"),
    "index": (
        "Add(x: index, 0) ~> x",
        {"Add(x: index, 0)": "x: index"},
        ["Add(Where(c: bool, x: index, Invalid), 0)"],
        "proved",
    ),
    "index?": (
        "Add(x: index?, 0) ~> x",
        {"Add(Where(c: bool, x: index, Invalid), 0)": "Where(c: bool, x: index, Invalid)"},
        ["Add(x: i32, 0)"],
        "proved",
    ),
    "index?, false": ("Eq(x: index?, x) ~> true", {"Eq(x: index, x)": "true"}, [], "proved"),
    "Invalid dropped": (
        "Where(_c, x: index, Invalid) ~> x",
        {"Where(c: bool, x: index, Invalid)": "x: index"},
        [],
        "refuted",
    ),
    "f32x4": (
        "Neg(Neg(x: f32x4)) ~> x",
        {"Neg(Neg(x: f32x4))": "x: f32x4"},
        ["Neg(Neg(x: f32x2))", "Neg(Neg(x: f32))"],
        "proved",
    ),
    "T x n": ("Neg(Neg(x: T x n)) if n > 2 ~> x", {"Neg(Neg(x: f32x4))": "x: f32x4"}, ["Neg(Neg(x: f32x2))"], "proved"),
    "T x n, false": ("Sub(x: int x n, y) if n == 2 ~> Sub(y, x)", {}, ["Sub(x: i8, y: i8)"], "refuted"),
    "ptr(T)": (
        "Index(b: ptr(i32), i: index x 1) if vmin(i) == 0 and vmax(i) == 0 ~> Index(b, 0)",
        {"Index(DefineGlobal(0): ptr(i32, 8), i: index[0..=0])": "Index(DefineGlobal(0): ptr(i32, 8), 0)"},
        ["Index(DefineGlobal(0): ptr(f32, 8), i: index[0..=0])"],
        "usable",
    ),
    "a dtype variable": ("Xor(x: T, y: T) ~> Xor(y, x)", {"Xor(x: u8, y: u8)": "Xor(y: u8, x: u8)"}, [], "proved"),
    "dtype operands": (
        "Cast(Cast(x: A, B), A) if safe_cast(A, B) ~> x",
        {"Cast(Cast(x: i8, i32), i8)": "x: i8"},
        ["Cast(Cast(x: i32, i8), i32)", "Cast(Cast(x: i8, i32), i16)"],
        "proved",
    ),
    "dtype operands, false": ("Cast(Cast(x: A, B), A) ~> x", {"Cast(Cast(x: i32, i8), i32)": "x: i32"}, [], "refuted"),
}

# What stands behind `if`: for each, the only constant that passes.
GUARDS = {
    "+": "a + 3 == 7",
    "-": "7 - a == 3",
    "unary -": "-a == -4",
    "*": "a * 3 == 12",
    "//": "a // 2 == 2 and a % 2 == 0",
    "// rounds down": "-a // 3 == -2 and a % 2 == 0 and a < 6",
    "%": "a % 8 == 4 and 0 < a < 8",
    "&": "(a & 7) == a and a % 4 == 0 and a > 0",
    "|": "(a | 3) == 7 and a % 4 == 0",
    "^": "(a ^ 3) == 7",
    "<<": "1 << a == 16",
    ">>": "a >> 1 == 2 and a % 2 == 0",
    "~": "~a == -5",
    "abs": "abs(a) == 4 and a > 0",
    "min": "min(a, 9) == 4",
    "max": "max(a, -9) == 4",
    "tdiv": "tdiv(a, -2) == -2 and a % 2 == 0",
    "tmod": "tmod(-a, 8) == -4 and 0 < a < 8",
    "and, or": "a > 3 and a < 5 or a == 4 and a > 9",
    "not": "not a < 4 and not a > 4",
    "chained": "3 < a <= 4",
    "!=": "3 <= a <= 4 and a != 3",
    "is_pow2, log2": "is_pow2(a) and log2(a) == 2",
    "bits": "a * 8 == bits(i32)",
    "is_int, is_float": "is_int(i32) and not is_float(i8) and a == 4",
    "eval": "eval(Mul, a, a) == 16 and a > 0 and a < 9",
    "let": "a > 0 let b = a * a, c = b - a if c == 12",
    "vmin": "vmin(x) == 0 and vmax(x) + a == 13 and vmax(x) == 9",
}

FACTS: dict[str, Row] = {
    "vmin, vmax": (
        "Max(x: int, y) if vmin(x) >= vmax(y) ~> x",
        {"Max(x: i32[5..=9], y: i32[0..=5])": "x: i32[5..=9]"},
        ["Max(x: i32, y: i32)"],
        "proved",
    ),
    "of a sub-pattern": (
        "Lt(n @ Mul(_a: int, _b), @const(c)) if vmax(n) < c ~> true",
        {"Lt(Mul(x: i32[0..=3], y: i32[0..=3]), 10)": "true"},
        ["Lt(Mul(x: i32[0..=3], y: i32[0..=3]), 9)"],
        "proved",
    ),
    "of a term": (
        "Lt(a: int, b) if vmin(Sub(a, b)) > 0 and no_overflow(Sub(a, b)) ~> false",
        {"Lt(a: i32[5..=9], b: i32[0..=4])": "false"},
        ["Lt(a: i32, b: i32)"],
        "proved",
    ),
    "no_overflow": (
        "Idiv(m @ Mul(x: int, y), y) if no_overflow(m) ~> x",
        {"Idiv(Mul(x: i32[0..=9], y: i32[1..=9]), y)": "x: i32[0..=9]"},
        ["Idiv(Mul(x: i32, y: i32), y)"],
        "proved",
    ),
    "defined": (  # one side of And may be false where the other has no value
        "And(Lt(x: int, y), Lt(x, z)) if defined(y) and defined(z) ~> Lt(x, Min(y, z))",
        {
            "And(Lt(x: i8, y: i8), Lt(x, z: i8))": "Lt(x: i8, Min(y: i8, z: i8))",
            "And(Lt(x: i8, y: i8), Lt(x, Idiv(y, 3)))": "Lt(x: i8, Min(y: i8, Idiv(y, 3)))",
        },
        ["And(Lt(x: i8, y: i8), Lt(x, Idiv(y, z: i8)))", "And(Lt(x: i8, Idiv(y: i8, x)), Lt(x, y))"],
        "proved",
    ),
    "free_of": (
        "Reduce { src: x: bool, ranges: [r @ Range(e: index)], op: Max } if free_of(x, r) and vmin(e) >= 1 ~> x",
        {"Reduce(x: bool, Range(4, 0, Reduce), Max)": "x: bool"},
        ["Reduce(x: bool, Range(0, 0, Reduce), Max)", "Reduce(Lt(Range(4, 0, Reduce), 2), Range(4, 0, Reduce), Max)"],
        "proved",
    ),
    "same": (
        "Sub(x: int, y) if same(x, y) ~> 0",
        {"Sub(x: i32, x)": "Const(0, i32)"},
        ["Sub(x: i32, y: i32)"],
        "proved",
    ),
    "dtype": (
        "Add(x: int, x) if dtype(x) == u8 ~> Shl(x, 1)",
        {"Add(x: u8, x)": "Shl(x: u8, 1)"},
        ["Add(x: i8, x)"],
        "proved",
    ),
    "lanes": ("Neg(Neg(x: int)) if lanes(x) == 1 ~> x", {"Neg(Neg(x: i8))": "x: i8"}, ["Neg(Neg(x: i8x2))"], "proved"),
    "gcd": (
        "Mod(Mul(x: index, @const(a)), 4) if gcd(a, 8) == 4 ~> 0",
        {"Mod(Mul(x: index, 12), 4)": "0"},
        ["Mod(Mul(x: index, 6), 4)"],
        "proved",
    ),
    "constant": (
        "Max(x: i32, y: i32) if constant(y) == 5 and vmin(x) >= vmax(y) ~> x",
        {"Max(x: i32[7..=9], 5)": "x: i32[7..=9]"},
        ["Max(x: i32[7..=9], 6)", "Max(x: i32[7..=9], y: i32)"],
        "proved",
    ),
    "dtypes in lists": (
        "Max(x: int, y) if [[dtype(x)]] == [[i8]] ~> Max(y, x)",
        {"Max(x: i8, y: i8)": "Max(y: i8, x: i8)"},
        ["Max(x: u8, y: u8)"],
        "proved",
    ),
    "a dtype of no lanes": (
        "Reduce { src: s: f32, ranges: [], op: Add }"
        " ~> Cat(Reduce { src: s, ranges: [], op: Add, dtype: dtype(s, lanes(s) - 1) }, Reduce { src: s, ranges: [], op: Add })",
        {},
        ["Reduce(x: f32, Add)"],
        "refuted",
    ),
    "constant, false": ("Max(x: i32, y: i32) if constant(y) + 0 == 5 ~> x", {}, ["Max(x: i32, y: i32)"], "refuted"),
    "rank, false": ("Max(x: i32, y: i32) if rank(x) + 1 > 2 ~> x", {}, ["Max(x: i32, y: i32)"], "refuted"),
    "no value": (
        "Add(x: int, @const(a)) if 4 // a == 1 ~> Sub(x, -4)",
        {"Add(x: i8, 4)": "Sub(x: i8, -4)"},
        ["Add(x: i8, 0)"],
        "refuted",
    ),
}

TARGETS: dict[str, Row] = {
    "a value as an operand": (
        "Idiv(Idiv(x: index, @const(a)), @const(b)) if a > 0 and b > 0 ~> Idiv(x, a * b)",
        {"Idiv(Idiv(x: index, 2), 3)": "Idiv(x: index, 6)"},
        [],
        "proved",
    ),
    "wrapped to the dtype": (
        "Add[Add[x: int, @const(a)], @const(b)] ~> Add(x, a + b)",
        {"Add(Add(x: u8, 200), 100)": "Add(x: u8, 44)"},
        [],
        "proved",
    ),
    "const": ("Xor(x: int, x) ~> const(0, dtype(x))", {"Xor(x: u8, x)": "Const(0, u8)"}, [], "proved"),
    "zero": ("Xor(x: int, x) ~> zero(x)", {"Xor(x: i8x2, x)": "Const(0, i8x2)"}, [], "proved"),
    "one": ("Idiv(x: int, x) ~> one(x)", {"Idiv(x: i8, x)": "Const(1, i8)"}, [], "proved"),
    "eval": ("Mul(@const(a), @const(b)) ~> eval(Mul, a, b)", {"Mul(Const(100, i8), 3)": "Const(44, i8)"}, [], "proved"),
    "an item": (
        "Gep { vector: Vectorize(xs..), indices: [i] } ~> xs[i]",
        {"Gep(Vectorize(x: i8, y: i8), [1])": "y: i8"},
        [],
        "usable",
    ),
    "a list of items": (
        "Gep { vector: Gep { vector: x, indices: inner }, indices: outer } ~> Gep(x, [inner[o] for o in outer])",
        {"Gep(Gep(x: i8x4, [3, 1, 0]), [1, 0])": "Gep(x: i8x4, [1, 3])"},
        [],
        "usable",
    ),
    "a list of items, false": (
        "Gep { vector: Gep { vector: x, indices: inner }, indices: outer } ~> Gep(x, [outer[o] for o in inner])",
        {"Gep(Gep(x: i8x4, [1, 0]), [1, 0])": "Gep(x: i8x4, [0, 1])"},
        [],
        "refuted",
    ),
    "zip": (
        "Add(Vectorize(xs..), Vectorize(ys..)) ~> Vectorize(Add(x, y) for x, y in zip(xs, ys))",
        {"Add(Vectorize(a: i8, b: i8), Vectorize(c: i8, d: i8))": "Vectorize(Add(a: i8, c: i8), Add(b: i8, d: i8))"},
        [],
        "usable",
    ),
    "len": (
        "Vectorize(xs..) if len(xs) == 1 ~> xs[0]",
        {"Vectorize(x: i8)": "x: i8"},
        ["Vectorize(x: i8, y: i8)"],
        "usable",
    ),
    "all": (
        "Gep { vector: x, indices: is } if len(is) == lanes(x) and all(is[k] == k for k in 0..lanes(x)) ~> x",
        {"Gep(x: i8x2, [0, 1])": "x: i8x2"},
        ["Gep(x: i8x2, [1, 0])", "Gep(x: i8x3, [0, 1])"],
        "usable",
    ),
    "any": (
        "Gep { vector: Vectorize(xs..), indices: [i] } if any(same(xs[i], x) for x in xs) ~> xs[i]",
        {"Gep(Vectorize(x: i8, y: i8), [0])": "x: i8"},
        ["Gep(v: i8x2, [0])"],
        "usable",
    ),
    "a..b": (
        "Neg(x: i8 x n) if n > 1 ~> Vectorize(Neg(Gep(x, [i])) for i in 0..lanes(x))",
        {"Neg(x: i8x2)": "Vectorize(Neg(Gep(x: i8x2, [0])), Neg(Gep(x, [1])))"},
        ["Neg(x: i8)"],
        "usable",
    ),
    "a..=b": (
        "Neg(x: i8x3) ~> Vectorize(Neg(Gep(x, [i])) for i in 0..=2)",
        {"Neg(x: i8x3)": "Vectorize(Neg(Gep(x: i8x3, [0])), Neg(Gep(x, [1])), Neg(Gep(x, [2])))"},
        [],
        "usable",
    ),
    "subst": (
        "Reduce { src: Where(Eq(r, q), f: i32, @zero), ranges: [r @ Range(e: index)], op: Add } "
        "if free_of(q, r) and vmin(e) >= 1 ~> Where(And(Ge(q, 0), Lt(q, e)), subst(f, r, q), 0)",
        {
            "%1 = Range(8, 0, Reduce); Reduce(Where(Eq(%1, q: index), Cast(%1, i32), 0), %1, Add)": (
                "Where(And(Ge(q: index, 0), Lt(q, 8)), Cast(q, i32), 0)"
            )
        },
        [],
        "proved",
    ),
    "=>": ("Add(x: int, @const(a)) let b = 12 // a => Sub(x, 0 - b)", {}, ["Add(x: i8, 0)"], "refuted"),
}

# Without the assumption they are refuted.
ASSUMING: dict[str, Row] = {
    "nnan": ("Eq(x: float, x) ~> true assuming nnan", {"Eq(x: f32, x)": "true"}, ["Eq(x: f32, y: f32)"], "proved"),
    "ninf": (
        "Sub(x: float, x) ~> 0.0 assuming nnan, ninf",
        {"Sub(x: f32, x)": "0.0"},
        ["Sub(x: f32, y: f32)"],
        "proved",
    ),
    "nsz": ("Add[x: float, 0.0] ~> x assuming nsz", {"Add(x: f32, 0.0)": "x: f32"}, ["Add(x: f32, 1.0)"], "proved"),
    "contract": (
        "Add[Mul(a: float, b), c] ~> MulAcc(a, b, c) assuming contract",
        {"Add(c: f32, Mul(a: f32, b: f32))": "MulAcc(a: f32, b: f32, c: f32)"},
        ["Add(c: f32, Add(a: f32, b: f32))"],
        "proved",
    ),
    "arcp": (
        "Fdiv(x: float, y) ~> Mul(x, Reciprocal(y)) assuming arcp",
        {"Fdiv(x: f32, y: f32)": "Mul(x: f32, Reciprocal(y: f32))"},
        ["Mul(x: f32, y: f32)"],
        "proved",
    ),
    "reassoc": (
        "Add(Add(x: f32, y), z) ~> Add(x, Add(y, z)) assuming reassoc",
        {"Add(Add(x: f32, y: f32), z: f32)": "Add(x: f32, Add(y: f32, z: f32))"},
        ["Add(x: f32, y: f32)"],
        "proved",
    ),
}


def rule_of(text: str) -> CheckedRule:
    (found,) = check_text(f'group g "forms"\n\nr: {text}\n    "a form"\n').rules()
    return found


def verdict(rule: CheckedRule) -> str:
    found = judge(rule, DEFAULT_BUDGET, False)
    return found.verdict if found.verdict != "unknown" else found.message


def check_row(row: Row) -> None:
    text, matches, others, expected = row
    rule = rule_of(text)
    with settings(fast_math=frozenset(rule.syntax.assuming)):
        one = RuleSet.of([rule], unproved=True)["g.r"]
        for before, after in matches.items():
            made = one.apply(parse(before))
            assert made is not None, before
            assert made is parse(after), f"{before} becomes {made.text()}"
        for before in others:
            made = one.apply(parse(before))
            assert made is None, f"{before} becomes {made.text()}"
    found = verdict(rule)
    assert found in (("proved", "bounded") if expected == "usable" else (expected,)), found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", PATTERNS)
def test_pattern(form: str) -> None:
    check_row(PATTERNS[form])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", FACTS)
def test_fact(form: str) -> None:
    check_row(FACTS[form])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", TARGETS)
def test_target(form: str) -> None:
    check_row(TARGETS[form])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", GUARDS)
def test_guard(form: str) -> None:
    """It lets 4 pass, and no other; the prover knows that from the guard, and refutes a target that is about another constant."""
    true = rule_of(f"Sub(x: i32, @const(a)) if {GUARDS[form]} ~> Add(x, -4)")
    one = RuleSet.of([true], unproved=True)["g.r"]
    x = UOp.var("x", parse("x: i32").dtype, 0, 9)
    passed = [a for a in range(-70, 70) if one.apply(x - a) is not None]
    assert passed == [4]
    assert verdict(true) in ("proved", "bounded")
    assert verdict(rule_of(f"Sub(x: i32, @const(a)) if {GUARDS[form]} ~> Add(x, -5)")) == "refuted"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("flag", ASSUMING)
def test_assumption(flag: str) -> None:
    check_row(ASSUMING[flag])
    text = ASSUMING[flag][0]
    assert verdict(rule_of(text.partition(" assuming")[0])) == "refuted"
    rule = rule_of(text)
    before = parse(next(iter(ASSUMING[flag][1])))
    with settings(fast_math=""):
        assert RuleSet.of([rule], unproved=True)["g.r"].apply(before) is None


@pytest.mark.parametrize(("kind", "names"), [("binary", ["Add", "Sub", "Or", "Xor"]), ("unary", ["Floor", "Trunc"])])
def test_a_rule_for_each_op(kind: str, names: list[str]) -> None:
    ops = f"{kind} [{', '.join(names)}]"
    pattern, target = ("op(x: i32, 0)", "x") if kind == "binary" else ("op(op(x: f32))", "op(x)")
    made = list(
        check_text(f'group g "forms"\n\nfor op in {ops} {{\n    r: {pattern} ~> {target}\n    "a form"\n}}\n').rules()
    )
    assert [r.name for r in made] == [f"g.r.{n}" for n in names]
    assert {verdict(r) for r in made} == {"proved"}
    for r in made:
        op = r.name.rpartition(".")[2]
        text, wanted = (f"{op}(x: i32, 0)", "x: i32") if kind == "binary" else (f"{op}({op}(x: f32))", f"{op}(x: f32)")
        assert RuleSet.of([r], unproved=True)["r." + op].apply(parse(text)) is parse(wanted)


def test_a_rule_for_every_op_of_a_kind() -> None:
    text = 'group g "forms"\n\nfor op in binary [*] {\n    r: op(@const(a), @const(b)) ~> eval(op, a, b)\n    "a form"\n}\n'
    made = list(check_text(text).rules())
    assert len(made) >= 19
    assert {verdict(r) for r in made if r.name in ("g.r.Add", "g.r.Idiv", "g.r.Lt")} <= {"proved", "defined"}
    assert RuleSet.of(made, unproved=True).rewrite_node(parse("Max(Const(3, i8), 5)")) == (
        parse("Const(5, i8)"),
        "g.r.Max",
    )
