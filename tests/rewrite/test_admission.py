"""The matcher accepts a node exactly where the prover's reading of the pattern admits it."""

from __future__ import annotations

import random

import pytest
from admission import Admission
from rule_text import rules

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.errors import MorokError, RuleError
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp, dtypes
from morok.rewrite.ruleset import RuleSet

SCALARS = (
    dtypes.i32,
    dtypes.i32,
    dtypes.i64,
    dtypes.u8,
    dtypes.f32,
    dtypes.f32,
    dtypes.f16,
    dtypes.bool,
    dtypes.index,
    dtypes.index,
)
TYPES = (
    "i32", "f32", "index", "index?", "bool", "int", "float", "number", "any", "!float", "(i32 | f32)", "T", "U", "T x n",
    "any x n", "f32x2", "any x 1", "any x 2",
)  # fmt: skip
RANGES = ("rs", "[r]", "[r, _q]", "[]", "[r, qs..]", "[ps.., r]", "[ps.., r, qs..]")
DEPTH = 3


class Writer:
    """Writes the text of a random pattern."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def annotated(self, name: str) -> str:
        return f"{name}: {self.rng.choice(TYPES)}" if self.rng.random() < 0.4 else name

    def leaf(self) -> str:
        rng = self.rng
        if rng.random() < 0.25:
            return rng.choice(("@zero", "@const", "@true", "1", "0.0", "-0.0"))
        return self.annotated(rng.choice(("x", "y", "z", "_", "_w")))

    def sequence(self, *names: str) -> str:
        names = names or ("xs", "xs", "_xs")
        name = self.rng.choice(names)
        return f"{name}..: {self.rng.choice(TYPES)}" if self.rng.random() < 0.6 else f"{name}.."

    def pattern(self, depth: int = DEPTH) -> str:
        rng, below = self.rng, depth - 1
        if depth == 0 or rng.random() < 0.15 * (DEPTH - depth):
            return self.leaf()
        p = self.pattern
        return rng.choice(
            (
                lambda: f"Neg({p(below)})",
                lambda: f"Add({p(below)}, {p(below)})",
                lambda: f"Add[{p(below)}, {p(below)}]",
                lambda: f"(Mul | Max)[{p(below)}, {p(below)}]",
                lambda: f"Lt({p(below)}, {p(below)})",
                lambda: f"Where({p(0)}, {p(below)}, {p(below)})",
                lambda: f"(Neg({p(0)}) | Abs({p(0)}))",
                lambda: f"Cast({p(below)}, {rng.choice(('T', 'U', 'f32', 'i32'))})",
                lambda: f"Bitcast({p(below)}, {rng.choice(('T', 'U', 'f32', 'i32'))})",
                lambda: f"Vectorize({self.sequence()})",
                lambda: f"Vectorize({p(below)}, {p(0)})",
                lambda: f"Cat({self.sequence()})",
                lambda: f"Cat({p(below)}, {self.sequence()})",
                lambda: (
                    f"{rng.choice(('Cat', 'Vectorize'))}({self.sequence('bs', '_bs', 'xs')}, {p(below)}, {self.sequence()})"
                ),
                lambda: f"{rng.choice(('Cat', 'Vectorize'))}({p(0)}, {self.sequence()}, {p(below)})",
                lambda: f"Gep {{ vector: {p(below)}, .. }}",
                lambda: f"Reduce {{ src: {p(below)}, ranges: {rng.choice(RANGES)}, op }}",
                lambda: self.index(),
                lambda: f"Load({self.index()})",
                lambda: f"Load({self.index()}, {p(0)})",
                lambda: (
                    f"Load {{ index: {self.index()}, alt: {rng.choice(('a', '_', 'None', self.annotated('a'), 'Some(a)'))} }}"
                ),
            )
        )()

    def index(self) -> str:
        rng = self.rng
        if rng.random() < 0.2:
            return f"Index(_b, {self.sequence()})"
        where = rng.choice(
            (
                "indices",
                f"indices: {self.annotated('js')}",
                f"indices: [{self.leaf()}]",
                f"indices: [{self.sequence()}]",
                f"indices: [{self.sequence('ks', '_ks')}, {self.leaf()}, {self.sequence()}]",
            )
        )
        gate = rng.choice(
            ("", ", ..", ", gate: None", ", gate: g", ", gate: _", f", gate: Some({self.annotated('g')})")
        )
        return f"Index {{ buffer: _b, {where}{gate} }}"


class Grower:
    """Makes nodes of the form of a pattern, of any dtypes and lanes that the IR allows."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.leaves: list[UOp] = []
        self.dtype = rng.choice(SCALARS)
        self.lanes = rng.choice((1, 1, 2, 3))

    def leaf(self, steady: float = 0.8) -> UOp:
        rng = self.rng
        if self.leaves and rng.random() < 0.4:
            return rng.choice(self.leaves)
        d = self.dtype if rng.random() < steady else rng.choice(SCALARS)
        d = d.vec(self.lanes if rng.random() < 0.85 else rng.choice((1, 2)))
        if rng.random() < 0.3:
            made = UOp.const(rng.choice((0, 1, 2)) if not d.is_float else rng.choice((0.0, -0.0, 1.0)), d)
        elif d.is_index and rng.random() < 0.3:
            made = (
                UOp.invalid_at(d)
                if rng.random() < 0.3
                else UOp.var("p", dtypes.bool).where(UOp.var("v", d), UOp.invalid_at(d))
            )
        else:
            made = UOp.var(f"v{rng.randrange(3)}", d)
        self.leaves.append(made)
        return made

    def node(self, ops: list[str], depth: int = DEPTH) -> UOp:
        """A node with ops of the pattern, mostly."""
        rng = self.rng
        if depth == 0 or not ops:
            return self.leaf()
        op = Op[ops.pop(0)] if rng.random() < 0.9 else Op[rng.choice(("Neg", "Add", "Where"))]
        below = [self.node(ops, depth - 1) if rng.random() < 0.9 else self.leaf() for _ in range(3)]
        if op is Op.Cast:
            return below[0].cast(rng.choice(SCALARS))
        if op is Op.Bitcast:
            return below[0].bitcast(rng.choice(SCALARS))
        if op in (Op.Vectorize, Op.Cat):
            kind = [rng.choice(below) if rng.random() < 0.5 else self.leaf() for _ in range(rng.choice((1, 2, 3)))]
            return UOp.new(op, tuple(kind))
        if op is Op.Gep:
            return below[0].gep(*(rng.randrange(below[0].dtype.count) for _ in range(rng.choice((1, 2)))))
        if op is Op.Reduce:
            ranges = [UOp.range(3, i, AxisType.Reduce) for i in range(rng.choice((0, 1, 1, 2, 3)))]
            return below[0].reduce(rng.choice((Op.Add, Op.Max)), *ranges)
        if op is Op.Index:
            return self.index(below)
        if op is Op.Load:
            place = below[0] if below[0].op is Op.Index else self.index(below)
            alt = (self.leaf() if rng.random() < 0.5 else UOp.const(0, place.dtype),) if rng.random() < 0.5 else ()
            return UOp.new(Op.Load, (place, *alt))
        value = below[-1]
        operands = [b if b.dtype is value.dtype else self.like(value) for b in below[: len(TABLE[op].operands)]]
        if op is Op.Where:
            operands[0] = UOp.var("c", dtypes.bool.vec(rng.choice((1, value.dtype.count))))
        return UOp.new(op, tuple(operands))

    def like(self, x: UOp) -> UOp:
        same = [n for n in self.leaves if n.dtype is x.dtype]
        return self.rng.choice([*same, x, UOp.var("w", x.dtype), UOp.const(self.rng.choice((0, 1)), x.dtype)])

    def index(self, below: list[UOp]) -> UOp:
        rng = self.rng
        buffer = UOp.new(Op.DefineGlobal, (), 0, self.dtype.ptr(64))
        indices = [rng.choice((below[0], self.leaf(0.3))) for _ in range(rng.choice((1, 1, 2)))]
        indices = [i if i.dtype.is_integral else UOp.var("k", rng.choice((dtypes.index, dtypes.i32))) for i in indices]
        gate = rng.choice((None, UOp.var("g", dtypes.bool), UOp.var("g", dtypes.bool.vec(self.lanes))))
        return buffer.index(*indices, gate=gate)


