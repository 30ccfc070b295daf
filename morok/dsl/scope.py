"""What the names of a rule stand for while it is checked."""

from __future__ import annotations

from dataclasses import dataclass

from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.infer import T


@dataclass(slots=True)
class Value:
    """What an expression yields.

    kind   "node"; "int" (a mathematical integer), "bool", "const" (the value of a constant of dtype `type`), "dtype", "op",
           "other" (a field passed through unread); for sequences the kind of the elements
    many   it is a sequence
    parts  the components, for tuples (`zip`, a helper with several results)
    """

    kind: str
    type: T | None = None
    many: bool = False
    parts: tuple[Value, ...] = ()

    @property
    def sort(self) -> Sort:
        if self.kind == "node":
            return Sort.NODES if self.many else Sort.NODE
        if self.many:
            return Sort.VALUES
        return {"dtype": Sort.DTYPE, "op": Sort.OP, "other": Sort.OTHER}.get(self.kind, Sort.VALUE)

    def element(self) -> Value:
        """What one step of a loop over this sequence yields."""
        return Value(self.kind, self.type, False, self.parts)


@dataclass(slots=True)
class Bound:
    """A name bound by the pattern or a clause."""

    name: str
    value: Value
    span: S.Span
    invalid_ok: bool = False
    constant: bool = False


# name -> (sorts of the parameters, kind of the result). "node": a node or a term built of nodes; "int", "bool", "dtype", "any";
# "*" repeats the last; sequences are "seq".
FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "vmin": (("node",), "int"),
    "vmax": (("node",), "int"),
    "lanes": (("node",), "int"),
    "no_overflow": (("node",), "bool"),
    "free_of": (("node", "node"), "bool"),
    "same": (("node", "node"), "bool"),
    "dtype": (("node",), "dtype"),
    "bits": (("dtype",), "int"),
    "is_int": (("dtype",), "bool"),
    "is_float": (("dtype",), "bool"),
    "safe_cast": (("dtype", "dtype"), "bool"),
    "is_pow2": (("int",), "bool"),
    "log2": (("int",), "int"),
    "abs": (("int",), "int"),
    "min": (("int", "*"), "int"),
    "max": (("int", "*"), "int"),
    "gcd": (("int", "*"), "int"),
    "tdiv": (("int", "int"), "int"),
    "tmod": (("int", "int"), "int"),
    "len": (("seq",), "int"),
    "all": (("seq",), "bool"),
    "any": (("seq",), "bool"),
    "sum": (("seq",), "int"),
    "width": (("seq",), "int"),
    "step": (("seq", "int"), "int"),
    "at": (("seq", "int", "int"), "int"),
    "free_of_axes": (("node", "seq"), "bool"),
}
SPECIAL_FUNCTIONS = ("eval", "const", "zero", "one", "identity", "zip", "subst", "axes", "inside")
FLAGS = ("nnan", "ninf", "nsz", "contract", "arcp", "afn", "reassoc")

__all__ = ["FLAGS", "FUNCTIONS", "SPECIAL_FUNCTIONS", "Bound", "Value"]
