"""Pages of the ledger count record by record, for exactly the rules whose digests they have; damage is an error, or repaired."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import morok
from morok import UOp, dtypes
from morok.dsl.check import check_file
from morok.dsl.extent import Extent
from morok.errors import LedgerError, UnprovedRuleError
from morok.ir import op
from morok.ir.morok_dialect import MOROK
from morok.prove import api, digest, fingerprints, ledger, page, seal, sources, static
from morok.prove.page import Page, Record
from morok.rewrite import folders, library

TRUE = """\
group pack "three rules"

double: Add(x: i32, x) ~> Mul(x, 2)
zero: Sub(x: i32, x) ~> zero(x)
one: Mul(x: i32, 1) ~> x
"""
FALSE = "wrong: Sub(x: i32, y) ~> Add(x, y)\n"
X = UOp.var("x", dtypes.i32)


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "pack.rules"
    file.write_text(TRUE)
    with morok.settings(cache_dir=tmp_path / "cache"):
        yield file


def saved(pack: Path) -> Page:
    found = page.read(ledger.page_path(pack))
    assert found is not None
    return found


def another_machine(pack: Path) -> Any:
    return morok.settings(cache_dir=pack.parent / "another machine")


def test_a_page_with_records_for_some_rules_vouches_for_these_alone(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    pack.write_text(TRUE + FALSE)
    with another_machine(pack):
        assert ledger.unchanged(pack, pack.read_bytes(), trust_ledger=True) is None
        with pytest.raises(UnprovedRuleError, match=r"pack\.wrong"):
            morok.load_rules(pack, prove=False, trust_ledger=True)
        assert ledger.compared(pack, pack.read_bytes(), check_file(pack).rules(), trust_ledger=True) is None
        pack.write_text(TRUE)
        assert len(morok.load_rules(pack, prove=False, trust_ledger=True)) == 3


def test_a_record_under_another_rules_name_vouches_for_its_own_rule_only(pack: Path) -> None:
    pack.write_text(TRUE + FALSE)
    api.prove(pack, jobs=1, write=True)
    known = saved(pack).records
    renamed = {
        "pack.wrong": Record(**{**{n: getattr(known["pack.one"], n) for n in Record.__slots__}, "name": "pack.wrong"})
    }
    page.write(ledger.page_path(pack), Page(pack.name, {**known, **renamed}))
    with another_machine(pack), pytest.raises(UnprovedRuleError, match=r"pack\.wrong"):
        morok.load_rules(pack, prove=False, trust_ledger=True)


def test_a_rule_keeps_its_verdict_when_it_is_renamed(pack: Path) -> None:
    api.prove(pack, jobs=1, remember=True)
    pack.write_text(TRUE.replace("double:", "twice:").replace("group pack", "group other"))
    assert morok.load_rules(pack, prove=False).names == ("pack.other.twice", "pack.other.zero", "pack.other.one")


def test_a_comment_changes_no_line_of_a_page(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    before = ledger.page_path(pack).read_text()
    pack.write_text("# a comment\n\n" + TRUE.replace("zero:", "\n# another\nzero:"))
    assert {v.recorded_earlier for v in api.prove(pack, jobs=1, write=True)} == {True}
    assert ledger.page_path(pack).read_text() == before


def test_lines_are_those_of_the_present_file(pack: Path) -> None:
    api.prove(pack, jobs=1, remember=True)
    assert [v.line for v in api.prove(pack)] == [3, 4, 5]
    pack.write_text("# a comment\n" + TRUE)
    for _ in range(2):
        found = api.prove(pack)
        assert [v.line for v in found] == [4, 5, 6]
        assert all(v.recorded_earlier for v in found)


@pytest.mark.long
def test_branches_that_edit_different_rules_merge(pack: Path, tmp_path: Path) -> None:
    """Neighbouring rules, too."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True)

    git("init", "-q", "-b", "main")
    edits = {"main": ("x, 2)", "2, x)"), "other": ("Mul(x: i32, 1)", "Mul(1, x: i32)")}
    api.prove(pack, jobs=1, write=True)
    git("add", "proofs/pack.json")
    git("commit", "-qm", "before")
    git("branch", "other")
    for branch, (old, new) in edits.items():
        git("checkout", "-q", branch)
        pack.write_text(TRUE.replace(old, new))
        api.prove(pack, jobs=1, write=True)
        assert git("commit", "-qam", branch).returncode == 0
    merged = git("merge", "-q", "main")
    assert merged.returncode == 0, merged.stdout
    for old, new in edits.values():
        pack.write_text(pack.read_text().replace(old, new))
    with another_machine(pack):
        assert len(morok.load_rules(pack, prove=False, trust_ledger=True)) == 3


