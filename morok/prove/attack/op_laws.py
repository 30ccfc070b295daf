"""Laws of single ops at special constants, and what a target computes only to drop it.

A law is an op of a variable and a constant (or of the variable twice), and a leaf or another such op that it agrees with at
ordinary values: `x + 0.0` and `x`, `x / inf` and `0.0`, `x == x` and `true`. What is dropped may be anything that has no value
somewhere: a shift beyond the width, a quotient, an index out of the range of what it is cast to.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from morok.prove.attack.conjectures import NOTHING, becomes, constants, extremes, near, ordinary_values, value
from morok.prove.attack.random_terms import FLOATS, INTS, TYPINGS, Printer, Term

DTYPES: Final = (
    "f16",
    "f16",
    "f16",
    "bf16",
    "bf16",
    "f32",
    "f64",
    "i8",
    "i8",
    "u8",
    "i16",
    "u16",
    "i32",
    "index",
    "bool",
)
CANDIDATES: Final = 60
PARTIAL: Final = ("Idiv", "Mod", "FloorDiv", "FloorMod", "Shl", "Shr")
DIVIDES: Final = ("Fdiv", "Reciprocal", *PARTIAL)
SINGULAR: Final = ("0.0", "-0.0", "inf", "-inf", "nan")
SLOW: Final = frozenset({"Threefry", "Pow", "MulAcc", "Sqrt"})


def law(rng: random.Random) -> str:
    """A rule of two ops, or of an op and a leaf, that agree at ordinary values; mostly one that special values tell apart."""
    while True:
        at = rng.choice(DTYPES)
        left = _single(rng, at)
        points = [{"x": v} for v in ordinary_values(at)]
        wanted = [near(value(left, p)) for p in points]
        if set(wanted) == {NOTHING}:
            continue
        found = [Term("var", "x", at)] * (left.dtype == at)
        found += [Term("literal", c, left.dtype) for c in dict.fromkeys(constants(left.dtype))]
        found += [_single(rng, at) for _ in range(CANDIDATES)]
        found = [
            r for r in found if r.dtype == left.dtype and r != left and [near(value(r, p)) for p in points] == wanted
        ]
        if not found:
            continue
        printer = Printer(rng, {"x": at})
        special = [{"x": v} for v in extremes(at)]
        false = [r for r in found if not all(becomes(value(left, p), value(r, p)) for p in special)]
        chosen = rng.choice(false if false and rng.random() < 0.7 else found)
        return f"{printer.pattern(left)} ~> {printer.target(chosen)}"


def _single(rng: random.Random, at: str) -> Term:
    """An op of the variable, and perhaps a constant, or of the variable alone."""
    x = Term("var", "x", at)
    result = at if rng.random() < 0.7 else "bool"
    typings = [t for t in TYPINGS[result] if set(t.operands) == {at} and t.op not in SLOW]
    typings = [t for t in typings if len(t.operands) == 2] if rng.random() < 0.85 else typings
    typing = rng.choice([*typings, *[t for t in typings if t.op in DIVIDES] * 3])
    place = rng.randrange(len(typing.operands))
    args = []
    for k, d in enumerate(typing.operands):
        number = rng.choice(SINGULAR if d in FLOATS and rng.random() < 0.5 else constants(d))
        args.append(x if k == place or rng.random() < 0.2 else Term("literal", number, d))
    return Term("op", typing.op, typing.result, tuple(args))


# How a term T is joined to K and changes nothing, where it has a value.
JOINED: Final = (
    "Add(K, Sub(T, T))", "Sub(K, Mul(T, 0))", "Max(K, Min(K, T))", "Min(K, Max(K, T))", "Where(Eq(T, T), K, K)",
    "Where(Ne(T, T), y, K)", "Where(Le(T, T), K, x)", "Add(Sub(K, T), T)",
)  # fmt: skip
JOINED_BITS: Final = ("Xor(K, Xor(T, T))", "Or(K, And(T, 0))", "Xor(Xor(K, T), T)", "And(K, Or(K, T))")


def dropped(rng: random.Random) -> str:
    """A term, and the same joined to what adds nothing to it, where it has a value."""
    at = rng.choice(("i8", "i8", "u8", "i16", "u16", "index", "index", "i32"))
    other = (
        rng.choice(("index", "index", "f16", "i8", "u8", "i32"))
        if at != "index"
        else rng.choice(("index", "i8", "f16"))
    )
    binary = sorted({t.op for t in TYPINGS[at] if t.operands == (at, at) and t.op not in (*SLOW, *PARTIAL)})
    op, compared = rng.choice(binary), rng.choice(("Lt", "Ge", "Eq", "Ne"))
    first = f"{compared}(z: {other}, w: {other})"
    before, kept, after = rng.choice(
        (
            (f"Where({first}, x: {at}, y: {at})", "x", f"Where({compared}(z, w), KEPT, y)"),
            (
                f"Where({compared}(z: {other}, w: {other}), {op}(x: {at}, y: {at}), x)",
                f"{op}(x, y)",
                f"Where({compared}(z, w), KEPT, x)",
            ),
            (f"{op}(x: {at}, y: {at})", f"{op}(x, y)", "KEPT"),
        )
    )
    leaves = {"x": at, "y": at} | ({"z": other, "w": other} if "z" in before else {})
    joined = rng.choice(JOINED if at == "index" else JOINED + JOINED_BITS)
    joined = joined.replace("K", kept).replace("T", _partial(rng, at, leaves))
    return f"{before} ~> {after.replace('KEPT', joined)}"


def _partial(rng: random.Random, at: str, leaves: Mapping[str, str]) -> str:
    """A term that has no value somewhere: a shift, a quotient, a conversion."""
    alike = [n for n, d in leaves.items() if d == at]
    others = [n for n, d in leaves.items() if d != at]
    if others and rng.random() < 0.6:
        name = rng.choice(others)
        return f"Cast({name}, {at})"
    if at == "index" and rng.random() < 0.6:
        name = rng.choice(alike)
        return f"Cast(Cast({name}, {rng.choice(INTS)}), index)"
    ops = [op for op in PARTIAL if any(t.op == op for t in TYPINGS[at])]
    second = rng.choice((*alike, *alike, *constants(at)))
    return f"{rng.choice(ops)}({rng.choice(alike)}, {second})"
