"""What fires beyond the sizes of its proof: nothing that is not the same lane by lane (trust.md, extents)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from morok.dialect import OperandInfo, OpInfo, register
from morok.dsl.check import check_text
from morok.dsl.extent import Extent, texts
from morok.errors import UnprovedRuleError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove import graph_counterexample
from morok.prove.api import prove
from morok.prove.verdict import Verdict
from morok.rewrite.library import load_rules, rewrite
from morok.rewrite.ruleset import RuleSet
from tests.prove.mistaken import Saturating, Term
from tests.trust.holes import extents_ignored

Pack = Callable[..., tuple[RuleSet, Verdict]]


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pack:
    """Rules of a pack in text, proved and loaded, with the verdict on the first."""
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))

    def load(text: str, dialect: str = "morok") -> tuple[RuleSet, Verdict]:
        file = tmp_path / "pack.rules"
        file.write_text(f'dialect {dialect}\ngroup g\n\n{text}\n    "a rule"\n')
        verdict = prove(file, remember=True)[0]
        return load_rules(file), verdict

    return load


def scalars(n: int, d: DType = dtypes.i32) -> list[UOp]:
    return [UOp.var(f"x{i}", d) for i in range(n)]


def vector(n: int, d: DType = dtypes.i32) -> UOp:
    """A vector of which no rule here knows the lanes."""
    return UOp.new(Op.Neg, (UOp.vectorize(*scalars(n, d)),))


def gep(x: UOp, *lanes: int) -> UOp:
    return UOp.new(Op.Gep, (x,), lanes)


def fires(rules: RuleSet, node: UOp) -> bool:
    return rewrite(node, rules) is not node


# Rules that hold where they were tried, and are false beyond.


@pytest.mark.long
def test_a_dropped_fourth_lane(pack: Pack) -> None:
    """It holds where all is tried, and graphs of more lanes refute it."""
    with pytest.raises(UnprovedRuleError, match="its verdict is refuted"):
        pack("r: Vectorize(xs..) if len(xs) > 1 ~> Vectorize(xs[min(i, 2)] for i in 0..len(xs))")


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "r: Gep { vector: x: i32 x n, indices: is } if len(is) == n and is[0] == 0 and is[n - 1] == n - 1"
        " and (n < 4 or sum(is) == 6) and all(0 <= i and i < n for i in is) and (n != 3 or is[1] == 1) ~> x",
        "r: Gep { vector: Gep { vector: x: i32, indices: _ }, indices: is } if lanes(x) == 1 ~> Gep(x, [i ^ i for i in is])",
    ],
)
def test_rules_about_lanes_have_no_extent(pack: Pack, text: str) -> None:
    """They are proved at any number of lanes, or not at all, however many they are true of."""
    assert (pack_verdict(text).verdict, pack_verdict(text).extents) == ("unknown", ())
    with pytest.raises(UnprovedRuleError):
        pack(text)


def test_a_list_without_a_name_is_measured_too(pack: Pack) -> None:
    rules, verdict = pack(
        "r: Take { vector: Take { vector: x, indices: _ }, indices: is } if lanes(x) == 1 and (len(is) < 4 or len(is) > 9)"
        " ~> Take { vector: x, indices: [i - i + len(is) // 9 for i in is] }",
        OTHER.name,
    )
    assert verdict.verdict == "bounded", verdict.message
    assert Extent("length", "_", 1, 3) in verdict.extents
    assert "_size(" in rules.code


@pytest.mark.long
@pytest.mark.parametrize("lanes", [4, 5, 9, 12, 16, 64])
def test_a_fold_that_forgets_lanes(pack: Pack, lanes: int) -> None:
    """It is true of few lanes: a rule about a fold has no extent, and none is loaded that is false of more."""
    text = (
        "r: n @ Reduce { src: x: int, ranges: [], op: Add } if lanes(n) == 1 and lanes(x) > 1 and lanes(x) <= 3"
        f" or lanes(n) == 1 and lanes(x) >= {lanes}"
        f" ~> Reduce {{ src: Gep(x, [min(k, {lanes - 2}) for k in 0..lanes(x)]), ranges: [], op: Add }}"
    )
    with pytest.raises(UnprovedRuleError):
        pack(text)
    assert pack_verdict(text).verdict in ("unknown", "refuted")


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "r: Mul(x: index, @const(c)) if c >= 0 and (1 << c) >> c == 1 and c < 100000 ~> Neg(Mul(x, const(-c, index)))",
            "shift",
        ),
        ("r: Mul(x: index, @const(c)) if is_pow2(c) and c > 0 ~> Neg(Mul(x, const(-c, index)))", "power"),
        ("r: Mul(x: index, @const(c)) if c > 0 let k = log2(c) ~> Neg(Mul(x, const(-c, index)))", "power"),
    ],
)
def test_compile_time_amounts(pack: Pack, text: str, kind: str) -> None:
    rules, verdict = pack(text)
    assert verdict.verdict == "bounded", verdict.message
    assert kind in {e.what for e in verdict.extents}
    x = UOp.var("x", dtypes.index)

    def at(c: int) -> UOp:
        return UOp.new(Op.Mul, (x, UOp.const(c, dtypes.index)))

    assert fires(rules, at(64)) is True
    assert not fires(rules, at(70 if kind == "shift" else 1 << 70))


def test_rules_about_tensors_fire_at_any_rank(pack: Pack) -> None:
    rules, verdict = pack(
        "r: Permute { src: Permute { src: x, axes: a }, axes: b } ~> Permute { src: x, axes: [a[i] for i in b] }"
    )
    assert verdict.verdict == "proved", verdict.message
    assert not verdict.extents
    for rank in (0, 1, 4, 5, 9):
        x = UOp.var("t", dtypes.f32)
        for _ in range(1):
            x = UOp.new(Op.Reshape, (x, *[UOp.const(1, dtypes.index)] * rank))
        order = tuple(reversed(range(rank)))
        twice = UOp.new(Op.Permute, (UOp.new(Op.Permute, (x,), order),), order)
        assert fires(rules, twice)


def test_axes_named_one_by_one_are_no_axes_at_all(pack: Pack) -> None:
    """Their numbers are not known: read as none, any two orders would be the same."""
    verdict = pack_verdict("r: Permute { src: x, axes: [i, j] } if i != j ~> Permute { src: x, axes: [j, i] }")
    assert not verdict.usable


def pack_verdict(text: str) -> Verdict:
    from morok.dsl.check import check_text
    from morok.prove.solve import DEFAULT_BUDGET
    from morok.prove.workers import judge

    rule = next(iter(check_text(f'group g "x"\n\n{text}\n    "a rule"\n').rules()))
    return judge(rule, DEFAULT_BUDGET, False)


OF_LOOPS = (
    "r: n @ Reduce { src: x: i32, ranges: [r, rest..], op: Add } if lanes(n) == 1 and lanes(x) == 2"
    " ~> Reduce { src: Add(Gep(x, [0]), Gep(x, [1])), ranges: [r, rest..], op: Add }"
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        # open: it is true, and a number of lanes that is written is not read in a fold over loops
        pytest.param(OF_LOOPS, "unknown", marks=pytest.mark.long),
        (OF_LOOPS.replace("[1]", "[0]"), "refuted"),
    ],
)
def test_rules_about_folds_over_loops_have_no_extent(pack: Pack, text: str, verdict: str) -> None:
    """They are proved at any number of iterations, or not at all: there is none that a rule is loaded for."""
    assert (pack_verdict(text).verdict, pack_verdict(text).extents) == (verdict, ())
    with pytest.raises(UnprovedRuleError):
        pack(text)


# Rules that are true at every size, and proved there; with false twins that are not, and do not fire beyond what was tried.

AT = (16, 64)


@pytest.mark.long
@pytest.mark.parametrize("lanes", AT)
@pytest.mark.parametrize(
    ("true", "false", "make"),
    [
        (
            "Gep { vector: Gep { vector: x: i32, indices: a }, indices: b } ~> Gep(x, [a[i] for i in b])",
            "Gep { vector: Gep { vector: x: i32, indices: a }, indices: b } ~> Gep(x, [a[i % 4] for i in b])",
            lambda n: gep(gep(vector(n), *reversed(range(n))), *reversed(range(n))),
        ),
        (
            "Gep { vector: Vectorize(xs..), indices: is } ~> Vectorize(xs[i] for i in is)",
            "Gep { vector: Vectorize(xs..), indices: is } ~> Vectorize(xs[i - i // 5] for i in is)",
            lambda n: gep(UOp.vectorize(*scalars(n)), *reversed(range(n))),
        ),
        (
            "Gep { vector: Add(x: i32, y), indices: is } ~> Add(Gep(x, is), Gep(y, is))",
            "Gep { vector: Add(x: i32, y), indices: is } ~> Add(Gep(x, is), Gep(y, [is[k - k // 4] for k in 0..len(is)]))",
            lambda n: gep(UOp.new(Op.Add, (vector(n), UOp.vectorize(*reversed(scalars(n))))), *reversed(range(n))),
        ),
    ],
)
def test_lanes_taken_and_joined(
    pack: Pack, lanes: int, true: str, false: str, make: Callable[[int], UOp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_counterexample, "LARGE", 0)  # graphs of many lanes, which refute the twin
    rules, verdict = pack(f"r: {true}")
    assert verdict.verdict == "proved", verdict.message
    assert not verdict.extents
    assert fires(rules, make(lanes))
    with pytest.raises(UnprovedRuleError):
        pack(f"r: {false}")


# Rules of another dialect.


class Lanes(Saturating):
    """Terms of several numbers: sums, an op that takes some of them, and an op that joins them."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "taking"  # other tests have a dialect of the name that it would have
        take = OpInfo(
            name="Take",
            key="take",
            operands=(OperandInfo("vector"),),
            fields=("indices",),
            field_kinds={"indices": "ints"},
            types="result ~ vector",
            role="take",
        )
        join = OpInfo(
            name="Join", key="join", operands=(OperandInfo("parts", many=True),), types="result ~ parts", role="join"
        )
        self.ops = {"Add": self.ops["Add"], "Take": take, "Join": join}  # each op is verified for each dialect

    def operands(self, node: Term) -> Sequence[Term]:
        return node[1:2] if node[0] == "take" else node[1:] if node[0] == "join" else super().operands(node)

    def type(self, node: Term) -> Hashable:
        return self.type(node[1]) if node[0] in ("take", "join") else super().type(node)

    def attr(self, node: Term, name: str) -> Any:
        return node[2]

    def lanes_of(self, node: Term) -> tuple[Term, ...]:
        given = [self.lanes_of(o) for o in self.operands(node)]
        if node[0] == "take":
            return tuple([given[0][i] for i in node[2]])
        if node[0] == "join":
            return tuple([lane for lanes in given for lane in lanes])
        return tuple([(node[0], *lanes) for lanes in zip(*given, strict=True)]) if given else (node,)

    def build(self, op: str, operands: Sequence[Term], attrs: Mapping[str, Any], dtype: Hashable | None) -> Term:
        return (
            ("take", *operands, tuple(attrs["indices"])) if op == "Take" else super().build(op, operands, attrs, dtype)
        )

    def rebuild(self, node: Term, operands: Sequence[Term]) -> Term:
        return ("take", *operands, node[2]) if node[0] == "take" else super().rebuild(node, operands)


