"""Caches are used only where nobody but their owner can write, and are never believed further than their bytes are whole."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import morok
from morok import cache_folder, config
from morok.disk_cache import DiskCache
from morok.errors import UnprovedRuleError
from morok.optimize.opts import Opt, OptOp
from morok.prove import ledger
from morok.rewrite import store
from morok.runtime.cache import disk_cache
from morok.runtime.tuned import Found, found_here

RULES = 'group double "doubling"\n\nshift: Add(x: i32, x) ~> Shl(x, 1)\nzero: Sub(x: i32, x) ~> zero(x)\n'
OPTS = (Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.UNROLL, 1, 0))


@pytest.fixture(autouse=True)
def nobody_was_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "_warned", set())


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    file = tmp_path / "pack.rules"
    file.write_text(RULES)
    return file


def spoil_mode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o770)


def spoil_world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o707)


def spoil_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rules", "proofs", "kernels"):
        (folder / name).chmod(0o777)


def spoil_owner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)


Spoil = Callable[[Path, pytest.MonkeyPatch], None]


def contents(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("spoil", [spoil_mode, spoil_world, spoil_part, spoil_owner])
def test_a_folder_that_others_can_write_to_is_not_used(
    spoil: Spoil, pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    with morok.settings(cache_dir=folder):
        morok.load_rules(pack)
        store.save("key", b"value")
        kernels = disk_cache()
        assert kernels is not None
        assert kernels.put("aa11", b"code")
        assert len(morok.load_rules(pack, prove=False)) == 2
        before = contents(folder)
        spoil(folder, monkeypatch)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert store.load("key") is None
            assert disk_cache() is None
            assert spoil is spoil_part or found_here() is None
            store.save("other", b"value")
            with pytest.raises(UnprovedRuleError):
                morok.load_rules(pack, prove=False)
            assert len(morok.load_rules(pack)) == 2, "proved again, and not remembered"
        assert contents(folder) == before
        messages = [str(w.message) for w in said]
        assert len(messages) == len(set(messages)) == (3 if spoil is spoil_part else 1)
        assert all(str(folder) in m and "MOROK_CACHE_DIR" in m and "chmod 700" in m for m in messages)


def test_folders_are_made_for_their_owner_alone(pack: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with morok.settings(cache_dir=tmp_path / "above" / "cache"):
            morok.load_rules(pack)
            kernels, found = disk_cache(), found_here()
            assert kernels is not None
            assert found is not None
            assert kernels.put("aa11", b"code")
            assert found.put("key", OPTS)
            made = [tmp_path / "above" / "cache", *(p for p in (tmp_path / "above" / "cache").rglob("*") if p.is_dir())]
            assert len(made) >= 5
            assert {p.stat().st_mode & 0o777 for p in made} == {0o700}
            assert len(morok.load_rules(pack, prove=False)) == 2
    finally:
        os.umask(before)


@pytest.fixture
def written(pack: Path, tmp_path: Path) -> Iterator[Path]:
    """A cache folder with something of every kind in it."""
    with morok.settings(cache_dir=tmp_path / "cache"):
        rules = morok.load_rules(pack)
        assert rules.code
        kernels, found = disk_cache(), found_here()
        assert kernels is not None
        assert found is not None
        kernels.put("aa11", bytes(range(256)) * 8)
        found.put("key", OPTS)
        yield tmp_path / "cache"


def flips(files: list[Path], count: int) -> Iterator[tuple[Path, bytes]]:
    """So many times one of these files with one bit changed, and what was in it before."""
    chosen = random.Random(1)
    for _ in range(count):
        path = chosen.choice(files)
        before = path.read_bytes()
        content = bytearray(before)
        content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        path.write_bytes(content)
        yield path, before


@pytest.mark.long
def test_flipped_bits_in_what_rules_became(written: Path, pack: Path) -> None:
    files = sorted((written / "rules").glob("*/*"))
    kept = {p.stem: store.load(p.stem) for p in files}
    assert len(kept) >= 4
    assert None not in kept.values()
    for path, before in flips(files, 500):
        assert store.load(path.stem) is None
        path.write_bytes(before)
        assert store.load(path.stem) == kept[path.stem]


def test_what_rules_became_is_bounded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes, and what was used last stays; files of an older layout count."""
    monkeypatch.setattr(store, "LIMIT", 4000)
    older = cache / "rules" / "older"
    older.parent.mkdir(mode=0o700, parents=True)
    older.write_bytes(bytes(1000))
    os.utime(older, (1, 1))
    for k in range(8):
        store.save(f"{k:02x}ff", bytes(1000))
        os.utime(cache / "rules" / f"{k:02x}" / f"{k:02x}ff.o", (10 + k, 10 + k))
    assert store.load("01ff") is not None
    store.save("aa00", b"prunes")
    kept = [f"{k:02x}ff" for k in range(8) if store.load(f"{k:02x}ff") is not None]
    assert kept == ["01ff", "06ff", "07ff"]
    assert not older.exists()


