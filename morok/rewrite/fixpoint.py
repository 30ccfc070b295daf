"""The engine's loop: every node is finished after its operands, by explicit stacks."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from morok.dialect import Node
from morok.interrupts import check, waiting
from morok.rewrite.pending import PENDING
from morok.rewrite.state import BEFORE, REBUILT, WHOLE, RewriteState, Trail, with_holds

if TYPE_CHECKING:
    from morok.rewrite.specialize import nests, operands, opkey, recall


def rewrite_fixpoint(state: RewriteState, root: Node, rebuild: Any) -> Node:
    """The final form of `root`. Iterative: the depth of a graph is bounded by memory alone.

    The operands of a node are gone through one after the other, by an iterator. At one that is not finished the node's frame is
    left on the stack, to be taken up again behind that operand. In a frame are the node as it was given, its present form, its
    trail, whether rules fire on it, the iterator, whether an operand before it has changed, the terms of its nest (if the
    iterator is over them), its operands, which of them are held, its match function.

    rebuild  (node, operands): the node over other operands
    """
    done = state.done
    lookup = done.get
    held = state.held
    program = state.program
    plan = program.plan
    inert_ops = program.inert_ops
    before = program.before
    context = state.context
    key = state.memo_key
    ref = weakref.ref
    tracing = state.trace is not None
    longest = 2 * state.limits.per_node
    fired = state.fired
    allowed = state.limits.total
    stack = state.stack
    state.root = node = at = root
    trail: Trail = ()
    fires = True
    original = before is not None
    gathered = False
    hit: Any = None
    pending: Any
    while True:  # `at` has not been looked at
        op = opkey(at)
        kids = operands(at)
        changed = False
        nest = None
        match, holds, whole = plan[op]
        if original:  # stage 0: the node as it was given
            original = False
            assert before is not None
            first = before.table.get(op, before.default)
            if first is not None:
                hit = first(at, context)
        if hit is not None:
            hit = (hit[0], hit[1] + BEFORE)
            holds = None
            pending = ()
        elif (
            whole is not None
            and not gathered
            and fires
            and ((opkey(kids[0]) is op and lookup(kids[0]) is None) or (opkey(kids[-1]) is op and lookup(kids[-1]) is None))
            and nests(at)
        ):  # its terms are finished first, whatever their depth
            nest = program.flatten(state, at)
            holds = None
            pending = reversed(nest)
        elif holds is None or len(kids) <= holds[2]:
            holds = None
            pending = iter(kids)
        else:
            pending = with_holds(kids, holds)
        while True:  # what is pending of the operands, and behind them `at` itself
            if holds is not None:
                kid, below = state.waiting(pending)
                if kid is not None:
                    stack.append((node, at, trail, fires, pending, changed, None, kids, holds, match))
                    node = at = kid
                    trail = ()
                    fires = below
                    original = below and before is not None
                    gathered = False
                    break
            for kid in pending:
                new = lookup(kid)
                if new is kid:
                    continue
                if new is None:
                    if not operands(kid) and opkey(kid) in inert_ops:
                        done[kid] = kid
                        continue
                    if key is not None and (facts := recall(kid)) and (kept := facts.get(key)) is not None:
                        new = kid if kept is True else kept()
                    if new is None:  # come back when it is finished
                        stack.append((node, at, trail, fires, pending, changed, nest, kids, None, match))
                        node = at = kid
                        trail = ()
                        fires = True
                        original = before is not None
                        gathered = False
                        break
                    done[kid] = done[new] = new
                    if new is kid:
                        continue
                if new is PENDING:
                    raise state.circle(kid, trail)
                changed = True
            else:  # all are finished
                if hit is not None:
                    pass
                elif nest is not None:
                    if len(nest) > len(kids):
                        hit = program.gather(state, at, nest, not trail, plan[opkey(at)][2], match)
                    if hit is None:
                        nest = None
                        changed = False
                        pending = iter(kids)
                        continue
                    hit = (hit[0], hit[1] + WHOLE)
                else:
                    if holds is not None:
                        fresh = state.finals_of(kids, holds)
                        for kid, new in zip(kids, fresh, strict=True):
                            if new is PENDING:
                                raise state.circle(kid, trail)
                            if new is not kid:
                                changed = True
                    if changed:
                        if holds is None:
                            if len(kids) == 2:
                                a, b = kids
                                fresh = (done[a], done[b])
                            else:
                                fresh = tuple(map(lookup, kids))
                        trail += (at, REBUILT)
                        op = opkey(at)
                        at = rebuild(at, fresh)
                        if not fires:
                            known = held.get(at)
                        else:
                            known = lookup(at)
                            if known is None and key is not None and (facts := recall(at)):
                                kept = facts.get(key)
                                known = at if kept is True else None if kept is None else kept()
                                if known is not None:
                                    done[at] = done[known] = known
                        if known is not None:
                            if known is PENDING:
                                raise state.circle(at, trail)
                            at = known
                            match = None
                        elif before is not None and fires:
                            original = True
                            break
                        elif opkey(at) is not op:  # a constructor chose another op
                            match = plan[opkey(at)][0]
                    if match is not None and fires:  # stage 1: the node over finished operands
                        hit = match(at, context)
                if hit is None:  # `at` is final
                    if fires:
                        done[at] = at
                        if key is not None:
                            recall(at)[key] = True
                    else:
                        held[at] = at
                        for form in trail[::2]:
                            held[form] = at
                else:
                    new, number = hit
                    hit = None
                    fired += 1
                    if waiting:
                        check()
                    trail += (at, number)
                    if tracing:
                        state.record(number, at, new)
                    if fired >= allowed:
                        state.fired = fired
                        allowed = state.allow(trail)
                    if len(trail) > longest:
                        raise state.too_many(trail, f"one node was rewritten {len(trail) // 2:,} times")
                    known = lookup(new)
                    if known is None:
                        if not operands(new) and opkey(new) in inert_ops:
                            known = new
                        elif key is not None and (facts := recall(new)) and (kept := facts.get(key)) is not None:
                            known = new if kept is True else kept()
                        if known is None:
                            done[at] = PENDING
                            at = new
                            original = before is not None
                            gathered = number >= WHOLE
                            break
                        done[new] = done[known] = known
                    elif known is PENDING:
                        raise state.circle(new, trail)
                    at = known
                if trail and fires:
                    done[node] = at
                    if len(trail) > 2:
                        for form in trail[2::2]:
                            done[form] = at
                    if key is not None:
                        recall(node)[key] = ref(at)
                if not stack:
                    state.fired = fired
                    return at
                moved = at is not node
                node, at, trail, fires, pending, changed, nest, kids, holds, match = stack.pop()
                if moved:
                    changed = True
                continue
            break
