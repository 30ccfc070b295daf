"""What a user can get wrong on the command line: a message with a code, what was expected and a hint, and the promised status."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from acceptance.notation import ROOT, command

import morok
from morok.errors import UsageError
from morok.tools.cli import main

GOOD = 'group good "true ones"\n\nback: Sub(Add(x: i32, y), y) ~> x\n    "wrapping included"\n'

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.rules"
    path.write_text(GOOD)
    return str(path)


def refused(capsys: Captured, code: str, *arguments: str) -> str:
    """What the command says on stderr: that it was used wrongly, status 2, nothing on stdout."""
    assert main(list(arguments)) == 2, arguments
    said = capsys.readouterr()
    assert said.out == "", arguments
    assert said.err.startswith(f"{code}: ") or f": {code}: " in said.err, arguments
    assert "expected: " in said.err or "hint: " in said.err, arguments
    return said.err


def test_wrong_arguments_have_a_code(good: str, capsys: Captured) -> None:
    for arguments in (
        ["prove", "--nonsense"],
        ["prove", "--jobs", "x", good],
        ["prove", "--jobs", "0", good],
        ["prove", "--only", "", good],
        ["prove", "--smt2", "", good],
        ["prove", "--format", "json=", good],
        ["prove", "--format", "prose", good],
        ["fmt"],
        ["explain"],
        ["run"],
        ["config", "x"],
        ["rules", "no_such_rule"],
        ["rules", "--count", "["],
        ["bisect", "--limit", "x", good],
        ["trace", "--save", "", good],
    ):
        refused(capsys, "MRK902", *arguments)


def test_a_rule_that_a_pack_has_not_is_looked_for_as_the_hint_says(good: str, capsys: Captured) -> None:
    said = refused(capsys, "MRK902", "prove", "--only", "back", good)
    assert "--only '*.RULE'" in said
    assert "morok rules" not in said  # which lists the built-in ones
    assert main(["prove", "--only", "*.back", good]) == 0


@pytest.mark.parametrize("name", ["prove", "check", "fmt", "docs"])
def test_a_path_without_rules(name: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "folder.rules").mkdir()
    assert "holds no .rules files" in refused(capsys, "MRK902", name, str(tmp_path))
    assert "does not exist" in refused(capsys, "MRK902", name, str(tmp_path / "missing"))
    assert "is no file" in refused(capsys, "MRK902", name, os.devnull)


@pytest.mark.parametrize("name", ["f" * 300, "x/" * 3000, "round/round"])
def test_a_path_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    for use in (morok.prove, morok.load_rules):
        with pytest.raises(UsageError, match="a path that files can have"):
            use(tmp_path / name)


def test_a_folder_named_like_a_rule_file_is_no_rule_file(good: str, capsys: Captured) -> None:
    folder = Path(good).parent
    (folder / "folder.rules").mkdir()
    for name in ("prove", "check"):
        assert main([name, str(folder)]) == 0
    assert main(["fmt", "--check", str(folder)]) == 0
    assert list(morok.load_rules(folder)) == [f"{folder.name}.good.back"]
    capsys.readouterr()


def test_json_is_one_document_for_mistakes_too(good: str, tmp_path: Path, capsys: Captured) -> None:
    wrong = tmp_path / "wrong.rules"
    wrong.write_text("group g\n\na: Add(x: int ~> x\n\nb: Sub(x: int, y ~> x\n")
    for arguments, codes in (
        (["fmt", "--check", str(wrong)], ["MRK101", "MRK101"]),
        (["prove", str(wrong)], ["MRK101", "MRK101"]),
        (["check", str(wrong)], ["MRK101", "MRK101"]),
        (["prove", "nowhere.rules"], ["MRK902"]),
        (["explain", "no_such_rule"], ["MRK902"]),
        (["simplify", "Add("], ["MRK402"]),
        (["viz", good], ["MRK902"]),
        (["prove", "--jobs", "none"], ["MRK902"]),
        (["docs", good, "--out", "/proc/nowhere"], ["MRK903"]),
    ):
        assert main([*arguments, "--json"]) == 2
        said = json.loads(capsys.readouterr().out)
        assert [e["code"] for e in said["errors"]] == codes, arguments
        assert all(e["message"] for e in said["errors"])


@pytest.mark.long
def test_output_that_is_closed_is_no_error(good: str) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        line = f'exec "{sys.executable}" -m morok prove "{good}" {closed}'
        ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, cwd=ROOT)
        assert (ran.returncode, ran.stderr) == (0, ""), closed


def test_files_that_cannot_be_read_or_written(good: str, tmp_path: Path, capsys: Captured) -> None:
    gone = tmp_path / "sub" / "gone.rules"
    gone.parent.mkdir()
    gone.symlink_to("nowhere")
    for name in ("prove", "docs"):
        assert "gone.rules" in refused(capsys, "MRK903", name, str(gone.parent))
    assert main(["check", str(gone.parent)]) == 2  # which counts what it has read, as beside other mistakes
    assert f"{gone}:1:1: MRK903: " in capsys.readouterr().err
    assert main(["prove", "--format", f"json={good}/report", good]) == 2
    said = capsys.readouterr().err
    assert said.startswith("MRK903: ")
    assert f"{good}/report" in said
    for name in ("run", "trace", "bisect", "viz"):
        assert "is no file" in refused(capsys, "MRK902", name, str(tmp_path))


def test_a_full_disk_is_said_of_its_file(good: str, capsys: Captured) -> None:
    for form in ("json", "jsonl"):
        assert main(["prove", "--format", f"{form}=/dev/full", good]) == 2
        assert "MRK903: /dev/full: No space left on device" in capsys.readouterr().err


def test_a_full_disk_leaves_the_rules_that_fmt_lays_out(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = tmp_path / "good.rules", tmp_path / "link.rules"
    untidy = GOOD.replace("i32, y", "i32,y")
    file.write_text(untidy)
    file.chmod(0o640)
    link.symlink_to(file)

    def full(path: Path, content: bytes) -> int:
        path.open("wb").close()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as m:
        m.setattr(Path, "write_bytes", full)
        assert main(["fmt", str(link)]) == 2
    assert f"MRK903: {file}: No space left on device" in capsys.readouterr().err
    assert file.read_text() == untidy
    assert main(["fmt", str(link)]) == 0
    assert (file.read_text(), file.stat().st_mode & 0o777, link.is_symlink()) == (GOOD, 0o640, True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.rules", "link.rules"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", ["run", "trace"])
def test_a_program_that_raises_shows_its_own_frames(command: str, tmp_path: Path) -> None:
    program = tmp_path / "raises.py"
    program.write_text('import sys\n\ndef f():\n    return 1 / 0\n\nsys.argv[0] = "another"\nf()\n')
    line = [sys.executable, "-m", "morok", command, str(program)]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    frames = [text.split('"')[1] for text in done.stderr.splitlines() if text.startswith("  File ")]
    assert frames == [str(program)] * 2


@pytest.mark.long
def test_a_damaged_ledger(good: str, capsys: Captured) -> None:
    assert main(["prove", "--write", good]) == 0
    capsys.readouterr()
    page = Path(good).parent / "proofs" / "good.json"
    for content in (b"", b"{", b"[]", b"null", b'{"rules": [3]}', b"\xff\xfe"):
        page.write_bytes(content)
        assert str(page) in refused(capsys, "MRK203", "prove", "--compare", good)
    page.unlink()
    page.mkdir()
    assert str(page) in refused(capsys, "MRK203", "prove", "--compare", good)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("folder", ["/proc/none", f"{os.devnull}/none"])
def test_a_cache_folder_that_cannot_be(
    folder: str, good: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """It costs time, and nothing else: what cannot be remembered is proved again."""
    monkeypatch.setenv("MOROK_CACHE_DIR", folder)
    assert main(["prove", good]) == 0
    assert main(["prove", "--write", good]) == 0
    assert (Path(good).parent / "proofs" / "good.json").is_file()
    assert main(["check", "--strict", good]) == 0
    capsys.readouterr()
    assert main(["simplify", "Sub(Add(x: i32, 3), 3)", "--rules", good]) == 0
    assert capsys.readouterr().out == "x: i32\n"
    assert list(morok.load_rules(good)) == ["good.good.back"]


def test_the_cache_folder_of_a_program(good: str, tmp_path: Path) -> None:
    with morok.settings(cache_dir=tmp_path / "mine"):
        morok.load_rules(good)
    assert list((tmp_path / "mine" / "proofs").glob("good-*.json"))


@pytest.mark.long
def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    """Said at once, not when the program has run."""
    program = tmp_path / "program.py"
    program.write_text("from morok import Tensor\nprint((Tensor([1.0]) + 1).tolist())\n")
    for where in (tmp_path, tmp_path / "missing" / "out.json"):
        result = command("trace", "--save", where, program)
        assert (result.returncode, result.stdout) == (2, "")
        assert "MRK901" in result.stderr
        assert str(where) in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.long
def test_ctrl_c_ends_a_proof_and_its_workers() -> None:
    line = [sys.executable, "-m", "morok", "prove", "--no-cache", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # a shell's job in the background ignores the signal, and so would what it starts
    undo = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=undo,
        env=environment,
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for _ in range(600):
            if children.read_text().split():
                break
            time.sleep(0.05)
        workers = children.read_text().split()
        assert workers
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    # Interrupted while it executes text, as when a dataclass is made, `python -m` ends by the signal: to a shell that is 130 too.
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert (status, out, err) == (130, "", "interrupted\n")
    # the process that asks the solver ends when it sees that nobody is left who could ask
    deadline = time.monotonic() + 20
    while [pid for pid in workers if Path(f"/proc/{pid}").exists()] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