OTHER = Lanes()
register(OTHER)
VALUE: Term = ("var", "sat", "x")


def taken(outer: Sequence[int], inner: Sequence[int]) -> Term:
    return ("take", ("take", VALUE, tuple(inner)), tuple(outer))


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "tried", "beyond"),
    [
        (
            "Take { vector: Take { vector: x, indices: a }, indices: b } if len(b) > 3 or all(a[i] == i for i in b)"
            " ~> Take { vector: x, indices: b }",
            [taken((0,), (0, 1)), taken((0, 1, 2), (0, 1, 2))],
            [taken(range(n), range(n - 1, -1, -1)) for n in (4, 16, 64)],
        ),
        (
            "Join(Join(xs..)) if len(xs) == 1 or len(xs) > 3 ~> Join(xs[0] for i in 0..len(xs))",
            [("join", ("join", VALUE))],
            [("join", ("join", *(("var", "sat", f"x{i}") for i in range(n)))) for n in (4, 16, 64)],
        ),
    ],
)
def test_sizes_in_another_dialect_beyond_what_was_tried(
    pack: Pack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, tried: list[Term], beyond: list[Term]
) -> None:
    rules, verdict = pack(f"r: {text}", OTHER.name)
    assert verdict.verdict == "bounded", verdict.message
    assert all(rewrite(node, rules) != node for node in tried)
    assert [node for node in beyond if rewrite(node, rules) != node] == []
    extents_ignored(monkeypatch)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "another"))
    unlimited, _ = pack(f"r: {text}", OTHER.name)
    assert [node for node in beyond if rewrite(node, unlimited) == node] == []


