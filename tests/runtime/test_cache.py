"""The caches of compiled kernels: in memory by structure, on disk by content; whatever happens to the disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from programs import affine, total

from morok import config
from morok.codegen.machines import host_machine, machine
from morok.disk_cache import DiskCache
from morok.runtime.abstract_device import Device
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import CPUDevice
from morok.runtime.jit import COUNTERS, digest


def counted() -> tuple[int, int, int]:
    return COUNTERS.compiled, COUNTERS.from_disk, COUNTERS.from_memory


def works(cpu: Device, tag: float) -> None:
    x = np.arange(16, dtype=np.float32)
    out = np.zeros(16, np.float32)
    cpu.compile(affine(2.0, tag), "affine").launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)])
    assert np.array_equal(out, x * 2 + np.float32(tag))


def test_the_same_program_is_compiled_once(cache: Path) -> None:
    cpu = CPUDevice()
    before = counted()
    first = cpu.compile(affine(2.0, 0.5), "a")
    assert counted() == (before[0] + 1, before[1], before[2])
    again = cpu.compile(affine(2.0, 0.5), "another_name")
    assert again is first
    assert counted() == (before[0] + 1, before[1], before[2] + 1)
    assert cpu.compile(affine(2.0, -0.0), "a") is not cpu.compile(affine(2.0, 0.0), "a")


def test_float_liberties_are_part_of_the_key(cache: Path) -> None:
    cpu = CPUDevice()
    with config.settings(fast_math=""):
        strict = cpu.compile(affine(3.0, 0.5), "a")
    with config.settings(fast_math="fast"):
        loose = cpu.compile(affine(3.0, 0.5), "a")
    assert "contract" not in strict.code
    assert "reassoc" in loose.code


def test_another_process_finds_the_object_on_disk(cache: Path) -> None:
    before = counted()
    works(CPUDevice(), 1.0)
    assert counted() == (before[0] + 1, before[1], before[2])
    works(CPUDevice(), 1.0)  # a device of its own remembers nothing
    assert counted() == (before[0] + 1, before[1] + 1, before[2])


def test_the_key_names_everything_an_object_depends_on() -> None:
    host = host_machine()
    keys = {
        digest("a", host, "code"),
        digest("b", host, "code"),
        digest("a", host, "all"),
        digest("a", machine("haswell", host.features), "code"),
        digest("a", machine(host.cpu, "+avx2"), "code"),
    }
    assert len(keys) == 5


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "rubbish", "a folder"])
def test_a_damaged_entry_is_compiled_again(cache: Path, damage: str) -> None:
    works(CPUDevice(), 2.0)
    (entry,) = list((cache / "kernels").glob("*/*.o"))
    data = entry.read_bytes()
    if damage == "a folder":
        entry.unlink()
        entry.mkdir()
    else:
        changed = {
            "truncated": data[:-9],
            "changed": data[:-9] + b"?" + data[-8:],
            "empty": b"",
            "rubbish": b"\x7fELF" * 9,
        }
        entry.write_bytes(changed[damage])
    before = counted()
    works(CPUDevice(), 2.0)
    assert COUNTERS.compiled == before[0] + 1


def test_a_folder_that_cannot_be_written(cache: Path) -> None:
    blocked = cache / "file"
    blocked.write_text("no folder")
    with config.settings(cache_dir=blocked):
        works(CPUDevice(), 3.0)


def test_a_read_only_folder_serves_what_it_has(cache: Path) -> None:
    works(CPUDevice(), 4.0)
    folders = [cache / "kernels", *(cache / "kernels").iterdir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        before = counted()
        works(CPUDevice(), 4.0)
        assert COUNTERS.from_disk == before[1] + 1
        works(CPUDevice(), 4.5)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_an_entry_that_is_no_file_is_none(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    path = cache.path("a" * 64)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert cache.get("a" * 64) is None


def test_a_full_disk_costs_the_cache_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path)
    real = os.replace

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.put("abcd", b"x")
    assert list(tmp_path.glob("*/*")) == []
    monkeypatch.setattr(os, "replace", real)
    assert cache.put("abcd", b"x")
    assert cache.get("abcd") == b"x"


def test_an_entry_in_the_place_of_another_is_absent(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    assert cache.put("abcd", b"of abcd")
    assert cache.put("abce", b"of abce")
    shutil.copy(cache.path("abcd"), cache.path("abce"))
    assert cache.get("abce") is None
    assert not cache.path("abce").exists()
    assert cache.get("abcd") == b"of abcd"


@pytest.mark.long
def test_killed_writers_leave_whole_entries_only(tmp_path: Path) -> None:
    """A process that writes large entries is killed in the middle, several times."""
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from morok.disk_cache import DiskCache
        cache = DiskCache(Path(sys.argv[1]))
        print("ready", flush=True)
        i = 0
        while True:
            cache.put(f"{i % 50:04d}", bytes([i % 251]) * 3_000_000)
            i += 1
        """
    )
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.15)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    cache = DiskCache(tmp_path)
    found = list(tmp_path.glob("*/*.o"))
    assert found
    for path in found:
        value = cache.get(path.stem)
        assert value is not None
        assert len(value) == 3_000_000
        assert len(set(value)) == 1


def test_pruning_removes_the_longest_unused_and_abandoned_files(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=1000)
    for i in range(5):
        assert cache.put(f"{i:04d}", bytes(400))
        os.utime(cache.path(f"{i:04d}"), (1000 + i, 1000 + i))
    abandoned, fresh = tmp_path / "00" / ".new-old", tmp_path / "00" / ".new-now"
    abandoned.write_bytes(b"x")
    fresh.write_bytes(b"x")
    os.utime(abandoned, (1, 1))
    assert cache.get("0000") is not None  # used: now the youngest
    cache.prune()
    assert not abandoned.exists()
    assert fresh.exists()
    assert cache.get("0000") is not None
    assert cache.get("0004") is not None
    assert cache.get("0001") is None


@pytest.mark.long
def test_pruning_keeps_few_bytes_an_entry_in_memory(tmp_path: Path) -> None:
    """A process that compiles again and again prunes again and again: a list of all paths would be its peak of memory."""
    cache = DiskCache(tmp_path)
    (tmp_path / "00").mkdir()
    for i in range(3000):
        (tmp_path / "00" / f"00{i:040}.o").write_bytes(b"x")
    tracemalloc.start()
    cache.prune()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3000 * 100


def test_kernels_stay_loaded_while_they_are_used(cache: Path) -> None:
    """Many kernels, some dropped: those kept still run."""
    cpu = CPUDevice()
    kept = [cpu.compile(affine(float(i), 0.25), "affine") for i in range(12)]
    cpu2 = CPUDevice()
    for i in range(12):
        cpu2.compile(affine(float(i), 0.75), "affine")
    del cpu2
    x = np.arange(16, dtype=np.float32)
    for i, kernel in enumerate(kept):
        out = np.zeros(16, np.float32)
        kernel.launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)])
        assert np.array_equal(out, x * i + np.float32(0.25))
    assert cpu.compile(total(), "t").name == "t"
