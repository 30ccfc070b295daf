"""What goes wrong around a program costs that program a clear error, or time, and nobody anything else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import CompileError, OutOfMemoryError
from morok.ir.uop import UOp
from morok.runtime.available import available
from morok.runtime.buffer import CPU_POOL
from morok.runtime.device import device

PROGRAM = """
import numpy as np
from morok import Tensor
x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
print((x * 2 + 1).sum(1).tolist(), (x @ x.permute(1, 0)).numpy().trace())
"""
PRINTS = "[16.0, 48.0, 80.0] 506.0\n"


def program(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.long
def test_eight_threads_realize_the_same_and_their_own_tensors() -> None:
    rng = np.random.default_rng(0)
    shared = Tensor(rng.integers(-9, 9, (16, 16)).astype(np.float32))
    common = (shared @ shared).sum(0)  # lazy, and asked for by all
    want = (shared.numpy() @ shared.numpy()).sum(0)
    problems: list[BaseException] = []
    start = threading.Barrier(8)

    def work(k: int) -> None:
        try:
            start.wait()
            for i in range(5):
                own = np.arange(32, dtype=np.float32) + k
                x = Tensor(own.copy())
                y = (x * float(i + 1) - k).reshape(4, 8)
                np.testing.assert_array_equal(y.sum(0).numpy(), (own * (i + 1) - k).reshape(4, 8).sum(0))
                x.assign(x + 1)
                x.assign(x * 2)
                np.testing.assert_array_equal(x.numpy(), (own + 1) * 2)
                np.testing.assert_array_equal(common.numpy(), want)
                np.testing.assert_array_equal((common + k).numpy(), want + k)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_a_kernel_that_does_not_compile_leaves_everything_else_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = device("CPU")
    render = type(cpu).render
    before = (Tensor(np.arange(7, dtype=np.float32)) * 3.25).realize()
    wrong = Tensor(np.arange(77, dtype=np.float32)) * 3.75 + before.sum()
    bystander = wrong * 2  # lazy, and holds what fails

    def broken(self: Any, instructions: Sequence[UOp], name: str) -> Any:
        import dataclasses

        rendered = render(self, instructions, name)
        if "77" not in name:
            return rendered
        return dataclasses.replace(rendered, text=rendered.text.replace("ret void", "ret nothing"))

    monkeypatch.setattr(type(cpu), "render", broken)
    for _ in range(2):
        with pytest.raises(CompileError, match="LLVM rejects the kernel"):
            wrong.realize()
        assert wrong.buffer is None
    np.testing.assert_array_equal(before.numpy(), np.arange(7, dtype=np.float32) * np.float32(3.25))
    np.testing.assert_array_equal((before + 0.125).numpy(), before.numpy() + np.float32(0.125))
    monkeypatch.undo()
    want = np.arange(77, dtype=np.float32) * np.float32(3.75) + before.numpy().sum()
    np.testing.assert_array_equal(wrong.numpy(), want)
    np.testing.assert_array_equal(bystander.numpy(), want * 2)


@pytest.mark.long
def test_a_disk_that_is_full_costs_time_only(tmp_path: Path) -> None:
    """No file may grow beyond 2000 bytes: every entry of every cache is cut off in the middle of its write."""
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n{textwrap.dedent(PROGRAM)}"
    done = program(limited, MOROK_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.returncode) == (PRINTS, 0), done.stderr
    left = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert all(p.stat().st_size < 2000 for p in left)
    assert not [p for p in left if p.suffix == ".part" or p.name.startswith(".new-")]
    done = program(PROGRAM, MOROK_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.returncode) == (PRINTS, 0), done.stderr


@pytest.mark.long
def test_a_cache_folder_that_nobody_can_write() -> None:
    done = program(PROGRAM, MOROK_CACHE_DIR="/proc/morok")
    assert (done.stdout, done.returncode, done.stderr) == (PRINTS, 0, "")


@pytest.mark.long
def test_a_process_killed_while_it_writes_leaves_caches_that_work(tmp_path: Path) -> None:
    """The process ends at once, as by kill -9, in the middle of the first write to each of the two caches."""
    dying = f"""
        import os
        real = os.fdopen
        class Half:
            def __init__(self, file): self.file = file
            def __enter__(self): return self
            def __exit__(self, *_): pass
            def write(self, data):
                self.file.write(data[: len(data) // 2])
                self.file.flush()
                os._exit(9)
        def opened(handle, mode):
            of_rules = "/rules/" in os.readlink(f"/proc/self/fd/{{handle}}")
            return Half(real(handle, mode)) if of_rules == {{matchers}} else real(handle, mode)
        os.fdopen = opened
{textwrap.indent(textwrap.dedent(PROGRAM), " " * 8)}
    """
    for matchers in (True, False):
        done = program(textwrap.dedent(dying.replace("{matchers}", str(matchers))), MOROK_CACHE_DIR=str(tmp_path))
        assert (done.returncode, done.stdout) == (9, ""), done.stderr
    assert [p for p in tmp_path.rglob("*") if p.is_file()]
    done = program(PROGRAM, MOROK_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.returncode) == (PRINTS, 0), done.stderr


def test_more_memory_than_there_is_is_an_error_and_nothing_else_is_lost() -> None:
    kept = Tensor(np.arange(5, dtype=np.float32)).realize()
    for huge in (Tensor.ones(1 << 45), Tensor.ones(1 << 20, 1 << 20), Tensor.empty(1 << 44) + 1):
        with pytest.raises(OutOfMemoryError, match="bytes cannot be allocated on CPU"):
            huge.contiguous().realize()
    for read in (
        lambda: Tensor.ones(1 << 45).numpy(),
        lambda: np.asarray(Tensor.zeros(1 << 38)),
        Tensor.ones(1 << 40).tolist,
    ):
        with pytest.raises(OutOfMemoryError, match="bytes cannot be allocated on CPU"):
            read()  # of what has no memory of its own until it is read
    assert (kept + 1).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.long
def test_a_system_that_refuses_memory(tmp_path: Path) -> None:
    text = f"""
        import resource, numpy as np
        from morok import Tensor
        from morok.errors import OutOfMemoryError
        (Tensor([1.0, 2.0]) + 1).tolist()
        resource.setrlimit(resource.RLIMIT_AS, ({4 << 30}, {4 << 30}))
        try:
            (Tensor.empty(1 << 30) + 1.5).realize()
        except OutOfMemoryError as problem:
            print(problem.code)
        print((Tensor([1.0, 2.0]) + 1).tolist())
    """
    done = program(text)
    assert (done.stdout, done.returncode) == ("MRK603\n[2.0, 3.0]\n", 0), done.stderr
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_what_is_promised_beyond_what_there_is_is_refused(tmp_path: Path) -> None:
    system = tmp_path / "meminfo"
    system.write_text("MemTotal: 4000 kB\nMemAvailable: 1000 kB\nSwapFree: 24 kB\n")
    group = tmp_path / "group"
    group.mkdir()
    assert available(system, group) == 1024 * 1024
    (group / "memory.max").write_text("900000\n")
    (group / "memory.current").write_text("500000\n")
    (group / "memory.stat").write_text("anon 1\ninactive_file 100000\n")
    assert available(system, group) == 500_000
    (group / "memory.max").write_text("max\n")
    assert available(system, group) == 1024 * 1024
    assert available(tmp_path / "none", tmp_path / "none") is None
    most = available()
    if most is not None:
        with pytest.raises(OutOfMemoryError):
            CPU_POOL.take(2 * most)