def rule_of(pattern: str) -> CheckedRule | None:
    """A rule that wraps whatever its pattern matches; None where the pattern is ill-typed."""
    try:
        (rule,) = check_text(f'group t "t"\n\nr: n @ {pattern} ~> After(n, n)\n').rules()
    except RuleError:
        return None
    return rule


def ops_in(pattern: str) -> list[str]:
    import re

    return [w for w in re.findall(r"[A-Z][a-z]+", pattern) if w in Op.__members__]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_the_matcher_fires_where_the_proof_holds(seed: int) -> None:
    rng = random.Random(seed)
    fired = refused = 0
    for _ in range(150):
        text = Writer(rng).pattern()
        rule = rule_of(text)
        if rule is None:
            continue
        reference, compiled = Admission(rule), RuleSet.of([rule], unproved=True)
        for _ in range(25):
            try:
                node = Grower(rng).node(ops_in(text))
            except MorokError:
                continue
            admitted = reference.admits(node)
            fires = compiled.rewrite_node(node) is not None
            assert fires == admitted, f"{text}\nadmitted: {admitted}, fires: {fires}\n{node.tree()}"
            fired += fires
            refused += not fires
    assert fired > 100
    assert refused > 100


def test_the_annotation_of_a_sequence_is_tested() -> None:
    one, two = UOp.var("x", dtypes.f32), UOp.var("y", dtypes.f32.vec(2))
    scalars = rules("r: Cat(xs..: any x 1) ~> Vectorize(xs..)")
    assert scalars.rewrite_node(UOp.new(Op.Cat, (one, one))) is not None
    assert scalars.rewrite_node(UOp.new(Op.Cat, (one, two))) is None
    assert scalars.rewrite_node(UOp.new(Op.Cat, (two, two))) is None


