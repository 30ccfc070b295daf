"""Rewriting to a fixpoint: every node is finished after its operands.

A visit finishes one node. It is a generator, and reads like the recursive function that it stands for: where that one would call
itself for an operand, a visit yields the operand's visit, and goes on once that has ended. `rewrite_fixpoint` runs visits from a
stack of its own, so that memory alone bounds the depth of a graph.

Written against a dialect's accessors: `morok.rewrite.specialize` puts its own in their place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import ref

from morok.dialect import Node
from morok.interrupts import check, waiting
from morok.rewrite.matcher import Match
from morok.rewrite.pending import PENDING
from morok.rewrite.state import BEFORE, REBUILT, WHOLE, Held, RewriteState, Trail, with_held

if TYPE_CHECKING:
    from morok.rewrite.specialize import nests, operands, opkey, recall

Visit = Iterator["Visit"]  # it waits for what it yields
Hit = tuple[Node, int]  # what a rule makes of a node, and the rule's number


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
    """The visit of a node on which rules fire: afterwards its final form is in `state.done`."""
    done = state.done
    lookup = done.get
    key = state.memo_key
    before = state.before is not None
    trail: Trail = []
    state.trails.append(trail)
    form = node  # its present form
    unseen = before  # by the rules that see original nodes
    of_chain = False  # whether a rule for whole chains made this form
    while True:
        original, match, held, whole = state.plan[opkey(form)]
        hit = match_original(state, form, original) if unseen and original is not None else None
        if hit is None:
            kids = operands(form)
            if whole is not None and not of_chain and opens_chain(state, form, kids):
                hit = yield from match_chain(state, form, whole, match)
                held = None
        if hit is None:
            if held is None or len(kids) <= held[2]:
                changed = False
                for kid in kids:  # `finish_each` and `final_form`, without their calls
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
                            raise state.circle(kid)
                        changed = True
                fresh = tuple(map(lookup, kids)) if changed else None
            else:
                fresh = yield from finish_held(state, kids, held)
            if fresh is not None:
                form, known = rebuilt(state, form, fresh)
                if not known and before:
                    unseen = True
                    continue
                match = None if known else state.plan[opkey(form)][1]  # a constructor may have chosen another op
            hit = None if match is None else match(form, state.context)
        if hit is None:
            done[form] = form
            if key is not None:
                recall(form)[key] = True
            break
        form, known = fire(state, form, *hit)
        if known:
            break
        unseen = before
        of_chain = hit[1] >= WHOLE
    if trail:
        remember(state, node, form)
    state.trails.pop()


def visit_held(state: RewriteState, node: Node) -> Visit:
    """The visit of a node on which no rule fires: afterwards `state.held` has it over the final forms of its operands."""
    trail: Trail = []
    state.trails.append(trail)
    kids = operands(node)
    held = state.plan[opkey(node)][2]
    if held is not None and len(kids) > held[2]:
        fresh = yield from finish_held(state, kids, held)
    else:
        yield from finish_each(state, kids)
        fresh = tuple(map(state.done.get, kids))
    form = node
    if fresh is not None and any(new is not kid for new, kid in zip(fresh, kids, strict=True)):
        trail += (node, REBUILT)
        form = state.rebuild(node, fresh)
        known = state.held.get(form)
        if known is not None:
            form = known
    state.held[form] = state.held[node] = form
    state.trails.pop()


def finish_each(state: RewriteState, nodes: Iterable[Node]) -> Visit:
    """The visits of nodes on which rules fire, one after the other."""
    for node in nodes:
        final = final_form(state, node)
        if final is None:
            yield visit(state, node)
        elif final is PENDING:
            raise state.circle(node)


def finish_held(state: RewriteState, kids: Sequence[Node], held: Held) -> Generator[Visit, None, tuple[Node, ...] | None]:
    """The visits of operands some of which are held. Returns their final forms; None if these are the operands themselves."""
    for kid, hold in with_held(kids, held):
        if hold:
            if state.held.get(kid) is None:
                yield visit_held(state, kid)
        elif final_form(state, kid) is None:
            yield visit(state, kid)
    in_place = (state.done.get, state.held.get)
    fresh = tuple([in_place[hold](kid) for kid, hold in with_held(kids, held)])
    changed = False
    for kid, final in zip(kids, fresh, strict=True):
        if final is PENDING:
            raise state.circle(kid)
        if final is not kid:
            changed = True
    return fresh if changed else None


def opens_chain(state: RewriteState, node: Node, kids: Sequence[Node]) -> bool:
    """True for the outermost node of an AC chain the inner nodes of which are not finished."""
    op = opkey(node)
    lookup = state.done.get
    first, last = kids[0], kids[-1]
    return ((opkey(first) is op and lookup(first) is None) or (opkey(last) is op and lookup(last) is None)) and nests(node)


def match_chain(state: RewriteState, node: Node, whole: Match, match: Match | None) -> Generator[Visit, None, Hit | None]:
    """The visits of the terms of an AC chain. Returns what a rule for whole chains makes of it; None if none applies."""
    terms = state.program.flatten(state, node)
    yield from finish_each(state, reversed(terms))
    if len(terms) == len(operands(node)):
        return None
    hit = state.program.gather(state, node, terms, not state.trails[-1], whole, match)
    return None if hit is None else (hit[0], hit[1] + WHOLE)


def match_original(state: RewriteState, node: Node, match: Match) -> Hit | None:
    """The result of a rule that sees original nodes at one; None if none applies."""
    hit = match(node, state.context)
    return None if hit is None else (hit[0], hit[1] + BEFORE)


def rebuilt(state: RewriteState, node: Node, fresh: tuple[Node, ...]) -> tuple[Node, bool]:
    """A node over the final forms of its operands, and False; its final form and True, if there is one already."""
    trail = state.trails[-1]
    trail += (node, REBUILT)
    form = state.rebuild(node, fresh)
    known = final_form(state, form)
    if known is PENDING:
        raise state.circle(form)
    return (form, False) if known is None else (known, True)


def fire(state: RewriteState, node: Node, made: Node, number: int) -> tuple[Node, bool]:
    """A rule's result for a node, and False; its final form and True, if there is one already. The firing is recorded.

    RewriteLimitError where there are too many, or where the rules form a cycle.
    """
    state.fired += 1
    if waiting:
        check()
    trail = state.trails[-1]
    trail += (node, number)
    if state.trace is not None:
        state.record(number, node, made)
    if state.fired >= state.allowed or len(trail) > state.longest:
        state.limit(trail)
    known = final_form(state, made)
    if known is PENDING:
        raise state.circle(made)
    if known is not None:
        return known, True
    state.done[node] = PENDING
    return made, False


def remember(state: RewriteState, node: Node, final: Node) -> None:
    """Note the final form of a node and of all forms that it had."""
    done = state.done
    done[node] = final
    for form in state.trails[-1][2::2]:
        done[form] = final
    key = state.memo_key
    if key is not None:
        recall(node)[key] = ref(final)


def final_form(state: RewriteState, node: Node) -> Node | None:
    """The final form of a node, if there is one: of this call, remembered from another, or itself if no rule names its op and it
    has no operands. PENDING while its replacement is unfinished.
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