def of_an_older_format(path: Path) -> str:
    """The text of a page, in place of which there is one of the first format now."""
    written = path.read_text()
    data = json.loads(written)
    del data["format"]
    path.write_text(json.dumps({**data, "bytes": "0" * 32, "sources": "1" * 32}))
    return written


@pytest.mark.parametrize(
    "how", [{"frozen": True}, {"use_cache": False, "differs": print}, {"use_cache": False, "write": True}]
)
def test_whatever_reads_a_page_of_an_older_format_says_so(pack: Path, how: dict[str, Any]) -> None:
    api.prove(pack, jobs=1, write=True)
    path = ledger.page_path(pack)
    of_an_older_format(path)
    notes: list[str] = []
    found = api.prove(pack, jobs=1, notes=notes.append, **how)
    assert [str(path) in n and "format 1" in n for n in notes] == [True]
    assert all("format 1" in v.message for v in found) is ("frozen" in how)


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_page_that_is_not_read_is_not_told_of(pack: Path, use_cache: bool) -> None:
    api.prove(pack, jobs=1, write=True)
    of_an_older_format(ledger.page_path(pack))
    notes: list[str] = []
    api.prove(pack, jobs=1, use_cache=use_cache, notes=notes.append)
    assert notes == []


def test_a_page_of_an_older_format_is_proved_again_with_one_line_that_says_so(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    path = ledger.page_path(pack)
    written = of_an_older_format(path)
    with another_machine(pack):
        with pytest.raises(UnprovedRuleError):
            morok.load_rules(pack, prove=False, trust_ledger=True)
        notes: list[str] = []
        assert not any(v.recorded_earlier for v in api.prove(pack, jobs=1, write=True, notes=notes.append))
        assert [str(path) in n and "format 1" in n for n in notes] == [True]
        assert path.read_text() == written
        assert api.prove(pack, write=True, notes=notes.append)[0].recorded_earlier
        assert len(notes) == 1


def changed(data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    first, *others = data["rules"]
    return {**data, "rules": [{**first, **fields}, *others]}


DAMAGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no object": lambda data: [data],
    "no rules": lambda data: {**data, "rules": {}},
    "a rule that is none": lambda data: {**data, "rules": [1]},
    "a format that is none": lambda data: {**data, "format": "2"},
    "a true format": lambda data: {**data, "format": True},
    "a verdict that is no word": lambda data: changed(data, verdict={}),
    "another verdict": lambda data: changed(data, verdict="bounded"),
    "a verdict that no gate knows": lambda data: changed(data, verdict="fine"),
    "another scope": lambda data: changed(data, scope=["every dtype"]),
    "a scope that is no list": lambda data: changed(data, scope="every dtype"),
    "a scope of numbers": lambda data: changed(data, scope=[1]),
    "another name": lambda data: changed(data, name="pack.other"),
    "a name that is none": lambda data: changed(data, name=None),
    "a very long name": lambda data: changed(data, name="x" * 100_000),
    "another digest": lambda data: changed(data, digest="0" * 32),
    "a digest that is none": lambda data: changed(data, digest=1),
    "negative resources": lambda data: changed(data, resources=-1),
    "resources that are no number": lambda data: changed(data, resources=True),
    "a field more": lambda data: changed(data, line=3),
    "a field less": lambda data: {
        **data,
        "rules": [{k: v for k, v in r.items() if k != "solver"} for r in data["rules"]],
    },
    "no checksum": lambda data: changed(data, check=""),
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("damage", DAMAGED)
def test_damage_is_an_error_in_a_ledger_and_repaired_in_a_machines_own(damage: str, pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    for path, own in ((ledger.page_path(pack), False), (ledger.machine_path(pack), True)):
        written = path.read_text()
        path.write_text(json.dumps(DAMAGED[damage](json.loads(written))))
        if own:
            assert len(morok.load_rules(pack)) == 3
            assert path.read_text() == written
        else:
            with another_machine(pack), pytest.raises(LedgerError) as refused:
                morok.load_rules(pack, trust_ledger=True)
            assert refused.value.place is not None
            assert refused.value.place.file == str(path)
            path.write_text(written)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"null", b'{"rules": ' + b"9" * 1_000_000 + b"}"],
    ids=["empty", "cut off", "deep lists", "deep objects", "no text", "null", "a million digits"],
)
def test_what_is_no_page_is_an_error(content: bytes, pack: Path) -> None:
    path = ledger.page_path(pack)
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="is no ledger page"):
        morok.load_rules(pack, trust_ledger=True)


