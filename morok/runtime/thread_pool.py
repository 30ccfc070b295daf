"""Threads that share kernels: the code that runs the records of a plan, and the workers that it hands parts of them to.

A plan is one foreign call of `run`, which walks records of six words: {kernel, args, vars, words, scratch, parts}. Where `parts`
is more than 1 there are threads to ask: `words` > 0 says that the kernel itself divides into parts (its THREAD axes; `words`
entries of `args`, the last of which says which part, and `scratch` bytes of working memory a thread), `words` = 0 that so many
records from here on do not wait for each other.

Parts are handed out one by one to whoever is free, the caller first of all: a worker that sleeps, or that the system runs late,
delays nothing, and without workers the caller does it all. Workers spin for some microseconds after their last part, then
sleep on a futex. They run no Python, block all signals, are told to leave and joined at exit, and do not exist in a forked
child, which starts its own. One caller at a time has the workers; another meanwhile computes alone.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import platform
import signal
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from morok.locks import THREAD_POOL
from morok.runtime.cache import disk_cache
from morok.runtime.jit import Code, compile_text

WORDS: Final = 6  # of a record
_SPINS: Final = 4000  # looks at the state before a worker sleeps: about a tenth of a millisecond
_MOST: Final = 1 << 15
_FUTEX: Final = {"x86_64": 202, "aarch64": 98}
_PAUSE: Final = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.hint(i32 1)"}
_CLOCK_MONOTONIC: Final = 1

# Words of the state that callers and workers share; each that is written often has a cache line of its own.
_LOCK, _NEXT, _EPOCH, _SLEEPERS, _RECORD, _PARTS, _TIMES, _STOP, _STATE_WORDS = 8, 16, 24, 25, 32, 33, 34, 35, 40

# Word 0 is generation << 32 | open << 31 | most workers << 16 | workers inside: one compare-and-exchange lets a worker in, to
# the job it saw and no other. The job's words change only while nobody is inside and the state is closed.
_TEXT: Final = """\
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare void {declared}
declare i32 @clock_gettime(i32, ptr)

define internal void @stamp(ptr %at) {{
  %time = alloca [2 x i64], align 8
  %status = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  store i64 %now, ptr %at, align 8
  ret void
}}

define internal void @one(ptr %record, ptr %args, ptr %times) {{
entry:
  %kernel = load ptr, ptr %record, align 8
  %vars.at = getelementptr ptr, ptr %record, i64 2
  %vars = load ptr, ptr %vars.at, align 8
  %timed = icmp ne ptr %times, null
  br i1 %timed, label %stamped, label %plain
plain:
  call void %kernel(ptr %args, ptr %vars)
  ret void
stamped:
  call void @stamp(ptr %times)
  call void %kernel(ptr %args, ptr %vars)
  %end = getelementptr i64, ptr %times, i64 1
  call void @stamp(ptr %end)
  ret void
}}

define internal void @alone(ptr %record, ptr %times) {{
  %args.at = getelementptr ptr, ptr %record, i64 1
  %args = load ptr, ptr %args.at, align 8
  call void @one(ptr %record, ptr %args, ptr %times)
  ret void
}}

