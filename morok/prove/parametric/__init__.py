"""Proofs of rules at every size: any number of lanes, of operands, of axes and their lengths, in one question.

A vector is a number of lanes and a function of an iteration and a lane; a sequence is a length and a function of a place. One
lane of the result stands for all, as a fresh unknown. All else that is known of lengths, lanes and iterations comes from a few
laws (`laws`), of which the instances at the terms that occur are used: the solver is asked without quantifiers.
"""