@pytest.mark.parametrize("to", ["/dev/zero", "a pipe"])
def test_what_is_no_file_is_no_page(to: str, pack: Path) -> None:
    """Nobody waits for who may write to a pipe."""
    path = ledger.page_path(pack)
    path.parent.mkdir()
    if to == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(to)
    with pytest.raises(LedgerError, match="no regular file"):
        morok.load_rules(pack, trust_ledger=True)


def test_no_more_of_a_page_is_read_than_a_page_may_have(pack: Path) -> None:
    path = ledger.page_path(pack)
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(LedgerError, match="more than"):
        morok.load_rules(pack, trust_ledger=True)


def test_flipped_bits_never_make_a_record_say_something_else(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    written = ledger.page_path(pack).read_bytes()
    before = saved(pack).records
    chosen = random.Random(0)
    for _ in range(500):
        content = bytearray(written)
        content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        try:
            found = page.parse(bytes(content), Path("page.json")).records
        except LedgerError:
            continue
        assert all(before.get(name) == record for name, record in found.items())


# The seal of the built-in ledger


@pytest.mark.long
def test_the_seal_is_of_the_present_rules_pages_and_sources() -> None:
    """Every built-in file compared with its page rule by rule; `morok prove --write` makes the seal anew."""
    lines = seal.read(library.proofs_dir())
    files = sorted(library.rules_dir().rglob("*.rules"))
    assert set(lines) == {f.relative_to(library.rules_dir()).as_posix() for f in files}
    for file in files:
        content = file.read_bytes()
        assert ledger.sealed(file, content) is not None, f"{file}: `morok prove --write` seals the ledger"
        records = saved(file).records
        assert {r.own: ledger.rule_digest(r) for r in check_file(file).rules()} == {
            n: r.digest for n, r in records.items()
        }


def test_the_sources_that_the_seal_covers_are_all_that_digests_are_made_from() -> None:
    covered = set(fingerprints.source_files())
    package = Path(sources.__file__).parents[1]
    assert set(sources.core_files()) <= covered
    assert {Path(str(sys.modules[m].__file__)) for m, _ in sources.SHARED} <= covered, "what evaluator and solver share"
    assert len(covered) == len(fingerprints.source_files())
    assert set((package / "prove" / "semantics").glob("*.py")) <= covered
    assert set((package / "ir" / "ops").glob("*.py")) <= covered
    assert {Path(digest.__file__), Path(sources.__file__), Path(static.__file__), Path(op.__file__)} <= covered
    assert covered == {f for f in covered if f.is_file()}


@pytest.mark.long
def test_every_file_that_a_digest_is_read_from_breaks_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are recorded where they are read: a file that a digest comes from, and the seal does not cover, would be believed
    as it was.
    """
    read: set[Path] = set()
    reading = static.read_module

    def recording(name: str, file: Path) -> static.Module | None:
        read.update([file] if file.is_file() else ())
        return reading(name, file)

    for module in (sources, static):
        monkeypatch.setattr(module, "read_module", recording)
    package = sources._Package()
    package.core()
    for info in MOROK.ops.values():
        if info.solver:
            package.function(info.solver.partition(":")[2])
    assert len(read) > 50
    assert read <= set(fingerprints.source_files())


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of one built-in rule file with its page, sealed."""
    rules, proofs = tmp_path / "rules", tmp_path / "proofs"
    rules.mkdir()
    proofs.mkdir()
    file = rules / "power.rules"
    file.write_bytes((library.rules_dir() / "algebra" / "power.rules").read_bytes())
    (proofs / "power.json").write_bytes((library.proofs_dir() / "algebra" / "power.json").read_bytes())
    monkeypatch.setattr(folders, "rules_folder", lambda: rules)
    monkeypatch.setattr(folders, "proofs_folder", lambda: proofs)
    with morok.settings(cache_dir=tmp_path / "cache"):
        seal_now(file)
        yield file


def seal_now(file: Path) -> None:
    ledger.seal_up({str(file): (file.read_bytes(), {r.own: ledger.rule_digest(r) for r in check_file(file).rules()})})


def test_the_seal_breaks_with_the_file_the_page_and_the_sources(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = copied.read_bytes()
    assert ledger.sealed(copied, content) is not None
    assert ledger.sealed(copied, content + b"# a comment\n") is None
    path = ledger.page_path(copied)
    path.write_bytes(path.read_bytes() + b"\n")
    assert ledger.sealed(copied, content) is None
    seal_now(copied)
    assert ledger.sealed(copied, content) is not None
    monkeypatch.setattr("morok.prove.fingerprints.source_bytes", lambda: "0" * 32)
    assert ledger.sealed(copied, content) is None


def test_rules_of_a_sealed_file_have_limits(copied: Path) -> None:
    file = copied
    path = ledger.page_path(file)
    records = saved(file).records
    name = next(iter(records))
    limited = replace(records[name], verdict="bounded", extents=(Extent("power", "", 0, 255),))
    page.write(path, replace(saved(file), records={**records, name: limited}))
    bounded = {n for n, r in saved(file).records.items() if r.verdict == "bounded"}
    assert bounded == {name}
    seal_now(file)
    limits = ledger.sealed(file, file.read_bytes())
    assert limits is not None
    assert set(limits) == bounded


def test_a_page_that_lacks_a_rule_is_not_sealed(copied: Path) -> None:
    copied.write_text(copied.read_text() + "\nwrong: Sub(x: i32, y) ~> Add(x, y)\n")
    seal_now(copied)
    assert ledger.sealed(copied, copied.read_bytes()) is None
    assert seal.read(folders.proofs_folder()) == {}


def test_a_damaged_seal_costs_time_only(copied: Path) -> None:
    place = folders.proofs_folder() / seal.NAME
    for content in (b"", b"\xff\x00", b"power.rules\n", b"x" * (2 << 20)):
        place.write_bytes(content)
        assert ledger.sealed(copied, copied.read_bytes()) is None
        assert ledger.unchanged(copied, copied.read_bytes()) is None
        assert ledger.compared(copied, copied.read_bytes(), check_file(copied).rules()) is not None
        seal_now(copied)
        assert ledger.sealed(copied, copied.read_bytes()) is not None
        for kept in (copied.parent.parent / "cache" / "rules").glob("*/*"):
            kept.unlink()


def test_a_merged_seal_has_the_lines_of_both_sides(copied: Path) -> None:
    place = folders.proofs_folder() / seal.NAME
    place.write_text(f"power.rules {'0' * 32}\n{place.read_text()}other.rules {'1' * 32}\n")
    assert ledger.sealed(copied, copied.read_bytes()) is not None
    seal_now(copied)
    assert len(place.read_text().splitlines()) == 1
