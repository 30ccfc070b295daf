"""The order of kernels in programs that assign to buffers.

Each assignment gives its buffer a new version of its contents. Kernels that read version k run before assignment k + 1;
assignments to one buffer keep their order. If one kernel reads two versions of a buffer, the older one is copied first. A copy
also breaks cycles of assignments (`a, b = b, a`: each reads the version that the other overwrites).
"""

from __future__ import annotations

from collections.abc import Sequence

from morok.ir.graph import reached, toposort
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.places import passed
from morok.ir.uop import UOp
from morok.passes.rangeify import beside_memory, reads_memory, stored
from morok.passes.rangeify.state import State
from morok.passes.rebuilding import own_origins


class OverwrittenTooEarly(Exception):
    """The error of a kernel that reads `contents` (a Buffer, or the Bufferize of an Assign) during or after the assignment that
    overwrites them.
    """

    def __init__(self, contents: UOp) -> None:
        self.contents = contents


def in_order(sink: UOp) -> list[UOp]:
    """The Bufferize nodes of a rangeified graph in an order in which their kernels may run.

    Raises OverwrittenTooEarly if a copy is needed.
    """
    nodes = list(stored(sink))
    if not any(n.src[0].op is Op.Assign for n in nodes):
        return nodes
    reads = {n: _reads(n) for n in nodes}
    before: dict[UOp, set[UOp]] = {n: {r for r in reads[n] if r.op is Op.Bufferize} for n in nodes}
    readers: dict[UOp, list[UOp]] = {}
    for n in nodes:
        for r in reads[n]:
            readers.setdefault(r, []).append(n)
    contents: dict[UOp, UOp] = {}  # buffer -> the Bufferize that last assigned to it
    replaced: dict[UOp, UOp] = {}  # the Bufferize of an Assign -> the contents that it overwrites
    for n in nodes:
        if n.src[0].op is Op.Assign:
            target = assigned(n)
            now = replaced[n] = contents.get(target, target)
            before[n].update(r for r in readers.get(now, ()) if r is not n)
            if now is not target:
                before[n].add(now)
            contents[target] = n
    for n in nodes:
        _refuse_two_contents(reads[n], nodes)
    circle = _circle(nodes, before)
    for n, waits_for in zip(circle, [*circle[1:], *circle[:1]], strict=True):
        if n in replaced and replaced[n] in reads[waits_for] and waits_for not in reads[n]:
            raise OverwrittenTooEarly(replaced[n])
    assert not circle, "what nodes read, and the order of assignments to one buffer, has no circle by itself"
    return _sorted(nodes, before)


def _refuse_two_contents(reads: set[UOp], order: Sequence[UOp]) -> None:
    """OverwrittenTooEarly, with the oldest version, if a kernel reads several versions of one buffer."""
    read: dict[UOp, list[UOp]] = {}
    for r in reads:
        read.setdefault(assigned(r) if r.op is Op.Bufferize and r.src[0].op is Op.Assign else r, []).append(r)
    for buffer, contents in read.items():
        if len(contents) > 1:
            raise OverwrittenTooEarly(buffer if buffer in contents else min(contents, key=order.index))


def assigned(node: UOp) -> UOp:
    """The buffer that a Bufferize of an Assign writes to."""
    return passed(node.src[0].src[0].src[0])


def with_copy(roots: Sequence[UOp], state: State, contents: UOp) -> tuple[list[UOp], dict[UOp, UOp]]:
    """(new roots, new form of each node): readers of `contents` read a copy, assignments still write to the buffer itself.

    `state` is the result of rangeify for `roots`.
    """
    copied = {n for n in toposort(roots) if n is contents or state.bufferizes.get(state.forms.get(n, n)) is contents}
    now: dict[UOp, UOp] = {}  # as a target of assignments
    read: dict[UOp, UOp] = {}  # as a value

    def target(node: UOp) -> UOp:
        return node.replace((target(node.src[0]), *node.src[1:])) if node.op is Op.Reshape else now[node]

    with own_origins():
        for node in toposort(roots):
            maker.origin = node.origin
            src = tuple([target(s) if node.op is Op.Assign and k == 0 else read[s] for k, s in enumerate(node.src)])
            now[node] = read[node] = node if src == node.src else node.replace(src)
            if node in copied:
                read[node] = UOp.new(Op.Copy, (now[node], UOp.new(Op.Device, (), state.device)))
    return [now[r] for r in roots], now


def _reads(node: UOp) -> set[UOp]:
    """The buffers, and the Bufferizes of other kernels, that the kernel of a Bufferize reads, for its row buffers too."""
    value = node.src[0]
    roots = [value.src[0].src[1], value.src[1]] if value.op is Op.Assign else [value]
    return {u.src[0] for u in reached(roots, beside_memory) if reads_memory(u)}


def _sorted(nodes: Sequence[UOp], before: dict[UOp, set[UOp]]) -> list[UOp]:
    """`nodes` in a topological order of `before`, otherwise in their own order."""
    position = {n: i for i, n in enumerate(nodes)}
    out: list[UOp] = []
    done: set[UOp] = set()
    for node in nodes:
        stack = [node]
        while stack:
            n = stack[-1]
            waiting = (
                []
                if n in done
                else sorted((b for b in before[n] if b not in done), key=position.__getitem__, reverse=True)
            )
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if n not in done:
                done.add(n)
                out.append(n)
    return out


def _circle(nodes: Sequence[UOp], before: dict[UOp, set[UOp]]) -> list[UOp]:
    """A cycle of `before`: each node must run after the next, and the last after the first; [] if there is none."""
    waiting = {n: len(before[n]) for n in nodes}
    behind: dict[UOp, list[UOp]] = {n: [] for n in nodes}
    for n in nodes:
        for b in before[n]:
            behind[b].append(n)
    free = [n for n in nodes if not waiting[n]]
    while free:
        for n in behind[free.pop()]:
            waiting[n] -= 1
            if not waiting[n]:
                free.append(n)
    left = [n for n in nodes if waiting[n]]
    if not left:
        return []
    path: dict[UOp, int] = {}
    n = left[0]
    while n not in path:
        path[n] = len(path)
        n = next(b for b in nodes if b in before[n] and waiting[b])
    return list(path)[path[n] :]
