"""The rule groups that simplify expressions, in order of priority. This is the only place that lists them.

A group's rules are tried after those of the groups before it. Invalid goes first: `0 * Where(c, x, Invalid)` must become
`Where(c, 0, Invalid)` before anything makes it 0.
"""

from __future__ import annotations

from typing import Final

# Also run with the final rewrites (stages 18 and 19), which scalarize vectors by other rules.
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

# Stage 8: conditions of loads become gates, once the conditions are simplified, and gates simplify the values that they guard.
SYM: Final = (*SYMBOLIC, "move_where_on_load", "validity")

# A set that holds the group on the left matches whole AC chains first, by the group on the right (morok.rewrite.ac_chains).
WHOLE: Final = {"commutative_canonicalization": "whole_sums"}

# The operand positions in which rules fire: all but binders, with exceptions by group. `add_loads` turns only values into loads,
# and leaves the places that are loaded and stored; the other three groups rewrite the loops that binders name.
FIRES: Final = frozenset({"value", "place", "order"})
FIRES_IN: Final = {
    "add_loads": frozenset({"value", "order"}),
    "group_for_reduce": FIRES | {"binder"},
    "pre_expander": FIRES | {"binder"},
    "launch": FIRES | {"binder"},
}

TIERS: Final = {"symbolic_simple": SYMBOLIC_SIMPLE, "symbolic": SYMBOLIC, "sym": SYM}
