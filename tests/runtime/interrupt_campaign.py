"""Interrupts at random moments of `realize`, `simplify`, `prove` and `check`: how many were lost, and what was wrong afterwards.

    python tests/runtime/interrupt_campaign.py 10000 [seed] [kind ..]

Each interrupt is followed by checks of values. A process that aborts, or that hangs for a minute, ends with a status that is
not 0; each line that is printed counts the rest: {"interrupts": .., "within": .., "lost": .., "wrong": .., "slowest": seconds},
where those within are the ones that came before the work had ended. A line comes after every 500 interrupts, and after the last;
those that were lost or wrong are named by their kind.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import morok
from morok import Tensor, UOp, dtypes
from morok.dsl.check import check_file
from morok.ir.interpret import evaluate

HANG = 60.0
LONGER = 1.5  # the longest delay, in times of the work: some interrupts come when it has just ended
RULES = """group {name} "some"

a: Add(x: i32, {n}) ~> Add({n}, x)
b: Add(Neg(x: i32), {n}) ~> Sub({n}, x)
c: Mul(x: i32, 0) ~> 0
"""


class Realize:
    """A program with numbers of its own, so that it is compiled anew, and a counter that is written in place."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        self.counter = Tensor(np.zeros(5, np.int32)).realize()
        self.count = 0

    def prepare(self) -> Callable[[], Any]:
        rng = self.rng
        shape = (rng.randrange(1, 9), rng.randrange(1, 9))
        self.x = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        self.factor = rng.randrange(1 << 20)
        scaled = Tensor(self.x) * self.factor + 1
        self.tensors = [
            scaled,
            scaled.sum(rng.randrange(2)),
            (scaled @ scaled.permute(1, 0)) if rng.random() < 0.3 else -scaled,
        ]
        self.counter.assign(self.counter + 1)
        self.count += 1
        return lambda: self.counter.realize(*self.tensors)

    def is_right(self) -> bool:
        want = self.x * np.int32(self.factor) + np.int32(1)
        scaled, total, last = (t.numpy() for t in self.tensors)
        sums = [want.sum(a, dtype=np.int32) for a in (0, 1)]
        return bool(
            (scaled == want).all()
            and any(total.shape == s.shape and (total == s).all() for s in sums)
            and (last == (-want if last.shape == want.shape and (last == -want).all() else want @ want.T)).all()
            and (self.counter.numpy() == self.count).all()
        )


class Simplify:
    """A random expression of index arithmetic."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng

    def grown(self, depth: int) -> UOp:
        rng = self.rng
        if depth == 0:
            return (
                UOp.var(rng.choice("abc"), dtypes.index, 0, 63)
                if rng.random() < 0.7
                else UOp.const(rng.randrange(1, 9))
            )
        a, b = self.grown(depth - 1), UOp.const(rng.randrange(1, 9))
        return rng.choice(
            [lambda: a + self.grown(depth - 1), lambda: a * b, lambda: a // b, lambda: a % b, lambda: a + b]
        )()

    def prepare(self) -> Callable[[], Any]:
        self.graph = self.grown(7)
        return lambda: morok.simplify(self.graph)

    def is_right(self) -> bool:
        values = {name: self.rng.randrange(64) for name in "abc"}
        again = morok.simplify(self.graph)
        return again is morok.simplify(self.graph) and evaluate(again, values) == evaluate(self.graph, values)


class Pack:
    """A file of rules that nobody has seen."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        self.folder = folder
        self.files = 0

    def prepare(self) -> Callable[[], Any]:
        self.files += 1
        self.file = self.folder / f"{type(self).__name__}{self.files}.rules"
        self.file.write_text(RULES.format(name=f"g{self.files}", n=self.rng.randrange(1, 1000)))
        return self.work

    def work(self) -> Any:
        return check_file(self.file)

    def is_right(self) -> bool:
        return len(list(check_file(self.file).rules())) == 3


class Check(Pack):
    """The same, checked."""


class Prove(Pack):
    """The same, proved by two processes."""

    def work(self) -> Any:
        return morok.prove(self.file, jobs=2)

    def is_right(self) -> bool:
        return self.files % 5 != 0 or [v.verdict for v in morok.prove(self.file, jobs=1)] == ["proved"] * 3


class Load(Prove):
    """The same, compiled and used."""

    def work(self) -> Any:
        return morok.rewrite(UOp.var("x", dtypes.i32) * 0, morok.load_rules(self.file))

    def is_right(self) -> bool:
        return self.files % 5 != 0 or self.work() is UOp.const(0, dtypes.i32)


KINDS: dict[str, Any] = {"realize": Realize, "simplify": Simplify, "check": Check, "prove": Prove, "load": Load}


class Interrupt:
    """One that arrives after `delay` seconds: from a timer, or as a signal that another thread sends."""

    def __init__(self, delay: float, timer: bool) -> None:
        self.due = time.monotonic() + delay
        self.took: float | None = None
        if timer:
            signal.setitimer(signal.ITIMER_REAL, delay)
        else:
            threading.Thread(target=self.send, args=(delay,), daemon=True).start()

    def send(self, delay: float) -> None:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    def arrives(self, work: Callable[[], Any]) -> bool:
        """Whether it comes out of `work`, or afterwards: then `took` is how long the work was."""
        begin = time.monotonic()
        try:
            work()
            self.took = time.monotonic() - begin
            while time.monotonic() < self.due + 2:
                time.sleep(0.001)
        except KeyboardInterrupt:
            return True
        return False


def campaign(interrupts: int, seed: int, kinds: list[str], folder: Path) -> None:
    rng = random.Random(seed)
    for s in (signal.SIGALRM, signal.SIGINT):  # the latter is ignored in what a shell runs in the background
        signal.signal(s, signal.default_int_handler)
    subjects = {name: KINDS[name](rng, folder) for name in kinds}
    longest = {}
    for name, subject in subjects.items():
        for _ in range(3):  # the first loads what is loaded once
            work, begin = subject.prepare(), time.monotonic()
            work()
            longest[name] = LONGER * (time.monotonic() - begin)
    within = lost = wrong = 0
    slowest = 0.0
    for n in range(interrupts):
        faulthandler.dump_traceback_later(HANG, exit=True)
        name = rng.choice(kinds)
        subject = subjects[name]
        work = subject.prepare()
        delay = max(rng.uniform(0, longest[name]), 1e-6)
        arrived, interrupt = False, None
        begin = time.monotonic()
        try:
            interrupt = Interrupt(delay, rng.random() < 0.7)
            arrived = interrupt.arrives(work)
        except KeyboardInterrupt:  # on the way into it or out of it
            arrived = True
        slowest = max(slowest, time.monotonic() - (begin + delay))
        if interrupt is not None and interrupt.took is not None:  # as loaded as the machine is now
            longest[name] += (LONGER * interrupt.took - longest[name]) / 10
        else:
            within += 1
        if not arrived:
            lost += 1
            print(f"lost interrupt {n}: {name}", flush=True)
        if not subject.is_right():
            wrong += 1
            print(f"wrong after interrupt {n}: {name}", flush=True)
        if (n + 1) % 500 == 0 or n + 1 == interrupts:
            counts = {"interrupts": n + 1, "within": within, "lost": lost, "wrong": wrong}
            print(json.dumps({**counts, "slowest": round(slowest, 3)}), flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        given = sys.argv[1:]
        campaign(int(given[0]), int(given[1]) if len(given) > 1 else 0, given[2:] or list(KINDS), Path(name))
