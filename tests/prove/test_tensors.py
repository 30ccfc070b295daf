"""Rules about tensors: proved at any rank and size, or refuted by graphs; never both."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

from morok.dsl import values
from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.errors import IRError
from morok.ir.dtype import DType, dtypes
from morok.ir.expression_parser import parse
from morok.ir.interpret import evaluate
from morok.ir.interpret.lane_values import Poison, pointwise
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.obligations import by_numbers
from morok.prove.parametric import laws, number_ops
from morok.prove.parametric.polynomials import TIMES
from morok.prove.parametric.proof import parametric_proof
from morok.prove.parametric.setting import Setting
from morok.prove.progress import Progress
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol
from morok.prove.trust import differential
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

A, B = Symbol("variable", "a"), Symbol("variable", "b")
HERE = Path(__file__).parent
# Beyond what graphs are tried at, or false of some values within a tolerance: nothing refutes these, and nothing may show them.
BEYOND = frozenset(
    {
        "views.not_six",
        "places.nowhere",
        "numbers.up_to_two",
        "folds.five_axes",
        "computed.odd",
        "computed.squared",
        "computed.of_two_dtypes",
        "made_in_conditions.permuted",
        "made_in_conditions.folded",
        "made_in_conditions.permuted_for_nothing",
        "made_in_conditions.folded_for_nothing",
        "made_in_conditions.made_again",
        "nameless.told_by_number",
        "decided_places.either",
        "decided_places.both",
        "compared_conditions.of_shapes",
        "compared_conditions.of_each_shape",
        "compared_conditions.of_nodes",
        "turned_ranges.counted",
        "turned_ranges.paired",
        "turned_ranges.added",
        "turned_ranges.paired_in_target",
        "sums_of_conditions.counted",
        "sums_of_conditions.named",
        "sums_of_conditions.of_sums",
    }
)


def rules(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"tensors_{name}.rules").rules())


def rule(text: str) -> CheckedRule:
    (found,) = check_text(f'group g "tensors"\n\nr: {text}\n', "<test>").rules()
    return found


def holds(of: CheckedRule) -> bool:
    smt.forget()
    progress = Progress(DEFAULT_BUDGET, False)
    return parametric_proof(of, progress.ask, by_numbers(of, progress)).holds


@pytest.mark.sampled(28)
@pytest.mark.parametrize("of", rules("true"), ids=lambda r: r.name)
def test_what_holds_at_any_rank_is_proved_without_an_extent(of: CheckedRule) -> None:
    found = judge(of, DEFAULT_BUDGET, False)
    assert found.verdict == "proved", found.message
    assert not found.extents


@pytest.mark.sampled(45)
@pytest.mark.parametrize("of", rules("false"), ids=lambda r: r.name)
def test_what_is_false_is_not_shown_and_a_graph_refutes_it_where_one_is_small(of: CheckedRule) -> None:
    assert not holds(of)
    found = judge(of, DEFAULT_BUDGET, False)
    assert found.verdict == ("unknown" if of.name in BEYOND else "refuted"), found.message
    if found.verdict == "refuted":
        assert found.counterexample is not None
        assert found.counterexample["confirmed"]


OF_ONE_RANK = (
    "numbers",
    "places",
    "marks",
    "gated_places",
    "perhaps_nowhere",
    "written_ranks",
    "made_of_invalid",
    "boxes",
    "in_row_major_order",
)  # most of whose patterns say how many axes there are


@pytest.mark.sampled(36)
@pytest.mark.parametrize("of", rules("true"), ids=lambda r: r.name)
def test_graphs_of_several_ranks_are_met_and_agree(of: CheckedRule) -> None:
    """A second opinion: the rule's own matcher and the interpreter."""
    apply = differential.Rewriter(of)
    ranks, fired = set(), 0
    for trial in differential.Trials(of, of.instances, worlds=1).first(120):
        made = apply(trial.graph)
        if made is not None:
            assert trial.differs(made) is None
            fired += trial.has_value()
            ranks.add(len(trial.graph.src) if trial.graph.op is Op.Index else len(trial.graph.shape))
    assert fired > 5
    assert len(ranks) > 1 or of.name.split(".")[0] in OF_ONE_RANK


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("Permute { src: x, axes: a } if len(a) == 1 ~> x", True),
        ("Permute { src: x, axes: a } if len(a) == 2 ~> x", False),
        ("Permute { src: x, axes: a } if rank(x) <= 1 ~> x", True),
        ("Permute { src: x, axes: a } if rank(x) <= 2 ~> x", False),
        ("Flip { src: x, axes: a } if all(vmax(n) <= 1 for n in shape(x)) ~> x", True),
        ("Flip { src: x, axes: a } if all(vmax(n) <= 2 for n in shape(x)) ~> x", False),
        ("Flip { src: x, axes: a } if any(vmax(n) == 0 for n in shape(x)) ~> x", True),
        ("Flip { src: x, axes: a } if any(vmax(n) == 1 for n in shape(x)) ~> x", False),
        ("Shrink { src: x, begins: b, ends: e } if same_shape(x, x) ~> x", False),
    ],
)
def test_conditions_on_ranks_and_sizes(text: str, sound: bool) -> None:
    used = text.replace("axes: a }", "axes: _a }") if "(a)" not in text else text
    used = used.replace("begins: b, ends: e", "begins: _b, ends: _e")
    assert holds(rule(used)) is sound


