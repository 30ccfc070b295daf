"""The interpreter of instruction lists, after stages 21 and 22: one instruction after the other, as a machine does."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from morok.errors import IRError
from morok.ir.interpret.lane_values import INVALID, Lanes, Pointer, Poison, known, scalar_value
from morok.ir.interpret.storage import ALLOCATED, NAMED, Memory, consecutive, element
from morok.ir.op import NO_INSTRUCTION, Op
from morok.ir.pure import PURE
from morok.ir.uop import UOp
from morok.lane_roles import lane


class Listing:
    """A list of instructions with the targets of its jumps.

    end, start  the indices of the End of a Range, or of the EndIf of an If, and of these
    inside      what is made between them, by the index where they end: behind that it is computed again, if it can be
    """

    def __init__(self, instructions: Sequence[UOp]) -> None:
        self.instructions = instructions
        self.end: dict[UOp, int] = {}
        self.start: dict[UOp, int] = {}
        self.inside: dict[int, Sequence[UOp]] = {}
        open_: list[UOp] = []
        for i, u in enumerate(instructions):
            if u.op in (Op.Range, Op.If):
                self.start[u] = i
                open_.append(u)
            elif u.op in (Op.End, Op.EndIf):
                opener = u.src[1] if u.op is Op.End else u.src[0]
                if len(u.src) != (2 if u.op is Op.End else 1) or not open_ or open_[-1] is not opener:
                    raise IRError(
                        f"instruction {i}: the {u.op.name} does not close the loop or branch that was opened last",
                        expected="loops and branches that nest, each with an End or EndIf of its own",
                    )
                self.end[open_.pop()] = i
                self.inside[i] = instructions[self.start[opener] : i]
        if open_:
            raise IRError(
                f"the {open_[-1].op.name} at instruction {self.start[open_[-1]]} is never closed",
                expected="an End for each Range, an EndIf for each If",
            )


class Thread:
    """One thread that runs a listing; it stops at each barrier."""

    def __init__(self, listing: Listing, memory: Memory, number: int, fixed: Mapping[Any, Any]) -> None:
        self.listing = listing
        self.memory = memory
        self.number = number
        self.fixed = fixed
        self.values: dict[UOp, Lanes] = {}
        self.closed: set[UOp] = set()  # the results of instructions in loops and branches that have ended

    def run(self) -> Generator[None]:
        at = 0
        instructions = self.listing.instructions
        while at < len(instructions):
            u = instructions[at]
            op = u.op
            if op is Op.Range:
                end = known(self.operand_value(u.src[0])[0])
                self.values[u] = (0,)
                if end <= 0:
                    at = self.listing.end[u]
                    self.close_scope(at)
            elif op is Op.End:
                opener = u.src[1]
                i = self.values[opener][0] + 1
                if i < known(self.operand_value(opener.src[0])[0]):
                    self.values[opener] = (i,)
                    at = self.listing.start[opener]
                else:
                    self.close_scope(at)
            elif op is Op.If:
                if not known(self.operand_value(u.src[0])[0]):
                    at = self.listing.end[u]
                    self.close_scope(at)
            elif op is Op.Barrier:
                yield
            elif op is Op.Store:
                self.store(u)
            elif op is Op.EndIf:
                self.close_scope(at)
            elif op not in NO_INSTRUCTION:
                self.values[u] = self.compute(u)
            at += 1

    def close_scope(self, at: int) -> None:
        """Drop the values of the loop or branch that ends at this instruction."""
        inside = self.listing.inside[at]
        self.closed.update(inside)
        for u in inside:
            self.values.pop(u, None)

    def operand_value(self, u: UOp) -> Lanes:
        """The lanes of an operand's value. IRError if it has none at this point of the list."""
        found = self.values.get(u)
        if found is not None:
            return found
        if (
            u.op in (Op.Const, Op.VConst, Op.DefineVar, Op.Special, Op.After, Op.Barrier)
            or u.op in NAMED
            or u.op in ALLOCATED
        ):
            return self.compute(u)
        if u in self.closed and u.op in PURE:
            return self.recompute(u)
        raise IRError(f"{u.op.name} is used before its instruction, or behind its loop or branch", hint=u.text()[:200])

    def recompute(self, u: UOp) -> Lanes:
        """The value of a pure operand from a loop or branch that has ended, computed again at its use."""
        missing: list[UOp] = []
        seen: set[UOp] = set()
        stack = [(u, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                self.values[node] = self.compute(node)
                missing.append(node)
            elif node not in seen and node in self.closed and node.op in PURE and node not in self.values:
                seen.add(node)
                stack.append((node, True))
                stack += [
                    (s, False) for s in (node.src[:1] if node.op is Op.After or node.op is Op.Barrier else node.src)
                ]
        found = self.values[u]
        for node in missing:
            del self.values[node]
        return found

    def compute(self, u: UOp) -> Lanes:
        op = u.op
        if op is Op.Const:
            return (u.arg,) * u.dtype.count
        if op is Op.VConst:
            return tuple(u.arg)
        if op in (Op.DefineVar, Op.Special):
            key = u if u in self.fixed else u.arg[0] if op is Op.DefineVar else u
            if key not in self.fixed:
                raise IRError(f"{u.text()} has no value", expected="a value for each variable and hardware index")
            return (self.fixed[key],)
        if op in NAMED or op in ALLOCATED:
            return (Pointer(self.memory.storage_of(u, self.number), 0),)
        if op is Op.After or op is Op.Barrier:
            return self.operand_value(u.src[0])
        if op is Op.Index:
            return self.place(u)
        if op is Op.PointerIndex:
            base, step = self.operand_value(u.src[0]), known(self.operand_value(u.src[1])[0])
            return tuple([Pointer(p.storage, p.offset + step) for p in base])
        if op is Op.Load:
            alt = self.operand_value(u.src[1]) if len(u.src) > 1 else None
            lanes = []
            for i, p in enumerate(consecutive(self.operand_value(u.src[0]), u.dtype.count)):
                if p is INVALID and alt is not None:
                    lanes.append(lane(alt, i))
                else:
                    lanes.append(self.memory.load(p, u, self.number))
            return tuple(lanes)
        return scalar_value(u, [self.operand_value(s) for s in u.src])

    def place(self, u: UOp) -> Lanes:
        base = self.operand_value(u.src[0])
        count = element(u.src[0].dtype).count
        places: list[Any] = []
        offsets = self.operand_value(u.src[1])
        gates = self.operand_value(u.src[2]) if u.arg else (True,)
        for i in range(len(offsets)):
            gate = lane(gates, i)
            offset = lane(offsets, i)
            if gate.__class__ is Poison or not gate:
                places += [gate if gate.__class__ is Poison else INVALID] * count
            elif offset.__class__ is Poison or not isinstance(base[0], Pointer):
                places += [offset if offset.__class__ is Poison else base[0]] * count
            else:
                first = base[0].offset + offset * count
                places += [Pointer(base[0].storage, first + j) for j in range(count)]
        return tuple(places)

    def store(self, u: UOp) -> None:
        lanes = self.operand_value(u.src[1])
        for i, p in enumerate(consecutive(self.operand_value(u.src[0]), len(lanes))):
            self.memory.store(p, lane(lanes, i), u, self.number)


def run_listing(instructions: Sequence[UOp], memory: Memory, variables: Mapping[Any, Any]) -> None:
    """Run every workgroup; its threads run one after the other from barrier to barrier."""
    listing = Listing(instructions)
    first = Thread(listing, memory, 0, variables)
    specials = [u for u in dict.fromkeys(instructions) if u.op is Op.Special]
    ends = []
    for s in specials:
        ends.append(known(scalar_or_fixed(first, s.src[0])[0]))
    outer = [s for s in specials if not s.arg.startswith("lidx")]
    inner = [s for s in specials if s.arg.startswith("lidx")]
    size = dict(zip(specials, ends, strict=True))
    for group in itertools.product(*[range(size[s]) for s in outer]):
        memory.new_workgroup()
        running = []
        for number, at in enumerate(itertools.product(*[range(size[s]) for s in inner])):
            fixed = {**variables, **dict(zip(outer, group, strict=True)), **dict(zip(inner, at, strict=True))}
            running.append(Thread(listing, memory, number, fixed).run())
        while running:
            waiting = [t for t in running if next(t, _DONE) is not _DONE]
            if waiting and len(waiting) != len(running):
                raise Poison("a barrier that some threads of a workgroup do not reach").error()
            memory.epoch += 1
            running = waiting
    memory.check()


def scalar_or_fixed(thread: Thread, u: UOp) -> Lanes:
    """The size of a launch, computed from its constants and variables."""
    for node in u.toposort():
        thread.values[node] = thread.compute(node)
    return thread.values[u]


_DONE: Final = object()
