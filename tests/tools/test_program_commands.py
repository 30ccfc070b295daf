"""`morok run` and `morok trace` as JSON: one document on stdout, what the program prints on stderr."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from morok.passes.pipeline import STAGES
from morok.tensor.plans import forget_kernels
from morok.tools.cli import main

PROGRAM = """
import sys
from morok import Tensor

print("said", sys.argv[1:])
print((Tensor([1, 2, 3]) * 2).sum().item())
if sys.argv[1:] == ["stop"]:
    sys.exit(3)
if sys.argv[1:] == ["fail"]:
    Tensor([1, 2]) + Tensor([1, 2, 3])
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return str(file)


def test_run(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--json", program, "one", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"file": program, "kernels": [{"name": "reduce_3", "device": "CPU"}]}
    assert said.err == "said ['one', '--json']\n12\n"
    assert main(["run", program, "--json"]) == 0
    assert capsys.readouterr().out == "said ['--json']\n12\n"


def test_trace(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--json", "--save", str(tmp_path / "trace.json"), program]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    (kernel,) = document["kernels"]
    assert said.err == "said []\n12\n"
    assert kernel["name"] == "reduce_3"
    assert set(document["firings"]) <= {"proved", "bounded", "defined", "approximate"}
    assert document["firings"]["proved"] > 0
    assert "Reduce" in kernel["before"]
    assert [(s["stage"], s["name"]) for s in kernel["stages"]] == [(s.number, s.name) for s in STAGES]
    changed = [s["after"] for s in kernel["stages"] if s["after"] is not None]
    assert "DefineGlobal" in changed[-1]
    assert len(changed) < len(STAGES)


def test_trace_says_how_far_what_fired_is_proved(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    forget_kernels()
    assert main(["trace", program]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    found = re.fullmatch(r"([\d,]+) firings of (\d+) rules: (.*)", last)
    assert found is not None, last
    shares = [part.split(" % ") for part in found[3].split(", ")]
    assert {verdict for _, verdict in shares} <= {"proved", "bounded", "defined", "approximate"}
    assert sum(float(share) for share, _ in shares) == pytest.approx(100, abs=0.2)


@pytest.mark.parametrize("command", ["run", "trace"])
def test_programs_that_end_early(command: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--json", program, "stop"])
    assert stopped.value.code == 3
    assert [k["name"] for k in json.loads(capsys.readouterr().out)["kernels"]] == ["reduce_3"]
    assert main([command, "--json", program, "fail"]) == 2
    said = capsys.readouterr()
    assert "do not broadcast" in json.loads(said.out)["errors"][0]["message"]
    assert main([command, "--json", program + "x"]) == 2
    assert "does not exist" in json.loads(capsys.readouterr().out)["errors"][0]["message"]
