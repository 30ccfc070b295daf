"""Proofs at every size of what the hardware's indices say."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.rewrite.library import rules_dir
from tests.prove.every_size import shown

TEXT = (rules_dir() / "target" / "gpudims.rules").read_text()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("whole", "    ensures counts(h, r)\n", ""),
        ("digit", "    ensures counts(h, r, step)\n", ""),
        ("digit", "=> Mod(Idiv(h, step), n)", "=> Idiv(h, step)"),
        ("digit", "=> Mod(Idiv(h, step), n)", "=> Mod(h, n)"),
    ],
)
def test_a_range_is_what_its_index_says(name: str, old: str, new: str) -> None:
    """With the contracts of the library, and not where one says less, or a rule reads it otherwise."""
    assert old in TEXT
    for text, true in ((TEXT, True), (TEXT.replace(old, new), False)):
        rule = next(r for r in check_text(text).rules() if r.name == f"gpudims.{name}")
        assert shown(rule) == true
