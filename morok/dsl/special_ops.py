"""The ops that stand for something in the language of rules. A dialect's declaration says which they are, and no name does."""

from __future__ import annotations

from morok.dialect import Dialect, OpInfo, ReadsMemory
from morok.dsl.structural import relations


def invalid_op(dialect: Dialect) -> str:
    """The op that is Invalid always; "" where there is none."""
    return dialect.inline.get("invalid_op", "")


def constants_op(dialect: Dialect) -> OpInfo | None:
    """The op that `@vconst` matches: the only one of role "constants", in a field of constants; None where there is none."""
    found = [info for info in dialect.ops.values() if info.role == "constants"]
    listed = len(found) == 1 and [found[0].field_kind(f) for f in found[0].fields] == ["consts"]
    return found[0] if listed else None


def lists_scalars(info: OpInfo) -> bool:
    """True if each operand of an op is one lane of its result."""
    named = [o.name for o in info.operands]
    return (
        info.role == "join"
        and len(named) == 1
        and any(r.of == named[0] and r.word == "scalar" for r in relations(info))
    )


def chooses(info: OpInfo) -> bool:
    """True if a truth, the first operand, says which of the others an op gives: these may be Invalid where the result is not."""
    return info.params == ("bool", info.result, info.result)


def loads(dialect: Dialect) -> frozenset[str]:
    """The ops that read memory."""
    return dialect.reads if isinstance(dialect, ReadsMemory) else frozenset()
