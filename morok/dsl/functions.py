"""The functions and operators of compile-time expressions: each is one entry, with its types and all of its meanings.

An operation that has no value for some operands has none in its evaluation, in generated code and for the solver. Two laws hold
for every entry, and the users of the table implement them: an operation has a value only where all its operands have one, and
an infinite bound of a node is an operand of comparisons alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import values

if TYPE_CHECKING:
    import ast


@dataclass(frozen=True, slots=True)
class Function:
    """A function or an operator.

    params   the kinds of the operands: "int" (a mathematical integer), "bool", "number" (an integer or an infinite bound),
             "node", "dtype"; the sequences "seq", "ints", "bools", "pairs" (a pair is an axis's id and its length); "several"
             (integers, or one sequence of them)
    result   the kind of the result: "int", "bound" (an integer or infinite), "bool", "dtype", "tuple" (the items of a sequence),
             "ints", "sizes" (nodes of dtype index)
    value    its evaluation, which raises one of `values.FAILURES` where it has no value; for a fact about nodes or dtypes, the
             name of the dialect's function
    code     in generated code: an infix or prefix operator, the name of a function (`values.NAMES`, or one of Python's), or a
             function from the code generator and the call to the expression
    meaning  its solver term, as a function of the prover's domain and the operands (for a fact: the expressions)
    partial  it has no value for some operands
    """

    name: str
    params: tuple[str, ...]
    result: str
    value: Callable[..., Any] | str
    code: str | Callable[..., ast.expr]
    meaning: Callable[..., Any]
    partial: bool = False

    def kinds(self, operands: int) -> tuple[str, ...]:
        """The kinds of this many operands: `zip` and a fold repeat their last kind."""
        if self.params == ("several",) and operands > 1:
            return ("int",) * operands
        return (*self.params, *self.params[-1:] * (operands - len(self.params)))

    @property
    def fact(self) -> bool:
        """True for a fact about nodes or dtypes, which a function of the dialect computes."""
        return isinstance(self.value, str)

    @property
    def asked(self) -> bool:
        """True for a fact that a dialect may lack; every dialect has `same`, `dtype` and `lanes`."""
        return self.fact and self.name not in ("same", "dtype", "lanes")


def _integers(
    name: str, arity: int, value: Callable[..., Any], code: str, partial: bool = False, result: str = "int"
) -> Function:
    """An operation on integers that the solver's domain has by the same name."""
    return Function(name, ("int",) * arity, result, value, code, lambda d, *a: d.operation(name, *a), partial)


def _several(name: str, value: Callable[..., Any], code: str) -> Function:
    """An operation folded over integers or over the items of a sequence."""
    return Function(
        name, ("several",), "int", value, lambda g, e: g.of_several(e, code), lambda d, *a: d.combined(name, a), True
    )


def _comparison(name: str, value: Callable[[Any, Any], Any]) -> Function:
    return Function(name, ("number", "number"), "bool", value, name, lambda d, a, b: d.compare(name, a, b))


def _fact(
    name: str, params: tuple[str, ...], result: str, code: Callable[..., ast.expr] | None = None, partial: bool = False
) -> Function:
    """A fact, which functions of this name compute in the dialect and in the solver's domain."""
    return Function(
        name, params, result, name, code or (lambda g, e: g.asked(e)), lambda d, *e: d.fact(name, e), partial
    )


def _width(d: Any, axes: Any) -> Any:
    return d.combined("*", (tuple(n for _, n in axes),), empty=1)


def _strides(d: Any, axes: Any) -> list[tuple[Any, Any, Any]]:
    """(id, length, stride in lanes) of each axis, from the last, which runs fastest, to the first."""
    lanes = d.constant(1)
    found = []
    for i, n in reversed(axes):
        found.append((i, n, lanes))
        lanes = d.operation("*", lanes, n)
    return found


def _step(d: Any, axes: Any, axis: Any) -> Any:
    chosen = d.constant(0)
    for i, _, lanes in reversed(_strides(d, axes)):
        chosen = d.either_of(d.compare("==", i, axis), lanes, chosen)
    return chosen


def _at(d: Any, axes: Any, axis: Any, lane: Any) -> Any:
    chosen = d.constant(0)
    for i, n, lanes in reversed(_strides(d, axes)):
        here = d.operation("%", d.operation("//", lane, lanes), n)
        chosen = d.either_of(d.compare("==", i, axis), here, chosen)
    return chosen


def _inverse(d: Any, axes: Any) -> Any:
    """The inverse permutation: for each number its position; no value if a number is missing."""
    nothing = d.operation("//", d.constant(1), d.constant(0))
    found = []
    for p in range(len(axes)):
        place = nothing
        for k, a in enumerate(axes):
            place = d.either_of(d.compare("==", a, d.constant(p)), d.constant(k), place)
        found.append(place)
    return d.in_order(found)


UNARY: Final[Mapping[str, Function]] = {
    f.name: f
    for f in (
        Function("-", ("int",), "int", operator.neg, "-", lambda d, a: d.operation("neg", a)),
        _integers("~", 1, operator.invert, "~"),
        Function("not", ("bool",), "bool", operator.not_, "not ", lambda d, a: d.opposite(a)),
    )
}
BINARY: Final[Mapping[str, Function]] = {
    f.name: f
    for f in (
        _integers("+", 2, operator.add, "+"),
        _integers("-", 2, operator.sub, "-"),
        _integers("*", 2, operator.mul, "*"),
        _integers("//", 2, operator.floordiv, "//", partial=True),
        _integers("%", 2, operator.mod, "%", partial=True),
        _integers("&", 2, operator.and_, "&"),
        _integers("|", 2, operator.or_, "|"),
        _integers("^", 2, operator.xor, "^"),
        _integers("<<", 2, values.shl, "_shl", partial=True),
        _integers(">>", 2, values.shr, "_shr", partial=True),
    )
}
COMPARISONS: Final[Mapping[str, Function]] = {
    f.name: f
    for f in (
        _comparison("==", values.equal),
        _comparison("!=", lambda a, b: not values.equal(a, b)),
        _comparison("<", operator.lt),
        _comparison("<=", operator.le),
        _comparison(">", operator.gt),
        _comparison(">=", operator.ge),
    )
}
FUNCTIONS: Final[Mapping[str, Function]] = {
    f.name: f
    for f in (
        _integers("tdiv", 2, values.tdiv, "_tdiv", partial=True),
        _integers("tmod", 2, values.tmod, "_tmod", partial=True),
        _integers("abs", 1, abs, "abs"),
        _integers("log2", 1, values.log2, "_log2", partial=True),
        _integers("is_pow2", 1, values.is_pow2, "_is_pow2", result="bool"),
        _several("min", values.least, "min"),
        _several("max", values.most, "max"),
        _several("gcd", values.gcd, "gcd"),
        Function("len", ("seq",), "int", len, "len", lambda d, xs: d.constant(len(xs))),
        Function(
            "sum",
            ("ints",),
            "int",
            values.total,
            lambda g, e: g.of_items(e, "sum"),
            lambda d, xs: d.combined("+", (xs,), empty=0),
            True,
        ),
        Function("all", ("bools",), "bool", values.every, lambda g, e: g.of_items(e, "all"), lambda d, xs: d.every(xs)),
        Function("any", ("bools",), "bool", values.some, lambda g, e: g.of_items(e, "any"), lambda d, xs: d.some(xs)),
        Function("width", ("pairs",), "int", values.width, "_width", _width, True),
        Function("step", ("pairs", "int"), "int", values.step, "_step", _step, True),
        Function("at", ("pairs", "int", "int"), "int", values.at, "_at", _at, True),
        Function("zip", ("seq", "seq"), "tuple", values.paired, "_paired", lambda d, *xs: d.paired(*xs), True),
        Function(
            "where",
            ("bool", "int", "int"),
            "int",
            values.where,
            "_where",
            lambda d, c, a, b: d.either_of(c, a, b),
            True,
        ),
        Function("inverse", ("ints",), "ints", values.inverse, "_inverse", _inverse, True),
        Function(
            "others", ("ints", "int"), "ints", values.others, "_others", lambda d, axes, n: d.others(axes, n), True
        ),
        _fact("vmin", ("node",), "bound", lambda g, e: g.bound(e)),
        _fact("vmax", ("node",), "bound", lambda g, e: g.bound(e)),
        _fact("lanes", ("node",), "int", lambda g, e: g.lane_count(e)),
        _fact("no_overflow", ("node",), "bool", lambda g, e: g.no_overflow(e.args[0])),
        _fact("defined", ("node",), "bool"),
        _fact("free_of", ("node", "node"), "bool"),
        _fact("same", ("node", "node"), "bool", lambda g, e: g.same(e)),
        _fact("dtype", ("node",), "dtype", lambda g, e: g.dtype_asked(e)),
        _fact("bits", ("dtype",), "int"),
        _fact("is_int", ("dtype",), "bool"),
        _fact("is_float", ("dtype",), "bool"),
        _fact("safe_cast", ("dtype", "dtype"), "bool"),
        _fact("free_of_axes", ("node", "seq"), "bool"),
        _fact("constant", ("node",), "int", partial=True),
        _fact("rank", ("node",), "int", partial=True),
        _fact("shape", ("node",), "sizes", partial=True),
        _fact("same_shape", ("node", "node"), "bool"),
    )
}
# Functions that build nodes and constants, or look into a node: `value_expressions` types each by a rule of its own.
SPECIAL: Final = ("eval", "const", "zero", "one", "identity", "subst", "axes", "inside")
