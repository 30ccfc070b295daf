"""Random rules about storage and loops: lanes of a store left out, loops that may not run, folds of nothing, undefined lanes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

STORED: Final = ("i8", "u8", "i16", "i32", "f32")
BITS: Final = {"f16": "i16", "bf16": "u16", "f32": "i32"}


def memory(rng: random.Random) -> str:
    """A rule about what is stored, or about how often something is done."""
    return rng.choice(FORMS)(rng)


class _Named:
    """The variables of a rule, annotated where they are written first."""

    def __init__(self, types: dict[str, str]) -> None:
        self.types = dict(types)

    def __call__(self, name: str) -> str:
        found = self.types.pop(name, "")
        return f"{name}: {found}" if found else name


def _joined(lanes: list[str]) -> str:
    return lanes[0] if len(lanes) == 1 else f"Vectorize({', '.join(lanes)})"


def stores(rng: random.Random) -> str:
    """A store of some lanes, some of which hold what is in memory; and the store of others of them."""
    at = rng.choice(STORED)
    count = rng.choice((1, 2, 2, 2, 3))
    places = [rng.choice("iij") for _ in range(count)]
    values = [_value(rng, places[k]) for k in range(count)]
    named = _Named({"i": "index x 1", "j": "index x 1", "x": f"{at} x 1", "y": f"{at} x 1", "c": "bool x 1"})
    buffer = f"b: ptr({at})"
    index = f"Index {{ buffer: {buffer}, indices: [{_joined([named(p) for p in places])}], gate: None }}"
    written = _joined([_pattern(named, v) for v in values])
    kept = [k for k in range(count) if rng.random() < 0.7]
    if len(kept) == count or rng.random() < 0.2:
        rng.shuffle(kept)
    guard = ""
    if set(places) == {"i", "j"} and rng.random() < 0.5:
        guard = f" if {rng.choice(('vmax(i) < vmin(j)', 'vmax(i) <= vmin(j)', 'not same(i, j)', 'vmin(i) != vmin(j)'))}"
    target = "Noop()"
    if kept:
        target = f"Store(Index(b, {_joined([places[k] for k in kept])}), {_joined([_target(values[k]) for k in kept])})"
    return f"Store {{ index: {index}, value: {written}, ranges: [] }}{guard} ~> {target}"


def _value(rng: random.Random, place: str) -> tuple[str, str]:
    """(the kind of a value, its name or its place)"""
    roll = rng.random()
    if roll < 0.45:
        return "name", rng.choice("xxy")
    there = place if rng.random() < 0.8 else rng.choice("ij")
    return ("load" if roll < 0.85 else "choice"), there


def _pattern(named: Callable[[str], str], value: tuple[str, str]) -> str:
    kind, name = value
    if kind == "name":
        return named(name)
    condition = f"{named('c')}, {named('x')}" if kind == "choice" else ""
    load = f"Load(Index {{ buffer: b, indices: [{named(name)}], gate: None }})"
    return f"Where({condition}, {load})" if condition else load


def _target(value: tuple[str, str]) -> str:
    kind, name = value
    load = f"Load(Index(b, {name}))"
    return name if kind == "name" else load if kind == "load" else f"Where(c, x, {load})"


def loops(rng: random.Random) -> str:
    """A fold over two loops, of whose lengths something is known; and what it is if one of them is not done."""
    at, op = rng.choice(("i32", "i8", "index", "f32")), rng.choice(("Add", "Add", "Mul", "Max"))
    bounds = [
        f"{b}({n}) {rng.choice(('<= 0', '<= 0', '== 1', '>= 1', '< 2'))}" for n, b in (("e", "vmax"), ("f", "vmax"))
    ]
    guard = " and ".join(sorted(rng.sample(bounds, rng.choice((1, 1, 2)))))
    asked = [f"Cast(Mul({n}, 0), {at})" if at != "index" else f"Mul({n}, 0)" for n in "ef"]
    target = rng.choice((*asked, *asked, "zero(n)", "one(n)", "s", f"Reduce {{ src: s, ranges: [f], op: {op} }}"))
    ranges = "[e0 @ Range(e: index), f0 @ Range(f: index)]"
    if "ranges: [f]" in target:
        target = target.replace("[f]", f"[{rng.choice(('e0', 'f0'))}]")
    return f"n @ Reduce {{ src: s: {at} x 1, ranges: {ranges}, op: {op} }} if {guard} ~> {target}"


def beside(rng: random.Random) -> str:
    """A fold of a number beside another number, of which it may or may not be that it decides.

    In half of them a greatest is bounded from above, or a least from below: what one item leaves undecided more of them keep.
    """
    at = "index" if rng.random() < 0.6 else rng.choice(("i8", "i32", "u16"))
    op = rng.choice(("Max", "Max", "Min", "Add"))
    form = rng.choice(("Where(c: bool x 1, FOLD, y @const(n))", "Max(FOLD, y @const(n))", "Min(FOLD, y @const(n))"))
    target = rng.choice(
        ("y", "y", "y", "x", "Max(FOLD, y)", "Where(c, y, FOLD)" if "Where" in form else "Min(y, FOLD)")
    )
    if rng.random() < 0.5:
        op, outer = rng.choice((("Max", "Min"), ("Min", "Max")))
        form, target = f"{outer}(FOLD, y @const(n))", rng.choice(("y", "y", "y", "x"))
    fold = f"Reduce {{ src: x @const(m): {at} x 1, ranges: rs, op: {op} }}"
    again = f"Reduce {{ src: x, ranges: rs, op: {op} }}"
    guard = rng.choice(("n > m", "n >= m", "n <= m", "n < m", "m == n"))
    return f"{form.replace('FOLD', fold)} if {guard} ~> {target.replace('FOLD', again)}"


def bits(rng: random.Random) -> str:
    """An equation between floats under ops that arrange elements; or one between the bits of these floats."""
    at = rng.choice(sorted(BITS))
    left, right = rng.choice(
        (("OP(x: D, y)", "OP(y, x)"), ("Neg(OP(x: D, y))", "Neg(OP(y, x))"), ("OP(Neg(x: D), y)", "OP(y, Neg(x))"))
    )
    op = rng.choice(("Add", "Add", "Mul", "Max", "Min"))
    left, right = (t.replace("OP", op).replace("D", at) for t in (left, right))
    if rng.random() < 0.6:
        left, right = f"Bitcast({left}, {BITS[at]})", f"Bitcast({right}, {BITS[at]})"
    around = rng.choice(
        (
            ("Gep {{ vector: {}, indices: k }}", "Gep({}, k)"),
            ("Permute {{ src: {}, axes: k }}", "Permute({}, k)"),
            ("Flip {{ src: {}, axes: k }}", "Flip({}, k)"),
            ("Detach({})", "Detach({})"),
        )
    )
    return f"{around[0].format(left)} ~> {around[1].format(right)}"


def partly(rng: random.Random) -> str:
    """A vector one lane of which may have no value; and one whose other lane may have none, or has one in both."""
    at = rng.choice(("i8", "i32", "u8", "u16"))
    part = rng.choice(("Idiv(x: D x 1, y: D x 1)", "Mod(x: D x 1, y: D x 1)", "Shl(x: D x 1, y: D x 1)")).replace(
        "D", at
    )
    again = part.replace(f": {at} x 1", "")
    other = rng.choice(("Add(z, Mul(AGAIN, 0))", "Sub(z, Sub(AGAIN, AGAIN))", "Add(z, 0)", "Where(Ne(y, y), AGAIN, z)"))
    lanes = [part, "z"]
    made = [again, other.replace("AGAIN", again)]
    if rng.random() < 0.5:
        return f"Vectorize({', '.join(lanes)}) ~> Vectorize({', '.join(made)})"
    op = rng.choice(("Add", "Max", "Xor"))
    return f"{op}(Vectorize({', '.join(lanes)}), w) ~> {op}(Vectorize({', '.join(made)}), w)"


FORMS: Final = (stores, stores, loops, beside, bits, partly)
