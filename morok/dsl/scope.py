"""The kinds of value that the names of a rule have, while it is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.infer import T


@dataclass(frozen=True, slots=True)
class Value:
    """The kind of value of an expression.

    kind   "node"; "int" (a mathematical integer), "bool", "const" (the value of a constant of dtype `type`), "dtype", "op",
           "other" (a field passed through unread, or one of `parts`); for sequences the kind of the elements
    many   it is a sequence
    parts  the components, for tuples (`zip`, a helper with several results); for an item of a list of sequences, its alternatives
    bounds for a number that may be the bound of a node, the types of such nodes: it may be infinite if one of them is unbounded
    bits   the largest number of bits of a number, if the numbers that a rule is given have 64
    """

    kind: str
    type: T | None = None
    many: bool = False
    parts: tuple[Value, ...] = ()
    bounds: tuple[T, ...] = ()
    bits: int = 64

    @property
    def sort(self) -> Sort:
        if self.kind == "node":
            return Sort.NODES if self.many else Sort.NODE
        if self.many:
            return Sort.VALUES
        return {"dtype": Sort.DTYPE, "op": Sort.OP, "other": Sort.OTHER}.get(self.kind, Sort.VALUE)

    def element(self) -> Value:
        """The value of one step of a loop over this sequence."""
        if self.many or self.kind != "other":
            return replace(self, many=False)
        return Value("other", parts=tuple(dict.fromkeys(i for p in self.parts for i in p.items())))

    def alternatives(self) -> tuple[Value, ...]:
        """The alternatives of an item of a list of sequences; for any other value, itself."""
        return self.parts if self.kind == "other" and self.parts and not self.many else (self,)

    def items(self) -> tuple[Value, ...]:
        """The alternatives of the items of a sequence; () for any other value."""
        if self.kind == "tuple" and not self.many:
            return tuple(i for p in self.parts for i in p.alternatives())
        return self.element().alternatives() if self.many or self.kind in ("other", "unknown") else ()

    @staticmethod
    def one_of(*values: Value) -> Value:
        """The value of an item of a list that may be any of these."""
        found = (Value(v.kind, v.type, v.many, v.parts) for value in values for v in value.alternatives())
        return Value("other", bits=max(v.bits for v in values), parts=tuple(dict.fromkeys(found)))


@dataclass(slots=True)
class Bound:
    """A name bound by the pattern or a clause."""

    name: str
    value: Value
    span: S.Span
    invalid_ok: bool = False
    constant: bool = False


FLAGS = ("nnan", "ninf", "nsz", "contract", "arcp", "afn", "reassoc")
