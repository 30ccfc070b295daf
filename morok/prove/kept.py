"""Terms of the solver that are kept, each built once by a direct call of a C function.

The library's own wrappers ask every operand for its sort, count references and look for an error at every call, which takes ten
times as long as building the term. Here a term knows its sort, and the same term is built once: it is kept until `forget`. Terms
are the library's expressions too, so that its functions take them, and the functions here take its expressions (of its main
context). What either builds of the same operands is one node of the solver.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, cast

import z3
from z3 import z3core

Expr = Any  # an expression of the library, kept or not

Address = ctypes.c_void_p
CONTEXT: Final = z3.main_ctx()
CTX: Final[int] = CONTEXT.ref().value

Making = Callable[..., Any]


def bound(name: str, *arguments: Any, result: Any = Address) -> Making:
    """A C function of the solver, by its name without `Z3_`, of a context and arguments of these types.

    It is where the library's wrapper has it, which remembers it as the default of its last argument. It is called with Python's
    lock held: nothing here takes so long that anybody waits.
    """
    known = getattr(z3core, f"Z3_{name}").__defaults__[-1].f
    prototype = ctypes.PYFUNCTYPE(result, Address, *arguments)
    return cast(Making, prototype(ctypes.cast(known, Address).value or 0))


MANY: Final = (ctypes.c_uint, Address)  # how C takes any number of operands

_increase = bound("inc_ref", Address, result=None)
_decrease = bound("dec_ref", Address, result=None)
_error_code = bound("get_error_code", result=ctypes.c_int)
_error_text = bound("get_error_msg", ctypes.c_int, result=ctypes.c_char_p)
_sort_at = bound("get_sort", Address)
_is_numeral = bound("is_numeral_ast", Address, result=ctypes.c_bool)
_numeral = bound("mk_numeral", ctypes.c_char_p, Address)
operands_of = bound("get_app_num_args", Address, result=ctypes.c_uint)
operand_of = bound("get_app_arg", Address, ctypes.c_uint)


def _reference(at: int) -> Any:
    """A term as the library's functions take it."""
    there = z3.Ast(at)
    there.value = at
    return there


class Sort:
    """A sort, and what its terms are in Python. There is one object for each.

    ref      the library's
    at       its address
    term     the class of its terms, `numeral` that of its numerals
    width    of bit vectors, else 0
    """

    __slots__ = ("at", "numeral", "ref", "term", "width")

    def __init__(self, ref: Any) -> None:
        self.ref = ref
        self.at: int = ref.ast.value
        self.width: int = ref.size() if isinstance(ref, z3.BitVecSortRef) else 0
        self.term, self.numeral = _CLASSES.get(ref.kind(), (Other, Other))

    def number(self, value: Any) -> Built | None:
        """What a Python integer or truth is of this sort; None where the library decides."""
        if self is BOOL:
            return (TRUE if value else FALSE) if isinstance(value, bool) else None
        if type(value) is not int or not (self.width or self is INT or self is REAL):
            return None
        key = ("numeral", self.at, value)
        found = _MADE.get(key)
        if found is None:
            found = _MADE[key] = (_kept(_numeral(CTX, str(value).encode(), self.at), self, self.numeral),)
        kept: Built = found[0]
        return kept

    def take(self, value: Any) -> Built:
        """A value as a term of this sort, as the library would have it."""
        if isinstance(value, z3.ExprRef):
            there = adopted(value)
            return there if there.of is self else adopted(self.ref.cast(value))
        number = self.number(value)
        return adopted(self.ref.cast(value)) if number is None else number