define internal void @work(ptr %state, i64 %who) {{
entry:
  %next.at = getelementptr i64, ptr %state, i64 {next}
  %record.at = getelementptr i64, ptr %state, i64 {record}
  %parts.at = getelementptr i64, ptr %state, i64 {parts}
  %times.at = getelementptr i64, ptr %state, i64 {times}
  %record = load ptr, ptr %record.at, align 8
  %parts = load i64, ptr %parts.at, align 8
  %times = load ptr, ptr %times.at, align 8
  %words.at = getelementptr i64, ptr %record, i64 3
  %words = load i64, ptr %words.at, align 8
  %divides = icmp ne i64 %words, 0
  br i1 %divides, label %copy.start, label %side
side:
  %c = atomicrmw add ptr %next.at, i64 1 acq_rel
  %c.more = icmp ult i64 %c, %parts
  br i1 %c.more, label %side.one, label %done
side.one:
  %row = mul i64 %c, {words}
  %row.at = getelementptr i64, ptr %record, i64 %row
  %timed = icmp ne ptr %times, null
  %two = shl i64 %c, 1
  %times.row = getelementptr i64, ptr %times, i64 %two
  %times.one = select i1 %timed, ptr %times.row, ptr null
  call void @alone(ptr %row.at, ptr %times.one)
  br label %side
copy.start:
  %args = alloca i64, i64 %words, align 8
  %given.at = getelementptr ptr, ptr %record, i64 1
  %given = load ptr, ptr %given.at, align 8
  br label %copy
copy:
  %i = phi i64 [ 0, %copy.start ], [ %i.next, %copy ]
  %from = getelementptr i64, ptr %given, i64 %i
  %to = getelementptr i64, ptr %args, i64 %i
  %word = load i64, ptr %from, align 8
  store i64 %word, ptr %to, align 8
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %words
  br i1 %i.more, label %copy, label %copied
copied:
  %last = sub i64 %words, 1
  %part.at = getelementptr i64, ptr %args, i64 %last
  %scratch.size.at = getelementptr i64, ptr %record, i64 4
  %scratch.size = load i64, ptr %scratch.size.at, align 8
  %scratched = icmp ne i64 %scratch.size, 0
  br i1 %scratched, label %own, label %divide
own:
  %but.one = sub i64 %words, 2
  %scratch.at = getelementptr i64, ptr %args, i64 %but.one
  %scratch = load i64, ptr %scratch.at, align 8
  %offset = mul i64 %who, %scratch.size
  %scratch.own = add i64 %scratch, %offset
  store i64 %scratch.own, ptr %scratch.at, align 8
  br label %divide
divide:
  %p = atomicrmw add ptr %next.at, i64 1 acq_rel
  %p.more = icmp ult i64 %p, %parts
  br i1 %p.more, label %divide.one, label %done
divide.one:
  %upper = shl i64 %parts, 32
  %both = or i64 %upper, %p
  store i64 %both, ptr %part.at, align 8
  call void @one(ptr %record, ptr %args, ptr null)
  br label %divide
done:
  ret void
}}

define ptr @worker(ptr %state) {{
entry:
  %stop.at = getelementptr i64, ptr %state, i64 {stop}
  %epoch.at = getelementptr i64, ptr %state, i64 {epoch}
  %sleepers.at = getelementptr i64, ptr %state, i64 {sleepers}
  br label %look
look:
  %seen = phi i64 [ -1, %entry ], [ %seen, %idle ], [ %seen, %woken ], [ %seen, %enter ], [ %generation, %left ]
  %spins = phi i64 [ 0, %entry ], [ %spins.next, %idle ], [ 0, %woken ], [ 0, %enter ], [ 0, %left ]
  %epoch = load atomic i32, ptr %epoch.at seq_cst, align 8
  %s = load atomic i64, ptr %state seq_cst, align 8
  %generation = lshr i64 %s, 32
  %is.new = icmp ne i64 %generation, %seen
  %open = and i64 %s, 2147483648
  %is.open = icmp ne i64 %open, 0
  %inside = and i64 %s, 65535
  %most.high = lshr i64 %s, 16
  %most = and i64 %most.high, 32767
  %room = icmp ult i64 %inside, %most
  %can = and i1 %is.new, %is.open
  %may = and i1 %can, %room
  br i1 %may, label %enter, label %wait
enter:
  %s.entered = add i64 %s, 1
  %exchanged = cmpxchg ptr %state, i64 %s, i64 %s.entered acq_rel monotonic
  %entered = extractvalue {{ i64, i1 }} %exchanged, 1
  br i1 %entered, label %inside.job, label %look
inside.job:
  %who = add i64 %inside, 1
  call void @work(ptr %state, i64 %who)
  br label %left
left:
  %before = atomicrmw sub ptr %state, i64 1 acq_rel
  br label %look
wait:
  %stop = load atomic i64, ptr %stop.at seq_cst, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %exit, label %going
going:
  %tired = icmp uge i64 %spins, {spins}
  br i1 %tired, label %sleep, label %idle
idle:
  call void {pause}
  %spins.next = add i64 %spins, 1
  br label %look
sleep:
  %asleep = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  %slept = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch.at, i32 128, i32 %epoch, ptr null, ptr null, i32 0)
  %awake = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  br label %woken
woken:
  br label %look
exit:
  ret ptr null
}}

