"""Files whose names are no UTF-8, which Unix allows: every command takes them, and says their names in every format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes

RULES = 'group g "some"\n\na: Mul(_x: i32, 0) ~> 0\nb: Add(x: i32, 7) ~> Add(7, x)\n'
WRONG = 'group g "some"\n\na: Mul(_x: i32, 0) ~> 1\n'
PROGRAM = "from morok import Tensor\nprint((Tensor([1.0, 2.0]) * 3).sum().item())\n"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this system's names are text")
    for name, text in ((b"r\xff.rules", RULES), (b"w\xff.rules", WRONG), (b"p\xff.py", PROGRAM)):
        (folder / os.fsdecode(name)).write_text(text)
    return folder


def said(*arguments: str, streams: str = "utf-8:strict", **environment: str) -> tuple[int, bytes]:
    """The status of a command and what it says on stdout, whose encoding has no place for such names."""
    done = subprocess.run(
        [sys.executable, "-m", "morok", *arguments], env={**os.environ, "PYTHONIOENCODING": streams, **environment},
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr
    assert b"UnicodeEncodeError" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_rules_are_loaded_proved_and_used(odd: Path) -> None:
    file = odd / os.fsdecode(b"r\xff.rules")
    assert [(v.name, v.verdict, v.file) for v in morok.prove(file)] == [
        (r"r\xff.g.a", "proved", str(file)),
        (r"r\xff.g.b", "proved", str(file)),
    ]
    for what in (file, odd):
        if what is odd:
            (odd / os.fsdecode(b"w\xff.rules")).unlink()
        loaded = morok.load_rules(what)
        assert morok.rewrite(UOp.var("x", dtypes.i32) * 0, loaded) is UOp.const(0, dtypes.i32)
        assert "\n".join(loaded.names).isprintable() or all(n.encode() for n in loaded.names)


@pytest.mark.long
@pytest.mark.parametrize("streams", ["utf-8:strict", "utf-8:surrogateescape", "ascii:strict"])
def test_verdicts_in_every_format(odd: Path, streams: str) -> None:
    file = odd / os.fsdecode(b"w\xff.rules")
    out: dict[str, bytes] = {}
    for form in ("text", "json", "junit", "sarif", "github"):
        into = odd / os.fsdecode(b"report\xff")
        status, out[form] = said("prove", "--format", form, "--format", f"{form}={into}", str(file), streams=streams)
        assert status == 1, form
        assert into.read_bytes().replace(b"\xff", b"?") == out[form].replace(b"\xff", b"?") or form == "text"
    assert os.fsencode(file) + b":3:1: " in out["text"]
    assert json.loads(out["json"])["rules"][0]["file"] == str(file)
    (case,) = ElementTree.fromstring(out["junit"].decode())
    assert case.attrib["file"].endswith(r"/d\xff\xe9/w\xff.rules")
    (result,) = json.loads(out["sarif"])["runs"][0]["results"]
    assert unquote_to_bytes(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) == os.fsencode(file)
    assert b"file=" + os.fsencode(file) + b",line=3" in out["github"]


@pytest.mark.long
def test_every_command_that_takes_rules(odd: Path) -> None:
    file = str(odd / os.fsdecode(b"r\xff.rules"))
    wrong = str(odd / os.fsdecode(b"wrong\xff.rules"))
    for arguments in (
        ["check", file], ["check", "--json", file], ["fmt", "--check", file], ["prove", "--write", file], ["prove", file],
        ["prove", "--no-cache", "--smt2", str(odd / "smt"), file], ["mutate", file], ["docs", "--out", str(odd / "book"), file],
        ["explain", r"r\xff.g.a", "--rules", file], ["doctor"], ["doctor", "--json"], ["config"],
    ):  # fmt: skip
        status, _ = said(*arguments, MOROK_CACHE_DIR=str(odd / "cache"))
        assert status == 0, arguments
    for arguments in (["check", wrong], ["check", "--json", wrong], ["prove", wrong], ["fmt", wrong], ["run", wrong]):
        assert said(*arguments)[0] == 2, arguments


@pytest.mark.long
def test_programs_and_the_cache(odd: Path) -> None:
    program = str(odd / os.fsdecode(b"p\xff.py"))
    trace = str(odd / os.fsdecode(b"t\xff.json"))
    for arguments in (
        ["run", program],
        ["run", "--json", program],
        ["trace", "--save", trace, program],
        ["bisect", program],
    ):
        status, out = said(*arguments, MOROK_CACHE_DIR=str(odd / "cache"))
        assert status == 0, arguments
        assert b"9.0" in out or arguments[1] != program
    assert said("viz", trace)[0] == 0
    assert [p for p in (odd / "cache").rglob("*") if p.is_file()]
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("9.0\n", "")


@pytest.mark.long
def test_an_error_in_a_program_names_its_line(odd: Path) -> None:
    program = odd / os.fsdecode(b"p\xff.py")
    program.write_text("from morok import Tensor\n\nTensor([1.0]).reshape(7)\n")
    done = subprocess.run([sys.executable, program], capture_output=True, check=False, timeout=120)
    assert rb"p\udcff.py:3:" in done.stderr
    with pytest.raises(morok.errors.MorokError):
        Tensor(np.zeros(3)).reshape(7)
