"""Answers that are remembered of the last few rules: asked while another one is found, and by several threads."""

from __future__ import annotations

import sys
import threading

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove.cached_per_rule import once_a_rule

RULES = list(check_text("group g\n\n" + "".join(f"a{n}: Add(x: i32, {n}) ~> Add({n}, x)\n" for n in range(24))).rules())


def test_only_the_last_few_are_remembered_however_they_were_asked() -> None:
    """Rules asked about while another rule's answer is found, as by another thread, leave no more room than that."""
    found: list[str] = []

    def ask(rule: CheckedRule) -> str:
        if not found:
            found.append(rule.own)
            for other in RULES[1:9]:
                asked(other)
        found.append(rule.own)
        return rule.own

    asked = once_a_rule(ask)
    for rule in RULES:
        asked(rule)
    count = len(found)
    asked(RULES[1])
    assert found[count:] == [RULES[1].own]


def test_threads_make_room_for_their_answers_at_the_same_time() -> None:
    asked = once_a_rule(lambda rule: rule.own)
    problems: list[BaseException] = []

    def ask(first: int) -> None:
        try:
            for n in range(30_000):
                rule = RULES[(first + n) % len(RULES)]
                assert asked(rule) == rule.own
        except BaseException as problem:
            problems.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(6 * k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
