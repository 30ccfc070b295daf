"""Programs with few files, little memory, and processes of every kind around them: right values, or an error of ours."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes
from morok.errors import OutOfMemoryError
from morok.out_of_memory import needs_memory
from morok.prove import processes

RULES = 'group g "some"\n\n' + "".join(f"a{n}: Add(x: i32, {n}) ~> Add({n}, x)\n" for n in range(1, 13))
PROGRAM = """
    import numpy as np
    from morok import Tensor
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    print((x * 2 + 1).sum(1).tolist(), (x @ x.permute(1, 0)).numpy().trace())
"""
PRINTS = "[16.0, 48.0, 80.0] 506.0\n"


def limited(what: int, most: int, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Python run under a limit of the system's, with cold caches."""
    return subprocess.run(
        [sys.executable, *command], env={**os.environ, "MOROK_CACHE_DIR": str(folder)}, capture_output=True, text=True,
        check=False, timeout=300, preexec_fn=lambda: resource.setrlimit(what, (most, most)),
    )  # fmt: skip


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    file = tmp_path / "pack.rules"
    file.write_text(RULES)
    return file


@pytest.mark.long
@pytest.mark.parametrize("files", [6, 9, 12, 15])
def test_few_files_can_be_open(files: int, pack: Path, tmp_path: Path) -> None:
    ran = limited(resource.RLIMIT_NOFILE, files, "-c", textwrap.dedent(PROGRAM), folder=tmp_path)
    assert (ran.stdout, ran.returncode) == (PRINTS, 0), ran.stderr
    prove = ("-m", "morok", "prove", "--no-cache", "--jobs", "16", str(pack))
    proved = limited(resource.RLIMIT_NOFILE, files, *prove, folder=tmp_path)
    assert (proved.stdout.count(" proved "), proved.returncode) == (13, 0), proved.stderr


