"""The rule groups that simplify expressions, in order: the one place that lists them.

A group's rules are tried after those of the groups before it. Invalid goes first: `0 * Where(c, x, Invalid)` must become
`Where(c, 0, Invalid)` before anything makes it 0.
"""

from __future__ import annotations

from typing import Final

# Run with the final rewrites (stages 18 and 19), which make vectors scalar themselves.
SYMBOLIC_SIMPLE: Final = (
    "propagate_invalid",
    "fold_invalid_load_store",
    "constant_folding",
    "vconst_folding",
    "bitcast_folding",
    "identity_and_zero",
    "commutative_canonicalization",
    "self_folding",
    "zero_folding",
    "division",
    "cast",
    "cast_where",
    "term_combining",
    "alu_folding",
    "advanced_division",
    "div_mod_recombine",
    "comparison",
    "comparison_of_sums",
    "boolean",
    "minmax",
    "where_bound",
    "power",
    "negation",
    "range_based_mod_div",
    "fold_divmod_general",
    "dce",
    "dead_loop",
    "after_simplification",
)

# Stages 4, 8 and 16, and `morok.simplify`.
SYMBOLIC: Final = (*SYMBOLIC_SIMPLE, "gep_pushing", "recollect", "gep_through_index")

# Stage 8: conditions of loads become gates, after everything about the conditions is known, and gates simplify what they guard.
SYM: Final = (*SYMBOLIC, "move_where_on_load", "validity")

# With the rules of which groups nests of one op are seen as a whole first (morok.rewrite.ac_chains), and by those of which.
WHOLE: Final = {"commutative_canonicalization": "whole_sums"}

# In which operand positions rules fire: all but binders, but for those of some groups. What is read becomes a Load, what
# is written or loaded stays a place; what is unrolled or launched are loops.
FIRES: Final = frozenset({"value", "place", "order"})
FIRES_IN: Final = {
    "add_loads": frozenset({"value", "order"}),
    "group_for_reduce": FIRES | {"binder"},
    "pre_expander": FIRES | {"binder"},
    "launch": FIRES | {"binder"},
}

TIERS: Final = {"symbolic_simple": SYMBOLIC_SIMPLE, "symbolic": SYMBOLIC, "sym": SYM}
