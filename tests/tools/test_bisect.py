"""`morok bisect`: the stage, and the rule or algorithm, that changes what a kernel stores."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from morok import dtypes
from morok.dsl.check import check_text
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import pipeline
from morok.passes.pipeline import Stage
from morok.passes.target import Target
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.tools.bisect import wrong_firing
from morok.tools.cli import main

PROGRAM = """
import numpy as np
from morok import Tensor

a = Tensor(np.arange(12, dtype=np.int32).reshape(3, 4))
print((a * 3 + a.sum(1).reshape(3, 1)).numpy().sum(), (Tensor(np.ones(8, np.float32)) * 0.5 - 2.0).sum().item())
"""
FALSE = 'group wrong\n\nfive: Mul[x: i32, 3] ~> Mul(x, 5)\n    "two too many"\n'


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return str(file)


def test_nothing_changes(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", program]) == 0
    assert "0 change their value" in capsys.readouterr().out


def test_a_false_rule(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rules = RuleSet.of(list(check_text(FALSE).rules()))
    apply = pipeline.apply_groups

    def with_a_false_rule(stage: Stage, ast: UOp, target: Target, trial: RuleSet | None = None) -> UOp:
        ast = apply(stage, ast, target, trial)
        return graph_rewrite(ast, rules, stage="4") if stage.number == 4 else ast

    monkeypatch.setattr(pipeline, "apply_groups", with_a_false_rule)
    assert main(["bisect", "--json", program]) == 1
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert (change["stage"], change["name"], change["culprit"]["rule"]) == (4, "Initial symbolic", "wrong.five")
    assert (change["culprit"]["before"].endswith(", 3)"), change["culprit"]["after"].endswith(", 5)")) == (True, True)
    assert "became" in change["culprit"]["values"]


def test_a_false_algorithm(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def drop_a_constant(ast: UOp, target: Target) -> UOp:
        halves = {n: n.like(0.25) for n in ast.toposort() if n.op is Op.Const and n.arg == 0.5}
        return ast.substitute(halves)

    stages = [dataclasses.replace(s, algorithm=drop_a_constant) if s.number == 5 else s for s in pipeline.STAGES]
    monkeypatch.setattr(pipeline, "STAGES", tuple(stages))
    assert main(["bisect", program]) == 1
    said = capsys.readouterr().out
    assert "the value changes in stage 5: Simplify ranges: element 0 of buffer" in said
    assert "by its algorithm, drop_a_constant" in said
    assert "1 change their value" in said


def test_large_kernels_are_passed_over(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "--limit", "1", program]) == 0
    said = capsys.readouterr()
    assert "passed over" in said.err
    assert "0 kernels interpreted" in said.out
    assert main(["bisect", "--limit", "0", program]) == 2


def test_what_a_false_rule_made() -> None:
    rules = RuleSet.of(list(check_text(FALSE).rules()))
    before = UOp.var("x", dtypes.i32, 1, 9) * 3
    assert "became" in str(wrong_firing(before, graph_rewrite(before, rules), {}))
    assert wrong_firing(before, before + before - before, {}) is None
