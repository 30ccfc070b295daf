"""Checks by evaluation and by others: rules fired on random graphs, mutants of rules, a second solver.

Proofs at every size count only where the firing of rules on random graphs agrees.
"""
