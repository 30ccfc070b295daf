"""Rules over forms that the prover does not read: an answer, or `unknown` that says what is not read, and no error."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

FORMS = {
    "Reshape(Permute { src: x, axes: _a }, s..) ~> Reshape(x, s..)": {"unknown", "refuted"},
    "Reshape(Flip { src: x, axes: _a }, s..) ~> Reshape(x, s..)": {"unknown", "refuted"},
    "Wmma { a, b, c, meta } ~> Wmma { a: b, b: a, c, meta }": {"unknown", "refuted"},
    "Wmma { a: Xor(x: i32, Xor(y, x)), b, c, meta } ~> Wmma { a: y, b, c, meta }": {"unknown", "proved"},
    "Flip { src: x, axes: a } ~> Flip { src: x, axes: [not i for i in a] }": {"unknown", "refuted"},
    "Add(Sub(k: i16, Reduce { src: v, ranges: [r], op: _o }), Reduce { src: v, ranges: [r], op: _o }) ~> k": {"refuted"},
    "Add(Sub(k: i16, a @ Reduce { src: v, ranges: [r], op: o }), a) ~> k": {"proved", "bounded"},
}


@pytest.mark.parametrize("text", FORMS)
def test_forms_end_in_a_verdict(text: str) -> None:
    (rule,) = check_text(f'group g "forms"\n\nr: {text}\n').rules()
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict in FORMS[text], found.message
    assert found.message or found.verdict != "unknown"
