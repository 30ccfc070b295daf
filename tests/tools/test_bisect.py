"""`morok bisect`: the stage, and the rule or algorithm, that changes what a kernel stores."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from morok import dtypes
from morok.codegen.rendered import Rendered
from morok.dsl.check import check_text
from morok.errors import CompileError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import pipeline
from morok.passes.pipeline import Stage
from morok.passes.target import Target
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.runtime.cpu import CPUDevice
from morok.runtime.device import device
from morok.runtime.kernel import Kernel
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


def test_a_program_that_exits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"{PROGRAM}raise SystemExit(3)\n")
    assert main(["bisect", str(file)]) == 0
    assert "0 change their value" in capsys.readouterr().out


def test_a_false_rule(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rules = RuleSet.of(list(check_text(FALSE).rules()), unproved=True)
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


def test_false_code(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every stage is right, and what becomes of the instructions is not; or nothing becomes of them."""
    cpu = type(device("CPU"))
    render, compile_ = cpu.render, cpu.compile

    def wrong(self: CPUDevice, instructions: Sequence[UOp], name: str) -> Rendered:
        rendered = render(self, instructions, name)
        return dataclasses.replace(rendered, text=rendered.text.replace("fadd", "fsub"))

    with monkeypatch.context() as here:
        here.setattr(cpu, "render", wrong)
        here.setattr(cpu, "compile", lambda self, instructions, name: self.load(self.render(instructions, name)))
        assert main(["bisect", program]) == 1
        assert (
            "right after every stage and wrong on the machine: in code generation: element 0 of"
            in capsys.readouterr().out
        )
        assert main(["bisect", "--json", program]) == 1
        (change,) = json.loads(capsys.readouterr().out)["changes"]
        assert (change["stage"], change["name"], change["culprit"]) == (23, "code generation", None)

    def once(self: CPUDevice, instructions: Sequence[UOp], name: str) -> Kernel:
        if name in seen:
            raise CompileError("LLVM rejects it")
        seen.add(name)
        return compile_(self, instructions, name)

    seen: set[str] = set()
    monkeypatch.setattr(cpu, "compile", once)
    assert main(["bisect", program]) == 1
    assert "in code generation: it cannot be compiled: LLVM rejects it" in capsys.readouterr().out


def test_every_dtype_goes_to_the_machine_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"(Tensor([1.0, 2.0, 0.5], dtype=dtypes.{d}) * 2 + 1).realize()" for d in ("f8e4m3", "bf16", "f16", "f64", "u8")
    ]
    file = tmp_path / "program.py"
    file.write_text("\n".join(["from morok import Tensor, dtypes", *lines, "(Tensor([True, False]) & True).realize()"]))
    assert main(["bisect", str(file)]) == 0
    assert "0 change their value" in capsys.readouterr().out


@pytest.mark.long
def test_large_kernels_are_passed_over(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "--limit", "1", program]) == 0
    said = capsys.readouterr()
    assert "passed over" in said.err
    assert "0 kernels interpreted" in said.out
    assert main(["bisect", "--limit", "0", program]) == 2


def test_what_a_false_rule_made() -> None:
    rules = RuleSet.of(list(check_text(FALSE).rules()), unproved=True)
    before = UOp.var("x", dtypes.i32, 1, 9) * 3
    assert "became" in str(wrong_firing(before, graph_rewrite(before, rules), {}))
    assert wrong_firing(before, before + before - before, {}) is None


# With a reference.

WHOLE = """
import numpy as np
from morok import Tensor

a = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
b = (a * 3 + a.sum(1).reshape(3, 1)).realize()
other = Tensor([1.0]).sum().realize()
print((b.flip(1) + 0.5).numpy().shape)
"""


def saved(folder: Path, wrong: float = 0.0) -> str:
    a = np.arange(12, dtype=np.float64).reshape(3, 4)
    out = ((a * 3 + a.sum(1, keepdims=True))[:, ::-1] + 0.5).copy()
    out[1, 2] += wrong
    np.save(folder / "ref.npy", out)
    return str(folder / "ref.npy")


@pytest.fixture
def whole(tmp_path: Path) -> str:
    file = tmp_path / "whole.py"
    file.write_text(WHOLE)
    return str(file)


def test_what_is_as_expected(whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", whole, "--expect", saved(tmp_path)]) == 0
    assert "as expected, after every stage and on the machine" in capsys.readouterr().out


def test_what_was_wrong_before_the_first_stage(whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "--json", f"--expect={saved(tmp_path, 5.0)}", whole]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found == {"stage": 0, "name": "schedule", "what": "element (1, 2) is 37.5, expected 42.5"}


def test_what_a_stage_makes_wrong(
    whole: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def double(ast: UOp, target: Target) -> UOp:
        return ast.substitute({n: n.like(1.0) for n in ast.toposort() if n.op is Op.Const and n.arg == 0.5})

    stages = [dataclasses.replace(s, algorithm=double) if s.number == 12 else s for s in pipeline.STAGES]
    monkeypatch.setattr(pipeline, "STAGES", tuple(stages))
    assert main(["bisect", whole, f"--expect={saved(tmp_path)}"]) == 1
    assert "first wrong after stage 12: Add GPU dims: element (0, 0) is 16.0, expected 15.5" in capsys.readouterr().out


def test_what_the_machine_makes_wrong(
    whole: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cpu = type(device("CPU"))
    render = cpu.render

    def wrong(self: CPUDevice, instructions: Sequence[UOp], name: str) -> Rendered:
        rendered = render(self, instructions, name)
        sign = "fsub" if name.startswith("map") else "fadd"  # the last of the program's kernels
        return dataclasses.replace(rendered, text=rendered.text.replace("fadd", sign))

    monkeypatch.setattr(cpu, "render", wrong)
    monkeypatch.setattr(cpu, "compile", lambda self, instructions, name: self.load(self.render(instructions, name)))
    assert main(["bisect", whole, "--expect", saved(tmp_path)]) == 1
    assert (
        "right after every stage and wrong on the machine: in code generation: element (0, 0)"
        in capsys.readouterr().out
    )


def test_references_that_fit_nothing(whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "seven.npy", np.zeros(7))
    (tmp_path / "text.npy").write_text("no array")
    for arguments, says in (
        ([f"--expect={tmp_path / 'seven.npy'}", whole], "realizes nothing of 7 elements"),
        ([f"--expect={tmp_path / 'text.npy'}", whole], "holds no array"),
        (["--limit", "3", "--expect", saved(tmp_path), whole], "at most 3"),
    ):
        assert main(["bisect", *arguments]) == 2
        assert says in capsys.readouterr().err
