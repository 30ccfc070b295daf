"""AC chains: nodes of one associative and commutative op inside each other, such as a sum of sums. The rules of
`morok.rewrite.tiers.WHOLE` match a chain as a whole.

The terms of a chain are the operands of its nodes that are not nodes of the chain. They are finished first, then the rules match
the chain. Its inner nodes are never finished: the result of the rules takes their place. So the terms of a long sum are brought
into canonical order once, and not at each of its additions.

Written against a dialect's accessors: `morok.rewrite.specialize` puts its own in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from morok.dialect import Node
from morok.rewrite.matcher import Match

if TYPE_CHECKING:
    from morok.rewrite.specialize import operands, opkey, recall
    from morok.rewrite.state import RewriteState


def flatten(state: RewriteState, root: Node) -> list[Node]:
    """The terms of a chain, the last one first, finished or not. An inner node of two chains, or one that is twice in a chain,
    counts as inner only the first time; after that it is a term.
    """
    lookup, in_chain, key = state.done.get, state.in_chain, state.memo_key
    op = opkey(root)
    terms = []
    stack = [*operands(root)]
    while stack:
        term = stack.pop()
        if (
            opkey(term) is op
            and term not in in_chain
            and lookup(term) is None
            and (key is None or (kept := recall(term).get(key)) is None or (kept is not True and kept() is None))
        ):
            in_chain[term] = True
            stack += operands(term)
        else:
            terms.append(term)
    return terms


def gather(
    state: RewriteState, root: Node, terms: list[Node], written: bool, whole: Match, match: Match | None
) -> tuple[Node, int] | None:
    """The result of a rule for whole chains, and the rule's number. The terms are finished; the rule sees an ephemeral view of
    the chain that leans to the left.

    written  True if no rule has changed the chain yet. A chain that a rule made is in canonical order most often: its nodes are
             matched one by one first
    """
    done, in_chain, key, context = state.done, state.in_chain, state.memo_key, state.context
    lookup = done.get
    inert_ops = state.program.inert_ops
    sketch = state.program.sketch
    op = opkey(root)
    new = root
    hit = None
    while True:
        if written:
            made = lookup(terms[-1])
            for term in terms[-2::-1]:
                made = sketch(root, (made, lookup(term)))
            hit = whole(made, context)
            if hit is None:
                return None
            new = hit[0]
        # A chain that leans to the left is finished from the inside out, as long as no rule fires.
        chain = []
        node = new
        while opkey(node) is op and lookup(node) is None:
            chain.append(node)
            node = operands(node)[0]
        leans = written or len(chain) + 1 == len(terms)
        while leans and len(chain) > 1:
            node = chain[-1]
            for s in operands(node):
                if lookup(s) is not s:
                    if opkey(s) in inert_ops and not operands(s):
                        done[s] = s
                    else:
                        break
            else:
                if match is None or match(node, context) is None:
                    done[node] = node
                    if key is not None:
                        recall(node)[key] = True
                    chain.pop()
                    continue
            break
        if written or (leans and len(chain) == 1):
            break
        written = True
    for node in chain[1:]:  # these are finished one by one
        in_chain[node] = True
    return None if new is root else hit