def test_no_process_can_be_started(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many workers as there can be, down to none."""
    fork, left = os.fork, [2]

    def stingy() -> int:
        if not left[0]:
            raise BlockingIOError("no process")
        left[0] -= 1
        return fork()

    monkeypatch.setattr(os, "fork", stingy)
    assert [v.verdict for v in morok.prove(pack, use_cache=False, jobs=4)] == ["proved"] * 12
    monkeypatch.setattr(processes, "_descriptors", lambda: False)
    assert [v.verdict for v in morok.prove(pack, use_cache=False, jobs=4)] == ["proved"] * 12


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts addresses as Linux does")
@pytest.mark.parametrize("megabytes", [200, 300, 330, 400])
def test_little_memory_is_an_error_of_ours(megabytes: int, tmp_path: Path) -> None:
    for text in (
        PROGRAM,
        PROGRAM.replace("x @ x.permute(1, 0)", "x.reshape(4, 3) @ x").replace("(x * 2", "(x.exp() * 2"),
    ):
        ran = limited(resource.RLIMIT_AS, megabytes << 20, "-c", textwrap.dedent(text), folder=tmp_path)
        if ran.returncode:
            assert ran.returncode == 1, ran.stderr
            assert "MRK" in ran.stderr.splitlines()[-2] + ran.stderr.splitlines()[-3], ran.stderr


@pytest.mark.long
def test_arguments_too_long_to_be_read_are_an_error_of_ours(tmp_path: Path) -> None:
    text = """
        from morok import Tensor, UOp, prove
        from morok.errors import OutOfMemoryError
        many, t = range(10**12), Tensor([1.0])
        for use in (
            Tensor, Tensor.concat, Tensor.stack, Tensor.all_reduce, Tensor.realize_batch, Tensor.prepare_batch, t.take, prove,
            lambda many: Tensor.zeros(len(many)).split(1), lambda many: Tensor.zeros(len(many)).chunk(len(many)),
        ):
            try:
                use(many)
            except OutOfMemoryError:
                print(end="ours ")
            except (TypeError, ValueError):
                print(end="refused ")
    """
    ran = limited(resource.RLIMIT_AS, 500 << 20, "-c", textwrap.dedent(text), folder=tmp_path)
    assert (len(ran.stdout.split()), ran.returncode) == (10, 0), ran.stderr


def test_python_that_finds_no_memory_and_does_not_say_so_is_an_error_of_ours() -> None:
    @needs_memory("add")
    def fails(words: str) -> None:
        raise SystemError(words)

    for words in ("error return without exception set", f"{fails!r} returned NULL without setting an exception"):
        with pytest.raises(OutOfMemoryError, match="not enough memory to add"):
            fails(words)
    for words in ("bad argument to internal function", f"{len!r} returned NULL without setting an exception"):
        with pytest.raises(SystemError, match=words):
            fails(words)


@pytest.mark.long
def test_llvm_that_would_find_no_memory_is_not_called(tmp_path: Path) -> None:
    """LLVM ends the process where it finds none."""
    text = """
        import resource, numpy as np
        from morok import Tensor
        from morok.errors import OutOfMemoryError
        x = Tensor(np.arange(48, dtype=np.float32).reshape(6, 8)).realize()
        (x @ x.permute(1, 0)).realize(x.softmax(-1))
        unlimited = resource.getrlimit(resource.RLIMIT_AS)
        for more in (0, 100, 300, 1000, 4000, 8000, 10000, 20000):
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + more * 1024, unlimited[1]))
            for k in range(3):
                try:
                    (x.softmax(-1) * float(more + k)).realize((x @ x.permute(1, 0)) * 0.5 + float(more + k))
                except OutOfMemoryError:
                    pass
            resource.setrlimit(resource.RLIMIT_AS, unlimited)
            got = ((x @ x.permute(1, 0)) * float(more + 2)).numpy()
            assert (got == x.numpy() @ x.numpy().T * np.float32(more + 2)).all(), more
        print("whole")
    """
    ran = limited(resource.RLIMIT_NOFILE, 256, "-c", textwrap.dedent(text), folder=tmp_path)
    assert (ran.stdout, ran.returncode) == ("whole\n", 0), ran.stderr


def in_child(seconds: int = 120) -> int:
    """A forked child that describes, runs and simplifies: its exit status."""
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            n = random.Random(os.getpid()).randrange(1 << 20)
            x = np.arange(12, dtype=np.int32).reshape(3, 4)
            right = ((Tensor(x) * n + 1).sum(1).numpy() == (x * n + 1).sum(1)).all()
            y = UOp.var("y", dtypes.index, 0, 99)
            status = 0 if right and morok.simplify((y * 7 + 3).idiv(7)) is y else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_forked_while_threads_compile_and_run(threads: int) -> None:
    stop = threading.Event()
    problems: list[BaseException] = []

    def work(k: int) -> None:
        x = np.arange(12, dtype=np.int32).reshape(3, 4)
        large = Tensor(np.ones(1 << 19, np.float32)).realize()
        n = k
        try:
            while not stop.is_set():
                n += 4
                assert ((Tensor(x) * n).sum(n % 2).numpy() == (x * n).sum(n % 2)).all()
                assert (large * 2.0 + 1.0).max().item() == 3.0  # many threads share it
                y = UOp.var(f"y{n}", dtypes.index, 0, 99)
                assert morok.simplify((y * n + 1).idiv(n)) is y or n < 2
        except BaseException as problem:
            problems.append(problem)

    with morok.settings(threads=threads):
        workers = [threading.Thread(target=work, args=(k + 2,)) for k in range(3)]
        for t in workers:
            t.start()
        try:
            statuses = []
            for k in range(6):
                time.sleep(0.01 * k)
                statuses.append(in_child())
        finally:
            stop.set()
            for t in workers:
                t.join()
    assert statuses == [0] * 6
    assert not problems


@pytest.mark.sampled(4)
@pytest.mark.parametrize("late", ["morok.tensor.tensor", "morok.prove.api", "morok.dsl.check", "lark"])
def test_a_child_forked_while_a_thread_imports(late: str, pack: Path, tmp_path: Path) -> None:
    """A module that is half imported in a child stays so, and who needs it waits forever: a fork waits for the import instead."""
    text = f"""
        import os, signal, sys, threading
        import numpy as np, morok

        begun = threading.Event()

        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == {late!r} and not begun.is_set():
                    begun.set()
                    threading.Event().wait(0.5)

        def work():
            verdicts = [v.verdict for v in morok.prove({str(pack)!r})]
            return verdicts == ["proved"] * 12 and (morok.Tensor(np.ones(3)) * 2).sum().item() == 6.0

        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(60)
        if (pid := os.fork()) == 0:
            signal.alarm(60)
            os._exit(0 if work() else 2)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        thread.join()
    """
    ran = limited(resource.RLIMIT_NOFILE, 256, "-c", textwrap.dedent(text), folder=tmp_path / "cache")
    assert (ran.stdout, ran.returncode) == ("0\n", 0), ran.stderr


def everything(file: str) -> tuple[Any, ...]:
    verdicts = [v.verdict for v in morok.prove(file)]
    rules = morok.load_rules(file)
    value = (Tensor(np.arange(6, dtype=np.float32)) * 2).sum().item()
    seven = morok.rewrite(UOp.var("x", dtypes.i32) + 7, rules)
    return set(verdicts), seven.text(), value, multiprocessing.current_process().daemon


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_daemonic_worker_of_a_pool(method: str, pack: Path) -> None:
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        found = pool.map(everything, [str(pack)] * 3)
    x = UOp.var("x", dtypes.i32)
    assert [(v, value, daemon) for v, _, value, daemon in found] == [({"proved"}, 30.0, True)] * 3
    assert {text for _, text, _, _ in found} == {(UOp.const(7, dtypes.i32) + x).text()}


@pytest.mark.long
def test_what_is_pickled_is_the_same_in_another_process() -> None:
    x = UOp.var("x", dtypes.index, 0, 99)
    graph = (x * 3 + 1).idiv(2)
    assert pickle.loads(pickle.dumps(graph)) is graph
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(morok.simplify, ((x * 4 + 3).idiv(4),)) is x
