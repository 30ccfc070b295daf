"""The LLVM code that runs the records of a plan, in the caller and in worker threads, without Python.

A record is six words: {kernel, args, vars, words, scratch, parts}. If `parts` > 1, threads share the work. With `words` > 0 they
share this kernel, along its THREAD axes: `args` has `words` entries, the last of which is the number of the part, and each thread
has `scratch` bytes of working memory. With `words` = 0 this and the following records, `parts` together, are independent kernels.

The caller and the workers share the words of a pool. STATE is 0 while no caller has the workers. Otherwise its low bits count the
threads inside, the caller included, and its bits from _INVITED up the workers that may still enter. A worker enters by one
compare-and-exchange, and the number of invitations that it saw becomes its thread number. The other words change only while no
worker is inside or invited.
"""

from __future__ import annotations

import platform
from typing import Final

from morok.codegen.llvm.words import Function, Word, module

RECORD_WORDS: Final = 6
JOB_WORDS: Final = 4
_KERNEL, _ARGS, _VARS, _WORDS, _SCRATCH, _PARTS = range(RECORD_WORDS)
# Indices of the pool's words; words that are written often have cache lines of their own.
STATE, NEXT, EPOCH, SLEEPERS, RECORD, PARTS, SHARED, STOP, POOL_WORDS = 0, 8, 16, 17, 24, 25, 26, 27, 32
# system call number; 98 on all newer machines
FUTEX: Final = {"x86_64": 202, "ppc64le": 221}.get(platform.machine(), 98)
FUTEX_WAIT, FUTEX_WAKE = 128, 129  # with FUTEX_PRIVATE_FLAG: among the threads of one process
_INVITED: Final = 32  # lowest bit in STATE of the number of invited workers
_SPINS: Final = 4000  # polls of the state before a thread yields or sleeps: about 0.1 ms
_PAUSE: Final = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.hint(i32 1)"}
_CLOCK_MONOTONIC: Final = 1


def _pause(f: Function) -> None:
    call = _PAUSE.get(platform.machine(), "@llvm.donothing()")
    f.b.declared[call] = f"declare void {call.replace('i32 1', 'i32')}"
    f.b.do(f"call void {call}")


def _work() -> Function:
    """The function `work(pool, who)`: compute parts of the pool's record as thread number `who` until none is left; then cancel
    the remaining invitations.
    """
    f = Function("work", 2)
    pool, who = f.parameters
    record = pool[RECORD]
    words = record[_WORDS]
    with f.when(words):
        args = f.memory(words)
        f.call("memcpy", args, record[_ARGS], words * 8)
        args[words - 2] = args[words - 2] + who * record[_SCRATCH]
        with f.loop():
            part = pool.update(NEXT, "add", 1)
            f.leave_unless(part < pool[PARTS])
            args[words - 1] = pool[PARTS] << 32 | part
            f.call(record[_KERNEL], args, record[_VARS])
    with f.when(words.equals(0)), f.loop():
        part = pool.update(NEXT, "add", 1)
        f.leave_unless(part < pool[PARTS])
        row = record + part * (8 * RECORD_WORDS)
        f.call(row[_KERNEL], row[_ARGS], row[_VARS])
    pool.update(STATE, "and", (1 << _INVITED) - 1)
    return f


def _worker() -> Function:
    """The main function of a worker, `worker(pool)`: it works when invited, polls for some time, then sleeps, until STOP."""
    f = Function("worker", 1)
    (pool,) = f.parameters
    spins = f.variable()
    with f.loop():
        epoch = pool.load(EPOCH)  # loaded first: any later change of it prevents or ends the sleep below
        f.leave_unless(pool.load(STOP).equals(0))
        state = pool.load(STATE)
        invited = state >> _INVITED
        with f.when(invited):
            with f.when(pool.exchange(STATE, state, state - (1 << _INVITED) + 1)):
                f.call("work", pool, invited)
                pool.update(STATE, "sub", 1)
            spins[0] = 0
        with f.when(invited.equals(0)):
            _pause(f)
            spins[0] = spins[0] + 1
        with f.when(spins[0] > _SPINS):
            spins[0] = 0
            pool.update(SLEEPERS, "add", 1)
            # returns at once if the epoch has changed
            f.call("syscall", FUTEX, pool + 8 * EPOCH, FUTEX_WAIT, epoch, 0, 0, 0)
            pool.update(SLEEPERS, "sub", 1)
    return f


def _share(f: Function, pool: Word, record: Word, workers: Word) -> None:
    """Emit code that shares the parts of `record` between the caller, which has the pool, and up to `workers` workers."""
    pool[RECORD], pool[PARTS], pool[NEXT], pool[SHARED] = record, record[_PARTS], 0, pool[SHARED] + 1
    pool.update(STATE, "xchg", workers << _INVITED | 1)
    pool.update(EPOCH, "add", 1)
    with f.when(pool.load(SLEEPERS)):
        f.call("syscall", FUTEX, pool + 8 * EPOCH, FUTEX_WAKE, workers, 0, 0, 0)
    f.call("work", pool, 0)
    spins = f.variable()
    with f.loop():
        f.leave_unless(pool.load(STATE) > 1)
        _pause(f)
        spins[0] = spins[0] + 1
        with f.when(spins[0] > _SPINS):
            f.call("sched_yield")
    pool.update(STATE, "xchg", 0)


def _run() -> Function:
    """The function `run(job)`: run all records of a job, {address of the first, number of records, pool or 0, workers}."""
    f = Function("run", 1)
    records, n, pool, workers = [f.parameters[0][i] for i in range(4)]
    done, step = f.variable(), f.variable()
    with f.loop():
        f.leave_unless(done[0] < n)
        record = records + done[0] * (8 * RECORD_WORDS)
        step[0] = 0
        with f.when(record[_PARTS] > 1), f.when(pool), f.when(pool.exchange(STATE, 0, 1)):
            _share(f, pool, record, workers)
            step[0] = record[_PARTS]
            with f.when(record[_WORDS]):
                step[0] = 1
        with f.when(step[0].equals(0)):
            f.call(record[_KERNEL], record[_ARGS], record[_VARS])
            step[0] = 1
        done[0] = done[0] + step[0]
    return f


def _now(f: Function) -> Word:
    moment = f.memory(2)
    f.call("clock_gettime", _CLOCK_MONOTONIC, moment)
    return moment[0] * 1_000_000_000 + moment[1]


def _timed() -> Function:
    """The kernel `timed(job, times)`: run a job, and store the times of its beginning and end, in nanoseconds."""
    f = Function("timed", 2)
    job, times = f.parameters
    times[0] = _now(f)
    f.call("run", job)
    times[1] = _now(f)
    return f


def text() -> str:
    """The LLVM IR of `run`, `worker` and `timed`."""
    return module([_work(), _worker(), _run(), _timed()])