def counting(inline: Mapping[str, str], facts: Mapping[str, Callable[[Term], int]]) -> Lanes:
    """Such a dialect that says in this way how many lanes nodes have, or by `lanes_of` alone."""
    made = Lanes()
    made.name = f"counting_{'_'.join((*inline, *facts))}"
    made.inline = {**made.inline, **inline}
    made.facts = {**made.facts, **facts}
    register(made)
    return made


COUNTING = [
    counting({}, {}),
    counting({"lanes": "len(_d.lanes_of({n}))"}, {}),
    counting({}, {"lanes": lambda n: len(OTHER.lanes_of(n))}),
]


def of_lanes(n: int, taken: int) -> Term:
    return ("take", ("join", *(("var", "sat", f"x{i}") for i in range(n))), tuple(range(taken)))


@pytest.mark.parametrize("made", COUNTING, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "rule", ["{ vector: x: sat x 2, indices: [0, 1] } ~> x", "{ vector: x, indices: _ } if lanes(x) < 3 ~> x"]
)
def test_lanes_are_counted_whatever_says_how_many_there_are(made: Lanes, rule: str) -> None:
    text = f'dialect {made.name}\ngroup g "g"\n\nr: Take {rule}\n'
    rules = RuleSet.of(list(check_text(text).rules()), unproved=True)
    assert [n for n in (2, 3, 5, 64) if rules.rewrite_node(of_lanes(n, 2))] == [2]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", COUNTING, ids=lambda d: d.name)
