"""The meanings of the parts of a rule while it is turned into an obligation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import TRUE, Expr

ANY_FOLD: Final = S.PVar("_")  # the op of a Reduce whose pattern does not name it


class Parts(dict[str, Any]):
    """The operands and fields of an op, by name. What a rule does not write is not there to be read."""

    def __missing__(self, name: str) -> Any:
        raise Unsupported(f"an op without its {name}")


def parts_of(info: OpInfo, p: Any) -> Parts:
    """The operands and fields that a pattern or an expression gives an op, by name and as they are written; of a sequence of
    operands the list of its items. What stands at its place is there.
    """
    if isinstance(p, S.PStruct):
        return Parts({f.name: S.PVar(f.name) if f.value is None else f.value for f in p.fields})
    if isinstance(p, S.EStruct):
        return Parts(p.fields)
    given = [a for a in p.args if not isinstance(a, (S.PType, S.EType))]
    out = Parts(("dtype", a) for a in p.args if isinstance(a, (S.PType, S.EType)))
    several = sum(o.many for o in info.operands)
    for operand in info.operands:
        if operand.many:
            take, odd = divmod(len(given), several)  # Pad and Shrink end in two of one length
            if odd:
                raise Unsupported("two sequences of operands of which one is longer")
            out[operand.name], given, several = given[:take], given[take:], several - 1
        elif given:
            found = given.pop(0)
            out[operand.name] = S.PSome(found) if operand.optional and isinstance(found, S.Pattern) else found
    if len(given) > len(info.fields):
        raise Unsupported(f"{info.name} of more than it takes")
    return Parts(out | dict(zip(info.fields, given, strict=False)))


@dataclass(frozen=True, slots=True)
class Made:
    """The construction of a node, where the rule states it: the op, its operands, its static fields."""

    op: str
    operands: tuple[Any, ...]
    fields: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its lanes, one Term each, at a scalar dtype. A pointwise rule is read at one lane that stands for all."""

    lanes: tuple[Term, ...]
    dtype: str
    made: Made | None = field(default=None, compare=False)

    @property
    def term(self) -> Term:
        """The lane of a scalar."""
        if len(self.lanes) != 1:
            raise Unsupported(f"{len(self.lanes)} lanes where a scalar is read")
        return self.lanes[0]


@dataclass(frozen=True, slots=True)
class Constant:
    """The value of a constant node, or one that `eval` computed: at a dtype; `exists` is whether the computation has a value."""

    term: Term
    dtype: str
    exists: Expr = TRUE


@dataclass(frozen=True, slots=True)
class Truth:
    """A compile-time bool."""

    value: Expr
    exists: Expr = TRUE


@dataclass(frozen=True, slots=True)
class FloatLiteral:
    value: float


@dataclass(frozen=True, slots=True)
class DtypeName:
    name: str


@dataclass(frozen=True, slots=True)
class OpName:
    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of nodes or of values."""

    items: tuple[Any, ...]


Value = Node | Constant | Num | Truth | FloatLiteral | DtypeName | OpName | Sequence
