"""Checks on the prover itself: mutants of rules, firing on random graphs, a second solver. No verdict depends on this package."""