define internal i1 @run_shared(ptr %state, ptr %record, i64 %parts, ptr %times, i64 %workers) {{
entry:
  %lock.at = getelementptr i64, ptr %state, i64 {lock}
  %taken = cmpxchg ptr %lock.at, i64 0, i64 1 acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %mine, label %publish, label %busy
busy:
  ret i1 false
publish:
  %next.at = getelementptr i64, ptr %state, i64 {next}
  %record.at = getelementptr i64, ptr %state, i64 {record}
  %parts.at = getelementptr i64, ptr %state, i64 {parts}
  %times.at = getelementptr i64, ptr %state, i64 {times}
  %epoch.at = getelementptr i64, ptr %state, i64 {epoch}
  %sleepers.at = getelementptr i64, ptr %state, i64 {sleepers}
  store ptr %record, ptr %record.at, align 8
  store i64 %parts, ptr %parts.at, align 8
  store ptr %times, ptr %times.at, align 8
  store atomic i64 0, ptr %next.at monotonic, align 8
  %old = load atomic i64, ptr %state monotonic, align 8
  %generation = lshr i64 %old, 32
  %generation.next = add i64 %generation, 1
  %high = shl i64 %generation.next, 32
  %middle = shl i64 %workers, 16
  %both = or i64 %high, %middle
  %job = or i64 %both, 2147483648
  store atomic i64 %job, ptr %state seq_cst, align 8
  %epoch = atomicrmw add ptr %epoch.at, i32 1 seq_cst
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %any = icmp sgt i64 %sleepers, 0
  br i1 %any, label %wake, label %own
wake:
  %most = trunc i64 %workers to i32
  %woken = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch.at, i32 129, i32 %most, ptr null, ptr null, i32 0)
  br label %own
own:
  call void @work(ptr %state, i64 0)
  %closed = atomicrmw and ptr %state, i64 -2147483649 seq_cst
  br label %gather
gather:
  %spins = phi i64 [ 0, %own ], [ %spins.next, %pause ], [ 0, %yield ]
  %s = load atomic i64, ptr %state acquire, align 8
  %inside = and i64 %s, 65535
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %more
more:
  %long = icmp uge i64 %spins, {spins}
  br i1 %long, label %yield, label %pause
pause:
  call void {pause}
  %spins.next = add i64 %spins, 1
  br label %gather
yield:
  %status = call i32 @sched_yield()
  br label %gather
done:
  store atomic i64 0, ptr %lock.at release, align 8
  ret i1 true
}}

