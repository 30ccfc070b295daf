"""Expressions of the solver's own Python library as terms, and its sorts as ours."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import z3

from morok.prove.smt.build import Const, Function, fpBVToFP
from morok.prove.smt.ieee import Format
from morok.prove.smt.sorts import BOOL, INT, REAL, BitVecSort, DeclareSort, FPSort, Sort
from morok.prove.smt.terms import FALSE, TRUE, Expr, SortError, at_forgetting, make, numeral
from morok.prove.symbol import Symbol

# Functions that SMT-LIB spells as here, by the library's number for each
_PLAIN: Final = {
    z3.Z3_OP_AND: "and", z3.Z3_OP_OR: "or", z3.Z3_OP_NOT: "not", z3.Z3_OP_IMPLIES: "=>", z3.Z3_OP_XOR: "xor", z3.Z3_OP_ITE: "ite",
    z3.Z3_OP_EQ: "=", z3.Z3_OP_IFF: "=", z3.Z3_OP_DISTINCT: "distinct",
    z3.Z3_OP_ADD: "+", z3.Z3_OP_SUB: "-", z3.Z3_OP_UMINUS: "-", z3.Z3_OP_MUL: "*", z3.Z3_OP_IDIV: "div", z3.Z3_OP_MOD: "mod",
    z3.Z3_OP_DIV: "/", z3.Z3_OP_LT: "<", z3.Z3_OP_LE: "<=", z3.Z3_OP_GT: ">", z3.Z3_OP_GE: ">=", z3.Z3_OP_TO_REAL: "to_real",
    z3.Z3_OP_TO_INT: "to_int",
    z3.Z3_OP_BNEG: "bvneg", z3.Z3_OP_BNOT: "bvnot", z3.Z3_OP_BADD: "bvadd", z3.Z3_OP_BSUB: "bvsub", z3.Z3_OP_BMUL: "bvmul",
    z3.Z3_OP_BUDIV: "bvudiv", z3.Z3_OP_BUREM: "bvurem", z3.Z3_OP_BSDIV: "bvsdiv", z3.Z3_OP_BSREM: "bvsrem",
    z3.Z3_OP_BSMOD: "bvsmod",
    z3.Z3_OP_BAND: "bvand", z3.Z3_OP_BOR: "bvor", z3.Z3_OP_BXOR: "bvxor", z3.Z3_OP_BSHL: "bvshl", z3.Z3_OP_BLSHR: "bvlshr",
    z3.Z3_OP_BASHR: "bvashr", z3.Z3_OP_ULT: "bvult", z3.Z3_OP_ULEQ: "bvule", z3.Z3_OP_SLT: "bvslt",
    z3.Z3_OP_SLEQ: "bvsle",
    z3.Z3_OP_SGT: "bvsgt", z3.Z3_OP_SGEQ: "bvsge", z3.Z3_OP_CONCAT: "concat",
    z3.Z3_OP_FPA_IS_NAN: "fp.isNaN", z3.Z3_OP_FPA_IS_INF: "fp.isInfinite", z3.Z3_OP_FPA_IS_ZERO: "fp.isZero",
    z3.Z3_OP_FPA_IS_NEGATIVE: "fp.isNegative", z3.Z3_OP_FPA_LT: "fp.lt", z3.Z3_OP_FPA_LE: "fp.leq", z3.Z3_OP_FPA_GT: "fp.gt",
    z3.Z3_OP_FPA_GE: "fp.geq", z3.Z3_OP_FPA_EQ: "fp.eq", z3.Z3_OP_FPA_NEG: "fp.neg", z3.Z3_OP_FPA_ABS: "fp.abs",
    z3.Z3_OP_FPA_TO_REAL: "fp.to_real",
}  # fmt: skip
_MIRRORED: Final = {z3.Z3_OP_UGT: "bvult", z3.Z3_OP_UGEQ: "bvule"}  # with its operands exchanged
_ROUNDED: Final = {
    z3.Z3_OP_FPA_ADD: "fp.add", z3.Z3_OP_FPA_SUB: "fp.sub", z3.Z3_OP_FPA_MUL: "fp.mul", z3.Z3_OP_FPA_DIV: "fp.div",
    z3.Z3_OP_FPA_FMA: "fp.fma", z3.Z3_OP_FPA_SQRT: "fp.sqrt", z3.Z3_OP_FPA_ROUND_TO_INTEGRAL: "fp.roundToIntegral",
    z3.Z3_OP_FPA_TO_FP: "to_fp", z3.Z3_OP_FPA_TO_FP_UNSIGNED: "to_fp_unsigned", z3.Z3_OP_FPA_TO_SBV: "fp.to_sbv",
    z3.Z3_OP_FPA_TO_UBV: "fp.to_ubv",
}  # fmt: skip
_MODES: Final = {
    z3.Z3_OP_FPA_RM_NEAREST_TIES_TO_EVEN: "RNE", z3.Z3_OP_FPA_RM_TOWARD_ZERO: "RTZ", z3.Z3_OP_FPA_RM_TOWARD_POSITIVE: "RTP",
    z3.Z3_OP_FPA_RM_TOWARD_NEGATIVE: "RTN",
}  # fmt: skip
_WIDER: Final = {z3.Z3_OP_ZERO_EXT: "zero_extend", z3.Z3_OP_SIGN_EXT: "sign_extend"}
_MOST: Final = 10_000  # expressions whose terms are known


class _Translated:
    """Expressions that were translated, by number, with their terms; a number is an expression's while that is kept."""

    def __init__(self) -> None:
        self.contexts: dict[Any, dict[int, tuple[Any, Expr]]] = {}

    def of(self, context: Any) -> dict[int, tuple[Any, Expr]]:
        if len(known := self.contexts.setdefault(context, {})) > _MOST:
            known = self.contexts[context] = {}
        return known

    def forget(self) -> None:
        self.contexts = {}