def test_an_extent_in_lanes_is_of_the_lanes_that_there_are(pack: Pack, made: Lanes) -> None:
    rules, verdict = pack("r: Take { vector: x, indices: [0, 1, 2] } ~> x", made.name)
    assert [(e.what, e.most) for e in verdict.extents] == [("lanes", 3)], verdict
    assert [n for n in (3, 4, 5, 64) if rewrite(of_lanes(n, 3), rules) != of_lanes(n, 3)] == [3]


@pytest.mark.long
def test_amounts_in_another_dialect_beyond_what_was_tried(pack: Pack) -> None:
    rules, verdict = pack("r: Add(x, @const(c)) if (c == 0 or c > 70) and (1 << c) >= 1 ~> x", OTHER.name)
    assert verdict.verdict == "bounded", verdict.message
    sums: list[Term] = [("add", VALUE, ("const", "sat", c)) for c in (0, 64, 71, 100)]
    assert [node[2][2] for node in sums if rewrite(node, rules) != node] == [0]


def test_extents_of_one_quantity_meet() -> None:
    assert Extent("lanes", "x", 1, 4).meet(Extent("lanes", "x", 2, 8)) == Extent("lanes", "x", 2, 4)
    assert texts([Extent("lanes", "$1", 1, 3), Extent("length", "xs", 0, 3), Extent("length", "ys", 0, 3)]) == [
        "1..3 lanes",
        "0..3 items of xs, ys",
    ]