define void @run(ptr %job) {{
entry:
  %n.at = getelementptr i64, ptr %job, i64 1
  %state.at = getelementptr i64, ptr %job, i64 2
  %workers.at = getelementptr i64, ptr %job, i64 3
  %times.at = getelementptr i64, ptr %job, i64 4
  %records = load ptr, ptr %job, align 8
  %n = load i64, ptr %n.at, align 8
  %state = load ptr, ptr %state.at, align 8
  %workers = load i64, ptr %workers.at, align 8
  %times = load ptr, ptr %times.at, align 8
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %row = mul i64 %i, {words}
  %record = getelementptr i64, ptr %records, i64 %row
  %timed = icmp ne ptr %times, null
  %two = shl i64 %i, 1
  %times.row = getelementptr i64, ptr %times, i64 %two
  %times.own = select i1 %timed, ptr %times.row, ptr null
  %words.at = getelementptr i64, ptr %record, i64 3
  %words = load i64, ptr %words.at, align 8
  %divides = icmp ne i64 %words, 0
  %parts.at = getelementptr i64, ptr %record, i64 5
  %parts = load i64, ptr %parts.at, align 8
  %several = icmp sgt i64 %parts, 1
  %threads = icmp ne ptr %state, null
  %ask = and i1 %several, %threads
  br i1 %ask, label %together, label %single
together:
  %stamps = and i1 %divides, %timed
  %times.side = select i1 %divides, ptr null, ptr %times.own
  br i1 %stamps, label %stamp.start, label %shared
stamp.start:
  call void @stamp(ptr %times.own)
  br label %shared
shared:
  %done.together = call i1 @run_shared(ptr %state, ptr %record, i64 %parts, ptr %times.side, i64 %workers)
  br i1 %done.together, label %finished, label %single
finished:
  br i1 %stamps, label %stamp.end, label %next.together
stamp.end:
  %end.at = getelementptr i64, ptr %times.own, i64 1
  call void @stamp(ptr %end.at)
  br label %next.together
next.together:
  %rows = select i1 %divides, i64 1, i64 %parts
  br label %next
single:
  call void @alone(ptr %record, ptr %times.own)
  br label %next
next:
  %step = phi i64 [ 1, %single ], [ %rows, %next.together ]
  %following = add i64 %i, %step
  %more = icmp slt i64 %following, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

# CFUNCTYPE releases the interpreter's lock for the call; PYFUNCTYPE would keep it.
_RUN: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def text() -> str:
    """The LLVM IR of `run`, which walks records, and of `worker`, which a worker runs until it is dismissed."""
    machine = platform.machine()
    pause = _PAUSE.get(machine, "@llvm.donothing()")
    return _TEXT.format(
        lock=_LOCK, next=_NEXT, epoch=_EPOCH, sleepers=_SLEEPERS, record=_RECORD, parts=_PARTS, times=_TIMES, stop=_STOP,
        words=WORDS, spins=_SPINS, clock=_CLOCK_MONOTONIC, futex=_FUTEX.get(machine, 202), pause=pause,
        declared=pause.replace("i32 1", "i32"),
    )  # fmt: skip


@functools.cache
def _loaded() -> tuple[Callable[[int], None], Code, Code]:
    run, worker = [compile_text(text(), name, "code", disk_cache()) for name in ("run", "worker")]
    return _RUN(run.address), run, worker


def _code() -> tuple[Callable[[int], None], Code, Code]:
    """`run` as a function, and what keeps it and `worker` loaded: once a process, since workers stay in what they began with.

    Two threads that both asked first would both load it, and what one of them got would be unloaded under its workers.
    """
    with THREAD_POOL:
        return _loaded()


@functools.cache
def _pthread() -> Any:
    return ctypes.CDLL(None, use_errno=True)


class ThreadPool:
    """The workers of this process, made when they are first asked for.

    address  of the state that they and their callers share
    """

    def __init__(self) -> None:
        words = np.zeros(_STATE_WORDS + 8, np.int64)
        self.state = words[-words.ctypes.data % 64 // 8 :][:_STATE_WORDS]
        self.address: int = self.state.ctypes.data
        self.handles: list[int] = []
        self.refused = False

    def ensure(self, workers: int, worker: int) -> None:
        """See that there are so many workers, as far as the system lets us; the function at `worker` is what they run."""
        if len(self.handles) >= workers or self.refused:
            return
        with THREAD_POOL:
            # a signal meant for Python must not arrive in a thread that knows nothing of it
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                while len(self.handles) < min(workers, _MOST) and not self.refused:
                    handle = ctypes.c_ulong()
                    status = _pthread().pthread_create(
                        ctypes.byref(handle), None, ctypes.c_void_p(worker), ctypes.c_void_p(self.address)
                    )
                    if status:
                        self.refused = True  # the caller computes what they would have
                    else:
                        self.handles.append(handle.value)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def asleep(self) -> int:
        """The number of workers that sleep now."""
        return int(self.state[_SLEEPERS])

    @property
    def shared(self) -> int:
        """The number of kernels, or groups of them, handed to workers so far."""
        return int(self.state[0]) >> 32

    def dismiss(self) -> None:
        """Let every worker finish what it does, and wait for it to leave."""
        with THREAD_POOL:
            self.state[_STOP] = 1
            self.state[_EPOCH] += 1
            futex = _FUTEX.get(platform.machine(), 202)
            _pthread().syscall(
                ctypes.c_long(futex), ctypes.c_void_p(self.address + 8 * _EPOCH), 129, ctypes.c_int(_MOST), None, None, 0
            )
            for handle in self.handles:
                _pthread().pthread_join(ctypes.c_ulong(handle), None)
            self.handles.clear()
            self.refused = True


pool = ThreadPool()


def _forget() -> None:
    """The state of a forked child: there are no workers, and a caller that had them will never give them back."""
    global pool
    pool = ThreadPool()


def _dismiss() -> None:
    pool.dismiss()


os.register_at_fork(after_in_child=_forget)
atexit.register(_dismiss)


class Job:
    """`n` records at address `records`, to be run again and again on up to `threads` threads, one at a time.

    times  two 64-bit numbers a record, into which go its begin and its end in nanoseconds of the monotonic clock; None: not asked
    """

    def __init__(self, records: int, n: int, threads: int = 1, times: np.ndarray[Any, Any] | None = None) -> None:
        self.threads = threads
        self.times = times
        self._pool: ThreadPool | None = None
        self._words = np.array([records, n, 0, threads - 1, 0 if times is None else times.ctypes.data], np.int64)
        self._at: int = self._words.ctypes.data
        self._run = _code()[0]

    def run(self) -> None:
        if self.threads > 1 and self._pool is not pool:
            self._pool = pool
            pool.ensure(self.threads - 1, _code()[2].address)
            self._words[2] = pool.address
        self._run(self._at)
