"""Rewriting to a fixpoint: every node is finished after its operands.

A visit finishes one node. It is a generator that reads like a recursive function: instead of calling itself for an operand, it
yields the operand's visit and resumes when that visit has ended. `rewrite_fixpoint` keeps the suspended visits on an explicit
stack, so only memory limits the depth of a graph.

The code calls `opkey`, `operands`, `recall` and `nests`; `morok.rewrite.specialize` replaces them by the dialect's own accessors.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import ref

from morok.dialect import Node
from morok.interrupts import check, waiting
from morok.rewrite.matcher import Match
from morok.rewrite.pending import PENDING
from morok.rewrite.state import BEFORE, REBUILT, WHOLE, Frozen, RewriteState, Trail, with_frozen

if TYPE_CHECKING:
    from morok.rewrite.specialize import nests, operands, opkey, recall

Visit = Iterator["Visit"]  # yields the visits of operands, and resumes when they have ended
Hit = tuple[Node, int]  # the result of a rule, and the rule's number


def rewrite_fixpoint(state: RewriteState, root: Node) -> Node:
    """The final form of a node on which rules fire."""
    known = final_form(state, root)
    if known is not None:
        return known
    state.root = root
    suspended: list[Visit] = []
    running = visit(state, root)
    while True:
        for operand in running:
            suspended.append(running)
            running = operand
            break
        else:
            if not suspended:
                return state.done[root]
            running = suspended.pop()


def visit(state: RewriteState, node: Node) -> Visit:
    """The visit of a node in a position where rules fire. It puts the final form into `state.done`."""
    done = state.done
    lookup = done.get
    key = state.memo_key
    before = state.before is not None
    trail: Trail = []
    state.trails.append(trail)
    form = node  # the present form of the node
    unseen = before  # True if the rules for original nodes have not seen this form
    of_chain = False  # True if a rule for whole chains made this form
    while True:
        original, match, frozen, whole = state.plan[opkey(form)]
        hit = match_original(state, form, original) if unseen and original is not None else None
        if hit is None:
            kids = operands(form)
            if whole is not None and not of_chain and opens_chain(state, form, kids):
                hit = yield from match_chain(state, form, whole, match)
                frozen = None
        if hit is None:
            if frozen is None or len(kids) <= frozen[2]:
                changed = False
                for kid in kids:  # `finish_each` and `final_form` inlined, for speed
                    final = lookup(kid)
                    if final is None:
                        if not operands(kid) and opkey(kid) in state.inert_ops:
                            done[kid] = kid
                            continue
                        kept = None if key is None else recall(kid).get(key)
                        final = kid if kept is True else None if kept is None else kept()
                        if final is None:
                            yield visit(state, kid)
                            final = lookup(kid)
                        else:
                            done[kid] = done[final] = final
                    if final is not kid:
                        if final is PENDING:
                            raise state.cycle_error(kid)
                        changed = True
                fresh = tuple(map(lookup, kids)) if changed else None
            else:
                fresh = yield from finish_frozen(state, kids, frozen)
            if fresh is not None:
                trail += (form, REBUILT)
                form = state.rebuild(form, fresh)
                known = final_form(state, form)
                if known is PENDING:
                    raise state.cycle_error(form)
                if known is not None:
                    form = known
                    match = None
                elif before:
                    unseen = True
                    continue
                else:
                    match = state.plan[opkey(form)][1]  # `rebuild` may return a node of another op
            hit = None if match is None else match(form, state.context)
        if hit is None:
            done[form] = form
            if key is not None:
                recall(form)[key] = True
            break
        made = hit[0]
        trail += (form, hit[1])
        known = fire(state, trail, made)
        if known is not None:
            form = known
            break
        done[form] = PENDING
        form = made
        unseen = before
        of_chain = hit[1] >= WHOLE
    if trail:
        remember(state, trail, node, form)
    state.trails.pop()


def visit_frozen(state: RewriteState, node: Node) -> Visit:
    """The visit of a node in a position where no rule fires. It puts the node over finished operands into `state.frozen`."""
    trail: Trail = []
    state.trails.append(trail)
    kids = operands(node)
    frozen = state.plan[opkey(node)][2]
    if frozen is not None and len(kids) > frozen[2]:
        fresh = yield from finish_frozen(state, kids, frozen)
    else:
        yield from finish_each(state, kids)
        fresh = tuple(map(state.done.get, kids))
    form = node
    if fresh is not None and any(new is not kid for new, kid in zip(fresh, kids, strict=True)):
        trail += (node, REBUILT)
        form = state.rebuild(node, fresh)
        known = state.frozen.get(form)
        if known is not None:
            form = known
    state.frozen[form] = state.frozen[node] = form
    state.trails.pop()


def finish_each(state: RewriteState, nodes: Iterable[Node]) -> Visit:
    """The visits of nodes in positions where rules fire, one after the other."""
    for node in nodes:
        final = final_form(state, node)
        if final is None:
            yield visit(state, node)
        elif final is PENDING:
            raise state.cycle_error(node)


def finish_frozen(
    state: RewriteState, kids: Sequence[Node], frozen: Frozen
) -> Generator[Visit, None, tuple[Node, ...] | None]:
    """The visits of operands, some of them frozen. Returns their final forms; None if none of them has changed."""
    for kid, is_frozen in with_frozen(kids, frozen):
        if is_frozen:
            if state.frozen.get(kid) is None:
                yield visit_frozen(state, kid)
        elif final_form(state, kid) is None:
            yield visit(state, kid)
    lookups = (state.done.get, state.frozen.get)
    fresh = tuple([lookups[is_frozen](kid) for kid, is_frozen in with_frozen(kids, frozen)])
    changed = False
    for kid, final in zip(kids, fresh, strict=True):
        if final is PENDING:
            raise state.cycle_error(kid)
        if final is not kid:
            changed = True
    return fresh if changed else None


def opens_chain(state: RewriteState, node: Node, kids: Sequence[Node]) -> bool:
    """True for the outermost node of an AC chain with unfinished inner nodes."""
    op = opkey(node)
    lookup = state.done.get
    first, last = kids[0], kids[-1]
    return ((opkey(first) is op and lookup(first) is None) or (opkey(last) is op and lookup(last) is None)) and nests(
        node
    )


def match_chain(
    state: RewriteState, node: Node, whole: Match, match: Match | None
) -> Generator[Visit, None, Hit | None]:
    """The visits of the terms of an AC chain. Returns the result of a rule for whole chains; None if none applies."""
    terms = state.program.flatten(state, node)
    yield from finish_each(state, reversed(terms))
    if len(terms) == len(operands(node)):
        return None
    hit = state.program.gather(state, node, terms, not state.trails[-1], whole, match)
    return None if hit is None else (hit[0], hit[1] + WHOLE)


def match_original(state: RewriteState, node: Node, match: Match) -> Hit | None:
    """The result of a rule for original nodes at this node; None if none applies."""
    hit = match(node, state.context)
    return None if hit is None else (hit[0], hit[1] + BEFORE)


def fire(state: RewriteState, trail: Trail, made: Node) -> Node | None:
    """The final form of a rule's result if it is known already. The firing, the last step of the trail, is recorded.

    RewriteLimitError if too many rules have fired, or if the rules form a cycle.
    """
    state.fired += 1
    if waiting:
        check()
    if state.trace is not None:
        state.record(trail[-1], trail[-2], made)
    if state.fired >= state.allowed or len(trail) > state.longest:
        state.check_limits(trail)
    known = final_form(state, made)
    if known is PENDING:
        raise state.cycle_error(made)
    return known


def remember(state: RewriteState, trail: Trail, node: Node, final: Node) -> None:
    """Record the final form for a node and for all its earlier forms."""
    done = state.done
    done[node] = final
    for form in trail[2::2]:
        done[form] = final
    key = state.memo_key
    if key is not None:
        recall(node)[key] = ref(final)


def final_form(state: RewriteState, node: Node) -> Node | None:
    """The final form of a node; None if it is not finished; PENDING while its replacement is unfinished.

    It was found in this call, or is remembered from another. A node without operands whose op no rule matches is final itself.
    """
    done = state.done
    known = done.get(node)
    if known is None:
        if not operands(node) and opkey(node) in state.inert_ops:
            known = node
        elif (key := state.memo_key) is not None and (facts := recall(node)) and (kept := facts.get(key)) is not None:
            known = node if kept is True else kept()
        if known is not None:
            done[node] = done[known] = known
    return known
