"""Rules over forms that the prover does not read: an answer, or `unknown` that says what is not read, and no error."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.errors import RuleError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.encoding import obligation
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

FORMS = {
    # a number and a tensor of one element
    "Gep { vector: Tanh(Vectorize(x: f16, y)), indices: [1], .. } ~> Expand(y)": {"refuted"},
    "Reshape(Permute { src: x, axes: _a }, s..) ~> Reshape(x, s..)": {"unknown", "refuted"},
    "Reshape(Flip { src: x, axes: _a }, s..) ~> Reshape(x, s..)": {"unknown", "refuted"},
    "Wmma { a, b, c, meta } ~> Wmma { a: b, b: a, c, meta }": {"unknown", "refuted"},
    "Wmma { a: Xor(x: i32, Xor(y, x)), b, c, meta } ~> Wmma { a: y, b, c, meta }": {"unknown", "proved"},
    "Flip { src: x, axes: a } ~> Flip { src: x, axes: [not i for i in a] }": {"unknown", "refuted"},
    "Add(Sub(k: i16, Reduce { src: v, ranges: [r], op: _o }), Reduce { src: v, ranges: [r], op: _o }) ~> k": {
        "refuted"
    },
    "Reduce { src: x: index, ranges: [r @ Range(e: index)], op: Detach } if free_of(x, r) and vmin(e) >= 1 ~> x": {
        "unknown"
    },
    "Lt(Unroll(x: i32), 0) ~> false": {"unknown", "refuted"},
    "Min(Unroll(@one: f16), x) ~> Mul(0.0, x)": {"unknown", "refuted"},
    "Lt(End(x: index, @const(d)), @const(c)) if d > 0 ~> Lt(x, c * d)": {"unknown", "refuted"},
    "Reshape { src: x: i32, shape: s } ~> Mul(Reshape { src: x, shape: s }, min(len(s), 1))": {"unknown", "refuted"},
    "Reshape { src: x: i32, shape: [s..] } ~> Mul(Reshape { src: x, shape: [s..] }, min(len(s), 1))": {
        "unknown",
        "refuted",
    },
    "Vectorize(Load(Index(b: ptr(i32), i: index)), Load(Index(b, Add(i, 2)))) ~> Load { index: Index(b, i), dtype: i32x2 }": {
        "refuted"
    },
    # at two lanes there is no such q, and the store matches all the same
    "Store(p @ Index(b: ptr(i32), i: index), v: i32) let q = Index(p, 0) ~> Store(p, v)": {"unknown"},
    # a node is built with the lanes of the dtype that is written
    "l @ Load(Index(b: ptr(i32), Add(i: index, 0))) let k = 2 ~> Load { index: Index(b, i), dtype: dtype(l, k) }": {
        "unknown",
        "refuted",
    },
    "r @ Reduce { src: Unroll { src: x: i32, axes: a }, ranges: rs, op } let k = 2"
    " ~> Reduce { src: Unroll { src: x, axes: a }, ranges: rs, op, dtype: dtype(r, k) }": {"unknown", "refuted"},
    "n @ Reduce { src: x: i32, ranges: [], op } let k = lanes(x) ~> Reduce { src: x, ranges: [], op, dtype: dtype(n, k) }": {
        "unknown",
        "refuted",
    },
    "Index { buffer: b: ptr(f32), indices: [i: index], gate: None } let u = min([-1, 2]) if u < 0"
    " ~> Index { buffer: b, indices: [Add(i, 0)] }": {"proved"},
    "Group(ss..: void) ~> Group(ss[min(i, 2)] for i in 0..len(ss))": {"unknown", "refuted"},
    "n @ Reduce { src: x: i32, ranges: [], op: Max } if lanes(n) == 1 and lanes(x) == 2"
    " ~> Max(Max(Gep(x, [0]), Gep(x, [1])), 0)": {"unknown", "refuted"},
    "n @ Reduce { src: x: f32, ranges: [], op: Add } if lanes(n) == 1 and lanes(x) == 2"
    " ~> Add(Add(Gep(x, [0]), Gep(x, [1])), 0.0)": {"unknown", "refuted"},
    "n @ Reduce { src: Vectorize(x: i32, @zero), ranges: [], op } if lanes(n) == 1 ~> x": {"unknown", "refuted"},
    "Neg(x: i8) ~> inside(x)": {"unknown", "refuted"},
    "Range(x @ Reshape(_y, n: index), i: index) ~> Index(x, i)": {"unknown", "refuted"},
    "Index(b: ptr(i32), x @ Reshape(_y: index, _n)) ~> Index(b, x)": {"unknown", "refuted", "proved"},
    "Unroll { src: Xor(x: i32, Xor(y, x)), axes: a } ~> Unroll { src: y, axes: a }": {"unknown", "proved", "bounded"},
    "Contract { src: Neg(Neg(x: i32)), axes: a } ~> Contract { src: x, axes: a }": {"unknown", "proved", "bounded"},
    "Add(Sub(k: i16, a @ Reduce { src: v, ranges: [r], op: o }), a) ~> k": {"proved", "bounded"},
}


def test_a_field_is_no_node() -> None:
    with pytest.raises(RuleError) as why:
        check_text(
            'group g "forms"\n\nr: Unroll { src: x: i32, axes: a } if vmax(a) < 2 ~> Unroll { src: x, axes: a }\n'
        )
    assert why.value.code == "MRK102"
    assert "a node is expected" in why.value.message


def test_an_index_has_no_least_value() -> None:
    (rule,) = check_text('group g "g"\n\nr: Add[x: (i32 | index), @zero] ~> Max(x, identity(Max, x))\n').rules()
    assert judge(rule, DEFAULT_BUDGET, False).verdict == "proved"
    rules = RuleSet.of([rule], unproved=True)
    found = [
        rules.rewrite_node(UOp.new(Op.Add, (UOp.var("x", d), UOp.const(0, d))), None)
        for d in (dtypes.index, dtypes.i32)
    ]
    assert found[0] is None
    assert found[1] is not None
    assert found[1][0].op is Op.Max


@pytest.mark.sampled(12)
@pytest.mark.parametrize("text", FORMS)
def test_forms_end_in_a_verdict(text: str) -> None:
    (rule,) = check_text(f'group g "forms"\n\nr: {text}\n').rules()
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict in FORMS[text], found.message
    assert found.message or found.verdict != "unknown"


def test_a_rule_of_too_many_alternatives_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each combination of them is a question: no budget of the solver ends that."""
    monkeypatch.setattr(obligation, "MOST_CHOICES", 2)
    text = "Neg((Add | Sub | Mul)(x: i8, x)) if vmin(x) == 0 and vmax(x) == 0 ~> zero(x)"
    (rule,) = check_text(f'group g "forms"\n\nr: {text}\n').rules()
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "unknown"
    assert "combinations" in found.message
