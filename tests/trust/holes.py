"""Holes of the kinds that were found in the prover and around it, put back one by one: `morok attack` must find each.

Each patches the product as it was when the hole was open, or as if it were. What makes random rules knows nothing of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from morok.dsl import check, extent, resolve, values
from morok.dsl.match import dtype_constraints, extent_tests, literals, patterns, value_code
from morok.ir.morok_dialect import MOROK
from morok.prove import dialect_agreement, dialect_trials, foreign, obligations, promises, smt, symbol, verified
from morok.prove.contract_state import Tested
from morok.prove.encoding import encoder_state
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.facts import Facts
from morok.prove.encoding.fold_induction import Folds
from morok.prove.encoding.loop_ranges import Ranges
from morok.prove.encoding.structure_parts import Loop
from morok.prove.parametric import expressions, folds, op_functions
from morok.prove.parametric import structural_ops as parametric_ops
from morok.prove.parametric.reading import Reading
from morok.prove.parametric.rule_values import AxisList
from morok.prove.semantics import ops
from morok.prove.semantics.bits import Bits
from morok.prove.semantics.floats import Floats
from morok.prove.semantics.integers import Integers
from morok.prove.semantics.term import Term, both, choose, either
from morok.prove.semantics.theory import Attempt, MorokTheory, MorokWorld

Hole = Callable[[pytest.MonkeyPatch], None]


def symbols_coincide(patch: pytest.MonkeyPatch) -> None:
    """Every constant without a name is one unknown."""
    made = symbol._made

    def coinciding(cls: type[symbol.Symbol], kind: symbol.Kind, *parts: symbol.Part) -> symbol.Symbol:
        return made(cls, kind, *(0 if type(p) is int and kind == "constant" else p for p in parts))

    patch.setattr(symbol, "_made", coinciding)


def infinite_arithmetic(patch: pytest.MonkeyPatch) -> None:
    """The matcher calculates with the bounds of a node that has none: infinity less infinity is a number to it."""
    patch.setitem(values.NAMES, "_finite", lambda a: a)
    patch.setattr(value_code.ValueCode, "finite", lambda self, e: self.value(e))


def negative_places(patch: pytest.MonkeyPatch) -> None:
    """The matcher counts negative places from the end of a sequence; and no graph is tried beside the proof."""
    patch.setitem(values.NAMES, "_item", lambda xs, i: xs[i])
    patch.setattr(obligations, "evaluated", lambda rule: (None, True))


def ragged_pairs(patch: pytest.MonkeyPatch) -> None:
    """The matcher pairs sequences of two lengths, as far as the shorter one goes; the prover, which would see it, fires none."""
    patch.setitem(values.NAMES, "_paired", lambda *xs: tuple(zip(*xs, strict=False)))
    patch.setattr(obligations, "evaluated", lambda _: (None, True))


def exact_targets(patch: pytest.MonkeyPatch) -> None:
    """The prover takes the powers that a target makes for exact ones."""
    patch.setattr(encoder_state, "kept_ops", lambda rule: frozenset())


def extents_ignored(patch: pytest.MonkeyPatch) -> None:
    """Matchers fire at sizes, and at amounts, that no proof has tried."""
    patch.setattr(extent_tests.ExtentTests, "within", lambda self, extent: self.code.constant(True))
    patch.setitem(extent.NAMES, "_upto", lambda amount, most: amount)


def dialects_unverified(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks at a dialect before rules over it are proved."""
    patch.setattr(verified, "broken", lambda rules: {})
    patch.setattr(verified, "literal_mistakes", lambda rule, theory: ())
    patch.setattr(resolve, "op_mistakes", lambda dialect, name: ())
    patch.setattr(check, "dialect_mistakes", lambda dialect: ())


def types_untested(patch: pytest.MonkeyPatch) -> None:
    """Matchers take every node of an op for one of the types that the op lists."""

    def known(of: object, name: str, *default: object) -> object:
        return True if name == "closed_types" else getattr(of, name, *default)

    for module in (dtype_constraints, patterns):
        patch.setattr(module, "getattr", known, raising=False)


