"""Accuracy: what rules `within N ulp` become, compiled, run over many operands, and compared with exact values.

The prover is handed this package to measure with (morok.prove.measuring).
"""

from morok.accuracy.judgement import judge, judge_trial
from morok.accuracy.measured_code import code_digests
from morok.accuracy.subject import companions

__all__ = ["code_digests", "companions", "judge", "judge_trial"]
