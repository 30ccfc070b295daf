"""Accuracy: rules `within N ulp` are compiled, run on many operands, and compared with exact values.

The prover uses this package through the Protocol in morok.prove.measuring.
"""

from morok.accuracy.judgement import judge, judge_trial
from morok.accuracy.measured_code import code_digests
from morok.accuracy.subject import companions

__all__ = ["code_digests", "companions", "judge", "judge_trial"]
