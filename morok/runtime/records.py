"""CPU plans as records: the memory layout in which one foreign call runs all kernels of a plan (`shared_kernels`)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from morok.codegen.rendered import WHOLE, Variable
from morok.runtime.buffer import Block, Buffer
from morok.runtime.cpu import CPUKernel
from morok.runtime.kernel import PreparedKernel, pack
from morok.runtime.shared_kernels import RECORD_WORDS
from morok.runtime.thread_pool import Job

# least instructions of a kernel worth a thread of its own: several times the cost of waking one
SIDE_BY_SIDE: Final = 20_000


class Records:
    """A plan's records, one for each step, in the order of the groups. With threads, a group begins with the kernels that threads
    share, then those too small for a thread of their own, then those that run side by side.

    It has no reference to the plan: a reference cycle would keep the buffers until Python's cycle collector runs.

    order      the steps in the order of their records
    places     for each buffer its entries in `args`
    scratch    the working memory of the kernels
    variables  for each variable and fixed value: the mask of its bits (0 for floats), the name of a kernel, its words in `vars`
    bound      True if every variable has a value
    """

    def __init__(
        self,
        kernels: Sequence[PreparedKernel],
        groups: Sequence[Sequence[int]],
        buffers: Sequence[Buffer],
        threads: int,
    ) -> None:
        self.kernels, self.threads = kernels, threads
        arranged = [self._arranged(g) for g in groups]
        self.order = [i for group, _ in arranged for i in group]
        self.places: dict[int, list[int]] = {}
        self.scratch: list[Block] = []
        arguments, starts = self._arguments(buffers, {group[0] for group in groups if len(group) == 1})
        total, variable_starts = self._variables()
        args, vars = np.array([*arguments, 0], np.uint64), np.zeros(total + 1, np.uint64)
        # storing a number in a memoryview takes a quarter of an array's time
        self.args, self.vars = (args.data, vars.data)
        args_at, vars_at = args.ctypes.data, vars.ctypes.data
        beside = [n for group, side in arranged for n in [*[1] * (len(group) - len(side)), *side]]
        rows: list[tuple[int, ...]] = []
        for i, start, first, together in zip(self.order, starts, variable_starts, beside, strict=True):
            kernel = kernels[i].kernel
            assert isinstance(kernel, CPUKernel)
            r = kernel.rendered
            words, parts = (r.words, r.parts * threads) if r.parts and threads > 1 else (0, together)
            rows.append((kernel.address, args_at + 8 * start, vars_at + 8 * first, words, r.scratch, parts))
        self.rows = np.array(rows, np.uint64).reshape(-1, RECORD_WORDS)
        self.bound = not any(s.kernel.rendered.vars for s in kernels)
        self.job = Job(self.rows, threads)
        self.run = self.job.run

    def _arguments(self, buffers: Sequence[Buffer], alone: Collection[int]) -> tuple[list[int], list[int]]:
        """(words of `args`, the first of each record): the addresses of the buffers, then of working memory, which all steps that
        run `alone`, one after the other, share.
        """
        shared: Block | None = None
        if most := max([self._scratch_bytes(i) for i in alone], default=0):
            shared = Block(most)
            self.scratch.append(shared)
        arguments: list[int] = []
        starts: list[int] = []
        for i in self.order:
            rendered = self.kernels[i].kernel.rendered
            starts.append(len(arguments))
            for b in self.kernels[i].buffers[: rendered.slots]:
                self.places.setdefault(b, []).append(len(arguments))
                arguments.append(buffers[b].address)
            if rendered.scratch:
                if i not in alone or shared is None:
                    self.scratch.append(Block(self._scratch_bytes(i)))
                arguments.append((shared if i in alone and shared is not None else self.scratch[-1]).address)
            if rendered.parts:
                arguments.append(WHOLE)
        return arguments, starts

    def _variables(self) -> tuple[int, list[int]]:
        """(number of words of `vars`, the first of each record): steps with equal variables and fixed values share words."""
        blocks: dict[tuple[tuple[Variable, Any], ...], int] = {}  # a step's variables -> their first word
        # (variable, fixed value) -> (a kernel's name, its words)
        slots: dict[tuple[Variable, Any], tuple[str, list[int]]] = {}
        words = 0
        starts: list[int] = []
        for i in self.order:
            step = self.kernels[i]
            own = tuple([(v, step.fixedvars.get(v.name)) for v in step.kernel.rendered.vars])
            if own not in blocks:
                blocks[own] = words
                for word, pair in enumerate(own, words):
                    slots.setdefault(pair, (step.kernel.name, []))[1].append(word)
                words += len(own)
            starts.append(blocks[own])
        self.variables = [
            (variable, (1 << variable.dtype.bits) - 1 if variable.dtype.is_int else 0, kernel, fixed, where)
            for (variable, fixed), (kernel, where) in slots.items()
        ]
        return words, starts

    def _scratch_bytes(self, step: int) -> int:
        """The bytes of a step's working memory, for all threads that share it."""
        rendered = self.kernels[step].kernel.rendered
        return rendered.scratch * (self.threads if rendered.parts else 1)

    def _arranged(self, group: Sequence[int]) -> tuple[list[int], list[int]]:
        """(steps of a group in the order of their records, `parts` of the records at the end that run side by side): of these the
        first has their number, the others 1.
        """
        if self.threads <= 1 or len(group) == 1:
            return list(group), []
        rendered = {i: self.kernels[i].kernel.rendered for i in group}
        divided = [i for i in group if rendered[i].parts]
        small = [i for i in group if i not in divided and rendered[i].work < SIDE_BY_SIDE]
        side = [i for i in group if i not in divided and i not in small]
        return [*divided, *small, *side], [len(side), *[1] * (len(side) - 1)] if side else []

    def bind(self, buffer_idx: int, buffer: Buffer) -> None:
        for place in self.places.get(buffer_idx, ()):
            self.args[place] = buffer.address

    def set_vars(self, values: Mapping[str, Any]) -> None:
        if self.bound and not values:
            return
        # all values are checked before one is written, so that an error leaves the plan unchanged
        words: list[int] = []
        for variable, mask, kernel, fixed, _ in self.variables:
            value = values.get(variable.name, fixed)
            if value.__class__ is int and mask and variable.least <= value <= variable.most:  # the common case
                words.append(value & mask)
            else:
                given = {} if value is None and variable.name not in values else {variable.name: value}
                words.append(int.from_bytes(pack(kernel, (variable,), given), "little"))
        for word, (_, _, _, _, where) in zip(words, self.variables, strict=True):
            for place in where:
                self.vars[place] = word
        self.bound = True

    def profile(self) -> list[tuple[float, float]]:
        """(start, duration) of each step in one execution, in seconds."""
        times = np.zeros((len(self.order), 2), np.int64)
        begin = time.monotonic_ns()
        Job(self.rows, self.threads, times).run()
        found = {
            i: ((int(start) - begin) / 1e9, int(end - start) / 1e9)
            for i, (start, end) in zip(self.order, times, strict=True)
        }
        return [found[i] for i in sorted(found)]