class Built:
    """A term that is kept: where it is, and of which sort."""

    ctx = CONTEXT
    at: int
    of: Sort

    def __init__(self, at: int, of: Sort) -> None:
        self.at = at
        self.of = of

    def __del__(self) -> None:
        if _decrease is not None and self.ctx.ctx is not None:  # neither is there when Python ends
            _decrease(CTX, self.at)

    def as_ast(self) -> Any:
        return _reference(self.at)

    ast = property(as_ast)

    def sort(self) -> Any:
        return self.of.ref

    def eq(self, other: Expr) -> bool:
        return self.at == address(other)

    def num_args(self) -> int:
        return int(operands_of(CTX, self.at))

    def arg(self, i: int) -> Expr:
        return term(operand_of(CTX, self.at, i))

    def children(self) -> list[Expr]:
        return [self.arg(i) for i in range(self.num_args())]

    def same(self, other: Any) -> Built | None:
        """`other` as a term of this term's sort; None where only the library knows how."""
        if isinstance(other, z3.ExprRef):
            there = adopted(other)
            return there if there.of is self.of else None
        return self.of.number(other)


# Terms by their addresses; and by function and addresses of operands the term that was made, with the operands to keep them too
_TERMS: Final[dict[int, Built]] = {}
_MADE: Final[dict[Any, tuple[Any, ...]]] = {}
_SORTS: Final[dict[int, Sort]] = {}


def forget() -> None:
    """Keep what has been built so far no longer than others do."""
    _MADE.clear()
    _TERMS.clear()
    _TERMS.update({TRUE.at: TRUE, FALSE.at: FALSE})


def address(e: Expr) -> int:
    """Where a term is: equal terms are one, so that addresses tell, for as long as some expression holds them."""
    return e.at if isinstance(e, Built) else int(e.ast.value)


def _kept(at: int | None, of: Sort | None = None, kind: type[Built] | None = None) -> Built:
    """The term at an address that the solver has just returned."""
    if at is None:
        raise z3.Z3Exception(_error_text(CTX, _error_code(CTX)).decode())
    found = _TERMS.get(at)
    if found is None:
        if of is None:
            of = _SORTS.get(_sort_at(CTX, at)) or sort(z3.ExprRef(_reference(at), CONTEXT).sort())
            kind = of.numeral if of is not BOOL and _is_numeral(CTX, at) else None
        _increase(CTX, at)
        found = _TERMS[at] = (kind or of.term)(at, of)
    return found


def term(at: int | None) -> Any:
    """The term at an address, of whatever sort."""
    found = None if at is None else _TERMS.get(at)
    return _kept(at) if found is None else found


def adopted(e: Expr) -> Built:
    """An expression of the library as a term that is kept."""
    if isinstance(e, Built):
        return e
    kept: Built = term(e.ast.value)
    return kept


def sort(ref: Any) -> Sort:
    found = _SORTS.get(ref.ast.value)
    if found is None:
        found = _SORTS[ref.ast.value] = Sort(ref)
    return found


def once(key: tuple[Any, ...], make: Callable[[], int | None], *operands: Any, of: Sort | None = None) -> Built:
    """The term that a key names: what `make` returned the first time. Addresses in the key are those of `operands`."""
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = (_kept(make(), of), operands)
    kept: Built = found[0]
    return kept


def made(function: Making, of: Sort, *operands: Built) -> Built:
    """What a function of the solver makes of its operands."""
    at = tuple([o.at for o in operands])
    key = (id(function), at)  # functions of C have no hash, and these stay
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = (_kept(function(CTX, *at), of), operands)
    kept: Built = found[0]
    return kept


def made_of_two(function: Making, of: Sort, a: Built, b: Built) -> Built:
    key = (id(function), a.at, b.at)
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = (_kept(function(CTX, a.at, b.at), of), a, b)
    kept: Built = found[0]
    return kept


def made_of_many(function: Making, of: Sort, *operands: Built) -> Built:
    """The same of a function that takes any number of operands."""
    at = tuple([o.at for o in operands])
    key = (id(function), at)
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = (_kept(function(CTX, len(at), (Address * len(at))(*at)), of), operands)
    kept: Built = found[0]
    return kept


# operators


def _operator(general: Any, function: Making, many: bool, truth: bool, turned: bool) -> Any:
    """An operator of a term and what is of its sort, or becomes so; all else is left to the library's own, `general`."""
    make = made_of_many if many else made_of_two

    def operator(self: Built, other: Any) -> Any:
        o = other if getattr(other, "of", None) is self.of else self.same(other)
        if o is None:
            there = general(self, other)
            return adopted(there) if isinstance(there, z3.ExprRef) else there
        of = BOOL if truth else self.of
        return make(function, of, o, self) if turned else make(function, of, self, o)

    return operator


