"""The identity of the nodes that facts are asked of: the words of a question, with the meaning of their names.

A fact is one of a node, not of its value: two nodes of one value may have different bounds, as `Square(x)` and `Mul(x, x)` have.
Two questions are about one node where a rule asks them in the same words, and the names in them mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from morok.dsl import syntax as S

# What a name means, where that is not itself: the words that `let` or a call gives it. ANY: one of several nodes, as an item.
Meanings = Mapping[str, Any]
ANY: Final = None


class _Several(Exception):
    """The words may mean one node now, and another one later."""


def words_of(e: S.Expr | S.Pattern, meanings: Meanings) -> Any:
    """The words of a question, comparable with those of others; ANY where the same words may mean different nodes. Of a part of a
    pattern, those of a question about what it matches.
    """
    try:
        return _words(e, meanings)
    except _Several:
        return ANY


def _words(at: Any, meanings: Meanings) -> Any:
    if isinstance(at, S.EName):
        found = meanings.get(at.name, at.name)
        if found is ANY:
            raise _Several
        return found
    if isinstance(at, (S.PVar, S.PBind)) and not at.name.startswith("_"):
        return _words(S.EName(at.name), meanings)
    if isinstance(at, S.POp) and len(at.ops) == 1 and not at.commutative:
        return (S.ECall.__name__, _words(at.ops[0], meanings), _words(at.args, meanings))
    if isinstance(at, (S.EComprehension, S.Pattern)):
        raise _Several
    if isinstance(at, S.Syntax):
        return (type(at).__name__, *(_words(getattr(at, f), meanings) for f in at.__dataclass_fields__ if f != "span"))
    # 0, 0.0, -0.0 and False apart
    return tuple(_words(part, meanings) for part in at) if isinstance(at, tuple) else repr(at)


__all__ = ["ANY", "Meanings", "words_of"]
