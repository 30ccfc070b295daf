"""AC chains: nested nodes of one associative and commutative op, such as a sum of sums. The rules of
`morok.rewrite.tiers.WHOLE` match a chain as a whole.

The terms of a chain are the operands of its nodes, without the nodes of the chain itself. The engine finishes the terms first and
matches the chain afterwards. It never finishes the inner nodes, because the result of the rules replaces them. So the terms of a
long sum are sorted once, not once for each of its additions.

The code calls `opkey`, `operands` and `recall`, which `morok.rewrite.specialize` replaces by the dialect's own accessors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from morok.dialect import Node
from morok.rewrite.matcher import Match

if TYPE_CHECKING:
    from morok.rewrite.specialize import operands, opkey, recall
    from morok.rewrite.state import RewriteState


def flatten(state: RewriteState, root: Node) -> list[Node]:
    """The terms of a chain, the last one first, finished or not. A node that belongs to two chains, or to one chain twice, is
    an inner node the first time and a term after that.
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
    """The result of a rule for whole chains, and the rule's number; None if no rule applies. The terms must be finished. The
    rule sees a temporary left-leaning chain over their final forms.

    written  True if no rule has changed the chain yet. A chain made by a rule is usually in canonical order already, so its
             nodes are first matched one by one
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
        # A left-leaning chain is finished from the inside out, until a rule fires.
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
    for node in chain[1:]:  # the remaining nodes are finished one by one
        in_chain[node] = True
    return None if new is root else hit
