"""A kernel under optimization: each Opt is checked, then applied to its loops (stage 7)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from morok.errors import OptError
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp
from morok.optimize import groups, packing, padding, prefix_scan, strips, thread_loops
from morok.optimize.opts import Opt, OptOp
from morok.passes.nesting import nesting
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end, flatten_ranges, new_range, with_axis, with_id
from morok.passes.rebuilding import next_range_id, over, substituted
from morok.passes.register_tiles import MAX_LANES
from morok.passes.target import KernelInfo, Target

REDUCE_WITH_BOOL: Final = {Op.Add: Op.Or, Op.Max: Op.Or, Op.Mul: Op.And, Op.Min: Op.And}
_PARALLEL: Final = frozenset({AxisType.Global, AxisType.Loop, AxisType.Outer})
_REDUCED: Final = frozenset({AxisType.Reduce, AxisType.GroupReduce})


def _in_order(ast: UOp) -> UOp:
    """`ast` with range ids in nesting order: ranges that were merged or cut have new ids, greater than all others."""
    closers: dict[UOp, set[tuple[UOp, ...]]] = {}
    for n in nodes_of(ast):
        if n.op in (Op.End, Op.Reduce):
            for r in n.src[1:]:
                closers.setdefault(r, set()).add(n.src[1:])
    mapping: dict[UOp, UOp] = {}
    for closed in dict.fromkeys(c for found in closers.values() if len(found) == 1 for c in found):
        ids = [r.arg[0] for r in closed if r.op is Op.Range]
        if len(ids) == len(closed) and ids != sorted(ids) and all(len(closers[r]) == 1 for r in closed):
            mapping.update({r: with_id(r, i) for r, i in zip(closed, sorted(ids), strict=True)})
    return substituted(ast, mapping) if mapping else ast


def _is_shared(fold: UOp) -> bool:
    """True if threads share a reduction, so that it will use a local buffer."""
    return fold.op is Op.Reduce and any(r.arg[1] is AxisType.GroupReduce for r in fold.src[1:])


class _KernelFacts:
    """Cached facts about one form of a kernel.

    nodes   all nodes, operands first
    ranges  all ranges, outermost first
    nests   the sets of ranges around its nodes
    filled  the ranges that the contents of local buffers depend on
    """

    def __init__(self, ast: UOp) -> None:
        self.ast = ast
        self.nodes = nodes_of(ast)

    @functools.cached_property
    def ranges(self) -> list[UOp]:
        return sorted([n for n in self.nodes if n.op is Op.Range], key=nesting)

    @functools.cached_property
    def nests(self) -> set[frozenset[UOp]]:
        return {n.ranges for n in self.nodes}

    @functools.cached_property
    def filled(self) -> frozenset[UOp]:
        fills = [n.ranges for n in self.nodes if n.op in (Op.Barrier, Op.Bufferize) or _is_shared(n)]
        return frozenset[UOp]().union(*fills)


class Scheduler:
    """A kernel under optimization.

    ast      its Sink; every `apply` replaces it
    applied  the optimizations so far
    """

    def __init__(self, ast: UOp, target: Target) -> None:
        self.target = target
        self.applied: list[Opt] = []
        self.use_locals = target.has_local
        self.ast = _in_order(ast if target.has_local else prefix_scan.with_prefix_scans(ast))
        self._cached_facts = _KernelFacts(self.ast)
        if target.has_local:
            self._make_global()

    def _make_global(self) -> None:
        """Turn the loops over outputs into Global axes: on a GPU they run in parallel."""
        closed = [r for n in nodes_of(self.ast) if n.op is Op.End for r in n.src[1:]]
        mapping = {r: with_axis(r, AxisType.Global) for r in closed if r.arg[1] is AxisType.Loop}
        if mapping:
            self.ast = substituted(self.ast, mapping)

    @property
    def _facts(self) -> _KernelFacts:
        if self._cached_facts.ast is not self.ast:
            self._cached_facts = _KernelFacts(self.ast)
        return self._cached_facts

    @property
    def nodes(self) -> list[UOp]:
        """All nodes, operands first."""
        return self._facts.nodes

    @property
    def ranges(self) -> list[UOp]:
        """All ranges, outermost first."""
        return list(self._facts.ranges)

    @property
    def output_ranges(self) -> list[UOp]:
        """The ranges of loops over outputs, outermost first, without vectorized ranges and ranges over threads."""
        return [r for r in self.ranges if r.arg[1] in _PARALLEL]

    @property
    def reduced_ranges(self) -> list[UOp]:
        return [r for r in self.ranges if r.arg[1] in _REDUCED]

    def lanes(self, along: UOp | None = None) -> int:
        """The lanes of the widest vector so far, among vectors that depend on the range `along` if it is given."""
        most = 1
        for ranges in self._facts.nests:
            if along is None or along in ranges:
                n = 1
                for r in ranges:
                    if r.arg[1] in (AxisType.Upcast, AxisType.Unroll):
                        n *= const_end(r) or 1
                most = max(most, n)
        return most

    @property
    def ordered_ranges(self) -> list[UOp]:
        """The reduced ranges of sequential loops over outputs, which carry a prefix scan."""
        ordered = prefix_scan.ordered_loops(self.ast)
        return [r for r in self.reduced_ranges if r in ordered]

    def fills_within(self, r: UOp) -> bool:
        """True if the contents of a local buffer depend on the range `r`: it is refilled in each iteration."""
        return r in self._facts.filled

    def kernel(self) -> UOp:
        """The kernel, with the applied optimizations in its Sink."""
        info = self.ast.arg if isinstance(self.ast.arg, KernelInfo) else KernelInfo()
        return UOp.new(Op.Sink, self.ast.src, replace(info, opts=tuple(self.applied)))

    def apply(self, opt: Opt) -> None:
        """Apply `opt`, or raise OptError and change nothing."""
        before = self.ast
        try:
            _STEPS[opt.op](self, opt)
        except OptError as illegal:
            self.ast = before
            raise OptError(f"{opt}: {illegal.message}", expected=illegal.expected, hint=illegal.hint) from None
        self.applied.append(opt)

    # One method for each op: it checks the preconditions before it changes the kernel.

    def _upcast(self, opt: Opt) -> None:
        r = self._range_of(opt, {*_PARALLEL, AxisType.Local}, "an output axis")
        self._vectorize(opt, r, AxisType.Upcast)

    def _unroll(self, opt: Opt) -> None:
        r = self._range(opt, self.reduced_ranges)
        if r.arg[1] is not AxisType.Reduce:
            raise OptError(
                f"axis {opt.axis} is of kind {r.arg[1].name}, which threads divide", expected="an axis of kind Reduce"
            )
        if r in self.ordered_ranges:
            amount = self._amount(opt, r)
            if amount > MAX_LANES or not prefix_scan.folds(self.ast, r) or any(n.op is Op.Contract for n in self.nodes):
                raise OptError(
                    f"sequential axis {opt.axis} has no prefix scan, is in blocks already, or has too many lanes",
                    expected=f"a prefix scan, not yet in blocks, and at most {MAX_LANES} lanes",
                )
            self.ast = flatten_ranges(prefix_scan.in_blocks(self.ast, r, amount))
            return
        self._vectorize(opt, r, AxisType.Unroll)

    def _vectorize(self, opt: Opt, r: UOp, axis: AxisType) -> None:
        amount = self._amount(opt, r, may_cut=not self.target.has_local)
        if self.fills_within(r):
            raise OptError(
                f"each iteration of axis {opt.axis} fills a local buffer again",
                expected="an axis on which no local buffer depends",
            )
        lanes = self.lanes(r) * amount
        if lanes > MAX_LANES:
            raise OptError(
                f"the kernel would have vectors of {lanes} lanes", expected=f"at most {MAX_LANES} lanes over all axes"
            )
        if any(r in s.src[1].ranges and r not in s.src[0].ranges for s in self._local_stores()):
            raise OptError(
                f"each iteration of axis {opt.axis} makes a local copy", hint=f"apply {opt.op.name} before PACK"
            )
        if rest := self._length(opt, r) % amount:
            r = self.cut(r, self._length(opt, r) - rest)
        self.split(r, amount, axis)

    def _local_stores(self) -> list[UOp]:
        """The stores that fill local buffers."""
        stores = [n for n in self.nodes if n.op is Op.Store and n.src[0].op is Op.Index]
        return [s for s in stores if s.src[0].src[0].op is Op.DefineLocal]

    def _local(self, opt: Opt) -> None:
        self._need_blocks()
        r = self._range_of(opt, _PARALLEL, "an axis of kind Global")
        if any(x.arg[1] is AxisType.GroupReduce for x in self.ranges):
            raise OptError(
                "the shared buffer of GROUP has no room for another axis of threads", hint="apply LOCAL before GROUP"
            )
        if self.fills_within(r):
            raise OptError(
                f"each iteration of axis {opt.axis} fills the local buffer of the block's threads again",
                expected="an axis on which no local buffer depends",
            )
        amount = self._amount(opt, r)
        self._check_threads(opt, amount)
        self.split(r, amount, AxisType.Local)

    def _check_threads(self, opt: Opt, amount: int) -> None:
        """OptError if `amount` times the threads of a block exceed the target's limit."""
        block = amount
        for other in self.ranges:
            if other.arg[1] in (AxisType.Local, AxisType.GroupReduce):
                block *= const_end(other) or 1
        if block > self.target.block_threads:
            raise OptError(
                f"the kernel would have {block} threads in a block",
                expected=f"at most {self.target.block_threads} on {self.target.name}",
            )

    def _group(self, opt: Opt) -> None:
        self._need_blocks()
        r = self._range(opt, self.reduced_ranges)
        if r.arg[1] is not AxisType.Reduce or any(x.arg[1] is AxisType.GroupReduce for x in self.ranges):
            raise OptError("threads divide a reduction already", expected="GROUP or GROUPTOP at most once")
        amount = self._amount(opt, r)
        self._check_threads(opt, amount)
        self.ast = groups.group(self.ast, r, amount, opt.op is OptOp.GROUPTOP, self.target)

    def _pad(self, opt: Opt) -> None:
        r = self._range_of(opt, {*_PARALLEL, AxisType.Reduce}, "an output or a reduced axis")
        end = self._length(opt, r)
        if r in self.ordered_ranges:
            raise OptError(
                f"axis {opt.axis} carries a prefix scan from iteration to iteration",
                expected="an axis with independent iterations",
            )
        if opt.arg < 2 or end % opt.arg == 0:
            raise OptError(
                f"axis {opt.axis} has {end} iterations, and {opt.arg} pads none",
                expected=f"2 or more, and no divisor of {end}",
            )
        if opt.arg > 4 * end:
            raise OptError(
                f"more than three quarters of axis {opt.axis} would be padding", expected=f"at most {4 * end}"
            )
        self.ast = padding.pad(self.ast, r, -(-end // opt.arg) * opt.arg)

    def _thread(self, opt: Opt) -> None:
        """Divide the iterations of an output loop among CPU threads: all of them, or `arg` contiguous parts."""
        if self.target.threads <= 1:
            raise OptError(
                f"device {self.target.name} runs a kernel on one thread",
                expected="a CPU with threads",
                hint="set MOROK_THREADS above 1",
            )
        r = self._range_of(opt, _PARALLEL, "an output axis")
        thread_loops.check(self.ast, r)
        if opt.arg == 0:  # also for a loop of a length known only at run time
            self._replace(r, with_axis(r, AxisType.Thread))
            return
        amount = self._amount(opt, r)
        if amount > self.target.threads:
            raise OptError(
                f"{amount} threads", expected=f"at most {self.target.threads}", hint="set MOROK_THREADS higher"
            )
        outer = new_range(amount, next_range_id(self.ast), AxisType.Thread, r)
        step = self._length(opt, r) // amount
        self._replace(r, outer if step == 1 else outer * step + new_range(step, r.arg[0], r.arg[1], r))

    def _tensor_cores(self, opt: Opt) -> None:
        raise OptError(
            f"Morok has no matrix instructions for device {self.target.name}", hint="apply UPCAST to two axes"
        )

    def _swap(self, opt: Opt) -> None:
        a = self._range(opt, self.ranges)
        if not 0 <= opt.arg < len(self.ranges):
            raise OptError(f"there is no axis {opt.arg}", expected=f"a number below {len(self.ranges)}")
        b = self.ranges[opt.arg]
        if a is b or a.arg[1] is not b.arg[1] or a.arg[1] not in _PARALLEL:
            raise OptError(
                f"the axes are of kinds {a.arg[1].name} and {b.arg[1].name}",
                expected="two different output axes of one kind",
            )
        # among ranges of one axis type the id is the nesting order
        self.ast = substituted(self.ast, {a: with_id(a, b.arg[0]), b: with_id(b, a.arg[0])})

    def _no_locals(self, opt: Opt) -> None:
        if any(r.arg[1] in (AxisType.Local, AxisType.GroupReduce) for r in self.ranges):
            raise OptError(
                "LOCAL or GROUP has made blocks of threads already", hint="apply NOLOCALS first, or remove it"
            )
        self.use_locals = False

    def _pack(self, opt: Opt) -> None:
        self._need_cpu("all threads of a block would fill one copy")
        reads = [] if opt.axis is None else packing.reads_of(self.ast, opt.axis)
        if not reads:
            raise OptError(f"the kernel does not read buffer {opt.axis}", expected="the slot of an input")
        if packing.is_written(self.ast, reads[0].src[0].arg):
            raise OptError(
                f"buffer {opt.axis} is written by the kernel", expected="the slot of a buffer that is only read"
            )
        if not all(map(packing.is_plain, reads)):
            raise OptError(
                f"buffer {opt.axis} is read under a gate, at an index from memory, or in blocks of a sequential loop",
                expected="reads without gates, at indices computed from loops",
            )
        loops = self.output_ranges
        if not 0 <= opt.arg <= len(loops):
            raise OptError(
                f"the kernel has no {opt.arg} output loops to put around the copy",
                expected=f"a number in 0..={len(loops)}",
            )
        outer = loops[: opt.arg]
        for read in reads:
            size = packing.copied_bytes(read, outer)
            if not packing.inner_ranges(read, outer):
                raise OptError(
                    f"the copy of buffer {opt.axis} would hold one element only",
                    hint=f"use fewer loops around it than {opt.arg}",
                )
            if not 0 < size <= packing.MAX_BYTES:
                raise OptError(
                    f"the copy would have {size or 'an unknown number of'} bytes",
                    expected=f"at most {packing.MAX_BYTES} bytes",
                )
        self.ast = packing.pack(self.ast, reads[0].src[0].arg, outer, self.target)

    def _strip(self, opt: Opt) -> None:
        self._need_cpu("all threads of a block would share one strip")
        r = self._range_of(opt, _PARALLEL, "an output axis")
        amount = self._amount(opt, r)
        fold = strips.the_fold(self.ast, r)
        if amount * fold.dtype.itemsize > strips.MAX_BYTES:
            raise OptError(
                f"the strip would have {amount * fold.dtype.itemsize} bytes",
                expected=f"at most {strips.MAX_BYTES} bytes",
            )
        if amount < (const_end(r) or 0):
            r = self.split(r, amount, r.arg[1])
            fold = strips.the_fold(self.ast, r)
        self.ast = strips.strip(self.ast, fold, r, self.target)

    def _block(self, opt: Opt) -> None:
        self._need_cpu("threads run in no fixed order, so blocks are of no use")
        r = self._range_of(opt, _PARALLEL, "an output axis")
        if self.fills_within(r):
            raise OptError(
                f"each iteration of axis {opt.axis} fills a local buffer again", hint="apply BLOCK before PACK"
            )
        amount = self._amount(opt, r)
        if amount == const_end(r):
            raise OptError(f"the block would be the whole axis {opt.axis}", expected=f"a divisor of {amount} below it")
        self.split(r, amount, r.arg[1])

    def _lanes(self, opt: Opt) -> None:
        """Check LANES: it changes nothing here, but the vectors of later stages, by `vectors`."""
        most = self.target.vector_bytes // 4
        if most <= 2:
            raise OptError(
                f"device {self.target.name} has no vectors of more than two 32-bit lanes",
                expected="a CPU with wider vectors",
            )
        if not 2 <= opt.arg < most:
            raise OptError(f"there are no narrower vectors of {opt.arg} lanes", expected=f"a number in 2..{most}")
        if any(o.op is OptOp.LANES for o in self.applied):
            raise OptError("LANES is applied already", expected="LANES at most once")

    # Checks that several of them make.

    def _need_blocks(self) -> None:
        if not self.target.has_local:
            raise OptError(f"device {self.target.name} has no blocks of threads", expected="a GPU")
        if not self.use_locals:
            raise OptError("NOLOCALS excludes blocks of threads", hint="remove NOLOCALS")

    def _need_cpu(self, why: str) -> None:
        if self.target.has_local:
            raise OptError(f"on device {self.target.name} {why}", expected="a CPU")

    def _range_of(self, opt: Opt, kinds: Collection[AxisType], expected: str) -> UOp:
        """The range of an optimization, of one of these kinds, in words `expected`."""
        r = self._range(opt, self.ranges)
        if r.arg[1] not in kinds:
            raise OptError(f"axis {opt.axis} is of kind {r.arg[1].name}", expected=expected)
        return r

    def _length(self, opt: Opt, r: UOp) -> int:
        end = const_end(r)
        if end is None:
            raise OptError(f"the length of axis {opt.axis} is not constant", expected="an axis of constant length")
        return end

    def _range(self, opt: Opt, among: list[UOp]) -> UOp:
        if opt.axis is None or not 0 <= opt.axis < len(among):
            raise OptError(f"there is no axis {opt.axis}", expected=f"a number below {len(among)}")
        return among[opt.axis]

    def _amount(self, opt: Opt, r: UOp, may_cut: bool = False) -> int:
        end = self._length(opt, r)
        amount = opt.arg or end
        if amount < 2 or amount > end:
            raise OptError(
                f"axis {opt.axis} has {end} iterations, so {amount} cannot be split off",
                expected=f"a number in 2..={end}",
            )
        if end % amount and not may_cut:
            raise OptError(
                f"{amount} does not divide the length {end} of axis {opt.axis}",
                expected=f"a divisor of {end}",
                hint="apply PADTO first",
            )
        return amount

    def split(self, r: UOp, amount: int, axis: AxisType) -> UOp:
        """The new inner range, of `amount` iterations and type `axis`, after a split of `r` into an outer range and this one."""
        end = const_end(r)
        assert end is not None
        assert end % amount == 0
        inner = new_range(amount, next_range_id(self.ast), axis, r)
        # the outer part keeps the id, and so the position in the nest
        self._replace(r, inner if amount == end else new_range(end // amount, r.arg[0], r.arg[1], r) * amount + inner)
        return inner

    def _replace(self, r: UOp, value: UOp) -> None:
        self.ast = flatten_ranges(substituted(self.ast, {r: value}))

    def cut(self, r: UOp, at: int) -> UOp:
        """The range over [0, at), after a cut of the loop over `r` into this range and one over the rest.

        The two loops store their outputs inside the same outer loops; a reduction becomes the sum (or product, maximum ..) of the
        two reductions, which is the same fold in another order.
        """
        end = const_end(r)
        assert end is not None
        assert 0 < at < end
        id = next_range_id(self.ast)
        first = new_range(at, r.arg[0], r.arg[1], r)
        rest = new_range(end - at, id, r.arg[1], r)
        done: dict[UOp, UOp] = {}
        for n in self.nodes:
            closed = CLOSES.get(n.op)
            now = done[n] = over(n, done)
            if closed is None or r not in n.src[closed:] or n.op not in (Op.End, Op.Reduce):
                continue
            if n.op is Op.Reduce:
                f = REDUCE_WITH_BOOL.get(n.arg, n.arg) if n.dtype.is_bool else n.arg
                done[n] = UOp.new(f, (substitute((now,), {r: first})[0], self._renamed(now, r, rest + at, ())))
                continue
            order = sorted([x for x in n.src[1:] if x.op is Op.Range], key=nesting)
            lanes = [x for x in n.src[1:] if x.op is not Op.Range]  # lanes of a sequential loop in blocks: innermost
            outer, inner = order[: order.index(r)], order[order.index(r) + 1 :] + lanes
            body = now.src[0]
            a = substitute((body,), {r: first})[0].end(*inner, first)
            b = self._renamed(body.end(*inner), r, rest + at, inner).end(rest)
            done[n] = UOp.new(Op.Group, (a, b)).end(*outer)
        self.ast = flatten_ranges(done[self.ast])
        return first

    def _renamed(self, root: UOp, r: UOp, value: UOp, inner: list[UOp] | tuple[UOp, ...]) -> UOp:
        """A copy of `root` with `value` for `r`, and new ranges for `inner` and for all ranges closed inside nodes that depend on
        these. Nodes independent of them are shared by both copies.
        """
        nodes = root.toposort()
        changing = {r, *inner}
        before = 0
        while before < len(changing):
            before = len(changing)
            for n in nodes:
                if n not in changing and not changing.isdisjoint(n.src):
                    changing.add(n)
                    changing.update(x for x in n.src[CLOSES.get(n.op, len(n.src)) :] if x not in root.ranges)
        id = value.src[0].arg[0] + 1
        done = {r: value}
        for n in nodes:
            if n in done or n not in changing:
                continue
            src = tuple([done.get(s, s) for s in n.src])
            if n.op is Op.Range and n not in root.ranges:
                done[n] = UOp.new(Op.Range, src, (id, *n.arg[1:]))  # src: a length may depend on a copied range
                id += 1
            else:
                done[n] = n.replace(src)
        return flatten_ranges(done.get(root, root))


_STEPS: Final[dict[OptOp, Callable[[Scheduler, Opt], None]]] = {
    OptOp.UPCAST: Scheduler._upcast,
    OptOp.UNROLL: Scheduler._unroll,
    OptOp.LOCAL: Scheduler._local,
    OptOp.SWAP: Scheduler._swap,
    OptOp.NOLOCALS: Scheduler._no_locals,
    OptOp.PACK: Scheduler._pack,
    OptOp.STRIP: Scheduler._strip,
    OptOp.BLOCK: Scheduler._block,
    OptOp.LANES: Scheduler._lanes,
    OptOp.GROUP: Scheduler._group,
    OptOp.GROUPTOP: Scheduler._group,
    OptOp.PADTO: Scheduler._pad,
    OptOp.THREAD: Scheduler._thread,
    OptOp.TC: Scheduler._tensor_cores,
}