@pytest.mark.long
def test_flipped_bits_in_this_machines_verdicts(written: Path, pack: Path) -> None:
    page = ledger.machine_path(pack)
    assert page is not None
    known = ledger.page_at(page)
    assert known is not None
    found = 0
    for path, before in flips([page], 500):
        ledger._cached_page.cache_clear()
        left = ledger.page_at(path)
        assert left is None or all(known.records.get(n) == r for n, r in left.records.items())
        found += left is None
        path.write_bytes(before)
    assert found > 400
    damaged = page.read_bytes().replace(b'"proved"', b'"prooed"', 1)
    page.write_bytes(damaged)
    assert len(morok.load_rules(pack)) == 2, "it is proved again"
    assert ledger.page_at(page) == known


@pytest.mark.long
def test_flipped_bits_in_kernels(written: Path) -> None:
    kernels = DiskCache(written / "kernels")
    value = kernels.get("aa11")
    for path, before in flips([kernels.path("aa11")], 500):
        assert kernels.get("aa11") is None
        path.write_bytes(before)
        assert kernels.get("aa11") == value


@pytest.mark.long
def test_flipped_bits_in_what_searches_found(written: Path) -> None:
    found = Found(written)
    for path, before in flips([found.path], 500):
        assert found.get("key") in (OPTS, None)
        for other in written.glob("beam.sqlite*"):
            other.unlink()
        path.write_bytes(before)
    assert found.get("key") == OPTS


# Disks that are full, writers that are killed, writers side by side


def command(*words: str, cache: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"{textwrap.dedent(before)}\nimport sys\nfrom morok.tools.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    environment = {**os.environ, "MOROK_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True)


@pytest.mark.long
def test_a_full_disk_leaves_no_half_page_and_proving_works_once_there_is_room(pack: Path, tmp_path: Path) -> None:
    """No file may grow beyond 300 bytes."""
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
    done = command("prove", "--write", str(pack), cache=tmp_path / "cache", before=full)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "pack.json" in done.stderr
    assert [p for p in pack.parent.rglob("*") if p.is_file() and "cache" not in p.parts] == [pack]
    done = command("prove", "--write", str(pack), cache=tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    page = ledger.read_page(ledger.page_path(pack))
    assert page is not None
    assert set(page.records) == {"double.shift", "double.zero"}


@pytest.mark.long
@pytest.mark.parametrize("kept", [False, True])
def test_a_process_killed_while_it_writes_a_verdict_leaves_what_was_there(
    pack: Path, tmp_path: Path, kept: bool
) -> None:
    if kept:
        assert command("prove", "--write", str(pack), cache=tmp_path / "cache").returncode == 0
        pack.write_text(RULES.replace("Shl(x, 1)", "Mul(x, 2)"))
    path = ledger.page_path(pack)
    before = path.read_bytes() if kept else None
    dying = """
        import os, pathlib, signal
        whole = pathlib.Path.write_bytes
        def half(path, content):
            whole(path, content[: len(content) // 2])
            if path.name.startswith("pack.json"):
                os.kill(os.getpid(), signal.SIGKILL)
        pathlib.Path.write_bytes = half
    """
    assert command("prove", "--write", str(pack), cache=tmp_path / "other", before=dying).returncode == -9
    assert (path.read_bytes() if path.exists() else None) == before
    (left,) = path.parent.glob("pack.json.*")
    os.utime(left, (0, 0))
    done = command("prove", "--write", str(pack), cache=tmp_path / "other")
    assert done.returncode == 0, done.stderr
    page = ledger.read_page(path)
    assert page is not None
    assert set(page.records) == {"double.shift", "double.zero"}
    assert not left.exists(), "what was abandoned long ago is swept away"


@pytest.mark.long
def test_processes_that_prove_one_pack_at_once_leave_whole_pages(pack: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path / "cache")}
    code = "import sys\nfrom morok.tools.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    words = [sys.executable, "-c", code, "prove", "--write", "--no-cache", str(pack)]
    running = [subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [p.wait() for p in running] == [0, 0, 0]
    with config.settings(cache_dir=tmp_path / "cache"):
        for path in (ledger.page_path(pack), ledger.machine_path(pack)):
            assert path is not None
            page = ledger.read_page(path)
            assert page is not None
            assert set(page.records) == {"double.shift", "double.zero"}
            assert not list(path.parent.glob("*.part"))


@pytest.mark.parametrize("how", ["a file that others can write", "another user's file"])
def test_an_entry_that_somebody_else_can_write_is_not_read(how: str, cache: Path) -> None:
    """Folders inside the cache may be open to others, as those that were copied are, though it is not."""
    key = "ab" * 32
    entries = DiskCache(cache / "rules")
    assert entries.put(key, b"code")
    assert entries.get(key) == b"code"
    file = entries.path(key)
    if how == "another user's file":
        if os.geteuid():
            pytest.skip("only root can give files away")
        os.chown(file, 12345, 12345)
    else:
        file.chmod(0o666)
    assert entries.get(key) is None
    assert entries.put(key, b"other code")
    assert entries.get(key) == b"other code"