def test_an_ignored_dtype_is_constrained_all_the_same() -> None:
    x = UOp.var("x", dtypes.f32)
    group = rules("r: n @ Cast(_x, _T: (i32 | i64)) ~> After(n, n)")
    assert group.rewrite_node(x.cast(dtypes.i32)) is not None
    assert group.rewrite_node(x.cast(dtypes.f64)) is None


def test_every_place_is_tried_until_the_guards_hold() -> None:
    a, b, c = (UOp.var(n, dtypes.i32) for n in "abc")
    five, nine = UOp.const(5, dtypes.i32), UOp.const(9, dtypes.i32)
    group = rules("r: Vectorize(before.., x, @const(v): i32, rest..) if v > 5 ~> Vectorize(rest.., x, x, before..)")
    vector = lambda *xs: UOp.new(Op.Vectorize, xs)  # noqa: E731
    for operands, expected in (
        ((a, five, b, nine, c), vector(c, b, b, a, five)),
        ((a, nine), vector(a, a)),
        ((nine, a, nine, nine), vector(nine, a, a, nine)),
        ((nine, a), None),
        ((a, five, b), None),
    ):
        hit = group.rewrite_node(vector(*operands))
        assert (None if hit is None else hit[0]) is expected


def test_what_stands_on_both_sides_may_be_said_to_be_the_same() -> None:
    a, b, c = (UOp.var(n, dtypes.i32) for n in "abc")
    group = rules("r: Vectorize(xs.., x: i32, xs..) if len(xs) > 0 ~> Vectorize(xs.., Neg(x), xs..)")
    assert group.rewrite_node(UOp.vectorize(a, b, c, b, b)) is None
    hit = group.rewrite_node(UOp.vectorize(a, b, c, a, b))
    assert hit is not None
    assert hit[0] is UOp.vectorize(a, b, -c, a, b)


def test_two_places_one_inside_the_other() -> None:
    a, b, c = (UOp.var(n, dtypes.f32) for n in "abc")
    group = rules(
        "r: Cat(as.., Vectorize(bs.., Neg(x), cs..), ds..) if len(cs) == 1 ~> Cat(as.., Vectorize(bs.., x, cs..), ds..)"
    )
    inside = UOp.vectorize(-a, -b, c)
    hit = group.rewrite_node(UOp.new(Op.Cat, (UOp.vectorize(-a, -b), c, inside, a)))
    assert hit is not None
    assert hit[0] is UOp.new(Op.Cat, (UOp.vectorize(a, -b), c, inside, a))
    hit = group.rewrite_node(UOp.new(Op.Cat, (a, inside)))
    assert hit is not None
    assert hit[0] is UOp.new(Op.Cat, (a, UOp.vectorize(-a, b, c)))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("Vectorize(as.., bs..)", "stand side by side"),
        ("Vectorize(as.., x, bs.., y)", "behind `as..` only a last sequence"),
        ("Reduce { src, ranges: [as.., r, bs.., q, cs..], .. }", "behind `as..` only a last sequence"),
    ],
)
def test_where_a_sequence_ends_must_be_clear(pattern: str, said: str) -> None:
    with pytest.raises(RuleError, match=said.replace(".", r"\.")):
        rules(f"r: n @ {pattern} ~> After(n, n)")


def test_a_number_of_lanes_and_a_dtype_that_only_a_sequence_has() -> None:
    text = "r: Gep { vector: Cat(xs..: any x n), .. } if n == 2 and bits(dtype(xs[0])) == 32 ~> Gep(xs[0], [1])"
    two, three = UOp.var("x", dtypes.f32.vec(2)), UOp.var("y", dtypes.f32.vec(3))
    half = UOp.var("z", dtypes.f16.vec(2))
    for operands, expected in (
        ((two, two), two.gep(1)),
        ((three, three), None),
        ((two, three), None),
        ((half, half), None),
    ):
        hit = rules(text).rewrite_node(UOp.new(Op.Cat, operands).gep(0))
        assert (None if hit is None else hit[0]) is expected


def test_a_struct_without_the_rest_has_no_gate() -> None:
    buffer, i = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(64)), UOp.var("i", dtypes.index, 0, 7)
    group = rules("r: n @ Index { buffer: _b, indices } if len(indices) <= 2 ~> After(n, n)")
    gate = UOp.var("g", dtypes.bool)
    for place, fires in ((buffer.index(i), True), (buffer.index(i, i), True), (buffer.index(i, gate=gate), False)):
        assert (group.rewrite_node(place) is not None) is fires


def test_an_optional_operand_is_named_or_said_to_be_there() -> None:
    with pytest.raises(RuleError, match="may be absent"):
        rules("r: Index { buffer: _b, indices: [_i], gate: Not(_g), .. } ~> 0.0")