_translated: Final = _Translated()
at_forgetting(_translated.forget)


def sort_of(ref: Any) -> Sort:
    """A sort of the library's as ours."""
    if isinstance(ref, Sort):
        return ref
    if isinstance(ref, z3.BitVecSortRef):
        return BitVecSort(ref.size())
    if isinstance(ref, z3.FPSortRef):
        return FPSort(ref.ebits(), ref.sbits())
    plain = {z3.Z3_BOOL_SORT: BOOL, z3.Z3_INT_SORT: INT, z3.Z3_REAL_SORT: REAL}.get(ref.kind())
    if plain is not None:
        return plain
    if ref.kind() == z3.Z3_UNINTERPRETED_SORT:
        return DeclareSort(ref.name())
    raise SortError(f"terms have no sort {ref}")


def ref_of(sort: Sort) -> Any:
    """Our sort as the library's."""
    match sort.kind:
        case "Bool":
            return z3.BoolSort()
        case "Int":
            return z3.IntSort()
        case "Real":
            return z3.RealSort()
        case "BitVec":
            return z3.BitVecSort(sort.width)
        case "Float":
            return z3.FPSort(sort.exponent, sort.significand)
    return z3.DeclareSort(sort.text)


def constant(name: str, sort: Sort) -> Any:
    """The library's constant of that name and of a sort of ours."""
    return z3.Const(name, ref_of(sort))


def truth(value: bool) -> Any:
    """The library's true or false."""
    return z3.BoolVal(value)


def taken(value: Any) -> Expr | None:
    """An expression of the library as a term; None of anything else."""
    return term_of(value) if isinstance(value, z3.ExprRef) else None


def term_of(expression: Any) -> Expr:
    """An expression of the library as a term. SortError for what terms have no function for."""
    done = _translated.of(expression.ctx)
    todo = [expression]
    while todo:
        at = todo[-1]
        if at.get_id() in done:
            todo.pop()
            continue
        if not z3.is_app(at):
            raise SortError(f"terms have no quantifiers: {at}")
        children = [c for c in at.children() if c.decl().kind() not in _MODES]
        if waiting := [c for c in children if c.get_id() not in done]:
            todo.extend(waiting)
            continue
        todo.pop()
        done[at.get_id()] = at, _term(at, tuple([done[c.get_id()][1] for c in children]))
    return done[expression.get_id()][1]


def _term(e: Any, args: tuple[Expr, ...]) -> Expr:
    sort, declaration = sort_of(e.sort()), e.decl()
    kind = declaration.kind()
    if (value := _numeral(e, sort)) is not None:
        return value
    if kind == z3.Z3_OP_UNINTERPRETED:
        name = Symbol("library", declaration.name())
        return Function(name, *(a.sort for a in args), sort)(*args) if args else Const(name, sort)
    if kind in _PLAIN:
        return make(_PLAIN[kind], args, sort)
    if kind in _MIRRORED:
        return make(_MIRRORED[kind], args[::-1], sort)
    if kind in _WIDER:
        return make(_WIDER[kind], args, sort, sort.width - args[0].sort.width)
    if kind == z3.Z3_OP_EXTRACT:
        return make("extract", args, sort, tuple(declaration.params()))
    if kind == z3.Z3_OP_ROTATE_LEFT:
        return make("rotate_left", args, sort, declaration.params()[0])
    if kind == z3.Z3_OP_EXT_ROTATE_LEFT and args[1].head == "value":
        return make("rotate_left", args[:1], sort, args[1].data)
    if kind in _ROUNDED:
        modes = [_MODES[c.decl().kind()] for c in e.children() if c.decl().kind() in _MODES]
        if modes:
            return make(_ROUNDED[kind], args, sort, modes[0])
        if kind == z3.Z3_OP_FPA_TO_FP and args[0].sort.kind == "BitVec":
            return fpBVToFP(args[0], sort)
    raise SortError(f"terms have no function {declaration.name()}")


def _numeral(e: Any, sort: Sort) -> Expr | None:
    if z3.is_true(e) or z3.is_false(e):
        return TRUE if z3.is_true(e) else FALSE
    if z3.is_int_value(e) or z3.is_bv_value(e):
        return numeral(sort, e.as_long())
    if z3.is_rational_value(e):
        return numeral(sort, Fraction(e.numerator_as_long(), e.denominator_as_long()))
    if z3.is_fp_value(e):
        form = Format(sort.exponent, sort.significand)
        if e.isNaN():
            return numeral(sort, form.nan)
        return numeral(sort, z3.simplify(z3.fpToIEEEBV(e)).as_long())
    return None
