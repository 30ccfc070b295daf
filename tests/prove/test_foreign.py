"""Somebody else's terms: proved and rewritten without Morok's own IR."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(code: str, tmp_path: Path) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path]),
        "MOROK_CACHE_DIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_five_rules_are_proved_and_rewrite_without_our_ir(tmp_path: Path) -> None:
    code = """
import sys, foreign
from morok.prove.api import prove
verdicts = prove(foreign.RULES, jobs=1, use_cache=False)
print([v.verdict for v in verdicts])
foreign.main()
print([m for m in sys.modules if m.startswith("morok.ir")])
"""
    lines = run(code, tmp_path).splitlines()
    assert lines[0] == str(["proved"] * 5)
    assert lines[-2] == "-> ('add', ('var', 'x'), ('const', 42))"
    assert lines[-1] == "[]"


@pytest.mark.long
def test_a_saturated_sum_is_no_wrapped_one(tmp_path: Path) -> None:
    code = """
import foreign
from morok.dsl.check import check_text
from morok.prove.api import prove
text = '''dialect saturating
group wrapped "true of sums that wrap, false of sums that stop"

cancel: Sub(Add(x, y), y) ~> x
reassociate: Add[Add[x, @const(a)], @const(b)] if -100 <= a + b and a + b <= 100 ~> Add(x, a + b)
    "a step down after a step up"
'''
for v in prove(list(check_text(text).rules()), jobs=1):
    print(v.verdict, v.counterexample["confirmed"])
"""
    assert run(code, tmp_path).splitlines() == ["refuted True", "refuted True"]