def test_what_graphs_say_of_their_shapes() -> None:
    """`rank`, `shape`, `constant` have no value of what has no shape of its own, and `inverse` none of what is no permutation."""
    one = "group g\nr: Detach(x: i32) if rank(x) == 2 and constant(shape(x)[1]) == 3 ~> x\n"
    fires = RuleSet.of(list(check_text(one, "<test>").rules()), unproved=True)["g.r"].apply
    assert fires(parse("Detach(Reshape(Buffer(Unique(1), Device('CPU'), 6): i32, 2, 3))".replace("'", '"'))) is not None
    assert fires(parse("Detach(Reshape(Buffer(Unique(1), Device('CPU'), 6): i32, 3, 2))".replace("'", '"'))) is None
    assert fires(parse("Detach(Reshape(Param(0): i32, 2, 3))")) is not None
    assert fires(parse("Detach(Param(0): i32)")) is None


@pytest.mark.parametrize("rank", range(5))
def test_the_inverse_of_a_permutation(rank: int) -> None:
    for axes in itertools.product(range(-1, rank + 1), repeat=rank):
        if sorted(axes) == list(range(rank)):
            back = values.inverse(axes)
            assert [axes[k] for k in back] == list(range(rank))
        else:
            with pytest.raises(values.NoValue):
                values.inverse(axes)


def test_the_laws_of_row_major_places() -> None:
    """The assumptions of proofs about places and their digits, at all shapes of small sizes."""
    for rank in range(4):
        for shape in itertools.product(range(4), repeat=rank):
            elements = math.prod(shape)
            vectors = list(itertools.product(*(range(n) for n in shape)))
            places = [_flat(shape, i) for i in vectors]
            assert sorted(places) == list(range(elements))
            for place, i in zip(places, vectors, strict=True):
                digits = _digits(shape, place)
                assert digits == i
                assert _flat(shape, digits) == place
                backwards = _digits(shape, elements - 1 - place)
                assert backwards == tuple(n - 1 - k for n, k in zip(shape, i, strict=True))


def _flat(shape: tuple[int, ...], i: tuple[int, ...]) -> int:
    place = 0
    for n, k in zip(shape, i, strict=True):
        place = place * n + k
    return place


def _digits(shape: tuple[int, ...], place: int) -> tuple[int, ...]:
    found = []
    for n in reversed(shape):
        found.append(place % n)
        place //= n
    return tuple(reversed(found))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Max", "Min", "Idiv", "Mod", "FloorDiv", "FloorMod"])
def test_proofs_and_the_interpreter_calculate_alike_with_indices(name: str) -> None:
    x, y = UOp.var("x", dtypes.index, -9, 9), UOp.var("y", dtypes.index, -9, 9)
    ask = Progress(DEFAULT_BUDGET, False).ask
    for a, b in itertools.product((-7, -1, 0, 1, 2, 3, 8), repeat=2):
        if b <= 0 and name in ("Idiv", "Mod", "FloorDiv", "FloorMod"):
            continue  # of such divisors proofs know nothing
        s = Setting()
        term = number_ops.op(name, "index", "index")(laws.NUMBER(smt.Int(A)), laws.NUMBER(smt.Int(B)))
        found = number_ops.number(s, term).term
        products = [t for t in subterms([found, *s.laws]) if t.data is TIMES]
        given = [smt.Int(A) == a, smt.Int(B) == b, *s.laws, *(laws.product_with(b, *t.args) for t in products)]
        expected = evaluate(UOp.new(Op[name], (x, y)), {"x": a, "y": b})
        assert ask("number", [*given, smt.Not(found == expected)], 1.0).answer is Answer.UNSAT, (a, b)


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.i32, dtypes.f32, dtypes.index], ids=str)
def test_only_ops_that_are_known_as_lenient_have_a_value_where_an_operand_has_none(dtype: DType) -> None:
    lenient = set()
    for op, entry in TABLE.entries.items():
        if not entry.pointwise or op is Op.Cast:
            continue
        count = len(entry.operands)
        operands = [UOp.const(0, dtypes.bool if op is Op.Where and k == 0 else dtype) for k in range(count)]
        try:
            node = UOp.new(op, tuple(operands))
        except IRError:
            continue  # not of this dtype
        for without, value in itertools.product(range(count), (False, True)):
            given: list[tuple[Any, ...]] = [(value if x.dtype.is_bool else int(value),) for x in operands]
            given[without] = (Poison("none", node),)
            if not isinstance(pointwise(node, given)[0], Poison):
                lenient.add(op.name)
    assert lenient == (number_ops.LENIENT if dtype.is_bool else {"Where"})