def _give(kind: type[Built], library: Any, names: dict[str, str], many: bool = False, truth: bool = False) -> None:
    """Give a class operators: by Python's name of each the solver's function; and the turned forms that the library has."""
    for name, function in names.items():
        made_by = bound(f"mk_{function}", *(MANY if many else (Address, Address)))
        for python, turned in ((f"__{name}__", False), (f"__r{name}__", True)):
            if hasattr(library, python):
                setattr(kind, python, _operator(getattr(library, python), made_by, many, truth, turned))


class Condition(Built, z3.BoolRef):  # type: ignore[misc]
    """A truth."""


class Number(Built, z3.ArithRef):  # type: ignore[misc]
    """An integer or a real number."""

    def __neg__(self) -> Any:
        return made(_minus, self.of, self)


class Bits(Built, z3.BitVecRef):  # type: ignore[misc]
    """A bit vector."""

    def size(self) -> int:
        return self.of.width

    def __neg__(self) -> Any:
        return made(_minus_bits, self.of, self)

    def __invert__(self) -> Any:
        return made(_not_bits, self.of, self)


class Float(Built, z3.FPRef):  # type: ignore[misc]
    """A float."""


class Other(Built, z3.ExprRef):  # type: ignore[misc]
    """A term of a sort without operators."""


_minus, _minus_bits, _not_bits = (bound(f"mk_{name}", Address) for name in ("unary_minus", "bvneg", "bvnot"))
_ORDER: Final = ("lt", "le", "gt", "ge")
_ON_BITS: Final = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "sdiv", "mod": "smod", "lshift": "shl", "rshift": "ashr",
                   "and": "and", "or": "or", "xor": "xor"}  # fmt: skip
for _kind in (Condition, Number, Bits, Float, Other):
    _base = _kind.__mro__[2]  # the library's
    _give(_kind, _base, {"eq": "eq"}, truth=True)
    _give(_kind, _base, {"ne": "distinct"}, many=True, truth=True)
    _kind.__hash__ = z3.ExprRef.__hash__  # type: ignore[method-assign]
_give(Number, z3.ArithRef, {"add": "add", "sub": "sub", "mul": "mul"}, many=True)
_give(Number, z3.ArithRef, {"truediv": "div", "mod": "mod"})
_give(Number, z3.ArithRef, {name: name for name in _ORDER}, truth=True)
_give(Bits, z3.BitVecRef, {name: f"bv{function}" for name, function in _ON_BITS.items()})
_give(Bits, z3.BitVecRef, {name: f"bvs{name}" for name in _ORDER}, truth=True)


class Whole(Number, z3.IntNumRef):  # type: ignore[misc]
    """A numeral of integers."""


class Fraction(Number, z3.RatNumRef):  # type: ignore[misc]
    """A numeral of real numbers."""


class Pattern(Bits, z3.BitVecNumRef):  # type: ignore[misc]
    """A numeral of bit vectors."""


class Decimal(Float, z3.FPNumRef):  # type: ignore[misc]
    """A numeral of floats."""


NUMERALS: Final = (Whole, Fraction, Pattern, Decimal)
_CLASSES: Final[dict[int, tuple[type[Built], type[Built]]]] = {
    z3.Z3_BOOL_SORT: (Condition, Condition),
    z3.Z3_INT_SORT: (Number, Whole),
    z3.Z3_REAL_SORT: (Number, Fraction),
    z3.Z3_BV_SORT: (Bits, Pattern),
    z3.Z3_FLOATING_POINT_SORT: (Float, Decimal),
}
BOOL: Final = sort(z3.BoolSort())
INT: Final = sort(z3.IntSort())
REAL: Final = sort(z3.RealSort())
TRUE: Final = term(z3.BoolVal(True).ast.value)
FALSE: Final = term(z3.BoolVal(False).ast.value)
