"""Proofs of rules at every size: any number of lanes, of operands, of axes and their lengths, in one question.

A vector is how many lanes it has and a function of an iteration and a lane; a sequence is a length and a function of a place. One
lane of the result stands for all, as a fresh unknown. Whatever else is known of lengths, lanes and iterations is the instances of a
few laws (`laws`), at the terms that occur: what the solver is asked has no quantifiers.
"""

from morok.prove.parametric.proof import Proof, parametric_proof

__all__ = ["Proof", "parametric_proof"]
