"""Ops of other dialects that are called as ops of Morok: read by the role that they declare, not by their names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CODE = """
import sys, foreign
from morok import dialect
from morok.dialect import OperandInfo, OpInfo
from morok.dsl.check import check_text
from morok.prove.workers import judge

mine = dialect.find("saturating")
fields = {{"fields": ("indices",), "field_kinds": {{"indices": "ints"}}}}
gep = OpInfo(name="Gep", key="gep", operands=(OperandInfo("vector"),), types="result ~ vector", role={role!r}, **fields)
type(mine).ops = {{**mine.ops, "Gep": gep}}
text = '''dialect saturating
group g "x"

r: Gep {{ vector: Gep {{ vector: x, indices: [0] }}, indices: [0] }} ~> Gep {{ vector: x, indices: [0] }}
    "the only lane"
'''
found = judge(next(iter(check_text(text).rules())), 1_000_000, False)
print(found.verdict, "declares no role" in found.message)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "expected"), [("", "unknown True"), ("take", "proved False"), ("fold", "unknown True")]
)
def test_an_op_called_gep_takes_lanes_only_if_it_says_so(role: str, expected: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path]),
        "MOROK_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", CODE.format(role=role)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == expected