def evaluators_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The digest of a verdict says nothing of the evaluators that folding rests on."""
    patch.setattr(foreign, "evaluator_digest", lambda info: "")
    patch.setattr(foreign, "_reached", lambda dialect, names: {})


def branches_ahead(patch: pytest.MonkeyPatch) -> None:
    """To the prover a Where has a value whatever the branch that it chooses has."""

    def where(w: object, d: object, c: Term, t: Term, f: Term) -> Term:
        return Term(choose(c.value, t.value, f.value), c.defined, choose(c.value, t.invalid, f.invalid))

    patch.setattr(ops, "where", where)


def dtypes_forgotten(patch: pytest.MonkeyPatch) -> None:
    """At every size a conversion to one dtype is the conversion to any; and no graph is tried beside the proof."""

    def function(
        r: Reading, op: str, dtypes: Sequence[str], to: str | None = None, stage: str = "run"
    ) -> smt.Applicable:
        return op_functions.function(r, op, ["any"] * len(dtypes), None, stage)

    patch.setattr(parametric_ops, "function", function)
    patch.setattr(obligations, "evaluated", lambda rule: (None, True))


def logarithms_of_all(patch: pytest.MonkeyPatch) -> None:
    """The matcher gives the logarithm of what is no power of two a value."""
    patch.setitem(values.NAMES, "_log2", lambda a: a.bit_length() - 1)


def nothing_overflows(patch: pytest.MonkeyPatch) -> None:
    """The matcher takes every result for one that fits its dtype."""
    always = dict.fromkeys(("no_overflow", "no_overflow_of"), lambda *_: True)
    patch.setattr(type(MOROK), "facts", {**MOROK.facts, **always})


def contracts_believed(patch: pytest.MonkeyPatch) -> None:
    """Nobody calls a helper before its contract is believed."""
    patch.setattr(promises, "of_helper", lambda *_: Tested("tested", 1000))


def shifts_by_any_amount(patch: pytest.MonkeyPatch) -> None:
    """To the prover a shift has a value whatever its amount: all bits are gone."""
    for numbers in (Bits, Integers):
        patch.setattr(numbers, "shiftable", lambda self, b: both())


def nan_equals_itself(patch: pytest.MonkeyPatch) -> None:
    """To the prover a NaN is equal to another one."""
    equal = Floats.eq
    patch.setattr(Floats, "eq", lambda self, a, b: smt.Or(equal(self, a, b), smt.And(self.is_nan(a), self.is_nan(b))))


def zeros_without_signs(patch: pytest.MonkeyPatch) -> None:
    """The prover is content with a zero of the other sign."""
    equal = MorokWorld.equal

    def close(self: MorokWorld, dtype: str, target: Term, pattern: Term) -> smt.Expr:
        same = equal(self, dtype, target, pattern)
        if not self.is_float(dtype):
            return same
        n = self.arithmetic(self.dtype(dtype))
        return either(same, smt.And(n.is_zero(target.value), n.is_zero(pattern.value)))

    patch.setattr(MorokWorld, "equal", close)


def zeros_alike(patch: pytest.MonkeyPatch) -> None:
    """The matcher takes both zeros for one constant."""
    equal = literals._constraint
    patch.setattr(literals, "_constraint", lambda made, path, value, *sign: equal(made, path, value))


def zeros_read_alike(patch: pytest.MonkeyPatch) -> None:
    """The prover reads -0.0 as 0.0."""
    const = Floats.const
    patch.setattr(Floats, "const", lambda self, value: const(self, value + 0.0))


def any_index_fits(patch: pytest.MonkeyPatch) -> None:
    """To the prover every index has a value in every dtype."""
    patch.setattr(Integers, "fits", lambda self, a: both())


def folds_of_floats_are_exact(patch: pytest.MonkeyPatch) -> None:
    """To the prover a float that is folded is a real number."""
    attempts = MorokTheory.attempts

    def exact(
        self: MorokTheory, ops: frozenset[str], dtypes: Sequence[str], numeric: bool, reals: bool
    ) -> list[Attempt]:
        return attempts(self, ops, dtypes, numeric, reals or "Reduce" in ops)

    patch.setattr(MorokTheory, "attempts", exact)


def items_of_folds_regrouped(patch: pytest.MonkeyPatch) -> None:
    """To the prover a sum of sums of floats is one sum, in any order; and no graph is tried beside the proof."""
    patch.setattr(folds, "may_regroup", lambda r: True)
    patch.setattr(obligations, "evaluated", lambda rule: (None, True))


def divisors_of_infinity(patch: pytest.MonkeyPatch) -> None:
    """The matcher takes an infinite bound for a multiple of every number."""

    def gcd(*several: object) -> int:
        items = several[0] if len(several) == 1 else several
        return math.gcd(*(v for v in items if type(v) is int))

    patch.setitem(values.NAMES, "_gcd", gcd)


def divided_by_infinity(patch: pytest.MonkeyPatch) -> None:
    """To the prover what is divided by an infinity is 0.0."""
    divide = Floats.fdiv
    patch.setattr(Floats, "fdiv", lambda self, a, b: smt.If(self.is_inf(b), self.const(0.0), divide(self, a, b)))


def axes_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """The prover takes any list of pairs for the axes of a node that a rule makes; and no graph is tried beside the proof."""
    axes = Reading.axes

    def unclaimed(self: Reading, part: Any) -> AxisList:
        self.probing += 1
        try:
            return axes(self, part)
        finally:
            self.probing -= 1

    patch.setattr(Reading, "axes", unclaimed)
    patch.setattr(obligations, "evaluated", lambda rule: (None, True))


def inverses_forgotten(patch: pytest.MonkeyPatch) -> None:
    """To the prover a permutation of axes is its own inverse; and no graph is tried beside the proof."""
    patch.setattr(expressions, "_inverse", lambda r, sure, of: expressions.items(of))
    patch.setattr(obligations, "evaluated", lambda rule: (None, True))


def numbers_as_written(patch: pytest.MonkeyPatch) -> None:
    """To the prover a number beyond its dtype is what is written, in lifted integers; and bit vectors have run out of budget."""
    made, asked = MorokWorld.constant, MorokTheory.attempts

    def constant(self: MorokWorld, dtype: str, value: Any) -> Term:
        d = self.dtype(dtype)
        return Term(smt.IntVal(int(value))) if self.integers and d.is_int else made(self, dtype, value)

    def attempts(self: MorokTheory, *arguments: Any) -> list[Attempt]:
        found = asked(self, *arguments)
        return [a for a in found if not a.name.startswith("bit vectors")] or found

    patch.setattr(MorokWorld, "constant", constant)
    patch.setattr(MorokTheory, "attempts", attempts)


def facts_of_values(patch: pytest.MonkeyPatch) -> None:
    """To the prover two nodes of one value have the same bounds, and are one node."""

    def one_answer(self: Facts, kind: str, make: Callable[[], Any], *of: Any) -> Any:
        nodes = [self.expression(e) for e in of]
        return self.world.once((kind, *(t.value for n in nodes for t in n.lanes)), make)

    patch.setattr(Facts, "one_answer", one_answer)


def theories_believed(patch: pytest.MonkeyPatch) -> None:
    """Ops of a dialect are compared with their meanings at numbers alone, whatever values its theory has."""
    patch.setattr(dialect_agreement.Agreement, "of_unknowns", lambda *_: None)
    patch.setattr(dialect_agreement.Agreement, "_denied", lambda *_: False)
    patch.setattr(dialect_trials, "theory_mistakes", lambda *_: ())
    patch.setattr(dialect_trials, "equality_mistakes", lambda *_: ())
    patch.setattr(dialect_trials, "excluded_constants", lambda *_: ())
    patch.setattr(verified, "encoding_mistakes", lambda *_: ())


def ends_of_all_loops(patch: pytest.MonkeyPatch) -> None:
    """To the prover the end of each loop of a pattern has a value, also where a loop around it is never done."""

    def defined(self: Ranges, loops: Sequence[Any]) -> smt.Expr:
        return both(*(x.end.term.defined for x in loops if isinstance(x, Loop) and x.end is not None))

    patch.setattr(Ranges, "ends_have_values", defined)


def folds_of_nothing(patch: pytest.MonkeyPatch) -> None:
    """The induction over a fold begins with no iterations also where that has no value."""
    patch.setattr(Folds, "begins_anew", lambda self: False)


def lanes_together(patch: pytest.MonkeyPatch) -> None:
    """To the prover no lane of a vector has a value where another one has none; and no graph is tried beside the proof."""
    patch.setattr(
        Encoder, "start_clauses", lambda self, pattern: self.premise(*(lane.defined for lane in pattern.lanes))
    )
    patch.setattr(obligations, "evaluated", lambda rule: (None, True))


HOLES: Final[dict[str, Hole]] = {
    "symbols coincide": symbols_coincide,
    "infinite arithmetic": infinite_arithmetic,
    "negative places": negative_places,
    "ragged pairs": ragged_pairs,
    "exact targets": exact_targets,
    "extents ignored": extents_ignored,
    "dialects unverified": dialects_unverified,
    "types untested": types_untested,
    "evaluators forgotten": evaluators_forgotten,
    "branches ahead": branches_ahead,
    "dtypes forgotten": dtypes_forgotten,
    "logarithms of all": logarithms_of_all,
    "nothing overflows": nothing_overflows,
    "contracts believed": contracts_believed,
    "shifts by any amount": shifts_by_any_amount,
    "NaN equals itself": nan_equals_itself,
    "zeros without signs": zeros_without_signs,
    "zeros alike": zeros_alike,
    "zeros read alike": zeros_read_alike,
    "any index fits": any_index_fits,
    "folds of floats are exact": folds_of_floats_are_exact,
    "items of folds regrouped": items_of_folds_regrouped,
    "divisors of infinity": divisors_of_infinity,
    "divided by infinity": divided_by_infinity,
    "axes as they are": axes_as_they_are,
    "inverses forgotten": inverses_forgotten,
    "numbers as written": numbers_as_written,
    "facts of values": facts_of_values,
    "theories believed": theories_believed,
    "ends of all loops": ends_of_all_loops,
    "folds of nothing": folds_of_nothing,
    "lanes together": lanes_together,
}
